/* fuse: from clusters to nodes. */
#include "compile/fuse/fuse_priv.h"

#include <stdlib.h>

/* ---- a cluster as a fusion ---- */

static int by_int(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

bool fusion_has(const Fusion *f, const Op *op) {
  for (int i = 0; i < f->n_ops; i++)
    if (f->ops[i] == op) return true;
  return false;
}

bool fusion_stores(const Fusion *f, const Op *op) {
  for (int i = 0; i < f->n_ops; i++)
    if (f->ops[i] == op) return f->stored[i];
  return false;
}

/* The visit of v that is in order (there may be others), or one that an output can be written with. */
static const Visit *visit_in_order(const Cluster *c, const Value *v, bool *full) {
  for (int j = 0; j < c->visits.n; j++) {
    const Visit *o = &c->visits.v[j];
    if (o->v != v) continue;
    *full = cluster_in_order(c, o, true);
    if (*full || cluster_in_order(c, o, false)) return o;
  }
  return NULL;
}

static FusionOut *add_out(Fusion *u, Value *v, const Visit *at, int part, bool full) {
  FusionOut *o = &u->out[u->n_out++];
  *o = (FusionOut){.v = v, .part = part, .full = full};
  if (v->type->rank) memcpy(o->at, at->at, sizeof(Affine) * (size_t)v->type->rank);
  return o;
}

/* A piece that is one value all over is visited nowhere: it is where the others are. */
static void add_parts(Fusion *u, const Cluster *c, const Op *op) {
  int64_t dim = op_int(op, "dimension", 0), at = 0;
  const Visit *in_order = NULL;
  bool full;
  for (int k = 0; k < op->n_operands && !in_order; k++)
    in_order = visit_in_order(c, op->operands[k], &full);
  assert(in_order);
  full &= c->kind == FUSION_LOOP || !cluster_in_order(c, in_order, false);
  for (int k = 0; k < op->n_operands; k++) {
    FusionOut *o = add_out(u, (Value *)&op->results[0], in_order, k, full);
    o->at[dim].off += at;
    at += op->operands[k]->type->dims[dim];
  }
}

static void add_outs(Fuser *f, const Cluster *c, Fusion *u) {
  u->out = ARENA_ARRAY(f->m->arena, FusionOut, c->outs.n + MAX_PARTS);
  for (int i = 0; i < c->outs.n; i++) {
    Value *v = c->outs.v[i];
    bool full;
    const Visit *o = c->parts == v->def ? NULL : visit_in_order(c, v, &full);
    if (c->parts == v->def) add_parts(u, c, v->def);
    else if (o) add_out(u, v, o, -1, full && v->def->kind != OP_REDUCE);
  }
}

static Fusion *make_fusion(Fuser *f, Cluster *c, const bool *stored) {
  Arena *a = f->m->arena;
  Fusion *u = ARENA_NEW(a, Fusion);
  u->kind = c->kind;
  u->dom = c->dom;
  qsort(c->members.v, (size_t)c->members.n, sizeof(int), by_int);
  u->n_ops = c->members.n;
  u->ops = ARENA_ARRAY(a, const Op *, c->members.n);
  u->stored = ARENA_ARRAY(a, bool, c->members.n);
  for (int i = 0; i < c->members.n; i++) {
    u->ops[i] = f->info[c->members.v[i]].op;
    u->stored[i] = f->t->round_each || stored[c->members.v[i]];
  }
  add_outs(f, c, u);
  u->in = ARENA_ARRAY(a, Value *, c->visits.n);
  u->in_place = ARENA_ARRAY(a, bool, c->visits.n);
  for (int j = 0; j < c->visits.n; j++) {
    const Visit *v = &c->visits.v[j];
    if (v->inside) continue;
    int k = 0;
    while (k < u->n_in && u->in[k] != v->v) k++;
    if (k == u->n_in) {
      u->in[u->n_in++] = v->v;
      u->in_place[k] = c->kind == FUSION_LOOP && !c->parts;
    }
    u->in_place[k] &= !v->masked && !v->anywhere && cluster_in_order(c, v, true);
  }
  return u;
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

static void put_op(Order *o, int pos) {
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
  int p = fuser_pos(o->f, v->def);
  if (p < 0) return;
  const Info *in = &o->f->info[p];
  if (in->alias || in->step) put_op(o, p);
  else if (o->home[p] >= 0) emit_cluster(o, o->home[p]);
}

#define LONG_ROW 4096 /* bytes: its pieces are long enough to be copied one by one */

static bool has_long_rows(const Op *concat) {
  const Type *t = op_type(concat);
  int64_t bytes = dtype_bytes(t->dtype);
  for (int64_t i = op_int(concat, "dimension", 0); i < t->rank; i++) bytes *= t->dims[i];
  return bytes >= LONG_ROW;
}

/* A fusion of one op that a library kernel does as well or better becomes that op's own step. */
static bool is_plain_move(const Fusion *u) {
  const Op *last = u->ops[u->n_ops - 1];
  for (int i = 0; i + 1 < u->n_ops; i++)
    if (u->ops[i]->kind != OP_RESHAPE) return false;
  if (last->kind == OP_CONCATENATE) return has_long_rows(last);
  if (last->kind == OP_GATHER) return u->n_out == 1;
  return last->kind == OP_TRANSPOSE && u->n_ops == 1 && u->n_out == 1;
}

static void make_steps(Fuser *f, const Cluster *c) {
  for (int i = 0; i < c->members.n; i++) {
    Info *in = &f->info[c->members.v[i]];
    if (op_is_alias(in->op)) in->alias = true;
    else in->step = true;
  }
}

void fuser_nodes(Fuser *f, Nodes *out) {
  Order o = {.f = f, .out = out};
  o.fusions = xcalloc((size_t)f->clusters.n + 1, sizeof *o.fusions);
  o.done = xcalloc((size_t)(f->clusters.n + f->n) + 1, sizeof *o.done);
  o.home = xmalloc(sizeof(int) * (size_t)(f->n + 1));
  for (int i = 0; i < f->n; i++) o.home[i] = -1;
  bool *stored = fuser_stored(f);
  for (int id = 0; id < f->clusters.n; id++) {
    Cluster *c = f->clusters.v[id];
    o.fusions[id] = make_fusion(f, c, stored);
    if (is_plain_move(o.fusions[id])) {
      make_steps(f, c);
      o.done[id] = true;
      continue;
    }
    for (int k = 0; k < c->outs.n; k++) o.home[fuser_pos(f, c->outs.v[k]->def)] = id;
  }
  for (int i = 0; i < f->n; i++) {
    const Info *in = &f->info[i];
    if (in->step || in->alias) put_op(&o, i);
    if (o.home[i] >= 0 && f->clusters.v[o.home[i]]->last == i) emit_cluster(&o, o.home[i]);
  }
  for (int id = 0; id < f->clusters.n; id++)
    if (!o.done[id]) emit_cluster(&o, id);
  free(stored);
  free(o.fusions);
  free(o.done);
  free(o.home);
}
