/* What several models share: checking the data, preparing images on the device. */
#include "zoo/zoo_priv.h"

/* "tokens, i32 (64)" */
static void put_field(const Field *f, Buf *out) {
  buf_printf(out, "%s, %s (", f->name, dtype_name(f->type));
  for (int i = 0; i < f->rank; i++) buf_printf(out, "%s%lld", i ? ", " : "", (long long)f->dims[i]);
  buf_byte(out, ')');
}

Err *zoo_want_images(const char *model, const Data *d, int64_t least) {
  const Field *f = &d->fields[0];
  if (f->rank == 3 && f->type == DT_U8 && f->dims[2] > DATA_CHANNELS)
    return err_hint(err_new(ERR_INVALID,
                            "'%s' has pictures of %lld channels of bytes, at most %d are read",
                            d->name, (long long)f->dims[2], DATA_CHANNELS),
                    "numbers (float32) may have any number of channels");
  if (d->n_fields == 2 && f->rank == 3 && f->dims[0] >= least && f->dims[1] >= least &&
      d->fields[1].rank == 0)
    return NULL;
  const Field *labels = &d->fields[d->n_fields - 1];
  if (d->n_fields == 2 && !labels->rank && dtype_is_float(labels->type))
    return err_hint(
        err_new(ERR_INVALID,
                "labels of '%s' are no classes: model '%s' wants whole numbers from 0 on, or names",
                d->name, model),
        "numbers of any kind are for a train step of your own, which has its own loss");
  Buf has = {0};
  put_field(f, &has);
  Err *e = err_new(ERR_INVALID, "model '%s' wants images of at least %d x %d, '%s' has %s", model,
                   (int)least, (int)least, d->name, has.p);
  buf_free(&has);
  if (f->rank < 2) return err_hint(e, "try --data fashion-mnist, mnist or cifar10");
  return err_hint(e, "images are (height, width, channels) and have a class each");
}

Err *zoo_want_text(const char *model, const Data *d, bool weights) {
  if (d->n_fields == (weights ? 3 : 2) && d->fields[0].rank == 1 && d->fields[0].type == DT_I32)
    return NULL;
  Buf has = {0};
  put_field(&d->fields[0], &has);
  Err *e = err_new(ERR_INVALID, "model '%s' wants text, '%s' has %s", model, d->name, has.p);
  buf_free(&has);
  return err_hint(e, "try --data text:FILE");
}

Value *zoo_images(Net *n, const Data *d, Value *images) {
  Build *b = &n->b;
  if (dtype_is_float(b_dtype(images))) return b_convert(b, images, n->compute);
  NetScope s = net_enter(n, "input");
  int64_t c = b_dim(images, 3);
  float scale[DATA_CHANNELS], shift[DATA_CHANNELS];
  assert(c <= DATA_CHANNELS); /* zoo_want_images */
  for (int64_t i = 0; i < c; i++) {
    scale[i] = 1 / (255 * d->std[i]);
    shift[i] = -d->mean[i] / d->std[i];
  }
  Value *x = b_convert(b, images, DT_F32);
  Type *t = b_type(b, DT_F32, 1, &c);
  x = b_add(b, b_mul(b, x, b_bcast_last(b, b_const(b, t, scale), x->type)),
            b_bcast_last(b, b_const(b, t, shift), x->type));
  x = b_convert(b, x, n->compute);
  net_leave(n, s);
  return x;
}

Value *zoo_tied_logits(Net *n, Value *x, Value *table) {
  DotDims d = {.n_contract = 1, .lhs_contract = {2}, .rhs_contract = {1}};
  return b_dot(&n->b, x, b_convert(&n->b, table, n->compute), &d, n->compute, NULL);
}

Value *zoo_repeat_heads(Build *b, Value *x, int64_t times) {
  if (times == 1) return x;
  int64_t wide[] = {b_dim(x, 0), b_dim(x, 1), times, b_dim(x, 2), b_dim(x, 3)};
  Type *t = b_type(b, b_dtype(x), 5, wide);
  x = b_bcast_like(b, x, t, (int[]){0, 1, 3, 4});
  return b_reshape(b, x, 4, (int64_t[]){wide[0], wide[1] * times, wide[3], wide[4]});
}

void zoo_decoder_defaults(TrainConfig *c) {
  c->batch = 8;
  c->length = 64;
  c->epochs = 1;
  c->opt = (OptConfig){.kind = OPT_ADAMW,
                       .style = STYLE_TORCH,
                       .lr = 6e-4,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .eps = 1e-8,
                       .decay = 0.1,
                       .clip = 1,
                       .schedule = LR_COSINE,
                       .warmup_steps = 100,
                       .end = 0.1};
}

enum { MOST_LAYERS = 512 }; /* a program of each takes gigabytes to write */

Err *zoo_transformer(const Model *m, const TrainConfig *c, ZooShape *out) {
  static const struct {
    int64_t layers, width;
  } known[] = {{12, 768}, {24, 1024}, {36, 1280}, {48, 1600}};
  ZooShape s = {.layers = c->size ? c->size : m->size};
  s.width = 64 * s.layers;
  for (int i = 0; i < COUNT_OF(known); i++)
    if (known[i].layers == s.layers) s.width = known[i].width;
  s.heads = s.width / 64;
  *out = s;
  if (s.layers <= MOST_LAYERS) return NULL;
  return err_hint(err_new(ERR_INVALID, "%s of %lld layers, each %lld wide", m->name,
                          (long long)s.layers, (long long)s.width),
                  "--size is the number of layers, at most %d", MOST_LAYERS);
}

void zoo_shape_of_file(const Model *m, const TrainConfig *c, double eps, const char *act,
                       NetShape *out) {
  ZooShape s;
  err_free(zoo_transformer(m, c, &s));
  *out = (NetShape){.layers = s.layers,
                    .width = s.width,
                    .heads = s.heads,
                    .kv_heads = s.heads,
                    .eps = eps,
                    .act = act,
                    .tied = true};
}
