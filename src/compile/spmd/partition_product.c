/* Products: dots and convolutions, whose contracted dimensions may stay cut where both operands are cut alike. */
#include "compile/spmd/partition_priv.h"

/* Axes that cut contracted dimension i of a product in both operands, or, `all`, in the one that more axes cut;
 * from the first one on that a dimension of the result has, or another pair, none. */
static Dim pair_axes(Spmd *s, const Op *op, const Product *p, int i, bool all, const Layout *has,
                     const Layout *need) {
  const Dim *x = &spmd_layout_of(s, op->operands[0])->d[p->pairs[i][0]],
            *y = &spmd_layout_of(s, op->operands[1])->d[p->pairs[i][1]];
  const Dim *axes = x->n >= y->n ? x : y;
  int n = all ? axes->n : spmd_common_prefix(x, y);
  Layout others = *need;
  others.d[p->pairs[i][0]].n = 0;
  Dim out = {0};
  while (out.n < n && !spmd_uses_axis(has, MAX_RANK, axes->a[out.n]) &&
         !spmd_uses_axis(&others, MAX_RANK, axes->a[out.n]))
    out.a[out.n] = axes->a[out.n], out.n++;
  int64_t size = op->operands[0]->type->dims[p->pairs[i][0]];
  while (out.n && size % spmd_dim_parts(s, &out)) out.n--;
  return out;
}

/* Has one of the dimensions that both operands share a single element left on each device? */
static bool batch_cut_to_one(const Product *p, const Type *whole, const Type *part) {
  bool cut = false;
  for (int d = 0; d < whole->rank; d++)
    cut |= p->from[d][0] >= 0 && p->from[d][1] >= 0 && whole->dims[d] > 1 && part->dims[d] == 1;
  return cut;
}

/* Contracted dimensions that both operands have cut alike stay cut: the parts' products are summed
 * over the devices. The result's other dimensions are cut as it wants them; then contracted ones
 * that only one operand has cut, over axes that are left. */
static void product_op(Spmd *s, const Op *op, const Product *p) {
  const Type *r = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  Layout need[2], has = {0};
  Dim summed = {0};
  memset(need, 0, sizeof need);
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < p->n_pairs; i++) {
      Dim *own = &need[0].d[p->pairs[i][0]];
      Dim axes = pair_axes(s, op, p, i, pass > 0, &has, &need[0]);
      if (axes.n <= own->n || summed.n + axes.n - own->n > MAX_AXES) continue;
      for (int k = own->n; k < axes.n; k++) summed.a[summed.n++] = axes.a[k];
      *own = need[1].d[p->pairs[i][1]] = axes;
    }
    for (int d = 0; d < r->rank && pass == 0; d++) {
      if (p->from[d][0] < 0 && p->from[d][1] < 0) continue;
      Layout taken = {.d = {summed}};
      while (has.d[d].n < want->d[d].n && !spmd_uses_axis(&taken, 1, want->d[d].a[has.d[d].n]))
        has.d[d].a[has.d[d].n] = want->d[d].a[has.d[d].n], has.d[d].n++;
      for (int k = 0; k < 2; k++)
        if (p->from[d][k] >= 0) need[k].d[p->from[d][k]] = has.d[d];
    }
  }
  Value *in[2] = {spmd_operand(s, op->operands[0], &need[0]),
                  spmd_operand(s, op->operands[1], &need[1])};
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  int64_t padding[2 * MAX_RANK];
  bool conv = op->kind == OP_CONVOLUTION;
  if (conv) in[0] = spmd_conv_input(s, op, in[0], need, padding);
  Op *c = spmd_same_op(s, op, in, &out);
  if (conv) spmd_set_padding(s, c, padding);
  if (batch_cut_to_one(p, op_type(op), out))
    op_set_attr(s->m, c, STR(ATTR_CUT_TO_ONE), attr_unit(s->m));
  Value *x = &c->results[0];
  has.sum = spmd_axes_in(&want->sum, &summed, true);
  summed = spmd_axes_in(&summed, &has.sum, false);
  if (summed.n) x = spmd_sum_over(s, x, &summed, want, &has);
  spmd_set_result(s, op, 0, x, &has);
}

void spmd_dot_op(Spmd *s, const Op *op) {
  Product p = {0};
  DotDims d = b_dot_dims(op);
  int at = 0;
  for (; at < d.n_batch; at++)
    p.from[at][0] = (int)d.lhs_batch[at], p.from[at][1] = (int)d.rhs_batch[at];
  for (int i = 0; i < op->operands[0]->type->rank; i++)
    if (!b_has_dim(d.n_batch, d.lhs_batch, i) && !b_has_dim(d.n_contract, d.lhs_contract, i))
      p.from[at][0] = i, p.from[at++][1] = -1;
  for (int i = 0; i < op->operands[1]->type->rank; i++)
    if (!b_has_dim(d.n_batch, d.rhs_batch, i) && !b_has_dim(d.n_contract, d.rhs_contract, i))
      p.from[at][0] = -1, p.from[at++][1] = i;
  p.n_pairs = d.n_contract;
  for (int i = 0; i < d.n_contract; i++)
    p.pairs[i][0] = (int)d.lhs_contract[i], p.pairs[i][1] = (int)d.rhs_contract[i];
  product_op(s, op, &p);
}

void spmd_conv_op(Spmd *s, const Op *op) {
  Product p = {0};
  for (int d = 0; d < MAX_RANK; d++) p.from[d][0] = p.from[d][1] = -1;
  if (op_int(op, "batch_group_count", 1) == 1) {
    p.from[op_int(op, "output_batch_dimension", 0)][0] =
        (int)op_int(op, "input_batch_dimension", 0);
    if (op_int(op, "feature_group_count", 1) == 1) {
      p.from[op_int(op, "output_feature_dimension", 0)][1] =
          (int)op_int(op, "kernel_output_feature_dimension", 0);
      p.n_pairs = 1;
      p.pairs[0][0] = (int)op_int(op, "input_feature_dimension", 0);
      p.pairs[0][1] = (int)op_int(op, "kernel_input_feature_dimension", 0);
    }
  }
  spmd_conv_sides(s, op, &p);
  product_op(s, op, &p);
}
