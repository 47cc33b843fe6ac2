/* compile/numerics: what precision a chip's matrix units would compute in, expanded into the
 * program, so that an executor need not know chips.
 *
 *   NUM_F32          nothing changes: the host, and GPUs without tf32 (K80, P100, V100, T4)
 *   NUM_BF16_PASSES  TPUs up to v6e: f32 operands of dot and convolution are split into bf16 parts,
 *                    products accumulate in f32: DEFAULT 1 product, HIGH 3, HIGHEST 6 (jax.lax.Precision;
 *                    Henry et al., arXiv:1904.06376). Products with a vector are f32 on the vector unit
 *   NUM_BF16_MATVEC  TPU7x: the same, also of most products with a vector
 *   NUM_TF32         A100 and later: f32 operands at DEFAULT or HIGH are rounded to 10 mantissa bits;
 *                    HIGHEST is f32
 *
 * Products with an explicit `algorithm` are left alone: it says what to compute; but those of 3 or 6
 * products of bf16 parts, which the host would do in f32, become these. Other element types are left
 * alone too: a bf16 or f16 product already has these operands.
 */
#ifndef WEFT_COMPILE_PASS_NUMERICS_H
#define WEFT_COMPILE_PASS_NUMERICS_H

#include "ir/ir.h"

typedef enum Numerics { NUM_F32, NUM_BF16_PASSES, NUM_BF16_MATVEC, NUM_TF32 } Numerics;

/* 0 DEFAULT, 1 HIGH, 2 HIGHEST of a float32 product that the pass may rewrite; -1: another op */
int numerics_level(const Op *op, Numerics policy);
/* Of a dot, dot_general or convolution of f32 on a TPU (vector_unit.c). vectors: that of a matrix and a vector is */
bool product_is_on_vector_unit(const Op *op, bool vectors);
void pass_numerics(Module *m, Numerics policy);

#endif
