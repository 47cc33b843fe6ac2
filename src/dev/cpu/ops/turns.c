/* Transposition. A plane goes in squares of a cache line each way: whole lines are read and written,
 * however many of them the cache can hold that are a power of two apart. A square is turned by zips:
 * after log2 of its side of them, of row i and the row half the side behind, rows are columns. Planes of a
 * few columns or a few rows are loops that the compiler makes shuffles of. */
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "dev/cpu/ops/turns.h"

#include "dev/cpu/kernel/clones.h"

#define LINE 64
#define HALF 32 /* bytes of a vector */
#define TILE 32

typedef uint8_t Bytes __attribute__((vector_size(HALF)));
typedef uint16_t Pairs __attribute__((vector_size(HALF)));
typedef uint32_t Fours __attribute__((vector_size(HALF)));
typedef uint64_t Eights __attribute__((vector_size(HALF)));

#define ZIP2(k, n) k, k + n
#define ZIP4(k, n) ZIP2(k, n), ZIP2(k + 1, n)
#define ZIP8(k, n) ZIP4(k, n), ZIP4(k + 2, n)
#define ZIP16(k, n) ZIP8(k, n), ZIP8(k + 4, n)
#define ZIP32(k, n) ZIP16(k, n), ZIP16(k + 8, n)

/* Elements of four bytes whose lines do not meet in the cache: four by four in registers, which are
 * more than what zips of larger squares leave. */
static void turn_fours(int64_t na, int64_t nb, int64_t da, int64_t sb, const void *src, void *dst) {
  const float *s = src;
  float *d = dst;
  for (int64_t a0 = 0; a0 < na; a0 += TILE)
    for (int64_t b0 = 0; b0 < nb; b0 += TILE) {
      int64_t a1 = MIN(a0 + TILE, na), b1 = MIN(b0 + TILE, nb), a = a0;
#if defined(__SSE2__)
      for (; a + 4 <= a1; a += 4) {
        int64_t b = b0;
        for (; b + 4 <= b1; b += 4) {
          const float *from = s + a + b * sb;
          float *to = d + a * da + b;
          __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + sb),
                 r2 = _mm_loadu_ps(from + 2 * sb), r3 = _mm_loadu_ps(from + 3 * sb);
          _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
          _mm_storeu_ps(to, r0);
          _mm_storeu_ps(to + da, r1);
          _mm_storeu_ps(to + 2 * da, r2);
          _mm_storeu_ps(to + 3 * da, r3);
        }
        for (; b < b1; b++)
          for (int i = 0; i < 4; i++) d[(a + i) * da + b] = s[a + i + b * sb];
      }
#endif
      for (; a < a1; a++)
        for (int64_t b = b0; b < b1; b++) d[a * da + b] = s[a + b * sb];
    }
}

/* square_: N x N elements, N of them a vector, rows `from` and `to` bytes apart. plane_: see turns.h. */
#define TURNS(T, V, N, PASSES, ZIP)                                                                \
  static inline __attribute__((always_inline)) void square_##T(const char *src, int64_t from,      \
                                                               char *dst, int64_t to) {            \
    V a[N], b[N];                                                                                  \
    for (int i = 0; i < N; i++) memcpy(&a[i], src + i * from, HALF);                               \
    for (int pass = 0; pass < PASSES; pass++) {                                                    \
      for (int i = 0; i < N / 2; i++) {                                                            \
        b[2 * i] = __builtin_shuffle(a[i], a[i + N / 2], (V){ZIP(0, N)});                          \
        b[2 * i + 1] = __builtin_shuffle(a[i], a[i + N / 2], (V){ZIP(N / 2, N)});                  \
      }                                                                                            \
      memcpy(a, b, sizeof a);                                                                      \
    }                                                                                              \
    for (int i = 0; i < N; i++) memcpy(dst + i * to, &a[i], HALF);                                 \
  }                                                                                                \
  static void tiles_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const T *s, T *d) {        \
    for (int64_t a0 = 0; a0 < na; a0 += TILE)                                                      \
      for (int64_t b0 = 0; b0 < nb; b0 += TILE) {                                                  \
        int64_t a1 = MIN(a0 + TILE, na), b1 = MIN(b0 + TILE, nb);                                  \
        for (int64_t a = a0; a < a1; a++)                                                          \
          for (int64_t b = b0; b < b1; b++) d[a * da + b] = s[a + b * sb];                         \
      }                                                                                            \
  }                                                                                                \
  CLONES static void plane_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const T *s, T *d) { \
    enum { SIDE = LINE / sizeof(T) };                                                              \
    int64_t fa = na / SIDE * SIDE, fb = nb / SIDE * SIDE;                                          \
    for (int64_t a = 0; a < fa; a += SIDE)                                                         \
      for (int64_t b = 0; b < fb; b += SIDE) {                                                     \
        char in[SIDE * LINE] __attribute__((aligned(LINE))),                                       \
            out[N * LINE] __attribute__((aligned(LINE)));                                          \
        for (int i = 0; i < SIDE; i++) memcpy(in + i * LINE, s + a + (b + i) * sb, LINE);          \
        for (int h = 0; h < 2; h++) {                                                              \
          square_##T(in + h * HALF, LINE, out, LINE);                                              \
          square_##T(in + N * LINE + h * HALF, LINE, out + HALF, LINE);                            \
          for (int i = 0; i < N; i++) memcpy(d + (a + h * N + i) * da + b, out + i * LINE, LINE);  \
        }                                                                                          \
      }                                                                                            \
    tiles_##T(fa, nb - fb, da, sb, s + fb * sb, d + fb);                                           \
    tiles_##T(na - fa, nb, da, sb, s + fa, d + fa * da);                                           \
  }                                                                                                \
  CLONES static void apart2_##T(int64_t n, int64_t da, const T *restrict s, T *restrict d) {       \
    T *restrict e = d + da;                                                                        \
    for (int64_t b = 0; b < n; b++) d[b] = s[2 * b], e[b] = s[2 * b + 1];                          \
  }                                                                                                \
  CLONES static void apart3_##T(int64_t n, int64_t da, const T *restrict s, T *restrict d) {       \
    T *restrict e = d + da, *restrict f = d + 2 * da;                                              \
    for (int64_t b = 0; b < n; b++) d[b] = s[3 * b], e[b] = s[3 * b + 1], f[b] = s[3 * b + 2];     \
  }                                                                                                \
  CLONES static void apart4_##T(int64_t n, int64_t da, const T *restrict s, T *restrict d) {       \
    T *restrict e = d + da, *restrict f = d + 2 * da, *restrict g = d + 3 * da;                    \
    for (int64_t b = 0; b < n; b++)                                                                \
      d[b] = s[4 * b], e[b] = s[4 * b + 1], f[b] = s[4 * b + 2], g[b] = s[4 * b + 3];              \
  }                                                                                                \
  CLONES static void join2_##T(int64_t n, int64_t sb, const T *restrict s, T *restrict d) {        \
    const T *restrict t = s + sb;                                                                  \
    for (int64_t a = 0; a < n; a++) d[2 * a] = s[a], d[2 * a + 1] = t[a];                          \
  }                                                                                                \
  CLONES static void join3_##T(int64_t n, int64_t sb, const T *restrict s, T *restrict d) {        \
    const T *restrict t = s + sb, *restrict u = s + 2 * sb;                                        \
    for (int64_t a = 0; a < n; a++) d[3 * a] = s[a], d[3 * a + 1] = t[a], d[3 * a + 2] = u[a];     \
  }                                                                                                \
  CLONES static void join4_##T(int64_t n, int64_t sb, const T *restrict s, T *restrict d) {        \
    const T *restrict t = s + sb, *restrict u = s + 2 * sb, *restrict v = s + 3 * sb;              \
    for (int64_t a = 0; a < n; a++)                                                                \
      d[4 * a] = s[a], d[4 * a + 1] = t[a], d[4 * a + 2] = u[a], d[4 * a + 3] = v[a];              \
  }                                                                                                \
  static void turn_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const T *s, T *d) {         \
    if (sb == na && na == 2) apart2_##T(nb, da, s, d);                                             \
    else if (sb == na && na == 3) apart3_##T(nb, da, s, d);                                        \
    else if (sb == na && na == 4) apart4_##T(nb, da, s, d);                                        \
    else if (da == nb && nb == 2) join2_##T(na, sb, s, d);                                         \
    else if (da == nb && nb == 3) join3_##T(na, sb, s, d);                                         \
    else if (da == nb && nb == 4) join4_##T(na, sb, s, d);                                         \
    else if (sizeof(T) == 4 && (da * 4 % 512 || sb * 4 % 1024)) turn_fours(na, nb, da, sb, s, d);  \
    else plane_##T(na, nb, da, sb, s, d);                                                          \
  }                                                                                                \
  CLONES static void blocks_##T(int64_t n, int64_t size, const uint8_t *from, int64_t step,        \
                                const T *restrict s, T *restrict d) {                              \
    int64_t i = 0;                                                                                 \
    if (sizeof(T) >= 4 && N % size == 0 && step == size) { /* several to a vector */               \
      V at;                                                                                        \
      for (int k = 0; k < N; k++) at[k] = (T)(k / size * size + from[k % size]);                   \
      for (; (i + N / size) <= n; i += N / size) {                                                 \
        V x;                                                                                       \
        memcpy(&x, s + i * size, HALF);                                                            \
        x = __builtin_shuffle(x, at);                                                              \
        memcpy(d + i * size, &x, HALF);                                                            \
      }                                                                                            \
    }                                                                                              \
    for (; i < n; i++)                                                                             \
      for (int64_t j = 0; j < size; j++) d[i * size + j] = s[i * step + from[j]];                  \
  }
TURNS(uint8_t, Bytes, 32, 5, ZIP32)
TURNS(uint16_t, Pairs, 16, 4, ZIP16)
TURNS(uint32_t, Fours, 8, 3, ZIP8)
TURNS(uint64_t, Eights, 4, 2, ZIP4)

#define CASE(T, call) \
  case sizeof(T):     \
    call;             \
    return;
#define AS(T, p) ((T *)(void *)(p))
#define FROM(T, p) ((const T *)(const void *)(p))

void turn_plane(size_t bytes, int64_t na, int64_t nb, int64_t da, int64_t sb, const char *src,
                char *dst) {
#define PLANE(T) CASE(T, turn_##T(na, nb, da, sb, FROM(T, src), AS(T, dst)))
  switch (bytes) {
    PLANE(uint8_t)
    PLANE(uint16_t)
    PLANE(uint32_t)
    PLANE(uint64_t)
  default:
    for (int64_t a = 0; a < na; a++)
      for (int64_t b = 0; b < nb; b++)
        memcpy(dst + (size_t)(a * da + b) * bytes, src + (a + b * sb) * (int64_t)bytes, bytes);
  }
}

void turn_blocks(size_t bytes, int64_t n, int64_t size, const uint8_t *from, int64_t step,
                 const char *src, char *dst) {
#define BLOCKS(T) CASE(T, blocks_##T(n, size, from, step, FROM(T, src), AS(T, dst)))
  switch (bytes) {
    BLOCKS(uint8_t)
    BLOCKS(uint16_t)
    BLOCKS(uint32_t)
    BLOCKS(uint64_t)
  default:
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < size; j++)
        memcpy(dst + (size_t)(i * size + j) * bytes, src + (i * step + from[j]) * (int64_t)bytes,
               bytes);
  }
}
