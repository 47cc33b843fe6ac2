/* What moves along cut dimensions: a device fetches what windows need of its neighbours' parts; what is turned round
 * comes from the other end. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"
#include "compile/spmd/window.h"

/* Rows at one end of x go to the next device along the axes (back: to the one before); who has no such neighbour
 * gets `fill`, NULL: zeros. */
static Value *from_neighbour(Spmd *s, Value *x, const Dim *axes, bool back, Value *fill) {
  int64_t parts = spmd_dim_parts(s, axes), *from = xmalloc(sizeof *from * (size_t)parts);
  for (int64_t i = 0; i < parts; i++) from[i] = back ? i + 1 : i - 1;
  Value *got = spmd_fetch(s, x, axes, from);
  free(from);
  if (!fill) return got;
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t end = back ? parts - 1 : 0;
  Value *at_end = b_compare(&b, "EQ", spmd_own_place(s, axes, 1), b_scalar_i64(&b, DT_I64, end));
  at_end = b_bcast_scalar(&b, at_end, got->type);
  return b_select(&b, at_end, b_bcast_scalar(&b, fill, got->type), got);
}

static Value *with_halo(Spmd *s, Value *x, int dim, const Dim *axes, const Halo *h, Value *fill) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t size = x->type->dims[dim];
  Value *parts[3];
  int n = 0;
  if (h->left) {
    Value *end = b_slice_dim(&b, x, dim, size - h->left, size);
    parts[n++] = from_neighbour(s, end, axes, false, fill);
  }
  parts[n++] = x;
  if (h->right) {
    Value *start = b_slice_dim(&b, x, dim, 0, h->right);
    parts[n++] = from_neighbour(s, start, axes, true, fill);
  }
  return n > 1 ? b_concat(&b, n, parts, dim) : x;
}

/* The input, cut as `need`, with what windows reach over on each side; padding: pairs by side, as they are for a part. */
static Value *with_halos(Spmd *s, Value *x, const Side *sides, int n, const Layout *need,
                         const Cut *cuts, Value *fill, int64_t *padding) {
  for (int i = 0; i < n; i++) {
    const Dim *axes = &need->d[sides[i].in_dim];
    Halo h;
    if (!axes->n || !window_halo(&sides[i], cuts[i], spmd_dim_parts(s, axes), &h)) continue;
    x = with_halo(s, x, sides[i].in_dim, axes, &h, fill);
    if (fill && h.high < 0 && sides[i].dil_in == 1) { /* no window reaches the end of a part */
      Build b = {.m = s->m, .r = s->at, .loc = s->loc};
      int64_t size = x->type->dims[sides[i].in_dim] + h.high;
      x = b_slice_dim(&b, x, sides[i].in_dim, 0, size);
      h.high = 0;
    }
    padding[2 * i] = h.low;
    padding[2 * i + 1] = h.high;
  }
  return x;
}

static void set_padding(Spmd *s, Op *op, int n, const int64_t *padding) {
  op_set_attr(s->m, op, STR("padding"), attr_tensor_i64(s->m, 2, (int64_t[]){n, 2}, padding));
}

/* ---- convolutions ---- */

void spmd_conv_sides(Spmd *s, const Op *op, Product *p) {
  Side sides[MAX_RANK];
  const Layout *want = spmd_layout_of(s, &op->results[0]), *x = spmd_layout_of(s, op->operands[0]),
               *k = spmd_layout_of(s, op->operands[1]);
  for (int i = 0, n = window_sides(op, sides); i < n; i++) {
    const Side *w = &sides[i];
    const Dim *cut = &want->d[w->out_dim], *a = &x->d[w->in_dim], *b = &k->d[w->taps_dim];
    Halo h;
    if (cut->n && window_halo(w, CUT_OUTPUTS, spmd_dim_parts(s, cut), &h))
      p->from[w->out_dim][0] = w->in_dim;
    else if (window_halo(w, CUT_TAPS, spmd_dim_parts(s, a->n >= b->n ? a : b), &h))
      p->pairs[p->n_pairs][0] = w->in_dim, p->pairs[p->n_pairs++][1] = w->taps_dim;
  }
}

Value *spmd_conv_input(Spmd *s, const Op *op, Value *x, const Layout need[2], int64_t *padding) {
  Side sides[MAX_RANK];
  Cut cuts[MAX_RANK];
  int n = window_sides(op, sides);
  ConvDims d = b_conv_dims(op);
  for (int i = 0; i < n; i++) {
    cuts[i] = need[1].d[sides[i].taps_dim].n ? CUT_TAPS : CUT_OUTPUTS;
    padding[2 * i] = d.padding[2 * i];
    padding[2 * i + 1] = d.padding[2 * i + 1];
  }
  return with_halos(s, x, sides, n, &need[0], cuts, NULL, padding);
}

void spmd_set_padding(Spmd *s, Op *op, const int64_t *padding) {
  set_padding(s, op, op->operands[0]->type->rank - 2, padding);
}

/* ---- reductions over windows ---- */

bool spmd_pool_op(Spmd *s, const Op *op) {
  Side sides[MAX_RANK];
  Cut cuts[MAX_RANK] = {CUT_OUTPUTS};
  int n = window_sides(op, sides);
  int64_t padding[2 * MAX_RANK];
  const int64_t *given;
  int n_given = op_ints(op, "padding", &given);
  if (op->n_operands != 2 || op->n_results != 1) return false;
  Layout has = *spmd_layout_of(s, &op->results[0]), none = {0};
  has.sum.n = 0;
  bool any = false;
  for (int i = 0; i < n; i++) {
    Halo h;
    for (int k = 0; k < 2; k++) padding[2 * i + k] = 2 * i + k < n_given ? given[2 * i + k] : 0;
    bool cut = has.d[i].n > 0;
    cut = cut && window_halo(&sides[i], CUT_OUTPUTS, spmd_dim_parts(s, &has.d[i]), &h);
    if (!cut || (h.high < 0 && sides[i].dil_in > 1)) has.d[i].n = 0;
    any |= has.d[i].n &&
           (h.left || h.right || padding[2 * i] || padding[2 * i + 1] || sides[i].stride > 1);
  }
  if (!any) return false;
  Value *in[2] = {spmd_operand(s, op->operands[0], &has), spmd_operand(s, op->operands[1], &none)};
  in[0] = with_halos(s, in[0], sides, n, &has, cuts, in[1], padding);
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  Op *c = spmd_same_op(s, op, in, &out);
  set_padding(s, c, n, padding);
  spmd_set_result(s, op, 0, &c->results[0], &has);
  return true;
}

/* ---- turned round ---- */

static Value *mirrored(Spmd *s, Value *x, const Dim *axes) {
  int64_t parts = spmd_dim_parts(s, axes), *from = xmalloc(sizeof *from * (size_t)parts);
  for (int64_t i = 0; i < parts; i++) from[i] = parts - 1 - i;
  x = spmd_fetch(s, x, axes, from);
  free(from);
  return x;
}

void spmd_reverse_op(Spmd *s, const Op *op) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  Layout has = *spmd_layout_of(s, &op->results[0]);
  has.sum.n = 0;
  Value *x = spmd_operand(s, op->operands[0], &has);
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  x = &spmd_same_op(s, op, &x, &out)->results[0];
  for (int i = 0; i < n; i++)
    if (has.d[dims[i]].n) x = mirrored(s, x, &has.d[dims[i]]);
  spmd_set_result(s, op, 0, x, &has);
}
