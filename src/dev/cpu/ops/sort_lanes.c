/* Rows sorted side by side, one in each lane, by Batcher's network of merges of odd and even: which
 * two elements are compared depends on their number alone. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/sorting.h"

static inline __attribute__((always_inline)) void in_order(SortLanes *a, SortLanes *b) {
  SortLanes x = *a, y = *b, less = x < y;
  *a = (x & less) | (y & ~less);
  *b = (y & less) | (x & ~less);
}

CLONES void sort_lanes(SortLanes *e, int64_t n) {
  for (int64_t p = 1; p < n; p *= 2) /* sorted runs of p become ones of 2 p */
    for (int64_t k = p; k >= 1; k /= 2)
      for (int64_t j = k % p; j + k < n; j += 2 * k)
        for (int64_t i = j; i < MIN(j + k, n - k); i++)
          if (i / (2 * p) == (i + k) / (2 * p)) in_order(&e[i], &e[i + k]);
}
