/* What one device holds. */
#include <math.h>

#include "plan/plan_priv.h"

const char *plan_owner_name(PlanOwner o) {
  static const char *const names[] = {
#define X(id, name) name,
      PLAN_OWNERS(X)
#undef X
  };
  return names[o];
}

/* Bytes a parameter: of the weight that products read or that is gathered, and of the optimizer's state,
 * a 32-bit copy of the weight among it. */
static double weight_bytes(const PlanJob *j, bool trained) {
  const PlanSoftware *w = &j->software;
  if (!trained) return j->layout.format >= PLAN_FP8 ? 1 : 2;
  if (w->pure16) return 2;
  bool master = w->stack == PLAN_XLA || (w->stack == PLAN_FSDP && j->layout.zero == PLAN_ZERO_3);
  return master ? 4 : 2;
}

static double slot_bytes(const PlanJob *j) {
  const PlanSoftware *w = &j->software;
  double copy = weight_bytes(j, true) == 4 || w->pure16 ? 0 : 4, moment = w->pure16 ? 2 : 4;
  /* newer recipes of mixtures keep moments in 16 bits (precision-aware optimizers) */
  if (w->stack == PLAN_MEGATRON && j->model->experts > 0 && (w->year == 0 || w->year > 2025))
    moment = 2;
  switch (j->optimizer) {
  case PLAN_ADAFACTOR: return copy;
  case PLAN_SGD: return copy + moment;
  default: return copy + 2 * moment;
  }
}

static double gradient_bytes(const PlanJob *j) {
  const PlanSoftware *w = &j->software;
  if (w->pure16) return 2;
  return w->stack == PLAN_MEGATRON && (w->year == 0 || w->year > 2024) ? 2 : 4;
}

/* Of a logit: itself and its gradient in its place, by losses in one kernel; before 2023 in 32 bits. */
static double logit_bytes(const PlanJob *j) {
  const PlanSoftware *w = &j->software;
  return w->year > 0 && w->year < 2023 ? 10 : 4;
}

/* XLA computes a large head's loss in pieces of the vocabulary, where asked to. */
#define LOGITS_MOST 0.15
/* Of what computing a layer again would keep, that lives at once: XLA orders it so that less does. */
#define XLA_RECOMPUTE 0.5

static void weights(const PlanJob *j, const StageLoad *s, PlanStep *out) {
  const PlanLayout *l = &j->layout;
  double ranks = (double)l->dp * l->cp, etp = l->etp > 0 ? l->etp : l->tp;
  double expert_ranks = MAX(1, ranks * l->tp / (l->ep * etp));
  double cut = l->fsdp > 0 ? l->fsdp : ranks, expert_cut = MAX(1, cut * expert_ranks / ranks);
  double all = s->weights + s->expert_weights;
  double sharded = s->weights / cut + s->expert_weights / expert_cut;
  double own = s->weights / ranks + s->expert_weights / expert_ranks;
  bool fully = l->zero == PLAN_ZERO_3;
  double held = fully ? sharded : all, slots = l->zero == PLAN_ZERO_NONE ? all
                                               : fully                   ? sharded
                                                                         : own;
  double grads = fully ? sharded : l->zero == PLAN_ZERO_2 ? own : all;
  out->owner[PLAN_OWN_WEIGHTS] =
      held * (s->trained * weight_bytes(j, true) + (1 - s->trained) * weight_bytes(j, false));
  out->owner[PLAN_OWN_SLOTS] = slot_bytes(j) * slots * s->trained;
  double ga = l->gbs / (l->mbs * l->dp);
  bool used_up = j->software.stack == PLAN_XLA && ga <= 1; /* a layer's, as it is made */
  out->owner[PLAN_OWN_GRADS] = gradient_bytes(j) * grads * s->trained * (used_up ? 0.5 : 1);
  double layers = j->software.stack == PLAN_XLA ? 1 : 2; /* gathered at once */
  if (fully)
    out->owner[PLAN_OWN_GATHERED] = 2 * (l->keep_gathered ? all : layers * s->largest_layer);
}

void plan_memory(const PlanMachine *h, const PlanJob *j, const StageLoad *s, PlanStep *out) {
  const PlanLayout *l = &j->layout;
  bool xla = j->software.stack == PLAN_XLA, gpu = h->chip->kind == CHIP_GPU;
  out->limit_bytes = gpu ? h->chip->hbm_bytes : h->chip->hbm_usable;
  weights(j, s, out);
  out->owner[PLAN_OWN_KEPT] = s->kept * s->layers * s->microbatches * (1 - l->offload);
  double logits = logit_bytes(j) * s->logits, again = s->recompute * (xla ? XLA_RECOMPUTE : 1);
  if (xla) logits = MIN(logits, LOGITS_MOST * out->limit_bytes);
  /* the loss is over when the first layer is computed again */
  if (logits >= again) {
    out->owner[PLAN_OWN_LOGITS] = logits;
    /* then the head is whole, and its gradient before it is scattered; no layer is */
    if (xla && l->zero == PLAN_ZERO_3)
      out->owner[PLAN_OWN_GATHERED] = MAX(out->owner[PLAN_OWN_GATHERED], 4 * s->head);
  } else out->owner[PLAN_OWN_KEPT] += again;
  double need = 0;
  for (int i = 0; i < PLAN_OWNERS_N; i++) need += out->owner[i];
  if (gpu) out->owner[PLAN_OWN_RUNTIME] = plan_coef.runtime + (plan_coef.fragments - 1) * need;
  out->peak_bytes = need + out->owner[PLAN_OWN_RUNTIME];
  out->fits = out->peak_bytes <= out->limit_bytes;
}
