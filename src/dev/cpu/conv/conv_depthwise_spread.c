/* How conv_depthwise.c copies pixels into vectors. */
#include "dev/cpu/conv/conv_depthwise.h"
#include "dev/cpu/kernel/kernel.h"

static void plain(const LanesSpread *s, DType t, const void *from, int64_t step, int64_t n,
                  void *to) {
  size_t in = (size_t)dtype_bytes(t), out = t == DT_F64 ? 8 : 4;
  char x[LANES * 8] = {0}, *vector = to;
  for (int64_t i = 0; i < n; i++, vector += LANES * out) {
    const char *pixel = (const char *)from + i * step * (int64_t)in;
    if (in == out) memcpy(x, pixel, (size_t)s->in * in);
    else cpu_to_f32(t, pixel, (float *)(void *)x, s->in);
    if (!s->index) memcpy(vector, x, LANES * out);
    for (int64_t k = 0; s->index && k < s->inputs; k++)
      for (size_t l = 0; l < LANES; l++)
        memcpy(vector + ((size_t)(k * s->apart) + l) * out, x + (size_t)s->index[k][l] * out, out);
  }
}

#if defined(__x86_64__)
#ifndef WEFT_EMULATE_AVX512
#define WEFT_EMULATE_AVX512 /* vectors of two registers, as it makes them */
#endif
#include "dev/cpu/kernel/avx512.h"

#define INLINE AVX512 static inline __attribute__((always_inline))

INLINE V16 pixel(DType t, const void *from, int64_t at, int64_t in) {
  if (t == DT_F32) {
    const float *p = (const float *)from + at;
    return in == LANES ? V16_LOAD(p) : V16_LOAD_MASK(p, V16_MASK(in));
  }
  const uint16_t *p = (const uint16_t *)from + at;
  uint16_t part[LANES] = {0};
  if (in < LANES) memcpy(part, p, sizeof *p * (size_t)in), p = part;
  return V16_BF16(p);
}

INLINE __m256 chosen(V16 x, __m256i index) {
  __m256 lo = _mm256_permutevar8x32_ps(x.lo, index), hi = _mm256_permutevar8x32_ps(x.hi, index);
  return _mm256_blendv_ps(lo, hi, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}

INLINE void spread(const LanesSpread *s, DType t, int64_t in, bool index, const void *from,
                   int64_t step, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i++, to += LANES) {
    int64_t size = t == DT_F32 ? 4 : 2;
    __builtin_prefetch((const char *)from + (i * step + LANES) * size, 0, 2); /* the next block */
    V16 x = pixel(t, from, i * step, in);
    if (!index) V16_STORE(to, x);
    for (int64_t k = 0; index && k < s->inputs; k++) {
      const __m256i *at = (const __m256i *)(const void *)s->index[k];
      __m256 lo = chosen(x, _mm256_loadu_si256(at)), hi = chosen(x, _mm256_loadu_si256(at + 1));
      V16_STORE(to + k * s->apart, (V16){lo, hi});
    }
  }
}

AVX512 static void avx2(const LanesSpread *s, DType t, const void *from, int64_t step, int64_t n,
                        float *to) {
#define CASE(type)                                                             \
  do {                                                                         \
    if (s->index) spread(s, type, s->in, true, from, step, n, to);             \
    else if (s->in == LANES) spread(s, type, LANES, false, from, step, n, to); \
    else spread(s, type, s->in, false, from, step, n, to);                     \
  } while (0)
  if (t == DT_F32) CASE(DT_F32);
  else CASE(DT_BF16);
#undef CASE
}
#endif

void lanes_spread(const LanesSpread *s, DType t, const void *from, int64_t step, int64_t n,
                  void *to) {
#if defined(__x86_64__)
  if (t != DT_F64 && cpu_vector_bits() >= 256) avx2(s, t, from, step, n, to);
  else
#endif
    plain(s, t, from, step, n, to);
}
