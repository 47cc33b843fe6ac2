/* What generated loops read and write: joined and turned pieces, whose vectors lie partly or wholly
 * outside of them, conversions to narrow integers, memory that an operation shares with itself:
 * against the interpreter, bit for bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

static void check(const char *text, Tensor *x) {
  Tensor *got = answer_of(text, x);
  Module *m = NULL;
  Shards arg = {1, (Tensor *[]){x}}, want = {0};
  Err *e = stablehlo_read("test.mlir", str_from(text), &m);
  if (!e) e = interp_run(m, STR("main"), NULL, &arg, 1, &want, 1);
  if (e) fail_msg("%s\n%s", err_text(e), text);
  if (memcmp(got->data, want.t[0]->data, (size_t)(got->count * dtype_bytes(got->dtype))))
    fail_msg("other bits\n%s", text);
  tensor_release(got);
  shards_free(&want);
  module_free(m);
}

static Tensor *numbers(int rank, const int64_t *dims, double scale) {
  Tensor *t = tensor_make(DT_F32, rank, dims);
  uint32_t u = 7;
  for (int64_t i = 0; i < t->count; i++) {
    u = u * 1664525u + 1013904223u;
    ((float *)t->data)[i] = (float)(((double)u / (1u << 31) - 1) * scale);
  }
  return t;
}

/* The last `k` to the front, and the first ones, turned round, to the end. */
static void test_turned(void **state) {
  (void)state;
  for (long long n = 5; n < 5000; n = n * 3 + 1)
    for (long long k = 1; k < MIN(n, 40); k = k * 2 + 1)
      for (long long rows = 1; rows < 9; rows += 7) {
        Tensor *x = numbers(2, (int64_t[]){rows, n}, 1);
        char *text = xasprintf(
            "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxf32> {\n"
            "%%a = stablehlo.slice %%x [0:%lld, %lld:%lld] : (tensor<%lldx%lldxf32>) -> "
            "tensor<%lldx%lldxf32>\n"
            "%%b = stablehlo.reverse %%x, dims = [1] : tensor<%lldx%lldxf32>\n"
            "%%c = stablehlo.concatenate %%a, %%b, %%x, %%a, dim = 1 : (tensor<%lldx%lldxf32>, "
            "tensor<%lldx%lldxf32>, tensor<%lldx%lldxf32>, tensor<%lldx%lldxf32>) -> "
            "tensor<%lldx%lldxf32>\n"
            "%%d = stablehlo.negate %%c : tensor<%lldx%lldxf32>\n"
            "return %%d : tensor<%lldx%lldxf32>\n}",
            rows, n, rows, 2 * n + 2 * k, rows, n - k, n, rows, n, rows, k, rows, n, rows, k, rows,
            n, rows, n, rows, k, rows, 2 * n + 2 * k, rows, 2 * n + 2 * k, rows, 2 * n + 2 * k);
        check(text, x);
        free(text);
        tensor_release(x);
      }
}

static void test_narrow(void **state) {
  (void)state;
  static const char *const types[] = {"i8", "ui8", "i16", "ui16", "i32", "ui32", "i64"};
  static const float odd[] = {NAN,
                              INFINITY,
                              -INFINITY,
                              255.5f,
                              256,
                              127.5f,
                              128,
                              -128.5f,
                              65535,
                              65536,
                              -0.5f,
                              -1,
                              32767.9f,
                              1e30f,
                              -1e30f,
                              2147483648.0f,
                              -2147483648.0f,
                              2147483520.0f,
                              4294967296.0f,
                              4294967040.0f,
                              9223372036854775808.0f,
                              -9223372036854775808.0f};
  for (int scale = 100; scale <= 100000; scale *= 30)
    for (int k = 0; k < COUNT_OF(types); k++) {
      Tensor *x = numbers(1, (int64_t[]){333}, scale);
      memcpy(x->data, odd, sizeof odd);
      char *text = xasprintf("func.func @main(%%x: tensor<333xf32>) -> tensor<333x%s> {\n"
                             "%%0 = stablehlo.convert %%x : (tensor<333xf32>) -> tensor<333x%s>\n"
                             "return %%0 : tensor<333x%s>\n}",
                             types[k], types[k], types[k]);
      check(text, x);
      free(text);
      tensor_release(x);
    }
}

/* The updates are the operand: they are read while it is written. */
static void test_itself(void **state) {
  (void)state;
  Tensor *x = numbers(2, (int64_t[]){40, 8}, 1);
  check("func.func @main(%x: tensor<40x8xf32>) -> tensor<40x8xf32> {\n"
        "%i = stablehlo.iota dim = 0 : tensor<40x1xi32>\n"
        "%k = stablehlo.constant dense<7> : tensor<40x1xi32>\n"
        "%m = stablehlo.multiply %i, %k : tensor<40x1xi32>\n"
        "%n = stablehlo.constant dense<40> : tensor<40x1xi32>\n"
        "%j = stablehlo.remainder %m, %n : tensor<40x1xi32>\n"
        "%y = stablehlo.negate %x : tensor<40x8xf32>\n"
        "%r = \"stablehlo.scatter\"(%y, %j, %y) <{scatter_dimension_numbers = "
        "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({ ^bb0(%a: tensor<f32>, %b: "
        "tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> "
        "}) : (tensor<40x8xf32>, tensor<40x1xi32>, tensor<40x8xf32>) -> tensor<40x8xf32>\n"
        "return %r : tensor<40x8xf32>\n}",
        x);
  tensor_release(x);
}

/* Of narrow rows, without the first of them: the first, the second and the last column. */
static void test_columns(void **state) {
  (void)state;
  static const struct {
    DType t;
    const char *name;
  } types[] = {{DT_F32, "f32"}, {DT_F64, "f64"}, {DT_BF16, "bf16"}, {DT_U8, "ui8"}};
  for (int t = 0; t < COUNT_OF(types); t++)
    for (long long w = 2; w < 19; w++)
      for (long long n = 7; n < 3000; n = n * 5 + 3) {
        const char *T = types[t].name;
        Buf b = {0};
        buf_printf(&b, "func.func @main(%%x: tensor<3x%lldx%lldx%s>) -> tensor<3x%lldx%s> {\n", n,
                   w, T, n - 1, T);
        const long long column[] = {0, 1, w - 1};
        for (int k = 0; k < 3; k++)
          buf_printf(
              &b,
              "%%s%d = stablehlo.slice %%x [0:3, 1:%lld, %lld:%lld] : (tensor<3x%lldx%lldx%s>) "
              "-> tensor<3x%lldx1x%s>\n"
              "%%c%d = stablehlo.reshape %%s%d : (tensor<3x%lldx1x%s>) -> "
              "tensor<3x%lldx%s>\n",
              k, n, column[k], column[k] + 1, n, w, T, n - 1, T, k, k, n - 1, T, n - 1, T);
        buf_printf(&b, "%%d = stablehlo.subtract %%c0, %%c1 : tensor<3x%lldx%s>\n", n - 1, T);
        buf_printf(&b, "%%r = stablehlo.maximum %%d, %%c2 : tensor<3x%lldx%s>\n", n - 1, T);
        buf_printf(&b, "return %%r : tensor<3x%lldx%s>\n}", n - 1, T);
        check_answer(types[t].t, 3, (int64_t[]){3, n, w}, b.p, 0);
        buf_free(&b);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_turned), cmocka_unit_test(test_narrow),
                                     cmocka_unit_test(test_itself), cmocka_unit_test(test_columns)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
