/* dev/cpu, private to conv_planar.c: its inner loops, for each width of vectors. */
#ifndef WEFT_DEV_CPU_CONV_PLANAR_H
#define WEFT_DEV_CPU_CONV_PLANAR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct PlanarKernels {
  int lanes;
  /* to[o * to_step + i] (+)= sum over t of w[t * depth + o] * from[at[t] + i], for o < depth and
   * i < n, a multiple of `lanes`. */
  void (*results)(const float *from, const int64_t *at, int64_t taps, const float *w, int64_t depth,
                  int64_t n, bool add, float *to, int64_t to_step);
  /* w[t * depth + o] += sum over i of from[at[t] + i] * y[o * y_step + i] */
  void (*weights)(const float *from, const int64_t *at, int64_t taps, const float *y,
                  int64_t y_step, int64_t n, int64_t depth, float *w);
} PlanarKernels;

/* The widest that this host can run; NULL: none. */
const PlanarKernels *planar_kernels(void);

#endif
