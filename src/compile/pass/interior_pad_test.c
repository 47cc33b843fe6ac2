/* What is spread out between zeros: which pads have edges only afterwards, and that the interpreter
 * answers the same before and after. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *in, *pad, *out;
  bool edges; /* has no steps left */
} Case;

static Case cases[] = {
    {"first_half", "3x4x20", "low = [0, 0, 0], high = [0, 1, 0], interior = [0, 1, 0]", "3x8x20",
     true},
    {"second_half", "3x4x20", "low = [0, 1, 0], high = [0, 0, 0], interior = [0, 1, 0]", "3x8x20",
     true},
    {"thirds", "4x5x4", "low = [4, 0, 0], high = [7, 0, 0], interior = [2, 0, 0]", "21x5x4", true},
    {"odd", "3x4x20", "low = [0, 0, 0], high = [0, 0, 0], interior = [0, 1, 0]", "3x7x20", false},
    {"short_rows", "3x20x4", "low = [0, 0, 0], high = [0, 1, 0], interior = [0, 1, 0]", "3x40x4",
     false},
    {"two", "4x4x20", "low = [0, 0, 0], high = [1, 1, 0], interior = [1, 1, 0]", "8x8x20", false},
    {"edges", "4x4x20", "low = [1, 0, 0], high = [0, 1, 0], interior = [1, 0, 0]", "8x5x20", false},
    {"cut", "4x4x20", "low = [-2, 0, 0], high = [1, 0, 0], interior = [1, 0, 0]", "6x4x20", false},
};

static Module *read(const Case *c) {
  char *text = xasprintf(
      "func.func @main(%%a: tensor<%sxf32>, %%b: tensor<%sxf32>) -> tensor<%sxf32> {\n"
      "%%z = stablehlo.constant dense<2.0> : tensor<f32>\n"
      "%%x = stablehlo.pad %%a, %%z, %s : (tensor<%sxf32>, tensor<f32>) -> tensor<%sxf32>\n"
      "%%y = stablehlo.add %%b, %%x : tensor<%sxf32>\nreturn %%y : tensor<%sxf32>\n}\n",
      c->in, c->out, c->out, c->pad, c->in, c->out, c->out, c->out);
  Module *m = read_program(str_from(text));
  free(text);
  return m;
}

static void spread(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_interior_pad(after));
  ok(ir_verify(after));
  bool steps = false;
  for (const Op *op = module_main(after)->body->first; op; op = op->next) {
    const int64_t *v;
    int n = op->kind == OP_PAD ? op_ints(op, "interior_padding", &v) : 0;
    for (int i = 0; i < n; i++) steps |= v[i] != 0;
  }
  assert_int_equal(steps, !c->edges);
  Tensor *in[2];
  for (int i = 0; i < 2; i++) {
    const Type *t = module_main(before)->body->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t k = 0; k < in[i]->count; k++) ((float *)in[i]->data)[k] = (float)(k + 1000 * i);
  }
  same_result(c->name, before, after, 2, in, 0);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, spread, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("interior_pad", tests, COUNT_OF(tests), NULL, NULL);
}
