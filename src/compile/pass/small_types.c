/* pass_small_types: what no kernel does in elements of up to 8 bits is done in wider ones.
 *
 *   reduce(x: f8, init)                 =   convert(reduce(convert(x) to f32, init), f8)
 *   bitcast_convert(x: i8[n]) -> i4[n, 2]   =   convert(shift(x, by 0 and 4), i4)
 *   bitcast_convert(x: i4[n, 2]) -> i8[n]   =   x[:, 0] & 15 | x[:, 1] << 4
 *
 * A sum is rounded once, at its end, as XLA has it; the largest and the smallest are the same either way. */
#include "compile/pass/pass_priv.h"

static bool is_small_float(const Type *t) {
  return dtype_is_float(t->dtype) && dtype_bits(t->dtype) <= 8 && !t->quant && type_is_static(t) &&
         t->rank <= B_MAX_RANK;
}

/* The one operation on both arguments, if it is one that b_reduce has. */
static OpKind combined_by(const Region *r) {
  const Op *x = r->first;
  if (!x || x->next != r->last || r->n_args != 2 || x->n_operands != 2 ||
      r->last->n_operands != 1 || r->last->operands[0] != &x->results[0])
    return OP_UNKNOWN;
  if (x->operands[0] == x->operands[1] || x->operands[0]->region != r ||
      x->operands[1]->region != r)
    return OP_UNKNOWN;
  bool ok =
      x->kind == OP_ADD || x->kind == OP_MULTIPLY || x->kind == OP_MAXIMUM || x->kind == OP_MINIMUM;
  return ok ? x->kind : OP_UNKNOWN;
}

static Value *wide_reduce(Build *b, const Op *op) {
  const int64_t *dims;
  if (op->n_operands != 2 || !is_small_float(op->operands[0]->type) || !is_small_float(op_type(op)))
    return NULL;
  OpKind k = combined_by(op->regions[0]);
  if (k == OP_UNKNOWN) return NULL;
  int n = op_ints(op, "dimensions", &dims);
  DType t = op_type(op)->dtype,
        as = t == DT_F8E8M0FNU ? DT_F64 : DT_F32; /* whose least is a zero in f32 */
  Value *all = b_reduce(b, k, b_convert(b, op->operands[0], as), n, dims);
  Value *init = b_bcast_scalar(b, b_convert(b, op->operands[1], as), all->type);
  return b_convert(b, b_binary(b, k, init, all), t);
}

/* ---- parts of bytes ---- */

static bool is_int(const Type *t) {
  return dtype_is_int(t->dtype) && !t->quant && type_is_static(t);
}

/* Elements of less than 8 bits in one of the other type; 0: it is no such cast. */
static int parts_in(const Type *wide, const Type *narrow) {
  int bits = dtype_bits(narrow->dtype), of = dtype_bits(wide->dtype);
  if (!is_int(wide) || !is_int(narrow) || bits >= 8 || of < 8 || narrow->rank != wide->rank + 1 ||
      narrow->rank > B_MAX_RANK)
    return 0;
  return of / bits;
}

static Value *taken_apart(Build *b, Value *x, const Type *to) {
  int map[B_MAX_RANK];
  for (int i = 0; i < x->type->rank; i++) map[i] = i;
  Type *all = b_type_as(b, to, x->type->dtype);
  Value *by = b_muls(b, b_iota(b, all, to->rank - 1), dtype_bits(to->dtype));
  Value *parts = b_binary(b, OP_SHIFT_RIGHT_LOGICAL, b_bcast_like(b, x, all, map), by);
  return b_convert(b, parts, to->dtype);
}

static Value *put_together(Build *b, Value *x, const Type *to, int n) {
  int bits = dtype_bits(x->type->dtype), last = x->type->rank - 1;
  Value *y = b_convert(b, x, to->dtype), *all = NULL;
  Value *mask = b_full(b, b_type_as(b, to, to->dtype), (1 << bits) - 1);
  for (int i = 0; i < n; i++) {
    Value *part = b_reshape(b, b_slice_dim(b, y, last, i, i + 1), to->rank, to->dims);
    part = b_binary(b, OP_AND, part, mask);
    part = i ? b_binary(b, OP_SHIFT_LEFT, part, b_full(b, part->type, i * bits)) : part;
    all = all ? b_binary(b, OP_OR, all, part) : part;
  }
  return all;
}

static Value *cast(Build *b, const Op *op) {
  Value *x = op->operands[0];
  const Type *to = op_type(op);
  if (parts_in(x->type, to)) return taken_apart(b, x, to);
  int n = parts_in(to, x->type);
  return n ? put_together(b, x, to, n) : NULL;
}

Err *pass_small_types(Module *m) {
  compile_rewrite(m, OP_REDUCE, wide_reduce);
  compile_rewrite(m, OP_BITCAST_CONVERT, cast);
  return NULL;
}
