/* What a product takes on a GPU, from its shape alone: by the law of products of programs
 * (cost_product.c), operands and result in device memory. */
#include <math.h>

#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"

double gpu_product_s(const Chip *c, DType dt, double batch, double m, double n, double k) {
  double peak, size = dtype_bits(dt) / 8.0;
  GpuUnit u = gpu_unit(c, dt, 1, &peak);
  double bytes = batch * (size * (m * k + k * n) + 2 * m * n);
  double data = bytes / (c->hbm_bandwidth * chip_num(c, "fit.stream", 0.85));
  if (u.matrix && dtype_bits(dt) == 16 && (fmod(m, 8) || fmod(n, 8) || fmod(k, 8)))
    gpu_unaligned(c, &u);
  double s = gpu_waves_s(c, &u, batch, m, n, k, size);
  return pow(pow(s, 4) + pow(data, 4), 0.25) + chip_num(c, "fit.launch", 2.5e-6);
}
