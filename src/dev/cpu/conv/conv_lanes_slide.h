/* Results where the taps of a window's row lie side by side: what one place reads is mostly what the
 * next one reads, so each vector of the source is loaded once for all of them, while the row's
 * weights stay in registers. The includer defines S, a vector of S_LANES lanes, with S_ZERO, S_LOAD,
 * S_FMA, S_STORE, S_STORE_BF16, and how many PLACES (at most 8) fit the registers beside
 * SLIDE_COLUMNS weights. */
#define SLIDE_INLINE AVX512 static inline __attribute__((always_inline))

SLIDE_INLINE void slide_half(int places, int columns, int step, const float *from,
                             const int64_t *at, int64_t taps, const float *w, bool half, char *to,
                             int64_t to_step) {
  S sum[PLACES];
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) sum[p] = S_ZERO();
  for (int64_t t = 0; t < taps; t += columns, w += columns * LANES) {
    const float *x = from + at[t];
    S k[SLIDE_COLUMNS];
#pragma GCC unroll 7
    for (int i = 0; i < columns; i++) k[i] = S_LOAD(w + i * LANES);
#pragma GCC unroll 24
    for (int j = 0; j < (places - 1) * step + columns; j++) {
      S v = S_LOAD(x + j * LANES);
#pragma GCC unroll 7
      for (int i = 0; i < columns; i++)
        if (j >= i && (j - i) % step == 0 && (j - i) / step < places)
          S_FMA(sum[(j - i) / step], v, k[i]);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) {
    if (half) S_STORE_BF16(to + p * to_step, sum[p]);
    else S_STORE((float *)(void *)(to + p * to_step), sum[p]);
  }
}

#define SLIDE(n, columns, step)                                                              \
  AVX512 static void slide_##n##_##columns##_##step(const float *from, const int64_t *at,    \
                                                    int64_t taps, const float *w, bool half, \
                                                    char *to, int64_t to_step) {             \
    for (int h = 0; h < LANES; h += S_LANES)                                                 \
      slide_half(n, columns, step, from + h, at, taps, w + h, half, to + h * (half ? 2 : 4), \
                 to_step);                                                                   \
  }
#if PLACES > 7
#define SLIDE_PLACES(f, columns, step)                                            \
  f(1, columns, step) f(2, columns, step) f(3, columns, step) f(4, columns, step) \
      f(5, columns, step) f(6, columns, step) f(7, columns, step) f(8, columns, step)
#else
#define SLIDE_PLACES(f, columns, step)                                            \
  f(1, columns, step) f(2, columns, step) f(3, columns, step) f(4, columns, step) \
      f(5, columns, step) f(6, columns, step) f(7, columns, step)
#endif
#define SLIDE_STEP(f, step) \
  SLIDE_PLACES(f, 2, step)  \
  SLIDE_PLACES(f, 3, step)  \
  SLIDE_PLACES(f, 4, step)  \
  SLIDE_PLACES(f, 5, step) SLIDE_PLACES(f, 6, step) SLIDE_PLACES(f, 7, step)
SLIDE_STEP(SLIDE, 1)
SLIDE_STEP(SLIDE, 2)

typedef void (*SlideFn)(const float *from, const int64_t *at, int64_t taps, const float *w,
                        bool half, char *to, int64_t to_step);

#define SLIDE_ENTRY(n, columns, step) \
  [(step)-1][(columns)-2][(n)-1] = slide_##n##_##columns##_##step,

static void slide(int64_t places, int64_t columns, int64_t step, const float *from,
                  const int64_t *at, int64_t taps, const float *w, bool half, void *to,
                  int64_t to_step) {
  static const SlideFn fn[2][SLIDE_COLUMNS - 1][PLACES] = {SLIDE_STEP(SLIDE_ENTRY, 1)
                                                               SLIDE_STEP(SLIDE_ENTRY, 2)};
  int64_t many = (places + PLACES - 1) / PLACES, bytes = to_step * (half ? 2 : 4);
  for (int64_t s = 0; s < many; s++) {
    int64_t first = places * s / many, n = places * (s + 1) / many - first;
    fn[step - 1][columns - 2][n - 1](from + first * step * LANES, at, taps, w, half,
                                     (char *)to + first * bytes, bytes);
  }
}
