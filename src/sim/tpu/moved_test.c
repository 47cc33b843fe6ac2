/* moved: gathers by matrices of places, pads that are reshaped, sums of several parts of one array, each by kernels
 * of its own. Cycles and peaks are libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

/* Places in a tall matrix are copied to rows, then made a vector; what is gathered goes the same way back. */
static const char table[] =
    "func.func public @main(%x0: tensor<256xf32>, %x1: tensor<934x197xi32>) -> "
    "(tensor<934x197xf32>) {\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> "
    "tensor<934x197xi32>\n"
    "  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<934x197xi32>, "
    "tensor<934x197xi32>) -> tensor<934x197xi1>\n"
    "  %c_0 = stablehlo.constant dense<256> : tensor<i32>\n"
    "  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> "
    "tensor<934x197xi32>\n"
    "  %3 = stablehlo.add %x1, %2 : tensor<934x197xi32>\n"
    "  %4 = stablehlo.select %1, %3, %x1 : tensor<934x197xi1>, tensor<934x197xi32>\n"
    "  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<934x197xi32>) "
    "-> tensor<934x197x1xi32>\n"
    "  %6 = \"stablehlo.gather\"(%x0, %5) <{dimension_numbers = "
    "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: "
    "1>}> : (tensor<256xf32>, tensor<934x197x1xi32>) -> tensor<934x197xf32>\n"
    "  return %6 : tensor<934x197xf32>\n"
    "}\n";

static void test_table(void **state) {
  (void)state;
  like(table, "tpu-v5p", 14277, 3335168);
  like(table, "tpu7x", 8580, 3418112);
}

/* A pad lies as what it pads, though its sides would take less room otherwise. */
static const char padded[] =
    "func.func public @main(%x0: tensor<8x128x128xf32>) -> (tensor<8x128x128xf32>) "
    "{\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0 = call @_pad(%x0, %c) : (tensor<8x128x128xf32>, tensor<i32>) -> "
    "tensor<8x128x129xf32>\n"
    "  %1 = stablehlo.reshape %0 : (tensor<8x128x129xf32>) -> tensor<8x129x128xf32>\n"
    "  %2 = stablehlo.slice %1 [0:8, 1:129, 0:128] : (tensor<8x129x128xf32>) -> "
    "tensor<8x128x128xf32>\n"
    "  return %2 : tensor<8x128x128xf32>\n"
    "}\n"
    "func.func private @_pad(%x0: tensor<8x128x128xf32>, %x1: tensor<i32>) -> "
    "tensor<8x128x129xf32> {\n"
    "  %0 = stablehlo.convert %x1 : (tensor<i32>) -> tensor<f32>\n"
    "  %1 = stablehlo.pad %x0, %0, low = [0, 0, 1], high = [0, 0, 0], interior = "
    "[0, 0, 0] : (tensor<8x128x128xf32>, tensor<f32>) -> tensor<8x128x129xf32>\n"
    "  return %1 : tensor<8x128x129xf32>\n"
    "}\n";

static void test_padded(void **state) {
  (void)state;
  like(padded, "tpu-v3", 6939, 2655232);
  like(padded, "tpu-v6e", 5582, 2654720);
}

/* Sums over as many elements, of other sides, are two loops. */
static const char sides[] =
    "func.func public @main(%x0: tensor<32x16x16x96xf32>) -> (tensor<f32>) {\n"
    "  %0 = stablehlo.slice %x0 [0:32, 1:16, 0:16, 0:96] : "
    "(tensor<32x16x16x96xf32>) -> tensor<32x15x16x96xf32>\n"
    "  %1 = stablehlo.slice %x0 [0:32, 0:15, 0:16, 0:96] : "
    "(tensor<32x16x16x96xf32>) -> tensor<32x15x16x96xf32>\n"
    "  %2 = stablehlo.subtract %0, %1 : tensor<32x15x16x96xf32>\n"
    "  %3 = stablehlo.abs %2 : tensor<32x15x16x96xf32>\n"
    "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across "
    "dimensions = [0, 1, 2, 3] : (tensor<32x15x16x96xf32>, tensor<f32>) -> "
    "tensor<f32>\n"
    "  %cst_0 = stablehlo.constant dense<7.372800e+05> : tensor<f32>\n"
    "  %5 = stablehlo.divide %4, %cst_0 : tensor<f32>\n"
    "  %6 = stablehlo.slice %x0 [0:32, 0:16, 1:16, 0:96] : "
    "(tensor<32x16x16x96xf32>) -> tensor<32x16x15x96xf32>\n"
    "  %7 = stablehlo.slice %x0 [0:32, 0:16, 0:15, 0:96] : "
    "(tensor<32x16x16x96xf32>) -> tensor<32x16x15x96xf32>\n"
    "  %8 = stablehlo.subtract %6, %7 : tensor<32x16x15x96xf32>\n"
    "  %9 = stablehlo.abs %8 : tensor<32x16x15x96xf32>\n"
    "  %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %10 = stablehlo.reduce(%9 init: %cst_1) applies stablehlo.add across "
    "dimensions = [0, 1, 2, 3] : (tensor<32x16x15x96xf32>, tensor<f32>) -> "
    "tensor<f32>\n"
    "  %cst_2 = stablehlo.constant dense<7.372800e+05> : tensor<f32>\n"
    "  %11 = stablehlo.divide %10, %cst_2 : tensor<f32>\n"
    "  %12 = stablehlo.add %5, %11 : tensor<f32>\n"
    "  return %12 : tensor<f32>\n"
    "}\n";

static void test_sides(void **state) {
  (void)state;
  like(sides, "tpu-v3", 58016, 4198400);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_padded),
      cmocka_unit_test(test_sides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
