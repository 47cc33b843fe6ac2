/* A network under construction, and the step program around it: forward ops, gradient,
 * optimiser, donated state. */
#include "train/train_priv.h"

#include "compile/grad/grad.h"

#include <stdio.h>
#include <stdlib.h>

NetScope net_enter(Net *n, const char *fmt, ...) {
  NetScope s = {strlen(n->scope), n->b.loc};
  char name[128];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(name, sizeof name, fmt, ap);
  va_end(ap);
  snprintf(n->scope + s.len, sizeof n->scope - s.len, "%s%s", s.len ? "/" : "", name);
  b_scope(&n->b, name);
  return s;
}

void net_leave(Net *n, NetScope s) {
  n->scope[s.len] = 0;
  n->b.loc = s.loc;
}

static char *scoped(const Net *n, const char *name) {
  return xasprintf("%s%s%s", n->scope, *n->scope ? "/" : "", name);
}

static NetParam *add_state(Net *n, StateKind kind, const char *name, int rank, const int64_t *dims,
                           Init init) {
  NetParam *p = kind == STATE_PARAM ? vec_push(&n->params) : vec_push(&n->stats);
  *p = (NetParam){
      .spec = {.name = scoped(n, name), .kind = kind, .type = DT_F32, .rank = rank, .init = init}};
  assert(rank <= COUNT_OF(p->spec.dims));
  memcpy(p->spec.dims, dims, sizeof *dims * (size_t)rank);
  p->arg = b_arg(&n->b, b_type(&n->b, DT_F32, rank, dims));
  p->arg->name = arena_str(n->b.m->arena, str_from(p->spec.name));
  return p;
}

Value *net_param(Net *n, const char *name, int rank, const int64_t *dims, Init init,
                 unsigned flags) {
  NetParam *p = add_state(n, STATE_PARAM, name, rank, dims, init);
  p->spec.decay = !(flags & PARAM_NO_DECAY);
  return p->arg;
}

Value *net_stat(Net *n, const char *name, int rank, const int64_t *dims, double initial) {
  return add_state(n, STATE_STAT, name, rank, dims, INIT(INIT_CONST, initial))->arg;
}

void net_set_stat(Net *n, Value *stat, Value *next) {
  for (int i = 0; i < n->stats.n; i++)
    if (n->stats.v[i].arg == stat) n->stats.v[i].next = next;
}

Value *net_stop_gradient(Net *n, Value *x) {
  if (x->def) op_set_attr(n->b.m, x->def, STR(GRAD_STOP), attr_unit(n->b.m));
  return x;
}

Value *net_mean_over_replicas(Net *n, Value *x) {
  Build *b = &n->b;
  if (n->replicas < 2) return x;
  int64_t *ids = ARENA_ARRAY(b->m->arena, int64_t, n->replicas), dims[2] = {1, n->replicas};
  for (int i = 0; i < n->replicas; i++) ids[i] = i;
  NamedAttr a = {STR("replica_groups"), attr_tensor_i64(b->m, 2, dims, ids)};
  Region *add = b_combiner(b, OP_ADD, b_dtype(x));
  Op *sum = b_op(b, OP_ALL_REDUCE, 1, &x, 1, &x->type, 1, &a, 1, &add);
  return b_muls(b, &sum->results[0], 1.0 / n->replicas);
}

/* ---- step programs --------------------------------------------------------------------------- */

typedef struct StateList {
  VEC(StateSpec) specs;
  VEC(Value *) args, next;
} StateList;

static void state_add(StateList *l, StateSpec spec, Value *arg, Value *next) {
  *vec_push(&l->specs) = spec;
  *vec_push(&l->args) = arg;
  *vec_push(&l->next) = next;
}

/* The marks served the gradient and mean nothing to a plugin. */
static void strip_marks(Module *m, Region *r) {
  for (Op *op = r->first; op; op = op->next) op_set_attr(m, op, STR(GRAD_STOP), NULL);
}

static Value *pack_metrics(Build *b, int n, Value *const *v) {
  Value *parts[4];
  int64_t one = 1;
  for (int i = 0; i < n; i++) parts[i] = b_reshape(b, v[i], 1, &one);
  return b_concat(b, n, parts, 0);
}

static Err *finish_training(Net *n, const TrainConfig *c, NetOut out, StateList *l,
                            Value **metrics) {
  Build *b = &n->b;
  Value *lr, **slot_args, **slot_next;
  StateSpec *slots;
  int n_slots;
  const Loc *outer = b_scope(b, "optimizer");
  TRY(opt_apply(n, &c->opt, out.loss, &lr, &slots, &slot_args, &slot_next, &n_slots));
  for (int i = 0; i < n->params.n; i++)
    state_add(l, n->params.v[i].spec, n->params.v[i].arg, n->params.v[i].next);
  for (int i = 0; i < n->stats.n; i++) {
    NetParam *s = &n->stats.v[i];
    state_add(l, s->spec, s->arg, s->next ? net_mean_over_replicas(n, s->next) : s->arg);
  }
  for (int i = 0; i < n_slots; i++) state_add(l, slots[i], slot_args[i], slot_next[i]);
  free(slots);
  free(slot_args);
  free(slot_next);
  StateSpec step = {.name = xstrdup("step"), .kind = STATE_COUNTER, .type = DT_I32};
  state_add(l, step, n->step, b_add(b, n->step, b_scalar_i64(b, DT_I32, 1)));
  StateSpec seed = {
      .name = xstrdup("seed"), .kind = STATE_COUNTER, .type = DT_U32, .rank = 1, .dims = {2}};
  state_add(l, seed, n->seed, n->seed);
  *metrics = net_mean_over_replicas(
      n, pack_metrics(b, 3, (Value *[]){out.loss, b_div(b, out.correct, out.count), lr}));
  b->loc = outer;
  return NULL;
}

Err *step_build(const Model *model, const TrainConfig *c, const Data *d, bool training,
                StepProgram *out) {
  if (c->size && !model->sized)
    return err_new(ERR_INVALID, "model '%s' comes in one size: leave --size out", model->name);
  Module *m = module_new();
  Net n = {
      .training = training, .compute = c->compute ? c->compute : DT_F32, .replicas = c->replicas};
  n.f = b_func(&n.b, m, "main");
  m->name = arena_printf(m->arena, "%s_%s", model->name, training ? "train" : "eval");
  m->file = m->name;
  NetScope whole = net_enter(&n, "%s", model->name);
  n.scope[0] = 0; /* names of parameters do not repeat the model */
  Value *in[3] = {0};
  for (int i = 0; i < d->n_fields; i++) {
    Field f = d->fields[i];
    int64_t dims[6] = {c->batch};
    memcpy(dims + 1, f.dims, sizeof(int64_t) * (size_t)f.rank);
    in[i] = b_arg(&n.b, b_type(&n.b, f.type, f.rank + 1, dims));
    in[i]->name = str_from(f.name);
  }
  if (training) {
    n.step = b_arg(&n.b, b_type(&n.b, DT_I32, 0, NULL));
    n.seed = b_arg(&n.b, b_type(&n.b, DT_U32, 1, (int64_t[]){2}));
  }
  NetOut o = {0};
  StateList l = {0};
  Value *metrics = NULL;
  Err *e = model->build(&n, c, d, in, &o);
  net_leave(&n, whole);
  if (!e && training) e = finish_training(&n, c, o, &l, &metrics);
  if (!e && !training) {
    for (int i = 0; i < n.params.n; i++) state_add(&l, n.params.v[i].spec, n.params.v[i].arg, NULL);
    for (int i = 0; i < n.stats.n; i++) state_add(&l, n.stats.v[i].spec, n.stats.v[i].arg, NULL);
    metrics = pack_metrics(&n.b, 3, (Value *[]){o.loss, o.correct, o.count});
  }
  if (!e) {
    int ns = l.specs.n, total = ns + d->n_fields;
    Value **order = xcalloc((size_t)total + 1, sizeof *order);
    memcpy(order, l.args.v, sizeof *order * (size_t)ns);
    for (int i = 0; i < d->n_fields; i++) order[ns + i] = in[i];
    b_order_args(n.f, total, order);
    free(order);
    strip_marks(m, n.f->body);
    if (training) *vec_push(&l.next) = metrics;
    b_return(&n.b, training ? ns + 1 : 1, training ? l.next.v : &metrics);
    for (int i = 0; training && i < ns; i++)
      b_arg_attr(n.f, i, "tf.aliasing_output", attr_int(m, DT_I32, i));
    e = err_wrap(ir_verify(m), "in the program built for model '%s'", model->name);
  }
  if (!e) {
    *out =
        (StepProgram){.m = m, .n_state = l.specs.n, .n_params = n.params.n, .n_stats = n.stats.n};
    out->state = l.specs.v;
    l.specs.v = NULL;
    out->n_inputs = d->n_fields;
    for (int i = 0; i < d->n_fields; i++) {
      out->inputs[i] = d->fields[i];
      out->inputs[i].rank++;
      out->inputs[i].dims[0] = c->batch;
      memcpy(out->inputs[i].dims + 1, d->fields[i].dims,
             sizeof(int64_t) * (size_t)d->fields[i].rank);
    }
    for (int i = 0; i < n.params.n; i++) out->n_weights += type_count(n.params.v[i].arg->type);
  } else {
    module_free(m);
  }
  vec_free(&l.specs);
  vec_free(&l.args);
  vec_free(&l.next);
  vec_free(&n.params);
  vec_free(&n.stats);
  return e;
}

void step_free(StepProgram *p) {
  for (int i = 0; i < p->n_state; i++) free(p->state[i].name);
  free(p->state);
  module_free(p->m);
  *p = (StepProgram){0};
}
