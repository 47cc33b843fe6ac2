/* Which dimensions an operation ties together: a link for each pair, a step for all of one operation (of a
 * loop, one for each value that it carries). */
#include <stdlib.h>

#include "compile/spmd/propagate.h"
#include "compile/spmd/propagate_priv.h"
#include "compile/spmd/window.h"
#include "ir/build.h"

static bool is_tensor(const Value *v) { return v->type->kind == TY_TENSOR; }

static void new_step(Spread *s, StepKind kind, const Op *op) {
  *vec_push(&s->steps) = (Step){.kind = kind, .op = op, .first_link = s->links.n};
}

/* What follows ties all that one value of a region is outside and inside. */
static void new_edge(Spread *s, const Value *out) {
  new_step(s, STEP_HANDS_ON, NULL);
  s->steps.v[s->steps.n - 1].edge = out;
}

static void link_dims(Spread *s, Value *a, int da, Value *b, int db) {
  if (!is_tensor(a) || !is_tensor(b) || da >= a->type->rank || db >= b->type->rank) return;
  *vec_push(&s->links) = (Link){a, b, da, db, false};
}

/* Dimensions that the result has none of. */
static void link_reduced(Spread *s, Value *a, int da, Value *b, int db) {
  int before = s->links.n;
  link_dims(s, a, da, b, db);
  if (s->links.n > before) s->links.v[before].reduced = true;
}

static void link_all(Spread *s, Value *a, Value *b) {
  if (!is_tensor(a) || !is_tensor(b) || a->type->rank != b->type->rank) return;
  for (int d = 0; d < a->type->rank; d++)
    if (a->type->dims[d] == b->type->dims[d]) link_dims(s, a, d, b, d);
}

/* Parts of an array, or it and more: cut where it is, whatever the sizes. */
static void link_moved(Spread *s, Value *a, Value *b) {
  for (int d = 0; d < a->type->rank && s->mesh; d++) link_dims(s, a, d, b, d);
  if (!s->mesh) link_all(s, a, b);
}

/* What slices took of an array, to be shifted or turned round: as the array is cut, whatever the size of a slice. */
static void link_behind(Spread *s, const Value *x, int dim, Value *r) {
  for (; s->mesh && op_slices_along(x->def, dim); x = x->def->operands[0])
    link_dims(s, x->def->operands[0], dim, r, dim);
}

/* Dimensions outside `gone` keep their order. */
static void link_without(Spread *s, Value *whole, const int64_t *gone, int n, Value *rest) {
  int at = 0;
  for (int d = 0; d < whole->type->rank; d++)
    if (!b_has_dim(n, gone, d)) link_dims(s, whole, d, rest, at++);
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
  if (MAX(x->type->rank, y->type->rank) > B_MAX_RANK) return;
  DotDims d = b_dot_dims(op);
  int at = d.n_batch;
  for (int i = 0; i < d.n_batch; i++) {
    link_dims(s, x, (int)d.lhs_batch[i], r, i);
    link_dims(s, y, (int)d.rhs_batch[i], r, i);
  }
  for (int i = 0; i < x->type->rank; i++)
    if (!b_has_dim(d.n_batch, d.lhs_batch, i) && !b_has_dim(d.n_contract, d.lhs_contract, i))
      link_dims(s, x, i, r, at++);
  for (int i = 0; i < y->type->rank; i++)
    if (!b_has_dim(d.n_batch, d.rhs_batch, i) && !b_has_dim(d.n_contract, d.rhs_contract, i))
      link_dims(s, y, i, r, at++);
  for (int i = 0; i < d.n_contract; i++)
    link_reduced(s, x, (int)d.lhs_contract[i], y, (int)d.rhs_contract[i]);
}

/* Windows whose places go with what they read, a few elements aside. */
static void link_sides(Spread *s, Op *op, Value *out) {
  Side sides[B_MAX_RANK];
  const Op *pad;
  if (!s->mesh || op->operands[0]->type->rank > B_MAX_RANK) return;
  int n = window_sides(op, sides);
  for (int i = 0; i < n; i++)
    if (window_goes_along(&sides[i], CUT_OUTPUTS))
      link_dims(s, op->operands[0], sides[i].in_dim, out, sides[i].out_dim);
  Value *before = window_before_pad(op, sides, &pad);
  for (int i = 0; i < n && before; i++)
    if (window_goes_along(&sides[i], CUT_OUTPUTS)) link_dims(s, before, i, out, i);
}

static void link_conv(Spread *s, Op *op) {
  Value *x = op->operands[0], *k = op->operands[1], *r = &op->results[0];
  int out_batch = (int)op_int(op, "output_batch_dimension", 0);
  int out_feature = (int)op_int(op, "output_feature_dimension", 0);
  if (op_int(op, "batch_group_count", 1) == 1)
    link_dims(s, x, (int)op_int(op, "input_batch_dimension", 0), r, out_batch);
  if (op_int(op, "feature_group_count", 1) == 1)
    link_reduced(s, x, (int)op_int(op, "input_feature_dimension", 0), k,
                 (int)op_int(op, "kernel_input_feature_dimension", 0));
  link_dims(s, k, (int)op_int(op, "kernel_output_feature_dimension", 0), r, out_feature);
  link_sides(s, op, r);
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
    if (b_has_dim(nc, collapsed, d) || b_has_dim(nb, batch, d)) continue;
    if (at < no && sizes[d] == x->type->dims[d]) link_dims(s, x, d, r, (int)offset[at]);
    at++;
  }
  int id = 0;
  for (int d = 0; d < r->type->rank; d++) {
    if (b_has_dim(no, offset, d)) continue;
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
      if (b_has_dim(ni, inserted, d) || b_has_dim(nb, batch, d)) continue;
      if (at < nw && u->type->dims[window[at]] == x->type->dims[d])
        link_dims(s, x, d, u, (int)window[at]);
      at++;
    }
    for (int d = 0, id = 0; d < u->type->rank; d++) {
      if (b_has_dim(nw, window, d)) continue;
      if (id == vector) id++;
      link_reduced(s, ids, id++, u, d);
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

void spread_link_region(Spread *s, Region *r) {
  for (Op *op = r->first; op; op = op->next) link_op(s, op);
}

/* What only gets dimensions of size 1 more is a reshape for XLA. */
static StepKind broadcast_kind(const Op *op) {
  bool copies = type_count(op_type(op)) != type_count(op->operands[0]->type);
  return copies ? STEP_BROADCASTS : STEP_HANDS_ON;
}

static StepKind kind_of(const Op *op) {
  switch (op->kind) {
  case OP_TRANSPOSE:
  case OP_RESHAPE:
  case OP_SHARDING_GROUP:
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD: return STEP_HANDS_ON;
  case OP_DYNAMIC_SLICE:
  case OP_DYNAMIC_UPDATE_SLICE: return STEP_SLICES;
  case OP_BROADCAST_IN_DIM: return broadcast_kind(op);
  default: return op_info[op->kind].cls == OC_EWISE ? STEP_HANDS_ON : STEP_OTHER;
  }
}

static void link_op(Spread *s, Op *op) {
  new_step(s, kind_of(op), op);
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
  case OP_CONCATENATE: {
    int64_t dim = op_int(op, "dimension", -1);
    for (int k = 0; k < op->n_operands; k++) {
      for (int d = 0; d < r->type->rank; d++)
        if (d != dim) link_dims(s, op->operands[k], d, r, d);
      if (dim >= 0) link_behind(s, op->operands[k], (int)dim, r);
    }
    return;
  }
  case OP_CHLO_TOP_K:
    for (int k = 0; k < op->n_results; k++)
      for (int d = 0; d < r->type->rank - 1; d++)
        link_dims(s, op->operands[0], d, &op->results[k], d);
    return;
  case OP_SORT:
    for (int k = 0; k < op->n_operands; k++) { /* all are sorted together, and lie alike */
      link_all(s, op->operands[k], &op->results[k]);
      if (k) link_all(s, &op->results[k], r);
    }
    return;
  case OP_WHILE:
    for (int i = 0; i < 2; i++) spread_link_region(s, op->regions[i]);
    for (int k = 0; k < op->n_results; k++) {
      new_edge(s, &op->results[k]);
      if (s->owner && spread_is_handed_on(op, k)) continue; /* one value */
      link_all(s, op->operands[k], &op->results[k]);
      link_all(s, op->regions[1]->last->operands[k], &op->results[k]);
      for (int i = 0; i < 2; i++) link_all(s, op->regions[i]->args[k], &op->results[k]);
    }
    return;
  case OP_CASE:
  case OP_IF:
    for (int i = 0; i < op->n_regions; i++) spread_link_region(s, op->regions[i]);
    for (int k = 0; k < op->n_results; k++) {
      new_edge(s, &op->results[k]);
      for (int i = 0; i < op->n_regions; i++)
        link_all(s, op->regions[i]->last->operands[k], &op->results[k]);
    }
    return;
  case OP_OPTIMIZATION_BARRIER:
    for (int k = 0; k < op->n_results; k++) {
      new_edge(s, &op->results[k]);
      link_all(s, op->operands[k], &op->results[k]);
    }
    return;
  case OP_SHARDING_GROUP: link_group(s, op_int(op, "group_id", 0), op->operands[0]); return;
  case OP_CUSTOM_CALL:
    if (op_is_remark(op)) break;
    link_batch(s, op);
    return;
  case OP_CHOLESKY:
  case OP_TRIANGULAR_SOLVE:
  case OP_FFT: link_batch(s, op); return;
  case OP_BITCAST_CONVERT: /* a width more or less is a dimension at the end */
    for (int d = 0; d < MIN(op->operands[0]->type->rank, r->type->rank); d++)
      if (op->operands[0]->type->dims[d] == r->type->dims[d])
        link_dims(s, op->operands[0], d, r, d);
    return;
  case OP_MANUAL_COMPUTATION:
    if (s->mesh && manual_is_partial(s->mesh, op)) spread_link_region(s, op->regions[0]);
    return;
  case OP_RNG_BIT_GENERATOR: return;
  case OP_PAD:
    for (int d = 0; d < r->type->rank; d++) link_behind(s, op->operands[0], d, r);
    link_moved(s, op->operands[0], r);
    return;
  case OP_SLICE: link_moved(s, op->operands[0], r); return;
  case OP_SELECT_AND_SCATTER:
    if (!s->mesh) break; /* which dimensions are one is asked, not how they are cut */
    link_all(s, op->operands[0], r);
    link_sides(s, op, op->operands[1]);
    return;
  case OP_REDUCE_WINDOW:
    if (s->mesh && op->n_operands == 2) {
      link_sides(s, op, r);
      return;
    }
    break;
  default: break;
  }
  /* element-wise, slice, pad, reverse, reduce_window, constraint: equal sizes at equal places */
  for (int k = 0; k < op->n_operands && r; k++) link_all(s, op->operands[k], r);
}

void dims_tied(Func *f, void (*fn)(void *arg, Value *a, int da, Value *b, int db), void *arg) {
  Spread s = {.m = f->module};
  spread_link_region(&s, f->body);
  for (int i = 0; i < s.links.n; i++)
    fn(arg, s.links.v[i].a, s.links.v[i].da, s.links.v[i].b, s.links.v[i].db);
  vec_free(&s.links);
  vec_free(&s.steps);
  vec_free(&s.groups);
}
