/* Plans as bytes, past their checksum: what a damaged one could lead a run to is refused when it is read.
 * src/dev/compile_cache_fuzz.c looks for more of it. */
#include "base/wire.h"
#include "compile/plan_test.h"

/* Two steps of their own, so that there are two ids, with a constant. */
static Plan *two_steps(void) {
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 4));
  Value *y = b_matmul(&p.b, x, b_const(&p.b, x->type, (float[16]){1, 2, 3}));
  y = b_matmul(&p.b, y, x);
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->n_steps, 2);
  return q;
}

static bool comes_back(Plan *q) {
  Buf bytes = {0};
  Wire w = {.out = &bytes}, r = {0};
  plan_wire(&w, &q);
  assert_false(w.bad);
  r.in = (Str){bytes.p, bytes.n};
  Plan *again = NULL;
  plan_wire(&r, &again);
  plan_free(again);
  buf_free(&bytes);
  return !r.bad;
}

/* What belongs to a step is found by its id, and made once. */
static void ids_are_of_one_step_each(void **unused) {
  (void)unused;
  Plan *q = two_steps();
  assert_true(comes_back(q));
  int id = q->body.steps[1].id;
  q->body.steps[1].id = q->body.steps[0].id;
  assert_false(comes_back(q));
  q->body.steps[1].id = id;
  assert_true(comes_back(q));
  plan_free(q);
}

static void constants_have_their_type(void **unused) {
  (void)unused;
  Plan *q = two_steps();
  Attr *value = NULL;
  for (Op *op = q->main->body->first; op && !value; op = op->next)
    if (op->kind == OP_CONSTANT) value = (Attr *)(uintptr_t)op_attr(op, "value");
  assert_non_null(value);
  Type *type = value->type;
  Type *const wrong[] = {NULL, type_scalar(q->module, DT_F32, NULL),
                         type_tensor(q->module, DT_F32, 2, (int64_t[]){4, 5}),
                         type_tensor(q->module, DT_I32, 2, (int64_t[]){4, 4})};
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    Buf bytes = {0};
    Wire w = {.out = &bytes};
    value->type = wrong[i];
    plan_wire(&w, &q);
    assert_true(w.bad);
    buf_free(&bytes);
  }
  value->type = type;
  assert_true(comes_back(q));
  plan_free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ids_are_of_one_step_each),
      cmocka_unit_test(constants_have_their_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
