/* Clusters: what is computed together.
 *
 * A cluster knows each (value, affine index over its domain) that it visits; a producer can join
 * when the indices of its operands are affine too (index.c), dividing domain dimensions where
 * reshapes ask for it. Reductions join as rows (cluster_reduce.c) or start a cluster whose domain is
 * their operand's shape.
 *
 * Costs: visits are bounded by MAX_VISITS for a cluster, reductions that wait for each other by
 * MAX_SWEEPS, exponentials and the like by MAX_FUNCTIONS: their code is long, the time to compile it
 * grows faster than it, and next to so many of them memory costs nothing. What would be computed
 * many times over (heavy ops below a broadcast, branches of a concatenate) stays out. */
#include "compile/fuse/fuse_priv.h"

#include <stdlib.h>

#define MAX_VISITS 700
#define MAX_SWEEPS 8 /* each may compute again what those before it did */
#define MAX_FUNCTIONS 40
#define MAX_LIGHT_REPEATS 6
#define FEW_LANES 64
#define MOST_BRANCHES 4 /* of a concatenate: each lane computes all and takes one */

static bool has_member(const Cluster *c, int pos) {
  for (int i = 0; i < c->members.n; i++)
    if (c->members.v[i] == pos) return true;
  return false;
}

Affine *cluster_index(Fuser *f, int rank) { return ARENA_ARRAY(f->mem, Affine, rank + 1); }

/* Finds or adds. false: too many. */
static bool add_visit(Fuser *f, Cluster *c, Value *v, const Affine *at, bool masked,
                      bool anywhere) {
  for (int i = 0; i < c->visits.n; i++) {
    Visit *o = &c->visits.v[i];
    if (o->v != v || o->masked != masked || o->anywhere != anywhere) continue;
    bool same = true;
    for (int d = 0; d < v->type->rank && same; d++) same = affine_equal(&c->dom, &o->at[d], &at[d]);
    if (same) return true;
  }
  if (c->visits.n >= MAX_VISITS) return false;
  Affine *own = cluster_index(f, v->type->rank);
  if (v->type->rank) memcpy(own, at, sizeof *at * (size_t)v->type->rank);
  *vec_push(&c->visits) = (Visit){v, own, false, masked, anywhere};
  return true;
}

/* Domain dimension k becomes two: [dims / inner, inner]. Indices are rewritten in fresh memory
 * (they may be saved). */
static bool split_dim(Fuser *f, Cluster *c, int k, int64_t inner) {
  Domain *d = &c->dom;
  if (d->n == DOM_MAX) return false;
  for (int i = d->n; i > k + 1; i--) {
    d->dims[i] = d->dims[i - 1];
    d->reduced[i] = d->reduced[i - 1];
  }
  d->dims[k + 1] = inner;
  d->dims[k] /= inner;
  d->reduced[k + 1] = d->reduced[k];
  d->n++;
  for (int i = 0; i < c->visits.n; i++) {
    Visit *o = &c->visits.v[i];
    Affine *at = cluster_index(f, o->v->type->rank);
    for (int j = 0; j < o->v->type->rank; j++) {
      at[j] = o->at[j];
      for (int x = d->n - 1; x > k + 1; x--) at[j].coef[x] = at[j].coef[x - 1];
      at[j].coef[k + 1] = o->at[j].coef[k];
      at[j].coef[k] = o->at[j].coef[k] * inner;
    }
    o->at = at;
  }
  return true;
}

/* Row-major over the whole domain (full) or over its kept dimensions (row). */
bool cluster_in_order(const Cluster *c, const Visit *o, bool full) {
  Affine l = index_flat(&c->dom, o->v->type, o->at);
  if (l.off) return false;
  int64_t s = 1;
  for (int k = c->dom.n - 1; k >= 0; k--) {
    bool in = full || !c->dom.reduced[k];
    int64_t want = in ? s : 0;
    if (c->dom.dims[k] > 1 && l.coef[k] != want) return false;
    if (in) s *= c->dom.dims[k];
  }
  return s == type_count(o->v->type);
}

/* The index leaves out an outer dimension but depends on an inner one: computed again for each
 * outer step. */
static bool repeats(const Cluster *c, const Visit *o) {
  bool inner = false;
  for (int k = c->dom.n - 1; k >= 0; k--) {
    if (c->dom.dims[k] == 1) continue;
    bool depends = false;
    for (int d = 0; d < o->v->type->rank; d++) depends |= o->at[d].coef[k] != 0;
    if (depends) inner = true;
    else if (inner) return true;
  }
  return false;
}

static int64_t turns(const Cluster *c) {
  int64_t n = 1;
  for (int k = 0; k < c->dom.n; k++) n *= c->dom.dims[k];
  return n;
}

/* A loop over [.., many, few] has the few in the lanes: what does not depend on them is a scalar for
 * each of the many, where a loop of its own takes a vector of them at a time. */
static bool wastes_lanes(const Cluster *c, const Visit *o) {
  int64_t few = 1;
  for (int k = c->dom.n - 1; k >= 0; k--) {
    for (int d = 0; d < o->v->type->rank; d++)
      if (o->at[d].coef[k]) return few > 1 && few <= FEW_LANES && type_count(o->v->type) > 64;
    few *= c->dom.dims[k];
  }
  return false;
}

typedef struct Saved {
  FusionKind kind;
  Domain dom;
  Visit *visits;
  int n, repeats;
} Saved;

static Saved save(const Cluster *c) {
  Saved s = {c->kind, c->dom, xmalloc(sizeof(Visit) * (size_t)(c->visits.n + 1)), c->visits.n,
             c->repeats};
  if (s.n) memcpy(s.visits, c->visits.v, sizeof(Visit) * (size_t)s.n);
  return s;
}

static bool restore(Cluster *c, Saved *s, bool ok) {
  if (!ok) {
    c->kind = s->kind;
    c->dom = s->dom;
    c->repeats = s->repeats;
    c->visits.n = s->n;
    if (s->n) memcpy(c->visits.v, s->visits, sizeof(Visit) * (size_t)s->n);
  }
  free(s->visits);
  return ok;
}

/* The op's visits become computed here; its operands are visited. */
static bool expand(Fuser *f, Cluster *c, Op *op) {
again:
  for (int i = 0; i < c->visits.n; i++) {
    if (c->visits.v[i].v->def != op || c->visits.v[i].inside) continue;
    if (c->visits.v[i].anywhere) return false;
    Affine at[DOM_MAX];
    int piece = op->kind == OP_CONCATENATE ? index_piece(&c->dom, op, c->visits.v[i].at) : -1;
    bool masked =
        c->visits.v[i].masked || op->kind == OP_PAD || (op->kind == OP_CONCATENATE && piece < 0);
    for (int k = 0, n = index_reads(op); k < n; k++) {
      bool anywhere;
      Value *read = index_read(op, k, &anywhere);
      if (value_splat(read) || (piece >= 0 && k != piece)) continue;
      int split;
      int64_t inner;
      memset(at, 0, sizeof at);
      if (!index_operand(&c->dom, op, k, c->visits.v[i].at, at, &split, &inner)) {
        if (split < 0 || !split_dim(f, c, split, inner)) return false;
        goto again;
      }
      if (!add_visit(f, c, read, at, masked, anywhere)) return false;
    }
    c->visits.v[i].inside = true;
  }
  return true;
}

static bool is_function(const Op *op) {
  return op_is_heavy(op) && op->kind != OP_DIVIDE && op->kind != OP_SQRT && op->kind != OP_RSQRT &&
         op->kind != OP_GATHER && op_info[op->kind].cls != OC_REDUCE;
}

/* Each of its pieces is computed for a mask of the lanes. */
static bool is_masked(const Op *op) { return op->kind == OP_CONCATENATE || op->kind == OP_PAD; }

/* Reductions one after the other from the op's users on, in the cluster. */
static int sweeps_after(const Fuser *f, int id, int pos) {
  int most = 0;
  for (int i = 0; i < f->n_users[pos]; i++) {
    const Info *u = f->users[pos][i] < f->n ? &f->info[f->users[pos][i]] : NULL;
    for (int j = 0; u && j < u->inside.n; j++)
      if (u->inside.v[j] == id) most = MAX(most, u->sweeps);
  }
  return most;
}

static void join(Fuser *f, Cluster *c, int id, int pos) {
  bool sums = f->info[pos].op->kind == OP_REDUCE;
  f->info[pos].sweeps = MAX(f->info[pos].sweeps, sweeps_after(f, id, pos) + sums);
  if (!has_member(c, pos)) {
    *vec_push(&c->members) = pos;
    c->functions += is_function(f->info[pos].op);
    *vec_push(&f->info[pos].inside) = id;
  }
  c->first = MIN(c->first, pos);
  c->last = MAX(c->last, pos);
}

/* ---- joining ---- */

bool cluster_take(Fuser *f, int id, int pos, bool as_out) {
  Cluster *c = f->clusters.v[id];
  Op *op = f->info[pos].op;
  if (has_member(c, pos)) return true;
  if (is_function(op) && c->functions >= MAX_FUNCTIONS) return false;
  if (op->kind == OP_CONCATENATE && op->n_operands > MOST_BRANCHES) return false;
  Saved s = save(c);
  bool ok = true;
  int n_visits = 0;
  if (op->kind == OP_REDUCE)
    ok = sweeps_after(f, id, pos) < MAX_SWEEPS && cluster_take_reduce(f, c, op);
  for (int i = 0; i < c->visits.n && ok; i++) {
    const Visit *o = &c->visits.v[i];
    if (o->v->def != op) continue;
    n_visits++;
    bool heavy = op_is_heavy(op);
    if (op->kind == OP_REDUCE) continue;
    if (repeats(c, o) && (type_count(o->v->type) > 64 || (heavy && turns(c) > SMALL_COUNT))) {
      if (heavy || is_masked(op) || ++c->repeats > MAX_LIGHT_REPEATS) ok = op_is_cheap(op);
    }
    if (o->masked && !op_is_cheap(op) && (heavy || ++c->repeats > MAX_LIGHT_REPEATS)) ok = false;
    if (n_visits > 1 && heavy) ok = false;
    bool scarce = c->kind == FUSION_SPLIT ? heavy : c->kind == FUSION_LOOP && is_function(op);
    if (scarce && wastes_lanes(c, o)) ok = false;
    if (n_visits > 2 && !op_is_cheap(op) && ++c->repeats > MAX_LIGHT_REPEATS) ok = false;
  }
  if (as_out && !n_visits)
    ok = false; /* a piece that nobody reads: there is no place to store it */
  if (ok) ok = expand(f, c, op);
  for (int i = 0; i < c->visits.n && ok && as_out; i++) {
    const Visit *o = &c->visits.v[i];
    if (o->v->def != op) continue;
    bool whole = cluster_in_order(c, o, true),
         row = c->kind == FUSION_ROW && cluster_in_order(c, o, false);
    ok = !o->masked && (whole || row);
  }
  if (ok && as_out && c->kind == FUSION_SPLIT)
    for (int i = 0; i < c->visits.n && ok; i++)
      if (c->visits.v[i].v->def == op) ok = cluster_in_order(c, &c->visits.v[i], true);
  if (!restore(c, &s, ok)) return false;
  join(f, c, id, pos);
  return true;
}

/* ---- new clusters ---- */

static bool any_reduced(const Domain *d) {
  for (int k = 0; k < d->n; k++)
    if (d->reduced[k]) return true;
  return false;
}

void cluster_free(Cluster *c) {
  vec_free(&c->visits);
  vec_free(&c->members);
  vec_free(&c->outs);
  free(c);
}

#define MANY_APART 16 /* elements: pieces that are written without the others' between them */

bool op_is_in_parts(const Op *op) {
  if (op->kind != OP_CONCATENATE || op->n_operands < 2 || op->n_operands > MAX_PARTS) return false;
  const Type *t = op->operands[0]->type;
  bool same = true, all_splat = true;
  for (int k = 0; k < op->n_operands; k++) {
    same &= op->operands[k]->type == t;
    all_splat &= value_splat(op->operands[k]) != NULL;
  }
  if (!same || all_splat) return false;
  int64_t run = 1; /* of a piece in memory */
  for (int64_t i = op_int(op, "dimension", 0); i < t->rank; i++) run *= t->dims[i];
  return run == 1 || run >= MANY_APART;
}

#define FEW_BESIDE 4 /* the coordinates of points, colours: too few for the lanes */
#define LEAST_ROW 64
#define MOST_ROW \
  32768 /* elements that stay in the cache while they are gone through for each of the few */

/* The operand's dimensions as the domain has them: of a sum whose elements lie FEW_BESIDE or less together these few come before it,
 * so that the lanes are along the sum. */
static void domain_order(const Op *op, const Type *shape, int *order, bool *red) {
  const int64_t *rd = NULL;
  int nr = op->kind == OP_REDUCE ? op_ints(op, "dimensions", &rd) : 0, last = -1, n = 0;
  int64_t row = 1, few = 1, rows = 1;
  for (int i = 0; i < shape->rank; i++) {
    red[i] = false;
    for (int j = 0; j < nr; j++) red[i] |= rd[j] == i;
    if (red[i] && shape->dims[i] > 1) last = i;
    *(red[i] ? &row : &rows) *= shape->dims[i];
  }
  int first = last; /* of the run of dimensions that are summed over */
  while (first > 0 && red[first - 1]) first--;
  for (int i = last + 1; i < shape->rank; i++) few *= shape->dims[i];
  bool moved = last >= 0 && few > 1 && few <= FEW_BESIDE && rows >= MIN_ROWS && row >= LEAST_ROW &&
               row * few <= MOST_ROW;
  for (int i = 0; i < first; i++) moved &= !red[i];
  for (int i = 0; i < shape->rank; i++)
    if (!moved || i < first || i > last) order[n++] = i;
  for (int i = first; moved && i <= last; i++) order[n++] = i;
}

int cluster_new(Fuser *f, int pos) {
  Op *op = f->info[pos].op;
  bool parts = op_is_in_parts(op);
  if (op->kind == OP_CONCATENATE && !parts && op->n_operands > MOST_BRANCHES) return -1;
  Cluster *c = xcalloc(1, sizeof *c);
  int id = f->clusters.n;
  c->first = c->last = pos;
  const Type *shape = op->kind == OP_REDUCE || parts ? op->operands[0]->type : op_type(op);
  Affine at[DOM_MAX];
  memset(at, 0, sizeof at);
  int64_t count = 1, kept = 1;
  int order[DOM_MAX];
  bool red[DOM_MAX];
  domain_order(op, shape, order, red);
  for (int k = 0; k < shape->rank; k++) {
    int i = order[k], next = 0;
    for (int j = 0; j < i; j++) next += !red[j];
    if (shape->dims[i] > 1) {
      c->dom.dims[c->dom.n] = shape->dims[i];
      c->dom.reduced[c->dom.n] = red[i];
      if (!red[i]) at[next].coef[c->dom.n] = 1;
      c->dom.n++;
    }
    if (!red[i]) kept *= shape->dims[i];
    count *= shape->dims[i];
  }
  if (op->kind == OP_REDUCE) {
    bool inner = c->dom.n > 0 && c->dom.reduced[c->dom.n - 1];
    bool rows = inner ? kept >= MIN_ROWS || count <= SMALL_COUNT : reduce_lies_across(op);
    c->kind = rows ? FUSION_ROW : FUSION_SPLIT;
    if (!any_reduced(&c->dom)) c->kind = FUSION_ROW; /* of one element each */
  }
  for (int i = 0; i < op->n_results; i++) {
    if (!parts) add_visit(f, c, &op->results[i], at, false, false);
    *vec_push(&c->outs) = &op->results[i];
  }
  for (int i = 0; i < op->n_operands && parts; i++)
    if (!value_splat(op->operands[i])) add_visit(f, c, op->operands[i], at, false, false);
  c->parts = parts ? op : NULL;
  if (!expand(f, c, op)) {
    vec_free(&c->visits);
    vec_free(&c->outs);
    free(c);
    return -1;
  }
  *vec_push(&f->clusters) = c;
  join(f, c, id, pos);
  return id;
}
