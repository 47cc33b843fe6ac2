/* dev/cpu, private: programs, runs, generated code. */
#ifndef WEFT_DEV_CPU_CPU_PRIV_H
#define WEFT_DEV_CPU_CPU_PRIV_H

#include <pthread.h>

#include "compile/compile.h"
#include "dev/cpu/kernel.h"
#include "dev/dev.h"

/* ---- generated code (jit.c, emit*.c, loops.c) ------------------------------------------------ */

/* One fusion compiled. Work is calls of run(bufs, first, last, self) over [0, outer) in
 * chunks of `grain`; a split fusion writes partial results and ends with one call of finish(bufs,
 * ...) over [0, finish_outer). */
typedef void (*FusedFn)(void *const *bufs, int64_t begin, int64_t end, const void *self);
typedef struct FusedCode {
  FusedFn run, finish;
  const void *self; /* NULL in generated code */
  int64_t outer, grain;
  int64_t finish_outer, finish_grain;
  int64_t partial_bytes; /* memory for partial results: bufs[n_in + n_out] */
  double flops;          /* for reports */
  const char *name;
  int kernel; /* its number in Kernels */
} FusedCode;

/* Compiled kernels with their code in memory (kernels.c). */
typedef struct Kernels Kernels;
void kernels_write(const FusedCode *codes, int n, const Str *objects, int n_objects, Buf *out);
Err *kernels_load(Str bytes, Kernels **out); /* bytes are not needed afterwards */
int kernels_count(const Kernels *k);         /* NULL: 0 */
const FusedCode *kernels_at(const Kernels *k, int i);
void kernels_free(Kernels *k); /* NULL is fine */

typedef struct Jit Jit;
Jit *jit_new(void);
/* Generates code for the fusion (equal fusions share it). *out is filled by jit_finish. */
Err *jit_add(Jit *j, const Fusion *f, FusedCode *out);
/* The loop as one function, if it is one for that (cycle.h). */
bool jit_add_loop(Jit *j, const Plan *p, const Step *s, FusedCode *out);
Err *jit_finish(Jit *j, Kernels **out); /* compiles all that was added; *out NULL: nothing */
Str jit_bytes(const Jit *j);            /* after jit_finish: what kernels_load takes */
void jit_free(Jit *j);                  /* not the kernels; NULL is fine */
void jit_host(Buf *out);                /* all that compiled code depends on besides the program */
bool jit_fusible(const Op *op);
int jit_vector_bits(void); /* of this host */
/* What such a loop gets as bufs: places, malloc'd. */
int cycle_places(const Plan *p, const Step *s, int **out);

/* ---- programs -------------------------------------------------------------------------------- */

typedef struct StepCode { /* by Step.id */
  const CpuKernel *kernel;
  void *state;
  FusedCode fused; /* of a loop: all of it, when it has one (cycle.h) */
  int *places;     /* its bufs */
  int n_places;
  unsigned fixed;        /* operands from outside the loop; 0 when the kernel does not care */
  size_t keep_bytes;     /* for what the kernel keeps of them */
  double seconds, first; /* spent so far, the first run's share: for reports */
  int64_t runs;
} StepCode;

typedef struct RunMem RunMem;
struct RunMem { /* memory of one run at a time; kept for the next */
  RunMem *next;
  void **ptr; /* place * n_procs + process */
  char *arena, *each;
  char *partial;
  struct Kept {
    void *p;
    int64_t loop; /* the entry to a loop that it was filled in */
  } * kept;       /* step id * n_procs + process */
  int64_t loops;  /* entered so far */
  struct Bound {
    void **bufs;
    int64_t run;
  } * bound;    /* step id * n_procs + process: a fusion's buffers, as of a run */
  int64_t runs; /* so far */
  struct Turns {
    struct Tape **of; /* by block; NULL: not run yet */
    int n;
  } * turns; /* by step id */
};

typedef struct Late Late;
typedef struct Code Code;
struct Code { /* the program compiled for one pattern of arguments */
  Plan *plan;
  Kernels *kernels;
  Buf bytes; /* of the kernels, until they are saved */
  StepCode *steps;
  int64_t partial_bytes;
  pthread_mutex_t lock;
  RunMem *idle;
  int running; /* runs under way */
  Late *late;  /* the fusions run as strips; NULL: their code is generated */
  bool *arg_each;
  Code *next; /* of those to report on (verbose.c) */
};

typedef struct CpuProgram {
  DevProgram *prog;
  pthread_mutex_t lock;
  VEC(Code *) codes;
  DevMemory memory;  /* of a run with the first of them */
  char *interpreted; /* why the whole program is left to the interpreter; NULL */
} CpuProgram;

/* code.c: making and keeping */
Err *code_new(const DevProgram *prog, const Module *m, const bool *arg_each, Code **out);
/* The code as bytes, once, and only of a program with opts.keep. false: it cannot be kept */
bool code_save(Code *c, Buf *out);
/* errors: ERR_DATA_LOSS damaged */
Err *code_load(const DevProgram *prog, Str saved, Code **out);
void code_free(Code *c);
/* Generates what runs as strips so far; the lock is held and nothing runs. */
void code_generate(Code *c);
/* late.c: all fusions as strips, if they are few and light. false: their code is wanted now */
bool late_start(Code *c);
bool late_is_due(Late *l); /* before a run: did the others cost as much as its code? */
void late_never(Late *l);
void late_free(Late *l); /* NULL is fine */
/* exec.c */
typedef struct Trace Trace;
/* trace: gets every step that ran; NULL: nobody asks */
Err *code_run(Code *c, const DevProgram *prog, const Shards *args, const bool *donated,
              Shards *results, Trace *trace);
void run_mem_free(const Code *c, RunMem *m);
/* tape.c: blocks of steps that run many times, of programs of one process */
typedef struct Tape Tape;
/* A block of a loop or branch as it is in this run; of the memory */
Tape *tape_of(const Code *c, RunMem *m, const Step *s, int block);
/* other: runs a step that the tape cannot */
Err *tape_run(const Tape *t, Err *(*other)(void *arg, const Step *s), void *arg);
bool tape_moves(const Tape *t);    /* are the block's results in their places after it? */
bool tape_crosses(const Block *b); /* does a result go to a place that another comes from? */
void tape_free(Tape *t);           /* NULL is fine */
void code_report(const Code *c, Buf *json); /* verbose.c */

/* ---- memory of results, kept for reuse (mem.c) ----------------------------------------------- */

Err *cpu_tensor_new(DType t, int rank, const int64_t *dims, Tensor **out);
Err *cpu_tensor_for_argument(DType t, int rank, const int64_t *dims, bool zeros, Tensor **out);
void *cpu_block_alloc(size_t n); /* NULL: none left */
void cpu_block_free(void *p, size_t n);

/* ---- collectives (coll.c) -------------------------------------------------------------------- */

bool coll_supported(const Op *op);
/* in[operand * n + process], out[result * n + process] */
Err *coll_run(const Op *op, const DevProgram *prog, int n, void *const *in, void *const *out);

/* ---- recordings (trace.c): kernel numbers are step ids, one compiled pattern after the other;
 * the last is the interpreter
 * ------------------------------------------------------------------------------------------------------
 */

struct Trace {
  int first; /* kernel number of the code's step 0 */
  VEC(ProfSpan) spans;
  VEC(ProfSpan) rest; /* when there are too many to keep: one for each kernel */
};
int code_first_kernel(const CpuProgram *p, const Code *c); /* c NULL: the interpreter's */
/* of a loop or branch: only when it is one kernel */
void trace_step(Trace *t, const Step *s, double from_s, double to_s);
void trace_take(Trace *t, double start_s, DevRun *out); /* frees what it does not hand over */
ProfProgram *program_profile(const CpuProgram *p, Prof *prof);

/* ---- WEFT_VERBOSE and reports (verbose.c) ---------------------------------------------------- */

/* for a step: name of its kernel, "f32[8,16]->f32[8]", bytes that it has to read and write,
 * operations */
const char *step_name(const Code *c, const Step *s);
void step_shapes(const Step *s, Buf *b, double *bytes);
double step_flops(const Code *c, const Step *s);

int cpu_verbosity(void);    /* 0: off */
void verbose_open(Code *c); /* a report is wanted at verbose_close or at the end of the process */
void verbose_close(Code *c);
void verbose_step(Code *c, const Step *s, double seconds);

#endif
