/* Reductions on registers: neutral elements, accumulators, vectors to scalars. The body is emitted
 * on vectors as on scalars; sums and products of bf16 and f16 stay in f32 until the end. */
#include <math.h>

#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

/* ---- reductions ---- */

/* What makes result k of the two that come in its place, where nothing else does; else OP_UNKNOWN. */
static OpKind binary_of(const DagReduce *r, int k) {
  const Region *body = r->op->regions[0];
  const Op *op = body->last->operands[k]->def;
  const Value *a = body->args[k], *b = body->args[r->n + k];
  if (!op || op->n_operands != 2) return OP_UNKNOWN;
  const Value *x = op->operands[0], *y = op->operands[1];
  return (x == a && y == b) || (x == b && y == a) ? op->kind : OP_UNKNOWN;
}

static bool identity_of(OpKind binary, DType t, double *f, int64_t *i) {
  DTypeClass c = dtype_class(t);
  int bits = dtype_bits(t);
  int64_t low = c == DC_SINT ? (bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1))) : 0;
  int64_t high = c == DC_SINT ? (bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1)
                              : (bits == 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1));
  switch (binary) {
  case OP_ADD: *f = -0.0, *i = 0; return true;
  case OP_MULTIPLY: *f = 1, *i = 1; return true;
  case OP_MAXIMUM: *f = -INFINITY, *i = c == DC_BOOL ? 0 : low; return true;
  case OP_MINIMUM: *f = INFINITY, *i = c == DC_BOOL ? 1 : high; return true;
  case OP_AND: *i = c == DC_BOOL ? 1 : -1; return c != DC_FLOAT;
  case OP_OR:
  case OP_XOR: *i = 0; return c != DC_FLOAT;
  default: return false;
  }
}

bool sum_identity(const DagReduce *r, int k, double *f, int64_t *i) {
  *f = 0, *i = 0;
  return identity_of(binary_of(r, k), shape_sum_type(r, k), f, i);
}

/* A neutral element at the current lanes; the builder stands where it is wanted. init: the initial
 * value, a scalar. */
V sum_neutral(Gen *g, const DagReduce *r, int k, V init) {
  DType t = shape_sum_type(r, k);
  double f;
  int64_t i;
  if (sum_identity(r, k, &f, &i)) {
    if (dtype_is_float(t)) return k_splat(g, LLVMConstReal(reg_type(g, t, 0), f), g->lanes);
    return k_int(g, t, i);
  }
  return k_splat(g, init, g->lanes);
}

/* out = body(a, b), at the current lanes. Sums and products of bf16 and f16 stay in f32. */
void sum_combine(Gen *g, const DagReduce *r, V *a, V *b, V *out) {
  DType t = shape_sum_type(r, 0);
  if (r->n == 1 && (t == DT_BF16 || t == DT_F16) &&
      (r->binary == OP_ADD || r->binary == OP_MULTIPLY)) {
    out[0] =
        r->binary == OP_ADD ? LLVMBuildFAdd(B, a[0], b[0], "") : LLVMBuildFMul(B, a[0], b[0], "");
    return;
  }
  V args[8];
  for (int k = 0; k < r->n; k++) {
    args[k] = a[k];
    args[r->n + k] = b[k];
  }
  emit_region(g, r->op->regions[0], args, out);
}

static V half_of(Gen *g, V v, int lanes, bool upper) {
  V idx[64];
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  for (int i = 0; i < lanes / 2; i++)
    idx[i] = LLVMConstInt(i32, (unsigned long long)(i + (upper ? lanes / 2 : 0)), 0);
  return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)),
                                LLVMConstVector(idx, (unsigned)lanes / 2), "");
}

/* Vectors to scalars, by halves. */
static void across(Gen *g, const DagReduce *r, V *v) {
  for (int lanes = g->vl; lanes > 1; lanes /= 2) {
    V a[4], b[4];
    for (int k = 0; k < r->n; k++) {
      a[k] = half_of(g, v[k], lanes, false);
      b[k] = half_of(g, v[k], lanes, true);
    }
    g->lanes = lanes / 2;
    sum_combine(g, r, a, b, v);
  }
  g->lanes = 0;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  for (int k = 0; k < r->n; k++)
    v[k] = LLVMBuildExtractElement(B, v[k], LLVMConstInt(i32, 0, 0), "");
}

/* A body that needs no rounding of what it is given. */
static bool in_f32(const DagReduce *r) {
  return r->n == 1 && (r->binary == OP_ADD || r->binary == OP_MULTIPLY || r->binary == OP_MAXIMUM ||
                       r->binary == OP_MINIMUM);
}

int sum_element(const Dag *d, const DagReduce *r, int k) {
  const DagNode *n = &d->nodes.v[r->in[k]];
  bool wider = r->n == 1 && r->binary == OP_ADD && n->kind == N_OP && n->t == DT_F32 &&
               n->op->kind == OP_CONVERT && dag_keeps_digits(&d->nodes.v[n->in[0]]);
  return wider ? n->in[0] : r->in[k];
}

/* The element a reduction takes in, spread to the current lanes, neutral where the mask is off. */
void sum_elements(Gen *g, const DagReduce *r, int level, bool vec, V *out) {
  for (int k = 0; k < r->n; k++) {
    int node = sum_element(g->d, r, k);
    DType from = g->d->nodes.v[node].t, to = shape_sum_type(r, k);
    bool rounded = from != to && node == r->in[k];
    V x = gen_node_at(g, node, level, vec, rounded || !in_f32(r));
    g->lanes = vec ? g->vl : 0;
    x = emit_convert(g, from, to, x);
    if (g->tail && vec) {
      V init = gen_node(g, r->init[k]);
      gen_at_level(g, level);
      g->lanes = g->vl;
      x = LLVMBuildSelect(B, g->tail, x, sum_neutral(g, r, k, init), "");
    }
    out[k] = x;
  }
}

static void init_from(Gen *g, DagReduce *r, int level, bool vec, int first, int count) {
  for (int k = 0; k < r->n; k++)
    for (int u = first; u < first + count; u++) {
      V init = gen_node(g, r->init[k]);
      g->lanes = vec ? g->vl : 0;
      V a = gen_alloca(g, reg_type(g, shape_sum_type(r, k), g->lanes));
      gen_at_level(g, level);
      LLVMBuildStore(B, sum_neutral(g, r, k, init), a);
      r->acc[k * 8 + u] = a;
    }
}

void sum_init(Gen *g, DagReduce *r, int level, bool vec, int count) {
  init_from(g, r, level, vec, 0, count);
}

void sum_accumulate(Gen *g, DagReduce *r, int level, bool vec, int u) {
  V x[4], a[4], out[4];
  sum_elements(g, r, level, vec, x);
  g->lanes = vec ? g->vl : 0;
  for (int k = 0; k < r->n; k++) a[k] = LLVMBuildLoad2(B, LLVMTypeOf(x[k]), r->acc[k * 8 + u], "");
  sum_combine(g, r, a, x, out);
  for (int k = 0; k < r->n; k++) LLVMBuildStore(B, out[k], r->acc[k * 8 + u]);
}

/* ---- long sums: accumulators 0 to 3 are emptied into 4 to 7 now and then ---- */

#define TOTAL 4

void sum_init_totals(Gen *g, DagReduce *r, int level, bool vec, int count) {
  init_from(g, r, level, vec, TOTAL, count);
}

void sum_flush(Gen *g, const DagReduce *r, int level, bool vec, int count) {
  V init = gen_node_at(g, r->init[0], level, false, true);
  g->lanes = vec ? g->vl : 0;
  LLVMTypeRef t = reg_type(g, shape_sum_type(r, 0), g->lanes);
  for (int u = 0; u < count; u++) {
    V total = LLVMBuildLoad2(B, t, r->acc[TOTAL + u], ""),
      part = LLVMBuildLoad2(B, t, r->acc[u], "");
    sum_combine(g, r, &total, &part, &total);
    LLVMBuildStore(B, total, r->acc[TOTAL + u]);
    LLVMBuildStore(B, sum_neutral(g, r, 0, init), r->acc[u]);
  }
}

void sum_take_totals(Gen *g, DagReduce *r, int level, bool vec, int count) {
  sum_flush(g, r, level, vec, count);
  for (int u = 0; u < count; u++) r->acc[u] = r->acc[TOTAL + u];
}

/* Accumulators -> scalars, without the initial value. */
void sum_collect(Gen *g, DagReduce *r, int level, bool vec, int count, V *out) {
  gen_at_level(g, level);
  for (int u = 0; u < count; u++) {
    V x[4];
    g->lanes = vec ? g->vl : 0;
    for (int k = 0; k < r->n; k++)
      x[k] = LLVMBuildLoad2(B, reg_type(g, shape_sum_type(r, k), g->lanes), r->acc[k * 8 + u], "");
    if (u == 0)
      for (int k = 0; k < r->n; k++) out[k] = x[k];
    else sum_combine(g, r, out, x, out);
  }
  if (vec) across(g, r, out);
  g->lanes = 0;
}

void sum_collect_lanes(Gen *g, const DagReduce *r, int level, V *out) {
  gen_at_level(g, level);
  for (int k = 0; k < r->n; k++)
    out[k] = LLVMBuildLoad2(B, reg_type(g, shape_sum_type(r, k), g->vl), r->acc[k * 8], "");
}

void sum_with_init(Gen *g, DagReduce *r, int level, bool vec, V *v) {
  V init[4];
  for (int k = 0; k < r->n; k++) init[k] = gen_node_at(g, r->init[k], level, vec, true);
  g->lanes = vec ? g->vl : 0;
  sum_combine(g, r, init, v, v);
  for (int k = 0; k < r->n && !r->loose; k++) v[k] = round_to(g, shape_sum_type(r, k), v[k]);
}
