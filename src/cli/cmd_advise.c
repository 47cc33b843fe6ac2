/* weft advise: one piece of work on many chips: what fits, how large a batch, how long, how much.
 */
#include "cli/cli.h"
#include "cli/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft advise MODEL|PROGRAM [--chip NAME]... [options]\n"
    "\n"
    "Answers for each chip, from the program alone: does it fit and who holds the memory, the\n"
    "largest batch that fits, time, energy, money, and what to try next. MODEL is one of the "
    "zoo's\n"
    "(weft train --help lists them): its training step and its evaluation. PROGRAM is StableHLO,\n"
    "text or bytecode: its batch is found and changed where its operations allow.\n"
    "\n"
    "  --chip NAME       repeatable, with or without a count: T4, tpu-v2-8, A100-80GB:8\n"
    "                    (default: one of each chip; weft chips lists them)\n"
    "  --batch N         examples in a training step, over all devices of a chip\n"
    "  --eval-batch N    examples in an evaluation (default: as --batch)\n"
    "  --data D          the data set whose shapes to take (default: the model's own, made up)\n"
    "  --data-dir DIR    where its files are\n"
    "  --precision P     f32, or bf16: products and activations in bfloat16\n"
    "  --size N, --length N   variant of the model, tokens in an example\n"
    "  --epochs N, --steps N  of the whole training\n"
    "  --cloud A,B, --region R, --spot   whose prices count: of these clouds, of regions whose\n"
    "                    names begin so (us, europe-west4), spot ones (default: any on demand)\n"
    "  --sort WHAT       time, cost, energy or memory (default: as given; all chips: cost)\n"
    "  --json            everything as one JSON object\n"
    "  --help            this text\n"
    "Exit status 0: everything fits everywhere; 1: something does not, or an error; 2: wrong "
    "usage.\n";

#define MAX_CHIPS 64

typedef struct AdviseArgs {
  const char *what, *data, *data_dir, *sort;
  const char *chips[MAX_CHIPS];
  int n_chips;
  int64_t batch, eval_batch;
  double epochs, steps;
  int64_t length;
  int size;
  DType compute;
  bool json;
  PriceAsk price;
} AdviseArgs;

/* ---- order ----------------------------------------------------------------------------------- */

static double key_of(const AdviseRow *r, const char *by) {
  const AdviseFit *f = r->train.known ? &r->train : &r->eval;
  if (!f->known || !f->report->fits) return INFINITY;
  double v = !strcmp(by, "time")     ? f->report->time_s
             : !strcmp(by, "energy") ? f->report->energy_j
             : !strcmp(by, "memory") ? f->report->hbm_bytes
                                     : f->report->usd;
  return isnan(v) ? 1e300 : v;
}

static void sort_rows(AdviseRow *rows, int n, const char *by) {
  for (int i = 1; i < n; i++) { /* insertion: few rows, and equal ones stay in order */
    AdviseRow r = rows[i];
    int k = i;
    for (; k > 0 && key_of(&rows[k - 1], by) > key_of(&r, by); k--) rows[k] = rows[k - 1];
    rows[k] = r;
  }
}

/* ---- the verb -------------------------------------------------------------------------------- */

static bool fits_everywhere(const AdviseRow *rows, int n) {
  bool all = true;
  for (int i = 0; i < n; i++) {
    if (rows[i].train.why || rows[i].eval.why) all = false;
    if (rows[i].train.known) all &= rows[i].train.report->fits;
    if (rows[i].eval.known) all &= rows[i].eval.report->fits;
  }
  return all;
}

typedef struct Many {
  const AdviseWork *work;
  const char *const *names;
  AdviseRow *rows;
  Err **errs;
} Many;

static void one_chip(void *arg, int64_t i) {
  Many *m = arg;
  m->errs[i] = advise_chip(m->work, m->names[i], &m->rows[i]);
}

static Err *advise(const AdviseArgs *a, bool *fits) {
  CliWorkOpts opts = {.verb = "advise",
                      .data = a->data,
                      .data_dir = a->data_dir,
                      .batch = a->batch,
                      .eval_batch = a->eval_batch,
                      .epochs = a->epochs,
                      .steps = a->steps,
                      .length = a->length,
                      .size = a->size,
                      .compute = a->compute};
  CliWork work;
  Err *e = cli_work_open(a->what, &opts, &work);
  const AdviseWork *w = &work.work;
  work.work.price = a->price;
  const char *names[MAX_CHIPS];
  int n = a->n_chips;
  memcpy(names, a->chips, sizeof *names * (size_t)n);
  const Chip *const *all;
  if (!e && !n) {
    e = chip_list(&all, &n);
    n = MIN(n, MAX_CHIPS);
    for (int i = 0; i < n && !e; i++) names[i] = all[i]->name;
  }
  Many many = {w, names, xcalloc(MAX_CHIPS, sizeof(AdviseRow)), xcalloc(MAX_CHIPS, sizeof(Err *))};
  AdviseRow *rows = many.rows;
  if (!e) pool_run(n, one_chip, &many);
  for (int i = 0; i < n; i++) {
    if (e) err_free(many.errs[i]);
    else e = many.errs[i];
  }
  int done = n;
  if (!e) {
    const char *by = a->sort ? a->sort : a->n_chips ? NULL : "cost";
    if (by) sort_rows(rows, done, by);
    Buf out = {0};
    if (a->json) advise_json(w, rows, done, &out);
    else advise_print(w, rows, done, &out);
    fwrite(out.p, 1, out.n, stdout);
    buf_free(&out);
    *fits = fits_everywhere(rows, done);
  }
  for (int i = 0; i < done; i++) advise_row_free(&rows[i]);
  free(rows);
  free(many.errs);
  cli_work_close(&work);
  return e;
}

static int run(int argc, char **argv) {
  enum {
    O_CHIP = CLI_FIRST,
    O_BATCH,
    O_EVAL,
    O_DATA,
    O_DIR,
    O_PREC,
    O_SIZE,
    O_LEN,
    O_EPOCHS,
    O_STEPS,
    O_SORT,
    O_JSON
  };
  static const struct option options[] = {{"chip", 1, NULL, O_CHIP},
                                          {"batch", 1, NULL, O_BATCH},
                                          {"eval-batch", 1, NULL, O_EVAL},
                                          {"data", 1, NULL, O_DATA},
                                          {"data-dir", 1, NULL, O_DIR},
                                          {"precision", 1, NULL, O_PREC},
                                          {"size", 1, NULL, O_SIZE},
                                          {"length", 1, NULL, O_LEN},
                                          {"epochs", 1, NULL, O_EPOCHS},
                                          {"steps", 1, NULL, O_STEPS},
                                          {"sort", 1, NULL, O_SORT},
                                          {"json", 0, NULL, O_JSON},
                                          CLI_PRICE_ROWS,
                                          CLI_HELP_ROW,
                                          {0}};
  static const char *const precisions[] = {"f32", "bf16", NULL};
  static const char *const orders[] = {"time", "cost", "energy", "memory", NULL};
  AdviseArgs a = {.compute = DT_F32};
  CliArgs args = {argc, argv, options, 0};
  int64_t count;
  for (int o, i; (o = cli_next(&args)) != -1;) switch (o) {
    case O_CHIP:
      if (a.n_chips == MAX_CHIPS) return cli_wrong(&args, "at most %d chips", MAX_CHIPS);
      a.chips[a.n_chips++] = optarg;
      break;
    case O_BATCH:
      if (!cli_count(&args, 1, &a.batch)) return 2;
      break;
    case O_EVAL:
      if (!cli_count(&args, 1, &a.eval_batch)) return 2;
      break;
    case O_DATA: a.data = optarg; break;
    case O_DIR: a.data_dir = optarg; break;
    case O_PREC:
      if ((i = cli_choice(&args, precisions)) < 0) return 2;
      a.compute = i ? DT_BF16 : DT_F32;
      break;
    case O_SIZE:
      if (!cli_int(&args, 1, &a.size)) return 2;
      break;
    case O_LEN:
      if (!cli_count(&args, 1, &a.length)) return 2;
      break;
    case O_EPOCHS:
      if (!cli_real(&args, 0, &a.epochs)) return 2;
      break;
    case O_STEPS:
      if (!cli_count(&args, 1, &count)) return 2;
      a.steps = (double)count;
      break;
    case O_SORT:
      if ((i = cli_choice(&args, orders)) < 0) return 2;
      a.sort = orders[i];
      break;
    case O_JSON: a.json = true; break;
    case CLI_CLOUD:
    case CLI_REGION:
    case CLI_SPOT:
      if (!cli_price(&args, o, &a.price)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 1) return cli_wrong(&args, "one MODEL or PROGRAM, please");
  a.what = argv[optind];
  bool fits = false;
  Err *e = advise(&a, &fits);
  if (e) err_report(e);
  return !e && fits ? 0 : 1;
}

const CliVerb cli_advise = {"advise", "what fits where, the largest batch, time, energy and money",
                            run};
