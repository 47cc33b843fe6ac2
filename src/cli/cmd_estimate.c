/* weft estimate: fit, step time, kernels, energy and price of programs on chips, without running
 * them. */
#include <stdio.h>
#include <stdlib.h>

#include "advise/advise.h"
#include "chip/chip.h"
#include "cli/cli.h"
#include "sim/sim.h"
#include "zoo/zoo.h"

static const char usage[] =
    "usage: weft estimate PROGRAM... --chip NAME [--chip NAME]... [--devices N]\n"
    "                     [--batch N] [--attention HOW] [--products HOW] [--eager]\n"
    "                     [--cloud A,B] [--region R] [--spot] [--kernels N] [--json]\n"
    "\n"
    "Compiles PROGRAM (StableHLO text or bytecode, - for standard input; or a script of PyTorch\n"
    "or TensorFlow, train.py, of which it takes the training step) for the chip and prints\n"
    "whether it fits, how long one run takes, what each kernel waits for, energy and price.\n"
    "What follows -- is the script's: weft estimate train.py --chip H100 -- --batch-size 8.\n"
    "Nothing is executed. Of several programs or chips, each on each: one line of a table.\n"
    "\n"
    "  --chip NAME     a chip, with or without a count: tpu-v5e, tpu-v3-8, A100-80GB:8, or in\n"
    "                  servers of a name: H100:16@a3-mega (without: the usual ones of that chip);\n"
    "                  weft chips lists them\n"
    "  --devices N     how many devices run the program together (collectives);\n"
    "                  default: the count in NAME, else what the program says\n"
    "  --batch N       the program at another batch, over all devices: every dimension that\n"
    "                  belongs to its inputs' leading one is resized\n"
    "  --attention HOW plain: products and softmax apart, as XLA compiles them (default);\n"
    "                  fused: one kernel, as FlashAttention or Pallas, on chips that can\n"
    "  --products HOW  on GPUs: searched: small products by kernels of XLA's own, which it finds "
    "by\n"
    "                  trying and which need no workspace (default); library: all by cuBLAS, as\n"
    "                  XLA compiles with --xla_gpu_enable_triton_gemm=false\n"
    "  --eager         on GPUs: as a framework that runs one operation at a time (PyTorch without\n"
    "                  torch.compile): nothing fused but what its own kernels and cuDNN's do, "
    "each\n"
    "                  operation issued by the host; layers in a loop keep what such operations\n"
    "                  save for their gradients, not all that the program stacks; default: as\n"
    "                  XLA compiles\n"
    "  --cloud A,B     prices of these clouds only; --region R: of regions whose names begin so;\n"
    "  --spot          spot prices\n"
    "  --kernels N     rows of the kernel table (default 20)\n"
    "  --json          the whole report as one JSON object; of several, one object a line\n"
    "  --help          this text\n"
    "\n"
    "Exit status 0: it fits; 1: it does not fit, or cannot be read; 2: wrong usage. Of several: 0\n"
    "when all fit.\n";

#define MOST_CHIPS 64

typedef struct Request {
  char **programs;
  const char *names[MOST_CHIPS];
  ChipRef chips[MOST_CHIPS];
  int n_programs, n_chips, devices, batch, kernels;
  bool json, fused, eager, library;
  PriceAsk price;
} Request;

static bool several(const Request *q) { return q->n_programs > 1 || q->n_chips > 1; }

/* The chip goes by the name that it was asked for, which may hold a count; another one is said. */
static void print_row(const SimReport *r, const char *file, const char *name, const ChipRef *ref,
                      Buf *out) {
  bool said = ref->devices == r->devices || (!ref->devices && r->devices == 1);
  char *chip = said ? xstrdup(name) : xasprintf("%s x %d", r->chip->name, r->devices);
  sim_print_row(r, file, chip, out);
  free(chip);
}

/* One program on one chip, printed; *fits tells whether it does. */
static Err *report(const Request *q, const Module *m, const char *file, const char *name,
                   const ChipRef *ref, bool *fits) {
  int own = sim_devices_of(m);
  SimOpts opts = {.devices = q->devices > 0 ? q->devices : MAX(own, ref->devices),
                  .where = ref,
                  .fused_attention = q->fused,
                  .eager = q->eager,
                  .library = q->library,
                  .open_arguments = true,
                  .price = q->price};
  SimReport *r = NULL;
  int asked = q->devices > 0 ? q->devices : ref->devices; /* 0: neither says */
  if (asked % own)
    return err_hint(
        err_new(ERR_INVALID, "%s is a program of %d devices, not of %d", file, own, asked),
        "--devices %d, or lower it for a mesh of %d", own, asked);
  Err *e = sim_estimate_rented(m, ref->chip, &opts, own, &r);
  if (e) return err_place(e, "%s", file);
  Buf out = {0};
  if (q->json) sim_json(r, file, several(q), &out);
  else if (several(q)) print_row(r, file, name, ref, &out);
  else sim_print(r, q->kernels, &out);
  fwrite(out.p, 1, out.n, stdout);
  fflush(stdout);
  *fits = r->fits;
  if (!r->fits && !q->json && !several(q)) e = sim_fit_error_brief(r, file);
  sim_report_free(r);
  buf_free(&out);
  return e;
}

/* The program for another batch, in place of *m. */
static Err *resize(Module **m, const char *file, int batch) {
  AdviseWork w;
  AdviseProgram *p = NULL;
  Module *other = NULL;
  TRY(advise_program(*m, file, &w, &p));
  Err *e = w.build(w.arg, &(AdviseCase){.batch = batch, .devices = 1}, &other);
  advise_program_free(p);
  if (e) return e;
  module_free(*m);
  *m = other;
  return NULL;
}

/* One program on every chip: 0 when it fits all of them. */
static int estimate(const Request *q, const char *file) {
  Module *m = NULL;
  int status = 0;
  Err *e = cli_program(file, &m);
  for (int i = 0; e && zoo_all[i]; i++)
    if (!strcmp(file, zoo_all[i]->name))
      err_hint(e, "of a model: weft advise %s --chip %s, or weft profile", file, q->names[0]);
  if (!e && q->batch) e = resize(&m, file, q->batch);
  for (int i = 0; i < q->n_chips && !e; i++) {
    bool fits = false;
    e = report(q, m, file, q->names[i], &q->chips[i], &fits);
    if (!fits) status = 1;
  }
  if (e) err_report(e), status = 1;
  module_free(m);
  return status;
}

static int run(int argc, char **argv) {
  enum { CHIP = CLI_FIRST, DEVICES, BATCH, ATTENTION, PRODUCTS, EAGER, KERNELS, JSON };
  static const struct option options[] = {{"chip", required_argument, NULL, CHIP},
                                          {"devices", required_argument, NULL, DEVICES},
                                          {"batch", required_argument, NULL, BATCH},
                                          {"attention", required_argument, NULL, ATTENTION},
                                          {"products", required_argument, NULL, PRODUCTS},
                                          {"eager", no_argument, NULL, EAGER},
                                          {"kernels", required_argument, NULL, KERNELS},
                                          {"json", no_argument, NULL, JSON},
                                          CLI_PRICE_ROWS,
                                          CLI_HELP_ROW,
                                          {0}};
  Request q = {.kernels = 20};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case CHIP:
      if (q.n_chips == MOST_CHIPS) return cli_wrong(&args, "at most %d times --chip", MOST_CHIPS);
      q.names[q.n_chips++] = optarg;
      break;
    case DEVICES:
      if (!cli_int(&args, 1, &q.devices)) return 2;
      break;
    case BATCH:
      if (!cli_int(&args, 1, &q.batch)) return 2;
      break;
    case ATTENTION: {
      int how = cli_choice(&args, (const char *const[]){"plain", "fused", NULL});
      if (how < 0) return 2;
      q.fused = how == 1;
      break;
    }
    case PRODUCTS: {
      int how = cli_choice(&args, (const char *const[]){"searched", "library", NULL});
      if (how < 0) return 2;
      q.library = how == 1;
      break;
    }
    case EAGER: q.eager = true; break;
    case KERNELS:
      if (!cli_int(&args, 0, &q.kernels)) return 2;
      break;
    case JSON: q.json = true; break;
    case CLI_CLOUD:
    case CLI_REGION:
    case CLI_SPOT:
      if (!cli_price(&args, o, &q.price)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  q.programs = argv + optind;
  q.n_programs = argc - optind;
  if (q.n_programs < 1) return cli_wrong(&args, "a PROGRAM, please");
  if (!q.n_chips) return cli_wrong(&args, "on which chip? --chip NAME; weft chips lists them");
  for (int i = 0; i < q.n_chips; i++) {
    Err *e = chip_parse(q.names[i], &q.chips[i]);
    if (e) return err_report(e), 1;
    if (q.eager && q.chips[i].chip->kind == CHIP_TPU)
      return cli_wrong(&args, "--eager is for GPUs: a TPU runs what XLA compiled, and %s is one",
                       q.names[i]);
  }
  int status = 0;
  if (several(&q) && !q.json) {
    Buf head = {0};
    sim_print_row(NULL, "program", "", &head);
    fwrite(head.p, 1, head.n, stdout);
    buf_free(&head);
  }
  for (int i = 0; i < q.n_programs; i++) status |= estimate(&q, q.programs[i]);
  return status;
}

const CliVerb cli_estimate = {
    "estimate", "does it fit, how long, what is idle, what does it cost on a chip", run};
