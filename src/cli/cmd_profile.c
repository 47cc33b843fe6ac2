/* weft profile: a program or a model of the zoo on this CPU (measured) or on a virtual chip (its
 * own time), or a recording that was written before, as text, for TensorBoard and Perfetto, and as
 * one HTML file. */
#include "base/system.h"
#include "cli/cli.h"

#include "base/path.h"
#include "dev/dev.h"
#include "prof/prof.h"
#include "zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char usage[] =
    "usage: weft profile PROGRAM|MODEL [--chip NAME | --device cpu] [options]\n"
    "       weft profile DIR|FILE.xplane.pb [options]\n"
    "\n"
    "PROGRAM is StableHLO text or bytecode; MODEL one of the zoo (its training step, see weft "
    "train --help);\n"
    "DIR a log folder with a recording, written by this command, by weft train --profile or by "
    "jax.profiler.\n"
    "Prints where the time of a step goes, what bounds it, and the dearest kernels.\n"
    "\n"
    "  --chip NAME      a virtual chip (tpu-v3-8, A100-80GB): its own time; nothing is computed\n"
    "  --device D       cpu (default): measured here\n"
    "  --steps N        steps to record (default 10 on a chip, 5 on the CPU)\n"
    "  --batch N        examples in a step of a MODEL, all devices together\n"
    "  --size N, --length N   variant of a MODEL (layers), tokens in an example\n"
    "  --precision P    f32 or bf16, of a MODEL\n"
    "  --data D, --data-dir DIR   make real batches of this data set on this host and show whether "
    "they\n"
    "                   keep pace with the device (a MODEL's own data set when it is here)\n"
    "  --input-ms X     instead: a batch takes the host X ms\n"
    "  --out DIR        write DIR/plugins/profile/...: tensorboard --logdir DIR (with xprof "
    "installed),\n"
    "                   and a .trace.json.gz for ui.perfetto.dev\n"
    "  --html FILE      write the report as one HTML file\n"
    "  --json           print the summary as JSON\n"
    "  --kernels N      rows of the kernel table (default 15)\n"
    "  --help           this text\n";

enum {
  O_CHIP = CLI_FIRST,
  O_DEVICE,
  O_STEPS,
  O_BATCH,
  O_SIZE,
  O_LENGTH,
  O_PRECISION,
  O_DATA,
  O_DATA_DIR,
  O_INPUT,
  O_OUT,
  O_HTML,
  O_JSON,
  O_KERNELS
};

static const struct option options[] = {{"chip", 1, NULL, O_CHIP},
                                        {"device", 1, NULL, O_DEVICE},
                                        {"steps", 1, NULL, O_STEPS},
                                        {"batch", 1, NULL, O_BATCH},
                                        {"size", 1, NULL, O_SIZE},
                                        {"length", 1, NULL, O_LENGTH},
                                        {"precision", 1, NULL, O_PRECISION},
                                        {"data", 1, NULL, O_DATA},
                                        {"data-dir", 1, NULL, O_DATA_DIR},
                                        {"input-ms", 1, NULL, O_INPUT},
                                        {"out", 1, NULL, O_OUT},
                                        {"html", 1, NULL, O_HTML},
                                        {"json", 0, NULL, O_JSON},
                                        {"kernels", 1, NULL, O_KERNELS},
                                        CLI_HELP_ROW,
                                        {0}};

typedef struct Args {
  const char *what, *device, *data, *data_dir, *out, *html;
  const char *of_model; /* an option that was given and is for a MODEL only */
  bool chip, json, bf16;
  int64_t batch, length;
  int steps, kernels, size;
  double input_ms; /* negative: not given */
} Args;

/* What runs: a module over so many processes, and how long the host makes its batches. */
typedef struct Work {
  char *title;
  Module *m;
  DevCompileOpts opts;
  double *make_s; /* of each step; NULL: no input */
  double batch_bytes;
} Work;

static void work_free(Work *w) {
  free(w->title);
  module_free(w->m);
  free(w->make_s);
}

/* ---- a program, a model ---------------------------------------------------------------------- */

static Err *fixed_shapes(const Module *m, const char *file) {
  const Type *f = module_main(m)->type;
  for (int i = 0; i < f->n_elems; i++)
    if (f->elems[i]->kind == TY_TENSOR && !type_is_static(f->elems[i]))
      return err_place(
          err_hint(err_new(ERR_UNIMPLEMENTED, "argument %d has no fixed shape", i),
                   "times are those of one shape: lower the program without symbolic or bounded "
                   "dimensions, jax.jit(f).lower(...) of arrays of the size you mean"),
          "%s", file);
  return NULL;
}

static Err *open_program(const Args *a, const Dev *dev, Work *w) {
  TRY(cli_program(a->what, &w->m));
  TRY(fixed_shapes(w->m, a->what));
  w->opts = (DevCompileOpts){.replicas = cli_attr_count(w->m, "mhlo.num_replicas"),
                             .partitions = cli_attr_count(w->m, "mhlo.num_partitions"),
                             .auto_spmd = true};
  if (a->chip && w->opts.replicas == 1) /* the same program on every device that was asked for */
    w->opts.replicas = MAX(1, dev->n / w->opts.partitions);
  w->title = xstrdup(base_name(a->what));
  return NULL;
}

/* Makes batches as the loader does, on one thread, and says how long each took. */
static void measure_input(const Data *d, int64_t batch, int steps, Work *w) {
  void *dst[3] = {0};
  for (int f = 0; f < d->n_fields; f++) {
    size_t n = (size_t)dtype_bytes(d->fields[f].type);
    for (int k = 0; k < d->fields[f].rank; k++) n *= (size_t)d->fields[f].dims[k];
    dst[f] = xmalloc(n);
    w->batch_bytes += (double)n * (double)batch;
  }
  w->make_s = xcalloc((size_t)steps, sizeof *w->make_s);
  int real = MIN(steps, 4);
  for (int s = 0; s < steps; s++) {
    w->make_s[s] = s >= real ? w->make_s[1 + s % (real - 1)] : 0;
    if (s >= real) continue;
    double t = time_now_s();
    for (int64_t i = 0; i < batch; i++)
      err_free(d->get(d, false, (s * batch + i) % d->n_train, (uint64_t)(s * batch + i), dst));
    w->make_s[s] = time_now_s() - t;
  }
  for (int f = 0; f < 3; f++) free(dst[f]);
}

/* "gpt2, 124.4 M weights, 64 tokens in an example, batch 8, training step" */
static char *title_of(const Model *model, const StepProgram *p, const Data *d, int64_t batch) {
  char tokens[48] = "";
  double n = (double)p->n_weights;
  if (d->fields[0].rank == 1)
    snprintf(tokens, sizeof tokens, ", %lld tokens in an example", (long long)d->fields[0].dims[0]);
  return xasprintf("%s, %.4g %s weights%s, batch %lld, training step", model->name,
                   n >= 1e9   ? n / 1e9
                   : n >= 1e6 ? n / 1e6
                              : n / 1e3,
                   n >= 1e9   ? "G"
                   : n >= 1e6 ? "M"
                              : "k",
                   tokens, (long long)batch);
}

static Err *open_model(const Args *a, const Model *model, const Dev *dev, Work *w) {
  TrainConfig c = {.seed = 1, .compute = a->bf16 ? DT_BF16 : DT_F32, .augment = true};
  model->defaults(&c);
  if (a->bf16) c.compute = DT_BF16;
  if (a->size) c.size = a->size;
  if (a->length) c.length = a->length;
  int64_t batch = a->batch ? a->batch : c.batch;
  c.replicas = a->chip ? dev->n : 1;
  if (batch % c.replicas)
    return err_hint(err_new(ERR_INVALID, "a batch of %lld does not divide into %d devices",
                            (long long)batch, c.replicas),
                    "--batch %lld", (long long)((batch / c.replicas + 1) * c.replicas));
  c.batch = batch / c.replicas;
  if (c.opt.total_steps <= 0) c.opt.total_steps = a->steps;
  DataOpts o = model_data(model, &c);
  o.dir = a->data_dir;
  o.augment = true;
  Data *d = NULL;
  Err *e = data_open(a->data ? a->data : model->data, &o, &d);
  bool made_up = e && !a->data;
  if (made_up) {
    err_free(e);
    e = data_open("synthetic", &o, &d);
  }
  TRY(e);
  StepProgram p;
  e = step_build(model, &c, d, true, &p);
  if (!e) {
    w->m = p.m;
    w->opts = (DevCompileOpts){.replicas = c.replicas, .partitions = 1};
    w->title = title_of(model, &p, d, batch);
    if (a->input_ms < 0 && !made_up && strcmp(d->name, "synthetic"))
      measure_input(d, batch, a->steps, w);
    p.m = NULL; /* w has it */
    step_free(&p);
  }
  data_close(d);
  return e;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Arguments with small numbers, the same on all devices of a real one. */
static Err *fill(Dev *dev, const DevProgram *p, DevBuffer **args) {
  uint64_t seed = 1;
  for (int i = 0; i < p->n_args; i++) {
    const Type *t = p->main->type->elems[i];
    if (t->kind != TY_TENSOR)
      return err_new(ERR_UNIMPLEMENTED, "argument %d is no array of numbers", i);
    Tensor *v;
    TRY(tensor_new(t->dtype, t->rank, t->dims, &v));
    memset(v->data, 0, tensor_bytes(v));
    for (int64_t k = 0; k < v->count && dtype_is_float(t->dtype); k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      elem_set_f64(t->dtype, tensor_at(v, k), (double)(seed >> 40) / (1 << 26));
    }
    TRY(dev_buffer_new(dev, 0, v, false, &args[i]));
  }
  return NULL;
}

/* The result that an argument makes room for, where the next step can take it for the argument; else -1. A
 * caller that says no more than "donated" may get one of another shape. */
static int next_value(const DevProgram *q, int i) {
  int k = q->aliases[i];
  const Type *f = q->main->type;
  return k >= 0 && f->elems[i] == f->results[k] ? k : -1;
}

/* One step after the other; what is donated is replaced by the result that took its place. */
static Err *run_real(Dev *dev, DevProgram *q, int steps, Prof *p) {
  if (q->opts.replicas * q->opts.partitions > 1)
    return err_hint(err_new(ERR_UNIMPLEMENTED, "the program runs on %d devices",
                            q->opts.replicas * q->opts.partitions),
                    "profile it on a chip: --chip tpu-v3-%d",
                    q->opts.replicas * q->opts.partitions);
  DevBuffer **args = xcalloc((size_t)q->n_args + 1, sizeof *args);
  DevBuffer **outs = xcalloc((size_t)q->n_results + 1, sizeof *outs);
  bool *donated = xcalloc((size_t)q->n_args + 1, sizeof *donated);
  for (int i = 0; i < q->n_args; i++) donated[i] = next_value(q, i) >= 0;
  Err *e = fill(dev, q, args);
  double begin = time_now_s();
  for (int s = 0; s < steps && !e; s++) {
    DevRun run = {.trace = true};
    double from = time_now_s();
    e = dev_execute(q, &(DevPart){1, NULL, (int[]){0}, NULL}, (DevBuffer *const *const[]){args},
                    donated, (DevBuffer * *const[]){outs}, &run);
    if (e) break;
    ProfRun *r = prof_run(p, 0, 0, s, from - begin, time_now_s() - from);
    r->n_spans = run.n_spans;
    r->spans = arena_dup(p->arena, run.spans, sizeof *run.spans * (size_t)run.n_spans);
    free(run.spans);
    for (int i = 0; i < q->n_args; i++)
      if (donated[i]) {
        dev_buffer_release(args[i]);
        args[i] = dev_buffer_retain(outs[next_value(q, i)]);
      }
    for (int j = 0; j < q->n_results; j++) dev_buffer_release(outs[j]);
  }
  for (int i = 0; i < q->n_args; i++) dev_buffer_release(args[i]);
  free(args);
  free(outs);
  free(donated);
  return e;
}

static Err *record(const Args *a, Prof **out) {
  if (a->chip) setenv("WEFT_PHANTOM", "1", 1); /* time and memory only */
  Dev *dev = NULL;
  TRY(dev_open(a->device, &dev));
  Work w = {0};
  DevProgram *q = NULL;
  Prof *p = NULL;
  const Model *model = NULL;
  struct stat st;
  Err *e =
      stat(a->what, &st) ? err_wrap(zoo_find(a->what, &model), "neither a file nor a model") : NULL;
  if (!e) e = model ? open_model(a, model, dev, &w) : open_program(a, dev, &w);
  if (!e && !dev->ops->profile)
    e = err_new(ERR_UNIMPLEMENTED, "device '%s' has no kernels to show", a->device);
  if (!e && (e = dev_compile(dev, w.m, &w.opts, &q))) err_place(e, "%s", a->what);
  if (!e) {
    p = prof_new(w.title);
    ProfDevice d;
    dev->ops->profile_device(dev, &d);
    int n = a->chip ? w.opts.replicas * w.opts.partitions : 1;
    for (int i = 0; i < n; i++) prof_device(p, &d);
    ProfProgram *g;
    if (!a->chip && (e = run_real(dev, q, a->steps, p))) err_place(e, "%s", a->what);
    if (!e && (e = dev->ops->profile(q, p, &g))) err_place(e, "%s", a->what);
    for (int i = 0; i < n && !e && a->chip; i++)
      for (int s = 0; s < a->steps; s++) prof_run(p, i, 0, s, s * g->time_s, g->time_s);
    if (!e && a->input_ms >= 0) {
      w.make_s = xcalloc((size_t)a->steps, sizeof *w.make_s);
      for (int s = 0; s < a->steps; s++) w.make_s[s] = a->input_ms * 1e-3;
    }
    if (!e && w.make_s) prof_join_input(p, &(ProfInput){a->steps, w.make_s, w.batch_bytes, 3});
    prof_host_peaks(p);
    if (!e) prof_end(p);
  }
  if (q) dev_program_release(q);
  work_free(&w);
  dev_close(dev);
  if (e) prof_free(p);
  else *out = p;
  return e;
}

static Err *recorded(const char *path, Prof **out) {
  char *file;
  TRY(prof_find(path, &file));
  Buf bytes = {0};
  Err *e = file_read(file, &bytes);
  if (!e) e = err_wrap(prof_read_xspace((Str){bytes.p, bytes.n}, out), "%s", file);
  buf_free(&bytes);
  free(file);
  return e;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static Err *profile(const Args *a) {
  struct stat st;
  bool read =
      str_ends(str_from(a->what), ".xplane.pb") || (!stat(a->what, &st) && S_ISDIR(st.st_mode));
  Prof *p = NULL;
  if (a->html) TRY(file_may_write(a->html));
  if (a->out) TRY(folder_make(a->out));
  TRY(read ? recorded(a->what, &p) : record(a, &p));
  ProfSummary *s;
  Buf text = {0};
  char *folder = NULL;
  Err *e = prof_summary(p, 0, &s);
  if (!e) {
    if (a->json) prof_json(p, s, &text);
    else prof_print(p, s, a->kernels, &text);
    fwrite(text.p, 1, text.n, stdout);
    text.n = 0;
  }
  if (!e && a->html) {
    prof_html(p, s, &text);
    e = file_write(a->html, text.p, text.n);
  }
  if (!e && a->out) e = prof_write(p, a->out, &folder);
  FILE *notes = a->json ? stderr : stdout;
  if (!e && a->html) fprintf(notes, "\nreport: %s\n", a->html);
  if (!e && a->out && folder)
    fprintf(notes,
            "\nrecording: %s\n  tensorboard --logdir %s   (pip install tensorboard xprof)\n"
            "  *.trace.json.gz opens at ui.perfetto.dev\n",
            folder, a->out);
  if (!e && !a->json && !a->html && !folder)
    fputs("\n--html FILE writes a report, --out DIR a recording for TensorBoard and Perfetto\n",
          stdout);
  free(folder);
  buf_free(&text);
  prof_free(p);
  return e;
}

static int run(int argc, char **argv) {
  static const char *const precisions[] = {"f32", "bf16", NULL};
  Args a = {.kernels = 15, .input_ms = -1};
  CliArgs args = {argc, argv, options, 0};
  for (int o, i; (o = cli_next(&args)) != -1;) switch (o) {
    case O_CHIP:
    case O_DEVICE:
      if (a.device && a.chip != (o == O_CHIP))
        return cli_wrong(&args, "either --chip or --device, not both");
      if (a.device) return cli_wrong(&args, "one --%s, please", options[args.at].name);
      a.device = optarg;
      a.chip = o == O_CHIP;
      break;
    case O_STEPS:
      if (!cli_int(&args, 1, &a.steps)) return 2;
      break;
    case O_BATCH:
      a.of_model = options[args.at].name;
      if (!cli_count(&args, 1, &a.batch)) return 2;
      break;
    case O_SIZE:
      a.of_model = options[args.at].name;
      if (!cli_int(&args, 1, &a.size)) return 2;
      break;
    case O_LENGTH:
      a.of_model = options[args.at].name;
      if (!cli_count(&args, 1, &a.length)) return 2;
      break;
    case O_PRECISION:
      a.of_model = options[args.at].name;
      if ((i = cli_choice(&args, precisions)) < 0) return 2;
      a.bf16 = i == 1;
      break;
    case O_DATA: a.of_model = "data", a.data = optarg; break;
    case O_DATA_DIR: a.of_model = "data-dir", a.data_dir = optarg; break;
    case O_INPUT:
      if (!cli_real(&args, 0, &a.input_ms)) return 2;
      break;
    case O_OUT: a.out = optarg; break;
    case O_HTML: a.html = optarg; break;
    case O_JSON: a.json = true; break;
    case O_KERNELS:
      if (!cli_int(&args, 0, &a.kernels)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind + 1 != argc) return cli_wrong(&args, "one PROGRAM, MODEL or DIR, please");
  a.what = argv[optind];
  if (!a.device) a.device = "cpu";
  struct stat st;
  if (a.of_model && !stat(a.what, &st))
    return cli_wrong(&args, "--%s is for a MODEL of the zoo, and %s is a file%s", a.of_model,
                     a.what, strcmp(a.of_model, "batch") ? "" : "; weft estimate --batch resizes");
  /* any device that is not this host is a chip */
  bool host = !strncmp(a.device, "cpu", 3) || !strncmp(a.device, "interp", 6);
  if (host && a.chip)
    return cli_wrong(&args, "%s is no chip: --device %s measures here", a.device, a.device);
  a.chip = !host;
  if (a.steps <= 0) a.steps = a.chip ? 10 : 5;
  Err *e = profile(&a);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_profile = {
    "profile", "where the time of a step goes: text, HTML, TensorBoard, Perfetto", run};
