/* Poolings that are reductions or repeat elements: no reduce_window is left where that is so, and
 * the interpreter answers the same before and after. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *in, *pad, *padded, *out, *window, *op, *init;
  bool left; /* as it is */
} Case;

static Case cases[] = {
    {"whole_max", "2x3x4x5", NULL, NULL, "2x1x1x5", "window_dimensions = array<i64: 1, 3, 4, 1>",
     "maximum", "0xFF800000", false},
    {"whole_sum_first", "2x3x4x5", NULL, NULL, "2x3x1x1",
     "window_dimensions = array<i64: 1, 1, 4, 5>, window_strides = array<i64: 1, 1, 4, 5>", "add",
     "0.0", false},
    {"whole_with_start", "2x3x4x5", NULL, NULL, "2x3x1x1",
     "window_dimensions = array<i64: 1, 1, 4, 5>", "add", "1.0", true},
    {"nearly_whole", "2x3x4x5", NULL, NULL, "2x3x1x2", "window_dimensions = array<i64: 1, 1, 4, 4>",
     "add", "0.0", true},
    {"repeated", "2x3x4x5", "low = [0, 1, 2, 0], high = [0, 1, 2, 0], interior = [0, 1, 2, 0]",
     "2x7x14x5", "2x6x12x5", "window_dimensions = array<i64: 1, 2, 3, 1>", "add", "0.0", false},
    {"repeated_with_rest", "2x3x4x5",
     "low = [0, 2, 2, 0], high = [0, 3, 2, 0], interior = [0, 1, 2, 0]", "2x10x14x5", "2x9x12x5",
     "window_dimensions = array<i64: 1, 2, 3, 1>", "add", "0.0", false},
    {"repeated_cut", "2x3x4x5", "low = [0, 0, 2, 0], high = [0, 1, 1, 0], interior = [0, 1, 2, 0]",
     "2x6x13x5", "2x5x11x5", "window_dimensions = array<i64: 1, 2, 3, 1>", "add", "0.0", false},
    {"repeated_one", "2x1x1x5", "low = [0, 6, 6, 0], high = [0, 6, 6, 0], interior = [0, 0, 0, 0]",
     "2x13x13x5", "2x7x7x5", "window_dimensions = array<i64: 1, 7, 7, 1>", "add", "0.0", false},
    {"overlapping", "2x3x4x5", "low = [0, 2, 2, 0], high = [0, 2, 2, 0], interior = [0, 1, 1, 0]",
     "2x9x11x5", "2x7x9x5", "window_dimensions = array<i64: 1, 3, 3, 1>", "add", "0.0", true},
};

static Module *read(const Case *c) {
  char *pad = c->pad ? xasprintf("%%x = stablehlo.pad %%a, %%z, %s : (tensor<%sxf32>, tensor<f32>) "
                                 "-> tensor<%sxf32>\n",
                                 c->pad, c->in, c->padded)
                     : xstrdup("");
  char *text = xasprintf("func.func @main(%%a: tensor<%sxf32>) -> tensor<%sxf32> {\n"
                         "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
                         "%%i = stablehlo.constant dense<%s> : tensor<f32>\n%s"
                         "%%w = \"stablehlo.reduce_window\"(%s, %%i) <{%s}> ({\n"
                         "^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\n"
                         "%%r = stablehlo.%s %%p, %%q : tensor<f32>\n"
                         "stablehlo.return %%r : tensor<f32>\n"
                         "}) : (tensor<%sxf32>, tensor<f32>) -> tensor<%sxf32>\n"
                         "return %%w : tensor<%sxf32>\n}\n",
                         c->in, c->out, c->init, pad, c->pad ? "%x" : "%a", c->window, c->op,
                         c->pad ? c->padded : c->in, c->out, c->out);
  Module *m = read_program(str_from(text));
  free(pad);
  free(text);
  return m;
}

static void pools(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_pools(after));
  ok(ir_verify(after));
  int windows = 0;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    windows += op->kind == OP_REDUCE_WINDOW;
  assert_int_equal(windows, c->left);
  const Type *t = module_main(before)->body->args[0]->type;
  Tensor *in = tensor_make(t->dtype, t->rank, t->dims);
  for (int64_t i = 0; i < (int64_t)tensor_bytes(in) / 4; i++)
    ((float *)in->data)[i] = (float)(i * 37 % 101 - 50);
  same_result(c->name, before, after, 1, &in, 0);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, pools, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("pools", tests, COUNT_OF(tests), NULL, NULL);
}
