/* gemm's kernels for quads of int8, with AVX512_VNNI: each step of k multiplies four elements, of the
 * rows without a sign, of the columns with one. Rows that have one are moved by 128; a panel of
 * columns begins with what that adds to their sums, taken away. */
#if defined(__x86_64__) && !defined(WEFT_EMULATE_AVX512)
#include <immintrin.h>

#define LANES 16
#define MR 12
#define V __m512i
#define FN __attribute__((target("avx512f,avx512vnni")))
#define HEAD 1
#define V_ZERO _mm512_setzero_si512
#define V_SET(x) _mm512_castps_si512(_mm512_set1_ps(x))
#define V_LOAD _mm512_loadu_si512
#define V_STORE _mm512_storeu_si512
#define V_ADD _mm512_add_epi32
#define V_FMA(sum, x, y) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#include "dev/cpu/dot/gemm_tile.h"

FN static inline __m128i gemm_sum4(V a, V b, V c, V d) {
  V s[4] = {a, b, c, d};
  __m256i half[4];
  for (int i = 0; i < 4; i++)
    half[i] = _mm256_add_epi32(_mm512_castsi512_si256(s[i]), _mm512_extracti64x4_epi64(s[i], 1));
  __m256i all =
      _mm256_hadd_epi32(_mm256_hadd_epi32(half[0], half[1]), _mm256_hadd_epi32(half[2], half[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
FN static inline void gemm_add4(void *c, __m128i s) {
  _mm_storeu_si128(c, _mm_add_epi32(_mm_loadu_si128(c), s));
}
FN static inline void gemm_add1(void *c, int s) {
  uint32_t sum;
  memcpy(&sum, c, 4);
  sum += (uint32_t)s;
  memcpy(c, &sum, 4);
}
#define V_BF16 V_LOAD
#define V_F16 V_LOAD
#define V_SUM _mm512_reduce_add_epi32
#define V_SUM4 gemm_sum4
#define V_ADD1 gemm_add1
#define V_ADD4 gemm_add4
#define V_LAST(v, n) _mm512_maskz_mov_epi32((__mmask16)(0xffff0000u >> (n)), v)
#define FEW 4
#define FEW_SEVERAL
#include "dev/cpu/dot/gemm_few.h"

FN static void head(bool flip, int64_t width, int64_t k, float *panel) {
  for (int64_t i = 0; i < width; i += LANES) {
    V sum = V_ZERO(), ones = _mm512_set1_epi32(0x01010101);
    for (int64_t p = 1; flip && p <= k; p++) V_FMA(sum, ones, V_LOAD(panel + p * width + i));
    V_STORE(panel + i, _mm512_sub_epi32(V_ZERO(), _mm512_slli_epi32(sum, 7)));
  }
}

/* clang-format off */
TO_12(KERNELS)

const GemmKernels gemm_avx512_vnni = {.mr = MR, .lanes = LANES, .per = 4, .head = head,
  .fn = {TO_12(ROW)}, .few = FEW, .dots = {few_dots_f32}};
/* clang-format on */
#endif
