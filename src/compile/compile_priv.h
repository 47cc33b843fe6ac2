/* compile, private: what the passes share. */
#ifndef WEFT_COMPILE_COMPILE_PRIV_H
#define WEFT_COMPILE_COMPILE_PRIV_H

#include "compile/compile.h"
#include "compile/pass/query.h"

#define MAX_RANK 32

/* ---- fuse, plan ---- */

typedef enum NodeKind { NODE_OP, NODE_FUSION } NodeKind;
typedef struct Node { /* one step to be: in the order they run */
  NodeKind kind;
  Op *op;
  Fusion *fusion;
} Node;
typedef VEC(Node) Nodes;

/* Divides the ops of one region (terminator left out) into nodes in an order that respects data
 * flow. Values must be numbered. */
Err *fuse_region(Module *m, const Target *t, Region *r, Nodes *out);
bool op_is_heavy(const Op *op); /* costs more than a few cycles an element */

/* A slice that its readers can read where it lies (plan_views.c). */
bool op_is_part_of_argument(const Op *op);

/* ---- again: what fusions compute for themselves although others compute it as well ---- */

#define AGAIN_ROOTS 2
typedef struct Origin {
  const Value *root[AGAIN_ROOTS]; /* the large values that it is computed from */
  int n, ops, heavy;
  bool again; /* worth it with one root, or where another root is read anyway */
} Origin;

typedef struct AgainInput { /* a region's ops */
  const Region *region;
  int n;
  Op **ops;
  bool *fusible;
  int *const *users; /* positions; n: the region's end */
  const int *n_users;
  int (*pos)(const void *arg, const Op *op); /* -1: elsewhere */
  const void *arg;
} AgainInput;

Origin *again_find(const AgainInput *in); /* by position; malloc'd */

/* ---- order ---- */

/* Puts a region's nodes in an order that needs less memory. */
void order_nodes(const Func *main, const Region *r, Nodes *nodes);
bool op_is_alias(const Op *op); /* result i has the bytes of operand i: reshape, same-width bitcast,
                                   barrier, copy */

Err *plan_build(Module *m, const Target *t, Plan **out); /* takes the module, on success */
int op_captures(const Op *op,
                Value ***out); /* values from outside that the regions use; malloc'd */

#endif
