/* BERT (Devlin et al. 2018): post-norm encoder, masked tokens predicted through the tied embedding.
 * (B, T) -> (B, T, V). Base and large are the published ones; --size N: N layers, of another depth
 * with N heads of 64. */
#include "zoo/zoo_priv.h"

static void defaults(TrainConfig *c) {
  c->batch = 8;
  c->length = 128;
  c->epochs = 1;
  c->masked = true;
  c->opt = (OptConfig){.kind = OPT_ADAMW,
                       .style = STYLE_TORCH,
                       .lr = 1e-4,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .decay = 0.01,
                       .clip = 1,
                       .schedule = LR_LINEAR,
                       .warmup_steps = 100};
}

static const double eps = 1e-12; /* of its normalisations */

static Value *embed(Net *n, const TrainConfig *c, Value *ids, int64_t words, int64_t width,
                    Value **table) {
  Build *b = &n->b;
  int64_t context = MAX(512, b_dim(ids, 1));
  Value *x = net_embedding(n, "wte", ids, words, width, 0.02, table);
  x = net_positions(n, "wpe/table", x, context, 0.02);
  Value *type = net_param(n, "wty/table", 2, (int64_t[]){2, width}, INIT(INIT_NORMAL, 0.02), 0);
  type = b_reshape(b, b_slice_dim(b, type, 0, 0, 1), 1,
                   &width); /* one sentence: all tokens are of the first */
  x = b_add(b, x, b_bcast_last(b, b_convert(b, type, n->compute), x->type));
  return net_dropout(n, net_layer_norm(n, "eln", x, eps), c->dropout);
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_text(n->model->name, d, true));
  Build *b = &n->b;
  ZooShape s;
  TRY(zoo_transformer(n->model, c, &s));
  double std = 0.02;
  Init normal = INIT(INIT_NORMAL, std);
  if (n->forward && d->marks.there) { /* training has full examples */
    Type *t = in[0]->type;
    n->live =
        b_compare(b, "NE", in[0], b_bcast_scalar(b, b_scalar_i64(b, DT_I32, d->marks.pad), t));
  }
  Value *table, *x = embed(n, c, in[0], d->classes, s.width, &table);
  for (int64_t i = 0; i < s.layers; i++) {
    NetScope scope = net_block(n, "h%lld", (long long)i);
    Value *a = net_attention(n, x, s.heads, false, std, std);
    x = net_layer_norm(n, "ln1", b_add(b, x, net_dropout(n, a, c->dropout)), eps);
    Value *m = net_gelu(n, net_dense(n, "fc", x, 4 * s.width, true, normal), false);
    m = net_dense(n, "fcproj", m, s.width, true, normal);
    x = net_layer_norm(n, "ln2", b_add(b, x, net_dropout(n, m, c->dropout)), eps);
    net_leave(n, scope);
  }
  x = net_gelu(n, net_dense(n, "mlm", x, s.width, true, normal), false);
  Value *logits = zoo_tied_logits(n, net_layer_norm(n, "mlm/ln", x, eps), table);
  Value *bias =
      net_param(n, "mlm/out/bias", 1, (int64_t[]){d->classes}, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  logits = b_add(b, logits, b_bcast_last(b, b_convert(b, bias, b_dtype(logits)), logits->type));
  net_softmax_loss(n, logits, in[1], in[2], c->label_smoothing, out);
  return NULL;
}

static void transformer(const Model *m, const TrainConfig *c, NetShape *out) {
  zoo_shape_of_file(m, c, eps, "gelu", out);
}

#define BERT(id, title, depth, text)                                                              \
  const Model zoo_##id = {                                                                        \
      .name = title,                                                                              \
      .summary = text,                                                                            \
      .data = "text",                                                                             \
      .defaults = defaults,                                                                       \
      .build = build,                                                                             \
      .classes = 30522,                                                                           \
      .transformer = transformer,                                                                 \
      .size = depth,                                                                              \
      .reads = READ_SIZE | READ_LENGTH | READ_DROPOUT | READ_SMOOTHING | READ_REMAT | READ_LORA | \
               READ_F8_ATTENTION,                                                                 \
  }
BERT(bert, "bert", 12, "BERT base, masked tokens: 12 layers, width 768");
BERT(bert_base, "bert-base", 12, "the same");
BERT(bert_large, "bert-large", 24, "24 layers, width 1024");
