/* A multi-layer perceptron: 4096, 4096, classes; (B, H, W, C) flattened, or (B, F) numbers. 20 M
 * weights on 28 x 28 images. */
#include "zoo/zoo_priv.h"

static void defaults(TrainConfig *c) {
  c->batch = 256;
  c->epochs = 3;
  c->opt = (OptConfig){.kind = OPT_ADAM,
                       .style = STYLE_KERAS,
                       .lr = 1e-4,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-7};
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  const Field *f = d->fields;
  bool numbers = d->n_fields == 2 && f[0].type == DT_F32 && f[0].rank == 1 && f[1].type == DT_I32 &&
                 !f[1].rank;
  if (!numbers) TRY(zoo_want_images("mlp", d, 1));
  Init lecun = INIT(INIT_LECUN_NORMAL, 1);
  int64_t width = c->size ? c->size : 4096;
  Value *x = numbers ? in[0] : net_flatten(n, zoo_images(n, d, in[0]));
  x = net_relu(n, net_dense(n, "dense1", x, width, true, lecun));
  x = net_relu(n, net_dense(n, "dense2", x, width, true, lecun));
  net_softmax_loss(n, net_dense(n, "dense3", x, d->classes, true, lecun), in[1], NULL,
                   c->label_smoothing, out);
  return NULL;
}

const Model zoo_mlp = {
    .name = "mlp",
    .summary = "dense 4096, 4096, classes, of pictures or numbers (--size: width)",
    .data = "fashion-mnist",
    .defaults = defaults,
    .build = build,
    .shape = {28, 28, 1},
    .classes = 10,
    .reads = READ_SIZE | READ_SMOOTHING,
};
