/* layout_copies: kernels that read an array in another order of dimensions than it lies in, or write one that others read
 * otherwise: a copy stands between. Private to sim/tpu. */
#ifndef WEFT_SIM_TPU_LAYOUT_COPIES_H
#define WEFT_SIM_TPU_LAYOUT_COPIES_H

#include "sim/tpu/tpu.h"

#define TURN_MIN 4096 /* bytes */
#define TURN_MAX 64e6 /* larger ones are not turned, by what addresses rows or windows */

/* One kernel, while a rule looks at it. */
typedef struct Relayout {
  Schedule *p;
  Kernel *k;
  const HNode *n; /* its first result */
  const HNode *x; /* for rules */
  int order[64];  /* in which it reads arrays */
  double least;   /* bytes: smaller arrays are turned on the way */
  bool by_maker;  /* of an array: what makes it can write it so, no copy is needed */
  bool rounded;   /* of an array: it is rounded to bf16 as it is copied */
  bool writes;    /* its results of n's rank lie in that order: */
  int made[64];
  bool back; /* its result is copied to that order for all who read it: */
  int copied[64];
} Relayout;

typedef struct CopyRule {
  const char *name;
  bool everywhere; /* in loops and branches, too */
  /* Is the kernel one of those that it is about? Then it sets orders. */
  bool (*concerns)(Relayout *r);
  /* Does the kernel read v in r->order, or another that is set here, rather than as v lies? NULL: no array. */
  bool (*reads)(Relayout *r, const HValue *v, int *order);
  const char *cases; /* of tests/sim/cases/tpu that show it */
} CopyRule;

extern const CopyRule tpu_operands, tpu_updated, tpu_heads, tpu_weights; /* product_copies.c */
extern const CopyRule tpu_pooled;                                        /* pools.c */
extern const CopyRule tpu_rows, tpu_row_updates;                         /* row_copies.c */

static inline void tpu_copy_order(int *to, const int *from, int rank) {
  memcpy(to, from, sizeof *to * (size_t)rank);
}

#endif
