/* Which products become weft.resample, and that the interpreter answers the same before and after. */
#include "compile/pass/pass_test.h"

#define WEIGHTS                                                                              \
  "  %half = stablehlo.constant dense<0.5> : tensor<4xf32>\n"                                \
  "  %step = stablehlo.constant dense<1.75> : tensor<4xf32>\n"                               \
  "  %i = stablehlo.iota dim = 0 : tensor<4xf32>\n"                                          \
  "  %i1 = stablehlo.add %i, %half : tensor<4xf32>\n"                                        \
  "  %i2 = stablehlo.multiply %i1, %step : tensor<4xf32>\n"                                  \
  "  %at = stablehlo.subtract %i2, %half : tensor<4xf32>\n"                                  \
  "  %p = stablehlo.iota dim = 0 : tensor<7xf32>\n"                                          \
  "  %a = stablehlo.broadcast_in_dim %at, dims = [1] : (tensor<4xf32>) -> tensor<7x4xf32>\n" \
  "  %b = stablehlo.broadcast_in_dim %p, dims = [0] : (tensor<7xf32>) -> tensor<7x4xf32>\n"  \
  "  %c = stablehlo.subtract %a, %b : tensor<7x4xf32>\n"                                     \
  "  %d = stablehlo.abs %c : tensor<7x4xf32>\n"                                              \
  "  %one = stablehlo.constant dense<1.0> : tensor<7x4xf32>\n"                               \
  "  %none = stablehlo.constant dense<0.0> : tensor<7x4xf32>\n"                              \
  "  %e = stablehlo.subtract %one, %d : tensor<7x4xf32>\n"                                   \
  "  %w = stablehlo.maximum %none, %e : tensor<7x4xf32>\n"

typedef struct Text {
  const char *name, *text;
  int resamples, dots, transposes;
} Text;

static Text cases[] = {
    {"two_dimensions",
     "func.func @main(%x: tensor<2x7x7x3xf32>) -> tensor<2x4x4x3xf32> {\n" WEIGHTS
     "  %y = stablehlo.dot_general %w, %x, contracting_dims = [0] x [1] : (tensor<7x4xf32>, "
     "tensor<2x7x7x3xf32>) -> tensor<4x2x7x3xf32>\n"
     "  %z = stablehlo.dot_general %y, %w, contracting_dims = [2] x [0] : (tensor<4x2x7x3xf32>, "
     "tensor<7x4xf32>) -> tensor<4x2x3x4xf32>\n"
     "  %r = stablehlo.transpose %z, dims = [1, 0, 3, 2] : (tensor<4x2x3x4xf32>) -> "
     "tensor<2x4x4x3xf32>\n"
     "  return %r : tensor<2x4x4x3xf32>\n}\n",
     1, 0, 0},
    {"gradient", /* its matrix is turned, by the one transpose */
     "func.func @main(%x: tensor<2x3x4x4xf32>) -> tensor<2x3x7x7xf32> {\n" WEIGHTS
     "  %t = stablehlo.transpose %x, dims = [2, 0, 1, 3] : (tensor<2x3x4x4xf32>) -> "
     "tensor<4x2x3x4xf32>\n"
     "  %y = stablehlo.dot_general %t, %w, contracting_dims = [3] x [1] : (tensor<4x2x3x4xf32>, "
     "tensor<7x4xf32>) -> tensor<4x2x3x7xf32>\n"
     "  %z = stablehlo.dot_general %y, %w, contracting_dims = [0] x [1] : (tensor<4x2x3x7xf32>, "
     "tensor<7x4xf32>) -> tensor<2x3x7x7xf32>\n"
     "  %r = stablehlo.transpose %z, dims = [0, 1, 3, 2] : (tensor<2x3x7x7xf32>) -> "
     "tensor<2x3x7x7xf32>\n"
     "  return %r : tensor<2x3x7x7xf32>\n}\n",
     1, 0, 1},
    {"each_its_own",
     "func.func @main(%x: tensor<2x7x5xf32>, %s: tensor<2xf32>) -> tensor<2x4x5xf32> {\n" WEIGHTS
     "  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<2xf32>) -> tensor<2x7x4xf32>\n"
     "  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<7x4xf32>) -> "
     "tensor<2x7x4xf32>\n"
     "  %f = stablehlo.subtract %sb, %db : tensor<2x7x4xf32>\n"
     "  %nb = stablehlo.constant dense<0.0> : tensor<2x7x4xf32>\n"
     "  %v = stablehlo.maximum %f, %nb : tensor<2x7x4xf32>\n"
     "  %y = stablehlo.dot_general %x, %v, batching_dims = [0] x [0], contracting_dims = [1] x [1] "
     ": (tensor<2x7x5xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>\n"
     "  %r = stablehlo.transpose %y, dims = [0, 2, 1] : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>\n"
     "  return %r : tensor<2x4x5xf32>\n}\n",
     1, 0, 0},
    {"rectified_data",
     "func.func @main(%x: tensor<5x7xf32>, %s: tensor<7x4xf32>) -> tensor<5x4xf32> {\n" WEIGHTS
     "  %v = stablehlo.subtract %w, %s : tensor<7x4xf32>\n"
     "  %u = stablehlo.maximum %v, %none : tensor<7x4xf32>\n"
     "  %r = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<5x7xf32>, "
     "tensor<7x4xf32>) -> tensor<5x4xf32>\n"
     "  return %r : tensor<5x4xf32>\n}\n",
     0, 1, 0},
    {"nothing_is_zero",
     "func.func @main(%x: tensor<5x7xf32>) -> tensor<5x4xf32> {\n" WEIGHTS
     "  %r = stablehlo.dot_general %x, %e, contracting_dims = [1] x [0] : (tensor<5x7xf32>, "
     "tensor<7x4xf32>) -> tensor<5x4xf32>\n"
     "  return %r : tensor<5x4xf32>\n}\n",
     0, 1, 0},
};

static int count(const Module *m, OpKind kind) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == kind;
  return n;
}

static void product(void **state) {
  const Text *c = *state;
  Str text = {c->text, strlen(c->text)};
  Module *before = read_program(text), *after = read_program(text);
  ok(pass_resample(after));
  ok(pass_simplify(after));
  ok(ir_verify(after));
  assert_int_equal(count(after, OP_RESAMPLE), c->resamples);
  assert_int_equal(count(after, OP_DOT_GENERAL), c->dots);
  assert_int_equal(count(after, OP_TRANSPOSE), c->transposes);
  Func *f = module_main(before);
  Tensor *in[2];
  for (int i = 0; i < f->body->n_args; i++) {
    const Type *t = f->body->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t k = 0; k < in[i]->count; k++)
      ((float *)in[i]->data)[k] = (float)((k * 37 + i * 11) % 19) / 8;
  }
  same_result(c->name, before, after, f->body->n_args, in, 1e-6);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, product, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("resample", tests, COUNT_OF(tests), NULL, NULL);
}
