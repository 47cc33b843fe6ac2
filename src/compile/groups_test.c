/* Convolutions of groups that are products: which ones become dot_general, and that the interpreter
 * answers the same before and after. */
#include "compile/pass_test.h"

typedef struct Case {
  const char *name, *dims, *window, *lhs, *rhs, *out, *groups;
  bool product;
} Case;

#define WEIGHTS "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
#define NHWC "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
#define GROUPS(n) "batch_group_count = 1 : i64, feature_group_count = " #n " : i64"

static Case cases[] = {
    {"examples", WEIGHTS, "", "4x6x7x3xf32", "1x5x5x8xf32", "2x3x3x8xf32", GROUPS(4), true},
    {"examples_padded", WEIGHTS, "pad = [[1, 1], [1, 0]]", "4x6x7x3xf32", "1x6x7x8xf32",
     "3x2x3x8xf32", GROUPS(4), true},
    {"examples_step", WEIGHTS, "rhs_dilate = [2, 3]", "4x9x11x2xf32", "1x4x4x12xf32",
     "3x2x2x12xf32", GROUPS(4), true},
    {"channels_first", "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]", "", "4x3x6x6xf32", "1x8x5x5xf32",
     "8x3x2x2xf32", GROUPS(4), true},
    {"several_to_a_group", NHWC, "stride = [2, 1]", "3x7x6x8xf32", "5x5x2x12xf32", "3x2x2x12xf32",
     GROUPS(4), true},
    {"1d", "[f, 0, b]x[i, 0, o]->[0, b, f]", "", "5x9x2xf32", "1x7x10xf32", "3x2x10xf32", GROUPS(5),
     true},
    {"small_windows", NHWC, "", "3x7x6x8xf32", "3x3x2x12xf32", "3x5x4x12xf32", GROUPS(4), false},
    {"depthwise", NHWC, "", "3x6x6x4xf32", "5x5x1x4xf32", "3x2x2x4xf32", GROUPS(4), false},
    {"one_group", WEIGHTS, "", "4x6x7x3xf32", "4x5x5x8xf32", "2x3x3x8xf32", GROUPS(1), false},
    {"reversed", WEIGHTS, "reverse = [true, false]", "4x6x7x3xf32", "1x5x5x8xf32", "2x3x3x8xf32",
     GROUPS(4), false},
};

static Module *read(const Case *c) {
  Buf b = {0};
  buf_printf(
      &b,
      "func.func @main(%%a: tensor<%s>, %%b: tensor<%s>) -> tensor<%s> { %%r = "
      "stablehlo.convolution(%%a, %%b) dim_numbers = %s, "
      "window = {%s} {%s} : (tensor<%s>, tensor<%s>) -> tensor<%s> return %%r : tensor<%s> }",
      c->lhs, c->rhs, c->out, c->dims, c->window, c->groups, c->lhs, c->rhs, c->out, c->out);
  Module *m = read_program((Str){b.p, b.n});
  buf_free(&b);
  return m;
}

static void product(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_groups(after));
  ok(ir_verify(after));
  bool convolution = false;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    convolution |= op->kind == OP_CONVOLUTION;
  assert_int_equal(convolution, !c->product);
  Tensor *in[2];
  const Region *r = module_main(before)->body;
  for (int i = 0; i < 2; i++) {
    const Type *t = r->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t k = 0; k < in[i]->count; k++)
      ((float *)in[i]->data)[k] = (float)((k * 37 + i * 11) % 19 - 9);
  }
  same_result(c->name, before, after, 2, in, 1e-30); /* small integers */
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, product, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("groups", tests, COUNT_OF(tests), NULL, NULL);
}
