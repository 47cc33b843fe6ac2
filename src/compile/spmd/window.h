/* Windows over a cut dimension: whether devices' outputs, or their terms of a sum, need of the input their own part and a
 * few elements of their neighbours' (a halo), and how many. Private to src/compile/spmd. */
#ifndef WEFT_COMPILE_SPMD_WINDOW_H
#define WEFT_COMPILE_SPMD_WINDOW_H

#include "ir/ir.h"

/* One dimension that windows move along. Element in * dil_in is read by output `out` through tap `tap` where
 * in * dil_in = out * stride + tap * dil_taps - low. */
typedef struct Side {
  int in_dim, taps_dim, out_dim; /* of the input, the kernel (-1: no operand) and the result */
  int64_t in, taps, out;         /* their sizes */
  int64_t stride, low, dil_in, dil_taps;
  bool reversed;
} Side;

/* Of a convolution, a reduce_window or a select_and_scatter (whose `out` is the source); sides has room for a dimension
 * each. How many. */
int window_sides(const Op *op, Side *sides);

/* A reduce_window of what was spread out and padded with what the reduction begins with: the sides of windows over the value
 * that was; NULL: its operand is no such. pad: that operation. */
Value *window_before_pad(const Op *op, Side *sides, const Op **pad);

typedef enum Cut { CUT_OUTPUTS, CUT_TAPS } Cut;

/* Does the cut of the input go with that of the outputs, or of the taps: does each device's part begin at the same
 * place of its part of the input? */
bool window_follows(const Side *w, Cut cut);

/* Or about there: windows that lie within the input are fewer than its elements by what they reach over; that is at most half
 * of the input. */
bool window_goes_along(const Side *w, Cut cut);

typedef struct Halo { /* device p needs the len elements from p * step + begin on */
  int64_t step, begin, len;
  int64_t low, high; /* padding of what a device then has */
} Halo;

/* Over n devices. false: parts do not lie equally far apart. */
bool window_halo(const Side *w, Cut cut, int64_t n, Halo *out);

/* A slice (NULL: is none) of other sizes along this dimension alone, of all elements there between two. */
bool op_slices_along(const Op *op, int dim);

#endif
