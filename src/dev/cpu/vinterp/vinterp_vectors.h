/* What is done to strips of numbers of either size, for one width of vectors: LANES numbers at a time.
 * Included with FN, LANES, REAL, INT and UINT (a number as one of those), V_SQRT, V_ROUND (a mode of
 * _mm_round_ps), V_BLEND, V_DOWN (the lanes from the n-th on), V_FIRST (the first in all lanes) and, where
 * there are, V_LOAD_SOME and V_STORE_SOME. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "dev/cpu/vinterp/vinterp_priv.h"

#define BYTES ((int64_t)sizeof(REAL))
#define TOP (8 * (int)sizeof(REAL) - 1) /* number of the highest bit */
#define HIGHEST ((INT)((UINT)-1 >> 1))
#define LOWEST ((INT)((UINT)1 << TOP))

typedef REAL F __attribute__((vector_size(LANES * sizeof(REAL))));
typedef INT I __attribute__((vector_size(LANES * sizeof(REAL))));
typedef UINT U __attribute__((vector_size(LANES * sizeof(REAL))));
typedef F F1 __attribute__((aligned(sizeof(REAL)), may_alias));
typedef I I1 __attribute__((aligned(sizeof(REAL)), may_alias));
typedef U U1 __attribute__((aligned(sizeof(REAL)), may_alias));
#define INLINE FN static inline __attribute__((always_inline, unused))

INLINE F pick(I mask, F a, F b) { return V_BLEND(mask, a, b); }
INLINE I pick_i(I mask, I a, I b) { return (I)V_BLEND(mask, (F)a, (F)b); }

#define K(v) (((F){0}) + (REAL)(v))
#define KI(v) (((I){0}) + (INT)(v))
#define ABS(a) ((F)((I)(a)&HIGHEST))

/* The first n lanes, n < LANES; the others are 0. */
#ifndef V_LOAD_SOME
INLINE F load_some(const void *p, int64_t n) {
  F v = {0};
  memcpy(&v, p, (size_t)(n * BYTES));
  return v;
}
INLINE void store_some(void *p, int64_t n, F v) { memcpy(p, &v, (size_t)(n * BYTES)); }
#define V_LOAD_SOME load_some
#define V_STORE_SOME store_some
#endif

/* ---- strips to strips ---- */

/* What is left over is done as a whole vector beside, so that it has the same digits. STEP: what an
 * operand moves on by; 0 when it is the same all along. */
#define STEP(k) (same >> (k)&1 ? 0 : BYTES * LANES)
#define LOAD(T, v, p, n) T v = (T)V_LOAD_SOME(p, n)
#define STORE(R, q, n, expr) V_STORE_SOME(q, n, (F)(R)(expr))
#define LOOP1(name, T, R, expr)                                                            \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const char *p = in[0];                                                                 \
    const int64_t s = STEP(0);                                                             \
    char *q = to;                                                                          \
    for (; n >= LANES; n -= LANES, p += s, q += BYTES * LANES) {                           \
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
    for (; n >= LANES; n -= LANES, p += s, p1 += s1, q += BYTES * LANES) {                 \
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
    for (; n >= LANES; n -= LANES, p += s, p1 += s1, p2 += s2, q += BYTES * LANES) {       \
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
INLINE I f_to_int(F x) { /* the nearest that there is; NaN: 0 */
  I r = pick_i(x >= K((UINT)1 << TOP), KI(HIGHEST), __builtin_convertvector(x, I));
  return r & (x == x);
}

LOOP1(copy, I, I, x)
LOOP1(neg, F, F, -x)
LOOP1(abs, F, F, ABS(x))
LOOP1(sqrt, F, F, V_SQRT(x))
LOOP1(rsqrt, F, F, K(1) / V_SQRT(x))
LOOP1(floor, F, F, V_ROUND(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC))
LOOP1(ceil, F, F, V_ROUND(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC))
LOOP1(round, F, F, V_ROUND(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
LOOP1(sign, F, F, f_sign(x))
LOOP1(finite, F, I, ABS(x) < K(INFINITY))
LOOP1(f_to_i, F, I, f_to_int(x))
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
LOOP2(shl, U, U, (x << (y & TOP)) & (U)(y <= TOP))
LOOP2(shr, U, U, (x >> (y & TOP)) & (U)(y <= TOP))
LOOP2(sar, I, I, x >> pick_i((I)((U)y > TOP), KI(TOP), y))
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
  INT *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = -(INT)(p[i] != 0);
}

FN static void strip_store_mask(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const INT *p = in[0];
  uint8_t *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = (uint8_t)(p[i] & 1);
}

#define LOAD_NARROW(name, T)                                                                    \
  FN static void strip_load_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    (void)same;                                                                                 \
    const T *p = in[0];                                                                         \
    INT *q = to;                                                                                \
    for (int64_t i = 0; i < n; i++) q[i] = p[i];                                                \
  }
#define STORE_NARROW(bits)                                                                       \
  FN static void strip_store_##bits(void *to, const void *const *in, unsigned same, int64_t n) { \
    (void)same;                                                                                  \
    const UINT *p = in[0];                                                                       \
    uint##bits##_t *q = to;                                                                      \
    for (int64_t i = 0; i < n; i++) q[i] = (uint##bits##_t)p[i];                                 \
  }
LOAD_NARROW(i8, int8_t)
LOAD_NARROW(u8, uint8_t)
LOAD_NARROW(i16, int16_t)
LOAD_NARROW(u16, uint16_t)
STORE_NARROW(8)
STORE_NARROW(16)
LOOP1(to_i8, I, I, (I)((U)x << (TOP - 7)) >> (TOP - 7))
LOOP1(to_u8, I, I, x & 0xff)
LOOP1(to_i16, I, I, (I)((U)x << (TOP - 15)) >> (TOP - 15))
LOOP1(to_u16, I, I, x & 0xffff)

/* ---- numbers that are seldom ---- */

INLINE I f_to_narrow(F x, REAL low, REAL high) {
  F f = pick(x < K(low), K(low), x);
  f = pick(f > K(high), K(high), f);
  return __builtin_convertvector(pick(x != x, K(0), f), I);
}
INLINE U f_to_uint(F x) {
  I over = x >= K(2 * (REAL)((UINT)1 << TOP));
  U r = __builtin_convertvector(pick(over | ~(x > 0), K(0), x), U);
  return r | (U)over;
}
LOOP1(f_to_u, F, U, f_to_uint(x))
LOOP1(f_to_i8, F, I, f_to_narrow(x, -128, 127))
LOOP1(f_to_u8, F, I, f_to_narrow(x, 0, 255))
LOOP1(f_to_i16, F, I, f_to_narrow(x, -32768, 32767))
LOOP1(f_to_u16, F, I, f_to_narrow(x, 0, 65535))
LOOP1(u_to_f, U, F, __builtin_convertvector(x, F))
LOOP1(i_sign, I, I, (x >> TOP) - (x > 0))
LOOP3(i_clamp, I, I, pick_i(pick_i(x > y, x, y) < z, pick_i(x > y, x, y), z))

/* The order of the bits, sign and magnitude. */
INLINE I total(F x) { return (I)x ^ (I)((U)((I)x >> TOP) >> 1); }
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
    const UINT *p = in[0];                                                                 \
    UINT *q = to;                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                      \
      UINT x = p[same & 1 ? 0 : i];                                                        \
      q[i] = (UINT)(expr);                                                                 \
    }                                                                                      \
  }
EACH(i_div, INT, !y ? -1 : y == -1 ? (INT)(0 - (UINT)x) : x / y)
EACH(i_rem, INT, !y ? x : y == -1 ? 0 : x % y)
EACH(u_div, UINT, y ? x / y : (UINT)-1)
EACH(u_rem, UINT, y ? x % y : x)
EACH_BITS(popcnt, __builtin_popcountll(x))
EACH_BITS(clz, x ? __builtin_clzll(x) - (63 - TOP) : TOP + 1)

/* ---- sums ---- */

#define SUMS(name, T, neutral, op)                                                         \
  FN static void sum_##name(void *sums, const void *x, int64_t n, int count) {             \
    T##1 *a = sums;                                                                        \
    const char *p = x;                                                                     \
    int64_t i = 0;                                                                         \
    if (count == 4) {                                                                      \
      T s = a[0], s1 = a[1], s2 = a[2], s3 = a[3], y;                                      \
      for (; i + 4 * LANES <= n; i += 4 * LANES) {                                         \
        const T##1 *v = (const T##1 *)(p + BYTES * i);                                     \
        y = v[0], s = op(s, y), y = v[1], s1 = op(s1, y);                                  \
        y = v[2], s2 = op(s2, y), y = v[3], s3 = op(s3, y);                                \
      }                                                                                    \
      a[0] = s, a[1] = s1, a[2] = s2, a[3] = s3;                                           \
    } else if (count == 2) {                                                               \
      T s = a[0], s1 = a[1], y;                                                            \
      for (; i + 2 * LANES <= n; i += 2 * LANES) {                                         \
        const T##1 *v = (const T##1 *)(p + BYTES * i);                                     \
        y = v[0], s = op(s, y), y = v[1], s1 = op(s1, y);                                  \
      }                                                                                    \
      a[0] = s, a[1] = s1;                                                                 \
    } else {                                                                               \
      T s = a[0], y;                                                                       \
      for (; i + LANES <= n; i += LANES) y = *(const T##1 *)(p + BYTES * i), s = op(s, y); \
      a[0] = s;                                                                            \
    }                                                                                      \
    for (int u = 0; i < n; i += LANES, u++) {                                              \
      T y = (T)(neutral);                                                                  \
      memcpy(&y, p + BYTES * i, (size_t)(MIN(n - i, LANES) * BYTES));                      \
      a[u] = op(a[u], y);                                                                  \
    }                                                                                      \
  }                                                                                        \
  /* vector by vector, then by halves; the result in all lanes */                          \
  FN static void fold_##name(void *sums, int count) {                                      \
    T##1 *a = sums;                                                                        \
    T s = a[0];                                                                            \
    for (int u = 1; u < count; u++) s = op(s, a[u]);                                       \
    if (LANES >= 16) s = op(s, (T)V_DOWN(s, 8 % LANES));                                   \
    if (LANES >= 8) s = op(s, (T)V_DOWN(s, 4 % LANES));                                    \
    s = op(s, (T)V_DOWN(s, 2));                                                            \
    s = op(s, (T)V_DOWN(s, 1));                                                            \
    a[0] = (T)V_FIRST(s);                                                                  \
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
SUMS(add, F, KI(LOWEST), PLUS)
SUMS(mul, F, K(1), TIMES)
SUMS(max, F, K(-INFINITY), f_max)
SUMS(min, F, K(INFINITY), f_min)
SUMS(i_add, U, KI(0), PLUS)
SUMS(i_mul, U, KI(1), TIMES)
SUMS(i_max, I, KI(LOWEST), I_MAX)
SUMS(i_min, I, KI(HIGHEST), I_MIN)
SUMS(u_max, U, KI(0), U_MAX)
SUMS(u_min, U, KI(-1), U_MIN)
SUMS(and, I, KI(-1), AND)
SUMS(or, I, KI(0), OR)
SUMS(xor, I, KI(0), XOR)

#define FN_ROW(name, ...) [STRIP_##name] = strip_##name,
#define SUM_ROW(name) sum_##name,
#define FOLD_ROW(name) fold_##name,
