/* Jacobi's method, one matrix in each lane. A sweep lets every two columns meet once, in rounds of
 * pairs that share none: the rotations of a round are known before the first is done. Lanes that
 * have nothing to turn are turned by nothing, so that a matrix's result does not depend on its
 * neighbours. */
#include "dev/cpu/ops/small_eigen.h"

#include <float.h>
#include <math.h>

#include "dev/cpu/kernel/clones.h"

#define MOST 32 /* the smaller side */
#define BYTES 64
#define MOST_SWEEPS 40

typedef struct Job {
  int64_t batch, rows, cols;
  bool lower;
  const void *in;
  void *w, *u, *v;
  int32_t *info;
} Job;

/* The columns that meet as pair k of a round, of an even number of columns; the last one keeps its place
 * and the others go round. */
static inline void meet(int64_t even, int64_t round, int64_t k, int64_t *p, int64_t *q) {
  int64_t circle = even - 1, a = k ? (round + k) % circle : circle,
          b = k ? (round - k + circle) % circle : round;
  *p = MIN(a, b), *q = MAX(a, b);
}

#define T float
#define INT int32_t
#define NAME(x) x##_f32
#define EPSILON FLT_EPSILON
#define SQRT sqrtf
#define ABS fabsf
#define LDEXP ldexpf
#define FREXP frexpf
#include "dev/cpu/ops/small_eigen_lanes.h"
#undef T
#undef INT
#undef NAME
#undef EPSILON
#undef SQRT
#undef ABS
#undef LDEXP
#undef FREXP
#define T double
#define INT int64_t
#define NAME(x) x##_f64
#define EPSILON DBL_EPSILON
#define SQRT sqrt
#define ABS fabs
#define LDEXP ldexp
#define FREXP frexp
#include "dev/cpu/ops/small_eigen_lanes.h"

/* Sweeps cost as many steps for one matrix as for a vector of them. Values alone LAPACK has from a
 * tridiagonal matrix, with fewer steps. */
bool small_eigen_suits(DType t, int64_t batch, int64_t rows, int64_t cols, bool vectors) {
  int64_t lanes = t == DT_F32 ? 16 : 8, n = MIN(rows, cols);
  return (t == DT_F32 || t == DT_F64) && n > 0 && n <= (vectors ? MOST : MOST / 2) &&
         MAX(rows, cols) <= 2 * MOST && batch >= (n <= 8 ? lanes / 4 : lanes / 2);
}

static void run(DType t, Job *q, int64_t work, void (*narrow)(void *, int64_t, int64_t),
                void (*wide)(void *, int64_t, int64_t)) {
  int64_t lanes = BYTES / dtype_bytes(t);
  cpu_parallel((q->batch + lanes - 1) / lanes, MAX(1, 100000 / (work + 1)),
               t == DT_F32 ? narrow : wide, q);
}

void small_eigh(DType t, bool lower, int64_t batch, int64_t n, const void *in, void *v, void *w,
                int32_t *info) {
  Job q = {batch, n, n, lower, in, w, NULL, v, info};
  run(t, &q, 32 * n * n * n, eigh_groups_f32, eigh_groups_f64);
}

void small_svd(DType t, int64_t batch, int64_t rows, int64_t cols, const void *in, void *s, void *u,
               void *vt, int32_t *info) {
  Job q = {batch, rows, cols, false, in, s, u, vt, info};
  run(t, &q, 48 * rows * cols * MIN(rows, cols), svd_groups_f32, svd_groups_f64);
}
