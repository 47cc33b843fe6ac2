/* Floats of up to 8 bits in generated code, every one of them, beside the conversions of single elements (base/dtype.c): from and to
 * wider types, at ties, at the largest number and beyond, of NaNs and infinities; arithmetic of all pairs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/float_format.h"
#include "dev/cpu/answer_test.h"
#include "dev/cpu/loops/loops.h"

static const DType types[] = {DT_F8E4M3FN,      DT_F8E5M2,     DT_F8E4M3,     DT_F8E3M4,
                              DT_F8E4M3B11FNUZ, DT_F8E4M3FNUZ, DT_F8E5M2FNUZ, DT_F8E8M0FNU,
                              DT_F4E2M1FN,      DT_F6E2M3FN,   DT_F6E3M2FN};
static const DType wide[] = {DT_F32, DT_F64, DT_BF16, DT_F16};

static int patterns(DType t) { return 1 << dtype_bits(t); }

static void put(Tensor *x, int64_t i, double v) {
  elem_set_f64(x->dtype, (char *)x->data + i * dtype_bytes(x->dtype), v);
}

static double get(const Tensor *x, int64_t i) {
  return elem_get_f64(x->dtype, (const char *)x->data + i * dtype_bytes(x->dtype));
}

static Tensor *program(const char *op, DType from, DType to, int64_t n, Tensor *x, Tensor *y) {
  char *t = xasprintf("tensor<%lldx%s>", (long long)n, dtype_name(from));
  char *r = xasprintf("tensor<%lldx%s>", (long long)n, dtype_name(to));
  char *text = y ? xasprintf("func.func @main(%%x: %s, %%y: %s) -> %s {\n  %%r = stablehlo.%s %%x, "
                             "%%y : (%s, %s) -> %s\n"
                             "  return %%r : %s\n}\n",
                             t, t, r, op, t, t, r, r)
                 : xasprintf("func.func @main(%%x: %s) -> %s {\n  %%r = stablehlo.%s %%x : (%s) -> "
                             "%s\n  return %%r : %s\n}\n",
                             t, r, op, t, r, r);
  Module *m = NULL;
  assert_null(stablehlo_read("test.mlir", str_from(text), &m));
  assert_true(jit_fusible(module_main(m)->body->first)); /* and not left to the interpreter */
  module_free(m);
  Tensor *got = y ? answer_of2(text, x, y) : answer_of(text, x);
  free(t), free(r), free(text);
  return got;
}

/* The same number, or both none; of bytes, the same byte. */
static void check(const char *what, DType t, const Tensor *got, int64_t i, uint64_t want,
                  double of) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)got->data + i * dtype_bytes(got->dtype),
         (size_t)dtype_bytes(got->dtype));
  if (bits == want) return;
  double a = float_decode(got->dtype, bits), b = float_decode(got->dtype, want);
  if (dtype_bits(got->dtype) > 8 && isnan(a) && isnan(b)) return;
  fail_msg("%s of %s, %.17g: %g (%#llx), not %g (%#llx)", what, dtype_name(t), of, a,
           (unsigned long long)bits, b, (unsigned long long)want);
}

static Tensor *all_of(DType t) {
  int64_t n = patterns(t);
  Tensor *x = tensor_make(t, 1, &n);
  for (int64_t i = 0; i < n; i++) ((uint8_t *)x->data)[i] = (uint8_t)i;
  return x;
}

static void test_widened(void **state) {
  (void)state;
  for (int k = 0; k < COUNT_OF(types); k++)
    for (int w = 0; w < COUNT_OF(wide); w++) {
      Tensor *x = all_of(types[k]), *got = program("convert", types[k], wide[w], x->count, x, NULL);
      for (int64_t i = 0; i < x->count; i++)
        check("widening", types[k], got, i, float_encode(wide[w], get(x, i)), get(x, i));
      tensor_release(got);
      tensor_release(x);
    }
}

/* Every number of the type, what lies half way between two, beyond the largest, and the neighbours of each in f32. */
#define EDGES (9 * 256 + 64)
static int64_t edges(DType t, double *to) {
  int64_t n = 0;
  double above = 0;
  for (int i = 0; i < patterns(t); i++)
    above = fmax(above, isfinite(float_decode(t, (uint64_t)i)) ? float_decode(t, (uint64_t)i) : 0);
  for (int i = 0; i < patterns(t) / (t == DT_F8E8M0FNU ? 1 : 2); i++) {
    double v = float_decode(t, (uint64_t)i), next = float_decode(t, (uint64_t)i + 1);
    if (!isfinite(v)) continue;
    double at[3] = {v, (v + (isfinite(next) && next > v ? next : above * 1.125)) / 2, v * 1.03};
    for (int k = 0; k < 3; k++) {
      float f = (float)at[k];
      to[n++] = f, to[n++] = nextafterf(f, INFINITY), to[n++] = nextafterf(f, -INFINITY);
    }
  }
  double more[] = {0,    NAN,   INFINITY, above * 1.0625, above * 1.125, above * 1.5, above * 2,
                   1e30, 3e-30, 1,        0x1p-149,       0x1p-127};
  for (int k = 0; k < COUNT_OF(more); k++) to[n++] = more[k];
  assert_true(n <= EDGES);
  return n;
}

static void test_narrowed(void **state) {
  (void)state;
  double *v = xcalloc(2 * EDGES, sizeof *v);
  for (int k = 0; k < COUNT_OF(types); k++)
    for (int w = 0; w < COUNT_OF(wide); w++) {
      int64_t n = edges(types[k], v), all = 2 * n;
      for (int64_t i = 0; i < n; i++) v[n + i] = -v[i];
      Tensor *x = tensor_make(wide[w], 1, &all);
      for (int64_t i = 0; i < all; i++)
        put(x, i, wide[w] == DT_F64 && i % 3 ? v[i] * (i % 3 == 1 ? 1 + 1e-12 : 1 - 1e-12) : v[i]);
      Tensor *got = program("convert", wide[w], types[k], all, x, NULL);
      for (int64_t i = 0; i < all; i++)
        check("narrowing", types[k], got, i, float_encode(types[k], get(x, i)), get(x, i));
      tensor_release(got);
      tensor_release(x);
    }
  free(v);
}

static double of_pair(int op, double x, double y) {
  switch (op) {
  case 0: return x + y;
  case 1: return x - y;
  case 2: return x * y;
  default: return x / y;
  }
}

static void test_pairs(void **state) {
  (void)state;
  static const char *const ops[] = {"add", "subtract", "multiply", "divide"};
  for (int k = 0; k < COUNT_OF(types); k++)
    for (int op = 0; op < COUNT_OF(ops); op++) {
      int64_t p = patterns(types[k]), n = p * p;
      Tensor *x = tensor_make(types[k], 1, &n), *y = tensor_make(types[k], 1, &n);
      for (int64_t i = 0; i < n; i++)
        ((uint8_t *)x->data)[i] = (uint8_t)(i / p), ((uint8_t *)y->data)[i] = (uint8_t)(i % p);
      Tensor *got = program(ops[op], types[k], types[k], n, x, y);
      for (int64_t i = 0; i < n; i++) {
        double r = of_pair(op, get(x, i), get(y, i));
        if (isnan(r))
          assert_true(isnan(get(got, i)) || types[k] == DT_F4E2M1FN || dtype_bits(types[k]) == 6);
        else check(ops[op], types[k], got, i, float_encode(types[k], r), get(x, i));
      }
      tensor_release(got);
      tensor_release(y);
      tensor_release(x);
    }
}

/* Bits that are passed on stay as they are, those of NaNs as well. */
static void test_moved(void **state) {
  (void)state;
  for (int k = 0; k < COUNT_OF(types); k++) {
    Tensor *x = all_of(types[k]);
    char *t = xasprintf("tensor<%lldx%s>", (long long)x->count, dtype_name(types[k]));
    char *text = xasprintf(
        "func.func @main(%%x: %s) -> %s {\n  %%z = stablehlo.constant dense<0.0> : %s\n"
        "  %%p = stablehlo.compare LT, %%x, %%z : (%s, %s) -> tensor<%lldxi1>\n"
        "  %%a = stablehlo.reverse %%x, dims = [0] : %s\n"
        "  %%b = stablehlo.reverse %%a, dims = [0] : %s\n"
        "  %%r = stablehlo.select %%p, %%b, %%x : tensor<%lldxi1>, %s\n  return %%r : %s\n}\n",
        t, t, t, t, t, (long long)x->count, t, t, (long long)x->count, t, t);
    Tensor *got = answer_of(text, x);
    assert_memory_equal(got->data, x->data, (size_t)x->count);
    free(t), free(text);
    tensor_release(got);
    tensor_release(x);
  }
}

#define REDUCE(T, op, init)                                                                  \
  "func.func @main(%x: tensor<5x64x" T ">) -> tensor<5x" T "> {\n"                           \
  "  %i = stablehlo.constant dense<" init "> : tensor<" T ">\n"                              \
  "  %r = stablehlo.reduce(%x init: %i) applies stablehlo." op " across dimensions = [1] : " \
  "(tensor<5x64x" T ">, tensor<" T ">) -> tensor<5x" T ">\n"                                 \
  "  return %r : tensor<5x" T ">\n}\n"

/* A sum is rounded once: of 64 ones, where adding to 16 would change nothing. */
static void test_reduced(void **state) {
  (void)state;
  const int64_t dims[] = {5, 64};
  check_answer(DT_F8E4M3FN, 2, dims, REDUCE("f8E4M3FN", "maximum", "-448.0"), 0);
  check_answer(DT_F8E5M2, 2, dims, REDUCE("f8E5M2", "minimum", "3.0"), 0);
  check_answer(DT_F8E8M0FNU, 2, dims, REDUCE("f8E8M0FNU", "maximum", "1.0"), 0);
  Tensor *x = tensor_make(DT_F8E4M3FN, 2, dims);
  for (int64_t i = 0; i < x->count; i++) put(x, i, 1);
  Tensor *got = answer_of(REDUCE("f8E4M3FN", "add", "0.0"), x);
  for (int i = 0; i < 5; i++) assert_true(get(got, i) == 64);
  tensor_release(got);
  tensor_release(x);
}

#define SORT(T, order)                                                                        \
  "func.func @main(%x: tensor<3x256x" T ">) -> tensor<3x256x" T "> {\n"                       \
  "  %r = \"stablehlo.sort\"(%x) ({\n  ^bb0(%a: tensor<" T ">, %b: tensor<" T ">):\n"         \
  "    %p = stablehlo.compare LT, %a, %b, " order " : (tensor<" T ">, tensor<" T ">) -> "     \
  "tensor<i1>\n    stablehlo.return %p : tensor<i1>\n  }) {dimension = 1 : i64, is_stable = " \
  "true} : (tensor<3x256x" T ">) -> tensor<3x256x" T ">\n  return %r : tensor<3x256x" T ">\n}\n"

static void test_sorted(void **state) {
  (void)state;
  const int64_t dims[] = {3, 256};
  check_answer(DT_F8E4M3FN, 2, dims, SORT("f8E4M3FN", "FLOAT"), 0);
  check_answer(DT_F8E5M2, 2, dims, SORT("f8E5M2", "TOTALORDER"), 0);
  check_answer(DT_F8E5M2FNUZ, 2, dims, SORT("f8E5M2FNUZ", "TOTALORDER"), 0);
  check_answer(DT_F8E3M4, 2, dims, SORT("f8E3M4", "FLOAT"), 0);
}

#define CAST(from, to)                                                           \
  "func.func @main(%x: tensor<" from ">) -> tensor<" to "> {\n"                  \
  "  %r = stablehlo.bitcast_convert %x : (tensor<" from ">) -> tensor<" to ">\n" \
  "  return %r : tensor<" to ">\n}\n"

static void test_parts_of_bytes(void **state) {
  (void)state;
  check_answer(DT_I8, 1, (const int64_t[]){77}, CAST("77xi8", "77x2xi4"), 0);
  check_answer(DT_U32, 1, (const int64_t[]){9}, CAST("9xui32", "9x16xui2"), 0);
  check_answer(DT_I4, 2, (const int64_t[]){77, 2}, CAST("77x2xi4", "77xui8"), 0);
  check_answer(DT_U4, 2, (const int64_t[]){9, 4}, CAST("9x4xui4", "9xi16"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_widened),       cmocka_unit_test(test_narrowed),
      cmocka_unit_test(test_pairs),         cmocka_unit_test(test_moved),
      cmocka_unit_test(test_reduced),       cmocka_unit_test(test_sorted),
      cmocka_unit_test(test_parts_of_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
