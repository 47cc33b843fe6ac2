/* compile, private: complex numbers as pairs of real values, and their functions (lower_complex_math.c). */
#ifndef WEFT_COMPILE_PASS_LOWER_COMPLEX_H
#define WEFT_COMPILE_PASS_LOWER_COMPLEX_H

#include "ir/build.h"

typedef struct Pair {
  Value *re, *im;
} Pair;

Pair pair_multiply(Build *b, Pair x, Pair y);
Pair pair_divide(Build *b, Pair x, Pair y);
Value *pair_abs(Build *b, Pair x); /* without overflow on the way */
Pair pair_select(Build *b, Value *pred, Pair on_true, Pair on_false);
bool pair_is_real(Pair x); /* the imaginary part is the constant zero */

/* A function of one or two complex numbers that is written in parts. Parts in f32 are computed in
 * f64 and rounded once. y: of power only. */
bool pair_has_function(OpKind kind);
Pair pair_function(Build *b, OpKind kind, Pair x, Pair y);

#endif
