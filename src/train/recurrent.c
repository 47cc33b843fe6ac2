/* Recurrent layers: the input's products for all steps at once, then one loop over time. */
#include "train/train_priv.h"

/* What both layers share: the input's part of the gates (T, B, gates * units), the loop's states.
 */
typedef struct Recurrent {
  Value *gx, *wh, *bh; /* products of the input; recurrent kernel and its bias, which may be NULL */
  int64_t steps, batch, units, gates;
  int n_states;
  Value *state[2]; /* h, c */
} Recurrent;

static Value *gate(Build *b, Value *z, int i, int64_t units) {
  return b_slice_dim(b, z, 1, i * units, (i + 1) * units);
}

static Recurrent open_layer(Net *n, Value *x, int64_t units, int64_t gates, int n_states,
                            bool inner_bias) {
  Build *b = &n->b;
  Recurrent r = {.steps = b_dim(x, 1),
                 .batch = b_dim(x, 0),
                 .units = units,
                 .gates = gates,
                 .n_states = n_states};
  int64_t wide = gates * units, state[] = {r.batch, units};
  Value *wx =
      net_param(n, "kernel", 2, (int64_t[]){b_dim(x, 2), wide}, INIT(INIT_GLOROT_UNIFORM, 1), 0);
  Value *wh = net_param(n, "recurrent", 2, (int64_t[]){units, wide}, INIT(INIT_ORTHOGONAL, 1), 0);
  Value *bias = net_param(n, "bias", 1, &wide, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  if (inner_bias)
    r.bh =
        b_convert(b, net_param(n, "recurrent_bias", 1, &wide, INIT(INIT_CONST, 0), PARAM_NO_DECAY),
                  n->compute);
  Value *steps = b_transpose(b, b_convert(b, x, n->compute), (int[]){1, 0, 2});
  r.gx = net_f8(n, b_matmul(b, steps, b_convert(b, wx, n->compute)));
  r.gx = b_add(b, r.gx, b_bcast_last(b, b_convert(b, bias, n->compute), r.gx->type));
  r.wh = b_convert(b, wh, n->compute);
  static const char *const names[] = {"h", "c"};
  for (int i = 0; i < n_states; i++)
    r.state[i] = n->at ? net_cache(n, names[i], n->compute, 2, state)
                       : b_full(b, b_type(b, n->compute, 2, state), 0);
  return r;
}

/* One step inside the loop: z is this step's part of gx, next gets the new states. */
typedef void (*Cell)(Build *b, const Recurrent *r, Value *z, Value *const *state, Value *wh,
                     Value *bh, Value **next);

static Value *run_layer(Net *n, Recurrent *r, Cell cell) {
  Build *b = &n->b;
  Value *ys = b_full(b, b_type(b, n->compute, 3, (int64_t[]){r->steps, r->batch, r->units}), 0);
  Value *in[7] = {b_scalar_i64(b, DT_I32, 0), r->state[0]};
  int k = 2, at_ys, at_gx, total;
  if (r->n_states > 1) in[k++] = r->state[1];
  in[at_ys = k++] = ys;
  in[at_gx = k++] = r->gx;
  in[k++] = r->wh;
  if (r->bh) in[k++] = r->bh;
  total = k;
  Type *types[7];
  for (int i = 0; i < total; i++) types[i] = in[i]->type;
  Build cond = {b->m, region_new(b->m, total, types), b->loc},
        body = {b->m, region_new(b->m, total, types), b->loc};
  Value *go = b_compare(&cond, "LT", cond.r->args[0], b_scalar_i64(&cond, DT_I32, r->steps));
  b_return(&cond, 1, &go);
  Value **a = body.r->args, *zero = b_scalar_i64(&body, DT_I32, 0), *start[] = {a[0], zero, zero};
  int64_t wide = r->gates * r->units;
  Value *g = b_dynamic_slice(&body, a[at_gx], start, (int64_t[]){1, r->batch, wide}), *next[7];
  for (int i = 0; i < total; i++) next[i] = a[i];
  cell(&body, r, b_reshape(&body, g, 2, (int64_t[]){r->batch, wide}), a + 1, a[at_gx + 1],
       r->bh ? a[at_gx + 2] : NULL, next + 1);
  Value *y = b_reshape(&body, next[1], 3, (int64_t[]){1, r->batch, r->units});
  next[at_ys] = b_dynamic_update(&body, a[at_ys], y, start);
  next[0] = b_add(&body, a[0], b_scalar_i64(&body, DT_I32, 1));
  b_return(&body, total, next);
  Region *regions[] = {cond.r, body.r};
  Op *loop = b_op(b, OP_WHILE, total, in, total, types, 0, NULL, 2, regions);
  for (int i = 0; i < r->n_states && n->at; i++)
    net_set_cache(n, r->state[i], &loop->results[1 + i]);
  return b_transpose(b, &loop->results[at_ys], (int[]){1, 0, 2});
}

static void lstm_cell(Build *b, const Recurrent *r, Value *z, Value *const *state, Value *wh,
                      Value *bh, Value **next) {
  (void)bh;
  z = b_add(b, z, b_matmul(b, state[0], wh));
  Value *i = b_logistic(b, gate(b, z, 0, r->units)), *f = b_logistic(b, gate(b, z, 1, r->units));
  Value *g = b_tanh(b, gate(b, z, 2, r->units)), *o = b_logistic(b, gate(b, z, 3, r->units));
  next[1] = b_add(b, b_mul(b, f, state[1]), b_mul(b, i, g));
  next[0] = b_mul(b, o, b_tanh(b, next[1]));
}

Value *net_lstm(Net *n, const char *name, Value *x, int64_t units) {
  NetScope s = net_enter(n, "%s", name);
  Recurrent r = open_layer(n, x, units, 4, 2, false);
  Value *y = run_layer(n, &r, lstm_cell);
  net_leave(n, s);
  return y;
}

/* As PyTorch and cuDNN: the candidate's recurrent part is scaled behind its product. */
static void gru_cell(Build *b, const Recurrent *r, Value *z, Value *const *state, Value *wh,
                     Value *bh, Value **next) {
  Value *h = state[0], *p = b_matmul(b, h, wh);
  p = b_add(b, p, b_bcast_last(b, bh, p->type));
  Value *reset = b_logistic(b, b_add(b, gate(b, z, 0, r->units), gate(b, p, 0, r->units)));
  Value *update = b_logistic(b, b_add(b, gate(b, z, 1, r->units), gate(b, p, 1, r->units)));
  Value *inner = b_mul(b, reset, gate(b, p, 2, r->units));
  Value *cand = b_tanh(b, b_add(b, gate(b, z, 2, r->units), inner));
  next[0] = b_add(b, cand, b_mul(b, update, b_sub(b, h, cand)));
}

Value *net_gru(Net *n, const char *name, Value *x, int64_t units) {
  NetScope s = net_enter(n, "%s", name);
  Recurrent r = open_layer(n, x, units, 3, 1, true);
  Value *y = run_layer(n, &r, gru_cell);
  net_leave(n, s);
  return y;
}
