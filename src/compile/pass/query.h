/* What passes and plans ask of a program. */
#ifndef WEFT_COMPILE_PASS_QUERY_H
#define WEFT_COMPILE_PASS_QUERY_H

#include "ir/ir.h"

/* ---- values ---- */

Tensor *value_constant(const Value *v); /* data of a constant op; NULL */
/* A constant all of whose elements are equal: its element, else NULL. Looks through broadcasts and
 * reshapes of constants, not into constants of more than SPLAT_MAX elements: pass_simplify makes
 * broadcasts of those. */
#define SPLAT_MAX 65536
const void *value_splat(const Value *v);
/* Elements of a gather's window that lie together; from GATHER_ROW on they are rows to be copied. */
#define GATHER_ROW 16
int64_t gather_run(const Op *gather);
/* The operation that makes it, where that is of this kind; NULL. */
Op *value_def(const Value *v, OpKind kind);
/* All elements are this float, zeros by their sign; this integer or boolean. */
bool value_is_float(const Value *v, double x);
bool value_is_int(const Value *v, int64_t x);
/* The integer that a scalar constant is. */
bool value_int(const Value *v, int64_t *out);

/* ---- operations ---- */

#define MAX_PARTS 16 /* operands of a concatenate that one kernel writes side by side */

bool op_is_pure(const Op *op); /* same operands, same result, and nothing else happens */
bool region_is_pure(const Region *r);
int region_uses(const Region *r, const Value *v); /* operands in the region that are v */
bool op_is_heavy(const Op *op);                   /* costs more than a few cycles an element */
double op_loop_work(const Op *op); /* in a generated loop, for an element, in additions */
/* Result i has the bytes of operand i: reshape, bitcast of the same width, barrier, copy. */
bool op_is_alias(const Op *op);
int op_captures(const Op *op,
                Value ***out); /* values from outside that its regions use; malloc'd */

/* ---- loops ---- */

/* How often a while runs when the program gives it: carried value *counter begins at *first and
 * grows by *by. -1: not known, or more than `most` times. */
int loop_trip_count(const Op *loop, int most, int *counter, int64_t *first, int64_t *by);
/* Nobody in the loop sees the carried stack but `put`, which puts a part into it (unseen.c). */
bool loop_hides_stack(const Op *loop, const Op *put);
/* Does the loop write all of carried value k before anybody reads it? Then it need not begin as anything. */
bool loop_puts_all(const Op *loop, int k);
/* Is `place`, in the body of the loop, each of 0 .. n - 1 once in its n turns? (hoist.c) */
bool loop_visits_all(const Op *loop, const Value *place, int64_t n);

#endif
