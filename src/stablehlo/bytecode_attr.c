/* Attributes and locations of MLIR bytecode: entries of a table that refer to each other and to
 * types by index in any direction, read when first asked for. A reference to an entry that is being
 * read is a cycle and an error; depth and the size written out as a tree are bounded, since sharing
 * could multiply them without end. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "stablehlo/bytecode_priv.h"

Err *bc_add_weight(const Reader *r, int *weight, int more) {
  if (more > BYTECODE_MAX_WEIGHT - *weight)
    return bc_err(r, NULL, "an attribute or type of absurd size");
  *weight += more;
  return NULL;
}

Attr *bc_str_attr(Reader *r, AttrKind kind, Str s) {
  Attr *a = ARENA_NEW(r->m->arena, Attr);
  a->kind = kind;
  a->s = s;
  return a;
}

/* ---- references ---- */

Err *bc_ref_entry(Reader *r, Entry *e, Cur *c, Entry **out) {
  uint64_t i = cur_varint(c);
  TRY(bc_check(r, c, "attribute reference"));
  TRY(bc_entry(r, i, out));
  return bc_add_weight(r, &e->weight, (*out)->weight);
}

Err *bc_need_attr(Reader *r, Entry *e, Cur *c, Attr **out) {
  Entry *ref;
  TRY(bc_ref_entry(r, e, c, &ref));
  if (!ref->attr) return bc_err(r, c->p, "reference to an entry that is no attribute value");
  *out = ref->attr;
  return NULL;
}

Err *bc_need_kind(Reader *r, Entry *e, Cur *c, AttrKind kind, const char *what, Attr **out) {
  TRY(bc_need_attr(r, e, c, out));
  if ((*out)->kind != kind) return bc_err(r, c->p, "expected %s", what);
  return NULL;
}

Err *bc_need_string(Reader *r, Entry *e, Cur *c, Str *out) {
  Attr *a;
  TRY(bc_need_kind(r, e, c, AT_STRING, "a string", &a));
  *out = a->s;
  return NULL;
}

Err *bc_need_raw(Reader *r, Entry *e, Cur *c, RawKind kind, const char *what, void *out) {
  Entry *ref;
  TRY(bc_ref_entry(r, e, c, &ref));
  if (ref->raw_kind != kind) return bc_err(r, c->p, "expected %s", what);
  memcpy(out, &ref->raw, sizeof ref->raw);
  return NULL;
}

static Err *need_type(Reader *r, Cur *c, Type **out) {
  uint64_t i = cur_varint(c);
  TRY(bc_check(r, c, "type reference"));
  return bc_type(r, i, out);
}

static Err *need_elem(Reader *r, Cur *c, Type **out) {
  TRY(need_type(r, c, out));
  if ((*out)->kind != TY_SCALAR) return bc_err(r, c->p, "expected an element type");
  return NULL;
}

/* ---- numbers ---- */

static int64_t extend(DType t, uint64_t v) {
  int bits = dtype_bits(t);
  if (bits >= 64) return (int64_t)v;
  v &= ((uint64_t)1 << bits) - 1;
  if (dtype_class(t) == DC_SINT && (v >> (bits - 1))) v |= ~(uint64_t)0 << bits;
  return (int64_t)v;
}

static uint64_t apint(Cur *c, int bits) {
  return bits <= 8 ? cur_byte(c) : (uint64_t)cur_svarint(c);
}

double bc_apfloat(Cur *c, DType t) { return float_decode(t, apint(c, dtype_bits(t))); }

static Err *read_int(Reader *r, Entry *e, Cur *c) {
  Type *t;
  TRY(need_elem(r, c, &t));
  DTypeClass cls = dtype_class(t->dtype);
  if (t->quant || (cls != DC_SINT && cls != DC_UINT && cls != DC_BOOL && t->dtype != DT_INDEX))
    return bc_err(r, c->p, "an integer of type %s", dtype_name(t->dtype));
  int64_t v = extend(t->dtype, apint(c, dtype_bits(t->dtype)));
  e->attr = t->dtype == DT_I1 ? attr_bool(r->m, v & 1) : attr_int(r->m, t->dtype, v);
  return NULL;
}

static Err *read_float(Reader *r, Entry *e, Cur *c) {
  Type *t;
  TRY(need_elem(r, c, &t));
  if (t->quant || !dtype_is_float(t->dtype))
    return bc_err(r, c->p, "a floating-point number of type %s", dtype_name(t->dtype));
  e->attr = attr_float(r->m, t->dtype, bc_apfloat(c, t->dtype));
  return NULL;
}

Err *bc_svarints(Reader *r, Cur *c, int *n, int64_t **out) {
  *n = cur_count(c, 1);
  *out = ARENA_ARRAY(r->m->arena, int64_t, *n);
  for (int i = 0; i < *n; i++) (*out)[i] = cur_svarint(c);
  return bc_check(r, c, "list of numbers");
}

Err *bc_ints(Reader *r, Cur *c, DType elem, Attr **out) {
  int n;
  int64_t *v;
  TRY(bc_svarints(r, c, &n, &v));
  Attr *a = attr_ints(r->m, elem, 0, NULL);
  a->n = n;
  a->ints = v;
  *out = a;
  return NULL;
}

/* ---- arrays and dictionaries ---- */

Err *bc_array(Reader *r, Entry *e, Cur *c) {
  int n = cur_count(c, 1);
  RawList *list = ARENA_NEW(r->m->arena, RawList);
  list->n = n;
  list->items = ARENA_ARRAY(r->m->arena, Entry *, n);
  bool all = true;
  for (int i = 0; i < n; i++) {
    TRY(bc_ref_entry(r, e, c, &list->items[i]));
    all &= list->items[i]->attr != NULL;
  }
  TRY(bc_check(r, c, "list"));
  if (all) {
    e->attr = attr_array(r->m, 0, NULL);
    e->attr->n = n;
    e->attr->items = ARENA_ARRAY(r->m->arena, Attr *, n);
    for (int i = 0; i < n; i++) e->attr->items[i] = list->items[i]->attr;
  }
  if (!all || n == 0) {
    e->raw = list;
    e->raw_kind = RAW_LIST;
  }
  return NULL;
}

static Err *read_dict(Reader *r, Entry *e, Cur *c) {
  int n = cur_count(c, 2);
  NamedAttr *v = ARENA_ARRAY(r->m->arena, NamedAttr, n);
  for (int i = 0; i < n; i++) {
    Entry *value;
    TRY(bc_need_string(r, e, c, &v[i].name));
    TRY(bc_ref_entry(r, e, c, &value));
    if (value->raw_kind == RAW_GROUPS) TRY(bc_groups(r, value->raw, &v[i].value));
    else v[i].value = value->attr;
    if (!v[i].value) return bc_err(r, c->p, "a dictionary entry without a value");
  }
  TRY(bc_check(r, c, "dictionary"));
  e->attr = attr_dict(r->m, n, v);
  for (int i = 1; i < n; i++)
    if (str_eq(e->attr->dict[i - 1].name, e->attr->dict[i].name))
      return bc_err(r, c->p, "'%.*s' twice in a dictionary", STR_ARG(e->attr->dict[i].name));
  return NULL;
}

static Err *read_enum(Reader *r, Entry *e, Cur *c, int code) {
  uint64_t v = cur_varint(c);
  TRY(bc_check(r, c, "enumeration"));
  const char *name = vhlo_enum_name(code, v);
  if (!name) return bc_err(r, c->p, "value %llu of an enumeration", (unsigned long long)v);
  e->attr = code == 5 ? attr_int(r->m, DT_I32, (int64_t)v) : attr_enum(r->m, str_from(name));
  return NULL;
}

/* ---- builtin ---- */

static Loc *new_loc(Reader *r, Entry *e, LocKind kind) {
  Loc *l = ARENA_NEW(r->m->arena, Loc);
  l->kind = kind;
  e->raw = l;
  e->raw_kind = RAW_LOC;
  return l;
}

static Err *need_loc(Reader *r, Entry *e, Cur *c, const Loc **out) {
  uint64_t i = cur_varint(c);
  TRY(bc_check(r, c, "location reference"));
  TRY(bc_loc(r, i, out));
  return bc_add_weight(r, &e->weight, *out == r->unknown_loc ? 1 : r->attrs[i].weight);
}

static int small_int(Cur *c) {
  uint64_t v = cur_varint(c);
  return v > INT_MAX ? INT_MAX : (int)v;
}

static Err *read_loc(Reader *r, Entry *e, Cur *c, uint64_t code) {
  Loc *l;
  switch (code) {
  case 10:
    l = new_loc(r, e, LOC_CALLSITE);
    TRY(need_loc(r, e, c, &l->child));
    return need_loc(r, e, c, &l->caller);
  case 11:
    l = new_loc(r, e, LOC_FILE);
    TRY(bc_need_string(r, e, c, &l->name));
    l->line = small_int(c);
    l->col = small_int(c);
    return NULL;
  case 12:
  case 13: {
    l = new_loc(r, e, LOC_FUSED);
    int n = cur_count(c, 1);
    l->n_parts = n;
    l->parts = ARENA_ARRAY(r->m->arena, const Loc *, n);
    for (int i = 0; i < n; i++) TRY(need_loc(r, e, c, &l->parts[i]));
    if (code == 13) (void)cur_varint(c); /* the metadata is not kept */
    return NULL;
  }
  case 14:
    l = new_loc(r, e, LOC_NAME);
    TRY(bc_need_string(r, e, c, &l->name));
    return need_loc(r, e, c, &l->child);
  case 15: new_loc(r, e, LOC_UNKNOWN); return NULL;
  default: { /* 22: file range */
    l = new_loc(r, e, LOC_FILE);
    TRY(bc_need_string(r, e, c, &l->name));
    int n = cur_count(c, 1), v[4] = {0};
    for (int i = 0; i < n; i++) {
      int x = small_int(c);
      if (i < 4) v[i] = x;
    }
    l->line = v[0];
    l->col = v[1];
    l->end_line = n == 3 ? v[0] : v[2];
    l->end_col = n == 3 ? v[2] : v[3];
    return NULL;
  }
  }
}

static Err *read_symbol(Reader *r, Entry *e, Cur *c, bool nested) {
  Str s;
  TRY(bc_need_string(r, e, c, &s));
  if (nested) {
    Buf b = {0};
    buf_str(&b, s);
    int n = cur_count(c, 1);
    for (int i = 0; i < n; i++) {
      Attr *a;
      Err *err = bc_need_kind(r, e, c, AT_SYMBOL, "a symbol", &a);
      if (!err && b.n + a->s.n > MAX_PRINTED) err = bc_err(r, c->p, "a symbol of absurd length");
      if (err) {
        buf_free(&b);
        return err;
      }
      buf_cstr(&b, "::");
      buf_str(&b, a->s);
    }
    e->attr = attr_symbol(r->m, (Str){b.p ? b.p : "", b.n});
    buf_free(&b);
    return NULL;
  }
  e->attr = bc_str_attr(r, AT_SYMBOL, s);
  return NULL;
}

/* array<i64: 1, 2> and the like: a list of integers; of floats: a list of numbers. */
static Err *read_dense_array(Reader *r, Entry *e, Cur *c) {
  Type *t;
  TRY(need_elem(r, c, &t));
  uint64_t n = cur_varint(c);
  Str blob = cur_bytes(c, cur_varint(c));
  TRY(bc_check(r, c, "array"));
  size_t size = (size_t)dtype_bytes(t->dtype);
  if (!size || t->quant || blob.n / size != n || blob.n % size || n > INT_MAX)
    return bc_err(r, c->p, "an array whose length does not fit");
  DTypeClass cls = dtype_class(t->dtype);
  if (cls == DC_FLOAT) {
    Attr **v = ARENA_ARRAY(r->m->arena, Attr *, n);
    for (size_t i = 0; i < n; i++) {
      uint64_t bits = 0;
      memcpy(&bits, blob.p + i * size, size);
      v[i] = attr_float(r->m, t->dtype, float_decode(t->dtype, bits));
    }
    e->attr = attr_array(r->m, (int)n, v);
    return NULL;
  }
  if (cls != DC_SINT && cls != DC_UINT && cls != DC_BOOL)
    return bc_err(r, c->p, "an array of odd elements");
  Attr *a = attr_ints(r->m, t->dtype, 0, NULL);
  a->n = (int)n;
  a->ints = ARENA_ARRAY(r->m->arena, int64_t, n);
  for (size_t i = 0; i < n; i++) {
    uint64_t bits = 0;
    memcpy(&bits, blob.p + i * size, size);
    a->ints[i] = t->dtype == DT_I1 ? bits != 0 : extend(t->dtype, bits);
  }
  e->attr = a;
  return NULL;
}

static Err *read_resource(Reader *r, Entry *e, Cur *c) {
  Type *t;
  TRY(need_type(r, c, &t));
  uint64_t i = cur_varint(c);
  TRY(bc_check(r, c, "resource reference"));
  if (i >= (uint64_t)r->n_resources)
    return bc_err(r, c->p, "resource %llu of %d", (unsigned long long)i, r->n_resources);
  const Resource *res = &r->resources[i];
  if (!res->data.p)
    return bc_err(r, c->p, "resource '%.*s' has no data in this file", STR_ARG(res->key));
  return bc_tensor(r, t, res->data, &e->attr);
}

static Err *read_builtin(Reader *r, Entry *e, Cur *c) {
  uint64_t code = cur_varint(c);
  Attr *a;
  Type *t;
  switch (code) {
  case 0: return bc_array(r, e, c);
  case 1: return read_dict(r, e, c);
  case 2: e->attr = bc_str_attr(r, AT_STRING, bc_string(r, c)); return NULL;
  case 3: e->attr = bc_str_attr(r, AT_STRING, bc_string(r, c)); return need_type(r, c, &t);
  case 4: return read_symbol(r, e, c, false);
  case 5: return read_symbol(r, e, c, true);
  case 6:
    TRY(need_type(r, c, &t));
    e->attr = attr_type(r->m, t);
    return NULL;
  case 7: e->attr = attr_unit(r->m); return NULL;
  case 8: return read_int(r, e, c);
  case 9: return read_float(r, e, c);
  case 10:
  case 11:
  case 12:
  case 13:
  case 14:
  case 15:
  case 22: return read_loc(r, e, c, code);
  case 16: return read_resource(r, e, c);
  case 17: return read_dense_array(r, e, c);
  case 18:
    TRY(need_type(r, c, &t));
    Str blob = cur_bytes(c, cur_varint(c));
    TRY(bc_check(r, c, "elements"));
    return bc_tensor(r, t, blob, &e->attr);
  case 21:
    TRY(bc_need_attr(r, e, c, &a));
    e->attr = a;
    return NULL;
  default: return bc_err(r, c->p, "builtin attribute code %llu", (unsigned long long)code);
  }
}

/* ---- vhlo ---- */

static NamedAttr named(const char *name, Attr *value) { return (NamedAttr){str_from(name), value}; }

static Err *read_alias(Reader *r, Entry *e, Cur *c) {
  Attr *outputs, *operands;
  TRY(bc_ints(r, c, DT_I64, &outputs));
  int64_t index = cur_svarint(c);
  TRY(bc_ints(r, c, DT_I64, &operands));
  NamedAttr v[] = {named("operand_index", attr_int(r->m, DT_I64, index)),
                   named("operand_tuple_indices", operands),
                   named("output_tuple_indices", outputs)};
  e->attr = attr_dict(r->m, 3, v);
  return NULL;
}

static Err *read_accuracy(Reader *r, Entry *e, Cur *c) {
  double atol = bc_apfloat(c, DT_F64), rtol = bc_apfloat(c, DT_F64);
  int64_t ulps = cur_svarint(c);
  Attr *mode;
  TRY(bc_need_kind(r, e, c, AT_ENUM, "an accuracy mode", &mode));
  NamedAttr v[] = {named("atol", attr_float(r->m, DT_F64, atol)), named("mode", mode),
                   named("rtol", attr_float(r->m, DT_F64, rtol)),
                   named("ulps", attr_int(r->m, DT_I64, ulps))};
  e->attr = attr_dict(r->m, 4, v);
  return NULL;
}

static Err *read_vhlo(Reader *r, Entry *e, Cur *c) {
  uint64_t code = cur_varint(c);
  Type *t;
  switch (code) {
  case 1: return bc_array(r, e, c);
  case 2: e->attr = attr_bool(r->m, cur_varint(c) != 0); return NULL;
  case 3:
  case 4:
  case 5:
  case 7:
  case 11:
  case 12:
  case 13:
  case 16:
  case 19: return read_enum(r, e, c, (int)code);
  case 6: return read_dict(r, e, c);
  case 8: return read_float(r, e, c);
  case 9: return read_int(r, e, c);
  case 10: return read_alias(r, e, c);
  case 14: e->attr = bc_str_attr(r, AT_STRING, bc_string(r, c)); return NULL;
  case 15: {
    TRY(need_type(r, c, &t));
    Str blob = cur_bytes(c, cur_varint(c));
    TRY(bc_check(r, c, "elements"));
    return bc_tensor(r, t, blob, &e->attr);
  }
  case 17:
    TRY(need_type(r, c, &t));
    e->attr = attr_type(r->m, t);
    return NULL;
  case 18: return bc_ints(r, c, DT_I64, &e->attr);
  case 20: return read_accuracy(r, e, c);
  case 21: return bc_sub_axis(r, e, c);
  case 22: {
    Str name;
    TRY(bc_need_string(r, e, c, &name));
    bool present = cur_varint(c) != 0;
    uint64_t index = present ? cur_varint(c) : 0;
    TRY(bc_check(r, c, "axis"));
    return bc_axis_ref(r, e, c, name, present, index);
  }
  case 23: return bc_mesh_groups(r, e, c);
  case 24: {
    Str name;
    TRY(bc_need_string(r, e, c, &name));
    return bc_axis(r, e, c, name);
  }
  case 25: return bc_vhlo_mesh(r, e, c);
  default: return bc_err(r, c->p, "VHLO attribute code %llu", (unsigned long long)code);
  }
}

/* ---- entries ---- */

static Err *read_entry(Reader *r, Entry *e) {
  Cur c = {(const uint8_t *)e->data.p, (const uint8_t *)e->data.p + e->data.n, NULL};
  const Dialect *d = &r->dialects[e->dialect];
  e->weight = 1;
  Err *err;
  if (!e->custom) return bc_text_attr(r, e, STABLEHLO_MAX_EXPANDED_BYTES - r->expanded_bytes);
  switch (d->id) {
  case D_BUILTIN: err = read_builtin(r, e, &c); break;
  case D_VHLO: err = read_vhlo(r, e, &c); break;
  case D_SDY: err = bc_sdy_attr(r, e, &c); break;
  case D_STABLEHLO:
  case D_CHLO:
  case D_MHLO: err = bc_shlo_attr(r, e, &c); break;
  default: err = bc_err(r, c.p, "an attribute of the unknown dialect '%.*s'", STR_ARG(d->name));
  }
  if (err) return err;
  TRY(bc_check(r, &c, "attribute"));
  if (c.p != c.end) return bc_err(r, c.p, "%zu bytes too many in an attribute", cur_left(&c));
  return NULL;
}

Err *bc_entry(Reader *r, uint64_t index, Entry **out) {
  if (index >= (uint64_t)r->n_attrs)
    return bc_err(r, NULL, "attribute %llu of %d", (unsigned long long)index, r->n_attrs);
  Entry *e = &r->attrs[index];
  *out = e;
  if (e->state == 2) return NULL;
  const uint8_t *at = (const uint8_t *)e->data.p;
  if (e->state == 1) return bc_err(r, at, "an attribute refers to itself");
  if (r->depth >= IR_MAX_DEPTH)
    return bc_err(r, at, "attributes nested deeper than %d", IR_MAX_DEPTH);
  e->state = 1;
  r->depth++;
  TRY(read_entry(r, e));
  r->depth--;
  e->state = 2;
  return NULL;
}

Err *bc_attr(Reader *r, uint64_t index, Attr **out) {
  Entry *e;
  TRY(bc_entry(r, index, &e));
  if (!e->attr) return bc_err(r, (const uint8_t *)e->data.p, "expected an attribute value");
  *out = e->attr;
  return NULL;
}

/* Locations only inform: where they are too deep they end, rather than the whole program being
 * refused. */
Err *bc_loc(Reader *r, uint64_t index, const Loc **out) {
  *out = r->unknown_loc;
  if (index < (uint64_t)r->n_attrs && r->attrs[index].state == 0 && r->depth >= IR_MAX_DEPTH - 2)
    return NULL;
  Entry *e;
  TRY(bc_entry(r, index, &e));
  if (e->raw_kind != RAW_LOC) return bc_err(r, (const uint8_t *)e->data.p, "expected a location");
  *out = e->raw;
  return NULL;
}
