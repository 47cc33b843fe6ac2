/* All layouts of a model on a chip's counts; the fastest that fits of each count is kept. */
#include <math.h>
#include <stdlib.h>

#include "plan/plan_priv.h"

/* What layers compute again, from nothing on: the first that fits is the fastest. */
static const unsigned recompute_ways[] = {
    0,
    PLAN_TAG(PLAN_NORM) | PLAN_TAG(PLAN_ACT) | PLAN_TAG(PLAN_EXPERT_ACT) | PLAN_TAG(PLAN_ROPE),
    PLAN_ALL_TAGS & ~(PLAN_TAG(PLAN_QKV) | PLAN_TAG(PLAN_CORE) | PLAN_TAG(PLAN_OUT)),
    PLAN_ALL_TAGS,
};

typedef struct Hunt { /* one chip and count */
  const PlanAsk *ask;
  const Chip *chip;
  const ChipRef *where; /* NULL: wherever there are so many */
  int chips, devices;
  PlanMachine *machine;
  PlanChoice best;
  bool found;
  double least_over; /* bytes too many of the layout that comes nearest */
  double layouts;
  Err *err;
} Hunt;

/* Does it fit? */
static bool look(Hunt *h, const PlanJob *j) {
  PlanStep s;
  h->layouts++;
  plan_step(h->machine, j, &s);
  if (!s.fits) {
    h->least_over = MIN(h->least_over, s.peak_bytes - s.limit_bytes);
    return false;
  }
  if (h->found && s.time_s >= h->best.step.time_s) return true;
  h->found = true;
  h->best.job = *j;
  h->best.step = s;
  return true;
}

/* Larger microbatches only hold more. */
static void microbatches(Hunt *h, PlanJob *j) {
  PlanLayout *l = &j->layout;
  double each = l->gbs / l->dp;
  for (double b = 1; b <= each && b <= 64; b *= 2) {
    if (fmod(each, b) != 0) continue;
    l->mbs = b;
    bool fits = false;
    for (int i = 0; i < COUNT_OF(recompute_ways) && !fits; i++) {
      l->recompute = recompute_ways[i];
      fits = look(h, j);
    }
    if (!fits) break;
  }
}

static void stages(Hunt *h, PlanJob *j) {
  PlanLayout *l = &j->layout;
  int layers = j->model->layers;
  l->vpp = 1;
  microbatches(h, j);
  if (l->pp == 1 || j->software.stack != PLAN_MEGATRON) return;
  for (int v = 2; v <= 12; v++)
    if (layers % (l->pp * v) == 0 || (layers + 2) % (l->pp * v) == 0) {
      l->vpp = v;
      microbatches(h, j);
    }
}

static bool allowed(const PlanAsk *ask, PlanStack s) {
  return !ask->stacks || (ask->stacks & (1u << s));
}

static void stack(Hunt *h, PlanJob *j, PlanStack s, PlanZero zero) {
  if (!allowed(h->ask, s)) return;
  j->software = (PlanSoftware){.stack = s, .compiled = true, .fused_dispatch = s == PLAN_MEGATRON};
  j->layout.zero = zero;
  stages(h, j);
}

/* Experts over data ways; weights whole, or cut over data ways. */
static void data_ways(Hunt *h, PlanJob *j) {
  PlanLayout *l = &j->layout;
  const PlanModel *m = j->model;
  bool tpu = h->chip->kind == CHIP_TPU;
  int ranks = l->dp * l->cp;
  for (int ep = 1; ep <= MAX(1, m->experts); ep *= 2) {
    if (ep > 1 && (m->experts % ep || ranks % ep)) break;
    l->ep = ep, l->etp = ep > 1 ? 1 : 0, l->fsdp = 0;
    PlanZero whole = ranks > 1 ? PLAN_ZERO_1 : PLAN_ZERO_NONE;
    if (!tpu) stack(h, j, PLAN_MEGATRON, whole);
    if (l->pp > 1) continue;
    if (tpu && ranks == 1) stack(h, j, PLAN_XLA, PLAN_ZERO_NONE);
    if (ranks == 1) continue;
    if (!tpu) stack(h, j, PLAN_FSDP, PLAN_ZERO_3);
    if (tpu || (h->ask->stacks & (1u << PLAN_XLA))) stack(h, j, PLAN_XLA, PLAN_ZERO_3);
  }
}

/* Not even weights fit, cut over all ways that there are. */
static bool hopeless(const Hunt *h) {
  double each = h->ask->lora_rank > 0 ? 1 : 6;
  return each * plan_parameters(h->ask->model) / h->devices > h->chip->hbm_bytes;
}

static void meshes(Hunt *h, PlanFormat format) {
  const PlanModel *m = h->ask->model;
  bool tpu = h->chip->kind == CHIP_TPU;
  PlanJob j = {.model = m, .lora_rank = h->ask->lora_rank};
  j.layout =
      (PlanLayout){.devices = h->devices, .seq = h->ask->seq, .gbs = h->ask->gbs, .format = format};
  int most_tp = tpu ? 16 : MIN(16, h->machine->net.domain), most_pp = tpu ? 1 : 32;
  for (int tp = 1; tp <= most_tp && m->heads % tp == 0; tp *= 2)
    for (int cp = 1; cp <= 16 && (cp == 1 || h->ask->seq / cp >= 2048); cp *= 2)
      for (int pp = 1; pp <= most_pp && pp <= m->layers; pp *= 2) {
        int ways = tp * cp * pp;
        if (ways > h->devices || h->devices % ways) continue;
        PlanLayout *l = &j.layout;
        l->tp = tp, l->cp = cp, l->pp = pp, l->dp = h->devices / ways;
        if (fmod(h->ask->gbs, l->dp) != 0) continue;
        data_ways(h, &j);
      }
}

/* Does it multiply numbers of that format? TPUs take f32 and fp16 as bf16. */
static bool multiplies(const Chip *c, PlanFormat f) {
  static const char *const facts[PLAN_FORMATS_N] =
      {[PLAN_BF16] = "peak_bf16",
       [PLAN_FP16] = "peak_fp16",
       [PLAN_TF32] = "peak_tf32",
       [PLAN_FP8] = "peak_fp8",
       [PLAN_FP8_CURRENT] = "peak_fp8",
       [PLAN_FP8_ROWS] = "peak_fp8",
       [PLAN_FP8_BLOCKS] = "peak_fp8",
       [PLAN_MXFP8] = "peak_fp4", /* blocks' scales came with those */
       [PLAN_NVFP4] = "peak_fp4",
       [PLAN_INT8] = "peak_int8"};
  bool wide = f == PLAN_FP16 || f == PLAN_TF32;
  return (c->kind == CHIP_TPU && wide) || !facts[f] || chip_num(c, facts[f], 0) > 0;
}

/* Those that were asked for and that it has. */
static unsigned formats_of(const PlanAsk *ask, const Chip *c) {
  unsigned have = 0;
  for (int f = 0; f < PLAN_FORMATS_N; f++)
    if (ask->formats & (1u << f) && multiplies(c, (PlanFormat)f)) have |= 1u << f;
  return have;
}

/* A line for each format that a chip has not. */
static void formats_lacking(const PlanAsk *ask, Buf *o) {
  for (int f = 0; f < PLAN_FORMATS_N; f++) {
    if (!(ask->formats & (1u << f))) continue;
    int n = 0;
    for (int i = 0; i < ask->n_chips; i++)
      if (!multiplies(ask->chips[i].chip, (PlanFormat)f))
        buf_printf(o, "%s%s", n++ ? ", " : "", ask->chips[i].chip->name);
    if (n) buf_printf(o, ": no %s products, left out\n", plan_format_name((PlanFormat)f));
  }
}

/* 16 bits, and 8 where the chip multiplies those faster. */
static unsigned usual_formats(const Chip *c) {
  double wide = chip_num(c, "peak_bf16", 0), narrow = chip_num(c, "peak_fp8", 0);
  double cc = chip_num(c, "compute_capability", 0);
  unsigned f = 1u << (wide > 0 ? PLAN_BF16 : PLAN_FP16);
  if (narrow > 1.5 * wide && wide > 0) f |= 1u << (cc >= 10 ? PLAN_MXFP8 : PLAN_FP8_CURRENT);
  return f;
}

static void hunt(void *arg, int64_t i) {
  Hunt *h = (Hunt *)arg + i;
  h->least_over = INFINITY;
  if (hopeless(h)) {
    h->least_over = plan_parameters(h->ask->model) * 6 / h->devices - h->chip->hbm_bytes;
    return;
  }
  h->err = plan_machine_open(h->chip, h->devices,
                             &(PlanMachineOpts){.where = h->where, .server = h->best.server},
                             &h->machine);
  if (h->err) return;
  unsigned formats = h->ask->formats ? formats_of(h->ask, h->chip) : usual_formats(h->chip);
  for (int f = 0; f < PLAN_FORMATS_N; f++)
    if (formats & (1u << f)) meshes(h, (PlanFormat)f);
  plan_machine_close(h->machine);
}

/* ---- counts ------------------------------------------------------------------------------------- */

typedef VEC(Hunt) Hunts;

static void add(Hunts *all, const PlanAsk *ask, const ChipRef *asked, const Server *server,
                int chips) {
  const Chip *chip = asked->chip;
  const ChipRef *where = asked->chips == chips ? asked : NULL;
  ChipSlice slice = where ? where->slice : chip_slice_of(chip, chips);
  *vec_push(all) = (Hunt){
      .ask = ask,
      .chip = chip,
      .where = where,
      .chips = chips,
      .devices = chips * chip->devices_per_chip,
      .best = {.chip = chip, .chips = chips, .slice = slice, .server = server, .asked = asked}};
}

static void add_servers(Hunts *all, const PlanAsk *ask, const ChipRef *asked, int chips) {
  const Server *servers[CHIP_SERVERS];
  int n = chip_servers(asked, chips, &ask->price, servers);
  for (int i = 0; i < n; i++) add(all, ask, asked, servers[i], chips);
}

/* Tokens a step that models of a size are trained with: Brown et al. 2020, table 2.1; Llama 2 and 3. */
static double usual_batch(const PlanModel *m, double seq) {
  double p = plan_parameters(m);
  double tokens = p < 1e9 ? 0.5 : p < 3e9 ? 1 : p < 15e9 ? 2 : p < 1e11 ? 4 : 8;
  return MAX(1, exp2(round(log2(tokens * 1048576 / seq))));
}

/* Sequences a step that adapters are trained with: Taori et al. 2023 (Alpaca), Dettmers et al. 2023 16 to 64. */
#define LORA_BATCH 64

static double key_of(const PlanAsk *ask, const PlanChoice *c) {
  bool per_token = ask->tokens <= 0; /* runs of different lengths are told apart by the token */
  double rate = c->job.layout.gbs * c->job.layout.seq / c->step.time_s;
  double v = ask->order == PLAN_BY_TIME ? (per_token ? 1 / rate : c->p50_s)
             : ask->order == PLAN_BY_ENERGY
                 ? c->energy_j / (per_token && c->tokens > 0 ? c->tokens : 1)
             : per_token && ask->budget_usd > 0 ? -c->tokens /* what the money buys */
                                                : (per_token ? c->usd_1e9 : c->usd);
  return isnan(v) ? 1e300 : v;
}

/* Those that meet what is asked come first. */
static bool before(const PlanAsk *ask, const PlanChoice *a, const PlanChoice *b) {
  return a->meets != b->meets ? a->meets : key_of(ask, a) < key_of(ask, b);
}

void plan_best_servers(PlanAnswer *a) {
  PlanChoice *c = a->choices.v;
  int n = 0;
  for (int i = 0; i < a->choices.n; i++) {
    int k = 0;
    while (k < n &&
           (c[k].chip != c[i].chip || c[k].chips != c[i].chips || c[k].asked != c[i].asked))
      k++;
    if (k == n) c[n++] = c[i];
    else if (before(&a->ask, &c[i], &c[k])) c[k] = c[i];
  }
  a->choices.n = n;
}

static void sort(const PlanAsk *ask, PlanChoice *c, int n) {
  for (int i = 1; i < n; i++) { /* insertion: few, and equal ones keep their order */
    PlanChoice x = c[i];
    int k = i;
    for (; k > 0 && before(ask, &x, &c[k - 1]); k--) c[k] = c[k - 1];
    c[k] = x;
  }
}

/* Time, money and energy of a token: none worse by more than the model can tell, one clearly better. */
static bool beats(const PlanChoice *a, const PlanChoice *b) {
  const double same = 1.01, clear = 0.95;
  double ta = a->step.time_s, tb = b->step.time_s; /* of the same batch */
  double ea = a->energy_j / a->p50_s * ta, eb = b->energy_j / b->p50_s * tb;
  double ua = a->usd_1e9, ub = b->usd_1e9;
  bool dear = !isnan(ub) && !(ua <= same * ub);
  if (ta > same * tb || ea > same * eb || dear) return false;
  return ta < clear * tb || ea < clear * eb || (isnan(ub) && !isnan(ua)) || ua < clear * ub;
}

static void mark_front(PlanChoice *c, int n) {
  for (int i = 0; i < n; i++) {
    c[i].front = true;
    for (int k = 0; k < n && c[i].front; k++) c[i].front = k == i || !beats(&c[k], &c[i]);
  }
}

void plan_rank(PlanAnswer *a) {
  mark_front(a->choices.v, a->choices.n);
  sort(&a->ask, a->choices.v, a->choices.n);
  if (a->choices.n)
    a->choices.v[0].front = true; /* the first by what was asked, by however little */
}

#define STEP_MOST 1e11 /* tokens: a thousand times the largest batches that were published */

Err *plan_check_batch(const PlanAsk *ask, bool told) {
  char *batch = ask->unit ? xasprintf("a batch of %g %s", ask->gbs, ask->unit)
                          : xasprintf("a batch of %g sequences of %g tokens", ask->gbs, ask->seq);
  double tokens = ask->gbs * ask->seq;
  const char *unit = ask->unit ? ask->unit : "tokens";
  Err *e = NULL;
  if (ask->gbs != floor(ask->gbs) || ask->seq != floor(ask->seq))
    e = err_new(ERR_INVALID, "%s is no whole number of them", batch);
  else if (told && ask->tokens > 0 && tokens > ask->tokens)
    e = err_hint(err_new(ERR_INVALID, "%s is more than the %g %s of the whole run", batch,
                         ask->tokens, unit),
                 "a smaller --gbs, or more --tokens");
  else if (tokens > STEP_MOST)
    e = err_hint(err_new(ERR_INVALID, "%s: a step has at most %g %s", batch, STEP_MOST, unit),
                 "a smaller --gbs");
  free(batch);
  return e;
}

static double common_multiple(double a, double b) {
  double x = a, y = b;
  while (y > 0) {
    double rest = fmod(x, y);
    x = y, y = rest;
  }
  return a / x * b;
}

/* Chips of which each named count has a whole share of the batch, where one of them is no power of two; else 1. */
static double whole_over(const PlanAsk *ask, double gbs) {
  double all = 1;
  bool some = false;
  for (int i = 0; i < ask->n_chips; i++) {
    double n = ask->chips[i].devices, odd = n;
    while (odd > 1 && fmod(odd, 2) == 0) odd /= 2; /* tensor and pipeline ways take these */
    some |= odd > 1;
    if (n > gbs) n = odd;
    double both = n > 1 ? common_multiple(all, n) : all;
    if (both <= gbs) all = both;
  }
  return some ? all : 1;
}

/* The batch that nobody named, next to `gbs`, that divides over the chips that were named: 72 of a rack have 504; 7 have
 * 504 too, for 73 sequences each would be microbatches of one. */
static double whole_shares(const PlanAsk *ask, double gbs) {
  const double near = 0.04;
  double all = whole_over(ask, gbs);
  for (double many = 8 * all; all > 1 && many > all; many /= 2) {
    double batch = round(gbs / many) * many;
    if (fabs(batch - gbs) <= near * gbs) return batch;
  }
  return MAX(1, round(gbs / all)) * all;
}

static Err *complete(PlanAsk *ask) {
  if (ask->seq <= 0) ask->seq = plan_usual_seq(ask->model);
  bool told = ask->gbs > 0;
  if (!told) {
    ask->usual_gbs = ask->lora_rank ? LORA_BATCH : usual_batch(ask->model, ask->seq);
    ask->gbs = whole_shares(ask, ask->usual_gbs);
  }
  TRY(plan_check_batch(ask, told));
  if (ask->most <= 0) ask->most = 1024;
  if (ask->lora_rank >= ask->model->hidden)
    return err_hint(err_new(ERR_INVALID, "adapters of rank %d beside kernels of %g rows",
                            ask->lora_rank, ask->model->hidden),
                    "8 to 64 are usual");
  return NULL;
}

static char *why_nothing(const PlanAnswer *a, double over) {
  const PlanAsk *ask = &a->ask;
  bool some = !ask->formats;
  for (int i = 0; i < ask->n_chips; i++) some |= formats_of(ask, ask->chips[i].chip) != 0;
  if (!some) return xasprintf("none of the chips multiplies these numbers: other --precision");
  if (isinf(over))
    return xasprintf(
        "no layout divides a batch of %g sequences over so many devices: fewer chips, or --gbs %g",
        ask->gbs, whole_shares(ask, ask->gbs));
  return xasprintf(
      "no layout fits: the leanest needs %.1f GiB more on each device; more chips, chips with "
      "more memory, shorter sequences, or --lora",
      over / 1073741824);
}

/* ---- a deadline that nothing meets ---------------------------------------------------------------- */

enum { CHIPS_MOST = 65536 };

static const PlanChoice *fastest(const PlanAnswer *a) {
  const PlanChoice *best = NULL;
  for (int i = 0; i < a->choices.n; i++)
    if (!best || a->choices.v[i].p50_s < best->p50_s) best = &a->choices.v[i];
  return best;
}

/* The smallest number of chips of the fastest's kind that would meet it, looked for by doubling. */
static void look_sooner(PlanAnswer *a) {
  const PlanAsk *ask = &a->ask;
  const PlanChoice *fast = fastest(a);
  if (ask->deadline_s <= 0 || !fast || fast->p50_s <= ask->deadline_s) return;
  for (int64_t n = 2 * (int64_t)fast->chips; n <= CHIPS_MOST && !a->sooner.chips; n *= 2) {
    Hunts one = {0};
    add(&one, ask, &(ChipRef){.chip = fast->chip}, fast->server, (int)n);
    hunt(one.v, 0);
    Hunt *h = one.v;
    err_free(h->err);
    if (h->found) {
      plan_price(ask, &h->best);
      if (h->best.p50_s <= ask->deadline_s) a->sooner = h->best, a->sooner.asked = NULL;
    }
    vec_free(&one);
    a->most_looked = (int)n;
  }
}

Err *plan_search(const PlanAsk *given, PlanAnswer *out) {
  *out = (PlanAnswer){.ask = *given};
  PlanAsk *ask = &out->ask;
  double start = time_now_s(), over = INFINITY;
  TRY(complete(ask));
  Hunts all = {0};
  for (int i = 0; i < ask->n_chips; i++) {
    const ChipRef *r = &ask->chips[i];
    if (r->chips > 0) add_servers(&all, ask, r, r->chips);
    for (int n = 1; r->chips == 0 && n <= ask->most; n *= 2) add_servers(&all, ask, r, n);
  }
  pool_run(all.n, hunt, all.v);
  Err *e = NULL;
  for (int i = 0; i < all.n; i++) {
    Hunt *h = &all.v[i];
    out->layouts += h->layouts;
    over = MIN(over, h->least_over);
    if (h->err && !e && all.n == 1) e = h->err;
    else err_free(h->err); /* a count that no slice has is no choice */
    if (!h->found) continue;
    PlanChoice *c = vec_push(&out->choices);
    *c = h->best;
    plan_price(ask, c);
  }
  vec_free(&all);
  if (e) return e;
  plan_best_servers(out);
  Buf remarks = {0};
  formats_lacking(ask, &remarks);
  out->remarks = remarks.p;
  if (!out->choices.n) out->nothing = why_nothing(out, over);
  plan_rank(out);
  look_sooner(out);
  out->seconds = time_now_s() - start;
  return NULL;
}

void plan_answer_free(PlanAnswer *a) {
  vec_free(&a->choices);
  free(a->nothing);
  free(a->remarks);
}
