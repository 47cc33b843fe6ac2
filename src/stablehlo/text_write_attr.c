/* Attributes as text: numbers exactly (what is written reads back to the same bits), dense data,
 * Shardy, and the struct attributes that the canonical form has taken apart. */
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

/* ---- numbers ---- */

static uint64_t load_bits(DType d, const void *p) {
  uint64_t v = 0;
  memcpy(&v, p, (size_t)dtype_bytes(d)); /* little-endian */
  return v;
}

/* Decimal digits as LLVM's APFloat::toString makes them, so that what weft prints is what MLIR
 * prints: the exact decimal number, cut (not rounded) to about `precision` digits, then rounded to
 * exactly that many, trailing zeros dropped. |v| = 0.d0 d1 ... is returned as digits and the power
 * of ten of the last one. */
typedef struct Digits {
  char d[64];
  int n, exp;
} Digits;

typedef struct Big { /* little-endian base 2^32 */
  uint32_t v[80];
  int n;
} Big;

static void big_mul(Big *b, uint32_t k) {
  uint64_t carry = 0;
  for (int i = 0; i < b->n; i++) {
    carry += (uint64_t)b->v[i] * k;
    b->v[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry) b->v[b->n++] = (uint32_t)carry;
}

static uint32_t big_divmod(Big *b, uint32_t k) {
  uint64_t rest = 0;
  for (int i = b->n - 1; i >= 0; i--) {
    rest = rest << 32 | b->v[i];
    b->v[i] = (uint32_t)(rest / k);
    rest %= k;
  }
  while (b->n && !b->v[b->n - 1]) b->n--;
  return (uint32_t)rest;
}

static void decimal(double v, int precision, Digits *out) {
  int e;
  uint64_t sig = (uint64_t)ldexp(frexp(fabs(v), &e), 53);
  e -= 53;
  int zeros = __builtin_ctzll(sig);
  sig >>= zeros;
  e += zeros;
  Big b = {{(uint32_t)sig, (uint32_t)(sig >> 32)}, sig >> 32 ? 2 : 1};
  for (int i = 0; i < e; i++) big_mul(&b, 2);
  for (int i = 0; i < -e; i++) big_mul(&b, 5); /* at most 53 + 1074 * 2.33 bits: fits in 80 words */
  int exp10 = e < 0 ? e : 0;
  int bits = b.n * 32 - __builtin_clz(b.v[b.n - 1]), needed = (precision * 196 + 58) / 59;
  int cut = bits > needed ? (bits - needed) * 59 / 196 : 0;
  for (int i = 0; i < cut; i++) big_divmod(&b, 10);
  exp10 += cut;
  char low[900] = "0"; /* lowest digit first */
  int n = 0;
  while (b.n) {
    char d = (char)('0' + big_divmod(&b, 10));
    if (n == 0 && d == '0') exp10++;
    else low[n++] = d;
  }
  int from = 0;
  if (n > precision) {
    from = n - precision;
    bool up = low[from - 1] >= '5';
    while (from < n && low[from] == (up ? '9' : '0')) from++;
    if (up && from == n) low[--from] = '1', exp10++; /* carried through all digits */
    else if (up) low[from]++;
    exp10 += from;
  }
  out->n = 0;
  for (int i = n - 1; i >= from && out->n < 63; i--) out->d[out->n++] = low[i];
  out->d[out->n] = 0;
  out->exp = exp10;
}

static void scientific6(Buf *b, double v) { /* 1.000000e+00 */
  Digits g = {"0", 1, 0};
  if (v != 0) decimal(v, 6, &g);
  int exp10 = v != 0 ? g.exp + g.n - 1 : 0;
  buf_printf(b, "%s%c.%s", signbit(v) ? "-" : "", g.d[0], g.d + 1);
  for (int i = g.n - 1; i < 6; i++) buf_byte(b, '0');
  buf_printf(b, "e%c%02d", exp10 < 0 ? '-' : '+', abs(exp10));
}

static void general(Buf *b, double v, int digits) {
  Digits g;
  decimal(v, digits, &g);
  const char *ds = g.d;
  int n = g.n, last = g.exp, exp10 = last + n - 1;
  if (signbit(v)) buf_byte(b, '-');
  bool sci = last >= 0 ? last > 3 || n + last > digits : exp10 < 0 && -exp10 > 3;
  if (sci) {
    buf_byte(b, ds[0]);
    buf_byte(b, '.');
    buf_cstr(b, n > 1 ? ds + 1 : "0");
    buf_printf(b, "E%c%d", exp10 < 0 ? '-' : '+', abs(exp10));
    return;
  }
  if (last >= 0) {
    buf_cstr(b, ds);
    for (int i = 0; i < last; i++) buf_byte(b, '0');
    return; /* no point: the caller falls back to bits */
  }
  if (exp10 >= 0) {
    buf_add(b, ds, (size_t)exp10 + 1);
    buf_byte(b, '.');
    buf_cstr(b, ds + exp10 + 1);
  } else {
    buf_cstr(b, "0.");
    for (int i = 0; i < -exp10 - 1; i++) buf_byte(b, '0');
    buf_cstr(b, ds);
  }
}

static int decimal_digits(DType d) { /* APFloat: 2 + precision * 59 / 196 */
  static const struct {
    DType t;
    int precision;
  } rows[] = {{DT_F64, 53},     {DT_F32, 24},       {DT_F16, 11},   {DT_BF16, 8},
              {DT_F8E5M2, 3},   {DT_F8E5M2FNUZ, 3}, {DT_F8E3M4, 5}, {DT_F4E2M1FN, 2},
              {DT_F6E3M2FN, 3}, {DT_F8E8M0FNU, 1}};
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].t == d) return 2 + rows[i].precision * 59 / 196;
  return 2 + 4 * 59 / 196;
}

static bool reads_back(DType d, const char *s, uint64_t bits) {
  return float_encode(d, strtod(s, NULL)) == bits;
}

void tw_float(Buf *b, DType d, const void *p) {
  uint64_t bits = load_bits(d, p);
  if (dtype_bits(d) < 8) bits &= ((uint64_t)1 << dtype_bits(d)) - 1;
  double v = float_decode(d, bits);
  if (isfinite(v)) {
    Buf t = {0};
    scientific6(&t, v);
    bool ok = reads_back(d, t.p, bits);
    if (!ok) {
      t.n = 0;
      general(&t, v, decimal_digits(d));
      ok = strchr(t.p, '.') && reads_back(d, t.p, bits);
    }
    if (ok) buf_add(b, t.p, t.n);
    buf_free(&t);
    if (ok) return;
  }
  buf_printf(b, "0x%llX", (unsigned long long)bits);
}

static void float_value(Buf *b, DType d, double v) {
  uint64_t bits = float_encode(d, v);
  tw_float(b, d, &bits);
}

/* ---- dense ---- */

static void element(Buf *b, DType d, const void *p) {
  if (dtype_is_complex(d)) {
    DType r = dtype_real_of(d);
    buf_byte(b, '(');
    tw_float(b, r, p);
    buf_byte(b, ',');
    tw_float(b, r, (const char *)p + dtype_bytes(r));
    buf_byte(b, ')');
  } else if (dtype_is_float(d)) {
    tw_float(b, d, p);
  } else if (d == DT_I1) {
    buf_cstr(b, *(const unsigned char *)p ? "true" : "false");
  } else if (dtype_class(d) == DC_UINT) {
    buf_printf(b, "%llu", (unsigned long long)elem_get_i64(d, p));
  } else {
    buf_printf(b, "%lld", (long long)elem_get_i64(d == DT_INDEX ? DT_I64 : d, p));
  }
}

static void nested(Buf *b, const Tensor *t, int dim, const char **p) {
  if (dim == t->rank) {
    element(b, t->dtype, *p);
    *p += dtype_bytes(t->dtype);
    return;
  }
  buf_byte(b, '[');
  for (int64_t i = 0; i < t->dims[dim]; i++) {
    if (i) buf_cstr(b, ", ");
    nested(b, t, dim + 1, p);
  }
  buf_byte(b, ']');
}

static void hex_bytes(Buf *b, const Tensor *t) {
  const unsigned char *p = t->data;
  size_t n = tensor_bytes(t);
  int bits = dtype_bits(t->dtype);
  unsigned mask = bits < 8 ? (1u << bits) - 1 : 255;
  char two[2];
  buf_cstr(b, "\"0x");
  for (size_t i = 0; i < n; i++) {
    unsigned v = p[i] & mask;
    two[0] = "0123456789ABCDEF"[v >> 4];
    two[1] = "0123456789ABCDEF"[v & 15];
    buf_add(b, two, 2);
  }
  buf_byte(b, '"');
}

void tw_dense(Writer *w, const Attr *a) {
  Buf *b = w->b;
  const Tensor *t = a->tensor;
  buf_cstr(b, "dense<");
  if (tensor_is_splat(t)) {
    element(b, t->dtype, t->data);
  } else if (t->count > 0 && w->opts.elide_elements > 0 && t->count > w->opts.elide_elements) {
    buf_cstr(b, "\"0x...elided\"");
  } else if (t->count > 100) {
    hex_bytes(b, t);
  } else if (t->count > 0) {
    const char *p = t->data;
    nested(b, t, 0, &p);
  }
  buf_cstr(b, "> : ");
  type_print(b, a->type);
}

/* ---- Shardy ---- */

static void axis_ref(Buf *b, const AxisRef *a) {
  tw_quoted(b, a->name);
  if (a->sub_size) buf_printf(b, ":(%lld)%lld", (long long)a->sub_pre, (long long)a->sub_size);
}

static void axis_set(Buf *b, const AxisRef *v, int n) {
  buf_byte(b, '{');
  for (int i = 0; i < n; i++) {
    if (i) buf_cstr(b, ", ");
    axis_ref(b, &v[i]);
  }
  buf_byte(b, '}');
}

void tw_mesh(Buf *b, const Mesh *m) {
  buf_cstr(b, "<[");
  for (int i = 0; i < m->n_axes; i++) {
    if (i) buf_cstr(b, ", ");
    tw_quoted(b, m->axes[i].name);
    buf_printf(b, "=%lld", (long long)m->axes[i].size);
  }
  buf_byte(b, ']');
  if (m->n_ids) {
    buf_cstr(b, ", device_ids=[");
    for (int i = 0; i < m->n_ids; i++) buf_printf(b, i ? ", %lld" : "%lld", (long long)m->ids[i]);
    buf_byte(b, ']');
  }
  buf_byte(b, '>');
}

void tw_sharding(Buf *b, const Sharding *s) {
  buf_byte(b, '<');
  if (s->mesh) {
    buf_cstr(b, "mesh");
    tw_mesh(b, s->mesh);
  } else {
    tw_symbol(b, s->mesh_name);
  }
  buf_cstr(b, ", [");
  for (int i = 0; i < s->n_dims; i++) {
    const DimSharding *d = &s->dims[i];
    buf_cstr(b, i ? ", {" : "{");
    for (int k = 0; k < d->n_axes; k++) {
      if (k) buf_cstr(b, ", ");
      axis_ref(b, &d->axes[k]);
    }
    if (d->open) buf_cstr(b, d->n_axes ? ", ?" : "?");
    buf_byte(b, '}');
    if (d->priority >= 0) buf_printf(b, "p%lld", (long long)d->priority);
  }
  buf_byte(b, ']');
  if (s->n_replicated) {
    buf_cstr(b, ", replicated=");
    axis_set(b, s->replicated, s->n_replicated);
  }
  if (s->n_unreduced) {
    buf_cstr(b, ", unreduced=");
    axis_set(b, s->unreduced, s->n_unreduced);
  }
  buf_byte(b, '>');
}

void tw_sharding_list(Buf *b, const Attr *a) {
  buf_byte(b, '[');
  for (int i = 0; i < a->n; i++) {
    if (i) buf_cstr(b, ", ");
    if (a->items[i]->kind == AT_SHARDING) tw_sharding(b, a->items[i]->sharding);
  }
  buf_byte(b, ']');
}

void tw_axes(Buf *b, const Attr *a) {
  buf_byte(b, '{');
  for (int i = 0; i < a->n; i++) {
    if (i) buf_cstr(b, ", ");
    tw_quoted(b, a->items[i]->s);
  }
  buf_byte(b, '}');
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
    float_value(b, a->dtype, a->f);
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
    float_value(b, DT_F64, atol->f);
    buf_cstr(b, ", ");
  }
  if (rtol && (rtol->f != 0 || signbit(rtol->f))) {
    buf_cstr(b, "rtol = ");
    float_value(b, DT_F64, rtol->f);
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

static int64_t int_of(const Op *op, const char *name, int64_t dflt) {
  return op_int(op, name, dflt);
}

static void conv_side(Buf *b, const Op *op, const char *first, const char *second,
                      const char *spatial, const char *letters) {
  const int64_t *v;
  int n = op_ints(op, spatial, &v);
  int64_t f = int_of(op, first, -1), s = int_of(op, second, -1);
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

static const Struct structs[] = {
    {OP_GATHER, "dimension_numbers", "#stablehlo.gather",
     "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims "
     "start_index_map "
     "index_vector_dim"},
    {OP_DYNAMIC_GATHER, "dimension_numbers", "#stablehlo.gather",
     "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims "
     "start_index_map "
     "index_vector_dim"},
    {OP_SCATTER, "scatter_dimension_numbers", "#stablehlo.scatter",
     "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims "
     "scatter_dims_to_operand_dims index_vector_dim"},
    {OP_DOT_GENERAL, "dot_dimension_numbers", "#stablehlo.dot",
     "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions "
     "rhs_contracting_dimensions"},
    {OP_DOT_GENERAL, "algorithm", "#stablehlo.dot_algorithm",
     "lhs_precision_type rhs_precision_type accumulation_type lhs_component_count "
     "rhs_component_count "
     "num_primitive_operations allow_imprecise_accumulation"},
    {OP_CONVOLUTION, "dimension_numbers", "#stablehlo.conv",
     "input_batch_dimension input_feature_dimension input_spatial_dimensions "
     "kernel_input_feature_dimension "
     "kernel_output_feature_dimension kernel_spatial_dimensions output_batch_dimension "
     "output_feature_dimension "
     "output_spatial_dimensions"},
    {OP_DYNAMIC_CONV, "dimension_numbers", "#stablehlo.conv",
     "input_batch_dimension input_feature_dimension input_spatial_dimensions "
     "kernel_input_feature_dimension "
     "kernel_output_feature_dimension kernel_spatial_dimensions output_batch_dimension "
     "output_feature_dimension "
     "output_spatial_dimensions"},
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
               (long long)int_of(op, "channel_type", 0));
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
