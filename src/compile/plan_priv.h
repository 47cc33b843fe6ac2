/* compile/plan, private: what plan.c (building) and pack.c (merging and packing) share. */
#ifndef WEFT_COMPILE_PLAN_PRIV_H
#define WEFT_COMPILE_PLAN_PRIV_H

#include "compile/compile_priv.h"

typedef VEC(Step) Steps;
typedef VEC(Value *) Values;

typedef struct Read {
  int place, pos, step, operand; /* step -1: a block's end, a predicate */
  int next;                      /* of the same place; -1 */
} Read;

typedef struct Loop {
  int begin;
  VEC(int) used; /* places made outside and read inside */
} Loop;

typedef struct Body { /* a block whose results are moved to places */
  int *from;
  const int *to;
  int n, begin, end; /* positions; end: where the results are moved */
  bool loop;
} Body;

typedef struct Builder {
  Plan *plan;
  const Target *target;
  VEC(Place) places;
  VEC(int) merged; /* place -> place that stands for it, or -1 */
  VEC(Read) reads;
  int *first_read, *last_read; /* by place, while merging; -1 */
  VEC(Loop) loops;
  VEC(Body) bodies;
  VEC(Tensor *) consts;
  int pos, n_steps, manual;
} Builder;

int plan_root(const Builder *b, int place);
void plan_merge(Builder *b);
void plan_pack(Builder *b);

#endif
