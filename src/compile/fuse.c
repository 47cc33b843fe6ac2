/* fuse: divides a region's ops into fusions and single steps.
 *
 * Walks backwards, users before producers. An op joins the cluster of its users when that is one
 * cluster (it is then computed where it is needed and never stored), or when several users or the
 * outside want it and one cluster visits it exactly once per element (it becomes a further output).
 * Otherwise it starts a cluster of its own. Cheap ops (broadcasts, iota, reshapes) are computed
 * again in every cluster that wants them.
 *
 * A cluster knows each (value, affine index over its domain) that it visits; a producer can join
 * when the indices of its operands are affine too (index.c), dividing domain dimensions where
 * reshapes ask for it. Reductions join as rows (softmax, layer norm: sweeps over the reduced
 * dimensions for each kept element) or start a cluster whose domain is their operand's shape.
 *
 * No cycles: a further output is allowed only if none of the other users leads back to the cluster.
 * Costs: visits are bounded by MAX_VISITS for a cluster, what would be computed many times over
 * (heavy ops below a broadcast, branches of a concatenate) stays out. */
#include "compile/compile_priv.h"

#include <stdlib.h>

#define MAX_VISITS 700
#define SMALL_COUNT 16384 /* below this, shapes do not matter for speed */
#define MIN_ROWS 16       /* fewer rows than this of a long reduction: cut the rows instead */
#define MAX_LIGHT_REPEATS 6

typedef struct Visit {
  Value *v;
  Affine *at;  /* rank of v entries */
  bool inside; /* computed here; else read from memory */
  bool masked; /* below a pad or concatenate */
} Visit;

typedef struct Cluster {
  FusionKind kind;
  Domain dom;
  VEC(Visit) visits;
  VEC(int) members; /* positions of ops */
  VEC(Value *) outs;
  int first, last; /* positions */
  int repeats;
  bool dead;
} Cluster;

typedef struct Info { /* of the op at a position */
  Op *op;
  VEC(int) inside; /* clusters that compute it */
  bool alias;      /* exists in memory as another name of its operand */
  bool step;       /* a step of its own */
  int stamp;
} Info;

typedef struct Fuser {
  Module *m;
  const Target *t;
  Region *r;
  Arena *mem;
  int n;
  Info *info;
  VEC(Cluster *) clusters;
  Map *pos;    /* op -> position + 1 */
  int **users; /* by position: positions of users, -1 ended; position n = outside */
  int *n_users;
  Origin *origins;
  int stamp;
} Fuser;

bool op_is_alias(const Op *op) {
  switch (op->kind) {
  case OP_RESHAPE:
  case OP_COPY: return true;
  case OP_OPTIMIZATION_BARRIER: return true;
  case OP_BITCAST_CONVERT: return op->operands[0]->type->rank == op_type(op)->rank;
  case OP_CUSTOM_CALL:
    return str_is(op_str(op, "call_target_name"), "Sharding") && op->n_operands == 1 &&
           op->n_results == 1;
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER: return true;
  default: return false;
  }
}

/* ---- clusters ---- */

bool op_is_heavy(const Op *op) {
  switch (op->kind) {
  case OP_EXPONENTIAL:
  case OP_EXPONENTIAL_MINUS_ONE:
  case OP_LOG:
  case OP_LOG_PLUS_ONE:
  case OP_LOGISTIC:
  case OP_TANH:
  case OP_TAN:
  case OP_SINE:
  case OP_COSINE:
  case OP_POWER:
  case OP_ATAN2:
  case OP_CBRT:
  case OP_SQRT:
  case OP_RSQRT:
  case OP_DIVIDE:
  case OP_REMAINDER:
  case OP_CHLO_ERF:
  case OP_CHLO_ERFC:
  case OP_CHLO_ERF_INV: return true;
  default: return op_info[op->kind].cls == OC_REDUCE;
  }
}

static bool is_cheap(const Op *op) {
  return op->kind == OP_IOTA || op->kind == OP_BROADCAST_IN_DIM || op->kind == OP_SLICE ||
         op->kind == OP_REVERSE;
}

static bool has_member(const Cluster *c, int pos) {
  for (int i = 0; i < c->members.n; i++)
    if (c->members.v[i] == pos) return true;
  return false;
}

static Affine *new_index(Fuser *f, int rank) { return ARENA_ARRAY(f->mem, Affine, rank + 1); }

/* Finds or adds. false: too many. */
static bool add_visit(Fuser *f, Cluster *c, Value *v, const Affine *at, bool masked) {
  for (int i = 0; i < c->visits.n; i++) {
    Visit *o = &c->visits.v[i];
    if (o->v != v || o->masked != masked) continue;
    bool same = true;
    for (int d = 0; d < v->type->rank && same; d++) same = affine_equal(&c->dom, &o->at[d], &at[d]);
    if (same) return true;
  }
  if (c->visits.n >= MAX_VISITS) return false;
  Affine *own = new_index(f, v->type->rank);
  if (v->type->rank) memcpy(own, at, sizeof *at * (size_t)v->type->rank);
  *vec_push(&c->visits) = (Visit){v, own, false, masked};
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
    Affine *at = new_index(f, o->v->type->rank);
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
static bool index_is(const Cluster *c, const Visit *o, bool full) {
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

static bool any_reduced(const Domain *d) {
  for (int k = 0; k < d->n; k++)
    if (d->reduced[k]) return true;
  return false;
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
    Affine at[DOM_MAX];
    bool masked = c->visits.v[i].masked || op->kind == OP_PAD || op->kind == OP_CONCATENATE;
    for (int k = 0; k < op->n_operands; k++) {
      if (value_splat(op->operands[k])) continue;
      int split;
      int64_t inner;
      memset(at, 0, sizeof at);
      if (!index_operand(&c->dom, op, k, c->visits.v[i].at, at, &split, &inner)) {
        if (split < 0 || !split_dim(f, c, split, inner)) return false;
        goto again;
      }
      if (!add_visit(f, c, op->operands[k], at, masked)) return false;
    }
    c->visits.v[i].inside = true;
  }
  return true;
}

static void join(Fuser *f, Cluster *c, int id, int pos) {
  if (!has_member(c, pos)) {
    *vec_push(&c->members) = pos;
    *vec_push(&f->info[pos].inside) = id;
  }
  c->first = MIN(c->first, pos);
  c->last = MAX(c->last, pos);
}

/* A reduction joins the cluster of its users: as rows of what they compute, or with them as its
 * epilogue. */
static bool adopt_reduce(Fuser *f, Cluster *c, Op *op) {
  if (c->kind == FUSION_SPLIT) return false;
  const Type *from = op->operands[0]->type;
  const int64_t *rd;
  int nr = op_ints(op, "dimensions", &rd);
  int64_t size = 1, kept = type_count(op_type(op));
  bool last_reduced = false;
  for (int i = 0; i < nr; i++) size *= from->dims[rd[i]];
  int last = from->rank - 1;
  while (last > 0 && from->dims[last] == 1) last--;
  for (int i = 0; i < nr; i++) last_reduced |= rd[i] == last;
  if (!last_reduced && type_count(from) > 256) return false;
  if (kept < MIN_ROWS && size > SMALL_COUNT) return false;
  bool depends[DOM_MAX] = {false};
  for (int i = 0; i < c->visits.n; i++) {
    const Visit *o = &c->visits.v[i];
    if (o->v->def != op) continue;
    if (o->masked) return false;
    for (int d = 0; d < o->v->type->rank; d++)
      for (int k = 0; k < c->dom.n; k++) depends[k] |= o->at[d].coef[k] != 0 && c->dom.dims[k] > 1;
  }
  if (c->kind == FUSION_ROW) {
    int64_t rows = 1;
    for (int k = 0; k < c->dom.n; k++) {
      if (c->dom.reduced[k]) rows *= c->dom.dims[k];
      if (depends[k] && c->dom.reduced[k]) return false;
    }
    return rows == size;
  }
  int64_t others = 1;
  bool all = true;
  for (int k = 0; k < c->dom.n; k++) {
    if (!depends[k]) others *= c->dom.dims[k];
    all &= depends[k] || c->dom.dims[k] == 1;
  }
  if (!all) { /* rows of a larger whole: what no visit depends on is summed over */
    if (others != size || depends[c->dom.n - 1]) return false;
    if (kept * size != others * kept) return false;
    for (int k = 0; k < c->dom.n; k++) c->dom.reduced[k] = !depends[k];
    c->kind = FUSION_ROW;
    return true;
  }
  /* Epilogue: all visits of the result are the whole domain, in order; the reduced dimensions are
   * put in where the operand has them. */
  if (c->dom.n + nr > DOM_MAX || size == 1) return false;
  const Visit *one = NULL;
  for (int i = 0; i < c->visits.n; i++)
    if (c->visits.v[i].v->def == op) {
      if (!index_is(c, &c->visits.v[i], true)) return false;
      one = &c->visits.v[i];
    }
  if (!one) return false;
  int map[DOM_MAX], n = 0, d = 0; /* new dimension -> old one or -1 */
  Domain nd = {0};
  int at = 0;
  for (int i = 0; i < from->rank; i++) {
    bool red = false;
    for (int j = 0; j < nr; j++) red |= rd[j] == i;
    if (red) {
      if (n == DOM_MAX) return false;
      nd.dims[n] = from->dims[i];
      nd.reduced[n] = true;
      map[n++] = -1;
      continue;
    }
    int64_t want = op_type(op)->dims[at++],
            have = 1; /* the domain dimensions that make up this one */
    while (have < want && d < c->dom.n) {
      if (n == DOM_MAX) return false;
      have *= c->dom.dims[d];
      nd.dims[n] = c->dom.dims[d];
      map[n++] = d++;
    }
    if (have != want) return false;
  }
  for (; d < c->dom.n; d++) {
    if (c->dom.dims[d] != 1 || n == DOM_MAX) return false;
    nd.dims[n] = 1;
    map[n++] = d;
  }
  nd.n = n;
  for (int i = 0; i < c->visits.n; i++) {
    Visit *o = &c->visits.v[i];
    Affine *ix = new_index(f, o->v->type->rank);
    for (int j = 0; j < o->v->type->rank; j++) {
      ix[j].off = o->at[j].off;
      for (int k = 0; k < n; k++) ix[j].coef[k] = map[k] >= 0 ? o->at[j].coef[map[k]] : 0;
    }
    o->at = ix;
  }
  c->dom = nd;
  c->kind = FUSION_ROW;
  return true;
}

/* Tries to compute the op inside cluster `id`; as_out: its results become outputs. Leaves the
 * cluster as it was on failure. */
static bool try_join(Fuser *f, int id, int pos, bool as_out) {
  Cluster *c = f->clusters.v[id];
  Op *op = f->info[pos].op;
  if (has_member(c, pos)) return true;
  Saved s = save(c);
  bool ok = true;
  int n_visits = 0;
  if (op->kind == OP_REDUCE) ok = adopt_reduce(f, c, op);
  for (int i = 0; i < c->visits.n && ok; i++) {
    const Visit *o = &c->visits.v[i];
    if (o->v->def != op) continue;
    n_visits++;
    bool heavy = op_is_heavy(op);
    if (op->kind == OP_REDUCE) continue;
    if (repeats(c, o) && type_count(o->v->type) > 64) {
      if (heavy || ++c->repeats > MAX_LIGHT_REPEATS) ok = is_cheap(op);
    }
    if (o->masked && !is_cheap(op) && (heavy || ++c->repeats > MAX_LIGHT_REPEATS)) ok = false;
    if (n_visits > 1 && heavy) ok = false;
    if (n_visits > 2 && !is_cheap(op) && ++c->repeats > MAX_LIGHT_REPEATS) ok = false;
  }
  if (ok) ok = expand(f, c, op);
  for (int i = 0; i < c->visits.n && ok && as_out; i++) {
    const Visit *o = &c->visits.v[i];
    if (o->v->def != op) continue;
    bool whole = index_is(c, o, true), row = c->kind == FUSION_ROW && index_is(c, o, false);
    ok = !o->masked && (whole || row);
  }
  if (ok && as_out && c->kind == FUSION_SPLIT)
    for (int i = 0; i < c->visits.n && ok; i++)
      if (c->visits.v[i].v->def == op) ok = index_is(c, &c->visits.v[i], true);
  if (!restore(c, &s, ok)) return false;
  join(f, c, id, pos);
  return true;
}

/* ---- new clusters ---- */

static int new_cluster(Fuser *f, int pos) {
  Op *op = f->info[pos].op;
  Cluster *c = xcalloc(1, sizeof *c);
  int id = f->clusters.n;
  c->first = c->last = pos;
  const Type *shape = op->kind == OP_REDUCE ? op->operands[0]->type : op_type(op);
  Affine at[DOM_MAX];
  memset(at, 0, sizeof at);
  int64_t count = 1, kept = 1;
  const int64_t *rd = NULL;
  int nr = op->kind == OP_REDUCE ? op_ints(op, "dimensions", &rd) : 0, next = 0;
  for (int i = 0; i < shape->rank; i++) {
    bool red = false;
    for (int j = 0; j < nr; j++) red |= rd[j] == i;
    if (shape->dims[i] > 1) {
      c->dom.dims[c->dom.n] = shape->dims[i];
      c->dom.reduced[c->dom.n] = red;
      if (!red) at[next].coef[c->dom.n] = 1;
      c->dom.n++;
    }
    if (!red) {
      next++;
      kept *= shape->dims[i];
    }
    count *= shape->dims[i];
  }
  if (op->kind == OP_REDUCE) {
    bool inner = c->dom.n > 0 && c->dom.reduced[c->dom.n - 1];
    c->kind = inner && (kept >= MIN_ROWS || count <= SMALL_COUNT) ? FUSION_ROW : FUSION_SPLIT;
    if (!any_reduced(&c->dom)) c->kind = FUSION_ROW; /* of one element each */
  }
  for (int i = 0; i < op->n_results; i++) {
    add_visit(f, c, &op->results[i], at, false);
    *vec_push(&c->outs) = &op->results[i];
  }
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

/* ---- data flow ---- */

static int pos_of(const Fuser *f, const Op *op) {
  return (int)(intptr_t)map_get(f->pos, (Str){(const char *)&op, sizeof op}) - 1;
}

/* Does a path of data lead from the op at `pos` into cluster `id`? A cluster runs as a whole. */
static bool leads_to(Fuser *f, int pos, int id) {
  if (pos >= f->n) return false;
  Info *in = &f->info[pos];
  const Cluster *goal = f->clusters.v[id];
  if (pos > goal->last) {
    bool any = false; /* the clusters it belongs to may reach back before it */
    for (int i = 0; i < in->inside.n; i++)
      any |= f->clusters.v[in->inside.v[i]]->first <= goal->last;
    if (!any) return false;
  }
  if (in->stamp == f->stamp) return false;
  in->stamp = f->stamp;
  for (int i = 0; i < in->inside.n; i++)
    if (in->inside.v[i] == id) return true;
  for (int i = 0; i < f->n_users[pos]; i++)
    if (leads_to(f, f->users[pos][i], id)) return true;
  for (int i = 0; i < in->inside.n; i++) {
    const Cluster *c = f->clusters.v[in->inside.v[i]];
    for (int j = 0; j < c->members.n; j++)
      if (f->info[c->members.v[j]].stamp != f->stamp && leads_to(f, c->members.v[j], id))
        return true;
  }
  return false;
}

/* May the op become a further output of the cluster: do its other users not lead back? */
static bool output_is_safe(Fuser *f, int pos, int id) {
  f->stamp++;
  for (int i = 0; i < f->n_users[pos]; i++) {
    int u = f->users[pos][i];
    if (u >= f->n) continue;
    bool only_here = f->info[u].inside.n == 1 && f->info[u].inside.v[0] == id &&
                     !f->info[u].alias && !f->info[u].step;
    if (only_here) continue;
    /* a user computed in this cluster and in others: the others */
    for (int j = 0; j < f->info[u].inside.n; j++) {
      int other = f->info[u].inside.v[j];
      if (other == id) continue;
      const Cluster *c = f->clusters.v[other];
      for (int k = 0; k < c->outs.n; k++) {
        int p = pos_of(f, c->outs.v[k]->def);
        for (int w = 0; w < f->n_users[p]; w++)
          if (leads_to(f, f->users[p][w], id)) return false;
      }
    }
    if (f->info[u].alias || f->info[u].step) {
      for (int w = 0; w < f->n_users[u]; w++)
        if (leads_to(f, f->users[u][w], id)) return false;
    }
  }
  return true;
}

static void gather_users(Fuser *f) {
  f->n = 0;
  for (Op *op = f->r->first; op && op != f->r->last; op = op->next) f->n++;
  f->info = xcalloc((size_t)f->n + 1, sizeof *f->info);
  f->users = xcalloc((size_t)f->n + 1, sizeof *f->users);
  f->n_users = xcalloc((size_t)f->n + 1, sizeof *f->n_users);
  f->pos = map_new();
  int i = 0;
  for (Op *op = f->r->first; op && op != f->r->last; op = op->next, i++) {
    f->info[i].op = op;
    map_set(f->pos, (Str){(const char *)&op, sizeof op}, (void *)(intptr_t)(i + 1));
  }
}

static void add_user(Fuser *f, Value *v, int user) {
  if (!v->def || v->region != f->r) return;
  int p = pos_of(f, v->def);
  if (p < 0) return;
  int n = f->n_users[p];
  if (n && f->users[p][n - 1] == user) return;
  f->users[p] = xrealloc(f->users[p], sizeof(int) * (size_t)(n + 1));
  f->users[p][f->n_users[p]++] = user;
}

static void add_users_inside(Fuser *f, const Region *r, int user) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) add_user(f, op->operands[i], user);
    for (int i = 0; i < op->n_regions; i++) add_users_inside(f, op->regions[i], user);
  }
}

/* ---- the walk ---- */

static bool can_fuse(const Fuser *f, const Op *op) {
  for (int i = 0; i < op->n_results; i++) {
    const Type *t = op->results[i].type;
    if (!type_is_static(t) || t->kind != TY_TENSOR || t->quant || t->rank > DOM_MAX ||
        type_count(t) == 0)
      return false;
  }
  for (int i = 0; i < op->n_operands; i++) {
    const Type *t = op->operands[i]->type;
    if (!type_is_static(t) || t->kind != TY_TENSOR || t->quant || t->rank > DOM_MAX ||
        type_count(t) == 0)
      return false;
  }
  if (op->n_results == 0) return false;
  if (op->kind == OP_TRANSPOSE &&
      type_count(op_type(op)) > 4096) { /* runs along the last dimension only */
    const int64_t *perm;
    int n = op_ints(op, "permutation", &perm), last = n - 1;
    while (last > 0 && op_type(op)->dims[last] == 1) last--;
    int64_t after = 1;
    for (int64_t i = perm[last] + 1; i < n; i++) after *= op->operands[0]->type->dims[i];
    if (after != 1) return false;
  }
  if (op->kind == OP_CONCATENATE && op->n_operands > 4) return false;
  return f->t->fusible(f->t->arg, op);
}

/* Does the cluster read something else that comes from one of these roots? */
static bool reads_root(const Fuser *f, const Cluster *c, const Op *op, const Origin *o) {
  for (int i = 0; i < c->visits.n; i++) {
    const Visit *x = &c->visits.v[i];
    if (x->inside || x->v->def == op) continue;
    int p = x->v->def && x->v->region == f->r ? pos_of(f, x->v->def) : -1;
    const Origin *other = p >= 0 ? &f->origins[p] : NULL;
    for (int k = 0; k < o->n; k++) {
      if (x->v == o->root[k]) return true;
      for (int j = 0; other && j < MIN(other->n, AGAIN_ROOTS); j++)
        if (other->root[j] == o->root[k]) return true;
    }
  }
  return false;
}

/* Should each of these clusters compute the op for itself? */
static bool is_better_again(const Fuser *f, int pos, const int *clusters, int n) {
  const Origin *o = &f->origins[pos];
  if (!o->again) return false;
  for (int i = 0; i < n && o->n > 1; i++)
    if (!reads_root(f, f->clusters.v[clusters[i]], f->info[pos].op, o)) return false;
  return true;
}

static void place_op(Fuser *f, int pos) {
  Info *in = &f->info[pos];
  Op *op = in->op;
  VEC(int) set = {0};
  bool escapes = false;
  for (int i = 0; i < f->n_users[pos]; i++) {
    int u = f->users[pos][i];
    if (u >= f->n || f->info[u].alias || f->info[u].step) escapes = true;
    if (u >= f->n) continue;
    for (int j = 0; j < f->info[u].inside.n; j++) {
      bool have = false;
      for (int k = 0; k < set.n; k++) have |= set.v[k] == f->info[u].inside.v[j];
      if (!have) *vec_push(&set) = f->info[u].inside.v[j];
    }
  }
  bool alias = op_is_alias(op);
  if (op->kind == OP_CONSTANT || (!alias && !can_fuse(f, op))) {
    in->step = true;
    goto out;
  }
  if (alias) {
    bool inline_it =
        (op->kind == OP_RESHAPE || op->kind == OP_BITCAST_CONVERT || op->kind == OP_COPY) &&
        can_fuse(f, op);
    for (int i = 0; i < set.n; i++)
      if (!inline_it || !try_join(f, set.v[i], pos, false)) escapes = true;
    in->alias = escapes;
    goto out;
  }
  if (is_cheap(op) || (!escapes && set.n > 1 && is_better_again(f, pos, set.v, set.n))) {
    for (int i = 0; i < set.n; i++)
      if (!try_join(f, set.v[i], pos, false)) escapes = true;
    if (escapes && new_cluster(f, pos) < 0) in->step = true;
    goto out;
  }
  if (!escapes && set.n == 1 && try_join(f, set.v[0], pos, false)) goto out;
  if (op->n_results == 1)
    for (int i = 0; i < set.n; i++) {
      Cluster *c = f->clusters.v[set.v[i]];
      if (!output_is_safe(f, pos, set.v[i]) || !try_join(f, set.v[i], pos, true)) continue;
      *vec_push(&c->outs) = &op->results[0];
      goto out;
    }
  if (new_cluster(f, pos) < 0) in->step = true;
out:
  vec_free(&set);
}

/* ---- result ---- */

static int by_int(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

bool fusion_has(const Fusion *f, const Op *op) {
  for (int i = 0; i < f->n_ops; i++)
    if (f->ops[i] == op) return true;
  return false;
}

static Fusion *make_fusion(Fuser *f, Cluster *c) {
  Arena *a = f->m->arena;
  Fusion *u = ARENA_NEW(a, Fusion);
  u->kind = c->kind;
  u->dom = c->dom;
  qsort(c->members.v, (size_t)c->members.n, sizeof(int), by_int);
  u->n_ops = c->members.n;
  u->ops = ARENA_ARRAY(a, const Op *, c->members.n);
  for (int i = 0; i < c->members.n; i++) u->ops[i] = f->info[c->members.v[i]].op;
  u->out = ARENA_ARRAY(a, FusionOut, c->outs.n);
  for (int i = 0; i < c->outs.n; i++) {
    FusionOut *o = &u->out[u->n_out];
    o->v = c->outs.v[i];
    for (int j = 0; j < c->visits.n;
         j++) { /* the visit that is in order; a multi-output may have others */
      const Visit *v = &c->visits.v[j];
      if (v->v != o->v) continue;
      bool full = index_is(c, v, true);
      if (!full && !index_is(c, v, false)) continue;
      o->full = full && !(o->v->def->kind == OP_REDUCE);
      if (v->v->type->rank) memcpy(o->at, v->at, sizeof(Affine) * (size_t)v->v->type->rank);
      u->n_out++;
      break;
    }
  }
  u->in = ARENA_ARRAY(a, Value *, c->visits.n);
  u->in_place = ARENA_ARRAY(a, bool, c->visits.n);
  for (int j = 0; j < c->visits.n; j++) {
    const Visit *v = &c->visits.v[j];
    if (v->inside) continue;
    int k = 0;
    while (k < u->n_in && u->in[k] != v->v) k++;
    if (k == u->n_in) {
      u->in[u->n_in++] = v->v;
      u->in_place[k] = c->kind == FUSION_LOOP;
    }
    u->in_place[k] &= !v->masked && index_is(c, v, true);
  }
  return u;
}

static void schedule(Fuser *f, Nodes *out);

static int position(const void *arg, const Op *op) { return pos_of(arg, op); }

static void find_origins(Fuser *f) {
  AgainInput in = {f->r, f->n, NULL, NULL, f->users, f->n_users, position, f};
  in.ops = xcalloc((size_t)f->n + 1, sizeof *in.ops);
  in.fusible = xcalloc((size_t)f->n + 1, 1);
  for (int i = 0; i < f->n; i++) {
    in.ops[i] = f->info[i].op;
    in.fusible[i] = can_fuse(f, in.ops[i]);
  }
  f->origins = again_find(&in);
  free(in.ops);
  free(in.fusible);
}

Err *fuse_region(Module *m, const Target *t, Region *r, Nodes *out) {
  Fuser f = {.m = m, .t = t, .r = r, .mem = arena_new()};
  gather_users(&f);
  for (int i = 0; i < f.n; i++) {
    Op *op = f.info[i].op;
    for (int k = 0; k < op->n_operands; k++) add_user(&f, op->operands[k], i);
    for (int k = 0; k < op->n_regions; k++) add_users_inside(&f, op->regions[k], i);
  }
  for (int k = 0; k < r->last->n_operands; k++) add_user(&f, r->last->operands[k], f.n);
  find_origins(&f);
  for (int i = f.n - 1; i >= 0; i--) place_op(&f, i);
  schedule(&f, out);
  for (int i = 0; i < f.clusters.n; i++) {
    Cluster *c = f.clusters.v[i];
    vec_free(&c->visits);
    vec_free(&c->members);
    vec_free(&c->outs);
    free(c);
  }
  for (int i = 0; i < f.n; i++) {
    vec_free(&f.info[i].inside);
    free(f.users[i]);
  }
  vec_free(&f.clusters);
  map_free(f.pos);
  free(f.info);
  free(f.users);
  free(f.n_users);
  free(f.origins);
  arena_free(f.mem);
  return NULL;
}

/* ---- order: as written, each node as late as its last op, producers first ---- */

typedef struct Order {
  Fuser *f;
  Fusion **fusions; /* by cluster */
  bool *done;       /* by cluster, then by op */
  int *home;        /* position -> cluster that outputs it, or -1 */
  Nodes *out;
} Order;

static void emit_value(Order *o, Value *v);

static void emit_cluster(Order *o, int id) {
  if (o->done[id]) return;
  o->done[id] = true;
  Fusion *u = o->fusions[id];
  for (int i = 0; i < u->n_in; i++) emit_value(o, u->in[i]);
  *vec_push(o->out) = (Node){NODE_FUSION, NULL, u};
}

static void emit_inside(Order *o, const Region *r) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) emit_value(o, op->operands[i]);
    for (int i = 0; i < op->n_regions; i++) emit_inside(o, op->regions[i]);
  }
}

static void emit_op(Order *o, int pos) {
  Fuser *f = o->f;
  if (o->done[f->clusters.n + pos]) return;
  o->done[f->clusters.n + pos] = true;
  Op *op = f->info[pos].op;
  for (int i = 0; i < op->n_operands; i++) emit_value(o, op->operands[i]);
  for (int i = 0; i < op->n_regions; i++) emit_inside(o, op->regions[i]);
  *vec_push(o->out) = (Node){NODE_OP, op, NULL};
}

static void emit_value(Order *o, Value *v) {
  if (!v->def || v->region != o->f->r) return;
  int p = pos_of(o->f, v->def);
  if (p < 0) return;
  const Info *in = &o->f->info[p];
  if (in->alias || in->step) emit_op(o, p);
  else if (o->home[p] >= 0) emit_cluster(o, o->home[p]);
}

/* A fusion of one op that a library kernel does as well or better becomes that op's own step. */
static bool is_plain_move(const Fusion *u) {
  if (u->n_ops != 1 || u->n_out != 1) return false;
  OpKind k = u->ops[0]->kind;
  return k == OP_CONCATENATE || k == OP_TRANSPOSE;
}

static void schedule(Fuser *f, Nodes *out) {
  Order o = {.f = f, .out = out};
  o.fusions = xcalloc((size_t)f->clusters.n + 1, sizeof *o.fusions);
  o.done = xcalloc((size_t)(f->clusters.n + f->n) + 1, sizeof *o.done);
  o.home = xmalloc(sizeof(int) * (size_t)(f->n + 1));
  for (int i = 0; i < f->n; i++) o.home[i] = -1;
  for (int id = 0; id < f->clusters.n; id++) {
    Cluster *c = f->clusters.v[id];
    o.fusions[id] = make_fusion(f, c);
    if (is_plain_move(o.fusions[id])) {
      f->info[c->members.v[0]].step = true;
      o.done[id] = true;
      continue;
    }
    for (int k = 0; k < c->outs.n; k++) o.home[pos_of(f, c->outs.v[k]->def)] = id;
  }
  for (int i = 0; i < f->n; i++) {
    const Info *in = &f->info[i];
    if (in->step || in->alias) emit_op(&o, i);
    if (o.home[i] >= 0 && f->clusters.v[o.home[i]]->last == i) emit_cluster(&o, o.home[i]);
  }
  for (int id = 0; id < f->clusters.n; id++)
    if (!o.done[id]) emit_cluster(&o, id);
  free(o.fusions);
  free(o.done);
  free(o.home);
}
