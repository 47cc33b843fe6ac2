/* How the loops of a fusion are cut: into tasks, vectors, accumulators and chunks. By size only, never
 * by the number of threads. Generated code (loops.c) and strips (vinterp.c) do the same in the same
 * order, so that both give the same digits. */
#ifndef WEFT_DEV_CPU_SHAPE_H
#define WEFT_DEV_CPU_SHAPE_H

#include "compile/pass/query.h"
#include "dev/cpu/loops/emit_priv.h"

#define MAX_ACROSS_ROW 20 /* elements of rows that may lie side by side in the lanes (rows.c) */
#define LONG_SUM 64       /* additions to one accumulator after which its digits are worth care */

int shape_lanes(const Dag *d); /* of a vector */
/* How many vectors a loop without sums takes side by side: what each of them waits for, one result
 * after the other, is less than a processor can do at a time, and its window too short to begin the
 * next vector meanwhile. Digits do not depend on it. */
int shape_abreast(const Dag *d, int lanes);
/* Operations for each element below a node that no node in `seen` has counted. */
double shape_work_below(const Dag *d, int node, bool *seen);
double shape_work(const Dag *d); /* the same of the whole graph, with memory */
/* How many tasks of `inner` elements each make one chunk of work. */
int64_t shape_grain(const Dag *d, int64_t outer, int64_t inner);
DType shape_sum_type(const DagReduce *r, int k);
bool shape_sum_is_long(const DagReduce *r); /* a sum of floats that loses digits when it is long */

/* Each chooses d->vloop and the loops' levels, and how many tasks there are. */
/* returns the number of loops that are tasks, when there are two or more loops */
int shape_loop(Dag *d, int lanes, int64_t *outer, int64_t *grain);
int shape_row(Dag *d, int64_t *outer, int64_t *grain); /* returns the number of kept loops */

/* Rows that are too short for vectors may lie side by side in the lanes, one in each; then the loops'
 * levels are set for that: the last kept one is the vector loop, and tasks are runs of it. lanes: of a
 * vector; nk: kept loops. */
bool shape_across(Dag *d, int lanes, int nk);
int64_t shape_row_length(const Dag *d, int nk); /* elements */
#define LEAST_TURNED 4 /* elements of a row; fewer are put together one by one */
/* Whose memory is dense rows of `length` elements, of the loops from nk on? */
bool shape_turns(const Dag *d, const DagNode *n, int nk, int64_t length);
bool shape_turns_out(const Dag *d, int out, int nk, int64_t length);

/* Tasks that are runs of whole blocks of loop p, of rows of `width` elements, at one place of the loops
 * before it. */
typedef struct RunShape {
  int64_t runs, length; /* at each such place; of a run */
  int64_t outer, grain; /* tasks */
} RunShape;
RunShape shape_runs(const Dag *d, int p, int64_t block, int64_t width);

typedef struct SplitShape {
  int kept_loops, first_suffix;  /* loops: kept, reduced from kept_loops on, suffix */
  int64_t kept, suffix, reduced; /* elements */
  int64_t chunks, length;        /* of the first reduced loop */
  int64_t tasks, row;            /* elements between the partial results of two tasks */
  bool vector_chunks;            /* the chunked loop is the vector loop */
  bool in_registers;  /* the accumulators; else they are the partial results themselves */
  bool totals;        /* long sums are emptied now and then */
  int count;          /* accumulators of an operand */
  int64_t part_bytes; /* of all partial results */
} SplitShape;
SplitShape shape_split(Dag *d, int lanes, int64_t *grain);
/* So many chunks' results are added up before they are added to the others': of a long sum the root of
 * their number, else all. */
int64_t shape_finish_block(const DagReduce *r, const SplitShape *s);
int64_t shape_part_bytes(DType t); /* an element's as a partial result */

/* The node that operand k takes in: a sum takes what an arithmetic op before a conversion to f32 has, not
 * rounded in between (sums.c). */
int sum_element(const Dag *d, const DagReduce *r, int k);
/* What changes nothing in place k, a float or an integer by its type; false: it is not known, and what the
 * reduction begins with stands for it. */
bool sum_identity(const DagReduce *r, int k, double *f, int64_t *i);
int shape_last_sweep(const Dag *d);
/* How many vectors a sweep's loop takes at a time. Sums wait for their last addition, so several run
 * side by side, unless there is enough to do in between: more copies of that would only be more to
 * compile. */
int shape_unroll(const Dag *d, int sweep, int lanes);
/* Additions to one accumulator in the loops from `first` on. */
int64_t shape_additions(const Dag *d, int lanes, int first, int unroll);
/* Is it worth emptying long sums after each turn of the loop before `first`? */
bool shape_flush_before(const Dag *d, int lanes, int first, int unroll);

#endif
