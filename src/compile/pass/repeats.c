/* pass_repeats: products of what is repeated along a batch dimension, as keys and values are whose
 * heads serve several heads of queries, read it once:
 *
 *   dot(x[b, h r, m, k], repeat(y[b, h, n, k], r))   =   dot(x[b, h, r m, k], y), batches b, h
 *
 * The repeated part of the dimension becomes a free dimension of the other side. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

/* A part of a dimension's index: index / low % (high / low). */
typedef struct Part {
  int64_t low, high;
} Part;

static int64_t stride_of(const Type *t, int d) {
  int64_t s = 1;
  for (int i = d + 1; i < t->rank; i++) s *= t->dims[i];
  return s;
}

/* The operand's dimension that dimension d of `op` is, element by element; -1: none. */
static int same_dimension(const Op *op, int d) {
  const int64_t *v;
  int n;
  switch (op->kind) {
  case OP_CONVERT: return d;
  case OP_TRANSPOSE: op_ints(op, "permutation", &v); return (int)v[d];
  case OP_BROADCAST_IN_DIM:
    n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (v[i] == d && op->operands[0]->type->dims[i] == op_type(op)->dims[d]) return i;
    return -1;
  default: return -1;
  }
}

/* Is there a part of dimension d that the value does not depend on? */
static bool repeated_part(const Value *v, int d, Part *out) {
  const Op *op = v->def;
  if (!op || op->n_operands != 1 || v->type->dims[d] == 1 ||
      !type_is_static(op->operands[0]->type) || op->operands[0]->type->rank > B_MAX_RANK)
    return false;
  int same = same_dimension(op, d);
  if (same >= 0) return repeated_part(op->operands[0], same, out);
  if (op->kind == OP_BROADCAST_IN_DIM) {
    *out = (Part){1, v->type->dims[d]};
    return true;
  }
  if (op->kind != OP_RESHAPE) return false;
  const Type *from = op->operands[0]->type;
  int64_t s = stride_of(v->type, d), span = s * v->type->dims[d];
  for (int i = 0; i < from->rank; i++) {
    int64_t si = stride_of(from, i);
    if (!repeated_part(op->operands[0], i, out)) continue;
    int64_t low = si * out->low, high = si * out->high;
    if (low % s || span % high) continue;
    *out = (Part){low / s, high / s};
    return true;
  }
  return false;
}

/* The value with one element of that part. */
static Value *once(Build *b, Value *v, int d, Part p) {
  const Op *op = v->def;
  Value *x = op->operands[0];
  int64_t dims[B_MAX_RANK];
  int map[B_MAX_RANK];
  for (int i = 0; i < v->type->rank; i++) dims[i] = v->type->dims[i];
  dims[d] /= p.high / p.low;
  int same = same_dimension(op, d);
  if (same >= 0) x = once(b, x, same, p);
  const int64_t *list;
  int n = 0;
  switch (op->kind) {
  case OP_CONVERT: return b_convert(b, x, v->type->dtype);
  case OP_TRANSPOSE:
    n = op_ints(op, "permutation", &list);
    for (int i = 0; i < n; i++) map[i] = (int)list[i];
    return b_transpose(b, x, map);
  case OP_BROADCAST_IN_DIM:
    n = op_ints(op, "broadcast_dimensions", &list);
    for (int i = 0; i < n; i++) map[i] = (int)list[i];
    return b_bcast(b, x, v->type->rank, dims, map);
  default: break;
  }
  int64_t s = stride_of(v->type, d);
  for (int i = 0; i < x->type->rank; i++) {
    int64_t si = stride_of(x->type, i);
    Part q;
    if (!repeated_part(x, i, &q) || si * q.low != s * p.low || si * q.high != s * p.high) continue;
    x = once(b, x, i, q);
    break;
  }
  return b_reshape(b, x, v->type->rank, dims);
}

static const char *const batch_names[] = {"lhs_batching_dimensions", "rhs_batching_dimensions"},
                         *const contract_names[] = {"lhs_contracting_dimensions",
                                                    "rhs_contracting_dimensions"};

/* Batch dimension number `at` of the product, of which side `k` has a repeated part. NULL: the
 * result would have to be turned around. */
static Value *product_of(Build *b, const Op *op, const DotDims *dd, int k, int at, Part p) {
  const int64_t *batch = k ? dd->lhs_batch : dd->rhs_batch,
                *contract = k ? dd->lhs_contract : dd->rhs_contract;
  const int64_t *own = k ? dd->rhs_batch : dd->lhs_batch;
  Value *x = op->operands[k], *y = op->operands[!k];
  int rank = y->type->rank, out_rank = op_type(op)->rank;
  int64_t size = b_dim(y, (int)batch[at]), r = p.high / p.low, kept = size / r;
  if ((p.low > 1 && p.high < size) || rank >= B_MAX_RANK || out_rank >= B_MAX_RANK) return NULL;
  bool after = p.low == 1; /* the repeats follow what is kept of the dimension */
  /* the other side, [.., kept, r, ..] or [.., r, kept, ..] */
  int64_t dims[B_MAX_RANK], new_batch[B_MAX_RANK], new_contract[B_MAX_RANK];
  int split = (int)batch[at], free_before = 0, n_free = 0;
  for (int i = 0; i < rank; i++) dims[i + (i > split)] = b_dim(y, i);
  dims[split] = after ? kept : r;
  dims[split + 1] = after ? r : kept;
  for (int i = 0; i < dd->n_batch; i++)
    new_batch[i] = batch[i] + (batch[i] > split || (i == at && !after));
  for (int i = 0; i < dd->n_contract; i++) new_contract[i] = contract[i] + (contract[i] > split);
  for (int i = 0; i < rank; i++)
    if (!b_has_dim(dd->n_batch, batch, i) && !b_has_dim(dd->n_contract, contract, i)) {
      n_free++;
      free_before += i < split;
    }
  /* the result: batches, the lhs's free dimensions, the rhs's; r is one of the other side's */
  int lhs_free = k ? n_free : x->type->rank - dd->n_batch - dd->n_contract;
  int where = dd->n_batch + (k ? 0 : lhs_free) + free_before, n = 0;
  int64_t out[B_MAX_RANK];
  int perm[B_MAX_RANK];
  for (int i = 0; i < out_rank; i++) out[i + (i >= where)] = op_type(op)->dims[i];
  out[where] = r;
  out[at] = kept;
  for (int i = 0; i <= out_rank; i++) {
    if (i == where) continue;
    if (i == at && !after) perm[n++] = where;
    perm[n++] = i;
    if (i == at && after) perm[n++] = where;
  }
  bool turned = false;
  for (int i = 0, last = -1; i < n; i++) {
    if (out[perm[i]] == 1) continue;
    turned |= perm[i] < last;
    last = perm[i];
  }
  if (turned && 2 * type_count(op_type(op)) > type_count(x->type)) return NULL;
  y = b_reshape(b, y, rank + 1, dims);
  x = once(b, x, (int)own[at], p);
  NamedAttr attrs[16];
  int n_attrs = 0;
  attrs[n_attrs++] = b_ints(b, batch_names[!k], dd->n_batch, new_batch);
  attrs[n_attrs++] = b_ints(b, contract_names[!k], dd->n_contract, new_contract);
  for (int i = 0; i < op->n_attrs; i++)
    if (!str_is(op->attrs[i].name, batch_names[!k]) &&
        !str_is(op->attrs[i].name, contract_names[!k]))
      attrs[n_attrs++] = op->attrs[i];
  Value *in[2] = {k ? y : x, k ? x : y};
  Type *t = b_type(b, op_type(op)->dtype, out_rank + 1, out);
  Value *z = &b_op(b, op->kind, 2, in, 1, &t, n_attrs, attrs, 0, NULL)->results[0];
  return b_reshape(b, turned ? b_transpose(b, z, perm) : z, out_rank, op_type(op)->dims);
}

/* NULL: nothing is repeated. */
static Value *rewritten(Build *b, const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (l->quant || r->quant || o->quant || !type_is_static(l) || !type_is_static(r) ||
      l->rank > B_MAX_RANK || r->rank > B_MAX_RANK || op->n_attrs > 12 || type_count(o) == 0)
    return NULL;
  DotDims d = b_dot_dims(op);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < d.n_batch; i++) {
      Part p;
      int own = (int)(k ? d.rhs_batch : d.lhs_batch)[i];
      Value *v = repeated_part(op->operands[k], own, &p) ? product_of(b, op, &d, k, i, p) : NULL;
      if (v) return v;
    }
  return NULL;
}

Err *pass_repeats(Module *m) {
  compile_rewrite(m, OP_DOT_GENERAL, rewritten);
  return NULL;
}
