/* gpu: what XLA makes of a program for GPUs, and what its kernels and the libraries' take. Private to src/sim. */
#ifndef WEFT_SIM_GPU_GPU_H
#define WEFT_SIM_GPU_GPU_H

#include <math.h>

#include "sim/schedule/compiler.h"

extern const ChipCompiler gpu_compiler;
/* A coefficient of the cost model: of the chip's file or, for what that leaves out, of data/chips/gpu.family. */
static inline double gpu_rate(const Chip *chip, const char *key) {
  return chip_num(chip, key, NAN);
}
/* Stages of it (compiler.h); some are the eager compiler's too. */
void gpu_rewrite(HGraph *g, const Chip *chip, const CostParams *params);
void gpu_turn_operands(HGraph *g); /* of products, as cuBLAS takes them */
void gpu_fuse(Schedule *p);
bool gpu_absorbs(const HNode *user, const HNode *x);
void gpu_count(Schedule *p, Kernel *k);
double gpu_product_peak(const Chip *chip, const HNode *product);
double gpu_launch_s(const Chip *chip, const CostParams *params);
double gpu_energy(const Chip *chip, const SimReport *r);
/* How far a library goes on computing with a product's result: with a convolution's gradients not at all. */
HNode *gpu_epilogue_end(const Schedule *p, HNode *conv, const unsigned char *claimed);
/* Is n what a library computes with a product's result on the way? */
bool gpu_library_adds(const HNode *product, const HNode *n);
/* which of cuDNN's functions XLA takes for a convolution */
typedef enum GpuConv { GPU_CONV_FORWARD, GPU_CONV_IMAGE, GPU_CONV_FILTER } GpuConv;
GpuConv gpu_conv_way(const HNode *n);
/* stores what XLA would not compute again; `rows`, by node: never of these */
void gpu_priority_fusion(Schedule *p, const bool *rows, const unsigned char *claimed);
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
