/* pooled: windowed reductions and running sums, and what stands beside them. Cycles and peaks are libtpu
 * 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

/* The largest of windows of 3 x 3 by twos, of eight images of n x n to m x m. */
#define POOL(n, m)                                                                            \
  "func.func public @main(%x0: tensor<8x" n "x" n "x128xf32>) -> (tensor<8x" m "x" m          \
  "x128xf32>) {\n"                                                                            \
  "  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"                             \
  "  %1 = \"stablehlo.reduce_window\"(%x0, %cst) <{base_dilations = array<i64: 1, 1, 1, 1>, " \
  "padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = "  \
  "array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = "     \
  "array<i64: 1, 2, 2, 1>}> ({\n"                                                             \
  "  ^bb0(%x1: tensor<f32>, %x2: tensor<f32>):\n"                                             \
  "    %2 = stablehlo.maximum %x1, %x2 : tensor<f32>\n"                                       \
  "    stablehlo.return %2 : tensor<f32>\n"                                                   \
  "  }) : (tensor<8x" n "x" n "x128xf32>, tensor<f32>) -> tensor<8x" m "x" m "x128xf32>\n"    \
  "  return %1 : tensor<8x" m "x" m "x128xf32>\n"                                             \
  "}\n"

/* Eight places fill tiles of the result: it lies as the image does, and no emitter serves. */
static void test_pool8(void **state) {
  (void)state;
  like(POOL("16", "8"), "tpu-v2", 0, 1311744);
  like(POOL("16", "8"), "tpu-v5e", 0, 1311232);
  like(POOL("16", "8"), "tpu-v6e", 0, 1311232);
}

/* Twelve do not: the result has images in its tiles, the image is relaid on the way in. */
static void test_pool12(void **state) {
  (void)state;
  like(POOL("24", "12"), "tpu-v2", 8775, 2949120);
  like(POOL("24", "12"), "tpu-v5e", 13042, 2949120);
  like(POOL("24", "12"), "tpu-v6e", 9069, 2949120);
}

/* A running sum of a matrix takes nothing in, and nothing takes it in. */
static const char runs[] =
    "func.func public @main(%x0: tensor<256x64xf32>, %x1: tensor<256x64xf32>) -> "
    "(tensor<256x64xf32>) {\n"
    "  %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>\n"
    "  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
    "tensor<256x64xf32>\n"
    "  %1 = stablehlo.multiply %x0, %0 : tensor<256x64xf32>\n"
    "  %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> "
    "tensor<f32>\n"
    "  %3 = \"stablehlo.reduce_window\"(%1, %2) <{base_dilations = array<i64: 1, "
    "1>, padding = dense<[[0, 0], [63, 0]]> : tensor<2x2xi64>, window_dilations = "
    "array<i64: 1, 1>, window_dimensions = array<i64: 1, 64>, window_strides = "
    "array<i64: 1, 1>}> ({\n"
    "  ^bb0(%x2: tensor<f32>, %x3: tensor<f32>):\n"
    "    %7 = stablehlo.add %x2, %x3 : tensor<f32>\n"
    "    stablehlo.return %7 : tensor<f32>\n"
    "  }) : (tensor<256x64xf32>, tensor<f32>) -> tensor<256x64xf32>\n"
    "  %4 = stablehlo.negate %3 : tensor<256x64xf32>\n"
    "  %5 = stablehlo.exponential %4 : tensor<256x64xf32>\n"
    "  %6 = stablehlo.multiply %5, %x1 : tensor<256x64xf32>\n"
    "  return %6 : tensor<256x64xf32>\n"
    "}\n";

static void test_runs(void **state) {
  (void)state;
  like(runs, "tpu-v2", 1240, 328704);
  like(runs, "tpu-v5e", 4200, 393728);
  like(runs, "tpu-v6e", 4424, 393728);
}

/* What is made of an argument element by element, and windowed as that lies, is stored so. */
static const char slid[] =
    "func.func public @main(%x0: tensor<16x32x32x3xbf16>) -> "
    "(tensor<16x26x26x3xbf16>) {\n"
    "  %0 = stablehlo.multiply %x0, %x0 : tensor<16x32x32x3xbf16>\n"
    "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>\n"
    "  %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> "
    "tensor<bf16>\n"
    "  %2 = \"stablehlo.reduce_window\"(%0, %1) <{base_dilations = array<i64: 1, "
    "1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: "
    "1, 1, 1, 1>, window_dimensions = array<i64: 1, 7, 7, 1>, window_strides = "
    "array<i64: 1, 1, 1, 1>}> ({\n"
    "  ^bb0(%x1: tensor<bf16>, %x2: tensor<bf16>):\n"
    "    %3 = stablehlo.add %x1, %x2 : tensor<bf16>\n"
    "    stablehlo.return %3 : tensor<bf16>\n"
    "  }) : (tensor<16x32x32x3xbf16>, tensor<bf16>) -> tensor<16x26x26x3xbf16>\n"
    "  return %2 : tensor<16x26x26x3xbf16>\n"
    "}\n";

static void test_slid(void **state) {
  (void)state;
  like(slid, "tpu-v5e", 4646, 1106432);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pool8),
      cmocka_unit_test(test_pool12),
      cmocka_unit_test(test_runs),
      cmocka_unit_test(test_slid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
