/* What simplify leaves of small programs. */
#include "compile/pass/prog_test.h"
#include "compile/pass/query.h"

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

/* jax.experimental.control_deps: one value before the other, where the compiler may choose. */
static void wishes_for_an_order_go(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6)), *y = b_exp(&p.b, x);
  NamedAttr a[] = {{STR("call_target_name"), attr_string(p.m, STR("control_dep"))},
                   b_bool(&p.b, "has_side_effect", true)};
  b_op(&p.b, OP_CUSTOM_CALL, 2, (Value *[]){y, b_exp(&p.b, y)}, 0, NULL, 2, a, 0, NULL);
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  assert_int_equal(count(p.m, OP_CUSTOM_CALL), 0);
  assert_int_equal(count(p.m, OP_EXPONENTIAL), 1);
  module_free(p.m);
}

/* Of LAPACK's vectors that nobody reads. */
static void unread_vectors_are_not_asked_for(void **unused) {
  (void)unused;
  for (int reads = 0; reads < 2; reads++) {
    Prog p = start();
    Value *x = b_arg(&p.b, f32(&p, 6, 6));
    NamedAttr config = {STR("mode"), attr_int(p.m, DT_U8, 'V')};
    NamedAttr a[] = {{STR("call_target_name"), attr_string(p.m, STR("lapack_ssyevd_ffi"))},
                     {STR("mhlo.backend_config"), attr_dict(p.m, 1, &config)}};
    Type *w = type_tensor(p.m, DT_F32, 1, (int64_t[]){6}), *info = type_scalar(p.m, DT_I32, NULL);
    Op *op = b_op(&p.b, OP_CUSTOM_CALL, 1, &x, 3, (Type *[]){x->type, w, info}, 2, a, 0, NULL);
    b_return(&p.b, 2, (Value *[]){&op->results[1], &op->results[reads ? 0 : 2]});
    ok(pass_simplify(p.m));
    op = module_main(p.m)->body->first;
    assert_int_equal(op_attr(op, "mhlo.backend_config")->dict[0].value->i, reads ? 'V' : 'N');
    module_free(p.m);
  }
}

/* x[:, jnp.array([1, 0])]: JAX adds the size to what is negative of the constant first. */
static void gathers_at_constants_are_slices(void **unused) {
  (void)unused;
  static const struct {
    int64_t at[3];
    int slices, joined;
  } cases[] = {{{2, 0, 1}, 2, 1}, {{1, 2, 3}, 1, 0}, {{-6, -6, 9}, 2, 1}};
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Prog p = start();
    Value *x = b_arg(&p.b, f32(&p, 400, 6));
    NamedAttr value = {STR("value"), attr_tensor_i64(p.m, 1, (int64_t[]){3}, cases[i].at)};
    Value *at =
        b_op(&p.b, OP_CONSTANT, 0, NULL, 1, &value.value->type, 1, &value, 0, NULL)->results;
    Value *more = b_adds(&p.b, at, 6),
          *negative = b_compare(&p.b, "LT", at, b_full(&p.b, at->type, 0));
    at = b_reshape(&p.b, b_select(&p.b, negative, more, at), 2, (int64_t[]){3, 1});
    NamedAttr a[] = {{STR("offset_dims"), attr_ints(p.m, DT_I64, 1, (int64_t[]){0})},
                     {STR("collapsed_slice_dims"), attr_ints(p.m, DT_I64, 1, (int64_t[]){1})},
                     {STR("start_index_map"), attr_ints(p.m, DT_I64, 1, (int64_t[]){1})},
                     {STR("index_vector_dim"), attr_int(p.m, DT_I64, 1)},
                     {STR("slice_sizes"), attr_ints(p.m, DT_I64, 2, (int64_t[]){400, 1})}};
    Type *t = f32(&p, 400, 3);
    Value *y =
        b_op(&p.b, OP_GATHER, 2, (Value *[]){x, at}, 1, &t, COUNT_OF(a), a, 0, NULL)->results;
    b_return(&p.b, 1, &y);
    ok(pass_simplify(p.m));
    assert_int_equal(count(p.m, OP_GATHER), 0);
    assert_int_equal(count(p.m, OP_SLICE), cases[i].slices);
    assert_int_equal(count(p.m, OP_CONCATENATE), cases[i].joined);
    module_free(p.m);
  }
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

/* As PyTorch/XLA adds the bias of a convolution. */
static void transposed_broadcasts_put_dimensions_elsewhere(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 3, 0)), *y = b_arg(&p.b, f32(&p, 4, 3));
  Type *t = type_tensor(p.m, DT_F32, 3, (int64_t[]){5, 4, 3});
  int perm[3] = {1, 2, 0};
  Value *out[2] = {b_transpose(&p.b, b_bcast_like(&p.b, x, t, (int[]){2}), perm),
                   b_transpose(&p.b, b_bcast_like(&p.b, y, t, (int[]){1, 2}), perm)};
  b_return(&p.b, 2, out);
  ok(pass_simplify(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_TRANSPOSE), 0);
  const Op *ret = module_main(p.m)->body->last;
  const int64_t *map;
  assert_int_equal(op_ints(ret->operands[0]->def, "broadcast_dimensions", &map), 1);
  assert_int_equal(map[0], 1);
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

/* The gradient of a pad with gaps: cut, then every second row. */
static void pads_that_cut_are_slices(void **unused) {
  (void)unused;
  for (int k = 0; k < 2; k++) {
    Prog p = start();
    Value *x = b_arg(&p.b, f32(&p, 9, 6));
    Value *y = b_pad(&p.b, x, b_scalar(&p.b, DT_F32, 1), (int64_t[]){-1, k}, (int64_t[]){-3, -2},
                     (int64_t[]){0, 0});
    y = b_slice(&p.b, y, (int64_t[]){0, 0}, (int64_t[]){5, 4}, (int64_t[]){2, 1});
    b_return(&p.b, 1, &y);
    ok(pass_simplify(p.m));
    ok(ir_verify(p.m));
    assert_int_equal(count(p.m, OP_PAD), k);
    assert_int_equal(count(p.m, OP_SLICE), 1);
    const Op *op = module_main(p.m)->body->last->operands[0]->def;
    const int64_t *from, *to;
    op_ints(op, "start_indices", &from);
    op_ints(op, "limit_indices", &to);
    assert_int_equal(from[0], k ? 0 : 1);
    assert_int_equal(to[0], k ? 5 : 6);
    module_free(p.m);
  }
}

static void counts_are_not_negative(void **unused) {
  (void)unused;
  for (int k = 0; k < 2; k++) {
    Prog p = start();
    Type *t = b_type(&p.b, DT_I32, 1, (int64_t[]){40});
    Value *i = b_adds(&p.b, b_muls(&p.b, b_iota(&p.b, t, 0), 3), k ? -1 : 1), *x = b_arg(&p.b, t);
    Value *y = b_select(&p.b, b_compare(&p.b, "LT", i, b_full(&p.b, t, 0)), x, i);
    b_return(&p.b, 1, &y);
    ok(pass_simplify(p.m));
    ok(ir_verify(p.m));
    assert_int_equal(count(p.m, OP_SELECT) + count(p.m, OP_COMPARE), 2 * k);
    module_free(p.m);
  }
}

static void sums_of_none_are_their_start(void **unused) {
  (void)unused;
  Prog p = start();
  Value *x = b_arg(&p.b, f32(&p, 4, 6));
  Value *y = b_reduce(&p.b, OP_ADD, b_slice_dim(&p.b, x, 0, 2, 2), 1, (int64_t[]){0});
  b_return(&p.b, 1, &y);
  ok(pass_simplify(p.m));
  ok(ir_verify(p.m));
  assert_int_equal(count(p.m, OP_REDUCE), 0);
  const Value *left = module_main(p.m)->body->last->operands[0];
  assert_int_equal(type_count(left->type), 6);
  module_free(p.m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(identities_go),
      cmocka_unit_test(adding_zero_stays),
      cmocka_unit_test(wishes_for_an_order_go),
      cmocka_unit_test(unread_vectors_are_not_asked_for),
      cmocka_unit_test(gathers_at_constants_are_slices),
      cmocka_unit_test(spread_constants_fold),
      cmocka_unit_test(equal_ops_merge_and_constants_fold),
      cmocka_unit_test(transposes_fold_into_products),
      cmocka_unit_test(outer_products_turn_around),
      cmocka_unit_test(transposed_broadcasts_put_dimensions_elsewhere),
      cmocka_unit_test(no_elements_no_work),
      cmocka_unit_test(sums_of_none_are_their_start),
      cmocka_unit_test(counts_are_not_negative),
      cmocka_unit_test(pads_that_cut_are_slices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
