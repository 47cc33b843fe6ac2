/* The value half of the interpreter: functions against 300-bit arithmetic, and programs that check
 * themselves. */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>

#include "interp/ewise_priv.h"
#include "interp/values_points.inc"
#include "stablehlo/stablehlo.h"
#include <cmocka.h>

/* ---- functions ------------------------------------------------------------------------------- */

static double ulps(double got, double want) {
  if (got == want) return 0;
  double unit = nextafter(fabs(want), INFINITY) - fabs(want);
  return fabs(got - want) / unit;
}

static void resolve(const char *name, DType in, DType out, int n_in, EwKernel *k) {
  Op op = {.kind = op_kind_from_name(str_from(name)), .n_operands = n_in};
  DType types[2] = {in, in};
  assert_int_not_equal(op.kind, OP_UNKNOWN);
  assert_true(ewise_resolve(&op, types, out, k));
}

static const int64_t ones[3] = {1, 1, 1};

/* Half a unit of f64 is what rounding costs; the rest is the function's. Powers of f32 and less
 * must be right but for ties. */
static void points_real(void **state) {
  (void)state;
  static const struct {
    const char *op;
    double x, want;
  } points[] = {POINTS1};
  static const DType narrow[] = {DT_F32, DT_BF16, DT_F16, DT_F8E4M3FN, DT_F8E5M2};
  for (int i = 0; i < COUNT_OF(points); i++) {
    EwKernel k;
    resolve(points[i].op, DT_F64, DT_F64, 1, &k);
    double r;
    const void *in[] = {&points[i].x};
    ewise_apply(&k, 1, &r, in, ones);
    if (ulps(r, points[i].want) > 1)
      fail_msg("%s(%a) is %a, expected %a", points[i].op, points[i].x, r, points[i].want);
    for (int t = 0; t < COUNT_OF(narrow);
         t++) { /* narrower: the f64 value at the rounded argument, rounded */
      double x = round_to(narrow[t], points[i].x), exact, got;
      uint64_t bits[2] = {float_encode(narrow[t], x), 0};
      float f = (float)x;
      const void *in_64[] = {&x}, *in_n[] = {narrow[t] == DT_F32 ? (void *)&f : (void *)bits};
      ewise_apply(&k, 1, &exact, in_64, ones);
      EwKernel n;
      resolve(points[i].op, narrow[t], narrow[t], 1, &n);
      ewise_apply(&n, 1, &bits[1], in_n, ones);
      load_d(narrow[t], &bits[1], 0, 1, 1, &got);
      double want = round_to(narrow[t], exact);
      /* tanh of f32 is an approximation on purpose (ewise_real.c): within 3 units of 24 bits */
      bool loose = narrow[t] == DT_F32 && !strcmp(points[i].op, "stablehlo.tanh");
      if (loose ? fabs(got - want) > 3 * 0x1p-24 * fabs(want) * 2
                : got != want && !(isnan(got) && isnan(want)))
        fail_msg("%s %s(%a) is %a, expected %a", dtype_name(narrow[t]), points[i].op, x, got, want);
    }
  }
}

static void points_binary(void **state) {
  (void)state;
  static const struct {
    const char *op;
    double x, y, want;
  } points[] = {POINTS2};
  for (int i = 0; i < COUNT_OF(points); i++) {
    EwKernel k;
    resolve(points[i].op, DT_F64, DT_F64, 2, &k);
    double r;
    const void *in[] = {&points[i].x, &points[i].y};
    ewise_apply(&k, 1, &r, in, ones);
    if (ulps(r, points[i].want) > 2)
      fail_msg("%s(%a, %a) is %a, expected %a", points[i].op, points[i].x, points[i].y, r,
               points[i].want);
  }
}

static void points_complex(void **state) {
  (void)state;
  static const struct {
    const char *op;
    double re, im, want_re, want_im;
  } points[] = {POINTSZ};
  for (int i = 0; i < COUNT_OF(points); i++) {
    EwKernel k;
    resolve(points[i].op, DT_C128, DT_C128, 1, &k);
    double r[2];
    const void *in[] = {&points[i].re};
    ewise_apply(&k, 1, r, in, ones);
    if (ulps(r[0], points[i].want_re) > 3 || ulps(r[1], points[i].want_im) > 3)
      fail_msg("%s(%a, %a) is (%a, %a), expected (%a, %a)", points[i].op, points[i].re,
               points[i].im, r[0], r[1], points[i].want_re, points[i].want_im);
  }
}

/* A stride of 0, chunk edges and parallel blocks give what single elements give. */
static void lengths(void **state) {
  (void)state;
  static const char *const ops[] = {"stablehlo.add", "stablehlo.power", "stablehlo.maximum"};
  static const DType types[] = {DT_F32, DT_BF16, DT_I32, DT_U8, DT_I4, DT_C64};
  enum { N = 200 };
  for (int o = 0; o < COUNT_OF(ops); o++)
    for (int t = 0; t < COUNT_OF(types); t++) {
      char a[N * 8], b[N * 8], all[N * 8], one[16];
      for (int i = 0; i < N; i++) {
        Cx x = {i % 7, 1}, y = {i % 5 - 2, 0};
        double dx = (double)x.re, dy = (double)y.re;
        if (dtype_is_complex(types[t]))
          store_z(types[t], a, i, 1, &x), store_z(types[t], b, i, 1, &y);
        else store_d(types[t], a, i, 1, &dx), store_d(types[t], b, i, 1, &dy);
      }
      EwKernel k;
      resolve(ops[o], types[t], types[t], 2, &k);
      size_t w = (size_t)dtype_bytes(types[t]);
      for (int scalar = 0; scalar < 2; scalar++) {
        int64_t stride[2] = {1, !scalar};
        const void *in[] = {a, b};
        ewise_apply(&k, N, all, in, stride);
        for (size_t i = 0; i < N; i++) {
          const void *in1[] = {a + i * w, scalar ? b : b + i * w};
          ewise_apply(&k, 1, one, in1, ones);
          assert_memory_equal(one, all + i * w, w);
        }
      }
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

static Err *run_text(const char *text, Shards *results, int n) {
  Module *m;
  Err *e = stablehlo_read_text("test", str_from(text), &m);
  if (e) return e;
  e = interp_run(m, STR(""), NULL, NULL, 0, results, n);
  module_free(m);
  return e;
}

static void run(const char *body) {
  char *text = xasprintf("func.func @main() {\n%s\n  return\n}\n", body);
  Err *e = run_text(text, NULL, 0);
  if (e) {
    char *why = err_text(e);
    fail_msg("%s\nin:\n%s", why, text);
  }
  free(text);
}

/* Programs: a line of them to a line. */
/* clang-format off */
#define C(name, value, type) "  %" name " = stablehlo.constant dense<" value "> : " type "\n"
#define EQ(name, value, type) "  check.expect_eq_const %" name ", dense<" value "> : " type "\n"

static void integers(void **state) {
  (void)state;
  /* division by zero, the most negative number, shifts by the width: as XLA */
  run(C("a", "[7, -7, -128, 5]", "tensor<4xi8>") C("b", "[-2, 0, -1, 3]", "tensor<4xi8>")
      "  %d = stablehlo.divide %a, %b : tensor<4xi8>\n" EQ("d", "[-3, -1, -128, 1]", "tensor<4xi8>")
      "  %r = stablehlo.remainder %a, %b : tensor<4xi8>\n" EQ("r", "[1, -7, 0, 2]", "tensor<4xi8>")
      C("s", "[1, 8, 7, -1]", "tensor<4xi8>")
      "  %l = stablehlo.shift_left %a, %s : tensor<4xi8>\n" EQ("l", "[14, 0, 0, 0]", "tensor<4xi8>")
      "  %x = stablehlo.shift_right_arithmetic %a, %s : tensor<4xi8>\n"
      EQ("x", "[3, -1, -1, 0]", "tensor<4xi8>")
      "  %y = stablehlo.shift_right_logical %a, %s : tensor<4xi8>\n"
      EQ("y", "[3, 0, 1, 0]", "tensor<4xi8>"));
  run(C("a", "[255, 0, 200]", "tensor<3xui8>") C("b", "[2, 0, 100]", "tensor<3xui8>")
      "  %s = stablehlo.add %a, %b : tensor<3xui8>\n" EQ("s", "[1, 0, 44]", "tensor<3xui8>")
      "  %d = stablehlo.divide %a, %b : tensor<3xui8>\n" EQ("d", "[127, 255, 2]", "tensor<3xui8>")
      "  %n = stablehlo.negate %b : tensor<3xui8>\n" EQ("n", "[254, 0, 156]", "tensor<3xui8>"));
  run(C("a", "[7, -8, 3]", "tensor<3xi4>") C("b", "[1, -1, 3]", "tensor<3xi4>")
      "  %s = stablehlo.add %a, %b : tensor<3xi4>\n" EQ("s", "[-8, 7, 6]", "tensor<3xi4>")
      "  %p = stablehlo.popcnt %a : tensor<3xi4>\n" EQ("p", "[3, 1, 2]", "tensor<3xi4>")
      "  %z = stablehlo.count_leading_zeros %b : tensor<3xi4>\n"
      EQ("z", "[3, 0, 2]", "tensor<3xi4>"));
  run(C("a", "18446744073709551615", "tensor<ui64>") C("b", "2", "tensor<ui64>")
      "  %m = stablehlo.maximum %a, %b : tensor<ui64>\n"
      EQ("m", "18446744073709551615", "tensor<ui64>")
      "  %h = \"chlo.mulhi\"(%a, %b) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>\n"
      EQ("h", "1", "tensor<ui64>")
      "  %c = stablehlo.compare LT, %a, %b, UNSIGNED : (tensor<ui64>, tensor<ui64>) -> tensor<i1>\n"
      EQ("c", "false", "tensor<i1>"));
}

static void floats(void **state) {
  (void)state;
  run(C("a", "[0.0, -0.0, 0x7FC00000, 1.0]", "tensor<4xf32>")
      C("b", "[-0.0, 0.0, 1.0, 0x7FC00000]", "tensor<4xf32>")
      "  %m = stablehlo.maximum %a, %b : tensor<4xf32>\n"
      "  %i = stablehlo.bitcast_convert %m : (tensor<4xf32>) -> tensor<4xi32>\n"
      EQ("i", "[0, 0, 2143289344, 2143289344]", "tensor<4xi32>")
      "  %t = stablehlo.compare LT, %b, %a, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> "
        "tensor<4xi1>\n"
      EQ("t", "[true, false, true, false]", "tensor<4xi1>")
      "  %f = stablehlo.compare NE, %a, %b, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> "
        "tensor<4xi1>\n"
      EQ("f", "[false, false, true, true]", "tensor<4xi1>"));
  /* one rounding: 2^53 + 1 and 2^24 + 1 + a bit are halfway cases only if rounded twice */
  run(C("a", "[9007199254740993, 16777217, 4611686293305294849]", "tensor<3xi64>")
      "  %f = stablehlo.convert %a : (tensor<3xi64>) -> tensor<3xf32>\n"
      EQ("f", "[0x5A000000, 0x4B800000, 0x5E800001]", "tensor<3xf32>"));
  run(C("a", "[0x7FC00000, 300.0, -300.0, 3.99]", "tensor<4xf32>")
      "  %i = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi8>\n" EQ("i", "[0, 127, -128, "
        "3]", "tensor<4xi8>")
      "  %u = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xui8>\n" EQ("u", "[0, 255, 0, "
        "3]", "tensor<4xui8>")
      "  %b = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi1>\n"
      EQ("b", "[true, true, true, true]", "tensor<4xi1>"));
  run(C("a", "[65520.0, 1.0e-8, 1.00048828125, 0x7FC00000]", "tensor<4xf32>")
      "  %r = stablehlo.reduce_precision %a, format = e5m10 : tensor<4xf32>\n"
      "  %s = stablehlo.slice %r [0:3] : (tensor<4xf32>) -> tensor<3xf32>\n"
      EQ("s", "[0x7F800000, 0.0, 1.0]", "tensor<3xf32>"));
  /* formats that are reduced as f32: the values of JAX 0.10 */
#define REDUCED(t) \
  run(C("a", "[13.0, 1.375, 0.0625, -2.75]", "tensor<4xf8E4M3FN>") \
      "  %t = stablehlo.convert %a : (tensor<4xf8E4M3FN>) -> tensor<4x" t ">\n" \
      "  %r = stablehlo.reduce_precision %t, format = e3m1 : tensor<4x" t ">\n" \
      "  %w = stablehlo.convert %r : (tensor<4x" t ">) -> tensor<4xf32>\n" \
      EQ("w", "[12.0, 1.5, 0.0, -3.0]", "tensor<4xf32>"))
  REDUCED("f8E4M3B11FNUZ");
  REDUCED("f8E5M2FNUZ");
  run(C("a", "[13.0, 1.375, 0.0625, -2.75]", "tensor<4xf8E4M3FN>")
      "  %r = stablehlo.reduce_precision %a, format = e3m1 : tensor<4xf8E4M3FN>\n"
      EQ("r", "[12.0, 1.5, 0.0, -3.0]", "tensor<4xf8E4M3FN>"));
  run(C("a", "[1.0, 0.0, -1.0]", "tensor<3xf64>") C("b", "[2.0, -1.0, -1.0]", "tensor<3xf64>")
      "  %n = \"chlo.next_after\"(%a, %b) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>\n"
      EQ("n", "[0x3FF0000000000001, 0x8000000000000001, -1.0]", "tensor<3xf64>"));
  run(C("lo", "0.0", "tensor<f32>") C("hi", "1.0", "tensor<f32>")
      C("x", "[[-1.0, 0.5], [2.0, 0x7F800000]]", "tensor<2x2xf32>")
      "  %r = stablehlo.clamp %lo, %x, %hi : (tensor<f32>, tensor<2x2xf32>, tensor<f32>) -> "
        "tensor<2x2xf32>\n"
      EQ("r", "[[0.0, 0.5], [1.0, 1.0]]", "tensor<2x2xf32>"));
  run( /* zero elements */
      "  %a = stablehlo.constant dense<> : tensor<0x3xf32>\n  %r = stablehlo.tanh %a : "
        "tensor<0x3xf32>\n"
      "  check.expect_eq_const %r, dense<> : tensor<0x3xf32>\n");
}

/* Sizes of dynamic shapes, which the verifier does not see: an error where they do not fit, and places right where they do. */
static void paddings(void **state) {
  (void)state;
  static const struct {
    const char *low, *high, *interior;
    int left; /* the one element of the result; 0: it does not fit */
  } pads[] = {{"9223372036854775807", "9223372036854775807", "0", 0},
              {"-9223372036854775803", "9223372036854775803", "9223372036854775807", 0},
              {"0", "9223372036854775807", "0", 0},
              {"-9223372036854775804", "9223372036854775803", "0", 7},
              {"-4611686018427387905", "0", "4611686018427387904", 2}};
  for (int i = 0; i < COUNT_OF(pads); i++) {
    char *text = xasprintf(
        "func.func @main() {\n"
        "  %%x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>\n"
        "  %%z = stablehlo.constant dense<7> : tensor<i32>\n"
        "  %%l = stablehlo.constant dense<%s> : tensor<1xi64>\n"
        "  %%h = stablehlo.constant dense<%s> : tensor<1xi64>\n"
        "  %%i = stablehlo.constant dense<%s> : tensor<1xi64>\n"
        "  %%r = stablehlo.dynamic_pad %%x, %%z, %%l, %%h, %%i : (tensor<2xi32>, tensor<i32>, "
        "tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32>\n"
        "  check.expect_eq_const %%r, dense<%d> : tensor<1xi32>\n  return\n}\n",
        pads[i].low, pads[i].high, pads[i].interior, pads[i].left);
    Err *e = run_text(text, NULL, 0);
    if (pads[i].left && e) fail_msg("%s", err_text(e));
    if (!pads[i].left && (!e || !strstr(e->msg, "64 bits"))) fail_msg("no error of pad %d", i);
    err_free(e);
    free(text);
  }
}

static void windows(void **state) {
  (void)state;
  static const char *const programs[] = {
      "  %n = stablehlo.constant dense<4> : tensor<1xi64>\n"
      "  %x = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %r = \"stablehlo.reduce_window\"(%x, %z) ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %s = stablehlo.add %a, %b : tensor<f32>\n"
      "    stablehlo.return %s : tensor<f32>\n"
      "  }) {window_dimensions = array<i64: 2>, base_dilations = array<i64: 9223372036854775807>}"
      " : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>\n",
      "  %x = stablehlo.constant dense<1.0> : tensor<1x4x1xf32>\n"
      "  %w = stablehlo.constant dense<1.0> : tensor<3x1x1xf32>\n"
      "  %p = stablehlo.constant dense<[[9223372036854775807, 9223372036854775807]]> : "
      "tensor<1x2xi64>\n"
      "  %r = \"stablehlo.dynamic_conv\"(%x, %w, %p) {dimension_numbers = "
      "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, "
      "batch_group_count = 1 : i64} : (tensor<1x4x1xf32>, tensor<3x1x1xf32>, tensor<1x2xi64>) -> "
      "tensor<?x?x?xf32>\n",
  };
  for (int i = 0; i < COUNT_OF(programs); i++) {
    char *text = xasprintf("func.func @main() {\n%s  return\n}\n", programs[i]);
    Err *e = run_text(text, NULL, 0);
    if (!e || !strstr(e->msg, "64 bits")) fail_msg("no error of program %d", i);
    err_free(e);
    free(text);
  }
}

static void bits(void **state) {
  (void)state;
  run(C("a", "[305419896]", "tensor<1xi32>")
      "  %n = stablehlo.bitcast_convert %a : (tensor<1xi32>) -> tensor<1x8xui4>\n"
      EQ("n", "[[8, 7, 6, 5, 4, 3, 2, 1]]", "tensor<1x8xui4>")
      "  %b = stablehlo.bitcast_convert %n : (tensor<1x8xui4>) -> tensor<1xi32>\n"
      EQ("b", "[305419896]", "tensor<1xi32>")
      "  %h = stablehlo.bitcast_convert %a : (tensor<1xi32>) -> tensor<1x2xi16>\n"
      EQ("h", "[[22136, 4660]]", "tensor<1x2xi16>"));
  run(C("a", "[(1.0, 2.0)]", "tensor<1xcomplex<f64>>")
      "  %n = stablehlo.bitcast_convert %a : (tensor<1xcomplex<f64>>) -> tensor<1x2xf64>\n"
      EQ("n", "[[1.0, 2.0]]", "tensor<1x2xf64>")
      "  %z = stablehlo.bitcast_convert %n : (tensor<1x2xf64>) -> tensor<1xcomplex<f64>>\n"
      EQ("z", "[(1.0, 2.0)]", "tensor<1xcomplex<f64>>"));
}

/* clang-format on */
/* Transforms of a prime above 64 (Bluestein) and of 12 (mixed radix) undo each other and keep the
 * sum in element 0. */
static void fft(void **state) {
  (void)state;
  static const int sizes[] = {1, 2, 12, 67, 97, 210};
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    char *body =
        xasprintf("  %%i = stablehlo.iota dim = 0 : tensor<%dxf64>\n"
                  "  %%z = stablehlo.complex %%i, %%i : tensor<%dxcomplex<f64>>\n"
                  "  %%f = stablehlo.fft %%z, type = FFT, length = [%d] : "
                  "(tensor<%dxcomplex<f64>>) -> "
                  "tensor<%dxcomplex<f64>>\n"
                  "  %%b = stablehlo.fft %%f, type = IFFT, length = [%d] : "
                  "(tensor<%dxcomplex<f64>>) -> "
                  "tensor<%dxcomplex<f64>>\n"
                  "  check.expect_almost_eq %%b, %%z, tolerance = 1.0e-11 : "
                  "tensor<%dxcomplex<f64>>\n"
                  "  %%s = stablehlo.slice %%f [0:1] : (tensor<%dxcomplex<f64>>) -> "
                  "tensor<1xcomplex<f64>>\n"
                  "  check.expect_almost_eq_const %%s, dense<(%d.0, %d.0)> : "
                  "tensor<1xcomplex<f64>>\n",
                  sizes[i], sizes[i], sizes[i], sizes[i], sizes[i], sizes[i], sizes[i], sizes[i],
                  sizes[i], sizes[i], sizes[i] * (sizes[i] - 1) / 2, sizes[i] * (sizes[i] - 1) / 2);
    run(body);
    free(body);
  }
}

/* clang-format off */
static void quantized(void **state) {
  (void)state;
#define Q "tensor<3x!quant.uniform<i8:f32, 0.5:10>>"
  run(C("a", "[1.0, -2.25, 100.0]", "tensor<3xf32>")
      "  %q = stablehlo.uniform_quantize %a : (tensor<3xf32>) -> " Q "\n"
      "  %s = stablehlo.add %q, %q : " Q "\n"
      "  %r = stablehlo.uniform_dequantize %s : (" Q ") -> tensor<3xf32>\n"
      /* 1 -> 12; -2.25 -> 5.5 rounds to 6, which is -2; 100 saturates at 127, which is 58.5; the
       * sum does again */
      EQ("r", "[2.0, -4.0, 58.5]", "tensor<3xf32>"));
}

static void checks_fail(void **state) {
  (void)state;
  static const char *const wrong[] = {
      EQ("a", "[1.0, 2.5]", "tensor<2xf32>"),
      "  check.expect_almost_eq_const %a, dense<[1.0, 2.001]> : tensor<2xf32>\n",
      "  check.expect_close %a, %b, max_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>\n",
      "  stablehlo.custom_call @check.expect_eq(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> ()\n",
      "  %n = stablehlo.divide %z, %z : tensor<2xf32>\n  check.expect_eq %n, %n : tensor<2xf32>\n",
  };
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    char *text = xasprintf("func.func @main() {\n%s%s  return\n}\n",
                           C("a", "[1.0, 2.0]", "tensor<2xf32>")
                           C("b", "[1.0, 2.000001]", "tensor<2xf32>")
                           C("z", "0.0", "tensor<2xf32>"), wrong[i]);
    Err *e = run_text(text, NULL, 0);
    assert_non_null(e);
    assert_int_equal(e->code, ERR_ABORTED);
    assert_non_null(strstr(e->msg, "element ["));
    err_free(e);
    free(text);
  }
}

/* clang-format on */
/* ---- custom calls: a = q r, rows of a = l u, a v = v w --------------------------------------- */

static Tensor *matrix(DType t, int64_t m, int64_t n) {
  Tensor *a = tensor_make(t, 2, (int64_t[]){m, n});
  uint32_t s = 12345;
  for (int64_t i = 0; i < m * n; i++) {
    Cx v;
    s = s * 1664525 + 1013904223, v.re = (long double)(s >> 8) / (1 << 24) - 0.5L;
    s = s * 1664525 + 1013904223, v.im = (long double)(s >> 8) / (1 << 24) - 0.5L;
    double d = (double)v.re;
    if (dtype_is_complex(t)) store_z(t, a->data, i, 1, &v);
    else store_d(t, a->data, i, 1, &d);
  }
  return a;
}
static Cx at(const Tensor *t, int64_t i, int64_t j) {
  Cx v;
  load_z(t->dtype, t->data, i * t->dims[1] + j, 1, 1, &v);
  return v;
}
static void near(Cx got, Cx want) {
  if (!(hypotl(got.re - want.re, got.im - want.im) < 1e-12L))
    fail_msg("(%Lg, %Lg), expected (%Lg, %Lg)", got.re, got.im, want.re, want.im);
}

static void call(const char *target, int n_in, int n_out, Tensor **in, Tensor **out) {
  Op op = {.kind = OP_CUSTOM_CALL, .n_operands = n_in, .n_results = n_out};
  CustomCallFn fn = custom_call_find(str_from(target));
  assert_non_null(fn);
  Err *e = fn(&op, in, out);
  if (e) fail_msg("%s", e->msg);
}

static void linear_algebra(void **state) {
  (void)state;
  static const DType types[] = {DT_F64, DT_C128};
  for (int t = 0; t < 2; t++) {
    enum { M = 7, N = 5 };
    Tensor *a = matrix(types[t], M, N), *packed[2], *q[1], *lu[3];
    call("Qr", 1, 2, &a, packed);
    call("ProductOfElementaryHouseholderReflectors", 2, 1, packed, q);
    for (int64_t i = 0; i < M; i++)
      for (int64_t j = 0; j < N; j++) {
        Cx s = {0, 0}, o = {0, 0};
        for (int64_t k = 0; k <= j; k++) {
          Cx p = cx_mul(at(q[0], i, k), at(packed[0], k, j));
          s.re += p.re, s.im += p.im;
        }
        near(s, at(a, i, j));
        for (int64_t k = 0; k < M && i < N; k++) { /* columns are orthonormal */
          Cx c = at(q[0], k, i), p = cx_mul((Cx){c.re, -c.im}, at(q[0], k, j));
          o.re += p.re, o.im += p.im;
        }
        if (i < N) near(o, (Cx){i == j, 0});
      }
    call("LuDecomposition", 1, 3, &a, lu);
    for (int64_t i = 0; i < M; i++)
      for (int64_t j = 0; j < N; j++) {
        Cx s = {0, 0};
        for (int64_t k = 0; k <= MIN(i, j); k++) {
          Cx p = cx_mul(k == i ? (Cx){1, 0} : at(lu[0], i, k), at(lu[0], k, j));
          s.re += p.re, s.im += p.im;
        }
        near(s, at(a, ((int32_t *)lu[2]->data)[i], j));
      }
    Tensor *h = matrix(types[t], N, N), *vw[2];
    for (int64_t i = 0; i < N; i++)
      for (int64_t j = i; j < N; j++) { /* Hermitian */
        Cx v = at(h, j, i), c = {v.re, i == j ? 0 : -v.im};
        double d = (double)v.re;
        if (t) store_z(types[t], h->data, i * N + j, 1, &c);
        else store_d(types[t], h->data, i * N + j, 1, &d);
      }
    call("Eigh", 1, 2, &h, vw);
    const double *w = vw[1]->data;
    for (int64_t j = 0; j < N; j++) {
      assert_true(j == 0 || w[j - 1] <= w[j]);
      for (int64_t i = 0; i < N; i++) {
        Cx s = {0, 0}, v = at(vw[0], i, j);
        for (int64_t k = 0; k < N; k++) {
          Cx p = cx_mul(at(h, i, k), at(vw[0], k, j));
          s.re += p.re, s.im += p.im;
        }
        near(s, (Cx){v.re * (long double)w[j], v.im * (long double)w[j]});
      }
    }
    Tensor *all[] = {a, packed[0], packed[1], q[0], lu[0], lu[1], lu[2], h, vw[0], vw[1]};
    for (int i = 0; i < COUNT_OF(all); i++) tensor_release(all[i]);
  }
}

/* clang-format off */
/* rng: within range, different from call to call, the same from run to run. */
static void random_numbers(void **state) {
  (void)state;
  const char *text =
      "func.func @main() -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xi32>) {\n"
      C("a", "-1.0", "tensor<f32>") C("b", "3.0", "tensor<f32>") C("n", "[1000]", "tensor<1xi64>")
      C("i", "5", "tensor<i32>") C("j", "8", "tensor<i32>")
      "  %u = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, "
        "tensor<1xi64>) -> tensor<1000xf32>\n"
      "  %g = stablehlo.rng %a, %b, %n, distribution = NORMAL : (tensor<f32>, tensor<f32>, "
        "tensor<1xi64>) -> tensor<1000xf32>\n"
      "  %k = stablehlo.rng %i, %j, %n, distribution = UNIFORM : (tensor<i32>, tensor<i32>, "
        "tensor<1xi64>) -> tensor<1000xi32>\n"
      "  return %u, %g, %k : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xi32>\n}\n";
  /* clang-format on */
  Shards one[3] = {0}, two[3] = {0};
  assert_null(run_text(text, one, 3));
  assert_null(run_text(text, two, 3));
  double sum = 0, sum2 = 0, mean = 0;
  for (int i = 0; i < 1000; i++) {
    float u = ((float *)one[0].t[0]->data)[i], g = ((float *)one[1].t[0]->data)[i];
    int32_t k = ((int32_t *)one[2].t[0]->data)[i];
    assert_true(u >= -1 && u < 3 && k >= 5 && k < 8);
    mean += (double)u / 1000;
    sum += (double)g / 1000;
    sum2 += ((double)g + 1) * ((double)g + 1) / 1000;
  }
  assert_true(fabs(mean - 1) < 0.15 && fabs(sum + 1) < 0.4 && fabs(sum2 - 9) < 1.5);
  for (int i = 0; i < 3; i++) {
    assert_memory_equal(one[i].t[0]->data, two[i].t[0]->data, 4000);
    shards_free(&one[i]);
    shards_free(&two[i]);
  }
}

/* Of floats of up to 8 bits: upwards from each number the next is the least that is larger. */
static void next_of_small_floats(void **state) {
  (void)state;
  int types = 0;
  for (DType t = 1; t < DT_COUNT; t++) {
    if (!dtype_is_float(t) || dtype_bits(t) > 8) continue;
    int codes = 1 << dtype_bits(t);
    uint8_t top = 0;
    for (int u = 0; u < codes; u++)
      if (float_decode(t, (uint64_t)u) > float_decode(t, top)) top = (uint8_t)u;
    EwKernel k;
    resolve("chlo.next_after", t, t, 2, &k);
    for (int u = 0; u < codes; u++) {
      double x = float_decode(t, (uint64_t)u), least = float_decode(t, top), got;
      if (isnan(x) || x >= least) continue;
      for (int v = 0; v < codes; v++)
        if (float_decode(t, (uint64_t)v) > x) least = fmin(least, float_decode(t, (uint64_t)v));
      uint8_t from = (uint8_t)u, to = 0;
      const void *in[] = {&from, &top};
      ewise_apply(&k, 1, &to, in, ones);
      got = float_decode(t, to);
      if (got != least) fail_msg("%s: after %g comes %g, not %g", dtype_name(t), x, got, least);
    }
    types++;
  }
  assert_true(types >= 8);
}

/* What the verifier lets through the interpreter can compute: every element-wise operation of ops.def, of one type for operands
 * and result, at every element type. */
static void every_type_has_a_meaning(void **state) {
  (void)state;
  int checked = 0;
  for (OpKind kind = 1; kind < OP_COUNT; kind++) {
    const OpInfo *info = &op_info[kind];
    if (info->cls != OC_EWISE || info->regions || info->operands < 1 || info->operands > 2 ||
        *info->attrs)
      continue;
    for (DType t = 1; t < DT_COUNT; t++) {
      if (dtype_class(t) == DC_OTHER) continue;
      const char *name = dtype_name(t), *two = info->operands == 2 ? ", %a" : "";
      char *type = xasprintf("tensor<3x%s>", name);
      char *text = xasprintf("func.func @main(%%a: %s) -> %s {\n"
                             "  %%r = \"%s\"(%%a%s) : (%s%s%s) -> %s\n  return %%r : %s\n}\n",
                             type, type, info->name, two, type, *two ? ", " : "", *two ? type : "",
                             type, type);
      Module *m = NULL;
      Err *e = stablehlo_read_text("case", str_from(text), &m);
      if (!e) e = ir_verify(m);
      if (!e) {
        DType types[2] = {t, t};
        EwKernel k;
        if (!ewise_resolve(module_main(m)->body->first, types, t, &k))
          fail_msg("%s has no meaning for %s", info->name, name);
        checked++;
      }
      err_free(e);
      if (m) module_free(m);
      free(text);
      free(type);
    }
  }
  assert_true(checked > 500);
}

/* What computes floats and is not exact has a value from outside (tools/values_points.py): a new row of ops.def, too. */
static void every_function_has_a_point(void **state) {
  (void)state;
  static const struct {
    const char *op;
    double x, want;
  } one[] = {POINTS1};
  static const struct {
    const char *op;
    double x, y, want;
  } two[] = {POINTS2};
  static const char exact[] = /* or no function of numbers */
      " ABS CEIL CHLO_CONJ CHLO_IS_INF CHLO_IS_NEG_INF CHLO_IS_POS_INF CHLO_NEXT_AFTER CHLO_SQUARE "
      "CONVERT "
      "FLOOR IMAG IS_FINITE NEGATE REAL ROUND_NEAREST_AFZ ROUND_NEAREST_EVEN SIGN ADD SUBTRACT "
      "MULTIPLY DIVIDE REMAINDER MAXIMUM MINIMUM ";
  for (OpKind kind = 0; kind < OP_COUNT; kind++) {
    const OpInfo *info = &op_info[kind];
    char *id = xasprintf(" %s ", info->id);
    bool known = strstr(exact, id);
    free(id);
    if (known || info->cls != OC_EWISE || info->operands < 1 || info->operands > 2) continue;
    EwKernel k;
    Op op = {.kind = kind, .n_operands = info->operands};
    if (!ewise_resolve(&op, (DType[]){DT_F64, DT_F64}, DT_F64, &k)) continue;
    for (int i = 0; i < COUNT_OF(one); i++) known |= !strcmp(one[i].op, info->name);
    for (int i = 0; i < COUNT_OF(two); i++) known |= !strcmp(two[i].op, info->name);
    if (!known) fail_msg("no row of values_points.inc is of %s", info->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_function_has_a_point),
      cmocka_unit_test(points_real),
      cmocka_unit_test(points_binary),
      cmocka_unit_test(points_complex),
      cmocka_unit_test(lengths),
      cmocka_unit_test(integers),
      cmocka_unit_test(floats),
      cmocka_unit_test(paddings),
      cmocka_unit_test(windows),
      cmocka_unit_test(bits),
      cmocka_unit_test(fft),
      cmocka_unit_test(quantized),
      cmocka_unit_test(checks_fail),
      cmocka_unit_test(linear_algebra),
      cmocka_unit_test(random_numbers),
      cmocka_unit_test(every_type_has_a_meaning),
      cmocka_unit_test(next_of_small_floats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
