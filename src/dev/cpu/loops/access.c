/* Memory of nodes: where the lanes of a vector lie, loads and stores of all forms. */
#include "dev/cpu/loops/loops_priv.h"

#define B g->b

void gen_lane_steps(const Gen *g, const Affine *a, int64_t *steps) {
  const Dag *d = g->d;
  int64_t by = dag_vector_stride(d, a), width = d->loops[d->vloop].extent;
  int64_t rows = d->braid ? a->coef[d->loops[d->vloop - 1].last] : 0;
  for (int64_t l = 0; l < g->vl; l++) {
    int64_t e = g->first_lane + l;
    steps[l] = d->braid ? e / width * rows + e % width * by : l * by;
  }
}

V gen_const_lanes(Gen *g, LLVMTypeRef t, const int64_t *v) {
  V e[64];
  for (int i = 0; i < g->vl; i++) e[i] = LLVMConstInt(t, (unsigned long long)v[i], 1);
  return LLVMConstVector(e, (unsigned)g->vl);
}

bool gen_steps_none(const Gen *g, const int64_t *steps) {
  for (int i = 0; i < g->vl; i++)
    if (steps[i]) return false;
  return true;
}

static bool in_a_row(const Gen *g, const int64_t *steps) {
  for (int i = 1; i < g->vl; i++)
    if (steps[i] != steps[0] + i) return false;
  return true;
}

V gen_align(V load, DType t) {
  LLVMSetAlignment(load, (unsigned)dtype_bytes(t));
  return load;
}

/* a0 b0 a1 b1 ...: the parts of complex numbers as they lie in memory; or a mask for both. */
static V interleave(Gen *g, V a, V b) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  V e[128];
  for (int i = 0; i < 2 * g->vl; i++)
    e[i] = LLVMConstInt(i32, (unsigned long long)(i / 2 + i % 2 * g->vl), 0);
  return LLVMBuildShuffleVector(B, a, b, LLVMConstVector(e, 2 * (unsigned)g->vl), "");
}

/* One part of neighbouring complex numbers: both are loaded, as the other part's node does, too. */
static V load_part(Gen *g, const DagNode *n, V ptr, V mask) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx), vt = mem_type(g, n->t, 2 * g->vl);
  V back = gen_i64(g, -1), both, e[64];
  if (n->part == 2) ptr = LLVMBuildGEP2(B, mem_type(g, n->t, 0), ptr, &back, 1, "");
  if (mask) {
    LLVMTypeRef types[2] = {vt, LLVMPointerTypeInContext(g->ctx, 0)};
    V align = LLVMConstInt(i32, (unsigned long long)dtype_bytes(n->t), 0);
    V args[4] = {ptr, align, interleave(g, mask, mask), LLVMConstNull(vt)};
    both = gen_intrinsic(g, "llvm.masked.load", types, 2, args, 4);
  } else {
    both = gen_align(LLVMBuildLoad2(B, vt, ptr, ""), n->t);
  }
  for (int i = 0; i < g->vl; i++)
    e[i] = LLVMConstInt(i32, (unsigned long long)(2 * i + n->part - 1), 0);
  return LLVMBuildShuffleVector(B, both, LLVMGetPoison(vt), LLVMConstVector(e, (unsigned)g->vl),
                                "");
}

/* Is a condition the same for all lanes? Vectors begin at multiples of their length. */
static bool mask_is_whole(const Gen *g, int id) {
  const Dag *d = g->d;
  if (d->braid) return false;
  for (; id; id = d->masks.v[id].parent) {
    const DagMask *m = &d->masks.v[id];
    if (!m->vec || m->known) continue;
    if (dag_vector_stride(d, &m->form) != 1 || m->size <= 0 || m->size % g->vl ||
        m->form.off % g->vl || g->first % g->vl)
      return false;
    for (int i = 0; i < d->n_loops; i++)
      if (i != d->vloop && d->loops[i].extent > 1 && m->form.coef[d->loops[i].last] % g->vl)
        return false;
  }
  return true;
}

static V lane_pointers(Gen *g, DType t, V ptr, const int64_t *steps) {
  V at = gen_const_lanes(g, LLVMInt64TypeInContext(g->ctx), steps);
  return LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &at, 1, "");
}

#define MAX_PIECES 4        /* that are as fast as a gather */
#define MAX_WIDE_PIECES 16  /* where one instruction takes lanes of two vectors */
#define MAX_NARROW_PIECES 8 /* of types that there are no gathers of */

static int most_pieces(DType t) {
  if (dtype_bytes(t) < 4) return MAX_NARROW_PIECES;
  return cpu_vector_bits() >= 512 ? MAX_WIDE_PIECES : MAX_PIECES;
}

/* Lanes that are near each other, from a few neighbouring elements at a time. NULL: they are not, or
 * nobody knows yet which are wanted. Nothing outside the first and the last wanted element is read;
 * lanes that are not wanted are 0. */
static V load_pieces(Gen *g, DType t, V ptr, const int64_t *steps, V mask) {
  if (mask && !LLVMIsConstant(mask)) return NULL;
  bool want[64];
  int64_t lo = INT64_MAX, hi = INT64_MIN;
  for (int i = 0; i < g->vl; i++) {
    V on = mask ? LLVMGetAggregateElement(mask, (unsigned)i) : NULL;
    want[i] = !mask || (on && LLVMIsAConstantInt(on) && LLVMConstIntGetZExtValue(on));
    if (mask && (!on || !LLVMIsAConstantInt(on))) return NULL;
    if (want[i]) lo = MIN(lo, steps[i]), hi = MAX(hi, steps[i]);
  }
  if (lo > hi) return LLVMConstNull(mem_type(g, t, g->vl));
  int64_t first[MAX_WIDE_PIECES], width = MIN(g->vl, hi - lo + 1);
  int n = 0, most = most_pieces(t);
  for (int64_t next = lo; next <= hi;) {
    int64_t left = INT64_MAX; /* the first that no piece has */
    for (int i = 0; i < g->vl; i++)
      if (want[i] && steps[i] >= next) left = MIN(left, steps[i]);
    if (left == INT64_MAX) break;
    if (n == most) return NULL;
    first[n++] = MIN(left, hi - width + 1);
    next = left + width;
  }
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx), vt = mem_type(g, t, g->vl);
  V all = LLVMConstNull(vt), e[64];
  for (int k = 0; k < n; k++) {
    V at = gen_i64(g, first[k]);
    V x = gen_align(LLVMBuildLoad2(B, mem_type(g, t, (int)width),
                                   LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &at, 1, ""), ""),
                    t);
    if (width < g->vl) { /* to whole vectors */
      for (int i = 0; i < g->vl; i++)
        e[i] = LLVMConstInt(i32, (unsigned long long)MIN(i, width - 1), 0);
      x = LLVMBuildShuffleVector(B, x, x, LLVMConstVector(e, (unsigned)g->vl), "");
    }
    for (int i = 0; i < g->vl; i++) {
      int64_t in = steps[i] - first[k];
      bool here = want[i] && in >= 0 && in < width;
      e[i] = LLVMConstInt(i32, (unsigned long long)(here ? g->vl + in : i), 0);
    }
    all = LLVMBuildShuffleVector(B, all, x, LLVMConstVector(e, (unsigned)g->vl), "");
  }
  return all;
}

/* The column that a strided input is in rows of `stride` elements; -1: such rows are not its own, or not all
 * inside. */
static int64_t column_of(const Dag *d, const DagNode *n, int64_t stride) {
  if (n->kind != N_INPUT || n->part || n->mask || n->lin.off < 0) return -1;
  int64_t column = n->lin.off % stride, lo = n->lin.off - column, hi = lo + stride;
  for (int k = 0; k < d->dom.n; k++) {
    int64_t span = n->lin.coef[k] * (d->dom.dims[k] - 1);
    if (d->dom.dims[k] == 1) continue;
    if (n->lin.coef[k] % stride) return -1;
    *(span < 0 ? &lo : &hi) += span;
  }
  return lo >= 0 && hi <= type_count(n->v->type) ? column : -1;
}

/* The first node that reads columns of the same rows; NULL: there is no other. */
static DagNode *rows_of(const Dag *d, const DagNode *n, int64_t stride, int64_t column) {
  DagNode *first = NULL;
  int count = 0;
  for (int i = 0; i < d->nodes.n; i++) {
    DagNode *o = &d->nodes.v[i];
    int64_t c = column_of(d, o, stride);
    if (c < 0 || o->buf != n->buf) continue;
    Affine at = o->lin;
    at.off += column - c;
    if (!affine_equal(&d->dom, &at, &n->lin)) continue;
    first = first ? first : o;
    count++;
  }
  return count > 1 ? first : NULL;
}

/* A column of narrow rows, of which others are wanted, too: the rows are loaded once, as they lie. NULL:
 * they are not such. */
static V load_column(Gen *g, const DagNode *n, int64_t stride) {
  if (g->d->braid || stride < 2 || stride > most_pieces(n->t)) return NULL;
  int64_t column = column_of(g->d, n, stride);
  DagNode *first = column < 0 ? NULL : rows_of(g->d, n, stride, column);
  if (!first) return NULL;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx), vt = mem_type(g, n->t, g->vl);
  if (!first->rows) first->rows = ARENA_ARRAY(g->d->mem, V, MAX_WIDE_PIECES);
  if (first->rows_epoch != g->epoch[n->level]) {
    Affine at = n->lin;
    at.off -= column;
    V ptr = gen_address(g, gen_base(g, n->buf), mem_type(g, n->t, 0), &at);
    gen_at_level(g, n->level);
    for (int64_t k = 0; k < stride; k++) {
      V off = gen_i64(g, k * g->vl);
      V from = LLVMBuildGEP2(B, mem_type(g, n->t, 0), ptr, &off, 1, "");
      first->rows[k] = gen_align(LLVMBuildLoad2(B, vt, from, ""), n->t);
    }
    first->rows_epoch = g->epoch[n->level];
  }
  V all = first->rows[0], e[64];
  for (int64_t k = 1; k < stride; k++) {
    for (int64_t l = 0; l < g->vl; l++) {
      int64_t in = l * stride + column - k * g->vl, kept = k == 1 ? in + g->vl : l;
      bool here = in >= 0 && in < g->vl;
      e[l] = LLVMConstInt(i32, (unsigned long long)(here ? g->vl + in : MIN(kept, g->vl - 1)), 0);
    }
    all = LLVMBuildShuffleVector(B, all, first->rows[k], LLVMConstVector(e, (unsigned)g->vl), "");
  }
  return all;
}

static V reversed(Gen *g, V v) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  V e[64];
  for (int i = 0; i < g->vl; i++) e[i] = LLVMConstInt(i32, (unsigned long long)(g->vl - 1 - i), 0);
  return LLVMBuildShuffleVector(B, v, LLVMGetPoison(LLVMTypeOf(v)),
                                LLVMConstVector(e, (unsigned)g->vl), "");
}

/* A vector of which no lane is wanted may lie where there is no memory: a masked load leaves it alone,
 * but finds out so slowly, some 200 ns, that it is better sent elsewhere. */
static V any_lane(Gen *g, V mask) {
  V bits = LLVMBuildBitCast(B, mask, LLVMIntTypeInContext(g->ctx, (unsigned)g->vl), "");
  return LLVMBuildICmp(B, LLVMIntNE, bits, LLVMConstNull(LLVMTypeOf(bits)), "");
}

#define MOST_ALONE 4

/* In a loop that is one function memory becomes registers where it is read and written as what it is:
 * the lanes of a constant mask as a shorter vector, or one by one. NULL: not so few. */
static V load_few(Gen *g, DType t, V ptr, V mask) {
  int ones = 0, last = -1;
  if (!g->is_while || !LLVMIsConstant(mask)) return NULL;
  bool on[64];
  for (int i = 0; i < g->vl; i++) {
    V x = LLVMGetAggregateElement(mask, (unsigned)i);
    if (!x || !LLVMIsAConstantInt(x)) return NULL;
    on[i] = LLVMConstIntGetZExtValue(x);
    if (on[i]) ones++, last = i;
  }
  LLVMTypeRef et = mem_type(g, t, 0), i32 = LLVMInt32TypeInContext(g->ctx);
  V all = LLVMConstNull(mem_type(g, t, g->vl));
  if (ones > 1 && ones == last + 1) {
    V e[64], x = gen_align(LLVMBuildLoad2(B, mem_type(g, t, ones), ptr, ""), t);
    for (int i = 0; i < g->vl; i++) e[i] = LLVMConstInt(i32, (unsigned long long)MIN(i, ones), 0);
    return LLVMBuildShuffleVector(B, x, LLVMConstNull(LLVMTypeOf(x)),
                                  LLVMConstVector(e, (unsigned)g->vl), "");
  }
  if (ones > MOST_ALONE) return NULL;
  for (int i = 0; i < g->vl; i++) {
    V at = gen_i64(g, i);
    if (!on[i]) continue;
    V x = gen_align(LLVMBuildLoad2(B, et, LLVMBuildGEP2(B, et, ptr, &at, 1, ""), ""), t);
    all = LLVMBuildInsertElement(B, all, x, LLVMConstInt(i32, (unsigned long long)i, 0), "");
  }
  return all;
}

V gen_load(Gen *g, DagNode *n) {
  bool gathers = n->kind == N_OP;
  V at_once = gathers ? gather_lanes(g, n) : turned_load(g, n);
  if (at_once) return at_once;
  V base = gen_base(g, n->buf);
  V ptr = gen_address(g, base, mem_type(g, n->t, 0), &n->lin);
  if (gathers) ptr = gather_window(g, n, ptr);
  V mask = dag_mask_known(g->d, n->mask, 0) > 0 ? NULL : gen_mask(g, n->mask);
  bool mask_vec = mask && g->d->masks.v[n->mask].vec;
  gen_at_level(g, n->level);
  g->lanes = n->vec ? g->vl : 0;
  LLVMTypeRef et = mem_type(g, n->t, 0), vt = mem_type(g, n->t, g->vl),
              p = LLVMPointerTypeInContext(g->ctx, 0);
  if (!n->vec) {
    if (mask) ptr = LLVMBuildSelect(B, mask, ptr, base, "");
    return from_mem(g, n->t, gen_align(LLVMBuildLoad2(B, et, ptr, ""), n->t));
  }
  int64_t stride = dag_vector_stride(g->d, &n->lin), steps[64];
  gen_lane_steps(g, &n->lin, steps);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  bool whole = mask && (!mask_vec || (!g->tail && mask_is_whole(g, n->mask)));
  if (whole && !gathers && !g->d->braid && stride == 1 && type_count(n->v->type) >= g->vl) {
    if (mask_vec) mask = LLVMBuildExtractElement(B, mask, LLVMConstNull(i32), "");
    ptr = LLVMBuildSelect(B, mask, ptr, base, ""); /* whole vectors: any that can be read will do */
    mask = NULL;
  }
  if (mask && !mask_vec) mask = k_splat(g, mask, g->vl);
  if (g->tail) mask = mask ? LLVMBuildAnd(B, mask, g->tail, "") : g->tail;
  V align = LLVMConstInt(i32, (unsigned long long)dtype_bytes(n->t), 0);
  if (n->part && stride == 2 && !g->d->braid) return load_part(g, n, ptr, mask);
  if (in_a_row(g, steps)) {
    V first = gen_i64(g, steps[0]);
    if (steps[0]) ptr = LLVMBuildGEP2(B, et, ptr, &first, 1, "");
    if (!mask) return from_mem(g, n->t, gen_align(LLVMBuildLoad2(B, vt, ptr, ""), n->t));
    V few = load_few(g, n->t, ptr, mask);
    if (few) return from_mem(g, n->t, few);
    if (mask_vec) ptr = LLVMBuildSelect(B, any_lane(g, mask), ptr, base, "");
    LLVMTypeRef types[2] = {vt, p};
    V args[4] = {ptr, align, mask, LLVMConstNull(vt)};
    return from_mem(g, n->t, gen_intrinsic(g, "llvm.masked.load", types, 2, args, 4));
  }
  if (mask && stride == -1 && !g->d->braid) { /* backwards, and turned round */
    V first = gen_i64(g, 1 - g->vl);
    ptr = LLVMBuildGEP2(B, et, ptr, &first, 1, "");
    mask = reversed(g, mask);
    if (mask_vec) ptr = LLVMBuildSelect(B, any_lane(g, mask), ptr, base, "");
    LLVMTypeRef types[2] = {vt, p};
    V args[4] = {ptr, align, mask, LLVMConstNull(vt)};
    V v = gen_intrinsic(g, "llvm.masked.load", types, 2, args, 4);
    return from_mem(g, n->t, reversed(g, v));
  }
  V pieces = mask ? NULL : load_column(g, n, stride);
  if (!pieces) pieces = load_pieces(g, n->t, ptr, steps, mask);
  if (pieces) return from_mem(g, n->t, pieces);
  if (!mask && cpu_vector_bits() < 512) {
    V at = gen_const_lanes(g, LLVMInt64TypeInContext(g->ctx), steps);
    return from_mem(g, n->t, gather_each(g, n->t, ptr, at));
  }
  V ptrs = lane_pointers(g, n->t, ptr, steps);
  if (!mask) mask = k_splat(g, LLVMConstInt(LLVMInt1TypeInContext(g->ctx), 1, 0), g->vl);
  LLVMTypeRef types[2] = {vt, LLVMVectorType(p, (unsigned)g->vl)};
  V args[4] = {ptrs, align, mask, LLVMConstNull(vt)};
  return from_mem(g, n->t, gen_intrinsic(g, "llvm.masked.gather", types, 2, args, 4));
}

/* How many lanes a constant mask has, the first ones; 0: others. */
static int first_lanes(const Gen *g, V mask, int lanes) {
  int n = 0;
  for (int i = 0; i < lanes; i++) {
    V x = LLVMIsConstant(mask) ? LLVMGetAggregateElement(mask, (unsigned)i) : NULL;
    if (!x || !LLVMIsAConstantInt(x)) return 0;
    if (!LLVMConstIntGetZExtValue(x)) continue;
    if (n++ < i) return 0;
  }
  return g->is_while ? n : 0;
}

void gen_store_lanes(Gen *g, DType t, V v, V ptr, const int64_t *steps, V tail) {
  int lanes = (int)LLVMGetVectorSize(LLVMTypeOf(v));
  if (!tail && !steps) {
    gen_align(LLVMBuildStore(B, v, ptr), t);
    return;
  }
  int few = tail && !steps ? first_lanes(g, tail, lanes) : 0;
  if (few) {
    V e[64];
    for (int i = 0; i < few; i++)
      e[i] = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned long long)i, 0);
    v = LLVMBuildShuffleVector(B, v, v, LLVMConstVector(e, (unsigned)few), "");
    gen_align(LLVMBuildStore(B, v, ptr), t);
    return;
  }
  LLVMTypeRef p = LLVMPointerTypeInContext(g->ctx, 0);
  V align = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned long long)dtype_bytes(t), 0);
  V mask = tail ? tail : k_splat(g, LLVMConstInt(LLVMInt1TypeInContext(g->ctx), 1, 0), lanes);
  if (!steps) {
    LLVMTypeRef types[2] = {mem_type(g, t, lanes), p};
    V args[4] = {v, ptr, align, mask};
    gen_intrinsic(g, "llvm.masked.store", types, 2, args, 4);
    return;
  }
  LLVMTypeRef types[2] = {mem_type(g, t, g->vl), LLVMVectorType(p, (unsigned)g->vl)};
  V args[4] = {v, lane_pointers(g, t, ptr, steps), align, mask};
  gen_intrinsic(g, "llvm.masked.scatter", types, 2, args, 4);
}

static void store_complex(Gen *g, const Value *v, V re, V im, V ptr, const int64_t *steps) {
  DType t = dtype_real_of(v->type->dtype);
  V one = gen_i64(g, 1), next = LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &one, 1, "");
  if (!g->lanes) {
    gen_align(LLVMBuildStore(B, re, ptr), t);
    gen_align(LLVMBuildStore(B, im, next), t);
  } else if (!steps) {
    V tail = g->tail ? interleave(g, g->tail, g->tail) : NULL;
    gen_store_lanes(g, t, interleave(g, re, im), ptr, NULL, tail);
  } else {
    int64_t twice[64];
    for (int i = 0; i < g->vl; i++) twice[i] = 2 * steps[i];
    gen_store_lanes(g, t, re, ptr, twice, g->tail);
    gen_store_lanes(g, t, im, next, twice, g->tail);
  }
}

V gen_stored(Gen *g, int out, int level, bool vec, V *im) {
  Dag *d = g->d;
  DType t = d->f->out[out].v->type->dtype;
  const int *parts = dtype_is_complex(t) ? d->nodes.v[d->out[out]].in : NULL;
  V v = gen_node_at(g, parts ? parts[0] : d->out[out], level, vec, false);
  *im = parts ? gen_node_at(g, parts[1], level, vec, false) : NULL;
  g->lanes = vec ? g->vl : 0;
  const DagNode *n = &d->nodes.v[d->out[out]];
  g->plain_nan = !n->odd_nan;
  if (!parts) v = to_mem(g, t, v, !dag_keeps_digits(n));
  g->plain_nan = false;
  return v;
}

void gen_store(Gen *g, int out, int level) {
  if (gen_store_woven(g, out, level)) return;
  Dag *d = g->d;
  const FusionOut *o = &d->f->out[out];
  DType t = o->v->type->dtype;
  int64_t by[64], *steps = by;
  bool vec = d->vloop >= 0 && level >= d->loops[d->vloop].level;
  if (vec) gen_lane_steps(g, &d->out_lin[out], by);
  vec = vec && !gen_steps_none(g, by);
  V im, v = gen_stored(g, out, level, vec, &im);
  V ptr = gen_address(g, gen_base(g, d->f->n_in + out), mem_type(g, t, 0), &d->out_lin[out]);
  gen_at_level(g, level);
  if (vec && in_a_row(g, by)) {
    V first = gen_i64(g, by[0]);
    if (by[0]) ptr = LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &first, 1, "");
    steps = NULL;
  }
  if (im) store_complex(g, o->v, v, im, ptr, steps);
  else if (vec) gen_store_lanes(g, t, v, ptr, steps, g->tail);
  else gen_align(LLVMBuildStore(B, v, ptr), t);
}
