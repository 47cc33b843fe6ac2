/* compile: from a verified StableHLO module to a plan that an executor runs. compile.c lists the
 * stages in order.
 *
 *   module -> inline -> products -> groups -> repeats -> simplify -> pools -> spread -> scatters ->
 *     masks -> unroll -> hoist -> fuse -> order -> plan
 *
 * The first stages go from program to program. `fuse` divides each region's ops into fusions (loops
 * generated as one kernel) and single steps; `order` puts them where they give memory back early;
 * `plan` finds out how long values live and gives every value a place: an argument, a result, a constant, or an offset in one arena.
 * Nothing here knows a machine; what a device can do natively comes in by Target.
 *
 * Ownership   Plan owns a clone of the module and everything else; plan_free.
 * Dumps       WEFT_DUMP=inline,simplify,fuse,plan prints on stderr after the stage.
 */
#ifndef WEFT_COMPILE_COMPILE_H
#define WEFT_COMPILE_COMPILE_H

#include "base/wire.h"
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

/* Where operand k of `op` is read when its result is wanted at `at` (rank of the result entries).
 * Element-wise ops, moves, iota. reduce: the reduced dimensions of the operand are the domain's.
 * Ranges that may be left (pad, concatenate) are not checked here: see index_range. false: not
 * expressible over this domain; then *split (when >= 0) names a domain dimension that could be
 * divided by *inner to make it so. */
bool index_operand(const Domain *d, const Op *op, int k, const Affine *at, Affine *out, int *split,
                   int64_t *inner);
/* For pad and concatenate: the operand's own range along `*dim` bounds where operand k is meant: 0
 * <= out[dim] < its size. Returns the number of dimensions to check, in dims[]. */
int index_range(const Op *op, int k, int *dims);
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
  Value **in;     /* read from memory; also those in `in_place` order */
  FusionOut *out;
  bool *in_place; /* n_in: read only where (and before) outputs of the same size are written */
} Fusion;

bool fusion_has(const Fusion *f, const Op *op);
/* ---- plans ----------------------------------------------------------------------------------- */

typedef struct Target {
  void *arg;
  bool (*fusible)(void *arg, const Op *op); /* can be part of a generated loop */
  int (*in_place)(void *arg,
                  const Op *op); /* operand + 1 whose memory result 0 may take; 0: none */
  bool (*collective)(void *arg, const Op *op); /* NULL: none */
  int replicas, partitions;                    /* N = product */
  const bool *arg_each; /* per argument: one tensor for each process; NULL: none */
} Target;

typedef enum StepKind {
  STEP_OP,         /* one op */
  STEP_FUSED,      /* one fusion */
  STEP_WHILE,      /* blocks[0] condition, blocks[1] body */
  STEP_CASE,       /* blocks[i] branch i; stablehlo.if: blocks[0] true, blocks[1] false */
  STEP_COPY,       /* bytes of in[0] to out[0] */
  STEP_COLLECTIVE, /* one op over all processes at once: in and out of every process */
  STEP_CUT,  /* manual_computation: operand `index` into blocks: in[0] whole, out[0] one for each
               process */
  STEP_JOIN, /* manual_computation: result `index` */
  STEP_VIEW /* slice, dynamic_slice, dynamic_update_slice: out[0], a PLACE_VIEW, becomes the address in in[0];
                no bytes move */
} StepKind;

typedef enum PlaceKind {
  PLACE_NONE,   /* no memory: tokens, unused */
  PLACE_ARENA,  /* offset in the arena of the process (each) or of all */
  PLACE_ARG,    /* argument `index` of main */
  PLACE_RESULT, /* result `index` of main, allocated by the run */
  PLACE_CONST,  /* data of constant `index` in Plan.consts */
  PLACE_VIEW    /* a part of another place, of a loop's elsewhere at every turn */
} PlaceKind;

typedef struct Place {
  PlaceKind kind;
  int index;
  int64_t bytes, offset;
  bool each;      /* one for each process */
  int begin, end; /* life in schedule positions */
} Place;

typedef struct Step Step;
typedef struct Block {
  int n;
  Step *steps;
  /* Of a region: where its terminator's operands are, and where they have to go (loop-carried
   * values, branch results). */
  int n_results;
  int *from, *to; /* places; equal: nothing to copy */
} Block;

struct Step {
  StepKind kind;
  const Op *op;
  const Fusion *fusion;
  int n_in, n_out;
  int *in, *out; /* places; in of STEP_OP: operands, then captured values */
  int n_blocks;
  Block *blocks;
  int pred;  /* STEP_WHILE: place of the condition; STEP_CASE: place of the selector */
  int trips; /* STEP_WHILE: how often the body runs, and the condition need not; -1: ask it */
  int index;
  bool each; /* runs once for each process */
  int pos;   /* schedule position */
  int id;    /* dense over the plan */
};

typedef struct PlanResult {
  int place;     /* where the value is: result, argument, or constant */
  int reuse_arg; /* may take this argument's memory when it is donated; -1 */
} PlanResult;

typedef struct Plan {
  Module *module;
  Func *main;
  int n_procs;
  int n_places, n_steps;
  Place *places;
  Block body;
  int n_results;
  PlanResult *results;
  int n_consts;
  Tensor **consts;  /* borrowed from the module */
  int *value_place; /* by Value.id */
  bool *value_each;
  int64_t arena_bytes, arena_each_bytes;
  Arena *mem;
} Plan;

/* Clones and compiles `m`. errors: ERR_UNIMPLEMENTED when the program has what only the interpreter
 * can do (dynamic shapes, quantized types, tuples, infeed, ...): the message says what. */
Err *compile_program(const Module *m, const Target *t, Plan **out);
void plan_free(Plan *p); /* NULL is fine */
/* The plan as bytes (base/wire.h); reading makes one, also when it is bad: plan_free. */
void plan_wire(Wire *w, Plan **p);
void plan_print(Buf *b, const Plan *p);

#endif
