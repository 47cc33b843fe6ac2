/* weft train: a model of the zoo, or a train step from a file, on real data, through a PJRT plugin; then the same step on
 * virtual chips. */
#include "cli/cli.h"

#include "base/system.h"
#include "adopt/adopt.h"
#include "chip/chip.h"
#include "cli/compare.h"
#include "cli/train.h"
#include "stablehlo/stablehlo.h"
#include "zoo/zoo.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "usage: weft train MODEL|PROGRAM [options]\n"
    "\n"
    "MODEL is one of those below. PROGRAM is a train step of your own: StableHLO (.mlir, .mlirbc) "
    "or HLO\n"
    "(.hlo, .hlo.pb) that JAX, PyTorch or Keras exported, from state and batch to new state and "
    "loss.\n"
    "\n"
    "  --data D           data set (default: the model's own); see below\n"
    "  --data-dir DIR     where its files are\n"
    "  --epochs N, --steps N   how long\n"
    "  --batch N          examples in a step\n"
    "  --accumulate N     compute the batch in N parts, one after another, in the memory of one\n"
    "  --optimizer O      sgd, momentum, nesterov, adam, adamw, lamb, lion, adafactor, muon\n"
    "  --lr X             learning rate\n"
    "  --schedule S       const, linear or cosine, after --warmup N steps, down to --lr-end X of "
    "the\n"
    "                     rate after --schedule-steps N (default: at the end)\n"
    "  --momentum X, --beta1 X, --beta2 X, --eps X, --decay X   of the optimizer, where it has "
    "them\n"
    "  --clip X           largest norm of all gradients together\n"
    "  --ema X            evaluate with the moving average of the weights (0.999 forgets in 1000 "
    "steps)\n"
    "  --dropout X, --label-smoothing X\n"
    "  --precision P      f32; bf16: products and activations in bfloat16, weights in f32; f16: "
    "the\n"
    "                     same in half precision, the loss scaled so that gradients do not "
    "vanish;\n"
    "                     f8: bf16, but dense layers, experts and convolutions train in 8 bits:\n"
    "                     operands in f8E4M3FN, gradients in f8E5M2, scaled by the largest "
    "magnitude\n"
    "                     that each array has then\n"
    "  --f8-attention     with --precision f8: attention's two products in 8 bits as well (most "
    "recipes\n"
    "                     leave them in 16)\n"
    "  --lora N           learn N columns beside each dense kernel, all else frozen (with --init)\n"
    "  --remat            compute the inside of blocks again in the backward pass: less memory\n"
    "  --size N           variant of the model (layers)\n"
    "  --length N         tokens in an example\n"
    "  --tokenizer PATH   text as tokens: a folder with GPT-2's encoder.json and vocab.bpe (or\n"
    "                     vocab.json and merges.txt), BERT's vocab.txt, or tokenizer.json; or one\n"
    "                     of the last two of any name. --bpe is the same\n"
    "  --no-augment       images as they are\n"
    "  --shift N, --rotate X   in training each picture is moved by up to N pixels and turned by "
    "up "
    "to X\n"
    "                     degrees, anew each time\n"
    "  --image-size N     resize pictures in files to N x N\n"
    "  --in-order         examples in the order of the data, not shuffled\n"
    "  --seed N           of weights, order, dropout (default 1)\n"
    "  --device D         cpu (default), interp, or a chip's name for a virtual one\n"
    "  --plugin PATH      another PJRT plugin (XLA's CPU or CUDA plugin, libtpu)\n"
    "  --option K=V       create option for the plugin (repeatable)\n"
    "  --out DIR          run folder: checkpoint.safetensors, events.out.tfevents.*, result.json\n"
    "  --overwrite        DIR may hold a run already: it is replaced\n"
    "  --resume RUN       go on with a run (folder or checkpoint) by its own settings, and keep it "
    "in\n"
    "                     its folder unless --out names another; MODEL may be left out\n"
    "  --init FILE        begin with the weights of a run or other safetensors, by name; of a run\n"
    "                     with its --size, --length and --tokenizer, unless they are given\n"
    "  --save-every N     steps between checkpoints; or --save-minutes X (default 10; 0: at the "
    "end only)\n"
    "  --eval-every N     steps between evaluations (default: after each epoch)\n"
    "  --profile DIR      record 20 steps: DIR/report.html, and for tensorboard --logdir DIR\n"
    "  --dump-step FILE   write the step program as StableHLO text and stop\n"
    "  --replicas N       data parallel on N devices, each a part of the batch (of the cpu; a chip "
    "of\n"
    "                     several, tpu-v3-8, uses all of them unless told otherwise). A PROGRAM "
    "keeps its\n"
    "                     batch and its numbers: the compiler cuts it. Under mpirun, srun and weft "
    "launch\n"
    "                     each process computes its share of them\n"
    "  --coordinator A    HOST:PORT where process 0 of several listens, when they do not find it; "
    "none:\n"
    "                     each process by itself\n"
    "  --eval-batch N     test examples in one evaluation batch (default: as --batch)\n"
    "  --no-eval          no evaluation on the test examples\n"
    "  --log FILE         a JSON object in a line for each step and evaluation, as they come; -: "
    "stdout.\n"
    "                     (What is shown while it runs is a mean of the last steps, about 30.)\n"
    "  --json             the result as JSON on stdout (with --out also in result.json)\n"
    "  --no-compare       no table of other devices at the end\n"
    "  --help             this text\n"
    "\n"
    "of a PROGRAM:\n"
    "  --state L          arguments that are state (numbers and names, ARGS=RESULTS; default: "
    "found by\n"
    "                     names, donation, order)\n"
    "  --batch-args L     arguments that data go to, ARG or ARG=FIELD (default: found)\n"
    "  --loss R           the result that is the loss (default: found)\n"
    "  --set ARG=NUMBER   value of an argument that is neither (repeatable)\n"
    "  --pixels P         bytes of pictures as: unit (x / 255), normal (less mean, over "
    "deviation), bytes\n"
    "  --init FILE        what the state begins with: npz or safetensors, by name or in order\n"
    "  --init-program P   a program whose results the state begins with; may take a seed\n"
    "  --eval-program P   from state and batch to loss and accuracy: what is evaluated with\n"
    "  --predict-program P   from state and batch to answers: kept with the run, for weft predict\n"
    "  --zeros            it begins with zeros\n"
    "  --classes N        made-up data: whole numbers below N (default 2)\n"
    "\n"
    "A flag that the model, its data or the optimizer does not read is refused. SIGINT (Ctrl-C) "
    "and\n"
    "SIGTERM finish the step and save; the exit status is 0 and 143.\n"
    "\n";

enum {
  O_DATA = CLI_FIRST,
  O_DATA_DIR,
  O_DEVICE,
  O_PLUGIN,
  O_OPTION,
  O_OUT,
  O_OVERWRITE,
  O_RESUME,
  O_INIT,
  O_SAVE,
  O_SAVE_MINUTES,
  O_EVAL,
  O_DUMP,
  O_NO_COMPARE,
  O_NO_EVAL,
  O_JSON,
  O_TOKENIZER,
  O_PROFILE,
  O_LOG,
  O_COORDINATOR,
  O_STATE,
  O_BATCH_ARGS,
  O_LOSS,
  O_SET,
  O_PIXELS,
  O_INIT_PROGRAM,
  O_EVAL_PROGRAM,
  O_PREDICT_PROGRAM,
  O_ZEROS,
  O_CLASSES,
  O_SETTING /* and on: a row of settings[] */
};

static const struct option own[] = {{"data", 1, NULL, O_DATA},
                                    {"data-dir", 1, NULL, O_DATA_DIR},
                                    {"device", 1, NULL, O_DEVICE},
                                    {"plugin", 1, NULL, O_PLUGIN},
                                    {"option", 1, NULL, O_OPTION},
                                    {"out", 1, NULL, O_OUT},
                                    {"overwrite", 0, NULL, O_OVERWRITE},
                                    {"resume", 1, NULL, O_RESUME},
                                    {"init", 1, NULL, O_INIT},
                                    {"save-every", 1, NULL, O_SAVE},
                                    {"save-minutes", 1, NULL, O_SAVE_MINUTES},
                                    {"eval-every", 1, NULL, O_EVAL},
                                    {"dump-step", 1, NULL, O_DUMP},
                                    {"no-compare", 0, NULL, O_NO_COMPARE},
                                    {"no-eval", 0, NULL, O_NO_EVAL},
                                    {"json", 0, NULL, O_JSON},
                                    {"tokenizer", 1, NULL, O_TOKENIZER},
                                    {"bpe", 1, NULL, O_TOKENIZER},
                                    {"profile", 1, NULL, O_PROFILE},
                                    {"log", 1, NULL, O_LOG},
                                    {"coordinator", 1, NULL, O_COORDINATOR},
                                    {"state", 1, NULL, O_STATE},
                                    {"batch-args", 1, NULL, O_BATCH_ARGS},
                                    {"loss", 1, NULL, O_LOSS},
                                    {"set", 1, NULL, O_SET},
                                    {"pixels", 1, NULL, O_PIXELS},
                                    {"init-program", 1, NULL, O_INIT_PROGRAM},
                                    {"eval-program", 1, NULL, O_EVAL_PROGRAM},
                                    {"predict-program", 1, NULL, O_PREDICT_PROGRAM},
                                    {"zeros", 0, NULL, O_ZEROS},
                                    {"classes", 1, NULL, O_CLASSES},
                                    CLI_HELP_ROW};

enum { MAX_SETTINGS = 64 };
static struct option options[COUNT_OF(own) + MAX_SETTINGS + 1];

/* --help and the others, then one for each setting; a flag that is on by itself is --no-NAME. */
static void make_options(void) {
  int n = COUNT_OF(own);
  memcpy(options, own, sizeof own);
  for (int i = 0; settings[i].name; i++) {
    const Setting *s = &settings[i];
    if (s->hidden) continue;
    assert(n < COUNT_OF(options) - 1);
    bool off = s->kind == SET_FLAG && !strcmp(s->name, "augment");
    options[n++] =
        (struct option){off ? "no-augment" : s->name, s->kind != SET_FLAG, NULL, O_SETTING + i};
  }
}

#define MAX_OPTIONS 16
enum { MAX_SET = 64 };

typedef struct Args {
  TrainRun r;
  const char *data, *data_dir, *tokenizer, *dump, *profile, *log;
  char *resume, *init, *init_tokenizer; /* of the run that --init names */
  const char *folder;                   /* of --resume; NULL: it names a file */
  int64_t save_every;
  double save_minutes; /* below 0: not given */
  bool compare, overwrite;
  bool given[MAX_SETTINGS];
  ClientOption options[MAX_OPTIONS];
  int n_options;
  CheckpointInfo before; /* of --resume */
  AdoptOpts own;         /* of a PROGRAM */
  Adopted *adopted;
  const char *set[MAX_SET];
  int classes;
  const char *own_flag; /* a flag of programs that was given */
  const char *coordinator;
  PeersPlace place; /* of several processes; n 1: there is one */
  ClientJob job;    /* the same, once they have met */
  char *device;     /* r.device with a number */
} Args;

static volatile int interrupted; /* the signal */
static void on_signal(int s) {
  interrupted = s;
  signal(s, SIG_DFL); /* a second one ends the program at once */
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool set_setting(const CliArgs *args, int i, Args *a) {
  const Setting *s = &settings[i];
  a->given[i] = true;
  const char *text = s->kind != SET_FLAG ? optarg : !strcmp(s->name, "augment") ? "false" : "true";
  Err *e = setting_parse(s, text, &a->r.config);
  if (!e) return true;
  cli_wrong(args, "--%s %s", s->name, e->msg);
  err_free(e);
  return false;
}

/* An option of programs. */
static bool set_own(const CliArgs *args, int which, Args *a) {
  AdoptOpts *o = &a->own;
  a->own_flag = options[args->at].name;
  switch (which) {
  case O_STATE: o->state = optarg; return true;
  case O_BATCH_ARGS: o->batch = optarg; return true;
  case O_LOSS: o->loss = optarg; return true;
  case O_PIXELS: o->pixels = optarg; return true;
  case O_INIT_PROGRAM: o->init_program = optarg; return true;
  case O_EVAL_PROGRAM: o->eval_program = optarg; return true;
  case O_PREDICT_PROGRAM: o->predict_program = optarg; return true;
  case O_ZEROS: o->zeros = true; return true;
  case O_CLASSES: return cli_int(args, 1, &a->classes);
  default: break;
  }
  if (o->n_set == MAX_SET) return cli_wrong(args, "more than %d times --set", MAX_SET), false;
  a->set[o->n_set++] = optarg;
  o->set = a->set;
  return true;
}

/* Takes one option into `a`; false after saying what is wrong with it. */
static bool set(const CliArgs *args, int which, Args *a) {
  TrainRun *r = &a->r;
  if (which >= O_SETTING) return set_setting(args, which - O_SETTING, a);
  if (which >= O_STATE) return true; /* taken before */
  switch (which) {
  case O_DATA: a->data = optarg; return true;
  case O_DATA_DIR: a->data_dir = optarg; return true;
  case O_DEVICE: r->device = optarg; return true;
  case O_PLUGIN: r->plugin = optarg; return true;
  case O_OPTION: return cli_plugin_option(args, a->options, &a->n_options, MAX_OPTIONS);
  case O_OUT: r->out = optarg; return true;
  case O_OVERWRITE: a->overwrite = true; return true;
  case O_RESUME: return true; /* taken before */
  case O_INIT: a->init = checkpoint_path(optarg); return true;
  case O_SAVE: return cli_count(args, 1, &a->save_every);
  case O_SAVE_MINUTES: return cli_real(args, 0, &a->save_minutes);
  case O_EVAL: return cli_count(args, 1, &r->eval_every);
  case O_DUMP: a->dump = optarg; return true;
  case O_NO_COMPARE: a->compare = false; return true;
  case O_JSON: r->json = true; return true;
  case O_TOKENIZER: a->tokenizer = optarg; return true;
  case O_PROFILE: a->profile = optarg; return true;
  case O_LOG: a->log = optarg; return true;
  case O_COORDINATOR: a->coordinator = optarg; return true;
  case O_NO_EVAL: r->eval_every = -1; return true;
  default: assert(false); return false;
  }
}

static void print_usage(void) {
  fputs(usage, stdout);
  puts("models, with their weights:");
  for (int i = 0; zoo_all[i]; i++) {
    char weights[40];
    train_count(weights, sizeof weights, zoo_weights(zoo_all[i]));
    printf("  %-12s %13s  %s\n", zoo_all[i]->name, weights, zoo_all[i]->summary);
  }
  printf("\ndata sets:\n%s", data_specs);
}

/* ---- the run --------------------------------------------------------------------------------- */

static bool given(const Args *a, const char *name) {
  return a->given[setting_find(name) - settings];
}

/* Data for a step of one's own: made-up ones are made for its arguments. */
static Err *open_own_data(const Args *a, const char *spec, const DataOpts *o, Data **out) {
  if (!spec)
    return err_hint(err_new(ERR_INVALID, "which data?"),
                    "--data; to see how '%s' is understood: --data synthetic", a->own.program);
  if (!strcmp(spec, "synthetic")) TRY(adopt_synthetic(a->adopted, a->classes, out));
  else TRY(data_open(spec, o, out));
  Err *e = adopt_bind(a->adopted, *out);
  if (e) data_close(*out), *out = NULL;
  return e;
}

static Err *open_data(const Args *a, Data **out) {
  const Model *m = a->r.model;
  const TrainConfig *c = &a->r.config;
  DataOpts o = model_data(m, c);
  o.dir = a->data_dir;
  o.tokenizer = a->tokenizer        ? a->tokenizer
                : a->init_tokenizer ? a->init_tokenizer
                                    : a->before.tokenizer;
  const char *usual = a->dump      ? "synthetic"
                      : a->adopted ? NULL
                                   : m->data; /* a program needs no more than shapes */
  if (a->before.data && a->before.data->spec) usual = a->before.data->spec;
  const char *spec = a->data ? a->data : usual;
  return a->adopted ? open_own_data(a, spec, &o, out) : data_open(spec, &o, out);
}

/* What a step of one's own does not take. */
static Err *refuse_of_own(const Args *a, const Data *d) {
  int64_t n = adopt_eval_batch(a->adopted);
  if (!n && a->r.eval_every > 0)
    return err_new(ERR_INVALID,
                   "a train step alone is not evaluated: --eval-every wants --eval-program");
  if (!n && given(a, "eval-batch"))
    return err_new(ERR_INVALID,
                   "a train step alone is not evaluated: --eval-batch wants --eval-program");
  if (n && a->r.config.eval_batch != n)
    return err_new(ERR_INVALID,
                   "--eval-batch %lld: the program that evaluates is made for %lld examples",
                   (long long)a->r.config.eval_batch, (long long)n);
  if (n > d->n_test && a->r.eval_every >= 0)
    return err_hint(err_new(ERR_INVALID,
                            "the program that evaluates takes batches of %lld, '%s' has %lld test "
                            "examples: none would be full",
                            (long long)n, d->name, (long long)d->n_test),
                    "a program of a smaller batch; more test examples; or --no-eval");
  return NULL;
}

/* Process 0 alone speaks and writes. */
static bool speaks(const Args *a) { return a->place.id == 0; }

/* Flags that would change nothing. */
static Err *refuse_unread(const Args *a, const Data *d) {
  for (int i = 0; settings[i].name; i++)
    if (a->given[i]) TRY(setting_unread(&settings[i], a->r.model, d, &a->r.config));
  if (a->own_flag && !a->adopted)
    return err_new(ERR_INVALID, "--%s is for a train step from a file, not for model '%s'",
                   a->own_flag, a->r.model->name);
  if (a->adopted) TRY(refuse_of_own(a, d));
  if (a->tokenizer && !(d->reads & READ_TOKENIZER))
    return err_new(ERR_INVALID, "data set '%s' does not read --tokenizer", d->name);
  if (given(a, "steps") && given(a, "epochs"))
    return err_new(ERR_INVALID, "--steps and --epochs both say how long");
  if (a->init && a->resume)
    return err_new(ERR_INVALID, "--resume goes on with a run, --init begins one: not both");
  if (a->save_every && a->save_minutes >= 0)
    return err_new(ERR_INVALID, "--save-every and --save-minutes both say how often");
  const char *keeps = a->save_every          ? "save-every"
                      : a->save_minutes >= 0 ? "save-minutes"
                      : a->overwrite         ? "overwrite"
                                             : NULL;
  if (speaks(a) && !a->r.out && !a->dump && keeps)
    return err_hint(err_new(ERR_INVALID, "--%s without --out: there is no run folder", keeps),
                    "--out DIR");
  return NULL;
}

/* A warm-up that nobody asked for is of the model's usual run (DavidNet: 5 epochs of 24): of one so much shorter that it would
 * take over a quarter, it takes a tenth. */
static void shorten_warmup(Args *a) {
  TrainConfig *c = &a->r.config;
  double per_epoch = (double)(a->r.data->n_train / train_global_batch(&a->r));
  double total = c->steps ? (double)c->steps : c->epochs * per_epoch;
  if (a->resume || a->adopted || given(a, "warmup")) return;
  if (c->opt.warmup_steps > total / 4) c->opt.warmup_steps = floor(total / 10);
}

static Err *dump_step(const Args *a, const Data *d) {
  StepProgram p;
  TRY(step_build(a->r.model, &a->r.config, d, true, &p));
  Buf text = {0};
  stablehlo_write_text(&text, p.m, &(TextOpts){.locations = true});
  Err *e = file_write(a->dump, text.p, text.n);
  buf_free(&text);
  step_free(&p);
  return e;
}

/* A virtual chip with its numbers switched off. */
static bool no_numbers(const TrainRun *r) {
  return train_virtual_devices(r) && env_flag("WEFT_PHANTOM");
}

/* The recording and the table of other devices, then the numbers for programs. */
static Err *finish(Args *a, const char *where, TrainResult *result) {
  TrainRun *r = &a->r;
  Err *e = NULL;
  if (result->profile) {
    e = train_write_profile(r, a->profile, result->profile);
    prof_free(result->profile);
  }
  Buf table = {0}, json = {0};
  if (!e && a->compare && !interrupted) {
    TrainConfig whole = r->config; /* the other devices divide the batch in their own way */
    whole.batch = train_global_batch(r);
    whole.replicas = whole.devices = 0;
    e = compare_print(r->model, &whole, r->data, where, train_devices(r), result, &table, &json);
    if (table.n && !r->json) fputs(table.p, stdout);
  }
  if (!e && (r->out || r->json)) e = train_write_result(r, result, &json);
  buf_free(&table);
  buf_free(&json);
  return e;
}

/* ---- several processes ---- */

/* Devices that a process brings by itself: "cpu:4"; 0: those of a chip. */
static int host_devices(const TrainRun *r) {
  size_t n = strcspn(r->device, ":");
  bool host = str_is((Str){r->device, n}, "cpu") || str_is((Str){r->device, n}, "interp");
  return !host || r->plugin ? 0 : r->device[n] ? MAX(1, atoi(r->device + n + 1)) : 1;
}

/* NULL: there is one process. */
static const ClientJob *job_of(const Args *a) { return a->place.n > 1 ? &a->job : NULL; }

static void be_silent(Args *a) {
  a->r.out = a->log = a->profile = NULL;
  a->r.json = a->compare = false;
  a->save_every = 0;
}

static Err *meet(Args *a) {
  a->job = (ClientJob){a->place.id, a->place.n, NULL};
  if (a->place.n < 2) return NULL;
  if (a->adopted && a->r.model->devices)
    return err_hint(err_new(ERR_UNIMPLEMENTED,
                            "a train step with shardings of its own runs in one process, not in %d",
                            a->place.n),
                    "--coordinator none: each process by itself; a step of one device runs on the "
                    "devices of all");
  if (!speaks(a)) be_silent(a);
  return peers_hub_open(&a->place, &a->job.hub);
}

/* A host device without a number has as many as the replicas that are here. */
static const char *device_of(Args *a) {
  int first, n = client_share(&a->job, train_devices(&a->r), &first);
  if (n < 2 || !host_devices(&a->r) || strchr(a->r.device, ':')) return a->r.device;
  return a->device = xasprintf("%s:%d", a->r.device, n);
}

/* ---- one of them ---- */

static Err *open_log(const char *path, FILE **out) {
  *out = strcmp(path, "-") ? fopen(path, "a") : stdout;
  return *out ? NULL : err_errno("cannot write the log '%s'", path);
}

/* Closes it. errors: of writing, the first */
static Err *close_log(const char *path, TrainLive *live) {
  int failed = live->log_errno;
  if (live->log && live->log != stdout && fclose(live->log) && !failed) failed = errno;
  live->log = NULL;
  return failed ? err_new(ERR_UNAVAILABLE, "the log '%s' is not whole: %s", path, strerror(failed))
                : NULL;
}

/* The state of a step of one's own, and who is who. */
static Err *begin_own(Args *a, Client *client) {
  if (!a->adopted) return NULL;
  if (!a->resume) TRY(adopt_run_init(a->adopted, client, a->r.config.seed));
  Buf who = {0};
  adopt_print(a->adopted, a->r.data, !a->resume, &who);
  if (speaks(a)) fputs(who.p, stderr);
  buf_free(&who);
  if (!adopt_eval_batch(a->adopted)) a->r.eval_every = -1;
  return NULL;
}

static void show_begun(void *arg, int taken, int all, int merged, const char *fresh) {
  (void)arg;
  fprintf(stderr, "begins with %d of %d tensors of --init", taken, all);
  if (merged) fprintf(stderr, ", its LoRA adapters added into %d of them", merged);
  fprintf(stderr, "%s%s\n", *fresh ? "; new: " : "", fresh);
}

static TrainOpts train_opts(Args *a, Client *client, TrainLive *live) {
  TrainRun *r = &a->r;
  return (TrainOpts){.model = r->model,
                     .config = r->config,
                     .data = r->data,
                     .client = client,
                     .out = r->out,
                     .resume = a->resume,
                     .init = a->adopted ? NULL : a->init,
                     .overwrite = a->overwrite,
                     .save_every = a->save_every,
                     .save_s = a->save_minutes < 0 ? TRAIN_SAVE_S : 60 * a->save_minutes,
                     .eval_every = r->eval_every,
                     .progress = speaks(a) ? train_show : NULL,
                     .begun = speaks(a) ? show_begun : NULL,
                     .arg = live,
                     .job = job_of(a),
                     .profile = a->profile ? 20 : 0,
                     .phantom = no_numbers(r),
                     .stop = &interrupted};
}

/* On an open device, with an open log. */
static Err *run_on(Args *a, Client *client, TrainLive *live) {
  TrainRun *r = &a->r;
  const char *where = r->plugin ? client_device_kind(client, 0) : r->device;
  TRY(begin_own(a, client));
  if (speaks(a)) train_print_header(r, where, client_platform(client));
  TrainOpts o = train_opts(a, client, live);
  if (o.phantom && speaks(a))
    fprintf(stderr, "WEFT_PHANTOM is set: memory and time only; no losses, no checkpoint\n");
  TrainResult result;
  if (speaks(a) && (live->tty || live->log || train_virtual_devices(r))) train_live_costs(r, live);
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  Err *e = train_run(&o, &result);
  if (live->tty) fprintf(stderr, "\n");
  if (!e && !r->json && speaks(a)) train_print_result(r, &result, o.phantom, interrupted);
  return e ? e : finish(a, where, &result);
}

static Err *run(Args *a) {
  TrainRun *r = &a->r;
  if (a->dump) return dump_step(a, r->data);
  if (!r->plugin && a->n_options < MAX_OPTIONS)
    a->options[a->n_options++] = (ClientOption){.name = "device", .str = device_of(a)};
  Client *client = NULL;
  TRY(client_open_job(r->plugin, a->options, a->n_options, job_of(a), &client));
  TrainLive live = {.tty = speaks(a) && isatty(2),
                    .unit = r->data->fields[0].rank == 3             ? "images"
                            : r->data->tokenizer || r->config.length ? "sequences"
                                                                     : "examples"};
  Err *e = a->log ? open_log(a->log, &live.log) : NULL;
  if (!e) e = run_on(a, client, &live);
  Err *bad = close_log(a->log, &live);
  if (!e && !bad && job_of(a)) bad = train_end(job_of(a));
  client_close(client);
  if (!e) return bad;
  err_free(bad);
  return e;
}

/* Those of a new run. */
static void begin_settings(const Model *m, TrainConfig *c) {
  *c = (TrainConfig){.seed = 1, .compute = DT_F32, .augment = true};
  m->defaults(c);
}

/* A run that begins with the weights of another has its shape and its tokenizer, unless told otherwise. */
static void take_shape(Args *a, const char *init) {
  TrainConfig *c = &a->r.config;
  CheckpointInfo i;
  char *path = checkpoint_path(init);
  Err *none = checkpoint_info(path, &i); /* weights alone: what is wrong with them is said later */
  free(path);
  if (none) return err_free(none);
  bool same = !strcmp(i.model, a->r.model->name);
  for (const Setting *s = settings; s->name && same; s++) {
    Buf v = {0};
    setting_text(s, &i.config, &v);
    if (s->read_by & (READ_SIZE | READ_LENGTH)) err_free(setting_parse(s, v.p, c)); /* 0: its own */
    buf_free(&v);
  }
  if (same && i.tokenizer) a->init_tokenizer = xstrdup(i.tokenizer);
  checkpoint_info_free(&i);
}

/* A train step from a file as the model. */
static Err *adopt_program(Args *a, const char *path) {
  TrainConfig *c = &a->r.config;
  a->own.program = path;
  a->own.resume = a->resume;
  TRY(adopt_open(&a->own, &a->adopted));
  a->r.model = adopt_model(a->adopted);
  if (!a->resume) begin_settings(a->r.model, c);
  c->batch = adopt_batch(a->adopted);
  c->eval_batch = adopt_eval_batch(a->adopted);
  c->length = adopt_length(a->adopted);
  return NULL;
}

/* The model and its settings: those of the run that goes on, or the model's own; of another
 * optimizer those that it is used with. */
static Err *defaults(Args *a, const char *model, const char *optimizer) {
  TrainConfig *c = &a->r.config;
  if (a->resume) {
    TRY(checkpoint_info(a->resume, &a->before));
    *c = a->before.config;
    if (a->before.program && (!model || adopt_is_program(model)))
      return adopt_program(a, model ? model : a->before.program);
    if (a->before.program)
      return err_hint(err_new(ERR_INVALID,
                              "'%s' is a run of a train step from a file, not of model '%s'",
                              a->resume, model),
                      "leave MODEL out");
    if (model && strcmp(model, a->before.model))
      return err_hint(
          err_new(ERR_INVALID, "'%s' is a run of model '%s'", a->resume, a->before.model),
          "leave MODEL out; --init begins a new run with its weights");
    return zoo_find(a->before.model, &a->r.model);
  }
  if (adopt_is_program(model)) return adopt_program(a, model);
  TRY(zoo_find(model, &a->r.model));
  begin_settings(a->r.model, c);
  if (a->own.init) take_shape(a, a->own.init);
  TrainConfig other = *c;
  if (optimizer) {
    Err *e = setting_parse(setting_find("optimizer"), optimizer, &other);
    if (e) err_free(e); /* said when it is parsed again */
    else if (other.opt.kind != c->opt.kind) opt_defaults(other.opt.kind, &c->opt);
  }
  return NULL;
}

/* How many devices run a step of one's own together: those that it is written for, --replicas, or all of the chip's
 * where they divide its batch. */
static int own_devices(const CliArgs *args, Args *a, int all) {
  TrainConfig *c = &a->r.config;
  int asked = given(a, "replicas") ? c->replicas : 0, fixed = a->r.model->devices;
  c->replicas = 0;
  c->devices = fixed ? fixed : asked ? asked : all > 1 && c->batch % all == 0 ? all : 1;
  if (fixed && asked && asked != fixed)
    return cli_wrong(args, "--replicas %d: the step is written for %d devices", asked, fixed);
  if (!fixed && c->batch % c->devices)
    return cli_wrong(args, "--replicas %d: the step's batch of %lld does not divide over them",
                     asked, (long long)c->batch);
  return 0;
}

/* A run that goes on by its folder is kept there, unless --out says another place. */
static void take_resume(Args *a, const char *run) {
  free(a->resume);
  a->resume = checkpoint_path(run);
  a->folder = strcmp(a->resume, run) ? run : NULL;
}

/* All that the command line says, with what it says nothing of. */
static int take_args(CliArgs *args, Args *a) {
  const char *optimizer = NULL;
  int opt = O_SETTING + (int)(setting_find("optimizer") - settings);
  for (int o; (o = cli_next(args)) != -1;) { /* brings MODEL to the end of argv */
    if (o == CLI_HELP) return print_usage(), -1;
    if (o == '?') return 2;
    if (o == O_RESUME) take_resume(a, optarg);
    if (o == opt) optimizer = optarg;
    if (o == O_INIT) a->own.init = optarg;
    if (o >= O_STATE && o < O_SETTING && !set_own(args, o, a)) return 2;
  }
  if (optind == args->argc && !a->resume) return cli_wrong(args, "which MODEL?");
  if (optind < args->argc - 1) return cli_wrong(args, "what is '%s'?", args->argv[args->argc - 1]);
  Err *e = defaults(a, optind < args->argc ? args->argv[optind] : NULL, optimizer);
  if (e) {
    int status = e->code == ERR_NOT_FOUND && !a->resume ? 2 : 1;
    err_report(e);
    return status;
  }
  optind = 1;
  for (int o; (o = cli_next(args)) != -1;)
    if (!set(args, o, a)) return 2;
  TrainConfig *c = &a->r.config;
  if (!a->r.out) a->r.out = a->folder;
  if (a->adopted && c->batch != adopt_batch(a->adopted))
    return cli_wrong(args, "--batch %lld: the step is made for %lld examples", (long long)c->batch,
                     (long long)adopt_batch(a->adopted));
  if (given(a, "epochs") && !given(a, "steps")) c->steps = 0;
  if (!a->dump && (e = peers_place(a->coordinator, &a->place))) return err_report(e), 2;
  bool free_to_choose = !a->adopted && !given(a, "replicas");
  int all = train_virtual_devices(&a->r); /* a chip of several devices trains on all of them */
  if (a->place.n > 1 && !all) all = a->place.n * MAX(1, host_devices(&a->r));
  if (a->adopted) return own_devices(args, a, all);
  if (all > 1 && free_to_choose && c->replicas <= MAX(1, a->place.n - 1)) c->replicas = all;
  int n = MAX(1, c->replicas);
  if (c->batch % n)
    return cli_wrong(args,
                     "a batch of %lld does not divide over %d devices: --batch %lld, or "
                     "--replicas 1 for one device",
                     (long long)c->batch, n, (long long)((c->batch + n - 1) / n * n));
  c->batch /= n;
  c->eval_batch = (c->eval_batch + n - 1) / n;
  return 0;
}

static int train(int argc, char **argv) {
  Args a = {.compare = true,
            .save_minutes = -1,
            .classes = 2,
            .place.n = 1,
            .r.device = env_get("WEFT_DEVICE") ? env_get("WEFT_DEVICE") : "cpu"};
  make_options();
  CliArgs args = {argc, argv, options, 0};
  int status = take_args(&args, &a);
  Err *e = status ? NULL : meet(&a);
  if (!status && !e) e = open_data(&a, &a.r.data);
  if (!status && !e && (e = refuse_unread(&a, a.r.data))) status = 2;
  if (!status && !e && a.profile && !a.dump) e = folder_make(a.profile); /* not after hours */
  if (!status && !e && !a.dump) shorten_warmup(&a);
  if (!status && !e) e = run(&a);
  peers_hub_close(a.job.hub, e);
  data_close(a.r.data);
  free(a.place.host);
  free(a.device);
  adopt_close(a.adopted);
  checkpoint_info_free(&a.before);
  free(a.resume);
  free(a.init_tokenizer);
  free(a.init);
  if (e) {
    err_report(e);
    return status ? status : 1;
  }
  if (interrupted == SIGTERM) return 128 + SIGTERM;
  return status < 0 ? 0 : status;
}

const CliVerb cli_train = {"train", "train a model on data; then the same step on virtual chips",
                           train};
