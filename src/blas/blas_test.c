/* BLAS from several threads at once gives what it gives from one: the serial build of OpenBLAS does not. */
#include "blas/blas.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <cmocka.h>

#include "base/base.h"

enum { M = 64, N = 2, K = 360, TIMES = 4000 };

typedef struct Products {
  float a[M * K], b[K * N], want[M * N];
} Products;

static void multiply(const Products *p, float *out) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, N, K, 1, p->a, K, p->b, N, 0, out, N);
}

static void *many(void *arg) {
  const Products *p = arg;
  float y[M * N];
  intptr_t wrong = 0;
  for (int i = 0; i < TIMES; i++) {
    multiply(p, y);
    wrong += memcmp(y, p->want, sizeof y) != 0;
  }
  return (void *)wrong;
}

static void products_at_once(void **state) {
  (void)state;
  Products *p = xcalloc(1, sizeof *p);
  for (int i = 0; i < M * K; i++) p->a[i] = (float)(i % 97) / 48 - 1;
  for (int i = 0; i < K * N; i++) p->b[i] = (float)(i % 89) / 44 - 1;
  blas_begin();
  multiply(p, p->want);
  pthread_t threads[4];
  for (int i = 0; i < COUNT_OF(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, many, p), 0);
  for (int i = 0; i < COUNT_OF(threads); i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_int_equal((intptr_t)wrong, 0);
  }
  free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
