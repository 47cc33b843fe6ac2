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

/* A chain of `depth` functions, each called `calls` times by the one before; each adds its argument. */
static void write_chain(Buf *b, int depth, int calls) {
  for (int i = 0; i <= depth; i++) {
    if (i) buf_printf(b, "func.func private @f%d(%%a: tensor<2xf32>) -> tensor<2xf32> {\n", i);
    else buf_cstr(b, "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n");
    for (int k = 0; k < calls && i < depth; k++)
      buf_printf(b, "  %%%d = call @f%d(%%a) : (tensor<2xf32>) -> tensor<2xf32>\n", k, i + 1);
    if (calls == 1 && i < depth) buf_cstr(b, "  %r = stablehlo.add %0, %a : tensor<2xf32>\n");
    buf_printf(b, "  return %s : tensor<2xf32>\n}\n", i == depth ? "%a" : calls == 1 ? "%r" : "%0");
  }
}

/* Nothing is copied that is needed once: all of the chain's copies would be millions of ops. */
static void a_long_chain_of_calls(void **unused) {
  (void)unused;
  Buf b = {0};
  write_chain(&b, 3000, 1);
  Module *m = read_program((Str){b.p, b.n});
  ok(pass_inline(m));
  ok(ir_verify(m));
  assert_int_equal(count(module_main(m)->body, OP_ADD), 3000);
  module_free(m);
  b.n = 0;
  write_chain(&b, 150, 1);
  Tensor *in = two_numbers();
  Module *before = read_program((Str){b.p, b.n}), *after = read_program((Str){b.p, b.n});
  ok(pass_inline(after));
  same_result("chain", before, after, 1, &in, 0);
  buf_free(&b);
}

static void too_deep_is_said(void **unused) {
  (void)unused;
  Buf b = {0};
  write_chain(&b, 15000, 2);
  Module *m = read_program((Str){b.p, b.n});
  Err *e = pass_inline(m);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_EXHAUSTED);
  err_free(e);
  module_free(m);
  buf_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(futures_are_done_at_once), cmocka_unit_test(other_futures_stay),
      cmocka_unit_test(a_long_chain_of_calls), cmocka_unit_test(too_deep_is_said)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
