/* What rewrite.c, float_normalization.c, conv_rewriter.c and reduction_splitter.c share: programs as GPUs' libraries and XLA take them. */
#ifndef WEFT_SIM_PLAN_GPU_EXPAND_H
#define WEFT_SIM_PLAN_GPU_EXPAND_H

#include "sim/schedule/schedule.h"

typedef struct Expand {
  HGraph *g;
  HComp *c;
  VEC(HNode *) made; /* transposes and padded arrays made so far */
  int walk;          /* number of the last one */
} Expand;

/* v with its dimensions in that order: one array for all that ask for it. */
HNode *gpu_transposed(Expand *x, HNode *v, const HNode *n, const int64_t *perm);

/* float_normalization.c: all computing in types that the chip has not, in f32 */
void gpu_types(HGraph *g, const Chip *chip);
/* conv_rewriter.c: a convolution as cuDNN takes it */
void gpu_expand_conv(Expand *x, HNode *n);
/* reduction_splitter.c: long sums, and sums of dimensions that lie apart */
void gpu_split_sums(HGraph *g, HComp *c);

#endif
