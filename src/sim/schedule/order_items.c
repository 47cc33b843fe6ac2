/* The operations that the compiler orders, which are more than the kernels: results of a kernel of several are
 * named by operations of their own, each of which counts as a reader of all of them; what a loop begins with is
 * made by others. */
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/order.h"

#define TUPLE 512 /* bytes that hold the addresses of several results */

HValue *order_after_loop(const HNode *loop, int slot) {
  for (int i = 0; i < loop->n_users; i++)
    if (loop->users[i]->kind == H_GET && loop->users[i]->index == slot) return loop->users[i]->val;
  return NULL;
}

static void find_starts(Order *o) {
  for (int i = 0; i < o->n && o->p->compiler->starts_loops; i++) {
    const Kernel *k = o->p->kernels.v[i];
    const HNode *w = !k->dead && order_is_loop(k) ? k->roots.v[0] : NULL;
    for (int s = 0; w && s < w->n_in; s++) {
      if (w->in[s]->rank == 0 || !hlo_const_only(w->in[s])) continue;
      const HValue *v = order_after_loop(w, s);
      *vec_push(&o->starts) = (Start){w, i, s, v ? v->bytes : hlo_bytes(w->in[s])};
    }
  }
  o->all = o->n + o->starts.n;
}

/* Values are written that another kernel reads, that are returned, or that a kernel makes alone. */
static void find_dropped(Schedule *p) {
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    v->index = i;
    v->dropped = v->kernel >= 0 && p->kernels.v[v->kernel]->roots.n > 1 && v->node->kind != H_GET;
  }
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    for (int r = 0; r < k->reads.n && !k->dead; r++) {
      HValue *v = base_of(k->reads.v[r]);
      if (v->node->comp == p->comp && v->kernel != i) v->dropped = false;
    }
  }
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val ? base_of(p->comp->outputs.v[i]->val) : NULL;
    if (v && v->node->comp == p->comp) v->dropped = false;
  }
}

static Item *item(const Order *o, int i) { return &o->items.v[i]; }

/* Where it lies: a loop's state where it lay before the loop. -1: with the arguments. */
static int buffer_of(const Order *o, const HValue *v) {
  v = base_of((HValue *)v);
  while (v->node->kind == H_GET && v->node->in[0]->kind == H_WHILE) {
    const HNode *w = v->node->in[0];
    int slot = v->node->index;
    for (int i = 0; i < o->starts.n; i++)
      if (o->starts.v[i].loop == w && o->starts.v[i].slot == slot) return o->n_values + o->n + i;
    if (slot >= w->n_in || !w->in[slot]->val) return v->index;
    v = base_of(w->in[slot]->val);
  }
  return order_own(o, v) && v->kernel >= 0 ? v->index : -1;
}

static void use(Order *o, int i, int buffer) {
  Ints *b = &item(o, i)->buffers;
  for (int q = 0; q < b->n; q++)
    if (b->v[q] == buffer) return;
  if (buffer < 0) return;
  *vec_push(b) = buffer;
  o->left[buffer]++;
}

static void follow(Order *o, int from, int to) {
  Ints *f = &item(o, to)->from;
  for (int q = 0; q < f->n; q++)
    if (f->v[q] == from) return;
  *vec_push(f) = from;
  *vec_push(&item(o, from)->users) = to;
  item(o, from)->readers++;
  item(o, to)->wait++;
}

/* Names one of kernel k's results, or an argument (-1). */
static void add_name(Order *o, HValue *v, int k) {
  *vec_push(&o->items) = (Item){.number = hlo_count(v->node) == 1, .outside = k < 0};
  int i = o->items.n - 1;
  if (k >= 0) follow(o, k, i);
  o->name[v->index] = i;
}

/* Is it a sum, or made of one alone? */
static bool is_sum(const HNode *n) {
  while (n->kind == H_EWISE && n->n_in == 1 && !n->in[0]->val) n = n->in[0];
  return n->kind == H_REDUCE;
}

/* The values that kernel i makes: sums first; of an operation of several results, those that are read. */
static void made_by(const Schedule *p, int i, Values *out) {
  const Kernel *k = p->kernels.v[i];
  out->n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int r = 0; r < k->roots.n; r++) {
      HNode *n = k->roots.v[r];
      bool several = order_of_several(n);
      for (int u = 0; u < (several ? n->n_users : 1); u++) {
        HValue *v = several ? n->users[u]->val : n->val;
        if (several && (n->users[u]->kind != H_GET || !v || v->node->comp != p->comp)) continue;
        if (v && !v->alias && !v->dropped && is_sum(v->node) == !pass) *vec_push(out) = v;
      }
    }
}

bool sched_several(const Schedule *p, int kernel) {
  Values made = {0};
  made_by(p, kernel, &made);
  bool several = made.n > 1 || order_is_loop(p->kernels.v[kernel]);
  vec_free(&made);
  return several;
}

static void add_results(Order *o, int i, Values *made) {
  const Kernel *k = o->p->kernels.v[i];
  bool loop = order_is_loop(k);
  made_by(o->p, i, made);
  bool several = loop || made->n > 1;
  item(o, i)->number = !several && made->n && hlo_count(made->v[0]->node) == 1;
  item(o, i)->makes = order_room(o->p, k) + (several ? TUPLE : 0);
  o->bytes[o->n_values + i] = several ? TUPLE : 0;
  for (int r = 0; r < made->n; r++) {
    HValue *v = made->v[r];
    if (!loop || buffer_of(o, v) == v->index)
      item(o, i)->makes += o->bytes[v->index] = v->node->host ? 0 : v->bytes;
    if (several) add_name(o, v, i);
    else o->name[v->index] = i;
  }
}

/* A loop waits for its starts as for all else that it begins with, in the order of its state: those before
 * `v`, or all that are left. The next one is returned. */
static int add_starts(Order *o, int next, int loop, const HValue *v) {
  for (; next < o->all && o->starts.v[next - o->n].kernel == loop; next++) {
    const Start *s = &o->starts.v[next - o->n];
    for (int q = 0; v && q < s->slot; q++)
      if (s->loop->in[q]->val && base_of(s->loop->in[q]->val) == v) return next;
    follow(o, next, loop);
    use(o, loop, o->n_values + next);
  }
  return next;
}

/* What kernel i waits for; `start` is the next start. */
static int add_reads(Order *o, int i, int start) {
  const Kernel *k = o->p->kernels.v[i];
  for (int r = 0; r < k->reads.n; r++) {
    HValue *v = base_of(k->reads.v[r]);
    if (v->node->comp != o->p->comp || v->kernel == i) continue;
    start = add_starts(o, start, i, v);
    if (o->name[v->index] < 0 && v->kernel < 0) add_name(o, v, -1);
    if (o->name[v->index] < 0) continue;
    follow(o, o->name[v->index], i);
    use(o, i, buffer_of(o, v));
  }
  for (int q = 0; q < o->pred[i].n; q++) { /* and what it does not read */
    bool reads = false;
    for (int r = 0; r < k->reads.n; r++) {
      const HValue *v = base_of(k->reads.v[r]);
      reads |= v->kernel == o->pred[i].v[q] && v->node->comp == o->p->comp;
    }
    if (reads) continue;
    *vec_push(&item(o, i)->before) = o->pred[i].v[q];
    *vec_push(&item(o, o->pred[i].v[q])->after) = i;
    item(o, i)->wait++;
  }
  return add_starts(o, start, i, NULL);
}

/* Names of results read all that the kernel makes, and all that goes through a loop. */
static void read_together(Order *o, int i, Values *made) {
  made_by(o->p, i, made);
  for (int r = 0; r < made->n && o->name[made->v[r]->index] != i; r++) {
    int name = o->name[made->v[r]->index];
    use(o, name, o->n_values + i);
    for (int q = 0; q < made->n; q++) use(o, name, buffer_of(o, made->v[q]));
    for (int q = 0; q < item(o, i)->buffers.n && order_is_loop(o->p->kernels.v[i]); q++)
      use(o, name, item(o, i)->buffers.v[q]);
  }
}

static void add_outputs(Order *o) {
  const HComp *c = o->p->comp;
  for (int i = 0; i < c->outputs.n; i++) {
    const HValue *v = c->outputs.v[i]->val ? base_of(c->outputs.v[i]->val) : NULL;
    if (!v || v->node->comp != c) continue;
    if (o->name[v->index] >= 0) item(o, o->name[v->index])->readers++;
    if (buffer_of(o, v) >= 0) o->left[buffer_of(o, v)]++;
  }
}

void order_items(Order *o) {
  Schedule *p = o->p;
  Values made = {0};
  find_starts(o);
  o->n_values = p->values.n;
  size_t buffers = (size_t)(o->n_values + o->all) + 1;
  o->name = xcalloc((size_t)o->n_values + 1, sizeof *o->name);
  o->bytes = xcalloc(buffers, sizeof *o->bytes);
  o->left = xcalloc(buffers, sizeof *o->left);
  find_dropped(o->p);
  for (int i = 0; i < o->n_values; i++) o->name[i] = -1;
  for (int i = 0; i < o->all; i++) *vec_push(&o->items) = (Item){0};
  for (int i = 0; i < p->comp->params.n; i++)
    if (p->comp->params.v[i]->val) add_name(o, p->comp->params.v[i]->val, -1);
  for (int i = o->n; i < o->all; i++)
    item(o, i)->makes = o->bytes[o->n_values + i] = o->starts.v[i - o->n].bytes;
  for (int i = 0; i < o->n; i++)
    if (!p->kernels.v[i]->dead) add_results(o, i, &made);
  for (int i = 0, start = o->n; i < o->n; i++)
    if (!p->kernels.v[i]->dead) start = add_reads(o, i, start);
  for (int i = 0; i < o->n; i++)
    if (!p->kernels.v[i]->dead) read_together(o, i, &made);
  add_outputs(o);
  vec_free(&made);
}

void order_items_free(Order *o) {
  for (int i = 0; i < o->items.n; i++) {
    vec_free(&item(o, i)->users);
    vec_free(&item(o, i)->from);
    vec_free(&item(o, i)->before);
    vec_free(&item(o, i)->after);
    vec_free(&item(o, i)->buffers);
  }
  vec_free(&o->items);
  vec_free(&o->starts);
  free(o->name);
  free(o->bytes);
  free(o->left);
}
