/* dev/cpu, private: eigenvalues of many small real symmetric matrices, and singular values of many
 * small real ones, one in each lane (small_eigen.c). */
#ifndef WEFT_DEV_CPU_SMALL_EIGEN_H
#define WEFT_DEV_CPU_SMALL_EIGEN_H

#include "dev/cpu/kernel/kernel.h"

/* Are there enough matrices of rows x cols, small enough? vectors: not the values alone. */
bool small_eigen_suits(DType t, int64_t batch, int64_t rows, int64_t cols, bool vectors);

/* Of a batch of n x n matrices, dense and row-major, as LAPACK's syevd: of each the triangle named is
 * read; w[batch, n] in ascending order; column j of v belongs to w[j], NULL: not wanted. A matrix that
 * is not finite: info -4 and zeros, else info 0. */
void small_eigh(DType t, bool lower, int64_t batch, int64_t n, const void *in, void *v, void *w,
                int32_t *info);

/* As gesdd: s[batch, k] in descending order, k = min(rows, cols); u[batch, rows, k] and
 * vt[batch, k, cols], both NULL: not wanted. */
void small_svd(DType t, int64_t batch, int64_t rows, int64_t cols, const void *in, void *s, void *u,
               void *vt, int32_t *info);

#endif
