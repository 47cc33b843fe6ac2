/* A decoder of any shape: what plans of transformers compile. (B, T) -> (B, T, V). LLaMA's blocks, or GPT's
 * where `plain`; of each layer is computed again in the backward pass what `again` says, and always the scores of
 * attention, which a fused kernel would not keep either. */
#include "zoo/zoo_priv.h"

#include <stdio.h>

static const ZooDecoder *shape(const Net *n) { return (const ZooDecoder *)n->model; }

static NetScope scope(Net *n, const char *name, bool again) {
  return again ? net_block(n, "%s", name) : net_enter(n, "%s", name);
}

static Value *norm(Net *n, const char *name, Value *x) {
  const ZooDecoder *s = shape(n);
  NetScope in = scope(n, name, s->again == ZOO_AGAIN_SOME || s->again == ZOO_AGAIN_MLP);
  x = s->plain ? net_layer_norm(n, "norm", x, 1e-5) : net_rms_norm(n, "norm", x, 1e-5);
  net_leave(n, in);
  return x;
}

static Value *dense(Net *n, const char *name, Value *x, int64_t units) {
  return net_dense(n, name, x, units, shape(n)->plain, INIT(INIT_NORMAL, 0.02));
}

static Value *attention(Net *n, Value *x) {
  const ZooDecoder *s = shape(n);
  Value *q = dense(n, "q", x, s->heads * s->head_dim);
  Value *k = dense(n, "k", x, s->kv_heads * s->head_dim);
  Value *v = dense(n, "v", x, s->kv_heads * s->head_dim);
  NetScope core = scope(n, "core", s->again != ZOO_AGAIN_ALL);
  q = net_heads(n, q, s->heads), k = net_heads(n, k, s->kv_heads);
  v = net_heads(n, v, s->kv_heads);
  Rotary turn = {.theta = s->theta};
  if (!s->plain) q = net_rotary(n, q, &turn), k = net_rotary(n, k, &turn);
  int64_t times = s->heads / s->kv_heads;
  Value *o =
      net_attend(n, q, zoo_repeat_heads(&n->b, k, times), zoo_repeat_heads(&n->b, v, times), true);
  net_leave(n, core);
  return dense(n, "o", o, s->width);
}

static Value *feed_forward(Net *n, Value *x) {
  const ZooDecoder *s = shape(n);
  Value *gate = s->plain ? NULL : dense(n, "gate", x, s->inner), *up = dense(n, "up", x, s->inner);
  NetScope act = scope(n, "act", s->again == ZOO_AGAIN_SOME);
  Value *y = s->plain ? net_gelu(n, up, true)
                      : b_mul(&n->b, b_mul(&n->b, gate, b_logistic(&n->b, gate)), up);
  net_leave(n, act);
  return dense(n, "down", y, s->width);
}

static Value *layer(Net *n, int64_t i, Value *x) {
  const ZooDecoder *s = shape(n);
  char name[32];
  snprintf(name, sizeof name, "h%lld", (long long)i);
  NetScope whole = scope(n, name, s->again == ZOO_AGAIN_ALL);
  x = b_add(&n->b, x, attention(n, norm(n, "norm1", x)));
  NetScope mlp = scope(n, "mlp", s->again == ZOO_AGAIN_MLP);
  Value *y = feed_forward(n, norm(n, "norm2", x));
  net_leave(n, mlp);
  x = b_add(&n->b, x, y);
  net_leave(n, whole);
  return x;
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  const ZooDecoder *s = shape(n);
  TRY(zoo_want_text(n->model->name, d, false));
  Value *table, *x = net_embedding(n, "wte", in[0], s->vocab, s->width, 0.02, &table);
  if (s->plain) x = net_positions(n, "wpe/table", x, c->length, 0.02);
  for (int64_t i = 0; i < s->layers; i++) x = layer(n, i, x);
  x = norm(n, "norm", x);
  Value *logits = s->tied ? zoo_tied_logits(n, x, table)
                          : net_dense(n, "out", x, s->vocab, false, INIT(INIT_NORMAL, 0.02));
  net_softmax_loss(n, logits, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

void zoo_decoder(ZooDecoder *s) {
  s->model = (Model){.name = "decoder",
                     .summary = "a decoder of a plan's shape",
                     .data = "text",
                     .build = build,
                     .classes = s->vocab,
                     .reads = READ_LENGTH | READ_REMAT};
}
