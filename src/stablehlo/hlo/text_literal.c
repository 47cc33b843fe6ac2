/* Shapes and constants of HLO text. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/pb.h"
#include "stablehlo/hlo/text.h"

/* ---- shapes: as bytes of the message --------------------------------------------------------- */

static Err *shape(HloText *t, int depth, Buf *out);

static Err *tuple_shape(HloText *t, int depth, Buf *out) {
  pb_int(out, 2, HLO_TUPLE);
  for (bool first = true; !hlo_take(t, ")"); first = false) {
    if (!first) TRY(hlo_want(t, ","));
    Buf elem = {0};
    Err *e = shape(t, depth + 1, &elem);
    if (!e) pb_bytes(out, 4, &elem);
    buf_free(&elem);
    TRY(e);
  }
  return NULL;
}

/* {1,0:T(8,128)S(1)}: of a layout the order alone is read, tiles and memory spaces are the compiler's. */
static Err *layout(HloText *t, int rank, Buf *out) {
  Str text;
  TRY(hlo_nested(t, '{', &text));
  HloText in = *t;
  in.p = text.p, in.end = text.p + text.n;
  int64_t order[HLO_MAX_DEPTH];
  int n = 0;
  for (; n < HLO_MAX_DEPTH; n++) {
    hlo_skip(&in);
    if (in.p >= in.end || !isdigit((unsigned char)*in.p)) break;
    TRY(hlo_int(&in, &order[n]));
    hlo_take(&in, ",");
  }
  if (n != rank || !n) return NULL;
  Buf b = {0};
  pb_ints(&b, 1, n, order);
  pb_msg(out, 5, &b);
  return NULL;
}

static Err *dimensions(HloText *t, int *rank, Buf *out) {
  int64_t dims[HLO_MAX_DEPTH], dynamic[HLO_MAX_DEPTH];
  bool any = false;
  int n = 0;
  for (; !hlo_take(t, "]"); n++) {
    if (n == HLO_MAX_DEPTH) return hlo_text_err(t, "more than %d dimensions", HLO_MAX_DEPTH);
    if (n) TRY(hlo_want(t, ","));
    any |= dynamic[n] = hlo_take(t, "<=");
    TRY(hlo_int(t, &dims[n]));
  }
  pb_ints(out, 3, n, dims);
  if (any) pb_ints(out, 6, n, dynamic);
  *rank = n;
  return NULL;
}

static Err *shape(HloText *t, int depth, Buf *out) {
  if (depth > HLO_MAX_DEPTH) return hlo_text_err(t, "tuples more than %d deep", HLO_MAX_DEPTH);
  if (hlo_take(t, "(")) return tuple_shape(t, depth, out);
  Str name;
  hlo_skip(t);
  const char *at = t->p;
  TRY(hlo_word(t, &name));
  int type = hlo_element_type(name);
  if (!type) {
    t->p = at;
    return hlo_text_err(t, "'%.*s' is no element type", STR_ARG(name));
  }
  pb_int(out, 2, type);
  int rank;
  TRY(hlo_want(t, "["));
  TRY(dimensions(t, &rank, out));
  bool laid_out = t->p < t->end && *t->p == '{'; /* after a blank, it is a computation's body */
  return laid_out ? layout(t, rank, out) : NULL;
}

Err *hlo_text_shape(HloText *t, ProtobufCBinaryData *out) {
  Buf b = {0};
  Err *e = shape(t, 0, &b);
  if (!e) *out = (ProtobufCBinaryData){b.n, arena_dup(t->a, b.p, b.n)};
  buf_free(&b);
  return e;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* A number that is no decimal: inf, nan, -nan(0x7f), true. */
static bool special(Str word, double *out) {
  bool minus = word.n && word.p[0] == '-';
  Str w = {word.p + minus, word.n - minus};
  double v;
  if (str_is(w, "inf")) v = INFINITY;
  else if (str_starts(w, "nan")) v = NAN;
  else if (str_is(w, "true")) v = 1;
  else if (str_is(w, "false")) v = 0;
  else return false;
  *out = minus ? -v : v;
  return true;
}

static bool in_number(char c) { return isalnum((unsigned char)c) || strchr("+-._", c); }

static Err *number_text(HloText *t, Str *out) {
  hlo_skip(t);
  const char *from = t->p;
  while (t->p < t->end && *t->p && in_number(*t->p)) t->p++;
  *out = (Str){from, (size_t)(t->p - from)};
  if (hlo_at(t, "(") && str_ends(*out, "nan")) { /* its payload is not kept */
    Str payload;
    TRY(hlo_nested(t, '(', &payload));
  }
  return out->n ? NULL : hlo_text_err(t, "a number is expected");
}

static Err *real_number(HloText *t, DType dtype, void *to) {
  Str s;
  TRY(number_text(t, &s));
  char digits[64], *end = digits;
  double v = 0;
  if (special(s, &v)) return elem_set_f64(dtype, to, v), NULL;
  if (s.n < sizeof digits) {
    memcpy(digits, s.p, s.n);
    digits[s.n] = 0;
    if (dtype_is_float(dtype)) elem_set_f64(dtype, to, strtod(digits, &end));
    else if (dtype == DT_U64) elem_set_i64(dtype, to, (int64_t)strtoull(digits, &end, 10));
    else elem_set_i64(dtype, to, strtoll(digits, &end, 10));
  }
  return end != digits && !*end ? NULL : hlo_text_err(t, "'%.*s' is no number", STR_ARG(s));
}

/* Of a complex type: (real, imaginary). */
static Err *number(HloText *t, DType dtype, char *to) {
  if (!dtype_is_complex(dtype)) return real_number(t, dtype, to);
  DType part = dtype_real_of(dtype);
  if (!hlo_take(t, "(")) {
    elem_set_f64(part, to + dtype_bytes(part), 0);
    return real_number(t, part, to);
  }
  TRY(real_number(t, part, to));
  TRY(hlo_want(t, ","));
  TRY(real_number(t, part, to + dtype_bytes(part)));
  return hlo_want(t, ")");
}

/* The text holds every number, so that a large constant needs a large file. */
static Err *numbers(HloText *t, const HloShape *s, int64_t count, char *data) {
  int64_t bytes = dtype_bytes(s->dtype);
  int depth = 0;
  for (int64_t i = 0; i < count || depth;) {
    if (hlo_take(t, "{")) depth++;
    else if (depth && hlo_take(t, "}")) depth--;
    else if (hlo_take(t, ",")) continue;
    else if (i == count)
      return hlo_text_err(t, "more numbers than the constant's %lld", (long long)count);
    else TRY(number(t, s->dtype, data + i++ * bytes));
  }
  return NULL;
}

/* Skips braces of a constant of no elements. */
static Err *no_numbers(HloText *t) {
  Str rest;
  return hlo_at(t, "{") ? hlo_nested(t, '{', &rest) : NULL;
}

Err *hlo_text_literal(HloText *t, ProtobufCBinaryData bytes, Hlo__Literal **out) {
  HloShape *s;
  TRY(hlo_shape(t->a, bytes, &s));
  if (s->element_type == HLO_TUPLE || s->element_type == HLO_TOKEN)
    return hlo_text_err(t, "a constant that is a tuple");
  int64_t count = 1;
  for (int i = 0; i < s->rank; i++) count *= s->dims[i];
  if (hlo_at(t, "{...}"))
    return err_hint(hlo_text_err(t, "the constant's numbers were left out"),
                    "XLA writes them with --xla_dump_large_constants, or dump HLO protos");
  if (count > t->end - t->p)
    return hlo_text_err(t, "a constant of %lld numbers, and the file ends before them",
                        (long long)count);
  char *data = arena_alloc(t->a, (size_t)count * (size_t)dtype_bytes(s->dtype));
  TRY(count ? numbers(t, s, count, data) : no_numbers(t));
  *out = HLO_NEW(t, literal);
  hlo_literal_set(t->a, *out, s->dtype, data, count);
  return NULL;
}
