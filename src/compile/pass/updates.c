/* pass_updates: what is done to one box of an array, as JAX's x.at[1:-1].add(u) writes it, is no scatter,
 * when its place is known:
 *
 *   scatter_add(x, at, u)   =   x + pad(u, -0)                          much of the array
 *                           =   put(x, slice(x, at) + u, at)            less of it
 *   scatter(x, at, u)       =   put(x, u, at)
 *   scatter_add(c, at, u)   =   pad(c + u, c)                           an array of one value
 *
 * The first and the last fuse with what makes u and with what is done to the result; the others are in
 * place, and may be written by who makes u. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

typedef struct Box {
  int64_t start[B_MAX_RANK], limit[B_MAX_RANK], size[B_MAX_RANK], after[B_MAX_RANK];
  int64_t count;
} Box;

/* Where the only window lies; false: there are several, it is not known or partly outside. */
static bool box_of(const Op *op, Box *box) {
  const Type *t = op_type(op), *u = op->operands[2]->type;
  const Tensor *at = value_constant(op->operands[1]);
  IndexDims d = b_scatter_dims(op);
  if (!at || at->count != d.n_map || d.n_batch) return false;
  *box = (Box){.count = 1};
  for (int i = 0, next = 0; i < t->rank; i++) {
    bool inserted = false;
    for (int k = 0; k < d.n_collapsed; k++) inserted |= d.collapsed[k] == i;
    box->size[i] = inserted ? 1 : u->dims[d.offset[next++]];
    for (int k = 0; k < d.n_map; k++)
      if (d.map[k] == i) box->start[i] = elem_get_i64(at->dtype, tensor_at(at, k));
    if (box->start[i] < 0 || box->start[i] > t->dims[i] - box->size[i]) return false;
    box->limit[i] = box->start[i] + box->size[i];
    box->after[i] = t->dims[i] - box->limit[i];
    box->count *= box->size[i];
  }
  return box->count > 0;
}

/* What becomes of an element and its update: OP_UNKNOWN is the update alone. */
static bool combiner(const Op *op, OpKind *kind) {
  const Region *r = op->regions[0];
  const Op *last = r->last, *f = r->first;
  *kind = OP_UNKNOWN;
  if (last->n_operands != 1 || r->n_args != 2) return false;
  if (last->operands[0] == r->args[1]) return true;
  *kind = f->kind;
  return f != last && f->next == last && last->operands[0] == &f->results[0] &&
         op_info[f->kind].cls == OC_EWISE && f->n_operands == 2 && f->n_attrs == 0 &&
         f->operands[0] == r->args[0] && f->operands[1] == r->args[1];
}

/* What changes no element when it is added, subtracted or multiplied; NULL: something else. */
static Value *neutral(Build *b, OpKind kind, DType t) {
  if (!dtype_is_float(t) && !dtype_is_int(t)) return NULL;
  switch (kind) {
  case OP_ADD: return b_scalar(b, t, dtype_is_float(t) ? -0.0 : 0);
  case OP_SUBTRACT: return b_scalar(b, t, 0);
  case OP_MULTIPLY: return b_scalar(b, t, 1);
  default: return NULL;
  }
}

static Value *combined(Build *b, OpKind kind, Value *x, Value *u) {
  return kind == OP_UNKNOWN ? u : b_binary(b, kind, x, u);
}

static Value *rewritten(Build *b, const Op *op) {
  const Type *t = op_type(op);
  if (op->n_operands != 3 || t->rank > B_MAX_RANK) return NULL;
  for (int i = 0; i < 3; i++) {
    const Type *in = op->operands[i]->type;
    if (!type_is_static(in) || in->quant || (i != 1 && in->dtype != t->dtype)) return NULL;
  }
  Box box;
  OpKind kind;
  if (op->regions[0]->args[0]->type->dtype != t->dtype || !combiner(op, &kind) || !box_of(op, &box))
    return NULL;
  Value *x = op->operands[0], *u = b_reshape(b, op->operands[2], t->rank, box.size);
  const void *splat = value_splat(x);
  if (box.count == type_count(t)) return combined(b, kind, x, u);
  if (splat) {
    Value *c = b_const(b, b_type(b, t->dtype, 0, NULL), splat);
    return b_pad(b, combined(b, kind, b_bcast_scalar(b, c, u->type), u), c, box.start, box.after,
                 NULL);
  }
  Value *same = 2 * box.count >= type_count(t) ? neutral(b, kind, t->dtype) : NULL;
  if (same) return b_binary(b, kind, x, b_pad(b, u, same, box.start, box.after, NULL));
  Value *start[B_MAX_RANK];
  for (int i = 0; i < t->rank; i++) start[i] = b_scalar_i64(b, DT_I64, box.start[i]);
  if (kind != OP_UNKNOWN) u = b_binary(b, kind, b_slice(b, x, box.start, box.limit, NULL), u);
  return b_dynamic_update(b, x, u, start);
}

Err *pass_updates(Module *m) {
  compile_rewrite(m, OP_SCATTER, rewritten);
  return NULL;
}
