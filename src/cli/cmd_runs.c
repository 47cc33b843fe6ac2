/* weft runs: what was launched where, the plan against what was measured. */
#include "cli/cli.h"

#include "launch/launch.h"

#include <stdio.h>

static const char usage[] =
    "usage: weft runs [RUN] [--json]\n"
    "\n"
    "What `weft launch` has run, newest first: where, how long, a step's time and the money, each "
    "beside what was planned.\n"
    "RUN: a number, a name or a run folder. The history is a file of SQLite: WEFT_RUNS, otherwise\n"
    "~/.local/share/weft/runs.db.\n";

static int runs(int argc, char **argv) {
  enum { O_JSON = CLI_FIRST };
  static const struct option options[] = {{"json", 0, NULL, O_JSON}, CLI_HELP_ROW, {0}};
  CliArgs args = {argc, argv, options, 0};
  bool json = false;
  for (int o; (o = cli_next(&args)) != -1;)
    if (o == CLI_HELP) return fputs(usage, stdout), 0;
    else if (o == O_JSON) json = true;
    else return 2;
  if (optind < argc - 1) return cli_wrong(&args, "one RUN, please");
  Buf out = {0};
  Err *e = launch_history(optind < argc ? argv[optind] : NULL, json, &out);
  if (out.n) fwrite(out.p, 1, out.n, stdout);
  buf_free(&out);
  if (e) err_report(e);
  return e ? 1 : 0;
}

const CliVerb cli_runs = {"runs", "what was launched: plan against measured, time and money", runs};
