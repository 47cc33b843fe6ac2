/* The passes on small programs: what is left after simplify, what fuses into one step, what the
 * plan puts where. That the numbers stay the same is tested by src/dev/cpu/random_test.c and the
 * golden corpus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <stdlib.h>

#include "compile/compile.h"
#include "compile/pass/pass.h"
#include "compile/pass/query.h"
#include "ir/build.h"

static bool fusible(void *arg, const Op *op) {
  (void)arg;
  OpClass c = op_info[op->kind].cls;
  return c == OC_EWISE || c == OC_MOVE || op->kind == OP_IOTA || op->kind == OP_REDUCE;
}

static int in_place(void *arg, const Op *op) {
  (void)arg;
  return op->kind == OP_DYNAMIC_UPDATE_SLICE ? 1 : 0;
}

static const Target target = {
    .fusible = fusible, .in_place = in_place, .replicas = 1, .partitions = 1};

static void ok(Err *e) {
  if (e) fail_msg("%s", err_text(e));
}

static int count(const Module *m, OpKind kind) {
  int n = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) n += op->kind == kind;
  return n;
}

static Plan *plan_of(Module *m) {
  Plan *p = NULL;
  ok(ir_verify(m));
  ok(compile_program(m, &target, &p));
  module_free(m);
  return p;
}

typedef struct Prog {
  Build b;
  Module *m;
} Prog;

static Prog start(void) {
  Prog p = {.m = module_new()};
  b_func(&p.b, p.m, "main");
  return p;
}

static Type *f32(Prog *p, int64_t a, int64_t c) {
  int64_t dims[2] = {a, c};
  return b_type(&p->b, DT_F32, c ? 2 : 1, dims);
}

/* ---- simplify ---- */

static void identities_go(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6));
  int perm[2] = {1, 0};
  Value *y = b_transpose(&p.b, b_transpose(&p.b, x, perm), perm);
  y = b_mul(&p.b, y, b_full(&p.b, x->type, 1));
  y = b_neg(&p.b, b_neg(&p.b, y));
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  const Op *ret = module_main(p.m)->body->last;
  assert_ptr_equal(ret->operands[0], x);
  assert_ptr_equal(module_main(p.m)->body->first, ret); /* nothing else is left */
  module_free(p.m);
}

static void adding_zero_stays(void **unused) { /* -0 + 0 is +0 */
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6));
  Value *y = b_add(&p.b, x, b_full(&p.b, x->type, 0));
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  assert_int_equal(count(p.m, OP_ADD), 1);
  module_free(p.m);
}

static void spread_constants_fold(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 400, 600));
  Value *y = b_log(&p.b, b_add(&p.b, b_full(&p.b, x->type, 2), b_full(&p.b, x->type, 3)));
  y = b_mul(&p.b, x, y);
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  assert_int_equal(count(p.m, OP_ADD) + count(p.m, OP_LOG), 0);
  const Op *mul = module_main(p.m)->body->last->operands[0]->def;
  const float *log_5 = value_splat(mul->operands[1]);
  assert_non_null(log_5);
  assert_true(*log_5 > 1.6094f && *log_5 < 1.6095f);
  module_free(p.m);
}

static void equal_ops_merge_and_constants_fold(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6));
  Value *a = b_exp(&p.b, x), *b = b_exp(&p.b, x);
  Value *c = b_mul(&p.b, b_scalar(&p.b, DT_F32, 3), b_scalar(&p.b, DT_F32, 5));
  Value *y = b_mul(&p.b, b_add(&p.b, a, b), b_bcast_scalar(&p.b, c, x->type));
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  assert_int_equal(count(p.m, OP_EXPONENTIAL), 1);
  assert_int_equal(count(p.m, OP_MULTIPLY), 1);
  assert_int_equal(count(p.m, OP_CONSTANT), 1);
  module_free(p.m);
}

static void transposes_fold_into_products(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6)), *w = b_arg(&p.b, f32(&p, 5, 6));
  int perm[2] = {1, 0};
  Value *y = b_matmul(&p.b, x, b_transpose(&p.b, w, perm));
  y = b_transpose(&p.b, y, perm);
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_TRANSPOSE), 0);
  assert_int_equal(count(p.m, OP_DOT_GENERAL), 1);
  module_free(p.m);
}

/* The outer product is made the other way round; what has no elements takes no part. */
static void outer_products_turn_around(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 0)), *y = b_arg(&p.b, f32(&p, 6, 0));
  Type *t = f32(&p, 4, 6);
  int perm[2] = {1, 0};
  Value *z =
      b_mul(&p.b, b_bcast_like(&p.b, x, t, (int[]){0}), b_bcast_like(&p.b, y, t, (int[]){1}));
  z = b_transpose(&p.b, z, perm);
  b_return(&p.b, 1, &z);
  ok(pass_simplify(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_TRANSPOSE), 0);
  assert_int_equal(count(p.m, OP_MULTIPLY), 1);
  module_free(p.m);
}

static void no_elements_no_work(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6));
  Value *none = b_tanh(&p.b, b_slice_dim(&p.b, x, 0, 2, 2));
  Value *y = b_concat(&p.b, 3, (Value *[]){none, x, none}, 0);
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  const Op *ret = module_main(p.m)->body->last;
  assert_ptr_equal(ret->operands[0], x);
  assert_ptr_equal(module_main(p.m)->body->first, ret);
  module_free(p.m);
}

static Value *rows_added(Prog *p, Value *x, Value *ids, Value *u) {
  IndexDims d = {.n_offset = 1, .n_collapsed = 1, .n_map = 1, .index_vector_dim = 1, .offset = {1}};
  return b_scatter(&p->b, OP_ADD, x, b_reshape(&p->b, ids, 2, (int64_t[]){b_dim(ids, 0), 1}), u,
                   &d);
}

static void rows_are_added_to_what_is_there(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 9, 6)), *u = b_arg(&p.b, f32(&p, 4, 6));
  int64_t four = 4;
  Value *ids = b_arg(&p.b, b_type(&p.b, DT_I32, 1, &four));
  Value *y = b_add(&p.b, rows_added(&p, b_full(&p.b, x->type, 0), ids, u), b_neg(&p.b, x));
  b_return(&p.b, 1, &y);
  ok(pass_scatters(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_ADD), 0);
  const Op *scatter = module_main(p.m)->body->last->operands[0]->def;
  assert_int_equal(scatter->kind, OP_SCATTER);
  assert_int_equal(scatter->operands[0]->def->kind, OP_NEGATE);
  module_free(p.m);
}

static void one_element_of_each_row_is_a_select(void **unused) {
  (void)unused;
  Prog p = start();
  Value *u = b_arg(&p.b, f32(&p, 4, 0));
  int64_t four = 4;
  Value *ids = b_arg(&p.b, b_type(&p.b, DT_I32, 1, &four));
  IndexDims d = {.n_collapsed = 1, .n_map = 1, .n_batch = 1, .index_vector_dim = 1};
  d.collapsed[0] = d.map[0] = 1;
  Value *zeros = b_full(&p.b, f32(&p, 4, 9), 0);
  Value *y = b_scatter(&p.b, OP_ADD, zeros, b_reshape(&p.b, ids, 2, (int64_t[]){4, 1}), u, &d);
  b_return(&p.b, 1, &y);
  ok(pass_scatters(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_SCATTER), 0);
  module_free(p.m);
}

static void signs_come_from_what_is_kept(void **unused) {
  (void)unused;
  for (int normed = 0; normed < 2; normed++) {
    Prog p = start();
    Value *a = b_arg(&p.b, f32(&p, 4, 6)), *w = b_arg(&p.b, f32(&p, 6, 5));
    Value *x = b_matmul(&p.b, a, w);
    if (normed) x = b_mul(&p.b, x, x);
    Value *zero = b_full(&p.b, x->type, 0), *y = b_max(&p.b, x, zero);
    Value *out[2] = {y, b_compare(&p.b, "GT", x, zero)};
    b_return(&p.b, 2, out);
    ok(pass_masks(p.m));
    assert_ptr_equal(out[1]->def->operands[0], normed ? x : y);
    module_free(p.m);
  }
}

/* ---- fuse ---- */

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

static void heavy_work_is_not_repeated(
    void **unused) { /* exp of a row vector under a broadcast over many rows */
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 512, 256)), *r = b_arg(&p.b, f32(&p, 256, 0));
  Value *y = b_mul(&p.b, x, b_bcast_last(&p.b, b_exp(&p.b, r), x->type));
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->body.n, 2);
  plan_free(q);
}

/* ---- plan ---- */

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

static void donated_memory_is_taken(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 32, 32)), *g = b_arg(&p.b, x->type);
  b_arg_attr(module_main(p.m), 0, "tf.aliasing_output", attr_int(p.m, DT_I32, 0));
  Value *y = b_sub(&p.b, x, g);
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->results[0].reuse_arg, 0);
  plan_free(q);
}

static void donated_memory_still_read_is_not(void **unused) { /* x is read after y is written */
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 32, 32)), *g = b_arg(&p.b, x->type);
  b_arg_attr(module_main(p.m), 0, "tf.aliasing_output", attr_int(p.m, DT_I32, 0));
  Value *y = b_sub(&p.b, x, g);
  Value *out[2] = {y, b_matmul(&p.b, y, x)};
  b_return(&p.b, 2, out);
  Plan *q = plan_of(p.m);
  assert_int_not_equal(q->results[0].reuse_arg, 0);
  plan_free(q);
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

/* Eight gradients, then eight updates: memory for two arrays is enough. */
static void updates_run_where_gradients_are_made(void **unused) {
  (void)unused;
  enum { N = 8 };
  Prog p = start();
  Value *w[N], *g[N], *out[N], *x = b_arg(&p.b, f32(&p, 64, 64));
  for (int i = 0; i < N; i++) {
    w[i] = b_arg(&p.b, x->type);
    b_arg_attr(module_main(p.m), i + 1, "tf.aliasing_output", attr_int(p.m, DT_I32, i));
  }
  for (int i = 0; i < N; i++) g[i] = b_matmul(&p.b, x, w[i]);
  for (int i = 0; i < N; i++) out[i] = b_sub(&p.b, w[i], g[i]);
  b_return(&p.b, N, out);
  Plan *q = plan_of(p.m);
  assert_true(q->arena_bytes <= 2 * 64 * 64 * 4);
  for (int i = 0; i < N; i++) assert_int_equal(q->results[i].reuse_arg, i + 1);
  plan_free(q);
}

/* The large product of two small arrays is wanted only at the end. */
static void large_values_wait_for_their_reader(void **unused) {
  (void)unused;
  Prog p = start();
  Value *a = b_arg(&p.b, f32(&p, 64, 2)), *b = b_arg(&p.b, f32(&p, 2, 64));
  Value *x = b_arg(&p.b, f32(&p, 64, 64));
  Value *large = b_matmul(&p.b, a, b), *y = x;
  for (int i = 0; i < 4; i++) y = b_matmul(&p.b, y, x);
  y = b_add(&p.b, y, large);
  b_return(&p.b, 1, &y);
  Plan *q = plan_of(p.m);
  assert_true(q->arena_bytes <= 2 * 64 * 64 * 4);
  plan_free(q);
}

static void dead_memory_is_used_again(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 64, 64));
  for (int i = 0; i < 10; i++) x = b_matmul(&p.b, x, x);
  b_return(&p.b, 1, &x);
  Plan *q = plan_of(p.m);
  assert_int_equal(q->arena_bytes,
                   2 * 64 * 64 * 4); /* in and out of one product; the last is the result */
  plan_free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(identities_go),
      cmocka_unit_test(adding_zero_stays),
      cmocka_unit_test(spread_constants_fold),
      cmocka_unit_test(equal_ops_merge_and_constants_fold),
      cmocka_unit_test(transposes_fold_into_products),
      cmocka_unit_test(outer_products_turn_around),
      cmocka_unit_test(no_elements_no_work),
      cmocka_unit_test(rows_are_added_to_what_is_there),
      cmocka_unit_test(one_element_of_each_row_is_a_select),
      cmocka_unit_test(signs_come_from_what_is_kept),
      cmocka_unit_test(softmax_is_one_step),
      cmocka_unit_test(bias_gradient_rides_along),
      cmocka_unit_test(long_chains_are_cut),
      cmocka_unit_test(no_cycles),
      cmocka_unit_test(heavy_work_is_not_repeated),
      cmocka_unit_test(joined_values_are_not_repeated),
      cmocka_unit_test(donated_memory_is_taken),
      cmocka_unit_test(donated_memory_still_read_is_not),
      cmocka_unit_test(backward_passes_read_what_is_stored),
      cmocka_unit_test(updates_run_where_gradients_are_made),
      cmocka_unit_test(large_values_wait_for_their_reader),
      cmocka_unit_test(dead_memory_is_used_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
