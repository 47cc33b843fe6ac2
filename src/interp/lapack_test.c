/* QR and LU in blocks: the factors' product is the matrix, whatever the number of blocks. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "interp/lapack_priv.h"

static uint64_t rng = 88172645463325252u;
static double number(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return (double)(rng % 2001) / 1000 - 1;
}

/* Parts one at a time, the last one first. */
static void backwards(int64_t n, int64_t grain, void (*fn)(void *, int64_t, int64_t), void *arg) {
  (void)grain;
  for (int64_t i = n - 1; i >= 0; i--) fn(arg, i, i + 1);
}

static double complex get(const LapackMatrix *a, int64_t i, int64_t j) {
  int64_t at = i + j * a->ld;
  switch (a->type) {
  case 0: return ((const float *)a->data)[at];
  case 1: return ((const double *)a->data)[at];
  case 2: return ((const float complex *)a->data)[at];
  default: return ((const double complex *)a->data)[at];
  }
}

static LapackMatrix random_matrix(int type, int rows, int cols) {
  LapackMatrix a = {type, rows, cols, rows + 3, NULL};
  int64_t n = (int64_t)a.ld * cols * (type > 1 ? 2 : 1);
  a.data = xmalloc((size_t)n * 8);
  for (int64_t i = 0; i < n; i++)
    if (type % 2) ((double *)a.data)[i] = number();
    else ((float *)a.data)[i] = (float)number();
  return a;
}

static LapackMatrix copy(const LapackMatrix *a) {
  LapackMatrix b = *a;
  size_t bytes = lapack_bytes(a->type) * (size_t)a->ld * (size_t)a->cols;
  b.data = xmalloc(bytes);
  memcpy(b.data, a->data, bytes);
  return b;
}

static double tolerance(const LapackMatrix *a) {
  return (a->type % 2 ? 1e-14 : 1e-6) * sqrt(a->rows) * 20;
}

static void qr(int type, int rows, int cols) {
  LapackMatrix a = random_matrix(type, rows, cols), r = copy(&a);
  int k = MIN(rows, cols);
  void *tau = xmalloc((size_t)k * 16);
  lapack_qr(&r, tau, backwards);
  LapackMatrix q = copy(&r);
  q.cols = k;
  lapack_q(&q, k, tau, backwards);
  for (int i = 0; i < rows; i += 1 + rows / 40)
    for (int j = 0; j < cols; j++) {
      double complex sum = 0, dot = 0;
      for (int l = 0; l <= j && l < k; l++) sum += get(&q, i, l) * get(&r, l, j);
      assert_true(cabs(sum - get(&a, i, j)) < tolerance(&a));
      if (i >= k || j >= k) continue;
      for (int l = 0; l < rows; l++) dot += conj(get(&q, l, i)) * get(&q, l, j);
      assert_true(cabs(dot - (i == j)) < tolerance(&a));
    }
  free(a.data), free(r.data), free(q.data), free(tau);
}

static void lu(int type, int rows, int cols) {
  LapackMatrix a = random_matrix(type, rows, cols), f = copy(&a);
  int k = MIN(rows, cols), info, *pivots = xmalloc((size_t)k * sizeof *pivots),
      *from = xmalloc((size_t)rows * sizeof *from);
  lapack_lu(&f, pivots, &info, backwards);
  assert_int_equal(info, 0);
  for (int i = 0; i < rows; i++) from[i] = i;
  for (int i = 0; i < k; i++) {
    int p = pivots[i] - 1, t = from[i];
    assert_true(p >= i && p < rows);
    from[i] = from[p];
    from[p] = t;
  }
  for (int i = 0; i < rows; i += 1 + rows / 40)
    for (int j = 0; j < cols; j++) {
      double complex sum = 0;
      for (int l = 0; l <= i && l <= j && l < k; l++)
        sum += (l == i ? 1 : get(&f, i, l)) * get(&f, l, j);
      assert_true(cabs(sum - get(&a, from[i], j)) < 5 * tolerance(&a));
    }
  free(a.data), free(f.data), free(pivots), free(from);
}

static void factors(void **state) {
  static const int shapes[][2] = {{1, 1},    {7, 3},    {3, 7},    {33, 33},
                                  {150, 40}, {40, 300}, {290, 270}};
  (void)state;
  for (int type = 0; type < 4; type++)
    for (int i = 0; i < COUNT_OF(shapes); i++) {
      qr(type, shapes[i][0], shapes[i][1]);
      lu(type, shapes[i][0], shapes[i][1]);
    }
  lu(0, 500, 430);
  lu(3, 400, 600);
  lu(1, 600, 385);
}

/* A column of zeros has no pivot, in a later block as in the first. */
static void singular(void **state) {
  (void)state;
  LapackMatrix a = random_matrix(1, 400, 400);
  int pivots[400], info;
  for (int i = 0; i < 400; i++) ((double *)a.data)[i + 250 * a.ld] = 0;
  lapack_lu(&a, pivots, &info, backwards);
  assert_int_equal(info, 251);
  free(a.data);
}

static void set(const LapackMatrix *a, int i, int j, double v) {
  int64_t at = (int64_t)(i + (int64_t)j * a->ld) * (a->type > 1 ? 2 : 1);
  if (a->type % 2) ((double *)a->data)[at] = v;
  else ((float *)a->data)[at] = (float)v;
}

/* Of the panels' definitions: the factors' product, as of the blocks. */
static void plain(void **state) {
  (void)state;
  for (int type = 0; type < 4; type++) {
    LapackMatrix a = random_matrix(type, 40, 30), b = copy(&a), c = copy(&a);
    int pivots[30], want[30], info;
    char tau[30 * 16], tau_want[30 * 16];
    lapack_lu(&a, want, &info, backwards);
    assert_int_equal(lapack_plain_lu(&b, pivots), 0);
    assert_memory_equal(pivots, want, sizeof want);
    for (int j = 0; j < 30; j++)
      for (int i = 0; i < 40; i++)
        assert_true(cabs(get(&a, i, j) - get(&b, i, j)) < 5 * tolerance(&a));
    memcpy(b.data, c.data, lapack_bytes(type) * 30 * (size_t)b.ld);
    lapack_qr(&c, tau_want, backwards);
    lapack_plain_qr(&b, tau);
    LapackMatrix t = {type, 30, 1, 30, tau}, w = {type, 30, 1, 30, tau_want};
    for (int j = 0; j < 30; j++) {
      assert_true(cabs(get(&t, j, 0) - get(&w, j, 0)) < 5 * tolerance(&a));
      for (int i = 0; i < 40; i++)
        assert_true(cabs(get(&c, i, j) - get(&b, i, j)) < 5 * tolerance(&a));
    }
    free(a.data), free(b.data), free(c.data);
  }
}

/* NaN at (i, j): row i is NaN from column j on, or below and right of it all is, wherever the blocks end;
 * of R, column j and what is below and right of it. */
static void not_finite(void **state) {
  static const int sizes[] = {6, 130, 400};
  (void)state;
  for (int type = 0; type < 4; type++)
    for (int s = 0; s < COUNT_OF(sizes); s++)
      for (int where = 0; where < 3; where++) {
        int n = sizes[s], at = where * (n - 1) / 2, pivots[400], info;
        char tau[400 * 16];
        LapackMatrix a = random_matrix(type, n, n), b;
        set(&a, at, at, NAN);
        b = copy(&a);
        lapack_lu(&a, pivots, &info, backwards);
        assert_true(isnan(creal(get(&a, n - 1, n - 1))));
        lapack_qr(&b, tau, backwards);
        LapackMatrix q = copy(&b);
        lapack_q(&q, n, tau, backwards);
        for (int i = 0; i < n && at < n - 1; i++) assert_true(isnan(creal(get(&q, i, at))));
        free(q.data);
        for (int j = 0; j < n; j++)
          for (int i = 0; i <= j; i++)
            if (j == at || (j > at && i >= at) || j < at) /* above: as the blocks have it */
              assert_int_equal(isnan(creal(get(&b, i, j))), j >= at);
        free(a.data), free(b.data);
      }
}

/* Half the matrix, with NaN: its row and column, and what is below and right of them. */
static void cholesky(void **state) {
  (void)state;
  for (int type = 0; type < 4; type++)
    for (int upper = 0; upper < 2; upper++)
      for (int bad = -1; bad < 99; bad += 50) {
        LapackMatrix a = random_matrix(type, 100, 100);
        for (int i = 0; i < 100; i++) set(&a, i, i, 100);
        if (bad >= 0) set(&a, upper ? bad : 99, upper ? 99 : bad, NAN);
        assert_int_equal(lapack_cholesky(type, upper, 100, a.ld, a.data), 0);
        for (int j = 0; j < 100; j++)
          for (int i = 0; i <= j; i++) {
            double complex x = upper ? get(&a, i, j) : get(&a, j, i);
            assert_int_equal(isnan(creal(x)), bad >= 0 && j == 99 && i >= bad);
          }
        free(a.data);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(singular),
                                     cmocka_unit_test(plain), cmocka_unit_test(cholesky),
                                     cmocka_unit_test(not_finite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
