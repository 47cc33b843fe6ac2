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
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6) KERNELS(7) KERNELS(8)
KERNELS(9) KERNELS(10) KERNELS(11) KERNELS(12)

const GemmKernels gemm_avx512_vnni = {.mr = MR, .lanes = LANES, .per = 4, .head = head, .fn = {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(10)
  ROW(11) ROW(12)
}};
/* clang-format on */
#endif
