/* compile/plan, private: what plan.c (building) and pack.c (merging and packing) share. */
#ifndef WEFT_COMPILE_PLAN_PLAN_PRIV_H
#define WEFT_COMPILE_PLAN_PLAN_PRIV_H

#include "compile/pass/query.h"
#include "compile/plan/plan.h"

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

typedef struct Put { /* dynamic_update_slice of v into a stack that nobody else uses */
  Op *op;
  const Value *v;
  bool done; /* v is computed in the stack */
} Put;

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
  VEC(Put) puts;
  int pos, n_steps, manual;
  OwnerSets *owners;
} Builder;

/* order.c: puts a region's nodes in an order that needs less memory */
void order_nodes(const Func *main, const Region *r, Nodes *nodes);

/* plan.c, pack.c */
int plan_root(const Builder *b, int place);
void plan_merge(Builder *b);
Err *plan_pack(Builder *b);

/* views.c */
bool plan_slice_is_view(const Builder *b, const Op *op); /* may this slice be read where it is? */
/* Is the slice, a node, read after something was put into what it is a part of? As a view it would
 * keep all of that from being changed where it is. */
bool plan_is_outlived(const Builder *b, const Nodes *nodes, int slice);
void plan_find_puts(Builder *b, const Op *loop); /* in the body, which is built next */
Op *plan_put_of(Builder *b, const Value *v); /* v is made next: in the stack of this put; or NULL */
bool plan_put_is_done(const Builder *b, const Op *op);

#endif
