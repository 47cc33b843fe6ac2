/* What is done to strips of 32 bits, beside vinterp_vectors.h; with V_FMA, HALVES (as many f16),
 * V_TO_HALF and V_FROM_HALF, too. */
#define REAL float
#define INT int32_t
#define UINT uint32_t
#include "dev/cpu/loops/lanes.h"
#include "dev/cpu/vinterp/vinterp_vectors.h"

#define MASK I
#define FORM(name, ...) INLINE F form_##name(__VA_ARGS__)
#define PART(name, ...) INLINE F name(__VA_ARGS__)
#define CALL(name, ...) name(__VA_ARGS__)
#define FORM_CALL(name, ...) form_##name(__VA_ARGS__)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define FMA V_FMA
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

#define FORM_LOOP(form, ...) LOOP1(form, F, F, form_##form(x))
MATH_FORMS(FORM_LOOP)
LOOP2(atan2, F, F, form_atan2(x, y))

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
LANES_FN(cbrt, lanes_cube_roots)
LANES_FN2(power, lanes_powers)
LANES_FN2(rem, lanes_remainders)
ONE_FN(sin_one, sin((double)x))
ONE_FN(cos_one, cos((double)x))
ONE_FN(tan_one, tan((double)x))
ONE_FN(cbrt_one, cbrt((double)x))
ONE_FN(power_one, pow((double)x, (double)y))
ONE_FN(rem_one, fmodf(x, y))

/* ---- random numbers: the words of a cipher ---- */

#define CIPHER(name, first, second, both)                                               \
  static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    lanes_threefry(in[0], in[1], in[2], in[3], first, second, both, same, n);           \
  }
CIPHER(threefry_first, to, NULL, NULL)
CIPHER(threefry_second, NULL, to, NULL)
CIPHER(threefry_both, NULL, NULL, to)

#define VINTERP_SIMD                                                                    \
  {                                                                                     \
    LANES, BYTES, {STRIP_FNS(FN_ROW) STRIP_FNS_OF_32(FN_ROW)}, {STRIP_SUMS(SUM_ROW)}, { \
      STRIP_SUMS(FOLD_ROW)                                                              \
    }                                                                                   \
  }
