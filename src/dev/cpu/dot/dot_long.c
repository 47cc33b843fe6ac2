/* Products with few results that are sums of many terms: gemm_long.c of f32 whose rhs has runs of
 * columns. Where the lhs has runs of rows too (gradients of weights), both are read run by run. */
#include "dev/cpu/dot/dot.h"

#define LEAST_K 4096 /* and so many times the sides: */
#define RATIO 4
#define RESULTS 262144 /* at most */
#define RATIO_ROWS 8   /* the same where rows of the lhs are runs along k, far apart: */
#define RESULTS_ROWS 16384
#define LEAST_NARROW 8 /* or, where rows and columns are runs, sides of so many, */
#define NARROW 80      /* columns at most, */
#define NARROW_K 512   /* and so many terms, more than rows: packing them is not worth it */

/* Is k long enough? rows: of the lhs are runs along it. */
static bool is_long(const Dot *d, bool rows) {
  int64_t most = MAX(d->m, d->n);
  if (!rows && d->m >= LEAST_NARROW && d->n >= LEAST_NARROW && d->n <= NARROW && d->k >= NARROW_K &&
      d->k > most)
    return true;
  return d->k >= LEAST_K && d->k >= (rows ? RATIO_ROWS : RATIO) * most;
}

bool dot_long_plan(Dot *d) {
  bool rows = d->lhs.k_stride == 1;
  return gemm_kernels() && d->in == DT_F32 && d->out == DT_F32 && d->lhs.direct && d->rhs.direct &&
         d->rhs.free_stride == 1 && d->b == 1 && MIN(d->m, d->n) >= 4 && is_long(d, rows) &&
         d->m * d->n <= (rows ? RESULTS_ROWS : RESULTS);
}

Err *dot_long_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  GemmLong g = {.m = d->m,
                .n = d->n,
                .k = d->k,
                .pieces = 1,
                .a = in[0],
                .a_row = d->lhs.free_stride,
                .a_k = d->lhs.k_stride,
                .b = in[1],
                .b_col = 1,
                .b_k = d->rhs.k_stride,
                .c = out[0]};
  return gemm_long_run(&g) ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for sums of parts");
}
