/* The transforms of F(4x4, 3x3) with the points 0, 1, -1, 1/2, -2, infinity and of F(4x4, 2x2)
 * without -2, 8 channels at a time, and the two matrix products. With d, g and m the elements of a
 * column:
 *
 *   source    B^T d   kernel   G g   result   A^T m   gradient   A y (the transpose)   kernel back
 * G^T m (the transpose) */
#include "dev/cpu/conv/winograd_simd.h"

#include <stddef.h>

#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define AVX2 __attribute__((target("avx2,fma")))
#define INLINE AVX2 static inline __attribute__((always_inline))

#define MUL(a, b) _mm256_mul_ps(_mm256_set1_ps(a), b)
#define FMA(a, b, c) _mm256_fmadd_ps(_mm256_set1_ps(a), b, c)
#define ADD(a, b) _mm256_add_ps(a, b)
#define SUB(a, b) _mm256_sub_ps(a, b)

/* Lanes [0, n) of eight. */
INLINE __m256i lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 0   ? 0
                                              : n > 8 ? 8
                                                      : (int)n),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE void source_6(const __m256 *d, __m256 *to) {
  __m256 p = SUB(d[4], d[2]), q = SUB(d[3], d[1]);
  to[0] = FMA(1.5f, q, ADD(SUB(d[0], d[2]), p));
  to[1] = FMA(1.5f, ADD(d[2], d[3]), ADD(p, q));
  to[2] = FMA(1.5f, SUB(d[3], d[2]), SUB(p, q));
  to[3] = FMA(2, q, p);
  to[4] = FMA(-0.5f, q, p);
  to[5] = FMA(1.5f, p, SUB(SUB(d[5], d[3]), q));
}

INLINE void kernel_6(const __m256 *g, __m256 *to) {
  __m256 even = ADD(g[0], g[2]), thirds = MUL(1 / 3.0f, even);
  to[0] = g[0];
  to[1] = FMA(1 / 3.0f, g[1], thirds);
  to[2] = FMA(1 / 3.0f, g[1], SUB(_mm256_setzero_ps(), thirds));
  to[3] = FMA(-16 / 15.0f, g[0], FMA(-8 / 15.0f, g[1], MUL(-4 / 15.0f, g[2])));
  to[4] = FMA(1 / 15.0f, g[0], FMA(-2 / 15.0f, g[1], MUL(4 / 15.0f, g[2])));
  to[5] = g[2];
}

INLINE void result_4(const __m256 *m, __m256 *to) {
  __m256 p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
  to[0] = ADD(ADD(m[0], p), ADD(m[3], m[4]));
  to[1] = FMA(0.5f, m[3], FMA(-2, m[4], q));
  to[2] = FMA(0.25f, m[3], FMA(4, m[4], p));
  to[3] = FMA(0.125f, m[3], FMA(-8, m[4], ADD(q, m[5])));
}

INLINE void gradient_6(const __m256 *y, __m256 *to) {
  __m256 even = ADD(y[0], y[2]), odd = ADD(y[1], y[3]);
  to[0] = y[0];
  to[1] = ADD(even, odd);
  to[2] = SUB(even, odd);
  to[3] = FMA(0.5f, y[1], FMA(0.25f, y[2], FMA(0.125f, y[3], y[0])));
  to[4] = FMA(-2, y[1], FMA(4, y[2], FMA(-8, y[3], y[0])));
  to[5] = y[3];
}

INLINE void kernel_back_3(const __m256 *m, __m256 *to) {
  __m256 p = SUB(m[1], m[2]), q = ADD(m[1], m[2]);
  to[0] = FMA(1 / 3.0f, p, FMA(-16 / 15.0f, m[3], FMA(1 / 15.0f, m[4], m[0])));
  to[1] = FMA(1 / 3.0f, q, FMA(-8 / 15.0f, m[3], MUL(-2 / 15.0f, m[4])));
  to[2] = FMA(1 / 3.0f, p, FMA(-4 / 15.0f, m[3], FMA(4 / 15.0f, m[4], m[5])));
}

INLINE void source_5(const __m256 *d, __m256 *to) {
  __m256 p = SUB(d[3], d[1]), q = SUB(d[2], d[0]);
  to[0] = FMA(2, p, SUB(_mm256_setzero_ps(), q));
  to[1] = FMA(0.5f, SUB(d[2], d[1]), d[3]);
  to[2] = FMA(0.5f, d[1], FMA(-1.5f, d[2], d[3]));
  to[3] = p;
  to[4] = FMA(-0.5f, p, SUB(d[4], d[2]));
}

INLINE void kernel_5(const __m256 *g, __m256 *to) {
  to[0] = g[0];
  to[1] = ADD(g[0], g[1]);
  to[2] = MUL(1 / 3.0f, SUB(g[1], g[0]));
  to[3] = FMA(-4 / 3.0f, g[1], MUL(-8 / 3.0f, g[0]));
  to[4] = g[1];
}

INLINE void result_5(const __m256 *m, __m256 *to) {
  __m256 p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
  to[0] = ADD(m[0], ADD(p, m[3]));
  to[1] = FMA(0.5f, m[3], q);
  to[2] = FMA(0.25f, m[3], p);
  to[3] = FMA(0.125f, m[3], ADD(q, m[4]));
}

INLINE void gradient_5(const __m256 *y, __m256 *to) {
  __m256 even = ADD(y[0], y[2]), odd = ADD(y[1], y[3]);
  to[0] = y[0];
  to[1] = ADD(even, odd);
  to[2] = SUB(even, odd);
  to[3] = FMA(0.5f, y[1], FMA(0.25f, y[2], FMA(0.125f, y[3], y[0])));
  to[4] = y[3];
}

INLINE void kernel_back_2(const __m256 *m, __m256 *to) {
  to[0] = FMA(-1 / 3.0f, m[2], FMA(-8 / 3.0f, m[3], ADD(m[0], m[1])));
  to[1] = FMA(1 / 3.0f, m[2], FMA(-4 / 3.0f, m[3], ADD(m[1], m[4])));
}

/* All lanes of a sum are finite (it counts a sum that overflows as not). */
INLINE bool all_finite(__m256 x) {
  __m256 zero = _mm256_setzero_ps();
  return _mm256_movemask_ps(_mm256_cmp_ps(SUB(x, x), zero, _CMP_NEQ_UQ)) == 0;
}

/* Both passes over a tile of n x n that becomes out x out. LOAD(i, j) is the tile's element,
 * STORE(i, j, x) takes the results. */
#define TILE(one, n, out, LOAD, STORE)                    \
  do {                                                    \
    __m256 half_[out][n], in_[n], to_[out];               \
    for (int j = 0; j < n; j++) {                         \
      for (int i = 0; i < n; i++) in_[i] = LOAD(i, j);    \
      one(in_, to_);                                      \
      for (int i = 0; i < out; i++) half_[i][j] = to_[i]; \
    }                                                     \
    for (int i = 0; i < out; i++) {                       \
      one(half_[i], to_);                                 \
      for (int j = 0; j < out; j++) STORE(i, j, to_[j]);  \
    }                                                     \
  } while (0)
/* The only pass of a flat one. */
#define LINE(one, n, out, LOAD, STORE)                 \
  do {                                                 \
    __m256 in_[n], to_[out];                           \
    for (int j = 0; j < n; j++) in_[j] = LOAD(0, j);   \
    one(in_, to_);                                     \
    for (int j = 0; j < out; j++) STORE(0, j, to_[j]); \
  } while (0)

/* Eight elements at p, or the first n of them. */
typedef enum { F32, BF16 } Stored;
INLINE __m256 load(Stored t, const void *p, int64_t at) {
  if (t == F32) return _mm256_loadu_ps((const float *)p + at);
  __m128i half = _mm_loadu_si128((const __m128i *)(const void *)((const uint16_t *)p + at));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

INLINE __m256 load_part(Stored t, const void *p, int64_t at, int64_t n) {
  if (t == F32) return _mm256_maskload_ps((const float *)p + at, lanes(n));
  uint16_t part[8] = {0};
  for (int64_t i = 0; i < n; i++) part[i] = ((const uint16_t *)p)[at + i];
  return load(t, part, 0);
}

/* Rounded to nearest even; what is not finite has no meaning here: it is computed again. */
INLINE __m128i rounded(__m256 x) {
  __m256i bits = _mm256_castps_si256(x),
          odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  bits = _mm256_srli_epi32(bits, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

INLINE void store(Stored t, void *p, int64_t at, __m256 x) {
  if (t == F32) _mm256_storeu_ps((float *)p + at, x);
  else _mm_storeu_si128((__m128i *)(void *)((uint16_t *)p + at), rounded(x));
}

INLINE void store_part(Stored t, void *p, int64_t at, int64_t n, __m256 x) {
  if (t == F32) {
    _mm256_maskstore_ps((float *)p + at, lanes(n), x);
    return;
  }
  uint16_t part[8];
  _mm_storeu_si128((__m128i *)(void *)part, rounded(x));
  for (int64_t i = 0; i < n; i++) ((uint16_t *)p)[at + i] = part[i];
}

#define PIXEL(i, j) load(stored, pixels[(i)*n + (j)], c)
#define PIXEL_PART(i, j) load_part(stored, pixels[(i)*n + (j)], c, MIN_LANES(channels - c))
#define MIN_LANES(n) ((n) < 0 ? 0 : (n) > 8 ? 8 : (n))
#define PLACE(i, j, x) _mm256_store_ps(to + ((i)*in + (j)) * place_step + h, x)

#define PIXELS_IN(name, type, PASS, one, size, in_)                                       \
  AVX2 static void name##type(const void *const *pixels, int64_t first, int64_t channels, \
                              float *to, int64_t place_step) {                            \
    enum { n = size, in = in_ };                                                          \
    const Stored stored = type;                                                           \
    for (int h = 0; h < PANEL; h += 8) {                                                  \
      int64_t c = first + h;                                                              \
      if (c + 8 <= channels) PASS(one, n, in, PIXEL, PLACE);                              \
      else PASS(one, n, in, PIXEL_PART, PLACE);                                           \
    }                                                                                     \
  }

#define FROM(i, j) _mm256_load_ps(from + ((i)*in + (j)) * place_step + h)
#define TO(i, j) pixels[(i)*WINO_OUT + (j)]
#define WHOLE(i, j, x) \
  if (TO(i, j)) store(stored, TO(i, j), c, x), sum = ADD(sum, x)
#define SOME(i, j, x) \
  if (TO(i, j)) store_part(stored, TO(i, j), c, channels - c, x), sum = ADD(sum, x)
#define RESULT(name, type, PASS, one, in_)                                                \
  AVX2 static bool name##type(const float *from, int64_t place_step, void *const *pixels, \
                              int64_t first, int64_t channels) {                          \
    enum { in = in_ };                                                                    \
    const Stored stored = type;                                                           \
    __m256 sum = _mm256_setzero_ps();                                                     \
    for (int h = 0; h < PANEL; h += 8) {                                                  \
      int64_t c = first + h;                                                              \
      if (c >= channels) break;                                                           \
      if (c + 8 <= channels) PASS(one, in, WINO_OUT, FROM, WHOLE);                        \
      else PASS(one, in, WINO_OUT, FROM, SOME);                                           \
    }                                                                                     \
    return all_finite(sum);                                                               \
  }

#define TAP(i, j) _mm256_loadu_ps(taps + ((i)*n + (j)) * PANEL + h)
#define TAP_BACK(i, j, x) _mm256_storeu_ps(taps + ((i)*n + (j)) * PANEL + h, x), sum = ADD(sum, x)
#define KERNEL(name, back, PASS, one, one_back, n_, in_)                      \
  AVX2 static void name(const float *taps, float *to, int64_t place_step) {   \
    enum { n = n_, in = in_ };                                                \
    for (int h = 0; h < PANEL; h += 8) PASS(one, n, in, TAP, PLACE);          \
  }                                                                           \
  AVX2 static bool back(const float *from, int64_t place_step, float *taps) { \
    enum { n = n_, in = in_ };                                                \
    __m256 sum = _mm256_setzero_ps();                                         \
    for (int h = 0; h < PANEL; h += 8) PASS(one_back, in, n, FROM, TAP_BACK); \
    return all_finite(sum);                                                   \
  }

#define STEPS(suffix, PASS, taps, in, result_one)                      \
  PIXELS_IN(source##suffix, F32, PASS, source_##in, in, in)            \
  PIXELS_IN(source##suffix, BF16, PASS, source_##in, in, in)           \
  PIXELS_IN(gradient##suffix, F32, PASS, gradient_##in, WINO_OUT, in)  \
  PIXELS_IN(gradient##suffix, BF16, PASS, gradient_##in, WINO_OUT, in) \
  RESULT(result##suffix, F32, PASS, result_one, in)                    \
  RESULT(result##suffix, BF16, PASS, result_one, in)                   \
  KERNEL(kernel##suffix, kernel_back##suffix, PASS, kernel_##in, kernel_back_##taps, taps, in)
STEPS(3, TILE, 3, 6, result_4)
STEPS(2, TILE, 2, 5, result_5)
STEPS(3_flat, LINE, 3, 6, result_4)
STEPS(2_flat, LINE, 2, 5, result_5)

/* ---- products ---- */

#define ROWS2 6

AVX2 static void multiply_1_avx2(const float *tiles, int64_t panel_step, int64_t panels,
                                 const float *kernel, float *to) {
  __m256 sum[ROWS2][2];
#pragma GCC unroll 6
  for (int i = 0; i < ROWS2; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
  for (int64_t p = 0; p < panels; p++, tiles += panel_step)
#pragma GCC unroll 4
    for (int c = 0; c < PANEL; c++, kernel += PANEL) {
      __m256 k0 = _mm256_load_ps(kernel), k1 = _mm256_load_ps(kernel + 8);
#pragma GCC unroll 6
      for (int i = 0; i < ROWS2; i++) {
        __m256 x = _mm256_broadcast_ss(tiles + i * PANEL + c);
        sum[i][0] = _mm256_fmadd_ps(x, k0, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(x, k1, sum[i][1]);
      }
    }
#pragma GCC unroll 6
  for (int i = 0; i < ROWS2; i++) {
    _mm256_store_ps(to + i * PANEL, sum[i][0]);
    _mm256_store_ps(to + i * PANEL + 8, sum[i][1]);
  }
}

static void multiply_avx2(const float *tiles, int64_t panel_step, int64_t panels,
                          const float *kernel, int64_t kernel_step, float *to, int64_t to_step,
                          int64_t many) {
  for (int64_t q = 0; q < many; q++)
    multiply_1_avx2(tiles, panel_step, panels, kernel + q * kernel_step, to + q * to_step);
}

#define OUTER(name, n)                                                                             \
  AVX2 static void name(const float *a, const float *b, int64_t tiles, float *to, int64_t to_step, \
                        int add) {                                                                 \
    __m256 sum[n][2];                                                                              \
    _Pragma("GCC unroll 6") for (int i = 0; i < n; i++) sum[i][0] = sum[i][1] =                    \
        _mm256_setzero_ps();                                                                       \
    for (int64_t t = 0; t < tiles; t++, a += PANEL, b += PANEL) {                                  \
      __m256 k0 = _mm256_load_ps(b), k1 = _mm256_load_ps(b + 8);                                   \
      _Pragma("GCC unroll 6") for (int i = 0; i < n; i++) {                                        \
        __m256 x = _mm256_broadcast_ss(a + i);                                                     \
        sum[i][0] = _mm256_fmadd_ps(x, k0, sum[i][0]);                                             \
        sum[i][1] = _mm256_fmadd_ps(x, k1, sum[i][1]);                                             \
      }                                                                                            \
    }                                                                                              \
    _Pragma("GCC unroll 6") for (int i = 0; i < n; i++) {                                          \
      float *row = to + i * to_step;                                                               \
      _mm256_store_ps(row, add ? ADD(sum[i][0], _mm256_load_ps(row)) : sum[i][0]);                 \
      _mm256_store_ps(row + 8, add ? ADD(sum[i][1], _mm256_load_ps(row + 8)) : sum[i][1]);         \
    }                                                                                              \
  }
OUTER(outer_6, 6)
OUTER(outer_5, 5)

static void outer_avx2(const float *a, const float *b, int64_t b_step, int64_t many, int64_t tiles,
                       float *to, int64_t to_step, int add) {
  for (int64_t q = 0; q < many; q++, b += b_step, to += PANEL) {
    outer_6(a, b, tiles, to, to_step, add);
    outer_5(a + 6, b, tiles, to + 6 * to_step, to_step, add);
    outer_5(a + 11, b, tiles, to + 11 * to_step, to_step, add);
  }
}

#define ROWS512 12

/* Two vectors of results for each element of a tile: with one, loads would be the limit. */
#define MULTIPLY512(name, n)                                                                      \
  AVX512 static void name(const float *tiles, int64_t panel_step, int64_t panels,                 \
                          const float *kernel, int64_t kernel_step, float *to, int64_t to_step) { \
    V16 sum[ROWS512][n];                                                                          \
    _Pragma("GCC unroll 12") for (int i = 0; i < ROWS512; i++)                                    \
        _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) sum[i][q] = V16_ZERO();               \
    for (int64_t p = 0; p < panels; p++, tiles += panel_step)                                     \
      for (int c = 0; c < PANEL; c++, kernel += PANEL) {                                          \
        V16 k[n];                                                                                 \
        _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) k[q] =                                \
            V16_LOAD(kernel + q * kernel_step);                                                   \
        _Pragma("GCC unroll 12") for (int i = 0; i < ROWS512; i++) {                              \
          V16 x = V16_SET(tiles[i * PANEL + c]);                                                  \
          _Pragma("GCC unroll 2") for (int q = 0; q < n; q++) V16_FMA(sum[i][q], x, k[q]);        \
        }                                                                                         \
      }                                                                                           \
    _Pragma("GCC unroll 12") for (int i = 0; i < ROWS512; i++)                                    \
        _Pragma("GCC unroll 2") for (int q = 0; q < n; q++)                                       \
            V16_STORE(to + q * to_step + i * PANEL, sum[i][q]);                                   \
  }
MULTIPLY512(multiply_1, 1)
MULTIPLY512(multiply_2, 2)

static void multiply_avx512(const float *tiles, int64_t panel_step, int64_t panels,
                            const float *kernel, int64_t kernel_step, float *to, int64_t to_step,
                            int64_t many) {
  int64_t q = 0;
  for (; q + 2 <= many; q += 2, kernel += 2 * kernel_step, to += 2 * to_step)
    multiply_2(tiles, panel_step, panels, kernel, kernel_step, to, to_step);
  if (q < many) multiply_1(tiles, panel_step, panels, kernel, kernel_step, to, to_step);
}

#define OUTER512(name, n)                                                                  \
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
OUTER512(outer_8x1, 1)
OUTER512(outer_8x2, 2)
OUTER512(outer_8x3, 3)

static void outer_avx512(const float *a, const float *b, int64_t b_step, int64_t many,
                         int64_t tiles, float *to, int64_t to_step, int add) {
  while (many > 0) {
    int64_t n = many == 4 ? 2 : MIN_OF(many, 3);
    for (int h = 0; h < PANEL; h += 8)
      (n == 3   ? outer_8x3
       : n == 2 ? outer_8x2
                : outer_8x1)(a + h, b, b_step, tiles, to + h * to_step, to_step, add);
    many -= n;
    b += n * b_step;
    to += n * PANEL;
  }
}

#define ALL(suffix, in, places, flat, rows, multiply, outer)                              \
  {                                                                                       \
    in, places, flat, rows, {source##suffix##F32, source##suffix##BF16},                  \
        {gradient##suffix##F32, gradient##suffix##BF16},                                  \
        {result##suffix##F32, result##suffix##BF16}, kernel##suffix, kernel_back##suffix, \
        multiply, outer                                                                   \
  }
#define WIDTH(rows, multiply, outer)                                                              \
  {                                                                                               \
    {ALL(2, 5, 25, false, rows, multiply, outer), ALL(3, 6, 36, false, rows, multiply, outer)}, { \
      ALL(2_flat, 5, 5, true, rows, multiply, outer),                                             \
          ALL(3_flat, 6, 6, true, rows, multiply, outer)                                          \
    }                                                                                             \
  }
static const WinoSimd avx2[2][2] = WIDTH(ROWS2, multiply_avx2, outer_avx2),
                      avx512[2][2] = WIDTH(ROWS512, multiply_avx512, outer_avx512);

const WinoSimd *wino_simd(int vector_bits, int taps, bool flat) {
  return vector_bits >= 512   ? &avx512[flat][taps - 2]
         : vector_bits >= 256 ? &avx2[flat][taps - 2]
                              : NULL;
}

#else
const WinoSimd *wino_simd(int vector_bits, int taps, bool flat) {
  (void)vector_bits, (void)taps, (void)flat;
  return NULL;
}
#endif
