/* tiles: rows of whole lanes that are joined and split tile by tile, windows that slide over neighbours in a
 * tile, and rows of one element's height. Cycles and bytes are libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

static void close_to(const char *what, double ours, double theirs) {
  if (ours < 0.93 * theirs || ours > 1.07 * theirs)
    fail_msg("%s: %.0f, not %.0f", what, ours, theirs);
}

static void check(const char *text, const char *chip, double cycles, double peak) {
  SimReport *r = estimate(text, chip);
  close_to("cycles", r->cycles, cycles);
  close_to("peak", r->peak_bytes, peak);
  sim_report_free(r);
}

static void reshape(const char *from, const char *to, const char *chip, double cycles,
                    double peak) {
  char text[512];
  snprintf(text, sizeof text,
           "func.func public @main(%%x: tensor<%s>) -> tensor<%s> {\n"
           "  %%y = stablehlo.reshape %%x : (tensor<%s>) -> tensor<%s>\n"
           "  return %%y : tensor<%s>\n}\n",
           from, to, from, to, to);
  check(text, chip, cycles, peak);
}

static void test_whole_lanes(void **state) {
  (void)state;
  reshape("100x49x128xf32", "100x6272xf32", "tpu-v5e", 23247, 11067904);
  reshape("20x7x128xf32", "20x896xf32", "tpu-v2", 1299, 267264);
  reshape("16x3584xf32", "16x14x256xf32", "tpu-v2", 1309, 458752);
}

/* The mean of 3x3 pixels: summed up as the image lies, divided in a loop of its own. */
static void test_sliding_windows(void **state) {
  (void)state;
  const char *text =
      "func.func public @main(%x: tensor<32x56x56x96xf32>) -> tensor<32x56x56x96xf32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = \"stablehlo.reduce_window\"(%x, %z) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, "
      "0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>}> ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %c = stablehlo.add %a, %b : tensor<f32>\n"
      "    stablehlo.return %c : tensor<f32>\n"
      "  }) : (tensor<32x56x56x96xf32>, tensor<f32>) -> tensor<32x56x56x96xf32>\n"
      "  %n = stablehlo.constant dense<9.0> : tensor<32x56x56x96xf32>\n"
      "  %y = stablehlo.divide %s, %n : tensor<32x56x56x96xf32>\n"
      "  return %y : tensor<32x56x56x96xf32>\n}\n";
  check(text, "tpu-v5e", 235046, 154141184);
}

/* An update lies as what it goes into; on v2 rows of one have tiles of two. */
static void test_updates(void **state) {
  (void)state;
  const char *text =
      "func.func public @main(%x: tensor<64x120x70xf32> {tf.aliasing_output = 0 : i32}, %u: "
      "tensor<1x120x70xf32>, %i: tensor<i32>) -> tensor<64x120x70xf32> {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %y = stablehlo.dynamic_update_slice %x, %u, %i, %z, %z : (tensor<64x120x70xf32>, "
      "tensor<1x120x70xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<64x120x70xf32>\n"
      "  return %y : tensor<64x120x70xf32>\n}\n";
  peak_near(text, "tpu-v2", 2405376, 0.005);
}

/* f32[rows,cols] whose last `by` rows are put before the others. */
static void roll(int rows, int cols, int by, const char *chip, double cycles, double peak) {
  char text[1024];
  snprintf(text, sizeof text,
           "func.func public @main(%%x: tensor<%dx%dxf32>) -> tensor<%dx%dxf32> {\n"
           "  %%a = stablehlo.slice %%x [%d:%d, 0:%d] : (tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
           "  %%b = stablehlo.slice %%x [0:%d, 0:%d] : (tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
           "  %%y = stablehlo.concatenate %%a, %%b, dim = 0 : (tensor<%dx%dxf32>, "
           "tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n"
           "  return %%y : tensor<%dx%dxf32>\n}\n",
           rows, cols, rows, cols, rows - by, rows, cols, rows, cols, by, cols, rows - by, cols,
           rows, cols, rows - by, cols, by, cols, rows - by, cols, rows, cols, rows, cols);
  check(text, chip, cycles, peak);
}

/* Pieces of different sizes are cut out first; one that lies where it was is not fetched for a short cut. */
static void test_rolls(void **state) {
  (void)state;
  roll(64, 256, 8, "tpu-v5e", 2127, 196608);
  roll(64, 256, 3, "tpu-v5e", 3984, 135168);
}

/* Two columns reflected on either side, which jax.numpy puts together one after the other. */
static void test_reflection(void **state) {
  (void)state;
  const char *text =
      "func.func public @main(%x: tensor<64x256xf32>) -> tensor<64x260xf32> {\n"
      "  %a = stablehlo.slice %x [0:64, 1:3] : (tensor<64x256xf32>) -> tensor<64x2xf32>\n"
      "  %b = stablehlo.reverse %a, dims = [1] : tensor<64x2xf32>\n"
      "  %c = stablehlo.concatenate %b, %x, dim = 1 : (tensor<64x2xf32>, tensor<64x256xf32>) -> "
      "tensor<64x258xf32>\n"
      "  %d = stablehlo.slice %x [0:64, 253:255] : (tensor<64x256xf32>) -> tensor<64x2xf32>\n"
      "  %e = stablehlo.reverse %d, dims = [1] : tensor<64x2xf32>\n"
      "  %y = stablehlo.concatenate %c, %e, dim = 1 : (tensor<64x258xf32>, tensor<64x2xf32>) -> "
      "tensor<64x260xf32>\n"
      "  return %y : tensor<64x260xf32>\n}\n";
  check(text, "tpu-v5e", 4378, 327680);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole_lanes), cmocka_unit_test(test_sliding_windows),
      cmocka_unit_test(test_updates),     cmocka_unit_test(test_rolls),
      cmocka_unit_test(test_reflection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
