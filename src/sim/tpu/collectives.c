/* What libtpu makes of exchanges between devices besides moving the bytes. What other devices write
 * arrives in memory of the program's own: a result of the program is a copy of it. Reduce-scatters
 * are sums of everything that are cut, or go round a ring in pieces that tiles and directions must
 * divide: rows are padded to that, and what a device then has too little of comes from its neighbours.
 * Rows that go to all others and are not whole tiles are laid out apart first. Read from libtpu's programs
 * of tools/libtpu_ask.py; how long an exchange takes is schedule/collective.c's. */
#include <math.h>

#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

typedef struct At {
  HGraph *g;
  HComp *c;
  const HNode *like;
} At;

static HNode *make(At *a, HKind kind, OpKind op, int64_t rows, int n_in, HNode *const *in) {
  int64_t d[64];
  memcpy(d, a->like->d, sizeof *d * (size_t)a->like->rank);
  d[a->like->index] = rows;
  return hlo_node(a->g, a->c, kind, op, a->like->src, a->like->dt, a->like->rank, d, n_in, in);
}

static void cut_from(At *a, HNode *n, int64_t from) {
  int64_t lo[64] = {0}, step[64];
  for (int i = 0; i < n->rank; i++) step[i] = 1;
  lo[a->like->index] = from;
  n->lo = hlo_ints(a->g, lo, n->rank);
  n->step = hlo_ints(a->g, step, n->rank);
  n->hi = hlo_ints(a->g, n->d, n->rank);
  n->hi[a->like->index] += from;
}

/* This device's part of `of`, from its number times `rows` on. */
static void become_part(At *a, HNode *n, HNode *of, int64_t rows) {
  const Op *src = a->like->src;
  HNode *id = hlo_node(a->g, a->c, H_COLL, OP_PARTITION_ID, src, DT_U32, 0, NULL, 0, NULL),
        *step = hlo_node(a->g, a->c, H_CONST, OP_CONSTANT, src, DT_U32, 0, NULL, 0, NULL),
        *at = hlo_node(a->g, a->c, H_EWISE, OP_MULTIPLY, src, DT_U32, 0, NULL, 2,
                       (HNode *[]){id, step});
  step->splat = true;
  step->value = (double)rows;
  n->kind = H_DSLICE;
  n->op = OP_DYNAMIC_SLICE;
  n->n_in = 2;
  n->in = arena_dup(a->g->arena, (HNode *[]){of, at}, 2 * sizeof of);
}

/* Rows of each device's part: whole tiles of eight, as many for each core, which has a direction, and each piece. */
static int64_t part_rows(const CostParams *params, const HNode *n) {
  int d = n->index;
  double row = hlo_bits(n->dt) / 8;
  for (int i = 0; i < n->rank; i++)
    if (i != d) row *= (double)n->d[i];
  int64_t pieces =
      params->ring_piece > 0 ? (int64_t)ceil(row * (double)n->d[d] / params->ring_piece) : 1;
  int64_t step = 8 * params->cores * MAX(pieces, 1);
  return (n->d[d] + step - 1) / step * step;
}

static void scatter_sums(HGraph *g, const CostParams *params, HComp *c, HNode *n) {
  if (n->rank < 1 || n->rank > 64 || n->n_in != 1 || n->n_results != 1) return;
  int64_t dim = op_int(n->src, "scatter_dimension", 0);
  if (dim < 0 || dim >= n->rank || n->d[dim] < 1) return;
  HNode *x = n->in[0];
  n->index = (int)dim; /* of a collective it says nothing else */
  At a = {g, c, n};
  if ((double)(x->d[dim] / n->d[dim]) > params->ring_devices) {
    HNode *all = make(&a, H_COLL, OP_ALL_REDUCE, x->d[dim], 1, &x);
    become_part(&a, n, all, n->d[dim]);
    return;
  }
  int64_t part = n->d[dim], rows = part_rows(params, n);
  if (rows == part || dim != n->rank - 2) return; /* seen along rows alone */
  int64_t missing = (rows - part) * (x->d[dim] / part - 1);
  HNode *own = make(&a, H_COLL, OP_REDUCE_SCATTER, rows, 1, &x), *at = own, *parts[64];
  int n_parts = 0;
  for (int64_t left = missing; left > 0 && n_parts < 63; left -= rows) {
    int64_t some = MIN(left, rows);
    if (some < rows) {
      at = make(&a, H_SLICE, OP_SLICE, some, 1, &own);
      cut_from(&a, at, rows - some);
    }
    parts[n_parts++] = make(&a, H_COLL, OP_COLLECTIVE_PERMUTE, some, 1, &at);
  }
  parts[n_parts++] = own;
  HNode *all = make(&a, H_CONCAT, OP_CONCATENATE, rows + missing, n_parts, parts);
  all->index = (int)dim;
  all->apart = true;
  become_part(&a, n, all, rows - part);
}

/* f32[200,384] to four devices is f32[4,50,384]. */
static void send_to_all(HGraph *g, HComp *c, HNode *n) {
  if (n->rank < 2 || n->rank > 63 || n->n_in != 1 || n->n_results != 1) return;
  int64_t cut = op_int(n->src, "split_dimension", 0), put = op_int(n->src, "concat_dimension", 0),
          to = op_int(n->src, "split_count", 1);
  if (cut != put || cut != n->rank - 2 || to < 2 || n->d[cut] % to || n->d[cut] / to % 8 == 0)
    return;
  int64_t d[64];
  for (int i = 0, k = 0; i < n->rank; i++) {
    if (i == cut) d[k++] = to;
    d[k++] = i == cut ? n->d[i] / to : n->d[i];
  }
  HNode *x = hlo_node(g, c, H_RESHAPE, OP_RESHAPE, n->src, n->dt, n->rank + 1, d, 1, n->in);
  HNode *y = hlo_node(g, c, H_COLL, OP_ALL_TO_ALL, n->src, n->dt, n->rank + 1, d, 1, &x);
  x->apart = y->apart = true;
  int lies[64];
  value_order_rest(lies, 0, x->rank);
  x->lies = y->lies = arena_dup(g->arena, lies, sizeof *lies * (size_t)x->rank);
  n->kind = H_RESHAPE;
  n->op = OP_RESHAPE;
  n->in = arena_dup(g->arena, &y, sizeof y);
}

/* Nothing but dimension d and those of one element lie outside of it? */
static bool is_outermost(const HNode *n, int64_t d) {
  for (int i = 0; i < d; i++)
    if (n->d[i] > 1) return false;
  return true;
}

static HNode *copied(HGraph *g, HComp *c, const HNode *like, HNode *x) {
  HNode *n = hlo_node(g, c, H_EWISE, OP_COPY, like->src, x->dt, x->rank, x->d, 1, &x);
  n->apart = true;
  return n;
}

/* What goes to each device lies together, and so does what comes from each: where it is not the outermost dimension
 * that is cut, or that grows, all is copied to such an order, or from it. Rows of such a part lie as they did. */
static void lay_out_sent(HGraph *g, HComp *c, HNode *n) {
  if (n->rank < 2 || n->n_in != 1 || n->n_results != 1) return;
  int64_t cut = op_int(n->src, "split_dimension", 0), put = op_int(n->src, "concat_dimension", 0);
  HNode *x = n->in[0];
  if (cut == put || cut < 0 || put < 0 || cut >= n->rank || put >= n->rank) return;
  if (!is_outermost(x, cut)) x = copied(g, c, n, x);
  if (!is_outermost(n, put)) {
    x = hlo_node(g, c, H_COLL, OP_ALL_TO_ALL, n->src, n->dt, n->rank, n->d, 1, &x);
    n->kind = H_EWISE;
    n->op = OP_COPY;
    n->apart = true;
  }
  n->in = arena_dup(g->arena, &x, sizeof x);
}

void tpu_collective(HGraph *g, const CostParams *params, HComp *c, HNode *n) {
  if (n->op == OP_REDUCE_SCATTER) scatter_sums(g, params, c, n);
  else if (n->op == OP_ALL_TO_ALL) {
    send_to_all(g, c, n);
    if (n->kind == H_COLL) lay_out_sent(g, c, n);
  }
}

bool tpu_joins_parts(const HNode *n) {
  return n->kind == H_CONCAT && n->src && n->src->kind == OP_REDUCE_SCATTER;
}

static bool written_by_others(const CostParams *params, const HValue *v) {
  const HNode *n = base_of((HValue *)v)->node;
  if (n->kind == H_GET) n = n->in[0];
  return n->kind == H_COLL && n->op != OP_REDUCE_SCATTER &&
         (params->sums_apart || n->op != OP_ALL_REDUCE);
}

void tpu_received(Schedule *p) {
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (!v || v->is_param || v->kernel < 0 || !written_by_others(p->params, v)) continue;
    HValue *w = tpu_copy(p, v, v->order, "written by other devices");
    w->is_output = true;
    p->comp->outputs.v[i] = w->node;
  }
}
