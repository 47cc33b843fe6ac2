/* Long sums keep their digits: elements are base + (position mod 8), made inside the fusion, so
 * that a hundred million of them cost no memory; the answer is known exactly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"
#include "ir/build.h"

/* Runs `text`, whose one argument is an f32 scalar, and gives its one f32 result. */
static Tensor *answer(const char *text, float x) {
  Tensor *scalar = tensor_make(DT_F32, 0, NULL);
  *(float *)scalar->data = x;
  Tensor *t = answer_of(text, scalar);
  tensor_release(scalar);
  return t;
}

static void check(const char *in, const char *out, const char *across, int64_t n_sum, double tol) {
  char *text = xasprintf(
      "func.func @main(%%x: tensor<f32>) -> tensor<%sf32> {\n"
      "  %%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %%seven = stablehlo.constant dense<7> : tensor<%si32>\n"
      "  %%i = stablehlo.iota dim = %s : tensor<%si32>\n"
      "  %%j = stablehlo.and %%i, %%seven : tensor<%si32>\n"
      "  %%f = stablehlo.convert %%j : (tensor<%si32>) -> tensor<%sf32>\n"
      "  %%b = stablehlo.broadcast_in_dim %%x, dims = [] : (tensor<f32>) -> tensor<%sf32>\n"
      "  %%v = stablehlo.add %%b, %%f : tensor<%sf32>\n"
      "  %%s = stablehlo.reduce(%%v init: %%zero) applies stablehlo.add across dimensions = [%s] : "
      "(tensor<%sf32>, tensor<f32>) -> tensor<%sf32>\n"
      "  return %%s : tensor<%sf32>\n}\n",
      out, in, (char[]){across[0], 0}, in, in, in, in, in, in, across, in, out, out);
  /* every sum runs over whole periods of eight, or over one element less */
  double want = (double)n_sum * (0.1f + 3.5) + (n_sum % 8 == 7 ? -0.5 * 7 : 0);
  Tensor *t = answer(text, 0.1f);
  for (int64_t i = 0; i < t->count; i++) {
    double got = ((float *)t->data)[i];
    if (fabs(got - want) > tol * want)
      fail_msg("%s -> %s: sum %lld is %.9g, not %.9g (%.2g)", in, out, (long long)i, got, want,
               got / want - 1);
  }
  tensor_release(t);
  free(text);
}

static void test_all(void **state) { /* in chunks, the last one ragged */
  (void)state;
  check("100000000x", "", "0", 100000000, 2e-5);
  check("33554431x", "", "0", 33554431, 2e-5);
  check("4096x", "", "0", 4096, 2e-5);
}

static void test_rows(void **state) {
  (void)state;
  check("64x1048576x", "64x", "1", 1048576, 2e-5);
  check("64x262143x", "64x", "1", 262143, 2e-5);
}

static void test_columns(void **state) {
  (void)state;
  check("4194304x3x", "3x", "0", 4194304, 2e-5);
  check("1048576x64x", "64x", "0", 1048576, 6e-5);
}

/* As batch norm has them: a variance loses what its sums have lost, times the mean's share. */
static void test_moments(void **state) {
  (void)state;
  enum { ROWS = 12544, COLUMNS = 256 };
  Tensor *x = tensor_make(DT_F32, 2, (int64_t[]){ROWS, COLUMNS});
  double want[COLUMNS] = {0}, off = 0;
  uint64_t rng = 88172645463325252u;
  for (int64_t i = 0; i < x->count; i++) {
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    float v = 1 + (float)(rng >> 40) / 16777216;
    ((float *)x->data)[i] = v;
    want[i % COLUMNS] += v;
  }
  Tensor *t =
      answer_of("func.func @main(%x: tensor<12544x256xf32>) -> tensor<256xf32> {\n"
                "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
                "  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across "
                "dimensions = [0] : (tensor<12544x256xf32>, tensor<f32>) -> tensor<256xf32>\n"
                "  return %s : tensor<256xf32>\n}\n",
                x);
  for (int64_t i = 0; i < COLUMNS; i++) off += pow(((float *)t->data)[i] / want[i] - 1, 2);
  off = sqrt(off / COLUMNS);
  if (off > 9e-8) fail_msg("sums of %d are off by %.2g", ROWS, off);
  tensor_release(t);
  tensor_release(x);
}

static void test_product(void **state) { /* of two long vectors */
  (void)state;
  Tensor *t = answer(
      "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
      "  %b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<40000001xf32>\n"
      "  %s = stablehlo.dot_general %b, %b, contracting_dims = [0] x [0] : "
      "(tensor<40000001xf32>, tensor<40000001xf32>) -> tensor<f32>\n"
      "  return %s : tensor<f32>\n}\n",
      0.1f);
  double want = 40000001.0 * (double)0.1f * (double)0.1f;
  assert_true(fabs(*(float *)t->data - want) < 1e-5 * want);
  tensor_release(t);
}

/* Bodies that are no sum take in one term after the other, as on XLA's CPU backend; rows and columns. */
static float with_square(float a, float b) { return a + b * b; }
static float difference(float a, float b) { return a - b; }
static float last(float a, float b) { return (void)a, b; }
static float fading(float a, float b) { return (a + b) * 0.5f; }

#define N 40

static void in_order(void **state) {
  (void)state;
  static const struct {
    const char *body;
    float (*f)(float, float);
  } bodies[] = {
      {"%q = stablehlo.multiply %b, %b : tensor<f32>\n%c = stablehlo.add %a, %q : tensor<f32>\n",
       with_square},
      {"%c = stablehlo.subtract %a, %b : tensor<f32>\n", difference},
      {"%c = stablehlo.reshape %b : (tensor<f32>) -> tensor<f32>\n", last},
      {"%h = stablehlo.constant dense<0.5> : tensor<f32>\n%q = stablehlo.add %a, %b : tensor<f32>\n"
       "%c = stablehlo.multiply %q, %h : tensor<f32>\n",
       fading},
  };
  int64_t dims[] = {N, N};
  for (int k = 0; k < 8; k++) {
    Tensor *x = tensor_make(DT_F32, 2, dims);
    for (int i = 0; i < N * N; i++) ((float *)x->data)[i] = (float)(i * 7 % 11 - 5);
    char *text = xasprintf(
        "func.func @main(%%x: tensor<%dx%dxf32>) -> tensor<%dxf32> {\n"
        "%%i = stablehlo.constant dense<3.0> : tensor<f32>\n"
        "%%r = \"stablehlo.reduce\"(%%x, %%i) ({\n^bb0(%%a: tensor<f32>, %%b: tensor<f32>):\n%s"
        "stablehlo.return %%c : tensor<f32>\n}) {dimensions = array<i64: %d>} : "
        "(tensor<%dx%dxf32>, tensor<f32>) -> tensor<%dxf32>\nreturn %%r : tensor<%dxf32>\n}\n",
        N, N, N, bodies[k / 2].body, k % 2, N, N, N, N);
    Tensor *t = answer_of(text, x);
    for (int r = 0; r < N; r++) {
      float want = 3;
      for (int i = 0; i < N; i++)
        want = bodies[k / 2].f(want, ((float *)x->data)[k % 2 ? r * N + i : i * N + r]);
      assert_float_equal(((float *)t->data)[r], want, 1e-3);
    }
    tensor_release(x);
    tensor_release(t);
    free(text);
  }
}

/* Two sums at once begin with their initial value once; rows, columns, all. */
static void beginnings(void **state) {
  (void)state;
  int64_t dims[] = {N, N};
  static const char *const over[] = {"1", "0", "0, 1"};
  for (int how = 0; how < 6; how++) {
    int k = how % 3;
    setenv("WEFT_VINTERP", how < 3 ? "off" : "always", 1);
    const char *out = k < 2 ? "tensor<40xi32>" : "tensor<i32>";
    Tensor *x = tensor_make(DT_I32, 2, dims);
    for (int i = 0; i < N * N; i++) ((int32_t *)x->data)[i] = i * 7 % 11 - 5;
    char *text = xasprintf(
        "func.func @main(%%x: tensor<40x40xi32>) -> %s {\n"
        "%%i = stablehlo.constant dense<3> : tensor<i32>\n"
        "%%r:2 = \"stablehlo.reduce\"(%%x, %%x, %%i, %%i) ({\n"
        "^bb0(%%a: tensor<i32>, %%b: tensor<i32>, %%c: tensor<i32>, %%d: tensor<i32>):\n"
        "%%s = stablehlo.add %%a, %%c : tensor<i32>\n%%t = stablehlo.minimum %%d, %%b : "
        "tensor<i32>\n"
        "stablehlo.return %%s, %%t : tensor<i32>, tensor<i32>\n}) {dimensions = array<i64: %s>} : "
        "(tensor<40x40xi32>, tensor<40x40xi32>, tensor<i32>, tensor<i32>) -> (%s, %s)\n"
        "%%y = stablehlo.add %%r#0, %%r#1 : %s\nreturn %%y : %s\n}\n",
        out, over[k], out, out, out, out);
    Tensor *t = answer_of(text, x);
    for (int64_t r = 0; r < t->count; r++) {
      int32_t sum = 3 - 5; /* the least of all is in every row and column */
      for (int i = 0; i < (k < 2 ? N : N * N); i++)
        sum += ((int32_t *)x->data)[k == 0 ? r * N + i : k == 1 ? i * N + r : i];
      assert_int_equal(((int32_t *)t->data)[r], sum);
    }
    tensor_release(x);
    tensor_release(t);
    free(text);
  }
  unsetenv("WEFT_VINTERP");
}

/* Elements that are all the same, taken in another order than they lie. */
static void test_of_constants(void **state) {
  (void)state;
  Tensor *t = answer(
      "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
      "  %u = stablehlo.constant dense<5> : tensor<2x8x3x2xi32>\n"
      "  %v = stablehlo.constant dense<0.5> : tensor<2x8x3x2xf32>\n"
      "  %a = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %b = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %r:2 = stablehlo.reduce(%u init: %a), (%v init: %b) across dimensions = [2, 0, 3, 1] : "
      "(tensor<2x8x3x2xi32>, tensor<2x8x3x2xf32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, "
      "tensor<f32>)\n"
      "   reducer(%k: tensor<i32>, %l: tensor<i32>) (%p: tensor<f32>, %q: tensor<f32>) {\n"
      "    %m = stablehlo.maximum %k, %l : tensor<i32>\n"
      "    %n = stablehlo.add %p, %q : tensor<f32>\n"
      "    stablehlo.return %m, %n : tensor<i32>, tensor<f32>\n"
      "  }\n"
      "  return %r#1 : tensor<f32>\n}\n",
      0);
  assert_float_equal(*(float *)t->data, 48, 0);
  tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_order),     cmocka_unit_test(beginnings),
      cmocka_unit_test(test_all),     cmocka_unit_test(test_rows),
      cmocka_unit_test(test_columns), cmocka_unit_test(test_moments),
      cmocka_unit_test(test_product), cmocka_unit_test(test_of_constants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
