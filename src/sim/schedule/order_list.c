/* The first of the orders that the compiler considers, a list of what is ready: next is whatever frees most and
 * makes least. It is made as the compiler makes it, to the letter: a priority is reckoned when an operation
 * becomes ready, and again only when another one runs that reads what it reads. */
#include <stdlib.h>

#include "sim/schedule/order.h"

static double frees(const Order *o, const Item *x) {
  double net = -x->makes;
  for (int q = 0; q < x->buffers.n; q++)
    if (o->left[x->buffers.v[q]] == 1) net += o->bytes[x->buffers.v[q]];
  return net;
}

static void reckon(const Order *o, int i, int *clock) {
  Item *x = &o->items.v[i];
  double net = frees(o, x);
  if (x->ready && net == x->net) return;
  x->net = net;
  x->ready = true;
  x->since = ++*clock;
}

/* Numbers first; of equals the one with more readers, then the one that was reckoned last. */
static bool sooner(const Item *a, const Item *b) {
  if (a->number != b->number) return a->number;
  if (a->net != b->net && !a->number) return a->net > b->net;
  if (a->readers != b->readers && !a->number) return a->readers > b->readers;
  return a->since > b->since;
}

/* Operation i runs: what it read has one reader less, what waited for it may be ready. */
static void run(Order *o, int i, Ints *ready, int *clock) {
  Item *x = &o->items.v[i];
  bool last = false; /* is anything that it read left for one reader more? */
  x->ready = false;
  for (int q = 0; q < x->buffers.n; q++) last |= --o->left[x->buffers.v[q]] == 1;
  for (int q = 0; q < x->users.n + x->after.n; q++) {
    int u = q < x->users.n ? x->users.v[q] : x->after.v[q - x->users.n];
    if (--o->items.v[u].wait) continue;
    *vec_push(ready) = u;
    reckon(o, u, clock);
  }
  for (int q = 0; q < x->from.n && last; q++) {
    const Ints *users = &o->items.v[x->from.v[q]].users;
    for (int u = 0; u < users->n; u++)
      if (o->items.v[users->v[u]].ready) reckon(o, users->v[u], clock);
  }
}

void order_list(Order *o, Ints *out) {
  Ints ready = {0};
  int clock = 0;
  for (int i = 0; i < o->items.n; i++) {
    if (o->items.v[i].wait || (i < o->n && o->p->kernels.v[i]->dead)) continue;
    *vec_push(&ready) = i;
    reckon(o, i, &clock);
  }
  while (ready.n) {
    int best = 0;
    for (int c = 1; c < ready.n; c++)
      if (sooner(&o->items.v[ready.v[c]], &o->items.v[ready.v[best]])) best = c;
    int i = ready.v[best];
    ready.v[best] = ready.v[--ready.n];
    if (i < o->all) *vec_push(out) = i;
    run(o, i, &ready, &clock);
  }
  vec_free(&ready);
}
