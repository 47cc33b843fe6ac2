/* Convolutions that are products: which ones become dot_general, and that the interpreter answers
 * the same before and after. */
#include "compile/pass_test.h"

typedef struct Case {
  const char *name, *dims, *window, *lhs, *rhs, *out, *groups;
  bool product;
} Case;

#define NHWC "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
#define ONE "batch_group_count = 1 : i64, feature_group_count = 1 : i64"

static Case cases[] = {
    {"1x1", NHWC, "", "2x5x4x3xf32", "1x1x3x6xf32", "2x5x4x6xf32", ONE, true},
    {"1x1_step", NHWC, "stride = [2, 3]", "2x5x7x3xf32", "1x1x3x6xf32", "2x3x3x6xf32", ONE, true},
    {"1x1_step_inside", NHWC, "stride = [2, 2], pad = [[-1, 0], [0, -2]]", "2x6x7x3xf32",
     "1x1x3x6xf32", "2x3x3x6xf32", ONE, true},
    {"1x1_padded", NHWC, "pad = [[1, 0], [-1, 2]]", "2x5x4x3xf32", "1x1x3x6xf32", "2x6x5x6xf32",
     ONE, true},
    {"1x1_step_padded", NHWC, "stride = [2, 2], pad = [[1, 1], [0, 0]]", "2x5x4x3xf32",
     "1x1x3x6xf32", "2x4x2x6xf32", ONE, false},
    {"1x1_data", "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
     "pad = [[0, 1], [0, 0]], lhs_dilate = [2, 2]", "2x3x4x6xf32", "1x1x3x6xf32", "2x6x7x3xf32",
     ONE, true},
    {"1x1_weights", "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
     "pad = [[0, 0], [0, -1]], rhs_dilate = [1, 2]", "4x5x6x3xf32", "4x5x3x6xf32", "1x1x3x6xf32",
     ONE, true},
    {"1x1_channels_first", "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "", "2x3x5x4xf32",
     "6x3x1x1xf32", "2x6x5x4xf32", ONE, false},
    {"one_image_channels_first", "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "", "1x3x5x4xf32",
     "6x3x1x1xf32", "1x6x5x4xf32", ONE, true},
    {"whole_map", NHWC, "", "2x5x4x3xf32", "5x4x3x6xf32", "2x1x1x6xf32", ONE, true},
    {"whole_map_reversed", NHWC, "reverse = [true, false]", "2x5x4x3xf32", "5x4x3x6xf32",
     "2x1x1x6xf32", ONE, false},
    {"whole_width", NHWC, "pad = [[0, 0], [0, 0]]", "2x5x4x3xf32", "1x4x3x6xf32", "2x5x1x6xf32",
     ONE, true},
    {"3x3", NHWC, "pad = [[1, 1], [1, 1]]", "2x5x4x3xf32", "3x3x3x6xf32", "2x5x4x6xf32", ONE,
     false},
    {"1d", "[b, 0, f]x[0, i, o]->[b, 0, f]", "", "2x5x3xf32", "1x3x6xf32", "2x5x6xf32", ONE, true},
    {"0d", "[b, f]x[i, o]->[b, f]", "", "2x3xf32", "3x6xf32", "2x6xf32", ONE, true},
    {"groups", NHWC, "", "2x5x4x4xf32", "1x1x2x6xf32", "2x5x4x6xf32",
     "batch_group_count = 1 : i64, feature_group_count = 2 : i64", false},
    {"no_batch", NHWC, "", "0x5x4x3xf32", "1x1x3x6xf32", "0x5x4x6xf32", ONE, false},
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
  ok(pass_products(after));
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
  return _cmocka_run_group_tests("products", tests, COUNT_OF(tests), NULL, NULL);
}
