/* Products whose contracted dimensions are pieces of a run, apart from each other, in one operand or
 * both: gemm_long.c packs those where they are, piece by piece. */
#include "dev/cpu/dot/dot.h"

#define LEAST_SIDE 24 /* rows, columns */
#define LEAST_K 16    /* of a piece; */
#define LEAST_TERMS 512
#define MOST_RESULTS 131072 /* of each part; more pass the caches as often as copies would */

static bool is_run(const Pieces *p) { return p->k_stride == 1 || p->free_stride == 1; }

bool dot_pieces_plan(Dot *d) {
  const Pieces *l = &d->lhs.pieces, *r = &d->rhs.pieces;
  return cpu_big_core() && gemm_kernels() && d->in == DT_F32 && d->out == DT_F32 && d->b == 1 &&
         !(d->lhs.direct && d->rhs.direct) && l->fits && r->fits && is_run(l) && is_run(r) &&
         MIN(d->m, d->n) >= LEAST_SIDE && d->k >= MAX(LEAST_TERMS, LEAST_K * l->count) &&
         d->m * d->n <= MOST_RESULTS;
}

Err *dot_pieces_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  const Pieces *l = &d->lhs.pieces, *r = &d->rhs.pieces;
  GemmLong g = {.m = d->m,
                .n = d->n,
                .k = d->k / l->count,
                .pieces = l->count,
                .a = in[0],
                .b = in[1],
                .a_row = l->free_stride,
                .a_k = l->k_stride,
                .b_col = r->free_stride,
                .b_k = r->k_stride,
                .a_piece = l->step,
                .b_piece = r->step,
                .c = out[0]};
  return gemm_long_run(&g) ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for sums of parts");
}
