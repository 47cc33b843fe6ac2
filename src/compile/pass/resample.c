/* pass_resample: products with matrices of weights that depend on a distance and are zero from some
 * distance on, as images are resized by them, become weft.resample, which reads only what has a
 * weight, and needs no dimension at an end of the operand:
 *
 *   dot(w[i, j], x[n, i, c]) [j, n, c]   =   transpose(resample(x, w along 1))
 *
 * One after the other they are one operation, and transposes around them cancel. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MOST_OPS 200    /* that a matrix is computed by */
#define MOST_MATRICES 3 /* along so many dimensions in one operation */

/* ---- which matrices ---- */

static bool is_zero(const Value *v) {
  while (v->def && (v->def->kind == OP_CONVERT || v->def->kind == OP_BROADCAST_IN_DIM))
    v = v->def->operands[0];
  const void *p = value_splat(v);
  return p && elem_get_f64(v->type->dtype, p) == 0;
}

/* Has what v is computed by a zero for some elements in its last steps? */
static bool is_cut(const Value *v, int depth) {
  const Op *op = v->def;
  if (!op || depth == 8) return false;
  switch (op->kind) {
  case OP_CONVERT:
  case OP_TRANSPOSE: return is_cut(op->operands[0], depth + 1);
  case OP_DIVIDE: return is_cut(op->operands[0], depth + 1);
  case OP_MULTIPLY: return is_cut(op->operands[0], depth + 1) || is_cut(op->operands[1], depth + 1);
  case OP_MAXIMUM: return is_zero(op->operands[0]) || is_zero(op->operands[1]);
  case OP_SELECT: return is_zero(op->operands[1]) || is_zero(op->operands[2]);
  default: return false;
  }
}

typedef struct Look {
  Map *seen;
  int64_t small; /* elements: what has no more is not looked into */
  int ops;
  bool distance;
} Look;

static bool is_broadcast(const Value *v) { return v->def && v->def->kind == OP_BROADCAST_IN_DIM; }

/* Is v made of small values, element by element? Notes an absolute difference of two of them. */
static bool look_into(Look *l, const Value *v) {
  const Op *op = v->def;
  Str key = {(const char *)&v, sizeof v};
  if (type_count(v->type) <= l->small || map_get(l->seen, key)) return true;
  if (!op || ++l->ops > MOST_OPS || op->n_regions) return false;
  map_set(l->seen, key, (void *)op);
  OpClass c = op_info[op->kind].cls;
  if (c != OC_CONSTANT && c != OC_EWISE && op->kind != OP_BROADCAST_IN_DIM &&
      op->kind != OP_TRANSPOSE && op->kind != OP_RESHAPE)
    return false;
  const Op *from = op->kind == OP_ABS ? op->operands[0]->def : NULL;
  l->distance |= from && from->kind == OP_SUBTRACT && is_broadcast(from->operands[0]) &&
                 is_broadcast(from->operands[1]);
  for (int i = 0; i < op->n_operands; i++)
    if (!look_into(l, op->operands[i])) return false;
  return true;
}

/* [places, places] or [batch, places, places]. */
static bool is_weights(const Value *v, bool each) {
  const Type *t = v->type;
  if (t->rank != 2 + each || !is_cut(v, 0)) return false;
  int64_t batch = each ? t->dims[0] : 1;
  Look l = {.seen = map_new(), .small = batch * MAX(t->dims[each], t->dims[each + 1])};
  bool ok = look_into(&l, v);
  map_free(l.seen);
  return ok && l.distance;
}

/* ---- products ---- */

/* The value below transposes and roundings: its dimension perm[i] is dimension i. */
static Value *below(Value *v, int *perm) {
  for (int i = 0; i < v->type->rank; i++) perm[i] = i;
  for (const Op *op = v->def; op; op = v->def) {
    const int64_t *p;
    if (op->kind == OP_TRANSPOSE) {
      op_ints(op, "permutation", &p);
      for (int i = 0; i < v->type->rank; i++) perm[i] = (int)p[perm[i]];
    } else if (op->kind != OP_CONVERT || op->operands[0]->type->dtype != DT_F32 ||
               !op->operands[0]->def || op->operands[0]->def->kind != OP_RESAMPLE) {
      break;
    }
    v = op->operands[0];
  }
  return v;
}

/* x with one more matrix, along its dimension d; together with those that x was just made by. */
static Value *resampled(Build *b, Value *x, int d, Value *w) {
  Value *in[1 + MOST_MATRICES] = {x, w};
  int64_t dims[MOST_MATRICES] = {d}, out[B_MAX_RANK];
  int n = 1;
  const int64_t *had;
  const Op *before = x->def && x->def->kind == OP_RESAMPLE ? x->def : NULL;
  int n_had = before ? op_ints(before, "dims", &had) : MOST_MATRICES;
  for (int i = 0; i < n_had && n_had < MOST_MATRICES; i++)
    if (had[i] == d) n_had = MOST_MATRICES;
  if (n_had < MOST_MATRICES) {
    for (int i = 0; i < n_had; i++) dims[i] = had[i], in[i + 1] = before->operands[i + 1];
    in[0] = before->operands[0];
    dims[n_had] = d;
    in[n_had + 1] = w;
    n = n_had + 1;
  }
  for (int i = 0; i < b_rank(x); i++) out[i] = b_dim(x, i);
  out[d] = b_dim(w, b_rank(w) - 1);
  Type *t = b_type(b, DT_F32, b_rank(x), out);
  NamedAttr a = b_ints(b, "dims", n, dims);
  return &b_op(b, OP_RESAMPLE, n + 1, in, 1, &t, 1, &a, 0, NULL)->results[0];
}

static bool fits(const Type *t) {
  return !t->quant && type_is_static(t) && t->rank <= B_MAX_RANK && type_count(t) > 0 &&
         (t->dtype == DT_F32 || t->dtype == DT_BF16 || t->dtype == DT_F16);
}

static Value *rewritten(Build *b, const Op *op) {
  const Type *o = op_type(op);
  if (!fits(op->operands[0]->type) || !fits(op->operands[1]->type) || !fits(o)) return NULL;
  DotDims d = b_dot_dims(op);
  bool each = d.n_batch == 1 && d.lhs_batch[0] == 0 && d.rhs_batch[0] == 0;
  if (d.n_contract != 1 || (d.n_batch && !each)) return NULL;
  int side = 0; /* of the matrix */
  while (side < 2 && !is_weights(op->operands[side], each)) side++;
  if (side == 2) return NULL;
  Value *w = op->operands[side], *x = op->operands[!side];
  int sum_w = (int)(side ? d.rhs_contract : d.lhs_contract)[0], rank = b_rank(x),
      sum_x = (int)(side ? d.lhs_contract : d.rhs_contract)[0];
  int perm[B_MAX_RANK], of_x[B_MAX_RANK], n = 0;
  Value *from = below(x, of_x);
  if (each && of_x[0] != 0) return NULL;
  if (sum_w == each + 1) {
    int turn[3] = {0, 1, 2};
    turn[each] = each + 1, turn[each + 1] = each;
    w = b_transpose(b, w, turn);
  }
  /* the result's dimensions: the batch, those of the first operand, those of the second */
  if (each) perm[n++] = 0;
  if (side == 0) perm[n++] = of_x[sum_x];
  for (int i = each; i < rank; i++)
    if (i != sum_x) perm[n++] = of_x[i];
  if (side == 1) perm[n++] = of_x[sum_x];
  from = b_convert(b, from, DT_F32);
  Value *y = resampled(b, from, of_x[sum_x], b_convert(b, w, DT_F32));
  return b_transpose(b, b_convert(b, y, o->dtype), perm);
}

Err *pass_resample(Module *m) {
  compile_rewrite(m, OP_DOT_GENERAL, rewritten);
  return NULL;
}
