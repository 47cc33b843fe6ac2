/* Modules, functions, regions, operations: making, linking, copying, numbering, walking. */
#include "ir/ir_priv.h"

#include <stdio.h>
#include <stdlib.h>

const OpInfo op_info[OP_COUNT] = {
    [OP_UNKNOWN] = {"UNKNOWN", "", OC_OTHER, VARIADIC, VARIADIC, VARIADIC, ""},
#define OP(id, fn, name, cls, operands, results, regions, attrs) \
  [OP_##id] = {#id, name, cls, operands, results, regions, attrs},
#include "ir/ops.def"
#undef OP
};

const OpCost op_cost[OP_COUNT] = {
#define OP(...)
#define OP_COST(id, ...) [OP_##id] = {__VA_ARGS__},
#include "ir/ops.def"
#undef OP_COST
#undef OP
};

OpKind op_kind_from_name(Str full_name) {
  static int sorted[OP_COUNT]; /* op kinds by name; filled once, the same whoever fills it */
  static int ready;
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
    int tmp[OP_COUNT];
    for (int i = 0; i < OP_COUNT; i++) {
      int j = i;
      for (; j > 0 && strcmp(op_info[tmp[j - 1]].name, op_info[i].name) > 0; j--)
        tmp[j] = tmp[j - 1];
      tmp[j] = i;
    }
    for (int i = 0; i < OP_COUNT; i++) __atomic_store_n(&sorted[i], tmp[i], __ATOMIC_RELAXED);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
  }
  if (str_is(full_name, "func.return") || str_is(full_name, "sdy.return")) return OP_RETURN;
  int lo = 0, hi = OP_COUNT;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    int c = str_cmp(str_from(op_info[sorted[mid]].name), full_name);
    if (c == 0) return (OpKind)sorted[mid];
    if (c < 0) lo = mid + 1;
    else hi = mid;
  }
  return OP_UNKNOWN;
}

/* ---- module ---- */

Module *module_new(void) {
  Arena *a = arena_new();
  Module *m = ARENA_NEW(a, Module);
  m->arena = a;
  m->tables = ARENA_NEW(a, struct ModuleTables);
  m->tables->types = map_new();
  return m;
}

void module_free(Module *m) {
  if (!m) return;
  for (int i = 0; i < m->tables->tensors.n; i++) tensor_release(m->tables->tensors.v[i]);
  vec_free(&m->tables->tensors);
  map_free(m->tables->types);
  vec_free(&m->funcs);
  vec_free(&m->meshes);
  arena_free(m->arena);
}

Func *module_func(const Module *m, Str name) {
  for (int i = 0; i < m->funcs.n; i++)
    if (str_eq(m->funcs.v[i]->name, name)) return m->funcs.v[i];
  return NULL;
}

Func *module_main(const Module *m) {
  Func *f = module_func(m, STR("main"));
  for (int i = 0; !f && i < m->funcs.n; i++)
    if (!m->funcs.v[i]->is_private && m->funcs.v[i]->body) f = m->funcs.v[i];
  return f;
}

const Mesh *module_mesh(const Module *m, Str name) {
  for (int i = 0; i < m->meshes.n; i++)
    if (str_eq(m->meshes.v[i].name, name)) return m->meshes.v[i].value->mesh;
  return NULL;
}

/* ---- functions and regions ---- */

static void set_region_func(Region *r, Func *f);

static void set_op_func(Op *op, Func *f) {
  for (int i = 0; i < op->n_regions; i++) set_region_func(op->regions[i], f);
}

static void set_region_func(Region *r, Func *f) {
  if (r->func == f) return;
  r->func = f;
  for (Op *op = r->first; op; op = op->next) set_op_func(op, f);
}

void ir_set_func(Func *f) { set_region_func(f->body, f); }

Region *region_new(Module *m, int n_args, Type *const *arg_types) {
  Region *r = ARENA_NEW(m->arena, Region);
  r->n_args = n_args;
  r->args = ARENA_ARRAY(m->arena, Value *, n_args);
  for (int i = 0; i < n_args; i++) {
    Value *v = ARENA_NEW(m->arena, Value);
    *v = (Value){.type = arg_types[i], .region = r, .index = i, .id = -1};
    r->args[i] = v;
  }
  return r;
}

Func *func_declare(Module *m, Str name, Type *func_type) {
  Func *f = ARENA_NEW(m->arena, Func);
  int n_in = func_type->n_elems, n_out = func_type->n_results;
  f->name = arena_str(m->arena, name);
  f->type = func_type;
  f->module = m;
  f->arg_attrs = ARENA_ARRAY(m->arena, NamedAttr *, n_in);
  f->n_arg_attrs = ARENA_ARRAY(m->arena, int, n_in);
  f->res_attrs = ARENA_ARRAY(m->arena, NamedAttr *, n_out);
  f->n_res_attrs = ARENA_ARRAY(m->arena, int, n_out);
  *vec_push(&m->funcs) = f;
  return f;
}

Func *func_new(Module *m, Str name, int n_in, Type *const *in, int n_out, Type *const *out) {
  Func *f = func_declare(m, name, type_func(m, n_in, in, n_out, out));
  f->body = region_new(m, n_in, in);
  f->body->func = f;
  return f;
}

/* ---- operations ---- */

static int by_name(const void *a, const void *b) {
  return str_cmp(((const NamedAttr *)a)->name, ((const NamedAttr *)b)->name);
}

Op *op_new(Module *m, OpKind kind, int n_operands, Value *const *operands, int n_results,
           Type *const *result_types, int n_attrs, const NamedAttr *attrs, int n_regions,
           Region *const *regions) {
  Arena *a = m->arena;
  Op *op = ARENA_NEW(a, Op);
  op->kind = kind;
  op->n_operands = n_operands;
  op->n_results = n_results;
  op->n_attrs = n_attrs;
  op->n_regions = n_regions;
  if (n_operands) op->operands = arena_dup(a, operands, sizeof(Value *) * (size_t)n_operands);
  if (n_regions) op->regions = arena_dup(a, regions, sizeof(Region *) * (size_t)n_regions);
  for (int i = 0; i < n_regions; i++) op->regions[i]->parent = op;
  if (n_results) {
    op->results = ARENA_ARRAY(a, Value, n_results);
    for (int i = 0; i < n_results; i++)
      op->results[i] = (Value){.type = result_types[i], .def = op, .index = i, .id = -1};
  }
  if (n_attrs) {
    op->attrs = arena_dup(a, attrs, sizeof(NamedAttr) * (size_t)n_attrs);
    qsort(op->attrs, (size_t)n_attrs, sizeof *op->attrs, by_name);
  }
  return op;
}

static void adopt(Region *r, Op *op) {
  op->parent = r;
  for (int i = 0; i < op->n_results; i++) op->results[i].region = r;
  if (r->func) set_op_func(op, r->func);
}

void op_append(Region *r, Op *op) {
  op->prev = r->last;
  op->next = NULL;
  if (r->last) r->last->next = op;
  else r->first = op;
  r->last = op;
  adopt(r, op);
}

void op_insert_before(Op *at, Op *op) {
  Region *r = at->parent;
  op->prev = at->prev;
  op->next = at;
  if (at->prev) at->prev->next = op;
  else r->first = op;
  at->prev = op;
  adopt(r, op);
}

void op_remove(Op *op) {
  Region *r = op->parent;
  if (op->prev) op->prev->next = op->next;
  else r->first = op->next;
  if (op->next) op->next->prev = op->prev;
  else r->last = op->prev;
  op->prev = op->next = NULL;
  op->parent = NULL;
}

void op_set_attr(Module *m, Op *op, Str name, Attr *value) {
  int at = 0;
  while (at < op->n_attrs && str_cmp(op->attrs[at].name, name) < 0) at++;
  bool there = at < op->n_attrs && str_eq(op->attrs[at].name, name);
  if (!value) {
    if (!there) return;
    memmove(&op->attrs[at], &op->attrs[at + 1], sizeof *op->attrs * (size_t)(op->n_attrs - at - 1));
    op->n_attrs--;
    return;
  }
  if (there) {
    op->attrs[at].value = value;
    return;
  }
  NamedAttr *grown = ARENA_ARRAY(m->arena, NamedAttr, op->n_attrs + 1);
  if (at) memcpy(grown, op->attrs, sizeof *grown * (size_t)at);
  grown[at] = (NamedAttr){arena_str(m->arena, name), value};
  if (op->n_attrs > at)
    memcpy(grown + at + 1, op->attrs + at, sizeof *grown * (size_t)(op->n_attrs - at));
  op->attrs = grown;
  op->n_attrs++;
}

void value_replace_all(Func *f, Value *from, Value *to);

static void replace_in(Region *r, Value *from, Value *to) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++)
      if (op->operands[i] == from) op->operands[i] = to;
    for (int i = 0; i < op->n_regions; i++) replace_in(op->regions[i], from, to);
  }
}

void value_replace_all(Func *f, Value *from, Value *to) { replace_in(f->body, from, to); }

/* ---- copying ---- */

/* Old values to new ones, by address. Within one module types and attributes are shared; into
 * another they are copied. */
typedef struct Copy {
  Module *to;
  bool foreign;
  Map *values;
  Value **by_id; /* or NULL */
  Map *types, *attrs;
} Copy;

static Str ptr_key(const void *const *p) { return (Str){(const char *)p, sizeof *p}; }

static Type *copy_type(Copy *c, Type *t) {
  if (!t || !c->foreign) return t;
  Type *done = map_get(c->types, ptr_key((const void *const *)&t));
  if (done) return done;
  Module *m = c->to;
  Type **elems = xmalloc(sizeof *elems * (size_t)(t->n_elems + t->n_results + 1));
  for (int i = 0; i < t->n_elems; i++) elems[i] = copy_type(c, t->elems[i]);
  for (int i = 0; i < t->n_results; i++) elems[t->n_elems + i] = copy_type(c, t->results[i]);
  switch (t->kind) {
  case TY_TENSOR:
    done = type_tensor_full(m, t->dtype, t->rank, t->dims, t->bounds, t->quant);
    break;
  case TY_SCALAR: done = type_scalar(m, t->dtype, t->quant); break;
  case TY_BUFFER: done = type_buffer(m, t->dtype, t->rank, t->dims); break;
  case TY_FUNC: done = type_func(m, t->n_elems, elems, t->n_results, elems + t->n_elems); break;
  case TY_TOKEN:
  case TY_NONE: done = type_simple(m, t->kind); break;
  case TY_TUPLE:
  case TY_FUTURE:
  case TY_UNRANKED: done = type_of_elems(m, t->kind, t->dtype, t->n_elems, elems); break;
  }
  free(elems);
  map_set(c->types, ptr_key((const void *const *)&t), done);
  return done;
}

static Str copy_str(Copy *c, Str s) { return s.p ? arena_str(c->to->arena, s) : s; }
static NamedAttr *copy_attrs(Copy *c, const NamedAttr *v, int n);

static AxisRef *copy_axes(Copy *c, const AxisRef *v, int n) {
  AxisRef *r = arena_dup(c->to->arena, v, sizeof *v * (size_t)n);
  for (int i = 0; i < n; i++) r[i].name = copy_str(c, v[i].name);
  return r;
}

static Mesh *copy_mesh(Copy *c, const Mesh *s) {
  if (!s) return NULL;
  Mesh *d = arena_dup(c->to->arena, s, sizeof *s);
  d->axes = arena_dup(c->to->arena, s->axes, sizeof *s->axes * (size_t)s->n_axes);
  for (int i = 0; i < s->n_axes; i++) d->axes[i].name = copy_str(c, s->axes[i].name);
  d->ids = arena_dup(c->to->arena, s->ids, sizeof *s->ids * (size_t)s->n_ids);
  return d;
}

static Sharding *copy_sharding(Copy *c, const Sharding *s) {
  Sharding *d = arena_dup(c->to->arena, s, sizeof *s);
  d->mesh_name = copy_str(c, s->mesh_name);
  d->mesh = copy_mesh(c, s->mesh);
  d->dims = arena_dup(c->to->arena, s->dims, sizeof *s->dims * (size_t)s->n_dims);
  for (int i = 0; i < s->n_dims; i++)
    d->dims[i].axes = copy_axes(c, s->dims[i].axes, s->dims[i].n_axes);
  d->replicated = copy_axes(c, s->replicated, s->n_replicated);
  d->unreduced = copy_axes(c, s->unreduced, s->n_unreduced);
  return d;
}

static Attr *copy_attr(Copy *c, Attr *a) {
  if (!a || !c->foreign) return a;
  Attr *done = map_get(c->attrs, ptr_key((const void *const *)&a));
  if (done) return done;
  done = arena_dup(c->to->arena, a, sizeof *a);
  done->type = copy_type(c, a->type);
  done->s = copy_str(c, a->s);
  switch (a->kind) {
  case AT_INTS:
    done->ints = arena_dup(c->to->arena, a->ints, sizeof(int64_t) * (size_t)a->n);
    break;
  case AT_TENSOR: *vec_push(&c->to->tables->tensors) = tensor_retain(a->tensor); break;
  case AT_ARRAY:
    done->items = ARENA_ARRAY(c->to->arena, Attr *, a->n);
    for (int i = 0; i < a->n; i++) done->items[i] = copy_attr(c, a->items[i]);
    break;
  case AT_DICT: done->dict = copy_attrs(c, a->dict, a->n); break;
  case AT_MESH: done->mesh = copy_mesh(c, a->mesh); break;
  case AT_SHARDING: done->sharding = copy_sharding(c, a->sharding); break;
  default: break;
  }
  map_set(c->attrs, ptr_key((const void *const *)&a), done);
  return done;
}

static NamedAttr *copy_attrs(Copy *c, const NamedAttr *v, int n) {
  if (!n) return NULL;
  NamedAttr *r = arena_dup(c->to->arena, v, sizeof *v * (size_t)n);
  for (int i = 0; c->foreign && i < n; i++)
    r[i] = (NamedAttr){copy_str(c, v[i].name), copy_attr(c, v[i].value)};
  return r;
}

static const Loc *copy_loc(Copy *c, const Loc *l) {
  if (!l || !c->foreign) return l;
  Loc *done = map_get(c->attrs, ptr_key((const void *const *)&l));
  if (done) return done;
  done = arena_dup(c->to->arena, l, sizeof *l);
  done->name = copy_str(c, l->name);
  done->child = copy_loc(c, l->child);
  done->caller = copy_loc(c, l->caller);
  if (l->n_parts) done->parts = ARENA_ARRAY(c->to->arena, const Loc *, l->n_parts);
  for (int i = 0; i < l->n_parts; i++) done->parts[i] = copy_loc(c, l->parts[i]);
  map_set(c->attrs, ptr_key((const void *const *)&l), done);
  return done;
}

static Value *copy_value(Copy *c, Value *v) {
  if (c->by_id && v->id >= 0 && c->by_id[v->id]) return c->by_id[v->id];
  Value *n = map_get(c->values, ptr_key((const void *const *)&v));
  assert(n || !c->foreign);
  return n ? n : v;
}

static Region *copy_region(Copy *c, const Region *r);

static Op *copy_op(Copy *c, const Op *op) {
  Op *n = arena_dup(c->to->arena, op, sizeof *op);
  n->prev = n->next = NULL;
  n->parent = NULL;
  n->name = copy_str(c, op->name);
  n->loc = copy_loc(c, op->loc);
  n->attrs = copy_attrs(c, op->attrs, op->n_attrs);
  if (op->n_operands) n->operands = ARENA_ARRAY(c->to->arena, Value *, op->n_operands);
  for (int i = 0; i < op->n_operands; i++) n->operands[i] = copy_value(c, op->operands[i]);
  if (op->n_results)
    n->results = arena_dup(c->to->arena, op->results, sizeof(Value) * (size_t)op->n_results);
  for (int i = 0; i < op->n_results; i++) {
    Value *old = &op->results[i], *v = &n->results[i];
    v->def = n;
    v->id = -1;
    v->region = NULL;
    v->type = copy_type(c, v->type);
    v->name = c->foreign ? copy_str(c, v->name) : v->name;
    map_set(c->values, ptr_key((const void *const *)&old), v);
  }
  if (op->n_regions) n->regions = ARENA_ARRAY(c->to->arena, Region *, op->n_regions);
  for (int i = 0; i < op->n_regions; i++) {
    n->regions[i] = copy_region(c, op->regions[i]);
    n->regions[i]->parent = n;
  }
  return n;
}

static Region *copy_region(Copy *c, const Region *r) {
  Region *n = ARENA_NEW(c->to->arena, Region);
  n->n_args = r->n_args;
  n->args = ARENA_ARRAY(c->to->arena, Value *, r->n_args);
  for (int i = 0; i < r->n_args; i++) {
    Value *old = r->args[i], *v = arena_dup(c->to->arena, old, sizeof *old);
    v->region = n;
    v->id = -1;
    v->type = copy_type(c, v->type);
    v->name = c->foreign ? copy_str(c, v->name) : v->name;
    n->args[i] = v;
    map_set(c->values, ptr_key((const void *const *)&old), v);
  }
  for (Op *op = r->first; op; op = op->next) op_append(n, copy_op(c, op));
  return n;
}

Op *op_clone(Module *m, const Op *op, Value **map) {
  Copy c = {.to = m, .values = map_new(), .by_id = map};
  Op *n = copy_op(&c, op);
  map_free(c.values);
  return n;
}

Module *module_clone(const Module *m) {
  Module *n = module_new();
  Copy c = {.to = n, .foreign = true, .values = map_new(), .types = map_new(), .attrs = map_new()};
  n->name = copy_str(&c, m->name);
  n->file = copy_str(&c, m->file);
  n->attrs = copy_attrs(&c, m->attrs, m->n_attrs);
  n->n_attrs = m->n_attrs;
  n->loc = copy_loc(&c, m->loc);
  for (int i = 0; i < m->meshes.n; i++)
    *vec_push(&n->meshes) =
        (NamedAttr){copy_str(&c, m->meshes.v[i].name), copy_attr(&c, m->meshes.v[i].value)};
  for (int i = 0; i < m->funcs.n; i++) {
    const Func *f = m->funcs.v[i];
    Func *g = func_declare(n, f->name, copy_type(&c, f->type));
    g->is_private = f->is_private;
    g->says_public = f->says_public;
    g->loc = copy_loc(&c, f->loc);
    g->attrs = copy_attrs(&c, f->attrs, f->n_attrs);
    g->n_attrs = f->n_attrs;
    for (int k = 0; k < f->type->n_elems; k++) {
      g->arg_attrs[k] = copy_attrs(&c, f->arg_attrs[k], f->n_arg_attrs[k]);
      g->n_arg_attrs[k] = f->n_arg_attrs[k];
    }
    for (int k = 0; k < f->type->n_results; k++) {
      g->res_attrs[k] = copy_attrs(&c, f->res_attrs[k], f->n_res_attrs[k]);
      g->n_res_attrs[k] = f->n_res_attrs[k];
    }
    if (f->body) {
      g->body = copy_region(&c, f->body);
      ir_set_func(g);
    }
  }
  map_free(c.values);
  map_free(c.types);
  map_free(c.attrs);
  return n;
}

/* ---- numbering, walking, naming ---- */

static void number_region(Region *r, int *next) {
  for (int i = 0; i < r->n_args; i++) r->args[i]->id = (*next)++;
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) number_region(op->regions[i], next);
    for (int i = 0; i < op->n_results; i++) op->results[i].id = (*next)++;
  }
}

int ir_number(Func *f) {
  int next = 0;
  if (f->body) number_region(f->body, &next);
  f->n_values = next;
  return next;
}

Err *ir_walk(Region *r, Err *(*fn)(Op *op, void *arg), void *arg) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next; /* fn may remove op */
    TRY(fn(op, arg));
    if (op->parent != r) continue;
    for (int i = 0; i < op->n_regions; i++) TRY(ir_walk(op->regions[i], fn, arg));
  }
  return NULL;
}

Str op_full_name(const Op *op) {
  return op->kind == OP_UNKNOWN ? op->name : str_from(op_info[op->kind].name);
}

void op_place(Buf *b, const Op *op) {
  size_t before = b->n;
  if (op->loc) loc_print(b, op->loc);
  if (b->n > before || !op->line) return;
  const Func *f = op->parent ? op->parent->func : NULL;
  Str file = f && f->module && f->module->file.n ? f->module->file : STR("line");
  buf_printf(b, "%.*s:%d:%d", STR_ARG(file), op->line, op->col);
}

Err *op_err(const Op *op, ErrCode code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  Err *e = err_newv(code, fmt, ap);
  va_end(ap);
  Str name = op_full_name(op);
  e = err_wrap(e, "%.*s", STR_ARG(name));
  Buf place = {0};
  op_place(&place, op);
  if (place.n) e = err_place(e, "%s", place.p);
  buf_free(&place);
  return e;
}
