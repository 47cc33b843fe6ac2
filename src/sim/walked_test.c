/* walked: what is stored before loops and products that read it. Cycles and peaks are libtpu 0.0.51's for the same
 * programs. */
#include "sim/estimate_test.h"

/* What rows are added up of is not made again to walk over them. */
static const char ln2[] =
    "func.func public @main(%x0: tensor<2048x512xf32>, %x1: tensor<2048x512xf32>) "
    "-> (tensor<2048x512xf32>) {\n"
    "  %0 = stablehlo.add %x0, %x1 : tensor<2048x512xf32>\n"
    "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across "
    "dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>\n"
    "  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2048xf32>) -> "
    "tensor<2048x1xf32>\n"
    "  %cst_0 = stablehlo.constant dense<5.120000e+02> : tensor<f32>\n"
    "  %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> "
    "tensor<2048x1xf32>\n"
    "  %4 = stablehlo.divide %2, %3 : tensor<2048x1xf32>\n"
    "  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2048x1xf32>) -> "
    "tensor<2048x512xf32>\n"
    "  %6 = stablehlo.subtract %0, %5 : tensor<2048x512xf32>\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %7 = call @_var(%0, %c) : (tensor<2048x512xf32>, tensor<i32>) -> "
    "tensor<2048x1xf32>\n"
    "  %cst_1 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>\n"
    "  %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> "
    "tensor<2048x1xf32>\n"
    "  %9 = stablehlo.add %7, %8 : tensor<2048x1xf32>\n"
    "  %10 = stablehlo.rsqrt %9 : tensor<2048x1xf32>\n"
    "  %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<2048x1xf32>) "
    "-> tensor<2048x512xf32>\n"
    "  %12 = stablehlo.multiply %6, %11 : tensor<2048x512xf32>\n"
    "  return %12 : tensor<2048x512xf32>\n"
    "}\n"
    "func.func private @_var(%x0: tensor<2048x512xf32>, %x1: tensor<i32>) -> "
    "tensor<2048x1xf32> {\n"
    "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %0 = stablehlo.reduce(%x0 init: %cst) applies stablehlo.add across "
    "dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>\n"
    "  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<2048xf32>) -> "
    "tensor<2048x1xf32>\n"
    "  %cst_0 = stablehlo.constant dense<5.120000e+02> : tensor<f32>\n"
    "  %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> "
    "tensor<2048x1xf32>\n"
    "  %3 = stablehlo.divide %1, %2 : tensor<2048x1xf32>\n"
    "  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2048x1xf32>) -> "
    "tensor<2048x512xf32>\n"
    "  %5 = stablehlo.subtract %x0, %4 : tensor<2048x512xf32>\n"
    "  %6 = chlo.square %5 : tensor<2048x512xf32> -> tensor<2048x512xf32>\n"
    "  %7 = stablehlo.convert %x1 : (tensor<i32>) -> tensor<f32>\n"
    "  %cst_1 = stablehlo.constant dense<5.120000e+02> : tensor<f32>\n"
    "  %8 = stablehlo.subtract %cst_1, %7 : tensor<f32>\n"
    "  %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %9 = stablehlo.reduce(%6 init: %cst_2) applies stablehlo.add across "
    "dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>\n"
    "  %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<2048xf32>) -> "
    "tensor<2048x1xf32>\n"
    "  %11 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> "
    "tensor<2048x1xf32>\n"
    "  %12 = stablehlo.divide %10, %11 : tensor<2048x1xf32>\n"
    "  %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %13 = stablehlo.compare GT, %8, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "  %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "  %14 = call @_where(%13, %12, %cst_4) : (tensor<i1>, tensor<2048x1xf32>, "
    "tensor<f32>) -> tensor<2048x1xf32>\n"
    "  return %14 : tensor<2048x1xf32>\n"
    "}\n"
    "func.func private @_where(%x0: tensor<i1>, %x1: tensor<2048x1xf32>, %x2: "
    "tensor<f32>) -> tensor<2048x1xf32> {\n"
    "  %0 = stablehlo.convert %x2 : tensor<f32>\n"
    "  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> "
    "tensor<2048x1xf32>\n"
    "  %2 = stablehlo.select %x0, %x1, %1 : tensor<i1>, tensor<2048x1xf32>\n"
    "  return %2 : tensor<2048x1xf32>\n"
    "}\n";

static void test_ln2(void **state) {
  (void)state;
  like(ln2, "tpu-v2", 71601, 16793600);
  like(ln2, "tpu-v5e", 70571, 16801792);
  like(ln2, "tpu-v6e", 39069, 16801792);
}

/* Nor where their squares are added up. */
static const char squares[] =
    "func.func public @main(%x0: tensor<2048x512xf32>, %x1: tensor<2048x512xf32>) "
    "-> (tensor<2048x512xf32>) {\n"
    "  %0 = stablehlo.add %x0, %x1 : tensor<2048x512xf32>\n"
    "  %1 = stablehlo.multiply %0, %0 : tensor<2048x512xf32>\n"
    "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across "
    "dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>\n"
    "  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2048xf32>) -> "
    "tensor<2048x1xf32>\n"
    "  %cst_0 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>\n"
    "  %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> "
    "tensor<2048x1xf32>\n"
    "  %5 = stablehlo.add %3, %4 : tensor<2048x1xf32>\n"
    "  %6 = stablehlo.sqrt %5 : tensor<2048x1xf32>\n"
    "  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<2048x1xf32>) -> "
    "tensor<2048x512xf32>\n"
    "  %8 = stablehlo.divide %0, %7 : tensor<2048x512xf32>\n"
    "  return %8 : tensor<2048x512xf32>\n"
    "}\n";

static void test_squares(void **state) {
  (void)state;
  like(squares, "tpu-v2", 50725, 16793600);
  like(squares, "tpu-v5e", 45768, 16793600);
  like(squares, "tpu-v6e", 25423, 16793600);
}

/* Numbers are cut out of a vector by one loop, before they are repeated. */
static const char number[] =
    "func.func public @main(%x0: tensor<256x512xf32>, %x1: tensor<8xf32>) -> "
    "(tensor<256x512xf32>) {\n"
    "  %0 = stablehlo.slice %x1 [0:1] : (tensor<8xf32>) -> tensor<1xf32>\n"
    "  %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>\n"
    "  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> "
    "tensor<256x512xf32>\n"
    "  %3 = stablehlo.multiply %x0, %2 : tensor<256x512xf32>\n"
    "  %4 = stablehlo.slice %x1 [1:2] : (tensor<8xf32>) -> tensor<1xf32>\n"
    "  %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>\n"
    "  %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> "
    "tensor<256x512xf32>\n"
    "  %7 = stablehlo.add %3, %6 : tensor<256x512xf32>\n"
    "  %8 = stablehlo.multiply %7, %x0 : tensor<256x512xf32>\n"
    "  %9 = stablehlo.slice %x1 [2:3] : (tensor<8xf32>) -> tensor<1xf32>\n"
    "  %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>\n"
    "  %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> "
    "tensor<256x512xf32>\n"
    "  %12 = stablehlo.add %8, %11 : tensor<256x512xf32>\n"
    "  %13 = stablehlo.multiply %12, %x0 : tensor<256x512xf32>\n"
    "  %14 = stablehlo.slice %x1 [3:4] : (tensor<8xf32>) -> tensor<1xf32>\n"
    "  %15 = stablehlo.reshape %14 : (tensor<1xf32>) -> tensor<f32>\n"
    "  %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> "
    "tensor<256x512xf32>\n"
    "  %17 = stablehlo.add %13, %16 : tensor<256x512xf32>\n"
    "  %18 = stablehlo.slice %x1 [4:5] : (tensor<8xf32>) -> tensor<1xf32>\n"
    "  %19 = stablehlo.reshape %18 : (tensor<1xf32>) -> tensor<f32>\n"
    "  %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> "
    "tensor<256x512xf32>\n"
    "  %21 = stablehlo.add %17, %20 : tensor<256x512xf32>\n"
    "  return %21 : tensor<256x512xf32>\n"
    "}\n";

static void test_number(void **state) {
  (void)state;
  like(number, "tpu-v2", 3394, 1054720);
  like(number, "tpu-v5e", 6136, 1051648);
}

/* A vector that an operand is made of is no stream of windows. */
static const char onehot[] =
    "func.func public @main(%x0: tensor<520xi32>, %x1: tensor<256x384xbf16>) -> "
    "(tensor<520x384xbf16>) {\n"
    "  %0 = call @_one_hot(%x0) : (tensor<520xi32>) -> tensor<520x256xbf16>\n"
    "  %1 = stablehlo.dot_general %0, %x1, contracting_dims = [1] x [0], precision "
    "= [DEFAULT, DEFAULT] : (tensor<520x256xbf16>, tensor<256x384xbf16>) -> "
    "tensor<520x384xbf16>\n"
    "  return %1 : tensor<520x384xbf16>\n"
    "}\n"
    "func.func private @_one_hot(%x0: tensor<520xi32>) -> tensor<520x256xbf16> {\n"
    "  %0 = stablehlo.broadcast_in_dim %x0, dims = [0] : (tensor<520xi32>) -> "
    "tensor<520x1xi32>\n"
    "  %1 = stablehlo.iota dim = 1 : tensor<1x256xi32>\n"
    "  %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<520x1xi32>) -> "
    "tensor<520x256xi32>\n"
    "  %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x256xi32>) -> "
    "tensor<520x256xi32>\n"
    "  %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<520x256xi32>, "
    "tensor<520x256xi32>) -> tensor<520x256xi1>\n"
    "  %5 = stablehlo.convert %4 : (tensor<520x256xi1>) -> tensor<520x256xbf16>\n"
    "  return %5 : tensor<520x256xbf16>\n"
    "}\n";

static void test_onehot(void **state) {
  (void)state;
  like(onehot, "tpu-v3", 4890, 600064);
  like(onehot, "tpu-v5e", 5615, 796672);
  like(onehot, "tpu-v5p", 3712, 796672);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ln2),
      cmocka_unit_test(test_squares),
      cmocka_unit_test(test_number),
      cmocka_unit_test(test_onehot),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
