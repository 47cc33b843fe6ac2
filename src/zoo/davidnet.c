/* DavidNet: Page's residual network for CIFAR-10 (DAWNBench 2018). 6.6 M weights; (B, 32, 32, 3)
 * -> (B, 10).
 *
 * The published recipe sums the loss over the batch, with learning rate 0.4 / batch and decay
 * 0.0005 x batch; with the mean loss used here that is learning rate 0.4 and decay 0.0005,
 * whatever the batch. Nesterov momentum 0.9, up for 5 epochs of 24, then straight down to 0.
 * Its weights begin as PyTorch's do. That is part of the recipe: after a batch norm the size of the
 * weights divides the rate, and they hardly change it in 24 epochs.
 */
#include "zoo/zoo_priv.h"

static void defaults(TrainConfig *c) {
  c->batch = 512;
  c->epochs = 24;
  c->opt = (OptConfig){.kind = OPT_NESTEROV,
                       .lr = 0.4,
                       .momentum = 0.9,
                       .decay = 5e-4,
                       .schedule = LR_LINEAR,
                       .warmup_steps = 490};
}

static Value *unit(Net *n, const char *name, Value *x, int64_t filters) {
  NetScope s = net_enter(n, "%s", name);
  x = net_conv(n, "conv", x, 3, 1, PAD_SAME, 0, filters, false, INIT(INIT_TORCH_UNIFORM, 1));
  x = net_relu(n, net_batch_norm(n, "bn", x, 0.9, 1e-5));
  net_leave(n, s);
  return x;
}

static Value *residual(Net *n, const char *name, Value *x) {
  NetScope s = net_block(n, "%s", name);
  int64_t c = b_dim(x, 3);
  Value *y = b_add(&n->b, x, unit(n, "res2", unit(n, "res1", x, c), c));
  net_leave(n, s);
  return y;
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_images("davidnet", d, 8));
  Value *x = unit(n, "prep", zoo_images(n, d, in[0]), 64);
  x = residual(n, "layer1", net_max_pool(n, unit(n, "layer1", x, 128), 2, 2, 0));
  x = net_max_pool(n, unit(n, "layer2", x, 256), 2, 2, 0);
  x = residual(n, "layer3", net_max_pool(n, unit(n, "layer3", x, 512), 2, 2, 0));
  x = net_dense(n, "classifier", net_global_max(n, x), d->classes, false,
                INIT(INIT_TORCH_UNIFORM, 1));
  net_softmax_loss(n, b_muls(&n->b, x, 0.125), in[1], NULL, c->label_smoothing, out);
  return NULL;
}

const Model zoo_davidnet = {
    .name = "davidnet",
    .summary = "residual network for CIFAR-10 in 24 epochs (Page)",
    .data = "cifar10",
    .defaults = defaults,
    .build = build,
    .shape = {32, 32, 3},
    .classes = 10,
    .reads = READ_SMOOTHING | READ_REMAT,
};
