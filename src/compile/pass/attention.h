/* Softmax between two products, and its gradients, as the compiler finds them among scores (blockwise.h): what of it is which
 * operand of weft.attention. */
#ifndef WEFT_COMPILE_PASS_ATTENTION_H
#define WEFT_COMPILE_PASS_ATTENTION_H

#include "compile/pass/blockwise.h"

/* A value and which of its dimensions are which axes of the scores; -1: one of its own. */
typedef struct Placed {
  Value *v;
  Axes axes;
} Placed;

#define ATTENTION_MASKS 4

typedef enum AttentionResult {
  ATTENTION_OUT,
  ATTENTION_DQ,
  ATTENTION_DK,
  ATTENTION_DV,
  ATTENTION_RESULTS
} AttentionResult;

typedef struct Attended { /* of one product of scores */
  Scores *s;
  const Op *scores;        /* q k' */
  const Op *slopes;        /* do v'; NULL: there are no gradients */
  int columns, rows;       /* axes: of the keys; of the queries that positions are counted by */
  unsigned queries, batch; /* axes: all of the queries, that keys have as well */
  Placed q, k, v, grad;    /* v NULL: not found yet; so is grad, of the result */
  Placed bias, mask;       /* v NULL: there is none */
  const Value *hides[ATTENTION_MASKS]; /* what the program selects scores by, one after the other */
  int n_hides;
  bool inverted; /* where the mask is true nothing is seen */
  bool scaled;   /* what the queries are multiplied by is part of the scale */
  bool bandless; /* masks of positions are masks like others */
  CausalBand band;
  double scale, fill;
  const Op *results[ATTENTION_RESULTS]; /* products; NULL: it is not wanted */
  struct Form *forms;                   /* of members, by Value.id */
} Attended;

/* Puts weft.attention, and its gradients where they are wanted, in the place of all that is computed of the scores. */
void attention_build(Attended *a);

#endif
