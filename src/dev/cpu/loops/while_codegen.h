/* Loops whose turns are a few small steps, as one generated function: a turn costs what its arithmetic
 * does, and small values stay in registers from turn to turn. Steps are small fusions, slices read
 * and written at indices that change, moves, and loops and branches of the same kind inside. */
#ifndef WEFT_DEV_CPU_WHILE_CODEGEN_H
#define WEFT_DEV_CPU_WHILE_CODEGEN_H

#include "dev/cpu/loops/emit_priv.h"

typedef struct WhileCode {
  const Plan *plan;
  const Step *step;
  VEC(Dag) dags; /* of its fusions, in the order of their steps */
  VEC(int) places;
} WhileCode;

bool while_new(const Plan *p, const Step *s, WhileCode *out); /* false: not for one function */
void while_free(WhileCode *c);
void while_key(const WhileCode *c, Buf *key); /* equal keys: equal code */
/* The function: run(places, 0, outer, NULL). */
Err *while_gen(LLVMContextRef ctx, LLVMModuleRef mod, LLVMBuilderRef b, WhileCode *c,
               const char *name, FusedCode *out);

/* An array between whose elements a slice of `dims` lies: pieces of `piece` bytes in a row. */
typedef struct Box {
  int64_t piece, n, at[16]; /* where each begins, in bytes from the first */
} Box;
bool while_box(const Type *whole, const Type *part, Box *out);

/* A scatter of one window: slices of size 1 where its index says, whole or at 0 elsewhere. */
typedef struct Spot {
  Type window; /* with the operand's rank */
  int64_t dims[CPU_MAX_RANK];
  int n; /* dimensions with an index, in its order */
  const int64_t *of;
} Spot;
bool while_spot(const Op *scatter, Spot *out);

#endif
