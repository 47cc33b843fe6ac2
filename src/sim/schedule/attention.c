/* Attention in one kernel, as cuDNN and FlashAttention on GPUs and splash attention on TPUs compute
 * it: the scores of a softmax between two products of 16-bit numbers are never stored, forward and
 * backward, and the backward kernel computes them again.
 *
 * For each such score product: everything of the scores' size that follows from it, the statistics
 * of rows, and the products that only meet scores (the gradient of the probabilities) are marked
 * with one number and never stored. Whatever reads them is a product that contracts one side of the
 * scores away, or a sum; those become the results of the kernels (joins_attention). Scores that
 * somebody else needs, as results or as residuals of a loop, leave all as it was. */
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"

#define WIDEST_HEAD 256 /* of FlashAttention and cuDNN (recalled) */

typedef struct Area {
  HComp *c;
  HNode *scores;
  int64_t count;
  unsigned char *in; /* by node */
  VEC(HNode *) nodes;
} Area;

static bool full(const Area *a, const HNode *n) {
  return n->comp == a->c && hlo_count(n) == a->count;
}
static bool shapes_only(const HNode *n) {
  return n->kind == H_EWISE || n->kind == H_RESHAPE || n->kind == H_TRANSPOSE || n->kind == H_BCAST;
}
static bool batched_product(const HNode *n) {
  return n->kind == H_CONV && !n->conv->is_conv && n->conv->batch > 1 &&
         hlo_bits(n->in[0]->dt) == 16;
}

static void take(Area *a, HNode *n) {
  if (a->in[n->id]) return;
  a->in[n->id] = 1;
  *vec_push(&a->nodes) = n;
}

/* What follows from the scores, and what meets them. */
static void grow(Area *a) {
  for (int i = 0; i < a->nodes.n; i++) {
    HNode *n = a->nodes.v[i];
    for (int u = 0; u < n->n_users; u++) {
      HNode *x = n->users[u];
      if (x->comp != a->c || x->dead) continue;
      bool sum = x->kind == H_REDUCE && x->n_results == 1 && full(a, n);
      if (sum || (shapes_only(x) && (full(a, x) || hlo_count(x) < a->count))) take(a, x);
    }
    for (int k = 0; k < n->n_in && full(a, n); k++) {
      HNode *x = n->in[k];
      if (full(a, x) && (batched_product(x) || (x->kind == H_EWISE && x->n_in == 1))) take(a, x);
    }
  }
}

/* Leaves out what has readers outside, until nothing changes. False: the scores themselves have. */
static bool close_area(Area *a) {
  for (bool again = true; again;) {
    again = false;
    for (int i = a->nodes.n - 1; i >= 0; i--) {
      HNode *n = a->nodes.v[i];
      if (!a->in[n->id]) continue;
      bool out = n->is_output || n->n_users == 0;
      for (int u = 0; u < n->n_users && !out; u++) {
        const HNode *x = n->users[u];
        bool contracts = x->kind == H_CONV || x->kind == H_REDUCE;
        out = x->comp != a->c || !(a->in[x->id] || (contracts && full(a, n)));
      }
      if (!out) continue;
      if (n == a->scores) return false;
      a->in[n->id] = 0;
      again = true;
    }
  }
  return true;
}

/* The product that a softmax's argument comes from; its exponential is e. */
static HNode *scores_of(const HNode *e) {
  const HNode *n = e->in[0];
  bool maximum = false;
  for (int depth = 0; depth < 24; depth++) {
    if (n->kind == H_CONV)
      return maximum && batched_product(n) && n->conv->k <= WIDEST_HEAD ? (HNode *)n : NULL;
    if (n->kind != H_EWISE && n->kind != H_RESHAPE && n->kind != H_TRANSPOSE) return NULL;
    const HNode *next = NULL;
    for (int i = 0; i < n->n_in; i++) {
      const HNode *x = n->in[i];
      if (hlo_count(x) != hlo_count(n)) continue;
      const HNode *row = x;
      while (row->kind == H_BCAST || row->kind == H_RESHAPE ||
             (row->kind == H_EWISE && hlo_count(row) < hlo_count(n) && row->n_in))
        row = row->in[row->n_in > 1 && hlo_const_only(row->in[0]) ? 1 : 0];
      if (row->kind == H_REDUCE) maximum = true;
      else if (!next && x->kind != H_BCAST && x->kind != H_CONST && x->dt != DT_I1) next = x;
    }
    if (!next) return NULL;
    n = next;
  }
  return NULL;
}

/* One product of scores, and one that reads what follows from them. */
static bool only_forward(const Area *a) {
  int inside = 0, readers = 0;
  for (int i = 0; i < a->nodes.n; i++) {
    const HNode *n = a->nodes.v[i];
    if (!a->in[n->id]) continue;
    inside += n->kind == H_CONV;
    for (int u = 0; u < n->n_users; u++) readers += !a->in[n->users[u]->id];
  }
  return inside == 1 && readers == 1;
}

/* Made of positions and constants alone? */
static bool from_positions(const HNode *n, int depth) {
  if (n->kind == H_IOTA || n->kind == H_CONST) return n->kind == H_IOTA || n->splat;
  if (!hlo_light(n) || n->kind == H_DSLICE || n->kind == H_BARRIER || !n->n_in || depth > 16)
    return false;
  for (int i = 0; i < n->n_in; i++)
    if (!from_positions(n->in[i], depth + 1)) return false;
  return true;
}

static HNode *copied_into(HGraph *g, HComp *c, const HNode *n) {
  HNode *x = hlo_copy(g, c, n);
  for (int i = 0; i < n->n_in; i++) x->in[i] = copied_into(g, c, n->in[i]);
  return x;
}

/* What only kernels of attention read of a loop's state. */
static bool only_attention(const HNode *param) {
  bool only = param->n_users > 0;
  for (int u = 0; u < param->n_users; u++) only &= param->users[u]->attention > 0;
  return only;
}

/* A mask that loops over layers carry along, as JAX's scan hands it in: no kernel of attention reads
 * it, each knows its positions. It is made of them where it is used; the loop carries a number. */
static void mask_inside(HGraph *g, HComp *c) {
  HNode *w = c->owner;
  if (!w || w->kind != H_WHILE || c != w->comps[1]) return;
  int late = c->nodes.n;
  for (int k = 0; k < c->params.n; k++) {
    HNode *p = c->params.v[k];
    if (c->outputs.v[k] != p || hlo_result(w, k) || !only_attention(p) ||
        !from_positions(w->in[k], 0))
      continue;
    HNode *made = copied_into(g, c, w->in[k]);
    for (int u = 0; u < p->n_users; u++)
      for (int i = 0; i < p->users[u]->n_in; i++)
        if (p->users[u]->in[i] == p) p->users[u]->in[i] = made;
    HNode *number = hlo_node(g, w->comp, H_CONST, OP_CONSTANT, w->src, p->dt, 0, NULL, 0, NULL);
    number->splat = true;
    hlo_retype(w, k, number);
  }
  if (c->nodes.n > late) hlo_sort(g, c), hlo_sort(g, w->comp);
}

int attention_mark(HGraph *g, bool mark, double forward) {
  int groups = 0;
  unsigned char *in = xcalloc((size_t)g->n_nodes + 1, 1);
  for (HComp *c = g->comps; c; c = c->next)
    for (int i = 0; i < c->nodes.n; i++) {
      const HNode *e = c->nodes.v[i];
      if (e->dead || e->kind != H_EWISE || e->op != OP_EXPONENTIAL) continue;
      HNode *s = scores_of(e);
      if (!s || s->attention || s->comp != c || hlo_count(s) != hlo_count(e)) continue;
      Area a = {.c = c, .scores = s, .count = hlo_count(s), .in = in};
      take(&a, s);
      grow(&a);
      bool closed = close_area(&a) && in[e->id];
      groups += closed;
      bool here = mark || (closed && 4 * (double)a.count > forward && only_forward(&a));
      for (int k = 0; k < a.nodes.n; k++) {
        HNode *n = a.nodes.v[k];
        if (closed && here && in[n->id]) n->attention = groups;
        in[n->id] = 0;
      }
      s->scores = closed && here;
      vec_free(&a.nodes);
    }
  free(in);
  for (HComp *c = g->comps; c && groups && mark; c = c->next) mask_inside(g, c);
  if (groups && mark) hlo_users(g, g->main);
  return groups;
}

/* Compares two positions? */
static bool compares_positions(const HNode *p) {
  for (int depth = 0; depth < 12; depth++) {
    if (p->op == OP_COMPARE && p->n_in == 2) {
      int positions = 0;
      for (int q = 0; q < 2; q++) {
        const HNode *x = p->in[q];
        while (x->n_in && x->kind != H_IOTA) x = x->in[0];
        positions += x->kind == H_IOTA;
      }
      return positions == 2;
    }
    if (!p->n_in || p->kind == H_CONV || p->kind == H_REDUCE) return false;
    p = p->in[0];
  }
  return false;
}

/* Are scores hidden where positions compare so? Kernels leave such blocks out. */
bool attention_causal(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    for (int q = 0; q < n->n_in && n->attention && n->kind == H_EWISE; q++)
      if (!n->in[q]->attention && compares_positions(n->in[q])) return true;
  }
  return false;
}

/* Scores that a backward kernel computes again are no work of the program's. */
bool attention_again(const Kernel *k, const HNode *n) {
  int products = 0;
  for (int i = 0; i < k->inner.n && n->scores; i++) products += k->inner.v[i]->kind == H_CONV;
  return products > 2;
}
