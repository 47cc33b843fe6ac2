/* Few vectors times a matrix that is read once, where it is: c[few][n] += a[few][k] b. Included
 * after gemm_tile.h, with the same macros and V_BF16, V_F16 (LANES elements widened), V_SUM and
 * FEW, the rows of a that go together: the matrix comes from the first cache for all but the first
 * of them. */

typedef enum FewType { FEW_F32, FEW_BF16, FEW_F16 } FewType;
#define FEW_BYTES(t) ((t) == FEW_F32 ? 4 : 2)
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

FEW_INLINE void few_along_group(FewType t, bool ask, int rows, int ku, const float *a, int64_t a_ld,
                                const char *b, const char *end, int64_t b_step, int64_t n, float *c,
                                int64_t c_ld) {
  V x[FEW * 4];
  const int64_t e = FEW_BYTES(t), far = b_step * e;
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
    for (int u = 0; u < ku; u++) x[i * ku + u] = V_SET(a[i * a_ld + u]);
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES) {
    V s[FEW];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) s[i] = V_LOAD(c + i * c_ld + j);
#pragma GCC unroll 8
    for (int u = 0; u < ku; u++) {
      V y = few_load(t, b + u * far + j * e);
      if (ask) __builtin_prefetch(b + (ku + u) * far + j * e);
#pragma GCC unroll 8
      for (int i = 0; i < rows; i++) V_FMA(s[i], x[i * ku + u], y);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) V_STORE(c + i * c_ld + j, s[i]);
  }
  if (j == n) return;
  V s[FEW]; /* rows of sums have room for a whole vector at their end (dot_few.c) */
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) s[i] = V_LOAD(c + i * c_ld + j);
#pragma GCC unroll 8
  for (int u = 0; u < ku; u++) {
    const char *p = b + u * far + j * e;
    V y = p + LANES * e <= end ? few_load(t, p) : few_load_part(t, p, n - j);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) V_FMA(s[i], x[i * ku + u], y);
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) V_STORE(c + i * c_ld + j, s[i]);
}

FEW_INLINE void few_along(FewType t, int64_t few, const float *a, int64_t a_ld, const void *b_,
                          int64_t b_step, int64_t n, int64_t k, float *c, int64_t c_ld) {
  const char *b = b_;
  int64_t e = FEW_BYTES(t);
  const char *end = b + ((k - 1) * b_step + n) * e;
  for (int64_t p = 0, ku; p < k; p += ku, b += ku * b_step * e) {
    ku = k - p >= 4 ? 4 : 1;
    for (int64_t i = 0, rows; i < few; i += rows) {
      rows = ku == 1 ? 1 : few - i >= FEW ? FEW : MIN(2, few - i);
      const float *x = a + i * a_ld + p;
      float *s = c + i * c_ld;
      if (rows == FEW && i == 0)
        few_along_group(t, true, FEW, 4, x, a_ld, b, end, b_step, n, s, c_ld);
      else if (rows == FEW) few_along_group(t, false, FEW, 4, x, a_ld, b, end, b_step, n, s, c_ld);
      else if (rows == 2 && i == 0)
        few_along_group(t, true, 2, 4, x, a_ld, b, end, b_step, n, s, c_ld);
      else if (rows == 2) few_along_group(t, false, 2, 4, x, a_ld, b, end, b_step, n, s, c_ld);
      else if (ku == 4) few_along_group(t, false, 1, 4, x, a_ld, b, end, b_step, n, s, c_ld);
      else few_along_group(t, false, 1, 1, x, a_ld, b, end, b_step, n, s, c_ld);
    }
  }
}

/* ---- b[.][j] are runs: sums of products along them, four at a time; a is filled up with zeros to
 * whole vectors ---- */

FEW_INLINE void few_dots_group(FewType t, int rows, int cols, const float *a, int64_t a_ld,
                               const char *b, int64_t b_step, int64_t k, float *c, int64_t c_ld) {
  V s[FEW][4];
  const int64_t e = FEW_BYTES(t), far = b_step * e;
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < cols; j++) s[i][j] = V_ZERO();
  int64_t p = 0;
  for (; p + LANES <= k; p += LANES) {
    V x[FEW];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) x[i] = V_LOAD(a + i * a_ld + p);
#pragma GCC unroll 4
    for (int j = 0; j < cols; j++) {
      V y = few_load(t, b + j * far + p * e);
#pragma GCC unroll 8
      for (int i = 0; i < rows; i++) V_FMA(s[i][j], x[i], y);
    }
  }
  if (p < k) {
#pragma GCC unroll 4
    for (int j = 0; j < cols; j++) {
      V y = few_load_part(t, b + j * far + p * e, k - p);
#pragma GCC unroll 8
      for (int i = 0; i < rows; i++) V_FMA(s[i][j], V_LOAD(a + i * a_ld + p), y);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < cols; j++) c[i * c_ld + j] += V_SUM(s[i][j]);
}

/* A single sum: several of them, or each addition would wait for the one before. */
FEW_INLINE float few_dot(FewType t, const float *a, const char *b, int64_t k) {
  V s[4] = {V_ZERO(), V_ZERO(), V_ZERO(), V_ZERO()};
  const int64_t e = FEW_BYTES(t);
  int64_t p = 0;
  for (; p + 4 * LANES <= k; p += 4 * LANES)
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++)
      V_FMA(s[u], V_LOAD(a + p + u * LANES), few_load(t, b + (p + u * LANES) * e));
  for (; p + LANES <= k; p += LANES) V_FMA(s[0], V_LOAD(a + p), few_load(t, b + p * e));
  if (p < k) V_FMA(s[1], V_LOAD(a + p), few_load_part(t, b + p * e, k - p));
  return V_SUM(V_ADD(V_ADD(s[0], s[1]), V_ADD(s[2], s[3])));
}

FEW_INLINE void few_dots(FewType t, int64_t few, const float *a, int64_t a_ld, const void *b_,
                         int64_t b_step, int64_t n, int64_t k, float *c, int64_t c_ld) {
  const char *b = b_;
  int64_t e = FEW_BYTES(t);
  for (int64_t j = 0, cols; j < n; j += cols, b += cols * b_step * e, c += cols) {
    cols = n - j >= 4 ? 4 : 1;
    for (int64_t i = 0, rows; i < few; i += rows) {
      rows = cols == 1 ? 1 : few - i >= FEW ? FEW : MIN(2, few - i);
      const float *x = a + i * a_ld;
      float *s = c + i * c_ld;
      if (rows == FEW) few_dots_group(t, FEW, 4, x, a_ld, b, b_step, k, s, c_ld);
      else if (rows == 2) few_dots_group(t, 2, 4, x, a_ld, b, b_step, k, s, c_ld);
      else if (cols == 4) few_dots_group(t, 1, 4, x, a_ld, b, b_step, k, s, c_ld);
      else *s += few_dot(t, x, b, k);
    }
  }
}

#define FEW_KERNEL(way, name, t)                                                              \
  FN static void few_##way##_##name(int64_t few, const float *a, int64_t a_ld, const void *b, \
                                    int64_t b_step, int64_t n, int64_t k, float *c,           \
                                    int64_t c_ld) {                                           \
    few_##way(t, few, a, a_ld, b, b_step, n, k, c, c_ld);                                     \
  }
#define FEW_KERNELS(way) \
  FEW_KERNEL(way, f32, FEW_F32) FEW_KERNEL(way, bf16, FEW_BF16) FEW_KERNEL(way, f16, FEW_F16)
FEW_KERNELS(along)
FEW_KERNELS(dots)
#define FEW_LIST(way) \
  { few_##way##_f32, few_##way##_bf16, few_##way##_f16 }
