/* What a product takes on a TPU, from its shape alone: as products of programs (tiling.c),
 * operands and result in device memory. */
#include <math.h>

#include "sim/tpu/cost.h"
#include "sim/tpu/tpu.h"

/* Tiles of 1024 elements, rows filled up to 8 and lanes to 128. */
static double tiles(double rows, double lanes) { return ceil(rows / 8) * ceil(lanes / 128); }

/* Times that the array goes over operands of one byte, those of two being 1. */
static double passes(const Chip *c, DType dt) {
  double wide = chip_num(c, "peak_bf16", 0), narrow = 0;
  if (dt == DT_I8) narrow = chip_num(c, "peak_int8", 0);
  else if (dtype_bytes(dt) == 1) narrow = chip_num(c, "peak_fp8", 0);
  return narrow > wide && wide > 0 ? wide / narrow : 1;
}

double tpu_product_s(const Chip *c, DType dt, double batch, double m, double n, double k) {
  CostParams params;
  params_read(c, &params);
  int in = MIN(4, MAX(1, dtype_bytes(dt))), out = 2;
  ProductShape s = {.m = ceil(m / 8),
                    .n = ceil(n / 128),
                    .k = ceil(k / 128),
                    .k_splits = ceil(k / 128),
                    .batch = batch,
                    .passes = passes(c, dt),
                    .load = params.wl,
                    .share = params.share,
                    .base = params.base,
                    .wait = params.lat,
                    .out_tiles = batch * tiles(m, n)};
  s.la = batch * tiles(m, k) * params.product.r[in], s.ba = batch * tiles(m, k) * 1024 * in;
  s.lb = batch * tiles(k, n) * params.product.r[in], s.bb = batch * tiles(k, n) * 1024 * in;
  s.wo = s.out_tiles * params.product.o[out], s.bo = s.out_tiles * 1024 * out;
  double array;
  int windows;
  return tpu_tiling(&params, &s, &array, &windows) / params.clock;
}
