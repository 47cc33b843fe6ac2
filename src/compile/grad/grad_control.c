/* Gradient rules of calls, branches and loops.
 *
 * call, composite   the body is written out again where the gradient is wanted and
 *                   differentiated there.
 * if, case          a branch of the same choice that computes the taken branch again and
 *                   differentiates it with respect to the values it captures.
 * while             with a known trip count: the loop is replaced by one that also saves, for
 *                   each turn, the states and the results of products that the backward loop
 *                   reads; the backward loop runs the turns in reverse order, computing again
 *                   what is cheap. Which values are read is found by building the backward body
 *                   with placeholders and looking at which survive dead-code removal.
 */
#include "compile/grad/grad_priv.h"

#include <stdlib.h>

typedef VEC(Value *) Values;

Err *vjp_call(Grad *g, Op *op) {
  Build *b = g->b;
  Str name = op_str(op, op->kind == OP_CALL ? "callee" : "decomposition");
  Func *f = module_func(b->m, name);
  if (!f || !f->body)
    return op_err(op, ERR_INVALID, "function '%.*s' is not in the module", STR_ARG(name));
  PtrMap map = {0};
  Value **res = xcalloc((size_t)op->n_results * 2 + (size_t)op->n_operands * 2 + 1, sizeof *res);
  Value **cots = res + op->n_results, **wrt = cots + op->n_results, **out = wrt + op->n_operands;
  Op *first = b_scalar(b, DT_I32, 0)->def; /* marks where the copy begins */
  grad_replay(b, f->body, op->operands, res, &map);
  ptrmap_free(&map);
  int n = 0;
  for (int i = 0; i < op->n_operands; i++) {
    bool seen = !grad_active(g, op->operands[i]);
    for (int j = 0; j < n; j++) seen |= wrt[j] == op->operands[i];
    if (!seen) wrt[n++] = op->operands[i];
  }
  for (int i = 0; i < op->n_results; i++) cots[i] = grad_cot(g, &op->results[i]);
  Err *e = grad_vjp(b, first, op->n_results, res, cots, n, wrt, out);
  for (int i = 0; i < n && !e; i++) grad_add(g, wrt[i], out[i]);
  free(res);
  return e;
}

/* The active values that r's ops read from outside, each once. */
static void captures(const Grad *g, const Region *r, PtrMap *seen, Values *out) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) {
      Value *v = op->operands[i];
      if (!grad_active(g, v) || ptrmap_get(seen, v)) continue;
      ptrmap_set(seen, v, v);
      *vec_push(out) = v;
    }
    for (int i = 0; i < op->n_regions; i++) captures(g, op->regions[i], seen, out);
  }
}

Err *vjp_case(Grad *g, Op *op) {
  Build *b = g->b;
  Values caps = {0};
  PtrMap seen = {0};
  for (int i = 0; i < op->n_regions; i++) captures(g, op->regions[i], &seen, &caps);
  ptrmap_free(&seen);
  Value **res = xcalloc((size_t)op->n_results * 2 + (size_t)caps.n + 1, sizeof *res);
  Value **cots = res + op->n_results, **out = cots + op->n_results;
  Region **regions = xcalloc((size_t)op->n_regions + 1, sizeof *regions);
  Type **types = xcalloc((size_t)caps.n + 1, sizeof *types);
  for (int i = 0; i < caps.n; i++) types[i] = caps.v[i]->type;
  for (int i = 0; i < op->n_results; i++) cots[i] = grad_cot(g, &op->results[i]);
  Err *e = NULL;
  for (int i = 0; i < op->n_regions && !e; i++) {
    Build in = {b->m, region_new(b->m, 0, NULL), b->loc};
    PtrMap map = {0};
    grad_replay(&in, op->regions[i], NULL, res, &map);
    ptrmap_free(&map);
    e = grad_vjp(&in, NULL, op->n_results, res, cots, caps.n, caps.v, out);
    if (!e) b_return(&in, caps.n, out);
    regions[i] = in.r;
  }
  if (!e) {
    Op *c = b_op(b, op->kind, 1, op->operands, caps.n, types, 0, NULL, op->n_regions, regions);
    for (int i = 0; i < caps.n; i++) grad_add(g, caps.v[i], &c->results[i]);
  }
  vec_free(&caps);
  free(res);
  free(regions);
  free(types);
  return e;
}

/* ---- while ----------------------------------------------------------------------------------- */

typedef struct Loop {
  int k;                  /* the counting state */
  int64_t start, step, n; /* its first value, increment, number of turns */
  DType dtype;
} Loop;

static bool constant_int(const Value *v, int64_t *out) {
  if (!v->def || v->def->kind != OP_CONSTANT || v->type->rank != 0 || !dtype_is_int(v->type->dtype))
    return false;
  *out = elem_get_i64(v->type->dtype, op_attr(v->def, "value")->tensor->data);
  return true;
}

/* for (k = start; k < limit; k += step) */
static bool loop_shape(const Op *op, Loop *l) {
  const Region *cond = op->regions[0], *body = op->regions[1];
  const Op *cmp = cond->last->operands[0]->def;
  int64_t limit;
  if (!cmp || cmp->kind != OP_COMPARE || !str_is(op_str(cmp, "comparison_direction"), "LT"))
    return false;
  const Value *k = cmp->operands[0];
  if (k->def || k->region != cond || !constant_int(cmp->operands[1], &limit)) return false;
  l->k = k->index;
  l->dtype = k->type->dtype;
  const Value *arg = body->args[l->k], *next = body->last->operands[l->k];
  if (!next->def || next->def->kind != OP_ADD || !constant_int(op->operands[l->k], &l->start))
    return false;
  Value **in = next->def->operands;
  bool ok = (in[0] == arg && constant_int(in[1], &l->step)) ||
            (in[1] == arg && constant_int(in[0], &l->step));
  if (!ok || l->step < 1) return false;
  l->n = limit > l->start ? (limit - l->start + l->step - 1) / l->step : 0;
  return true;
}

/* A stand-in whose users are found later. */
static Value *placeholder(Build *b, Type *t) {
  Op *op = b_op(b, OP_UNKNOWN, 0, NULL, 1, &t, 0, NULL, 0, NULL);
  op->name = STR("weft.saved");
  return &op->results[0];
}

static void mark_reads(const Op *op, PtrMap *read) {
  for (int i = 0; i < op->n_operands; i++) ptrmap_set(read, op->operands[i], op->operands[i]);
  for (int i = 0; i < op->n_regions; i++)
    for (const Op *in = op->regions[i]->first; in; in = in->next) mark_reads(in, read);
}

/* Removes ops whose results nobody reads; placeholders stay. `read` gets what is read. */
static void sweep(Region *r, PtrMap *read) {
  for (Op *op = r->last, *prev; op; op = prev) {
    prev = op->prev;
    bool keep = op->kind == OP_RETURN || op->kind == OP_UNKNOWN;
    for (int i = 0; i < op->n_results; i++) keep |= ptrmap_get(read, &op->results[i]) != NULL;
    if (keep) mark_reads(op, read);
    else op_remove(op);
  }
}

static void replace_reads(Region *r, Value *from, Value *to) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++)
      if (op->operands[i] == from) op->operands[i] = to;
    for (int i = 0; i < op->n_regions; i++) replace_reads(op->regions[i], from, to);
  }
}

static void move_before(Region *from, Op *at) {
  for (Op *op = from->first, *next; op; op = next) {
    next = op->next;
    op_remove(op);
    op_insert_before(at, op);
  }
}

static Value *int_const(Build *b, const Loop *l, int64_t v) { return b_scalar_i64(b, l->dtype, v); }

/* Start indices (turn, 0, 0, ...) of one turn's part of a buffer. */
static void turn_index(Build *b, const Loop *l, Value *turn, int rank, Value **start) {
  start[0] = turn;
  for (int i = 1; i <= rank; i++) start[i] = int_const(b, l, 0);
}

static void with_turns(const Type *t, int64_t n, int64_t *dims) {
  dims[0] = n;
  for (int i = 0; i < t->rank; i++) dims[i + 1] = t->dims[i];
}

typedef struct Saved { /* something of the forward body that the backward body may read */
  Value *source;       /* a value of the original body: an argument or a product's result */
  Value *stand_in;     /* its placeholder in the backward body */
  Value *buffer;       /* all turns, when it is read */
} Saved;

/* Replaces `op` by a loop that fills the buffers of the entries of `s` marked by read; the old
 * op becomes a barrier that passes the new results on, for holders of its values. */
static void save_forward(Build *b, Op *op, const Loop *l, Saved *s, int n_saved,
                         const PtrMap *read) {
  int n = op->n_operands, m = 0, *which = xcalloc((size_t)n_saved + 1, sizeof *which);
  for (int i = 0; i < n_saved; i++)
    if (ptrmap_get(read, s[i].stand_in)) which[m++] = i;
  if (!m) {
    free(which);
    return;
  }
  Value **in = xcalloc((size_t)(n + m) * 2, sizeof *in), **res = in + n + m;
  Type **types = xcalloc((size_t)(n + m), sizeof *types);
  Build tmp = {b->m, region_new(b->m, 0, NULL), op->loc};
  int64_t dims[B_MAX_RANK];
  for (int i = 0; i < n; i++) in[i] = op->operands[i];
  for (int i = 0; i < m; i++) {
    const Type *t = s[which[i]].source->type;
    with_turns(t, l->n, dims);
    in[n + i] = b_full(&tmp, b_type(b, t->dtype, t->rank + 1, dims), 0);
  }
  for (int i = 0; i < n + m; i++) types[i] = in[i]->type;
  Build cond = {b->m, region_new(b->m, n + m, types), op->loc},
        body = {b->m, region_new(b->m, n + m, types), op->loc};
  PtrMap map = {0};
  Value *go;
  grad_replay(&cond, op->regions[0], cond.r->args, &go, &map);
  b_return(&cond, 1, &go);
  grad_replay(&body, op->regions[1], body.r->args, res, &map);
  Value *turn = body.r->args[l->k];
  if (l->start) turn = b_sub(&body, turn, int_const(&body, l, l->start));
  if (l->step != 1) turn = b_div(&body, turn, int_const(&body, l, l->step));
  for (int i = 0; i < m; i++) {
    Value *v = ptrmap_get(&map, s[which[i]].source), *start[B_MAX_RANK + 1];
    with_turns(v->type, 1, dims);
    turn_index(&body, l, turn, b_rank(v), start);
    res[n + i] = b_dynamic_update(&body, body.r->args[n + i],
                                  b_reshape(&body, v, b_rank(v) + 1, dims), start);
  }
  ptrmap_free(&map);
  b_return(&body, n + m, res);
  Region *regions[] = {cond.r, body.r};
  Op *w = b_op(&tmp, OP_WHILE, n + m, in, n + m, types, op->n_attrs, op->attrs, 2, regions);
  move_before(tmp.r, op);
  for (int i = 0; i < n; i++) replace_reads(op->parent, &op->results[i], &w->results[i]);
  for (int i = 0; i < m; i++) s[which[i]].buffer = &w->results[n + i];
  Op *pass = op_new(b->m, OP_OPTIMIZATION_BARRIER, 0, NULL, 0, NULL, 0, NULL, 0, NULL);
  op->kind = pass->kind;
  for (int i = 0; i < n; i++) op->operands[i] = &w->results[i];
  op->n_regions = op->n_attrs = 0;
  free(in);
  free(types);
  free(which);
}

/* Which states depend on wrt: those that start so, and those that the body makes so. */
static void active_states(const Grad *g, const Op *op, bool *active) {
  Grad in = {0};
  const Region *body = op->regions[1];
  int n = op->n_operands;
  for (int i = 0; i < n; i++) active[i] = grad_active(g, op->operands[i]);
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < n; i++)
      if (active[i]) ptrmap_set(&in.active, body->args[i], body->args[i]);
    for (Op *o = body->first; o; o = o->next) {
      bool hit = false;
      for (int i = 0; i < o->n_operands; i++)
        hit |= grad_active(&in, o->operands[i]) || grad_active(g, o->operands[i]);
      if (!hit && o->n_regions) {
        Values caps = {0};
        PtrMap seen = {0};
        for (int i = 0; i < o->n_regions; i++) {
          captures(&in, o->regions[i], &seen, &caps);
          captures(g, o->regions[i], &seen, &caps);
        }
        hit = caps.n > 0;
        vec_free(&caps);
        ptrmap_free(&seen);
      }
      for (int i = 0; hit && i < o->n_results; i++)
        if (dtype_is_float(o->results[i].type->dtype))
          ptrmap_set(&in.active, &o->results[i], &o->results[i]);
    }
    for (int i = 0; i < n; i++) {
      Value *r = body->last->operands[i];
      if (!active[i] && (grad_active(&in, r) || grad_active(g, r))) active[i] = more = true;
    }
  }
  ptrmap_free(&in.active);
}

/* The loop that runs the turns backwards. Its states: turns done, cotangents of the active states of
 * the original, gradients of the captured values so far. */
typedef struct Backward {
  Grad *g;
  Op *op;
  Loop l;
  const Region *body; /* the original's */
  int n;              /* states of the original */
  bool *active;       /* n */
  int n_active, n_states;
  Values caps;
  Value **init;  /* n_states */
  Type **types;  /* n_states */
  Value **args;  /* n: the original's states in the backward body */
  Build back;    /* the backward body */
  Value *turn;   /* which turn of the original it undoes */
  PtrMap copies; /* value of the original body -> its copy in the backward body */
  VEC(Saved) saved;
} Backward;

static void backward_init(Backward *w) {
  Build *b = w->g->b;
  int k = 0;
  w->init[k++] = int_const(b, &w->l, 0);
  for (int i = 0; i < w->n; i++) {
    if (!w->active[i]) continue;
    Value *ct = grad_cot(w->g, &w->op->results[i]);
    w->init[k++] = ct ? ct : b_full(b, w->op->results[i].type, 0);
  }
  for (int i = 0; i < w->caps.n; i++) {
    Value *have = grad_cot(w->g, w->caps.v[i]);
    w->init[k++] = have ? have : b_full(b, w->caps.v[i]->type, 0);
  }
  for (int i = 0; i < w->n_states; i++) w->types[i] = w->init[i]->type;
}

/* turns done < n */
static Region *backward_condition(const Backward *w) {
  Build *b = w->g->b, cond = {b->m, region_new(b->m, w->n_states, w->types), b->loc};
  Value *go = b_compare(&cond, "LT", cond.r->args[0], int_const(&cond, &w->l, w->l.n));
  b_return(&cond, 1, &go);
  return cond.r;
}

static void stand_in(Backward *w, Value *source, Value *as) {
  *vec_push(&w->saved) = (Saved){source, as, NULL};
}

/* What the backward body knows of the turn: its number, the counting state from it, and stand-ins of
 * all that may have to be saved. */
static void backward_known(Backward *w) {
  Build *b = &w->back;
  const Loop *l = &w->l;
  w->turn = b_sub(b, int_const(b, l, l->n - 1), b->r->args[0]);
  Value *count = w->turn;
  if (l->step != 1) count = b_mul(b, count, int_const(b, l, l->step));
  if (l->start) count = b_add(b, count, int_const(b, l, l->start));
  for (int i = 0; i < w->n; i++) {
    w->args[i] = i == l->k ? count : placeholder(b, w->body->args[i]->type);
    if (i != l->k) stand_in(w, w->body->args[i], w->args[i]);
  }
  if (!w->n_active && !w->caps.n) return;
  for (Op *o = w->body->first; o; o = o->next)
    if (op_info[o->kind].cls == OC_CONTRACT)
      stand_in(w, &o->results[0], placeholder(b, o->results[0].type));
}

/* The body again, and its gradients. Products are computed by real ops first, so that their gradients
 * are found; afterwards those that are only read as values give way to what was saved. */
static Err *backward_body(Backward *w) {
  Build *b = &w->back;
  int n_out = w->n_states - 1, k = 0;
  Value **res = xcalloc((size_t)(w->n + 4 * w->n_states), sizeof *res);
  Value **outs = res + w->n, **cots = outs + n_out, **wrt = cots + n_out, **grads = wrt + n_out;
  grad_replay(b, w->body, w->args, res, &w->copies);
  for (int i = 0; i < w->n; i++) {
    if (!w->active[i]) continue;
    outs[k] = res[i];
    wrt[k++] = w->args[i];
  }
  for (int i = 0; i < w->caps.n; i++) /* the sum so far: a cotangent of the value itself */
    outs[k + i] = wrt[k + i] = w->caps.v[i];
  for (int i = 0; i < n_out; i++) cots[i] = b->r->args[1 + i];
  Err *e = grad_vjp(b, b->r->first, n_out, outs, cots, n_out, wrt, grads + 1);
  for (int i = 0; i < w->saved.n && !e; i++) {
    const Saved *s = &w->saved.v[i];
    if (s->source->def) replace_reads(b->r, ptrmap_get(&w->copies, s->source), s->stand_in);
  }
  if (!e) {
    grads[0] = b_add(b, b->r->args[0], int_const(b, &w->l, 1));
    b_return(b, w->n_states, grads);
  }
  free(res);
  return e;
}

/* What never changes need not be saved. */
static void drop_unchanging(Backward *w) {
  for (int i = 0; i < w->saved.n; i++) {
    const Saved *s = &w->saved.v[i];
    if (s->source->def || w->body->last->operands[s->source->index] != s->source) continue;
    replace_reads(w->back.r, s->stand_in, w->op->operands[s->source->index]);
    op_remove(s->stand_in->def);
    w->saved.v[i--] = w->saved.v[--w->saved.n];
  }
}

/* Stand-ins become parts of what the forward loop saved. */
static void read_saved(Backward *w) {
  Build *b = w->g->b;
  for (int i = 0; i < w->saved.n; i++) {
    const Saved *s = &w->saved.v[i];
    if (s->buffer) {
      Build tmp = {b->m, region_new(b->m, 0, NULL), b->loc};
      const Type *t = s->source->type;
      Value *start[B_MAX_RANK + 1];
      int64_t dims[B_MAX_RANK];
      with_turns(t, 1, dims);
      turn_index(&tmp, &w->l, w->turn, t->rank, start);
      Value *v = b_reshape(&tmp, b_dynamic_slice(&tmp, s->buffer, start, dims), t->rank, t->dims);
      move_before(tmp.r, s->stand_in->def);
      replace_reads(w->back.r, s->stand_in, v);
    }
    op_remove(s->stand_in->def);
  }
}

static Err *backward_run(Backward *w) {
  Build *b = w->g->b;
  backward_init(w);
  Region *regions[] = {backward_condition(w), region_new(b->m, w->n_states, w->types)};
  w->back = (Build){b->m, regions[1], b->loc};
  backward_known(w);
  TRY(backward_body(w));
  PtrMap read = {0};
  ptrmap_set(&read, w->turn, w->turn); /* will index the buffers */
  sweep(w->back.r, &read);
  drop_unchanging(w);
  Value **first = xcalloc((size_t)w->n, sizeof *first); /* save_forward changes the operands */
  for (int i = 0; i < w->n; i++) first[i] = w->op->operands[i];
  save_forward(b, w->op, &w->l, w->saved.v, w->saved.n, &read);
  ptrmap_free(&read);
  read_saved(w);
  Op *loop = b_op(b, OP_WHILE, w->n_states, w->init, w->n_states, w->types, 0, NULL, 2, regions);
  for (int i = 0; i < w->caps.n; i++)
    grad_set(w->g, w->caps.v[i], &loop->results[1 + w->n_active + i]);
  for (int i = 0, k = 1; i < w->n; i++)
    if (w->active[i]) grad_add(w->g, first[i], &loop->results[k++]);
  free(first);
  return NULL;
}

Err *vjp_while(Grad *g, Op *op) {
  Backward w = {.g = g, .op = op, .body = op->regions[1], .n = op->n_operands};
  if (!loop_shape(op, &w.l))
    return err_hint(
        op_err(op, ERR_UNIMPLEMENTED, "gradient of a loop whose number of turns is not known"),
        "count from a constant to a constant limit by a constant step");
  w.active = xcalloc((size_t)w.n, sizeof *w.active);
  active_states(g, op, w.active);
  for (int i = 0; i < w.n; i++) w.n_active += w.active[i];
  PtrMap seen = {0};
  captures(g, w.body, &seen, &w.caps);
  ptrmap_free(&seen);
  w.n_states = 1 + w.n_active + w.caps.n;
  w.init = xcalloc((size_t)w.n_states, sizeof *w.init);
  w.types = xcalloc((size_t)w.n_states, sizeof *w.types);
  w.args = xcalloc((size_t)w.n, sizeof *w.args);
  Err *e = backward_run(&w);
  free(w.active);
  free(w.init);
  free(w.types);
  free(w.args);
  vec_free(&w.caps);
  vec_free(&w.saved);
  ptrmap_free(&w.copies);
  return e;
}
