/* pass_batch_norm: batch_norm_training, _inference and _grad as sums and element-wise arithmetic, which fuse
 * with their neighbours.
 *
 * A channel's variance is taken from the sums of its elements and of their squares, in one pass over memory. Both are of
 * differences to the channel's first element, so that nothing is lost where the mean is far from zero:
 *
 *   mean = c + sum(x - c) / n        variance = sum((x - c)^2) / n - (mean - c)^2
 *
 * Floats narrower than f32 are computed in f32. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

typedef struct Norm {
  Build *b;
  const Type *type; /* of the operand */
  int feature;
  int64_t count; /* elements of a channel */
  DType t;       /* what is computed in */
  double epsilon;
} Norm;

static Value *wide(Norm *n, Value *v) { return b_convert(n->b, v, n->t); }

static Value *along(Norm *n, Value *channels) {
  return b_bcast_like(n->b, channels, n->type, &n->feature);
}

static Value *sum(Norm *n, Value *x) {
  int64_t dims[B_MAX_RANK];
  int k = 0;
  for (int i = 0; i < n->type->rank; i++)
    if (i != n->feature) dims[k++] = i;
  return b_reduce(n->b, OP_ADD, x, k, dims);
}

/* Of each channel; 0 where it is not finite, which would make all differences so. */
static Value *first_elements(Norm *n, Value *x) {
  Build *b = n->b;
  int64_t start[B_MAX_RANK] = {0}, limit[B_MAX_RANK];
  for (int i = 0; i < n->type->rank; i++) limit[i] = i == n->feature ? n->type->dims[i] : 1;
  Value *c = b_reshape(b, b_slice(b, x, start, limit, NULL), 1, &n->type->dims[n->feature]);
  Value *zero = b_full(b, c->type, 0);
  return b_select(b, b_compare(b, "EQ", b_sub(b, c, c), zero), c, zero);
}

/* 1 / sqrt(variance + epsilon) */
static Value *scale_of(Norm *n, Value *variance) {
  return b_rsqrt(n->b, b_adds(n->b, variance, n->epsilon));
}

static Value *normalised(Norm *n, Value *x, Value *mean, Value *variance, Value *gain,
                         Value *offset) {
  Build *b = n->b;
  Value *k = b_mul(b, scale_of(n, variance), wide(n, gain));
  Value *y = b_mul(b, b_sub(b, x, along(n, mean)), along(n, k));
  return b_add(b, y, along(n, wide(n, offset)));
}

static void inference(Norm *n, const Op *op, Value **out) {
  Value *const *in = op->operands;
  out[0] = normalised(n, wide(n, in[0]), wide(n, in[3]), wide(n, in[4]), in[1], in[2]);
}

static void training(Norm *n, const Op *op, Value **out) {
  Build *b = n->b;
  Value *x = wide(n, op->operands[0]), *c = first_elements(n, x), *d = b_sub(b, x, along(n, c));
  double share = 1 / (double)n->count;
  Value *moved = b_muls(b, sum(n, d), share), *squares = b_muls(b, sum(n, b_mul(b, d, d)), share);
  Value *variance = b_sub(b, squares, b_mul(b, moved, moved));
  out[1] = b_add(b, c, moved);
  out[2] = b_max(b, variance, b_full(b, variance->type, 0));
  out[0] = normalised(n, x, out[1], out[2], op->operands[1], op->operands[2]);
}

static void gradient(Norm *n, const Op *op, Value **out) {
  Build *b = n->b;
  Value *x = wide(n, op->operands[0]), *g = wide(n, op->operands[4]);
  Value *r = scale_of(n, wide(n, op->operands[3]));
  Value *d = b_sub(b, x, along(n, wide(n, op->operands[2])));
  double share = 1 / (double)n->count;
  out[2] = sum(n, g);
  out[1] = b_mul(b, sum(n, b_mul(b, g, d)), r);
  Value *slope = b_muls(b, b_mul(b, out[1], r), share);
  Value *rest = b_add(b, along(n, b_muls(b, out[2], share)), b_mul(b, d, along(n, slope)));
  out[0] = b_mul(b, b_sub(b, g, rest), along(n, b_mul(b, wide(n, op->operands[1]), r)));
}

static void (*rule_of(const Op *op))(Norm *n, const Op *op, Value **out) {
  switch (op->kind) {
  case OP_BATCH_NORM_INFERENCE: return inference;
  case OP_BATCH_NORM_TRAINING: return training;
  case OP_BATCH_NORM_GRAD: return gradient;
  default: return NULL;
  }
}

/* false: it stays, as one of no elements does. */
static bool expand(Build *b, const Op *op, Value **out) {
  void (*rule)(Norm * n, const Op *op, Value **out) = rule_of(op);
  if (!rule) return false;
  const Type *t = op->operands[0]->type;
  if (!type_is_static(t) || t->quant || t->rank > B_MAX_RANK || !type_count(t)) return false;
  int feature = (int)op_int(op, "feature_index", 0);
  const Attr *epsilon = op_attr(op, "epsilon");
  DType wide = t->dtype == DT_F64 ? DT_F64 : DT_F32;
  Norm n = {.b = b, .type = t, .feature = feature, .t = wide, .epsilon = epsilon ? epsilon->f : 0};
  n.count = type_count(t) / t->dims[feature];
  rule(&n, op, out);
  for (int i = 0; i < op->n_results; i++) out[i] = b_convert(b, out[i], op->results[i].type->dtype);
  return true;
}

static void walk(Module *m, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i]);
    Value *out[3];
    Build b = {.m = m, .r = r, .loc = op->loc};
    Op *end = r->last;
    if (!expand(&b, op, out)) continue;
    compile_move_built(end, op);
    for (int i = 0; i < op->n_results; i++) value_replace_all(r->func, &op->results[i], out[i]);
    op_remove(op);
  }
}

Err *pass_batch_norm(Module *m) {
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) walk(m, m->funcs.v[i]->body);
  return NULL;
}
