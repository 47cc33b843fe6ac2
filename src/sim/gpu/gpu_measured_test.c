/* Operations and powers as they were measured on an H100 and an H200 (tests/sim/gpu): XLA's top-k, scatters, small
 * kernels; watts of what leaves a GPU nearly idle, of streaming and of products. */
#include "sim/estimate_test.h"

static const SimKernel *slowest(const SimReport *r) {
  const SimKernel *k = &r->kernels[0];
  for (int i = 1; i < r->n_kernels; i++)
    if (r->kernels[i].time_s > k->time_s) k = &r->kernels[i];
  return k;
}

/* More than 16 of a row: rows are sorted by digits, one to a block, with their places: 354 us on an H200. */
static void test_top(void **state) {
  (void)state;
  SimReport *r = estimate("func.func @main(%x: tensor<64x50257xf32>) -> tensor<64x50xf32> {\n"
                          "%v, %i = chlo.top_k(%x, k = 50) : tensor<64x50257xf32> -> "
                          "(tensor<64x50xf32>, tensor<64x50xi32>)\n"
                          "return %v : tensor<64x50xf32> }",
                          "H200");
  near(slowest(r)->time_s, 354e-6, 0.15);
  assert_true(r->temp_bytes > 4 * 4 * 64 * 50257.0);
  sim_report_free(r);
}

#define GRADIENT(type, rows)                                                                       \
  "func.func @main(%i: tensor<" rows "x1xi32>, %u: tensor<" rows "x768x" type ">) -> "             \
  "tensor<50304x768x" type "> {\n%z = stablehlo.constant dense<0.0> : tensor<" type                \
  ">\n%t = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<" type                               \
  ">) -> tensor<50304x768x" type                                                                   \
  ">\n%r = \"stablehlo.scatter\"(%t, %i, %u) <{indices_are_sorted = false, "                       \
  "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims " \
  "= [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> "    \
  "({\n^bb0(%a: tensor<" type ">, %b: tensor<" type                                                \
  ">):\n%s = stablehlo.add %a, %b : tensor<" type ">\nstablehlo.return %s : tensor<" type          \
  ">\n}) : (tensor<50304x768x" type ">, tensor<" rows "x1xi32>, tensor<" rows "x768x" type         \
  ">) -> tensor<50304x768x" type ">\nreturn %r : tensor<50304x768x" type "> }"

/* A GPU adds 32 bits in one instruction; 16 bits it compares and tries again. Only rows that are hit are touched. */
static void test_scatter(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double s;
  } cases[] = {{GRADIENT("bf16", "8192"), 52.6e-6}, {GRADIENT("f32", "4096"), 9.6e-6}};
  for (int i = 0; i < 2; i++) {
    SimReport *r = estimate(cases[i].text, "H200");
    for (int k = 0; k < r->n_kernels; k++)
      if (!strcmp(r->kernels[k].op, "scatter")) near(r->kernels[k].time_s, cases[i].s, 0.35);
    sim_report_free(r);
  }
}

/* A product of next to nothing takes 2.6 us with the gap after it. */
static void test_small(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%x: tensor<144x256xbf16>, %y: tensor<256x128xbf16>) -> "
               "tensor<144x128xbf16> {\n%r = stablehlo.dot_general %x, %y, contracting_dims = [1] "
               "x [0] : (tensor<144x256xbf16>, tensor<256x128xbf16>) -> tensor<144x128xbf16>\n"
               "return %r : tensor<144x128xbf16> }",
               "H100-SXM");
  near(r->time_s, 2.6e-6, 0.2);
  sim_report_free(r);
}

#define PRODUCT(type)                                                                     \
  "func.func @main(%x: tensor<8192x8192x" type ">, %y: tensor<8192x8192x" type ">) -> "   \
  "tensor<8192x8192x" type "> {\n%r = stablehlo.dot_general %x, %y, contracting_dims = "  \
  "[1] x [0] : (tensor<8192x8192x" type ">, tensor<8192x8192x" type ">) -> tensor<8192x8" \
  "192x" type ">\nreturn %r : tensor<8192x8192x" type "> }"
#define ADD(shape)                                                       \
  "func.func @main(%x: tensor<" shape ">, %y: tensor<" shape ">) -> "    \
  "tensor<" shape "> {\n%r = stablehlo.add %x, %y : tensor<" shape ">\n" \
  "return %r : tensor<" shape "> }"

/* Small kernels leave an H100 at 130 W, large products take all that the board may. */
static void test_power(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double low, high;
  } cases[] = {
      {ADD("100xf32"), 120, 140}, {ADD("268435456xf32"), 450, 650}, {PRODUCT("bf16"), 690, 700}};
  for (int i = 0; i < 3; i++) {
    SimReport *r = estimate(cases[i].text, "H100-SXM");
    double watts = r->energy_j / r->time_s;
    if (!(watts >= cases[i].low && watts <= cases[i].high + 1e-6)) fail_msg("%d: %g W", i, watts);
    sim_report_free(r);
  }
}

/* bf16[batch,heads,keys,keys] under a causal mask: the exponentials' sum of each row, on an H100. */
static double masked(int batch, int heads, int keys) {
  char a[48], x[48], m[48], i1[48], v[48], text[2048];
  snprintf(a, sizeof a, "tensor<%dx%dx%dx%dxbf16>", batch, heads, keys, keys);
  snprintf(x, sizeof x, "tensor<%dx%dx%dx%dxf32>", batch, heads, keys, keys);
  snprintf(m, sizeof m, "tensor<%dx%dx%dx%dxi1>", batch, heads, keys, keys);
  snprintf(i1, sizeof i1, "tensor<%dx%dxi1>", keys, keys);
  snprintf(v, sizeof v, "tensor<%dx%dx%dxf32>", batch, heads, keys);
  snprintf(
      text, sizeof text,
      "func.func @main(%%x: %s) -> %s {\n"
      "%%i = stablehlo.iota dim = 0 : tensor<%dx%dxi32>\n"
      "%%j = stablehlo.iota dim = 1 : tensor<%dx%dxi32>\n"
      "%%c = stablehlo.compare GE, %%i, %%j : (tensor<%dx%dxi32>, tensor<%dx%dxi32>) -> %s\n"
      "%%m = stablehlo.broadcast_in_dim %%c, dims = [2, 3] : (%s) -> %s\n"
      "%%f = stablehlo.convert %%x : (%s) -> %s\n"
      "%%k = stablehlo.constant dense<0.125> : %s\n%%y = stablehlo.multiply %%f, %%k : %s\n"
      "%%n = stablehlo.constant dense<-1.0e9> : %s\n"
      "%%s = stablehlo.select %%m, %%y, %%n : %s, %s\n"
      "%%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%%r = stablehlo.reduce(%%s init: %%l) applies stablehlo.maximum across dimensions = [3] : "
      "(%s, tensor<f32>) -> %s\n"
      "%%b = stablehlo.broadcast_in_dim %%r, dims = [0, 1, 2] : (%s) -> %s\n"
      "%%d = stablehlo.subtract %%s, %%b : %s\n%%e = stablehlo.exponential %%d : %s\n"
      "%%u = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = [3] : "
      "(%s, tensor<f32>) -> %s\nreturn %%u : %s }",
      a, v, keys, keys, keys, keys, keys, keys, keys, keys, i1, i1, m, a, x, x, x, x, m, x, x, v, v,
      x, x, x, x, v, v);
  SimReport *r = estimate(text, "H100-SXM");
  assert_int_equal(kernels_of(r, NULL), 1);
  double s = r->time_s;
  sim_report_free(r);
  return s;
}

/* Where a block's rows all share the mask its threads hold too much to be many. */
static void test_masked(void **state) {
  (void)state;
  near(masked(4, 16, 512), 28.5e-6, 0.2);
  near(masked(2, 16, 1024), 53.5e-6, 0.2);
  near(masked(1, 16, 2048), 90e-6, 0.2);
  near(masked(16, 12, 256), 12.1e-6, 0.2);
  near(masked(8, 16, 256), 8.1e-6, 0.2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_top), cmocka_unit_test(test_scatter),
                                     cmocka_unit_test(test_small), cmocka_unit_test(test_power),
                                     cmocka_unit_test(test_masked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
