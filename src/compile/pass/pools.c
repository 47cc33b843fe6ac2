/* pass_pools: poolings that are simpler than windows.
 *
 * A window over whole dimensions is a reduction of them:
 *
 *   reduce_window(x[n, h, w, c]), window 1 x h x w x 1   =   reshape(reduce(x, h, w))
 *
 * The gradient of a mean over windows that do not overlap is written as a sum over windows of a
 * spread-out array where each sees one element that is not zero; it repeats the elements:
 *
 *   reduce_window_add(pad(y[n, h, w, c], 0, low k - 1, interior k - 1)), window 1 x k x k x 1
 *     =   reshape(broadcast(y)) to [n, h k, w k, c], padded with zeros as far as it is larger
 *
 * Both are then fused with what is around them. */
#include <math.h>

#include "compile/pass/pass_priv.h"
#include "ir/build.h"

static int64_t int_at(const Op *op, const char *name, int i, int64_t otherwise) {
  const int64_t *v;
  return i < op_ints(op, name, &v) ? v[i] : otherwise;
}

/* The one operation of its body. */
static OpKind combines(const Op *op) {
  const Region *r = op->regions[0];
  const Op *f = r->first;
  if (op->n_results != 1 || op->n_operands != 2 || !f || f->next != r->last ||
      r->last->operands[0] != &f->results[0] || f->n_operands != 2 || f->operands[0]->def ||
      f->operands[1]->def || f->operands[0] == f->operands[1] || f->operands[0]->region != r ||
      f->operands[1]->region != r || r->args[0]->type->dtype != op_type(op)->dtype)
    return OP_UNKNOWN;
  return f->kind;
}

static bool is_number(const Value *v, double number) {
  const void *p = value_splat(v);
  DType t = v->type->dtype;
  return p && dtype_is_float(t) && !dtype_is_complex(t) && elem_get_f64(t, p) == number;
}

static bool neutral(const Value *init, OpKind kind) {
  return kind == OP_ADD       ? is_number(init, 0)
         : kind == OP_MAXIMUM ? is_number(init, -(double)INFINITY)
                              : kind == OP_MINIMUM && is_number(init, (double)INFINITY);
}

/* NULL: there is more than one result along a dimension that it reduces. */
static Value *whole(Build *b, const Op *op, OpKind kind) {
  const Type *x = op->operands[0]->type, *t = op_type(op);
  int64_t dims[B_MAX_RANK];
  int n = 0;
  for (int i = 0; i < x->rank; i++) {
    int64_t size = int_at(op, "window_dimensions", i, 1);
    if (int_at(op, "padding", 2 * i, 0) || int_at(op, "padding", 2 * i + 1, 0) ||
        int_at(op, "base_dilations", i, 1) != 1)
      return NULL;
    if (size == 1 && t->dims[i] == x->dims[i]) continue;
    if (size != x->dims[i] || t->dims[i] != 1) return NULL;
    dims[n++] = i;
  }
  return n ? b_reshape(b, b_reduce(b, kind, op->operands[0], n, dims), t->rank, t->dims) : NULL;
}

/* NULL: it is something else. */
static Value *repeated(Build *b, const Op *op) {
  const Op *pad = op->operands[0]->def;
  if (!pad || pad->kind != OP_PAD || !is_number(pad->operands[1], 0)) return NULL;
  Value *y = pad->operands[0];
  const Type *from = y->type, *t = op_type(op);
  int64_t spread[2 * B_MAX_RANK], joined[B_MAX_RANK], low[B_MAX_RANK], high[B_MAX_RANK];
  int map[B_MAX_RANK], n = 0;
  bool padded = false, any = false;
  if (from->rank > B_MAX_RANK || type_count(from) == 0) return NULL;
  for (int i = 0; i < from->rank; i++) {
    int64_t k = int_at(op, "window_dimensions", i, 1),
            apart = int_at(pad, "interior_padding", i, 0) + 1;
    if (int_at(op, "window_strides", i, 1) != 1 || int_at(op, "base_dilations", i, 1) != 1 ||
        int_at(op, "window_dilations", i, 1) != 1 || (apart != k && from->dims[i] != 1))
      return NULL;
    if (int_at(pad, "edge_padding_low", i, 0) < 0 || int_at(pad, "edge_padding_high", i, 0) < 0)
      return NULL;
    low[i] = int_at(pad, "edge_padding_low", i, 0) + int_at(op, "padding", 2 * i, 0) - (k - 1);
    high[i] =
        int_at(pad, "edge_padding_high", i, 0) + int_at(op, "padding", 2 * i + 1, 0) - (k - 1);
    padded |= low[i] || high[i];
    any |= k > 1;
    joined[i] = from->dims[i] * k;
    map[i] = n;
    spread[n++] = from->dims[i];
    if (k > 1) spread[n++] = k;
  }
  if (!any || n > B_MAX_RANK) return NULL;
  Value *x = b_reshape(b, b_bcast(b, y, n, spread, map), t->rank, joined);
  return padded ? b_pad(b, x, pad->operands[1], low, high, NULL) : x;
}

static Value *rewritten(Build *b, const Op *op) {
  const Type *x = op->operands[0]->type;
  OpKind kind = combines(op);
  if (!type_is_static(x) || x->quant || type_count(x) == 0 || type_count(op_type(op)) == 0 ||
      !neutral(op->operands[op->n_operands - 1], kind))
    return NULL;
  Value *v = whole(b, op, kind);
  return v || kind != OP_ADD ? v : repeated(b, op);
}

Err *pass_pools(Module *m) {
  compile_rewrite(m, OP_REDUCE_WINDOW, rewritten);
  return NULL;
}
