/* LU, QR and Cholesky column by column, for panels that NaN or infinity is in. OpenBLAS multiplies by a
 * factor that is NaN, or by infinity, as if nothing was: what should not be finite then is. */
#include <complex.h>
#include <math.h>

#include "interp/lapack_priv.h"

/* x times zero is zero but for NaN and infinity. */
#define ALL_ZERO(T)                                                  \
  T sum[8] = {0};                                                    \
  int64_t i = 0;                                                     \
  for (; i + 8 <= n; i += 8)                                         \
    for (int l = 0; l < 8; l++) sum[l] += ((const T *)p)[i + l] * 0; \
  for (; i < n; i++) sum[0] += ((const T *)p)[i] * 0;                \
  for (int l = 1; l < 8; l++) sum[0] += sum[l];                      \
  return sum[0] == 0;

bool lapack_finite(int type, const void *p, int64_t n) {
  if (type > 1) n *= 2;
  if (type % 2) {
    ALL_ZERO(double)
  }
  ALL_ZERO(float)
}

/* Length of n numbers at a[0], a[step], ...: no square overflows or vanishes. */
#define FUNCTIONS(N, T, R, SIZE, ABS, CONJ, REAL, IMAG, ROOT, SIGN)                  \
  static int lu_##N(T *a, int64_t m, int64_t n, int64_t ld, int *pivots) {           \
    int bad = 0;                                                                     \
    for (int64_t k = 0; k < MIN(m, n); k++) {                                        \
      T *col = a + k * ld;                                                           \
      int64_t p = k;                                                                 \
      for (int64_t i = k + 1; i < m; i++)                                            \
        if (SIZE(col[i]) > SIZE(col[p])) p = i;                                      \
      pivots[k] = (int)p + 1;                                                        \
      if (col[p] == 0) {                                                             \
        if (!bad) bad = (int)k + 1;                                                  \
        continue;                                                                    \
      }                                                                              \
      for (int64_t j = 0; j < n && p != k; j++) {                                    \
        T t = a[k + j * ld];                                                         \
        a[k + j * ld] = a[p + j * ld];                                               \
        a[p + j * ld] = t;                                                           \
      }                                                                              \
      for (int64_t i = k + 1; i < m; i++) col[i] /= col[k];                          \
      for (int64_t j = k + 1; j < n; j++)                                            \
        for (int64_t i = k + 1; i < m; i++) a[i + j * ld] -= col[i] * a[k + j * ld]; \
    }                                                                                \
    return bad;                                                                      \
  }                                                                                  \
                                                                                     \
  static R length_##N(const T *a, int64_t n) {                                       \
    R most = 0, sum = 0;                                                             \
    for (int64_t i = 0; i < n; i++) {                                                \
      R x = ABS(a[i]);                                                               \
      if (isnan(x)) return x;                                                        \
      if (x > most) most = x;                                                        \
    }                                                                                \
    if (most == 0 || isinf(most)) return most;                                       \
    for (int64_t i = 0; i < n; i++) sum += (ABS(a[i]) / most) * (ABS(a[i]) / most);  \
    return most * ROOT(sum);                                                         \
  }                                                                                  \
  static void qr_##N(T *a, int64_t m, int64_t n, int64_t ld, T *tau) {               \
    for (int64_t k = 0; k < MIN(m, n); k++) {                                        \
      T *v = a + k * ld, alpha = v[k];                                               \
      tau[k] = 0;                                                                    \
      if (length_##N(v + k + 1, m - k - 1) == 0 && IMAG(alpha) == 0) continue;       \
      R beta = -SIGN(length_##N(v + k, m - k), REAL(alpha));                         \
      tau[k] = (beta - alpha) / beta;                                                \
      for (int64_t i = k + 1; i < m; i++) v[i] /= alpha - beta;                      \
      v[k] = beta;                                                                   \
      for (int64_t j = k + 1; j < n; j++) {                                          \
        T *c = a + j * ld, w = c[k];                                                 \
        for (int64_t i = k + 1; i < m; i++) w += CONJ(v[i]) * c[i];                  \
        w *= CONJ(tau[k]);                                                           \
        c[k] -= w;                                                                   \
        for (int64_t i = k + 1; i < m; i++) c[i] -= v[i] * w;                        \
      }                                                                              \
    }                                                                                \
  }                                                                                  \
                                                                                     \
  static void q_##N(T *a, int64_t m, int64_t n, int64_t ld, const T *tau) {          \
    for (int64_t k = n - 1; k >= 0; k--) {                                           \
      T *v = a + k * ld;                                                             \
      for (int64_t j = k + 1; j < n; j++) {                                          \
        T *c = a + j * ld, w = 0;                                                    \
        for (int64_t i = k + 1; i < m; i++) w += CONJ(v[i]) * c[i];                  \
        w *= tau[k];                                                                 \
        c[k] = -w;                                                                   \
        for (int64_t i = k + 1; i < m; i++) c[i] -= v[i] * w;                        \
      }                                                                              \
      for (int64_t i = k + 1; i < m; i++) v[i] *= -tau[k];                           \
      v[k] = 1 - tau[k];                                                             \
      for (int64_t i = 0; i < k; i++) v[i] = 0;                                      \
    }                                                                                \
  }                                                                                  \
                                                                                     \
  static int upper_##N(T *a, int64_t n, int64_t ld) {                                \
    for (int64_t j = 0; j < n; j++) {                                                \
      T *c = a + j * ld;                                                             \
      for (int64_t i = 0; i <= j; i++) {                                             \
        const T *d = a + i * ld;                                                     \
        T x = c[i];                                                                  \
        for (int64_t k = 0; k < i; k++) x -= CONJ(d[k]) * c[k];                      \
        if (i == j && REAL(x) <= 0) return (int)j + 1;                               \
        c[i] = i == j ? (T)ROOT(REAL(x)) : x / d[i];                                 \
      }                                                                              \
    }                                                                                \
    return 0;                                                                        \
  }                                                                                  \
  static int lower_##N(T *a, int64_t n, int64_t ld) {                                \
    for (int64_t j = 0; j < n; j++) {                                                \
      T *c = a + j * ld;                                                             \
      for (int64_t k = 0; k < j; k++) {                                              \
        const T *d = a + k * ld;                                                     \
        for (int64_t i = j; i < n; i++) c[i] -= d[i] * CONJ(d[j]);                   \
      }                                                                              \
      if (REAL(c[j]) <= 0) return (int)j + 1;                                        \
      c[j] = ROOT(REAL(c[j]));                                                       \
      for (int64_t i = j + 1; i < n; i++) c[i] /= c[j];                              \
    }                                                                                \
    return 0;                                                                        \
  }
#define ITSELF(x) (x)
#define NOTHING(x) 0
#define SIZE_C(z) (fabsf(crealf(z)) + fabsf(cimagf(z)))
#define SIZE_Z(z) (fabs(creal(z)) + fabs(cimag(z)))
FUNCTIONS(s, float, float, fabsf, fabsf, ITSELF, ITSELF, NOTHING, sqrtf, copysignf)
FUNCTIONS(d, double, double, fabs, fabs, ITSELF, ITSELF, NOTHING, sqrt, copysign)
FUNCTIONS(c, float complex, float, SIZE_C, cabsf, conjf, crealf, cimagf, sqrtf, copysignf)
FUNCTIONS(z, double complex, double, SIZE_Z, cabs, conj, creal, cimag, sqrt, copysign)

int lapack_plain_lu(const LapackMatrix *a, int *pivots) {
  switch (a->type) {
  case 0: return lu_s(a->data, a->rows, a->cols, a->ld, pivots);
  case 1: return lu_d(a->data, a->rows, a->cols, a->ld, pivots);
  case 2: return lu_c(a->data, a->rows, a->cols, a->ld, pivots);
  default: return lu_z(a->data, a->rows, a->cols, a->ld, pivots);
  }
}

void lapack_plain_qr(const LapackMatrix *a, void *tau) {
  switch (a->type) {
  case 0: qr_s(a->data, a->rows, a->cols, a->ld, tau); break;
  case 1: qr_d(a->data, a->rows, a->cols, a->ld, tau); break;
  case 2: qr_c(a->data, a->rows, a->cols, a->ld, tau); break;
  default: qr_z(a->data, a->rows, a->cols, a->ld, tau); break;
  }
}

void lapack_plain_q(const LapackMatrix *a, const void *tau) {
  switch (a->type) {
  case 0: q_s(a->data, a->rows, a->cols, a->ld, tau); break;
  case 1: q_d(a->data, a->rows, a->cols, a->ld, tau); break;
  case 2: q_c(a->data, a->rows, a->cols, a->ld, tau); break;
  default: q_z(a->data, a->rows, a->cols, a->ld, tau); break;
  }
}

int lapack_plain_cholesky(const LapackMatrix *a, bool upper) {
  int64_t n = a->cols, ld = a->ld;
  switch (a->type) {
  case 0: return upper ? upper_s(a->data, n, ld) : lower_s(a->data, n, ld);
  case 1: return upper ? upper_d(a->data, n, ld) : lower_d(a->data, n, ld);
  case 2: return upper ? upper_c(a->data, n, ld) : lower_c(a->data, n, ld);
  default: return upper ? upper_z(a->data, n, ld) : lower_z(a->data, n, ld);
  }
}
