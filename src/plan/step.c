/* A step: one microbatch of one stage from its layers' kernels and exchanges, then what the schedule,
 * the data-parallel exchanges, the optimizer and the host add. */
#include <math.h>

#include "plan/plan_priv.h"

const char *plan_part_name(PlanPart p) {
  static const char *const names[] = {
#define X(id, name) name,
      PLAN_PARTS(X)
#undef X
  };
  return names[p];
}

static const struct {
  const char *name;
  DType type;
} formats[] = {
#define X(id, name, type) {name, type},
    PLAN_FORMATS(X)
#undef X
};
const char *plan_format_name(PlanFormat f) { return formats[f].name; }

/* Seconds of one layer, or of all layers of a stage, for one microbatch. */
typedef struct Work {
  double fwd[PLAN_PARTS_N], bwd[PLAN_PARTS_N];
  double launches;    /* forwards and backwards */
  double kept, whole; /* bytes kept of a layer; kept if nothing were computed again */
} Work;

static double total(const double *part) {
  double sum = 0;
  for (int i = 0; i < PLAN_PARTS_N; i++) sum += part[i];
  return sum;
}

static bool narrow_format(PlanFormat f) { return f >= PLAN_FP8; }

/* Bytes that move to narrow one element. */
static double quant_bytes(PlanFormat f) {
  switch (f) {
  case PLAN_FP8: return plan_coef.quant;
  case PLAN_FP8_CURRENT: return plan_coef.quant_current;
  case PLAN_FP8_ROWS: return plan_coef.quant_rows;
  case PLAN_INT8: return plan_coef.quant_int;
  case PLAN_FP8_BLOCKS:
  case PLAN_MXFP8: return plan_coef.quant_blocks;
  case PLAN_NVFP4: return plan_coef.quant_four;
  default: return 0;
  }
}

static DType wide_type(PlanFormat f) {
  return f == PLAN_FP16 ? DT_F16 : f == PLAN_TF32 ? DT_F32 : DT_BF16;
}

/* ---- kernels of a layer ----------------------------------------------------------------------- */

/* Bytes of an accumulated gradient: Megatron adds up in 32 bits, newer recipes in 16. */
static double gradient_bytes(const PlanSoftware *w) {
  bool newer = w->year == 0 || w->year > 2024;
  return w->stack == PLAN_MEGATRON && !newer ? 4 : 2;
}

static void product_time(PlanMachine *h, const PlanJob *j, const LayerOp *o, double times,
                         Work *w) {
  PlanFormat f = j->layout.format;
  bool narrow = o->narrow && narrow_format(f);
  DType type = o->narrow ? formats[f].type : wide_type(f);
  double fwd = plan_product_s(h->kernels, type, o->count, o->m, o->n, o->k);
  double bwd = plan_product_s(h->kernels, type, o->count, o->m, o->k, o->n);
  if (!o->frozen) bwd += plan_product_s(h->kernels, type, o->count, o->k, o->n, o->m);
  double share = plan_library_share(h->chip, j->software.year);
  if (h->chip->kind == CHIP_GPU && (fmod(o->n, 64) || fmod(o->k, 64)) && o->n >= 512 && o->k >= 512)
    share *= plan_coef.rough;
  fwd /= share, bwd /= share;
  bool experts = o->tag == PLAN_EXPERT_UP || o->tag == PLAN_EXPERT_DOWN;
  if (experts && o->count > 1) fwd /= plan_coef.grouped, bwd /= plan_coef.grouped;
  if (!o->frozen &&
      j->software.stack == PLAN_MEGATRON) /* added to what earlier microbatches made */
    bwd += plan_pass_s(h->kernels, (2 * gradient_bytes(&j->software) - 2) * o->count * o->n * o->k);
  w->fwd[PLAN_PRODUCTS] += fwd, w->bwd[PLAN_PRODUCTS] += bwd;
  /* nobody reads what would be computed again: XLA leaves it out, PyTorch stops before it */
  if (j->software.stack != PLAN_MEGATRON && o->kept == 0) times = 0;
  w->bwd[PLAN_RECOMPUTE] += fwd * times;
  if (!narrow) return;
  double q = quant_bytes(f) * o->count * o->m;
  double qf = plan_pass_s(h->kernels, q * o->k), qb = plan_pass_s(h->kernels, q * o->n);
  w->fwd[PLAN_QUANTISE] += qf, w->bwd[PLAN_QUANTISE] += qb;
  w->bwd[PLAN_RECOMPUTE] += qf * times;
  w->launches += 3 * 2;
}

static void op_time(PlanMachine *h, const PlanJob *j, const LayerOp *o, Work *w) {
  const PlanLayout *l = &j->layout;
  double times =
      l->recompute & PLAN_TAG(o->tag) ? (l->recompute_share > 0 ? l->recompute_share : 1) : 0;
  w->launches += o->launches * (3 + times);
  w->kept += o->kept * (1 - times);
  w->whole += o->kept;
  if (o->kind == KERNEL_PRODUCT) {
    product_time(h, j, o, times, w);
  } else if (o->kind == KERNEL_ATTENTION) {
    double bwd, fwd = plan_attention_s(h->kernels, &o->attention, &bwd);
    w->fwd[PLAN_ATTENTION] += fwd, w->bwd[PLAN_ATTENTION] += bwd;
    w->bwd[PLAN_RECOMPUTE] += fwd * times;
  } else {
    double fwd = plan_pass_s(h->kernels, o->fwd_bytes);
    w->fwd[PLAN_PASSES] += fwd;
    w->bwd[PLAN_PASSES] += plan_pass_s(h->kernels, o->bwd_bytes);
    w->bwd[PLAN_RECOMPUTE] += fwd * times;
  }
}

/* ---- what its ranks exchange ------------------------------------------------------------------- */

/* So much of an exchange runs behind computing, which it disturbs. */
static void hide(double s, double hidden, double *part, double *disturbed) {
  *part += s * (1 - hidden);
  *disturbed += s * hidden * plan_coef.disturb;
}

static void tensor_time(const PlanMachine *h, const PlanJob *j, const Exchanges *x, Work *w) {
  const PlanLayout *l = &j->layout;
  const PlanSoftware *sw = &j->software;
  bool newer = sw->year == 0 || sw->year > 2023.5;
  bool cuts = sw->stack == PLAN_XLA || (sw->stack == PLAN_MEGATRON && newer);
  double one = plan_exchange_s(h, NET_ALL_GATHER, x->tensor_bytes, l->tp, 1);
  double hidden = cuts ? plan_coef.tensor_hidden : 0;
  double recompute = l->recompute & PLAN_TAG(PLAN_QKV) ? x->tensor_fwd : 0;
  hide(one * x->tensor_fwd, hidden, &w->fwd[PLAN_TENSOR], &w->fwd[PLAN_PRODUCTS]);
  hide(one * (x->tensor_bwd + recompute), hidden, &w->bwd[PLAN_TENSOR], &w->bwd[PLAN_PRODUCTS]);
}

/* Copies of a token that leave a rank: kernels made for it send one to each rank, or each server, that has
 * any of its experts; others one for each expert. */
static double copies_sent(const PlanMachine *h, const PlanJob *j, int ep, int stride) {
  const PlanSoftware *sw = &j->software;
  double k = j->model->active, places = ep;
  if (!sw->fused_dispatch) return 1;
  if ((int64_t)ep * stride > h->net.domain) places = (double)ep * stride / h->net.domain;
  return places * (1 - pow(1 - 1 / places, k)) / k;
}

static void expert_time(const PlanMachine *h, const PlanJob *j, const Exchanges *x, Work *w) {
  const PlanLayout *l = &j->layout;
  const PlanSoftware *sw = &j->software;
  int etp = l->etp > 0 ? l->etp : l->tp;
  double bytes = x->expert_bytes * copies_sent(h, j, l->ep, etp);
  double one = 2 * plan_exchange_s(h, NET_ALL_TO_ALL, bytes, l->ep, etp);
  double hidden = sw->hidden_dispatch ? 0.8 : plan_coef.expert_hidden;
  hide(one, hidden, &w->fwd[PLAN_EXPERT], &w->fwd[PLAN_PRODUCTS]);
  hide(one, hidden, &w->bwd[PLAN_EXPERT], &w->bwd[PLAN_PRODUCTS]);
}

/* Of that, when another microbatch is at work meanwhile. */
#define STALL_SHOWN 0.15

/* How many tokens go where is found out on the GPU; the host waits for it to launch what follows, of another
 * microbatch too: one thread launches all. Dispatch that keeps the counts on the GPU lets it run ahead. */
static void expert_host(const PlanJob *j, const Exchanges *x, Work *w) {
  const PlanSoftware *sw = &j->software;
  if (sw->stack == PLAN_XLA || sw->graphs || x->experts <= 0) return;
  bool loose = sw->stack == PLAN_MEGATRON && plan_loose_experts(j);
  bool fused = sw->dropped || (sw->fused_dispatch && !loose);
  double s = (fused ? plan_coef.expert_stall_fused : plan_coef.expert_stall) +
             plan_coef.expert_launch * x->experts;
  if (sw->hidden_dispatch && !sw->host_counts) s *= STALL_SHOWN;
  w->fwd[PLAN_HOST] += s / 3, w->bwd[PLAN_HOST] += s * 2 / 3;
}

static void exchange_time(const PlanMachine *h, const PlanJob *j, const Block *b, Work *w) {
  const PlanLayout *l = &j->layout;
  const Exchanges *x = &b->exchange;
  if (l->tp > 1) tensor_time(h, j, x, w);
  if (l->cp > 1 && x->context_bytes > 0) {
    double one = plan_exchange_s(h, NET_ALL_GATHER, x->context_bytes * l->cp, l->cp, l->tp);
    hide(one, plan_coef.context_hidden, &w->fwd[PLAN_CONTEXT], &w->fwd[PLAN_ATTENTION]);
    hide(one * 2, plan_coef.context_hidden, &w->bwd[PLAN_CONTEXT], &w->bwd[PLAN_ATTENTION]);
  }
  if (l->ep > 1 && x->expert_bytes > 0) expert_time(h, j, x, w);
  expert_host(j, x, w);
}

/* ---- weights that are cut over data ways -------------------------------------------------------- */

/* Among how many ranks, how far apart, the dense weights and the experts' are cut, or summed up. */
typedef struct Spread {
  int ranks, stride, expert_ranks, expert_stride;
} Spread;

static int expert_ways(const PlanLayout *l) { return l->ep * (l->etp > 0 ? l->etp : l->tp); }

static Spread spread(const PlanLayout *l, int ranks) {
  return (Spread){ranks, l->tp, MAX(1, ranks * l->tp / expert_ways(l)), expert_ways(l)};
}

static double both(const PlanMachine *h, NetKind kind, double dense, double experts,
                   const Spread *s) {
  return plan_exchange_s(h, kind, dense, s->ranks, s->stride) +
         plan_exchange_s(h, kind, experts, s->expert_ranks, s->expert_stride);
}

static int ways_cut(const PlanLayout *l) {
  int ranks = l->dp * l->cp;
  return l->zero != PLAN_ZERO_3 ? 1 : l->fsdp > 0 ? MIN(l->fsdp, ranks) : ranks;
}

static bool xla_on_gpu(const PlanMachine *h, const PlanJob *j) {
  return j->software.stack == PLAN_XLA && h->chip->kind == CHIP_GPU;
}

/* Weights gathered and gradients scattered around one layer, in each microbatch. */
static void shard_time(const PlanMachine *h, const PlanJob *j, const Block *b, double share,
                       Work *layer, Work *sum) {
  const PlanLayout *l = &j->layout;
  if (l->zero != PLAN_ZERO_3 || l->keep_gathered) return;
  Spread s = spread(l, ways_cut(l));
  double gather = both(h, NET_ALL_GATHER, 2 * b->weights, 2 * b->expert_weights, &s), scatter = 0;
  if (!j->lora_rank)
    scatter = both(h, NET_REDUCE_SCATTER, 2 * b->weights, 2 * b->expert_weights, &s);
  double hidden = xla_on_gpu(h, j) ? plan_coef.xla_hidden : plan_coef.shard_hidden;
  double out_f = MAX(gather * (1 - hidden), gather - total(layer->fwd) * hidden);
  double out_b =
      MAX((gather + scatter) * (1 - hidden), gather + scatter - total(layer->bwd) * hidden);
  sum->fwd[PLAN_SHARDS] += share * (out_f + plan_coef.disturb * (gather - out_f));
  sum->bwd[PLAN_SHARDS] += share * (out_b + plan_coef.disturb * (gather + scatter - out_b));
}

static void add(Work *to, const Work *from, double share) {
  for (int i = 0; i < PLAN_PARTS_N; i++)
    to->fwd[i] += share * from->fwd[i], to->bwd[i] += share * from->bwd[i];
  to->launches += share * from->launches;
  to->kept += share * from->kept;
  to->whole += share * from->whole;
}

/* An average layer. */
static void layer_work(PlanMachine *h, const PlanJob *j, Work *out, StageLoad *load) {
  LayerKind kind[LAYER_KINDS];
  Block b;
  int n = plan_layer_kinds(j->model, kind);
  double layers = 0;
  for (int i = 0; i < n; i++) layers += kind[i].count;
  for (int i = 0; i < n; i++) {
    Work one = {0};
    double share = kind[i].count / layers;
    plan_block(j, &kind[i], &b);
    for (int k = 0; k < b.n; k++) op_time(h, j, &b.op[k], &one);
    one.kept += b.input * (j->layout.recompute ? 1 : 0);
    exchange_time(h, j, &b, &one);
    shard_time(h, j, &b, share, &one, out);
    add(out, &one, share);
    load->weights += share * b.weights;
    load->expert_weights += share * b.expert_weights;
    load->largest_layer = MAX(load->largest_layer, b.weights + b.expert_weights);
    load->recompute = MAX(load->recompute, one.whole - one.kept);
  }
}

/* ---- the head ---------------------------------------------------------------------------------- */

/* Logits and their loss, on the last stage; further heads of models that predict several tokens. */
static void head_work(PlanMachine *h, const PlanJob *j, Work *out) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  double t = plan_tokens(l) * (m->masked > 0 ? m->masked : 1), v = m->vocab / l->tp;
  DType wide = wide_type(l->format);
  double heads = 1 + m->mtp_layers;
  double fwd = plan_product_s(h->kernels, wide, 1, t, v, m->hidden);
  double bwd = plan_product_s(h->kernels, wide, 1, t, m->hidden, v);
  if (!j->lora_rank) bwd += plan_product_s(h->kernels, wide, 1, m->hidden, v, t);
  out->fwd[PLAN_PRODUCTS] += heads * fwd, out->bwd[PLAN_PRODUCTS] += heads * bwd;
  bool fused = j->software.stack == PLAN_XLA || j->software.compiled;
  double bytes = fused ? 8 : 14; /* to 32 bits, the largest, the sum; and backwards */
  out->fwd[PLAN_PASSES] += heads * plan_pass_s(h->kernels, bytes * t * v);
  out->bwd[PLAN_PASSES] += heads * plan_pass_s(h->kernels, bytes / 2 * t * v);
  out->launches += 20 * heads;
}

/* ---- the schedule ------------------------------------------------------------------------------ */

/* Layers of the stage that has most. Frameworks give the embedding and the head a layer's place where
 * that makes stages even. */
static double most_layers(const PlanModel *m, const PlanLayout *l) {
  int chunks = l->pp * MAX(1, l->vpp);
  double layers = m->layers + m->mtp_layers;
  if (l->pp == 1) return layers;
  if (fmod(layers, chunks) == 0) return layers / l->pp;
  if (fmod(layers + 2, chunks) == 0) return (layers + 2) / l->pp;
  if (fmod(layers + 1, chunks) == 0) return (layers + 1) / l->pp;
  return ceil(layers / l->pp);
}

static double host_time(const PlanJob *j, double launches, double layers) {
  const PlanSoftware *w = &j->software;
  if (w->stack == PLAN_XLA || w->graphs) return 0;
  double all = launches * plan_coef.launch + 2 * layers * plan_coef.launch_layer;
  return w->some_graphs ? all / 2 : all;
}

/* Gradients out, weights in, once a step, behind the microbatches next to them. */
static void data_time(const PlanMachine *h, const PlanJob *j, const StageLoad *s, double window,
                      PlanStep *out) {
  const PlanLayout *l = &j->layout;
  int cut = ways_cut(l);
  double all = s->weights * s->trained / cut, experts = s->expert_weights * s->trained / cut;
  double grad = gradient_bytes(&j->software), t;
  if (l->zero == PLAN_ZERO_3 || l->zero == PLAN_ZERO_NONE) {
    Spread copies = spread(l, l->dp * l->cp / cut);
    copies.stride *= cut, copies.expert_stride *= MAX(1, cut * l->tp / expert_ways(l));
    t = both(h, NET_ALL_REDUCE, grad * all, grad * experts, &copies);
  } else {
    Spread ranks = spread(l, l->dp * l->cp);
    double weight = narrow_format(l->format) && l->format != PLAN_INT8 ? 1 : 2;
    t = both(h, NET_REDUCE_SCATTER, grad * all, grad * experts, &ranks) +
        both(h, NET_ALL_GATHER, weight * all, weight * experts, &ranks);
  }
  double most = xla_on_gpu(h, j) ? plan_coef.xla_hidden : plan_coef.data_hidden;
  double hidden = most * MIN(window, t);
  out->part[PLAN_GRADIENTS] = t - hidden + plan_coef.disturb * hidden;
}

static void optimizer_time(const PlanMachine *h, const PlanJob *j, const StageLoad *s,
                           PlanStep *out) {
  const PlanLayout *l = &j->layout;
  int cut = l->zero == PLAN_ZERO_NONE ? 1 : l->zero == PLAN_ZERO_3 ? ways_cut(l) : l->dp * l->cp;
  Spread ranks = spread(l, cut);
  double own = s->weights / cut + s->expert_weights / ranks.expert_ranks;
  double bytes = j->optimizer == PLAN_SGD || j->optimizer == PLAN_ADAFACTOR ? 20 : 34;
  if (j->optimizer == PLAN_LAMB) bytes += 16;
  out->part[PLAN_OPTIMIZER] = plan_pass_s(h->kernels, bytes * own * s->trained);
}

/* ---- the whole -------------------------------------------------------------------------------- */

/* All microbatches through the stages. Returns the time of the fullest stage for one of them. */
static double schedule(PlanMachine *h, const PlanJob *j, const Work *layer, const Work *head,
                       double ga, PlanStep *out) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  double layers = m->layers + m->mtp_layers, most = most_layers(m, l), vpp = MAX(1, l->vpp);
  double one = total(layer->fwd) + total(layer->bwd), end = total(head->fwd) + total(head->bwd);
  /* the fullest stage sets the pace; the last one has the head and often fewer layers */
  double rest = layers - most * (l->pp - 1), last = rest * one + end;
  bool with_head = last >= most * one;
  double here = with_head ? rest : most, pace = MAX(most * one, last);
  for (int i = 0; i < PLAN_PARTS_N; i++) {
    out->part[i] = ga * here * (layer->fwd[i] + layer->bwd[i]);
    if (with_head) out->part[i] += ga * (head->fwd[i] + head->bwd[i]);
  }
  /* 1F1B: what the other stages do before the first and after the last microbatch of this one; chunks
   * of layers shorten it (Narayanan et al. 2021) */
  out->part[PLAN_BUBBLE] = (layers * one + end - pace) / vpp;
  if (l->pp > 1) {
    double bytes = 2 * plan_tokens(l) * m->hidden / l->tp;
    double send = plan_exchange_s(h, NET_PERMUTE, bytes, l->pp, l->tp * l->cp * l->dp);
    double shown = vpp > 1 ? 1 - plan_coef.stage_hidden : 1;
    out->part[PLAN_STAGES] = 2 * vpp * (ga + (l->pp - 1) / vpp) * send * shown;
  }
  double launches = here * layer->launches + (with_head ? head->launches : 0);
  double host = ga * host_time(j, launches, here);
  out->part[PLAN_HOST] += j->software.blocking ? host : MAX(0, host - ga * pace);
  double once = h->chip->kind == CHIP_TPU ? 0 : j->software.graphs ? 0.25 : 1;
  out->part[PLAN_HOST] += plan_coef.step_host * once;
  return pace;
}

/* What the fullest stage holds: its layers, the embedding or the head, activations of the microbatches
 * that are on their way. */
static void load_stage(const PlanJob *j, const Work *layer, double ga, StageLoad *s) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  s->layers = most_layers(m, l);
  s->weights *= s->layers, s->expert_weights *= s->layers;
  double first = plan_embedding_parameters(m, false) / l->tp,
         last = plan_embedding_parameters(m, true) / l->tp;
  s->weights += l->pp == 1 ? first + last : MAX(first, last);
  if (j->lora_rank > 0) s->trained = 2.0 * j->lora_rank / m->hidden;
  s->kept = layer->kept;
  double vpp = MAX(1, l->vpp);
  s->microbatches = l->pp == 1 ? 1 : MIN(ga, l->pp + (vpp > 1 ? (l->pp - 1) / vpp : 0));
  s->head = m->vocab * m->hidden / l->tp;
  s->logits = plan_tokens(l) * m->vocab / l->tp * (m->masked > 0 ? m->masked : 1);
}

void plan_step(PlanMachine *h, const PlanJob *j, PlanStep *out) {
  const PlanLayout *l = &j->layout;
  *out = (PlanStep){0};
  Work layer = {0}, head = {0};
  StageLoad s = {.trained = 1};
  layer_work(h, j, &layer, &s);
  head_work(h, j, &head);
  double ga = MAX(1, round(l->gbs / (l->mbs * l->dp)));
  double pace = schedule(h, j, &layer, &head, ga, out);
  load_stage(j, &layer, ga, &s);
  data_time(h, j, &s, pace, out);
  optimizer_time(h, j, &s, out);
  out->part[PLAN_OTHER] = plan_coef.other * total(out->part);
  out->time_s = total(out->part);
  plan_memory(h, j, &s, out);
  double share = j->lora_rank > 0 ? 2.0 / 3 : 1; /* no gradients of frozen weights */
  out->flops = share * plan_flops_per_token(j->model, l->seq) * l->gbs * l->seq;
  out->mfu = out->flops / (out->time_s * h->chip->peak_flops * l->devices);
}
