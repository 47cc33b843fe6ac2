/* weft plan: which chips, how many, split how, how long and at what price. */
#include "cli/cli.h"

#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "weft plan MODEL [options]      layouts of a training job over chips: time, price, energy\n"
    "weft plan --runs FILE.csv      what the model says of measured runs, a JSON object a row\n"
    "\n"
    "  MODEL             a name (llama3-8b, mixtral-8x7b, deepseek-v3 ...), a family and size "
    "(llama:70b),\n"
    "                    or a shape (gpt:layers=96,hidden=12288,heads=96)\n"
    "  --chips NAME[:N]  H100:512, tpu-v5p, any; may be repeated. Without a count: 1 to --most\n"
    "  --tokens N        of the whole run\n"
    "  --gbs N           sequences a step; otherwise what models of its size are trained with\n"
    "  --seq N           tokens of a sequence; otherwise 4096\n"
    "  --clouds A,B      whose prices count; otherwise all\n"
    "  --spot            spot prices\n"
    "  --sort KEY        time, cost, energy; otherwise cost\n"
    "  --most N          chips, where no count is named; otherwise 1024\n"
    "  --json\n"
    "  --set KEY=VALUE   another value of a coefficient (src/plan/law.def)\n";

static int wrong_set(const CliArgs *args) {
  char *eq = strchr(optarg, '='), *end;
  if (!eq || eq == optarg) return cli_wrong(args, "--set wants KEY=VALUE, not '%s'", optarg);
  *eq = 0;
  double v = strtod(eq + 1, &end);
  if (end == eq + 1 || *end)
    return cli_wrong(args, "--set %s wants a number, not '%s'", optarg, eq + 1);
  Err *e = plan_law_set(optarg, v);
  if (!e) return 0;
  err_report(e);
  return 2;
}

enum { MAX_ASKED = 32 };

typedef struct PlanArgs {
  const char *runs;
  const char *names[MAX_ASKED];
  int n_names;
  bool json;
  PlanAsk ask;
} PlanArgs;

static void print(Buf *out) {
  if (out->n) fwrite(out->p, 1, out->n, stdout);
  buf_free(out);
}

/* No names, or "any": every chip there is. */
static Err *asked_chips(const PlanArgs *a, ChipRef *to, int *n) {
  const Chip *const *all;
  int have = 0;
  *n = 0;
  for (int i = 0; i < a->n_names; i++)
    if (strcmp(a->names[i], "any")) TRY(chip_parse(a->names[i], &to[(*n)++]));
  if (*n) return NULL;
  TRY(chip_list(&all, &have));
  for (int i = 0; i < have && *n < 4 * MAX_ASKED; i++)
    if (chip_num(all[i], "year", 2020) >= 2017) to[(*n)++] = (ChipRef){.chip = all[i]};
  return NULL;
}

static Err *plan(PlanArgs *a, const char *what) {
  PlanModel model;
  ChipRef chips[4 * MAX_ASKED] = {{0}};
  PlanAnswer answer = {0};
  Buf out = {0};
  TRY(plan_model(what, &model));
  a->ask.model = &model;
  a->ask.chips = chips;
  TRY(asked_chips(a, chips, &a->ask.n_chips));
  TRY(plan_search(&a->ask, &answer));
  if (a->json) plan_json(&answer, &out);
  else plan_print(&answer, &out);
  print(&out);
  plan_answer_free(&answer);
  return NULL;
}

static Err *runs(const char *path) {
  Buf out = {0};
  Err *e = plan_runs(path, &out);
  print(&out);
  return e;
}

static int run(int argc, char **argv) {
  enum {
    O_RUNS = CLI_FIRST,
    O_SET,
    O_JSON,
    O_CHIPS,
    O_TOKENS,
    O_GBS,
    O_SEQ,
    O_CLOUDS,
    O_SPOT,
    O_SORT,
    O_MOST
  };
  static const struct option options[] = {{"runs", 1, NULL, O_RUNS},
                                          {"set", 1, NULL, O_SET},
                                          {"json", 0, NULL, O_JSON},
                                          {"chips", 1, NULL, O_CHIPS},
                                          {"chip", 1, NULL, O_CHIPS},
                                          {"tokens", 1, NULL, O_TOKENS},
                                          {"gbs", 1, NULL, O_GBS},
                                          {"seq", 1, NULL, O_SEQ},
                                          {"clouds", 1, NULL, O_CLOUDS},
                                          {"spot", 0, NULL, O_SPOT},
                                          {"sort", 1, NULL, O_SORT},
                                          {"most", 1, NULL, O_MOST},
                                          CLI_HELP_ROW,
                                          {0}};
  static const char *const orders[] = {"time", "cost", "energy", NULL};
  CliArgs args = {argc, argv, options, 0};
  PlanArgs a = {0};
  for (int o, i; (o = cli_next(&args)) != -1;) switch (o) {
    case O_RUNS: a.runs = optarg; break;
    case O_SET:
      if (wrong_set(&args)) return 2;
      break;
    case O_JSON: a.json = true; break;
    case O_CHIPS:
      if (a.n_names == MAX_ASKED) return cli_wrong(&args, "at most %d chips", MAX_ASKED);
      a.names[a.n_names++] = optarg;
      break;
    case O_TOKENS:
      if (!cli_real(&args, 1, &a.ask.tokens)) return 2;
      break;
    case O_GBS:
      if (!cli_real(&args, 1, &a.ask.gbs)) return 2;
      break;
    case O_SEQ:
      if (!cli_real(&args, 1, &a.ask.seq)) return 2;
      break;
    case O_CLOUDS: a.ask.clouds = optarg; break;
    case O_SPOT: a.ask.spot = true; break;
    case O_SORT:
      if ((i = cli_choice(&args, orders)) < 0) return 2;
      a.ask.sort = orders[i];
      break;
    case O_MOST:
      if (!cli_int(&args, 1, &a.ask.most)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (a.runs ? optind != argc : optind != argc - 1)
    return cli_wrong(&args, a.runs ? "--runs takes no MODEL" : "one MODEL, please");
  Err *e = a.runs ? runs(a.runs) : plan(&a, argv[optind]);
  if (e) err_report(e);
  return e ? 1 : 0;
}

const CliVerb cli_plan = {"plan", "chips, count, layout, time and price of a training job", run};
