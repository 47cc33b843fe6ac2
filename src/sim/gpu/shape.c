/* What a product takes on a GPU, from its shape alone: by the model of products of programs
 * (cost_product.c), operands and result in device memory. */
#include <math.h>

#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"

double gpu_product_s(const Chip *c, DType dt, double batch, double m, double n, double k) {
  double size = dtype_bits(dt) / 8.0, bytes = batch * (size * (m * k + k * n) + 2 * m * n);
  GpuProduct g = gpu_product_of(c);
  GpuUnit u = gpu_library(c, dt, 1, &g);
  if (u.matrix && dtype_bits(dt) == 16 && (fmod(n, 8) != 0 || fmod(k, 8) != 0))
    gpu_unaligned(c, &u);
  g.s = gpu_waves_s(c, &u, batch, m, n, k, size);
  return gpu_product_time(c, &g, bytes / c->hbm_bandwidth);
}
