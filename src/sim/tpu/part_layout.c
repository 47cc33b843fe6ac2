/* The order of images in parts (space_to_batch.h): what is cut and joined stays out of the tiles, so that it
 * costs nothing to look at the same memory as one image or as its parts. */
#include <math.h>

#include "sim/schedule/schedule.h"
#include "sim/tpu/layout_propagation.h"
#include "sim/tpu/tpu.h"

/* Features and rows share the tiles, so that they pad least. */
static void rows_order(const HNode *n, int *order) {
  int feature = n->rank - 1, row = n->rows - 1;
  double f = (double)n->d[feature], r = (double)n->d[row];
  bool swap = round_up(r, 128) * round_up(f, 8) < round_up(f, 128) * round_up(r, 8);
  order[0] = swap ? row : feature;
  order[1] = swap ? feature : row;
  value_order_rest(order, 2, n->rank);
}

static LayoutFound image(const LayoutWalk *w, const HNode *n, int *order) {
  if (n->val && n->val->bytes > 0) {
    memcpy(order, n->val->order, sizeof *order * (size_t)n->rank);
    return LAYOUT_HERE;
  }
  if (n->rank < 3) return LAYOUT_NONE;
  if (n->rows) rows_order(n, order);
  else if (n->kind == H_CONV) tpu_conv_order(w->params, n, n->conv, n->conv->out, order);
  else return LAYOUT_BEFORE;
  return LAYOUT_HERE;
}

/* Parts of an image lie as what they are made of. */
bool tpu_part_order(const CostParams *params, const HNode *n, int *order) {
  LayoutWalk w = {.source = image,
                  .through = 1 << H_RESHAPE | 1 << H_TRANSPOSE | 1 << H_RWIN | 1 << H_EWISE |
                             1 << H_SLICE | 1 << H_PAD | 1 << H_REVERSE | 1 << H_CONCAT,
                  .loose = true,
                  .params = params,
                  .left = 1000};
  return layout_from(&w, n, order);
}
