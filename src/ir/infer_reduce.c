/* Reductions: reduce, windows, select_and_scatter, batch normalisation. */
#include "ir/infer_priv.h"

/* Operands are n inputs and n initial values. */
static Err *halves(Infer *f, int *n, const Type ***inputs, const Type ***inits) {
  const Op *op = f->op;
  *n = op->n_operands / 2;
  if (*n == 0 || op->n_operands % 2) FAIL(f, "needs inputs and as many initial values");
  if (op->n_results != *n) FAIL(f, "has %d results for %d inputs", op->n_results, *n);
  *inputs = arena_alloc(f->arena, sizeof(Type *) * (size_t)*n);
  *inits = arena_alloc(f->arena, sizeof(Type *) * (size_t)*n);
  for (int i = 0; i < *n; i++) {
    TRY(want_tensor(f, i, EANY));
    TRY(want_scalar(f, *n + i, EANY));
    (*inputs)[i] = in_type(f, i);
    (*inits)[i] = in_type(f, *n + i);
    if (!shapes_ok((*inputs)[0], (*inputs)[i])) FAIL(f, "inputs 0 and %d differ in shape", i);
    const Type *x = (*inputs)[i], *v = (*inits)[i];
    if (!elems_ok(x, v) && !promotable(x->dtype, v->dtype))
      FAIL(f, "input %d has elements of %s, its initial value is %s", i, dtype_name(x->dtype),
           dtype_name(v->dtype));
  }
  return NULL;
}

static Err *reduce(Infer *f) {
  int n, k;
  const Type **inputs, **inits;
  const int64_t *dims;
  TRY(halves(f, &n, &inputs, &inits));
  TRY(dims_of(f, "dimensions", inputs[0]->rank, false, &dims, &k));
  const Type **elem = arena_alloc(f->arena, sizeof *elem * (size_t)n);
  TRY(want_reducer(f, 0, n, inputs, inits, elem));
  for (int i = 0; i < n; i++) {
    int64_t *d = tmp_dims(f, inputs[i]->rank);
    int rank = 0;
    for (int j = 0; j < inputs[i]->rank; j++)
      if (!b_has_dim(k, dims, j)) d[rank++] = inputs[i]->dims[j];
    out_shape(f, i, elem[i]->dtype, elem[i]->quant, rank, d);
  }
  return NULL;
}

static Err *window_shape(Infer *f, const Type *t, int64_t *out) {
  int n;
  const int64_t *size, *strides, *base, *dilation, *padding;
  if (f->op->kind == OP_REDUCE_WINDOW) TRY(ints_of(f, "window_dimensions", t->rank, &size, &n));
  else TRY(window_ints(f, "window_dimensions", t->rank, 1, &size));
  TRY(window_ints(f, "window_strides", t->rank, 1, &strides));
  TRY(window_ints(f, "base_dilations", t->rank, 1, &base));
  TRY(window_ints(f, "window_dilations", t->rank, 1, &dilation));
  TRY(window_padding(f, t->rank, &padding));
  for (int i = 0; i < t->rank; i++)
    TRY(window_dim(f, t->dims[i], padding[2 * i], padding[2 * i + 1], base[i], size[i], dilation[i],
                   strides[i], &out[i]));
  return NULL;
}

static Err *reduce_window(Infer *f) {
  int n;
  const Type **inputs, **inits;
  TRY(halves(f, &n, &inputs, &inits));
  int64_t *d = tmp_dims(f, inputs[0]->rank);
  TRY(window_shape(f, inputs[0], d));
  const Type **elem = arena_alloc(f->arena, sizeof *elem * (size_t)n);
  TRY(want_reducer(f, 0, n, inputs, inits, elem));
  for (int i = 0; i < n; i++) out_shape(f, i, elem[i]->dtype, elem[i]->quant, inputs[0]->rank, d);
  return NULL;
}

static Err *select_and_scatter(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EANY));
  TRY(want_scalar(f, 2, EANY));
  const Type *t = in_type(f, 0), *s = in_type(f, 1), *v = in_type(f, 2);
  if (!elems_ok(t, s) || (!elems_ok(t, v) && !promotable(t->dtype, v->dtype)))
    FAIL(f, "operand, source and initial value differ in element type");
  int64_t *d = tmp_dims(f, t->rank);
  TRY(window_shape(f, t, d));
  if (!dims_ok(t->rank, d, s->rank, s->dims)) {
    Buf b = {0};
    for (int i = 0; i < t->rank; i++) buf_printf(&b, i ? "x%lld" : "%lld", (long long)d[i]);
    Err *e = op_err(f->op, ERR_INVALID, "the source has to be of the windowed shape %s",
                    b.p ? b.p : "()");
    buf_free(&b);
    return e;
  }
  TRY(want_region_args(f, 0, 2));
  for (int i = 0; i < 2; i++) {
    const Type *a = f->op->regions[0]->args[i]->type;
    if (a->kind != TY_TENSOR || a->rank || !elems_ok(a, t))
      FAIL(f,
           "argument %d of the select region has to be a 0-dimensional tensor of the operand's "
           "elements",
           i);
  }
  TRY(want_returns(f, 0, 1));
  const Type *p = region_return(f, 0)->operands[0]->type;
  if (p->kind != TY_TENSOR || p->rank || p->dtype != DT_I1)
    FAIL(f, "the select region has to return tensor<i1>");
  const Type *elem;
  TRY(want_reducer(f, 1, 1, &t, &v, &elem));
  out_shape(f, 0, elem->dtype, elem->quant, t->rank, t->dims);
  return NULL;
}

/* scale, mean ... are vectors as long as the feature dimension */
static Err *batch_norm(Infer *f) {
  bool grad = f->op->kind == OP_BATCH_NORM_GRAD;
  TRY(want_tensor(f, 0, EF | EQ));
  const Type *t = in_type(f, 0);
  int64_t dim;
  TRY(dim_index(f, "feature_index", t->rank, &dim));
  int vectors = grad ? 4 : f->op->n_operands;
  int64_t size = t->dims[dim];
  for (int i = 1; i < vectors; i++) {
    TRY(want_tensor(f, i, EF | EQ));
    const Type *v = in_type(f, i);
    if (!elems_ok(t, v)) FAIL(f, "operands 0 and %d differ in element type", i);
    if (v->rank != 1 || !dim_ok(v->dims[0], size))
      FAIL(f, "operand %d has to be a vector of %lld numbers, one for each feature", i,
           (long long)size);
    size = dim_more(size, v->dims[0]);
  }
  if (grad) {
    TRY(want_tensor(f, 4, EF | EQ));
    if (!types_ok(t, in_type(f, 4))) FAIL(f, "operand and grad_output differ in type");
  }
  out_like(f, 0, t);
  for (int i = 1; i < f->op->n_results; i++) out_shape(f, i, t->dtype, t->quant, 1, &size);
  return NULL;
}

InferFn infer_reduce_fn(OpKind k) {
  static const InferRow rows[] = {
      {OP_REDUCE, reduce},
      {OP_REDUCE_WINDOW, reduce_window},
      {OP_SELECT_AND_SCATTER, select_and_scatter},
      {OP_BATCH_NORM_GRAD, batch_norm},
      {OP_BATCH_NORM_INFERENCE, batch_norm},
      {OP_BATCH_NORM_TRAINING, batch_norm},
  };
  return infer_find(rows, COUNT_OF(rows), k);
}
