/* gemm's kernels with AVX2: 6 rows by 16 columns, 12 sums in 16 registers. The multiply-add is
 * written out: left to itself the compiler overwrites the wrong operand and copies sums about. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define MR 6
#define V __m256
#define FN __attribute__((target("avx2,fma")))
#define V_ZERO _mm256_setzero_ps
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_ADD _mm256_add_ps
#define V_FMA(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))
#include "dev/cpu/gemm_tile.h"

/* clang-format off */
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6)

const GemmKernels gemm_avx2 = {MR, LANES, {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6)
}};
/* clang-format on */
#endif
