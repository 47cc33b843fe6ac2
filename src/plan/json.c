/* A plan as JSON. */
#include <math.h>

#include "plan/plan_priv.h"

static void layout(const PlanLayout *l, Buf *o) {
  const struct {
    const char *key;
    double v;
  } all[] = {{"dp", l->dp},   {"tp", l->tp},   {"pp", l->pp},   {"vpp", l->vpp},
             {"cp", l->cp},   {"ep", l->ep},   {"etp", l->etp}, {"zero", (double)l->zero},
             {"mbs", l->mbs}, {"gbs", l->gbs}, {"seq", l->seq}};
  for (int i = 0; i < COUNT_OF(all); i++) buf_json_num(o, all[i].key, all[i].v), buf_cstr(o, ", ");
  buf_printf(o, "\"recompute\": \"%s\", \"precision\": \"%s\", ", plan_recompute_word(l),
             plan_format_name(l->format));
}

static void offer(const Offer *f, Buf *o) {
  const struct {
    const char *key, *text;
  } all[] = {{"cloud", f ? f->cloud : NULL},
             {"instance", f ? f->instance : NULL},
             {"region", f ? f->region : NULL},
             {"price_date", f ? f->date : NULL},
             {"price_source", f ? f->source : NULL}};
  for (int i = 0; i < COUNT_OF(all); i++) {
    buf_printf(o, "\"%s\": ", all[i].key);
    if (all[i].text) buf_json_str(o, all[i].text);
    else buf_cstr(o, "null");
    buf_cstr(o, ", ");
  }
}

void plan_parts_json(const PlanStep *s, Buf *o) {
  buf_cstr(o, "\"parts\": {");
  for (int i = 0; i < PLAN_PARTS_N; i++)
    buf_printf(o, "%s\"%s\": %.5g", i ? ", " : "", plan_part_name((PlanPart)i), s->part[i]);
  buf_cstr(o, "}, \"memory\": {");
  for (int i = 0; i < PLAN_OWNERS_N; i++)
    buf_printf(o, "%s\"%s\": %.5g", i ? ", " : "", plan_owner_name((PlanOwner)i), s->owner[i]);
  buf_byte(o, '}');
}

static void choice(const PlanChoice *c, Buf *o) {
  buf_printf(o, "{\"chip\": \"%s\", \"chips\": %d, \"stack\": \"%s\", ", c->chip->name, c->chips,
             plan_stack_name(c->job.software.stack));
  layout(&c->job.layout, o);
  const struct {
    const char *key;
    double v;
  } all[] = {{"step_time_s", c->step.time_s},
             {"mfu", c->step.mfu},
             {"peak_bytes", c->step.peak_bytes},
             {"limit_bytes", c->step.limit_bytes},
             {"tokens", c->tokens},
             {"steps", c->steps},
             {"time_p50_s", c->p50_s},
             {"time_p95_s", c->p95_s},
             {"usd_per_hour", c->usd_hour},
             {"usd", c->usd},
             {"usd_p95", c->usd95},
             {"usd_per_1e9_tokens", c->usd_1e9},
             {"energy_j", c->energy_j},
             {"measured_ratio", c->measured ? c->measured->ratio : NAN}};
  for (int i = 0; i < COUNT_OF(all); i++) buf_json_num(o, all[i].key, all[i].v), buf_cstr(o, ", ");
  buf_printf(o, "\"limit\": \"%s\", \"front\": %s, \"meets\": %s, ", plan_limit(&c->step),
             c->front ? "true" : "false", c->meets ? "true" : "false");
  offer(c->offer, o);
  const Server *server = c->server ? c->server : chip_server(c->chip);
  if (server) buf_printf(o, "\"server\": \"%s\", ", server->name);
  buf_printf(o, "\"machine_chips\": %d, ", plan_machine_chips(c));
  plan_parts_json(&c->step, o);
  buf_byte(o, '}');
}

void plan_json(const PlanAnswer *a, Buf *o) {
  const PlanAsk *ask = &a->ask;
  buf_cstr(o, "{\"model\": ");
  buf_json_str(o, ask->model->name);
  const struct {
    const char *key;
    double v;
  } all[] = {{"parameters", plan_parameters(ask->model)},
             {"seq", ask->seq},
             {"gbs", ask->gbs},
             {"tokens", ask->tokens},
             {"budget_usd", ask->budget_usd},
             {"deadline_s", ask->deadline_s},
             {"layouts", a->layouts},
             {"search_s", a->seconds}};
  for (int i = 0; i < COUNT_OF(all); i++) buf_cstr(o, ", "), buf_json_num(o, all[i].key, all[i].v);
  buf_cstr(o, ", \"nothing\": ");
  if (a->nothing) buf_json_str(o, a->nothing);
  else buf_cstr(o, "null");
  buf_cstr(o, ", \"remarks\": ");
  if (a->remarks) buf_json_str(o, a->remarks);
  else buf_cstr(o, "null");
  buf_cstr(o, ", \"words\": ");
  Buf words = {0};
  plan_words(a, &words);
  buf_json_str(o, words.p ? words.p : "");
  buf_free(&words);
  buf_cstr(o, ", \"choices\": [");
  for (int i = 0; i < a->choices.n; i++) {
    buf_cstr(o, i ? ",\n  " : "\n  ");
    choice(&a->choices.v[i], o);
  }
  buf_cstr(o, "]}\n");
}
