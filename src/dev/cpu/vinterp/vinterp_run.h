/* dev/cpu/vinterp, private: what a fusion is as strips, made by vinterp.c, run by vinterp_run.c. */
#ifndef WEFT_DEV_CPU_VINTERP_RUN_H
#define WEFT_DEV_CPU_VINTERP_RUN_H

#include "dev/cpu/loops/shape.h"
#include "dev/cpu/vinterp/vinterp.h"
#include "dev/cpu/vinterp/vinterp_priv.h"

#define STRIP 512       /* a multiple of what sums take at a time: 4 vectors */
#define SCALAR_BYTES 64 /* of a vector */
#define MOST_OPERANDS 8
#define MOST_SUMS 4 /* operands of a reduction */

typedef enum DoKind {
  DO_FN,
  DO_GATHER,
  DO_READ,
  DO_IOTA,
  DO_SCALAR,
  DO_KEPT,
  DO_SUM,  /* of rows side by side */
  DO_JOIN, /* operands where their conditions hold; the last one elsewhere */
  DO_PAIR  /* a complex number, stored from its parts */
} DoKind;

/* One node in one sweep. A node that does not differ along the vector loop is a scalar, computed once
 * a line, a vector of equal numbers; `slot` is then the strip it is spread to, -1: nobody wants that. */
typedef struct Do {
  DoKind kind;
  bool vec;
  DType t;
  int node, slot;                  /* node: see VInterp */
  int mask;                        /* DO_READ: condition under which there is something */
  int row;                         /* DO_KEPT, DO_FN: the kept row that it is in; -1 */
  int fn, n_in, in[MOST_OPERANDS]; /* DO_FN, DO_GATHER: nodes */
  int after;                       /* DO_FN: done to the result; -1 */
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

/* The body of a reduction on registers: the sums, the elements, then what its operations give. */
#define MOST_REGS 48
typedef struct StripBody {
  int n_dos, n_regs;
  int result[MOST_SUMS];
  struct BodyDo {
    int fn, after, n_in, in[MOST_OPERANDS], out;
    unsigned same; /* constants */
  } dos[MOST_REGS];
  bool is_constant[MOST_REGS];
  char constant[MOST_REGS][SCALAR_BYTES];
} StripBody;

typedef struct StripReduce {
  int n, first;                       /* operands; number of the first among those of all */
  int node[MOST_SUMS];                /* of the results; -1: nobody wants it */
  int in[MOST_SUMS], init[MOST_SUMS]; /* nodes */
  int after[MOST_SUMS];               /* what is done to a complete sum; -1 */
  uint64_t neutral[MOST_SUMS];        /* the bits of a number, the lower ones */
  int sum, fn;                        /* SUM_ and STRIP_ of the body, or ... */
  StripBody *body;                    /* ... this; malloc'd */
  bool is_long;
} StripReduce;

/* A node's number here is that of the graph, plus their count for what it is when its digits are wanted to
 * be those of its type. */
struct Strips {
  const Fusion *f;
  Dag d;
  const StripSimd *simd;
  size_t strip_bytes;
  FusedCode code;
  int task_loops, sweeps;
  Sweep *sweep; /* sweeps of them, and one more: what comes after */
  StripReduce *reduces;
  int *out;  /* nodes */
  int *part; /* two for each output: of complex ones, the nodes */
  SplitShape split;
  bool across; /* rows lie side by side, an element of each in a strip */
  RunShape runs;
  char *constants; /* by node: a scalar */
  int *row;        /* by node: what is dear and wanted in several sweeps is kept, a row each; -1 */
  int n_rows;
  int n_sums, n_temps; /* operands of all reductions; registers of their bodies */
  size_t row_bytes;
  size_t slots_at, sums_at, temps_at, rows_at, sum_bytes, scratch_bytes;
  double run_s, excess_s;
};

/* Of one call of vinterp_run, by one thread. */
typedef struct Run {
  const VInterp *s;
  const Sweep *w;
  void *const *bufs;
  const void **strip, **scalar; /* by node: where it is now */
  int64_t *at; /* by node: of what is read or made in memory, the line's beginning */
  int64_t *holds_from, *holds_to; /* by condition: where along the vector loop */
  char *slots, *sums, *temps, *rows;
  int64_t iv[MAX_LOOPS];
  bool in_part; /* sums are added up there */
} Run;

/* One number of a strip, the bits of it. */
static inline uint64_t strip_number(const StripSimd *simd, const void *strip, int64_t i) {
  return simd->bytes == 8 ? ((const uint64_t *)strip)[i] : ((const uint32_t *)strip)[i];
}

static inline void strip_set(const StripSimd *simd, void *strip, int64_t i, uint64_t v) {
  if (simd->bytes == 8) ((uint64_t *)strip)[i] = v;
  else ((uint32_t *)strip)[i] = (uint32_t)v;
}

static inline void strip_fill(const StripSimd *simd, void *to, uint64_t v, int64_t n) {
  uint64_t *wide = to;
  uint32_t *narrow = to;
  if (simd->bytes == 8)
    for (int64_t i = 0; i < n; i++) wide[i] = v;
  else
    for (int64_t i = 0; i < n; i++) narrow[i] = (uint32_t)v;
}

/* vinterp_ops.c */
bool strip_type_ok(const StripSimd *simd, DType t);
bool strip_in_memory(const StripSimd *simd, DType t); /* in a strip it is as in memory */
uint64_t strip_element(const StripSimd *simd, DType t, const void *base,
                       int64_t at); /* from memory */
/* Functions; -1: there is none. lanes: on vectors, where a scalar is computed otherwise */
int strip_fn(const StripSimd *simd, const Op *op, bool lanes);
int strip_after(const StripSimd *simd, const Op *op, int fn);
int strip_to_type(const StripSimd *simd, DType t); /* gives the number the digits of the type */
int strip_load(const StripSimd *simd, DType t);
int strip_store(const StripSimd *simd, DType t);
bool strip_sum(const StripSimd *simd, OpKind binary, DType t,
               StripReduce *out);                                     /* sum, fn and neutral */
StripBody *strip_body(const StripSimd *simd, const Region *r, int n); /* NULL: not for strips */

/* vinterp_sums.c; of the sweep at hand */
char *sums_of(const Run *r, int id); /* of operand `id` of all reductions */
void sums_neutral(const Run *r, const StripReduce *q, int k, char *to, int64_t n);
/* a = body(a, x), n numbers of each */
void sums_combine(const Run *r, const StripReduce *q, char *const *a, const char *const *x,
                  int64_t n);
void sums_take(const Run *r, const StripReduce *q, int64_t n); /* a strip, by a body */
/* totals: long sums are emptied into them by sums_flush, and at the end, when they take their place */
void sums_begin(Run *r, bool totals);
void sums_flush(Run *r);
void sums_end(Run *r);
void sums_collect(const Run *r, const StripReduce *q); /* to one number, in all lanes */
/* sums = body(initial values, sums), as they are when they are complete; n of each. */
void sums_with_init(const Run *r, const StripReduce *q, char *const *sums, int64_t n);
void sums_results(const Run *r); /* what the nodes of reductions are, the row being over */

void vinterp_run(void *const *bufs, int64_t begin, int64_t end, const void *strips);
void vinterp_finish(void *const *bufs, int64_t begin, int64_t end, const void *strips);

#endif
