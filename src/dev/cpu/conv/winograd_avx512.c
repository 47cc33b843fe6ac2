/* Winograd's arithmetic with AVX-512. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"

#include "dev/cpu/conv/winograd_simd.h"

#define TARGET AVX512

#define V_LANES 16
typedef V16 V;
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_ADD V16_ADD
#define V_SUB V16_SUB
#define V_MUL V16_MUL
#define V_MADD V16_MADD
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_LOAD_PART(p, n) V16_LOAD_MASK(p, V16_MASK(n))
#define V_STORE_PART(p, n, x) V16_STORE_MASK(p, V16_MASK(n), x)
#define V_BF16 V16_BF16
#define V_STORE_BF16 V16_STORE_BF16
#define V_FINITE V16_FINITE

/* ---- products ---- */

#define ROWS 12

/* Two vectors of results for each element of a tile: with one, loads would be the limit. */
#define MULTIPLY(name, n)                                                                       \
  AVX512 static void name(const float *tiles, int64_t panel_step, int64_t panels,               \
                          const float *kernel, int64_t kernel_step, float *to, int64_t to_step, \
                          bool add) {                                                           \
    V16 sum[ROWS][n];                                                                           \
    _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++)                                     \
        _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) sum[i][q] = V16_ZERO();             \
    for (int64_t p = 0; p < panels; p++, tiles += panel_step)                                   \
      for (int c = 0; c < PANEL; c++, kernel += PANEL) {                                        \
        V16 k[n];                                                                               \
        _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) k[q] =                              \
            V16_LOAD(kernel + q * kernel_step);                                                 \
        _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++) {                               \
          V16 x = V16_SET(tiles[i * PANEL + c]);                                                \
          _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) V16_FMA(sum[i][q], x, k[q]);      \
        }                                                                                       \
      }                                                                                         \
    _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++)                                     \
        _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) {                                   \
      float *row = to + q * to_step + i * PANEL;                                                \
      V16_STORE(row, add ? V16_ADD(sum[i][q], V16_LOAD(row)) : sum[i][q]);                      \
    }                                                                                           \
  }
MULTIPLY(multiply_1, 1)
MULTIPLY(multiply_2, 2)

static void multiply(const float *tiles, int64_t panel_step, int64_t panels, const float *kernel,
                     int64_t kernel_step, float *to, int64_t to_step, int64_t many) {
  for (int64_t q = 0; q < many; q += 2, kernel += 2 * kernel_step, to += 2 * to_step)
    for (int64_t p = 0; p < panels; p += WINO_SUM)
      (q + 2 <= many ? multiply_2 : multiply_1)(tiles + p * panel_step, panel_step,
                                                WINO_PART(panels - p), kernel + p * PANEL * PANEL,
                                                kernel_step, to, to_step, p > 0);
}

#define OUTER(name, n)                                                                     \
  AVX512 static void name(const float *a, const float *b, int64_t b_step, int64_t tiles,   \
                          float *to, int64_t to_step, int add) {                           \
    V16 sum[8][n];                                                                         \
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++)                                    \
        _Pragma("GCC unroll 3") for (int q = 0; q < n; q++) sum[i][q] = V16_ZERO();        \
    for (int64_t t = 0; t < tiles; t++, a += PANEL, b += PANEL) {                          \
      V16 k[n];                                                                            \
      _Pragma("GCC unroll 3") for (int q = 0; q < n; q++) k[q] = V16_LOAD(b + q * b_step); \
      _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) {                                \
        V16 x = V16_SET(a[i]);                                                             \
        _Pragma("GCC unroll 3") for (int q = 0; q < n; q++) V16_FMA(sum[i][q], x, k[q]);   \
      }                                                                                    \
    }                                                                                      \
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++)                                    \
        _Pragma("GCC unroll 3") for (int q = 0; q < n; q++) {                              \
      float *row = to + i * to_step + q * PANEL;                                           \
      V16_STORE(row, add ? V16_ADD(sum[i][q], V16_LOAD(row)) : sum[i][q]);                 \
    }                                                                                      \
  }
OUTER(outer_8x1, 1)
OUTER(outer_8x2, 2)
OUTER(outer_8x3, 3)

static void outer(const float *a, const float *b, int64_t b_step, int64_t many, int64_t tiles,
                  float *to, int64_t to_step, int add) {
  while (many > 0) {
    int64_t n = many == 4 ? 2 : many < 3 ? many : 3;
    for (int h = 0; h < PANEL; h += 8)
      (n == 3   ? outer_8x3
       : n == 2 ? outer_8x2
                : outer_8x1)(a + h, b, b_step, tiles, to + h * to_step, to_step, add);
    many -= n;
    b += n * b_step;
    to += n * PANEL;
  }
}

#include "dev/cpu/conv/winograd_tile.h"
const WinoSimd wino_avx512[2][2] = WINO_ALL;
#endif
