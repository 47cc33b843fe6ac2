/* slices: what is the memory of something else, and what is written where it belongs. Cycles and peaks are
 * libtpu 0.0.51's for the same programs. */
#include <math.h>

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
  assert_int_equal(r->n_kernels, 2);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stacked), cmocka_unit_test(test_rolled),
                                     cmocka_unit_test(test_written_in_place),
                                     cmocka_unit_test(test_each_slice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
