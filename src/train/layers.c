/* Layers as StableHLO ops. Products and activations have type n->compute; statistics, softmax
 * and losses are f32. */
#include "train/train_priv.h"

#include "compile/grad/grad.h"

#include <math.h>
#include <stdlib.h>

static Value *to_compute(Net *n, Value *x) { return b_convert(&n->b, x, n->compute); }

/* A parameter (features) added along, or multiplied into, the last dimension. */
static Value *along_last(Net *n, Value *p, Value *x) {
  return b_bcast_last(&n->b, b_convert(&n->b, p, b_dtype(x)), x->type);
}

Value *net_f8(Net *n, Value *product) {
  bool wide = n->compute == DT_F32; /* for a while: a router */
  if (n->f8 && n->training && !wide)
    op_set_attr(n->b.m, product->def, STR(GRAD_F8), attr_unit(n->b.m));
  return product;
}

/* x A B times a constant: B begins as zeros, so the network begins as it was. */
static Value *low_rank(Net *n, Value *x, int64_t units) {
  Build *b = &n->b;
  int64_t in = b_dim(x, b_rank(x) - 1), a[] = {in, n->lora}, c[] = {n->lora, units};
  unsigned flags = PARAM_LORA | PARAM_NO_DECAY;
  Value *down = net_param(n, "lora_a", 2, a, INIT(INIT_LECUN_NORMAL, 1), flags);
  Value *up = net_param(n, "lora_b", 2, c, INIT(INIT_CONST, 0), flags);
  Value *y = b_matmul(b, b_matmul(b, to_compute(n, x), to_compute(n, down)), to_compute(n, up));
  return b_muls(b, y, LORA_SCALE);
}

Value *net_dense(Net *n, const char *name, Value *x, int64_t units, bool bias, Init init) {
  NetScope s = net_enter(n, "%s", name);
  int64_t in = b_dim(x, b_rank(x) - 1);
  Value *w = net_param(n, "kernel", 2, (int64_t[]){in, units}, init, 0);
  Value *y = net_f8(n, b_matmul(&n->b, to_compute(n, x), to_compute(n, w)));
  if (n->lora) y = b_add(&n->b, y, low_rank(n, x, units));
  if (bias) {
    Value *c = net_param(n, "bias", 1, &units, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
    y = b_add(&n->b, y, along_last(n, c, y));
  }
  net_leave(n, s);
  return y;
}

static void same_padding(int64_t in, int64_t size, int64_t stride, int64_t *lo, int64_t *hi) {
  int64_t out = (in + stride - 1) / stride, all = MAX(0, (out - 1) * stride + size - in);
  *lo = all / 2;
  *hi = all - all / 2;
}

Value *net_conv(Net *n, const char *name, Value *x, int64_t size, int64_t stride, ConvPad same,
                int64_t pad, int64_t filters, bool bias, Init init) {
  NetScope s = net_enter(n, "%s", name);
  Value *w = net_param(n, "kernel", 4, (int64_t[]){size, size, b_dim(x, 3), filters}, init, 0);
  ConvDims d = b_conv_nhwc(stride, MAX(pad, 0), MAX(pad, 0));
  for (int i = 0; i < 2 && same == PAD_SAME; i++)
    same_padding(b_dim(x, 1 + i), size, stride, &d.padding[2 * i], &d.padding[2 * i + 1]);
  Value *y = b_conv(&n->b, to_compute(n, x), to_compute(n, w), &d, n->compute, NULL);
  net_f8(n, y);
  if (bias) {
    Value *c = net_param(n, "bias", 1, &filters, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
    y = b_add(&n->b, y, along_last(n, c, y));
  }
  net_leave(n, s);
  return y;
}

Value *net_conv_up(Net *n, const char *name, Value *x, int64_t size, int64_t filters, Init init) {
  Build *b = &n->b;
  NetScope s = net_enter(n, "%s", name);
  int64_t batch = b_dim(x, 0), h = b_dim(x, 1), w = b_dim(x, 2), in = b_dim(x, 3);
  init.fan_in = init.fan_in ? init.fan_in : in; /* each pixel has one window */
  Value *k = net_param(n, "kernel", 4, (int64_t[]){size, size, in, filters}, init, 0);
  k = b_reshape(b, b_transpose(b, to_compute(n, k), (int[]){2, 0, 1, 3}), 2,
                (int64_t[]){in, size * size * filters});
  Value *y = b_reshape(b, net_f8(n, b_matmul(b, to_compute(n, x), k)), 6,
                       (int64_t[]){batch, h, w, size, size, filters});
  y = b_transpose(b, y, (int[]){0, 1, 3, 2, 4, 5});
  y = b_reshape(b, y, 4, (int64_t[]){batch, h * size, w * size, filters});
  Value *c = net_param(n, "bias", 1, &filters, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  y = b_add(b, y, along_last(n, c, y));
  net_leave(n, s);
  return y;
}

Value *net_max_pool(Net *n, Value *x, int64_t size, int64_t stride, int64_t pad) {
  Window w = {.size = (int64_t[]){1, size, size, 1},
              .strides = (int64_t[]){1, stride, stride, 1},
              .padding = (int64_t[]){0, 0, pad, pad, pad, pad, 0, 0}};
  return b_reduce_window(&n->b, OP_MAXIMUM, x, &w);
}

Value *net_global_max(Net *n, Value *x) {
  return b_reduce(&n->b, OP_MAXIMUM, x, 2, (int64_t[]){1, 2});
}
Value *net_global_mean(Net *n, Value *x) { return b_mean(&n->b, x, 2, (int64_t[]){1, 2}); }
Value *net_relu(Net *n, Value *x) { return b_max(&n->b, x, b_full(&n->b, x->type, 0)); }

Value *net_gelu(Net *n, Value *x, bool tanh_form) {
  Build *b = &n->b;
  Value *half = b_muls(b, x, 0.5), *t;
  if (tanh_form) { /* sqrt(2 / pi) (x + 0.044715 x^3) */
    Value *cube = b_mul(b, b_mul(b, x, x), x);
    t = b_tanh(b, b_muls(b, b_add(b, x, b_muls(b, cube, 0.044715)), 0.7978845608028654));
  } else {
    t = b_convert(b, b_erf(b, b_convert(b, b_muls(b, x, 0.7071067811865476), DT_F32)), b_dtype(x));
  }
  return b_mul(b, half, b_adds(b, t, 1));
}

Value *net_batch_norm(Net *n, const char *name, Value *x, double momentum, double eps) {
  Build *b = &n->b;
  NetScope s = net_enter(n, "%s", name);
  int r = b_rank(x);
  int64_t c = b_dim(x, r - 1), dims[B_MAX_RANK];
  for (int i = 0; i < r - 1; i++) dims[i] = i;
  Value *scale = net_param(n, "scale", 1, &c, INIT(INIT_CONST, 1), PARAM_NO_DECAY);
  Value *shift = net_param(n, "bias", 1, &c, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  Value *run_mean = net_stat(n, "mean", 1, &c, 0), *run_var = net_stat(n, "var", 1, &c, 1);
  Value *xf = b_convert(b, x, DT_F32), *mean = run_mean, *var = run_var;
  if (n->training) {
    double count = (double)type_count(x->type) / (double)c;
    mean = b_mean(b, xf, r - 1, dims);
    var = b_sub(b, b_mean(b, b_mul(b, xf, xf), r - 1, dims), b_mul(b, mean, mean));
    var = b_max(b, var, b_full(b, var->type, 0)); /* rounding may leave a tiny negative number */
    double bessel = count > 1 ? count / (count - 1) : 1;
    net_set_stat(n, run_mean,
                 b_add(b, b_muls(b, run_mean, momentum), b_muls(b, mean, 1 - momentum)));
    net_set_stat(n, run_var,
                 b_add(b, b_muls(b, run_var, momentum), b_muls(b, var, (1 - momentum) * bessel)));
  }
  Value *k = b_mul(b, b_rsqrt(b, b_adds(b, var, eps)), scale);
  Value *y = b_mul(b, b_sub(b, xf, b_bcast_last(b, mean, xf->type)), b_bcast_last(b, k, xf->type));
  y = b_convert(b, b_add(b, y, b_bcast_last(b, shift, xf->type)), b_dtype(x));
  net_leave(n, s);
  return y;
}

/* (..., C) with a value (...) spread over the last dimension. */
static Value *over_last(Build *b, Value *v, const Type *like) {
  int map[B_MAX_RANK];
  for (int i = 0; i < like->rank; i++) map[i] = i;
  return b_bcast_like(b, v, like, map);
}

Value *net_layer_norm(Net *n, const char *name, Value *x, double eps) {
  Build *b = &n->b;
  NetScope s = net_enter(n, "%s", name);
  int64_t last = b_rank(x) - 1, c = b_dim(x, (int)last);
  Value *scale = net_param(n, "scale", 1, &c, INIT(INIT_CONST, 1), PARAM_NO_DECAY);
  Value *shift = net_param(n, "bias", 1, &c, INIT(INIT_CONST, 0), PARAM_NO_DECAY);
  Value *xf = b_convert(b, x, DT_F32);
  Value *d = b_sub(b, xf, over_last(b, b_mean(b, xf, 1, &last), xf->type));
  Value *r = b_rsqrt(b, b_adds(b, b_mean(b, b_mul(b, d, d), 1, &last), eps));
  Value *y = b_mul(b, b_mul(b, d, over_last(b, r, xf->type)), b_bcast_last(b, scale, xf->type));
  y = b_convert(b, b_add(b, y, b_bcast_last(b, shift, xf->type)), b_dtype(x));
  net_leave(n, s);
  return y;
}

Value *net_rms_norm(Net *n, const char *name, Value *x, double eps) {
  Build *b = &n->b;
  NetScope s = net_enter(n, "%s", name);
  int64_t last = b_rank(x) - 1, c = b_dim(x, (int)last);
  Value *scale = net_param(n, "scale", 1, &c, INIT(INIT_CONST, 1), PARAM_NO_DECAY);
  Value *xf = b_convert(b, x, DT_F32);
  Value *r = b_rsqrt(b, b_adds(b, b_mean(b, b_mul(b, xf, xf), 1, &last), eps));
  Value *y = b_mul(b, xf, over_last(b, r, xf->type));
  y = b_convert(b, b_mul(b, y, b_bcast_last(b, scale, xf->type)), b_dtype(x));
  net_leave(n, s);
  return y;
}

/* ---- random numbers -------------------------------------------------------------------------- */

static Value *rotl(Build *b, Value *x, int r) {
  DType t = b_dtype(x);
  Value *l = b_bcast_scalar(b, b_scalar_i64(b, t, r), x->type);
  Value *rest = b_bcast_scalar(b, b_scalar_i64(b, t, 32 - r), x->type);
  return b_or(b, b_shl(b, x, l), b_shr(b, x, rest));
}

/* Threefry-2x32 with 20 rounds (Salmon et al., SC 2011): the generator JAX uses; key scalars,
 * counters of one shape. */
static void threefry_ops(Build *b, Value *const key[2], Value *x[2]) {
  static const int rot[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Type *shape = x[0]->type;
  Value *parity = b_scalar_i64(b, DT_U32, 0x1BD11BDA);
  Value *ks[3] = {key[0], key[1], b_xor(b, b_xor(b, key[0], key[1]), parity)};
  x[0] = b_add(b, x[0], b_bcast_scalar(b, ks[0], shape));
  x[1] = b_add(b, x[1], b_bcast_scalar(b, ks[1], shape));
  for (int g = 0; g < 5; g++) {
    for (int i = 0; i < 4; i++) {
      x[0] = b_add(b, x[0], x[1]);
      x[1] = b_xor(b, rotl(b, x[1], rot[g & 1][i]), x[0]);
    }
    Value *k1 = b_add(b, ks[(g + 2) % 3], b_scalar_i64(b, DT_U32, g + 1));
    x[0] = b_add(b, x[0], b_bcast_scalar(b, ks[(g + 1) % 3], shape));
    x[1] = b_add(b, x[1], b_bcast_scalar(b, k1, shape));
  }
}

Value *net_random_bits(Net *n, int rank, const int64_t *dims) {
  Build *b = &n->b;
  assert(n->seed);
  if (!n->key[0]) { /* this step's key: seed and step mixed */
    Value *seed[2];
    for (int i = 0; i < 2; i++)
      seed[i] = b_reshape(b, b_slice_dim(b, n->seed, 0, i, i + 1), 0, NULL);
    n->key[0] = b_convert(b, n->step, DT_U32);
    if (n->replicas > 1) /* replicas see different examples: give them different masks */
      n->key[1] =
          &b_op(b, OP_REPLICA_ID, 0, NULL, 1, &n->key[0]->type, 0, NULL, 0, NULL)->results[0];
    else n->key[1] = b_scalar_i64(b, DT_U32, 0);
    if (n->part) /* parts of a batch likewise; replicas are fewer than 2^16 */
      n->key[1] = b_add(b, n->key[1], b_mul(b, n->part, b_scalar_i64(b, DT_U32, 1 << 16)));
    threefry_ops(b, seed, n->key);
  }
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= dims[i];
  Type *t = b_type(b, DT_U32, 1, &count);
  Value *x[2] = {b_iota(b, t, 0), b_bcast_scalar(b, b_scalar_i64(b, DT_U32, n->n_draws++), t)};
  threefry_ops(b, n->key, x);
  return b_reshape(b, x[0], rank, dims);
}

Value *net_dropout(Net *n, Value *x, double rate) {
  Build *b = &n->b;
  if (!n->training || rate <= 0) return x;
  NetScope s = net_enter(n, "dropout");
  Value *bits = net_random_bits(n, b_rank(x), x->type->dims);
  double keep = 1 - rate;
  Value *limit = b_scalar_i64(b, DT_U32, (int64_t)(keep * 4294967295.0));
  Value *mask = b_compare(b, "LT", bits, b_bcast_scalar(b, limit, bits->type));
  Value *y = b_select(b, mask, b_muls(b, x, 1 / keep), b_full(b, x->type, 0));
  net_leave(n, s);
  return y;
}

Value *net_flatten(Net *n, Value *x) {
  return b_reshape(&n->b, x, 2,
                   (int64_t[]){b_dim(x, 0), type_count(x->type) / MAX(1, b_dim(x, 0))});
}

Value *net_embedding(Net *n, const char *name, Value *ids, int64_t rows, int64_t width, double std,
                     Value **table) {
  NetScope s = net_enter(n, "%s", name);
  Value *t = net_param(n, "table", 2, (int64_t[]){rows, width}, INIT(INIT_NORMAL, std), 0);
  Value *y = to_compute(n, b_take_rows(&n->b, t, ids));
  if (table) *table = t;
  net_leave(n, s);
  return y;
}

Value *net_softmax(Net *n, Value *x) {
  Build *b = &n->b;
  int64_t last = b_rank(x) - 1;
  Value *xf = b_convert(b, x, DT_F32);
  Value *m = net_stop_gradient(n, b_reduce(b, OP_MAXIMUM, xf, 1, &last));
  Value *e = b_exp(b, b_sub(b, xf, over_last(b, m, xf->type)));
  Value *s = b_reduce(b, OP_ADD, e, 1, &last);
  return b_convert(b, b_div(b, e, over_last(b, s, xf->type)), b_dtype(x));
}

/* ---- attention ------------------------------------------------------------------------------- */

Value *net_positions(Net *n, const char *name, Value *x, int64_t positions, double std) {
  Build *b = &n->b;
  int64_t t = b_dim(x, 1), c = b_dim(x, 2);
  Value *table = net_param(n, name, 2, (int64_t[]){positions, c}, INIT(INIT_NORMAL, std), 0), *rows;
  Value *start[] = {n->at, b_scalar_i64(b, DT_I32, 0)};
  rows =
      n->at ? b_dynamic_slice(b, table, start, (int64_t[]){t, c}) : b_slice_dim(b, table, 0, 0, t);
  return b_add(b, x, b_bcast_like(b, to_compute(n, rows), x->type, (int[]){1, 2}));
}

/* cos and sin of position times theta^(-2i / D) for i < D / 2, (T, D / 2) each. */
double rotary_rate(const Rotary *r, int64_t i, int64_t half) {
  double rate = pow(r->theta, -(double)i / (double)half);
  if (!(r->factor > 1)) return rate;
  double turns = r->context * rate / 6.283185307179586;
  double kept = (turns - r->low) / (r->high - r->low);
  kept = MIN(1, MAX(0, kept));
  return kept * rate + (1 - kept) * rate / r->factor;
}

static void rotary_angles(Net *n, int64_t t, int64_t half, const Rotary *r, Value *out[2]) {
  Build *b = &n->b;
  float *rate = xmalloc(sizeof *rate * (size_t)half);
  for (int64_t i = 0; i < half; i++) rate[i] = (float)rotary_rate(r, i, half);
  Type *table = b_type(b, DT_F32, 2, (int64_t[]){t, half});
  Value *rates = b_const(b, b_type(b, DT_F32, 1, &half), rate);
  Value *place = b_iota(b, b_type_as(b, table, DT_I32), 0);
  if (n->at) place = b_add(b, place, b_bcast_scalar(b, n->at, place->type));
  Value *angle = b_mul(b, b_convert(b, place, DT_F32), b_bcast_last(b, rates, table));
  out[0] = b_cos(b, angle);
  out[1] = b_sin(b, angle);
  free(rate);
}

Value *net_rotary(Net *n, Value *x, const Rotary *r) {
  Build *b = &n->b;
  int64_t half = b_dim(x, 3) / 2;
  Value *angle[2], *xf = b_convert(b, x, DT_F32);
  rotary_angles(n, b_dim(x, 2), half, r, angle);
  Value *lo = b_slice_dim(b, xf, 3, 0, half), *hi = b_slice_dim(b, xf, 3, half, 2 * half);
  for (int i = 0; i < 2; i++) angle[i] = b_bcast_like(b, angle[i], lo->type, (int[]){2, 3});
  Value *first = b_sub(b, b_mul(b, lo, angle[0]), b_mul(b, hi, angle[1]));
  Value *second = b_add(b, b_mul(b, hi, angle[0]), b_mul(b, lo, angle[1]));
  return b_convert(b, b_concat(b, 2, (Value *[]){first, second}, 3), b_dtype(x));
}

/* Keys or values (B, H, T, D) of the tokens of this run, put behind those before them: all of
 * them, (B, H, context, D). */
static Value *with_cache(Net *n, const char *name, Value *x) {
  Build *b = &n->b;
  int64_t dims[] = {b_dim(x, 0), b_dim(x, 1), n->context, b_dim(x, 3)};
  Value *cache = net_cache(n, name, b_dtype(x), 4, dims), *zero = b_scalar_i64(b, DT_I32, 0);
  Value *start[] = {zero, zero, n->at, zero}, *all = b_dynamic_update(b, cache, x, start);
  net_set_cache(n, cache, all);
  return all;
}

/* Scores (B, H, T, keys) of keys behind their query become none at all. */
static Value *causal_mask(Net *n, Value *s) {
  Build *b = &n->b;
  Type *square = b_type(b, DT_I32, 2, (int64_t[]){b_dim(s, 2), b_dim(s, 3)});
  Value *query = b_iota(b, square, 0), *mask;
  if (n->at) query = b_add(b, query, b_bcast_scalar(b, n->at, square));
  mask = b_compare(b, "GE", query, b_iota(b, square, 1));
  mask = b_bcast_like(b, mask, b_type_as(b, s->type, DT_I1), (int[]){2, 3});
  return b_select(b, mask, s, b_full(b, s->type, -1e30));
}

/* Scores of keys that fill up an example likewise. */
static Value *live_keys(Net *n, Value *s) {
  Build *b = &n->b;
  Value *mask = b_bcast_like(b, n->live, b_type_as(b, s->type, DT_I1), (int[]){0, 3});
  return b_select(b, mask, s, b_full(b, s->type, -1e30));
}

Value *net_attend(Net *n, Value *q, Value *k, Value *v, bool causal) {
  Build *b = &n->b;
  int64_t batch = b_dim(q, 0), heads = b_dim(q, 1), t = b_dim(q, 2), d = b_dim(q, 3);
  if (n->at) k = with_cache(n, "key", k), v = with_cache(n, "value", v);
  DotDims scores = {.n_batch = 2,
                    .lhs_batch = {0, 1},
                    .rhs_batch = {0, 1},
                    .n_contract = 1,
                    .lhs_contract = {3},
                    .rhs_contract = {3}};
  Value *s = b_dot(b, q, k, &scores, n->compute, NULL);
  if (n->f8_attention) net_f8(n, s);
  s = b_muls(b, s, 1 / sqrt((double)d));
  if (causal) s = causal_mask(n, s);
  if (n->live) s = live_keys(n, s);
  DotDims mix = {.n_batch = 2,
                 .lhs_batch = {0, 1},
                 .rhs_batch = {0, 1},
                 .n_contract = 1,
                 .lhs_contract = {3},
                 .rhs_contract = {2}};
  Value *o = b_dot(b, net_softmax(n, s), v, &mix, n->compute, NULL);
  if (n->f8_attention) net_f8(n, o);
  return b_reshape(b, b_transpose(b, o, (int[]){0, 2, 1, 3}), 3, (int64_t[]){batch, t, heads * d});
}

Value *net_heads(Net *n, Value *x, int64_t heads) {
  Build *b = &n->b;
  int64_t dims[] = {b_dim(x, 0), b_dim(x, 1), heads, b_dim(x, 2) / heads};
  return b_transpose(b, b_reshape(b, x, 4, dims), (int[]){0, 2, 1, 3});
}

Value *net_attention(Net *n, Value *x, int64_t heads, bool causal, double std, double proj_std) {
  Build *b = &n->b;
  int64_t c = b_dim(x, 2);
  Value *qkv = net_dense(n, "qkv", x, 3 * c, true, INIT(INIT_NORMAL, std)), *part[3];
  for (int i = 0; i < 3; i++)
    part[i] = net_heads(n, b_slice_dim(b, qkv, 2, i * c, (i + 1) * c), heads);
  Value *o = net_attend(n, part[0], part[1], part[2], causal);
  return net_dense(n, "proj", o, c, true, INIT(INIT_NORMAL, proj_std));
}

/* ---- loss ------------------------------------------------------------------------------------ */

void net_softmax_loss(Net *n, Value *logits, Value *labels, Value *weights, double smoothing,
                      NetOut *out) {
  Build *b = &n->b;
  out->logits = logits;
  if (n->forward) return;
  NetScope s = net_enter(n, "loss");
  Value *z = b_convert(b, logits, DT_F32);
  int64_t last = b_rank(z) - 1, classes = b_dim(z, (int)last);
  Value *zero = b_full(b, z->type, 0), *low = b_full(b, z->type, -INFINITY);
  Type *ids = b_type_as(b, z->type, DT_I32);
  Value *hit = b_compare(b, "EQ", b_iota(b, ids, (int)last), over_last(b, labels, ids));
  /* the label's logit, and the largest of the others: right when strictly above them */
  Value *own = b_reduce(b, OP_ADD, b_select(b, hit, z, zero), 1, &last);
  Value *other = net_stop_gradient(n, b_reduce(b, OP_MAXIMUM, b_select(b, hit, low, z), 1, &last));
  Value *top = net_stop_gradient(n, b_max(b, own, other));
  Value *shifted = b_sub(b, z, over_last(b, top, z->type));
  Value *lse = b_add(b, b_log(b, b_reduce(b, OP_ADD, b_exp(b, shifted), 1, &last)), top);
  Value *loss = b_sub(b, lse, own);
  if (smoothing > 0) { /* the target is spread: smoothing / classes everywhere */
    Value *uniform =
        b_sub(b, lse, b_muls(b, b_reduce(b, OP_ADD, z, 1, &last), 1 / (double)classes));
    loss = b_add(b, b_muls(b, loss, 1 - smoothing), b_muls(b, uniform, smoothing));
  }
  Value *right = b_convert(b, b_compare(b, "GT", own, other), DT_F32), *w = weights;
  if (!n->training) { /* labels below zero fill up the last batch */
    Value *real = b_compare(b, "GE", labels, b_full(b, labels->type, 0));
    Value *one = b_convert(b, real, DT_F32);
    w = w ? b_mul(b, w, one) : one;
    loss = b_select(b, real, loss, b_full(b, loss->type, 0));
  }
  if (w) {
    loss = b_mul(b, loss, w);
    right = b_mul(b, right, w);
    out->count = b_reduce_all(b, OP_ADD, w);
  } else {
    out->count = b_scalar(b, DT_F32, (double)type_count(labels->type));
  }
  out->correct = b_reduce_all(b, OP_ADD, right);
  out->loss = b_reduce_all(b, OP_ADD, loss);
  if (n->training && w)
    out->loss = b_div(b, out->loss, b_max(b, out->count, b_scalar(b, DT_F32, 1)));
  if (n->training && !w) out->loss = b_muls(b, out->loss, 1 / (double)type_count(labels->type));
  net_leave(n, s);
}
