/* f64.h's inner loops for one width of vectors. The includer defines LANES, FN (target attributes), D, and the
 * macros D_ZERO, D_SET, D_LOAD, D_STORE, D_ADD, D_FMA, and ROWS(X), which applies X to each number of rows. */

FN static inline __attribute__((always_inline)) void
NAME(body)(int rows, int vectors, int64_t k, const double *a, int64_t a_row, int64_t a_k,
           const double *b, double *c, int64_t c_row, bool add) {
  D sum[F64_MAX_ROWS][2];
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j++) sum[i][j] = D_ZERO();
  for (int64_t p = 0; p < k; p++, a += a_k, b += vectors * LANES) {
    D y[2];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j++) y[j] = D_LOAD(b + j * LANES);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
      D x = D_SET(a[i * a_row]);
#pragma GCC unroll 2
      for (int j = 0; j < vectors; j++) D_FMA(sum[i][j], x, y[j]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
    for (int j = 0; j < vectors; j++) {
      double *to = c + i * c_row + j * LANES;
      D_STORE(to, add ? D_ADD(sum[i][j], D_LOAD(to)) : sum[i][j]);
    }
}

#define KERNEL(n, v)                                                                          \
  FN static void NAME(rows_##n##_##v)(int64_t k, const double *a, int64_t a_row, int64_t a_k, \
                                      const double *b, double *c, int64_t c_row, bool add) {  \
    NAME(body)(n, v, k, a, a_row, a_k, b, c, c_row, add);                                     \
  }
#define BOTH(n) KERNEL(n, 1) KERNEL(n, 2)
ROWS(BOTH)
#undef BOTH
#undef KERNEL
#define LISTED(n) {NAME(rows_##n##_1), NAME(rows_##n##_2)},
static const F64Kernels NAME(kernels) = {ROWS_AT_ONCE, LANES, {ROWS(LISTED)}};
#undef LISTED
