/* Relayouts for what addresses rows or windows: gathers, scatters, sorts and pooling want the natural
 * order or one of their own, and tables that sums of rows are added to. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

static double up(double x, double m) { return ceil(x / m) * m; }

/* Operations element by element on arrays of one shape, each reached from the others, and what is
 * around them: the compiler gives all of them one order. */
typedef struct Group {
  const HNode *first;
  int ops;     /* that are not made of constants alone */
  int around;  /* what else reads and writes them */
  int params;  /* uses of arguments */
  bool result; /* of the program */
  bool asks;   /* makes predicates: these stay in the order they come in */
} Group;

static void reach(Group *g, HNode *n, char *seen) {
  if (n->dead || !hlo_same_shape(n, g->first->rank, g->first->d)) return;
  if (n->kind == H_PARAM && !n->comp->parent) {
    g->params++;
    return;
  }
  if (seen[n->id] || n->kind == H_CONST || n->kind == H_BCAST) return;
  seen[n->id] = 1;
  if (n->kind != H_EWISE) {
    g->around++;
    return;
  }
  g->ops += !hlo_const_only(n);
  g->asks |= n->dt == DT_I1;
  g->result |= n->is_output;
  for (int i = 0; i < n->n_in; i++) reach(g, n->in[i], seen);
  for (int i = 0; i < n->n_users; i++) {
    HNode *u = n->users[i];
    if (u->comp != n->comp || u->dead) continue;
    if (u->kind == H_EWISE) reach(g, u, seen);
    else if (!seen[u->id]) seen[u->id] = 1, g->around++;
  }
}

/* Where sums of rows meet tables that lie in another order, everything between takes the order of
 * the sums, unless it saves more in the tables' order, which pads less, than turning what is around
 * it moves: each of these counts once, a copy of an argument that goes away makes up for one, and
 * the program's results count as five. All is counted as if elements had 32 bits. Where there is a
 * comparison, the sums' order it is (15 updates of 8 to 64 columns on v5e). */
static bool as_tables(const Schedule *p, const HNode *first, const HValue *sums,
                      const HValue *table) {
  Group g = {.first = first};
  char *seen = calloc((size_t)p->g->n_nodes + 1, 1);
  assert(seen);
  reach(&g, (HNode *)first, seen);
  free(seen);
  if (g.asks) return false;
  double wide = 0, narrow = 0;
  HNode as = *first;
  as.dt = DT_F32;
  value_padded(p->params, &as, sums->order, &wide);
  value_padded(p->params, &as, table->order, &narrow);
  return g.ops * (wide - narrow) > (g.around + 5 * g.result - g.params) * (wide + narrow);
}

bool tpu_update_rows(Schedule *p, int i) {
  Kernel *k = p->kernels.v[i];
  HValue *sums = NULL, *table = NULL;
  if (k->dead || k->conv || k->copy || k->reduce || k->roots.v[0]->kind != H_EWISE) return false;
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q];
    if (v->node->comp != p->comp || v->node->rank < 2 || v->node->rank > 64 ||
        !hlo_same_shape(v->node, k->roots.v[0]->rank, k->roots.v[0]->d) || v->bytes < TURN_MIN ||
        v->rounded)
      continue;
    if (v->node->kind == H_SCATTER) sums = v;
    else if (v->is_param) table = v;
  }
  if (!sums || !table || tpu_same_order(sums, table)) return false;
  bool turn_sums = as_tables(p, k->roots.v[0], sums, table);
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q], *like = turn_sums ? table : sums;
    bool turn = turn_sums ? v->node->kind == H_SCATTER : v->is_param;
    if (!turn || !hlo_same_shape(v->node, k->roots.v[0]->rank, k->roots.v[0]->d) ||
        tpu_same_order(v, like))
      continue;
    tpu_reread(p, i, q, like->order);
  }
  for (int q = 0; q < k->roots.n && !turn_sums; q++)
    if (k->roots.v[q]->val) value_layout(p->params, k->roots.v[q]->val, sums->order);
  return !turn_sums;
}

/* Is an operand's order good enough as it is? A gather does not want the dimension that it indexes
 * in lanes, unless it takes one number a row; see sort_order(). */
static bool rows_reachable(const HNode *n, const HValue *v) {
  const int64_t *map;
  if (n->kind != H_GATHER || !n->src) return false;
  if (op_ints(n->src, "operand_batching_dims", &map) > 0 || hlo_takes_numbers(n->src)) return true;
  return op_ints(n->src, "start_index_map", &map) == 1 && v->node->rank > 2 &&
         v->order[0] != map[0];
}

/* A sort runs along sublanes when another dimension fills whole tiles of lanes, else as it comes. */
static void sort_order(const CostParams *params, const HNode *n, int *order) {
  const HNode *x = n->in[0];
  int r = x->rank, other = -1;
  int along = n->op == OP_SORT && n->src ? (int)op_int(n->src, "dimension", r - 1) : r - 1;
  for (int d = 0; d < r; d++)
    if (d != along && x->d[d] % 128 == 0) other = d;
  value_order_default(params, x, order);
  if (other < 0) return;
  order[0] = other;
  order[1] = along;
  value_order_rest(order, other == along ? 1 : 2, r);
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
  value_order_rest(order, w, r);
  return true;
}

/* So many times its bytes a copy of an argument may have, whose windows lie in lanes: for an emitter
 * (1.2 and 1.4 times were seen, 1.75 not), and without one (1.75 was seen, 2.3 not). */
#define RELAID 1.5
#define RELAID_PLAIN 2

static double padding(const CostParams *params, const HNode *x, const int *want, const int *order) {
  double tiles;
  return value_padded(params, x, want, &tiles) / value_padded(params, x, order, &tiles);
}

/* Is an argument in that order, whose windows lie in lanes, relaid by a copy before its windowed reduction? Not if
 * it would be padded much more then. */
static bool relaid_for_windows(const CostParams *params, const HNode *x, const int64_t *window,
                               const int *order) {
  int want[64];
  return window[order[0]] != 1 && pool_order(x, window, want) &&
         padding(params, x, want, order) <= RELAID;
}

/* Do an argument of three sides or more and what is pooled of it, not a running sum, lie alike? */
static bool pooled_alike(const CostParams *params, const HNode *n, int *order) {
  int made[64];
  const HNode *x = tpu_pooled_array(n);
  if (x->kind != H_PARAM || n->rank < 3) return false;
  value_order_default(params, x, order);
  value_order_default(params, n, made);
  for (int d = 0; d < n->rank; d++)
    if (n->lo[d] > 1 && n->lo[d] >= n->in[0]->d[d]) return false;
  return made[0] == order[0] && made[1] == order[1];
}

/* Pooling: operand and result in an order whose tiles no window crosses. */
static void turn_pooled(Schedule *p, int i, HNode *n) {
  Kernel *k = p->kernels.v[i];
  HNode *x = n->in[0];
  int r = x->rank, order[64];
  const int64_t *window = n->lo;
  if (!window || n->rank != r) return;
  if (n->kind == H_RWIN && !k->pool &&
      (tpu_slides_in_tile(p->params, n) || pooled_alike(p->params, n, order))) {
    value_order_default(p->params, tpu_pooled_array(n), order); /* as they lie */
    if (n->val) value_layout(p->params, n->val, order);
    return;
  }
  if (n->kind == H_RWIN && !k->pool) {
    /* no emitter: the natural order serves, windows may lie in sublanes but of a matrix not in lanes */
    value_order_rest(order, 0, r);
    if (r == 2 && window[1] != 1 && window[0] == 1 && !tpu_running_sum(k, NULL)) swap_first(order);
    for (int q = 0; q < k->reads.n; q++) {
      HValue *v = k->reads.v[q];
      int lanes = v->order[0];
      bool apart = r > 2 && window[lanes] <= (n->step ? n->step[lanes] : 1);
      if (v->node != x || window[lanes] == 1 || apart || v->bytes < TURN_MIN ||
          padding(p->params, x, order, v->order) > RELAID_PLAIN)
        continue;
      tpu_reread(p, i, q, order);
      if (k->roots.v[0] == n && n->val) value_layout(p->params, n->val, order);
    }
    if (n->val && n->rank == r) value_layout(p->params, n->val, order);
    return;
  }
  if (!pool_order(x, window, order)) return;
  for (int q = 0; q < k->reads.n; q++) {
    HValue *v = k->reads.v[q];
    bool operand = v->node == x || (n->kind == H_SELSCAT && v->node == n->in[1]);
    if (!operand || v->node->rank != r || v->bytes < TURN_MIN || v->bytes > TURN_MAX) continue;
    if (v->order[0] == order[0] && (v->order[1] == order[1] || n->kind == H_RWIN)) continue;
    if (window[v->order[0]] == 1 && window[v->order[1]] == 1) continue;
    bool fused = n->kind == H_RWIN && !relaid_for_windows(p->params, x, window, v->order);
    if (v->kernel >= 0 && !v->is_param)
      value_layout(p->params, v, order); /* its maker can write so */
    else if (!fused) tpu_reread(p, i, q, order);
  }
  HValue *made = k->pool ? k->roots.v[0]->val : n->val;
  if (n->rank == r && made && made->node->rank == r && n->n_results == 1)
    value_layout(p->params, made, order);
}

/* The natural order; rows of one element lie as a vector. */
static void rows_order(const HNode *x, int *order) {
  value_order_rest(order, 0, x->rank);
  if (x->rank == 2 && x->d[1] == 1) swap_first(order);
}

/* The order in which what addresses rows wants its operand x. */
static void indexed_order(const CostParams *params, const HNode *n, const HNode *x, int *order) {
  const int64_t *map;
  int r = x->rank;
  rows_order(x, order);
  if (n->kind == H_SORT) sort_order(params, n, order);
  else if (n->kind == H_OTHER)
    value_order_default(params, n, order); /* of the result, which is narrow */
  else if (n->kind == H_GATHER && n->src && op_ints(n->src, "start_index_map", &map) == 1 &&
           map[0] == r - 1 && x->d[r - 1] > 1)
    swap_first(order); /* the indexed dimension may not be in lanes */
}

bool tpu_rows_order(const HNode *n, int *order) {
  const int64_t *map;
  const HNode *x = n->kind == H_GATHER ? n->in[0] : NULL;
  if (!x || !n->src || n->rank != 3 || x->rank != 2 || n->is_output || n->d[2] != x->d[1] ||
      op_ints(n->src, "start_index_map", &map) != 1 || map[0] != 0)
    return false;
  double b = (double)n->d[0], t = (double)n->d[1], d = (double)n->d[2];
  double lie = b * up(t, 8) * up(d, 128) + up(b * t, 8) * up(d, 128);
  double across = d * up(b, 8) * up(t, 128) + up(b * t, 128) * up(d, 8);
  bool turned = across < lie;
  for (int i = 0; i < 3; i++) order[i] = turned ? (int[]){1, 0, 2}[i] : 2 - i;
  return true;
}

/* Rows that were gathered in that order are turned into it, and out of it before they are added up. */
static void turn_gathered(Schedule *p, int i, HNode *n) {
  Kernel *k = p->kernels.v[i];
  static const int natural[] = {2, 1, 0}, across[] = {1, 0, 2};
  HValue *v = n->val;
  int before = p->kernels.n;
  if (n->kind == H_GATHER && v && n->rank == 3 && n->in[0]->rank == 2 && v->order[0] == 1 &&
      v->order[1] == 0 && !v->is_output) {
    value_layout(p->params, v, natural);
    tpu_read_instead(p, v, tpu_copy(p, v, across), before);
  }
  for (int q = 0; q < k->reads.n && n->kind == H_SCATTER && n->rank == 2; q++) {
    v = k->reads.v[q];
    if (v->node == n->in[n->n_in - 1] && v->node->rank == 3 && v->order[0] == 1 && v->order[1] == 0)
      tpu_reread(p, i, q, natural);
  }
}

static void turn_rows(Schedule *p, int i, HNode *n) {
  Kernel *k = p->kernels.v[i];
  HNode *x = n->in[0];
  HValue *added_to = NULL;
  bool scatter = n->kind == H_SCATTER;
  for (int q = 0; q < k->inner.n && scatter; q++) /* rows straight from a gather */
    if (k->inner.v[q]->kind == H_GATHER) x = k->inner.v[q]->in[0];
  int r = x->rank, order[64];
  if (r < 2 || r > 64 || (n->kind == H_OTHER && n->lies)) return;
  indexed_order(p->params, n, x, order);
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
    tpu_reread(p, i, q, order);
    if (scatter && v->node == n->in[0] && v->kernel >= 0) added_to = v;
  }
  if (n->rank == 2 && n->d[1] == 1) rows_order(n, order);
  if (n->rank == r && n->val && n->n_results == 1) value_layout(p->params, n->val, order);
  if (!added_to || n->is_output) return;
  int before = p->kernels.n; /* and back */
  tpu_read_instead(p, n->val, tpu_copy(p, n->val, added_to->order), before);
}

void tpu_turn_indexed(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    for (int q = 0; q < k->inner.n && k->pool; q++)
      if (k->inner.v[q]->kind == H_RWIN) n = k->inner.v[q];
    if (n->kind == H_RWIN || n->kind == H_SELSCAT) {
      if (n->in[0]->rank >= 2 && n->in[0]->rank <= 64) turn_pooled(p, i, n);
    } else if (n->kind == H_GATHER || n->kind == H_SCATTER || n->kind == H_SORT ||
               (n->kind == H_OTHER && n->op == OP_CHLO_TOP_K)) {
      turn_rows(p, i, n);
      turn_gathered(p, i, n);
    }
  }
}
