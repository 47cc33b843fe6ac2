/* Two estimates of programs that differ in one thing, and what libtpu does differently with them. */
#include "sim/estimate_test.h"

/* State that is also written into a stack is not held on the chips of two cores. */
static void test_state(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%%x: tensor<64x128xf32>) -> (tensor<16x64x128xf32>, "
      "tensor<64x128xf32>) {\n"
      "  %%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %%n = stablehlo.constant dense<16> : tensor<i32>\n"
      "  %%init = stablehlo.constant dense<0.0> : tensor<16x64x128xf32>\n"
      "  %%r:3 = stablehlo.while(%%i = %%zero, %%s = %%init, %%y = %%x) : tensor<i32>, "
      "tensor<16x64x128xf32>, tensor<64x128xf32>\n"
      "   cond {\n"
      "    %%p = stablehlo.compare LT, %%i, %%n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %%p : tensor<i1>\n"
      "  } do {\n"
      "    %%q = stablehlo.sine %%y : tensor<64x128xf32>\n"
      "    %%z = stablehlo.multiply %%q, %%y : tensor<64x128xf32>\n"
      "    %%row = stablehlo.reshape %%%s : (tensor<64x128xf32>) -> tensor<1x64x128xf32>\n"
      "    %%t = stablehlo.dynamic_update_slice %%s, %%row, %%i, %%zero, %%zero : "
      "(tensor<16x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<16x64x128xf32>\n"
      "    %%j = stablehlo.add %%i, %%one : tensor<i32>\n"
      "    stablehlo.return %%j, %%t, %%z : tensor<i32>, tensor<16x64x128xf32>, "
      "tensor<64x128xf32>\n"
      "  }\n"
      "  return %%r#1, %%r#2 : tensor<16x64x128xf32>, tensor<64x128xf32>\n}\n";
  double bytes[2] = {0};
  for (int old = 0; old < 2; old++) {
    Buf b = {0};
    buf_printf(&b, text, old ? "y" : "z");
    SimReport *r = estimate(b.p, "tpu-v5p");
    for (int i = 0; i < r->n_kernels; i++)
      if (!no_kernel(&r->kernels[i])) bytes[old] += r->kernels[i].bytes;
    sim_report_free(r);
    buf_free(&b);
  }
  assert_true(bytes[1] >= bytes[0] + 2 * 64 * 128 * 4);
}

/* What two products and a sum of f32 or bf16 (or none: "") read, made from one array by `ops` operations:
 * peak memory. */
static double chain(const char *chip, int ops, const char *sum) {
  Buf b = {0};
  buf_printf(&b,
             "func.func public @main(%%x: tensor<524288x128xbf16>, %%w: tensor<128x256xbf16>, %%v: "
             "tensor<256xf32>, %%g: tensor<524288x256xbf16>) -> (tensor<524288x128xbf16>, "
             "tensor<128x256xbf16>, tensor<256x%s>) {\n",
             *sum ? sum : "f32");
  buf_cstr(&b,
           "  %a = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<256xf32>) -> "
           "tensor<524288x256xf32>\n"
           "  %c0 = stablehlo.convert %g : (tensor<524288x256xbf16>) -> tensor<524288x256xf32>\n");
  for (int i = 0; i < ops; i++)
    buf_printf(&b, "  %%c%d = stablehlo.%s %%c%d, %%a : tensor<524288x256xf32>\n", i + 1,
               i % 2 ? "subtract" : "multiply", i);
  buf_printf(
      &b,
      "  %%n%d = stablehlo.convert %%c%d : (tensor<524288x256xf32>) -> tensor<524288x256xbf16>\n"
      "  %%d = stablehlo.dot_general %%n%d, %%w, contracting_dims = [1] x [1] : "
      "(tensor<524288x256xbf16>, tensor<128x256xbf16>) -> tensor<524288x128xbf16>\n"
      "  %%e = stablehlo.dot_general %%x, %%n%d, contracting_dims = [0] x [0] : "
      "(tensor<524288x128xbf16>, tensor<524288x256xbf16>) -> tensor<128x256xbf16>\n",
      ops, ops, ops, ops);
  if (*sum)
    buf_printf(
        &b,
        "  %%o = stablehlo.constant dense<0.0> : tensor<%s>\n"
        "  %%s = stablehlo.reduce(%%%s%d init: %%o) applies stablehlo.add across dimensions = "
        "[0] : (tensor<524288x256x%s>, tensor<%s>) -> tensor<256x%s>\n",
        sum, *sum == 'b' ? "n" : "c", ops, sum, sum, sum);
  buf_printf(&b,
             "  return %%d, %%e, %s : tensor<524288x128xbf16>, tensor<128x256xbf16>, "
             "tensor<256x%s>\n}\n",
             *sum ? "%s" : "%v", *sum ? sum : "f32");
  SimReport *r = estimate(b.p, chip);
  double peak = r->peak_bytes;
  sim_report_free(r);
  buf_free(&b);
  return peak;
}

/* Where the vector unit takes longer than memory for what a sum and products read, the sum's kernel
 * writes it. From so many operations on in the compiler's own plans, give or take one. */
static void test_with_sum(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    int from;
  } cases[] = {{"tpu-v2", 17},  {"tpu-v3", 16},  {"tpu-v4", 7}, {"tpu-v5e", 32},
               {"tpu-v5p", 11}, {"tpu-v6e", 16}, {"tpu7x", 7}};
  const double array = 524288.0 * 256 * 2;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    double none = chain(cases[i].chip, cases[i].from - 2, "f32");
    assert_true(chain(cases[i].chip, cases[i].from + 1, "f32") > none + 0.4 * array);
    assert_true(chain(cases[i].chip, cases[i].from + 1, "") < none + 0.25 * array);
  }
  static const char *const narrow[] = {"tpu-v3", "tpu-v6e"};
  for (int i = 0; i < COUNT_OF(narrow); i++)
    assert_true(chain(narrow[i], 30, "bf16") > chain(narrow[i], 8, "bf16") + 0.4 * array);
}

/* Attention in a loop over layers. JAX's scan hands the mask in, spread over all heads, beside what
 * hides: a kernel of attention knows its positions and reads neither. */
static void test_mask(void **state) {
  (void)state;
  static const char mask[] = "%r = stablehlo.iota dim = 1 : tensor<8x512x512xi32>\n"
                             "%l = stablehlo.iota dim = 2 : tensor<8x512x512xi32>\n"
                             "%in = stablehlo.compare GE, %r, %l, SIGNED : (tensor<8x512x512xi32>, "
                             "tensor<8x512x512xi32>) -> !m\n"
                             "%low = stablehlo.constant dense<-1.0e9> : !s\n";
  SimReport *r[2];
  for (int carried = 0; carried < 2; carried++) {
    char text[4000];
    snprintf(
        text, sizeof text,
        "!x = tensor<8x512x128xbf16>\n!b = tensor<8x512x512xbf16>\n!s = tensor<8x512x512xf32>\n"
        "!m = tensor<8x512x512xi1>\n!r = tensor<8x512xf32>\n!i = tensor<i32>\n"
        "func.func public @main(%%x: !x) -> !x {\n"
        "%%c = stablehlo.constant dense<0> : !i\n%s"
        "%%y:%d = stablehlo.while(%%i = %%c, %%q = %%x%s) : !i, !x%s\n"
        "cond {\n%%n = stablehlo.constant dense<6> : !i\n"
        "%%t = stablehlo.compare LT, %%i, %%n, SIGNED : (!i, !i) -> tensor<i1>\n"
        "stablehlo.return %%t : tensor<i1>\n} do {\n"
        "%%1 = stablehlo.constant dense<1> : !i\n%%j = stablehlo.add %%i, %%1 : !i\n%s"
        "%%p = stablehlo.dot_general %%q, %%q, batching_dims = [0] x [0], contracting_dims = [2] x "
        "[2] : (!x, !x) -> !b\n"
        "%%w = stablehlo.convert %%p : (!b) -> !s\n"
        "%%h = stablehlo.select %s, %%w, %s : !m, !s\n"
        "%%u = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%%g = stablehlo.reduce(%%h init: %%u) applies stablehlo.maximum across dimensions = [2] "
        ": (!s, tensor<f32>) -> !r\n"
        "%%gb = stablehlo.broadcast_in_dim %%g, dims = [0, 1] : (!r) -> !s\n"
        "%%d = stablehlo.subtract %%h, %%gb : !s\n%%e = stablehlo.exponential %%d : !s\n"
        "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%%k = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = [2] : "
        "(!s, tensor<f32>) -> !r\n"
        "%%kb = stablehlo.broadcast_in_dim %%k, dims = [0, 1] : (!r) -> !s\n"
        "%%v = stablehlo.divide %%e, %%kb : !s\n%%a = stablehlo.convert %%v : (!s) -> !b\n"
        "%%o = stablehlo.dot_general %%a, %%q, batching_dims = [0] x [0], contracting_dims = [2] x "
        "[1] : (!b, !x) -> !x\n"
        "stablehlo.return %%j, %%o%s : !i, !x%s\n}\nreturn %%y#1 : !x }\n",
        carried ? mask : "", carried ? 4 : 2, carried ? ", %f = %in, %h0 = %low" : "",
        carried ? ", !m, !s" : "", carried ? "" : mask, carried ? "%f" : "%in",
        carried ? "%h0" : "%low", carried ? ", %f, %h0" : "", carried ? ", !m, !s" : "");
    r[carried] = estimate_as(text, "tpu-v6e", &(SimOpts){.fused_attention = true});
  }
  near(r[1]->time_s, r[0]->time_s, 0.02);
  assert_true(r[1]->peak_bytes < r[0]->peak_bytes + (1 << 16));
  sim_report_free(r[0]);
  sim_report_free(r[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_state), cmocka_unit_test(test_with_sum),
                                     cmocka_unit_test(test_mask)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
