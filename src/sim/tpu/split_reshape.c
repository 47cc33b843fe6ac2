/* Reshapes that take tiles apart. An image of a small batch, which is cut into parts for convolutions
 * (space_to_batch.h), has one of its sides in sublanes elsewhere. Where a reshape splits that side, or makes
 * it of two, as upsampling does, elements move between tiles: it is an operation of its own, and what it
 * reads is stored for it, in small tiles where few elements are beside each other. */
#include "sim/schedule/schedule.h"
#include "sim/tpu/layout_propagation.h"
#include "sim/tpu/tpu.h"

static LayoutFound image(const LayoutWalk *w, const HNode *n, int *order) {
  (void)w;
  if (n->rank < 2) return LAYOUT_NONE;
  if (!n->rows) return LAYOUT_BEFORE;
  order[0] = n->rank - 1, order[1] = n->rows - 1;
  value_order_rest(order, 2, n->rank);
  return LAYOUT_HERE;
}

/* 1 + the dimension that lies in sublanes of an image which is made of parts; 0: not known. */
static int image_row(const HNode *n) {
  int order[64];
  LayoutWalk w = {.source = image,
                  .through = 1 << H_EWISE | 1 << H_SLICE | 1 << H_PAD | 1 << H_TRANSPOSE |
                             1 << H_BCAST | 1 << H_RESHAPE,
                  .loose = true,
                  .left = 1000};
  return layout_from(&w, n, order) ? order[1] + 1 : 0;
}

/* Does it split or join the dimension that lies in sublanes? Then rows[] say which that is on both sides. */
static bool moves_rows(const HNode *n, int rows[2]) {
  const HNode *x = n->in[0];
  int row = image_row(x);
  if (!row || n->rank < 3 || x->rank < 3 || n->d[n->rank - 1] != x->d[x->rank - 1]) return false;
  Regroup r;
  int last[2] = {0};
  regroup(x, n, &r);
  int group = r.gx[row - 1];
  if (group < 0 || group == r.gx[x->rank - 1]) return false; /* in lanes */
  if (regroup_count(&r, false, group, &last[0]) == regroup_count(&r, true, group, &last[1]))
    return false;
  for (int i = 0; i < 2; i++) rows[i] = last[i] + 1;
  return x->d[last[0]] % 8 || n->d[last[1]] % 8;
}

void tpu_split_tiles(HComp *c) {
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    int rows[2];
    if (n->dead || n->kind != H_RESHAPE || n->part || hlo_count(n) <= 1024 || !moves_rows(n, rows))
      continue;
    n->apart = n->in[0]->apart = true;
    n->rows = rows[1];
    n->in[0]->rows = rows[0];
    HNode *from = n->in[0]->kind == H_BCAST ? n->in[0]->in[0] : NULL;
    while (from && from->kind == H_RESHAPE) from = from->in[0];
    if (from && from->kind == H_TRANSPOSE) from->apart = true;
  }
}
