/* dev/cpu, private to products and convolutions of doubles: their innermost kernels. */
#ifndef WEFT_DEV_CPU_DOT_F64_H
#define WEFT_DEV_CPU_DOT_F64_H

#include "base/base.h"

#define F64_MAX_ROWS 12

/* c[rows][columns] (+)= sum over k of a b; element (i, p) of a at i * a_row + p * a_k, b a panel
 * [k][columns] of one or two vectors. */
typedef void (*F64Kernel)(int64_t k, const double *a, int64_t a_row, int64_t a_k, const double *b,
                          double *c, int64_t c_row, bool add);

typedef struct F64Kernels {
  int rows, lanes;
  F64Kernel fn[F64_MAX_ROWS][2]; /* [rows - 1][vectors - 1] */
} F64Kernels;

/* The widest that this host can run (cpu_vector_bits); NULL: none. */
const F64Kernels *f64_kernels(void);

/* Of a matrix whose runs of n doubles begin ld apart: each run's sum of products with x, [n]; and the sum of all runs, x[i]
 * times run i, to y[n]. */
void f64_dots(int64_t runs, int64_t n, const double *m, int64_t ld, const double *x, double *y);
void f64_along(int64_t runs, int64_t n, const double *m, int64_t ld, const double *x, double *y);

#endif
