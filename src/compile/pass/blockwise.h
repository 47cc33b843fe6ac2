/* What pass_blockwise knows of scores and of all that is computed of them, and the loops that compute it
 * block by block. */
#ifndef WEFT_COMPILE_PASS_BLOCKWISE_H
#define WEFT_COMPILE_PASS_BLOCKWISE_H

#include "compile/pass/causal_masks.h"

#define MOST_AXES 8

/* The dimensions of the scores are axes. Of each dimension of a value that is computed of them: the axis that it
 * is; -1: none. */
typedef struct Axes {
  int8_t of[B_MAX_RANK];
} Axes;

typedef enum ScoreKind {
  SCORE_NONE,
  SCORE_MEMBER, /* as many elements as the scores, and computed of them or of another such product */
  SCORE_SUM,    /* a member reduced */
  SCORE_RESULT, /* a member's product with something else */
  SCORE_OF_SUM  /* element by element of sums, moved */
} ScoreKind;

typedef struct ScoreInfo { /* of a value */
  ScoreKind kind;
  int level; /* the loop that it is known after: that many loops are before it */
  Axes axes; /* of a member */
  bool seen, wanted;
} ScoreInfo;

typedef struct BlockLimits { /* bytes of scores, as f32 */
  int64_t least;             /* fewer are stored */
  int64_t recompute;         /* fewer are not computed twice, for their gradients */
  int64_t block;
  AttendsFn *attends; /* pass_attention */
  void *arg;
  int64_t ratio; /* scores for each element of what they are the product of, at least */
} BlockLimits;
Err *scores_in_blocks(Module *m, const BlockLimits *limits);

typedef struct Scores {
  Module *m;
  const BlockLimits *limits;
  Region *r;
  const Uses *uses;
  const Type *type; /* of the first member */
  int64_t count;
  int64_t block[MOST_AXES]; /* less than the axis has: it is cut */
  bool whole[MOST_AXES];    /* may not be cut */
  unsigned summed;          /* axes that products with members sum over */
  VEC(Value *) members;
  ScoreInfo *info; /* by Value.id */
  int levels;
  int n_values; /* ids */
} Scores;

/* fn of each large product that is the scores of a softmax, with all that is computed of them. Was anything changed? */
typedef bool ScoresFn(Scores *s, const Op *dot);
bool scores_each(Module *m, const BlockLimits *limits, ScoresFn *fn);
/* Puts every operation behind those whose results it reads; else the order stays. */
void scores_sort_ops(Region *r);

static inline bool scores_cut(const Scores *s, int axis) {
  return axis >= 0 && s->block[axis] < s->type->dims[axis];
}
ScoreInfo *scores_info(const Scores *s, const Value *v); /* NULL: of no use here */
/* Somebody outside the loops reads v, as it is before loop `level`. false: v needs that loop, or a member whole. */
bool scores_want(Scores *s, const Value *v, int level);

/* Axes of what op moves, given those of its result; *lost: axes that have no dimension of their own there. */
void axes_before_move(const Op *op, const Axes *after, Axes *before, unsigned *lost);
void axes_after_move(const Op *op, const Axes *before, Axes *after, unsigned *lost);
/* Of a product's operands, given those of its result. */
void axes_of_operands(const Op *dot, const Axes *result, Axes *lhs, Axes *rhs);
/* Of the other operand and the result, given those of operand `side`; *summed: axes that the product sums over. */
void axes_of_product(const Op *dot, int side, const Axes *member, Axes *other, Axes *result,
                     unsigned *summed);
Axes axes_of_sum(const Op *reduce, const Axes *member, unsigned *summed);

/* The loop that makes what is wanted of this level; not in a region yet. NULL: it cannot be built. made: what stands
 * for the value of each, malloc'd, as many as *n. */
typedef struct ScoreLoop {
  Region *ops; /* what is to be put into the program, in order */
  int n;
  Value **from, **to;
} ScoreLoop;
bool scores_loop(Scores *s, int level, ScoreLoop *out);

#endif
