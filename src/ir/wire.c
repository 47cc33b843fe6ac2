/* What several places point to (types, attributes, locations, names, constants, values) is written
 * where it comes first and has a number from then on: 0 is none, 1 a new one that follows, i + 2 the
 * one that was number i. */
#include "ir/wire.h"

#include <stdlib.h>

#include "ir/ir_priv.h"

typedef enum Kind { TYPE, ATTR, LOC, NAME, TENSOR, VALUE, OP, KINDS } Kind;

#define MAX_TENSOR ((size_t)64 << 20) /* a larger constant is not kept */

struct IrWire {
  Wire *w;
  Module *m;
  Map *numbers;             /* writing: address -> number + 1 */
  Map *names;               /* writing: the same by the bytes */
  VEC(void *) known[KINDS]; /* reading */
  int n[KINDS];
  int depth;
};

IrWire *ir_wire_new(Wire *w) {
  IrWire *x = xcalloc(1, sizeof *x);
  x->w = w;
  if (wire_reads(w)) return x;
  x->numbers = map_new();
  x->names = map_new();
  return x;
}

void ir_wire_free(IrWire *x) {
  map_free(x->numbers);
  map_free(x->names);
  for (int i = 0; i < KINDS; i++) vec_free(&x->known[i]);
  free(x);
}

/* ---- numbers ---- */

static int number_of(const IrWire *x, Kind k, const void *p) {
  if (k == NAME) return (int)(intptr_t)map_get(x->names, *(const Str *)p);
  return (int)(intptr_t)map_get(x->numbers, (Str){(const char *)&p, sizeof p});
}

/* true: a new one follows; tell() when it is there. NAME: *p is a Str. */
static bool is_new(IrWire *x, Kind k, void **p) {
  int n = 0;
  if (!wire_reads(x->w) && *p) {
    int known = number_of(x, k, *p);
    n = known ? known + 1 : 1;
  }
  wire_small(x->w, &n, 0, x->n[k] + 1);
  if (wire_reads(x->w)) *p = n >= 2 ? x->known[k].v[n - 2] : NULL;
  return n == 1 && !x->w->bad;
}

static void tell(IrWire *x, Kind k, void *p) {
  x->n[k]++;
  if (wire_reads(x->w)) *vec_push(&x->known[k]) = p;
  else if (k == NAME) map_set(x->names, *(const Str *)p, (void *)(intptr_t)x->n[k]);
  else map_set(x->numbers, (Str){(const char *)&p, sizeof p}, (void *)(intptr_t)x->n[k]);
}

/* One that must be known already. */
static void refer(IrWire *x, Kind k, void **p) {
  int n = wire_reads(x->w) ? 0 : number_of(x, k, *p) - 1;
  wire_small(x->w, &n, 0, x->n[k] - 1);
  if (!x->w->bad && wire_reads(x->w)) *p = x->known[k].v[n];
}

/* false: too deep; closed by x->depth--. */
static bool deeper(IrWire *x) {
  if (x->depth < IR_MAX_DEPTH) return ++x->depth;
  x->w->bad = true;
  return false;
}

static void *room(IrWire *x, size_t size, int n) {
  return arena_alloc(x->m->arena, size * (size_t)n);
}
#define ROOM(x, T, n) ((T *)room(x, sizeof(T), n))

/* ---- names, numbers ---- */

static void wire_name(IrWire *x, Str *s) {
  void *p = s->n ? s : NULL;
  if (is_new(x, NAME, &p)) {
    Str *own = wire_reads(x->w) ? ROOM(x, Str, 1) : s;
    wire_str(x->w, x->m->arena, own);
    tell(x, NAME, own);
    p = own;
  }
  if (wire_reads(x->w)) *s = p ? *(Str *)p : (Str){0};
}

static void wire_ints(IrWire *x, int *n, int64_t **v) {
  wire_count(x->w, n, 1);
  if (wire_reads(x->w)) *v = ROOM(x, int64_t, *n);
  for (int i = 0; i < *n; i++) wire_int(x->w, &(*v)[i]);
}

static void wire_dtype(IrWire *x, DType *t) { WIRE_ENUM(x->w, t, DType, DT_COUNT - 1); }

/* ---- types ---- */

static void wire_quant(IrWire *x, const Quant **p) {
  bool there = *p != NULL;
  wire_bool(x->w, &there);
  if (!there) return;
  Quant q = wire_reads(x->w) ? (Quant){0} : **p;
  wire_dtype(x, &q.storage);
  wire_dtype(x, &q.expressed);
  wire_small(x->w, &q.axis, -1, INT32_MAX);
  int n = q.n;
  wire_ints(x, &n, &q.zero_points);
  if (wire_reads(x->w)) q.scales = ROOM(x, double, n);
  q.n = n;
  for (int i = 0; i < n; i++) wire_f64(x->w, &q.scales[i]);
  wire_int(x->w, &q.storage_min);
  wire_int(x->w, &q.storage_max);
  if (wire_reads(x->w)) *p = arena_dup(x->m->arena, &q, sizeof q);
}

static void wire_type(IrWire *x, Type **p);

static void wire_types(IrWire *x, int *n, Type ***v) {
  wire_count(x->w, n, 1);
  if (wire_reads(x->w)) *v = ROOM(x, Type *, *n);
  for (int i = 0; i < *n; i++) {
    wire_type(x, &(*v)[i]);
    x->w->bad |= !(*v)[i];
  }
}

static Type *make_type(Module *m, const Type *t) {
  switch (t->kind) {
  case TY_TENSOR: return type_tensor_full(m, t->dtype, t->rank, t->dims, t->bounds, t->quant);
  case TY_SCALAR: return type_scalar(m, t->dtype, t->quant);
  case TY_BUFFER: return type_buffer(m, t->dtype, t->rank, t->dims);
  case TY_FUNC: return type_func(m, t->n_elems, t->elems, t->n_results, t->results);
  case TY_TOKEN:
  case TY_NONE: return type_simple(m, t->kind);
  case TY_TUPLE:
  case TY_FUTURE:
  case TY_UNRANKED: break;
  }
  return type_of_elems(m, t->kind, t->dtype, t->n_elems, t->elems);
}

static void wire_type(IrWire *x, Type **p) {
  void *known = *p;
  bool fresh = is_new(x, TYPE, &known);
  if (wire_reads(x->w)) *p = known;
  if (!fresh || !deeper(x)) return;
  Type t = wire_reads(x->w) ? (Type){0} : **p;
  WIRE_ENUM(x->w, &t.kind, TypeKind, TY_NONE);
  wire_dtype(x, &t.dtype);
  wire_ints(x, &t.rank, &t.dims);
  int n = t.bounds ? t.rank : 0;
  wire_ints(x, &n, &t.bounds);
  if (!n) t.bounds = NULL;
  x->w->bad |= n && n != t.rank;
  wire_quant(x, &t.quant);
  wire_types(x, &t.n_elems, &t.elems);
  wire_types(x, &t.n_results, &t.results);
  if (wire_reads(x->w) && !x->w->bad) *p = make_type(x->m, &t);
  tell(x, TYPE, *p);
  x->depth--;
}

/* ---- constants ---- */

static void wire_data(IrWire *x, Tensor *t) {
  size_t n = tensor_bytes(t);
  if (wire_reads(x->w)) {
    Str s = wire_view(x->w, n);
    if (n && !x->w->bad) memcpy(t->data, s.p, n);
  } else if (n > MAX_TENSOR) {
    x->w->bad = true;
  } else {
    buf_add(x->w->out, t->data, n);
  }
}

/* Reading: the module's, held by it. */
static Tensor *read_tensor(IrWire *x) {
  Wire *w = x->w;
  DType dtype = DT_INVALID;
  int rank = 0;
  int64_t *dims = NULL, count = 1;
  bool splat = false;
  wire_dtype(x, &dtype);
  wire_ints(x, &rank, &dims);
  wire_bool(w, &splat);
  for (int i = 0; i < rank; i++) w->bad |= dims[i] < 0 || mul_overflows(count, dims[i], &count);
  int64_t bytes = 0;
  w->bad |= dtype_bytes(dtype) == 0 || mul_overflows(count, dtype_bytes(dtype), &bytes) ||
            (!splat && (uint64_t)bytes > w->in.n);
  Tensor *t = NULL;
  Err *e = NULL;
  if (w->bad) return NULL;
  if (splat) {
    char element[16];
    wire_bytes(w, element, (size_t)dtype_bytes(dtype));
    e = tensor_splat(dtype, rank, dims, element, &t);
  } else {
    e = tensor_new(dtype, rank, dims, &t);
    if (!e) wire_data(x, t);
  }
  w->bad |= e != NULL;
  err_free(e);
  if (t) *vec_push(&x->m->tables->tensors) = t;
  return t;
}

static void write_tensor(IrWire *x, Tensor *t) {
  bool splat = t->splat;
  x->w->bad |= t->n_elems > 0 || t->phantom || dtype_bytes(t->dtype) == 0;
  wire_dtype(x, &t->dtype);
  wire_ints(x, &t->rank, &t->dims);
  wire_bool(x->w, &splat);
  if (x->w->bad) return;
  if (splat) wire_bytes(x->w, t->data, tensor_held_bytes(t));
  else wire_data(x, t);
}

static void wire_constant(IrWire *x, Tensor **p) {
  void *known = *p;
  bool fresh = is_new(x, TENSOR, &known);
  if (wire_reads(x->w)) *p = known;
  if (!fresh) return;
  if (wire_reads(x->w)) *p = read_tensor(x);
  else write_tensor(x, *p);
  tell(x, TENSOR, *p);
}

/* ---- attributes, locations ---- */

static void wire_attr(IrWire *x, Attr **p);

static void wire_named(IrWire *x, int *n, NamedAttr **v) {
  wire_count(x->w, n, 2);
  if (wire_reads(x->w)) *v = *n ? ROOM(x, NamedAttr, *n) : NULL;
  for (int i = 0; i < *n; i++) {
    wire_name(x, &(*v)[i].name);
    wire_attr(x, &(*v)[i].value);
    x->w->bad |= !(*v)[i].value;
  }
}

static bool is_type_of(const Type *type, const Tensor *t) {
  bool same = type && type->kind == TY_TENSOR && type->dtype == t->dtype && type->rank == t->rank;
  for (int i = 0; same && i < t->rank; i++) same = type->dims[i] == t->dims[i];
  return same;
}

static void wire_content(IrWire *x, Attr *a) {
  switch (a->kind) {
  case AT_TYPE: x->w->bad |= !a->type; break;
  case AT_INTS: wire_ints(x, &a->n, &a->ints); break;
  case AT_TENSOR:
    wire_constant(x, &a->tensor);
    x->w->bad |= !a->tensor || !is_type_of(a->type, a->tensor);
    break;
  case AT_ARRAY:
    wire_count(x->w, &a->n, 1);
    if (wire_reads(x->w)) a->items = ROOM(x, Attr *, a->n);
    for (int i = 0; i < a->n; i++) {
      wire_attr(x, &a->items[i]);
      x->w->bad |= !a->items[i];
    }
    break;
  case AT_DICT: wire_named(x, &a->n, &a->dict); break;
  case AT_MESH:
  case AT_SHARDING: x->w->bad = true; break;
  default: break;
  }
}

static void wire_attr(IrWire *x, Attr **p) {
  void *known = *p;
  bool fresh = is_new(x, ATTR, &known);
  if (wire_reads(x->w)) *p = known;
  if (!fresh || !deeper(x)) return;
  if (wire_reads(x->w)) *p = ROOM(x, Attr, 1);
  Attr *a = *p;
  WIRE_ENUM(x->w, &a->kind, AttrKind, AT_OPAQUE);
  wire_dtype(x, &a->dtype);
  wire_type(x, &a->type);
  wire_int(x->w, &a->i);
  wire_f64(x->w, &a->f);
  wire_name(x, &a->s);
  wire_content(x, a);
  tell(x, ATTR, a);
  x->depth--;
}

static void wire_loc(IrWire *x, const Loc **p) {
  void *known = (void *)(uintptr_t)*p;
  bool fresh = is_new(x, LOC, &known);
  if (wire_reads(x->w)) *p = known;
  if (!fresh || !deeper(x)) return;
  Loc *l = wire_reads(x->w) ? ROOM(x, Loc, 1) : (Loc *)(uintptr_t)*p;
  WIRE_ENUM(x->w, &l->kind, LocKind, LOC_FUSED);
  wire_name(x, &l->name);
  int *const places[] = {&l->line, &l->col, &l->end_line, &l->end_col};
  for (int i = 0; i < 4; i++) wire_small(x->w, places[i], INT32_MIN, INT32_MAX);
  wire_loc(x, &l->child);
  wire_loc(x, &l->caller);
  wire_count(x->w, &l->n_parts, 1);
  if (wire_reads(x->w)) l->parts = ROOM(x, const Loc *, l->n_parts);
  for (int i = 0; i < l->n_parts; i++) wire_loc(x, &l->parts[i]);
  tell(x, LOC, l);
  if (wire_reads(x->w)) *p = l;
  x->depth--;
}

/* ---- operations ---- */

static void wire_value(IrWire *x, Value *v) {
  wire_type(x, &v->type);
  wire_name(x, &v->name);
  wire_small(x->w, &v->id, -1, INT32_MAX);
  x->w->bad |= !v->type;
  tell(x, VALUE, v);
}

static void wire_region(IrWire *x, Region **p);

static void wire_one_op(IrWire *x, Op **p) {
  if (wire_reads(x->w)) *p = ROOM(x, Op, 1);
  Op *op = *p;
  WIRE_ENUM(x->w, &op->kind, OpKind, OP_COUNT - 1);
  wire_name(x, &op->name);
  wire_loc(x, &op->loc);
  wire_small(x->w, &op->line, INT32_MIN, INT32_MAX);
  wire_small(x->w, &op->col, INT32_MIN, INT32_MAX);
  wire_count(x->w, &op->n_operands, 1);
  if (wire_reads(x->w)) op->operands = ROOM(x, Value *, op->n_operands);
  for (int i = 0; i < op->n_operands; i++) refer(x, VALUE, (void **)&op->operands[i]);
  wire_named(x, &op->n_attrs, &op->attrs);
  wire_count(x->w, &op->n_regions, 1);
  if (wire_reads(x->w)) op->regions = ROOM(x, Region *, op->n_regions);
  for (int i = 0; i < op->n_regions && !x->w->bad; i++) {
    wire_region(x, &op->regions[i]);
    if (wire_reads(x->w)) op->regions[i]->parent = op;
  }
  wire_count(x->w, &op->n_results, 3);
  if (wire_reads(x->w)) op->results = ROOM(x, Value, op->n_results);
  for (int i = 0; i < op->n_results; i++) {
    Value *v = &op->results[i];
    if (wire_reads(x->w)) *v = (Value){.def = op, .index = i};
    wire_value(x, v);
  }
  tell(x, OP, op);
}

static void wire_region(IrWire *x, Region **p) {
  if (wire_reads(x->w)) *p = ROOM(x, Region, 1);
  Region *r = *p;
  if (!deeper(x)) return;
  wire_count(x->w, &r->n_args, 3);
  if (wire_reads(x->w)) r->args = ROOM(x, Value *, r->n_args);
  for (int i = 0; i < r->n_args; i++) {
    if (wire_reads(x->w)) {
      r->args[i] = ROOM(x, Value, 1);
      *r->args[i] = (Value){.region = r, .index = i};
    }
    wire_value(x, r->args[i]);
  }
  int n = 0;
  if (!wire_reads(x->w))
    for (const Op *op = r->first; op; op = op->next) n++;
  wire_count(x->w, &n, 8);
  Op *op = r->first;
  for (int i = 0; i < n && !x->w->bad; i++) {
    wire_one_op(x, &op);
    if (wire_reads(x->w)) op_append(r, op);
    else op = op->next;
  }
  x->w->bad |= !r->last; /* every region ends with its terminator */
  x->depth--;
}

/* ---- modules ---- */

static void wire_func(IrWire *x, Func **p, bool bodies) {
  Func *f = *p;
  Str name = f ? f->name : (Str){0};
  Type *type = f ? f->type : NULL;
  wire_name(x, &name);
  wire_type(x, &type);
  x->w->bad |= !type || type->kind != TY_FUNC;
  if (x->w->bad) return;
  if (wire_reads(x->w)) f = *p = func_declare(x->m, name, type);
  wire_bool(x->w, &f->is_private);
  wire_bool(x->w, &f->says_public);
  wire_loc(x, &f->loc);
  wire_named(x, &f->n_attrs, &f->attrs);
  for (int i = 0; i < type->n_elems; i++) wire_named(x, &f->n_arg_attrs[i], &f->arg_attrs[i]);
  for (int i = 0; i < type->n_results; i++) wire_named(x, &f->n_res_attrs[i], &f->res_attrs[i]);
  wire_small(x->w, &f->n_values, 0, INT32_MAX);
  bool body = bodies && f->body;
  wire_bool(x->w, &body);
  if (!body || x->w->bad) return;
  wire_region(x, &f->body);
  if (x->w->bad) return;
  if (wire_reads(x->w)) ir_set_func(f);
  x->w->bad |= f->body->n_args != type->n_elems;
  x->w->bad |= f->body->last && f->body->last->n_operands != type->n_results;
}

void ir_wire_module(IrWire *x, Module **p, bool bodies) {
  if (wire_reads(x->w)) *p = module_new();
  Module *m = x->m = *p;
  if (m->meshes.n) x->w->bad = true;
  wire_name(x, &m->name);
  wire_name(x, &m->file);
  wire_named(x, &m->n_attrs, &m->attrs);
  wire_loc(x, &m->loc);
  int n = m->funcs.n;
  wire_count(x->w, &n, 8);
  for (int i = 0; i < n && !x->w->bad; i++) {
    Func *f = wire_reads(x->w) ? NULL : m->funcs.v[i];
    wire_func(x, &f, bodies);
  }
}

void ir_wire_op(IrWire *x, const Op **op) { refer(x, OP, (void **)(uintptr_t)op); }
void ir_wire_value(IrWire *x, Value **v) { refer(x, VALUE, (void **)v); }
void ir_wire_tensor(IrWire *x, Tensor **t) { refer(x, TENSOR, (void **)t); }
