/* product: what a matrix product costs with vector work in its epilogue, all on chip. The cycles are
 * libtpu 0.0.51's for the same programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "chip/chip.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

/* Cycles of f32[512,128] x f32[128,512] -> f32[512,512] with `epilogue` on %y; barriers keep it a kernel of
 * its own. */
static double cycles(const char *chip, const char *epilogue, const char *result, const char *type) {
  Buf b = {0};
  buf_printf(&b,
             "func.func public @main(%%a0: tensor<512x128xf32>, %%b0: tensor<128x512xf32>, %%p0: "
             "tensor<512x512xf32>, %%m0: tensor<512x512xf32>, %%v0: tensor<512x512xf32>) -> %s {\n"
             "  %%a1 = stablehlo.add %%a0, %%a0 : tensor<512x128xf32>\n"
             "  %%b1 = stablehlo.add %%b0, %%b0 : tensor<128x512xf32>\n"
             "  %%p1 = stablehlo.add %%p0, %%p0 : tensor<512x512xf32>\n"
             "  %%m1 = stablehlo.add %%m0, %%m0 : tensor<512x512xf32>\n"
             "  %%v1 = stablehlo.add %%v0, %%v0 : tensor<512x512xf32>\n"
             "  %%i:5 = stablehlo.optimization_barrier %%a1, %%b1, %%p1, %%m1, %%v1 : "
             "tensor<512x128xf32>, "
             "tensor<128x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>\n"
             "  %%y = stablehlo.dot_general %%i#0, %%i#1, contracting_dims = [1] x [0] : "
             "(tensor<512x128xf32>, tensor<128x512xf32>) -> tensor<512x512xf32>\n%s"
             "  %%o = stablehlo.optimization_barrier %%%s : %s\n"
             "  %%z = stablehlo.sine %%o : %s\n  return %%z : %s\n}\n",
             type, epilogue, result, type, type, type);
  const Chip *c = NULL;
  Module *m = NULL;
  SimReport *r = NULL;
  assert_null(chip_find(chip, &c));
  assert_null(stablehlo_read("test", str_from(b.p), &m));
  assert_null(ir_verify(m));
  assert_null(sim_estimate(m, c, NULL, &r));
  double sum = 0;
  for (int i = 0; i < r->n_kernels; i++)
    if (!strcmp(r->kernels[i].op, "dot_general")) sum += r->kernels[i].est_cycles;
  sim_report_free(r);
  module_free(m);
  buf_free(&b);
  return sum;
}

static void within(double ours, double theirs) {
  if (ours < 0.98 * theirs || ours > 1.02 * theirs) fail_msg("%.0f, not %.0f", ours, theirs);
}

#define MATRIX "tensor<512x512xf32>"

/* n multiplications and additions of constants: the longer of the array and the vector unit counts. */
static void chain(int n, const char *chip, double theirs) {
  Buf b = {0};
  char last[16] = "y";
  for (int i = 0; i < n; i++) {
    buf_printf(&b,
               "  %%k%d = stablehlo.constant dense<%d.5> : " MATRIX "\n"
               "  %%c%d = stablehlo.%s %%%s, %%k%d : " MATRIX "\n",
               i, i + 1, i, i % 2 ? "add" : "multiply", last, i);
    snprintf(last, sizeof last, "c%d", i);
  }
  within(cycles(chip, b.p, last, MATRIX), theirs);
  buf_free(&b);
}

static void test_chains(void **state) {
  (void)state;
  chain(8, "tpu-v5e", 768);
  chain(16, "tpu-v5e", 1140);
  chain(64, "tpu-v5e", 4212);
  chain(16, "tpu-v6e", 1280);
  chain(32, "tpu-v6e", 2224);
  chain(16, "tpu7x", 1280);
  chain(64, "tpu7x", 4218);
}

/* Arrays are loaded from memory each time that they are used, results in registers are not. */
static void test_loads(void **state) {
  (void)state;
  static const char text[] = "  %1 = stablehlo.multiply %y, %i#2 : " MATRIX
                             "\n  %2 = stablehlo.multiply %1, %i#3 : " MATRIX
                             "\n  %3 = stablehlo.multiply %2, %i#4 : " MATRIX
                             "\n  %4 = stablehlo.multiply %3, %y : " MATRIX
                             "\n  %5 = stablehlo.multiply %4, %i#2 : " MATRIX
                             "\n  %6 = stablehlo.multiply %5, %i#3 : " MATRIX
                             "\n  %7 = stablehlo.multiply %6, %i#4 : " MATRIX "\n";
  within(cycles("tpu-v5e", text, "7", MATRIX), 949);
}

/* A quotient of a quotient is divided once. */
static void test_quotients(void **state) {
  (void)state;
  static const char text[] =
      "  %1 = stablehlo.divide %y, %i#2 : " MATRIX "\n  %2 = stablehlo.divide %1, %i#3 : " MATRIX
      "\n  %3 = stablehlo.divide %2, %i#4 : " MATRIX "\n";
  within(cycles("tpu-v5e", text, "3", MATRIX), 768);
}

/* Results that are only added up are packed all the same. */
static void test_sums(void **state) {
  (void)state;
  static const char text[] =
      "  %1 = stablehlo.multiply %y, %i#2 : " MATRIX
      "\n  %2 = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0] : "
      "(" MATRIX ", tensor<f32>) -> tensor<512xf32>\n";
  within(cycles("tpu-v5e", text, "3", "tensor<512xf32>"), 4700);
  within(cycles("tpu-v6e", text, "3", "tensor<512xf32>"), 1280);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chains),
      cmocka_unit_test(test_loads),
      cmocka_unit_test(test_quotients),
      cmocka_unit_test(test_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
