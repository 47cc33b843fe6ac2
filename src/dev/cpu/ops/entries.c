/* Sorting entries: up to a few hundred by merging, more by a stable radix sort, whose passes run on
 * the pool. */
#include "dev/cpu/ops/sorting.h"

#define KEY8(e) ((e) >> 32)
#define KEY16(e) ((e).key)

/* Bottom-up merging; the result is in `a`. */
#define MERGE(name, T, KEY)                                                             \
  static void name(T *a, T *b, int64_t n) {                                             \
    for (int64_t lo = 0; lo < n; lo += 16) {                                            \
      int64_t hi = MIN(lo + 16, n);                                                     \
      for (int64_t i = lo + 1; i < hi; i++) {                                           \
        T x = a[i];                                                                     \
        int64_t j = i;                                                                  \
        for (; j > lo && KEY(a[j - 1]) > KEY(x); j--) a[j] = a[j - 1];                  \
        a[j] = x;                                                                       \
      }                                                                                 \
    }                                                                                   \
    T *from = a, *to = b;                                                               \
    for (int64_t width = 16; width < n; width *= 2) {                                   \
      for (int64_t lo = 0; lo < n; lo += 2 * width) {                                   \
        int64_t mid = MIN(lo + width, n), hi = MIN(lo + 2 * width, n), i = lo, j = mid; \
        int64_t k = lo;                                                                 \
        while (i < mid && j < hi) {                                                     \
          bool right = KEY(from[j]) < KEY(from[i]);                                     \
          to[k++] = right ? from[j] : from[i];                                          \
          j += right;                                                                   \
          i += !right;                                                                  \
        }                                                                               \
        while (i < mid) to[k++] = from[i++];                                            \
        while (j < hi) to[k++] = from[j++];                                             \
      }                                                                                 \
      T *t = from;                                                                      \
      from = to;                                                                        \
      to = t;                                                                           \
    }                                                                                   \
    if (from != a) memcpy(a, from, sizeof(T) * (size_t)n);                              \
  }
MERGE(merge8, uint64_t, KEY8)
MERGE(merge16, Wide, KEY16)

typedef struct Radix {
  void *from, *to;
  int64_t n, chunk;
  int shift, digit; /* bits */
  bool wide;
  uint32_t (*at)[BUCKETS]; /* for each chunk: counts, then places */
} Radix;

static inline uint32_t digit(uint64_t key, const Radix *r) {
  return (uint32_t)(key >> r->shift) & ((1u << r->digit) - 1);
}

static void count(void *arg, int64_t begin, int64_t end) {
  const Radix *r = arg;
  for (int64_t c = begin; c < end; c++) {
    uint32_t *at = r->at[c];
    memset(at, 0, sizeof *at << r->digit);
    int64_t lo = c * r->chunk, hi = MIN(r->n, lo + r->chunk);
    if (r->wide)
      for (int64_t i = lo; i < hi; i++) at[digit(((const Wide *)r->from)[i].key, r)]++;
    else
      for (int64_t i = lo; i < hi; i++) at[digit(KEY8(((const uint64_t *)r->from)[i]), r)]++;
  }
}

static void place(void *arg, int64_t begin, int64_t end) {
  const Radix *r = arg;
  for (int64_t c = begin; c < end; c++) {
    uint32_t *at = r->at[c];
    int64_t lo = c * r->chunk, hi = MIN(r->n, lo + r->chunk);
    if (r->wide)
      for (int64_t i = lo; i < hi; i++) {
        Wide e = ((const Wide *)r->from)[i];
        ((Wide *)r->to)[at[digit(e.key, r)]++] = e;
      }
    else
      for (int64_t i = lo; i < hi; i++) {
        uint64_t e = ((const uint64_t *)r->from)[i];
        ((uint64_t *)r->to)[at[digit(KEY8(e), r)]++] = e;
      }
  }
}

/* Sorts by `bits` bits of key, in as few digits as can be, all of about a size; few entries by short
 * ones, whose buckets are fewer. Returns where the result is, a or b. */
static void *radix_sort(void *a, void *b, int64_t n, int bits, bool wide, uint32_t (*at)[BUCKETS]) {
  int64_t chunks = MAX(1, MIN(MAX_CHUNKS, n / 65536)), chunk = (n + chunks - 1) / chunks;
  chunks = (n + chunk - 1) / chunk;
  int most = n < 4096 ? 8 : DIGIT, digits = (bits + most - 1) / most;
  Radix r = {a, b, n, chunk, 0, digits ? (bits + digits - 1) / digits : 0, wide, at};
  for (; r.shift < bits; r.shift += r.digit) {
    cpu_parallel(chunks, 1, count, &r);
    uint32_t sum = 0;
    bool one = false; /* all in one bucket: nothing to do */
    for (int d = 0; d < 1 << r.digit && !one; d++) {
      uint32_t before = sum;
      for (int64_t c = 0; c < chunks; c++) {
        uint32_t k = at[c][d];
        at[c][d] = sum;
        sum += k;
      }
      one = sum - before == (uint32_t)n;
    }
    if (one) continue;
    cpu_parallel(chunks, 1, place, &r);
    void *t = r.from;
    r.from = r.to;
    r.to = t;
  }
  return r.from;
}

#define SMALL 768

void *sort_entries(void *a, void *b, int64_t n, int bits, bool wide, uint32_t (*at)[BUCKETS]) {
  if (n > SMALL) return radix_sort(a, b, n, bits, wide, at);
  if (wide) merge16(a, b, n);
  else merge8(a, b, n);
  return a;
}
