/* advise: what a piece of work would be like on each chip, from its programs alone: does it fit and
 * who holds the memory, the largest batch that fits, time, energy and money, and what to change.
 *
 * The work is anything that can make its program for a batch and a number of devices: a model of
 * the zoo, or a StableHLO program with its batch changed (advise_program). Nothing is run.
 */
#ifndef WEFT_ADVISE_ADVISE_H
#define WEFT_ADVISE_ADVISE_H

#include "sim/sim.h"

typedef struct AdviseCase {
  int64_t batch; /* examples on one device */
  int devices;   /* that share the work, data parallel or as the program is sharded */
  bool training; /* the step; else the evaluation */
  bool narrow;   /* bfloat16 activations instead of the program's own */
} AdviseCase;

typedef struct AdviseWork {
  const char *name;
  int64_t batch;      /* of a training step, over all devices; 0: no training step */
  int64_t eval_batch; /* likewise of an evaluation; 0: none */
  int64_t length;     /* tokens in an example, of models of text; 0: of others */
  bool no_batch;      /* which dimension holds the examples was not found: the program as it is */
  double steps;       /* training steps in all; 0: not known */
  bool can_narrow;    /* build knows `narrow` */
  int partitions;     /* over which the program is sharded; 0: build makes one device's program */
  PriceAsk price;     /* whose prices count */
  bool fixed_devices; /* the program is sharded already: build ignores `devices` */
  /* The program of one device. errors: ERR_UNIMPLEMENTED when it cannot be made */
  Err *(*build)(void *arg, const AdviseCase *c, Module **out);
  void *arg;
} AdviseWork;

typedef struct AdviseFit { /* one program on one chip */
  bool known;              /* else `why` */
  char *why;
  int64_t batch; /* over all devices */
  SimReport *report;
  double op_by_op_bytes;  /* what running it operation by operation would hold */
  double workspace_bytes; /* of a convolution; 0: it has none */
} AdviseFit;

typedef struct AdviseSample { /* of one device */
  int64_t batch;
  double bytes;
} AdviseSample;
typedef VEC(AdviseSample) AdviseSamples;

typedef struct AdviseTip {
  char *text;
  bool fits;
} AdviseTip;

typedef struct AdviseRow { /* one chip */
  char *name;              /* as asked for: "T4", "tpu-v2-8" */
  ChipRef ref;
  int devices; /* of the chip */
  int copies; /* of the work: 1, or the program is for fewer devices and is whole on each of so many
                * groups; batches are then of one group */
  AdviseFit train, eval;
  int64_t largest_train; /* over all devices; 0: not even one example a device fits */
  int64_t largest_eval;  /* with the training state released */
  int64_t largest_eval_slots, largest_eval_held; /* beside optimizer slots; beside everything */
  double slots_bytes,
      held_bytes; /* what training leaves on a device: slots; slots and temporaries */
  /* What a framework holds in the evaluation that runs one operation at a time beside all that
   * training left, with the largest workspace that it grants a convolution; 0: not that kind. */
  double framework_bytes;
  VEC(AdviseTip) tips;
  AdviseSamples train_samples, eval_samples; /* batches asked for so far */
} AdviseRow;

/* errors: a chip's name that is not known. A program that cannot be made or estimated is no error:
 * see `why`. Any thread. */
Err *advise_chip(const AdviseWork *w, const char *chip, AdviseRow *out);
void advise_row_free(AdviseRow *r);

void advise_print(const AdviseWork *w, const AdviseRow *rows, int n, Buf *out);
void advise_json(const AdviseWork *w, const AdviseRow *rows, int n, Buf *out);

/* Work from a StableHLO program, which stays the caller's. Its batch is found and changed as
 * compile/pass/rebatch.h says; a program whose batch cannot be changed is asked for its own only. */
typedef struct AdviseProgram AdviseProgram;
Err *advise_program(const Module *m, const char *name, AdviseWork *out, AdviseProgram **keep);
void advise_program_free(AdviseProgram *p);

/* The most that is alive at once when every operation's result is stored, views and broadcasts
 * excepted: what a framework holds that runs operation by operation. */
double advise_op_by_op_bytes(const Module *m);
bool advise_has_convolution(const Module *m);

#endif
