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
  .fn = {TO_12(ROW)}};
/* clang-format on */
#endif
