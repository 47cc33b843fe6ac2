/* What is kept or brought on chip (VMEM; CMEM on v4), and when, as the compiler's memory space
 * assignment does: values one after the other, the largest first. A value stays from its making as
 * long as there is room, else it is written back and fetched again for a later reader, if a
 * transfer has the time. */
#include <math.h>
#include <stdlib.h>

#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

#define SMALL 262144 /* bytes */
#define LARGE 1048576
typedef VEC(int) Ints;

typedef struct Place {
  Schedule *p;
  Heap heap;     /* where the values that are not small lie */
  int n;         /* kernels */
  double *used;  /* bytes on chip at each kernel */
  double *start; /* cycles before each kernel */
  double *slack; /* cycles of each kernel in which no transfer runs */
  double *due;   /* cycles before each kernel as the compiler reckons them */
  double cap;
  int early;   /* the first kernels: up to the second product or reduction */
  Ints *reads; /* by value: kernels that read it, ascending */
} Place;

/* Where a value of this size could lie from kernel a to b, or -1: `at`, or wherever it fits with
 * `at` negative. For small ones there is always a crack. */
static double fits(const Place *m, int a, int b, double bytes, double at) {
  a = MAX(a, 0), b = MIN(b, m->n - 1);
  for (int i = a; i <= b; i++)
    if (m->used[i] + bytes > m->cap) return -1;
  return bytes <= SMALL ? 0 : heap_gap(&m->heap, a, b, bytes, at);
}
static bool room(const Place *m, int a, int b, double bytes) {
  return fits(m, a, b, bytes, -1) >= 0;
}

/* Between two readers a value may wait on chip for so many times what filling all of it takes; for
 * less where arrays are fetched in pieces. */
#define WAIT 8
#define WAIT_PIECES 6
static bool waits_long(const Place *m, int a, int b) {
  const Schedule *p = m->p;
  double fill = m->cap / p->chip->hbm_bandwidth * p->params->clock;
  return m->due[b] - m->due[MAX(a, 0)] > (p->params->piece > 0 ? WAIT_PIECES : WAIT) * fill;
}

/* In how many pieces an array is fetched: large ones in quarters, or in pieces of one size. */
static int pieces(const Place *m, const HValue *v) {
  const CostParams *params = m->p->params;
  if (params->quarters) return v->bytes >= LARGE && v->node->rank > 1 ? 4 : 1;
  return params->piece > 0 ? (int)MAX(1, ceil(v->bytes / params->piece)) : 1;
}

/* On chip from kernel a to b; what is fetched can be read there from kernel `ready`. */
#define take(m, v, a, ready, b, fetched) take_by(m, v, a, ready, b, fetched, __func__)
static void take_by(Place *m, HValue *v, int a, int ready, int b, bool fetched, const char *rule) {
  sched_why(v->node, fetched ? "fetched" : "on chip", rule);
  bool on = v->n_stays && !fetched && v->stays[v->n_stays - 1].last == a - 1;
  const Ints *r = &m->reads[v->index];
  for (int i = r->n - 1; !on; i--) { /* where it can lie for most of its readers */
    bool beyond = i >= 0 && r->v[i] > b;
    v->at = fits(m, a, beyond ? r->v[i] : b, v->bytes, -1);
    if (!beyond || v->at >= 0) break;
  }
  Stay stay = {a, b, ready, fetched, fetched ? pieces(m, v) : 1};
  for (int k = 0; k < stay.pieces; k++) {
    int from = sched_piece(&stay, k);
    double bytes = v->bytes / stay.pieces;
    if (v->bytes > SMALL) heap_put(&m->heap, from, b, MAX(v->at, 0) + k * bytes, bytes);
    for (int i = from; i <= b && i < m->n; i++) m->used[i] += bytes;
  }
  if (on) {
    v->stays[v->n_stays - 1].last = b;
    return;
  }
  if (v->n_stays == STAYS) {
    v->stays[STAYS - 1].last = b;
    return;
  }
  v->stays[v->n_stays++] = stay;
}

/* Cycles of a transfer between device memory and the chip, by the bandwidth that the kernels' times
 * are reckoned with here, and a little: it does not hide under one of as many bytes. */
static double transfer(const Place *m, const HValue *v) {
  return 1.02 * v->bytes / m->p->chip->hbm_bandwidth * m->p->params->clock;
}

/* Can this kernel write on-chip memory? Where two cores have one each, only loops' results may be
 * spread over both. */
static bool writes_chip(const Place *m, const Kernel *k) {
  bool whole = k->conv || k->copy || k->alone || tpu_joins_parts(k->roots.v[0]);
  return m->p->params->keep || !whole || tpu_slice_of_tiles(m->p, k);
}

/* Works from device memory to device memory. */
static bool beside(const Place *m, const Kernel *k) {
  return m->p->params->offload && k->roots.v[0]->kind == H_SCATTER;
}

/* Does it take these queries, or write these results, a few rows at a time from and to device
 * memory? */
static bool rows_at_a_time(const Kernel *k, const HNode *x) {
  if (x->op == OP_COPY) x = x->in[0];
  for (int i = 0; i < k->inner.n && k->attention; i++)
    if (k->inner.v[i]->scores && (k->inner.v[i]->in[0] == x || x == k->roots.v[0])) return true;
  return false;
}

/* May the kernel write this result straight to on-chip memory? */
static bool may_stay(const Place *m, const HValue *v) {
  if (v->kernel < 0 || (v->is_output && !v->given) || v->node->n_results > 1 ||
      v->node->kind == H_GET)
    return false;
  const Kernel *k = m->p->kernels.v[v->kernel];
  const HNode *root = k->roots.v[0];
  if (root->kind == H_WHILE || root->kind == H_COND || beside(m, k) || rows_at_a_time(k, root))
    return false;
  return writes_chip(m, k);
}

/* Is it written into a stack, perhaps converted? */
static bool stacked(const HNode *n) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_DUS && u->n_in > 1 && u->in[1] == n) return true;
    bool same = u->kind == H_RESHAPE || (u->kind == H_EWISE && u->op == OP_CONVERT);
    if (same && stacked(u)) return true;
  }
  return false;
}

/* The next value of a loop's state is made where the state lies. What goes into stacks as well does
 * not lie on the chips of two cores. */
static bool state_stays(const Place *m, const HValue *v) {
  const HComp *c = m->p->comp;
  if (!m->p->params->keep && stacked(v->node)) return false;
  for (int i = 0; i < c->params.n && i < c->outputs.n; i++) {
    const HValue *o = c->outputs.v[i]->val;
    if (c->params.v[i] != v->node || !o || o == v || o->kernel < 0 || o->node->comp != c) continue;
    return writes_chip(m, m->p->kernels.v[o->kernel]);
  }
  return true;
}

/* Seconds of a kernel by the compiler's roofline: the arrays' work, or the vector unit's, an operation
 * on a register at a time; and its transfers. */
#define SLOW 1.2 /* times what the vector unit needs at its best */
static void roofline(const Schedule *p, const Kernel *k, double *compute, double *memory) {
  double work = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind == H_EWISE) work += (double)hlo_count(n) / 1024;
    if (n->kind == H_REDUCE) work += (double)hlo_count(n->in[0]) / 1024;
  }
  *compute = MAX(k->flops / p->chip->peak_flops, SLOW * p->params->lvpu * work / p->params->clock);
  *memory = k->bytes / p->chip->hbm_bandwidth;
}

/* What a kernel gains when one of its operands or results is on chip, in seconds: the transfer when
 * it waits for memory, else how far it is from that, less than nothing. */
static double gain(const Place *m, const Kernel *k, double bytes) {
  double compute, memory;
  roofline(m->p, k, &compute, &memory);
  return memory > compute ? bytes / m->p->chip->hbm_bandwidth : memory - compute;
}

/* The order in which values are tried: by what their maker and readers gain, and the smaller the
 * better. */
static void weigh(const Place *m, HValue *v) {
  const Ints *at = &m->reads[v->index];
  double sum = 0;
  if (v->kernel >= 0 && !v->is_param) {
    const Kernel *k = m->p->kernels.v[v->kernel];
    if (!k->dearest) sum = gain(m, k, v->plain);
  }
  for (int i = 0; i < at->n; i++) {
    const Kernel *k = m->p->kernels.v[at->v[i]];
    if (k->dearest) continue;
    double g = gain(m, k, v->plain * tpu_read_fraction(k, v));
    sum = sum > 0 && g > 0 ? sum + g : MAX(sum, g);
  }
  v->worth = v->bytes > 0 ? sum / sqrt(v->bytes) : 0;
}

/* Small ones first, there is always room for them; then by worth, and of equals first what can be
 * made on chip and need not be brought there. */
static int dearer(const void *x, const void *y) {
  const HValue *a = *(HValue *const *)x, *b = *(HValue *const *)y;
  bool sa = a->bytes <= SMALL, sb = b->bytes <= SMALL;
  if (sa != sb) return sb - sa;
  if (a->worth != b->worth) return a->worth > b->worth ? -1 : 1;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->born != b->born ? b->born - a->born : a->node->id - b->node->id;
}
static int larger(const void *x, const void *y) {
  const HValue *a = *(HValue *const *)x, *b = *(HValue *const *)y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->node->id - b->node->id;
}

/* Finds the time for a transfer that ends before kernel `to`; the start, or -1. The compiler would
 * rather begin when what runs in the meantime takes a few times as long as the transfer does, longer
 * for one in pieces, than as late as possible. */
static int fetch_from(const Place *m, const HValue *v, int from, int to) {
  double need = transfer(m, v), got = 0, like = need * (pieces(m, v) > 1 ? 10 : 2);
  int latest = -1;
  for (int s = to - 1; s >= from && latest < 0; s--) {
    if (m->used[s] + v->bytes > m->cap) return -1;
    got += m->slack[s];
    if (got >= need) latest = s;
  }
  if (latest < 0) return -1;
  int best = latest;
  for (int s = latest - 1; s >= from; s--) {
    double was = m->due[to] - m->due[best], is = m->due[to] - m->due[s];
    if (is > was && fabs(is - like) >= fabs(was - like)) break;
    best = s;
  }
  for (; best <= latest; best++)
    if (room(m, best, to, v->bytes)) return best;
  return -1;
}

/* Uses the time of the kernels from s to t for a transfer: one in pieces is under way from the
 * start, another ends as the last one may. */
static void spend(Place *m, const HValue *v, int s, int t) {
  double need = transfer(m, v);
  bool first = pieces(m, v) > 1;
  for (int i = 0; i < t - s && need > 0; i++) {
    double *slack = &m->slack[first ? s + i : t - 1 - i], d = MIN(need, *slack);
    *slack -= d;
    need -= d;
  }
}

/* The last kernel by which a result that kernel `at` made on chip is back in device memory. */
static int written_back(Place *m, const HValue *v, int at) {
  double need = transfer(m, v);
  int s = at + 1;
  while (s < m->n && need > 0 && m->used[s] + v->bytes <= m->cap) {
    double d = MIN(need, m->slack[s]);
    m->slack[s++] -= d;
    need -= d;
  }
  return s - 1;
}

/* Kernel t writes its result over argument v, which it reads, in device memory. */
static bool written_over(const Place *m, const HValue *v, int t) {
  const Kernel *k = m->p->kernels.v[t];
  if (!v->donated || writes_chip(m, k)) return false;
  for (int r = 0; r < k->roots.n; r++)
    if (k->roots.v[r]->val && k->roots.v[r]->val->over == v) return true;
  return false;
}

/* Is it an argument of the program that the loop only takes slices of? */
static bool sliced_argument(const Schedule *p, const HValue *v) {
  const HNode *w = p->comp->owner;
  int i = v->node->index;
  return p->loop_body && v->is_param && i < w->n_in && w->in[i]->kind == H_PARAM;
}

/* Is it state that each round of a loop makes anew? */
static bool changes(const Place *m, const HValue *v) {
  const HComp *c = m->p->comp;
  int i = v->node->index;
  return m->p->loop_body && v->is_param && i < c->outputs.n && c->outputs.v[i] != v->node;
}

static void place(Place *m, HValue *v) {
  const Ints *at = &m->reads[v->index];
  bool on = false;
  int last = v->kernel;
  if (v->n_stays || v->held || (!m->p->params->keep && changes(m, v))) return;
  v->far = v->is_param || v->node->kind == H_CONST;
  for (int i = 0; i < at->n; i++) {
    int t = at->v[i];
    const HNode *root = m->p->kernels.v[t]->roots.v[0];
    bool loop = root->kind == H_WHILE || root->kind == H_COND;
    bool far = loop || beside(m, m->p->kernels.v[t]) ||
               rows_at_a_time(m->p->kernels.v[t], v->node) || written_over(m, v, t);
    if (t <= last) continue;
    if (loop && v->loop == t + 1 && i == 0 && may_stay(m, v) &&
        room(m, v->kernel, t - 1, v->bytes)) {
      take(m, v, v->kernel, v->kernel, t - 1, false);
      on = true;
      last = t;
      continue;
    }
    if (!far && !waits_long(m, last, t) &&
        (i == 0 ? may_stay(m, v) && room(m, v->kernel, t, v->bytes)
                : on && fits(m, last + 1, t, v->bytes, v->at) >= 0)) {
      int from = i == 0 ? v->kernel : last + 1;
      take(m, v, from, from, t, false);
      on = true;
      last = t;
      continue;
    }
    on = false;
    v->far = true;
    v->far_last = t;
    bool part = sliced_argument(m->p, v) && tpu_read_fraction(m->p->kernels.v[t], v) < 1;
    int s = !far && !part && room(m, t, t, v->bytes) ? fetch_from(m, v, v->kernel + 1, t) : -1;
    if (s >= 0) {
      spend(m, v, s, t);
      take(m, v, s, t, t, true);
      v->far_last = t - 1;
      on = true;
    }
    last = t;
  }
  if (v->is_output) v->far = true, v->far_last = m->n;
}

/* The kernel has the argument on chip whose memory its result takes: the result is made there, over
 * it, and written back while the next kernels run. */
static void place_given(Place *m, HValue *v) {
  if (v->n_stays || v->held || !v->over || !may_stay(m, v)) return;
  const HValue *x = v->over;
  const Kernel *k = m->p->kernels.v[v->kernel];
  bool there = false, read = false;
  for (int r = 0; r < k->reads.n; r++) read |= base_of(k->reads.v[r]) == x;
  for (int t = 0; t < x->n_stays && read; t++)
    there |= x->stays[t].ready <= v->kernel && v->kernel <= x->stays[t].last;
  if (!there) return;
  int from = v->kernel + 1, back = written_back(m, v, MAX(v->last_read, v->kernel));
  while (back >= from && fits(m, from, back, v->bytes, x->at) < 0) back--;
  if (back < v->last_read) return;
  v->at = x->at;
  if (v->bytes > SMALL && back >= from) heap_put(&m->heap, from, back, v->at, v->bytes);
  for (int i = from; i <= back && i < m->n; i++) m->used[i] += v->bytes;
  v->stays[v->n_stays++] = (Stay){v->kernel, back, v->kernel, false, 1};
  v->far = true;
  v->far_last = m->n;
}

/* Does a product take it, and every kernel that reads it take it as it is: no conversion, no sum
 * with what is computed there? Without a product, the first kernels count alone. */
static bool taken_as_it_is(const Place *m, const HValue *v) {
  const Ints *at = &m->reads[v->index];
  bool product = false, whole = true;
  for (int i = 0; i < at->n; i++) {
    const Kernel *k = m->p->kernels.v[at->v[i]];
    product |= k->conv != NULL;
    whole &= tpu_product_or_reduce(k) && tpu_is_operand(k, v->node);
  }
  return product ? whole : at->n > 0 && at->v[0] < m->early;
}

/* One argument, the largest of those that all their readers take as they are, is there before the
 * program starts. */
static void place_first(Place *m) {
  const CostParams *params = m->p->params;
  const HComp *c = m->p->comp;
  if (c->parent) return;
  for (int seen = 0; m->early < m->n && seen < 2; m->early++) {
    const Kernel *k = m->p->kernels.v[m->early];
    seen += !k->scalar && k->roots.n && tpu_product_or_reduce(k);
  }
  HValue *best = NULL;
  double most = m->p->vmem_free * (params->cmem > 0 ? 1 : 0.98);
  for (int i = 0; i < c->params.n; i++) {
    HValue *v = c->params.v[i]->val;
    if (!v || v->donated || v->node->rank == 0 || v->node->host || !taken_as_it_is(m, v)) continue;
    const Kernel *k = m->p->kernels.v[m->reads[v->index].v[0]];
    if (v->bytes > most || !tpu_product_or_reduce(k) || !tpu_fetch_first(m->p, k, v)) continue;
    if (!params->keep && k->roots.v[0]->kind == H_GATHER && v->bytes > most / 2) continue;
    if ((!best || v->bytes > best->bytes) && room(m, 0, v->last_read, v->bytes)) best = v;
  }
  if (!best) return;
  take(m, best, 0, 0, MIN(best->last_read, m->n - 1), true);
  best->far = true;
}

/* The largest array that one round makes and that fits on chip. */
static double largest_made(const Place *m) {
  double most = 0;
  for (int i = 0; i < m->p->values.n; i++) {
    const HValue *v = m->p->values.v[i];
    if (!v->is_param && v->kernel >= 0 && !v->alias && !v->dropped && v->node->kind != H_DUS &&
        v->bytes <= m->cap * 0.95)
      most = MAX(most, v->bytes);
  }
  return most;
}

/* Stacks that the program makes itself stay on chip for the whole loop; when not all of them fit,
 * the largest do of those that leave room for others and for what a round makes. */
static void place_stacks(Place *m) {
  Schedule *p = m->p;
  const HNode *w = p->comp->owner;
  VEC(HValue *) stacks = {0};
  double all = 0, limit = p->vmem_free * 0.6, most = p->vmem_free;
  for (int i = 0; i < p->comp->params.n && i < w->n_in; i++) {
    HValue *v = p->comp->params.v[i]->val;
    if (!v || !v->is_param || v->node->rank == 0 || v->node->host || w->in[i]->kind == H_PARAM)
      continue;
    *vec_push(&stacks) = v;
    all += v->bytes;
  }
  if (all > limit) limit = p->vmem_free * 0.87 - largest_made(m), most = p->vmem_free / 4;
  if (stacks.n > 1) qsort(stacks.v, (size_t)stacks.n, sizeof *stacks.v, larger);
  double held = 0;
  for (int i = 0; i < stacks.n; i++) {
    HValue *v = stacks.v[i];
    int k = v->node->index;
    if (v->bytes > most || held + v->bytes > limit) continue;
    held += v->bytes;
    take(m, v, 0, 0, m->n - 1, false);
    v->held = true;
    HValue *o = k < p->comp->outputs.n ? p->comp->outputs.v[k]->val : NULL;
    if (o && o->node->kind == H_DUS && o->node->in[0] == v->node && !o->n_stays) {
      o->held = true; /* written in place */
      o->stays[o->n_stays++] = (Stay){o->kernel, m->n - 1, o->kernel, false, 1};
    }
  }
  vec_free(&stacks);
}

/* Outside, their memory is the loop's while it runs. */
static void place_held(Place *m) {
  Schedule *p = m->p;
  for (int pass = 0; pass < 2; pass++)
    for (int t = 0; t < m->n; t++) {
      const Kernel *k = p->kernels.v[t];
      const HNode *w = k->roots.n ? k->roots.v[0] : NULL;
      if (!k->dearest || w->kind != H_WHILE) continue;
      const HComp *body = k->dearest->comp;
      for (int i = 0; i < w->n_in && i < body->params.n && pass == 0; i++)
        if (w->in[i]->val && body->params.v[i]->val->held) base_of(w->in[i]->val)->loop = t + 1;
      for (int i = 0; i < p->values.n && pass == 1; i++) {
        HValue *v = p->values.v[i];
        if (v->node->kind != H_GET || v->node->in[0] != w || v->node->index >= body->params.n)
          continue;
        if (!body->params.v[v->node->index]->val->held || v->is_output) continue;
        int end = v->loop == v->last + 1 ? v->last - 1 : v->last; /* another loop's from there */
        v->held = true;
        if (end > t && room(m, t + 1, end, v->bytes)) take(m, v, t + 1, t + 1, end, false);
      }
    }
}

/* A stack of 16-bit matrices, one a round for a product, where products want tiles of 16 rows: it is
 * laid out so before the loop, as a whole and on chip if there is room. */
static void place_retiled(Place *m, HValue *v) {
  const HNode *n = v->node;
  if (!m->p->params->tall || !sliced_argument(m->p, v) || hlo_bits(n->dt) != 16 || n->rank < 3 ||
      n->d[v->order[1]] % 16)
    return;
  const Ints *at = &m->reads[v->index];
  for (int i = 0; i < at->n; i++)
    if (!m->p->kernels.v[at->v[i]]->conv || tpu_read_fraction(m->p->kernels.v[at->v[i]], v) == 1)
      return;
  if (!at->n || !room(m, 0, m->n, v->bytes)) return;
  take(m, v, 0, 0, m->n - 1, true);
  v->far = v->retiled = true;
}

/* The small state of a loop stays on chip all the time, and so does what it becomes. */
static void place_state(Place *m) {
  Schedule *p = m->p;
  if (p->params->keep) place_stacks(m);
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->node->host) continue;
    bool stack = false; /* one slice a round */
    for (int u = 0; u < v->node->n_users; u++)
      stack |= v->node->users[u]->kind == H_DSLICE || v->node->users[u]->kind == H_DUS;
    if (stack && v->is_param && !v->n_stays) place_retiled(m, v);
    if (!v->is_param || stack || v->n_stays || v->bytes > p->vmem_free / 8 || v->node->rank == 0)
      continue;
    if (!room(m, 0, m->n, v->bytes) || !state_stays(m, v)) continue;
    take(m, v, 0, 0, m->n - 1, true);
    v->far = true;
  }
  for (int i = 0; i < p->comp->outputs.n && i < p->comp->params.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (!v || v->is_param || v->alias || v->kernel < 0 || v->node->comp != p->comp || v->n_stays)
      continue;
    if (p->comp->params.v[i]->val->n_stays && v->node->n_results == 1 &&
        room(m, v->kernel, m->n, v->bytes))
      take(m, v, v->kernel, v->kernel, m->n - 1, false);
  }
}

void tpu_place(Schedule *p) {
  const CostParams *params = p->params;
  int n = p->kernels.n;
  Place m = {.p = p, .n = n, .cap = p->vmem_free};
  bool shared =
      params->windows > 0 && !p->comp->parent; /* loops count: their scalars leave no more */
  if (shared) m.cap += params->scoped;
  m.heap.size = m.cap;
  m.used = calloc((size_t)n + 2, sizeof(double));
  m.start = calloc((size_t)n + 2, sizeof(double));
  m.slack = calloc((size_t)n + 2, sizeof(double));
  m.due = calloc((size_t)n + 2, sizeof(double));
  m.reads = calloc((size_t)p->values.n + 1, sizeof *m.reads);
  for (int i = 0; i < p->values.n; i++) p->values.v[i]->index = i;
  for (int i = 0; i < n; i++) {
    const Kernel *k = p->kernels.v[i];
    double c = k->reckoned_s * params->clock;
    m.start[i + 1] = m.start[i] + c;
    /* the compiler takes a kernel's time from its roofline when it looks for room for a transfer */
    double compute, memory;
    roofline(p, k, &compute, &memory);
    double roof = MAX(compute, memory);
    m.due[i + 1] = m.due[i] + (k->dearest ? c : MIN(c, roof * params->clock));
    m.slack[i] = k->dearest || p->comp->parent ? c : MIN(c, roof * params->clock);
    if (shared) m.used[i] = k->dearest ? params->scoped : tpu_windows(params, k);
    if (k->dearest) m.used[i] += k->dearest->peak_chip;
    m.used[i] += tpu_attention_room(p, k);
    if (m.used[i] > 0) heap_put(&m.heap, i, i, 0, m.used[i]);
    for (int r = 0; r < k->reads.n &&
                    !(k->scalar && k->roots.n && k->roots.v[0]->val && k->roots.v[0]->val->alias);
         r++) {
      HValue *v = base_of(k->reads.v[r]);
      if (v->node->comp != p->comp) continue;
      Ints *at = &m.reads[v->index];
      if (!at->n || at->v[at->n - 1] != i) *vec_push(at) = i;
    }
  }
  if (p->loop_body) place_state(&m);
  if (params->keep) place_held(&m);
  place_first(&m);
  VEC(HValue *) wish = {0};
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->alias || v->dropped || v->space == SP_SCALAR || v->node->rank == 0 || v->node->host ||
        (!m.reads[i].n && !v->given))
      continue;
    if (v->bytes > m.cap * 0.95) continue;
    v->born = may_stay(&m, v);
    weigh(&m, v);
    *vec_push(&wish) = v;
  }
  if (wish.n > 1) qsort(wish.v, (size_t)wish.n, sizeof *wish.v, dearer);
  for (int i = 0; i < wish.n; i++)
    if (!wish.v[i]->given) place(&m, wish.v[i]);
  for (int i = 0; i < wish.n; i++)
    if (wish.v[i]->given) place_given(&m, wish.v[i]);
  for (int i = 0; i < p->values.n; i++) vec_free(&m.reads[i]);
  free(m.reads);
  free(m.used);
  vec_free(&m.heap.chunks);
  free(m.start);
  free(m.slack);
  free(m.due);
  vec_free(&wish);
}

/* Kernel `at` is about to be costed: its inputs and results are where they are then. */
void tpu_see(Schedule *p, int at) {
  const Kernel *k = p->kernels.v[at];
  for (int r = 0; r < k->reads.n; r++)
    if (k->reads.v[r]->node->comp == p->comp && k->reads.v[r]->space != SP_SCALAR)
      k->reads.v[r]->space = sched_space(p, k->reads.v[r], at);
  for (int r = 0; r < k->roots.n; r++)
    if (k->roots.v[r]->val && k->roots.v[r]->val->space != SP_SCALAR)
      k->roots.v[r]->val->space = sched_space(p, k->roots.v[r]->val, at);
}

/* Afterwards: on chip for good, or with a copy there for a time. */
void tpu_settle(Schedule *p) {
  tpu_transfers(p);
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    if (v->space == SP_SCALAR) continue;
    v->space = SP_HBM;
    if (!v->n_stays) continue;
    v->space = p->params->cmem > 0 ? SP_CMEM : SP_VMEM;
    if (!v->far) continue;
    v->copy_bytes = v->bytes;
    v->copy_first = v->stays[v->n_stays - 1].first;
    v->copy_last = v->stays[v->n_stays - 1].last;
  }
}
