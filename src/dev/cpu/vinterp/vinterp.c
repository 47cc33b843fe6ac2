#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/vinterp/vinterp_run.h"

/* The node whose strip this one is: what only says where to look has none of its own. */
static int source(const VInterp *s, int node) {
  const Dag *d = &s->d;
  for (;;) {
    const DagNode *n = &d->nodes.v[node];
    if (n->kind != N_OP || n->op->kind == OP_IOTA || strip_fn(s->simd, n->op, true) != STRIP_copy)
      return node;
    if (n->t == DT_F32 && d->nodes.v[n->in[0]].t != DT_F32 && n->op->kind == OP_CONVERT)
      return node; /* rounds */
    node = n->in[0];
  }
}

/* The same with the digits of its type, if they are wanted and it has more. */
static int digits_of(const VInterp *s, int node, bool rounded) {
  const Dag *d = &s->d;
  node = source(s, node);
  const DagNode *n = &d->nodes.v[node];
  bool converted = n->kind == N_OP && n->op->kind == OP_CONVERT;
  return (rounded || n->stored) && n->loose && !converted ? node + d->nodes.n : node;
}

static int operand(const VInterp *s, const DagNode *n, int k) {
  return digits_of(s, n->in[k], emit_digits(n->op->kind) == DIGITS_OF_TYPE);
}

static const DagNode *node_at(const Dag *d, int id) { return &d->nodes.v[id % d->nodes.n]; }

/* What a reduction's elements are wanted as: see sum_elements. */
static bool wants_rounded(const DagReduce *r) {
  return r->n > 1 || (r->binary != OP_ADD && r->binary != OP_MULTIPLY && r->binary != OP_MAXIMUM &&
                      r->binary != OP_MINIMUM);
}

static bool operands_of(const VInterp *s, const DagReduce *r, StripReduce *out) {
  const Dag *d = &s->d;
  out->n = r->n;
  out->is_long = shape_sum_is_long(r);
  if (r->n > MOST_SUMS) return false;
  for (int k = 0; k < r->n; k++) {
    DType t = shape_sum_type(r, k);
    const DagNode *init = &d->nodes.v[r->init[k]];
    if (!strip_type_ok(s->simd, t) || d->nodes.v[r->in[k]].t != t || init->t != t) return false;
    out->in[k] = digits_of(s, sum_element(d, r, k), wants_rounded(r));
    out->init[k] = digits_of(s, r->init[k], true);
    out->node[k] = -1;
    out->after[k] = r->loose ? -1 : strip_to_type(s->simd, t);
    if (init->kind == N_SPLAT) out->neutral[k] = strip_element(s->simd, t, value_splat(init->v), 0);
    double f;
    int64_t i;
    char neutral[16];
    if (!sum_identity(r, k, &f, &i)) continue;
    if (dtype_is_float(t)) elem_set_f64(t, neutral, f);
    else elem_set_i64(t, neutral, i);
    out->neutral[k] = strip_element(s->simd, t, neutral, 0);
  }
  return true;
}

static bool reduce_of(const VInterp *s, const DagReduce *r, StripReduce *out) {
  const Dag *d = &s->d;
  *out = (StripReduce){0};
  if (!operands_of(s, r, out)) return false;
  if (r->n == 1 && strip_sum(s->simd, r->binary, shape_sum_type(r, 0), out)) return true;
  for (int k = 0; k < r->n; k++)
    if (d->nodes.v[r->init[k]].kind != N_SPLAT) return false; /* what sums begin with */
  out->body = strip_body(s->simd, r->op->regions[0], r->n);
  return out->body != NULL;
}

/* Powers by constants are other products (math.c), and what is known beforehand is such a constant. */
static bool op_ok(const VInterp *s, const DagNode *n) {
  const Dag *d = &s->d;
  int fn = strip_fn(s->simd, n->op, n->vec);
  if (fn != STRIP_power && fn != STRIP_power_one) return fn >= 0;
  const DagNode *by = node_at(d, source(s, n->in[1]));
  return by->kind == N_INPUT || by->kind == N_REDUCE || by->vec;
}

static bool is_join(const Op *op) { return op->kind == OP_PAD || op->kind == OP_CONCATENATE; }

static bool pair_ok(const VInterp *s, const DagNode *n) {
  DType part = s->simd->bytes == 8 ? DT_F64 : DT_F32;
  return n->kind == N_OP && n->op->kind == OP_COMPLEX && s->d.nodes.v[n->in[0]].t == part;
}

static bool node_ok(const VInterp *s, const DagNode *n) {
  const Dag *d = &s->d;
  if (pair_ok(s, n)) return true;
  if (!strip_type_ok(s->simd, n->t) || (n->kind == N_REDUCE && n->mask)) return false;
  if (n->kind != N_OP) return true;
  if (n->op->kind == OP_IOTA) return n->t != DT_I1 && dtype_bytes(n->t) >= 4;
  if (n->op->kind == OP_GATHER && (n->t == DT_BF16 || n->t == DT_F16)) return false;
  if (n->n_in > MOST_OPERANDS) return false;
  for (int k = 0; k < n->n_in; k++)
    if (!strip_type_ok(s->simd, d->nodes.v[n->in[k]].t)) return false;
  return n->op->kind == OP_GATHER || is_join(n->op) || op_ok(s, n);
}

/* Parts are stored from the strips of the node. */
static bool out_ok(const VInterp *s, int out) {
  const Dag *d = &s->d;
  if (d->out[out] < 0) return false;
  bool pair = pair_ok(s, &d->nodes.v[d->out[out]]);
  DType t = d->f->out[out].v->type->dtype;
  return pair ? d->f->out[out].full : strip_type_ok(s->simd, t);
}

static bool graph_ok(const VInterp *s) {
  const Dag *d = &s->d;
  for (int i = 0; i < d->nodes.n; i++)
    if (!node_ok(s, &d->nodes.v[i])) return false;
  for (int i = 0; i < d->n_out; i++)
    if (!out_ok(s, i)) return false;
  return true;
}

/* ---- sweeps ---- */

#define DEAR_WORK 8 /* operations on an element for which it is kept until the next sweep */
#define MOST_ROWS 4
#define ROW_BYTES 65536

/* done: computed in an earlier sweep; NULL. What is dear of that is kept. */
static void want(VInterp *s, int node, bool *wanted, const bool *done) {
  const Dag *d = &s->d;
  const DagNode *n = node_at(d, node);
  if (wanted[node]) return;
  wanted[node] = true;
  if (node >= d->nodes.n) {
    want(s, node - d->nodes.n, wanted, done);
    return;
  }
  if (n->kind != N_OP) return;
  bool dear = n->vec && op_loop_work(n->op) >= DEAR_WORK;
  if (done && done[node] && dear && s->row_bytes && s->row[node] < 0 && s->n_rows < MOST_ROWS)
    s->row[node] = s->n_rows++;
  if (done && done[node] && s->row[node] >= 0) return;
  for (int k = 0; k < n->n_in; k++) want(s, operand(s, n, k), wanted, done);
}

static bool in_place(const VInterp *s) {
  for (int i = 0; i < s->f->n_in; i++)
    if (s->f->in_place[i]) return true;
  return false;
}

/* Is the node computed straight into the memory of an output? What is read later must not be overwritten. */
static int own_output(const VInterp *s, const Sweep *w, int node, bool last) {
  const Dag *d = &s->d;
  bool safe = !in_place(s) || (last && w->outs.n == 1 && !w->sums.n);
  if (!strip_in_memory(s->simd, node_at(d, node)->t) || !safe) return -1;
  for (int k = 0; k < w->outs.n; k++) {
    int o = w->outs.v[k];
    if (s->out[o] == node && dag_vector_stride(d, &d->out_lin[o]) == 1) return o;
  }
  return -1;
}

static int slot_take(Sweep *w, bool *busy) {
  int k = 0;
  while (k < w->n_slots && busy[k]) k++;
  w->n_slots = MAX(w->n_slots, k + 1);
  busy[k] = true;
  return k;
}

/* Which operation is the last to use each node's strip. The last one on vectors. */
static int last_uses(const VInterp *s, const bool *wanted, const bool *done, int *last) {
  const Dag *d = &s->d;
  int nodes = d->nodes.n, n = 2 * nodes, last_vec = -1;
  for (int q = 0; q < n; q++) { /* each node, and rounded */
    int i = q / 2 + (q % 2 ? nodes : 0);
    const DagNode *x = node_at(d, i);
    if (!wanted[i]) continue;
    bool kept = i < nodes && s->row[i] >= 0 && done[i];
    if (x->vec && (x->kind == N_OP || i >= nodes) && !kept) last_vec = i;
    if (i >= nodes) last[i - nodes] = i;
    else
      for (int k = 0; x->kind == N_OP && !kept && k < x->n_in; k++) last[operand(s, x, k)] = i;
  }
  for (int i = 0; i < nodes; i++) /* parts are stored at the end */
    for (int k = 0; wanted[i] && pair_ok(s, node_at(d, i)) && k < 2; k++)
      last[operand(s, node_at(d, i), k)] = n;
  return last_vec;
}

static DoKind kind_of(const DagNode *x, bool kept) {
  if (x->kind == N_INPUT) return DO_READ;
  if (x->kind == N_SPLAT) return DO_SCALAR;
  if (x->kind == N_REDUCE) return x->vec ? DO_SUM : DO_SCALAR;
  if (x->op->kind == OP_IOTA) return DO_IOTA;
  if (x->op->kind == OP_COMPLEX) return DO_PAIR;
  if (kept) return DO_KEPT;
  return x->op->kind == OP_GATHER ? DO_GATHER : is_join(x->op) ? DO_JOIN : DO_FN;
}

/* The nodes of a sweep in order, and where their strips are: a strip is free again after its last
 * use. The first n_strips of the roots are wanted as strips. */
static void plan_sweep(VInterp *s, Sweep *w, const int *roots, int n_roots, int n_strips,
                       bool *done) {
  const Dag *d = &s->d;
  int nodes = d->nodes.n, n = 2 * nodes;
  bool *wanted = xcalloc((size_t)n + 1, 1), *as_strip = xcalloc((size_t)n + 1, 1),
       *busy = xcalloc((size_t)n + 1, 1);
  int *last = xcalloc((size_t)n + 1, sizeof *last), *slot = xcalloc((size_t)n + 1, sizeof *slot);
  for (int k = 0; k < n_roots; k++) want(s, roots[k], wanted, done);
  int last_vec = last_uses(s, wanted, done, last);
  for (int k = 0; k < n_roots; k++) {
    last[roots[k]] = n;
    as_strip[roots[k]] |= k < n_strips;
  }
  for (int i = 0; i < n; i++) slot[i] = -1;
  for (int i = 0; i < n; i++) /* scalars first: theirs are filled once a line */
    if (wanted[i] && !node_at(d, i)->vec && as_strip[i]) slot[i] = slot_take(w, busy);
  for (int q = 0; q < n; q++) {
    int i = q / 2 + (q % 2 ? nodes : 0);
    bool rounds = i >= nodes, kept = !rounds && s->row[i] >= 0 && done[i];
    const DagNode *x = node_at(d, i);
    if (!wanted[i] || (x->kind == N_SPLAT && slot[i] < 0)) continue;
    Do o = {
        .vec = x->vec, .t = x->t, .node = i, .out = -1, .row = -1, .buf = x->buf, .form = &x->lin};
    o.kind = rounds ? DO_FN : kind_of(x, kept);
    if (x->vec && !rounds) o.row = s->row[i];
    o.mask = x->mask;
    if (o.kind == DO_FN || o.kind == DO_GATHER || o.kind == DO_JOIN || o.kind == DO_PAIR) {
      if (o.kind == DO_FN)
        o.fn = rounds ? strip_to_type(s->simd, x->t) : strip_fn(s->simd, x->op, x->vec);
      if (o.kind == DO_FN) o.after = rounds ? -1 : strip_after(s->simd, x->op, o.fn);
      o.n_in = rounds ? 1 : x->n_in;
      for (int k = 0; k < o.n_in; k++) {
        int from = o.in[k] = rounds ? i - nodes : operand(s, x, k);
        if (x->vec && !node_at(d, from)->vec) o.same |= 1u << k;
        bool over = last[from] == i && o.kind != DO_JOIN; /* what is written last */
        if (x->vec && over && slot[from] >= 0 && node_at(d, from)->vec) busy[slot[from]] = false;
      }
      if (x->vec && o.row < 0 && o.kind == DO_FN) o.out = own_output(s, w, i, i == last_vec);
    }
    bool stays = !in_place(s) || last[i] < n; /* until it is copied or taken in */
    bool in_memory = o.kind == DO_READ && strip_in_memory(s->simd, x->t) && stays && !x->mask &&
                     dag_vector_stride(d, &x->lin) == 1;
    bool elsewhere = o.out >= 0 || o.row >= 0 || in_memory || o.kind == DO_SUM || o.kind == DO_PAIR;
    if (x->vec && !elsewhere) slot[i] = slot_take(w, busy);
    o.slot = slot[i];
    *vec_push(&w->dos) = o;
    for (int k = 0; k < w->outs.n && o.out >= 0; k++)
      if (w->outs.v[k] == o.out) {
        w->outs.v[k--] = w->outs.v[--w->outs.n];
        break;
      }
  }
  for (int i = 0; i < n; i++) done[i] |= wanted[i];
  free(wanted);
  free(as_strip);
  free(busy);
  free(last);
  free(slot);
}

static int roots_of(VInterp *s, int sweep, int *roots, int *n_strips) {
  const Dag *d = &s->d;
  Sweep *w = &s->sweep[sweep];
  bool after = sweep == s->sweeps, split = s->f->kind == FUSION_SPLIT;
  int n = 0;
  w->sums.n = w->outs.n = 0;
  for (int i = 0; i < d->reduces.n; i++) {
    if (d->reduces.v[i].sweep != sweep || after) continue;
    *vec_push(&w->sums) = i;
    for (int k = 0; k < s->reduces[i].n; k++) roots[n++] = s->reduces[i].in[k];
  }
  for (int i = 0; i < d->n_out; i++) {
    bool full = s->f->out[i].full;
    if (split && !full) continue; /* vinterp_finish stores it */
    if (full ? after || d->nodes.v[d->out[i]].depth != sweep : !after) continue;
    *vec_push(&w->outs) = i;
    roots[n++] = s->out[i];
  }
  *n_strips = after && !s->across ? 0 : n; /* the others are wanted as scalars */
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; k < s->reduces[i].n; k++)
      if (after ? split : d->reduces.v[i].sweep == sweep) roots[n++] = s->reduces[i].init[k];
  return n;
}

/* Which nodes are kept from sweep to sweep: found before any sweep is planned. */
static void choose_rows(VInterp *s, int *roots) {
  size_t n = 2 * (size_t)s->d.nodes.n;
  bool *done = xcalloc(n + 1, 1), *wanted = xcalloc(n + 1, 1);
  for (int k = 0; k < s->sweeps; k++) {
    int n_strips, n_roots = roots_of(s, k, roots, &n_strips);
    memset(wanted, 0, n);
    for (int i = 0; i < n_roots; i++) want(s, roots[i], wanted, done);
    for (size_t i = 0; i < n; i++) done[i] |= wanted[i];
  }
  free(done);
  free(wanted);
}

static void plan_sweeps(VInterp *s) {
  Dag *d = &s->d;
  int *roots = xcalloc((size_t)(2 * s->n_sums + d->n_out) + 1, sizeof *roots);
  bool *done = xcalloc((size_t)(2 * d->nodes.n) + 1, 1);
  s->row = xcalloc((size_t)d->nodes.n + 1, sizeof *s->row);
  for (int i = 0; i < d->nodes.n; i++) s->row[i] = -1;
  bool lines = s->f->kind == FUSION_ROW && d->vloop == s->task_loops && !s->across;
  int64_t bytes = lines ? d->loops[d->vloop].extent * s->simd->bytes : 0;
  s->row_bytes = bytes <= ROW_BYTES ? (size_t)(bytes + 63) / 64 * 64 : 0;
  choose_rows(s, roots);
  for (int k = 0; k <= s->sweeps; k++) {
    Sweep *w = &s->sweep[k];
    int n_strips, n = roots_of(s, k, roots, &n_strips);
    plan_sweep(s, w, roots, n, n_strips, done);
    w->count = 1;
    w->strip = w->n_slots || s->n_temps ? STRIP : INT64_MAX;
    if (w->sums.n && s->f->kind == FUSION_ROW && !s->across) {
      w->count = shape_unroll(d, k, s->simd->lanes);
      int64_t each = shape_additions(d, s->simd->lanes, s->task_loops, w->count);
      w->totals = d->vloop >= 0 && each >= 2 * LONG_SUM;
    }
  }
  free(roots);
  free(done);
}

/* ---- what it costs ---- */

#define ELEMENT_NS 0.05 /* writing and reading the strip, in the cache */
#define CALL_NS 7.0
#define LINE_NS 25.0 /* of each sweep */
#define SUM_NS 10.0
#define VECTOR_NS 4.0  /* a call for one vector */
#define STRIDED_NS 1.0 /* of an element that is not beside the one before, where shuffles take it */
#define WORK_NS 0.03   /* an addition's, in generated code */
#define BYTE_NS 0.06   /* of memory that is not in the cache */
#define CACHED_BYTES 32e6

/* Of what is read or written of it: a table is not read as a whole. */
static double bytes_of(const Value *v, double elements) {
  return MIN((double)type_count(v->type), elements) * dtype_bytes(v->type->dtype);
}

static double excess(const VInterp *s, double *out_run_s) {
  const Dag *d = &s->d;
  double line = d->vloop >= 0 ? (double)d->loops[d->vloop].extent : 1, lines = 1, bytes = 0;
  for (int i = 0; i < d->n_loops; i++)
    if (i != d->vloop) lines *= (double)d->loops[i].extent;
  for (int i = 0; i < s->f->n_in; i++) bytes += bytes_of(s->f->in[i], lines * line);
  for (int i = 0; i < s->f->n_out; i++) bytes += bytes_of(s->f->out[i].v, lines * line);
  const double words = s->simd->bytes / 4; /* costs are those of 32 bits */
  double calls = 0, strips = 0, fills = 0, sweeps = 0, more = 0;
  for (int k = 0; k <= s->sweeps; k++) {
    sweeps += s->sweep[k].dos.n > 0;
    double pieces = s->sweep[k].n_slots ? (double)(int64_t)(line / STRIP + 1) : 1;
    for (int i = 0; i < s->sweep[k].sums.n; i++) {
      const StripBody *b = s->reduces[s->sweep[k].sums.v[i]].body;
      bool vectors = b && d->vloop >= 0 && d->loops[d->vloop].reduced;
      calls += pieces * (b ? b->n_dos : 1);
      more += vectors ? lines * line / s->simd->lanes * b->n_dos * VECTOR_NS : 0;
    }
    for (int i = 0; i < s->sweep[k].dos.n; i++) {
      const Do *o = &s->sweep[k].dos.v[i];
      calls += pieces;
      strips += o->vec && (o->slot >= 0 || (o->kind == DO_FN && o->row >= 0));
      calls += o->kind == DO_GATHER && o->vec ? line * STRIDED_NS / CALL_NS : 0;
      fills += !o->vec && o->slot >= 0;
    }
  }
  more += lines * (sweeps * LINE_NS + calls * CALL_NS + d->reduces.n * SUM_NS) +
          lines * line * strips * ELEMENT_NS * words +
          lines * MIN(line, STRIP) * fills * ELEMENT_NS / 2 * words;
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    if (n->kind == N_INPUT && n->vec && llabs(dag_vector_stride(d, &n->lin)) > 1)
      more += lines * line * STRIDED_NS;
  }
  for (int i = 0; i < d->n_out; i++)
    if (llabs(dag_vector_stride(d, &d->out_lin[i])) > 1) more += lines * line * STRIDED_NS;
  double same = lines * line * shape_work(d) * WORK_NS * words;
  if (shape_abreast(d, s->simd->lanes) > 1) { /* generated code takes about half of that */
    same /= 2;
    more += same;
  }
  double memory = bytes > CACHED_BYTES ? bytes * BYTE_NS : 0;
  *out_run_s = MAX(same, memory) * 1e-9;
  return MAX(0, MAX(same + more, memory) - MAX(same, memory)) * 1e-9;
}

/* ---- making ---- */

static const StripSimd *simd_here(bool wide) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  if (bits >= 512) return wide ? &vinterp_wide_avx512 : &vinterp_avx512;
  if (bits >= 256 && __builtin_cpu_supports("fma") && has_f16c())
    return wide ? &vinterp_wide_avx2 : &vinterp_avx2;
#endif
  (void)wide;
  return NULL;
}

/* Numbers of 64 bits are among others. */
static bool wants_wide(const Dag *d) {
  for (int i = 0; i < d->nodes.n; i++) {
    DType t = d->nodes.v[i].t;
    if (t == DT_F64 || t == DT_I64 || t == DT_U64) return true;
  }
  return false;
}

#define SHORT_LINE 32
#define LONG_ELEMENTS \
  262144 /* of a loop: all that it reads stays in the cache while it is read a column at a time */

static double line_ns(const Dag *d, int loop) {
  int reads = 0;
  double n = (double)MIN(d->loops[loop].extent, STRIP);
  Dag of = *d;
  of.vloop = loop;
  for (int i = 0; i < d->nodes.n; i++)
    reads += d->nodes.v[i].kind == N_INPUT && llabs(dag_vector_stride(&of, &d->nodes.v[i].lin)) > 1;
  for (int i = 0; i < d->n_out; i++) reads += llabs(dag_vector_stride(&of, &d->out_lin[i])) > 1;
  return d->nodes.n * CALL_NS / n + reads * STRIDED_NS;
}

static void walk_along(Dag *d, int loop) {
  d->vloop = loop;
  dag_levels(d);
}

/* Would something be computed on vectors along one of these that is not along the other, where that makes a difference? */
static bool same_digits(VInterp *s, int a, int b) {
  Dag *d = &s->d;
  bool same = true;
  for (int i = 0; i < d->nodes.n && same; i++) {
    const DagNode *n = &d->nodes.v[i];
    if (n->kind != N_OP || strip_fn(s->simd, n->op, true) == strip_fn(s->simd, n->op, false))
      continue;
    walk_along(d, a);
    bool vec = n->vec;
    walk_along(d, b);
    same = n->vec == vec;
  }
  return same;
}

/* Where lines are short another loop becomes the inner one: what is computed element by element is so in any order. */
static void lengthen(VInterp *s) {
  Dag *d = &s->d;
  int last = d->n_loops - 1, best = last;
  double elements = 1;
  for (int i = 0; i <= last; i++) elements *= (double)d->loops[i].extent;
  if (last < 1 || d->loops[last].extent > SHORT_LINE || elements > LONG_ELEMENTS) return;
  for (int i = 0; i < last; i++)
    if (line_ns(d, i) < line_ns(d, best) / 2) best = i;
  if (best == last || !same_digits(s, best, last)) return;
  Loop l = d->loops[best];
  memmove(&d->loops[best], &d->loops[best + 1], sizeof l * (size_t)(last - best));
  d->loops[last] = l;
}

static void cut_rows(VInterp *s) {
  FusedCode *c = &s->code;
  Dag *d = &s->d;
  int nk = 0;
  while (nk < d->n_loops && !d->loops[nk].reduced) nk++;
  s->across = shape_across(d, s->simd->lanes, nk);
  if (!s->across) {
    s->task_loops = shape_row(d, &c->outer, &c->grain);
    return;
  }
  s->task_loops = nk - 1;
  s->runs = shape_runs(d, nk - 1, s->simd->lanes, shape_row_length(d, nk));
  c->outer = s->runs.outer;
  c->grain = s->runs.grain;
}

static void cut_tasks(VInterp *s) {
  FusedCode *c = &s->code;
  int lanes = s->simd->lanes;
  Dag *d = &s->d;
  switch (s->f->kind) {
  case FUSION_LOOP:
    lengthen(s);
    s->task_loops = shape_loop(d, lanes, &c->outer, &c->grain);
    c->name = "fused:loop";
    return;
  case FUSION_ROW:
    cut_rows(s);
    c->name = "fused:row";
    return;
  case FUSION_SPLIT: {
    s->split = shape_split(d, lanes, &c->grain);
    s->task_loops = s->split.kept_loops;
    c->outer = s->split.tasks;
    c->partial_bytes =
        s->n_sums * ((s->split.tasks * s->split.row * s->simd->bytes + 63) / 64 * 64);
    int64_t parts = (s->split.suffix + STRIP - 1) / STRIP;
    c->finish_outer = s->split.kept * parts;
    c->finish_grain = MAX(1, 65536 / (s->split.chunks * MIN(s->split.suffix, STRIP)));
    c->finish = vinterp_finish;
    c->name = "fused:split";
  }
  }
}

static void fill_constants(VInterp *s) {
  const Dag *d = &s->d;
  s->constants = aligned_alloc(64, (size_t)(d->nodes.n + 1) * SCALAR_BYTES);
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *x = &d->nodes.v[i];
    if (x->kind != N_SPLAT) continue;
    strip_fill(s->simd, s->constants + (size_t)i * SCALAR_BYTES,
               strip_element(s->simd, x->t, value_splat(x->v), 0), s->simd->lanes);
  }
}

/* Nodes wanted after the sweeps, and initial values, are scalars there. */
static bool ends_ok(const VInterp *s) {
  const Dag *d = &s->d;
  bool rows = s->f->kind == FUSION_ROW && !s->across;
  for (int i = 0; i < d->n_out && rows; i++)
    if (!s->f->out[i].full && d->nodes.v[d->out[i]].vec) return false;
  for (int i = 0; i < d->reduces.n; i++)
    for (int k = 0; k < s->reduces[i].n; k++)
      if (node_at(d, s->reduces[i].init[k])->vec) return false;
  for (int i = 0; i < d->n_out && s->f->kind == FUSION_SPLIT; i++)
    if (!s->f->out[i].full && d->nodes.v[d->out[i]].kind != N_REDUCE) return false;
  return true;
}

static int out_node(VInterp *s, int out) {
  const Dag *d = &s->d;
  if (d->out[out] < 0) return -1;
  const DagNode *n = &d->nodes.v[d->out[out]];
  for (int k = 0; k < 2 && pair_ok(s, n); k++) s->part[2 * out + k] = operand(s, n, k);
  return digits_of(s, d->out[out], false);
}

VInterp *vinterp_new(const Fusion *f) {
  if (!simd_here(false)) return NULL;
  VInterp *s = xcalloc(1, sizeof *s);
  s->f = f;
  Dag *d = &s->d;
  Err *e = dag_build(f, d);
  const StripSimd *simd = s->simd = simd_here(wants_wide(d));
  s->strip_bytes = (size_t)(STRIP * simd->bytes);
  bool ok = !e && (!d->reduces.n || shape_lanes(d) == simd->lanes); /* sums are cut alike */
  err_free(e);
  s->out = xcalloc((size_t)d->n_out + 1, sizeof *s->out);
  s->reduces = xcalloc((size_t)d->reduces.n + 1, sizeof *s->reduces);
  s->part = xcalloc((size_t)d->n_out * 2 + 1, sizeof *s->part);
  for (int i = 0; i < d->n_out && ok; i++) s->out[i] = out_node(s, i);
  for (int i = 0; i < d->reduces.n && ok; i++) ok = reduce_of(s, &d->reduces.v[i], &s->reduces[i]);
  for (int i = 0; i < d->reduces.n && ok; i++) {
    s->reduces[i].first = s->n_sums;
    s->n_sums += s->reduces[i].n;
    if (s->reduces[i].body) s->n_temps = MAX(s->n_temps, s->reduces[i].body->n_regs);
  }
  for (int i = 0; i < d->nodes.n && ok; i++) {
    const DagNode *x = &d->nodes.v[i];
    if (x->kind == N_REDUCE) s->reduces[x->reduce].node[x->v->index] = i;
  }
  if (ok) {
    cut_tasks(s);
    ok = graph_ok(s) && ends_ok(s);
  }
  if (!ok) {
    vinterp_free(s);
    return NULL;
  }
  s->sweeps = shape_last_sweep(d) + 1;
  s->sweep = xcalloc((size_t)s->sweeps + 1, sizeof *s->sweep);
  plan_sweeps(s);
  fill_constants(s);
  int slots = 2 * MOST_SUMS; /* vinterp_finish */
  for (int k = 0; k <= s->sweeps; k++) slots = MAX(slots, s->sweep[k].n_slots);
  size_t pointers = (size_t)d->nodes.n * 2 * (2 * sizeof(void *) + sizeof(int64_t)) +
                    (size_t)d->masks.n * 2 * sizeof(int64_t);
  s->slots_at = (pointers + (size_t)d->nodes.n * 2 * SCALAR_BYTES + 63) / 64 * 64;
  s->sums_at = s->slots_at + (size_t)slots * s->strip_bytes;
  s->sum_bytes = s->across ? s->strip_bytes : 16 * (size_t)(simd->lanes * simd->bytes);
  s->temps_at = s->sums_at + (size_t)s->n_sums * s->sum_bytes;
  s->rows_at = s->temps_at + (size_t)(s->n_temps ? s->n_temps + 2 * MOST_SUMS : 0) * s->strip_bytes;
  s->scratch_bytes = s->rows_at + (size_t)s->n_rows * s->row_bytes;
  s->code.run = vinterp_run;
  s->code.self = s;
  s->code.flops = dag_flops(d);
  s->excess_s = excess(s, &s->run_s);
  return s;
}

FusedCode vinterp_code(const VInterp *s) { return s->code; }
double vinterp_excess_s(const VInterp *s) { return s->excess_s; }
double vinterp_run_s(const VInterp *s) { return s->run_s; }
int vinterp_nodes(const VInterp *s) { return s->d.nodes.n; }

void vinterp_free(VInterp *s) {
  if (!s) return;
  for (int k = 0; s->sweep && k <= s->sweeps; k++) {
    vec_free(&s->sweep[k].dos);
    vec_free(&s->sweep[k].sums);
    vec_free(&s->sweep[k].outs);
  }
  for (int i = 0; s->reduces && i < s->d.reduces.n; i++) free(s->reduces[i].body);
  free(s->constants);
  free(s->sweep);
  free(s->reduces);
  free(s->out);
  free(s->part);
  free(s->row);
  dag_free(&s->d);
  free(s);
}
