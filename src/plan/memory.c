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

/* Bytes of optimizer state for a trained parameter, a 32-bit copy of the weight included. */
static double slots_of(PlanOptimizer o, PlanStack stack) {
  double copy = stack == PLAN_XLA ? 0 : 4; /* JAX's weights are that copy */
  switch (o) {
  case PLAN_ADAFACTOR: return copy;
  case PLAN_SGD: return copy + 4;
  default: return copy + 8;
  }
}

void plan_memory(const PlanMachine *h, const PlanJob *j, const StageLoad *s, PlanStep *out) {
  const PlanLayout *l = &j->layout;
  PlanStack stack = j->software.stack;
  double ranks = (double)l->dp * l->cp,
         expert_ranks = MAX(1, ranks * l->tp / (l->ep * (l->etp > 0 ? l->etp : l->tp)));
  double cut = l->fsdp > 0 ? l->fsdp : ranks, expert_cut = MAX(1, cut * expert_ranks / ranks);
  double all = s->weights + s->expert_weights;
  double sharded = s->weights / cut + s->expert_weights / expert_cut;
  double state = s->weights / ranks + s->expert_weights / expert_ranks; /* of zero 1 */
  double weight = stack == PLAN_XLA || (stack == PLAN_FSDP && l->zero == PLAN_ZERO_3) ? 4 : 2;
  if (s->trained < 0.5) weight = l->format >= PLAN_FP8 ? 1 : 2;
  double held = l->zero == PLAN_ZERO_3 ? sharded : all;
  double slots = l->zero >= PLAN_ZERO_1 ? (l->zero == PLAN_ZERO_3 ? sharded : state) : all;
  double grads = l->zero == PLAN_ZERO_3 ? sharded : l->zero == PLAN_ZERO_2 ? state : all;
  double copy = weight == 4 ? 4 : 0; /* the copy is the weight itself */
  out->owner[PLAN_OWN_WEIGHTS] = weight * held;
  out->owner[PLAN_OWN_SLOTS] =
      (slots_of(j->optimizer, stack) - (stack == PLAN_XLA ? 0 : copy)) * slots * s->trained;
  double ga = l->gbs / (l->mbs * l->dp);
  double narrow = stack == PLAN_XLA && ga <= 1 ? 0.5 : 1; /* XLA frees a layer's as it is used */
  out->owner[PLAN_OWN_GRADS] = 4 * grads * s->trained * narrow;
  double layers = s->layers * s->microbatches;
  out->owner[PLAN_OWN_KEPT] = s->kept * layers * (1 - l->offload) + s->again;
  out->owner[PLAN_OWN_LOGITS] = s->logits;
  if (l->zero == PLAN_ZERO_3)
    out->owner[PLAN_OWN_GATHERED] = l->keep_gathered ? 2 * all : 2 * 2 * s->largest_layer;
  bool gpu = h->chip->kind == CHIP_GPU;
  double need = 0;
  for (int i = 0; i < PLAN_OWNERS_N; i++) need += out->owner[i];
  out->owner[PLAN_OWN_RUNTIME] = gpu ? plan_law.runtime + (plan_law.fragments - 1) * need : 0;
  out->peak_bytes = need + out->owner[PLAN_OWN_RUNTIME];
  out->limit_bytes = gpu ? h->chip->hbm_bytes : h->chip->hbm_usable;
  out->fits = out->peak_bytes <= out->limit_bytes;
}
