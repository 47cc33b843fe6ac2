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

/* ---- several processes (job.c); o->job is there ---- */

typedef struct JobRun {
  const TrainOpts *o;
  TrainConfig whole; /* batch: of all replicas */
  int64_t step;      /* that it goes on from */
  uint64_t program, state;
} JobRun;
/* errors: ERR_INVALID a process makes another run: which, and in what it differs. */
Err *job_is_one_run(const JobRun *r);
/* Adds to sums what the replicas of all processes counted; own: [batch][replica here][3]. Rounds go up by
 * one. Sums are taken as by one process that has all replicas. */
Err *job_sum(const ClientJob *j, int64_t round, int replicas, int64_t batches, const float *own,
             double sums[3]);
/* Asked by all before each step: do they stop? asked: this one was told to. */
Err *job_stops(const ClientJob *j, int64_t step, bool asked, bool *stop);

size_t field_bytes(const Field *f); /* loader.c */

/* ---- arrays in parts on several devices (cut.c) ---- */

enum { CUT_RANK = 8 };
/* The device's part of a whole array; the caller frees *out. errors: a dimension does not divide */
Err *cut_take(const Cut *c, DType t, int rank, const int64_t *dims, int device, const void *whole,
              int64_t *part_dims, void **out);
/* The other way: from the device to its place in the whole. */
Err *cut_fetch(const Cut *c, DType t, int rank, const int64_t *dims, int device, ClientBuffer *part,
               void *whole);

/* A checkpoint that is not there: as a hint, which runs there are in its folder. Returns e, which may be NULL. */
Err *runs_beside(Err *e, const char *path);

/* Makes TrainOpts.out. errors: ERR_EXISTS it holds a run that this one does not go on with */
Err *run_folder_open(const TrainOpts *o);

/* After the gradients, which follow *forward_end, are there: products that layers marked are computed in 8 bits. */
void f8_products(Net *n, Op **forward_end);
/* Likewise: blocks are computed again. */
void remat_blocks(Net *n, Op *forward_end);

#endif
