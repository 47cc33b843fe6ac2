/* weft plan: which chips, how many, split how, how long and at what price. */
#include "base/system.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/work.h"
#include "launch/launch.h"
#include "plan/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "usage: weft plan MODEL|PROGRAM [options]   layouts of a training job over chips: time, price, "
    "energy\n"
    "       weft plan --runs FILE.csv      what the model says of measured runs, a JSON object a "
    "row\n"
    "\n"
    "  MODEL              a name (llama3-8b, mixtral-8x7b, deepseek-v3 ...), a family and size "
    "(llama:70b),\n"
    "                     or a shape (gpt:layers=96,hidden=12288,heads=96)\n"
    "  PROGRAM            StableHLO of a train step (from JAX, weft train --dump-step, ...), "
    "PyTorch's train.py\n"
    "                     (for \"cuda\"; WEFT_PYTHON names its Python), or a model of weft train\n"
    "                     (resnet50, davidnet ...): data parallel, or on the devices it is sharded "
    "for; tokens "
    "are examples\n"
    "  --chips A,B        H100:512, tpu-v5p, H100:16@a3-mega (in those servers), any; may be "
    "repeated.\n"
    "                     Without a count: 1 to --most\n"
    "  --tokens N         of the whole run (300e9, 300B); or --steps N\n"
    "  --gbs N            sequences a step; otherwise what models of its size are trained with\n"
    "  --seq N            tokens of a sequence; otherwise 4096, or the positions that the model "
    "has\n"
    "  --budget USD       at most; without --tokens: what it buys\n"
    "  --deadline TIME    at most: 90m, 12h, 3d\n"
    "  --cloud A,B        whose prices count; otherwise all\n"
    "  --region R         of regions whose names begin so (us, europe-west4); otherwise all\n"
    "  --spot             spot prices\n"
    "  --precision A,B    bf16, fp16, fp8, fp8-current, mxfp8, nvfp4 ...; otherwise 16 bits, and 8 "
    "where chips have them\n"
    "  --stack A,B        megatron, fsdp, maxtext; otherwise what the chip runs\n"
    "  --lora [RANK]      low-rank adapters instead of all weights; rank 16, 64 sequences a step\n"
    "  --sort KEY         cost, time, energy; otherwise cost\n"
    "  --most N           chips, where no count is named; otherwise 1024\n"
    "  --all              every count's best layout, not only those that nothing beats\n"
    "  --emit DIR         the first choice as train.sh, sky.yaml, slurm.sh, xpk.sh and dstack.yml\n"
    "  --confirm LIBTPU   the first TPU choice's program compiled by Google's libtpu.so, without a "
    "device: memory\n"
    "                     side by side. Of a MODEL the step of its layout at full size, which "
    "takes "
    "minutes\n"
    "  --json\n"
    "  --set KEY=VALUE    another value of a coefficient (src/plan/coefficients.def)\n"
    "\n"
    "Exit status 0: a plan; 1: nothing fits, or an error; 2: wrong usage; 3: a plan, but nothing "
    "in "
    "it meets\n"
    "the budget and the deadline.\n";

typedef enum Option {
  O_RUNS = CLI_FIRST,
  O_SET,
  O_JSON,
  O_CHIPS,
  O_TOKENS,
  O_STEPS,
  O_GBS,
  O_SEQ,
  O_BUDGET,
  O_DEADLINE,
  O_PRECISION,
  O_STACK,
  O_LORA,
  O_SORT,
  O_MOST,
  O_ALL,
  O_EMIT,
  O_CONFIRM
} Option;
static const struct option options[] = {{"runs", 1, NULL, O_RUNS},
                                        {"set", 1, NULL, O_SET},
                                        {"json", 0, NULL, O_JSON},
                                        {"chips", 1, NULL, O_CHIPS},
                                        {"chip", 1, NULL, O_CHIPS},
                                        {"tokens", 1, NULL, O_TOKENS},
                                        {"steps", 1, NULL, O_STEPS},
                                        {"gbs", 1, NULL, O_GBS},
                                        {"seq", 1, NULL, O_SEQ},
                                        {"budget", 1, NULL, O_BUDGET},
                                        {"deadline", 1, NULL, O_DEADLINE},
                                        CLI_PRICE_ROWS,
                                        {"precision", 1, NULL, O_PRECISION},
                                        {"stack", 1, NULL, O_STACK},
                                        {"lora", 2, NULL, O_LORA},
                                        {"sort", 1, NULL, O_SORT},
                                        {"most", 1, NULL, O_MOST},
                                        {"all", 0, NULL, O_ALL},
                                        {"emit", 1, NULL, O_EMIT},
                                        {"confirm", 1, NULL, O_CONFIRM},
                                        CLI_HELP_ROW,
                                        {0}};
#define GIVEN(o) (1u << ((o)-CLI_FIRST))

static int wrong_set(const CliArgs *args) {
  char *eq = strchr(optarg, '='), *end;
  if (!eq || eq == optarg) return cli_wrong(args, "--set wants KEY=VALUE, not '%s'", optarg);
  *eq = 0;
  double v = strtod(eq + 1, &end);
  if (end == eq + 1 || *end)
    return cli_wrong(args, "--set %s wants a number, not '%s'", optarg, eq + 1);
  Err *e = plan_coef_set(optarg, v);
  if (!e) return 0;
  err_report(e);
  return 2;
}

enum { MAX_ASKED = 128 };

typedef struct PlanArgs {
  const char *runs, *emit, *confirm;
  unsigned given; /* bits of Option */
  char *names[MAX_ASKED];
  int n_names;
  bool json, all;
  double steps;
  PlanAsk ask;
  bool misses; /* nothing meets what was asked */
} PlanArgs;

static void print(Buf *out) {
  if (out->n) fwrite(out->p, 1, out->n, stdout);
  buf_free(out);
}

/* No names, or "any": every chip of the last ten years. */
static Err *asked_chips(const PlanArgs *a, ChipRef *to, int *n) {
  const Chip *const *all;
  int have = 0;
  *n = 0;
  for (int i = 0; i < a->n_names; i++) {
    if (!strcmp(a->names[i], "any")) continue;
    TRY(chip_parse(a->names[i], &to[*n]));
    *n += 1;
  }
  if (*n) return NULL;
  TRY(chip_list(&all, &have));
  for (int i = 0; i < have && *n < MAX_ASKED; i++)
    if (chip_num(all[i], "year", 2020) >= 2017) to[(*n)++] = (ChipRef){.chip = all[i]};
  return NULL;
}

/* What weft launch has measured of this model; a history that cannot be read is none. */
typedef struct History {
  LaunchMeasures runs;
  PlanMeasured *as;
} History;

static void history(const char *model, PlanAsk *ask, History *h) {
  err_free(launch_measured(model, &h->runs));
  h->as = xcalloc((size_t)h->runs.n + 1, sizeof *h->as);
  for (int i = 0; i < h->runs.n; i++)
    h->as[i] = (PlanMeasured){h->runs.v[i].chip, h->runs.v[i].ratio, h->runs.v[i].runs};
  ask->measured = h->as, ask->n_measured = h->runs.n;
}

static void history_done(History *h) {
  vec_free(&h->runs);
  free(h->as);
}

/* Steps as tokens. */
static Err *whole_run(PlanArgs *a) {
  PlanAsk *k = &a->ask;
  if (a->steps <= 0) return NULL;
  if (k->seq <= 0) k->seq = plan_usual_seq(k->model);
  if (k->gbs <= 0)
    return err_hint(
        err_new(ERR_INVALID, "--steps without --gbs: how long a run is depends on its batch"),
        "say --gbs, or --tokens instead");
  k->tokens = a->steps * k->gbs * k->seq;
  return NULL;
}

enum { WIDTH = 110 };

/* plan_words, its paragraphs in lines that a terminal shows. */
static void wrapped_words(const PlanAnswer *answer, Buf *out) {
  Buf words = {0};
  plan_words(answer, &words);
  buf_byte(&words, 0);
  for (char *p = words.p, *line; (line = strsep(&p, "\n"));) {
    int indent = (int)strspn(line, " ");
    line += indent;
    for (char *end = line; *end; line = end + 1) {
      size_t n = strlen(line), most = (size_t)(WIDTH - indent);
      for (end = line + MIN(n, most); n > most && end > line && (*end != ' ' || end[1] == '%');
           end--) {
      }                                           /* "2 %" stays together */
      if (end == line) end += strcspn(line, " "); /* one long word */
      buf_printf(out, "%*s%.*s%s", indent, "", (int)(end - line), line, *end ? "\n" : "");
    }
    if (p) buf_byte(out, '\n');
  }
  buf_free(&words);
}

static Err *answer_out(PlanArgs *a, const PlanAnswer *answer, const AdviseWork *w) {
  Buf out = {0};
  if (a->json) plan_json(answer, &out);
  else plan_write_text(answer, a->all, &out), wrapped_words(answer, &out);
  print(&out);
  if (!answer->choices.n) return err_new(ERR_EXHAUSTED, "no layout was found");
  a->misses = !answer->choices.v[0].meets;
  if (a->emit) {
    Buf left_out = {0};
    TRY(plan_emit(answer, &answer->choices.v[0], a->emit, &left_out));
    size_t n = strlen(a->emit);
    fprintf(stderr, "weft plan: wrote %s%s%s%s\n", a->emit, n && a->emit[n - 1] == '/' ? "" : "/",
            left_out.n ? "; " : "", left_out.n ? left_out.p : "");
    buf_free(&left_out);
  }
  if (!a->confirm) return NULL;
  return w ? cli_confirm(a->confirm, w, answer) : cli_confirm_shape(a->confirm, answer);
}

static Err *plan_of_model(PlanArgs *a, const PlanModel *model) {
  PlanAnswer answer = {0};
  a->ask.model = model;
  TRY(whole_run(a));
  History measured = {0};
  history(model->name, &a->ask, &measured);
  Err *e = plan_search(&a->ask, &answer);
  if (!e) e = answer_out(a, &answer, NULL);
  plan_answer_free(&answer);
  history_done(&measured);
  return e;
}

static const char *option_name(Option o) {
  const struct option *r = options;
  while (r->name && r->val != (int)o) r++;
  return r->name;
}

static Err *plan_of_program(PlanArgs *a, const char *what) {
  static const Option shapes[] = {O_SEQ, O_PRECISION, O_STACK};
  for (int i = 0; i < COUNT_OF(shapes); i++)
    if (a->given & GIVEN(shapes[i]))
      return err_new(ERR_INVALID, "--%s is for a MODEL's shape: the program '%s' has its own",
                     option_name(shapes[i]), what);
  CliWorkOpts opts = {.verb = "plan", .batch = (int64_t)a->ask.gbs, .compute = DT_F32};
  CliWork work;
  PlanAnswer answer = {0};
  Err *e = cli_work_open(what, &opts, &work);
  if (!e && a->steps > 0)
    a->ask.tokens = a->steps * (double)(work.work.batch ? work.work.batch : work.work.eval_batch);
  History measured = {0};
  if (!e) history(work.work.name, &a->ask, &measured);
  if (!e) e = plan_program(&work.work, &a->ask, &answer);
  if (!e) e = answer_out(a, &answer, &work.work);
  plan_answer_free(&answer);
  history_done(&measured);
  cli_work_close(&work);
  return e;
}

static Err *plan(PlanArgs *a, const char *what) {
  PlanModel model;
  ChipRef chips[MAX_ASKED] = {{0}};
  a->ask.chips = chips;
  TRY(asked_chips(a, chips, &a->ask.n_chips));
  bool counts = true;
  for (int i = 0; i < a->ask.n_chips; i++) counts &= chips[i].chips > 0;
  if (counts && a->ask.most)
    return err_hint(err_new(ERR_INVALID, "--most bounds chips without a count, and all have one"),
                    "--chips %s", chips[0].chip->name);
  if (a->emit) TRY(folder_make(a->emit)); /* before the search, so that it is not lost */
  if (a->confirm && access(a->confirm, R_OK)) return err_errno("--confirm %s", a->confirm);
  Err *e = cli_work_is_file(what) ? err_new(ERR_NOT_FOUND, "a file") : plan_model(what, &model);
  if (!e) return plan_of_model(a, &model);
  const Model *zoo;
  Err *none = zoo_find(what, &zoo);
  bool program = !none || cli_work_is_file(what);
  err_free(none);
  if (!program) return e;
  err_free(e);
  return plan_of_program(a, what);
}

static Err *runs(const char *path) {
  Buf out = {0};
  Err *e = plan_runs(path, &out);
  print(&out);
  return e;
}

/* A list of names, each one of n: a bit for each. */
static bool bits(const CliArgs *args, const char *const *names, unsigned *out) {
  for (char *s = strtok(optarg, ","); s; s = strtok(NULL, ",")) {
    optarg = s;
    int i = cli_choice(args, names);
    if (i < 0) return false;
    *out |= 1u << i;
  }
  return *out || cli_choice(args, names) >= 0; /* none: which there are */
}

static bool chips_option(const CliArgs *args, PlanArgs *a) {
  for (char *s = strtok(optarg, ","); s; s = strtok(NULL, ",")) {
    if (a->n_names == MAX_ASKED) return cli_wrong(args, "at most %d chips", MAX_ASKED), false;
    a->names[a->n_names++] = s;
  }
  if (!a->n_names) cli_wrong(args, "--chips names no chip: H100:512, tpu-v5p, any");
  return a->n_names > 0;
}

/* --lora, --lora 8, --lora=8: a number after it is its rank, not the model. */
static bool lora(CliArgs *args, int *rank) {
  const char *next = optind < args->argc ? args->argv[optind] : "";
  bool number = next[strspn(next, "+-")] >= '0' && next[strspn(next, "+-")] <= '9';
  char *end;
  if (!optarg && number && (strtod(next, &end), !*end)) optarg = args->argv[optind++];
  *rank = 16;
  return !optarg || cli_int(args, 1, rank);
}

enum { MOST_CHIPS = 1000000 };

static bool most(const CliArgs *args, int *out) {
  if (!cli_int(args, 1, out)) return false;
  if (*out > MOST_CHIPS) cli_wrong(args, "--most is at most %d", MOST_CHIPS);
  return *out <= MOST_CHIPS;
}

static bool set(CliArgs *args, int o, PlanArgs *a) {
  static const char *const orders[] = {"cost", "time", "energy", NULL};
  static const char *const stacks[] = {"megatron", "fsdp", "maxtext", NULL};
  static const char *formats[PLAN_OWN_NUMBERS + 1];
  for (int i = 0; i < PLAN_OWN_NUMBERS; i++) formats[i] = plan_format_name((PlanFormat)i);
  PlanAsk *k = &a->ask;
  int i;
  if (o >= CLI_FIRST) a->given |= GIVEN(o);
  switch (o) {
  case O_RUNS: a->runs = optarg; return true;
  case O_SET: return !wrong_set(args);
  case O_JSON: return a->json = true;
  case O_ALL: return a->all = true;
  case O_EMIT: a->emit = optarg; return true;
  case O_CONFIRM: a->confirm = optarg; return true;
  case O_CHIPS: return chips_option(args, a);
  case O_TOKENS: return cli_amount(args, 1, &k->tokens);
  case O_STEPS: return cli_amount(args, 1, &a->steps);
  case O_GBS: return cli_real(args, 1, &k->gbs);
  case O_SEQ: return cli_real(args, 1, &k->seq);
  case O_BUDGET: return cli_amount(args, 0.01, &k->budget_usd);
  case O_DEADLINE: return cli_duration(args, &k->deadline_s);
  case O_PRECISION: return bits(args, formats, &k->formats);
  case O_STACK: return bits(args, stacks, &k->stacks);
  case O_LORA: return lora(args, &k->lora_rank);
  case O_SORT:
    if ((i = cli_choice(args, orders)) >= 0) k->order = (PlanOrder)i;
    return i >= 0;
  case O_MOST: return most(args, &k->most);
  case CLI_CLOUD:
  case CLI_REGION:
  case CLI_SPOT: return cli_price(args, o, &k->price);
  default: return false; /* said already */
  }
}

static int run(int argc, char **argv) {
  CliArgs args = {argc, argv, options, 0};
  PlanArgs a = {0};
  for (int o; (o = cli_next(&args)) != -1;) {
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    if (!set(&args, o, &a)) return 2;
  }
  if (a.runs ? optind != argc : optind != argc - 1)
    return cli_wrong(&args, a.runs ? "--runs takes no MODEL" : "one MODEL, please");
  if (a.runs && a.given & ~(GIVEN(O_RUNS) | GIVEN(O_SET) | GIVEN(O_JSON)))
    return cli_wrong(&args, "--runs takes no option but --set and --json");
  if (a.steps > 0 && a.ask.tokens > 0) return cli_wrong(&args, "--tokens or --steps, not both");
  Err *e = a.runs ? runs(a.runs) : plan(&a, argv[optind]);
  if (e) err_report(e);
  return e ? 1 : a.misses ? 3 : 0;
}

const CliVerb cli_plan = {"plan", "chips, count, layout, time and price of a training job", run};
