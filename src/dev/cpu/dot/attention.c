/* What attention and its gradients have in common: operands, products, scores of a tile. */
#include "dev/cpu/dot/attention.h"

#include <math.h>

#include "dev/cpu/kernel/clones.h"
#include "ir/build.h"

#define PIECE 64 /* rows that a task copies */

/* ---- operands ---- */

static AttentionExtra extra_of(const Op *op, void *const *in, int i) {
  const Type *t = op->operands[i]->type;
  AttentionExtra x = {.at = in[i], .type = t->dtype};
  int64_t *strides[] = {&x.b, &x.h, &x.g, &x.m, &x.n}, step = 1;
  for (int d = 4; d >= 0; d--) {
    *strides[d] = t->dims[d] > 1 ? step : 0;
    step *= t->dims[d];
  }
  return x;
}

typedef struct Copying {
  const Attention *a;
  DType type;
  const char *from;
  int64_t n, width, to_row; /* rows of a batch; floats of one, in the copy */
  float *to;
} Copying;

static void widen_rows(void *arg, int64_t begin, int64_t end) {
  const Copying *c = arg;
  int64_t count = (end - begin) * c->width;
  cpu_to_f32(c->type, c->from + begin * c->width * dtype_bytes(c->type), c->to + begin * c->width,
             count);
}

static void pair_rows_in(void *arg, int64_t begin, int64_t end) { /* batches and pieces of them */
  const Copying *c = arg;
  int64_t pieces = (c->n + PIECE - 1) / PIECE, each = attention_pairs(c->a, c->n);
  for (int64_t i = begin; i < end; i++) {
    int64_t b = i / pieces, first = i % pieces * PIECE;
    const char *from = c->from + (b * c->n + first) * c->width * 2;
    attention_rows_in(c->a, c->type, from, MIN(PIECE, c->n - first), c->width,
                      c->to + (b * each + first / 2) * c->width);
  }
}

static float *as_floats(const Attention *a, DType t, const char *x, int64_t width, void **copy) {
  if (t == DT_F32 || a->pairs) return (float *)(void *)x;
  Copying c = {a, t, x, a->n, width, width, NULL};
  *copy = c.to = xmalloc(sizeof(float) * (size_t)(a->b * a->n * width + 1));
  cpu_parallel(a->b * a->n, PIECE, widen_rows, &c);
  return c.to;
}

static float *as_pairs(const Attention *a, DType t, const char *x, int64_t width, void **copy) {
  Copying c = {a, t, x, a->n, width, width, NULL};
  *copy = c.to = xmalloc(sizeof(float) * (size_t)(a->b * attention_pairs(a, a->n) * width + 1));
  cpu_parallel(a->b * ((a->n + PIECE - 1) / PIECE), 1, pair_rows_in, &c);
  return c.to;
}

Attention attention_of(const Op *op, void *const *in) {
  const Type *q = op->operands[0]->type, *k = op->operands[1]->type, *v = op->operands[2]->type;
  AttentionDims d = b_attention_dims(op);
  Attention a = {.b = d.b,
                 .h = d.h,
                 .g = d.g,
                 .m = d.m,
                 .n = d.n,
                 .d = d.d,
                 .e = d.e,
                 .scale = (float)d.scale,
                 .fill = (float)d.fill,
                 .lo = d.lo,
                 .hi = d.hi,
                 .type = v->dtype,
                 .types = {q->dtype, k->dtype, v->dtype},
                 .q = in[0],
                 .k = in[1],
                 .v = in[2]};
  if (d.bias) a.bias = extra_of(op, in, d.bias);
  if (d.mask) a.mask = extra_of(op, in, d.mask);
  bool narrow = q->dtype == DT_BF16 && k->dtype == DT_BF16 && v->dtype == DT_BF16;
  a.pairs = narrow && a.d % 2 == 0 && a.e % 2 == 0 && gemm_pairs();
  a.kern = a.pairs ? gemm_pairs() : gemm_kernels();
  a.across = a.kern ? 2 * a.kern->lanes : 16;
  a.panels = (a.m + a.across - 1) / a.across;
  a.kd = a.pairs ? a.d / 2 : a.d;
  a.ke = a.pairs ? a.e / 2 : a.e;
  a.keys = a.keys_in = as_floats(&a, k->dtype, a.k, a.d, &a.copies[0]);
  a.values = a.values_in = as_floats(&a, v->dtype, a.v, a.e, &a.copies[1]);
  if (a.pairs) a.values_in = as_pairs(&a, v->dtype, a.v, a.e, &a.copies[2]);
  if (a.pairs && op->kind == OP_ATTENTION_GRAD)
    a.keys_in = as_pairs(&a, k->dtype, a.k, a.d, &a.copies[3]);
  return a;
}

void attention_done(Attention *a) {
  for (int i = 0; i < COUNT_OF(a->copies); i++) free(a->copies[i]);
}

/* ---- other orders ---- */

CLONES static void turn(int64_t rows, int64_t width, int64_t across, const uint32_t *x,
                        uint32_t *out) {
  for (int64_t k = 0; k < width; k++) {
    for (int64_t i = 0; i < rows; i++) out[k * across + i] = x[i * width + k];
    for (int64_t i = rows; i < across; i++) out[k * across + i] = 0;
  }
}

void attention_turn(const Attention *a, DType t, const char *x, int64_t n, int64_t width,
                    float *out) {
  const float *from = (const float *)(const void *)x;
  float *wide = NULL;
  if (!a->pairs && t != DT_F32) {
    from = wide = xmalloc(sizeof *wide * (size_t)(n * width + 1));
    cpu_to_f32(t, x, wide, n * width);
  }
  turn(n, a->pairs ? width / 2 : width, a->across, (const uint32_t *)(const void *)from,
       (uint32_t *)(void *)out);
  free(wide);
}

CLONES static void pair_two(int64_t n, const uint16_t *x, const uint16_t *y, uint32_t *out) {
  IVDEP for (int64_t i = 0; i < n; i++) out[i] = x[i] | (uint32_t)y[i] << 16;
}

CLONES static void pair_one(int64_t n, const uint16_t *x, uint32_t *out) {
  IVDEP for (int64_t i = 0; i < n; i++) out[i] = x[i];
}

void attention_rows_in(const Attention *a, DType t, const char *x, int64_t n, int64_t width,
                       float *out) {
  if (!a->pairs) {
    attention_floats(t, x, out, n * width);
    return;
  }
  const uint16_t *from = (const uint16_t *)(const void *)x;
  uint32_t *to = (uint32_t *)(void *)out;
  for (int64_t i = 0; i < n; i += 2, from += 2 * width, to += width) {
    if (i + 1 < n) pair_two(width, from, from + width, to);
    else pair_one(width, from, to);
  }
}

void attention_narrow(const Attention *a, int64_t n, const float *tile, float *out) {
  if (!a->kern->narrow) cpu_from_f32(DT_BF16, tile, out, n * a->across);
  else a->kern->narrow(tile, a->across, n, a->across, (uint16_t *)(void *)out, a->across);
}

/* ---- products ---- */

CLONES_FUSED static void plain_product(const GemmAt *at, int64_t rows, int64_t columns, int64_t k,
                                       const float *x, const float *y, float *c, bool add) {
  for (int64_t i = 0; i < rows; i++) {
    float *out = c + i * at->c_row;
    for (int64_t j = 0; !add && j < columns; j++) out[j] = 0;
    for (int64_t p = 0; p < k; p++) {
      float a = x[i * at->a_row + p * at->a_k];
      for (int64_t j = 0; j < columns; j++) out[j] += a * y[p * at->b_k + j];
    }
  }
}

void attention_product(const Attention *a, const GemmAt *at, int64_t rows, int64_t columns,
                       int64_t k, const float *x, const float *y, float *c, bool add) {
  const GemmKernels *kern = a->kern;
  if (!kern) {
    plain_product(at, rows, columns, k, x, y, c, add);
    return;
  }
  int64_t panels = (rows + kern->mr - 1) / kern->mr, width = 2 * kern->lanes;
  for (int64_t j = 0; j < columns; j += width) {
    int64_t w = MIN(width, columns - j);
    for (int64_t p = 0, i = 0; p < panels; p++) {
      int64_t mr = rows / panels + (p < rows % panels);
      kern->panel[w > kern->lanes][mr - 1](at, k, x + i * at->a_row, y + j, c + i * at->c_row + j,
                                           w, add);
      i += mr;
    }
  }
}

/* ---- scores ---- */

void attention_scores(const Attention *a, const AttentionTile *t, const float *turned, float *s) {
  GemmAt at = {.a_row = a->kd, .a_k = 1, .b_k = a->across, .c_row = a->across};
  attention_product(a, &at, t->n, attention_columns(a, t), a->kd,
                    a->keys + (t->b * a->n + t->n0) * a->kd, turned, s, false);
}

static const char *extra_at(const Attention *a, const AttentionExtra *x, const AttentionTile *t,
                            int64_t n) {
  int64_t at = t->b / a->h * x->b + t->b % a->h * x->h + t->g * x->g + t->m0 * x->m;
  return x->at + (at + (t->n0 + n) * x->n) * dtype_bytes(x->type);
}

static void add_bias(const Attention *a, const AttentionTile *t, float *s) {
  const AttentionExtra *x = &a->bias;
  for (int64_t i = 0; i < t->n; i++, s += a->across) {
    const char *from = extra_at(a, x, t, i);
    for (int64_t k = 0; k < t->m; k++) {
      float y;
      attention_floats(x->type, from + k * x->m * dtype_bytes(x->type), &y, 1);
      s[k] += y;
    }
  }
}

/* Elements where the mask is false become `fill`. */
static void fill_masked(const Attention *a, const AttentionTile *t, float fill, float *s) {
  for (int64_t i = 0; i < t->n; i++, s += a->across) {
    const char *from = extra_at(a, &a->mask, t, i);
    for (int64_t k = 0; k < t->m; k++) s[k] = from[k * a->mask.m] ? s[k] : fill;
  }
}

static void leave_band(const Attention *a, const AttentionTile *t, float *s) {
  for (int64_t i = 0; i < t->n; i++, s += a->across) {
    int64_t off = t->n0 + i - t->m0; /* less k: of query k */
    for (int64_t k = 0; k < t->m; k++)
      if (off - k < a->lo || off - k >= a->hi) s[k] = -INFINITY;
  }
}

/* Is all of the tile within the band? */
static bool is_inside(const Attention *a, const AttentionTile *t) {
  int64_t least = t->n0 - (t->m0 + t->m - 1), most = t->n0 + t->n - 1 - t->m0;
  return least >= a->lo && most < a->hi;
}

bool attention_sees(const Attention *a, const AttentionTile *t) {
  int64_t least = t->n0 - (t->m0 + t->m - 1), most = t->n0 + t->n - 1 - t->m0;
  return most >= a->lo && least < a->hi;
}

void attention_finish_scores(const Attention *a, const AttentionTile *t, float *s) {
  if (a->scale != 1) attention_scale(t->n * a->across, s, a->scale);
  if (a->bias.at) add_bias(a, t, s);
  if (a->mask.at) fill_masked(a, t, a->fill, s);
  if (!is_inside(a, t)) leave_band(a, t, s);
}

void attention_hide(const Attention *a, const AttentionTile *t, float *s) {
  if (a->mask.at) fill_masked(a, t, 0, s);
}
