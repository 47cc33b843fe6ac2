/* Private to zoo: what several models share. */
#ifndef WEFT_ZOO_ZOO_PRIV_H
#define WEFT_ZOO_ZOO_PRIV_H

#include "zoo/zoo.h"

/* errors: ERR_INVALID when the data are not images of at least `least` pixels a side */
Err *zoo_want_images(const char *model, const Data *d, int64_t least);
Err *zoo_want_text(const char *model, const Data *d, bool weights);
/* u8 (B, H, W, C) to n->compute, mean and deviation of the data set taken out. f32 images pass
 * as they are. */
Value *zoo_images(Net *n, const Data *d, Value *images);
/* (B, T, C) times the transposed table (V, C): (B, T, V) */
Value *zoo_tied_logits(Net *n, Value *x, Value *table);

/* Keys or values of fewer heads, (B, H, T, D), each for several of the queries'. */
Value *zoo_repeat_heads(Build *b, Value *x, int64_t times);

/* x (B, T, C) through two of so many gated feed-forward networks, `inner` wide, for each token. *uneven adds how
 * unevenly they are used, for the loss. */
Value *zoo_experts(Net *n, Value *x, int64_t experts, int64_t inner, double proj, Value **uneven);

/* How decoders of text are trained (GPT-2, Llama). */
void zoo_decoder_defaults(TrainConfig *c);

/* Depth and width of a transformer: --size N, or the model's own. Of the depths that were published
 * the published width, else 64 a layer; heads of 64. */
typedef struct ZooShape {
  int64_t layers, width, heads;
} ZooShape;
/* By --size, or the model's own. errors ERR_INVALID more layers than one writes down. */
Err *zoo_transformer(const Model *m, const TrainConfig *c, ZooShape *out);
/* What a file of weights must agree with, where each head has its own keys and the embedding is the head. act: the activation's names
 * in transformers' config.json. */
void zoo_shape_of_file(const Model *m, const TrainConfig *c, double eps, const char *act,
                       NetShape *out);

#endif
