/* What passes that put new operations in the place of one have in common. */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"

void compile_move_built(Op *end, Op *at) {
  while (end->next) {
    Op *op = end->next;
    op_remove(op);
    op_insert_before(at, op);
  }
}

/* ---- uses ---- */

static void add_uses(Uses *u, const Region *r, OpKind kind) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) {
      const Op *def = op->operands[i]->def;
      if (kind == OP_COUNT || (def && def->kind == kind))
        *vec_push(&u->all) = (Use){op->operands[i], op, i, u->all.n};
    }
    for (int i = 0; i < op->n_regions; i++) add_uses(u, op->regions[i], kind);
  }
}

static int compare_uses(const void *a, const void *b) {
  const Use *x = a, *y = b;
  if (x->v != y->v) return (uintptr_t)x->v < (uintptr_t)y->v ? -1 : 1;
  return x->at - y->at;
}

Uses uses_of(const Region *r, OpKind kind) {
  Uses u = {0};
  add_uses(&u, r, kind);
  if (u.all.n) qsort(u.all.v, (size_t)u.all.n, sizeof *u.all.v, compare_uses);
  return u;
}

int uses_first(const Uses *u, const Value *v) {
  int lo = 0, hi = u->all.n;
  while (lo < hi) {
    int mid = lo + (hi - lo) / 2;
    if ((uintptr_t)u->all.v[mid].v < (uintptr_t)v) lo = mid + 1;
    else hi = mid;
  }
  return lo < u->all.n && u->all.v[lo].v == v ? lo : u->all.n;
}

/* ---- rewriting ---- */

/* What is built in the place of an operation reads what came before it: results that are still to be
 * replaced have the uses that they had at the beginning. */
static void replace(const Uses *u, const Value *from, Value *to) {
  for (int i = uses_first(u, from); i < u->all.n && u->all.v[i].v == from; i++)
    u->all.v[i].by->operands[u->all.v[i].operand] = to;
}

static bool walk(Module *m, Region *r, OpKind kind, Rewrite *rewritten, const Uses *u) {
  bool any = false;
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) any |= walk(m, op->regions[i], kind, rewritten, u);
    if (op->kind != kind) continue;
    Build b = {.m = m, .r = r, .loc = op->loc};
    Op *end = r->last;
    Value *v = rewritten(&b, op);
    compile_move_built(end, op);
    if (!v) continue;
    replace(u, &op->results[0], v);
    op_remove(op);
    any = true;
  }
  return any;
}

bool compile_rewrite(Module *m, OpKind kind, Rewrite *rewritten) {
  Region *body = module_main(m)->body;
  Uses u = uses_of(body, kind);
  bool any = walk(m, body, kind, rewritten, &u);
  vec_free(&u.all);
  return any;
}
