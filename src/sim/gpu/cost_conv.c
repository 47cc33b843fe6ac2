/* Convolutions on a GPU: products (cost_product.c) of patches that are gathered on the way, which loads
 * them more slowly than rows of matrices; where the features of a place are few, more slowly still.
 * Groups of few features are computed together, as one product with zeros outside of the groups; a
 * feature a group is work for vector units. */
#include <math.h>

#include "ir/build.h"
#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"

#define LINE 64.0   /* bytes of a place; with fewer it loads that much less */
#define TOGETHER 32 /* features of groups that are computed together */

static double places(const HNode *n) {
  double all = 1;
  for (int i = 0; i < n->rank; i++)
    if (n->conv->out[i] == 's') all *= (double)n->d[i];
  return all;
}

/* The gradient of a convolution's weights: the window is an image, perhaps with places between, the
 * result a window. */
bool gpu_weight_gradient(const HNode *n) {
  const HConv *v = n->conv;
  bool apart = false, covers = true, steps = false;
  for (int i = 0, s = 0; i < n->in[0]->rank; i++) {
    if (v->lhs[i] != 's') continue;
    apart |= v->rhs_dil[s] > 1;
    steps |= v->stride[s] > 1 || v->lhs_dil[s] > 1;
    covers &= 2 * ((v->window[s] - 1) * v->rhs_dil[s] + 1) > n->in[0]->d[i];
    s++;
  }
  return !steps && ((double)v->taps > places(n) || (apart && covers));
}

/* Winograd's algorithm, which libraries take for 3x3 windows in steps of one on vector units: how
 * many times less arithmetic, transforms included. */
double gpu_winograd(const Chip *c, const HNode *n) {
  const HConv *v = n->conv;
  bool gradient = gpu_weight_gradient(n);
  int64_t features = gradient ? v->m / 9 : v->k;
  if (!v->is_conv || v->n_spatial != 2 || v->groups > 1 || MIN(features, v->n) < 16) return 1;
  for (int i = 0, s = 0; i < n->rank; i++) {
    if (v->out[i] != 's') continue;
    if ((gradient ? n->d[i] : v->window[s]) != 3 || v->stride[s] != 1 || v->lhs_dil[s] != 1 ||
        v->rhs_dil[s] != 1)
      return 1;
    s++;
  }
  return gpu_rate(c, "fit.winograd");
}

/* The gradient of a convolution's image: its window is turned around. */
bool gpu_backwards(const HNode *n) {
  if (!n->src || n->src->kind != OP_CONVOLUTION) return false;
  const Op *window = n->src->operands[1]->def;
  return (window && window->kind == OP_REVERSE) || b_conv_dims(n->src).reversal[0];
}

/* Patches of one place, next to each other. */
static bool plain(const HNode *n, bool gradient) {
  const HConv *v = n->conv;
  if (gradient ? places(n) > 1 : v->taps > 1) return false;
  for (int i = 0; i < v->n_spatial; i++)
    if (v->stride[i] > 1 || v->lhs_dil[i] > 1 || (gradient && v->rhs_dil[i] > 1)) return false;
  return true;
}

/* Windows of one place at a stride: what they skip is not read. */
static double moved(const HNode *n, bool gradient) {
  const HConv *v = n->conv;
  if (gradient ? places(n) > 1 : v->taps > 1) return 1;
  double read = 1, image = hlo_bytes(n->in[0]);
  for (int i = 0; i < v->n_spatial; i++)
    read /= (double)MAX(1, gradient ? v->rhs_dil[i] : v->stride[i]);
  return 1 - (1 - read) * image / (image + hlo_bytes(n->in[1]) + hlo_bytes(n));
}

/* Kernels before and after: f32 operands and results turned for matrix units on generations where
 * XLA and the frameworks have features first in memory; images of few features padded. */
static void beside(const Schedule *p, const HNode *n, bool matrix, double few, GpuProduct *out) {
  const Chip *c = p->chip;
  if (matrix && n->in[0]->dt == DT_F32) {
    double all = hlo_bytes(n->in[0]) + hlo_bytes(n->in[1]) + hlo_bytes(n);
    out->beside_bytes += 2 * all * chip_num(c, "turned_convolutions", 0);
  }
  out->beside_bytes += few;
  out->beside_s = out->beside_bytes / (c->hbm_bandwidth * gpu_rate(c, "fit.stream"));
}

/* Features in tiles of 128 bytes, unless they are a few. */
static double whole_tiles(double features, double size) {
  double tile = 2 * LINE / size;
  return features * size < LINE ? features : ceil(features / tile) * tile;
}

GpuProduct gpu_conv(const Schedule *p, const HNode *n) {
  const HConv *v = n->conv;
  const Chip *c = p->chip;
  GpuProduct out = gpu_product_of(c);
  GpuUnit u = gpu_unit(c, n->in[0]->dt, v->passes, &out.peak);
  bool gradient = gpu_weight_gradient(n), wide = hlo_bits(n->in[0]->dt) >= 32;
  double size = (double)hlo_bits(n->in[0]->dt) / 8, piece = 16 / size, groups = (double)v->groups;
  double m = (double)v->m, k = (double)v->k, results = (double)v->n / groups;
  double features = gradient ? m / places(n) : k;
  out.moved = moved(n, gradient);
  if (groups > 1 && features < 4 && results < 4) {
    out.peak = gpu_peak(c, DT_F32, 6, &u.matrix);
    out.s = 2 * m * (double)v->n * k * (double)v->taps /
            (out.peak * gpu_rate(c, gpu_backwards(n) ? "fit.depthwise_back" : "fit.depthwise") /
             (wide ? 2 : 1));
    return out;
  }
  double few = 0, together = MAX(1, MIN(groups, floor(TOGETHER / MAX(features, results))));
  if (u.matrix) {
    double image = gradient || k < results ? hlo_bytes(n->in[0]) : hlo_bytes(n);
    double f = features * together, r = results * together, least = MIN(f, r);
    if (least < piece) few = 3 * image / least * piece; /* written, cleared before, read */
    features = ceil(f / piece) * piece;
    results = ceil(r / piece) * piece;
    if (gradient && groups <= 1 && !plain(n, gradient)) /* tiles are of one place */
      features = whole_tiles(features, size), results = whole_tiles(results, size);
    groups = ceil(groups / together);
  }
  if (gradient) m = features * places(n);
  else k = features;
  k *= (double)v->taps;
  double apart = 1; /* the zeros between a gradient's places are not multiplied */
  for (int i = 0; i < v->n_spatial; i++) apart *= (double)MAX(1, v->lhs_dil[i]);
  if (u.matrix && gradient && wide) u.rate *= gpu_rate(c, "fit.turned");
  if (!u.matrix) {
    u.rate *= gpu_rate(c, "fit.conv_vector") * gpu_winograd(c, n);
  } else if (!plain(n, gradient)) {
    u.load = c->clock * gpu_rate(c, "fit.gather");
    if (gradient) u.load *= gpu_rate(c, wide ? "fit.conv_turned_32" : "fit.conv_turned_16");
    u.load *= MIN(1, features * size / LINE);
    if (apart > 1) u.load *= gpu_rate(c, "fit.gather_strided");
    u.fill_s += gpu_rate(c, "fit.conv_fill");
    u.split_s = gpu_rate(c, "fit.conv_split");
  }
  out.s = gpu_waves_s(c, &u, groups, m, results, k / apart, size);
  beside(p, n, u.matrix, few, &out);
  return out;
}
