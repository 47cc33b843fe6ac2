/* weft move: what changes when a training run goes from one device to another, and the flags that
 * keep it the same run. */
#include "cli/cli.h"

#include "base/system.h"
#include "base/units.h"
#include "chip/chip.h"
#include "sim/sim.h"
#include "zoo/zoo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: weft move RUN|MODEL --from DEVICE --to DEVICE [options]\n"
    "\n"
    "RUN is a run folder of `weft train --out` (its own settings), MODEL one of the zoo (its "
    "usual\n"
    "ones). Says what changes between the devices: batch of a core, learning rate, decay, batch "
    "norm,\n"
    "schedule, precision, input; and prints the flags for `weft train` on the other device.\n"
    "\n"
    "  --from D, --to D   as clouds name them: T4, A100-80GB:8, tpu-v2-8, tpu-v5litepod-4; from:\n"
    "                     also cpu, cpu:8\n"
    "  --batch N          examples in a step there, all devices together (default: as here)\n"
    "  --help             this text\n";

enum { O_FROM = CLI_FIRST, O_TO, O_BATCH };
static const struct option options[] = {{"from", 1, NULL, O_FROM},
                                        {"to", 1, NULL, O_TO},
                                        {"batch", 1, NULL, O_BATCH},
                                        CLI_HELP_ROW,
                                        {0}};

typedef struct Side { /* one end of the move */
  const char *name;
  ChipRef ref; /* chip NULL: this CPU, of which nothing is estimated */
  int devices;
  TrainConfig c; /* batch: of all devices */
  double step_s, memory_bytes, limit_bytes;
  bool fits;
} Side;

typedef struct Move {
  const Model *model;
  Data *data;
  bool is_run;
  TrainConfig usual; /* the model's own settings */
  Side from, to;
  int64_t batch; /* 0: as before */
} Move;

/* ---- what is known --------------------------------------------------------------------------- */

static void usual_settings(Move *m) {
  m->usual = (TrainConfig){.seed = 1, .compute = DT_F32};
  m->model->defaults(&m->usual);
}

static Err *open_what(const char *what, Move *m) {
  struct stat st;
  TrainConfig *c = &m->from.c;
  if (!stat(what, &st)) {
    char *path = checkpoint_path(what);
    CheckpointInfo i;
    Err *e = checkpoint_info(path, &i);
    free(path);
    TRY(e);
    *c = i.config;
    m->data = i.data;
    i.data = NULL;
    m->is_run = true;
    e = i.program
            ? err_hint(
                  err_new(ERR_UNIMPLEMENTED,
                          "'%s' is a run of a train step of its own: rate and batch are inside "
                          "the step, where weft cannot change them",
                          what),
                  "weft estimate STEP --chip %s says how long it takes there", m->to.name)
            : zoo_find(i.model, &m->model);
    checkpoint_info_free(&i);
    if (!e) usual_settings(m);
    return e;
  }
  TRY(err_wrap(zoo_find(what, &m->model), "neither a run folder nor a model"));
  usual_settings(m);
  *c = m->usual;
  DataOpts o = model_data(m->model, c);
  return data_open("synthetic", &o, &m->data);
}

/* Time and memory of a step there, each device its part of the batch. */
static Err *estimate(const Move *m, Side *s) {
  if (!s->ref.chip) return NULL;
  TrainConfig c = s->c;
  c.replicas = s->devices;
  c.batch = s->c.batch / s->devices;
  StepProgram p;
  TRY(step_build(m->model, &c, m->data, true, &p));
  SimReport *r = NULL;
  Err *e = sim_estimate(p.m, s->ref.chip, &(SimOpts){.devices = s->devices}, &r);
  step_free(&p);
  if (e) return e;
  s->step_s = r->time_s;
  s->memory_bytes = r->hbm_bytes;
  s->limit_bytes = r->limit_bytes;
  s->fits = r->fits;
  sim_report_free(r);
  return NULL;
}

/* "cpu", "cpu:8" */
static bool is_cpu(const char *name, int *devices) {
  if (strncmp(name, "cpu", 3)) return false;
  char *end = NULL;
  long n = name[3] == ':' ? strtol(name + 4, &end, 10) : 1;
  if (name[3] ? !end || end == name + 4 || *end || n < 1 || n > 4096 : false) return false;
  return *devices = (int)n, true;
}

static Err *open_from(Side *s) {
  if (is_cpu(s->name, &s->devices)) return NULL;
  TRY(chip_parse(s->name, &s->ref));
  s->devices = MAX(1, s->ref.devices);
  return NULL;
}

static Err *open_to(Side *s) {
  if (is_cpu(s->name, &s->devices))
    return err_hint(err_new(ERR_INVALID, "--to %s: weft estimates chips, not this CPU", s->name),
                    "weft train --device %s, and --resume of a run, take the same settings there",
                    s->name);
  TRY(chip_parse(s->name, &s->ref));
  s->devices = MAX(1, s->ref.devices);
  return NULL;
}

static bool by_sign(OptKind k) { /* steps whose length does not grow with the gradient */
  return k != OPT_SGD && k != OPT_MOMENTUM && k != OPT_NESTEROV;
}

/* The settings on the other side: those of this one, for another batch. */
static Err *settings_there(Move *m) {
  TrainConfig *c = &m->to.c;
  *c = m->from.c;
  int64_t n = m->to.devices, want = m->batch ? m->batch : m->from.c.batch;
  if (m->batch && m->batch % n)
    return err_new(ERR_INVALID, "a batch of %lld does not divide into %d devices",
                   (long long)m->batch, m->to.devices);
  c->batch = (want + n - 1) / n * n;
  double times = (double)c->batch / (double)m->from.c.batch;
  c->opt.lr *= by_sign(c->opt.kind) ? sqrt(times) : times;
  c->opt.warmup_steps = round(c->opt.warmup_steps / times);
  if (c->opt.total_steps > 0) c->opt.total_steps = round(c->opt.total_steps / times);
  if (c->steps) c->steps = (int64_t)ceil((double)c->steps / times);
  bool tpu = m->to.ref.chip->kind == CHIP_TPU; /* whose products of f32 are of bf16 anyway */
  bool bf16 = tpu || chip_fact(m->to.ref.chip, "peak_bf16");
  bool f16 = chip_fact(m->to.ref.chip, "peak_fp16");
  if (c->compute != DT_F32 || tpu) c->compute = bf16 ? DT_BF16 : f16 ? DT_F16 : DT_F32;
  return NULL;
}

/* ---- the text -------------------------------------------------------------------------------- */

static const char *precision(const TrainConfig *c) {
  return c->compute == DT_BF16       ? "bf16"
         : c->compute == DT_F16      ? "f16"
         : c->compute == DT_F8E4M3FN ? "f8"
                                     : "f32";
}

static const char *a_second(char text[UNITS_TEXT], const Side *s) {
  snprintf(text, UNITS_TEXT, "%.0f", s->step_s > 0 ? (double)s->c.batch / s->step_s : 0);
  return text;
}

static void print_sides(const Move *m) {
  printf("%s from %s to %s\n\n  %-26s %14s %14s\n", m->model->name, m->from.name, m->to.name, "",
         m->from.name, m->to.name);
  const Side *s[2] = {&m->from, &m->to};
#define ROW(what, format, value)                       \
  do {                                                 \
    printf("  %-26s", what);                           \
    for (int i = 0; i < 2; i++) printf(format, value); \
    printf("\n");                                      \
  } while (0)
  ROW("devices", " %14d", s[i]->devices);
  ROW("batch, all devices", " %14lld", (long long)s[i]->c.batch);
  ROW("batch of a device", " %14lld", (long long)(s[i]->c.batch / s[i]->devices));
  ROW("learning rate", " %14.6g", s[i]->c.opt.lr);
  ROW("decay", " %14.6g", s[i]->c.opt.decay);
  ROW("warm-up, steps", " %14.0f", s[i]->c.opt.warmup_steps);
  ROW("precision", " %14s", precision(&s[i]->c));
  char text[UNITS_TEXT];
#define OF_CHIP(value) (s[i]->ref.chip ? (value) : "-")
  ROW("step (estimated)", " %14s", OF_CHIP(units_time(text, s[i]->step_s)));
  ROW("memory of a device", " %14s", OF_CHIP(units_bytes(text, s[i]->memory_bytes)));
  ROW("fits", " %14s", OF_CHIP(s[i]->fits ? "yes" : "NO"));
  ROW("input, examples/s", " %14s", OF_CHIP(a_second(text, s[i])));
#undef OF_CHIP
#undef ROW
}

static bool has_batch_norm(const Move *m) {
  StepProgram p;
  TrainConfig c = m->from.c;
  c.batch = 2;
  Err *e = forward_build(m->model, &c, m->data, &p);
  bool some = !e && p.n_stats > 0;
  if (!e) step_free(&p);
  err_free(e);
  return some;
}

static void print_reasons(const Move *m) {
  const TrainConfig *a = &m->from.c, *b = &m->to.c;
  int64_t here = a->batch / m->from.devices, there = b->batch / m->to.devices;
  printf("\nWhy\n");
  printf("  Gradients are the mean over all devices: what a step does depends on the batch of all\n"
         "  together, %lld here and %lld there.\n",
         (long long)a->batch, (long long)b->batch);
  if (a->batch == b->batch)
    printf("  It stays, so learning rate, decay and schedule stay. Where a program sums the loss "
           "over\n"
           "  the batch or adds gradients up over devices, divide rate and multiply decay by the\n"
           "  number that was summed over, before comparing.\n");
  else
    printf(
        "  The rate goes with %s of the batch (%s); warm-up and schedule are counted in steps and\n"
        "  go the other way, so that they cover the same examples.\n",
        by_sign(a->opt.kind) ? "the square root" : "the size",
        by_sign(a->opt.kind) ? "the optimizer scales its steps itself" : "plain gradients");
  if (has_batch_norm(m) && here != there)
    printf(
        "  Batch norm takes mean and deviation of the examples of one device: of %lld instead of\n"
        "  %lld. %s\n",
        (long long)there, (long long)here,
        there < 16 ? "That few make training noisy: a larger --batch, or fewer devices."
                   : "Noisier means act like regularization; accuracy may move a little.");
  if (a->compute != b->compute)
    printf("  %s has no fast %s: products in %s, weights stay f32%s.\n", m->to.ref.chip->title,
           precision(a), precision(b),
           b->compute == DT_F16 ? "; the loss is scaled so that gradients do not vanish" : "");
  if (m->to.step_s > 0 && m->from.step_s > 0)
    printf(
        "  The input must deliver %.1f times as many examples a second; `weft train` prints how\n"
        "  long it had to wait for them.\n",
        (double)b->batch / m->to.step_s / ((double)a->batch / m->from.step_s));
}

/* A setting is said where it differs from what the model has without it; those that the move is about always. */
static void put_flag(const Move *m, const Setting *s, Buf *out) {
  static const char *const about[] = {"batch",    "optimizer",      "lr",    "decay",    "warmup",
                                      "schedule", "schedule-steps", "steps", "precision"};
  const TrainConfig *c = &m->to.c;
  bool said = !setting_equal(s, c, &m->usual);
  for (int i = 0; i < COUNT_OF(about); i++) said |= !strcmp(s->name, about[i]);
  if (!strcmp(s->name, "replicas") || (!strcmp(s->name, "epochs") && c->steps)) return;
  Buf v = {0};
  setting_text(s, c, &v);
  bool flag = s->kind == SET_FLAG, on = !strcmp(v.p, "true");
  if (said && flag) buf_printf(out, " --%s%s", on ? "" : "no-", s->name);
  else if (said && strcmp(v.p, "0") != 0) buf_printf(out, " --%s %s", s->name, v.p);
  buf_free(&v);
}

static void print_flags(const Move *m) {
  const TrainConfig *c = &m->to.c;
  Buf b = {0};
  buf_printf(&b, "weft train %s", m->model->name);
  if (m->is_run && m->data->spec) buf_cstr(&b, " --data "), buf_shell(&b, m->data->spec);
  if (m->data->tokenizer) buf_cstr(&b, " --tokenizer "), buf_shell(&b, m->data->tokenizer);
  buf_printf(&b, " --device %s", m->to.name);
  if (m->to.devices > 1) buf_printf(&b, " --replicas %d", m->to.devices);
  unsigned reads = settings_reads(m->model, m->data, c);
  for (const Setting *s = settings; s->name; s++)
    if (!s->hidden && (!s->read_by || s->read_by & reads)) put_flag(m, s, &b);
  printf("\nThere\n  %s\n", b.p);
  buf_free(&b);
}

static Err *run(Move *m, const char *what) {
  TRY(open_from(&m->from));
  TRY(open_to(&m->to));
  TRY(open_what(what, m));
  int n = m->from.devices;
  m->from.c.batch = (m->from.c.batch + n - 1) / n * n;
  TRY(settings_there(m));
  TRY(estimate(m, &m->from));
  TRY(estimate(m, &m->to));
  print_sides(m);
  print_reasons(m);
  print_flags(m);
  return NULL;
}

static int move(int argc, char **argv) {
  Move m = {0};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) {
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    if (o == '?') return 2;
    if (o == O_FROM) m.from.name = optarg;
    else if (o == O_TO) m.to.name = optarg;
    else if (!cli_count(&args, 1, &m.batch)) return 2;
  }
  if (optind != argc - 1) return cli_wrong(&args, "wants one RUN or MODEL");
  if (!m.from.name || !m.to.name) return cli_wrong(&args, "wants --from and --to");
  Err *e = run(&m, argv[optind]);
  data_close(m.data);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_move = {"move", "what changes from one device to another, and the flags for it",
                          move};
