/* Loops of a fusion. A function works on a range of tasks: elements, rows, or chunks of a split
 * reduction. The innermost dimension goes in vectors; what is left over is one more vector under a
 * mask.
 *
 *   loop   [tasks: outer dimensions] x inner dimensions x vector; or elements alone. When the innermost
 *          dimension is shorter than a vector, lanes go through it and the one before it (walk_braid).
 *          Where pieces are joined or padded, each has loops of its own (boxes.c)
 *   row    reductions along what is contiguous (rows.c)
 *   split  reductions in chunks (split.c)
 */
#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

/* ---- loop fusions ---- */

static void store_all(Gen *g, void *arg, int u) {
  (void)arg;
  (void)u;
  for (int i = 0; i < g->d->n_out; i++) gen_store(g, i, g->level);
}

#define MAX_BRAID 600 /* nodes of a block */

/* Rows shorter than a vector: are several side by side worth their code? */
static bool is_braid(Gen *g, Dag *d) {
  int n = d->n_loops;
  int64_t width = d->loops[n - 1].extent, rows = d->loops[n - 2].extent;
  if (width >= g->vl || rows < 2) return false;
  d->vloop = n - 1;
  int64_t block = MIN(walk_braid_rows(g), rows);
  return (block * width + g->vl - 1) / g->vl * d->nodes.n <= MAX_BRAID;
}

static void gen_braid(Gen *g, Dag *d, FusedCode *out) {
  Walk w = {.body = store_all, .unroll = 1};
  V lo, hi;
  int p = d->n_loops - 2;
  d->braid = true;
  for (int i = 0; i < d->n_loops; i++) d->loops[i].level = i < p ? 1 : 2;
  dag_levels(d);
  gen_open_runs(g, d, p, walk_braid_rows(g), d->loops[p + 1].extent, out, &lo, &hi);
  walk_braid(g, 2, lo, hi, &w);
  gen_close_loop(g, 1);
}

static void gen_loop(Gen *g, Dag *d, const char *name, FusedCode *out) {
  Walk w = {.body = store_all, .unroll = 1};
  int n = d->n_loops;
  gen_open_function(g, name);
  if (n <= 1) {
    shape_loop(d, g->vl, &out->outer, &out->grain);
    if (n && gen_boxes(g, 1, &w)) return;
    if (n) walk_range(g, 1, g->begin, g->end, false, &w);
    else walk_loops(g, 0, 1, &w);
    return;
  }
  if (is_braid(g, d)) {
    gen_braid(g, d, out);
    return;
  }
  int p = shape_loop(d, g->vl, &out->outer, &out->grain);
  V t = gen_open_loop(g, 1, g->begin, g->end, 1);
  gen_decode(g, 1, t, 0, p);
  if (!gen_boxes(g, p, &w)) walk_loops(g, p, 2, &w);
  gen_close_loop(g, 1);
}

/* A vector of few numbers leaves no lanes unused. */
static int lanes_of(const Gen *g, const Dag *d) {
  int lanes = shape_lanes(d);
  bool few = g->is_while && d->f->kind == FUSION_LOOP && d->n_loops == 1;
  while (few && lanes > 4 && lanes / 2 >= d->loops[0].extent) lanes /= 2;
  return lanes * shape_abreast(d, lanes);
}

Err *gen_fusion(Gen *g, Dag *d, const char *name, FusedCode *out) {
  g->vl = lanes_of(g, d);
  switch (d->f->kind) {
  case FUSION_LOOP:
    gen_loop(g, d, name, out);
    out->name = "fused:loop";
    break;
  case FUSION_ROW:
    gen_row(g, d, name, out);
    out->name = "fused:row";
    break;
  case FUSION_SPLIT:
    gen_split(g, d, name, out);
    out->name = "fused:split";
    break;
  }
  out->flops = dag_flops(d);
  return NULL;
}
