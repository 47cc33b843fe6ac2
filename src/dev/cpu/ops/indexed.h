/* dev/cpu/indexed, private: where the windows of gather and scatter lie (indexed.c). */
#ifndef WEFT_DEV_CPU_INDEXED_H
#define WEFT_DEV_CPU_INDEXED_H

#include "dev/cpu/kernel/kernel.h"

typedef struct Walk {
  int rank, n_vec, n_batch;
  int64_t dims[CPU_MAX_RANK], step[CPU_MAX_RANK],
      window[CPU_MAX_RANK]; /* operand; window size 1 where collapsed */
  int64_t vec_step, to_operand[CPU_MAX_RANK];
  int64_t batch[CPU_MAX_RANK], batch_step[CPU_MAX_RANK],
      other_step[CPU_MAX_RANK];   /* of the indices' batch dimensions */
  int64_t batching[CPU_MAX_RANK]; /* the operand dimension that a batch dimension selects, -1 */
  int64_t n, run, n_runs;         /* index vectors; elements of a run; runs of a window */
  int64_t *at_operand, *at_other; /* runs within a window */
  bool aligned;                   /* windows are equal or disjoint */
  bool window_first; /* on the other side the window's runs are further apart than the index vectors
                      */
  DType index, type;
  OpKind combine; /* scatter; OP_RETURN: replace */
} Walk;

Walk *walk_new(const Op *op, bool scatter, const Type *operand, const Type *indices,
               const Type *other);
void walk_free(void *state); /* NULL is fine */
/* Where index vectors begin .. end - 1 have their windows. clamp: moved into the operand; else
 * from[i] is -1 when the window is not inside as a whole. */
void walk_windows(const Walk *w, const char *indices, bool clamp, int64_t begin, int64_t end,
                  int64_t *from, int64_t *to);
/* Windows of one run each, of which the one at index vector i is run i of the other side, in an
 * operand that 32 bits can number: where they are in the operand, -1 as above. */
bool walk_is_simple(const Walk *w);
#define SIMPLE_BATCH 256 /* index vectors at a time, at most */
void walk_simple(const Walk *w, const char *indices, bool clamp, int64_t begin, int64_t end,
                 int32_t *at);

/* What is added to is operand 0: it becomes the result, if it is not there already. */
void copy_sums(const Op *op, void *const *in, void *const *out);

#endif
