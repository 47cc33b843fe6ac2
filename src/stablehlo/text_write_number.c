/* Numbers as text, exactly: what is written reads back to the same bits; dense data. */
#include "stablehlo/text_write_priv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

void tw_float_value(Buf *b, DType d, double v) {
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
