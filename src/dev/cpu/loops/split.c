/* Split reductions: [tasks: kept x chunks of the first reduced dimension] x reduced x suffix; sums in
 * registers or in the partial results' memory, one set a task; `finish` adds them up in order of the
 * chunks: the result does not depend on threads. */
#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

typedef struct Split {
  bool in_registers; /* accumulators of the suffix */
  int count;         /* of them; of an operand */
  int first_suffix;  /* loop */
  V *part;           /* per reduction and operand: memory of this task's partial results */
} Split;

static LLVMTypeRef acc_type(Gen *g, DType t, int lanes) {
  return t == DT_I1 ? mem_type(g, t, lanes) : reg_type(g, t, lanes);
}
static V acc_out(Gen *g, DType t, V v) { return t == DT_I1 ? to_mem(g, t, v, true) : v; }
static V acc_in(Gen *g, DType t, V v) { return t == DT_I1 ? from_mem(g, t, v) : v; }

static V load_part(Gen *g, DType t, V ptr) {
  V v = LLVMBuildLoad2(B, acc_type(g, t, g->lanes), ptr, "");
  LLVMSetAlignment(v, (unsigned)shape_part_bytes(t));
  return acc_in(g, t, v);
}

static void store_part(Gen *g, DType t, V v,
                       V ptr) { /* rows of partial results are padded to whole vectors */
  V s = LLVMBuildStore(B, acc_out(g, t, v), ptr);
  LLVMSetAlignment(s, (unsigned)shape_part_bytes(t));
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
    V idx = suffix_index(g, s->first_suffix, level);
    g->lanes = g->vl;
    for (int k = 0; k < r->n; k++) {
      DType t = shape_sum_type(r, k);
      ptr[k] = LLVMBuildGEP2(B, acc_type(g, t, 0), s->part[at + k], &idx, 1, "");
      a[k] = load_part(g, t, ptr[k]);
    }
    sum_combine(g, r, a, x, a);
    for (int k = 0; k < r->n; k++) store_part(g, shape_sum_type(r, k), a[k], ptr[k]);
    at += r->n;
  }
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full) gen_store(g, i, level);
}

static void split_flush(Gen *g, void *arg) {
  const Split *s = arg;
  for (int i = 0; i < g->d->reduces.n; i++)
    if (shape_sum_is_long(&g->d->reduces.v[i]))
      sum_flush(g, &g->d->reduces.v[i], g->level, true, s->count);
}

/* ---- the last step: partial results become sums ---- */

typedef struct Finish {
  Gen *g;
  const SplitShape *shape;
  DagReduce *reduce; /* the one at work */
  bool vec;          /* vectors of the suffix */
  V kept, first;     /* which sums: number of the kept element, first one of the suffix */
  V mask;            /* of the last vector of the suffix; NULL: it is full */
  V base;            /* partial results: for each (reduction, operand) an area of tasks x row */
} Finish;

static int64_t area_bytes(const SplitShape *shape, DType t) {
  return (shape->tasks * shape->row * shape_part_bytes(t) + 63) / 64 * 64;
}

static int finish_lanes(const Finish *f) { return f->vec ? f->g->vl : 0; }

/* kept * n + first */
static V finish_index(const Finish *f, V outer, int64_t n) {
  Gen *g = f->g;
  return LLVMBuildAdd(B, LLVMBuildMul(B, outer, gen_i64(g, n), ""),
                      f->vec ? f->first : gen_i64(g, 0), "");
}

static void finish_flush(Gen *g, void *arg) {
  const Finish *f = arg;
  sum_flush(g, f->reduce, g->level, f->vec, 1);
}

static V finish_sum(const Finish *f, int k) {
  Gen *g = f->g;
  return LLVMBuildLoad2(B, reg_type(g, shape_sum_type(f->reduce, k), g->lanes),
                        f->reduce->acc[k * 8], "");
}

/* Adds up the chunks; offset: of the reduction's first area. */
static void finish_add(Finish *f, int64_t offset) {
  Gen *g = f->g;
  DagReduce *r = f->reduce;
  int64_t chunks = f->shape->chunks, block = shape_finish_block(r, f->shape);
  bool totals = block < chunks;
  V zero = gen_i64(g, 0), all = gen_i64(g, chunks);
  if (totals) sum_init_totals(g, r, 1, f->vec, 1);
  V c = totals ? walk_open_blocks(g, 2, zero, all, 1, block) : gen_open_loop(g, 2, zero, all, 1);
  gen_at_level(g, 2);
  g->lanes = finish_lanes(f);
  V task = LLVMBuildAdd(B, LLVMBuildMul(B, f->kept, gen_i64(g, chunks), ""), c, "");
  V idx = finish_index(f, task, f->shape->row);
  V a[4], x[4];
  for (int k = 0; k < r->n; k++) {
    DType t = shape_sum_type(r, k);
    V off = gen_i64(g, offset);
    offset += area_bytes(f->shape, t);
    V area = LLVMBuildGEP2(B, LLVMInt8TypeInContext(g->ctx), f->base, &off, 1, "");
    x[k] = load_part(g, t, LLVMBuildGEP2(B, acc_type(g, t, 0), area, &idx, 1, ""));
    a[k] = finish_sum(f, k);
  }
  sum_combine(g, r, a, x, a);
  for (int k = 0; k < r->n; k++) LLVMBuildStore(B, a[k], r->acc[k * 8]);
  if (totals) {
    walk_close_blocks(g, 2, &(Walk){.flush = finish_flush, .arg = f});
    sum_take_totals(g, r, 1, f->vec, 1);
  } else {
    gen_close_loop(g, 2);
  }
}

/* The sums, with what they begin with. */
static void finish_take(const Finish *f, V *a) {
  Gen *g = f->g;
  DagReduce *r = f->reduce;
  V init[4];
  for (int k = 0; k < r->n; k++) {
    init[k] = gen_node(g, r->init[k]);
    gen_at_level(g, 1);
    g->lanes = finish_lanes(f);
    init[k] = k_splat(g, init[k], g->lanes);
    a[k] = finish_sum(f, k);
  }
  sum_combine(g, r, init, a, a);
}

static void finish_store(const Finish *f, int o, V sum) {
  Gen *g = f->g;
  DType t = g->d->nodes.v[g->d->out[o]].t;
  g->lanes = finish_lanes(f);
  V v = to_mem(g, t, sum, false);
  V dst = gen_base(g, g->d->f->n_in + o);
  gen_at_level(g, 1);
  V at = finish_index(f, f->kept, f->shape->suffix);
  V ptr = LLVMBuildGEP2(B, mem_type(g, t, 0), dst, &at, 1, "");
  if (!f->mask) {
    gen_align(LLVMBuildStore(B, v, ptr), t);
    return;
  }
  LLVMTypeRef types[2] = {mem_type(g, t, g->vl), LLVMPointerTypeInContext(g->ctx, 0)};
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  V args[4] = {v, ptr, LLVMConstInt(i32, (unsigned long long)dtype_bytes(t), 0), f->mask};
  gen_intrinsic(g, "llvm.masked.store", types, 2, args, 4);
}

static void gen_finish(Gen *g, Dag *d, const char *name, const SplitShape *shape, FusedCode *out) {
  char *fname = xasprintf("%s_finish", name);
  gen_open_function(g, fname);
  free(fname);
  Finish f = {.g = g, .shape = shape, .vec = shape->suffix > 1};
  int64_t vectors = f.vec ? (shape->suffix + g->vl - 1) / g->vl : 1;
  out->finish_outer = shape->kept * vectors;
  out->finish_grain = MAX(1, 65536 / (shape->chunks * (f.vec ? g->vl : 1)));
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_at_level(g, 1);
  f.kept = LLVMBuildUDiv(B, t, gen_i64(g, vectors), "");
  V s0 = LLVMBuildURem(B, t, gen_i64(g, vectors), "");
  f.first = LLVMBuildMul(B, s0, gen_i64(g, g->vl), "");
  if (f.vec && shape->suffix % g->vl) {
    V left = k_splat(g, LLVMBuildSub(B, gen_i64(g, shape->suffix), f.first, ""), g->vl);
    f.mask =
        LLVMBuildICmp(B, LLVMIntSLT, gen_lane_ids(g, LLVMInt64TypeInContext(g->ctx)), left, "");
  }
  f.base = gen_base(g, d->f->n_in + d->n_out);
  int64_t offset = 0;
  for (int i = 0; i < d->reduces.n; i++) {
    V sums[4];
    f.reduce = &d->reduces.v[i];
    sum_init(g, f.reduce, 1, f.vec, 1);
    finish_add(&f, offset);
    finish_take(&f, sums);
    for (int k = 0; k < f.reduce->n; k++) offset += area_bytes(shape, shape_sum_type(f.reduce, k));
    for (int o = 0; o < d->n_out; o++) {
      const DagNode *n = &d->nodes.v[d->out[o]];
      if (!d->f->out[o].full && n->kind == N_REDUCE && n->reduce == i)
        finish_store(&f, o, sums[n->v->index]);
    }
  }
  gen_close_loop(g, 1);
}

/* ---- a task: one chunk of the first reduced dimension ---- */

/* Where the task's partial results lie; t: its number. */
static void find_parts(Gen *g, const SplitShape *shape, V t, Split *s) {
  Dag *d = g->d;
  int n = 0;
  for (int i = 0; i < d->reduces.n; i++) n += d->reduces.v[i].n;
  s->part = xcalloc((size_t)n + 1, sizeof(V));
  int64_t offset = 0;
  V base = gen_base(g, d->f->n_in + d->n_out);
  gen_at_level(g, 1);
  for (int i = 0, at = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++, at++) {
      DType ty = shape_sum_type(&d->reduces.v[i], k);
      V off = LLVMBuildMul(B, t, gen_i64(g, shape->row * shape_part_bytes(ty)), "");
      off = LLVMBuildAdd(B, off, gen_i64(g, offset), "");
      s->part[at] = LLVMBuildGEP2(B, LLVMInt8TypeInContext(g->ctx), base, &off, 1, "");
      offset += area_bytes(shape, ty);
    }
}

/* The partial results in memory begin as neutral. */
static void clear_parts(Gen *g, const DagReduce *r, V *part, int64_t row) {
  V init[4];
  for (int k = 0; k < r->n; k++) init[k] = gen_node(g, r->init[k]);
  V iv = gen_open_loop(g, 2, gen_i64(g, 0), gen_i64(g, row - g->vl), g->vl);
  gen_at_level(g, 2);
  g->lanes = g->vl;
  for (int k = 0; k < r->n; k++) {
    DType t = shape_sum_type(r, k);
    store_part(g, t, sum_neutral(g, r, k, init[k]),
               LLVMBuildGEP2(B, acc_type(g, t, 0), part[k], &iv, 1, ""));
  }
  gen_close_loop(g, 2);
}

/* The chunk's sums go from registers to the partial results; suffix: one sum for each element of it. */
static void store_sums(Gen *g, DagReduce *r, V *part, bool suffix, int count) {
  if (!suffix) {
    V v[4];
    sum_collect(g, r, 1, true, count, v);
    for (int k = 0; k < r->n; k++) store_part(g, shape_sum_type(r, k), v[k], part[k]);
    return;
  }
  gen_at_level(g, 1);
  g->lanes = g->vl;
  for (int k = 0; k < r->n; k++)
    for (int u = 0; u < count; u++) {
      DType t = shape_sum_type(r, k);
      V v = LLVMBuildLoad2(B, reg_type(g, t, g->vl), r->acc[k * 8 + u], "");
      V o = gen_i64(g, (int64_t)u * g->vl);
      store_part(g, t, v, LLVMBuildGEP2(B, acc_type(g, t, 0), part[k], &o, 1, ""));
    }
}

/* The loops from lo to hi of the first reduced dimension. */
static void walk_chunk(Gen *g, const SplitShape *shape, V lo, V hi, Split *s) {
  Dag *d = g->d;
  int first = shape->kept_loops;
  bool suffix = s->first_suffix < d->n_loops, expand = s->in_registers && suffix;
  Walk w = {.body = split_body,
            .arg = s,
            .unroll = !suffix && !shape->vector_chunks ? s->count : 1,
            .expand = expand};
  if (shape->totals) w.flush = split_flush;
  for (int i = 0; i < d->reduces.n && shape->totals; i++)
    if (shape_sum_is_long(&d->reduces.v[i]))
      sum_init_totals(g, &d->reduces.v[i], 1, true, s->count);
  if (shape->vector_chunks) {
    walk_range(g, 2, lo, hi, false, &w);
  } else if (expand && shape->totals) {
    d->loops[first].iv = walk_open_blocks(g, 2, lo, hi, 1, LONG_SUM);
    walk_loops(g, first + 1, 3, &w);
    walk_close_blocks(g, 2, &w);
  } else {
    d->loops[first].iv = gen_open_loop(g, 2, lo, hi, 1);
    walk_loops(g, first + 1, 3, &w);
    if (w.flush && shape_flush_before(d, g->vl, first + 1, w.unroll)) w.flush(g, w.arg);
    gen_close_loop(g, 2);
  }
}

void gen_split(Gen *g, Dag *d, const char *name, FusedCode *out) {
  const SplitShape shape = shape_split(d, g->vl, &out->grain);
  Split s = {
      .in_registers = shape.in_registers, .first_suffix = shape.first_suffix, .count = shape.count};
  gen_open_function(g, name);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_at_level(g, 1);
  V kept = LLVMBuildUDiv(B, t, gen_i64(g, shape.chunks), "");
  V chunk = LLVMBuildURem(B, t, gen_i64(g, shape.chunks), "");
  gen_decode(g, 1, kept, 0, shape.kept_loops);
  gen_at_level(g, 1);
  V length = gen_i64(g, shape.length), end = gen_i64(g, d->loops[shape.kept_loops].extent);
  V lo = LLVMBuildMul(B, chunk, length, ""), hi = LLVMBuildAdd(B, lo, length, "");
  hi = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, hi, end, ""), hi, end, "");
  find_parts(g, &shape, t, &s);
  for (int i = 0, at = 0; i < d->reduces.n; at += d->reduces.v[i++].n) {
    if (s.in_registers) sum_init(g, &d->reduces.v[i], 1, true, s.count);
    else clear_parts(g, &d->reduces.v[i], s.part + at, shape.row);
  }
  walk_chunk(g, &shape, lo, hi, &s);
  for (int i = 0, at = 0; i < d->reduces.n && s.in_registers; at += d->reduces.v[i++].n) {
    DagReduce *r = &d->reduces.v[i];
    if (shape.totals && shape_sum_is_long(r)) sum_take_totals(g, r, 1, true, s.count);
    store_sums(g, r, s.part + at, s.first_suffix < d->n_loops, s.count);
  }
  gen_close_loop(g, 1);
  free(s.part);
  out->outer = shape.tasks;
  out->partial_bytes = shape.part_bytes;
  gen_finish(g, d, name, &shape, out);
}
