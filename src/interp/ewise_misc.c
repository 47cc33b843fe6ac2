/* Element-wise operations with their own loops: compare, select, clamp, convert, complex, real and
 * imag of complex numbers, is_finite and the is_inf family (boolean results), reduce_precision,
 * next_after. Also bitcast_convert.
 */
#include <math.h>

#include "interp/ewise_priv.h"

#define CHUNK 64
typedef const void *const *Ins;

/* ---- compare --------------------------------------------------------------------------------- */

typedef enum { EQ, NE, GE, GT, LE, LT } Direction;
static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};

#define COMPARE(dir, r, a, b, n)                                 \
  switch (dir) {                                                 \
  case EQ:                                                       \
    for (int64_t j = 0; j < (n); j++) (r)[j] = (a)[j] == (b)[j]; \
    break;                                                       \
  case NE:                                                       \
    for (int64_t j = 0; j < (n); j++) (r)[j] = (a)[j] != (b)[j]; \
    break;                                                       \
  case GE:                                                       \
    for (int64_t j = 0; j < (n); j++) (r)[j] = (a)[j] >= (b)[j]; \
    break;                                                       \
  case GT:                                                       \
    for (int64_t j = 0; j < (n); j++) (r)[j] = (a)[j] > (b)[j];  \
    break;                                                       \
  case LE:                                                       \
    for (int64_t j = 0; j < (n); j++) (r)[j] = (a)[j] <= (b)[j]; \
    break;                                                       \
  default:                                                       \
    for (int64_t j = 0; j < (n); j++) (r)[j] = (a)[j] < (b)[j];  \
    break;                                                       \
  }

static void cmp_float(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  double a[CHUNK], b[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_d(k->in, in[0], i, m, stride[0], a);
    load_d(k->in, in[1], i, m, stride[1], b);
    uint8_t *r = (uint8_t *)out + i;
    COMPARE((Direction)k->mode[0], r, a, b, m)
  }
}

static void cmp_int(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  int64_t a[CHUNK], b[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_i(k->in, in[0], i, m, stride[0], a);
    load_i(k->in, in[1], i, m, stride[1], b);
    uint8_t *r = (uint8_t *)out + i;
    if (k->in == DT_U64)
      for (int64_t j = 0; j < m; j++) a[j] ^= INT64_MIN, b[j] ^= INT64_MIN;
    COMPARE((Direction)k->mode[0], r, a, b, m)
  }
}

/* Total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN, by the bit pattern as sign
 * and magnitude. */
static int64_t order_key(DType t, const void *p, int64_t at) {
  uint64_t u = load_bits(t, p, at), sign = (uint64_t)1 << (dtype_bits(t) - 1);
  if (t == DT_F8E8M0FNU) return (int64_t)u; /* no sign */
  return u & sign ? -(int64_t)(u & (sign - 1)) - 1 : (int64_t)u;
}
static void cmp_total(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  for (int64_t i = 0; i < n; i++) {
    int64_t a = order_key(k->in, in[0], i * stride[0]), b = order_key(k->in, in[1], i * stride[1]);
    uint8_t *r = (uint8_t *)out + i;
    COMPARE((Direction)k->mode[0], r, &a, &b, 1)
  }
}

static void cmp_complex(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  for (int64_t i = 0; i < n; i++) {
    Cx a, b;
    load_z(k->in, in[0], i, 1, stride[0], &a);
    load_z(k->in, in[1], i, 1, stride[1], &b);
    bool same = a.re == b.re && a.im == b.im;
    ((uint8_t *)out)[i] = k->mode[0] == NE ? !same : same;
  }
}

static bool resolve_compare(const Op *op, EwKernel *k) {
  Str dir = op_str(op, "comparison_direction"), type = op_str(op, "compare_type");
  k->mode[0] = -1;
  for (int i = 0; i < COUNT_OF(directions); i++)
    if (str_is(dir, directions[i])) k->mode[0] = i;
  switch (dtype_class(k->in)) {
  case DC_FLOAT: k->run = str_is(type, "TOTALORDER") ? cmp_total : cmp_float; break;
  case DC_COMPLEX: k->run = cmp_complex; break;
  case DC_OTHER: return false;
  default: k->run = cmp_int; break;
  }
  return k->mode[0] >= 0 && (k->run != cmp_complex || k->mode[0] == EQ || k->mode[0] == NE);
}

/* ---- select, clamp --------------------------------------------------------------------------- */

#define SELECT(T)                                                       \
  do {                                                                  \
    const T *x = in[1], *y = in[2];                                     \
    T *r = out;                                                         \
    for (int64_t i = 0; i < n; i++)                                     \
      r[i] = pred[i * stride[0]] ? x[i * stride[1]] : y[i * stride[2]]; \
  } while (0)
typedef struct Two {
  uint64_t a, b;
} Two;

static void run_select(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  const uint8_t *pred = in[0];
  switch (dtype_bytes(k->in)) {
  case 1: SELECT(uint8_t); break;
  case 2: SELECT(uint16_t); break;
  case 4: SELECT(uint32_t); break;
  case 8: SELECT(uint64_t); break;
  default: SELECT(Two); break;
  }
}
#undef SELECT

/* min(max(x, lo), hi), NaN wins */
static void clamp_float(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  double lo[CHUNK], x[CHUNK], hi[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    load_d(k->in, in[0], i, m, stride[0], lo);
    load_d(k->in, in[1], i, m, stride[1], x);
    load_d(k->in, in[2], i, m, stride[2], hi);
    for (int64_t j = 0; j < m; j++) {
      double v = isnan(lo[j]) || isnan(x[j]) ? NAN : x[j] < lo[j] ? lo[j] : x[j];
      x[j] = isnan(hi[j]) || isnan(v) ? NAN : v > hi[j] ? hi[j] : v;
    }
    store_d(k->out, out, i, m, x);
  }
}

static void clamp_int(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  int64_t flip = k->in == DT_U64 ? INT64_MIN : 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t lo, x, hi;
    load_i(k->in, in[0], i, 1, stride[0], &lo);
    load_i(k->in, in[1], i, 1, stride[1], &x);
    load_i(k->in, in[2], i, 1, stride[2], &hi);
    x = (x ^ flip) < (lo ^ flip) ? lo : x;
    x = (x ^ flip) > (hi ^ flip) ? hi : x;
    store_i(k->out, out, i, 1, &x);
  }
}

/* ---- convert --------------------------------------------------------------------------------- */

/* A 64-bit integer as a double rounded to odd, so that a second rounding to a narrower float is
 * right. */
static double int_to_odd(int64_t v, bool is_unsigned) {
  bool neg = !is_unsigned && v < 0;
  uint64_t u = neg ? 0 - (uint64_t)v : (uint64_t)v;
  int extra = u >> 53 ? 11 - __builtin_clzll(u) : 0;
  if (extra > 0) {
    uint64_t lost = u & (((uint64_t)1 << extra) - 1);
    u >>= extra;
    if (lost) u |= 1;
  } else {
    extra = 0;
  }
  double d = ldexp((double)u, extra);
  return neg ? -d : d;
}

static int64_t float_to_int(DType t, double v) {
  bool sign = dtype_class(t) == DC_SINT;
  int bits = dtype_bits(t) - (sign ? 1 : 0);
  if (isnan(v)) return 0;
  v = trunc(v);
  double top = ldexp(1, bits);
  if (v >= top) return bits == 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1);
  if (sign && v < -top) return bits == 63 ? INT64_MIN : -((int64_t)1 << bits);
  if (!sign && v < 0) return 0;
  return bits == 64 ? (int64_t)(uint64_t)v : (int64_t)v;
}

static void run_convert(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  DType from = k->in, to = k->out;
  bool from_float = dtype_is_float(from), from_z = dtype_is_complex(from);
  bool to_float = dtype_is_float(to), to_z = dtype_is_complex(to);
  double d[CHUNK];
  int64_t v[CHUNK];
  Cx z[CHUNK];
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t m = MIN(CHUNK, n - i);
    if (from_z) {
      load_z(from, in[0], i, m, stride[0], z);
      if (to_z) {
        store_z(to, out, i, m, z);
        continue;
      }
      for (int64_t j = 0; j < m; j++)
        d[j] = (double)z[j].re; /* the imaginary part is dropped, also for i1 */
    } else if (from_float) {
      load_d(from, in[0], i, m, stride[0], d);
    } else {
      load_i(from, in[0], i, m, stride[0], v);
      if (to_float || to_z) {
        bool u = from == DT_U64;
        for (int64_t j = 0; j < m; j++)
          d[j] = to == DT_F64 || to == DT_C128 ? (u ? (double)(uint64_t)v[j] : (double)v[j])
                                               : int_to_odd(v[j], u);
      } else {
        if (to == DT_I1)
          for (int64_t j = 0; j < m; j++) v[j] = v[j] != 0;
        store_i(to, out, i, m, v);
        continue;
      }
    }
    if (to_float) {
      store_d(to, out, i, m, d);
    } else if (to_z) {
      for (int64_t j = 0; j < m; j++) z[j] = (Cx){(long double)d[j], 0};
      store_z(to, out, i, m, z);
    } else {
      for (int64_t j = 0; j < m; j++) v[j] = to == DT_I1 ? d[j] != 0 : float_to_int(to, d[j]);
      store_i(to, out, i, m, v);
    }
  }
}

/* ---- complex, parts -------------------------------------------------------------------------- */

static void run_complex(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  for (int64_t i = 0; i < n; i++) {
    double re, im;
    load_d(k->in, in[0], i, 1, stride[0], &re);
    load_d(k->in, in[1], i, 1, stride[1], &im);
    Cx z = {(long double)re, (long double)im};
    store_z(k->out, out, i, 1, &z);
  }
}

static void run_part(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  size_t bytes = (size_t)dtype_bytes(k->out);
  size_t at = k->kind == OP_IMAG ? bytes : 0;
  for (int64_t i = 0; i < n; i++)
    memcpy((char *)out + (size_t)i * bytes,
           (const char *)in[0] + (size_t)(i * stride[0]) * 2 * bytes + at, bytes);
}

static void run_zero(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  (void)in, (void)stride;
  double zero = 0;
  for (int64_t i = 0; i < n; i++) store_d(k->out, out, i, 1, &zero);
}

/* ---- boolean classification ------------------------------------------------------------------ */

static void run_classify(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  uint8_t *r = out;
  for (int64_t i = 0; i < n; i++) {
    Cx z;
    load_z(k->in, in[0], i, 1, stride[0], &z);
    bool inf = isinf(z.re) || isinf(z.im);
    switch (k->kind) {
    case OP_IS_FINITE: r[i] = isfinite(z.re) && isfinite(z.im); break;
    case OP_CHLO_IS_INF: r[i] = inf; break;
    case OP_CHLO_IS_POS_INF: r[i] = inf && z.re > 0; break;
    default: r[i] = inf && z.re < 0; break;
    }
  }
}

/* ---- work on the bits of a float ------------------------------------------------------------- */

/* Mantissa and exponent bits of a format. */
static bool float_fields(DType t, int *exp, int *man) {
  switch (t) {
  case DT_F64: *exp = 11, *man = 52; return true;
  case DT_F32: *exp = 8, *man = 23; return true;
  case DT_F16: *exp = 5, *man = 10; return true;
  case DT_BF16: *exp = 8, *man = 7; return true;
  case DT_F8E5M2: *exp = 5, *man = 2; return true;
  case DT_F8E4M3: *exp = 4, *man = 3; return true;
  case DT_F8E3M4: *exp = 3, *man = 4; return true;
  default: return false;
  }
}

/* Rounds the mantissa to mode[1] bits (nearest even), then makes what exceeds the range of mode[0]
 * exponent bits infinite and flushes what is below its smallest normal number to zero. NaN stays; a
 * format without mantissa turns it into infinity. u: the bits of a number with exp and man of them. */
static uint64_t reduced(const EwKernel *k, uint64_t u, int exp, int man) {
  uint64_t sign = (uint64_t)1 << (exp + man), inf = (((uint64_t)1 << exp) - 1) << man;
  uint64_t a = u & (sign - 1);
  if (a > inf) return k->mode[1] == 0 ? (u & sign) | inf : u;
  if (k->mode[1] < man) {
    int drop = man - k->mode[1];
    uint64_t odd = (a >> drop) & 1, half = ((uint64_t)1 << (drop - 1)) - 1;
    a = (a + half + odd) & ~(((uint64_t)1 << drop) - 1);
  }
  if (k->mode[0] < exp) {
    uint64_t bias = ((uint64_t)1 << (exp - 1)) - 1, small = ((uint64_t)1 << (k->mode[0] - 1)) - 1;
    uint64_t e = a >> man;
    if (e > bias + small) a = inf;
    else if (e <= bias - small) a = 0;
  }
  return (u & sign) | MIN(a, inf);
}

/* Formats without infinities, or with another bias, are reduced as f32, as in XLA. */
static void run_reduce_precision(const EwKernel *k, int64_t n, void *out, Ins in,
                                 const int64_t *stride) {
  int exp, man;
  if (float_fields(k->in, &exp, &man)) {
    for (int64_t i = 0; i < n; i++)
      store_bits(k->out, out, i, reduced(k, load_bits(k->in, in[0], i * stride[0]), exp, man));
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    double d;
    load_d(k->in, in[0], i, 1, stride[0], &d);
    float x = (float)d;
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    u = (uint32_t)reduced(k, u, 8, 23);
    memcpy(&x, &u, sizeof x);
    d = x;
    store_d(k->out, out, i, 1, &d);
  }
}

static void run_next_after(const EwKernel *k, int64_t n, void *out, Ins in, const int64_t *stride) {
  uint64_t sign = (uint64_t)1 << (dtype_bits(k->in) - 1);
  for (int64_t i = 0; i < n; i++) {
    uint64_t u = load_bits(k->in, in[0], i * stride[0]),
             to = load_bits(k->in, in[1], i * stride[1]);
    double x, y;
    load_d(k->in, in[0], i, 1, stride[0], &x);
    load_d(k->in, in[1], i, 1, stride[1], &y);
    if (isnan(x) || isnan(y)) {
      double nan = NAN;
      store_d(k->out, out, i, 1, &nan);
      continue;
    }
    if (x == y) u = to;
    else if (x == 0) u = (to & sign) | 1;
    else if ((x < y) == (x > 0)) u++; /* away from zero */
    else u--;
    if (isnan(float_decode(k->in, u))) u = 0; /* of types without a negative zero */
    store_bits(k->out, out, i, u);
  }
}

bool ewise_misc(const Op *op, EwKernel *k) {
  switch (op->kind) {
  case OP_COMPARE: return resolve_compare(op, k);
  case OP_SELECT: k->run = run_select; return true;
  case OP_CLAMP:
    if (dtype_class(k->in) == DC_OTHER || dtype_is_complex(k->in)) return false;
    k->run = dtype_is_float(k->in) ? clamp_float : clamp_int;
    return true;
  case OP_CONVERT:
    if (dtype_class(k->in) == DC_OTHER || dtype_class(k->out) == DC_OTHER) return false;
    k->run = run_convert;
    return true;
  case OP_COMPLEX: k->run = run_complex; return dtype_is_complex(k->out);
  case OP_REAL:
  case OP_IMAG:
    if (dtype_is_complex(k->in)) k->run = run_part;
    else if (op->kind == OP_IMAG) k->run = run_zero;
    else return false;
    return true;
  case OP_IS_FINITE:
  case OP_CHLO_IS_INF:
  case OP_CHLO_IS_NEG_INF:
  case OP_CHLO_IS_POS_INF:
    k->run = run_classify;
    return dtype_is_float(k->in) || dtype_is_complex(k->in);
  case OP_REDUCE_PRECISION:
    k->mode[0] = (int)op_int(op, "exponent_bits", 0);
    k->mode[1] = (int)op_int(op, "mantissa_bits", 0);
    k->run = run_reduce_precision;
    return dtype_is_float(k->in) && k->mode[0] >= 1 && k->mode[1] >= 0;
  case OP_CHLO_NEXT_AFTER: k->run = run_next_after; return dtype_is_float(k->in);
  default: return false;
  }
}

/* ---- bitcast_convert ------------------------------------------------------------------------- */

/* Elements as a stream of bits, the first element lowest; complex numbers are (re, im). i1 counts
 * as one bit. */
Err *sem_bitcast_convert(Eval *e) {
  const Tensor *in = e->in[0];
  DType to = eval_out_dtype(e, 0);
  int from_bits = dtype_bits(in->dtype), to_bits = dtype_bits(to);
  Tensor *out;
  int64_t dims[MAX_RANK + 1];
  int rank = in->rank;
  memcpy(dims, in->dims, sizeof *dims * (size_t)rank);
  if (from_bits > to_bits) {
    if (from_bits % to_bits)
      return op_err(e->op, ERR_INVALID, "%d bits do not divide %d", to_bits, from_bits);
    dims[rank++] = from_bits / to_bits;
  } else if (from_bits < to_bits) {
    if (!rank || dims[rank - 1] != to_bits / from_bits)
      return op_err(e->op, ERR_INVALID, "the last dimension must be %d", to_bits / from_bits);
    rank--;
  }
  TRY(eval_out_dims(e, 0, rank, dims, &out));
  if (from_bits == to_bits && dtype_bytes(in->dtype) == dtype_bytes(to) && from_bits >= 8) {
    memcpy(out->data, in->data, tensor_bytes(in));
    return NULL;
  }
  int part =
      MIN(MIN(from_bits, to_bits), 64); /* moved at once; widths are powers of two, or equal */
  int64_t parts = in->count * (from_bits / part);
  for (int64_t i = 0; i < parts; i++) {
    int64_t src = i * part / from_bits, dst = i * part / to_bits;
    int src_at = (int)(i * part % from_bits), dst_at = (int)(i * part % to_bits);
    uint64_t v;
    if (from_bits > 64) v = ((const uint64_t *)in->data)[2 * src + src_at / 64] >> (src_at % 64);
    else v = load_bits(in->dtype, in->data, src) >> src_at;
    if (part < 64) v &= ((uint64_t)1 << part) - 1;
    if (to_bits > 64) {
      uint64_t *w = (uint64_t *)out->data + 2 * dst + dst_at / 64;
      if (dst_at % 64 == 0) *w = 0;
      *w |= v << (dst_at % 64);
    } else {
      uint64_t w = dst_at ? load_bits(to, out->data, dst) : 0;
      store_bits(to, out->data, dst, w | v << dst_at);
    }
  }
  return NULL;
}
