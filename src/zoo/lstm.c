/* A character model: embedding 512, two LSTM (or GRU) layers of 512, dense to the vocabulary. 4.5 M
 * weights; (B, T) -> (B, T, V). */
#include "zoo/zoo_priv.h"

#include <stdio.h>

static void defaults(TrainConfig *c) {
  c->batch = 32;
  c->length = 64;
  c->epochs = 1;
  c->opt = (OptConfig){.kind = OPT_ADAM,
                       .style = STYLE_KERAS,
                       .lr = 1e-3,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-7,
                       .clip = 1};
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_text(n->model->name, d, false));
  int64_t width = c->size ? c->size : 512;
  Value *x = net_embedding(n, "embedding", in[0], d->classes, width, 0.5, NULL);
  bool gru = n->model == &zoo_gru;
  for (int i = 1; i <= 2; i++) {
    char name[16];
    snprintf(name, sizeof name, "%s%d", gru ? "gru" : "lstm", i);
    x = net_dropout(n, (gru ? net_gru : net_lstm)(n, name, x, width), c->dropout);
  }
  x = net_dense(n, "out", x, d->classes, true, INIT(INIT_LECUN_NORMAL, 1));
  net_softmax_loss(n, x, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

const Model zoo_lstm = {
    .name = "lstm",
    .summary = "embedding, two LSTM layers of 512, dense (--size: width)",
    .data = "text",
    .defaults = defaults,
    .build = build,
    .classes = 256,
    .generates = true,
    .reads = READ_SIZE | READ_LENGTH | READ_DROPOUT | READ_SMOOTHING,
};

const Model zoo_gru = {
    .name = "gru",
    .summary = "the same with two GRU layers",
    .data = "text",
    .defaults = defaults,
    .build = build,
    .classes = 256,
    .generates = true,
    .reads = READ_SIZE | READ_LENGTH | READ_DROPOUT | READ_SMOOTHING,
};
