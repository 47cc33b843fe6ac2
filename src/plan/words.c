/* What a plan means, in words. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "plan/plan_priv.h"

/* Hoffmann et al. 2022: tokens for each parameter that serve a budget of operations best. */
#define TOKENS_PER_PARAMETER 20.0

static const PlanChoice *best_of(const PlanAnswer *a, ChipKind kind) {
  for (int i = 0; i < a->choices.n; i++)
    if (a->choices.v[i].chip->kind == kind) return &a->choices.v[i];
  return NULL;
}

/* ---- the best choice ---------------------------------------------------------------------------- */

static void largest(const double *v, int n, int *first, int *second) {
  *first = *second = -1;
  for (int i = 0; i < n; i++)
    if (*first < 0 || v[i] > v[*first]) *second = *first, *first = i;
    else if (*second < 0 || v[i] > v[*second]) *second = i;
}

static void parts(const PlanStep *s, Buf *o) {
  buf_cstr(o, "  its time: ");
  bool some = false;
  for (int i = 0; i < PLAN_PARTS_N; i++) {
    double share = s->part[i] / s->time_s;
    if (share < 0.01) continue;
    buf_printf(o, "%s%s %.0f %%", some ? ", " : "", plan_part_name((PlanPart)i), 100 * share);
    some = true;
  }
  buf_cstr(o, "\n  a device's memory: ");
  some = false;
  for (int i = 0; i < PLAN_OWNERS_N; i++) {
    char b[UNITS_TEXT];
    if (s->owner[i] < 0.005 * s->peak_bytes) continue;
    buf_printf(o, "%s%s %s", some ? ", " : "", plan_owner_name((PlanOwner)i),
               units_bytes(b, s->owner[i]));
    some = true;
  }
  char b[UNITS_TEXT];
  buf_printf(o, "; of %s\n", units_bytes(b, s->limit_bytes));
}

static void price_line(const PlanChoice *c, bool spot, Buf *o) {
  char s[UNITS_TEXT];
  if (!c->offer) {
    buf_printf(o, "  no price is listed for %s%s%s: `weft chips --prices` has those there are\n",
               c->chip->name, c->server ? " in " : "", c->server ? c->server->name : "");
    return;
  }
  const Offer *of = c->offer;
  buf_printf(o, "  %s an hour: %d x %s of %s in %s, %s, ", plan_usd(s, c->usd_hour),
             (c->chips + of->chips - 1) / of->chips, of->instance, of->cloud, of->region,
             spot ? "spot" : "on demand");
  offer_when(of, o);
  buf_cstr(o, offer_is_part(of) ? "; GPUs alone, the machine is extra\n" : "\n");
  const Server *timed = c->server ? c->server : chip_server(c->chip);
  if (timed && c->chip->kind == CHIP_GPU && c->chips > of->chips && !offer_is_server(of, timed))
    buf_printf(o, "  (what joins these machines is not listed: timed as in %s)\n", timed->title);
  if (c->chips % of->chips)
    buf_printf(o, "  (it has %d chips: %d of them paid for and not used)\n", of->chips,
               of->chips - c->chips % of->chips);
}

static void best_words(const PlanAnswer *a, const PlanChoice *c, Buf *o) {
  char how[64];
  buf_printf(o, "\n%s:%d, %s, %s, microbatch %g, recompute %s, %s\n", c->chip->name, c->chips,
             plan_stack_name(c->job.software.stack), plan_mesh(&c->job.layout, how, sizeof how),
             c->job.layout.mbs, plan_recompute_word(&c->job.layout),
             plan_format_name(c->job.layout.format));
  if (c->measured)
    buf_printf(o,
               "  %d run%s of it on this chip took %.2f times the time of a step that the model "
               "says, and so does this\n",
               c->measured->runs, c->measured->runs > 1 ? "s" : "", c->measured->ratio);
  parts(&c->step, o);
  price_line(c, a->ask.price.spot, o);
}

/* ---- money and time ----------------------------------------------------------------------------- */

static void bought(const PlanAnswer *a, const PlanChoice *c, Buf *o) {
  const PlanAsk *ask = &a->ask;
  char s[UNITS_TEXT], t[UNITS_TEXT];
  double useful = TOKENS_PER_PARAMETER * plan_parameters(ask->model);
  if (ask->tokens > 0 || c->tokens <= 0) return;
  char n[UNITS_TEXT];
  buf_printf(o, "\n%s trains on %s %s in %s", plan_usd(s, c->usd), units_count(n, c->tokens),
             plan_unit(ask), plan_duration(t, c->p50_s));
  if (ask->lora_rank || ask->unit) {
    buf_cstr(o, ".\n");
    return;
  }
  buf_printf(o, ": %.3g %% of the %s (20 for each parameter, Hoffmann et al. 2022) from scratch",
             100 * c->tokens / useful, units_count(n, useful));
  if (c->tokens < useful) {
    buf_printf(o, ", which would take %s.\n", plan_usd(s, c->usd * useful / c->tokens));
    double fits =
        sqrt(c->tokens * c->step.flops / (ask->gbs * ask->seq) / (6 * TOKENS_PER_PARAMETER));
    buf_printf(o,
               "  From scratch the same money serves a model of about %s parameters best; a "
               "trained one of this "
               "size is fine-tuned on far fewer tokens: a million take %s%s.\n",
               units_count(n, fits), plan_usd(s, c->usd_1e9 / 1e3),
               ask->lora_rank ? "" : ", less with --lora");
  } else {
    buf_cstr(o, ".\n");
  }
}

/* In three digits, not rounded up: who follows the advice meets it. */
static double at_most(double v) {
  double digit = pow(10, floor(log10(v)) - 2);
  return floor(v / digit) * digit;
}

/* What spot machines would do for the budget; 0 where they do not meet it. */
static double spot_usd(const PlanAnswer *a) {
  double least = INFINITY;
  PriceAsk spot = a->ask.price;
  spot.spot = true;
  for (int i = 0; i < a->choices.n; i++) {
    const PlanChoice *c = &a->choices.v[i];
    double usd = plan_rent(c, &spot).usd_hour * c->p50_s / 3600;
    if (usd < least) least = usd;
  }
  return least <= a->ask.budget_usd ? least : 0;
}

static void dearer(const PlanAnswer *a, const PlanChoice *cheap, Buf *o) {
  const PlanAsk *ask = &a->ask;
  char s[UNITS_TEXT], t[UNITS_TEXT], few[UNITS_TEXT], all[UNITS_TEXT];
  buf_printf(o,
             "\nNo choice costs %s or less. The cheapest, %s:%d, takes %s: that budget, or %s %s "
             "instead of %s, would meet it",
             plan_usd(s, ask->budget_usd), cheap->chip->name, cheap->chips, plan_usd(t, cheap->usd),
             units_count(few, at_most(cheap->tokens * ask->budget_usd / cheap->usd)),
             plan_unit(ask), units_count(all, cheap->tokens));
  double spot = ask->price.spot ? 0 : spot_usd(a);
  if (spot > 0) buf_printf(o, "; so would spot prices (--spot), %s", plan_usd(s, spot));
  buf_cstr(o, ".\n");
}

static void slower(const PlanAnswer *a, const PlanChoice *fast, Buf *o) {
  const PlanAsk *ask = &a->ask;
  const PlanChoice *more = &a->sooner;
  char s[UNITS_TEXT], t[UNITS_TEXT];
  buf_printf(o, "\nNo choice takes %s or less. The fastest, %s:%d, takes %s.\n  ",
             plan_duration(s, ask->deadline_s), fast->chip->name, fast->chips,
             plan_duration(t, fast->p50_s));
  if (more->chips)
    buf_printf(o, "More chips would meet it: --chips %s:%d takes %s at %s; or", more->chip->name,
               more->chips, plan_duration(s, more->p50_s), plan_usd(t, more->usd));
  else if (a->most_looked)
    buf_printf(o, "No number of them up to %d does with this batch;", a->most_looked);
  buf_printf(o, " %s %s instead of %s would.\n",
             units_count(s, at_most(fast->tokens * ask->deadline_s / fast->p50_s)), plan_unit(ask),
             units_count(t, fast->tokens));
}

/* No choice meets the budget or the deadline: what would. */
static void missed(const PlanAnswer *a, Buf *o) {
  const PlanAsk *ask = &a->ask;
  char s[UNITS_TEXT], t[UNITS_TEXT];
  const PlanChoice *cheap = NULL, *fast = NULL;
  for (int i = 0; i < a->choices.n; i++) {
    const PlanChoice *c = &a->choices.v[i];
    if (c->meets) return;
    if (!isnan(c->usd) && (!cheap || c->usd < cheap->usd)) cheap = c;
    if (!fast || c->p50_s < fast->p50_s) fast = c;
  }
  if (ask->budget_usd > 0 && !cheap) {
    buf_printf(o, "\nThe budget cannot be judged: no price is listed for these chips%s%s.\n",
               ask->price.clouds ? " at " : "", ask->price.clouds ? ask->price.clouds : "");
    return;
  }
  if (ask->budget_usd > 0 && cheap->usd > ask->budget_usd) dearer(a, cheap, o);
  if (ask->deadline_s > 0 && fast->p50_s > ask->deadline_s) slower(a, fast, o);
  if (ask->deadline_s > 0 && ask->budget_usd > 0 && fast->p50_s <= ask->deadline_s && cheap &&
      cheap->usd <= ask->budget_usd)
    buf_printf(o, "\nEach can be met, not both: %s:%d costs %s and takes %s.\n", cheap->chip->name,
               cheap->chips, plan_usd(s, cheap->usd), plan_duration(t, cheap->p50_s));
}

/* ---- TPU or GPU --------------------------------------------------------------------------------- */

/* Useful operations for a dollar. */
static double per_dollar(const PlanChoice *c) {
  return c->step.flops / c->step.time_s * 3600 / c->usd_hour;
}

static void why(const PlanChoice *c, Buf *o) {
  char s[UNITS_TEXT], work[UNITS_TEXT];
  double used = c->step.mfu * c->chip->peak_flops * c->chip->devices_per_chip;
  PlanFormat f = c->job.layout.format;
  bool narrow = f >= PLAN_FP8 && f < PLAN_OWN_NUMBERS;
  buf_printf(o, "%s:%d does %s/s a chip (%.*f %% of its 16-bit peak%s%s)", c->chip->name, c->chips,
             units_flop(s, used), c->step.mfu < 0.1, 100 * c->step.mfu,
             narrow ? ", with products in " : "", narrow ? plan_format_name(f) : "");
  if (c->offer)
    buf_printf(o, " at %s an hour and chip, %s for a dollar", plan_usd(s, c->usd_hour / c->chips),
               units_flop(work, per_dollar(c)));
}

static void either(const PlanAnswer *a, Buf *o) {
  const PlanChoice *tpu = best_of(a, CHIP_TPU), *gpu = best_of(a, CHIP_GPU);
  if (!tpu || !gpu) return;
  const PlanChoice *best = &a->choices.v[0], *other = best == tpu ? gpu : tpu;
  static const char *const by[] = {"money", "time", "energy"};
  buf_printf(o, "\nTPU or GPU: by %s a %s.\n  ", by[a->ask.order], best == tpu ? "TPU" : "GPU");
  why(best, o);
  buf_cstr(o, ";\n  ");
  why(other, o);
  buf_cstr(o, ".\n");
  const double *p = other->step.part;
  int first, second;
  largest(p, PLAN_PARTS_N, &first, &second);
  buf_printf(o, "  The other's step goes to %s (%.0f %%) and %s (%.0f %%).",
             plan_part_name((PlanPart)first), 100 * p[first] / other->step.time_s,
             plan_part_name((PlanPart)second), 100 * p[second] / other->step.time_s);
  buf_cstr(o, " JAX, TensorFlow and Keras run on both; PyTorch and Megatron are at home on GPUs, "
              "PyTorch on TPUs through PyTorch/XLA or TorchTPU.\n");
}

/* ---- who moves there ---------------------------------------------------------------------------- */

static void moving(const PlanAnswer *a, const PlanChoice *c, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  bool tpu = c->chip->kind == CHIP_TPU;
  double per_device = l->gbs / l->devices, bytes = l->gbs * l->seq * 4 / c->step.time_s;
  char b[UNITS_TEXT], groups[64] = "";
  if (l->dp > 1) snprintf(groups, sizeof groups, " for each of %d groups", l->dp);
  buf_printf(o,
             "\nMoving there: %s %s a device and step, in microbatches of %g%s. The "
             "learning rate and its schedule stay while the global batch (%g) stays; with another "
             "batch scale "
             "the rate with its root for Adam, with it for SGD. ",
             units_count(b, per_device), a->ask.unit ? a->ask.unit : "sequences", l->mbs, groups,
             l->gbs);
  buf_cstr(o, "Decoupled weight decay (AdamW) multiplies with the rate, so it stays too; decay "
              "inside the loss "
              "that each device adds up must be divided by the devices once. ");
  if (l->format == PLAN_FP16) buf_cstr(o, "fp16 needs loss scaling. ");
  else if (l->format == PLAN_OWN_NUMBERS)
    buf_cstr(o, tpu ? "A TPU multiplies f32 in bf16 unless the program asks for more precision. "
                    : "");
  else if (l->format >= PLAN_FP8)
    buf_printf(
        o,
        "%s narrows products alone: keep weights' copies, norms and the loss wide, and compare the "
        "first thousand steps with bf16. ",
        plan_format_name(l->format));
  else buf_cstr(o, "bf16 needs no loss scaling; keep the optimizer's copy in 32 bits. ");
  if (tpu)
    buf_cstr(o, "Shapes must stay the same from step to step (XLA compiles once), sizes in "
                "multiples of 128. ");
  if (a->ask.unit)
    buf_printf(o, "The input must bring %s %s a second in all.\n",
               units_count(b, l->gbs / c->step.time_s), a->ask.unit);
  else buf_printf(o, "The input must bring %s/s of tokens in all.\n", units_bytes(b, bytes));
}

void plan_words(const PlanAnswer *a, Buf *o) {
  if (!a->choices.n) return;
  const PlanChoice *best = &a->choices.v[0];
  missed(a, o);
  bought(a, best, o);
  best_words(a, best, o);
  either(a, o);
  moving(a, best, o);
}
