/* weft train: a model of the zoo on real data, through a PJRT plugin; then the same step on
 * virtual chips. */
#include "cli/cli.h"

#include "chip/chip.h"
#include "cli/compare.h"
#include "stablehlo/stablehlo.h"
#include "zoo/zoo.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: weft train MODEL [options]\n"
    "\n"
    "  --data D           data set (default: the model's own); see below\n"
    "  --data-dir DIR     where its files are\n"
    "  --epochs N, --steps N   how long\n"
    "  --batch N          examples in a step\n"
    "  --lr X             learning rate\n"
    "  --schedule S       const, linear or cosine, after --warmup N steps\n"
    "  --decay X, --clip X, --dropout X, --label-smoothing X\n"
    "  --precision P      f32, or bf16: products and activations in bfloat16, weights in f32\n"
    "  --size N           variant of the model (layers)\n"
    "  --length N         tokens in an example\n"
    "  --bpe DIR          text as GPT-2 tokens: DIR has encoder.json and vocab.bpe\n"
    "  --no-augment       CIFAR images as they are\n"
    "  --seed N           of weights, order, dropout (default 1)\n"
    "  --device D         cpu (default), interp, or a chip's name for a virtual one\n"
    "  --plugin PATH      another PJRT plugin (XLA's CPU or CUDA plugin, libtpu)\n"
    "  --option K=V       create option for the plugin (repeatable)\n"
    "  --out DIR          run folder: checkpoint.safetensors, events.out.tfevents.*, result.json\n"
    "  --resume FILE      go on from a checkpoint (a run folder does too)\n"
    "  --save-every N, --eval-every N   steps (default: at the end; after each epoch)\n"
    "  --profile DIR      record 20 steps: DIR/report.html, and for tensorboard --logdir DIR\n"
    "  --dump-step FILE   write the step program as StableHLO text and stop\n"
    "  --replicas N       data parallel on N devices (--device cpu:N, tpu-v3-8), each a part\n"
    "  --eval-batch N     test examples in one evaluation batch (default: as --batch)\n"
    "  --no-eval          no evaluation on the test examples\n"
    "  --json             the result as JSON on stdout (with --out also in result.json)\n"
    "  --no-compare       no table of other devices at the end\n"
    "  --help             this text\n"
    "\n";

enum {
  O_DATA = CLI_FIRST,
  O_DATA_DIR,
  O_EPOCHS,
  O_STEPS,
  O_BATCH,
  O_LR,
  O_SCHEDULE,
  O_WARMUP,
  O_DECAY,
  O_CLIP,
  O_DROPOUT,
  O_SMOOTHING,
  O_PRECISION,
  O_SIZE,
  O_LENGTH,
  O_NO_AUGMENT,
  O_SEED,
  O_DEVICE,
  O_PLUGIN,
  O_OPTION,
  O_OUT,
  O_RESUME,
  O_SAVE,
  O_EVAL,
  O_DUMP,
  O_NO_COMPARE,
  O_NO_EVAL,
  O_JSON,
  O_EVAL_BATCH,
  O_REPLICAS,
  O_BPE,
  O_PROFILE
};

static const struct option options[] = {{"data", 1, NULL, O_DATA},
                                        {"data-dir", 1, NULL, O_DATA_DIR},
                                        {"epochs", 1, NULL, O_EPOCHS},
                                        {"steps", 1, NULL, O_STEPS},
                                        {"batch", 1, NULL, O_BATCH},
                                        {"lr", 1, NULL, O_LR},
                                        {"schedule", 1, NULL, O_SCHEDULE},
                                        {"warmup", 1, NULL, O_WARMUP},
                                        {"decay", 1, NULL, O_DECAY},
                                        {"clip", 1, NULL, O_CLIP},
                                        {"dropout", 1, NULL, O_DROPOUT},
                                        {"label-smoothing", 1, NULL, O_SMOOTHING},
                                        {"precision", 1, NULL, O_PRECISION},
                                        {"size", 1, NULL, O_SIZE},
                                        {"length", 1, NULL, O_LENGTH},
                                        {"no-augment", 0, NULL, O_NO_AUGMENT},
                                        {"seed", 1, NULL, O_SEED},
                                        {"device", 1, NULL, O_DEVICE},
                                        {"plugin", 1, NULL, O_PLUGIN},
                                        {"option", 1, NULL, O_OPTION},
                                        {"out", 1, NULL, O_OUT},
                                        {"resume", 1, NULL, O_RESUME},
                                        {"save-every", 1, NULL, O_SAVE},
                                        {"eval-every", 1, NULL, O_EVAL},
                                        {"dump-step", 1, NULL, O_DUMP},
                                        {"no-compare", 0, NULL, O_NO_COMPARE},
                                        {"no-eval", 0, NULL, O_NO_EVAL},
                                        {"json", 0, NULL, O_JSON},
                                        {"eval-batch", 1, NULL, O_EVAL_BATCH},
                                        {"bpe", 1, NULL, O_BPE},
                                        {"profile", 1, NULL, O_PROFILE},
                                        {"replicas", 1, NULL, O_REPLICAS},
                                        CLI_HELP_ROW,
                                        {0}};

#define MAX_OPTIONS 16

typedef struct Args {
  const Model *model;
  TrainConfig c;
  const char *data, *data_dir, *bpe, *device, *plugin, *out, *dump, *profile;
  char *resume;
  int64_t save_every, eval_every;
  bool compare, json;
  ClientOption options[MAX_OPTIONS];
  int n_options;
} Args;

static volatile int interrupted;
static void on_signal(int s) {
  (void)s;
  interrupted = 1;
  signal(SIGINT, SIG_DFL); /* a second one ends the program at once */
}

/* ---- the live line --------------------------------------------------------------------------- */

typedef struct Live {
  bool tty;
  double next, loss, accuracy; /* running means over about 30 steps */
  int64_t seen;
  const char *unit;
} Live;

static void clock_text(char *s, size_t n, double t) {
  int64_t v = t > 0 ? (int64_t)(t + 0.5) : 0;
  if (v >= 3600)
    snprintf(s, n, "%lld:%02lld:%02lld", (long long)(v / 3600), (long long)(v / 60 % 60),
             (long long)(v % 60));
  else snprintf(s, n, "%lld:%02lld", (long long)(v / 60), (long long)(v % 60));
}

/* What came out, or that nothing was computed. */
static void loss_text(char *s, size_t n, double loss, double accuracy) {
  if (isnan(loss)) snprintf(s, n, "no numbers");
  else snprintf(s, n, "loss %.4f   accuracy %.2f %%", loss, 100 * accuracy);
}

static void show(void *arg, const Progress *p) {
  Live *l = arg;
  char loss[64];
  if (p->batches) { /* an evaluation that takes long says so */
    double now = time_now_s();
    if (p->batch == 1) l->next = now + (l->tty ? 0.1 : 5);
    if (now < l->next) return;
    l->next = now + (l->tty ? 0.1 : 5);
    char left[32];
    clock_text(left, sizeof left, p->left_s);
    fprintf(stderr, "%stest    batch %lld/%lld   left %s%s", l->tty ? "\r\033[K" : "",
            (long long)p->batch, (long long)p->batches, left, l->tty ? "" : "\n");
    fflush(stderr);
    return;
  }
  if (p->eval) {
    loss_text(loss, sizeof loss, p->loss, p->accuracy);
    fprintf(stderr, "%stest    step %lld   %s\n", l->tty ? "\r\033[K" : "", (long long)p->step,
            loss);
    l->next = 0;
    return;
  }
  double k = l->seen < 30 ? 1.0 / (double)(l->seen + 1) : 1.0 / 30;
  l->seen++;
  l->loss += k * (p->loss - l->loss);
  l->accuracy += k * (p->accuracy - l->accuracy);
  double now = time_now_s();
  if (now < l->next && p->step != p->steps) return;
  l->next = now + (l->tty ? 0.1 : 5);
  char left[32];
  clock_text(left, sizeof left, p->left_s);
  loss_text(loss, sizeof loss, l->loss, l->accuracy);
  fprintf(stderr,
          "%sepoch %lld  step %lld/%lld   %s   %.0f %s/s   left %s   "
          "input wait %.1f %%%s",
          l->tty ? "\r\033[K" : "", (long long)p->epoch + 1, (long long)p->step,
          (long long)p->steps, loss, p->examples_per_s, l->unit, left, 100 * p->exposed_share,
          l->tty ? "" : "\n");
  fflush(stderr);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Takes one option into `a`; false after saying what is wrong with it. */
static bool set(const CliArgs *args, int which, Args *a) {
  static const char *const schedules[] = {"const", "linear", "cosine", NULL};
  static const ScheduleKind kinds[] = {LR_CONST, LR_LINEAR, LR_COSINE};
  static const char *const precisions[] = {"f32", "bf16", NULL};
  TrainConfig *c = &a->c;
  int64_t count = 0;
  int i;
  switch (which) {
  case O_DATA: a->data = optarg; return true;
  case O_DATA_DIR: a->data_dir = optarg; return true;
  case O_EPOCHS: c->steps = 0; return cli_real(args, 0, &c->epochs);
  case O_STEPS: return cli_count(args, 1, &c->steps);
  case O_BATCH: return cli_count(args, 1, &c->batch);
  case O_EVAL_BATCH: return cli_count(args, 1, &c->eval_batch);
  case O_LR: return cli_real(args, 0, &c->opt.lr);
  case O_SCHEDULE:
    if ((i = cli_choice(args, schedules)) >= 0) c->opt.schedule = kinds[i];
    return i >= 0;
  case O_WARMUP: return cli_real(args, 0, &c->opt.warmup_steps);
  case O_DECAY: return cli_real(args, 0, &c->opt.decay);
  case O_CLIP: return cli_real(args, 0, &c->opt.clip);
  case O_DROPOUT:
    if (!cli_real(args, 0, &c->dropout)) return false;
    if (c->dropout >= 1) cli_wrong(args, "dropout %g leaves nothing", c->dropout);
    return c->dropout < 1;
  case O_SMOOTHING: return cli_real(args, 0, &c->label_smoothing);
  case O_PRECISION:
    if ((i = cli_choice(args, precisions)) >= 0) c->compute = i ? DT_BF16 : DT_F32;
    return i >= 0;
  case O_SIZE: return cli_int(args, 1, &c->size);
  case O_LENGTH: return cli_count(args, 1, &c->length);
  case O_NO_AUGMENT: c->augment = false; return true;
  case O_SEED:
    if (!cli_count(args, 0, &count)) return false;
    c->seed = (uint64_t)count;
    return true;
  case O_DEVICE: a->device = optarg; return true;
  case O_PLUGIN: a->plugin = optarg; return true;
  case O_OPTION: return cli_plugin_option(args, a->options, &a->n_options, MAX_OPTIONS);
  case O_OUT: a->out = optarg; return true;
  case O_RESUME: a->resume = optarg; return true;
  case O_SAVE: return cli_count(args, 1, &a->save_every);
  case O_EVAL: return cli_count(args, 1, &a->eval_every);
  case O_DUMP: a->dump = optarg; return true;
  case O_NO_COMPARE: a->compare = false; return true;
  case O_JSON: a->json = true; return true;
  case O_BPE: a->bpe = optarg; return true;
  case O_PROFILE: a->profile = optarg; return true;
  case O_NO_EVAL: a->eval_every = -1; return true;
  case O_REPLICAS: return cli_int(args, 1, &c->replicas);
  default: assert(false); return false;
  }
}

static void print_usage(void) {
  fputs(usage, stdout);
  puts("models:");
  for (int i = 0; zoo_all[i]; i++) printf("  %-10s %s\n", zoo_all[i]->name, zoo_all[i]->summary);
  printf("\ndata sets:\n%s", data_specs);
}

/* ---- the run --------------------------------------------------------------------------------- */

static int64_t global_batch(const Args *a) { return a->c.batch * MAX(1, a->c.replicas); }

static Err *open_data(const Args *a, Data **out) {
  const Model *m = a->model;
  DataOpts o = {.dir = a->data_dir,
                .length = a->c.length,
                .augment = a->c.augment,
                .masked = a->c.masked,
                .bpe = a->bpe,
                .shape = {m->shape[0], m->shape[1], m->shape[2]},
                .classes = m->classes};
  const char *own = a->dump ? "synthetic" : m->data; /* a program needs no more than shapes */
  return data_open(a->data ? a->data : own, &o, out);
}

static Err *dump_step(const Args *a, const Data *d) {
  StepProgram p;
  TRY(step_build(a->model, &a->c, d, true, &p));
  Buf text = {0};
  stablehlo_write_text(&text, p.m, &(TextOpts){.locations = true});
  Err *e = file_write(a->dump, text.p, text.n);
  buf_free(&text);
  step_free(&p);
  return e;
}

static void json_field(Buf *b, const char *key, double v) {
  buf_cstr(b, ",\n  ");
  buf_json_num(b, key, v);
}

/* To result.json in the run folder, and with --json to stdout. */
static Err *write_result(const Args *a, const Data *d, const TrainResult *r, const Buf *devices) {
  Buf b = {0};
  buf_cstr(&b, "{\n  \"model\": ");
  buf_json_str(&b, a->model->name);
  buf_cstr(&b, ",\n  \"data\": ");
  buf_json_str(&b, d->name);
  buf_cstr(&b, ",\n  \"device\": ");
  buf_json_str(&b, a->plugin ? a->plugin : a->device);
  buf_printf(&b, ",\n  \"batch\": %lld,\n  \"steps\": %lld", (long long)global_batch(a),
             (long long)r->steps);
  json_field(&b, "train_loss", r->train_loss);
  if (a->eval_every >= 0) {
    json_field(&b, "test_loss", r->test_loss);
    json_field(&b, "test_accuracy", r->test_accuracy);
  }
  json_field(&b, "step_s", r->step_s);
  json_field(&b, "step_cpu_s", r->step_cpu_s);
  json_field(&b, "exposed_input_s", r->exposed_s);
  json_field(&b, "compile_s", r->compile_s);
  json_field(&b, "total_s", r->total_s);
  buf_printf(&b, ",\n  \"peak_bytes\": %lld", (long long)r->memory.peak);
  if (devices->n) buf_printf(&b, ",\n  \"devices\": %s", devices->p);
  buf_cstr(&b, "\n}\n");
  if (a->json) fputs(b.p, stdout);
  Err *e = NULL;
  if (a->out) {
    char *path = xasprintf("%s/result.json", a->out);
    e = file_write(path, b.p, b.n);
    free(path);
  }
  buf_free(&b);
  return e;
}

/* The recording as text, as a page and for TensorBoard. */
static Err *write_profile(const Args *a, Prof *p) {
  ProfSummary *s;
  Buf text = {0};
  char *folder = NULL, *page = xasprintf("%s/report.html", a->profile);
  Err *e = prof_summary(p, 0, &s);
  if (!e) {
    buf_byte(&text, '\n');
    prof_print(p, s, 8, &text);
    fputs(text.p, a->json ? stderr : stdout);
    text.n = 0;
    e = prof_write(p, a->profile, &folder);
  }
  if (!e) {
    prof_html(p, s, &text);
    e = file_write(page, text.p, text.n);
  }
  if (!e)
    fprintf(stderr, "\nreport: %s\nrecording: %s (tensorboard --logdir %s)\n", page, folder,
            a->profile);
  free(folder);
  free(page);
  buf_free(&text);
  return e;
}

/* One line for people. */
static void print_result(const Args *a, const TrainResult *r, bool phantom) {
  if (phantom) printf("memory and time only");
  else if (isnan(r->test_loss)) printf("training loss %.4f", r->train_loss);
  else printf("test accuracy %.2f %%, loss %.4f", 100 * r->test_accuracy, r->test_loss);
  printf(" after %lld steps in %.1f s%s (compiling %.1f s, waiting for input %.2f s)\n",
         (long long)r->steps, r->total_s, phantom ? " here" : "", r->compile_s, r->exposed_s);
  if (a->out)
    printf("run folder %s: %sresult.json\n", a->out,
           phantom ? "" : "checkpoint.safetensors, events for TensorBoard, ");
  if (interrupted)
    printf("interrupted%s%s\n", a->out ? "; to go on: --resume " : "", a->out ? a->out : "");
}

/* A virtual chip with its numbers switched off. */
static bool no_numbers(const Args *a) {
  ChipRef chip;
  Err *e = chip_parse(a->plugin ? "" : a->device, &chip);
  bool virtual = !e;
  err_free(e);
  return virtual && env_flag("WEFT_PHANTOM");
}

static Err *run(Args *a) {
  Data *d = NULL;
  Client *client = NULL;
  TRY(open_data(a, &d));
  Err *e = NULL;
  if (a->dump) {
    e = dump_step(a, d);
    data_close(d);
    return e;
  }
  if (!a->plugin && a->n_options < MAX_OPTIONS)
    a->options[a->n_options++] = (ClientOption){.name = "device", .str = a->device};
  e = client_open(a->plugin, a->options, a->n_options, &client);
  if (!e) {
    const char *where = a->plugin ? client_device_kind(client, 0) : a->device;
    fprintf(stderr, "%s on %s: %lld examples, batch %lld, %s through plugin '%s'\n", a->model->name,
            d->name, (long long)d->n_train, (long long)global_batch(a), where,
            client_platform(client));
    bool phantom = no_numbers(a);
    if (phantom)
      fprintf(stderr, "WEFT_PHANTOM is set: memory and time only; no losses, no checkpoint\n");
    Live live = {.tty = isatty(2), .unit = d->fields[0].rank == 3 ? "images" : "sequences"};
    TrainOpts o = {.model = a->model,
                   .config = a->c,
                   .data = d,
                   .client = client,
                   .out = a->out,
                   .resume = a->resume,
                   .save_every = a->save_every,
                   .eval_every = a->eval_every,
                   .progress = show,
                   .arg = &live,
                   .profile = a->profile ? 20 : 0,
                   .phantom = phantom,
                   .stop = &interrupted};
    TrainResult r;
    signal(SIGINT, on_signal);
    e = train_run(&o, &r);
    if (live.tty) fprintf(stderr, "\n");
    if (!e && !a->json) print_result(a, &r, phantom);
    if (!e && r.profile) {
      e = write_profile(a, r.profile);
      prof_free(r.profile);
    }
    Buf table = {0}, json = {0};
    if (!e && a->compare && !interrupted) {
      TrainConfig whole = a->c; /* the other devices divide the batch in their own way */
      whole.batch = global_batch(a);
      whole.replicas = 0;
      e = compare_print(a->model, &whole, d, where, &r, &table, &json);
      if (table.n && !a->json) fputs(table.p, stdout);
    }
    if (!e && (a->out || a->json)) e = write_result(a, d, &r, &json);
    buf_free(&table);
    buf_free(&json);
  }
  client_close(client);
  data_close(d);
  return e;
}

static int train(int argc, char **argv) {
  Args a = {.compare = true, .device = env_get("WEFT_DEVICE") ? env_get("WEFT_DEVICE") : "cpu"};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) /* brings MODEL to the end of argv */
    if (o == CLI_HELP) return print_usage(), 0;
    else if (o == '?') return 2;
  if (optind == argc) return cli_wrong(&args, "which MODEL?");
  if (optind < argc - 1) return cli_wrong(&args, "what is '%s'?", argv[argc - 1]);
  Err *e = zoo_find(argv[optind], &a.model);
  if (e) {
    err_report(e);
    return 2;
  }
  a.c = (TrainConfig){.seed = 1, .compute = DT_F32, .augment = true};
  a.model->defaults(&a.c); /* before the options that change them */
  optind = 1;
  for (int o; (o = cli_next(&args)) != -1;)
    if (!set(&args, o, &a)) return 2;
  if (a.c.replicas > 1) {
    if (a.c.batch % a.c.replicas) {
      fprintf(stderr, "weft train: a batch of %lld does not divide into %d replicas\n",
              (long long)a.c.batch, a.c.replicas);
      return 2;
    }
    a.c.batch /= a.c.replicas;
    a.c.eval_batch = (a.c.eval_batch + a.c.replicas - 1) / a.c.replicas;
  }
  char *checkpoint = NULL; /* a run folder stands for the checkpoint in it */
  if (a.resume) {
    struct stat s;
    if (!stat(a.resume, &s) && S_ISDIR(s.st_mode))
      a.resume = checkpoint = xasprintf("%s/checkpoint.safetensors", a.resume);
  }
  e = run(&a);
  free(checkpoint);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_train = {"train", "train a model on data; then the same step on virtual chips",
                           train};
