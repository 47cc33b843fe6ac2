/* Private to train. */
#ifndef WEFT_TRAIN_TRAIN_PRIV_H
#define WEFT_TRAIN_TRAIN_PRIV_H

#include "train/train.h"

/* Counter-based random words for host-side use: the same threefry2x32 as in the programs. */
void threefry2x32(const uint32_t key[2], const uint32_t in[2], uint32_t out[2]);
static inline uint64_t random_word(uint64_t seed, uint64_t stream, uint64_t i) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, r[2];
  uint32_t mixed[2] = {(uint32_t)i, (uint32_t)(i >> 32) ^ (uint32_t)(stream * 0x9E3779B9u)};
  threefry2x32(key, mixed, r);
  return (uint64_t)r[1] << 32 | r[0];
}

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

#endif
