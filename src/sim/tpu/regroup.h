/* regroup: which dimensions of a reshape's two sides are made of the same elements. Private to sim/tpu. */
#ifndef WEFT_SIM_TPU_REGROUP_H
#define WEFT_SIM_TPU_REGROUP_H

#include "sim/hlo/hlo.h"

typedef struct Regroup {
  const HNode *x, *n; /* before and after */
  int gx[64], gn[64]; /* the group of elements that each dimension is of; -1: it is one wide */
  bool same[64];      /* the group is one dimension on both sides */
} Regroup;

void regroup(const HNode *x, const HNode *n, Regroup *r);
/* How many dimensions of a side are of that group; *last: the last of them. */
int regroup_count(const Regroup *r, bool after, int group, int *last);
/* The order of one side that follows from the other's, n's from x's if `forward`; false: what is one group lies apart. */
bool regroup_order(const Regroup *r, bool forward, const int *from, int *to);

#endif
