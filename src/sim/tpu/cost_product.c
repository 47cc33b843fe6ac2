/* Products and convolutions on a TPU in the terms of tiling.c. */
#include <math.h>
#include <stdlib.h>

#include "sim/tpu/cost.h"
#include "sim/tpu/tpu.h"

#define UNPACK 6 /* vector operations to take bits of a register's elements out of their words */

enum { LHS, RHS, EPILOGUE };

typedef struct Product { /* a kernel's product, as its operands and its result lie */
  Kernel *k;
  const HNode *cv;
  const HConv *c;
  int *side;         /* of each value read: what of the product it feeds */
  int *again;        /* the same, the second operand first: others where both are made of it */
  const HValue *out; /* the stored value as large as the product; or NULL */
  bool swap;         /* rhs streams and lhs stays in the array */
  bool gradient;     /* of filters: the window is the image; contracted positions may be split */
  double pixels;     /* of a convolution's result; 1 of other products */
} Product;

/* Finds which operand the stored values under n feed. */
static void feeds(const Kernel *k, HNode *n, int side, int *who, int stamp) {
  if (n->visit == stamp) return; /* shared subexpressions: each node once */
  n->visit = stamp;
  HValue *const *seen = k->reads.v;
  for (int i = 0; i < k->reads.n; i++)
    if (seen[i]->node == n || (seen[i]->alias && seen[i]->alias->node == n)) {
      if (who[i] == EPILOGUE) who[i] = side;
      if (seen[i]->node == n) return;
    }
  if (n->val && n != k->conv->in[side]) {
    bool inner = false;
    for (int i = 0; i < k->inner.n && !inner; i++) inner = k->inner.v[i] == n;
    if (!inner) {
      for (int i = 0; i < k->reads.n; i++) /* a relayout stands in for the value itself */
        if (seen[i]->node->op == OP_COPY && seen[i]->node->n_in == 1 && seen[i]->node->in[0] == n &&
            who[i] == EPILOGUE)
          who[i] = side;
      return;
    }
  }
  for (int i = 0; i < n->n_in; i++) feeds(k, n->in[i], side, who, stamp);
}

/* The first value read that is as large as the operand which it feeds; or NULL. */
static const HValue *operand(const Product *p, int side) {
  const HNode *x = p->cv->in[side];
  for (int i = 0; i < p->k->reads.n; i++) {
    const HValue *v = p->k->reads.v[i];
    if (p->side[i] == side && v->node->rank == x->rank && hlo_count(v->node) == hlo_count(x))
      return v;
  }
  return NULL;
}

/* An operand in another order than its maker's. */
static bool relaid_operand(const HNode *cv, const HValue *v) {
  return v->node->op == OP_COPY && v->node->n_in == 1 &&
         (v->node->in[0] == cv->in[0] || v->node->in[0] == cv->in[1]);
}

/* One filter a channel: forwards and towards the input (one input feature a group), or the gradient
 * of the filters (as many groups as output features). */
static bool depthwise(const HConv *c) { return c->is_conv && c->groups > 1 && c->groups == c->n; }

/* Pixels of a convolution's result; 1 of other products. */
static double positions(const HNode *cv) {
  double n = 1;
  for (int i = 0; i < cv->rank; i++)
    if (cv->conv->out[i] == 's') n *= (double)cv->d[i];
  return n;
}

/* Registers that a depthwise convolution multiplies and adds up: each of the result's for each tap, with channels in lanes
 * and images in sublanes wherever they lie. A gradient of the filters adds each of the image's once for each of its
 * few outputs, of which a quarter shows where values stay in VMEM. */
static double depthwise_work(const CostParams *params, const Product *p) {
  const HNode *cv = p->cv;
  const HConv *c = p->c;
  const Kernel *k = p->k;
  double taps = (double)c->taps;
  if (p->pixels >= taps || c->k == 1) {
    for (int i = 0; i < c->n_spatial; i++) taps /= sqrt((double)MAX(1, c->lhs_dil[i]));
    return p->pixels * ceil((double)c->m / p->pixels / 8) * ceil((double)c->n / 128) *
           (taps * params->dw + params->dw_out);
  }
  double in = (double)hlo_count(cv->in[1]) / 1024;
  for (int i = 0; i < k->reads.n; i++)
    if (hlo_count(k->reads.v[i]->node) == hlo_count(cv->in[1])) in = MAX(in, k->reads.v[i]->tiles);
  return in * p->pixels * (params->fast > 0 ? 0.25 : 0.7) * params->dw;
}

/* The size of the contracted dimension that lies in lanes of the streamed operand, when it is one
 * of several: its multiples cannot share the array. 0 otherwise. */
static double lane_contracted(const Product *p) {
  const HConv *c = p->c;
  const HNode *x = p->cv->in[LHS];
  int dims = 0;
  for (const char *q = c->lhs; *q; q++) dims += *q == 'k';
  if (c->is_conv || dims < 2) return 0;
  const HValue *v = operand(p, LHS);
  int lane = v ? v->order[0] : 0;
  return v && c->lhs[lane] == 'k' && v->node->d[lane] == x->d[lane] ? (double)x->d[lane] : 0;
}

/* Do the filter's output features lie in lanes, as on the way forwards? */
static bool features_in_lanes(const Product *p) {
  const HValue *v = operand(p, RHS);
  return v && p->c->rhs[v->order[0]] == 'n';
}

double tpu_passes(const HNode *n) {
  DType t = n->in[0]->dt;
  bool complex = dtype_is_complex(t), pairs = dtype_bits(t) == (complex ? 128 : 64);
  return n->conv->passes * (pairs ? 3 : 1) * (complex ? 3 : 1);
}

/* How often a convolution takes each element of its input. */
static double taps_moved(const HConv *c) {
  double t = (double)c->taps;
  for (int i = 0; i < c->n_spatial; i++) t /= (double)MAX(1, c->lhs_dil[i] * c->stride[i]);
  return MAX(1, t);
}

/* A product that meets a softmax's exponentials in its epilogue: so many times the array's own time,
 * wherever they lie; its own time where all fits in one window. */
static double beside_scores(const CostParams *params, const HNode *n, const HValue *scores) {
  const HConv *c = n->conv;
  double S = params->side, mx = (double)c->batch * round_up((double)c->m, 8) *
                                round_up((double)c->n, S) * round_up((double)c->k, S) *
                                tpu_passes(n) / params->macs;
  bool one = 3 * scores->bytes <= params->scoped;
  return params->base0 + mx * (one ? 1.1 : params->scores_mx);
}

/* Which operand streams past the array: the result's lanes are the side that stays. */
static bool swapped(const Product *p) {
  const HConv *c = p->c;
  if (p->out && p->out->node->rank == p->cv->rank && p->cv->rank >= 1)
    return c->out[p->cv->rank == 1 ? 0 : p->out->order[0]] == 'm';
  return c->n < 128 && c->m > c->n && !c->is_conv;
}

static void product_read(Kernel *k, Product *p) {
  HNode *cv = k->conv;
  int n = k->reads.n;
  p->k = k;
  p->cv = cv;
  p->c = cv->conv;
  p->side = calloc(2 * (size_t)n + 1, sizeof *p->side);
  p->again = p->side + n;
  for (int i = 0; i < 2 * n; i++) p->side[i] = EPILOGUE;
  feeds(k, cv->in[0], LHS, p->side, 4 * cv->id + 1);
  feeds(k, cv->in[1], RHS, p->side, 4 * cv->id + 2);
  feeds(k, cv->in[1], RHS, p->again, 4 * cv->id + 3);
  for (int i = 0; i < k->roots.n; i++)
    if (hlo_count(k->roots.v[i]) == hlo_count(cv) && k->roots.v[i]->val)
      p->out = k->roots.v[i]->val;
  p->pixels = positions(cv);
  p->gradient = p->c->is_conv;
  for (int i = 0; i < p->c->n_spatial; i++) p->gradient &= p->c->window[i] > 3;
  p->gradient &= p->pixels < (double)p->c->taps || p->c->taps == 1;
  p->gradient &= !depthwise(p->c) || p->c->k > 1;
  p->gradient &= !p->c->groups_apart;
  p->swap = swapped(p);
}

static bool spread(const HConv *c) {
  for (int i = 0; i < c->n_spatial; i++)
    if (c->lhs_dil[i] > 1) return true;
  return false;
}

/* Between the elements of an image that is spread out lie holes: neighbouring pixels of the result take
 * other taps, so that none can stream past the same weights. */
static bool pixels_apart(const Product *p) {
  return spread(p->c) && !p->gradient && !p->swap && p->c->groups == 1 && !p->c->groups_apart;
}

/* Do filters stream past the images of one pixel at a time, whose results come to lie in lanes? So they
 * do where images lie in sublanes; in lanes, unless so few features are contracted that several taps
 * share the array; and where an array of 256 hides that they are turned on the way. */
static bool images_stay(const CostParams *params, const Product *p) {
  const HConv *c = p->c;
  const HValue *v = operand(p, LHS);
  if (!params->prefetch || !p->swap || p->gradient || spread(c) || c->groups > 1 || !v ||
      v->node->rank < 3)
    return false;
  bool wide = params->side > 128;
  if (c->lhs[v->order[0]] == 'm') return c->k > 32 && (!wide || c->k <= 128);
  return c->lhs[v->order[0]] == 'k' && (c->lhs[v->order[1]] == 'm' || (wide && c->taps > 1));
}

/* Images that lie in lanes are laid down in sublanes for the gradient of a filter, where the array is
 * large and the features to stream are enough. */
static bool laid_down(const CostParams *params, const Product *p) {
  return params->side > 128 && !p->swap && (double)p->c->m / p->pixels >= 8;
}

/* Images that stay: those of each pixel are a tile of weights for each tap, or for several that follow
 * each other where as many features come out as go in. */
static void staying_images(const CostParams *params, const Product *p, bool lanes, double taps,
                           ProductShape *s) {
  double S = params->side, kk = (double)p->c->k, images = (double)p->c->m / p->pixels;
  bool packed = lanes && (double)p->c->n >= kk;
  s->n = p->pixels;
  s->n *= lanes ? ceil(images / 128) : ceil(images / (kk <= 128 ? S : 128)) * (S / 128);
  s->k = (packed ? ceil(taps * kk / S) : kk <= 128 ? taps : ceil(taps * kk / 128)) * (S / 128);
  if (!packed) s->load = S > 128 && lanes ? s->load * MIN(1, kk / 128) : 8;
}

/* What cutting the images of a filter's gradient into parts costs: see ProductShape. */
static void image_parts(const Product *p, const HValue *images, ProductShape *s) {
  const HConv *c = p->c;
  double unit = images && c->lhs[images->order[0]] == 'k' ? 128 : 8;
  s->whole_parts = ceil((double)c->k / unit);
  s->image_right = p->swap;
  s->wide[0] = s->wide[1] = 1;
  for (int i = 0, at = MAX(0, 2 - c->n_spatial); i < c->n_spatial && at < 2; i++, at++)
    s->wide[at] = (double)c->window[i];
  double reach = sqrt(p->pixels) - 1; /* of the filter: as far along both sides */
  s->halo[0] = s->wide[0] > 1 ? reach : 0;
  s->halo[1] = s->wide[1] > 1 ? reach : 0;
}

#define TURNED_ROWS 8 /* times a register of images in sublanes, made of one with images in lanes */

/* Groups of one result each: every tap of every position is a product of its own that fills half of an
 * array of 256, one register high: of features with images in lanes, or of images. */
static void one_result(const CostParams *params, const Product *p, double taps, ProductShape *s) {
  const HConv *c = p->c;
  const HValue *v = operand(p, LHS);
  double images = (double)c->m / p->pixels;
  bool lanes = p->cv->lies && c->out[p->cv->lies[0]] == 'm',
       turned = !lanes && c->k > 2 && v && c->lhs[v->order[0]] == 'm';
  s->batch = p->pixels * 128 / params->side;
  s->m = lanes ? 1 : ceil(images / 8) * (turned ? TURNED_ROWS : 1);
  s->n = (lanes ? ceil(images / 128) : 1) * (params->side / 128);
  s->k = taps * ceil((double)c->k / 128) * (params->side / 128);
  s->k_splits = 1;
  s->load = 8;
}

/* The tiles of a convolution's contracted side, and what loading them takes. Rows are counted in the
 * dimension that lies in sublanes: the batch, or the features of a weight gradient. */
static void conv_depth(const CostParams *params, const Product *p, double n, ProductShape *s) {
  const HConv *c = p->c;
  double kk = (double)c->k, taps = (double)c->taps, S = params->side;
  int from = p->swap && p->gradient && params->prefetch ? RHS : LHS;
  const HValue *lv = operand(p, from); /* the operand that streams */
  const char *roles = from == RHS ? c->rhs : c->lhs;
  bool k_lanes = lv && roles[lv->order[0]] == 'k', forwards = features_in_lanes(p);
  bool k_images = from == LHS && lv && roles[lv->order[0]] == 'm';
  for (int i = 0; i < c->n_spatial; i++) taps /= (double)MAX(1, c->lhs_dil[i]);
  double hit = taps; /* of a pixel, on average */
  if (taps < 1) taps = 1;
  /* several taps share the contracted side of the array when one leaves room */
  double unit = k_lanes ? round_up(kk, 128) : round_up(kk, 8);
  double pack = MIN(MAX(1, floor(S / unit)), taps);
  s->k = ceil(taps / pack) * ceil(unit * pack / S) * (S / 128);
  if (p->gradient && (!k_lanes || laid_down(params, p))) /* images in sublanes */
    s->k = round_up(ceil(taps * round_up(kk, 8) / 128), S / 128);
  s->halves =
      k_lanes && forwards && S > 128 && c->groups == 1 && c->taps > 1 && n >= 128 && !p->gradient;
  bool apart = s->halves && (fmod(n, 128) == 0 || kk >= 192);
  if (k_lanes && !p->gradient) {
    double whole = floor(kk / 128), rest = kk - whole * 128; /* lanes */
    s->k = ceil(taps * round_up(kk, 128) / S) * (S / 128);
    if (whole >= 1 && rest > 0 && rest <= 64 && forwards) /* so does what is left */
      s->k =
          MIN(s->k, round_up(whole * taps + ceil(taps / floor(128 / round_up(rest, 8))), S / 128));
    if (apart) { /* taps share the columns of an array, its rows only where a quarter of them is left over */
      double deep = floor(kk / S), left = kk - deep * S;
      s->k = deep * taps;
      if (left > 0) s->k += deep > 0 && left <= 64 ? ceil(taps / 2) : taps;
      s->k *= S / 128;
    }
    if (whole < 1 && forwards && c->groups == 1 && taps == (double)c->taps && c->taps > 1) {
      /* a copy beside it, shifted along the row, fills the lanes that are left */
      double row = (double)c->window[c->n_spatial - 1];
      pack = MAX(1, MIN(row, floor(S / round_up(kk, 8))));
      s->k = MIN(s->k, taps / row * ceil(row / pack) * (S / 128));
    }
  }
  k_images &= kk <= 128;
  if (images_stay(params, p)) staying_images(params, p, k_images, taps, s);
  else if (k_images && p->swap && !params->prefetch && !p->gradient && c->groups == 1 && !spread(c))
    s->k = MIN(s->k, ceil(taps * kk / S));
  if (p->gradient && S > 128 && (double)c->m / p->pixels <= 4) s->load *= 0.45; /* few channels */
  if (p->gradient) s->load = MAX(s->load, params->gload);
  s->k_splits = p->gradient ? s->k : ceil(kk / 128);
  if (p->gradient) image_parts(p, from == RHS ? operand(p, LHS) : lv, s);
  s->batch = 1;
  s->share = c->taps == 1 || (p->gradient && n > S) ? params->share : 0;
  if (c->groups_apart) one_result(params, p, hit, s);
  /* each is a product of its own, with all of its weights; the vector unit adds them up */
  if (pixels_apart(p)) {
    double images = (double)c->m / p->pixels, tile = n > 128 ? S : 128,
           wide = MIN(1, round_up(n, 8) / S);
    double whole = floor(kk / tile), rest = round_up(kk - whole * tile, 8), tiles = ceil(kk / tile);
    double shorter =
        MIN(round_up(n, 8), whole > 0 && S <= 128 ? tile : rest); /* side of the last tile */
    if (rest > 0) s->load = (whole * MIN(round_up(n, 8), tile) + shorter) / tiles / S;
    else s->load = MIN(round_up(n, 8), tile) / S;
    s->load = params->pixel_load * MIN(1, s->load);
    s->batch = ceil(p->pixels * hit);
    s->m = round_up(images * wide, 8) / 8;
    s->k = s->k_splits = tiles * (S / 128);
    s->vin += s->batch * ceil(images / 8) * MAX(0.5, n / 128) * params->pixel_add;
  }
}

/* Do the weights, which stay in the array, lie with what is contracted in lanes? They are turned as they
 * are loaded. */
static bool weights_turned(const Product *p) {
  const HValue *v = operand(p, RHS);
  return v && !p->swap && !p->c->is_conv && v->node->rank > 1 && p->c->rhs[v->order[0]] == 'k';
}

static void product_shape(const Schedule *plan, const Product *p, ProductShape *s) {
  const CostParams *params = plan->params;
  const HConv *c = p->c;
  double m = (double)c->m, n = (double)c->n, kk = (double)c->k, S = params->side;
  if (p->swap) m = (double)c->n, n = (double)c->m;
  if (p->swap && p->gradient && params->fast > 0 && S == 128)
    m *= p->pixels, n /= p->pixels; /* each pixel of the window has rows of its own */
  s->m = round_up(m, 8) / 8;
  s->n = ceil(n / 128);
  s->load = weights_turned(p) ? params->wl_turned : params->wl;
  double deep = kk * (double)c->taps;
  bool part = c->batch > 1 || (n >= 8 && deep >= 8); /* only what holds weights is loaded */
  if (part && !(S > 128 && c->is_conv))
    s->load *= MAX(0.25, MIN(1, MIN(round_up(n, 8), round_up(deep, 8)) / 128));
  if (c->is_conv) {
    conv_depth(params, p, n, s);
  } else {
    s->k = s->k_splits = ceil(kk / 128);
    s->batch = (double)c->batch;
    s->share = params->share;
  }
  double inner = lane_contracted(p);
  if (inner > 0 && inner < S) /* several dimensions are contracted, the one in lanes is short */
    s->k = s->k_splits = ceil(kk / inner) * (S / 128);
  DType dt = p->cv->in[0]->dt;
  s->passes = dt == DT_I8 || dt == DT_U8 ? plan->params->int8 : tpu_passes(p->cv);
  s->out_tiles = (double)hlo_count(p->cv) / 1024;
}

/* Cycles to lay out the operand of a convolution anew within it, where v is that operand. Of images
 * whose batch comes into sublanes the array's work on many taps hides some. */
static double relayout_inside(const CostParams *params, const Product *p, const HValue *v) {
  const HConv *c = p->c;
  const HNode *x = p->cv->in[0];
  if (!c->is_conv || !p->out || !v->is_param || v->node->rank != x->rank || v->node->rank < 2 ||
      hlo_count(v->node) != hlo_count(x) || hlo_bits(v->node->dt) != 16 ||
      p->out->node->rank != p->cv->rank)
    return 0;
  if (params->side > 128 && images_stay(params, p)) return 0;
  char lanes = c->out[p->out->order[0]], sublanes = c->out[p->out->order[1]];
  if (c->lhs[v->order[0]] != 'k' || c->lhs[v->order[1]] != 's') return 0;
  if (lanes == 'm') return v->tiles * params->fturn * MIN(1, taps_moved(c) / 9);
  if (lanes != 'n' || sublanes != 'm') return 0;
  return v->tiles * params->fmove * (p->gradient || c->taps == 1 ? 1 : params->fshown);
}

/* The gradient of a filter of one pixel contracts the batch. Where that lies in lanes on the images' side, and on the other
 * outside of tiles that hold pixels, each pair of tiles of these is moved, by the vector unit beside the array. */
static double batch_moved(const CostParams *params, const Product *p) {
  const HValue *images = operand(p, LHS), *other = operand(p, RHS);
  if (!p->gradient || p->pixels > 1 || laid_down(params, p) || !images || !other ||
      hlo_bits(other->node->dt) != 16)
    return 0;
  bool moved = p->c->lhs[images->order[0]] == 'k' && p->c->rhs[other->order[0]] == 'n' &&
               p->c->rhs[other->order[1]] == 's';
  return moved ? other->tiles / 2 * params->fmove : 0;
}

/* Are the results only added up? The estimate has them packed like narrow results. *scalar: to
 * single numbers, all of them. */
static bool only_sums(const Kernel *k, bool *scalar) {
  bool sums = false;
  *scalar = true;
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v || v->dropped) continue;
    if (hlo_count(k->roots.v[i]) >= hlo_count(k->conv)) return false;
    sums |= k->roots.v[i]->kind == H_REDUCE;
    *scalar &= v->node->rank == 0;
  }
  return sums;
}

/* A result with so few rows that its tiles are lower than registers. */
static bool low_tiles(const HValue *v) {
  const HNode *n = v->node;
  return tpu_width(v) == 4 && n->rank > 1 && n->rank <= 64 && n->d[v->order[1]] <= 4;
}

static void product_moves(const CostParams *params, const Product *p, ProductShape *s) {
  const Kernel *k = p->k;
  for (int i = 0; i < k->reads.n; i++) {
    HValue *v = k->reads.v[i];
    if (tpu_written_into(k, v)) continue;
    int to = p->side[i] == EPILOGUE ? EPILOGUE : p->swap ? 1 - p->side[i] : p->side[i];
    double part = tpu_read_fraction(k, v);
    double cost = tpu_read_cost(params, &params->product, v) * part,
           bytes = tpu_base_bytes(v) * part;
    if (p->side[i] == LHS && p->again[i] == RHS) s->lb += cost, s->bb += bytes;
    if (to == LHS) s->la += cost, s->ba += bytes;
    else if (to == RHS) s->lb += cost, s->bb += bytes;
    else s->le += cost, s->be += bytes;
    if (v->space == SP_VMEM || v->space == SP_CMEM) s->vin += v->tiles * params->vin;
    if (v->packed && !p->gradient) s->vin += v->tiles * v->packed * UNPACK * params->lvpu;
    if (p->side[i] == LHS) s->vin += relayout_inside(params, p, v);
    const HNode *x = p->side[i] == EPILOGUE ? NULL : p->cv->in[p->side[i]];
    if (x && v->node->rank == x->rank && hlo_count(v->node) == hlo_count(x) &&
        tpu_turned_inside(v, p->c, p->side[i] == LHS ? p->c->lhs : p->c->rhs))
      s->vin += v->tiles * params->dmove;
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v || v->dropped) continue;
    double part = tpu_written_part(k->roots.v[i]);
    s->wo += tpu_write_cost(params, &params->product, v) * part;
    if (v->space == SP_HBM) s->bo += v->bytes * part;
  }
  s->wo -= tpu_packed_twice(params, &params->product, k);
  bool scalar;
  if (only_sums(k, &scalar) && (scalar || !params->nopack))
    s->wo += s->out_tiles * (params->product.o[2] - params->product.r[2]);
}

/* What it takes to start depends on where operands and results are. */
static void product_start(const CostParams *params, const Product *p, ProductShape *s) {
  const Kernel *k = p->k;
  bool scalar, far_in = false, hbm = false;
  bool far_out = only_sums(k, &scalar) && (scalar || !params->nopack);
  int streams = 0; /* operands that come from HBM */
  for (int i = 0; i < k->reads.n; i++) {
    HValue *v = k->reads.v[i];
    if ((v->space != SP_HBM && v->space != SP_CMEM) || v->node->rank == 0) continue;
    if (p->side[i] == EPILOGUE && !relaid_operand(p->cv, v)) continue; /* comes in beside it */
    if (p->side[i] != EPILOGUE && v->node->rank == 1 && p->cv->in[p->side[i]]->rank > 1)
      continue; /* repeated there */
    far_in = true;
    hbm |= v->space == SP_HBM;
    streams += v->space == SP_HBM && tpu_read_fraction(k, v) >= 1;
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HValue *v = k->roots.v[i]->val;
    if (!v || v->dropped || v->node->rank == 0) continue;
    if ((v->space == SP_HBM || v->space == SP_CMEM || low_tiles(v) ||
         tpu_pack_cost(&params->product, v) > 0) &&
        v->space != SP_SCALAR && !(v->space == SP_VMEM && params->nopack))
      far_out = true;
  }
  double start = params->base - params->base0 - params->base_out;
  s->base = params->base0;
  if (far_in) s->base += hbm ? start : params->near * start;
  if (far_out) s->base += params->base_out;
  if (weights_turned(p)) s->base += params->turn;
  s->wait = MAX(0, streams - 1) * params->lat;
  s->base += s->wait;
}

#define WIDE_GAPS 4

/* Where a kernel has more places than the image that it goes over (the gradient of images that are cut into
 * large patches), XLA makes the kernel the image and the other way round: each place of the result meets all
 * places of the other one, most of them gaps, with its channels as rows, images as columns. Cycles of the
 * array; 0: not so, or with gaps so narrow that some of them are left out. */
static double exchanged(const CostParams *params, const HNode *n) {
  const HConv *c = n->conv;
  double kernel = 1, image = 1, places = 1;
  bool gaps = false;
  for (int i = 0; i < c->n_spatial; i++) {
    if (c->stride[i] > 1) return 0;
    gaps |= c->lhs_dil[i] >= WIDE_GAPS;
    kernel *= (double)c->window[i];
  }
  if (!c->is_conv || c->groups != 1 || !gaps) return 0;
  for (int i = 0; i < n->in[0]->rank; i++)
    if (c->lhs[i] == 's') image *= (double)n->in[0]->d[i];
  for (int i = 0; i < n->rank; i++)
    if (c->out[i] == 's') places *= (double)n->d[i];
  if (kernel <= image || places < 1) return 0;
  double tiles = ceil((double)c->k / params->side) * ceil((double)c->m / places / params->side);
  return params->exchanged * places * image * (double)c->n * tiles * tpu_passes(n) * params->side *
         params->side / params->macs;
}

void tpu_product(Schedule *plan, Kernel *k) {
  const CostParams *params = plan->params;
  Product p = {0};
  ProductShape s = {0};
  product_read(k, &p);
  product_shape(plan, &p, &s);
  product_moves(params, &p, &s);
  product_start(params, &p, &s);
  double before, work = tpu_vector_work(params, k, &before) * params->cvpu;
  double rows = tpu_turned_rows(k) * params->row;
  /* what the taps of a convolution run over is made first */
  double first =
      p.c->is_conv && p.c->taps > 1 && !p.gradient ? params->made * before * params->cvpu : 0;
  s.vin += first;
  s.vector = work - first + (params->row_beside ? 0 : rows);
  if (work > 0 && (!p.c->is_conv || (p.c->taps == 1 && !p.gradient)))
    s.sums = s.out_tiles * ceil(s.k / (params->side / 128)) * params->sums * params->cvpu;
  s.vector += batch_moved(params, &p);
  if (depthwise(p.c)) { /* on the vector unit, tap by tap */
    s.passes = 0;
    s.vector += depthwise_work(params, &p);
    if (params->side > 128) s.base = params->lbase;
  }
  double array;
  k->cycles = tpu_tiling(params, &s, &array, &k->windows);
  if (params->row_beside && rows > 0) /* while the array works: the longer of both counts */
    k->cycles = MAX(k->cycles, 0.3 * params->base0 + rows + work + array / 4);
  /* the largest of each row is found before, in a pass of its own */
  for (int i = 0; i < k->inner.n && params->scores; i++)
    if (k->inner.v[i]->inlined && k->inner.v[i]->kind == H_REDUCE) k->cycles += params->lbase;
  for (int i = 0; i < k->reads.n && params->scores_mx > 0; i++)
    if (p.side[i] == EPILOGUE && k->reads.v[i]->node->soft &&
        hlo_count(k->reads.v[i]->node) == hlo_count(p.cv))
      k->cycles = beside_scores(params, p.cv, k->reads.v[i]);
  double gaps = exchanged(params, p.cv);
  if (gaps > k->cycles) k->cycles = array = gaps;
  k->parts.start = s.base, k->parts.reads = s.la + s.lb + s.le, k->parts.writes = s.wo;
  k->parts.vector = s.vector + s.vin, k->parts.array = array;
  double share = dtype_is_complex(p.cv->in[0]->dt) ? 3 : 1;
  k->util =
      MIN(1, (double)p.c->flops / share * tpu_passes(p.cv) / 2 / params->macs / MAX(k->cycles, 1));
  k->bound = array > 0.6 * k->cycles        ? SIM_COMPUTE
             : k->cycles < 3 * params->base ? SIM_LATENCY
                                            : SIM_MEMORY;
  free(p.side);
}
