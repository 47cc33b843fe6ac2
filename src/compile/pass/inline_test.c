/* One function: what was asynchronous is done where it starts. */
#include "compile/pass/pass_test.h"

#define GATHER(result, of)                                                              \
  "  " result " = \"stablehlo.async_start\"(" of ") ({\n  ^bb0(%b: tensor<2xf32>):\n"   \
  "    %g = \"stablehlo.all_gather\"(%b) <{all_gather_dim = 0 : i64, replica_groups = " \
  "dense<[[0]]> : tensor<1x1xi64>}> : (tensor<2xf32>) -> tensor<2xf32>\n"               \
  "    stablehlo.return %g : tensor<2xf32>\n"                                           \
  "  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>\n"
#define DONE(result, of)                        \
  "  " result " = \"stablehlo.async_done\"(" of \
  ") : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>\n"

static int count(const Region *r, OpKind kind) {
  int n = 0;
  for (const Op *op = r->first; op; op = op->next) {
    n += op->kind == kind;
    for (int i = 0; i < op->n_regions; i++) n += count(op->regions[i], kind);
  }
  return n;
}

static Tensor *two_numbers(void) {
  Tensor *t = tensor_make(DT_F32, 1, (const int64_t[]){2});
  for (int k = 0; k < 2; k++) ((float *)t->data)[k] = (float)(3 + k);
  return t;
}

/* Started in a function, awaited in a branch; one future is used by two, one result starts the next;
 * schedule() puts a future before another value. */
static void futures_are_done_at_once(void **unused) {
  (void)unused;
  Str text = STR(
      "func.func private @early(%x: tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>> {\n" GATHER(
          "%f", "%x") "  return %f : !stablehlo.future<tensor<2xf32>>\n}\n"
                      "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
                      "  %f = func.call @early(%a) : (tensor<2xf32>) -> "
                      "!stablehlo.future<tensor<2xf32>>\n"
                      "  %e = stablehlo.exponential %a : tensor<2xf32>\n"
                      "  stablehlo.custom_call @control_dep(%f, %e) {has_side_effect = true} : "
                      "(!stablehlo.future<tensor<2xf32>>, tensor<2xf32>) -> ()\n"
                      "  %p = stablehlo.constant dense<true> : tensor<i1>\n"
                      "  %r = \"stablehlo.if\"(%p) ({\n" DONE("%d", "%f") //
      "    stablehlo.return %d : tensor<2xf32>\n  }, {\n"
      "    stablehlo.return %e : tensor<2xf32>\n  }) : (tensor<i1>) -> tensor<2xf32>\n" DONE(
          "%s", "%f") GATHER("%h", "%s") DONE("%t", "%h") //
      "  %z = stablehlo.add %r, %t : tensor<2xf32>\n  return %z : tensor<2xf32>\n}\n");
  Module *before = read_program(text), *after = read_program(text);
  ok(pass_inline(after));
  ok(ir_verify(after));
  const Region *body = module_main(after)->body;
  assert_int_equal(count(body, OP_ASYNC_START) + count(body, OP_ASYNC_DONE), 0);
  assert_int_equal(count(body, OP_ALL_GATHER), 2);
  assert_int_equal(count(body, OP_CUSTOM_CALL), 0);
  Tensor *in = two_numbers();
  same_result("futures", before, after, 1, &in, 0);
}

/* A future that a barrier passes on stays one. */
static void other_futures_stay(void **unused) {
  (void)unused;
  Str text = STR("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n" GATHER("%f", "%a") //
                 "  %g = stablehlo.optimization_barrier %f : "
                 "!stablehlo.future<tensor<2xf32>>\n" DONE("%r", "%g") //
                 "  return %r : tensor<2xf32>\n}\n");
  Module *before = read_program(text), *after = read_program(text);
  ok(pass_inline(after));
  assert_int_equal(count(module_main(after)->body, OP_ASYNC_START), 1);
  Tensor *in = two_numbers();
  same_result("barrier", before, after, 1, &in, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(futures_are_done_at_once),
                                     cmocka_unit_test(other_futures_stay)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
