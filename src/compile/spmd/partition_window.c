/* What moves along cut dimensions: a device fetches what windows need of its neighbours' parts; what is turned round
 * comes from the other end. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"
#include "compile/spmd/window.h"

/* What windows need of the input along a side that is cut by axes; false: of too many devices. */
static bool side_stretch(Spmd *s, const Side *w, Cut cut, const Dim *axes, Halo *h, Stretch *out) {
  int64_t n = spmd_dim_parts(s, axes);
  if (!window_halo(w, cut, n, h)) return false;
  *out = (Stretch){
      .n = n, .part = w->in / n, .step = h->step, .begin = h->begin, .len = h->len, .end = w->in};
  return spmd_stretch_fetches(out) < w->in - w->in / n;
}

/* The input, cut as `need`, with what windows reach over on each side; padding: pairs by side, as they are for a part. */
static Value *with_halos(Spmd *s, Value *x, const Side *sides, int n, const Layout *need,
                         const Cut *cuts, Value *fill, int64_t *padding) {
  for (int i = 0; i < n; i++) {
    const Dim *axes = &need->d[sides[i].in_dim];
    Halo h;
    Stretch w;
    if (!axes->n || !side_stretch(s, &sides[i], cuts[i], axes, &h, &w)) continue;
    x = spmd_stretch(s, x, sides[i].in_dim, axes, &w, fill);
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
    Stretch f;
    if (cut->n && side_stretch(s, w, CUT_OUTPUTS, cut, &h, &f)) p->from[w->out_dim][0] = w->in_dim;
    else if (side_stretch(s, w, CUT_TAPS, a->n >= b->n ? a : b, &h, &f))
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

/* A reduction over windows of x: of a cut that its windows move along. padding, inner: what goes around and between elements. */
typedef struct Pool {
  Value *x;
  Side sides[MAX_RANK];
  int64_t padding[2 * MAX_RANK], inner[MAX_RANK];
  bool spread; /* x was spread out and padded before, which is done to a part of it */
} Pool;

static void pool_of(const Op *op, bool before_pad, Pool *p) {
  const Op *pad = NULL;
  const int64_t *given, *lo = NULL, *hi = NULL;
  int n_given = op_ints(op, "padding", &given), n = window_sides(op, p->sides);
  p->x = before_pad ? window_before_pad(op, p->sides, &pad) : NULL;
  p->spread = p->x != NULL;
  if (!p->x) p->x = op->operands[0];
  if (p->spread) op_ints(pad, "edge_padding_low", &lo), op_ints(pad, "edge_padding_high", &hi);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < 2; k++)
      p->padding[2 * i + k] =
          (2 * i + k < n_given ? given[2 * i + k] : 0) + (p->spread ? (k ? hi : lo)[i] : 0);
    p->inner[i] = p->spread ? p->sides[i].dil_in - 1 : 0;
  }
}

/* Dimensions that cannot stay cut are made whole in `has`; any: does a window move along one that can? */
static bool pool_stays_cut(Spmd *s, const Pool *p, int n, Layout *has) {
  bool any = false;
  for (int i = 0; i < n; i++) {
    const Side *side = &p->sides[i];
    Halo h;
    Stretch w;
    if (!has->d[i].n) continue;
    if (!side_stretch(s, side, CUT_OUTPUTS, &has->d[i], &h, &w)) has->d[i].n = 0;
    any |= has->d[i].n && (w.begin || w.step != w.len || p->padding[2 * i] ||
                           p->padding[2 * i + 1] || side->stride > 1 || p->spread);
  }
  return any;
}

bool spmd_pool_op(Spmd *s, const Op *op) {
  if (op->n_operands != 2 || op->n_results != 1) return false;
  Pool p;
  Cut cuts[MAX_RANK] = {CUT_OUTPUTS};
  int n = op->operands[0]->type->rank;
  Layout want = *spmd_layout_of(s, &op->results[0]), none = {0}, has;
  want.sum.n = 0;
  pool_of(op, true, &p);
  has = want;
  bool any = pool_stays_cut(s, &p, n, &has);
  if (!any && p.spread) {
    pool_of(op, false, &p);
    has = want;
    any = pool_stays_cut(s, &p, n, &has);
  }
  if (!any) return false;
  Value *in[2] = {spmd_operand(s, p.x, &has), spmd_operand(s, op->operands[1], &none)};
  in[0] = with_halos(s, in[0], p.sides, n, &has, cuts, in[1], p.padding);
  if (p.spread) {
    Build b = {.m = s->m, .r = s->at, .loc = s->loc};
    int64_t low[MAX_RANK], high[MAX_RANK];
    for (int i = 0; i < n; i++) low[i] = p.padding[2 * i], high[i] = p.padding[2 * i + 1];
    in[0] = b_pad(&b, in[0], in[1], low, high, p.inner);
    memset(p.padding, 0, sizeof p.padding);
  }
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  Op *c = spmd_same_op(s, op, in, &out);
  set_padding(s, c, n, p.padding);
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
