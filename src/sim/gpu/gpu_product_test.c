/* gpu_product, gpu_conv: what products and convolutions take on GPUs, against kernels measured on an
 * H100 (tests/sim/gpu/convolutions-h100.csv; the products below through XLA, CUDA 13). */
#include <math.h>
#include <stdlib.h>

#include "sim/estimate_test.h"

typedef struct Case {
  char numbers[8], direction[8];
  int b, h, w, c, o, kh, kw, stride, ph, pw, groups, dilation, search;
  double us;
} Case;

static char *type(char text[64], const Case *k, int a, int b, int c, int d) {
  const char *numbers = strcmp(k->numbers, "tf32") ? k->numbers : "f32";
  snprintf(text, 64, "tensor<%dx%dx%dx%dx%s>", a, b, c, d, numbers);
  return text;
}

/* The program of one row: the convolution, or what JAX makes of its gradients. */
static void convolution(Buf *t, const Case *k) {
  int s = k->stride, d = k->dilation, eh = d * (k->kh - 1), ew = d * (k->kw - 1);
  int oh = (k->h + 2 * k->ph - eh - 1) / s + 1, ow = (k->w + 2 * k->pw - ew - 1) / s + 1;
  char x[64], y[64], w[64], g[64];
  type(x, k, k->b, k->h, k->w, k->c), type(y, k, k->b, oh, ow, k->o);
  type(w, k, k->kh, k->kw, k->c / k->groups, k->o),
      type(g, k, k->kh, k->kw, k->o / k->groups, k->c);
  bool forward = !strcmp(k->direction, "fwd"), data = !strcmp(k->direction, "dgrad");
  const char *l = data ? y : x, *r = forward ? w : data ? g : y, *out = forward ? y : data ? x : w;
  buf_printf(t, "func.func @main(%%a: %s, %%b: %s) -> %s {\n%%y = stablehlo.convolution(%%a, %%b) ",
             l, r, out);
  if (forward)
    buf_printf(
        t,
        "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [%d, %d], "
        "pad = [[%d, %d], [%d, %d]], rhs_dilate = [%d, %d]}",
        s, s, k->ph, k->ph, k->pw, k->pw, d, d);
  else if (data)
    buf_printf(t,
               "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[%d, %d], "
               "[%d, %d]], lhs_dilate = [%d, %d], rhs_dilate = [%d, %d], reverse = [true, true]}",
               eh - k->ph, k->h + k->ph - (oh - 1) * s - 1, ew - k->pw,
               k->w + k->pw - (ow - 1) * s - 1, s, s, d, d);
  else
    buf_printf(
        t,
        "dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [%d, %d], "
        "pad = [[%d, %d], [%d, %d]], rhs_dilate = [%d, %d]}",
        d, d, k->ph, eh + (oh - 1) * s + 1 - k->h - k->ph, k->pw,
        ew + (ow - 1) * s + 1 - k->w - k->pw, s, s);
  const char *exact = ", precision_config = [#stablehlo<precision HIGHEST>, "
                      "#stablehlo<precision HIGHEST>]";
  bool weights = !forward && !data;
  buf_printf(t,
             " {batch_group_count = %d : i64, feature_group_count = %d : i64%s} : (%s, %s) -> %s\n"
             "return %%y : %s }",
             weights ? k->groups : 1, weights ? 1 : k->groups,
             strcmp(k->numbers, "f32") ? "" : exact, l, r, out, out);
}

static double seconds(const char *text, bool eager) {
  const Chip *c = NULL;
  Module *m = NULL;
  SimReport *r = NULL;
  assert_null(chip_find("H100-SXM", &c));
  assert_null(stablehlo_read("test", str_from(text), &m));
  assert_null(sim_estimate(m, c, &(SimOpts){.eager = eager}, &r));
  double s = 0;
  for (int i = 0; i < r->n_kernels; i++) s += r->kernels[i].time_s;
  sim_report_free(r);
  module_free(m);
  return s;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Errors of the rows of one direction: of those that were searched for, and of all. */
static void direction(const char *name, double searched, double all, double tail) {
  FILE *f = fopen(WEFT_SOURCE_DIR "/tests/sim/gpu/convolutions-h100.csv", "r");
  assert_non_null(f);
  char line[512];
  double e[2][600];
  int n[2] = {0, 0};
  while (fgets(line, sizeof line, f)) {
    Case k;
    if (sscanf(line, "%7[^,],%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%7[^,],%d,%lf", k.numbers, &k.b,
               &k.h, &k.w, &k.c, &k.o, &k.kh, &k.kw, &k.stride, &k.ph, &k.pw, &k.groups,
               &k.dilation, k.direction, &k.search, &k.us) != 16 ||
        strcmp(k.direction, name) != 0)
      continue;
    Buf t = {0};
    convolution(&t, &k);
    double error = fabs(seconds(t.p, true) * 1e6 / k.us - 1);
    buf_free(&t);
    e[0][n[0]++] = error;
    if (k.search) e[1][n[1]++] = error;
  }
  fclose(f);
  assert_true(n[0] == 190 && n[1] > 80);
  for (int i = 0; i < 2; i++) qsort(e[i], (size_t)n[i], sizeof(double), ascending);
  double m = e[1][n[1] / 2], p = e[1][n[1] * 9 / 10], a = e[0][n[0] / 2];
  print_message("%s: searched median %.3f p90 %.3f, all median %.3f\n", name, m, p, a);
  if (m > searched || p > tail || a > all) fail_msg("%s: %.3f %.3f %.3f", name, m, p, a);
}

static void test_convolutions(void **state) {
  (void)state;
  direction("fwd", 0.14, 0.20, 0.34);
  direction("dgrad", 0.14, 0.20, 0.38);
  direction("wgrad", 0.14, 0.22, 0.42);
}

static double product(const char *numbers, const char *result, int m, int n, int k,
                      const char *precision) {
  Buf t = {0};
  buf_printf(&t,
             "func.func @main(%%a: tensor<%dx%dx%s>, %%b: tensor<%dx%dx%s>) -> tensor<%dx%dx%s> {\n"
             "%%y = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0]%s : "
             "(tensor<%dx%dx%s>, tensor<%dx%dx%s>) -> tensor<%dx%dx%s>\n"
             "return %%y : tensor<%dx%dx%s> }",
             m, k, numbers, k, n, numbers, m, n, result, precision, m, k, numbers, k, n, numbers, m,
             n, result, m, n, result);
  double s = seconds(t.p, false);
  buf_free(&t);
  return s;
}

/* The time of XLA's kernels for one product, whatever pads and turns its operands included. */
static void test_products(void **state) {
  (void)state;
  static const struct {
    const char *numbers, *result;
    int m, n, k;
    double us;
  } theirs[] = {{"bf16", "bf16", 8192, 8192, 8192, 1331}, {"bf16", "bf16", 4096, 4096, 4096, 176},
                {"bf16", "bf16", 8192, 768, 3072, 50},    {"bf16", "bf16", 2048, 1024, 4096, 23.6},
                {"bf16", "bf16", 512, 11008, 4096, 58.2}, {"bf16", "bf16", 8192, 768, 768, 16.3},
                {"bf16", "bf16", 3000, 6144, 250, 27.4},  {"f16", "f16", 512, 8192, 4096, 45.4},
                {"f32", "f32", 8192, 768, 768, 38.3},     {"s8", "s32", 4096, 4096, 4096, 176}};
  for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
    bool bytes = !strcmp(theirs[i].numbers, "s8");
    double us = 1e6 * product(bytes ? "i8" : theirs[i].numbers, bytes ? "i32" : theirs[i].result,
                              theirs[i].m, theirs[i].n, theirs[i].k, "");
    if (us < 0.8 * theirs[i].us || us > 1.25 * theirs[i].us)
      fail_msg("%s %dx%dx%d: %.1f us, not %.1f", theirs[i].numbers, theirs[i].m, theirs[i].n,
               theirs[i].k, us, theirs[i].us);
  }
}

/* HIGH is a product of tf32 on GPUs, as DEFAULT is; HIGHEST is one of f32. */
static void test_precision(void **state) {
  (void)state;
  double s[3];
  for (int i = 0; i < 3; i++) {
    static const char *names[] = {"DEFAULT", "HIGH", "HIGHEST"};
    char text[64];
    snprintf(text, sizeof text, ", precision = [%s, %s]", names[i], names[i]);
    s[i] = product("f32", "f32", 4096, 1024, 1024, text);
  }
  assert_true(s[0] == s[1]);
  assert_true(s[2] > 0.8 * 174e-6 && s[2] < 1.2 * 174e-6);
}

/* Rows that are not aligned cost more than those of the next larger size that are. */
static void test_unaligned(void **state) {
  (void)state;
  assert_true(product("bf16", "bf16", 4096, 4100, 4096, "") >
              1.2 * product("bf16", "bf16", 4096, 4104, 4096, ""));
  assert_true(product("f32", "f32", 4096, 4097, 4096, "") >
              1.8 * product("f32", "f32", 4096, 4100, 4096, ""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_precision),
      cmocka_unit_test(test_unaligned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
