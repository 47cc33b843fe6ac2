/* Winograd's transforms and products for one width of vectors: included by winograd_avx*.c, which define a vector V
 * of V_LANES floats, what is done with it (V_ADD ...), TARGET, and of how many ROWS and PANELS the sums of a product fit
 * the registers.
 *
 * F(4x4, 3x3) has the points 0, 1, -1, 1/2, -2, infinity, F(4x4, 2x2) those without -2. With d, g
 * and m the elements of a column:
 *
 *   source   B^T d     kernel        G g                     result   A^T m
 *   gradient A y (the transpose)     kernel back G^T m (the transpose) */
#include "dev/cpu/conv/winograd_simd.h"

#define INLINE TARGET static inline __attribute__((always_inline))
#define MUL(a, b) V_MUL(V_SET(a), b)
#define FMA(a, b, c) V_MADD(V_SET(a), b, c)
#define ADD(a, b) V_ADD(a, b)
#define SUB(a, b) V_SUB(a, b)

INLINE void source_6(const V *d, V *to) {
  V p = SUB(d[4], d[2]), q = SUB(d[3], d[1]);
  to[0] = FMA(1.5f, q, ADD(SUB(d[0], d[2]), p));
  to[1] = FMA(1.5f, ADD(d[2], d[3]), ADD(p, q));
  to[2] = FMA(1.5f, SUB(d[3], d[2]), SUB(p, q));
  to[3] = FMA(2, q, p);
  to[4] = FMA(-0.5f, q, p);
  to[5] = FMA(1.5f, p, SUB(SUB(d[5], d[3]), q));
}

INLINE void kernel_6(const V *g, V *to) {
  V even = ADD(g[0], g[2]), thirds = MUL(1 / 3.0f, even);
  to[0] = g[0];
  to[1] = FMA(1 / 3.0f, g[1], thirds);
  to[2] = FMA(1 / 3.0f, g[1], SUB(V_ZERO(), thirds));
  to[3] = FMA(-16 / 15.0f, g[0], FMA(-8 / 15.0f, g[1], MUL(-4 / 15.0f, g[2])));
  to[4] = FMA(1 / 15.0f, g[0], FMA(-2 / 15.0f, g[1], MUL(4 / 15.0f, g[2])));
  to[5] = g[2];
}

INLINE void result_4(const V *m, V *to) {
  V p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
  to[0] = ADD(ADD(m[0], p), ADD(m[3], m[4]));
  to[1] = FMA(0.5f, m[3], FMA(-2, m[4], q));
  to[2] = FMA(0.25f, m[3], FMA(4, m[4], p));
  to[3] = FMA(0.125f, m[3], FMA(-8, m[4], ADD(q, m[5])));
}

INLINE void gradient_6(const V *y, V *to) {
  V even = ADD(y[0], y[2]), odd = ADD(y[1], y[3]);
  to[0] = y[0];
  to[1] = ADD(even, odd);
  to[2] = SUB(even, odd);
  to[3] = FMA(0.5f, y[1], FMA(0.25f, y[2], FMA(0.125f, y[3], y[0])));
  to[4] = FMA(-2, y[1], FMA(4, y[2], FMA(-8, y[3], y[0])));
  to[5] = y[3];
}

INLINE void kernel_back_3(const V *m, V *to) {
  V p = SUB(m[1], m[2]), q = ADD(m[1], m[2]);
  to[0] = FMA(1 / 3.0f, p, FMA(-16 / 15.0f, m[3], FMA(1 / 15.0f, m[4], m[0])));
  to[1] = FMA(1 / 3.0f, q, FMA(-8 / 15.0f, m[3], MUL(-2 / 15.0f, m[4])));
  to[2] = FMA(1 / 3.0f, p, FMA(-4 / 15.0f, m[3], FMA(4 / 15.0f, m[4], m[5])));
}

INLINE void source_5(const V *d, V *to) {
  V p = SUB(d[3], d[1]), q = SUB(d[2], d[0]);
  to[0] = FMA(2, p, SUB(V_ZERO(), q));
  to[1] = FMA(0.5f, SUB(d[2], d[1]), d[3]);
  to[2] = FMA(0.5f, d[1], FMA(-1.5f, d[2], d[3]));
  to[3] = p;
  to[4] = FMA(-0.5f, p, SUB(d[4], d[2]));
}

INLINE void kernel_5(const V *g, V *to) {
  to[0] = g[0];
  to[1] = ADD(g[0], g[1]);
  to[2] = MUL(1 / 3.0f, SUB(g[1], g[0]));
  to[3] = FMA(-4 / 3.0f, g[1], MUL(-8 / 3.0f, g[0]));
  to[4] = g[1];
}

INLINE void result_5(const V *m, V *to) {
  V p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
  to[0] = ADD(m[0], ADD(p, m[3]));
  to[1] = FMA(0.5f, m[3], q);
  to[2] = FMA(0.25f, m[3], p);
  to[3] = FMA(0.125f, m[3], ADD(q, m[4]));
}

INLINE void gradient_5(const V *y, V *to) {
  V even = ADD(y[0], y[2]), odd = ADD(y[1], y[3]);
  to[0] = y[0];
  to[1] = ADD(even, odd);
  to[2] = SUB(even, odd);
  to[3] = FMA(0.5f, y[1], FMA(0.25f, y[2], FMA(0.125f, y[3], y[0])));
  to[4] = y[3];
}

INLINE void kernel_back_2(const V *m, V *to) {
  to[0] = FMA(-1 / 3.0f, m[2], FMA(-8 / 3.0f, m[3], ADD(m[0], m[1])));
  to[1] = FMA(1 / 3.0f, m[2], FMA(-4 / 3.0f, m[3], ADD(m[1], m[4])));
}

#define UNROLL _Pragma("GCC unroll 6")

/* Both passes over a tile of n x n that becomes out x out. LOAD(i, j) is the tile's element,
 * STORE(i, j, x) takes the results. */
#define TILE(one, n, out, LOAD, STORE)                           \
  do {                                                           \
    V half_[out][n], in_[n], to_[out];                           \
    UNROLL for (int j = 0; j < n; j++) {                         \
      UNROLL for (int i = 0; i < n; i++) in_[i] = LOAD(i, j);    \
      one(in_, to_);                                             \
      UNROLL for (int i = 0; i < out; i++) half_[i][j] = to_[i]; \
    }                                                            \
    UNROLL for (int i = 0; i < out; i++) {                       \
      one(half_[i], to_);                                        \
      UNROLL for (int j = 0; j < out; j++) STORE(i, j, to_[j]);  \
    }                                                            \
  } while (0)
/* The only pass of a flat one. */
#define LINE(one, n, out, LOAD, STORE)                        \
  do {                                                        \
    V in_[n], to_[out];                                       \
    UNROLL for (int j = 0; j < n; j++) in_[j] = LOAD(0, j);   \
    one(in_, to_);                                            \
    UNROLL for (int j = 0; j < out; j++) STORE(0, j, to_[j]); \
  } while (0)

/* A vector of elements at p, or the first n of them. */
typedef enum { F32, BF16 } Stored;
INLINE V load(Stored t, const void *p, int64_t at) {
  return t == F32 ? V_LOAD((const float *)p + at) : V_BF16((const uint16_t *)p + at);
}

INLINE V load_part(Stored t, const void *p, int64_t at, int64_t n) {
  if (t == F32) return V_LOAD_PART((const float *)p + at, n);
  uint16_t part[V_LANES] = {0};
  for (int64_t i = 0; i < n; i++) part[i] = ((const uint16_t *)p)[at + i];
  return V_BF16(part);
}

INLINE void store(Stored t, void *p, int64_t at, V x) {
  if (t == F32) V_STORE((float *)p + at, x);
  else V_STORE_BF16((uint16_t *)p + at, x);
}

INLINE void store_part(Stored t, void *p, int64_t at, int64_t n, V x) {
  if (t == F32) {
    V_STORE_PART((float *)p + at, n, x);
    return;
  }
  uint16_t part[V_LANES];
  V_STORE_BF16(part, x);
  for (int64_t i = 0; i < n; i++) ((uint16_t *)p)[at + i] = part[i];
}

#define PIXEL(i, j) load(stored, pixels[(i)*n + (j)], c)
#define PIXEL_PART(i, j) load_part(stored, pixels[(i)*n + (j)], c, here)
#define PLACE(i, j, x) V_STORE(to + ((i)*in + (j)) * place_step + h, x)

#define PIXELS_IN(name, type, PASS, one, size, in_)                                         \
  TARGET static void name##type(const void *const *pixels, int64_t first, int64_t channels, \
                                float *to, int64_t place_step) {                            \
    enum { n = size, in = in_ };                                                            \
    const Stored stored = type;                                                             \
    for (int h = 0; h < PANEL; h += V_LANES) {                                              \
      int64_t c = first + h, here = channels - c < 0 ? 0 : channels - c;                    \
      if (here >= V_LANES) PASS(one, n, in, PIXEL, PLACE);                                  \
      else PASS(one, n, in, PIXEL_PART, PLACE);                                             \
    }                                                                                       \
  }

#define FROM(i, j) V_LOAD(from + ((i)*in + (j)) * place_step + h)
#define TO(i, j) pixels[(i)*WINO_OUT + (j)]
#define WHOLE(i, j, x) \
  if (TO(i, j)) store(stored, TO(i, j), c, x), sum = ADD(sum, x)
#define SOME(i, j, x) \
  if (TO(i, j)) store_part(stored, TO(i, j), c, channels - c, x), sum = ADD(sum, x)
#define RESULT(name, type, PASS, one, in_)                                                  \
  TARGET static bool name##type(const float *from, int64_t place_step, void *const *pixels, \
                                int64_t first, int64_t channels) {                          \
    enum { in = in_ };                                                                      \
    const Stored stored = type;                                                             \
    V sum = V_ZERO();                                                                       \
    for (int h = 0; h < PANEL; h += V_LANES) {                                              \
      int64_t c = first + h;                                                                \
      if (c >= channels) break;                                                             \
      if (c + V_LANES <= channels) PASS(one, in, WINO_OUT, FROM, WHOLE);                    \
      else PASS(one, in, WINO_OUT, FROM, SOME);                                             \
    }                                                                                       \
    return V_FINITE(sum);                                                                   \
  }

#define TAP(i, j) V_LOAD(taps + ((i)*n + (j)) * PANEL + h)
#define TAP_BACK(i, j, x) V_STORE(taps + ((i)*n + (j)) * PANEL + h, x), sum = ADD(sum, x)
#define KERNEL(name, back, PASS, one, one_back, n_, in_)                            \
  TARGET static void name(const float *taps, float *to, int64_t place_step) {       \
    enum { n = n_, in = in_ };                                                      \
    for (int h = 0; h < PANEL; h += V_LANES) PASS(one, n, in, TAP, PLACE);          \
  }                                                                                 \
  TARGET static bool back(const float *from, int64_t place_step, float *taps) {     \
    enum { n = n_, in = in_ };                                                      \
    V sum = V_ZERO();                                                               \
    for (int h = 0; h < PANEL; h += V_LANES) PASS(one_back, in, n, FROM, TAP_BACK); \
    return V_FINITE(sum);                                                           \
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

#define VECTORS (PANEL / V_LANES)

/* `panels` of results at a time: with one vector for each element of a tile loads would be the limit. */
INLINE void multiply_part(int n, const float *tiles, int64_t panel_step, int64_t panels,
                          const float *kernel, int64_t kernel_step, float *to, int64_t to_step,
                          bool add) {
  V sum[ROWS][PANELS * VECTORS];
#define EACH_SUM(i, q)                                    \
  _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++) \
      _Pragma("GCC unroll 4") for (int q = 0; q < n * VECTORS; q++)
  EACH_SUM(i, q) sum[i][q] = V_ZERO();
  for (int64_t p = 0; p < panels; p++, tiles += panel_step)
    TERMS for (int c = 0; c < PANEL; c++, kernel += PANEL) {
      V k[PANELS * VECTORS];
#pragma GCC unroll 4
      for (int q = 0; q < n * VECTORS; q++)
        k[q] = V_LOAD(kernel + q / VECTORS * kernel_step + q % VECTORS * V_LANES);
#pragma GCC unroll 12
      for (int i = 0; i < ROWS; i++) {
        V x = V_SET(tiles[i * PANEL + c]);
#pragma GCC unroll 4
        for (int q = 0; q < n * VECTORS; q++) V_FMA(sum[i][q], x, k[q]);
      }
    }
  EACH_SUM(i, q) {
    float *row = to + q / VECTORS * to_step + i * PANEL + q % VECTORS * V_LANES;
    V_STORE(row, add ? V_ADD(sum[i][q], V_LOAD(row)) : sum[i][q]);
  }
#undef EACH_SUM
}

#define MULTIPLY(n)                                                                       \
  TARGET static void multiply_##n(const float *tiles, int64_t panel_step, int64_t panels, \
                                  const float *kernel, int64_t kernel_step, float *to,    \
                                  int64_t to_step, bool add) {                            \
    multiply_part(n, tiles, panel_step, panels, kernel, kernel_step, to, to_step, add);   \
  }
MULTIPLY(1)
#if PANELS > 1
MULTIPLY(2)
#else
#define multiply_2 multiply_1
#endif

static void multiply(const float *tiles, int64_t panel_step, int64_t panels, const float *kernel,
                     int64_t kernel_step, float *to, int64_t to_step, int64_t many) {
  for (int64_t q = 0; q < many; q += PANELS, kernel += PANELS * kernel_step, to += PANELS * to_step)
    for (int64_t p = 0; p < panels; p += WINO_SUM)
      (q + 2 <= many ? multiply_2 : multiply_1)(tiles + p * panel_step, panel_step,
                                                WINO_PART(panels - p), kernel + p * PANEL * PANEL,
                                                kernel_step, to, to_step, p > 0);
}

INLINE void outer_part(int rows, int n, const float *a, const float *b, int64_t b_step,
                       int64_t tiles, float *to, int64_t to_step, int add) {
  V sum[8][3 * VECTORS];
#define EACH_SUM(i, q)                                   \
  _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) \
      _Pragma("GCC unroll 6") for (int q = 0; q < n * VECTORS; q++)
  EACH_SUM(i, q) sum[i][q] = V_ZERO();
  for (int64_t t = 0; t < tiles; t++, a += PANEL, b += PANEL) {
    V k[3 * VECTORS];
#pragma GCC unroll 6
    for (int q = 0; q < n * VECTORS; q++)
      k[q] = V_LOAD(b + q / VECTORS * b_step + q % VECTORS * V_LANES);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
      V x = V_SET(a[i]);
#pragma GCC unroll 6
      for (int q = 0; q < n * VECTORS; q++) V_FMA(sum[i][q], x, k[q]);
    }
  }
  EACH_SUM(i, q) {
    float *row = to + i * to_step + q * V_LANES;
    V_STORE(row, add ? V_ADD(sum[i][q], V_LOAD(row)) : sum[i][q]);
  }
#undef EACH_SUM
}

#define OUTER(rows, n)                                                                        \
  TARGET static void outer_##rows##x##n(const float *a, const float *b, int64_t b_step,       \
                                        int64_t tiles, float *to, int64_t to_step, int add) { \
    outer_part(rows, n, a, b, b_step, tiles, to, to_step, add);                               \
  }

#define ALL(suffix, in, places, flat)                                                     \
  {                                                                                       \
    in, places, flat, ROWS, {source##suffix##F32, source##suffix##BF16},                  \
        {gradient##suffix##F32, gradient##suffix##BF16},                                  \
        {result##suffix##F32, result##suffix##BF16}, kernel##suffix, kernel_back##suffix, \
        multiply, outer                                                                   \
  }
/* [flat][taps - 2] */
#define WINO_ALL                                       \
  {                                                    \
    {ALL(2, 5, 25, false), ALL(3, 6, 36, false)}, {    \
      ALL(2_flat, 5, 5, true), ALL(3_flat, 6, 6, true) \
    }                                                  \
  }
