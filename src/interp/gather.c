/* gather, scatter and their relatives.
 *
 * Both are a walk over index vectors and, for each, over a window. The offsets of the window's
 * elements on the operand's side and on the other side (result of a gather, updates of a scatter)
 * do not depend on the index vector, so they are two tables. Gather clamps the window into the
 * operand; scatter drops a window that is partly outside whole. (The specification drops its
 * elements one by one; JAX's FILL_OR_DROP means the window, and so does XLA.)
 */
#include "interp/interp_priv.h"

typedef struct Indexing {
  const Tensor *operand, *indices;
  int rank;         /* of the operand */
  int n_vec;        /* length of an index vector */
  int64_t vec_step; /* between its elements */
  int64_t operand_step[MAX_RANK],
      window[MAX_RANK];         /* by operand dimension; inserted dimensions have size 1 */
  int64_t to_operand[MAX_RANK]; /* index vector element -> operand dimension */
  int n_batch;                  /* dimensions of the indices without the vector */
  int64_t batch[MAX_RANK], batch_step[MAX_RANK]; /* sizes; steps in the indices */
  int64_t other_batch_step[MAX_RANK]; /* steps of the batch dimensions in the other tensor */
  int64_t batching[MAX_RANK];         /* batch dimension -> operand dimension it selects, -1 */
  int64_t n_window;                   /* elements of a window */
  int64_t *at_operand, *at_other;     /* offsets of window elements */
  bool runs;                          /* both tables are 0, 1, 2, ... */
} Indexing;

static bool listed(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

typedef struct Names { /* attribute names: the two ops call the same things differently */
  const char *offset, *collapsed, *operand_batching, *indices_batching, *map;
} Names;
static const Names gather_names = {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                                   "start_indices_batching_dims", "start_index_map"};
static const Names scatter_names = {"update_window_dims", "inserted_window_dims",
                                    "input_batching_dims", "scatter_indices_batching_dims",
                                    "scatter_dims_to_operand_dims"};

/* Everything but the offsets on the other side. window: sizes by operand dimension for a gather;
 * NULL: taken from `other`. */
static Err *indexing_new(const Op *op, const Names *names, const Tensor *operand,
                         const Tensor *indices, const int64_t *window, int other_rank,
                         const int64_t *other, int64_t *other_dims, Indexing *x) {
  const int64_t *offset, *collapsed, *ob, *ib, *map;
  int n_offset = op_ints(op, names->offset, &offset),
      n_collapsed = op_ints(op, names->collapsed, &collapsed);
  int n_ob = op_ints(op, names->operand_batching, &ob),
      n_ib = op_ints(op, names->indices_batching, &ib);
  int n_map = op_ints(op, names->map, &map);
  int64_t ivd = op_int(op, "index_vector_dim", 0), istep[MAX_RANK];
  *x = (Indexing){.operand = operand, .indices = indices, .rank = operand->rank};
  dims_strides(operand->rank, operand->dims, x->operand_step);
  dims_strides(indices->rank, indices->dims, istep);
  bool has_vec = ivd < indices->rank;
  x->n_vec = has_vec ? (int)indices->dims[ivd] : 1;
  x->vec_step = has_vec ? istep[ivd] : 0;
  if (ivd < 0 || x->n_vec != n_map || n_ob != n_ib)
    return op_err(op, ERR_INVALID, "index vectors of %d elements for %d dimensions", x->n_vec,
                  n_map);
  for (int i = 0; i < n_map; i++) {
    if (map[i] < 0 || map[i] >= x->rank)
      return op_err(op, ERR_INVALID, "no dimension %lld", (long long)map[i]);
    x->to_operand[i] = map[i];
  }
  for (int d = 0; d < indices->rank; d++) {
    if (has_vec && d == ivd) continue;
    x->batching[x->n_batch] = -1;
    for (int i = 0; i < n_ib; i++)
      if (ib[i] == d) x->batching[x->n_batch] = ob[i];
    x->batch[x->n_batch] = indices->dims[d];
    x->batch_step[x->n_batch++] = istep[d];
  }
  if (x->n_batch + n_offset != other_rank)
    return op_err(op, ERR_INVALID, "rank %d where %d is due", other_rank, x->n_batch + n_offset);
  /* dims of the other tensor: batch sizes, and window sizes at the offset positions */
  int64_t win_of[MAX_RANK]; /* offset position -> operand dimension */
  int k = 0;
  for (int d = 0; d < x->rank; d++) {
    x->window[d] = window ? window[d] : 1;
    if (listed(collapsed, n_collapsed, d) || listed(ob, n_ob, d)) continue;
    if (k >= n_offset) return op_err(op, ERR_INVALID, "%d window dimensions are too few", n_offset);
    if (!window) x->window[d] = other[offset[k]];
    win_of[k++] = d;
  }
  for (int d = 0, b = 0, o = 0; d < other_rank; d++) {
    if (listed(offset, n_offset, d)) other_dims[d] = o < k ? x->window[win_of[o++]] : 1;
    else other_dims[d] = b < x->n_batch ? x->batch[b++] : 1;
  }
  int64_t ostep[MAX_RANK], step_of[MAX_RANK] = {0};
  dims_strides(other_rank, other_dims, ostep);
  for (int d = 0, b = 0, o = 0; d < other_rank; d++) {
    if (listed(offset, n_offset, d)) {
      if (o < k) step_of[win_of[o++]] = ostep[d];
    } else if (b < x->n_batch) {
      x->other_batch_step[b++] = ostep[d];
    }
  }
  x->n_window = dims_count(x->rank, x->window);
  x->at_operand = xmalloc(sizeof(int64_t) * (size_t)x->n_window);
  x->at_other = xmalloc(sizeof(int64_t) * (size_t)x->n_window);
  int64_t c[MAX_RANK] = {0};
  x->runs = true;
  for (int64_t i = 0; i < x->n_window; i++) {
    x->at_operand[i] = index_linear(x->rank, x->operand_step, c);
    x->at_other[i] = index_linear(x->rank, step_of, c);
    x->runs &= x->at_operand[i] == i && x->at_other[i] == i;
    index_next(x->rank, x->window, c);
  }
  return NULL;
}

static void indexing_free(Indexing *x) {
  free(x->at_operand);
  free(x->at_other);
}

#define FAR ((int64_t)1 << 44) /* outside of every tensor, and safe to add to */

/* Where the window of batch position b starts, by operand dimension; not clamped. */
static void window_start(const Indexing *x, const int64_t *b, int64_t *start) {
  int64_t at = index_linear(x->n_batch, x->batch_step, b);
  for (int d = 0; d < x->rank; d++) start[d] = 0;
  for (int i = 0; i < x->n_vec; i++) {
    int64_t v = elem_get_i64(x->indices->dtype, tensor_at(x->indices, at + i * x->vec_step));
    if (x->indices->dtype == DT_U64 && v < 0) v = INT64_MAX;
    start[x->to_operand[i]] = MAX(-FAR, MIN(v, FAR));
  }
  for (int i = 0; i < x->n_batch; i++)
    if (x->batching[i] >= 0) start[x->batching[i]] = b[i];
}

static Err *gather_with(Eval *e, const int64_t *sizes) {
  const Tensor *in = e->in[0];
  const int64_t *offset;
  int n_offset = op_ints(e->op, "offset_dims", &offset);
  int64_t ivd = op_int(e->op, "index_vector_dim", 0), dims[MAX_RANK];
  int rank = n_offset + e->in[1]->rank - (ivd < e->in[1]->rank ? 1 : 0);
  for (int d = 0; d < in->rank; d++)
    if (sizes[d] < 0 || sizes[d] > in->dims[d])
      return op_err(e->op, ERR_INVALID, "a slice of %lld in a dimension of %lld",
                    (long long)sizes[d], (long long)in->dims[d]);
  if (rank > MAX_RANK) return op_err(e->op, ERR_UNIMPLEMENTED, "rank %d", rank);
  Indexing x;
  TRY(indexing_new(e->op, &gather_names, in, e->in[1], sizes, rank, NULL, dims, &x));
  Tensor *out;
  Err *err = eval_out_dims(e, 0, rank, dims, &out);
  int64_t b[MAX_RANK] = {0}, start[MAX_RANK], n = dims_count(x.n_batch, x.batch);
  size_t bytes = (size_t)dtype_bytes(in->dtype);
  for (int64_t i = 0; i < n && !err; i++) {
    window_start(&x, b, start);
    int64_t from = 0, to = index_linear(x.n_batch, x.other_batch_step, b);
    for (int d = 0; d < x.rank; d++)
      from += MAX(0, MIN(start[d], in->dims[d] - x.window[d])) * x.operand_step[d];
    if (x.runs) {
      memcpy((char *)out->data + (size_t)to * bytes, (const char *)in->data + (size_t)from * bytes,
             (size_t)x.n_window * bytes);
    } else {
      for (int64_t k = 0; k < x.n_window; k++)
        elem_copy(out, to + x.at_other[k], in, from + x.at_operand[k]);
    }
    index_next(x.n_batch, x.batch, b);
  }
  indexing_free(&x);
  return err;
}

Err *sem_gather(Eval *e) {
  int64_t sizes[MAX_RANK];
  op_ints_or(e->op, "slice_sizes", e->in[0]->rank, 1, sizes);
  return gather_with(e, sizes);
}

Err *sem_dynamic_gather(Eval *e) {
  int64_t sizes[MAX_RANK];
  if (e->in[2]->count != e->in[0]->rank)
    return op_err(e->op, ERR_INVALID, "slice sizes do not fit the operand");
  for (int i = 0; i < e->in[0]->rank; i++)
    sizes[i] = elem_get_i64(e->in[2]->dtype, tensor_at(e->in[2], i));
  return gather_with(e, sizes);
}

Err *sem_scatter(Eval *e) {
  int n = (e->n_in - 1) / 2;
  Tensor **updates = e->in + n + 1;
  const Region *body = e->op->regions[0];
  if (body->n_args != 2 * n || body->last->n_operands != n)
    return op_err(e->op, ERR_INVALID, "the body does not fit %d operands", n);
  int64_t dims[MAX_RANK], one = 1;
  Indexing x;
  TRY(indexing_new(e->op, &scatter_names, e->in[0], e->in[n], NULL, updates[0]->rank,
                   updates[0]->dims, dims, &x));
  RegionEval *re = region_eval_new(e, body);
  bool plain = true; /* the body only takes the update */
  Tensor **res = xcalloc((size_t)n * 2, sizeof *res), **upd = res + n;
  Tensor *views = xcalloc((size_t)n * 2, sizeof *views),
         **args = xcalloc((size_t)n * 3, sizeof *args), **new = args + 2 * n;
  for (int i = 0; i < n; i++) {
    DType dt = body->args[i]->type->dtype;
    Tensor *t = tensor_convert(e->in[i], dt);
    res[i] = tensor_make(dt, t->rank, t->dims);
    if (t->count) memcpy(res[i]->data, t->data, tensor_bytes(t));
    tensor_release(t);
    upd[i] = tensor_convert(updates[i], dt);
    plain &= region_eval_returns_arg(re, i) == n + i;
    views[i] = views[n + i] = (Tensor){.refs = 1, .dtype = dt, .rank = 1, .dims = &one, .count = 1};
    args[i] = &views[i];
    args[n + i] = &views[n + i];
  }
  Err *err = NULL;
  int64_t b[MAX_RANK] = {0}, start[MAX_RANK], n_batch = dims_count(x.n_batch, x.batch);
  for (int64_t j = 0; j < n_batch && !err; j++) {
    window_start(&x, b, start);
    int64_t base = 0, from = index_linear(x.n_batch, x.other_batch_step, b);
    bool inside = true;
    for (int d = 0; d < x.rank; d++) {
      inside &= start[d] >= 0 && start[d] <= x.operand->dims[d] - x.window[d];
      base += start[d] * x.operand_step[d];
    }
    for (int64_t k = 0; inside && k < x.n_window && !err; k++) {
      int64_t to = base + x.at_operand[k], u = from + x.at_other[k];
      if (plain) {
        for (int i = 0; i < n; i++) elem_copy(res[i], to, upd[i], u);
        continue;
      }
      for (int i = 0; i < n; i++) {
        views[i].data = tensor_at(res[i], to);
        views[n + i].data = tensor_at(upd[i], u);
      }
      err = region_eval_run(re, args, 1, new);
      for (int i = 0; i < n && !err; i++) elem_copy(res[i], to, new[i], 0);
    }
    index_next(x.n_batch, x.batch, b);
  }
  for (int i = 0; i < n; i++) {
    if (!err) eval_set(e, i, tensor_convert(res[i], eval_out_dtype(e, i)));
    tensor_release(res[i]);
    tensor_release(upd[i]);
  }
  free(res);
  free(views);
  free(args);
  region_eval_free(re);
  indexing_free(&x);
  return err;
}

/* result[batch, outer, i.., inner] = operand[batch, outer, index[batch, i..], inner]; the index is
 * clamped. */
Err *sem_torch_index_select(Eval *e) {
  const Tensor *in = e->in[0], *index = e->in[1];
  int64_t dim = op_int(e->op, "dim", 0), nb = op_int(e->op, "batch_dims", 0);
  if (dim < 0) dim += in->rank;
  if (nb < 0) nb += index->rank;
  if (dim < 0 || dim >= in->rank || nb < 0 || nb > dim || nb > index->rank ||
      in->rank - 1 + index->rank - nb > MAX_RANK)
    return op_err(e->op, ERR_INVALID, "dim %lld, batch_dims %lld", (long long)dim, (long long)nb);
  int64_t dims[2 * MAX_RANK];
  int rank = 0;
  for (int d = 0; d < dim; d++) dims[rank++] = in->dims[d];
  for (int d = (int)nb; d < index->rank; d++) dims[rank++] = index->dims[d];
  for (int d = (int)dim + 1; d < in->rank; d++) dims[rank++] = in->dims[d];
  Tensor *out;
  TRY(eval_out_dims(e, 0, rank, dims, &out));
  int64_t inner = dims_count(in->rank - (int)dim - 1, in->dims + dim + 1);
  int64_t picks = dims_count(index->rank - (int)nb, index->dims + nb);
  int64_t outer = dims_count((int)(dim - nb), in->dims + nb),
          batches = dims_count((int)nb, in->dims), size = in->dims[dim];
  if (out->count && !size) return op_err(e->op, ERR_INVALID, "nothing to select from");
  size_t bytes = (size_t)dtype_bytes(in->dtype) * (size_t)inner;
  char *to = out->data;
  for (int64_t b = 0; b < batches; b++)
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < picks; i++, to += bytes) {
        int64_t k = elem_get_i64(index->dtype, tensor_at(index, b * picks + i));
        k = MAX(0, MIN(k, size - 1));
        memcpy(to, (const char *)in->data + (size_t)((b * outer + o) * size + k) * bytes, bytes);
      }
  return NULL;
}

Err *sem_segment_sum(Eval *e) {
  const Tensor *sums = e->in[0], *to = e->in[1], *rows = e->in[2], *from = e->in[3],
               *weights = e->n_in == 5 ? e->in[4] : NULL;
  int64_t width = sums->dims[1], bytes = dtype_bytes(sums->dtype);
  Tensor *t;
  TRY(eval_out_dims(e, 0, 2, sums->dims, &t));
  memcpy(t->data, sums->data, tensor_bytes(sums));
  for (int64_t i = 0; i < to->count; i++) {
    int64_t r = ((int32_t *)to->data)[i], f = ((int32_t *)from->data)[i];
    if (r < 0 || r >= sums->dims[0]) continue;
    for (int64_t k = 0; k < width; k++) {
      char *sum = (char *)t->data + (r * width + k) * bytes;
      bool none = f < 0 || f >= rows->dims[0];
      double x = none ? 0 : elem_get_f64(t->dtype, (char *)rows->data + (f * width + k) * bytes);
      int64_t w = weights ? i * weights->dims[1] + k * weights->dims[1] / width : 0;
      if (weights) x *= elem_get_f64(t->dtype, (char *)weights->data + w * bytes);
      elem_set_f64(t->dtype, sum, elem_get_f64(t->dtype, sum) + x);
    }
  }
  return NULL;
}
