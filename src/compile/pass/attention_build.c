/* weft.attention built of what attention.c found: operands in the order of its dimensions, results back in the program's. */
#include "compile/pass/attention.h"

/* The order of dimensions: what keys have as well, the first and the others; groups of queries, queries, keys, others. */
typedef enum AxisClass { BATCH, HEAD, GROUP, QUERY, KEY, OWN, CLASSES } AxisClass;

static AxisClass class_of(const Attended *a, int axis) {
  if (axis < 0) return OWN;
  if (axis == a->columns) return KEY;
  if (axis == a->rows) return QUERY;
  if (a->queries >> axis & 1) return GROUP;
  return a->batch & ((1u << axis) - 1) ? HEAD : BATCH;
}

/* Axes of the scores, class by class; returns how many. */
static int axes_in_order(const Attended *a, int *order) {
  int n = 0;
  for (AxisClass c = BATCH; c < OWN; c++)
    for (int i = 0; i < a->s->type->rank; i++)
      if (class_of(a, i) == c) order[n++] = i;
  return n;
}

static bool has_class(const Attended *a, const Placed *x, AxisClass c) {
  for (int i = 0; i < b_rank(x->v); i++)
    if (b_dim(x->v, i) > 1 && class_of(a, x->axes.of[i]) == c) return true;
  return false;
}

static int place_of(const Placed *x, int axis) {
  for (int i = 0; i < b_rank(x->v); i++)
    if (x->axes.of[i] == axis) return i;
  return -1;
}

/* x without dimensions of one place that are no axes. */
static Placed without_ones(Build *b, const Placed *x) {
  int64_t dims[B_MAX_RANK];
  Placed y;
  int n = 0;
  memset(y.axes.of, -1, sizeof y.axes.of);
  for (int i = 0; i < b_rank(x->v); i++) {
    if (x->axes.of[i] < 0 && b_dim(x->v, i) == 1) continue;
    y.axes.of[n] = x->axes.of[i];
    dims[n++] = b_dim(x->v, i);
  }
  y.v = b_reshape(b, x->v, n, dims);
  return y;
}

/* x with one dimension for each class of `wanted`, of one place where it has no such axis; its own comes last. */
static Value *in_order(Attended *a, Build *b, const Placed *from, int n, const AxisClass *wanted,
                       bool whole) {
  Placed x = whole ? *from : without_ones(b, from);
  int order[MOST_AXES], map[B_MAX_RANK] = {0}, rank = 0, all = axes_in_order(a, order);
  int64_t dims[B_MAX_RANK], joined[CLASSES];
  for (int c = 0; c < n; c++) {
    joined[c] = 1;
    bool there = whole || wanted[c] == OWN || has_class(a, &x, wanted[c]);
    for (int k = 0; there && wanted[c] != OWN && k < all; k++) {
      if (class_of(a, order[k]) != wanted[c]) continue;
      int i = place_of(&x, order[k]);
      dims[rank] = a->s->type->dims[order[k]];
      joined[c] *= dims[rank];
      if (i >= 0) map[i] = rank;
      rank++;
    }
    for (int i = 0; wanted[c] == OWN && i < b_rank(x.v); i++)
      if (x.axes.of[i] < 0) joined[c] *= dims[rank] = b_dim(x.v, i), map[i] = rank++;
  }
  return b_reshape(b, b_bcast(b, x.v, rank, dims, map), n, joined);
}

/* The other way: x of these classes and an own dimension, as the program has it. */
static Value *as_placed(Attended *a, Build *b, Value *x, int n, const AxisClass *classes,
                        const Type *type, const Axes *axes) {
  int order[MOST_AXES], perm[B_MAX_RANK], rank = 0, all = axes_in_order(a, order);
  int64_t dims[B_MAX_RANK];
  for (int c = 0; c < n; c++)
    for (int k = 0; k < all; k++)
      for (int i = 0; i < type->rank; i++)
        if (class_of(a, order[k]) == classes[c] && axes->of[i] == order[k])
          dims[rank] = type->dims[i], perm[i] = rank++;
  for (int i = 0; i < type->rank; i++)
    if (axes->of[i] < 0) dims[rank] = type->dims[i], perm[i] = rank++;
  return b_transpose(b, b_reshape(b, x, rank, dims), perm);
}

static const AxisClass of_queries[] = {BATCH, HEAD, GROUP, QUERY, OWN},
                       of_keys[] = {BATCH, HEAD, KEY, OWN},
                       of_scores[] = {BATCH, HEAD, GROUP, QUERY, KEY};

static NamedAttr number(Build *b, const char *name, double x) {
  return (NamedAttr){str_from(name), attr_float(b->m, DT_F32, x)};
}

static int attributes(const Attended *a, Build *b, NamedAttr *to) {
  int n = 0;
  if (a->band.lo > -FAR || a->band.hi < FAR)
    to[n++] = b_ints(b, "band", 2, (int64_t[]){a->band.lo, a->band.hi});
  if (a->bias.v) to[n++] = b_bool(b, "biased", true);
  to[n++] = number(b, "fill", a->fill);
  if (a->mask.v) to[n++] = b_bool(b, "masked", true);
  to[n++] = number(b, "scale", a->scale);
  return n;
}

/* What both operations are given. */
static int operands(Attended *a, Build *b, Value **in) {
  int n = 3;
  in[0] = in_order(a, b, &a->q, 5, of_queries, true);
  in[1] = in_order(a, b, &a->k, 4, of_keys, true);
  in[2] = in_order(a, b, &a->v, 4, of_keys, true);
  if (a->bias.v) in[n++] = in_order(a, b, &a->bias, 5, of_scores, false);
  if (!a->mask.v) return n;
  in[n] = in_order(a, b, &a->mask, 5, of_scores, false);
  if (a->inverted) in[n] = b_not(b, in[n]);
  return n + 1;
}

static void replace(Attended *a, Build *b, AttentionResult which, Value *made) {
  const Op *op = a->results[which];
  if (!op) return;
  const ScoreInfo *lhs = scores_info(a->s, op->operands[0]);
  const int side = !(lhs && lhs->kind == SCORE_MEMBER);
  const Axes member = scores_info(a->s, op->operands[side])->axes;
  const bool queries = which == ATTENTION_OUT || which == ATTENTION_DQ;
  Axes of, result;
  unsigned over;
  axes_of_product(op, side, &member, &of, &result, &over);
  Value *to =
      as_placed(a, b, made, queries ? 4 : 3, queries ? of_queries : of_keys, op_type(op), &result);
  value_replace_all(a->s->r->func, (Value *)(uintptr_t)op->results, to);
}

void attention_build(Attended *a) {
  Op *end = a->s->r->last;
  Build b = {a->s->m, a->s->r, a->scores->loc};
  Value *in[8];
  NamedAttr attrs[5];
  const int n = operands(a, &b, in), n_attrs = attributes(a, &b, attrs);
  const int64_t *q = in[0]->type->dims, e = b_dim(in[2], 3);
  Type *made[] = {b_type(&b, b_dtype(in[2]), 5, (int64_t[]){q[0], q[1], q[2], q[3], e}),
                  b_type(&b, DT_F32, 5, (int64_t[]){q[0], q[1], q[2], 2, q[3]})};
  Op *op = b_op(&b, OP_ATTENTION, n, in, 2, made, n_attrs, attrs, 0, NULL), *grad = NULL;
  if (a->grad.v) {
    Type *types[] = {in[0]->type, in[1]->type, in[2]->type};
    in[n] = &op->results[0];
    in[n + 1] = &op->results[1];
    in[n + 2] = in_order(a, &b, &a->grad, 5, of_queries, true);
    grad = b_op(&b, OP_ATTENTION_GRAD, n + 3, in, 3, types, n_attrs, attrs, 0, NULL);
  }
  replace(a, &b, ATTENTION_OUT, &op->results[0]);
  for (int i = 0; i < 3 && grad; i++) replace(a, &b, ATTENTION_DQ + i, &grad->results[i]);
  compile_move_built(end, end);
  scores_sort_ops(a->s->r);
}
