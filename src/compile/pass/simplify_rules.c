/* The rules of pass_simplify: each looks at one op and the ops that define its operands. A rule
 * either replaces the op's result by another value and removes the op, or changes the op in place;
 * it must make progress, as it is tried again on what it made. Only identities that hold for every
 * value (NaN, -0, overflow) in the element type. Those of what moves elements are in simplify_moves.c, of products in
 * simplify_products.c, of slices in simplify_slices.c, of counts in simplify_counts.c. */
#include "compile/pass/pass_priv.h"

#include <math.h>

static bool same_type(const Value *a, const Value *b) { return a->type == b->type; }

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
  NamedAttr to = simp_ints(s, "broadcast_dimensions", 0, NULL);
  return simp_done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &v, op_type(op), 1, &to));
}

/* Has type `to` every value of `from`, and keeps it apart from the others? */
static bool holds_all(DType to, DType from) {
  static const struct {
    DType type;
    int digits; /* of two, that it has one after the other */
  } floats[] = {{DT_BF16, 8}, {DT_F16, 11}, {DT_F32, 24}, {DT_F64, 53}};
  DTypeClass c = dtype_class(from), d = dtype_class(to);
  int bits = dtype_bits(from), digits = 0;
  for (int i = 0; i < COUNT_OF(floats); i++)
    if (floats[i].type == to) digits = floats[i].digits;
  if (c == DC_BOOL) return d == DC_SINT || d == DC_UINT || digits;
  if (c == DC_FLOAT) return (to == DT_F64 || (to == DT_F32 && bits <= 16)) && bits < dtype_bits(to);
  if (c != DC_SINT && c != DC_UINT) return false;
  if (d == c) return dtype_bits(to) > bits;
  return d == DC_SINT ? dtype_bits(to) > bits : digits >= bits && bits <= 32;
}

/* Through a type that has every value of the first: at once, as programs of mixed precision that go up and down again. */
static bool rule_convert(Simp *s, Op *op) {
  Value *a = op->operands[0];
  if (same_type(a, &op->results[0])) return simp_done(s, op, a);
  Op *in = value_def(a, OP_CONVERT);
  if (!in || in->operands[0]->type->quant ||
      !holds_all(a->type->dtype, in->operands[0]->type->dtype))
    return false;
  return simp_done(s, op, simp_op(s, op, OP_CONVERT, 1, in->operands, op_type(op), 0, NULL));
}

static bool rule_ewise(Simp *s, Op *op) {
  if (rule_splats(s, op) || simp_count(s, op)) return true;
  Value *a = op->n_operands > 0 ? op->operands[0] : NULL,
        *b = op->n_operands > 1 ? op->operands[1] : NULL;
  switch (op->kind) {
  case OP_ADD:
    if (value_is_int(b, 0) || value_is_float(b, -0.0)) return simp_done(s, op, a);
    if (value_is_int(a, 0) || value_is_float(a, -0.0)) return simp_done(s, op, b);
    return false;
  case OP_SUBTRACT:
    if (value_is_int(b, 0) || value_is_float(b, 0.0)) return simp_done(s, op, a);
    return false;
  case OP_MULTIPLY:
    if (value_is_int(b, 1) || value_is_float(b, 1.0)) return simp_done(s, op, a);
    if (value_is_int(a, 1) || value_is_float(a, 1.0)) return simp_done(s, op, b);
    return false;
  case OP_DIVIDE:
    if (value_is_int(b, 1) || value_is_float(b, 1.0)) return simp_done(s, op, a);
    return false;
  case OP_AND:
    if (value_is_int(b, op_type(op)->dtype == DT_I1 ? 1 : -1)) return simp_done(s, op, a);
    if (value_is_int(a, op_type(op)->dtype == DT_I1 ? 1 : -1)) return simp_done(s, op, b);
    return a == b && simp_done(s, op, a);
  case OP_OR:
    if (value_is_int(b, 0)) return simp_done(s, op, a);
    if (value_is_int(a, 0)) return simp_done(s, op, b);
    return a == b && simp_done(s, op, a);
  case OP_XOR:
    if (value_is_int(b, 0)) return simp_done(s, op, a);
    return value_is_int(a, 0) && simp_done(s, op, b);
  case OP_MAXIMUM:
  case OP_MINIMUM: return a == b && simp_done(s, op, a);
  case OP_CONVERT: return rule_convert(s, op);
  case OP_NOT:
  case OP_NEGATE: {
    Op *in = value_def(a, op->kind);
    return in && simp_done(s, op, in->operands[0]);
  }
  case OP_SELECT: {
    Op *not = value_def(a, OP_NOT);
    if (not ) {
      Value *in[3] = {not ->operands[0], op->operands[2], b};
      return simp_done(s, op, simp_op(s, op, OP_SELECT, 3, in, op_type(op), 0, NULL));
    }
    if (op->operands[1] == op->operands[2]) return simp_done(s, op, op->operands[1]);
    if (value_is_int(a, 1)) return simp_done(s, op, op->operands[1]);
    return value_is_int(a, 0) && simp_done(s, op, op->operands[2]);
  }
  case OP_CHLO_SQUARE: {
    Value *in[2] = {a, a};
    return simp_done(s, op, simp_op(s, op, OP_MULTIPLY, 2, in, op_type(op), 0, NULL));
  }
  case OP_POWER: /* x^2 rounds once either way */
    if (value_is_float(b, 2.0)) {
      Value *in[2] = {a, a};
      return simp_done(s, op, simp_op(s, op, OP_MULTIPLY, 2, in, op_type(op), 0, NULL));
    }
    return value_is_float(b, 1.0) && simp_done(s, op, a);
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
      NamedAttr a = simp_ints(s, "broadcast_dimensions", 0, NULL);
      v = simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &v, t, 1, &a);
    } else {
      v = simp_op(s, op, x->kind, x->n_operands, in, t, x->n_attrs, x->attrs);
    }
    const Value *key = &x->results[0];
    map_set(map, (Str){(const char *)&key, sizeof key}, v);
  }
  map_free(map);
  return out && out->type == op_type(op) && simp_done(s, op, out);
}

/* ---- reductions ---- */

/* reduce of no elements, as gradients of jnp.pad are full of: the initial value, spread. */
static bool rule_reduce_of_none(Simp *s, Op *op) {
  const Type *t = op->operands[0]->type;
  if (op->n_operands != 2 || op->n_results != 1 || !type_is_static(t) || type_count(t) != 0 ||
      op->operands[1]->type->dtype != op_type(op)->dtype)
    return false;
  NamedAttr to = simp_ints(s, "broadcast_dimensions", 0, NULL);
  return simp_done(s, op,
                   simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &op->operands[1], op_type(op), 1, &to));
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
  case OP_ADD:
    neutral = value_is_int(init, 0) || value_is_float(init, 0.0) || value_is_float(init, -0.0);
    break;
  case OP_MULTIPLY: neutral = value_is_int(init, 1) || value_is_float(init, 1.0); break;
  case OP_MAXIMUM: neutral = value_is_float(init, -INFINITY); break;
  case OP_MINIMUM: neutral = value_is_float(init, INFINITY); break;
  case OP_OR: neutral = value_is_int(init, 0); break;
  case OP_AND: neutral = t->dtype == DT_I1 && value_is_int(init, 1); break;
  default: break;
  }
  if (!args || !neutral) return false;
  return simp_done(s, op, simp_op(s, op, OP_RESHAPE, 1, op->operands, op_type(op), 0, NULL));
}

static bool rule_gather(Simp *s, Op *op) {
  Build b = {.m = s->m, .r = op->parent, .loc = op->loc};
  Op *end = op->parent->last;
  Value *v = gather_as_slices(&b, op);
  if (!v) return false;
  compile_move_built(end, op);
  return simp_done(s, op, v);
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
  NamedAttr a = {STR("value"), value}, dims = simp_ints(s, "broadcast_dimensions", 0, NULL);
  Value *scalar = simp_op(s, op, OP_CONSTANT, 0, NULL, value->type, 1, &a);
  return simp_done(s, op,
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
  return simp_done(s, op, simp_op(s, op, OP_CONSTANT, 0, NULL, op_type(op), 1, &a));
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
  case OP_DOT_GENERAL: return simp_dot(s, op);
  case OP_CONVOLUTION: return simp_conv(s, op);
  case OP_GATHER: return rule_gather(s, op);
  case OP_MAP: return rule_map(s, op);
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
    return same_type(op->operands[0], &op->results[0]) && simp_done(s, op, op->operands[0]);
  case OP_CUSTOM_CALL:
    return (op_is_remark(op) ||
            (!s->keep_shardings && str_is(op_str(op, "call_target_name"), "Sharding"))) &&
           op->n_operands == 1 && op->n_results == 1 &&
           same_type(op->operands[0], &op->results[0]) && simp_done(s, op, op->operands[0]);
  default: break;
  }
  switch (op_info[op->kind].cls) {
  case OC_EWISE: return rule_ewise(s, op);
  case OC_MOVE: return simp_move(s, op);
  default: return false;
  }
}
