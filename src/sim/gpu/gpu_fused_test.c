/* What is computed again and what is stored in compiled programs on a GPU: memory and kernels as XLA 0.10.2 plans them
 * ahead of time for an H100 and an A100. */
#include "sim/estimate_test.h"

#define SUM(x, dim, in, out)                                                                      \
  "%s = stablehlo.reduce(" x " init: %z) applies stablehlo.add across dimensions = [" dim "] : (" \
  "tensor<" in "xf32>, tensor<f32>) -> tensor<" out "xf32>\n"
#define ZERO "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"

typedef struct Plans {
  double bytes; /* of temporaries */
  int kernels;
} Plans;

static Plans plans(const char *program, const char *chip) {
  SimReport *r = estimate_as(program, chip, &(SimOpts){.library = true});
  Plans p = {r->temp_bytes, r->n_kernels};
  sim_report_free(r);
  return p;
}

static void check(const char *program, const char *chip, double bytes, int kernels) {
  Plans p = plans(program, chip);
  if (bytes > 0) near(p.bytes, bytes, 1e-3);
  else assert_true(p.bytes < 1024);
  assert_int_equal(p.kernels, kernels);
}

/* What cuDNN adds to a convolution is read from memory. (XLA has one kernel more, which makes a bias of zeros.) */
static void test_side(void **state) {
  (void)state;
#define IMAGE "tensor<8x32x32x64xbf16>"
  const char *program =
      "func.func @main(%x: " IMAGE ", %w: tensor<1x1x64x64xbf16>, %a: " IMAGE ") -> " IMAGE " {\n"
      "%s = stablehlo.tanh %a : " IMAGE "\n"
      "%y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (" IMAGE ", tensor<1x1x64x64xbf16>) -> " IMAGE "\n"
      "%r = stablehlo.add %s, %y : " IMAGE "\nreturn %r : " IMAGE " }";
  check(program, "H100-SXM", 1057152, 3);
}

/* A block sums up more columns of narrow elements at once, so that there are fewer: of f32, what is made of them is
 * read faster than it is computed. */
static void test_narrow(void **state) {
  (void)state;
  const char *program =
      "func.func @main(%a: tensor<3136x512xbf16>, %v: tensor<512xf32>) -> tensor<512xf32> {\n"
      "%c = stablehlo.convert %a : (tensor<3136x512xbf16>) -> tensor<3136x512xf32>\n"
      "%b = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<512xf32>) -> tensor<3136x512xf32>\n"
      "%m = stablehlo.multiply %c, %b : tensor<3136x512xf32>\n"
      "%n = stablehlo.negate %m : tensor<3136x512xf32>\n" ZERO SUM(
          "%n", "0", "3136x512", "512") "return %s : tensor<512xf32> }";
  check(program, "H100-SXM", 3136.0 * 512 * 4, 2);
}

/* Products of bf16 are an instruction on an H100; an A100 makes them in f32, and what is between is not rounded. */
static void test_instruction(void **state) {
  (void)state;
  const char *program =
      "func.func @main(%a: tensor<3136x512xbf16>, %b: tensor<3136x512xbf16>) -> tensor<512xf32> {\n"
      "%m = stablehlo.multiply %a, %b : tensor<3136x512xbf16>\n"
      "%c = stablehlo.convert %m : (tensor<3136x512xbf16>) -> tensor<3136x512xf32>\n" ZERO SUM(
          "%c", "0", "3136x512", "512") "return %s : tensor<512xf32> }";
  check(program, "H100-SXM", 3136.0 * 512 * 2, 2);
  check(program, "A100-80GB", 3136.0 * 512 * 4, 2);
}

/* Whoever reads a concatenation puts it together. */
static void test_beside(void **state) {
  (void)state;
  const char *program =
      "func.func @main(%a: tensor<4096x64xf32>, %b: tensor<4096x64xf32>) -> (tensor<4096x128xf32>, "
      "tensor<128xf32>) {\n"
      "%c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> "
      "tensor<4096x128xf32>\n" ZERO SUM(
          "%c", "0", "4096x128", "128") "%e = stablehlo.negate %c : tensor<4096x128xf32>\n"
                                        "return %e, %s : tensor<4096x128xf32>, tensor<128xf32> }";
  check(program, "A100-80GB", 0, 2);
}

/* A loop over what is summed up goes with the sum. */
static void test_sibling(void **state) {
  (void)state;
  const char *program =
      "func.func @main(%a: tensor<8192x256xf32>) -> (tensor<8192x256xf32>, tensor<256xf32>) "
      "{\n" ZERO SUM("%a", "0", "8192x256",
                     "256") "%e = stablehlo.tanh %a : tensor<8192x256xf32>\n"
                            "return %e, %s : tensor<8192x256xf32>, tensor<256xf32> }";
  check(program, "H100-SXM", 64 * 256 * 4, 2);
}

/* Long sums are cut where least is left over, longer than they are if need be: 18144 as 126 of 144, 50257 as 140 of
 * 359. */
static void test_cut(void **state) {
  (void)state;
  check("func.func @main(%a: tensor<18144x256xf32>) -> tensor<256xf32> {\n" ZERO SUM(
            "%a", "0", "18144x256", "256") "return %s : tensor<256xf32> }",
        "H100-SXM", 126 * 256 * 4, 2);
  check("func.func @main(%a: tensor<64x50257xf32>) -> tensor<64xf32> {\n" ZERO SUM(
            "%a", "1", "64x50257", "64") "return %s : tensor<64xf32> }",
        "H100-SXM", 64 * 140 * 4, 2);
}

/* Where several dimensions are summed up, XLA rounds before; of one it adds up what was not rounded. */
static void test_rounded(void **state) {
  (void)state;
  const char *program =
      "func.func @main(%a: tensor<3072x1152xbf16>, %b: tensor<3072x1152xbf16>, %w: "
      "tensor<1152x128xbf16>) -> (tensor<3072x128xbf16>, tensor<1152xbf16>) {\n"
      "%d = stablehlo.add %a, %b : tensor<3072x1152xbf16>\n"
      "%e = stablehlo.divide %d, %b : tensor<3072x1152xbf16>\n"
      "%z = stablehlo.constant dense<0.0> : tensor<bf16>\n"
      "%s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<3072x1152xbf16>, tensor<bf16>) -> tensor<1152xbf16>\n"
      "%y = stablehlo.dot_general %e, %w, contracting_dims = [1] x [0] : (tensor<3072x1152xbf16>, "
      "tensor<1152x128xbf16>) -> tensor<3072x128xbf16>\n"
      "return %y, %s : tensor<3072x128xbf16>, tensor<1152xbf16> }";
  check(program, "A100-80GB", 21233936, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_side),        cmocka_unit_test(test_narrow),
      cmocka_unit_test(test_instruction), cmocka_unit_test(test_beside),
      cmocka_unit_test(test_sibling),     cmocka_unit_test(test_cut),
      cmocka_unit_test(test_rounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
