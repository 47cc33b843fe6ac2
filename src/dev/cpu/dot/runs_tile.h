/* The innermost kernels of runs.c, for one width of vectors. The includer defines LANES and the
 * macros FN (target attributes), V, V_ZERO, V_SET, V_LOAD, V_STORE, V_ADD, V_FMA, M, V_MASK, V_LOAD_MASK,
 * V_STORE_MASK; and AHEAD where columns that come from the second cache must be asked for, with the
 * rows' next lines and those of the results: so many steps before they are multiplied. */
#include "dev/cpu/dot/runs.h"

#define LINE 16          /* floats */
#define AHEAD_PACKING 32 /* steps: columns that are packed come from beyond the second cache */
#ifndef AHEAD
#define AHEAD 0
#endif

FN static inline __attribute__((always_inline)) void runs_block(int mr, int nv, bool packs,
                                                                const RunsBlock *x,
                                                                const float *const *from,
                                                                const float *b, float *const *to) {
  V sum[RUNS_ROWS][RUNS_VECTORS];
  const M mask = V_MASK(x->last);
  const bool whole = x->last == LANES;
  const int64_t step = packs ? x->b_step : nv * LANES, ahead = packs ? AHEAD_PACKING : AHEAD;
  float *packed = x->to_pack;
#pragma GCC unroll 6
  for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[i][j] = V_ZERO();
  for (int64_t r = 0; r < x->runs; r++, from += x->pitch) {
    const float *a[RUNS_ROWS];
    bool any = false;
#pragma GCC unroll 6
    for (int i = 0; i < mr; i++) any |= from[i] != x->zeros, a[i] = from[i] + x->p0;
    if (!any) {
      b += x->k * step;
      continue;
    }
    for (int64_t p = 0; p < x->k;) {
      if (x->ask)
#pragma GCC unroll 6
        for (int i = 0; i < mr; i++) __builtin_prefetch(from[i + RUNS_ROWS] + x->p0 + p);
      if (AHEAD)
#pragma GCC unroll 6
        for (int i = 0; i < mr; i++) __builtin_prefetch(a[i] + p + LINE);
      if (AHEAD && p < mr * LINE)
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) __builtin_prefetch(to[p / LINE] + x->column + j * LANES, 1);
      for (int64_t line = MIN(p + LINE, x->k); p < line; p++, b += step) {
        V y[RUNS_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) {
          y[j] = V_LOAD(b + j * LANES);
          if (ahead) __builtin_prefetch(b + ahead * step + j * LANES);
          if (packs) V_STORE(packed + j * LANES, y[j]);
        }
        if (packs) packed += nv * LANES;
#pragma GCC unroll 6
        for (int i = 0; i < mr; i++) {
          V s = V_SET(a[i][p]);
#pragma GCC unroll 4
          for (int j = 0; j < nv; j++) V_FMA(sum[i][j], s, y[j]);
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < mr; i++) {
    float *c = to[i] + x->column;
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      bool all = j < nv - 1 || whole;
      V v = sum[i][j];
      if (x->add) v = V_ADD(all ? V_LOAD(c + j * LANES) : V_LOAD_MASK(c + j * LANES, mask), v);
      if (all) V_STORE(c + j * LANES, v);
      else V_STORE_MASK(c + j * LANES, mask, v);
    }
  }
}

FN static inline __attribute__((always_inline)) void
runs_steps(int mr, int nv, const RunsSteps *x, const float *from, const float *b, float *to) {
  V sum[RUNS_STEPS][RUNS_VECTORS];
  const M mask = V_MASK(x->last);
  const bool whole = x->last == LANES;
  const int64_t step = x->step;
#pragma GCC unroll 12
  for (int i = 0; i < mr; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[i][j] = V_ZERO();
  for (int64_t e = 0; e < x->elements; e++, b += nv * LANES) {
    const float *a = from + x->at[e];
    V y[RUNS_VECTORS];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) y[j] = V_LOAD(b + j * LANES);
#pragma GCC unroll 12
    for (int i = 0; i < mr; i++) {
      V v = V_SET(a[i * step]);
#pragma GCC unroll 4
      for (int j = 0; j < nv; j++) V_FMA(sum[i][j], v, y[j]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < mr; i++, to += x->to_step)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      if (j < nv - 1 || whole) V_STORE(to + j * LANES, sum[i][j]);
      else V_STORE_MASK(to + j * LANES, mask, sum[i][j]);
    }
}

FN static inline __attribute__((always_inline)) void
runs_sums(int ne, int nv, const RunsSums *s, const float *x, const float *y, float *w) {
  V sum[RUNS_MOST][RUNS_VECTORS];
  const M mask = V_MASK(s->last);
  const bool whole = s->last == LANES;
#pragma GCC unroll 24
  for (int e = 0; e < ne; e++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[e][j] = V_LOAD(w + e * s->w_step + j * LANES);
  for (int64_t r = 0; r < s->rows; r++, x += s->x_row, y += s->y_row) {
    const float *a = x, *b = y;
    for (int64_t p = 0; p < s->places; p++, a += s->x_step, b += s->y_step) {
      V g[RUNS_VECTORS];
#pragma GCC unroll 4
      for (int j = 0; j < nv; j++)
        g[j] = j < nv - 1 || whole ? V_LOAD(b + j * LANES) : V_LOAD_MASK(b + j * LANES, mask);
#pragma GCC unroll 24
      for (int e = 0; e < ne; e++) {
        V v = V_SET(a[e]);
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) V_FMA(sum[e][j], v, g[j]);
      }
    }
  }
#pragma GCC unroll 24
  for (int e = 0; e < ne; e++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) V_STORE(w + e * s->w_step + j * LANES, sum[e][j]);
}

#define RUNS(mr, nv)                                                                            \
  FN static void runs_##mr##x##nv(const RunsBlock *x, const float *const *from, const float *b, \
                                  float *const *to) {                                           \
    runs_block(mr, nv, false, x, from, b, to);                                                  \
  }
#define RUNS_NAME(mr, nv) runs_##mr##x##nv,

#define PACKING(nv)                                                                         \
  FN static void packing_##nv(const RunsBlock *x, const float *const *from, const float *b, \
                              float *const *to) {                                           \
    runs_block(RUNS_ROWS, nv, true, x, from, b, to);                                        \
  }

#define STEPS(mr, nv)                                                                     \
  FN static void steps_##mr##x##nv(const RunsSteps *x, const float *from, const float *b, \
                                   float *to) {                                           \
    runs_steps(mr, nv, x, from, b, to);                                                   \
  }
#define STEPS_NAME(mr, nv) steps_##mr##x##nv,

#define SUMS(ne, nv)                                                                             \
  FN static void sums_##ne##x##nv(const RunsSums *s, const float *x, const float *y, float *w) { \
    runs_sums(ne, nv, s, x, y, w);                                                               \
  }
#define SUMS_NAME(ne, nv) sums_##ne##x##nv,
/* f(1, nv) and so on */
#define TO_6(f, nv) f(1, nv) f(2, nv) f(3, nv) f(4, nv) f(5, nv) f(6, nv)
#define TO_8(f, nv) TO_6(f, nv) f(7, nv) f(8, nv)
#define TO_12(f, nv) TO_8(f, nv) f(9, nv) f(10, nv) f(11, nv) f(12, nv)
#define TO_24(f, nv)                                                                        \
  TO_12(f, nv)                                                                              \
  f(13, nv) f(14, nv) f(15, nv) f(16, nv) f(17, nv) f(18, nv) f(19, nv) f(20, nv) f(21, nv) \
      f(22, nv) f(23, nv) f(24, nv)
