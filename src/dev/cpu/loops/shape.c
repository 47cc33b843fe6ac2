#include "dev/cpu/loops/shape.h"

#define HEAVY_BODY 8         /* operations that take as long as an addition */
#define SERIAL_WORK 300000.0 /* operations on elements below which threads are not worth waking */
#define TASK_WORK 400000.0
#define MAX_CHUNKS 256
#define MIN_CHUNK 16384 /* elements */

/* ---- costs ---- */

double shape_work(const Dag *d) {
  double w = 0;
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    if (!n->vec) continue;
    if (n->kind == N_INPUT) w += dag_vector_stride(d, &n->lin) == 1 ? 2 : 8;
    if (n->kind == N_OP) w += op_loop_work(n->op);
  }
  return w + d->reduces.n + 1;
}

double shape_work_below(const Dag *d, int node, bool *seen) {
  const DagNode *n = &d->nodes.v[node];
  if (seen[node] || !n->vec) return 0;
  seen[node] = true;
  double w = n->kind == N_OP ? op_loop_work(n->op) : 0;
  for (int k = 0; n->kind == N_OP && k < n->n_in; k++) w += shape_work_below(d, n->in[k], seen);
  return w;
}

int shape_unroll(const Dag *d, int sweep, int lanes) {
  if (d->vloop < 0) return 1;
  bool *seen = xcalloc((size_t)d->nodes.n + 1, 1);
  double w = 0;
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++)
      if (d->reduces.v[i].sweep == sweep) w += shape_work_below(d, d->reduces.v[i].in[k], seen);
  free(seen);
  int n = w > 2 * HEAVY_BODY ? 1 : w > HEAVY_BODY ? 2 : 4;
  return d->loops[d->vloop].extent >= (int64_t)lanes * n ? n : 1;
}

int64_t shape_grain(const Dag *d, int64_t outer, int64_t inner) {
  double w = shape_work(d);
  if ((double)outer * (double)inner * w < SERIAL_WORK) return MAX(outer, 1);
  return MAX(1, (int64_t)(TASK_WORK / (w * (double)MAX(inner, 1))));
}

int shape_lanes(const Dag *d) {
  int wide = 0, other = 0;
  for (int i = 0; i < d->nodes.n; i++) {
    DType t = d->nodes.v[i].t;
    if (t == DT_F64 || t == DT_I64 || t == DT_U64) wide++;
    else if (t != DT_I1) other++;
  }
  return cpu_vector_bits() / (wide > other ? 64 : 32);
}

#define CHAIN_WORK 16 /* from here on one vector keeps the processor waiting */
#define MUCH_CODE 500 /* work of a vector: more than two of it are slow to compile */
#define FEW_STREAMS 5 /* of memory; with more, it is memory that is waited for, unless ... */
#define LONG_CHAIN 48 /* ... there is so much work for each of them */

int shape_abreast(const Dag *d, int lanes) {
  if (d->f->kind != FUSION_LOOP || !d->n_loops) return 1;
  const Loop *inner = &d->loops[d->n_loops - 1];
  int streams = 0, functions = 0;
  double work = 0;
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    int64_t stride = n->kind == N_INPUT ? n->lin.coef[inner->last] : 0;
    if (stride < 0 || stride > 1) return 1; /* lane by lane anyway */
    streams += stride == 1;
    if (n->kind != N_OP || type_count(op_type(n->op)) < lanes) continue;
    work += op_loop_work(n->op);
    functions += op_loop_work(n->op) >= CHAIN_WORK && !emit_calls(n->op->kind);
  }
  streams += d->n_out;
  int n = work < CHAIN_WORK ? 1 : work > MUCH_CODE || !functions ? 2 : 4;
  if (streams > FEW_STREAMS) n = work > LONG_CHAIN * streams ? 2 : 1;
  /* Lanes that the last vectors leave unused cost no more than a quarter. */
  int64_t vectors = (inner->extent + lanes - 1) / lanes;
  while (n > 1 && 4 * ((vectors + n - 1) / n * n) > 5 * vectors) n /= 2;
  return n;
}

/* ---- reductions ---- */

DType shape_sum_type(const DagReduce *r, int k) { return r->op->results[k].type->dtype; }

bool shape_sum_is_long(const DagReduce *r) {
  DType t = shape_sum_type(r, 0);
  return r->n == 1 && r->binary == OP_ADD && dtype_is_float(t) && t != DT_F64;
}

int64_t shape_finish_block(const DagReduce *r, const SplitShape *s) {
  int64_t n = 1;
  while (n * n < s->chunks) n *= 2;
  return shape_sum_is_long(r) ? n : s->chunks;
}

int shape_last_sweep(const Dag *d) {
  int last = 0;
  for (int i = 0; i < d->reduces.n; i++) last = MAX(last, d->reduces.v[i].sweep);
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full) last = MAX(last, d->nodes.v[d->out[i]].depth);
  return last;
}

int64_t shape_additions(const Dag *d, int lanes, int first, int unroll) {
  int64_t n = 1;
  for (int i = first; i <= d->vloop; i++)
    n *= i < d->vloop ? d->loops[i].extent : MAX(1, d->loops[i].extent / ((int64_t)lanes * unroll));
  return n;
}

bool shape_flush_before(const Dag *d, int lanes, int first, int unroll) {
  return shape_additions(d, lanes, first, unroll) >= LONG_SUM / 4 &&
         (first == d->vloop || shape_additions(d, lanes, first + 1, unroll) < LONG_SUM / 4);
}

/* ---- the three kinds of fusion ---- */

int shape_loop(Dag *d, int lanes, int64_t *outer, int64_t *grain) {
  int n = d->n_loops, p = 1;
  d->vloop = n - 1;
  if (n <= 1) {
    if (n) d->loops[0].level = 1;
    dag_levels(d);
    *outer = n ? d->loops[0].extent : 1;
    int64_t g = shape_grain(d, *outer, 1);
    *grain = g >= *outer ? *outer : (g + lanes - 1) / lanes * lanes;
    return n;
  }
  int64_t inner = 1;
  *outer = d->loops[0].extent;
  while (p < n - 1 && *outer < 64) *outer *= d->loops[p++].extent;
  for (int i = p; i < n; i++) inner *= d->loops[i].extent;
  for (int i = 0; i < n; i++) d->loops[i].level = i < p ? 1 : i - p + 2;
  dag_levels(d);
  *grain = shape_grain(d, *outer, inner);
  return p;
}

int shape_row(Dag *d, int64_t *outer, int64_t *grain) {
  int nk = 0, n = d->n_loops;
  while (nk < n && !d->loops[nk].reduced) nk++;
  int64_t inner = 1;
  *outer = 1;
  for (int i = 0; i < n; i++) {
    d->loops[i].level = i < nk ? 1 : i - nk + 2;
    *(i < nk ? outer : &inner) *= d->loops[i].extent;
  }
  d->vloop = n > nk ? n - 1 : -1;
  dag_levels(d);
  *grain = shape_grain(d, *outer, inner);
  return nk;
}

RunShape shape_runs(const Dag *d, int p, int64_t block, int64_t width) {
  int64_t outer = 1, rows = d->loops[p].extent, blocks = (rows + block - 1) / block;
  for (int i = 0; i < p; i++) outer *= d->loops[i].extent;
  int64_t runs = MIN(blocks, (64 + outer - 1) / outer), length = (blocks + runs - 1) / runs * block;
  runs = (rows + length - 1) / length;
  return (RunShape){runs, length, outer * runs, shape_grain(d, outer * runs, length * width)};
}

int64_t shape_part_bytes(DType t) { return t == DT_BF16 || t == DT_F16 ? 4 : dtype_bytes(t); }

static int first_suffix(const Dag *d) {
  int i = d->n_loops;
  while (i > 0 && !d->loops[i - 1].reduced) i--;
  return i ? i : d->n_loops;
}

SplitShape shape_split(Dag *d, int lanes, int64_t *grain) {
  int n = d->n_loops, fs = first_suffix(d), nk = 0;
  while (nk < fs && !d->loops[nk].reduced) nk++;
  SplitShape s = {.kept_loops = nk, .first_suffix = fs, .kept = 1, .suffix = 1, .reduced = 1};
  for (int i = 0; i < n; i++)
    *(i < nk ? &s.kept : i < fs ? &s.reduced : &s.suffix) *= d->loops[i].extent;
  int64_t total = s.kept * s.suffix * s.reduced, r0 = d->loops[nk].extent;
  int64_t chunks = MIN(MAX_CHUNKS, MAX(1, total / s.kept / MIN_CHUNK));
  chunks = MIN(chunks, MAX(1, r0 / 4));
  if (s.suffix > 1) chunks = MIN(chunks, MAX(1, s.reduced / 16));
  s.length = (r0 + chunks - 1) / chunks;
  s.vector_chunks = fs == n && nk == n - 1;
  if (s.vector_chunks) s.length = (s.length + lanes - 1) / lanes * lanes;
  s.chunks = (r0 + s.length - 1) / s.length;
  s.tasks = s.kept * s.chunks;
  int64_t vectors = (s.suffix + lanes - 1) / lanes;
  s.row = s.suffix == 1 ? 1 : vectors * lanes + lanes; /* whole vectors are written */
  for (int i = 0; i < n; i++) d->loops[i].level = i < nk ? 1 : i - nk + 2;
  d->vloop = n - 1;
  dag_levels(d);
  bool suffix_registers = fs < n && fs == n - 1 && vectors <= 8;
  s.count = fs < n ? (int)vectors : s.vector_chunks ? 1 : shape_unroll(d, 0, lanes);
  s.in_registers = fs == n || suffix_registers;
  int64_t each = s.vector_chunks    ? s.length / lanes
                 : suffix_registers ? s.length
                                    : s.length * shape_additions(d, lanes, nk + 1, s.count);
  bool rows = suffix_registers && nk + 1 == n - 1 && s.count <= 4; /* vectors without a loop */
  s.totals = (fs == n || rows) && each >= 2 * LONG_SUM;
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++)
      s.part_bytes +=
          (s.tasks * s.row * shape_part_bytes(shape_sum_type(&d->reduces.v[i], k)) + 63) / 64 * 64;
  *grain = shape_grain(d, s.tasks, total / s.tasks);
  return s;
}
