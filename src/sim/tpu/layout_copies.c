/* The relayouts that follow from the orders of layout_assignment.c: kernels that want an array in another order than it lies in
 * read a copy. A table of rules and one walk over kernels, what they read and what they write. */
#include "sim/tpu/layout_copies.h"
#include "sim/tpu/layout_propagation.h"

#include <math.h>

#include "sim/hlo/query.h"

HValue *tpu_copy(Schedule *p, HValue *v, const int *order, const char *rule) {
  Kernel *k = sched_kernel(p);
  sched_why(v->node, "relaid", rule);
  k->copy = true;
  k->copy_of = v;
  HNode *n = hlo_node(p->g, p->comp, H_EWISE, OP_COPY, v->node->src, v->node->dt, v->node->rank,
                      v->node->d, 1, &v->node);
  HValue *w = sched_store(p, n);
  n->kernel = w->kernel = p->kernels.n - 1;
  *vec_push(&k->roots) = n;
  *vec_push(&k->inner) = n;
  *vec_push(&k->reads) = v;
  w->rounded = v->rounded;
  value_layout(p->params, w, order);
  k->alone = true;
  k->turns = order && v->order[0] != order[0];
  return w;
}

/* The q-th array that kernel i reads, in that order, perhaps rounded: a copy that is there, or a new one. */
static void reread(Schedule *p, int i, int q, const int *order, bool rounded, const char *rule) {
  HValue *v = p->kernels.v[i]->reads.v[q], *w = NULL;
  rounded |= v->rounded;
  for (int k = 0; k < p->kernels.n && !w; k++) {
    HValue *c = p->kernels.v[k]->copy_of == v ? p->kernels.v[k]->roots.v[0]->val : NULL;
    if (c && tpu_lies_so(c, order) && c->rounded == rounded) w = c;
  }
  if (!w) w = tpu_copy(p, v, order, rule);
  if (w->rounded != rounded) {
    w->rounded = rounded;
    value_layout(p->params, w, order);
  }
  p->kernels.v[i]->reads.v[q] = w;
}

/* The first so many kernels read a copy of v in that order. */
static void read_copy(Schedule *p, HValue *v, const int *order, int kernels, const char *rule) {
  HValue *w = tpu_copy(p, v, order, rule);
  p->kernels.v[w->kernel]->turns |= tpu_lies_so(v, order); /* out of lanes, and back into them */
  for (int i = 0; i < kernels; i++)
    for (int q = 0; q < p->kernels.v[i]->reads.n; q++)
      if (p->kernels.v[i]->reads.v[q] == v) p->kernels.v[i]->reads.v[q] = w;
}

/* Is it only what loops read and do not change? */
static bool for_loops(const HNode *n) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *w = n->users[i];
    if (w->kind != H_WHILE) return false;
    const HComp *body = w->comps[1];
    for (int k = 0; k < w->n_in; k++)
      if (w->in[k] == n && (k >= body->outputs.n || body->outputs.v[k] != body->params.v[k]))
        return false;
  }
  return n->n_users > 0;
}

/* A transposition that renames the dimensions of an array which lies in the wanted order already. */
static void transposed_views(Schedule *p) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->copy || k->copy_of || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    HValue *v = n->val, *x = n->in[0]->val;
    if (n->kind != H_TRANSPOSE || n->rank < 2 || n->rank > 64 || !x ||
        (x->alias && !x->node->lies) || v->alias || v->rounded != x->rounded)
      continue;
    int order[64]; /* of the result, when nothing moves */
    for (int d = 0; d < n->rank; d++)
      for (int q = 0; q < n->rank; q++)
        if (n->dims[q] == x->order[d]) order[d] = q;
    bool other = false;
    for (int d = 0; d < n->rank && n->lies; d++) other |= order[d] != n->lies[d];
    if (other) continue;
    if (n->is_output) {
      int want[64];
      value_order_default(p->params, n, want);
      if (p->comp->parent || want[0] != order[0] || want[1] != order[1]) continue;
      if (x->is_param) continue; /* a result has memory of its own */
    } else if ((order[0] != v->order[0] || order[1] != v->order[1]) && !for_loops(n)) {
      continue;
    }
    value_layout(p->params, v, order);
    v->alias = x;
    k->copy = false;
    k->scalar = true;
  }
}

/* Padding and concatenation work in the order of their result, an update in that of what it goes into; parts of an image are
 * taken as they lie. */
static bool is_piecewise(Relayout *r) {
  const Kernel *k = r->k;
  const HNode *n = r->n;
  bool update = n->kind == H_DUS;
  if (k->conv || k->copy || k->roots.n != 1 || n->rank < 2 || n->rank > 64 ||
      (n->kind != H_PAD && n->kind != H_CONCAT && !update) || (n->val->bytes < TURN_MIN && !update))
    return false;
  if (update) r->least = 0;
  r->writes = n->is_output && !update && !hlo_stacked(n);
  value_order_default(r->p->params, n, r->made);
  tpu_copy_order(r->order, r->writes ? r->made : n->val->order, n->rank);
  return true;
}

static bool piece_read(Relayout *r, const HValue *v, int *order) {
  const HNode *n = r->n;
  bool operand = false, update = n->kind == H_DUS;
  for (int z = update; z < n->n_in; z++) operand |= n->in[z] == v->node;
  if (!operand || v->node->rank != n->rank || (v->alias && v->node->part) ||
      (update && !v->is_param)) /* made in that order */
    return false;
  return n->kind != H_CONCAT || v->order[0] != order[0] || v->node->d[v->order[1]] > 1;
}

/* A reshape that moves elements works in the natural order of operand and result, or by way of lanes where
 * the first dimension stays and the others are joined with less padding so. */
static bool is_reshape(Relayout *r) {
  const Kernel *k = r->k;
  if (!k->copy || k->copy_of || k->roots.n != 1 || r->n->kind != H_RESHAPE || k->reads.n != 1)
    return false;
  const HValue *v = k->reads.v[0];
  const HNode *o = r->n, *n = v->node;
  int rank = n->rank;
  if (n != o->in[0] || rank < 2 || rank > 64 || v->bytes < TURN_MIN || n->rows || o->lies)
    return false;
  if (layout_adds_ones(o)) {
    Regroup g;
    int same[64];
    regroup(n, o, &g);
    if (regroup_order(&g, true, v->order, same) && tpu_lies_so(o->val, same)) return false;
  }
  bool first_stays = o->d[0] == n->d[0];
  if (v->order[0] == 0 && o->rank > 1 && first_stays)
    return false; /* with the batch in lanes the others are joined as they lie */
  if (v->order[0] == rank - 1 && o->rank > 2 && o->val->order[0] == 0) return false; /* turned */
  double batch = (double)o->d[0], last = (double)n->d[rank - 1];
  bool lanes = hlo_bits(n->dt) == 16 && o->rank == 2 && first_stays && v->order[0] == rank - 1 &&
               v->order[1] == 0 && rank > 2 &&
               round_up(batch, 128) * last <= round_up(last, 128) * batch;
  r->order[0] = 0;
  value_order_rest(r->order, lanes, rank);
  r->writes = o->is_output && o->rank > 1 && o->rank <= 64 && !lanes;
  value_order_rest(r->made, 0, o->rank);
  return true;
}

static bool all_read(Relayout *r, const HValue *v, int *order) {
  (void)r, (void)v, (void)order;
  return true;
}

static const CopyRule pieces = {"pieces, padded or put together", true, is_piecewise, piece_read,
                                "relayout_pieces_*, tiles_updates"};
static const CopyRule reshapes = {"a reshape that moves elements", true, is_reshape, all_read,
                                  "relayout_grouped"};

static const CopyRule *const rules[] = {&tpu_operands, &tpu_updated,     &tpu_heads,
                                        &pieces,       &reshapes,        &tpu_pooled,
                                        &tpu_rows,     &tpu_row_updates, &tpu_weights};

static void apply(Schedule *p, const CopyRule *rule, int i, int kernels) {
  Kernel *k = p->kernels.v[i];
  if (k->dead || !k->roots.n) return;
  Relayout r = {.p = p, .k = k, .n = k->roots.v[0], .least = TURN_MIN};
  if (!rule->concerns(&r)) return;
  for (int q = 0; q < k->reads.n && rule->reads; q++) {
    HValue *v = k->reads.v[q];
    int order[64];
    if (v->node->rank < 2 || v->node->rank > 64 || v->bytes < r.least) continue;
    memcpy(order, r.order, sizeof order);
    r.by_maker = r.rounded = false;
    if (!rule->reads(&r, v, order) || tpu_lies_so(v, order)) continue;
    if (r.by_maker) value_layout(p->params, v, order);
    else reread(p, i, q, order, r.rounded, rule->name);
  }
  for (int q = 0; q < k->roots.n && r.writes; q++) {
    HValue *v = k->roots.v[q]->val;
    if (v && v->node->rank == r.n->rank) value_layout(p->params, v, r.made);
  }
  if (r.back) read_copy(p, k->roots.v[0]->val, r.copied, kernels, rule->name);
}

/* Gathered rows of three sides or more land in any order that keeps their lanes. */
static bool lands_anywhere(const Kernel *k, const HValue *v, const int *order) {
  return k->roots.v[0]->kind == H_GATHER && order[0] == v->order[0] && v->node->rank > 2;
}

/* Results of the program have the default order. */
static void lay_results(Schedule *p) {
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (!v || v->is_param || (v->alias && !v->node->lies) || v->node->rank < 2 ||
        v->node->rank > 64 || v->kernel < 0 || v->bytes < TURN_MIN)
      continue;
    int order[64];
    bool moved = false;
    value_order_default(p->params, v->node, order);
    for (int d = 0; d < (v->node->lies ? v->node->rank : 2); d++) moved |= order[d] != v->order[d];
    if (!moved) continue;
    if (!v->alias && lands_anywhere(p->kernels.v[v->kernel], v, order)) {
      value_layout(p->params, v, order);
      continue;
    }
    HValue *w = tpu_copy(p, v, order, "a result of the program");
    w->is_output = true;
    p->comp->outputs.v[i] = w->node;
  }
}

/* What lies as a reshape wants it: copies that move another dimension into lanes. */
static void find_turns(Schedule *p) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
    if (k->dead || !k->copy || !n->lies || k->reads.n != 1) continue;
    const HNode *t = n->view && n->in[0]->kind == H_TRANSPOSE && !n->in[0]->val ? n->in[0] : NULL;
    int lanes = k->reads.v[0]->order[0];
    k->turns = n->turned || (n->op == OP_COPY && lanes != n->lies[0]) ||
               (t && lanes != t->dims[t->lies[0]]);
  }
}

void tpu_copies(Schedule *p) {
  find_turns(p);
  transposed_views(p);
  for (int q = 0; q < COUNT_OF(rules); q++)
    for (int i = 0, kernels = p->kernels.n; i < kernels; i++)
      if (rules[q]->everywhere || !p->comp->parent) apply(p, rules[q], i, kernels);
  if (!p->comp->parent) lay_results(p);
}
