/* Rules of pass_simplify for products and convolutions: transposes and reverses become dimension numbers. */
#include "compile/pass/pass_priv.h"

static int list(const Op *op, const char *name, int64_t *out) {
  const int64_t *v;
  int n = op_ints(op, name, &v);
  if (n > MAX_RANK) return -1;
  for (int i = 0; i < n; i++) out[i] = v[i];
  return n;
}

static void set_list(Simp *s, Op *op, const char *name, int n, const int64_t *v) {
  op_set_attr(s->m, op, str_from(name), n ? attr_ints(s->m, DT_I64, n, v) : NULL);
}

/* dot_general(transpose(x), y): the dimension numbers take the permutation over, when the free
 * dimensions keep their order. */
static bool fold_into_dot(Simp *s, Op *op, int k) {
  Op *t = value_def(op->operands[k], OP_TRANSPOSE);
  if (!t || t->operands[0]->type->rank > MAX_RANK) return false;
  const char *bn = k ? "rhs_batching_dimensions" : "lhs_batching_dimensions";
  const char *cn = k ? "rhs_contracting_dimensions" : "lhs_contracting_dimensions";
  int64_t batch[MAX_RANK], contract[MAX_RANK];
  const int64_t *perm;
  int nb = list(op, bn, batch), nc = list(op, cn, contract), n = op_ints(t, "permutation", &perm);
  if (nb < 0 || nc < 0) return false;
  int64_t last = -1;
  for (int i = 0; i < n; i++) {
    if (b_has_dim(nb, batch, i) || b_has_dim(nc, contract, i)) continue;
    if (perm[i] < last) return false;
    last = perm[i];
  }
  for (int i = 0; i < nb; i++) batch[i] = perm[batch[i]];
  for (int i = 0; i < nc; i++) contract[i] = perm[contract[i]];
  set_list(s, op, bn, nb, batch);
  set_list(s, op, cn, nc, contract);
  op->operands[k] = t->operands[0];
  s->changed = true;
  return true;
}

bool simp_dot(Simp *s, Op *op) {
  if (op->kind == OP_DOT) {
    int64_t l = op->operands[0]->type->rank - 1, zero = 0;
    if (!type_is_static(op->operands[0]->type) || l < 0) return false;
    NamedAttr a[3] = {simp_ints(s, "lhs_contracting_dimensions", 1, &l),
                      simp_ints(s, "rhs_contracting_dimensions", 1, &zero)};
    int n = 2;
    Attr *p = op_attr(op, "precision_config");
    if (p) a[n++] = (NamedAttr){STR("precision_config"), p};
    return simp_done(s, op, simp_op(s, op, OP_DOT_GENERAL, 2, op->operands, op_type(op), n, a));
  }
  return fold_into_dot(s, op, 0) || fold_into_dot(s, op, 1);
}

/* transpose(dot_general) that only swaps the free dimensions of the two sides: swap the operands.
 * Only when nobody else wants the product. */
bool simp_transpose_of_dot(Simp *s, Op *op) {
  Op *dot = value_def(op->operands[0], OP_DOT_GENERAL);
  const int64_t *perm;
  int n = op_ints(op, "permutation", &perm);
  if (!dot || !simp_single_use(s, &dot->results[0])) return false;
  int64_t lb[MAX_RANK], lc[MAX_RANK], rb[MAX_RANK], rc[MAX_RANK];
  int nb = list(dot, "lhs_batching_dimensions", lb),
      nc = list(dot, "lhs_contracting_dimensions", lc);
  if (nb < 0 || nc < 0 || list(dot, "rhs_batching_dimensions", rb) != nb ||
      list(dot, "rhs_contracting_dimensions", rc) != nc || op_attr(dot, "accumulation_type") ||
      op_attr(dot, "lhs_precision_type") || op_attr(dot, "rhs_precision_type"))
    return false;
  int lf = dot->operands[0]->type->rank - nb - nc, rf = dot->operands[1]->type->rank - nb - nc;
  if (lf + rf + nb != n) return false;
  for (int i = 0; i < n; i++) {
    int64_t want = i < nb ? i : i < nb + rf ? i + lf : i - rf;
    if (perm[i] != want) return false;
  }
  NamedAttr a[6];
  int k = 0;
  if (nb)
    a[k++] = simp_ints(s, "lhs_batching_dimensions", nb, rb),
    a[k++] = simp_ints(s, "rhs_batching_dimensions", nb, lb);
  if (nc)
    a[k++] = simp_ints(s, "lhs_contracting_dimensions", nc, rc),
    a[k++] = simp_ints(s, "rhs_contracting_dimensions", nc, lc);
  Attr *p = op_attr(dot, "precision_config");
  if (p && p->kind == AT_ARRAY && p->n == 2) {
    Attr *swap[2] = {p->items[1], p->items[0]};
    a[k++] = (NamedAttr){STR("precision_config"), attr_array(s->m, 2, swap)};
  }
  Value *in[2] = {dot->operands[1], dot->operands[0]};
  return simp_done(s, op, simp_op(s, op, OP_DOT_GENERAL, 2, in, op_type(op), k, a));
}

/* convolution(x, reverse(w)): window_reversal. */
bool simp_conv(Simp *s, Op *op) {
  Op *rev = value_def(op->operands[1], OP_REVERSE);
  if (!rev) return false;
  int64_t spatial[MAX_RANK], dims[MAX_RANK], flip[MAX_RANK] = {0}, old[MAX_RANK];
  int n = list(op, "kernel_spatial_dimensions", spatial), k = list(rev, "dimensions", dims);
  int no = list(op, "window_reversal", old);
  if (n < 0 || k < 0 || no < 0) return false;
  for (int i = 0; i < no && i < n; i++) flip[i] = old[i];
  for (int j = 0; j < k; j++) {
    int at = -1;
    for (int i = 0; i < n; i++)
      if (spatial[i] == dims[j]) at = i;
    if (at < 0) return false;
    flip[at] = !flip[at];
  }
  bool any = false;
  for (int i = 0; i < n; i++) any |= flip[i] != 0;
  op_set_attr(s->m, op, STR("window_reversal"), any ? attr_ints(s->m, DT_I1, n, flip) : NULL);
  op->operands[1] = rev->operands[0];
  s->changed = true;
  return true;
}
