/* small_eigen.h: what comes out multiplies to what went in, its vectors are orthonormal, its values in
 * order; of matrices of full rank and not, of zeros, of numbers near the end of the range, and of
 * ones that are not finite beside others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/ops/small_eigen.h"

typedef enum Kind {
  FULL,
  RANK_ONE,
  ZERO,
  IDENTITY,
  HUGE_ONES,
  TINY_ONES,
  EQUAL,
  SPREAD,
  KINDS
} Kind;

static double number(uint32_t *seed) { /* -1 .. 1 */
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(*seed >> 8) / (1 << 23) - 1;
}

/* Matrix b of a batch: row i, column j. */
static double element(Kind kind, bool wide, int64_t i, int64_t j, uint32_t *seed) {
  double x = number(seed);
  switch (kind) {
  case RANK_ONE: return (double)(1 + i % 3) * (double)(1 + j % 3);
  case ZERO: return 0;
  case IDENTITY: return i == j;
  case HUGE_ONES: return x * (wide ? 1e300 : 1e37);
  case TINY_ONES: return x * (wide ? 1e-300 : 1e-37);
  case EQUAL: return 1;
  case SPREAD: return x * pow(10, -0.3 * (double)MAX(i, j));
  default: return x;
  }
}

typedef struct Case {
  DType t;
  int64_t batch, rows, cols;
  double *a; /* as doubles */
  void *in;
} Case;

static Case make(DType t, int64_t batch, int64_t rows, int64_t cols, bool symmetric) {
  int64_t size = rows * cols;
  Case c = {t,
            batch,
            rows,
            cols,
            xmalloc(sizeof(double) * (size_t)(batch * size)),
            xmalloc((size_t)(dtype_bytes(t) * batch * size))};
  uint32_t seed = (uint32_t)(rows * 100 + cols);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < cols; j++) {
        double x = element((Kind)(b % KINDS), t == DT_F64, i, j, &seed), *to = c.a + b * size;
        if (symmetric && j < i) x = to[j * cols + i];
        elem_set_f64(t, (char *)c.in + (b * size + i * cols + j) * dtype_bytes(t), x);
        to[i * cols + j] =
            elem_get_f64(t, (char *)c.in + (b * size + i * cols + j) * dtype_bytes(t));
      }
  return c;
}

static double *widened(const Case *c, const void *x, int64_t n) {
  double *d = xmalloc(sizeof *d * (size_t)MAX(n, 1));
  for (int64_t i = 0; i < n; i++)
    d[i] = elem_get_f64(c->t, (const char *)x + i * dtype_bytes(c->t));
  return d;
}

/* u diag(s) vt is a, where u is rows x k and vt k x cols; both have orthonormal vectors. */
static void check(const Case *c, int64_t b, const double *u, const double *s, const double *vt,
                  bool same_vectors) {
  int64_t m = c->rows, n = c->cols, k = MIN(m, n);
  const double *a = c->a + b * m * n;
  double tol = (c->t == DT_F64 ? 2e-16 : 1.2e-7) * (8 + 4 * (double)MAX(m, n)), most = 0, worst = 0,
         skew = 0;
  for (int64_t i = 0; i < m * n; i++) most = fmax(most, fabs(a[i]));
  if (most == 0) most = 1;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++) sum += u[i * k + l] * (s[l] / most) * vt[l * n + j];
      worst = fmax(worst, fabs(sum - a[i * n + j] / most));
    }
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < k; j++) {
      double x = 0, y = 0;
      for (int64_t l = 0; l < m; l++) x += u[l * k + i] * u[l * k + j];
      for (int64_t l = 0; l < n; l++) y += vt[i * n + l] * vt[j * n + l];
      skew = fmax(skew, fmax(fabs(x - (i == j)), same_vectors ? 0 : fabs(y - (i == j))));
    }
  for (int64_t i = 0; i + 1 < k; i++)
    if (same_vectors ? s[i] > s[i + 1] : s[i] < s[i + 1]) fail_msg("values are not in order");
  if (!(worst <= tol * sqrt((double)k)) || !(skew <= tol))
    fail_msg("%lld x %lld, matrix %lld, %s: product off by %g, vectors by %g", (long long)m,
             (long long)n, (long long)b, dtype_name(c->t), worst, skew);
}

static void eigenvalues(void **state) {
  (void)state;
  for (int wide = 0; wide < 2; wide++)
    for (int64_t n = 1; n <= 32; n++) {
      int64_t batch = 2 * KINDS + 5;
      Case c = make(wide ? DT_F64 : DT_F32, batch, n, n, true);
      size_t bytes = (size_t)dtype_bytes(c.t);
      void *v = xmalloc(bytes * (size_t)(batch * n * n)), *w = xmalloc(bytes * (size_t)(batch * n)),
           *w2 = xmalloc(bytes * (size_t)(batch * n));
      int32_t info[2 * KINDS + 5];
      small_eigh(c.t, n % 2, batch, n, c.in, v, w, info);
      small_eigh(c.t, n % 2, batch, n, c.in, NULL, w2, info);
      assert_memory_equal(w, w2, bytes * (size_t)(batch * n));
      double *dv = widened(&c, v, batch * n * n), *dw = widened(&c, w, batch * n),
             *turned = xmalloc(sizeof *turned * (size_t)(n * n));
      for (int64_t b = 0; b < batch; b++) {
        assert_int_equal(info[b], 0);
        for (int64_t i = 0; i < n * n; i++) turned[i] = dv[b * n * n + i % n * n + i / n];
        check(&c, b, dv + b * n * n, dw + b * n, turned, true);
      }
      free(v), free(w), free(w2), free(dv), free(dw), free(turned), free(c.a), free(c.in);
    }
}

static void singular_values(void **state) {
  (void)state;
  static const int64_t sides[][2] = {{1, 1}, {2, 2},   {3, 3},  {8, 8},   {5, 3},   {3, 5},  {1, 7},
                                     {9, 1}, {16, 16}, {31, 7}, {12, 40}, {32, 32}, {60, 32}};
  for (int wide = 0; wide < 2; wide++)
    for (int at = 0; at < COUNT_OF(sides); at++) {
      int64_t batch = 2 * KINDS + 5, m = sides[at][0], n = sides[at][1], k = MIN(m, n);
      Case c = make(wide ? DT_F64 : DT_F32, batch, m, n, false);
      size_t bytes = (size_t)dtype_bytes(c.t);
      void *u = xmalloc(bytes * (size_t)(batch * m * k)), *s = xmalloc(bytes * (size_t)(batch * k)),
           *vt = xmalloc(bytes * (size_t)(batch * k * n)),
           *s2 = xmalloc(bytes * (size_t)(batch * k));
      int32_t info[2 * KINDS + 5];
      small_svd(c.t, batch, m, n, c.in, s, u, vt, info);
      small_svd(c.t, batch, m, n, c.in, s2, NULL, NULL, info);
      assert_memory_equal(s, s2, bytes * (size_t)(batch * k));
      double *du = widened(&c, u, batch * m * k), *ds = widened(&c, s, batch * k),
             *dv = widened(&c, vt, batch * k * n);
      for (int64_t b = 0; b < batch; b++) {
        assert_int_equal(info[b], 0);
        check(&c, b, du + b * m * k, ds + b * k, dv + b * k * n, false);
      }
      free(u), free(s), free(s2), free(vt), free(du), free(ds), free(dv), free(c.a), free(c.in);
    }
}

static void not_finite(void **state) {
  (void)state;
  enum { BATCH = 20, N = 4 };
  float a[BATCH][N][N], v[BATCH][N][N], u[BATCH][N][N], w[BATCH][N], alone[BATCH][N][N];
  int32_t info[BATCH];
  uint32_t seed = 1;
  for (int b = 0; b < BATCH; b++)
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) a[b][i][j] = (float)number(&seed);
  small_eigh(DT_F32, true, BATCH, N, a, alone, w, info);
  a[3][2][1] = NAN, a[7][0][0] = INFINITY;
  small_eigh(DT_F32, true, BATCH, N, a, v, w, info);
  for (int b = 0; b < BATCH; b++) {
    bool bad = b == 3 || b == 7;
    assert_int_equal(info[b], bad ? -4 : 0);
    if (bad) assert_true(w[b][0] == 0 && v[b][0][0] == 0);
    else assert_memory_equal(v[b], alone[b], sizeof v[b]); /* whatever its neighbours are */
  }
  small_svd(DT_F32, BATCH, N, N, a, w, u, v, info);
  for (int b = 0; b < BATCH; b++) assert_int_equal(info[b], b == 3 || b == 7 ? -4 : 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(eigenvalues),
                                     cmocka_unit_test(singular_values),
                                     cmocka_unit_test(not_finite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
