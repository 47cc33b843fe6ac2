/* Rules of pass_simplify for what moves elements: reshapes, transposes, broadcasts and their like, one of another. */
#include "compile/pass/pass_priv.h"

static bool same_type(const Value *a, const Value *b) { return a->type == b->type; }

static bool rule_reshape(Simp *s, Op *op) {
  Value *a = op->operands[0];
  if (same_type(a, &op->results[0])) return simp_done(s, op, a);
  Op *in = value_def(a, OP_RESHAPE);
  if (in && type_is_static(in->operands[0]->type))
    return simp_done(s, op, simp_op(s, op, OP_RESHAPE, 1, &in->operands[0], op_type(op), 0, NULL));
  return false;
}

/* transpose(concatenate) of pieces whose dimensions longer than one keep their order: the pieces are
 * reshaped, and side by side otherwise. */
static bool transpose_pieces(Simp *s, Op *op, const int64_t *perm) {
  Op *in = value_def(op->operands[0], OP_CONCATENATE);
  if (!in || !simp_single_use(s, &in->results[0]) || in->n_operands > MAX_PARTS) return false;
  int rank = op_type(op)->rank;
  int64_t dim = op_int(in, "dimension", 0), to = 0, dims[MAX_RANK];
  Value *pieces[MAX_PARTS];
  for (int k = 0; k < in->n_operands; k++) {
    const Type *t = in->operands[k]->type;
    int64_t last = -1;
    if (!type_is_static(t) || rank > MAX_RANK) return false;
    for (int i = 0; i < rank; i++) {
      if (t->dims[perm[i]] > 1 && perm[i] < last) return false;
      if (t->dims[perm[i]] > 1) last = perm[i];
    }
  }
  for (int k = 0; k < in->n_operands; k++) {
    for (int i = 0; i < rank; i++) {
      dims[i] = in->operands[k]->type->dims[perm[i]];
      if (perm[i] == dim) to = i;
    }
    Type *t = type_tensor(s->m, op_type(op)->dtype, rank, dims);
    pieces[k] = simp_op(s, op, OP_RESHAPE, 1, &in->operands[k], t, 0, NULL);
  }
  NamedAttr a = {STR("dimension"), attr_int(s->m, DT_I64, to)};
  return simp_done(s, op,
                   simp_op(s, op, OP_CONCATENATE, in->n_operands, pieces, op_type(op), 1, &a));
}

/* The broadcast puts its operand's dimensions where the transpose takes them. */
static bool transpose_broadcast(Simp *s, Op *op, int n, const int64_t *perm) {
  Op *in = value_def(op->operands[0], OP_BROADCAST_IN_DIM);
  if (!in || n > MAX_RANK) return false;
  const int64_t *map;
  int64_t where[MAX_RANK], to[MAX_RANK];
  int k = op_ints(in, "broadcast_dimensions", &map);
  for (int i = 0; i < n; i++) where[perm[i]] = i;
  for (int j = 0; j < k; j++) to[j] = where[map[j]];
  NamedAttr a = simp_ints(s, "broadcast_dimensions", k, to);
  return simp_done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, in->operands, op_type(op), 1, &a));
}

static bool transpose(Simp *s, Op *op) {
  const int64_t *perm;
  int n = op_ints(op, "permutation", &perm);
  Value *a = op->operands[0];
  if (!type_is_static(a->type)) return false;
  bool identity = true;
  int64_t last = -1; /* do the dimensions longer than one keep their order? Then it is a reshape */
  bool ordered = true;
  for (int i = 0; i < n; i++) {
    identity &= perm[i] == i;
    if (a->type->dims[perm[i]] == 1) continue;
    ordered &= perm[i] > last;
    last = perm[i];
  }
  if (identity) return simp_done(s, op, a);
  if (ordered) return simp_done(s, op, simp_op(s, op, OP_RESHAPE, 1, &a, op_type(op), 0, NULL));
  if (transpose_pieces(s, op, perm)) return true;
  if (transpose_broadcast(s, op, n, perm)) return true;
  Op *in = value_def(a, OP_TRANSPOSE);
  const int64_t *first;
  if (in && n <= MAX_RANK && op_ints(in, "permutation", &first) == n) {
    int64_t both[MAX_RANK];
    for (int i = 0; i < n; i++) both[i] = first[perm[i]];
    NamedAttr p = simp_ints(s, "permutation", n, both);
    return simp_done(s, op, simp_op(s, op, OP_TRANSPOSE, 1, &in->operands[0], op_type(op), 1, &p));
  }
  return false;
}

/* transpose of arithmetic on what is broadcast, as outer products are: the broadcasts put their
 * dimensions elsewhere. Only when nobody else wants it the other way round. */
static bool transpose_of_ewise(Simp *s, Op *op) {
  Op *in = op->operands[0]->def;
  const int64_t *perm, *map;
  int n = op_ints(op, "permutation", &perm);
  if (!in || op_info[in->kind].cls != OC_EWISE || in->n_results != 1 || in->n_operands > 4 ||
      n > MAX_RANK || !simp_single_use(s, &in->results[0]) || !type_is_static(op_type(op)))
    return false;
  for (int i = 0; i < in->n_operands; i++)
    if (in->operands[i]->type->rank && !value_def(in->operands[i], OP_BROADCAST_IN_DIM))
      return false;
  int64_t where[MAX_RANK];
  for (int i = 0; i < n; i++) where[perm[i]] = i;
  Value *operands[4];
  for (int i = 0; i < in->n_operands; i++) {
    operands[i] = in->operands[i];
    if (!operands[i]->type->rank) continue;
    const Op *spread = operands[i]->def;
    int64_t to[MAX_RANK];
    int k = op_ints(spread, "broadcast_dimensions", &map);
    for (int j = 0; j < k; j++) to[j] = where[map[j]];
    NamedAttr a = simp_ints(s, "broadcast_dimensions", k, to);
    Type *t = type_tensor(s->m, spread->results[0].type->dtype, n, op_type(op)->dims);
    operands[i] = simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &spread->operands[0], t, 1, &a);
  }
  return simp_done(
      s, op,
      simp_op(s, op, in->kind, in->n_operands, operands, op_type(op), in->n_attrs, in->attrs));
}

static bool rule_broadcast(Simp *s, Op *op) {
  Value *a = op->operands[0];
  const int64_t *map;
  if (op->kind == OP_BROADCAST) {
    int64_t dims[MAX_RANK];
    int lead = op_type(op)->rank - a->type->rank;
    if (a->type->rank > MAX_RANK) return false;
    for (int i = 0; i < a->type->rank; i++) dims[i] = lead + i;
    NamedAttr m = simp_ints(s, "broadcast_dimensions", a->type->rank, dims);
    return simp_done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &a, op_type(op), 1, &m));
  }
  int n = op_ints(op, "broadcast_dimensions", &map);
  bool ordered = true;
  for (int i = 1; i < n; i++) ordered &= map[i] > map[i - 1];
  if (!type_is_static(a->type) || !type_is_static(op_type(op))) return false;
  if (ordered &&
      type_count(a->type) == type_count(op_type(op))) /* only dimensions of one are added */
    return simp_done(s, op, simp_op(s, op, OP_RESHAPE, 1, &a, op_type(op), 0, NULL));
  Op *in = value_def(a, OP_BROADCAST_IN_DIM);
  const int64_t *first;
  if (in) {
    int k = op_ints(in, "broadcast_dimensions", &first);
    int64_t both[MAX_RANK];
    if (k > MAX_RANK) return false;
    for (int i = 0; i < k; i++) both[i] = map[first[i]];
    NamedAttr m = simp_ints(s, "broadcast_dimensions", k, both);
    return simp_done(s, op,
                     simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &in->operands[0], op_type(op), 1, &m));
  }
  in = value_def(a, OP_RESHAPE); /* that only adds or removes dimensions of one */
  if (in && type_is_static(in->operands[0]->type)) {
    Value *x = in->operands[0];
    int64_t both[MAX_RANK];
    int j = 0;
    if (x->type->rank > MAX_RANK) return false;
    for (int i = 0; i < x->type->rank; i++) {
      while (j < n && a->type->dims[j] == 1 && x->type->dims[i] != 1) j++;
      if (x->type->dims[i] == 1 && (j >= n || a->type->dims[j] != 1))
        return false; /* no place for it */
      if (j >= n || a->type->dims[j] != x->type->dims[i]) return false;
      both[i] = map[j++];
    }
    for (; j < n; j++)
      if (a->type->dims[j] != 1) return false;
    NamedAttr m = simp_ints(s, "broadcast_dimensions", x->type->rank, both);
    return simp_done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &x, op_type(op), 1, &m));
  }
  return false;
}

static bool all_are(const Op *op, const char *name, int64_t want) {
  const int64_t *v;
  int n = op_ints(op, name, &v);
  for (int i = 0; i < n; i++)
    if (v[i] != want) return false;
  return true;
}

/* Operands without elements add nothing. */
static bool rule_concatenate(Simp *s, Op *op) {
  Value *a = op->operands[0];
  if (op->n_operands == 1) return same_type(a, &op->results[0]) && simp_done(s, op, a);
  Value *in[MAX_RANK];
  int n = 0;
  for (int i = 0; i < op->n_operands; i++) {
    Value *v = op->operands[i];
    if (!type_is_static(v->type)) return false;
    if (!type_count(v->type)) continue;
    if (n == MAX_RANK) return false;
    in[n++] = v;
  }
  return n && n < op->n_operands &&
         simp_done(s, op,
                   simp_op(s, op, OP_CONCATENATE, n, in, op_type(op), op->n_attrs, op->attrs));
}

bool simp_move(Simp *s, Op *op) {
  Value *a = op->n_operands ? op->operands[0] : NULL;
  switch (op->kind) {
  case OP_RESHAPE: return rule_reshape(s, op);
  case OP_TRANSPOSE:
    return transpose(s, op) || simp_transpose_of_dot(s, op) || transpose_of_ewise(s, op);
  case OP_BROADCAST:
  case OP_BROADCAST_IN_DIM: return rule_broadcast(s, op);
  case OP_SLICE: return (same_type(a, &op->results[0]) && simp_done(s, op, a)) || simp_slice(s, op);
  case OP_COPY: return same_type(a, &op->results[0]) && simp_done(s, op, a);
  case OP_BITCAST_CONVERT: return same_type(a, &op->results[0]) && simp_done(s, op, a);
  case OP_PAD:
    if (same_type(a, &op->results[0]) && all_are(op, "edge_padding_low", 0) &&
        all_are(op, "edge_padding_high", 0) && all_are(op, "interior_padding", 0))
      return simp_done(s, op, a);
    return simp_cutting_pad(s, op);
  case OP_CONCATENATE: return rule_concatenate(s, op);
  case OP_REVERSE: {
    const int64_t *d;
    int n = op_ints(op, "dimensions", &d);
    for (int i = 0; i < n; i++)
      if (a->type->dims[d[i]] != 1) return false;
    return simp_done(s, op, a);
  }
  default: return false;
  }
}
