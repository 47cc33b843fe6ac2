/* Division and remainder of integers of every type and in every vector against the interpreter: the
 * smallest and the largest number, zero and -1 among the operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

#define N 10007

static Tensor *operand(DType t, uint64_t rng) {
  static const int64_t odd[] = {0, 1, -1, 2, -3, INT64_MAX, INT64_MIN, 127, 128, -32768};
  Tensor *x = tensor_make(t, 1, (int64_t[]){N});
  for (int i = 0; i < N; i++) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    int64_t v = (int64_t)rng >> rng % 61;
    if (rng % 5 == 0) { /* the type's extremes are these, cut or shifted */
      v = odd[rng / 5 % COUNT_OF(odd)];
      if (v == INT64_MAX || v == INT64_MIN) v >>= 64 - dtype_bits(t);
    }
    memcpy((char *)x->data + i * dtype_bytes(t), &v, (size_t)dtype_bytes(t));
  }
  return x;
}

static void quotients(void **state) {
  (void)state;
  static const DType types[] = {DT_I8, DT_U8, DT_I16, DT_U16, DT_I32, DT_U32, DT_I64, DT_U64};
  for (int k = 0; k < COUNT_OF(types) * 2; k++) {
    DType t = types[k / 2];
    const char *op = k % 2 ? "remainder" : "divide", *name = dtype_name(t);
    char text[400];
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<%dx%s>, %%b: tensor<%dx%s>) -> tensor<%dx%s> {\n"
             "%%0 = stablehlo.%s %%a, %%b : tensor<%dx%s>\nreturn %%0 : tensor<%dx%s>\n}",
             N, name, N, name, N, name, op, N, name, N, name);
    Tensor *a = operand(t, 88172645463325252u), *b = operand(t, 1234567u), *in[] = {a, b};
    Tensor *got = answer_of2(text, a, b), *want = NULL;
    Module *m = NULL;
    Err *e = stablehlo_read("test.mlir", str_from(text), &m);
    if (!e) e = interp_eval(module_main(m)->body->first, in, &want, NULL, NULL);
    if (e) fail_msg("%s", err_text(e));
    size_t w = (size_t)dtype_bytes(t);
    for (int i = 0; i < N; i++) {
      const char *x = (char *)got->data + (size_t)i * w, *y = (char *)want->data + (size_t)i * w;
      if (memcmp(x, y, w))
        fail_msg("%s of %s: %lld by %lld is %lld, not %lld", op, name,
                 (long long)elem_get_i64(t, (char *)a->data + (size_t)i * w),
                 (long long)elem_get_i64(t, (char *)b->data + (size_t)i * w),
                 (long long)elem_get_i64(t, x), (long long)elem_get_i64(t, y));
    }
    module_free(m);
    tensor_release(a), tensor_release(b), tensor_release(got), tensor_release(want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(quotients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
