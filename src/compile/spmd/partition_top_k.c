/* The largest of a row that is cut: each device's own, and of those the largest. */
#include "compile/spmd/partition_priv.h"

static void top_k(Spmd *s, const Op *op, Value *x, Value *out[2]) {
  int64_t dims[MAX_RANK], last = x->type->rank - 1;
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[last] = op->results[0].type->dims[last];
  Type *t[2] = {type_tensor(s->m, x->type->dtype, x->type->rank, dims),
                type_tensor(s->m, op->results[1].type->dtype, x->type->rank, dims)};
  Op *c = spmd_same_op(s, op, &x, t);
  out[0] = &c->results[0], out[1] = &c->results[1];
}

/* x at the places `at` along the last dimension. */
static Value *picked(Build *b, Value *x, Value *at) {
  int last = b_rank(x) - 1;
  int64_t dims[MAX_RANK + 1], sizes[MAX_RANK];
  IndexDims d = {.n_collapsed = 1,
                 .collapsed = {last},
                 .n_map = 1,
                 .map = {last},
                 .n_batch = last,
                 .index_vector_dim = last + 1};
  for (int i = 0; i <= last; i++) {
    dims[i] = b_dim(at, i);
    sizes[i] = 1;
    if (i < last) d.operand_batch[i] = d.indices_batch[i] = i;
  }
  dims[last + 1] = 1;
  return b_gather(b, x, b_reshape(b, at, last + 2, dims), &d, sizes);
}

void spmd_top_k_op(Spmd *s, const Op *op) {
  const Type *t = op->operands[0]->type;
  int last = t->rank - 1;
  int64_t k = op->results[0].type->dims[last];
  Layout has = *spmd_layout_of(s, &op->results[0]);
  has.d[last].n = has.sum.n = 0;
  Dim cut = spmd_without(&spmd_layout_of(s, op->operands[0])->d[last], &has, last);
  if (t->dims[last] / spmd_dim_parts(s, &cut) < k || t->rank + 1 > MAX_RANK) cut.n = 0;
  Layout need = has;
  need.d[last] = cut;
  Value *out[2], *x = spmd_operand(s, op->operands[0], &need);
  top_k(s, op, x, out);
  if (cut.n) {
    Build b = {.m = s->m, .r = s->at, .loc = s->loc};
    Value *place = spmd_own_place(s, &cut, x->type->dims[last]);
    place = b_convert(&b, place, b_dtype(out[1]));
    Value *ids = b_add(&b, out[1], b_bcast_scalar(&b, place, out[1]->type));
    ids = spmd_all_gather(s, ids, last, &cut);
    top_k(s, op, spmd_all_gather(s, out[0], last, &cut), out);
    out[1] = picked(&b, ids, out[1]);
  }
  for (int i = 0; i < 2; i++) spmd_set_result(s, op, i, out[i], &has);
}
