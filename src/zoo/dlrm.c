/* DLRM (Naumov et al. 2019): 13 numbers through a bottom network, 26 rows of tables, the dot products of
 * all pairs of them, a top network; the chance of a click. dlrm: as the original on Criteo's Kaggle set
 * (width 16, 512-256-64, top 512-256), dlrm-mlperf: as MLPerf's (width 128, 512-256, top
 * 1024-1024-512-256). Each table has --size rows, ids are taken modulo them. */
#include "zoo/zoo_priv.h"

#include <stdio.h>

typedef struct Shape {
  int64_t width, bottom[4], top[5]; /* 0 at the end */
} Shape;
static const Shape shapes[] = {{16, {512, 256, 64}, {512, 256}},
                               {128, {512, 256}, {1024, 1024, 512, 256}}};
enum { KAGGLE, MLPERF, TABLES = 26, NUMBERS = 13 };

static void defaults(TrainConfig *c) {
  c->batch = 2048;
  c->epochs = 1;
  c->opt = (OptConfig){.kind = OPT_SGD, .lr = 0.1};
}

static Err *want_clicks(const Model *m, const Data *d) {
  const Field *f = d->fields;
  if (d->n_fields == 3 && f[0].type == DT_F32 && f[0].rank == 1 && f[1].type == DT_I32 &&
      f[1].rank == 1 && f[2].type == DT_I32 && !f[2].rank)
    return NULL;
  return err_hint(err_new(ERR_INVALID, "model '%s' wants numbers, ids and a label, '%s' has none",
                          m->name, d->name),
                  "--data npz:FILE of dense_train (n, 13) floats, ids_train (n, 26) whole numbers, "
                  "labels_train (n) 0 "
                  "or 1, in this order, and the same of _test");
}

static Value *layers(Net *n, const char *name, Value *x, const int64_t *widths) {
  char layer[32];
  for (int i = 0; widths[i]; i++) {
    snprintf(layer, sizeof layer, "%s%d", name, i + 1);
    x = net_relu(n, net_dense(n, layer, x, widths[i], true, INIT(INIT_HE_NORMAL, 1)));
  }
  return x;
}

/* Row ids[b, t] of table t, which are one below the other: (B, tables, width). */
static Value *rows(Net *n, Value *ids, int64_t rows, int64_t width) {
  Build *b = &n->b;
  int64_t tables = b_dim(ids, 1);
  Value *r = b_full(b, ids->type, (double)rows), *first = b_mul(b, b_iota(b, ids->type, 1), r);
  ids = b_add(b, b_binary(b, OP_REMAINDER, ids, r), first);
  return net_embedding(n, "tables", ids, rows * tables, width, 1.0 / (double)rows, NULL);
}

/* The dot products of all pairs of the features' vectors (B, F, W), each pair once: (B, F (F - 1) / 2).
 * Rows of the lower triangle, one beside the other. */
static Value *pairs(Net *n, Value *v) {
  Build *b = &n->b;
  int64_t batch = b_dim(v, 0), count = b_dim(v, 1);
  DotDims d = {.n_batch = 1,
               .lhs_batch = {0},
               .rhs_batch = {0},
               .n_contract = 1,
               .lhs_contract = {2},
               .rhs_contract = {2}};
  Value *all = b_dot(b, v, v, &d, n->compute, NULL), *row[TABLES + 1];
  for (int64_t i = 1; i < count; i++) {
    int64_t from[] = {0, i, 0}, to[] = {batch, i + 1, i};
    row[i - 1] = b_reshape(b, b_slice(b, all, from, to, NULL), 2, (int64_t[]){batch, i});
  }
  return b_concat(b, (int)count - 1, row, 1);
}

static Err *build(Net *n, const TrainConfig *c, const Data *d, Value *const *in, NetOut *out) {
  TRY(want_clicks(n->model, d));
  if (d->fields[1].dims[0] > TABLES)
    return err_new(ERR_INVALID, "model '%s' has %d tables, '%s' has %lld ids", n->model->name,
                   TABLES, d->name, (long long)d->fields[1].dims[0]);
  Build *b = &n->b;
  const Shape *s = &shapes[n->model->size];
  int64_t size = c->size ? c->size : n->model->shape[2], batch = b_dim(in[0], 0);
  if (size > INT32_MAX / in[1]->type->dims[1])
    return err_new(ERR_INVALID,
                   "model '%s': %lld tables of %lld rows have more rows than 32 bits count",
                   n->model->name, (long long)in[1]->type->dims[1], (long long)size);
  Value *x = layers(n, "bottom", in[0], s->bottom);
  x = net_relu(n, net_dense(n, "bottom", x, s->width, true, INIT(INIT_HE_NORMAL, 1)));
  Value *e = b_convert(b, rows(n, in[1], size, s->width), n->compute);
  Value *one = b_reshape(b, x, 3, (int64_t[]){batch, 1, s->width});
  Value *all = b_concat(b, 2, (Value *[]){one, e}, 1);
  x = b_concat(b, 2, (Value *[]){x, pairs(n, all)}, 1);
  x = net_dense(n, "out", layers(n, "top", x, s->top), 1, true, INIT(INIT_LECUN_NORMAL, 1));
  Value *never = b_full(b, x->type, 0); /* the logit of no click: binary cross-entropy */
  x = b_concat(b, 2, (Value *[]){never, x}, 1);
  net_softmax_loss(n, x, in[2], NULL, c->label_smoothing, out);
  return NULL;
}

#define DLRM(id, title, which, count, text) \
  const Model zoo_##id = {                  \
      .name = title,                        \
      .summary = text,                      \
      .data = "synthetic",                  \
      .defaults = defaults,                 \
      .build = build,                       \
      .shape = {NUMBERS, TABLES, count},    \
      .classes = 2,                         \
      .size = which,                        \
      .task = TASK_CLICKS,                  \
      .inputs = 2,                          \
      .reads = READ_SIZE | READ_SMOOTHING,  \
  }
DLRM(dlrm, "dlrm", KAGGLE, 10000, "clicks: 26 tables of width 16 (--size: rows of each)");
DLRM(dlrm_mlperf, "dlrm-mlperf", MLPERF, 40000, "the same with MLPerf's width 128 and layers");
