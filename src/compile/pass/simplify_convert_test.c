/* Conversions through a type that has every value of the first are one, or none. */
#include "compile/pass/pass_test.h"

static int converts(const Module *m) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == OP_CONVERT;
  return n;
}

/* All values of a type of up to 16 bits, else of so many bits sign-extended or scaled. */
static Tensor *values(DType t) {
  enum { N = 65536 };
  Tensor *x = tensor_make(t, 1, (int64_t[]){N});
  for (int64_t i = 0; i < N; i++) {
    char *p = (char *)x->data + i * dtype_bytes(t);
    uint16_t bits = (uint16_t)i;
    if (dtype_bits(t) == 16) memcpy(p, &bits, 2);
    else if (dtype_bits(t) == 8) *p = (char)i;
    else if (dtype_is_float(t)) elem_set_f64(t, p, ((double)i - 32768) * 1e30);
    else elem_set_i64(t, p, dtype_is_signed(t) ? (i - 32768) * 65537 : i);
  }
  return x;
}

static void through_wider_types(void **state) {
  (void)state;
  static const struct {
    const char *from, *by, *to;
    int left;
  } rows[] = {{"bf16", "f32", "bf16", 0}, {"bf16", "f32", "f64", 1},  {"f16", "f32", "f16", 0},
              {"bf16", "f32", "f16", 1},  {"f16", "f64", "bf16", 1},  {"i8", "i32", "i8", 0},
              {"i8", "f32", "bf16", 1},   {"ui8", "i16", "f32", 1},   {"i1", "f32", "i32", 1},
              {"i1", "i8", "i1", 0},      {"i16", "f32", "i16", 0},   {"ui8", "bf16", "f32", 1},
              {"f32", "bf16", "f32", 2},  {"bf16", "f16", "bf16", 2}, {"f16", "bf16", "f16", 2},
              {"i32", "f32", "f64", 2},   {"i8", "ui32", "f32", 2},   {"i16", "bf16", "f32", 2},
              {"f8E5M2", "f32", "f16", 1}};
  for (int i = 0; i < COUNT_OF(rows); i++) {
    Buf t = {0};
    buf_printf(&t,
               "func.func @main(%%x: tensor<65536x%s>) -> tensor<65536x%s> {\n"
               "  %%0 = stablehlo.convert %%x : (tensor<65536x%s>) -> tensor<65536x%s>\n"
               "  %%1 = stablehlo.convert %%0 : (tensor<65536x%s>) -> tensor<65536x%s>\n"
               "  return %%1 : tensor<65536x%s>\n}\n",
               rows[i].from, rows[i].to, rows[i].from, rows[i].by, rows[i].by, rows[i].to,
               rows[i].to);
    Module *before = read_program((Str){t.p, t.n}), *after = module_clone(before);
    ok(pass_simplify(after));
    ok(ir_verify(after));
    if (converts(after) != rows[i].left)
      fail_msg("%s to %s to %s: %d conversions are left", rows[i].from, rows[i].by, rows[i].to,
               converts(after));
    Tensor *in = values(module_main(before)->body->args[0]->type->dtype);
    same_result(rows[i].by, before, after, 1, &in, 1e-30); /* of a NaN its bits may differ */
    buf_free(&t);
  }
}

/* select(not p, a, b) is select(p, b, a). */
static void negated_predicates(void **state) {
  (void)state;
  Str text = STR("func.func @main(%x: tensor<16xi8>, %y: tensor<16xi8>) -> tensor<16xi8> {\n"
                 "  %p = stablehlo.compare LT, %x, %y : (tensor<16xi8>, tensor<16xi8>) -> "
                 "tensor<16xi1>\n"
                 "  %n = stablehlo.not %p : tensor<16xi1>\n"
                 "  %r = stablehlo.select %n, %x, %y : tensor<16xi1>, tensor<16xi8>\n"
                 "  return %r : tensor<16xi8>\n}\n");
  Module *before = read_program(text), *after = module_clone(before);
  ok(pass_simplify(after));
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    assert_int_not_equal(op->kind, OP_NOT);
  same_on_integers("select", before, after);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(through_wider_types),
      cmocka_unit_test(negated_predicates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
