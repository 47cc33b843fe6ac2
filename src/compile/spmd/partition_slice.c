/* Slices and pads along a cut dimension: halves of a product, their gradients. Where a part of the result is a piece of one
 * device's part, or parts of it are, pieces go from device to device and nothing is gathered. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"

#define MOST_PIECES 16

/* A dimension cut over n devices, of `parts` elements on each before, `out` after; result's element 0 is the operand's
 * element `start`. */
typedef struct Move {
  const Dim *axes;
  int64_t n, part, out, start;
} Move;

static bool same_cut(Spmd *s, const Op *op, int d, Move *m) {
  const Dim *axes = &spmd_layout_of(s, &op->results[0])->d[d];
  if (!axes->n || !spmd_same_axes(axes, &spmd_layout_of(s, op->operands[0])->d[d])) return false;
  m->axes = axes;
  m->n = spmd_dim_parts(s, axes);
  m->part = op->operands[0]->type->dims[d] / m->n;
  m->out = op->results[0].type->dims[d] / m->n;
  return m->part > 0 && m->out > 0;
}

/* ---- slices ---- */

static bool slice_moves(Spmd *s, const Op *op, int d, Move *m) {
  const int64_t *start, *strides;
  op_ints(op, "start_indices", &start);
  if (op_ints(op, "strides", &strides) > d && strides[d] != 1) return false;
  m->start = start[d];
  return same_cut(s, op, d, m) && m->part % m->out == 0 && m->start % m->out == 0 &&
         m->part / m->out <= MOST_PIECES;
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

bool spmd_slice_op(Spmd *s, const Op *op) {
  const Type *x = op->operands[0]->type, *r = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  const int64_t *start, *limit, *strides;
  int n = op_ints(op, "strides", &strides);
  op_ints(op, "start_indices", &start);
  op_ints(op, "limit_indices", &limit);
  Layout has = {0};
  Move moves[MAX_RANK];
  bool moved[MAX_RANK] = {false}, any = false;
  int64_t lo[MAX_RANK], hi[MAX_RANK], step[MAX_RANK];
  for (int d = 0; d < x->rank; d++) {
    bool full = x->dims[d] == r->dims[d];
    any |= moved[d] = !full && slice_moves(s, op, d, &moves[d]);
    if (full || moved[d]) has.d[d] = want->d[d];
    lo[d] = full || moved[d] ? 0 : start[d];
    hi[d] = full || moved[d] ? x->dims[d] / spmd_dim_parts(s, &has.d[d]) : limit[d];
    step[d] = d < n ? strides[d] : 1;
  }
  if (!any) return false;
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *v = b_slice(&b, spmd_operand(s, op->operands[0], &has), lo, hi, step);
  for (int d = 0; d < x->rank; d++)
    if (moved[d]) v = moved_slice(s, v, d, &moves[d]);
  spmd_set_result(s, op, 0, v, &has);
  return true;
}

/* ---- pads ---- */

static bool pad_moves(Spmd *s, const Op *op, int d, Move *m) {
  const int64_t *lo, *hi, *in;
  op_ints(op, "edge_padding_low", &lo);
  op_ints(op, "edge_padding_high", &hi);
  op_ints(op, "interior_padding", &in);
  m->start = -lo[d];
  return !in[d] && lo[d] >= 0 && hi[d] >= 0 && same_cut(s, op, d, m) && m->out % m->part == 0 &&
         lo[d] % m->part == 0 && m->out / m->part <= MOST_PIECES;
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

bool spmd_pad_op(Spmd *s, const Op *op) {
  const Type *x = op->operands[0]->type, *r = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  const int64_t *lo, *hi, *in;
  op_ints(op, "edge_padding_low", &lo);
  op_ints(op, "edge_padding_high", &hi);
  op_ints(op, "interior_padding", &in);
  Layout has = {0}, none = {0};
  Move moves[MAX_RANK];
  bool moved[MAX_RANK] = {false}, any = false;
  int64_t low[MAX_RANK], high[MAX_RANK], inner[MAX_RANK];
  for (int d = 0; d < x->rank; d++) {
    bool plain = x->dims[d] == r->dims[d] && !lo[d] && !hi[d] && !in[d];
    any |= moved[d] = !plain && pad_moves(s, op, d, &moves[d]);
    if (plain || moved[d]) has.d[d] = want->d[d];
    low[d] = moved[d] ? 0 : lo[d];
    high[d] = moved[d] ? 0 : hi[d];
    inner[d] = in[d];
  }
  if (!any) return false;
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *fill = spmd_operand(s, op->operands[1], &none);
  Value *v = spmd_operand(s, op->operands[0], &has);
  for (int d = 0; d < x->rank; d++)
    if (moved[d]) v = moved_pad(s, v, d, &moves[d], fill);
  v = b_pad(&b, v, fill, low, high, inner);
  spmd_set_result(s, op, 0, v, &has);
  return true;
}
