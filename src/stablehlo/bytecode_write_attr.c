/* Locations, elements and builtin attributes into the tables of a bytecode file: what discardable
 * attributes, modules and Shardy take. */
#include <stdlib.h>

#include "stablehlo/bytecode_write_priv.h"

/* ---- locations ---- */

static int builtin_attr(Writer *w, Buf *b) { return table_add(w, &w->attrs, W_BUILTIN, b); }

int w_builtin_string(Writer *w, Str s) {
  Buf b = {0};
  put_varint(&b, 2);
  put_varint(&b, (uint64_t)w_string(w, s));
  return builtin_attr(w, &b);
}

static void put_num(Buf *b, int v) { put_varint(b, (uint64_t)MAX(v, 0)); }

Err *w_loc(Writer *w, const Loc *l, int *out) {
  static const Loc unknown = {.kind = LOC_UNKNOWN};
  if (!l) l = &unknown;
  Str key = ptr_key((const void *const *)&l);
  void *done = map_get(w->locs, key);
  if (done) {
    *out = (int)(intptr_t)done - 1;
    return NULL;
  }
  Buf b = {0};
  int x = 0, y = 0;
  switch (l->kind) {
  case LOC_UNKNOWN: put_varint(&b, 15); break;
  case LOC_FILE:
    x = w_builtin_string(w, l->name);
    put_varint(&b, l->end_line || l->end_col ? 22 : 11);
    put_varint(&b, (uint64_t)x);
    if (l->end_line || l->end_col) put_varint(&b, l->end_line == l->line ? 3 : 4);
    put_num(&b, l->line);
    put_num(&b, l->col);
    if ((l->end_line || l->end_col) && l->end_line != l->line) put_num(&b, l->end_line);
    if (l->end_line || l->end_col) put_num(&b, l->end_col);
    break;
  case LOC_NAME:
  case LOC_CALLSITE:
    if (l->kind == LOC_NAME) x = w_builtin_string(w, l->name);
    else TRY(w_loc(w, l->child, &x));
    TRY(w_loc(w, l->kind == LOC_NAME ? l->child : l->caller, &y));
    put_varint(&b, l->kind == LOC_NAME ? 14 : 10);
    put_varint(&b, (uint64_t)x);
    put_varint(&b, (uint64_t)y);
    break;
  case LOC_FUSED:
    put_varint(&b, 12);
    put_varint(&b, (uint64_t)l->n_parts);
    for (int i = 0; i < l->n_parts; i++) {
      TRY(w_loc(w, l->parts[i], &x));
      put_varint(&b, (uint64_t)x);
    }
    break;
  }
  *out = builtin_attr(w, &b);
  map_set(w->locs, key, (void *)(intptr_t)(*out + 1));
  return NULL;
}

/* ---- elements ---- */

static bool is_splat(const Tensor *t) { return t->count > 1 && tensor_is_splat(t); }

/* The elements as a blob of the file; see bytecode_tensor.c. */
void w_put_elements(Buf *b, const Tensor *t) {
  const uint8_t *d = t->data;
  if (t->dtype == DT_I1) {
    if (is_splat(t)) {
      put_blob(b, d[0] ? "\xFF" : "\0", 1);
      return;
    }
    size_t n = (size_t)(t->count + 7) / 8;
    uint8_t *bits = xcalloc(n, 1);
    for (int64_t i = 0; i < t->count; i++) bits[i / 8] |= (uint8_t)((d[i] & 1) << (i % 8));
    put_blob(b, bits, n);
    free(bits);
    return;
  }
  size_t bytes = is_splat(t) ? (size_t)dtype_bytes(t->dtype) : tensor_bytes(t);
  int width = dtype_bits(t->dtype);
  if (dtype_bytes(t->dtype) > 1 || width >= 8) {
    put_blob(b, d, bytes);
    return;
  }
  uint8_t *narrow = xmalloc(bytes);
  for (size_t i = 0; i < bytes; i++) narrow[i] = d[i] & (uint8_t)((1u << width) - 1);
  put_blob(b, narrow, bytes);
  free(narrow);
}

/* A number of a type's width as the format writes it. */
void put_apint(Buf *b, int bits, uint64_t v) {
  if (bits < 64) v &= ((uint64_t)1 << bits) - 1;
  if (bits <= 8) buf_byte(b, (int)v);
  else put_svarint(b, (int64_t)v);
}

int int_bits(DType t) { return t == DT_INDEX ? 64 : dtype_bits(t); }

/* Large attributes are shared by many operations: each is written w_once. By pointer, so only what
 * the module owns, not what the writer makes up on its stack. */
Err *w_once(Writer *w, Map *done, Err *(*write)(Writer *, const Attr *, int *), const Attr *a,
            int *out) {
  bool large = a->n > 0 && (a->kind == AT_ARRAY || a->kind == AT_DICT);
  if (!large && a->kind != AT_TENSOR) return write(w, a, out);
  Str key = ptr_key((const void *const *)&a);
  void *number = map_get(done, key);
  if (number) {
    *out = (int)(intptr_t)number - 1;
    return NULL;
  }
  TRY(write(w, a, out));
  map_set(done, key, (void *)(intptr_t)(*out + 1));
  return NULL;
}

/* ---- builtin attributes ---- */

Err *w_list_of(Writer *w, const Attr *a, bool vhlo, Buf *b) {
  put_varint(b, (uint64_t)a->n);
  for (int i = 0; i < a->n; i++) {
    int x;
    TRY(vhlo ? w_vhlo_any(w, a->items[i], &x) : w_builtin_attr(w, a->items[i], &x));
    put_varint(b, (uint64_t)x);
  }
  return NULL;
}

Err *w_builtin_dict(Writer *w, const NamedAttr *v, int n, int *out) {
  Buf b = {0};
  put_varint(&b, 1);
  put_varint(&b, (uint64_t)n);
  for (int i = 0; i < n; i++) {
    int x;
    Err *e = w_builtin_attr(w, v[i].value, &x);
    if (e) {
      buf_free(&b);
      return err_wrap(e, "attribute '%.*s'", STR_ARG(v[i].name));
    }
    put_varint(&b, (uint64_t)w_builtin_string(w, v[i].name));
    put_varint(&b, (uint64_t)x);
  }
  *out = builtin_attr(w, &b);
  return NULL;
}

static Err *build_builtin(Writer *w, const Attr *a, Buf *b) {
  int x;
  switch (a->kind) {
  case AT_UNIT: put_varint(b, 7); return NULL;
  case AT_BOOL:
    TRY(w_builtin_elem(w, DT_I1, &x));
    put_varint(b, 8);
    put_varint(b, (uint64_t)x);
    buf_byte(b, a->i != 0);
    return NULL;
  case AT_INT:
    TRY(w_builtin_elem(w, a->dtype, &x));
    put_varint(b, 8);
    put_varint(b, (uint64_t)x);
    put_apint(b, int_bits(a->dtype), (uint64_t)a->i);
    return NULL;
  case AT_FLOAT:
    TRY(w_builtin_elem(w, a->dtype, &x));
    put_varint(b, 9);
    put_varint(b, (uint64_t)x);
    put_apint(b, dtype_bits(a->dtype), float_encode(a->dtype, a->f));
    return NULL;
  case AT_STRING:
    put_varint(b, 2);
    put_varint(b, (uint64_t)w_string(w, a->s));
    return NULL;
  case AT_SYMBOL:
    x = w_builtin_string(w, a->s);
    put_varint(b, 4);
    put_varint(b, (uint64_t)x);
    return NULL;
  case AT_TYPE:
    TRY(w_builtin_type(w, a->type, &x));
    put_varint(b, 6);
    put_varint(b, (uint64_t)x);
    return NULL;
  case AT_INTS: {
    TRY(w_builtin_elem(w, a->dtype, &x));
    size_t size = (size_t)dtype_bytes(a->dtype);
    Buf data = {0};
    for (int i = 0; i < a->n; i++) buf_add(&data, &a->ints[i], size);
    put_varint(b, 17);
    put_varint(b, (uint64_t)x);
    put_varint(b, (uint64_t)a->n);
    put_blob(b, data.p, data.n);
    buf_free(&data);
    return NULL;
  }
  case AT_TENSOR:
    TRY(w_builtin_type(w, a->type, &x));
    put_varint(b, 18);
    put_varint(b, (uint64_t)x);
    w_put_elements(b, a->tensor);
    return NULL;
  case AT_ARRAY: put_varint(b, 0); return w_list_of(w, a, false, b);
  default:
    return err_new(ERR_UNIMPLEMENTED, "bytecode has no form for the attribute %.*s", STR_ARG(a->s));
  }
}

static Err *any_builtin(Writer *w, const Attr *a, int *out) {
  if (a->kind == AT_DICT) return w_builtin_dict(w, a->dict, a->n, out);
  if (a->kind == AT_SHARDING) return w_sdy_sharding(w, a->sharding, out);
  if (a->kind == AT_ARRAY && a->n && a->items[0]->kind == AT_SHARDING)
    return w_sdy_per_value(w, a, out);
  if (a->kind == AT_MESH) {
    *out = w_sdy_mesh(w, a->mesh);
    return NULL;
  }
  if (a->kind == AT_OPAQUE && (*out = w_sdy_rule(w, a->s)) >= 0) return NULL;
  Buf b = {0};
  Err *e = build_builtin(w, a, &b);
  if (e) {
    buf_free(&b);
    return e;
  }
  *out = builtin_attr(w, &b);
  return NULL;
}

Err *w_builtin_attr(Writer *w, const Attr *a, int *out) {
  return w_once(w, w->builtin_attrs, any_builtin, a, out);
}
