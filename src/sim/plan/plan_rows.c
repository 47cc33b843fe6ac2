/* Relayouts for what addresses rows or windows: gathers, scatters, sorts and pooling want the natural
 * order or one of their own, and tables that sums of rows are added to. */
#include <math.h>

#include "sim/plan/plan.h"

static double up(double x, double m) { return ceil(x / m) * m; }

/* A copy of v, with all its digits, in the order of `like`; or NULL. */
static HValue *copy_like(const Plan *p, const HValue *v, const HValue *like) {
  for (int i = 0; i < p->kernels.n; i++) {
    HValue *w = p->kernels.v[i]->copy_of == v ? p->kernels.v[i]->roots.v[0]->val : NULL;
    if (w && plan_same_order(w, like) && w->rounded == v->rounded) return w;
  }
  return NULL;
}

bool plan_update_rows(Plan *p, int i) {
  Kernel *k = p->kernels.v[i];
  HValue *sums = NULL, *table = NULL;
  int rows = 0, tables = 0, at = 0;
  if (k->dead || k->conv || k->copy || k->reduce || k->roots.v[0]->kind != H_EWISE) return false;
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q];
    if (v->node->comp != p->comp || v->node->rank != k->roots.v[0]->rank || v->node->rank < 2 ||
        v->node->rank > 64 || v->bytes < TURN_MIN || v->rounded)
      continue;
    if (v->node->kind == H_SCATTER) sums = v, rows++, at = q;
    else table = v, tables += v->is_param;
  }
  if (rows < 1 || tables < 1 || plan_same_order(sums, table)) return false;
  bool alone = tables == 1 && k->roots.n == 1 && p->comp->outputs.n > 1;
  HValue *w = alone ? copy_like(p, table, sums) : NULL;
  if (w) {
    for (int q = 0; q < k->reads.n; q++)
      if (k->reads.v[q] == table) k->reads.v[q] = w;
    value_layout(p->law, k->roots.v[0]->val, sums->order);
    return true;
  }
  if (rows > 1) return false;
  w = copy_like(p, sums, table);
  if (!w) w = plan_copy(p, sums, table->order);
  p->kernels.v[i]->reads.v[at] = w;
  return false;
}

/* Is an operand's order good enough as it is? A gather does not want the dimension that it indexes
 * in lanes, unless it takes one number a row; see sort_order(). */
static bool rows_reachable(const HNode *n, const HValue *v) {
  const int64_t *map;
  if (n->kind != H_GATHER || !n->src) return false;
  if (op_ints(n->src, "operand_batching_dims", &map) > 0) return true;
  return op_ints(n->src, "start_index_map", &map) == 1 && v->node->rank > 2 &&
         v->order[0] != map[0];
}

/* A sort runs along sublanes when another dimension fills whole tiles of lanes, else as it comes. */
static void sort_order(const Law *law, const HNode *n, int *order) {
  const HNode *x = n->in[0];
  int r = x->rank, k = 0, other = -1;
  int along = n->op == OP_SORT && n->src ? (int)op_int(n->src, "dimension", r - 1) : r - 1;
  for (int d = 0; d < r; d++)
    if (d != along && x->d[d] % 128 == 0) other = d;
  value_order_default(law, x, order);
  if (other < 0) return;
  order[k++] = other;
  order[k++] = along;
  for (int d = r - 1; d >= 0; d--)
    if (d != other && d != along) order[k++] = d;
}

static void swap_first(int *order) {
  int t = order[0];
  order[0] = order[1];
  order[1] = t;
}

/* Pooling keeps the dimensions that it windows out of the tile. False if fewer than two are left. */
static bool pool_order(const HNode *x, const int64_t *window, int *order) {
  int r = x->rank, w = 0;
  for (int d = r - 1; d >= 0; d--)
    if (window[d] == 1) order[w++] = d;
  if (w < 2) return false;
  double a = (double)x->d[order[0]], b = (double)x->d[order[1]];
  if (w == 2 && up(b, 128) * up(a, 8) < up(a, 128) * up(b, 8)) swap_first(order); /* pads less */
  for (int d = r - 1; d >= 0; d--)
    if (window[d] != 1) order[w++] = d;
  return true;
}

/* Pooling: operand and result in an order whose tiles no window crosses. */
static void turn_pooled(Plan *p, Kernel *k, HNode *n) {
  HNode *x = n->in[0];
  int r = x->rank, order[64];
  const int64_t *window = n->lo;
  if (!window || n->rank != r) return;
  if (n->kind == H_RWIN && !k->pool) {
    /* no emitter: the natural order serves, windows may lie in sublanes */
    for (int d = 0; d < r; d++) order[d] = r - 1 - d;
    for (int q = 0; q < k->reads.n; q++) {
      HValue *v = k->reads.v[q];
      if (v->node == x && window[v->order[0]] != 1 && v->bytes >= TURN_MIN)
        k->reads.v[q] = plan_copy(p, v, order);
    }
    if (n->val && n->rank == r) value_layout(p->law, n->val, order);
    return;
  }
  if (!pool_order(x, window, order)) return;
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q];
    bool operand = v->node == x || (n->kind == H_SELSCAT && v->node == n->in[1]);
    if (!operand || v->node->rank != r || v->bytes < TURN_MIN || v->bytes > TURN_MAX) continue;
    if (v->order[0] == order[0] && (v->order[1] == order[1] || n->kind == H_RWIN)) continue;
    if (window[v->order[0]] == 1 && window[v->order[1]] == 1) continue;
    if (v->kernel >= 0 && !v->is_param) value_layout(p->law, v, order); /* its maker can write so */
    else if (n->kind != H_RWIN) k->reads.v[q] = plan_copy(p, v, order); /* else fused in */
  }
  HValue *made = k->pool ? k->roots.v[0]->val : n->val;
  if (n->rank == r && made && made->node->rank == r && n->n_results == 1)
    value_layout(p->law, made, order);
}

/* The order in which what addresses rows wants its operand x. */
static void indexed_order(const Law *law, const HNode *n, const HNode *x, int *order) {
  const int64_t *map;
  int r = x->rank;
  for (int d = 0; d < r; d++) order[d] = r - 1 - d;
  if (n->kind == H_SORT) sort_order(law, n, order);
  else if (n->kind == H_OTHER)
    value_order_default(law, n, order); /* of the result, which is narrow */
  else if (n->kind == H_GATHER && n->src && op_ints(n->src, "start_index_map", &map) == 1 &&
           map[0] == r - 1)
    swap_first(order); /* the indexed dimension may not be in lanes */
}

static void turn_rows(Plan *p, Kernel *k, HNode *n) {
  HNode *x = n->in[0];
  HValue *added_to = NULL;
  bool scatter = n->kind == H_SCATTER;
  for (int q = 0; q < k->inner.n && scatter; q++) /* rows straight from a gather */
    if (k->inner.v[q]->kind == H_GATHER) x = k->inner.v[q]->in[0];
  int r = x->rank, order[64];
  if (r < 2 || r > 64) return;
  indexed_order(p->law, n, x, order);
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q];
    if (v->node->rank != r) continue;
    if (n->kind == H_GATHER && v->node == x && v->bytes > TURN_MAX)
      memcpy(order, v->order, sizeof(int) * (size_t)r); /* the result is so, too */
    bool operand = v->node == x || (scatter && n->n_in >= 3 &&
                                    (v->node == n->in[n->n_in - 1] || v->node == n->in[0]));
    if (!operand || v->bytes < TURN_MIN || v->bytes > TURN_MAX) continue;
    if (v->node == x && rows_reachable(n, v)) continue;
    if (v->order[0] == order[0] && v->order[1] == order[1]) continue;
    k->reads.v[q] = plan_copy(p, v, order);
    if (scatter && v->node == n->in[0] && v->kernel >= 0) added_to = v;
  }
  if (n->rank == r && n->val && n->n_results == 1) value_layout(p->law, n->val, order);
  if (!added_to || n->is_output) return;
  int before = p->kernels.n; /* and back */
  plan_read_instead(p, n->val, plan_copy(p, n->val, added_to->order), before);
}

void plan_turn_indexed(Plan *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    for (int q = 0; q < k->inner.n && k->pool; q++)
      if (k->inner.v[q]->kind == H_RWIN) n = k->inner.v[q];
    if (n->kind == H_RWIN || n->kind == H_SELSCAT) {
      if (n->in[0]->rank >= 2 && n->in[0]->rank <= 64) turn_pooled(p, k, n);
    } else if (n->kind == H_GATHER || n->kind == H_SCATTER || n->kind == H_SORT ||
               (n->kind == H_OTHER && n->op == OP_CHLO_TOP_K)) {
      turn_rows(p, k, n);
    }
  }
}
