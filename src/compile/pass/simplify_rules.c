/* The rules of pass_simplify: each looks at one op and the ops that define its operands. A rule
 * either replaces the op's result by another value and removes the op, or changes the op in place;
 * it must make progress, as it is tried again on what it made. Only identities that hold for every
 * value (NaN, -0, overflow) in the element type. */
#include "compile/pass/pass_priv.h"

#include <math.h>

static bool done(Simp *s, Op *op, Value *by) {
  simp_replace(s, &op->results[0], by);
  op_remove(op);
  return true;
}

static Op *def_of(const Value *v, OpKind kind) {
  return v->def && v->def->kind == kind ? v->def : NULL;
}

static bool same_type(const Value *a, const Value *b) { return a->type == b->type; }

static NamedAttr ints(Simp *s, const char *name, int n, const int64_t *v) {
  return (NamedAttr){str_from(name), attr_ints(s->m, DT_I64, n, v)};
}

/* All elements of v are this float. */
static bool is_float(const Value *v, double x) {
  const void *p = value_splat(v);
  if (!p || !dtype_is_float(v->type->dtype)) return false;
  double got = elem_get_f64(v->type->dtype, p);
  return got == x && (x != 0 || signbit(got) == signbit(x));
}

static bool is_int(const Value *v, int64_t x) {
  const void *p = value_splat(v);
  DTypeClass c = dtype_class(v->type->dtype);
  return p && (c == DC_SINT || c == DC_UINT || c == DC_BOOL) &&
         elem_get_i64(v->type->dtype, p) == x;
}

/* ---- element-wise ---- */

/* Of operands that are each one value, spread: computed once, on scalars (which fold), and spread. */
static bool rule_splats(Simp *s, Op *op) {
  if (op->n_regions || op->n_operands > 4 || !type_is_static(op_type(op)) ||
      type_count(op_type(op)) < 2)
    return false;
  for (int i = 0; i < op->n_operands; i++)
    if (!value_splat(op->operands[i])) return false;
  Value *in[4];
  for (int i = 0; i < op->n_operands; i++) {
    Tensor *one = tensor_make(op->operands[i]->type->dtype, 0, NULL);
    memcpy(one->data, value_splat(op->operands[i]), (size_t)dtype_bytes(one->dtype));
    NamedAttr a = {STR("value"), attr_tensor(s->m, one, NULL)};
    in[i] = simp_op(s, op, OP_CONSTANT, 0, NULL, a.value->type, 1, &a);
  }
  Type *t = type_tensor(s->m, op_type(op)->dtype, 0, NULL);
  Value *v = simp_op(s, op, op->kind, op->n_operands, in, t, op->n_attrs, op->attrs);
  NamedAttr to = ints(s, "broadcast_dimensions", 0, NULL);
  return done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &v, op_type(op), 1, &to));
}

static bool rule_ewise(Simp *s, Op *op) {
  if (rule_splats(s, op) || simp_count(s, op)) return true;
  Value *a = op->n_operands > 0 ? op->operands[0] : NULL,
        *b = op->n_operands > 1 ? op->operands[1] : NULL;
  switch (op->kind) {
  case OP_ADD:
    if (is_int(b, 0) || is_float(b, -0.0)) return done(s, op, a);
    if (is_int(a, 0) || is_float(a, -0.0)) return done(s, op, b);
    return false;
  case OP_SUBTRACT:
    if (is_int(b, 0) || is_float(b, 0.0)) return done(s, op, a);
    return false;
  case OP_MULTIPLY:
    if (is_int(b, 1) || is_float(b, 1.0)) return done(s, op, a);
    if (is_int(a, 1) || is_float(a, 1.0)) return done(s, op, b);
    return false;
  case OP_DIVIDE:
    if (is_int(b, 1) || is_float(b, 1.0)) return done(s, op, a);
    return false;
  case OP_AND:
    if (is_int(b, op_type(op)->dtype == DT_I1 ? 1 : -1)) return done(s, op, a);
    if (is_int(a, op_type(op)->dtype == DT_I1 ? 1 : -1)) return done(s, op, b);
    return a == b && done(s, op, a);
  case OP_OR:
    if (is_int(b, 0)) return done(s, op, a);
    if (is_int(a, 0)) return done(s, op, b);
    return a == b && done(s, op, a);
  case OP_XOR:
    if (is_int(b, 0)) return done(s, op, a);
    return is_int(a, 0) && done(s, op, b);
  case OP_MAXIMUM:
  case OP_MINIMUM: return a == b && done(s, op, a);
  case OP_CONVERT: return same_type(a, &op->results[0]) && done(s, op, a);
  case OP_NOT:
  case OP_NEGATE: {
    Op *in = def_of(a, op->kind);
    return in && done(s, op, in->operands[0]);
  }
  case OP_SELECT:
    if (op->operands[1] == op->operands[2]) return done(s, op, op->operands[1]);
    if (is_int(a, 1)) return done(s, op, op->operands[1]);
    return is_int(a, 0) && done(s, op, op->operands[2]);
  case OP_CHLO_SQUARE: {
    Value *in[2] = {a, a};
    return done(s, op, simp_op(s, op, OP_MULTIPLY, 2, in, op_type(op), 0, NULL));
  }
  case OP_POWER: /* x^2 rounds once either way */
    if (is_float(b, 2.0)) {
      Value *in[2] = {a, a};
      return done(s, op, simp_op(s, op, OP_MULTIPLY, 2, in, op_type(op), 0, NULL));
    }
    return is_float(b, 1.0) && done(s, op, a);
  default: return false;
  }
}

/* stablehlo.map: its body, on whole tensors. */
static bool rule_map(Simp *s, Op *op) {
  const Region *r = op->regions[0];
  const Type *shape = op_type(op);
  for (const Op *x = r->first; x; x = x->next) {
    bool ok = x == r->last || op_info[x->kind].cls == OC_EWISE || x->kind == OP_CONSTANT;
    if (!ok || x->n_regions) return false;
  }
  Map *map = map_new();
  for (int i = 0; i < r->n_args; i++)
    map_set(map, (Str){(const char *)&r->args[i], sizeof(Value *)}, op->operands[i]);
  Value *out = NULL;
  for (const Op *x = r->first; x; x = x->next) {
    Value *in[8];
    if (x->n_operands > 8) break;
    for (int i = 0; i < x->n_operands; i++) {
      in[i] = map_get(map, (Str){(const char *)&x->operands[i], sizeof(Value *)});
      if (!in[i]) in[i] = simp_resolve(s, x->operands[i]);
    }
    if (x == r->last) {
      out = in[0];
      break;
    }
    Type *t = type_tensor(s->m, op_type(x)->dtype, shape->rank, shape->dims);
    Value *v;
    if (x->kind == OP_CONSTANT) {
      v = simp_op(s, op, OP_CONSTANT, 0, NULL, op_type(x), x->n_attrs, x->attrs);
      NamedAttr a = ints(s, "broadcast_dimensions", 0, NULL);
      v = simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &v, t, 1, &a);
    } else {
      v = simp_op(s, op, x->kind, x->n_operands, in, t, x->n_attrs, x->attrs);
    }
    const Value *key = &x->results[0];
    map_set(map, (Str){(const char *)&key, sizeof key}, v);
  }
  map_free(map);
  return out && out->type == op_type(op) && done(s, op, out);
}

/* ---- moves ---- */

static bool rule_reshape(Simp *s, Op *op) {
  Value *a = op->operands[0];
  if (same_type(a, &op->results[0])) return done(s, op, a);
  Op *in = def_of(a, OP_RESHAPE);
  if (in && type_is_static(in->operands[0]->type))
    return done(s, op, simp_op(s, op, OP_RESHAPE, 1, &in->operands[0], op_type(op), 0, NULL));
  return false;
}

/* transpose(concatenate) of pieces whose dimensions longer than one keep their order: the pieces are
 * reshaped, and side by side otherwise. */
static bool transpose_pieces(Simp *s, Op *op, const int64_t *perm) {
  Op *in = def_of(op->operands[0], OP_CONCATENATE);
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
  return done(s, op, simp_op(s, op, OP_CONCATENATE, in->n_operands, pieces, op_type(op), 1, &a));
}

/* The broadcast puts its operand's dimensions where the transpose takes them. */
static bool transpose_broadcast(Simp *s, Op *op, int n, const int64_t *perm) {
  Op *in = def_of(op->operands[0], OP_BROADCAST_IN_DIM);
  if (!in || n > MAX_RANK) return false;
  const int64_t *map;
  int64_t where[MAX_RANK], to[MAX_RANK];
  int k = op_ints(in, "broadcast_dimensions", &map);
  for (int i = 0; i < n; i++) where[perm[i]] = i;
  for (int j = 0; j < k; j++) to[j] = where[map[j]];
  NamedAttr a = ints(s, "broadcast_dimensions", k, to);
  return done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, in->operands, op_type(op), 1, &a));
}

static bool rule_transpose(Simp *s, Op *op) {
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
  if (identity) return done(s, op, a);
  if (ordered) return done(s, op, simp_op(s, op, OP_RESHAPE, 1, &a, op_type(op), 0, NULL));
  if (transpose_pieces(s, op, perm)) return true;
  if (transpose_broadcast(s, op, n, perm)) return true;
  Op *in = def_of(a, OP_TRANSPOSE);
  const int64_t *first;
  if (in && n <= MAX_RANK && op_ints(in, "permutation", &first) == n) {
    int64_t both[MAX_RANK];
    for (int i = 0; i < n; i++) both[i] = first[perm[i]];
    NamedAttr p = ints(s, "permutation", n, both);
    return done(s, op, simp_op(s, op, OP_TRANSPOSE, 1, &in->operands[0], op_type(op), 1, &p));
  }
  return false;
}

/* transpose of arithmetic on what is broadcast, as outer products are: the broadcasts put their
 * dimensions elsewhere. Only when nobody else wants it the other way round. */
static bool rule_transpose_of_ewise(Simp *s, Op *op) {
  Op *in = op->operands[0]->def;
  const int64_t *perm, *map;
  int n = op_ints(op, "permutation", &perm);
  if (!in || op_info[in->kind].cls != OC_EWISE || in->n_results != 1 || in->n_operands > 4 ||
      n > MAX_RANK || !simp_single_use(s, &in->results[0]) || !type_is_static(op_type(op)))
    return false;
  for (int i = 0; i < in->n_operands; i++)
    if (in->operands[i]->type->rank && !def_of(in->operands[i], OP_BROADCAST_IN_DIM)) return false;
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
    NamedAttr a = ints(s, "broadcast_dimensions", k, to);
    Type *t = type_tensor(s->m, spread->results[0].type->dtype, n, op_type(op)->dims);
    operands[i] = simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &spread->operands[0], t, 1, &a);
  }
  return done(
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
    NamedAttr m = ints(s, "broadcast_dimensions", a->type->rank, dims);
    return done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &a, op_type(op), 1, &m));
  }
  int n = op_ints(op, "broadcast_dimensions", &map);
  bool ordered = true;
  for (int i = 1; i < n; i++) ordered &= map[i] > map[i - 1];
  if (!type_is_static(a->type) || !type_is_static(op_type(op))) return false;
  if (ordered &&
      type_count(a->type) == type_count(op_type(op))) /* only dimensions of one are added */
    return done(s, op, simp_op(s, op, OP_RESHAPE, 1, &a, op_type(op), 0, NULL));
  Op *in = def_of(a, OP_BROADCAST_IN_DIM);
  const int64_t *first;
  if (in) {
    int k = op_ints(in, "broadcast_dimensions", &first);
    int64_t both[MAX_RANK];
    if (k > MAX_RANK) return false;
    for (int i = 0; i < k; i++) both[i] = map[first[i]];
    NamedAttr m = ints(s, "broadcast_dimensions", k, both);
    return done(s, op,
                simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &in->operands[0], op_type(op), 1, &m));
  }
  in = def_of(a, OP_RESHAPE); /* that only adds or removes dimensions of one */
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
    NamedAttr m = ints(s, "broadcast_dimensions", x->type->rank, both);
    return done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &x, op_type(op), 1, &m));
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
  if (op->n_operands == 1) return same_type(a, &op->results[0]) && done(s, op, a);
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
         done(s, op, simp_op(s, op, OP_CONCATENATE, n, in, op_type(op), op->n_attrs, op->attrs));
}

static bool rule_move(Simp *s, Op *op) {
  Value *a = op->n_operands ? op->operands[0] : NULL;
  switch (op->kind) {
  case OP_RESHAPE: return rule_reshape(s, op);
  case OP_TRANSPOSE: return rule_transpose(s, op);
  case OP_BROADCAST:
  case OP_BROADCAST_IN_DIM: return rule_broadcast(s, op);
  case OP_SLICE: return (same_type(a, &op->results[0]) && done(s, op, a)) || simp_slice(s, op);
  case OP_COPY: return same_type(a, &op->results[0]) && done(s, op, a);
  case OP_BITCAST_CONVERT: return same_type(a, &op->results[0]) && done(s, op, a);
  case OP_PAD:
    if (same_type(a, &op->results[0]) && all_are(op, "edge_padding_low", 0) &&
        all_are(op, "edge_padding_high", 0) && all_are(op, "interior_padding", 0))
      return done(s, op, a);
    return simp_cutting_pad(s, op);
  case OP_CONCATENATE: return rule_concatenate(s, op);
  case OP_REVERSE: {
    const int64_t *d;
    int n = op_ints(op, "dimensions", &d);
    for (int i = 0; i < n; i++)
      if (a->type->dims[d[i]] != 1) return false;
    return done(s, op, a);
  }
  default: return false;
  }
}

/* ---- reductions ---- */

/* reduce of no elements, as gradients of jnp.pad are full of: the initial value, spread. */
static bool rule_reduce_of_none(Simp *s, Op *op) {
  const Type *t = op->operands[0]->type;
  if (op->n_operands != 2 || op->n_results != 1 || !type_is_static(t) || type_count(t) != 0 ||
      op->operands[1]->type->dtype != op_type(op)->dtype)
    return false;
  NamedAttr to = ints(s, "broadcast_dimensions", 0, NULL);
  return done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &op->operands[1], op_type(op), 1, &to));
}

/* reduce over dimensions of one, starting from the neutral element of a simple body: a reshape. */
static bool rule_reduce(Simp *s, Op *op) {
  if (op->n_operands != 2 || op->n_results != 1) return false;
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  const Type *t = op->operands[0]->type;
  if (!type_is_static(t) || t->dtype != op_type(op)->dtype) return false;
  for (int i = 0; i < n; i++)
    if (t->dims[dims[i]] != 1) return false;
  const Region *r = op->regions[0];
  const Op *x = r->first;
  if (!x || x->next != r->last || r->last->n_operands != 1 ||
      r->last->operands[0] != &x->results[0])
    return false;
  bool args =
      x->n_operands == 2 && ((x->operands[0] == r->args[0] && x->operands[1] == r->args[1]) ||
                             (x->operands[0] == r->args[1] && x->operands[1] == r->args[0]));
  const Value *init = op->operands[1];
  bool neutral = false;
  switch (x->kind) {
  /* -0 + 0 is +0: as every compiler has it, a sum of one element is that element */
  case OP_ADD: neutral = is_int(init, 0) || is_float(init, 0.0) || is_float(init, -0.0); break;
  case OP_MULTIPLY: neutral = is_int(init, 1) || is_float(init, 1.0); break;
  case OP_MAXIMUM: neutral = is_float(init, -INFINITY); break;
  case OP_MINIMUM: neutral = is_float(init, INFINITY); break;
  case OP_OR: neutral = is_int(init, 0); break;
  case OP_AND: neutral = t->dtype == DT_I1 && is_int(init, 1); break;
  default: break;
  }
  if (!args || !neutral) return false;
  return done(s, op, simp_op(s, op, OP_RESHAPE, 1, op->operands, op_type(op), 0, NULL));
}

/* ---- products ---- */

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
  Op *t = def_of(op->operands[k], OP_TRANSPOSE);
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

static bool rule_dot(Simp *s, Op *op) {
  if (op->kind == OP_DOT) {
    int64_t l = op->operands[0]->type->rank - 1, zero = 0;
    if (!type_is_static(op->operands[0]->type) || l < 0) return false;
    NamedAttr a[3] = {ints(s, "lhs_contracting_dimensions", 1, &l),
                      ints(s, "rhs_contracting_dimensions", 1, &zero)};
    int n = 2;
    Attr *p = op_attr(op, "precision_config");
    if (p) a[n++] = (NamedAttr){STR("precision_config"), p};
    return done(s, op, simp_op(s, op, OP_DOT_GENERAL, 2, op->operands, op_type(op), n, a));
  }
  return fold_into_dot(s, op, 0) || fold_into_dot(s, op, 1);
}

/* transpose(dot_general) that only swaps the free dimensions of the two sides: swap the operands.
 * Only when nobody else wants the product. */
static bool rule_transpose_of_dot(Simp *s, Op *op) {
  Op *dot = def_of(op->operands[0], OP_DOT_GENERAL);
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
    a[k++] = ints(s, "lhs_batching_dimensions", nb, rb),
    a[k++] = ints(s, "rhs_batching_dimensions", nb, lb);
  if (nc)
    a[k++] = ints(s, "lhs_contracting_dimensions", nc, rc),
    a[k++] = ints(s, "rhs_contracting_dimensions", nc, lc);
  Attr *p = op_attr(dot, "precision_config");
  if (p && p->kind == AT_ARRAY && p->n == 2) {
    Attr *swap[2] = {p->items[1], p->items[0]};
    a[k++] = (NamedAttr){STR("precision_config"), attr_array(s->m, 2, swap)};
  }
  Value *in[2] = {dot->operands[1], dot->operands[0]};
  return done(s, op, simp_op(s, op, OP_DOT_GENERAL, 2, in, op_type(op), k, a));
}

/* convolution(x, reverse(w)): window_reversal. */
static bool rule_conv(Simp *s, Op *op) {
  Op *rev = def_of(op->operands[1], OP_REVERSE);
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

/* A large constant of one value is that value, spread: nobody reads it from memory. */
static bool rule_constant(Simp *s, Op *op) {
  const Tensor *t = value_constant(&op->results[0]);
  if (!t || !t->data || t->count <= SPLAT_MAX || op_attr(op, "value")->type->quant) return false;
  size_t width = (size_t)dtype_bytes(t->dtype);
  const char *p = t->data;
  if (!width || !tensor_is_splat(t)) return false;
  Tensor *one = tensor_make(t->dtype, 0, NULL);
  memcpy(one->data, p, width);
  Attr *value = attr_tensor(s->m, one, NULL);
  NamedAttr a = {STR("value"), value}, dims = ints(s, "broadcast_dimensions", 0, NULL);
  Value *scalar = simp_op(s, op, OP_CONSTANT, 0, NULL, value->type, 1, &a);
  return done(s, op,
              simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &scalar, op->results[0].type, 1, &dims));
}

/* What has no elements is a constant. */
static bool rule_empty(Simp *s, Op *op) {
  OpClass c = op_info[op->kind].cls;
  if (op->n_results != 1 || op->kind == OP_CONSTANT || c == OC_CONTROL || c == OC_DYNAMIC ||
      !op_is_pure(op) || !type_is_static(op_type(op)) || type_count(op_type(op)))
    return false;
  const Type *t = op_type(op);
  NamedAttr a = {STR("value"), attr_tensor(s->m, tensor_make(t->dtype, t->rank, t->dims), NULL)};
  return done(s, op, simp_op(s, op, OP_CONSTANT, 0, NULL, op_type(op), 1, &a));
}

bool simp_rules(Simp *s, Op *op) {
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind != TY_TENSOR || op->results[i].type->quant) return false;
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->kind != TY_TENSOR || op->operands[i]->type->quant) return false;
  if (rule_empty(s, op)) return true;
  switch (op->kind) {
  case OP_CONSTANT: return rule_constant(s, op);
  case OP_REDUCE: return rule_reduce_of_none(s, op) || rule_reduce(s, op);
  case OP_DOT:
  case OP_DOT_GENERAL: return rule_dot(s, op);
  case OP_CONVOLUTION: return rule_conv(s, op);
  case OP_MAP: return rule_map(s, op);
  case OP_TRANSPOSE:
    return rule_transpose(s, op) || rule_transpose_of_dot(s, op) || rule_transpose_of_ewise(s, op);
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
    return same_type(op->operands[0], &op->results[0]) && done(s, op, op->operands[0]);
  case OP_CUSTOM_CALL:
    return (op_is_remark(op) ||
            (!s->keep_shardings && str_is(op_str(op, "call_target_name"), "Sharding"))) &&
           op->n_operands == 1 && op->n_results == 1 &&
           same_type(op->operands[0], &op->results[0]) && done(s, op, op->operands[0]);
  default: break;
  }
  switch (op_info[op->kind].cls) {
  case OC_EWISE: return rule_ewise(s, op);
  case OC_MOVE: return rule_move(s, op);
  default: return false;
  }
}
