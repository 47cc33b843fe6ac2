/* Layouts of values, as a pass may choose them, and how operations hand them on (layout_rules.c). */
#ifndef WEFT_COMPILE_PASS_LAYOUT_RULES_H
#define WEFT_COMPILE_PASS_LAYOUT_RULES_H

#include "ir/build.h"

/* The order that a value's dimensions lie in: first its dimension d[0], last d[n - 1]. */
typedef struct Layout {
  int n;
  int8_t d[B_MAX_RANK];
} Layout;

Layout layout_plain(int rank);
/* Do elements of a tensor of this type lie in the same order in both? Dimensions of size 1 may stand anywhere. */
bool layout_same(const Layout *a, const Layout *b, const Type *t);
bool layout_moves(const Layout *a, const Type *t); /* not the same as plain */
Type *layout_type(Module *m, const Layout *a, const Type *t);
int layout_find(const Layout *a, int64_t dim); /* where it lies */
/* x lies in `from`; the same elements in `to`. */
Value *layout_change(Build *b, Value *x, const Layout *from, const Layout *to, const Type *t);

/* A port is an operand, or a result: n_operands and more. An operation that can be computed in several
 * layouts has one, `main`, which the layouts of its ports follow from. */

/* Can op be computed so that a port has layout `at`? */
bool layout_follow(const Op *op, int port, const Layout *at, Layout *main);
/* false: this operand is read in the plain layout, this result has it. */
bool layout_port(const Op *op, const Layout *main, int port, Layout *out);
const Type *layout_port_type(const Op *op, int port);
/* The same operation of operands in the layouts of their ports; it takes op's regions. */
Op *layout_rebuild(Build *b, const Op *op, const Layout *main, Value *const *operands);

/* Convolutions have channels last: images, spatial dimensions, channels; of a gradient of weights both operands
 * are such, and its result is not. false: none is to be had. */
bool layout_of_convolution(const Op *op, int port, Layout *out);

#endif
