/* gemm's kernels with AVX-512: 12 rows by 32 columns, 24 sums in 32 registers. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 16
#define MR 12
#define V __m512
#define FN __attribute__((target("avx512f")))
#define V_ZERO _mm512_setzero_ps
#define V_SET _mm512_set1_ps
#define V_LOAD _mm512_loadu_ps
#define V_STORE _mm512_storeu_ps
#define V_ADD _mm512_add_ps
#define V_FMA(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define V_BF16(p)      \
  _mm512_castsi512_ps( \
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define V_F16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#define V_SUM _mm512_reduce_add_ps
#define FEW 4
#include "dev/cpu/gemm_tile.h"
#include "dev/cpu/gemm_few.h"

/* clang-format off */
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6) KERNELS(7) KERNELS(8)
KERNELS(9) KERNELS(10) KERNELS(11) KERNELS(12)

const GemmKernels gemm_avx512 = {MR, LANES, {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(10)
  ROW(11) ROW(12)
}, FEW_LIST(along), FEW_LIST(dots)};
/* clang-format on */
#endif
