/* Products by amx.h. */
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/dot.h"

bool dot_amx_plan(Dot *d) {
  if (!d->lhs.direct || !d->rhs.direct || d->b * d->m * d->n * d->k == 0) return false;
  return amx_plan(&d->amx, d->m, d->n, d->k, (GemmTypes){d->in, d->rhs_in, d->out}, d->b,
                  d->lhs.k_stride == 1 ? AMX_RUNS : AMX_TURNED);
}

typedef struct Call {
  const Dot *d;
  const char *lhs, *rhs;
  char *out;
} Call;

static GemmArgs product_args(const Call *c, int64_t b) {
  return dot_gemm_args(c->d, c->lhs, c->rhs, c->out, b);
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Amx *g = &c->d->amx;
  int64_t each = g->tiles_m * g->tiles_n;
  char *scratch = cpu_scratch((size_t)amx_scratch_bytes(g));
  for (int64_t t = begin; t < end; t++) {
    GemmArgs x = product_args(c, t / each);
    amx_tile(g, &x, NULL, NULL, t % each, scratch);
  }
  amx_release(g);
}

Err *dot_amx_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  const Amx *g = &d->amx;
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0]};
  if (amx_ahead_bytes(g) == 0) {
    cpu_parallel(d->b * g->tiles_m * g->tiles_n, amx_grain(g), tasks, &c);
    return NULL;
  }
  for (int64_t b = 0; b < d->b; b++) {
    GemmArgs x = product_args(&c, b);
    if (!amx_run(g, &x, NULL, NULL, true))
      return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
  }
  return NULL;
}

/* With just the operand that stays the same packed ahead. */
static Amx kept_plan(const Dot *d, unsigned fixed) {
  Amx g = d->amx;
  g.ahead_b = fixed & 2;
  g.ahead_a = !g.ahead_b && d->lhs.k_stride != 1; /* runs are read where they are */
  return g;
}

size_t dot_amx_keep_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  Amx g = kept_plan(d, fixed);
  return d->b == 1 ? (size_t)amx_ahead_bytes(&g) : 0;
}

Err *dot_amx_run_kept(void *state, const Op *op, void *const *in, void *const *out, unsigned fixed,
                      void *kept, bool fresh) {
  const Dot *d = state;
  (void)op;
  Amx g = kept_plan(d, fixed);
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0]};
  GemmArgs x = product_args(&c, 0);
  amx_run(&g, &x, NULL, kept, fresh); /* needs no memory of its own */
  return NULL;
}
