/* conv_planar's inner loops with AVX2 and AVX-512. */
#include "dev/cpu/conv/conv_planar.h"
#include "dev/cpu/kernel/avx512.h"
#include "dev/cpu/kernel/kernel.h"

#if defined(__x86_64__)
#define GROUP_1 8
#define GROUP_2 6
#define GROUP_3 4

#define AVX2 __attribute__((target("avx2,fma")))
AVX2 static inline float vector_sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

#define NAME(x) avx2_##x
#define LANES 8
#define V __m256
#define FN AVX2
#define V_ZERO _mm256_setzero_ps
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_FMA(sum, x, y) (sum) = _mm256_fmadd_ps(x, y, sum)
#define V_SUM vector_sum
#define GROUP_4 3
#include "dev/cpu/conv/conv_planar_tile.h"

#define NAME(x) avx512_##x
#define LANES 16
#define V V16
#define FN AVX512
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_FMA V16_FMA
#define V_SUM V16_SUM
#define GROUP_4 4
#include "dev/cpu/conv/conv_planar_tile.h"
#endif

const PlanarKernels *planar_kernels(void) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  if (bits >= 512) return &avx512_kernels;
  if (bits >= 256) return &avx2_kernels;
#endif
  return NULL;
}
