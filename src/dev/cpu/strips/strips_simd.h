/* What is done to strips, for one width: LANES numbers at a time. Included by strips_avx2.c and
 * strips_avx512.c with FN, LANES, V_FMA, V_SQRT, V_ROUND (a mode of _mm_round_ps), V_BLEND, V_DOWN (the
 * lanes from the n-th on), V_FIRST (the first in all lanes), HALVES (as many f16), V_TO_HALF,
 * V_FROM_HALF and, where there are, V_LOAD_SOME and V_STORE_SOME. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "dev/cpu/loops/lanes.h"
#include "dev/cpu/strips/strips_priv.h"

typedef float F __attribute__((vector_size(LANES * 4)));
typedef int32_t I __attribute__((vector_size(LANES * 4)));
typedef uint32_t U __attribute__((vector_size(LANES * 4)));
typedef F F1 __attribute__((aligned(4), may_alias));
typedef I I1 __attribute__((aligned(4), may_alias));
typedef U U1 __attribute__((aligned(4), may_alias));
#define INLINE FN static inline __attribute__((always_inline, unused))
#define MASK I

INLINE F pick(I mask, F a, F b) { return V_BLEND(mask, a, b); }
INLINE I pick_i(I mask, I a, I b) { return (I)V_BLEND(mask, (F)a, (F)b); }

#define FORM(name, ...) INLINE F form_##name(__VA_ARGS__)
#define PART(name, ...) INLINE F name(__VA_ARGS__)
#define CALL(name, ...) name(__VA_ARGS__)
#define FORM_CALL(name, ...) form_##name(__VA_ARGS__)
#define K(v) (((F){0}) + (float)(v))
#define KI(v) (((I){0}) + (v))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define FMA V_FMA
#define ABS(a) ((F)((I)(a)&0x7fffffff))
#define SQRT V_SQRT
#define RINT(a) V_ROUND(a, _MM_FROUND_CUR_DIRECTION)
#define LESS(a, b) ((a) < (b))
#define MORE(a, b) ((a) > (b))
#define EQUAL(a, b) ((a) == (b))
#define NOT_AT_LEAST(a, b) (~((a) >= (b)))
#define IS_NAN(a) ((a) != (a))
#define MORE_I(a, b) ((a) > (b))
#define LESS_I(a, b) ((a) < (b))
#define EITHER(a, b) ((a) | (b))
#define PICK pick
#define PICK_I pick_i
#define ADD_I(a, b) ((I)((U)(a) + (U)(b)))
#define SUB_I(a, b) ((I)((U)(a) - (U)(b)))
#define SHL_I(a, n) ((I)((U)(a) << (n)))
#define SAR_I(a, n) ((a) >> (n))
#define BITS(a) ((I)(a))
#define FROM_BITS(a) ((F)(a))
#define TO_INT(a) __builtin_convertvector(a, I)
#define TO_FLOAT(a) __builtin_convertvector(a, F)
#include "dev/cpu/loops/math_forms.h"

/* The first n lanes, n < LANES; the others are 0. */
#ifndef V_LOAD_SOME
INLINE F load_some(const void *p, int64_t n) {
  F v = {0};
  memcpy(&v, p, (size_t)n * 4);
  return v;
}
INLINE void store_some(void *p, int64_t n, F v) { memcpy(p, &v, (size_t)n * 4); }
#define V_LOAD_SOME load_some
#define V_STORE_SOME store_some
#endif

/* ---- strips to strips ---- */

/* What is left over is done as a whole vector beside, so that it has the same digits. STEP: what an
 * operand moves on by; 0 when it is the same all along. */
#define STEP(k) (same >> (k)&1 ? 0 : 4 * LANES)
#define LOAD(T, v, p, n) T v = (T)V_LOAD_SOME(p, n)
#define STORE(R, q, n, expr) V_STORE_SOME(q, n, (F)(R)(expr))
#define LOOP1(name, T, R, expr)                                                            \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const char *p = in[0];                                                                 \
    const int64_t s = STEP(0);                                                             \
    char *q = to;                                                                          \
    for (; n >= LANES; n -= LANES, p += s, q += 4 * LANES) {                               \
      T x = *(const T##1 *)p;                                                              \
      *(R##1 *)q = (R)(expr);                                                              \
    }                                                                                      \
    if (n) {                                                                               \
      LOAD(T, x, p, n);                                                                    \
      STORE(R, q, n, expr);                                                                \
    }                                                                                      \
  }
#define LOOP2(name, T, R, expr)                                                            \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const char *p = in[0], *p1 = in[1];                                                    \
    const int64_t s = STEP(0), s1 = STEP(1);                                               \
    char *q = to;                                                                          \
    for (; n >= LANES; n -= LANES, p += s, p1 += s1, q += 4 * LANES) {                     \
      T x = *(const T##1 *)p, y = *(const T##1 *)p1;                                       \
      *(R##1 *)q = (R)(expr);                                                              \
    }                                                                                      \
    if (n) {                                                                               \
      LOAD(T, x, p, n);                                                                    \
      LOAD(T, y, p1, n);                                                                   \
      STORE(R, q, n, expr);                                                                \
    }                                                                                      \
  }
#define LOOP3(name, T0, T, expr)                                                           \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const char *p = in[0], *p1 = in[1], *p2 = in[2];                                       \
    const int64_t s = STEP(0), s1 = STEP(1), s2 = STEP(2);                                 \
    char *q = to;                                                                          \
    for (; n >= LANES; n -= LANES, p += s, p1 += s1, p2 += s2, q += 4 * LANES) {           \
      T0 x = *(const T0##1 *)p;                                                            \
      T y = *(const T##1 *)p1, z = *(const T##1 *)p2;                                      \
      *(T##1 *)q = (T)(expr);                                                              \
    }                                                                                      \
    if (n) {                                                                               \
      LOAD(T0, x, p, n);                                                                   \
      LOAD(T, y, p1, n);                                                                   \
      LOAD(T, z, p2, n);                                                                   \
      STORE(T, q, n, expr);                                                                \
    }                                                                                      \
  }

/* A NaN on either side wins. */
INLINE F f_max(F a, F b) { return pick(b != b, b, pick(~(a < b), a, b)); }
INLINE F f_min(F a, F b) { return pick(b != b, b, pick(~(a > b), a, b)); }
INLINE F f_sign(F x) { return pick(x < 0, K(-1), pick(x > 0, K(1), x)); }
INLINE I f_to_i32(F x) { /* the nearest that there is; NaN: 0 */
  I r = pick_i(x >= K(2147483648.0), KI(INT32_MAX), __builtin_convertvector(x, I));
  return r & (x == x);
}

LOOP1(copy, I, I, x)
LOOP1(neg, F, F, -x)
LOOP1(abs, F, F, ABS(x))
LOOP1(sqrt, F, F, V_SQRT(x))
LOOP1(rsqrt, F, F, K(1) / V_SQRT(x))
LOOP1(exp, F, F, form_exp(x))
LOOP1(expm1, F, F, form_expm1(x))
LOOP1(log, F, F, form_log(x))
LOOP1(log1p, F, F, form_log1p(x))
LOOP1(tanh, F, F, form_tanh(x))
LOOP1(logistic, F, F, form_logistic(x))
LOOP1(erf, F, F, form_erf(x))
LOOP1(erfc, F, F, form_erfc(x))
LOOP1(erf_inv, F, F, form_erf_inv(x))
LOOP1(floor, F, F, V_ROUND(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
LOOP1(ceil, F, F, V_ROUND(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
LOOP1(round, F, F, V_ROUND(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
LOOP1(sign, F, F, f_sign(x))
LOOP1(finite, F, I, ABS(x) < K(INFINITY))
LOOP1(f_to_i, F, I, f_to_i32(x))
LOOP1(f_to_mask, F, I, x != 0)
LOOP1(i_to_f, I, F, __builtin_convertvector(x, F))
LOOP1(i_to_mask, I, I, x != 0)
LOOP1(mask_to_f, I, F, (F)(x &(I)K(1)))
LOOP1(mask_to_i, I, I, x & 1)
LOOP2(add, F, F, x + y)
LOOP2(sub, F, F, x - y)
LOOP2(mul, F, F, x *y)
LOOP2(div, F, F, x / y)
LOOP2(max, F, F, f_max(x, y))
LOOP2(min, F, F, f_min(x, y))
LOOP2(eq, F, I, x == y)
LOOP2(ne, F, I, x != y)
LOOP2(ge, F, I, x >= y)
LOOP2(gt, F, I, x > y)
LOOP2(le, F, I, x <= y)
LOOP2(lt, F, I, x < y)
LOOP3(select, I, I, pick_i(x, y, z))
LOOP3(clamp, F, F, f_min(f_max(y, x), z))
LOOP1(i_neg, U, U, -x)
LOOP1(i_abs, I, U, pick_i(x < 0, (I)(-(U)x), x))
LOOP1(not, I, I, ~x)
LOOP2(i_add, U, U, x + y)
LOOP2(i_sub, U, U, x - y)
LOOP2(i_mul, U, U, x *y)
LOOP2(i_max, I, I, pick_i(x > y, x, y))
LOOP2(i_min, I, I, pick_i(x < y, x, y))
LOOP2(u_max, U, I, pick_i(x > y, (I)x, (I)y))
LOOP2(u_min, U, I, pick_i(x < y, (I)x, (I)y))
LOOP2(and, I, I, x &y)
LOOP2(or, I, I, x | y)
LOOP2(xor, I, I, x ^ y)
LOOP2(shl, U, U, (x << (y & 31)) & (U)(y < 32))
LOOP2(shr, U, U, (x >> (y & 31)) & (U)(y < 32))
LOOP2(sar, I, I, x >> pick_i((I)((U)y > 31), KI(31), y))
LOOP2(i_eq, I, I, x == y)
LOOP2(i_ne, I, I, x != y)
LOOP2(i_ge, I, I, x >= y)
LOOP2(i_gt, I, I, x > y)
LOOP2(i_le, I, I, x <= y)
LOOP2(i_lt, I, I, x < y)
LOOP2(u_ge, U, I, x >= y)
LOOP2(u_gt, U, I, x > y)
LOOP2(u_le, U, I, x <= y)
LOOP2(u_lt, U, I, x < y)

FN static void strip_load_mask(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const uint8_t *p = in[0];
  int32_t *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = -(int32_t)(p[i] != 0);
}

FN static void strip_store_mask(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const int32_t *p = in[0];
  uint8_t *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = (uint8_t)(p[i] & 1);
}

/* To the nearest even; a NaN stays one. */
LOOP1(to_bf16, U, U,
      (U)pick_i((I)((x & 0x7fffffff) > 0x7f800000), (I)(x | 0x400000),
                (I)(x + 0x7fff + (x >> 16 & 1))) &
          0xffff0000)

FN static void strip_load_bf16(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const uint16_t *p = in[0];
  uint32_t *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = (uint32_t)p[i] << 16;
}

FN static void strip_store_bf16(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const uint32_t *p = in[0];
  uint16_t *q = to;
  for (int64_t i = 0; i < n; i++) {
    bool nan = (p[i] & 0x7fffffff) > 0x7f800000;
    q[i] = (uint16_t)((nan ? p[i] | 0x400000 : p[i] + 0x7fff + (p[i] >> 16 & 1)) >> 16);
  }
}

LOOP1(to_f16, F, F, V_FROM_HALF(V_TO_HALF(x)))

FN static void strip_load_f16(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const uint16_t *p = in[0];
  float *q = to;
  for (; n >= LANES; n -= LANES, p += LANES, q += LANES) {
    HALVES h;
    memcpy(&h, p, sizeof h);
    *(F1 *)(void *)q = (F)V_FROM_HALF(h);
  }
  HALVES h = {0};
  memcpy(&h, p, (size_t)n * 2);
  F v = (F)V_FROM_HALF(h);
  memcpy(q, &v, (size_t)n * 4);
}

FN static void strip_store_f16(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const float *p = in[0];
  uint16_t *q = to;
  for (; n > 0; n -= LANES, p += LANES, q += LANES) {
    F v = {0};
    memcpy(&v, p, (size_t)MIN(n, LANES) * 4);
    HALVES h = V_TO_HALF(v);
    memcpy(q, &h, (size_t)MIN(n, LANES) * 2);
  }
}

#define LOAD_NARROW(name, T)                                                                    \
  FN static void strip_load_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    (void)same;                                                                                 \
    const T *p = in[0];                                                                         \
    int32_t *q = to;                                                                            \
    for (int64_t i = 0; i < n; i++) q[i] = p[i];                                                \
  }
#define STORE_NARROW(bits)                                                                       \
  FN static void strip_store_##bits(void *to, const void *const *in, unsigned same, int64_t n) { \
    (void)same;                                                                                  \
    const uint32_t *p = in[0];                                                                   \
    uint##bits##_t *q = to;                                                                      \
    for (int64_t i = 0; i < n; i++) q[i] = (uint##bits##_t)p[i];                                 \
  }
LOAD_NARROW(i8, int8_t)
LOAD_NARROW(u8, uint8_t)
LOAD_NARROW(i16, int16_t)
LOAD_NARROW(u16, uint16_t)
STORE_NARROW(8)
STORE_NARROW(16)
LOOP1(to_i8, I, I, (I)((U)x << 24) >> 24)
LOOP1(to_u8, I, I, x & 0xff)
LOOP1(to_i16, I, I, (I)((U)x << 16) >> 16)
LOOP1(to_u16, I, I, x & 0xffff)

/* ---- numbers that are seldom ---- */

INLINE I f_to_narrow(F x, int low, int high) {
  F f = pick(x < K(low), K(low), x);
  f = pick(f > K(high), K(high), f);
  return __builtin_convertvector(pick(x != x, K(0), f), I);
}
INLINE U f_to_u32(F x) {
  I over = x >= K(4294967296.0);
  U r = __builtin_convertvector(pick(over | ~(x > 0), K(0), x), U);
  return r | (U)over;
}
LOOP1(f_to_u, F, U, f_to_u32(x))
LOOP1(f_to_i8, F, I, f_to_narrow(x, -128, 127))
LOOP1(f_to_u8, F, I, f_to_narrow(x, 0, 255))
LOOP1(f_to_i16, F, I, f_to_narrow(x, -32768, 32767))
LOOP1(f_to_u16, F, I, f_to_narrow(x, 0, 65535))
LOOP1(u_to_f, U, F, __builtin_convertvector(x, F))
LOOP1(i_sign, I, I, (x >> 31) - (x > 0))
LOOP3(i_clamp, I, I, pick_i(pick_i(x > y, x, y) < z, pick_i(x > y, x, y), z))
LOOP2(atan2, F, F, form_atan2(x, y))

/* The order of the bits, sign and magnitude. */
INLINE I total(F x) { return (I)x ^ (I)((U)((I)x >> 31) >> 1); }
LOOP2(t_eq, F, I, total(x) == total(y))
LOOP2(t_ne, F, I, total(x) != total(y))
LOOP2(t_ge, F, I, total(x) >= total(y))
LOOP2(t_gt, F, I, total(x) > total(y))
LOOP2(t_le, F, I, total(x) <= total(y))
LOOP2(t_lt, F, I, total(x) < total(y))

/* T: of the operands. x and y are one each. */
#define EACH(name, T, expr)                                                                \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const T *p = in[0], *p1 = in[1];                                                       \
    T *q = to;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                      \
      T x = p[same & 1 ? 0 : i], y = p1[same & 2 ? 0 : i];                                 \
      q[i] = (T)(expr);                                                                    \
    }                                                                                      \
  }
#define EACH_BITS(name, expr)                                                              \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const uint32_t *p = in[0];                                                             \
    uint32_t *q = to;                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                      \
      uint32_t x = p[same & 1 ? 0 : i];                                                    \
      q[i] = (uint32_t)(expr);                                                             \
    }                                                                                      \
  }
EACH(i_div, int32_t, !y ? -1 : y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y)
EACH(i_rem, int32_t, !y ? x : y == -1 ? 0 : x % y)
EACH(u_div, uint32_t, y ? x / y : UINT32_MAX)
EACH(u_rem, uint32_t, y ? x % y : x)
EACH_BITS(popcnt, __builtin_popcount(x))
EACH_BITS(clz, x ? __builtin_clz(x) : 32)

/* ---- by functions of lanes.c, which must not overwrite what they read ---- */

#define FEW 64
#define LANES_FN(name, fn)                                                              \
  static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    float x[FEW], *q = to;                                                              \
    const float *p = in[0];                                                             \
    for (int64_t i = 0, k; i < n; i += k) {                                             \
      k = MIN(n - i, FEW);                                                              \
      for (int64_t j = 0; j < k; j++) x[j] = p[same & 1 ? 0 : i + j];                   \
      fn(x, q + i, k);                                                                  \
    }                                                                                   \
  }
#define LANES_FN2(name, fn)                                                             \
  static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    float x[FEW], y[FEW], *q = to;                                                      \
    const float *p = in[0], *p1 = in[1];                                                \
    for (int64_t i = 0, k; i < n; i += k) {                                             \
      k = MIN(n - i, FEW);                                                              \
      for (int64_t j = 0; j < k; j++)                                                   \
        x[j] = p[same & 1 ? 0 : i + j], y[j] = p1[same & 2 ? 0 : i + j];                \
      fn(x, y, q + i, k);                                                               \
    }                                                                                   \
  }
#define ONE_FN(name, expr)                                                              \
  static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    float x = *(const float *)in[0], y = in[1] ? *(const float *)in[1] : 0, *q = to;    \
    float v = (float)(expr);                                                            \
    (void)same, (void)y;                                                                \
    for (int64_t i = 0; i < n; i++) q[i] = v;                                           \
  }
LANES_FN(sin, lanes_sines)
LANES_FN(cos, lanes_cosines)
LANES_FN(tan, lanes_tangents)
LANES_FN2(power, lanes_powers)
LANES_FN2(rem, lanes_remainders)
ONE_FN(sin_one, sin((double)x))
ONE_FN(cos_one, cos((double)x))
ONE_FN(tan_one, tan((double)x))
ONE_FN(power_one, pow((double)x, (double)y))
ONE_FN(rem_one, fmodf(x, y))

/* ---- sums ---- */

#define SUMS(name, T, neutral, op)                                                     \
  FN static void sum_##name(void *sums, const void *x, int64_t n, int count) {         \
    T##1 *a = sums;                                                                    \
    const char *p = x;                                                                 \
    int64_t i = 0;                                                                     \
    if (count == 4) {                                                                  \
      T s = a[0], s1 = a[1], s2 = a[2], s3 = a[3], y;                                  \
      for (; i + 4 * LANES <= n; i += 4 * LANES) {                                     \
        const T##1 *v = (const T##1 *)(p + 4 * i);                                     \
        y = v[0], s = op(s, y), y = v[1], s1 = op(s1, y);                              \
        y = v[2], s2 = op(s2, y), y = v[3], s3 = op(s3, y);                            \
      }                                                                                \
      a[0] = s, a[1] = s1, a[2] = s2, a[3] = s3;                                       \
    } else if (count == 2) {                                                           \
      T s = a[0], s1 = a[1], y;                                                        \
      for (; i + 2 * LANES <= n; i += 2 * LANES) {                                     \
        const T##1 *v = (const T##1 *)(p + 4 * i);                                     \
        y = v[0], s = op(s, y), y = v[1], s1 = op(s1, y);                              \
      }                                                                                \
      a[0] = s, a[1] = s1;                                                             \
    } else {                                                                           \
      T s = a[0], y;                                                                   \
      for (; i + LANES <= n; i += LANES) y = *(const T##1 *)(p + 4 * i), s = op(s, y); \
      a[0] = s;                                                                        \
    }                                                                                  \
    for (int u = 0; i < n; i += LANES, u++) {                                          \
      T y = (T)(neutral);                                                              \
      memcpy(&y, p + 4 * i, (size_t)MIN(n - i, LANES) * 4);                            \
      a[u] = op(a[u], y);                                                              \
    }                                                                                  \
  }                                                                                    \
  /* vector by vector, then by halves; the result in all lanes */                      \
  FN static void fold_##name(void *sums, int count) {                                  \
    T##1 *a = sums;                                                                    \
    T s = a[0];                                                                        \
    for (int u = 1; u < count; u++) s = op(s, a[u]);                                   \
    if (LANES == 16) s = op(s, (T)V_DOWN(s, 8 % LANES));                               \
    s = op(s, (T)V_DOWN(s, 4));                                                        \
    s = op(s, (T)V_DOWN(s, 2));                                                        \
    s = op(s, (T)V_DOWN(s, 1));                                                        \
    a[0] = (T)V_FIRST(s);                                                              \
  }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define I_MAX(a, b) pick_i((a) > (b), a, b)
#define I_MIN(a, b) pick_i((a) < (b), a, b)
#define U_MAX(a, b) ((U)pick_i((a) > (b), (I)(a), (I)(b)))
#define U_MIN(a, b) ((U)pick_i((a) < (b), (I)(a), (I)(b)))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
SUMS(add, F, KI(INT32_MIN), PLUS)
SUMS(mul, F, K(1), TIMES)
SUMS(max, F, K(-INFINITY), f_max)
SUMS(min, F, K(INFINITY), f_min)
SUMS(i_add, U, KI(0), PLUS)
SUMS(i_mul, U, KI(1), TIMES)
SUMS(i_max, I, KI(INT32_MIN), I_MAX)
SUMS(i_min, I, KI(INT32_MAX), I_MIN)
SUMS(u_max, U, KI(0), U_MAX)
SUMS(u_min, U, KI(-1), U_MIN)
SUMS(and, I, KI(-1), AND)
SUMS(or, I, KI(0), OR)
SUMS(xor, I, KI(0), XOR)

/* ---- random numbers: the words of a cipher ---- */

#define CIPHER(name, first, second, both)                                               \
  static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    lanes_threefry(in[0], in[1], in[2], in[3], first, second, both, same, n);           \
  }
CIPHER(threefry_first, to, NULL, NULL)
CIPHER(threefry_second, NULL, to, NULL)
CIPHER(threefry_both, NULL, NULL, to)

#define FN_ROW(name) strip_##name,
#define SUM_ROW(name) sum_##name,
#define FOLD_ROW(name) fold_##name,
#define STRIPS_SIMD                                                             \
  {                                                                             \
    LANES, {STRIP_FNS(FN_ROW)}, {STRIP_SUMS(SUM_ROW)}, { STRIP_SUMS(FOLD_ROW) } \
  }
