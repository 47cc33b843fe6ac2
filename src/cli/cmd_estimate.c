/* weft estimate: fit, step time, kernels, energy and price of a program on a chip, without running
 * it. */
#include <stdio.h>
#include <stdlib.h>

#include "chip/chip.h"
#include "cli/cli.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

static const char usage[] =
    "usage: weft estimate PROGRAM --chip NAME [--devices N] [--json] [--kernels N]\n"
    "\n"
    "Compiles PROGRAM (StableHLO text or bytecode, - for standard input) for the chip and prints\n"
    "whether it fits, how long one run takes, what each kernel waits for, energy and price.\n"
    "Nothing is executed.\n"
    "\n"
    "  --chip NAME     a chip, with or without a count: tpu-v5e, tpu-v3-8, A100-80GB:8;\n"
    "                  weft chips lists them\n"
    "  --devices N     how many devices run the program together (collectives);\n"
    "                  default: the count in NAME, else what the program says\n"
    "  --kernels N     rows of the kernel table (default 20)\n"
    "  --json          the whole report as one JSON object\n"
    "  --help          this text\n"
    "\n"
    "Exit status 0: it fits; 1: it does not fit, or cannot be read; 2: wrong usage.\n";

static int run(int argc, char **argv) {
  enum { CHIP = CLI_FIRST, DEVICES, KERNELS, JSON };
  static const struct option options[] = {{"chip", required_argument, NULL, CHIP},
                                          {"devices", required_argument, NULL, DEVICES},
                                          {"kernels", required_argument, NULL, KERNELS},
                                          {"json", no_argument, NULL, JSON},
                                          CLI_HELP_ROW,
                                          {0}};
  const char *name = NULL;
  int devices = 0, kernels = 20;
  bool json = false;
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case CHIP: name = optarg; break;
    case DEVICES:
      if (!cli_int(&args, 1, &devices)) return 2;
      break;
    case KERNELS:
      if (!cli_int(&args, 0, &kernels)) return 2;
      break;
    case JSON: json = true; break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 1) return cli_wrong(&args, "one PROGRAM, please");
  if (!name) return cli_wrong(&args, "on which chip? --chip NAME; weft chips lists them");
  const char *file = argv[optind];
  ChipRef ref;
  Err *e = chip_parse(name, &ref);
  Buf bytes = {0}, out = {0};
  Module *m = NULL;
  SimReport *r = NULL;
  int status = 1;
  if (!e) e = file_read(file, &bytes);
  if (!e) e = stablehlo_read(file, (Str){bytes.p ? bytes.p : "", bytes.n}, &m);
  if (!e) e = ir_verify(m);
  int own = e ? 1 : sim_devices_of(m);
  SimOpts opts = {.devices = devices > 0 ? devices : MAX(own, ref.devices)};
  if (!e) e = sim_estimate_spmd(m, ref.chip, &opts, own, &r);
  if (e && e->code == ERR_UNIMPLEMENTED && !e->hint)
    err_hint(e, "time and memory are those of one shape: lower the program without symbolic or "
                "bounded dimensions, jax.jit(f).lower(...) of arrays of the size you mean");
  if (!e) {
    if (json) sim_json(r, &out);
    else sim_print(r, kernels, &out);
    fwrite(out.p, 1, out.n, stdout);
    status = r->fits ? 0 : 1;
    if (!r->fits && !json) e = sim_fit_error(r, file);
  }
  if (e) err_report(e);
  sim_report_free(r);
  module_free(m);
  buf_free(&bytes);
  buf_free(&out);
  return status;
}

const CliVerb cli_estimate = {
    "estimate", "does it fit, how long, what is idle, what does it cost on a chip", run};
