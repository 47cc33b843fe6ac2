/* Canonical attributes: ops.def says for each attribute of an op its kind and default; readers hand
 * over what the file says (a dense tensor for a list, a string for a symbol) and get the canonical
 * value, or nothing when it is the default. */
#include "stablehlo/canon.h"

#include <limits.h>
#include <stdlib.h>

static Err *wrong(Str name, const char *want) {
  return err_new(ERR_INVALID, "attribute '%.*s' is not %s", STR_ARG(name), want);
}

static bool int_tensor(const Attr *a) {
  DTypeClass c = dtype_class(a->dtype);
  return a->kind == AT_TENSOR &&
         (c == DC_SINT || c == DC_UINT || c == DC_BOOL || a->dtype == DT_INDEX);
}

static int64_t tensor_int(const Tensor *t, int64_t i) {
  if (t->dtype == DT_INDEX) return *(const int64_t *)tensor_at(t, i);
  return elem_get_i64(t->dtype, tensor_at(t, i));
}

/* A few bytes of a file that stand for a list that nobody means. */
static bool too_long(const Attr *a) {
  return a->kind == AT_TENSOR && a->tensor->splat && a->tensor->count > 1024;
}

static Err *to_ints(Module *m, Str name, Attr *a, DType elem, Attr **out) {
  int64_t n;
  if (a->kind == AT_INTS) {
    if (a->dtype != elem) a = attr_ints(m, elem, a->n, a->ints);
    *out = a;
    return NULL;
  }
  if (int_tensor(a)) n = a->tensor->count;
  else if (a->kind == AT_ARRAY) n = a->n;
  else return wrong(name, "a list of integers");
  if (n > INT_MAX || too_long(a)) return wrong(name, "a list of reasonable length");
  Attr *r = attr_ints(m, elem, 0, NULL);
  r->n = (int)n;
  r->ints = ARENA_ARRAY(m->arena, int64_t, n);
  for (int64_t i = 0; i < n; i++) {
    if (a->kind == AT_TENSOR) {
      r->ints[i] = tensor_int(a->tensor, i);
    } else {
      if (a->items[i]->kind != AT_INT && a->items[i]->kind != AT_BOOL)
        return wrong(name, "a list of integers");
      r->ints[i] = a->items[i]->i;
    }
  }
  *out = r;
  return NULL;
}

static Err *to_matrix(Module *m, Str name, Attr *a, Attr **out) {
  *out = a;
  if (a->kind == AT_INTS) {
    *out = attr_tensor_i64(m, 1, (int64_t[]){a->n}, a->ints);
    return NULL;
  }
  if (a->kind == AT_OPAQUE)
    return NULL; /* replica groups by a mesh that the module lacks: the verifier's to refuse */
  if (!int_tensor(a)) return wrong(name, "a matrix of integers");
  if (too_long(a)) return wrong(name, "a matrix of reasonable size");
  if (a->dtype != DT_I64 || a->tensor->splat) {
    Tensor *t;
    TRY(tensor_new(DT_I64, a->tensor->rank, a->tensor->dims, &t));
    for (int64_t i = 0; i < t->count; i++) ((int64_t *)t->data)[i] = tensor_int(a->tensor, i);
    a = attr_tensor(m, t, NULL);
  }
  *out = a;
  return NULL;
}

/* The same string (which lives in the module) as another kind of attribute. */
static Attr *as_kind(Module *m, const Attr *a, AttrKind kind) {
  Attr *r = arena_dup(m->arena, a, sizeof *a);
  r->kind = kind;
  return r;
}

static Err *to_symbols(Module *m, Str name, Attr *a, Attr **out) {
  if (a->kind != AT_ARRAY) return wrong(name, "a list of symbols");
  Attr *r = attr_array(m, a->n, a->items);
  for (int i = 0; i < a->n; i++) {
    if (a->items[i]->kind == AT_STRING) r->items[i] = as_kind(m, a->items[i], AT_SYMBOL);
    else if (a->items[i]->kind != AT_SYMBOL) return wrong(name, "a list of symbols");
  }
  *out = r;
  return NULL;
}

static bool in_choices(Str choices, Str s) { /* "A|B|C" */
  const char *p = choices.p, *end = choices.p + choices.n;
  while (p < end) {
    const char *bar = memchr(p, '|', (size_t)(end - p));
    const char *stop = bar ? bar : end;
    if (str_eq((Str){p, (size_t)(stop - p)}, s)) return true;
    p = stop + 1;
  }
  return false;
}

/* #stablehlo.result_accuracy as a dictionary: all four parts, each of its kind. */
static Err *check_accuracy(Str name, const Attr *a) {
  const Attr *atol = attrs_get(a->dict, a->n, "atol"), *rtol = attrs_get(a->dict, a->n, "rtol");
  const Attr *ulps = attrs_get(a->dict, a->n, "ulps"), *mode = attrs_get(a->dict, a->n, "mode");
  bool fine = a->n == 4 && atol && atol->kind == AT_FLOAT && rtol && rtol->kind == AT_FLOAT &&
              ulps && ulps->kind == AT_INT && mode && mode->kind == AT_ENUM;
  return fine ? NULL : wrong(name, "an accuracy of atol, rtol, ulps and mode");
}

static Err *convert(Module *m, const AttrSpec *spec, Attr *a, Attr **out) {
  Str name = spec->name;
  *out = a;
  switch (spec->kind) {
  case SK_I64:
  case SK_I32: {
    DType t = spec->kind == SK_I64 ? DT_I64 : DT_I32;
    if (int_tensor(a) && a->tensor->count == 1) *out = attr_int(m, t, tensor_int(a->tensor, 0));
    else if (a->kind != AT_INT) return wrong(name, "an integer");
    else if (a->dtype != t) *out = attr_int(m, t, a->i);
    return NULL;
  }
  case SK_F32:
    if (a->kind != AT_FLOAT) return wrong(name, "a number");
    if (a->dtype != DT_F32) *out = attr_float(m, DT_F32, a->f);
    return NULL;
  case SK_BOOL:
    if (a->kind == AT_UNIT) *out = attr_bool(m, true);
    else if (a->kind != AT_BOOL) return wrong(name, "true or false");
    return NULL;
  case SK_STR: return a->kind == AT_STRING ? NULL : wrong(name, "a string");
  case SK_SYM:
    if (a->kind == AT_STRING) *out = as_kind(m, a, AT_SYMBOL);
    else if (a->kind != AT_SYMBOL) return wrong(name, "a symbol");
    return NULL;
  case SK_SYMS: return to_symbols(m, name, a, out);
  case SK_TYPE: return a->kind == AT_TYPE ? NULL : wrong(name, "a type");
  case SK_DICT:
    if (a->kind != AT_DICT) return wrong(name, "a dictionary");
    return str_is(name, "result_accuracy") ? check_accuracy(name, a) : NULL;
  case SK_ARRAY: return a->kind == AT_ARRAY ? NULL : wrong(name, "a list");
  case SK_DENSE: return a->kind == AT_TENSOR ? NULL : wrong(name, "a dense tensor");
  case SK_INTS: return to_ints(m, name, a, DT_I64, out);
  case SK_BOOLS: return to_ints(m, name, a, DT_I1, out);
  case SK_MAT: return to_matrix(m, name, a, out);
  case SK_ENUM:
    if (a->kind == AT_STRING) *out = a = as_kind(m, a, AT_ENUM);
    if (a->kind != AT_ENUM || !in_choices(spec->choices, a->s))
      return wrong(name, "one of its enumeration");
    return NULL;
  case SK_ANY: return NULL;
  }
  return NULL;
}

Err *canon_attr(Module *m, OpKind kind, Str name, Attr *in, Attr **out) {
  const AttrSpec *spec = kind == OP_UNKNOWN ? NULL : op_attr_spec(kind, name);
  *out = in;
  if (!spec) return NULL;
  if (!spec->required && in->kind == AT_TYPE &&
      in->type->kind == TY_NONE) { /* VHLO's spelling of "absent" */
    *out = NULL;
    return NULL;
  }
  Attr *a;
  TRY(convert(m, spec, in, &a));
  /* a collective's channel type is not stored by VHLO and means nothing */
  if (attr_is_default(spec, a) || (!spec->required && str_is(name, "channel_type"))) a = NULL;
  *out = a;
  return NULL;
}
