/* pass_sink_concat: arithmetic on columns that were put side by side is done on the columns.
 *
 *   f(concatenate(a, b, c), y) = concatenate(f(a, y[.., 0]), f(b, y[.., 1]), f(c, y[.., 2]))
 *
 * where a, b and c are single columns, [.., 1], or the planes of a stack, [1, ..], and nobody else
 * wants them side by side. Vectors of three, quaternions, boxes and stacked fields are computed with
 * so, and what reads a column back (simplify) finds it: a chain of products and sums of such things
 * becomes one loop over their number, its results woven together at the end.
 */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MOST_OPS 2000 /* that a pass adds */
#define MIN_COLUMN 64
#define MIN_PLANE 4096 /* elements that lie beside each other in one of a stack */

/* The dimension of single columns side by side, the last longer than 1, or of large planes; -1: it is
 * something else. */
static int columns_dim(const Value *v) {
  const Op *op = v->def;
  if (!op || op->kind != OP_CONCATENATE || op->n_operands < 2 || op->n_operands > MAX_PARTS)
    return -1;
  const Type *t = v->type;
  int64_t dim = op_int(op, "dimension", 0);
  if (!type_is_static(t) || t->quant || t->rank > B_MAX_RANK) return -1;
  int64_t beside = 1;
  for (int64_t i = dim + 1; i < t->rank; i++) beside *= t->dims[i];
  if (beside != 1 && beside < MIN_PLANE) return -1;
  for (int k = 0; k < op->n_operands; k++)
    if (op->operands[k]->type->dims[dim] != 1) return -1;
  return type_count(t) / t->dims[dim] >= MIN_COLUMN ? (int)dim : -1;
}

static bool is_arithmetic(const Op *op) {
  if (op_info[op->kind].cls != OC_EWISE || op->n_results != 1 || op->n_regions ||
      op->n_operands > 4)
    return false;
  const Type *t = op_type(op);
  for (int i = 0; i < op->n_operands; i++) {
    const Type *x = op->operands[i]->type;
    if (!type_is_static(x) || x->quant || x->kind != TY_TENSOR || x->rank != t->rank) return false;
    for (int d = 0; d < t->rank; d++)
      if (x->dims[d] != t->dims[d]) return false;
  }
  return type_is_static(t) && !t->quant;
}

/* Column k of an operand. */
static Value *column(Build *b, Value *v, int dim, int k) {
  const Op *op = v->def;
  int64_t dims[B_MAX_RANK];
  if (columns_dim(v) == dim) return op->operands[k];
  for (int i = 0; i < v->type->rank; i++) dims[i] = i == dim ? 1 : v->type->dims[i];
  const void *splat = value_splat(v);
  if (splat) {
    Value *one = b_const(b, b_type(b, v->type->dtype, 0, NULL), splat);
    return b_bcast(b, one, v->type->rank, dims, NULL);
  }
  return b_slice_dim(b, v, dim, k, k + 1);
}

static bool take_apart(Module *m, Op *op, int *budget) {
  int dim = -1;
  if (!is_arithmetic(op)) return false;
  Region *r = op->results[0].region;
  for (int i = 0; i < op->n_operands && dim < 0; i++) {
    int d = columns_dim(op->operands[i]);
    if (d >= 0 && region_uses(r, op->operands[i]) == 1) dim = d;
  }
  int64_t n = dim < 0 ? 0 : op_type(op)->dims[dim];
  if (dim < 0 || *budget < n * (op->n_operands + 1)) return false;
  *budget -= (int)n * (op->n_operands + 1);
  Build b = {.m = m, .r = r, .loc = op->loc};
  Op *end = r->last;
  Value *out[MAX_PARTS], *in[4];
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < op->n_operands; i++) in[i] = column(&b, op->operands[i], dim, k);
    Type *t = b_type_as(&b, in[0]->type, op_type(op)->dtype);
    Op *one = b_op(&b, op->kind, op->n_operands, in, 1, &t, op->n_attrs, op->attrs, 0, NULL);
    out[k] = &one->results[0];
  }
  Value *v = b_concat(&b, (int)n, out, dim);
  compile_move_built(end, op);
  value_replace_all(r->func, &op->results[0], v);
  op_remove(op);
  return true;
}

/* The columns of one and the same value combined: what the reduction's body does, written out. */
static bool fold(Module *m, Op *op) {
  const int64_t *dims;
  if (op->kind != OP_REDUCE || op->n_operands != 2 || op_ints(op, "dimensions", &dims) != 1)
    return false;
  Region *r = op->results[0].region;
  const Region *body = op->regions[0];
  const Op *in = op->operands[0]->def, *x = body->first;
  if (columns_dim(op->operands[0]) != dims[0] || region_uses(r, op->operands[0]) != 1) return false;
  bool binary = x && x->next == body->last && x->n_operands == 2 && x->n_results == 1 &&
                body->last->operands[0] == &x->results[0] && x->operands[0] != x->operands[1] &&
                x->operands[0]->region == body && x->operands[1]->region == body;
  if (!binary || op_type(in)->dtype != op_type(op)->dtype) return false;
  switch (x->kind) {
  case OP_ADD:
  case OP_MULTIPLY:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_AND:
  case OP_OR: break;
  default: return false;
  }
  Build b = {.m = m, .r = r, .loc = op->loc};
  Op *end = r->last;
  const Type *t = op_type(op);
  Value *v = b_bcast(&b, op->operands[1], t->rank, t->dims, NULL);
  for (int k = 0; k < in->n_operands; k++)
    v = b_binary(&b, x->kind, v, b_reshape(&b, in->operands[k], t->rank, t->dims));
  compile_move_built(end, op);
  value_replace_all(r->func, &op->results[0], v);
  op_remove(op);
  return true;
}

static bool walk(Module *m, Region *r, int *budget) {
  bool changed = false;
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    if (op->kind == OP_WHILE || op->kind == OP_CASE || op->kind == OP_IF)
      for (int i = 0; i < op->n_regions; i++) changed |= walk(m, op->regions[i], budget);
    changed |= op->kind == OP_REDUCE ? fold(m, op) : take_apart(m, op, budget);
  }
  return changed;
}

Err *pass_sink_concat(Module *m) {
  int budget = MOST_OPS;
  /* columns that others read are read where they come from: then nobody wants them side by side */
  for (int turn = 0; turn < 2 && walk(m, module_main(m)->body, &budget); turn++)
    TRY(pass_simplify(m));
  return NULL;
}
