/* What becomes one step. That the numbers stay the same is tested by src/dev/cpu/loops/random_test.c and
 * the golden corpus. */
#include "compile/plan_test.h"

static void softmax_is_one_step(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 64, 100));
  int64_t d = 1;
  int map[1] = {0};
  Value *top = b_reduce(&p.b, OP_MAXIMUM, x, 1, &d);
  Value *e = b_exp(&p.b, b_sub(&p.b, x, b_bcast_like(&p.b, top, x->type, map)));
  Value *y = b_div(&p.b, e, b_bcast_like(&p.b, b_reduce(&p.b, OP_ADD, e, 1, &d), x->type, map));
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->body.n, 1);
  assert_int_equal(q->body.steps[0].kind, STEP_FUSED);
  assert_int_equal(q->body.steps[0].fusion->kind, FUSION_ROW);
  assert_int_equal(q->arena_bytes, 0);
  plan_free(q);
}

static void
bias_gradient_rides_along(void **unused) { /* a value that is stored and summed over rows */
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4096, 64)), *g = b_arg(&p.b, x->type);
  Value *y = b_mul(&p.b, x, g);
  int64_t d = 0;
  Value *out[2] = {y, b_reduce(&p.b, OP_ADD, y, 1, &d)};
  b_return(&p.b, 2, out);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->body.n, 1);
  assert_int_equal(q->body.steps[0].fusion->kind, FUSION_SPLIT);
  assert_int_equal(q->body.steps[0].n_out, 2);
  plan_free(q);
}

/* The three coordinates of a sum over points are too few for the lanes: they come before the points. Not where the sum is all there
 * is to divide among the threads, and not where what lies together is many. */
static void few_beside_a_sum_come_before_it(void **unused) {
  (void)unused;
  static const struct {
    int64_t rows, points, beside;
    FusionKind kind;
  } cases[] = {{64, 100, 3, FUSION_ROW}, {1, 6400, 3, FUSION_SPLIT}, {64, 100, 24, FUSION_SPLIT}};
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Prog p = start();
    int64_t dims[] = {cases[i].rows, cases[i].points, cases[i].beside}, d = 1;
    Value *x = b_arg(&p.b, type_tensor(p.m, DT_F32, 3, dims));
    Value *y = b_reduce(&p.b, OP_ADD, b_exp(&p.b, x), 1, &d);
    b_return(&p.b, 1, &y);
    Plan *q = plan_of(p.m);
    assert_int_equal(q->body.n, 1);
    const Fusion *f = q->body.steps[0].fusion;
    assert_int_equal(f->kind, cases[i].kind);
    if (f->kind == FUSION_ROW) assert_true(f->dom.reduced[2] && f->dom.dims[2] == cases[i].points);
    plan_free(q);
  }
}

/* No fusion grows without end: compiling it would take longer than its parts, and its sweeps compute
 * again what those before them did. */
static void long_chains_are_cut(void **unused) {
  (void)unused;
  Prog p = start();
  Value *y = b_arg(&p.b, f32(&p, 32, 64));
  for (int i = 0; i < 200; i++) y = b_exp(&p.b, y);
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->body.n, 5);
  plan_free(q);
  p = start();
  y = b_arg(&p.b, f32(&p, 32, 64));
  int64_t d = 1;
  int map[1] = {0};
  for (int i = 0; i < 24; i++)
    y = b_sub(&p.b, y, b_bcast_like(&p.b, b_reduce(&p.b, OP_ADD, y, 1, &d), y->type, map));
  b_return(&p.b, 1, &y);
  q = plan_of(p.m);
  assert_int_equal(q->body.n, 3);
  plan_free(q);
}

static void no_cycles(void **unused) { /* a -> product -> b, a -> b: a and b cannot be one step */
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 32, 32));
  Value *a = b_exp(&p.b, x);
  Value *y = b_add(&p.b, a, b_matmul(&p.b, a, a));
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->body.n, 3);
  assert_int_equal(q->body.steps[1].kind, STEP_OP);
  plan_free(q);
}

/* exp of a vector under a broadcast: over many rows; of many rows of few columns, where it would be
 * computed one number at a time. */
static void heavy_work_is_not_repeated(void **unused) {
  (void)unused;
  static const int64_t sizes[][2] = {{512, 256}, {512, 64}, {9000, 3}};
  for (int i = 0; i < COUNT_OF(sizes); i++) {
    Prog p = start();
    int along = i == 2 ? 0 : 1;
    Value *x = b_arg(&p.b, f32(&p, sizes[i][0], sizes[i][1])),
          *r = b_exp(&p.b, b_arg(&p.b, f32(&p, sizes[i][along], 0)));
    Value *y = b_mul(&p.b, x, b_bcast_like(&p.b, r, x->type, &along));
    b_return(&p.b, 1, &y);
    Plan *q = plan_of(p.m);
    assert_int_equal(q->body.n, 2);
    plan_free(q);
  }
}

/* A query joined of two halves, for the product with each key. */
static void joined_values_are_not_repeated(void **unused) {
  (void)unused;
  Prog p = start();
  Value *k = b_arg(&p.b, f32(&p, 8, 96)), *h[2];
  for (int i = 0; i < 2; i++) h[i] = b_arg(&p.b, f32(&p, 48, 0));
  int64_t d = 1;
  Value *q = b_concat(&p.b, 2, h, 0);
  Value *y = b_reduce(&p.b, OP_ADD, b_mul(&p.b, k, b_bcast_last(&p.b, q, k->type)), 1, &d);
  b_return(&p.b, 1, &y);
  Plan *plan = plan_of(p.m);
  assert_int_equal(plan->body.n, 2);
  plan_free(plan);
}

/* y = x tanh(x) goes into a product; what the gradient wants of x is computed from x. */
static void backward_passes_read_what_is_stored(void **unused) {
  (void)unused;
  Prog p = start();
  Value *a = b_arg(&p.b, f32(&p, 64, 64)), *g = b_arg(&p.b, a->type);
  Value *x = b_matmul(&p.b, a, a), *t = b_tanh(&p.b, x), *y = b_mul(&p.b, x, t);
  Value *slope = b_add(&p.b, t, b_sub(&p.b, x, b_mul(&p.b, y, t)));
  Value *dx = b_mul(&p.b, b_mul(&p.b, g, b_matmul(&p.b, y, a)), slope);
  Value *out = b_matmul(&p.b, dx, a);
  b_return(&p.b, 1, &out);
  Plan *q = plan_of(p.m);
  const Fusion *last = NULL;
  int stored = 0;
  for (int i = 0; i < q->body.n; i++) {
    if (q->body.steps[i].kind != STEP_FUSED) continue;
    last = q->body.steps[i].fusion;
    stored += last->n_out;
  }
  assert_int_equal(stored, 2); /* y and dx: not t, not slope */
  for (int i = 0; i < last->n_in; i++)
    assert_true(!last->in[i]->def || last->in[i]->def->kind == OP_DOT_GENERAL ||
                last->in[i]->def->kind == OP_MULTIPLY);
  plan_free(q);
}

/* The product reads x, the fusion joins it to p and looks at p's part alone. */
static void pieces_that_nobody_reads_are_stored(void **unused) {
  (void)unused;
  Prog p = start();
  Value *a = b_arg(&p.b, f32(&p, 12, 5)), *y = b_arg(&p.b, f32(&p, 4, 5)),
        *w = b_arg(&p.b, f32(&p, 5, 8)), *x = b_mul(&p.b, y, y);
  Value *both = b_concat(&p.b, 2, (Value *[]){a, x}, 0);
  Value *flat = b_reshape(&p.b, b_neg(&p.b, both), 1, (int64_t[]){80});
  Value *out[] = {b_slice_dim(&p.b, flat, 0, 5, 10), b_matmul(&p.b, x, w)};
  b_return(&p.b, 2, out);
  Plan *q = plan_of(p.m);
  int stored = 0;
  for (int i = 0; i < q->body.n; i++)
    if (q->body.steps[i].kind == STEP_FUSED) stored += q->body.steps[i].fusion->n_out;
  assert_int_equal(stored, 2); /* the slice and x */
  plan_free(q);
}

/* A row's sum is one number: functions of it go to a loop that takes a vector of rows at a time, also
 * where the rows are few. */
static void functions_of_sums_are_vectors(void **unused) {
  (void)unused;
  static const int functions[] = {0, 1, 2, 2}, rows[] = {64, 64, 64, 16}, steps[] = {1, 1, 2, 1};
  for (int i = 0; i < COUNT_OF(steps); i++) {
    Prog p = start();
    int64_t d = 1;
    Value *x = b_arg(&p.b, f32(&p, rows[i], 64));
    Value *y = b_reduce(&p.b, OP_ADD, b_mul(&p.b, x, x), 1, &d);
    for (int k = 0; k < functions[i]; k++) y = b_mul(&p.b, y, b_tanh(&p.b, b_add(&p.b, y, y)));
    b_return(&p.b, 1, &y);
    Plan *q = plan_of(p.m);
    assert_int_equal(q->body.n, steps[i]);
    plan_free(q);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_is_one_step),
      cmocka_unit_test(bias_gradient_rides_along),
      cmocka_unit_test(few_beside_a_sum_come_before_it),
      cmocka_unit_test(long_chains_are_cut),
      cmocka_unit_test(no_cycles),
      cmocka_unit_test(heavy_work_is_not_repeated),
      cmocka_unit_test(joined_values_are_not_repeated),
      cmocka_unit_test(backward_passes_read_what_is_stored),
      cmocka_unit_test(pieces_that_nobody_reads_are_stored),
      cmocka_unit_test(functions_of_sums_are_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
