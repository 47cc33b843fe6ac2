/* BERT (Devlin et al. 2018): post-norm encoder, masked tokens predicted through the tied
 * embedding. --size N: N layers of N heads of 64; 12 is BERT-base. (B, T) -> (B, T, V). */
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

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_text("bert", d, true));
  Build *b = &n->b;
  int64_t layers = c->size ? c->size : 12, width = 64 * layers, context = MAX(512, b_dim(in[0], 1));
  double std = 0.02;
  Init normal = INIT(INIT_NORMAL, std);
  Value *table, *x = net_embedding(n, "wte", in[0], d->classes, width, std, &table);
  x = net_positions(n, "wpe/table", x, context, std);
  Value *type = net_param(n, "wty/table", 2, (int64_t[]){2, width}, normal, 0);
  type = b_reshape(b, b_slice_dim(b, type, 0, 0, 1), 1,
                   &width); /* one sentence: all tokens are of the first */
  x = b_add(b, x, b_bcast_last(b, b_convert(b, type, n->compute), x->type));
  x = net_dropout(n, net_layer_norm(n, "eln", x, 1e-5), c->dropout);
  for (int64_t i = 0; i < layers; i++) {
    NetScope s = net_block(n, "h%lld", (long long)i);
    Value *a = net_attention(n, x, layers, false, std, std);
    x = net_layer_norm(n, "ln1", b_add(b, x, net_dropout(n, a, c->dropout)), 1e-5);
    Value *m = net_gelu(n, net_dense(n, "fc", x, 4 * width, true, normal), false);
    m = net_dense(n, "fcproj", m, width, true, normal);
    x = net_layer_norm(n, "ln2", b_add(b, x, net_dropout(n, m, c->dropout)), 1e-5);
    net_leave(n, s);
  }
  x = net_layer_norm(n, "mlm/ln", net_gelu(n, net_dense(n, "mlm", x, width, true, normal), false),
                     1e-5);
  Value *logits = zoo_tied_logits(n, x, table);
  Value *bias =
      net_param(n, "mlm/out/bias", 1, (int64_t[]){d->classes}, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  logits = b_add(b, logits, b_bcast_last(b, b_convert(b, bias, b_dtype(logits)), logits->type));
  net_softmax_loss(n, logits, in[1], in[2], c->label_smoothing, out);
  return NULL;
}

const Model zoo_bert = {
    .name = "bert",
    .summary = "BERT, masked tokens; --size 12 (default) is BERT-base",
    .data = "text",
    .defaults = defaults,
    .build = build,
    .classes = 30522,
    .reads = READ_SIZE | READ_LENGTH | READ_DROPOUT | READ_SMOOTHING | READ_REMAT,
};
