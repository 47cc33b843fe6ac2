/* The parts of propagation: propagate.c has what is written and what is answered, propagate_links.c which
 * dimensions go together, propagate_flow.c how axes flow along them. */
#ifndef WEFT_COMPILE_SPMD_PROPAGATE_PRIV_H
#define WEFT_COMPILE_SPMD_PROPAGATE_PRIV_H

#include "ir/ir.h"

#define MAX_AXES 8

typedef struct Axes {
  int n;
  AxisRef a[MAX_AXES];
  bool closed;
} Axes;

/* Two dimensions that a step ties together. reduced: of neither comes a dimension of the result, as of
 * those that a product contracts. */
typedef struct Link {
  Value *a, *b;
  int da, db;
  bool reduced;
} Link;

typedef enum StepKind {
  STEP_HANDS_ON, /* element-wise, reshape, transpose, values that regions take and give: nothing moves */
  STEP_SLICES, /* parts at places that the program computes: known early, of their operands alone */
  STEP_BROADCASTS, /* late and backward: what is copied can be cut in any way */
  STEP_OTHER,
} StepKind;

/* A dimension that a step ties to others of the same factor. */
typedef struct Member {
  Value *v;
  int d, factor, tensor; /* tensor: which of the operands and results */
  bool result, reduced;
} Member;

typedef struct Step {
  StepKind kind;
  const Op *op;      /* or, of a value that regions take and give, */
  const Value *edge; /* what comes out */
  bool one_reader;   /* nothing else reads the operands */
  int first_link;
  int first, n, n_factors; /* members */
} Step;

typedef struct Group { /* sdy.sharding_group: values sharded alike */
  int64_t id;
  Value *first;
} Group;

typedef struct Spread {
  Module *m;
  const Mesh *mesh;
  Str mesh_name;
  int n_values;
  Axes **dims; /* by value id: rank entries, NULL for rank 0 or non-tensors */
  const Sharding *
      *replicated; /* by value id: one that says which axes the value must not use; or NULL */
  const Value *
      *owner; /* by value id: the value whose sharding this one has too, as a loop's arguments have
                          that of its result, or of what it is given; NULL: its own */
  VEC(Link) links;
  VEC(Step) steps;
  VEC(Member) members;
  VEC(Group) groups;
  VEC(Op *) partial; /* manual computations over some of the axes, outer ones first */
} Spread;

/* ---- propagate_constants.c ---- */

/* Constants and what is computed of them once for each operation that reads it. Numbers f's values. */
void spread_split_constants(Module *m, Func *f);

/* ---- propagate_links.c ---- */

void spread_link_region(Spread *s, Region *r);

/* ---- propagate_flow.c ---- */

/* Does every turn of a loop give its value k on as it is? */
bool spread_is_handed_on(const Op *loop, int k);
/* The value whose sharding this one has: itself, or the one that a loop took it from. */
const Value *spread_owner(const Spread *s, const Value *v);
/* How many parts these axes make. */
int64_t spread_parts(const Spread *s, const Axes *x);
/* How many of these axes may cut this dimension: where they do not yet, it must be open, and even. */
int spread_may_cut(const Spread *s, const Value *v, int dim, const Axes *x);
/* Does a list of axes begin with another? */
bool spread_begins(const Axes *x, const Axes *y);
/* Until nothing changes; again after changes from elsewhere. */
void spread_flow(Spread *s);

/* ---- propagate_manual.c ---- */

/* What a manual computation over some of the axes says of the values inside. */
void spread_seed_manual(Spread *s, Op *op);
/* Free axes into all of these and out of them. Did anything change? */
bool spread_cross(Spread *s);

#endif
