/* Convolutions and sums as XLA hands them to cuDNN and its own kernels on a GPU: how many kernels and how much
 * memory that is, as XLA 0.10.2 compiles the same ahead of time for an H100. */
#include "sim/estimate_test.h"

#define X "tensor<2x40x40x64xbf16>"
#define W "tensor<3x3x64x64xbf16>"
#define WINDOW \
  "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ("

/* Forwards, backwards to the filter and to the image: the filter is turned once for two of them, and its gradient
 * back; images are not. The turned filters are all that is needed beside arguments and results. */
static void test_three(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%x: " X ", %w: " W ", %g: " X ") -> (" X ", " W ", " X ") {\n"
               "%y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, "
               "1, f], window = {" WINDOW X ", " W ") -> " X "\n"
               "%dw = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, "
               "1, b, f], window = {" WINDOW X ", " X ") -> " W "\n"
               "%v = stablehlo.reverse %w, dims = [0, 1] : " W "\n"
               "%dx = stablehlo.convolution(%g, %v) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, "
               "0, 1, f], window = {" WINDOW X ", " W ") -> " X "\n"
               "return %y, %dw, %dx : " X ", " W ", " X " }",
               "H100-SXM");
  assert_int_equal(kernels_of(r, NULL), 5);
  assert_int_equal(kernels_of(r, "transpose"), 2);
  assert_true(r->temp_bytes <= 2 * 9 * 64 * 64 * 2);
  sim_report_free(r);
}

/* A window that reaches further on one side than on the other reads an array that has the edge: 57 x 57. */
static void test_edge(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%x: tensor<6x56x56x64xbf16>, %w: tensor<3x3x64x128xbf16>) -> "
               "tensor<6x28x28x128xbf16> {\n"
               "%y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, "
               "1, f], window = "
               "{stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, "
               "feature_group_count = 1 : i64} : "
               "(tensor<6x56x56x64xbf16>, tensor<3x3x64x128xbf16>) -> tensor<6x28x28x128xbf16>\n"
               "return %y : tensor<6x28x28x128xbf16> }",
               "H100-SXM");
  double edged = 6.0 * 57 * 57 * 64 * 2, filter = 9.0 * 64 * 128 * 2;
  assert_int_equal(kernels_of(r, NULL), 3);
  assert_int_equal(kernels_of(r, "pad"), 1);
  assert_true(r->temp_bytes > 0.999 * (edged + filter) && r->temp_bytes < 1.001 * (edged + filter));
  sim_report_free(r);
}

#define SUM(type, dims, out)                                                                      \
  "func.func @main(%x: tensor<" type ">) -> tensor<" out                                          \
  "> {\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n%s = stablehlo.reduce(%x init: %z) "    \
  "applies "                                                                                      \
  "stablehlo.add across dimensions = [" dims "] : (tensor<" type ">, tensor<f32>) -> tensor<" out \
  ">\nreturn %s : tensor<" out "> }"

/* Long sums, and sums of dimensions apart from each other, are two kernels; others one. */
static void test_sums(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int kernels;
  } sums[] = {{SUM("2048x256xf32", "0", "256xf32"), 1},
              {SUM("131072x128xf32", "0", "128xf32"), 2},
              {SUM("4096x4096xf32", "0, 1", "f32"), 2},
              {SUM("64x8192xf32", "1", "64xf32"), 1},
              {SUM("20x10x96x64xf32", "0, 2", "10x64xf32"), 2}};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    SimReport *r = estimate(sums[i].text, "H100-SXM");
    assert_int_equal(kernels_of(r, NULL), sums[i].kernels);
    sim_report_free(r);
  }
}

#define TALL "tensor<131072x128xf32>"
#define HALF "tensor<65536x128xf32>"
#define MASKED 5

/* x rounded so many times, half of that times each of several arrays. */
static SimReport *rounded(int times) {
  Buf text = {0};
  buf_cstr(&text, "func.func @main(%x0: " TALL);
  for (int i = 0; i < MASKED; i++) buf_printf(&text, ", %%m%d: " HALF, i);
  buf_cstr(&text, ") -> (");
  for (int i = 0; i < MASKED; i++) buf_printf(&text, "%s" HALF, i ? ", " : "");
  buf_cstr(&text, ") {\n");
  for (int i = 0; i < times; i++)
    buf_printf(&text, "%%x%d = stablehlo.floor %%x%d : " TALL "\n", i + 1, i);
  for (int i = 0; i < MASKED; i++)
    buf_printf(&text,
               "%%h%d = stablehlo.slice %%x%d [%d:%d, 0:128] : (" TALL ") -> " HALF
               "\n%%p%d = stablehlo.multiply %%h%d, %%m%d : " HALF "\n",
               i, times, i, 65536 + i, i, i, i);
  buf_cstr(&text, "return ");
  for (int i = 0; i < MASKED; i++) buf_printf(&text, "%s%%p%d", i ? ", " : "", i);
  buf_cstr(&text, " : ");
  for (int i = 0; i < MASKED; i++) buf_printf(&text, "%s" HALF, i ? ", " : "");
  buf_cstr(&text, " }");
  SimReport *r = estimate(text.p, "H100-SXM");
  buf_free(&text);
  return r;
}

/* What several kernels need is computed again in each where that hides behind reading, and stored where it takes
 * longer than memory. */
static void test_again(void **state) {
  (void)state;
  SimReport *few = rounded(1), *many = rounded(200);
  assert_true(few->temp_bytes == 0);
  assert_true(many->temp_bytes == 131072.0 * 128 * 4);
  sim_report_free(few);
  sim_report_free(many);
}

/* Few columns are summed by few blocks: not in the kernel that computes them. */
static void test_narrow(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%x: tensor<2048x512xf32>, %y: tensor<2048x512xf32>) -> "
               "(tensor<2048x512xf32>, "
               "tensor<512xf32>) {\n%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
               "%s = stablehlo.multiply %x, %y : tensor<2048x512xf32>\n"
               "%t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : "
               "(tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>\n"
               "return %s, %t : tensor<2048x512xf32>, tensor<512xf32> }",
               "H100-SXM");
  assert_int_equal(kernels_of(r, NULL), 2);
  sim_report_free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_three), cmocka_unit_test(test_edge),
                                     cmocka_unit_test(test_sums), cmocka_unit_test(test_again),
                                     cmocka_unit_test(test_narrow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
