/* VInterp of 64 bits with AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 4
#define FN __attribute__((target("avx2,fma")))
#define V_SQRT(a) ((F)_mm256_sqrt_pd((__m256d)(a)))
#define V_ROUND(a, mode) ((F)_mm256_round_pd((__m256d)(a), mode))
#define V_BLEND(mask, a, b) ((F)_mm256_blendv_pd((__m256d)(b), (__m256d)(a), (__m256d)(mask)))
#define V_DOWN(v, n) __builtin_shufflevector((F)(v), (F)(v), (n), (n) + 1, (n) + 2, (n) + 3)
#define V_FIRST(v) __builtin_shufflevector((F)(v), (F)(v), 0, 0, 0, 0)
#include "dev/cpu/vinterp/vinterp_wide.h"

const StripSimd vinterp_wide_avx2 = VINTERP_WIDE;
#endif
