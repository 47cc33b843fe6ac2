/* batch: space of small batches moved into the batch. Cycles are those of libtpu's own compiler. */
#include "sim/estimate_test.h"

typedef struct Seen {
  double cycles;
  int convolutions, kernels;
} Seen;

static Seen see(const char *text, const char *chip) {
  SimReport *r = estimate(text, chip);
  Seen s = {.kernels = kernels_of(r, NULL)};
  for (int i = 0; i < r->n_kernels; i++) {
    if (no_kernel(&r->kernels[i])) continue;
    s.cycles += r->kernels[i].cycles * r->kernels[i].count;
    s.convolutions += !strcmp(r->kernels[i].op, "convolution");
  }
  sim_report_free(r);
  return s;
}

static void conv(Buf *b, const char *res, const char *x, const char *w, const char *xt,
                 const char *wt, const char *yt, const char *window) {
  buf_printf(b,
             "  %s = stablehlo.convolution(%s, %s) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, "
             "1, f], window = {%s} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
             "(%s, %s) -> %s\n",
             res, x, w, window, xt, wt, yt);
}

#define SAME "pad = [[1, 1], [1, 1]]"
#define FILTER "tensor<3x3x64x64xbf16>"

/* One convolution of so many images. */
static Seen single(int batch, const char *chip) {
  Buf b = {0};
  char t[64];
  snprintf(t, sizeof t, "tensor<%dx24x40x64xbf16>", batch);
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: " FILTER ") -> %s {\n", t, t);
  conv(&b, "%y", "%x", "%w", t, FILTER, t, SAME);
  buf_printf(&b, "  return %%y : %s\n}\n", t);
  Seen s = see(b.p, chip);
  buf_free(&b);
  return s;
}

/* Two of two images, clipped between. */
static Seen chain(const char *wt, const char *yt, const char *window) {
  static const char x[] = "tensor<2x24x40x64xbf16>";
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: " FILTER ", %%v: %s) -> %s {\n", x, wt, yt);
  buf_printf(&b, "  %%z = stablehlo.constant dense<0.0> : %s\n", x);
  conv(&b, "%a", "%x", "%w", x, FILTER, x, SAME);
  buf_printf(&b, "  %%r = stablehlo.maximum %%a, %%z : %s\n", x);
  conv(&b, "%y", "%r", "%v", x, wt, yt, window);
  buf_printf(&b, "  return %%y : %s\n}\n", yt);
  Seen s = see(b.p, "tpu-v5e");
  buf_free(&b);
  return s;
}

/* From which batch on a convolution stays as it is. */
static void test_which(void **state) {
  (void)state;
  static const struct {
    const char *chip;
    int most;
  } rows[] = {{"tpu-v2", 1},  {"tpu-v3", 1},  {"tpu-v4", 7}, {"tpu-v5e", 7},
              {"tpu-v5p", 7}, {"tpu-v6e", 7}, {"tpu7x", 7}};
  for (int i = 0; i < COUNT_OF(rows); i++)
    for (int more = 0; more < 2; more++) {
      Seen s = single(rows[i].most + more, rows[i].chip);
      if (more) assert_in_range(s.kernels, 1, 3); /* itself and copies of its operands */
      else assert_in_range(s.kernels, 7, 9);
      assert_int_equal(s.convolutions, 1);
    }
}

static void test_single(void **state) {
  (void)state;
  near(single(2, "tpu-v5e").cycles, 44663, 0.08);
}

/* On v6e, too, what only moves narrow elements packs them. */
static void test_moves(void **state) {
  (void)state;
  static const char x[] = "tensor<1x48x48x128xbf16>", w[] = "tensor<3x3x128x128xbf16>";
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: %s) -> %s {\n", x, w, x);
  conv(&b, "%y", "%x", "%w", x, w, x, SAME);
  buf_printf(&b, "  return %%y : %s\n}\n", x);
  near(see(b.p, "tpu-v6e").cycles, 30760, 0.16);
  buf_free(&b);
}

/* The second convolution takes the parts as they are, and makes its halo of slices. */
static void test_chain(void **state) {
  (void)state;
  Seen s = chain(FILTER, "tensor<2x24x40x64xbf16>", SAME);
  near(s.cycles, 55308, 0.08);
  assert_int_equal(s.convolutions, 2);
}

/* It halves its image. */
static void test_strides(void **state) {
  (void)state;
  Seen s = chain("tensor<3x3x64x128xbf16>", "tensor<2x12x20x128xbf16>",
                 "stride = [2, 2], pad = [[0, 1], [0, 1]]");
  near(s.cycles, 47123, 0.08);
}

/* A mean over groups of channels, taken away between: the reshapes that it is written with do not put
 * the images together again. */
static void test_groups(void **state) {
  (void)state;
  static const char x[] = "tensor<2x24x40x64xbf16>";
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: " FILTER ", %%v: " FILTER ") -> %s {\n", x,
             x);
  conv(&b, "%a", "%x", "%w", x, FILTER, x, SAME);
  buf_cstr(
      &b,
      "  %f = stablehlo.convert %a : (tensor<2x24x40x64xbf16>) -> tensor<2x24x40x64xf32>\n"
      "  %g = stablehlo.reshape %f : (tensor<2x24x40x64xf32>) -> tensor<2x24x40x8x8xf32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [1, 2, 4] "
      ": (tensor<2x24x40x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>\n"
      "  %n = stablehlo.constant dense<7680.0> : tensor<2x8xf32>\n"
      "  %m = stablehlo.divide %s, %n : tensor<2x8xf32>\n"
      "  %r = stablehlo.broadcast_in_dim %m, dims = [0, 3] : (tensor<2x8xf32>) -> "
      "tensor<2x24x40x8x8xf32>\n"
      "  %d = stablehlo.subtract %g, %r : tensor<2x24x40x8x8xf32>\n"
      "  %h = stablehlo.reshape %d : (tensor<2x24x40x8x8xf32>) -> tensor<2x24x40x64xf32>\n"
      "  %i = stablehlo.convert %h : (tensor<2x24x40x64xf32>) -> tensor<2x24x40x64xbf16>\n");
  conv(&b, "%y", "%i", "%v", x, FILTER, x, SAME);
  buf_printf(&b, "  return %%y : %s\n}\n", x);
  near(see(b.p, "tpu-v5e").cycles, 69281, 0.04);
  buf_free(&b);
}

/* What is repeated over an image is rounded before, and goes with its parts. */
static void test_repeated(void **state) {
  (void)state;
  static const char x[] = "tensor<2x24x40x64xbf16>";
  Buf b = {0};
  buf_printf(&b,
             "func.func public @main(%%x: %s, %%w: " FILTER ", %%v: " FILTER
             ", %%g: tensor<2x64xf32>) -> %s {\n",
             x, x);
  conv(&b, "%a", "%x", "%w", x, FILTER, x, SAME);
  buf_printf(&b,
             "  %%r = stablehlo.broadcast_in_dim %%g, dims = [0, 3] : (tensor<2x64xf32>) -> "
             "tensor<2x24x40x64xf32>\n"
             "  %%h = stablehlo.convert %%r : (tensor<2x24x40x64xf32>) -> %s\n"
             "  %%z = stablehlo.constant dense<0.0> : %s\n"
             "  %%c = stablehlo.compare GT, %%a, %%z, FLOAT : (%s, %s) -> tensor<2x24x40x64xi1>\n"
             "  %%s = stablehlo.select %%c, %%h, %%z : tensor<2x24x40x64xi1>, %s\n",
             x, x, x, x, x);
  conv(&b, "%y", "%s", "%v", x, FILTER, x, SAME);
  buf_printf(&b, "  return %%y : %s\n}\n", x);
  near(see(b.p, "tpu-v5e").cycles, 61494, 0.06);
  buf_free(&b);
}

/* What is left of each image's mean is stored when several read it: nobody reads the mean, repeated over
 * the image, again. */
static void test_less_mean(void **state) {
  (void)state;
  static const char x[] = "tensor<2x24x40x64xbf16>";
#define WIDE "tensor<2x24x40x64xf32>"
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: " FILTER ", %%v: " FILTER ") -> %s {\n", x,
             x);
  conv(&b, "%a", "%x", "%w", x, FILTER, x, SAME);
  buf_cstr(&b,
           "  %f = stablehlo.convert %a : (tensor<2x24x40x64xbf16>) -> " WIDE "\n"
           "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
           "  %s = stablehlo.reduce(%f init: %z) applies stablehlo.add across dimensions = [1, 2] "
           ": (" WIDE ", tensor<f32>) -> tensor<2x64xf32>\n"
           "  %r = stablehlo.broadcast_in_dim %s, dims = [0, 3] : (tensor<2x64xf32>) -> " WIDE "\n"
           "  %d = stablehlo.subtract %f, %r : " WIDE "\n"
           "  %q = stablehlo.multiply %d, %d : " WIDE "\n"
           "  %t = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1, 2] "
           ": (" WIDE ", tensor<f32>) -> tensor<2x64xf32>\n"
           "  %u = stablehlo.broadcast_in_dim %t, dims = [0, 3] : (tensor<2x64xf32>) -> " WIDE "\n"
           "  %h = stablehlo.multiply %d, %u : " WIDE "\n"
           "  %i = stablehlo.convert %h : (" WIDE ") -> tensor<2x24x40x64xbf16>\n");
  conv(&b, "%y", "%i", "%v", x, FILTER, x, SAME);
  buf_printf(&b, "  return %%y : %s\n}\n", x);
  SimReport *r = estimate(b.p, "tpu-v5e");
  int stored = 0;
  for (int i = 0; i < r->n_lives; i++) stored += !strncmp(r->lives[i].name, "subtract", 8);
  assert_int_equal(stored, 1);
  sim_report_free(r);
  buf_free(&b);
}

/* Pixels of a spread image take other taps each, so that few images load all weights for few rows. */
static void test_spread(void **state) {
  (void)state;
  static const char x[] = "tensor<8x20x20x64xbf16>", y[] = "tensor<8x40x40x96xbf16>",
                    w[] = "tensor<3x3x64x96xbf16>";
  static const struct {
    const char *chip;
    double cycles;
  } rows[] = {{"tpu-v2", 267480}, {"tpu-v3", 152379}, {"tpu-v4", 50733}, {"tpu-v5e", 49484},
              {"tpu-v5p", 30167}, {"tpu-v6e", 44999}, {"tpu7x", 45736}};
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: %s) -> %s {\n", x, w, y);
  conv(&b, "%y", "%x", "%w", x, w, y, "pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]");
  buf_printf(&b, "  return %%y : %s\n}\n", y);
  for (int i = 0; i < COUNT_OF(rows); i++)
    near(see(b.p, rows[i].chip).cycles, rows[i].cycles, 0.08);
  buf_free(&b);
}

/* An image repeated to twice its size between two convolutions: its pixels lie in tiles of two rows while
 * they are repeated, which are put together by an operation of its own. */
static void test_repeats(void **state) {
  (void)state;
  static const char x[] = "tensor<4x24x24x64xbf16>", y[] = "tensor<4x48x48x64xbf16>",
                    twice[] = "tensor<4x24x2x24x2x64xbf16>";
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%w: " FILTER ") -> %s {\n", x, y);
  conv(&b, "%a", "%x", "%w", x, FILTER, x, SAME);
  buf_printf(&b, "  %%b = stablehlo.broadcast_in_dim %%a, dims = [0, 1, 3, 5] : (%s) -> %s\n", x,
             twice);
  buf_printf(&b, "  %%u = stablehlo.reshape %%b : (%s) -> %s\n", twice, y);
  conv(&b, "%y", "%u", "%w", y, FILTER, y, SAME);
  buf_printf(&b, "  return %%y : %s\n}\n", y);
  near(see(b.p, "tpu-v5e").cycles, 271365, 0.14);
  buf_free(&b);
}

/* The same as two repetitions, rows and then columns, as jnp.repeat says it: both keep in their tiles what
 * the convolutions have there, the batch and the features. */
static void test_repeats_twice(void **state) {
  (void)state;
  static const char x[] = "tensor<14x20x20x24xbf16>", v[] = "tensor<3x3x24x56xbf16>",
                    w[] = "tensor<1x1x56x24xbf16>", a[] = "tensor<14x20x20x56xbf16>",
                    rows[] = "tensor<14x20x2x20x56xbf16>", tall[] = "tensor<14x40x20x56xbf16>",
                    columns[] = "tensor<14x40x20x2x56xbf16>", u[] = "tensor<14x40x40x56xbf16>",
                    y[] = "tensor<14x40x40x24xbf16>";
  Buf b = {0};
  buf_printf(&b, "func.func public @main(%%x: %s, %%v: %s, %%w: %s) -> %s {\n", x, v, w, y);
  conv(&b, "%a", "%x", "%v", x, v, a, SAME);
  buf_printf(&b, "  %%b = stablehlo.broadcast_in_dim %%a, dims = [0, 1, 3, 4] : (%s) -> %s\n", a,
             rows);
  buf_printf(&b, "  %%c = stablehlo.reshape %%b : (%s) -> %s\n", rows, tall);
  buf_printf(&b, "  %%d = stablehlo.broadcast_in_dim %%c, dims = [0, 1, 2, 4] : (%s) -> %s\n", tall,
             columns);
  buf_printf(&b, "  %%u = stablehlo.reshape %%d : (%s) -> %s\n", columns, u);
  conv(&b, "%y", "%u", "%w", u, w, y, "pad = [[0, 0], [0, 0]]");
  buf_printf(&b, "  return %%y : %s\n}\n", y);
  like(b.p, "tpu-v5e", 188390, 18253824);
  like(b.p, "tpu-v3", 212612, 18247680);
  buf_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which),        cmocka_unit_test(test_single),
      cmocka_unit_test(test_moves),        cmocka_unit_test(test_chain),
      cmocka_unit_test(test_strides),      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_repeated),     cmocka_unit_test(test_less_mean),
      cmocka_unit_test(test_spread),       cmocka_unit_test(test_repeats),
      cmocka_unit_test(test_repeats_twice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
