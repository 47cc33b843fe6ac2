/* Private to train. */
#ifndef WEFT_TRAIN_TRAIN_PRIV_H
#define WEFT_TRAIN_TRAIN_PRIV_H

#include "train/train.h"

enum { LOADER_AHEAD = 3 }; /* batches that a Loader keeps ready */

/* ---- recording some steps (record.c) ---- */

typedef struct Record {
  Client *client;
  int64_t first, steps; /* from step `first` on; 0 steps: none */
  ClientProfile *running;
  double begin_s;
  VEC(double) make_s, begins;
  double batch_bytes;
} Record;
Err *record_before_step(Record *r, int64_t step, const Batch *b);
Err *record_finish(Record *r, const char *title, Prof **out); /* when it is running */

size_t field_bytes(const Field *f); /* loader.c */

/* Makes TrainOpts.out. errors: ERR_EXISTS it holds a run that this one does not go on with */
Err *run_folder_open(const TrainOpts *o);

/* After the gradients, which follow forward_end, are there: blocks are computed again. */
void remat_blocks(Net *n, Op *forward_end);

#endif
