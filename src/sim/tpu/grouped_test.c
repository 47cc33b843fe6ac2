/* grouped: attention whose heads share their keys, forwards and backwards. Cycles and peaks are libtpu 0.0.51's for
 * the same programs. */
#include "sim/estimate_test.h"

/* Four heads to a key, two keys' heads: the scores' gradient is stored on some generations, and the quotients by the
 * product that makes the exponentials again. */
static const char grouped[] =
    "func.func @main(%arg0: tensor<4x256x2x4x64xbf16>, %arg1: tensor<4x256x2x64xbf16>, %arg2: "
    "tensor<4x256x2x64xbf16>, %arg3: tensor<4x256x2x4x64xbf16>) -> "
    "(tensor<4x256x2x4x64xbf16>, tensor<4x256x2x4x64xbf16>, tensor<4x256x2x64xbf16>, "
    "tensor<4x256x2x64xbf16>) {\n"
    "  %0 = stablehlo.dot_general %arg1, %arg0, batching_dims = [0, 2] x [0, 2], "
    "contracting_dims = [3] x [4] : (tensor<4x256x2x64xbf16>, tensor<4x256x2x4x64xbf16>) -> "
    "tensor<4x2x256x256x4xbf16>\n"
    "  %1 = stablehlo.transpose %0, dims = [0, 1, 4, 3, 2] : (tensor<4x2x256x256x4xbf16>) -> "
    "tensor<4x2x4x256x256xbf16>\n"
    "  %2 = stablehlo.convert %1 : (tensor<4x2x4x256x256xbf16>) -> tensor<4x2x4x256x256xf32>\n"
    "  %cst = stablehlo.constant dense<1.250000e-01> : tensor<f32>\n"
    "  %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
    "tensor<4x2x4x256x256xf32>\n"
    "  %4 = stablehlo.multiply %2, %3 : tensor<4x2x4x256x256xf32>\n"
    "  %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %5 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.maximum across dimensions = [4] "
    ": (tensor<4x2x4x256x256xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>\n"
    "  %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> "
    "tensor<4x2x4x256xf32>\n"
    "  %7 = stablehlo.maximum %6, %5 : tensor<4x2x4x256xf32>\n"
    "  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<4x2x4x256xf32>) -> "
    "tensor<4x2x4x256x1xf32>\n"
    "  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) "
    "-> tensor<4x2x4x256x256xf32>\n"
    "  %10 = stablehlo.subtract %4, %9 : tensor<4x2x4x256x256xf32>\n"
    "  %11 = stablehlo.exponential %10 : tensor<4x2x4x256x256xf32>\n"
    "  %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %12 = stablehlo.reduce(%11 init: %cst_2) applies stablehlo.add across dimensions = [4] : "
    "(tensor<4x2x4x256x256xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>\n"
    "  %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<4x2x4x256xf32>) -> "
    "tensor<4x2x4x256x1xf32>\n"
    "  %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) "
    "-> tensor<4x2x4x256x256xf32>\n"
    "  %15 = stablehlo.divide %11, %14 : tensor<4x2x4x256x256xf32>\n"
    "  %16 = stablehlo.multiply %13, %13 : tensor<4x2x4x256x1xf32>\n"
    "  %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %17 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> "
    "tensor<4x2x4x256x1xf32>\n"
    "  %18 = stablehlo.divide %17, %16 : tensor<4x2x4x256x1xf32>\n"
    "  %19 = stablehlo.convert %15 : (tensor<4x2x4x256x256xf32>) -> tensor<4x2x4x256x256xbf16>\n"
    "  %20 = stablehlo.dot_general %arg2, %19, batching_dims = [0, 2] x [0, 1], "
    "contracting_dims = [1] x [4] : (tensor<4x256x2x64xbf16>, tensor<4x2x4x256x256xbf16>) -> "
    "tensor<4x2x64x4x256xbf16>\n"
    "  %21 = stablehlo.transpose %20, dims = [0, 4, 1, 3, 2] : (tensor<4x2x64x4x256xbf16>) -> "
    "tensor<4x256x2x4x64xbf16>\n"
    "  %22 = stablehlo.transpose %arg3, dims = [0, 2, 4, 3, 1] : (tensor<4x256x2x4x64xbf16>) -> "
    "tensor<4x2x64x4x256xbf16>\n"
    "  %23 = stablehlo.dot_general %22, %arg2, batching_dims = [0, 1] x [0, 2], "
    "contracting_dims = [2] x [3] : (tensor<4x2x64x4x256xbf16>, tensor<4x256x2x64xbf16>) -> "
    "tensor<4x2x4x256x256xbf16>\n"
    "  %24 = stablehlo.dot_general %22, %19, batching_dims = [0, 1] x [0, 1], contracting_dims "
    "= [3, 4] x [2, 3] : (tensor<4x2x64x4x256xbf16>, tensor<4x2x4x256x256xbf16>) -> "
    "tensor<4x2x64x256xbf16>\n"
    "  %25 = stablehlo.transpose %24, dims = [0, 3, 1, 2] : (tensor<4x2x64x256xbf16>) -> "
    "tensor<4x256x2x64xbf16>\n"
    "  %26 = stablehlo.convert %23 : (tensor<4x2x4x256x256xbf16>) -> tensor<4x2x4x256x256xf32>\n"
    "  %27 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) "
    "-> tensor<4x2x4x256x256xf32>\n"
    "  %28 = stablehlo.multiply %26, %27 : tensor<4x2x4x256x256xf32>\n"
    "  %29 = stablehlo.multiply %28, %11 : tensor<4x2x4x256x256xf32>\n"
    "  %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %30 = stablehlo.reduce(%29 init: %cst_4) applies stablehlo.add across dimensions = [4] : "
    "(tensor<4x2x4x256x256xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>\n"
    "  %31 = stablehlo.reshape %30 : (tensor<4x2x4x256xf32>) -> tensor<4x2x4x256x1xf32>\n"
    "  %32 = stablehlo.negate %31 : tensor<4x2x4x256x1xf32>\n"
    "  %33 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) "
    "-> tensor<4x2x4x256x256xf32>\n"
    "  %34 = stablehlo.divide %26, %33 : tensor<4x2x4x256x256xf32>\n"
    "  %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %35 = stablehlo.reduce(%32 init: %cst_5) applies stablehlo.add across dimensions = [4] : "
    "(tensor<4x2x4x256x1xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>\n"
    "  %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<4x2x4x256xf32>) -> "
    "tensor<4x2x4x256x256xf32>\n"
    "  %37 = stablehlo.add %34, %36 : tensor<4x2x4x256x256xf32>\n"
    "  %38 = stablehlo.multiply %37, %11 : tensor<4x2x4x256x256xf32>\n"
    "  %cst_6 = stablehlo.constant dense<1.250000e-01> : tensor<f32>\n"
    "  %39 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> "
    "tensor<4x2x4x256x256xf32>\n"
    "  %40 = stablehlo.multiply %38, %39 : tensor<4x2x4x256x256xf32>\n"
    "  %41 = stablehlo.convert %40 : (tensor<4x2x4x256x256xf32>) -> tensor<4x2x4x256x256xbf16>\n"
    "  %42 = stablehlo.transpose %41, dims = [0, 1, 4, 3, 2] : (tensor<4x2x4x256x256xbf16>) -> "
    "tensor<4x2x256x256x4xbf16>\n"
    "  %43 = stablehlo.dot_general %42, %arg1, batching_dims = [0, 1] x [0, 2], "
    "contracting_dims = [2] x [1] : (tensor<4x2x256x256x4xbf16>, tensor<4x256x2x64xbf16>) -> "
    "tensor<4x2x256x4x64xbf16>\n"
    "  %44 = stablehlo.transpose %43, dims = [0, 2, 1, 3, 4] : (tensor<4x2x256x4x64xbf16>) -> "
    "tensor<4x256x2x4x64xbf16>\n"
    "  %45 = stablehlo.dot_general %42, %arg0, batching_dims = [0, 1] x [0, 2], "
    "contracting_dims = [3, 4] x [1, 3] : (tensor<4x2x256x256x4xbf16>, "
    "tensor<4x256x2x4x64xbf16>) -> tensor<4x2x256x64xbf16>\n"
    "  %46 = stablehlo.transpose %45, dims = [0, 2, 1, 3] : (tensor<4x2x256x64xbf16>) -> "
    "tensor<4x256x2x64xbf16>\n"
    "  return %21, %44, %46, %25 : tensor<4x256x2x4x64xbf16>, tensor<4x256x2x4x64xbf16>, "
    "tensor<4x256x2x64xbf16>, tensor<4x256x2x64xbf16>\n"
    "}\n";

static void test_grouped(void **state) {
  (void)state;
  peak_near(grouped, "tpu-v4", 24478208, 0.01);
  peak_near(grouped, "tpu-v5e", 16122368, 0.02); /* rows of a head's queries in tiles, not heads */
  peak_near(grouped, "tpu-v6e", 20545568, 0.01);
  peak_near(grouped, "tpu7x", 24477728, 0.01);
}

/* Keys that are repeated for each head are stored so. */
static const char repeated[] =
    "!h = tensor<4x256x8x64xbf16>\n!o = tensor<4x8x256x256xbf16>\n"
    "func.func @main(%x: tensor<4x256x512xbf16>, %w: tensor<512x128xbf16>, %q: !h) -> !o {\n"
    "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<4x256x512xbf16>, "
    "tensor<512x128xbf16>) -> tensor<4x256x128xbf16>\n"
    "  %1 = stablehlo.reshape %0 : (tensor<4x256x128xbf16>) -> tensor<4x256x2x64xbf16>\n"
    "  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 4] : (tensor<4x256x2x64xbf16>) -> "
    "tensor<4x256x2x4x64xbf16>\n"
    "  %3 = stablehlo.reshape %2 : (tensor<4x256x2x4x64xbf16>) -> !h\n"
    "  %4 = stablehlo.dot_general %q, %3, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] "
    "x "
    "[3] : (!h, !h) -> !o\n"
    "  return %4 : !o\n}\n";

static void test_repeated(void **state) {
  (void)state;
  like(repeated, "tpu-v2", 53865, 7733248);
  like(repeated, "tpu-v5e", 48098, 8781824);
}

/* The gradients of the heads that share a key are added up by a kernel of its own. */
static const char parts[] =
    "!h = tensor<4x256x8x64xbf16>\n!s = tensor<4x256x2x4x64xbf16>\n!f = tensor<4x256x2x4x64xf32>\n"
    "!y = tensor<4x256x512xbf16>\n"
    "func.func @main(%s: tensor<4x8x256x256xbf16>, %q: !h, %w: tensor<128x512xbf16>) -> !y {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = stablehlo.dot_general %q, %s, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] "
    "x "
    "[2] : (!h, tensor<4x8x256x256xbf16>) -> tensor<4x8x64x256xbf16>\n"
    "  %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : (tensor<4x8x64x256xbf16>) -> !h\n"
    "  %2 = stablehlo.reshape %1 : (!h) -> !s\n  %3 = stablehlo.convert %2 : (!s) -> !f\n"
    "  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [3] : (!f, "
    "tensor<f32>) -> tensor<4x256x2x64xf32>\n"
    "  %5 = stablehlo.convert %4 : (tensor<4x256x2x64xf32>) -> tensor<4x256x2x64xbf16>\n"
    "  %6 = stablehlo.reshape %5 : (tensor<4x256x2x64xbf16>) -> tensor<4x256x128xbf16>\n"
    "  %7 = stablehlo.dot_general %6, %w, contracting_dims = [2] x [0] : (tensor<4x256x128xbf16>, "
    "tensor<128x512xbf16>) -> !y\n"
    "  return %7 : !y\n}\n";

static void test_parts(void **state) {
  (void)state;
  like(parts, "tpu-v2", 43108, 7734272);
  like(parts, "tpu-v5e", 30116, 11796992);
  like(parts, "tpu-v6e", 15912, 11796992);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_grouped),
                                     cmocka_unit_test(test_repeated), cmocka_unit_test(test_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
