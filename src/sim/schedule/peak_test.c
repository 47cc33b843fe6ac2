/* The order of kernels, and what is computed again for lack of memory. The numbers are libtpu's for the same programs. */
#include "sim/estimate_test.h"

/* A donated argument is written over when others have read it, whatever comes first otherwise. */
static void test_donated_order(void **state) {
  (void)state;
  for (int donated = 0; donated < 2; donated++) {
    char text[1024];
    snprintf(text, sizeof text,
             "func.func @main(%%p: tensor<1024x1024xf32>%s, %%x: tensor<1024x1024xf32>, "
             "%%w: tensor<1024x2048xf32>) -> (tensor<1024x2048xf32>, tensor<1024x1024xf32>) {\n"
             "  %%r = stablehlo.dot %%p, %%w : (tensor<1024x1024xf32>, tensor<1024x2048xf32>) -> "
             "tensor<1024x2048xf32>\n"
             "  %%u = stablehlo.dot %%x, %%x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
             "tensor<1024x1024xf32>\n"
             "  %%n = stablehlo.add %%p, %%u : tensor<1024x1024xf32>\n"
             "  return %%r, %%n : tensor<1024x2048xf32>, tensor<1024x1024xf32>\n}\n",
             donated ? " {jax.buffer_donor = true}" : "");
    SimReport *r = estimate(text, "tpu-v2");
    assert_int_equal(kernels_of(r, NULL), 2);
    near(r->kernels[1].flops, (donated ? 2.0 : 4.0) * 1024 * 1024 * 1024, 0.01);
    sim_report_free(r);
  }
}

/* Where memory is nearly full, an array that waits for a late reader is computed again: the one that
 * saves most, and only there. */
static void test_again(void **state) {
  (void)state;
  static const char chain[] =
      "func.func public @main(%x: tensor<Nx2048xbf16>, %w: tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16> {\n"
      "  %a = stablehlo.dot %x, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %b = stablehlo.dot %a, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %c = stablehlo.dot %b, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %m = stablehlo.dot %c, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %p = stablehlo.dot %m, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %d = stablehlo.add %p, %b : tensor<Nx2048xbf16>\n"
      "  %q = stablehlo.dot %d, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %e = stablehlo.add %q, %a : tensor<Nx2048xbf16>\n"
      "  return %e : tensor<Nx2048xbf16>\n}\n";
  double time[2], products[2];
  for (int large = 0; large < 2; large++) {
    Buf text = {0};
    for (const char *c = chain; *c; c++)
      if (*c == 'N' && c[1] == 'x') buf_cstr(&text, large ? "384000" : "192000");
      else buf_byte(&text, *c);
    buf_byte(&text, 0);
    SimReport *r = estimate(text.p, "tpu-v2");
    assert_true(r->fits);
    assert_int_equal(r->rematerialized, large);
    time[large] = r->time_s;
    products[large] = 0;
    for (int i = 0; i < r->n_kernels; i++) products[large] += r->kernels[i].count;
    sim_report_free(r);
    buf_free(&text);
  }
  assert_true(products[0] == 6 && products[1] == 7);
  assert_true(time[1] > 2.25 * time[0] && time[1] < 2.45 * time[0]);
}

/* What comes from a barrier waits for all that goes into it, also where that frees nothing. */
static void test_barrier(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%x: tensor<1024x1024xf32>, %w: tensor<1024x4096xf32>) -> "
               "(tensor<1024x4096xf32>, tensor<1024x1024xf32>) {\n"
               "  %n = stablehlo.dot %x, %x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
               "tensor<1024x1024xf32>\n"
               "  %b = stablehlo.dot %n, %w : (tensor<1024x1024xf32>, tensor<1024x4096xf32>) -> "
               "tensor<1024x4096xf32>\n"
               "  %0:2 = stablehlo.optimization_barrier %n, %b : tensor<1024x1024xf32>, "
               "tensor<1024x4096xf32>\n"
               "  %c = stablehlo.dot %0#0, %x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
               "tensor<1024x1024xf32>\n"
               "  return %b, %c : tensor<1024x4096xf32>, tensor<1024x1024xf32>\n}\n",
               "tpu-v2");
  const SimKernel *last = &r->kernels[r->n_kernels - 1];
  near(last->flops, 2.0 * 1024 * 1024 * 1024, 0.01);
  sim_report_free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_donated_order),
                                     cmocka_unit_test(test_again), cmocka_unit_test(test_barrier)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
