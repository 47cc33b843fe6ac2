/* sim: the systolic array against closed forms and plain loops; layouts, donation and loops on
 * small programs; every program of the golden corpus on every chip. How close the numbers are to
 * libtpu is `make accuracy`. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "chip/chip.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

#include <stdlib.h>
#include <time.h>

static const Chip *find(const char *name) {
  const Chip *c = NULL;
  assert_null(chip_find(name, &c));
  return c;
}

static Module *read(const char *text) {
  Module *m = NULL;
  Err *e = stablehlo_read("test", str_from(text), &m);
  if (!e) e = ir_verify(m);
  if (e) err_report(e);
  assert_null(e);
  return m;
}

static SimReport *estimate(const char *text, const char *chip) {
  Module *m = read(text);
  SimReport *r = NULL;
  Err *e = sim_estimate(m, find(chip), NULL, &r);
  if (e) err_report(e);
  assert_null(e);
  module_free(m);
  return r;
}

/* ---- the systolic array ---------------------------------------------------------------------- */

static void test_systolic_numbers(void **state) {
  (void)state;
  static const int shapes[][5] = {
      {4, 4, 4, 4, 4}, {4, 4, 7, 5, 9}, {8, 4, 3, 10, 17}, {3, 5, 11, 1, 2}, {16, 16, 33, 40, 20}};
  for (int s = 0; s < COUNT_OF(shapes); s++)
    for (int flow = 0; flow < 2; flow++)
      for (int db = 0; db < 2; db++) {
        int R = shapes[s][0], C = shapes[s][1], m = shapes[s][2], n = shapes[s][3],
            k = shapes[s][4];
        float *a = malloc(sizeof *a * (size_t)(m * k)), *b = malloc(sizeof *b * (size_t)(k * n));
        for (int i = 0; i < m * k; i++) a[i] = (float)((i * 7) % 13 - 6);
        for (int i = 0; i < k * n; i++) b[i] = (float)((i * 5) % 11 - 5);
        SystolicRun r;
        assert_null(systolic_run(flow, R, C, m, n, k, a, b, db, &r));
        for (int i = 0; i < m; i++)
          for (int j = 0; j < n; j++) {
            float want = 0;
            for (int q = 0; q < k; q++) want += a[i * k + q] * b[q * n + j];
            assert_true(r.result[i * n + j] == want); /* small integers: exact */
          }
        assert_int_equal(r.macs, (int64_t)m * n * k);
        assert_int_equal(r.fill + r.steady + r.drain, r.cycles);
        assert_int_equal(r.cycles, systolic_cycles(flow, R, C, m, n, k, db));
        systolic_free(&r);
        free(a);
        free(b);
      }
}

static void test_systolic_counts(void **state) {
  (void)state;
  /* counted wave by wave, as large runs are, against the same run with numbers, element by element
   */
  for (int flow = 0; flow < 2; flow++)
    for (int db = 0; db < 2; db++) {
      enum { M = 150, N = 60, K = 140 };
      float *a = calloc(M * K, sizeof *a), *b = calloc(K * N, sizeof *b);
      SystolicRun walked, counted;
      assert_null(systolic_run(flow, 24, 16, M, N, K, a, b, db, &walked));
      assert_null(systolic_run(flow, 24, 16, M, N, K, NULL, NULL, db, &counted));
      assert_true(walked.cycles * 24.0 * 16 <= SYSTOLIC_WALK || counted.counted);
      assert_int_equal(walked.macs, counted.macs);
      assert_int_equal(walked.steady, counted.steady);
      assert_int_equal(walked.fill, counted.fill);
      for (int64_t t = 0; t < walked.cycles; t++)
        assert_int_equal(walked.active[t], counted.active[t]);
      systolic_free(&walked);
      systolic_free(&counted);
      free(a);
      free(b);
    }
}

static void test_systolic_published(void **state) {
  (void)state;
  /* runs of SCALE-Sim 3.0.0: COMPUTE_REPORT.csv, Total Cycles (tools/systolic_peer.py) */
  static const struct {
    SystolicFlow flow;
    int rows, cols;
    int64_t m, n, k, cycles;
  } runs[] = {
      {SYSTOLIC_WS, 8, 8, 16, 8, 8, 37},
      {SYSTOLIC_WS, 8, 8, 5, 20, 13, 161},
      {SYSTOLIC_WS, 16, 16, 64, 64, 64, 1759},
      {SYSTOLIC_WS, 16, 32, 100, 70, 50, 1943},
      {SYSTOLIC_WS, 32, 32, 128, 128, 128, 3551},
      {SYSTOLIC_WS, 32, 16, 33, 65, 97, 2219},
      {SYSTOLIC_WS, 128, 128, 256, 256, 256, 2551},
      {SYSTOLIC_WS, 128, 128, 100, 300, 200, 2891},
      {SYSTOLIC_OS, 8, 8, 16, 8, 8, 43},
      {SYSTOLIC_OS, 8, 8, 5, 20, 13, 80},
      {SYSTOLIC_OS, 16, 16, 64, 64, 64, 1503},
      {SYSTOLIC_OS, 16, 32, 100, 70, 50, 2015},
      {SYSTOLIC_OS, 32, 32, 128, 128, 128, 3039},
      {SYSTOLIC_OS, 32, 16, 33, 65, 97, 1429},
      {SYSTOLIC_OS, 128, 128, 256, 256, 256, 2039},
      {SYSTOLIC_OS, 128, 128, 100, 300, 200, 1361},
  };
  for (int i = 0; i < COUNT_OF(runs); i++) {
    SystolicFlow flow = runs[i].flow;
    int R = runs[i].rows, C = runs[i].cols;
    int64_t m = runs[i].m, n = runs[i].n, k = runs[i].k;
    assert_int_equal(systolic_scalesim_cycles(flow, R, C, m, n, k), runs[i].cycles);
    SystolicRun r;
    assert_null(systolic_run(flow, R, C, m, n, k, NULL, NULL, false, &r));
    /* it numbers cycles from 0; its output-stationary results are never shifted out, which takes R
     * cycles a fold */
    int64_t out = flow == SYSTOLIC_OS ? r.folds * R : 0;
    assert_int_equal(r.cycles, runs[i].cycles + 1 + out);
    systolic_free(&r);
  }
  /* without double buffering the simulated array needs no fewer cycles than one that hides its
   * weights */
  assert_true(systolic_cycles(SYSTOLIC_WS, 128, 128, 512, 512, 512, false) >
              systolic_cycles(SYSTOLIC_WS, 128, 128, 512, 512, 512, true));
  /* the tile formula of the cost model: rows stream past each tile of weights, one a cycle, once
   * the array is full */
  for (int64_t m = 256; m <= 4096; m *= 2) {
    double tiles = 4 * 6, formula = tiles * (double)m;
    double exact = (double)systolic_cycles(SYSTOLIC_WS, 128, 128, m, 6 * 128, 4 * 128, true);
    assert_true(exact >= formula && exact <= formula + 3 * 128 + 256);
  }
}

/* ---- programs -------------------------------------------------------------------------------- */

static const char add[] =
    "func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> "
    "tensor<1024x1024xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<1024x1024xf32>\n  return %0 : tensor<1024x1024xf32>\n}\n";

static void near(double got, double want, double share) {
  if (fabs(got / want - 1) > share) print_message("%g, expected %g\n", got, want);
  assert_true(fabs(got / want - 1) <= share);
}

static void test_estimates(void **state) {
  (void)state;
  /* libtpu's cycles for this program */
  static const struct {
    const char *chip;
    double cycles;
  } want[] = {{"tpu-v2", 29656},  {"tpu-v3", 29848},  {"tpu-v4", 15582}, {"tpu-v5e", 40208},
              {"tpu-v5p", 11868}, {"tpu-v6e", 16327}, {"tpu7x", 9550}};
  for (int i = 0; i < COUNT_OF(want); i++) {
    SimReport *r = estimate(add, want[i].chip);
    near(r->cycles, want[i].cycles, 0.15);
    assert_true(r->argument_bytes == 2 * 4194304 && r->output_bytes == 4194304 &&
                r->temp_bytes == 0 && r->fits);
    assert_int_equal(r->n_kernels, 1);
    assert_non_null(strstr(r->kernels[0].place, "test:2"));
    sim_report_free(r);
  }
}

/* What the compiler writes as other operations has libtpu's cycles: a stable sort that is turned
 * both ways, a small top-k that is a sort. */
static void test_rewritten(void **state) {
  (void)state;
  static const char sort[] =
      "func.func @main(%x: tensor<256x1024xf32>) -> tensor<256x1024xf32> {\n"
      "  %0 = \"stablehlo.sort\"(%x) <{dimension = 1 : i64, is_stable = true}> ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "    %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "    stablehlo.return %1 : tensor<i1>\n"
      "  }) : (tensor<256x1024xf32>) -> tensor<256x1024xf32>\n"
      "  return %0 : tensor<256x1024xf32>\n}\n";
  static const char top[] =
      "func.func @main(%x: tensor<1000x100xf32>) -> (tensor<1000x3xf32>, tensor<1000x3xi32>) {\n"
      "  %v, %i = chlo.top_k(%x, k = 3) : tensor<1000x100xf32> -> "
      "(tensor<1000x3xf32>, tensor<1000x3xi32>)\n"
      "  return %v, %i : tensor<1000x3xf32>, tensor<1000x3xi32>\n}\n";
  static const struct {
    const char *text, *chip;
    double cycles, peak;
  } want[] = {{sort, "tpu-v2", 12897, 4198400},
              {sort, "tpu-v5e", 8144, 5244928},
              {sort, "tpu-v6e", 6720, 5244928},
              {top, "tpu-v5e", 4014, 2164224}};
  for (int i = 0; i < COUNT_OF(want); i++) {
    SimReport *r = estimate(want[i].text, want[i].chip);
    near(r->cycles, want[i].cycles, 0.1);
    near(r->peak_bytes, want[i].peak, 0.05);
    sim_report_free(r);
  }
}

/* Taps of few features share the array forwards, where images lie in sublanes and the filter's
 * output features in lanes, and not otherwise; in a gradient that lies turned each pixel of the
 * window has rows of its own, in others the images of all taps fill it without gaps. */
static void test_shared_array(void **state) {
  (void)state;
#define CONVOLUTION(x, w, y, dims, pad)                                                        \
  "func.func @main(%x: tensor<" x ">, %w: tensor<" w ">) -> tensor<" y "> {\n"                 \
  "  %0 = stablehlo.convolution(%x, %w) dim_numbers = " dims ", window = {pad = " pad          \
  "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<" x ">, tensor<" w \
  ">) -> tensor<" y ">\n  return %0 : tensor<" y ">\n}\n"
  static const char five[] =
      CONVOLUTION("32x14x14x64xbf16", "5x5x64x192xbf16", "32x14x14x192xbf16",
                  "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", "[[2, 2], [2, 2]]");
  static const char wide[] =
      CONVOLUTION("16x28x28x320xf32", "3x3x320x96xf32", "16x28x28x96xf32",
                  "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", "[[1, 1], [1, 1]]");
  static const char gradient[] =
      CONVOLUTION("40x18x18x160xbf16", "40x18x18x32xbf16", "3x3x160x32xbf16",
                  "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "[[1, 1], [1, 1]]");
  static const char packed[] =
      CONVOLUTION("24x14x14x384xbf16", "24x14x14x384xbf16", "3x3x384x384xbf16",
                  "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]", "[[1, 1], [1, 1]]");
#undef CONVOLUTION
  static const struct {
    const char *text, *chip;
    double cycles;
  } want[] = {{five, "tpu-v5e", 58514},     {wide, "tpu-v5e", 94627},
              {gradient, "tpu-v5p", 29337}, {gradient, "tpu-v5e", 53186},
              {gradient, "tpu-v6e", 36505}, {packed, "tpu-v2", 398824},
              {packed, "tpu-v5e", 106055}};
  for (int i = 0; i < COUNT_OF(want); i++) {
    SimReport *r = estimate(want[i].text, want[i].chip);
    near(r->cycles, want[i].cycles, 0.06);
    sim_report_free(r);
  }
}

/* Loops move tiles slower than products do, narrow ones most of all. */
static void test_narrow_loops(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%a: tensor<1024x1024xf32>) -> tensor<1024x1024xbf16> {\n"
      "  %0 = stablehlo.convert %a : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>\n"
      "  return %0 : tensor<1024x1024xbf16>\n}\n";
  static const struct {
    const char *chip;
    double cycles;
  } want[] = {{"tpu-v4", 13341}, {"tpu-v5e", 35944}, {"tpu-v5p", 10307}, {"tpu-v6e", 14086}};
  for (int i = 0; i < COUNT_OF(want); i++) {
    SimReport *r = estimate(text, want[i].chip);
    near(r->cycles, want[i].cycles, 0.04);
    sim_report_free(r);
  }
  /* in several windows, loading and storing hides where two cores share the memory */
  static const char tanh[] =
      "func.func @main(%a: tensor<2048x2048xf32>, %b: tensor<2048x2048xf32>) -> "
      "tensor<2048x2048xf32> {\n"
      "  %0 = stablehlo.tanh %a : tensor<2048x2048xf32>\n"
      "  %1 = stablehlo.add %0, %b : tensor<2048x2048xf32>\n"
      "  return %1 : tensor<2048x2048xf32>\n}\n";
  SimReport *r = estimate(tanh, "tpu-v4");
  near(r->cycles, 58488, 0.03);
  sim_report_free(r);
}

static void test_padding(void **state) {
  (void)state;
  /* 3 columns: the long side goes to lanes, 3 rows pad to 4; libtpu says 4 x 65536 x 4 bytes */
  SimReport *r = estimate(
      "func.func @main(%a: tensor<65536x3xf32>) -> tensor<65536x3xf32> {\n"
      "  %0 = stablehlo.negate %a : tensor<65536x3xf32>\n  return %0 : tensor<65536x3xf32>\n}\n",
      "tpu-v3");
  assert_true(r->argument_bytes == 65536 * 4 * 4);
  sim_report_free(r);
}

static void test_loop(void **state) {
  (void)state;
  static const char loop[] =
      "func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {\n"
      "  %c0 = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %0:2 = stablehlo.while(%i = %c0, %v = %x) : tensor<i32>, tensor<256x256xf32>\n"
      "  cond {\n    %n = stablehlo.constant dense<%d> : tensor<i32>\n"
      "    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %1 : tensor<i1>\n  } do {\n    %one = stablehlo.constant dense<1> : "
      "tensor<i32>\n"
      "    %2 = stablehlo.add %i, %one : tensor<i32>\n    %3 = stablehlo.sine %v : "
      "tensor<256x256xf32>\n"
      "    stablehlo.return %2, %3 : tensor<i32>, tensor<256x256xf32>\n  }\n  return %0#1 : "
      "tensor<256x256xf32>\n}\n";
  double t[2];
  for (int i = 0; i < 2; i++) {
    char text[2000], *at;
    strcpy(text, loop);
    at = strstr(text, "%d>");
    char tail[1500];
    strcpy(tail, at + 2);
    sprintf(at, "%d%s", i ? 1000 : 10, tail);
    SimReport *r = estimate(text, "tpu-v5e");
    assert_false(r->unknown_loops);
    t[i] = r->time_s;
    sim_report_free(r);
  }
  near(t[1], 100 * t[0], 0.05);
}

static void test_does_not_fit(void **state) {
  (void)state;
  static const char big[] =
      "func.func @main(%a: tensor<2x1024x1024x1024xf32>) -> tensor<2x1024x1024x1024xf32> {\n"
      "  %0 = stablehlo.negate %a : tensor<2x1024x1024x1024xf32>\n"
      "  return %0 : tensor<2x1024x1024x1024xf32>\n}\n";
  SimReport *r = estimate(big, "T4"); /* 8 GiB in, 8 GiB out */
  assert_false(r->fits);
  Err *e = sim_fit_error(r, "big");
  assert_non_null(e);
  err_free(e);
  sim_report_free(r);
  r = estimate(big, "A100-80GB");
  assert_true(r->fits && r->time_s > 0.005 && r->time_s < 0.02);
  sim_report_free(r);
}

/* ---- the memory plan; the numbers are libtpu's for the same programs ------------------------- */

/* Rows and columns of a batched product share the tiles: operands that come with the batch in lanes
 * are turned, and so is the result. */
static void test_batched_layout(void **state) {
  (void)state;
  static const char batched[] =
      "func.func @main(%a: tensor<256x32x32xbf16>, %b: tensor<256x32x32xbf16>) -> "
      "tensor<256x32x32xbf16> {\n"
      "  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[1] "
      ": (tensor<256x32x32xbf16>, tensor<256x32x32xbf16>) -> tensor<256x32x32xbf16>\n"
      "  return %0 : tensor<256x32x32xbf16>\n}\n";
  static const char *const chips[] = {"tpu-v2", "tpu-v4", "tpu-v5e", "tpu-v6e", "tpu7x"};
  for (int i = 0; i < COUNT_OF(chips); i++) {
    SimReport *r = estimate(batched, chips[i]);
    near(r->peak_bytes, 7864320, 0.001);
    sim_report_free(r);
  }
}

static int kernels_of(const SimReport *r, const char *op) {
  int n = 0;
  for (int i = 0; i < r->n_kernels; i++) n += !strcmp(r->kernels[i].op, op);
  return n;
}

static void test_outer_product(void **state) {
  (void)state;
  SimReport *r = estimate(
      "func.func @main(%a: tensor<64x512xf32>, %b: tensor<64x8xf32>) -> tensor<64x8x512xf32> {\n"
      "  %0 = stablehlo.dot_general %b, %a, batching_dims = [0] x [0], contracting_dims = [] x [] "
      ": "
      "(tensor<64x8xf32>, tensor<64x512xf32>) -> tensor<64x8x512xf32>\n"
      "  return %0 : tensor<64x8x512xf32>\n}\n",
      "tpu-v3");
  assert_int_equal(kernels_of(r, "dot_general"), 0);
  assert_int_equal(kernels_of(r, "multiply"), 1);
  sim_report_free(r);
}

/* Two branches of which each needs a large array for a moment: one after the other, not both first.
 */
static void test_order(void **state) {
  (void)state;
  SimReport *r = estimate(
      "func.func @main(%a: tensor<4096x128xf32>, %w: tensor<128x4096xf32>) -> tensor<4096x128xf32> "
      "{\n"
      "  %0 = stablehlo.dot %a, %w : (tensor<4096x128xf32>, tensor<128x4096xf32>) -> "
      "tensor<4096x4096xf32>\n"
      "  %1 = stablehlo.negate %w : tensor<128x4096xf32>\n"
      "  %2 = stablehlo.dot %a, %1 : (tensor<4096x128xf32>, tensor<128x4096xf32>) -> "
      "tensor<4096x4096xf32>\n"
      "  %3 = stablehlo.dot %0, %a : (tensor<4096x4096xf32>, tensor<4096x128xf32>) -> "
      "tensor<4096x128xf32>\n"
      "  %4 = stablehlo.dot %2, %a : (tensor<4096x4096xf32>, tensor<4096x128xf32>) -> "
      "tensor<4096x128xf32>\n"
      "  %5 = stablehlo.add %3, %4 : tensor<4096x128xf32>\n"
      "  return %5 : tensor<4096x128xf32>\n}\n",
      "tpu-v2");
  double large = 4096.0 * 4096 * 4;
  assert_true(r->temp_bytes >= large && r->temp_bytes < 1.5 * large);
  sim_report_free(r);
}

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
    assert_int_equal(r->n_kernels, 2);
    near(r->kernels[1].flops, (donated ? 2.0 : 4.0) * 1024 * 1024 * 1024, 0.01);
    sim_report_free(r);
  }
}

/* A branch may copy what is made outside of it into another order; and the branch that a constant
 * chooses is part of the program. */
static void test_branches(void **state) {
  (void)state;
  double gathered = 0;
  for (int known = 0; known < 2; known++) {
    Buf text = {0};
    buf_cstr(&text, "func.func @main(%i: tensor<i32>, %x: tensor<2000x2x100xf32>, "
                    "%w: tensor<100x100xf32>, %v: tensor<100x2xf32>, %k: tensor<2x2xi32>) -> "
                    "tensor<2000x2xf32> {\n");
    for (int i = 0; i < 12; i++)
      buf_printf(
          &text,
          "  %%a%d = stablehlo.dot_general %%%s, %%w, contracting_dims = [2] x [0] : "
          "(tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>\n",
          i,
          i == 0 ? "x"
                 : (char[]){'a', (char)(i < 11 ? '0' + i - 1 : '1'), (char)(i < 11 ? 0 : '0'), 0});
    buf_printf(&text,
               "  %%t = stablehlo.dot_general %%a11, %%v, contracting_dims = [2] x [0] : "
               "(tensor<2000x2x100xf32>, tensor<100x2xf32>) -> tensor<2000x2x2xf32>\n"
               "  %%u = stablehlo.transpose %%t, dims = [0, 2, 1] : (tensor<2000x2x2xf32>) -> "
               "tensor<2000x2x2xf32>\n"
               "  %%c = stablehlo.constant dense<0> : tensor<i32>\n"
               "  %%0 = \"stablehlo.case\"(%%%s) ({\n"
               "    %%g = \"stablehlo.gather\"(%%u, %%k) <{dimension_numbers = #stablehlo.gather<"
               "offset_dims = [0], collapsed_slice_dims = [1, 2], start_index_map = [1, 2], "
               "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = "
               "array<i64: 2000, 1, 1>}> : (tensor<2000x2x2xf32>, tensor<2x2xi32>) -> "
               "tensor<2000x2xf32>\n"
               "    stablehlo.return %%g : tensor<2000x2xf32>\n  }, {\n"
               "    %%s = stablehlo.slice %%u [0:2000, 0:1, 0:2] : (tensor<2000x2x2xf32>) -> "
               "tensor<2000x1x2xf32>\n"
               "    %%r = stablehlo.reshape %%s : (tensor<2000x1x2xf32>) -> tensor<2000x2xf32>\n"
               "    stablehlo.return %%r : tensor<2000x2xf32>\n"
               "  }) : (tensor<i32>) -> tensor<2000x2xf32>\n"
               "  return %%0 : tensor<2000x2xf32>\n}\n",
               known ? "c" : "i");
    SimReport *r = estimate(text.p, "tpu-v5e");
    for (int i = 0; i < r->n_kernels; i++)
      if (!strcmp(r->kernels[i].op, "gather")) gathered += r->kernels[i].count;
    assert_true(gathered == 1 + known);
    sim_report_free(r);
    buf_free(&text);
  }
}

/* A table of few columns is turned for the rows that are read from it; its gradient meets that copy,
 * and so does the result, which is turned back. The figure is libtpu's. */
static void test_narrow_table(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%w: tensor<50000x8xf32> {tf.aliasing_output = 0 : i32}, "
               "%i: tensor<4096x1xi32>, %x: tensor<4096x8xf32>) -> (tensor<50000x8xf32>, "
               "tensor<4096x8xf32>) {\n"
               "  %r = \"stablehlo.gather\"(%w, %i) <{dimension_numbers = #stablehlo.gather<"
               "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
               "index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<50000x8xf32>, "
               "tensor<4096x1xi32>) -> tensor<4096x8xf32>\n"
               "  %d = stablehlo.subtract %r, %x : tensor<4096x8xf32>\n"
               "  %z = stablehlo.constant dense<0.0> : tensor<50000x8xf32>\n"
               "  %g = \"stablehlo.scatter\"(%z, %i, %d) <{scatter_dimension_numbers = "
               "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
               "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
               "    %s = stablehlo.add %a, %b : tensor<f32>\n"
               "    stablehlo.return %s : tensor<f32>\n"
               "  }) : (tensor<50000x8xf32>, tensor<4096x1xi32>, tensor<4096x8xf32>) -> "
               "tensor<50000x8xf32>\n"
               "  %l = stablehlo.constant dense<0.1> : tensor<50000x8xf32>\n"
               "  %m = stablehlo.multiply %g, %l : tensor<50000x8xf32>\n"
               "  %n = stablehlo.subtract %w, %m : tensor<50000x8xf32>\n"
               "  return %n, %d : tensor<50000x8xf32>, tensor<4096x8xf32>\n}\n",
               "tpu-v5e");
  near(r->peak_bytes, 80778240, 0.03);
  sim_report_free(r);
}

/* A gate in the epilogue of a product writes over the array that it reads, in device memory, though
 * what it makes is fetched on chip later: on v5p. Not on TPU7x, where an operand of products has
 * taller tiles than what only meets a result. The figures are libtpu's. */
static void test_in_place(void **state) {
  (void)state;
  static const char gate[] =
      "func.func @main(%x: tensor<NxCxbf16>, %w: tensor<1024x4096xbf16>, %z: tensor<NxCxbf16>, "
      "%v: tensor<1024x4096xbf16>, %u: tensor<4096x1024xbf16>) -> (tensor<NxCxbf16>, "
      "tensor<4096x1024xbf16>) {\n"
      "  %a = stablehlo.dot %x, %w : (tensor<NxCxbf16>, tensor<1024x4096xbf16>) -> "
      "tensor<Nx4096xbf16>\n"
      "  %p = stablehlo.dot %z, %v : (tensor<NxCxbf16>, tensor<1024x4096xbf16>) -> "
      "tensor<Nx4096xbf16>\n"
      "  %b = stablehlo.multiply %p, %a : tensor<Nx4096xbf16>\n"
      "  %y = stablehlo.dot %b, %u : (tensor<Nx4096xbf16>, tensor<4096x1024xbf16>) -> "
      "tensor<NxCxbf16>\n"
      "  %d = stablehlo.dot_general %b, %z, contracting_dims = [0] x [0] : (tensor<Nx4096xbf16>, "
      "tensor<NxCxbf16>) -> tensor<4096x1024xbf16>\n"
      "  return %y, %d : tensor<NxCxbf16>, tensor<4096x1024xbf16>\n}\n";
  for (int tall = 0; tall < 2; tall++) {
    Buf text = {0};
    for (const char *c = gate; *c; c++) {
      if (*c == 'N' && c[1] == 'x') buf_cstr(&text, tall ? "8192" : "2048");
      else if (*c == 'C' && c[1] == 'x') buf_cstr(&text, "1024");
      else buf_byte(&text, *c);
    }
    buf_byte(&text, 0);
    SimReport *r = estimate(text.p, tall ? "tpu7x" : "tpu-v5p");
    near(r->temp_bytes, tall ? 2.0 * 8192 * 4096 * 2 : 2048.0 * 4096 * 2, 0.01);
    sim_report_free(r);
    buf_free(&text);
  }
}

/* When a program needs two thirds of the memory, what comes first lies where a result will be: the
 * figures are libtpu's. */
static void test_lent_results(void **state) {
  (void)state;
  static const struct {
    const char *rows;
    double peak;
  } sizes[] = {{"600064", 4917821440}, {"819200", 5035261952}};
  for (int i = 0; i < 2; i++) {
    Buf text = {0};
    for (const char *c = "func.func @main(%x: tensor<Nx1024xbf16>, %w: tensor<1024x1024xbf16>) -> "
                         "tensor<Nx1024xbf16> {\n"
                         "  %a = stablehlo.dot %x, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  %b = stablehlo.dot %a, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  %m = stablehlo.multiply %a, %b : tensor<Nx1024xbf16>\n"
                         "  %c = stablehlo.dot %m, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  %y = stablehlo.dot %c, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  return %y : tensor<Nx1024xbf16>\n}\n";
         *c; c++)
      if (*c == 'N') buf_cstr(&text, sizes[i].rows);
      else buf_byte(&text, *c);
    buf_byte(&text, 0);
    SimReport *r = estimate(text.p, "tpu-v2");
    near(r->peak_bytes, sizes[i].peak, 0.001);
    sim_report_free(r);
    buf_free(&text);
  }
}

/* What comes back with a row written into it is a cache, not a parameter that learns; a step that is
 * only taken where its loss is finite is training all the same. */
static void test_caches(void **state) {
  (void)state;
  static const char decode[] =
      "func.func public @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %c: tensor<512x64xf32> "
      "{jax.buffer_donor = true}, %i: tensor<i32>) -> (tensor<8x512xf32>, tensor<512x64xf32>) {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %k = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, "
      "tensor<64x64xf32>) -> tensor<8x64xf32>\n"
      "  %d = stablehlo.dynamic_update_slice %c, %k, %i, %z : (tensor<512x64xf32>, "
      "tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>\n"
      "  %s = stablehlo.dot_general %x, %d, contracting_dims = [1] x [1] : (tensor<8x64xf32>, "
      "tensor<512x64xf32>) -> tensor<8x512xf32>\n"
      "  return %s, %d : tensor<8x512xf32>, tensor<512x64xf32>\n}\n";
  SimReport *r = estimate(decode, "tpu-v5e");
  assert_false(r->training);
  assert_int_equal(r->arg_owners[0], SIM_INPUT);
  assert_int_equal(r->arg_owners[1], SIM_PARAMETERS);
  assert_int_equal(r->arg_owners[2], SIM_CACHES);
  assert_true(r->owners[SIM_CACHES].bytes >= 512 * 64 * 4);
  sim_report_free(r);
  static const char step[] =
      "func.func public @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32> {jax.buffer_donor = "
      "true}, %ok: tensor<i1>) -> tensor<64x64xf32> {\n"
      "  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x64xf32>, "
      "tensor<8x64xf32>) -> tensor<64x64xf32>\n"
      "  %n = stablehlo.subtract %w, %g : tensor<64x64xf32>\n"
      "  %s = stablehlo.select %ok, %n, %w : tensor<i1>, tensor<64x64xf32>\n"
      "  return %s : tensor<64x64xf32>\n}\n";
  r = estimate(step, "tpu-v5e");
  assert_true(r->training);
  assert_int_equal(r->owners[SIM_CACHES].bytes, 0);
  sim_report_free(r);
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
    assert_int_equal(r->again, large);
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

/* A stack of f32 that a loop leaves, and only a product reads, is one of bf16. */
static void test_narrow_state(void **state) {
  (void)state;
  static const char loop[] =
      "func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x8xf32>) -> tensor<64x512x8xf32> {\n"
      "  %c0 = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<64x512x512xf32>\n"
      "  %0:3 = stablehlo.while(%i = %c0, %v = %x, %s = %z) : tensor<i32>, tensor<512x512xf32>, "
      "tensor<64x512x512xf32>\n"
      "  cond {\n    %n = stablehlo.constant dense<64> : tensor<i32>\n"
      "    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %1 : tensor<i1>\n  } do {\n"
      "    %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "    %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %2 = stablehlo.add %i, %one : tensor<i32>\n"
      "    %3 = stablehlo.sine %v : tensor<512x512xf32>\n"
      "    %4 = stablehlo.reshape %3 : (tensor<512x512xf32>) -> tensor<1x512x512xf32>\n"
      "    %5 = stablehlo.dynamic_update_slice %s, %4, %i, %zero, %zero : "
      "(tensor<64x512x512xf32>, tensor<1x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<64x512x512xf32>\n"
      "    stablehlo.return %2, %3, %5 : tensor<i32>, tensor<512x512xf32>, "
      "tensor<64x512x512xf32>\n  }\n"
      "  %6 = stablehlo.dot_general %0#2, %w, contracting_dims = [2] x [0]%s : "
      "(tensor<64x512x512xf32>, tensor<512x8xf32>) -> tensor<64x512x8xf32>\n"
      "  return %6 : tensor<64x512x8xf32>\n}\n";
  double stack = 64.0 * 512 * 512 * 4;
  for (int exact = 0; exact < 2; exact++) { /* six passes need all digits */
    char text[3000];
    const char *at = strstr(loop, "%s :");
    sprintf(text, "%.*s%s%s", (int)(at - loop), loop,
            exact ? ", precision = [HIGHEST, HIGHEST]" : "", at + 2);
    SimReport *r = estimate(text, "tpu-v2");
    near(r->temp_bytes, exact ? stack : stack / 2, 0.1);
    sim_report_free(r);
  }
}

/* ---- the golden corpus: nothing makes it stumble --------------------------------------------- */

/* Measured collectives: Austin et al., "How to Scale Your Model", ch. 12. And gradients that do not
 * wait for each other travel together. */
static double network_of(const char *text) {
  const Chip *c;
  Module *m = NULL;
  SimReport *r = NULL;
  assert_null(chip_find("H100-SXM", &c));
  assert_null(stablehlo_read("x.mlir", str_from(text), &m));
  assert_null(sim_estimate(m, c, &(SimOpts){.devices = 8}, &r));
  double t = r->network_s;
  sim_report_free(r);
  module_free(m);
  return t;
}

#define ALL_REDUCE(out, in)                                                             \
  out " = \"stablehlo.all_reduce\"(" in ") ({^bb0(%a: tensor<f32>, %b: tensor<f32>):\n" \
      "%s = stablehlo.add %a, %b : tensor<f32>\n stablehlo.return %s : tensor<f32>})"   \
      " {replica_groups = dense<[[0,1,2,3,4,5,6,7]]> : tensor<1x8xi64>}"                \
      " : (tensor<65536xf32>) -> tensor<65536xf32>\n"
#define BOTH(second)                                                                      \
  "func.func @main(%x: tensor<65536xf32>, %y: tensor<65536xf32>) -> (tensor<65536xf32>, " \
  "tensor<65536xf32>) {\n" ALL_REDUCE("%p", "%x")                                         \
      ALL_REDUCE("%q", second) "return %p, %q : tensor<65536xf32>, tensor<65536xf32> }"

static void test_collectives(void **state) {
  (void)state;
  const Chip *c;
  assert_null(chip_find("H100-SXM", &c));
  assert_float_equal(sim_collective_s(c, SIM_ALL_GATHER, 536e6, 8), 1.5e-3, 0.1e-3);
  assert_float_equal(1e10 * 2 * 7 / 8 / sim_collective_s(c, SIM_ALL_REDUCE, 1e10, 8), 370e9, 10e9);
  assert_float_equal(58e6 * 2 * 7 / 8 / sim_collective_s(c, SIM_ALL_REDUCE, 58e6, 8), 150e9, 10e9);
  double together = network_of(BOTH("%y")), chained = network_of(BOTH("%p"));
  assert_float_equal(chained, 2 * sim_collective_s(c, SIM_ALL_REDUCE, 65536 * 4, 8), 1e-7);
  assert_float_equal(together, sim_collective_s(c, SIM_ALL_REDUCE, 2 * 65536 * 4, 8), 1e-7);
}

static void test_corpus(void **state) {
  (void)state;
  const char *dir = WEFT_SOURCE_DIR "/tests/golden/corpus";
  DIR *d = opendir(dir);
  assert_non_null(d);
  const Chip *const *chips;
  int n_chips, files = 0;
  assert_null(chip_list(&chips, &n_chips));
  for (struct dirent *f; (f = readdir(d));) {
    size_t len = strlen(f->d_name);
    if (len < 5 || strcmp(f->d_name + len - 5, ".mlir")) continue;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
    Buf text = {0};
    assert_null(file_read(path, &text));
    Module *m = NULL;
    Err *e = stablehlo_read(path, (Str){text.p, text.n}, &m);
    if (!e) e = ir_verify(m);
    if (e) { /* another test's matter */
      err_free(e);
      buf_free(&text);
      continue;
    }
    files++;
    for (int i = 0; i < n_chips; i++) {
      SimReport *r = NULL;
      SimOpts opts = {.devices = 1 + 7 * (i & 1)};
      e = sim_estimate(m, chips[i], &opts, &r);
      if (e && e->code == ERR_UNIMPLEMENTED) { /* dynamic shapes */
        err_free(e);
        continue;
      }
      if (e) {
        print_message("%s on %s\n", f->d_name, chips[i]->name);
        err_report(e);
      }
      assert_null(e);
      assert_true(isfinite(r->time_s) && r->time_s >= 0 && isfinite(r->peak_bytes) &&
                  r->peak_bytes >= 0);
      double cycles = 0, time = 0;
      for (int k = 0; k < r->n_kernels; k++) {
        cycles += r->kernels[k].est_cycles * r->kernels[k].count;
        time += r->kernels[k].time_s * r->kernels[k].count;
        assert_true(isfinite(r->kernels[k].time_s) && r->kernels[k].time_s >= 0);
      }
      if (chips[i]->kind == CHIP_TPU && fabs(cycles - r->cycles) > 1e-6 * r->cycles + 1)
        fail_msg("%s on %s: kernels %g, whole %g", f->d_name, chips[i]->name, cycles, r->cycles);
      Buf out = {0};
      sim_json(r, NULL, false, &out);
      sim_print(r, 10, &out);
      assert_true(out.n > 100);
      buf_free(&out);
      sim_report_free(r);
    }
    module_free(m);
    buf_free(&text);
  }
  closedir(d);
  assert_true(files > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_systolic_numbers),
                                     cmocka_unit_test(test_systolic_counts),
                                     cmocka_unit_test(test_systolic_published),
                                     cmocka_unit_test(test_estimates),
                                     cmocka_unit_test(test_rewritten),
                                     cmocka_unit_test(test_shared_array),
                                     cmocka_unit_test(test_narrow_loops),
                                     cmocka_unit_test(test_padding),
                                     cmocka_unit_test(test_loop),
                                     cmocka_unit_test(test_does_not_fit),
                                     cmocka_unit_test(test_batched_layout),
                                     cmocka_unit_test(test_outer_product),
                                     cmocka_unit_test(test_order),
                                     cmocka_unit_test(test_barrier),
                                     cmocka_unit_test(test_caches),
                                     cmocka_unit_test(test_again),
                                     cmocka_unit_test(test_branches),
                                     cmocka_unit_test(test_narrow_table),
                                     cmocka_unit_test(test_in_place),
                                     cmocka_unit_test(test_lent_results),
                                     cmocka_unit_test(test_donated_order),
                                     cmocka_unit_test(test_narrow_state),
                                     cmocka_unit_test(test_corpus),
                                     cmocka_unit_test(test_collectives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
