/* Each op gives links: a dimension of one value ties to a dimension of another. Links are collected
 * once; then axes flow along them, both ways, in rounds, each round in program order: first along
 * those of operations that hand every element on, where nothing is lost by a cut, then along all. A
 * link carries the axes of its better-known side: a prefix loses against what it is a prefix of; two
 * lists that disagree stop each other.
 */
#include "compile/spmd/propagate.h"

#include <stdlib.h>

#define MAX_AXES 8
#define MAX_ROUNDS 32

typedef struct Axes {
  int n;
  AxisRef a[MAX_AXES];
  bool closed;
} Axes;

typedef struct Link {
  Value *a, *b;
  int da, db;
  bool early; /* of an operation that hands its elements on */
} Link;

typedef struct Group { /* sdy.sharding_group: values sharded alike */
  int64_t id;
  Value *first;
} Group;

typedef struct Spread {
  Module *m;
  const Mesh *mesh;
  Str mesh_name;
  Axes **dims; /* by value id: rank entries, NULL for rank 0 or non-tensors */
  VEC(Link) links;
  VEC(Group) groups;
  bool early; /* of the links being made */
} Spread;

static bool axis_same(AxisRef a, AxisRef b) {
  return str_eq(a.name, b.name) && a.sub_pre == b.sub_pre && a.sub_size == b.sub_size;
}

static int64_t axis_size(const Spread *s, AxisRef a) {
  if (a.sub_size) return a.sub_size;
  for (int i = 0; i < s->mesh->n_axes; i++)
    if (str_eq(s->mesh->axes[i].name, a.name)) return s->mesh->axes[i].size;
  return 1;
}

static int64_t parts(const Spread *s, const Axes *x) {
  int64_t n = 1;
  for (int i = 0; i < x->n; i++) n *= axis_size(s, x->a[i]);
  return n;
}

/* ---- links ---- */

static bool is_tensor(const Value *v) { return v->type->kind == TY_TENSOR; }

static void link_dims(Spread *s, Value *a, int da, Value *b, int db) {
  if (!is_tensor(a) || !is_tensor(b) || da >= a->type->rank || db >= b->type->rank) return;
  *vec_push(&s->links) = (Link){a, b, da, db, s->early};
}

static void link_all(Spread *s, Value *a, Value *b) {
  if (!is_tensor(a) || !is_tensor(b) || a->type->rank != b->type->rank) return;
  for (int d = 0; d < a->type->rank; d++)
    if (a->type->dims[d] == b->type->dims[d]) link_dims(s, a, d, b, d);
}

static bool in_list(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* Dimensions outside `gone` keep their order. */
static void link_without(Spread *s, Value *whole, const int64_t *gone, int n, Value *rest) {
  int at = 0;
  for (int d = 0; d < whole->type->rank; d++)
    if (!in_list(gone, n, d)) link_dims(s, whole, d, rest, at++);
}

bool reshape_group(const Type *a, const Type *b, int *i, int *j, int *i0, int *j0) {
  while (*i < a->rank && a->dims[*i] == 1) ++*i; /* belongs to no group */
  while (*j < b->rank && b->dims[*j] == 1) ++*j;
  if (*i == a->rank || *j == b->rank) return false;
  int64_t pa = a->dims[*i], pb = b->dims[*j];
  *i0 = (*i)++, *j0 = (*j)++;
  while (pa != pb) {
    if (pa < pb && *i < a->rank) pa *= a->dims[(*i)++];
    else if (pb < pa && *j < b->rank) pb *= b->dims[(*j)++];
    else return false; /* arrays without elements */
  }
  return true;
}

/* The major dimensions of a group tie. */
static void link_reshape(Spread *s, Value *x, Value *r) {
  int i0, j0, i = 0, j = 0;
  while (reshape_group(x->type, r->type, &i, &j, &i0, &j0)) link_dims(s, x, i0, r, j0);
}

static void link_dot(Spread *s, Op *op) {
  Value *x = op->operands[0], *y = op->operands[1], *r = &op->results[0];
  const int64_t *xb = NULL, *yb = NULL, *xc = NULL, *yc = NULL;
  static const int64_t zero[1] = {0};
  int64_t last = x->type->rank - 1;
  int nb = 0, nc = 1;
  if (op->kind == OP_DOT) {
    xc = &last;
    yc = zero;
  } else {
    nb = op_ints(op, "lhs_batching_dimensions", &xb);
    op_ints(op, "rhs_batching_dimensions", &yb);
    nc = op_ints(op, "lhs_contracting_dimensions", &xc);
    op_ints(op, "rhs_contracting_dimensions", &yc);
  }
  int at = nb;
  for (int i = 0; i < nb; i++) {
    link_dims(s, x, (int)xb[i], r, i);
    link_dims(s, y, (int)yb[i], r, i);
  }
  for (int i = 0; i < nc; i++) link_dims(s, x, (int)xc[i], y, (int)yc[i]);
  for (int d = 0; d < x->type->rank; d++)
    if (!in_list(xb, nb, d) && !in_list(xc, nc, d)) link_dims(s, x, d, r, at++);
  for (int d = 0; d < y->type->rank; d++)
    if (!in_list(yb, nb, d) && !in_list(yc, nc, d)) link_dims(s, y, d, r, at++);
}

static void link_conv(Spread *s, Op *op) {
  Value *x = op->operands[0], *k = op->operands[1], *r = &op->results[0];
  int out_batch = (int)op_int(op, "output_batch_dimension", 0);
  int out_feature = (int)op_int(op, "output_feature_dimension", 0);
  if (op_int(op, "batch_group_count", 1) == 1)
    link_dims(s, x, (int)op_int(op, "input_batch_dimension", 0), r, out_batch);
  if (op_int(op, "feature_group_count", 1) == 1)
    link_dims(s, x, (int)op_int(op, "input_feature_dimension", 0), k,
              (int)op_int(op, "kernel_input_feature_dimension", 0));
  link_dims(s, k, (int)op_int(op, "kernel_output_feature_dimension", 0), r, out_feature);
}

static void link_gather(Spread *s, Op *op) {
  Value *x = op->operands[0], *ids = op->operands[1], *r = &op->results[0];
  const int64_t *offset, *collapsed, *batch, *ids_batch, *sizes;
  int no = op_ints(op, "offset_dims", &offset),
      nc = op_ints(op, "collapsed_slice_dims", &collapsed);
  int nb = op_ints(op, "operand_batching_dims", &batch);
  op_ints(op, "start_indices_batching_dims", &ids_batch);
  op_ints(op, "slice_sizes", &sizes);
  int64_t vector = op_int(op, "index_vector_dim", 0);
  int at = 0;
  for (int d = 0; d < x->type->rank; d++) {
    if (in_list(collapsed, nc, d) || in_list(batch, nb, d)) continue;
    if (at < no && sizes[d] == x->type->dims[d]) link_dims(s, x, d, r, (int)offset[at]);
    at++;
  }
  int id = 0;
  for (int d = 0; d < r->type->rank; d++) {
    if (in_list(offset, no, d)) continue;
    if (id == vector) id++;
    link_dims(s, ids, id++, r, d);
  }
  for (int i = 0; i < nb; i++) link_dims(s, x, (int)batch[i], ids, (int)ids_batch[i]);
}

static void link_scatter(Spread *s, Op *op) {
  int n = op->n_results;
  const int64_t *window, *inserted, *batch, *ids_batch;
  int nw = op_ints(op, "update_window_dims", &window),
      ni = op_ints(op, "inserted_window_dims", &inserted);
  int nb = op_ints(op, "input_batching_dims", &batch);
  op_ints(op, "scatter_indices_batching_dims", &ids_batch);
  int64_t vector = op_int(op, "index_vector_dim", 0);
  Value *ids = op->operands[n];
  for (int i = 0; i < nb; i++) link_dims(s, op->operands[0], (int)batch[i], ids, (int)ids_batch[i]);
  for (int k = 0; k < n; k++) {
    Value *x = op->operands[k], *u = op->operands[n + 1 + k];
    link_all(s, x, &op->results[k]);
    int at = 0;
    for (int d = 0; d < x->type->rank; d++) {
      if (in_list(inserted, ni, d) || in_list(batch, nb, d)) continue;
      if (at < nw && u->type->dims[window[at]] == x->type->dims[d])
        link_dims(s, x, d, u, (int)window[at]);
      at++;
    }
    for (int d = 0, id = 0; d < u->type->rank; d++) {
      if (in_list(window, nw, d)) continue;
      if (id == vector) id++;
      link_dims(s, ids, id++, u, d);
    }
  }
}

int batch_dims(const Op *op) {
  if (!op->n_results) return 0;
  const int64_t *v;
  switch (op->kind) {
  case OP_CHOLESKY:
  case OP_TRIANGULAR_SOLVE: return op->results[0].type->rank - 2;
  case OP_FFT: return op->results[0].type->rank - op_ints(op, "fft_length", &v);
  case OP_CUSTOM_CALL: break;
  default: return 0;
  }
  const Attr *front = op_attr(op, "mhlo.frontend_attributes"), *n = NULL;
  if (front && front->kind == AT_DICT) n = attrs_get(front->dict, front->n, "num_batch_dims");
  if (!n || n->kind != AT_STRING || n->s.n != 1 || n->s.p[0] < '0' || n->s.p[0] > '9') return 0;
  int dims = n->s.p[0] - '0';
  for (int k = 0; k < op->n_operands + op->n_results; k++) { /* a wish: true of these values? */
    const Value *x = k < op->n_operands ? op->operands[k] : &op->results[k - op->n_operands];
    const Type *t = x->type, *first = op->results[0].type;
    if (t->kind != TY_TENSOR || first->kind != TY_TENSOR || t->rank < dims || first->rank < dims)
      return 0;
    for (int d = 0; d < dims; d++)
      if (t->dims[d] != first->dims[d]) return 0;
  }
  return dims;
}

static void link_batch(Spread *s, Op *op) {
  for (int d = 0, n = batch_dims(op); d < n; d++) {
    for (int k = 0; k < op->n_operands; k++) link_dims(s, op->operands[k], d, &op->results[0], d);
    for (int i = 1; i < op->n_results; i++) link_dims(s, &op->results[0], d, &op->results[i], d);
  }
}

static void link_group(Spread *s, int64_t id, Value *v) {
  for (int i = 0; i < s->groups.n; i++)
    if (s->groups.v[i].id == id) {
      link_all(s, s->groups.v[i].first, v);
      return;
    }
  *vec_push(&s->groups) = (Group){id, v};
}

static void link_op(Spread *s, Op *op);

static void link_region(Spread *s, Region *r) {
  bool early = s->early;
  for (Op *op = r->first; op; op = op->next) link_op(s, op);
  s->early = early;
}

/* An element of the result comes of one element of each operand: cutting both alike moves nothing. */
static bool hands_on(const Op *op) {
  switch (op->kind) {
  case OP_TRANSPOSE:
  case OP_RESHAPE:
  case OP_SHARDING_GROUP:
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_OPTIMIZATION_BARRIER:
  case OP_WHILE:
  case OP_CASE:
  case OP_IF: return true;
  default: return op_info[op->kind].cls == OC_EWISE;
  }
}

static void link_op(Spread *s, Op *op) {
  s->early = hands_on(op);
  Value *r = op->n_results ? &op->results[0] : NULL;
  const int64_t *v;
  int n;
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
    n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (op->operands[0]->type->dims[i] == r->type->dims[v[i]])
        link_dims(s, op->operands[0], i, r, (int)v[i]);
    return;
  case OP_TRANSPOSE:
    n = op_ints(op, "permutation", &v);
    for (int i = 0; i < n; i++) link_dims(s, op->operands[0], (int)v[i], r, i);
    return;
  case OP_RESHAPE: link_reshape(s, op->operands[0], r); return;
  case OP_REDUCE:
    n = op_ints(op, "dimensions", &v);
    for (int k = 0; k < op->n_results; k++) link_without(s, op->operands[k], v, n, &op->results[k]);
    for (int k = 1; k < op->n_results; k++) link_all(s, op->operands[0], op->operands[k]);
    return;
  case OP_DOT:
  case OP_DOT_GENERAL: link_dot(s, op); return;
  case OP_CONVOLUTION: link_conv(s, op); return;
  case OP_GATHER: link_gather(s, op); return;
  case OP_SCATTER: link_scatter(s, op); return;
  case OP_DYNAMIC_UPDATE_SLICE:
    link_all(s, op->operands[0], r);
    link_all(s, op->operands[1], r);
    return;
  case OP_CONCATENATE:
  case OP_SORT: {
    int64_t dim = op_int(op, "dimension", -1);
    for (int k = 0; k < op->n_operands; k++) {
      Value *x = op->operands[k], *y = op->kind == OP_SORT ? &op->results[k] : r;
      if (dim < 0) dim += x->type->rank;
      for (int d = 0; d < x->type->rank; d++)
        if (d != dim) link_dims(s, x, d, y, d);
    }
    return;
  }
  case OP_WHILE: /* what a loop makes is known before what comes after it */
    for (int k = 0; k < op->n_results; k++)
      for (int i = 0; i < 2; i++) link_all(s, op->operands[k], op->regions[i]->args[k]);
    for (int i = 0; i < 2; i++) link_region(s, op->regions[i]);
    for (int k = 0; k < op->n_results; k++) {
      link_all(s, op->operands[k], &op->results[k]);
      link_all(s, op->regions[1]->last->operands[k], &op->results[k]);
      for (int i = 0; i < 2; i++) link_all(s, op->regions[i]->args[k], &op->results[k]);
    }
    return;
  case OP_CASE:
  case OP_IF:
    for (int i = 0; i < op->n_regions; i++) {
      link_region(s, op->regions[i]);
      for (int k = 0; k < op->n_results; k++)
        link_all(s, op->regions[i]->last->operands[k], &op->results[k]);
    }
    return;
  case OP_OPTIMIZATION_BARRIER:
    for (int k = 0; k < op->n_results; k++) link_all(s, op->operands[k], &op->results[k]);
    return;
  case OP_SHARDING_GROUP: link_group(s, op_int(op, "group_id", 0), op->operands[0]); return;
  case OP_CUSTOM_CALL:
    if (op_is_remark(op)) break;
    link_batch(s, op);
    return;
  case OP_CHOLESKY:
  case OP_TRIANGULAR_SOLVE:
  case OP_FFT: link_batch(s, op); return;
  case OP_MANUAL_COMPUTATION:
  case OP_BITCAST_CONVERT:
  case OP_RNG_BIT_GENERATOR: return;
  default: break;
  }
  /* element-wise, slice, pad, reverse, reduce_window, constraint: equal sizes at equal places */
  for (int k = 0; k < op->n_operands && r; k++) link_all(s, op->operands[k], r);
}

void dims_tied(Func *f, void (*fn)(void *arg, Value *a, int da, Value *b, int db), void *arg) {
  Spread s = {.m = f->module};
  link_region(&s, f->body);
  for (int i = 0; i < s.links.n; i++)
    fn(arg, s.links.v[i].a, s.links.v[i].da, s.links.v[i].b, s.links.v[i].db);
  vec_free(&s.links);
  vec_free(&s.groups);
}

/* ---- seeds ---- */

static void seed(Spread *s, Value *v, const Attr *a) {
  if (!a || a->kind != AT_SHARDING || !is_tensor(v) || a->sharding->n_dims != v->type->rank ||
      v->id < 0)
    return;
  const Sharding *sh = a->sharding;
  if (!sh->mesh && !str_eq(sh->mesh_name, s->mesh_name)) return;
  for (int d = 0; d < sh->n_dims; d++) {
    Axes *x = &s->dims[v->id][d];
    if (x->closed || sh->dims[d].n_axes > MAX_AXES) continue;
    x->n = sh->dims[d].n_axes;
    for (int i = 0; i < x->n; i++) x->a[i] = sh->dims[d].axes[i];
    x->closed = !sh->dims[d].open;
  }
}

static void seed_list(Spread *s, Value *const *values, Value *results, int n, const Attr *list) {
  for (int i = 0; list && list->kind == AT_ARRAY && i < n && i < list->n; i++)
    seed(s, values ? values[i] : &results[i], list->items[i]);
}

static Err *seed_op(Op *op, void *arg) {
  Spread *s = arg;
  if (op->kind == OP_SHARDING_CONSTRAINT || op->kind == OP_RESHARD)
    seed(s, &op->results[0], op_attr(op, "sharding"));
  if (op->kind == OP_MANUAL_COMPUTATION) {
    seed_list(s, NULL, op->results, op->n_results, op_attr(op, "out_shardings"));
  } else {
    const Attr *a = op_attr(op, "sdy.sharding");
    if (a && a->kind == AT_ARRAY) seed_list(s, NULL, op->results, op->n_results, a);
    else if (a && op->n_results) seed(s, &op->results[0], a);
  }
  return NULL;
}

static void find_mesh(Spread *s, const Func *f) {
  for (int pass = 0; pass < 2 && !s->mesh; pass++) {
    int n = pass ? f->type->n_results : f->type->n_elems;
    for (int i = 0; i < n && !s->mesh; i++) {
      const Attr *a = pass ? attrs_get(f->res_attrs[i], f->n_res_attrs[i], "sdy.sharding")
                           : attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding");
      if (!a || a->kind != AT_SHARDING || a->sharding->mesh) continue;
      const Mesh *mesh = module_mesh(s->m, a->sharding->mesh_name);
      if (!mesh || mesh->n_axes == 0) continue;
      s->mesh = mesh;
      s->mesh_name = a->sharding->mesh_name;
    }
  }
  /* else the first mesh with axes: constraints and manual computations name it */
  for (int i = 0; i < s->m->meshes.n && !s->mesh; i++)
    if (s->m->meshes.v[i].value->mesh->n_axes) {
      s->mesh = s->m->meshes.v[i].value->mesh;
      s->mesh_name = s->m->meshes.v[i].name;
    }
}

/* ---- flow ---- */

static bool used_elsewhere(const Axes *dims, int rank, int d, AxisRef a) {
  for (int k = 0; k < rank; k++)
    for (int i = 0; k != d && i < dims[k].n; i++)
      if (str_eq(dims[k].a[i].name, a.name)) return true;
  return false;
}

/* Gives `to` the axes of `from` when that only adds. */
static bool flow(const Spread *s, const Value *to, int d, const Axes *from) {
  Axes *dims = s->dims[to->id], *x = &dims[d];
  if (x->closed || from->n <= x->n) return false;
  for (int i = 0; i < x->n; i++)
    if (!axis_same(x->a[i], from->a[i])) return false;
  Axes want = *x;
  for (int i = x->n; i < from->n; i++) {
    if (used_elsewhere(dims, to->type->rank, d, from->a[i])) break;
    want.a[want.n++] = from->a[i];
    if (to->type->dims[d] < 0 || to->type->dims[d] % parts(s, &want)) {
      want.n--;
      break;
    }
  }
  if (want.n == x->n) return false;
  *x = want;
  return true;
}

static void spread(Spread *s, bool early) {
  bool changed = true;
  for (int round = 0; changed && round < MAX_ROUNDS; round++) {
    changed = false;
    for (int i = 0; i < s->links.n; i++) { /* forward in program order, then back */
      const Link *l = &s->links.v[i];
      if (early && !l->early) continue;
      changed |= flow(s, l->b, l->db, &s->dims[l->a->id][l->da]);
    }
    for (int i = s->links.n - 1; i >= 0; i--) {
      const Link *l = &s->links.v[i];
      if (early && !l->early) continue;
      changed |= flow(s, l->a, l->da, &s->dims[l->b->id][l->db]);
    }
  }
}

static Attr *sharding_attr(Spread *s, const Value *v) {
  Arena *a = s->m->arena;
  Sharding *sh = ARENA_NEW(a, Sharding);
  sh->mesh_name = s->mesh_name;
  sh->n_dims = is_tensor(v) ? v->type->rank : 0;
  sh->dims = ARENA_ARRAY(a, DimSharding, sh->n_dims);
  for (int d = 0; d < sh->n_dims; d++) {
    const Axes *x = &s->dims[v->id][d];
    sh->dims[d] = (DimSharding){
        .n_axes = x->n, .axes = arena_dup(a, x->a, sizeof *x->a * (size_t)x->n), .priority = -1};
  }
  Attr *at = ARENA_NEW(a, Attr);
  at->kind = AT_SHARDING;
  at->sharding = sh;
  return at;
}

static Err *note_op(Op *op, void *arg) {
  Spread *s = arg;
  if (!op->n_results || op->results[0].id < 0) return NULL;
  Attr **items = xmalloc(sizeof *items * (size_t)op->n_results);
  for (int i = 0; i < op->n_results; i++) items[i] = sharding_attr(s, &op->results[i]);
  op_set_attr(s->m, op, STR("weft.sharding"), attr_array(s->m, op->n_results, items));
  free(items);
  return NULL;
}

static Err *alloc_region(Spread *s, Region *r) {
  for (int i = 0; i < r->n_args; i++)
    if (is_tensor(r->args[i]))
      s->dims[r->args[i]->id] = xcalloc((size_t)r->args[i]->type->rank, sizeof(Axes));
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++)
      if (is_tensor(&op->results[i]))
        s->dims[op->results[i].id] = xcalloc((size_t)op->results[i].type->rank, sizeof(Axes));
    for (int i = 0; i < op->n_regions; i++) alloc_region(s, op->regions[i]);
  }
  return NULL;
}

/* What manual computations want of operands that nothing has cut; true: something changed. */
static bool ask_operands(Spread *s, const Region *r) {
  bool changed = false;
  for (const Op *op = r->first; op; op = op->next) {
    const Attr *in = op->kind == OP_MANUAL_COMPUTATION ? op_attr(op, "in_shardings") : NULL;
    for (int k = 0; in && k < op->n_operands && k < in->n; k++) {
      const Value *v = op->operands[k];
      const Sharding *sh = in->items[k]->kind == AT_SHARDING ? in->items[k]->sharding : NULL;
      if (!sh || !is_tensor(v) || sh->n_dims != v->type->rank) continue;
      if (!sh->mesh && !str_eq(sh->mesh_name, s->mesh_name)) continue;
      for (int d = 0; d < sh->n_dims; d++) {
        Axes want = {.n = MIN(sh->dims[d].n_axes, MAX_AXES)};
        for (int i = 0; i < want.n; i++) want.a[i] = sh->dims[d].axes[i];
        if (s->dims[v->id][d].n == 0) changed |= flow(s, v, d, &want);
      }
    }
    for (int i = 0; op->kind != OP_MANUAL_COMPUTATION && i < op->n_regions; i++)
      changed |= ask_operands(s, op->regions[i]);
  }
  return changed;
}

/* The attributes with a sharding more, in the order of names. */
static void add_sharding(Module *m, NamedAttr **attrs, int *n, Attr *sharding) {
  NamedAttr *grown = ARENA_ARRAY(m->arena, NamedAttr, *n + 1);
  int at = 0;
  while (at < *n && str_cmp((*attrs)[at].name, STR("sdy.sharding")) < 0)
    grown[at] = (*attrs)[at], at++;
  grown[at] = (NamedAttr){STR("sdy.sharding"), sharding};
  for (; at < *n; at++) grown[at + 1] = (*attrs)[at];
  *attrs = grown;
  *n += 1;
}

/* An end's sharding where it had none: a constraint inside may cut unevenly, an end may not. */
static void note_end(Spread *s, const Value *v, NamedAttr **attrs, int *n) {
  if (attrs_get(*attrs, *n, "sdy.sharding")) return;
  for (int d = 0; is_tensor(v) && d < v->type->rank; d++) {
    Axes *x = &s->dims[v->id][d];
    if (v->type->dims[d] < 0 || v->type->dims[d] % parts(s, x)) x->n = 0;
  }
  add_sharding(s->m, attrs, n, sharding_attr(s, v));
}

static void propagate(Module *m, bool arguments, bool results, bool all_values) {
  Func *f = module_main(m);
  if (!f || !f->body) return;
  Spread s = {.m = m};
  find_mesh(&s, f);
  if (!s.mesh) return;
  int n_values = ir_number(f);
  s.dims = xcalloc((size_t)n_values, sizeof *s.dims);
  alloc_region(&s, f->body);
  Op *ret = f->body->last;
  for (int i = 0; i < f->body->n_args; i++) {
    /* without a sharding it arrives whole on every device, but may be cut there as its readers are */
    seed(&s, f->body->args[i], attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding"));
  }
  err_free(ir_walk(f->body, seed_op, &s));
  for (int j = 0; j < ret->n_operands; j++)
    if (ret->operands[j]->def)
      seed(&s, ret->operands[j], attrs_get(f->res_attrs[j], f->n_res_attrs[j], "sdy.sharding"));
  link_region(&s, f->body);
  spread(&s, true);
  spread(&s, false);
  if (ask_operands(&s, f->body)) spread(&s, false);
  for (int i = 0; arguments && i < f->body->n_args; i++)
    note_end(&s, f->body->args[i], &f->arg_attrs[i], &f->n_arg_attrs[i]);
  for (int j = 0; results && j < ret->n_operands; j++)
    note_end(&s, ret->operands[j], &f->res_attrs[j], &f->n_res_attrs[j]);
  if (all_values) err_free(ir_walk(f->body, note_op, &s));
  for (int i = 0; i < n_values; i++) free(s.dims[i]);
  free(s.dims);
  vec_free(&s.links);
  vec_free(&s.groups);
}

void pass_propagate(Module *m, bool all_values) { propagate(m, false, true, all_values); }
void pass_open_arguments(Module *m) { propagate(m, true, false, false); }
