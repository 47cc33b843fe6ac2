/* Layouts through reshapes and other operations. */
#include "sim/tpu/layout_propagation.h"
#include "sim/tpu/tpu.h"

void regroup(const HNode *x, const HNode *n, Regroup *r) {
  int i = 0, j = 0;
  memset(r, 0, sizeof *r);
  r->x = x, r->n = n;
  for (int g = 0; i < x->rank || j < n->rank; g++) {
    int64_t a = 1, b = 1;
    int wide[2] = {0, 0};
    do {
      bool left = a <= b ? i < x->rank : j >= n->rank;
      int64_t d = left ? x->d[i] : n->d[j];
      if (left) a *= d, r->gx[i++] = d > 1 ? g : -1;
      else b *= d, r->gn[j++] = d > 1 ? g : -1;
      wide[left] += d > 1;
    } while (a != b && (i < x->rank || j < n->rank));
    r->same[g] = wide[0] == 1 && wide[1] == 1;
  }
}

int regroup_count(const Regroup *r, bool after, int group, int *last) {
  const HNode *n = after ? r->n : r->x;
  const int *of = after ? r->gn : r->gx;
  int count = 0;
  for (int d = 0; d < n->rank; d++)
    if (of[d] == group) *last = d, count++;
  return count;
}

bool regroup_order(const Regroup *r, bool forward, const int *from, int *to) {
  const HNode *a = forward ? r->x : r->n, *b = forward ? r->n : r->x;
  const int *ga = forward ? r->gx : r->gn, *gb = forward ? r->gn : r->gx;
  bool done[64] = {false}, exact = true;
  int k = 0, group = -1, last = 0;
  for (int q = 0; q < a->rank; q++) {
    int d = from[q];
    if (ga[d] < 0) continue;
    if (ga[d] != group) { /* its last dimension comes first */
      int end = 0;
      regroup_count(r, !forward, ga[d], &end);
      exact &= d == end && !done[ga[d]];
      group = ga[d];
      for (int e = b->rank - 1; e >= 0 && !done[group]; e--)
        if (gb[e] == group) to[k++] = e;
      done[group] = true;
    } else {
      exact &= d < last;
    }
    last = d;
  }
  value_order_rest(to, k, b->rank); /* of one element */
  return exact;
}

static bool fills(int64_t rows) { return rows % 8 == 0 || rows == 4 || rows <= 2; }

bool regroup_is_view(const Regroup *s, const int *ox, const int *on) {
  if (s->gx[ox[0]] < 0 || !s->same[s->gx[ox[0]]]) return false;
  int64_t lanes = s->x->d[ox[0]], a = s->x->d[ox[1]], b = s->n->d[on[1]];
  return a == b || (a % 8 == 0 && b % 8 == 0) || (lanes <= 128 && fills(a) && fills(b));
}

bool layout_adds_ones(const HNode *n) {
  if (n->kind != H_RESHAPE) return false;
  const HNode *x = n->in[0];
  int i = 0, j = 0;
  if (n->rank < 2 || x->rank < 2 || n->rank == x->rank) return false;
  for (; i < x->rank || j < n->rank; i++, j++) {
    while (i < x->rank && x->d[i] == 1) i++;
    while (j < n->rank && n->d[j] == 1) j++;
    if (i >= x->rank || j >= n->rank) break;
    if (x->d[i] != n->d[j]) return false;
  }
  return i >= x->rank && j >= n->rank;
}

static bool through_transpose(const HNode *n, const int *from, int *to) {
  for (int i = 0; i < n->rank; i++)
    for (int d = 0; d < n->rank; d++)
      if (n->dims[d] == from[i]) to[i] = d;
  return true;
}

/* Without the dimensions that are gone. */
static bool through_reduce(const HNode *n, const HNode *x, const int *from, int *to) {
  int map[64], kept = 0, k = 0;
  for (int d = 0; d < x->rank; d++) {
    bool gone = false;
    for (int q = 0; q < n->n_dims; q++) gone |= n->dims[q] == d;
    map[d] = gone ? -1 : kept++;
  }
  for (int d = 0; d < x->rank; d++)
    if (map[from[d]] >= 0) to[k++] = map[from[d]];
  return k == n->rank;
}

/* Columns first, then the rows as they lie in the first operand. */
static bool through_dot(const HNode *n, const int *from, int *to) {
  const HConv *c = n->conv;
  int r = n->rank, k = 1;
  if (c->is_conv || c->batch != 1 || c->out[r - 1] != 'n' || n->in[0]->rank != r) return false;
  to[0] = r - 1;
  for (int i = 0; i < r; i++)
    if (c->lhs[from[i]] == 'm') to[k++] = layout_row(n, from[i]);
  return k == r;
}

int layout_row(const HNode *dot, int d) {
  int row = 0, at = 0;
  for (int i = 0; i < d; i++) row += dot->conv->lhs[i] == 'm';
  for (int i = 0; i < dot->rank; i++)
    if (dot->conv->out[i] == 'm' && at++ == row) return i;
  return -1;
}

void tpu_conv_order(const CostParams *params, const HNode *n, const HConv *c, const char *roles,
                    int *order) {
  if (!value_order_roles(params, n, roles, c->is_conv ? 's' : 'b', order))
    value_order_default(params, n, order); /* fewer than two allowed ones: any second one */
}

bool layout_through(const HNode *n, const HNode *x, const int *from, int *to) {
  Regroup r;
  switch (n->kind) {
  case H_TRANSPOSE: return through_transpose(n, from, to);
  case H_REDUCE: return through_reduce(n, x, from, to);
  case H_CONV: return through_dot(n, from, to);
  case H_RESHAPE:
    regroup(x, n, &r);
    return regroup_order(&r, true, from, to) && x->rank > 1 && n->rank > 1 &&
           regroup_is_view(&r, from, to);
  case H_BCAST:
    for (int i = 0; i < MIN(x->rank, 2); i++) to[i] = (int)n->dims[from[i]];
    value_order_rest(to, MIN(x->rank, 2), n->rank); /* repeated dimensions stay out of the tiles */
    return true;
  default:
    if (x->rank != n->rank) return false;
    memcpy(to, from, sizeof *to * (size_t)n->rank);
    return true;
  }
}

/* So much larger is a dimension of d elements in lanes. */
static double in_lanes(int64_t d) { return (double)((d + 127) / 128 * 128) / (double)d; }

/* A reshape that cuts or joins lanes has the dimension there that stays and pads least, or the last such. */
static void keep_lanes(const HNode *n, const HNode *x, const int *from, int *to) {
  Regroup r;
  int first[64], stays = -1, k = 1;
  regroup(x, n, &r);
  for (int d = 0; d < x->rank; d++)
    if (r.gx[d] >= 0 && r.same[r.gx[d]] &&
        (stays < 0 || in_lanes(x->d[d]) <= in_lanes(x->d[stays])))
      stays = d;
  if (stays < 0 || r.gx[from[0]] < 0 || r.same[r.gx[from[0]]]) return;
  first[0] = stays;
  for (int q = 0; q < x->rank; q++)
    if (from[q] != stays) first[k++] = from[q];
  regroup_order(&r, true, first, to);
}

bool layout_from(LayoutWalk *w, const HNode *n, int *order) {
  int from[64];
  if (n->rank > 64 || --w->left < 0) return false;
  LayoutFound found = w->source(w, n, order);
  if (found == LAYOUT_HERE) w->at = n;
  if (found != LAYOUT_BEFORE || !(w->through >> n->kind & 1)) return found == LAYOUT_HERE;
  bool several = n->kind == H_EWISE || n->kind == H_CONCAT;
  for (int i = 0; i < (several ? n->n_in : 1); i++) {
    const HNode *x = n->in[i];
    if (n->kind == H_EWISE && !hlo_same_shape(x, n->rank, n->d)) continue;
    if (layout_from(w, x, from) && (layout_through(n, x, from, order) || w->loose)) {
      if (w->loose && n->kind == H_RESHAPE) keep_lanes(n, x, from, order);
      return true;
    }
    if (w->first) break;
  }
  return false;
}
