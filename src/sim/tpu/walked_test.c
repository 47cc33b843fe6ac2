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

/* An array whose largest element is looked for as a vector is made one. */
static const char flat[] =
    "func.func public @main(%x0: tensor<32x2048xf32>) -> (tensor<i32>, "
    "tensor<i32>) {\n"
    "  %0 = stablehlo.reshape %x0 : (tensor<32x2048xf32>) -> tensor<65536xf32>\n"
    "  %1 = call @argmax(%0) : (tensor<65536xf32>) -> tensor<i32>\n"
    "  %c = stablehlo.constant dense<2048> : tensor<i32>\n"
    "  %2:2 = call @divmod(%1, %c) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, "
    "tensor<i32>)\n"
    "  %c_0 = stablehlo.constant dense<32> : tensor<i32>\n"
    "  %3:2 = call @divmod(%2#0, %c_0) : (tensor<i32>, tensor<i32>) -> "
    "(tensor<i32>, tensor<i32>)\n"
    "  %c_1 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %4 = stablehlo.compare GT, %3#0, %c_1, SIGNED : (tensor<i32>, tensor<i32>) "
    "-> tensor<i1>\n"
    "  %c_2 = stablehlo.constant dense<-1> : tensor<i32>\n"
    "  %5 = stablehlo.compare LT, %3#0, %c_2, SIGNED : (tensor<i32>, tensor<i32>) "
    "-> tensor<i1>\n"
    "  %c_3 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %6 = call @_where_0(%5, %c_3, %3#1) : (tensor<i1>, tensor<i32>, "
    "tensor<i32>) -> tensor<i32>\n"
    "  %c_4 = stablehlo.constant dense<31> : tensor<i32>\n"
    "  %7 = call @_where_0(%4, %c_4, %6) : (tensor<i1>, tensor<i32>, tensor<i32>) "
    "-> tensor<i32>\n"
    "  %c_5 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %8 = call @_where_0(%5, %c_5, %2#1) : (tensor<i1>, tensor<i32>, "
    "tensor<i32>) -> tensor<i32>\n"
    "  %c_6 = stablehlo.constant dense<2047> : tensor<i32>\n"
    "  %9 = call @_where_0(%4, %c_6, %8) : (tensor<i1>, tensor<i32>, tensor<i32>) "
    "-> tensor<i32>\n"
    "  return %7, %9 : tensor<i32>, tensor<i32>\n"
    "}\n"
    "func.func private @argmax(%x0: tensor<65536xf32>) -> tensor<i32> {\n"
    "  %0 = stablehlo.iota dim = 0 : tensor<65536xi32>\n"
    "  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %1:2 = stablehlo.reduce(%x0 init: %cst), (%0 init: %c) across dimensions = "
    "[0] : (tensor<65536xf32>, tensor<65536xi32>, tensor<f32>, tensor<i32>) -> "
    "(tensor<f32>, tensor<i32>)\n"
    "   reducer(%x1: tensor<f32>, %x3: tensor<f32>) (%x2: tensor<i32>, %x4: "
    "tensor<i32>)  {\n"
    "    %2 = stablehlo.compare GT, %x1, %x3, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %3 = stablehlo.compare NE, %x1, %x1, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %4 = stablehlo.or %2, %3 : tensor<i1>\n"
    "    %5 = stablehlo.compare EQ, %x1, %x3, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %6 = stablehlo.compare LT, %x2, %x4, SIGNED : (tensor<i32>, tensor<i32>) "
    "-> tensor<i1>\n"
    "    %7 = stablehlo.and %5, %6 : tensor<i1>\n"
    "    %8 = stablehlo.or %4, %7 : tensor<i1>\n"
    "    %9 = stablehlo.select %4, %x1, %x3 : tensor<i1>, tensor<f32>\n"
    "    %10 = stablehlo.select %8, %x2, %x4 : tensor<i1>, tensor<i32>\n"
    "    stablehlo.return %9, %10 : tensor<f32>, tensor<i32>\n"
    "  }\n"
    "  return %1#1 : tensor<i32>\n"
    "}\n"
    "func.func private @divmod(%x0: tensor<i32>, %x1: tensor<i32>) -> "
    "(tensor<i32>, tensor<i32>) {\n"
    "  %0 = stablehlo.convert %x1 : tensor<i32>\n"
    "  %1 = call @floor_divide(%x0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n"
    "  %2 = call @remainder(%x0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n"
    "  return %1, %2 : tensor<i32>, tensor<i32>\n"
    "}\n"
    "func.func private @floor_divide(%x0: tensor<i32>, %x1: tensor<i32>) -> "
    "tensor<i32> {\n"
    "  %0 = stablehlo.divide %x0, %x1 : tensor<i32>\n"
    "  %1 = stablehlo.sign %x0 : tensor<i32>\n"
    "  %2 = stablehlo.sign %x1 : tensor<i32>\n"
    "  %3 = stablehlo.compare NE, %1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "  %4 = stablehlo.remainder %x0, %x1 : tensor<i32>\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %5 = stablehlo.compare NE, %4, %c, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "  %6 = stablehlo.and %3, %5 : tensor<i1>\n"
    "  %c_0 = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %7 = stablehlo.subtract %0, %c_0 : tensor<i32>\n"
    "  %8 = call @_where(%6, %7, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> "
    "tensor<i32>\n"
    "  return %8 : tensor<i32>\n"
    "}\n"
    "func.func private @_where(%x0: tensor<i1>, %x1: tensor<i32>, %x2: "
    "tensor<i32>) -> tensor<i32> {\n"
    "  %0 = stablehlo.select %x0, %x1, %x2 : tensor<i1>, tensor<i32>\n"
    "  return %0 : tensor<i32>\n"
    "}\n"
    "func.func private @remainder(%x0: tensor<i32>, %x1: tensor<i32>) -> "
    "tensor<i32> {\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0 = stablehlo.compare EQ, %x1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "  %c_0 = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %1 = call @_where(%0, %c_0, %x1) : (tensor<i1>, tensor<i32>, tensor<i32>) "
    "-> tensor<i32>\n"
    "  %2 = stablehlo.remainder %x0, %1 : tensor<i32>\n"
    "  %c_1 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %3 = stablehlo.compare NE, %2, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "  %c_2 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %4 = stablehlo.compare LT, %2, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "  %c_3 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %5 = stablehlo.compare LT, %1, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "  %6 = stablehlo.compare NE, %4, %5, UNSIGNED : (tensor<i1>, tensor<i1>) -> "
    "tensor<i1>\n"
    "  %7 = stablehlo.and %6, %3 : tensor<i1>\n"
    "  %8 = stablehlo.add %2, %1 : tensor<i32>\n"
    "  %9 = stablehlo.select %7, %8, %2 : tensor<i1>, tensor<i32>\n"
    "  return %9 : tensor<i32>\n"
    "}\n"
    "func.func private @_where_0(%x0: tensor<i1>, %x1: tensor<i32>, %x2: "
    "tensor<i32>) -> tensor<i32> {\n"
    "  %0 = stablehlo.convert %x1 : tensor<i32>\n"
    "  %1 = stablehlo.select %x0, %0, %x2 : tensor<i1>, tensor<i32>\n"
    "  return %1 : tensor<i32>\n"
    "}\n";

static void test_flat(void **state) {
  (void)state;
  like(flat, "tpu-v2", 2961, 538624);
  like(flat, "tpu-v5p", 5340, 530976);
  like(flat, "tpu-v6e", 5036, 529952);
}

/* The largest of long rows of 16 bits: with their numbers in one word, in natural order. */
static const char few[] =
    "func.func public @main(%x0: tensor<384x616xbf16>) -> (tensor<384x2xbf16>, "
    "tensor<384x2xi32>) {\n"
    "  %values, %indices = chlo.top_k(%x0, k = 2) : tensor<384x616xbf16> -> "
    "(tensor<384x2xbf16>, tensor<384x2xi32>)\n"
    "  return %values, %indices : tensor<384x2xbf16>, tensor<384x2xi32>\n"
    "}\n";

static void test_few(void **state) {
  (void)state;
  like(few, "tpu-v2", 13412, 1954816);
  like(few, "tpu-v5e", 15881, 1952768);
  like(few, "tpu-v6e", 14836, 1952288);
}

/* Of shorter ones: the words are sorted in place. */
static const char few_sorted[] =
    "func.func public @main(%x0: tensor<256x128xbf16>) -> (tensor<256x4xbf16>) {\n"
    "  %values, %indices = chlo.top_k(%x0, k = 4) : tensor<256x128xbf16> -> "
    "(tensor<256x4xbf16>, tensor<256x4xi32>)\n"
    "  return %values : tensor<256x4xbf16>\n"
    "}\n";

static void test_few_sorted(void **state) {
  (void)state;
  like(few_sorted, "tpu-v2", 2012, 329728);
  like(few_sorted, "tpu-v5e", 3961, 329728);
  like(few_sorted, "tpu-v6e", 4472, 329728);
}

/* An optimizer's four results, one made of the other, come from one loop. */
static const char several[] =
    "func.func public @main(%x0: tensor<56x24xf32>, %x1: tensor<56x24xf32>, %x2: "
    "tensor<56x24xf32>, %x3: tensor<56x24xf32>, %x4: tensor<56x24xf32>) -> "
    "(tensor<56x24xf32>, tensor<56x24xf32>, tensor<56x24xf32>, tensor<56x24xf32>) {\n"
    "  %cst = stablehlo.constant dense<0.899999976> : tensor<f32>\n"
    "  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
    "tensor<56x24xf32>\n"
    "  %1 = stablehlo.multiply %0, %x2 : tensor<56x24xf32>\n"
    "  %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<f32>\n"
    "  %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> "
    "tensor<56x24xf32>\n"
    "  %3 = stablehlo.multiply %2, %x1 : tensor<56x24xf32>\n"
    "  %4 = stablehlo.add %1, %3 : tensor<56x24xf32>\n"
    "  %cst_1 = stablehlo.constant dense<9.990000e-01> : tensor<f32>\n"
    "  %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> "
    "tensor<56x24xf32>\n"
    "  %6 = stablehlo.multiply %5, %x3 : tensor<56x24xf32>\n"
    "  %cst_2 = stablehlo.constant dense<1.000000e-03> : tensor<f32>\n"
    "  %7 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> "
    "tensor<56x24xf32>\n"
    "  %8 = stablehlo.multiply %7, %x1 : tensor<56x24xf32>\n"
    "  %9 = stablehlo.multiply %8, %x1 : tensor<56x24xf32>\n"
    "  %10 = stablehlo.add %6, %9 : tensor<56x24xf32>\n"
    "  %11 = stablehlo.maximum %x4, %10 : tensor<56x24xf32>\n"
    "  %cst_3 = stablehlo.constant dense<1.000000e-03> : tensor<f32>\n"
    "  %12 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> "
    "tensor<56x24xf32>\n"
    "  %13 = stablehlo.multiply %12, %4 : tensor<56x24xf32>\n"
    "  %14 = stablehlo.sqrt %11 : tensor<56x24xf32>\n"
    "  %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>\n"
    "  %15 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> "
    "tensor<56x24xf32>\n"
    "  %16 = stablehlo.add %14, %15 : tensor<56x24xf32>\n"
    "  %17 = stablehlo.divide %13, %16 : tensor<56x24xf32>\n"
    "  %18 = stablehlo.subtract %x0, %17 : tensor<56x24xf32>\n"
    "  return %18, %4, %10, %11 : tensor<56x24xf32>, tensor<56x24xf32>, "
    "tensor<56x24xf32>, tensor<56x24xf32>\n"
    "}\n";

static void test_several(void **state) {
  (void)state;
  like(several, "tpu-v6e", 2244, 110624);
  like(several, "tpu7x", 2363, 110624);
}

/* What is made of a short array for one result is not stored on the way, however long that is. */
static const char again[] =
    "func.func public @main(%x0: tensor<8192xf32>, %x1: tensor<8192xf32>, %x2: "
    "tensor<8192xf32>) -> (tensor<8192xf32>) {\n"
    "  %0 = stablehlo.subtract %x0, %x1 : tensor<8192xf32>\n"
    "  %1 = stablehlo.exponential %0 : tensor<8192xf32>\n"
    "  %2 = stablehlo.multiply %1, %x2 : tensor<8192xf32>\n"
    "  %3 = stablehlo.subtract %x0, %x1 : tensor<8192xf32>\n"
    "  %4 = stablehlo.exponential %3 : tensor<8192xf32>\n"
    "  %cst = stablehlo.constant dense<8.000000e-01> : tensor<f32>\n"
    "  %cst_0 = stablehlo.constant dense<1.200000e+00> : tensor<f32>\n"
    "  %5:3 = call @clip(%4, %cst, %cst_0) : (tensor<8192xf32>, tensor<f32>, "
    "tensor<f32>) -> (tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>)\n"
    "  %6 = stablehlo.multiply %5#0, %x2 : tensor<8192xf32>\n"
    "  %7 = stablehlo.minimum %2, %6 : tensor<8192xf32>\n"
    "  %8 = stablehlo.compare EQ, %2, %7, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %11 = stablehlo.select %8, %9, %10 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %12 = stablehlo.compare EQ, %6, %7, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>\n"
    "  %13 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %14 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %15 = stablehlo.select %12, %13, %14 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %16 = stablehlo.divide %11, %15 : tensor<8192xf32>\n"
    "  %17 = stablehlo.compare EQ, %6, %7, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %18 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %19 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %20 = stablehlo.select %17, %18, %19 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %21 = stablehlo.compare EQ, %2, %7, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>\n"
    "  %22 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %23 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %24 = stablehlo.select %21, %22, %23 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %25 = stablehlo.divide %20, %24 : tensor<8192xf32>\n"
    "  %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %26 = stablehlo.negate %cst_9 : tensor<f32>\n"
    "  %cst_10 = stablehlo.constant dense<8.192000e+03> : tensor<f32>\n"
    "  %27 = stablehlo.divide %26, %cst_10 : tensor<f32>\n"
    "  %28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %29 = stablehlo.multiply %28, %25 : tensor<8192xf32>\n"
    "  %30 = stablehlo.multiply %28, %16 : tensor<8192xf32>\n"
    "  %31 = stablehlo.multiply %29, %x2 : tensor<8192xf32>\n"
    "  %32 = call @clip_0(%5#1, %5#2, %31) : (tensor<8192xf32>, tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xf32>\n"
    "  %33 = stablehlo.multiply %32, %4 : tensor<8192xf32>\n"
    "  %34 = stablehlo.multiply %30, %x2 : tensor<8192xf32>\n"
    "  %35 = stablehlo.multiply %34, %1 : tensor<8192xf32>\n"
    "  %36 = stablehlo.add %33, %35 : tensor<8192xf32>\n"
    "  return %36 : tensor<8192xf32>\n"
    "}\n"
    "func.func private @clip(%x0: tensor<8192xf32>, %x1: tensor<f32>, %x2: "
    "tensor<f32>) -> (tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>) {\n"
    "  %0 = stablehlo.convert %x1 : tensor<f32>\n"
    "  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %2 = stablehlo.maximum %1, %x0 : tensor<8192xf32>\n"
    "  %3 = stablehlo.compare EQ, %x0, %2, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %6 = stablehlo.select %3, %4, %5 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %8 = stablehlo.compare EQ, %7, %2, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>\n"
    "  %9 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %11 = stablehlo.select %8, %9, %10 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %12 = stablehlo.divide %6, %11 : tensor<8192xf32>\n"
    "  %13 = stablehlo.convert %x2 : tensor<f32>\n"
    "  %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %15 = stablehlo.minimum %14, %2 : tensor<8192xf32>\n"
    "  %16 = stablehlo.compare EQ, %2, %15, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %17 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %19 = stablehlo.select %16, %17, %18 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %20 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %21 = stablehlo.compare EQ, %20, %15, FLOAT : (tensor<8192xf32>, "
    "tensor<8192xf32>) -> tensor<8192xi1>\n"
    "  %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>\n"
    "  %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
    "  %23 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> "
    "tensor<8192xf32>\n"
    "  %24 = stablehlo.select %21, %22, %23 : tensor<8192xi1>, tensor<8192xf32>\n"
    "  %25 = stablehlo.divide %19, %24 : tensor<8192xf32>\n"
    "  return %15, %12, %25 : tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>\n"
    "}\n"
    "func.func private @clip_0(%x0: tensor<8192xf32>, %x1: tensor<8192xf32>, %x2: "
    "tensor<8192xf32>) -> tensor<8192xf32> {\n"
    "  %0 = stablehlo.multiply %x2, %x1 : tensor<8192xf32>\n"
    "  %1 = stablehlo.multiply %0, %x0 : tensor<8192xf32>\n"
    "  return %1 : tensor<8192xf32>\n"
    "}\n";

static void test_again(void **state) {
  (void)state;
  like(again, "tpu-v4", 850, 131072);
  like(again, "tpu-v5e", 2180, 131072);
  like(again, "tpu-v6e", 2354, 131072);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ln2),        cmocka_unit_test(test_squares),
      cmocka_unit_test(test_number),     cmocka_unit_test(test_onehot),
      cmocka_unit_test(test_flat),       cmocka_unit_test(test_few),
      cmocka_unit_test(test_few_sorted), cmocka_unit_test(test_several),
      cmocka_unit_test(test_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
