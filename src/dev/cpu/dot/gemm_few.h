/* Few vectors times a matrix that is read once, where it is: c[few][n] += a[few][k] b. Included
 * after gemm_tile.h, with the same macros and V_BF16, V_F16 (LANES elements widened), V_SUM, V_SUM4
 * (of each of four vectors, an __m128), V_LAST(v, n) (zero but in the last n lanes) and FEW, the rows
 * of a that go together: the matrix comes from the first cache for all but the first of them.
 * FEW_SEVERAL: floats hold several elements, as V_FMA takes them; sums of products along runs only.
 * V_ADD1, V_ADD4 add to sums in memory, where those are no floats. */

typedef enum FewType { FEW_F32, FEW_BF16, FEW_F16 } FewType;
#define FEW_BYTES(t) ((t) == FEW_F32 ? 4 : 2)
#define ASK_BYTES 8192 /* are asked for ahead, at least; */
#define ASK_RUN 2048   /* of a run along k that is no shorter */
#define PAGE 4096
#ifndef V_ADD1
#define V_ADD1(c, s) *(c) += (s)
#define V_ADD4(c, s) _mm_storeu_ps(c, _mm_add_ps(_mm_loadu_ps(c), s))
#endif
#define FEW_INLINE FN static inline __attribute__((always_inline))

FEW_INLINE V few_load(FewType t, const char *p) {
  return t == FEW_F32 ? V_LOAD((const float *)p) : t == FEW_BF16 ? V_BF16(p) : V_F16(p);
}

/* The first n < LANES elements, then zeros. */
FEW_INLINE V few_load_part(FewType t, const char *p, int64_t n) {
  char part[LANES * 4] = {0};
  memcpy(part, p, (size_t)(n * FEW_BYTES(t)));
  return few_load(t, part);
}

/* ---- b[p] are runs: a row of sums takes `ku` of them at a time; what follows a run's end up to
 * the last one's may be read ---- */

/* A vector of each row's sums, of n columns; n < LANES: rows of sums have room for a whole vector at
 * their end (dot_few.c). ask: runs `ask` bytes ahead are brought to the second cache; in the first one
 * they would drive each other out. 0: not. */
FEW_INLINE void few_along_vector(FewType t, int64_t ask, int rows, int ku, const V *x,
                                 const char *b, int64_t far, const char *end, int64_t n, float *c,
                                 int64_t c_ld) {
  V s[FEW];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) s[i] = V_LOAD(c + i * c_ld);
#pragma GCC unroll 8
  for (int u = 0; u < ku; u++) {
    const char *p = b + u * far;
    bool whole = n == LANES || p + LANES * FEW_BYTES(t) <= end;
    V y = whole ? few_load(t, p) : few_load_part(t, p, n);
    if (ask) __builtin_prefetch(p + ask, 0, 2);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) V_FMA(s[i], x[i * ku + u], y);
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) V_STORE(c + i * c_ld, s[i]);
}

FEW_INLINE void few_along_group(FewType t, bool ask, int rows, int ku, const float *a, int64_t a_ld,
                                const char *b, const char *end, int64_t b_step, int64_t n, float *c,
                                int64_t c_ld) {
  V x[FEW * 4];
  const int64_t e = FEW_BYTES(t), far = b_step * e, group = ku * far;
  const int64_t ahead = !ask ? 0 : group >= ASK_BYTES ? group : ASK_BYTES / group * group;
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int u = 0; u < ku; u++) x[i * ku + u] = V_SET(a[i * a_ld + u]);
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES)
    few_along_vector(t, ahead, rows, ku, x, b + j * e, far, end, LANES, c + j, c_ld);
  if (j < n) few_along_vector(t, 0, rows, ku, x, b + j * e, far, end, n - j, c + j, c_ld);
}

/* One row, of whose sums `vectors` stay in registers: runs that are no longer are read one after the
 * other, as they lie in memory. */
#define STRIP 8
#define STRIP_ROWS 16 /* of several strips, one after the other */
FEW_INLINE void few_strip(FewType t, int vectors, const float *a, const char *b, int64_t far,
                          int64_t k, float *c) {
  V s[STRIP];
#pragma GCC unroll 8
  for (int j = 0; j < vectors; j++) s[j] = V_LOAD(c + j * LANES);
  for (int64_t p = 0; p < k; p++, b += far) {
    V x = V_SET(a[p]);
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) V_FMA(s[j], x, few_load(t, b + j * LANES * FEW_BYTES(t)));
  }
#pragma GCC unroll 8
  for (int j = 0; j < vectors; j++) V_STORE(c + j * LANES, s[j]);
}

FEW_INLINE void few_along(FewType t, int64_t few, const float *a, int64_t a_ld, const void *b_,
                          int64_t b_step, int64_t n, int64_t k, float *c, int64_t c_ld, bool asks) {
  const char *b = b_;
  int64_t e = FEW_BYTES(t);
  const int64_t strip = n % (STRIP * LANES) ? STRIP / 2 : STRIP;
  if (few == 1 && n <= 2 * STRIP * LANES && n % (strip * LANES) == 0) {
    const int64_t far = b_step * e, block = n > strip * LANES ? STRIP_ROWS : k;
    for (int64_t p = 0; p < k; p += block)
      for (int64_t j = 0, rows = k - p < block ? k - p : block; j < n; j += strip * LANES) {
        const char *from = b + p * far + j * e;
        if (strip == STRIP) few_strip(t, STRIP, a + p, from, far, rows, c + j);
        else few_strip(t, STRIP / 2, a + p, from, far, rows, c + j);
      }
    return;
  }
  const char *end = b + ((k - 1) * b_step + n) * e;
#define GROUP(ask, rows, ku) few_along_group(t, ask, rows, ku, x, a_ld, b, end, b_step, n, s, c_ld)
  for (int64_t p = 0, ku; p < k; p += ku, b += ku * b_step * e) {
    ku = k - p >= 4 ? 4 : 1;
    for (int64_t i = 0, rows; i < few; i += rows) {
      rows = ku == 1 ? 1 : few - i >= FEW ? FEW : MIN(2, few - i);
      const float *x = a + i * a_ld + p;
      float *s = c + i * c_ld;
      if (rows == FEW && i == 0) GROUP(true, FEW, 4);
      else if (rows == FEW) GROUP(false, FEW, 4);
      else if (rows == 2 && i == 0) GROUP(true, 2, 4);
      else if (rows == 2) GROUP(false, 2, 4);
      else if (ku == 4 && asks && i == 0) GROUP(true, 1, 4);
      else if (ku == 4) GROUP(false, 1, 4);
      else GROUP(false, 1, 1);
    }
  }
#undef GROUP
}

/* ---- b[.][j] are runs, no shorter than a vector: sums of products along them, four at a time. The
 * last elements come with some before them that are counted already ---- */

/* sums[rows][4] += the last n elements of a vector of each row times those of each run. ask: what is
 * so many bytes further is brought to the second cache. */
FEW_INLINE void few_dots_vector(FewType t, int64_t ask, int rows, int cols, const float *a,
                                int64_t a_ld, const char *b, int64_t far, int64_t n, V *sums) {
  V x[FEW];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) {
    x[i] = V_LOAD(a + i * a_ld);
    if (n < LANES) x[i] = V_LAST(x[i], n);
  }
#pragma GCC unroll 4
  for (int j = 0; j < cols; j++) {
    V y = few_load(t, b + j * far);
    if (ask) __builtin_prefetch(b + j * far + ask, 0, 2);
    if (n < LANES) y = V_LAST(y, n);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) V_FMA(sums[i * 4 + j], x[i], y);
  }
}

FEW_INLINE void few_dots_group(FewType t, bool ask, int rows, int cols, const float *a,
                               int64_t a_ld, const char *b, int64_t b_step, int64_t k, float *c,
                               int64_t c_ld) {
  V s[FEW * 4];
  const int64_t e = FEW_BYTES(t), far = b_step * e, last = k - LANES, group = 4 * far;
  const int64_t ahead = !ask                 ? 0
                        : k * e >= ASK_RUN   ? ASK_RUN
                        : group >= ASK_BYTES ? group
                                             : ASK_BYTES / group * group;
#pragma GCC unroll 16
  for (int i = 0; i < 4 * rows; i++) s[i] = V_ZERO();
  int64_t p = 0;
  for (; p <= last; p += LANES)
    few_dots_vector(t, ahead, rows, cols, a + p, a_ld, b + p * e, far, LANES, s);
  if (p < k) few_dots_vector(t, 0, rows, cols, a + last, a_ld, b + last * e, far, k - p, s);
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++, c += c_ld) {
    const V *u = s + i * 4;
    if (cols == 4) V_ADD4(c, V_SUM4(u[0], u[1], u[2], u[3]));
    else V_ADD1(c, V_SUM(*u));
  }
}

/* A single sum: several of them, or each addition would wait for the one before. */
FEW_INLINE void few_dot(FewType t, const float *a, const char *b, int64_t k, float *c) {
  V s[4] = {V_ZERO(), V_ZERO(), V_ZERO(), V_ZERO()};
  const int64_t e = FEW_BYTES(t);
  int64_t p = 0;
  for (; p + 4 * LANES <= k; p += 4 * LANES)
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++)
      V_FMA(s[u], V_LOAD(a + p + u * LANES), few_load(t, b + (p + u * LANES) * e));
  for (; p + LANES <= k; p += LANES) V_FMA(s[0], V_LOAD(a + p), few_load(t, b + p * e));
  const int64_t last = k - LANES;
  if (p < k) V_FMA(s[1], V_LAST(V_LOAD(a + last), k - p), V_LAST(few_load(t, b + last * e), k - p));
  V_ADD1(c, V_SUM(V_ADD(V_ADD(s[0], s[1]), V_ADD(s[2], s[3]))));
}

FEW_INLINE void few_dots(FewType t, int64_t few, const float *a, int64_t a_ld, const void *b_,
                         int64_t b_step, int64_t n, int64_t k, float *c, int64_t c_ld, bool asks) {
  const char *b = b_;
  int64_t e = FEW_BYTES(t);
  /* Long runs that are multiplied by several rows, and go from page to page together, the host itself
   * asks for soon enough, and those that are widened first. */
  const bool far = asks && t == FEW_F32 && (few == 1 || k * e < ASK_RUN || b_step * e % PAGE != 0);
#define GROUP(ask, rows) few_dots_group(t, ask, rows, 4, x, a_ld, b, b_step, k, s, c_ld)
  for (int64_t j = 0, cols; j < n; j += cols, b += cols * b_step * e, c += cols) {
    cols = n - j >= 4 ? 4 : 1;
    for (int64_t i = 0, rows; i < few; i += rows) {
      rows = cols == 1 ? 1 : few - i >= FEW ? FEW : MIN(2, few - i);
      const float *x = a + i * a_ld;
      float *s = c + i * c_ld;
      const bool ask = far && i == 0 && cols == 4;
      if (rows == FEW && ask) GROUP(true, FEW);
      else if (rows == FEW) GROUP(false, FEW);
      else if (rows == 2 && ask) GROUP(true, 2);
      else if (rows == 2) GROUP(false, 2);
      else if (ask) GROUP(true, 1);
      else if (cols == 4) GROUP(false, 1);
      else few_dot(t, x, b, k, s);
    }
  }
#undef GROUP
}

#define FEW_KERNEL(way, name, t)                                                                  \
  FN static void few_##way##_##name(int64_t few, const float *a, int64_t a_ld, const void *b,     \
                                    int64_t b_step, int64_t n, int64_t k, float *c, int64_t c_ld, \
                                    bool asks) {                                                  \
    few_##way(t, few, a, a_ld, b, b_step, n, k, c, c_ld, asks);                                   \
  }
#define FEW_KERNELS(way) \
  FEW_KERNEL(way, f32, FEW_F32) FEW_KERNEL(way, bf16, FEW_BF16) FEW_KERNEL(way, f16, FEW_F16)
#ifdef FEW_SEVERAL
FEW_KERNEL(dots, f32, FEW_F32)
#else
FEW_KERNELS(along)
FEW_KERNELS(dots)
#endif
#define FEW_LIST(way) \
  { few_##way##_f32, few_##way##_bf16, few_##way##_f16 }
