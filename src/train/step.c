/* Step programs: the network, its gradients, the optimizer around them, donated state; and the
 * programs that only ask a network: evaluation, forward, token by token. */
#include "train/train_priv.h"

#include "compile/grad/grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_SCALE 65536.0 /* of the loss in f16, as PyTorch's GradScaler */
#define CALM_STEPS 2000     /* without overflow, then it doubles */

typedef struct StateList {
  VEC(StateSpec) specs;
  VEC(Value *) args, next;
} StateList;

static void state_add(StateList *l, StateSpec spec, Value *arg, Value *next) {
  *vec_push(&l->specs) = spec;
  *vec_push(&l->args) = arg;
  *vec_push(&l->next) = next;
}

static void state_free(StateList *l) {
  vec_free(&l->specs);
  vec_free(&l->args);
  vec_free(&l->next);
}

static void net_free(Net *n) {
  vec_free(&n->params);
  vec_free(&n->stats);
  vec_free(&n->caches);
  vec_free(&n->blocks);
}

/* The marks served the gradient and mean nothing to a plugin. */
static void strip_marks(Module *m) {
  for (int i = 0; i < m->funcs.n; i++)
    for (Op *op = m->funcs.v[i]->body->first; op; op = op->next)
      op_set_attr(m, op, STR(GRAD_STOP), NULL);
}

static Value *pack(Build *b, int n, Value *const *v) {
  Value *parts[4];
  int64_t one = 1;
  for (int i = 0; i < n; i++) parts[i] = b_reshape(b, v[i], 1, &one);
  return b_concat(b, n, parts, 0);
}

/* ---- opening a function ---------------------------------------------------------------------- */

static Value *named_arg(Build *b, Type *t, const char *name) {
  Value *v = b_arg(b, t);
  v->name = arena_str(b->m->arena, str_from(name));
  return v;
}

static void add_inputs(Net *n, const Data *d, int64_t batch, int fields, Value **in) {
  for (int i = 0; i < fields; i++) {
    Field f = d->fields[i];
    int64_t dims[7] = {batch};
    memcpy(dims + 1, f.dims, sizeof(int64_t) * (size_t)f.rank);
    in[i] = named_arg(&n->b, b_type(&n->b, f.type, f.rank + 1, dims), f.name);
  }
}

static void add_counters(Net *n, bool f16) {
  Build *b = &n->b;
  n->step = named_arg(b, b_type(b, DT_I32, 0, NULL), "step");
  n->seed = named_arg(b, b_type(b, DT_U32, 1, (int64_t[]){2}), "seed");
  if (f16) n->scale = named_arg(b, b_type(b, DT_F32, 0, NULL), "loss_scale");
}

static void record_inputs(StepProgram *out, const Data *d, int64_t batch, int fields) {
  out->n_inputs = fields;
  for (int i = 0; i < fields; i++) {
    Field *f = &out->inputs[i];
    *f = d->fields[i];
    f->rank++;
    f->dims[0] = batch;
    memcpy(f->dims + 1, d->fields[i].dims, sizeof(int64_t) * (size_t)d->fields[i].rank);
  }
}

/* The type of products and activations; those of f8 are bf16 but for what net_f8 marks. */
static DType compute_of(const TrainConfig *c) {
  return c->compute == DT_F8E4M3FN ? DT_BF16 : c->compute ? c->compute : DT_F32;
}

static Net open_net(const Model *model, const TrainConfig *c) {
  return (Net){.model = model,
               .compute = compute_of(c),
               .f8 = c->compute == DT_F8E4M3FN,
               .f8_attention = c->f8_attention,
               .replicas = c->replicas,
               .lora = c->lora};
}

static Module *open_module(const Model *model, const char *kind) {
  Module *m = module_new();
  m->name = arena_printf(m->arena, "%s_%s", model->name, kind);
  for (size_t i = 0; i < m->name.n; i++) /* gpt2-small: a symbol in MLIR */
    if (m->name.p[i] == '-') ((char *)m->name.p)[i] = '_';
  m->file = m->name;
  return m;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Builds the model and the gradients of its mean loss, times the scale of f16, into g. */
static Err *gradients(Net *n, const Model *model, const TrainConfig *c, const Data *d,
                      Value *const *in, NetOut *o, Value ***g) {
  Build *b = &n->b;
  NetScope whole = net_enter(n, "%s", model->name);
  n->scope[0] = 0; /* names of parameters do not repeat the model */
  Err *e = model->build(n, c, d, in, o);
  net_leave(n, whole);
  if (e) return e;
  int np = n->params.n;
  Value **wrt = xcalloc((size_t)np + 1, sizeof *wrt);
  *g = xcalloc((size_t)np + 1, sizeof **g);
  Value **some = xcalloc((size_t)np + 1, sizeof *some);
  int learnt = 0;
  for (int i = 0; i < np; i++)
    if (!n->params.v[i].spec.frozen) wrt[learnt++] = n->params.v[i].arg;
  Op *forward_end = b->r->last;
  Value *loss = n->scale ? b_mul(b, o->loss, n->scale) : o->loss;
  e = grad_append(b, loss, learnt, wrt, some);
  for (int i = 0, k = 0; i < np && !e; i++)
    (*g)[i] = n->params.v[i].spec.frozen ? b_full(b, n->params.v[i].arg->type, 0) : some[k++];
  free(some);
  if (!e && n->f8) f8_products(n, &forward_end);
  if (!e && c->remat) remat_blocks(n, forward_end);
  free(wrt);
  return e;
}

/* ---- a batch in parts ------------------------------------------------------------------------ */

/* Carried by the loop over the parts: the part's number, then what the part reads and is the same
 * for all, then statistics, then sums. */
typedef struct Carry {
  VEC(Value *) v;
  int params, inputs, counters, stats, sums; /* where they begin */
} Carry;

/* The function of one part: (parameters, statistics, inputs, counters, part) -> (gradients,
 * statistics, loss, right answers, answers). */
static Err *part_function(Net *part, const Model *model, const TrainConfig *c, const Data *d,
                          Module *m) {
  TrainConfig small = *c;
  small.batch = c->batch / c->accumulate;
  part->f = b_func(&part->b, m, "part_of_batch");
  part->f->is_private = true;
  Value *in[DATA_FIELDS] = {0}, **g = NULL;
  add_inputs(part, d, small.batch, d->n_fields, in);
  add_counters(part, compute_of(c) == DT_F16);
  part->part = named_arg(&part->b, b_type(&part->b, DT_U32, 0, NULL), "part");
  NetOut o = {0};
  Err *e = gradients(part, model, &small, d, in, &o, &g);
  if (e) return free(g), e;
  VEC(Value *) args = {0}, res = {0};
  for (int i = 0; i < part->params.n; i++) {
    *vec_push(&args) = part->params.v[i].arg;
    *vec_push(&res) = g[i];
  }
  for (int i = 0; i < part->stats.n; i++) {
    NetParam *s = &part->stats.v[i];
    *vec_push(&args) = s->arg;
    *vec_push(&res) = s->next ? s->next : s->arg;
  }
  for (int i = 0; i < d->n_fields; i++) *vec_push(&args) = in[i];
  *vec_push(&args) = part->step;
  *vec_push(&args) = part->seed;
  if (part->scale) *vec_push(&args) = part->scale;
  *vec_push(&args) = part->part;
  *vec_push(&res) = o.loss;
  *vec_push(&res) = o.correct;
  *vec_push(&res) = o.count;
  b_order_args(part->f, args.n, args.v);
  b_return(&part->b, res.n, res.v);
  vec_free(&args);
  vec_free(&res);
  free(g);
  return NULL;
}

static void carry_values(Net *n, const Data *d, Value *const *in, Carry *k) {
  Build *b = &n->b;
  *vec_push(&k->v) = b_scalar_i64(b, DT_I32, 0);
  k->params = k->v.n;
  for (int i = 0; i < n->params.n; i++) *vec_push(&k->v) = n->params.v[i].arg;
  k->inputs = k->v.n;
  for (int i = 0; i < d->n_fields; i++) *vec_push(&k->v) = in[i];
  k->counters = k->v.n;
  *vec_push(&k->v) = n->step;
  *vec_push(&k->v) = n->seed;
  if (n->scale) *vec_push(&k->v) = n->scale;
  k->stats = k->v.n;
  for (int i = 0; i < n->stats.n; i++) *vec_push(&k->v) = n->stats.v[i].arg;
  k->sums = k->v.n;
  for (int i = 0; i < n->params.n; i++) *vec_push(&k->v) = b_full(b, n->params.v[i].arg->type, 0);
  for (int i = 0; i < 3; i++) *vec_push(&k->v) = b_scalar(b, DT_F32, 0);
}

/* One turn: this part's examples are cut out, the function called, what it gives added. */
static void loop_body(Build *b, const Net *part, const Data *d, const Carry *k, int64_t size) {
  Value **a = b->r->args, *zero = b_scalar_i64(b, DT_I32, 0);
  Value *first = b_mul(b, a[0], b_scalar_i64(b, DT_I32, size));
  VEC(Value *) args = {0}, next = {0};
  for (int i = k->params; i < k->inputs; i++) *vec_push(&args) = a[i];
  for (int i = k->stats; i < k->sums; i++) *vec_push(&args) = a[i];
  for (int i = 0; i < d->n_fields; i++) {
    Value *x = a[k->inputs + i], *start[B_MAX_RANK];
    int64_t sizes[B_MAX_RANK];
    for (int r = 0; r < b_rank(x); r++) {
      start[r] = r ? zero : first;
      sizes[r] = r ? b_dim(x, r) : size;
    }
    *vec_push(&args) = b_dynamic_slice(b, x, start, sizes);
  }
  for (int i = k->counters; i < k->stats; i++) *vec_push(&args) = a[i];
  *vec_push(&args) = b_convert(b, a[0], DT_U32);
  const Region *f = part->f->body;
  int n_res = f->last->n_operands;
  Type **types = ARENA_ARRAY(b->m->arena, Type *, n_res + 1);
  for (int i = 0; i < n_res; i++) types[i] = f->last->operands[i]->type;
  NamedAttr callee = {STR("callee"), attr_symbol(b->m, part->f->name)};
  Op *call = b_op(b, OP_CALL, args.n, args.v, n_res, types, 1, &callee, 0, NULL);
  int np = k->inputs - k->params, ns = k->sums - k->stats;
  *vec_push(&next) = b_add(b, a[0], b_scalar_i64(b, DT_I32, 1));
  for (int i = k->params; i < k->stats; i++) *vec_push(&next) = a[i];
  for (int i = 0; i < ns; i++) *vec_push(&next) = &call->results[np + i];
  for (int i = 0; i < np + 3; i++)
    *vec_push(&next) = b_add(b, a[k->sums + i], &call->results[i < np ? i : ns + i]);
  b_return(b, next.n, next.v);
  vec_free(&args);
  vec_free(&next);
}

static void copy_params(Net *n, const Net *part) {
  for (int k = 0; k < part->params.n + part->stats.n; k++) {
    bool param = k < part->params.n;
    const NetParam *from = param ? &part->params.v[k] : &part->stats.v[k - part->params.n];
    NetParam *to = param ? vec_push(&n->params) : vec_push(&n->stats);
    *to = *from;
    to->arg = named_arg(&n->b, from->arg->type, from->spec.name);
    to->next = NULL;
  }
}

/* As gradients(), in c->accumulate turns of a loop: activations of one part at a time. */
static Err *gradients_in_parts(Net *n, const Model *model, const TrainConfig *c, const Data *d,
                               Value *const *in, NetOut *o, Value ***g) {
  Build *b = &n->b;
  if (c->batch % c->accumulate)
    return err_new(ERR_INVALID, "a batch of %lld does not divide into %lld parts (--accumulate)",
                   (long long)c->batch, (long long)c->accumulate);
  Net part = open_net(model, c);
  part.training = true;
  Err *e = part_function(&part, model, c, d, b->m);
  if (e) return net_free(&part), e;
  copy_params(n, &part);
  Carry k = {0};
  carry_values(n, d, in, &k);
  Type **types = ARENA_ARRAY(b->m->arena, Type *, k.v.n);
  for (int i = 0; i < k.v.n; i++) types[i] = k.v.v[i]->type;
  Build cond = {b->m, region_new(b->m, k.v.n, types), b->loc},
        body = {b->m, region_new(b->m, k.v.n, types), b->loc};
  Value *go = b_compare(&cond, "LT", cond.r->args[0], b_scalar_i64(&cond, DT_I32, c->accumulate));
  b_return(&cond, 1, &go);
  loop_body(&body, &part, d, &k, c->batch / c->accumulate);
  Region *regions[] = {cond.r, body.r};
  Op *loop = b_op(b, OP_WHILE, k.v.n, k.v.v, k.v.n, types, 0, NULL, 2, regions);
  double share = 1 / (double)c->accumulate;
  *g = xcalloc((size_t)n->params.n + 1, sizeof **g);
  for (int i = 0; i < n->params.n; i++) (*g)[i] = b_muls(b, &loop->results[k.sums + i], share);
  for (int i = 0; i < n->stats.n; i++) n->stats.v[i].next = &loop->results[k.stats + i];
  Value *last = &loop->results[k.sums + n->params.n];
  *o = (NetOut){.loss = b_muls(b, last, share), .correct = last + 1, .count = last + 2};
  vec_free(&k.v);
  net_free(&part);
  return NULL;
}

/* ---- the optimizer around them --------------------------------------------------------------- */

/* The gradients of the mean over replicas, with f16's scale taken out; *good: all are finite. */
static void settle(Net *n, Value **g, Value **good) {
  Build *b = &n->b;
  *good = NULL;
  for (int i = 0; i < n->params.n; i++) {
    g[i] = net_mean_over_replicas(n, g[i]);
    if (!n->scale) continue;
    Value *most = b_reduce_all(b, OP_MAXIMUM, b_abs(b, g[i])); /* of NaN: NaN */
    Value *finite = b_compare(b, "LT", most, b_scalar(b, DT_F32, INFINITY));
    *good = *good ? b_and(b, *good, finite) : finite;
    Value *out = b_div(b, b_scalar(b, DT_F32, 1), n->scale);
    g[i] = b_mul(b, g[i], b_bcast_scalar(b, out, g[i]->type));
  }
}

static Value *unless(Build *b, Value *good, Value *next, Value *old) {
  if (!good) return next;
  Value *pred = b_bcast_scalar(b, good, b_type_as(b, next->type, DT_I1));
  return b_select(b, pred, next, old);
}

/* The loss scale halves after an overflow and doubles after a while without. */
static void scale_state(Net *n, StateList *l, Value *good, Value *calm) {
  Build *b = &n->b;
  Value *zero = b_scalar_i64(b, DT_I32, 0), *more = b_add(b, calm, b_scalar_i64(b, DT_I32, 1));
  Value *up = b_compare(b, "GE", more, b_scalar_i64(b, DT_I32, CALM_STEPS));
  Value *grown = b_select(b, up, b_muls(b, n->scale, 2), n->scale);
  Value *lower = b_max(b, b_muls(b, n->scale, 0.5), b_scalar(b, DT_F32, 1));
  StateSpec scale = {.name = xstrdup("loss_scale"),
                     .kind = STATE_COUNTER,
                     .type = DT_F32,
                     .init = INIT(INIT_CONST, FIRST_SCALE)};
  state_add(l, scale, n->scale, b_select(b, good, grown, lower));
  StateSpec steps = {.name = xstrdup("calm_steps"), .kind = STATE_COUNTER, .type = DT_I32};
  state_add(l, steps, calm, b_select(b, good, b_select(b, up, zero, more), zero));
}

static Err *finish_training(Net *n, const TrainConfig *c, NetOut out, Value **g, StateList *l,
                            Value **metrics) {
  Build *b = &n->b;
  Value *lr, **slot_args, **slot_next, *good, *calm = NULL;
  StateSpec *slots;
  int n_slots;
  const Loc *outer = b_scope(b, "optimizer");
  if (n->scale) calm = named_arg(b, b_type(b, DT_I32, 0, NULL), "calm_steps");
  settle(n, g, &good);
  TRY(opt_apply(n, &c->opt, g, &lr, &slots, &slot_args, &slot_next, &n_slots));
  for (int i = 0; i < n->params.n; i++) {
    NetParam *p = &n->params.v[i];
    state_add(l, p->spec, p->arg, unless(b, good, p->next, p->arg));
  }
  for (int i = 0; i < n->stats.n; i++) {
    NetParam *s = &n->stats.v[i];
    state_add(l, s->spec, s->arg, s->next ? net_mean_over_replicas(n, s->next) : s->arg);
  }
  for (int i = 0; i < n_slots; i++)
    state_add(l, slots[i], slot_args[i], unless(b, good, slot_next[i], slot_args[i]));
  free(slots);
  free(slot_args);
  free(slot_next);
  StateSpec step = {.name = xstrdup("step"), .kind = STATE_COUNTER, .type = DT_I32};
  state_add(l, step, n->step, b_add(b, n->step, b_scalar_i64(b, DT_I32, 1)));
  StateSpec seed = {
      .name = xstrdup("seed"), .kind = STATE_COUNTER, .type = DT_U32, .rank = 1, .dims = {2}};
  state_add(l, seed, n->seed, n->seed);
  if (n->scale) scale_state(n, l, good, calm);
  *metrics = net_mean_over_replicas(
      n, pack(b, 3, (Value *[]){out.loss, b_div(b, out.correct, out.count), lr}));
  b->loc = outer;
  return NULL;
}

/* ---- closing it ------------------------------------------------------------------------------ */

/* Arguments in the order state, inputs; the new state and `result` returned; state donated. */
static Err *close_program(Net *n, const Model *model, StateList *l, int n_in, Value *const *in,
                          int n_out, Value *const *result, StepProgram *out) {
  Module *m = n->b.m;
  int ns = l->specs.n, total = ns + n_in, first = ns; /* first: of the state that is donated */
  Value **order = xcalloc((size_t)total + 1, sizeof *order);
  memcpy(order, l->args.v, sizeof *order * (size_t)ns);
  for (int i = 0; i < n_in; i++) order[ns + i] = in[i];
  b_order_args(n->f, total, order);
  free(order);
  strip_marks(m);
  VEC(Value *) results = {0};
  for (int i = 0; i < ns; i++) {
    if (!l->next.v[i]) continue;
    first = MIN(first, i);
    b_arg_attr(n->f, i, "tf.aliasing_output", attr_int(m, DT_I32, i - first));
    *vec_push(&results) = l->next.v[i];
  }
  for (int i = 0; i < n_out; i++) *vec_push(&results) = result[i];
  b_return(&n->b, results.n, results.v);
  vec_free(&results);
  Err *e = err_wrap(ir_verify(m), "in the program built for model '%s'", model->name);
  if (e) return e;
  *out = (StepProgram){.m = m, .n_state = ns, .n_params = n->params.n, .n_stats = n->stats.n};
  out->state = l->specs.v;
  l->specs.v = NULL;
  for (int i = 0; i < n->params.n; i++) out->n_weights += type_count(n->params.v[i].arg->type);
  return NULL;
}

static Err *check(const Model *model, const TrainConfig *c) {
  if (model->whole)
    return err_new(ERR_UNIMPLEMENTED,
                   "'%s' is a train step of its own: nothing is known of the network inside",
                   model->name);
  if (c->f8_attention && c->compute != DT_F8E4M3FN)
    return err_hint(err_new(ERR_INVALID, "--f8-attention without --precision f8"),
                    "it adds attention to what --precision f8 computes in 8 bits");
  if (c->size && !(model->reads & READ_SIZE))
    return err_new(ERR_INVALID, "model '%s' comes in one size: leave --size out", model->name);
  return NULL;
}

/* The network without gradients; parameters and statistics are the state. */
static Err *ask(Net *n, const Model *model, const TrainConfig *c, const Data *d, Value *const *in,
                NetOut *o, StateList *l) {
  NetScope whole = net_enter(n, "%s", model->name);
  n->scope[0] = 0;
  TRY(model->build(n, c, d, in, o));
  net_leave(n, whole);
  for (int i = 0; i < n->params.n; i++) state_add(l, n->params.v[i].spec, n->params.v[i].arg, NULL);
  for (int i = 0; i < n->stats.n; i++) state_add(l, n->stats.v[i].spec, n->stats.v[i].arg, NULL);
  return NULL;
}

/* Frees what is not in *out. */
static Err *done(Err *e, Net *n, StateList *l) {
  if (e) module_free(n->b.m);
  state_free(l);
  net_free(n);
  return e;
}

Err *step_build(const Model *model, const TrainConfig *c, const Data *d, bool training,
                StepProgram *out) {
  if (model->whole && training) return model->whole->build(model, c, d, out);
  if (model->whole && model->whole->eval) return model->whole->eval(model, c, d, out);
  TRY(check(model, c));
  Net n = open_net(model, c);
  n.training = training;
  n.f = b_func(&n.b, open_module(model, training ? "train" : "eval"), "main");
  NetOut o = {0};
  StateList l = {0};
  Value *in[DATA_FIELDS] = {0}, *metrics = NULL, **g = NULL;
  add_inputs(&n, d, c->batch, d->n_fields, in);
  Err *e;
  if (training) {
    add_counters(&n, compute_of(c) == DT_F16);
    e = (c->accumulate > 1 ? gradients_in_parts : gradients)(&n, model, c, d, in, &o, &g);
    if (!e) e = finish_training(&n, c, o, g, &l, &metrics);
    free(g);
  } else {
    e = ask(&n, model, c, d, in, &o, &l);
    if (!e) metrics = pack(&n.b, 3, (Value *[]){o.loss, o.correct, o.count});
  }
  if (!e) e = close_program(&n, model, &l, d->n_fields, in, 1, &metrics, out);
  if (!e) record_inputs(out, d, c->batch, d->n_fields);
  return done(e, &n, &l);
}

Err *forward_build_with(const Model *model, const TrainConfig *c, const Data *d,
                        Err *(*weight)(void *arg, const StateSpec *s, const NamedTensor **out),
                        void *arg, StepProgram *out) {
  TRY(check(model, c));
  Net n = open_net(model, c);
  n.forward = true;
  n.weight = weight;
  n.weight_arg = arg;
  n.f = b_func(&n.b, open_module(model, "forward"), "main");
  NetOut o = {0};
  StateList l = {0};
  Value *in[DATA_FIELDS] = {0};
  int fields = MAX(1, model->inputs);
  add_inputs(&n, d, c->batch, fields, in);
  Err *e = ask(&n, model, c, d, in, &o, &l);
  if (!e) e = n.weight_error;
  else err_free(n.weight_error);
  if (!e && weight) { /* nothing is left to give */
    for (int i = 0; i < l.specs.n; i++) free(l.specs.v[i].name);
    l.specs.n = l.args.n = l.next.n = 0;
  }
  if (!e) {
    Value *logits = b_convert(&n.b, o.logits, DT_F32);
    e = close_program(&n, model, &l, fields, in, 1, &logits, out);
  }
  if (!e) record_inputs(out, d, c->batch, fields);
  return done(e, &n, &l);
}

Err *forward_build(const Model *model, const TrainConfig *c, const Data *d, StepProgram *out) {
  return forward_build_with(model, c, d, NULL, NULL, out);
}

Err *decode_build(const Model *model, const TrainConfig *c, const Data *d, int64_t tokens,
                  StepProgram *out) {
  TRY(check(model, c));
  if (!model->generates) return err_new(ERR_UNIMPLEMENTED, "model '%s' makes no text", model->name);
  Data cut = *d; /* the same data with shorter examples */
  cut.fields[0].dims[0] = tokens;
  Net n = open_net(model, c);
  n.forward = true;
  n.context = c->length;
  n.f = b_func(&n.b, open_module(model, "decode"), "main");
  NetOut o = {0};
  StateList l = {0};
  Value *in[DATA_FIELDS] = {0};
  add_inputs(&n, &cut, c->batch, 1, in);
  in[1] = n.at = named_arg(&n.b, b_type(&n.b, DT_I32, 0, NULL), "position");
  Err *e = ask(&n, model, c, &cut, (Value *[]){in[0], NULL, NULL}, &o, &l);
  if (!e) {
    for (int i = 0; i < n.caches.n; i++)
      state_add(&l, n.caches.v[i].spec, n.caches.v[i].arg, n.caches.v[i].next);
    Value *logits = b_convert(&n.b, o.logits, DT_F32);
    e = close_program(&n, model, &l, 2, in, 1, &logits, out);
  }
  if (!e) record_inputs(out, &cut, c->batch, 1);
  return done(e, &n, &l);
}

void step_free(StepProgram *p) {
  for (int i = 0; i < p->n_state; i++) free(p->state[i].name);
  free(p->state);
  module_free(p->m);
  *p = (StepProgram){0};
}
