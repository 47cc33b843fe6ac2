/* Windowed reductions: which of them the compiler has an emitter for, in which orders these read and write; and images whose
 * pixels are repeated. */
#include <math.h>

#include "sim/hlo/query.h"
#include "sim/tpu/layout_copies.h"

bool tpu_upsampled(const HNode *n) {
  for (int i = 0; i < n->n_users && n->kind == H_BCAST && !hlo_const_only(n); i++) {
    const HNode *u = n->users[i];
    if (u->kind != H_RESHAPE || hlo_same_dimensions(u)) continue;
    for (int k = 0; k < u->n_users; k++) {
      const HNode *reader = u->users[k];
      if ((reader->kind == H_CONV && (reader->conv->is_conv || reader->conv->batch > 1)) ||
          tpu_upsampled(reader))
        return true;
    }
  }
  return false;
}

/* The longest side that it is a running sum along; 0: it is none. */
static int64_t runs(const HNode *n) {
  int64_t most = 0;
  for (int d = 0; d < n->rank; d++)
    if (n->lo[d] > 1 && n->lo[d] >= n->in[0]->d[d] && n->d[d] == n->in[0]->d[d])
      most = MAX(most, n->lo[d]);
  return most;
}

const HNode *tpu_pooled_array(const HNode *n) {
  const HNode *x = n->in[0];
  while (x->kind == H_EWISE && x->n_in && x->in[0]->rank == x->rank) x = x->in[0];
  return x;
}

bool tpu_slides_in_tile(const CostParams *params, const HNode *n) {
  const HNode *x = tpu_pooled_array(n);
  int order[64];
  if (x->kind != H_PARAM || x->rank != n->rank || x->rank < 2 || x->rank > 64 || !n->lo)
    return false;
  for (int i = 0; i < n->rank; i++)
    if ((n->step && n->step[i] > 1) || n->lo[i] >= x->d[i]) return false;
  value_order_default(params, x, order);
  return n->lo[order[0]] > 1 || n->lo[order[1]] > 1;
}

/* Is a windowed reduction one that the compiler has an emitter for? The two dimensions in a tile
 * may not be windowed: so when they are none of the argument's own minor ones, or its maker is free
 * to write it so. */
bool tpu_pool_emitter(const Schedule *p, const HNode *n) {
  const HNode *x = tpu_pooled_array(n);
  const int64_t *win = n->lo;
  if (!win || n->n_results != 1 || x->rank > 64 || x->rank < 2) return false;
  if (x->rank != n->rank || (x->rank == 2 && runs(n) <= RUN_BLOCK)) return false;
  if (x->kind != H_PARAM) return true;
  int order[64];
  value_order_default(p->params, x, order);
  if (x->rank == 3 && win[order[0]] > 1) return false;
  if (tpu_slides_in_tile(p->params, n)) return false;
  int64_t lanes = x->d[x->rank - 1];
  if (runs(n) && lanes % 128 && (hlo_bits(x->dt) == 32 || lanes > 64)) return true;
  bool apart = win[order[0]] == 1 && win[order[1]] == 1;
  if (apart || runs(n)) return apart;
  value_order_default(p->params, n,
                      order); /* relaid on the way in, if that is how the result lies */
  return win[order[0]] == 1 && win[order[1]] == 1;
}

/* Pooling keeps the dimensions that it windows out of the tile. False if fewer than two are left. */
static bool pool_order(const HNode *x, const int64_t *window, int *order) {
  int r = x->rank, w = 0;
  for (int d = r - 1; d >= 0; d--)
    if (window[d] == 1) order[w++] = d;
  if (w < 2) return false;
  double a = (double)x->d[order[0]], b = (double)x->d[order[1]];
  if (w == 2 && round_up(b, 128) * round_up(a, 8) < round_up(a, 128) * round_up(b, 8))
    value_order_swap(order); /* pads less */
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

/* Without an emitter the natural order serves: windows may lie in sublanes, but of a matrix not in lanes. */
static void plain_order(const Kernel *k, const HNode *n, int *order) {
  const int64_t *window = n->lo;
  value_order_rest(order, 0, n->rank);
  if (n->rank == 2 && window[1] != 1 && window[0] == 1 && !tpu_running_sum(k, NULL))
    value_order_swap(order);
}

static bool pools(Relayout *r) {
  const Kernel *k = r->k;
  const HNode *n = r->n;
  for (int q = 0; q < k->inner.n && k->pool; q++)
    if (k->inner.v[q]->kind == H_RWIN) n = k->inner.v[q];
  bool pool = n->kind == H_RWIN || n->kind == H_SELSCAT;
  if (k->roots.n != 1 || !pool || !n->lo || n->rank != n->in[0]->rank || n->rank < 2 ||
      n->rank > 64)
    return false;
  const CostParams *params = r->p->params;
  r->n = n;
  r->x = n->in[0];
  r->writes = n->n_results == 1;
  if (n->kind != H_RWIN || k->pool) {
    if (!pool_order(r->x, n->lo, r->order)) return false;
  } else if (tpu_slides_in_tile(params, n) || pooled_alike(params, n, r->order)) {
    value_order_default(params, tpu_pooled_array(n), r->order); /* as they lie */
    r->x = NULL;
  } else {
    plain_order(k, n, r->order);
  }
  tpu_copy_order(r->made, r->order, n->rank);
  return true;
}

static bool plain_read(const Relayout *r, const HValue *v, const int *order) {
  const HNode *n = r->n;
  int lanes = v->order[0];
  bool apart = n->rank > 2 && n->lo[lanes] <= (n->step ? n->step[lanes] : 1);
  return v->node == r->x && n->lo[lanes] != 1 && !apart &&
         padding(r->p->params, r->x, order, v->order) <= RELAID_PLAIN;
}

static bool window_read(Relayout *r, const HValue *v, int *order) {
  const HNode *n = r->n;
  const int64_t *window = n->lo;
  bool pool = n->kind == H_RWIN;
  if (!r->x) return false;
  if (pool && !r->k->pool) return plain_read(r, v, order);
  bool operand = v->node == r->x || (!pool && v->node == n->in[1]);
  if (!operand || v->node->rank != n->rank || v->bytes > TURN_MAX ||
      (pool && v->order[0] == order[0]) || (window[v->order[0]] == 1 && window[v->order[1]] == 1))
    return false;
  r->by_maker = v->kernel >= 0 && !v->is_param;
  return r->by_maker || !pool || relaid_for_windows(r->p->params, r->x, window, v->order);
}

const CopyRule tpu_pooled = {"windows", true, pools, window_read,
                             "relayout_pooled, slices_running"};
