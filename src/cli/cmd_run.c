/* weft run: one StableHLO program, from a file, on any device or plugin; inputs and outputs are
 * .npz files. */
#include "base/system.h"
#include "cli/run.h"

#include "stablehlo/stablehlo.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: weft run PROGRAM [options]\n"
    "\n"
    "PROGRAM is StableHLO text (.mlir) or portable bytecode (.mlirbc), or an HLO module of XLA's "
    "as proto\n"
    "(.hlo.pb) or text (.hlo); - reads standard input.\n"
    "\n"
    "  --device D       interp, cpu, cpu:8 (eight host devices), or a chip as clouds name it:\n"
    "                   tpu-v3-8, tpu-v5litepod-4, A100-80GB:8, T4 (default: $WEFT_DEVICE, else "
    "cpu)\n"
    "  --in FILE.npz    in0, in1, ... in the order of @main's arguments\n"
    "  --random, --zeros  made-up arguments: normal random numbers of a fixed seed (integers "
    "small, "
    "none\n"
    "                   negative; nor where the program takes a root or logarithm), or all zero\n"
    "  --out FILE.npz   gets out0, out1, ...; without it results are printed\n"
    "  --plugin PATH    run on another PJRT plugin (libtpu.so, XLA's CPU or CUDA plugin)\n"
    "  --option K=V     create option for the plugin (repeatable; a number is sent as a number)\n"
    "  --compile-only   compile and print what the compiler says of memory and cost\n"
    "  --topology T     compile for T without devices (with --plugin libtpu.so: v5e:2x2)\n"
    "  --parse-only     read and verify, print nothing\n"
    "  --print          print the program as StableHLO text and stop\n"
    "  --repeat N       run N times; prints the first run's time, the median and the range of the "
    "others\n"
    "  --help           this text\n"
    "\n"
    "Types that numpy lacks are stored as unsigned integers of their width (bfloat16 as uint16, f8 "
    "and i4 as one\n"
    "uint8 an element). Exit status: 0 good, 1 an error or a failed check.expect_*, 2 wrong "
    "usage.\n";

/* Operations that nobody has heard of are a matter for other plugins. */
static Err *is_known(Op *op, void *unused) {
  (void)unused;
  if (op->kind != OP_UNKNOWN) return NULL;
  Nearest near = {.want = op->name};
  for (int k = 1; k < OP_COUNT; k++) nearest_see(&near, op_info[k].name);
  Err *e = op_err(op, ERR_UNIMPLEMENTED, "no such operation");
  return near.best ? err_hint(e, "did you mean %s?", near.best) : e;
}

static Err *run(const RunArgs *a) {
  Buf bytes = {0};
  if (a->out) TRY(file_may_write(a->out));
  TRY(file_read(a->program, &bytes));
  Str program = {bytes.p, bytes.n};
  Module **modules = NULL;
  int n = 0;
  Err *e = stablehlo_read_all(a->program, program, &modules, &n);
  for (int i = 0; i < n && !e; i++) e = ir_verify(modules[i]);
  if (!e && a->print) {
    Buf text = {0};
    for (int i = 0; i < n; i++) {
      if (i) buf_cstr(&text, "\n// -----\n\n");
      stablehlo_write_text(&text, modules[i], NULL);
    }
    fwrite(text.p, 1, text.n, stdout);
    buf_free(&text);
  } else if (!e && !a->parse_only) {
    for (int i = 0; i < n && !e && !a->plugin; i++)
      for (int k = 0; k < modules[i]->funcs.n && !e; k++)
        if (modules[i]->funcs.v[k]->body) e = ir_walk(modules[i]->funcs.v[k]->body, is_known, NULL);
    if (e) goto out;
    if (!a->plugin && run_is_self_checking(modules, n)) e = run_checks(a, modules, n);
    else if (!(e = stablehlo_has_main(modules[0], a->program)))
      e = run_program(a, modules[0], module_main(modules[0]), program);
  }
out:
  for (int i = 0; i < n; i++) module_free(modules[i]);
  free(modules);
  buf_free(&bytes);
  return e;
}

static int cmd_run(int argc, char **argv) {
  enum {
    DEVICE = CLI_FIRST,
    IN,
    RANDOM,
    ZEROS,
    OUT,
    PLUGIN,
    OPTION,
    COMPILE_ONLY,
    TOPOLOGY,
    PARSE_ONLY,
    PRINT,
    REPEAT
  };
  static const struct option options[] = {{"device", required_argument, NULL, DEVICE},
                                          {"in", required_argument, NULL, IN},
                                          {"random", no_argument, NULL, RANDOM},
                                          {"zeros", no_argument, NULL, ZEROS},
                                          {"out", required_argument, NULL, OUT},
                                          {"plugin", required_argument, NULL, PLUGIN},
                                          {"option", required_argument, NULL, OPTION},
                                          {"compile-only", no_argument, NULL, COMPILE_ONLY},
                                          {"topology", required_argument, NULL, TOPOLOGY},
                                          {"parse-only", no_argument, NULL, PARSE_ONLY},
                                          {"print", no_argument, NULL, PRINT},
                                          {"repeat", required_argument, NULL, REPEAT},
                                          CLI_HELP_ROW,
                                          {0}};
  RunArgs a = {0};
  CliArgs args = {argc, argv, options, 0};
  for (int o; (o = cli_next(&args)) != -1;) switch (o) {
    case DEVICE: a.device = optarg; break;
    case IN: a.in = optarg; break;
    case RANDOM: a.random = true; break;
    case ZEROS: a.zeros = true; break;
    case OUT: a.out = optarg; break;
    case PLUGIN: a.plugin = optarg; break;
    case COMPILE_ONLY: a.compile_only = true; break;
    case TOPOLOGY:
      a.topology = optarg;
      a.compile_only = true;
      break;
    case PARSE_ONLY: a.parse_only = true; break;
    case PRINT: a.print = true; break;
    case REPEAT:
      if (!cli_int(&args, 1, &a.repeat)) return 2;
      break;
    case OPTION:
      if (!cli_plugin_option(&args, a.options, &a.n_options, RUN_MAX_OPTIONS)) return 2;
      break;
    case CLI_HELP: return fputs(usage, stdout), 0;
    default: return 2;
    }
  if (optind != argc - 1) return cli_wrong(&args, "one PROGRAM, please");
  if (a.random + a.zeros + (a.in != NULL) > 1)
    return cli_wrong(&args, "one of --in, --random and --zeros, please");
  a.program = argv[optind];
  Err *e = run(&a);
  if (!e) return 0;
  err_report(e);
  return 1;
}

const CliVerb cli_run = {"run", "run one StableHLO program on a device or plugin", cmd_run};
