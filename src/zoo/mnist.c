/* The Keras-like MNIST network: conv 3x3x32, conv 3x3x64, max-pool, dropout, dense 128, dense
 * 10; Adam with Keras' epsilon; sparse cross-entropy from logits. 1.2 M weights; (B, 28, 28, 1)
 * -> (B, 10). */
#include "zoo/zoo_priv.h"

static void defaults(TrainConfig *c) {
  c->batch = 128;
  c->epochs = 3;
  c->dropout = 0.25;
  c->opt = (OptConfig){.kind = OPT_ADAM,
                       .style = STYLE_KERAS,
                       .lr = 1e-3,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-7};
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(zoo_want_images("mnist", d, 8));
  Init glorot = INIT(INIT_GLOROT_UNIFORM, 1);
  Value *x = zoo_images(n, d, in[0]);
  x = net_relu(n, net_conv(n, "conv1", x, 3, 1, PAD_VALID, 0, 32, true, glorot));
  x = net_relu(n, net_conv(n, "conv2", x, 3, 1, PAD_VALID, 0, 64, true, glorot));
  x = net_max_pool(n, x, 2, 2, 0);
  x = net_flatten(n, net_dropout(n, x, c->dropout));
  x = net_relu(n, net_dense(n, "dense1", x, 128, true, glorot));
  x = net_dense(n, "dense2", x, d->classes, true, glorot);
  net_softmax_loss(n, x, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

const Model zoo_mnist = {
    .name = "mnist",
    .summary = "conv 32, conv 64, max-pool, dropout, dense 128, dense 10 (Keras' example)",
    .data = "fashion-mnist",
    .defaults = defaults,
    .build = build,
    .shape = {28, 28, 1},
    .classes = 10,
    .reads = READ_DROPOUT | READ_SMOOTHING,
};
