/* Transposition. A plane goes in squares of a vector each way that are turned in registers
 * (turns_tile.h), as wide as the host's vectors are. RUN columns go line by line of the result:
 * whole lines are written, and what is read of a line lies in the first cache until it is read
 * again, however many rows are a power of two apart. Planes of a few columns or a few rows are loops
 * that the compiler makes shuffles of. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "dev/cpu/kernel/turns.h"

#include "dev/cpu/kernel/clones.h"

#define LINE 64 /* bytes */
#define RUN 128 /* elements */
#define HALF 32 /* bytes of a vector */

/* ---- squares of the host's vectors ---- */

typedef uint8_t Lane __attribute__((vector_size(16)));
typedef uint16_t Lane2 __attribute__((vector_size(16)));
typedef uint32_t Lane4 __attribute__((vector_size(16)));
typedef uint64_t Lane8 __attribute__((vector_size(16)));

#define FN
#define LANES 1
#define V Lane
#define NAME(x) x##_128
static inline Lane load_128(const char *p) {
  Lane x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline void store_128(char *p, Lane x) { memcpy(p, &x, sizeof x); }
#define load load_128
#define store store_128
#define EVEN(x, y) (x) /* there is but one lane */
#define ODD(x, y) (y)
#define ZIP(W, x, y, ...) ((Lane)__builtin_shufflevector((W)(x), (W)(y), __VA_ARGS__))
#define LOW_1(x, y) ZIP(Lane, x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_1(x, y) ZIP(Lane, x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_2(x, y) ZIP(Lane2, x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_2(x, y) ZIP(Lane2, x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_4(x, y) ZIP(Lane4, x, y, 0, 4, 1, 5)
#define HIGH_4(x, y) ZIP(Lane4, x, y, 2, 6, 3, 7)
#define LOW_8(x, y) ZIP(Lane8, x, y, 0, 2)
#define HIGH_8(x, y) ZIP(Lane8, x, y, 1, 3)
#define LOW_16(x, y) (x)
#define HIGH_16(x, y) (y)
#include "dev/cpu/kernel/turns_tile.h"

#if defined(__x86_64__)
#define FN __attribute__((target("avx2")))
#define LANES 2
#define V __m256i
#define NAME(x) x##_256
#define load(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define store(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define EVEN(x, y) _mm256_permute2x128_si256(x, y, 0x20)
#define ODD(x, y) _mm256_permute2x128_si256(x, y, 0x31)
#define LOW_1 _mm256_unpacklo_epi8
#define HIGH_1 _mm256_unpackhi_epi8
#define LOW_2 _mm256_unpacklo_epi16
#define HIGH_2 _mm256_unpackhi_epi16
#define LOW_4 _mm256_unpacklo_epi32
#define HIGH_4 _mm256_unpackhi_epi32
#define LOW_8 _mm256_unpacklo_epi64
#define HIGH_8 _mm256_unpackhi_epi64
#define LOW_16(x, y) (x)
#define HIGH_16(x, y) (y)
#include "dev/cpu/kernel/turns_tile.h"

#define FN __attribute__((target("avx512f,avx512bw,avx512vl")))
#define LANES 4
#define V __m512i
#define NAME(x) x##_512
#define load(p) _mm512_loadu_si512(p)
#define store(p, x) _mm512_storeu_si512(p, x)
#define EVEN(x, y) _mm512_shuffle_i64x2(x, y, 0x88)
#define ODD(x, y) _mm512_shuffle_i64x2(x, y, 0xdd)
#define LOW_1 _mm512_unpacklo_epi8
#define HIGH_1 _mm512_unpackhi_epi8
#define LOW_2 _mm512_unpacklo_epi16
#define HIGH_2 _mm512_unpackhi_epi16
#define LOW_4 _mm512_unpacklo_epi32
#define HIGH_4 _mm512_unpackhi_epi32
#define LOW_8 _mm512_unpacklo_epi64
#define HIGH_8 _mm512_unpackhi_epi64
#define LOW_16(x, y) (x)
#define HIGH_16(x, y) (y)
#include "dev/cpu/kernel/turns_tile.h"
#endif

/* A plane that is narrower than any square, each way. Squares read beyond the ends of its rows, into the
 * next, and write beyond the ends of the result's rows what the next overwrites; where no row follows, by a copy. */
#define FEW(T, U)                                                                                  \
  static void few_columns_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const char *s,       \
                              char *d) {                                                           \
    enum { SIDE = 16 / T };                                                                        \
    for (int64_t b1 = 0; b1 < nb; b1 += SIDE) {                                                    \
      int64_t b = MIN(b1, nb - SIDE), end = (nb - 1) * sb + na;                                    \
      char copy[16 * SIDE] = {0};                                                                  \
      bool inside = (b + SIDE - 1) * sb + SIDE <= end;                                             \
      if (!inside) cpu_copy_rows(na *T, SIDE, s + b * sb * T, sb * T, copy, 16);                   \
      square_##T##_128(inside ? s + b *sb *T : copy, inside ? sb *T : 16, SIDE, d + b * T, da * T, \
                       na);                                                                        \
    }                                                                                              \
  }                                                                                                \
  static void few_rows_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const char *s,          \
                           char *d) {                                                              \
    enum { SIDE = 16 / T };                                                                        \
    for (int64_t a1 = 0; a1 < na; a1 += SIDE) {                                                    \
      int64_t a = MIN(a1, na - SIDE);                                                              \
      char copy[16 * SIDE];                                                                        \
      bool inside = da == nb && (a + SIDE - 1) * da + SIDE <= na * da && a == a1;                  \
      square_##T##_128(s + a * T, sb * T, nb, inside ? d + a * da * T : copy,                      \
                       inside ? da * T : 16, SIDE);                                                \
      if (!inside) cpu_copy_rows(nb *T, SIDE, copy, 16, d + a * da * T, da * T);                   \
    }                                                                                              \
  }                                                                                                \
  static void few_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const char *s, char *d) {    \
    enum { SIDE = 16 / T };                                                                        \
    const U *from = (const U *)(const void *)s;                                                    \
    U *to = (U *)(void *)d;                                                                        \
    if (na < SIDE && nb >= SIDE) few_columns_##T(na, nb, da, sb, s, d);                            \
    else if (nb < SIDE && na >= SIDE) few_rows_##T(na, nb, da, sb, s, d);                          \
    else                                                                                           \
      for (int64_t a = 0; a < na; a++)                                                             \
        for (int64_t b = 0; b < nb; b++) to[a * da + b] = from[a + b * sb];                        \
  }
FEW(1, uint8_t)
FEW(2, uint16_t)
FEW(4, uint32_t)
FEW(8, uint64_t)

static void turn(size_t bytes, int64_t na, int64_t nb, int64_t da, int64_t sb, const char *src,
                 char *dst) {
#if defined(__x86_64__)
#ifndef WEFT_EMULATE_AVX512
  if (cpu_vector_bits() >= 512 && turn_512(bytes, na, nb, da, sb, src, dst)) return;
#endif
  if (cpu_vector_bits() >= 256 && turn_256(bytes, na, nb, da, sb, src, dst)) return;
#endif
  if (turn_128(bytes, na, nb, da, sb, src, dst)) return;
  switch (bytes) {
  case 1: few_1(na, nb, da, sb, src, dst); return;
  case 2: few_2(na, nb, da, sb, src, dst); return;
  case 4: few_4(na, nb, da, sb, src, dst); return;
  default: few_8(na, nb, da, sb, src, dst); return; /* squares of 16 bytes are one element */
  }
}

/* ---- planes of two to four columns or rows, small blocks ---- */

typedef uint8_t Bytes __attribute__((vector_size(HALF)));
typedef uint16_t Pairs __attribute__((vector_size(HALF)));
typedef uint32_t Fours __attribute__((vector_size(HALF)));
typedef uint64_t Eights __attribute__((vector_size(HALF)));

#if defined(__clang__)
#define PERMUTES 0
#define PERMUTE(x, at) (x)
#else
#define PERMUTES 1
#define PERMUTE __builtin_shuffle
#endif

#define TURNS(T, V, N)                                                                           \
  CLONES static void apart2_##T(int64_t n, int64_t da, const T *restrict s, T *restrict d) {     \
    T *restrict e = d + da;                                                                      \
    for (int64_t b = 0; b < n; b++) d[b] = s[2 * b], e[b] = s[2 * b + 1];                        \
  }                                                                                              \
  CLONES static void apart3_##T(int64_t n, int64_t da, const T *restrict s, T *restrict d) {     \
    T *restrict e = d + da, *restrict f = d + 2 * da;                                            \
    for (int64_t b = 0; b < n; b++) d[b] = s[3 * b], e[b] = s[3 * b + 1], f[b] = s[3 * b + 2];   \
  }                                                                                              \
  CLONES static void apart4_##T(int64_t n, int64_t da, const T *restrict s, T *restrict d) {     \
    T *restrict e = d + da, *restrict f = d + 2 * da, *restrict g = d + 3 * da;                  \
    for (int64_t b = 0; b < n; b++)                                                              \
      d[b] = s[4 * b], e[b] = s[4 * b + 1], f[b] = s[4 * b + 2], g[b] = s[4 * b + 3];            \
  }                                                                                              \
  CLONES static void join2_##T(int64_t n, int64_t sb, const T *restrict s, T *restrict d) {      \
    const T *restrict t = s + sb;                                                                \
    for (int64_t a = 0; a < n; a++) d[2 * a] = s[a], d[2 * a + 1] = t[a];                        \
  }                                                                                              \
  CLONES static void join3_##T(int64_t n, int64_t sb, const T *restrict s, T *restrict d) {      \
    const T *restrict t = s + sb, *restrict u = s + 2 * sb;                                      \
    for (int64_t a = 0; a < n; a++) d[3 * a] = s[a], d[3 * a + 1] = t[a], d[3 * a + 2] = u[a];   \
  }                                                                                              \
  CLONES static void join4_##T(int64_t n, int64_t sb, const T *restrict s, T *restrict d) {      \
    const T *restrict t = s + sb, *restrict u = s + 2 * sb, *restrict v = s + 3 * sb;            \
    for (int64_t a = 0; a < n; a++)                                                              \
      d[4 * a] = s[a], d[4 * a + 1] = t[a], d[4 * a + 2] = u[a], d[4 * a + 3] = v[a];            \
  }                                                                                              \
  static void turn_##T(int64_t na, int64_t nb, int64_t da, int64_t sb, const T *s, T *d) {       \
    if (sb == na && na == 2) apart2_##T(nb, da, s, d);                                           \
    else if (sb == na && na == 3) apart3_##T(nb, da, s, d);                                      \
    else if (sb == na && na == 4) apart4_##T(nb, da, s, d);                                      \
    else if (da == nb && nb == 2) join2_##T(na, sb, s, d);                                       \
    else if (da == nb && nb == 3) join3_##T(na, sb, s, d);                                       \
    else if (da == nb && nb == 4) join4_##T(na, sb, s, d);                                       \
    else turn(sizeof(T), na, nb, da, sb, (const char *)s, (char *)d);                            \
  }                                                                                              \
  CLONES static void blocks_##T(int64_t n, int64_t size, const uint8_t *from, int64_t step,      \
                                const T *restrict s, T *restrict d) {                            \
    int64_t i = 0;                                                                               \
    if (PERMUTES && sizeof(T) >= 4 && N % size == 0 && step == size) { /* several to a vector */ \
      V at;                                                                                      \
      for (int k = 0; k < N; k++) at[k] = (T)(k / size * size + from[k % size]);                 \
      for (; (i + N / size) <= n; i += N / size) {                                               \
        V x;                                                                                     \
        memcpy(&x, s + i * size, HALF);                                                          \
        x = PERMUTE(x, at);                                                                      \
        memcpy(d + i * size, &x, HALF);                                                          \
      }                                                                                          \
    }                                                                                            \
    for (; i < n; i++)                                                                           \
      for (int64_t j = 0; j < size; j++) d[i * size + j] = s[i * step + from[j]];                \
  }
TURNS(uint8_t, Bytes, 32)
TURNS(uint16_t, Pairs, 16)
TURNS(uint32_t, Fours, 8)
TURNS(uint64_t, Eights, 4)

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
  default: turn(bytes, na, nb, da, sb, src, dst);
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
