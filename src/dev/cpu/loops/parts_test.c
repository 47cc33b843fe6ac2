/* Fusions whose result is a concatenate, written piece by piece: single columns woven together, pieces
 * that are runs, results of reductions, chains on columns; against the interpreter, bit for bit where
 * no sum's order matters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

static const struct {
  DType t;
  const char *name;
} types[] = {{DT_F32, "f32"}, {DT_F64, "f64"}, {DT_BF16, "bf16"}, {DT_F16, "f16"},
             {DT_I8, "i8"},   {DT_I32, "i32"}, {DT_I1, "i1"}};

/* side by side: x[i, k] op x[i, k + 1] for all k */
static void columns(Buf *b, const char *t, long long rows, int n, const char *op) {
  buf_printf(b, "func.func @main(%%x: tensor<%lldx%dx%s>) -> tensor<%lldx%dx%s> {\n", rows, n, t,
             rows, n, t);
  for (int k = 0; k < n; k++)
    buf_printf(
        b,
        "%%s%d = stablehlo.slice %%x [0:%lld, %d:%d] : (tensor<%lldx%dx%s>) -> tensor<%lldx1x%s>\n",
        k, rows, k, k + 1, rows, n, t, rows, t);
  for (int k = 0; k < n; k++)
    buf_printf(b, "%%p%d = stablehlo.%s %%s%d, %%s%d : tensor<%lldx1x%s>\n", k, op, k, (k + 1) % n,
               rows, t);
  buf_printf(b, "%%r = stablehlo.concatenate ");
  for (int k = 0; k < n; k++) buf_printf(b, "%s%%p%d", k ? ", " : "", k);
  buf_printf(b, ", dim = 1 : (");
  for (int k = 0; k < n; k++) buf_printf(b, "%stensor<%lldx1x%s>", k ? ", " : "", rows, t);
  buf_printf(b, ") -> tensor<%lldx%dx%s>\nreturn %%r : tensor<%lldx%dx%s>\n}", rows, n, t, rows, n,
             t);
}

static void columns_are_woven(void **unused) {
  (void)unused;
  static const int64_t rows[] = {1, 2, 7, 16, 33, 200, 20001};
  static const int n[] = {2, 3, 4, 5, 9, 16};
  for (int i = 0; i < COUNT_OF(types); i++)
    for (int r = 0; r < COUNT_OF(rows); r++)
      for (int k = 0; k < COUNT_OF(n); k++) {
        Buf b = {0};
        columns(&b, types[i].name, (long long)rows[r], n[k], types[i].t == DT_I1 ? "xor" : "add");
        check_answer(types[i].t, 2, (int64_t[]){rows[r], n[k]}, b.p, 0);
        buf_free(&b);
      }
}

static void complex_columns(void **unused) {
  (void)unused;
  static const int64_t rows[] = {3, 64, 1001};
  for (int r = 0; r < COUNT_OF(rows); r++) {
    long long n = (long long)rows[r];
    Buf b = {0};
    buf_printf(&b,
               "func.func @main(%%x: tensor<%lldxf32>) -> tensor<%lldx3xcomplex<f32>> {\n"
               "%%a = stablehlo.negate %%x : tensor<%lldxf32>\n"
               "%%b = stablehlo.abs %%x : tensor<%lldxf32>\n"
               "%%p = stablehlo.complex %%x, %%a : tensor<%lldxcomplex<f32>>\n"
               "%%q = stablehlo.complex %%b, %%x : tensor<%lldxcomplex<f32>>\n"
               "%%s = stablehlo.complex %%a, %%b : tensor<%lldxcomplex<f32>>\n",
               n, n, n, n, n, n, n);
    for (const char *v = "pqs"; *v; v++)
      buf_printf(&b,
                 "%%%c1 = stablehlo.reshape %%%c : (tensor<%lldxcomplex<f32>>) -> "
                 "tensor<%lldx1xcomplex<f32>>\n",
                 *v, *v, n, n);
    buf_printf(
        &b,
        "%%r = stablehlo.concatenate %%p1, %%q1, %%s1, dim = 1 : (tensor<%lldx1xcomplex<f32>>, "
        "tensor<%lldx1xcomplex<f32>>, tensor<%lldx1xcomplex<f32>>) -> tensor<%lldx3xcomplex<f32>>\n"
        "return %%r : tensor<%lldx3xcomplex<f32>>\n}",
        n, n, n, n, n);
    Tensor *x = test_numbers(DT_F32, 1, &rows[r]), *got = answer_of(b.p, x);
    const float *f = x->data, *g = got->data;
    for (int64_t i = 0; i < rows[r]; i++) {
      float v = f[i], want[6] = {v, -v, fabsf(v), v, -v, fabsf(v)};
      assert_memory_equal(g + 6 * i, want, sizeof want);
    }
    tensor_release(x);
    tensor_release(got);
    buf_free(&b);
  }
}

/* [rows, 2 half]: halves turned against each other, as in rotary embeddings */
static void runs(void **unused) {
  (void)unused;
  static const int64_t rows[] = {1, 5, 300}, half[] = {16, 17, 64};
  for (int r = 0; r < COUNT_OF(rows); r++)
    for (int h = 0; h < COUNT_OF(half); h++)
      for (int i = 0; i < COUNT_OF(types); i++) {
        if (types[i].t == DT_I1) continue;
        long long n = (long long)rows[r], w = (long long)half[h];
        const char *t = types[i].name;
        Buf b = {0};
        buf_printf(&b,
                   "func.func @main(%%x: tensor<%lldx%lldx%s>) -> tensor<%lldx%lldx%s> {\n"
                   "%%a = stablehlo.slice %%x [0:%lld, 0:%lld] : (tensor<%lldx%lldx%s>) -> "
                   "tensor<%lldx%lldx%s>\n"
                   "%%b = stablehlo.slice %%x [0:%lld, %lld:%lld] : (tensor<%lldx%lldx%s>) -> "
                   "tensor<%lldx%lldx%s>\n"
                   "%%p = stablehlo.subtract %%a, %%b : tensor<%lldx%lldx%s>\n"
                   "%%q = stablehlo.add %%a, %%b : tensor<%lldx%lldx%s>\n"
                   "%%r = stablehlo.concatenate %%p, %%q, dim = 1 : (tensor<%lldx%lldx%s>, "
                   "tensor<%lldx%lldx%s>) -> "
                   "tensor<%lldx%lldx%s>\nreturn %%r : tensor<%lldx%lldx%s>\n}",
                   n, 2 * w, t, n, 2 * w, t, n, w, n, 2 * w, t, n, w, t, n, w, 2 * w, n, 2 * w, t,
                   n, w, t, n, w, t, n, w, t, n, w, t, n, w, t, n, 2 * w, t, n, 2 * w, t);
        check_answer(types[i].t, 2, (int64_t[]){rows[r], 2 * half[h]}, b.p, 0);
        buf_free(&b);
      }
}

/* [sum, max] of rows, beside each other */
static void sums(void **unused) {
  (void)unused;
  static const int64_t rows[] = {20, 700, 5001}, width[] = {3, 8, 100};
  for (int r = 0; r < COUNT_OF(rows); r++)
    for (int w = 0; w < COUNT_OF(width); w++) {
      long long n = (long long)rows[r], k = (long long)width[w];
      Buf b = {0};
      buf_printf(
          &b,
          "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx2xf32> {\n"
          "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
          "%%m = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
          "%%s = stablehlo.reduce(%%x init: %%z) applies stablehlo.add across dimensions = [1] : "
          "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
          "%%t = stablehlo.reduce(%%x init: %%m) applies stablehlo.maximum across dimensions = [1] "
          ": "
          "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
          "%%s1 = stablehlo.reshape %%s : (tensor<%lldxf32>) -> tensor<%lldx1xf32>\n"
          "%%t1 = stablehlo.reshape %%t : (tensor<%lldxf32>) -> tensor<%lldx1xf32>\n"
          "%%r = stablehlo.concatenate %%s1, %%t1, dim = 1 : (tensor<%lldx1xf32>, "
          "tensor<%lldx1xf32>) -> "
          "tensor<%lldx2xf32>\nreturn %%r : tensor<%lldx2xf32>\n}",
          n, k, n, n, k, n, n, k, n, n, n, n, n, n, n, n, n);
      check_answer(DT_F32, 2, (int64_t[]){rows[r], width[w]}, b.p, 1e-5);
      buf_free(&b);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_woven),
                                     cmocka_unit_test(complex_columns), cmocka_unit_test(runs),
                                     cmocka_unit_test(sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
