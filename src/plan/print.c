/* A plan as a table for people, and as JSON. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "plan/plan_priv.h"

const char *plan_limit(const PlanStep *s) {
  const double *p = s->part;
  const struct {
    const char *name;
    double s;
  } all[] = {{"compute", p[PLAN_PRODUCTS] + p[PLAN_ATTENTION] + p[PLAN_AGAIN]},
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

static const char *again_word(const PlanLayout *l) {
  return l->again == PLAN_ALL_TAGS ? "full" : l->again ? "some" : "none";
}

/* "dp4 tp8 pp2x5 zero1 mbs1": ways of one are left out. */
static void mesh(const PlanLayout *l, char *to, size_t n) {
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
}

static void hours(char s[UNITS_TEXT], double seconds) {
  if (seconds < 60) units_time(s, seconds);
  else if (seconds < 5400) snprintf(s, UNITS_TEXT, "%.1f min", seconds / 60);
  else if (seconds < 4 * 86400) snprintf(s, UNITS_TEXT, "%.1f h", seconds / 3600);
  else snprintf(s, UNITS_TEXT, "%.1f days", seconds / 86400);
}

static void row(const PlanAnswer *a, const PlanChoice *c, Buf *o) {
  char where[64], how[64], step[UNITS_TEXT], p50[UNITS_TEXT], p95[UNITS_TEXT], usd[UNITS_TEXT],
      energy[UNITS_TEXT], mem[UNITS_TEXT];
  const PlanLayout *l = &c->job.layout;
  snprintf(where, sizeof where, "%s:%d", c->chip->name, c->chips);
  mesh(l, how, sizeof how);
  units_time(step, c->step.time_s);
  hours(p50, c->p50_s), hours(p95, c->p95_s);
  units_usd(usd, c->usd), units_energy(energy, c->energy_j), units_bytes(mem, c->step.peak_bytes);
  buf_printf(o, "  %c %-16s %-22s %4g %-5s %-11s %9s %5.1f%% %10s", c->front ? '*' : ' ', where,
             how, l->mbs, again_word(l), plan_format_name(l->format), step, 100 * c->step.mfu, mem);
  if (a->ask.tokens > 0) buf_printf(o, " %10s %10s", p50, p95);
  buf_printf(o, " %10s %10s  %s\n", usd, energy, plan_limit(&c->step));
}

void plan_print(const PlanAnswer *a, Buf *o) {
  const PlanAsk *ask = &a->ask;
  buf_printf(o, "%s, %.4g parameters; %g sequences of %g tokens a step", ask->model->name,
             plan_parameters(ask->model), ask->gbs, ask->seq);
  if (ask->tokens > 0) buf_printf(o, "; %.4g tokens in all", ask->tokens);
  buf_printf(o, "\n%.0f layouts in %.2f s\n", a->layouts, a->seconds);
  if (a->nothing) {
    buf_printf(o, "%s\n", a->nothing);
    return;
  }
  buf_printf(o, "    %-16s %-22s %4s %-5s %-11s %9s %6s %10s", "chips", "layout", "mbs", "again",
             "numbers", "step", "MFU", "memory");
  if (ask->tokens > 0) buf_printf(o, " %10s %10s", "time", "of 95 %");
  buf_printf(o, " %10s %10s  %s\n", "price", "energy", "limited by");
  for (int i = 0; i < a->choices.n; i++) row(a, &a->choices.v[i], o);
  buf_cstr(o, "  * nothing else is faster, cheaper and leaner\n");
}

static void choice_json(const PlanChoice *c, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  buf_printf(o,
             "{\"chip\": \"%s\", \"chips\": %d, \"dp\": %d, \"tp\": %d, \"pp\": %d, \"vpp\": %d, "
             "\"cp\": %d, \"ep\": %d, ",
             c->chip->name, c->chips, l->dp, l->tp, l->pp, l->vpp, l->cp, l->ep);
  buf_printf(o,
             "\"zero\": %d, \"mbs\": %g, \"gbs\": %g, \"seq\": %g, \"recompute\": \"%s\", "
             "\"precision\": \"%s\", ",
             (int)l->zero, l->mbs, l->gbs, l->seq, again_word(l), plan_format_name(l->format));
  const struct {
    const char *key;
    double v;
  } all[] = {{"step_time_s", c->step.time_s},
             {"mfu", c->step.mfu},
             {"peak_bytes", c->step.peak_bytes},
             {"limit_bytes", c->step.limit_bytes},
             {"steps", c->steps},
             {"time_p50_s", c->p50_s},
             {"time_p95_s", c->p95_s},
             {"usd_per_hour", c->usd_hour},
             {"usd", c->usd},
             {"usd_p95", c->usd95},
             {"energy_j", c->energy_j}};
  for (int i = 0; i < COUNT_OF(all); i++) buf_json_num(o, all[i].key, all[i].v), buf_cstr(o, ", ");
  buf_printf(o, "\"limit\": \"%s\", \"front\": %s, \"cloud\": ", plan_limit(&c->step),
             c->front ? "true" : "false");
  buf_json_str(o, c->offer ? c->offer->cloud : "");
  buf_cstr(o, ", \"instance\": ");
  buf_json_str(o, c->offer ? c->offer->instance : "");
  buf_cstr(o, ", \"price_date\": ");
  buf_json_str(o, c->offer ? c->offer->date : "");
  buf_cstr(o, ", \"parts\": {");
  for (int i = 0; i < PLAN_PARTS_N; i++)
    buf_printf(o, "%s\"%s\": %.5g", i ? ", " : "", plan_part_name((PlanPart)i), c->step.part[i]);
  buf_cstr(o, "}, \"memory\": {");
  for (int i = 0; i < PLAN_OWNERS_N; i++)
    buf_printf(o, "%s\"%s\": %.5g", i ? ", " : "", plan_owner_name((PlanOwner)i), c->step.owner[i]);
  buf_cstr(o, "}}");
}

void plan_json(const PlanAnswer *a, Buf *o) {
  buf_cstr(o, "{\"model\": ");
  buf_json_str(o, a->ask.model->name);
  buf_printf(o,
             ", \"parameters\": %.6g, \"seq\": %g, \"gbs\": %g, \"tokens\": %g, \"layouts\": %.0f, "
             "\"search_s\": %.3g, \"choices\": [",
             plan_parameters(a->ask.model), a->ask.seq, a->ask.gbs, a->ask.tokens, a->layouts,
             a->seconds);
  for (int i = 0; i < a->choices.n; i++) {
    buf_cstr(o, i ? ",\n  " : "\n  ");
    choice_json(&a->choices.v[i], o);
  }
  buf_cstr(o, "]}\n");
}
