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

static void test_place(void **state) {
  (void)state;
  SimReport *r = estimate(add, "tpu-v5e");
  assert_int_equal(kernels_of(r, NULL), 1);
  assert_non_null(strstr(r->kernels[0].place, "test:2"));
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
      cmocka_unit_test(test_place),        cmocka_unit_test(test_loop),
      cmocka_unit_test(test_does_not_fit), cmocka_unit_test(test_corpus),
      cmocka_unit_test(test_collectives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
