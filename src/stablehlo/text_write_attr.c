/* Attributes as text: any by itself, and those of an operation, whose struct attributes the canonical
 * form has taken apart. */
#include "stablehlo/text_write_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names and strings ---- */

void tw_quoted(Buf *b, Str s) {
  buf_byte(b, '"');
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    if (c == '\\') buf_cstr(b, "\\\\");
    else if (isprint(c) && c != '"') buf_byte(b, c);
    else buf_printf(b, "\\%02X", c);
  }
  buf_byte(b, '"');
}

static bool is_bare(Str s) {
  if (!s.n || isdigit((unsigned char)s.p[0]) || s.p[0] == '$' || s.p[0] == '.') return false;
  for (size_t i = 0; i < s.n; i++)
    if (!isalnum((unsigned char)s.p[i]) && !strchr("_$.", s.p[i])) return false;
  return memchr(s.p, 0, s.n) == NULL;
}

void tw_symbol(Buf *b, Str s) {
  buf_byte(b, '@');
  if (is_bare(s)) buf_str(b, s);
  else tw_quoted(b, s);
}

void tw_key(Buf *b, Str s) {
  if (is_bare(s)) buf_str(b, s);
  else tw_quoted(b, s);
}

static bool all_kind(const Attr *a, AttrKind k) {
  for (int i = 0; i < a->n; i++)
    if (a->items[i]->kind != k) return false;
  return a->n > 0;
}

/* ---- any ---- */

void tw_int_list(Buf *b, const Attr *a, bool booleans) {
  buf_byte(b, '[');
  for (int i = 0; a && i < a->n; i++) {
    if (i) buf_cstr(b, ", ");
    if (booleans) buf_cstr(b, a->ints[i] ? "true" : "false");
    else buf_printf(b, "%lld", (long long)a->ints[i]);
  }
  buf_byte(b, ']');
}

static void dense_array(Buf *b, const Attr *a) {
  if (a->dtype == DT_INDEX) { /* MLIR has no array of index */
    buf_cstr(b, "dense<");
    tw_int_list(b, a, false);
    buf_printf(b, "> : tensor<%dxindex>", a->n);
    return;
  }
  buf_printf(b, "array<%s", dtype_name(a->dtype));
  for (int i = 0; i < a->n; i++) {
    buf_cstr(b, i ? ", " : ": ");
    if (a->dtype == DT_I1) buf_cstr(b, a->ints[i] ? "true" : "false");
    else buf_printf(b, "%lld", (long long)a->ints[i]);
  }
  buf_byte(b, '>');
}

void tw_dict(Writer *w, const NamedAttr *v, int n) {
  buf_byte(w->b, '{');
  for (int i = 0; i < n; i++) {
    if (i) buf_cstr(w->b, ", ");
    tw_key(w->b, v[i].name);
    if (v[i].value->kind == AT_UNIT) continue;
    buf_cstr(w->b, " = ");
    tw_attr(w, v[i].value);
  }
  buf_byte(w->b, '}');
}

void tw_attr(Writer *w, const Attr *a) {
  Buf *b = w->b;
  switch (a->kind) {
  case AT_UNIT: buf_cstr(b, "unit"); return;
  case AT_BOOL: buf_cstr(b, a->i ? "true" : "false"); return;
  case AT_INT:
    if (dtype_class(a->dtype) == DC_UINT)
      buf_printf(b, "%llu : %s", (unsigned long long)a->i, dtype_name(a->dtype));
    else buf_printf(b, "%lld : %s", (long long)a->i, dtype_name(a->dtype));
    return;
  case AT_FLOAT:
    tw_float_value(b, a->dtype, a->f);
    buf_printf(b, " : %s", dtype_name(a->dtype));
    return;
  case AT_STRING: tw_quoted(b, a->s); return;
  case AT_SYMBOL: tw_symbol(b, a->s); return;
  case AT_ENUM: buf_printf(b, "#stablehlo<precision %.*s>", STR_ARG(a->s)); return;
  case AT_TYPE: type_print(b, a->type); return;
  case AT_INTS: dense_array(b, a); return;
  case AT_TENSOR: tw_dense(w, a); return;
  case AT_ARRAY:
    if (all_kind(a, AT_SHARDING)) {
      buf_cstr(b, "#sdy.sharding_per_value<");
      tw_sharding_list(b, a);
      buf_byte(b, '>');
      return;
    }
    buf_byte(b, '[');
    for (int i = 0; i < a->n; i++) {
      if (i) buf_cstr(b, ", ");
      tw_attr(w, a->items[i]);
    }
    buf_byte(b, ']');
    return;
  case AT_DICT: tw_dict(w, a->dict, a->n); return;
  case AT_MESH:
    buf_cstr(b, "#sdy.mesh");
    tw_mesh(b, a->mesh);
    return;
  case AT_SHARDING:
    buf_cstr(b, "#sdy.sharding");
    tw_sharding(b, a->sharding);
    return;
  case AT_OPAQUE: buf_str(b, a->s); return;
  }
}

/* ---- the attributes of an operation ---- */

static const char *enum_name(Str attr) {
  if (str_is(attr, "compare_type")) return "comparison_type";
  if (str_is(attr, "transpose_a")) return "transpose";
  static const char *const same[] = {"comparison_direction", "fft_type", "rng_algorithm",
                                     "rng_distribution"};
  for (int i = 0; i < COUNT_OF(same); i++)
    if (str_is(attr, same[i])) return same[i];
  return "precision";
}

static void alias_item(Writer *w, const Attr *a) { /* output_operand_aliases */
  Buf *b = w->b;
  buf_cstr(b, "#stablehlo.output_operand_alias<output_tuple_indices = ");
  tw_int_list(b, attrs_get(a->dict, a->n, "output_tuple_indices"), false);
  const Attr *i = attrs_get(a->dict, a->n, "operand_index");
  buf_printf(b, ", operand_index = %lld, operand_tuple_indices = ", i ? (long long)i->i : 0);
  tw_int_list(b, attrs_get(a->dict, a->n, "operand_tuple_indices"), false);
  buf_byte(b, '>');
}

static void accuracy(Writer *w, const Attr *a) {
  Buf *b = w->b;
  const Attr *atol = attrs_get(a->dict, a->n, "atol"), *rtol = attrs_get(a->dict, a->n, "rtol");
  const Attr *ulps = attrs_get(a->dict, a->n, "ulps"), *mode = attrs_get(a->dict, a->n, "mode");
  buf_cstr(b, "#stablehlo.result_accuracy<");
  if (atol && (atol->f != 0 || signbit(atol->f))) {
    buf_cstr(b, "atol = ");
    tw_float_value(b, DT_F64, atol->f);
    buf_cstr(b, ", ");
  }
  if (rtol && (rtol->f != 0 || signbit(rtol->f))) {
    buf_cstr(b, "rtol = ");
    tw_float_value(b, DT_F64, rtol->f);
    buf_cstr(b, ", ");
  }
  if (ulps && ulps->i) buf_printf(b, "ulps = %lld, ", (long long)ulps->i);
  Str m = mode ? mode->s : STR("DEFAULT");
  buf_printf(b, "mode = #stablehlo.result_accuracy_mode<%.*s>>", STR_ARG(m));
}

static void plain_field(Writer *w, const Attr *a) {
  if (a->kind == AT_INTS) tw_int_list(w->b, a, false);
  else if (a->kind == AT_INT) buf_printf(w->b, "%lld", (long long)a->i);
  else tw_attr(w, a);
}

/* Is the attribute of the kind its column says? Modules made by hand may lack that, and must still
 * print. */
static void own_value(Writer *w, const AttrSpec *s, const Attr *a) {
  if (a->kind == AT_ENUM) {
    buf_printf(w->b, "#stablehlo<%s %.*s>", enum_name(s->name), STR_ARG(a->s));
    return;
  }
  if (str_is(s->name, "result_accuracy") && a->kind == AT_DICT) {
    accuracy(w, a);
    return;
  }
  if (str_is(s->name, "output_operand_aliases") && a->kind == AT_ARRAY && all_kind(a, AT_DICT)) {
    buf_byte(w->b, '[');
    for (int i = 0; i < a->n; i++) {
      if (i) buf_cstr(w->b, ", ");
      alias_item(w, a->items[i]);
    }
    buf_byte(w->b, ']');
    return;
  }
  if (str_is(s->name, "ragged_dot_dimension_numbers") && a->kind == AT_DICT) {
    buf_cstr(w->b, "#chlo.ragged_dot<");
    for (int i = 0; i < a->n; i++) {
      buf_printf(w->b, i ? ", %.*s = " : "%.*s = ", STR_ARG(a->dict[i].name));
      plain_field(w, a->dict[i].value);
    }
    buf_byte(w->b, '>');
    return;
  }
  if (str_is(s->name, "manual_axes") && a->kind == AT_ARRAY) {
    buf_cstr(w->b, "#sdy<manual_axes");
    tw_axes(w->b, a);
    buf_byte(w->b, '>');
    return;
  }
  if ((str_is(s->name, "in_shardings") || str_is(s->name, "out_shardings")) &&
      a->kind == AT_ARRAY) {
    buf_cstr(w->b, "#sdy.sharding_per_value<");
    tw_sharding_list(w->b, a);
    buf_byte(w->b, '>');
    return;
  }
  tw_attr(w, a);
}

static void conv_side(Buf *b, const Op *op, const char *first, const char *second,
                      const char *spatial, const char *letters) {
  const int64_t *v;
  int n = op_ints(op, spatial, &v);
  int64_t f = op_int(op, first, -1), s = op_int(op, second, -1);
  buf_byte(b, '[');
  for (int64_t i = 0; i < n + 2; i++) {
    if (i) buf_cstr(b, ", ");
    int k = 0;
    while (k < n && v[k] != i) k++;
    if (i == f) buf_byte(b, letters[0]);
    else if (i == s) buf_byte(b, letters[1]);
    else if (k < n) buf_printf(b, "%d", k);
    else buf_byte(b, '?');
  }
  buf_byte(b, ']');
}

void tw_conv_dims(Buf *b, const Op *op) {
  conv_side(b, op, "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
            "bf");
  buf_byte(b, 'x');
  conv_side(b, op, "kernel_input_feature_dimension", "kernel_output_feature_dimension",
            "kernel_spatial_dimensions", "io");
  buf_cstr(b, "->");
  conv_side(b, op, "output_batch_dimension", "output_feature_dimension",
            "output_spatial_dimensions", "bf");
}

/* A struct attribute: fields in MLIR's order; lists that are empty and an index_vector_dim of 0 are
 * left out. */
typedef struct Struct {
  OpKind kind;
  const char *attr, *type, *fields;
} Struct;

#define GATHER                                                  \
  "dimension_numbers", "#stablehlo.gather",                     \
      "offset_dims collapsed_slice_dims operand_batching_dims " \
      "start_indices_batching_dims start_index_map index_vector_dim"
#define CONV                                                                    \
  "dimension_numbers", "#stablehlo.conv",                                       \
      "input_batch_dimension input_feature_dimension input_spatial_dimensions " \
      "kernel_input_feature_dimension kernel_output_feature_dimension "         \
      "kernel_spatial_dimensions output_batch_dimension "                       \
      "output_feature_dimension output_spatial_dimensions"

static const Struct structs[] = {
    {OP_GATHER, GATHER},
    {OP_DYNAMIC_GATHER, GATHER},
    {OP_SCATTER, "scatter_dimension_numbers", "#stablehlo.scatter",
     "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims "
     "scatter_dims_to_operand_dims index_vector_dim"},
    {OP_DOT_GENERAL, "dot_dimension_numbers", "#stablehlo.dot",
     "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions "
     "rhs_contracting_dimensions"},
    {OP_DOT_GENERAL, "algorithm", "#stablehlo.dot_algorithm",
     "lhs_precision_type rhs_precision_type accumulation_type lhs_component_count "
     "rhs_component_count num_primitive_operations allow_imprecise_accumulation"},
    {OP_CONVOLUTION, CONV},
    {OP_DYNAMIC_CONV, CONV},
};

static bool in_words(const char *words, Str s) {
  for (const char *p = words; *p;) {
    const char *end = strchr(p, ' ');
    if (!end) end = p + strlen(p);
    if (str_eq((Str){p, (size_t)(end - p)}, s)) return true;
    p = *end ? end + 1 : end;
  }
  return false;
}

static void struct_text(Writer *w, const Op *op, const Struct *s) {
  buf_printf(w->b, "%s<", s->type);
  if (!strcmp(s->type, "#stablehlo.conv")) {
    tw_conv_dims(w->b, op);
  } else {
    bool first = true;
    for (const char *p = s->fields; *p;) {
      const char *end = strchr(p, ' ');
      if (!end) end = p + strlen(p);
      char name[64] = {0};
      memcpy(name, p, (size_t)(end - p));
      const Attr *a = op_attr(op, name);
      if (a) {
        buf_printf(w->b, first ? "%s = " : ", %s = ", name);
        plain_field(w, a);
        first = false;
      }
      p = *end ? end + 1 : end;
    }
  }
  buf_byte(w->b, '>');
}

static bool has_fields(const Op *op, const Struct *s) {
  for (int i = 0; i < op->n_attrs; i++)
    if (in_words(s->fields, op->attrs[i].name)) return true;
  return !strcmp(s->attr, "dimension_numbers") || !strcmp(s->attr, "scatter_dimension_numbers") ||
         !strcmp(s->attr, "dot_dimension_numbers");
}

static int by_text_name(const void *a, const void *b) {
  return str_cmp(((const TextAttr *)a)->name, ((const TextAttr *)b)->name);
}

static Buf *begin(Writer *w, Buf *tmp) { /* attributes are written into a buffer of their own */
  Buf *keep = w->b;
  *tmp = (Buf){0};
  w->b = tmp;
  return keep;
}

static void finish(Writer *w, Buf *keep, TextAttrs *out, Str name) {
  buf_cstr(w->b, "");
  char *text = w->b->p ? w->b->p : xstrdup("");
  size_t n = w->b->n;
  w->b = keep;
  *vec_push(out) = (TextAttr){name, text, n};
}

void tw_op_attrs(Writer *w, const Op *op, bool own, bool discardable, const char *skip,
                 TextAttrs *out) {
  Buf tmp, *keep;
  for (int k = 0; own && k < COUNT_OF(structs); k++) {
    const Struct *s = &structs[k];
    if (s->kind != op->kind || in_words(skip, str_from(s->attr)) || !has_fields(op, s)) continue;
    keep = begin(w, &tmp);
    struct_text(w, op, s);
    finish(w, keep, out, str_from(s->attr));
  }
  const AttrSpec *type_spec = op_attr_spec(op->kind, STR("channel_type"));
  const Attr *id = own && type_spec ? op_attr(op, "channel_id") : NULL;
  if (id) {
    keep = begin(w, &tmp);
    buf_printf(w->b, "#stablehlo.channel_handle<handle = %lld, type = %lld>", (long long)id->i,
               (long long)op_int(op, "channel_type", 0));
    finish(w, keep, out, STR("channel_handle"));
  }
  for (int i = 0; i < op->n_attrs; i++) {
    NamedAttr a = op->attrs[i];
    const AttrSpec *s = op_attr_spec(op->kind, a.name);
    if (s ? !own : !discardable) continue;
    if (in_words(skip, a.name)) continue;
    if (s && type_spec && (str_is(a.name, "channel_id") || str_is(a.name, "channel_type")))
      continue;
    bool grouped = false;
    for (int k = 0; s && k < COUNT_OF(structs) && !grouped; k++)
      grouped = structs[k].kind == op->kind && in_words(structs[k].fields, a.name);
    if (grouped) continue;
    bool unit = a.value->kind == AT_UNIT || (str_is(a.name, "use_global_device_ids") &&
                                             a.value->kind == AT_BOOL && a.value->i && s);
    if (unit) {
      *vec_push(out) = (TextAttr){a.name, NULL, 0};
      continue;
    }
    keep = begin(w, &tmp);
    if (s) own_value(w, s, a.value);
    else tw_attr(w, a.value);
    finish(w, keep, out, a.name);
  }
  bool conv = op->kind == OP_CONVOLUTION ||
              op->kind == OP_DYNAMIC_CONV; /* required there, although a default exists */
  for (int k = 0; own && conv && k < 2; k++) {
    const char *name = k ? "feature_group_count" : "batch_group_count";
    if (op_attr(op, name)) continue;
    *vec_push(out) = (TextAttr){str_from(name), xstrdup("1 : i64"), 7};
  }
  if (out->n) qsort(out->v, (size_t)out->n, sizeof *out->v, by_text_name);
}

void tw_text_attrs(Buf *b, const TextAttrs *v) {
  buf_byte(b, '{');
  for (int i = 0; i < v->n; i++) {
    if (i) buf_cstr(b, ", ");
    tw_key(b, v->v[i].name);
    if (!v->v[i].text) continue;
    buf_cstr(b, " = ");
    buf_add(b, v->v[i].text, v->v[i].n);
  }
  buf_byte(b, '}');
}

void text_attrs_free(TextAttrs *v) {
  for (int i = 0; i < v->n; i++) free(v->v[i].text);
  vec_free(v);
}
