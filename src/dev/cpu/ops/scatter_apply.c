/* Runs of a scatter's updates into its operand, a function for each operation and type. */
#include "dev/cpu/ops/scatter_apply.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"

#define EACH(T, expr)                          \
  do {                                         \
    T *d = (T *)(void *)dst;                   \
    const T *s = (const T *)(const void *)src; \
    for (int64_t i = 0; i < n; i++) {          \
      T a = d[i], b = s[i];                    \
      d[i] = (expr);                           \
    }                                          \
  } while (0)
#define INTS(T)                                    \
  switch (kind) {                                  \
  case OP_ADD: EACH(T, (T)(a + b)); return;        \
  case OP_SUBTRACT: EACH(T, (T)(a - b)); return;   \
  case OP_MULTIPLY: EACH(T, (T)(a * b)); return;   \
  case OP_MAXIMUM: EACH(T, a > b ? a : b); return; \
  case OP_MINIMUM: EACH(T, a < b ? a : b); return; \
  case OP_AND: EACH(T, (T)(a & b)); return;        \
  case OP_OR: EACH(T, (T)(a | b)); return;         \
  case OP_XOR: EACH(T, (T)(a ^ b)); return;        \
  default: return;                                 \
  }
/* NaN wins; of two zeros the positive one is the larger. */
#define LARGER(a, b)                                          \
  ((a) != (a)                                           ? (a) \
   : (b) != (b)                                         ? (b) \
   : (a) > (b) || ((a) == (b) && !__builtin_signbit(a)) ? (a) \
                                                        : (b))
#define SMALLER(a, b)                                        \
  ((a) != (a)                                          ? (a) \
   : (b) != (b)                                        ? (b) \
   : (a) < (b) || ((a) == (b) && __builtin_signbit(a)) ? (a) \
                                                       : (b))
#define FLOATS(T)                                  \
  switch (kind) {                                  \
  case OP_ADD: EACH(T, a + b); return;             \
  case OP_SUBTRACT: EACH(T, a - b); return;        \
  case OP_MULTIPLY: EACH(T, a *b); return;         \
  case OP_MAXIMUM: EACH(T, LARGER(a, b)); return;  \
  case OP_MINIMUM: EACH(T, SMALLER(a, b)); return; \
  default: return;                                 \
  }

static void combine_f64(OpKind kind, double *dst, const double *src) {
  enum { n = 1 };
  FLOATS(double)
}

static void combine_i64(OpKind kind, int64_t *dst, const int64_t *src) {
  enum { n = 1 };
  INTS(int64_t)
}

/* Types that nobody is in a hurry with, one by one: the smaller floats, and integers of less than a byte, which lie in
 * one each and wrap around. */
static void combine_small(OpKind kind, DType t, char *dst, const char *src, int64_t n) {
  if (dtype_is_float(t))
    for (int64_t i = 0; i < n; i++) {
      double d[1] = {elem_get_f64(t, dst + i)}, s[1] = {elem_get_f64(t, src + i)};
      combine_f64(kind, d, s);
      elem_set_f64(t, dst + i, d[0]);
    }
  else
    for (int64_t i = 0; i < n; i++) {
      int64_t d[1] = {elem_get_i64(t, dst + i)}, s[1] = {elem_get_i64(t, src + i)};
      combine_i64(kind, d, s);
      elem_set_i64(t, dst + i, d[0]);
    }
}

void scatter_combine(OpKind kind, DType t, char *dst, const char *src, int64_t n) {
  if (kind == OP_RETURN) {
    memcpy(dst, src, (size_t)(n * dtype_bytes(t)));
    return;
  }
  switch (t) {
  case DT_F32: FLOATS(float)
  case DT_F64: FLOATS(double)
#define SIGNED(T, U)                                    \
  if (kind == OP_MAXIMUM) EACH(T, a > b ? a : b);       \
  if (kind == OP_MINIMUM) EACH(T, a < b ? a : b);       \
  if (kind == OP_MAXIMUM || kind == OP_MINIMUM) return; \
  INTS(U)
  case DT_I8: SIGNED(int8_t, uint8_t)
  case DT_I16: SIGNED(int16_t, uint16_t)
  case DT_I32: SIGNED(int32_t, uint32_t)
  case DT_I64: SIGNED(int64_t, uint64_t)
  case DT_I1:
  case DT_U8: INTS(uint8_t)
  case DT_U16: INTS(uint16_t)
  case DT_U32: INTS(uint32_t)
  case DT_U64: INTS(uint64_t)
  case DT_BF16:
  case DT_F16: break;
  default: combine_small(kind, t, dst, src, n); return;
  }
  /* bf16, f16: rounded after each */
  for (int64_t at = 0; at < n; at += 64) {
    int64_t m = MIN(64, n - at);
    float x[64], y[64];
    cpu_to_f32(t, dst + 2 * at, x, m);
    cpu_to_f32(t, src + 2 * at, y, m);
    for (int64_t i = 0; i < m; i++) {
      float a = x[i], b = y[i];
      x[i] = kind == OP_ADD        ? a + b
             : kind == OP_SUBTRACT ? a - b
             : kind == OP_MULTIPLY ? a * b
             : kind == OP_MAXIMUM  ? LARGER(a, b)
                                   : SMALLER(a, b);
    }
    cpu_from_f32(t, x, dst + 2 * at, m);
  }
}

/* The same by numbers, where a branch would be mispredicted half of the time; of one number, where what is
 * rare is a branch. */
#define ORDERED(T, BITS, suffix)                                                                  \
  static inline BITS bits_##suffix(T a) {                                                         \
    BITS x;                                                                                       \
    memcpy(&x, &a, sizeof x);                                                                     \
    return x;                                                                                     \
  }                                                                                               \
  static inline T picked_##suffix(T a, T b, BITS second) {                                        \
    BITS x = bits_##suffix(a);                                                                    \
    x ^= (x ^ bits_##suffix(b)) & second;                                                         \
    memcpy(&a, &x, sizeof x);                                                                     \
    return a;                                                                                     \
  }                                                                                               \
  static inline BITS negative_##suffix(T a) { return -(bits_##suffix(a) >> (8 * sizeof a - 1)); } \
  static inline T larger_##suffix(T a, T b) {                                                     \
    BITS same = -(BITS)(a == b) & negative_##suffix(a);                                           \
    return picked_##suffix(a, b, -(BITS)(b > a) | -(BITS)(b != b) | same);                        \
  }                                                                                               \
  static inline T smaller_##suffix(T a, T b) {                                                    \
    BITS same = -(BITS)(a == b) & ~negative_##suffix(a);                                          \
    return picked_##suffix(a, b, -(BITS)(b < a) | -(BITS)(b != b) | same);                        \
  }                                                                                               \
  static inline T larger_one_##suffix(T a, T b) {                                                 \
    if (__builtin_expect(!__builtin_islessgreater(a, b), 0)) return LARGER(a, b);                 \
    return a > b ? a : b;                                                                         \
  }                                                                                               \
  static inline T smaller_one_##suffix(T a, T b) {                                                \
    if (__builtin_expect(!__builtin_islessgreater(a, b), 0)) return SMALLER(a, b);                \
    return a < b ? a : b;                                                                         \
  }
ORDERED(float, uint32_t, f32)
ORDERED(double, uint64_t, f64)
static inline float of_bf16(uint16_t x) {
  uint32_t u = (uint32_t)x << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static inline uint16_t to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : r);
}

static inline float _Complex product_c64(float _Complex a, float _Complex b) {
  float x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b;
  return __builtin_complex(x * u - y * v, x * v + y * u);
}
static inline double _Complex product_c128(double _Complex a, double _Complex b) {
  double x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b;
  return __builtin_complex(x * u - y * v, x * v + y * u);
}

/* A short loop of known length stays one until it is made vectors of: unrolled before, it is not. */
#ifdef __clang__
#define LOOP IVDEP
#else
#define LOOP IVDEP _Pragma("GCC unroll 1")
#endif
#define EACH_ROW(T, expr, N)                   \
  if (run == (N)) {                            \
    for (int64_t i = 0; i < n; i++) {          \
      if (at[i] < 0) continue;                 \
      T *d = (T *)dst + at[i];                 \
      const T *s = (const T *)src + i * (N);   \
      LOOP for (int64_t k = 0; k < (N); k++) { \
        T a = d[k], b = s[k];                  \
        (void)a;                               \
        d[k] = (expr);                         \
      }                                        \
    }                                          \
    return;                                    \
  }
#define APPLY(name, T, expr) APPLY_ONE(name, T, expr, expr)
#define APPLY_ONE(name, T, expr, one)                                                       \
  CLONES static void name(int64_t n, const int64_t *from, const int64_t *to, int64_t run,   \
                          void *dst, const void *src) {                                     \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T *d = (T *)dst + from[i];                                                            \
      const T *s = (const T *)src + to[i];                                                  \
      IVDEP for (int64_t k = 0; k < run; k++) {                                             \
        T a = d[k], b = s[k];                                                               \
        (void)a;                                                                            \
        d[k] = (expr);                                                                      \
      }                                                                                     \
    }                                                                                       \
  }                                                                                         \
  static void name##_one(int64_t n, const int64_t *from, const int64_t *to, int64_t run,    \
                         void *dst, const void *src) {                                      \
    (void)run;                                                                              \
    for (int64_t i = 0; i < n; i++) {                                                       \
      T a = ((T *)dst)[from[i]], b = ((const T *)src)[to[i]];                               \
      (void)a;                                                                              \
      ((T *)dst)[from[i]] = (one);                                                          \
    }                                                                                       \
  }                                                                                         \
  CLONES static void name##_each(int64_t n, const int32_t *at, int64_t run, void *dst,      \
                                 const void *src) {                                         \
    if (run == 1) {                                                                         \
      for (int64_t i = 0; i < n; i++) {                                                     \
        if (at[i] < 0) continue;                                                            \
        T a = ((T *)dst)[at[i]], b = ((const T *)src)[i];                                   \
        (void)a;                                                                            \
        ((T *)dst)[at[i]] = (one);                                                          \
      }                                                                                     \
      return;                                                                               \
    }                                                                                       \
    EACH_ROW(T, expr, 2)                                                                    \
    EACH_ROW(T, expr, 3)                                                                    \
    EACH_ROW(T, expr, 4)                                                                    \
    EACH_ROW(T, expr, 8) EACH_ROW(T, expr, 16) EACH_ROW(T, expr, 32) EACH_ROW(T, expr, run) \
  }
#define APPLY_FLOAT(T, t)                                       \
  APPLY(add_##t, T, a + b)                                      \
  APPLY(sub_##t, T, a - b)                                      \
  APPLY(mul_##t, T, a *b)                                       \
  APPLY_ONE(max_##t, T, larger_##t(a, b), larger_one_##t(a, b)) \
  APPLY_ONE(min_##t, T, smaller_##t(a, b), smaller_one_##t(a, b))
#define APPLY_COMPLEX(T, t) \
  APPLY(add_##t, T, a + b)  \
  APPLY(sub_##t, T, a - b)  \
  APPLY(mul_##t, T, product_##t(a, b))
/* Sums are of either sign, orders of one. */
#define APPLY_INT(bits)                                      \
  APPLY(set_##bits, uint##bits##_t, b)                       \
  APPLY(add_##bits, uint##bits##_t, (uint##bits##_t)(a + b)) \
  APPLY(max_i##bits, int##bits##_t, a > b ? a : b)           \
  APPLY(min_i##bits, int##bits##_t, a < b ? a : b)           \
  APPLY(max_u##bits, uint##bits##_t, a > b ? a : b)          \
  APPLY(min_u##bits, uint##bits##_t, a < b ? a : b)
APPLY_FLOAT(float, f32)
APPLY_FLOAT(double, f64)
APPLY(add_bf16, uint16_t, to_bf16(of_bf16(a) + of_bf16(b)))
APPLY(sub_bf16, uint16_t, to_bf16(of_bf16(a) - of_bf16(b)))
APPLY(mul_bf16, uint16_t, to_bf16(of_bf16(a) * of_bf16(b)))
APPLY_ONE(max_bf16, uint16_t, to_bf16(larger_f32(of_bf16(a), of_bf16(b))),
          to_bf16(larger_one_f32(of_bf16(a), of_bf16(b))))
APPLY_ONE(min_bf16, uint16_t, to_bf16(smaller_f32(of_bf16(a), of_bf16(b))),
          to_bf16(smaller_one_f32(of_bf16(a), of_bf16(b))))
APPLY_COMPLEX(float _Complex, c64)
APPLY_COMPLEX(double _Complex, c128)
APPLY_INT(8)
APPLY_INT(16)
APPLY_INT(32)
APPLY_INT(64)

/* f16 by the host's own conversions, eight at a time. */
#if defined(__x86_64__)
#define F16C __attribute__((target("avx2,f16c")))

F16C static inline __m256 larger_8(__m256 a, __m256 b) {
  __m256 second = _mm256_or_ps(_mm256_cmp_ps(b, a, _CMP_GT_OQ), _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  return _mm256_blendv_ps(a, b,
                          _mm256_or_ps(second, _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), a)));
}
F16C static inline __m256 smaller_8(__m256 a, __m256 b) {
  __m256 second = _mm256_or_ps(_mm256_cmp_ps(b, a, _CMP_LT_OQ), _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
  return _mm256_blendv_ps(
      a, b, _mm256_or_ps(second, _mm256_andnot_ps(a, _mm256_cmp_ps(a, b, _CMP_EQ_OQ))));
}

#define APPLY_F16C(name, eight, one)                                                               \
  F16C static inline void name##_run(uint16_t *d, const uint16_t *s, int64_t run) {                \
    int64_t k = 0;                                                                                 \
    for (; k + 8 <= run; k += 8) {                                                                 \
      __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(d + k))),         \
             b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(s + k)));         \
      _mm_storeu_si128((__m128i *)(void *)(d + k), _mm256_cvtps_ph(eight, 0));                     \
    }                                                                                              \
    for (; k < run; k++) {                                                                         \
      float a = _cvtsh_ss(d[k]), b = _cvtsh_ss(s[k]);                                              \
      d[k] = _cvtss_sh(one, 0);                                                                    \
    }                                                                                              \
  }                                                                                                \
  F16C static void name(int64_t n, const int64_t *from, const int64_t *to, int64_t run, void *dst, \
                        const void *src) {                                                         \
    for (int64_t i = 0; i < n; i++)                                                                \
      name##_run((uint16_t *)dst + from[i], (const uint16_t *)src + to[i], run);                   \
  }                                                                                                \
  F16C static void name##_one(int64_t n, const int64_t *from, const int64_t *to, int64_t run,      \
                              void *dst, const void *src) {                                        \
    (void)run;                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                \
      name##_run((uint16_t *)dst + from[i], (const uint16_t *)src + to[i], 1);                     \
  }                                                                                                \
  F16C static void name##_each(int64_t n, const int32_t *at, int64_t run, void *dst,               \
                               const void *src) {                                                  \
    for (int64_t i = 0; i < n; i++)                                                                \
      if (at[i] >= 0) name##_run((uint16_t *)dst + at[i], (const uint16_t *)src + i * run, run);   \
  }
APPLY_F16C(add_f16c, _mm256_add_ps(a, b), a + b)
APPLY_F16C(sub_f16c, _mm256_sub_ps(a, b), a - b)
APPLY_F16C(mul_f16c, _mm256_mul_ps(a, b), a *b)
APPLY_F16C(max_f16c, larger_8(a, b), larger_one_f32(a, b))
APPLY_F16C(min_f16c, smaller_8(a, b), smaller_one_f32(a, b))
#endif

#define ROW(kind, t, name) \
  { kind, t, {name, name##_one}, name##_each }
#define SUMS(T, t) \
  ROW(OP_ADD, T, add_##t), ROW(OP_SUBTRACT, T, sub_##t), ROW(OP_MULTIPLY, T, mul_##t)
#define ORDERS(T, t) ROW(OP_MAXIMUM, T, max_##t), ROW(OP_MINIMUM, T, min_##t)
#define INTEGERS(bits)                                                            \
  ROW(OP_RETURN, DT_I##bits, set_##bits), ROW(OP_RETURN, DT_U##bits, set_##bits), \
      ROW(OP_ADD, DT_I##bits, add_##bits), ROW(OP_ADD, DT_U##bits, add_##bits),   \
      ORDERS(DT_I##bits, i##bits), ORDERS(DT_U##bits, u##bits)
static const ScatterWay ways[] = {
    SUMS(DT_F32, f32),
    ORDERS(DT_F32, f32),
    SUMS(DT_F64, f64),
    ORDERS(DT_F64, f64),
    SUMS(DT_BF16, bf16),
    ORDERS(DT_BF16, bf16),
    SUMS(DT_C64, c64),
    SUMS(DT_C128, c128),
    INTEGERS(8),
    INTEGERS(16),
    INTEGERS(32),
    INTEGERS(64),
    ROW(OP_RETURN, DT_I1, set_8),
    ROW(OP_RETURN, DT_BF16, set_16),
    ROW(OP_RETURN, DT_F16, set_16),
    ROW(OP_RETURN, DT_F32, set_32),
    ROW(OP_RETURN, DT_F64, set_64),
};

#if defined(__x86_64__)
static const ScatterWay f16c_ways[] = {SUMS(DT_F16, f16c), ORDERS(DT_F16, f16c)};
#endif

static const ScatterWay *find(const ScatterWay *w, int n, OpKind kind, DType t) {
  for (int i = 0; i < n; i++)
    if (w[i].kind == kind && w[i].t == t) return &w[i];
  return NULL;
}

const ScatterWay *scatter_way(OpKind kind, DType t) {
  const ScatterWay *w = NULL;
#if defined(__x86_64__)
  if (has_f16c() && cpu_vector_bits() >= 256) w = find(f16c_ways, COUNT_OF(f16c_ways), kind, t);
#endif
  return w ? w : find(ways, COUNT_OF(ways), kind, t);
}
