/* Products of doubles with AVX2, 6 rows by 8 columns, and with AVX-512, 12 by 16. */
#include "dev/cpu/dot/f64.h"
#include "dev/cpu/kernel/avx512.h"
#include "dev/cpu/kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SIX(X) X(1) X(2) X(3) X(4) X(5) X(6)
/* Written so that gcc keeps the sum in one register. */
#define D_FMA(sum, x, y) __asm__("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))

#define NAME(x) avx2_##x
#define FN __attribute__((target("avx2,fma")))
#define LANES 4
#define ROWS_AT_ONCE 6
#define ROWS SIX
#define D __m256d
#define D_ZERO _mm256_setzero_pd
#define D_SET _mm256_set1_pd
#define D_LOAD _mm256_loadu_pd
#define D_STORE _mm256_storeu_pd
#define D_ADD _mm256_add_pd
#include "dev/cpu/dot/f64_tile.h"

#ifndef WEFT_EMULATE_AVX512
#undef NAME
#undef FN
#undef LANES
#undef ROWS_AT_ONCE
#undef ROWS
#undef D
#undef D_ZERO
#undef D_SET
#undef D_LOAD
#undef D_STORE
#undef D_ADD
#define NAME(x) avx512_##x
#define FN AVX512
#define LANES 8
#define ROWS_AT_ONCE 12
#define ROWS(X) SIX(X) X(7) X(8) X(9) X(10) X(11) X(12)
#define D __m512d
#define D_ZERO _mm512_setzero_pd
#define D_SET _mm512_set1_pd
#define D_LOAD _mm512_loadu_pd
#define D_STORE _mm512_storeu_pd
#define D_ADD _mm512_add_pd
#include "dev/cpu/dot/f64_tile.h"
#endif
#endif

const F64Kernels *f64_kernels(void) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
#ifndef WEFT_EMULATE_AVX512
  if (bits >= 512) return &avx512_kernels;
#endif
  if (bits >= 256) return &avx2_kernels;
#endif
  return NULL;
}
