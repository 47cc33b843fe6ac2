/* Tensors of one value: one element is held, all are there to be read, and writing one changes no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ir/ir.h"

static Tensor *splat(DType t, int64_t n, const void *element) {
  Tensor *out = NULL;
  assert_null(tensor_splat(t, 1, &n, element, &out));
  assert_int_equal(out->count, n);
  return out;
}

static Tensor *dense(Tensor *t) {
  Tensor *out = NULL, *again = NULL;
  assert_null(tensor_dense(t, &out));
  assert_null(tensor_dense(t, &again));
  assert_ptr_equal(out, again);
  assert_false(out->splat);
  assert_int_equal(out->count, t->count);
  return out;
}

static void every_element_is_there(void **unused) {
  (void)unused;
  static const int64_t sizes[] = {1, 7, 300000, 20000003};
  for (int i = 0; i < COUNT_OF(sizes); i++)
    for (int zero = 0; zero < 2; zero++) {
      float v = zero ? 0 : 1.5f;
      Tensor *t = splat(DT_F32, sizes[i], &v), *d = dense(t);
      assert_true(tensor_is_splat(t) && tensor_is_splat(d));
      assert_true(tensor_same_data(t, d) && tensor_same_data(d, t));
      assert_int_equal(tensor_held_bytes(t), 4);
      assert_true(*(float *)tensor_at(t, sizes[i] - 1) == v);
      const float *p = d->data;
      for (int64_t k = 0; k < sizes[i]; k++)
        if (p[k] != v) fail_msg("element %lld of %lld", (long long)k, (long long)sizes[i]);
      ((float *)d->data)[sizes[i] - 1] = 9;
      assert_true(sizes[i] == 1 || !tensor_same_data(t, d));
      tensor_release(t);
    }
}

static void none_of_no_elements(void **unused) {
  (void)unused;
  float v = 1;
  Tensor *t = splat(DT_F32, 0, &v);
  assert_false(tensor_is_splat(t));
  assert_ptr_equal(dense(t), t);
  tensor_release(t);
}

static void any_number_of_elements(void **unused) {
  (void)unused;
  double v = 1, w = 2;
  Tensor *a = splat(DT_F64, (int64_t)1 << 50, &v), *b = splat(DT_F64, (int64_t)1 << 50, &w), *d;
  assert_false(tensor_same_data(a, b));
  assert_true(*(double *)tensor_at(b, ((int64_t)1 << 50) - 1) == 2);
  Err *e = tensor_dense(a, &d);
  assert_int_equal(e->code, ERR_EXHAUSTED);
  err_free(e);
  tensor_release(a);
  tensor_release(b);
}

static void writing_one_changes_no_other(void **unused) {
  (void)unused;
  enum { N = 1 << 20 };
  double v[2] = {1, -2};
  Tensor *a = splat(DT_C128, N, v), *b = splat(DT_C128, N, v);
  double *p = dense(a)->data, *q = dense(b)->data;
  p[0] = 7;
  for (int64_t k = 1; k < 2 * N; k++)
    if (p[k] != v[k % 2]) fail_msg("element %lld", (long long)k);
  assert_true(q[0] == 1);
  tensor_release(a);
  tensor_release(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_element_is_there),
      cmocka_unit_test(none_of_no_elements),
      cmocka_unit_test(any_number_of_elements),
      cmocka_unit_test(writing_one_changes_no_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
