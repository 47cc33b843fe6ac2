/* Products of what is repeated: which ones read it once, and that the interpreter answers the same
 * before and after. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *lhs, *rhs; /* arguments */
  const char *body;             /* %x, %y are made from %a, %b */
  const char *dims, *x, *y, *out;
  const char *want; /* the operands of the product afterwards */
} Case;

#define HEADS                                                                           \
  "%x = stablehlo.reshape %a : (tensor<2x6x3x5xf32>) -> tensor<2x6x3x5xf32>\n"          \
  "%r = stablehlo.broadcast_in_dim %b, dims = [0, 1, 3, 4] : (tensor<2x3x7x5xf32>) -> " \
  "tensor<2x3x2x7x5xf32>\n"                                                             \
  "%y = stablehlo.reshape %r : (tensor<2x3x2x7x5xf32>) -> tensor<2x6x7x5xf32>\n"
#define TILES                                                                           \
  "%x = stablehlo.reshape %a : (tensor<2x6x3x5xf32>) -> tensor<2x6x3x5xf32>\n"          \
  "%r = stablehlo.broadcast_in_dim %b, dims = [0, 2, 3, 4] : (tensor<2x3x7x5xf32>) -> " \
  "tensor<2x2x3x7x5xf32>\n"                                                             \
  "%y = stablehlo.reshape %r : (tensor<2x2x3x7x5xf32>) -> tensor<2x6x7x5xf32>\n"
#define TURNED                                                                          \
  "%x = stablehlo.reshape %a : (tensor<2x6x3x5xf32>) -> tensor<2x6x3x5xf32>\n"          \
  "%r = stablehlo.broadcast_in_dim %b, dims = [0, 1, 2, 4] : (tensor<2x7x3x5xf32>) -> " \
  "tensor<2x7x3x2x5xf32>\n"                                                             \
  "%s = stablehlo.reshape %r : (tensor<2x7x3x2x5xf32>) -> tensor<2x7x6x5xf32>\n"        \
  "%y = stablehlo.transpose %s, dims = [0, 2, 1, 3] : (tensor<2x7x6x5xf32>) -> "        \
  "tensor<2x6x7x5xf32>\n"
#define WEIGHTS                                                            \
  "%x = stablehlo.reshape %a : (tensor<4x3x5xf32>) -> tensor<4x3x5xf32>\n" \
  "%y = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<5x7xf32>) -> tensor<4x5x7xf32>\n"
#define ONE_QUERY                                                                       \
  "%y = stablehlo.reshape %b : (tensor<2x1x6x5xf32>) -> tensor<2x1x6x5xf32>\n"          \
  "%r = stablehlo.broadcast_in_dim %a, dims = [0, 1, 2, 4] : (tensor<2x7x3x5xf32>) -> " \
  "tensor<2x7x3x2x5xf32>\n"                                                             \
  "%x = stablehlo.reshape %r : (tensor<2x7x3x2x5xf32>) -> tensor<2x7x6x5xf32>\n"
#define FREE                                                                            \
  "%x = stablehlo.reshape %a : (tensor<2x6x3x5xf32>) -> tensor<2x6x3x5xf32>\n"          \
  "%r = stablehlo.broadcast_in_dim %b, dims = [0, 1, 2, 4] : (tensor<2x6x7x5xf32>) -> " \
  "tensor<2x6x7x2x5xf32>\n"                                                             \
  "%y = stablehlo.reshape %r : (tensor<2x6x7x2x5xf32>) -> tensor<2x6x14x5xf32>\n"
#define BATCHES "batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]"

static Case cases[] = {
    {"heads", "2x6x3x5", "2x3x7x5", HEADS, BATCHES, "2x6x3x5", "2x6x7x5", "2x6x3x7",
     "2x3x2x3x5 2x3x7x5"},
    {"tiles", "2x6x3x5", "2x3x7x5", TILES, BATCHES, "2x6x3x5", "2x6x7x5", "2x6x3x7",
     "2x6x3x5 2x6x7x5"}, /* the result would have to be turned, and is larger */
    {"turned", "2x6x3x5", "2x7x3x5", TURNED, BATCHES, "2x6x3x5", "2x6x7x5", "2x6x3x7",
     "2x3x2x3x5 2x7x3x5"},
    {"weights", "4x3x5", "5x7", WEIGHTS, "batching_dims = [0] x [0], contracting_dims = [2] x [1]",
     "4x3x5", "4x5x7", "4x3x7", "1x4x3x5 1x5x7"},
    {"one_query", "2x7x3x5", "2x1x6x5", ONE_QUERY,
     "batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]", "2x7x6x5", "2x1x6x5",
     "2x6x7x1", "2x7x3x5 2x1x3x2x5"}, /* turns a small result */
    {"free", "2x6x3x5", "2x6x7x5", FREE, BATCHES, "2x6x3x5", "2x6x14x5", "2x6x3x14",
     "2x6x3x5 2x6x14x5"}, /* not a batch */
};

static Module *read(const Case *c) {
  char *text =
      xasprintf("func.func @main(%%a: tensor<%sxf32>, %%b: tensor<%sxf32>) -> tensor<%sxf32> {\n%s"
                "%%z = stablehlo.dot_general %%x, %%y, %s : (tensor<%sxf32>, tensor<%sxf32>) -> "
                "tensor<%sxf32>\nreturn %%z : tensor<%sxf32>\n}\n",
                c->lhs, c->rhs, c->out, c->body, c->dims, c->x, c->y, c->out, c->out);
  Module *m = read_program(str_from(text));
  free(text);
  return m;
}

static void repeats(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_repeats(after));
  ok(pass_simplify(after));
  ok(ir_verify(after));
  Buf got = {0};
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    for (int k = 0; op->kind == OP_DOT_GENERAL && k < 2; k++)
      for (int i = 0; i < op->operands[k]->type->rank; i++)
        buf_printf(&got, "%s%lld",
                   i   ? "x"
                   : k ? " "
                       : "",
                   (long long)op->operands[k]->type->dims[i]);
  assert_string_equal(got.p, c->want);
  buf_free(&got);
  same_on_integers(c->name, before, after);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, repeats, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("repeats", tests, COUNT_OF(tests), NULL, NULL);
}
