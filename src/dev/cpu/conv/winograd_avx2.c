/* Winograd's arithmetic with AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "dev/cpu/conv/winograd_simd.h"

#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR TARGET static inline __attribute__((always_inline))

#define V_LANES 8
typedef __m256 V;
#define V_ZERO _mm256_setzero_ps
#define V_SET _mm256_set1_ps
#define V_ADD _mm256_add_ps
#define V_SUB _mm256_sub_ps
#define V_MUL _mm256_mul_ps
#define V_MADD _mm256_fmadd_ps
#define V_LOAD _mm256_loadu_ps
#define V_STORE _mm256_storeu_ps
#define V_LOAD_PART(p, n) _mm256_maskload_ps(p, lanes(n))
#define V_STORE_PART(p, n, x) _mm256_maskstore_ps(p, lanes(n), x)

/* Lanes [0, n) of eight. */
VECTOR __m256i lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VECTOR V V_BF16(const uint16_t *p) {
  __m128i half = _mm_loadu_si128((const __m128i *)(const void *)p);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* Rounded to nearest even; what is not finite has no meaning here: it is computed again. */
VECTOR void V_STORE_BF16(uint16_t *p, V x) {
  __m256i bits = _mm256_castps_si256(x),
          odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  bits = _mm256_srli_epi32(bits, 16);
  _mm_storeu_si128((__m128i *)(void *)p, _mm_packus_epi32(_mm256_castsi256_si128(bits),
                                                          _mm256_extracti128_si256(bits, 1)));
}

/* All lanes of a sum are finite (it counts a sum that overflows as not). */
VECTOR int V_FINITE(V x) {
  return _mm256_movemask_ps(_mm256_cmp_ps(V_SUB(x, x), V_ZERO(), _CMP_NEQ_UQ)) == 0;
}

#define V_FMA(sum, x, y) (sum) = _mm256_fmadd_ps(x, y, sum)
#define ROWS 6
#define PANELS 1
#define TERMS _Pragma("GCC unroll 4")
#include "dev/cpu/conv/winograd_tile.h"

OUTER(6, 1)
OUTER(5, 1)

static void outer(const float *a, const float *b, int64_t b_step, int64_t many, int64_t tiles,
                  float *to, int64_t to_step, int add) {
  for (int64_t q = 0; q < many; q++, b += b_step, to += PANEL) {
    outer_6x1(a, b, b_step, tiles, to, to_step, add);
    outer_5x1(a + 6, b, b_step, tiles, to + 6 * to_step, to_step, add);
    outer_5x1(a + 11, b, b_step, tiles, to + 11 * to_step, to_step, add);
  }
}

const WinoSimd wino_avx2[2][2] = WINO_ALL;
#endif
