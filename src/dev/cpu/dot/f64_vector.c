/* A matrix of doubles times a vector, as fast as memory: runs of the matrix lie beside each other, `ld` apart. */
#include "dev/cpu/dot/f64.h"
#include "dev/cpu/kernel/clones.h"

typedef double Lanes __attribute__((vector_size(64), aligned(8), may_alias));
#define LANES 8
#define ROWS 4       /* at a time */
#define COLUMNS 1024 /* of sums that stay in the first cache */

/* Sums of `rows` runs, in lanes, that are added up in order. */
#define DOTS(rows)                                                       \
  do {                                                                   \
    Lanes sum[rows][2] = {{{0}}};                                        \
    int64_t p = 0;                                                       \
    for (; p + 2 * LANES <= n; p += 2 * LANES)                           \
      for (int h = 0; h < 2; h++) {                                      \
        Lanes v = *(const Lanes *)(x + p + h * LANES);                   \
        for (int r = 0; r < (rows); r++)                                 \
          sum[r][h] += *(const Lanes *)(m + r * ld + p + h * LANES) * v; \
      }                                                                  \
    for (int r = 0; r < (rows); r++) {                                   \
      double all = 0;                                                    \
      sum[r][0] += sum[r][1];                                            \
      for (int l = 0; l < LANES; l++) all += sum[r][0][l];               \
      for (int64_t q = p; q < n; q++) all += m[r * ld + q] * x[q];       \
      y[r] = all;                                                        \
    }                                                                    \
  } while (0)

CLONES_FUSED
void f64_dots(int64_t runs, int64_t n, const double *m, int64_t ld, const double *x, double *y) {
  int64_t i = 0;
  for (; i + ROWS <= runs; i += ROWS, m += ROWS * ld, y += ROWS) DOTS(ROWS);
  for (; i < runs; i++, m += ld, y++) DOTS(1);
}

CLONES_FUSED
static void add_four(int64_t n, const double *m, int64_t ld, const double *x, double *restrict y) {
  const double *a = m, *b = m + ld, *c = m + 2 * ld, *d = m + 3 * ld;
  for (int64_t j = 0; j < n; j++) y[j] += (x[0] * a[j] + x[1] * b[j]) + (x[2] * c[j] + x[3] * d[j]);
}

CLONES_FUSED
static void add_one(int64_t n, const double *m, double x, double *restrict y) {
  for (int64_t j = 0; j < n; j++) y[j] += x * m[j];
}

void f64_along(int64_t runs, int64_t n, const double *m, int64_t ld, const double *x, double *y) {
  for (int64_t j = 0; j < n; j += COLUMNS) {
    int64_t some = MIN(COLUMNS, n - j), p = 0;
    memset(y + j, 0, sizeof *y * (size_t)some);
    for (; p + 4 <= runs; p += 4) add_four(some, m + p * ld + j, ld, x + p, y + j);
    for (; p < runs; p++) add_one(some, m + p * ld + j, x[p], y + j);
  }
}
