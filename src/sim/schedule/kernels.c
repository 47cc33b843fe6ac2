/* From stored nodes to kernels: one each at first, then loops and reductions join what makes their
 * input, and siblings that walk over the same array join each other, as long as nothing goes round
 * in a circle. */
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

Kernel *sched_kernel(Schedule *p) {
  Kernel *k = ARENA_NEW(p->arena, Kernel);
  k->comp = p->comp;
  k->mult = p->mult;
  k->pos = -1;
  k->windows = 1;
  *vec_push(&p->kernels) = k;
  return k;
}

static int by_id(const void *a, const void *b) {
  const HNode *x = *(HNode *const *)a, *y = *(HNode *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Inside and inputs of a kernel, from its roots backwards. */
static void gather(Schedule *p, Kernel *k, int stamp, int *mark) {
  VEC(HNode *) stack = {0};
  k->inner.n = 0;
  k->reads.n = k->waits.n = 0;
  k->conv = NULL;
  k->reduce = false;
  for (int i = 0; i < k->roots.n; i++) {
    mark[k->roots.v[i]->id] = stamp;
    *vec_push(&stack) = k->roots.v[i];
  }
  while (stack.n) {
    HNode *n = stack.v[--stack.n];
    *vec_push(&k->inner) = n;
    if (n->kind == H_CONV) {
      if (!k->conv || n->conv->flops > k->conv->conv->flops) k->conv = n;
    }
    if (n->kind == H_REDUCE || (n->val && n->val->lone && n->val->packed)) k->reduce = true;
    if (n->inlined) k->soft = true, k->rows = !p->params->tpu;
    for (int i = 0; i < n->n_after; i++)
      if (n->after[i]->val && n->after[i]->comp == p->comp) *vec_push(&k->waits) = n->after[i]->val;
    if (n->kind == H_RWIN) k->pool = tpu_pool_emitter(p, n);
    for (int i = 0; i < n->n_in; i++) {
      HNode *x = n->in[i];
      if (mark[x->id] == stamp) continue;
      mark[x->id] = stamp;
      if (x->val && x->comp == p->comp && x->kernel >= 0 && p->kernels.v[x->kernel] == k) {
        *vec_push(&stack) = x; /* another root of this kernel: already pushed */
        continue;
      }
      if (x->val || x->comp != p->comp) {
        if (x->val) *vec_push(&k->reads) = x->val;
        continue;
      }
      if (x->kind == H_CONST) continue;
      *vec_push(&stack) = x;
    }
  }
  vec_free(&stack);
  if (k->inner.n > 1) qsort(k->inner.v, (size_t)k->inner.n, sizeof *k->inner.v, by_id);
}

/* Arithmetic with a number. */
static bool takes_constant(const HNode *n) {
  for (int i = 0; i < n->n_in && n->kind == H_EWISE; i++)
    if (hlo_const_only(n->in[i])) return true;
  return false;
}

typedef struct Seen { /* which kernels a walk has come by: those with its number */
  int *walk, last;
} Seen;

/* Does kernel `to` depend, directly or not, on kernel `from`? around: by another way than by reading
 * what that makes. */
static bool depends(const Schedule *p, int to, int from, bool around, Seen *seen) {
  if (to == from) return true;
  int walk = ++seen->last;
  VEC(int) stack = {0};
  *vec_push(&stack) = to;
  bool hit = false;
  while (stack.n && !hit) {
    int at = stack.v[--stack.n];
    const Kernel *k = p->kernels.v[at];
    for (int i = 0; i < k->reads.n + k->waits.n; i++) {
      HValue *v = i < k->reads.n ? k->reads.v[i] : k->waits.v[i - k->reads.n];
      int src = base_of(v)->kernel;
      if (src < 0 || v->node->comp != p->comp || seen->walk[src] == walk) continue;
      if (src == from) {
        if (around && at == to && i < k->reads.n) continue;
        hit = true;
      }
      seen->walk[src] = walk;
      *vec_push(&stack) = src;
    }
  }
  vec_free(&stack);
  return hit;
}

/* A slice written in place in every round of a loop: a loop over the slice. */
static bool in_place(const HNode *n) {
  return n->kind == H_DUS && n->comp->parent && n->n_in > 1 && n->in[1] != n->in[0];
}
static bool writes_in_place(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (in_place(k->roots.v[i])) return true;
  return false;
}

static int64_t domain(const Kernel *k) { /* elements that the kernel walks over */
  if (k->roots.n == 0) return 0;
  if (k->conv) return hlo_count(k->conv);
  int64_t m = 0;
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    m = MAX(m, hlo_count(n->kind == H_REDUCE ? n->in[0] : in_place(n) ? n->in[1] : n));
  }
  return m;
}

static bool loops_over(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (!(hlo_light(n) || n->kind == H_REDUCE || n->kind == H_CONV || in_place(n))) return false;
    if (n->n_results > 1 || n->kind == H_REVERSE) return false;
  }
  return true;
}

/* Does it do nothing but widen an array? */
static bool only_widens(const Kernel *k) {
  const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
  return n && n->kind == H_EWISE && n->op == OP_CONVERT && k->inner.n == 1 &&
         hlo_bits(n->dt) > hlo_bits(n->in[0]->dt);
}

#define RESULTS 8 /* that a kernel may write */

static bool inside(const Kernel *k, const HNode *n) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i] == n) return true;
  return false;
}

/* Results of a that somebody beside a and b needs. */
static int results(const Kernel *a, const Kernel *b) {
  int count = 0;
  for (int i = 0; i < a->roots.n; i++) {
    const HNode *n = a->roots.v[i];
    bool needed = n->is_output;
    for (int u = 0; u < n->n_users && !needed; u++)
      needed = !inside(a, n->users[u]) && !inside(b, n->users[u]);
    count += needed;
  }
  return count;
}
static bool too_many_results(const Kernel *a, const Kernel *b) {
  return a->roots.n + b->roots.n > RESULTS && results(a, b) + results(b, a) > RESULTS;
}

static void merge_into(Schedule *p, int dst, int src, int *stamp, int *mark) {
  Kernel *a = p->kernels.v[dst], *b = p->kernels.v[src];
  for (int i = 0; i < b->roots.n; i++) {
    *vec_push(&a->roots) = b->roots.v[i];
    b->roots.v[i]->kernel = dst;
    if (b->roots.v[i]->val) b->roots.v[i]->val->kernel = dst;
    for (int u = 0; u < b->roots.v[i]->n_users && b->roots.v[i]->n_results > 1; u++) {
      HNode *part = b->roots.v[i]->users[u];
      if (part->kind == H_GET) part->kernel = part->val->kernel = dst;
    }
  }
  b->dead = true;
  b->roots.n = 0;
  b->reads.n = b->waits.n = 0;
  gather(p, a, ++*stamp, mark);
}

static bool stored_bitcast(Schedule *p, HNode *n) {
  if (n->kind != H_RESHAPE && n->kind != H_TRANSPOSE) return false;
  HNode *x = n->in[0];
  return x->val && (x->comp == p->comp || x->comp != NULL);
}

/* Results of one attention that do not wait for each other are one kernel's: the output; the three
 * gradients. */
static void join_attention(Schedule *p, Seen *seen, int *stamp, int *mark) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    for (int q = 0; q < k->inner.n && !k->attention; q++) k->attention = k->inner.v[q]->attention;
  }
  for (int i = 0; i < p->kernels.n; i++)
    for (int j = i + 1; j < p->kernels.n && p->kernels.v[i]->attention; j++) {
      const Kernel *a = p->kernels.v[i], *b = p->kernels.v[j];
      if (a->attention == b->attention && !a->dead && !b->dead && !depends(p, j, i, false, seen) &&
          !depends(p, i, j, false, seen))
        merge_into(p, i, j, stamp, mark);
    }
}

#define ROW 65536 /* elements that one kernel of a framework holds */

/* Nothing but sums along whole rows? */
static bool sums_rows(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind != H_REDUCE) return false;
    const HNode *x = n->in[0];
    int64_t row = 1;
    for (int q = 0; q < n->n_dims; q++) {
      row *= x->d[n->dims[q]];
      if (n->dims[q] < x->rank - n->n_dims) return false;
    }
    if (row > ROW) return false;
  }
  return k->roots.n > 0 && !k->conv;
}

/* What walks over rows twice, once to sum them up (softmax, normalisation), holds each row meanwhile:
 * one of a framework's own kernels, where nothing that it sums up is somebody else's. */
static void join_row_sums(Schedule *p, int at, Seen *seen, int *stamp, int *mark) {
  Kernel *s = p->kernels.v[at];
  for (int i = at + 1; i < p->kernels.n && !s->dead && sums_rows(s); i++) {
    Kernel *k = p->kernels.v[i];
    bool sum = false, row = false;
    if (k->dead || k->conv || k->copy || !loops_over(k) || domain(k) != domain(s)) continue;
    for (int r = 0; r < k->reads.n; r++) {
      const HValue *v = k->reads.v[r];
      sum |= v->kernel == at && v->node->comp == p->comp;
      for (int q = 0; q < s->reads.n; q++)
        row |= s->reads.v[q] == v && hlo_count(v->node) == domain(s);
    }
    if (!sum || !row || depends(p, i, at, true, seen)) continue;
    merge_into(p, at, i, stamp, mark);
  }
}

/* A reduction of several results, as of the largest and where it is. */
static bool finds_several(const Kernel *k) {
  const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
  return n && n->kind == H_REDUCE && n->n_results > 1;
}

/* The dimension of what a reshape reads that its dimension d is a part of, or all; -1: it is joined of several. */
static int part_of(const HNode *n, int d) {
  const HNode *x = n->in[0];
  int64_t inside = 1, below = 1;
  for (int i = d + 1; i < n->rank; i++) inside *= n->d[i];
  for (int i = x->rank - 1; i >= 0; below *= x->d[i--])
    if (inside % below == 0 && (below * x->d[i]) % (inside * n->d[d]) == 0) return i;
  return -1;
}

/* Is n, whose dimension d that is, made of that product element by element, perhaps with a side taken apart? Then
 * *role is the part that the dimension has in it. */
static bool made_of(const HNode *n, int d, const HNode *product, char *role, int depth) {
  if (n == product) {
    *role = product->conv->out[d];
    return true;
  }
  if (depth > 12) return false;
  if (n->kind == H_RESHAPE) {
    int i = part_of(n, d);
    return i >= 0 && made_of(n->in[0], i, product, role, depth + 1);
  }
  bool moves = n->kind == H_TRANSPOSE;
  if (n->kind != H_EWISE && !moves) return false;
  for (int i = 0; i < n->n_in; i++)
    if (n->in[i]->rank == n->rank &&
        made_of(n->in[i], moves ? (int)n->dims[d] : d, product, role, depth + 1))
      return true;
  return false;
}

/* Does k add up several products of one kernel, element by element? Each is done before the next. */
static bool sums_products(const Kernel *k, const HNode *product) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    bool batch = false, inside = false;
    for (int q = 0; q < n->n_dims && n->kind == H_REDUCE; q++) {
      char role = 0;
      if (n->in[0]->d[n->dims[q]] < 2 || !made_of(n->in[0], (int)n->dims[q], product, &role, 0))
        continue;
      if (role == 'b') batch = true;
      else inside = true;
    }
    if (batch && !inside) return true;
  }
  return false;
}

/* Does k add up what lies beside each other in a convolution's image, as the gradient of an upsampled one? */
static bool sums_pixels(const Kernel *k, const HNode *product) {
  for (int i = 0; i < k->roots.n && product->conv->is_conv; i++) {
    const HNode *n = k->roots.v[i], *x = n->n_in ? n->in[0] : n;
    if (n->kind == H_REDUCE && x->kind == H_RESHAPE && x->rank > product->rank &&
        !hlo_same_dimensions(x))
      return true;
  }
  return false;
}

/* Does it write into an array in place, as a GPU's kernel does for one array at a time? */
static bool updates_alone(const Schedule *p, const Kernel *k) {
  bool updates = false;
  for (int i = 0; i < k->roots.n; i++) updates |= k->roots.v[i]->kind == H_DUS;
  return updates && !p->params->tpu;
}

#define LINE 32 /* columns that a GPU's block of threads sums up */

/* Do its sums keep all of a GPU busy, so that they may be added up where a loop is? */
static bool sums_widely(const Schedule *p, const Kernel *k) {
  double sms = chip_num(p->chip, "sms", 80) / p->chip->devices_per_chip;
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind != H_REDUCE) continue;
    bool along = false; /* rows */
    for (int q = 0; q < n->n_dims; q++) along |= n->dims[q] == n->in[0]->rank - 1;
    if ((double)hlo_count(n) < sms * (along ? 1 : LINE)) return false;
  }
  return true;
}

/* Slices that are written in place join a product unless what else is made of its result, element by
 * element, does: it takes in only one of its readers. */
static bool joined_before(const Schedule *p, int at, const HValue *v, Seen *seen) {
  const Kernel *k = p->kernels.v[at], *s = p->kernels.v[v->kernel];
  if (!p->params->tpu || !s->conv || !writes_in_place(k)) return false;
  for (int i = 0; i < s->roots.n; i++)
    if (s->roots.v[i] != v->node && !in_place(s->roots.v[i])) return true;
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *o = p->kernels.v[i];
    if (i == at || o->dead || o->copy || o->conv || o->reduce || writes_in_place(o) ||
        !loops_over(o) || domain(o) != domain(k))
      continue;
    for (int r = 0; r < o->reads.n; r++)
      if (base_of(o->reads.v[r]) == v && !depends(p, i, v->kernel, true, seen)) return true;
  }
  return false;
}

/* Does it put features beside each other? Their sums, as of a batch norm, are taken on the way. */
static bool joins_features(const Kernel *k) {
  const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
  return n && n->kind == H_CONCAT && n->index == n->rank - 1;
}

/* Does it do nothing but add up columns? */
static bool sums_columns(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind == H_EWISE && n->op == OP_CONVERT) continue; /* what it sums up, rounded */
    if (n->kind != H_REDUCE || n->dims[n->n_dims - 1] == n->in[0]->rank - 1) return false;
  }
  return k->reduce && !k->conv && !k->dead && loops_over(k);
}

/* The sum of columns that reads the array that kernel `at` widens, and neither needs the other; -1: none. */
static int sum_beside(const Schedule *p, int at, Seen *seen) {
  const Kernel *k = p->kernels.v[at];
  if (k->dead || !only_widens(k) || k->reads.n != 1) return -1;
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *o = p->kernels.v[i];
    if (!sums_columns(o) || domain(o) != domain(k)) continue;
    for (int r = 0; r < o->reads.n; r++)
      if (o->reads.v[r] == k->reads.v[0] && !depends(p, i, at, false, seen) &&
          !depends(p, at, i, false, seen))
        return i;
  }
  return -1;
}

/* Is all that it makes a result of the program? */
static bool all_results(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (!k->roots.v[i]->is_output) return false;
  return !k->comp->parent;
}

/* Are its results whole numbers? */
static bool makes_ints(const Kernel *k) { return dtype_is_int(k->roots.v[0]->dt); }

/* Are its results predicates? */
static bool makes_masks(const Kernel *k) { return k->roots.v[0]->dt == DT_I1; }

/* The exponentials, made again and stored nowhere, whose quotients k makes; or NULL. */
static const HNode *quotients_of(const Kernel *k) {
  for (int i = 0; i < k->roots.n && !k->dead && !k->conv; i++) {
    const HNode *e = hlo_exponentials(k->roots.v[i]);
    if (e && e->soft && !e->val) return e;
  }
  return NULL;
}

/* Does it make e to add up something made of it? */
static bool sums_with(const Kernel *k, const HNode *e) {
  bool sums = false;
  for (int i = 0; i < k->roots.n; i++)
    sums |= k->roots.v[i]->kind == H_REDUCE && hlo_count(k->roots.v[i]->in[0]) == hlo_count(e);
  return sums && !k->dead && inside(k, e);
}

/* Quotients of a softmax come out of the kernel that makes its exponentials again for the gradient's sums. */
static void join_quotients(Schedule *p, Seen *seen, int *stamp, int *mark) {
  for (int at = 0; at < p->kernels.n && p->params->tpu; at++) {
    const HNode *e = quotients_of(p->kernels.v[at]);
    for (int i = 0; i < p->kernels.n && e; i++) {
      if (!sums_with(p->kernels.v[i], e) || depends(p, i, at, false, seen) ||
          depends(p, at, i, false, seen))
        continue;
      merge_into(p, i, at, stamp, mark);
      break;
    }
  }
}

/* The kernel that makes a full-size input of kernel `at` and can make its results as well, the last of
 * several; -1: none. `loops`: of two loops without a sum or a product, else of others. */
static int maker_to_join(Schedule *p, int at, bool loops, Seen *seen) {
  const Kernel *k = p->kernels.v[at];
  int best = -1;
  bool several = finds_several(k);
  if (k->dead || k->conv || k->copy || k->rows || !(loops_over(k) || several) ||
      k->roots.v[0]->val->alias)
    return -1;
  if (k->roots.v[0]->val->lone) return -1;
  if (!p->params->tpu && !p->opts->eager && k->reduce && !sums_widely(p, k)) return -1;
  int64_t dom = domain(k);
  if (dom < 2) return -1;
  for (int r = 0; r < k->reads.n; r++) {
    HValue *v = base_of(k->reads.v[r]);
    if (v->kernel < 0 || v->node->comp != p->comp || hlo_count(v->node) != dom) continue;
    Kernel *s = p->kernels.v[v->kernel];
    bool walks = loops_over(s) || (p->params->tpu && k->reduce && joins_features(s));
    if (s == k || s->dead || s->copy || s->rows || !walks || domain(s) != dom) continue;
    if (updates_alone(p, s) || updates_alone(p, k)) continue;
    if (s->roots.v[0]->val->lone) continue;
    if (s->attention || (s->conv && !p->params->tpu) || (several && !s->conv)) continue;
    const HNode *e = s->conv && k->reduce ? quotients_of(k) : NULL;
    bool apart = s->conv && (sums_products(k, s->conv) || sums_pixels(k, s->conv));
    apart |= e && hlo_sides(e) < GROUPED;
    if (v->node->ends || (p->params->tpu && apart)) continue;
    if (s->reduce && !s->conv && !(k->reduce && v->node->kind != H_REDUCE)) continue;
    bool both = p->params->tpu && !s->conv && !s->reduce && !k->reduce;
    if (both != loops || (both && s->roots.n > 1 && !all_results(s))) continue;
    if (both && makes_masks(k) && makes_ints(s)) continue;
    bool part = false; /* something else of that kernel is needed whole */
    for (int q = 0; q < k->reads.n && !part; q++) {
      HValue *w = base_of(k->reads.v[q]);
      part = w->kernel == v->kernel && w->node->comp == p->comp && hlo_count(w->node) != dom &&
             !(w->node->soft && k->roots.v[0]->soft);
    }
    if (part || depends(p, at, v->kernel, true, seen)) continue;
    if (joined_before(p, at, v, seen) || (p->params->tpu && s->conv && k->pool)) continue;
    if (p->params->tpu && too_many_results(s, k)) continue;
    best = MAX(best, v->kernel);
  }
  return best;
}

#define MOST_READS 16

/* Loops and reductions join what makes their input; what was merged may join another maker. What only widens its
 * input waits where siblings are merged first, not what saves most cycles. */
static void join_makers(Schedule *p, bool widening, Seen *seen, int *stamp, int *mark) {
  bool waits = p->params->tpu && !p->params->weighs && !widening;
  for (int at = 0; at < p->kernels.n; at++) {
    if (waits && only_widens(p->kernels.v[at])) continue;
    for (int i = at, m; (m = maker_to_join(p, i, false, seen)) >= 0; i = m)
      merge_into(p, m, i, stamp, mark);
  }
}

/* It goes with a sum, if the sums that were merged meanwhile do not come between, else with its maker. */
static void join_widening(Schedule *p, Seen *seen, int *stamp, int *mark) {
  for (int at = 0; at < p->kernels.n && !p->params->weighs; at++) {
    int sum = sum_beside(p, at, seen);
    if (sum >= 0) merge_into(p, MIN(at, sum), MAX(at, sum), stamp, mark);
  }
  join_makers(p, true, seen, stamp, mark);
}

/* On TPUs a loop that has one result joins the last of its readers that it can, the others read that. */
static void join_loops(Schedule *p, Seen *seen, int *stamp, int *mark) {
  int n = p->kernels.n;
  for (int reads = 1; reads <= MOST_READS && p->params->tpu; reads++)
    for (int at = n - 1; at >= 0; at--) {
      const Kernel *k = p->kernels.v[at];
      if (k->dead || (k->reads.n != reads && (reads < MOST_READS || k->reads.n < reads))) continue;
      for (int i = at, m; (m = maker_to_join(p, i, true, seen)) >= 0; i = m)
        merge_into(p, m, i, stamp, mark);
    }
}

/* Does it read an array only to cut parts out of it? */
static bool takes_parts(const Kernel *k, const HNode *n) {
  bool parts = false;
  for (int i = 0; i < k->inner.n; i++)
    for (int q = 0; q < k->inner.v[i]->n_in; q++) {
      if (k->inner.v[i]->in[q] != n) continue;
      if (k->inner.v[i]->kind != H_SLICE) return false;
      parts = true;
    }
  return parts;
}

/* Does it pad the array to what it walks over? */
static bool pads(const Kernel *k, const HNode *n, int64_t dom) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_PAD && k->inner.v[i]->in[0] == n &&
        hlo_count(k->inner.v[i]) == dom)
      return true;
  return false;
}

/* Does it sum up what the other one writes rounded? */
static bool sums_result(const Kernel *sum, const Kernel *k) {
  for (int i = 0; i < sum->roots.n; i++)
    for (int q = 0; q < k->roots.n && sum->roots.v[i]->kind == H_REDUCE; q++) {
      const HNode *r = k->roots.v[q];
      if (r->kind == H_EWISE && r->op == OP_CONVERT && r->in[0] == sum->roots.v[i]->in[0])
        return true;
    }
  return false;
}

/* How many operations of that kind a kernel does. */
static int times_done(const Kernel *k, const HNode *n) {
  int count = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *x = k->inner.v[i];
    count += x->kind == n->kind && x->op == n->op && x->dt == n->dt;
  }
  return count;
}

/* The same operations, in whatever order, of arrays of one shape. */
static bool same_work(const Kernel *a, const Kernel *b) {
  const HNode *x = a->roots.v[0], *y = b->roots.v[0];
  bool same = a->inner.n == b->inner.n && a->roots.n == b->roots.n && x->rank == y->rank;
  for (int i = 0; same && i < x->rank; i++) same = x->d[i] == y->d[i];
  same = same && tpu_same_order(x->val, y->val);
  for (int i = 0; same && i < a->inner.n; i++)
    same = times_done(a, a->inner.v[i]) == times_done(b, a->inner.v[i]);
  return same;
}

/* A fusion over arrays that all lie alike? */
static bool walks_alike(const Kernel *k) {
  int work = 0;
  if (k->dead || k->copy || k->conv || k->reduce || !loops_over(k)) return false;
  const HValue *v = k->roots.v[0]->val;
  for (int i = 0; i < k->inner.n; i++) work += k->inner.v[i]->kind == H_EWISE;
  for (int r = 0; r < k->reads.n; r++) {
    const HValue *x = k->reads.v[r];
    /* tables and sums of rows may be turned, see row_layout.c */
    bool turned = x->node->kind == H_SCATTER && v->order[0] != v->node->rank - 1;
    if (turned || (hlo_count(x->node) == domain(k) && !tpu_same_order(x, v))) return false;
  }
  return work > 1 && !v->alias && !v->lone && domain(k) > 2;
}

static double shared_bytes(const Kernel *a, const Kernel *b) {
  double bytes = 0;
  for (int i = 0; i < a->reads.n; i++)
    for (int q = 0; q < b->reads.n; q++)
      if (a->reads.v[i] == b->reads.v[q]) bytes += hlo_bytes(a->reads.v[i]->node);
  return bytes;
}

/* Do the sums b share more with other sums that have to wait for a? Those they go with, then. */
static bool waits_for_better(const Schedule *p, int a, int b, Seen *seen) {
  const Kernel *ka = p->kernels.v[a], *kb = p->kernels.v[b];
  if (!p->params->tpu || !ka->reduce || !kb->reduce) return false;
  double now = shared_bytes(ka, kb);
  for (int i = a + 1; i < p->kernels.n && i < a + 400; i++) {
    const Kernel *k = p->kernels.v[i];
    if (i != b && !k->dead && k->reduce && !k->conv && loops_over(k) && domain(k) == domain(kb) &&
        shared_bytes(kb, k) > now && depends(p, i, a, false, seen) &&
        !depends(p, i, b, false, seen) && !depends(p, b, i, false, seen))
      return true;
  }
  return false;
}

/* Sums over arrays of as many elements but other sides, of which no loop walks over both. */
static bool sums_other_sides(const Kernel *a, const Kernel *b) {
  const HNode *x = a->roots.v[0], *y = b->roots.v[0];
  if (x->kind != H_REDUCE || y->kind != H_REDUCE || x->in[0]->rank != y->in[0]->rank) return false;
  for (int i = 0; i < x->in[0]->rank; i++)
    if (x->in[0]->d[i] != y->in[0]->d[i]) return true;
  return false;
}

/* Does a loop repeat n, a table or a vector? */
static bool repeats(const Kernel *k, const HNode *n) {
  return !k->reduce && hlo_count(n) > 1 && hlo_count(n) < domain(k);
}

/* Siblings: the same domain, a shared input of full size, no dependence. */
static void join_siblings(Schedule *p, bool sums, Seen *seen, int *stamp, int *mark) {
  bool eager = p->opts->eager && !p->params->tpu;
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *a = p->kernels.v[i];
    if (a->dead || a->copy || a->conv || !loops_over(a) || a->roots.v[0]->val->alias) continue;
    if (a->roots.v[0]->val->lone) continue;
    int64_t dom = domain(a);
    if (dom < 16 && !tpu_cuts_number(a->roots.v[0])) continue;
    for (int r = 0; r < a->reads.n; r++) {
      HNode *src = a->reads.v[r]->node;
      bool table = p->params->tpu && !sums && repeats(a, src);
      if ((hlo_count(src) < dom && !pads(a, src, dom) && !table) ||
          (hlo_count(src) > dom && !writes_in_place(a) && !takes_parts(a, src)))
        continue;
      /* other kernels that read it */
      for (int j = i + 1; j < p->kernels.n && j < i + 400; j++) {
        Kernel *b = p->kernels.v[j];
        if (b->dead || b->copy || b->conv || !loops_over(b) || domain(b) != dom ||
            b->roots.v[0]->val->alias || b->roots.v[0]->val->lone || a->rows || b->rows)
          continue;
        if ((eager || sums) && !(a->reduce && b->reduce) && (sums || src->ends)) continue;
        if (updates_alone(p, a) || updates_alone(p, b)) continue;
        if (table && !same_work(a, b)) continue;
        if (p->params->tpu && sums_other_sides(a, b)) continue;
        if (p->params->tpu && (makes_masks(a) != makes_masks(b) || makes_ints(a) != makes_ints(b)))
          continue;
        if ((p->params->tpu || eager) && a->reduce != b->reduce && dom > 8192 && !only_widens(a) &&
            !only_widens(b) && !(p->params->tpu && (sums_result(a, b) || sums_result(b, a))))
          continue;
        bool shares = false;
        for (int q = 0; q < b->reads.n && !shares; q++) shares = b->reads.v[q] == a->reads.v[r];
        if (!shares || depends(p, j, i, false, seen) || depends(p, i, j, false, seen) ||
            (p->params->tpu && too_many_results(a, b)) || waits_for_better(p, i, j, seen) ||
            waits_for_better(p, j, i, seen))
          continue;
        merge_into(p, i, j, stamp, mark);
        if (!writes_in_place(a)) continue;
        r = -1; /* what it reads is another list now */
        break;
      }
    }
  }
}

void sched_kernels(Schedule *p) {
  HComp *c = p->comp;
  int *mark = calloc((size_t)p->g->n_nodes + 1, sizeof *mark), stamp = 0;
  /* one kernel a stored node */
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    if (n->dead || !n->val || n->val->is_param || n->kind == H_CONST) continue;
    if (n->kind == H_GET) { /* a result of its operation */
      n->val->kernel = n->in[0]->kernel;
      n->kernel = n->in[0]->kernel;
      n->val->result = n->index;
      continue;
    }
    Kernel *k = sched_kernel(p);
    n->kernel = p->kernels.n - 1;
    n->val->kernel = n->kernel;
    *vec_push(&k->roots) = n;
    if (tpu_slice_view(p->params, n)) {
      n->val->alias = n->in[0]->val;
    } else if (stored_bitcast(p, n) &&
               (hlo_stacked_argument(n) || (n->lies && n->view && !n->is_output) ||
                (tpu_bitcast(p, n) && !n->in[0]->val->is_param))) {
      n->val->alias = n->in[0]->val;
    } else if (stored_bitcast(p, n) || ((n->rows || n->lies) && n->op == OP_COPY) ||
               (n->view && n->in[0]->kind == H_TRANSPOSE && n->in[0]->in[0]->val)) {
      k->copy = true;
    }
  }
  for (int i = 0; i < p->kernels.n; i++) gather(p, p->kernels.v[i], ++stamp, mark);
  Seen seen = {xcalloc((size_t)p->kernels.n + 1, sizeof(int)), 0};
  join_attention(p, &seen, &stamp, mark);
  join_quotients(p, &seen, &stamp, mark);
  join_makers(p, false, &seen, &stamp, mark);
  if (p->params->tpu) join_siblings(p, true, &seen, &stamp, mark);
  if (p->params->tpu) join_widening(p, &seen, &stamp, mark);
  join_loops(p, &seen, &stamp, mark);
  bool eager = p->opts->eager && !p->params->tpu;
  for (int i = 0; i < p->kernels.n && eager; i++) join_row_sums(p, i, &seen, &stamp, mark);
  join_siblings(p, false, &seen, &stamp, mark);
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead) continue;
    if (k->attention && p->params->tpu) k->conv = NULL; /* a custom call: default layouts */
    if (k->roots.n == 1 && k->roots.v[0]->val->alias) {
      k->scalar = true;
      continue;
    }
    bool tiny = true;
    for (int q = 0; q < k->inner.n && tiny; q++)
      tiny = hlo_is_tiny(k->inner.v[q]) && hlo_light(k->inner.v[q]) &&
             !(p->params->tpu && tpu_cuts_number(k->inner.v[q]));
    k->scalar = tiny;
    int real = 0;
    for (int q = 0; q < k->inner.n; q++) {
      const HNode *n = k->inner.v[q];
      if (n->kind != H_RESHAPE && n->kind != H_CONST && !(n->kind == H_BCAST && hlo_const_only(n)))
        real++;
    }
    k->alone = real <= 1 && !k->conv &&
               k->roots.v[0]->kind != H_CONCAT &&                    /* that is pads and maxima */
               !(p->params->tpu && takes_constant(k->roots.v[0])) && /* and that is repeated */
               (!k->roots.v[0]->val->lone || k->roots.v[0]->kind == H_DSLICE);
  }
  free(seen.walk);
  free(mark);
}

void sched_pairs(Schedule *p) {
  if (!p->params->pairs || p->comp->parent) return;
  VEC(int) loops = {0};
  int *mark = xcalloc((size_t)p->g->n_nodes + 1, sizeof *mark), stamp = 0;
  Seen seen = {xcalloc((size_t)p->kernels.n + 1, sizeof(int)), 0};
  for (int i = 0; i < p->kernels.n; i++)
    if (walks_alike(p->kernels.v[i])) *vec_push(&loops) = i;
  for (int at = 0; at < loops.n; at++)
    for (int to = at + 1, i = loops.v[at]; to < loops.n && i >= 0; to++) {
      int j = loops.v[to];
      if (j < 0 || !same_work(p->kernels.v[i], p->kernels.v[j]) ||
          too_many_results(p->kernels.v[i], p->kernels.v[j]) || depends(p, j, i, false, &seen) ||
          depends(p, i, j, false, &seen))
        continue;
      merge_into(p, i, j, &stamp, mark);
      loops.v[to] = i = -1; /* both have found theirs */
    }
  vec_free(&loops);
  free(seen.walk);
  free(mark);
}
