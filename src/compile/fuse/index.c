/* Index arithmetic of fusions: where an op's operand is read when its result is wanted at an affine
 * index over a domain. The same functions decide what may be fused (fuse.c) and generate the
 * addresses (dev/cpu), so the two cannot disagree.
 *
 * A reshape turns the index into an element number and that into an index of the operand's
 * dimensions again; this stays affine when each domain dimension falls inside one dimension of the
 * operand. When it does not, dividing the domain dimension helps
 * ([B*T, C] becomes [B, T, C]): the caller is told where. */
#include "compile/fuse/fuse.h"

#define MAX_RANK 32

bool affine_equal(const Domain *d, const Affine *a, const Affine *b) {
  if (a->off != b->off) return false;
  for (int k = 0; k < d->n; k++)
    if (a->coef[k] != b->coef[k]) return false;
  return true;
}

Affine index_flat(const Domain *d, const Type *t, const Affine *at) {
  Affine l = {0};
  int64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    l.off += at[i].off * stride;
    for (int k = 0; k < d->n; k++) l.coef[k] += at[i].coef[k] * stride;
    stride *= t->dims[i];
  }
  return l;
}

/* Element number -> index. Dimensions of one always get 0. */
static bool delinearize(const Domain *d, Affine l, int rank, const int64_t *dims, Affine *out,
                        int *split, int64_t *inner) {
  int64_t strides[MAX_RANK], s = 1;
  for (int j = rank - 1; j >= 0; j--) {
    strides[j] = s;
    s *= dims[j];
  }
  if (l.off < 0 || l.off >= s) return false;
  int64_t off = l.off;
  for (int j = 0; j < rank; j++) {
    out[j] = (Affine){0};
    out[j].off = off / strides[j];
    off %= strides[j];
  }
  for (int k = 0; k < d->n; k++) {
    int64_t c = l.coef[k], e = d->dims[k];
    if (c == 0 || e == 1) continue;
    if (c < 0) return false;
    int j = 0;
    while (j < rank && (strides[j] > c || dims[j] == 1)) j++;
    if (j == rank) return false;
    if (c % strides[j]) return false;
    int64_t span = strides[j] * dims[j];
    if (c * (e - 1) >= span) {
      if (span % c == 0 && e % (span / c) == 0 && split) {
        *split = k;
        *inner = span / c;
      }
      return false;
    }
    out[j].coef[k] += c / strides[j];
  }
  for (int j = 0; j < rank; j++) {
    int64_t top = out[j].off;
    for (int k = 0; k < d->n; k++) top += out[j].coef[k] * (d->dims[k] - 1);
    if (top >= dims[j]) return false;
  }
  return true;
}

int index_reads(const Op *op) {
  const int64_t *map;
  return op->kind == OP_GATHER ? 1 + op_ints(op, "start_index_map", &map) : op->n_operands;
}

Value *index_read(const Op *op, int k, bool *anywhere) {
  *anywhere = op->kind == OP_GATHER && k == 0;
  return op->operands[op->kind == OP_GATHER ? MIN(k, 1) : k];
}

static bool listed(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* of: for each dimension of the indices but that of the vectors, the result's that has its place */
static void batch_dims(const Op *op, int *of) {
  const int64_t *offset;
  int n_offset = op_ints(op, "offset_dims", &offset), next = 0;
  int64_t vector_dim = op_int(op, "index_vector_dim", 0);
  for (int i = 0; i < op->operands[1]->type->rank; i++) {
    if (i == vector_dim) continue;
    while (listed(offset, n_offset, next)) next++;
    of[i] = next++;
  }
}

static void gather_operand(const Op *op, int k, const Affine *at, Affine *out) {
  const int64_t *offset, *collapsed, *batch, *indices_batch;
  int of[MAX_RANK], n_collapsed = op_ints(op, "collapsed_slice_dims", &collapsed),
                    n_batch = op_ints(op, "operand_batching_dims", &batch);
  op_ints(op, "offset_dims", &offset);
  op_ints(op, "start_indices_batching_dims", &indices_batch);
  batch_dims(op, of);
  if (k) { /* component k - 1 of the index vector */
    int64_t vector_dim = op_int(op, "index_vector_dim", 0);
    for (int i = 0; i < op->operands[1]->type->rank; i++)
      out[i] = i == vector_dim ? (Affine){.off = k - 1} : at[of[i]];
    return;
  }
  for (int i = 0, next = 0; i < op->operands[0]->type->rank; i++) {
    out[i] = (Affine){0};
    for (int j = 0; j < n_batch; j++)
      if (batch[j] == i) out[i] = at[of[indices_batch[j]]];
    if (!listed(collapsed, n_collapsed, i) && !listed(batch, n_batch, i))
      out[i] = at[offset[next++]];
  }
}

bool index_operand(const Domain *d, const Op *op, int k, const Affine *at, Affine *out, int *split,
                   int64_t *inner) {
  bool anywhere;
  const Type *from = index_read(op, k, &anywhere)->type;
  const int64_t *v, *w;
  if (split) *split = -1;
  if (from->rank > DOM_MAX) return false;
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
    op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < from->rank; i++) {
      if (from->dims[i] == 1) out[i] = (Affine){0};
      else out[i] = at[v[i]];
    }
    return true;
  case OP_RESHAPE:
    return delinearize(d, index_flat(d, op_type(op), at), from->rank, from->dims, out, split,
                       inner);
  case OP_BITCAST_CONVERT:
  case OP_COPY:
    for (int i = 0; i < from->rank; i++) out[i] = at[i];
    return from->rank == op_type(op)->rank;
  case OP_TRANSPOSE:
    op_ints(op, "permutation", &v);
    for (int i = 0; i < from->rank; i++) out[v[i]] = at[i];
    return true;
  case OP_SLICE:
    op_ints(op, "start_indices", &v);
    op_ints(op, "strides", &w);
    for (int i = 0; i < from->rank; i++) {
      out[i].off = v[i] + w[i] * at[i].off;
      for (int j = 0; j < DOM_MAX; j++) out[i].coef[j] = w[i] * at[i].coef[j];
    }
    return true;
  case OP_REVERSE: {
    int n = op_ints(op, "dimensions", &v);
    for (int i = 0; i < from->rank; i++) out[i] = at[i];
    for (int j = 0; j < n; j++) {
      Affine *a = &out[v[j]];
      a->off = from->dims[v[j]] - 1 - a->off;
      for (int i = 0; i < DOM_MAX; i++) a->coef[i] = -a->coef[i];
    }
    return true;
  }
  case OP_PAD:
    if (k == 1) return true;
    op_ints(op, "edge_padding_low", &v);
    op_ints(op, "interior_padding", &w);
    for (int i = 0; i < from->rank; i++) {
      if (w[i]) return false;
      out[i] = at[i];
      out[i].off -= v[i];
    }
    return true;
  case OP_CONCATENATE: {
    int64_t dim = op_int(op, "dimension", 0);
    for (int i = 0; i < from->rank; i++) out[i] = at[i];
    for (int j = 0; j < k; j++) out[dim].off -= op->operands[j]->type->dims[dim];
    return true;
  }
  case OP_GATHER: gather_operand(op, k, at, out); return true;
  case OP_REDUCE: {
    if (k >= op->n_operands / 2) return true;
    int n = op_ints(op, "dimensions", &v);
    int64_t dims[DOM_MAX];
    Affine red[DOM_MAX], l = {0};
    for (int j = 0; j < n; j++) dims[j] = from->dims[v[j]];
    int64_t stride = 1;
    for (int j = d->n - 1; j >= 0; j--)
      if (d->reduced[j]) {
        l.coef[j] = stride;
        stride *= d->dims[j];
      }
    if (!delinearize(d, l, n, dims, red, split, inner)) return false;
    int next = 0;
    for (int i = 0; i < from->rank; i++) {
      int which = -1;
      for (int j = 0; j < n; j++)
        if (v[j] == i) which = j;
      out[i] = which >= 0 ? red[which] : at[next++];
    }
    return true;
  }
  default:
    if (op_info[op->kind].cls != OC_EWISE) return false;
    for (int i = 0; i < from->rank; i++) out[i] = at[i];
    return from->rank == op_type(op)->rank || from->rank == 0;
  }
}

int index_range(const Op *op, int k, int *dims) {
  int n = 0;
  if (op->kind == OP_PAD && k == 0) {
    const int64_t *lo, *hi;
    op_ints(op, "edge_padding_low", &lo);
    op_ints(op, "edge_padding_high", &hi);
    for (int i = 0; i < op->operands[0]->type->rank; i++)
      if (lo[i] > 0 || hi[i] > 0) dims[n++] = i;
  }
  if (op->kind == OP_CONCATENATE) dims[n++] = (int)op_int(op, "dimension", 0);
  return n;
}

int index_piece(const Domain *d, const Op *op, const Affine *at) {
  int64_t dim = op_int(op, "dimension", 0), end = 0;
  for (int k = 0; k < d->n; k++)
    if (at[dim].coef[k] && d->dims[k] > 1) return -1;
  for (int k = 0; k < op->n_operands; k++) {
    end += op->operands[k]->type->dims[dim];
    if (at[dim].off >= 0 && at[dim].off < end) return k;
  }
  return -1;
}
