/* dev/cpu/kernel: library kernels, one op at a time. Every k_X.c in the folders of src/dev/cpu exports its rows,
 * fastest first:
 *
 *   const CpuKernel cpu_kernels_X[] = {{"dot:f32:blas", OP_DOT_GENERAL, .accepts = ..., ...}, {0}};
 *
 * ended by an empty row; the build finds the file. For each op the first row that accepts it wins;
 * the reference kernel (interp_eval) accepts every op and comes last. Fused loops do not come here:
 * they are generated (emit.c).
 *
 * Data       dense row-major host memory as in Tensor (i1 one byte, sub-byte types one element a
 *            byte, bf16 two bytes, complex (re, im)). in[0 .. n_operands-1] are the operands, then
 *            the values from outside that the op's regions use, in the order of cpu_captures().
 *            out[i] is memory for result i, aligned to 64 bytes, uninitialised. Counts may be zero.
 * Shapes     all static: op->operands[i]->type, op->results[i].type.
 * Sharing    out never overlaps in, except: when `in_place` says operand k + 1 (0: never), out[0]
 *            may be the very address in[k] (then the planner has found that nobody needs the
 *            operand afterwards). The kernel must handle both cases.
 * Threads    run() may be called from several threads at once with the same state: the state is
 *            read-only after prepare. Parallelism by pool_run, split by size, never by thread
 *            count; results may not depend on the number of threads. Inside pool_run a nested
 *            pool_run runs inline.
 * Scratch    cpu_scratch(n) for the current thread; or memory of its own.
 */
#ifndef WEFT_DEV_CPU_KERNEL_H
#define WEFT_DEV_CPU_KERNEL_H

#include <stdlib.h>

#include "ir/ir.h"

typedef struct CpuKernel {
  const char *name; /* "conv:f32:dnnl", shown by WEFT_VERBOSE */
  OpKind kind;      /* OP_UNKNOWN with a name: any op */
  bool (*accepts)(
      const Op *op); /* NULL: every op of the kind. Looks at types and attributes; must be quick */
  Err *(*prepare)(
      const Op *op,
      void **state); /* once per op and program; NULL: nothing to prepare, state is NULL */
  Err *(*run)(void *state, const Op *op, void *const *in, void *const *out);
  void (*release)(void *state);  /* NULL: nothing to give back */
  int in_place;                  /* k + 1: result 0 may take operand k's memory; 0: never */
  double (*flops)(const Op *op); /* optional, for reports; NULL: 0 */
  const char *(*chosen)(
      const void *state); /* optional, for reports: the name of what prepare chose */
  /* Optional: in a loop, operands that come from outside of it (bit i of `fixed`: operand i) are
   * the same at every run. prepack_bytes: memory for what the kernel may keep of them from run to run;
   * 0: nothing to gain. run_prepacked: run, with that memory; fresh: it is not filled yet. */
  size_t (*prepack_bytes)(void *state, unsigned fixed);
  Err *(*run_prepacked)(void *state, const Op *op, void *const *in, void *const *out,
                        unsigned fixed, void *prepacked, bool fresh);
} CpuKernel;

/* Values from outside the op's regions that are used inside, in order of first use. Returns the
 * count; *out is malloc'd (NULL when 0). */
int cpu_captures(const Op *op, Value ***out);

/* At least n bytes, aligned to 64, of the calling thread; valid until its next call on the same
 * thread. */
void *cpu_scratch(size_t n);

/* A region whose body is one binary operation on its two scalar arguments and returns it (either
 * order): that op's kind and *swapped; else OP_UNKNOWN. */
OpKind cpu_region_binary(const Region *r, bool *swapped);

/* A region of select_and_scatter that compares its two arguments in order, but not in total order: *max for GE, false for LE; else false
 * is returned. */
bool cpu_region_select(const Region *r, bool *max);

/* Of the vectors to use: what the host has, or less by WEFT_VECTOR_BITS. */
int cpu_vector_bits(void);
/* May products go through AMX's tiles? Asks the kernel for them at the first call: threads' contexts grow by
 * 8 KiB. */
typedef enum CpuTiles { CPU_TILES_BF16, CPU_TILES_INT8 } CpuTiles;
bool cpu_has_tiles(CpuTiles of);
/* Bytes of a core's second cache. Sizes of blocks may depend on it, the order of sums may not. */
int64_t cpu_second_cache(void);
/* Is that enough for a block of rows beside all that passes by? */
bool cpu_big_cache(void);
/* Does a core multiply two vectors of 512 bits a cycle, from a second cache that is large as the third
 * one is far? Told by that one's size. Which kernel is best may depend on it. */
bool cpu_big_core(void);

/* Row-major strides in elements. */
static inline void cpu_strides(const Type *t, int64_t *strides) {
  int64_t s = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    strides[i] = s;
    s *= t->dims[i];
  }
}
#define CPU_MAX_RANK 64

/* Start indices in[first], in[first + 1], ..., clamped so that the window stays inside of `whole`; the offset in elements. */
int64_t cpu_window_offset(const Op *op, void *const *in, int first, const Type *whole,
                          const int64_t *window, const int64_t *strides);
/* Where the part of a slice, dynamic_slice or dynamic_update_slice begins in the operand; its elements are one run. */
void *cpu_slice_start(const Op *op, void *const *in);

/* pool_run over [0, n) in chunks of `grain` (>= 1): fn(arg, begin, end). Split by size only. */
void cpu_parallel(int64_t n, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end),
                  void *arg);

/* Gathers into dense row-major memory: element (i_0, ..) of out is in[sum i_k * strides[k]];
 * elements of `bytes` bytes. Transposes, slices, reversals (negative strides, `in` at element 0),
 * broadcasts (stride 0). Parallel when large. */
void cpu_permute(size_t bytes, int rank, const int64_t *dims, const int64_t *strides,
                 const void *in, void *out);

/* n rows of `bytes` bytes, in_step and out_step bytes apart; nothing beyond them is written. Serial. */
void cpu_copy_rows(int64_t bytes, int64_t n, const char *in, int64_t in_step, char *out,
                   int64_t out_step);

/* Conversion of n elements: bf16, f16 or bytes to f32, and back to those floats (rounded to nearest even) or,
 * of whole numbers, integers of up to 32 bits. Serial. */
void cpu_to_f32(DType t, const void *in, float *out, int64_t n);
void cpu_from_f32(DType t, const float *in, void *out, int64_t n);
/* The same on the pool. */
void cpu_widen(DType t, const void *in, float *out, int64_t n);
void cpu_narrow(DType t, const float *in, void *out, int64_t n);
/* Of n elements of f32, bf16 or f16: is every one finite? On the pool. */
bool cpu_finite(DType t, const void *in, int64_t n);

/* reduce_window with one operand: may places outside the operand be skipped? They count as the initial value, so a sum or product
 * needs the neutral one (max, min, and, or take the initial value any number of times). */
bool cpu_window_skips_outside(const Op *op);

/* Is it a running combination, as cumsum and its like are written (k_scan.c)? */
bool cpu_window_is_running(const Op *op);

#endif
