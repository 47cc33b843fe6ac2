/* compile, private: what the passes share. */
#ifndef WEFT_COMPILE_COMPILE_PRIV_H
#define WEFT_COMPILE_COMPILE_PRIV_H

#include "compile/compile.h"
#include "ir/build.h"

#define MAX_RANK 32

/* ---- simplify ---- */

typedef struct Simp {
  Module *m;
  Map *rep;      /* value -> what stands for it now */
  Map *seen;     /* key of an op -> the op */
  VEC(Str) undo; /* keys of the regions being walked */
  Buf key;
  Map *uses;       /* value -> uses + 1, at the beginning of the round */
  const Op *scope; /* innermost manual_computation */
  bool changed;
  bool keep_shardings; /* calls that say how what follows is divided */
} Simp;

Value *simp_resolve(Simp *s, Value *v);
void simp_replace(Simp *s, Value *v, Value *by);
/* A new op of one result before `at`. */
Value *simp_op(Simp *s, Op *at, OpKind kind, int n, Value *const *operands, Type *type, int n_attrs,
               const NamedAttr *attrs);
bool simp_is_pure(const Op *op);
bool simp_single_use(Simp *s, const Value *v); /* as counted before this round */
Tensor *simp_constant(const Value *v);         /* data of a constant op; NULL */
/* Applies one rule. true: something changed; op may be removed, new ops stand before it. */
bool simp_rules(Simp *s, Op *op);

/* The same for a slice: of what it is made from (simplify_slices.c). */
bool simp_slice(Simp *s, Op *op);

/* ---- loops (unroll.c) ---- */

/* The integer that a scalar constant is. */
bool compile_constant_int(const Value *v, int64_t *out);
/* How often a while runs when the program gives it: carried value *counter begins at *first and
 * grows by *by. -1: not known, or more than `most` times. */
int compile_trip_count(const Op *loop, int most, int *counter, int64_t *first, int64_t *by);
int compile_uses(const Region *r, const Value *v); /* operands in the region that are v */
/* Is `place`, in the body of the loop, each of 0 .. n - 1 once in its n turns? (hoist.c) */
bool compile_visits_all(const Op *loop, const Value *place, int64_t n);

/* ---- operations in the place of one (rewrite.c) ---- */

/* What was built behind `end`, the terminator of the region of `at`, goes before `at`. */
void compile_move_built(Op *end, Op *at);
/* What op, of one result, is written as, built at the end of its region; NULL: it stays. */
typedef Value *Rewrite(Build *b, const Op *op);
/* Applies it to every operation of this kind, in regions as well. */
void compile_rewrite(Module *m, OpKind kind, Rewrite *rewritten);

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
