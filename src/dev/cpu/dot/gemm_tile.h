/* The innermost kernels of gemm, for one width of vectors. The includer defines LANES, MR, V, and
 * the macros FN (target attributes), V_ZERO, V_SET, V_LOAD, V_STORE, V_ADD, V_FMA. Instantiated for
 * every number of rows up to MR and for one and two vectors of columns: a panel of rows is never
 * padded, panels are made equal instead. With HEAD 1 a panel of columns begins with what their sums
 * begin with. */
#include "dev/cpu/dot/gemm.h"

#ifndef HEAD
#define HEAD 0
#endif

FN static inline __attribute__((always_inline)) void gemm_step(int mr, int nv, V acc[MR][2],
                                                               const float *a, const float *b) {
  V y[2];
#pragma GCC unroll 2
  for (int j = 0; j < nv; j++) y[j] = V_LOAD(b + j * LANES);
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++) {
    V x = V_SET(a[i]);
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) V_FMA(acc[i][j], x, y[j]);
  }
}

FN static inline __attribute__((always_inline)) void gemm_body(int mr, int nv, int64_t k,
                                                               const float *a, const float *b,
                                                               float *c, int64_t ldc, bool add,
                                                               GemmComing *next) {
  V acc[MR][2];
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++) {
    __builtin_prefetch(c + i * ldc, 1);
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) acc[i][j] = HEAD ? V_LOAD(b + j * LANES) : V_ZERO();
  }
  b += HEAD * nv * LANES;
  int64_t p = 0;
  for (; p + GEMM_ASK <= k; p += GEMM_ASK) {
    gemm_ask(next);
#pragma GCC unroll 4
    for (int ahead = 0; ahead < GEMM_ASK * mr; ahead += 16) __builtin_prefetch(a + 512 + ahead);
#pragma GCC unroll 4
    for (int u = 0; u < GEMM_ASK; u++) gemm_step(mr, nv, acc, a + u * mr, b + u * nv * LANES);
    a += GEMM_ASK * mr;
    b += GEMM_ASK * nv * LANES;
  }
  for (; p < k; p++) {
    gemm_step(mr, nv, acc, a, b);
    a += mr;
    b += nv * LANES;
  }
#pragma GCC unroll 16
  for (int i = 0; i < mr; i++)
#pragma GCC unroll 2
    for (int j = 0; j < nv; j++) {
      float *o = c + i * ldc + j * LANES;
      V_STORE(o, add ? V_ADD(V_LOAD(o), acc[i][j]) : acc[i][j]);
    }
}

#define KERNEL(mr, nv)                                                                   \
  FN static void kernel_##mr##x##nv(int64_t k, const float *a, const float *b, float *c, \
                                    int64_t ldc, bool add, GemmComing *next) {           \
    if (add) gemm_body(mr, nv, k, a, b, c, ldc, true, next);                             \
    else gemm_body(mr, nv, k, a, b, c, ldc, false, next);                                \
  }
#define KERNELS(mr) KERNEL(mr, 1) KERNEL(mr, 2)
#define ROW(mr) {kernel_##mr##x1, kernel_##mr##x2},
