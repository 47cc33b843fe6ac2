/* array: convolutions whose images lie in lanes, and products that read one array on both sides. The cycles
 * are libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

static double cycles(const char *text, const char *chip) {
  SimReport *r = estimate(text, chip);
  double c = r->cycles;
  sim_report_free(r);
  return c;
}

/* f32[images,side,side,in], filters of 3x3 to as many or another number of features, edges filled up. */
static void conv(const char *chip, int images, int side, int in, int out, int groups,
                 double theirs) {
  char text[1024];
  snprintf(text, sizeof text,
           "func.func public @main(%%x: tensor<%dx%dx%dx%dxf32>, %%w: tensor<3x3x%dx%dxf32>) -> "
           "tensor<%dx%dx%dx%dxf32> {\n"
           "  %%y = stablehlo.convolution(%%x, %%w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, "
           "0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : "
           "i64, feature_group_count = %d : i64} : (tensor<%dx%dx%dx%dxf32>, "
           "tensor<3x3x%dx%dxf32>) -> tensor<%dx%dx%dx%dxf32>\n"
           "  return %%y : tensor<%dx%dx%dx%dxf32>\n}\n",
           images, side, side, in, in / groups, out, images, side, side, out, groups, images, side,
           side, in, in / groups, out, images, side, side, out, images, side, side, out);
  near(cycles(text, chip), theirs, 0.1);
}

/* Taps follow each other along the contracted side where as many features come out as go in, or more. */
static void test_taps(void **state) {
  (void)state;
  conv("tpu-v5e", 256, 12, 48, 192, 1, 80541);
  conv("tpu-v5e", 256, 12, 64, 48, 1, 39000);
  conv("tpu-v5e", 256, 12, 80, 96, 1, 51467);
  conv("tpu-v3", 256, 12, 48, 64, 1, 83035);
  conv("tpu-v4", 256, 12, 48, 64, 1, 16417);
  conv("tpu-v6e", 256, 12, 48, 32, 1, 23577);
  conv("tpu-v6e", 256, 12, 64, 48, 1, 29864);
}

static void test_depthwise(void **state) {
  (void)state;
  conv("tpu-v5e", 64, 16, 16, 16, 16, 40899);
  conv("tpu-v4", 64, 16, 16, 16, 16, 20790);
}

/* x x^T reads x twice. */
static void test_both_sides(void **state) {
  (void)state;
  const char *text = "func.func public @main(%x: tensor<640x768xf32>) -> tensor<640x640xf32> {\n"
                     "  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<640x768xf32>) -> "
                     "tensor<768x640xf32>\n"
                     "  %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : "
                     "(tensor<640x768xf32>, tensor<768x640xf32>) -> tensor<640x640xf32>\n"
                     "  return %y : tensor<640x640xf32>\n}\n";
  near(cycles(text, "tpu-v3"), 17436, 0.1);
}

/* Wide matrices times a vector each stay a product; narrow ones, vectors times vectors, and matrices in lanes,
 * do not; on TPU7x these alone. */
static void test_vectors(void **state) {
  (void)state;
  const char *apart =
      "func.func public @main(%a: tensor<32x64x128xf32>, %v: tensor<32x128xf32>) -> "
      "tensor<32x64xf32> {\n"
      "  %y = stablehlo.dot_general %a, %v, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[1] : (tensor<32x64x128xf32>, tensor<32x128xf32>) -> tensor<32x64xf32>\n"
      "  return %y : tensor<32x64xf32>\n}\n";
  const char *lanes =
      "func.func public @main(%a: tensor<128x32x64xbf16>, %v: tensor<128x64xbf16>) -> "
      "tensor<128x32xbf16> {\n"
      "  %y = stablehlo.dot_general %a, %v, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[1] : (tensor<128x32x64xbf16>, tensor<128x64xbf16>) -> tensor<128x32xbf16>\n"
      "  return %y : tensor<128x32xbf16>\n}\n";
  const char *made =
      "func.func public @main(%a: tensor<256x64x64xbf16>, %v: tensor<256x64xbf16>) -> "
      "tensor<256x64xbf16> {\n"
      "  %t = stablehlo.tanh %a : tensor<256x64x64xbf16>\n"
      "  %y = stablehlo.dot_general %v, %t, batching_dims = [0] x [0], contracting_dims = [1] x "
      "[2] : (tensor<256x64xbf16>, tensor<256x64x64xbf16>) -> tensor<256x64xbf16>\n"
      "  return %y : tensor<256x64xbf16>\n}\n";
  const char *narrow =
      "func.func public @main(%a: tensor<512x16x256xbf16>, %v: tensor<512x16xbf16>) -> "
      "tensor<512x256xbf16> {\n"
      "  %y = stablehlo.dot_general %v, %a, batching_dims = [0] x [0], contracting_dims = [1] x "
      "[1] : (tensor<512x16xbf16>, tensor<512x16x256xbf16>) -> tensor<512x256xbf16>\n"
      "  return %y : tensor<512x256xbf16>\n}\n";
  const char *few =
      "func.func public @main(%a: tensor<512x4x256xbf16>, %v: tensor<512x256xbf16>) -> "
      "tensor<512x4xbf16> {\n"
      "  %y = stablehlo.dot_general %v, %a, batching_dims = [0] x [0], contracting_dims = [1] x "
      "[2] : (tensor<512x256xbf16>, tensor<512x4x256xbf16>) -> tensor<512x4xbf16>\n"
      "  return %y : tensor<512x4xbf16>\n}\n";
  peak_near(apart, "tpu-v5e", 2129920, 0.01);
  near(cycles(narrow, "tpu-v5e"), 36304, 0.1);
  near(cycles(few, "tpu7x"), 10212, 0.1);
  near(cycles(lanes, "tpu-v2"), 4170, 0.1);
  near(cycles(made, "tpu7x"), 7091, 0.1);
}

/* bf16[8,2048,2048] by [8,2048,128], cut into windows of less than one of the eight. */
static void test_windows(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<8x2048x2048xbf16>, %b: tensor<8x2048x128xbf16>) -> "
      "tensor<8x2048x128xbf16> {\n"
      "  %y = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[1] : (tensor<8x2048x2048xbf16>, tensor<8x2048x128xbf16>) -> tensor<8x2048x128xbf16>\n"
      "  return %y : tensor<8x2048x128xbf16>\n}\n";
  near(cycles(text, "tpu7x"), 69474, 0.05);
  near(cycles(text, "tpu-v5p"), 89264, 0.05);
  near(cycles(text, "tpu-v4"), 46974, 0.05);
}

/* A product of no rows, or of no terms, takes the time of a kernel. */
static void test_nothing(void **state) {
  (void)state;
  static const char *const sizes[][3] = {{"0x4", "4x8", "0x8"}, {"64x0", "0x128", "64x128"}};
  static const char *const chips[] = {"tpu-v2", "tpu-v4", "tpu-v5e", "tpu-v6e", "tpu7x"};
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    char text[512];
    const char *a = sizes[i][0], *b = sizes[i][1], *c = sizes[i][2];
    snprintf(
        text, sizeof text,
        "func.func public @main(%%a: tensor<%sxf32>, %%b: tensor<%sxf32>) -> tensor<%sxf32> {\n"
        "  %%y = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0] : (tensor<%sxf32>, "
        "tensor<%sxf32>) -> tensor<%sxf32>\n  return %%y : tensor<%sxf32>\n}\n",
        a, b, c, a, b, c, c);
    for (int j = 0; j < COUNT_OF(chips); j++) {
      double n = cycles(text, chips[j]);
      assert_true(n > 100 && n < 10000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_taps),       cmocka_unit_test(test_depthwise),
      cmocka_unit_test(test_both_sides), cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_windows),    cmocka_unit_test(test_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
