/* dev/cpu, private to convolutions: one that is prepared to run. It may be computed as another one: its operands in
 * another order, of other types, with groups joined, or as real numbers (conv_arrange.c); the run makes the copies that this
 * takes and brings the result back (conv_run.c). Which way is chosen stands in k_conv.c. */
#ifndef WEFT_DEV_CPU_CONV_PREPARED_H
#define WEFT_DEV_CPU_CONV_PREPARED_H

#include "dev/cpu/conv/conv.h"

/* One way to compute convolutions, of what conv.h says it reads. */
typedef struct ConvImpl {
  bool (*fits)(const ConvShape *s);
  bool (*run)(const ConvShape *s, void *const *data);
  /* In place of run, where what is not finite may spread: then *finite is false, and the results are of no use */
  bool (*run_checked)(const ConvShape *s, void *const *data, bool *finite);
} ConvImpl;

typedef struct Conv Conv;
struct Conv {
  const char *name; /* "conv:winograd" */
  const ConvImpl *impl;
  ConvShape s,
      at; /* as the user has it; as impl gets it: in its order of dimensions and its types */
  bool copied[3]; /* where these differ */
  bool wide;      /* what is narrower is computed in f32 */
  int64_t
      merged;  /* so many groups count as one, with zeros for the weights between them; 1: none */
  bool turned; /* the weights are copied for oneDNN, or from it */
  ConvView w;  /* the weights as they were before */
  /* in place of impl: */
  ConvDnnl *dnnl;
  ConvGeneral *general;
  Conv *parts; /* of complex numbers: the same of real ones (conv_parts_shape) */
  Conv *plain; /* by plain sums of what a result reads; made when a result was not finite */
};

/* ---- conv_arrange.c ---- */

/* Groups that are too small for oneDNN are joined. */
void conv_merge_groups(Conv *c);
/* X and Y in any order. */
void conv_as_they_lie(Conv *c);
/* X and Y with channels last, by copies where they lie otherwise. */
void conv_channels_last(Conv *c);
/* Weights in memory of our own, in the order of their dimensions. */
void conv_copy_weights(Conv *c);
/* For oneDNN: gradients of images as results. false: not worth it. */
bool conv_turn_for_onednn(Conv *c);
/* A result that is filled from its end goes by way of memory of our own. */
void conv_straighten(Conv *c);
/* Are there enough multiplications to hide what copies of X and Y cost? */
bool conv_worth_copies(const ConvShape *s);

/* ---- conv_run.c ---- */

int64_t conv_elements(const ConvView *v);
/* *finite: false where what is not finite may have spread to results that do not read it: then the results are of no use. */
Err *conv_run(const Conv *c, const Op *op, void *const *in, void *const *out, bool *finite);

#endif
