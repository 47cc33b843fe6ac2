/* dev/cpu, private: programs and runs. */
#ifndef WEFT_DEV_CPU_CPU_PRIV_H
#define WEFT_DEV_CPU_CPU_PRIV_H

#include <pthread.h>

#include "compile/compile.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/loops/loops.h"
#include "dev/dev.h"

/* ---- programs -------------------------------------------------------------------------------- */

typedef struct StepCode { /* by Step.id */
  const CpuKernel *kernel;
  void *state;
  FusedCode fused;         /* of a loop: all of it, when it has one (while_codegen.h) */
  const FusedCode *better; /* generated meanwhile; NULL */
  double turn_s,
      over_s; /* of a loop of unknown turns that began as strips (tier_up.c): what one takes as code, and more than it */
  int *places; /* its bufs */
  int n_places;
  unsigned fixed; /* operands from outside the loop; 0 when the kernel does not care */
  int stretch; /* of programs of several processes: as many steps from this on each does by itself; 0: not this one */
  size_t prepack_bytes;  /* for what the kernel keeps of them */
  double seconds, first; /* spent so far, the first run's share: for reports */
  int64_t runs;
} StepCode;

/* What the step runs from now on. */
static inline const FusedCode *code_now(const StepCode *step) {
  const FusedCode *b = __atomic_load_n(&step->better, __ATOMIC_ACQUIRE);
  return b ? b : &step->fused;
}

typedef struct RunMem RunMem;
struct RunMem { /* memory of one run at a time; kept for the next */
  RunMem *next;
  int n;      /* processes */
  bool all;   /* those of the program: what they have alike lies in one place */
  void **ptr; /* place * n + process */
  char *arena, *each;
  char *partial;
  struct Prepacked {
    void *p;
    int64_t loop; /* the entry to a loop that it was filled in */
  } * prepacked;  /* step id * n + process */
  int64_t loops;  /* entered so far */
  struct Bound {
    void **bufs;
    int64_t run;
  } * bound;    /* step id * n + process: a fusion's buffers, as of a run */
  int64_t runs; /* so far */
  struct Turns {
    struct CommandList **of; /* by block; NULL: not run yet */
    int n;
  } * turns; /* by step id */
};

typedef struct TierUp TierUp;
typedef struct Code Code;
struct Code { /* the program compiled for one pattern of arguments */
  DevProgram *prog;
  Plan *plan;
  Kernels *kernels;
  Buf bytes; /* of the kernels, until they are saved */
  StepCode *steps;
  int64_t partial_bytes;
  pthread_mutex_t lock;
  RunMem *idle;
  int running;     /* runs under way */
  TierUp *tier_up; /* the fusions run as strips until their code is generated; NULL: it is */
  bool *arg_each;
  bool apart; /* each process has to run by itself (apart.c) */
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
Err *code_new(DevProgram *prog, const Module *m, const bool *arg_each, Code **out);
/* The code as bytes, once, and only of a program with opts.keep. false: it is not complete, or cannot be kept */
bool code_save(Code *c, Buf *out);
/* errors: ERR_DATA_LOSS damaged */
Err *code_load(DevProgram *prog, Str saved, Code **out);
void code_free(Code *c);
typedef struct Made { /* generated code */
  FusedCode *fused;   /* by step; without run where there is none */
  Kernels *kernels;
  Buf bytes; /* of the kernels, of a program with opts.keep */
} Made;
/* alone: on this thread only */
Err *code_generate(const Code *c, bool alone, Made *out);
void code_take(Code *c, Made *m); /* nothing runs */
/* Finds the memory that loops of one function work on. m: not taken yet; NULL: taken */
void code_loop_places(Code *c, const Block *b, const Made *m);
void made_free(Made *m);
bool code_takes_much(const Code *c); /* memory, so that LLVM's is wanted back */
/* tier_up.c: all fusions as strips, if that is worth while. false: their code is wanted now */
bool tier_up_start(Code *c);
void tier_up_before_run(Code *c); /* with the lock held */
/* Before a turn of a loop of unknown turns, with c->tier_up: is the code there? */
bool tier_up_iteration(Code *c, const StepCode *loop);
bool tier_up_is_done(const Code *c); /* what was generated meanwhile is there */
Made *tier_up_made(const Code *c);   /* the same, for its own thread; NULL: not yet */
void tier_up_free(TierUp *l);        /* waits for code under way; NULL is fine */
/* stretch.c */
void stretches_find(Code *c, const Block *b);
/* exec.c */
typedef struct Trace Trace;
/* trace: gets every step that ran; NULL: nobody asks */
Err *code_run(Code *c, const DevProgram *prog, const DevPart *part, const Shards *args,
              const bool *donated, Shards *results, Trace *trace);
void run_mem_free(const Code *c, RunMem *m);
/* apart.c: processes that each have a thread of their own */
bool plan_runs_apart(const DevProgram *prog, const Plan *p);
Err *code_run_apart(Code *c, const DevProgram *prog, const DevPart *part, const Shards *args,
                    const bool *donated, Shards *results, Trace *trace);
/* command_list.c: blocks of steps that run many times, of programs of one process */
typedef struct CommandList CommandList;
/* A block of a loop or branch as it is in this run; of the memory */
CommandList *commands_of(const Code *c, RunMem *m, const Step *s, int block);
/* other: runs a step that the commands cannot */
Err *commands_run(const CommandList *t, Err *(*other)(void *arg, const Step *s), void *arg);
bool commands_moves(const CommandList *t); /* are the block's results in their places after it? */
bool commands_crosses(const Block *b); /* does a result go to a place that another comes from? */
void commands_free(CommandList *t);    /* NULL is fine */
void code_report(const Code *c, Buf *json); /* verbose.c */

/* ---- collectives (coll.c) -------------------------------------------------------------------- */

bool coll_supported(const Op *op);
/* Of a group's members; NULL in out: not here. false: another operation (coll_move.c) */
bool coll_move(const Op *op, int n, void *const *in, void *const *out);
/* in[operand * n + k], out[result * n + k] of the n processes of the part */
Err *coll_run(const Op *op, const DevProgram *prog, const DevPart *part, void *const *in,
              void *const *out);

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
