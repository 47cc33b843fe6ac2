/* Complex arithmetic by parts: no op on complex numbers is left but reading and writing parts, and
 * the interpreter answers the same before and after, zeros, infinities and NaN included. */
#include "compile/pass/pass_test.h"

#include <math.h>

#define C "tensor<12x12xcomplex<f32>>"
#define R "tensor<12x12xf32>"
#define UNARY(op, to) "%r = stablehlo." op " %a : (" C ") -> " to "\n return %r : " to
#define FUNCTION(op) "%r = " op " %a : " C " -> " C "\n return %r : " C
#define BINARY(op) "%r = stablehlo." op " %a, %b : " C "\n return %r : " C

typedef struct Case {
  const char *name, *result, *body;
  bool special; /* of zeros, infinities and NaN, too */
} Case;

static Case cases[] = {
    {"add", C, BINARY("add"), true},
    {"subtract", C, BINARY("subtract"), true},
    {"multiply", C, BINARY("multiply"), true},
    {"divide", C, BINARY("divide"), false},
    {"negate", C, "%r = stablehlo.negate %a : " C "\n return %r : " C, true},
    {"abs", R, UNARY("abs", R), true},
    {"real", R, UNARY("real", R), true},
    {"imag", R, UNARY("imag", R), true},
    {"sign", C, "%r = stablehlo.sign %a : " C "\n return %r : " C, false},
    {"exponential", C, "%r = stablehlo.exponential %a : " C "\n return %r : " C, false},
    {"maximum", C, BINARY("maximum"), true},
    {"minimum", C, BINARY("minimum"), true},
    {"log", C, FUNCTION("stablehlo.log"), true},
    {"log1p", C, FUNCTION("stablehlo.log_plus_one"), false},
    {"expm1", C, FUNCTION("stablehlo.exponential_minus_one"), true},
    {"logistic", C, FUNCTION("stablehlo.logistic"), false},
    {"sqrt", C, FUNCTION("stablehlo.sqrt"), true},
    {"rsqrt", C, FUNCTION("stablehlo.rsqrt"), false},
    {"cbrt", C, FUNCTION("stablehlo.cbrt"), false},
    {"sine", C, FUNCTION("stablehlo.sine"), false},
    {"cosine", C, FUNCTION("stablehlo.cosine"), false},
    {"tan", C, FUNCTION("stablehlo.tan"), false},
    {"tanh", C, FUNCTION("stablehlo.tanh"), false},
    {"sinh", C, FUNCTION("chlo.sinh"), false},
    {"cosh", C, FUNCTION("chlo.cosh"), false},
    {"asin", C, FUNCTION("chlo.asin"), false},
    {"acos", C, FUNCTION("chlo.acos"), false},
    {"atan", C, FUNCTION("chlo.atan"), false},
    {"asinh", C, FUNCTION("chlo.asinh"), false},
    {"acosh", C, FUNCTION("chlo.acosh"), false},
    {"atanh", C, FUNCTION("chlo.atanh"), false},
    {"square", C, FUNCTION("chlo.square"), false},
    {"power", C, BINARY("power"), false},
    {"power of zero", C,
     "%z = stablehlo.subtract %a, %a : " C "\n"
     "%r = stablehlo.power %z, %b : " C "\n return %r : " C,
     false},
    {"zero-th power", C,
     "%z = stablehlo.subtract %a, %a : " C "\n"
     "%r = stablehlo.power %b, %z : " C "\n return %r : " C,
     false},
    {"real power", C,
     "%z = stablehlo.constant dense<(1.5, 0.0)> : " C "\n"
     "%r = stablehlo.power %b, %z : " C "\n return %r : " C,
     false},
    {"compare", "tensor<12x12xi1>",
     "%r = stablehlo.compare EQ, %a, %b, FLOAT : (" C ", " C ") -> tensor<12x12xi1>\n"
     "return %r : tensor<12x12xi1>",
     true},
    {"moved", C,
     "%p = stablehlo.transpose %a, dims = [1, 0] : (" C ") -> " C "\n"
     "%s = stablehlo.slice %p [0:12, 3:9] : (" C ") -> tensor<12x6xcomplex<f32>>\n"
     "%c = stablehlo.concatenate %s, %s, dim = 1 : (tensor<12x6xcomplex<f32>>, "
     "tensor<12x6xcomplex<f32>>) -> " C "\n"
     "%k = stablehlo.constant dense<(1.5, -2.0)> : " C "\n"
     "%m = stablehlo.multiply %c, %k : " C "\n"
     "%r = stablehlo.add %m, %a : " C "\n return %r : " C,
     true},
    {"sum", "tensor<12xcomplex<f32>>",
     "%z = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>\n"
     "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (" C
     ", tensor<complex<f32>>) -> tensor<12xcomplex<f32>>\n return %r : tensor<12xcomplex<f32>>",
     false},
};

static Module *read(const Case *c) {
  Buf b = {0};
  buf_printf(&b, "func.func @main(%%a: " C ", %%b: " C ") -> %s {\n %s\n}\n", c->result, c->body);
  Module *m = read_program((Str){b.p, b.n});
  buf_free(&b);
  return m;
}

static bool is_plain(const Op *op) {
  bool any = false;
  for (int i = 0; i < op->n_operands; i++) any |= dtype_is_complex(op->operands[i]->type->dtype);
  return !any || op->kind == OP_REAL || op->kind == OP_IMAG || op->kind == OP_RETURN ||
         op_info[op->kind].cls == OC_MOVE;
}

static void pairs(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_lower_complex(after));
  ok(ir_verify(after));
  for (const Op *op = module_main(after)->body->first; op; op = op->next) assert_true(is_plain(op));
  static const float odd[] = {0, -0.0f, 1, -2.5f, INFINITY, -INFINITY, NAN, 1e15f, -1e-15f};
  Tensor *in[2];
  for (int i = 0; i < 2; i++) {
    int64_t dims[] = {12, 12};
    in[i] = tensor_make(DT_C64, 2, dims);
    for (int64_t k = 0; k < 288; k++) {
      float plain = (float)((k * 37 + i * 101) % 83 - 41) / 8;
      ((float *)in[i]->data)[k] =
          c->special ? odd[(k * (i ? 7 : 5) + k / 9) % COUNT_OF(odd)] : plain;
    }
  }
  same_result(c->name, before, after, 2, in, 4e-6);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, pairs, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("lower_complex", tests, COUNT_OF(tests), NULL, NULL);
}
