/* Fused loops over short innermost dimensions, whose lanes go through several rows, reductions of
 * short rows, one in each lane, and rows that are swept several times, in blocks: against the interpreter, bit for bit where no sum's order matters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

#define FOR_SHAPES(rows, width)                                    \
  static const int64_t n_rows[] = {2, 3, 7, 8, 9, 64, 777, 20001}, \
                       n_width[] = {2, 3, 4, 5, 7, 11};            \
  for (int i_ = 0; i_ < COUNT_OF(n_rows); i_++)                    \
    for (int j_ = 0; j_ < COUNT_OF(n_width); j_++)                 \
      for (long long rows = n_rows[i_], width = n_width[j_], once_ = 1; once_; once_ = 0)

static const struct {
  DType t;
  const char *name;
} types[] = {{DT_F32, "f32"}, {DT_F64, "f64"}, {DT_BF16, "bf16"},
             {DT_I8, "i8"},   {DT_I32, "i32"}, {DT_I1, "i1"}};

/* Each element several times, as jnp.repeat does. */
static void test_repeat(void **state) {
  (void)state;
  FOR_SHAPES(rows, width) {
    for (int k = 0; k < COUNT_OF(types); k++) {
      const char *e = types[k].name;
      char *text =
          xasprintf("func.func @main(%%x: tensor<%lldx%s>) -> tensor<%lldx%lldx%s> {\n"
                    "  %%r = stablehlo.broadcast_in_dim %%x, dims = [0] : (tensor<%lldx%s>) -> "
                    "tensor<%lldx%lldx%s>\n  return %%r : tensor<%lldx%lldx%s>\n}\n",
                    rows, e, rows, width, e, rows, e, rows, width, e, rows, width, e);
      check_answer(types[k].t, 1, (int64_t[]){rows}, text, 0);
      free(text);
    }
  }
}

/* Of each row the first and the last element are cut off and the rest is reversed; columns have a
 * number of their own. */
static void test_rows(void **state) {
  (void)state;
  FOR_SHAPES(rows, width) {
    char *text =
        xasprintf("func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxf32> {\n"
                  "  %%s = stablehlo.slice %%x [0:%lld, 1:%lld] : (tensor<%lldx%lldxf32>) -> "
                  "tensor<%lldx%lldxf32>\n"
                  "  %%r = stablehlo.reverse %%s, dims = [1] : tensor<%lldx%lldxf32>\n"
                  "  %%i = stablehlo.iota dim = 1 : tensor<%lldx%lldxf32>\n"
                  "  %%j = stablehlo.iota dim = 0 : tensor<%lldx%lldxf32>\n"
                  "  %%a = stablehlo.multiply %%r, %%i : tensor<%lldx%lldxf32>\n"
                  "  %%b = stablehlo.subtract %%a, %%j : tensor<%lldx%lldxf32>\n"
                  "  return %%b : tensor<%lldx%lldxf32>\n}\n",
                  rows, width + 2, rows, width, rows, width + 1, rows, width + 2, rows, width, rows,
                  width, rows, width, rows, width, rows, width, rows, width, rows, width);
    check_answer(DT_F32, 2, (int64_t[]){rows, width + 2}, text, 0);
    free(text);
  }
}

/* A column is put before the row, a constant after it. */
static void test_joined(void **state) {
  (void)state;
  FOR_SHAPES(rows, width) {
    char *text = xasprintf(
        "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxf32> {\n"
        "  %%c = stablehlo.constant dense<7.0> : tensor<f32>\n"
        "  %%s = stablehlo.slice %%x [0:%lld, 1:2] : (tensor<%lldx%lldxf32>) -> "
        "tensor<%lldx1xf32>\n"
        "  %%n = stablehlo.negate %%s : tensor<%lldx1xf32>\n"
        "  %%j = stablehlo.concatenate %%n, %%x, dim = 1 : (tensor<%lldx1xf32>, "
        "tensor<%lldx%lldxf32>) -> tensor<%lldx%lldxf32>\n"
        "  %%p = stablehlo.pad %%j, %%c, low = [0, 0], high = [0, 1], interior = [0, 0] : "
        "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldx%lldxf32>\n"
        "  return %%p : tensor<%lldx%lldxf32>\n}\n",
        rows, width, rows, width + 2, rows, rows, width, rows, rows, rows, rows, width, rows,
        width + 1, rows, width + 1, rows, width + 2, rows, width + 2);
    check_answer(DT_F32, 2, (int64_t[]){rows, width}, text, 0);
    free(text);
  }
}

#define ARGMAX                                                                                 \
  "  %%i = stablehlo.iota dim = 1 : tensor<%lldx%lldxi32>\n"                                   \
  "  %%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"                             \
  "  %%none = stablehlo.constant dense<0> : tensor<i32>\n"                                     \
  "  %%m:2 = stablehlo.reduce(%%x init: %%low), (%%i init: %%none) across dimensions = [1] : " \
  "(tensor<%lldx%lldxf32>, tensor<%lldx%lldxi32>, tensor<f32>, tensor<i32>) -> "               \
  "(tensor<%lldxf32>, "                                                                        \
  "tensor<%lldxi32>) reducer(%%a: tensor<f32>, %%c: tensor<f32>) (%%b: tensor<i32>, %%d: "     \
  "tensor<i32>) {\n"                                                                           \
  "    %%g = stablehlo.compare GT, %%a, %%c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"      \
  "    %%e = stablehlo.compare EQ, %%a, %%c : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"      \
  "    %%l = stablehlo.compare LT, %%b, %%d : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"      \
  "    %%f = stablehlo.and %%e, %%l : tensor<i1>\n"                                            \
  "    %%h = stablehlo.or %%g, %%f : tensor<i1>\n"                                             \
  "    %%p = stablehlo.select %%g, %%a, %%c : tensor<i1>, tensor<f32>\n"                       \
  "    %%q = stablehlo.select %%h, %%b, %%d : tensor<i1>, tensor<i32>\n"                       \
  "    stablehlo.return %%p, %%q : tensor<f32>, tensor<i32>\n  }\n"

static void test_argmax(void **state) {
  (void)state;
  FOR_SHAPES(rows, width) {
    char *text =
        xasprintf("func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldxi32> {\n" ARGMAX
                  "  return %%m#1 : tensor<%lldxi32>\n}\n",
                  rows, width, rows, rows, width, rows, width, rows, width, rows, rows, rows);
    check_answer(DT_F32, 2, (int64_t[]){rows, width}, text, 0);
    free(text);
  }
}

/* Two sweeps: what is taken off every element is found first. */
static void test_softmax(void **state) {
  (void)state;
  FOR_SHAPES(rows, width) {
    char *text = xasprintf(
        "func.func @main(%%x: tensor<%lldx%lldxf32>) -> tensor<%lldxf32> {\n"
        "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "  %%m = stablehlo.reduce(%%x init: %%low) applies stablehlo.maximum across dimensions = "
        "[1] "
        ": (tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
        "  %%b = stablehlo.broadcast_in_dim %%m, dims = [0] : (tensor<%lldxf32>) -> "
        "tensor<%lldx%lldxf32>\n"
        "  %%d = stablehlo.subtract %%x, %%b : tensor<%lldx%lldxf32>\n"
        "  %%e = stablehlo.exponential %%d : tensor<%lldx%lldxf32>\n"
        "  %%s = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = [1] : "
        "(tensor<%lldx%lldxf32>, tensor<f32>) -> tensor<%lldxf32>\n"
        "  %%l = stablehlo.log %%s : tensor<%lldxf32>\n"
        "  %%r = stablehlo.add %%l, %%m : tensor<%lldxf32>\n  return %%r : tensor<%lldxf32>\n}\n",
        rows, width, rows, rows, width, rows, rows, rows, width, rows, width, rows, width, rows,
        width, rows, rows, rows, rows);
    check_answer(DT_F32, 2, (int64_t[]){rows, width}, text, 2e-6);
    free(text);
  }
}

/* The gradient of a softmax: a maximum, two sums and a last sweep over the same row, each of which
 * needs the exponentials. */
static void test_swept(void **state) {
  (void)state;
  static const int64_t n_rows[] = {2, 5, 16, 33, 1201},
                       n_width[] = {17, 64, 100, 196, 511, 600, 3000};
  for (int i = 0; i < COUNT_OF(n_rows); i++)
    for (int j = 0; j < COUNT_OF(n_width); j++)
      for (int k = 0; k < 3; k += 2) {
        char *m = xasprintf("%lldx%lldx%s", (long long)n_rows[i], (long long)n_width[j],
                            types[k].name),
             *v = xasprintf("%lldx%s", (long long)n_rows[i], types[k].name);
        char *text = xasprintf(
            "func.func @main(%%x: tensor<%s>) -> tensor<%s> {\n"
            "  %%low = stablehlo.constant dense<0xFF%s> : tensor<%s>\n"
            "  %%zero = stablehlo.constant dense<0.0> : tensor<%s>\n"
            "  %%m = stablehlo.reduce(%%x init: %%low) applies stablehlo.maximum across dimensions "
            "= "
            "[1] : (tensor<%s>, tensor<%s>) -> tensor<%s>\n"
            "  %%mb = stablehlo.broadcast_in_dim %%m, dims = [0] : (tensor<%s>) -> tensor<%s>\n"
            "  %%d = stablehlo.subtract %%x, %%mb : tensor<%s>\n"
            "  %%e = stablehlo.exponential %%d : tensor<%s>\n"
            "  %%s = stablehlo.reduce(%%e init: %%zero) applies stablehlo.add across dimensions = "
            "[1] : (tensor<%s>, tensor<%s>) -> tensor<%s>\n"
            "  %%sb = stablehlo.broadcast_in_dim %%s, dims = [0] : (tensor<%s>) -> tensor<%s>\n"
            "  %%y = stablehlo.divide %%e, %%sb : tensor<%s>\n"
            "  %%p = stablehlo.multiply %%y, %%x : tensor<%s>\n"
            "  %%t = stablehlo.reduce(%%p init: %%zero) applies stablehlo.add across dimensions = "
            "[1] : (tensor<%s>, tensor<%s>) -> tensor<%s>\n"
            "  %%tb = stablehlo.broadcast_in_dim %%t, dims = [0] : (tensor<%s>) -> tensor<%s>\n"
            "  %%g = stablehlo.subtract %%x, %%tb : tensor<%s>\n"
            "  %%r = stablehlo.multiply %%y, %%g : tensor<%s>\n"
            "  return %%r : tensor<%s>\n}\n",
            m, m, k ? "80" : "800000", types[k].name, types[k].name, m, types[k].name, v, v, m, m,
            m, m, types[k].name, v, v, m, m, m, m, types[k].name, v, v, m, m, m, m);
        check_answer(types[k].t, 2, (int64_t[]){n_rows[i], n_width[j]}, text, k ? 0.1 : 1e-5);
        free(text);
        free(m);
        free(v);
      }
}

/* Many sums that wait for each other, of values that some of the later sweeps need again: `back` is
 * how many sums later. */
static void test_chain(void **state) {
  (void)state;
  static const int64_t n_rows[] = {1, 3, 64}, n_width[] = {17, 64, 3000, 9000};
  static const int sums[] = {4, 11, 30};
  for (int c = 0; c < COUNT_OF(n_rows) * COUNT_OF(n_width) * COUNT_OF(sums); c++) {
    int64_t rows = n_rows[c % 3], width = n_width[c / 3 % 4];
    int n = sums[c / 12];
    char *m = xasprintf("tensor<%lldx%lldxf32>", (long long)rows, (long long)width),
         *v = xasprintf("tensor<%lldxf32>", (long long)rows);
    Buf b = {0};
    buf_printf(&b,
               "func.func @main(%%x0: %s) -> %s {\n"
               "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
               "  %%l = stablehlo.constant dense<1.0e-3> : tensor<f32>\n"
               "  %%lm = stablehlo.broadcast_in_dim %%l, dims = [] : (tensor<f32>) -> %s\n",
               m, m, m);
    for (int i = 0; i < n; i++) {
      int back = i % 3 == 2 ? i - 2 : i % 7 == 6 ? 1 : i;
      buf_printf(&b,
                 "  %%s%d = stablehlo.reduce(%%x%d init: %%z) applies stablehlo.add across "
                 "dimensions = [1] : (%s, tensor<f32>) -> %s\n"
                 "  %%b%d = stablehlo.broadcast_in_dim %%s%d, dims = [0] : (%s) -> %s\n"
                 "  %%c%d = stablehlo.multiply %%b%d, %%lm : %s\n"
                 "  %%d%d = stablehlo.subtract %%x%d, %%c%d : %s\n"
                 "  %%x%d = stablehlo.tanh %%d%d : %s\n",
                 i, i, m, v, i, i, v, m, i, i, m, i, back, i, m, i + 1, i, m);
    }
    buf_printf(&b, "  return %%x%d : %s\n}\n", n, m);
    check_answer(DT_F32, 2, (int64_t[]){rows, width}, b.p, 1e-4);
    buf_free(&b);
    free(m);
    free(v);
  }
}

/* Few elements with many others beside each: softmax, its sums and the place of the largest, along the first and
 * a middle dimension. */
static void test_beside(void **state) {
  (void)state;
  static const int64_t outer[] = {1, 3, 40}, n_few[] = {2, 5, 8, 16}, n_beside[] = {64, 77, 1030};
  for (int c = 0; c < COUNT_OF(outer) * COUNT_OF(n_few) * COUNT_OF(n_beside) * 2; c++) {
    int64_t dims[3] = {outer[c % 3], n_few[c / 3 % 4], n_beside[c / 12 % 3]};
    const char *e = c / 36 ? "f64" : "f32";
    char *m = xasprintf("tensor<%lldx%lldx%lldx%s>", (long long)dims[0], (long long)dims[1],
                        (long long)dims[2], e);
    char *v = xasprintf("tensor<%lldx%lldx%s>", (long long)dims[0], (long long)dims[2], e);
    char *body = xasprintf("  %%low = stablehlo.constant dense<-1.0e30> : tensor<%s>\n"
                           "  %%zero = stablehlo.constant dense<0.0> : tensor<%s>\n"
                           "  %%m = stablehlo.reduce(%%x init: %%low) applies stablehlo.maximum "
                           "across dimensions = [1] : "
                           "(%s, tensor<%s>) -> %s\n"
                           "  %%mb = stablehlo.broadcast_in_dim %%m, dims = [0, 2] : (%s) -> %s\n"
                           "  %%d = stablehlo.subtract %%x, %%mb : %s\n"
                           "  %%e = stablehlo.exponential %%d : %s\n"
                           "  %%s = stablehlo.reduce(%%e init: %%zero) applies stablehlo.add "
                           "across dimensions = [1] : "
                           "(%s, tensor<%s>) -> %s\n",
                           e, e, m, e, v, v, m, m, m, m, e, v);
    char *sums =
        xasprintf("func.func @main(%%x: %s) -> %s {\n%s  return %%s : %s\n}", m, v, body, v);
    char *whole = xasprintf("func.func @main(%%x: %s) -> %s {\n%s"
                            "  %%sb = stablehlo.broadcast_in_dim %%s, dims = [0, 2] : (%s) -> %s\n"
                            "  %%y = stablehlo.divide %%e, %%sb : %s\n  return %%y : %s\n}",
                            m, m, body, v, m, m, m);
    DType t = c / 36 ? DT_F64 : DT_F32;
    check_answer(t, 3, dims, sums, 1e-5);
    check_answer(t, 3, dims, whole, 1e-5);
    free(sums);
    free(whole);
    free(body);
    free(m);
    free(v);
  }
}

/* Rows whose elements are read and written whole, turned into lanes and back. */
static void test_turned(void **state) {
  (void)state;
  static const int64_t rows[] = {16, 17, 100, 3001}, width[] = {2, 3, 4, 5, 8, 11, 16, 17, 20};
  static const char *const kinds[] = {"maximum", "minimum", "maximum"};
  for (int c = 0; c < COUNT_OF(rows) * COUNT_OF(width); c++)
    for (int k = 0; k < COUNT_OF(types); k++) {
      if (types[k].t == DT_I1) continue;
      const char *e = types[k].name;
      int64_t dims[2] = {rows[c % COUNT_OF(rows)], width[c / COUNT_OF(rows)]};
      char *m = xasprintf("tensor<%lldx%lldx%s>", (long long)dims[0], (long long)dims[1], e);
      char *v = xasprintf("tensor<%lldx%s>", (long long)dims[0], e);
      Buf b = {0};
      buf_printf(&b, "func.func @main(%%x0: %s) -> %s {\n", m, m);
      buf_printf(&b, "%%z = stablehlo.constant dense<%s> : tensor<%s>\n", e[0] == 'i' ? "1" : "1.0",
                 e);
      for (int r = 0; r < 3; r++)
        buf_printf(&b,
                   "%%s%d = stablehlo.reduce(%%x%d init: %%z) applies stablehlo.%s across "
                   "dimensions = [1] : (%s, tensor<%s>) -> %s\n"
                   "%%b%d = stablehlo.broadcast_in_dim %%s%d, dims = [0] : (%s) -> %s\n"
                   "%%x%d = stablehlo.subtract %%x%d, %%b%d : %s\n",
                   r, r, kinds[r], m, e, v, r, r, v, m, r + 1, r, r, m);
      buf_printf(&b, "return %%x3 : %s\n}", m);
      check_answer(types[k].t, 2, dims, b.p, types[k].t == DT_BF16 ? 2e-2 : 0);
      buf_free(&b);
      free(m);
      free(v);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_repeat), cmocka_unit_test(test_rows),    cmocka_unit_test(test_joined),
      cmocka_unit_test(test_argmax), cmocka_unit_test(test_softmax), cmocka_unit_test(test_swept),
      cmocka_unit_test(test_chain),  cmocka_unit_test(test_beside),  cmocka_unit_test(test_turned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
