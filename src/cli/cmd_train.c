/* weft train: a model of the zoo on real data, through a PJRT plugin; then the same step on
 * virtual chips. */
#include "cli/cli.h"

#include "cli/compare.h"
#include "stablehlo/stablehlo.h"
#include "zoo/zoo.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
    "  --replicas N       data parallel on N devices (--device cpu:N, tpu-v3-8): each gets batch / "
    "N\n"
    "  --eval-batch N     test examples in one evaluation batch (default: as --batch)\n"
    "  --no-eval          no evaluation on the test examples\n"
    "  --json             the result as JSON on stdout (with --out also in result.json)\n"
    "  --no-compare       no table of other devices at the end\n"
    "  --help             this text\n"
    "\n";

enum {
  O_DATA = 256,
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
  O_PROFILE,
  O_HELP
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
                                        {"help", 0, NULL, O_HELP},
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

static void show(void *arg, const Progress *p) {
  Live *l = arg;
  if (p->eval) {
    fprintf(stderr, "%stest    step %lld   loss %.4f   accuracy %.2f %%\n",
            l->tty ? "\r\033[K" : "", (long long)p->step, p->loss, 100 * p->accuracy);
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
  fprintf(stderr,
          "%sepoch %lld  step %lld/%lld   loss %.4f   accuracy %.2f %%   %.0f %s/s   left %s   "
          "input wait %.1f %%%s",
          l->tty ? "\r\033[K" : "", (long long)p->epoch + 1, (long long)p->step,
          (long long)p->steps, l->loss, 100 * l->accuracy, p->examples_per_s, l->unit, left,
          100 * p->exposed_share, l->tty ? "" : "\n");
  fflush(stderr);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool number(const char *s, double *out) {
  char *end;
  *out = strtod(s, &end);
  return end != s && !*end && isfinite(*out);
}

static void plugin_option(Args *a, char *text) {
  char *eq = strchr(text, '=');
  double v;
  if (!eq || a->n_options == MAX_OPTIONS) return;
  *eq = 0;
  ClientOption *o = &a->options[a->n_options++];
  *o = (ClientOption){.name = text, .str = eq + 1};
  if (number(eq + 1, &v) && v == floor(v)) *o = (ClientOption){.name = text, .num = (int64_t)v};
}

static Err *set(Args *a, int which, char *v) {
  TrainConfig *c = &a->c;
  double x = 0;
  bool numeric = which == O_EPOCHS || which == O_STEPS || which == O_BATCH || which == O_LR ||
                 which == O_WARMUP || which == O_DECAY || which == O_CLIP || which == O_DROPOUT ||
                 which == O_SMOOTHING || which == O_SIZE || which == O_LENGTH || which == O_SEED ||
                 which == O_SAVE || which == O_EVAL || which == O_REPLICAS || which == O_EVAL_BATCH;
  if (numeric && (!number(v, &x) || x < 0))
    return err_new(ERR_INVALID, "'%s' is not a number of that kind", v);
  switch (which) {
  case O_DATA: a->data = v; break;
  case O_DATA_DIR: a->data_dir = v; break;
  case O_EPOCHS: c->epochs = x, c->steps = 0; break;
  case O_STEPS: c->steps = (int64_t)x; break;
  case O_BATCH:
    if (x < 1) return err_new(ERR_INVALID, "a batch has at least one example");
    c->batch = (int64_t)x;
    break;
  case O_EVAL_BATCH:
    if (x < 1) return err_new(ERR_INVALID, "an evaluation batch has at least one example");
    c->eval_batch = (int64_t)x;
    break;
  case O_LR: c->opt.lr = x; break;
  case O_SCHEDULE:
    if (!strcmp(v, "const")) c->opt.schedule = LR_CONST;
    else if (!strcmp(v, "linear")) c->opt.schedule = LR_LINEAR;
    else if (!strcmp(v, "cosine")) c->opt.schedule = LR_COSINE;
    else return err_new(ERR_INVALID, "there is no schedule '%s' (const, linear, cosine)", v);
    break;
  case O_WARMUP: c->opt.warmup_steps = x; break;
  case O_DECAY: c->opt.decay = x; break;
  case O_CLIP: c->opt.clip = x; break;
  case O_DROPOUT:
    if (x >= 1) return err_new(ERR_INVALID, "dropout %g leaves nothing", x);
    c->dropout = x;
    break;
  case O_SMOOTHING: c->label_smoothing = x; break;
  case O_PRECISION:
    if (!strcmp(v, "f32")) c->compute = DT_F32;
    else if (!strcmp(v, "bf16")) c->compute = DT_BF16;
    else return err_new(ERR_INVALID, "there is no precision '%s' (f32, bf16)", v);
    break;
  case O_SIZE: c->size = (int)x; break;
  case O_LENGTH: c->length = (int64_t)x; break;
  case O_NO_AUGMENT: c->augment = false; break;
  case O_SEED: c->seed = (uint64_t)x; break;
  case O_DEVICE: a->device = v; break;
  case O_PLUGIN: a->plugin = v; break;
  case O_OPTION: plugin_option(a, v); break;
  case O_OUT: a->out = v; break;
  case O_RESUME: a->resume = v; break;
  case O_SAVE: a->save_every = (int64_t)x; break;
  case O_EVAL: a->eval_every = (int64_t)x; break;
  case O_DUMP: a->dump = v; break;
  case O_NO_COMPARE: a->compare = false; break;
  case O_JSON: a->json = true; break;
  case O_BPE: a->bpe = v; break;
  case O_PROFILE: a->profile = v; break;
  case O_NO_EVAL: a->eval_every = -1; break;
  case O_REPLICAS: c->replicas = (int)x; break;
  default: assert(false);
  }
  return NULL;
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
  return data_open(a->data ? a->data : m->data, &o, out);
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

static void json_text(Buf *b, const char *key, const char *v) {
  buf_printf(b, "  \"%s\": \"", key);
  for (; *v; v++) {
    if (*v == '"' || *v == '\\') buf_byte(b, '\\');
    if ((unsigned char)*v >= 0x20) buf_byte(b, *v);
  }
  buf_cstr(b, "\",\n");
}

/* To result.json in the run folder, and with --json to stdout. */
static Err *write_result(const Args *a, const Data *d, const TrainResult *r, const Buf *devices) {
  Buf b = {0};
  buf_cstr(&b, "{\n");
  json_text(&b, "model", a->model->name);
  json_text(&b, "data", d->name);
  json_text(&b, "device", a->plugin ? a->plugin : a->device);
  buf_printf(&b, "  \"batch\": %lld,\n  \"steps\": %lld,\n  \"train_loss\": %.6g,\n",
             (long long)global_batch(a), (long long)r->steps, r->train_loss);
  if (a->eval_every >= 0)
    buf_printf(&b, "  \"test_loss\": %.6g,\n  \"test_accuracy\": %.6g,\n", r->test_loss,
               r->test_accuracy);
  buf_printf(&b,
             "  \"step_s\": %.6g,\n  \"step_cpu_s\": %.6g,\n  \"exposed_input_s\": %.6g,\n"
             "  \"compile_s\": %.6g,\n",
             r->step_s, r->step_cpu_s, r->exposed_s, r->compile_s);
  buf_printf(&b, "  \"total_s\": %.6g,\n  \"peak_bytes\": %lld", r->total_s,
             (long long)r->memory.peak);
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
                   .stop = &interrupted};
    TrainResult r;
    signal(SIGINT, on_signal);
    e = train_run(&o, &r);
    if (live.tty) fprintf(stderr, "\n");
    if (!e && !a->json) {
      if (a->eval_every < 0) printf("training loss %.4f", r.train_loss);
      else printf("test accuracy %.2f %%, loss %.4f", 100 * r.test_accuracy, r.test_loss);
      printf(" after %lld steps in %.1f s (compiling %.1f s, waiting for input %.2f s)\n",
             (long long)r.steps, r.total_s, r.compile_s, r.exposed_s);
      if (a->out)
        printf("run folder %s: checkpoint.safetensors, events for TensorBoard, result.json\n",
               a->out);
    }
    if (!e && r.profile) {
      e = write_profile(a, r.profile);
      prof_free(r.profile);
    }
    Buf table = {0}, json = {0};
    if (!e && a->compare) {
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
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      print_usage();
      return 0;
    }
  if (argc < 2 || argv[1][0] == '-') {
    fprintf(stderr, "weft train: which model?   weft train --help\n");
    return 2;
  }
  Err *e = zoo_find(argv[1], &a.model);
  if (e) {
    err_report(e);
    return 2;
  }
  a.c = (TrainConfig){.seed = 1, .compute = DT_F32, .augment = true};
  a.model->defaults(&a.c);
  for (int o; (o = getopt_long(argc - 1, argv + 1, "", options, NULL)) != -1;) {
    if (o == '?') return 2;
    e = set(&a, o, optarg);
    if (e) {
      err_report(e);
      return 2;
    }
  }
  if (optind < argc - 1) {
    fprintf(stderr, "weft train: what is '%s'?   weft train --help\n", argv[optind + 1]);
    return 2;
  }
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
    char *inside = xasprintf("%s/checkpoint.safetensors", a.resume);
    if (!access(inside, R_OK)) a.resume = checkpoint = inside;
    else free(inside);
  }
  e = run(&a);
  free(checkpoint);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_train = {"train", "train a model on data; then the same step on virtual chips",
                           train};
