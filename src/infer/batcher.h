/* batcher: single examples from many threads, answered in batches by one. */
#ifndef WEFT_INFER_BATCHER_H
#define WEFT_INFER_BATCHER_H

#include "infer/infer.h"

typedef struct Batcher Batcher;
typedef struct BatcherStats {
  int64_t examples, batches;
  double p50_s, p99_s; /* of the last 1000: from asking to the answer */
} BatcherStats;
/* An answer waits at most wait_s for others to come along; batches have at most `most`. The Infer is
 * the batcher's alone from now on. */
Err *batcher_open(Infer *i, int64_t most, double wait_s, Batcher **out);
void batcher_close(Batcher *b); /* when nobody asks any more */
/* Any thread: one example in, infer_outputs numbers out. */
Err *batcher_ask(Batcher *b, const void *input, float *logits);
/* Any thread: fn gets the Infer for itself, between batches. */
Err *batcher_alone(Batcher *b, Err *(*fn)(void *arg, Infer *i), void *arg);
void batcher_stats(Batcher *b, BatcherStats *out);

#endif
