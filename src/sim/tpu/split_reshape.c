/* Reshapes that take tiles apart. An image of a small batch, which is cut into parts for convolutions
 * (space_to_batch.h), has one of its sides in sublanes elsewhere. Where a reshape splits that side, or makes
 * it of two, as upsampling does, elements move between tiles: it is an operation of its own, and what it
 * reads is stored for it, in small tiles where few elements are beside each other. */
#include "sim/schedule/schedule.h"
#include "sim/tpu/regroup.h"
#include "sim/tpu/tpu.h"

#define FAR 12 /* operations to the parts that tell how an image lies */

/* Which dimension of n, a reshape of x, shares the tiles if dimension `row` of x does: 1 + its number. */
static int reshaped_row(const HNode *x, const HNode *n, int row) {
  Regroup r;
  int last = 0;
  regroup(x, n, &r);
  return r.gx[row] >= 0 && regroup_count(&r, true, r.gx[row], &last) ? last + 1 : 0;
}

/* 1 + the dimension that lies in sublanes of an image which is made of parts; 0: not known. */
static int image_row(const HNode *n, int depth) {
  if (n->rows || depth > FAR || n->rank < 2) return n->rows;
  int row = 0;
  switch (n->kind) {
  case H_EWISE:
    for (int i = 0; i < n->n_in && !row; i++)
      if (hlo_same_shape(n->in[i], n->rank, n->d)) row = image_row(n->in[i], depth + 1);
    return row;
  case H_SLICE:
  case H_PAD: return image_row(n->in[0], depth + 1);
  case H_TRANSPOSE:
    row = image_row(n->in[0], depth + 1);
    for (int i = 0; i < n->rank && row; i++)
      if (n->dims[i] == row - 1) return i + 1;
    return 0;
  case H_BCAST: row = image_row(n->in[0], depth + 1); return row ? (int)n->dims[row - 1] + 1 : 0;
  case H_RESHAPE:
    row = image_row(n->in[0], depth + 1);
    if (!row) return 0;
    if (n->part && n->rank == n->in[0]->rank) return row; /* the image put together again */
    return reshaped_row(n->in[0], n, row - 1);
  default: return 0;
  }
}

/* Does it split or join the dimension that lies in sublanes? Then rows[] say which that is on both sides. */
static bool moves_rows(const HNode *n, int rows[2]) {
  const HNode *x = n->in[0];
  int row = image_row(x, 0);
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
