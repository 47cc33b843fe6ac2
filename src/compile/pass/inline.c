/* pass_inline: one function. Calls are replaced by a copy of the callee's ops, callees first, or,
 * where there is no other call, by the ops themselves; a composite becomes the chlo op of its name
 * when weft has one that computes the same, else its decomposition; sdy.named_computation becomes
 * its body, and so does async_start. Values have no use lists, so the walk carries a table of
 * replacements and rewrites operands as it goes. */
#include "compile/pass/pass.h"

#include <stdlib.h>

#define MAX_OPS 4000000 /* nested calls can double the program each time */
#define MAX_DEPTH 10000 /* of calls in calls: the stack is finite */

typedef struct Inliner {
  Module *m;
  Map *state; /* function name -> VISITING or DONE */
  Map *once;  /* names of functions that one op calls, others that more do */
  int64_t made;
  int depth;
} Inliner;

static char visiting, done;

static Err *inline_func(Inliner *in, Func *f, const Op *call);

static Value *resolve(Map *rep, Value *v) {
  for (Value *r; (r = map_get(rep, (Str){(const char *)&v, sizeof v}));) v = r;
  return v;
}

static void replace(Map *rep, Value *v, Value *by) {
  map_set(rep, (Str){(const char *)&v, sizeof v}, by);
}

static int64_t count_ops(const Region *r) {
  int64_t n = 0;
  for (const Op *op = r->first; op; op = op->next) {
    n++;
    for (int i = 0; i < op->n_regions; i++) n += count_ops(op->regions[i]);
  }
  return n;
}

/* Puts copies of the ops of `r` (all but the terminator) before `at`; map: by Value.id of r's
 * function. */
static void paste(Inliner *in, const Region *r, Op *at, Value **map) {
  for (Op *op = r->first; op && op != r->last; op = op->next) {
    Op *copy = op_clone(in->m, op, map);
    for (int i = 0; i < op->n_results; i++) map[op->results[i].id] = &copy->results[i];
    op_insert_before(at, copy);
  }
}

/* A custom call may name functions; then they stay. */
static bool calls_by_name(const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_CUSTOM_CALL && op_attr(op, "called_computations")) return true;
    for (int i = 0; i < op->n_regions; i++)
      if (calls_by_name(op->regions[i])) return true;
  }
  return false;
}

/* Ops of functions that more than one op calls must stay. */
static char one_call, more_calls;

static void count_call(Map *once, Str name) {
  map_set(once, name, map_get(once, name) ? &more_calls : &one_call);
}

static void count_calls(Map *once, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_CALL) count_call(once, op_str(op, "callee"));
    if (op->kind == OP_COMPOSITE) count_call(once, op_str(op, "decomposition"));
    for (int i = 0; i < op->n_regions; i++) count_calls(once, op->regions[i]);
  }
}

/* The ops of the region move before `at`; its terminator stays. */
static void move_before(Region *r, Op *at) {
  for (Op *b = r->first, *next; b && b != r->last; b = next) {
    next = b->next;
    op_remove(b);
    op_insert_before(at, b);
  }
}

/* The callee's ops themselves; the walk goes on with the first of them. */
static void splice(Op *op, Func *callee, Map *rep, Op **next) {
  Region *body = callee->body;
  for (int i = 0; i < op->n_operands; i++) replace(rep, body->args[i], op->operands[i]);
  Op *first = body->first;
  move_before(body, op);
  for (int i = 0; i < op->n_results; i++) replace(rep, &op->results[i], body->last->operands[i]);
  op_remove(op);
  if (first != body->last) *next = first;
}

static Err *inline_call(Inliner *in, Op *op, Func *callee, Map *rep, Op **next) {
  if (!callee || !callee->body)
    return op_err(op, ERR_NOT_FOUND, "calls a function that the module does not have");
  if (callee->body->n_args != op->n_operands)
    return op_err(op, ERR_INVALID, "passes %d arguments to a function of %d", op->n_operands,
                  callee->body->n_args);
  if (map_get(in->once, callee->name) == &one_call &&
      map_get(in->state, callee->name) != &visiting) {
    splice(op, callee, rep, next);
    return NULL;
  }
  TRY(inline_func(in, callee, op));
  in->made += count_ops(callee->body);
  if (in->made > MAX_OPS)
    return op_err(op, ERR_EXHAUSTED, "the program has more than %d operations when inlined",
                  MAX_OPS);
  int n = ir_number(callee);
  Value **map = xcalloc((size_t)n + 1, sizeof *map);
  for (int i = 0; i < op->n_operands; i++) map[callee->body->args[i]->id] = op->operands[i];
  paste(in, callee->body, op, map);
  const Op *ret = region_terminator(callee->body);
  for (int i = 0; i < op->n_results; i++) {
    Value *v = ret->operands[i];
    replace(rep, &op->results[i], map[v->id] ? map[v->id] : v);
  }
  free(map);
  op_remove(op);
  return NULL;
}

/* Composites that are one op of weft's. */
static Op *native_composite(Inliner *in, Op *op) {
  Str name = op_str(op, "name");
  if (!str_starts(name, "chlo.")) return NULL;
  OpKind kind = op_kind_from_name(name);
  if (kind == OP_UNKNOWN) return NULL;
  const OpInfo *info = &op_info[kind];
  if (info->operands != op->n_operands || info->results != op->n_results) return NULL;
  Type *types[4];
  for (int i = 0; i < op->n_results; i++) {
    types[i] = op->results[i].type;
    if (types[i]->kind != TY_TENSOR) return NULL;
  }
  Attr *dict = op_attr(op, "composite_attributes");
  if (kind == OP_CHLO_TOP_K) {
    Attr *k = dict && dict->kind == AT_DICT ? attrs_get(dict->dict, dict->n, "k") : NULL;
    Attr *largest =
        dict && dict->kind == AT_DICT ? attrs_get(dict->dict, dict->n, "largest") : NULL;
    if (!k || k->kind != AT_INT || (largest && largest->kind == AT_BOOL && !largest->i))
      return NULL;
    NamedAttr a = {STR("k"), attr_int(in->m, DT_I64, k->i)};
    return op_new(in->m, kind, 1, op->operands, 2, types, 1, &a, 0, NULL);
  }
  /* Only what the executor computes natively: for the others the decomposition is the faster way.
   */
  bool native = kind == OP_CHLO_ERF || kind == OP_CHLO_SQUARE;
  DType t = types[0]->dtype;
  if (!native || (t != DT_F32 && t != DT_F64 && t != DT_F16 && t != DT_BF16)) return NULL;
  return op_new(in->m, kind, op->n_operands, op->operands, op->n_results, types, 0, NULL, 0, NULL);
}

static Err *inline_region(Inliner *in, Region *r, Map *rep) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_operands; i++) op->operands[i] = resolve(rep, op->operands[i]);
    if (op->kind == OP_CALL) {
      TRY(inline_call(in, op, module_func(in->m, op_str(op, "callee")), rep, &next));
      continue;
    }
    if (op->kind == OP_COMPOSITE) {
      Op *native = native_composite(in, op);
      if (!native) {
        TRY(inline_call(in, op, module_func(in->m, op_str(op, "decomposition")), rep, &next));
        continue;
      }
      native->loc = op->loc;
      op_insert_before(op, native);
      for (int i = 0; i < op->n_results; i++) replace(rep, &op->results[i], &native->results[i]);
      op_remove(op);
      continue;
    }
    if (op->kind == OP_NAMED_COMPUTATION) {
      Region *body = op->regions[0];
      for (int i = 0; i < body->n_args; i++) replace(rep, body->args[i], op->operands[i]);
      TRY(inline_region(in, body, rep));
      move_before(op->regions[0], op);
      for (int i = 0; i < op->n_results; i++)
        replace(rep, &op->results[i], body->last->operands[i]);
      op_remove(op);
      continue;
    }
    for (int i = 0; i < op->n_regions; i++) TRY(inline_region(in, op->regions[i], rep));
  }
  return NULL;
}

static Err *inline_func(Inliner *in, Func *f, const Op *call) {
  void *s = map_get(in->state, f->name);
  if (s == &done) return NULL;
  if (s == &visiting)
    return op_err(call, ERR_INVALID, "function @%.*s calls itself; StableHLO has no recursion",
                  STR_ARG(f->name));
  if (in->depth == MAX_DEPTH)
    return op_err(call, ERR_EXHAUSTED, "calls nested over %d deep", MAX_DEPTH);
  map_set(in->state, f->name, &visiting);
  Map *rep = map_new();
  in->depth++;
  Err *e = inline_region(in, f->body, rep);
  in->depth--;
  map_free(rep);
  map_set(in->state, f->name, &done);
  return e;
}

/* ---- futures: what was started is done where it starts ------------------------------------- */

static bool is_wish(const Op *op) { /* for an order (jax.experimental.control_deps) */
  return op->kind == OP_CUSTOM_CALL && str_is(op_str(op, "call_target_name"), "control_dep");
}

static bool takes_future(const Op *op) {
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->kind == TY_FUTURE) return true;
  return false;
}

/* Nobody but async_done asks for a future: it is not carried by a loop, nor put in a tuple. */
static bool futures_are_plain(const Region *r, int *starts) {
  for (const Op *op = r->first; op; op = op->next) {
    *starts += op->kind == OP_ASYNC_START;
    if (op->kind == OP_ASYNC_DONE) {
      const Op *start = op->operands[0]->def;
      if (!start || start->kind != OP_ASYNC_START) return false;
    } else if (takes_future(op) && !is_wish(op)) {
      return false;
    }
    for (int i = 0; i < op->n_regions; i++)
      if (!futures_are_plain(op->regions[i], starts)) return false;
  }
  return true;
}

/* rep: also from a future to the async_start that was. */
static void settle(Region *r, Map *rep) {
  for (Op *op = r->first, *next; op; op = next) {
    for (int i = 0; i < op->n_operands; i++) op->operands[i] = resolve(rep, op->operands[i]);
    if (op->kind == OP_ASYNC_START) {
      const Region *body = op->regions[0];
      for (int i = 0; i < body->n_args; i++) replace(rep, body->args[i], op->operands[i]);
    }
    for (int i = 0; i < op->n_regions; i++) settle(op->regions[i], rep);
    next = op->next;
    if (op->kind == OP_ASYNC_START) {
      move_before(op->regions[0], op);
      op_remove(op);
    } else if (op->kind == OP_ASYNC_DONE) {
      const Op *end = op->operands[0]->def->regions[0]->last;
      for (int i = 0; i < op->n_results; i++) replace(rep, &op->results[i], end->operands[i]);
      op_remove(op);
    } else if (is_wish(op) && takes_future(op)) {
      op_remove(op);
    }
  }
}

Err *pass_inline(Module *m) {
  Func *main = module_main(m);
  if (!main || !main->body) return err_new(ERR_INVALID, "the program has no main function");
  Inliner in = {.m = m, .state = map_new(), .once = map_new()};
  bool all_stay = false;
  for (int i = 0; i < m->funcs.n; i++)
    all_stay |= m->funcs.v[i]->body && calls_by_name(m->funcs.v[i]->body);
  for (int i = 0; i < m->funcs.n && !all_stay; i++)
    if (m->funcs.v[i]->body) count_calls(in.once, m->funcs.v[i]->body);
  Err *e = inline_func(&in, main, NULL);
  map_free(in.state);
  map_free(in.once);
  if (e) return e;
  int starts = 0;
  if (futures_are_plain(main->body, &starts) && starts) {
    Map *rep = map_new();
    settle(main->body, rep);
    map_free(rep);
  }
  if (!all_stay) {
    m->funcs.v[0] = main;
    m->funcs.n = 1;
  }
  return NULL;
}
