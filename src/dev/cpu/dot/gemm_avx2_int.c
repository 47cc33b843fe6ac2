/* gemm's kernels for pairs of int16, with AVX2: each step of k multiplies two elements and adds both
 * products to a sum of 32 bits, exact modulo 2^32. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define MR 6
#define V __m256i
#define FN __attribute__((target("avx2")))
#define V_ZERO _mm256_setzero_si256
#define V_SET(x) _mm256_castps_si256(_mm256_set1_ps(x))
#define V_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define V_STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define V_ADD _mm256_add_epi32
#define V_FMA(sum, x, y)                                                           \
  do {                                                                             \
    V both;                                                                        \
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"                             \
            : "+x"(sum), "=&x"(both)                                               \
            : "x"(x), "x"(y)); /* left to itself the compiler copies sums about */ \
  } while (0)
#define PER 2
/* Columns of bytes: of two rows, one beside the other, widened. */
#define V_EIGHT(p) _mm_loadl_epi64((const __m128i *)(p))
#define V_TAKE(p, far, j) \
  _mm256_cvtepi8_epi16(   \
      _mm_unpacklo_epi8(V_EIGHT((p) + (j)*LANES), V_EIGHT((p) + (far) + (j)*LANES)))
#include "dev/cpu/dot/gemm_tile.h"

/* clang-format off */
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6)
TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6)

const GemmKernels gemm_avx2_int = {.mr = MR, .lanes = LANES, .per = 2, .fn = {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6)
}, .takes = DT_I8, .take = {
  TAKE_ROW(1) TAKE_ROW(2) TAKE_ROW(3) TAKE_ROW(4) TAKE_ROW(5) TAKE_ROW(6)
}};
/* clang-format on */
#endif
