/* The innermost kernels of gemm, for one width of vectors. The includer defines LANES, MR, V, and
 * the macros FN (target attributes), V_ZERO, V_SET, V_LOAD, V_STORE, V_ADD, V_FMA. Instantiated for
 * every number of rows up to MR and for one and two vectors of columns: a panel of rows is never
 * padded, panels are made equal instead. With HEAD 1 a panel of columns begins with what their sums
 * begin with. With V_TAKE(p, far, j), which makes vector j of a panel from columns in memory, rows
 * far bytes apart, there are kernels that pack the columns they multiply, TAKE; with V_NARROW of
 * gemm_small.h some whose results are of that type, NARROWS and TAKE_NARROW. */
#include "dev/cpu/dot/gemm.h"

#ifndef HEAD
#define HEAD 0
#endif
#ifndef PER
#define PER 1
#endif

#ifdef V_TAKE
#define TAKE_AHEAD 12 /* steps of k: their columns are asked for */
#else
#define TAKE_AHEAD 0
#define V_TAKE(p, far, j) V_ZERO()
#endif
#ifdef V_NARROW
#define STORE_NARROW V_NARROW
#else
#define STORE_NARROW(p, v, nv, n) (void)0
#endif

/* take: the columns are at `from`, and left packed at b. */
FN static inline __attribute__((always_inline)) void gemm_step(int mr, int nv, V acc[MR][2],
                                                               const float *a, float *b, bool take,
                                                               const char *from, int64_t far) {
  V y[2];
#pragma GCC unroll 2
  for (int j = 0; j < nv; j++) {
    y[j] = take ? V_TAKE(from, far, j) : V_LOAD(b + j * LANES);
    if (take) V_STORE(b + j * LANES, y[j]);
    for (int i = 0; take && i < PER; i++)
      __builtin_prefetch(from + (TAKE_AHEAD * PER + i) * far + j * LANES * 4 / PER);
  }
  for (int i = 0; take && i < PER; i++) /* the last line of a run that begins within one */
    __builtin_prefetch(from + (TAKE_AHEAD * PER + i) * far + nv * LANES * 4 / PER - 1);
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++) {
    V x = V_SET(a[i]);
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) V_FMA(acc[i][j], x, y[j]);
  }
}

FN static inline __attribute__((always_inline)) void
gemm_body(int mr, int nv, int64_t k, const float *a, float *b, float *c, int64_t ldc, bool add,
          GemmComing *next, bool take, const char *from, int64_t far, bool narrow) {
  V acc[MR][2];
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) acc[i][j] = HEAD ? V_LOAD(b + j * LANES) : V_ZERO();
  b += HEAD * nv * LANES;
  const int64_t e = narrow ? 2 : 4;
  char *out = (char *)c;
  const char *row = out, *end = out + mr * ldc * e;
  /* Rows of results asked for at a time, all of them once: many would keep the operands waiting. */
  int64_t p = 0, each = k < GEMM_ASK * mr ? (GEMM_ASK * mr + k - 1) / k : 1;
  for (; p + GEMM_ASK <= k; p += GEMM_ASK) {
    gemm_ask(next);
    for (int64_t u = 0; u < each && row < end; u++) {
#pragma GCC unroll 2
      for (int line = 0; line < nv * LANES * 4; line += 64) __builtin_prefetch(row + line * e / 4);
      __builtin_prefetch(row + nv * LANES * e - 1);
      row += ldc * e;
    }
#pragma GCC unroll 4
    for (int ahead = 0; ahead < GEMM_ASK * mr; ahead += 16) __builtin_prefetch(a + 512 + ahead);
#pragma GCC unroll 4
    for (int u = 0; u < GEMM_ASK; u++)
      gemm_step(mr, nv, acc, a + u * mr, b + u * nv * LANES, take, from + u * PER * far, far);
    from += GEMM_ASK * PER * far;
    a += GEMM_ASK * mr;
    b += GEMM_ASK * nv * LANES;
  }
  for (; p < k; p++) {
    gemm_step(mr, nv, acc, a, b, take, from, far);
    from += PER * far;
    a += mr;
    b += nv * LANES;
  }
#pragma GCC unroll 16
  for (int i = 0; narrow && i < mr; i++)
    STORE_NARROW((uint16_t *)(void *)(out + i * ldc * e), acc[i], nv, nv * LANES);
#pragma GCC unroll 16
  for (int i = 0; !narrow && i < mr; i++)
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) {
      float *o = c + i * ldc + j * LANES;
      V_STORE(o, add ? V_ADD(V_LOAD(o), acc[i][j]) : acc[i][j]);
    }
}

#define KERNEL_AS(name, mr, nv, narrow)                                                    \
  FN static void name##_##mr##x##nv(int64_t k, const float *a, const float *b, float *c,   \
                                    int64_t ldc, bool add, GemmComing *next) {             \
    float *p = (float *)b; /* read only */                                                 \
    if (add && !narrow) gemm_body(mr, nv, k, a, p, c, ldc, true, next, false, NULL, 0, 0); \
    else gemm_body(mr, nv, k, a, p, c, ldc, false, next, false, NULL, 0, narrow);          \
  }
#define KERNEL(mr, nv) KERNEL_AS(kernel, mr, nv, 0)
#define KERNELS(mr) KERNEL(mr, 1) KERNEL(mr, 2)
#define ROW(mr) {kernel_##mr##x1, kernel_##mr##x2},
#define NARROWS(mr) KERNEL_AS(narrows, mr, 1, 1) KERNEL_AS(narrows, mr, 2, 1)
#define NARROWS_ROW(mr) {narrows_##mr##x1, narrows_##mr##x2},
#define TAKE_AS(name, mr, narrow)                                                                \
  FN static void name##_##mr(int64_t k, const float *a, const char *from, int64_t far, float *b, \
                             float *c, int64_t ldc, bool add, GemmComing *next) {                \
    gemm_body(mr, 2, k, a, b, c, ldc, add, next, true, from, far, narrow);                       \
  }
#define TAKE(mr) TAKE_AS(take, mr, 0)
#define TAKE_ROW(mr) take_##mr,
#define TAKE_NARROW(mr) TAKE_AS(take_narrow, mr, 1)
#define TAKE_NARROW_ROW(mr) take_narrow_##mr,
#define TO_12(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
