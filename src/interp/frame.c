/* What a run holds: values on several processes, and frames, which release a value after its last use. */
#include "interp/interp_priv.h"

#include <stdlib.h>

/* ---- values on several processes ----------------------------------------------------------- */

Tensor *shards_at(const Shards *s, int p) {
  return s->n == 0 ? NULL : s->n == 1 ? s->t[0] : s->t[p];
}

Shards shards_many(int n) { return (Shards){n, xcalloc((size_t)n, sizeof(Tensor *))}; }

Shards shards_one(Tensor *take) {
  Shards s = shards_many(1);
  s.t[0] = take;
  return s;
}

Shards shards_retain(const Shards *s) {
  Shards r = shards_many(s->n);
  for (int i = 0; i < s->n; i++)
    if (s->t[i]) r.t[i] = tensor_retain(s->t[i]);
  return r;
}

void shards_free(Shards *s) {
  for (int i = 0; i < s->n; i++) tensor_release(s->t[i]);
  free(s->t);
  *s = (Shards){0};
}

/* One entry for each process, so that some may be replaced. */
void shards_widen(Shards *s, int n) {
  if (s->n == n && n != 1) return;
  Shards w = shards_many(n);
  for (int p = 0; p < n; p++) {
    Tensor *t = shards_at(s, p);
    if (t) w.t[p] = tensor_retain(t);
  }
  shards_free(s);
  *s = w;
}

/* ---- when values die ----------------------------------------------------------------------- */

typedef struct Death {
  const Op *op; /* after this one */
  int id;
} Death;

struct Plan {
  const Func *func;
  int n;
  Death *deaths; /* sorted by op */
};

typedef struct PlanWalk {
  const Op **last;
  VEC(Death) deaths;
} PlanWalk;

static Err *plan_op(Op *op, void *arg) {
  PlanWalk *w = arg;
  for (int i = 0; i < op->n_operands; i++) {
    const Value *v = op->operands[i];
    const Region *home = v->def ? v->def->parent : v->region;
    const Op *user = op;
    while (user && user->parent != home) user = user->parent ? user->parent->parent : NULL;
    if (user) w->last[v->id] = user;
  }
  return NULL;
}

static int death_cmp(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const Death *)a)->op, y = (uintptr_t)((const Death *)b)->op;
  return x < y ? -1 : x > y;
}

static Err *plan_collect(Op *op, void *arg) {
  PlanWalk *w = arg;
  for (int i = 0; i < op->n_results; i++) {
    int id = op->results[i].id;
    *vec_push(&w->deaths) = (Death){w->last[id] ? w->last[id] : op, id};
  }
  for (int r = 0; r < op->n_regions; r++)
    for (int i = 0; i < op->regions[r]->n_args; i++) {
      int id = op->regions[r]->args[i]->id;
      if (w->last[id]) *vec_push(&w->deaths) = (Death){w->last[id], id};
    }
  return NULL;
}

static Plan *plan_new(const Func *f) {
  PlanWalk w = {.last = xcalloc((size_t)f->n_values + 1, sizeof(Op *))};
  Err *e = ir_walk(f->body, plan_op, &w);
  if (!e) e = ir_walk(f->body, plan_collect, &w);
  assert(!e);
  for (int i = 0; i < f->body->n_args; i++) {
    int id = f->body->args[i]->id;
    if (w.last[id]) *vec_push(&w.deaths) = (Death){w.last[id], id};
  }
  free(w.last);
  if (w.deaths.n) qsort(w.deaths.v, (size_t)w.deaths.n, sizeof(Death), death_cmp);
  Plan *p = xcalloc(1, sizeof *p);
  *p = (Plan){f, w.deaths.n, w.deaths.v};
  return p;
}

const Plan *plan_of(Run *run, const Func *f) {
  for (int i = 0; i < run->plans.n; i++)
    if (run->plans.v[i]->func == f) return run->plans.v[i];
  Plan *p = plan_new(f);
  *vec_push(&run->plans) = p;
  return p;
}

void plans_free(Run *run) {
  for (int i = 0; i < run->plans.n; i++) {
    free(run->plans.v[i]->deaths);
    free(run->plans.v[i]);
  }
  vec_free(&run->plans);
}

void frame_bury(Frame *f, const Op *op) {
  const Plan *p = f->plan;
  if (!p) return;
  int lo = 0, hi = p->n;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if ((uintptr_t)p->deaths[mid].op < (uintptr_t)op) lo = mid + 1;
    else hi = mid;
  }
  for (; lo < p->n && p->deaths[lo].op == op; lo++) shards_free(&f->slots[p->deaths[lo].id]);
}

void frame_free(Frame *f) {
  for (int i = 0; i < f->func->n_values; i++) shards_free(&f->slots[i]);
  free(f->slots);
}
