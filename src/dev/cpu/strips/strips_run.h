/* dev/cpu/strips, private: what a fusion is as strips, made by strips.c, run by strips_run.c. */
#ifndef WEFT_DEV_CPU_STRIPS_RUN_H
#define WEFT_DEV_CPU_STRIPS_RUN_H

#include "dev/cpu/loops/shape.h"
#include "dev/cpu/strips/strips.h"
#include "dev/cpu/strips/strips_priv.h"

#define STRIP 512 /* a multiple of what sums take at a time: 4 vectors */
#define STRIP_BYTES (STRIP * 4)
#define SCALAR_BYTES 64
#define MOST_OPERANDS 4

typedef enum DoKind { DO_FN, DO_GATHER, DO_READ, DO_IOTA, DO_SCALAR, DO_KEPT } DoKind;

/* One node in one sweep. A node that does not differ along the vector loop is a scalar, computed once
 * a line, a vector of equal numbers; `slot` is then the strip it is spread to, -1: nobody wants that. */
typedef struct Do {
  DoKind kind;
  bool vec;
  DType t;
  int node, slot;                  /* node: see Strips */
  int row;                         /* DO_KEPT, DO_FN: the kept row that it is in; -1 */
  int fn, n_in, in[MOST_OPERANDS]; /* DO_FN, DO_GATHER: nodes */
  unsigned same;                   /* which of them are scalars */
  int out;                         /* DO_FN: the output that it is computed into; -1: the slot */
  int buf;                         /* DO_READ, DO_GATHER */
  const Affine *form; /* DO_READ: of the element; DO_IOTA: of the value; DO_GATHER: see DagNode */
} Do;

typedef struct Sweep {
  VEC(Do) dos;
  VEC(int) sums;      /* reductions that take in what is there */
  VEC(int) outs;      /* outputs to be copied from their nodes, which are not computed into them */
  int n_slots, count; /* count: of vectors in a sum */
  int64_t strip;      /* elements at a time: all, when nothing is put by */
  bool totals;
} Sweep;

typedef struct StripReduce {
  int node;     /* of the result */
  int in, init; /* nodes */
  int sum, fn;  /* SUM_ and STRIP_ of the body */
  uint32_t neutral;
  bool is_long;
  bool round; /* to bf16, when it is complete */
} StripReduce;

/* A node's number here is that of the graph, plus their count for what it is when its digits are wanted to
 * be those of bf16. */
struct Strips {
  const Fusion *f;
  Dag d;
  const StripSimd *simd;
  FusedCode code;
  int task_loops, sweeps;
  Sweep *sweep; /* sweeps of them, and one more: what comes after */
  StripReduce *reduces;
  int *out; /* nodes */
  SplitShape split;
  char *constants; /* by node: a scalar */
  int *row;        /* by node: what is dear and wanted in several sweeps is kept, a row each; -1 */
  int n_rows;
  size_t row_bytes;
  size_t slots_at, sums_at, rows_at, scratch_bytes;
  double run_s, excess_s;
};

void strips_run(void *const *bufs, int64_t begin, int64_t end, const void *strips);
void strips_finish(void *const *bufs, int64_t begin, int64_t end, const void *strips);

#endif
