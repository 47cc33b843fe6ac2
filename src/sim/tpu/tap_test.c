/* tap: how taps of convolutions and the pixels of spread images fill the arrays. The cycles are libtpu 0.0.51's
 * for the same programs; the share is what the model misses of them at most. */
#include "sim/estimate_test.h"

static double cycles(const char *text, const char *chip) {
  SimReport *r = estimate(text, chip);
  double c = r->cycles;
  sim_report_free(r);
  return c;
}

/* bf16[16,28,28,in], filters of 3x3, edges filled up. */
static void forwards(const char *chip, int in, int out, double theirs, double share) {
  char text[1024];
  snprintf(text, sizeof text,
           "func.func public @main(%%x: tensor<16x28x28x%dxbf16>, %%w: tensor<3x3x%dx%dxbf16>) -> "
           "tensor<16x28x28x%dxbf16> {\n"
           "  %%y = stablehlo.convolution(%%x, %%w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, "
           "0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : "
           "i64, feature_group_count = 1 : i64} : (tensor<16x28x28x%dxbf16>, "
           "tensor<3x3x%dx%dxbf16>) -> tensor<16x28x28x%dxbf16>\n"
           "  return %%y : tensor<16x28x28x%dxbf16>\n}\n",
           in, in, out, out, in, in, out, out, out);
  near(cycles(text, chip), theirs, share);
}

/* The gradient of bf16[images,16,16,in], of which a filter of 3x3 made `out` features at a stride of two. */
static void backwards(const char *chip, int images, int in, int out, double theirs, double share) {
  char text[1024];
  snprintf(text, sizeof text,
           "func.func public @main(%%w: tensor<3x3x%dx%dxbf16>, %%g: tensor<%dx8x8x%dxbf16>) -> "
           "tensor<%dx16x16x%dxbf16> {\n"
           "  %%r = stablehlo.reverse %%w, dims = [0, 1] : tensor<3x3x%dx%dxbf16>\n"
           "  %%y = stablehlo.convolution(%%g, %%r) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, "
           "0, 1, f], window = {stride = [1, 1], pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} "
           "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
           "(tensor<%dx8x8x%dxbf16>, tensor<3x3x%dx%dxbf16>) -> tensor<%dx16x16x%dxbf16>\n"
           "  return %%y : tensor<%dx16x16x%dxbf16>\n}\n",
           in, out, images, out, images, in, in, out, images, out, in, out, images, in, images, in);
  near(cycles(text, chip), theirs, share);
}

/* With 128 features or more on both sides each tap has rows of an array of 256 for itself; columns that are
 * left over hold two. With fewer that come in, or other numbers that come out, taps share rows. */
static void test_columns(void **state) {
  (void)state;
  forwards("tpu7x", 128, 256, 39666, 0.02);
  forwards("tpu-v6e", 128, 256, 41396, 0.02);
  forwards("tpu7x", 256, 256, 39970, 0.02);
  forwards("tpu7x", 256, 128, 25074, 0.02);
  forwards("tpu7x", 128, 384, 56740, 0.02);
  forwards("tpu7x", 128, 192, 27046, 0.02);
  forwards("tpu7x", 96, 256, 30182, 0.02);
  forwards("tpu-v5e", 128, 256, 68192, 0.03);
}

/* Each pixel of a spread image loads its weights: as long as their shorter side, once for each 128 of the features
 * that are contracted, or 256 where as many come out. */
static void test_pixels(void **state) {
  (void)state;
  backwards("tpu-v6e", 16, 128, 128, 17615, 0.03);
  backwards("tpu-v6e", 16, 128, 256, 27146, 0.03);
  backwards("tpu-v6e", 16, 256, 256, 30891, 0.03);
  backwards("tpu7x", 8, 64, 256, 18790, 0.03);
  backwards("tpu-v2", 32, 256, 512, 640444, 0.03);
  backwards("tpu-v5p", 16, 128, 256, 17323, 0.08);
  backwards("tpu-v5e", 64, 128, 128, 63296, 0.08);
}

/* bf16[images,28,28,channels], a filter a channel, edges filled up. */
static void apart(const char *chip, int images, int channels, int taps, double theirs,
                  double share) {
  char text[1024], t[64];
  snprintf(t, sizeof t, "tensor<%dx28x28x%dxbf16>", images, channels);
  snprintf(text, sizeof text,
           "func.func public @main(%%x: %s, %%w: tensor<%dx%dx1x%dxbf16>) -> %s {\n"
           "  %%y = stablehlo.convolution(%%x, %%w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, "
           "0, 1, f], window = {stride = [1, 1], pad = [[%d, %d], [%d, %d]]} {batch_group_count = "
           "1 : i64, feature_group_count = %d : i64} : (%s, tensor<%dx%dx1x%dxbf16>) -> %s\n"
           "  return %%y : %s\n}\n",
           t, taps, taps, channels, t, taps / 2, taps / 2, taps / 2, taps / 2, channels, t, taps,
           taps, channels, t, t);
  near(cycles(text, chip), theirs, share);
}

/* Channels lie in lanes while a depthwise convolution works, also where images lie there outside of it. */
static void test_apart(void **state) {
  (void)state;
  apart("tpu-v6e", 32, 128, 3, 62701, 0.05);
  apart("tpu-v6e", 64, 32, 3, 118670, 0.05);
  apart("tpu7x", 32, 128, 7, 314659, 0.05);
  apart("tpu-v5e", 64, 32, 3, 119637, 0.05);
  apart("tpu-v2", 32, 128, 5, 175224, 0.05);
  apart("tpu-v4", 64, 64, 5, 172816, 0.05);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_columns),
      cmocka_unit_test(test_pixels),
      cmocka_unit_test(test_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
