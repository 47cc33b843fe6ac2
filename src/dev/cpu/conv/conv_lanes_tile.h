/* The inner loops of conv_lanes.c for one width of vectors: included after kernel/avx512.h, with how
 * many sums fit the registers: PLACES (at most 8) of results, TAPS (at most 12) of gradients of
 * weights. */
#define TILE_INLINE AVX512 static inline __attribute__((always_inline))

TILE_INLINE void results_strip(int places, int64_t step, const float *from, const int64_t *at,
                               int64_t taps, const float *w, bool half, void *to, int64_t to_step) {
  V16 sum[PLACES];
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) sum[p] = V16_ZERO();
  for (int64_t t = 0; t < taps; t++, w += LANES) {
    V16 k = V16_LOAD(w);
    const float *x = from + at[t];
#pragma GCC unroll 8
    for (int p = 0; p < places; p++) V16_FMA(sum[p], V16_LOAD(x + p * step), k);
  }
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) {
    if (half) V16_STORE_BF16((uint16_t *)to + p * to_step, sum[p]);
    else V16_STORE((float *)to + p * to_step, sum[p]);
  }
}

#define RESULTS(n)                                                                                 \
  AVX512 static void results_##n(int64_t step, const float *from, const int64_t *at, int64_t taps, \
                                 const float *w, bool half, void *to, int64_t to_step) {           \
    if (step == LANES) results_strip(n, LANES, from, at, taps, w, half, to, to_step);              \
    else results_strip(n, step, from, at, taps, w, half, to, to_step);                             \
  }
RESULTS(1)
RESULTS(2)
RESULTS(3)
RESULTS(4)
RESULTS(5)
RESULTS(6)
#if PLACES > 6
RESULTS(7)
RESULTS(8)
#endif

static void results(int64_t places, int64_t step, const float *from, const int64_t *at,
                    int64_t taps, const float *w, bool half, void *to, int64_t to_step) {
  static void (*const strip[])(int64_t, const float *, const int64_t *, int64_t, const float *,
                               bool, void *, int64_t) = {
    results_1,
    results_2,
    results_3,
    results_4,
    results_5,
    results_6,
#if PLACES > 6
    results_7,
    results_8,
#endif
  };
  int64_t many = (places + PLACES - 1) / PLACES;
  for (int64_t s = 0; s < many; s++) {
    int64_t first = places * s / many, n = places * (s + 1) / many - first;
    char *out = (char *)to + first * to_step * (half ? 2 : 4);
    strip[n - 1](step, from + first * step, at, taps, w, half, out, to_step);
  }
}

TILE_INLINE void weights_block(int taps, int64_t rows, int64_t row, int64_t places, int64_t step,
                               const float *from, const int64_t *at, const float *y, int64_t y_row,
                               int64_t y_step, float *w) {
  V16 sum[TAPS];
  const float *x[TAPS];
#pragma GCC unroll 12
  for (int t = 0; t < taps; t++) sum[t] = V16_LOAD(w + t * LANES);
  for (int64_t r = 0; r < rows; r++, from += row, y += y_row) {
    const float *g = y;
#pragma GCC unroll 12
    for (int t = 0; t < taps; t++) x[t] = from + at[t];
    for (int64_t p = 0, far = 0; p < places; p++, far += step, g += y_step) {
      V16 k = V16_LOAD(g);
#pragma GCC unroll 12
      for (int t = 0; t < taps; t++) V16_FMA(sum[t], V16_LOAD(x[t] + far), k);
    }
  }
#pragma GCC unroll 12
  for (int t = 0; t < taps; t++) V16_STORE(w + t * LANES, sum[t]);
}

#define WEIGHTS(n)                                                                        \
  AVX512 static void weights_##n(int64_t rows, int64_t row, int64_t places, int64_t step, \
                                 const float *from, const int64_t *at, const float *y,    \
                                 int64_t y_row, int64_t y_step, float *w) {               \
    weights_block(n, rows, row, places, step, from, at, y, y_row, y_step, w);             \
  }
WEIGHTS(1)
WEIGHTS(2)
WEIGHTS(3)
WEIGHTS(4)
WEIGHTS(5)
WEIGHTS(6)
#if TAPS > 6
WEIGHTS(7)
WEIGHTS(8)
WEIGHTS(9)
WEIGHTS(10)
WEIGHTS(11)
WEIGHTS(12)
#endif

static void weights(int64_t rows, int64_t row, int64_t places, int64_t step, const float *from,
                    const int64_t *at, int64_t taps, const float *y, int64_t y_row, int64_t y_step,
                    float *w) {
  static void (*const block[])(int64_t, int64_t, int64_t, int64_t, const float *, const int64_t *,
                               const float *, int64_t, int64_t, float *) = {
    weights_1,
    weights_2,
    weights_3,
    weights_4,
    weights_5,
    weights_6,
#if TAPS > 6
    weights_7,
    weights_8,
    weights_9,
    weights_10,
    weights_11,
    weights_12,
#endif
  };
  int64_t many = (taps + TAPS - 1) / TAPS;
  for (int64_t s = 0; s < many; s++) {
    int64_t first = taps * s / many, n = taps * (s + 1) / many - first;
    block[n - 1](rows, row, places, step, from, at + first, y, y_row, y_step, w + first * LANES);
  }
}
