/* gpu: what XLA makes of a program for GPUs, and what its kernels and the libraries' take. Private to src/sim. */
#ifndef WEFT_SIM_GPU_GPU_H
#define WEFT_SIM_GPU_GPU_H

#include "sim/schedule/schedule.h"

void gpu_expand(HGraph *g, const Chip *chip, const SimOpts *opts);
/* which of cuDNN's functions XLA takes for a convolution */
typedef enum GpuConv { GPU_CONV_FORWARD, GPU_CONV_IMAGE, GPU_CONV_FILTER } GpuConv;
GpuConv gpu_conv_way(const HNode *n);
/* Of what XLA could compute again; and which sums it does. `claimed`, by node: what libraries compute with
 * products. */
void gpu_stored(Schedule *p, const unsigned char *claimed);
/* stores what XLA would not compute again; `rows`, by node: never of these */
void gpu_fuse(Schedule *p, const bool *rows, const unsigned char *claimed);
/* operations that XLA counts for an element */
double gpu_op_cycles(const Chip *chip, OpKind op, DType type);
void gpu_cost(Schedule *p, Kernel *k);
/* the gradient of a convolution's weights, of its image */
bool gpu_weight_gradient(const HNode *n);
bool gpu_backwards(const HNode *n);
double
gpu_made_bytes(const HNode *n); /* held while XLA's kernels of one operation run; 0: one kernel */

/* Of a product from its shape alone, by the vendor's library, everything in device memory. */
double gpu_product_s(const Chip *c, DType dt, double batch, double m, double n, double k);

#endif
