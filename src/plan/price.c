/* A run's time with jitter and failures, its price and its energy. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_priv.h"

/* Llama 3 (2024, section 3.3.4): 419 unexpected interruptions in 54 days of 16,384 H100. */
#define CHIP_MTBF_S (16384.0 * 54 * 86400 / 419)
/* From the failure to the next step: found, replaced, loaded (the same: over 90 % of the time useful). */
#define RESTART_S 600.0
/* What one host writes of a checkpoint while all wait, bytes/s. */
#define CHECKPOINT_RATE 1e9
/* Chips of one kind differ: Sinha et al., SC 2022, 8 to 9 % in a cluster; steps wait for the slowest. */
#define CHIP_SPREAD 0.02

/* The slowest of n normal draws, in standard deviations, which is not exceeded with that chance. */
static double slowest(double n, double chance) {
  double p = pow(chance, 1 / n), t = sqrt(-2 * log(1 - p)); /* Abramowitz and Stegun 26.2.23 */
  return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                 (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

/* Share of the time that is not lost to checkpoints, failures and what they throw away: checkpoints as
 * often as serves best (Young 1974, Daly 2006). */
static double useful(double chips, double checkpoint_s, double failures) {
  double mtbf = CHIP_MTBF_S / chips, every = sqrt(2 * checkpoint_s * mtbf);
  double lost = checkpoint_s / every + failures * (RESTART_S + every / 2) / mtbf;
  return MAX(0.05, 1 - lost);
}

static double checkpoint_s(const PlanAsk *ask, double chips) {
  return 12 * plan_parameters(ask->model) / MAX(1, chips / 8) / CHECKPOINT_RATE;
}

/* The step's work done that often, and the time that it takes in half and in 95 of 100 runs. */
static void run_time(const PlanAsk *ask, PlanChoice *c) {
  double work = c->step.time_s * c->steps, chips = c->chips;
  double checkpoint = checkpoint_s(ask, chips);
  c->p50_s = work / useful(chips, checkpoint, 1);
  double expected = c->p50_s * chips / CHIP_MTBF_S;
  double many = 1 + 1.645 / sqrt(MAX(expected, 1)); /* failures, in 95 of 100 runs */
  double slower = 1 + CHIP_SPREAD * (slowest(chips, 0.95) - slowest(chips, 0.5));
  c->p95_s = work * slower / useful(chips, checkpoint, many);
}

/* As many steps as money and time allow, where their number was not told. */
static double steps_of(const PlanAsk *ask, const PlanChoice *c) {
  double tokens = c->job.layout.gbs * c->job.layout.seq, seconds = INFINITY;
  if (ask->tokens > 0) return ceil(ask->tokens / tokens);
  if (ask->budget_usd > 0) seconds = ask->budget_usd / c->usd_hour * 3600;
  if (ask->deadline_s > 0) seconds = fmin(seconds, ask->deadline_s);
  if (!isfinite(seconds)) return 0;
  return floor(seconds * useful(c->chips, checkpoint_s(ask, c->chips), 1) / c->step.time_s);
}

static double power(const Chip *c, const PlanStep *s) {
  double busy = (s->part[PLAN_PRODUCTS] + s->part[PLAN_ATTENTION] + s->part[PLAN_RECOMPUTE] +
                 0.6 * (s->part[PLAN_PASSES] + s->part[PLAN_QUANTISE])) /
                s->time_s;
  double at = MIN(1, 0.25 + 0.75 * busy);
  return c->power_idle + (c->power_busy - c->power_idle) * at;
}

static void as_measured(const PlanAsk *ask, PlanChoice *c) {
  for (int i = 0; i < ask->n_measured && !c->measured; i++)
    if (!strcmp(ask->measured[i].chip, c->chip->name)) c->measured = &ask->measured[i];
  if (!c->measured) return;
  c->step.time_s *= c->measured->ratio;
  c->step.mfu /= c->measured->ratio;
  for (int i = 0; i < PLAN_PARTS_N; i++) c->step.part[i] *= c->measured->ratio;
}

int plan_machine_chips(const PlanChoice *c) {
  if (c->chip->kind == CHIP_TPU) return MIN(4, c->chips);
  const Server *s = c->server ? c->server : chip_server(c->chip);
  double whole = s ? server_num(s, "host_gpus", s->gpus) / c->chip->devices_per_chip : 8;
  return MIN(c->offer ? c->offer->chips : (int)whole, c->chips);
}

/* GPUs are joined as in the server that was timed, so the machines are no smaller than it. */
Price plan_rent(const PlanChoice *c, const PriceAsk *ask) {
  PriceAsk a = *ask;
  const Server *s = c->server ? c->server : chip_server(c->chip);
  if (s && c->chip->kind == CHIP_GPU)
    a.least_chips =
        (int)MIN((double)c->chips, server_num(s, "host_gpus", s->gpus) / c->chip->devices_per_chip);
  a.server = c->server;
  return chip_rent(c->chip, c->chips, &a);
}

void plan_price(const PlanAsk *ask, PlanChoice *c) {
  as_measured(ask, c);
  const PlanLayout *l = &c->job.layout;
  double tokens = l->gbs * l->seq;
  Price rent = plan_rent(c, &ask->price);
  c->offer = rent.offer;
  c->usd_hour = rent.usd_hour;
  c->usd_1e9 = c->usd_hour / 3600 * c->step.time_s / tokens * 1e9;
  c->steps = steps_of(ask, c), c->tokens = c->steps * tokens;
  if (c->steps > 0) run_time(ask, c);
  else c->p50_s = c->p95_s = c->step.time_s;
  c->usd = c->usd_hour * c->p50_s / 3600;
  c->usd95 = c->usd_hour * c->p95_s / 3600;
  c->energy_j = power(c->chip, &c->step) * c->chips * c->p50_s;
  c->meets = !(ask->budget_usd > 0 && !(c->usd <= ask->budget_usd * 1.001)) &&
             !(ask->deadline_s > 0 && c->p50_s > ask->deadline_s * 1.001) &&
             (c->steps > 0 || (ask->tokens <= 0 && ask->budget_usd <= 0 && ask->deadline_s <= 0));
}
