/* Networks of patches: the vision transformer (Dosovitskiy et al. 2020) and MLP-Mixer (Tolstikhin
 * et al. 2021). (B, H, W, 3) -> (B, classes); patches of 16, of 4 where pictures are smaller than
 * 64. */
#include "zoo/zoo_priv.h"

static void defaults(TrainConfig *c) {
  c->batch = 32;
  c->epochs = 1;
  c->opt = (OptConfig){.kind = OPT_ADAMW,
                       .style = STYLE_TORCH,
                       .lr = 1e-3,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .decay = 0.1,
                       .clip = 1,
                       .schedule = LR_COSINE,
                       .warmup_steps = 100};
}

/* (B, H, W, C) -> (B, patches, width) */
static Value *patches(Net *n, const Data *d, Value *images, int64_t width) {
  int64_t size = b_dim(images, 1) < 64 ? 4 : 16;
  Value *x = net_conv(n, "patch", zoo_images(n, d, images), size, size, PAD_VALID, 0, width, true,
                      INIT(INIT_LECUN_NORMAL, 1));
  return b_reshape(&n->b, x, 3, (int64_t[]){b_dim(x, 0), b_dim(x, 1) * b_dim(x, 2), width});
}

static Value *two_layers(Net *n, Value *x, int64_t inner, int64_t outer, double dropout) {
  Init init = INIT(INIT_GLOROT_UNIFORM, 1);
  x = net_gelu(n, net_dense(n, "fc", x, inner, true, init), false);
  return net_dense(n, "fcproj", net_dropout(n, x, dropout), outer, true, init);
}

/* A learned vector before the patches: its place in the last layer is what is classified. */
static Value *with_class(Net *n, Value *x) {
  Build *b = &n->b;
  int64_t batch = b_dim(x, 0), width = b_dim(x, 2);
  Value *first = net_param(n, "cls", 1, &width, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  Type *t = b_type(b, b_dtype(x), 3, (int64_t[]){batch, 1, width});
  first = b_bcast_last(b, b_convert(b, first, b_dtype(x)), t);
  return b_concat(b, 2, (Value *[]){first, x}, 1);
}

static Err *build_vit(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_images(n->model->name, d, 8));
  Build *b = &n->b;
  ZooShape s;
  TRY(zoo_transformer(n->model, c, &s));
  Value *x = with_class(n, patches(n, d, in[0], s.width));
  int64_t batch = b_dim(x, 0), first[] = {batch, s.width};
  x = net_dropout(n, net_positions(n, "wpe/table", x, b_dim(x, 1), 0.02), c->dropout);
  for (int64_t i = 0; i < s.layers; i++) {
    NetScope scope = net_block(n, "h%lld", (long long)i);
    Value *a = net_attention(n, net_layer_norm(n, "ln1", x, 1e-6), s.heads, false, 0.02, 0.02);
    x = b_add(b, x, net_dropout(n, a, c->dropout));
    Value *m = two_layers(n, net_layer_norm(n, "ln2", x, 1e-6), 4 * s.width, s.width, c->dropout);
    x = b_add(b, x, net_dropout(n, m, c->dropout));
    net_leave(n, scope);
  }
  x = b_reshape(b, b_slice_dim(b, net_layer_norm(n, "lnf", x, 1e-6), 1, 0, 1), 2, first);
  x = net_dense(n, "head", x, d->classes, true, INIT(INIT_LECUN_NORMAL, 1));
  net_softmax_loss(n, x, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

static Err *build_mixer(Net *n, const TrainConfig *c, const Data *d, Value *const *in,
                        NetOut *out) {
  TRY(zoo_want_images(n->model->name, d, 8));
  Build *b = &n->b;
  ZooShape s;
  TRY(zoo_transformer(n->model, c, &s));
  Value *x = patches(n, d, in[0], s.width);
  for (int64_t i = 0; i < s.layers; i++) {
    NetScope scope = net_block(n, "h%lld", (long long)i), mix = net_enter(n, "tokens");
    Value *t = b_transpose(b, net_layer_norm(n, "ln", x, 1e-6), (int[]){0, 2, 1});
    t = two_layers(n, t, s.width / 2, b_dim(x, 1), c->dropout);
    x = b_add(b, x, b_transpose(b, t, (int[]){0, 2, 1}));
    net_leave(n, mix);
    mix = net_enter(n, "channels");
    x = b_add(b, x,
              two_layers(n, net_layer_norm(n, "ln", x, 1e-6), 4 * s.width, s.width, c->dropout));
    net_leave(n, mix);
    net_leave(n, scope);
  }
  x = b_mean(b, net_layer_norm(n, "lnf", x, 1e-6), 1, (int64_t[]){1});
  x = net_dense(n, "head", x, d->classes, true, INIT(INIT_LECUN_NORMAL, 1));
  net_softmax_loss(n, x, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

#define PATCHES(id, title, how, text)                                                             \
  const Model zoo_##id = {                                                                        \
      .name = title,                                                                              \
      .summary = text,                                                                            \
      .data = "cifar10",                                                                          \
      .defaults = defaults,                                                                       \
      .build = how,                                                                               \
      .shape = {224, 224, 3},                                                                     \
      .classes = 1000,                                                                            \
      .size = 12,                                                                                 \
      .reads =                                                                                    \
          READ_SIZE | READ_DROPOUT | READ_SMOOTHING | READ_REMAT | READ_LORA | READ_F8_ATTENTION, \
  }
PATCHES(vit_b16, "vit-b16", build_vit, "vision transformer: 12 layers, width 768");
PATCHES(mixer, "mixer", build_mixer, "MLP-Mixer B/16: 12 layers, width 768");
