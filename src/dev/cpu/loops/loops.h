/* Fusions as native code: a fusion becomes a graph of nodes (dag.c), loops over its domain (loops.c, rows.c, sums.c) and vector
 * instructions (emit.c, math.c) in one LLVM module a program (jit.c); kernels.c keeps and loads what was compiled. */
#ifndef WEFT_DEV_CPU_LOOPS_H
#define WEFT_DEV_CPU_LOOPS_H

#include "compile/plan/plan.h"

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
/* The loop as one function, if it is one for that (while_codegen.h). */
bool jit_add_loop(Jit *j, const Plan *p, const Step *s, FusedCode *out);
/* Compiles all that was added; *out NULL: nothing. alone: by this thread, not by the pool's */
Err *jit_finish(Jit *j, bool alone, Kernels **out);
Str jit_bytes(const Jit *j); /* after jit_finish: what kernels_load takes */
void jit_free(Jit *j);       /* not the kernels; NULL is fine */
void jit_host(Buf *out);     /* all that compiled code depends on besides the program */
bool jit_fusible(const Op *op);
void jit_library_rests(void); /* library.c: no code is wanted for some time */
/* What such a loop gets as bufs: places, malloc'd. */
int while_places(const Plan *p, const Step *s, int **out);

#endif
