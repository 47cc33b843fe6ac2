/* What is stored is what its readers see: a value of bf16 or f16 that is in memory has the digits of its type
 * for everybody, also for what the same fusion computes of it, and for a fusion that computes it again.
 *
 *   n = p + y; return n, y - (n - p)        what p + y lost, not 0
 *
 * In memory is what a cluster puts out, and what reaches such a value unchanged, moved or picked from others.
 * Other chains of arithmetic keep the digits of f32 up to their end (docs/numerics.md). */
#include "compile/fuse/fuse_priv.h"

static bool picks(OpKind k) {
  return k == OP_SELECT || k == OP_CLAMP || k == OP_MAXIMUM || k == OP_MINIMUM || k == OP_ABS ||
         k == OP_NEGATE;
}

/* Is an element of the result one of the operands' (or its negative)? */
static bool passes_on(const Op *op) {
  if (op->kind != OP_REDUCE) return op_info[op->kind].cls == OC_MOVE || picks(op->kind);
  const Region *r = op->regions[0];
  return picks(r->first->kind) && r->first->next == r->last;
}

bool *fuser_stored(const Fuser *f) {
  bool *stored = xcalloc((size_t)f->n + 1, sizeof *stored);
  for (int id = 0; id < f->clusters.n; id++) {
    const Cluster *c = f->clusters.v[id];
    for (int k = 0; k < c->outs.n; k++) stored[fuser_pos(f, c->outs.v[k]->def)] = true;
  }
  for (int i = f->n - 1; i >= 0; i--) {
    const Op *op = f->info[i].op;
    for (int k = 0; stored[i] && passes_on(op) && k < op->n_operands; k++) {
      const Value *v = op->operands[k];
      int from = v->def && v->region == f->r ? fuser_pos(f, v->def) : -1;
      if (from >= 0) stored[from] = true;
    }
  }
  return stored;
}
