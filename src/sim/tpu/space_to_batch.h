/* tpu_space_to_batch: how arrays lie that were cut into parts of the batch, and the operations that work on
 * the parts. Private to src/sim/hlo.
 */
#ifndef WEFT_SIM_HLO_HLO_BATCH_H
#define WEFT_SIM_HLO_HLO_BATCH_H

#include "ir/build.h"
#include "sim/tpu/halo.h"

#define CUT_RANK 8

typedef struct Cut { /* an array in parts */
  HNode *now;        /* what stands for it */
  int batch, space;  /* dimensions of the array; to[space] == to[batch] + 1 */
  int to[CUT_RANK];  /* where in `now` each of its dimensions is */
} Cut;

typedef struct Reach {                      /* of a convolution, along the dimension that is cut */
  int64_t kernel;                           /* elements it reaches over */
  int64_t low, high, stride, image, filter; /* padding; dilation of both */
  int64_t size;                             /* of the padded image */
  int64_t halo;                             /* of the next part's elements */
  int64_t low_left, high_left;              /* padding that stays the convolution's own */
} Reach;

/* space_to_batch_conv.c */
Reach batch_window(const HNode *conv, const ConvDims *d);
/* x with its batch moved next to the cut dimension; *cut becomes how it lies, not cut yet. */
HNode *batch_arrange(Maker *b, HNode *x, int batch, int space, Cut *cut);
/* The convolution of an image that is not cut; of one that is. False when it cannot be. */
void batch_start_conv(Maker *b, HNode *conv, int64_t pool_stride, Cut *out);
void batch_conv(Maker *b, HNode *conv, const Cut *image, Cut *out);
/* The gradient of a filter of which an operand is cut (NULL: this one is not). */
bool batch_filter_fits(const HNode *conv, const Cut *image, const Cut *grad);
HNode *batch_filter(Maker *b, HNode *conv, const Cut *image, const Cut *grad);

#endif
