/* Short rows in the lanes of vectors, read and written row by row: as many rows as a vector has lanes
 * are loaded as vectors along the rows and turned in registers, so that vector e has element e of
 * each row; and turned back to be stored. Lane by lane that is several times slower. */
#include <stdlib.h>

#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

struct Turned {
  int kept_loops; /* the loops of a row are the others, and unrolled */
  int64_t length;
  int64_t element; /* of the row, at hand */
  V **loaded;      /* by node, by element; NULL: not yet */
  V **stored;      /* by output, by element, as in memory; NULL: it is not turned */
};

void turned_open(Gen *g, int kept_loops, int64_t length) {
  Turned *t = g->turned = xcalloc(1, sizeof *t);
  *t = (Turned){.kept_loops = kept_loops, .length = length};
  t->loaded = xcalloc((size_t)g->d->nodes.n + 1, sizeof *t->loaded);
  t->stored = xcalloc((size_t)g->d->n_out + 1, sizeof *t->stored);
}

void turned_close(Gen *g) {
  Turned *t = g->turned;
  for (int i = 0; i < g->d->nodes.n; i++) free(t->loaded[i]);
  for (int i = 0; i < g->d->n_out; i++) free(t->stored[i]);
  free(t->loaded);
  free(t->stored);
  free(t);
  g->turned = NULL;
}

void turned_at(Gen *g, int64_t element) {
  if (g->turned) g->turned->element = element;
}

/* Square of vectors: lane i of v[k] and lane k of v[i] change places. */
static void turn_square(Gen *g, V *v) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  for (int h = g->vl / 2; h; h /= 2) {
    V first[64], second[64];
    for (int l = 0; l < g->vl; l++) {
      first[l] = LLVMConstInt(i32, (unsigned)(l & h ? g->vl + l - h : l), 0);
      second[l] = LLVMConstInt(i32, (unsigned)(l & h ? g->vl + l : l + h), 0);
    }
    for (int i = 0; i < g->vl; i++) {
      if (i & h) continue;
      V a = v[i], b = v[i + h];
      v[i] = LLVMBuildShuffleVector(B, a, b, LLVMConstVector(first, (unsigned)g->vl), "");
      v[i + h] = LLVMBuildShuffleVector(B, a, b, LLVMConstVector(second, (unsigned)g->vl), "");
    }
  }
}

static V place(Gen *g, DType t, V ptr, int64_t at) {
  V off = gen_i64(g, at);
  return LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &off, 1, "");
}

/* Lanes of a vector at place `at` that lie in the rows at hand; NULL: all. */
static V inside(Gen *g, int64_t length, int64_t at) {
  int64_t left = g->vl * length - at;
  V e[64];
  for (int l = 0; l < g->vl; l++) e[l] = LLVMConstInt(LLVMInt1TypeInContext(g->ctx), l < left, 0);
  return left >= g->vl ? NULL : LLVMConstVector(e, (unsigned)g->vl);
}

static V load_at(Gen *g, DType t, V ptr, int64_t length, int64_t at) {
  LLVMTypeRef vt = mem_type(g, t, g->vl);
  V mask = inside(g, length, at), from = place(g, t, ptr, at);
  if (!mask) return gen_align(LLVMBuildLoad2(B, vt, from, ""), t);
  LLVMTypeRef types[2] = {vt, LLVMPointerTypeInContext(g->ctx, 0)};
  V align = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), (unsigned)dtype_bytes(t), 0);
  V args[4] = {from, align, mask, LLVMConstNull(vt)};
  return gen_intrinsic(g, "llvm.masked.load", types, 2, args, 4);
}

V turned_load(Gen *g, DagNode *n) {
  Turned *t = g->turned;
  if (!t || g->tail || !n->vec || !shape_turns(g->d, n, t->kept_loops, t->length)) return NULL;
  int id = (int)(n - g->d->nodes.v);
  if (!t->loaded[id]) {
    V *all = t->loaded[id] = xcalloc((size_t)(t->length + g->vl), sizeof(V));
    V ptr = gen_address(g, gen_base(g, n->buf), mem_type(g, n->t, 0), &n->lin);
    gen_at_level(g, n->level);
    ptr = place(g, n->t, ptr, -t->element);
    for (int64_t c = 0; c < t->length; c += g->vl) {
      for (int64_t r = 0; r < g->vl; r++)
        all[c + r] = load_at(g, n->t, ptr, t->length, r * t->length + c);
      turn_square(g, all + c);
    }
  }
  gen_at_level(g, n->level);
  g->lanes = g->vl;
  return from_mem(g, n->t, t->loaded[id][t->element]);
}

bool turned_store(Gen *g, int out, int level) {
  Turned *t = g->turned;
  if (!t || g->tail || !shape_turns_out(g->d, out, t->kept_loops, t->length)) return false;
  V im;
  if (!t->stored[out]) t->stored[out] = xcalloc((size_t)(t->length + g->vl), sizeof(V));
  t->stored[out][t->element] = gen_stored(g, out, level, true, &im);
  return true;
}

static void store_rows(Gen *g, DType t, V ptr, V *v, int64_t length) {
  int64_t n = (length + g->vl - 1) / g->vl;
  for (int64_t e = length; e < n * g->vl; e++) v[e] = LLVMGetPoison(LLVMTypeOf(v[0]));
  for (int64_t c = 0; c < n; c++) turn_square(g, v + c * g->vl);
  /* In order: what is too long for its row is overwritten by the next. */
  for (int64_t r = 0; r < g->vl; r++)
    for (int64_t c = 0; c < n; c++) {
      int64_t at = r * length + c * g->vl;
      gen_store_lanes(g, t, v[c * g->vl + r], place(g, t, ptr, at), NULL, inside(g, length, at));
    }
}

void turned_flush(Gen *g, int level) {
  Turned *t = g->turned;
  const Dag *d = g->d;
  if (!t) return;
  for (int i = 0; i < d->n_out; i++) {
    if (!t->stored[i]) continue;
    DType type = d->f->out[i].v->type->dtype;
    V ptr = gen_address(g, gen_base(g, d->f->n_in + i), mem_type(g, type, 0), &d->out_lin[i]);
    gen_at_level(g, level);
    ptr = place(g, type, ptr, -t->element);
    if (t->length <= LEAST_TURNED) gen_store_columns(g, type, (int)t->length, t->stored[i], ptr);
    else store_rows(g, type, ptr, t->stored[i], t->length);
    free(t->stored[i]);
    t->stored[i] = NULL;
  }
}
