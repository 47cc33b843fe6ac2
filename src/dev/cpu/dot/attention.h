/* weft.attention and its gradients: the scores of a few queries and keys at a time, in a tile that stays in the first
 * cache. A tile has a row for each key and a vector or two of queries across, so that a row of scores is a lane: its greatest
 * score and its sum need no step from lane to lane, and every product reads tiles as they are (gemm.h, GemmPanelFn).
 *
 * A task is some queries of a head (gradients: some keys), whatever the threads; what several tasks add up has a place for
 * each and is summed in order. */
#ifndef WEFT_DEV_CPU_ATTENTION_H
#define WEFT_DEV_CPU_ATTENTION_H

#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/kernel.h"

#define ATTENTION_KEYS 120  /* of a tile, an even number */
#define ATTENTION_ACROSS 32 /* queries of a tile, at most */

/* A bias or a mask; strides of the dimensions of the scores. */
typedef struct AttentionExtra {
  const char *at; /* NULL: there is none */
  DType type;
  int64_t b, h, g, m, n;
} AttentionExtra;

typedef struct Attention {
  const GemmKernels *kern;     /* NULL: plain loops */
  bool pairs;                  /* products of bf16 in pairs; else of floats */
  int64_t across;              /* queries of a tile */
  int64_t b, h, g, m, n, d, e; /* b: of all heads, h of each batch */
  int64_t panels;              /* tiles across all queries of a head */
  int64_t kd, ke;              /* floats of a row of d, of e elements: half as many pairs */
  float scale, fill;
  int64_t lo, hi; /* of the band */
  AttentionExtra bias, mask;
  DType type; /* of the results */
  DType types[3];
  const char *q, *k, *v;
  float *keys,
      *values; /* all of them, as rows: [b][n][kd or ke]. What is not so already is copied */
  float *keys_in,
      *values_in; /* as what is summed over: with pairs, [b][n / 2][d or e], of two rows each; else the same */
  void *copies[4];
} Attention;

/* Which queries and keys a tile has; columns of it beyond m are of no query. */
typedef struct AttentionTile {
  int64_t b, g, m0, m, n0, n;
} AttentionTile;

Attention attention_of(const Op *op, void *const *in);
void attention_done(Attention *a);
static inline int64_t attention_pairs(const Attention *a, int64_t n) {
  return a->pairs ? (n + 1) / 2 : n;
}

/* Columns that products fill: one vector where two are not needed. */
static inline int64_t attention_columns(const Attention *a, const AttentionTile *t) {
  return 2 * t->m <= a->across ? a->across / 2 : a->across;
}
static inline void attention_floats(DType t, const void *x, float *out, int64_t n) {
  if (t == DT_F32) memcpy(out, x, sizeof *out * (size_t)n);
  else cpu_to_f32(t, x, out, n);
}
static inline void attention_put(DType t, const float *x, void *out, int64_t n) {
  if (t == DT_F32) memcpy(out, x, sizeof *x * (size_t)n);
  else cpu_from_f32(t, x, out, n);
}

/* c[rows][columns] (+)= sum over k of a b: element (i, p) of a at i * at->a_row + p * at->a_k. */
void attention_product(const Attention *a, const GemmAt *at, int64_t rows, int64_t columns,
                       int64_t k, const float *x, const float *y, float *c, bool add);
/* n rows from `first` on of x, [..][width], some beyond the last one: turned, [width or half of it][across]. */
void attention_turn(const Attention *a, DType t, const char *x, int64_t n, int64_t width,
                    float *out);
/* As what is summed over rows: floats [n][width], or pairs [n / 2][width]. */
void attention_rows_in(const Attention *a, DType t, const char *x, int64_t n, int64_t width,
                       float *out);
/* A tile's elements as bf16, a row's one after the other. */
void attention_narrow(const Attention *a, int64_t n, const float *tile, float *out);
/* Keys of a tile times its queries, [n][across]; nothing but the product. */
void attention_scores(const Attention *a, const AttentionTile *t, const float *turned, float *s);
/* Scaled, biased and masked. */
void attention_finish_scores(const Attention *a, const AttentionTile *t, float *s);
bool attention_sees(const Attention *a, const AttentionTile *t); /* anything in its band */
/* Zeros where the mask is false. */
void attention_hide(const Attention *a, const AttentionTile *t, float *s);

/* ---- loops over a tile (attention_tiles.c) ---- */

/* The greatest scores so far and sums of exponentials go on; s becomes exponentials, *again what is behind shrinks by. */
bool attention_soften(int64_t n, int64_t across, float *s, float *most, float *sum, float *again);
/* s becomes weights, of what stats have of a row. */
void attention_weights(int64_t n, int64_t across, float *s, const float *most, const float *part);
/* dp becomes p (dp - mean) scale. */
void attention_slopes(int64_t n, int64_t across, const float *p, float *dp, const float *mean,
                      float scale);
void attention_scale(int64_t n, float *x, float by);

/* [b g m e] of o and the rest of the gradients' operands. */
Err *attention_grad_run(void *state, const Op *op, void *const *in, void *const *out);

#endif
