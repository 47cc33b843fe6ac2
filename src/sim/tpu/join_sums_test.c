/* join: which sums share a kernel with what they add and with what is made of them, on small programs. What the
 * compiler does in each case was read off its own plans; see docs/accuracy.md. */
#include "sim/estimate_test.h"

/* What is summed up and also stored, rounded, is computed once. */
static void test_summed(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<512x256xbf16>, %y: tensor<512x256xf32>) -> "
      "(tensor<512x256xbf16>, tensor<256xf32>) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %w = stablehlo.convert %x : (tensor<512x256xbf16>) -> tensor<512x256xf32>\n"
      "  %a = stablehlo.multiply %w, %y : tensor<512x256xf32>\n"
      "  %b = stablehlo.convert %a : (tensor<512x256xf32>) -> tensor<512x256xbf16>\n"
      "  %c = stablehlo.reduce(%a init: %o) applies stablehlo.add across dimensions = [0] : "
      "(tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>\n"
      "  return %b, %c : tensor<512x256xbf16>, tensor<256xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", NULL), 1);
}

static bool lives(const char *text, const char *chip, double bytes) {
  SimReport *r = estimate(text, chip);
  bool any = false;
  for (int i = 0; i < r->n_lives; i++) any |= r->lives[i].bytes == bytes;
  sim_report_free(r);
  return any;
}

#define W "tensor<%dx384xf32>"
#define N "tensor<%dx384xbf16>"
/* A small product takes in the conversion that widens its result, of a large one the readers do. */
static void test_widened(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%%x: tensor<%dx256xbf16>, %%y: tensor<256x384xbf16>, %%v: "
      "tensor<384xbf16>)"
      " -> (tensor<384xf32>, tensor<384xf32>, " W ") {\n"
      "  %%o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %%b = stablehlo.broadcast_in_dim %%v, dims = [1] : (tensor<384xbf16>) -> " N "\n"
      "  %%p = stablehlo.dot_general %%x, %%y, contracting_dims = [1] x [0] : "
      "(tensor<%dx256xbf16>, tensor<256x384xbf16>) -> " N "\n"
      "  %%a = stablehlo.add %%p, %%b : " N "\n"
      "  %%c = stablehlo.convert %%a : (" N ") -> " W "\n"
      "  %%s = stablehlo.reduce(%%c init: %%o) applies stablehlo.add across dimensions = [0] : "
      "(" W ", tensor<f32>) -> tensor<384xf32>\n"
      "  %%m = stablehlo.broadcast_in_dim %%s, dims = [1] : (tensor<384xf32>) -> " W "\n"
      "  %%d = stablehlo.subtract %%c, %%m : " W "\n"
      "  %%q = stablehlo.multiply %%d, %%d : " W "\n"
      "  %%t = stablehlo.reduce(%%q init: %%o) applies stablehlo.add across dimensions = [0] : "
      "(" W ", tensor<f32>) -> tensor<384xf32>\n"
      "  %%e = stablehlo.sine %%d : " W "\n"
      "  return %%s, %%t, %%e : tensor<384xf32>, tensor<384xf32>, " W "\n}\n";
  for (int rows = 192; rows <= 1536; rows *= 8) {
    Buf b = {0};
    buf_printf(&b, text, rows, rows, rows, rows, rows, rows, rows, rows, rows, rows, rows, rows,
               rows, rows, rows);
    assert_int_equal(lives(b.p, "tpu-v6e", rows * 384 * 2), rows > 192);
    assert_true(lives(b.p, "tpu-v5e", rows * 384 * 2));
    buf_free(&b);
  }
}
#undef W
#undef N

#define P "tensor<24x20x256xf32>"
/* Of two dimensions of rows the one that pads less lies beside the columns. */
static void test_rows(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<480x96xf32>, %w: tensor<96x256xf32>) -> "
      "(tensor<24x20xf32>, tensor<256xf32>) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %y = stablehlo.reshape %x : (tensor<480x96xf32>) -> tensor<24x20x96xf32>\n"
      "  %p = stablehlo.dot_general %y, %w, contracting_dims = [2] x [0] : "
      "(tensor<24x20x96xf32>, tensor<96x256xf32>) -> " P "\n"
      "  %s = stablehlo.reduce(%p init: %o) applies stablehlo.add across dimensions = [2] : "
      "(" P ", tensor<f32>) -> tensor<24x20xf32>\n"
      "  %b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<24x20xf32>) -> " P "\n"
      "  %d = stablehlo.subtract %p, %b : " P "\n"
      "  %e = stablehlo.sine %d : " P "\n"
      "  %t = stablehlo.reduce(%e init: %o) applies stablehlo.add across dimensions = [0, 1] : "
      "(" P ", tensor<f32>) -> tensor<256xf32>\n"
      "  return %s, %t : tensor<24x20xf32>, tensor<256xf32>\n}\n";
  assert_true(lives(text, "tpu-v5e", 24 * 20 * 256 * 4));
}
#undef P

/* A sum beside the slice that a kernel writes into a stack does not ask for a copy of the stack. */
static void test_summed_beside(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<16x8x128xf32>) -> (tensor<16x8x128xf32>, tensor<8xf32>) "
      "{\n"
      "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "  %n = stablehlo.constant dense<16> : tensor<i32>\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %init = stablehlo.constant dense<0.0> : tensor<16x8x128xf32>\n"
      "  %sums = stablehlo.constant dense<0.0> : tensor<8xf32>\n"
      "  %r:4 = stablehlo.while(%i = %zero, %s = %init, %y = %x, %u = %sums) : tensor<i32>, "
      "tensor<16x8x128xf32>, tensor<16x8x128xf32>, tensor<8xf32>\n"
      "   cond {\n"
      "    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %p : tensor<i1>\n"
      "  } do {\n"
      "    %a = stablehlo.dynamic_slice %y, %i, %zero, %zero, sizes = [1, 8, 128] : "
      "(tensor<16x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>\n"
      "    %z = stablehlo.multiply %a, %a : tensor<1x8x128xf32>\n"
      "    %t = stablehlo.dynamic_update_slice %s, %z, %i, %zero, %zero : "
      "(tensor<16x8x128xf32>, tensor<1x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<16x8x128xf32>\n"
      "    %v = stablehlo.reduce(%z init: %o) applies stablehlo.add across dimensions = [0, 2] : "
      "(tensor<1x8x128xf32>, tensor<f32>) -> tensor<8xf32>\n"
      "    %j = stablehlo.add %i, %one : tensor<i32>\n"
      "    stablehlo.return %j, %t, %y, %v : tensor<i32>, tensor<16x8x128xf32>, "
      "tensor<16x8x128xf32>, tensor<8xf32>\n"
      "  }\n"
      "  return %r#1, %r#3 : tensor<16x8x128xf32>, tensor<8xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", "copy"), 0);
}

/* The sum of what a product's kernel writes beside it lies as that does, not as the operands, which have
 * as many elements. */
static void test_sum_order(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%q: tensor<256x16x2x16xf32>, %k: tensor<256x16x2x16xf32>) -> "
      "(tensor<256xf32>, tensor<256x2x16x16xf32>) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = "
      "[3] "
      "x [3] : (tensor<256x16x2x16xf32>, tensor<256x16x2x16xf32>) -> tensor<256x2x16x16xf32>\n"
      "  %r = stablehlo.reduce(%s init: %o) applies stablehlo.add across dimensions = [3] : "
      "(tensor<256x2x16x16xf32>, tensor<f32>) -> tensor<256x2x16xf32>\n"
      "  %t = stablehlo.sine %r : tensor<256x2x16xf32>\n"
      "  %b = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<256x2x16xf32>) -> "
      "tensor<256x2x16x16xf32>\n"
      "  %e = stablehlo.multiply %s, %b : tensor<256x2x16x16xf32>\n"
      "  %v = stablehlo.reduce(%r init: %o) applies stablehlo.add across dimensions = [1, 2] : "
      "(tensor<256x2x16xf32>, tensor<f32>) -> tensor<256xf32>\n"
      "  return %v, %e : tensor<256xf32>, tensor<256x2x16x16xf32>\n}\n";
  SimReport *r = estimate(text, "tpu-v5e");
  int beside = 0, least = 0;
  for (int i = 0; i < r->n_lives; i++) {
    beside += strstr(r->lives[i].type, "[256,2,16]{2,1,0}") != NULL;
    least += strstr(r->lives[i].type, "[256,2,16]{0,2,1}") != NULL;
  }
  sim_report_free(r);
  assert_true(beside > 0 && !least);
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

/* Scores that are summed up row by row lie with the rows in lanes, where either way pads alike. */
static void test_scores(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%q: tensor<4x64x3x32xf32>, %k: tensor<4x64x3x32xf32>) -> "
      "(tensor<4x3x64xf32>, tensor<f32>) {\n"
      "  %o = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = "
      "[3] x [3] : (tensor<4x64x3x32xf32>, tensor<4x64x3x32xf32>) -> tensor<4x3x64x64xf32>\n"
      "  %r = stablehlo.reduce(%s init: %o) applies stablehlo.add across dimensions = [3] : "
      "(tensor<4x3x64x64xf32>, tensor<f32>) -> tensor<4x3x64xf32>\n"
      "  %b = stablehlo.broadcast_in_dim %r, dims = [0, 1, 2] : (tensor<4x3x64xf32>) -> "
      "tensor<4x3x64x64xf32>\n"
      "  %e = stablehlo.multiply %s, %b : tensor<4x3x64x64xf32>\n"
      "  %v = stablehlo.reduce(%e init: %o) applies stablehlo.add across dimensions = [0, 1, 2, 3] "
      ": (tensor<4x3x64x64xf32>, tensor<f32>) -> tensor<f32>\n"
      "  return %r, %v : tensor<4x3x64xf32>, tensor<f32>\n}\n";
  SimReport *r = estimate(text, "tpu-v5e");
  bool turned = false;
  for (int i = 0; i < r->n_lives; i++)
    turned |= strstr(r->lives[i].type, "[4,3,64,64]{2,3,1,0}") != NULL;
  sim_report_free(r);
  assert_true(turned);
}

/* The number of arrays of that type that are stored. */
static int stored(const char *text, const char *chip, const char *type) {
  SimReport *r = estimate(text, chip);
  int n = 0;
  for (int i = 0; i < r->n_lives; i++) n += strstr(r->lives[i].type, type) != NULL;
  sim_report_free(r);
  return n;
}

/* A short array that several others are made of is stored if it is made of three of its size, not if rows
 * and columns are repeated to that size, and however long the way to its only one is. */
static void test_short(void **state) {
  (void)state;
  static const char repeated[] =
      "func.func public @main(%x: tensor<300x160xf32>, %m: tensor<300xf32>, %r: tensor<300xf32>, "
      "%g: tensor<160xf32>) -> (tensor<300xf32>, tensor<160xf32>) {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %a = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<300xf32>) -> "
      "tensor<300x160xf32>\n"
      "  %b = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<300xf32>) -> "
      "tensor<300x160xf32>\n"
      "  %c = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<160xf32>) -> "
      "tensor<300x160xf32>\n"
      "  %d = stablehlo.subtract %x, %a : tensor<300x160xf32>\n"
      "  %e = stablehlo.multiply %d, %b : tensor<300x160xf32>\n"
      "  %y = stablehlo.multiply %e, %c : tensor<300x160xf32>\n"
      "  %s = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : "
      "(tensor<300x160xf32>, tensor<f32>) -> tensor<300xf32>\n"
      "  %w = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<300xf32>) -> "
      "tensor<300x160xf32>\n"
      "  %v = stablehlo.multiply %y, %w : tensor<300x160xf32>\n"
      "  %t = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<300x160xf32>, tensor<f32>) -> tensor<160xf32>\n"
      "  return %s, %t : tensor<300xf32>, tensor<160xf32>\n}\n";
  Buf b = {0};
  buf_cstr(&b, "func.func public @main(%x0: tensor<300x64xui32>) -> (tensor<300xui32>, "
               "tensor<64xui32>) {\n"
               "  %z = stablehlo.constant dense<0> : tensor<ui32>\n");
  for (int i = 0; i < 8; i++)
    buf_printf(&b,
               "  %%k%d = stablehlo.constant dense<%d> : tensor<300x64xui32>\n"
               "  %%l%d = stablehlo.shift_left %%x%d, %%k%d : tensor<300x64xui32>\n"
               "  %%r%d = stablehlo.shift_right_logical %%x%d, %%k%d : tensor<300x64xui32>\n"
               "  %%o%d = stablehlo.or %%l%d, %%r%d : tensor<300x64xui32>\n"
               "  %%x%d = stablehlo.xor %%x%d, %%o%d : tensor<300x64xui32>\n",
               i, i + 3, i, i, i, i, i, i, i, i, i, i + 1, i, i);
  buf_cstr(&b, "  %s = stablehlo.reduce(%x8 init: %z) applies stablehlo.add across dimensions = "
               "[1] : (tensor<300x64xui32>, tensor<ui32>) -> tensor<300xui32>\n"
               "  %t = stablehlo.reduce(%x8 init: %z) applies stablehlo.add across dimensions = "
               "[0] : (tensor<300x64xui32>, tensor<ui32>) -> tensor<64xui32>\n"
               "  return %s, %t : tensor<300xui32>, tensor<64xui32>\n}\n");
  assert_int_equal(stored(repeated, "tpu-v2", "[300,160]"), 1);
  assert_int_equal(stored(b.p, "tpu-v2", "[300,64]"), 1);
  buf_free(&b);
}

/* A softmax over the last of four sides. */
static SimReport *softmax(const char *chip, int b, int h, int t, int s, bool narrow) {
  Buf text = {0};
  char a[64], r[64], e[16];
  snprintf(e, sizeof e, "tensor<%s>", narrow ? "bf16" : "f32");
  snprintf(a, sizeof a, "tensor<%dx%dx%dx%dx%s", b, h, t, s, e + 7);
  snprintf(r, sizeof r, "tensor<%dx%dx%dx%s", b, h, t, e + 7);
  buf_printf(&text,
             "func.func public @main(%%x: %s) -> %s {\n"
             "  %%l = stablehlo.constant dense<-1.0e30> : %s\n"
             "  %%z = stablehlo.constant dense<0.0> : %s\n"
             "  %%m = stablehlo.reduce(%%x init: %%l) applies stablehlo.maximum across dimensions "
             "= [3] : (%s, %s) -> %s\n"
             "  %%b = stablehlo.broadcast_in_dim %%m, dims = [0, 1, 2] : (%s) -> %s\n"
             "  %%d = stablehlo.subtract %%x, %%b : %s\n"
             "  %%e = stablehlo.exponential %%d : %s\n"
             "  %%s = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = "
             "[3] : (%s, %s) -> %s\n"
             "  %%c = stablehlo.broadcast_in_dim %%s, dims = [0, 1, 2] : (%s) -> %s\n"
             "  %%q = stablehlo.divide %%e, %%c : %s\n"
             "  return %%q : %s\n}\n",
             a, a, e, e, a, e, r, r, a, a, a, a, e, r, r, a, a, a);
  SimReport *report = estimate(text.p, chip);
  buf_free(&text);
  return report;
}

/* A softmax of a narrow array is one kernel if what it is taken over lies in tiles; its cycles as the
 * compiler has them. */
static void test_softmax(void **state) {
  (void)state;
  SimReport *r = softmax("tpu-v6e", 1, 32, 512, 150, true);
  assert_int_equal(kernels_of(r, NULL), 3);
  sim_report_free(r);
  static const struct {
    const char *chip;
    int b, h, t, s;
    bool narrow;
    double cycles;
  } cases[] = {{"tpu-v4", 16, 6, 256, 64, false, 25413},  {"tpu-v5e", 16, 6, 256, 64, false, 52163},
               {"tpu-v6e", 16, 6, 256, 64, false, 23207}, {"tpu-v4", 8, 12, 128, 128, true, 22423},
               {"tpu-v5p", 8, 12, 128, 128, true, 19936}, {"tpu7x", 8, 12, 128, 128, true, 17167}};
  for (int i = 0; i < COUNT_OF(cases); i++) {
    r = softmax(cases[i].chip, cases[i].b, cases[i].h, cases[i].t, cases[i].s, cases[i].narrow);
    assert_int_equal(kernels_of(r, NULL), 1);
    assert_true(fabs(r->cycles / cases[i].cycles - 1) < 0.1);
    sim_report_free(r);
  }
}

/* A logarithm of a softmax is two kernels, with the exponents stored between them. */
static void test_log_softmax(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<64x50x200xf32>) -> tensor<64x50x200xf32> {\n"
      "  %l = stablehlo.constant dense<-1.0e30> : tensor<f32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [2] : "
      "(tensor<64x50x200xf32>, tensor<f32>) -> tensor<64x50xf32>\n"
      "  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<64x50xf32>) -> "
      "tensor<64x50x200xf32>\n"
      "  %d = stablehlo.subtract %x, %b : tensor<64x50x200xf32>\n"
      "  %e = stablehlo.exponential %d : tensor<64x50x200xf32>\n"
      "  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : "
      "(tensor<64x50x200xf32>, tensor<f32>) -> tensor<64x50xf32>\n"
      "  %g = stablehlo.log %s : tensor<64x50xf32>\n"
      "  %c = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<64x50xf32>) -> "
      "tensor<64x50x200xf32>\n"
      "  %r = stablehlo.subtract %d, %c : tensor<64x50x200xf32>\n"
      "  return %r : tensor<64x50x200xf32>\n}\n";
  assert_int_equal(kernels(text, "tpu-v5e", NULL), 2);
  assert_int_equal(kernels(text, "tpu-v2", NULL), 4);
}

/* What two sums in one kernel add up is not brought on chip before. */
static void test_largest_and_least(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<1280x512xf32>) -> (tensor<1280xf32>, tensor<1280xf32>) {\n"
      "  %l = stablehlo.constant dense<-1.0e30> : tensor<f32>\n"
      "  %h = stablehlo.constant dense<1.0e30> : tensor<f32>\n"
      "  %m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [1] : "
      "(tensor<1280x512xf32>, tensor<f32>) -> tensor<1280xf32>\n"
      "  %n = stablehlo.reduce(%x init: %h) applies stablehlo.minimum across dimensions = [1] : "
      "(tensor<1280x512xf32>, tensor<f32>) -> tensor<1280xf32>\n"
      "  return %m, %n : tensor<1280xf32>, tensor<1280xf32>\n}\n";
  SimReport *r = estimate(text, "tpu-v6e");
  assert_true(fabs(r->peak_bytes / 2638000 - 1) < 0.01);
  assert_true(fabs(r->cycles / 8677 - 1) < 0.1);
  sim_report_free(r);
}

/* A clipped convolution whose averages are taken: its kernel finds the bits, the pool clips for itself,
 * and the pool's gradient is a kernel of its own, bits unpacked before it. */
static void averages_of_clipped(void **state) {
  (void)state;
  static const char text[] =
      "module {\n"
      "  func.func public @main(%arg0: tensor<3x3x8x24xf32>, %arg1: "
      "tensor<128x28x28x8xf32>, %arg2: tensor<128x14x14x24xf32>) -> (tensor<f32>, "
      "tensor<3x3x8x24xf32>) {\n"
      "    %0 = stablehlo.convolution(%arg1, %arg0) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
      "o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = "
      "[1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : "
      "i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision "
      "DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<128x28x28x8xf32>, "
      "tensor<3x3x8x24xf32>) -> tensor<128x28x28x24xf32>\n"
      "    %1 = call @relu(%0) : (tensor<128x28x28x24xf32>) -> tensor<128x28x28x24xf32>\n"
      "    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
      "tensor<128x28x28x24xf32>\n"
      "    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<128x28x28x24xf32>, "
      "tensor<128x28x28x24xf32>) -> tensor<128x28x28x24xi1>\n"
      "    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>\n"
      "    %5 = \"stablehlo.reduce_window\"(%1, %4) <{base_dilations = array<i64: 1, 1, 1, "
      "1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, "
      "1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, "
      "2, 1>}> ({\n"
      "    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):\n"
      "      %16 = stablehlo.add %arg3, %arg4 : tensor<f32>\n"
      "      stablehlo.return %16 : tensor<f32>\n"
      "    }) : (tensor<128x28x28x24xf32>, tensor<f32>) -> tensor<128x14x14x24xf32>\n"
      "    %6 = stablehlo.multiply %5, %arg2 : tensor<128x14x14x24xf32>\n"
      "    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions "
      "= [0, 1, 2, 3] : (tensor<128x14x14x24xf32>, tensor<f32>) -> tensor<f32>\n"
      "    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
      "    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> "
      "tensor<128x14x14x24xf32>\n"
      "    %9 = stablehlo.multiply %8, %arg2 : tensor<128x14x14x24xf32>\n"
      "    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %10 = stablehlo.pad %9, %cst_3, low = [0, 1, 1, 0], high = [0, 1, 1, 0], "
      "interior = [0, 1, 1, 0] : (tensor<128x14x14x24xf32>, tensor<f32>) -> "
      "tensor<128x29x29x24xf32>\n"
      "    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> "
      "tensor<f32>\n"
      "    %12 = \"stablehlo.reduce_window\"(%10, %11) <{base_dilations = array<i64: 1, 1, "
      "1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, "
      "1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 1, "
      "1, 1>}> ({\n"
      "    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):\n"
      "      %16 = stablehlo.add %arg3, %arg4 : tensor<f32>\n"
      "      stablehlo.return %16 : tensor<f32>\n"
      "    }) : (tensor<128x29x29x24xf32>, tensor<f32>) -> tensor<128x28x28x24xf32>\n"
      "    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %13 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> "
      "tensor<128x28x28x24xf32>\n"
      "    %14 = stablehlo.select %3, %12, %13 : tensor<128x28x28x24xi1>, "
      "tensor<128x28x28x24xf32>\n"
      "    %15 = stablehlo.convolution(%arg1, %14) dim_numbers = [f, 0, 1, b]x[i, 0, 1, "
      "o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = "
      "[1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : "
      "i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision "
      "DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<128x28x28x8xf32>, "
      "tensor<128x28x28x24xf32>) -> tensor<3x3x8x24xf32>\n"
      "    return %7, %15 : tensor<f32>, tensor<3x3x8x24xf32>\n"
      "  }\n"
      "  func.func private @relu(%arg0: tensor<128x28x28x24xf32>) -> "
      "tensor<128x28x28x24xf32> {\n"
      "    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
      "tensor<128x28x28x24xf32>\n"
      "    %1 = stablehlo.maximum %arg0, %0 : tensor<128x28x28x24xf32>\n"
      "    return %1 : tensor<128x28x28x24xf32>\n"
      "  }\n"
      "}\n";
  peak_near(text, "tpu-v3", 15675904, 0.001);
  SimReport *r = estimate(text, "tpu-v3");
  assert_true(r->cycles > 0.9 * 188958 && r->cycles < 1.1 * 188958);
  sim_report_free(r);
}

/* What several products made is put side by side and added up by one kernel. */
static void test_joined_features(void **state) {
  (void)state;
  SimReport *r = estimate(
      "!x = tensor<4096x256xbf16>\n!v = tensor<256x64xbf16>\n!w = tensor<256x96xbf16>\n"
      "!c = tensor<4096x160xbf16>\n"
      "func.func public @main(%x: !x, %v: !v, %w: !w) -> (!c, tensor<160xf32>) {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (!x, !v) -> "
      "tensor<4096x64xbf16>\n"
      "  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!x, !w) -> "
      "tensor<4096x96xbf16>\n"
      "  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4096x64xbf16>, "
      "tensor<4096x96xbf16>) -> !c\n"
      "  %3 = stablehlo.convert %2 : (!c) -> tensor<4096x160xf32>\n"
      "  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<4096x160xf32>, tensor<f32>) -> tensor<160xf32>\n"
      "  return %2, %4 : !c, tensor<160xf32>\n}\n",
      "tpu-v2");
  assert_int_equal(kernels_of(r, NULL), 3);
  near(r->cycles, 41426, 0.05);
  sim_report_free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_summed),
                                     cmocka_unit_test(test_scores),
                                     cmocka_unit_test(test_sum_order),
                                     cmocka_unit_test(test_summed_beside),
                                     cmocka_unit_test(test_widened),
                                     cmocka_unit_test(test_rows),
                                     cmocka_unit_test(test_with_sum),
                                     cmocka_unit_test(test_log_softmax),
                                     cmocka_unit_test(test_largest_and_least),
                                     cmocka_unit_test(test_short),
                                     cmocka_unit_test(test_softmax),
                                     cmocka_unit_test(averages_of_clipped),
                                     cmocka_unit_test(test_joined_features)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
