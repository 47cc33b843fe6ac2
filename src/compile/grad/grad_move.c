/* Gradient rules of operations that move elements: each is the transposed move. */
#include "compile/grad/grad_priv.h"

#define IN(i) (op->operands[i])
#define Y (&op->results[0])
#define CT grad_cot(g, Y)

Err *vjp_reshape(Grad *g, Op *op) {
  grad_add(g, IN(0), b_reshape(g->b, CT, b_rank(IN(0)), IN(0)->type->dims));
  return NULL;
}

Err *vjp_transpose(Grad *g, Op *op) {
  const int64_t *perm;
  int n = op_ints(op, "permutation", &perm), inv[B_MAX_RANK];
  for (int i = 0; i < n; i++) inv[perm[i]] = i;
  grad_add(g, IN(0), b_transpose(g->b, CT, inv));
  return NULL;
}

Err *vjp_reverse(Grad *g, Op *op) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  grad_add(g, IN(0), b_reverse(g->b, CT, n, dims));
  return NULL;
}

Err *vjp_broadcast(Grad *g, Op *op) { /* new dimensions come first */
  const int64_t *sizes;
  int64_t dims[B_MAX_RANK];
  int n = op_ints(op, "broadcast_sizes", &sizes);
  for (int i = 0; i < n; i++) dims[i] = i;
  grad_add(g, IN(0), b_reduce(g->b, OP_ADD, CT, n, dims));
  return NULL;
}

Err *vjp_broadcast_in_dim(Grad *g, Op *op) {
  Build *b = g->b;
  Value *x = IN(0), *ct = CT;
  const int64_t *map;
  op_ints(op, "broadcast_dimensions", &map);
  int source[B_MAX_RANK]; /* result dimension -> operand dimension that survives, or -1 */
  for (int i = 0; i < b_rank(Y); i++) source[i] = -1;
  for (int i = 0; i < b_rank(x); i++)
    if (b_dim(x, i) == b_dim(Y, (int)map[i])) source[map[i]] = i;
  int64_t gone[B_MAX_RANK];
  int n = 0, kept = 0, place[B_MAX_RANK], perm[B_MAX_RANK], k = 0;
  for (int i = 0; i < b_rank(x); i++) place[i] = -1;
  for (int i = 0; i < b_rank(Y); i++) {
    if (source[i] < 0) gone[n++] = i;
    else place[source[i]] = kept++;
  }
  Value *r = b_reduce(b, OP_ADD, ct, n, gone);
  for (int i = 0; i < b_rank(x); i++)
    if (place[i] >= 0) perm[k++] = place[i];
  r = b_transpose(b, r, perm);
  grad_add(g, x, b_reshape(b, r, b_rank(x), x->type->dims));
  return NULL;
}

Err *vjp_concatenate(Grad *g, Op *op) {
  int dim = (int)op_int(op, "dimension", 0);
  Value *ct = CT;
  int64_t at = 0;
  for (int i = 0; i < op->n_operands; i++) {
    int64_t size = b_dim(IN(i), dim);
    if (grad_active(g, IN(i))) grad_add(g, IN(i), b_slice_dim(g->b, ct, dim, at, at + size));
    at += size;
  }
  return NULL;
}

Err *vjp_slice(Grad *g, Op *op) {
  Build *b = g->b;
  Value *x = IN(0);
  const int64_t *start, *limit, *strides;
  op_ints(op, "start_indices", &start);
  op_ints(op, "limit_indices", &limit);
  op_ints(op, "strides", &strides);
  int64_t hi[B_MAX_RANK], interior[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) {
    int64_t n = b_dim(Y, i);
    hi[i] = b_dim(x, i) - start[i] - (n ? (n - 1) * strides[i] + 1 : 0);
    interior[i] = strides[i] - 1;
  }
  grad_add(g, x, b_pad(b, CT, b_scalar(b, b_dtype(x), 0), start, hi, interior));
  return NULL;
}

Err *vjp_pad(Grad *g, Op *op) {
  Build *b = g->b;
  Value *x = IN(0), *ct = CT;
  const int64_t *lo, *hi, *interior;
  op_ints(op, "edge_padding_low", &lo);
  op_ints(op, "edge_padding_high", &hi);
  op_ints(op, "interior_padding", &interior);
  int64_t more_lo[B_MAX_RANK], more_hi[B_MAX_RANK], start[B_MAX_RANK], limit[B_MAX_RANK],
      stride[B_MAX_RANK];
  for (int i = 0; i < b_rank(x);
       i++) { /* negative padding cut elements off: their gradient is zero */
    more_lo[i] = MAX(0, -lo[i]);
    more_hi[i] = MAX(0, -hi[i]);
    start[i] = MAX(0, lo[i]);
    stride[i] = interior[i] + 1;
    limit[i] = start[i] + (b_dim(x, i) ? (b_dim(x, i) - 1) * stride[i] + 1 : 0);
  }
  Value *whole = b_pad(b, ct, b_scalar(b, b_dtype(x), 0), more_lo, more_hi, NULL);
  Value *part = b_slice(b, whole, start, limit, stride);
  grad_add(g, x, part);
  if (grad_active(g, IN(1)))
    grad_add(g, IN(1), b_sub(b, b_reduce_all(b, OP_ADD, ct), b_reduce_all(b, OP_ADD, part)));
  return NULL;
}

Err *vjp_dynamic_slice(Grad *g, Op *op) {
  Build *b = g->b;
  Value *x = IN(0), *ct = CT, *have = grad_cot(g, x);
  if (!grad_active(g, x)) return NULL;
  /* added in place: a loop that reads one slice of x in each turn stays linear in the size of x */
  if (have) ct = b_add(b, b_dynamic_slice(b, have, op->operands + 1, Y->type->dims), ct);
  grad_set(g, x, b_dynamic_update(b, have ? have : b_full(b, x->type, 0), ct, op->operands + 1));
  return NULL;
}

Err *vjp_dynamic_update_slice(Grad *g, Op *op) {
  Build *b = g->b;
  Value *ct = CT, *update = IN(1);
  /* the part is read before it is overwritten: then that can be done in place */
  if (grad_active(g, update))
    grad_add(g, update, b_dynamic_slice(b, ct, op->operands + 2, update->type->dims));
  if (grad_active(g, IN(0)))
    grad_add(g, IN(0), b_dynamic_update(b, ct, b_full(b, update->type, 0), op->operands + 2));
  return NULL;
}

/* ---- gather and scatter ---------------------------------------------------------------------- */

/* The largest start index in each component of the index vector, as a tensor like `indices`. */
static Value *index_limits(Build *b, Value *indices, const IndexDims *d, const Type *x,
                           const int64_t *sizes) {
  int64_t v[B_MAX_RANK], n = d->n_map;
  DType t = b_dtype(indices);
  int64_t top =
      dtype_bits(t) < 64 ? ((int64_t)1 << (dtype_bits(t) - dtype_is_signed(t))) - 1 : INT64_MAX;
  for (int i = 0; i < d->n_map; i++) v[i] = MIN(top, x->dims[d->map[i]] - sizes[d->map[i]]);
  if (d->index_vector_dim == b_rank(indices))
    return b_bcast_scalar(b, b_scalar_i64(b, t, v[0]), indices->type);
  uint64_t raw[B_MAX_RANK];
  for (int i = 0; i < d->n_map; i++) elem_set_i64(t, (char *)raw + i * dtype_bytes(t), v[i]);
  return b_bcast_like(b, b_const(b, b_type(b, t, 1, &n), raw), indices->type,
                      (int[]){(int)d->index_vector_dim});
}

Err *vjp_gather(Grad *g, Op *op) {
  Build *b = g->b;
  Value *x = IN(0), *idx = IN(1);
  IndexDims d = b_gather_dims(op);
  const int64_t *sizes;
  op_ints(op, "slice_sizes", &sizes);
  if (!d.n_map && !d.n_batch && type_count(idx->type) == 0)
    return op_err(op, ERR_UNIMPLEMENTED, "empty gather");
  /* gather moves indices into bounds, scatter drops what is outside: move them first */
  if (d.n_map)
    idx =
        b_clamp(b, b_scalar_i64(b, b_dtype(idx), 0), idx, index_limits(b, idx, &d, x->type, sizes));
  Value *zeros = b_full(b, x->type, 0);
  grad_add(g, x, b_scatter(b, OP_ADD, zeros, idx, CT, &d));
  return NULL;
}

static bool listed(int n, const int64_t *v, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* Slice sizes of the gather that reads what the scatter's updates wrote. */
static void window_sizes(const IndexDims *d, const Value *x, const Value *updates, int64_t *sizes) {
  int next = 0;
  for (int i = 0; i < b_rank(x); i++) {
    bool one = listed(d->n_collapsed, d->collapsed, i) || listed(d->n_batch, d->operand_batch, i);
    sizes[i] = one ? 1 : b_dim(updates, (int)d->offset[next++]);
  }
}

/* i1 like `updates`: whether each update's window lies inside x. */
static Value *in_bounds(Build *b, Value *idx, const Value *updates, const IndexDims *d,
                        const Value *x, const int64_t *sizes) {
  DType t = b_dtype(idx);
  Value *lo = b_bcast_scalar(b, b_scalar_i64(b, t, 0), idx->type);
  Value *hi = index_limits(b, idx, d, x->type, sizes);
  Value *ok = b_and(b, b_compare(b, "GE", idx, lo), b_compare(b, "LE", idx, hi));
  if (d->index_vector_dim < b_rank(idx)) ok = b_reduce(b, OP_AND, ok, 1, &d->index_vector_dim);
  int map[B_MAX_RANK], n = 0;
  for (int i = 0; i < b_rank(updates); i++)
    if (!listed(d->n_offset, d->offset, i)) map[n++] = i;
  return b_bcast_like(b, ok, updates->type, map);
}

Err *vjp_scatter(Grad *g, Op *op) {
  Build *b = g->b;
  if (op->n_operands != 3)
    return op_err(op, ERR_UNIMPLEMENTED, "gradient of a scatter with several inputs");
  Value *x = IN(0), *idx = IN(1), *upd = IN(2), *ct = CT;
  IndexDims d = b_scatter_dims(op);
  int64_t sizes[B_MAX_RANK];
  window_sizes(&d, x, upd, sizes);
  OpKind kind = grad_combiner(op->regions[0]);
  Value *zeros = b_full(b, upd->type, 0);
  if (kind == OP_ADD) {
    grad_add(g, x, ct);
    if (!grad_active(g, upd)) return NULL;
    Value *read = b_gather(b, ct, idx, &d, sizes);
    grad_add(g, upd,
             d.n_map ? b_select(b, in_bounds(b, idx, upd, &d, x, sizes), read, zeros) : read);
    return NULL;
  }
  if (kind != OP_RETURN)
    return op_err(op, ERR_UNIMPLEMENTED, "gradient of a scatter that is neither add nor replace");
  if (grad_active(g, x)) grad_add(g, x, b_scatter(b, OP_UNKNOWN, ct, idx, zeros, &d));
  if (!grad_active(g, upd)) return NULL;
  /* of several updates to one place one wins: let each write its number and see whose is there */
  int64_t n = type_count(upd->type);
  Value *ids = b_iota(b, b_type(b, DT_I32, 1, &n), 0);
  ids = b_reshape(b, b_add(b, ids, b_bcast_scalar(b, b_scalar_i64(b, DT_I32, 1), ids->type)),
                  b_rank(upd), upd->type->dims);
  Value *none = b_full(b, b_type_as(b, x->type, DT_I32), 0);
  Value *won = b_gather(b, b_scatter(b, OP_UNKNOWN, none, idx, ids, &d), idx, &d, sizes);
  Value *read = b_gather(b, ct, idx, &d, sizes);
  grad_add(g, upd, b_select(b, b_compare(b, "EQ", won, ids), read, zeros));
  return NULL;
}

/* ---- sort ------------------------------------------------------------------------------------ */

static Region *less_first(Build *b, int n,
                          Type *const *types) { /* (a0, b0, a1, b1, ...) -> a0 < b0 */
  Type *args[2 * B_MAX_RANK];
  for (int i = 0; i < n; i++) args[2 * i] = args[2 * i + 1] = types[i];
  Build in = {b->m, region_new(b->m, 2 * n, args), b->loc};
  Value *lt = b_compare(&in, "LT", in.r->args[0], in.r->args[1]);
  b_return(&in, 1, &lt);
  return in.r;
}

Err *vjp_sort(Grad *g, Op *op) {
  Build *b = g->b;
  int n = op->n_operands, dim = (int)op_int(op, "dimension", -1);
  if (n >= B_MAX_RANK) return op_err(op, ERR_UNIMPLEMENTED, "gradient of a sort of %d tensors", n);
  if (dim < 0) dim += b_rank(IN(0));
  Value *in[B_MAX_RANK];
  Type *types[B_MAX_RANK], *scalars[2 * B_MAX_RANK];
  Value *pos = b_iota(b, b_type_as(b, IN(0)->type, DT_I32), dim);
  for (int i = 0; i <= n; i++) {
    in[i] = i < n ? IN(i) : pos;
    types[i] = in[i]->type;
    scalars[2 * i] = scalars[2 * i + 1] = b_type(b, b_dtype(in[i]), 0, NULL);
  }
  /* sort again with the positions as passengers: they say where each element came from */
  Build cmp = {b->m, region_new(b->m, 2 * n + 2, scalars), b->loc};
  Value *lt;
  PtrMap map = {0};
  grad_replay(&cmp, op->regions[0], cmp.r->args, &lt, &map);
  ptrmap_free(&map);
  b_return(&cmp, 1, &lt);
  Op *again = b_op(b, OP_SORT, n + 1, in, n + 1, types, op->n_attrs, op->attrs, 1, &cmp.r);
  /* then sort the cotangents by origin */
  Value *back[B_MAX_RANK] = {&again->results[n]};
  Type *back_types[B_MAX_RANK] = {pos->type}, *back_scalars[B_MAX_RANK] = {scalars[2 * n]};
  int k = 1, whose[B_MAX_RANK];
  for (int i = 0; i < n; i++) {
    Value *ct = grad_cot(g, &op->results[i]);
    if (!ct || !grad_active(g, IN(i))) continue;
    whose[k] = i;
    back[k] = ct;
    back_types[k] = ct->type;
    back_scalars[k++] = scalars[2 * i];
  }
  if (k == 1) return NULL;
  Region *r = less_first(b, k, back_scalars);
  NamedAttr a = b_int(b, "dimension", dim);
  Op *undo = b_op(b, OP_SORT, k, back, k, back_types, 1, &a, 1, &r);
  for (int i = 1; i < k; i++) grad_add(g, IN(whose[i]), &undo->results[i]);
  return NULL;
}
