/* Windows along a cut dimension: devices fetch a few elements of their neighbours, never the whole array. */
#include <stdio.h>

#include "compile/spmd/partition_test.h"

#define ROWS "{sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}, {}, {}]>}"

/* Nothing is gathered, the answers are those of the whole, and so many pieces go to neighbours. */
static void check_halos(const char *name, const char *text, int pieces) {
  Module *m = partitioned(name, text);
  if (count_kind(m, OP_COLLECTIVE_PERMUTE) != pieces)
    fail_msg("%s: %d pieces", name, count_kind(m, OP_COLLECTIVE_PERMUTE));
  module_free(m);
  assert_int_equal(check_text(name, text), 0);
}

/* Pictures of 64 rows over 8 devices. */
static void test_convolutions(void **state) {
  (void)state;
  static const struct {
    const char *name, *window, *kernel;
    int rows, pieces;
  } cases[] = {
      {"same", "pad = [[1, 1], [1, 1]]", "3x3x2x3", 64, 2},
      {"even kernel", "pad = [[1, 2], [1, 2]]", "4x4x2x3", 64, 2},
      {"strided", "stride = [2, 2], pad = [[0, 1], [0, 1]]", "3x3x2x3", 32, 1},
      {"patches", "stride = [4, 4]", "4x4x2x3", 16, 0},
      {"every other", "stride = [2, 2], pad = [[0, -1], [0, -1]]", "1x1x2x3", 32, 0},
      {"dilated", "pad = [[4, 4], [4, 4]], rhs_dilate = [4, 4]", "3x3x2x3", 64, 2},
      {"transposed", "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]", "3x3x2x3", 128, 1},
      {"turned round", "pad = [[2, 0], [2, 0]], reverse = [1, 1]", "3x3x2x3", 64, 1},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    char text[2048];
    int n = cases[i].rows;
    snprintf(text, sizeof text,
             MESH "func.func @main(%%x: tensor<2x64x8x2xf32> " ROWS
                  ", %%k: tensor<%sxf32>) -> (tensor<2x%dx%dx3xf32> " ROWS
                  ") {\n  %%r = stablehlo.convolution(%%x, %%k) dim_numbers = [b, 0, 1, f]x[0, 1, "
                  "i, o]->[b, 0, 1, f], window = {%s} "
                  "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
                  "(tensor<2x64x8x2xf32>, tensor<%sxf32>) -> "
                  "tensor<2x%dx%dx3xf32>\n  return %%r : tensor<2x%dx%dx3xf32>\n}",
             cases[i].kernel, n, n / 8, cases[i].window, cases[i].kernel, n, n / 8, n, n / 8);
    check_halos(cases[i].name, text, cases[i].pieces);
  }
}

/* The gradient of a kernel: each device has its rows' terms, which are summed. */
static void test_kernels_gradient(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<2x64x8x2xf32> " ROWS ", %y: tensor<2x64x8x3xf32> " ROWS
      ") -> tensor<2x3x3x3xf32> {\n"
      "  %r = stablehlo.convolution(%x, %y) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
      "i64} : "
      "(tensor<2x64x8x2xf32>, tensor<2x64x8x3xf32>) -> tensor<2x3x3x3xf32>\n"
      "  return %r : tensor<2x3x3x3xf32>\n}";
  Module *m = partitioned("gradient", text);
  assert_int_equal(count_kind(m, OP_ALL_REDUCE), 1);
  module_free(m);
  check_halos("gradient", text, 2);
}

/* Beyond the ends lies what the reduction begins with. */
static void test_pools(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<2x64x8x2xf32> " ROWS ") -> (tensor<2x32x4x2xf32> " ROWS
           ", tensor<2x16x8x2xf32> " ROWS ") {\n"
           "  %i = stablehlo.constant dense<1.000000e+02> : tensor<f32>\n"
           "  %r = \"stablehlo.reduce_window\"(%x, %i) ({\n"
           "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
           "    %s = stablehlo.minimum %a, %b : tensor<f32>\n"
           "    stablehlo.return %s : tensor<f32>\n"
           "  }) {padding = dense<[[0, 0], [1, 0], [1, 0], [0, 0]]> : tensor<4x2xi64>, "
           "window_dimensions = array<i64: 1, 3, 3, 1>, "
           "window_strides = array<i64: 1, 2, 2, 1>} : (tensor<2x64x8x2xf32>, tensor<f32>) -> "
           "tensor<2x32x4x2xf32>\n"
           "  %q = \"stablehlo.reduce_window\"(%x, %i) ({\n"
           "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
           "    %s = stablehlo.minimum %a, %b : tensor<f32>\n"
           "    stablehlo.return %s : tensor<f32>\n"
           "  }) {window_dimensions = array<i64: 1, 2, 1, 1>, window_strides = array<i64: 1, 4, 1, "
           "1>} : "
           "(tensor<2x64x8x2xf32>, tensor<f32>) -> tensor<2x16x8x2xf32>\n"
           "  return %r, %q : tensor<2x32x4x2xf32>, tensor<2x16x8x2xf32>\n}";
  check_halos("pools", text, 1);
}

/* Sorted along the cut dimension: the cut goes to the other one and back. */
static void test_sorted(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) -> "
      "(tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) {\n"
      "  %r = \"stablehlo.sort\"(%x) ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    stablehlo.return %c : tensor<i1>\n"
      "  }) {dimension = 1 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>\n"
      "  return %r : tensor<8x16xf32>\n}";
  Module *m = partitioned("sorted", text);
  assert_int_equal(count_kind(m, OP_ALL_TO_ALL), 2);
  module_free(m);
  check_halos("sorted", text, 0);
}

/* Of a row that is cut, each device's largest and of those the largest; equal ones in their order. */
static void test_top_k(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<4x64xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}) -> "
      "(tensor<4x5xf32>, tensor<4x5xi32>) {\n"
      "  %v, %i = chlo.top_k(%x, k = 5) : tensor<4x64xf32> -> (tensor<4x5xf32>, tensor<4x5xi32>)\n"
      "  return %v, %i : tensor<4x5xf32>, tensor<4x5xi32>\n}";
  Module *m = partitioned("top k", text);
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    if (op->kind == OP_ALL_GATHER) assert_int_equal(type_count(op->results[0].type), 4 * 5 * 8);
  module_free(m);
  assert_int_equal(check_text("top k", text), 2);
}

/* Single elements of an array that is cut along both dimensions that count them. */
static void test_elements(void **state) {
  (void)state;
  static const char text[] = "sdy.mesh @m = <[\"a\"=2, \"b\"=4]>\n"
                             "func.func @main(%x: tensor<8x16xf32> {sdy.sharding = "
                             "#sdy.sharding<@m, [{\"a\"}, {\"b\"}]>}, %i: tensor<6x2xi32>) -> "
                             "tensor<6xf32> {\n"
                             "  %r = \"stablehlo.gather\"(%x, %i) {dimension_numbers = "
                             "#stablehlo.gather<collapsed_slice_dims = [0, 1], "
                             "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = "
                             "array<i64: 1, 1>} : (tensor<8x16xf32>, tensor<6x2xi32>) -> "
                             "tensor<6xf32>\n"
                             "  return %r : tensor<6xf32>\n}";
  check_halos("elements", text, 0);
}

static void test_turned_round(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<2x64x8x2xf32> " ROWS ") -> (tensor<2x64x8x2xf32> " ROWS ") {\n"
      "  %r = stablehlo.reverse %x, dims = [1, 3] : tensor<2x64x8x2xf32>\n"
      "  return %r : tensor<2x64x8x2xf32>\n}";
  check_halos("turned round", text, 1);
}

#define CUT "{sdy.sharding = #sdy.sharding<@m, [{}, {\"d\"}]>}"

/* Halves, and a quarter in the middle: pieces go from device to device, one to each. Put back into more: likewise. */
static void test_slices(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<4x64xf32> " CUT ") -> (tensor<4x32xf32> " CUT
           ", tensor<4x32xf32> " CUT ", tensor<2x16xf32> " CUT ") {\n"
           "  %a = stablehlo.slice %x [0:4, 0:32] : (tensor<4x64xf32>) -> tensor<4x32xf32>\n"
           "  %b = stablehlo.slice %x [0:4, 32:64] : (tensor<4x64xf32>) -> tensor<4x32xf32>\n"
           "  %c = stablehlo.slice %x [1:3, 18:34] : (tensor<4x64xf32>) -> tensor<2x16xf32>\n"
           "  return %a, %b, %c : tensor<4x32xf32>, tensor<4x32xf32>, tensor<2x16xf32>\n}";
  check_halos("slices", text, 2 + 2 + 4);
}

static void test_pads(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<4x32xf32> " CUT ") -> (tensor<4x64xf32> " CUT
           ", tensor<6x64xf32> " CUT ") {\n"
           "  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
           "  %o = stablehlo.constant dense<7.000000e+00> : tensor<f32>\n"
           "  %a = stablehlo.pad %x, %z, low = [0, 32], high = [0, 0], interior = [0, 0] : "
           "(tensor<4x32xf32>, tensor<f32>) -> tensor<4x64xf32>\n"
           "  %b = stablehlo.pad %x, %o, low = [1, 8], high = [1, 24], interior = [0, 0] : "
           "(tensor<4x32xf32>, tensor<f32>) -> tensor<6x64xf32>\n"
           "  return %a, %b : tensor<4x64xf32>, tensor<6x64xf32>\n}";
  check_halos("pads", text, 2 + 2);
}

/* Parts of other sizes, and every second or third: what lies beyond a device's part comes of its neighbours. */
static void test_pieces(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<4x64xf32> " CUT ") -> (tensor<4x56xf32> " CUT
           ", tensor<4x32xf32> " CUT ", tensor<4x16xf32> " CUT ") {\n"
           "  %a = stablehlo.slice %x [0:4, 3:59] : (tensor<4x64xf32>) -> tensor<4x56xf32>\n"
           "  %b = stablehlo.slice %x [0:4, 1:64:2] : (tensor<4x64xf32>) -> tensor<4x32xf32>\n"
           "  %c = stablehlo.slice %x [0:4, 5:52:3] : (tensor<4x64xf32>) -> tensor<4x16xf32>\n"
           "  return %a, %b, %c : tensor<4x56xf32>, tensor<4x32xf32>, tensor<4x16xf32>\n}";
  check_halos("pieces", text, 2 + 0 + 3);
}

/* Between elements, before and after them: the gradients of such. */
static void test_spread(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<4x32xf32> " CUT ") -> (tensor<4x64xf32> " CUT
           ", tensor<4x96xf32> " CUT ", tensor<4x40xf32> " CUT ") {\n"
           "  %o = stablehlo.constant dense<7.000000e+00> : tensor<f32>\n"
           "  %a = stablehlo.pad %x, %o, low = [0, 1], high = [0, 0], interior = [0, 1] : "
           "(tensor<4x32xf32>, tensor<f32>) -> tensor<4x64xf32>\n"
           "  %b = stablehlo.pad %x, %o, low = [0, 4], high = [0, -2], interior = [0, 2] : "
           "(tensor<4x32xf32>, tensor<f32>) -> tensor<4x96xf32>\n"
           "  %c = stablehlo.pad %x, %o, low = [0, 3], high = [0, 5], interior = [0, 0] : "
           "(tensor<4x32xf32>, tensor<f32>) -> tensor<4x40xf32>\n"
           "  return %a, %b, %c : tensor<4x64xf32>, tensor<4x96xf32>, tensor<4x40xf32>\n}";
  check_halos("spread", text, 0 + 1 + 2);
}

/* jnp.roll; what comes before each, once with a number before the first, once with the first itself. Results are cut as the
 * argument is, though the slices cannot be. */
static void test_rolls(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<4x64xf32> " CUT
           ") -> (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>) {\n"
           "  %o = stablehlo.constant dense<7.000000e+00> : tensor<f32>\n"
           "  %0 = stablehlo.slice %x [0:4, 61:64] : (tensor<4x64xf32>) -> tensor<4x3xf32>\n"
           "  %1 = stablehlo.slice %x [0:4, 0:61] : (tensor<4x64xf32>) -> tensor<4x61xf32>\n"
           "  %a = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4x3xf32>, tensor<4x61xf32>) -> "
           "tensor<4x64xf32>\n"
           "  %2 = stablehlo.slice %x [0:4, 0:63] : (tensor<4x64xf32>) -> tensor<4x63xf32>\n"
           "  %b = stablehlo.pad %2, %o, low = [0, 1], high = [0, 0], interior = [0, 0] : "
           "(tensor<4x63xf32>, tensor<f32>) -> tensor<4x64xf32>\n"
           "  %3 = stablehlo.slice %x [0:4, 0:1] : (tensor<4x64xf32>) -> tensor<4x1xf32>\n"
           "  %c = stablehlo.concatenate %3, %2, dim = 1 : (tensor<4x1xf32>, tensor<4x63xf32>) -> "
           "tensor<4x64xf32>\n"
           "  return %a, %b, %c : tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>\n}";
  check_halos("rolls", text, 1 + 1 + 1);
}

/* Windows that lie within the input, whose parts are larger than the result's. */
static void test_valid_windows(void **state) {
  (void)state;
  static const char text[] = MESH
      "func.func @main(%x: tensor<1x72x3x2xf32> " ROWS ", %k: tensor<9x1x2x3xf32>) -> "
      "(tensor<1x64x3x3xf32> " ROWS ") {\n"
      "  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
      "(tensor<1x72x3x2xf32>, tensor<9x1x2x3xf32>) -> tensor<1x64x3x3xf32>\n"
      "  return %r : tensor<1x64x3x3xf32>\n}";
  check_halos("valid", text, 2);
}

/* The gradient of a sum over windows: what lies between elements is never made whole, though its size has no equal parts. */
static void test_gradient_of_sums(void **state) {
  (void)state;
  static const char text[] =
      MESH "func.func @main(%x: tensor<4x32xf32> " CUT ") -> tensor<4x64xf32> {\n"
           "  %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
           "  %y = stablehlo.pad %x, %z, low = [0, 2], high = [0, 1], interior = [0, 1] : "
           "(tensor<4x32xf32>, tensor<f32>) -> tensor<4x66xf32>\n"
           "  %r = \"stablehlo.reduce_window\"(%y, %z) ({\n"
           "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
           "    %s = stablehlo.add %a, %b : tensor<f32>\n"
           "    stablehlo.return %s : tensor<f32>\n"
           "  }) {window_dimensions = array<i64: 1, 3>} : (tensor<4x66xf32>, tensor<f32>) -> "
           "tensor<4x64xf32>\n"
           "  return %r : tensor<4x64xf32>\n}";
  check_halos("gradient of sums", text, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_convolutions),  cmocka_unit_test(test_kernels_gradient),
      cmocka_unit_test(test_pools),         cmocka_unit_test(test_sorted),
      cmocka_unit_test(test_top_k),         cmocka_unit_test(test_elements),
      cmocka_unit_test(test_turned_round),  cmocka_unit_test(test_slices),
      cmocka_unit_test(test_pads),          cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_spread),        cmocka_unit_test(test_rolls),
      cmocka_unit_test(test_valid_windows), cmocka_unit_test(test_gradient_of_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
