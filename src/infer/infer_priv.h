/* Private to infer. */
#ifndef WEFT_INFER_INFER_PRIV_H
#define WEFT_INFER_INFER_PRIV_H

#include "adopt/adopt.h"
#include "infer/infer.h"

enum { MOST_BATCHES = 16 }; /* powers of two */

struct Infer {
  Client *client;
  int device;
  int64_t batch;
  CheckpointInfo info;
  const Model *model;
  Adopted *own;  /* the step of a run of one's own; NULL: a model of the zoo */
  int field;     /* of the data, that goes in; -1: nothing predicts */
  int64_t fixed; /* examples in its program; 0: any number */
  int n_file;    /* the checkpoint's tensors, until they are on the device */
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

/* ---- own.c: runs of train steps of one's own ---- */
/* Opens the step and its programs, sets what StepProgram p (of the state that they take) tells. */
Err *own_open(Infer *i, const InferOpts *o, const char *checkpoint, StepProgram *p);
Err *own_export(const Infer *i, const ExportOpts *o); /* own_export.c */

/* ---- export_files.c ---- */
Err *export_put(const char *folder, const char *name, const void *p, size_t n);
/* A network that answers, weights inside: forward.mlirbc, and what goes in and what comes out. */
Err *export_program(const Infer *i, const char *to, const Module *m);

#endif
