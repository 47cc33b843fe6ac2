/* conv_planar's inner loops with AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

#include "dev/cpu/conv/conv_planar.h"

#define LANES 8
#define V __m256
#define FN __attribute__((target("avx2,fma")))
#define V_ZERO _mm256_setzero_ps
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_FMA(sum, x, y) (sum) = _mm256_fmadd_ps(x, y, sum)
#define V_SUM vector_sum
#define GROUP_1 8
#define GROUP_2 6
#define GROUP_3 4
#define GROUP_4 3

FN static inline float vector_sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
#include "dev/cpu/conv/conv_planar_tile.h"

const PlanarKernels planar_avx2 = {LANES, results, weights};
#endif
