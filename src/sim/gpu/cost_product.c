/* One product or convolution on a GPU: waves of output tiles over the SMs, a tile in steps of 128 bytes
 * of each of its rows and columns. A step takes as long as its multiplications, as its operands need on
 * their way to the SM, and never less than a latency hidden by as many steps as shared memory holds. A
 * convolution is the product of its patches, gathered on the way (cost_conv.c says what that changes).
 * Products of 16 and 8 bits by the vendor's library have coefficients of their own, fit.product_* and
 * fit.product8_* in the chips' files, fitted by tools/fit_gpu.py; without them those of all GPUs hold
 * (data/chips/gpu.family). */
#include <math.h>
#include <stdio.h>

#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"

typedef struct Tile {
  int m, n;
} Tile;
static const Tile tiles[] = {
    {256, 128}, {192, 192}, {192, 160}, {192, 128}, {256, 96}, {256, 64}, {128, 256}, {128, 192},
    {128, 160}, {128, 128}, {128, 96},  {128, 64},  {96, 256}, {96, 192}, {96, 128},  {64, 256},
    {64, 192},  {64, 160},  {64, 128},  {64, 96},   {64, 64},  {256, 32}, {128, 32},  {64, 32},
    {32, 256},  {32, 128},  {32, 64},   {64, 16},   {16, 64},  {64, 8},   {8, 64}};

#define STEP 128.0      /* bytes of a row */
#define SPLIT_LEAST 256 /* terms of a share */

double gpu_peak(const Chip *c, DType a, int passes, bool *matrix) {
  *matrix = true;
  double bf16 = chip_num(c, "peak_bf16", 0), f16 = chip_num(c, "peak_fp16", 0),
         f32 = chip_num(c, "peak_fp32", 1e12);
  double dev = c->devices_per_chip;
  switch (a) { /* types that the chip has not are computed in f32 */
  case DT_BF16:
    if (bf16 <= 0) break;
    return bf16 / dev;
  case DT_F16:
    if (f16 <= 0) break;
    return f16 / dev;
  case DT_C64:
  case DT_F32:
    /* HIGH is one product of tf32 as well: XLA asks cuBLAS for more at HIGHEST alone */
    if (passes <= 3 && chip_num(c, "peak_tf32", 0) > 0) return chip_num(c, "peak_tf32", f32) / dev;
    break;
  case DT_C128:
  case DT_F64:
    *matrix = false;
    return chip_num(c, "peak_fp64_tc", chip_num(c, "peak_fp64", f32 / 32)) / dev;
  case DT_I8:
  case DT_U8: return chip_num(c, "peak_int8", f32) / dev;
  case DT_F8E4M3FN:
  case DT_F8E5M2:
    if (chip_num(c, "peak_fp8", bf16) <= 0) break;
    return chip_num(c, "peak_fp8", bf16) / dev;
  case DT_F4E2M1FN:
    if (chip_num(c, "peak_fp4", 0) <= 0) break;
    return chip_num(c, "peak_fp4", 0) / dev;
  default: break;
  }
  *matrix = false;
  return f32 / dev;
}

static double sms(const Chip *c) { return chip_num(c, "sms", 80) / c->devices_per_chip; }

GpuUnit gpu_unit(const Chip *c, DType dt, int passes, double *peak) {
  GpuUnit u = {.fill_s = gpu_rate(c, "fit.fill"),
               .split_s = gpu_rate(c, "fit.split"),
               .sums = gpu_rate(c, "fit.cache") * c->hbm_bandwidth};
  *peak = gpu_peak(c, dt, passes, &u.matrix);
  bool tf32 = dt == DT_F32 || dt == DT_C64, int8 = dt == DT_I8 || dt == DT_U8;
  double all = gpu_rate(c, "fit.matmul"), share = !u.matrix ? gpu_rate(c, "fit.fp32")
                                                  : tf32    ? chip_num(c, "fit.tf32", all)
                                                  : int8    ? chip_num(c, "fit.int8", all)
                                                            : all;
  u.rate = *peak * share / sms(c) / (dtype_is_complex(dt) ? 4 : 1);
  u.load = gpu_rate(c, "fit.load") * c->clock;
  u.wave_s = gpu_rate(c, "fit.wave");
  u.step_s = gpu_rate(c, !u.matrix ? "fit.step_vector"
                         : tf32    ? "fit.step_tf32"
                         : int8    ? "fit.step_int8"
                                   : "fit.step_half") /
             c->clock;
  return u;
}

static double fact(const Chip *c, DType dt, const char *what, double dflt) {
  char key[64];
  snprintf(key, sizeof key, "fit.product%s_%s", dtype_bits(dt) <= 8 ? "8" : "", what);
  return chip_num(c, key, dflt);
}

GpuProduct gpu_product_of(const Chip *c) {
  return (GpuProduct){.overlap = gpu_rate(c, "fit.overlap"),
                      .stream = MIN(gpu_rate(c, "fit.streamed"), gpu_rate(c, "fit.stream")),
                      .moved = 1};
}

GpuUnit gpu_library(const Chip *c, DType dt, int passes, GpuProduct *product) {
  GpuUnit u = gpu_unit(c, dt, passes, &product->peak);
  if (!u.matrix || dtype_bits(dt) > 16 || !dtype_is_float(dt)) return u;
  u.rate = product->peak * fact(c, dt, "rate", u.rate * sms(c) / product->peak) / sms(c);
  u.load = c->clock * fact(c, dt, "load", gpu_rate(c, "fit.load"));
  u.wave_s = fact(c, dt, "tile", u.wave_s);
  u.fill_s = fact(c, dt, "fill", u.fill_s);
  u.split_s = fact(c, dt, "split", u.split_s);
  u.sums = fact(c, dt, "sums", u.sums);
  u.even = fact(c, dt, "even", 0);
  u.heat = fact(c, dt, "heat", 0);
  u.power = fact(c, dt, "power", 0);
  product->overlap = fact(c, dt, "overlap", product->overlap);
  product->stream = fact(c, dt, "stream", product->stream);
  return u;
}

double gpu_product_time(const Chip *c, const GpuProduct *g, double data) {
  double t = data / g->stream * g->moved;
  return pow(pow(g->s, g->overlap) + pow(t, g->overlap), 1 / g->overlap) +
         gpu_rate(c, "fit.launch") + gpu_rate(c, "fit.first_tile") + g->beside_s;
}

/* A product of k terms of `size` bytes, the best over tiles and shares of the sum. */
double gpu_waves_s(const Chip *c, const GpuUnit *u, double batch, double m, double n, double k,
                   double size) {
  double best = 1e300, all = sms(c), step = STEP / size;
  for (int i = 0; i < COUNT_OF(tiles); i++) {
    double tm = tiles[i].m, tn = tiles[i].n, count = ceil(m / tm) * ceil(n / tn) * batch;
    double s = MAX(2 * tm * tn * step / u->rate, MAX((tm + tn) * STEP / u->load, u->step_s));
    for (double split = 1; split == 1 || (split <= 64 && count * split <= 2 * all); split *= 2) {
      if (split > 1 && k / split < SPLIT_LEAST) break;
      double waves = ceil(count * split / all);
      waves -= u->even * (waves - MAX(count * split / all, 1));
      double t = waves * (ceil(k / split / step) * s + u->wave_s) + u->fill_s;
      if (split > 1) t += u->split_s + 2 * split * 4 * m * n * batch / u->sums;
      best = MIN(best, t);
    }
  }
  double lasts = MAX(best, u->busy_s);
  return best * (1 + u->heat * best / (best + gpu_rate(c, "fit.heated")) +
                 u->power * lasts / (lasts + gpu_rate(c, "fit.worn")));
}

/* What all products of the computation take at the chip's peak, loops as often as they turn. */
static double busy_s(const Chip *c, const HComp *comp) {
  double s = 0;
  for (int i = 0; i < comp->nodes.n; i++) {
    const HNode *n = comp->nodes.v[i];
    bool matrix;
    if (n->dead) continue;
    if (n->conv) s += (double)n->conv->flops / gpu_peak(c, n->in[0]->dt, n->conv->passes, &matrix);
    double times = n->kind == H_WHILE && n->trip > 0 ? (double)n->trip : 1;
    for (int k = 0; k < n->n_comps; k++) s += times * busy_s(c, n->comps[k]);
  }
  return s;
}

void gpu_unaligned(const Chip *c, GpuUnit *u) {
  u->step_s *= 2;
  u->rate = MIN(u->rate, c->clock * gpu_rate(c, "fit.unaligned"));
}

static bool aligned(const HNode *n) {
  return !n->rank || fmod((double)n->d[n->rank - 1] * hlo_bits(n->dt), 128) == 0;
}

/* A product whose rows are not aligned: XLA has operands of 16 bits padded, and what is too much of
 * the result cut off, unless a kernel of its own is faster; others take what they are given. How many
 * rows there are does not matter to a kernel (XLA, cublas_pad_for_gemms.cc: only what Triton does not
 * try is padded). */
static void unaligned(const Schedule *p, const HNode *n, const GpuUnit *u, GpuProduct *out) {
  const HConv *v = n->conv;
  const Chip *c = p->chip;
  bool half = hlo_bits(n->in[0]->dt) == 16;
  double m = (double)v->m, nn = (double)v->n, k = (double)v->k, b = (double)v->batch;
  double size = (double)hlo_bits(n->in[0]->dt) / 8;
  GpuUnit slow = *u;
  slow.step_s *= 2;
  if (!p->opts->eager) slow.fill_s = gpu_rate(c, "fit.made_fill");
  const char *rate = half && !p->opts->eager ? "fit.unaligned_made" : "fit.unaligned";
  slow.rate = MIN(u->rate, c->clock * gpu_rate(c, rate));
  double asis = gpu_waves_s(c, &slow, b, m, nn, k, size);
  out->s = asis;
  if (!half || p->opts->eager) return;
  bool odd_m = v->m % 8 != 0, odd_n = v->n % 8 != 0, odd_k = v->k % 8 != 0;
  double bytes = 0, kernels = 0;
  if (odd_m || odd_k) bytes += hlo_bytes(n->in[0]), kernels++;
  if (odd_n || odd_k) bytes += hlo_bytes(n->in[1]), kernels++;
  if (odd_m || odd_n) bytes += hlo_bytes(n), kernels++;
  double bw = c->hbm_bandwidth * gpu_rate(c, "fit.stream");
  double beside = 2 * bytes / bw + kernels * gpu_rate(c, "fit.launch");
  double padded = gpu_waves_s(c, u, b, ceil(m / 8) * 8, ceil(nn / 8) * 8, ceil(k / 8) * 8, size);
  if (padded + beside >= asis) return;
  out->s = padded;
  out->beside_s = beside;
  out->beside_bytes = 2 * bytes;
}

/* 8-bit kernels want both operands with the contracted dimension last. */
static void turned(const Chip *c, const HNode *n, GpuProduct *out) {
  const char *roles[] = {n->conv->lhs, n->conv->rhs};
  for (int i = 0; i < 2; i++) {
    const HNode *x = n->in[i];
    if (!x->rank || roles[i][x->rank - 1] == 'k') continue;
    double bytes = 2 * hlo_bytes(x);
    out->beside_bytes += bytes;
    out->beside_s +=
        bytes / (c->hbm_bandwidth * gpu_rate(c, "fit.stream")) + gpu_rate(c, "fit.launch");
  }
}

GpuProduct gpu_product(const Schedule *p, const HNode *x) {
  const HConv *v = x->conv;
  GpuProduct out = gpu_product_of(p->chip);
  int bits = (int)hlo_bits(x->in[0]->dt);
  GpuUnit u = gpu_library(p->chip, x->in[0]->dt, v->passes, &out);
  if (u.power > 0 && p->g->busy_s <= 0) p->g->busy_s = busy_s(p->chip, p->g->main);
  u.busy_s = p->g->busy_s;
  if (v->m == 1 || v->n == 1) { /* a matrix and a vector: each row is read once and added up */
    bool matrix;
    double vector = gpu_peak(p->chip, DT_F32, 6, &matrix) * gpu_rate(p->chip, "fit.fp32");
    out.s = (double)v->flops / vector + gpu_rate(p->chip, "fit.made_fill");
    return out;
  }
  bool even = aligned(x->in[0]) && aligned(x->in[1]) && (bits != 16 || aligned(x));
  if (bits == 16 && p->opts->library && v->m % 8 != 0)
    even = false; /* XLA pads these rows too then */
  if (u.matrix && bits >= 16 && !even) {
    unaligned(p, x, &u, &out);
    return out;
  }
  double b = (double)v->batch, m = (double)v->m, n = (double)v->n, k = (double)v->k;
  out.s = gpu_waves_s(p->chip, &u, b, m, n, k, bits / 8.0);
  if (!p->opts->eager) {
    double peak, slower = gpu_rate(p->chip, "fit.made_slower");
    GpuUnit made = gpu_unit(p->chip, x->in[0]->dt, v->passes, &peak);
    made.rate /= slower, made.load /= slower, made.step_s *= slower;
    made.fill_s = gpu_rate(p->chip, "fit.made_fill");
    out.s = MIN(out.s, gpu_waves_s(p->chip, &made, b, m, n, k, bits / 8.0));
  }
  if (u.matrix && bits == 8 && !p->opts->eager) turned(p->chip, x, &out);
  return out;
}
