/* Products by amx.h. */
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/dot.h"

#define GRAIN 2e6 /* multiplications of a task */

bool dot_amx_plan(Dot *d) {
  if (!d->lhs.direct || !d->rhs.direct || d->b * d->m * d->n * d->k == 0) return false;
  return amx_plan(&d->amx, d->m, d->n, d->k, (GemmTypes){d->in, d->rhs_in, d->out}, d->b);
}

typedef struct Call {
  const Dot *d;
  const char *lhs, *rhs;
  char *out;
} Call;

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Amx *g = &d->amx;
  int64_t each = g->tiles_m * g->tiles_n, lo, ro;
  char *scratch = cpu_scratch((size_t)amx_scratch_bytes(g));
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / each;
    dot_batch_at(d, b, &lo, &ro);
    GemmArgs x = {.a = c->lhs + lo * dtype_bytes(d->in),
                  .b = c->rhs + ro * dtype_bytes(d->rhs_in),
                  .a_row = d->lhs.free_stride,
                  .a_k = d->lhs.k_stride,
                  .b_col = d->rhs.free_stride,
                  .b_k = d->rhs.k_stride,
                  .c = c->out + b * d->m * d->n * dtype_bytes(d->out),
                  .c_row = d->n};
    amx_tile(g, &x, t % each, scratch);
  }
  amx_release(g);
}

Err *dot_amx_run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)op;
  const Dot *d = state;
  const Amx *g = &d->amx;
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0]};
  double macs = (double)MIN(g->tile_m, d->m) * (double)MIN(g->tile_n, d->n) * (double)d->k;
  cpu_parallel(d->b * g->tiles_m * g->tiles_n, (int64_t)(GRAIN / macs) + 1, tasks, &c);
  return NULL;
}
