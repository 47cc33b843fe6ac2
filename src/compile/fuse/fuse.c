/* fuse: divides a region's ops into fusions and single steps.
 *
 * Walks backwards, users before producers. An op joins the cluster of its users when that is one
 * cluster (it is then computed where it is needed and never stored), or when several users or the
 * outside want it and one cluster visits it exactly once per element (it becomes a further output).
 * Otherwise it starts a cluster of its own. Cheap ops (broadcasts, iota, reshapes) are computed
 * again in every cluster that wants them. What a cluster can take is in cluster.c.
 *
 * No cycles: a further output is allowed only if none of the other users leads back to the
 * cluster. */
#include "compile/fuse/fuse_priv.h"

#include <stdlib.h>

/* ---- kinds of ops ---- */

bool op_is_cheap(const Op *op) {
  return op->kind == OP_IOTA || op->kind == OP_BROADCAST_IN_DIM || op->kind == OP_SLICE ||
         op->kind == OP_REVERSE;
}

/* ---- data flow ---- */

int fuser_pos(const Fuser *f, const Op *op) {
  return (int)(intptr_t)map_get(f->pos, (Str){(const char *)&op, sizeof op}) - 1;
}

/* The last position from which data can come to the cluster: it runs as a whole, and so does what
 * overlaps with it, whose results lead to whatever overlaps with that. */
static int last_before(const Fuser *f, int id) {
  int last = f->clusters.v[id]->last;
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < f->clusters.n; i++) {
      const Cluster *c = f->clusters.v[i];
      if (c->first > last || c->last <= last) continue;
      last = c->last;
      more = true;
    }
  }
  return last;
}

/* Does a path of data lead from the op at `from` into cluster `id`? What reads a value is its users'
 * clusters, each as a whole: then its outputs come after it. What has the current stamp has been
 * looked at; ops after `last` need not be. */
static bool leads_to(Fuser *f, int from, int id, int last) {
  VEC(int) todo = {0};
  bool found = false;
  *vec_push(&todo) = from;
  while (todo.n && !found) {
    int pos = todo.v[--todo.n];
    if (pos > last || f->info[pos].stamp == f->stamp) continue;
    Info *in = &f->info[pos];
    in->stamp = f->stamp;
    for (int i = 0; i < f->n_users[pos] && (in->alias || in->step); i++)
      *vec_push(&todo) = f->users[pos][i];
    for (int i = 0; i < in->inside.n; i++) {
      Cluster *c = f->clusters.v[in->inside.v[i]];
      found |= in->inside.v[i] == id;
      if (c->stamp == f->stamp) continue;
      c->stamp = f->stamp;
      for (int j = 0; j < c->outs.n; j++) {
        int out = fuser_pos(f, c->outs.v[j]->def);
        for (int k = 0; k < f->n_users[out]; k++) *vec_push(&todo) = f->users[out][k];
      }
    }
  }
  vec_free(&todo);
  return found;
}

/* May the op become a further output of the cluster: do its other users not lead back? */
static bool output_is_safe(Fuser *f, int pos, int id) {
  int last = MIN(last_before(f, id), f->n - 1);
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
        int p = fuser_pos(f, c->outs.v[k]->def);
        for (int w = 0; w < f->n_users[p]; w++)
          if (leads_to(f, f->users[p][w], id, last)) return false;
      }
    }
    if (f->info[u].alias || f->info[u].step) {
      for (int w = 0; w < f->n_users[u]; w++)
        if (leads_to(f, f->users[u][w], id, last)) return false;
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
  int p = fuser_pos(f, v->def);
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
  return f->t->fusible(f->t->arg, op);
}

/* Does the cluster read something else that comes from one of these roots? */
static bool reads_root(const Fuser *f, const Cluster *c, const Op *op, const Origin *o) {
  for (int i = 0; i < c->visits.n; i++) {
    const Visit *x = &c->visits.v[i];
    if (x->inside || x->v->def == op) continue;
    int p = x->v->def && x->v->region == f->r ? fuser_pos(f, x->v->def) : -1;
    const Origin *other = p >= 0 ? &f->origins[p] : NULL;
    for (int k = 0; k < o->n; k++) {
      if (x->v == o->root[k]) return true;
      for (int j = 0; other && j < MIN(other->n, REMAT_ROOTS); j++)
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
  if (escapes && op_is_part_of_argument(op)) { /* nothing to compute */
    in->step = true;
    goto out;
  }
  if (op->kind == OP_CONSTANT || (!alias && !can_fuse(f, op))) {
    in->step = true;
    goto out;
  }
  if (alias) {
    bool inline_it =
        (op->kind == OP_RESHAPE || op->kind == OP_BITCAST_CONVERT || op->kind == OP_COPY) &&
        can_fuse(f, op);
    for (int i = 0; i < set.n; i++)
      if (!inline_it || !cluster_take(f, set.v[i], pos, false)) escapes = true;
    in->alias = escapes;
    goto out;
  }
  if (op_is_cheap(op) || (!escapes && set.n > 1 && is_better_again(f, pos, set.v, set.n))) {
    for (int i = 0; i < set.n; i++)
      if (!cluster_take(f, set.v[i], pos, false)) escapes = true;
    if (escapes && cluster_new(f, pos) < 0) in->step = true;
    goto out;
  }
  if (!escapes && set.n == 1 && cluster_take(f, set.v[0], pos, false)) goto out;
  if (op->kind == OP_GATHER && gather_run(op) >= GATHER_ROW) { /* rows alone are the library's */
    in->step = true;
    goto out;
  }
  if (op->n_results == 1)
    for (int i = 0; i < set.n; i++) {
      Cluster *c = f->clusters.v[set.v[i]];
      if (!output_is_safe(f, pos, set.v[i]) || !cluster_take(f, set.v[i], pos, true)) continue;
      *vec_push(&c->outs) = &op->results[0];
      goto out;
    }
  if (cluster_new(f, pos) < 0) in->step = true;
out:
  vec_free(&set);
}
static int position(const void *arg, const Op *op) { return fuser_pos(arg, op); }

static void find_origins(Fuser *f) {
  RematInput in = {f->r, f->n, NULL, NULL, f->users, f->n_users, position, f};
  in.ops = xcalloc((size_t)f->n + 1, sizeof *in.ops);
  in.fusible = xcalloc((size_t)f->n + 1, 1);
  for (int i = 0; i < f->n; i++) {
    in.ops[i] = f->info[i].op;
    in.fusible[i] = can_fuse(f, in.ops[i]);
  }
  f->origins = remat_find(&in);
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
  fuser_nodes(&f, out);
  for (int i = 0; i < f.clusters.n; i++) cluster_free(f.clusters.v[i]);
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
