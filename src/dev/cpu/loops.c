/* Loops of a fusion. A function works on a range of tasks: elements, rows, or chunks of a split
 * reduction. The innermost dimension goes in vectors; what is left over is one more vector under a
 * mask.
 *
 *   loop   [tasks: outer dimensions] x inner dimensions x vector; or elements alone
 *   row    [tasks: kept dimensions] x sweeps over the reduced dimensions; sums in registers,
 *          results are scalars of the row
 *   split  [tasks: kept x chunks of the first reduced dimension] x reduced x suffix; sums in
 *          registers or in the partial results' memory, one set a task; `finish` adds them up in
 *          order of the chunks: the result does not depend on threads
 */
#include "dev/cpu/loops_priv.h"

#define B g->b

#define HEAVY_BODY 8         /* operations that take as long as an addition */
#define SERIAL_WORK 300000.0 /* operations on elements below which threads are not worth waking */
#define TASK_WORK 400000.0
#define MAX_CHUNKS 256
#define MIN_CHUNK 16384 /* elements */

/* Task number -> the loops first .. last - 1 */
static void decode(Gen *g, int level, V t, int first, int last) {
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

static double op_work(const Op *op) {
  switch (op->kind) {
  case OP_EXPONENTIAL:
  case OP_LOG:
  case OP_LOGISTIC: return 20;
  case OP_TANH:
  case OP_CHLO_ERF:
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
    if (n->kind == N_OP) w += op_work(n->op);
  }
  return w + d->reduces.n + 1;
}

/* Operations for each element below a node that no node in `seen` has counted. */
static double work_below(const Dag *d, int node, bool *seen) {
  const DagNode *n = &d->nodes.v[node];
  if (seen[node] || !n->vec) return 0;
  seen[node] = true;
  double w = n->kind == N_OP ? op_work(n->op) : 0;
  for (int k = 0; n->kind == N_OP && k < n->n_in; k++) w += work_below(d, n->in[k], seen);
  return w;
}

/* How many vectors a sweep's loop takes at a time. Sums wait for their last addition, so several run
 * side by side, unless there is enough to do in between: more copies of that would only be more to
 * compile. */
static int unroll_of(const Dag *d, int sweep, int lanes) {
  bool *seen = xcalloc((size_t)d->nodes.n + 1, 1);
  double w = 0;
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++)
      if (d->reduces.v[i].sweep == sweep) w += work_below(d, d->reduces.v[i].in[k], seen);
  free(seen);
  int n = w > 2 * HEAVY_BODY ? 1 : w > HEAVY_BODY ? 2 : 4;
  return d->loops[d->vloop].extent >= (int64_t)lanes * n ? n : 1;
}

/* How many tasks of `inner` elements each make one chunk of work. */
static int64_t grain_of(const Dag *d, int64_t outer, int64_t inner) {
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

static void gen_loop(Gen *g, Dag *d, const char *name, FusedCode *out) {
  Walk w = {.body = store_all, .unroll = 1};
  int n = d->n_loops;
  gen_open_function(g, name);
  if (n <= 1) {
    d->vloop = n - 1;
    if (n) d->loops[0].level = 1;
    dag_levels(d);
    out->outer = n ? d->loops[0].extent : 1;
    int64_t grain = grain_of(d, out->outer, 1);
    out->grain = grain >= out->outer ? out->outer : (grain + g->vl - 1) / g->vl * g->vl;
    if (n) walk_range(g, 1, g->begin, g->end, &w);
    else walk_loops(g, 0, 1, &w);
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
  out->grain = grain_of(d, outer, inner);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  decode(g, 1, t, 0, p);
  walk_loops(g, p, 2, &w);
  gen_close_loop(g, 1);
}

/* ---- row fusions ---- */

typedef struct Sweep {
  int number;
  bool vec;
  int unroll;
} Sweep;

static void sweep_body(Gen *g, void *arg, int u) {
  const Sweep *s = arg;
  Dag *d = g->d;
  int level = g->level;
  for (int i = 0; i < d->reduces.n; i++)
    if (d->reduces.v[i].sweep == s->number) sum_accumulate(g, &d->reduces.v[i], level, s->vec, u);
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full && d->nodes.v[d->out[i]].depth == s->number) gen_store(g, i, level);
}

static void sweep_flush(Gen *g, void *arg) {
  const Sweep *s = arg;
  for (int i = 0; i < g->d->reduces.n; i++) {
    const DagReduce *r = &g->d->reduces.v[i];
    if (r->sweep == s->number && sum_is_long(r)) sum_flush(g, r, g->level, s->vec, s->unroll);
  }
}

static void gen_row(Gen *g, Dag *d, const char *name, FusedCode *out) {
  int nk = 0, n = d->n_loops, last = 0;
  while (nk < n && !d->loops[nk].reduced) nk++;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < n; i++) {
    d->loops[i].level = i < nk ? 1 : i - nk + 2;
    *(i < nk ? &outer : &inner) *= d->loops[i].extent;
  }
  d->vloop = n > nk ? n - 1 : -1;
  dag_levels(d);
  gen_open_function(g, name);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  decode(g, 1, t, 0, nk);
  for (int i = 0; i < d->reduces.n; i++) last = MAX(last, d->reduces.v[i].sweep);
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full) last = MAX(last, d->nodes.v[d->out[i]].depth);
  bool vec = d->vloop >= 0;
  for (int s = 0; s <= last; s++) {
    bool any = false, sums = false;
    for (int i = 0; i < d->reduces.n; i++) sums |= d->reduces.v[i].sweep == s;
    for (int i = 0; i < d->n_out; i++) any |= d->f->out[i].full && d->nodes.v[d->out[i]].depth == s;
    if (!any && !sums) continue;
    int unroll = vec && sums ? unroll_of(d, s, g->vl) : 1;
    for (int i = 0; i < d->reduces.n; i++)
      if (d->reduces.v[i].sweep == s) sum_init(g, &d->reduces.v[i], 1, vec, unroll);
    Sweep sw = {s, vec, unroll};
    Walk w = {.body = sweep_body, .arg = &sw, .unroll = unroll};
    bool totals = vec && sums && walk_additions(g, nk, &w) >= 2 * WALK_LONG_SUM;
    if (totals) w.flush = sweep_flush;
    for (int i = 0; i < d->reduces.n && totals; i++)
      if (d->reduces.v[i].sweep == s && sum_is_long(&d->reduces.v[i]))
        sum_init_totals(g, &d->reduces.v[i], 1, vec, unroll);
    walk_loops(g, nk, 2, &w);
    for (int i = 0; i < d->reduces.n; i++) {
      DagReduce *r = &d->reduces.v[i];
      if (r->sweep != s) continue;
      if (totals && sum_is_long(r)) sum_take_totals(g, r, 1, vec, unroll);
      V v[4];
      sum_collect(g, r, 1, vec, unroll, v);
      sum_with_init(g, r, 1, v);
      for (int k = 0; k < d->nodes.n; k++) {
        DagNode *o = &d->nodes.v[k];
        if (o->kind != N_REDUCE || o->reduce != i) continue;
        o->val = v[o->v->index];
        o->epoch = g->epoch[o->level];
      }
    }
  }
  for (int i = 0; i < d->n_out; i++)
    if (!d->f->out[i].full) gen_store(g, i, 1);
  gen_close_loop(g, 1);
  out->outer = outer;
  out->grain = grain_of(d, outer, inner);
}

/* ---- split fusions ---- */

typedef struct Split {
  bool in_registers; /* accumulators of the suffix */
  int count;         /* of them; of an operand */
  int64_t suffix;    /* elements */
  V *part;           /* per reduction and operand: memory of this task's partial results */
} Split;

static LLVMTypeRef acc_type(Gen *g, DType t, int lanes) {
  return t == DT_I1 ? mem_type(g, t, lanes) : reg_type(g, t, lanes);
}
static V acc_out(Gen *g, DType t, V v) { return t == DT_I1 ? to_mem(g, t, v, true) : v; }
static V acc_in(Gen *g, DType t, V v) { return t == DT_I1 ? from_mem(g, t, v) : v; }
static int64_t acc_bytes(DType t) { return t == DT_BF16 || t == DT_F16 ? 4 : dtype_bytes(t); }

static V load_part(Gen *g, DType t, V ptr) {
  V v = LLVMBuildLoad2(B, acc_type(g, t, g->lanes), ptr, "");
  LLVMSetAlignment(v, (unsigned)acc_bytes(t));
  return acc_in(g, t, v);
}

static void store_part(Gen *g, DType t, V v,
                       V ptr) { /* rows of partial results are padded to whole vectors */
  V s = LLVMBuildStore(B, acc_out(g, t, v), ptr);
  LLVMSetAlignment(s, (unsigned)acc_bytes(t));
}

/* Number of the suffix element at the current indices. */
static V suffix_index(Gen *g, int first, int level) {
  V off = gen_i64(g, 0);
  int64_t stride = 1;
  for (int i = g->d->n_loops - 1; i >= first; i--) {
    const Loop *l = &g->d->loops[i];
    gen_at_level(g, level);
    if (l->extent > 1)
      off = LLVMBuildAdd(B, off, LLVMBuildMul(B, l->iv, gen_i64(g, stride), ""), "");
    stride *= l->extent;
  }
  return off;
}

static int first_suffix(const Dag *d) {
  int i = d->n_loops;
  while (i > 0 && !d->loops[i - 1].reduced) i--;
  bool any = false;
  for (int k = 0; k < d->n_loops; k++) any |= d->loops[k].reduced;
  return any ? i : d->n_loops;
}

static void split_body(Gen *g, void *arg, int u) {
  Split *s = arg;
  Dag *d = g->d;
  int level = g->level, at = 0;
  for (int i = 0; i < d->reduces.n; i++) {
    DagReduce *r = &d->reduces.v[i];
    if (s->in_registers) {
      sum_accumulate(g, r, level, true, u);
      continue;
    }
    V x[4], a[4], ptr[4];
    sum_elements(g, r, level, true, x);
    V idx = suffix_index(g, first_suffix(d), level);
    g->lanes = g->vl;
    for (int k = 0; k < r->n; k++) {
      DType t = sum_type(r, k);
      ptr[k] = LLVMBuildGEP2(B, acc_type(g, t, 0), s->part[at + k], &idx, 1, "");
      a[k] = load_part(g, t, ptr[k]);
    }
    sum_combine(g, r, a, x, a);
    for (int k = 0; k < r->n; k++) store_part(g, sum_type(r, k), a[k], ptr[k]);
    at += r->n;
  }
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full) gen_store(g, i, level);
}

static void split_flush(Gen *g, void *arg) {
  const Split *s = arg;
  for (int i = 0; i < g->d->reduces.n; i++)
    if (sum_is_long(&g->d->reduces.v[i]))
      sum_flush(g, &g->d->reduces.v[i], g->level, true, s->count);
}

/* Partial results: for each (reduction, operand) an area of tasks x row elements, row = suffix
 * rounded up to whole vectors. */
static int64_t part_row(const Gen *g, int64_t suffix) {
  return suffix == 1 ? 1 : (suffix + g->vl - 1) / g->vl * g->vl + g->vl;
}

static void gen_finish(Gen *g, Dag *d, const char *name, int64_t chunks, int64_t kept,
                       int64_t suffix, int64_t tasks, FusedCode *out) {
  char *fname = xasprintf("%s_finish", name);
  gen_open_function(g, fname);
  free(fname);
  bool vec = suffix > 1;
  int64_t vectors = vec ? (suffix + g->vl - 1) / g->vl : 1, row = part_row(g, suffix), offset = 0;
  out->finish_outer = kept * vectors;
  out->finish_grain = MAX(1, 65536 / (chunks * (vec ? g->vl : 1)));
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_at_level(g, 1);
  V k0 = LLVMBuildUDiv(B, t, gen_i64(g, vectors), ""),
    s0 = LLVMBuildURem(B, t, gen_i64(g, vectors), "");
  V first = LLVMBuildMul(B, s0, gen_i64(g, g->vl), "");
  V mask = NULL;
  if (vec && suffix % g->vl) {
    V left = k_splat(g, LLVMBuildSub(B, gen_i64(g, suffix), first, ""), g->vl);
    mask = LLVMBuildICmp(B, LLVMIntSLT, gen_lane_ids(g, LLVMInt64TypeInContext(g->ctx)), left, "");
  }
  V base = gen_base(g, d->f->n_in + d->n_out);
  for (int i = 0; i < d->reduces.n; i++) {
    DagReduce *r = &d->reduces.v[i];
    sum_init(g, r, 1, vec, 1);
    int64_t offsets[4];
    for (int k = 0; k < r->n; k++) {
      offsets[k] = offset;
      offset += (tasks * row * acc_bytes(sum_type(r, k)) + 63) / 64 * 64;
    }
    V c = gen_open_loop(g, 2, gen_i64(g, 0), gen_i64(g, chunks), 1);
    gen_at_level(g, 2);
    g->lanes = vec ? g->vl : 0;
    V task = LLVMBuildAdd(B, LLVMBuildMul(B, k0, gen_i64(g, chunks), ""), c, "");
    V idx = LLVMBuildAdd(B, LLVMBuildMul(B, task, gen_i64(g, row), ""), vec ? first : gen_i64(g, 0),
                         "");
    V a[4], x[4];
    for (int k = 0; k < r->n; k++) {
      DType ty = sum_type(r, k);
      V off = gen_i64(g, offsets[k]);
      V area = LLVMBuildGEP2(B, LLVMInt8TypeInContext(g->ctx), base, &off, 1, "");
      x[k] = load_part(g, ty, LLVMBuildGEP2(B, acc_type(g, ty, 0), area, &idx, 1, ""));
      a[k] = LLVMBuildLoad2(B, reg_type(g, ty, g->lanes), r->acc[k * 8], "");
    }
    sum_combine(g, r, a, x, a);
    for (int k = 0; k < r->n; k++) LLVMBuildStore(B, a[k], r->acc[k * 8]);
    gen_close_loop(g, 2);
    V init[4];
    for (int k = 0; k < r->n; k++) {
      init[k] = gen_node(g, r->init[k]);
      gen_at_level(g, 1);
      g->lanes = vec ? g->vl : 0;
      init[k] = k_splat(g, init[k], g->lanes);
      a[k] = LLVMBuildLoad2(B, reg_type(g, sum_type(r, k), g->lanes), r->acc[k * 8], "");
    }
    sum_combine(g, r, init, a, a);
    for (int o = 0; o < d->n_out; o++) {
      const DagNode *n = &d->nodes.v[d->out[o]];
      if (d->f->out[o].full || n->kind != N_REDUCE || n->reduce != i) continue;
      DType ty = n->t;
      g->lanes = vec ? g->vl : 0;
      V v = to_mem(g, ty, a[n->v->index], false);
      V dst = gen_base(g, d->f->n_in + o);
      gen_at_level(g, 1);
      V at = LLVMBuildAdd(B, LLVMBuildMul(B, k0, gen_i64(g, suffix), ""),
                          vec ? first : gen_i64(g, 0), "");
      V ptr = LLVMBuildGEP2(B, mem_type(g, ty, 0), dst, &at, 1, "");
      if (!mask) {
        gen_align(LLVMBuildStore(B, v, ptr), ty);
        continue;
      }
      LLVMTypeRef types[2] = {mem_type(g, ty, g->vl), LLVMPointerTypeInContext(g->ctx, 0)};
      V args[4] = {
          v, ptr,
          LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned long long)dtype_bytes(ty), 0),
          mask};
      gen_intrinsic(g, "llvm.masked.store", types, 2, args, 4);
    }
  }
  gen_close_loop(g, 1);
}

static void gen_split(Gen *g, Dag *d, const char *name, FusedCode *out) {
  int n = d->n_loops, fs = first_suffix(d), nk = 0;
  while (nk < fs && !d->loops[nk].reduced) nk++;
  int64_t kept = 1, suffix = 1, reduced = 1;
  for (int i = 0; i < n; i++) *(i < nk ? &kept : i < fs ? &reduced : &suffix) *= d->loops[i].extent;
  int64_t total = kept * suffix * reduced, r0 = d->loops[nk].extent;
  /* chunks: by size only */
  int64_t chunks = MIN(MAX_CHUNKS, MAX(1, total / kept / MIN_CHUNK));
  chunks = MIN(chunks, MAX(1, r0 / 4));
  if (suffix > 1) chunks = MIN(chunks, MAX(1, reduced / 16));
  int64_t len = (r0 + chunks - 1) / chunks;
  bool runtime_vectors = fs == n && nk == n - 1; /* the chunked loop is the vector loop */
  if (runtime_vectors) len = (len + g->vl - 1) / g->vl * g->vl;
  chunks = (r0 + len - 1) / len;
  int64_t tasks = kept * chunks, row = part_row(g, suffix);
  for (int i = 0; i < n; i++) d->loops[i].level = i < nk ? 1 : i - nk + 2;
  d->vloop = n - 1;
  dag_levels(d);
  gen_open_function(g, name);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_at_level(g, 1);
  V k0 = LLVMBuildUDiv(B, t, gen_i64(g, chunks), ""),
    c = LLVMBuildURem(B, t, gen_i64(g, chunks), "");
  decode(g, 1, k0, 0, nk);
  gen_at_level(g, 1);
  V lo = LLVMBuildMul(B, c, gen_i64(g, len), ""), hi = LLVMBuildAdd(B, lo, gen_i64(g, len), "");
  V r0v = gen_i64(g, r0);
  hi = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, hi, r0v, ""), hi, r0v, "");
  Split s = {.suffix = suffix};
  int n_part = 0;
  for (int i = 0; i < d->reduces.n; i++) n_part += d->reduces.v[i].n;
  s.part = xcalloc((size_t)n_part + 1, sizeof(V));
  int64_t offset = 0;
  V base = gen_base(g, d->f->n_in + d->n_out);
  gen_at_level(g, 1);
  for (int i = 0, at = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++, at++) {
      DType ty = sum_type(&d->reduces.v[i], k);
      V off = LLVMBuildAdd(B, LLVMBuildMul(B, t, gen_i64(g, row * acc_bytes(ty)), ""),
                           gen_i64(g, offset), "");
      s.part[at] = LLVMBuildGEP2(B, LLVMInt8TypeInContext(g->ctx), base, &off, 1, "");
      offset += (tasks * row * acc_bytes(ty) + 63) / 64 * 64;
    }
  out->partial_bytes = offset;
  bool suffix_regs = fs < n && fs == n - 1 && (suffix + g->vl - 1) / g->vl <= 8;
  int count = fs < n            ? (int)((suffix + g->vl - 1) / g->vl)
              : runtime_vectors ? 1
                                : unroll_of(d, 0, g->vl);
  s.in_registers = fs == n || suffix_regs;
  s.count = count;
  for (int i = 0, at = 0; i < d->reduces.n; i++) {
    DagReduce *r = &d->reduces.v[i];
    if (s.in_registers) {
      sum_init(g, r, 1, true, count);
    } else {
      V init[4];
      for (int k = 0; k < r->n; k++) init[k] = gen_node(g, r->init[k]);
      V iv = gen_open_loop(g, 2, gen_i64(g, 0), gen_i64(g, row - g->vl), g->vl);
      gen_at_level(g, 2);
      g->lanes = g->vl;
      for (int k = 0; k < r->n; k++) {
        DType ty = sum_type(r, k);
        store_part(g, ty, sum_neutral(g, r, k, init[k]),
                   LLVMBuildGEP2(B, acc_type(g, ty, 0), s.part[at + k], &iv, 1, ""));
      }
      gen_close_loop(g, 2);
    }
    at += r->n;
  }
  Walk w = {.body = split_body,
            .arg = &s,
            .unroll = fs == n && !runtime_vectors ? count : 1,
            .expand = suffix_regs};
  int64_t each = runtime_vectors ? len / g->vl
                 : suffix_regs   ? len
                                 : len * walk_additions(g, nk + 1, &w);
  bool rows = suffix_regs && nk + 1 == n - 1 && count <= 4; /* one loop, vectors without one */
  bool totals = (fs == n || rows) && each >= 2 * WALK_LONG_SUM;
  if (totals) w.flush = split_flush;
  for (int i = 0; i < d->reduces.n && totals; i++)
    if (sum_is_long(&d->reduces.v[i])) sum_init_totals(g, &d->reduces.v[i], 1, true, count);
  if (runtime_vectors) {
    walk_range(g, 2, lo, hi, &w);
  } else if (rows && totals) {
    d->loops[nk].iv = walk_open_blocks(g, 2, lo, hi, 1);
    walk_loops(g, nk + 1, 3, &w);
    walk_close_blocks(g, 2, &w);
  } else {
    d->loops[nk].iv = gen_open_loop(g, 2, lo, hi, 1);
    walk_loops(g, nk + 1, 3, &w);
    if (walk_flush_before(g, nk + 1, &w)) w.flush(g, w.arg);
    gen_close_loop(g, 2);
  }
  for (int i = 0, at = 0; i < d->reduces.n && s.in_registers; i++) {
    DagReduce *r = &d->reduces.v[i];
    if (totals && sum_is_long(r)) sum_take_totals(g, r, 1, true, count);
    if (fs == n) {
      V v[4];
      sum_collect(g, r, 1, true, count, v);
      for (int k = 0; k < r->n; k++) store_part(g, sum_type(r, k), v[k], s.part[at + k]);
    } else {
      gen_at_level(g, 1);
      g->lanes = g->vl;
      for (int k = 0; k < r->n; k++)
        for (int u = 0; u < count; u++) {
          DType ty = sum_type(r, k);
          V v = LLVMBuildLoad2(B, reg_type(g, ty, g->vl), r->acc[k * 8 + u], ""),
            o = gen_i64(g, (int64_t)u * g->vl);
          store_part(g, ty, v, LLVMBuildGEP2(B, acc_type(g, ty, 0), s.part[at + k], &o, 1, ""));
        }
    }
    at += r->n;
  }
  gen_close_loop(g, 1);
  free(s.part);
  out->outer = tasks;
  out->grain = grain_of(d, tasks, total / tasks);
  gen_finish(g, d, name, chunks, kept, suffix, tasks, out);
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
