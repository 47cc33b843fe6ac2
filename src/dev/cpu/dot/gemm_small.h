/* A panel of a small product, its operands read where they are (gemm_panel in gemm.h). Included
 * after gemm_tile.h, with the same macros and M, V_MASK(n), V_LOAD_MASK, V_STORE_MASK: the first
 * n <= LANES elements of a vector. With SHORT_REGS, vectors that stay in registers, there is SHORT_LIST
 * (GemmShort). With V_NARROW(p, v, nv, n), which stores the first n columns of
 * vectors in a narrower type, there are panels of that type too, NARROW_LIST. */

#define ASK_RESULTS 32 /* products so long: the results' lines are asked for before them */

FN static inline __attribute__((always_inline)) void
small_panel(int mr, int nv, const GemmAt *at, int64_t k, const float *a, const float *b, float *c,
            int64_t columns, bool add, bool narrow) {
  V acc[GEMM_MAX_MR][2];
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) acc[i][j] = V_ZERO();
  if (k >= ASK_RESULTS && !narrow)
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
      for (int j = 0; j < nv; j++) __builtin_prefetch(c + i * at->c_row + j * LANES, 1);
  const int64_t a_row = at->a_row, a_k = at->a_k, b_k = at->b_k, last = columns - (nv - 1) * LANES;
  const M mask = V_MASK(last);
  const float *low = a + 6 * a_row; /* six rows by one address and few registers */
  for (int64_t p = 0; p < k; p++) {
    V y[2];
    if (nv == 2) y[0] = V_LOAD(b);
    y[nv - 1] = V_LOAD_MASK(b + (nv - 1) * LANES, mask);
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
      V x = V_SET(i < 6 ? a[i * a_row] : low[(i - 6) * a_row]);
#pragma GCC unroll 2
      for (int j = 0; j < nv; j++) V_FMA(acc[i][j], x, y[j]);
    }
    a += a_k;
    low += a_k;
    b += b_k;
  }
#ifdef V_NARROW
  if (narrow) {
    uint16_t *o = (uint16_t *)(void *)c;
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) V_NARROW(o + i * at->c_row, acc[i], nv, columns);
    return;
  }
#endif
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++) {
    float *o = c + i * at->c_row, *end = o + (nv - 1) * LANES;
    if (nv == 2) V_STORE(o, add ? V_ADD(V_LOAD(o), acc[i][0]) : acc[i][0]);
    V sum = acc[i][nv - 1];
    if (add) sum = V_ADD(V_LOAD_MASK(end, mask), sum);
    if (last == LANES || end + LANES <= at->c_end) V_STORE(end, sum);
    else V_STORE_MASK(end, mask, sum);
  }
}

#define SMALL(mr, nv)                                                                           \
  FN static void small_##mr##x##nv(const GemmAt *at, int64_t k, const float *a, const float *b, \
                                   float *c, int64_t columns, bool add) {                       \
    small_panel(mr, nv, at, k, a, b, c, columns, add, false);                                   \
  }
#define SMALL_ROW(mr, nv) small_##mr##x##nv,
#define SMALL_TO_6(X, nv) X(1, nv) X(2, nv) X(3, nv) X(4, nv) X(5, nv) X(6, nv)
#define SMALL_TO_12(X, nv) \
  SMALL_TO_6(X, nv) X(7, nv) X(8, nv) X(9, nv) X(10, nv) X(11, nv) X(12, nv)

/* ---- short k: the rows' elements stay in registers while all columns pass by; half of them at a time
 * where there would be room for a single row's ---- */

#define SHORT_FIRST(k) (2 * (k) <= SHORT_REGS ? (k) : ((k) + 1) / 2)
#define SHORT_ROWS(k) (4 * SHORT_FIRST(k) <= SHORT_REGS ? 4 : SHORT_REGS / SHORT_FIRST(k))

FN static inline __attribute__((always_inline)) void short_pass(int mr, int k, const GemmAt *at,
                                                                int64_t b_step, const float *a,
                                                                const float *b, float *c,
                                                                int64_t columns, bool add) {
  V x[4][GEMM_SHORT_K];
#pragma GCC unroll 4
  for (int i = 0; i < mr; i++)
#pragma GCC unroll 8
    for (int p = 0; p < k; p++) x[i][p] = V_SET(a[i * at->a_row + p * at->a_k]);
  const int64_t b_k = at->b_k, c_row = at->c_row;
  for (; columns > 0; columns -= 2 * LANES, b += b_step, c += 2 * LANES) {
    const bool whole = columns >= 2 * LANES;
#pragma GCC unroll 2
    for (int64_t j = 0; j < 2 * LANES && j < columns; j += LANES) {
      const bool all = whole || columns - j >= LANES;
      const M mask = V_MASK(all ? LANES : columns - j);
      V sum[4];
#pragma GCC unroll 4
      for (int i = 0; i < mr; i++) {
        const float *from = c + i * c_row + j;
        sum[i] = !add ? V_ZERO() : all ? V_LOAD(from) : V_LOAD_MASK(from, mask);
      }
#pragma GCC unroll 8
      for (int p = 0; p < k; p++) {
        const float *from = b + p * b_k + j;
        V y = all ? V_LOAD(from) : V_LOAD_MASK(from, mask);
#pragma GCC unroll 4
        for (int i = 0; i < mr; i++) V_FMA(sum[i], x[i][p], y);
      }
#pragma GCC unroll 4
      for (int i = 0; i < mr; i++) {
        if (at->asks) __builtin_prefetch(c + (mr + i) * c_row + j, 1);
        if (all) V_STORE(c + i * c_row + j, sum[i]);
        else V_STORE_MASK(c + i * c_row + j, mask, sum[i]);
      }
    }
  }
}

#define SHORT_AS(name, k, mr)                                                                     \
  FN static void name##_##k(const GemmAt *at, int64_t b_step, const float *a, const float *b,     \
                            float *c, int64_t columns) {                                          \
    const int first = SHORT_FIRST(k);                                                             \
    short_pass(mr, first, at, b_step, a, b, c, columns, false);                                   \
    if (first < k)                                                                                \
      short_pass(mr, (k)-first, at, b_step, a + first * at->a_k, b + first * at->b_k, c, columns, \
                 true);                                                                           \
  }
#define SHORT(k) SHORT_AS(short_one, k, 1) SHORT_AS(short_rows, k, SHORT_ROWS(k))
#define SHORT_ROW(k) \
  {SHORT_ROWS(k), SHORT_FIRST(k) < (k) ? 16 * LANES : 2 * LANES, short_one_##k, short_rows_##k},
#define TO_8(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)

/* clang-format off */
#ifdef SHORT_REGS
TO_8(SHORT)
#define SHORT_LIST {TO_8(SHORT_ROW)}
#endif
SMALL_TO_12(SMALL, 1)
#if MR == 12
SMALL_TO_12(SMALL, 2)
#define SMALL_LIST {{SMALL_TO_12(SMALL_ROW, 1)}, {SMALL_TO_12(SMALL_ROW, 2)}}
#else
SMALL_TO_6(SMALL, 2)
#define SMALL_LIST {{SMALL_TO_12(SMALL_ROW, 1)}, {SMALL_TO_6(SMALL_ROW, 2)}}
#endif
#ifdef V_NARROW
#define NARROW(mr, nv)                                                                           \
  FN static void narrow_##mr##x##nv(const GemmAt *at, int64_t k, const float *a, const float *b, \
                                    float *c, int64_t columns, bool add) {                       \
    (void)add;                                                                                   \
    small_panel(mr, nv, at, k, a, b, c, columns, false, true);                                   \
  }
#define NARROW_ROW(mr, nv) narrow_##mr##x##nv,
SMALL_TO_12(NARROW, 1)
SMALL_TO_12(NARROW, 2)
#define NARROW_LIST {{SMALL_TO_12(NARROW_ROW, 1)}, {SMALL_TO_12(NARROW_ROW, 2)}}
#endif
/* clang-format on */
