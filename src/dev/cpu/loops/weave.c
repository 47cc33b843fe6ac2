/* Outputs in parts (FusionOut.part) that lie between each other: [x0 y0 z0 x1 y1 z1 ...] is put
 * together in registers and stored whole vectors at a time. */
#include "dev/cpu/loops/loops_priv.h"
#include "compile/pass/query.h"

#define B g->b

typedef struct Weave {
  int first, n; /* outputs */
  int numbers;  /* of an element: 2 of a complex one */
  uint8_t *from,
      *lane; /* by place behind the first: which vector, real and imaginary parts one after
                           the other, and which of its lanes */
} Weave;

static bool is_along(const Gen *g, int level) {
  return g->d->vloop >= 0 && level >= g->d->loops[g->d->vloop].level;
}

/* A part that is stored in an earlier sweep than another cannot wait for it. */
static bool at_once(const Dag *d, int first, int n) {
  const FusionOut *o = &d->f->out[first];
  if (first < 0 || first + n > d->n_out) return false;
  for (int k = 0; k < n; k++) {
    if (o[k].v != o->v || o[k].part != k) return false;
    if (o->full && d->nodes.v[d->out[first + k]].depth != d->nodes.v[d->out[first]].depth)
      return false;
  }
  return true;
}

/* Do the lanes of all parts fill some vectors? */
static bool lanes_meet(const Gen *g, Weave *w) {
  const Affine *lin = &g->d->out_lin[w->first];
  int64_t steps[64], all = (int64_t)w->n * g->vl * w->numbers;
  memset(w->from, 0xff, (size_t)all);
  for (int k = 0; k < w->n; k++) {
    gen_lane_steps(g, &lin[k], steps);
    for (int l = 0; l < g->vl; l++)
      for (int c = 0; c < w->numbers; c++) {
        int64_t at = (lin[k].off - lin->off + steps[l]) * w->numbers + c;
        if (at < 0 || at >= all || w->from[at] != 0xff) return false;
        w->from[at] = (uint8_t)(k * w->numbers + c);
        w->lane[at] = (uint8_t)l;
      }
  }
  return true;
}

/* The vl numbers that begin at place `at`. */
static V woven(Gen *g, const Weave *w, const V *v, int64_t at) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  V all = NULL, e[64];
  int of[64]; /* the lane of `all` that a number is in; -1: not yet */
  for (int i = 0; i < g->vl; i++) of[i] = -1;
  for (int k = 0; k < w->n * w->numbers; k++) {
    bool any = false;
    for (int i = 0; i < g->vl; i++) any |= w->from[at + i] == k;
    if (!any) continue;
    if (!all) { /* as it is, until the next is put between */
      all = v[k];
      for (int i = 0; i < g->vl; i++)
        if (w->from[at + i] == k) of[i] = w->lane[at + i];
      continue;
    }
    for (int i = 0; i < g->vl; i++) {
      int from = w->from[at + i] == k ? g->vl + w->lane[at + i] : of[i];
      e[i] = from < 0 ? LLVMGetPoison(i32) : LLVMConstInt(i32, (unsigned)from, 0);
      if (from >= 0) of[i] = i;
    }
    all = LLVMBuildShuffleVector(B, all, v[k], LLVMConstVector(e, (unsigned)g->vl), "");
  }
  bool moved = false; /* all from one vector */
  for (int i = 0; i < g->vl; i++) {
    e[i] = LLVMConstInt(i32, (unsigned)of[i], 0);
    moved |= of[i] != i;
  }
  return moved ? LLVMBuildShuffleVector(B, all, all, LLVMConstVector(e, (unsigned)g->vl), "") : all;
}

/* The tail, of elements, as a mask of the numbers that begin at place `at`. */
static V woven_tail(Gen *g, const Weave *w, int64_t at) {
  V e[64];
  for (int i = 0; i < g->vl; i++)
    e[i] = LLVMConstInt(LLVMInt32TypeInContext(g->ctx), w->lane[at + i], 0);
  return LLVMBuildShuffleVector(B, g->tail, g->tail, LLVMConstVector(e, (unsigned)g->vl), "");
}

void gen_store_columns(Gen *g, DType t, int n, const V *columns, V ptr) {
  uint8_t from[MAX_PARTS * 64], lane[MAX_PARTS * 64];
  Weave w = {.n = n, .numbers = 1, .from = from, .lane = lane};
  for (int i = 0; i < n * g->vl; i++) {
    from[i] = (uint8_t)(i % n);
    lane[i] = (uint8_t)(i / n);
  }
  for (int i = 0; i < n; i++) {
    V at = gen_i64(g, (int64_t)i * g->vl);
    V to = LLVMBuildGEP2(B, mem_type(g, t, 0), ptr, &at, 1, "");
    gen_store_lanes(g, t, woven(g, &w, columns, (int64_t)i * g->vl), to, NULL, NULL);
  }
}

static void store(Gen *g, const Weave *w, int level) {
  const Dag *d = g->d;
  DType t = d->f->out[w->first].v->type->dtype, each = w->numbers == 2 ? dtype_real_of(t) : t;
  V v[2 * MAX_PARTS], im;
  for (int k = 0; k < w->n; k++) {
    v[k * w->numbers] = gen_stored(g, w->first + k, level, true, &im);
    if (im) v[2 * k + 1] = im;
  }
  V base = gen_base(g, d->f->n_in + w->first);
  V ptr = gen_address(g, base, mem_type(g, t, 0), &d->out_lin[w->first]);
  gen_at_level(g, level);
  for (int64_t at = 0; at < (int64_t)w->n * g->vl * w->numbers; at += g->vl) {
    V to = gen_i64(g, at);
    to = LLVMBuildGEP2(B, mem_type(g, each, 0), ptr, &to, 1, "");
    V tail = g->tail ? woven_tail(g, w, at) : NULL;
    if (tail && LLVMIsConstant(tail) && LLVMIsNull(tail)) continue;
    gen_store_lanes(g, each, woven(g, w, v, at), to, NULL, tail);
  }
}

bool gen_store_woven(Gen *g, int out, int level) {
  const FusionOut *o = &g->d->f->out[out];
  uint8_t from[2 * MAX_PARTS * 64], lane[2 * MAX_PARTS * 64];
  if (o->part < 0 || !is_along(g, level)) return false;
  Weave w = {.first = out - o->part, .n = o->v->def->n_operands, .from = from, .lane = lane};
  w.numbers = dtype_is_complex(o->v->type->dtype) ? 2 : 1;
  if (w.n > MAX_PARTS || !at_once(g->d, w.first, w.n) || !lanes_meet(g, &w)) return false;
  if (o->part == 0) store(g, &w, level);
  return true;
}
