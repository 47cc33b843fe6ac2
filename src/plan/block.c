/* One layer as a list of kernels, as one rank computes them for one microbatch. Tensor-parallel ranks
 * hold a share of every product's columns or rows and, between products, a share of the tokens
 * (sequence parallelism; Korthikanti et al. 2022). Sizes in bytes are those of 16-bit activations. */
#include <math.h>

#include "plan/plan_priv.h"

typedef struct Shape { /* of one rank */
  const PlanJob *j;
  const PlanModel *m;
  double tokens;  /* of the microbatch, whole rows */
  double own;     /* of them, between products */
  double tp, etp; /* ways */
  double operand; /* bytes of an element that a product's gradient needs */
  double wide;    /* of other elements that are kept */
  bool frozen;    /* products' gradients are not taken by their weights */
  Block *b;
} Shape;

double plan_tokens(const PlanLayout *l) { return l->mbs * l->seq / l->cp; }

static LayerOp *add(Shape *s, LayerOpKind kind, PlanTag tag) {
  LayerOp *o = &s->b->op[s->b->n++];
  assert(s->b->n <= BLOCK_OPS);
  *o = (LayerOp){.kind = kind, .tag = tag, .launches = 1};
  return o;
}

static LayerOp *product(Shape *s, PlanTag tag, double count, double m, double n, double k,
                        bool narrow) {
  LayerOp *o = add(s, KERNEL_PRODUCT, tag);
  o->count = count, o->m = m, o->n = n, o->k = k, o->narrow = narrow;
  o->frozen = s->j->lora_rank > 0;
  return o;
}

static void pass(Shape *s, PlanTag tag, double fwd, double bwd, double kept) {
  LayerOp *o = add(s, KERNEL_PASS, tag);
  double times = 1;
  const PlanSoftware *w = &s->j->software;
  if (w->stack == PLAN_XLA) times = plan_coef.xla_passes, o->launches = 0.5;
  else if (w->stack == PLAN_FSDP && !w->compiled) times = plan_coef.eager, o->launches = 2;
  if (s->j->layout.format == PLAN_TF32) times *= 2;
  o->fwd_bytes = fwd * times, o->bwd_bytes = bwd * times, o->kept = kept;
}

/* A norm before the products, the residual after them. adapted: low-rank adapters read it too. */
static void norm(Shape *s, bool adapted) {
  double h = s->m->hidden * s->own;
  pass(s, PLAN_NORM, 4 * h, 6 * h, s->frozen && !adapted ? 0 : s->operand * h);
}
static void residual(Shape *s) {
  double h = s->m->hidden * s->own;
  pass(s, PLAN_RESIDUAL, 6 * h, 4 * h, 2 * h);
}

/* Low-rank adapters beside a frozen product of n columns over k. */
static void adapters(Shape *s, PlanTag tag, double n, double k) {
  double r = s->j->lora_rank, t = s->tokens;
  if (r <= 0) return;
  LayerOp *o = product(s, tag, 1, t, r, k, false);
  o->frozen = false;
  o = product(s, tag, 1, t, n, r, false);
  o->frozen = false;
  pass(s, tag, 6 * n * t, 6 * k * t,
       2 * r * t); /* added to the product's result, and in its gradient */
}

/* ---- attention -------------------------------------------------------------------------------- */

static void latent_projections(Shape *s) {
  const PlanModel *m = s->m;
  double a = m->heads / s->tp, d = m->head_dim, v = m->value_dim > 0 ? m->value_dim : d;
  double t = s->tokens, h = m->hidden, nope = d - m->rope_dim;
  double down = m->kv_rank + m->rope_dim;
  if (m->q_rank > 0)
    product(s, PLAN_QKV, 1, s->own, m->q_rank, h, true)->kept = 2 * s->own * m->q_rank;
  product(s, PLAN_QKV, 1, s->own, down, h, true)->kept = 2 * s->own * down;
  pass(s, PLAN_NORM, 4 * s->own * (m->q_rank + down), 6 * s->own * (m->q_rank + down), 0);
  product(s, PLAN_LATENT, 1, t, a * d, m->q_rank > 0 ? m->q_rank : h, true)->kept = 2 * t * a * d;
  product(s, PLAN_LATENT, 1, t, a * (nope + v), m->kv_rank, true)->kept = 2 * t * a * (d + v);
  s->b->weights += m->q_rank > 0 ? m->q_rank * h + m->q_rank * a * d : h * a * d;
  s->b->weights += down * h + m->kv_rank * a * (nope + v);
}

static void attention(Shape *s, bool global) {
  const PlanModel *m = s->m;
  const PlanLayout *l = &s->j->layout;
  double d = m->head_dim, v = m->value_dim > 0 ? m->value_dim : d, t = s->tokens;
  double a = m->heads / s->tp, g = MAX(1, m->kv_heads / s->tp);
  if (global && m->global_dim > 0) {
    d = v = m->global_dim;
    if (m->global_kv_heads > 0) g = MAX(1, m->global_kv_heads / s->tp);
  }
  norm(s, true);
  if (m->latent) {
    latent_projections(s);
    g = a;
  } else {
    double n = a * d + g * (d + v);
    product(s, PLAN_QKV, 1, t, n, m->hidden, true)->kept = 2 * t * n;
    if (s->j->lora_rank > 0) adapters(s, PLAN_QKV, n, m->hidden);
    s->b->weights += n * m->hidden;
  }
  if (!m->learned) pass(s, PLAN_ROPE, 4 * t * (a + g) * d, 4 * t * (a + g) * d, 0);
  LayerOp *o = add(s, KERNEL_ATTENTION, PLAN_CORE);
  double sequences = MAX(1, l->mbs), queries = t / sequences;
  o->attention = (KernelAttention){.heads = sequences * a,
                                   .kv_heads = sequences * g,
                                   .queries = queries,
                                   .keys = l->seq,
                                   .dim = d,
                                   .value_dim = v,
                                   .seen = plan_keys_seen(m, global, l->seq),
                                   .unfused = s->j->software.unfused,
                                   .ring = l->cp,
                                   .year = s->j->software.year,
                                   .type = l->format == PLAN_FP16   ? DT_F16
                                           : l->format == PLAN_TF32 ? DT_F32
                                                                    : DT_BF16};
  if (o->attention.unfused) o->attention.seen = l->seq;
  o->kept = 2 * t * a * v + (o->attention.unfused ? 5 * sequences * a * queries * l->seq : 0);
  o->launches = o->attention.unfused ? 6 : 1;
  product(s, PLAN_OUT, 1, t, m->hidden, a * v, true);
  if (s->j->lora_rank > 0) adapters(s, PLAN_OUT, m->hidden, a * v);
  s->b->weights += m->hidden * a * v;
  residual(s);
  s->b->exchange.context_bytes = 2 * t * g * (d + v);
  if (m->latent) s->b->exchange.context_bytes = 2 * t * a * (d + v);
  s->b->exchange.tensor_fwd += 2, s->b->exchange.tensor_bwd += 2;
}

/* ---- what follows it -------------------------------------------------------------------------- */

/* Two or three matrices; rows of `count` experts each, or one dense unit. */
static void unit(Shape *s, PlanTag up, PlanTag act, PlanTag down, double count, double rows,
                 double ffn) {
  double wide = s->m->gated ? 2 : 1, all = rows * count, h = s->m->hidden;
  product(s, up, count, rows, wide * ffn, h, true)->kept = s->wide * all * wide * ffn;
  if (s->j->lora_all && up == PLAN_UP) adapters(s, up, wide * ffn, h);
  pass(s, act, 2 * all * (wide + 1) * ffn, 2 * all * (2 * wide + 1) * ffn,
       s->frozen && !s->j->lora_all ? 0 : s->operand * all * ffn);
  product(s, down, count, rows, h, ffn, true);
  if (s->j->lora_all && up == PLAN_UP) adapters(s, down, h, ffn);
}

static void mlp(Shape *s) {
  const PlanModel *m = s->m;
  norm(s, s->j->lora_all);
  unit(s, PLAN_UP, PLAN_ACT, PLAN_DOWN, 1, s->tokens, m->ffn / s->tp);
  residual(s);
  s->b->weights += (m->gated ? 3 : 2) * m->hidden * m->ffn / s->tp;
  s->b->exchange.tensor_fwd += 2, s->b->exchange.tensor_bwd += 2;
}

/* Room of each expert by the mean number of its tokens, where more are dropped (MaxText's recipes). */
#define CAPACITY 1.25

/* Experts with biases and clamps were no part of the libraries' grouped kernels before the middle of 2026: extra passes,
 * and the host waits for counts of tokens again, whoever sends them. */
bool plan_loose_experts(const PlanJob *j) {
  return j->model->biased && j->software.year > 0 && j->software.year < 2026.55;
}

static void mixture(Shape *s) {
  const PlanModel *m = s->m;
  const PlanSoftware *w = &s->j->software;
  double matrices = m->gated ? 3 : 2, h = m->hidden;
  double local = (double)m->experts / s->j->layout.ep,
         act = plan_loose_experts(s->j) ? plan_coef.unfused_act : 1;
  double rows =
      s->tokens * s->etp / s->tp * m->active; /* that one rank's experts see, on average */
  if (w->dropped && w->stack == PLAN_XLA) rows *= CAPACITY;
  else if (!w->balanced && !w->dropped && s->j->layout.ep > 1) rows *= plan_coef.uneven;
  norm(s, false);
  product(s, PLAN_ROUTER, 1, s->own, m->experts, h, false);
  pass(s, PLAN_ROUTER, 24 * s->own * m->experts, 24 * s->own * m->experts, 4 * s->own * m->experts);
  double moved = (w->stack == PLAN_XLA ? plan_coef.permute_tpu : plan_coef.permute) * rows * h;
  pass(s, PLAN_DISPATCH, 2 * moved, 2 * moved, s->operand * rows * h);
  double each = ceil(rows / local / 16) * 16; /* filled up, as narrow numbers and kernels want it */
  unit(s, PLAN_EXPERT_UP, PLAN_EXPERT_ACT, PLAN_EXPERT_DOWN, local, each, m->expert_ffn / s->etp);
  if (act > 1) /* the same once more, in pieces */
    pass(s, PLAN_EXPERT_ACT, (act - 1) * 6 * rows * m->expert_ffn / s->etp,
         (act - 1) * 10 * rows * m->expert_ffn / s->etp, 0);
  if (m->shared_ffn > 0)
    unit(s, PLAN_EXPERT_UP, PLAN_EXPERT_ACT, PLAN_EXPERT_DOWN, 1, s->tokens, m->shared_ffn / s->tp);
  residual(s);
  s->b->weights += h * m->experts + matrices * h * m->shared_ffn / s->tp;
  s->b->expert_weights += local * matrices * h * m->expert_ffn / s->etp;
  s->b->exchange.expert_bytes = 2 * rows * h;
  s->b->exchange.experts = local;
  if (s->etp > 1) s->b->exchange.tensor_fwd += 2, s->b->exchange.tensor_bwd += 2;
}

/* Mamba2: one product in, a short convolution and a scan in chunks, one product out (Dao and Gu 2024). */
static void mamba(Shape *s) {
  const PlanModel *m = s->m;
  double heads = m->mamba_heads / s->tp, inner = heads * m->mamba_dim, t = s->tokens;
  double state = 2 * m->mamba_groups * m->mamba_state / MIN(s->tp, m->mamba_groups);
  double in = 2 * inner + state + heads, chunk = 256;
  norm(s, false);
  product(s, PLAN_QKV, 1, t, in, m->hidden, true)->kept = 2 * t * in;
  double conv = inner + state;
  pass(s, PLAN_MIX, 4 * t * conv, 8 * t * conv, 2 * t * conv);
  /* scores inside chunks, states of chunks, their results: products by the head and chunk */
  double chunks = ceil(t / chunk) * heads;
  product(s, PLAN_MIX, chunks, chunk, chunk, m->mamba_state, false)->frozen = false;
  product(s, PLAN_MIX, chunks, chunk, m->mamba_dim, chunk + 2 * m->mamba_state, false)->frozen =
      false;
  pass(s, PLAN_MIX, 16 * t * inner, 32 * t * inner, 4 * t * inner);
  product(s, PLAN_OUT, 1, t, m->hidden, inner, true);
  residual(s);
  s->b->weights += in * m->hidden + inner * m->hidden;
  s->b->exchange.tensor_fwd += 2, s->b->exchange.tensor_bwd += 2;
}

void plan_block(const PlanJob *j, const LayerKind *kind, Block *out) {
  const PlanLayout *l = &j->layout;
  *out = (Block){0};
  Shape s = {.j = j, .m = j->model, .tokens = plan_tokens(l), .tp = l->tp, .b = out};
  s.etp = l->etp > 0 ? l->etp : l->tp;
  s.own = s.tokens / l->tp;
  int bits = l->format == PLAN_NVFP4 ? 5 : l->format >= PLAN_FP8 && l->format < PLAN_INT8 ? 8 : 16;
  s.operand = l->format == PLAN_TF32 ? 4 : bits / 8.0;
  s.wide = j->software.tuned ? s.operand : l->format == PLAN_TF32 ? 4 : 2;
  s.frozen = j->lora_rank > 0;
  if (kind->attention) attention(&s, kind->global);
  if (kind->mamba) mamba(&s);
  if (kind->mlp) mlp(&s);
  if (kind->moe) mixture(&s);
  out->exchange.tensor_bytes = 2 * s.tokens * j->model->hidden;
  out->input = 2 * s.own * j->model->hidden;
}
