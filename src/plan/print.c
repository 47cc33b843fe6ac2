/* A plan as a table for people. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "plan/plan_priv.h"

const char *plan_stack_name(PlanStack s) {
  static const char *const names[] = {"megatron", "fsdp", "maxtext", "xla"};
  return names[s];
}

const char *plan_unit(const PlanAsk *ask) { return ask->unit ? ask->unit : "tokens"; }

const char *plan_limit(const PlanStep *s) {
  const double *p = s->part;
  const struct {
    const char *name;
    double s;
  } all[] = {{"compute", p[PLAN_PRODUCTS] + p[PLAN_ATTENTION] + p[PLAN_RECOMPUTE]},
             {"memory", p[PLAN_PASSES] + p[PLAN_QUANTISE] + p[PLAN_OPTIMIZER]},
             {"network", p[PLAN_TENSOR] + p[PLAN_CONTEXT] + p[PLAN_EXPERT] + p[PLAN_SHARDS] +
                             p[PLAN_GRADIENTS] + p[PLAN_STAGES]},
             {"bubble", p[PLAN_BUBBLE]},
             {"host", p[PLAN_HOST]}};
  int best = 0;
  for (int i = 1; i < COUNT_OF(all); i++)
    if (all[i].s > all[best].s) best = i;
  return all[best].name;
}

const char *plan_recompute_word(const PlanLayout *l) {
  return l->recompute == PLAN_ALL_TAGS      ? "all"
         : l->recompute & PLAN_TAG(PLAN_UP) ? "mlp"
         : l->recompute                     ? "some"
                                            : "none";
}

/* "dp4 tp8 pp2x5": ways of one are left out. */
const char *plan_mesh(const PlanLayout *l, char *to, size_t n) {
  int at = 0;
  const struct {
    const char *name;
    int ways;
  } ways[] = {
      {l->zero == PLAN_ZERO_3 ? "fsdp" : "dp", l->dp}, {"tp", l->tp}, {"cp", l->cp}, {"ep", l->ep}};
  for (int i = 0; i < COUNT_OF(ways); i++)
    if (ways[i].ways > 1 || i == 0)
      at += snprintf(to + at, n - (size_t)at, "%s%s%d", at ? " " : "", ways[i].name, ways[i].ways);
  if (l->pp > 1) at += snprintf(to + at, n - (size_t)at, " pp%d", l->pp);
  if (l->vpp > 1) snprintf(to + at, n - (size_t)at, "x%d", l->vpp);
  return to;
}

const char *plan_duration(char s[UNITS_TEXT], double seconds) {
  if (seconds < 60) units_time(s, seconds);
  else if (seconds < 5400) snprintf(s, UNITS_TEXT, "%.1f min", seconds / 60);
  else if (seconds < 3 * 86400) snprintf(s, UNITS_TEXT, "%.1f h", seconds / 3600);
  else if (seconds < 700 * 86400.0) snprintf(s, UNITS_TEXT, "%.1f days", seconds / 86400);
  else snprintf(s, UNITS_TEXT, "%.1f years", seconds / (365.25 * 86400));
  return s;
}

const char *plan_usd(char s[UNITS_TEXT], double usd) {
  if (isnan(usd)) snprintf(s, UNITS_TEXT, "-");
  else if (usd < 1e4) units_usd(s, usd);
  else if (usd < 1e7) snprintf(s, UNITS_TEXT, "$%.1fk", usd / 1e3);
  else snprintf(s, UNITS_TEXT, "$%.2fM", usd / 1e6);
  return s;
}

static void head(const PlanAsk *ask, bool runs, Buf *o) {
  buf_printf(o, "\n    %-17s %-8s %-20s %4s %-9s %-11s %9s %6s %10s", "chips", "stack", "layout",
             "mbs", "recompute", "numbers", "step", "MFU", "memory");
  if (runs && ask->tokens <= 0) buf_printf(o, " %8s", plan_unit(ask));
  if (runs) buf_printf(o, " %10s %10s %10s", "time p50", "p95", "price");
  else buf_printf(o, " %12s", "$ per 1e9");
  buf_printf(o, " %11s  %s\n", runs ? "energy" : "a step", "limited by");
}

static void row(const PlanAsk *ask, const PlanChoice *c, bool runs, Buf *o) {
  char where[64], how[64], s[UNITS_TEXT], t[UNITS_TEXT];
  const PlanLayout *l = &c->job.layout;
  snprintf(where, sizeof where, "%s:%d", c->chip->name, c->chips);
  buf_printf(o, "  %c %-17s %-8s %-20s %4g %-9s %-11s",
             !c->meets  ? '!'
             : c->front ? '*'
                        : ' ',
             where, plan_stack_name(c->job.software.stack), plan_mesh(l, how, sizeof how), l->mbs,
             plan_recompute_word(l), plan_format_name(l->format));
  buf_printf(o, " %9s %5.1f%% %10s", units_time(s, c->step.time_s), 100 * c->step.mfu,
             units_bytes(t, c->step.peak_bytes));
  if (runs && ask->tokens <= 0) buf_printf(o, " %8s", units_count(s, c->tokens));
  if (runs) {
    buf_printf(o, " %10s", plan_duration(s, c->p50_s));
    buf_printf(o, " %10s", plan_duration(s, c->p95_s));
    buf_printf(o, " %10s", plan_usd(s, c->usd));
  } else {
    buf_printf(o, " %12s", plan_usd(s, c->usd_1e9));
  }
  buf_printf(o, " %11s  %s\n", units_energy(s, c->energy_j), plan_limit(&c->step));
}

static void title(const PlanAnswer *a, Buf *o) {
  const PlanAsk *ask = &a->ask;
  char s[UNITS_TEXT];
  double parameters = plan_parameters(ask->model);
  buf_cstr(o, ask->model->name);
  if (parameters > 0) buf_printf(o, ", %s parameters", units_count(s, parameters));
  buf_printf(o, "%s; ", ask->lora_rank ? " (low-rank adapters trained)" : "");
  if (ask->unit) buf_printf(o, "%g %s a step", ask->gbs, ask->unit);
  else buf_printf(o, "%g sequences of %g tokens a step", ask->gbs, ask->seq);
  if (ask->usual_gbs > 0 && ask->gbs != ask->usual_gbs)
    buf_printf(o, " (%g are usual, which the chips do not divide)", ask->usual_gbs);
  if (ask->tokens > 0) buf_printf(o, "; %s %s in all", units_count(s, ask->tokens), plan_unit(ask));
  if (ask->budget_usd > 0) buf_printf(o, "; at most %s", plan_usd(s, ask->budget_usd));
  if (ask->deadline_s > 0) buf_printf(o, "; within %s", plan_duration(s, ask->deadline_s));
  buf_printf(o, "\n%.0f layouts in %.2f s; %s prices%s%s\n", a->layouts, a->seconds,
             ask->price.spot ? "spot" : "on-demand", ask->price.clouds ? " of " : "",
             ask->price.clouds ? ask->price.clouds : "");
}

void plan_write_text(const PlanAnswer *a, bool all, Buf *o) {
  const PlanAsk *ask = &a->ask;
  title(a, o);
  if (a->remarks) buf_cstr(o, a->remarks);
  if (a->nothing) {
    buf_printf(o, "\n%s\n", a->nothing);
    return;
  }
  bool runs = ask->tokens > 0 || ask->budget_usd > 0 || ask->deadline_s > 0;
  head(ask, runs, o);
  int shown = 0, most = all ? a->choices.n : 24;
  bool named[256] = {false}; /* chips whose best choice is there */
  bool any_meets = a->choices.v[0].meets;
  for (int i = 0; i < a->choices.n && shown < most; i++) {
    const PlanChoice *c = &a->choices.v[i];
    bool first = false;
    for (int k = 0; k < ask->n_chips && k < COUNT_OF(named); k++)
      if (ask->chips[k].chip == c->chip &&
          (ask->chips[k].chips == 0 || ask->chips[k].chips == c->chips))
        first |= !named[k], named[k] = true;
    bool few = ask->n_chips <= 4; /* the user chose them */
    if (!all && !(first && few) && (!c->front || (any_meets && !c->meets))) continue;
    row(ask, c, runs, o);
    shown++;
  }
  if (shown < a->choices.n) buf_printf(o, "    %d more (--all)\n", a->choices.n - shown);
  buf_cstr(o, "  MFU: of the chip's 16-bit peak, whatever the numbers\n"
              "  * nothing else is faster, cheaper and leaner");
  if (ask->budget_usd > 0 || ask->deadline_s > 0)
    buf_cstr(o, "   ! does not meet budget or deadline");
  buf_byte(o, '\n');
}
