/* Products that are written as multiplications: which ones, in any order of dimensions, and that the
 * interpreter answers the same before and after. */
#include "compile/pass/pass_test.h"

static const struct {
  const char *dims, *lhs, *rhs, *out;
  bool rewritten;
} cases[] = {
    {"contracting_dims = [1] x [0]", "5x1", "1x7", "5x7x", true}, /* outer */
    {"contracting_dims = [] x []", "5", "7", "5x7x", true},
    {"batching_dims = [1] x [0], contracting_dims = [0] x [2]", "1x3x2", "3x4x1", "3x2x4x", true},
    {"batching_dims = [0] x [0], contracting_dims = [1] x [1]", "9x30", "9x30", "9x",
     true}, /* dots */
    {"batching_dims = [0] x [0], contracting_dims = [2] x [1]", "9x1x30", "9x30x1", "9x1x1x", true},
    {"batching_dims = [1] x [0], contracting_dims = [0] x [1]", "30x9", "9x30", "9x", true},
    {"batching_dims = [0] x [0], contracting_dims = [2] x [1]", "9x6x30", "9x30", "9x6x",
     true}, /* x vector */
    {"batching_dims = [0] x [0], contracting_dims = [1] x [1]", "9x30", "9x30x6", "9x6x", true},
    {"batching_dims = [0, 2] x [0, 1], contracting_dims = [3] x [2]", "3x5x4x6", "3x4x6", "3x4x5x",
     true},
    {"batching_dims = [0] x [0], contracting_dims = [1, 3] x [2, 1]", "9x2x4x3", "9x3x2", "9x4x",
     true},
    {"batching_dims = [0] x [0], contracting_dims = [2] x [1]", "20x3x3", "20x3x3", "20x3x3x",
     true},
    {"batching_dims = [2] x [1], contracting_dims = [0] x [2]", "4x5x20", "3x20x4", "20x5x3x",
     true},
    {"batching_dims = [0] x [0], contracting_dims = [2, 1] x [1, 3]", "20x2x3x2", "20x3x4x2",
     "20x2x4x", true},
    {"batching_dims = [0] x [0], contracting_dims = [2] x [1]", "2x3x3", "2x3x3", "2x3x3x", false},
    {"batching_dims = [0] x [0], contracting_dims = [2] x [1]", "20x9x20", "20x20x9", "20x9x9x",
     false},
    {"contracting_dims = [1] x [0]", "50x20", "20", "50x", true},
    {"contracting_dims = [2] x [0]", "200x150x3", "3", "200x150x", true},
    {"contracting_dims = [0] x [1]", "4", "30000x4", "30000x", true},
    {"contracting_dims = [0] x [0]", "50", "50x20", "20x", false},
    {"contracting_dims = [0] x [0]", "50", "50", "", false},
    {"contracting_dims = [0] x [0]", "500x200", "500", "200x", false},
    {"contracting_dims = [1] x [0]", "30x3", "3x30", "30x30x", false},
};

/* No dot_general is left if it is `rewritten`, and the answer is as before. */
static void check(const char *text, bool rewritten) {
  Module *before = read_program(str_from(text)), *after = read_program(str_from(text));
  ok(pass_tiny_products(after));
  ok(ir_verify(after));
  bool product = false;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    product |= op->kind == OP_DOT_GENERAL;
  if (product == rewritten) fail_msg("%s\n%s", product ? "is left" : "is not", text);
  same_on_integers(text, before, after);
}

/* Halves as f32: multiplied and added in f32, rounded to the result's type. */
static void same_answer(void **state) {
  (void)state;
  static const struct {
    const char *in, *out;
  } types[] = {{"f32", "f32"}, {"bf16", "bf16"}, {"f16", "f16"}, {"bf16", "f32"}, {"f16", "f32"}};
  for (int i = 0; i < COUNT_OF(cases) * COUNT_OF(types); i++) {
    const char *in = types[i % COUNT_OF(types)].in, *out = types[i % COUNT_OF(types)].out;
    int c = i / COUNT_OF(types);
    char *text =
        xasprintf("func.func @main(%%a: tensor<%sx%s>, %%b: tensor<%sx%s>) -> tensor<%s%s> {\n"
                  "  %%0 = stablehlo.dot_general %%a, %%b, %s : (tensor<%sx%s>, tensor<%sx%s>) -> "
                  "tensor<%s%s>\n  return %%0 : tensor<%s%s>\n}\n",
                  cases[c].lhs, in, cases[c].rhs, in, cases[c].out, out, cases[c].dims,
                  cases[c].lhs, in, cases[c].rhs, in, cases[c].out, out, cases[c].out, out);
    check(text, cases[c].rewritten);
    free(text);
  }
}

/* By a vector whatever the size; not by a matrix. */
static void integers(void **state) {
  (void)state;
  static const char *types[] = {"i8", "ui16", "i32", "ui64"};
  static const struct {
    const char *dims, *lhs, *rhs, *out;
    bool rewritten;
  } rows[] = {{"[1] x [0]", "300x250", "250", "300x", true},
              {"[0] x [0]", "250", "250x300", "300x", true},
              {"[0] x [0]", "50", "50", "", true},
              {"[1] x [0]", "30x25", "25x20", "30x20x", false}};
  for (int c = 0; c < COUNT_OF(rows) * COUNT_OF(types); c++) {
    const char *t = types[c % COUNT_OF(types)], *l = rows[c / COUNT_OF(types)].lhs,
               *r = rows[c / COUNT_OF(types)].rhs, *o = rows[c / COUNT_OF(types)].out;
    char *text =
        xasprintf("func.func @main(%%a: tensor<%sx%s>, %%b: tensor<%sx%s>) -> tensor<%s%s> {\n"
                  "  %%0 = stablehlo.dot_general %%a, %%b, contracting_dims = %s : (tensor<%sx%s>, "
                  "tensor<%sx%s>) -> tensor<%s%s>\n  return %%0 : tensor<%s%s>\n}\n",
                  l, t, r, t, o, t, rows[c / COUNT_OF(types)].dims, l, t, r, t, o, t, o, t);
    check(text, rows[c / COUNT_OF(types)].rewritten);
    free(text);
  }
}

/* Operands are multiplied as they are before they are transposed: which dimension is summed over
 * decides. */
static void transposed(void **state) {
  (void)state;
  static const struct {
    const char *lhs, *rhs, *perm, *turned;
    bool rewritten;
  } rows[] = {{"9x1x30", "9x600x30", "[0, 2, 1]", "9x30x600", true},
              {"9x1x30", "600x9x30", "[1, 2, 0]", "9x30x600", true},
              {"9x1x30", "9x30x600", "[0, 1, 2]", "9x30x600", false},
              {"9x1x30", "30x600x9", "[2, 0, 1]", "9x30x600", false}};
  for (int c = 0; c < COUNT_OF(rows); c++) {
    char *text = xasprintf(
        "func.func @main(%%a: tensor<%sxf32>, %%b: tensor<%sxf32>) -> tensor<9x1x600xf32> {\n"
        "  %%0 = stablehlo.transpose %%b, dims = %s : (tensor<%sxf32>) -> tensor<%sxf32>\n"
        "  %%1 = stablehlo.dot_general %%a, %%0, batching_dims = [0] x [0], contracting_dims = [2] "
        "x [1] : (tensor<%sxf32>, tensor<%sxf32>) -> tensor<9x1x600xf32>\n"
        "  return %%1 : tensor<9x1x600xf32>\n}\n",
        rows[c].lhs, rows[c].rhs, rows[c].perm, rows[c].rhs, rows[c].turned, rows[c].lhs,
        rows[c].turned);
    check(text, rows[c].rewritten);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_answer), cmocka_unit_test(integers),
                                     cmocka_unit_test(transposed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
