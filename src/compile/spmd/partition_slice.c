/* Slices, pads and what is joined along a cut dimension. Where a part of the result is a piece of one device's part, or
 * parts of it are (halves of a product, their gradients), pieces go from device to device; else a device fetches the few
 * elements that it lacks (all but the last, every second, rolls and shifts). Nothing is gathered. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"
#include "compile/spmd/window.h"

#define MOST_PIECES 16

/* A dimension cut over n devices, of `parts` elements on each before, `out` after; result's element 0 is the operand's
 * element `start`. */
typedef struct Move {
  const Dim *axes;
  int64_t n, part, out, start;
} Move;

/* What an operand is along a dimension: [first, end) of a value, of which a slice took it. */
typedef struct Source {
  Value *x;
  int64_t first, end;
} Source;

static bool same_cut(Spmd *s, const Op *op, const Value *x, int d, Move *m) {
  const Dim *axes = &spmd_layout_of(s, &op->results[0])->d[d];
  if (!axes->n || !spmd_same_axes(axes, &spmd_layout_of(s, x)->d[d])) return false;
  m->axes = axes;
  m->n = spmd_dim_parts(s, axes);
  m->part = x->type->dims[d] / m->n;
  m->out = op->results[0].type->dims[d] / m->n;
  return m->part > 0 && m->out > 0;
}

/* Behind slices, the value that is cut along the dimension by these axes; x: itself where there is no such. */
static Source source_of(Spmd *s, Value *x, int dim, const Dim *axes) {
  Source whole = {x, 0, x->type->dims[dim]}, r = whole;
  while (!spmd_same_axes(&spmd_layout_of(s, r.x)->d[dim], axes)) {
    const int64_t *start;
    if (!op_slices_along(r.x->def, dim)) return whole;
    op_ints(r.x->def, "start_indices", &start);
    r = (Source){r.x->def->operands[0], r.first + start[dim], r.end + start[dim]};
  }
  return r;
}

/* Fewer than if each device fetched the whole dimension. */
static bool pays(const Value *x, const Stretch *w) {
  return !x->type->quant && spmd_stretch_fetches(w) < (w->n - 1) * w->part;
}

/* ---- slices ---- */

static bool slice_moves(Spmd *s, const Op *op, int d, Move *m) {
  const int64_t *start, *strides;
  op_ints(op, "start_indices", &start);
  if (op_ints(op, "strides", &strides) > d && strides[d] != 1) return false;
  m->start = start[d];
  return same_cut(s, op, op->operands[0], d, m) && m->part % m->out == 0 &&
         m->start % m->out == 0 && m->part / m->out <= MOST_PIECES;
}

/* Piece k of each device's part goes to the one that it is the part of; a device gets one. */
static Value *moved_slice(Spmd *s, Value *x, int dim, const Move *m) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t pieces = m->part / m->out, first = m->start / m->out,
          *from = xmalloc(sizeof *from * (size_t)m->n);
  Value *out = NULL, *place = NULL;
  for (int64_t k = 0; k < pieces; k++) {
    for (int64_t p = 0; p < m->n; p++)
      from[p] = (p + first) % pieces == k ? (p + first) / pieces : -1;
    Value *piece = b_slice_dim(&b, x, dim, k * m->out, (k + 1) * m->out);
    piece = spmd_fetch(s, piece, m->axes, from);
    if (!out) {
      out = piece;
      continue;
    }
    if (!place) {
      place = b_add(&b, spmd_own_place(s, m->axes, 1), b_scalar_i64(&b, DT_I64, first));
      place = b_binary(&b, OP_REMAINDER, place, b_scalar_i64(&b, DT_I64, pieces));
    }
    Value *own = b_compare(&b, "EQ", place, b_scalar_i64(&b, DT_I64, k));
    out = b_select(&b, b_bcast_scalar(&b, own, out->type), piece, out);
  }
  free(from);
  return out;
}

static bool slice_stretches(Spmd *s, const Op *op, int d, Move *m, Stretch *w) {
  const int64_t *start, *strides;
  int64_t step = op_ints(op, "strides", &strides) > d ? strides[d] : 1;
  op_ints(op, "start_indices", &start);
  if (!same_cut(s, op, op->operands[0], d, m)) return false;
  *w = (Stretch){.n = m->n,
                 .part = m->part,
                 .step = m->out * step,
                 .begin = start[d],
                 .len = (m->out - 1) * step + 1,
                 .end = m->n * m->part};
  return pays(op->operands[0], w);
}

/* What is as it was before, or moves, stays cut; the first slice takes the others. */
bool spmd_slice_op(Spmd *s, const Op *op) {
  const Type *x = op->operands[0]->type, *r = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  const int64_t *start, *limit, *strides;
  int n = op_ints(op, "strides", &strides);
  op_ints(op, "start_indices", &start);
  op_ints(op, "limit_indices", &limit);
  Layout has = {0};
  Move moves[MAX_RANK];
  Stretch stretches[MAX_RANK];
  bool moved[MAX_RANK] = {false}, stretched[MAX_RANK] = {false}, any = false;
  int64_t lo[MAX_RANK] = {0}, hi[MAX_RANK], step[MAX_RANK], none[MAX_RANK] = {0};
  for (int d = 0; d < x->rank; d++) {
    bool full = x->dims[d] == r->dims[d];
    moved[d] = !full && slice_moves(s, op, d, &moves[d]);
    stretched[d] = !full && !moved[d] && slice_stretches(s, op, d, &moves[d], &stretches[d]);
    any |= moved[d] || stretched[d];
    bool whole = full || moved[d] || stretched[d];
    if (whole) has.d[d] = want->d[d];
    lo[d] = whole ? 0 : start[d];
    hi[d] = whole ? x->dims[d] / spmd_dim_parts(s, &has.d[d]) : limit[d];
    step[d] = d < n && !stretched[d] ? strides[d] : 1;
  }
  if (!any) return false;
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *v = b_slice(&b, spmd_operand(s, op->operands[0], &has), lo, hi, step);
  for (int d = 0; d < x->rank; d++) {
    if (moved[d]) v = moved_slice(s, v, d, &moves[d]);
    if (stretched[d]) v = spmd_stretch(s, v, d, moves[d].axes, &stretches[d], NULL);
    step[d] = stretched[d] && d < n ? strides[d] : 1;
  }
  v = b_slice(&b, v, none, v->type->dims, step);
  spmd_set_result(s, op, 0, v, &has);
  return true;
}

/* ---- pads ---- */

/* A pad, dimension by dimension: where its operand is, and how it is padded there and then. */
typedef struct Padding {
  Move moves[MAX_RANK];
  Stretch stretches[MAX_RANK];
  bool moved[MAX_RANK], stretched[MAX_RANK];
  int64_t low[MAX_RANK], high[MAX_RANK], inner[MAX_RANK];
} Padding;

static bool pad_moves(int64_t lo, int64_t hi, int64_t in, const Source *src, Move *m) {
  m->start = -lo;
  return !in && lo >= 0 && hi >= 0 && src->end - src->first == m->n * m->part &&
         m->out % m->part == 0 && lo % m->part == 0 && m->out / m->part <= MOST_PIECES;
}

/* Of elements that lie `every` apart each device has as many, at the same places of its part. */
static bool pad_stretches(Padding *p, int d, int64_t lo, int64_t in, const Source *src) {
  const Move *m = &p->moves[d];
  int64_t every = in + 1, begin = lo >= 0 ? -(lo / every) : (-lo + in) / every;
  if (m->out % every) return false;
  Stretch *w = &p->stretches[d];
  *w = (Stretch){.n = m->n,
                 .part = m->part,
                 .step = m->out / every,
                 .begin = begin + src->first,
                 .len = m->out / every,
                 .first = src->first,
                 .end = src->end};
  p->low[d] = begin * every + lo;
  p->high[d] = in - p->low[d];
  p->inner[d] = in;
  return pays(src->x, w);
}

/* Parts lie side by side in the result's, each where it was, and what pads between them. */
static Value *moved_pad(Spmd *s, Value *x, int dim, const Move *m, Value *fill) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t pieces = m->out / m->part, first = m->start / m->part,
          *from = xmalloc(sizeof *from * (size_t)m->n);
  Value *parts[MOST_PIECES], *place = spmd_own_place(s, m->axes, pieces);
  for (int64_t k = 0; k < pieces; k++) {
    for (int64_t p = 0; p < m->n; p++) from[p] = p * pieces + k + first;
    Value *piece = spmd_fetch(s, x, m->axes, from);
    Value *source = b_add(&b, place, b_scalar_i64(&b, DT_I64, k + first));
    Value *there = b_and(&b, b_compare(&b, "GE", source, b_scalar_i64(&b, DT_I64, 0)),
                         b_compare(&b, "LT", source, b_scalar_i64(&b, DT_I64, m->n)));
    parts[k] = b_select(&b, b_bcast_scalar(&b, there, piece->type), piece,
                        b_bcast_scalar(&b, fill, piece->type));
  }
  free(from);
  return pieces > 1 ? b_concat(&b, (int)pieces, parts, dim) : parts[0];
}

/* Whether any dimension stays cut though it is padded; has: as the operand, x of [first, end) along dim, then is. */
static bool plan_pad(Spmd *s, const Op *op, int dim, const Source *src, Padding *p, Layout *has) {
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  const Type *t = op->operands[0]->type;
  const int64_t *lo, *hi, *in;
  op_ints(op, "edge_padding_low", &lo);
  op_ints(op, "edge_padding_high", &hi);
  op_ints(op, "interior_padding", &in);
  bool any = false;
  *has = (Layout){0};
  for (int d = 0; d < t->rank; d++) {
    Source own = d == dim ? *src : (Source){src->x, 0, t->dims[d]};
    bool plain = !lo[d] && !hi[d] && !in[d] && d != dim;
    bool alike = !plain && same_cut(s, op, own.x, d, &p->moves[d]);
    p->low[d] = p->high[d] = p->inner[d] = 0;
    p->moved[d] = alike && pad_moves(lo[d], hi[d], in[d], &own, &p->moves[d]);
    p->stretched[d] = alike && !p->moved[d] && pad_stretches(p, d, lo[d], in[d], &own);
    any |= p->moved[d] || p->stretched[d];
    if (plain || p->moved[d] || p->stretched[d]) has->d[d] = want->d[d];
    else p->low[d] = lo[d], p->high[d] = hi[d], p->inner[d] = in[d];
  }
  return any && (dim < 0 || p->stretched[dim]);
}

static bool plan_any_pad(Spmd *s, const Op *op, Source *src, Padding *p, Layout *has) {
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  for (int d = 0; d < op->operands[0]->type->rank; d++) {
    if (!want->d[d].n) continue;
    *src = source_of(s, op->operands[0], d, &want->d[d]);
    if (src->x != op->operands[0] && plan_pad(s, op, d, src, p, has)) return true;
  }
  src->x = op->operands[0];
  return plan_pad(s, op, -1, src, p, has);
}

bool spmd_pad_op(Spmd *s, const Op *op) {
  Layout has, none = {0};
  Padding p;
  Source src;
  if (!plan_any_pad(s, op, &src, &p, &has)) return false;
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *fill = spmd_operand(s, op->operands[1], &none);
  Value *v = spmd_operand(s, src.x, &has);
  for (int d = 0; d < src.x->type->rank; d++) {
    const Stretch *w = &p.stretches[d];
    if (p.moved[d]) v = moved_pad(s, v, d, &p.moves[d], fill);
    if (!p.stretched[d]) continue;
    bool all = w->first == 0 && w->end == w->n * w->part;
    v = spmd_stretch(s, v, d, p.moves[d].axes, w, all ? fill : NULL);
    if (!all) v = spmd_where_inside(s, v, d, p.moves[d].axes, w, fill);
  }
  v = b_pad(&b, v, fill, p.low, p.high, p.inner);
  spmd_set_result(s, op, 0, v, &has);
  return true;
}

/* ---- what is joined ---- */

typedef struct Join {
  Source src;
  bool cut; /* else each device gets the whole */
  Stretch w;
} Join;

/* An end of a value before its beginning: turned round by so many elements. */
static bool is_rolled(const Join *j, int n, int64_t size) {
  return n == 2 && j[0].cut && j[1].cut && j[0].src.x == j[1].src.x && !j[1].src.first &&
         j[0].src.end == size && j[0].src.first == j[1].src.end && j[0].w.n * j[0].w.part == size;
}

/* How many elements of others a device fetches in all; more than there are: it does not go so. */
static int64_t plan_join(Spmd *s, const Op *op, int dim, Join *joins) {
  const Dim *axes = &spmd_layout_of(s, &op->results[0])->d[dim];
  int64_t size = op->results[0].type->dims[dim], n = spmd_dim_parts(s, axes), at = 0, fetched = 0;
  bool any = false;
  for (int k = 0; k < op->n_operands; k++) {
    Join *j = &joins[k];
    j->src = source_of(s, op->operands[k], dim, axes);
    j->cut = spmd_same_axes(&spmd_layout_of(s, j->src.x)->d[dim], axes);
    j->w = (Stretch){.n = n,
                     .part = j->src.x->type->dims[dim] / n,
                     .step = size / n,
                     .begin = j->src.first - at,
                     .len = size / n,
                     .first = j->src.first,
                     .end = j->src.end};
    at += j->src.end - j->src.first;
    if (j->src.x->type->quant || (j->cut && !j->w.part)) return size + 1;
    fetched += j->cut ? spmd_stretch_fetches(&j->w) : j->w.end - j->w.first;
    any |= j->cut;
  }
  return any ? fetched : size + 1;
}

static Value *joined(Spmd *s, int dim, int n, const Join *joins, const Layout *has) {
  Value *v = NULL;
  const Dim *axes = &has->d[dim];
  for (int k = 0; k < n; k++) {
    const Join *j = &joins[k];
    Layout need = *has;
    if (!j->cut) need.d[dim].n = 0;
    Value *x = spmd_operand(s, j->src.x, &need);
    x = j->cut ? spmd_stretch(s, x, dim, axes, &j->w, NULL)
               : spmd_stretch_of_whole(s, x, dim, axes, &j->w);
    v = v ? spmd_where_inside(s, x, dim, axes, &j->w, v) : x;
  }
  return v;
}

bool spmd_joined_op(Spmd *s, const Op *op) {
  const Type *t = op->results[0].type;
  int64_t dim = op_int(op, "dimension", -1);
  if (dim < 0) dim += t->rank;
  Layout has = *spmd_layout_of(s, &op->results[0]);
  has.sum.n = 0;
  if (!has.d[dim].n || t->dims[dim] % spmd_dim_parts(s, &has.d[dim])) return false;
  Join *joins = xcalloc((size_t)op->n_operands, sizeof *joins);
  int64_t fetched = plan_join(s, op, (int)dim, joins);
  Stretch w = joins[0].w;
  Value *v = NULL;
  if (is_rolled(joins, op->n_operands, t->dims[dim])) {
    w.around = true;
    if (w.begin > t->dims[dim] / 2) w.begin -= t->dims[dim];
    v = spmd_operand(s, joins[0].src.x, &has);
    v = spmd_stretch(s, v, (int)dim, &has.d[dim], &w, NULL);
  } else if (fetched <= w.len) v = joined(s, (int)dim, op->n_operands, joins, &has);
  free(joins);
  if (v) spmd_set_result(s, op, 0, v, &has);
  return v != NULL;
}
