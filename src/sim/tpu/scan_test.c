/* scan: memory of running sums, loops over stacks of weights and top-k. The figures are libtpu's. */
#include "sim/estimate_test.h"

static double peak(const char *text, const char *chip) {
  SimReport *r = estimate(text, chip);
  double bytes = r->peak_bytes;
  sim_report_free(r);
  return bytes;
}

/* Along rows of any length: blocks of 128 lie apart twice; in device memory the first time without
 * what their number is padded by. Where they do not fill tiles everything is turned, there and back. */
static void running_sums(void **state) {
  (void)state;
  static const struct {
    int rows, cols;
    const char *type, *chip;
    double peak, cycles; /* these, where the blocks do not fill tiles of eight */
  } sums[] = {
      {784, 1312, "f32", "tpu-v5e", 23568896, 125720}, {784, 1312, "f32", "tpu-v5p", 21217792, 0},
      {800, 1400, "bf16", "tpu7x", 11874816, 64353},   {800, 1400, "bf16", "tpu-v2", 10699776, 0},
      {800, 1400, "bf16", "tpu-v6e", 11874816, 73791}, {600, 2000, "f32", "tpu-v4", 20357632, 0},
      {600, 2000, "f32", "tpu-v2", 20317184, 0},       {1024, 1024, "f32", "tpu-v6e", 16810496, 0},
      {1024, 1024, "f32", "tpu-v3", 16778240, 0}};
  for (int i = 0; i < COUNT_OF(sums); i++) {
    char text[1200];
    snprintf(text, sizeof text,
             "!t = tensor<%dx%dx%s>\n!e = tensor<%s>\n"
             "func.func public @main(%%x: !t) -> !t {\n"
             "%%z = stablehlo.constant dense<0.0> : !e\n"
             "%%s = \"stablehlo.reduce_window\"(%%x, %%z) <{padding = dense<[[0, 0], [%d, 0]]> : "
             "tensor<2x2xi64>, window_dimensions = array<i64: 1, %d>}> ({\n"
             "  ^bb0(%%a: !e, %%b: !e):\n"
             "    %%c = stablehlo.add %%a, %%b : !e\n"
             "    stablehlo.return %%c : !e\n"
             "}) : (!t, !e) -> !t\nreturn %%s : !t }\n",
             sums[i].rows, sums[i].cols, sums[i].type, sums[i].type, sums[i].cols - 1,
             sums[i].cols);
    near(peak(text, sums[i].chip), sums[i].peak, 0.01);
    if (sums[i].cycles > 0) {
      SimReport *r = estimate(text, sums[i].chip);
      assert_true(fabs(r->cycles / sums[i].cycles - 1) < 0.15);
      sim_report_free(r);
    }
  }
}

/* A layer of weights a round, and a sum of what goes into it: only slices of the weights come on
 * chip, but for chips whose products want other tiles than weights come in. */
static void stacks(void **state) {
  (void)state;
  static const char text[] =
      "!x = tensor<320x384xbf16>\n!w = tensor<9x384x384xbf16>\n!s = tensor<9xf32>\n!i = "
      "tensor<i32>\n"
      "func.func public @main(%x: !x, %w: !w) -> (!x, !s) {\n"
      "%o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%e = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !s\n"
      "%c = stablehlo.constant dense<0> : !i\n"
      "%r:4 = stablehlo.while(%vw = %w, %i = %c, %y = %x, %l = %e) : !w, !i, !x, !s\n"
      "cond {\n"
      "  %n = stablehlo.constant dense<9> : !i\n"
      "  %q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>\n"
      "  stablehlo.return %q : tensor<i1>\n"
      "} do {\n"
      "  %k = stablehlo.dynamic_slice %vw, %i, %c, %c, sizes = [1, 384, 384] : (!w, !i, !i, !i) -> "
      "tensor<1x384x384xbf16>\n"
      "  %m = stablehlo.reshape %k : (tensor<1x384x384xbf16>) -> tensor<384x384xbf16>\n"
      "  %d = stablehlo.dot_general %y, %m, contracting_dims = [1] x [0] : (!x, "
      "tensor<384x384xbf16>) -> !x\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<bf16>\n"
      "  %b = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<bf16>) -> !x\n"
      "  %u = stablehlo.maximum %d, %b : !x\n"
      "  %f = stablehlo.convert %y : (!x) -> tensor<320x384xf32>\n"
      "  %t = stablehlo.reduce(%f init: %o) applies stablehlo.add across dimensions = [0, 1] : "
      "(tensor<320x384xf32>, tensor<f32>) -> tensor<f32>\n"
      "  %p = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<1xf32>\n"
      "  %h = stablehlo.dynamic_update_slice %l, %p, %i : (!s, tensor<1xf32>, !i) -> !s\n"
      "  %one = stablehlo.constant dense<1> : !i\n"
      "  %j = stablehlo.add %i, %one : !i\n"
      "  stablehlo.return %vw, %j, %u, %h : !w, !i, !x, !s\n"
      "}\n"
      "return %r#2, %r#3 : !x, !s }\n";
  near(peak(text, "tpu-v5e"), 3640832, 0.01);
  near(peak(text, "tpu-v5p"), 3395104, 0.01);
  near(peak(text, "tpu-v6e"), 3640352, 0.01);
  near(peak(text, "tpu7x"), 6294560, 0.01);
}

/* The largest five of rows of 448 come from a kernel of their own, beside an operand that is turned. */
static void largest(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<20x448xf32>) -> (tensor<20x5xf32>, tensor<20x5xi32>) {\n"
      "%v, %i = chlo.top_k(%x, k = 5) : tensor<20x448xf32> -> (tensor<20x5xf32>, "
      "tensor<20x5xi32>)\n"
      "return %v, %i : tensor<20x5xf32>, tensor<20x5xi32> }\n";
  near(peak(text, "tpu-v5e"), 288256, 0.01);
  near(peak(text, "tpu-v2"), 289792, 0.01);
  near(peak(text, "tpu7x"), 287776, 0.01);
}

/* Rounds that lie beside each other in a stack's tiles are cut out by a kernel of their own; what adds
 * them up reads them as they are cut. */
static void beside(void **state) {
  (void)state;
  static const char text[] =
      "!a = tensor<10x24x160xbf16>\n!s = tensor<24x10x160xbf16>\n!c = tensor<10x160xbf16>\n"
      "!i = tensor<i32>\n"
      "func.func public @main(%x: tensor<10x24x64xbf16>, %w: tensor<64x160xbf16>) -> !c {\n"
      "%y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : "
      "(tensor<10x24x64xbf16>, tensor<64x160xbf16>) -> !a\n"
      "%t = stablehlo.tanh %y : !a\n"
      "%s = stablehlo.transpose %t, dims = [1, 0, 2] : (!a) -> !s\n"
      "%z = stablehlo.constant dense<0.0> : !c\n%o = stablehlo.constant dense<0> : !i\n"
      "%r:3 = stablehlo.while(%vs = %s, %i = %o, %c = %z) : !s, !i, !c\n"
      "cond {\n"
      "  %n = stablehlo.constant dense<24> : !i\n"
      "  %q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>\n"
      "  stablehlo.return %q : tensor<i1>\n"
      "} do {\n"
      "  %k = stablehlo.constant dense<0> : !i\n"
      "  %d = stablehlo.dynamic_slice %vs, %i, %k, %k, sizes = [1, 10, 160] : "
      "(!s, !i, !i, !i) -> tensor<1x10x160xbf16>\n"
      "  %e = stablehlo.reshape %d : (tensor<1x10x160xbf16>) -> !c\n"
      "  %h = stablehlo.constant dense<0.5> : !c\n"
      "  %m = stablehlo.multiply %h, %c : !c\n"
      "  %g = stablehlo.add %m, %e : !c\n"
      "  %l = stablehlo.constant dense<1> : !i\n"
      "  %j = stablehlo.add %i, %l : !i\n"
      "  stablehlo.return %vs, %j, %g : !s, !i, !c\n"
      "}\n"
      "return %r#2 : !c }\n";
  SimReport *r = estimate(text, "tpu-v5e");
  double cut = 0;
  int copies = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    if (!strcmp(r->kernels[i].op, "dynamic_slice")) cut += r->kernels[i].est_cycles;
    copies += !strcmp(r->kernels[i].op, "copy");
  }
  sim_report_free(r);
  near(cut, 2080, 0.01);
  assert_int_equal(copies, 0);
}

/* A round writes four slices of stacks: three are made of one array and share a kernel, which counts
 * its stacks twice, as they come and as they go. */
static void updates(void **state) {
  (void)state;
  static const char text[] =
      "!h = tensor<64x192xf32>\n"
      "!g = tensor<64x384xf32>\n"
      "!w = tensor<192x384xf32>\n"
      "!s = tensor<28x64x192xf32>\n"
      "!u = tensor<1x64x192xf32>\n"
      "!i = tensor<i32>\n"
      "func.func public @main(%h: !h, %w: !w, %a: !h) -> (!h, !s, !s, !s, !s) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %e = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !s\n"
      "  %z = stablehlo.constant dense<0> : !i\n"
      "  %r:6 = stablehlo.while(%i = %z, %y = %h, %p = %e, %q = %e, %t = %e, %v = "
      "    %e) : !i, !h, !s, !s, !s, !s\n"
      "  cond {\n"
      "    %n = stablehlo.constant dense<28> : !i\n"
      "    %c = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>\n"
      "    stablehlo.return %c : tensor<i1>\n"
      "  } do {\n"
      "    %d = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (!h, "
      "    !w) -> !g\n"
      "    %f = stablehlo.tanh %d : !g\n"
      "    %k = stablehlo.slice %f [0:64, 0:192] : (!g) -> !h\n"
      "    %l = stablehlo.slice %f [0:64, 192:384] : (!g) -> !h\n"
      "    %m = stablehlo.multiply %k, %a : !h\n"
      "    %x = stablehlo.add %l, %m : !h\n"
      "    %k1 = stablehlo.reshape %k : (!h) -> !u\n"
      "    %l1 = stablehlo.reshape %l : (!h) -> !u\n"
      "    %m1 = stablehlo.reshape %m : (!h) -> !u\n"
      "    %y1 = stablehlo.reshape %y : (!h) -> !u\n"
      "    %p1 = stablehlo.dynamic_update_slice %p, %k1, %i, %z, %z : (!s, !u, !i, "
      "    !i, !i) -> !s\n"
      "    %q1 = stablehlo.dynamic_update_slice %q, %l1, %i, %z, %z : (!s, !u, !i, "
      "    !i, !i) -> !s\n"
      "    %t1 = stablehlo.dynamic_update_slice %t, %m1, %i, %z, %z : (!s, !u, !i, "
      "    !i, !i) -> !s\n"
      "    %v1 = stablehlo.dynamic_update_slice %v, %y1, %i, %z, %z : (!s, !u, !i, "
      "    !i, !i) -> !s\n"
      "    %j = stablehlo.constant dense<1> : !i\n"
      "    %i1 = stablehlo.add %i, %j : !i\n"
      "    stablehlo.return %i1, %x, %p1, %q1, %t1, %v1 : !i, !h, !s, !s, !s, !s\n"
      "  }\n"
      "  %b = stablehlo.negate %r#2 : !s\n"
      "  %b2 = stablehlo.negate %r#3 : !s\n"
      "  %b3 = stablehlo.negate %r#4 : !s\n"
      "  %b4 = stablehlo.negate %r#5 : !s\n"
      "  return %r#1, %b, %b2, %b3, %b4 : !h, !s, !s, !s, !s\n"
      "}\n";
  peak_near(text, "tpu-v5e", 20995584, 0.01);
  peak_near(text, "tpu-v4", 20995584, 0.01);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(running_sums), cmocka_unit_test(stacks),
                                     cmocka_unit_test(beside), cmocka_unit_test(largest),
                                     cmocka_unit_test(updates)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
