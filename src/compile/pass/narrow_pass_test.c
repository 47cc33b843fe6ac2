/* Which transposes move to narrower elements, and that the interpreter answers the same. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *text;
  DType turned; /* elements of the transpose that is left */
} Case;

#define MEAN \
  "  %m = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<3xf32>) -> tensor<2x40x30x3xf32>\n"
#define HEAD(t)                             \
  "func.func @main(%a: tensor<2x40x30x3x" t \
  ">, %b: tensor<3xf32>) -> tensor<2x3x40x30xf32> {\n" MEAN
#define WIDE "  %f = stablehlo.convert %a : (tensor<2x40x30x3xui8>) -> tensor<2x40x30x3xf32>\n"
#define TAIL(v)                                                                         \
  "  %t = stablehlo.transpose " v ", dims = [0, 3, 1, 2] : (tensor<2x40x30x3xf32>) -> " \
  "tensor<2x3x40x30xf32>\n"
#define END "  return %t : tensor<2x3x40x30xf32>\n}\n"

static Case cases[] = {
    {"bytes",
     HEAD("ui8") WIDE "  %c = stablehlo.constant dense<255.0> : tensor<2x40x30x3xf32>\n"
                      "  %d = stablehlo.divide %f, %c : tensor<2x40x30x3xf32>\n"
                      "  %y = stablehlo.subtract %d, %m : tensor<2x40x30x3xf32>\n" TAIL("%y") END,
     DT_U8},
    {"masked", /* two arrays of these elements */
     HEAD("ui8") WIDE "  %x = stablehlo.multiply %f, %f : tensor<2x40x30x3xf32>\n"
                      "  %y = stablehlo.add %x, %m : tensor<2x40x30x3xf32>\n" TAIL("%y") END,
     DT_F32},
    {"as_wide",
     HEAD("f32") "  %y = stablehlo.subtract %a, %m : tensor<2x40x30x3xf32>\n" TAIL("%y") END,
     DT_F32},
    {"wanted_twice",
     HEAD("ui8") WIDE "  %y = stablehlo.subtract %f, %m : tensor<2x40x30x3xf32>\n" TAIL(
         "%y") "  %z = stablehlo.reverse %y, dims = [1] : tensor<2x40x30x3xf32>\n"
               "  %u = stablehlo.transpose %z, dims = [0, 3, 1, 2] : (tensor<2x40x30x3xf32>) -> "
               "tensor<2x3x40x30xf32>\n"
               "  %s = stablehlo.add %t, %u : tensor<2x3x40x30xf32>\n"
               "  return %s : tensor<2x3x40x30xf32>\n}\n",
     DT_F32},
};

static void turn(void **state) {
  const Case *c = *state;
  Str text = {c->text, strlen(c->text)};
  Module *before = read_program(text), *after = read_program(text);
  ok(pass_narrow(after));
  ok(ir_verify(after));
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    if (op->kind == OP_TRANSPOSE) assert_int_equal(op_type(op)->dtype, c->turned);
  Tensor *in[2];
  for (int i = 0; i < 2; i++) {
    const Type *t = module_main(before)->body->args[i]->type;
    in[i] = tensor_make(t->dtype, t->rank, t->dims);
    for (int64_t k = 0; k < in[i]->count; k++)
      elem_set_f64(t->dtype, (char *)in[i]->data + k * dtype_bytes(t->dtype), (double)(k % 251));
  }
  same_result(c->name, before, after, 2, in, 0);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, turn, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("narrow", tests, COUNT_OF(tests), NULL, NULL);
}
