/* Squares of a plane, turned in registers; the includer defines FN, the target, LANES
 * of 16 bytes in a vector, V, the vector, NAME(x), load, store, EVEN and ODD (every second lane of x, then of
 * y), and LOW_T and HIGH_T, which zip elements of T bytes of the lower and the upper halves of each lane. */

#define SIDE(T) (LANES * 16 / (T))
#define INLINE FN static inline __attribute__((always_inline))

/* Of LANES vectors: lane c of them all becomes vector c. */
INLINE void NAME(turn_lanes)(V *x) {
  V y[LANES];
#pragma GCC unroll 4
  for (int left = LANES; left > 1; left /= 2) {
#pragma GCC unroll 4
    for (int i = 0; i < LANES / 2; i++) {
      y[i] = EVEN(x[2 * i], x[2 * i + 1]);
      y[i + LANES / 2] = ODD(x[2 * i], x[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++) x[i] = y[i];
  }
}

/* square_T: SIDE x SIDE elements, rows `from` and `to` bytes apart; only so many rows are read, so many
 * columns written. Lane j of vector r takes row r + E j, so that a lane holds E x E elements; those are
 * turned by zips: after log2 E of them, of row i and the row half the side behind, rows are columns.
 * plane_T: see turns.h; false: it is narrower than a square,
 * or little more. Squares that stick out move back over their
 * neighbours. */
#define TURN_SQUARES(T)                                                                                 \
  INLINE void NAME(square_##T)(const char *src, int64_t from, int64_t rows, char *dst, int64_t to,      \
                               int64_t columns) {                                                       \
    enum { E = 16 / T };                                                                                \
    V a[SIDE(T)], x[16], y[16];                                                                         \
    _Pragma("GCC unroll 16") for (int r = 0; r < E; r++) {                                              \
      _Pragma("GCC unroll 4") for (int j = 0; j < LANES; j++) {                                         \
        x[j] = r + E * j < rows ? load(src + (r + E * j) * from) : (V){0};                              \
      }                                                                                                 \
      NAME(turn_lanes)(x);                                                                              \
      _Pragma("GCC unroll 4") for (int c = 0; c < LANES; c++) a[c * E + r] = x[c];                      \
    }                                                                                                   \
    _Pragma("GCC unroll 4") for (int c = 0; c < LANES; c++) {                                           \
      _Pragma("GCC unroll 16") for (int i = 0; i < E; i++) x[i] = a[c * E + i];                         \
      _Pragma("GCC unroll 4") for (int left = E; left > 1; left /= 2) {                                 \
        _Pragma("GCC unroll 8") for (int i = 0; i < E / 2; i++) {                                       \
          y[2 * i] = LOW_##T(x[i], x[i + E / 2]);                                                       \
          y[2 * i + 1] = HIGH_##T(x[i], x[i + E / 2]);                                                  \
        }                                                                                               \
        _Pragma("GCC unroll 16") for (int i = 0; i < E; i++) x[i] = y[i];                               \
      }                                                                                                 \
      _Pragma("GCC unroll 16") for (int i = 0; i < E; i++) {                                            \
        if (c * E + i < columns) store(dst + (c * E + i) * to, x[i]);                                   \
      }                                                                                                 \
    }                                                                                                   \
  }                                                                                                     \
  /* A line of rows to SIDE columns; by a copy: the result's lines keep each other out of the cache. */ \
  INLINE void NAME(line_##T)(int64_t nb, int64_t sb, const char *s, char *d, int64_t to,                \
                             bool by_copy) {                                                            \
    char lines[LINE * SIDE(T)];                                                                         \
    for (int64_t b1 = 0; b1 < nb; b1 += SIDE(T)) {                                                      \
      int64_t b = MIN(b1, nb - SIDE(T));                                                                \
      NAME(square_##T)                                                                                  \
      (s + b * sb * T, sb * T, SIDE(T), (by_copy ? lines : d) + b * T, by_copy ? LINE : to,             \
       SIDE(T));                                                                                        \
    }                                                                                                   \
    for (int64_t i = 0; i < SIDE(T) && by_copy; i++) memcpy(d + i * to, lines + i * LINE, LINE);        \
  }                                                                                                     \
  FN static bool NAME(plane_##T)(int64_t na, int64_t nb, int64_t da, int64_t sb, const char *s,         \
                                 char *d) {                                                             \
    if (na < SIDE(T) || nb < SIDE(T)) return false;                                                     \
    int64_t whole = (na + SIDE(T) - 1) / SIDE(T) * ((nb + SIDE(T) - 1) / SIDE(T));                      \
    if (LANES == 4 && whole * SIDE(T) * SIDE(T) * 4 > na * nb * 5) return false;                        \
    bool apart = LANES * 16 < LINE && da * T % 4096 == 0;                                               \
    int64_t stretch = MAX(1, RUN / na) * (LINE / T);                                                    \
    for (int64_t a0 = 0; a0 < na; a0 += RUN)                                                            \
      for (int64_t b0 = 0; b0 < nb; b0 += stretch)                                                      \
        for (int64_t a1 = a0; a1 < MIN(a0 + RUN, na); a1 += SIDE(T))                                    \
          for (int64_t b1 = b0; b1 < MIN(b0 + stretch, nb); b1 += LINE / T) {                           \
            int64_t a = MIN(a1, na - SIDE(T)), n = MIN(LINE / T, nb - b1),                              \
                    b = MIN(b1, nb - MAX(n, SIDE(T)));                                                  \
            const char *from = s + (a + b * sb) * T;                                                    \
            char *to = d + (a * da + b) * T;                                                            \
            if (apart && n == LINE / T) NAME(line_##T)(LINE / T, sb, from, to, da * T, true);           \
            else NAME(line_##T)(MAX(n, SIDE(T)), sb, from, to, da * T, false);                          \
          }                                                                                             \
    return true;                                                                                        \
  }
TURN_SQUARES(1)
TURN_SQUARES(2)
TURN_SQUARES(4)
TURN_SQUARES(8)
TURN_SQUARES(16)
#undef TURN_SQUARES

static bool NAME(turn)(size_t bytes, int64_t na, int64_t nb, int64_t da, int64_t sb,
                       const char *src, char *dst) {
  switch (bytes) {
  case 1: return NAME(plane_1)(na, nb, da, sb, src, dst);
  case 2: return NAME(plane_2)(na, nb, da, sb, src, dst);
  case 4: return NAME(plane_4)(na, nb, da, sb, src, dst);
  case 8: return NAME(plane_8)(na, nb, da, sb, src, dst);
  default: return NAME(plane_16)(na, nb, da, sb, src, dst);
  }
}

#undef FN
#undef V
#undef LANES
#undef NAME
#undef load
#undef store
#undef EVEN
#undef ODD
#undef LOW_1
#undef HIGH_1
#undef LOW_2
#undef HIGH_2
#undef LOW_4
#undef HIGH_4
#undef LOW_8
#undef HIGH_8
#undef LOW_16
#undef HIGH_16
#undef SIDE
#undef INLINE
