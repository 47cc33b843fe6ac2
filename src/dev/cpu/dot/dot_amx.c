/* Products by amx.h. */
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/dot.h"

bool dot_amx_plan(Dot *d) {
  if (d->b * d->m * d->n * d->k == 0) return false;
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

static bool run_as(const Dot *d, const Amx *g, void *const *in, void *const *out, char *prepacked,
                   bool fresh) {
  DotOperands o;
  bool ok = dot_operands(d, in, &o);
  Call c = {.d = d, .lhs = o.at[0], .rhs = o.at[1], .out = out[0]};
  if (ok && !prepacked && amx_ahead_bytes(g) == 0) {
    cpu_parallel(d->b * g->tiles_m * g->tiles_n, amx_grain(g), tasks, &c);
  } else {
    for (int64_t b = 0; b < d->b && ok; b++) {
      GemmArgs x = product_args(&c, b);
      ok = amx_run(g, &x, NULL, prepacked, fresh);
    }
  }
  dot_operands_free(&o);
  return ok;
}

static Err *no_memory(const Op *op) {
  return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
}

Err *dot_amx_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  return run_as(d, &d->amx, in, out, NULL, true) ? NULL : no_memory(op);
}

/* With just the operand that stays the same packed ahead. */
static Amx prepacked_plan(const Dot *d, unsigned fixed) {
  Amx g = d->amx;
  g.ahead_b = fixed & 2;
  g.ahead_a = !g.ahead_b && d->lhs.k_stride != 1; /* runs are read where they are */
  return g;
}

size_t dot_amx_prepack_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  Amx g = prepacked_plan(d, fixed);
  bool direct = (fixed & 2 ? d->rhs : d->lhs).direct;
  return d->b == 1 && direct ? (size_t)amx_ahead_bytes(&g) : 0;
}

Err *dot_amx_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                           unsigned fixed, void *prepacked, bool fresh) {
  const Dot *d = state;
  Amx g = prepacked_plan(d, fixed);
  return run_as(d, &g, in, out, prepacked, fresh) ? NULL : no_memory(op);
}
