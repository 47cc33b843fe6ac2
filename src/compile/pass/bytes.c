/* pass_bytes: products and convolutions of small integers with results as small are summed in 32 bits, as kernels for bytes do it, and
 * then cut off: both are exact modulo the result's width.
 *
 *   dot_general(i8, i8) -> i8   =   convert(dot_general(i8, i8) -> i32) -> i8 */
#include "compile/pass/pass_priv.h"

static bool is_small(const Type *t) {
  return dtype_is_int(t->dtype) && dtype_bits(t->dtype) >= 8 && dtype_bits(t->dtype) <= 16 &&
         !t->quant && type_is_static(t);
}

static Value *rewritten(Build *b, const Op *op) {
  const Type *t = op_type(op);
  if (!is_small(t) || !is_small(op->operands[0]->type) || !is_small(op->operands[1]->type))
    return NULL;
  Type *wide = b_type_as(b, t, DT_I32);
  Value *sums =
      b_op(b, op->kind, 2, op->operands, 1, &wide, op->n_attrs, op->attrs, 0, NULL)->results;
  return b_convert(b, sums, t->dtype);
}

Err *pass_bytes(Module *m) {
  compile_rewrite(m, OP_DOT_GENERAL, rewritten);
  compile_rewrite(m, OP_CONVOLUTION, rewritten);
  return NULL;
}
