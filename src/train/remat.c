/* Blocks of a model computed again in the backward pass (jax.checkpoint's way): what the backward
 * pass reads of a block's inside comes from a copy of the block, made from what entered it. An
 * optimization_barrier before the copy keeps compilers from seeing that it is the same. */
#include "train/train_priv.h"

#include <stdlib.h>

typedef struct Remat {
  Net *n;
  Map *inside; /* Value -> Op that defines it, of the block */
  Map *kept;   /* values that ops after the block read going forward: they exist anyway */
  Map *copies; /* Value -> its copy */
  Op *at;      /* copies are made before it: the first reader */
} Remat;

static Str key(Value *const *v) { return (Str){(const char *)v, sizeof *v}; }

static Value *through_barrier(Remat *r, Value *v) {
  if (!v->def && v->type->rank == 0) return v; /* counters */
  if (v->def && v->def->kind == OP_CONSTANT) return v;
  Value *copy = map_get(r->copies, key(&v));
  if (copy) return copy;
  Op *op = op_new(r->n->b.m, OP_OPTIMIZATION_BARRIER, 1, &v, 1, &v->type, 0, NULL, 0, NULL);
  op->loc = r->at->loc;
  op_insert_before(r->at, op);
  map_set(r->copies, key(&v), &op->results[0]);
  return &op->results[0];
}

static Value *copy_of(Remat *r, Value *v) {
  Value *copy = map_get(r->copies, key(&v));
  if (copy) return copy;
  Op *def = map_get(r->inside, key(&v));
  if (!def || map_get(r->kept, key(&v))) return through_barrier(r, v);
  Value **operands = xcalloc((size_t)def->n_operands + 1, sizeof *operands);
  for (int i = 0; i < def->n_operands; i++) operands[i] = copy_of(r, def->operands[i]);
  Op *op = op_clone(r->n->b.m, def, NULL);
  for (int i = 0; i < op->n_operands; i++) op->operands[i] = operands[i];
  free(operands);
  op_insert_before(r->at, op);
  for (int i = 0; i < op->n_results; i++) {
    Value *old = &def->results[i];
    map_set(r->copies, key(&old), &op->results[i]);
  }
  return map_get(r->copies, key(&v));
}

static void again(Net *n, NetBlock block, Op *forward_end) {
  Remat r = {n, map_new(), map_new(), map_new(), NULL};
  Op *first = block.before ? block.before->next : n->b.r->first, *after = block.last->next;
  for (Op *op = first; op != after; op = op->next)
    for (int i = 0; i < op->n_results; i++) {
      Value *v = &op->results[i];
      map_set(r.inside, key(&v), op);
    }
  bool backward = block.last == forward_end;
  for (Op *op = after; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) {
      Value *v = op->operands[i];
      if (!map_get(r.inside, key(&v)) || map_get(r.kept, key(&v))) continue;
      if (!backward) {
        map_set(r.kept, key(&v), v);
        continue;
      }
      if (v->def->kind == OP_CONSTANT) continue;
      if (!r.at) r.at = op;
      op->operands[i] = copy_of(&r, v);
    }
    if (op == forward_end) backward = true;
  }
  map_free(r.inside);
  map_free(r.kept);
  map_free(r.copies);
}

void remat_blocks(Net *n, Op *forward_end) {
  for (int i = 0; i < n->blocks.n; i++)
    if (n->blocks.v[i].last) again(n, n->blocks.v[i], forward_end);
}
