/* VInterp of 64 bits with AVX-512; emulated (avx512.h), each vector is two of AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define V_BLEND(mask, a, b) ((F)(((I)(a) & (mask)) | ((I)(b) & ~(mask))))
#ifndef WEFT_EMULATE_AVX512
#define FN __attribute__((target("avx512f,avx512bw,avx512vl")))
#define V_SQRT(a) ((F)_mm512_sqrt_pd((__m512d)(a)))
#define V_ROUND(a, mode) ((F)_mm512_roundscale_pd((__m512d)(a), mode))
#define V_LOAD_SOME(p, n) ((F)_mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1), p))
#define V_STORE_SOME(p, n, v) _mm512_mask_storeu_pd(p, (__mmask8)((1u << (n)) - 1), (__m512d)(v))
#else
#define FN __attribute__((target("avx2,fma")))
#pragma GCC diagnostic ignored "-Wpsabi"
#define V_EACH(a, of_half)                             \
  __extension__({                                      \
    union {                                            \
      F v;                                             \
      __m256d h[2];                                    \
    } r_ = {(F)(a)};                                   \
    for (int k_ = 0; k_ < 2; k_++) r_.h[k_] = of_half; \
    r_.v;                                              \
  })
#define V_SQRT(a) V_EACH(a, _mm256_sqrt_pd(r_.h[k_]))
#define V_ROUND(a, mode) V_EACH(a, _mm256_round_pd(r_.h[k_], mode))
#endif
#define V_DOWN(v, n)                                                                        \
  __builtin_shufflevector((F)(v), (F)(v), (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, \
                          (n) + 6, (n) + 7)
#define V_FIRST(v) __builtin_shufflevector((F)(v), (F)(v), 0, 0, 0, 0, 0, 0, 0, 0)
#include "dev/cpu/vinterp/vinterp_wide.h"

const StripSimd vinterp_wide_avx512 = VINTERP_WIDE;
#endif
