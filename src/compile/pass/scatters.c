/* pass_scatters: gradients of gathers without the array of zeros that they are written with.
 *
 *   add(scatter_add(0, i, u), x) = scatter_add(x, i, u)
 *
 * saves the zeros and a pass over three arrays: the embedding that is also the output layer. The
 * order of a sum changes. A scatter of one element into each row of zeros, the gradient of the
 * picked logit in a cross entropy, is element-wise,
 *
 *   select(iota = i[row], u[row], 0)
 *
 * and fuses with what is added to it. */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"
#include "ir/build.h"

bool value_is_zeros(const Value *v) {
  const void *p = value_splat(v);
  static const char zero[16] = {0};
  return p && !memcmp(p, zero, (size_t)dtype_bytes(v->type->dtype));
}

bool scatter_adds(const Op *op) {
  if (op->n_operands != 3) return false;
  for (int i = 0; i < 3; i++)
    if (!type_is_static(op->operands[i]->type) || op->operands[i]->type->quant) return false;
  const Region *r = op->regions[0];
  const Op *add = r->first;
  return add && add->kind == OP_ADD && add->next == r->last &&
         r->last->operands[0] == &add->results[0] && add->operands[0] != add->operands[1] &&
         add->operands[0]->region == r && add->operands[1]->region == r && !add->operands[0]->def &&
         !add->operands[1]->def;
}

/* One operand of zeros, updates added up. */
static bool adds_to_zeros(const Op *op) {
  bool adds = op->kind == OP_SEGMENT_SUM || (op->kind == OP_SCATTER && scatter_adds(op));
  return adds && value_is_zeros(op->operands[0]);
}

/* The dimension along which each row of the operand gets one element; -1. */
static int picked_dim(const Op *op) {
  const Type *t = op_type(op), *ids = op->operands[1]->type, *u = op->operands[2]->type;
  if (t->rank < 1 || t->rank > B_MAX_RANK) return -1;
  IndexDims d = b_scatter_dims(op);
  if (d.n_offset || d.n_map != 1 || d.n_batch != t->rank - 1 || t->dims[d.map[0]] > INT32_MAX ||
      dtype_bytes(ids->dtype) < 4)
    return -1;
  int64_t rows = 1, last = -1;
  for (int i = 0; i < d.n_batch; i++) {
    rows *= t->dims[d.operand_batch[i]];
    if (d.operand_batch[i] != i + (i >= d.map[0]) || d.indices_batch[i] <= last) return -1;
    last = d.indices_batch[i];
  }
  return type_count(u) == rows && type_count(ids) == rows ? (int)d.map[0] : -1;
}

static Value *picked(Build *b, const Op *op) {
  int dim = adds_to_zeros(op) ? picked_dim(op) : -1;
  if (dim < 0) return NULL;
  const Type *t = op_type(op);
  int64_t rows[B_MAX_RANK];
  int map[B_MAX_RANK], n = 0;
  for (int i = 0; i < t->rank; i++)
    if (i != dim) rows[n] = t->dims[i], map[n++] = i;
  Value *ids = b_reshape(b, op->operands[1], n, rows), *u = b_reshape(b, op->operands[2], n, rows);
  u = b_add(b, u, b_full(b, u->type, 0)); /* -0 becomes 0 as it does there */
  Type *id_type = b_type_as(b, t, ids->type->dtype);
  Value *here = b_compare(b, "EQ", b_iota(b, id_type, dim), b_bcast(b, ids, t->rank, t->dims, map));
  return b_select(b, here, b_bcast(b, u, t->rank, t->dims, map), b_full(b, op_type(op), 0));
}

static void absorb_add(Op *add) {
  for (int k = 0; k < 2; k++) {
    Op *op = add->operands[k]->def;
    Value *x = add->operands[1 - k];
    Region *r = add->results[0].region;
    if (!op || op->results[0].region != r || !adds_to_zeros(op) ||
        region_uses(r, &op->results[0]) != 1 || x == add->operands[k])
      continue;
    op_remove(op); /* x may be made after it */
    op_insert_before(add, op);
    op->operands[0] = x;
    value_replace_all(r->func, &add->results[0], &op->results[0]);
    op_remove(add);
    return;
  }
}

static void walk(Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) walk(op->regions[i]);
    if (op->kind == OP_ADD) absorb_add(op);
  }
}

Err *pass_scatters(Module *m) {
  compile_rewrite(m, OP_SCATTER, picked);
  walk(module_main(m)->body);
  return NULL;
}
