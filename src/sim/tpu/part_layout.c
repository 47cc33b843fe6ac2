/* The order of images in parts (space_to_batch.h): what is cut and joined stays out of the tiles, so that it
 * costs nothing to look at the same memory as one image or as its parts. */
#include <math.h>

#include "sim/schedule/schedule.h"
#include "sim/tpu/regroup.h"
#include "sim/tpu/tpu.h"

static double up(double x, double m) { return ceil(x / m) * m; }

/* So much larger is a dimension of d elements in lanes. */
static double lanes(int64_t d) { return up((double)d, 128) / (double)d; }

/* The order of a reshaped array that nothing moves: dimensions that were one lie beside each other, as
 * do those that become one. What is cut or joined cannot lie in lanes: there the last dimension that
 * stays does. */
static void reshaped_order(const HNode *x, const int *in, const HNode *n, int *order) {
  Regroup r;
  int k = 0, stays = -1;
  bool done[64] = {false};
  regroup(x, n, &r);
  for (int d = 0; d < x->rank; d++)
    if (r.gx[d] >= 0 && r.same[r.gx[d]] && (stays < 0 || lanes(x->d[d]) <= lanes(x->d[stays])))
      stays = d;
  bool turn = stays >= 0 && r.gx[in[0]] >= 0 && !r.same[r.gx[in[0]]];
  for (int q = turn ? -1 : 0; q < x->rank; q++) {
    int group = r.gx[q < 0 ? stays : in[q]];
    for (int d = n->rank - 1; d >= 0 && group >= 0 && !done[group]; d--)
      if (r.gn[d] == group) order[k++] = d;
    if (group >= 0) done[group] = true;
  }
  value_order_rest(order, k, n->rank); /* of one element */
}

/* Features and rows share the tiles, so that they pad least. */
static void rows_order(const HNode *n, int *order) {
  int feature = n->rank - 1, row = n->rows - 1;
  double f = (double)n->d[feature], r = (double)n->d[row];
  bool swap = up(r, 128) * up(f, 8) < up(f, 128) * up(r, 8);
  order[0] = swap ? row : feature;
  order[1] = swap ? feature : row;
  value_order_rest(order, 2, n->rank);
}

/* Parts of an image lie as what they are made of. */
bool tpu_part_order(const CostParams *params, const HNode *n, int *order, int depth) {
  int from[64];
  if (n->val && n->val->bytes > 0) {
    memcpy(order, n->val->order, sizeof *order * (size_t)n->rank);
    return true;
  }
  if (n->rank < 3 || n->rank > 64 || depth > 64) return false;
  if (n->rows) {
    rows_order(n, order);
    return true;
  }
  if (n->kind == H_CONV) {
    tpu_conv_order(params, n, n->conv, n->conv->out, order);
    return true;
  }
  if (n->kind == H_RESHAPE) {
    if (!tpu_part_order(params, n->in[0], from, depth + 1)) return false;
    reshaped_order(n->in[0], from, n, order);
    return true;
  }
  if (n->kind == H_TRANSPOSE) {
    if (!tpu_part_order(params, n->in[0], from, depth + 1)) return false;
    for (int q = 0; q < n->rank; q++)
      for (int i = 0; i < n->rank; i++)
        if (n->dims[i] == from[q]) order[q] = i;
    return true;
  }
  if (n->kind == H_RWIN && n->n_results == 1)
    return tpu_part_order(params, n->in[0], order, depth + 1);
  const HNode *x = NULL; /* the largest operand */
  for (int i = 0; i < n->n_in && hlo_light(n) + (n->kind == H_CONCAT); i++)
    if (n->in[i]->rank == n->rank && n->in[i]->kind != H_BCAST && n->in[i]->kind != H_CONST &&
        (!x || hlo_count(n->in[i]) > hlo_count(x)))
      x = n->in[i];
  return x && tpu_part_order(params, x, order, depth + 1);
}
