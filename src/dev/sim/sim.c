/* Virtual chips: the CPU device's numbers, the chip's precision, memory limit and time.
 *
 * A program is cloned, its products rewritten to the chip's matrix precision (compile/pass/numerics.h),
 * compiled by dev/cpu for the numbers and by sim for memory and time. A program that does not fit
 * is refused with the report of what holds the memory. WEFT_PHANTOM=1 switches the numbers off:
 * results have shapes but no data, so that a program of any size can be asked for its memory and
 * time.
 *
 * Loops whose length only the data tells are counted as they run (pass_count_loops), and a run's time is that of so many turns;
 * the program's report has each once until then.
 */
#include "chip/slice.h"
#include "compile/pass/pass.h"
#include "dev/dev.h"
#include "dev/sim/numerics.h"
#include "interp/interp.h"
#include "sim/sim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern const DeviceOps dev_cpu;

typedef struct Virtual {
  const Chip *chip;
  ChipRef ref;
  Dev host; /* the CPU device that computes */
  Numerics numerics;
  bool phantom;
} Virtual;

typedef struct VirtualProgram {
  DevProgram host;   /* prog as the CPU device sees it */
  SimReport *report; /* NULL: the model has no answer; see model_error */
  char *model_error;
  int n_loops;   /* that have numbers */
  bool *counted; /* by number: the host's program has one more result for each */
  pthread_mutex_t lock;
  int *ids;          /* the device of each process; NULL: not known */
  double *trips;     /* by number: means of the last run, negative unknown */
  SimReport *as_ran; /* with them; NULL: not asked for yet */
} VirtualProgram;

Numerics chip_numerics(const Chip *c) {
  const char *s = chip_text(c, "numerics");
  if (s && !strcmp(s, "bf16-passes"))
    return chip_num(c, "fit.matvec", 1) != 0 ? NUM_BF16_PASSES : NUM_BF16_MATVEC;
  if (s && !strncmp(s, "tf32", 4)) return NUM_TF32;
  return NUM_F32;
}

static Err *sim_open(Dev *dev, Str args) {
  char *name = xstrndup(args.p, args.n);
  ChipRef ref = {0};
  Err *e = chip_parse(name, &ref);
  free(name);
  if (e) return e;
  Virtual *v = xcalloc(1, sizeof *v);
  v->chip = ref.chip;
  v->ref = ref;
  v->numerics = chip_numerics(ref.chip);
  v->phantom = env_flag("WEFT_PHANTOM");
  dev->n = ref.devices ? ref.devices : 1;
  v->host = (Dev){.ops = &dev_cpu, .n = dev->n, .spec = dev->spec};
  char count[16];
  int len = snprintf(count, sizeof count, "%d", dev->n);
  e = dev_cpu.open(&v->host, (Str){count, (size_t)len});
  if (e) {
    free(v);
    return e;
  }
  dev->impl = v;
  return NULL;
}

static void sim_close(Dev *dev) {
  Virtual *v = dev->impl;
  dev_cpu.close(&v->host);
  free(v);
}

/* v2, v3 and tpu7x have two devices a chip. */
static void place_in_torus(const Virtual *v, int i, DevInfo *out) {
  int each = MAX(v->chip->devices_per_chip, 1);
  int64_t at[3];
  slice_place(&v->ref.slice, i / each % v->ref.slice.chips, at);
  for (int k = 0; k < 3; k++) out->coords[k] = (int)at[k];
  out->core = i % each;
}

static void gpu_info(const Chip *chip, DevInfo *out) {
  out->vendor = chip->vendor;
  out->capability = chip_text(chip, "compute_capability");
  out->units = (int)chip_num(chip, "sms", 0);
}

static void sim_info(const Dev *dev, int i, DevInfo *out) {
  const Virtual *v = dev->impl;
  const char *kind = chip_text(v->chip, "device_kind");
  out->kind = kind ? kind : v->chip->title;
  out->memory_bytes = (int64_t)v->chip->hbm_usable;
  if (v->chip->kind == CHIP_TPU) place_in_torus(v, i, out);
  else gpu_info(v->chip, out);
}

static int64_t sim_footprint(const Dev *dev, const Tensor *t) {
  const Virtual *v = dev->impl;
  Type type = {.kind = TY_TENSOR, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
  return t->n_elems || t->dtype == DT_TOKEN ? 0 : (int64_t)sim_array_bytes(v->chip, &type);
}

static void sim_program_free(DevProgram *prog) {
  VirtualProgram *p = prog->impl;
  if (!p) return;
  if (p->host.impl) dev_cpu.program_free(&p->host);
  module_free(p->host.module);
  sim_report_free(p->report);
  sim_report_free(p->as_ran);
  free(p->counted);
  free(p->trips);
  free(p->ids);
  pthread_mutex_destroy(&p->lock);
  free(p->model_error);
  free(p);
  prog->impl = NULL;
}

static const char *program_name(const DevProgram *prog) {
  return prog->module->name.n ? prog->module->name.p : "main";
}

static Err *estimate(const DevProgram *prog, SimReport **out) {
  const Virtual *v = prog->dev->impl;
  const VirtualProgram *p = prog->impl;
  SimOpts opts = {.devices = prog->opts.replicas * prog->opts.partitions,
                  .where = &v->ref,
                  .ids = p->ids,
                  .n_trips = p->trips ? p->n_loops : 0,
                  .trips = p->trips};
  return sim_estimate_spmd(prog->given, v->chip, &opts, prog->opts.partitions, out);
}

/* The host's program also counts the loops that the report does not know the length of. */
static Err *count_loops(VirtualProgram *p) {
  bool any = false;
  for (int i = 0; p->report && i < p->report->n_loops; i++) {
    const SimLoop *l = &p->report->loops[i];
    if (l->unknown && l->number >= 0 && l->number < p->n_loops) p->counted[l->number] = any = true;
  }
  if (!any) return NULL;
  TRY(pass_inline(p->host.module));
  p->host.main = module_main(p->host.module);
  p->host.n_results += pass_count_loops(p->host.module, p->n_loops, p->counted);
  return NULL;
}

static Err *sim_compile(DevProgram *prog, const Module *m) {
  Virtual *v = prog->dev->impl;
  VirtualProgram *p = xcalloc(1, sizeof *p);
  prog->impl = p;
  pthread_mutex_init(&p->lock, NULL);
  p->n_loops = pass_number_loops(prog->given);
  if (dev_program_is_cut(prog)) p->n_loops = MIN(p->n_loops, pass_number_loops(prog->module));
  p->counted = xcalloc((size_t)p->n_loops + 1, sizeof *p->counted);
  int n = prog->opts.replicas * prog->opts.partitions;
  if (prog->opts.assignment) {
    p->ids = xmalloc(sizeof *p->ids * (size_t)n);
    memcpy(p->ids, prog->opts.assignment, sizeof *p->ids * (size_t)n);
  }
  Err *e = estimate(prog, &p->report);
  if (e && e->code == ERR_UNIMPLEMENTED) { /* runs all the same, without a model */
    Buf why = {0};
    buf_printf(&why, "%s%s%s", e->place ? e->place : "", e->place ? ": " : "", e->msg);
    p->model_error = xstrdup(why.p);
    buf_free(&why);
    err_free(e);
    e = NULL;
  }
  if (!e && p->report) e = sim_fit_error(p->report, program_name(prog));
  if (!e && !v->phantom) {
    p->host = *prog;
    p->host.ops = &dev_cpu;
    v->host.exchange = prog->dev->exchange;
    p->host.dev = &v->host;
    p->host.impl = NULL;
    p->host.module = module_clone(m);
    if (!dev_program_is_cut(prog)) p->host.given = p->host.module;
    p->host.main = module_main(p->host.module);
    pass_numerics(p->host.module, v->numerics);
    e = count_loops(p);
    if (!e) e = dev_cpu.compile(&p->host, p->host.module);
  }
  if (e) sim_program_free(prog);
  return e;
}

/* Results without data; every process holds the same shape. */
static Err *phantom_results(const DevProgram *prog, Shards *results) {
  for (int j = 0; j < prog->n_results; j++) {
    const Type *t = prog->main->type->results[j]; /* of a cut program: its own part */
    if (!type_is_static(t))
      return err_new(ERR_UNIMPLEMENTED,
                     "phantom mode needs static result shapes; result %d has none", j);
    Tensor *r = tensor_phantom(t->dtype, t->rank, t->dims);
    results[j].n = 1;
    results[j].t = xmalloc(sizeof(Tensor *));
    results[j].t[0] = r;
  }
  return NULL;
}

/* What a run took in which loops ran as often as `counts` say, one result for each counted number. The busiest device counts. */
static double as_counted(VirtualProgram *p, const Shards *counts) {
  int64_t *bodies = xmalloc(sizeof *bodies * (size_t)(p->n_loops + 1));
  double *trips = xmalloc(sizeof *trips * (size_t)(p->n_loops + 1));
  for (int k = 0; k < p->n_loops; k++) {
    bodies[k] = -1;
    if (!p->counted[k]) continue;
    for (int i = 0; i < counts->n; i++)
      bodies[k] = MAX(bodies[k], *(const int64_t *)counts->t[i]->data);
    counts++;
  }
  double time_s = sim_ran_s(p->report, p->n_loops, bodies, trips);
  pthread_mutex_lock(&p->lock);
  if (!p->trips || memcmp(p->trips, trips, sizeof *trips * (size_t)p->n_loops)) {
    free(p->trips);
    sim_report_free(p->as_ran);
    p->trips = trips;
    p->as_ran = NULL;
    trips = NULL;
  }
  pthread_mutex_unlock(&p->lock);
  free(trips);
  free(bodies);
  return time_s;
}

static Err *run_host(VirtualProgram *p, const DevPart *part, const Shards *args,
                     const bool *donated, int n, Shards *results, double *time_s) {
  DevRun host = {0};
  int more = p->host.n_results - n;
  if (!more) return dev_cpu.run(&p->host, part, args, donated, results, &host);
  Shards *all = xcalloc((size_t)p->host.n_results, sizeof *all);
  Err *e = dev_cpu.run(&p->host, part, args, donated, all, &host);
  if (!e) {
    memcpy(results, all, sizeof *all * (size_t)n);
    *time_s = as_counted(p, all + n);
    for (int i = n; i < n + more; i++) shards_free(&all[i]);
  }
  free(all);
  return e;
}

static Err *sim_run(DevProgram *prog, const DevPart *part, const Shards *args, const bool *donated,
                    Shards *results, DevRun *out_run) {
  Virtual *v = prog->dev->impl;
  VirtualProgram *p = prog->impl;
  double time_s = p->report ? p->report->time_s : 0;
  *out_run = (DevRun){0};
  if (v->phantom) TRY(phantom_results(prog, results));
  else TRY(run_host(p, part, args, donated, prog->n_results, results, &time_s));
  if (!p->report) return NULL;
  /* energy of further turns at the program's mean power */
  double share = p->report->time_s > 0 ? time_s / p->report->time_s : 1;
  *out_run = (DevRun){.time_s = time_s, .energy_j = p->report->energy_j * share};
  return NULL;
}

static Err *no_model(const VirtualProgram *p) {
  return err_new(ERR_UNIMPLEMENTED, "%s",
                 p->model_error ? p->model_error : "no model of this program");
}

static Err *sim_cost(const DevProgram *prog, DevCost *out) {
  const VirtualProgram *p = prog->impl;
  if (!p->report) return no_model(p);
  const SimReport *r = p->report;
  *out = (DevCost){r->flops, -1, 0, r->time_s};
  for (int i = 0; i < r->n_kernels; i++) /* wherever they lie, as XLA counts them */
    out->bytes_accessed += (r->kernels[i].bytes + r->kernels[i].cached) * r->kernels[i].count;
  return NULL;
}

static Err *sim_memory(const DevProgram *prog, DevMemory *out) {
  const VirtualProgram *p = prog->impl;
  const SimReport *r = p->report;
  if (!r) return no_model(p);
  *out = (DevMemory){0,
                     (int64_t)r->argument_bytes,
                     (int64_t)r->output_bytes,
                     (int64_t)r->alias_bytes,
                     (int64_t)r->temp_bytes,
                     (int64_t)r->peak_bytes};
  return NULL;
}

static Err *sim_beside(const DevProgram *prog, int64_t held) {
  const VirtualProgram *p = prog->impl;
  if (!p->report) return NULL;
  return sim_fit_error_beside(p->report, program_name(prog), (double)held);
}

/* The report of the program as it ran last; with the lock held. */
static const SimReport *as_ran(const DevProgram *prog) {
  VirtualProgram *p = prog->impl;
  if (p->trips && !p->as_ran) err_free(estimate(prog, &p->as_ran));
  return p->as_ran ? p->as_ran : p->report;
}

static Err *sim_report(const DevProgram *prog, Buf *out_json) {
  VirtualProgram *p = prog->impl;
  if (!p->report) return no_model(p);
  pthread_mutex_lock(&p->lock);
  sim_json(as_ran(prog), NULL, false, out_json);
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

static void profile_device(const Dev *dev, ProfDevice *out) {
  const Virtual *v = dev->impl;
  sim_profile_device(v->chip, out);
}

static Err *profile(const DevProgram *prog, Prof *p, ProfProgram **out) {
  VirtualProgram *q = prog->impl;
  if (!q->report) return no_model(q);
  Str name = prog->module->name.n ? prog->module->name : STR("main");
  char *text = xstrndup(name.p, name.n);
  pthread_mutex_lock(&q->lock);
  *out = sim_profile(as_ran(prog), p, text);
  pthread_mutex_unlock(&q->lock);
  free(text);
  return NULL;
}

const DeviceOps dev_sim = {
    .name = "sim",
    .async = true,
    .cuts = true,
    .open = sim_open,
    .close = sim_close,
    .info = sim_info,
    .compile = sim_compile,
    .program_free = sim_program_free,
    .run = sim_run,
    .cost = sim_cost,
    .memory = sim_memory,
    .beside = sim_beside,
    .report = sim_report,
    .profile_device = profile_device,
    .profile = profile,
    .footprint = sim_footprint,
};
