/* U-Net (Ronneberger, Fischer, Brox 2015) with batch normalisation and padded convolutions, as it is used
 * today: four times down from 64 to 1024 features and up again, beside each the features on the way
 * down. 31 M weights; (B, H, W, C) -> (B, H, W, classes). --size: features at the top. */
#include "zoo/zoo_priv.h"

enum { LEVELS = 4 };

static void defaults(TrainConfig *c) {
  c->batch = 8;
  c->epochs = 5;
  c->opt = (OptConfig){.kind = OPT_ADAM,
                       .style = STYLE_TORCH,
                       .lr = 1e-3,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8};
}

static Value *twice(Net *n, const char *name, Value *x, int64_t features) {
  NetScope s = net_block(n, "%s", name);
  Init he = INIT(INIT_HE_NORMAL, 1);
  for (int i = 1; i <= 2; i++) {
    NetScope unit = net_enter(n, "unit%d", i);
    x = net_conv(n, "conv", x, 3, 1, PAD_SAME, 0, features, false, he);
    x = net_relu(n, net_batch_norm(n, "bn", x, 0.9, 1e-5));
    net_leave(n, unit);
  }
  net_leave(n, s);
  return x;
}

static Err *want_pixels(const Model *m, const Data *d) {
  const Field *x = &d->fields[0], *y = &d->fields[1];
  bool maps = d->n_fields == 2 && x->rank == 3 && y->rank == 2 && y->type == DT_I32 &&
              x->dims[0] == y->dims[0] && x->dims[1] == y->dims[1];
  if (!maps)
    return err_hint(
        err_new(ERR_INVALID, "model '%s' wants pictures and a class for each pixel, '%s' has none",
                m->name, d->name),
        "--data npz:FILE with x_train (n, H, W, C) bytes, y_train (n, H, W), x_test, y_test");
  if (x->dims[0] % (1 << LEVELS) || x->dims[1] % (1 << LEVELS))
    return err_new(ERR_INVALID, "model '%s' wants pictures of a multiple of %d pixels a side",
                   m->name, 1 << LEVELS);
  return NULL;
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(want_pixels(n->model, d));
  static const char *const down[] = {"down1", "down2", "down3", "down4"}, *const up[] = {
                                                                              "up1", "up2", "up3",
                                                                              "up4"};
  int64_t features = c->size ? c->size : 64;
  Value *x = zoo_images(n, d, in[0]), *beside[LEVELS];
  for (int i = 0; i < LEVELS; i++) {
    beside[i] = twice(n, down[i], x, features << i);
    x = net_max_pool(n, beside[i], 2, 2, 0);
  }
  x = twice(n, "bottom", x, features << LEVELS);
  for (int i = LEVELS - 1; i >= 0; i--) {
    NetScope s = net_enter(n, "%s", up[i]);
    Value *larger = net_conv_up(n, "larger", x, 2, features << i, INIT(INIT_LECUN_NORMAL, 1));
    net_leave(n, s);
    x = twice(n, up[i], b_concat(&n->b, 2, (Value *[]){beside[i], larger}, 3), features << i);
  }
  x = net_conv(n, "out", x, 1, 1, PAD_VALID, 0, d->classes, true, INIT(INIT_LECUN_NORMAL, 1));
  net_softmax_loss(n, x, in[1], NULL, c->label_smoothing, out);
  return NULL;
}

const Model zoo_unet = {
    .name = "unet",
    .summary = "U-Net, a class for each pixel (--size: features at the top)",
    .data = "synthetic",
    .defaults = defaults,
    .build = build,
    .shape = {64, 64, 3},
    .classes = 2,
    .task = TASK_PIXELS,
    .reads = READ_SIZE | READ_SMOOTHING | READ_REMAT,
};
