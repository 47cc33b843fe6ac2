/* How many vectors a loop takes side by side. That the digits are the same is vinterp_test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/compile.h"
#include "dev/cpu/loops/shape.h"
#include "ir/build.h"

typedef Value *(*Body)(Build *b, Value **x);

static Value *sum(Build *b, Value **x) { return b_add(b, x[0], x[1]); }
static Value *function(Build *b, Value **x) { return b_exp(b, b_mul(b, x[0], x[1])); }
static Value *polynomial(Build *b, Value **x) {
  Value *y = x[0];
  for (int i = 0; i < 20; i++) y = b_mul(b, b_add(b, y, x[1]), x[0]);
  return y;
}
static Value *streams(Build *b, Value **x) {
  Value *y = b_exp(b, x[0]);
  for (int i = 1; i < 7; i++) y = b_add(b, y, x[i]);
  return y;
}
static Value *long_chain(Build *b, Value **x) {
  Value *y = x[0];
  for (int i = 0; i < 35; i++) y = b_exp(b, b_mul(b, y, x[1]));
  return y;
}

static bool any_op(void *arg, const Op *op) {
  (void)arg;
  return emit_supports(op);
}

static int nowhere(void *arg, const Op *op) {
  (void)arg, (void)op;
  return 0;
}

static int abreast(Body body, int64_t n) {
  Module *m = module_new();
  Build b = {0};
  Value *x[7];
  Plan *p = NULL;
  Dag d = {0};
  b_func(&b, m, "main");
  for (int i = 0; i < 7; i++) x[i] = b_arg(&b, b_type(&b, DT_F32, 1, &n));
  Value *y = body(&b, x);
  b_return(&b, 1, &y);
  const Target target = {.fusible = any_op, .in_place = nowhere, .replicas = 1, .partitions = 1};
  Err *e = compile_program(m, &target, &p);
  if (!e) e = dag_build(p->body.steps[0].fusion, &d);
  if (e) fail_msg("%s", err_text(e));
  assert_int_equal(p->body.n, 1);
  int k = shape_abreast(&d, 16);
  dag_free(&d);
  plan_free(p);
  module_free(m);
  return k;
}

static void where_it_pays(void **state) {
  (void)state;
  assert_int_equal(abreast(sum, 4096), 1);
  assert_int_equal(abreast(function, 4096), 4);
  assert_int_equal(abreast(polynomial, 4096), 2);
  assert_int_equal(abreast(streams, 4096), 1);
  assert_int_equal(abreast(long_chain, 4096), 2);
}

/* What the last vectors leave unused is computed as well. */
static void not_where_lanes_are_idle(void **state) {
  (void)state;
  assert_int_equal(abreast(function, 16), 1);
  assert_int_equal(abreast(function, 32), 2);
  assert_int_equal(abreast(function, 48), 1);
  assert_int_equal(abreast(function, 64), 4);
  assert_int_equal(abreast(function, 1000), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(where_it_pays),
      cmocka_unit_test(not_where_lanes_are_idle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
