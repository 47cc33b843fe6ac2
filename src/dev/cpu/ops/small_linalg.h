/* dev/cpu/small_linalg, private: factorizations and triangular systems of many small real matrices,
 * one in each lane (small_linalg.c). */
#ifndef WEFT_DEV_CPU_SMALL_LINALG_H
#define WEFT_DEV_CPU_SMALL_LINALG_H

#include "dev/cpu/kernel/kernel.h"

/* Are there enough matrices of rows x cols, small enough? */
bool small_suits(DType t, int64_t batch, int64_t rows, int64_t cols);

/* Of a batch of n x n matrices; the triangle named is read, zeros are put into the other. Without a
 * factor: NaN, as is what depends on NaN. out may be in. */
void small_cholesky(DType t, bool lower, int64_t batch, int64_t n, const void *in, void *out);

/* With row exchanges, as LAPACK's getrf: pivots[batch, min(rows, cols)] count from 1, info is the
 * first column without a pivot, 0: none. out may not be in. */
void small_lu(DType t, int64_t batch, int64_t rows, int64_t cols, const void *in, void *out,
              int32_t *pivots, int32_t *info);

/* By reflectors, as LAPACK's geqrf: tau[batch, min(rows, cols)]; and their product's first columns, as
 * orgqr; rows >= cols >= reflectors. */
void small_qr(DType t, int64_t batch, int64_t rows, int64_t cols, const void *in, void *out,
              void *tau);
void small_q(DType t, int64_t batch, int64_t rows, int64_t cols, int64_t reflectors, const void *in,
             const void *tau, void *out);

typedef struct SmallSolve {
  bool left, lower, unit, transposed;
  int64_t batch, rows, cols; /* of the right-hand sides */
} SmallSolve;
/* op(a) x = b or x op(a) = b; x holds b before. */
void small_solve(DType t, const SmallSolve *s, const void *a, void *x);

#endif
