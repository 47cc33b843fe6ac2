/* pass_algorithms: products with an explicit algorithm become plain ones, of rounded operands; products of floats of
 * up to 8 bits become such of bf16, or of the other operand's type, which hold all of their values.
 *
 *   dot(x, y), BF16_BF16_F32          = dot(convert(x, bf16), convert(y, bf16)) -> f32
 *   dot(x, y), TF32_TF32_F32          = dot(reduce_precision(x), reduce_precision(y))
 *   dot(x, y), BF16_BF16_F32_X3, ..   = dot(x, y) in f32
 *
 * Kernels add up in f32 or wider whatever the operands are, so what accumulates in less needs
 * nothing. Several products of parts stand for one in f32, which is exacter than they are; a chip
 * that would compute the parts has them in the program before (numerics.c). */
#include "compile/pass/pass_priv.h"

static const char *const precisions[] = {"lhs_precision_type", "rhs_precision_type"};

static bool small_float(DType t) { return t == DT_BF16 || t == DT_F16; }
static bool plain_float(DType t) { return small_float(t) || t == DT_F32 || t == DT_F64; }

/* What operand i is rounded to; DT_INVALID: something that is left as it is written. */
static DType precision_of(const Op *op, int i) {
  const Attr *a = op_attr(op, precisions[i]);
  DType t = a && a->type ? a->type->dtype : DT_INVALID;
  if (!plain_float(t) && t != DT_TF32) return DT_INVALID;
  return op_int(op, "num_primitive_operations", 1) > 1 && t != DT_F64 ? DT_F32 : t;
}

/* Is every value of one type also one of the other? */
static bool holds(DType as, DType t) {
  if (as == t || as == DT_F64) return true;
  return (as == DT_F32 || as == DT_TF32) && small_float(t);
}

static Value *rounded(Build *b, Value *x, DType as) {
  if (holds(as, b_dtype(x))) return x;
  if (as != DT_TF32) return b_convert(b, x, as);
  x = b_convert(b, x, DT_F32);
  NamedAttr bits[] = {{STR("exponent_bits"), attr_int(b->m, DT_I32, 8)},
                      {STR("mantissa_bits"), attr_int(b->m, DT_I32, 10)}};
  return b_op(b, OP_REDUCE_PRECISION, 1, &x, 1, &x->type, 2, bits, 0, NULL)->results;
}

static bool has_algorithm(const Op *op) {
  if (op->kind != OP_DOT_GENERAL || !op_attr(op, precisions[0])) return false;
  const Type *types[] = {op->operands[0]->type, op->operands[1]->type, op_type(op)};
  for (int i = 0; i < COUNT_OF(types); i++)
    if (!plain_float(types[i]->dtype) || types[i]->quant || !type_is_static(types[i]) ||
        types[i]->rank > B_MAX_RANK)
      return false;
  return precision_of(op, 0) != DT_INVALID && precision_of(op, 1) != DT_INVALID;
}

static bool eight_bits(const Type *t) {
  return dtype_is_float(t->dtype) && dtype_bits(t->dtype) <= 8 && t->dtype != DT_F8E8M0FNU &&
         !t->quant && type_is_static(t) && t->rank <= B_MAX_RANK;
}

/* What holds the values of both operands, of which one or both have at most 8 bits; DT_INVALID: they are others. */
static DType holds_both(const Type *x, const Type *y) {
  if (eight_bits(x) && eight_bits(y)) return DT_BF16;
  const Type *other = eight_bits(x) ? y : x;
  if (!eight_bits(x) && !eight_bits(y)) return DT_INVALID;
  return plain_float(other->dtype) && !other->quant ? other->dtype : DT_INVALID;
}

static Value *wide_product(Build *b, const Op *op, DType in) {
  DType out = op_type(op)->dtype, sum = out == DT_F64 || in == DT_F64 ? DT_F64 : DT_F32;
  Value *x = b_convert(b, op->operands[0], in), *y = b_convert(b, op->operands[1], in);
  DotDims d = b_dot_dims(op);
  return b_convert(b, b_dot(b, x, y, &d, sum, NULL), out);
}

static Value *plain_product(Build *b, const Op *op) {
  DType small = holds_both(op->operands[0]->type, op->operands[1]->type);
  if (small != DT_INVALID && dtype_is_float(op_type(op)->dtype) && !op_type(op)->quant)
    return wide_product(b, op, small);
  if (!has_algorithm(op)) return NULL;
  Value *x = rounded(b, op->operands[0], precision_of(op, 0)),
        *y = rounded(b, op->operands[1], precision_of(op, 1));
  const Attr *acc = op_attr(op, "accumulation_type");
  DType out = op_type(op)->dtype, in = b_dtype(x) == b_dtype(y) ? b_dtype(x) : DT_F32;
  if (b_dtype(x) == DT_F64 || b_dtype(y) == DT_F64 || (acc && acc->type->dtype == DT_F64))
    in = DT_F64;
  DType sum = !small_float(in) ? in : out == in ? out : DT_F32;
  DotDims d = b_dot_dims(op);
  return b_convert(b, b_dot(b, b_convert(b, x, in), b_convert(b, y, in), &d, sum, NULL), out);
}

static Value *wide_convolution(Build *b, const Op *op) {
  DType in = holds_both(op->operands[0]->type, op->operands[1]->type), out = op_type(op)->dtype;
  if (in == DT_INVALID || !dtype_is_float(out) || op_type(op)->quant) return NULL;
  Value *x[2] = {b_convert(b, op->operands[0], in), b_convert(b, op->operands[1], in)};
  Type *t = b_type_as(b, op_type(op), out == DT_F64 ? DT_F64 : DT_F32);
  return b_convert(
      b, b_op(b, OP_CONVOLUTION, 2, x, 1, &t, op->n_attrs, op->attrs, 0, NULL)->results, out);
}

Err *pass_algorithms(Module *m) {
  compile_rewrite(m, OP_DOT_GENERAL, plain_product);
  compile_rewrite(m, OP_CONVOLUTION, wide_convolution);
  return NULL;
}
