/* Products by gemm.h. */
#include "dev/cpu/dot.h"

#define GRAIN_FLOPS 5e5 /* of small products, for one task */

void dot_gemm_plan(Dot *d) {
  if (d->b * d->m * d->n * d->k == 0) return;
  gemm_plan(&d->gemm, d->m, d->n, d->k, d->in, d->out, d->b, GEMM_SMALLER);
  gemm_plan(&d->kept[0], d->m, d->n, d->k, d->in, d->out, d->b, GEMM_A);
  gemm_plan(&d->kept[1], d->m, d->n, d->k, d->in, d->out, d->b, GEMM_B);
}

typedef struct GemmCall {
  const Dot *d;
  const Gemm *g;
  const char *lhs, *rhs;
  char *out;
  GemmArgs args; /* of the product whose tiles are being computed */
  int64_t round;
  float *ahead, *other;
} GemmCall;

static GemmArgs product_args(const GemmCall *c, int64_t b) {
  const Dot *d = c->d;
  int64_t lo, ro, e = dtype_bytes(d->in);
  dot_batch_at(d, b, &lo, &ro);
  return (GemmArgs){.a = c->lhs + lo * e,
                    .b = c->rhs + ro * e,
                    .a_row = d->lhs.free_stride,
                    .a_k = d->lhs.k_stride,
                    .b_col = d->rhs.free_stride,
                    .b_k = d->rhs.k_stride,
                    .c = c->out + b * d->m * d->n * dtype_bytes(d->out),
                    .c_row = d->n};
}

static void gemm_parts(void *arg, int64_t begin, int64_t end) {
  const GemmCall *c = arg;
  gemm_ahead(c->g, &c->args, c->ahead, begin, end);
}

static void gemm_others(void *arg, int64_t begin, int64_t end) {
  const GemmCall *c = arg;
  gemm_other(c->g, &c->args, c->round, c->other, begin, end);
}

static void gemm_tiles(void *arg, int64_t begin, int64_t end) { /* of this round */
  const GemmCall *c = arg;
  const Gemm *g = c->g;
  int64_t first = c->round * gemm_round_tiles(g);
  float *scratch = cpu_scratch((size_t)gemm_scratch_floats(g) * 4);
  for (int64_t t = first + begin; t < first + end; t++)
    gemm_tile(g, &c->args, c->ahead, c->other, t, scratch);
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

/* kept: the operand packed ahead, of a single product; NULL: memory of our own. */
static Err *run_as(const Dot *d, const Gemm *g, const Op *op, void *const *in, void *const *out,
                   float *kept, bool fresh) {
  if (d->b * d->m * d->n == 0) return NULL;
  if (d->k == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  GemmCall c = {.d = d, .g = g, .lhs = in[0], .rhs = in[1], .out = out[0], .ahead = kept};
  void *own[2] = {NULL};
  size_t bytes[2] = {0}, e = (size_t)dtype_bytes(d->in), ahead = 0, other = 0;
  Err *err = NULL;
  for (int i = 0; i < 2; i++) {
    const Side *s = i ? &d->rhs : &d->lhs;
    if (s->direct) continue;
    bytes[i] = (size_t)type_bytes(op->operands[i]->type);
    own[i] = cpu_block_alloc(bytes[i]);
    if (!own[i]) goto memory;
    cpu_permute(e, s->rank, s->dims, s->strides, in[i], own[i]);
    *(i ? &c.rhs : &c.lhs) = own[i];
  }
  int64_t tiles = g->tiles_m * g->tiles_n;
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k;
  if (tiles == 1 && !kept) {
    cpu_parallel(d->b, (int64_t)(GRAIN_FLOPS / flops) + 1, gemm_products, &c);
  } else {
    ahead = (size_t)gemm_ahead_floats(g) * 4;
    other = (size_t)gemm_other_floats(g) * 4;
    if (!kept && !(c.ahead = cpu_block_alloc(ahead))) goto memory;
    if (other && !(c.other = cpu_block_alloc(other))) goto memory;
    for (int64_t b = 0; b < d->b; b++) {
      c.args = product_args(&c, b);
      if (!kept || fresh) cpu_parallel(gemm_ahead_parts(g), 4, gemm_parts, &c);
      for (c.round = 0; c.round < gemm_rounds(g); c.round++) {
        cpu_parallel(gemm_other_parts(g, c.round), 4, gemm_others, &c);
        int64_t per = gemm_round_tiles(g);
        cpu_parallel(MIN(per, tiles - c.round * per), 1, gemm_tiles, &c);
      }
    }
  }
done:
  if (!kept) cpu_block_free(c.ahead, ahead);
  cpu_block_free(c.other, other);
  for (int i = 0; i < 2; i++) cpu_block_free(own[i], bytes[i]);
  return err;
memory:
  err = op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
  goto done;
}

Err *dot_gemm_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  return run_as(d, &d->gemm, op, in, out, NULL, false);
}

/* The operand that stays the same is packed once a loop. */
size_t dot_gemm_keep_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  if (d->b != 1 || d->m * d->n * d->k == 0) return 0;
  int which = fixed & 2 ? 1 : 0;
  return (which ? d->rhs : d->lhs).direct ? (size_t)gemm_ahead_floats(&d->kept[which]) * 4 : 0;
}

Err *dot_gemm_run_kept(void *state, const Op *op, void *const *in, void *const *out, unsigned fixed,
                       void *kept, bool fresh) {
  const Dot *d = state;
  return run_as(d, &d->kept[fixed & 2 ? 1 : 0], op, in, out, kept, fresh);
}
