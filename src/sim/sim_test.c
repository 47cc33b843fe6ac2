/* sim: what an estimate says of small programs, and every program of the golden corpus on every chip. How close
 * the numbers are to libtpu is `make accuracy`. */
#include <dirent.h>
#include <stdlib.h>
#include <time.h>

#include "net/net.h"
#include "sim/estimate_test.h"

static const char add[] =
    "func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> "
    "tensor<1024x1024xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<1024x1024xf32>\n  return %0 : tensor<1024x1024xf32>\n}\n";

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
    assert_int_equal(kernels_of(r, NULL), 1);
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

static double reduced_s(const Chip *c, double bytes) { /* over eight */
  Net net;
  assert_null(net_open(c, 8, NULL, &net));
  return net_cost(&net, &(NetCall){NET_ALL_REDUCE, bytes, DT_F32, {0}}).s;
}

static void test_collectives(void **state) {
  (void)state;
  const Chip *c;
  assert_null(chip_find("H100-SXM", &c));
  double together = network_of(BOTH("%y")), chained = network_of(BOTH("%p"));
  assert_float_equal(chained, 2 * reduced_s(c, 65536 * 4), 1e-7);
  assert_float_equal(together, reduced_s(c, 2 * 65536 * 4), 1e-7);
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
      double cycles = 0;
      for (int k = 0; k < r->n_kernels; k++) {
        cycles += r->kernels[k].est_cycles * r->kernels[k].count;
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_estimates),    cmocka_unit_test(test_rewritten),
      cmocka_unit_test(test_shared_array), cmocka_unit_test(test_narrow_loops),
      cmocka_unit_test(test_padding),      cmocka_unit_test(test_loop),
      cmocka_unit_test(test_does_not_fit), cmocka_unit_test(test_corpus),
      cmocka_unit_test(test_collectives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
