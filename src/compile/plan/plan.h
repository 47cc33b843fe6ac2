/* compile/plan: steps in the order they run, and a place for every value.
 *
 * order.c puts nodes where they give memory back early; plan.c finds out how long values live; views.c
 * what is read or written inside another value; pack.c gives every value a place: an argument, a
 * result, a constant, or an offset in one arena. */
#ifndef WEFT_COMPILE_PLAN_PLAN_H
#define WEFT_COMPILE_PLAN_PLAN_H

#include "base/wire.h"
#include "compile/fuse/fuse.h"
#include "compile/pass/replication.h"

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
  PLACE_ARENA,  /* offset in the arena of the process (with owners) or of all */
  PLACE_ARG,    /* argument `index` of main */
  PLACE_RESULT, /* result `index` of main, allocated by the run */
  PLACE_CONST,  /* data of constant `index` in Plan.consts */
  PLACE_VIEW    /* a part of another place, of a loop's elsewhere at every turn */
} PlaceKind;

typedef struct Place {
  PlaceKind kind;
  int index;
  int64_t bytes, offset;
  Owners owners;  /* one for each process, or each that owns one; NULL: one for all */
  int begin, end; /* life in schedule positions; -1: nobody reads or writes it */
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
  Owners owners; /* runs once for each process that owns one; NULL: once for all */
  int pos;       /* schedule position */
  int id;        /* dense over the plan */
};

typedef struct PlanResult {
  int place;     /* where the value is: result, argument, or constant */
  int reuse_arg; /* may take this argument's memory when it is donated; -1 */
} PlanResult;

typedef struct Plan {
  Module *module;
  Func *main;
  int n_procs;
  bool
      diverges; /* processes take different branches, or turns: each has to run by itself (Target.apart) */
  int n_places, n_steps;
  Place *places;
  Block body;
  int n_results;
  PlanResult *results;
  int n_consts;
  Tensor **consts;  /* borrowed from the module; splats too (tensor_dense) */
  int *value_place; /* by Value.id */
  Owners *value_owners;
  int64_t arena_bytes, arena_each_bytes;
  Arena *mem;
} Plan;

Err *plan_build(Module *m, const Target *t, Plan **out); /* takes the module, on success */
void plan_free(Plan *p);                                 /* NULL is fine */
/* The plan as bytes (base/wire.h); reading makes one, also when it is bad: plan_free. */
void plan_wire(Wire *w, Plan **p);
void plan_print(Buf *b, const Plan *p);

#endif
