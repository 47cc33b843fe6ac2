/* VInterp with AVX-512; emulated (avx512.h), each vector is two of AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 16
#define V_BLEND(mask, a, b) ((F)(((I)(a) & (mask)) | ((I)(b) & ~(mask))))
#ifndef WEFT_EMULATE_AVX512
#define FN __attribute__((target("avx512f,avx512bw,avx512vl")))
#define V_FMA(a, b, c) ((F)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define V_SQRT(a) ((F)_mm512_sqrt_ps((__m512)(a)))
#define V_ROUND(a, mode) ((F)_mm512_roundscale_ps((__m512)(a), mode))
#define HALVES __m256i
#define V_TO_HALF(v) _mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT)
#define V_FROM_HALF(h) _mm512_cvtph_ps(h)
#define V_LOAD_SOME(p, n) ((F)_mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p))
#define V_STORE_SOME(p, n, v) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), (__m512)(v))
#else
#define FN __attribute__((target("avx2,fma,f16c")))
#pragma GCC diagnostic ignored "-Wpsabi"
typedef float Wide __attribute__((vector_size(64)));
typedef union Halves {
  Wide v;
  __m256 h[2];
} Halves;
typedef struct Half16 {
  __m128i h[2];
} Half16;
#define TWO FN static inline __attribute__((always_inline))

TWO Wide two_fma(Wide a, Wide b, Wide c) {
  Halves x = {a}, y = {b}, z = {c};
  for (int i = 0; i < 2; i++) x.h[i] = _mm256_fmadd_ps(x.h[i], y.h[i], z.h[i]);
  return x.v;
}
TWO Wide two_sqrt(Wide a) {
  Halves x = {a};
  for (int i = 0; i < 2; i++) x.h[i] = _mm256_sqrt_ps(x.h[i]);
  return x.v;
}
TWO Half16 two_to_half(Wide a) {
  Halves x = {a};
  Half16 out;
  for (int i = 0; i < 2; i++) out.h[i] = _mm256_cvtps_ph(x.h[i], _MM_FROUND_TO_NEAREST_INT);
  return out;
}
TWO Wide two_from_half(Half16 in) {
  Halves x;
  for (int i = 0; i < 2; i++) x.h[i] = _mm256_cvtph_ps(in.h[i]);
  return x.v;
}
#define V_FMA(a, b, c) ((F)two_fma((Wide)(a), (Wide)(b), (Wide)(c)))
#define V_SQRT(a) ((F)two_sqrt((Wide)(a)))
#define V_ROUND(a, mode)                                                                      \
  __extension__({                                                                             \
    Halves r_ = {(Wide)(a)};                                                                  \
    for (int half_ = 0; half_ < 2; half_++) r_.h[half_] = _mm256_round_ps(r_.h[half_], mode); \
    (F) r_.v;                                                                                 \
  })
#define HALVES Half16
#define V_TO_HALF(a) two_to_half((Wide)(a))
#define V_FROM_HALF(a) two_from_half(a)
#endif
#define V_DOWN(v, n)                                                                        \
  __builtin_shufflevector((F)(v), (F)(v), (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, \
                          (n) + 6, (n) + 7, (n) + 8, (n) + 9, (n) + 10, (n) + 11, (n) + 12, \
                          (n) + 13, (n) + 14, (n) + 15)
#define V_FIRST(v) \
  __builtin_shufflevector((F)(v), (F)(v), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#include "dev/cpu/vinterp/vinterp_simd.h"

const StripSimd vinterp_avx512 = VINTERP_SIMD;
#endif
