/* Products with an algorithm: which operands are rounded, that no algorithm is left where the types
 * are floats, and that the interpreter answers the same before and after. */
#include "compile/pass/pass_test.h"

static const struct {
  const char *in, *out, *precision, *sum;
  int products;
  const char *left; /* operand type of the product then; NULL: the product stays as it is */
  double tol;
} cases[] = {
    {"bf16", "f32", "bf16", "f32", 1, "bf16", 1e-6}, /* jax.nn.dot_product_attention */
    {"bf16", "bf16", "bf16", "f32", 1, "bf16", 1e-2},
    {"f32", "f32", "bf16", "f32", 1, "bf16", 1e-6},
    {"f32", "f32", "f16", "f16", 1, "f16", 1e-6},
    {"f16", "f32", "bf16", "f32", 1, "bf16", 1e-6},
    {"f32", "f32", "tf32", "f32", 1, "f32", 1e-6},
    {"f32", "f32", "f32", "f32", 1, "f32", 1e-6},
    {"bf16", "f32", "f32", "f32", 1, "bf16", 1e-6},
    {"f32", "f32", "bf16", "f32", 3, "f32", 1e-4},
    {"f32", "f32", "tf32", "f32", 3, "f32", 1e-5},
    {"f32", "f32", "f64", "f64", 1, "f64", 1e-6},
    {"f64", "f64", "f32", "f32", 1, "f32", 1e-5},
    {"f8E5M2", "f32", "f8E5M2", "f32", 1, "bf16", 1e-6},
    {"f8E4M3FN", "bf16", "f8E4M3FN", "f32", 1, "bf16", 1e-2},
};

static Tensor *some(const Type *t, int seed) {
  Tensor *x = tensor_make(t->dtype, t->rank, t->dims);
  for (int64_t k = 0; k < x->count; k++)
    elem_set_f64(t->dtype, tensor_at(x, k), sin((double)(k * 7 + seed)));
  return x;
}

static void same_answer(void **state) {
  (void)state;
  for (int c = 0; c < COUNT_OF(cases); c++) {
    char *text = xasprintf(
        "func.func @main(%%a: tensor<3x5x7x%s>, %%b: tensor<3x7x4x%s>) -> tensor<3x5x4x%s> {\n"
        "  %%0 = stablehlo.dot_general %%a, %%b, batching_dims = [0] x [0], contracting_dims = [2] "
        "x "
        "[1], algorithm = <lhs_precision_type = %s, rhs_precision_type = %s, accumulation_type = "
        "%s, "
        "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = %d, "
        "allow_imprecise_accumulation = false> : (tensor<3x5x7x%s>, tensor<3x7x4x%s>) -> "
        "tensor<3x5x4x%s>\n  return %%0 : tensor<3x5x4x%s>\n}\n",
        cases[c].in, cases[c].in, cases[c].out, cases[c].precision, cases[c].precision,
        cases[c].sum, cases[c].products, cases[c].in, cases[c].in, cases[c].out, cases[c].out);
    Module *before = read_program(str_from(text)), *after = read_program(str_from(text));
    ok(pass_algorithms(after));
    ok(ir_verify(after));
    for (const Op *op = module_main(after)->body->first; op; op = op->next) {
      if (op->kind != OP_DOT_GENERAL) continue;
      bool rewritten = !op_attr(op, "lhs_precision_type");
      if (rewritten != (cases[c].left != NULL)) fail_msg("%d products of\n%s", rewritten, text);
      if (rewritten) assert_string_equal(dtype_name(op->operands[0]->type->dtype), cases[c].left);
    }
    Tensor *in[2];
    for (int i = 0; i < 2; i++) in[i] = some(module_main(before)->body->args[i]->type, i);
    same_result(text, before, after, 2, in, cases[c].tol);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_answer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
