/* A reduction joins the cluster of its users, which becomes one of rows: for each element of the kept
 * dimensions, sweeps over the reduced ones. */
#include "compile/fuse/fuse_priv.h"

/* Additions for an element that a vector's lane saves, against writing and reading a row's sum; and
 * of all rows, against starting another loop. */
#define DEAR_WORK 30
#define LEAST_LOOP 2000

#define MANY_BESIDE 64

bool reduce_lies_across(const Op *op) {
  const Type *from = op->operands[0]->type;
  const int64_t *rd;
  int nr = op_ints(op, "dimensions", &rd), last = -1;
  int64_t size = 1, beside = 1;
  for (int i = 0; i < nr; i++) {
    size *= from->dims[rd[i]];
    if (from->dims[rd[i]] > 1) last = MAX(last, (int)rd[i]);
  }
  for (int i = last + 1; i < from->rank; i++) beside *= from->dims[i];
  return last >= 0 && size <= SHORT_ROW && beside >= MANY_BESIDE;
}

/* Is a reduction of this shape worth sweeping by rows: along what is contiguous, of rows that are
 * many or short? */
static bool suits_rows(const Op *op, const int64_t *rd, int nr, int64_t size) {
  const Type *from = op->operands[0]->type;
  int last = from->rank - 1;
  bool last_reduced = false;
  while (last > 0 && from->dims[last] == 1) last--;
  for (int i = 0; i < nr; i++) last_reduced |= rd[i] == last;
  if (reduce_lies_across(op)) return true;
  if (!last_reduced && type_count(from) > 256) return false;
  return type_count(op_type(op)) >= MIN_ROWS || size <= SMALL_COUNT;
}

/* The cluster sums rows already: this one is another sum over the same. */
static bool take_as_sum(const Cluster *c, const bool *depends, int64_t size) {
  int64_t rows = 1;
  for (int k = 0; k < c->dom.n; k++) {
    if (c->dom.reduced[k]) rows *= c->dom.dims[k];
    if (depends[k] && c->dom.reduced[k]) return false;
  }
  return rows == size;
}

/* Rows of a larger whole: what no visit depends on is summed over. */
static bool take_as_rows(Cluster *c, const Op *op, const bool *depends, int64_t size) {
  int64_t others = 1;
  for (int k = 0; k < c->dom.n; k++)
    if (!depends[k]) others *= c->dom.dims[k];
  if (others != size || (depends[c->dom.n - 1] && !reduce_lies_across(op))) return false;
  for (int k = 0; k < c->dom.n; k++) c->dom.reduced[k] = !depends[k];
  c->kind = FUSION_ROW;
  return true;
}

/* The domain with the reduced dimensions put in where the operand has them; map: new dimension -> old
 * one or -1. */
static bool domain_below(const Cluster *c, const Op *op, const int64_t *rd, int nr, Domain *nd,
                         int *map) {
  const Type *from = op->operands[0]->type;
  int n = 0, d = 0, at = 0;
  memset(nd, 0, sizeof *nd);
  for (int i = 0; i < from->rank; i++) {
    bool red = false;
    for (int j = 0; j < nr; j++) red |= rd[j] == i;
    if (red) {
      if (n == DOM_MAX) return false;
      nd->dims[n] = from->dims[i];
      nd->reduced[n] = true;
      map[n++] = -1;
      continue;
    }
    int64_t want = op_type(op)->dims[at++], have = 1; /* by the domain dimensions that make it up */
    while (have < want && d < c->dom.n) {
      if (n == DOM_MAX) return false;
      have *= c->dom.dims[d];
      nd->dims[n] = c->dom.dims[d];
      map[n++] = d++;
    }
    if (have != want) return false;
  }
  for (; d < c->dom.n; d++) {
    if (c->dom.dims[d] != 1 || n == DOM_MAX) return false;
    nd->dims[n] = 1;
    map[n++] = d;
  }
  nd->n = n;
  return true;
}

/* A row's results are scalars: what is computed from each is better left to a loop of its own, which
 * takes a vector of rows at a time, where it is much beside summing the row. (The shortest rows lie
 * side by side in the lanes and do so already.) */
static bool is_dear_epilogue(const Fuser *f, const Cluster *c, int64_t size) {
  if (size <= SHORT_ROW) return false;
  double work = 0, rows = 1;
  for (int i = 0; i < c->members.n; i++) work += op_loop_work(f->info[c->members.v[i]].op);
  for (int k = 0; k < c->dom.n; k++) rows *= (double)c->dom.dims[k];
  return work > DEAR_WORK + (double)size / 2 && work * rows > LEAST_LOOP;
}

/* The cluster becomes the reduction's epilogue: all visits of the result are the whole domain, in
 * order. */
static bool take_epilogue(Fuser *f, Cluster *c, const Op *op, const int64_t *rd, int nr) {
  bool any = false;
  for (int i = 0; i < c->visits.n; i++) {
    if (c->visits.v[i].v->def != op) continue;
    if (!cluster_in_order(c, &c->visits.v[i], true)) return false;
    any = true;
  }
  Domain nd;
  int map[DOM_MAX];
  if (!any || !domain_below(c, op, rd, nr, &nd, map)) return false;
  for (int i = 0; i < c->visits.n; i++) {
    Visit *o = &c->visits.v[i];
    Affine *ix = cluster_index(f, o->v->type->rank);
    for (int j = 0; j < o->v->type->rank; j++) {
      ix[j].off = o->at[j].off;
      for (int k = 0; k < nd.n; k++) ix[j].coef[k] = map[k] >= 0 ? o->at[j].coef[map[k]] : 0;
    }
    o->at = ix;
  }
  c->dom = nd;
  c->kind = FUSION_ROW;
  return true;
}

bool cluster_take_reduce(Fuser *f, Cluster *c, const Op *op) {
  if (c->kind == FUSION_SPLIT) return false;
  const int64_t *rd;
  int nr = op_ints(op, "dimensions", &rd);
  int64_t size = 1;
  for (int i = 0; i < nr; i++) size *= op->operands[0]->type->dims[rd[i]];
  if (!suits_rows(op, rd, nr, size)) return false;
  bool depends[DOM_MAX] = {false}, all = true;
  for (int i = 0; i < c->visits.n; i++) {
    const Visit *o = &c->visits.v[i];
    if (o->v->def != op) continue;
    if (o->masked) return false;
    for (int d = 0; d < o->v->type->rank; d++)
      for (int k = 0; k < c->dom.n; k++) depends[k] |= o->at[d].coef[k] != 0 && c->dom.dims[k] > 1;
  }
  for (int k = 0; k < c->dom.n; k++) all &= depends[k] || c->dom.dims[k] == 1;
  if (c->kind == FUSION_ROW) return take_as_sum(c, depends, size);
  if (!all) return take_as_rows(c, op, depends, size);
  return c->dom.n + nr <= DOM_MAX && size != 1 && !is_dear_epilogue(f, c, size) &&
         take_epilogue(f, c, op, rd, nr);
}
