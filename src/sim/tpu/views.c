/* What is the memory of something else, or made in a part of its result's: arrays that only gain or lose
 * dimensions of one, slices that end in the same tiles, pieces that are written where they belong. */
#include <math.h>

#include "sim/hlo/query.h"
#include "sim/schedule/compiler.h"
#include "sim/tpu/tpu.h"

/* Rows of a tile that holds so many. */
static int tile_rows(int64_t rows) { return rows > 4 ? 8 : rows > 2 ? 4 : rows > 1 ? 2 : 1; }

bool tpu_slice_view(const CostParams *params, const HNode *n) {
  const HNode *x = n->kind == H_SLICE ? n->in[0] : NULL;
  int order[64];
  if (!x || x->kind != H_PARAM || x->comp->parent || n->is_output || n->rank < 2 || n->rank > 64)
    return false;
  value_order_default(params, x, order);
  for (int q = 0; q < n->rank; q++) {
    int d = order[q], rows = tile_rows(x->d[d]);
    if (n->lo[d] != 0 || n->step[d] != 1) return false;
    if (q > 1 && n->d[d] != x->d[d]) return false;
    if (q == 0 && round_up((double)n->d[d], 128) != round_up((double)x->d[d], 128)) return false;
    if (q == 1 && (tile_rows(n->d[d]) != rows ||
                   round_up((double)n->d[d], rows) != round_up((double)x->d[d], rows)))
      return false;
  }
  return true;
}

bool tpu_slice_of_tiles(const Schedule *p, const Kernel *k) {
  const HNode *n = k->roots.v[0];
  const HValue *v = k->reads.n == 1 ? k->reads.v[0] : NULL;
  if (p->params->fast <= 0 || n->kind != H_SLICE || k->inner.n > 1 || k->roots.n > 1 ||
      n->rank < 2 || !v || !v->is_param || p->comp->parent)
    return false;
  for (int q = 0; q < n->rank; q++) {
    int d = v->order[q];
    if (n->step[d] > 1 || n->lo[d] % (q == 0 ? 128 : q == 1 ? 8 : 1)) return false;
  }
  return true;
}

#define MADE 12 /* operations to the slice that a piece is made of */

/* The argument of this shape that it is cut out of, perhaps after some arithmetic; or NULL. */
static const HNode *cut_from(const HNode *n, const HNode *like, int depth) {
  if (n->kind == H_SLICE && n->in[0]->kind == H_PARAM &&
      hlo_same_shape(n->in[0], like->rank, like->d))
    return n->in[0];
  for (int i = 0; i < n->n_in && n->kind == H_EWISE && depth < MADE; i++) {
    const HNode *x = cut_from(n->in[i], like, depth + 1);
    if (x) return x;
  }
  return NULL;
}

bool tpu_written_in_place(const CostParams *params, const HNode *n) {
  int order[64];
  int64_t end = 0;
  if (n->kind != H_CONCAT || n->rank < 2 || n->rank > 64) return false;
  for (int i = 0; i < n->n_in; i++) {
    const HNode *x = cut_from(n->in[i], n, 0);
    if (!x || n->in[i]->n_users > 1 || hlo_count(n->in[i]) != hlo_count(n->in[0])) return false;
    value_order_default(params, x, order);
    if (end % (n->index == order[0] ? 128 : n->index == order[1] ? 8 : 1)) return false;
    end += n->in[i]->d[n->index];
  }
  return n->n_in > 1;
}

static bool bitcast(const HNode *n) {
  const HNode *x = n->in[0];
  if (n->kind == H_TRANSPOSE) return false;
  if (n->lies) return n->view;
  if (n->part) return true; /* of dimensions outside the tiles */
  if (n->rank == 0 || x->rank == 0) return true;
  if (hlo_count(n) <= 1024) return true;
  if (n->rank == 1 && x->rank == 1) return true;
  int64_t a = n->d[n->rank - 1], b = x->d[x->rank - 1];
  if (n->rank == 1) return x->d[x->rank - 1] == n->d[0];
  if (x->rank == 1) return n->d[n->rank - 1] == x->d[0];
  if (a != b) return false;
  int64_t c = n->d[n->rank - 2], d = x->d[x->rank - 2];
  return c == d || (c % 8 == 0 && d % 8 == 0) || c == 1 || d == 1;
}

SchedView tpu_view(const Schedule *p, const HNode *n) {
  bool of_stored = sched_of_stored(p, n);
  if (tpu_slice_view(p->params, n)) return VIEW_ALIAS;
  if (of_stored && (hlo_stacked_argument(n) || (n->lies && n->view && !n->is_output) ||
                    (bitcast(n) && !n->in[0]->val->is_param)))
    return VIEW_ALIAS;
  bool copy = of_stored || ((n->rows || n->lies) && n->op == OP_COPY) ||
              (n->view && n->in[0]->kind == H_TRANSPOSE && n->in[0]->in[0]->val);
  return copy ? VIEW_COPY : VIEW_NONE;
}
