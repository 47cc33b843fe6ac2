/* The indices of a gather. libtpu's kernel reads them as a vector of whole tiles, held to the array's rows:
 * what reckons them is fused with that where a vector or rows of 128 fill the tiles, else stored, made a vector
 * where it is a matrix, then held and padded. */
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

#define TILE 1024 /* elements of a vector's tile */
#define LANES 128

/* Where single numbers are taken out of an array, their places along its sides are packed into one number
 * each. */
static void pack_places(HGraph *g, HComp *c, HNode *n) {
  HNode *at = n->in[1], *parts[8];
  int64_t one[64];
  if (at->kind != H_CONCAT || at->index != at->rank - 1 || at->rank > 64 ||
      at->n_in > (int)COUNT_OF(parts))
    return;
  memcpy(one, at->d, sizeof *one * (size_t)at->rank);
  one[at->rank - 1] = 1;
  for (int i = 0; i < at->n_in; i++) {
    parts[i] = at->in[i];
    if (parts[i]->d[at->index] != 1) return;
  }
  n->in[1] = hlo_node(g, c, H_EWISE, OP_OR, n->src, at->dt, at->rank, one, at->n_in, parts);
}

/* Held to the array's rows, and padded to whole tiles. */
static HNode *held(HGraph *g, HComp *c, const HNode *n, HNode *x) {
  static const int64_t none = 0;
  int64_t whole = (hlo_count(x) + TILE - 1) / TILE * TILE, more = whole - hlo_count(x);
  HNode *zero = hlo_node(g, c, H_CONST, OP_CONSTANT, n->src, x->dt, 0, NULL, 0, NULL);
  zero->splat = true;
  if (more) {
    x = hlo_node(g, c, H_PAD, OP_PAD, n->src, x->dt, 1, &whole, 2, (HNode *[]){x, zero});
    x->lo = hlo_ints(g, &none, 1), x->hi = hlo_ints(g, &more, 1), x->step = hlo_ints(g, &none, 1);
  }
  return hlo_node(g, c, H_EWISE, OP_CLAMP, n->src, x->dt, 1, &whole, 1, &x);
}

/* The same numbers in their natural order, as a vector of them is read. */
static HNode *naturally(HGraph *g, const CostParams *params, HComp *c, HNode *x) {
  static const int natural[] = {1, 0};
  int own[64];
  value_order_default(params, x, own);
  if (x->rank != 2 || own[0] == natural[0]) return x;
  x = hlo_node(g, c, H_EWISE, OP_COPY, x->src, x->dt, 2, x->d, 1, &x);
  tpu_lie(g, x, natural);
  return x;
}

/* Row numbers that are reckoned. */
static void hold_rows(HGraph *g, const CostParams *params, HComp *c, HNode *n) {
  const int64_t *map;
  HNode *at = n->in[1];
  if (at->kind == H_RESHAPE) at = at->in[0];
  int64_t count = hlo_count(at), last = at->rank ? at->d[at->rank - 1] : 0;
  if (at->kind != H_EWISE || op_ints(n->src, "start_index_map", &map) != 1) return;
  if (at->rank < 1 || count != hlo_count(n->in[1])) return;
  bool lies = last == count || last == 1 || last == LANES; /* as a vector does */
  if (lies && count % TILE == 0) {
    at->apart |= at->rank > 1 && last > 1;
    return;
  }
  at->apart = true;
  if (at->rank > 1 && last > 1) {
    at = naturally(g, params, c, at);
    at = hlo_node(g, c, H_RESHAPE, OP_RESHAPE, n->src, at->dt, 1, &count, 1, &at);
    tpu_lie(g, at, (int[]){0});
    at->view = lies;
    at->copies = !lies && last % LANES == 0; /* tile by tile */
  }
  n->in[1] = held(g, c, n, at);
}

/* Rows gathered by a matrix of indices come as rows of one matrix; a result is taken apart where that does not
 * lie as the matrix does, and then copied to its own order. */
static void take_rows_apart(HGraph *g, const CostParams *params, HComp *c, HNode *n) {
  static const int natural[] = {2, 1, 0};
  HNode *x = n->in[0];
  int want[3];
  if (!n->is_output || n->rank != 3 || x->rank != 2 || n->d[2] != x->d[1]) return;
  value_order_default(params, n, want);
  int64_t rows = n->d[1], flat[2] = {n->d[0] * rows, n->d[2]};
  bool view = rows % 8 == 0, as_it_is = !memcmp(want, natural, sizeof want);
  if (view && as_it_is) return;
  HNode *all = hlo_node(g, c, H_GATHER, n->op, n->src, n->dt, 2, flat, n->n_in, n->in);
  HNode *apart = n;
  if (!as_it_is) {
    apart = hlo_node(g, c, H_RESHAPE, OP_RESHAPE, n->src, n->dt, 3, n->d, 1, &all);
    n->kind = H_EWISE;
    n->op = OP_COPY;
    tpu_lie(g, n, want);
  }
  n->n_in = 1;
  n->in = arena_dup(g->arena, apart == n ? &all : &apart, sizeof apart);
  if (apart == n) n->kind = H_RESHAPE, n->op = OP_RESHAPE;
  tpu_lie(g, apart, natural);
  apart->view = view;
}

/* Single numbers of a vector gathered by a matrix of indices come as a vector; a result in another order than the
 * natural one is copied from a matrix in that. */
static void take_numbers_apart(HGraph *g, const CostParams *params, HComp *c, HNode *n) {
  static const int natural[] = {1, 0};
  const HNode *x = n->in[0];
  int want[64];
  if (!n->is_output || n->rank != 2 || x->rank != 1) return;
  value_order_default(params, n, want);
  if (want[0] == natural[0]) return;
  int64_t count = hlo_count(n);
  HNode *all = hlo_node(g, c, H_GATHER, n->op, n->src, n->dt, 1, &count, n->n_in, n->in);
  HNode *apart = hlo_node(g, c, H_RESHAPE, OP_RESHAPE, n->src, n->dt, 2, n->d, 1, &all);
  tpu_lie(g, apart, natural);
  apart->view = n->d[1] == LANES && n->d[0] % 8 == 0;
  n->kind = H_EWISE;
  n->op = OP_COPY;
  n->n_in = 1;
  n->in = arena_dup(g->arena, &apart, sizeof apart);
  tpu_lie(g, n, want);
}

void tpu_lay_indices(HGraph *g, const CostParams *params, HComp *c, HNode *gather) {
  if (hlo_takes_numbers(gather->src)) {
    pack_places(g, c, gather);
  } else {
    hold_rows(g, params, c, gather);
    take_rows_apart(g, params, c, gather);
    take_numbers_apart(g, params, c, gather);
  }
}
