/* Blocks of a function being generated, and the nodes of the graph in them. Each loop level has an
 * insertion point; a node is emitted at the level of the innermost loop that it depends on, so
 * nothing invariant is computed inside. Values are kept until the level's epoch changes (another
 * turn of unrolling, another sweep). */
#include <math.h>

#include "dev/cpu/loops_priv.h"

#define B g->b

V gen_i64(Gen *g, int64_t v) {
  return LLVMConstInt(LLVMInt64TypeInContext(g->ctx), (unsigned long long)v, 1);
}

void gen_at_level(Gen *g, int level) { LLVMPositionBuilderBefore(B, g->point[level]); }

static LLVMBasicBlockRef new_block(Gen *g) {
  return LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
}

/* ---- blocks ---- */

void gen_open_function(Gen *g, const char *name) {
  g->fn = gen_fn(g, name);
  g->bufs = LLVMGetParam(g->fn, 0);
  g->begin = LLVMGetParam(g->fn, 1);
  g->end = LLVMGetParam(g->fn, 2);
  g->scratch = LLVMGetParam(g->fn, 3);
  LLVMPositionBuilderAtEnd(B, new_block(g));
  g->point[0] = LLVMBuildRetVoid(B);
  g->level = 0;
  g->tail = NULL;
  for (int i = 0; i < MAX_LEVELS; i++) g->epoch[i] = ++g->next_epoch;
}

/* The code of `level` goes on in a new block pair: returns the block to fill; control comes back
 * with a branch to *after. */
static LLVMBasicBlockRef fork_block(Gen *g, int level, LLVMBasicBlockRef *after,
                                    LLVMBasicBlockRef *from) {
  V term = g->point[level];
  *from = LLVMGetInstructionParent(term);
  LLVMBasicBlockRef inner = new_block(g);
  *after = new_block(g);
  /* the terminator moves behind */
  LLVMInstructionRemoveFromParent(term);
  LLVMPositionBuilderAtEnd(B, *after);
  LLVMInsertIntoBuilder(B, term);
  return inner;
}

/* for (iv = lo; iv < hi; iv += step), at least once. The body is `level`. */
V gen_open_loop(Gen *g, int level, V lo, V hi, int64_t step) {
  LLVMBasicBlockRef after, from, body = fork_block(g, level - 1, &after, &from),
                                 latch = new_block(g);
  V outer_term = g->point[level - 1];
  LLVMPositionBuilderAtEnd(B, from);
  g->point[level - 1] = LLVMBuildBr(B, body);
  g->resume[level] = outer_term;
  LLVMPositionBuilderAtEnd(B, body);
  V iv = LLVMBuildPhi(B, LLVMInt64TypeInContext(g->ctx), "i");
  g->point[level] = LLVMBuildBr(B, latch);
  LLVMPositionBuilderAtEnd(B, latch);
  V next = LLVMBuildAdd(B, iv, gen_i64(g, step), "");
  LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntSLT, next, hi, ""), body, after);
  V vals[2] = {lo, next};
  LLVMBasicBlockRef blocks[2] = {from, latch};
  LLVMAddIncoming(iv, vals, blocks, 2);
  g->level = level;
  g->epoch[level] = ++g->next_epoch;
  return iv;
}

void gen_close_loop(Gen *g, int level) {
  g->point[level - 1] = g->resume[level];
  g->level = level - 1;
}

/* Code under a condition, as `level`. */
void gen_open_if(Gen *g, int level, V cond) {
  LLVMBasicBlockRef after, from, body = fork_block(g, level - 1, &after, &from);
  V outer_term = g->point[level - 1];
  LLVMPositionBuilderAtEnd(B, from);
  g->point[level - 1] = LLVMBuildCondBr(B, cond, body, after);
  g->resume[level] = outer_term;
  LLVMPositionBuilderAtEnd(B, body);
  g->point[level] = LLVMBuildBr(B, after);
  g->level = level;
  g->epoch[level] = ++g->next_epoch;
}

/* A level without a loop: the same place as the one outside it. */
void gen_open_flat(Gen *g, int level) {
  g->point[level] = g->point[level - 1];
  g->level = level;
  g->epoch[level] = ++g->next_epoch;
}

/* ---- nodes ---- */

V gen_affine(Gen *g, const Affine *a) {
  V off = gen_i64(g, a->off);
  for (int i = 0; i < g->d->n_loops; i++) {
    const Loop *l = &g->d->loops[i];
    int64_t c = a->coef[l->last];
    if (l->extent == 1 || c == 0) continue;
    gen_at_level(g, l->level);
    V t = c == 1 ? l->iv : LLVMBuildMul(B, l->iv, gen_i64(g, c), "");
    off = LLVMBuildAdd(B, off, t, "");
  }
  return off;
}

/* The address of the first lane: what an outer loop adds is added there, so that the innermost is left
 * with what the machine's addressing does. */
static V gen_address(Gen *g, V base, LLVMTypeRef elem, const Affine *a) {
  V off = NULL;
  int level = 0;
  if (a->off) off = gen_i64(g, a->off);
  for (int i = 0; i < g->d->n_loops; i++) {
    const Loop *l = &g->d->loops[i];
    int64_t c = a->coef[l->last];
    if (l->extent == 1 || c == 0) continue;
    if (off && l->level != level) {
      gen_at_level(g, level);
      base = LLVMBuildGEP2(B, elem, base, &off, 1, "");
      off = NULL;
    }
    level = l->level;
    gen_at_level(g, level);
    V t = c == 1 ? l->iv : LLVMBuildMul(B, l->iv, gen_i64(g, c), "");
    off = off ? LLVMBuildAdd(B, off, t, "") : t;
  }
  gen_at_level(g, level);
  return off ? LLVMBuildGEP2(B, elem, base, &off, 1, "") : base;
}

int64_t gen_vector_stride(const Dag *d, const Affine *a) {
  return d->vloop < 0 || d->loops[d->vloop].extent == 1 ? 0 : a->coef[d->loops[d->vloop].last];
}

V gen_lane_ids(Gen *g, LLVMTypeRef t) {
  V e[64];
  for (int i = 0; i < g->vl; i++) e[i] = LLVMConstInt(t, (unsigned long long)i, 0);
  return LLVMConstVector(e, (unsigned)g->vl);
}

V gen_base(Gen *g, int buf) { /* in the entry block */
  LLVMTypeRef p = LLVMPointerTypeInContext(g->ctx, 0);
  gen_at_level(g, 0);
  V at = gen_i64(g, buf);
  V slot = LLVMBuildGEP2(B, p, g->bufs, &at, 1, "");
  return LLVMBuildLoad2(B, p, slot, "");
}

/* Are all values of the form, those of lanes beyond the end included, 32-bit numbers? */
static bool is_small(const Dag *d, const Affine *a) {
  double most = fabs((double)a->off) + 64 * fabs((double)gen_vector_stride(d, a));
  for (int k = 0; k < d->dom.n; k++) most += fabs((double)a->coef[k]) * (double)d->dom.dims[k];
  return most < INT32_MAX;
}

static V gen_mask(Gen *g, int id) {
  DagMask *m = &g->d->masks.v[id];
  if (m->val && m->epoch == g->epoch[m->level]) return m->val;
  V parent = m->parent ? gen_mask(g, m->parent) : NULL;
  V x = gen_affine(g, &m->form);
  gen_at_level(g, m->level);
  V size = gen_i64(g, m->size);
  int64_t stride = gen_vector_stride(g->d, &m->form);
  if (m->vec && stride) {
    LLVMTypeRef t = LLVMInt64TypeInContext(g->ctx);
    if (is_small(g->d, &m->form) && m->size <= INT32_MAX) { /* twice as many to a vector */
      t = LLVMInt32TypeInContext(g->ctx);
      x = LLVMBuildTrunc(B, x, t, "");
      size = LLVMConstInt(t, (unsigned long long)m->size, 1);
    }
    V by = k_splat(g, LLVMConstInt(t, (unsigned long long)stride, 1), g->vl);
    V step = LLVMBuildMul(B, gen_lane_ids(g, t), by, "");
    x = LLVMBuildAdd(B, k_splat(g, x, g->vl), step, "");
    size = k_splat(g, size, g->vl);
  }
  V ok = LLVMBuildICmp(B, LLVMIntULT, x, size, ""); /* unsigned: negative is too large */
  if (m->vec && !stride) ok = k_splat(g, ok, g->vl);
  if (parent) {
    if (m->vec && !g->d->masks.v[m->parent].vec) parent = k_splat(g, parent, g->vl);
    ok = LLVMBuildAnd(B, ok, parent, "");
  }
  m->val = ok;
  m->epoch = g->epoch[m->level];
  return ok;
}

static V raw_node(Gen *g, int id);

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
  for (; id; id = d->masks.v[id].parent) {
    const DagMask *m = &d->masks.v[id];
    if (!m->vec) continue;
    if (gen_vector_stride(d, &m->form) != 1 || m->size <= 0 || m->size % g->vl ||
        m->form.off % g->vl)
      return false;
    for (int i = 0; i < d->n_loops; i++)
      if (i != d->vloop && d->loops[i].extent > 1 && m->form.coef[d->loops[i].last] % g->vl)
        return false;
  }
  return true;
}

static V emit_load(Gen *g, DagNode *n) {
  V base = gen_base(g, n->buf);
  V ptr = gen_address(g, base, mem_type(g, n->t, 0), &n->lin);
  V mask = n->mask ? gen_mask(g, n->mask) : NULL;
  bool mask_vec = n->mask && g->d->masks.v[n->mask].vec;
  gen_at_level(g, n->level);
  g->lanes = n->vec ? g->vl : 0;
  LLVMTypeRef et = mem_type(g, n->t, 0), vt = mem_type(g, n->t, g->vl),
              p = LLVMPointerTypeInContext(g->ctx, 0);
  if (!n->vec) {
    if (mask) ptr = LLVMBuildSelect(B, mask, ptr, base, "");
    return from_mem(g, n->t, gen_align(LLVMBuildLoad2(B, et, ptr, ""), n->t));
  }
  int64_t stride = gen_vector_stride(g->d, &n->lin);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  bool whole = mask && (!mask_vec || (!g->tail && mask_is_whole(g, n->mask)));
  if (whole && stride == 1 && type_count(n->v->type) >= g->vl) {
    if (mask_vec) mask = LLVMBuildExtractElement(B, mask, LLVMConstNull(i32), "");
    ptr = LLVMBuildSelect(B, mask, ptr, base, ""); /* whole vectors: any that can be read will do */
    mask = NULL;
  }
  if (mask && !mask_vec) mask = k_splat(g, mask, g->vl);
  if (g->tail) mask = mask ? LLVMBuildAnd(B, mask, g->tail, "") : g->tail;
  V align = LLVMConstInt(i32, (unsigned long long)dtype_bytes(n->t), 0);
  if (n->part && stride == 2) return load_part(g, n, ptr, mask);
  if (stride == 1) {
    if (!mask) return from_mem(g, n->t, gen_align(LLVMBuildLoad2(B, vt, ptr, ""), n->t));
    LLVMTypeRef types[2] = {vt, p};
    V args[4] = {ptr, align, mask, LLVMConstNull(vt)};
    return from_mem(g, n->t, gen_intrinsic(g, "llvm.masked.load", types, 2, args, 4));
  }
  LLVMTypeRef i64 = LLVMInt64TypeInContext(g->ctx);
  V step = LLVMBuildMul(B, gen_lane_ids(g, i64), k_splat(g, gen_i64(g, stride), g->vl), "");
  V ptrs = LLVMBuildGEP2(B, et, ptr, &step, 1, "");
  if (!mask) mask = k_splat(g, LLVMConstInt(LLVMInt1TypeInContext(g->ctx), 1, 0), g->vl);
  LLVMTypeRef types[2] = {vt, LLVMVectorType(p, (unsigned)g->vl)};
  V args[4] = {ptrs, align, mask, LLVMConstNull(vt)};
  return from_mem(g, n->t, gen_intrinsic(g, "llvm.masked.gather", types, 2, args, 4));
}

static V emit_iota(Gen *g, DagNode *n) {
  V x = gen_affine(g, &n->lin);
  gen_at_level(g, n->level);
  g->lanes = n->vec ? g->vl : 0;
  DType mid = DT_I32; /* numbers of elements along a dimension fit, or wrap as they should */
  LLVMTypeRef it = LLVMInt32TypeInContext(g->ctx);
  if (dtype_bytes(n->t) == 8) {
    mid = DT_I64;
    it = LLVMInt64TypeInContext(g->ctx);
  }
  x = LLVMBuildTruncOrBitCast(B, x, it, "");
  if (n->vec) {
    V stride = k_splat(g, LLVMConstInt(it, (unsigned long long)gen_vector_stride(g->d, &n->lin), 1),
                       g->vl);
    x = LLVMBuildAdd(B, k_splat(g, x, g->vl), LLVMBuildMul(B, gen_lane_ids(g, it), stride, ""), "");
  }
  return emit_convert(g, mid, n->t, x);
}

V gen_node(Gen *g, int id) {
  DagNode *n = &g->d->nodes.v[id];
  V v = raw_node(g, id);
  if (!n->loose) return v;
  if (n->rounded && n->rounded_epoch == g->epoch[n->level]) return n->rounded;
  gen_at_level(g, n->level);
  g->lanes = n->vec ? g->vl : 0;
  g->plain_nan = !n->odd_nan;
  n->rounded = round_to(g, n->t, v);
  g->plain_nan = false;
  n->rounded_epoch = n->epoch;
  return n->rounded;
}

V gen_node_at(Gen *g, int id, int level, bool vec, bool rounded) {
  rounded |= !dag_keeps_digits(&g->d->nodes.v[id]);
  V v = rounded ? gen_node(g, id) : raw_node(g, id);
  gen_at_level(g, level);
  return vec && !g->d->nodes.v[id].vec ? k_splat(g, v, g->vl) : v;
}

static V emit_opnode(Gen *g, DagNode *n) {
  const Op *op = n->op;
  if (op->kind == OP_IOTA) return emit_iota(g, n);
  V in[8];
  DType in_t[8];
  for (int k = 0; k < n->n_in; k++) {
    in[k] = gen_node_at(g, n->in[k], n->level, n->vec, emit_digits(op->kind) == DIGITS_OF_TYPE);
    in_t[k] = op->operands[k]->type->dtype;
  }
  if (n->in_mask) {
    V masks[8];
    int first = op->kind == OP_PAD ? 1 : n->n_in - 1;
    for (int k = 0; k < n->n_in; k++) {
      masks[k] = n->in_mask[k] != n->mask ? gen_mask(g, n->in_mask[k]) : NULL;
      gen_at_level(g, n->level);
      if (masks[k] && n->vec && !g->d->masks.v[n->in_mask[k]].vec)
        masks[k] = k_splat(g, masks[k], g->vl);
    }
    V r = in[first];
    for (int k = first - 1; k >= 0; k--)
      r = masks[k] ? LLVMBuildSelect(B, masks[k], in[k], r, "") : in[k];
    return r;
  }
  g->lanes = n->vec ? g->vl : 0;
  return emit_op(g, op, in_t, in, n->t);
}

static V raw_node(Gen *g, int id) {
  DagNode *n = &g->d->nodes.v[id];
  if (n->val && n->epoch == g->epoch[n->level]) return n->val;
  V v = NULL;
  switch (n->kind) {
  case N_SPLAT: v = k_elem(g, n->t, value_splat(n->v)); break;
  case N_INPUT: v = emit_load(g, n); break;
  case N_OP: v = emit_opnode(g, n); break;
  case N_REDUCE: assert(!"a reduction is used before its sweep"); break;
  }
  n->val = v;
  n->epoch = g->epoch[n->level];
  return v;
}

/* Stores v at ptr, its lanes `stride` elements apart, those that the tail has. */
static void store_lanes(Gen *g, DType t, V v, V ptr, int64_t stride, V tail) {
  int lanes = (int)LLVMGetVectorSize(LLVMTypeOf(v));
  if (!tail && stride == 1) {
    gen_align(LLVMBuildStore(B, v, ptr), t);
    return;
  }
  LLVMTypeRef p = LLVMPointerTypeInContext(g->ctx, 0);
  V align = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned long long)dtype_bytes(t), 0);
  V mask = tail ? tail : k_splat(g, LLVMConstInt(LLVMInt1TypeInContext(g->ctx), 1, 0), lanes);
  if (stride == 1) {
    LLVMTypeRef types[2] = {mem_type(g, t, lanes), p};
    V args[4] = {v, ptr, align, mask};
    gen_intrinsic(g, "llvm.masked.store", types, 2, args, 4);
    return;
  }
  V step = LLVMBuildMul(B, gen_lane_ids(g, LLVMInt64TypeInContext(g->ctx)),
                        k_splat(g, gen_i64(g, stride), g->vl), "");
  V ptrs = LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &step, 1, "");
  LLVMTypeRef types[2] = {mem_type(g, t, g->vl), LLVMVectorType(p, (unsigned)g->vl)};
  V args[4] = {v, ptrs, align, mask};
  gen_intrinsic(g, "llvm.masked.scatter", types, 2, args, 4);
}

static void store_complex(Gen *g, const Value *v, V re, V im, V ptr, int64_t stride) {
  DType t = dtype_real_of(v->type->dtype);
  V one = gen_i64(g, 1), next = LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &one, 1, "");
  if (!g->lanes) {
    gen_align(LLVMBuildStore(B, re, ptr), t);
    gen_align(LLVMBuildStore(B, im, next), t);
  } else if (stride == 1) {
    V tail = g->tail ? interleave(g, g->tail, g->tail) : NULL;
    store_lanes(g, t, interleave(g, re, im), ptr, 1, tail);
  } else {
    store_lanes(g, t, re, ptr, 2 * stride, g->tail);
    store_lanes(g, t, im, next, 2 * stride, g->tail);
  }
}

void gen_store(Gen *g, int out, int level) {
  Dag *d = g->d;
  const FusionOut *o = &d->f->out[out];
  DType t = o->v->type->dtype;
  int64_t stride = gen_vector_stride(d, &d->out_lin[out]);
  bool vec = stride != 0 && level == d->loops[d->vloop].level;
  const int *parts = dtype_is_complex(t) ? d->nodes.v[d->out[out]].in : NULL;
  V v = gen_node_at(g, parts ? parts[0] : d->out[out], level, vec, false);
  V im = parts ? gen_node_at(g, parts[1], level, vec, false) : NULL;
  g->lanes = vec ? g->vl : 0;
  const DagNode *n = &d->nodes.v[d->out[out]];
  g->plain_nan = !n->odd_nan;
  if (!parts) v = to_mem(g, t, v, !dag_keeps_digits(n));
  g->plain_nan = false;
  V ptr = gen_address(g, gen_base(g, d->f->n_in + out), mem_type(g, t, 0), &d->out_lin[out]);
  gen_at_level(g, level);
  if (parts) store_complex(g, o->v, v, im, ptr, stride);
  else if (vec) store_lanes(g, t, v, ptr, stride, g->tail);
  else gen_align(LLVMBuildStore(B, v, ptr), t);
}
