/* Optimisers as ops at the end of the step program: gradients, schedule, slots, new parameters. */
#include "train/train_priv.h"

#include "compile/grad/grad.h"

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

static Value *slot(Net *n, Slots *l, const char *kind, const NetParam *p) {
  StateSpec s = p->spec;
  s.name = xasprintf("opt/%s/%s", kind, p->spec.name);
  s.kind = STATE_SLOT;
  s.init = INIT(INIT_CONST, 0);
  Value *arg = b_arg(&n->b, p->arg->type);
  arg->name = arena_str(n->b.m->arena, str_from(s.name));
  *vec_push(&l->spec) = s;
  *vec_push(&l->arg) = arg;
  *vec_push(&l->next) = NULL;
  return arg;
}

static Value *scaled(Build *b, Value *x, Value *scalar) {
  return b_mul(b, x, b_bcast_scalar(b, scalar, x->type));
}

static void sgd(Net *n, const OptConfig *o, NetParam *p, Value *g, Value *lr, Slots *l) {
  Build *b = &n->b;
  if (o->decay > 0 && p->spec.decay) g = b_add(b, g, b_muls(b, p->arg, o->decay));
  if (o->momentum <= 0) {
    p->next = b_sub(b, p->arg, scaled(b, g, lr));
    return;
  }
  Value *m = slot(n, l, "momentum", p);
  if (o->style == STYLE_KERAS) {
    Value *step = scaled(b, g, lr), *v = b_sub(b, b_muls(b, m, o->momentum), step);
    p->next = b_add(b, p->arg, o->nesterov ? b_sub(b, b_muls(b, v, o->momentum), step) : v);
    l->next.v[l->next.n - 1] = v;
  } else {
    Value *v = b_add(b, b_muls(b, m, o->momentum), g);
    Value *d = o->nesterov ? b_add(b, g, b_muls(b, v, o->momentum)) : v;
    p->next = b_sub(b, p->arg, scaled(b, d, lr));
    l->next.v[l->next.n - 1] = v;
  }
}

/* c1, c2: 1 - beta^t, scalars of this step */
static void adam(Net *n, const OptConfig *o, NetParam *p, Value *g, Value *lr, Value *c1, Value *c2,
                 Slots *l) {
  Build *b = &n->b;
  Value *m0 = slot(n, l, "m", p), *v0 = slot(n, l, "v", p);
  Value *m = b_add(b, b_muls(b, m0, o->beta1), b_muls(b, g, 1 - o->beta1));
  Value *v = b_add(b, b_muls(b, v0, o->beta2), b_muls(b, b_mul(b, g, g), 1 - o->beta2));
  l->next.v[l->next.n - 2] = m;
  l->next.v[l->next.n - 1] = v;
  Value *step;
  if (o->style == STYLE_KERAS) { /* lr sqrt(c2) / c1 * m / (sqrt(v) + eps) */
    Value *alpha = b_div(b, b_mul(b, lr, b_sqrt(b, c2)), c1);
    step = b_div(b, scaled(b, m, alpha), b_adds(b, b_sqrt(b, v), o->eps));
  } else { /* lr (m / c1) / (sqrt(v / c2) + eps) */
    Value *root = b_sqrt(b, b_div(b, v, b_bcast_scalar(b, c2, v->type)));
    step = b_div(b, scaled(b, m, b_div(b, lr, c1)), b_adds(b, root, o->eps));
  }
  if (o->kind == OPT_ADAMW && o->decay > 0 && p->spec.decay)
    step = b_add(b, step, scaled(b, b_muls(b, p->arg, o->decay), lr));
  p->next = b_sub(b, p->arg, step);
}

Err *opt_apply(Net *n, const OptConfig *o, Value *loss, Value **out_lr, StateSpec **slots,
               Value ***slot_args, Value ***slot_next, int *n_slots) {
  Build *b = &n->b;
  int np = n->params.n;
  Value **wrt = xcalloc((size_t)np + 1, sizeof *wrt), **g = xcalloc((size_t)np + 1, sizeof *g);
  for (int i = 0; i < np; i++) wrt[i] = n->params.v[i].arg;
  Err *e = grad_append(b, loss, np, wrt, g);
  if (!e) {
    Slots l = {0};
    for (int i = 0; i < np; i++) g[i] = net_mean_over_replicas(n, g[i]);
    if (o->clip > 0) clip(b, np, g, o->clip);
    Value *lr = schedule(b, o, n->step), *c1 = NULL, *c2 = NULL;
    if (o->kind != OPT_SGD) {
      Value *t = b_adds(b, b_convert(b, n->step, DT_F32), 1), *one = b_scalar(b, DT_F32, 1);
      c1 = b_sub(b, one, b_pow(b, b_scalar(b, DT_F32, o->beta1), t));
      c2 = b_sub(b, one, b_pow(b, b_scalar(b, DT_F32, o->beta2), t));
    }
    for (int i = 0; i < np; i++) {
      NetParam *p = &n->params.v[i];
      if (o->kind == OPT_SGD) sgd(n, o, p, g[i], lr, &l);
      else adam(n, o, p, g[i], lr, c1, c2, &l);
    }
    *out_lr = lr;
    *slots = l.spec.v;
    *slot_args = l.arg.v;
    *slot_next = l.next.v;
    *n_slots = l.spec.n;
  }
  free(wrt);
  free(g);
  return e;
}
