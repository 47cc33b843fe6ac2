#include "dev/cpu/strips/strips_run.h"
#include "compile/pass/query.h"

/* bf16 is f32 in strips. */
static bool is_real(DType t) { return t == DT_F32 || t == DT_BF16; }
static bool as_in_memory(DType t) { return t != DT_I1 && t != DT_BF16; }

/* ---- which function ---- */

static int fn_of_float(OpKind k) {
  switch (k) {
  case OP_ADD: return STRIP_add;
  case OP_SUBTRACT: return STRIP_sub;
  case OP_MULTIPLY: return STRIP_mul;
  case OP_DIVIDE: return STRIP_div;
  case OP_MAXIMUM: return STRIP_max;
  case OP_MINIMUM: return STRIP_min;
  case OP_NEGATE: return STRIP_neg;
  case OP_ABS: return STRIP_abs;
  case OP_SQRT: return STRIP_sqrt;
  case OP_RSQRT: return STRIP_rsqrt;
  case OP_EXPONENTIAL: return STRIP_exp;
  case OP_EXPONENTIAL_MINUS_ONE: return STRIP_expm1;
  case OP_LOG: return STRIP_log;
  case OP_LOG_PLUS_ONE: return STRIP_log1p;
  case OP_TANH: return STRIP_tanh;
  case OP_LOGISTIC: return STRIP_logistic;
  case OP_CHLO_ERF: return STRIP_erf;
  case OP_CHLO_ERFC: return STRIP_erfc;
  case OP_CHLO_ERF_INV: return STRIP_erf_inv;
  case OP_FLOOR: return STRIP_floor;
  case OP_CEIL: return STRIP_ceil;
  case OP_ROUND_NEAREST_EVEN: return STRIP_round;
  case OP_SIGN: return STRIP_sign;
  case OP_IS_FINITE: return STRIP_finite;
  case OP_CLAMP: return STRIP_clamp;
  default: return -1;
  }
}

static int fn_of_int(OpKind k, bool is_signed) {
  switch (k) {
  case OP_ADD: return STRIP_i_add;
  case OP_SUBTRACT: return STRIP_i_sub;
  case OP_MULTIPLY: return STRIP_i_mul;
  case OP_NEGATE: return STRIP_i_neg;
  case OP_ABS: return is_signed ? STRIP_i_abs : STRIP_copy;
  case OP_MAXIMUM: return is_signed ? STRIP_i_max : STRIP_u_max;
  case OP_MINIMUM: return is_signed ? STRIP_i_min : STRIP_u_min;
  case OP_AND: return STRIP_and;
  case OP_OR: return STRIP_or;
  case OP_XOR: return STRIP_xor;
  case OP_NOT: return STRIP_not;
  case OP_SHIFT_LEFT: return STRIP_shl;
  case OP_SHIFT_RIGHT_LOGICAL: return STRIP_shr;
  case OP_SHIFT_RIGHT_ARITHMETIC: return STRIP_sar;
  default: return -1;
  }
}

static int fn_of_bool(OpKind k) {
  switch (k) {
  case OP_AND:
  case OP_MULTIPLY:
  case OP_MINIMUM: return STRIP_and;
  case OP_OR:
  case OP_ADD:
  case OP_MAXIMUM: return STRIP_or;
  case OP_XOR: return STRIP_xor;
  case OP_NOT: return STRIP_not;
  default: return -1;
  }
}

static int fn_of_compare(const Op *op, DType t) {
  static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  Str dir = op_str(op, "comparison_direction");
  if (str_is(op_str(op, "compare_type"), "TOTALORDER")) return -1;
  int at = 0;
  while (at < 5 && !str_is(dir, directions[at])) at++;
  if (is_real(t)) return STRIP_eq + at;
  if (at < 2) return STRIP_i_eq + at;
  return t == DT_I32 ? STRIP_i_eq + at : t == DT_U32 ? STRIP_u_ge + at - 2 : -1;
}

static int fn_of_convert(DType from, DType to) {
  bool whole = to == DT_I32 || to == DT_U32, was_whole = from == DT_I32 || from == DT_U32;
  if (from == to || (whole && was_whole)) return STRIP_copy;
  if (to == DT_BF16 && from == DT_F32) return STRIP_to_bf16;
  if (to == DT_BF16 && from != DT_I1) return -1;
  if (from == DT_BF16) from = DT_F32;
  if (from == DT_F32 && to == DT_F32) return STRIP_copy;
  if (to == DT_I1) return from == DT_F32 ? STRIP_f_to_mask : STRIP_i_to_mask;
  if (from == DT_I1) return whole ? STRIP_mask_to_i : STRIP_mask_to_f;
  if (from == DT_F32) return to == DT_I32 ? STRIP_f_to_i : -1;
  return from == DT_I32 ? STRIP_i_to_f : -1;
}

static bool type_ok(DType t) { return is_real(t) || t == DT_I32 || t == DT_U32 || t == DT_I1; }

/* -1: there is none */
static int fn_of(const Op *op) {
  DType t = op->n_operands ? op->operands[op->kind == OP_SELECT ? 1 : 0]->type->dtype
                           : op_type(op)->dtype;
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
  case OP_RESHAPE:
  case OP_COPY:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_REVERSE: return STRIP_copy;
  case OP_SELECT: return STRIP_select;
  case OP_THREEFRY: return STRIP_threefry_first + (int)op_int(op, "part", 0);
  case OP_COMPARE: return fn_of_compare(op, t);
  case OP_CONVERT: return fn_of_convert(t, op_type(op)->dtype);
  case OP_BITCAST_CONVERT:
    return as_in_memory(t) && as_in_memory(op_type(op)->dtype) ? STRIP_copy : -1;
  default: break;
  }
  if (is_real(t)) return fn_of_float(op->kind);
  return t == DT_I1 ? fn_of_bool(op->kind) : fn_of_int(op->kind, t == DT_I32);
}

/* The node whose strip this one is: what only says where to look has none of its own. */
static int source(const Dag *d, int node) {
  for (;;) {
    const DagNode *n = &d->nodes.v[node];
    if (n->kind != N_OP || n->op->kind == OP_IOTA || fn_of(n->op) != STRIP_copy) return node;
    if (n->t != DT_BF16 && d->nodes.v[n->in[0]].t == DT_BF16) return node; /* rounds */
    node = n->in[0];
  }
}

/* The same with the digits of its type, if they are wanted and it has more. */
static int digits_of(const Dag *d, int node, bool rounded) {
  node = source(d, node);
  const DagNode *n = &d->nodes.v[node];
  bool converted = n->kind == N_OP && n->op->kind == OP_CONVERT;
  return rounded && n->loose && !converted ? node + d->nodes.n : node;
}

static int operand(const Dag *d, const DagNode *n, int k) {
  return digits_of(d, n->in[k], emit_digits(n->op->kind) == DIGITS_OF_TYPE);
}

static const DagNode *node_at(const Dag *d, int id) { return &d->nodes.v[id % d->nodes.n]; }

static bool reduce_of(const Dag *d, const DagReduce *r, StripReduce *out) {
  DType t = shape_sum_type(r, 0);
  int in = r->n == 1 ? sum_element(d, r, 0) : -1;
  if (r->n != 1 || !type_ok(t) || d->nodes.v[r->in[0]].t != t || d->nodes.v[r->init[0]].t != t)
    return false;
  static const uint32_t minus_zero = 0x80000000u, one = 0x3f800000u, inf = 0x7f800000u;
  *out = (StripReduce){.in = digits_of(d, in, false),
                       .init = digits_of(d, r->init[0], true),
                       .is_long = shape_sum_is_long(r),
                       .round = t == DT_BF16 && !r->loose};
#define BODY(name, value)                                                  \
  do {                                                                     \
    out->sum = SUM_##name, out->fn = STRIP_##name, out->neutral = (value); \
    return true;                                                           \
  } while (0)
  bool f = is_real(t), i = t == DT_I32, whole = i || t == DT_U32, b = t == DT_I1;
  switch (r->binary) {
  case OP_ADD:
    if (f) BODY(add, minus_zero);
    if (whole) BODY(i_add, 0);
    break;
  case OP_MULTIPLY:
    if (f) BODY(mul, one);
    if (whole) BODY(i_mul, 1);
    break;
  case OP_MAXIMUM:
    if (f) BODY(max, inf | minus_zero);
    if (i) BODY(i_max, (uint32_t)INT32_MIN);
    break;
  case OP_MINIMUM:
    if (f) BODY(min, inf);
    if (i) BODY(i_min, INT32_MAX);
    break;
  case OP_AND:
    if (b || whole) BODY(and, 0xffffffffu);
    break;
  case OP_OR:
    if (b || whole) BODY(or, 0);
    break;
  default: break;
  }
  if (b && (r->binary == OP_ADD || r->binary == OP_MAXIMUM)) BODY(or, 0);
  if (b && (r->binary == OP_MULTIPLY || r->binary == OP_MINIMUM)) BODY(and, 0xffffffffu);
  return false;
#undef BODY
}

static bool node_ok(const Dag *d, const DagNode *n) {
  if (!type_ok(n->t) || n->in_mask || n->part) return false;
  if (n->kind != N_OP) return true;
  if (n->op->kind == OP_IOTA) return as_in_memory(n->t);
  if (n->op->kind == OP_GATHER && n->t == DT_BF16) return false;
  if (n->n_in > MOST_OPERANDS) return false;
  for (int k = 0; k < n->n_in; k++)
    if (!type_ok(d->nodes.v[n->in[k]].t)) return false;
  return n->op->kind == OP_GATHER || fn_of(n->op) >= 0;
}

static bool graph_ok(const Dag *d) {
  if (d->masks.n > 1) return false;
  for (int i = 0; i < d->nodes.n; i++)
    if (!node_ok(d, &d->nodes.v[i])) return false;
  for (int i = 0; i < d->n_out; i++)
    if (d->out[i] < 0 || !type_ok(d->f->out[i].v->type->dtype)) return false;
  return true;
}

/* ---- sweeps ---- */

#define DEAR_WORK 8 /* operations on an element for which it is kept until the next sweep */
#define MOST_ROWS 4
#define ROW_BYTES 65536

/* done: computed in an earlier sweep; NULL. What is dear of that is kept. */
static void want(Strips *s, int node, bool *wanted, const bool *done) {
  const Dag *d = &s->d;
  const DagNode *n = node_at(d, node);
  if (wanted[node]) return;
  wanted[node] = true;
  if (node >= d->nodes.n) {
    want(s, node - d->nodes.n, wanted, done);
    return;
  }
  if (n->kind != N_OP) return;
  bool dear = n->vec && shape_op_work(n->op) >= DEAR_WORK;
  if (done && done[node] && dear && s->row_bytes && s->row[node] < 0 && s->n_rows < MOST_ROWS)
    s->row[node] = s->n_rows++;
  if (done && done[node] && s->row[node] >= 0) return;
  for (int k = 0; k < n->n_in; k++) want(s, operand(d, n, k), wanted, done);
}

static bool in_place(const Strips *s) {
  for (int i = 0; i < s->f->n_in; i++)
    if (s->f->in_place[i]) return true;
  return false;
}

/* Is the node computed straight into the memory of an output? What is read later must not be overwritten. */
static int own_output(const Strips *s, const Sweep *w, int node, bool last) {
  const Dag *d = &s->d;
  bool safe = !in_place(s) || (last && w->outs.n == 1 && !w->sums.n);
  if (!as_in_memory(node_at(d, node)->t) || !safe) return -1;
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

/* The nodes of a sweep in order, and where their strips are: a strip is free again after its last
 * use. The first n_strips of the roots are wanted as strips. */
static void plan_sweep(Strips *s, Sweep *w, const int *roots, int n_roots, int n_strips,
                       bool *done) {
  const Dag *d = &s->d;
  int nodes = d->nodes.n, n = 2 * nodes, last_vec = -1;
  bool *wanted = xcalloc((size_t)n + 1, 1), *as_strip = xcalloc((size_t)n + 1, 1),
       *busy = xcalloc((size_t)n + 1, 1);
  int *last = xcalloc((size_t)n + 1, sizeof *last), *slot = xcalloc((size_t)n + 1, sizeof *slot);
  for (int k = 0; k < n_roots; k++) want(s, roots[k], wanted, done);
  for (int q = 0; q < n; q++) { /* each node, and rounded */
    int i = q / 2 + (q % 2 ? nodes : 0);
    const DagNode *x = node_at(d, i);
    if (!wanted[i]) continue;
    bool kept = i < nodes && s->row[i] >= 0 && done[i];
    if (x->vec && (x->kind == N_OP || i >= nodes) && !kept) last_vec = i;
    if (i >= nodes) last[i - nodes] = i;
    else
      for (int k = 0; x->kind == N_OP && !kept && k < x->n_in; k++) last[operand(d, x, k)] = i;
  }
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
    o.kind = rounds                     ? DO_FN
             : x->kind == N_INPUT       ? DO_READ
             : x->kind == N_SPLAT       ? DO_SCALAR
             : x->kind == N_REDUCE      ? DO_SCALAR
             : x->op->kind == OP_IOTA   ? DO_IOTA
             : kept                     ? DO_KEPT
             : x->op->kind == OP_GATHER ? DO_GATHER
                                        : DO_FN;
    if (x->vec && !rounds) o.row = s->row[i];
    if (o.kind == DO_FN || o.kind == DO_GATHER) {
      o.fn = rounds ? STRIP_to_bf16 : fn_of(x->op);
      o.n_in = rounds ? 1 : x->n_in;
      for (int k = 0; k < o.n_in; k++) {
        int from = o.in[k] = rounds ? i - nodes : operand(d, x, k);
        if (x->vec && !node_at(d, from)->vec) o.same |= 1u << k;
        if (x->vec && last[from] == i && slot[from] >= 0 && node_at(d, from)->vec)
          busy[slot[from]] = false;
      }
      if (x->vec && o.row < 0 && o.kind == DO_FN) o.out = own_output(s, w, i, i == last_vec);
    }
    bool stays = !in_place(s) || last[i] < n; /* until it is copied or taken in */
    bool in_memory =
        o.kind == DO_READ && as_in_memory(x->t) && stays && dag_vector_stride(d, &x->lin) == 1;
    if (x->vec && o.out < 0 && o.row < 0 && !in_memory) slot[i] = slot_take(w, busy);
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

static int roots_of(Strips *s, int sweep, int *roots, int *n_strips) {
  const Dag *d = &s->d;
  Sweep *w = &s->sweep[sweep];
  bool after = sweep == s->sweeps, split = s->f->kind == FUSION_SPLIT;
  int n = 0;
  w->sums.n = w->outs.n = 0;
  for (int i = 0; i < d->reduces.n; i++) {
    if (d->reduces.v[i].sweep != sweep || after) continue;
    *vec_push(&w->sums) = i;
    roots[n++] = s->reduces[i].in;
  }
  for (int i = 0; i < d->n_out; i++) {
    bool full = s->f->out[i].full;
    if (split && !full) continue; /* strips_finish stores it */
    if (full ? after || d->nodes.v[d->out[i]].depth != sweep : !after) continue;
    *vec_push(&w->outs) = i;
    roots[n++] = s->out[i];
  }
  *n_strips = after ? 0 : n; /* the others are wanted as scalars */
  for (int i = 0; i < d->reduces.n; i++)
    if (after ? split : d->reduces.v[i].sweep == sweep) roots[n++] = s->reduces[i].init;
  return n;
}

/* Which nodes are kept from sweep to sweep: found before any sweep is planned. */
static void choose_rows(Strips *s, int *roots) {
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

static void plan_sweeps(Strips *s) {
  Dag *d = &s->d;
  int *roots = xcalloc((size_t)(2 * d->reduces.n + d->n_out) + 1, sizeof *roots);
  bool *done = xcalloc((size_t)(2 * d->nodes.n) + 1, 1);
  s->row = xcalloc((size_t)d->nodes.n + 1, sizeof *s->row);
  for (int i = 0; i < d->nodes.n; i++) s->row[i] = -1;
  bool lines = s->f->kind == FUSION_ROW && d->vloop == s->task_loops;
  int64_t bytes = lines ? d->loops[d->vloop].extent * 4 : 0;
  s->row_bytes = bytes <= ROW_BYTES ? (size_t)(bytes + 63) / 64 * 64 : 0;
  choose_rows(s, roots);
  for (int k = 0; k <= s->sweeps; k++) {
    Sweep *w = &s->sweep[k];
    int n_strips, n = roots_of(s, k, roots, &n_strips);
    plan_sweep(s, w, roots, n, n_strips, done);
    w->count = 1;
    w->strip = w->n_slots ? STRIP : INT64_MAX;
    if (w->sums.n && s->f->kind == FUSION_ROW) {
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
#define STRIDED_NS 1.0 /* of an element that is not beside the one before, where shuffles take it */
#define WORK_NS 0.03   /* an addition's, in generated code */
#define BYTE_NS 0.06   /* of memory that is not in the cache */
#define CACHED_BYTES 32e6

/* Of what is read or written of it: a table is not read as a whole. */
static double bytes_of(const Value *v, double elements) {
  return MIN((double)type_count(v->type), elements) * dtype_bytes(v->type->dtype);
}

static double excess(const Strips *s, double *out_run_s) {
  const Dag *d = &s->d;
  double line = d->vloop >= 0 ? (double)d->loops[d->vloop].extent : 1, lines = 1, bytes = 0;
  for (int i = 0; i < d->n_loops; i++)
    if (i != d->vloop) lines *= (double)d->loops[i].extent;
  for (int i = 0; i < s->f->n_in; i++) bytes += bytes_of(s->f->in[i], lines * line);
  for (int i = 0; i < s->f->n_out; i++) bytes += bytes_of(s->f->out[i].v, lines * line);
  double calls = 0, strips = 0, fills = 0, sweeps = 0;
  for (int k = 0; k <= s->sweeps; k++) {
    sweeps += s->sweep[k].dos.n > 0;
    double pieces = s->sweep[k].n_slots ? (double)(int64_t)(line / STRIP + 1) : 1;
    calls += s->sweep[k].sums.n * pieces;
    for (int i = 0; i < s->sweep[k].dos.n; i++) {
      const Do *o = &s->sweep[k].dos.v[i];
      calls += pieces;
      strips += o->vec && (o->slot >= 0 || (o->kind == DO_FN && o->row >= 0));
      calls += o->kind == DO_GATHER && o->vec ? line * STRIDED_NS / CALL_NS : 0;
      fills += !o->vec && o->slot >= 0;
    }
  }
  double more = lines * (sweeps * LINE_NS + calls * CALL_NS + d->reduces.n * SUM_NS) +
                lines * line * strips * ELEMENT_NS +
                lines * MIN(line, STRIP) * fills * ELEMENT_NS / 2;
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *n = &d->nodes.v[i];
    if (n->kind == N_INPUT && n->vec && llabs(dag_vector_stride(d, &n->lin)) > 1)
      more += lines * line * STRIDED_NS;
  }
  for (int i = 0; i < d->n_out; i++)
    if (llabs(dag_vector_stride(d, &d->out_lin[i])) > 1) more += lines * line * STRIDED_NS;
  double same = lines * line * shape_work(d) * WORK_NS;
  if (shape_abreast(d, s->simd->lanes) > 1) { /* generated code takes about half of that */
    same /= 2;
    more += same;
  }
  double memory = bytes > CACHED_BYTES ? bytes * BYTE_NS : 0;
  *out_run_s = MAX(same, memory) * 1e-9;
  return MAX(0, MAX(same + more, memory) - MAX(same, memory)) * 1e-9;
}

/* ---- making ---- */

static const StripSimd *simd_here(void) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  if (bits >= 512) return &strips_avx512;
  if (bits >= 256 && __builtin_cpu_supports("fma")) return &strips_avx2;
#endif
  return NULL;
}

static void cut_tasks(Strips *s) {
  FusedCode *c = &s->code;
  int lanes = s->simd->lanes;
  Dag *d = &s->d;
  switch (s->f->kind) {
  case FUSION_LOOP:
    s->task_loops = shape_loop(d, lanes, &c->outer, &c->grain);
    c->name = "fused:loop";
    return;
  case FUSION_ROW:
    s->task_loops = shape_row(d, &c->outer, &c->grain);
    c->name = "fused:row";
    return;
  case FUSION_SPLIT: {
    s->split = shape_split(d, lanes, &c->grain);
    s->task_loops = s->split.kept_loops;
    c->outer = s->split.tasks;
    c->partial_bytes = d->reduces.n * ((s->split.tasks * s->split.row * 4 + 63) / 64 * 64);
    int64_t parts = (s->split.suffix + STRIP - 1) / STRIP;
    c->finish_outer = s->split.kept * parts;
    c->finish_grain = MAX(1, 65536 / (s->split.chunks * MIN(s->split.suffix, STRIP)));
    c->finish = strips_finish;
    c->name = "fused:split";
  }
  }
}

static void fill_constants(Strips *s) {
  const Dag *d = &s->d;
  s->constants = aligned_alloc(64, (size_t)(d->nodes.n + 1) * SCALAR_BYTES);
  for (int i = 0; i < d->nodes.n; i++) {
    const DagNode *x = &d->nodes.v[i];
    if (x->kind != N_SPLAT) continue;
    uint32_t v = 0, *to = (uint32_t *)(void *)(s->constants + (size_t)i * SCALAR_BYTES);
    memcpy(&v, value_splat(x->v), (size_t)dtype_bytes(x->t));
    if (x->t == DT_I1) v = v ? 0xffffffffu : 0;
    if (x->t == DT_BF16) v <<= 16;
    for (int k = 0; k < SCALAR_BYTES / 4; k++) to[k] = v;
  }
}

/* Nodes wanted after the sweeps, and initial values, are scalars there. */
static bool ends_ok(const Strips *s) {
  const Dag *d = &s->d;
  for (int i = 0; i < d->n_out; i++)
    if (!s->f->out[i].full && d->nodes.v[d->out[i]].vec && s->f->kind == FUSION_ROW) return false;
  for (int i = 0; i < d->reduces.n; i++)
    if (node_at(d, s->reduces[i].init)->vec) return false;
  int64_t row = 1;
  for (int i = s->task_loops; i < d->n_loops; i++) row *= d->loops[i].extent;
  if (s->f->kind == FUSION_ROW && row <= MAX_ACROSS_ROW) return false; /* several side by side */
  for (int i = 0; i < d->n_out && s->f->kind == FUSION_SPLIT; i++)
    if (!s->f->out[i].full && d->nodes.v[d->out[i]].kind != N_REDUCE) return false;
  return true;
}

Strips *strips_new(const Fusion *f) {
  const StripSimd *simd = simd_here();
  if (!simd) return NULL;
  Strips *s = xcalloc(1, sizeof *s);
  s->f = f;
  s->simd = simd;
  Dag *d = &s->d;
  Err *e = dag_build(f, d);
  bool ok = !e && graph_ok(d) && shape_lanes(d) == simd->lanes;
  err_free(e);
  s->out = xcalloc((size_t)d->n_out + 1, sizeof *s->out);
  s->reduces = xcalloc((size_t)d->reduces.n + 1, sizeof *s->reduces);
  for (int i = 0; i < d->n_out && ok; i++) s->out[i] = digits_of(d, d->out[i], false);
  for (int i = 0; i < d->reduces.n && ok; i++) ok = reduce_of(d, &d->reduces.v[i], &s->reduces[i]);
  for (int i = 0; i < d->nodes.n && ok; i++)
    if (d->nodes.v[i].kind == N_REDUCE) s->reduces[d->nodes.v[i].reduce].node = i;
  if (ok) {
    cut_tasks(s);
    ok = ends_ok(s);
  }
  if (!ok) {
    strips_free(s);
    return NULL;
  }
  s->sweeps = shape_last_sweep(d) + 1;
  s->sweep = xcalloc((size_t)s->sweeps + 1, sizeof *s->sweep);
  plan_sweeps(s);
  fill_constants(s);
  int slots = 2; /* strips_finish */
  for (int k = 0; k <= s->sweeps; k++) slots = MAX(slots, s->sweep[k].n_slots);
  size_t pointers = (size_t)d->nodes.n * 2 * (2 * sizeof(void *) + sizeof(int64_t));
  s->slots_at = (pointers + (size_t)d->nodes.n * 2 * SCALAR_BYTES + 63) / 64 * 64;
  s->sums_at = s->slots_at + (size_t)slots * STRIP_BYTES;
  s->rows_at = s->sums_at + (size_t)d->reduces.n * 16 * (size_t)simd->lanes * 4;
  s->scratch_bytes = s->rows_at + (size_t)s->n_rows * s->row_bytes;
  s->code.run = strips_run;
  s->code.self = s;
  s->code.flops = dag_flops(d);
  s->excess_s = excess(s, &s->run_s);
  return s;
}

FusedCode strips_code(const Strips *s) { return s->code; }
double strips_excess_s(const Strips *s) { return s->excess_s; }
double strips_run_s(const Strips *s) { return s->run_s; }
int strips_nodes(const Strips *s) { return s->d.nodes.n; }

void strips_free(Strips *s) {
  if (!s) return;
  for (int k = 0; s->sweep && k <= s->sweeps; k++) {
    vec_free(&s->sweep[k].dos);
    vec_free(&s->sweep[k].sums);
    vec_free(&s->sweep[k].outs);
  }
  free(s->constants);
  free(s->sweep);
  free(s->reduces);
  free(s->out);
  free(s->row);
  dag_free(&s->d);
  free(s);
}
