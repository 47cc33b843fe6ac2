/* Boxes: pieces that are joined, padded or turned each fill a part of the domain. Where that is a box,
 * it gets loops of its own, in which nothing is left of the conditions: each piece is read as if it
 * were alone, and what is read nowhere is not read at all. */
#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b
#define MOST_SEGMENTS 8 /* of a loop */
#define MOST_NODES 1500 /* of all boxes: their code takes time to compile */

typedef struct Cuts { /* a loop as segments [at[i], at[i + 1]) */
  int n;
  int64_t at[MOST_SEGMENTS + 1];
} Cuts;

typedef struct Boxes {
  Cuts cuts[MAX_LOOPS];
  int64_t lo[MAX_LOOPS], hi[MAX_LOOPS]; /* of the box at hand */
  int tasks;                            /* loops that tasks are of */
  const Walk *walk;
} Boxes;

/* ---- where conditions change ---- */

static int64_t floor_div(int64_t a, int64_t b) { /* b > 0 */
  return a / b - (a % b < 0);
}

/* The loop that a condition depends on; -1: several or none. */
static int only_loop(const Dag *d, const DagMask *m) {
  int only = -1;
  for (int i = 0; i < d->n_loops; i++) {
    if (d->loops[i].extent == 1 || !m->form.coef[d->loops[i].last]) continue;
    if (only >= 0) return -1;
    only = i;
  }
  return only;
}

static void add_cut(Cuts *c, int64_t at) {
  int i = 0;
  while (i <= c->n && c->at[i] < at) i++;
  if (i == 0 || i > c->n || c->at[i] == at || c->n == MOST_SEGMENTS) return;
  for (int j = ++c->n; j > i; j--) c->at[j] = c->at[j - 1];
  c->at[i] = at;
}

static void cut_loop(const Dag *d, int loop, Cuts *c) {
  *c = (Cuts){.n = 1, .at = {0, d->loops[loop].extent}};
  for (int i = 1; i < d->masks.n; i++) {
    const DagMask *m = &d->masks.v[i];
    if (only_loop(d, m) != loop) continue;
    int64_t by = m->form.coef[d->loops[loop].last], off = m->form.off;
    if (by < 0) {
      add_cut(c, floor_div(off - m->size, -by) + 1);
      add_cut(c, floor_div(off, -by) + 1);
    } else {
      add_cut(c, -floor_div(off, by));
      add_cut(c, -floor_div(off - m->size, by));
    }
  }
}

static void uncut(const Dag *d, int loop, Cuts *c) {
  *c = (Cuts){.n = 1, .at = {0, d->loops[loop].extent}};
}

/* What is known of the conditions in the box at hand; nothing is left of what was computed in others. */
static void enter_box(Dag *d, const Boxes *b) {
  for (int i = 1; i < d->masks.n; i++) {
    DagMask *m = &d->masks.v[i];
    int64_t lo = m->form.off, hi = m->form.off;
    for (int k = 0; k < d->n_loops; k++) {
      int64_t by = d->loops[k].extent > 1 ? m->form.coef[d->loops[k].last] : 0;
      lo += by * (by < 0 ? b->hi[k] - 1 : b->lo[k]);
      hi += by * (by < 0 ? b->lo[k] : b->hi[k] - 1);
    }
    m->known = lo >= 0 && hi < m->size ? 1 : hi < 0 || lo >= m->size ? -1 : 0;
    m->val = NULL;
  }
  for (int i = 0; i < d->nodes.n; i++) d->nodes.v[i].val = d->nodes.v[i].rounded = NULL;
  dag_levels(d);
}

/* ---- is it worth it? ---- */

static double cost_below(const Dag *d, int node, bool *seen, int *count) {
  const DagNode *n = &d->nodes.v[node];
  if (seen[node]) return 0;
  seen[node] = true;
  ++*count;
  double c = !n->vec ? 0 : n->kind == N_OP ? op_loop_work(n->op) : 1;
  if (n->kind == N_INPUT && n->mask && !dag_mask_known(d, n->mask, 0)) c *= 4;
  for (int k = 0; n->kind == N_OP && k < n->n_in; k++)
    if (dag_takes(d, n, k)) c += cost_below(d, n->in[k], seen, count);
  return c;
}

/* Of a vector in the box at hand. */
static double box_cost(Dag *d, const Boxes *b, int *count) {
  enter_box(d, b);
  bool *seen = xcalloc((size_t)d->nodes.n + 1, 1);
  double c = d->n_out;
  for (int i = 0; i < d->n_out; i++) c += cost_below(d, d->out[i], seen, count);
  free(seen);
  return c;
}

/* Stops when it is more code than wanted. */
static double cost_from(Dag *d, Boxes *b, int loop, int lanes, int *count) {
  if (*count > MOST_NODES) return 0;
  if (loop == d->n_loops) return box_cost(d, b, count);
  double c = 0;
  for (int i = 0; i < b->cuts[loop].n; i++) {
    b->lo[loop] = b->cuts[loop].at[i];
    b->hi[loop] = b->cuts[loop].at[i + 1];
    int64_t n = b->hi[loop] - b->lo[loop];
    if (loop == d->vloop) n = (n + lanes - 1) / lanes;
    c += (double)n * cost_from(d, b, loop + 1, lanes, count);
  }
  return c;
}

/* Cuts the loops, the innermost first, as long as it saves work and the code stays short. */
static bool find_boxes(Dag *d, Boxes *b, int lanes) {
  bool any = false;
  for (int i = 0; i < d->n_loops; i++) uncut(d, i, &b->cuts[i]);
  if (d->masks.n < 2 || d->loops[d->vloop].extent < lanes) return false;
  int count = 0;
  double best = cost_from(d, b, 0, lanes, &count);
  for (int i = d->vloop; i >= 0; i--) {
    cut_loop(d, i, &b->cuts[i]);
    if (b->cuts[i].n == 1) continue;
    count = 0;
    double c = cost_from(d, b, 0, lanes, &count);
    if (c < best && count <= MOST_NODES) {
      best = c;
      any = true;
    } else {
      uncut(d, i, &b->cuts[i]);
    }
  }
  return any;
}

/* ---- their loops ---- */

static V clamp(Gen *g, V x, LLVMIntPredicate p, V to) {
  return LLVMBuildSelect(B, LLVMBuildICmp(B, p, x, to, ""), to, x, "");
}

/* A domain of one loop: the part of the segment that is among the tasks. */
static void walk_part(Gen *g, const Boxes *b) {
  gen_at_level(g, 0);
  V lo = clamp(g, gen_i64(g, b->lo[0]), LLVMIntSLT, g->begin);
  V hi = clamp(g, gen_i64(g, b->hi[0]), LLVMIntSGT, g->end);
  g->first = b->lo[0];
  walk_range(g, 1, lo, clamp(g, hi, LLVMIntSLT, lo), true, b->walk);
  g->first = 0;
}

static void gen_segments(Gen *g, Boxes *b, int loop);

/* Tasks in the segment: what is computed once for each is computed under the condition. */
static void gen_if_inside(Gen *g, Boxes *b, int loop) {
  gen_at_level(g, 1);
  V at = LLVMBuildSub(B, g->d->loops[loop].iv, gen_i64(g, b->lo[loop]), "");
  V n = gen_i64(g, b->hi[loop] - b->lo[loop]);
  gen_open_if(g, 2, LLVMBuildICmp(B, LLVMIntULT, at, n, ""));
  V resume = g->resume[2];
  g->point[1] = g->point[2];
  g->level = 1;
  g->epoch[1] = ++g->next_epoch;
  gen_segments(g, b, loop + 1);
  g->point[1] = resume;
  g->level = 1;
}

static void gen_segment(Gen *g, Boxes *b, int loop) {
  Dag *d = g->d;
  int level = loop - b->tasks + 2;
  if (loop == d->vloop) enter_box(d, b);
  if (d->n_loops == 1) {
    walk_part(g, b);
  } else if (loop == d->vloop) {
    walk_vectors(g, level, b->lo[loop], b->hi[loop], b->walk);
  } else if (loop >= b->tasks) {
    d->loops[loop].iv =
        gen_open_loop(g, level, gen_i64(g, b->lo[loop]), gen_i64(g, b->hi[loop]), 1);
    gen_segments(g, b, loop + 1);
    gen_close_loop(g, level);
  } else if (b->cuts[loop].n > 1) {
    gen_if_inside(g, b, loop);
  } else {
    gen_segments(g, b, loop + 1);
  }
}

static void gen_segments(Gen *g, Boxes *b, int loop) {
  for (int i = 0; i < b->cuts[loop].n; i++) {
    b->lo[loop] = b->cuts[loop].at[i];
    b->hi[loop] = b->cuts[loop].at[i + 1];
    gen_segment(g, b, loop);
  }
}

bool gen_boxes(Gen *g, int tasks, const Walk *w) {
  Dag *d = g->d;
  Boxes b = {.tasks = tasks, .walk = w};
  bool any = find_boxes(d, &b, g->vl);
  if (any) gen_segments(g, &b, 0);
  for (int i = 1; i < d->masks.n; i++) d->masks.v[i].known = 0;
  dag_levels(d);
  return any;
}
