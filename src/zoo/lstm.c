/* A character model: embedding 512, two LSTM layers of 512, dense to the vocabulary. 4.5 M
 * weights; (B, T) -> (B, T, V). */
#include "zoo/zoo_priv.h"

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
  TRY(zoo_want_text("lstm", d, false));
  int64_t width = c->size ? c->size : 512;
  Value *x = net_embedding(n, "embedding", in[0], d->classes, width, 0.5, NULL);
  x = net_dropout(n, net_lstm(n, "lstm1", x, width), c->dropout);
  x = net_dropout(n, net_lstm(n, "lstm2", x, width), c->dropout);
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
