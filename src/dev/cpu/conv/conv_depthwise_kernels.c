/* The inner loops of conv_depthwise.c for AVX2, AVX-512 and any other host. */
#include "dev/cpu/conv/conv_depthwise.h"
#include "dev/cpu/kernel/avx512.h"
#include "dev/cpu/kernel/kernel.h"

#define NEVER(p, x) ((void)(p), (void)(x))

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
/* Written so that gcc keeps the sum in one register. */
#define FMA(type, sum, x, y) __asm__("vfmadd231" type " %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))

#define STORE_BF16(p, x) _mm_storeu_si128((__m128i *)(void *)(p), v8_to_bf16(x))

#define NAME(x) avx2_##x
#define FN AVX2
#define E float
#define S __m256
#define S_LANES 8
#define S_ZERO _mm256_setzero_ps
#define S_LOAD _mm256_loadu_ps
#define S_STORE _mm256_storeu_ps
#define S_STORE_BF16 STORE_BF16
#define S_FMA(sum, x, y) (sum) = _mm256_fmadd_ps(x, y, sum)
#define PLACES 7
#define SUMS 12
#include "dev/cpu/conv/conv_depthwise_tile.h"

#define NAME(x) avx2_f64_##x
#define FN AVX2
#define E double
#define S __m256d
#define S_LANES 4
#define S_ZERO _mm256_setzero_pd
#define S_LOAD _mm256_loadu_pd
#define S_STORE _mm256_storeu_pd
#define S_STORE_BF16 NEVER
#define S_FMA(sum, x, y) (sum) = _mm256_fmadd_pd(x, y, sum)
#define SUMS 12
#include "dev/cpu/conv/conv_depthwise_tile.h"

#define NAME(x) avx512_##x
#define FN AVX512
#define E float
#define S V16
#define S_LANES 16
#define S_ZERO V16_ZERO
#define S_LOAD V16_LOAD
#define S_STORE V16_STORE
#define S_STORE_BF16 V16_STORE_BF16
#define S_FMA V16_FMA
#define PLACES 8
#define SUMS 24
#include "dev/cpu/conv/conv_depthwise_tile.h"

#ifndef WEFT_EMULATE_AVX512
#define NAME(x) avx512_f64_##x
#define FN AVX512
#define E double
#define S __m512d
#define S_LANES 8
#define S_ZERO _mm512_setzero_pd
#define S_LOAD _mm512_loadu_pd
#define S_STORE _mm512_storeu_pd
#define S_STORE_BF16 NEVER
#define S_FMA(sum, x, y) FMA("pd", sum, x, y)
#define SUMS 24
#include "dev/cpu/conv/conv_depthwise_tile.h"
#else
#define avx512_f64_kernels avx2_f64_kernels
#endif
#endif

#define NAME(x) plain_##x
#define FN
#define E float
#define S F4
#define S_LANES 4
#define S_ZERO f4_zero
#define S_LOAD(p) (*(const F4 *)(p))
#define S_STORE(p, x) (*(F4 *)(p) = (x))
#define S_STORE_BF16 f4_store_bf16
#define S_FMA(sum, x, y) (sum) += (x) * (y)
typedef float F4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline F4 f4_zero(void) { return (F4){0}; }
static inline void f4_store_bf16(char *p, F4 x) {
  for (int i = 0; i < 4; i++) elem_set_f64(DT_BF16, p + 2 * i, x[i]);
}
#define SUMS 12
#include "dev/cpu/conv/conv_depthwise_tile.h"

#define NAME(x) plain_f64_##x
#define FN
#define E double
#define S D2
#define S_LANES 2
#define S_ZERO d2_zero
#define S_LOAD(p) (*(const D2 *)(p))
#define S_STORE(p, x) (*(D2 *)(p) = (x))
#define S_STORE_BF16 NEVER
#define S_FMA(sum, x, y) (sum) += (x) * (y)
typedef double D2 __attribute__((vector_size(16), aligned(8), may_alias));
static inline D2 d2_zero(void) { return (D2){0}; }
#define SUMS 12
#include "dev/cpu/conv/conv_depthwise_tile.h"

const LanesKernels *lanes_kernels(bool f64) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  if (bits >= 512) return f64 ? &avx512_f64_kernels : &avx512_kernels;
  if (bits >= 256) return f64 ? &avx2_f64_kernels : &avx2_kernels;
#endif
  return f64 ? &plain_f64_kernels : &plain_kernels;
}
