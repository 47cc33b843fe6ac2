/* Nothing costs nothing: linear algebra, random numbers, transfers, custom calls and scalar loops take time, and what has no model
 * is said. */
#include "sim/estimate_test.h"

#define MATRIX "tensor<2048x2048xf32>"

static SimReport *call(const char *line, const char *type, const char *chip) {
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%a: %s) -> %s {\n  %%0 = %s\n  return %%0 : %s\n}\n",
             type, type, line, type);
  SimReport *r = estimate(b.p, chip);
  buf_free(&b);
  return r;
}

static void test_factorisations(void **state) {
  (void)state;
  static const char *const chips[] = {"tpu-v2", "tpu-v5e", "tpu7x", "A100-80GB", "V100", "MI300X"};
  double n = 2048, peak;
  for (int i = 0; i < COUNT_OF(chips); i++) {
    const Chip *c = find_chip(chips[i]);
    peak = c->kind == CHIP_TPU ? c->peak_flops : chip_num(c, "peak_fp32", 0) / c->devices_per_chip;
    SimReport *one = call("stablehlo.cholesky %a, lower = true : " MATRIX, MATRIX, chips[i]);
    near(one->flops, n * n * n / 3, 1e-9);
    assert_true(one->time_s > one->flops / peak && one->time_s < 1);
    sim_report_free(one);
    static const char batch[] = "tensor<64x2048x2048xf32>";
    SimReport *many =
        call("stablehlo.cholesky %a, lower = true : tensor<64x2048x2048xf32>", batch, chips[i]);
    near(many->flops, 64 * n * n * n / 3, 1e-9);
    assert_true(many->time_s > many->flops / peak);
    sim_report_free(many);
  }
}

/* The routines of LAPACK that frameworks call: each counts its operations. */
static void test_routines(void **state) {
  (void)state;
  static const struct {
    const char *call;
    double least; /* of n^3 */
  } rows[] = {{"lapack_sgetrf_ffi", 0.6},
              {"cusolver_geqrf_ffi", 1.3},
              {"Qr", 1.3},
              {"lapack_ssyevd_ffi", 1.3},
              {"Eigh", 1.3},
              {"cusolver_gesvd_ffi", 2},
              {"LuDecomposition", 0.6},
              {"lapack_sgeev_ffi", 10}};
  for (int i = 0; i < COUNT_OF(rows); i++)
    for (int k = 0; k < 2; k++) {
      Buf b = {0};
      buf_printf(&b, "stablehlo.custom_call @%s(%%a) : (" MATRIX ") -> " MATRIX, rows[i].call);
      SimReport *r = call(b.p, MATRIX, k ? "tpu-v5e" : "H100-SXM");
      assert_true(r->flops >= rows[i].least * 2048.0 * 2048 * 2048);
      assert_int_equal(r->unknown_calls, 0);
      sim_report_free(r);
      buf_free(&b);
    }
}

static void test_custom_calls(void **state) {
  (void)state;
  SimReport *r =
      call("stablehlo.custom_call @mine(%a) : (" MATRIX ") -> " MATRIX, MATRIX, "tpu-v5e");
  Buf b = {0};
  sim_unknowns(r, &b);
  assert_int_equal(r->unknown_calls, 1);
  assert_non_null(strstr(b.p, "1 custom call of unknown cost (mine)"));
  b.n = 0;
  sim_print(r, 5, &b);
  assert_non_null(strstr(b.p, "1 custom call of unknown cost (mine)"));
  b.n = 0;
  sim_json(r, "p", true, &b);
  assert_non_null(strstr(b.p, "\"unknown_calls\": 1"));
  buf_free(&b);
  sim_report_free(r);
  static const char pallas[] =
      "stablehlo.custom_call @tpu_custom_call(%a) {backend_config = "
      "\"{\\22custom_call_config\\22: {\\22body\\22: \\22\\22, \\22cost_estimate\\22: "
      "{\\22flops\\22: 197000000000, \\22transcendentals\\22: 0, \\22bytes_accessed\\22: "
      "33554432}}}\"} : "
      "(" MATRIX ") -> " MATRIX;
  r = call(pallas, MATRIX, "tpu-v5e");
  assert_int_equal(r->unknown_calls, 0);
  near(r->flops, 197e9, 1e-9);
  near(r->time_s, 1e-3, 0.01);
  sim_report_free(r);
}

/* Weights that are fetched ahead of twelve small products cross once, at the memory's rate. */
static void test_transfers(void **state) {
  (void)state;
  Buf b = {0};
  buf_cstr(&b, "func.func public @main(%t0: tensor<8x4096xbf16>");
  for (int i = 0; i < 12; i++) buf_printf(&b, ", %%w%d: tensor<4096x4096xbf16>", i);
  buf_cstr(&b, ") -> tensor<8x4096xbf16> {\n");
  for (int i = 0; i < 12; i++)
    buf_printf(&b,
               "  %%d%d = stablehlo.dot_general %%t%d, %%w%d, contracting_dims = [1] x [0] : "
               "(tensor<8x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8x4096xbf16>\n"
               "  %%t%d = stablehlo.tanh %%d%d : tensor<8x4096xbf16>\n",
               i, i, i, i + 1, i);
  buf_cstr(&b, "  return %t12 : tensor<8x4096xbf16>\n}\n");
  static const char *const chips[] = {"tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu7x"};
  for (int i = 0; i < COUNT_OF(chips); i++) {
    SimReport *r = estimate(b.p, chips[i]);
    double least = r->argument_bytes / r->chip->hbm_bandwidth, sum = 0;
    for (int k = 0; k < r->n_kernels; k++) sum += r->kernels[k].time_s * r->kernels[k].count;
    near(r->model_bytes, r->argument_bytes, 0.01);
    near(sum, r->time_s, 1e-6);
    assert_true(r->time_s >= least && r->time_s < 1.6 * least);
    sim_report_free(r);
  }
  buf_free(&b);
}

static void test_random(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%s: tensor<2xui64>) -> tensor<25000000xui32> {\n"
      "  %t, %b = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> "
      "(tensor<2xui64>, tensor<25000000xui32>)\n  return %b : tensor<25000000xui32>\n}\n";
  static const char *const chips[] = {"tpu-v2", "tpu-v3", "tpu-v6e", "H100-SXM"};
  for (int i = 0; i < COUNT_OF(chips); i++) {
    SimReport *r = estimate(text, chips[i]);
    double least = 1e8 / r->chip->hbm_bandwidth;
    assert_true(r->time_s >= least && r->time_s < 8 * least);
    sim_report_free(r);
  }
}

/* A loop that never runs is its argument, which is copied. */
static void test_no_trips(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<1024x4096xf32>) -> tensor<1024x4096xf32> {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %o = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %r:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<1024x4096xf32>\n"
      "  cond {\n"
      "    %c = stablehlo.compare LT, %i, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %c : tensor<i1>\n"
      "  } do {\n"
      "    %n = stablehlo.add %i, %o : tensor<i32>\n"
      "    %y = stablehlo.tanh %x : tensor<1024x4096xf32>\n"
      "    stablehlo.return %n, %y : tensor<i32>, tensor<1024x4096xf32>\n"
      "  }\n"
      "  return %r#1 : tensor<1024x4096xf32>\n}\n";
  static const char *const chips[] = {"tpu-v2", "L4"};
  for (int i = 0; i < COUNT_OF(chips); i++) {
    SimReport *r = estimate(text, chips[i]);
    assert_true(r->time_s >= 2 * 1024 * 4096 * 4 / r->chip->hbm_bandwidth);
    sim_report_free(r);
  }
}

static SimReport *product(const char *type, const char *made, const char *chip) {
  Buf b = {0};
  buf_printf(
      &b,
      "func.func public @main(%%a: tensor<4096x4096x%s>, %%b: tensor<4096x4096x%s>) -> "
      "tensor<4096x4096x%s> {\n  %%0 = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x "
      "[0] "
      ": (tensor<4096x4096x%s>, tensor<4096x4096x%s>) -> tensor<4096x4096x%s>\n  return %%0 : "
      "tensor<4096x4096x%s>\n}\n",
      type, type, made, type, type, made, made);
  SimReport *r = estimate(b.p, chip);
  buf_free(&b);
  return r;
}

/* Complex numbers take three products of real ones or four, 64 bits on TPUs three of 32; the share of the peak is of the type's. */
static void test_wide_and_narrow(void **state) {
  (void)state;
  static const double work = 2.0 * 4096 * 4096 * 4096;
  static const struct {
    const char *type, *made, *chip, *peak;
    double products;
  } rows[] = {{"complex<f64>", "complex<f64>", "A100-80GB", "peak_fp64_tc", 4},
              {"complex<f32>", "complex<f32>", "V100", "peak_fp32", 4},
              {"complex<f32>", "complex<f32>", "tpu-v5e", "peak_bf16", 3},
              {"f64", "f64", "tpu-v5e", "peak_bf16", 3},
              {"f64", "f64", "L4", "peak_fp64", 1},
              {"i8", "i32", "tpu-v5e", "peak_int8", 1}};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    SimReport *r = product(rows[i].type, rows[i].made, rows[i].chip);
    double peak = chip_num(r->chip, rows[i].peak, 0);
    assert_true(peak > 0 && r->time_s >= rows[i].products * work / peak);
    assert_true(r->mfu > 0 && r->mfu <= 1);
    sim_report_free(r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_factorisations), cmocka_unit_test(test_routines),
      cmocka_unit_test(test_custom_calls),   cmocka_unit_test(test_transfers),
      cmocka_unit_test(test_random),         cmocka_unit_test(test_no_trips),
      cmocka_unit_test(test_wide_and_narrow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
