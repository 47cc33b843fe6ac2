/* What is written of shardings, on arguments, results and constraints, and what is said of all values once it
 * has spread.
 */
#include "compile/spmd/propagate.h"

#include <stdlib.h>

#include "compile/spmd/propagate_priv.h"

static bool is_tensor(const Value *v) { return v->type->kind == TY_TENSOR; }

/* ---- seeds ---- */

static void seed(Spread *s, Value *v, const Attr *a) {
  if (!a || a->kind != AT_SHARDING || !is_tensor(v) || a->sharding->n_dims != v->type->rank ||
      v->id < 0)
    return;
  const Sharding *sh = a->sharding;
  if (!sh->mesh && !str_eq(sh->mesh_name, s->mesh_name)) return;
  if (sh->n_replicated) s->replicated[v->id] = sh;
  for (int d = 0; d < sh->n_dims; d++) {
    Axes *x = &s->dims[v->id][d];
    if (x->closed || sh->dims[d].n_axes > MAX_AXES) continue;
    x->n = sh->dims[d].n_axes;
    for (int i = 0; i < x->n; i++) x->a[i] = sh->dims[d].axes[i];
    x->closed = !sh->dims[d].open;
  }
}

static void seed_list(Spread *s, Value *const *values, Value *results, int n, const Attr *list) {
  for (int i = 0; list && list->kind == AT_ARRAY && i < n && i < list->n; i++)
    seed(s, values ? values[i] : &results[i], list->items[i]);
}

static Err *seed_op(Op *op, void *arg) {
  Spread *s = arg;
  if (op->kind == OP_SHARDING_CONSTRAINT || op->kind == OP_RESHARD)
    seed(s, &op->results[0], op_attr(op, "sharding"));
  if (op->kind == OP_MANUAL_COMPUTATION) {
    seed_list(s, NULL, op->results, op->n_results, op_attr(op, "out_shardings"));
    spread_seed_manual(s, op);
  } else {
    const Attr *a = op_attr(op, "sdy.sharding");
    if (a && a->kind == AT_ARRAY) seed_list(s, NULL, op->results, op->n_results, a);
    else if (a && op->n_results) seed(s, &op->results[0], a);
  }
  return NULL;
}

/* What wants an operand cut in one way: a constraint, a manual computation; NULL: nothing. */
static const Sharding *asked_of(const Op *op, int k) {
  const Attr *a = NULL;
  if (op->kind == OP_SHARDING_CONSTRAINT || op->kind == OP_RESHARD) a = op_attr(op, "sharding");
  else if (op->kind == OP_MANUAL_COMPUTATION) a = op_attr(op, "in_shardings");
  if (a && a->kind == AT_ARRAY) a = k < a->n ? a->items[k] : NULL;
  return a && a->kind == AT_SHARDING ? a->sharding : NULL;
}

static bool same_dims(const Sharding *x, const Sharding *y) {
  bool same = x->n_dims == y->n_dims;
  for (int d = 0; same && d < x->n_dims; d++) {
    same = x->dims[d].n_axes == y->dims[d].n_axes && x->dims[d].open == y->dims[d].open;
    for (int i = 0; same && i < x->dims[d].n_axes; i++)
      same = str_eq(x->dims[d].axes[i].name, y->dims[d].axes[i].name) &&
             x->dims[d].axes[i].sub_pre == y->dims[d].axes[i].sub_pre;
  }
  return same;
}

typedef struct Asked { /* by value id: what is asked of it; of several things, none */
  Spread *s;
  const Attr **what;
  bool *differ;
} Asked;

static Err *note_asked(Op *op, void *arg) {
  Asked *a = arg;
  for (int k = 0; k < op->n_operands; k++) {
    const Sharding *sh = asked_of(op, k);
    int id = op->operands[k]->id;
    if (!sh || id < 0) continue;
    const Attr *all = op_attr(op, op->kind == OP_MANUAL_COMPUTATION ? "in_shardings" : "sharding");
    const Attr *own = all->kind == AT_ARRAY ? all->items[k] : all;
    if (!a->what[id]) a->what[id] = own;
    else if (!same_dims(a->what[id]->sharding, sh)) a->differ[id] = true;
  }
  return NULL;
}

static bool is_known(const Spread *s, const Value *v) {
  for (int d = 0; d < v->type->rank; d++)
    if (s->dims[v->id][d].n || s->dims[v->id][d].closed) return true;
  return false;
}

/* A value that nothing else is known of is made as the one constraint on it says. What loops take and give is
 * not: that would bind all its rounds. */
static void apply_to(const Asked *a, Value *v) {
  const Attr *what = v->id >= 0 ? a->what[v->id] : NULL;
  if (!what || a->differ[v->id] || !is_tensor(v) || is_known(a->s, v)) return;
  if (a->s->owner[v->id] ||
      (v->def && (v->def->kind == OP_WHILE || v->def->kind == OP_CASE || v->def->kind == OP_IF ||
                  v->def->kind == OP_OPTIMIZATION_BARRIER)))
    return;
  for (int d = 0; d < what->sharding->n_dims; d++)
    if (what->sharding->dims[d].open) return;
  seed(a->s, v, what);
}

static Err *apply_to_operands(Op *op, void *arg) {
  for (int k = 0; k < op->n_operands; k++)
    if (asked_of(op, k)) apply_to(arg, op->operands[k]);
  return NULL;
}

static void apply_constraints(Spread *s, Region *body) {
  Asked a = {s, xcalloc((size_t)s->n_values + 1, sizeof *a.what),
             xcalloc((size_t)s->n_values + 1, sizeof *a.differ)};
  err_free(ir_walk(body, note_asked, &a));
  err_free(ir_walk(body, apply_to_operands, &a));
  free(a.what);
  free(a.differ);
}

static void find_mesh(Spread *s, const Func *f) {
  for (int pass = 0; pass < 2 && !s->mesh; pass++) {
    int n = pass ? f->type->n_results : f->type->n_elems;
    for (int i = 0; i < n && !s->mesh; i++) {
      const Attr *a = pass ? attrs_get(f->res_attrs[i], f->n_res_attrs[i], "sdy.sharding")
                           : attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding");
      if (!a || a->kind != AT_SHARDING || a->sharding->mesh) continue;
      const Mesh *mesh = module_mesh(s->m, a->sharding->mesh_name);
      if (!mesh || mesh->n_axes == 0) continue;
      s->mesh = mesh;
      s->mesh_name = a->sharding->mesh_name;
    }
  }
  /* else the first mesh with axes: constraints and manual computations name it */
  for (int i = 0; i < s->m->meshes.n && !s->mesh; i++)
    if (s->m->meshes.v[i].value->mesh->n_axes) {
      s->mesh = s->m->meshes.v[i].value->mesh;
      s->mesh_name = s->m->meshes.v[i].name;
    }
}

const Mesh *mesh_of_main(Module *m) {
  Spread s = {.m = m};
  const Func *f = module_main(m);
  if (f) find_mesh(&s, f);
  return s.mesh;
}

static Attr *sharding_attr(Spread *s, const Value *v) {
  Arena *a = s->m->arena;
  Sharding *sh = ARENA_NEW(a, Sharding);
  sh->mesh_name = s->mesh_name;
  sh->n_dims = is_tensor(v) ? v->type->rank : 0;
  sh->dims = ARENA_ARRAY(a, DimSharding, sh->n_dims);
  for (int d = 0; d < sh->n_dims; d++) {
    const Axes *x = &s->dims[v->id][d];
    sh->dims[d] = (DimSharding){
        .n_axes = x->n, .axes = arena_dup(a, x->a, sizeof *x->a * (size_t)x->n), .priority = -1};
  }
  Attr *at = ARENA_NEW(a, Attr);
  at->kind = AT_SHARDING;
  at->sharding = sh;
  return at;
}

static Err *note_op(Op *op, void *arg) {
  Spread *s = arg;
  if (!op->n_results || op->results[0].id < 0) return NULL;
  Attr **items = xmalloc(sizeof *items * (size_t)op->n_results);
  for (int i = 0; i < op->n_results; i++) items[i] = sharding_attr(s, &op->results[i]);
  op_set_attr(s->m, op, STR("weft.sharding"), attr_array(s->m, op->n_results, items));
  free(items);
  return NULL;
}

static void note_arguments(Spread *s, Op *op) {
  const Region *body = op->regions[0];
  Attr **items = xmalloc(sizeof *items * (size_t)(body->n_args + 1));
  for (int k = 0; k < body->n_args; k++) items[k] = sharding_attr(s, body->args[k]);
  op_set_attr(s->m, op, STR("weft.arguments"), attr_array(s->m, body->n_args, items));
  free(items);
}

static void alloc_value(Spread *s, const Value *v) {
  if (is_tensor(v)) s->dims[v->id] = xcalloc((size_t)v->type->rank, sizeof(Axes));
}

static void own(Spread *s, const Value *v, const Value *owner) {
  s->owner[v->id] = owner;
  s->dims[v->id] = s->dims[owner->id];
}

/* A loop's arguments have the sharding of its results; what it only hands on is the value from outside, as for
 * XLA, which takes it out of the loop. */
static void own_arguments(Spread *s, const Op *loop) {
  for (int k = 0; k < loop->n_results; k++) {
    const Value *result = &loop->results[k], *owner = result;
    if (spread_is_handed_on(loop, k)) owner = spread_owner(s, loop->operands[k]);
    if (owner != result) own(s, result, owner);
    else alloc_value(s, result);
    for (int i = 0; i < loop->n_regions; i++) own(s, loop->regions[i]->args[k], owner);
  }
}

static void alloc_region(Spread *s, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results && op->kind != OP_WHILE; i++) alloc_value(s, &op->results[i]);
    if (op->kind == OP_WHILE) own_arguments(s, op);
    for (int i = 0; i < op->n_regions; i++) {
      for (int k = 0; k < op->regions[i]->n_args && op->kind != OP_WHILE; k++)
        alloc_value(s, op->regions[i]->args[k]);
      alloc_region(s, op->regions[i]);
    }
  }
}

/* The attributes with a sharding more, in the order of names. */
static void add_sharding(Module *m, NamedAttr **attrs, int *n, Attr *sharding) {
  NamedAttr *grown = ARENA_ARRAY(m->arena, NamedAttr, *n + 1);
  int at = 0;
  while (at < *n && str_cmp((*attrs)[at].name, STR("sdy.sharding")) < 0)
    grown[at] = (*attrs)[at], at++;
  grown[at] = (NamedAttr){STR("sdy.sharding"), sharding};
  for (; at < *n; at++) grown[at + 1] = (*attrs)[at];
  *attrs = grown;
  *n += 1;
}

/* An end's sharding where it had none: a constraint inside may cut unevenly, an end may not. */
static void note_end(Spread *s, const Value *v, NamedAttr **attrs, int *n) {
  if (attrs_get(*attrs, *n, "sdy.sharding")) return;
  for (int d = 0; is_tensor(v) && d < v->type->rank; d++) {
    Axes *x = &s->dims[v->id][d];
    if (v->type->dims[d] < 0 || v->type->dims[d] % spread_parts(s, x)) x->n = 0;
  }
  add_sharding(s->m, attrs, n, sharding_attr(s, v));
}

static void free_spread(Spread *s) {
  for (int i = 0; i < s->n_values; i++)
    if (!s->owner[i]) free(s->dims[i]);
  free(s->dims);
  free(s->replicated);
  free(s->owner);
  vec_free(&s->links);
  vec_free(&s->steps);
  vec_free(&s->members);
  vec_free(&s->groups);
  vec_free(&s->partial);
}

/* Of a result of main only the axes are known of what is returned, which may be cut further. */
static void seed_result(Spread *s, Value *v, const Attr *a) {
  if (!v->def || !is_tensor(v)) return;
  bool closed[64];
  for (int d = 0; d < v->type->rank && d < 64; d++) closed[d] = s->dims[v->id][d].closed;
  seed(s, v, a);
  for (int d = 0; d < v->type->rank && d < 64; d++) s->dims[v->id][d].closed = closed[d];
}

static void propagate(Module *m, bool arguments, bool results, bool all_values) {
  Func *f = module_main(m);
  if (!f || !f->body) return;
  pass_one_mesh(m, mesh_of_main(m));
  Spread s = {.m = m};
  find_mesh(&s, f);
  if (!s.mesh) return;
  spread_split_constants(m, f);
  s.n_values = ir_number(f);
  s.dims = xcalloc((size_t)s.n_values + 1, sizeof *s.dims);
  s.replicated = xcalloc((size_t)s.n_values + 1, sizeof *s.replicated);
  s.owner = xcalloc((size_t)s.n_values + 1, sizeof *s.owner);
  for (int i = 0; i < f->body->n_args; i++) alloc_value(&s, f->body->args[i]);
  alloc_region(&s, f->body);
  Op *ret = f->body->last;
  for (int i = 0; i < f->body->n_args; i++) {
    /* without a sharding it arrives whole on every device, but may be cut there as its readers are */
    seed(&s, f->body->args[i], attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding"));
  }
  err_free(ir_walk(f->body, seed_op, &s));
  apply_constraints(&s, f->body);
  for (int j = 0; j < ret->n_operands; j++)
    seed_result(&s, ret->operands[j],
                attrs_get(f->res_attrs[j], f->n_res_attrs[j], "sdy.sharding"));
  spread_link_region(&s, f->body);
  do spread_flow(&s);
  while (spread_cross(&s));
  for (int i = 0; arguments && i < f->body->n_args; i++)
    note_end(&s, f->body->args[i], &f->arg_attrs[i], &f->n_arg_attrs[i]);
  for (int j = 0; results && j < ret->n_operands; j++)
    note_end(&s, ret->operands[j], &f->res_attrs[j], &f->n_res_attrs[j]);
  if (all_values) err_free(ir_walk(f->body, note_op, &s));
  for (int i = 0; all_values && i < s.partial.n; i++) note_arguments(&s, s.partial.v[i]);
  free_spread(&s);
}

void pass_propagate(Module *m, bool all_values) { propagate(m, false, true, all_values); }
void pass_open_arguments(Module *m) { propagate(m, true, false, false); }
