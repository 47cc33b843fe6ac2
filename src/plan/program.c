/* A program instead of a model's shape: sim's estimate of one device's step on every chip, data parallel
 * over any count of devices, or over those that the program is sharded for. */
#include "plan/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/ir.h"
#include "plan/plan_priv.h"
#include "sim/sim.h"

typedef struct Hunt { /* one chip and count */
  const AdviseWork *work;
  const PlanAsk *ask;
  const Chip *chip;
  ChipRef where; /* how they lie; no devices: wherever there are so many */
  int chips, devices;
  bool found;
  PlanChoice best;
  double least_over, layouts, parameters;
  Err *err;
} Hunt;

/* ---- an estimate as a step ----------------------------------------------------------------------- */

/* Seconds of kernels by what they do; what no kernel explains is "other". */
static void parts_of(const SimReport *r, PlanStep *s) {
  double sum = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    if (k->collective) continue;
    s->part[k->matrix > 0.01 ? PLAN_PRODUCTS : PLAN_PASSES] += k->time_s * k->count;
  }
  s->part[PLAN_PASSES] += r->exposed_copy_s;
  s->part[PLAN_HOST] = r->host_s;
  s->part[PLAN_GRADIENTS] = r->network_exposed_s;
  for (int i = 0; i < PLAN_PARTS_N; i++) sum += s->part[i];
  double over = sum > r->time_s && sum > 0 ? r->time_s / sum : 1;
  for (int i = 0; i < PLAN_PARTS_N; i++) s->part[i] *= over;
  s->part[PLAN_OTHER] = MAX(0, r->time_s - sum);
}

static void owners_of(const SimReport *r, PlanStep *s) {
  static const struct {
    SimOwner from;
    PlanOwner to;
  } map[] = {{SIM_PARAMETERS, PLAN_OWN_WEIGHTS}, {SIM_SLOTS, PLAN_OWN_SLOTS},
             {SIM_GRADIENTS, PLAN_OWN_GRADS},    {SIM_KEPT, PLAN_OWN_KEPT},
             {SIM_WORKING, PLAN_OWN_KEPT},       {SIM_INPUT, PLAN_OWN_RUNTIME},
             {SIM_RESULTS, PLAN_OWN_RUNTIME},    {SIM_STATE, PLAN_OWN_RUNTIME},
             {SIM_CACHES, PLAN_OWN_RUNTIME},     {SIM_OTHER, PLAN_OWN_RUNTIME}};
  for (int i = 0; i < COUNT_OF(map); i++) s->owner[map[i].to] += r->owners[map[i].from].bytes;
  s->peak_bytes = r->hbm_bytes, s->limit_bytes = r->limit_bytes, s->fits = r->fits;
}

/* So many microbatches: all but the exchange of gradients is done for each. */
static void repeat(PlanStep *s, double times) {
  for (int i = 0; i < PLAN_PARTS_N; i++)
    if (i != PLAN_GRADIENTS) s->part[i] *= times;
}

static void finish(const Hunt *h, const SimReport *r, double times, PlanStep *s) {
  s->time_s = 0;
  for (int i = 0; i < PLAN_PARTS_N; i++) s->time_s += s->part[i];
  s->flops = r->flops * times * h->devices;
  s->mfu = s->flops / (s->time_s * h->chip->peak_flops * h->devices);
}

/* ---- one layout ----------------------------------------------------------------------------------- */

static bool sharded(const AdviseWork *w) { return w->fixed_devices && w->partitions > 1; }

/* The program of one device, for that many examples each. */
static Err *build(const AdviseWork *w, int devices, double each, Module **out) {
  bool copies = w->fixed_devices && !sharded(w); /* of a program for one device */
  AdviseCase c = {
      .batch = (int64_t)each, .devices = copies ? 1 : devices, .training = w->batch > 0};
  return w->build(w->arg, &c, out);
}

Err *plan_program_module(const AdviseWork *w, const PlanChoice *c, Module **out) {
  return build(w, c->job.layout.devices, c->job.layout.mbs, out);
}

/* Gradients of a program that knows of one device, added up behind the backward pass, two thirds of it. */
static void copies_exchange(const PlanMachine *m, const Hunt *h, const SimReport *r, PlanStep *s) {
  double bytes = r->training ? r->owners[SIM_PARAMETERS].bytes : 0;
  double t = plan_exchange_s(m, NET_ALL_REDUCE, bytes, h->devices, 1);
  double hidden = plan_coef.data_hidden * MIN(t, r->time_s * 2 / 3);
  s->part[PLAN_GRADIENTS] = t - hidden + plan_coef.disturb * hidden;
}

static Err *look(Hunt *h, const PlanMachine *m, double each, double times) {
  Module *program = NULL;
  SimReport *r = NULL;
  TRY(build(h->work, h->devices, each, &program));
  SimOpts opts = {.devices = h->devices, .where = h->where.devices ? &h->where : NULL};
  Err *e = sim_estimate_spmd(program, h->chip, &opts, h->work->partitions, &r);
  module_free(program);
  if (e) return e;
  PlanStep s = {0};
  parts_of(r, &s);
  owners_of(r, &s);
  if (h->work->fixed_devices && !sharded(h->work)) copies_exchange(m, h, r, &s);
  repeat(&s, times);
  finish(h, r, times, &s);
  h->layouts++;
  h->parameters = r->owners[SIM_PARAMETERS].bytes / 4;
  if (!s.fits) {
    h->least_over = MIN(h->least_over, s.peak_bytes - s.limit_bytes);
  } else if (!h->found || s.time_s < h->best.step.time_s) {
    h->found = true;
    h->best.step = s;
    h->best.job.layout.mbs = each;
  }
  sim_report_free(r);
  return NULL;
}

static void hunt(void *arg, int64_t i) {
  Hunt *h = (Hunt *)arg + i;
  double each = h->ask->gbs / h->devices;
  PlanMachine *m = NULL;
  h->least_over = INFINITY;
  if (each != floor(each)) return;
  h->best.job.layout = (PlanLayout){.devices = h->devices,
                                    .dp = h->devices,
                                    .tp = 1,
                                    .pp = 1,
                                    .cp = 1,
                                    .ep = 1,
                                    .vpp = 1,
                                    .seq = 1,
                                    .gbs = h->ask->gbs};
  h->best.job.software = (PlanSoftware){.stack = PLAN_PROGRAM, .compiled = true};
  h->best.job.layout.format = PLAN_OWN_NUMBERS;
  PlanMachineOpts opts = {.where = &h->where, .server = h->where.server};
  h->err = plan_machine_open(h->chip, h->devices, &opts, &m);
  /* the whole batch at once, or in as few pieces as fit */
  for (int pieces = 1; !h->err && !h->found && pieces <= 64; pieces *= 2) {
    if (fmod(each, pieces) != 0 || (pieces > 1 && h->work->no_batch)) break;
    h->err = look(h, m, each / pieces, pieces);
  }
  plan_machine_close(m);
}

/* ---- chips and counts ----------------------------------------------------------------------------- */

typedef VEC(Hunt) Hunts;

static void add(Hunts *all, const AdviseWork *w, const PlanAsk *ask, const ChipRef *r, int chips) {
  int devices = chips * r->chip->devices_per_chip;
  if (sharded(w) && devices != w->partitions) return;
  bool named = r->chips == chips;
  ChipSlice slice = named ? r->slice : chip_slice_of(r->chip, chips);
  const Server *servers[CHIP_SERVERS];
  int n = chip_servers(r, chips, &ask->price, servers);
  for (int i = 0; i < n; i++)
    *vec_push(all) = (Hunt){.work = w,
                            .ask = ask,
                            .chip = r->chip,
                            .where = {.chip = r->chip,
                                      .devices = named || servers[i] ? devices : 0,
                                      .chips = chips,
                                      .server = servers[i],
                                      .slice = slice},
                            .chips = chips,
                            .devices = devices,
                            .best = {.chip = r->chip,
                                     .chips = chips,
                                     .slice = slice,
                                     .server = servers[i],
                                     .asked = r,
                                     .job.model = ask->model}};
}

static Err *complete(const AdviseWork *w, PlanAnswer *out) {
  PlanAsk *ask = &out->ask;
  double own = (double)(w->batch ? w->batch : w->eval_batch);
  snprintf(out->program.name, sizeof out->program.name, "%s", w->name);
  ask->model = &out->program;
  ask->unit = "examples", ask->seq = 1;
  bool told = ask->gbs > 0;
  if (!told) ask->gbs = own;
  if (ask->most <= 0) ask->most = 64;
  if (ask->lora_rank)
    return err_hint(err_new(ERR_INVALID, "--lora with a program"),
                    "write the adapters into the program, or give a MODEL");
  if (w->no_batch && ask->gbs != own)
    return err_new(ERR_INVALID,
                   "no leading dimension of an input of '%s' is the batch: it stays as it is",
                   w->name);
  return plan_check_batch(ask, told);
}

static char *why_nothing(const AdviseWork *w, const PlanAsk *ask, const Hunts *all, double over) {
  if (!all->n && sharded(w))
    return xasprintf("the program is sharded for %d devices: name as many, or none", w->partitions);
  for (int i = 0; i < all->n; i++)
    if (all->v[i].err)
      return xasprintf("%s:%d: %s", all->v[i].chip->name, all->v[i].chips, all->v[i].err->msg);
  if (isinf(over))
    return xasprintf(
        "a batch of %g examples does not divide over so many devices: fewer chips, or --gbs",
        ask->gbs);
  return xasprintf("the program does not fit: the leanest needs %.2f GiB more on each device; "
                   "chips with more memory, "
                   "or a program that is sharded",
                   over / 1073741824);
}

Err *plan_program(const AdviseWork *w, const PlanAsk *given, PlanAnswer *out) {
  *out = (PlanAnswer){.ask = *given};
  double start = time_now_s(), over = INFINITY;
  TRY(complete(w, out));
  const PlanAsk *ask = &out->ask;
  Hunts all = {0};
  for (int i = 0; i < ask->n_chips; i++) {
    const ChipRef *r = &ask->chips[i];
    if (r->chips > 0) add(&all, w, ask, r, r->chips);
    for (int n = 1; r->chips == 0 && n <= ask->most; n *= 2) add(&all, w, ask, r, n);
  }
  pool_run(all.n, hunt, all.v);
  for (int i = 0; i < all.n; i++) {
    Hunt *h = &all.v[i];
    out->layouts += h->layouts;
    over = MIN(over, h->least_over);
    out->program.parameters = MAX(out->program.parameters, h->parameters);
    if (h->found) *vec_push(&out->choices) = h->best;
  }
  for (int i = 0; i < out->choices.n; i++) plan_price(ask, &out->choices.v[i]);
  if (!out->choices.n) out->nothing = why_nothing(w, ask, &all, over);
  for (int i = 0; i < all.n; i++) err_free(all.v[i].err);
  vec_free(&all);
  plan_best_servers(out);
  plan_rank(out);
  out->seconds = time_now_s() - start;
  return NULL;
}
