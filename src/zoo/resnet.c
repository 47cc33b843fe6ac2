/* ResNet (He et al. 2015), stride on the 3x3 convolution (version 1.5), as torchvision has it. (B,
 * 224, 224, 3) -> (B, 1000). */
#include "zoo/zoo_priv.h"

static void defaults(TrainConfig *c) {
  c->batch = 32;
  c->epochs = 1;
  c->opt = (OptConfig){.kind = OPT_MOMENTUM,
                       .lr = 0.0125,
                       .momentum = 0.9,
                       .decay = 1e-4,
                       .schedule = LR_COSINE,
                       .warmup_steps = 100};
}

static Value *conv_bn(Net *n, const char *name, Value *x, int64_t size, int64_t stride,
                      int64_t filters) {
  NetScope s = net_enter(n, "%s", name);
  x = net_conv(n, "conv", x, size, stride, PAD_VALID, size / 2, filters, false,
               INIT(INIT_HE_NORMAL, 1));
  x = net_batch_norm(n, "bn", x, 0.9, 1e-5);
  net_leave(n, s);
  return x;
}

static Value *bottleneck(Net *n, Value *x, int64_t mid, int64_t stride) {
  Value *y = net_relu(n, conv_bn(n, "a", x, 1, 1, mid));
  y = net_relu(n, conv_bn(n, "b", y, 3, stride, mid));
  y = conv_bn(n, "c", y, 1, 1, 4 * mid);
  if (b_dim(x, 3) != 4 * mid) x = conv_bn(n, "shortcut", x, 1, stride, 4 * mid);
  return net_relu(n, b_add(&n->b, x, y));
}

static Value *basic(Net *n, Value *x, int64_t mid, int64_t stride) {
  Value *y = net_relu(n, conv_bn(n, "a", x, 3, stride, mid));
  y = conv_bn(n, "b", y, 3, 1, mid);
  if (b_dim(x, 3) != mid) x = conv_bn(n, "shortcut", x, 1, stride, mid);
  return net_relu(n, b_add(&n->b, x, y));
}

typedef struct Depth {
  bool bottleneck;
  int blocks[4];
} Depth;
static const Depth depths[] = {{false, {2, 2, 2, 2}},
                               {false, {3, 4, 6, 3}},
                               {true, {3, 4, 6, 3}},
                               {true, {3, 4, 23, 3}},
                               {true, {3, 8, 36, 3}}};

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_images(n->model->name, d, 32));
  const Depth *depth = &depths[n->model->size];
  Value *x = net_relu(n, conv_bn(n, "stem", zoo_images(n, d, in[0]), 7, 2, 64));
  x = net_max_pool(n, x, 3, 2, 1);
  for (int i = 0; i < COUNT_OF(depth->blocks); i++)
    for (int k = 0; k < depth->blocks[i]; k++) {
      NetScope s = net_block(n, "stage%d/block%d", i + 1, k + 1);
      x = (depth->bottleneck ? bottleneck : basic)(n, x, 64 << i, i && !k ? 2 : 1);
      net_leave(n, s);
    }
  x = net_dense(n, "classifier", net_global_mean(n, x), d->classes, true,
                INIT(INIT_LECUN_NORMAL, 1));
  net_softmax_loss(n, x, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

#define RESNET(id, title, depth, text)      \
  const Model zoo_##id = {                  \
      .name = title,                        \
      .summary = text,                      \
      .data = "synthetic",                  \
      .defaults = defaults,                 \
      .build = build,                       \
      .shape = {224, 224, 3},               \
      .classes = 1000,                      \
      .size = depth,                        \
      .reads = READ_SMOOTHING | READ_REMAT, \
  }
RESNET(resnet18, "resnet18", 0, "residual network, two convolutions a block");
RESNET(resnet34, "resnet34", 1, "the same, deeper");
RESNET(resnet50, "resnet50", 2, "ResNet-50 v1.5: bottlenecks of three convolutions");
RESNET(resnet101, "resnet101", 3, "the same, deeper");
RESNET(resnet152, "resnet152", 4, "the same, deeper");
