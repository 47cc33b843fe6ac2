/* Walking over elements: loops inside loops, the innermost in vectors, what is left over as one
 * vector under a mask, long sums in blocks. */
#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

static void run_body(Gen *g, const Walk *w, V iv, int u) {
  g->d->loops[g->d->vloop].iv = iv;
  g->epoch[g->level] = ++g->next_epoch;
  w->body(g, w->arg, u);
}

static V static_mask(Gen *g, int64_t n) {
  V e[64];
  for (int i = 0; i < g->vl; i++) e[i] = LLVMConstInt(LLVMInt1TypeInContext(g->ctx), i < n, 0);
  return LLVMConstVector(e, (unsigned)g->vl);
}

V walk_open_blocks(Gen *g, int level, V lo, V hi, int64_t step, int64_t many) {
  V first = gen_open_loop(g, level, lo, hi, step * many);
  gen_at_level(g, level);
  V end = LLVMBuildAdd(B, first, gen_i64(g, step * many), "");
  end = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, end, hi, ""), end, hi, "");
  V iv = gen_open_loop(g, level + 1, first, end, step);
  g->point[level] = g->point[level + 1];
  g->level = level;
  return iv;
}

void walk_close_blocks(Gen *g, int level, const Walk *w) {
  g->point[level] = g->resume[level + 1];
  g->level = level;
  w->flush(g, w->arg);
  gen_close_loop(g, level);
}

void walk_vectors(Gen *g, int level, int64_t lo, int64_t hi, const Walk *w) {
  int64_t n = hi - lo, step = (int64_t)g->vl * (w->expand ? 1 : w->unroll),
          full = w->expand ? 0 : n / step * step, i = full;
  g->first = lo;
  if (full > step) {
    bool blocks = w->flush && full >= 2 * LONG_SUM * step;
    V from = gen_i64(g, lo), to = gen_i64(g, lo + full);
    V iv = blocks ? walk_open_blocks(g, level, from, to, step, LONG_SUM)
                  : gen_open_loop(g, level, from, to, step);
    for (int u = 0; u < w->unroll; u++) {
      gen_at_level(g, level);
      run_body(g, w, u ? LLVMBuildAdd(B, iv, gen_i64(g, (int64_t)u * g->vl), "") : iv, u);
    }
    if (blocks) walk_close_blocks(g, level, w);
    else gen_close_loop(g, level);
  } else {
    i = 0;
  }
  gen_open_flat(g, level);
  for (int u = 0; i < n; i += g->vl, u++) {
    if (n - i < g->vl) g->tail = static_mask(g, n - i);
    run_body(g, w, gen_i64(g, lo + i), w->expand ? u : u % w->unroll);
    g->tail = NULL;
  }
  g->first = 0;
  g->point[level - 1] = g->point[level];
  g->level = level - 1;
}

void walk_range(Gen *g, int level, V lo, V hi, bool ragged, const Walk *w) {
  Loop *l = &g->d->loops[g->d->vloop];
  if (l->extent < g->vl) {
    gen_open_flat(g, level);
    g->tail = static_mask(g, l->extent);
    run_body(g, w, gen_i64(g, 0), 0);
    g->tail = NULL;
    g->point[level - 1] = g->point[level];
    g->level = level - 1;
    return;
  }
  gen_at_level(g, level - 1);
  V n = LLVMBuildSub(B, hi, lo, "");
  V full = LLVMBuildAnd(B, n, gen_i64(g, -(int64_t)g->vl), "");
  V mid = LLVMBuildAdd(B, lo, full, "");
  if (ragged || l->extent % g->vl) {
    gen_open_if(g, level, LLVMBuildICmp(B, LLVMIntSGT, full, gen_i64(g, 0), ""));
    /* a loop inside the condition: one level deeper in blocks, the same in nodes */
    g->point[level + 1] = g->point[level];
    V iv = w->flush ? walk_open_blocks(g, level + 1, lo, mid, g->vl, LONG_SUM)
                    : gen_open_loop(g, level + 1, lo, mid, g->vl);
    g->point[level] = g->point[level + 1];
    g->level = level;
    run_body(g, w, iv, 0);
    if (w->flush) walk_close_blocks(g, level + 1, w);
    else gen_close_loop(g, level + 1);
    gen_close_loop(g, level);
    gen_at_level(g, level - 1);
    gen_open_if(g, level, LLVMBuildICmp(B, LLVMIntSLT, mid, hi, ""));
    gen_at_level(g, level);
    LLVMTypeRef i64 = LLVMInt64TypeInContext(g->ctx);
    V left = LLVMBuildSub(B, hi, mid, "");
    g->tail = LLVMBuildICmp(B, LLVMIntULT, gen_lane_ids(g, i64), k_splat(g, left, g->vl), "");
    run_body(g, w, mid, 0);
    g->tail = NULL;
    gen_close_loop(g, level);
    return;
  }
  V iv = w->flush ? walk_open_blocks(g, level, lo, hi, g->vl, LONG_SUM)
                  : gen_open_loop(g, level, lo, hi, g->vl);
  run_body(g, w, iv, 0);
  if (w->flush) walk_close_blocks(g, level, w);
  else gen_close_loop(g, level);
}

int64_t walk_braid_rows(const Gen *g) {
  int64_t rows = 1, width = g->d->loops[g->d->vloop].extent;
  while (rows * width % g->vl) rows++;
  return rows;
}

static void braid_block(Gen *g, const Walk *w, int64_t rows) {
  int64_t n = rows * g->d->loops[g->d->vloop].extent;
  for (int64_t i = 0; i < n; i += g->vl) {
    g->first_lane = i;
    if (n - i < g->vl) g->tail = static_mask(g, n - i);
    run_body(g, w, gen_i64(g, 0), (int)(i / g->vl));
    g->tail = NULL;
  }
}

void walk_braid(Gen *g, int level, V lo, V hi, const Walk *w) {
  Loop *rows = &g->d->loops[g->d->vloop - 1];
  int64_t block = walk_braid_rows(g), rest = rows->extent % block;
  gen_at_level(g, level - 1);
  V n = LLVMBuildSub(B, hi, lo, "");
  V mid = LLVMBuildSub(B, hi, LLVMBuildURem(B, n, gen_i64(g, block), ""), "");
  if (rows->extent >= block) {
    gen_open_if(g, level, LLVMBuildICmp(B, LLVMIntSLT, lo, mid, ""));
    g->point[level + 1] = g->point[level];
    rows->iv = gen_open_loop(g, level + 1, lo, mid, block);
    g->point[level] = g->point[level + 1];
    g->level = level;
    braid_block(g, w, block);
    gen_close_loop(g, level + 1);
    gen_close_loop(g, level);
  }
  if (!rest) return;
  gen_at_level(g, level - 1);
  gen_open_if(g, level, LLVMBuildICmp(B, LLVMIntSLT, mid, hi, ""));
  rows->iv = mid;
  braid_block(g, w, rest);
  gen_close_loop(g, level);
}

/* Loops first .. vloop, levels from `level`; the last in vectors. */
void walk_loops(Gen *g, int first, int level, const Walk *w) {
  Dag *d = g->d;
  if (d->vloop < 0 || first > d->vloop) {
    gen_open_flat(g, level);
    w->body(g, w->arg, 0);
    g->point[level - 1] = g->point[level];
    g->level = level - 1;
    return;
  }
  if (first == d->vloop) {
    walk_vectors(g, level, 0, d->loops[first].extent, w);
    return;
  }
  Loop *l = &d->loops[first];
  l->iv = gen_open_loop(g, level, gen_i64(g, 0), gen_i64(g, l->extent), 1);
  walk_loops(g, first + 1, level + 1, w);
  if (w->flush && shape_flush_before(d, g->vl, first + 1, w->unroll)) w->flush(g, w->arg);
  gen_close_loop(g, level);
}

void gen_open_runs(Gen *g, Dag *d, int p, int64_t block, int64_t width, FusedCode *out, V *lo,
                   V *hi) {
  RunShape r = shape_runs(d, p, block, width);
  out->outer = r.outer;
  out->grain = r.grain;
  V t = gen_open_loop(g, 1, g->begin, g->end, 1), all = gen_i64(g, d->loops[p].extent);
  gen_at_level(g, 1);
  *lo = LLVMBuildMul(B, LLVMBuildURem(B, t, gen_i64(g, r.runs), ""), gen_i64(g, r.length), "");
  *hi = LLVMBuildAdd(B, *lo, gen_i64(g, r.length), "");
  *hi = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, *hi, all, ""), *hi, all, "");
  gen_decode(g, 1, LLVMBuildUDiv(B, t, gen_i64(g, r.runs), ""), 0, p);
}
