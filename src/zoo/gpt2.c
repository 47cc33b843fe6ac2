/* GPT-2 (Radford et al. 2019): pre-norm decoder, tied embedding. (B, T) -> (B, T, V). Small, medium,
 * large and xl are the published ones; --size N: N layers, of another depth with N heads of 64. */
#include "zoo/zoo_priv.h"

#include <math.h>

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_text(n->model->name, d, false));
  Build *b = &n->b;
  ZooShape s;
  TRY(zoo_transformer(n->model, c, &s));
  int64_t context = MAX(1024, c->length);
  double std = 0.02, proj = 0.02 / sqrt(2.0 * (double)s.layers);
  Value *table, *x = net_embedding(n, "wte", in[0], d->classes, s.width, std, &table);
  x = net_dropout(n, net_positions(n, "wpe/table", x, context, std), c->dropout);
  for (int64_t i = 0; i < s.layers; i++) {
    NetScope scope = net_block(n, "h%lld", (long long)i);
    Value *a = net_attention(n, net_layer_norm(n, "ln1", x, 1e-5), s.heads, true, std, proj);
    x = b_add(b, x, net_dropout(n, a, c->dropout));
    Value *m = net_dense(n, "fc", net_layer_norm(n, "ln2", x, 1e-5), 4 * s.width, true,
                         INIT(INIT_NORMAL, std));
    m = net_dense(n, "fcproj", net_gelu(n, m, true), s.width, true, INIT(INIT_NORMAL, proj));
    x = b_add(b, x, net_dropout(n, m, c->dropout));
    net_leave(n, scope);
  }
  x = net_layer_norm(n, "lnf", x, 1e-5);
  net_softmax_loss(n, zoo_tied_logits(n, x, table), in[1], NULL, c->label_smoothing, out);
  return NULL;
}

static void transformer(const Model *m, const TrainConfig *c, NetShape *out) {
  zoo_shape_of_file(m, c, 1e-5, "gelu_new gelu_pytorch_tanh", out);
}

#define GPT2(id, title, depth, text)                                                              \
  const Model zoo_##id = {                                                                        \
      .name = title,                                                                              \
      .summary = text,                                                                            \
      .data = "text",                                                                             \
      .defaults = zoo_decoder_defaults,                                                           \
      .build = build,                                                                             \
      .classes = 50257,                                                                           \
      .size = depth,                                                                              \
      .transformer = transformer,                                                                 \
      .generates = true,                                                                          \
      .reads = READ_SIZE | READ_LENGTH | READ_DROPOUT | READ_SMOOTHING | READ_REMAT | READ_LORA | \
               READ_F8_ATTENTION,                                                                 \
  }
GPT2(gpt2, "gpt2", 12, "GPT-2 small: 12 layers, width 768");
GPT2(gpt2_small, "gpt2-small", 12, "the same");
GPT2(gpt2_medium, "gpt2-medium", 24, "24 layers, width 1024");
GPT2(gpt2_large, "gpt2-large", 36, "36 layers, width 1280");
GPT2(gpt2_xl, "gpt2-xl", 48, "48 layers, width 1600");
