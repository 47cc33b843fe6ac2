/* Which dimensions of operands and results are which axes of the scores. */
#include "compile/pass/blockwise.h"

static Axes no_axes(void) {
  Axes a;
  memset(a.of, -1, sizeof a.of);
  return a;
}

static unsigned bits_of(const Axes *a, int rank) {
  unsigned bits = 0;
  for (int i = 0; i < rank; i++)
    if (a->of[i] >= 0) bits |= 1u << a->of[i];
  return bits;
}

/* Dimensions of a reshape that have as many places before them, and of their own, on the other side. */
static void reshaped(const Type *from, const Axes *of, const Type *to, Axes *out) {
  int64_t at = 1;
  for (int i = 0; i < from->rank; at *= from->dims[i++]) {
    int k = 0;
    int64_t there = 1;
    while (k < to->rank && (there < at || to->dims[k] == 1)) there *= to->dims[k++];
    if (from->dims[i] > 1 && k < to->rank && there == at && to->dims[k] == from->dims[i])
      out->of[k] = of->of[i];
  }
}

void axes_before_move(const Op *op, const Axes *after, Axes *before, unsigned *lost) {
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *v;
  *before = no_axes();
  if (op->kind == OP_RESHAPE) {
    reshaped(to, after, from, before);
  } else if (op->kind == OP_TRANSPOSE) {
    op_ints(op, "permutation", &v);
    for (int i = 0; i < to->rank; i++) before->of[v[i]] = after->of[i];
  } else {
    int n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (from->dims[i] == to->dims[v[i]]) before->of[i] = after->of[v[i]];
  }
  *lost = op->kind == OP_RESHAPE ? bits_of(after, to->rank) & ~bits_of(before, from->rank) : 0;
}

void axes_after_move(const Op *op, const Axes *before, Axes *after, unsigned *lost) {
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *v;
  *after = no_axes();
  if (op->kind == OP_RESHAPE) {
    reshaped(from, before, to, after);
  } else if (op->kind == OP_TRANSPOSE) {
    op_ints(op, "permutation", &v);
    for (int i = 0; i < to->rank; i++) after->of[i] = before->of[v[i]];
  } else {
    int n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (from->dims[i] == to->dims[v[i]]) after->of[v[i]] = before->of[i];
  }
  *lost = bits_of(before, from->rank) & ~bits_of(after, to->rank);
}

/* Dimension i of operand `side` is neither a batch nor summed over. */
static bool is_free(const DotDims *d, int side, int i) {
  return !b_has_dim(d->n_batch, side ? d->rhs_batch : d->lhs_batch, i) &&
         !b_has_dim(d->n_contract, side ? d->rhs_contract : d->lhs_contract, i);
}

void axes_of_operands(const Op *dot, const Axes *result, Axes *lhs, Axes *rhs) {
  DotDims d = b_dot_dims(dot);
  *lhs = *rhs = no_axes();
  for (int i = 0; i < d.n_batch; i++)
    lhs->of[d.lhs_batch[i]] = rhs->of[d.rhs_batch[i]] = result->of[i];
  int at = d.n_batch;
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < b_rank(dot->operands[side]); i++)
      if (is_free(&d, side, i)) (side ? rhs : lhs)->of[i] = result->of[at++];
}

void axes_of_product(const Op *dot, int side, const Axes *member, Axes *other, Axes *result,
                     unsigned *summed) {
  DotDims d = b_dot_dims(dot);
  const int64_t *batch[2] = {d.lhs_batch, d.rhs_batch},
                *contract[2] = {d.lhs_contract, d.rhs_contract};
  *other = *result = no_axes();
  *summed = 0;
  for (int i = 0; i < d.n_batch; i++)
    other->of[batch[!side][i]] = result->of[i] = member->of[batch[side][i]];
  for (int i = 0; i < d.n_contract; i++) {
    int8_t axis = member->of[contract[side][i]];
    other->of[contract[!side][i]] = axis;
    if (axis >= 0) *summed |= 1u << axis;
  }
  int at = d.n_batch;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < b_rank(dot->operands[k]); i++)
      if (is_free(&d, k, i)) {
        if (k == side) result->of[at] = member->of[i];
        at++;
      }
}

Axes axes_of_sum(const Op *reduce, const Axes *member, unsigned *summed) {
  const int64_t *dims;
  int n = op_ints(reduce, "dimensions", &dims), at = 0;
  Axes a = no_axes();
  *summed = 0;
  for (int i = 0; i < b_rank(reduce->operands[0]); i++) {
    if (!b_has_dim(n, dims, i)) a.of[at++] = member->of[i];
    else if (member->of[i] >= 0) *summed |= 1u << member->of[i];
  }
  return a;
}
