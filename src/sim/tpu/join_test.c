/* join: which nodes share a kernel, on small programs. What the compiler does in each case was read off
 * its own plans; see docs/accuracy.md. */
#include "sim/estimate_test.h"

/* What is cut into parts is stored first, each part is not made again. */
static void test_slices(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<64x384xf32>) -> tensor<64x128xf32> {\n"
      "  %b = stablehlo.multiply %a, %a : tensor<64x384xf32>\n"
      "  %c = stablehlo.slice %b [0:64, 0:128] : (tensor<64x384xf32>) -> tensor<64x128xf32>\n"
      "  %d = stablehlo.slice %b [0:64, 128:256] : (tensor<64x384xf32>) -> tensor<64x128xf32>\n"
      "  %e = stablehlo.add %c, %d : tensor<64x128xf32>\n"
      "  return %e : tensor<64x128xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", NULL), 2);
}

/* A kernel writes eight results at most. */
static void test_results(void **state) {
  (void)state;
  Buf b = {0};
  buf_cstr(&b, "func.func public @main(%a: tensor<256x128xf32>) -> (");
  for (int i = 0; i < 10; i++) buf_printf(&b, "%stensor<256x128xf32>", i ? ", " : "");
  buf_cstr(&b, ") {\n");
  for (int i = 0; i < 10; i++)
    buf_printf(&b,
               "  %%c%d = stablehlo.constant dense<%d.5> : tensor<256x128xf32>\n"
               "  %%s%d = stablehlo.sine %%a : tensor<256x128xf32>\n"
               "  %%r%d = stablehlo.multiply %%s%d, %%c%d : tensor<256x128xf32>\n",
               i, i, i, i, i, i);
  buf_cstr(&b, "  return ");
  for (int i = 0; i < 10; i++) buf_printf(&b, "%s%%r%d", i ? ", " : "", i);
  buf_cstr(&b, " : ");
  for (int i = 0; i < 10; i++) buf_printf(&b, "%stensor<256x128xf32>", i ? ", " : "");
  buf_cstr(&b, "\n}\n");
  assert_int_equal(kernels(b.p, "tpu-v5e", NULL), 2);
  buf_free(&b);
}

/* Updates of two biases are one kernel on some generations. */
static void test_pairs(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<256xf32>, %b: tensor<256xf32>, %c: tensor<256xf32>, "
      "%d: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {\n"
      "  %k = stablehlo.constant dense<0.1> : tensor<256xf32>\n"
      "  %e = stablehlo.multiply %b, %k : tensor<256xf32>\n"
      "  %f = stablehlo.subtract %a, %e : tensor<256xf32>\n"
      "  %g = stablehlo.multiply %d, %k : tensor<256xf32>\n"
      "  %h = stablehlo.subtract %c, %g : tensor<256xf32>\n"
      "  return %f, %h : tensor<256xf32>, tensor<256xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v6e", NULL), 1);
  assert_int_equal(kernels(text, "tpu-v5e", NULL), 2);
}

/* A stack that a loop writes from its end is filled with its constant before. */
static void test_stacks(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%%x: tensor<64x128xf32>) -> tensor<16x64x128xf32> {\n"
      "  %%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %%last = stablehlo.constant dense<15> : tensor<i32>\n"
      "  %%n = stablehlo.constant dense<16> : tensor<i32>\n"
      "  %%init = stablehlo.constant dense<0.0> : tensor<16x64x128xf32>\n"
      "  %%r:3 = stablehlo.while(%%i = %%zero, %%s = %%init, %%y = %%x) : tensor<i32>, "
      "tensor<16x64x128xf32>, tensor<64x128xf32>\n"
      "   cond {\n"
      "    %%p = stablehlo.compare LT, %%i, %%n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %%p : tensor<i1>\n"
      "  } do {\n"
      "    %%back = stablehlo.subtract %%last, %%i : tensor<i32>\n"
      "    %%z = stablehlo.sine %%y : tensor<64x128xf32>\n"
      "    %%row = stablehlo.reshape %%z : (tensor<64x128xf32>) -> tensor<1x64x128xf32>\n"
      "    %%t = stablehlo.dynamic_update_slice %%s, %%row, %%%s, %%zero, %%zero : "
      "(tensor<16x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<16x64x128xf32>\n"
      "    %%j = stablehlo.add %%i, %%one : tensor<i32>\n"
      "    stablehlo.return %%j, %%t, %%z : tensor<i32>, tensor<16x64x128xf32>, "
      "tensor<64x128xf32>\n"
      "  }\n"
      "  return %%r#1 : tensor<16x64x128xf32>\n}\n";
  for (int back = 0; back < 2; back++) {
    Buf b = {0};
    buf_printf(&b, text, back ? "back" : "i");
    assert_int_equal(kernels(b.p, "tpu-v5e", "broadcast_in_dim"), back);
    buf_free(&b);
  }
}

/* Stacks that are written from their first slices on are filled where two loops' begin as the same constant. */
static void test_two_loops(void **state) {
  (void)state;
  static const char loop[] =
      "  %%%s:3 = stablehlo.while(%%i = %%zero, %%s = %%%s, %%y = %%%s) : tensor<i32>, "
      "tensor<16x64x128xf32>, tensor<64x128xf32>\n"
      "   cond {\n"
      "    %%p = stablehlo.compare LT, %%i, %%n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %%p : tensor<i1>\n"
      "  } do {\n"
      "    %%z = stablehlo.sine %%y : tensor<64x128xf32>\n"
      "    %%row = stablehlo.reshape %%z : (tensor<64x128xf32>) -> tensor<1x64x128xf32>\n"
      "    %%t = stablehlo.dynamic_update_slice %%s, %%row, %%i, %%zero, %%zero : "
      "(tensor<16x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<16x64x128xf32>\n"
      "    %%j = stablehlo.add %%i, %%one : tensor<i32>\n"
      "    stablehlo.return %%j, %%t, %%z : tensor<i32>, tensor<16x64x128xf32>, "
      "tensor<64x128xf32>\n"
      "  }\n";
  for (int same = 0; same < 2; same++) {
    Buf b = {0};
    buf_cstr(&b, "func.func public @main(%x: tensor<64x128xf32>) -> (tensor<16x64x128xf32>, "
                 "tensor<16x64x128xf32>) {\n"
                 "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
                 "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
                 "  %n = stablehlo.constant dense<16> : tensor<i32>\n"
                 "  %c = stablehlo.constant dense<0.0> : tensor<16x64x128xf32>\n");
    buf_printf(&b, "  %%d = stablehlo.constant dense<%d.0> : tensor<16x64x128xf32>\n", !same);
    buf_printf(&b, loop, "a", "c", "x");
    buf_printf(&b, loop, "b", "d", "a#2");
    buf_cstr(&b, "  return %a#1, %b#1 : tensor<16x64x128xf32>, tensor<16x64x128xf32>\n}\n");
    static const char *const chips[] = {"tpu-v2", "tpu-v5e", "tpu-v6e"};
    for (int i = 0; i < COUNT_OF(chips); i++)
      assert_int_equal(kernels(b.p, chips[i], "broadcast_in_dim"), 2 * same);
    buf_free(&b);
  }
}

/* A stack's slices lie one after the other, whatever pads least. */
static void test_stack_order(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<20x256xf32>) -> tensor<16x20x256xf32> {\n"
      "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %n = stablehlo.constant dense<16> : tensor<i32>\n"
      "  %init = stablehlo.constant dense<0.0> : tensor<16x20x256xf32>\n"
      "  %r:3 = stablehlo.while(%i = %zero, %s = %init, %y = %x) : tensor<i32>, "
      "tensor<16x20x256xf32>, tensor<20x256xf32>\n"
      "   cond {\n"
      "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %p : tensor<i1>\n"
      "  } do {\n"
      "    %z = stablehlo.sine %y : tensor<20x256xf32>\n"
      "    %row = stablehlo.reshape %z : (tensor<20x256xf32>) -> tensor<1x20x256xf32>\n"
      "    %t = stablehlo.dynamic_update_slice %s, %row, %i, %zero, %zero : "
      "(tensor<16x20x256xf32>, tensor<1x20x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<16x20x256xf32>\n"
      "    %j = stablehlo.add %i, %one : tensor<i32>\n"
      "    stablehlo.return %j, %t, %z : tensor<i32>, tensor<16x20x256xf32>, tensor<20x256xf32>\n"
      "  }\n"
      "  %v = stablehlo.sine %r#1 : tensor<16x20x256xf32>\n"
      "  return %v : tensor<16x20x256xf32>\n}\n";
  SimReport *r = estimate(text, "tpu-v5e");
  bool after = false;
  for (int i = 0; i < r->n_lives; i++)
    after |= strstr(r->lives[i].type, "[16,20,256]{2,1,0}") != NULL;
  assert_true(after);
  sim_report_free(r);
}

/* A row that a loop repeats becomes a vector in every round. */
static void test_row(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<64x256xf32>, %b: tensor<1x256xf32>) -> "
      "tensor<64x256xf32> {\n"
      "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %n = stablehlo.constant dense<16> : tensor<i32>\n"
      "  %r:3 = stablehlo.while(%i = %zero, %c = %b, %y = %x) : tensor<i32>, tensor<1x256xf32>, "
      "tensor<64x256xf32>\n"
      "   cond {\n"
      "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %p : tensor<i1>\n"
      "  } do {\n"
      "    %s = stablehlo.sine %y : tensor<64x256xf32>\n"
      "    %w = stablehlo.broadcast_in_dim %c, dims = [0, 1] : (tensor<1x256xf32>) -> "
      "tensor<64x256xf32>\n"
      "    %z = stablehlo.add %s, %w : tensor<64x256xf32>\n"
      "    %j = stablehlo.add %i, %one : tensor<i32>\n"
      "    stablehlo.return %j, %c, %z : tensor<i32>, tensor<1x256xf32>, tensor<64x256xf32>\n"
      "  }\n"
      "  return %r#2 : tensor<64x256xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", NULL), 2);
}

/* A batch of matrices times vectors, as experts are mixed: a loop, for which nothing is laid out
 * anew. */
static void test_mixed(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<4x256x128xf32>, %b: tensor<256x4xf32>) -> "
      "tensor<256x128xf32> {\n"
      "  %c = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [0] x "
      "[1] "
      ": (tensor<4x256x128xf32>, tensor<256x4xf32>) -> tensor<256x128xf32>\n"
      "  return %c : tensor<256x128xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", "copy"), 0);
}

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

/* What computes with parts of one array is one kernel, as the halves of a rotary embedding are. */
static void test_parts(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<64x256xf32>, %c: tensor<64x128xf32>, %d: "
      "tensor<64x128xf32>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {\n"
      "  %a = stablehlo.slice %x [0:64, 0:128] : (tensor<64x256xf32>) -> tensor<64x128xf32>\n"
      "  %b = stablehlo.slice %x [0:64, 128:256] : (tensor<64x256xf32>) -> tensor<64x128xf32>\n"
      "  %0 = stablehlo.multiply %a, %c : tensor<64x128xf32>\n"
      "  %1 = stablehlo.multiply %b, %d : tensor<64x128xf32>\n"
      "  %2 = stablehlo.subtract %0, %1 : tensor<64x128xf32>\n"
      "  %3 = stablehlo.sine %a : tensor<64x128xf32>\n"
      "  %4 = stablehlo.add %3, %b : tensor<64x128xf32>\n"
      "  return %2, %4 : tensor<64x128xf32>, tensor<64x128xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", NULL), 1);
  static const char slices[] =
      "func.func public @main(%x: tensor<64x256xf32>) -> (tensor<64x128xf32>, tensor<64x128xf32>) "
      "{\n"
      "  %a = stablehlo.slice %x [0:64, 0:128] : (tensor<64x256xf32>) -> tensor<64x128xf32>\n"
      "  %b = stablehlo.slice %x [0:64, 128:256] : (tensor<64x256xf32>) -> tensor<64x128xf32>\n"
      "  return %a, %b : tensor<64x128xf32>, tensor<64x128xf32>\n}\n";
  assert_int_equal(kernels(slices, "tpu-v5e", NULL), 1);
}

/* The largest of a product's row and where it is come out of the product's kernel. */
static void test_largest(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<4096x128xbf16>, %w: tensor<128x512xbf16>) -> "
      "tensor<4096xi32> {\n"
      "  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
      "(tensor<4096x128xbf16>, tensor<128x512xbf16>) -> tensor<4096x512xf32>\n"
      "  %i = stablehlo.iota dim = 1 : tensor<4096x512xi32>\n"
      "  %a = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %b = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %r:2 = \"stablehlo.reduce\"(%p, %i, %a, %b) <{dimensions = array<i64: 1>}> ({\n"
      "    ^bb0(%q: tensor<f32>, %j: tensor<i32>, %s: tensor<f32>, %k: tensor<i32>):\n"
      "      %c = stablehlo.compare GT, %q, %s : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "      %d = stablehlo.select %c, %q, %s : tensor<i1>, tensor<f32>\n"
      "      %e = stablehlo.select %c, %j, %k : tensor<i1>, tensor<i32>\n"
      "      stablehlo.return %d, %e : tensor<f32>, tensor<i32>\n"
      "  }) : (tensor<4096x512xf32>, tensor<4096x512xi32>, tensor<f32>, tensor<i32>) -> "
      "(tensor<4096xf32>, tensor<4096xi32>)\n"
      "  return %r#1 : tensor<4096xi32>\n}\n";
  SimReport *r = estimate(text, "tpu-v3");
  assert_int_equal(kernels_of(r, NULL), 1);
  assert_true(r->temp_bytes < 1e6); /* 8 MB are never stored */
  sim_report_free(r);
}

/* Every other row is taken by a kernel of its own; parts that lie together are read on the way. */
static void test_strides(void **state) {
  (void)state;
  for (int stride = 1; stride <= 2; stride++) {
    Buf b = {0};
    buf_printf(&b,
               "func.func public @main(%%a: tensor<512x128xf32>) -> tensor<256x128xf32> {\n"
               "  %%b = stablehlo.slice %%a [0:%d:%d, 0:128] : (tensor<512x128xf32>) -> "
               "tensor<256x128xf32>\n"
               "  %%c = stablehlo.sine %%b : tensor<256x128xf32>\n"
               "  return %%c : tensor<256x128xf32>\n}\n",
               256 * stride, stride);
    assert_int_equal(kernels(b.p, "tpu-v5e", NULL), stride);
    buf_free(&b);
  }
}

/* What is put together and cut at the same place again is never put together. */
static void test_cut_again(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<512x30xf32>, %b: tensor<512x34xf32>) -> "
      "(tensor<512x30xf32>, tensor<512x20xf32>) {\n"
      "  %c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<512x30xf32>, tensor<512x34xf32>) -> "
      "tensor<512x64xf32>\n"
      "  %d = stablehlo.slice %c [0:512, 0:30] : (tensor<512x64xf32>) -> tensor<512x30xf32>\n"
      "  %e = stablehlo.slice %c [0:512, 40:60] : (tensor<512x64xf32>) -> tensor<512x20xf32>\n"
      "  %f = stablehlo.sine %d : tensor<512x30xf32>\n"
      "  %g = stablehlo.sine %e : tensor<512x20xf32>\n"
      "  return %f, %g : tensor<512x30xf32>, tensor<512x20xf32>\n}\n";
  SimReport *r = estimate(text, "tpu-v3");
  assert_int_equal(kernels_of(r, NULL), 2);
  assert_true(r->temp_bytes == 0);
  sim_report_free(r);
}

/* An array made of two of its size for two convolutions: each makes it again, but where the batch lies
 * in lanes it is stored for those of single pixels. */
static void test_batch_in_lanes(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    int lanes = i > 0, side = i > 1 ? 3 : 1, edge = i > 1;
    Buf b = {0};
    int batch = lanes ? 128 : 8, channels = lanes ? 64 : 128;
    char x[64], w[64];
    snprintf(x, sizeof x, "tensor<%dx14x14x%dxbf16>", batch, channels);
    snprintf(w, sizeof w, "tensor<%dx%dx%dx%dxbf16>", side, side, channels, channels);
    buf_printf(&b, "func.func public @main(%%a: %s, %%b: %s, %%v: %s, %%w: %s) -> (%s, %s) {\n", x,
               x, w, w, x, x);
    buf_printf(&b, "  %%c = stablehlo.multiply %%a, %%b : %s\n", x);
    for (int q = 0; q < 2; q++)
      buf_printf(&b,
                 "  %%%s = stablehlo.convolution(%%c, %%%s) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
                 "o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[%d, %d], [%d, %d]]} "
                 "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (%s, %s) -> %s\n",
                 q ? "q" : "p", q ? "w" : "v", edge, edge, edge, edge, x, w, x);
    buf_printf(&b, "  return %%p, %%q : %s, %s\n}\n", x, x);
    assert_int_equal(kernels(b.p, "tpu-v2", "multiply"), i == 1);
    buf_free(&b);
  }
}

/* Rows that only products read are rounded before they are gathered. */
static void test_gathered(void **state) {
  (void)state;
  static const char *uses[] = {"", ", tensor<4096x128xf32>"};
  double temp[2];
  for (int also = 0; also < 2; also++) {
    Buf b = {0};
    buf_printf(
        &b,
        "func.func public @main(%%t: tensor<9000x128xf32>, %%i: tensor<4096x1xi32>, %%w: "
        "tensor<128x64xf32>) -> (tensor<4096x64xf32>%s) {\n"
        "  %%g = \"stablehlo.gather\"(%%t, %%i) <{dimension_numbers = #stablehlo.gather<"
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim "
        "= 1>, slice_sizes = array<i64: 1, 128>}> : (tensor<9000x128xf32>, tensor<4096x1xi32>) "
        "-> tensor<4096x128xf32>\n"
        "  %%p = stablehlo.dot_general %%g, %%w, contracting_dims = [1] x [0] : "
        "(tensor<4096x128xf32>, tensor<128x64xf32>) -> tensor<4096x64xf32>\n%s"
        "  return %%p%s : tensor<4096x64xf32>%s\n}\n",
        uses[also], also ? "  %s = stablehlo.sine %g : tensor<4096x128xf32>\n" : "",
        also ? ", %s" : "", uses[also]);
    SimReport *r = estimate(b.p, "tpu-v3");
    temp[also] = r->temp_bytes;
    sim_report_free(r);
    buf_free(&b);
  }
  assert_true(temp[0] == 4096 * 128 * 2 && temp[1] == 4096 * 128 * 4);
}

/* Sums over the same padded halves are taken together. */
static void test_padded(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<256x48xf32>, %y: tensor<256x48xf32>, %z: "
      "tensor<256x96xf32>) -> (tensor<96xf32>, tensor<96xf32>) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %a = stablehlo.pad %x, %o, low = [0, 48], high = [0, 0], interior = [0, 0] : "
      "(tensor<256x48xf32>, tensor<f32>) -> tensor<256x96xf32>\n"
      "  %b = stablehlo.pad %y, %o, low = [0, 0], high = [0, 48], interior = [0, 0] : "
      "(tensor<256x48xf32>, tensor<f32>) -> tensor<256x96xf32>\n"
      "  %c = stablehlo.add %a, %b : tensor<256x96xf32>\n"
      "  %d = stablehlo.multiply %c, %z : tensor<256x96xf32>\n"
      "  %1 = stablehlo.reduce(%c init: %o) applies stablehlo.add across dimensions = [0] : "
      "(tensor<256x96xf32>, tensor<f32>) -> tensor<96xf32>\n"
      "  %2 = stablehlo.reduce(%d init: %o) applies stablehlo.add across dimensions = [0] : "
      "(tensor<256x96xf32>, tensor<f32>) -> tensor<96xf32>\n"
      "  return %1, %2 : tensor<96xf32>, tensor<96xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v6e", NULL), 1);
}

/* Two products put a concatenation together themselves, whatever it is rounded to on the way, unless a
 * reshape that changes its dimensions comes between. */
static void test_joined(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%%a: tensor<96x4x64xf32>, %%b: tensor<96x4x64xf32>, %%w: "
      "tensor<%s64xbf16>, %%x: tensor<96x64xbf16>) -> (tensor<96x64xbf16>, tensor<%s64xbf16>) {\n"
      "  %%s = stablehlo.sine %%a : tensor<96x4x64xf32>\n"
      "  %%t = stablehlo.sine %%b : tensor<96x4x64xf32>\n"
      "  %%c = stablehlo.concatenate %%s, %%t, dim = 2 : (tensor<96x4x64xf32>, "
      "tensor<96x4x64xf32>) -> tensor<96x4x128xf32>\n"
      "  %%n = stablehlo.convert %%c : (tensor<96x4x128xf32>) -> tensor<96x4x128xbf16>\n"
      "%s"
      "  %%d = stablehlo.dot_general %%%s, %%w, contracting_dims = %s : "
      "(tensor<96x%sxbf16>, tensor<%s64xbf16>) -> tensor<96x64xbf16>\n"
      "  %%e = stablehlo.dot_general %%%s, %%x, contracting_dims = [0] x [0] : "
      "(tensor<96x%sxbf16>, tensor<96x64xbf16>) -> tensor<%s64xbf16>\n"
      "  return %%d, %%e : tensor<96x64xbf16>, tensor<%s64xbf16>\n}\n";
  for (int flat = 0; flat < 2; flat++) {
    const char *rows = flat ? "512x" : "4x128x", *v = flat ? "m" : "n";
    const char *both = flat ? "512" : "4x128";
    Buf b = {0};
    buf_printf(&b, text, rows, rows,
               flat ? "  %m = stablehlo.reshape %n : (tensor<96x4x128xbf16>) -> "
                      "tensor<96x512xbf16>\n"
                    : "",
               v, flat ? "[1] x [0]" : "[1, 2] x [0, 1]", both, rows, v, both, rows, rows);
    assert_int_equal(kernels(b.p, "tpu-v5e", "concatenate") > 0, flat);
    buf_free(&b);
  }
}

/* What is cut out of an array, or padded, lies as that does, and so does what is made of it: whatever
 * pads least. */
static void test_cut_order(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<4x72x176xf32>) -> (tensor<4x176xf32>, "
      "tensor<4x38x176xf32>) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = stablehlo.sine %x : tensor<4x72x176xf32>\n"
      "  %a = stablehlo.slice %s [0:4, 0:72:2, 0:176] : (tensor<4x72x176xf32>) -> "
      "tensor<4x36x176xf32>\n"
      "  %b = stablehlo.slice %s [0:4, 1:72:2, 0:176] : (tensor<4x72x176xf32>) -> "
      "tensor<4x36x176xf32>\n"
      "  %c = stablehlo.multiply %a, %b : tensor<4x36x176xf32>\n"
      "  %p = stablehlo.pad %c, %o, low = [0, 1, 0], high = [0, 1, 0], interior = [0, 0, 0] : "
      "(tensor<4x36x176xf32>, tensor<f32>) -> tensor<4x38x176xf32>\n"
      "  %d = stablehlo.sine %p : tensor<4x38x176xf32>\n"
      "  %r = stablehlo.reduce(%c init: %o) applies stablehlo.add across dimensions = [1] : "
      "(tensor<4x36x176xf32>, tensor<f32>) -> tensor<4x176xf32>\n"
      "  return %r, %d : tensor<4x176xf32>, tensor<4x38x176xf32>\n}\n";
  SimReport *r = estimate(text, "tpu-v5e");
  int plain = 0, turned = 0;
  for (int i = 0; i < r->n_lives; i++) {
    plain += strstr(r->lives[i].type, "[4,36,176]{2,1,0}") != NULL;
    turned += strstr(r->lives[i].type, "[4,36,176]{2,0,1}") != NULL;
  }
  sim_report_free(r);
  assert_true(plain > 0 && !turned);
}

/* What adds 1 to x joins what multiplies that by x's sums, reversed: the sums may not join them as well, for
 * the reversal waits for these and they for it. (estimate() asks whether any kernels wait for each other.) */
static void test_circle(void **state) {
  (void)state;
  static const char text[] =
      "!x = tensor<64x64xf32>\n!s = tensor<64xf32>\n"
      "func.func public @main(%x: !x) -> (!x, !x) {\n"
      "  %o = stablehlo.constant dense<1.0> : !x\n"
      "  %n = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %y = stablehlo.add %x, %o : !x\n"
      "  %s = stablehlo.reduce(%x init: %n) applies stablehlo.add across dimensions = [1] : (!x, "
      "tensor<f32>) -> !s\n"
      "  %r = stablehlo.reverse %s, dims = [0] : !s\n"
      "  %t = stablehlo.broadcast_in_dim %r, dims = [0] : (!s) -> !x\n"
      "  %z = stablehlo.multiply %y, %t : !x\n"
      "  return %y, %z : !x, !x\n}\n";
  sim_report_free(estimate(text, "tpu-v5e"));
}

/* Two updates of weights of one shape: v6e and TPU7x make one loop of them, however large; the others
 * bring the second one's arrays on chip meanwhile. */
static void updates_in_pairs(void **state) {
  (void)state;
  static const char text[] =
      "!t = tensor<640x768xf32>\n"
      "func.func public @main(%p: !t, %g: !t, %m: !t, %q: !t, %h: !t, %n: !t, %l: "
      "tensor<f32>) -> (!t, !t, !t, !t) {\n"
      "  %s = stablehlo.broadcast_in_dim %l, dims = [] : (tensor<f32>) -> !t\n"
      "  %a = stablehlo.multiply %m, %s : !t\n"
      "  %b = stablehlo.add %a, %g : !t\n"
      "  %c = stablehlo.sqrt %b : !t\n"
      "  %d = stablehlo.subtract %p, %c : !t\n"
      "  %e = stablehlo.multiply %n, %s : !t\n"
      "  %f = stablehlo.add %e, %h : !t\n"
      "  %i = stablehlo.sqrt %f : !t\n"
      "  %j = stablehlo.subtract %q, %i : !t\n"
      "  return %d, %b, %j, %f : !t, !t, !t, !t\n"
      "}\n";
  peak_near(text, "tpu-v6e", 18.75 * 1048576, 0.001);
  peak_near(text, "tpu7x", 18.75 * 1048576, 0.001);
  peak_near(text, "tpu-v5e", 24.375 * 1048576, 0.001);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_circle),         cmocka_unit_test(test_slices),
      cmocka_unit_test(test_results),        cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_stacks),         cmocka_unit_test(test_parts),
      cmocka_unit_test(test_two_loops),      cmocka_unit_test(test_state),
      cmocka_unit_test(test_mixed),          cmocka_unit_test(test_row),
      cmocka_unit_test(test_stack_order),    cmocka_unit_test(test_padded),
      cmocka_unit_test(test_largest),        cmocka_unit_test(test_strides),
      cmocka_unit_test(test_gathered),       cmocka_unit_test(test_cut_again),
      cmocka_unit_test(test_batch_in_lanes), cmocka_unit_test(test_cut_order),
      cmocka_unit_test(test_joined),         cmocka_unit_test(updates_in_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
