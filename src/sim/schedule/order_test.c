/* order: which kernel runs next. Bytes are libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

/* Two arguments are padded and put side by side: of what frees and makes the same, that runs first which
 * became ready last. */
static void test_ready_last(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<1024x100xf32>, %y: tensor<1024x28xf32>) -> tensor<1024x128xf32> "
      "{\n"
      "%0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<1024x100xf32>, tensor<1024x28xf32>) -> "
      "tensor<1024x128xf32>\n"
      "return %0 : tensor<1024x128xf32>\n}\n";
  peak_near(text, "tpu-v4", 2260992, 0.001);
  peak_near(text, "tpu-v5e", 2260992, 0.001);
}

/* A stack that one loop writes and another reads, and a sum that the second begins with: in a list they would be
 * made before what lies between the loops, so that the order is another one. */
static void test_starts(void **state) {
  (void)state;
  static const char text[] =
      "!x = tensor<512x256xf32>\n"
      "!w = tensor<256x256xf32>\n"
      "!v = tensor<256x2048xf32>\n"
      "!l = tensor<512x2048xf32>\n"
      "!ws = tensor<6x256x256xf32>\n"
      "!xs = tensor<6x512x256xf32>\n"
      "!i = tensor<i32>\n"
      "func.func public @main(%w: !ws {jax.buffer_donor = true}, %v: !v {jax.buffer_donor = true}, "
      "%x: !x) -> (!ws, !v) {\n"
      "%o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%s = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !xs\n"
      "%a = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !ws\n"
      "%c = stablehlo.constant dense<0> : !i\n"
      "%one = stablehlo.constant dense<1> : !i\n"
      "%n = stablehlo.constant dense<6> : !i\n"
      "%f:4 = stablehlo.while(%fw = %w, %i = %c, %h = %x, %st = %s) : !ws, !i, !x, !xs\n"
      "cond {\n"
      "%q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>\n"
      "stablehlo.return %q : tensor<i1>\n"
      "} do {\n"
      "%1 = stablehlo.dynamic_slice %fw, %i, %c, %c, sizes = [1, 256, 256] : (!ws, !i, !i, !i) -> "
      "tensor<1x256x256xf32>\n"
      "%2 = stablehlo.reshape %1 : (tensor<1x256x256xf32>) -> !w\n"
      "%3 = stablehlo.dot_general %h, %2, contracting_dims = [1] x [0] : (!x, !w) -> !x\n"
      "%4 = stablehlo.tanh %3 : !x\n"
      "%5 = stablehlo.reshape %h : (!x) -> tensor<1x512x256xf32>\n"
      "%6 = stablehlo.dynamic_update_slice %st, %5, %i, %c, %c : (!xs, tensor<1x512x256xf32>, !i, "
      "!i, !i) -> !xs\n"
      "%7 = stablehlo.add %i, %one : !i\n"
      "stablehlo.return %fw, %7, %4, %6 : !ws, !i, !x, !xs\n"
      "}\n"
      "%z = stablehlo.dot_general %f#2, %v, contracting_dims = [1] x [0] : (!x, !v) -> !l\n"
      "%t = stablehlo.tanh %z : !l\n"
      "%g = stablehlo.dot_general %t, %v, contracting_dims = [1] x [1] : (!l, !v) -> !x\n"
      "%dv = stablehlo.dot_general %f#2, %t, contracting_dims = [0] x [0] : (!x, !l) -> !v\n"
      "%b:5 = stablehlo.while(%bw = %w, %bs = %f#3, %i = %c, %d = %g, %ac = %a) : !ws, !xs, !i, "
      "!x, !ws\n"
      "cond {\n"
      "%q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>\n"
      "stablehlo.return %q : tensor<i1>\n"
      "} do {\n"
      "%m = stablehlo.subtract %n, %i : !i\n"
      "%k = stablehlo.subtract %m, %one : !i\n"
      "%1 = stablehlo.dynamic_slice %bw, %k, %c, %c, sizes = [1, 256, 256] : (!ws, !i, !i, !i) -> "
      "tensor<1x256x256xf32>\n"
      "%2 = stablehlo.reshape %1 : (tensor<1x256x256xf32>) -> !w\n"
      "%3 = stablehlo.dynamic_slice %bs, %k, %c, %c, sizes = [1, 512, 256] : (!xs, !i, !i, !i) -> "
      "tensor<1x512x256xf32>\n"
      "%4 = stablehlo.reshape %3 : (tensor<1x512x256xf32>) -> !x\n"
      "%5 = stablehlo.dot_general %4, %d, contracting_dims = [0] x [0] : (!x, !x) -> !w\n"
      "%6 = stablehlo.reshape %5 : (!w) -> tensor<1x256x256xf32>\n"
      "%7 = stablehlo.dynamic_update_slice %ac, %6, %k, %c, %c : (!ws, tensor<1x256x256xf32>, !i, "
      "!i, !i) -> !ws\n"
      "%8 = stablehlo.dot_general %d, %2, contracting_dims = [1] x [1] : (!x, !w) -> !x\n"
      "%9 = stablehlo.add %i, %one : !i\n"
      "stablehlo.return %bw, %bs, %9, %8, %7 : !ws, !xs, !i, !x, !ws\n"
      "}\n"
      "%nw = stablehlo.subtract %w, %b#4 : !ws\n"
      "%nv = stablehlo.subtract %v, %dv : !v\n"
      "return %nw, %nv : !ws, !v\n"
      "}\n";
  peak_near(text, "tpu-v3", 11021312, 0.025);
  peak_near(text, "tpu-v5e", 15995904, 0.02);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ready_last),
                                     cmocka_unit_test(test_starts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
