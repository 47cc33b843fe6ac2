/* All layouts of a model on a chip's counts; the best of each count is kept. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_priv.h"

/* What layers compute again: nothing; what costs little beside its memory; all. */
static const unsigned again_ways[] = {
    0,
    PLAN_TAG(PLAN_NORM) | PLAN_TAG(PLAN_ACT) | PLAN_TAG(PLAN_EXPERT_ACT) | PLAN_TAG(PLAN_ROPE),
    PLAN_ALL_TAGS,
};

typedef struct Hunt { /* one chip and count */
  const PlanAsk *ask;
  const Chip *chip;
  int chips, devices;
  PlanMachine *machine;
  PlanChoice best;
  bool found;
  double least_over; /* bytes too many of the layout that comes nearest */
  double layouts;
} Hunt;

static void look(Hunt *h, const PlanJob *j) {
  PlanStep s;
  h->layouts++;
  plan_step(h->machine, j, &s);
  if (!s.fits) {
    h->least_over = MIN(h->least_over, s.peak_bytes - s.limit_bytes);
    return;
  }
  if (h->found && s.time_s >= h->best.step.time_s) return;
  h->found = true;
  h->best.job = *j;
  h->best.step = s;
}

static void microbatches(Hunt *h, PlanJob *j) {
  PlanLayout *l = &j->layout;
  double each = l->gbs / l->dp;
  for (double b = 1; b <= each && b <= 32; b *= 2) {
    if (fmod(each, b) != 0) continue;
    l->mbs = b;
    for (int i = 0; i < COUNT_OF(again_ways); i++) {
      l->again = again_ways[i];
      look(h, j);
    }
  }
}

static void stages(Hunt *h, PlanJob *j) {
  PlanLayout *l = &j->layout;
  int layers = j->model->layers;
  l->vpp = 1;
  microbatches(h, j);
  if (l->pp == 1) return;
  for (int v = 2; v <= 12; v++)
    if (layers % (l->pp * v) == 0 || (layers + 2) % (l->pp * v) == 0) {
      l->vpp = v;
      microbatches(h, j);
    }
}

/* Experts over data ways; weights cut or whole. */
static void data_ways(Hunt *h, PlanJob *j) {
  PlanLayout *l = &j->layout;
  const PlanModel *m = j->model;
  bool xla = h->chip->kind == CHIP_TPU;
  int ranks = l->dp * l->cp;
  for (int ep = 1; ep <= MAX(1, m->experts); ep *= 2) {
    if (ep > 1 && (m->experts % ep || ranks % ep)) break;
    l->ep = ep;
    l->etp = ep > 1 ? 1 : 0;
    if (!xla) {
      l->zero = ranks > 1 ? PLAN_ZERO_1 : PLAN_ZERO_NONE;
      j->software.stack = PLAN_MEGATRON;
      stages(h, j);
    }
    if (l->pp > 1 || ranks == 1) {
      if (xla && l->pp == 1) l->zero = PLAN_ZERO_NONE, j->software.stack = PLAN_XLA, stages(h, j);
      continue;
    }
    l->zero = PLAN_ZERO_3;
    j->software.stack = xla ? PLAN_XLA : PLAN_FSDP;
    j->software.compiled = true;
    l->fsdp = 0;
    stages(h, j);
  }
}

static void meshes(Hunt *h, PlanFormat format) {
  const PlanModel *m = h->ask->model;
  bool xla = h->chip->kind == CHIP_TPU;
  PlanJob j = {.model = m, .lora_rank = h->ask->lora_rank};
  j.layout =
      (PlanLayout){.devices = h->devices, .seq = h->ask->seq, .gbs = h->ask->gbs, .format = format};
  int most_tp = xla ? 16 : MIN(16, h->machine->net.domain), most_pp = xla ? 1 : 32;
  for (int tp = 1; tp <= most_tp && m->heads % tp == 0; tp *= 2)
    for (int cp = 1; cp <= 8 && h->ask->seq / cp >= 2048; cp *= 2)
      for (int pp = 1; pp <= most_pp && pp <= m->layers; pp *= 2) {
        int ways = tp * cp * pp;
        if (ways > h->devices || h->devices % ways) continue;
        PlanLayout *l = &j.layout;
        l->tp = tp, l->cp = cp, l->pp = pp, l->dp = h->devices / ways;
        if (fmod(h->ask->gbs, l->dp) != 0) continue;
        data_ways(h, &j);
      }
}

static void hunt(void *arg, int64_t i) {
  Hunt *h = (Hunt *)arg + i;
  h->least_over = INFINITY;
  Err *e = plan_machine_open(h->chip, h->devices, NULL, &h->machine);
  if (e) return err_free(e);
  if (h->ask->n_formats)
    for (int f = 0; f < h->ask->n_formats; f++) meshes(h, h->ask->formats[f]);
  else {
    meshes(h, chip_num(h->chip, "peak_bf16", 0) > 0 ? PLAN_BF16 : PLAN_FP16);
    if (chip_num(h->chip, "peak_fp8", 0) > 1.5 * chip_num(h->chip, "peak_bf16", 1e30))
      meshes(h, PLAN_FP8_CURRENT);
  }
  plan_machine_close(h->machine);
}

/* ---- counts ------------------------------------------------------------------------------------- */

typedef VEC(Hunt) Hunts;

static void add(Hunts *all, const PlanAsk *ask, const Chip *chip, int chips) {
  *vec_push(all) = (Hunt){.ask = ask,
                          .chip = chip,
                          .chips = chips,
                          .devices = chips * chip->devices_per_chip,
                          .best = {.chip = chip, .chips = chips}};
}

/* Sequences a step that models of a size are trained with: Brown et al. 2020, table 2.1; Llama 2 and 3. */
static double usual_batch(const PlanModel *m, double seq) {
  double p = plan_parameters(m), tokens = p < 1e9    ? 0.5
                                          : p < 3e9  ? 1
                                          : p < 15e9 ? 2
                                          : p < 1e11 ? 4
                                                     : 8;
  return MAX(1, exp2(round(log2(tokens * 1048576 / seq))));
}

static int by_key(const void *a, const void *b, const char *key) {
  const PlanChoice *x = a, *y = b;
  double p = !strcmp(key, "time") ? x->p50_s : !strcmp(key, "energy") ? x->energy_j : x->usd;
  double q = !strcmp(key, "time") ? y->p50_s : !strcmp(key, "energy") ? y->energy_j : y->usd;
  if (isnan(p) || isnan(q)) return isnan(p) - isnan(q);
  return p < q ? -1 : p > q;
}

static void sort(PlanChoice *c, int n, const char *key) {
  for (int i = 1; i < n; i++) { /* insertion: few, and equal ones keep their order */
    PlanChoice x = c[i];
    int k = i;
    for (; k > 0 && by_key(&c[k - 1], &x, key) > 0; k--) c[k] = c[k - 1];
    c[k] = x;
  }
}

static bool no_worse(double a, double b) { return isnan(b) || a <= b; }

static void mark_front(PlanChoice *c, int n) {
  for (int i = 0; i < n; i++) {
    c[i].front = true;
    for (int k = 0; k < n && c[i].front; k++)
      if (k != i && c[k].p50_s < c[i].p50_s && no_worse(c[k].usd, c[i].usd) &&
          c[k].energy_j < c[i].energy_j)
        c[i].front = false;
  }
}

Err *plan_search(const PlanAsk *given, PlanAnswer *out) {
  *out = (PlanAnswer){.ask = *given};
  PlanAsk *ask = &out->ask;
  double start = time_now_s();
  if (ask->seq <= 0) ask->seq = 4096;
  if (ask->gbs <= 0) ask->gbs = usual_batch(ask->model, ask->seq);
  int most = ask->most > 0 ? ask->most : 1024;
  Hunts all = {0};
  for (int i = 0; i < ask->n_chips; i++) {
    const ChipRef *r = &ask->chips[i];
    if (r->chips > 0) add(&all, ask, r->chip, r->chips);
    for (int n = 1; r->chips == 0 && n <= most; n *= 2) add(&all, ask, r->chip, n);
  }
  pool_run(all.n, hunt, all.v);
  double over = INFINITY;
  for (int i = 0; i < all.n; i++) {
    out->layouts += all.v[i].layouts;
    over = MIN(over, all.v[i].least_over);
    if (!all.v[i].found) continue;
    PlanChoice *c = vec_push(&out->choices);
    *c = all.v[i].best;
    plan_price(ask, c);
  }
  if (!out->choices.n) {
    out->nothing =
        isinf(over)
            ? xasprintf("no layout divides a batch of %g sequences over so many devices", ask->gbs)
            : xasprintf("no layout fits: the leanest needs %.1f GiB more a device",
                        over / 1073741824);
  }
  sort(out->choices.v, out->choices.n, ask->sort ? ask->sort : "cost");
  mark_front(out->choices.v, out->choices.n);
  vec_free(&all);
  out->seconds = time_now_s() - start;
  return NULL;
}

void plan_answer_free(PlanAnswer *a) {
  vec_free(&a->choices);
  free(a->nothing);
}
