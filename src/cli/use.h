/* cli/use: what the verbs that use a trained network share: RUN, where it computes, the numbers they
 * print. */
#ifndef WEFT_CLI_USE_H
#define WEFT_CLI_USE_H

#include "cli/cli.h"
#include "infer/infer.h"

typedef struct Use {
  const char *device, *plugin;
  int64_t batch;                              /* 0: infer's own */
  const char *eval_program, *predict_program; /* InferOpts' */
  bool json;
  Client *client;
  Infer *infer;
} Use;

/* Rows for a verb's table of options and their values; a verb's own start at USE_OWN. */
enum { USE_DEVICE = CLI_FIRST, USE_PLUGIN, USE_BATCH, USE_JSON, USE_OWN };
#define USE_ROWS                                                                                   \
  {"device", 1, NULL, USE_DEVICE}, {"plugin", 1, NULL, USE_PLUGIN}, {"batch", 1, NULL, USE_BATCH}, \
      {"json", 0, NULL, USE_JSON}, CLI_HELP_ROW
#define USE_HELP                                                                     \
  "  --batch N          examples in one run of the program (default 64)\n"           \
  "  --device D         cpu (default), interp, or a chip's name for a virtual one\n" \
  "  --plugin PATH      another PJRT plugin (XLA's CPU or CUDA plugin, libtpu)\n"    \
  "  --json             the result as JSON on stdout\n"                              \
  "  --help             this text\n"

bool use_option(const CliArgs *args, int which, Use *u); /* false after saying what is wrong */
Err *use_open(Use *u, const char *run);
void use_close(Use *u);
/* Says on standard error what of a run was guessed. */
void use_say_guesses(const Infer *i);

/* What came out of repeated calls, in seconds; sorts. */
typedef struct UseLatency {
  double p50, p99;
} UseLatency;
UseLatency use_latency(int n, double *seconds);
/* Name of class k, or its number, in `text`. */
const char *use_label(const Data *d, int64_t k, char text[64]);

#endif
