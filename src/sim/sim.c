/* From a module to a report: build the graph, plan it for the chip, add up time, memory, energy and
 * money. */
#include <math.h>
#include <stdlib.h>

#include "compile/pass/pass.h"
#include "compile/pass/rebatch.h"
#include "sim/eager/eager.h"
#include "sim/gpu/gpu.h"
#include "sim/lists.h"
#include "sim/tpu/tpu.h"

const char *sim_bound_name(SimBound b) {
  static const char *names[] = {"compute", "memory", "vector", "latency", "network", "host"};
  return names[b];
}

/* XLA leaves a softmax between two products as it is; frameworks call a fused kernel by name. */
static int attention(HGraph *g, const Chip *chip, const CostParams *params, bool fused) {
  fused |= env_choice("WEFT_ATTENTION", "plain|fused") == 1;
  if (chip_num(chip, "fused_attention", 0) <= 0) return 0;
  int n = attention_mark(g, fused, params->queries ? params->fast : HUGE_VAL);
  return fused ? 0 : n;
}

/* Kernels that wait for memory use of it what they move. */
static void use_of_memory(const Chip *chip, SimReport *r) {
  for (int i = 0; i < r->n_kernels; i++) {
    SimKernel *k = &r->kernels[i];
    if (k->bound == SIM_MEMORY && k->time_s > 0)
      k->utilisation = MIN(1, MAX(k->utilisation, k->bytes / (chip->hbm_bandwidth * k->time_s)));
  }
}

/* Seconds for arguments that are returned as they are and not donated: each is copied. */
static double returned_s(const Schedule *p) {
  const Chip *chip = p->chip;
  const HGraph *g = p->g;
  double start = p->compiler->launch_s(chip, p->params);
  double bandwidth = chip->hbm_bandwidth * chip_num(chip, "fit.stream", 0.83), s = 0;
  for (int i = 0; i < g->main->outputs.n; i++) {
    const HNode *o = g->main->outputs.v[i];
    if (o->kind == H_PARAM && !g->donated[o->index]) s += start + 2 * hlo_bytes(o) / bandwidth;
  }
  return s;
}

/* Bytes of arguments and results, and of the results that take a donated argument's memory. */
static void ends(SimReport *r, const Schedule *p) {
  const HGraph *g = p->g;
  const CostParams *params = p->params;
  for (int i = 0; i < g->main->params.n; i++) {
    const HNode *a = g->main->params.v[i];
    *(a->host ? &r->host_bytes : &r->argument_bytes) += a->host ? hlo_bytes(a) : a->val->bytes;
  }
  bool *used = xcalloc((size_t)g->n_params + 1, sizeof *used);
  for (int i = 0; i < g->main->outputs.n; i++) {
    const HNode *o = g->main->outputs.v[i];
    HValue tmp = {.node = (HNode *)o};
    double bytes = o->val ? o->val->bytes : (value_layout(params, &tmp, NULL), tmp.bytes);
    double *shared = o->host ? &r->host_bytes : &r->alias_bytes;
    *(o->host ? &r->host_bytes : &r->output_bytes) += o->host ? hlo_bytes(o) : bytes;
    for (int k = 0; k < g->n_params; k++) {
      const HNode *q = g->main->params.v[k];
      if (used[k] || !g->donated[k] || q->dt != o->dt || q->val->bytes != bytes ||
          q->host != o->host)
        continue;
      used[k] = true;
      *shared += o->host ? -hlo_bytes(o) : bytes;
      break;
    }
  }
  free(used);
  if (g->main->outputs.n > 1 && p->compiler->tuples)
    r->output_bytes += params->min_alloc; /* the tuple */
}

static void need(SimReport *r, const Schedule *p) {
  double kept = r->argument_bytes + r->output_bytes - r->alias_bytes;
  r->temp_bytes = p->peak_hbm;
  r->peak_bytes = kept + p->peak_temp;
  r->hbm_bytes = kept + r->temp_bytes;
  r->fits = r->hbm_bytes <= r->limit_bytes;
}

/* The plan's memory, with what its compiler does when memory is short. */
static void fit(SimReport *r, Schedule *p) {
  r->limit_bytes = r->chip->hbm_usable;
  ends(r, p);
  need(r, p);
  double lends = p->compiler->lends_from, remats = p->compiler->remats_from;
  if (lends > 0 && r->hbm_bytes > lends * r->limit_bytes) {
    sched_peak(p, true);
    need(r, p);
  }
  if (remats > 0 && r->hbm_bytes > remats * r->limit_bytes) {
    sched_remat(p, remats * r->limit_bytes - (r->hbm_bytes - r->temp_bytes));
    need(r, p);
  }
}

static void step_time(SimReport *r, const Schedule *p) {
  const CostParams *params = p->params;
  double returned = returned_s(p);
  r->time_s = p->time_s + returned;
  if (r->time_s <= 0) /* results that are donated arguments: a launch all the same */
    r->time_s = p->compiler->launch_s(r->chip, params);
  r->cycles = p->compiler->counts_cycles ? p->cycles : p->time_s * params->clock;
  r->network_s = p->net_s;
  r->network_exposed_s = p->exposed_s;
  r->eager = p->compiler == &eager_compiler;
  r->host_s = p->host_s;
  r->exposed_copy_s = p->copy_s + returned;
  r->host_transfer_s = p->crossing_s;
  r->host_exposed_s = p->crossing_exposed_s;
  r->host_bytes += p->peak_host;
  r->rematerialized = p->rematerialized;
  r->rematerialized_s = p->rematerialized_s;
  r->flops = p->flops;
  r->model_bytes = p->bytes;
  r->unknown_loops = p->unknown_loops;
  r->circular = p->circular;
}

/* again: share of the products */
static void utilisation(SimReport *r, const Schedule *p, double again) {
  r->flops_recomputed = r->flops * again;
  if (r->time_s <= 0) return;
  r->hfu = p->peak_s / r->time_s;
  r->mfu = r->hfu * (1 - again);
}

/* Of the machines that the times are of, or as large. */
static void price(SimReport *r, const SimOpts *o) {
  PriceAsk machines = o->price, *ask = &machines;
  const Server *named = o->where ? o->where->server : NULL,
               *s = named ? named : chip_server(r->chip);
  ask->server = named;
  r->server = r->devices > 1 ? s : NULL;
  r->server_named = named;
  if (s && r->devices > 1)
    ask->least_chips =
        (int)MIN(r->devices, server_num(s, "host_gpus", s->gpus)) / r->chip->devices_per_chip;
  Buf words = {0};
  r->price = chip_rent(r->chip, (double)r->devices / r->chip->devices_per_chip, ask);
  r->usd_per_hour = r->price.usd_hour;
  r->usd = r->usd_per_hour * r->time_s / 3600;
  price_words(&r->price, &words);
  r->price_source = arena_str(r->arena, (Str){words.p, words.n}).p;
  buf_free(&words);
}

int64_t report_batch(const SimReport *r, const Module *m) {
  Module *c = module_clone(m);
  Err *e = pass_inline(c);
  int64_t batch = 0;
  if (!e && module_main(c)->body->n_args == r->n_args) {
    bool *is_input = xcalloc((size_t)r->n_args + 1, sizeof *is_input),
         *is_state = xcalloc((size_t)r->n_args + 1, sizeof *is_state);
    for (int i = 0; i < r->n_args; i++) {
      is_input[i] = r->arg_owners[i] == SIM_INPUT;
      is_state[i] = !is_input[i];
    }
    batch = batch_of(c, is_input, is_state);
    free(is_input);
    free(is_state);
  }
  err_free(e);
  module_free(c);
  return batch;
}

/* How the chip's programs are compiled. */
static const ChipCompiler *compiler_of(const Chip *chip, const SimOpts *opts) {
  if (chip->kind == CHIP_TPU) return &tpu_compiler;
  return opts->eager ? &eager_compiler : &gpu_compiler;
}

/* Loops that the program does not tell the trips of, as a run had them. */
static void take_trips(HGraph *g, const SimOpts *opts) {
  for (const HComp *c = g->comps; c; c = c->next)
    for (int i = 0; i < c->nodes.n; i++) {
      HNode *n = c->nodes.v[i];
      int k = n->kind == H_WHILE && n->trip < 0 && n->src ? loop_number(n->src) : -1;
      if (k >= 0 && k < opts->n_trips && opts->trips[k] >= 0)
        n->trip = (int64_t)(opts->trips[k] + 0.5);
    }
}

static Err *find_batch_norm(Op *op, void *unused) {
  (void)unused;
  bool is = op->kind == OP_BATCH_NORM_TRAINING || op->kind == OP_BATCH_NORM_INFERENCE ||
            op->kind == OP_BATCH_NORM_GRAD;
  return is ? op_err(op, ERR_UNIMPLEMENTED, "batch norm") : NULL;
}

static bool has_batch_norm(const Module *m) {
  bool found = false;
  for (int i = 0; i < m->funcs.n && !found; i++) {
    Err *e = m->funcs.v[i]->body ? ir_walk(m->funcs.v[i]->body, find_batch_norm, NULL) : NULL;
    found = e != NULL;
    err_free(e);
  }
  return found;
}

static Err *estimate(const Module *m, const Chip *chip, const SimOpts *opts, SimReport **out) {
  Arena *arena = arena_new();
  HGraph *g;
  Schedule *p = NULL;
  Owners *owners = NULL;
  CostParams *params = ARENA_NEW(arena, CostParams);
  const ChipCompiler *c = compiler_of(chip, opts);
  params_read(chip, params);
  Err *err = hlo_build(m, arena, c->keeps_scatters, &g);
  if (!err) take_trips(g, opts);
  if (!err) owners = owners_of_arguments(g);
  if (!err && c->rewrite) c->rewrite(g, chip, params);
  int attentions = err ? 0 : attention(g, chip, params, opts->fused_attention);
  if (!err && c->lower) c->lower(g, chip, params);
  SchedSetting s = {g, chip, params, opts, c, arena};
  if (!err) err = sched_program(&s, g->main, &p);
  if (!err) {
    SimReport *r = *out = ARENA_NEW(arena, SimReport);
    r->arena = arena;
    r->chip = chip;
    r->devices = MAX(opts->devices, 1);
    r->attentions = attentions;
    fit(r, p);
    step_time(r, p);
    report_lists(r, p, owners);
    r->batch = report_batch(r, m);
    utilisation(r, p, products_recomputed(m));
    r->energy_j = c->energy_j(chip, r) * r->devices / chip->devices_per_chip;
    use_of_memory(chip, r);
    price(r, opts);
  }
  sched_lists_free(p);
  hlo_free(g);
  if (err) arena_free(arena);
  return err;
}

Err *sim_estimate(const Module *m, const Chip *chip, const SimOpts *opts, SimReport **out) {
  static const SimOpts none;
  if (!opts) opts = &none;
  if (opts->eager || !has_batch_norm(m)) return estimate(m, chip, opts, out);
  Module *own = module_clone(m); /* XLA makes sums and arithmetic of it before all else */
  Err *e = pass_batch_norm(own);
  if (!e) e = estimate(own, chip, opts, out);
  module_free(own);
  return e;
}

void sim_report_free(SimReport *r) {
  if (r) arena_free(r->arena);
}

double sim_product_s(const Chip *c, DType dt, double batch, double m, double n, double k) {
  if (batch <= 0 || m <= 0 || n <= 0 || k <= 0) return 0;
  return c->kind == CHIP_TPU ? tpu_product_s(c, dt, batch, m, n, k)
                             : gpu_product_s(c, dt, batch, m, n, k);
}

double sim_pass_s(const Chip *c, double bytes) {
  bool tpu = c->kind == CHIP_TPU;
  double share = chip_num(c, tpu ? "pass_stream" : "fit.stream", NAN);
  double start = chip_num(c, tpu ? "pass_start" : "fit.launch", NAN);
  return bytes > 0 ? bytes / (c->hbm_bandwidth * share) + start : 0;
}
