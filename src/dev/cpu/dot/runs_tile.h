/* The innermost kernels of runs.c, for one width of vectors. The includer defines LANES and the
 * macros FN (target attributes), V, V_ZERO, V_SET, V_LOAD, V_STORE, V_ADD, V_FMA, M, V_MASK, V_LOAD_MASK,
 * V_STORE_MASK. */
#include "dev/cpu/dot/runs.h"

#define LINE 16 /* floats */

FN static inline __attribute__((always_inline)) void runs_block(int mr, int nv, const RunsBlock *x,
                                                                const float *const *from,
                                                                const float *b, float *const *to) {
  V sum[RUNS_ROWS][RUNS_VECTORS];
  const M mask = V_MASK(x->last);
  const bool whole = x->last == LANES;
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
      b += x->k * nv * LANES;
      continue;
    }
    for (int64_t p = 0; p < x->k;) {
      if (x->ask)
#pragma GCC unroll 6
        for (int i = 0; i < mr; i++) __builtin_prefetch(from[i + RUNS_ROWS] + x->p0 + p);
      for (int64_t line = MIN(p + LINE, x->k); p < line; p++, b += nv * LANES) {
        V y[RUNS_VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < nv; j++) y[j] = V_LOAD(b + j * LANES);
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

#define RUNS(mr, nv)                                                                            \
  FN static void runs_##mr##x##nv(const RunsBlock *x, const float *const *from, const float *b, \
                                  float *const *to) {                                           \
    runs_block(mr, nv, x, from, b, to);                                                         \
  }
#define RUNS_OF(nv) RUNS(1, nv) RUNS(2, nv) RUNS(3, nv) RUNS(4, nv) RUNS(5, nv) RUNS(6, nv)
#define RUNS_LIST(nv) \
  { runs_1x##nv, runs_2x##nv, runs_3x##nv, runs_4x##nv, runs_5x##nv, runs_6x##nv }
