/* zoo: models by name, one family a file, built with train/train.h. A new model is a `const Model
 * zoo_x` in a file zoo/F.c and a row here. */
#ifndef WEFT_ZOO_ZOO_H
#define WEFT_ZOO_ZOO_H

#include "train/train.h"

#define ZOO(X)                                                                                  \
  X(mnist)                                                                                      \
  X(mlp)                                                                                        \
  X(davidnet)                                                                                   \
  X(resnet18)                                                                                   \
  X(resnet34)                                                                                   \
  X(resnet50) X(resnet101) X(resnet152) X(vit_b16) X(mixer) X(unet) X(lstm) X(gru) X(gpt2)      \
      X(gpt2_small) X(gpt2_medium) X(gpt2_large) X(gpt2_xl) X(llama) X(llama32_1b) X(llama2_7b) \
          X(llama3_8b) X(moe) X(mixtral_8x7b) X(bert) X(bert_base) X(bert_large) X(dlrm)        \
              X(dlrm_mlperf)
#define X(name) extern const Model zoo_##name;
ZOO(X)
#undef X

/* errors: ERR_NOT_FOUND listing what there is */
Err *zoo_find(const char *name, const Model **out);
/* Elements of all parameters, with the model's own classes or vocabulary and no --size. */
int64_t zoo_weights(const Model *m);
extern const Model *const zoo_all[]; /* NULL at the end */

/* ---- a decoder of any shape (decoder.c) -------------------------------------------------------- */

typedef enum ZooAgain { /* of each layer, in the backward pass */
                        ZOO_AGAIN_NONE,
                        ZOO_AGAIN_SOME, /* norms, activations */
                        ZOO_AGAIN_MLP,  /* and the feed-forward network */
                        ZOO_AGAIN_ALL
} ZooAgain;

typedef struct ZooDecoder {
  Model model; /* what builds it: zoo_decoder fills it in; config.remat must be set */
  int64_t layers, width, heads, kv_heads, head_dim, inner, vocab;
  double theta; /* base of the rotary angles */
  bool plain;   /* GPT's blocks: layer norms, learned positions, biases, GELU */
  bool tied;
  ZooAgain again;
} ZooDecoder;
/* Fills in s->model; s must stay where it is while that is used. */
void zoo_decoder(ZooDecoder *s);

#endif
