/* What becomes of scatters, and of the signs of what is kept. */
#include "compile/pass/prog_test.h"

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

static void messages_are_added_to_what_is_there(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 9, 6)), *rows = b_arg(&p.b, f32(&p, 4, 6));
  Value *ids = b_arg(&p.b, b_type(&p.b, DT_I32, 1, (int64_t[]){5}));
  Value *in[4] = {b_full(&p.b, x->type, 0), ids, rows, ids};
  Type *type = x->type;
  Op *sums = b_op(&p.b, OP_SEGMENT_SUM, 4, in, 1, &type, 0, NULL, 0, NULL);
  Value *y = b_add(&p.b, &sums->results[0], x);
  b_return(&p.b, 1, &y);
  ok(pass_scatters(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_ADD), 0);
  assert_ptr_equal(sums->operands[0], x);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_added_to_what_is_there),
      cmocka_unit_test(messages_are_added_to_what_is_there),
      cmocka_unit_test(one_element_of_each_row_is_a_select),
      cmocka_unit_test(signs_come_from_what_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
