/* compile/fuse: a region's ops as fusions, each generated as one loop, and single steps.
 *
 * fuse.c decides which op goes where, cluster.c what one loop can compute, rematerialize.c what is better computed
 * twice than stored; index.c is the arithmetic of addresses that they share with the generator of
 * code. Nothing here knows a machine; what a device can do natively comes in by Target. */
#ifndef WEFT_COMPILE_FUSE_FUSE_H
#define WEFT_COMPILE_FUSE_FUSE_H

#include "ir/ir.h"

/* ---- indices --------------------------------------------------------------------------------- */

#define DOM_MAX 12

/* The iteration space of a fusion: dims in the row-major order of its full-sized values. `reduced`:
 * the dimension is summed over (by the fusion's reductions). */
typedef struct Domain {
  int n;
  int64_t dims[DOM_MAX];
  bool reduced[DOM_MAX];
} Domain;

/* off + sum over the domain's dimensions of coef[k] * i_k */
typedef struct Affine {
  int64_t off, coef[DOM_MAX];
} Affine;

/* What `op` reads, 0 <= k < index_reads(op): its operands; but a gather its operand (`anywhere`: where is
 * known when it runs only), and the components of its index vectors one by one. */
int index_reads(const Op *op);
Value *index_read(const Op *op, int k, bool *anywhere);
/* Where value k of these is read when the op's result is wanted at `at` (rank of the result entries).
 * Element-wise ops, moves, iota. reduce: the reduced dimensions of the operand are the domain's. gather:
 * in the operand, what comes on top of the index vector.
 * Ranges that may be left (pad, concatenate) are not checked here: see index_range. false: not
 * expressible over this domain; then *split (when >= 0) names a domain dimension that could be
 * divided by *inner to make it so. */
bool index_operand(const Domain *d, const Op *op, int k, const Affine *at, Affine *out, int *split,
                   int64_t *inner);
/* For pad and concatenate: the operand's own range along `*dim` bounds where operand k is meant: 0
 * <= out[dim] < its size. Returns the number of dimensions to check, in dims[]. */
int index_range(const Op *op, int k, int *dims);
/* The operand of a concatenate that has the result at `at`, if it is known beforehand; -1: it is not. */
int index_piece(const Domain *d, const Op *op, const Affine *at);
/* The element number, row-major in the type, of an index. */
Affine index_flat(const Domain *d, const Type *t, const Affine *at);
bool affine_equal(const Domain *d, const Affine *a, const Affine *b);

/* ---- fusions --------------------------------------------------------------------------------- */

#define SHORT_ROW \
  16 /* elements of a row that may be one of several side by side, in a vector's lanes */

typedef enum FusionKind {
  FUSION_LOOP, /* every domain element once */
  FUSION_ROW,  /* for each element of the kept dimensions: sweeps over the reduced ones: the last
                  dimension is one, or they are few and rows lie side by side */
  FUSION_SPLIT /* reductions whose reduced dimensions are cut into chunks: partial results, then a
                  combining step */
} FusionKind;

/* What is stored: v, or operand `part` of the concatenate that makes v. The parts of a v follow each other, and all of them are there. */
typedef struct FusionOut {
  Value *v;
  int part;  /* -1: v itself */
  bool full; /* one element for each domain element; else for each element of the kept dimensions */
  Affine at[DOM_MAX]; /* in v */
} FusionOut;

typedef struct Fusion {
  FusionKind kind;
  Domain dom;
  int n_ops, n_in, n_out;
  const Op **ops; /* inside, in program order (constants that are a splat are not listed) */
  bool *
      stored; /* n_ops: what it makes is in memory, from here or from elsewhere, as it is or moved: whoever
                   reads it sees the digits of its type (stored.c) */
  Value **in; /* read from memory; also those in `in_place` order */
  FusionOut *out;
  bool *in_place; /* n_in: read only where (and before) outputs of the same size are written */
} Fusion;

bool fusion_has(const Fusion *f, const Op *op);
bool fusion_stores(const Fusion *f, const Op *op); /* fusion_has, and `stored` */

/* ---- what a device can do -------------------------------------------------------------------- */

typedef struct Target {
  void *arg;
  bool (*fusible)(void *arg, const Op *op); /* can be part of a generated loop */
  int (*in_place)(void *arg,
                  const Op *op); /* operand + 1 whose memory result 0 may take; 0: none */
  bool (*collective)(void *arg, const Op *op); /* NULL: none */
  int replicas, partitions;                    /* N = product */
  bool
      apart; /* processes that go different ways (branches, turns of loops) can run each by itself */
  /* per argument: the processes that have the same one (compile/pass/replication.h); NULL: all */
  const int *const *arg_owners;
  bool round_each;                     /* nothing within a fusion has more digits than its type */
  bool (*attends)(void *arg, DType t); /* attention of such elements is one kernel; NULL: it is */
} Target;

/* ---- nodes: one step to be, in the order they run --------------------------------------------- */

typedef enum NodeKind { NODE_OP, NODE_FUSION } NodeKind;
typedef struct Node {
  NodeKind kind;
  Op *op;
  Fusion *fusion;
} Node;
typedef VEC(Node) Nodes;

/* Divides the ops of one region (terminator left out) into nodes in an order that respects data
 * flow. Values must be numbered. */
Err *fuse_region(Module *m, const Target *t, Region *r, Nodes *out);

/* ---- slices that need no copy ---------------------------------------------------------------- */

/* Is such a part, wherever it begins by whole rows, one aligned run that is long enough to be worth
 * an address of its own? */
bool slice_is_aligned_run(const Type *whole, const Type *part);
/* Is it read by single steps of this block only, also under other names? */
bool value_is_read_by_steps(const Region *r, const Value *v);
/* A slice of an argument, one aligned run, read by steps only. */
bool op_is_part_of_argument(const Op *op);

#endif
