/* Numbers as attributes: one, and array<i64: 1, 2>. */
#include "stablehlo/text_priv.h"

#include <stdlib.h>

/* ---- numbers ---- */

static Err *int_in_range(Text *t, const char *at, DType d, int64_t v, bool neg) {
  int bits = d == DT_INDEX ? 64 : dtype_bits(d);
  if (bits >= 64) return NULL;
  bool uns = dtype_class(d) == DC_UINT;
  int64_t lo = uns ? 0 : -((int64_t)1 << (bits - 1)), hi = ((int64_t)1 << bits) - 1;
  if (d == DT_I1) lo = -1;
  if (v < lo || v > hi || (neg && uns && v))
    return text_err_at(t, at, "%lld does not fit in %s", (long long)v, dtype_name(d));
  return NULL;
}

static Err *float_of_bits(Text *t, DType d, const char *at, int64_t bits, double *out) {
  if (dtype_bits(d) < 64 && (bits < 0 || bits >= (int64_t)1 << dtype_bits(d)))
    return text_err_at(t, at, "bit pattern does not fit in %s", dtype_name(d));
  *out = float_decode(d, (uint64_t)bits);
  return NULL;
}

Err *text_number_attr(Text *t, Attr **out) {
  const char *at = t->start;
  bool neg = text_take(t, '-');
  if (text_is(t, T_FLOAT)) {
    double v;
    DType d = DT_F64;
    TRY(text_number(t, &v));
    if (neg) v = -v;
    if (text_take(t, ':')) {
      Type *ty;
      TRY(text_type(t, &ty));
      if (ty->kind != TY_SCALAR || !dtype_is_float(ty->dtype))
        return text_err_at(t, at, "a float needs a float type");
      d = ty->dtype;
      v = float_decode(d, float_encode(d, v));
    }
    *out = attr_float(t->m, d, v);
    return NULL;
  }
  if (!text_is(t, T_INT)) return text_expected(t, "a number");
  bool hex = t->s.n > 2 && t->s.p[1] == 'x';
  int64_t v;
  TRY(text_int(t, &v));
  if (neg) v = (int64_t)(0 - (uint64_t)v);
  DType d = DT_I64;
  if (text_take(t, ':')) {
    Type *ty;
    TRY(text_type(t, &ty));
    if (ty->kind != TY_SCALAR) return text_err_at(t, at, "an integer needs an integer type");
    d = ty->dtype;
  }
  if (dtype_is_float(d)) {
    double f = (double)v;
    if (hex) TRY(float_of_bits(t, d, at, v, &f));
    *out = attr_float(t->m, d, f);
    return NULL;
  }
  TRY(int_in_range(t, at, d, v, neg));
  if (dtype_class(d) == DC_SINT && dtype_bits(d) < 64) { /* 255 : i8 is -1 */
    int shift = 64 - dtype_bits(d);
    v = (int64_t)((uint64_t)v << shift) >> shift;
  }
  if (d == DT_I1) *out = attr_bool(t->m, v != 0);
  else *out = attr_int(t->m, d, v);
  return NULL;
}

/* ---- array<i64: 1, 2> ---- */

Err *text_dense_array(Text *t, Attr **out) {
  TRY(text_want(t, '<', "'<' after array"));
  DType d;
  Quant q;
  bool has;
  const char *at = t->start;
  TRY(text_elem(t, &d, &q, &has));
  if (dtype_is_float(d)) { /* kept as an array of floats */
    AttrList v = {0};
    Err *e = NULL;
    if (text_take(t, ':')) do {
        double f = 0;
        e = text_number(t, &f);
        *vec_push(&v) = attr_float(t->m, d, f);
      } while (!e && text_take(t, ','));
    if (!e) e = text_want(t, '>', "',' or '>'");
    if (!e) *out = attr_array(t->m, v.n, v.v);
    vec_free(&v);
    return e;
  }
  if (has || !(dtype_is_int(d) || d == DT_I1))
    return text_err_at(t, at, "array<> holds integers or floats");
  Ints v = {0};
  Err *e = NULL;
  if (text_take(t, ':')) do {
      int64_t x = 0;
      bool b;
      if (d == DT_I1 && t->tok == T_ID) {
        e = text_bool(t, &b);
        x = !e && b;
      } else {
        const char *where = t->start;
        e = text_int(t, &x);
        if (!e) e = int_in_range(t, where, d, x, false);
      }
      *vec_push(&v) = x;
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, '>', "',' or '>'");
  if (!e) *out = attr_ints(t->m, d, v.n, v.v);
  vec_free(&v);
  return e;
}
