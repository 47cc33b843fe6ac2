/* Reverse-mode differentiation: the driver.
 *
 * One forward walk marks the values that depend on `wrt`; one backward walk calls, for each op that
 * has such an operand and whose result has a cotangent, the rule of its kind (grad.def, one
 * table). A rule appends ops that turn the cotangents of the results into contributions to the
 * operands'; contributions are added up. Linear in the number of ops.
 */
#include "compile/grad/grad_priv.h"

#include <stdlib.h>

/* ---- pointer map: open addressing, power-of-two size ---- */

static size_t slot_of(const PtrMap *m, const void *key) {
  size_t mask = (size_t)m->cap - 1,
         i = (size_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15ull >> 20) & mask;
  while (m->keys[i] && m->keys[i] != key) i = (i + 1) & mask;
  return i;
}

void *ptrmap_get(const PtrMap *m, const void *key) {
  if (!m->cap) return NULL;
  size_t i = slot_of(m, key);
  return m->keys[i] ? m->vals[i] : NULL;
}

void ptrmap_set(PtrMap *m, const void *key, void *val) {
  if (2 * (m->n + 1) > m->cap) {
    PtrMap old = *m;
    m->cap = old.cap ? 2 * old.cap : 64;
    m->n = 0;
    m->keys = xcalloc((size_t)m->cap, sizeof *m->keys);
    m->vals = xcalloc((size_t)m->cap, sizeof *m->vals);
    for (int i = 0; i < old.cap; i++)
      if (old.keys[i]) ptrmap_set(m, old.keys[i], old.vals[i]);
    free(old.keys);
    free(old.vals);
  }
  size_t i = slot_of(m, key);
  if (!m->keys[i]) m->n++;
  m->keys[i] = key;
  m->vals[i] = val;
}

void ptrmap_free(PtrMap *m) {
  free(m->keys);
  free(m->vals);
  *m = (PtrMap){0};
}

/* ---- what rules use ---- */

static const GradRule rules[OP_COUNT] = {
#define RULE(op, fn) [OP_##op] = vjp_##fn,
#include "compile/grad/grad.def"
#undef RULE
};

bool grad_active(const Grad *g, const Value *v) { return ptrmap_get(&g->active, v) != NULL; }
Value *grad_cot(Grad *g, Value *v) { return ptrmap_get(&g->cots, v); }
void grad_set(Grad *g, Value *v, Value *cot) { ptrmap_set(&g->cots, v, cot); }

void grad_add(Grad *g, Value *v, Value *cot) {
  if (!grad_active(g, v)) return;
  Value *have = grad_cot(g, v);
  assert(cot->type == v->type);
  grad_set(g, v, have ? b_add(g->b, have, cot) : cot);
}

OpKind grad_combiner(const Region *r) {
  if (r->n_args != 2 || !r->first) return OP_UNKNOWN;
  const Op *op = r->first, *ret = r->last;
  if (ret->kind != OP_RETURN || ret->n_operands != 1) return OP_UNKNOWN;
  if (op == ret) return ret->operands[0] == r->args[1] ? OP_RETURN : OP_UNKNOWN;
  if (op->next != ret || op->n_operands != 2 || ret->operands[0] != &op->results[0])
    return OP_UNKNOWN;
  bool plain = op->operands[0] == r->args[0] && op->operands[1] == r->args[1];
  bool swapped = op->operands[0] == r->args[1] && op->operands[1] == r->args[0];
  return plain || swapped ? op->kind : OP_UNKNOWN;
}

static void remap(Op *op, const PtrMap *map) {
  for (int i = 0; i < op->n_operands; i++) {
    Value *v = ptrmap_get(map, op->operands[i]);
    if (v) op->operands[i] = v;
  }
  for (int i = 0; i < op->n_regions; i++)
    for (Op *in = op->regions[i]->first; in; in = in->next) remap(in, map);
}

void grad_replay(Build *b, const Region *src, Value *const *args, Value **results, PtrMap *map) {
  for (int i = 0; i < src->n_args; i++) ptrmap_set(map, src->args[i], args[i]);
  for (Op *op = src->first; op && op->kind != OP_RETURN; op = op->next) {
    bool given = op->n_results > 0;
    for (int i = 0; i < op->n_results; i++) given &= ptrmap_get(map, &op->results[i]) != NULL;
    if (given) continue; /* the caller supplies its results */
    Op *c = op_clone(b->m, op, NULL);
    remap(c, map);
    op_append(b->r, c);
    for (int i = 0; i < op->n_results; i++) ptrmap_set(map, &op->results[i], &c->results[i]);
  }
  for (int i = 0; i < src->last->n_operands; i++) {
    Value *v = ptrmap_get(map, src->last->operands[i]);
    results[i] = v ? v : src->last->operands[i];
  }
}

/* ---- the two walks ---- */

static bool differentiable(const Value *v) {
  return v->type->kind == TY_TENSOR && dtype_is_float(v->type->dtype) && !v->type->quant;
}

/* Whether op or something in its regions reads an active value. */
static bool reads_active(const Grad *g, const Op *op) {
  for (int i = 0; i < op->n_operands; i++)
    if (grad_active(g, op->operands[i])) return true;
  for (int i = 0; i < op->n_regions; i++)
    for (const Op *in = op->regions[i]->first; in; in = in->next)
      if (reads_active(g, in)) return true;
  return false;
}

static Err *backward(Grad *g, Op *op) {
  bool wanted = false;
  for (int i = 0; i < op->n_results; i++) wanted |= grad_cot(g, &op->results[i]) != NULL;
  if (!wanted || !reads_active(g, op)) return NULL;
  GradRule rule = rules[op->kind];
  if (!rule) return op_err(op, ERR_UNIMPLEMENTED, "no gradient rule for this operation");
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind == TY_TENSOR && !type_is_static(op->results[i].type))
      return op_err(op, ERR_UNIMPLEMENTED, "gradient of a dynamic shape");
  const Loc *outer = g->b->loc;
  g->b->loc = op->loc;
  Err *e = rule(g, op);
  g->b->loc = outer;
  return e;
}

Err *grad_vjp(Build *b, Op *first, int n_out, Value *const *outs, Value *const *cots, int n,
              Value *const *wrt, Value **out) {
  Grad g = {.b = b};
  Err *e = NULL;
  Op *last = b->r->last;
  if (!first) first = b->r->first;
  for (int i = 0; i < n; i++) ptrmap_set(&g.active, wrt[i], wrt[i]);
  for (Op *op = first; op; op = op->next) {
    if (!reads_active(&g, op) || op_attr(op, GRAD_STOP)) continue;
    for (int i = 0; i < op->n_results; i++)
      if (differentiable(&op->results[i])) ptrmap_set(&g.active, &op->results[i], &op->results[i]);
  }
  for (int i = 0; i < n_out; i++)
    if (cots[i]) grad_add(&g, outs[i], cots[i]);
  Op *before_first = first ? first->prev : NULL;
  for (Op *op = last, *prev; op && op != before_first && !e; op = prev) {
    prev = op->prev; /* a rule may replace its op (while) */
    e = backward(&g, op);
  }
  for (int i = 0; i < n && !e; i++) {
    Value *c = grad_cot(&g, wrt[i]);
    out[i] = c ? c : b_full(b, wrt[i]->type, 0);
  }
  ptrmap_free(&g.active);
  ptrmap_free(&g.cots);
  return e;
}

Err *grad_append(Build *b, Value *loss, int n, Value *const *wrt, Value **out) {
  if (!differentiable(loss) || b_rank(loss) != 0)
    return err_new(ERR_INVALID, "a gradient needs a floating-point scalar to differentiate");
  for (int i = 0; i < n; i++)
    if (!differentiable(wrt[i]))
      return err_new(ERR_INVALID, "gradient with respect to value %d, which is not a float tensor",
                     i);
  Value *one = b_scalar(b, b_dtype(loss), 1);
  /* the seed must not be taken for part of the forward ops: harmless, nothing active reaches it */
  return grad_vjp(b, NULL, 1, &loss, &one, n, wrt, out);
}

Err *grad_func(Module *m, Func *f, int n, const int *args, const char *name, Func **out) {
  if (!f->body || f->type->n_results < 1)
    return err_new(ERR_INVALID, "function '%.*s' has no body or no result", STR_ARG(f->name));
  Build b = {0};
  Func *nf = b_func(&b, m, name);
  PtrMap map = {0};
  Value **in = xcalloc((size_t)f->body->n_args + 1, sizeof *in);
  Value **res = xcalloc((size_t)f->type->n_results + (size_t)n + 1, sizeof *res);
  Value **wrt = xcalloc((size_t)n + 1, sizeof *wrt);
  for (int i = 0; i < f->body->n_args; i++) in[i] = b_arg(&b, f->body->args[i]->type);
  grad_replay(&b, f->body, in, res, &map);
  ptrmap_free(&map);
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    if (args[i] < 0 || args[i] >= f->body->n_args)
      e = err_new(ERR_INVALID, "function '%.*s' has no argument %d", STR_ARG(f->name), args[i]);
    else wrt[i] = in[args[i]];
  }
  if (!e) e = grad_append(&b, res[0], n, wrt, res + 1);
  if (!e) b_return(&b, n + 1, res);
  free(in);
  free(res);
  free(wrt);
  if (e) { /* take the half-made function away again */
    m->funcs.n--;
    return e;
  }
  *out = nf;
  return NULL;
}
