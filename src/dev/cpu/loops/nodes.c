/* Blocks of a function being generated, and the nodes of the graph in them. Each loop level has an
 * insertion point; a node is emitted at the level of the innermost loop that it depends on, so
 * nothing invariant is computed inside. Values are kept until the level's epoch changes (another
 * turn of unrolling, another sweep). */
#include <math.h>

#include "dev/cpu/loops/loops_priv.h"
#include "compile/pass/query.h"

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
  LLVMPositionBuilderAtEnd(B, new_block(g));
  g->point[0] = LLVMBuildRetVoid(B);
  g->level = 0;
  g->sweep = 0;
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

void gen_open_either(Gen *g, V cond, LLVMBasicBlockRef blocks[2]) {
  LLVMBasicBlockRef after, from;
  blocks[0] = fork_block(g, g->level, &after, &from);
  blocks[1] = new_block(g);
  for (int i = 0; i < 2; i++) {
    LLVMPositionBuilderAtEnd(B, blocks[i]);
    LLVMBuildBr(B, after);
  }
  LLVMPositionBuilderAtEnd(B, from);
  LLVMBuildCondBr(B, cond, blocks[0], blocks[1]);
  gen_at_level(g, g->level);
}

/* A level without a loop: the same place as the one outside it. */
void gen_open_flat(Gen *g, int level) {
  g->point[level] = g->point[level - 1];
  g->level = level;
  g->epoch[level] = ++g->next_epoch;
}

V gen_alloca(Gen *g, LLVMTypeRef t) {
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(g->fn);
  LLVMPositionBuilder(B, entry, LLVMGetFirstInstruction(entry));
  return LLVMBuildAlloca(B, t, "");
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
V gen_address(Gen *g, V base, LLVMTypeRef elem, const Affine *a) {
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
  double most = fabs((double)a->off) + 64 * fabs((double)dag_vector_stride(d, a));
  if (d->braid) most += 64 * fabs((double)a->coef[d->loops[d->vloop - 1].last]);
  for (int k = 0; k < d->dom.n; k++) most += fabs((double)a->coef[k]) * (double)d->dom.dims[k];
  return most < INT32_MAX;
}

V gen_mask(Gen *g, int id) {
  DagMask *m = &g->d->masks.v[id];
  if (m->val && m->epoch == g->epoch[m->level]) return m->val;
  V parent = m->parent ? gen_mask(g, m->parent) : NULL;
  if (m->known) {
    V ok = LLVMConstInt(LLVMInt1TypeInContext(g->ctx), m->known > 0, 0);
    if (m->vec) ok = k_splat(g, ok, g->vl);
    m->val = parent && m->known > 0 ? parent : ok;
    m->epoch = g->epoch[m->level];
    return m->val;
  }
  V x = gen_affine(g, &m->form);
  gen_at_level(g, m->level);
  V size = gen_i64(g, m->size);
  int64_t steps[64] = {0};
  if (m->vec) gen_lane_steps(g, &m->form, steps);
  bool along = m->vec && !gen_steps_none(g, steps);
  if (along) {
    LLVMTypeRef t = LLVMInt64TypeInContext(g->ctx);
    if (is_small(g->d, &m->form) && m->size <= INT32_MAX) { /* twice as many to a vector */
      t = LLVMInt32TypeInContext(g->ctx);
      x = LLVMBuildTrunc(B, x, t, "");
      size = LLVMConstInt(t, (unsigned long long)m->size, 1);
    }
    x = LLVMBuildAdd(B, k_splat(g, x, g->vl), gen_const_lanes(g, t, steps), "");
    size = k_splat(g, size, g->vl);
  }
  V ok = LLVMBuildICmp(B, LLVMIntULT, x, size, ""); /* unsigned: negative is too large */
  if (m->vec && !along) ok = k_splat(g, ok, g->vl);
  if (parent) {
    if (m->vec && !g->d->masks.v[m->parent].vec) parent = k_splat(g, parent, g->vl);
    ok = LLVMBuildAnd(B, ok, parent, "");
  }
  m->val = ok;
  m->epoch = g->epoch[m->level];
  return ok;
}

static V raw_node(Gen *g, int id);

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
    int64_t steps[64];
    gen_lane_steps(g, &n->lin, steps);
    x = LLVMBuildAdd(B, k_splat(g, x, g->vl), gen_const_lanes(g, it, steps), "");
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

static bool same_cipher(const DagNode *a, const DagNode *b) {
  return b->kind == N_OP && b->op->kind == OP_THREEFRY && b->mask == a->mask &&
         !memcmp(a->in, b->in, 4 * sizeof *a->in);
}

/* All parts that the graph has of a cipher come from one call. Operands that are the same for all lanes
 * are stored where they are known, a full vector. */
static V emit_threefry(Gen *g, const DagNode *n) {
  V in[4], parts[3] = {NULL};
  unsigned same = 0;
  for (int k = 0; k < 4; k++) {
    const DagNode *from = &g->d->nodes.v[n->in[k]];
    bool spread = n->vec && !from->vec;
    V v = gen_node_at(g, n->in[k], spread ? from->level : n->level, false, true);
    if (spread) same |= 1u << k;
    in[k] = math_stored(g, spread ? k_splat(g, v, cpu_vector_bits() / 32) : v);
  }
  for (int i = 0; i < g->d->nodes.n; i++) {
    const DagNode *o = &g->d->nodes.v[i];
    if (same_cipher(n, o)) parts[op_int(o->op, "part", 0)] = in[0];
  }
  gen_at_level(g, n->level);
  g->lanes = n->vec ? g->vl : 0;
  math_threefry(g, in, same, reg_type(g, DT_U32, g->lanes), parts);
  for (int i = 0; i < g->d->nodes.n; i++) {
    DagNode *o = &g->d->nodes.v[i];
    if (!same_cipher(n, o)) continue;
    o->val = parts[op_int(o->op, "part", 0)];
    o->epoch = g->epoch[o->level];
  }
  return n->val;
}

static V emit_opnode(Gen *g, DagNode *n) {
  const Op *op = n->op;
  if (op->kind == OP_IOTA) return emit_iota(g, n);
  if (op->kind == OP_GATHER) return gen_load(g, n);
  if (op->kind == OP_THREEFRY) return emit_threefry(g, n);
  V in[8];
  DType in_t[8];
  for (int k = 0; k < n->n_in; k++) {
    if (!dag_takes(g->d, n, k)) continue;
    in[k] = gen_node_at(g, n->in[k], n->level, n->vec, emit_digits(op->kind) == DIGITS_OF_TYPE);
    in_t[k] = op->operands[k]->type->dtype;
  }
  if (n->in_mask) {
    V r = NULL; /* of those taken, the last one where no other is */
    for (int k = n->n_in - 1; k >= 0; k--) {
      if (!dag_takes(g->d, n, k)) continue;
      if (!r || dag_mask_known(g->d, n->in_mask[k], n->mask) > 0) {
        r = in[k];
        continue;
      }
      V mask = gen_mask(g, n->in_mask[k]);
      gen_at_level(g, n->level);
      if (n->vec && !g->d->masks.v[n->in_mask[k]].vec) mask = k_splat(g, mask, g->vl);
      r = LLVMBuildSelect(B, mask, in[k], r, "");
    }
    return r;
  }
  g->lanes = n->vec ? g->vl : 0;
  return emit_op(g, op, in_t, in, n->t);
}

static V raw_node(Gen *g, int id) {
  DagNode *n = &g->d->nodes.v[id];
  if (n->val && n->epoch == g->epoch[n->level]) return n->val;
  V v = block_kept(g, n);
  switch (n->kind) {
  case N_SPLAT: v = k_elem(g, n->t, value_splat(n->v)); break;
  case N_INPUT: v = gen_load(g, n); break;
  case N_OP: v = v ? v : emit_opnode(g, n); break;
  case N_REDUCE: assert(!"a reduction is used before its sweep"); break;
  }
  n->val = v;
  n->epoch = g->epoch[n->level];
  return v;
}

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
