/* Which bodies of reductions may take their terms in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err_test.h"
#include "ir/any_order.h"
#include "stablehlo/stablehlo.h"

/* The body of a reduction with n operands of f32, to the values named in `results`. */
static bool any_order(int n, const char *body, const char *results) {
  Buf t = {0};
  static const char *const types[] = {"", "tensor<f32>", "tensor<f32>, tensor<f32>"};
  buf_printf(&t,
             "func.func @main(%%x: tensor<8xf32>, %%i: tensor<f32>) -> tensor<f32> {\n"
             "  %%r:%d = \"stablehlo.reduce\"(%s) ({\n  ^bb0(",
             n, n == 1 ? "%x, %i" : "%x, %x, %i, %i");
  for (int k = 0; k < 2 * n; k++)
    buf_printf(&t, "%s%%%c%d: tensor<f32>", k ? ", " : "", k < n ? 'a' : 'b', k % n);
  buf_printf(&t, "):\n%s\n    stablehlo.return %s : %s\n  }) {dimensions = array<i64: 0>} : (",
             body, results, types[n]);
  for (int k = 0; k < n; k++) buf_printf(&t, "tensor<8xf32>, ");
  buf_printf(&t, "%s) -> (%s)\n  return %%r#0 : tensor<f32>\n}\n", types[n], types[n]);
  Module *m = NULL;
  ok(stablehlo_read("case.mlir", (Str){t.p, t.n}, &m));
  ok(ir_verify(m));
  const Op *op = module_main(m)->body->first;
  assert_int_equal(op->kind, OP_REDUCE);
  bool any = region_any_order(op->regions[0]);
  module_free(m);
  buf_free(&t);
  return any;
}

#define F " : tensor<f32>\n"
#define BOOL " : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
#define SELECT " : tensor<i1>, tensor<f32>\n"

static void any(void **state) {
  (void)state;
  assert_true(any_order(1, "%c = stablehlo.add %a0, %b0" F, "%c"));
  assert_true(any_order(1, "%c = stablehlo.maximum %b0, %a0" F, "%c"));
  assert_true(any_order(1,
                        "%p = stablehlo.compare GE, %a0, %b0" BOOL
                        "%n = stablehlo.compare NE, %a0, %a0" BOOL
                        "%q = stablehlo.or %p, %n : tensor<i1>\n"
                        "%c = stablehlo.select %q, %a0, %b0" SELECT,
                        "%c"));
  assert_true(any_order(1, /* log(exp(a) + exp(b)) */
                        "%m = stablehlo.maximum %a0, %b0" F "%d = stablehlo.subtract %a0, %b0" F
                        "%u = stablehlo.abs %d" F "%v = stablehlo.negate %u" F
                        "%e = stablehlo.exponential %v" F "%l = stablehlo.log_plus_one %e" F
                        "%c = stablehlo.add %m, %l" F,
                        "%c"));
  assert_true(any_order(2, /* a product of complex numbers */
                        "%p = stablehlo.multiply %a0, %b0" F "%q = stablehlo.multiply %a1, %b1" F
                        "%r = stablehlo.multiply %a0, %b1" F "%s = stablehlo.multiply %a1, %b0" F
                        "%c = stablehlo.subtract %p, %q" F "%d = stablehlo.add %r, %s" F,
                        "%c, %d"));
  assert_true(any_order(2, /* a mean and its weight */
                        "%p = stablehlo.multiply %a0, %a1" F "%q = stablehlo.multiply %b0, %b1" F
                        "%r = stablehlo.add %p, %q" F "%s = stablehlo.add %a1, %b1" F
                        "%c = stablehlo.divide %r, %s" F,
                        "%c, %s"));
}

static void one_by_one(void **state) {
  (void)state;
  assert_false(any_order(1, "", "%b0"));
  assert_false(any_order(1, "%c = stablehlo.add %a0, %a0" F, "%c"));
  assert_false(any_order(1, "%c = stablehlo.subtract %b0, %a0" F, "%c"));
  assert_false(
      any_order(1, "%q = stablehlo.multiply %b0, %b0" F "%c = stablehlo.add %a0, %q" F, "%c"));
  assert_false(any_order(1,
                         "%h = stablehlo.constant dense<0.5>" F "%q = stablehlo.add %a0, %b0" F
                         "%c = stablehlo.multiply %q, %h" F,
                         "%c"));
  assert_false(any_order(2,
                         "%c = stablehlo.add %a0, %b0" F "%q = stablehlo.abs %b1" F
                         "%d = stablehlo.maximum %a1, %q" F,
                         "%c, %d"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any), cmocka_unit_test(one_by_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
