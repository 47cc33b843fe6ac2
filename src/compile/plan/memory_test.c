/* In which order steps run, and in whose memory. */
#include "compile/plan_test.h"

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

/* Beside small ones, and whatever their own sizes are. */
static void large_places_begin_on_pages(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 161, 161)), *v = b_arg(&p.b, f32(&p, 161, 3));
  Value *small = b_matmul(&p.b, x, v), *out[2] = {x, small};
  for (int i = 0; i < 6; i++) {
    out[0] = b_matmul(&p.b, out[0], x);
    out[1] = b_matmul(&p.b, out[0], out[1]);
  }
  b_return(&p.b, 2, out);
  Plan *q = plan_of(p.m);
  int large = 0;
  for (int i = 0; i < q->n_places; i++) {
    const Place *at = &q->places[i];
    if (at->kind != PLACE_ARENA || at->bytes < 161 * 161 * 4) continue;
    assert_int_equal(at->offset % 4096, 0);
    large += at->offset > 0;
  }
  assert_true(large >= 2);
  plan_free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(donated_memory_is_taken),
      cmocka_unit_test(donated_memory_still_read_is_not),
      cmocka_unit_test(updates_run_where_gradients_are_made),
      cmocka_unit_test(large_values_wait_for_their_reader),
      cmocka_unit_test(dead_memory_is_used_again),
      cmocka_unit_test(large_places_begin_on_pages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
