/* Products by gemm.h. */
#include "dev/cpu/dot/dot.h"

#define GRAIN_FLOPS 5e5 /* of small products, for one task */

bool dot_gemm_plan(Dot *d) {
  if (d->b * d->m * d->n * d->k == 0) return true;
  bool runs = d->rhs.free_stride == 1;
  GemmTypes t = {d->in, d->rhs_in, d->out};
  gemm_plan(&d->gemm, d->m, d->n, d->k, t, d->b, GEMM_SMALLER, runs);
  gemm_plan(&d->prepacked[0], d->m, d->n, d->k, t, d->b, GEMM_A, runs);
  gemm_plan(&d->prepacked[1], d->m, d->n, d->k, t, d->b, GEMM_B, runs);
  return true;
}

typedef struct GemmCall {
  const Dot *d;
  const Gemm *g;
  const char *lhs, *rhs;
  char *out;
} GemmCall;

GemmArgs dot_gemm_args(const Dot *d, const void *lhs, const void *rhs, void *out, int64_t b) {
  int64_t lo, ro;
  dot_batch_at(d, b, &lo, &ro);
  return (GemmArgs){.a = (const char *)lhs + lo * dtype_bytes(d->in),
                    .b = (const char *)rhs + ro * dtype_bytes(d->rhs_in),
                    .a_row = d->lhs.free_stride,
                    .a_k = d->lhs.k_stride,
                    .b_col = d->rhs.free_stride,
                    .b_k = d->rhs.k_stride,
                    .c = (char *)out + b * d->m * d->n * dtype_bytes(d->out),
                    .c_row = d->n};
}

static GemmArgs product_args(const GemmCall *c, int64_t b) {
  return dot_gemm_args(c->d, c->lhs, c->rhs, c->out, b);
}

/* Products of one tile each. */
static void gemm_products(void *arg, int64_t begin, int64_t end) {
  const GemmCall *c = arg;
  const Gemm *g = c->g;
  int64_t ahead = gemm_ahead_floats(g);
  float *scratch = cpu_scratch((size_t)(gemm_scratch_floats(g) + ahead) * 4);
  for (int64_t b = begin; b < end; b++) {
    GemmArgs x = product_args(c, b);
    gemm_ahead(g, &x, scratch, 0, gemm_ahead_parts(g));
    gemm_tile(g, &x, scratch, NULL, 0, scratch + ahead);
  }
}

/* prepacked: the operand packed ahead, of a single product; NULL: memory of our own. */
static Err *run_as(const Dot *d, const Gemm *g, const Op *op, void *const *in, void *const *out,
                   float *prepacked, bool fresh) {
  if (d->b * d->m * d->n == 0) return NULL;
  if (d->k == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  DotOperands o;
  if (!dot_operands(d, in, &o)) goto memory;
  GemmCall c = {.d = d, .g = g, .lhs = o.at[0], .rhs = o.at[1], .out = out[0]};
  int64_t tiles = g->tiles_m * g->tiles_n;
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k;
  if (tiles == 1 && !prepacked) {
    cpu_parallel(d->b, (int64_t)(GRAIN_FLOPS / flops) + 1, gemm_products, &c);
  } else {
    for (int64_t b = 0; b < d->b; b++) {
      GemmArgs x = product_args(&c, b);
      if (!gemm_run(g, &x, prepacked, fresh)) goto memory;
    }
  }
  dot_operands_free(&o);
  return NULL;
memory:
  dot_operands_free(&o);
  return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
}

Err *dot_gemm_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  return run_as(d, &d->gemm, op, in, out, NULL, false);
}

/* The operand that stays the same is packed once a loop. */
size_t dot_gemm_prepack_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  if (d->b != 1 || d->m * d->n * d->k == 0) return 0;
  int which = fixed & 2 ? 1 : 0;
  return (which ? d->rhs : d->lhs).direct ? (size_t)gemm_ahead_floats(&d->prepacked[which]) * 4 : 0;
}

Err *dot_gemm_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                            unsigned fixed, void *prepacked, bool fresh) {
  const Dot *d = state;
  return run_as(d, &d->prepacked[fixed & 2 ? 1 : 0], op, in, out, prepacked, fresh);
}
