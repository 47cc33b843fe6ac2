/* How kernels are joined, as far as the compilers of all kinds of chips do it alike. */
#include "sim/hlo/query.h"
#include "sim/schedule/kernels.h"

#define SIBLINGS 400 /* kernels after it that are looked at */
#define LEAST 16     /* elements that are worth a look */

void joins_attention(Joins *js) {
  const Schedule *p = js->p;
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    for (int q = 0; q < k->inner.n && !k->attention; q++) k->attention = k->inner.v[q]->attention;
  }
  for (int i = 0; i < p->kernels.n; i++)
    for (int j = i + 1; j < p->kernels.n && p->kernels.v[i]->attention; j++) {
      const Kernel *a = p->kernels.v[i], *b = p->kernels.v[j];
      if (a->attention == b->attention && !a->dead && !b->dead && !joins_depends(js, j, i, false) &&
          !joins_depends(js, i, j, false))
        joins_merge(js, i, j);
    }
}

/* A reduction of several results, as of the largest and where it is. */
static bool finds_several(const Kernel *k) {
  const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
  return n && n->kind == H_REDUCE && n->n_results > 1;
}

int joins_maker(Joins *js, int at, bool loops) {
  const Schedule *p = js->p;
  const ChipCompiler *c = p->compiler;
  const Kernel *k = p->kernels.v[at];
  int best = -1;
  bool several = finds_several(k);
  if (k->dead || k->conv || k->copy || k->rows || !(kernel_loops_over(k) || several) ||
      k->roots.v[0]->val->alias)
    return -1;
  if (k->roots.v[0]->val->lone || (c->joins_nothing && c->joins_nothing(p, k))) return -1;
  int64_t dom = kernel_domain(k);
  if (dom < 2) return -1;
  for (int r = 0; r < k->reads.n; r++) {
    HValue *v = base_of(k->reads.v[r]);
    if (v->kernel < 0 || v->node->comp != p->comp || hlo_count(v->node) != dom) continue;
    const Kernel *s = p->kernels.v[v->kernel];
    if (s == k || s->dead || s->copy || s->rows || !kernel_loops_over(s) || kernel_domain(s) != dom)
      continue;
    if (s->roots.v[0]->val->lone || s->attention || (several && !s->conv) || v->node->ends)
      continue;
    if (s->reduce && !s->conv && !(k->reduce && v->node->kind != H_REDUCE)) continue;
    bool part = false; /* something else of that kernel is needed whole */
    for (int q = 0; q < k->reads.n && !part; q++) {
      HValue *w = base_of(k->reads.v[q]);
      part = w->kernel == v->kernel && w->node->comp == p->comp && hlo_count(w->node) != dom &&
             !(w->node->soft && k->roots.v[0]->soft);
    }
    if (part || joins_depends(js, at, v->kernel, true)) continue;
    if (c->joins_maker(js, at, v, loops)) best = MAX(best, v->kernel);
  }
  return best;
}

void joins_makers(Joins *js, bool skip_widening) {
  const Schedule *p = js->p;
  for (int at = 0; at < p->kernels.n; at++) {
    if (skip_widening && kernel_only_widens(p->kernels.v[at])) continue;
    for (int i = at, m; (m = joins_maker(js, i, false)) >= 0; i = m) joins_merge(js, m, i);
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

/* May b be looked at as a sibling of a, which walks over so many elements? */
static bool may_be_sibling(const Kernel *a, const Kernel *b, int64_t dom) {
  return !b->dead && !b->copy && !b->conv && kernel_loops_over(b) && kernel_domain(b) == dom &&
         !b->roots.v[0]->val->alias && !b->roots.v[0]->val->lone && !a->rows && !b->rows;
}

static bool reads(const Kernel *k, const HValue *v) {
  for (int q = 0; q < k->reads.n; q++)
    if (k->reads.v[q] == v) return true;
  return false;
}

/* Joins kernel i and the siblings that share its read r. True: that changed what it reads. `table`: a read that
 * is smaller than what is walked over. */
static bool join_siblings(Joins *js, int i, int r, bool sums, bool table) {
  const Schedule *p = js->p;
  const Kernel *a = p->kernels.v[i];
  const HNode *src = a->reads.v[r]->node;
  int64_t dom = kernel_domain(a);
  for (int j = i + 1; j < p->kernels.n && j < i + SIBLINGS; j++) {
    const Kernel *b = p->kernels.v[j];
    if (!may_be_sibling(a, b, dom) || (sums && !(a->reduce && b->reduce)) ||
        !reads(b, a->reads.v[r]) || joins_depends(js, j, i, false) ||
        joins_depends(js, i, j, false) || !p->compiler->joins_sibling(js, i, j, src, table))
      continue;
    joins_merge(js, i, j);
    if (kernel_writes_in_place(a)) return true;
  }
  return false;
}

void joins_siblings(Joins *js, bool sums) {
  const Schedule *p = js->p;
  const ChipCompiler *c = p->compiler;
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *a = p->kernels.v[i];
    if (a->dead || a->copy || a->conv || !kernel_loops_over(a) || a->roots.v[0]->val->alias ||
        a->roots.v[0]->val->lone)
      continue;
    int64_t dom = kernel_domain(a);
    if (dom < LEAST && !hlo_cuts_number(a->roots.v[0])) continue;
    for (int r = 0; r < a->reads.n; r++) {
      const HNode *src = a->reads.v[r]->node;
      bool table = !sums && c->shares_tables && c->shares_tables(a, src);
      if ((hlo_count(src) < dom && !pads(a, src, dom) && !table) ||
          (hlo_count(src) > dom && !kernel_writes_in_place(a) && !takes_parts(a, src)))
        continue;
      if (join_siblings(js, i, r, sums, table)) r = -1;
    }
  }
}
