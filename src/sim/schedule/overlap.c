/* Exchanges between devices under the computing that does not wait for them, as the schedulers of
 * XLA (latency hiding) and of frameworks on GPUs arrange it. Kernels and exchanges are put on two
 * resources, each free for the next one as soon as it is done; a kernel whose exchange has not
 * arrived lets later ones go first, and gathers run at most a few ahead of who reads them, which
 * bounds the memory that they take. What is left of the network's time is exposed: it is divided
 * among the exchanges in proportion, so that a schedule stays a list without overlaps. */
#include <stdlib.h>

#include "sim/schedule/schedule.h"

#define AHEAD 2   /* gathered arrays that wait for their readers */
#define LOOK 2000 /* kernels that are looked at for one that can run */

typedef VEC(int) Ints;

typedef struct Two {
  Schedule *p;
  Ints *pred;
  double *done; /* < 0: not yet */
  bool *read;   /* an exchange whose result somebody reads */
  int waiting;  /* gathers done or under way that nobody has read */
} Two;

/* On a resource of its own beside computing: the network, or the way to the host's memory. */
static bool exchanges(const Kernel *k) { return k->collective || sched_crosses(k); }
static bool gathers(const Kernel *k) {
  const HNode *n = k->roots.v[0];
  return n->op == OP_ALL_GATHER;
}

/* Exchanges that travel as one start when the last of them is ready and arrive together. */
static bool company(const Kernel *a, const Kernel *b) {
  return exchanges(a) && exchanges(b) && a->roots.v[0]->company &&
         a->roots.v[0]->company == b->roots.v[0]->company;
}
static void wait_for(Two *t, int i, const Ints *all) {
  const Schedule *p = t->p;
  const Kernel *k = p->kernels.v[i];
  for (int r = 0; r < k->reads.n; r++) {
    const HValue *v = base_of(k->reads.v[r]);
    if (v->node->comp != p->comp || v->kernel < 0 || v->kernel == i) continue;
    *vec_push(&t->pred[i]) = v->kernel;
    if (!exchanges(p->kernels.v[v->kernel])) continue;
    for (int c = 0; c < all->n; c++)
      if (all->v[c] != i && all->v[c] != v->kernel &&
          company(p->kernels.v[all->v[c]], p->kernels.v[v->kernel]))
        *vec_push(&t->pred[i]) = all->v[c];
  }
}

/* Each waits for what any of its company waits for: the first collects it, the others copy. */
static void travel_together(Two *t, const Ints *all) {
  Kernel *const *k = t->p->kernels.v;
  for (int a = 1; a < all->n; a++) {
    int b = 0;
    while (b < a && !company(k[all->v[a]], k[all->v[b]])) b++;
    Ints *own = &t->pred[all->v[a]], *first = &t->pred[all->v[b]];
    for (int q = 0; b < a && q < own->n; q++) *vec_push(first) = own->v[q];
  }
  for (int a = 1; a < all->n; a++) {
    int b = 0;
    while (b < a && !company(k[all->v[a]], k[all->v[b]])) b++;
    Ints *own = &t->pred[all->v[a]], *first = &t->pred[all->v[b]];
    if (b < a) own->n = 0;
    for (int q = 0; b < a && q < first->n; q++) *vec_push(own) = first->v[q];
  }
}

/* When kernel i could start, or -1: something that it needs has no place yet. */
static double ready(const Two *t, int i) {
  double at = 0;
  for (int k = 0; k < t->pred[i].n; k++) {
    double d = t->done[t->pred[i].v[k]];
    if (d < 0) return -1;
    at = MAX(at, d);
  }
  return at;
}

/* The next one of a resource that is free from `from` on: the first in order that can start then,
 * else the one that can soonest. */
static int next_of(const Two *t, bool network, bool more, double from, int first, double *start) {
  int best = -1, looked = 0;
  for (int i = first; i < t->p->kernels.n && looked < LOOK; i++) {
    const Kernel *k = t->p->kernels.v[i];
    if (t->done[i] >= 0 || exchanges(k) != network) continue;
    looked++;
    if (network && !more && t->waiting >= AHEAD && gathers(k)) continue;
    double at = ready(t, i);
    if (at < 0) continue;
    at = MAX(at, from);
    if (best < 0 || at < *start) best = i, *start = at;
    if (at <= from) break;
  }
  return best;
}

static void place(Two *t, int i, double start) {
  const Kernel *k = t->p->kernels.v[i];
  t->done[i] = start + k->time_s;
  t->waiting += exchanges(k) && gathers(k);
  for (int q = 0; q < t->pred[i].n; q++) {
    int x = t->pred[i].v[q];
    const Kernel *s = t->p->kernels.v[x];
    if (t->read[x] || !exchanges(s) || !gathers(s)) continue;
    t->read[x] = true;
    t->waiting--;
  }
}

/* The time of all kernels on two resources. */
static double both(Two *t) {
  double free_compute = 0, free_network = 0, end = 0;
  int n = t->p->kernels.n, first = 0;
  for (int left = n; left > 0; left--) {
    while (first < n && t->done[first] >= 0) first++;
    double a = 0, b = 0;
    int x = next_of(t, false, false, free_compute, first, &a);
    int y = next_of(t, true, x < 0, free_network, first, &b);
    if (x < 0 && y < 0) return -1; /* a circle: our mistake */
    bool network = x < 0 || (y >= 0 && b <= a);
    int i = network ? y : x;
    place(t, i, network ? b : a);
    end = MAX(end, t->done[i]);
    if (network) free_network = t->done[i];
    else free_compute = t->done[i];
  }
  return end;
}

void sched_overlap(Schedule *p) {
  int n = p->kernels.n;
  double network = 0, compute = 0;
  for (int i = 0; i < n; i++)
    *(exchanges(p->kernels.v[i]) ? &network : &compute) += p->kernels.v[i]->time_s;
  if (network <= 0) return;
  Two t = {.p = p};
  Ints all = {0};
  t.pred = xcalloc((size_t)n, sizeof *t.pred);
  t.done = xcalloc((size_t)n, sizeof *t.done);
  t.read = xcalloc((size_t)n, sizeof *t.read);
  for (int i = 0; i < n; i++) {
    t.done[i] = -1;
    if (exchanges(p->kernels.v[i])) *vec_push(&all) = i;
  }
  for (int i = 0; i < n; i++) wait_for(&t, i, &all);
  travel_together(&t, &all);
  double end = both(&t);
  if (end >= 0 && end < network + compute) {
    double share = MAX(0, end - compute) / network;
    double crossing = 0;
    for (int i = 0; i < n; i++)
      crossing += sched_crosses(p->kernels.v[i]) ? p->kernels.v[i]->time_s : 0;
    p->exposed_s -= (network - crossing) * (1 - share);
    p->crossing_exposed_s -= crossing * (1 - share);
    p->time_s = 0;
    for (int i = 0; i < n; i++) {
      Kernel *k = p->kernels.v[i];
      if (exchanges(k)) { /* the rest of its bytes moves beside others */
        k->time_s *= share;
        k->bytes = MIN(k->bytes, k->time_s * p->chip->hbm_bandwidth);
      }
      k->start_s = p->time_s;
      p->time_s += k->time_s;
    }
  }
  for (int i = 0; i < n; i++) vec_free(&t.pred[i]);
  vec_free(&all);
  free(t.pred);
  free(t.done);
  free(t.read);
}
