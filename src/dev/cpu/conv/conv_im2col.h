/* dev/cpu, private to convolutions: im2col and a product, for all types. The windows of places, [places][taps x channels], are
 * gathered where a product asks for them, or lie in memory as they are; results are their products with the weights, gradients
 * of images the same of Y, one product for each remainder (conv_residues), gradients of weights the windows, transposed, times
 * Y. Who multiplies, and how it packs, is the product's: f32 conv_gemm.c, f64 conv_f64.c, bf16 conv_amx.c, integers conv_int.c. */
#ifndef WEFT_DEV_CPU_CONV_IM2COL_H
#define WEFT_DEV_CPU_CONV_IM2COL_H

#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/dot/gemm.h"

typedef struct Im2col { /* one group, or one remainder of it */
  const ConvWindows *w;
  DType from_type, w_type, to_type;
  const char *from; /* the source */
  char *to;         /* results; for gradients of weights Y, which is read */
  char *weights;    /* as the user has them */
  int64_t places, elements, depth;
  bool straight; /* nothing is to be gathered: windows lie at from, w->steps[2] apart */
  bool plain;    /* results lie at to, w->to_steps[2] apart */
} Im2col;

typedef struct Im2colProduct {
  /* All results; weights: [elements][depth]. false: no memory. */
  bool (*results)(const Im2col *c, const void *weights);
  /* Gradients of the weights to `sums`, [elements][depth]; turned: [depth][elements]. */
  bool (*weights)(const Im2col *c, void *sums);
  bool turned;
  bool
      fans; /* where each place of Y gives a window of X of its own, pixels that lie together are channels (conv_fan) */
  bool
      regions; /* where windows mostly lie outside, each region has a product of its own taps (conv_regions) */
} Im2colProduct;

/* false: no memory. */
bool conv_im2col(const ConvShape *s, void *const *data, const Im2colProduct *p);

/* Elements [element, element + n) of the windows of so many places to rows `pitch` bytes apart; zeros outside the source. c: an
 * Im2col, as those who multiply hand it on. */
void im2col_gather(const void *c, int64_t place, int64_t places, int64_t element, int64_t n,
                   char *out, int64_t pitch);
char *im2col_result(const void *c, int64_t place);

/* The product of results, where nothing is gathered and results lie plain. */
GemmArgs im2col_args(const Im2col *c, const void *weights);

/* The multiply-adds of a group. */
double conv_group_macs(const ConvShape *s);

#endif
