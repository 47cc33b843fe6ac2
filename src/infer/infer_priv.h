/* Private to infer. */
#ifndef WEFT_INFER_INFER_PRIV_H
#define WEFT_INFER_INFER_PRIV_H

#include "infer/infer.h"

enum { MOST_BATCHES = 16 }; /* powers of two */

struct Infer {
  Client *client;
  int device;
  int64_t batch;
  CheckpointInfo info;
  const Model *model;
  int n_file; /* the checkpoint's tensors, until they are on the device */
  NamedTensor *file;
  int n_weights; /* parameters and statistics, in the order of every program */
  StateSpec *specs;
  ClientBuffer **weights;
  int64_t elements, outputs;
  ClientProgram *forward[MOST_BATCHES]; /* for a batch of 1 << k */
};

/* The tensor of the checkpoint that a parameter or statistic has. errors: ERR_INVALID */
Err *infer_tensor(const Infer *i, const StateSpec *s, const NamedTensor **out);
Err *infer_compile(Infer *i, const Module *m, ClientProgram **out);

#endif
