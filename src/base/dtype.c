/* Element types: names, sizes, and conversion of single elements.
 *
 * Every float format of up to 16 bits is described by (exponent bits, mantissa bits, bias, kind of
 * special values); decoding is exact, encoding rounds once to nearest even. The kinds follow the
 * names: IEEE has infinities and NaNs; FN has only NaN (all ones); FNUZ has a single NaN at the bit
 * pattern of -0; E8M0FNU is an unsigned power of two; f4/f6 FN have no special values and saturate.
 */
#include "base/float_format.h"

#include <math.h>

typedef struct DTypeRow {
  const char *name;
  int bytes, bits;
  DTypeClass cls;
} DTypeRow;

static const DTypeRow rows[DT_COUNT] = {
#define X(id, num, name, bytes, bits, cls) [num] = {name, bytes, bits, DC_##cls},
    DTYPES(X)
#undef X
};

static const DTypeRow *row(DType t) { return (unsigned)t < DT_COUNT ? &rows[t] : &rows[0]; }

const char *dtype_name(DType t) { return row(t)->name ? row(t)->name : "invalid"; }
int dtype_bytes(DType t) { return row(t)->bytes; }
int dtype_bits(DType t) { return row(t)->bits; }
DTypeClass dtype_class(DType t) { return row(t)->cls; }

DType dtype_from_name(Str name) {
  for (int t = 1; t < DT_COUNT; t++)
    if (rows[t].name && str_is(name, rows[t].name)) return (DType)t;
  return DT_INVALID;
}

DType dtype_real_of(DType t) { return t == DT_C64 ? DT_F32 : t == DT_C128 ? DT_F64 : t; }

bool float_format(DType t, FloatFormat *f) {
  switch (t) {
  case DT_F16: *f = (FloatFormat){5, 10, 15, FLOAT_IEEE}; return true;
  case DT_BF16: *f = (FloatFormat){8, 7, 127, FLOAT_IEEE}; return true;
  case DT_F8E5M2: *f = (FloatFormat){5, 2, 15, FLOAT_IEEE}; return true;
  case DT_F8E4M3: *f = (FloatFormat){4, 3, 7, FLOAT_IEEE}; return true;
  case DT_F8E3M4: *f = (FloatFormat){3, 4, 3, FLOAT_IEEE}; return true;
  case DT_F8E4M3FN: *f = (FloatFormat){4, 3, 7, FLOAT_FN}; return true;
  case DT_F8E4M3B11FNUZ: *f = (FloatFormat){4, 3, 11, FLOAT_FNUZ}; return true;
  case DT_F8E4M3FNUZ: *f = (FloatFormat){4, 3, 8, FLOAT_FNUZ}; return true;
  case DT_F8E5M2FNUZ: *f = (FloatFormat){5, 2, 16, FLOAT_FNUZ}; return true;
  case DT_F4E2M1FN: *f = (FloatFormat){2, 1, 1, FLOAT_FINITE}; return true;
  case DT_F6E2M3FN: *f = (FloatFormat){2, 3, 1, FLOAT_FINITE}; return true;
  case DT_F6E3M2FN: *f = (FloatFormat){3, 2, 3, FLOAT_FINITE}; return true;
  default: return false;
  }
}

static double decode_small(FloatFormat f, uint64_t bits) {
  int total = 1 + f.exp + f.man;
  bool neg = (bits >> (total - 1)) & 1;
  int e = (int)(bits >> f.man) & ((1 << f.exp) - 1);
  int m = (int)bits & ((1 << f.man) - 1);
  int emax = (1 << f.exp) - 1;
  if (f.special == FLOAT_IEEE && e == emax)
    return m ? (neg ? -NAN : NAN) : (neg ? -INFINITY : INFINITY);
  if (f.special == FLOAT_FN && e == emax && m == (1 << f.man) - 1) return neg ? -NAN : NAN;
  if (f.special == FLOAT_FNUZ && neg && e == 0 && m == 0) return NAN;
  double v = e ? ldexp(1.0 + ldexp(m, -f.man), e - f.bias) : ldexp(m, 1 - f.bias - f.man);
  return neg ? -v : v;
}

static uint64_t encode_small(FloatFormat f, double v) {
  int total = 1 + f.exp + f.man;
  uint64_t sign_bit = (uint64_t)1 << (total - 1);
  uint64_t emax = ((uint64_t)1 << f.exp) - 1, mmask = ((uint64_t)1 << f.man) - 1;
  uint64_t sign = signbit(v) ? sign_bit : 0;
  uint64_t inf = emax << f.man, max_finite, nan;
  switch (f.special) {
  case FLOAT_IEEE:
    nan = inf | ((uint64_t)1 << (f.man - 1));
    max_finite = inf - 1;
    break;
  case FLOAT_FN:
    nan = inf | mmask;
    inf = nan;
    max_finite = nan - 1;
    break;
  case FLOAT_FNUZ:
    nan = inf = sign_bit;
    max_finite = (emax << f.man) | mmask;
    break;
  default:
    nan = sign_bit; /* no NaN in the format: MLIR and ml_dtypes give -0 */
    max_finite = inf = (emax << f.man) | mmask;
    break;
  }
  if (isnan(v)) return f.special == FLOAT_FNUZ || f.special == FLOAT_FINITE ? nan : nan | sign;
  if (isinf(v)) return f.special == FLOAT_FNUZ ? inf : sign | inf;
  double a = fabs(v);
  if (a == 0) return f.special == FLOAT_FNUZ ? 0 : sign;
  int e;
  frexp(a, &e);
  e -= 1; /* a = 1.x * 2^e */
  int emin = 1 - f.bias;
  if (e < emin) e = emin;
  /* in units of the last place at exponent e; doubles hold this exactly, nearbyint rounds to even
   */
  double q = nearbyint(ldexp(a, f.man - e));
  uint64_t r;
  if (q < ldexp(1.0, f.man)) {
    r = (uint64_t)q; /* subnormal (e == emin) */
  } else {
    if (q >= ldexp(1.0, f.man + 1)) q /= 2, e += 1;
    uint64_t biased = (uint64_t)(e + f.bias);
    if (biased > emax) biased = emax + 1;
    r = (biased << f.man) + ((uint64_t)q & mmask);
  }
  if (r > max_finite) return f.special == FLOAT_FNUZ ? inf : sign | inf;
  if (r == 0 && f.special == FLOAT_FNUZ) return 0;
  return sign | r;
}

float f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff, u;
  if (e == 31) {
    u = sign | 0x7f800000 | m << 13;
  } else if (e) {
    u = sign | (e + 112) << 23 | m << 13;
  } else if (m) {
    int shift = __builtin_clz(m) - 21;
    u = sign | (uint32_t)(113 - shift) << 23 | ((m << shift) & 0x3ff) << 13;
  } else {
    u = sign;
  }
  float f;
  memcpy(&f, &u, 4);
  return f;
}

uint16_t f32_to_f16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
  u &= 0x7fffffff;
  if (u > 0x7f800000) return sign | 0x7e00 | (uint16_t)((u >> 13) & 0x3ff);
  if (u >= 0x47800000) return sign | 0x7c00;
  if (u < 0x38800000) { /* subnormal or zero: add 0.5 so that the unit of rounding is 2^-24 */
    float a;
    memcpy(&a, &u, 4);
    a += 0.5f;
    uint32_t r;
    memcpy(&r, &a, 4);
    return sign | (uint16_t)(r - 0x3f000000);
  }
  u += 0xc8000fff + ((u >> 13) & 1);
  return sign | (uint16_t)(u >> 13);
}

uint16_t f32_to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16) | 0x40;
  u += 0x7fff + ((u >> 16) & 1);
  return (uint16_t)(u >> 16);
}

double float_decode(DType t, uint64_t bits) {
  FloatFormat f;
  switch (t) {
  case DT_F64: {
    double d;
    memcpy(&d, &bits, 8);
    return d;
  }
  case DT_F32: {
    uint32_t u = (uint32_t)bits;
    float x;
    memcpy(&x, &u, 4);
    return x;
  }
  case DT_F8E8M0FNU: return (bits & 255) == 255 ? NAN : ldexp(1.0, (int)(bits & 255) - 127);
  default: return float_format(t, &f) ? decode_small(f, bits) : 0;
  }
}

uint64_t float_encode(DType t, double v) {
  FloatFormat f;
  switch (t) {
  case DT_F64: {
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
  }
  case DT_F32: {
    float x = (float)v;
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
  }
  case DT_F8E8M0FNU: { /* the nearest power of two, of a tie the larger, as ml_dtypes and XLA have it; zero has none */
    if (isnan(v) || isinf(v) || v <= 0) return 255;
    if (v < 0x1p-126) return v > 0x1p-127;
    int e;
    if (frexp(v, &e) < 0.75) e -= 1; /* 0.5 <= the fraction < 1 */
    return e > 127 ? 255 : (uint64_t)(e + 127);
  }
  default: return float_format(t, &f) ? encode_small(f, v) : 0;
  }
}

double elem_get_f64(DType t, const void *p) {
  switch (t) {
  case DT_F32: {
    float f;
    memcpy(&f, p, 4);
    return f;
  }
  case DT_F64: {
    double d;
    memcpy(&d, p, 8);
    return d;
  }
  case DT_U64: {
    uint64_t u;
    memcpy(&u, p, 8);
    return (double)u;
  }
  default: break;
  }
  if (dtype_class(t) == DC_FLOAT) {
    uint16_t bits = 0;
    memcpy(&bits, p, (size_t)dtype_bytes(t));
    if (t == DT_BF16) return bf16_to_f32(bits);
    if (t == DT_F16) return f16_to_f32(bits);
    return float_decode(t, bits);
  }
  return (double)elem_get_i64(t, p);
}

void elem_set_f64(DType t, void *p, double v) {
  switch (t) {
  case DT_F32: {
    float f = (float)v;
    memcpy(p, &f, 4);
    return;
  }
  case DT_F64: memcpy(p, &v, 8); return;
  case DT_I1: *(uint8_t *)p = v != 0; return;
  default: break;
  }
  int bits = dtype_bits(t);
  switch (dtype_class(t)) {
  case DC_FLOAT: {
    uint64_t u = float_encode(t, v);
    memcpy(p, &u, (size_t)dtype_bytes(t));
    return;
  }
  case DC_SINT: {
    double hi = ldexp(1.0, bits - 1);
    int64_t i = isnan(v)  ? 0
                : v >= hi ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                : v < -hi ? -(int64_t)(((uint64_t)1 << (bits - 1)) - 1) - 1
                          : (int64_t)v;
    elem_set_i64(t, p, i);
    return;
  }
  case DC_UINT: {
    uint64_t top = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    uint64_t u = isnan(v) || v <= 0 ? 0 : v >= ldexp(1.0, bits) ? top : (uint64_t)v;
    elem_set_i64(t, p, (int64_t)u);
    return;
  }
  default: assert(!"elem_set_f64: not a real type");
  }
}

int64_t elem_get_i64(DType t, const void *p) {
  switch (t) {
  case DT_I1:
  case DT_U8:
  case DT_U4:
  case DT_U2: return *(const uint8_t *)p;
  case DT_I8:
  case DT_I4:
  case DT_I2: return *(const int8_t *)p;
  case DT_I16: {
    int16_t v;
    memcpy(&v, p, 2);
    return v;
  }
  case DT_U16: {
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
  }
  case DT_I32: {
    int32_t v;
    memcpy(&v, p, 4);
    return v;
  }
  case DT_U32: {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
  }
  case DT_I64:
  case DT_U64:
  case DT_INDEX: {
    int64_t v;
    memcpy(&v, p, 8);
    return v;
  }
  default: assert(!"elem_get_i64: not an integer type"); return 0;
  }
}

void elem_set_i64(DType t, void *p, int64_t v) {
  switch (t) {
  case DT_I1: *(uint8_t *)p = v != 0; return;
  case DT_U4: *(uint8_t *)p = (uint8_t)(v & 15); return;
  case DT_U2: *(uint8_t *)p = (uint8_t)(v & 3); return;
  case DT_I4: *(int8_t *)p = (int8_t)(((v & 15) ^ 8) - 8); return;
  case DT_I2: *(int8_t *)p = (int8_t)(((v & 3) ^ 2) - 2); return;
  default:
    assert(dtype_is_int(t) || t == DT_INDEX);
    memcpy(p, &v, (size_t)dtype_bytes(t)); /* little-endian */
  }
}
