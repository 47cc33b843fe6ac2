/* The arithmetic of one product or convolution on a GPU: waves of output tiles over the SMs, each
 * 2 tm tn K / (peak x efficiency) and a fill. A convolution is the product of its patches: gathered
 * on the way, or written in another layout before, or with fewer multiplications. */
#include <math.h>

#include "sim/cost/gpu.h"

typedef struct Tile {
  int m, n;
} Tile;
static const Tile tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64},
                             {64, 128},  {64, 64},   {32, 64},   {64, 32},  {32, 32},  {8, 64},
                             {64, 8},    {1, 64},    {64, 1}}; /* the last: a matrix and a vector */

/* A wave of tiles fills its pipeline from memory and writes its results: two latencies and a store,
 * about 1.5 us on every generation. Convolutions gather their operand on the way, which costs a
 * third (chosen by leaving out one published run at a time). */
#define WAVE 1.5e-6
#define IMPLICIT 0.65
#define IMPLICIT_VECTOR 0.83 /* on vector units, which wait less */
/* Groups of few features are computed together, as one product with zeros outside of the groups. */
#define GROUP 32.0
#define LINE 128.0 /* bytes that memory moves at least */

double gpu_peak(const Chip *c, DType a, int passes, bool *matrix) {
  *matrix = true;
  double half = chip_num(c, "peak_bf16", chip_num(c, "peak_fp16", 0)),
         f32 = chip_num(c, "peak_fp32", 1e12);
  double dev = c->devices_per_chip;
  const char *num = chip_text(c, "numerics");
  switch (a) {
  case DT_BF16:
    if (num && !strcmp(num, "fp16-tc")) break; /* no bf16 units: computed as f32 */
    return half > 0 ? half / dev : f32 / dev;
  case DT_F16: return chip_num(c, "peak_fp16", half > 0 ? half : f32) / dev;
  case DT_F32:
    if (passes <= 1 && chip_num(c, "peak_tf32", 0) > 0) return chip_num(c, "peak_tf32", f32) / dev;
    break;
  case DT_F64:
    *matrix = false;
    return chip_num(c, "peak_fp64_tc", chip_num(c, "peak_fp64", f32 / 32)) / dev;
  case DT_I8:
  case DT_U8: return chip_num(c, "peak_int8", f32) / dev;
  case DT_F8E4M3FN:
  case DT_F8E5M2:
    if (chip_num(c, "peak_fp8", half) <= 0) break;
    return chip_num(c, "peak_fp8", half) / dev;
  default: break;
  }
  *matrix = false;
  return f32 / dev;
}

/* The gradient of a convolution's weights: the window is an image, the result a window. */
static bool weight_gradient(const HNode *n) {
  int64_t pixels = 1;
  for (int i = 0; i < n->rank; i++)
    if (n->conv->out[i] == 's') pixels *= n->d[i];
  return n->conv->is_conv && n->conv->taps > pixels;
}

/* Winograd's algorithm, which libraries take for 3x3 windows in steps of one on vector units: how
 * many times less arithmetic, transforms included. */
static double winograd(const Chip *c, const HNode *n) {
  const HConv *v = n->conv;
  bool gradient = weight_gradient(n);
  int64_t features = gradient ? v->m / 9 : v->k;
  if (!v->is_conv || v->n_spatial != 2 || v->groups > 1 || MIN(features, v->n) < 16) return 1;
  for (int i = 0, s = 0; i < n->rank; i++) {
    if (v->out[i] != 's') continue;
    if ((gradient ? n->d[i] : v->window[s]) != 3 || v->stride[s] != 1 || v->lhs_dil[s] != 1 ||
        v->rhs_dil[s] != 1)
      return 1;
    s++;
  }
  return chip_num(c, "fit.winograd", 1);
}

/* The best over the tiles: whole waves, small tiles that read their operands more often, few tiles
 * that share the sum. */
static double waves_s(double m, double n, double k, double batch, double sms, double peak) {
  double best = 1e300;
  for (int i = 0; i < COUNT_OF(tiles); i++) {
    double tm = tiles[i].m, tn = tiles[i].n;
    double count = ceil(m / tm) * ceil(n / tn) * batch, split = 1;
    if (count < sms && k >= 2048) split = MAX(1, MIN(floor(sms / count), floor(k / 1024)));
    double waves = ceil(count * split / sms);
    double small = tm * tn >= 128 * 128  ? 1
                   : tm * tn >= 128 * 64 ? 1.15
                   : tm * tn >= 64 * 64  ? 1.4
                                         : 2.0;
    double padded = ceil(k / split / 32) * 32;
    best = MIN(best, waves * (sms * tm * tn * padded * 2 / peak * small + WAVE));
  }
  return best;
}

double gpu_product_s(const Chip *c, const HNode *n, double *peak) {
  const HConv *v = n->conv;
  bool matrix;
  *peak = gpu_peak(c, n->in[0]->dt, v->passes, &matrix);
  double k = (double)v->k;
  if (v->groups > 1 && v->k < 4) { /* a feature or two a group: no work for matrix units */
    *peak = gpu_peak(c, DT_F32, 6, &matrix);
    matrix = false;
  } else if (v->groups > 1 && !weight_gradient(n)) {
    k = MAX(k, GROUP);
  } else if (matrix && !weight_gradient(n)) { /* features come in pieces of 16 bytes */
    double piece = 128 / hlo_bits(n->in[0]->dt);
    k = ceil(k / piece) * piece;
  }
  k *= (double)v->taps;
  for (int i = 0; i < v->n_spatial; i++) /* the zeros of a strided gradient are not multiplied */
    k /= (double)MAX(1, v->lhs_dil[i]);
  double rate = *peak * (matrix ? chip_num(c, "fit.matmul", 0.75) : chip_num(c, "fit.fp32", 0.75));
  if (v->is_conv) rate *= matrix ? IMPLICIT : IMPLICIT_VECTOR * winograd(c, n);
  return waves_s((double)v->m, (double)v->n, k, (double)v->batch,
                 chip_num(c, "sms", 80) / c->devices_per_chip, rate);
}

double gpu_line_share(const HNode *n) {
  const HConv *v = n->conv;
  if (v->groups <= 1 || v->k < 4) return 1;
  return MIN(1, (double)v->k * hlo_bits(n->in[0]->dt) / 8 / LINE);
}

double gpu_turned_bytes(const Chip *c, const Kernel *k) {
  const HNode *n = k->conv;
  bool matrix;
  gpu_peak(c, n->in[0]->dt, n->conv->passes, &matrix);
  if (!n->conv->is_conv || n->in[0]->dt != DT_F32 || !matrix) return 0;
  double bytes = hlo_bytes(n->in[0]) + hlo_bytes(n->in[1]) + hlo_bytes(n);
  return 2 * bytes * chip_num(c, "turned_convolutions", 0);
}
