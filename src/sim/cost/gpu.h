/* What gpu_cost.c, gpu_loop.c and gpu_product.c share. */
#ifndef WEFT_SIM_COST_GPU_H
#define WEFT_SIM_COST_GPU_H

#include "sim/plan/plan.h"

/* FLOP/s of one device on numbers of that type; matrix: on matrix units. passes: see HConv. */
double gpu_peak(const Chip *c, DType a, int passes, bool *matrix);
/* Seconds that a product's or convolution's arithmetic takes; peak: of the units that it runs on.
 */
double gpu_product_s(const Chip *c, const HNode *n, double *peak);
/* A convolution in groups reads the features of one group at a time: their share of a line of
 * memory. */
double gpu_line_share(const HNode *n);
/* Bytes that are moved to turn a convolution's operands and result: on generations where f32
 * convolutions have their features first in memory (XLA's choice before Hopper, and the frameworks'
 * default) while the kernels for matrix units want them last. */
double gpu_turned_bytes(const Chip *c, const Kernel *k);

/* Seconds of the vector units for a kernel without products, bytes being what it moves at that
 * bandwidth. */
double gpu_vector_s(const Chip *c, const Kernel *k, double bytes, double bandwidth);

#endif
