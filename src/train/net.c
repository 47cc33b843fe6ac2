/* A network under construction: scopes, parameters, statistics, caches. */
#include "train/train_priv.h"

#include "compile/grad/grad.h"

#include <stdio.h>
#include <stdlib.h>

static NetScope enter(Net *n, const char *fmt, va_list ap) {
  NetScope s = {.len = strlen(n->scope), .loc = n->b.loc};
  char name[128];
  vsnprintf(name, sizeof name, fmt, ap);
  snprintf(n->scope + s.len, sizeof n->scope - s.len, "%s%s", s.len ? "/" : "", name);
  b_scope(&n->b, name);
  return s;
}

NetScope net_enter(Net *n, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  NetScope s = enter(n, fmt, ap);
  va_end(ap);
  return s;
}

NetScope net_block(Net *n, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  NetScope s = enter(n, fmt, ap);
  va_end(ap);
  *vec_push(&n->blocks) = (NetBlock){.before = n->b.r->last};
  s.block = n->blocks.n;
  return s;
}

void net_leave(Net *n, NetScope s) {
  if (s.block) n->blocks.v[s.block - 1].last = n->b.r->last;
  n->scope[s.len] = 0;
  n->b.loc = s.loc;
}

static char *scoped(const Net *n, const char *name) {
  return xasprintf("%s%s%s", n->scope, *n->scope ? "/" : "", name);
}

static Value *constant(Net *n, const NetParam *p, Type *t) {
  const NamedTensor *w = NULL;
  Err *e = n->weight(n->weight_arg, &p->spec, &w);
  if (n->weight_error) err_free(e);
  else n->weight_error = e;
  return w ? b_const(&n->b, t, w->data) : b_full(&n->b, t, 0);
}

static NetParam *add_state(Net *n, StateKind kind, const char *name, int rank, const int64_t *dims,
                           Init init) {
  NetParam *p = kind == STATE_PARAM ? vec_push(&n->params) : vec_push(&n->stats);
  *p = (NetParam){
      .spec = {.name = scoped(n, name), .kind = kind, .type = DT_F32, .rank = rank, .init = init}};
  assert(rank <= COUNT_OF(p->spec.dims));
  memcpy(p->spec.dims, dims, sizeof *dims * (size_t)rank);
  Type *t = b_type(&n->b, DT_F32, rank, dims);
  if (n->weight) {
    p->arg = constant(n, p, t);
    return p;
  }
  p->arg = b_arg(&n->b, t);
  p->arg->name = arena_str(n->b.m->arena, str_from(p->spec.name));
  return p;
}

Value *net_param(Net *n, const char *name, int rank, const int64_t *dims, Init init,
                 unsigned flags) {
  NetParam *p = add_state(n, STATE_PARAM, name, rank, dims, init);
  p->spec.decay = !(flags & PARAM_NO_DECAY);
  p->spec.frozen = n->lora > 0 && !(flags & PARAM_LORA);
  return p->arg;
}

Value *net_stat(Net *n, const char *name, int rank, const int64_t *dims, double initial) {
  return add_state(n, STATE_STAT, name, rank, dims, INIT(INIT_CONST, initial))->arg;
}

void net_set_stat(Net *n, Value *stat, Value *next) {
  for (int i = 0; i < n->stats.n; i++)
    if (n->stats.v[i].arg == stat) n->stats.v[i].next = next;
}

Value *net_cache(Net *n, const char *name, DType type, int rank, const int64_t *dims) {
  NetParam *p = vec_push(&n->caches);
  *p = (NetParam){
      .spec = {.name = scoped(n, name), .kind = STATE_CACHE, .type = type, .rank = rank}};
  memcpy(p->spec.dims, dims, sizeof *dims * (size_t)rank);
  p->arg = b_arg(&n->b, b_type(&n->b, type, rank, dims));
  p->arg->name = arena_str(n->b.m->arena, str_from(p->spec.name));
  return p->arg;
}

void net_set_cache(Net *n, Value *cache, Value *next) {
  for (int i = 0; i < n->caches.n; i++)
    if (n->caches.v[i].arg == cache) n->caches.v[i].next = next;
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
