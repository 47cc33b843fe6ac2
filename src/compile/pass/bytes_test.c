/* Products of small integers: with results of 8 and 16 bits they become ones of 32, cut off, and the interpreter
 * answers the same before and after; others stay. */
#include "compile/pass/pass_test.h"

static const struct {
  const char *lhs, *rhs, *out;
  bool left; /* as it is */
} cases[] = {{"i8", "i8", "i8", false},    {"ui8", "ui8", "ui8", false},
             {"i16", "i16", "i16", false}, {"ui8", "i8", "i16", false},
             {"i8", "i8", "i32", true},    {"i32", "i32", "i32", true},
             {"f16", "f16", "f16", true}};

static Module *read(int i) {
  char *text = xasprintf(
      "func.func @main(%%a: tensor<3x5x70x%s>, %%b: tensor<3x4x70x%s>) -> tensor<3x5x4x%s> {\n"
      "%%r = stablehlo.dot_general %%a, %%b, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[2] "
      ": (tensor<3x5x70x%s>, tensor<3x4x70x%s>) -> tensor<3x5x4x%s>\n"
      "return %%r : tensor<3x5x4x%s>\n}",
      cases[i].lhs, cases[i].rhs, cases[i].out, cases[i].lhs, cases[i].rhs, cases[i].out,
      cases[i].out);
  Module *m = read_program(str_from(text));
  free(text);
  return m;
}

static void test_summed_in_32_bits(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Module *before = read(i), *after = read(i);
    ok(pass_bytes(after));
    ok(ir_verify(after));
    for (const Op *op = module_main(after)->body->first; op; op = op->next)
      if (op->kind == OP_DOT_GENERAL && !cases[i].left)
        assert_int_equal(op_type(op)->dtype, DT_I32);
      else assert_true(op->kind != OP_CONVERT || !cases[i].left);
    same_on_integers(cases[i].out, before, after); /* sums do not fit 8 bits */
  }
}

static void test_convolutions(void **state) {
  (void)state;
  Str text = STR(
      "func.func @main(%a: tensor<1x6x5x9xi8>, %b: tensor<3x3x9x4xi8>) -> tensor<1x4x3x4xi8> {\n"
      "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
      ": (tensor<1x6x5x9xi8>, tensor<3x3x9x4xi8>) -> tensor<1x4x3x4xi8>\n"
      "return %r : tensor<1x4x3x4xi8>\n}");
  Module *before = read_program(text), *after = read_program(text);
  ok(pass_bytes(after));
  ok(ir_verify(after));
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    if (op->kind == OP_CONVOLUTION) assert_int_equal(op_type(op)->dtype, DT_I32);
  same_on_integers("convolution", before, after);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_summed_in_32_bits),
                                     cmocka_unit_test(test_convolutions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
