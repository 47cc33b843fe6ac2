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

/* ---- products ---- */

#define ROWS 6

TARGET static void multiply_part(const float *tiles, int64_t panel_step, int64_t panels,
                                 const float *kernel, float *to, bool add) {
  __m256 sum[ROWS][2];
#pragma GCC unroll 6
  for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
  for (int64_t p = 0; p < panels; p++, tiles += panel_step)
#pragma GCC unroll 4
    for (int c = 0; c < PANEL; c++, kernel += PANEL) {
      __m256 k0 = _mm256_load_ps(kernel), k1 = _mm256_load_ps(kernel + 8);
#pragma GCC unroll 6
      for (int i = 0; i < ROWS; i++) {
        __m256 x = _mm256_broadcast_ss(tiles + i * PANEL + c);
        sum[i][0] = _mm256_fmadd_ps(x, k0, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(x, k1, sum[i][1]);
      }
    }
#pragma GCC unroll 6
  for (int i = 0; i < ROWS; i++, to += PANEL) {
    _mm256_store_ps(to, add ? V_ADD(sum[i][0], _mm256_load_ps(to)) : sum[i][0]);
    _mm256_store_ps(to + 8, add ? V_ADD(sum[i][1], _mm256_load_ps(to + 8)) : sum[i][1]);
  }
}

static void multiply(const float *tiles, int64_t panel_step, int64_t panels, const float *kernel,
                     int64_t kernel_step, float *to, int64_t to_step, int64_t many) {
  for (int64_t q = 0; q < many; q++, kernel += kernel_step, to += to_step)
    for (int64_t p = 0; p < panels; p += WINO_SUM)
      multiply_part(tiles + p * panel_step, panel_step, WINO_PART(panels - p),
                    kernel + p * PANEL * PANEL, to, p > 0);
}

#define OUTER(name, n)                                                                       \
  TARGET static void name(const float *a, const float *b, int64_t tiles, float *to,          \
                          int64_t to_step, int add) {                                        \
    __m256 sum[n][2];                                                                        \
    _Pragma("GCC unroll 6") for (int i = 0; i < n; i++) sum[i][0] = sum[i][1] =              \
        _mm256_setzero_ps();                                                                 \
    for (int64_t t = 0; t < tiles; t++, a += PANEL, b += PANEL) {                            \
      __m256 k0 = _mm256_load_ps(b), k1 = _mm256_load_ps(b + 8);                             \
      _Pragma("GCC unroll 6") for (int i = 0; i < n; i++) {                                  \
        __m256 x = _mm256_broadcast_ss(a + i);                                               \
        sum[i][0] = _mm256_fmadd_ps(x, k0, sum[i][0]);                                       \
        sum[i][1] = _mm256_fmadd_ps(x, k1, sum[i][1]);                                       \
      }                                                                                      \
    }                                                                                        \
    _Pragma("GCC unroll 6") for (int i = 0; i < n; i++) {                                    \
      float *row = to + i * to_step;                                                         \
      _mm256_store_ps(row, add ? V_ADD(sum[i][0], _mm256_load_ps(row)) : sum[i][0]);         \
      _mm256_store_ps(row + 8, add ? V_ADD(sum[i][1], _mm256_load_ps(row + 8)) : sum[i][1]); \
    }                                                                                        \
  }
OUTER(outer_6, 6)
OUTER(outer_5, 5)

static void outer(const float *a, const float *b, int64_t b_step, int64_t many, int64_t tiles,
                  float *to, int64_t to_step, int add) {
  for (int64_t q = 0; q < many; q++, b += b_step, to += PANEL) {
    outer_6(a, b, tiles, to, to_step, add);
    outer_5(a + 6, b, tiles, to + 6 * to_step, to_step, add);
    outer_5(a + 11, b, tiles, to + 11 * to_step, to_step, add);
  }
}

#include "dev/cpu/conv/winograd_tile.h"
const WinoSimd wino_avx2[2][2] = WINO_ALL;
#endif
