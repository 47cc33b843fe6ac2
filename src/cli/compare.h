/* cli/compare: one training step on this CPU, as measured, beside what virtual chips would need
 * for it. */
#ifndef WEFT_CLI_COMPARE_H
#define WEFT_CLI_COMPARE_H

#include "train/train.h"

/* Adds the table as text to out and as a JSON array to json. `config` has the global batch; chips
 * with n devices get n-way data parallel programs of batch / n. */
Err *compare_print(const Model *model, const TrainConfig *config, const Data *data,
                   const char *device, int replicas, const TrainResult *r, Buf *out, Buf *json);

#endif
