/* Rows of k_resample.c: sums of near rows, and of near places of a row, by their weights. */
#ifndef WEFT_DEV_CPU_OPS_RESAMPLE_H
#define WEFT_DEV_CPU_OPS_RESAMPLE_H

#include "base/base.h"

/* The weights of one dimension: place j of the result is the sum of w[i * m + j] times place i, of
 * n, over low[j] <= i < high[j]. */
typedef struct Band {
  const float *w;
  int64_t n, m, most; /* most: places that one place of the result is made of */
  int32_t *low, *high;
  bool covers; /* every place counts for some place of the result */
} Band;

/* The same for places of few elements, by vectors of the result: vector b, from element b * lanes on,
 * reads places low[b] <= i < high[b]; lane l takes element index[b * lanes + l] of each place, times
 * w[(at[b] + i - low[b]) * lanes + l]. */
typedef struct Vectors {
  int64_t inner, count, elements; /* of a place; vectors; of the result */
  int32_t *low, *high, *index;
  int64_t *at;
  float *w;
} Vectors;

typedef struct ResampleRows {
  int64_t lanes;
  /* out[p] = sum over k < n of w[k * step] rows[k][p]. */
  void (*sum)(const float *const *rows, const float *w, int64_t step, int64_t n, int64_t elements,
              float *out);
  /* Along a row of places of `inner` >= lanes elements. */
  void (*places)(const Band *b, const float *row, int64_t inner, float *out);
  /* The same of inner < lanes; what follows the row, a vector, may be read. */
  void (*vectors)(const Vectors *v, const float *row, float *out);
} ResampleRows;

const ResampleRows *resample_rows(void); /* for this host */

#endif
