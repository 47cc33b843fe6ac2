/* slices: what is the memory of something else, and what is written where it belongs. Cycles and peaks are
 * libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

static void near_both(const char *text, const char *chip, double want, double peak) {
  SimReport *r = estimate(text, chip);
  double cycles = r->cycles, bytes = r->peak_bytes;
  sim_report_free(r);
  if (bytes < peak * 0.99 || bytes > peak * 1.01)
    fail_msg("%s: %.0f bytes, libtpu says %.0f", chip, bytes, peak);
  if (cycles < want * 0.93 || cycles > want * 1.07)
    fail_msg("%s: %.0f cycles, libtpu says %.0f", chip, cycles, want);
}

#define A "tensor<2432x1792xf32>"
#define ROW "tensor<2432x1x1792xf32>"
/* A stack is made with its new side outside of all others, and then copied into tiles of two rows. */
static void test_stacked(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: " A ", %b: " A ") -> tensor<2432x2x1792xf32> {\n"
      "  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (" A ") -> " ROW "\n"
      "  %1 = stablehlo.broadcast_in_dim %b, dims = [0, 2] : (" A ") -> " ROW "\n"
      "  %2 = stablehlo.concatenate %0, %1, dim = 1 : (" ROW ", " ROW
      ") -> tensor<2432x2x1792xf32>\n"
      "  return %2 : tensor<2432x2x1792xf32>\n}\n";
  near_both(text, "tpu-v2", 631512, 104595456);
  near_both(text, "tpu-v6e", 322053, 104595456);
}

/* A slice that ends in the same tiles is no copy. */
static void test_rolled(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<170x768xf32>) -> tensor<170x768xf32> {\n"
      "  %0 = stablehlo.slice %a [0:170, 761:768] : (tensor<170x768xf32>) -> tensor<170x7xf32>\n"
      "  %1 = stablehlo.slice %a [0:170, 0:761] : (tensor<170x768xf32>) -> tensor<170x761xf32>\n"
      "  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<170x7xf32>, tensor<170x761xf32>) -> "
      "tensor<170x768xf32>\n"
      "  return %2 : tensor<170x768xf32>\n}\n";
  SimReport *r = estimate(text, "tpu-v2");
  assert_int_equal(kernels_of(r, NULL), 2);
  sim_report_free(r);
  peak_near(text, "tpu-v2", 1171456, 0.01);
}

#define HALF "tensor<4x320x8x32xf32>"
#define ALL "tensor<4x320x8x64xf32>"
/* The halves of rows, turned: each is written where it belongs. */
static void test_written_in_place(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: " ALL ") -> " ALL " {\n"
      "  %0 = stablehlo.slice %a [0:4, 0:320, 0:8, 32:64] : (" ALL ") -> " HALF "\n"
      "  %1 = stablehlo.negate %0 : " HALF "\n"
      "  %2 = stablehlo.slice %a [0:4, 0:320, 0:8, 0:32] : (" ALL ") -> " HALF "\n"
      "  %3 = stablehlo.concatenate %1, %2, dim = 3 : (" HALF ", " HALF ") -> " ALL "\n"
      "  return %3 : " ALL "\n}\n";
  near_both(text, "tpu-v4", 8474, 12582912);
  near_both(text, "tpu-v6e", 6244, 12582912);
}

#define DIFF "tensor<3971x1010xf32>"
/* Two slices of an array are read one by one. */
static void test_each_slice(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<3972x1010xf32>) -> " DIFF " {\n"
      "  %0 = stablehlo.slice %a [1:3972, 0:1010] : (tensor<3972x1010xf32>) -> " DIFF "\n"
      "  %1 = stablehlo.slice %a [0:3971, 0:1010] : (tensor<3972x1010xf32>) -> " DIFF "\n"
      "  %2 = stablehlo.subtract %0, %1 : " DIFF "\n"
      "  return %2 : " DIFF "\n}\n";
  near_both(text, "tpu-v2", 112892, 32571392);
  near_both(text, "tpu-v5e", 113663, 32571392);
}

#define MATRIX "tensor<160x128xf32>"
/* A running maximum in lanes, of no more than a block: turned there and back. */
static void test_running(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: " MATRIX ") -> " MATRIX " {\n"
      "  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %0 = \"stablehlo.reduce_window\"(%a, %i) <{padding = dense<[[0, 0], [127, 0]]> : "
      "tensor<2x2xi64>, window_dimensions = array<i64: 1, 128>}> ({\n"
      "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
      "    %m = stablehlo.maximum %x, %y : tensor<f32>\n"
      "    stablehlo.return %m : tensor<f32>\n"
      "  }) : (" MATRIX ", tensor<f32>) -> " MATRIX "\n"
      "  return %0 : " MATRIX "\n}\n";
  near_both(text, "tpu-v2", 1830, 426496);
  near_both(text, "tpu-v6e", 4574, 425984);
}

#define SHUFFLED "tensor<16x14x28x128xf32>"
/* Groups of channels, turned: features leave the lanes for it and come back. */
static void test_shuffled(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: " SHUFFLED ") -> " SHUFFLED " {\n"
      "  %0 = stablehlo.reshape %a : (" SHUFFLED ") -> tensor<16x14x28x4x32xf32>\n"
      "  %1 = stablehlo.transpose %0, dims = [0, 1, 2, 4, 3] : (tensor<16x14x28x4x32xf32>) -> "
      "tensor<16x14x28x32x4xf32>\n"
      "  %2 = stablehlo.reshape %1 : (tensor<16x14x28x32x4xf32>) -> " SHUFFLED "\n"
      "  return %2 : " SHUFFLED "\n}\n";
  near_both(text, "tpu-v6e", 20230, 33948160);
}

#define PARTS "tensor<2752x128xbf16>"
/* One kernel takes an array apart without widening what it moves. */
static void test_split(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<2752x384xbf16>) -> (" PARTS ", " PARTS ", " PARTS ") {\n"
      "  %0 = stablehlo.slice %a [0:2752, 0:128] : (tensor<2752x384xbf16>) -> " PARTS "\n"
      "  %1 = stablehlo.slice %a [0:2752, 128:256] : (tensor<2752x384xbf16>) -> " PARTS "\n"
      "  %2 = stablehlo.slice %a [0:2752, 256:384] : (tensor<2752x384xbf16>) -> " PARTS "\n"
      "  return %0, %1, %2 : " PARTS ", " PARTS ", " PARTS "\n}\n";
  near_both(text, "tpu-v6e", 9427, 4227328);
  near_both(text, "tpu7x", 6491, 4227328);
}

/* Features become heads: one copy puts rows into lanes, where splitting the features moves nothing. */
static void test_heads(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<12x128x384xbf16>) -> tensor<12x6x128x64xbf16> {\n"
      "  %0 = stablehlo.reshape %a : (tensor<12x128x384xbf16>) -> tensor<12x128x6x64xbf16>\n"
      "  %1 = stablehlo.transpose %0, dims = [0, 2, 1, 3] : (tensor<12x128x6x64xbf16>) -> "
      "tensor<12x6x128x64xbf16>\n"
      "  return %1 : tensor<12x6x128x64xbf16>\n}\n";
  near_both(text, "tpu-v5e", 16992, 2359296);
  near_both(text, "tpu-v6e", 13640, 2359296);
}

#define PAIRS "tensor<128x154x2xf32>"
#define ONES "tensor<128x154x1xf32>"
#define HALVES "tensor<128x154xf32>"
/* Two arrays, element by element: stacked, copied into tiles of two rows, joined by a reshape of its own. */
static void test_interleaved(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: " HALVES ", %b: " HALVES ") -> tensor<128x308xf32> {\n"
      "  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (" HALVES ") -> " ONES "\n"
      "  %1 = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (" HALVES ") -> " ONES "\n"
      "  %2 = stablehlo.concatenate %0, %1, dim = 2 : (" ONES ", " ONES ") -> " PAIRS "\n"
      "  %3 = stablehlo.reshape %2 : (" PAIRS ") -> tensor<128x308xf32>\n"
      "  return %3 : tensor<128x308xf32>\n}\n";
  near_both(text, "tpu-v5e", 5431, 645120);
  near_both(text, "tpu-v6e", 5226, 645120);
}

/* Pairs beside each other are added up: rows come into lanes before the others are split. */
static void test_pairs(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<1000x256xf32>) -> tensor<1000x128xf32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %0 = stablehlo.reshape %a : (tensor<1000x256xf32>) -> tensor<1000x128x2xf32>\n"
      "  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [2] : "
      "(tensor<1000x128x2xf32>, tensor<f32>) -> tensor<1000x128xf32>\n"
      "  return %1 : tensor<1000x128xf32>\n}\n";
  peak_near(text, "tpu-v2", 3633664, 0.01);
  peak_near(text, "tpu-v6e", 3633664, 0.01);
}

/* The largest of three features each: a product is written with rows in lanes for it. */
static void test_maxout(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<288x200xf32>, %w: tensor<200x672xf32>) -> "
      "tensor<288x224xf32> {\n"
      "  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<288x200xf32>, "
      "tensor<200x672xf32>) -> tensor<288x672xf32>\n"
      "  %1 = stablehlo.reshape %0 : (tensor<288x672xf32>) -> tensor<288x224x3xf32>\n"
      "  %2 = stablehlo.reduce(%1 init: %i) applies stablehlo.maximum across dimensions = [2] : "
      "(tensor<288x224x3xf32>, tensor<f32>) -> tensor<288x224xf32>\n"
      "  return %2 : tensor<288x224xf32>\n}\n";
  peak_near(text, "tpu-v2", 3613696, 0.01);
  peak_near(text, "tpu-v6e", 3613184, 0.01);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stacked),
                                     cmocka_unit_test(test_rolled),
                                     cmocka_unit_test(test_written_in_place),
                                     cmocka_unit_test(test_each_slice),
                                     cmocka_unit_test(test_running),
                                     cmocka_unit_test(test_shuffled),
                                     cmocka_unit_test(test_split),
                                     cmocka_unit_test(test_heads),
                                     cmocka_unit_test(test_interleaved),
                                     cmocka_unit_test(test_pairs),
                                     cmocka_unit_test(test_maxout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
