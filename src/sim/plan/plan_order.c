/* The order in which kernels run. As the compiler does, three orders are made and the one that needs
 * least memory is taken: a list in which next is whatever frees most and makes least, and two that
 * go from the results to the arguments, depth first. */
#include <stdlib.h>

#include "sim/plan/plan.h"

typedef VEC(int) Ints;

typedef struct Order {
  Plan *p;
  int n;
  Ints *succ, *pred; /* by kernel */
  int *key;          /* place in the program */
  double *uses;      /* depth first: users beyond the first, of a kernel and all before it */
  double *size;      /* and bytes */
} Order;

static bool own(const Order *o, const HValue *v) {
  return !v->is_param && v->node->comp == o->p->comp;
}

/* Which results lie in the memory of which donated arguments. */
static void find_given(Plan *p) {
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
  const Plan *p = o->p;
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
  Plan *p = o->p;
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

/* What a GPU's library is given to work in counts as if it were a result; libtpu's lists know nothing of it. */
static double room(const Plan *p, const Kernel *k) { return p->law->tpu ? 0 : plan_scratch(p, k); }

static void list_order(Order *o, Ints *out) {
  Plan *p = o->p;
  int *wait = calloc((size_t)o->n + 1, sizeof *wait);
  /* uses left of each value, to see which kernel would free one */
  for (int i = 0; i < p->values.n; i++) p->values.v[i]->last = 0;
  for (int i = 0; i < o->n; i++) {
    Kernel *k = p->kernels.v[i];
    wait[i] = o->pred[i].n;
    for (int r = 0; r < k->reads.n && !k->dead; r++) base_of(k->reads.v[r])->last++;
  }
  for (int i = 0; i < p->comp->outputs.n; i++)
    if (p->comp->outputs.v[i]->val) base_of(p->comp->outputs.v[i]->val)->last++;
  Ints ready = {0};
  for (int i = 0; i < o->n; i++)
    if (!p->kernels.v[i]->dead && wait[i] == 0) *vec_push(&ready) = i;
  while (ready.n) {
    int best = 0;
    double best_net = 0;
    for (int c = 0; c < ready.n; c++) {
      const Kernel *k = p->kernels.v[ready.v[c]];
      double net = -room(p, k);
      for (int r = 0; r < k->reads.n; r++) {
        const HValue *v = base_of(k->reads.v[r]);
        if (v->last == 1 && own(o, v)) net += v->bytes;
      }
      for (int r = 0; r < k->roots.n; r++) {
        const HValue *v = k->roots.v[r]->val;
        if (v && !v->alias) net -= v->bytes;
      }
      /* of equals the one with more users, then the one that became ready last */
      int more = o->succ[ready.v[c]].n - (c ? o->succ[ready.v[best]].n : 0);
      bool better = net > best_net || (net == best_net && more >= 0);
      if (c == 0 || better) best = c, best_net = net;
    }
    int i = ready.v[best];
    for (int c = best; c + 1 < ready.n; c++) ready.v[c] = ready.v[c + 1];
    ready.n--;
    for (int r = 0; r < p->kernels.v[i]->reads.n; r++) base_of(p->kernels.v[i]->reads.v[r])->last--;
    *vec_push(out) = i;
    for (int s = 0; s < o->succ[i].n; s++)
      if (--wait[o->succ[i].v[s]] == 0) *vec_push(&ready) = o->succ[i].v[s];
  }
  vec_free(&ready);
  free(wait);
}

/* Of two inputs first the one that more depends on, then the larger, then the earlier. */
static bool before(const Order *o, int a, int b) {
  if (o->uses[a] != o->uses[b]) return o->uses[a] > o->uses[b];
  if (o->size[a] != o->size[b]) return o->size[a] > o->size[b];
  return o->key[a] < o->key[b];
}
static void sort_inputs(const Order *o, Ints *v) {
  for (int i = 1; i < v->n; i++) {
    int x = v->v[i], j = i;
    for (; j > 0 && before(o, x, v->v[j - 1]); j--) v->v[j] = v->v[j - 1];
    v->v[j] = x;
  }
}

/* Inputs before what needs them, from the results backwards: `deep` takes those first that most
 * depends on, else they come as the program has them. */
static void depth_first(Order *o, const Ints *any, bool deep, Ints *out) {
  Plan *p = o->p;
  for (int i = 0; i < any->n; i++) { /* an order in which inputs come first */
    int k = any->v[i];
    const Kernel *kernel = p->kernels.v[k];
    o->uses[k] = MAX(o->succ[k].n - 1, 0);
    o->size[k] = 0;
    for (int r = 0; r < kernel->roots.n; r++)
      if (kernel->roots.v[r]->val) o->size[k] += kernel->roots.v[r]->val->bytes;
    for (int q = 0; q < o->pred[k].n; q++) {
      o->uses[k] += o->uses[o->pred[k].v[q]];
      o->size[k] += o->size[o->pred[k].v[q]];
    }
  }
  Ints roots = {0}, stack = {0};
  for (int i = 0; i < p->comp->outputs.n && !deep; i++) {
    const HValue *v = p->comp->outputs.v[i]->val;
    if (v && base_of((HValue *)v)->kernel >= 0 && base_of((HValue *)v)->node->comp == p->comp)
      *vec_push(&roots) = base_of((HValue *)v)->kernel;
  }
  for (int i = 0; i < any->n; i++)
    if (o->succ[any->v[i]].n == 0) *vec_push(&roots) = any->v[i];
  if (deep) sort_inputs(o, &roots);
  unsigned char *seen = calloc((size_t)o->n + 1, 1); /* 1: inputs pushed, 2: done */
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
      if (deep) sort_inputs(o, &o->pred[k]);
      for (int q = o->pred[k].n - 1; q >= 0; q--)
        if (!seen[o->pred[k].v[q]]) *vec_push(&stack) = o->pred[k].v[q];
    }
  }
  free(seen);
  vec_free(&stack);
  vec_free(&roots);
}

static double peak_of(const Order *o, const Ints *order) {
  const Plan *p = o->p;
  int *pos = calloc((size_t)o->n + 1, sizeof *pos),
      *last = calloc((size_t)p->values.n + 1, sizeof *last);
  double *live = calloc((size_t)order->n + 2, sizeof *live), peak = 0, now = 0;
  for (int i = 0; i < order->n; i++) pos[order->v[i]] = i;
  for (int i = 0; i < p->values.n; i++) p->values.v[i]->index = i;
  for (int i = 0; i < order->n; i++) {
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
    if (!own(o, v) || v->alias || v->kernel < 0 || v->given) continue; /* its argument's memory */
    live[pos[v->kernel]] += v->bytes;
    live[MAX(last[i], pos[v->kernel]) + 1] -= v->bytes;
  }
  for (int i = 0; i < order->n; i++) {
    const Kernel *k = p->kernels.v[order->v[i]];
    double shared = 0; /* results put where an input was */
    bool taken[64] = {false};
    for (int r = 0; r < k->roots.n; r++)
      for (int q = 0; q < k->reads.n && q < 64 && k->roots.v[r]->val; q++) {
        const HValue *v = base_of(k->reads.v[q]), *w = k->roots.v[r]->val;
        if (taken[q] || !own(o, v) || !own(o, w) || last[v->index] != i || w->alias ||
            last[w->index] == order->n || !plan_writes_over(p, k, v, w))
          continue;
        taken[q] = true;
        shared += w->bytes;
        break;
      }
    now += live[i];
    peak = MAX(peak, now - shared + room(p, k));
  }
  free(pos);
  free(last);
  free(live);
  return peak;
}

/* The relayout of a result that is too large to be on chip and whose lanes stay what they are runs
 * beside the core on chips that have something there for it. */
static bool beside(const Plan *p, const Kernel *k) {
  const HValue *v = k->copy_of, *w = k->roots.n ? k->roots.v[0]->val : NULL;
  return p->law->offload && k->copy && v && w && w->is_output && v->bytes >= p->vmem_free &&
         v->order[0] == w->order[0] && v->node->d[v->order[0]] % 128 == 0;
}

/* So that there is computing beside it, everything that it waits for comes first. */
static void relayouts_first(const Order *o, Ints *order) {
  const Plan *p = o->p;
  unsigned char *first = calloc((size_t)o->n + 1, 1);
  Ints out = {0};
  bool any = false;
  for (int i = order->n - 1; i >= 0; i--) {
    int k = order->v[i];
    any |= first[k] = first[k] || beside(p, p->kernels.v[k]);
    for (int q = 0; first[k] && q < o->pred[k].n; q++) first[o->pred[k].v[q]] = 1;
  }
  for (int pass = 0; pass < 2 && any; pass++)
    for (int i = 0; i < order->n; i++)
      if (first[order->v[i]] == !pass) *vec_push(&out) = order->v[i];
  for (int i = 0; i < out.n; i++) order->v[i] = out.v[i];
  vec_free(&out);
  free(first);
}

void plan_order(Plan *p) {
  int n = p->kernels.n;
  Order o = {.p = p, .n = n};
  o.succ = calloc((size_t)n + 1, sizeof *o.succ);
  o.pred = calloc((size_t)n + 1, sizeof *o.pred);
  o.key = calloc((size_t)n + 1, sizeof *o.key);
  o.uses = calloc((size_t)n + 1, sizeof *o.uses);
  o.size = calloc((size_t)n + 1, sizeof *o.size);
  graph(&o);
  find_given(p);
  readers_first(&o);
  Ints list = {0}, depth = {0}, post = {0};
  list_order(&o, &list);
  depth_first(&o, &list, false, &post);
  depth_first(&o, &list, true, &depth);
  /* the others are taken for a gain that shows: the compiler's own lists come out a little better
   * than ours */
  double least = 0.99 * peak_of(&o, &list);
  bool waits = false; /* on barriers, which they know nothing of */
  for (int i = 0; i < n; i++) waits |= p->kernels.v[i]->waits.n > 0;
  Ints *best = &list, *other[2] = {&depth, &post};
  for (int i = 0; i < (waits ? 1 : 2); i++) {
    double peak = other[i]->n == list.n ? peak_of(&o, other[i]) : least;
    if (peak < least) best = other[i], least = peak;
  }
  relayouts_first(&o, best);
  int *newpos = calloc((size_t)n + 1, sizeof *newpos);
  VEC(Kernel *) out = {0};
  for (int i = 0; i <= n; i++) newpos[i] = -1;
  for (int i = 0; i < best->n; i++) {
    newpos[best->v[i]] = out.n;
    *vec_push(&out) = p->kernels.v[best->v[i]];
  }
  for (int i = 0; i < n; i++) { /* those that wait for each other would be our mistake */
    if (p->kernels.v[i]->dead || newpos[i] >= 0) continue;
    p->circular = true;
    newpos[i] = out.n;
    *vec_push(&out) = p->kernels.v[i];
  }
  for (int i = 0; i < n; i++)
    if (p->kernels.v[i]->dead) plan_kernel_free(p->kernels.v[i]);
  for (int i = 0; i < out.n; i++) out.v[i]->pos = i;
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->kernel >= 0) v->kernel = newpos[v->kernel];
    if (v->node->kernel >= 0) v->node->kernel = newpos[v->node->kernel];
  }
  for (int i = 0; i < n; i++) {
    vec_free(&o.succ[i]);
    vec_free(&o.pred[i]);
  }
  free(o.succ);
  free(o.pred);
  free(o.key);
  free(o.uses);
  free(o.size);
  free(newpos);
  vec_free(&list);
  vec_free(&depth);
  vec_free(&post);
  vec_free(&p->kernels);
  p->kernels.v = out.v;
  p->kernels.n = out.n;
  p->kernels.cap = out.cap;
}
