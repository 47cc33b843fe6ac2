/* compile/pass: from program to program. Each pass takes a verified module and leaves a verified
 * module that computes the same: exactly, or as docs/numerics.md says. compile.c has their order.
 *
 * Errors      of the module's own (recursion, unknown symbols); what a pass cannot improve it
 *             leaves as it is.
 * Threads     one at a time for each module.
 */
#ifndef WEFT_COMPILE_PASS_PASS_H
#define WEFT_COMPILE_PASS_PASS_H

#include "ir/ir.h"

/* Inlines func.call, composites without a known name, and named computations into main; removes
 * functions not reachable. Afterwards main holds the whole program. errors: recursion, unknown
 * symbols. */
Err *pass_inline(Module *m);
/* Batch normalisation, forward and backward, as sums and element-wise arithmetic. */
Err *pass_batch_norm(Module *m);
/* Convolutions, and what lies between them, are computed with channels last. */
Err *pass_layout_assignment(Module *m);
/* jax.lax.ragged_all_to_all as an all_gather and a choice of rows; m: inlined. */
Err *pass_ragged(Module *m);
/* Constant folding (small), common subexpressions, algebraic identities, dead code, trivial control
 * flow. */
Err *pass_simplify(Module *m);
/* Products with an explicit algorithm become plain ones, of rounded operands. */
Err *pass_algorithms(Module *m);
/* Sums of floats of up to 8 bits in f32; integers of less than 8 bits as parts of bytes. */
Err *pass_small_types(Module *m);
/* Convolutions that are matrix products become dot_general. */
Err *pass_products(Module *m);
/* Convolutions of groups with large windows and few results become dot_general. */
Err *pass_groups(Module *m);
/* Rows that meet their group's matrix, as jax.lax.ragged_dot is lowered, become chlo.ragged_dot. */
Err *pass_ragged_dot(Module *m);
/* Products of operands that are repeated along a batch dimension read them once. */
Err *pass_repeats(Module *m);
/* Products with weights of near places, as images are resized by, become weft.resample. */
Err *pass_resample(Module *m);
/* Products too small for a kernel become multiplications and sums. */
Err *pass_tiny_products(Module *m);
/* Products and convolutions of small integers with results as small are summed in 32 bits. */
Err *pass_bytes(Module *m);
/* Values beside their own edges, as padding by reflection writes them, become weft.reflect_pad. */
Err *pass_reflect_pad(Module *m);
/* What is computed of narrower elements and transposed is computed of them transposed. */
Err *pass_narrow(Module *m);
/* Sums of padded pieces become the pieces side by side. */
Err *pass_pads(Module *m);
/* Arithmetic on columns side by side is done on the columns. */
Err *pass_sink_concat(Module *m);
/* Softmax between two products, with its gradients, becomes weft.attention. */
typedef bool AttendsFn(void *arg, DType t);                    /* of elements of this type? */
Err *pass_attention(Module *m, AttendsFn *attends, void *arg); /* NULL: of all */
/* Attention with causal masks and windows is computed in blocks of rows. */
Err *pass_causal_blocks(Module *m);
/* Functions that front ends write out as polynomials become one operation. */
Err *pass_special(Module *m);
/* The random numbers that JAX writes out become one operation. */
Err *pass_threefry(Module *m);
/* Windows over whole dimensions, gradients of means over windows that do not overlap. */
Err *pass_pools(Module *m);
/* What is spread out between zeros, to be added to something. */
Err *pass_interior_pad(Module *m);
/* Gradients of gathers without zeros to add to. */
Err *pass_scatters(Module *m);
/* Sums of gathered rows, as nets on graphs have them, become weft.segment_sum. */
Err *pass_segment_sum(Module *m);
/* Scatters to one box, whose place is known, are pads and updates in place. */
Err *pass_updates(Module *m);
/* The sign of what is rectified is read off the result. */
Err *pass_masks(Module *m);
Err *pass_lower_complex(Module *m);
/* reduce_window that no kernel is made for, written as element-wise arithmetic. */
Err *pass_windows(Module *m);
/* Random numbers of bf16 and f16 have their type's digits after every operation. */
Err *pass_rng_rounding(Module *m);
/* Short loops of element-wise work are written out. */
Err *pass_unroll(Module *m);
/* Products that a loop adds up become one product of stacks after it. */
Err *pass_hoist(Module *m);
/* Attention, forward and backward, is computed in loops over blocks of rows; its scores are not stored. */
Err *pass_blockwise(Module *m);
/* What loops begin with and nobody sees is not made. */
Err *pass_unseen(Module *m);
/* Every loop gets a number, in the program's order, in functions that are called as well; copies of the module keep them. Returns
 * how many. loop_number: -1 without one. */
int pass_number_loops(Module *m);
int loop_number(const Op *op);
/* One more result of the program, an i64, for each wanted number below n, in their order: how often the bodies of that loop ran.
 * wanted: cleared where nothing can be counted (loops in manual computations). Returns how many. m: inlined. */
int pass_count_loops(Module *m, int n, bool *wanted);

#endif
