/* The inner loops of conv_depthwise.c for one width of vectors: the includer defines NAME(x), FN (target
 * attributes), the element E and a vector S of S_LANES of them, with S_ZERO, S_LOAD, S_STORE,
 * S_STORE_BF16 and S_FMA, how many SUMS fit the registers, and how many PLACES (at most 8) of results do
 * beside SLIDE_COLUMNS weights. All are undefined at the end. */
#define TILE FN static inline __attribute__((always_inline))
#define STRIP 8                          /* places whose sums are in registers */
#define WIDE MIN(4, 2 * LANES / S_LANES) /* registers beside each other: two lines of memory */
#define BLOCK (SUMS / 2)                 /* taps of them, at most */

TILE void NAME(store)(bool half, char *to, S x) {
  if (half) S_STORE_BF16(to, x);
  else S_STORE((E *)(void *)to, x);
}

/* ---- results ---- */

TILE void NAME(strip)(int places, int64_t step, const E *from, const int64_t *at, int64_t taps,
                      const E *w, bool half, char *to, int64_t to_step) {
  S sum[STRIP];
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) sum[p] = S_ZERO();
  for (int64_t t = 0; t < taps; t++, w += LANES) {
    S k = S_LOAD(w);
    const E *x = from + at[t];
#pragma GCC unroll 8
    for (int p = 0; p < places; p++) S_FMA(sum[p], S_LOAD(x + p * step), k);
  }
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) NAME(store)(half, to + p * to_step, sum[p]);
}

#define HALVES(call) \
  for (int h = 0; h < LANES; h += S_LANES, from += S_LANES, w += S_LANES, to += part) call
#define STRIP_OF(n)                                                                            \
  FN static void NAME(strip_##n)(int64_t step, const E *from, const int64_t *at, int64_t taps, \
                                 const E *w, bool half, char *to, int64_t to_step) {           \
    int64_t part = S_LANES * (half ? 2 : (int64_t)sizeof(E));                                  \
    if (step == LANES) HALVES(NAME(strip)(n, LANES, from, at, taps, w, half, to, to_step));    \
    else HALVES(NAME(strip)(n, step, from, at, taps, w, half, to, to_step));                   \
  }
STRIP_OF(1)
STRIP_OF(2)
STRIP_OF(3)
STRIP_OF(4)
STRIP_OF(5)
STRIP_OF(6)
STRIP_OF(7)
STRIP_OF(8)

static void NAME(results)(int64_t places, int64_t step, const void *from, const int64_t *at,
                          int64_t taps, const void *w, bool half, void *to, int64_t to_step) {
  static void (*const strip[])(int64_t, const E *, const int64_t *, int64_t, const E *, bool,
                               char *, int64_t) = {NAME(strip_1), NAME(strip_2), NAME(strip_3),
                                                   NAME(strip_4), NAME(strip_5), NAME(strip_6),
                                                   NAME(strip_7), NAME(strip_8)};
  int64_t many = (places + STRIP - 1) / STRIP, bytes = to_step * (half ? 2 : (int64_t)sizeof(E));
  for (int64_t s = 0; s < many; s++) {
    int64_t first = places * s / many, n = places * (s + 1) / many - first;
    strip[n - 1](step, (const E *)from + first * step, at, taps, w, half,
                 (char *)to + first * bytes, bytes);
  }
}

/* ---- results where the taps of a window's row lie side by side: what one place reads is mostly what the next one
 * reads, so each vector of the source is loaded once for all of them, while the row's weights stay in registers ---- */

#ifdef PLACES
TILE void NAME(slide_part)(int places, int columns, int step, const E *from, const int64_t *at,
                           int64_t taps, const E *w, bool half, char *to, int64_t to_step) {
  S sum[PLACES];
#pragma GCC unroll 8
  for (int p = 0; p < places; p++) sum[p] = S_ZERO();
  for (int64_t t = 0; t < taps; t += columns, w += columns * LANES) {
    const E *x = from + at[t];
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
  for (int p = 0; p < places; p++) NAME(store)(half, to + p * to_step, sum[p]);
}

#define SLIDE(n, columns, step)                                                            \
  FN static void NAME(slide_##n##_##columns##_##step)(const E *from, const int64_t *at,    \
                                                      int64_t taps, const E *w, bool half, \
                                                      char *to, int64_t to_step) {         \
    int64_t part = S_LANES * (half ? 2 : (int64_t)sizeof(E));                              \
    HALVES(NAME(slide_part)(n, columns, step, from, at, taps, w, half, to, to_step));      \
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

#define SLIDE_ENTRY(n, columns, step) \
  [(step)-1][(columns)-2][(n)-1] = NAME(slide_##n##_##columns##_##step),

static void NAME(slide)(int64_t places, int64_t columns, int64_t step, const void *from,
                        const int64_t *at, int64_t taps, const void *w, bool half, void *to,
                        int64_t to_step) {
  static void (*const fn[2][SLIDE_COLUMNS - 1][PLACES])(const E *, const int64_t *, int64_t,
                                                        const E *, bool, char *, int64_t) = {
      SLIDE_STEP(SLIDE_ENTRY, 1) SLIDE_STEP(SLIDE_ENTRY, 2)};
  int64_t many = (places + PLACES - 1) / PLACES, bytes = to_step * (half ? 2 : (int64_t)sizeof(E));
  for (int64_t s = 0; s < many; s++) {
    int64_t first = places * s / many, n = places * (s + 1) / many - first;
    fn[step - 1][columns - 2][n - 1]((const E *)from + first * step * LANES, at, taps, w, half,
                                     (char *)to + first * bytes, bytes);
  }
}
#undef SLIDE
#undef SLIDE_PLACES
#undef SLIDE_STEP
#undef SLIDE_ENTRY
#endif

/* ---- gradients of weights: `wide` registers beside each other, which may be of several blocks ---- */

TILE void NAME(block)(int taps, int wide, const LanesGrid *of, const E *from, const int64_t *at,
                      const E *y, E *w) {
  S sum[BLOCK][WIDE];
  const E *x[BLOCK];
#define SUM(t, v) (w + (v)*S_LANES / LANES * of->w_step + (v)*S_LANES % LANES + (t)*LANES)
#pragma GCC unroll 12
  for (int t = 0; t < taps; t++)
#pragma GCC unroll 4
    for (int v = 0; v < wide; v++) sum[t][v] = S_LOAD(SUM(t, v));
  for (int64_t r = 0; r < of->rows; r++, from += of->row, y += of->y_row) {
    const E *g = y;
#pragma GCC unroll 12
    for (int t = 0; t < taps; t++) x[t] = from + at[t];
    for (int64_t p = 0, far = 0; p < of->places; p++, far += of->step, g += of->y_step)
#pragma GCC unroll 4
      for (int v = 0; v < wide; v++) {
        S k = S_LOAD(g + v * S_LANES);
#pragma GCC unroll 12
        for (int t = 0; t < taps; t++) S_FMA(sum[t][v], S_LOAD(x[t] + far + v * S_LANES), k);
      }
  }
#pragma GCC unroll 12
  for (int t = 0; t < taps; t++)
#pragma GCC unroll 4
    for (int v = 0; v < wide; v++) S_STORE(SUM(t, v), sum[t][v]);
#undef SUM
}

#define WIDE_IF(n, v) \
  if (wide == (v) && (n) * (v) <= SUMS) NAME(block)(n, v, of, from + e, at, y + e, to)
/* As wide as the registers and what is left allow. */
#define BLOCK_OF(n)                                                                     \
  FN static void NAME(block_##n)(const LanesGrid *of, const E *from, const int64_t *at, \
                                 const E *y, E *w) {                                    \
    for (int64_t e = 0, wide, all = of->blocks * LANES; e < all; e += wide * S_LANES) { \
      E *to = w + e / LANES * of->w_step + e % LANES;                                   \
      int64_t most = MIN(MIN(SUMS / (n), WIDE), (all - e) / S_LANES);                   \
      wide = most == 3 ? 2 : most;                                                      \
      WIDE_IF(n, 4);                                                                    \
      WIDE_IF(n, 2);                                                                    \
      WIDE_IF(n, 1);                                                                    \
    }                                                                                   \
  }
#define BLOCKS(f) f(1) f(2) f(3) f(4) f(5) f(6)
#if SUMS > 12
#define MORE_BLOCKS(f) f(7) f(8) f(9) f(10) f(11) f(12)
#else
#define MORE_BLOCKS(f)
#endif
BLOCKS(BLOCK_OF)
MORE_BLOCKS(BLOCK_OF)

#define BLOCK_ENTRY(n) NAME(block_##n),
static void NAME(weights)(const LanesGrid *of, const void *from, const int64_t *at, int64_t taps,
                          const void *y, void *w) {
  static void (*const block[])(const LanesGrid *, const E *, const int64_t *, const E *,
                               E *) = {BLOCKS(BLOCK_ENTRY) MORE_BLOCKS(BLOCK_ENTRY)};
  int64_t wide = MIN(WIDE, of->blocks * LANES / S_LANES), most = MIN(SUMS / wide, BLOCK),
          many = (taps + most - 1) / most;
  for (int64_t s = 0; s < many; s++) {
    int64_t first = taps * s / many, n = taps * (s + 1) / many - first;
    block[n - 1](of, from, at + first, y, (E *)w + first * LANES);
  }
}
#undef WIDE_IF
#undef BLOCKS
#undef MORE_BLOCKS
#undef BLOCK_ENTRY

#ifdef PLACES
static const LanesKernels NAME(kernels) = {NAME(results), NAME(slide), NAME(weights)};
#else
static const LanesKernels NAME(kernels) = {NAME(results), NULL, NAME(weights)};
#endif
#undef TILE
#undef STRIP
#undef WIDE
#undef BLOCK
#undef SUMS
#undef HALVES
#undef STRIP_OF
#undef BLOCK_OF
#undef NAME
#undef FN
#undef E
#undef S
#undef S_LANES
#undef S_ZERO
#undef S_LOAD
#undef S_STORE
#undef S_STORE_BF16
#undef S_FMA
#undef PLACES
