/* stored: what is written once and read by several kernels, rather than made again in each. Bytes are
 * libtpu 0.0.51's for the same programs. */
#include <stdlib.h>

#include "sim/estimate_test.h"

#define V "tensor<1000xf32>"
#define A "tensor<1000x1000xf32>"
#define M "tensor<1000x1000xi1>"
#define ROWS(v, x) "  %" v " = stablehlo.broadcast_in_dim %" x ", dims = [0] : (" V ") -> " A "\n"
#define LANES(v, x) "  %" v " = stablehlo.broadcast_in_dim %" x ", dims = [1] : (" V ") -> " A "\n"
#define OP(v, op, x, y) "  %" v " = stablehlo." op " %" x ", %" y " : " A "\n"
#define EXP(v, x) "  %" v " = stablehlo.exponential %" x " : " A "\n"
#define MASKED(v, x) "  %" v " = stablehlo.select %m, %" x ", %n : " M ", " A "\n"
#define REDUCED(v, x, op, init)                                               \
  "  %" v " = stablehlo.reduce(%" x " init: %" init ") applies stablehlo." op \
  " across dimensions = [1] : (" A ", tensor<f32>) -> " V "\n"
#define CONSTANTS                                        \
  "  %n = stablehlo.constant dense<-1.0e9> : " A "\n"    \
  "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n" \
  "  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
#define MASK(type)                                                        \
  "  %0 = stablehlo.constant dense<0> : tensor<1000x1000x" type ">\n"     \
  "  %m = stablehlo.compare GT, %d, %0, SIGNED : (tensor<1000x1000x" type \
  ">, tensor<1000x1000x" type ">) -> " M "\n"

/* A mask made of integers that several sums ask for is a quarter of their size: it is stored. */
static void test_mask(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%d: tensor<1000x1000xi32>, %a: " V ", %b: " V ", %c: " V ") -> " V
      " {\n" CONSTANTS MASK("i32") ROWS("ar", "a") LANES("bl", "b") LANES("cl", "c")
          OP("s", "add", "ar", "bl") MASKED("sm", "s") REDUCED("x", "sm", "maximum", "i")
              OP("p", "multiply", "ar", "bl") ROWS("xr", "x") OP("px", "subtract", "p", "xr")
                  MASKED("pm", "px") EXP("pe", "pm") REDUCED("y", "pe", "add", "z")
                      OP("q", "multiply", "ar", "cl") ROWS("yr", "y")
                          OP("qy", "subtract", "q", "yr") MASKED("qm", "qy") EXP("qe", "qm")
                              REDUCED("r", "qe", "add", "z") "  return %r : " V "\n}\n";
  peak_near(text, "tpu-v3", 5144576, 0.05);
  peak_near(text, "tpu-v5e", 5156864, 0.05);
}

#define H "tensor<1000x96xbf16>"
#define P "tensor<1000x1000xbf16>"
/* A softmax of scores that are made of vectors, for two products: stored where the vector unit is slow
 * beside memory. */
static void test_scores_of_vectors(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%d: tensor<1000x1000xi8>, %a: " V ", %b: " V ", %h: " H ", %k: " H
      ") -> (" H ", " H ") {\n" CONSTANTS MASK("i8") ROWS("ar", "a") LANES("bl", "b")
          OP("s", "add", "ar", "bl") MASKED("sm", "s") REDUCED("x", "sm", "maximum", "i")
              ROWS("xr", "x") OP("sx", "subtract", "sm",
                                 "xr") EXP("e", "sx") REDUCED("t", "e", "add", "z") ROWS("tr", "t")
                  OP("q", "divide", "e",
                     "tr") "  %p = stablehlo.convert %q : (" A ") -> " P "\n"
                           "  %y = stablehlo.dot_general %p, %h, contracting_dims = [1] x [0] : (" P
                           ", " H ") -> " H "\n"
                           "  %w = stablehlo.dot_general %p, %k, contracting_dims = [0] x [0] : (" P
                           ", " H ") -> " H "\n"
                           "  return %y, %w : " H ", " H "\n}\n";
  peak_near(text, "tpu-v4", 5300736, 0.05);
  peak_near(text, "tpu-v5e", 3252736, 0.05);
}

/* What a depthwise convolution wrote with the batch in sublanes, less its rows' sums, for a product and the
 * gradient of its weight: stored where the product takes a side of the image into its tiles, made again
 * where it takes the batch. */
static void test_turned(void **state) {
  (void)state;
  static const struct {
    int batch, side, c;
    const char *chip;
    double peak;
  } cases[] = {{8, 28, 96, "tpu-v5e", 8954368},
               {8, 28, 96, "tpu-v4", 8954368},
               {16, 14, 192, "tpu-v5e", 9060864},
               {16, 15, 192, "tpu-v4", 10256896},
               {32, 14, 128, "tpu-v6e", 10158112}};
  char text[4000];
  for (int i = 0; i < COUNT_OF(cases); i++) {
    int b = cases[i].batch, side = cases[i].side, c = cases[i].c;
    snprintf(
        text, sizeof text,
        "!x = tensor<%dx%dx%dx%dxbf16>\n!y = tensor<%dx%dx%dx%dxf32>\n"
        "!r = tensor<%dx%dx%dxf32>\n!h = tensor<%dx%dx%dx%dxbf16>\n!g = tensor<%dx%dx%dx%dxf32>\n"
        "!k = tensor<7x7x1x%dxbf16>\n!w = tensor<%dx%dxbf16>\n!s = tensor<%dxf32>\n"
        "func.func public @main(%%x: !x, %%k: !k, %%w: !w) -> (!s, !w) {\n"
        "  %%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %%0 = stablehlo.convolution(%%x, %%k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, "
        "1, "
        "f], window = {pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = "
        "%d : i64} : (!x, !k) -> !x\n"
        "  %%1 = stablehlo.convert %%0 : (!x) -> !y\n"
        "  %%2 = stablehlo.reduce(%%1 init: %%z) applies stablehlo.add across dimensions = [3] : "
        "(!y, tensor<f32>) -> !r\n"
        "  %%3 = stablehlo.broadcast_in_dim %%2, dims = [0, 1, 2] : (!r) -> !y\n"
        "  %%4 = stablehlo.subtract %%1, %%3 : !y\n"
        "  %%5 = stablehlo.convert %%4 : (!y) -> !x\n"
        "  %%6 = stablehlo.dot_general %%5, %%w, contracting_dims = [3] x [0] : (!x, !w) -> !h\n"
        "  %%7 = stablehlo.tanh %%6 : !h\n"
        "  %%8 = stablehlo.convert %%7 : (!h) -> !g\n"
        "  %%9 = stablehlo.reduce(%%8 init: %%z) applies stablehlo.add across dimensions = [0, 1, "
        "2] : (!g, tensor<f32>) -> !s\n"
        "  %%10 = stablehlo.dot_general %%5, %%7, contracting_dims = [0, 1, 2] x [0, 1, 2] : (!x, "
        "!h) -> !w\n"
        "  return %%9, %%10 : !s, !w\n}\n",
        b, side, side, c, b, side, side, c, b, side, side, b, side, side, 4 * c, b, side, side,
        4 * c, c, c, 4 * c, 4 * c, c);
    peak_near(text, cases[i].chip, cases[i].peak, 0.001);
  }
}

/* Three heads share their keys and values: the scores, two sides of them the queries', are stored as the
 * product makes them, and their exponentials computed again for each reader. */
static void test_shared_keys(void **state) {
  (void)state;
  static const char text[] =
      "!q = tensor<2x160x2x3x64xbf16>\n!k = tensor<2x160x2x64xbf16>\n"
      "!n = tensor<2x2x3x160x160xbf16>\n!s = tensor<2x2x3x160x160xf32>\n"
      "!r = tensor<2x2x3x160xf32>\n!f = tensor<f32>\n!t = tensor<2x2x64x3x160xbf16>\n"
      "func.func public @main(%q: !q, %k: !k, %v: !k, %g: !q) -> (!q, !q, !k, !k) {\n"
      "  %z = stablehlo.constant dense<0.0> : !f\n  %i = stablehlo.constant dense<0xFF800000> : "
      "!f\n"
      "  %c = stablehlo.constant dense<0.125> : !s\n"
      "  %0 = stablehlo.dot_general %k, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = "
      "[3] "
      "x [4] : (!k, !q) -> tensor<2x2x160x160x3xbf16>\n"
      "  %1 = stablehlo.transpose %0, dims = [0, 1, 4, 3, 2] : (tensor<2x2x160x160x3xbf16>) -> !n\n"
      "  %2 = stablehlo.convert %1 : (!n) -> !s\n  %3 = stablehlo.multiply %2, %c : !s\n"
      "  %4 = stablehlo.reduce(%3 init: %i) applies stablehlo.maximum across dimensions = [4] : "
      "(!s, !f) -> !r\n"
      "  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (!r) -> !s\n"
      "  %6 = stablehlo.subtract %3, %5 : !s\n  %e = stablehlo.exponential %6 : !s\n"
      "  %7 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [4] : (!s, "
      "!f) -> !r\n"
      "  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (!r) -> !s\n"
      "  %9 = stablehlo.divide %e, %8 : !s\n  %p = stablehlo.convert %9 : (!s) -> !n\n"
      "  %10 = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = "
      "[1] x [4] : (!k, !n) -> !t\n"
      "  %11 = stablehlo.transpose %10, dims = [0, 4, 1, 3, 2] : (!t) -> !q\n"
      "  %12 = stablehlo.transpose %g, dims = [0, 2, 4, 3, 1] : (!q) -> !t\n"
      "  %13 = stablehlo.dot_general %12, %v, batching_dims = [0, 1] x [0, 2], contracting_dims = "
      "[2] x [3] : (!t, !k) -> !n\n"
      "  %14 = stablehlo.dot_general %12, %p, batching_dims = [0, 1] x [0, 1], contracting_dims = "
      "[3, 4] x [2, 3] : (!t, !n) -> tensor<2x2x64x160xbf16>\n"
      "  %15 = stablehlo.transpose %14, dims = [0, 3, 1, 2] : (tensor<2x2x64x160xbf16>) -> !k\n"
      "  %16 = stablehlo.convert %13 : (!n) -> !s\n  %17 = stablehlo.multiply %16, %9 : !s\n"
      "  %18 = stablehlo.reduce(%17 init: %z) applies stablehlo.add across dimensions = [4] : (!s, "
      "!f) -> !r\n"
      "  %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3] : (!r) -> !s\n"
      "  %20 = stablehlo.subtract %16, %19 : !s\n  %21 = stablehlo.multiply %20, %9 : !s\n"
      "  %22 = stablehlo.multiply %21, %c : !s\n  %23 = stablehlo.convert %22 : (!s) -> !n\n"
      "  %24 = stablehlo.transpose %23, dims = [0, 1, 4, 3, 2] : (!n) -> "
      "tensor<2x2x160x160x3xbf16>\n"
      "  %25 = stablehlo.dot_general %24, %k, batching_dims = [0, 1] x [0, 2], contracting_dims = "
      "[2] x [1] : (tensor<2x2x160x160x3xbf16>, !k) -> tensor<2x2x160x3x64xbf16>\n"
      "  %26 = stablehlo.transpose %25, dims = [0, 2, 1, 3, 4] : (tensor<2x2x160x3x64xbf16>) -> "
      "!q\n"
      "  %27 = stablehlo.dot_general %24, %q, batching_dims = [0, 1] x [0, 2], contracting_dims = "
      "[3, 4] x [1, 3] : (tensor<2x2x160x160x3xbf16>, !q) -> tensor<2x2x160x64xbf16>\n"
      "  %28 = stablehlo.transpose %27, dims = [0, 2, 1, 3] : (tensor<2x2x160x64xbf16>) -> !k\n"
      "  return %11, %26, %28, %15 : !q, !q, !k, !k\n}\n";
  SimReport *r = estimate(text, "tpu-v6e");
  near(r->cycles, 29440, 0.06);
  sim_report_free(r);
}

/* The scores of what a loop told round by round, their loss and its gradients. */
static const char rounds[] =
    "!h = tensor<32x16x128xbf16>\n"
    "!x = tensor<16x32x128xbf16>\n"
    "!w = tensor<128x1000xbf16>\n"
    "!z = tensor<16x32x1000xf32>\n"
    "!n = tensor<16x32x1000xbf16>\n"
    "!r = tensor<16x32xf32>\n"
    "!i = tensor<i32>\n"
    "!t = tensor<16x128xbf16>\n"
    "!a = tensor<16x32x1x1xi32>\n"
    "func.func public @main(%h: !h, %w: !w, %b: tensor<1000xbf16>, %l: tensor<16x32xi32>) -> "
    "(tensor<f32>, !x, GRAD, tensor<1000xbf16>) {\n"
    "  %c0 = stablehlo.constant dense<0> : !i\n"
    "  %c1 = stablehlo.constant dense<1> : !i\n"
    "  %c32 = stablehlo.constant dense<32> : !i\n"
    "  %o = stablehlo.constant dense<0.0> : tensor<bf16>\n"
    "  %f = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %k = stablehlo.constant dense<0.001953125> : !r\n"
    "  %s0 = stablehlo.constant dense<0.0> : !t\n"
    "  %h0 = stablehlo.constant dense<0.0> : !h\n"
    "  %z0 = stablehlo.constant dense<0.0> : !z\n"
    "  %q:4 = stablehlo.while(%x = %h, %n = %c0, %s = %s0, %y = %h0) : !h, !i, !t, !h\n"
    "  cond {\n"
    "    %1 = stablehlo.compare LT, %n, %c32, SIGNED : (!i, !i) -> tensor<i1>\n"
    "    stablehlo.return %1 : tensor<i1>\n"
    "  } do {\n"
    "    %1 = stablehlo.dynamic_slice %x, %n, %c0, %c0, sizes = [1, 16, 128] : (!h, !i, !i, !i) -> "
    "tensor<1x16x128xbf16>\n"
    "    %2 = stablehlo.reshape %1 : (tensor<1x16x128xbf16>) -> !t\n"
    "    %3 = stablehlo.add %s, %2 : !t\n"
    "    %4 = stablehlo.tanh %3 : !t\n"
    "    %5 = stablehlo.reshape %4 : (!t) -> tensor<1x16x128xbf16>\n"
    "    %6 = stablehlo.dynamic_update_slice %y, %5, %n, %c0, %c0 : (!h, tensor<1x16x128xbf16>, "
    "!i, !i, !i) -> !h\n"
    "    %7 = stablehlo.add %n, %c1 : !i\n"
    "    stablehlo.return %x, %7, %4, %6 : !h, !i, !t, !h\n"
    "  }\n"
    "  %0 = stablehlo.transpose %q#3, dims = [1, 0, 2] : (!h) -> !x\n"
    "  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0] : (!x, !w) -> !n\n"
    "  %2 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<1000xbf16>) -> !n\n"
    "  %3 = stablehlo.add %1, %2 : !n\n"
    "  %4 = stablehlo.convert %3 : (!n) -> !z\n"
    "  %5 = stablehlo.reduce(%4 init: %m) applies stablehlo.maximum across dimensions = [2] : (!z, "
    "tensor<f32>) -> !r\n"
    "  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (!r) -> !z\n"
    "  %7 = stablehlo.subtract %4, %6 : !z\n"
    "  %e = stablehlo.exponential %7 : !z\n"
    "  %8 = stablehlo.reduce(%e init: %f) applies stablehlo.add across dimensions = [2] : (!z, "
    "tensor<f32>) -> !r\n"
    "  %9 = stablehlo.log %8 : !r\n"
    "  %10 = stablehlo.add %9, %5 : !r\n"
    "  %a = stablehlo.reshape %l : (tensor<16x32xi32>) -> !a\n"
    "  %11 = \"stablehlo.gather\"(%4, %a) <{dimension_numbers = "
    "#stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], "
    "start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, "
    "indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (!z, !a) -> "
    "tensor<16x32x1xf32>\n"
    "  %12 = stablehlo.reshape %11 : (tensor<16x32x1xf32>) -> !r\n"
    "  %13 = stablehlo.subtract %10, %12 : !r\n"
    "  %14 = stablehlo.reduce(%13 init: %f) applies stablehlo.add across dimensions = [0, 1] : "
    "(!r, tensor<f32>) -> tensor<f32>\n"
    "  %15 = stablehlo.negate %k : !r\n"
    "  %16 = stablehlo.reshape %15 : (!r) -> tensor<16x32x1xf32>\n"
    "  %17 = \"stablehlo.scatter\"(%z0, %a, %16) <{indices_are_sorted = false, "
    "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], "
    "input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], "
    "scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({\n"
    "  ^bb0(%u: tensor<f32>, %v: tensor<f32>):\n"
    "    %y = stablehlo.add %u, %v : tensor<f32>\n"
    "    stablehlo.return %y : tensor<f32>\n"
    "  }) : (!z, !a, tensor<16x32x1xf32>) -> !z\n"
    "  %18 = stablehlo.divide %k, %8 : !r\n"
    "  %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (!r) -> !z\n"
    "  %20 = stablehlo.multiply %19, %e : !z\n"
    "  %21 = stablehlo.add %17, %20 : !z\n"
    "  %22 = stablehlo.convert %21 : (!z) -> !n\n"
    "  %23 = stablehlo.reduce(%22 init: %o) applies stablehlo.add across dimensions = [0, 1] : "
    "(!n, tensor<bf16>) -> tensor<1000xbf16>\n"
    "  %24 = stablehlo.dot_general %22, %0, contracting_dims = [0, 1] x [0, 1] : (!n, !x) -> "
    "tensor<1000x128xbf16>\n"
    "  %25 = stablehlo.dot_general %22, %w, contracting_dims = [2] x [1] : (!n, !w) -> !x\n";

static void peak_of_rounds(const char *gradient, const char *end, double v3, double v5e) {
  char text[8192];
  const char *at = strstr(rounds, "GRAD");
  snprintf(text, sizeof text, "%.*s%s%s%s", (int)(at - rounds), rounds, gradient, at + 4, end);
  SimReport *r = estimate(text, "tpu-v3");
  near(r->peak_bytes, v3, 0.01);
  sim_report_free(r);
  r = estimate(text, "tpu-v5e");
  near(r->peak_bytes, v5e, 0.01);
  sim_report_free(r);
}

/* The loop that adds up columns of the scores' gradient widens the scores for the label's as well. It
 * stores the gradient where that is multiplied by the rounds and the result turned. */
static void test_rounds(void **state) {
  (void)state;
  peak_of_rounds("tensor<1000x128xbf16>",
                 "  return %14, %25, %24, %23 : tensor<f32>, !x, tensor<1000x128xbf16>, "
                 "tensor<1000xbf16>\n}\n",
                 3.95 * (1 << 20), 4.20 * (1 << 20));
  peak_of_rounds("!w",
                 "  %26 = stablehlo.transpose %24, dims = [1, 0] : (tensor<1000x128xbf16>) -> !w\n"
                 "  return %14, %25, %26, %23 : tensor<f32>, !x, !w, tensor<1000xbf16>\n}\n",
                 4.91 * (1 << 20), 5.16 * (1 << 20));
}

/* Attention's heads of d columns, joined, and a product of them. */
static void peak_of_heads(int d, double want) {
  char *text = xasprintf(
      "func.func public @main(%%p: tensor<8x4x144x144xbf16>, %%v: tensor<8x144x4x%dxbf16>, "
      "%%w: tensor<%dx512xbf16>) -> tensor<8x144x512xbf16> {\n"
      "  %%0 = stablehlo.dot_general %%v, %%p, batching_dims = [0, 2] x [0, 1], contracting_dims = "
      "[1] x [3] : (tensor<8x144x4x%dxbf16>, tensor<8x4x144x144xbf16>) -> tensor<8x4x%dx144xbf16>\n"
      "  %%1 = stablehlo.transpose %%0, dims = [0, 3, 1, 2] : (tensor<8x4x%dx144xbf16>) -> "
      "tensor<8x144x4x%dxbf16>\n"
      "  %%2 = stablehlo.reshape %%1 : (tensor<8x144x4x%dxbf16>) -> tensor<8x144x%dxbf16>\n"
      "  %%3 = stablehlo.dot_general %%2, %%w, contracting_dims = [2] x [0] : "
      "(tensor<8x144x%dxbf16>, tensor<%dx512xbf16>) -> tensor<8x144x512xbf16>\n"
      "  return %%3 : tensor<8x144x512xbf16>\n}\n",
      d, 4 * d, d, d, d, d, d, 4 * d, 4 * d, 4 * d);
  peak_near(text, "tpu-v3", want, 0.005);
  free(text);
}

/* Where a head's columns do not fill the lanes, what is made of heads has its rows there. */
static void test_heads(void **state) {
  (void)state;
  peak_of_heads(64, 5.625 * (1 << 20));
  peak_of_heads(128, 6.125 * (1 << 20));
}

/* An image with each pixel repeated is stored before a convolution; so is its gradient, before its pixels are
 * added up, and both lie as the convolution has them. */
static void test_upsampled(void **state) {
  (void)state;
  static const char text[] =
      "!x = tensor<24x16x16x64xbf16>\n!u = tensor<24x16x2x16x2x64xbf16>\n"
      "!y = tensor<24x32x32x64xbf16>\n!w = tensor<3x3x64x64xbf16>\n"
      "func.func public @main(%x: !x, %w: !w) -> !x {\n"
      "  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1, 3, 5] : (!x) -> !u\n"
      "  %1 = stablehlo.reshape %0 : (!u) -> !y\n"
      "  %2 = stablehlo.convolution(%1, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
      "i64} : (!y, !w) -> !y\n"
      "  %3 = stablehlo.add %2, %2 : !y\n"
      "  %4 = stablehlo.reverse %w, dims = [0, 1] : !w\n"
      "  %5 = stablehlo.convolution(%3, %4) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
      "i64} : (!y, !w) -> !y\n"
      "  %6 = stablehlo.reshape %5 : (!y) -> !u\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<bf16>\n"
      "  %7 = stablehlo.reduce(%6 init: %z) applies stablehlo.add across dimensions = [2, 4] : "
      "(!u, tensor<bf16>) -> !x\n"
      "  return %7 : !x\n}\n";
  peak_near(text, "tpu-v3", 15.14 * (1 << 20), 0.005);
  peak_near(text, "tpu-v5e", 15.28 * (1 << 20), 0.005);
}

#define PIXELS "tensor<64x20x20x80xbf16>"
#define PAIRS "tensor<64x20x20x160xbf16>"
#define FILTER "tensor<3x3x160x80xbf16>"
#define WINDOW(pad)                                                          \
  "window = {stride = [1, 1], pad = [[" pad ", " pad "], [" pad ", " pad     \
  "]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} " \
  "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
/* Two images side by side, an argument one of them, for a convolution and the gradient of its filter: they are
 * put together in both. */
static void test_side_by_side(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: " PIXELS ", %b: " PIXELS
      ", %w: tensor<1x1x80x80xbf16>, %v: " FILTER ") -> (tensor<80xbf16>, " FILTER ") {\n"
      "  %p = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
      "f], " WINDOW("0") "(" PIXELS ", tensor<1x1x80x80xbf16>) -> " PIXELS "\n"
                         "  %c = stablehlo.concatenate %p, %b, dim = 3 : (" PIXELS ", " PIXELS
                         ") -> " PAIRS "\n"
                         "  %y = stablehlo.convolution(%c, %v) dim_numbers = [b, 0, 1, f]x[0, 1, "
                         "i, o]->[b, 0, 1, f], " WINDOW(
                             "1") "(" PAIRS ", " FILTER ") -> " PIXELS "\n"
                                  "  %z = stablehlo.constant dense<0.0> : tensor<bf16>\n"
                                  "  %r = stablehlo.reduce(%y init: %z) applies stablehlo.add "
                                  "across dimensions = [0, 1, 2] : (" PIXELS
                                  ", tensor<bf16>) -> tensor<80xbf16>\n"
                                  "  %g = stablehlo.convolution(%c, %b) dim_numbers = [f, 0, 1, "
                                  "b]x[i, 0, 1, o]->[0, 1, b, f], " WINDOW(
                                      "1") "(" PAIRS ", " PIXELS ") -> " FILTER "\n"
                                           "  return %r, %g : tensor<80xbf16>, " FILTER "\n}\n";
  peak_near(text, "tpu-v2", 20420608, 0.005);
  peak_near(text, "tpu-v5e", 33895424, 0.005);
  peak_near(text, "tpu-v5p", 27341344, 0.005);
}

/* A gate made of two slices of what a convolution wrote, for two others: each makes it again. */
static void test_halves(void **state) {
  (void)state;
  static const char text[] =
      "!i = " PIXELS "\n!j = " PAIRS "\n!w = tensor<1x1x80x80xbf16>\n!v = tensor<1x1x80x160xbf16>\n"
      "func.func public @main(%x: !i, %d: !i, %w: !w, %v: !v) -> (tensor<80xbf16>, !w) {\n"
      "  %h = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
      "f], " WINDOW("0") "(!i, !v) -> !j\n"
                         "  %a = stablehlo.slice %h [0:64, 0:20, 0:20, 0:80] : (!j) -> !i\n"
                         "  %b = stablehlo.slice %h [0:64, 0:20, 0:20, 80:160] : (!j) -> !i\n"
                         "  %t = stablehlo.tanh %a : !i\n"
                         "  %l = stablehlo.logistic %b : !i\n"
                         "  %g = stablehlo.multiply %t, %l : !i\n"
                         "  %y = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, 1, f]x[0, 1, "
                         "i, o]->[b, 0, 1, f], " WINDOW(
                             "0") "(!i, !w) -> !i\n"
                                  "  %z = stablehlo.constant dense<0.0> : tensor<bf16>\n"
                                  "  %r = stablehlo.reduce(%y init: %z) applies stablehlo.add "
                                  "across dimensions = [0, 1, 2] : "
                                  "(!i, tensor<bf16>) -> tensor<80xbf16>\n"
                                  "  %q = stablehlo.convolution(%g, %d) dim_numbers = [f, 0, 1, "
                                  "b]x[i, 0, 1, o]->[0, 1, b, f], " WINDOW(
                                      "0") "(!i, !i) -> !w\n"
                                           "  return %r, %q : tensor<80xbf16>, !w\n}\n";
  peak_near(text, "tpu-v2", 26298368, 0.005);
  peak_near(text, "tpu-v5e", 37786624, 0.05);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mask),      cmocka_unit_test(test_scores_of_vectors),
      cmocka_unit_test(test_turned),    cmocka_unit_test(test_shared_keys),
      cmocka_unit_test(test_rounds),    cmocka_unit_test(test_heads),
      cmocka_unit_test(test_upsampled), cmocka_unit_test(test_side_by_side),
      cmocka_unit_test(test_halves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
