/* interp, private: what the files of the interpreter share.
 *
 * One function sem_<fn>(Eval *) for each row of ir/ops.def. Two kinds of operation:
 *
 *  per process  nearly all. The function sees the operands of one process in e->in and makes
 * e->out. Called once when all operands are the same on all processes, else once for each process.
 *  lock step    OC_CONTROL, OC_COLLECTIVE and interpreter.run_parallel (op_is_lockstep). The
 * function sees all processes at once: e->sin, e->sout (e->in and e->out are NULL), and e->ctx to
 * run regions.
 *
 * Rules for per-process functions
 *  - The dims of the operand tensors are the truth, not the declared types (which may be dynamic or
 * bounded, or of rank 0 where a reduction body is evaluated on many elements at once: "lifted", see
 * region.c).
 *  - Element-wise functions get the result with eval_out(e, 0, &t): it has the dims of the operand
 * of highest rank. They loop over t->count elements; an operand with count 1 is a scalar for all
 * (select, clamp). They must write every element: the memory may be reused from an earlier call.
 * Result memory never overlaps an operand.
 *  - The dtype of operand i is e->in[i]->dtype; of the result t->dtype. Never look at a type's
 * dims; at type->quant only through quant.c.
 *  - Shape errors that the verifier catches are asserts; what depends on values is an Err
 * (op_err(e->op, ...)).
 *
 * Quantized operations: interp.c calls quant_eval(e, fn) instead of fn for every per-process op
 * that has a quantized operand or result, except the ones that only move elements
 * (op_moves_elements), uniform_quantize, uniform_dequantize, check.* and custom_call. quant_eval
 * dequantizes e->in to the expressed type, calls fn on an Eval with `as_float` set (eval_out then
 * gives the expressed type for quantized results), and quantizes e->out.
 */
#ifndef WEFT_INTERP_INTERP_PRIV_H
#define WEFT_INTERP_INTERP_PRIV_H

#include <stdlib.h>

#include "interp/interp.h"

#define MAX_RANK 64

typedef struct Run Run; /* one interp_run: module, grid, channels, infeed, probes */
typedef struct Ctx Ctx; /* one frame being executed for a set of active processes */
typedef struct Eval Eval;
typedef Tensor *(*CapturedFn)(void *arg, const Value *v);
typedef Err *(*SemFn)(Eval *e);

struct Eval {
  const Op *op;
  int n_in, n_out;
  Tensor **in;   /* borrowed */
  Tensor **out;  /* n_out entries; new references. May hold tensors to be reused on entry: only
                    through eval_out */
  int process;   /* replica * partitions + partition; 0 when the operands are the same for all */
  bool as_float; /* running a quantized op on dequantized operands */
  Run *run;      /* never NULL */
  CapturedFn captured; /* value from outside that a region of the op uses; may be NULL */
  void *captured_arg;
  Ctx *ctx; /* lock-step ops only, with: */
  const Shards *sin;
  Shards *sout;
};

#define OP(id, fn, name, cls, operands, results, regions, attrs) Err *sem_##fn(Eval *e);
#include "ir/ops.def"
#undef OP

/* ---- interp.c ------------------------------------------------------------------------------ */

extern const SemFn sem_table[OP_COUNT];
bool op_is_lockstep(const Op *op);
bool op_moves_elements(
    const Op *op); /* same bits, other places: right for quantized storage as it is */
bool op_is_quantized(const Op *op); /* an operand or result type has quant */

/* Result i (see the rules above): element-wise ops: dims of the operand of highest rank; others:
 * the declared type, which must be static (else ERR_UNIMPLEMENTED: use eval_out_dims). Memory is
 * uninitialised. */
Err *eval_out(Eval *e, int i, Tensor **out);
Err *eval_out_dims(Eval *e, int i, int rank, const int64_t *dims, Tensor **out);
DType eval_out_dtype(const Eval *e, int i);
/* What `size` elements, `dilation` apart, take up with `low` and `high` more at their ends; below 0: more is cut off than there is.
 * ERR_INVALID: that, or a place in it, does not fit in 64 bits. The verifier has no sizes that are known only when it runs. */
Err *eval_padded(const Op *op, int64_t size, int64_t dilation, int64_t low, int64_t high,
                 int64_t *out);
void eval_set(Eval *e, int i, Tensor *take);    /* result i is this tensor: takes the reference */
Tensor *eval_captured(Eval *e, const Value *v); /* borrowed; NULL when unknown */

/* Dispatches one per-process op: quantization, error places. */
Err *eval_dispatch(Eval *e);

/* A region many times, by the same process: args borrowed, results new references (n = terminator
 * operands). Any operation but collectives may be inside. Slow way; reductions use region.c. */
typedef struct RegionRun RegionRun;
RegionRun *region_run_new(Eval *e, const Region *r);
Err *region_run(RegionRun *x, Tensor *const *args, Tensor **results);
void region_run_free(RegionRun *x);

/* Lock step. */
typedef struct Plan Plan;
typedef struct Frame {
  const Func *func;
  Shards *slots;       /* by Value.id; n == 0: empty. Processes that are not active may have NULL */
  const Plan *plan;    /* when values die; NULL: with the frame */
  CapturedFn captured; /* asked for values that have no slot: the frame runs a region of an op
                          evaluated from outside */
  void *captured_arg;
} Frame;
const Plan *plan_of(Run *run, const Func *f); /* the run's */
void plans_free(Run *run);
void frame_bury(Frame *f, const Op *op); /* releases what op was the last to use */
void frame_free(Frame *f);               /* its values */

struct Ctx {
  Run *run;
  Frame *frame;
  int n;                 /* processes of the run */
  const uint8_t *active; /* n flags */
  int process;           /* of a RegionRun */
  int depth;             /* of calls */
  int n_manual;          /* axes of the manual computations around */
};

typedef struct Captured { /* argument of ctx_captured */
  Ctx *c;
  int p;
} Captured;
Tensor *ctx_captured(void *arg, const Value *v);
const Shards *ctx_get(Ctx *c, const Value *v); /* NULL when there is none */
Err *ctx_run_region(Ctx *c, const Region *r, const Shards *args,
                    Shards *results); /* args borrowed; results new */
Err *ctx_call(Ctx *c, const Func *f, const Shards *args, int n_args, Shards *results,
              int n_results);
Tensor *shards_at(const Shards *s, int p); /* borrowed: entry p, or the common one */
Shards shards_one(Tensor *take);
Shards shards_many(int n); /* n NULLs */
Shards shards_retain(const Shards *s);
void shards_widen(Shards *s, int n); /* one entry for each process, so that some may be replaced */

typedef struct Message {
  int n;
  Tensor **t;
} Message;
typedef struct Channel {
  int64_t id;
  int target; /* process, -1: any */
  VEC(Message) queue;
  int head;
} Channel;

typedef struct Probe {
  Str id; /* malloc'd */
  Tensor *t;
} Probe;

struct Run {
  const Module *module;        /* NULL: a single op of no module */
  int replicas, partitions, n; /* n = replicas * partitions */
  struct Baton
      *baton; /* run_parallel with several programs: one thread each, one running at a time */
  const InterpPart *part; /* the processes are not all here; NULL: they are */
  VEC(Channel *) channels;
  VEC(struct Meeting *) meetings;
  VEC(Message) infeed; /* of all processes, in order */
  int infeed_head;
  VEC(Plan *) plans;
  VEC(Probe)
  probes;             /* interpreter.probe in order; iteration i of an id is its i-th entry. Look in
                         run_root(run) */
  Run *parent;        /* of a run_parallel */
  uint64_t rng_calls; /* of stablehlo.rng so far: each gets other numbers, every run the same */
};
Run *run_new(const Module *m, int replicas, int partitions);
void run_free(Run *r);
Run *run_root(Run *run); /* the outermost run */

/* ---- index arithmetic (move.c) ------------------------------------------------------------- */

int64_t dims_count(int rank, const int64_t *dims);
void dims_strides(int rank, const int64_t *dims, int64_t *strides); /* row-major, in elements */
bool index_next(int rank, const int64_t *dims,
                int64_t *index); /* row-major odometer; false after the last */
void index_of(int64_t linear, int rank, const int64_t *dims, int64_t *index);
int64_t index_linear(int rank, const int64_t *strides, const int64_t *index);
/* Integer list attribute of exactly n numbers, `dflt` everywhere when absent. Result lives as long
 * as the arena `buf`: here a caller's array of MAX_RANK * 2. */
void op_ints_or(const Op *op, const char *name, int n, int64_t dflt, int64_t *buf);
/* Copies element `from` of src to element `to` of dst (same dtype). */
static inline void elem_copy(Tensor *dst, int64_t to, const Tensor *src, int64_t from) {
  size_t b = (size_t)dtype_bytes(dst->dtype);
  memcpy((char *)dst->data + (size_t)to * b, (const char *)src->data + (size_t)from * b, b);
}
void tensor_fill(Tensor *t, const void *elem); /* every element = *elem */
Tensor *tensor_zeros(DType dtype, int rank, const int64_t *dims);
Tensor *tensor_take_slice(const Tensor *t, int dim, int64_t at);    /* without the dimension */
Tensor *tensor_for_slices(const Tensor *slice, int dim, int64_t n); /* with it: room for n slices */
void tensor_put_slice(Tensor *t, int dim, int64_t at, const Tensor *slice);
Tensor *tensor_concat(Tensor *const *parts, int n, int dim);
Tensor *tensor_cut(const Tensor *t, const int64_t *start,
                   const int64_t *size); /* a box; outside: zeros */
void tensor_paste(Tensor *t, const int64_t *start,
                  const Tensor *box); /* what lies outside is dropped */
Tensor *tensor_convert(Tensor *t,
                       DType to); /* new reference; ints, floats, complex, as stablehlo.convert */
Tensor *tensor_reshaped(Tensor *t, int rank,
                        const int64_t *dims); /* new reference, shares the data */

/* ---- region.c: reduction bodies, comparators ----------------------------------------------- */

/* A region of element-wise operations on scalars, resolved once and then evaluated many times, on
 * single elements or on vectors of elements ("lifted"): every argument is a tensor of dims [m], the
 * results are too. Bodies with other operations (calls, control flow) are evaluated element by
 * element with region_run. */
typedef struct RegionEval RegionEval;
RegionEval *region_eval_new(Eval *e, const Region *r);
void region_eval_free(RegionEval *re);
/* If the body returns its argument k as result i: k, else -1. */
int region_eval_returns_arg(const RegionEval *re, int i);
/* args borrowed, all of m elements; results: borrowed until the next call. */
Err *region_eval_run(RegionEval *re, Tensor *const *args, int64_t m, Tensor **results);

/* ---- quant.c ------------------------------------------------------------------------------- */

Err *quant_eval(Eval *e, SemFn fn);

/* ---- collective.c, parallel.c, sharding.c -------------------------------------------------- */

/* Waits until another program of a run_parallel has sent something; error when all are waiting or
 * there is none. */
Err *baton_wait(Run *run, const Op *op);
void baton_progress(Run *run);
void parallel_free(Run *run); /* channels, infeed, meetings */
void meetings_free(Run *run);
Err *tridiagonal_solve_perturbed(const Op *op, Tensor *const *in,
                                 Tensor **results); /* tridiagonal.c */
CustomCallFn
lapack_find(Str target); /* lapack.c: "lapack_ssyevd_ffi" and the like; NULL: another target */
SemFn spmd_custom_call(
    const Op *op); /* Sharding, SPMDFullToShardShape, SPMDShardToFullShape; NULL: another target */

#endif
