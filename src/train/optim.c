/* Optimizers as ops at the end of the step program: schedule, clipping, slots, new parameters. Each
 * computes what optax and PyTorch compute under its name (tests/train/test_optimizers.py). */
#include "train/train_priv.h"

#include <math.h>
#include <stdlib.h>

/* Learning rate of this step, an f32 scalar. */
static Value *schedule(Build *b, const OptConfig *o, Value *step) {
  Value *peak = b_scalar(b, DT_F32, o->lr);
  if (o->schedule == LR_CONST && o->warmup_steps <= 0) return peak;
  Value *s = b_convert(b, step, DT_F32), *one = b_scalar(b, DT_F32, 1),
        *zero = b_scalar(b, DT_F32, 0);
  Value *factor = one;
  if (o->schedule != LR_CONST) { /* q: 0 at the end of the warm-up, 1 at the last step */
    double span = MAX(1.0, o->total_steps - o->warmup_steps);
    Value *q = b_clamp(b, zero, b_muls(b, b_adds(b, s, -o->warmup_steps), 1 / span), one);
    if (o->schedule == LR_LINEAR) factor = b_adds(b, b_muls(b, q, o->end - 1), 1);
    else
      factor = b_adds(b, b_muls(b, b_cos(b, b_muls(b, q, 3.14159265358979)), (1 - o->end) / 2),
                      (1 + o->end) / 2);
  }
  if (o->warmup_steps > 0) {
    Value *up = b_muls(b, b_adds(b, s, 1), 1 / o->warmup_steps);
    factor = b_mul(b, factor, b_min(b, up, one));
  }
  return b_mul(b, peak, factor);
}

static void clip(Build *b, int n, Value **g, double limit) {
  Value *sum = b_scalar(b, DT_F32, 0);
  for (int i = 0; i < n; i++) sum = b_add(b, sum, b_reduce_all(b, OP_ADD, b_mul(b, g[i], g[i])));
  Value *norm = b_sqrt(b, sum), *max = b_scalar(b, DT_F32, limit);
  Value *scale = b_div(b, max, b_max(b, norm, max));
  for (int i = 0; i < n; i++) g[i] = b_mul(b, g[i], b_bcast_scalar(b, scale, g[i]->type));
}

typedef struct Slots {
  VEC(StateSpec) spec;
  VEC(Value *) arg, next;
} Slots;

typedef struct Step { /* what all parameters share */
  Net *n;
  const OptConfig *o;
  Slots *l;
  Value *lr, *c1, *c2; /* rate; 1 - beta^t */
} Step;

/* A value kept beside a parameter, zero at first; its successor is set by keep(). */
static Value *slot_of(const Step *s, const char *kind, const NetParam *p, int rank,
                      const int64_t *dims) {
  Net *n = s->n;
  StateSpec spec = p->spec;
  spec.name = xasprintf("opt/%s/%s", kind, p->spec.name);
  spec.kind = STATE_SLOT;
  spec.init = INIT(INIT_CONST, 0);
  spec.rank = rank;
  memcpy(spec.dims, dims, sizeof *dims * (size_t)rank);
  Value *arg = b_arg(&n->b, b_type(&n->b, DT_F32, rank, dims));
  arg->name = arena_str(n->b.m->arena, str_from(spec.name));
  *vec_push(&s->l->spec) = spec;
  *vec_push(&s->l->arg) = arg;
  *vec_push(&s->l->next) = NULL;
  return arg;
}

static Value *slot(const Step *s, const char *kind, const NetParam *p) {
  return slot_of(s, kind, p, p->spec.rank, p->spec.dims);
}

static void keep(const Step *s, Value *slot_arg, Value *next) {
  for (int i = 0; i < s->l->arg.n; i++)
    if (s->l->arg.v[i] == slot_arg) s->l->next.v[i] = next;
}

static Value *scaled(Build *b, Value *x, Value *scalar) {
  return b_mul(b, x, b_bcast_scalar(b, scalar, x->type));
}

/* a x + b y with constants */
static Value *mix(Build *b, double wx, Value *x, double wy, Value *y) {
  return b_add(b, b_muls(b, x, wx), b_muls(b, y, wy));
}

static bool decays(const Step *s, const NetParam *p) { return s->o->decay > 0 && p->spec.decay; }

/* p <- p - lr (step + decay p): decay apart from the gradient */
static void descend(const Step *s, NetParam *p, Value *step) {
  Build *b = &s->n->b;
  if (decays(s, p)) step = b_add(b, step, b_muls(b, p->arg, s->o->decay));
  p->next = b_sub(b, p->arg, scaled(b, step, s->lr));
}

static Value *norm(Build *b, Value *x) {
  return b_sqrt(b, b_reduce_all(b, OP_ADD, b_mul(b, x, x)));
}

static Value *rms(Build *b, Value *x) {
  int64_t n = type_count(x->type);
  return b_sqrt(b, b_muls(b, b_reduce_all(b, OP_ADD, b_mul(b, x, x)), 1 / (double)MAX(1, n)));
}

/* ---- sgd, momentum, nesterov: decay is part of the gradient ---- */

static void sgd(const Step *s, NetParam *p, Value *g) {
  Build *b = &s->n->b;
  const OptConfig *o = s->o;
  if (decays(s, p)) g = b_add(b, g, b_muls(b, p->arg, o->decay));
  if (o->kind == OPT_SGD || o->momentum <= 0) {
    p->next = b_sub(b, p->arg, scaled(b, g, s->lr));
    return;
  }
  bool ahead = o->kind == OPT_NESTEROV;
  Value *m = slot(s, "momentum", p), *v;
  if (o->style == STYLE_KERAS) {
    Value *step = scaled(b, g, s->lr);
    v = b_sub(b, b_muls(b, m, o->momentum), step);
    p->next = b_add(b, p->arg, ahead ? b_sub(b, b_muls(b, v, o->momentum), step) : v);
  } else {
    v = b_add(b, b_muls(b, m, o->momentum), g);
    Value *d = ahead ? b_add(b, g, b_muls(b, v, o->momentum)) : v;
    p->next = b_sub(b, p->arg, scaled(b, d, s->lr));
  }
  keep(s, m, v);
}

/* ---- adam, adamw, lamb ---- */

/* The direction of Adam: (m / c1) / (sqrt(v / c2) + eps); Keras' epsilon stands beside sqrt(v). */
static Value *adam_direction(const Step *s, NetParam *p, Value *g) {
  Build *b = &s->n->b;
  const OptConfig *o = s->o;
  Value *m0 = slot(s, "m", p), *v0 = slot(s, "v", p);
  Value *m = mix(b, o->beta1, m0, 1 - o->beta1, g);
  Value *v = mix(b, o->beta2, v0, 1 - o->beta2, b_mul(b, g, g));
  keep(s, m0, m);
  keep(s, v0, v);
  Value *one = b_scalar(b, DT_F32, 1);
  if (o->style == STYLE_KERAS) {
    Value *alpha = b_div(b, b_sqrt(b, s->c2), s->c1);
    return b_div(b, scaled(b, m, alpha), b_adds(b, b_sqrt(b, v), o->eps));
  }
  Value *root = b_sqrt(b, b_div(b, v, b_bcast_scalar(b, s->c2, v->type)));
  return b_div(b, scaled(b, m, b_div(b, one, s->c1)), b_adds(b, root, o->eps));
}

static void adam(const Step *s, NetParam *p, Value *g) {
  Value *step = adam_direction(s, p, g);
  if (s->o->kind == OPT_ADAM) p->next = b_sub(&s->n->b, p->arg, scaled(&s->n->b, step, s->lr));
  else descend(s, p, step);
}

/* LAMB (You et al. 2019): Adam's step with decay, as long as the parameter. */
static void lamb(const Step *s, NetParam *p, Value *g) {
  Build *b = &s->n->b;
  Value *step = adam_direction(s, p, g), *zero = b_scalar(b, DT_F32, 0);
  if (decays(s, p)) step = b_add(b, step, b_muls(b, p->arg, s->o->decay));
  Value *wn = norm(b, p->arg), *un = norm(b, step);
  Value *some = b_and(b, b_compare(b, "GT", wn, zero), b_compare(b, "GT", un, zero));
  Value *ratio = b_select(b, some, b_div(b, wn, un), b_scalar(b, DT_F32, 1));
  p->next = b_sub(b, p->arg, scaled(b, step, b_mul(b, s->lr, ratio)));
}

/* ---- lion (Chen et al. 2023): the sign of a mean ---- */

static void lion(const Step *s, NetParam *p, Value *g) {
  Build *b = &s->n->b;
  Value *m = slot(s, "m", p);
  Value *step = b_sign(b, mix(b, s->o->beta1, m, 1 - s->o->beta1, g));
  keep(s, m, mix(b, s->o->beta2, m, 1 - s->o->beta2, g));
  descend(s, p, step);
}

/* ---- adafactor (Shazeer and Stern 2018), as optax: second moments by rows and columns ---- */

enum { FACTOR_LEAST = 128 }; /* both dimensions, else the moments are kept whole */

/* The two longest dimensions, the longest last; false: not factored. */
static bool factored(const StateSpec *p, int *second, int *longest) {
  int a = -1, c = -1; /* the last of equals counts as longer, as in a stable sort */
  for (int i = 0; i < p->rank; i++) {
    if (c < 0 || p->dims[i] >= p->dims[c]) a = c, c = i;
    else if (a < 0 || p->dims[i] >= p->dims[a]) a = i;
  }
  *second = a;
  *longest = c;
  return a >= 0 && p->dims[a] >= FACTOR_LEAST;
}

/* x with dimension `gone` missing, spread over it again. */
static Value *spread(Build *b, Value *x, int gone, const Type *like) {
  int map[B_MAX_RANK], k = 0;
  for (int i = 0; i < like->rank; i++)
    if (i != gone) map[k++] = i;
  return b_bcast_like(b, x, like, map);
}

static Value *moment(const Step *s, NetParam *p, const char *kind, Value *squares, int over,
                     Value *keep_share) {
  Build *b = &s->n->b;
  int64_t dim = over;
  Value *mean = b_mean(b, squares, 1, &dim),
        *old = slot_of(s, kind, p, b_rank(mean), mean->type->dims);
  Value *rest = b_sub(b, b_scalar(b, DT_F32, 1), keep_share);
  Value *v = b_add(b, scaled(b, old, keep_share), scaled(b, mean, rest));
  keep(s, old, v);
  return v;
}

static Value *factored_direction(const Step *s, NetParam *p, Value *g, Value *squares, int second,
                                 int longest, Value *share) {
  Build *b = &s->n->b;
  Value *row = moment(s, p, "row", squares, longest, share);
  Value *col = moment(s, p, "col", squares, second, share);
  int64_t at = second > longest ? second - 1 : second; /* of `second` in row */
  Value *mean = spread(b, b_mean(b, row, 1, &at), (int)at, row->type);
  Value *by_row = b_rsqrt(b, b_div(b, row, mean)), *by_col = b_rsqrt(b, col);
  return b_mul(b, b_mul(b, g, spread(b, by_row, longest, g->type)),
               spread(b, by_col, second, g->type));
}

static void adafactor(const Step *s, NetParam *p, Value *g) {
  Build *b = &s->n->b;
  int second, longest;
  Value *one = b_scalar(b, DT_F32, 1), *t = b_adds(b, b_convert(b, s->n->step, DT_F32), 1);
  Value *share = b_sub(b, one, b_pow(b, t, b_scalar(b, DT_F32, -0.8)));
  Value *squares = b_adds(b, b_mul(b, g, g), 1e-30), *u;
  if (factored(&p->spec, &second, &longest)) {
    u = factored_direction(s, p, g, squares, second, longest, share);
  } else {
    Value *old = slot(s, "v", p);
    Value *v = b_add(b, scaled(b, old, share), scaled(b, squares, b_sub(b, one, share)));
    keep(s, old, v);
    u = b_mul(b, g, b_rsqrt(b, v));
  }
  u = scaled(b, u, b_div(b, one, b_max(b, one, rms(b, u)))); /* no longer than 1 */
  Value *size = b_max(b, rms(b, p->arg), b_scalar(b, DT_F32, 1e-3));
  u = scaled(b, u, b_mul(b, s->lr, size));
  if (decays(s, p)) u = b_add(b, u, scaled(b, b_muls(b, p->arg, s->o->decay), s->lr));
  p->next = b_sub(b, p->arg, u);
}

/* ---- muon (Jordan 2024): momentum made orthogonal by Newton-Schulz; the length of the step is
 * Adam's (Liu et al. 2025), so that one rate serves; what is no kernel goes by AdamW ---- */

static bool is_matrix(const StateSpec *p) {
  return p->rank >= 2 && str_ends(str_from(p->name), "kernel");
}

static Value *orthogonal(Build *b, Value *x) {
  bool tall = b_dim(x, 0) > b_dim(x, 1);
  if (tall) x = b_transpose(b, x, (int[]){1, 0});
  x = scaled(b, x, b_div(b, b_scalar(b, DT_F32, 1), b_adds(b, norm(b, x), 1e-7)));
  for (int i = 0; i < 5; i++) {
    Value *a = b_matmul(b, x, b_transpose(b, x, (int[]){1, 0}));
    Value *poly = mix(b, -4.7750, a, 2.0315, b_matmul(b, a, a));
    x = b_add(b, b_muls(b, x, 3.4445), b_matmul(b, poly, x));
  }
  return tall ? b_transpose(b, x, (int[]){1, 0}) : x;
}

static void muon(const Step *s, NetParam *p, Value *g) {
  Build *b = &s->n->b;
  if (!is_matrix(&p->spec)) {
    descend(s, p, adam_direction(s, p, g));
    return;
  }
  double mu = s->o->momentum;
  Value *m0 = slot(s, "momentum", p), *m = mix(b, mu, m0, 1 - mu, g);
  keep(s, m0, m);
  int64_t cols = b_dim(g, b_rank(g) - 1), flat[2] = {type_count(g->type) / cols, cols};
  Value *x = orthogonal(b, b_reshape(b, mix(b, mu, m, 1 - mu, g), 2, flat));
  x = b_muls(b, x, 0.2 * sqrt((double)MAX(flat[0], flat[1])));
  descend(s, p, b_reshape(b, x, b_rank(g), g->type->dims));
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct {
  void (*apply)(const Step *s, NetParam *p, Value *g);
  unsigned reads;
  int slots;
  OptConfig usual;
} rows[OPT_COUNT] = {
    [OPT_SGD] = {sgd, READ_DECAY, 0, {.lr = 0.01}},
    [OPT_MOMENTUM] = {sgd, READ_DECAY | READ_MOMENTUM, 1, {.lr = 0.01, .momentum = 0.9}},
    [OPT_NESTEROV] = {sgd, READ_DECAY | READ_MOMENTUM, 1, {.lr = 0.01, .momentum = 0.9}},
    [OPT_ADAM] = {adam,
                  READ_BETAS | READ_EPS,
                  2,
                  {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    [OPT_ADAMW] = {adam,
                   READ_BETAS | READ_EPS | READ_DECAY,
                   2,
                   {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01}},
    [OPT_LAMB] = {lamb,
                  READ_BETAS | READ_EPS | READ_DECAY,
                  2,
                  {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .decay = 0.01}},
    [OPT_LION] = {lion,
                  READ_BETAS | READ_DECAY,
                  1,
                  {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99, .decay = 0.1}},
    [OPT_ADAFACTOR] = {adafactor, READ_DECAY, 1, {.lr = 0.01}},
    [OPT_MUON] =
        {muon,
         READ_MOMENTUM | READ_BETAS | READ_EPS | READ_DECAY,
         1,
         {.lr = 1e-3, .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1}},
};

void opt_defaults(OptKind kind, OptConfig *o) {
  OptConfig old = *o;
  *o = rows[kind].usual;
  o->kind = kind;
  o->clip = old.clip;
  o->ema = old.ema;
  o->schedule = old.schedule;
  o->warmup_steps = old.warmup_steps;
  o->total_steps = old.total_steps;
  o->end = old.end;
}

unsigned opt_reads(const OptConfig *o) {
  return rows[o->kind].reads | (o->schedule == LR_CONST ? 0 : READ_SCHEDULE);
}

int opt_n_slots(const OptConfig *o) { return rows[o->kind].slots + (o->ema > 0); }

/* A mean of the parameters over the last 1 / (1 - ema) steps, which begins at their first values. */
static void average(const Step *s, NetParam *p) {
  Value *old = slot(s, "ema", p);
  StateSpec *spec = &s->l->spec.v[s->l->spec.n - 1];
  spec->init = p->spec.init;
  spec->alias = (int)strlen("opt/ema/");
  keep(s, old, mix(&s->n->b, s->o->ema, old, 1 - s->o->ema, p->next));
}

Err *opt_apply(Net *n, const OptConfig *o, Value **g, Value **out_lr, StateSpec **slots,
               Value ***slot_args, Value ***slot_next, int *n_slots) {
  Build *b = &n->b;
  int np = n->params.n;
  Slots l = {0};
  if (o->clip > 0) clip(b, np, g, o->clip);
  Step s = {.n = n, .o = o, .l = &l, .lr = schedule(b, o, n->step)};
  if (rows[o->kind].reads & READ_EPS) {
    Value *t = b_adds(b, b_convert(b, n->step, DT_F32), 1), *one = b_scalar(b, DT_F32, 1);
    s.c1 = b_sub(b, one, b_pow(b, b_scalar(b, DT_F32, o->beta1), t));
    s.c2 = b_sub(b, one, b_pow(b, b_scalar(b, DT_F32, o->beta2), t));
  }
  for (int i = 0; i < np; i++) {
    NetParam *p = &n->params.v[i];
    if (p->spec.frozen) p->next = p->arg;
    else rows[o->kind].apply(&s, p, g[i]);
  }
  for (int i = 0; i < np && o->ema > 0; i++) average(&s, &n->params.v[i]);
  *out_lr = s.lr;
  *slots = l.spec.v;
  *slot_args = l.arg.v;
  *slot_next = l.next.v;
  *n_slots = l.spec.n;
  return NULL;
}
