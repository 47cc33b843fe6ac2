/* What eval, predict, generate, export and serve share. */
#include "cli/use.h"

#include <stdio.h>
#include <stdlib.h>

bool use_option(const CliArgs *args, int which, Use *u) {
  switch (which) {
  case USE_DEVICE: u->device = optarg; return true;
  case USE_PLUGIN: u->plugin = optarg; return true;
  case USE_BATCH: return cli_count(args, 1, &u->batch);
  case USE_JSON: u->json = true; return true;
  default: assert(false); return false;
  }
}

Err *use_open(Use *u, const char *run) {
  const char *device = u->device ? u->device : env_get("WEFT_DEVICE");
  ClientOption o = {.name = "device", .str = device ? device : "cpu"};
  TRY(client_open(u->plugin, &o, u->plugin ? 0 : 1, &u->client));
  TRY(infer_open(&(InferOpts){.run = run,
                              .client = u->client,
                              .batch = u->batch,
                              .eval_program = u->eval_program,
                              .predict_program = u->predict_program},
                 &u->infer));
  use_say_guesses(u->infer);
  return NULL;
}

void use_say_guesses(const Infer *i) {
  if (infer_by_type(i))
    fprintf(stderr,
            "the program that predicts has no names: its state was found by types and order\n");
}

void use_close(Use *u) {
  infer_close(u->infer);
  client_close(u->client);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

UseLatency use_latency(int n, double *s) {
  if (!n) return (UseLatency){0};
  qsort(s, (size_t)n, sizeof *s, by_value);
  return (UseLatency){s[n / 2], s[MIN(n - 1, n * 99 / 100)]};
}

const char *use_label(const Data *d, int64_t k, char text[64]) {
  const char *p = d->labels;
  for (int64_t i = 0; p && i < k; i++) p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
  if (p) snprintf(text, 64, "%.*s", (int)MIN(63, strcspn(p, "\n")), p);
  else snprintf(text, 64, "%lld", (long long)k);
  return text;
}
