/* The most memory that is alive at once, in device memory and on chip. */
#include <math.h>
#include <stdlib.h>

#include "sim/schedule/compiler.h"

/* May kernel k put its result o where its input v was? Sums over devices are made where this one's part was. What was
 * made with others has an operation between that names it. */
static bool may_share(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o) {
  Space from = sched_space(p, v, k->pos), to = sched_space(p, o, k->pos);
  bool state = v->is_param && p->comp->parent &&
               (!p->params->prefetch || (from == SP_HBM && to == SP_HBM)); /* of a loop */
  if ((v->is_param && !state) || v->is_output || v->bytes != o->bytes || v->node->comp != p->comp ||
      v->node->kind == H_CONST || from != to || k->copy || v->node->host != o->node->host)
    return false;
  if (p->compiler->tuples && v->kernel >= 0 && sched_several(p, v->kernel)) return false;
  if (o->node->kind == H_COLL && o->node->op == OP_ALL_REDUCE) /* not over one of several results */
    return o->node->in[0] == v->node && !(v->kernel >= 0 && p->kernels.v[v->kernel]->carries);
  return p->compiler->overwrites(p, k, v, o, state);
}

/* Does it? XLA for GPUs makes room for every temporary apart; in the memory of arguments and results, which
 * is there anyway, values lie one after the other (lend_results). */
bool sched_writes_over(const Schedule *p, const Kernel *k, const HValue *v, const HValue *o) {
  bool state = v->is_param && p->comp->parent;
  return (p->compiler->shares_temporaries || state) && may_share(p, k, v, o);
}

Space sched_space(const Schedule *p, const HValue *v, int at) {
  v = base_of((HValue *)v);
  if (v->space == SP_SCALAR) return SP_SCALAR;
  for (int i = 0; i < v->n_stays; i++)
    if (v->stays[i].ready <= at && at <= v->stays[i].last)
      return p->params->cmem > 0 ? SP_CMEM : SP_VMEM;
  return SP_HBM;
}

typedef VEC(HValue *) Values;

static int larger_first(const void *x, const void *y) {
  const HValue *a = *(HValue *const *)x, *b = *(HValue *const *)y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->first != b->first ? a->first - b->first : a->node->id - b->node->id;
}

/* Can b be where a is, then or before? */
static bool follows(const Schedule *p, const HValue *a, const HValue *b) {
  return a->to < b->from ||
         (a->to == b->from && b->kernel == b->from && may_share(p, p->kernels.v[b->kernel], a, b));
}

/* What a library's kernels need besides, as values of their own. */
static void add_rooms(Schedule *p, Values *temps) {
  for (int i = 0; i < p->kernels.n && p->compiler->lends_to_scratch; i++) {
    const Kernel *k = p->kernels.v[i];
    double bytes = k->conv ? p->compiler->scratch(p, k) : 0;
    if (bytes <= 0) continue;
    HValue *v = ARENA_NEW(p->arena, HValue);
    v->node = k->conv;
    v->bytes = bytes;
    v->from = v->to = i;
    v->kernel = -1;
    *vec_push(temps) = v;
  }
}

/* A new result's memory is there from the beginning. Where there is not much, and always on GPUs, values that are
 * no larger lie in it until the result is made, the largest first, in the smallest that will do. */
static void lend_results(Schedule *p, double *hbm) {
  Values results = {0}, temps = {0};
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    bool result = v->is_output && !v->given && !v->is_param && !v->alias && v->kernel >= 0;
    if (result) *vec_push(&results) = v;
    if (v->from <= v->to && v->bytes > 0 && !v->away_to) *vec_push(&temps) = v;
  }
  add_rooms(p, &temps);
  if (results.n) qsort(results.v, (size_t)results.n, sizeof *results.v, larger_first);
  if (temps.n) qsort(temps.v, (size_t)temps.n, sizeof *temps.v, larger_first);
  Values *in = xcalloc((size_t)results.n + 1, sizeof *in);
  for (int i = 0; i < temps.n && results.n; i++) {
    HValue *v = temps.v[i];
    for (int q = results.n - 1; q >= 0 && !v->lent; q--) {
      const HValue *r = results.v[q];
      bool over = v->to == r->kernel && may_share(p, p->kernels.v[r->kernel], v, r);
      bool free_then = v->bytes <= r->bytes && (v->to < r->kernel || over);
      for (int z = 0; z < in[q].n; z++)
        free_then &= follows(p, v, in[q].v[z]) || follows(p, in[q].v[z], v);
      if (!free_then) continue;
      v->lent = true;
      *vec_push(&in[q]) = v;
      for (int t = v->from; t <= v->to; t++) hbm[t] -= v->bytes;
    }
  }
  for (int q = 0; q < results.n; q++) vec_free(&in[q]);
  free(in);
  vec_free(&results);
  vec_free(&temps);
}

/* Does the loop read what its result is to be written over, but as what that result begins with? */
static bool loop_reads_beside(const HNode *w, int slot, const HNode *x) {
  for (int i = 0; i < w->n_in; i++)
    if (i != slot && w->in[i] == x) return true;
  return false;
}

/* A result that is there before the donated argument has been read, in whose memory it is to lie, is made in
 * memory of its own and copied. */
bool sched_copied_to_given(const Schedule *p, const HValue *v) {
  if (!v->over || v->alias || p->comp->parent || v->kernel < 0) return false;
  const HNode *n = v->node, *w = n->kind == H_GET ? n->in[0] : NULL;
  return v->over->last_read > v->first ||
         (w && w->kind == H_WHILE && loop_reads_beside(w, n->index, v->over->node));
}

/* The most that lives at once, in HBM and on chip. The compiler's peak is the larger of the two,
 * arguments and results on top (sim.c). */
void sched_peak(Schedule *p, bool lend) {
  p->peak_chip = p->peak_hbm = p->peak_host = 0;
  int n = p->kernels.n + 1;
  double *chip = calloc((size_t)n + 1, sizeof *chip), *hbm = calloc((size_t)n + 1, sizeof *hbm),
         *host = calloc((size_t)n + 1, sizeof *host);
  for (int i = 0; i < p->values.n; i++) {
    HValue *v = p->values.v[i];
    v->from = 0, v->to = -1;
    v->lent = false;
    bool own = !v->alias && !v->dropped && !(v->is_param && !p->comp->parent);
    if (p->comp->parent && v->is_param) own = false; /* the loop's state belongs to the caller */
    if (v->node->kind == H_CONST) own = v->bytes > 0 && !v->alias;
    if (v->space == SP_SCALAR) own = false;
    if (v->is_output && !p->comp->parent) /* counted with the outputs */
      own = own && sched_copied_to_given(p, v);
    if (v->node->kind == H_WHILE || v->node->kind == H_COND || v->node->n_results > 1)
      own = false; /* its results are */
    int a = MAX(v->first, 0), b = MIN(MAX(v->last, v->first), p->kernels.n - 1);
    const HNode *vn = v->node;
    bool adds = vn->kind == H_SCATTER && v->space == SP_HBM;
    if ((vn->kind == H_DUS || adds) && v->kernel >= 0 && !p->kernels.v[v->kernel]->must_copy &&
        vn->in[0]->val) { /* written in place */
      if (vn->in[0]->val->is_param && p->comp->parent) own = false;
      a++;
    }
    if (v->node->kind == H_CONST) a = 0, b = p->kernels.n - 1;
    if (v->held && vn->kind == H_DUS) { /* written in place; by a kernel of several results beside
                                           the old one, as the compiler counts */
      if (p->kernels.v[v->kernel]->roots.n > 1) chip[v->kernel] += v->bytes;
      continue;
    }
    for (int t = 0; t < v->n_stays; t++)
      for (int k = 0; k < v->stays[t].pieces; k++)
        for (int i2 = sched_piece(&v->stays[t], k); i2 <= v->stays[t].last && i2 < p->kernels.n;
             i2++)
          chip[i2] += v->bytes / v->stays[t].pieces;
    if ((v->n_stays || v->held) && !v->far) continue;
    if (v->n_stays) b = MIN(b, v->far_last);
    for (int t = a; own && vn->host && t <= b; t++) host[t] += v->plain;
    if (vn->host) continue;
    for (int t = a; own && t <= b; t++)
      if (t <= v->away_from || t >= v->away_to) hbm[t] += v->bytes;
    if (own) v->from = a, v->to = b;
  }
  if (lend) lend_results(p, hbm);
  /* a kernel writes over an input that nobody needs afterwards */
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    bool taken[64] = {false};
    const HNode *sort = p->compiler->sorts_in_place && k->roots.n && k->roots.v[0]->kind == H_SORT
                            ? k->roots.v[0]
                            : NULL;
    bool apart = sort && sort->n_results == 1 && sort->val && sort->val->is_output;
    for (int r = 0; sort && !apart && r < k->reads.n; r++) { /* works in place */
      const HValue *v = base_of(k->reads.v[r]);
      if ((sort->n_results > 1 || v->node->dt == sort->dt) && !v->is_param && !v->is_output &&
          v->last == i && v->space == SP_HBM && !v->lent)
        hbm[i] -= v->bytes;
    }
    for (int r = 0; r < k->roots.n; r++) {
      const HValue *o = k->roots.v[r]->val;
      if (!o || o->node->n_results > 1 || o->alias || o->dropped || o->space == SP_SCALAR) continue;
      if (o->is_output && !p->comp->parent) continue;
      for (int q = 0; q < k->reads.n && q < 64; q++) {
        const HValue *v = base_of(k->reads.v[q]);
        if (taken[q] || v->last != i || v->lent || o->lent || !sched_writes_over(p, k, v, o))
          continue;
        taken[q] = true;
        *(sched_space(p, o, i) == SP_HBM ? &hbm[i] : &chip[i]) -= o->bytes;
        break;
      }
    }
  }
  for (int i = 0; i < p->kernels.n; i++)
    *(p->params->keep ? &chip[i] : &hbm[i]) += p->compiler->scratch(p, p->kernels.v[i]);
  int at_chip = 0, at_hbm = 0;
  for (int i = 0; i < p->kernels.n; i++) {
    const HNode *root = p->kernels.v[i]->roots.n ? p->kernels.v[i]->roots.v[0] : NULL;
    if (root && (root->kind == H_WHILE || root->kind == H_COND)) {
      double a = 0, h = 0, there = 0;
      for (int q = 0; q < p->inner.n; q++)
        if (p->inner.v[q]->comp->owner == root)
          a = MAX(a, p->inner.v[q]->peak_chip), h = MAX(h, p->inner.v[q]->peak_hbm),
          there = MAX(there, p->inner.v[q]->peak_host);
      host[i] += there;
      chip[i] += a;
      hbm[i] += h;
    }
    p->peak_host = MAX(p->peak_host, host[i]);
    if (chip[i] > p->peak_chip) p->peak_chip = chip[i], at_chip = i;
    if (hbm[i] > p->peak_hbm) p->peak_hbm = hbm[i], at_hbm = i;
  }
  p->peak_temp = MAX(p->peak_chip, p->peak_hbm);
  p->peak_pos = p->peak_hbm > 0 ? at_hbm : at_chip;
  free(chip);
  free(hbm);
  free(host);
}
