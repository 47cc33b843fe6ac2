/* product: what a matrix product costs with vector work in its epilogue, all on chip. The cycles are
 * libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

typedef struct Size {
  int m, n, k;
} Size;
static const Size small = {512, 512, 128};

static char *matrix(char text[40], int rows, int cols) {
  snprintf(text, 40, "tensor<%dx%dxf32>", rows, cols);
  return text;
}

/* Cycles of f32[m,k] x f32[k,n] -> f32[m,n], or of f32[n,k] transposed, with `epilogue` on %y; barriers
 * keep it a kernel of its own. */
static double product_cycles(const char *chip, Size s, bool transposed, const char *epilogue,
                             const char *result, const char *type) {
  char a[40], b[40], y[40];
  matrix(a, s.m, s.k), matrix(y, s.m, s.n);
  if (transposed) matrix(b, s.n, s.k);
  else matrix(b, s.k, s.n);
  const char *in[] = {a, b, y, y, y};
  Buf t = {0};
  buf_cstr(&t, "func.func public @main(");
  for (int i = 0; i < 5; i++) buf_printf(&t, "%s%%p%d: %s", i ? ", " : "", i, in[i]);
  buf_printf(&t, ") -> %s {\n", type);
  for (int i = 0; i < 5; i++)
    buf_printf(&t, "  %%q%d = stablehlo.add %%p%d, %%p%d : %s\n", i, i, i, in[i]);
  buf_printf(&t,
             "  %%i:5 = stablehlo.optimization_barrier %%q0, %%q1, %%q2, %%q3, %%q4 : %s, %s, %s, "
             "%s, %s\n  %%y = stablehlo.dot_general %%i#0, %%i#1, contracting_dims = [1] x [%d] : "
             "(%s, %s) -> %s\n%s  %%o = stablehlo.optimization_barrier %%%s : %s\n"
             "  %%z = stablehlo.sine %%o : %s\n  return %%z : %s\n}\n",
             a, b, y, y, y, transposed, a, b, y, epilogue, result, type, type, type);
  SimReport *r = estimate(t.p, chip);
  double sum = 0;
  for (int i = 0; i < r->n_kernels; i++)
    if (!strcmp(r->kernels[i].op, "dot_general")) sum += r->kernels[i].est_cycles;
  sim_report_free(r);
  buf_free(&t);
  return sum;
}

static double cycles(const char *chip, Size s, const char *epilogue, const char *result,
                     const char *type) {
  return product_cycles(chip, s, false, epilogue, result, type);
}

static void within(double ours, double theirs) {
  if (ours < 0.98 * theirs || ours > 1.02 * theirs) fail_msg("%.0f, not %.0f", ours, theirs);
}

#define MATRIX "tensor<512x512xf32>"

/* n multiplications and additions of constants: the longer of the array and the vector unit counts. */
static void chain(int n, const char *chip, Size s, double theirs) {
  Buf b = {0};
  char y[40];
  matrix(y, s.m, s.n);
  char last[16] = "y";
  for (int i = 0; i < n; i++) {
    buf_printf(&b,
               "  %%k%d = stablehlo.constant dense<%d.5> : %s\n"
               "  %%c%d = stablehlo.%s %%%s, %%k%d : %s\n",
               i, i + 1, y, i, i % 2 ? "add" : "multiply", last, i, y);
    snprintf(last, sizeof last, "c%d", i);
  }
  within(cycles(chip, s, b.p, last, y), theirs);
  buf_free(&b);
}

static void test_chains(void **state) {
  (void)state;
  chain(8, "tpu-v5e", small, 768);
  chain(16, "tpu-v5e", small, 1140);
  chain(64, "tpu-v5e", small, 4212);
  chain(16, "tpu-v6e", small, 1280);
  chain(32, "tpu-v6e", small, 2224);
  chain(16, "tpu7x", small, 1280);
  chain(64, "tpu7x", small, 4218);
  static const Size deep = {2048, 1536, 768}; /* what each tile of weights makes is added up */
  chain(32, "tpu-v6e", deep, 31224);
  chain(32, "tpu7x", deep, 26880);
}

static void plain(const char *chip, Size s, bool transposed, double theirs) {
  char y[40];
  within(product_cycles(chip, s, transposed, "", "y", matrix(y, s.m, s.n)), theirs);
}

/* In v4's shared memory: products start sooner than from device memory, and are written no faster. What is
 * contracted lies in lanes of a transposed operand: its tiles are turned as they are loaded. */
static void test_shared_memory(void **state) {
  (void)state;
  plain("tpu-v4", (Size){24, 512, 128}, false, 1052);
  plain("tpu-v4", (Size){64, 128, 128}, false, 1019);
  plain("tpu-v4", (Size){1024, 1024, 128}, false, 6505);
  plain("tpu-v4", (Size){8, 128, 1024}, true, 1287);
  plain("tpu-v4", (Size){24, 512, 128}, true, 1212);
}

/* Arrays are loaded from memory each time that they are used, results in registers are not. */
static void test_loads(void **state) {
  (void)state;
  static const char text[] = "  %1 = stablehlo.multiply %y, %i#2 : " MATRIX
                             "\n  %2 = stablehlo.multiply %1, %i#3 : " MATRIX
                             "\n  %3 = stablehlo.multiply %2, %i#4 : " MATRIX
                             "\n  %4 = stablehlo.multiply %3, %y : " MATRIX
                             "\n  %5 = stablehlo.multiply %4, %i#2 : " MATRIX
                             "\n  %6 = stablehlo.multiply %5, %i#3 : " MATRIX
                             "\n  %7 = stablehlo.multiply %6, %i#4 : " MATRIX "\n";
  within(cycles("tpu-v5e", small, text, "7", MATRIX), 949);
}

/* A quotient of a quotient is divided once. */
static void test_quotients(void **state) {
  (void)state;
  static const char text[] =
      "  %1 = stablehlo.divide %y, %i#2 : " MATRIX "\n  %2 = stablehlo.divide %1, %i#3 : " MATRIX
      "\n  %3 = stablehlo.divide %2, %i#4 : " MATRIX "\n";
  within(cycles("tpu-v5e", small, text, "3", MATRIX), 768);
}

/* Results that are only added up are packed all the same; to a single number they leave the chip. */
static void test_sums(void **state) {
  (void)state;
  static const char all[] =
      "  %1 = stablehlo.multiply %y, %i#2 : " MATRIX
      "\n  %2 = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0, 1] : "
      "(" MATRIX ", tensor<f32>) -> tensor<f32>\n";
  within(cycles("tpu-v6e", small, all, "3", "tensor<f32>"), 4500);
  static const char text[] =
      "  %1 = stablehlo.multiply %y, %i#2 : " MATRIX
      "\n  %2 = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0] : "
      "(" MATRIX ", tensor<f32>) -> tensor<512xf32>\n";
  within(cycles("tpu-v5e", small, text, "3", "tensor<512xf32>"), 4700);
  within(cycles("tpu-v6e", small, text, "3", "tensor<512xf32>"), 1280);
}

/* A matrix times a vector is multiplied and added up: the column becomes a vector first, and reading
 * is all that counts. */
/* The gradient of images that are cut into patches: kernel and image the other way round. */
static void test_patches(void **state) {
  (void)state;
  static const char patches[] =
      "func.func public @main(%w: tensor<16x16x3x192xbf16>, %y: tensor<8x14x14x192xbf16>) -> "
      "tensor<8x224x224x3xbf16> {\n"
      "  %0 = stablehlo.reverse %w, dims = [0, 1] : tensor<16x16x3x192xbf16>\n"
      "  %1 = stablehlo.convolution(%y, %0) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], "
      "window = {stride = [1, 1], pad = [[15, 15], [15, 15]], lhs_dilate = [16, 16], rhs_dilate = "
      "[1, 1], "
      "reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
      "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : "
      "(tensor<8x14x14x192xbf16>, tensor<16x16x3x192xbf16>) -> tensor<8x224x224x3xbf16>\n"
      "  return %1 : tensor<8x224x224x3xbf16>\n}\n";
  static const struct {
    const char *chip;
    double cycles;
  } theirs[] = {
      {"tpu-v2", 59964251}, {"tpu-v3", 33863321}, {"tpu-v5e", 15237146}, {"tpu-v5p", 7945984}};
  for (int i = 0; i < COUNT_OF(theirs); i++) {
    SimReport *r = estimate(patches, theirs[i].chip);
    near(r->cycles, theirs[i].cycles, 0.1);
    sim_report_free(r);
  }
}

static void test_vectors(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<512x768xf32>, %b: tensor<768x1xf32>) -> "
      "tensor<512x1xf32> {\n  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
      "(tensor<512x768xf32>, tensor<768x1xf32>) -> tensor<512x1xf32>\n"
      "  return %y : tensor<512x1xf32>\n}\n";
  static const struct {
    const char *chip;
    double cycles;
  } theirs[] = {{"tpu-v4", 5074}, {"tpu-v5e", 10475}, {"tpu-v5p", 6789}, {"tpu-v6e", 8012}};
  for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
    SimReport *r = estimate(text, theirs[i].chip);
    within(r->cycles, theirs[i].cycles);
    for (int k = 0; k < r->n_kernels; k++) assert_string_not_equal(r->kernels[k].op, "dot_general");
    sim_report_free(r);
  }
}

/* Results whose images lie in lanes: filters stream past the images of one pixel at a time. */
static void test_images(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%w: tensor<3x3x32x64xf32>, %g: tensor<64x26x26x64xf32>) -> "
      "tensor<64x26x26x32xf32> {\n"
      "  %x = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]], reverse = [true, true]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<64x26x26x64xf32>, tensor<3x3x32x64xf32>) -> "
      "tensor<64x26x26x32xf32>\n  return %x : tensor<64x26x26x32xf32>\n}\n";
  static const struct {
    const char *chip;
    double cycles;
  } theirs[] = {{"tpu-v5e", 57508}, {"tpu-v5p", 31730}, {"tpu-v6e", 59215}, {"tpu7x", 58210}};
  for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
    SimReport *r = estimate(text, theirs[i].chip);
    within(r->cycles, theirs[i].cycles);
    sim_report_free(r);
  }
}

/* Attention that only goes forwards, of short rows: the product that divides the exponentials finds the
 * largest of each row as well, in a pass before. */
static void test_attention(void **state) {
  (void)state;
  static const char text[] =
      "!x = tensor<4x96x256xbf16>\n!w = tensor<256x256xbf16>\n!h = tensor<4x96x4x64xbf16>\n"
      "!b = tensor<4x4x96x96xbf16>\n!s = tensor<4x4x96x96xf32>\n!r = tensor<4x4x96xf32>\n"
      "!o = tensor<4x4x64x96xbf16>\n"
      "func.func public @main(%x: !x, %wq: !w, %wk: !w, %wv: !w, %wo: !w) -> !x {\n"
      "  %ql = stablehlo.dot_general %x, %wq, contracting_dims = [2] x [0] : (!x, !w) -> !x\n"
      "  %kl = stablehlo.dot_general %x, %wk, contracting_dims = [2] x [0] : (!x, !w) -> !x\n"
      "  %vl = stablehlo.dot_general %x, %wv, contracting_dims = [2] x [0] : (!x, !w) -> !x\n"
      "  %q = stablehlo.reshape %ql : (!x) -> !h\n"
      "  %k = stablehlo.reshape %kl : (!x) -> !h\n"
      "  %v = stablehlo.reshape %vl : (!x) -> !h\n"
      "  %c = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = "
      "[3] x [3] "
      ": (!h, !h) -> !b\n"
      "  %w = stablehlo.convert %c : (!b) -> !s\n"
      "  %f = stablehlo.constant dense<0.125> : !s\n"
      "  %s = stablehlo.multiply %w, %f : !s\n"
      "  %l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
      "  %m = stablehlo.reduce(%s init: %l) applies stablehlo.maximum across dimensions = [3] : "
      "(!s, tensor<f32>) -> !r\n"
      "  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (!r) -> !s\n"
      "  %d = stablehlo.subtract %s, %mb : !s\n"
      "  %e = stablehlo.exponential %d : !s\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %n = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : "
      "(!s, tensor<f32>) -> !r\n"
      "  %nb = stablehlo.broadcast_in_dim %n, dims = [0, 1, 2] : (!r) -> !s\n"
      "  %pw = stablehlo.divide %e, %nb : !s\n"
      "  %p = stablehlo.convert %pw : (!s) -> !b\n"
      "  %o = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = "
      "[1] x [3] "
      ": (!h, !b) -> !o\n"
      "  %t = stablehlo.transpose %o, dims = [0, 3, 1, 2] : (!o) -> !h\n"
      "  %j = stablehlo.reshape %t : (!h) -> !x\n"
      "  %y = stablehlo.dot_general %j, %wo, contracting_dims = [2] x [0] : (!x, !w) -> !x\n"
      "  %a = stablehlo.add %x, %y : !x\n"
      "  return %a : !x\n}\n";
  SimReport *r = estimate(text, "tpu-v6e");
  within(r->cycles, 17222);
  sim_report_free(r);
}

/* Attention in a loop over layers. JAX's scan hands the mask in, spread over all heads, beside what
 * hides: a kernel of attention knows its positions and reads neither. */
static void test_mask(void **state) {
  (void)state;
  static const char mask[] = "%r = stablehlo.iota dim = 1 : tensor<8x512x512xi32>\n"
                             "%l = stablehlo.iota dim = 2 : tensor<8x512x512xi32>\n"
                             "%in = stablehlo.compare GE, %r, %l, SIGNED : (tensor<8x512x512xi32>, "
                             "tensor<8x512x512xi32>) -> !m\n"
                             "%low = stablehlo.constant dense<-1.0e9> : !s\n";
  SimReport *r[2];
  for (int carried = 0; carried < 2; carried++) {
    char text[4000];
    snprintf(
        text, sizeof text,
        "!x = tensor<8x512x128xbf16>\n!b = tensor<8x512x512xbf16>\n!s = tensor<8x512x512xf32>\n"
        "!m = tensor<8x512x512xi1>\n!r = tensor<8x512xf32>\n!i = tensor<i32>\n"
        "func.func public @main(%%x: !x) -> !x {\n"
        "%%c = stablehlo.constant dense<0> : !i\n%s"
        "%%y:%d = stablehlo.while(%%i = %%c, %%q = %%x%s) : !i, !x%s\n"
        "cond {\n%%n = stablehlo.constant dense<6> : !i\n"
        "%%t = stablehlo.compare LT, %%i, %%n, SIGNED : (!i, !i) -> tensor<i1>\n"
        "stablehlo.return %%t : tensor<i1>\n} do {\n"
        "%%1 = stablehlo.constant dense<1> : !i\n%%j = stablehlo.add %%i, %%1 : !i\n%s"
        "%%p = stablehlo.dot_general %%q, %%q, batching_dims = [0] x [0], contracting_dims = [2] x "
        "[2] : (!x, !x) -> !b\n"
        "%%w = stablehlo.convert %%p : (!b) -> !s\n"
        "%%h = stablehlo.select %s, %%w, %s : !m, !s\n"
        "%%u = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%%g = stablehlo.reduce(%%h init: %%u) applies stablehlo.maximum across dimensions = [2] "
        ": (!s, tensor<f32>) -> !r\n"
        "%%gb = stablehlo.broadcast_in_dim %%g, dims = [0, 1] : (!r) -> !s\n"
        "%%d = stablehlo.subtract %%h, %%gb : !s\n%%e = stablehlo.exponential %%d : !s\n"
        "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%%k = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = [2] : "
        "(!s, tensor<f32>) -> !r\n"
        "%%kb = stablehlo.broadcast_in_dim %%k, dims = [0, 1] : (!r) -> !s\n"
        "%%v = stablehlo.divide %%e, %%kb : !s\n%%a = stablehlo.convert %%v : (!s) -> !b\n"
        "%%o = stablehlo.dot_general %%a, %%q, batching_dims = [0] x [0], contracting_dims = [2] x "
        "[1] : (!b, !x) -> !x\n"
        "stablehlo.return %%j, %%o%s : !i, !x%s\n}\nreturn %%y#1 : !x }\n",
        carried ? mask : "", carried ? 4 : 2, carried ? ", %f = %in, %h0 = %low" : "",
        carried ? ", !m, !s" : "", carried ? "" : mask, carried ? "%f" : "%in",
        carried ? "%h0" : "%low", carried ? ", %f, %h0" : "", carried ? ", !m, !s" : "");
    r[carried] = estimate_as(text, "tpu-v6e", &(SimOpts){.fused_attention = true});
  }
  near(r[1]->time_s, r[0]->time_s, 0.02);
  assert_true(r[1]->peak_bytes < r[0]->peak_bytes + (1 << 16));
  sim_report_free(r[0]);
  sim_report_free(r[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chains),    cmocka_unit_test(test_shared_memory),
      cmocka_unit_test(test_loads),     cmocka_unit_test(test_quotients),
      cmocka_unit_test(test_sums),      cmocka_unit_test(test_patches),
      cmocka_unit_test(test_vectors),   cmocka_unit_test(test_images),
      cmocka_unit_test(test_attention), cmocka_unit_test(test_mask),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
