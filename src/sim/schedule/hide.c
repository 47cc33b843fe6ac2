/* The order once more, so that exchanges between devices run beside computing, as XLA's latency hiding
 * scheduler has it: from the results backwards, an exchange's end as soon as all have been placed that read it,
 * its beginning when as much computing lies between as it takes, or when others wait for the network. What hides
 * one may keep large arrays alive: gathered ones are read late. */
#include <math.h>
#include <stdlib.h>

#include "sim/schedule/order.h"

typedef struct Hide {
  const Order *o;
  const Ints *order;
  int *place;    /* by kernel: in that order */
  double *cost;  /* s; of an exchange what it takes on the network */
  double *ready; /* from when on it can be placed without anybody waiting; time runs backwards */
  double *depth; /* the longest chain of exchanges before it */
  int *left;     /* readers that have no place yet */
  bool *ended;   /* an exchange whose end has a place */
  bool *holds, *gathers; /* a loop with exchanges in it, with gathers */
  Ints open;             /* kernels whose readers all have one */
  int n_under_way;       /* gathers */
  int queue;             /* gathers' ends in `open` that wait for the network */
  double now;
  Ints out; /* from the last to the first */
  Ints *carry;
} Hide;

static bool is_exchange(const HNode *n, bool gather) {
  return n->kind == H_COLL &&
         (n->op == OP_ALL_GATHER || (!gather && n->op == OP_COLLECTIVE_PERMUTE));
}

/* Those that run beside computing on TPUs: permutes, and on some gathers, one at a time. */
static const HNode *exchange(const Hide *h, int k) {
  const Kernel *kernel = h->o->p->kernels.v[k];
  const HNode *n = kernel->roots.n ? kernel->roots.v[0] : NULL;
  return n && is_exchange(n, false) ? n : NULL;
}

static bool is_gather(const Hide *h, int k) {
  const HNode *n = exchange(h, k);
  return n && n->op == OP_ALL_GATHER;
}

/* Is it for one product alone? XLA's partitioner makes a loop of such a gather and its product, which multiplies
 * one part while it passes the next on (a windowed einsum): permutes, that is, and no gather. */
static bool windowed(const HNode *n) {
  while (n->n_users == 1 && (n->users[0]->kind == H_RESHAPE || n->users[0]->kind == H_TRANSPOSE))
    n = n->users[0];
  return n->n_users == 1 && n->users[0]->kind == H_CONV;
}

/* Is there one in the loop, of gathers or of both kinds? */
static bool holds(const HNode *loop, bool gather) {
  for (int c = 0; c < loop->n_comps; c++)
    for (int i = 0; i < loop->comps[c]->nodes.n; i++) {
      const HNode *x = loop->comps[c]->nodes.v[i];
      bool other = gather && x->kind == H_COLL && windowed(x);
      if (!x->dead && ((is_exchange(x, gather) && !other) || holds(x, gather))) return true;
    }
  return false;
}

/* ---- what each takes ---- */

static double node_bytes(const HNode *n) {
  double bytes = hlo_bytes(n);
  for (int i = 0; i < n->n_in; i++) bytes += hlo_bytes(n->in[i]);
  return bytes;
}

/* A loop moves what its operations move, in every round. */
static double loop_s(const Hide *h, const HNode *loop) {
  const Schedule *p = h->o->p;
  double s = 0;
  for (int c = 0; c < loop->n_comps; c++)
    for (int i = 0; i < loop->comps[c]->nodes.n; i++) {
      const HNode *n = loop->comps[c]->nodes.v[i];
      if (n->dead) continue;
      s += n->kind == H_WHILE ? loop_s(h, n) : node_bytes(n) / p->chip->hbm_bandwidth;
      if (n->kind == H_CONV) s += (double)n->conv->flops / p->compiler->peak(p->chip, n);
    }
  return s * (loop->kind == H_WHILE && loop->trip > 0 ? (double)loop->trip : 1);
}

static double compute_s(const Hide *h, int k) {
  const Schedule *p = h->o->p;
  const Kernel *kernel = p->kernels.v[k];
  const HNode *root = kernel->roots.n ? kernel->roots.v[0] : NULL;
  if (root && root->n_comps && (root->kind == H_WHILE || root->kind == H_COND))
    return loop_s(h, root);
  double bytes = 0, products = 0;
  for (int i = 0; i < kernel->reads.n; i++) bytes += kernel->reads.v[i]->bytes;
  for (int i = 0; i < kernel->roots.n; i++) bytes += hlo_bytes(kernel->roots.v[i]);
  for (int i = 0; i < kernel->inner.n; i++)
    if (kernel->inner.v[i]->kind == H_CONV)
      products +=
          (double)kernel->inner.v[i]->conv->flops / p->compiler->peak(p->chip, kernel->inner.v[i]);
  return MAX(bytes / p->chip->hbm_bandwidth, products);
}

static void weigh(Hide *h) {
  for (int i = 0; i < h->order->n; i++) {
    int k = h->order->v[i];
    const Kernel *kernel = h->o->p->kernels.v[k];
    const HNode *n = exchange(h, k);
    const HNode *loop = kernel->roots.n && !n ? kernel->roots.v[0] : NULL;
    h->place[k] = i;
    h->holds[k] = loop && loop->n_comps && holds(loop, false);
    h->gathers[k] = h->holds[k] && holds(loop, true);
    h->cost[k] = n ? collective_time(h->o->p, kernel, (HNode *)n) : compute_s(h, k);
    for (int q = 0; q < h->o->pred[k].n; q++) {
      int x = h->o->pred[k].v[q];
      h->depth[k] = fmax(h->depth[k], h->depth[x] + (exchange(h, x) ? h->cost[x] : 0));
    }
  }
}

/* ---- which comes next ---- */

/* Is it an exchange's end? The beginning comes after that. */
static bool is_end(const Hide *h, int k) { return exchange(h, k) && !h->ended[k]; }
static bool is_start(const Hide *h, int k) { return exchange(h, k) && h->ended[k]; }

/* Does it take the network? A loop with exchanges in it does as an exchange's end. */
static bool takes(const Hide *h, int k) { return is_end(h, k) || h->holds[k]; }

/* One gather at a time. */
static bool blocked(const Hide *h, int k) {
  return h->n_under_way > 0 && ((is_end(h, k) && is_gather(h, k)) || h->gathers[k]);
}

static bool reads_exchange(const Hide *h, int k) {
  for (int q = 0; q < h->o->pred[k].n; q++)
    if (exchange(h, h->o->pred[k].v[q])) return true;
  return false;
}

static int frees(const Hide *h, int k) {
  int n = 0;
  for (int q = 0; q < h->o->pred[k].n; q++) n += h->left[h->o->pred[k].v[q]] == 1;
  return n;
}

/* The end of what is still under way; < 0: nothing is. */
static double latest(const Hide *h) {
  double at = -1;
  for (int i = 0; i < h->open.n; i++)
    if (is_start(h, h->open.v[i]) && h->ready[h->open.v[i]] > h->now)
      at = fmax(at, h->ready[h->open.v[i]]);
  return at;
}

static int compare(double a, double b) { return a > b ? 1 : a < b ? -1 : 0; }

/* > 0: a comes before b, of the rules the first that tells them apart. */
static int better(const Hide *h, int a, int b, double until) {
  int c = compare(takes(h, a), takes(h, b));
  if (!c) c = compare(fmax(h->ready[b] - h->now, 0), fmax(h->ready[a] - h->now, 0));
  bool backed = h->queue > 0;
  bool free_a = is_start(h, a) && is_gather(h, a) && backed,
       free_b = is_start(h, b) && is_gather(h, b) && backed;
  if (!c) /* nothing is before it that waits: as early as can be */
    c = compare(!(is_start(h, a) && h->depth[a] == 0 && !free_a),
                !(is_start(h, b) && h->depth[b] == 0 && !free_b));
  if (!c) c = compare(free_a, free_b);
  if (!c) c = compare(h->depth[a], h->depth[b]);
  if (!c && until >= 0 && !is_start(h, a) && !is_start(h, b)) /* what fills the time best */
    c = compare(fabs(until - h->now - h->cost[b]), fabs(until - h->now - h->cost[a]));
  if (!c) c = compare(reads_exchange(h, a), reads_exchange(h, b));
  if (!c) c = compare(frees(h, a), frees(h, b));
  return c ? c : h->place[a] - h->place[b];
}

static int next(const Hide *h) {
  int best = -1;
  double until = latest(h);
  for (int i = 0; i < h->open.n; i++) {
    if (blocked(h, h->open.v[i])) continue;
    if (best < 0 || better(h, h->open.v[i], h->open.v[best], until) > 0) best = i;
  }
  return best;
}

static void open_up(Hide *h, int k) {
  *vec_push(&h->open) = k;
  h->queue += is_gather(h, k);
}

static void put(Hide *h, int at) {
  int k = h->open.v[at];
  h->now = fmax(h->now, h->ready[k]);
  if (is_end(h, k)) {
    h->ended[k] = true;
    h->ready[k] = h->now + h->cost[k];
    h->n_under_way += is_gather(h, k);
    h->queue -= is_gather(h, k);
    return;
  }
  h->n_under_way -= is_gather(h, k);
  if (h->n_under_way > 0 && !exchange(h, k)) *vec_push(h->carry) = k;
  h->now += exchange(h, k) ? 0 : h->cost[k];
  h->open.v[at] = h->open.v[--h->open.n];
  *vec_push(&h->out) = k;
  for (int q = 0; q < h->o->pred[k].n; q++) {
    int x = h->o->pred[k].v[q];
    h->ready[x] = fmax(h->ready[x], h->now);
    if (--h->left[x] == 0) open_up(h, x);
  }
}

static void run(Hide *h) {
  for (int i = 0; i < h->order->n; i++) h->left[h->order->v[i]] = h->o->succ[h->order->v[i]].n;
  for (int i = h->order->n - 1; i >= 0; i--)
    if (!h->left[h->order->v[i]]) open_up(h, h->order->v[i]);
  for (int at; (at = next(h)) >= 0;) put(h, at);
}

bool order_hides(const Order *o, const Ints *order, Ints *out, Ints *carry) {
  size_t n = (size_t)o->n + 1;
  Hide h = {o,
            order,
            xcalloc(n, sizeof *h.place),
            xcalloc(n, sizeof *h.cost),
            xcalloc(n, sizeof *h.ready),
            xcalloc(n, sizeof *h.depth),
            xcalloc(n, sizeof *h.left),
            xcalloc(n, sizeof *h.ended),
            xcalloc(n, sizeof *h.holds),
            xcalloc(n, sizeof *h.gathers),
            .carry = carry};
  bool any = false;
  for (int i = 0; i < order->n; i++) any |= exchange(&h, order->v[i]) != NULL;
  if (any) {
    weigh(&h);
    run(&h);
  }
  for (int i = h.out.n - 1; i >= 0; i--) *vec_push(out) = h.out.v[i];
  free(h.place);
  free(h.cost);
  free(h.ready);
  free(h.depth);
  free(h.left);
  free(h.ended);
  free(h.holds);
  free(h.gathers);
  vec_free(&h.open);
  vec_free(&h.out);
  return out->n == order->n && any;
}
