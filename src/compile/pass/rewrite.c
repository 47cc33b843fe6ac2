/* What passes that put new operations in the place of one have in common. */
#include "compile/pass/pass_priv.h"

void compile_move_built(Op *end, Op *at) {
  while (end->next) {
    Op *op = end->next;
    op_remove(op);
    op_insert_before(at, op);
  }
}

static bool walk(Module *m, Region *r, OpKind kind, Rewrite *rewritten) {
  bool any = false;
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) any |= walk(m, op->regions[i], kind, rewritten);
    if (op->kind != kind) continue;
    Build b = {.m = m, .r = r, .loc = op->loc};
    Op *end = r->last;
    Value *v = rewritten(&b, op);
    if (!v) continue;
    compile_move_built(end, op);
    value_replace_all(r->func, &op->results[0], v);
    op_remove(op);
    any = true;
  }
  return any;
}

bool compile_rewrite(Module *m, OpKind kind, Rewrite *rewritten) {
  return walk(m, module_main(m)->body, kind, rewritten);
}
