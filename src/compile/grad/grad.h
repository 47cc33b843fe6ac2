/* compile/grad: reverse-mode differentiation, from StableHLO to StableHLO. The backward program
 * is ordinary ops appended after the forward ones, so any PJRT plugin runs it; what is computed
 * twice is left to common-subexpression elimination.
 *
 * Conventions  those of JAX 0.10 (its lowered gradients are what compilers recognise): a maximum
 *              of a tensor shares its gradient equally among ties; max pooling gives it to the
 *              first; a gradient of an integer or boolean is none. maximum(x, y) and minimum
 *              with one side constant give nothing at a tie (relu'(0) = 0, as frameworks have
 *              it).
 * Covers       see the rules in grad_ewise.c, grad_move.c, grad_reduce.c, grad_control.c. while
 *              loops with a trip count known from the program are differentiated by saving
 *              states; other loops are ERR_UNIMPLEMENTED.
 * Threads      one at a time for each module.
 */
#ifndef WEFT_COMPILE_GRAD_GRAD_H
#define WEFT_COMPILE_GRAD_GRAD_H

#include "ir/build.h"

/* Unit attribute of an op that gradients do not pass. For builders: take it away before the
 * program leaves. */
#define GRAD_STOP "weft.stop_gradient"

/* Unit attributes of dot_general and convolution, for builders as well: the gradients of one that has the first get one
 * of the others, by which of their operands the cotangent is. */
#define GRAD_F8 "weft.f8"
#define GRAD_F8_COTANGENT_LEFT "weft.f8_cotangent_left"
#define GRAD_F8_COTANGENT_RIGHT "weft.f8_cotangent_right"

/* Appends to b->r the ops that compute out[i] = d loss / d wrt[i].
 *   loss      float scalar, in b->r
 *   wrt       n float values visible in b->r: arguments, results
 *   out       n values of the types of wrt; zeros where loss does not depend on wrt[i]
 *   errors    ERR_UNIMPLEMENTED an op without a rule, or a form of it (names op and place);
 *             ERR_INVALID loss not a float scalar */
Err *grad_append(Build *b, Value *loss, int n, Value *const *wrt, Value **out);

/* The general form: outs[k] (k < n_out) have the cotangents cots[k]; ops before `first` are not
 * looked at (NULL: all of b->r). */
Err *grad_vjp(Build *b, Op *first, int n_out, Value *const *outs, Value *const *cots, int n,
              Value *const *wrt, Value **out);

/* Adds function `name` to m: the arguments of f -> (its first result, d result / d argument
 * args[i] ...).
 *   errors    as above */
Err *grad_func(Module *m, Func *f, int n, const int *args, const char *name, Func **out);

#endif
