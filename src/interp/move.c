/* Operations that only move elements. Nearly all of them are one strided copy: an index space, and
 * for each side a start and a step in elements for each dimension (0: broadcast, negative:
 * reverse).
 */
#include "interp/interp_priv.h"

/* ---- index arithmetic ---------------------------------------------------------------------- */

int64_t dims_count(int rank, const int64_t *dims) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= dims[i];
  return n;
}

void dims_strides(int rank, const int64_t *dims, int64_t *strides) {
  int64_t s = 1;
  for (int i = rank - 1; i >= 0; i--) {
    strides[i] = s;
    s *= dims[i];
  }
}

bool index_next(int rank, const int64_t *dims, int64_t *index) {
  for (int i = rank - 1; i >= 0; i--) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

void index_of(int64_t linear, int rank, const int64_t *dims, int64_t *index) {
  for (int i = rank - 1; i >= 0; i--) {
    index[i] = dims[i] ? linear % dims[i] : 0;
    linear = dims[i] ? linear / dims[i] : 0;
  }
}

int64_t index_linear(int rank, const int64_t *strides, const int64_t *index) {
  int64_t s = 0;
  for (int i = 0; i < rank; i++) s += strides[i] * index[i];
  return s;
}

void op_ints_or(const Op *op, const char *name, int n, int64_t dflt, int64_t *buf) {
  const int64_t *v;
  int got = op_ints(op, name, &v);
  for (int i = 0; i < n; i++) buf[i] = i < got ? v[i] : dflt;
}

void tensor_fill(Tensor *t, const void *elem) {
  size_t b = (size_t)dtype_bytes(t->dtype), total = tensor_bytes(t);
  if (!total) return;
  memcpy(t->data, elem, b);
  for (size_t done = b; done < total;) {
    size_t n = MIN(done, total - done);
    memcpy((char *)t->data + done, t->data, n);
    done += n;
  }
}

Tensor *tensor_zeros(DType dtype, int rank, const int64_t *dims) {
  Tensor *t = tensor_make(dtype, rank, dims);
  memset(t->data, 0, tensor_bytes(t));
  return t;
}

static void release_parent(void *arg, void *data) {
  (void)data;
  tensor_release(arg);
}

Tensor *tensor_reshaped(Tensor *t, int rank, const int64_t *dims) {
  return tensor_wrap(t->dtype, rank, dims, t->data, release_parent, tensor_retain(t));
}

/* ---- the copy ------------------------------------------------------------------------------ */

typedef struct Walk {
  int rank; /* of the common index space, at least 1 after simplification */
  int64_t dims[MAX_RANK], to_step[MAX_RANK], from_step[MAX_RANK];
  int64_t to, from; /* first elements */
} Walk;

#define COPY_RUN(T)                                              \
  do {                                                           \
    T *d = (T *)dst + to;                                        \
    const T *s = (const T *)src + from;                          \
    if (ts == 1 && fs == 1) memcpy(d, s, sizeof(T) * (size_t)n); \
    else                                                         \
      for (int64_t i = 0; i < n; i++) d[i * ts] = s[i * fs];     \
  } while (0)

typedef struct Pair {
  int64_t a, b;
} Pair;

static void copy_run(size_t bytes, void *dst, int64_t to, int64_t ts, const void *src, int64_t from,
                     int64_t fs, int64_t n) {
  switch (bytes) {
  case 1: COPY_RUN(uint8_t); break;
  case 2: COPY_RUN(uint16_t); break;
  case 4: COPY_RUN(uint32_t); break;
  case 8: COPY_RUN(uint64_t); break;
  default: COPY_RUN(Pair); break;
  }
}

static void walk_copy(Tensor *dst, const Tensor *src, Walk w) {
  assert(dst->dtype == src->dtype);
  size_t bytes = (size_t)dtype_bytes(dst->dtype);
  if (!dims_count(w.rank, w.dims) || !bytes) return;
  /* join neighbouring dimensions that are one on both sides; drop those of size 1 */
  int r = 0;
  for (int i = 0; i < w.rank; i++) {
    if (w.dims[i] == 1) continue;
    if (r && w.to_step[r - 1] == w.dims[i] * w.to_step[i] &&
        w.from_step[r - 1] == w.dims[i] * w.from_step[i]) {
      w.dims[r - 1] *= w.dims[i];
    } else {
      w.dims[r++] = w.dims[i];
    }
    w.to_step[r - 1] = w.to_step[i];
    w.from_step[r - 1] = w.from_step[i];
  }
  if (!r) {
    copy_run(bytes, dst->data, w.to, 1, src->data, w.from, 1, 1);
    return;
  }
  int64_t index[MAX_RANK] = {0}, to = w.to, from = w.from;
  int last = r - 1;
  for (;;) {
    copy_run(bytes, dst->data, to, w.to_step[last], src->data, from, w.from_step[last],
             w.dims[last]);
    int i = last - 1;
    for (; i >= 0; i--) {
      to += w.to_step[i];
      from += w.from_step[i];
      if (++index[i] < w.dims[i]) break;
      to -= w.to_step[i] * w.dims[i];
      from -= w.from_step[i] * w.dims[i];
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

Tensor *tensor_take_slice(const Tensor *t, int dim, int64_t at) {
  int64_t dims[MAX_RANK], steps[MAX_RANK] = {0};
  Walk w = {.rank = t->rank - 1};
  dims_strides(t->rank, t->dims, steps);
  for (int i = 0, k = 0; i < t->rank; i++) {
    if (i == dim) continue;
    dims[k] = w.dims[k] = t->dims[i];
    w.from_step[k++] = steps[i];
  }
  w.from = at * steps[dim];
  dims_strides(w.rank, dims, w.to_step);
  Tensor *out = tensor_make(t->dtype, w.rank, dims);
  walk_copy(out, t, w);
  return out;
}

Tensor *tensor_for_slices(const Tensor *slice, int dim, int64_t n) {
  int64_t dims[MAX_RANK];
  for (int i = 0, k = 0; i <= slice->rank; i++) dims[i] = i == dim ? n : slice->dims[k++];
  return tensor_zeros(slice->dtype, slice->rank + 1, dims);
}

void tensor_put_slice(Tensor *t, int dim, int64_t at, const Tensor *slice) {
  int64_t steps[MAX_RANK];
  Walk w = {.rank = slice->rank};
  dims_strides(t->rank, t->dims, steps);
  dims_strides(slice->rank, slice->dims, w.from_step);
  for (int i = 0, k = 0; i < t->rank; i++) {
    if (i == dim) continue;
    w.dims[k] = slice->dims[k];
    w.to_step[k++] = steps[i];
  }
  w.to = at * steps[dim];
  walk_copy(t, slice, w);
}

/* Copies the part of the index space of `box` that lies inside both. */
static void box_copy(Tensor *dst, const int64_t *dst_at, const Tensor *src, const int64_t *src_at,
                     const int64_t *size) {
  Walk w = {.rank = dst->rank};
  dims_strides(dst->rank, dst->dims, w.to_step);
  dims_strides(src->rank, src->dims, w.from_step);
  for (int i = 0; i < dst->rank; i++) {
    int64_t d = dst_at ? dst_at[i] : 0, s = src_at ? src_at[i] : 0, n = size[i];
    int64_t skip = MAX(MAX(-d, -s), 0);
    d += skip, s += skip, n -= skip;
    n = MIN(n, MIN(dst->dims[i] - d, src->dims[i] - s));
    w.dims[i] = MAX(n, 0);
    w.to += d * w.to_step[i];
    w.from += s * w.from_step[i];
  }
  walk_copy(dst, src, w);
}

Tensor *tensor_cut(const Tensor *t, const int64_t *start, const int64_t *size) {
  Tensor *out = tensor_zeros(t->dtype, t->rank, size);
  box_copy(out, NULL, t, start, size);
  return out;
}

void tensor_paste(Tensor *t, const int64_t *start, const Tensor *box) {
  box_copy(t, start, box, NULL, box->dims);
}

Tensor *tensor_concat(Tensor *const *parts, int n, int dim) {
  int64_t dims[MAX_RANK], at[MAX_RANK] = {0};
  memcpy(dims, parts[0]->dims, sizeof *dims * (size_t)parts[0]->rank);
  for (int i = 1; i < n; i++) dims[dim] += parts[i]->dims[dim];
  Tensor *out = tensor_make(parts[0]->dtype, parts[0]->rank, dims);
  for (int i = 0; i < n; i++) {
    tensor_paste(out, at, parts[i]);
    at[dim] += parts[i]->dims[dim];
  }
  return out;
}

/* ---- operations ---------------------------------------------------------------------------- */

/* The result is the operand itself: tensors are never changed once they are values. */
static Err *same(Eval *e) {
  eval_set(e, 0, tensor_retain(e->in[0]));
  return NULL;
}
Err *sem_copy(Eval *e) { return same(e); }
Err *sem_sharding_constraint(Eval *e) { return same(e); }
Err *sem_reshard(Eval *e) { return same(e); }
Err *sem_propagation_barrier(Eval *e) { return same(e); }
Err *sem_sharding_group(Eval *e) {
  (void)e;
  return NULL;
}

Err *sem_optimization_barrier(Eval *e) {
  for (int i = 0; i < e->n_out; i++) eval_set(e, i, tensor_retain(e->in[i]));
  return NULL;
}

Err *sem_tuple(Eval *e) {
  for (int i = 0; i < e->n_in; i++) tensor_retain(e->in[i]);
  eval_set(e, 0, tensor_tuple(e->in, e->n_in));
  return NULL;
}

Err *sem_get_tuple_element(Eval *e) {
  int64_t i = op_int(e->op, "index", 0);
  if (i < 0 || i >= e->in[0]->n_elems)
    return op_err(e->op, ERR_INVALID, "no element %lld", (long long)i);
  eval_set(e, 0, tensor_retain(e->in[0]->elems[i]));
  return NULL;
}

Err *sem_after_all(Eval *e) {
  eval_set(e, 0, tensor_make(DT_TOKEN, 0, NULL));
  return NULL;
}
Err *sem_create_token(Eval *e) { return sem_after_all(e); }

Err *sem_constant(Eval *e) {
  const Attr *a = op_attr(e->op, "value");
  if (!a || a->kind != AT_TENSOR) return op_err(e->op, ERR_INVALID, "no value");
  Tensor *t;
  TRY(tensor_dense(a->tensor, &t));
  eval_set(e, 0, tensor_retain(t));
  return NULL;
}

/* Fills t with its coordinate along dim. */
static void fill_iota(Tensor *t, int64_t dim) {
  int64_t inner = 1, n = t->dims[dim], bytes = dtype_bytes(t->dtype);
  for (int i = (int)dim + 1; i < t->rank; i++) inner *= t->dims[i];
  if (!t->count) return;
  char *p = t->data;
  for (int64_t k = 0; k < n; k++)
    for (int64_t j = 0; j < inner; j++, p += bytes) {
      if (dtype_is_complex(t->dtype)) {
        DType r = dtype_real_of(t->dtype);
        elem_set_f64(r, p, (double)k);
        elem_set_f64(r, p + bytes / 2, 0);
      } else if (dtype_is_float(t->dtype)) {
        elem_set_f64(t->dtype, p, (double)k);
      } else {
        elem_set_i64(t->dtype, p, k);
      }
    }
  size_t block = (size_t)(n * inner * bytes);
  for (size_t done = block; done < tensor_bytes(t); done += block)
    memcpy((char *)t->data + done, t->data, block);
}

Err *sem_iota(Eval *e) {
  Tensor *t;
  TRY(eval_out(e, 0, &t));
  fill_iota(t, op_int(e->op, "iota_dimension", 0));
  return NULL;
}

/* A vector of sizes given as an operand. */
static Err *shape_operand(Eval *e, int i, int64_t *dims, int *rank) {
  const Tensor *s = e->in[i];
  if (s->rank != 1 || s->count > MAX_RANK)
    return op_err(e->op, ERR_INVALID, "operand %d is not a list of sizes", i);
  *rank = (int)s->count;
  for (int k = 0; k < *rank; k++) {
    dims[k] = elem_get_i64(s->dtype, tensor_at(s, k));
    if (dims[k] < 0) return op_err(e->op, ERR_INVALID, "size %d is %lld", k, (long long)dims[k]);
  }
  return NULL;
}

Err *sem_dynamic_iota(Eval *e) {
  int64_t dims[MAX_RANK];
  int rank;
  TRY(shape_operand(e, 0, dims, &rank));
  int64_t dim = op_int(e->op, "iota_dimension", 0);
  if (dim < 0 || dim >= rank)
    return op_err(e->op, ERR_INVALID, "iota_dimension %lld of rank %d", (long long)dim, rank);
  Tensor *t;
  TRY(eval_out_dims(e, 0, rank, dims, &t));
  fill_iota(t, dim);
  return NULL;
}

static Err *reshape_to(Eval *e, int rank, const int64_t *dims) {
  if (dims_count(rank, dims) != e->in[0]->count)
    return op_err(e->op, ERR_INVALID, "%lld elements do not fit the new shape",
                  (long long)e->in[0]->count);
  eval_set(e, 0, tensor_reshaped(e->in[0], rank, dims));
  return NULL;
}

Err *sem_reshape(Eval *e) {
  const Type *t = e->op->results[0].type;
  if (!type_is_static(t))
    return op_err(e->op, ERR_UNIMPLEMENTED, "reshape to a shape that is not known");
  return reshape_to(e, t->rank, t->dims);
}

Err *sem_dynamic_reshape(Eval *e) {
  int64_t dims[MAX_RANK];
  int rank;
  TRY(shape_operand(e, 1, dims, &rank));
  return reshape_to(e, rank, dims);
}

static Err *broadcast_to(Eval *e, int rank, const int64_t *dims, const int64_t *map) {
  const Tensor *in = e->in[0];
  Tensor *t;
  TRY(eval_out_dims(e, 0, rank, dims, &t));
  Walk w = {.rank = rank};
  int64_t steps[MAX_RANK];
  dims_strides(in->rank, in->dims, steps);
  dims_strides(rank, dims, w.to_step);
  memcpy(w.dims, dims, sizeof *dims * (size_t)rank);
  for (int i = 0; i < in->rank; i++) {
    if (map[i] < 0 || map[i] >= rank || (in->dims[i] != 1 && in->dims[i] != dims[map[i]]))
      return op_err(e->op, ERR_INVALID, "dimension %d of size %lld does not fit", i,
                    (long long)in->dims[i]);
    if (in->dims[i] != 1) w.from_step[map[i]] = steps[i];
  }
  walk_copy(t, in, w);
  return NULL;
}

Err *sem_broadcast_in_dim(Eval *e) {
  int64_t map[MAX_RANK];
  const Type *t = e->op->results[0].type;
  op_ints_or(e->op, "broadcast_dimensions", e->in[0]->rank, 0, map);
  if (!type_is_static(t))
    return op_err(e->op, ERR_UNIMPLEMENTED, "broadcast to a shape that is not known");
  return broadcast_to(e, t->rank, t->dims, map);
}

Err *sem_dynamic_broadcast_in_dim(Eval *e) {
  int64_t map[MAX_RANK], dims[MAX_RANK];
  int rank;
  op_ints_or(e->op, "broadcast_dimensions", e->in[0]->rank, 0, map);
  TRY(shape_operand(e, 1, dims, &rank));
  return broadcast_to(e, rank, dims, map);
}

Err *sem_broadcast(Eval *e) {
  const int64_t *sizes;
  int n = op_ints(e->op, "broadcast_sizes", &sizes), r = e->in[0]->rank;
  int64_t dims[2 * MAX_RANK], map[MAX_RANK];
  if (n + r > MAX_RANK) return op_err(e->op, ERR_UNIMPLEMENTED, "rank %d", n + r);
  for (int i = 0; i < n; i++) dims[i] = sizes[i];
  for (int i = 0; i < r; i++) {
    dims[n + i] = e->in[0]->dims[i];
    map[i] = n + i;
  }
  return broadcast_to(e, n + r, dims, map);
}

Err *sem_transpose(Eval *e) {
  const Tensor *in = e->in[0];
  int64_t perm[MAX_RANK], dims[MAX_RANK], steps[MAX_RANK];
  op_ints_or(e->op, "permutation", in->rank, 0, perm);
  Walk w = {.rank = in->rank};
  dims_strides(in->rank, in->dims, steps);
  for (int i = 0; i < in->rank; i++) {
    dims[i] = w.dims[i] = in->dims[perm[i]];
    w.from_step[i] = steps[perm[i]];
  }
  Tensor *t;
  TRY(eval_out_dims(e, 0, in->rank, dims, &t));
  dims_strides(t->rank, t->dims, w.to_step);
  walk_copy(t, in, w);
  return NULL;
}

/* start + i * stride, i < (limit - start) / stride rounded up. */
static Err *slice_by(Eval *e, const int64_t *start, const int64_t *limit, const int64_t *stride) {
  const Tensor *in = e->in[0];
  int64_t dims[MAX_RANK], steps[MAX_RANK];
  Walk w = {.rank = in->rank};
  dims_strides(in->rank, in->dims, steps);
  for (int i = 0; i < in->rank; i++) {
    if (stride[i] < 1 || start[i] < 0 || start[i] > limit[i] || limit[i] > in->dims[i])
      return op_err(
          e->op, ERR_INVALID, "dimension %d of size %lld cannot be sliced [%lld:%lld:%lld]", i,
          (long long)in->dims[i], (long long)start[i], (long long)limit[i], (long long)stride[i]);
    dims[i] = w.dims[i] = (limit[i] - start[i] + stride[i] - 1) / stride[i];
    w.from += start[i] * steps[i];
    w.from_step[i] = stride[i] * steps[i];
  }
  Tensor *t;
  TRY(eval_out_dims(e, 0, in->rank, dims, &t));
  dims_strides(t->rank, t->dims, w.to_step);
  walk_copy(t, in, w);
  return NULL;
}

Err *sem_slice(Eval *e) {
  int64_t start[MAX_RANK], limit[MAX_RANK], stride[MAX_RANK];
  int r = e->in[0]->rank;
  op_ints_or(e->op, "start_indices", r, 0, start);
  op_ints_or(e->op, "limit_indices", r, 0, limit);
  op_ints_or(e->op, "strides", r, 1, stride);
  return slice_by(e, start, limit, stride);
}

static void numbers(const Tensor *t, int n, int64_t *out) {
  for (int i = 0; i < n; i++) out[i] = i < t->count ? elem_get_i64(t->dtype, tensor_at(t, i)) : 0;
}

Err *sem_real_dynamic_slice(Eval *e) {
  int64_t start[MAX_RANK], limit[MAX_RANK], stride[MAX_RANK];
  int r = e->in[0]->rank;
  numbers(e->in[1], r, start);
  numbers(e->in[2], r, limit);
  numbers(e->in[3], r, stride);
  return slice_by(e, start, limit, stride);
}

Err *sem_reverse(Eval *e) {
  const Tensor *in = e->in[0];
  const int64_t *dims;
  int n = op_ints(e->op, "dimensions", &dims);
  Walk w = {.rank = in->rank};
  Tensor *t;
  TRY(eval_out_dims(e, 0, in->rank, in->dims, &t));
  memcpy(w.dims, in->dims, sizeof *w.dims * (size_t)in->rank);
  dims_strides(in->rank, in->dims, w.to_step);
  dims_strides(in->rank, in->dims, w.from_step);
  for (int i = 0; i < n; i++) {
    w.from += (in->dims[dims[i]] - 1) * w.from_step[dims[i]];
    w.from_step[dims[i]] = -w.from_step[dims[i]];
  }
  walk_copy(t, in, w);
  return NULL;
}

Err *sem_reflect_pad(Eval *e) {
  const Tensor *in = e->in[0];
  const int64_t *runs;
  int n = op_ints(e->op, "runs", &runs);
  int64_t dims[MAX_RANK] = {0}, steps[MAX_RANK], at[MAX_RANK] = {0};
  for (int i = 0; i < n; i += 4) dims[runs[i]] += runs[i + 2];
  Tensor *t;
  TRY(eval_out_dims(e, 0, in->rank, dims, &t));
  dims_strides(in->rank, in->dims, steps);
  size_t b = (size_t)dtype_bytes(t->dtype);
  for (int64_t k = 0; k < t->count; k++, index_next(t->rank, dims, at)) {
    int64_t from = 0, left[MAX_RANK];
    memcpy(left, at, sizeof *at * (size_t)t->rank);
    for (int i = 0; i < n; i += 4) {
      int64_t *l = &left[runs[i]];
      if (*l >= 0 && *l < runs[i + 2]) from += (runs[i + 1] + *l * runs[i + 3]) * steps[runs[i]];
      *l -= runs[i + 2];
    }
    memcpy((char *)t->data + (size_t)k * b, (const char *)in->data + (size_t)from * b, b);
  }
  return NULL;
}

static Err *pad_by(Eval *e, const int64_t *low, const int64_t *high, const int64_t *inner) {
  const Tensor *in = e->in[0];
  int64_t dims[MAX_RANK];
  Walk w = {.rank = in->rank};
  int64_t from[MAX_RANK];
  dims_strides(in->rank, in->dims, from);
  for (int i = 0; i < in->rank; i++) {
    if (inner[i] < 0)
      return op_err(e->op, ERR_INVALID, "interior padding %lld", (long long)inner[i]);
    int64_t step = in->dims[i] > 1 ? MIN(inner[i], INT64_MAX - 1) + 1 : 1;
    TRY(eval_padded(e->op, in->dims[i], step, low[i], high[i], &dims[i]));
    if (dims[i] < 0)
      return op_err(e->op, ERR_INVALID, "dimension %d would have size %lld", i, (long long)dims[i]);
  }
  Tensor *t;
  TRY(eval_out_dims(e, 0, in->rank, dims, &t));
  if (!t->count) return NULL;
  tensor_fill(t, e->in[1]->data);
  dims_strides(t->rank, t->dims, w.to_step);
  for (int i = 0; i < in->rank; i++) {
    /* element k goes to low + k * step; a: the first that lands inside, at `first` */
    int64_t step = in->dims[i] > 1 ? inner[i] + 1 : 1;
    int64_t a = low[i] < 0 ? -(low[i] + 1) / step + 1 : 0;
    int64_t first = a < in->dims[i] ? low[i] + a * step : dims[i];
    w.dims[i] = first < dims[i] ? MIN((dims[i] - 1 - first) / step + 1, in->dims[i] - a) : 0;
    w.to += first * w.to_step[i];
    w.to_step[i] *= w.dims[i] > 1 ? step : 0;
    w.from += w.dims[i] ? a * from[i] : 0;
    w.from_step[i] = from[i];
  }
  walk_copy(t, in, w);
  return NULL;
}

Err *sem_pad(Eval *e) {
  int64_t low[MAX_RANK], high[MAX_RANK], inner[MAX_RANK];
  int r = e->in[0]->rank;
  op_ints_or(e->op, "edge_padding_low", r, 0, low);
  op_ints_or(e->op, "edge_padding_high", r, 0, high);
  op_ints_or(e->op, "interior_padding", r, 0, inner);
  return pad_by(e, low, high, inner);
}

Err *sem_dynamic_pad(Eval *e) {
  int64_t low[MAX_RANK], high[MAX_RANK], inner[MAX_RANK];
  int r = e->in[0]->rank;
  numbers(e->in[2], r, low);
  numbers(e->in[3], r, high);
  numbers(e->in[4], r, inner);
  return pad_by(e, low, high, inner);
}

Err *sem_concatenate(Eval *e) {
  eval_set(e, 0, tensor_concat(e->in, e->n_in, (int)op_int(e->op, "dimension", 0)));
  return NULL;
}

/* Scalar operands from `first` on, clamped so that a box of `size` lies inside. */
static void start_operands(Eval *e, int first, const Tensor *t, const int64_t *size,
                           int64_t *start) {
  for (int i = 0; i < t->rank; i++) {
    const Tensor *s = e->in[first + i];
    int64_t v = elem_get_i64(s->dtype, s->data);
    if (s->dtype == DT_U64 && v < 0) v = INT64_MAX;
    start[i] = MAX(0, MIN(v, t->dims[i] - size[i]));
  }
}

Err *sem_dynamic_slice(Eval *e) {
  const Tensor *in = e->in[0];
  int64_t size[MAX_RANK], start[MAX_RANK], limit[MAX_RANK], one[MAX_RANK];
  op_ints_or(e->op, "slice_sizes", in->rank, 0, size);
  start_operands(e, 1, in, size, start);
  for (int i = 0; i < in->rank; i++) {
    limit[i] = start[i] + size[i];
    one[i] = 1;
  }
  return slice_by(e, start, limit, one);
}

Err *sem_dynamic_update_slice(Eval *e) {
  const Tensor *in = e->in[0], *update = e->in[1];
  int64_t start[MAX_RANK];
  start_operands(e, 2, in, update->dims, start);
  Tensor *t;
  TRY(eval_out_dims(e, 0, in->rank, in->dims, &t));
  if (in->count) memcpy(t->data, in->data, tensor_bytes(in));
  tensor_paste(t, start, update);
  return NULL;
}

/* ---- sizes as values ----------------------------------------------------------------------- */

Err *sem_get_dimension_size(Eval *e) {
  int64_t dim = op_int(e->op, "dimension", 0);
  if (dim < 0 || dim >= e->in[0]->rank)
    return op_err(e->op, ERR_INVALID, "no dimension %lld", (long long)dim);
  Tensor *t;
  TRY(eval_out_dims(e, 0, 0, NULL, &t));
  elem_set_i64(t->dtype, t->data, e->in[0]->dims[dim]);
  return NULL;
}

/* The bound stays in the type; the tensor gets the size itself: rows over it are cut off, missing
 * rows are zero. */
Err *sem_set_dimension_size(Eval *e) {
  const Tensor *in = e->in[0];
  int64_t dim = op_int(e->op, "dimension", 0), size[MAX_RANK], at[MAX_RANK] = {0};
  if (dim < 0 || dim >= in->rank)
    return op_err(e->op, ERR_INVALID, "no dimension %lld", (long long)dim);
  memcpy(size, in->dims, sizeof *size * (size_t)in->rank);
  size[dim] = elem_get_i64(e->in[1]->dtype, e->in[1]->data);
  if (size[dim] < 0) return op_err(e->op, ERR_INVALID, "size %lld", (long long)size[dim]);
  eval_set(e, 0, tensor_cut(in, at, size));
  return NULL;
}

/* ---- conversion of whole tensors, for the other files -------------------------------------- */

Tensor *tensor_convert(Tensor *t, DType to) {
  if (t->dtype == to) return tensor_retain(t);
  Tensor *r = tensor_make(to, t->rank, t->dims);
  DType from = t->dtype, fr = dtype_real_of(from), tr = dtype_real_of(to);
  bool cf = dtype_is_complex(from), ct = dtype_is_complex(to);
  bool whole = !dtype_is_float(from) && !cf && !dtype_is_float(to) && !ct;
  for (int64_t i = 0; i < t->count; i++) {
    char *d = tensor_at(r, i), *s = tensor_at(t, i);
    if (whole) {
      int64_t v = elem_get_i64(from, s);
      elem_set_i64(to, d, to == DT_I1 ? v != 0 : v);
    } else {
      double re = elem_get_f64(fr, s);
      if (to == DT_I1) elem_set_i64(to, d, re != 0);
      else elem_set_f64(tr, d, re);
      if (ct) elem_set_f64(tr, d + dtype_bytes(tr), cf ? elem_get_f64(fr, s + dtype_bytes(fr)) : 0);
    }
  }
  return r;
}
