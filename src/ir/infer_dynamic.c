/* Operations whose shapes are operands: the declared result is checked as far as it is known. */
#include "ir/infer_priv.h"

static Err *dynamic_broadcast_in_dim(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  const Type *t = in_type(f, 0), *r = res_type(f, 0);
  TRY(want_shape_vector(f, 1, r->rank));
  if (!elems_ok(t, r)) FAIL(f, "operand and result differ in element type");
  const int64_t *v, *grow, *keep;
  int n, n_grow, n_keep;
  TRY(dims_of(f, "broadcast_dimensions", r->rank, false, &v, &n));
  if (n != t->rank)
    FAIL(f, "broadcast_dimensions has %d numbers for an operand of %d dimensions", n, t->rank);
  for (int i = 0; i < n; i++)
    if (t->dims[i] != 1 && !dim_ok(t->dims[i], r->dims[v[i]]))
      FAIL(f, "dimension %d of the operand is %lld, the result's dimension %lld is %lld", i,
           (long long)t->dims[i], (long long)v[i], (long long)r->dims[v[i]]);
  TRY(dims_of(f, "known_expanding_dimensions", t->rank, false, &grow, &n_grow));
  TRY(dims_of(f, "known_nonexpanding_dimensions", t->rank, false, &keep, &n_keep));
  TRY(check_const_shape(f, 1));
  for (int i = 0; i < n_grow; i++)
    if (b_has_dim(n_keep, keep, grow[i]))
      FAIL(f, "dimension %lld is known to expand and not to", (long long)grow[i]);
  out_declared(f, 0);
  return NULL;
}

static Err *dynamic_iota(Infer *f) {
  TRY(want_result_tensor(f, 0, EI | EF | EC | EQ));
  const Type *r = res_type(f, 0);
  int64_t d;
  TRY(want_shape_vector(f, 0, r->rank));
  if (r->rank == 0) FAIL(f, "a 0-dimensional result has no dimension to count along");
  TRY(dim_index(f, "iota_dimension", r->rank, &d));
  TRY(check_const_shape(f, 0));
  out_declared(f, 0);
  return NULL;
}

static Err *dynamic_pad(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_scalar(f, 1, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  const Type *t = in_type(f, 0), *r = res_type(f, 0);
  if (!elems_ok(t, in_type(f, 1)) || !elems_ok(t, r))
    FAIL(f, "operand, padding value and result differ in element type");
  if (r->rank != t->rank) FAIL(f, "operand and result differ in the number of dimensions");
  for (int i = 2; i < 5; i++) TRY(want_shape_vector(f, i, t->rank));
  int64_t n[3];
  const int64_t *lo = const_ints(f, 2, &n[0]), *hi = const_ints(f, 3, &n[1]),
                *in = const_ints(f, 4, &n[2]);
  for (int i = 0; i < t->rank; i++) {
    if (in && n[2] == t->rank && in[i] < 0)
      FAIL(f, "an interior padding of %lld", (long long)in[i]);
    if (!lo || !hi || !in || n[0] != t->rank || n[1] != t->rank || n[2] != t->rank ||
        t->dims[i] < 0)
      continue;
    int64_t d;
    if (mul_overflows(MAX(t->dims[i] - 1, 0), in[i], &d) || add_overflows(d, t->dims[i], &d) ||
        add_overflows(d, lo[i], &d) || add_overflows(d, hi[i], &d))
      FAIL(f, "the padded size does not fit in 64 bits");
    if (!dim_ok(r->dims[i], d))
      FAIL(f, "padding makes dimension %d of size %lld, the result has %lld", i, (long long)d,
           (long long)r->dims[i]);
  }
  out_declared(f, 0);
  return NULL;
}

static Err *dynamic_reshape(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  const Type *t = in_type(f, 0), *r = res_type(f, 0);
  TRY(want_shape_vector(f, 1, r->rank));
  if (!elems_ok(t, r)) FAIL(f, "operand and result differ in element type");
  if (type_is_static(t) && type_is_static(r) && type_count(t) != type_count(r))
    FAIL(f, "%lld elements cannot become %lld", (long long)type_count(t), (long long)type_count(r));
  TRY(check_const_shape(f, 1));
  int64_t n, count = 1;
  const int64_t *v = type_is_static(t) ? const_ints(f, 1, &n) : NULL;
  for (int i = 0; v && i < n; i++)
    if (mul_overflows(count, v[i], &count)) count = -1;
  if (v && count != type_count(t))
    FAIL(f, "%lld elements cannot become %lld", (long long)type_count(t), (long long)count);
  out_declared(f, 0);
  return NULL;
}

static Err *real_dynamic_slice(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  const Type *t = in_type(f, 0), *r = res_type(f, 0);
  if (!elems_ok(t, r)) FAIL(f, "operand and result differ in element type");
  if (r->rank != t->rank) FAIL(f, "operand and result differ in the number of dimensions");
  for (int i = 1; i < 4; i++) {
    TRY(want_shape_vector(f, i, t->rank));
    if (in_type(f, i)->dtype != in_type(f, 1)->dtype)
      FAIL(f, "start, limit and strides differ in element type");
  }
  out_declared(f, 0);
  return NULL;
}

static Err *get_dimension_size(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  int64_t d;
  TRY(dim_index(f, "dimension", in_type(f, 0)->rank, &d));
  out_shape(f, 0, DT_I32, NULL, 0, NULL);
  return NULL;
}

static Err *set_dimension_size(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_scalar(f, 1, EI));
  TRY(want_result_tensor(f, 0, EANY));
  if (in_type(f, 1)->dtype != DT_I32) FAIL(f, "the size has to be tensor<i32>");
  const Type *t = in_type(f, 0), *r = res_type(f, 0);
  int64_t d;
  TRY(dim_index(f, "dimension", t->rank, &d));
  if (!elems_ok(t, r) || r->rank != t->rank)
    FAIL(f, "the result differs in more than the size of one dimension");
  for (int i = 0; i < t->rank; i++)
    if (i != d && !dim_ok(t->dims[i], r->dims[i]))
      FAIL(f, "the result differs in more than the size of one dimension");
  out_declared(f, 0);
  return NULL;
}

InferFn infer_dynamic_fn(OpKind k) {
  static const InferRow rows[] = {
      {OP_DYNAMIC_BROADCAST_IN_DIM, dynamic_broadcast_in_dim},
      {OP_DYNAMIC_IOTA, dynamic_iota},
      {OP_DYNAMIC_PAD, dynamic_pad},
      {OP_DYNAMIC_RESHAPE, dynamic_reshape},
      {OP_REAL_DYNAMIC_SLICE, real_dynamic_slice},
      {OP_GET_DIMENSION_SIZE, get_dimension_size},
      {OP_SET_DIMENSION_SIZE, set_dimension_size},
      {OP_DYNAMIC_GATHER, infer_dynamic_gather},
      {OP_DYNAMIC_CONV, infer_dynamic_conv},
  };
  return infer_find(rows, COUNT_OF(rows), k);
}
