/* How libtpu's compiler joins kernels: producers with what reads them, siblings that read one array, loops of an
 * optimizer that do the same. What is joined has at most RESULTS results. */
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/kernels.h"
#include "sim/tpu/tpu.h"

#define RESULTS 8     /* that a kernel may write */
#define MOST_READS 16 /* of kernels that are told apart by how many they are */
#define SHORT 65536   /* elements: sums over fewer join what is no sum, as do sums of all */

/* Results of a that somebody beside a and b needs. */
static int results(const Kernel *a, const Kernel *b) {
  int count = 0;
  for (int i = 0; i < a->roots.n; i++) {
    const HNode *n = a->roots.v[i];
    bool needed = n->is_output;
    for (int u = 0; u < n->n_users && !needed; u++)
      needed = !kernel_inside(a, n->users[u]) && !kernel_inside(b, n->users[u]);
    count += needed;
  }
  return count;
}

static bool too_many_results(const Kernel *a, const Kernel *b) {
  return a->roots.n + b->roots.n > RESULTS && results(a, b) + results(b, a) > RESULTS;
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

/* Does it do nothing but add up columns? */
static bool sums_columns(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind == H_EWISE && n->op == OP_CONVERT) continue; /* what it sums up, rounded */
    if (n->kind != H_REDUCE || n->dims[n->n_dims - 1] == n->in[0]->rank - 1) return false;
  }
  return k->reduce && !k->conv && !k->dead && kernel_loops_over(k);
}

/* The sum of columns that reads the array that kernel `at` widens, and neither needs the other; -1: none. */
static int sum_beside(Joins *js, int at) {
  const Schedule *p = js->p;
  const Kernel *k = p->kernels.v[at];
  if (k->dead || !kernel_only_widens(k) || k->reads.n != 1) return -1;
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *o = p->kernels.v[i];
    if (!sums_columns(o) || kernel_domain(o) != kernel_domain(k)) continue;
    for (int r = 0; r < o->reads.n; r++)
      if (o->reads.v[r] == k->reads.v[0] && !joins_depends(js, i, at, false) &&
          !joins_depends(js, at, i, false))
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

/* It goes with a sum, if the sums that were merged meanwhile do not come between, else with its maker. */
static void join_widening(Joins *js) {
  const Schedule *p = js->p;
  for (int at = 0; at < p->kernels.n && !p->params->weighs; at++) {
    int sum = sum_beside(js, at);
    if (sum >= 0) joins_merge(js, MIN(at, sum), MAX(at, sum));
  }
  joins_makers(js, false);
}

/* A loop that has one result joins the last of its readers that it can, the others read that. */
static void join_loops(Joins *js) {
  const Schedule *p = js->p;
  int n = p->kernels.n;
  for (int reads = 1; reads <= MOST_READS; reads++)
    for (int at = n - 1; at >= 0; at--) {
      const Kernel *k = p->kernels.v[at];
      if (k->dead || (k->reads.n != reads && (reads < MOST_READS || k->reads.n < reads))) continue;
      for (int i = at, m; (m = joins_maker(js, i, true)) >= 0; i = m) joins_merge(js, m, i);
    }
}

/* Does it add up all that it walks over, as losses do? */
static bool sums_all(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->kind == H_REDUCE && hlo_count(k->roots.v[i]) == 1) return true;
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
  if (k->dead || k->copy || k->conv || k->reduce || !kernel_loops_over(k)) return false;
  const HValue *v = k->roots.v[0]->val;
  for (int i = 0; i < k->inner.n; i++) work += k->inner.v[i]->kind == H_EWISE;
  for (int r = 0; r < k->reads.n; r++) {
    const HValue *x = k->reads.v[r];
    /* tables and sums of rows may be turned, see row_copies.c */
    bool turned = x->node->kind == H_SCATTER && v->order[0] != v->node->rank - 1;
    if (turned || (hlo_count(x->node) == kernel_domain(k) && !tpu_same_order(x, v))) return false;
  }
  return work > 1 && !v->alias && !v->lone && kernel_domain(k) > 2;
}

static double shared_bytes(const Kernel *a, const Kernel *b) {
  double bytes = 0;
  for (int i = 0; i < a->reads.n; i++)
    for (int q = 0; q < b->reads.n; q++)
      if (a->reads.v[i] == b->reads.v[q]) bytes += hlo_bytes(a->reads.v[i]->node);
  return bytes;
}

/* Do the sums b share more with other sums that have to wait for a? Those they go with, then. */
static bool waits_for_better(Joins *js, int a, int b) {
  const Schedule *p = js->p;
  const Kernel *ka = p->kernels.v[a], *kb = p->kernels.v[b];
  if (!ka->reduce || !kb->reduce) return false;
  double now = shared_bytes(ka, kb);
  for (int i = a + 1; i < p->kernels.n && i < a + 400; i++) {
    const Kernel *k = p->kernels.v[i];
    if (i != b && !k->dead && k->reduce && !k->conv && kernel_loops_over(k) &&
        kernel_domain(k) == kernel_domain(kb) && shared_bytes(kb, k) > now &&
        joins_depends(js, i, a, false) && !joins_depends(js, i, b, false) &&
        !joins_depends(js, b, i, false))
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
  return !k->reduce && hlo_count(n) > 1 && hlo_count(n) < kernel_domain(k);
}

bool tpu_joins_maker(Joins *js, int at, const HValue *v, bool loops) {
  const Kernel *k = js->p->kernels.v[at], *s = js->p->kernels.v[v->kernel];
  const HNode *e = s->conv && k->reduce ? quotients_of(k) : NULL;
  bool apart = s->conv && (sums_products(k, s->conv) || sums_pixels(k, s->conv));
  apart |= e && hlo_sides(e) < GROUPED;
  apart |= s->conv && s->conv->conv->groups_apart; /* read without the groups' dimension */
  bool both = !s->conv && !s->reduce && !k->reduce;
  if (apart || both != loops || (both && s->roots.n > 1 && !all_results(s))) return false;
  if (both && makes_masks(k) && makes_ints(s)) return false;
  return !(s->conv && k->pool) && !too_many_results(s, k);
}

bool tpu_shares_tables(const Kernel *k, const HNode *n) { return repeats(k, n); }

/* Does a read what arrives from other devices that b does not? */
static bool receives_more(const Kernel *a, const Kernel *b) {
  for (int q = 0; q < a->reads.n; q++) {
    const HNode *n = a->reads.v[q]->node;
    bool both = n->kind != H_COLL;
    for (int r = 0; r < b->reads.n && !both; r++) both = b->reads.v[r]->node == n;
    if (!both) return true;
  }
  return false;
}

bool tpu_joins_sibling(Joins *js, int i, int j, const HNode *src, bool table) {
  const Kernel *a = js->p->kernels.v[i], *b = js->p->kernels.v[j];
  (void)src;
  if (receives_more(a, b) || receives_more(b, a)) return false; /* one need not wait as long */
  if ((table && !same_work(a, b)) || sums_other_sides(a, b) || makes_masks(a) != makes_masks(b) ||
      makes_ints(a) != makes_ints(b))
    return false;
  bool apart = a->reduce != b->reduce && kernel_domain(a) > SHORT && !sums_all(a->reduce ? a : b) &&
               !kernel_only_widens(a) && !kernel_only_widens(b);
  return !(apart && !sums_result(a, b) && !sums_result(b, a)) && !too_many_results(a, b) &&
         !waits_for_better(js, i, j) && !waits_for_better(js, j, i);
}

/* What only widens its input waits until sums are merged, unless what saves most cycles goes first. */
void tpu_join(Joins *js) {
  Schedule *p = js->p;
  joins_attention(js);
  joins_makers(js, !p->params->weighs);
  joins_siblings(js, true);
  join_widening(js);
  join_loops(js);
  joins_siblings(js, false);
  for (int i = 0; i < p->kernels.n; i++) /* a custom call: default layouts */
    if (!p->kernels.v[i]->dead && p->kernels.v[i]->attention) p->kernels.v[i]->conv = NULL;
}

/* Arithmetic with a number. */
static bool takes_constant(const HNode *n) {
  for (int i = 0; i < n->n_in && n->kind == H_EWISE; i++)
    if (hlo_const_only(n->in[i])) return true;
  return false;
}

void tpu_classified(Schedule *p) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || (k->roots.n == 1 && k->roots.v[0]->val->alias)) continue;
    for (int q = 0; q < k->inner.n; q++) k->scalar &= !hlo_cuts_number(k->inner.v[q]);
    const HNode *root = k->roots.v[0];
    bool loop = takes_constant(root) || (root->kind == H_EWISE && op_cost[root->op].expanded);
    k->alone &= !loop; /* the number is repeated, the operation several */
  }
}

void tpu_pairs(Schedule *p) {
  if (!p->params->pairs || p->comp->parent) return;
  VEC(int) loops = {0};
  Joins js = joins_open(p);
  for (int i = 0; i < p->kernels.n; i++)
    if (walks_alike(p->kernels.v[i])) *vec_push(&loops) = i;
  for (int at = 0; at < loops.n; at++)
    for (int to = at + 1, i = loops.v[at]; to < loops.n && i >= 0; to++) {
      int j = loops.v[to];
      if (j < 0 || !same_work(p->kernels.v[i], p->kernels.v[j]) ||
          too_many_results(p->kernels.v[i], p->kernels.v[j]) || joins_depends(&js, j, i, false) ||
          joins_depends(&js, i, j, false))
        continue;
      joins_merge(&js, i, j);
      loops.v[to] = i = -1; /* both have found theirs */
    }
  vec_free(&loops);
  joins_close(&js);
}
