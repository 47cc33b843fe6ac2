/* interpreter.run_parallel: functions on a grid of processes.
 *
 * One function for all processes is an ordinary run. Different functions get a thread each, of
 * which one runs at a time (the baton); a receive or a collective whose partners are not there yet
 * passes the baton on. When all wait, the programs are in a deadlock, which is reported.
 */
#include "interp/interp_priv.h"

#include <pthread.h>

typedef struct Baton {
  pthread_mutex_t lock; /* held by the thread that runs */
  pthread_cond_t moved;
  int live, waiting;
  uint64_t progress;
  bool stuck;
} Baton;

Err *baton_wait(Run *run, const Op *op) {
  Baton *b = run->baton;
  if (!b) return op_err(op, ERR_PRECONDITION, "waits for something that nobody sends");
  uint64_t seen = b->progress;
  b->waiting++;
  while (b->progress == seen && b->waiting < b->live && !b->stuck)
    pthread_cond_wait(&b->moved, &b->lock);
  if (b->progress != seen) return NULL; /* baton_progress has reset `waiting` */
  b->stuck = true;
  pthread_cond_broadcast(&b->moved);
  return op_err(op, ERR_PRECONDITION, "the programs wait for each other");
}

void baton_progress(Run *run) {
  if (!run->baton) return;
  run->baton->progress++;
  run->baton->waiting = 0;
  pthread_cond_broadcast(&run->baton->moved);
}

Run *run_root(Run *run) {
  while (run->parent) run = run->parent;
  return run;
}

void parallel_free(Run *run) {
  for (int i = 0; i < run->channels.n; i++) {
    Channel *c = run->channels.v[i];
    for (int k = 0; k < c->queue.n; k++) {
      for (int j = 0; j < c->queue.v[k].n; j++) tensor_release(c->queue.v[k].t[j]);
      free(c->queue.v[k].t);
    }
    vec_free(&c->queue);
    free(c);
  }
  vec_free(&run->channels);
  for (int k = 0; k < run->infeed.n; k++) {
    for (int j = 0; j < run->infeed.v[k].n; j++) tensor_release(run->infeed.v[k].t[j]);
    free(run->infeed.v[k].t);
  }
  vec_free(&run->infeed);
  meetings_free(run);
}

typedef struct Unit { /* one program and the processes that run it */
  Run *run;
  const Func *f;
  uint8_t *active;
  Shards *args, *results;
  int n_args, n_results;
  Err *err;
  pthread_t thread;
} Unit;

static void *unit_run(void *arg) {
  Unit *u = arg;
  Baton *b = u->run->baton;
  if (b) pthread_mutex_lock(&b->lock);
  Ctx c = {.run = u->run, .n = u->run->n, .active = u->active};
  u->err = ctx_call(&c, u->f, u->args, u->n_args, u->results, u->n_results);
  if (b) {
    b->live--;
    pthread_cond_broadcast(&b->moved);
    pthread_mutex_unlock(&b->lock);
  }
  return NULL;
}

/* programs: rows are replicas, columns partitions. */
static Err *grid_of(const Op *op, const Module *m, int *replicas, int *partitions,
                    const Func ***out) {
  const Attr *a = op_attr(op, "programs");
  if (!m || !a || a->kind != AT_ARRAY || !a->n || a->items[0]->kind != AT_ARRAY || !a->items[0]->n)
    return op_err(op, ERR_INVALID, "programs is not a grid of functions");
  *replicas = a->n;
  *partitions = a->items[0]->n;
  const Func **f = xcalloc((size_t)*replicas * (size_t)*partitions, sizeof *f);
  for (int r = 0; r < *replicas; r++)
    for (int p = 0; p < *partitions; p++) {
      const Attr *row = a->items[r];
      const Func *found = NULL;
      if (row->kind == AT_ARRAY && row->n == *partitions) found = module_func(m, row->items[p]->s);
      if (!found || !found->body) {
        free(f);
        return op_err(op, ERR_INVALID, "no function for replica %d, partition %d", r, p);
      }
      f[r * *partitions + p] = found;
    }
  *out = f;
  return NULL;
}

static Err *fill_infeed(const Op *op, Run *run, Ctx *c) {
  const Attr *a = op_attr(op, "infeed");
  for (int i = 0; a && a->kind == AT_ARRAY && i < a->n; i++) {
    const Func *f = module_func(run->module, a->items[i]->s);
    if (!f || !f->body)
      return op_err(op, ERR_INVALID, "no function @%.*s", STR_ARG(a->items[i]->s));
    int n = f->body->last->n_operands;
    Shards *res = xcalloc((size_t)n + 1, sizeof *res);
    Err *e = ctx_call(c, f, NULL, 0, res, n);
    if (!e) {
      Message m = {n, xcalloc((size_t)n + 1, sizeof(Tensor *))};
      for (int k = 0; k < n; k++) {
        m.t[k] = tensor_retain(shards_at(&res[k], 0));
        shards_free(&res[k]);
      }
      *vec_push(&run->infeed) = m;
    }
    free(res);
    if (e) return e;
  }
  return NULL;
}

typedef struct Units {
  Unit *v;
  int n;
  int *of; /* the unit of each process */
} Units;

static Unit unit_make(Run *run, const Func *f) {
  Unit u = {.run = run,
            .f = f,
            .active = xcalloc((size_t)run->n, 1),
            .n_args = f->body->n_args,
            .n_results = f->body->last->n_operands};
  u.args = xcalloc((size_t)u.n_args + 1, sizeof(Shards));
  u.results = xcalloc((size_t)u.n_results + 1, sizeof(Shards));
  for (int i = 0; i < u.n_args; i++) u.args[i] = shards_many(run->n);
  return u;
}

static void units_free(Units *us) {
  for (int i = 0; i < us->n; i++) {
    Unit *u = &us->v[i];
    for (int k = 0; k < u->n_args; k++) shards_free(&u->args[k]);
    for (int k = 0; k < u->n_results; k++) shards_free(&u->results[k]);
    free(u->args);
    free(u->results);
    free(u->active);
  }
  free(us->v);
  free(us->of);
}

/* One unit for each function of the grid. Operands come process by process. */
static Err *units_of(Eval *e, Run *run, const Func **grid, Units *us) {
  int at = 0, self = 0;
  while (self < e->ctx->n - 1 && !e->ctx->active[self]) self++;
  us->v = xcalloc((size_t)run->n, sizeof *us->v);
  us->of = xcalloc((size_t)run->n, sizeof *us->of);
  for (int p = 0; p < run->n; p++) {
    int i = 0;
    while (i < us->n && us->v[i].f != grid[p]) i++;
    if (i == us->n) us->v[us->n++] = unit_make(run, grid[p]);
    Unit *u = &us->v[i];
    us->of[p] = i;
    u->active[p] = 1;
    if (e->n_in - at < u->n_args)
      return op_err(e->op, ERR_INVALID, "too few operands for the programs");
    for (int k = 0; k < u->n_args; k++)
      u->args[k].t[p] = tensor_retain(shards_at(&e->sin[at++], self));
  }
  if (at != e->n_in)
    return op_err(e->op, ERR_INVALID, "%d operands for programs of %d arguments", e->n_in, at);
  return NULL;
}

static Err *units_run(Run *run, Units *us) {
  if (us->n == 1) {
    unit_run(&us->v[0]);
    return us->v[0].err;
  }
  Baton b = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER, .live = us->n};
  Err *err = NULL;
  run->baton = &b;
  pthread_mutex_lock(&b.lock);
  for (int i = 0; i < us->n; i++) pthread_create(&us->v[i].thread, NULL, unit_run, &us->v[i]);
  pthread_mutex_unlock(&b.lock);
  for (int i = 0; i < us->n; i++) {
    pthread_join(us->v[i].thread, NULL);
    if (!err) err = us->v[i].err;
    else err_free(us->v[i].err);
  }
  run->baton = NULL;
  return err;
}

/* Results go out as operands come in: process by process. */
static Err *units_results(Eval *e, int n, const Units *us) {
  int at = 0;
  for (int p = 0; p < n; p++) {
    Unit *u = &us->v[us->of[p]];
    if (e->n_out - at < u->n_results)
      return op_err(e->op, ERR_INVALID, "the programs give more than %d results", e->n_out);
    for (int i = 0; i < u->n_results; i++)
      e->sout[at++] = shards_one(tensor_retain(shards_at(&u->results[i], p)));
  }
  if (at != e->n_out)
    return op_err(e->op, ERR_INVALID, "the programs give %d results, not %d", at, e->n_out);
  return NULL;
}

Err *sem_interpreter_run_parallel(Eval *e) {
  int replicas = 0, partitions = 0;
  const Func **grid = NULL;
  TRY(grid_of(e->op, e->run->module, &replicas, &partitions, &grid));
  Run *run = run_new(e->run->module, replicas, partitions);
  run->parent = e->run;
  uint8_t *all = xmalloc((size_t)run->n);
  memset(all, 1, (size_t)run->n);
  Ctx c = {.run = run, .n = run->n, .active = all};
  Units us = {0};
  Err *err = units_of(e, run, grid, &us);
  if (!err) err = fill_infeed(e->op, run, &c);
  if (!err) err = units_run(run, &us);
  if (!err) err = units_results(e, run->n, &us);
  units_free(&us);
  free(all);
  free(grid);
  run_free(run);
  return err;
}
