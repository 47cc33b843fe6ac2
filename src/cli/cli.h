/* cli: the command `weft`. One file a verb: cmd_VERB.c defines `const CliVerb cli_VERB`; the build
 * finds it. */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include "chip/chip.h"
#include "client/client.h"
#include "ir/ir.h"

#include <getopt.h>

typedef struct CliVerb {
  const char *name;    /* "run" */
  const char *summary; /* one line for `weft help` */
  /* argv[0] is the verb. Returns the exit status: 0 good, 1 the program or a check failed, 2 wrong
   * usage. Must answer --help with its usage on standard output and 0. */
  int (*run)(int argc, char **argv);
} CliVerb;

/* ---- options.c: a command line, and what to say of a wrong one ---------------------------------
 */

/* Value of --help (also -h) in every verb's table; a verb's own start after it. */
enum { CLI_HELP = 256, CLI_CLOUD, CLI_REGION, CLI_SPOT, CLI_FIRST };
#define CLI_HELP_ROW \
  { "help", no_argument, NULL, CLI_HELP }
/* Whose prices count, of verbs that print prices; cli_price takes one of them. */
#define CLI_PRICE_ROWS                                                                           \
  {"cloud", required_argument, NULL, CLI_CLOUD}, {"clouds", required_argument, NULL, CLI_CLOUD}, \
      {"region", required_argument, NULL, CLI_REGION}, {                                         \
    "spot", no_argument, NULL, CLI_SPOT                                                          \
  }

typedef struct CliArgs {
  int argc;
  char **argv;                  /* argv[0] is the verb */
  const struct option *options; /* the last row is zero */
  int at;                       /* row of the option that cli_next returned */
} CliArgs;

/* getopt_long: the value of the next option, its argument in `optarg`; -1 after the last, with
 * argv[optind] the first operand; '?' after saying on standard error what is wrong. */
int cli_next(CliArgs *a);

/* optarg as a number of at least `least`; false after saying what --OPTION wants. */
bool cli_real(const CliArgs *a, double least, double *out);
/* The same with a letter behind it: 300B, 2.5T, 10k. */
bool cli_amount(const CliArgs *a, double least, double *out);
bool cli_count(const CliArgs *a, int64_t least, int64_t *out);
bool cli_int(const CliArgs *a, int least, int *out);
bool cli_duration(const CliArgs *a, double *seconds); /* "90m", "12h", "3d", "30s" */

/* optarg as one of `names` (the last is NULL): its index; -1 after saying which there are. */
int cli_choice(const CliArgs *a, const char *const *names);

/* optarg of one of CLI_PRICE_ROWS; false after saying that no such cloud or region is known. */
bool cli_price(const CliArgs *a, int option, PriceAsk *ask);

/* optarg, K=V, as a create option of a plugin: a number when V is one. Splits optarg in place. */
bool cli_plugin_option(const CliArgs *a, ClientOption *options, int *n, int most);

/* "weft VERB: MESSAGE   (weft VERB --help)" on standard error; returns 2. */
int cli_wrong(const CliArgs *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- program.c ------------------------------------------------------------------------------- */

/* The program in a file, "-" is standard input: read, verified, with a function to run. Of a Python script
 * (train.py) the training step. */
Err *cli_program(const char *path, Module **out);

/* ---- script.c: a PyTorch script in place of a program ---- */
bool cli_is_script(const char *path);
/* Runs it on a device that computes nothing until its step is known; the step as StableHLO. errors: the script
 * failed, or trains nothing */
Err *cli_script_step(const char *path, Buf *out);
/* Of "train.py --chip A100 -- --batch 8": keeps what follows "--" for the script; what is left of argc. Command lines
 * without a script stay as they are. */
int cli_take_script_args(int argc, char **argv);

/* How many a program is for: "mhlo.num_replicas", "mhlo.num_partitions"; 1 when it does not say. */
int cli_attr_count(const Module *m, const char *name);

#endif
