/* The order in which kernels run. As the compiler does, three orders are made and the one that needs
 * least memory is taken: a list in which next is whatever frees most and makes least, and two that
 * go from the results to the arguments, depth first. All computations of a program, loops' bodies among
 * them, take the same of the three: the one with which the whole needs least. */
#include <stdlib.h>

#include "sim/schedule/order.h"

/* Which results lie in the memory of which donated arguments. */
static void find_given(Schedule *p) {
  HComp *c = p->comp;
  if (c->parent) return;
  bool *used = calloc((size_t)c->params.n + 1, sizeof *used);
  for (int i = 0; i < c->outputs.n; i++) {
    HValue *v = c->outputs.v[i]->val;
    for (int k = 0; v && k < c->params.n; k++) {
      const HNode *q = c->params.v[k];
      if (used[k] || !q->val->donated || q->dt != v->node->dt || q->val->bytes != v->bytes)
        continue;
      used[k] = v->given = true;
      v->over = q->val;
      break;
    }
  }
  free(used);
}

static bool leads_to(const Order *o, int from, int to) {
  Ints stack = {0};
  unsigned char *seen = calloc((size_t)o->n + 1, 1);
  *vec_push(&stack) = from;
  while (stack.n && !seen[to]) {
    int k = stack.v[--stack.n];
    if (seen[k]) continue;
    seen[k] = 1;
    for (int i = 0; i < o->succ[k].n; i++) *vec_push(&stack) = o->succ[k].v[i];
  }
  bool hit = seen[to];
  vec_free(&stack);
  free(seen);
  return hit;
}

/* A donated argument is written over when all others have read it. */
static void readers_first(Order *o) {
  const Schedule *p = o->p;
  for (int i = 0; i < p->values.n; i++) p->values.v[i]->index = -1;
  for (int i = 0; i < p->values.n; i++)
    if (p->values.v[i]->over) p->values.v[i]->over->index = p->values.v[i]->kernel;
  for (int r = 0; r < o->n; r++) {
    const Kernel *k = p->kernels.v[r];
    for (int q = 0; q < k->reads.n && !k->dead; q++) {
      const HValue *v = base_of(k->reads.v[q]);
      int w = v->node->comp == p->comp ? v->index : -1; /* who writes over it */
      bool known = w < 0 || w == r;
      for (int z = 0; !known && z < o->pred[w].n; z++) known = o->pred[w].v[z] == r;
      if (known || leads_to(o, w, r)) continue;
      *vec_push(&o->succ[r]) = w;
      *vec_push(&o->pred[w]) = r;
    }
  }
}

static void graph(Order *o) {
  Schedule *p = o->p;
  for (int i = 0; i < o->n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead) continue;
    o->key[i] = INT32_MAX;
    for (int r = 0; r < k->roots.n; r++) o->key[i] = MIN(o->key[i], k->roots.v[r]->id);
    if (k->copy_of) { /* an argument's, or of what is made outside of this computation: at once */
      bool here = k->copy_of->kernel >= 0 && k->copy_of->node->comp == p->comp;
      o->key[i] = here ? p->kernels.v[k->copy_of->kernel]->roots.v[0]->id : 0;
    }
    for (int r = 0; r < k->reads.n + k->waits.n; r++) {
      const HValue *v = r < k->reads.n ? k->reads.v[r] : k->waits.v[r - k->reads.n];
      if (v->node->comp != p->comp) continue;
      int s = v->kernel;
      /* a view of what the kernel makes itself is none that it waits for */
      if (s < 0 || s == i || base_of((HValue *)v)->kernel == i || p->kernels.v[s]->dead) continue;
      *vec_push(&o->succ[s]) = i;
      *vec_push(&o->pred[i]) = s;
    }
  }
}

static const HNode *exchange_of(const Kernel *k) {
  const HNode *n = k->roots.n && !k->dead ? k->roots.v[0] : NULL;
  return n && n->kind == H_COLL && n->company ? n : NULL;
}

static void copy_preds(const Order *o, const Ints *all, Ints *own) {
  for (int a = 0; a < all->n; a++)
    for (int q = 0; q < o->pred[all->v[a]].n; q++) *vec_push(&own[a]) = o->pred[all->v[a]].v[q];
}

/* Exchanges that travel as one are one operation: each waits for what any of them waits for. */
static void together(Order *o) {
  const Schedule *p = o->p;
  Ints all = {0};
  collective_combine(p, p->comp);
  for (int i = 0; i < o->n; i++)
    if (exchange_of(p->kernels.v[i])) *vec_push(&all) = i;
  Ints *own = xcalloc((size_t)all.n + 1, sizeof *own); /* before anything is added */
  copy_preds(o, &all, own);
  for (int a = 0; a < all.n; a++)
    for (int b = 0; b < all.n; b++) {
      int from = all.v[a], to = all.v[b];
      if (a == b ||
          exchange_of(p->kernels.v[from])->company != exchange_of(p->kernels.v[to])->company)
        continue;
      for (int q = 0; q < own[a].n; q++) {
        int x = own[a].v[q];
        if (x == to || leads_to(o, to, x)) continue;
        *vec_push(&o->succ[x]) = to;
        *vec_push(&o->pred[to]) = x;
      }
    }
  for (int a = 0; a < all.n; a++) vec_free(&own[a]);
  free(own);
  vec_free(&all);
}

/* The compiler's operations are more than ours: constants, views, what a kernel's numbers are made of. With so many
 * times ours the scheduler's logs for two recurrent networks come out; 1.3 to 2 do as well. */
#define OPERATIONS 1.5

/* How much depends on each operation and on all before it, which come before it in `any`. Counted by
 * paths, but to no more than there is. */
static void measure(Order *o, const Ints *any) {
  double bytes = 0;
  for (int i = 0; i < any->n; i++) {
    Item *x = &o->items.v[any->v[i]];
    if (x->outside) continue;
    x->uses = MAX(x->readers - 1, 0);
    x->size = x->makes;
    bytes += x->makes;
    for (int q = 0; q < x->from.n; q++) {
      x->uses += o->items.v[x->from.v[q]].uses;
      x->size += o->items.v[x->from.v[q]].size;
    }
    x->uses = MIN(x->uses, OPERATIONS * o->items.n);
    x->size = MIN(x->size, bytes);
  }
}

/* Of two inputs first the one that more depends on, then the larger. */
static void sort_inputs(const Order *o, Ints *v) {
  for (int i = 1; i < v->n; i++) {
    int x = v->v[i], j = i;
    const Item *a = &o->items.v[x];
    for (; j > 0; j--) {
      const Item *b = &o->items.v[v->v[j - 1]];
      if (a->uses < b->uses || (a->uses == b->uses && a->size <= b->size)) break;
      v->v[j] = v->v[j - 1];
    }
    v->v[j] = x;
  }
}

/* Inputs before what needs them, from the results backwards: `deep` takes those first that most
 * depends on, else they come as the program has them. */
static void depth_first(Order *o, bool deep, Ints *out) {
  Schedule *p = o->p;
  Ints roots = {0}, stack = {0}, inputs = {0};
  for (int i = 0; i < p->comp->outputs.n; i++) {
    const HValue *v = p->comp->outputs.v[i]->val ? base_of(p->comp->outputs.v[i]->val) : NULL;
    if (v && v->node->comp == p->comp && o->name[v->index] >= 0)
      *vec_push(&roots) = o->name[v->index];
  }
  if (deep) sort_inputs(o, &roots);
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].users.n == 0 && !(i < o->n && p->kernels.v[i]->dead)) *vec_push(&roots) = i;
  unsigned char *seen = calloc((size_t)o->items.n + 1, 1); /* 1: inputs pushed, 2: done */
  for (int r = 0; r < roots.n; r++) {
    *vec_push(&stack) = roots.v[r];
    while (stack.n) {
      int k = stack.v[stack.n - 1];
      if (seen[k]) {
        if (seen[k] == 1) *vec_push(out) = k;
        seen[k] = 2;
        stack.n--;
        continue;
      }
      seen[k] = 1;
      const Item *x = &o->items.v[k];
      inputs.n = 0;
      for (int q = 0; q < x->from.n; q++) *vec_push(&inputs) = x->from.v[q];
      for (int q = 0; q < x->before.n; q++) *vec_push(&inputs) = x->before.v[q];
      if (deep) sort_inputs(o, &inputs);
      for (int q = inputs.n - 1; q >= 0; q--)
        if (!seen[inputs.v[q]]) *vec_push(&stack) = inputs.v[q];
    }
  }
  free(seen);
  vec_free(&stack);
  vec_free(&roots);
  vec_free(&inputs);
}

/* Names take no time. */
static void drop_names(const Order *o, Ints *order) {
  int n = 0;
  for (int i = 0; i < order->n; i++)
    if (order->v[i] < o->all) order->v[n++] = order->v[i];
  order->n = n;
}

/* Bytes of kernel k's results that lie where an input was: the kernel is the `at`th, `last` the last
 * reader of each value. */
static double shared(const Order *o, const Kernel *k, const int *last, int at, int end) {
  double bytes = 0;
  bool taken[64] = {false};
  const HNode *w = k->roots.n ? k->roots.v[0] : NULL;
  for (int s = 0; w && w->kind == H_WHILE && s < w->n_in; s++) { /* a loop's state */
    const HValue *v = w->in[s]->val ? base_of(w->in[s]->val) : NULL;
    if (v && order_own(o, v) && v->kernel >= 0 && last[v->index] == at && order_after_loop(w, s))
      bytes += v->bytes;
  }
  for (int r = 0; r < k->roots.n; r++)
    for (int q = 0; q < k->reads.n && q < 64 && k->roots.v[r]->val; q++) {
      const HValue *v = base_of(k->reads.v[q]), *to = k->roots.v[r]->val;
      if (taken[q] || !order_own(o, v) || !order_own(o, to) || last[v->index] != at || to->alias ||
          last[to->index] == end || !sched_writes_over(o->p, k, v, to))
        continue;
      taken[q] = true;
      bytes += to->bytes;
      break;
    }
  return bytes;
}

static double peak_of(const Order *o, const Ints *order, int way);

/* What a loop's round or a branch needs beside what is there, all ordered in one way. */
static double inside(const Schedule *p, const Kernel *k, int way) {
  double most = 0;
  const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
  for (int i = 0; i < p->inner.n; i++) {
    const Schedule *in = p->inner.v[i];
    if (in->comp->owner == root) most = MAX(most, peak_of(in->order, &in->order->ways[way], way));
  }
  return most;
}

/* Written into a loop's state, where that lies? */
static bool in_state(const Schedule *p, const HValue *v) {
  const HValue *to = p->comp->parent && v->node->kind == H_DUS ? v->node->in[0]->val : NULL;
  return to && base_of((HValue *)to)->is_param;
}

/* The most that is alive, without the arguments: but one that a result is written over is there until it has
 * been read, and the result from its making on. */
static double peak_of(const Order *o, const Ints *order, int way) {
  const Schedule *p = o->p;
  int *pos = calloc((size_t)o->all + 1, sizeof *pos),
      *last = calloc((size_t)p->values.n + 1, sizeof *last);
  double *live = calloc((size_t)order->n + 2, sizeof *live), peak = 0, now = 0;
  for (int i = 0; i < order->n; i++) pos[order->v[i]] = i;
  for (int i = 0; i < order->n; i++) {
    if (order->v[i] >= o->n) continue;
    const Kernel *k = p->kernels.v[order->v[i]];
    for (int r = 0; r < k->reads.n; r++)
      if (base_of(k->reads.v[r])->node->comp == p->comp) last[base_of(k->reads.v[r])->index] = i;
  }
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (v && base_of(v)->node->comp == p->comp) last[base_of(v)->index] = order->n;
  }
  for (int i = 0; i < p->values.n; i++) {
    const HValue *v = p->values.v[i];
    if (!order_own(o, v) || v->alias || v->kernel < 0 || v->dropped || v->node->host) continue;
    if (order_of_several(v->node) || in_state(p, v)) continue;
    live[pos[v->kernel]] += v->bytes;
    live[MAX(last[i], pos[v->kernel]) + 1] -= v->bytes;
    if (v->over) live[last[v->over->index] + 1] -= v->bytes;
  }
  for (int i = 0; i < o->starts.n; i++) {
    const Start *s = &o->starts.v[i];
    live[pos[o->n + i]] += s->bytes;
    live[pos[s->kernel] + !order_after_loop(s->loop, s->slot)] -= s->bytes; /* then it is that */
  }
  for (int i = 0; i < order->n; i++) {
    const Kernel *k = order->v[i] < o->n ? p->kernels.v[order->v[i]] : NULL;
    now += live[i];
    double beside = k ? order_room(p, k) + inside(p, k, way) - shared(o, k, last, i, order->n) : 0;
    peak = MAX(peak, now + beside);
  }
  free(pos);
  free(last);
  free(live);
  return peak;
}

/* The relayout of a result that is too large to be on chip and whose lanes stay what they are runs
 * beside the core on chips that have something there for it. */
static bool beside(const Schedule *p, const Kernel *k) {
  const HValue *v = k->copy_of, *w = k->roots.n ? k->roots.v[0]->val : NULL;
  return p->params->offload && k->copy && v && w && w->is_output && v->bytes >= p->vmem_free &&
         v->order[0] == w->order[0] && v->node->d[v->order[0]] % 128 == 0;
}

/* So that there is computing beside it, everything that it waits for comes first. */
static void relayouts_first(const Order *o, Ints *order) {
  const Schedule *p = o->p;
  unsigned char *first = calloc((size_t)o->all + 1, 1);
  Ints out = {0};
  bool any = false;
  for (int i = order->n - 1; i >= 0; i--) {
    int k = order->v[i];
    any |= first[k] = first[k] || (k < o->n && beside(p, p->kernels.v[k]));
    for (int q = 0; first[k] && q < o->pred[k].n; q++) first[o->pred[k].v[q]] = 1;
  }
  for (int pass = 0; pass < 2 && any; pass++)
    for (int i = 0; i < order->n; i++)
      if (first[order->v[i]] == !pass) *vec_push(&out) = order->v[i];
  for (int i = 0; i < out.n; i++) order->v[i] = out.v[i];
  vec_free(&out);
  free(first);
}

/* Exchanges beside computing, where there is memory for what that keeps alive. Afterwards the order has kernels
 * alone. */
static void hide(const Order *o, Ints *order, int way) {
  const Schedule *p = o->p;
  Ints hidden = {0}, carry = {0};
  double held = 0;
  for (int i = 0; i < p->comp->params.n && !p->comp->parent; i++)
    if (p->comp->params.v[i]->val) held += p->comp->params.v[i]->val->bytes;
  int n = 0;
  for (int i = 0; i < order->n; i++)
    if (order->v[i] < o->n) order->v[n++] = order->v[i];
  order->n = n;
  if (order_hides(o, order, &hidden, &carry) &&
      held + peak_of(o, &hidden, way) <= p->compiler->hides_to * p->chip->hbm_usable) {
    memcpy(order->v, hidden.v, sizeof *hidden.v * (size_t)hidden.n);
    for (int i = 0; i < carry.n; i++) p->kernels.v[carry.v[i]]->carries = true;
  }
  vec_free(&carry);
  vec_free(&hidden);
}

static Ints ints_copy(const Ints *x) {
  Ints out = {0};
  for (int i = 0; i < x->n; i++) *vec_push(&out) = x->v[i];
  return out;
}

/* The three orders of a computation and of all that are in it. True: something waits on a barrier, of which
 * orders that are not lists know nothing. */
static bool make_orders(Schedule *p) {
  Order *o = p->order = xcalloc(1, sizeof *o);
  int n = o->n = p->kernels.n;
  o->p = p;
  o->succ = xcalloc((size_t)n + 1, sizeof *o->succ);
  o->pred = xcalloc((size_t)n + 1, sizeof *o->pred);
  o->key = xcalloc((size_t)n + 1, sizeof *o->key);
  graph(o);
  if (p->compiler->hides_to > 0) together(o);
  find_given(p);
  readers_first(o);
  order_items(o);
  order_list(o, &o->ways[ORDER_LIST]);
  depth_first(o, false, &o->ways[ORDER_POST]);
  measure(o, &o->ways[ORDER_POST]);
  depth_first(o, true, &o->ways[ORDER_DEPTH]);
  drop_names(o, &o->ways[ORDER_POST]);
  drop_names(o, &o->ways[ORDER_DEPTH]);
  for (int way = 0; way < ORDERS; way++) /* one that lost something */
    if (o->ways[way].n != o->ways[ORDER_LIST].n) o->ways[way] = ints_copy(&o->ways[ORDER_LIST]);
  bool waits = false;
  for (int i = 0; i < n; i++) waits |= p->kernels.v[i]->waits.n > 0;
  for (int i = 0; i < p->inner.n; i++) waits |= make_orders(p->inner.v[i]);
  return waits;
}

/* Kernels in this order; those that wait for each other would be our mistake. */
static void put_in_order(Schedule *p, const Ints *order) {
  int n = p->kernels.n;
  int *newpos = xmalloc(sizeof *newpos * ((size_t)n + 1));
  VEC(Kernel *) out = {0};
  for (int i = 0; i <= n; i++) newpos[i] = -1;
  for (int i = 0; i < order->n; i++) {
    if (order->v[i] >= n) continue;
    newpos[order->v[i]] = out.n;
    *vec_push(&out) = p->kernels.v[order->v[i]];
  }
  for (int i = 0; i < n; i++) {
    if (p->kernels.v[i]->dead || newpos[i] >= 0) continue;
    p->circular = true;
    newpos[i] = out.n;
    *vec_push(&out) = p->kernels.v[i];
  }
  for (int i = 0; i < n; i++)
    if (p->kernels.v[i]->dead) sched_kernel_free(p->kernels.v[i]);
  for (int i = 0; i < out.n; i++) out.v[i]->pos = i;
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->kernel >= 0) v->kernel = newpos[v->kernel];
    if (v->node->kernel >= 0) v->node->kernel = newpos[v->node->kernel];
  }
  free(newpos);
  vec_free(&p->kernels);
  p->kernels.v = out.v;
  p->kernels.n = out.n;
  p->kernels.cap = out.cap;
}

static void free_orders(Schedule *p) {
  Order *o = p->order;
  for (int i = 0; i < p->inner.n; i++) free_orders(p->inner.v[i]);
  for (int i = 0; i < o->n; i++) {
    vec_free(&o->succ[i]);
    vec_free(&o->pred[i]);
  }
  order_items_free(o);
  for (int way = 0; way < ORDERS; way++) vec_free(&o->ways[way]);
  free(o->succ);
  free(o->pred);
  free(o->key);
  free(o);
  p->order = NULL;
}

/* Copies of what others wrote into the memory of a result are made up after everything has its place: they come last. */
static void copies_last(const Order *o, Ints *order) {
  const Schedule *p = o->p;
  Ints last = {0};
  int n = 0;
  for (int i = 0; i < order->n; i++) {
    int x = order->v[i];
    const Kernel *k = x < o->n ? p->kernels.v[x] : NULL;
    const HValue *v = k && k->copy && k->copy_of ? base_of(k->copy_of) : NULL;
    if (v && v->node->kind == H_COLL && !o->succ[x].n) *vec_push(&last) = x;
    else order->v[n++] = x;
  }
  for (int i = 0; i < last.n; i++) order->v[n++] = last.v[i];
  vec_free(&last);
}

/* Loops' bodies first: what they need then decides whether exchanges outside may hide. */
static void choose(Schedule *p, int way) {
  Order *o = p->order;
  for (int i = 0; i < p->inner.n; i++) choose(p->inner.v[i], way);
  relayouts_first(o, &o->ways[way]);
  if (p->compiler->hides_to > 0) hide(o, &o->ways[way], way);
  copies_last(o, &o->ways[way]);
}

static void put_all_in_order(Schedule *p, int way) {
  put_in_order(p, &p->order->ways[way]);
  for (int i = 0; i < p->inner.n; i++) put_all_in_order(p->inner.v[i], way);
}

void sched_order(Schedule *p) {
  bool waits = make_orders(p);
  int best = ORDER_LIST;
  double least = peak_of(p->order, &p->order->ways[best], best);
  for (int way = ORDER_DEPTH; way < (waits ? ORDER_POST : ORDERS); way++) {
    double peak = peak_of(p->order, &p->order->ways[way], way);
    if (peak < least) best = way, least = peak;
  }
  choose(p, best);
  put_all_in_order(p, best);
  free_orders(p);
}
