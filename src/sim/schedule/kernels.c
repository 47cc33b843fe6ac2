/* From stored nodes to kernels: one each at first, which the compiler then joins, as long as nothing goes round
 * in a circle. */
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/kernels.h"

Kernel *sched_kernel(Schedule *p) {
  Kernel *k = ARENA_NEW(p->arena, Kernel);
  k->comp = p->comp;
  k->mult = p->mult;
  k->pos = -1;
  k->windows = 1;
  *vec_push(&p->kernels) = k;
  return k;
}

void sched_kernel_free(Kernel *k) {
  vec_free(&k->roots);
  vec_free(&k->inner);
  vec_free(&k->reads);
  vec_free(&k->waits);
}

static int by_id(const void *a, const void *b) {
  const HNode *x = *(HNode *const *)a, *y = *(HNode *const *)b;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Inside and inputs of a kernel, from its roots backwards. */
static void gather(Joins *js, Kernel *k) {
  const Schedule *p = js->p;
  int stamp = ++js->stamp, *mark = js->mark;
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
    if (n->inlined) k->soft = true, k->rows = p->compiler->holds_rows;
    for (int i = 0; i < n->n_after; i++)
      if (n->after[i]->val && n->after[i]->comp == p->comp) *vec_push(&k->waits) = n->after[i]->val;
    if (n->kind == H_RWIN) k->pool = p->compiler->pools && p->compiler->pools(p, n);
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

Joins joins_open(Schedule *p) {
  return (Joins){.p = p,
                 .walk = xcalloc((size_t)p->kernels.n + 1, sizeof(int)),
                 .mark = xcalloc((size_t)p->g->n_nodes + 1, sizeof(int))};
}

void joins_close(Joins *js) {
  free(js->walk);
  free(js->mark);
}

bool joins_depends(Joins *js, int to, int from, bool around) {
  const Schedule *p = js->p;
  if (to == from) return true;
  int walk = ++js->last;
  VEC(int) stack = {0};
  *vec_push(&stack) = to;
  bool hit = false;
  while (stack.n && !hit) {
    int at = stack.v[--stack.n];
    const Kernel *k = p->kernels.v[at];
    for (int i = 0; i < k->reads.n + k->waits.n; i++) {
      const HValue *v = base_of(i < k->reads.n ? k->reads.v[i] : k->waits.v[i - k->reads.n]);
      int src = v->kernel; /* where it is made: a view may be of what lies outside of this one */
      if (src < 0 || v->node->comp != p->comp || js->walk[src] == walk) continue;
      if (src == from) {
        if (around && at == to && i < k->reads.n) continue;
        hit = true;
      }
      js->walk[src] = walk;
      *vec_push(&stack) = src;
    }
  }
  vec_free(&stack);
  return hit;
}

bool kernel_in_place(const HNode *n) {
  return n->kind == H_DUS && n->comp->parent && n->n_in > 1 && n->in[1] != n->in[0];
}

bool kernel_updates(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->kind == H_DUS) return true;
  return false;
}

bool kernel_writes_in_place(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++)
    if (kernel_in_place(k->roots.v[i])) return true;
  return false;
}

int64_t kernel_domain(const Kernel *k) { /* elements that the kernel walks over */
  if (k->roots.n == 0) return 0;
  if (k->conv) return hlo_count(k->conv);
  int64_t m = 0;
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    m = MAX(m, hlo_count(n->kind == H_REDUCE ? n->in[0] : kernel_in_place(n) ? n->in[1] : n));
  }
  return m;
}

bool kernel_loops_over(const Kernel *k) {
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (!(hlo_light(n) || n->kind == H_REDUCE || n->kind == H_CONV || kernel_in_place(n)))
      return false;
    if (n->n_results > 1 || n->kind == H_REVERSE) return false;
  }
  return true;
}

bool kernel_only_widens(const Kernel *k) {
  const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
  return n && n->kind == H_EWISE && n->op == OP_CONVERT && k->inner.n == 1 &&
         hlo_bits(n->dt) > hlo_bits(n->in[0]->dt);
}

bool kernel_inside(const Kernel *k, const HNode *n) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i] == n) return true;
  return false;
}

void joins_merge_by(Joins *js, int dst, int src, const char *rule) {
  Schedule *p = js->p;
  Kernel *a = p->kernels.v[dst], *b = p->kernels.v[src];
  if (b->roots.n) sched_why(b->roots.v[0], "joined", rule);
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
  gather(js, a);
}

bool sched_of_stored(const Schedule *p, const HNode *n) {
  if (n->kind != H_RESHAPE && n->kind != H_TRANSPOSE) return false;
  const HNode *x = n->in[0];
  return x->val && (x->comp == p->comp || x->comp != NULL);
}

SchedView sched_flat_view(const Schedule *p, const HNode *n) {
  if (!sched_of_stored(p, n)) return VIEW_NONE;
  bool same = n->kind == H_RESHAPE && !n->in[0]->val->is_param;
  return same || hlo_stacked_argument(n) ? VIEW_ALIAS : VIEW_COPY;
}

/* One kernel a stored node. */
static void start(Schedule *p) {
  HComp *c = p->comp;
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
    SchedView view = p->compiler->view(p, n);
    if (view == VIEW_ALIAS) n->val->alias = n->in[0]->val;
    k->copy = view == VIEW_COPY;
  }
}

/* Scalar arithmetic, and single operations. */
static void classify(Kernel *k) {
  if (k->roots.n == 1 && k->roots.v[0]->val->alias) {
    k->scalar = true;
    return;
  }
  bool tiny = true;
  for (int q = 0; q < k->inner.n && tiny; q++)
    tiny = hlo_is_tiny(k->inner.v[q]) && hlo_light(k->inner.v[q]);
  k->scalar = tiny;
  int real = 0;
  for (int q = 0; q < k->inner.n; q++) {
    const HNode *n = k->inner.v[q];
    if (n->kind != H_RESHAPE && n->kind != H_CONST && !(n->kind == H_BCAST && hlo_const_only(n)))
      real++;
  }
  k->alone = real <= 1 && !k->conv &&
             k->roots.v[0]->kind != H_CONCAT && /* that is pads and maxima */
             (!k->roots.v[0]->val->lone || k->roots.v[0]->kind == H_DSLICE);
}

void sched_kernels(Schedule *p) {
  start(p);
  Joins js = joins_open(p);
  for (int i = 0; i < p->kernels.n; i++) gather(&js, p->kernels.v[i]);
  p->compiler->join(&js);
  joins_close(&js);
  for (int i = 0; i < p->kernels.n; i++)
    if (!p->kernels.v[i]->dead) classify(p->kernels.v[i]);
  if (p->compiler->classified) p->compiler->classified(p);
}
