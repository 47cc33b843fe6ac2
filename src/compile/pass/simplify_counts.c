/* Rules of pass_simplify for counts, numbers of elements made of iotas and constants: random numbers
 * begin as 64-bit ones, of which the upper half is nothing until there are 2^32 of them, and are cut
 * to 32 bits. Counted in 32 bits at once, lanes are half as wide. Counts as indices are never negative,
 * which JAX asks of each. */
#include "compile/pass/pass_priv.h"

#define MOST_DEPTH 12

static bool is_whole(DType t) {
  DTypeClass c = dtype_class(t);
  return c == DC_SINT || c == DC_UINT;
}

/* The largest that v, which is never negative, can be; -1: not known. */
static double most_of(const Value *v, int depth) {
  const void *splat = value_splat(v);
  const Op *op = v->def;
  if (!is_whole(v->type->dtype) || !type_is_static(v->type)) return -1;
  if (splat) {
    double x = elem_get_f64(v->type->dtype, splat);
    return x >= 0 ? x : -1;
  }
  if (!op || depth == MOST_DEPTH) return -1;
  double a = -1, b = -1;
  switch (op->kind) {
  case OP_IOTA: a = (double)v->type->dims[op_int(op, "iota_dimension", 0)] - 1; break;
  case OP_ADD:
  case OP_MULTIPLY:
    a = most_of(op->operands[0], depth + 1);
    if (a >= 0) b = most_of(op->operands[1], depth + 1);
    if (b < 0) return -1;
    a = op->kind == OP_ADD ? a + b : a * b;
    break;
  case OP_CONVERT:
  case OP_RESHAPE:
  case OP_BROADCAST_IN_DIM: a = most_of(op->operands[0], depth + 1); break;
  default: return -1;
  }
  int bits = dtype_bits(v->type->dtype) - dtype_is_signed(v->type->dtype);
  return a < (double)(bits > 52 ? (int64_t)1 << 52 : (int64_t)1 << bits) ? a : -1;
}

/* Is v made of iotas and constants by what the lower bits of operands are enough for? */
static bool is_count(const Value *v, int depth) {
  const Op *op = v->def;
  if (!op || depth == MOST_DEPTH || !type_is_static(v->type)) return false;
  if (value_splat(v)) return true;
  switch (op->kind) {
  case OP_IOTA: return v->type->dims[op_int(op, "iota_dimension", 0)] <= INT32_MAX;
  case OP_ADD:
  case OP_MULTIPLY:
    return is_count(op->operands[0], depth + 1) && is_count(op->operands[1], depth + 1);
  case OP_RESHAPE:
  case OP_BROADCAST_IN_DIM: return is_count(op->operands[0], depth + 1);
  default: return false;
  }
}

/* The count in elements of t. */
static Value *counted_in(Simp *s, Op *at, Value *v, DType t) {
  const Op *op = v->def;
  Type *type = type_tensor(s->m, t, v->type->rank, v->type->dims);
  Value *in[2];
  if (op->kind == OP_CONSTANT) return simp_op(s, at, OP_CONVERT, 1, &v, type, 0, NULL);
  for (int k = 0; k < op->n_operands; k++) in[k] = counted_in(s, at, op->operands[k], t);
  return simp_op(s, at, op->kind, op->n_operands, in, type, op->n_attrs, op->attrs);
}

/* A count, less than nothing? */
static bool is_never_less(const Op *op) {
  const void *p = value_splat(op->operands[1]);
  return p && str_is(op_str(op, "comparison_direction"), "LT") &&
         elem_get_i64(op->operands[1]->type->dtype, p) == 0 && most_of(op->operands[0], 0) >= 0;
}

static Value *zeros(Simp *s, Op *at, Type *type) {
  Tensor *none = tensor_make(type->dtype, 0, NULL);
  memset(none->data, 0, tensor_bytes(none));
  NamedAttr value = {STR("value"), attr_tensor(s->m, none, NULL)};
  NamedAttr dims = {STR("broadcast_dimensions"), attr_ints(s->m, DT_I64, 0, NULL)};
  Value *zero = simp_op(s, at, OP_CONSTANT, 0, NULL, value.value->type, 1, &value);
  return simp_op(s, at, OP_BROADCAST_IN_DIM, 1, &zero, type, 1, &dims);
}

bool simp_count(Simp *s, Op *op) {
  Value *x = op->operands[0], *by = NULL;
  DType from = x->type->dtype, to = op_type(op)->dtype;
  if (op->kind == OP_CONVERT) {
    bool less = is_whole(from) && is_whole(to) && dtype_bits(from) > 32 && dtype_bits(to) == 32;
    if (less && !value_splat(x) && is_count(x, 0)) by = counted_in(s, op, x, to);
  } else if (op->kind == OP_SHIFT_RIGHT_LOGICAL) {
    const void *n = value_splat(op->operands[1]);
    int64_t bits = n ? elem_get_i64(from, n) : 0;
    double most = bits > 0 && bits < dtype_bits(from) ? most_of(x, 0) : -1;
    if (most >= 0 && (bits > 52 || most < (double)((int64_t)1 << bits)))
      by = zeros(s, op, op_type(op));
  } else if (op->kind == OP_COMPARE && is_whole(from) && is_never_less(op)) {
    by = zeros(s, op, op_type(op));
  }
  if (!by) return false;
  simp_replace(s, &op->results[0], by);
  op_remove(op);
  return true;
}
