/* The verifier: structure first (values defined before use, arity, attributes of the right kind,
 * terminators, symbols), then each operation against its own constraints (infer_op), then declared
 * result types against inferred ones.
 *
 * Dominance in linear time: values are put into a hash set when the walk passes their definition
 * and taken out when their region ends; an operand has to be in the set.
 */
#include "ir/infer_priv.h"

#include <math.h>
#include <stdlib.h>

/* ---- functions by name ---- */

typedef struct Symbols {
  Map *funcs;
} Symbols;

const Func *infer_func(Infer *f, Str name) {
  if (f->symbols) return map_get(f->symbols->funcs, name);
  return module_func(f->m, name);
}

/* ---- a set of values ---- */

typedef struct Set {
  const Value **v; /* open addressing; NULL: free, GONE: taken out */
  size_t cap, used;
} Set;

static const Value gone;
#define GONE (&gone)

static size_t slot_of(const Set *s, const Value *v) {
  uint64_t h = (uint64_t)(uintptr_t)v;
  h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
  return (size_t)(h >> 20) & (s->cap - 1);
}

static size_t find(const Set *s, const Value *v) { /* its slot, or cap */
  if (!s->cap) return 0;
  for (size_t i = slot_of(s, v);; i = (i + 1) & (s->cap - 1)) {
    if (s->v[i] == v) return i;
    if (!s->v[i]) return s->cap;
  }
}

static bool has(const Set *s, const Value *v) { return s->cap && find(s, v) < s->cap; }

static void put(Set *s, const Value *v) {
  if ((s->used + 1) * 2 >
      s->cap) { /* values taken out leave their slot in use until the table is rebuilt */
    Set old = *s;
    size_t live = 0;
    for (size_t i = 0; i < old.cap; i++) live += old.v[i] && old.v[i] != GONE;
    s->cap = 64;
    while (s->cap < live * 4) s->cap *= 2;
    s->used = 0;
    s->v = xcalloc(s->cap, sizeof *s->v);
    for (size_t i = 0; i < old.cap; i++)
      if (old.v[i] && old.v[i] != GONE) put(s, old.v[i]);
    free(old.v);
  }
  size_t i = slot_of(s, v);
  while (s->v[i]) i = (i + 1) & (s->cap - 1);
  s->v[i] = v;
  s->used++;
}

static void take_out(Set *s, const Value *v) {
  size_t i = find(s, v);
  if (i < s->cap) s->v[i] = GONE;
}

/* ---- attributes ---- */

static Err *wrong_kind(const Op *op, const AttrSpec *s, const char *want) {
  return op_err(op, ERR_INVALID, "attribute '%.*s' has to be %s", STR_ARG(s->name), want);
}

static bool all_items(const Attr *a, AttrKind k) {
  for (int i = 0; i < a->n; i++)
    if (a->items[i]->kind != k) return false;
  return true;
}

static bool in_choices(Str choices, Str s) {
  for (const char *p = choices.p, *end = p + choices.n; p < end;) {
    const char *bar = memchr(p, '|', (size_t)(end - p));
    if (!bar) bar = end;
    if (str_eq((Str){p, (size_t)(bar - p)}, s)) return true;
    p = bar + 1;
  }
  return false;
}

static Err *check_attr(const Op *op, const AttrSpec *s, const Attr *a) {
  switch (s->kind) {
  case SK_I64:
    return a->kind == AT_INT && a->dtype == DT_I64 ? NULL : wrong_kind(op, s, "a 64-bit integer");
  case SK_I32:
    return a->kind == AT_INT && a->dtype == DT_I32 ? NULL : wrong_kind(op, s, "a 32-bit integer");
  case SK_F32: return a->kind == AT_FLOAT ? NULL : wrong_kind(op, s, "a float");
  case SK_BOOL: return a->kind == AT_BOOL ? NULL : wrong_kind(op, s, "true or false");
  case SK_STR: return a->kind == AT_STRING ? NULL : wrong_kind(op, s, "a string");
  case SK_SYM: return a->kind == AT_SYMBOL ? NULL : wrong_kind(op, s, "a symbol");
  case SK_SYMS:
    return a->kind == AT_ARRAY && all_items(a, AT_SYMBOL) ? NULL
                                                          : wrong_kind(op, s, "a list of symbols");
  case SK_TYPE: return a->kind == AT_TYPE ? NULL : wrong_kind(op, s, "a type");
  case SK_DICT: return a->kind == AT_DICT ? NULL : wrong_kind(op, s, "a dictionary");
  case SK_ENUM:
    if (a->kind == AT_ENUM && in_choices(s->choices, a->s)) return NULL;
    return op_err(op, ERR_INVALID, "attribute '%.*s' has to be one of %.*s", STR_ARG(s->name),
                  STR_ARG(s->choices));
  case SK_INTS:
    return a->kind == AT_INTS && a->dtype == DT_I64 ? NULL
                                                    : wrong_kind(op, s, "a list of integers");
  case SK_BOOLS:
    return a->kind == AT_INTS && a->dtype == DT_I1 ? NULL : wrong_kind(op, s, "a list of booleans");
  case SK_MAT:
    if (a->kind == AT_OPAQUE)
      return op_err(op, ERR_UNIMPLEMENTED, "attribute '%.*s' in this form is not supported",
                    STR_ARG(s->name));
    return a->kind == AT_TENSOR && a->dtype == DT_I64 && !a->tensor->splat
               ? NULL
               : wrong_kind(op, s, "a matrix of integers");
  case SK_DENSE: return a->kind == AT_TENSOR ? NULL : wrong_kind(op, s, "dense<...>");
  case SK_ARRAY: return a->kind == AT_ARRAY ? NULL : wrong_kind(op, s, "a list");
  case SK_ANY: return NULL;
  }
  return NULL;
}

static Err *check_accuracy(const Op *op) {
  const Attr *a = op_attr(op, "result_accuracy");
  if (!a) return NULL;
  const Attr *mode = attrs_get(a->dict, a->n, "mode"), *ulps = attrs_get(a->dict, a->n, "ulps");
  const Attr *atol = attrs_get(a->dict, a->n, "atol"), *rtol = attrs_get(a->dict, a->n, "rtol");
  if (!mode || mode->kind != AT_ENUM) return op_err(op, ERR_INVALID, "result_accuracy has no mode");
  bool zero = (!atol || atol->f == 0) && (!rtol || rtol->f == 0) && (!ulps || ulps->i == 0);
  if ((atol && !(atol->f >= 0)) || (rtol && !(rtol->f >= 0)) || (ulps && ulps->i < 0))
    return op_err(op, ERR_INVALID, "tolerances of result_accuracy cannot be negative");
  if (str_is(mode->s, "TOLERANCE") ? zero : !zero)
    return op_err(op, ERR_INVALID,
                  "result_accuracy gives tolerances in mode TOLERANCE, and only there");
  return NULL;
}

static Err *check_attrs(const Op *op) {
  int n;
  const AttrSpec *s = op_attr_specs(op->kind, &n);
  for (int i = 0, k = 0; i < n; i++) {
    /* columns and attributes are mostly in the same order; start where the last one was found */
    const Attr *a = NULL;
    for (int j = 0; j < op->n_attrs && !a; j++) {
      int at = (k + j) % op->n_attrs;
      if (str_eq(op->attrs[at].name, s[i].name)) a = op->attrs[at].value, k = at;
    }
    if (a) TRY(check_attr(op, &s[i], a));
    else if (s[i].required)
      return op_err(op, ERR_INVALID, "attribute '%.*s' is missing", STR_ARG(s[i].name));
  }
  return check_accuracy(op);
}

/* ---- types ---- */

#define MAX_DIMS 64

static Err *check_type(const Op *op, const Type *t) {
  if (t->kind == TY_FUTURE)
    for (int i = 0; i < t->n_elems; i++)
      if (t->elems[i]->kind != TY_TENSOR && t->elems[i]->kind != TY_TOKEN &&
          t->elems[i]->kind != TY_BUFFER)
        return op_err(op, ERR_INVALID, "a future holds tensors");
  if (t->kind != TY_TENSOR) return NULL;
  if (t->rank > MAX_DIMS)
    return op_err(op, ERR_UNIMPLEMENTED, "tensors of more than %d dimensions are not supported",
                  MAX_DIMS);
  for (int i = 0; t->bounds && i < t->rank; i++) {
    if (t->dims[i] >= 0 && t->bounds[i] >= 0)
      return op_err(op, ERR_INVALID, "a bound is given for dimension %d, which is static", i);
  }
  const Quant *q = t->quant;
  if (!q) return NULL;
  if (q->axis >= t->rank && q->axis >= 0)
    return op_err(op, ERR_INVALID, "quantized along dimension %d, but there are %d", q->axis,
                  t->rank);
  if (q->axis >= 0 && !dim_ok(t->dims[q->axis], q->n))
    return op_err(op, ERR_INVALID, "%d quantization scales for a dimension of %lld", q->n,
                  (long long)t->dims[q->axis]);
  if (q->storage_min >= q->storage_max)
    return op_err(op, ERR_INVALID, "the quantized storage range is empty");
  for (int i = 0; i < q->n; i++) {
    uint64_t bits = float_encode(q->expressed, q->scales[i]);
    if (!(float_decode(q->expressed, bits) > 0) || isinf(float_decode(q->expressed, bits)))
      return op_err(op, ERR_INVALID, "quantization scale %g is not a positive %s", q->scales[i],
                    dtype_name(q->expressed));
    if (q->zero_points[i] < q->storage_min || q->zero_points[i] > q->storage_max)
      return op_err(op, ERR_INVALID, "a zero point is outside of the storage range");
  }
  return NULL;
}

static void print_shape(Buf *b, const Shape *s) {
  if (s->type) {
    type_print(b, s->type);
    return;
  }
  Type t = {
      .kind = TY_TENSOR, .dtype = s->dtype, .rank = s->rank, .dims = s->dims, .quant = s->quant};
  type_print(b, &t);
}

static Err *check_result(const Op *op, int i, const Shape *s) {
  const Type *t = op->results[i].type;
  bool ok;
  if (s->type) {
    ok = types_ok(t, s->type);
  } else {
    Type want = {
        .kind = TY_TENSOR, .dtype = s->dtype, .rank = s->rank, .dims = s->dims, .quant = s->quant};
    ok = t->kind == TY_TENSOR && elems_ok(t, &want) && shapes_ok(t, &want);
    OpClass c = op_info[op->kind].cls;
    if (c == OC_MOVE || c == OC_INDEX || c == OC_SORT)
      ok = ok && (!t->quant || same_scales(t->quant, want.quant));
  }
  if (ok) return NULL;
  Buf want = {0}, have = {0};
  print_shape(&want, s);
  type_print(&have, t);
  Err *e = op_err(op, ERR_INVALID, "result %d is declared as %s, but is %s", i, have.p, want.p);
  buf_free(&want);
  buf_free(&have);
  return e;
}

/* ---- operations and regions ---- */

typedef struct Verify {
  const Module *m;
  const Func *f;
  Symbols symbols;
  Set defined;
  Arena *arena; /* scratch */
} Verify;

static Err *verify_region(Verify *v, const Region *r, int depth);

static Err *own_constraints(Verify *v, const Op *op) {
  if (arena_bytes(v->arena) > (1 << 20)) { /* scratch of many operations */
    arena_free(v->arena);
    v->arena = arena_new();
  }
  Infer f = {.op = op, .arena = v->arena, .m = v->m, .symbols = &v->symbols};
  f.out = ARENA_ARRAY(v->arena, Shape, op->n_results);
  f.chosen = ARENA_ARRAY(v->arena, bool, op->n_results);
  TRY(infer_op(&f));
  for (int i = 0; i < op->n_results; i++)
    if (!f.chosen[i]) TRY(check_result(op, i, &f.out[i]));
  return NULL;
}

static Err *verify_op(Verify *v, const Op *op, int depth) {
  for (int i = 0; i < op->n_operands; i++)
    if (!has(&v->defined, op->operands[i]))
      return op_err(op, ERR_INVALID,
                    "operand %d is used before it is defined, or outside of its region", i);
  for (int i = 0; i < op->n_operands; i++)
    if (!op->operands[i]->def && !op->operands[i]->region->parent) /* a function's argument */
      TRY(check_type(op, op->operands[i]->type));
  for (int i = 0; i < op->n_results; i++) TRY(check_type(op, op->results[i].type));
  if (op->kind != OP_UNKNOWN) {
    TRY(ir_check_arity(op));
    TRY(check_attrs(op));
  }
  for (int i = 0; i < op->n_regions; i++) {
    TRY(verify_region(v, op->regions[i], depth + 1));
    if (op->kind != OP_UNKNOWN &&
        (!op->regions[i]->last || op->regions[i]->last->kind != OP_RETURN))
      return op_err(op, ERR_INVALID, "region %d does not end in stablehlo.return", i);
  }
  if (op->kind == OP_RETURN) {
    if (op->next) return op_err(op, ERR_INVALID, "is not the last operation of its region");
    return NULL;
  }
  if (op->kind != OP_UNKNOWN) TRY(own_constraints(v, op));
  return NULL;
}

static Err *verify_region(Verify *v, const Region *r, int depth) {
  if (depth > IR_MAX_DEPTH)
    return err_new(ERR_INVALID, "regions are nested deeper than %d levels", IR_MAX_DEPTH);
  for (int i = 0; i < r->n_args; i++) {
    put(&v->defined, r->args[i]);
    if (r->parent) TRY(check_type(r->parent, r->args[i]->type));
  }
  for (const Op *op = r->first; op; op = op->next) {
    TRY(verify_op(v, op, depth));
    for (int i = 0; i < op->n_results; i++) put(&v->defined, &op->results[i]);
  }
  for (int i = 0; i < r->n_args; i++) take_out(&v->defined, r->args[i]);
  for (const Op *op = r->first; op; op = op->next)
    for (int i = 0; i < op->n_results; i++) take_out(&v->defined, &op->results[i]);
  return NULL;
}

static Err *verify_func(Verify *v, const Func *f) {
  const Region *r = f->body;
  if (!r) return NULL;
  if (r->n_args != f->type->n_elems)
    return err_new(ERR_INVALID, "the body has %d arguments, the type %d", r->n_args,
                   f->type->n_elems);
  for (int i = 0; i < r->n_args; i++)
    if (r->args[i]->type != f->type->elems[i])
      return err_new(ERR_INVALID, "argument %d has another type in the body", i);
  TRY(verify_region(v, r, 1));
  const Op *ret = r->last;
  if (!ret) return err_new(ERR_INVALID, "the body is empty, without a return");
  if (ret->kind != OP_RETURN)
    return op_err(ret, ERR_INVALID, "the body ends here, without a return");
  if (ret->n_operands != f->type->n_results)
    return op_err(ret, ERR_INVALID, "returns %d values, but the function has %d results",
                  ret->n_operands, f->type->n_results);
  for (int i = 0; i < ret->n_operands; i++) {
    if (types_ok(ret->operands[i]->type, f->type->results[i])) continue;
    Buf want = {0}, have = {0};
    type_print(&want, f->type->results[i]);
    type_print(&have, ret->operands[i]->type);
    Err *e = op_err(ret, ERR_INVALID, "value %d is %s, but the function's result is %s", i, have.p,
                    want.p);
    buf_free(&want);
    buf_free(&have);
    return e;
  }
  return NULL;
}

Err *ir_verify(const Module *m) {
  Verify v = {.m = m, .symbols = {map_new()}, .arena = arena_new()};
  Err *e = NULL;
  for (int i = 0; i < m->funcs.n && !e; i++) {
    Str name = m->funcs.v[i]->name;
    if (map_get(v.symbols.funcs, name))
      e = err_new(ERR_INVALID, "function @%.*s is defined twice", STR_ARG(name));
    map_set(v.symbols.funcs, name, m->funcs.v[i]);
  }
  for (int i = 0; i < m->funcs.n && !e; i++) {
    v.f = m->funcs.v[i];
    e = err_wrap(verify_func(&v, v.f), "in @%.*s", STR_ARG(v.f->name));
  }
  free(v.defined.v);
  map_free(v.symbols.funcs);
  arena_free(v.arena);
  return e;
}
