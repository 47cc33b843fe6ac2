/* layout_propagation: how a layout, the order of an array's dimensions from minor to major, goes through operations, and the
 * layout of an array that follows from what it is made of. Private to sim/tpu. */
#ifndef WEFT_SIM_TPU_LAYOUT_PROPAGATION_H
#define WEFT_SIM_TPU_LAYOUT_PROPAGATION_H

#include "sim/schedule/schedule.h"

/* Which dimensions of a reshape's two sides are made of the same elements. */
typedef struct Regroup {
  const HNode *x, *n; /* before and after */
  int gx[64], gn[64]; /* the group of elements that each dimension is of; -1: it is one wide */
  bool same[64];      /* the group is one dimension on both sides */
} Regroup;

void regroup(const HNode *x, const HNode *n, Regroup *r);
/* How many dimensions of a side are of that group; *last: the last of them. */
int regroup_count(const Regroup *r, bool after, int group, int *last);
/* The order of one side that follows from the other's, n's from x's if `forward`. False: what is one group lies apart, so that
 * elements move; *to then has groups as they come first. */
bool regroup_order(const Regroup *r, bool forward, const int *from, int *to);

/* In these orders, is the one the memory of the other? Rows that are split or joined fill their tiles, all of one height where
 * there are several side by side. */
bool regroup_is_view(const Regroup *r, const int *ox, const int *on);

/* Has the reshape n's result the dimensions of its operand but for some of one element? It moves nothing, whatever the order. */
bool layout_adds_ones(const HNode *n);

/* The order of n that follows from its operand x's. False: something moves (a reshape), or nothing follows. */
bool layout_through(const HNode *n, const HNode *x, const int *from, int *to);

/* The dimension of a dot's result that is that row of its first operand; -1: none. */
int layout_row(const HNode *dot, int d);

typedef enum LayoutFound { LAYOUT_HERE, LAYOUT_BEFORE, LAYOUT_NONE } LayoutFound;

/* A walk from an array to what it is made of, until something says how it lies. */
typedef struct LayoutWalk {
  /* An order of n's own, or: ask what it is made of, or: there is none on this way. */
  LayoutFound (*source)(const struct LayoutWalk *w, const HNode *n, int *order);
  unsigned through; /* kinds of operations that it goes through, 1 << kind */
  bool first;       /* of several operands only the first of the result's shape has a say */
  bool loose;       /* also through reshapes that move elements */
  int left;         /* operations that it still looks at, on ways that lead nowhere, too */
  /* for sources */
  const CostParams *params;
  Schedule *schedule;
  const HNode *of; /* what is looked for, or from */
  int kernel;
  const HNode *at; /* out: where the order came from */
} LayoutWalk;

bool layout_from(LayoutWalk *w, const HNode *n, int *order);

#endif
