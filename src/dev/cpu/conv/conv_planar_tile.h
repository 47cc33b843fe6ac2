/* The inner loops of conv_planar.c for one width of vectors: included with NAME(x), LANES, V, FN, V_ZERO,
 * V_SET, V_LOAD, V_STORE, V_FMA, V_SUM, and for results the vectors that go together with one to
 * four channels: GROUP_1 .. GROUP_4. */
#define TILE_INLINE FN static inline __attribute__((always_inline))

TILE_INLINE void NAME(results_block)(int out, int many, const float *from, const int64_t *at,
                                     int64_t taps, const float *w, int64_t depth, bool add,
                                     float *to, int64_t to_step) {
  V sum[4][8];
#pragma GCC unroll 4
  for (int o = 0; o < out; o++)
#pragma GCC unroll 8
    for (int v = 0; v < many; v++)
      sum[o][v] = add ? V_LOAD(to + o * to_step + v * LANES) : V_ZERO();
  for (int64_t t = 0; t < taps; t++, w += depth) {
    const float *x = from + at[t];
    if (out == 1) {
      V k = V_SET(w[0]);
#pragma GCC unroll 8
      for (int v = 0; v < many; v++) V_FMA(sum[0][v], V_LOAD(x + v * LANES), k);
      continue;
    }
    V source[8];
#pragma GCC unroll 8
    for (int v = 0; v < many; v++) source[v] = V_LOAD(x + v * LANES);
#pragma GCC unroll 4
    for (int o = 0; o < out; o++) {
      V k = V_SET(w[o]);
#pragma GCC unroll 8
      for (int v = 0; v < many; v++) V_FMA(sum[o][v], source[v], k);
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < out; o++)
#pragma GCC unroll 8
    for (int v = 0; v < many; v++) V_STORE(to + o * to_step + v * LANES, sum[o][v]);
}

#define RESULTS(out, group)                                                                \
  FN static void NAME(results_##out)(const float *from, const int64_t *at, int64_t taps,   \
                                     const float *w, int64_t depth, int64_t n, bool add,   \
                                     float *to, int64_t to_step) {                         \
    int64_t i = 0;                                                                         \
    for (; i + (group)*LANES <= n; i += (group)*LANES)                                     \
      NAME(results_block)(out, group, from + i, at, taps, w, depth, add, to + i, to_step); \
    for (; i < n; i += LANES)                                                              \
      NAME(results_block)(out, 1, from + i, at, taps, w, depth, add, to + i, to_step);     \
  }
RESULTS(1, GROUP_1)
RESULTS(2, GROUP_2)
RESULTS(3, GROUP_3)
RESULTS(4, GROUP_4)

static void NAME(results)(const float *from, const int64_t *at, int64_t taps, const float *w,
                          int64_t depth, int64_t n, bool add, float *to, int64_t to_step) {
  for (int64_t o = 0; o < depth; o += 4, w += 4, to += 4 * to_step) switch (depth - o) {
    case 1: NAME(results_1)(from, at, taps, w, depth, n, add, to, to_step); break;
    case 2: NAME(results_2)(from, at, taps, w, depth, n, add, to, to_step); break;
    case 3: NAME(results_3)(from, at, taps, w, depth, n, add, to, to_step); break;
    default: NAME(results_4)(from, at, taps, w, depth, n, add, to, to_step);
    }
}

TILE_INLINE void NAME(weights_block)(int many, int out, const float *from, const int64_t *at,
                                     const float *y, int64_t y_step, int64_t n, int64_t depth,
                                     float *w) {
  V sum[8][4];
  const float *x[8];
#pragma GCC unroll 8
  for (int t = 0; t < many; t++) {
    x[t] = from + at[t];
#pragma GCC unroll 4
    for (int o = 0; o < out; o++) sum[t][o] = V_ZERO();
  }
  for (int64_t i = 0; i < n; i += LANES) {
    V g[4];
#pragma GCC unroll 4
    for (int o = 0; o < out; o++) g[o] = V_LOAD(y + o * y_step + i);
#pragma GCC unroll 8
    for (int t = 0; t < many; t++) {
      V k = V_LOAD(x[t] + i);
#pragma GCC unroll 4
      for (int o = 0; o < out; o++) V_FMA(sum[t][o], g[o], k);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < many; t++)
#pragma GCC unroll 4
    for (int o = 0; o < out; o++) w[t * depth + o] += V_SUM(sum[t][o]);
}

#define WEIGHTS(out, group)                                                                    \
  FN static void NAME(weights_##out)(const float *from, const int64_t *at, int64_t taps,       \
                                     const float *y, int64_t y_step, int64_t n, int64_t depth, \
                                     float *w) {                                               \
    int64_t t = 0;                                                                             \
    for (; t + (group) <= taps; t += (group))                                                  \
      NAME(weights_block)(group, out, from, at + t, y, y_step, n, depth, w + t * depth);       \
    for (; t < taps; t++)                                                                      \
      NAME(weights_block)(1, out, from, at + t, y, y_step, n, depth, w + t * depth);           \
  }
WEIGHTS(1, 8)
WEIGHTS(2, 6)
WEIGHTS(3, 4)

static void NAME(weights)(const float *from, const int64_t *at, int64_t taps, const float *y,
                          int64_t y_step, int64_t n, int64_t depth, float *w) {
  for (int64_t o = 0; o < depth; o += 3, y += 3 * y_step, w += 3) switch (depth - o) {
    case 1: NAME(weights_1)(from, at, taps, y, y_step, n, depth, w); break;
    case 2: NAME(weights_2)(from, at, taps, y, y_step, n, depth, w); break;
    default: NAME(weights_3)(from, at, taps, y, y_step, n, depth, w);
    }
}

static const PlanarKernels NAME(kernels) = {LANES, NAME(results), NAME(weights)};
#undef TILE_INLINE
#undef RESULTS
#undef WEIGHTS
#undef NAME
#undef LANES
#undef V
#undef FN
#undef V_ZERO
#undef V_SET
#undef V_LOAD
#undef V_STORE
#undef V_FMA
#undef V_SUM
#undef GROUP_4
