/* Products by amx.h. */
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/dot.h"
#include "dev/cpu/kernel/mem.h"

#define GRAIN 2e6 /* multiplications of a task */

bool dot_amx_plan(Dot *d) {
  if (!d->lhs.direct || !d->rhs.direct || d->b * d->m * d->n * d->k == 0) return false;
  return amx_plan(&d->amx, d->m, d->n, d->k, (GemmTypes){d->in, d->rhs_in, d->out}, d->b,
                  d->lhs.k_stride == 1);
}

typedef struct Call {
  const Dot *d;
  const char *lhs, *rhs;
  char *out, *ahead;
  int64_t first; /* product of all that are meant */
} Call;

static GemmArgs product_args(const Call *c, int64_t b) {
  return dot_gemm_args(c->d, c->lhs, c->rhs, c->out, b);
}

static void pack(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  GemmArgs x = product_args(c, c->first);
  amx_ahead(&c->d->amx, &x, c->ahead, begin, end);
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Amx *g = &c->d->amx;
  int64_t each = g->tiles_m * g->tiles_n;
  char *scratch = cpu_scratch((size_t)amx_scratch_bytes(g));
  for (int64_t t = begin; t < end; t++) {
    GemmArgs x = product_args(c, c->first + t / each);
    amx_tile(g, &x, c->ahead, t % each, scratch);
  }
  amx_release(g);
}

Err *dot_amx_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  const Amx *g = &d->amx;
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0]};
  double macs = (double)MIN(g->tile_m, d->m) * (double)MIN(g->tile_n, d->n) * (double)d->k;
  int64_t each = g->tiles_m * g->tiles_n, grain = (int64_t)(GRAIN / macs) + 1;
  size_t ahead = (size_t)amx_ahead_bytes(g);
  if (ahead == 0) {
    cpu_parallel(d->b * each, grain, tasks, &c);
    return NULL;
  }
  c.ahead = cpu_block_alloc(ahead);
  if (!c.ahead) return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
  for (; c.first < d->b; c.first++) {
    cpu_parallel(amx_ahead_parts(g), 1, pack, &c);
    cpu_parallel(each, grain, tasks, &c);
  }
  cpu_block_free(c.ahead, ahead);
  return NULL;
}
