/* What the rules of pass_simplify change a program with. */
#include "compile/pass/pass_priv.h"

Value *simp_resolve(Simp *s, Value *v) {
  for (;;) {
    Value *r = map_get(s->rep, (Str){(const char *)&v, sizeof v});
    if (!r) return v;
    v = r;
  }
}

void simp_replace(Simp *s, Value *v, Value *by) {
  if (v == by) return;
  map_set(s->rep, (Str){(const char *)&v, sizeof v}, by);
  s->changed = true;
}

Value *simp_op(Simp *s, Op *at, OpKind kind, int n, Value *const *operands, Type *type, int n_attrs,
               const NamedAttr *attrs) {
  Op *op = op_new(s->m, kind, n, operands, 1, &type, n_attrs, attrs, 0, NULL);
  op->loc = at->loc;
  op->line = at->line;
  op->col = at->col;
  op_insert_before(at, op);
  return &op->results[0];
}

NamedAttr simp_ints(Simp *s, const char *name, int n, const int64_t *v) {
  return (NamedAttr){str_from(name), attr_ints(s->m, DT_I64, n, v)};
}

bool simp_done(Simp *s, Op *op, Value *by) {
  simp_replace(s, &op->results[0], by);
  op_remove(op);
  return true;
}

bool simp_single_use(Simp *s, const Value *v) {
  return (intptr_t)map_get(s->uses, (Str){(const char *)&v, sizeof v}) == 1;
}
