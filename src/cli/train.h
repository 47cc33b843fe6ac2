/* cli/train: what the parts of `weft train` share. */
#ifndef WEFT_CLI_TRAIN_H
#define WEFT_CLI_TRAIN_H

#include "train/train.h"

#include <stdio.h>

typedef struct TrainRun {
  const Model *model;
  TrainConfig config; /* batch: of one replica */
  Data *data;
  const char *device, *plugin, *out; /* plugin, out: NULL for none */
  int64_t eval_every;
  bool json;
} TrainRun;
int64_t train_global_batch(const TrainRun *r);
int train_devices(const TrainRun *r); /* that it runs on: replicas, or those of one step */
void train_count(char *s, size_t n, int64_t v); /* "124,439,808" */
/* Of the virtual chip that it is on; 0: it is on no chip. */
int train_virtual_devices(const TrainRun *r);

typedef struct TrainLive { /* the line that shows how it goes */
  bool tty;
  double next, loss, accuracy; /* running means over about 30 steps */
  int64_t seen;
  const char *unit;
  double peak, flops; /* FLOP/s of the device, FLOP of a step: 0: not known */
  double joule, usd;  /* of a step on a virtual chip; 0: not known */
  double chip_s;      /* its time for a step there */
  FILE *log;          /* a JSON object in a line for each step and evaluation; NULL: none */
  int log_errno;      /* of writing it, the first */
} TrainLive;
/* What a step costs, for the live line. replicas: of r->config. */
void train_live_costs(const TrainRun *r, TrainLive *out);
void train_show(void *live, const Progress *p);

void train_print_header(const TrainRun *r, const char *where, const char *platform);
void train_print_result(const TrainRun *r, const TrainResult *t, bool phantom, bool interrupted);
/* result.json in the run folder, and with --json to stdout; devices: the table, may be empty */
Err *train_write_result(const TrainRun *r, const TrainResult *t, const Buf *devices);
/* The recording as text, as a page and for TensorBoard, in folder `to`. */
Err *train_write_profile(const TrainRun *r, const char *to, Prof *p);

#endif
