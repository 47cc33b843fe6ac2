/* gemm's kernels with AVX2: 6 rows by 16 columns, 12 sums in 16 registers. The multiply-add is
 * written out: left to itself the compiler overwrites the wrong operand and copies sums about. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define MR 6
#define V __m256
#define FN __attribute__((target("avx2,fma,f16c")))
#define V_ZERO _mm256_setzero_ps
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_ADD _mm256_add_ps
#define V_FMA(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))
#define V_TAKE(p, far, j) V_LOAD((const float *)(const void *)(p) + (j)*LANES)
#define V_BF16(p)      \
  _mm256_castsi256_ps( \
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16))
#define V_F16(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#define V_SUM gemm_sum
#define V_SUM4 gemm_sum4
#define V_LAST gemm_last
#define FEW 3
#define M __m256i
#define V_MASK(n) \
  _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define V_LOAD_MASK _mm256_maskload_ps
#define V_STORE_MASK _mm256_maskstore_ps
#include "dev/cpu/dot/gemm_tile.h"

FN static inline float gemm_sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
FN static inline __m128 gemm_sum4(__m256 a, __m256 b, __m256 c, __m256 d) {
  __m256 s = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}
FN static inline __m256 gemm_last(__m256 v, int64_t n) {
  return _mm256_andnot_ps(_mm256_castsi256_ps(V_MASK(LANES - n)), v);
}
#include "dev/cpu/dot/gemm_few.h"
#define SHORT_REGS 12
#include "dev/cpu/dot/gemm_small.h"

/* clang-format off */
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6)
TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6)

const GemmKernels gemm_avx2 = {.mr = MR, .lanes = LANES, .per = 1, .panel = SMALL_LIST, .shorts = SHORT_LIST,
  .few = FEW, .along = FEW_LIST(along), .dots = FEW_LIST(dots), .fn = {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6)
}, .takes = DT_F32, .take = {
  TAKE_ROW(1) TAKE_ROW(2) TAKE_ROW(3) TAKE_ROW(4) TAKE_ROW(5) TAKE_ROW(6)
}};
/* clang-format on */
#endif
