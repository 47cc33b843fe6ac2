/* Attributes as MLIR spells them. `#dialect.name<...>` of stablehlo becomes an enumeration, a
 * dictionary of its fields, or what ir.h has for it; text_canon.c flattens those dictionaries into
 * their operation. Attributes of dialects that weft does not know are kept as text.
 *
 * Aliases are read where they are first used, wherever they are defined, and shared afterwards. To
 * keep a few lines from standing for billions of nodes, an alias knows how many nodes it expands to
 * and each use counts them.
 */
#include "stablehlo/text_priv.h"

#include <stdlib.h>

static Err *attr_inner(Text *t, Attr **out);

/* ---- aliases ---- */

Err *text_read_alias(Text *t, Alias *a, bool type) {
  int depth = t->depth, deepest = t->deepest;
  int64_t nodes = t->nodes;
  t->deepest = t->depth;
  a->state = 1;
  if (type) TRY(text_type(t, &a->type));
  else if (text_is_word(t, "loc")) TRY(text_loc(t, &a->loc));
  else TRY(text_attr(t, &a->attr));
  a->state = 2;
  a->end = t->start;
  a->depth = t->deepest - depth;
  a->nodes = t->nodes - nodes;
  t->deepest = MAX(deepest, t->deepest);
  return NULL;
}

Err *text_alias(Text *t, Alias **out) {
  bool type = text_is(t, T_BANG);
  Str name = {t->start, (size_t)(t->p - t->start)}; /* with # or ! */
  Alias *a = map_get(t->aliases, name);
  *out = a;
  if (!a) return NULL;
  if (a->state == 1)
    return text_err_at(t, t->start, "alias '%.*s' refers to itself", STR_ARG(name));
  if (a->state == 0) {
    const char *back = t->start;
    TRY(text_enter(t));
    text_seek(t, t->base + a->at);
    TRY(text_read_alias(t, a, type));
    text_leave(t);
    text_seek(t, back);
    return NULL;
  }
  if (t->depth + a->depth > IR_MAX_DEPTH)
    return text_err_at(t, t->start, "nested deeper than %d levels", IR_MAX_DEPTH);
  t->deepest = MAX(t->deepest, t->depth + a->depth);
  return text_nodes(t, a->nodes);
}

/* ---- lists and dictionaries ---- */

Err *text_int_list(Text *t, Ints *out) {
  TRY(text_want(t, '[', "'[' and a list of integers"));
  if (text_take(t, ']')) return NULL;
  do {
    bool b;
    if (text_is_word(t, "true") || text_is_word(t, "false")) {
      TRY(text_bool(t, &b));
      *vec_push(out) = b;
      continue;
    }
    int64_t v;
    TRY(text_int(t, &v));
    *vec_push(out) = v;
  } while (text_take(t, ','));
  return text_want(t, ']', "',' or ']'");
}

Err *text_attr_list(Text *t, const char *what, Err *(*item)(Text *t, Attr **out), Attr **out) {
  AttrList v = {0};
  Err *e = text_want(t, '[', what);
  if (!e && !text_take(t, ']')) {
    do {
      Attr *a = NULL;
      e = item(t, &a);
      *vec_push(&v) = a;
    } while (!e && text_take(t, ','));
    if (!e) e = text_want(t, ']', "',' or ']'");
  }
  if (!e) *out = attr_array(t->m, v.n, v.v);
  vec_free(&v);
  return e;
}

static Err *dict_key(Text *t, Str *out) {
  if (text_is(t, T_STR)) return text_string(t, out);
  if (!text_is(t, T_ID)) return text_expected(t, "an attribute name");
  *out = arena_str(t->m->arena, t->s);
  text_next(t);
  return NULL;
}

static bool has_name(const Attrs *v, int from, Str name) {
  for (int i = from; i < v->n; i++)
    if (str_eq(v->v[i].name, name)) return true;
  return false;
}

static int by_name(const void *a, const void *b) {
  return str_cmp(((const NamedAttr *)a)->name, ((const NamedAttr *)b)->name);
}

Err *text_attr_dict(Text *t, Attrs *out) {
  TRY(text_want(t, '{', "'{'"));
  if (text_take(t, '}')) return NULL;
  int from = out->n;
  do {
    NamedAttr a;
    const char *at = t->start;
    TRY(dict_key(t, &a.name));
    /* a long dictionary is checked once at its end, in n log n */
    if (out->n - from < 16 && has_name(out, from, a.name))
      return text_err_at(t, at, "attribute '%.*s' is given twice", STR_ARG(a.name));
    if (text_take(t, '=')) TRY(text_attr(t, &a.value));
    else a.value = attr_unit(t->m);
    *vec_push(out) = a;
  } while (text_take(t, ','));
  if (out->n - from > 16) {
    int n = out->n - from;
    NamedAttr *copy = xmalloc(sizeof *copy * (size_t)n);
    memcpy(copy, out->v + from, sizeof *copy * (size_t)n);
    qsort(copy, (size_t)n, sizeof *copy, by_name);
    int same = -1;
    for (int i = 1; i < n; i++)
      if (str_eq(copy[i].name, copy[i - 1].name)) same = i;
    Str name = same < 0 ? (Str){0} : copy[same].name;
    free(copy);
    if (same >= 0)
      return text_err_at(t, t->start, "attribute '%.*s' is given twice", STR_ARG(name));
  }
  return text_want(t, '}', "',' or '}'");
}

/* A field that is a list of integers is one attribute. */
static Err *field_value(Text *t, Attr **out) {
  if (!text_is(t, '[')) return text_attr(t, out);
  int c = text_peek_char(t);
  if (c != ']' && c != '-' && (c < '0' || c > '9')) return text_attr(t, out);
  Ints v = {0};
  Err *e = text_int_list(t, &v);
  if (!e) *out = attr_ints(t->m, DT_I64, v.n, v.v);
  vec_free(&v);
  return e;
}

Err *text_struct_fields(Text *t, Attrs *out) {
  int from = out->n;
  if (text_is(t, '>')) return NULL;
  do {
    NamedAttr a;
    if (text_is(t, '>')) return NULL; /* a comma at the end */
    const char *at = t->start;
    TRY(dict_key(t, &a.name));
    if (has_name(out, from, a.name))
      return text_err_at(t, at, "field '%.*s' is given twice", STR_ARG(a.name));
    if (out->n - from >= 32) return text_err_at(t, at, "more than 32 fields");
    TRY(text_want(t, '=', "'=' after the field's name"));
    TRY(field_value(t, &a.value));
    *vec_push(out) = a;
  } while (text_take(t, ','));
  return NULL;
}

/* ---- convolution dimension numbers: [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] ---- */

typedef struct ConvSide {
  char first, second; /* letters: b f, i o, b f */
  const char *first_name, *second_name, *spatial_name;
} ConvSide;

static const ConvSide sides[3] = {
    {'b', 'f', "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
    {'i', 'o', "kernel_input_feature_dimension", "kernel_output_feature_dimension",
     "kernel_spatial_dimensions"},
    {'b', 'f', "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};

static Err *conv_side(Text *t, const ConvSide *s, Attrs *out) {
  const char *at = t->start;
  TRY(text_want(t, '[', "'[' and dimension labels"));
  int64_t first = -1, second = -1, spatial[64], n_spatial = 0;
  for (int i = 0; i < 64; i++) spatial[i] = -1;
  if (!text_is(t, ']')) {
    int64_t pos = 0;
    do {
      char c = t->s.n == 1 ? t->s.p[0] : 0;
      if (text_is(t, T_ID) && (c == s->first || c == s->second)) {
        int64_t *to = c == s->first ? &first : &second;
        if (*to >= 0) return text_err_at(t, t->start, "dimension '%c' is given twice", c);
        *to = pos;
        text_next(t);
      } else if (text_is(t, T_INT)) {
        const char *where = t->start;
        int64_t k;
        TRY(text_int(t, &k));
        if (k < 0 || k >= 64 || spatial[k] >= 0)
          return text_err_at(t, where, "bad spatial dimension");
        spatial[k] = pos;
        n_spatial++;
      } else if (!text_take(t, '?')) {
        char what[64];
        strcpy(what, "'?' or '?' or a spatial dimension");
        what[1] = s->first;
        what[8] = s->second;
        return text_expected(t, what);
      }
      pos++;
    } while (text_take(t, ','));
  }
  TRY(text_want(t, ']', "']'"));
  if (first < 0 || second < 0)
    return text_err_at(t, at, "dimension '%c' is missing", first < 0 ? s->first : s->second);
  for (int64_t i = 0; i < n_spatial; i++)
    if (spatial[i] < 0)
      return text_err_at(t, at, "spatial dimension %lld is missing", (long long)i);
  *vec_push(out) = (NamedAttr){str_from(s->first_name), attr_int(t->m, DT_I64, first)};
  *vec_push(out) = (NamedAttr){str_from(s->second_name), attr_int(t->m, DT_I64, second)};
  *vec_push(out) =
      (NamedAttr){str_from(s->spatial_name), attr_ints(t->m, DT_I64, (int)n_spatial, spatial)};
  return NULL;
}

Err *text_conv_dims(Text *t, Attrs *out) {
  TRY(conv_side(t, &sides[0], out));
  TRY(text_want_word(t, "x"));
  TRY(conv_side(t, &sides[1], out));
  TRY(text_want(t, T_ARROW, "'->'"));
  return conv_side(t, &sides[2], out);
}

/* ---- dialect attributes ---- */

/* The text up to the '>' that closes what is open, brackets balanced, strings skipped. */
Err *text_skip_nested(Text *t, Str *out) {
  const char *from = t->start, *open = t->start;
  char stack[256];
  int n = 0;
  for (;; text_next(t)) {
    if (text_is(t, T_EOF) || text_is(t, T_BAD))
      return text_err_at(t, open, "this '<' is not closed");
    char c = (int)t->tok < 256 ? (char)t->tok : 0;
    if (c == '<' || c == '[' || c == '{' || c == '(') {
      if (n >= 255) return text_err_at(t, t->start, "nested deeper than 255 levels");
      stack[n++] = c == '<' ? '>' : c == '[' ? ']' : c == '{' ? '}' : ')';
    } else if (c == '>' || c == ']' || c == '}' || c == ')') {
      if (n == 0 && c == '>') break;
      if (n == 0 || stack[n - 1] != c) return text_err_at(t, t->start, "unbalanced '%c'", c);
      n--;
    }
  }
  *out = (Str){from, (size_t)(t->start - from)};
  text_next(t);
  return NULL;
}

static bool is_enum_name(Str s) {
  static const char *const names[] = {"precision",
                                      "comparison_direction",
                                      "comparison_type",
                                      "transpose",
                                      "fft_type",
                                      "rng_algorithm",
                                      "rng_distribution",
                                      "result_accuracy_mode",
                                      "custom_call_api_version"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (str_is(s, names[i])) return true;
  return false;
}

static bool is_struct_name(Str s) {
  static const char *const names[] = {"gather",
                                      "scatter",
                                      "dot",
                                      "channel_handle",
                                      "output_operand_alias",
                                      "dot_algorithm",
                                      "result_accuracy",
                                      "type_extensions",
                                      "ragged_dot"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (str_is(s, names[i])) return true;
  return false;
}

static Err *struct_attr(Text *t, Str name, Attr **out) {
  Attrs fields = {0};
  Err *e = NULL;
  if (str_is(name, "conv") && !text_is_word(t, "raw")) {
    e = text_conv_dims(t, &fields);
  } else {
    if (str_is(name, "conv")) text_next(t);
    e = text_struct_fields(t, &fields);
  }
  if (!e) e = text_want(t, '>', "',' or '>'");
  if (!e) *out = attr_dict(t->m, fields.n, fields.v);
  vec_free(&fields);
  return e;
}

static Err *bounds_attr(Text *t, Attr **out) { /* after #stablehlo.bounds< */
  Ints v = {0};
  Err *e = NULL;
  do {
    int64_t b = DIM_DYNAMIC;
    if (!text_take(t, '?')) e = text_int(t, &b);
    *vec_push(&v) = b;
  } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, '>', "'>'");
  if (!e) {
    NamedAttr a = {STR("bounds"), attr_ints(t->m, DT_I64, v.n, v.v)};
    *out = attr_dict(t->m, 1, &a);
  }
  vec_free(&v);
  return e;
}

static Err *opaque_attr(Text *t, const char *at, bool body, Attr **out) {
  const char *end = t->start;
  if (body) {
    Str inner;
    TRY(text_skip_nested(t, &inner));
    end = inner.p + inner.n + 1;
  }
  *out = attr_string(t->m, (Str){at, (size_t)(end - at)});
  (*out)->kind = AT_OPAQUE;
  return NULL;
}

static Err *dialect_attr(Text *t, Attr **out) {
  const char *at = t->start, *end = t->p;
  Str full = t->s;
  Alias *a;
  TRY(text_alias(t, &a));
  if (a) {
    if (!a->attr) return text_err_at(t, at, "'#%.*s' is not an attribute", STR_ARG(full));
    text_next(t);
    *out = a->attr;
    return NULL;
  }
  const char *dot = memchr(full.p, '.', full.n);
  Str dialect = {full.p, dot ? (size_t)(dot - full.p) : full.n};
  Str name = {dot ? dot + 1 : end, dot ? full.n - dialect.n - 1 : 0};
  text_next(t);
  if (!text_is(t, '<') || t->start != end) {
    if (!dot) return text_err_at(t, at, "alias '#%.*s' is not defined", STR_ARG(full));
    Attr *o = attr_string(t->m, (Str){at, (size_t)(end - at)});
    o->kind = AT_OPAQUE;
    *out = o;
    return NULL;
  }
  text_next(t); /* < */
  if (!dot) {   /* #dialect<name ...> */
    if (!text_is(t, T_ID)) return opaque_attr(t, at, true, out);
    name = t->s;
    bool sdy = str_is(dialect, "sdy");
    text_next(t);
    if (!sdy && !is_enum_name(name)) {
      /* #stablehlo<gather<...>>: the same as #stablehlo.gather<...> */
      if (!text_take(t, '<')) return opaque_attr(t, at, true, out);
      if ((is_struct_name(name) || str_is(name, "conv")) &&
          (str_is(dialect, "stablehlo") || str_is(dialect, "mhlo") || str_is(dialect, "chlo"))) {
        TRY(struct_attr(t, name, out));
        return text_want(t, '>', "'>'");
      }
      Str inner;
      TRY(text_skip_nested(t, &inner));
      return opaque_attr(t, at, true, out);
    }
  }
  if (str_is(dialect, "stablehlo") || str_is(dialect, "mhlo") || str_is(dialect, "chlo")) {
    if (is_enum_name(name)) {
      if (!text_is(t, T_ID)) return text_expected(t, "a keyword");
      *out = attr_enum(t->m, t->s);
      text_next(t);
      return text_want(t, '>', "'>'");
    }
    if (str_is(name, "bounds")) return bounds_attr(t, out);
    if (str_is(name, "replica_group_mesh_axes")) return text_mesh_groups(t, out);
    if (is_struct_name(name) || str_is(name, "conv")) return struct_attr(t, name, out);
  }
  if (str_is(dialect, "sdy")) {
    bool known = false;
    TRY(text_sdy_attr(t, name, at, &known, out));
    if (known) return NULL;
  }
  return opaque_attr(t, at, true, out);
}

/* ---- any ---- */

static Err *word_attr(Text *t, Attr **out) {
  const char *at = t->start;
  if (text_take_word(t, "dense")) return text_dense(t, out);
  if (text_take_word(t, "dense_resource")) return text_dense_resource(t, out);
  if (text_take_word(t, "array")) return text_dense_array(t, out);
  if (text_take_word(t, "unit")) {
    *out = attr_unit(t->m);
    return NULL;
  }
  if (text_is_word(t, "true") || text_is_word(t, "false")) {
    bool b;
    TRY(text_bool(t, &b));
    if (text_take(t, ':')) {
      Type *ty;
      TRY(text_type(t, &ty));
    }
    *out = attr_bool(t->m, b);
    return NULL;
  }
  if (text_is_word(t, "affine_map") || text_is_word(t, "affine_set") ||
      text_is_word(t, "strided")) {
    text_next(t);
    TRY(text_want(t, '<', "'<'"));
    return opaque_attr(t, at, true, out);
  }
  Type *ty;
  TRY(text_type(t, &ty));
  *out = attr_type(t->m, ty);
  return NULL;
}

static Err *attr_inner(Text *t, Attr **out) {
  TRY(text_nodes(t, 1));
  switch ((int)t->tok) {
  case T_HASH: return dialect_attr(t, out);
  case T_ID: return word_attr(t, out);
  case '[': return text_attr_list(t, "'['", text_attr, out);
  case '{': {
    Attrs v = {0};
    Err *e = text_attr_dict(t, &v);
    if (!e) *out = attr_dict(t->m, v.n, v.v);
    vec_free(&v);
    return e;
  }
  case '-':
  case T_INT:
  case T_FLOAT: return text_number_attr(t, out);
  case T_STR: {
    Str s;
    TRY(text_string(t, &s));
    *out = attr_string(t->m, s);
    if (text_take(t, ':')) {
      Type *ty;
      TRY(text_type(t, &ty));
    }
    return NULL;
  }
  case T_SYM: {
    Str s;
    TRY(text_symbol(t, &s));
    *out = attr_symbol(t->m, s);
    return NULL;
  }
  case '(':
  case T_BANG: {
    Type *ty;
    TRY(text_type(t, &ty));
    *out = attr_type(t->m, ty);
    return NULL;
  }
  default: return text_expected(t, "an attribute");
  }
}

Err *text_attr(Text *t, Attr **out) {
  TRY(text_enter(t));
  TRY(attr_inner(t, out));
  text_leave(t);
  return NULL;
}
