/* interp/lapack: the custom calls by which JAX asks for dense linear algebra, with memory and threads
 * of the caller's choice. */
#ifndef WEFT_INTERP_LAPACK_H
#define WEFT_INTERP_LAPACK_H

#include "ir/ir.h"

/* fn on all parts of [0, n), each of about `grain`, in any order and perhaps at once. */
typedef void LapackParallel(int64_t n, int64_t grain,
                            void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

typedef struct LapackHow {
  /* d[a * da + b] = s[a + b * sb] for a < na, b < nb; elements of `bytes` bytes. */
  void (*turn)(size_t bytes, int64_t na, int64_t nb, int64_t da, int64_t sb, const char *src,
               char *dst);
  LapackParallel *parallel;
} LapackHow;

/* Is it a target as "lapack_ssyevd_ffi"? */
bool lapack_knows(Str target);

/* A choice of the call, one letter as LAPACK names it: "mode", "uplo". */
char lapack_letter(const Op *op, const char *name, char dflt);

/* The call on dense row-major tensors; the results' memory is there, of the types of the op. Errors:
 * operands or results that do not have the routine's shapes. */
Err *lapack_into(const Op *op, Tensor *const *in, Tensor *const *out, const LapackHow *how);

/* As potrf of a column-major triangle, upper or lower, in its place. type: f32, f64, c64, c128 from 0. What
 * depends on NaN is NaN. Returns the first row whose pivot is not positive, from 1; 0: none. */
int lapack_cholesky(int type, bool upper, int n, int ld, void *a);

#endif
