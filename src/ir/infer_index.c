/* Data-dependent addressing: dynamic slices, gather, scatter. */
#include "ir/infer_priv.h"

static Err *start_indices(Infer *f, int from, int rank) {
  const Op *op = f->op;
  if (op->n_operands - from != rank)
    FAIL(f, "has %d start indices for an operand of %d dimensions", op->n_operands - from, rank);
  for (int i = from; i < op->n_operands; i++) {
    TRY(want_scalar(f, i, EI));
    if (in_type(f, i)->dtype != in_type(f, from)->dtype)
      FAIL(f, "start indices differ in element type");
  }
  return NULL;
}

static Err *dynamic_slice(Infer *f) {
  if (f->op->n_operands < 1) FAIL(f, "needs an operand");
  TRY(want_tensor(f, 0, EMOST));
  const Type *t = in_type(f, 0);
  const int64_t *v;
  int n;
  TRY(ints_of(f, "slice_sizes", t->rank, &v, &n));
  TRY(start_indices(f, 1, t->rank));
  for (int i = 0; i < n; i++)
    if (v[i] < 0 || (t->dims[i] >= 0 && v[i] > t->dims[i]))
      FAIL(f, "slice size %lld in dimension %d of size %lld", (long long)v[i], i,
           (long long)t->dims[i]);
  out_shape(f, 0, t->dtype, t->quant, n, v);
  return NULL;
}

static Err *dynamic_update_slice(Infer *f) {
  if (f->op->n_operands < 2) FAIL(f, "needs an operand and an update");
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EANY));
  const Type *t = in_type(f, 0), *u = in_type(f, 1);
  if (!elems_ok(t, u)) FAIL(f, "operand and update differ in element type");
  if (t->rank != u->rank) FAIL(f, "operand and update differ in the number of dimensions");
  TRY(start_indices(f, 2, t->rank));
  for (int i = 0; i < t->rank; i++)
    if (t->dims[i] >= 0 && u->dims[i] > t->dims[i])
      FAIL(f, "the update is %lld long in dimension %d of size %lld", (long long)u->dims[i], i,
           (long long)t->dims[i]);
  out_like(f, 0, t);
  return NULL;
}

static Err *torch_index_select(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EI));
  const Type *t = in_type(f, 0), *x = in_type(f, 1);
  int64_t dim = op_int(f->op, "dim", 0), batch = op_int(f->op, "batch_dims", 0);
  if (dim < 0) dim += t->rank;
  if (batch < 0) batch += x->rank;
  if (dim < 0 || dim >= t->rank) FAIL(f, "dim is not a dimension of the operand");
  if (batch < 0 || batch > x->rank || batch > dim)
    FAIL(f, "batch_dims = %lld does not fit", (long long)batch);
  int64_t *d = tmp_dims(f, t->rank + x->rank);
  int n = 0;
  for (int64_t i = 0; i < dim; i++) d[n++] = t->dims[i];
  for (int64_t i = batch; i < x->rank; i++) d[n++] = x->dims[i];
  for (int64_t i = dim + 1; i < t->rank; i++) d[n++] = t->dims[i];
  out_shape(f, 0, t->dtype, t->quant, n, d);
  return NULL;
}

/* The dimension numbers of gather and scatter under gather's names. */
typedef struct IndexNames {
  const char *offset, *collapsed, *operand_batch, *indices_batch, *map;
} IndexNames;
static const IndexNames gather_names = {"offset_dims", "collapsed_slice_dims",
                                        "operand_batching_dims", "start_indices_batching_dims",
                                        "start_index_map"};
static const IndexNames scatter_names = {"update_window_dims", "inserted_window_dims",
                                         "input_batching_dims", "scatter_indices_batching_dims",
                                         "scatter_dims_to_operand_dims"};

typedef struct Numbers {
  const int64_t *offset, *collapsed, *operand_batch, *indices_batch, *map;
  int n_offset, n_collapsed, n_operand_batch, n_indices_batch, n_map;
  int64_t vector_dim;
  const int64_t *batch; /* dims of the indices without the vector dimension */
  int n_batch;
} Numbers;

/* out_rank: of gather's result, of scatter's updates */
static Err *numbers(Infer *f, const IndexNames *w, const Type *t, const Type *x, int out_rank,
                    Numbers *g) {
  TRY(dims_of(f, w->offset, out_rank < 0 ? INT32_MAX : out_rank, true, &g->offset, &g->n_offset));
  TRY(dims_of(f, w->collapsed, t->rank, true, &g->collapsed, &g->n_collapsed));
  TRY(dims_of(f, w->operand_batch, t->rank, true, &g->operand_batch, &g->n_operand_batch));
  TRY(dims_of(f, w->indices_batch, x->rank, false, &g->indices_batch, &g->n_indices_batch));
  TRY(dims_of(f, w->map, t->rank, false, &g->map, &g->n_map));
  g->vector_dim = op_int(f->op, "index_vector_dim", 0);
  if (g->vector_dim < 0 || g->vector_dim > x->rank)
    FAIL(f, "index_vector_dim = %lld, but the indices have %d dimensions", (long long)g->vector_dim,
         x->rank);
  for (int i = 0; i < g->n_collapsed; i++)
    if (b_has_dim(g->n_operand_batch, g->operand_batch, g->collapsed[i]))
      FAIL(f, "dimension %lld is in both %s and %s", (long long)g->collapsed[i], w->collapsed,
           w->operand_batch);
  for (int i = 0; i < g->n_map; i++)
    if (b_has_dim(g->n_operand_batch, g->operand_batch, g->map[i]))
      FAIL(f, "dimension %lld is in both %s and %s", (long long)g->map[i], w->map,
           w->operand_batch);
  if (b_has_dim(g->n_indices_batch, g->indices_batch, g->vector_dim))
    FAIL(f, "index_vector_dim is in %s", w->indices_batch);
  if (g->n_operand_batch != g->n_indices_batch)
    FAIL(f, "%s and %s differ in length", w->operand_batch, w->indices_batch);
  for (int i = 0; i < g->n_operand_batch; i++)
    if (!dim_ok(t->dims[g->operand_batch[i]], x->dims[g->indices_batch[i]]))
      FAIL(f, "batching dimension %d is %lld in the operand and %lld in the indices", i,
           (long long)t->dims[g->operand_batch[i]], (long long)x->dims[g->indices_batch[i]]);
  if (g->n_offset + g->n_collapsed + g->n_operand_batch != t->rank)
    FAIL(f, "%s, %s and %s together have %d dimensions, the operand has %d", w->offset,
         w->collapsed, w->operand_batch, g->n_offset + g->n_collapsed + g->n_operand_batch,
         t->rank);
  int64_t vector = g->vector_dim < x->rank ? x->dims[g->vector_dim] : 1;
  if (!dim_ok(vector, g->n_map))
    FAIL(f, "an index has %lld numbers, but %s has %d", (long long)vector, w->map, g->n_map);
  int64_t *b = tmp_dims(f, x->rank);
  for (int i = 0; i < x->rank; i++)
    if (i != g->vector_dim) b[g->n_batch++] = x->dims[i];
  g->batch = b;
  return NULL;
}

static Err *gather_shape(Infer *f, const int64_t *sizes, int n_sizes) {
  const Type *t = in_type(f, 0), *x = in_type(f, 1);
  Numbers g = {0};
  TRY(numbers(f, &gather_names, t, x, -1, &g));
  if (n_sizes >= 0 && n_sizes != t->rank)
    FAIL(f, "slice_sizes has %d numbers, the operand %d dimensions", n_sizes, t->rank);
  for (int i = 0; sizes && i < t->rank; i++) {
    bool gone = b_has_dim(g.n_collapsed, g.collapsed, i),
         batch = b_has_dim(g.n_operand_batch, g.operand_batch, i);
    if (sizes[i] < 0 || (t->dims[i] >= 0 && sizes[i] > t->dims[i]))
      FAIL(f, "slice size %lld in dimension %d of size %lld", (long long)sizes[i], i,
           (long long)t->dims[i]);
    if ((gone || batch) && sizes[i] > 1)
      FAIL(f, "slice size %lld in dimension %d, which is %s", (long long)sizes[i], i,
           gone ? "collapsed" : "a batch");
  }
  int rank = g.n_batch + g.n_offset, from = 0, batch_at = 0;
  int64_t *d = tmp_dims(f, rank);
  for (int i = 0; i < g.n_offset; i++)
    if (g.offset[i] >= rank)
      FAIL(f, "offset_dims: %lld is not a dimension, there are %d", (long long)g.offset[i], rank);
  for (int i = 0; i < rank; i++) {
    if (!b_has_dim(g.n_offset, g.offset, i)) {
      d[i] = g.batch[batch_at++];
      continue;
    }
    while (b_has_dim(g.n_collapsed, g.collapsed, from) ||
           b_has_dim(g.n_operand_batch, g.operand_batch, from))
      from++;
    d[i] = sizes ? sizes[from] : DIM_DYNAMIC;
    from++;
  }
  out_shape(f, 0, t->dtype, t->quant, rank, d);
  return NULL;
}

static Err *gather(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EI));
  const int64_t *sizes;
  int n;
  TRY(ints_of(f, "slice_sizes", in_type(f, 0)->rank, &sizes, &n));
  return gather_shape(f, n ? sizes : (const int64_t[]){0}, n);
}

Err *infer_dynamic_gather(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EI));
  TRY(want_shape_vector(f, 2, in_type(f, 0)->rank));
  int64_t n;
  const int64_t *sizes = const_ints(f, 2, &n);
  if (sizes && n != in_type(f, 0)->rank) sizes = NULL;
  return gather_shape(f, sizes, -1);
}

static Err *scatter(Infer *f) {
  const Op *op = f->op;
  int n = (op->n_operands - 1) / 2;
  if (op->n_operands < 3 || op->n_operands != 2 * n + 1)
    FAIL(f, "needs inputs, indices, and as many updates as inputs");
  if (op->n_results != n) FAIL(f, "has %d results for %d inputs", op->n_results, n);
  for (int i = 0; i < op->n_operands; i++) TRY(want_tensor(f, i, i == n ? EI : EANY));
  const Type *t = in_type(f, 0), *x = in_type(f, n), *u = in_type(f, n + 1);
  const Type **inputs = arena_alloc(f->arena, sizeof *inputs * (size_t)n);
  const Type **elem = arena_alloc(f->arena, sizeof *elem * (size_t)n);
  for (int i = 0; i < n; i++) {
    inputs[i] = in_type(f, i);
    if (!shapes_ok(t, inputs[i])) FAIL(f, "inputs 0 and %d differ in shape", i);
    if (!shapes_ok(u, in_type(f, n + 1 + i))) FAIL(f, "updates 0 and %d differ in shape", i);
    if (!elems_ok(inputs[i], in_type(f, n + 1 + i)))
      FAIL(f, "input and update %d differ in element type", i);
  }
  Numbers g = {0};
  TRY(numbers(f, &scatter_names, t, x, u->rank, &g));
  if (u->rank != g.n_batch + g.n_offset)
    FAIL(f, "the updates have %d dimensions, but %d are needed", u->rank, g.n_batch + g.n_offset);
  int from = 0, batch_at = 0;
  for (int i = 0; i < u->rank; i++) {
    if (!b_has_dim(g.n_offset, g.offset, i)) {
      if (!dim_ok(u->dims[i], g.batch[batch_at]))
        FAIL(f, "dimension %d of the updates is %lld, but %lld in the indices", i,
             (long long)u->dims[i], (long long)g.batch[batch_at]);
      batch_at++;
      continue;
    }
    while (b_has_dim(g.n_collapsed, g.collapsed, from) ||
           b_has_dim(g.n_operand_batch, g.operand_batch, from))
      from++;
    if (u->dims[i] >= 0 && t->dims[from] >= 0 && u->dims[i] > t->dims[from])
      FAIL(f, "dimension %d of the updates is %lld, more than the %lld of the input", i,
           (long long)u->dims[i], (long long)t->dims[from]);
    from++;
  }
  TRY(want_reducer(f, 0, n, inputs, NULL, elem));
  for (int i = 0; i < n; i++) {
    int64_t *d = tmp_dims(f, t->rank);
    memcpy(d, inputs[i]->dims, sizeof *d * (size_t)t->rank);
    out_shape(f, i, elem[i]->dtype, elem[i]->quant, t->rank, d);
  }
  return NULL;
}

static Err *reflect_pad(Infer *f) {
  TRY(want_tensor(f, 0, EMOST));
  const Type *t = in_type(f, 0);
  const int64_t *v;
  int n;
  TRY(ints_of(f, "runs", -1, &v, &n));
  int64_t *d = tmp_dims(f, t->rank), at = -1;
  for (int i = 0; i + 4 <= n; i += 4) {
    int64_t first = v[i + 1], last = first + (v[i + 2] - 1) * v[i + 3];
    if (v[i] != at) {
      if (v[i] != at + 1 || v[i] >= t->rank) break;
      d[++at] = 0;
    }
    if (v[i + 2] < 1 || v[i + 3] < -1 || v[i + 3] > 1 || MIN(first, last) < 0 ||
        MAX(first, last) >= t->dims[at])
      FAIL(f, "run %d leaves dimension %lld", i / 4, (long long)at);
    d[at] += v[i + 2];
  }
  if (n % 4 || at != t->rank - 1) FAIL(f, "runs want four numbers each, in order of dimensions");
  out_shape(f, 0, t->dtype, t->quant, t->rank, d);
  return NULL;
}

static Err *segment_sum(Infer *f) {
  TRY(want_tensors(f, EF | ES));
  int n = f->op->n_operands;
  if (n != 4 && n != 5) FAIL(f, "4 or 5 operands are wanted, there are %d", n);
  const Type *sums = in_type(f, 0), *to = in_type(f, 1), *rows = in_type(f, 2),
             *from = in_type(f, 3), *weights = n == 5 ? in_type(f, 4) : NULL;
  bool ok = sums->rank == 2 && rows->rank == 2 && to->rank == 1 && from->rank == 1 &&
            sums->dims[1] == rows->dims[1] && to->dims[0] == from->dims[0] && to->dtype == DT_I32 &&
            from->dtype == DT_I32 && sums->dtype == rows->dtype &&
            (sums->dtype == DT_F32 || sums->dtype == DT_F64);
  if (weights)
    ok &= weights->rank == 2 && weights->dtype == sums->dtype && weights->dims[0] == to->dims[0] &&
          weights->dims[1] > 0 && sums->dims[1] % weights->dims[1] == 0;
  if (!ok) FAIL(f, "sums, indices, rows, indices and weights do not agree");
  out_shape(f, 0, sums->dtype, NULL, 2, sums->dims);
  return NULL;
}

InferFn infer_index_fn(OpKind k) {
  static const InferRow rows[] = {
      {OP_DYNAMIC_SLICE, dynamic_slice},
      {OP_DYNAMIC_UPDATE_SLICE, dynamic_update_slice},
      {OP_GATHER, gather},
      {OP_SCATTER, scatter},
      {OP_TORCH_INDEX_SELECT, torch_index_select},
      {OP_REFLECT_PAD, reflect_pad},
      {OP_SEGMENT_SUM, segment_sum},
  };
  return infer_find(rows, COUNT_OF(rows), k);
}
