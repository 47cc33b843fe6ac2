/* LLaMA (Touvron et al. 2023; Dubey et al. 2024): pre-norm decoder with RMS normalisation, rotary
 * positions, gated feed-forward, fewer heads of keys than of queries. (B, T) -> (B, T, V). moe and Mixtral
 * have experts in place of the feed-forward network. */
#include "zoo/zoo_priv.h"

#include <math.h>

typedef struct Llama {
  int64_t layers, width, heads, kv_heads, inner;
  Rotary rotary;
  bool tied;
  int64_t experts; /* 0: none */
} Llama;

static const Llama shapes[] = {
    {6, 288, 6, 6, 768, {.theta = 1e4}, true, 0},
    {32, 4096, 32, 32, 11008, {.theta = 1e4}, false, 0},
    {32, 4096, 32, 8, 14336, {.theta = 5e5}, false, 0},
    {16, 2048, 32, 8, 8192, {5e5, 32, 1, 4, 8192}, true, 0},
    {6, 288, 6, 6, 768, {.theta = 1e4}, true, 8},
    {32, 4096, 32, 8, 14336, {.theta = 1e6}, false, 8},
};
enum { TINY, LLAMA2_7B, LLAMA3_8B, LLAMA32_1B, MOE, MIXTRAL_8X7B };
#define UNEVEN 0.01 /* of how unevenly experts are used, in the loss */

/* --size N: N layers of N heads of 64. */
static Llama shape_of(const Model *m, const TrainConfig *c) {
  if (!c->size) return shapes[m->size];
  int64_t width = 64 * c->size, inner = (8 * width / 3 + 63) / 64 * 64;
  return (Llama){c->size, width,          c->size, c->size,
                 inner,   {.theta = 1e4}, true,    shapes[m->size].experts};
}

static Value *attention(Net *n, const Llama *s, Value *x, double proj) {
  Build *b = &n->b;
  Init normal = INIT(INIT_NORMAL, 0.02);
  int64_t d = s->width / s->heads;
  Value *q = net_heads(n, net_dense(n, "q", x, s->heads * d, false, normal), s->heads);
  Value *k = net_heads(n, net_dense(n, "k", x, s->kv_heads * d, false, normal), s->kv_heads);
  Value *v = net_heads(n, net_dense(n, "v", x, s->kv_heads * d, false, normal), s->kv_heads);
  q = net_rotary(n, q, &s->rotary);
  k = net_rotary(n, k, &s->rotary);
  int64_t times = s->heads / s->kv_heads;
  Value *o = net_attend(n, q, zoo_repeat_heads(b, k, times), zoo_repeat_heads(b, v, times), true);
  return net_dense(n, "o", o, s->width, false, INIT(INIT_NORMAL, proj));
}

static Value *feed_forward(Net *n, const Llama *s, Value *x, double proj) {
  Build *b = &n->b;
  Init normal = INIT(INIT_NORMAL, 0.02);
  Value *gate = net_dense(n, "gate", x, s->inner, false, normal);
  Value *up = net_dense(n, "up", x, s->inner, false, normal);
  gate = b_mul(b, gate, b_logistic(b, gate));
  return net_dense(n, "down", b_mul(b, gate, up), s->width, false, INIT(INIT_NORMAL, proj));
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_text(n->model->name, d, false));
  Build *b = &n->b;
  Llama s = shape_of(n->model, c);
  double proj = 0.02 / sqrt(2.0 * (double)s.layers);
  Value *table, *uneven = NULL;
  Value *x = net_embedding(n, "wte", in[0], d->classes, s.width, 0.02, &table);
  for (int64_t i = 0; i < s.layers; i++) {
    NetScope scope = net_block(n, "h%lld", (long long)i);
    x = b_add(b, x, attention(n, &s, net_rms_norm(n, "norm1", x, 1e-5), proj));
    Value *y = net_rms_norm(n, "norm2", x, 1e-5);
    y = s.experts ? zoo_experts(n, y, s.experts, s.inner, proj, &uneven)
                  : feed_forward(n, &s, y, proj);
    x = b_add(b, x, y);
    net_leave(n, scope);
  }
  x = net_rms_norm(n, "norm", x, 1e-5);
  Value *logits = s.tied ? zoo_tied_logits(n, x, table)
                         : net_dense(n, "out", x, d->classes, false, INIT(INIT_NORMAL, 0.02));
  net_softmax_loss(n, logits, in[1], NULL, c->label_smoothing, out);
  if (uneven) out->loss = b_add(b, out->loss, b_muls(b, uneven, UNEVEN / (double)s.layers));
  return NULL;
}

static void transformer(const Model *m, const TrainConfig *c, NetShape *out) {
  Llama s = shape_of(m, c);
  *out = (NetShape){.layers = s.layers,
                    .width = s.width,
                    .heads = s.heads,
                    .kv_heads = s.kv_heads,
                    .eps = 1e-5,
                    .rotary = s.rotary,
                    .act = "silu swish",
                    .tied = s.tied};
}

#define LLAMA(id, title, which, words, text)                                                     \
  const Model zoo_##id = {                                                                       \
      .name = title,                                                                             \
      .summary = text,                                                                           \
      .data = "text",                                                                            \
      .defaults = zoo_decoder_defaults,                                                          \
      .build = build,                                                                            \
      .classes = words,                                                                          \
      .size = which,                                                                             \
      .transformer = transformer,                                                                \
      .generates = true,                                                                         \
      .reads =                                                                                   \
          READ_SIZE | READ_LENGTH | READ_SMOOTHING | READ_REMAT | READ_LORA | READ_F8_ATTENTION, \
  }
LLAMA(llama, "llama", TINY, 32000, "LLaMA with 6 layers, width 288");
LLAMA(moe, "moe", MOE, 32000, "LLaMA of 6 layers with 8 experts, two for each token");
LLAMA(llama2_7b, "llama-2-7b", LLAMA2_7B, 32000, "LLaMA 2: 32 layers, width 4096");
LLAMA(llama3_8b, "llama-3-8b", LLAMA3_8B, 128256, "LLaMA 3: 32 layers, 8 heads of keys");
LLAMA(llama32_1b, "llama-3.2-1b", LLAMA32_1B, 128256, "LLaMA 3.2: 16 layers, width 2048");
LLAMA(mixtral_8x7b, "mixtral-8x7b", MIXTRAL_8X7B, 32000, "Mixtral: 32 layers, 8 experts");
