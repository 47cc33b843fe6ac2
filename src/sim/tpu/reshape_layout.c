/* Reshapes far from products, and those that split lanes so finely that these cannot stay. A reshape is the
 * memory of what it reads where the dimensions that it splits or joins lie beside each other and lanes keep
 * theirs; else it is an operation of its own, whose argument and result lie so that copies and results are
 * least padded. Both are stored, and what it reads is copied where it lies otherwise. */
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/layout_propagation.h"
#include "sim/tpu/tpu.h"

#define NEAR 6 /* operations to a product that has a say in how its operands lie */
#define MOST 16

static bool has_product(const HNode *n, bool before, int depth) {
  if (n->kind == H_CONV || n->kind == H_GATHER || n->kind == H_SCATTER || n->kind == H_WHILE)
    return true;
  if (depth > NEAR || (before && !hlo_light(n) && n->kind != H_CONCAT && n->kind != H_REDUCE))
    return false;
  for (int i = 0; i < (before ? n->n_in : n->n_users); i++)
    if (has_product(before ? n->in[i] : n->users[i], before, depth + 1)) return true;
  return false;
}

typedef struct Choice {
  int x[64], n[64];
  double cost, widest; /* padded bytes of what is made; how much the more padded side is padded */
  bool view, moved;    /* x is copied first */
} Choice;

/* May x lie as it is asked to? Else it has an order of its own. */
static bool is_free(const HNode *x) {
  for (int i = 0; i < x->n_in && x->kind == H_EWISE; i++)
    if (!hlo_const_only(x->in[i]) && x->in[i]->kind != H_BCAST) return false;
  return x->kind == H_BCAST || x->kind == H_TRANSPOSE || x->kind == H_EWISE;
}

static bool choose(const CostParams *params, const Regroup *s, const int *own, const int *order,
                   Choice *c) {
  double tiles, to, from = value_padded(params, s->x, order, &tiles), plain = hlo_bytes(s->n);
  if (!regroup_order(s, true, order, c->n)) return false;
  memcpy(c->x, order, sizeof *order * (size_t)s->x->rank);
  to = value_padded(params, s->n, c->n, &tiles);
  c->moved = false;
  for (int i = 0; i < s->x->rank; i++) c->moved |= order[i] != own[i];
  c->view = regroup_is_view(s, c->x, c->n);
  c->cost = (c->moved || is_free(s->x) ? from : 0) + (c->view ? 0 : to);
  c->widest = MAX(from, to) / plain;
  return true;
}

static void better(const CostParams *params, const Regroup *s, const int *own, const int *order,
                   Choice *best) {
  Choice c;
  if (choose(params, s, own, order, &c) && (best->cost < 0 || c.cost < best->cost * 0.999))
    *best = c;
}

/* How the result of a reshape has to lie, as a result of the program, perhaps after some arithmetic or a
 * transposition, which moves nothing then; *copied: nothing else is made of it. */
static bool wanted(const CostParams *params, const HNode *n, int *order, bool *copied) {
  const HNode *u = n->n_users == 1 ? n->users[0] : NULL;
  *copied = n->is_output || (u && u->kind == H_TRANSPOSE && u->is_output);
  if (u && u->kind == H_TRANSPOSE && u->is_output && !n->is_output) {
    value_order_default(params, u, order);
    for (int q = 0; q < u->rank; q++) order[q] = (int)u->dims[order[q]];
    return true;
  }
  for (int depth = 0; depth < NEAR && u && !n->is_output && u->kind == H_EWISE; depth++)
    n = u, u = n->n_users == 1 ? n->users[0] : NULL;
  value_order_default(params, n, order);
  return n->is_output;
}

#define WIDE 4 /* times as large with its padding: then another dimension is brought into lanes */

/* The orders that the two sides take; false: nothing is known of it. */
static bool decide(const CostParams *params, const Regroup *s, const int *own, const int *want,
                   bool copied, Choice *best) {
  int r = s->x->rank, order[64];
  if (choose(params, s, own, own, best) && best->view && !is_free(s->x)) return true;
  bool asked = want && regroup_order(s, false, want, order);
  if (asked && copied && choose(params, s, own, order, best) && best->view) return true;
  best->cost = -1;
  if (!is_free(s->x)) better(params, s, own, own, best);
  if (asked) better(params, s, own, order, best);
  value_order_rest(order, 0, r);
  better(params, s, own, order, best);
  for (int d = 0; d < r && (best->cost < 0 || best->widest > WIDE); d++) {
    if (s->gx[d] < 0 || !s->same[s->gx[d]]) continue;
    order[0] = d;
    value_order_rest(order, 1, r);
    better(params, s, own, order, best);
  }
  return best->cost >= 0;
}

/* Does it split what lies in lanes so finely that it cannot lie there any more? */
static bool splits_lanes(const CostParams *params, const Regroup *s) {
  int order[64];
  double tiles;
  value_order_rest(order, 0, s->n->rank);
  return s->x->rank == 2 && s->n->rank == 3 &&
         value_padded(params, s->n, order, &tiles) > 2 * WIDE * hlo_bytes(s->n);
}

void tpu_lie(HGraph *g, HNode *n, const int *order) {
  n->lies = arena_dup(g->arena, order, sizeof *order * (size_t)n->rank);
  n->apart = true;
}

static int64_t fill_tiles(int64_t rows) {
  return rows == 4 || rows <= 2 ? rows : (rows + 7) / 8 * 8;
}

/* Is `apart` [R, S, L] what `joined` [R, S L] is, rows of whole lanes that come to lie beside each other? */
static bool whole_lanes(const HNode *apart, const HNode *joined) {
  return apart->rank == 3 && joined->rank == 2 && apart->d[0] == joined->d[0] &&
         apart->d[2] % 128 == 0 && apart->d[1] > 1;
}

static bool is_order(const int *order, int a, int b, int c) {
  return order[0] == a && order[1] == b && order[2] == c;
}

/* Rows of whole lanes, joined: tile by tile, in one copy, where the joined rows' number fills tiles. Else they
 * are padded to that first, in the natural order. An argument that is split lies so by one copy, too, or in
 * the natural order where both fill tiles. False:
 * something else. */
static bool join_lanes(HGraph *g, const CostParams *params, HComp *c, HNode *n, const int *own) {
  HNode *x = n->in[0];
  int natural[3] = {2, 1, 0}, out[2] = {1, 0}, want[3];
  int64_t rows = fill_tiles(n->d[0]);
  if (x->kind != H_PARAM || !n->is_output) return false;
  if (whole_lanes(n, x)) {
    value_order_default(params, n, want);
    bool natural_fills = is_order(want, 2, 1, 0) && n->d[1] % 8 == 0;
    if (rows != n->d[0] || own[0] != 1 || !(is_order(want, 2, 0, 1) || natural_fills)) return false;
    tpu_lie(g, n, want);
    return n->copies = true;
  }
  value_order_default(params, n, want);
  if (!whole_lanes(x, n) || want[0] != 1 || own[0] != 2) return false;
  if (rows != n->d[0]) {
    if (own[1] == 0) {
      x = hlo_node(g, c, H_EWISE, OP_COPY, n->src, x->dt, 3, x->d, 1, &x);
      tpu_lie(g, x, natural);
    }
    int64_t d[3] = {rows, x->d[1], x->d[2]}, hi[3] = {rows - x->d[0]}, none[3] = {0};
    HNode *zero = hlo_node(g, c, H_CONST, OP_CONSTANT, n->src, x->dt, 0, NULL, 0, NULL);
    zero->splat = true;
    x = hlo_node(g, c, H_PAD, OP_PAD, n->src, x->dt, 3, d, 2, (HNode *[]){x, zero});
    x->lo = hlo_ints(g, none, 3), x->step = hlo_ints(g, none, 3), x->hi = hlo_ints(g, hi, 3);
    tpu_lie(g, x, natural);
  }
  n->in[0] = x;
  tpu_lie(g, n, out);
  return n->copies = true;
}

/* A turned argument whose dimensions are joined or split as they lie is read as it is, and copied once. */
static bool turned_argument(HGraph *g, const CostParams *params, HComp *c, HNode *n,
                            const Regroup *s) {
  HNode *x = n->in[0], *from = x->kind == H_TRANSPOSE ? x->in[0] : NULL;
  int there[64], own[64], want[64];
  Choice as_it_lies;
  if (x->kind != H_TRANSPOSE || from->kind != H_PARAM || x->n_users > 1 || !n->is_output)
    return false;
  value_order_default(params, from, there);
  value_order_default(params, n, want);
  for (int q = 0; q < x->rank; q++)
    for (int d = 0; d < x->rank; d++)
      if (x->dims[d] == there[q]) own[q] = d;
  if (!choose(params, s, own, own, &as_it_lies) || !as_it_lies.view) return false;
  HNode *v = hlo_node(g, c, H_RESHAPE, OP_RESHAPE, n->src, n->dt, n->rank, n->d, 1, &from);
  tpu_lie(g, v, as_it_lies.n);
  v->view = true;
  n->kind = H_EWISE;
  n->op = OP_COPY;
  n->in = arena_dup(g->arena, &v, sizeof v);
  tpu_lie(g, n, want);
  x->dead = true;
  return true;
}

void tpu_lay_reshape(HGraph *g, const CostParams *params, HComp *c, HNode *n) {
  HNode *x = n->in[0];
  Regroup s;
  int own[64], want[64];
  Choice best;
  bool copied;
  if (c->parent || n->part || n->rows || x->part || x->rows || n->rank < 2 || x->rank < 2 ||
      n->rank > MOST || x->rank > MOST || hlo_count(n) <= 1024 || hlo_same_dimensions(n))
    return;
  regroup(x, n, &s);
  value_order_default(params, x->kind == H_PAD ? x->in[0] : x, own); /* pads lie as what they pad */
  bool near = has_product(x, true, 0) || has_product(n, false, 0);
  if (near && !splits_lanes(params, &s)) return;
  if (!near && (join_lanes(g, params, c, n, own) || turned_argument(g, params, c, n, &s))) return;
  bool known = wanted(params, n, want, &copied);
  if (!decide(params, &s, own, known ? want : NULL, copied, &best) || (near && best.view)) return;
  bool fits = known;
  for (int i = 0; i < n->rank && known; i++) fits &= best.n[i] == want[i];
  /* of an argument only a copy is a result: in another order as it is read, or as it is written */
  bool copy = best.view && copied && x->kind == H_PARAM && (fits || !best.moved);
  bool moved = best.moved || hlo_stacked(x);
  if (is_free(x)) moved = x->lies && memcmp(x->lies, best.x, sizeof *best.x * (size_t)x->rank);
  if (x->kind != H_PARAM && !is_free(x)) x->apart = true;
  if (is_free(x) && !x->lies) {
    tpu_lie(g, x, best.x);
    x->apart = !(best.view && n->is_output && fits); /* else it is made as that */
  }
  if (moved && !copy) {
    x = hlo_node(g, c, H_EWISE, OP_COPY, n->src, x->dt, x->rank, x->d, 1, &x);
    tpu_lie(g, x, best.x);
    n->in[0] = x;
  }
  tpu_lie(g, n, copy ? want : best.n);
  n->view = best.view && !copy;
  n->copies = copy;
  n->turned = copy && (fits ? own[0] != best.x[0] : best.n[0] != want[0]);
}
