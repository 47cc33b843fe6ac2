/* rotary: what is put together of pieces for products, as rotary embeddings are. Cycles and peaks are libtpu 0.0.51's
 * for the same programs. */
#include "sim/estimate_test.h"

/* Pieces of what only a product reads are rounded before they are put together. */
static const char joined[] =
    "func.func @main(%a: tensor<1024x256xf32>, %b: tensor<1024x256xf32>, %w: tensor<512x512xf32>) "
    "-> "
    "tensor<1024x512xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<1024x256xf32>\n"
    "  %1 = stablehlo.multiply %a, %b : tensor<1024x256xf32>\n"
    "  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<1024x256xf32>, tensor<1024x256xf32>) "
    "-> "
    "tensor<1024x512xf32>\n"
    "  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<1024x512xf32>, "
    "tensor<512x512xf32>) -> tensor<1024x512xf32>\n"
    "  return %3 : tensor<1024x512xf32>\n}\n";

static void test_joined(void **state) {
  (void)state;
  like(joined, "tpu-v2", 32835, 6291456);
  like(joined, "tpu-v5e", 19020, 7340032);
  like(joined, "tpu-v6e", 12504, 7340032);
}

/* Heads come out of a product, are widened in its kernel and lie as it writes them; two halves are turned and put
 * together by a kernel of its own, as heads become features in the next product. */
static const char heads[] =
    "func.func @main(%s: tensor<4x8x256x256xbf16>, %k: tensor<4x256x8x64xbf16>, "
    "%w: tensor<512x512xbf16>, %cos: tensor<256x32xf32>, %sin: tensor<256x32xf32>) -> "
    "tensor<4x256x512xbf16> {\n"
    "  %0 = stablehlo.dot_general %k, %s, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] "
    "x "
    "[3] : (tensor<4x256x8x64xbf16>, tensor<4x8x256x256xbf16>) -> tensor<4x8x64x256xbf16>\n"
    "  %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : (tensor<4x8x64x256xbf16>) -> "
    "tensor<4x256x8x64xbf16>\n"
    "  %2 = stablehlo.convert %1 : (tensor<4x256x8x64xbf16>) -> tensor<4x256x8x64xf32>\n"
    "  %3 = stablehlo.slice %2 [0:4, 0:256, 0:8, 0:32] : (tensor<4x256x8x64xf32>) -> "
    "tensor<4x256x8x32xf32>\n"
    "  %4 = stablehlo.slice %2 [0:4, 0:256, 0:8, 32:64] : (tensor<4x256x8x64xf32>) -> "
    "tensor<4x256x8x32xf32>\n"
    "  %c = stablehlo.broadcast_in_dim %cos, dims = [1, 3] : (tensor<256x32xf32>) -> "
    "tensor<4x256x8x32xf32>\n"
    "  %d = stablehlo.broadcast_in_dim %sin, dims = [1, 3] : (tensor<256x32xf32>) -> "
    "tensor<4x256x8x32xf32>\n"
    "  %5 = stablehlo.multiply %3, %c : tensor<4x256x8x32xf32>\n"
    "  %6 = stablehlo.multiply %4, %d : tensor<4x256x8x32xf32>\n"
    "  %7 = stablehlo.add %5, %6 : tensor<4x256x8x32xf32>\n"
    "  %8 = stablehlo.multiply %4, %c : tensor<4x256x8x32xf32>\n"
    "  %9 = stablehlo.multiply %3, %d : tensor<4x256x8x32xf32>\n"
    "  %10 = stablehlo.subtract %8, %9 : tensor<4x256x8x32xf32>\n"
    "  %11 = stablehlo.concatenate %7, %10, dim = 3 : (tensor<4x256x8x32xf32>, "
    "tensor<4x256x8x32xf32>) -> tensor<4x256x8x64xf32>\n"
    "  %12 = stablehlo.convert %11 : (tensor<4x256x8x64xf32>) -> tensor<4x256x8x64xbf16>\n"
    "  %13 = stablehlo.reshape %12 : (tensor<4x256x8x64xbf16>) -> tensor<4x256x512xbf16>\n"
    "  %14 = stablehlo.dot_general %13, %w, contracting_dims = [2] x [0] : "
    "(tensor<4x256x512xbf16>, "
    "tensor<512x512xbf16>) -> tensor<4x256x512xbf16>\n"
    "  return %14 : tensor<4x256x512xbf16>\n}\n";

static void test_heads(void **state) {
  (void)state;
  like(heads, "tpu-v2", 66582, 10027008);
  like(heads, "tpu-v5e", 38154, 13238272);
  peak_near(heads, "tpu-v6e", 13238272, 0.01);
  assert_int_equal(kernels(heads, "tpu-v5e", "concatenate"), 1);
}

/* Halves of heads that fill lanes lie as these do, with lanes that are half empty. */
static const char halves[] =
    "!g = tensor<2x512x8x128xf32>\n!h = tensor<2x512x8x64xf32>\n"
    "func.func @main(%x: tensor<2x512x512xbf16>, %w: tensor<512x1024xbf16>) -> "
    "tensor<2x8x128xbf16> {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x512x512xbf16>, "
    "tensor<512x1024xbf16>) -> tensor<2x512x1024xbf16>\n"
    "  %1 = stablehlo.reshape %0 : (tensor<2x512x1024xbf16>) -> tensor<2x512x8x128xbf16>\n"
    "  %2 = stablehlo.convert %1 : (tensor<2x512x8x128xbf16>) -> !g\n"
    "  %3 = stablehlo.slice %2 [0:2, 0:512, 0:8, 0:64] : (!g) -> !h\n"
    "  %4 = stablehlo.slice %2 [0:2, 0:512, 0:8, 64:128] : (!g) -> !h\n"
    "  %5 = stablehlo.multiply %3, %4 : !h\n  %6 = stablehlo.subtract %5, %4 : !h\n"
    "  %7 = stablehlo.multiply %4, %3 : !h\n  %8 = stablehlo.add %3, %7 : !h\n"
    "  %9 = stablehlo.concatenate %6, %8, dim = 3 : (!h, !h) -> !g\n"
    "  %10 = stablehlo.convert %9 : (!g) -> tensor<2x512x8x128xbf16>\n"
    "  %11 = stablehlo.convert %10 : (tensor<2x512x8x128xbf16>) -> !g\n"
    "  %12 = stablehlo.reduce(%11 init: %z) applies stablehlo.add across dimensions = [1] : (!g, "
    "tensor<f32>) -> tensor<2x8x128xf32>\n"
    "  %13 = stablehlo.convert %12 : (tensor<2x8x128xf32>) -> tensor<2x8x128xbf16>\n"
    "  return %13 : tensor<2x8x128xbf16>\n}\n";

static void test_halves(void **state) {
  (void)state;
  like(halves, "tpu-v2", 118606, 10489856);
  like(halves, "tpu-v5e", 64413, 10489856);
}

/* Two loops that do the same with arrays of one shape are one if they repeat a table or a vector that both read. */
static const char tables[] =
    "!t = tensor<4x256x8x128xf32>\n"
    "func.func @main(%a: !t, %b: !t, %cos: tensor<256x128xf32>, %sin: tensor<256x128xf32>) -> (!t, "
    "!t) {\n"
    "  %c = stablehlo.broadcast_in_dim %cos, dims = [1, 3] : (tensor<256x128xf32>) -> !t\n"
    "  %s = stablehlo.broadcast_in_dim %sin, dims = [1, 3] : (tensor<256x128xf32>) -> !t\n"
    "  %0 = stablehlo.multiply %a, %c : !t\n  %1 = stablehlo.tanh %a : !t\n"
    "  %2 = stablehlo.multiply %1, %s : !t\n  %3 = stablehlo.add %0, %2 : !t\n"
    "  %4 = stablehlo.multiply %b, %c : !t\n  %5 = stablehlo.tanh %b : !t\n"
    "  %6 = stablehlo.multiply %5, %s : !t\n  %7 = stablehlo.add %4, %6 : !t\n"
    "  return %3, %7 : !t, !t\n}\n";

static const char vector[] =
    "!t = tensor<4096x512xf32>\n"
    "func.func @main(%a: !t, %b: !t, %v: tensor<512xf32>) -> (!t, !t) {\n"
    "  %c = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<512xf32>) -> !t\n"
    "  %0 = stablehlo.multiply %a, %c : !t\n  %1 = stablehlo.multiply %b, %c : !t\n"
    "  return %0, %1 : !t, !t\n}\n";

static void test_tables(void **state) {
  (void)state;
  like(tables, "tpu-v2", 40208, 17040384);
  like(tables, "tpu-v5e", 41376, 17039872);
  like(tables, "tpu-v6e", 24460, 17039392);
  like(vector, "tpu-v2", 76908, 33557504);
  like(vector, "tpu-v5e", 78332, 33556992);
  like(vector, "tpu-v6e", 43294, 33556512);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined), cmocka_unit_test(test_heads),
                                     cmocka_unit_test(test_halves), cmocka_unit_test(test_tables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
