/* loaders: Python text, some 20 lines each, that reads what infer_export wrote; written beside it. */
#ifndef WEFT_INFER_LOADERS_H
#define WEFT_INFER_LOADERS_H

#include "train/train.h"

extern const char *const loader_state; /* of the state of a step of one's own */
extern const char *const loader_jax;   /* any model */
/* NULL: none for this model */
const char *loader_pytorch(const Model *m);
const char *loader_keras(const Model *m);

#endif
