/* Types that a GPU does not compute in: the memory of programs as XLA 0.10.2 plans them ahead of time for a T4
 * and an A100. */
#include "sim/estimate_test.h"

#define BETWEEN "tensor<2048x2048x%1$s>"
#define ARGS                                                                        \
  "func.func @main(%%x: tensor<2048x1024x%1$s>, %%w: tensor<1024x2048x%1$s>, %%v: " \
  "tensor<2048x512x%1$s>) -> "
#define MADE                                                                  \
  " {\n%%y = stablehlo.dot_general %%x, %%w, contracting_dims = [1] x [0] : " \
  "(tensor<2048x1024x%1$s>, tensor<1024x2048x%1$s>) -> " BETWEEN              \
  "\n%%e = stablehlo.tanh %%y : " BETWEEN "\n"
/* Two products. */
#define TWICE                                                                           \
  ARGS "tensor<2048x512x%1$s>" MADE                                                     \
       "%%z = stablehlo.dot_general %%e, %%v, contracting_dims = [1] x [0] : (" BETWEEN \
       ", tensor<2048x512x%1$s>) -> tensor<2048x512x%1$s>\nreturn %%z : tensor<2048x512x%1$s> }"
/* The result as it is, and widened. */
#define BOTH                                                                                 \
  ARGS "(" BETWEEN ", tensor<2048x2048xf32>)" MADE "%%f = stablehlo.convert %%e : (" BETWEEN \
       ") -> tensor<2048x2048xf32>\nreturn %%e, %%f : " BETWEEN ", tensor<2048x2048xf32> }"

static SimReport *plan(const char *program, const char *type, const char *chip) {
  char text[2000];
  snprintf(text, sizeof text, program, type);
  return estimate_as(text, chip, &(SimOpts){.library = true});
}

static double peak(const char *program, const char *type, const char *chip) {
  SimReport *r = plan(program, type, chip);
  double bytes = r->peak_bytes;
  sim_report_free(r);
  return bytes;
}

/* What XLA plans for a T4: operands and what is between the products are f32. */
static void test_bf16(void **state) {
  (void)state;
  near(peak(TWICE, "bf16", "T4"), 50331648, 1e-5);
  near(peak(TWICE, "bf16", "A100-80GB"), 29360128, 1e-5);
  near(peak(TWICE, "bf16", "V100"), 50331648, 1e-5); /* none before Ampere */
  near(peak(TWICE, "bf16", "P100"), 50331648, 1e-5);
}

/* It computes in f16 itself, which one of Kepler does not. */
static void test_f16(void **state) {
  (void)state;
  near(peak(TWICE, "f16", "T4"), 29360128, 1e-5);
  near(peak(TWICE, "f16", "P100"), 29360128, 1e-5);
  near(peak(TWICE, "f16", "K80"), 50331648, 1e-5);
}

/* Nothing is rounded that is widened again: one kernel makes both results out of f32. */
static void test_not_rounded(void **state) {
  (void)state;
  near(peak(BOTH, "bf16", "T4"), 48234512, 1e-5);
}

/* A framework keeps what it is given. */
static void test_eager(void **state) {
  (void)state;
  char text[2000];
  snprintf(text, sizeof text, TWICE, "bf16");
  SimReport *r = estimate_as(text, "T4", &(SimOpts){.eager = true});
  assert_true(r->peak_bytes < 40e6);
  sim_report_free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bf16), cmocka_unit_test(test_f16),
                                     cmocka_unit_test(test_not_rounded),
                                     cmocka_unit_test(test_eager)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
