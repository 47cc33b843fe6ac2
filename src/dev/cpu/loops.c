/* Loops of a fusion. A function works on a range of tasks: elements, rows, or chunks of a split
 * reduction. The innermost dimension goes in vectors; what is left over is one more vector under a
 * mask.
 *
 *   loop   [tasks: outer dimensions] x inner dimensions x vector; or elements alone. When the innermost
 *          dimension is shorter than a vector, lanes go through it and the one before it (walk_braid)
 *   row    reductions along what is contiguous (rows.c)
 *   split  reductions in chunks (split.c)
 */
#include "dev/cpu/loops_priv.h"

#define B g->b

#define HEAVY_BODY 8         /* operations that take as long as an addition */
#define SERIAL_WORK 300000.0 /* operations on elements below which threads are not worth waking */
#define TASK_WORK 400000.0

void gen_decode(Gen *g, int level, V t, int first, int last) {
  gen_at_level(g, level);
  for (int i = last - 1; i >= first; i--) {
    Loop *l = &g->d->loops[i];
    if (i == first) {
      l->iv = t;
      return;
    }
    V e = gen_i64(g, l->extent);
    l->iv = LLVMBuildURem(B, t, e, "");
    t = LLVMBuildUDiv(B, t, e, "");
  }
}

/* ---- costs ---- */

double gen_op_work(const Op *op) {
  switch (op->kind) {
  case OP_EXPONENTIAL:
  case OP_LOG:
  case OP_LOGISTIC: return 20;
  case OP_TANH:
  case OP_CHLO_ERF:
  case OP_CHLO_ERFC:
  case OP_LOG_PLUS_ONE:
  case OP_EXPONENTIAL_MINUS_ONE: return 30;
  case OP_DIVIDE:
  case OP_SQRT:
  case OP_RSQRT: return 8;
  case OP_SINE:
  case OP_COSINE:
  case OP_TAN:
  case OP_POWER: return op_type(op)->dtype == DT_F64 ? 300 : 40;
  case OP_ATAN2:
  case OP_CBRT:
  case OP_REMAINDER: return 300;
  default: return 1;
  }
}

static double work_per_element(const Dag *d) {
  double w = 0;
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    if (!n->vec) continue;
    if (n->kind == N_INPUT) w += gen_vector_stride(d, &n->lin) == 1 ? 2 : 8;
    if (n->kind == N_OP) w += gen_op_work(n->op);
  }
  return w + d->reduces.n + 1;
}

double gen_work_below(const Dag *d, int node, bool *seen) {
  const DagNode *n = &d->nodes.v[node];
  if (seen[node] || !n->vec) return 0;
  seen[node] = true;
  double w = n->kind == N_OP ? gen_op_work(n->op) : 0;
  for (int k = 0; n->kind == N_OP && k < n->n_in; k++) w += gen_work_below(d, n->in[k], seen);
  return w;
}

int gen_unroll(const Dag *d, int sweep, int lanes) {
  bool *seen = xcalloc((size_t)d->nodes.n + 1, 1);
  double w = 0;
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++)
      if (d->reduces.v[i].sweep == sweep) w += gen_work_below(d, d->reduces.v[i].in[k], seen);
  free(seen);
  int n = w > 2 * HEAVY_BODY ? 1 : w > HEAVY_BODY ? 2 : 4;
  return d->loops[d->vloop].extent >= (int64_t)lanes * n ? n : 1;
}

int64_t gen_grain(const Dag *d, int64_t outer, int64_t inner) {
  double w = work_per_element(d);
  if ((double)outer * (double)inner * w < SERIAL_WORK) return MAX(outer, 1);
  return MAX(1, (int64_t)(TASK_WORK / (w * (double)MAX(inner, 1))));
}

/* A loop with this many operations for each stream of memory waits for results, not for memory:
 * vectors of two registers give it two independent chains. */
#define LONG_CHAIN 48

static int lanes_of(const Dag *d) {
  int wide = 0, other = 0;
  for (int i = 0; i < d->nodes.n; i++) {
    DType t = d->nodes.v[i].t;
    if (t == DT_F64 || t == DT_I64 || t == DT_U64) wide++;
    else if (t != DT_I1) other++;
  }
  int lanes = jit_vector_bits() / (wide > other ? 64 : 32);
  bool chains = d->f->kind == FUSION_LOOP && d->nodes.n > LONG_CHAIN * (d->f->n_in + d->n_out);
  return chains ? 2 * lanes : lanes;
}

/* ---- loop fusions ---- */

static void store_all(Gen *g, void *arg, int u) {
  (void)arg;
  (void)u;
  for (int i = 0; i < g->d->n_out; i++) gen_store(g, i, g->level);
}

#define MAX_BRAID 600 /* nodes of a block */

/* Rows shorter than a vector: are several side by side worth their code? */
static bool is_braid(Gen *g, Dag *d) {
  int n = d->n_loops;
  int64_t width = d->loops[n - 1].extent, rows = d->loops[n - 2].extent;
  if (width >= g->vl || rows < 2) return false;
  d->vloop = n - 1;
  int64_t block = MIN(walk_braid_rows(g), rows);
  return (block * width + g->vl - 1) / g->vl * d->nodes.n <= MAX_BRAID;
}

void gen_open_runs(Gen *g, Dag *d, int p, int64_t block, int64_t width, FusedCode *out, V *lo,
                   V *hi) {
  int64_t outer = 1, rows = d->loops[p].extent, blocks = (rows + block - 1) / block;
  for (int i = 0; i < p; i++) outer *= d->loops[i].extent;
  int64_t runs = MIN(blocks, (64 + outer - 1) / outer), len = (blocks + runs - 1) / runs * block;
  runs = (rows + len - 1) / len;
  out->outer = outer * runs;
  out->grain = gen_grain(d, out->outer, len * width);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1), all = gen_i64(g, rows);
  gen_at_level(g, 1);
  *lo = LLVMBuildMul(B, LLVMBuildURem(B, t, gen_i64(g, runs), ""), gen_i64(g, len), "");
  *hi = LLVMBuildAdd(B, *lo, gen_i64(g, len), "");
  *hi = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, *hi, all, ""), *hi, all, "");
  gen_decode(g, 1, LLVMBuildUDiv(B, t, gen_i64(g, runs), ""), 0, p);
}

static void gen_braid(Gen *g, Dag *d, FusedCode *out) {
  Walk w = {.body = store_all, .unroll = 1};
  V lo, hi;
  int p = d->n_loops - 2;
  d->braid = true;
  for (int i = 0; i < d->n_loops; i++) d->loops[i].level = i < p ? 1 : 2;
  dag_levels(d);
  gen_open_runs(g, d, p, walk_braid_rows(g), d->loops[p + 1].extent, out, &lo, &hi);
  walk_braid(g, 2, lo, hi, &w);
  gen_close_loop(g, 1);
}

static void gen_loop(Gen *g, Dag *d, const char *name, FusedCode *out) {
  Walk w = {.body = store_all, .unroll = 1};
  int n = d->n_loops;
  gen_open_function(g, name);
  if (n <= 1) {
    d->vloop = n - 1;
    if (n) d->loops[0].level = 1;
    dag_levels(d);
    out->outer = n ? d->loops[0].extent : 1;
    int64_t grain = gen_grain(d, out->outer, 1);
    out->grain = grain >= out->outer ? out->outer : (grain + g->vl - 1) / g->vl * g->vl;
    if (n) walk_range(g, 1, g->begin, g->end, &w);
    else walk_loops(g, 0, 1, &w);
    return;
  }
  if (is_braid(g, d)) {
    gen_braid(g, d, out);
    return;
  }
  int p = 1;
  int64_t outer = d->loops[0].extent, inner = 1;
  while (p < n - 1 && outer < 64) outer *= d->loops[p++].extent;
  for (int i = p; i < n; i++) inner *= d->loops[i].extent;
  for (int i = 0; i < n; i++) d->loops[i].level = i < p ? 1 : i - p + 2;
  d->vloop = n - 1;
  dag_levels(d);
  out->outer = outer;
  out->grain = gen_grain(d, outer, inner);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_decode(g, 1, t, 0, p);
  walk_loops(g, p, 2, &w);
  gen_close_loop(g, 1);
}

Err *gen_fusion(Gen *g, Dag *d, const char *name, FusedCode *out) {
  g->vl = lanes_of(d);
  switch (d->f->kind) {
  case FUSION_LOOP:
    gen_loop(g, d, name, out);
    out->name = "fused:loop";
    break;
  case FUSION_ROW:
    gen_row(g, d, name, out);
    out->name = "fused:row";
    break;
  case FUSION_SPLIT:
    gen_split(g, d, name, out);
    out->name = "fused:split";
    break;
  }
  out->flops = dag_flops(d);
  return NULL;
}
