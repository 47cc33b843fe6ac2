/* dev/cpu, private to conv_depthwise*.c: its inner loops, for each width of vectors and for sums in f32 and
 * f64. Sums run over LANES elements beside each other, however many registers that takes. */
#ifndef WEFT_DEV_CPU_CONV_DEPTHWISE_H
#define WEFT_DEV_CPU_CONV_DEPTHWISE_H

#include "base/base.h"

#define LANES 16
#define SLIDE_COLUMNS 7
#define SLIDE_STEPS 2

/* What goes into the lanes of `inputs` vectors from a pixel's channels [0, in), in <= LANES: lane l
 * of vector k is channel index[k][l]; index NULL: one vector, lane l is channel l, zero from `in` on. */
typedef struct LanesSpread {
  int64_t in, inputs;
  const int32_t (*index)[LANES];
  int64_t apart; /* elements between the vectors of a pixel */
} LanesSpread;

/* n pixels, `step` elements apart, one after the other to `to`, which has f32, or f64 where t is that; f32 also from
 * bf16. */
void lanes_spread(const LanesSpread *s, DType t, const void *from, int64_t step, int64_t n,
                  void *to);

/* Places, and of how many blocks: the next one is LANES on in the source and in Y, w_step in weights. */
typedef struct LanesGrid {
  int64_t rows, places, row, step, y_row, y_step, blocks, w_step;
} LanesGrid;

/* All steps are in elements, taps at from[at[t]]. */
typedef struct LanesKernels {
  /* to[p * to_step] = sum over t of w[t * LANES] * from[at[t] + p * step], vectors, for p < places;
   * half: to is bf16 */
  void (*results)(int64_t places, int64_t step, const void *from, const int64_t *at, int64_t taps,
                  const void *w, bool half, void *to, int64_t to_step);
  /* The same where tap t + i is i vectors after tap t, for i < columns: columns in [2,
   * SLIDE_COLUMNS], taps a multiple, step in [1, SLIDE_STEPS] and in vectors. */
  void (*slide)(int64_t places, int64_t columns, int64_t step, const void *from, const int64_t *at,
                int64_t taps, const void *w, bool half, void *to, int64_t to_step);
  /* w[t * LANES] += sum over r, p of from[at[t] + r * row + p * step] * y[r * y_row + p * y_step] */
  void (*weights)(const LanesGrid *g, const void *from, const int64_t *at, int64_t taps,
                  const void *y, void *w);
} LanesKernels;

/* In f64, or f32. */
const LanesKernels *lanes_kernels(bool f64);

#endif
