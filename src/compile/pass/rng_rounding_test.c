/* Random numbers of bf16 and f16: each operation on what is made of an integer's bits is rounded, nothing
 * else is. */
#include "compile/pass/pass_test.h"

#define DRAWN(t, i, one)                                                                         \
  "func.func @main(%bits: tensor<1000x" i ">, %x: tensor<1000x" t ">) -> tensor<1000x" t "> {\n" \
  "%c = stablehlo.constant dense<" one "> : tensor<1000x" i ">\n"                                \
  "%o = stablehlo.or %bits, %c : tensor<1000x" i ">\n"                                           \
  "%u = stablehlo.bitcast_convert %o : (tensor<1000x" i ">) -> tensor<1000x" t ">\n"             \
  "%k = stablehlo.constant dense<1.00781> : tensor<1000x" t ">\n"                                \
  "%d = stablehlo.multiply %u, %k : tensor<1000x" t ">\n"                                        \
  "%l = stablehlo.log %d : tensor<1000x" t ">\n"                                                 \
  "%n = stablehlo.negate %l : tensor<1000x" t ">\n"                                              \
  "%e = stablehlo.exponential %n : tensor<1000x" t ">\n"                                         \
  "%a = stablehlo.add %x, %e : tensor<1000x" t ">\n"                                             \
  "%m = stablehlo.multiply %a, %x : tensor<1000x" t ">\n"                                        \
  "return %m : tensor<1000x" t ">\n}"

static const char *const programs[] = {DRAWN("bf16", "ui16", "16256"),
                                       DRAWN("f16", "ui16", "15360")};

/* The product with a constant, the logarithm and the exponential; the sum with data is not. */
static void test_rounded(void **state) {
  (void)state;
  for (int p = 0; p < COUNT_OF(programs); p++) {
    Module *m = read_program(str_from(programs[p]));
    ok(pass_rng_rounding(m));
    ok(ir_verify(m));
    int rounded = 0;
    for (const Op *op = module_main(m)->body->first; op; op = op->next) {
      if (op->kind != OP_REDUCE_PRECISION) continue;
      rounded++;
      OpKind of = op->operands[0]->def->kind;
      assert_true(of == OP_MULTIPLY || of == OP_LOG || of == OP_EXPONENTIAL);
      if (of == OP_MULTIPLY)
        assert_int_equal(op->operands[0]->def->operands[0]->def->kind, OP_BITCAST_CONVERT);
    }
    assert_int_equal(rounded, 3);
    module_free(m);
  }
}

/* Of f32 nothing is changed, and data is not drawn. */
static void test_left(void **state) {
  (void)state;
  Module *m =
      read_program(STR("func.func @main(%b: tensor<8xui32>, %x: tensor<8xbf16>) -> (tensor<8xf32>, "
                       "tensor<8xbf16>) {\n"
                       "%u = stablehlo.bitcast_convert %b : (tensor<8xui32>) -> tensor<8xf32>\n"
                       "%l = stablehlo.log %u : tensor<8xf32>\n"
                       "%k = stablehlo.log %x : tensor<8xbf16>\n"
                       "return %l, %k : tensor<8xf32>, tensor<8xbf16>\n}"));
  ok(pass_rng_rounding(m));
  for (const Op *op = module_main(m)->body->first; op; op = op->next)
    assert_int_not_equal(op->kind, OP_REDUCE_PRECISION);
  module_free(m);
}

/* Numbers that go by way of f32 stay drawn. */
static void test_widened(void **state) {
  (void)state;
  Module *m = read_program(
      STR("func.func @main(%b: tensor<8xui16>, %x: tensor<8xbf16>) -> tensor<8xbf16> {\n"
          "%u = stablehlo.bitcast_convert %b : (tensor<8xui16>) -> tensor<8xbf16>\n"
          "%w = stablehlo.convert %u : (tensor<8xbf16>) -> tensor<8xf32>\n"
          "%l = stablehlo.log %w : tensor<8xf32>\n"
          "%n = stablehlo.convert %l : (tensor<8xf32>) -> tensor<8xbf16>\n"
          "%s = stablehlo.exponential %n : tensor<8xbf16>\n"
          "%a = stablehlo.add %x, %s : tensor<8xbf16>\n"
          "return %a : tensor<8xbf16>\n}"));
  ok(pass_rng_rounding(m));
  ok(ir_verify(m));
  const Op *sum = module_main(m)->body->last->operands[0]->def;
  assert_int_equal(sum->kind, OP_ADD);
  const Op *rounded = sum->operands[1]->def;
  assert_int_equal(rounded->kind, OP_REDUCE_PRECISION);
  assert_int_equal(rounded->operands[0]->def->kind, OP_EXPONENTIAL);
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounded), cmocka_unit_test(test_left),
                                     cmocka_unit_test(test_widened)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
