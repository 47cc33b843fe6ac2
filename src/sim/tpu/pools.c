/* Windowed reductions: which of them the compiler has an emitter for, and images whose pixels are repeated. */
#include "sim/hlo/query.h"
#include "sim/tpu/tpu.h"

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
