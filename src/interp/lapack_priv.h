/* interp, private: a matrix in columns, and its factorizations: on the caller's threads
 * (lapack_blocks.c); of matrices that are not finite (lapack_plain.c). */
#ifndef WEFT_INTERP_LAPACK_PRIV_H
#define WEFT_INTERP_LAPACK_PRIV_H

#include "interp/interp_priv.h"
#include "interp/lapack.h"

typedef struct LapackMatrix {
  int type; /* f32, f64, c64, c128 */
  int rows, cols, ld;
  void *data; /* element (i, j) at i + j * ld */
} LapackMatrix;

static inline size_t lapack_bytes(int type) { return (size_t)(type == 0 ? 4 : type == 3 ? 16 : 8); }

static inline void lapack_set_one(int type, void *p) { /* a zero becomes one */
  if (type % 2) *(double *)p = 1;
  else *(float *)p = 1;
}

/* Is none of n elements NaN or infinite? */
bool lapack_finite(int type, const void *p, int64_t n);

/* As LAPACK's geqrf and getrf. */
void lapack_qr(const LapackMatrix *a, void *tau, LapackParallel *parallel);
void lapack_lu(const LapackMatrix *a, int *pivots, int *info, LapackParallel *parallel);
/* As orgqr: the first columns of the product of k reflectors, in their place. */
void lapack_q(const LapackMatrix *a, int k, const void *tau, LapackParallel *parallel);

/* The same column by column, by the definition: what depends on NaN or infinity is not finite.
 * lapack_plain_lu returns the first column without a pivot, from 1; 0: none. lapack_plain_q: all
 * columns are reflectors. */
int lapack_plain_lu(const LapackMatrix *a, int *pivots);
void lapack_plain_qr(const LapackMatrix *a, void *tau);
void lapack_plain_q(const LapackMatrix *a, const void *tau);
int lapack_plain_cholesky(const LapackMatrix *a, bool upper);

#endif
