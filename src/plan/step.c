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

static bool narrow_format(PlanFormat f) { return f >= PLAN_FP8 && f <= PLAN_NVFP4; }

/* Bytes that move to narrow one element. */
static double quant_bytes(PlanFormat f) {
  switch (f) {
  case PLAN_FP8: return plan_law.quant;
  case PLAN_FP8_CURRENT: return plan_law.quant_current;
  case PLAN_FP8_ROWS:
  case PLAN_FP8_BLOCKS:
  case PLAN_MXFP8: return plan_law.quant_blocks;
  case PLAN_NVFP4: return plan_law.quant_four;
  default: return 0;
  }
}

/* ---- kernels of a layer ----------------------------------------------------------------------- */

static void product_time(PlanMachine *h, const PlanJob *j, const LayerOp *o, Work *w,
                         double share) {
  PlanFormat f = j->layout.format;
  DType wide = f == PLAN_FP16 ? DT_F16 : f == PLAN_TF32 ? DT_F32 : DT_BF16;
  DType type = o->narrow ? formats[f].type : wide;
  double fwd = plan_product_s(h->kernels, type, o->count, o->m, o->n, o->k);
  double bwd = plan_product_s(h->kernels, type, o->count, o->m, o->k, o->n);
  if (!o->frozen) {
    bwd += plan_product_s(h->kernels, type, o->count, o->k, o->n, o->m);
    /* weights' gradients are added up in 32 bits where there are several microbatches */
    if (j->software.stack == PLAN_MEGATRON)
      bwd += plan_pass_s(h->kernels, 6 * o->count * o->n * o->k);
  }
  w->fwd[PLAN_PRODUCTS] += share * fwd, w->bwd[PLAN_PRODUCTS] += share * bwd;
  double again = j->layout.again & PLAN_TAG(o->tag) ? 1 : 0;
  if (again && j->software.stack == PLAN_XLA && o->kept == 0) again = 0; /* nobody reads it */
  double times = j->layout.again_share > 0 ? again * j->layout.again_share : again;
  w->bwd[PLAN_AGAIN] += share * fwd * times;
  if (!o->narrow || !narrow_format(f)) return;
  double q = quant_bytes(f) * o->count * o->m;
  double qf = plan_pass_s(h->kernels, q * o->k), qb = plan_pass_s(h->kernels, q * o->n);
  w->fwd[PLAN_QUANTISE] += share * qf, w->bwd[PLAN_QUANTISE] += share * qb;
  w->bwd[PLAN_AGAIN] += share * qf * times;
  w->launches += share * 3 * 2;
}

static void op_time(PlanMachine *h, const PlanJob *j, const LayerOp *o, double share, Work *w) {
  double times = j->layout.again & PLAN_TAG(o->tag) ? 1 : 0;
  if (times > 0 && j->layout.again_share > 0) times = j->layout.again_share;
  w->launches += share * o->launches * (3 + times);
  w->kept += share * o->kept * (1 - times);
  w->whole += share * o->kept;
  if (o->kind == KERNEL_PRODUCT) {
    product_time(h, j, o, w, share);
  } else if (o->kind == KERNEL_ATTENTION) {
    double bwd, fwd = plan_attention_s(h->kernels, &o->attention, &bwd);
    w->fwd[PLAN_ATTENTION] += share * fwd, w->bwd[PLAN_ATTENTION] += share * bwd;
    w->bwd[PLAN_AGAIN] += share * fwd * times;
  } else {
    double fwd = plan_pass_s(h->kernels, o->fwd_bytes);
    w->fwd[PLAN_PASSES] += share * fwd;
    w->bwd[PLAN_PASSES] += share * plan_pass_s(h->kernels, o->bwd_bytes);
    w->bwd[PLAN_AGAIN] += share * fwd * times;
  }
}

/* ---- what its ranks exchange ------------------------------------------------------------------- */

static void hide(double s, double hidden, double *part, double *disturbed) {
  *part += s * (1 - hidden);
  *disturbed += s * hidden * plan_law.disturb;
}

static void exchange_time(const PlanMachine *h, const PlanJob *j, const Block *b, double share,
                          Work *w) {
  const PlanLayout *l = &j->layout;
  const Exchanges *x = &b->exchange;
  const PlanSoftware *sw = &j->software;
  if (l->tp > 1) {
    double one = plan_exchange_s(h, NET_ALL_GATHER, x->tensor_bytes, l->tp, 1);
    bool cuts = sw->stack == PLAN_XLA || sw->compiled ||
                (sw->stack == PLAN_MEGATRON && (sw->year == 0 || sw->year > 2023.5));
    double hidden = cuts ? plan_law.tensor_hidden : 0;
    hide(share * one * x->tensor_fwd, hidden, &w->fwd[PLAN_TENSOR], &w->fwd[PLAN_PRODUCTS]);
    double again = l->again & PLAN_TAG(PLAN_QKV) ? x->tensor_fwd : 0;
    hide(share * one * (x->tensor_bwd + again), hidden, &w->bwd[PLAN_TENSOR],
         &w->bwd[PLAN_PRODUCTS]);
  }
  if (l->cp > 1 && x->context_bytes > 0) {
    double one = plan_exchange_s(h, NET_ALL_GATHER, x->context_bytes * l->cp, l->cp, l->tp);
    hide(share * one, plan_law.context_hidden, &w->fwd[PLAN_CONTEXT], &w->fwd[PLAN_ATTENTION]);
    hide(share * one * 2, plan_law.context_hidden, &w->bwd[PLAN_CONTEXT], &w->bwd[PLAN_ATTENTION]);
  }
  if (l->ep > 1 && x->expert_bytes > 0) {
    int etp = l->etp > 0 ? l->etp : l->tp;
    double one = 2 * plan_exchange_s(h, NET_ALL_TO_ALL, x->expert_bytes, l->ep, etp);
    double hidden = sw->hidden_dispatch ? 0.8 : plan_law.expert_hidden;
    hide(share * one, hidden, &w->fwd[PLAN_EXPERT], &w->fwd[PLAN_PRODUCTS]);
    hide(share * one, hidden, &w->bwd[PLAN_EXPERT], &w->bwd[PLAN_PRODUCTS]);
  }
}

/* Weights gathered and gradients scattered around one layer, in each microbatch. */
static void shard_time(const PlanMachine *h, const PlanJob *j, const Block *b, double share,
                       Work *layer, Work *sum) {
  const PlanLayout *l = &j->layout;
  if (l->zero != PLAN_ZERO_3 || l->keep_gathered) return;
  int ranks = l->dp * l->cp, cut = l->fsdp > 0 ? MIN(l->fsdp, ranks) : ranks;
  int etp = l->etp > 0 ? l->etp : l->tp, expert_cut = MAX(1, cut * l->tp / (l->ep * etp));
  double byte = l->format >= PLAN_FP8 && l->format < PLAN_INT8 ? 2 : 2;
  double gather =
      plan_exchange_s(h, NET_ALL_GATHER, byte * b->weights, cut, l->tp) +
      plan_exchange_s(h, NET_ALL_GATHER, byte * b->expert_weights, expert_cut, l->ep * etp);
  double scatter = j->lora_rank > 0
                       ? 0
                       : plan_exchange_s(h, NET_REDUCE_SCATTER, 2 * b->weights, cut, l->tp) +
                             plan_exchange_s(h, NET_REDUCE_SCATTER, 2 * b->expert_weights,
                                             expert_cut, l->ep * etp);
  double fwd = total(layer->fwd) * plan_law.shard_hidden,
         bwd = total(layer->bwd) * plan_law.shard_hidden;
  double out_f = MAX(0, gather - fwd), out_b = MAX(0, gather + scatter - bwd);
  sum->fwd[PLAN_SHARDS] += share * (out_f + plan_law.disturb * (gather - out_f));
  sum->bwd[PLAN_SHARDS] += share * (out_b + plan_law.disturb * (gather + scatter - out_b));
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
    for (int k = 0; k < b.n; k++) op_time(h, j, &b.op[k], 1, &one);
    one.kept += b.input * (j->layout.again ? 1 : 0);
    exchange_time(h, j, &b, 1, &one);
    shard_time(h, j, &b, share, &one, out);
    add(out, &one, share);
    load->weights += share * b.weights;
    load->expert_weights += share * b.expert_weights;
    load->largest_layer = MAX(load->largest_layer, b.weights + b.expert_weights);
    load->again = MAX(load->again, one.whole - one.kept);
  }
}

/* ---- the head ---------------------------------------------------------------------------------- */

/* Logits and their loss, on the last stage; further heads of models that predict several tokens. */
static void head_work(PlanMachine *h, const PlanJob *j, Work *out) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  double t = plan_tokens(l) * (m->masked > 0 ? m->masked : 1), v = m->vocab / l->tp;
  DType wide = l->format == PLAN_FP16 ? DT_F16 : l->format == PLAN_TF32 ? DT_F32 : DT_BF16;
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
  return launches * plan_law.launch + 2 * layers * plan_law.launch_layer;
}

/* Gradients out, weights in, once a step, behind the microbatches next to them. */
static void data_time(const PlanMachine *h, const PlanJob *j, const StageLoad *s, double fwd,
                      double bwd, PlanStep *out) {
  const PlanLayout *l = &j->layout;
  int ranks = l->dp * l->cp, etp = l->etp > 0 ? l->etp : l->tp;
  int cut = l->zero == PLAN_ZERO_3 ? (l->fsdp > 0 ? MIN(l->fsdp, ranks) : ranks) : 1;
  double all = s->weights * s->trained / cut, experts = s->expert_weights * s->trained / cut;
  int groups = ranks / cut, expert_groups = MAX(1, groups * l->tp / (l->ep * etp));
  double grad = j->software.stack == PLAN_MEGATRON ? 4 : 2;
  double t;
  if (l->zero == PLAN_ZERO_3 || l->zero == PLAN_ZERO_NONE) {
    t = plan_exchange_s(h, NET_ALL_REDUCE, grad * all, groups, l->tp * cut) +
        plan_exchange_s(h, NET_ALL_REDUCE, grad * experts, expert_groups, l->ep * etp * cut);
  } else {
    double bytes = grad + (narrow_format(l->format) ? 1 : 2);
    t = plan_exchange_s(h, NET_ALL_GATHER, bytes * all, ranks, l->tp) +
        plan_exchange_s(h, NET_ALL_GATHER, bytes * experts, expert_groups, l->ep * etp);
  }
  double window = plan_law.data_hidden * (fwd + bwd),
         hidden = MIN(window, plan_law.data_hidden * t);
  out->part[PLAN_GRADIENTS] = t - hidden + plan_law.disturb * hidden;
}

static void optimizer_time(const PlanMachine *h, const PlanJob *j, const StageLoad *s,
                           PlanStep *out) {
  const PlanLayout *l = &j->layout;
  double ranks = (double)l->dp * l->cp, cut = l->zero == PLAN_ZERO_NONE ? 1 : ranks;
  if (l->zero == PLAN_ZERO_3 && l->fsdp > 0) cut = l->fsdp;
  int etp = l->etp > 0 ? l->etp : l->tp;
  double own = s->weights / cut + s->expert_weights / MAX(1, cut * l->tp / (l->ep * etp));
  double bytes = j->optimizer == PLAN_SGD || j->optimizer == PLAN_ADAFACTOR ? 20 : 34;
  if (j->optimizer == PLAN_LAMB) bytes += 16;
  out->part[PLAN_OPTIMIZER] = plan_pass_s(h->kernels, bytes * own * s->trained);
}

void plan_step(PlanMachine *h, const PlanJob *j, PlanStep *out) {
  const PlanModel *m = j->model;
  const PlanLayout *l = &j->layout;
  *out = (PlanStep){0};
  Work layer = {0}, head = {0};
  StageLoad s = {.trained = 1};
  layer_work(h, j, &layer, &s);
  head_work(h, j, &head);
  double layers = m->layers + m->mtp_layers, most = most_layers(m, l), mean = layers / l->pp;
  double ga = MAX(1, round(l->gbs / (l->mbs * l->dp))), vpp = MAX(1, l->vpp);
  double one = total(layer.fwd) + total(layer.bwd), end = total(head.fwd) + total(head.bwd);
  /* the fullest stage sets the pace; the last one has the head and often fewer layers */
  double last = (layers - most * (l->pp - 1)) * one + end;
  if (l->pp == 1) last = layers * one + end;
  double pace = MAX(most * one, last);
  bool with_head = last >= most * one;
  double here = with_head && l->pp > 1 ? layers - most * (l->pp - 1) : most;
  for (int i = 0; i < PLAN_PARTS_N; i++) {
    out->part[i] = ga * here * (layer.fwd[i] + layer.bwd[i]);
    if (with_head) out->part[i] += ga * (head.fwd[i] + head.bwd[i]);
  }
  double busy = ga * pace;
  out->part[PLAN_BUBBLE] = (layers * one + end - pace) / vpp;
  if (l->pp > 1) {
    double send = plan_exchange_s(h, NET_PERMUTE, 2 * plan_tokens(l) * m->hidden / l->tp, l->pp,
                                  l->tp * l->cp * l->dp);
    out->part[PLAN_STAGES] =
        2 * vpp * (ga + (l->pp - 1) / vpp) * send * (1 - (vpp > 1 ? plan_law.stage_hidden : 0));
  }
  double launches = here * layer.launches + (with_head ? head.launches : 0);
  double host = ga * host_time(j, launches, here);
  out->part[PLAN_HOST] = j->software.blocking ? host : MAX(0, host - busy);
  out->part[PLAN_HOST] += plan_law.step_host * (h->chip->kind == CHIP_GPU);
  s.layers = most;
  s.weights = s.weights * most;
  s.expert_weights *= most;
  double embed = plan_embedding_parameters(m, false) / l->tp,
         out_head = plan_embedding_parameters(m, true) / l->tp;
  s.weights += l->pp == 1 ? embed + out_head : MAX(embed, out_head);
  if (j->lora_rank > 0) s.trained = 2.0 * j->lora_rank / m->hidden;
  s.kept = layer.kept;
  s.microbatches = l->pp == 1 ? 1 : MIN(ga, l->pp + (vpp > 1 ? (l->pp - 1) / vpp : 0));
  double logits = 10 * plan_tokens(l) * m->vocab / l->tp * (m->masked > 0 ? m->masked : 1);
  s.logits = l->pp == 1 ? logits : MIN(logits, logits);
  double fwd = mean * total(layer.fwd), bwd = mean * total(layer.bwd);
  data_time(h, j, &s, fwd, bwd, out);
  optimizer_time(h, j, &s, out);
  out->part[PLAN_OTHER] = plan_law.other * total(out->part);
  out->time_s = total(out->part);
  plan_memory(h, j, &s, out);
  out->flops = plan_flops_per_token(m, l->seq) * l->gbs * l->seq * (j->lora_rank > 0 ? 2.0 / 3 : 1);
  out->mfu = out->flops / (out->time_s * h->chip->peak_flops * l->devices);
}
