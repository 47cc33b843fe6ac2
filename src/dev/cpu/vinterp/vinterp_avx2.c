/* VInterp with AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define FN __attribute__((target("avx2,fma,f16c")))
#define V_FMA(a, b, c) ((F)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define V_SQRT(a) ((F)_mm256_sqrt_ps((__m256)(a)))
#define V_ROUND(a, mode) ((F)_mm256_round_ps((__m256)(a), mode))
#define V_BLEND(mask, a, b) ((F)_mm256_blendv_ps((__m256)(b), (__m256)(a), (__m256)(mask)))
#define V_DOWN(v, n)                                                                        \
  __builtin_shufflevector((F)(v), (F)(v), (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, \
                          (n) + 6, (n) + 7)
#define HALVES __m128i
#define V_TO_HALF(v) _mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_NEAREST_INT)
#define V_FROM_HALF(h) _mm256_cvtph_ps(h)
#define V_FIRST(v) __builtin_shufflevector((F)(v), (F)(v), 0, 0, 0, 0, 0, 0, 0, 0)
#define V_SOME(n) \
  _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define V_LOAD_SOME(p, n) ((F)_mm256_maskload_ps((const float *)(p), V_SOME(n)))
#define V_STORE_SOME(p, n, v) _mm256_maskstore_ps((float *)(p), V_SOME(n), (__m256)(v))
#include "dev/cpu/vinterp/vinterp_simd.h"

const StripSimd vinterp_avx2 = VINTERP_SIMD;
#endif
