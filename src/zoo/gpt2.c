/* GPT-2 (Radford et al. 2019): pre-norm decoder, tied embedding. --size N: N layers of N heads
 * of 64; 12 is the 124 M model. (B, T) -> (B, T, V). */
#include "zoo/zoo_priv.h"

#include <math.h>

static void defaults(TrainConfig *c) {
  c->batch = 8;
  c->length = 64;
  c->epochs = 1;
  c->opt = (OptConfig){.kind = OPT_ADAMW,
                       .style = STYLE_TORCH,
                       .lr = 6e-4,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .eps = 1e-8,
                       .decay = 0.1,
                       .clip = 1,
                       .schedule = LR_COSINE,
                       .warmup_steps = 100,
                       .end = 0.1};
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_text("gpt2", d, false));
  Build *b = &n->b;
  int64_t layers = c->size ? c->size : 12, width = 64 * layers, context = MAX(1024, c->length);
  double std = 0.02, proj = 0.02 / sqrt(2.0 * (double)layers);
  Value *table, *x = net_embedding(n, "wte", in[0], d->classes, width, std, &table);
  x = net_dropout(n, net_positions(n, "wpe/table", x, context, std), c->dropout);
  for (int64_t i = 0; i < layers; i++) {
    NetScope s = net_block(n, "h%lld", (long long)i);
    Value *a = net_attention(n, net_layer_norm(n, "ln1", x, 1e-5), layers, true, std, proj);
    x = b_add(b, x, net_dropout(n, a, c->dropout));
    Value *m = net_dense(n, "fc", net_layer_norm(n, "ln2", x, 1e-5), 4 * width, true,
                         INIT(INIT_NORMAL, std));
    m = net_dense(n, "fcproj", net_gelu(n, m, true), width, true, INIT(INIT_NORMAL, proj));
    x = b_add(b, x, net_dropout(n, m, c->dropout));
    net_leave(n, s);
  }
  x = net_layer_norm(n, "lnf", x, 1e-5);
  net_softmax_loss(n, zoo_tied_logits(n, x, table), in[1], NULL, c->label_smoothing, out);
  return NULL;
}

const Model zoo_gpt2 = {
    .name = "gpt2",
    .summary = "GPT-2; --size 12 (default) is the 124 M model",
    .data = "text",
    .defaults = defaults,
    .build = build,
    .classes = 50257,
    .generates = true,
    .reads = READ_SIZE | READ_LENGTH | READ_DROPOUT | READ_SMOOTHING | READ_REMAT,
};
