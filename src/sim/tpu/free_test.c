/* free: operations on their own as anybody may write them, and small compositions. Cycles and peaks are libtpu
 * 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

/* A product that is said twice is made once. */
static const char twice[] =
    "func.func public @main(%x: tensor<512x256xbf16>, %w: tensor<256x512xbf16>) -> "
    "tensor<512x256xbf16> {\n"
    "  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<512x256xbf16>, tensor<256x512xbf16>) -> tensor<512x512xbf16>\n"
    "  %b = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
    "(tensor<512x256xbf16>, tensor<256x512xbf16>) -> tensor<512x512xbf16>\n"
    "  %l = stablehlo.slice %a [0:512, 0:256] : (tensor<512x512xbf16>) -> "
    "tensor<512x256xbf16>\n"
    "  %r = stablehlo.slice %b [0:512, 256:512] : (tensor<512x512xbf16>) -> "
    "tensor<512x256xbf16>\n"
    "  %t = stablehlo.tanh %r : tensor<512x256xbf16>\n"
    "  %y = stablehlo.multiply %l, %t : tensor<512x256xbf16>\n"
    "  return %y : tensor<512x256xbf16>\n"
    "}\n";

static void test_twice(void **state) {
  (void)state;
  like(twice, "tpu-v5e", 12378, 1572864);
  like(twice, "tpu-v2", 11163, 1310720);
}

/* What is gathered at places that are known before is a slice, the middle of two here. */
static const char place[] = "func.func public @main(%x: tensor<400x256xf32>) -> tensor<400xf32> {\n"
                            "  %half = stablehlo.constant dense<127.5> : tensor<f32>\n"
                            "  %lo = stablehlo.floor %half : tensor<f32>\n"
                            "  %hi = stablehlo.ceil %half : tensor<f32>\n"
                            "  %li = stablehlo.convert %lo : (tensor<f32>) -> tensor<i32>\n"
                            "  %ri = stablehlo.convert %hi : (tensor<f32>) -> tensor<i32>\n"
                            "  %l = stablehlo.reshape %li : (tensor<i32>) -> tensor<1xi32>\n"
                            "  %r = stablehlo.reshape %ri : (tensor<i32>) -> tensor<1xi32>\n"
                            "  %a = \"stablehlo.gather\"(%x, %l) <{dimension_numbers = "
                            "#stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], "
                            "start_index_map = [1]>, slice_sizes = array<i64: 400, 1>}> : "
                            "(tensor<400x256xf32>, tensor<1xi32>) -> tensor<400xf32>\n"
                            "  %b = \"stablehlo.gather\"(%x, %r) <{dimension_numbers = "
                            "#stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], "
                            "start_index_map = [1]>, slice_sizes = array<i64: 400, 1>}> : "
                            "(tensor<400x256xf32>, tensor<1xi32>) -> tensor<400xf32>\n"
                            "  %y = stablehlo.add %a, %b : tensor<400xf32>\n"
                            "  return %y : tensor<400xf32>\n"
                            "}\n";

static void test_place(void **state) {
  (void)state;
  peak_near(place, "tpu-v5e", 411648, 0.01);
  peak_near(place, "tpu-v2", 411648, 0.01);
}

/* A mask made from nothing is bytes, which are written like an array. */
static const char mask[] =
    "func.func public @main(%x: tensor<8x64x64xf32>) -> tensor<8x64x64xf32> {\n"
    "  %i = stablehlo.iota dim = 0 : tensor<64x64xi32>\n"
    "  %j = stablehlo.iota dim = 1 : tensor<64x64xi32>\n"
    "  %m = stablehlo.compare GE, %i, %j : (tensor<64x64xi32>, tensor<64x64xi32>) "
    "-> tensor<64x64xi1>\n"
    "  %b = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<64x64xi1>) -> "
    "tensor<8x64x64xi1>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<8x64x64xf32>\n"
    "  %y = stablehlo.select %b, %x, %z : tensor<8x64x64xi1>, tensor<8x64x64xf32>\n"
    "  return %y : tensor<8x64x64xf32>\n"
    "}\n";

static void test_mask(void **state) {
  (void)state;
  like(mask, "tpu-v5e", 4830, 532480);
  like(mask, "tpu-v2", 1825, 532480);
}

/* A padded array that is cut is one loop. */
static const char shift[] =
    "func.func public @main(%x: tensor<90x1624xf32>) -> tensor<90x1624xf32> {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %p = stablehlo.pad %x, %z, low = [1, 0], high = [0, 0], interior = [0, 0] : "
    "(tensor<90x1624xf32>, tensor<f32>) -> tensor<91x1624xf32>\n"
    "  %y = stablehlo.slice %p [0:90, 0:1624] : (tensor<91x1624xf32>) -> "
    "tensor<90x1624xf32>\n"
    "  return %y : tensor<90x1624xf32>\n"
    "}\n";

static void test_shift(void **state) {
  (void)state;
  like(shift, "tpu-v5e", 4759, 1277952);
  like(shift, "tpu-v2", 3751, 1277952);
}

/* Places along both sides are packed into one number; the array is read as it lies. */
static const char pair[] =
    "func.func public @main(%x: tensor<7296x17xf32>, %i: tensor<128x1xi32>, %j: "
    "tensor<128x1xi32>) -> tensor<128xf32> {\n"
    "  %at = stablehlo.concatenate %i, %j, dim = 1 : (tensor<128x1xi32>, "
    "tensor<128x1xi32>) -> tensor<128x2xi32>\n"
    "  %y = \"stablehlo.gather\"(%x, %at) <{dimension_numbers = "
    "#stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], "
    "index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : "
    "(tensor<7296x17xf32>, tensor<128x2xi32>) -> tensor<128xf32>\n"
    "  return %y : tensor<128xf32>\n"
    "}\n";

static void test_pair(void **state) {
  (void)state;
  like(pair, "tpu-v5e", 1827, 1402880);
  like(pair, "tpu-v3", 262, 704512);
}

/* Heads that become features: the argument, turned and joined, is copied once. */
static const char heads[] =
    "func.func public @main(%x: tensor<8x4x256x96xf32>) -> tensor<8x256x384xf32> {\n"
    "  %t = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<8x4x256x96xf32>) "
    "-> tensor<8x256x4x96xf32>\n"
    "  %y = stablehlo.reshape %t : (tensor<8x256x4x96xf32>) -> "
    "tensor<8x256x384xf32>\n"
    "  return %y : tensor<8x256x384xf32>\n"
    "}\n";

static void test_heads(void **state) {
  (void)state;
  like(heads, "tpu-v5e", 20192, 6291456);
  like(heads, "tpu-v3", 14868, 6291456);
}

/* One filter of a single tap a channel multiplies. */
static const char scaled[] =
    "func.func public @main(%x: tensor<128x4x4x16xf32>, %w: tensor<1x1x1x16xf32>) "
    "-> tensor<128x4x4x16xf32> {\n"
    "  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
    "o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, "
    "feature_group_count = 16 : i64} : (tensor<128x4x4x16xf32>, "
    "tensor<1x1x1x16xf32>) -> tensor<128x4x4x16xf32>\n"
    "  return %y : tensor<128x4x4x16xf32>\n"
    "}\n";

static void test_scaled(void **state) {
  (void)state;
  like(scaled, "tpu-v5e", 2389, 262656);
  like(scaled, "tpu7x", 2471, 263168);
}

/* Vectors that meet vectors are multiplied and added up on every generation. */
static const char rows[] =
    "func.func public @main(%x: tensor<120x192xbf16>, %y: tensor<120x192xbf16>) -> "
    "tensor<120xbf16> {\n"
    "  %z = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], "
    "contracting_dims = [1] x [1] : (tensor<120x192xbf16>, tensor<120x192xbf16>) "
    "-> tensor<120xbf16>\n"
    "  return %z : tensor<120xbf16>\n"
    "}\n";

static void test_rows(void **state) {
  (void)state;
  like(rows, "tpu7x", 2427, 98816);
  like(rows, "tpu-v5e", 2245, 98816);
}

/* A reversal along lanes is an operation between two stored arrays. */
static const char turned[] = "func.func public @main(%x: tensor<48x32x35x24xf32>) -> "
                             "tensor<48x32x35x24xf32> {\n"
                             "  %r = stablehlo.reverse %x, dims = [0] : tensor<48x32x35x24xf32>\n"
                             "  %y = stablehlo.multiply %r, %x : tensor<48x32x35x24xf32>\n"
                             "  return %y : tensor<48x32x35x24xf32>\n"
                             "}\n";

static void test_turned(void **state) {
  (void)state;
  like(turned, "tpu-v5e", 134882, 55050240);
  like(turned, "tpu-v3", 98395, 41287680);
}

/* Sums go with those that they share most with, also where these have to wait. */
static const char partners[] =
    "func.func public @main(%x: tensor<120x141xf32>, %d: tensor<120x141xf32>) -> "
    "(tensor<120xf32>, tensor<141xf32>, tensor<120xf32>) {\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %m = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions "
    "= [1] : (tensor<120x141xf32>, tensor<f32>) -> tensor<120xf32>\n"
    "  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<120xf32>) -> "
    "tensor<120x141xf32>\n"
    "  %c = stablehlo.subtract %x, %mb : tensor<120x141xf32>\n"
    "  %q = stablehlo.multiply %c, %c : tensor<120x141xf32>\n"
    "  %v = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions "
    "= [1] : (tensor<120x141xf32>, tensor<f32>) -> tensor<120xf32>\n"
    "  %r = stablehlo.rsqrt %v : tensor<120xf32>\n"
    "  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<120xf32>) -> "
    "tensor<120x141xf32>\n"
    "  %dc = stablehlo.multiply %d, %c : tensor<120x141xf32>\n"
    "  %s = stablehlo.reduce(%dc init: %z) applies stablehlo.add across dimensions "
    "= [1] : (tensor<120x141xf32>, tensor<f32>) -> tensor<120xf32>\n"
    "  %n = stablehlo.multiply %dc, %rb : tensor<120x141xf32>\n"
    "  %g = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions "
    "= [0] : (tensor<120x141xf32>, tensor<f32>) -> tensor<141xf32>\n"
    "  %sr = stablehlo.multiply %s, %r : tensor<120xf32>\n"
    "  return %r, %g, %sr : tensor<120xf32>, tensor<141xf32>, tensor<120xf32>\n"
    "}\n";

static void test_partners(void **state) {
  (void)state;
  like(partners, "tpu-v5e", 10215, 300032);
  like(partners, "tpu-v3", 2601, 155648);
}

/* A sliver in front of the rest: each window reads no more of it than there is. */
static const char roll[] =
    "func.func public @main(%x: tensor<3072x512xf32>) -> tensor<3072x512xf32> {\n"
    "  %a = stablehlo.slice %x [3069:3072, 0:512] : (tensor<3072x512xf32>) -> "
    "tensor<3x512xf32>\n"
    "  %b = stablehlo.slice %x [0:3069, 0:512] : (tensor<3072x512xf32>) -> "
    "tensor<3069x512xf32>\n"
    "  %y = stablehlo.concatenate %a, %b, dim = 0 : (tensor<3x512xf32>, "
    "tensor<3069x512xf32>) -> tensor<3072x512xf32>\n"
    "  return %y : tensor<3072x512xf32>\n"
    "}\n";

static void test_roll(void **state) {
  (void)state;
  like(roll, "tpu-v5e", 32496, 12591104);
  like(roll, "tpu-v3", 30795, 12591104);
}

/* Rows of whole lanes that are split into eights move tile by tile, in one copy. */
static const char split[] =
    "func.func public @main(%x: tensor<40x2048xbf16>) -> tensor<40x16x128xbf16> {\n"
    "  %y = stablehlo.reshape %x : (tensor<40x2048xbf16>) -> tensor<40x16x128xbf16>\n"
    "  return %y : tensor<40x16x128xbf16>\n"
    "}\n";

static void test_split(void **state) {
  (void)state;
  like(split, "tpu-v5e", 3208, 327680);
}

/* Numbers along one of two sides are a vector, and what is reckoned of them alone is one, too. */
static const char above[] =
    "func.func public @main(%x: tensor<64x666xf32>) -> tensor<64x666xf32> {\n"
    "  %i = stablehlo.iota dim = 0 : tensor<64x666xi32>\n"
    "  %one = stablehlo.constant dense<-1> : tensor<64x666xi32>\n"
    "  %k = stablehlo.add %i, %one : tensor<64x666xi32>\n"
    "  %j = stablehlo.iota dim = 1 : tensor<64x666xi32>\n"
    "  %m = stablehlo.compare GE, %k, %j : (tensor<64x666xi32>, "
    "tensor<64x666xi32>) -> tensor<64x666xi1>\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<64x666xf32>\n"
    "  %y = stablehlo.select %m, %z, %x : tensor<64x666xi1>, tensor<64x666xf32>\n"
    "  return %y : tensor<64x666xf32>\n"
    "}\n";

static void test_above(void **state) {
  (void)state;
  like(above, "tpu-v5e", 4615, 393728);
}

/* Elements put apart along sublanes: an operation of its own, without an estimate. */
static const char between[] =
    "func.func public @main(%x0: tensor<64x512xf32>) -> (tensor<128x512xf32>) {\n"
    "  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %0 = stablehlo.pad %x0, %cst, low = [0, 0], high = [1, 0], interior = [1, "
    "0] : (tensor<64x512xf32>, tensor<f32>) -> tensor<128x512xf32>\n"
    "  return %0 : tensor<128x512xf32>\n"
    "}\n";

static void test_between(void **state) {
  (void)state;
  like(between, "tpu-v2", 0, 394240);
  like(between, "tpu-v5e", 0, 393728);
  like(between, "tpu-v6e", 0, 393728);
}

/* There is nothing between the elements of a side of one: an edge, put on in the loop. */
static const char single[] =
    "func.func public @main(%x0: tensor<1x512xf32>, %x1: tensor<1x512xf32>) -> "
    "(tensor<2x512xf32>) {\n"
    "  %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>\n"
    "  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
    "tensor<1x512xf32>\n"
    "  %1 = stablehlo.multiply %x0, %0 : tensor<1x512xf32>\n"
    "  %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %2 = stablehlo.pad %1, %cst_0, low = [0, 0], high = [1, 0], interior = [1, "
    "0] : (tensor<1x512xf32>, tensor<f32>) -> tensor<2x512xf32>\n"
    "  %3 = stablehlo.multiply %x1, %x1 : tensor<1x512xf32>\n"
    "  %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "  %4 = stablehlo.pad %3, %cst_1, low = [1, 0], high = [0, 0], interior = [1, "
    "0] : (tensor<1x512xf32>, tensor<f32>) -> tensor<2x512xf32>\n"
    "  %5 = stablehlo.add %2, %4 : tensor<2x512xf32>\n"
    "  return %5 : tensor<2x512xf32>\n"
    "}\n";

static void test_single(void **state) {
  (void)state;
  like(single, "tpu-v5e", 5589, 14336);
  like(single, "tpu-v6e", 6420, 14336);
}

/* Row numbers that are reckoned are stored, then held to the rows and padded to a tile. */
static const char numbers[] =
    "func.func public @main(%x0: tensor<1000x128xf32>, %x1: tensor<500xi32>) -> "
    "(tensor<500x128xf32>) {\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> "
    "tensor<500xi32>\n"
    "  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<500xi32>, "
    "tensor<500xi32>) -> tensor<500xi1>\n"
    "  %c_0 = stablehlo.constant dense<1000> : tensor<i32>\n"
    "  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> "
    "tensor<500xi32>\n"
    "  %3 = stablehlo.add %x1, %2 : tensor<500xi32>\n"
    "  %4 = stablehlo.select %1, %3, %x1 : tensor<500xi1>, tensor<500xi32>\n"
    "  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<500xi32>) -> "
    "tensor<500x1xi32>\n"
    "  %6 = \"stablehlo.gather\"(%x0, %5) <{dimension_numbers = "
    "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
    "slice_sizes = array<i64: 1, 128>}> : (tensor<1000x128xf32>, "
    "tensor<500x1xi32>) -> tensor<500x128xf32>\n"
    "  return %6 : tensor<500x128xf32>\n"
    "}\n";

static void test_numbers(void **state) {
  (void)state;
  like(numbers, "tpu-v2", 407, 778240);
  like(numbers, "tpu-v5e", 3648, 1290240);
  like(numbers, "tpu-v6e", 4238, 1290240);
}

/* A matrix of them is made a vector between, and its rows are taken apart and turned. */
static const char ids[] =
    "func.func public @main(%x0: tensor<1000x128xf32>, %x1: tensor<16x100xi32>) -> "
    "(tensor<16x100x128xf32>) {\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> "
    "tensor<16x100xi32>\n"
    "  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<16x100xi32>, "
    "tensor<16x100xi32>) -> tensor<16x100xi1>\n"
    "  %c_0 = stablehlo.constant dense<1000> : tensor<i32>\n"
    "  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> "
    "tensor<16x100xi32>\n"
    "  %3 = stablehlo.add %x1, %2 : tensor<16x100xi32>\n"
    "  %4 = stablehlo.select %1, %3, %x1 : tensor<16x100xi1>, tensor<16x100xi32>\n"
    "  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<16x100xi32>) -> "
    "tensor<16x100x1xi32>\n"
    "  %6 = \"stablehlo.gather\"(%x0, %5) <{dimension_numbers = "
    "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, "
    "slice_sizes = array<i64: 1, 128>}> : (tensor<1000x128xf32>, "
    "tensor<16x100x1xi32>) -> tensor<16x100x128xf32>\n"
    "  return %6 : tensor<16x100x128xf32>\n"
    "}\n";

static void test_ids(void **state) {
  (void)state;
  like(ids, "tpu-v2", 4746, 3010560);
  like(ids, "tpu-v5e", 7297, 3010560);
}

/* A mask of rows beyond the end is a loop of its own. */
static const char masked[] =
    "func.func public @main(%x0: tensor<1000x128xf32>, %x1: tensor<500xi32>) -> "
    "(tensor<500x128xf32>) {\n"
    "  %0 = call @_take(%x0, %x1) : (tensor<1000x128xf32>, tensor<500xi32>) -> "
    "tensor<500x128xf32>\n"
    "  return %0 : tensor<500x128xf32>\n"
    "}\n"
    "func.func private @_take(%x0: tensor<1000x128xf32>, %x1: tensor<500xi32>) -> "
    "tensor<500x128xf32> {\n"
    "  %c = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> "
    "tensor<500xi32>\n"
    "  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<500xi32>, "
    "tensor<500xi32>) -> tensor<500xi1>\n"
    "  %c_0 = stablehlo.constant dense<1000> : tensor<i32>\n"
    "  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> "
    "tensor<500xi32>\n"
    "  %3 = stablehlo.add %x1, %2 : tensor<500xi32>\n"
    "  %4 = call @_where(%1, %3, %x1) : (tensor<500xi1>, tensor<500xi32>, "
    "tensor<500xi32>) -> tensor<500xi32>\n"
    "  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<500xi32>) -> "
    "tensor<500x1xi32>\n"
    "  %c_1 = stablehlo.constant dense<999> : tensor<1xi32>\n"
    "  %c_2 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> "
    "tensor<500x1xi32>\n"
    "  %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<500x1xi32>, "
    "tensor<500x1xi32>) -> tensor<500x1xi1>\n"
    "  %8 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<1xi32>) -> "
    "tensor<1x1xi32>\n"
    "  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x1xi32>) -> "
    "tensor<500x1xi32>\n"
    "  %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<500x1xi32>, "
    "tensor<500x1xi32>) -> tensor<500x1xi1>\n"
    "  %11 = stablehlo.and %7, %10 : tensor<500x1xi1>\n"
    "  %c_3 = stablehlo.constant dense<true> : tensor<i1>\n"
    "  %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across "
    "dimensions = [1] : (tensor<500x1xi1>, tensor<i1>) -> tensor<500xi1>\n"
    "  %13 = \"stablehlo.gather\"(%x0, %5) <{dimension_numbers = "
    "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
    "slice_sizes = array<i64: 1, 128>}> : (tensor<1000x128xf32>, "
    "tensor<500x1xi32>) -> tensor<500x128xf32>\n"
    "  %14 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<500xi1>) -> "
    "tensor<500x128xi1>\n"
    "  %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "  %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
    "tensor<500x128xf32>\n"
    "  %16 = stablehlo.select %14, %13, %15 : tensor<500x128xi1>, "
    "tensor<500x128xf32>\n"
    "  return %16 : tensor<500x128xf32>\n"
    "}\n"
    "func.func private @_where(%x0: tensor<500xi1>, %x1: tensor<500xi32>, %x2: "
    "tensor<500xi32>) -> tensor<500xi32> {\n"
    "  %0 = stablehlo.select %x0, %x1, %x2 : tensor<500xi1>, tensor<500xi32>\n"
    "  return %0 : tensor<500xi32>\n"
    "}\n";

static void test_masked(void **state) {
  (void)state;
  like(masked, "tpu-v5e", 9395, 1548288);
  like(masked, "tpu-v6e", 9835, 1548288);
}

/* A stable sort of several arrays numbers their elements. */
static const char keys[] =
    "func.func public @main(%x0: tensor<192x208xf32>, %x1: tensor<192x208xf32>, "
    "%x2: tensor<192x208xi32>) -> (tensor<192x208xf32>, tensor<192x208xf32>, "
    "tensor<192x208xi32>) {\n"
    "  %0:3 = \"stablehlo.sort\"(%x0, %x1, %x2) <{dimension = 1 : i64, is_stable = "
    "true}> ({\n"
    "  ^bb0(%x3: tensor<f32>, %x4: tensor<f32>, %x5: tensor<f32>, %x6: "
    "tensor<f32>, %x7: tensor<i32>, %x8: tensor<i32>):\n"
    "    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %1 = stablehlo.compare EQ, %x3, %cst, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %2 = stablehlo.select %1, %cst_0, %x3 : tensor<i1>, tensor<f32>\n"
    "    %3 = stablehlo.compare NE, %x3, %x3, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "    %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>\n"
    "    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %5 = stablehlo.compare EQ, %x4, %cst_2, FLOAT : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %6 = stablehlo.select %5, %cst_3, %x4 : tensor<i1>, tensor<f32>\n"
    "    %7 = stablehlo.compare NE, %x4, %x4, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "    %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>\n"
    "    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %9 = stablehlo.compare EQ, %x5, %cst_5, FLOAT : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %10 = stablehlo.select %9, %cst_6, %x5 : tensor<i1>, tensor<f32>\n"
    "    %11 = stablehlo.compare NE, %x5, %x5, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %cst_7 = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "    %12 = stablehlo.select %11, %cst_7, %10 : tensor<i1>, tensor<f32>\n"
    "    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %13 = stablehlo.compare EQ, %x6, %cst_8, FLOAT : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
    "    %14 = stablehlo.select %13, %cst_9, %x6 : tensor<i1>, tensor<f32>\n"
    "    %15 = stablehlo.compare NE, %x6, %x6, FLOAT : (tensor<f32>, tensor<f32>) "
    "-> tensor<i1>\n"
    "    %cst_10 = stablehlo.constant dense<0x7FC00000> : tensor<f32>\n"
    "    %16 = stablehlo.select %15, %cst_10, %14 : tensor<i1>, tensor<f32>\n"
    "    %17 = stablehlo.compare LT, %12, %16, TOTALORDER : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    %18 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    %19 = stablehlo.compare EQ, %4, %8, TOTALORDER : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n"
    "    %20 = stablehlo.and %19, %17 : tensor<i1>\n"
    "    %21 = stablehlo.or %18, %20 : tensor<i1>\n"
    "    stablehlo.return %21 : tensor<i1>\n"
    "  }) : (tensor<192x208xf32>, tensor<192x208xf32>, tensor<192x208xi32>) -> "
    "(tensor<192x208xf32>, tensor<192x208xf32>, tensor<192x208xi32>)\n"
    "  return %0#0, %0#1, %0#2 : tensor<192x208xf32>, tensor<192x208xf32>, "
    "tensor<192x208xi32>\n"
    "}\n";

static void test_keys(void **state) {
  (void)state;
  like(keys, "tpu-v2", 666, 1381376);
  like(keys, "tpu-v5p", 2268, 1378336);
  like(keys, "tpu-v6e", 28, 1574944);
}

/* A quotient by a constant is a product. */
static const char sixth[] =
    "!t = tensor<1536x128xbf16>\n"
    "func.func public @main(%x: !t) -> !t {\n"
    "  %3 = stablehlo.constant dense<3.0> : !t\n  %z = stablehlo.constant dense<0.0> : !t\n"
    "  %6 = stablehlo.constant dense<6.0> : !t\n  %a = stablehlo.add %x, %3 : !t\n"
    "  %b = stablehlo.maximum %z, %a : !t\n  %c = stablehlo.minimum %6, %b : !t\n"
    "  %d = stablehlo.multiply %x, %c : !t\n  %e = stablehlo.divide %d, %6 : !t\n"
    "  return %e : !t\n}\n";

static void test_sixth(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    double cycles;
  } known[] = {{"tpu-v2", 4322}, {"tpu-v3", 4404}, {"tpu-v4", 2759}, {"tpu-v5e", 5350}};
  for (int i = 0; i < COUNT_OF(known); i++) {
    SimReport *r = estimate(sixth, known[i].chip);
    near(r->cycles, known[i].cycles, 0.025);
    sim_report_free(r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sixth),    cmocka_unit_test(test_twice),
      cmocka_unit_test(test_place),    cmocka_unit_test(test_mask),
      cmocka_unit_test(test_shift),    cmocka_unit_test(test_pair),
      cmocka_unit_test(test_heads),    cmocka_unit_test(test_scaled),
      cmocka_unit_test(test_rows),     cmocka_unit_test(test_turned),
      cmocka_unit_test(test_partners), cmocka_unit_test(test_roll),
      cmocka_unit_test(test_split),    cmocka_unit_test(test_above),
      cmocka_unit_test(test_between),  cmocka_unit_test(test_single),
      cmocka_unit_test(test_numbers),  cmocka_unit_test(test_ids),
      cmocka_unit_test(test_masked),   cmocka_unit_test(test_keys),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
