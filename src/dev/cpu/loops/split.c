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

typedef struct Finish {
  DagReduce *reduce;
  bool vec;
} Finish;

static void finish_flush(Gen *g, void *arg) {
  const Finish *f = arg;
  sum_flush(g, f->reduce, g->level, f->vec, 1);
}

/* Partial results: for each (reduction, operand) an area of tasks x row elements. */
static void gen_finish(Gen *g, Dag *d, const char *name, const SplitShape *shape, FusedCode *out) {
  int64_t chunks = shape->chunks, suffix = shape->suffix, row = shape->row, offset = 0;
  char *fname = xasprintf("%s_finish", name);
  gen_open_function(g, fname);
  free(fname);
  bool vec = suffix > 1;
  int64_t vectors = vec ? (suffix + g->vl - 1) / g->vl : 1;
  out->finish_outer = shape->kept * vectors;
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
      offset += (shape->tasks * row * shape_part_bytes(shape_sum_type(r, k)) + 63) / 64 * 64;
    }
    Finish f = {r, vec};
    Walk w = {.flush = finish_flush, .arg = &f};
    int64_t block = shape_finish_block(r, shape);
    bool totals = block < chunks;
    V zero = gen_i64(g, 0), all = gen_i64(g, chunks);
    if (totals) sum_init_totals(g, r, 1, vec, 1);
    V c = totals ? walk_open_blocks(g, 2, zero, all, 1, block) : gen_open_loop(g, 2, zero, all, 1);
    gen_at_level(g, 2);
    g->lanes = vec ? g->vl : 0;
    V task = LLVMBuildAdd(B, LLVMBuildMul(B, k0, gen_i64(g, chunks), ""), c, "");
    V idx = LLVMBuildAdd(B, LLVMBuildMul(B, task, gen_i64(g, row), ""), vec ? first : gen_i64(g, 0),
                         "");
    V a[4], x[4];
    for (int k = 0; k < r->n; k++) {
      DType ty = shape_sum_type(r, k);
      V off = gen_i64(g, offsets[k]);
      V area = LLVMBuildGEP2(B, LLVMInt8TypeInContext(g->ctx), base, &off, 1, "");
      x[k] = load_part(g, ty, LLVMBuildGEP2(B, acc_type(g, ty, 0), area, &idx, 1, ""));
      a[k] = LLVMBuildLoad2(B, reg_type(g, ty, g->lanes), r->acc[k * 8], "");
    }
    sum_combine(g, r, a, x, a);
    for (int k = 0; k < r->n; k++) LLVMBuildStore(B, a[k], r->acc[k * 8]);
    if (totals) {
      walk_close_blocks(g, 2, &w);
      sum_take_totals(g, r, 1, vec, 1);
    } else {
      gen_close_loop(g, 2);
    }
    V init[4];
    for (int k = 0; k < r->n; k++) {
      init[k] = gen_node(g, r->init[k]);
      gen_at_level(g, 1);
      g->lanes = vec ? g->vl : 0;
      init[k] = k_splat(g, init[k], g->lanes);
      a[k] = LLVMBuildLoad2(B, reg_type(g, shape_sum_type(r, k), g->lanes), r->acc[k * 8], "");
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

void gen_split(Gen *g, Dag *d, const char *name, FusedCode *out) {
  const SplitShape shape = shape_split(d, g->vl, &out->grain);
  int n = d->n_loops, fs = shape.first_suffix, nk = shape.kept_loops, count = shape.count;
  int64_t row = shape.row;
  gen_open_function(g, name);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_at_level(g, 1);
  V k0 = LLVMBuildUDiv(B, t, gen_i64(g, shape.chunks), ""),
    c = LLVMBuildURem(B, t, gen_i64(g, shape.chunks), "");
  gen_decode(g, 1, k0, 0, nk);
  gen_at_level(g, 1);
  V len = gen_i64(g, shape.length), r0v = gen_i64(g, d->loops[nk].extent);
  V lo = LLVMBuildMul(B, c, len, ""), hi = LLVMBuildAdd(B, lo, len, "");
  hi = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, hi, r0v, ""), hi, r0v, "");
  Split s = {.in_registers = shape.in_registers, .first_suffix = fs, .count = count};
  int n_part = 0;
  for (int i = 0; i < d->reduces.n; i++) n_part += d->reduces.v[i].n;
  s.part = xcalloc((size_t)n_part + 1, sizeof(V));
  int64_t offset = 0;
  V base = gen_base(g, d->f->n_in + d->n_out);
  gen_at_level(g, 1);
  for (int i = 0, at = 0; i < d->reduces.n; i++)
    for (int k = 0; k < d->reduces.v[i].n; k++, at++) {
      DType ty = shape_sum_type(&d->reduces.v[i], k);
      V off = LLVMBuildAdd(B, LLVMBuildMul(B, t, gen_i64(g, row * shape_part_bytes(ty)), ""),
                           gen_i64(g, offset), "");
      s.part[at] = LLVMBuildGEP2(B, LLVMInt8TypeInContext(g->ctx), base, &off, 1, "");
      offset += (shape.tasks * row * shape_part_bytes(ty) + 63) / 64 * 64;
    }
  out->partial_bytes = shape.part_bytes;
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
        DType ty = shape_sum_type(r, k);
        store_part(g, ty, sum_neutral(g, r, k, init[k]),
                   LLVMBuildGEP2(B, acc_type(g, ty, 0), s.part[at + k], &iv, 1, ""));
      }
      gen_close_loop(g, 2);
    }
    at += r->n;
  }
  bool expand = shape.in_registers && fs < n, totals = shape.totals;
  Walk w = {.body = split_body,
            .arg = &s,
            .unroll = fs == n && !shape.vector_chunks ? count : 1,
            .expand = expand};
  if (totals) w.flush = split_flush;
  for (int i = 0; i < d->reduces.n && totals; i++)
    if (shape_sum_is_long(&d->reduces.v[i])) sum_init_totals(g, &d->reduces.v[i], 1, true, count);
  if (shape.vector_chunks) {
    walk_range(g, 2, lo, hi, false, &w);
  } else if (expand && totals) {
    d->loops[nk].iv = walk_open_blocks(g, 2, lo, hi, 1, LONG_SUM);
    walk_loops(g, nk + 1, 3, &w);
    walk_close_blocks(g, 2, &w);
  } else {
    d->loops[nk].iv = gen_open_loop(g, 2, lo, hi, 1);
    walk_loops(g, nk + 1, 3, &w);
    if (w.flush && shape_flush_before(d, g->vl, nk + 1, w.unroll)) w.flush(g, w.arg);
    gen_close_loop(g, 2);
  }
  for (int i = 0, at = 0; i < d->reduces.n && s.in_registers; i++) {
    DagReduce *r = &d->reduces.v[i];
    if (totals && shape_sum_is_long(r)) sum_take_totals(g, r, 1, true, count);
    if (fs == n) {
      V v[4];
      sum_collect(g, r, 1, true, count, v);
      for (int k = 0; k < r->n; k++) store_part(g, shape_sum_type(r, k), v[k], s.part[at + k]);
    } else {
      gen_at_level(g, 1);
      g->lanes = g->vl;
      for (int k = 0; k < r->n; k++)
        for (int u = 0; u < count; u++) {
          DType ty = shape_sum_type(r, k);
          V v = LLVMBuildLoad2(B, reg_type(g, ty, g->vl), r->acc[k * 8 + u], ""),
            o = gen_i64(g, (int64_t)u * g->vl);
          store_part(g, ty, v, LLVMBuildGEP2(B, acc_type(g, ty, 0), s.part[at + k], &o, 1, ""));
        }
    }
    at += r->n;
  }
  gen_close_loop(g, 1);
  free(s.part);
  out->outer = shape.tasks;
  gen_finish(g, d, name, &shape, out);
}
