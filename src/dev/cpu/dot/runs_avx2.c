/* runs' kernels with AVX2: 6 rows by 16 columns, 12 sums in 16 registers. */
#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define FN __attribute__((target("avx2,fma")))
#define V __m256
#define V_ZERO _mm256_setzero_ps
#define V_SET _mm256_set1_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_ADD _mm256_add_ps
#define V_FMA(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))
#define M __m256i
#define V_MASK(n) \
  _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define V_LOAD_MASK _mm256_maskload_ps
#define V_STORE_MASK _mm256_maskstore_ps
#include "dev/cpu/dot/runs_tile.h"

TO_6(RUNS, 1)
TO_6(RUNS, 2)
PACKING(1)
PACKING(2)
TO_12(STEPS, 1)
TO_6(STEPS, 2)
TO_12(SUMS, 1)
TO_6(SUMS, 2)

const RunsKernels runs_avx2 = {LANES,
                               2,
                               12,
                               {{TO_6(RUNS_NAME, 1)}, {TO_6(RUNS_NAME, 2)}},
                               {packing_1, packing_2},
                               {{TO_12(STEPS_NAME, 1)}, {TO_6(STEPS_NAME, 2)}},
                               {{TO_12(SUMS_NAME, 1)}, {TO_6(SUMS_NAME, 2)}}};
#endif
