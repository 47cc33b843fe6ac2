/* conv_lanes' inner loops with AVX2, where a vector is two registers, and its copies for every
 * width. */
#include "dev/cpu/conv/conv_lanes.h"

#if defined(__x86_64__)
#ifndef WEFT_EMULATE_AVX512
#define WEFT_EMULATE_AVX512 /* vectors of two registers, as it makes them */
#endif
#include "dev/cpu/kernel/avx512.h"

#define PLACES 6
#define TAPS 6
#include "dev/cpu/conv/conv_lanes_tile.h"
#undef PLACES

#define PLACES 7
#define S __m256
#define S_LANES 8
#define S_ZERO _mm256_setzero_ps
#define S_LOAD _mm256_loadu_ps
#define S_FMA(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))
#define S_STORE _mm256_storeu_ps
#define S_STORE_BF16(p, x) _mm_storeu_si128((__m128i *)(void *)(p), v16_half_to_bf16(x))
#include "dev/cpu/conv/conv_lanes_slide.h"

const LanesKernels lanes_avx2 = {results, slide, weights};

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

AVX512 void lanes_spread(const LanesSpread *s, DType t, const void *from, int64_t step, int64_t n,
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
#else
void lanes_spread(const LanesSpread *s, DType t, const void *from, int64_t step, int64_t n,
                  float *to) {
  float x[LANES] = {0};
  for (int64_t i = 0; i < n; i++, to += LANES) {
    const char *pixel = (const char *)from + i * step * dtype_bytes(t);
    for (int64_t c = 0; c < s->in; c++) x[c] = (float)elem_get_f64(t, pixel + c * dtype_bytes(t));
    for (int64_t k = 0; k < (s->index ? s->inputs : 1); k++)
      for (int l = 0; l < LANES; l++) to[k * s->apart + l] = x[s->index ? s->index[k][l] : l];
  }
}
#endif
