/* Rows: [tasks: kept dimensions] x sweeps over the reduced dimensions. The elements of a row go in
 * vectors, its sums are in registers, its results scalars; short rows go side by side, one in each
 * lane. */
#include "dev/cpu/loops/loops_priv.h"
#include "dev/cpu/loops/shape.h"

#define B g->b

typedef struct Sweep {
  int number;
  bool vec;
  int unroll;
} Sweep;

static void sweep_body(Gen *g, void *arg, int u) {
  const Sweep *s = arg;
  Dag *d = g->d;
  int level = g->level;
  for (int i = 0; i < d->reduces.n; i++)
    if (d->reduces.v[i].sweep == s->number) sum_accumulate(g, &d->reduces.v[i], level, s->vec, u);
  for (int i = 0; i < d->n_out; i++)
    if (d->f->out[i].full && d->nodes.v[d->out[i]].depth == s->number && !turned_store(g, i, level))
      gen_store(g, i, level);
  block_keep(g, level);
}

static void sweep_flush(Gen *g, void *arg) {
  const Sweep *s = arg;
  for (int i = 0; i < g->d->reduces.n; i++) {
    const DagReduce *r = &g->d->reduces.v[i];
    if (r->sweep == s->number && shape_sum_is_long(r)) sum_flush(g, r, g->level, s->vec, s->unroll);
  }
}

/* ---- short rows: one in each lane, their elements one after the other without a loop ---- */

static void across_rows(Gen *g, void *arg, int u) {
  (void)u;
  Dag *d = g->d;
  int nk = *(const int *)arg, level = g->level;
  turned_open(g, nk, shape_row_length(d, nk));
  for (int s = 0, last = shape_last_sweep(d); s <= last; s++) {
    for (int i = 0; i < d->reduces.n; i++)
      if (d->reduces.v[i].sweep == s) sum_init(g, &d->reduces.v[i], level, true, 1);
    gen_open_flat(g, level + 1);
    Sweep sweep = {s, true, 1};
    for (int64_t e = 0, n = shape_row_length(d, nk); e < n; e++) {
      int64_t rest = e;
      for (int i = d->n_loops - 1; i >= nk; rest /= d->loops[i--].extent)
        d->loops[i].iv = gen_i64(g, rest % d->loops[i].extent);
      g->epoch[g->level] = ++g->next_epoch;
      turned_at(g, e);
      sweep_body(g, &sweep, 0);
    }
    turned_flush(g, g->level);
    g->point[level] = g->point[level + 1];
    g->level = level;
    for (int i = 0; i < d->reduces.n; i++) {
      V v[4];
      DagReduce *r = &d->reduces.v[i];
      if (r->sweep != s) continue;
      sum_collect_lanes(g, r, level, v);
      sum_with_init(g, r, level, true, v);
      gen_set_results(g, i, v);
    }
  }
  for (int i = 0; i < d->n_out; i++)
    if (!d->f->out[i].full) gen_store(g, i, level);
  turned_close(g);
}

static void gen_across(Gen *g, Dag *d, int nk, const char *name, FusedCode *out) {
  Walk w = {.body = across_rows, .arg = &nk, .unroll = 1};
  V lo, hi;
  gen_open_function(g, name);
  gen_open_runs(g, d, nk - 1, g->vl, shape_row_length(d, nk), out, &lo, &hi);
  walk_range(g, 2, lo, hi, false, &w);
  gen_close_loop(g, 1);
}

void gen_row(Gen *g, Dag *d, const char *name, FusedCode *out) {
  int nk = 0, n = d->n_loops;
  while (nk < n && !d->loops[nk].reduced) nk++;
  if (shape_across(d, g->vl, nk)) {
    gen_across(g, d, nk, name, out);
    return;
  }
  shape_row(d, &out->outer, &out->grain);
  gen_open_function(g, name);
  int last = shape_last_sweep(d);
  RowBlock block;
  block_open(g, &block, nk, last);
  bool vec = d->vloop >= 0;
  for (int s = 0; s <= last; s++) {
    bool any = false, sums = false;
    for (int i = 0; i < d->reduces.n; i++) sums |= d->reduces.v[i].sweep == s;
    for (int i = 0; i < d->n_out; i++) any |= d->f->out[i].full && d->nodes.v[d->out[i]].depth == s;
    if (!any && !sums) continue;
    block_open_sweep(g, &block, s);
    int unroll = vec && sums ? shape_unroll(d, s, g->vl) : 1;
    for (int i = 0; i < d->reduces.n; i++)
      if (d->reduces.v[i].sweep == s) sum_init(g, &d->reduces.v[i], 1, vec, unroll);
    Sweep sw = {s, vec, unroll};
    Walk w = {.body = sweep_body, .arg = &sw, .unroll = unroll};
    bool totals = vec && sums && shape_additions(d, g->vl, nk, unroll) >= 2 * LONG_SUM;
    if (totals) w.flush = sweep_flush;
    for (int i = 0; i < d->reduces.n && totals; i++)
      if (d->reduces.v[i].sweep == s && shape_sum_is_long(&d->reduces.v[i]))
        sum_init_totals(g, &d->reduces.v[i], 1, vec, unroll);
    walk_loops(g, nk, 2, &w);
    for (int i = 0; i < d->reduces.n; i++) {
      DagReduce *r = &d->reduces.v[i];
      if (r->sweep != s) continue;
      if (totals && shape_sum_is_long(r)) sum_take_totals(g, r, 1, vec, unroll);
      V v[4];
      sum_collect(g, r, 1, vec, unroll, v);
      sum_with_init(g, r, 1, false, v);
      block_set_results(g, &block, i, v);
    }
    for (int i = 0; i < d->n_out && s == last; i++)
      if (!d->f->out[i].full) gen_store(g, i, 1);
    block_close_sweep(g, &block);
  }
  block_close(g, &block);
}
