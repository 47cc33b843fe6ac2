/* Scatters to one box: what becomes of them, and that the interpreter answers the same, bit by bit. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *type, *box, *at, *dims;
  const char *combine; /* of %p, %q; NULL: %q alone */
  const char *first;   /* %x, or a constant in its place */
  int scatters, puts, pads;
} Case;

#define PLAIN "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]"
#define COLUMN                                             \
  "update_window_dims = [0], inserted_window_dims = [1], " \
  "scatter_dims_to_operand_dims = [1]"

static Case cases[] = {
    {"set", "6x7xf32", "4x5xf32", "[1, 1]", PLAIN, NULL, NULL, 0, 1, 0},
    {"add_much", "6x7xf32", "4x7xf32", "[2, 0]", PLAIN, "add", NULL, 0, 0, 1},
    {"multiply_much", "6x7xi32", "4x7xi32", "[1, 0]", PLAIN, "multiply", NULL, 0, 0, 1},
    {"subtract_much", "6x7xf32", "6x5xf32", "[0, 1]", PLAIN, "subtract", NULL, 0, 0, 1},
    {"add_little", "6x7xf32", "2x2xf32", "[4, 5]", PLAIN, "add", NULL, 0, 1, 0},
    {"maximum", "6x7xf32", "6x6xf32", "[0, 1]", PLAIN, "maximum", NULL, 0, 1, 0},
    {"complex", "6x7xcomplex<f32>", "6x6xcomplex<f32>", "[0, 1]", PLAIN, "multiply", NULL, 0, 1, 0},
    {"column", "6x7xf32", "6xf32", "[3]", COLUMN, NULL, NULL, 0, 1, 0},
    {"all", "6x7xf32", "6x7xf32", "[0, 0]", PLAIN, "add", NULL, 0, 0, 0},
    {"of_zeros", "6x7xf32", "2x2xf32", "[4, 5]", PLAIN, "add", "0.0", 0, 0, 1},
    {"of_ones", "6x7xf32", "4x5xf32", "[0, 2]", PLAIN, NULL, "1.0", 0, 0, 1},
    {"outside", "6x7xf32", "4x5xf32", "[3, 1]", PLAIN, NULL, NULL, 1, 0, 0},
    {"before", "6x7xf32", "6xf32", "[-1]", COLUMN, "add", NULL, 1, 0, 0},
};

static Module *read(const Case *c) {
  const char *element = strrchr(c->type, 'x') + 1;
  if (strchr(c->type, '<')) element = "complex<f32>";
  int places = strchr(c->at, ',') ? 2 : 1;
  char *constant = xasprintf("%%x = stablehlo.constant dense<%s> : tensor<%s>\n",
                             c->first ? c->first : "", c->type);
  char *body = c->combine
                   ? xasprintf("%%f = stablehlo.%s %%p, %%q : tensor<%s>\nstablehlo.return %%f : "
                               "tensor<%s>\n",
                               c->combine, element, element)
                   : xasprintf("stablehlo.return %%q : tensor<%s>\n", element);
  char *text = xasprintf(
      "func.func @main(%%%s: tensor<%s>, %%u: tensor<%s>) -> tensor<%s> {\n%s"
      "%%at = stablehlo.constant dense<%s> : tensor<%dxi32>\n"
      "%%y = \"stablehlo.scatter\"(%%x, %%at, %%u) <{scatter_dimension_numbers = "
      "#stablehlo.scatter<%s>}> ({\n^bb0(%%p: tensor<%s>, %%q: tensor<%s>):\n%s}) : (tensor<%s>, "
      "tensor<%dxi32>, tensor<%s>) -> tensor<%s>\nreturn %%y : tensor<%s>\n}\n",
      c->first ? "unused" : "x", c->type, c->box, c->type, c->first ? constant : "", c->at, places,
      c->dims, element, element, body, c->type, places, c->box, c->type, c->type);
  Module *m = read_program(str_from(text));
  free(text);
  free(body);
  free(constant);
  return m;
}

static int count(const Module *m, OpKind kind) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == kind;
  return n;
}

static void update(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_updates(after));
  ok(ir_verify(after));
  assert_int_equal(count(after, OP_SCATTER), c->scatters);
  assert_int_equal(count(after, OP_DYNAMIC_UPDATE_SLICE), c->puts);
  assert_int_equal(count(after, OP_PAD), c->pads);
  Tensor *in[2];
  for (int i = 0; i < 2; i++) {
    const Type *t = module_main(before)->body->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    int64_t n = (int64_t)tensor_bytes(in[i]) / 4;
    for (int64_t k = 0; k < n; k++)
      if (t->dtype == DT_I32) ((int32_t *)in[i]->data)[k] = (int32_t)(k - 9 * i);
      else ((float *)in[i]->data)[k] = k % 5 == 4 ? -0.0f : (float)(k % 23 - 11) / (float)(1 + i);
  }
  same_result(c->name, before, after, 2, in, 0);
}

#define CHAIN 1000

/* So many elements set, one after the other, each read by the next. */
static void long_chain(void **state) {
  (void)state;
  Buf b = {0};
  buf_cstr(&b, "func.func @main(%y0: tensor<64xf32>, %u: tensor<f32>) -> tensor<64xf32> {\n");
  for (int i = 0; i < CHAIN; i++)
    buf_printf(&b,
               "%%at%d = stablehlo.constant dense<%d> : tensor<1xi32>\n"
               "%%y%d = \"stablehlo.scatter\"(%%y%d, %%at%d, %%u) <{scatter_dimension_numbers = "
               "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = "
               "[0]>}> ({\n^bb0(%%p: tensor<f32>, %%q: tensor<f32>):\nstablehlo.return %%q : "
               "tensor<f32>\n}) : (tensor<64xf32>, tensor<1xi32>, tensor<f32>) -> tensor<64xf32>\n",
               i, i % 64, i + 1, i, i);
  buf_printf(&b, "return %%y%d : tensor<64xf32>\n}\n", CHAIN);
  Module *m = read_program((Str){b.p, b.n});
  ok(pass_updates(m));
  ok(ir_verify(m));
  assert_int_equal(count(m, OP_SCATTER), 0);
  module_free(m);
  buf_free(&b);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases) + 1] = {cmocka_unit_test(long_chain)};
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i + 1] = (struct CMUnitTest){cases[i].name, update, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("updates", tests, COUNT_OF(tests), NULL, NULL);
}
