/* Each value has one sharding; an op is rewritten for the sharding of its result. `whole` of a
 * value means gathered along every dimension. Resharding goes dimension by dimension: a longer list
 * of axes is a slice of the own part (dynamic_slice at a place computed from partition_id), a
 * shorter one an all_gather, anything else a gather and a slice.
 */
#include "compile/partition.h"

#include "compile/compile.h"
#include "compile/propagate.h"

#include <stdlib.h>

#define MAX_RANK 16
#define MAX_AXES 8

typedef struct Dim {
  int n;
  AxisRef a[MAX_AXES];
} Dim;

typedef struct Layout { /* sharding of one value; rank entries used */
  Dim d[MAX_RANK];
} Layout;

typedef struct Spmd {
  Module *m;
  const Mesh *mesh;
  Func *f;
  int64_t n_devices, next_channel;
  Value **local;   /* by old value id: the local value */
  Layout *layouts; /* by old value id */
  Region *at;      /* where new ops go */
  const Loc *loc;
  Value *partition_id; /* in the current region; NULL: not yet */
} Spmd;

/* ---- mesh arithmetic ---- */

static int axis_index(const Spmd *s, AxisRef a) {
  for (int i = 0; i < s->mesh->n_axes; i++)
    if (str_eq(s->mesh->axes[i].name, a.name)) return i;
  return 0;
}

static int64_t axis_size(const Spmd *s, AxisRef a) {
  return a.sub_size ? a.sub_size : s->mesh->axes[axis_index(s, a)].size;
}

static int64_t dim_parts(const Spmd *s, const Dim *d) {
  int64_t n = 1;
  for (int i = 0; i < d->n; i++) n *= axis_size(s, d->a[i]);
  return n;
}

/* Devices are numbered row-major over the axes. A (sub-)axis of stride t and size k: coordinate (p
 * / t) % k. */
static int64_t axis_stride(const Spmd *s, AxisRef a) {
  int64_t t = 1;
  int at = axis_index(s, a);
  for (int i = s->mesh->n_axes - 1; i > at; i--) t *= s->mesh->axes[i].size;
  if (a.sub_size) t *= s->mesh->axes[at].size / (a.sub_pre * a.sub_size);
  return t;
}

static int64_t position_of(const Spmd *s, int64_t device) {
  for (int i = 0; i < s->mesh->n_ids; i++)
    if (s->mesh->ids[i] == device) return i;
  return device;
}

static int64_t device_at(const Spmd *s, int64_t position) {
  return s->mesh->n_ids ? s->mesh->ids[position] : position;
}

static int64_t coordinate(const Spmd *s, const Dim *d, int64_t device) {
  int64_t p = position_of(s, device), c = 0;
  for (int i = 0; i < d->n; i++) {
    int64_t k = axis_size(s, d->a[i]);
    c = c * k + p / axis_stride(s, d->a[i]) % k;
  }
  return c;
}

/* Devices that differ only in the axes of d, ordered by their coordinate: groups x members. */
static Attr *groups_over(const Spmd *s, const Dim *d) {
  int64_t members = dim_parts(s, d), groups = s->n_devices / members, n = 0;
  int64_t *ids = xmalloc(sizeof *ids * (size_t)s->n_devices);
  bool *seen = xcalloc((size_t)s->n_devices, sizeof *seen);
  for (int64_t p = 0; p < s->n_devices; p++) {
    if (seen[p]) continue;
    int64_t base = p; /* position with all coordinates of d at zero: p is the first unseen one */
    for (int64_t c = 0; c < members; c++) {
      int64_t rest = c, q = base;
      for (int i = d->n - 1; i >= 0; i--) {
        int64_t k = axis_size(s, d->a[i]);
        q += rest % k * axis_stride(s, d->a[i]);
        rest /= k;
      }
      seen[q] = true;
      ids[n++] = device_at(s, q);
    }
  }
  int64_t dims[2] = {groups, members};
  Attr *a = attr_tensor_i64(s->m, 2, dims, ids);
  free(ids);
  free(seen);
  return a;
}

/* ---- making ops ---- */

static Op *emit(Spmd *s, OpKind kind, int n_in, Value *const *in, int n_out, Type *const *out,
                int n_attrs, const NamedAttr *attrs, int n_regions, Region *const *regions) {
  Op *op = op_new(s->m, kind, n_in, in, n_out, out, n_attrs, attrs, n_regions, regions);
  op->loc = s->loc;
  op_append(s->at, op);
  return op;
}

static Value *emit1(Spmd *s, OpKind kind, int n_in, Value *const *in, Type *out, int n_attrs,
                    const NamedAttr *attrs) {
  return &emit(s, kind, n_in, in, 1, &out, n_attrs, attrs, 0, NULL)->results[0];
}

static Type *with_dims(Spmd *s, const Type *t, const int64_t *dims) {
  return type_tensor_full(s->m, t->dtype, t->rank, dims, NULL, t->quant);
}

static Type *local_type(Spmd *s, Type *t, const Layout *l) {
  if (t->kind != TY_TENSOR || t->rank > MAX_RANK) return t;
  int64_t dims[MAX_RANK];
  for (int d = 0; d < t->rank; d++) dims[d] = t->dims[d] / dim_parts(s, &l->d[d]);
  return with_dims(s, t, dims);
}

static NamedAttr named(const char *name, Attr *a) { return (NamedAttr){str_from(name), a}; }

static Value *all_gather(Spmd *s, Value *x, int dim, const Dim *axes) {
  int64_t dims[MAX_RANK];
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[dim] *= dim_parts(s, axes);
  NamedAttr attrs[4] = {named("all_gather_dim", attr_int(s->m, DT_I64, dim)),
                        named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        named("replica_groups", groups_over(s, axes)),
                        named("use_global_device_ids", attr_bool(s->m, true))};
  return emit1(s, OP_ALL_GATHER, 1, &x, with_dims(s, x->type, dims), 4, attrs);
}

static void combine_body(Spmd *s, OpKind combine, Type *scalar, Region *r) {
  Region *outer = s->at;
  s->at = r;
  Value *sum = emit1(s, combine, 2, r->args, scalar, 0, NULL);
  emit(s, OP_RETURN, 1, &sum, 0, NULL, 0, NULL, 0, NULL);
  s->at = outer;
}

/* The sum over `axes`, of which each device gets its part along dim. */
static Value *reduce_scatter(Spmd *s, Value *x, int dim, const Dim *axes) {
  Type *scalar = type_tensor(s->m, x->type->dtype, 0, NULL);
  Region *r = region_new(s->m, 2, (Type *[]){scalar, scalar});
  combine_body(s, OP_ADD, scalar, r);
  int64_t dims[MAX_RANK];
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[dim] /= dim_parts(s, axes);
  Type *out = with_dims(s, x->type, dims);
  NamedAttr attrs[4] = {named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        named("replica_groups", groups_over(s, axes)),
                        named("scatter_dimension", attr_int(s->m, DT_I64, dim)),
                        named("use_global_device_ids", attr_bool(s->m, true))};
  return &emit(s, OP_REDUCE_SCATTER, 1, &x, 1, &out, 4, attrs, 1, &r)->results[0];
}

/* all_reduce with a copy of `body`, or with `combine` when body is NULL. */
static Value *all_reduce(Spmd *s, Value *x, const Dim *axes, const Region *body, OpKind combine) {
  Type *scalar = type_tensor(s->m, x->type->dtype, 0, NULL);
  Region *r = region_new(s->m, 2, (Type *[]){scalar, scalar});
  Region *outer = s->at;
  s->at = r;
  if (body) {
    Map *map = map_new();
    const Value *from[2] = {body->args[0], body->args[1]};
    for (int i = 0; i < 2; i++)
      map_set(map, (Str){(const char *)&from[i], sizeof from[i]}, r->args[i]);
    for (const Op *op = body->first; op; op = op->next) {
      Op *copy = op_clone(s->m, op, NULL);
      for (int i = 0; i < copy->n_operands; i++) {
        Value *v = map_get(map, (Str){(const char *)&copy->operands[i], sizeof(Value *)});
        if (v) copy->operands[i] = v;
      }
      for (int i = 0; i < op->n_results; i++) {
        const Value *old = &op->results[i];
        map_set(map, (Str){(const char *)&old, sizeof old}, &copy->results[i]);
      }
      op_append(r, copy);
    }
    map_free(map);
  } else combine_body(s, combine, scalar, r);
  s->at = outer;
  NamedAttr attrs[3] = {named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        named("replica_groups", groups_over(s, axes)),
                        named("use_global_device_ids", attr_bool(s->m, true))};
  return &emit(s, OP_ALL_REDUCE, 1, &x, 1, &x->type, 3, attrs, 1, &r)->results[0];
}

static Value *index_constant(Spmd *s, int64_t v) {
  Tensor *t = tensor_make(DT_I64, 0, NULL);
  memcpy(t->data, &v, sizeof v);
  NamedAttr a = named("value", attr_tensor(s->m, t, NULL));
  return emit1(s, OP_CONSTANT, 0, NULL, type_tensor(s->m, DT_I64, 0, NULL), 1, &a);
}

/* table[partition_id] as a scalar */
static Value *lookup(Spmd *s, const int64_t *table) {
  if (!s->partition_id)
    s->partition_id =
        emit1(s, OP_PARTITION_ID, 0, NULL, type_tensor(s->m, DT_U32, 0, NULL), 0, NULL);
  Tensor *t = tensor_make(DT_I64, 1, &s->n_devices);
  memcpy(t->data, table, sizeof *table * (size_t)s->n_devices);
  NamedAttr value = named("value", attr_tensor(s->m, t, NULL));
  Value *all =
      emit1(s, OP_CONSTANT, 0, NULL, type_tensor(s->m, DT_I64, 1, &s->n_devices), 1, &value);
  int64_t one = 1;
  NamedAttr sizes = named("slice_sizes", attr_ints(s->m, DT_I64, 1, &one));
  Value *x = emit1(s, OP_DYNAMIC_SLICE, 2, (Value *[]){all, s->partition_id},
                   type_tensor(s->m, DT_I64, 1, &one), 1, &sizes);
  return emit1(s, OP_RESHAPE, 1, &x, type_tensor(s->m, DT_I64, 0, NULL), 0, NULL);
}

/* This device's part of x along dim. */
static Value *own_part(Spmd *s, Value *x, int dim, const Dim *axes) {
  int64_t parts = dim_parts(s, axes), size = x->type->dims[dim] / parts, dims[MAX_RANK];
  int64_t *table = xmalloc(sizeof *table * (size_t)s->n_devices);
  for (int64_t p = 0; p < s->n_devices; p++) table[p] = coordinate(s, axes, p) * size;
  Value *operands[MAX_RANK + 1] = {x};
  for (int d = 0; d < x->type->rank; d++) {
    dims[d] = d == dim ? size : x->type->dims[d];
    operands[d + 1] = d == dim ? lookup(s, table) : index_constant(s, 0);
  }
  free(table);
  NamedAttr sizes = named("slice_sizes", attr_ints(s->m, DT_I64, x->type->rank, dims));
  return emit1(s, OP_DYNAMIC_SLICE, x->type->rank + 1, operands, with_dims(s, x->type, dims), 1,
               &sizes);
}

static int common_prefix(const Dim *a, const Dim *b) {
  int i = 0;
  while (i < a->n && i < b->n && str_eq(a->a[i].name, b->a[i].name) &&
         a->a[i].sub_pre == b->a[i].sub_pre && a->a[i].sub_size == b->a[i].sub_size)
    i++;
  return i;
}

/* The axes of x that y does not begin with. */
static Dim rest_of(const Dim *x, const Dim *y) {
  int keep = common_prefix(x, y);
  Dim rest = {.n = x->n - keep};
  memcpy(rest.a, x->a + keep, sizeof *rest.a * (size_t)rest.n);
  return rest;
}

static bool same_axes(const Dim *a, const Dim *b) {
  return a->n == b->n && common_prefix(a, b) == a->n;
}

/* Axes that leave dimension `from` and cut dimension `to` instead. */
static Value *all_to_all(Spmd *s, Value *x, int from, int to, const Dim *axes) {
  int64_t dims[MAX_RANK], n = dim_parts(s, axes);
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[from] *= n;
  dims[to] /= n;
  NamedAttr attrs[5] = {named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        named("concat_dimension", attr_int(s->m, DT_I64, from)),
                        named("replica_groups", groups_over(s, axes)),
                        named("split_count", attr_int(s->m, DT_I64, n)),
                        named("split_dimension", attr_int(s->m, DT_I64, to))};
  return emit1(s, OP_ALL_TO_ALL, 1, &x, with_dims(s, x->type, dims), 5, attrs);
}

/* The dimension whose cut grows by just these axes; -1: none. */
static int moves_to(Spmd *s, const Value *x, const Layout *from, const Layout *to, int d,
                    const Dim *gone) {
  for (int e = 0; e < x->type->rank; e++) {
    Dim more = rest_of(&to->d[e], &from->d[e]);
    if (e != d && to->d[e].n == from->d[e].n + gone->n && same_axes(&more, gone) &&
        x->type->dims[e] % dim_parts(s, gone) == 0)
      return e;
  }
  return -1;
}

static Value *reshard(Spmd *s, Value *x, const Layout *from, const Layout *to) {
  if (x->type->kind != TY_TENSOR) return x;
  Layout now = *from;
  for (int d = 0; d < x->type->rank;
       d++) { /* gathers first: an axis may move to another dimension */
    Dim gone = rest_of(&now.d[d], &to->d[d]);
    if (!gone.n) continue;
    int e = moves_to(s, x, &now, to, d, &gone);
    x = e >= 0 ? all_to_all(s, x, d, e, &gone) : all_gather(s, x, d, &gone);
    now.d[d].n -= gone.n;
    if (e >= 0) now.d[e] = to->d[e];
  }
  for (int d = 0; d < x->type->rank; d++) {
    Dim more = rest_of(&to->d[d], &now.d[d]);
    if (more.n) x = own_part(s, x, d, &more);
  }
  return x;
}

/* ---- layouts of operands ---- */

static Layout *layout_of(Spmd *s, const Value *v) { return &s->layouts[v->id]; }

/* A broadcast is made again from its source, which is smaller, rather than exchanged. */
static Value *operand(Spmd *s, Value *old, const Layout *want) {
  const Layout *has = layout_of(s, old);
  const Op *def = old->def;
  bool same = true;
  for (int d = 0; old->type->kind == TY_TENSOR && d < old->type->rank; d++)
    same = same && same_axes(&has->d[d], &want->d[d]);
  if (same || !def || def->kind != OP_BROADCAST_IN_DIM)
    return reshard(s, s->local[old->id], has, want);
  const Type *from = def->operands[0]->type;
  const int64_t *map;
  int n = op_ints(def, "broadcast_dimensions", &map);
  Layout need = {0};
  for (int i = 0; i < n; i++)
    if (from->dims[i] == old->type->dims[map[i]]) need.d[i] = want->d[map[i]];
  Value *x = operand(s, def->operands[0], &need);
  return emit1(s, OP_BROADCAST_IN_DIM, 1, &x, local_type(s, old->type, want), def->n_attrs,
               def->attrs);
}

static bool uses_axis(const Layout *l, int rank, AxisRef a) {
  for (int d = 0; d < rank; d++)
    for (int i = 0; i < l->d[d].n; i++)
      if (str_eq(l->d[d].a[i].name, a.name)) return true;
  return false;
}

static bool layout_has_any(const Layout *l, int rank, const Dim *axes) {
  for (int i = 0; i < axes->n; i++)
    if (uses_axis(l, rank, axes->a[i])) return true;
  return false;
}

static bool in_list(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* Same op on local operands, local result types. */
static Op *same_op(Spmd *s, const Op *op, Value *const *in, Type *const *out) {
  Op *c =
      emit(s, op->kind, op->n_operands, in, op->n_results, out, op->n_attrs, op->attrs, 0, NULL);
  c->name = op->name;
  if (op->n_regions) {
    Op *copy = op_clone(s->m, op, NULL);
    c->n_regions = copy->n_regions;
    c->regions = copy->regions;
    for (int i = 0; i < c->n_regions; i++) c->regions[i]->parent = c;
    op_remove(c); /* again, so that the regions learn their function */
    op_append(s->at, c);
  }
  return c;
}

static void set_result(Spmd *s, const Op *op, int i, Value *x, const Layout *has) {
  s->local[op->results[i].id] = reshard(s, x, has, layout_of(s, &op->results[i]));
}

/* Everything whole, each device computes all of it and keeps its part. */
static void whole_op(Spmd *s, const Op *op) {
  static const Layout none;
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  for (int k = 0; k < op->n_operands; k++) in[k] = operand(s, op->operands[k], &none);
  for (int i = 0; i < op->n_results; i++) out[i] = op->results[i].type;
  Op *c = same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) set_result(s, op, i, &c->results[i], &none);
  free(in);
  free(out);
}

static void fix_ints(Spmd *s, Op *c, const char *name, const int64_t *v, int n) {
  op_set_attr(s->m, c, str_from(name), attr_ints(s->m, DT_I64, n, v));
}

/* Ops whose result dimension d ties to operand k's dimension map_k[d] (or none): the tied ones stay
 * cut. keep[d]: may result dimension d be cut at all. */
static Op *tied_op(Spmd *s, const Op *op, const bool *keep,
                   int (*tie)(const Op *op, int k, int d)) {
  const Type *rt = op->results[0].type;
  const Layout *want = layout_of(s, &op->results[0]);
  Layout has = *want;
  for (int d = 0; d < rt->rank; d++)
    if (!keep[d]) has.d[d].n = 0;
  Value *in[64];
  assert(op->n_operands <= 64);
  for (int k = 0; k < op->n_operands; k++) {
    Layout need = {0};
    for (int d = 0; d < rt->rank; d++) {
      int od = tie(op, k, d);
      if (od >= 0) need.d[od] = has.d[d];
    }
    in[k] = operand(s, op->operands[k], &need);
  }
  Type *out[64];
  for (int i = 0; i < op->n_results; i++) out[i] = local_type(s, op->results[i].type, &has);
  Op *c = same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) set_result(s, op, i, &c->results[i], &has);
  return c;
}

static int tie_same(const Op *op, int k, int d) {
  return op->operands[k]->type->rank == op->results[0].type->rank ? d : -1;
}

static int tie_broadcast(const Op *op, int k, int d) {
  const int64_t *v;
  int n = op_ints(op, "broadcast_dimensions", &v);
  for (int i = 0; i < n; i++)
    if (v[i] == d && op->operands[k]->type->dims[i] == op->results[0].type->dims[d]) return i;
  return -1;
}

static int tie_transpose(const Op *op, int k, int d) {
  (void)k;
  const int64_t *v;
  op_ints(op, "permutation", &v);
  return (int)v[d];
}

/* ---- single kinds ---- */

static bool is_splat(const Op *op) {
  const Attr *a = op_attr(op, "value");
  const Tensor *t = a->tensor;
  size_t w = (size_t)dtype_bytes(t->dtype);
  for (int64_t i = 1; i < t->count; i++)
    if (memcmp(t->data, tensor_at(t, i), w)) return false;
  return t->count > 0;
}

static void constant_op(Spmd *s, const Op *op) {
  const Layout *want = layout_of(s, &op->results[0]);
  Type *t = local_type(s, op->results[0].type, want);
  if (t == op->results[0].type || !is_splat(op)) {
    whole_op(s, op);
    return;
  }
  Tensor *x = tensor_make(t->dtype, t->rank, t->dims);
  const Tensor *from = op_attr(op, "value")->tensor;
  for (int64_t i = 0; i < x->count; i++)
    memcpy(tensor_at(x, i), from->data, (size_t)dtype_bytes(t->dtype));
  NamedAttr a = named("value", attr_tensor(s->m, x, t->quant));
  s->local[op->results[0].id] = emit1(s, OP_CONSTANT, 0, NULL, t, 1, &a);
}

static void moved_op(Spmd *s, const Op *op) {
  bool keep[MAX_RANK];
  const Type *x = op->operands[0]->type, *r = op->results[0].type;
  for (int d = 0; d < r->rank; d++) keep[d] = x->rank == r->rank && x->dims[d] == r->dims[d];
  const int64_t *v;
  int64_t out[MAX_RANK];
  if (op->kind == OP_REVERSE) {
    int n = op_ints(op, "dimensions", &v);
    for (int i = 0; i < n; i++) keep[v[i]] = false;
  }
  if (op->kind == OP_CONCATENATE || op->kind == OP_SORT) {
    int64_t dim = op_int(op, "dimension", -1);
    keep[dim < 0 ? dim + x->rank : dim] = false;
  }
  if (op->kind == OP_PAD) {
    const int64_t *lo, *hi, *in;
    op_ints(op, "edge_padding_low", &lo);
    op_ints(op, "edge_padding_high", &hi);
    op_ints(op, "interior_padding", &in);
    for (int d = 0; d < r->rank; d++) keep[d] = keep[d] && !lo[d] && !hi[d] && !in[d];
  }
  if (op->kind == OP_REDUCE_WINDOW || op->kind == OP_SELECT_AND_SCATTER) {
    int n = op_ints(op, "window_dimensions", &v);
    for (int d = 0; d < n; d++) keep[d] = keep[d] && v[d] == 1;
    const int64_t *pad;
    n = op_ints(op, "padding", &pad);
    for (int d = 0; d < n / 2; d++) keep[d] = keep[d] && !pad[2 * d] && !pad[2 * d + 1];
  }
  Op *c = tied_op(s, op, keep, tie_same);
  const Type *local = c->operands[0]->type;
  if (op->kind == OP_SLICE) {
    op_ints(op, "limit_indices", &v);
    for (int d = 0; d < r->rank; d++) out[d] = keep[d] ? local->dims[d] : v[d];
    fix_ints(s, c, "limit_indices", out, r->rank);
  }
  if (op->kind == OP_DYNAMIC_SLICE) {
    op_ints(op, "slice_sizes", &v);
    for (int d = 0; d < r->rank; d++) out[d] = keep[d] ? local->dims[d] : v[d];
    fix_ints(s, c, "slice_sizes", out, r->rank);
  }
}

/* An update along dimensions it covers fully may be cut there. */
static void update_slice_op(Spmd *s, const Op *op) {
  bool keep[MAX_RANK];
  const Type *x = op->operands[0]->type, *u = op->operands[1]->type;
  for (int d = 0; d < x->rank; d++) keep[d] = x->dims[d] == u->dims[d];
  tied_op(s, op, keep, tie_same);
}

/* The major dimension of each group of equal products may be cut when its parts divide the major
 * dimension of the other side. */
static void reshape_op(Spmd *s, const Op *op) {
  const Type *a = op->operands[0]->type, *b = op->results[0].type;
  const Layout *want = layout_of(s, &op->results[0]);
  Layout need = {0}, has = {0};
  int i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dims[i] == 1) i++; /* belongs to no group */
    while (j < b->rank && b->dims[j] == 1) j++;
    if (i == a->rank || j == b->rank) break;
    int64_t pa = a->dims[i], pb = b->dims[j];
    int i0 = i++, j0 = j++;
    while (pa != pb) {
      if (pa < pb && i < a->rank) pa *= a->dims[i++];
      else if (pb < pa && j < b->rank) pb *= b->dims[j++];
      else break;
    }
    if (a->dims[i0] % dim_parts(s, &want->d[j0]) == 0) need.d[i0] = has.d[j0] = want->d[j0];
  }
  Value *x = operand(s, op->operands[0], &need);
  x = emit1(s, OP_RESHAPE, 1, &x, local_type(s, op->results[0].type, &has), 0, NULL);
  set_result(s, op, 0, x, &has);
}

static void reduce_op(Spmd *s, const Op *op) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims), half = op->n_operands / 2;
  const Type *x = op->operands[0]->type;
  const Layout *want = layout_of(s, &op->results[0]);
  Layout need = {0}, has = *want;
  Dim summed = {0};
  int at = 0;
  for (int d = 0; d < x->rank; d++)
    if (!in_list(dims, n, d)) need.d[d] = want->d[at++];
  /* reduced dimensions stay cut when one operand is reduced and the axes are free */
  const Layout *own = layout_of(s, op->operands[0]);
  for (int d = 0; d < x->rank && half == 1; d++)
    if (in_list(dims, n, d) && own->d[d].n && !layout_has_any(&need, x->rank, &own->d[d]) &&
        summed.n + own->d[d].n <= MAX_AXES) {
      need.d[d] = own->d[d];
      for (int i = 0; i < own->d[d].n; i++) summed.a[summed.n++] = own->d[d].a[i];
    }
  Value *in[64];
  Type *out[64];
  if (op->n_operands > 64) {
    whole_op(s, op);
    return;
  }
  for (int k = 0; k < op->n_operands; k++) {
    static const Layout none;
    in[k] = operand(s, op->operands[k], k < half ? &need : &none);
  }
  for (int i = 0; i < op->n_results; i++) out[i] = local_type(s, op->results[i].type, &has);
  Op *c = same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) {
    Value *r = &c->results[i];
    if (summed.n) r = all_reduce(s, r, &summed, op->regions[0], OP_UNKNOWN);
    set_result(s, op, i, r, &has);
  }
}

/* A product: result dimension d comes from (operand, dimension); contracting pairs may stay cut
 * alike. */
typedef struct Product {
  int n_pairs;
  int pairs[MAX_RANK][2];
  int from[MAX_RANK][2]; /* result dim -> dim of x, of y; -1 none */
} Product;

/* Contracted dimension i of a product as its two operands have it cut: alike, or one of them. */
static const Dim *pair_axes(Spmd *s, const Op *op, const Product *p, int i, bool *alike) {
  const Dim *x = &layout_of(s, op->operands[0])->d[p->pairs[i][0]],
            *y = &layout_of(s, op->operands[1])->d[p->pairs[i][1]];
  *alike = same_axes(x, y);
  return x->n >= y->n ? x : y;
}

/* The sum over `axes` as the result wants it: of each device its part where those axes cut it, else
 * whole. */
static Value *sum_over(Spmd *s, Value *x, const Dim *axes, const Layout *want, Layout *has) {
  for (int d = 0; d < x->type->rank; d++) {
    const Dim *w = &want->d[d];
    int keep = has->d[d].n;
    if (w->n != keep + axes->n || common_prefix(w, &has->d[d]) != keep) continue;
    Dim rest = {.n = axes->n};
    memcpy(rest.a, w->a + keep, sizeof *rest.a * (size_t)rest.n);
    if (!same_axes(&rest, axes) || x->type->dims[d] % dim_parts(s, axes)) continue;
    has->d[d] = *w;
    return reduce_scatter(s, x, d, axes);
  }
  return all_reduce(s, x, axes, NULL, OP_ADD);
}

/* Contracted dimensions that both operands have cut alike stay cut: the parts' products are summed
 * over the devices. The result's other dimensions are cut as it wants them; then contracted ones
 * that only one operand has cut, over axes that are left. */
static void product_op(Spmd *s, const Op *op, const Product *p) {
  const Type *r = op->results[0].type;
  const Layout *want = layout_of(s, &op->results[0]);
  Layout need[2], has = {0};
  Dim summed = {0};
  memset(need, 0, sizeof need);
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < p->n_pairs; i++) {
      bool alike;
      const Dim *axes = pair_axes(s, op, p, i, &alike);
      if (!axes->n || alike != (pass == 0) || summed.n + axes->n > MAX_AXES) continue;
      if (layout_has_any(&has, r->rank, axes)) continue;
      if (op->operands[0]->type->dims[p->pairs[i][0]] % dim_parts(s, axes)) continue;
      need[0].d[p->pairs[i][0]] = need[1].d[p->pairs[i][1]] = *axes;
      for (int k = 0; k < axes->n; k++) summed.a[summed.n++] = axes->a[k];
    }
    for (int d = 0; d < r->rank && pass == 0; d++) {
      if (p->from[d][0] < 0 && p->from[d][1] < 0) continue;
      Layout taken = {.d = {summed}};
      while (has.d[d].n < want->d[d].n && !uses_axis(&taken, 1, want->d[d].a[has.d[d].n]))
        has.d[d].a[has.d[d].n] = want->d[d].a[has.d[d].n], has.d[d].n++;
      for (int k = 0; k < 2; k++)
        if (p->from[d][k] >= 0) need[k].d[p->from[d][k]] = has.d[d];
    }
  }
  Value *in[2] = {operand(s, op->operands[0], &need[0]), operand(s, op->operands[1], &need[1])};
  Type *out = local_type(s, op->results[0].type, &has);
  Value *x = &same_op(s, op, in, &out)->results[0];
  if (summed.n) x = sum_over(s, x, &summed, want, &has);
  set_result(s, op, 0, x, &has);
}

static void dot_op(Spmd *s, const Op *op) {
  Product p = {0};
  const Type *x = op->operands[0]->type, *y = op->operands[1]->type;
  const int64_t *xb = NULL, *yb = NULL, *xc = NULL, *yc = NULL, zero[1] = {0},
                last[1] = {x->rank - 1};
  int nb = 0, nc = 1, at = 0;
  if (op->kind == OP_DOT) {
    xc = last;
    yc = zero;
  } else {
    nb = op_ints(op, "lhs_batching_dimensions", &xb);
    op_ints(op, "rhs_batching_dimensions", &yb);
    nc = op_ints(op, "lhs_contracting_dimensions", &xc);
    op_ints(op, "rhs_contracting_dimensions", &yc);
  }
  for (int i = 0; i < nb; i++, at++) p.from[at][0] = (int)xb[i], p.from[at][1] = (int)yb[i];
  for (int d = 0; d < x->rank; d++)
    if (!in_list(xb, nb, d) && !in_list(xc, nc, d)) p.from[at][0] = d, p.from[at++][1] = -1;
  for (int d = 0; d < y->rank; d++)
    if (!in_list(yb, nb, d) && !in_list(yc, nc, d)) p.from[at][0] = -1, p.from[at++][1] = d;
  p.n_pairs = nc;
  for (int i = 0; i < nc; i++) p.pairs[i][0] = (int)xc[i], p.pairs[i][1] = (int)yc[i];
  product_op(s, op, &p);
}

static void conv_op(Spmd *s, const Op *op) {
  Product p = {0};
  for (int d = 0; d < MAX_RANK; d++) p.from[d][0] = p.from[d][1] = -1;
  if (op_int(op, "batch_group_count", 1) == 1) {
    p.from[op_int(op, "output_batch_dimension", 0)][0] =
        (int)op_int(op, "input_batch_dimension", 0);
    if (op_int(op, "feature_group_count", 1) == 1) {
      p.from[op_int(op, "output_feature_dimension", 0)][1] =
          (int)op_int(op, "kernel_output_feature_dimension", 0);
      p.n_pairs = 1;
      p.pairs[0][0] = (int)op_int(op, "input_feature_dimension", 0);
      p.pairs[0][1] = (int)op_int(op, "kernel_input_feature_dimension", 0);
    }
  }
  product_op(s, op, &p);
}

static int place_in(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return i;
  return -1;
}

/* Cut indices: each device looks up its own rows, in a whole table or, along batching dimensions,
 * in its own part of it. What slices take in full may be cut too. */
static void gather_op(Spmd *s, const Op *op) {
  const int64_t *offset, *batch, *ids_batch, *collapsed, *sizes;
  int no = op_ints(op, "offset_dims", &offset), nb = op_ints(op, "operand_batching_dims", &batch),
      nc = op_ints(op, "collapsed_slice_dims", &collapsed),
      n_sizes = op_ints(op, "slice_sizes", &sizes);
  op_ints(op, "start_indices_batching_dims", &ids_batch);
  int64_t vector = op_int(op, "index_vector_dim", 0), local[MAX_RANK];
  const Type *x = op->operands[0]->type;
  const Layout *want = layout_of(s, &op->results[0]);
  Layout rows = {0}, need = {0}, has = {0};
  int id = 0, at = 0;
  for (int d = 0; d < op->results[0].type->rank; d++) {
    if (in_list(offset, no, d)) continue;
    if (id == vector) id++;
    int b = place_in(ids_batch, nb, id);
    if (b >= 0) rows.d[batch[b]] = want->d[d];
    need.d[id++] = has.d[d] = want->d[d];
  }
  memcpy(local, sizes, sizeof *sizes * (size_t)n_sizes);
  for (int d = 0; d < x->rank; d++) {
    if (in_list(collapsed, nc, d) || in_list(batch, nb, d)) continue;
    int r = (int)offset[at++];
    if (sizes[d] != x->dims[d]) continue;
    rows.d[d] = has.d[r] = want->d[r];
    local[d] = sizes[d] / dim_parts(s, &want->d[r]);
  }
  Value *in[2] = {operand(s, op->operands[0], &rows), operand(s, op->operands[1], &need)};
  Type *out = local_type(s, op->results[0].type, &has);
  Op *c = same_op(s, op, in, &out);
  fix_ints(s, c, "slice_sizes", local, n_sizes);
  set_result(s, op, 0, &c->results[0], &has);
}

static bool is_zero(const Op *op) {
  while (op && op->kind == OP_BROADCAST_IN_DIM) op = op->operands[0]->def;
  const Attr *v = op && op->kind == OP_CONSTANT ? op_attr(op, "value") : NULL;
  if (!v || v->kind != AT_TENSOR || !v->tensor || v->tensor->count < 1 || !is_splat(op))
    return false;
  const Tensor *t = v->tensor;
  return dtype_is_float(t->dtype) ? elem_get_f64(t->dtype, t->data) == 0
                                  : dtype_is_int(t->dtype) && !elem_get_i64(t->dtype, t->data);
}

static bool only_adds(const Region *r) {
  return r->n_args == 2 && r->first->kind == OP_ADD && r->first->next == r->last;
}

/* Cut along batching dimensions and along windows that are updated in full. Sums into zeros, the
 * gradients of tables, are cut along the updates as well: each device adds its own, then all add
 * theirs together. */
static void scatter_op(Spmd *s, const Op *op) {
  const int64_t *window, *inserted, *batch, *ids_batch;
  int n = op->n_results, nw = op_ints(op, "update_window_dims", &window),
      ni = op_ints(op, "inserted_window_dims", &inserted),
      nb = op_ints(op, "input_batching_dims", &batch), at = 0, id = 0;
  op_ints(op, "scatter_indices_batching_dims", &ids_batch);
  int64_t vector = op_int(op, "index_vector_dim", 0);
  const Type *x = op->operands[0]->type, *u = op->operands[n + 1]->type;
  const Layout *want = layout_of(s, &op->results[0]), *given = layout_of(s, op->operands[n + 1]);
  Layout has = {0}, ids = {0}, update = {0};
  Dim summed = {0};
  for (int d = 0; d < x->rank; d++) {
    if (in_list(inserted, ni, d) || in_list(batch, nb, d)) continue;
    int w = (int)window[at++];
    if (u->dims[w] == x->dims[d]) update.d[w] = has.d[d] = want->d[d];
  }
  bool sums = n == 1 && is_zero(op->operands[0]->def) && only_adds(op->regions[0]);
  for (int d = 0; d < u->rank; d++) {
    if (in_list(window, nw, d)) continue;
    if (id == vector) id++;
    int b = place_in(ids_batch, nb, id);
    const Dim *cut = b >= 0 ? &want->d[batch[b]] : &given->d[d];
    if (b >= 0) has.d[batch[b]] = *cut;
    else if (!sums || layout_has_any(&has, x->rank, cut) || summed.n + cut->n > MAX_AXES)
      cut = NULL;
    if (cut) update.d[d] = ids.d[id] = *cut;
    for (int k = 0; cut && b < 0 && k < cut->n; k++) summed.a[summed.n++] = cut->a[k];
    id++;
  }
  Value *in[64];
  Type *out[64];
  for (int k = 0; k < n; k++) {
    in[k] = operand(s, op->operands[k], &has);
    in[n + 1 + k] = operand(s, op->operands[n + 1 + k], &update);
    out[k] = local_type(s, op->results[k].type, &has);
  }
  in[n] = operand(s, op->operands[n], &ids);
  Op *c = same_op(s, op, in, out);
  for (int k = 0; k < n; k++) {
    Value *r = &c->results[k];
    if (summed.n) r = sum_over(s, r, &summed, want, &has); /* n is 1 */
    set_result(s, op, k, r, &has);
  }
}

/* Stays: what JAX recomputes behind one must not be merged with what came before it. */
static void barrier_op(Spmd *s, const Op *op) {
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  for (int i = 0; i < op->n_results; i++) {
    in[i] = operand(s, op->operands[i], layout_of(s, &op->results[i]));
    out[i] = in[i]->type;
  }
  Op *c = same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) s->local[op->results[i].id] = &c->results[i];
  free(in);
  free(out);
}

/* ---- control ---- */

static Err *partition_region(Spmd *s, const Region *from, Region *to);

/* A region of a control-flow op: arguments laid out as `like`, returned values brought to `like`.
 */
static Err *control_region(Spmd *s, const Region *from, const Op *like, bool is_cond,
                           Region **out) {
  Type **types = xmalloc(sizeof *types * (size_t)(from->n_args + 1));
  for (int i = 0; i < from->n_args; i++) {
    s->layouts[from->args[i]->id] = *layout_of(s, &like->results[i]);
    types[i] = local_type(s, from->args[i]->type, &s->layouts[from->args[i]->id]);
  }
  Region *r = region_new(s->m, from->n_args, types);
  free(types);
  for (int i = 0; i < from->n_args; i++) s->local[from->args[i]->id] = r->args[i];
  Region *outer = s->at;
  Value *outer_id = s->partition_id;
  s->at = r;
  Err *e = partition_region(s, from, r);
  if (!e) {
    const Op *ret = from->last;
    Value **v = xmalloc(sizeof *v * (size_t)(ret->n_operands + 1));
    static const Layout none;
    for (int i = 0; i < ret->n_operands; i++)
      v[i] = operand(s, ret->operands[i], is_cond ? &none : layout_of(s, &like->results[i]));
    emit(s, OP_RETURN, ret->n_operands, v, 0, NULL, 0, NULL, 0, NULL);
    free(v);
  }
  s->at = outer;
  s->partition_id = outer_id;
  *out = r;
  return e;
}

static Err *control_op(Spmd *s, const Op *op) {
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  Region **regions = xmalloc(sizeof *regions * (size_t)(op->n_regions + 1));
  static const Layout none;
  for (int k = 0; k < op->n_operands; k++)
    in[k] =
        operand(s, op->operands[k], op->kind == OP_WHILE ? layout_of(s, &op->results[k]) : &none);
  for (int i = 0; i < op->n_results; i++)
    out[i] = local_type(s, op->results[i].type, layout_of(s, &op->results[i]));
  Err *e = NULL;
  for (int i = 0; i < op->n_regions && !e; i++)
    e = control_region(s, op->regions[i], op, op->kind == OP_WHILE && i == 0, &regions[i]);
  if (!e) {
    Op *c = emit(s, op->kind, op->n_operands, in, op->n_results, out, op->n_attrs, op->attrs,
                 op->n_regions, regions);
    for (int i = 0; i < op->n_results; i++) s->local[op->results[i].id] = &c->results[i];
  }
  free(in);
  free(out);
  free(regions);
  return e;
}

static void layout_from(const Attr *a, const Type *t, Layout *out) {
  *out = (Layout){0};
  if (!a || a->kind != AT_SHARDING) return;
  const Sharding *sh = a->sharding;
  for (int d = 0; d < sh->n_dims && d < t->rank && d < MAX_RANK; d++) {
    out->d[d].n = MIN(sh->dims[d].n_axes, MAX_AXES);
    for (int i = 0; i < out->d[d].n; i++) out->d[d].a[i] = sh->dims[d].axes[i];
  }
}

/* The body is one device's program already: its ops go in as they are. */
static Err *manual_op(Spmd *s, Op *op) {
  const Attr *in = op_attr(op, "in_shardings"), *out = op_attr(op, "out_shardings"),
             *axes = op_attr(op, "manual_axes");
  if (!axes || axes->n < s->mesh->n_axes)
    return op_err(op, ERR_UNIMPLEMENTED,
                  "manual over %d of the mesh's %d axes cannot be partitioned", axes ? axes->n : 0,
                  s->mesh->n_axes);
  Region *body = op->regions[0];
  for (int k = 0; k < op->n_operands; k++) {
    Layout want;
    layout_from(in->items[k], op->operands[k]->type, &want);
    /* s->f still has the old body, this region in it */
    value_replace_all(s->f, body->args[k], operand(s, op->operands[k], &want));
  }
  Op *ret = body->last;
  for (Op *b = body->first, *next; b && b != ret; b = next) {
    next = b->next;
    op_remove(b);
    op_append(s->at, b);
  }
  for (int i = 0; i < op->n_results; i++) {
    Layout has;
    layout_from(out->items[i], op->results[i].type, &has);
    set_result(s, op, i, ret->operands[i], &has);
  }
  return NULL;
}

static Err *partition_op(Spmd *s, Op *op) {
  s->loc = op->loc;
  for (int i = 0; i < op->n_results; i++) {
    const Attr *a = op_attr(op, "weft.sharding");
    layout_from(a && i < a->n ? a->items[i] : NULL, op->results[i].type,
                layout_of(s, &op->results[i]));
  }
  op_set_attr(s->m, op, STR("weft.sharding"), NULL);
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind == TY_TENSOR && op->results[i].type->rank > MAX_RANK)
      return op_err(op, ERR_UNIMPLEMENTED, "rank %d cannot be partitioned",
                    op->results[i].type->rank);
  bool all[MAX_RANK];
  for (int d = 0; d < MAX_RANK; d++) all[d] = true;
  switch (op->kind) {
  case OP_RETURN: return NULL;
  case OP_CONSTANT: constant_op(s, op); return NULL;
  case OP_IOTA:
    all[op_int(op, "iota_dimension", 0)] = false;
    tied_op(s, op, all, tie_same);
    return NULL;
  case OP_BROADCAST_IN_DIM: {
    const Type *r = op->results[0].type;
    for (int d = 0; d < r->rank; d++) {
      const int64_t *v;
      int n = op_ints(op, "broadcast_dimensions", &v);
      for (int i = 0; i < n; i++)
        if (v[i] == d && op->operands[0]->type->dims[i] != r->dims[d])
          all[d] = op->operands[0]->type->dims[i] == 1;
    }
    tied_op(s, op, all, tie_broadcast);
    return NULL;
  }
  case OP_TRANSPOSE: tied_op(s, op, all, tie_transpose); return NULL;
  case OP_RESHAPE: reshape_op(s, op); return NULL;
  case OP_REDUCE: reduce_op(s, op); return NULL;
  case OP_DOT:
  case OP_DOT_GENERAL: dot_op(s, op); return NULL;
  case OP_CONVOLUTION: conv_op(s, op); return NULL;
  case OP_GATHER: gather_op(s, op); return NULL;
  case OP_SCATTER:
    if (op->n_operands > 64) break;
    scatter_op(s, op);
    return NULL;
  case OP_SLICE:
  case OP_DYNAMIC_SLICE:
  case OP_PAD:
  case OP_REVERSE:
  case OP_CONCATENATE:
  case OP_SORT:
  case OP_REDUCE_WINDOW:
    if (op->n_operands <= 64 && op->n_results <= 64) {
      moved_op(s, op);
      return NULL;
    }
    break;
  case OP_SELECT_AND_SCATTER: {
    /* the source has the pooled shape; batch and feature dimensions tie all three */
    const Type *x = op->operands[0]->type, *y = op->operands[1]->type;
    for (int d = 0; d < x->rank; d++) all[d] = x->dims[d] == y->dims[d];
    const int64_t *w;
    int n = op_ints(op, "window_dimensions", &w);
    for (int d = 0; d < n; d++) all[d] = all[d] && w[d] == 1;
    tied_op(s, op, all, tie_same);
    return NULL;
  }
  case OP_DYNAMIC_UPDATE_SLICE: update_slice_op(s, op); return NULL;
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER:
    s->local[op->results[0].id] = operand(s, op->operands[0], layout_of(s, &op->results[0]));
    return NULL;
  case OP_SHARDING_GROUP: return NULL;
  case OP_OPTIMIZATION_BARRIER: barrier_op(s, op); return NULL;
  case OP_WHILE:
  case OP_CASE:
  case OP_IF: return control_op(s, op);
  case OP_MANUAL_COMPUTATION: return manual_op(s, op);
  default:
    if (op_info[op->kind].cls == OC_EWISE && op->n_results == 1 && op->kind != OP_MAP) {
      tied_op(s, op, all, tie_same);
      return NULL;
    }
    break;
  }
  whole_op(s, op);
  return NULL;
}

static Err *partition_region(Spmd *s, const Region *from, Region *to) {
  s->at = to;
  s->partition_id = NULL;
  for (Op *op = from->first, *next; op; op = next) {
    next = op->next;
    TRY(partition_op(s, op));
  }
  return NULL;
}

static void drop_shardings(NamedAttr *attrs, int *n) {
  int kept = 0;
  for (int i = 0; i < *n; i++)
    if (!str_is(attrs[i].name, "sdy.sharding") && !str_is(attrs[i].name, "mhlo.sharding"))
      attrs[kept++] = attrs[i];
  *n = kept;
}

Err *pass_partition(Module *m, bool *out_done) {
  *out_done = false;
  Func *f = module_main(m);
  if (!f || !f->body) return NULL;
  pass_propagate(m, true);
  const Mesh *mesh = NULL;
  for (int i = 0; i < m->meshes.n && !mesh; i++)
    if (m->meshes.v[i].value->mesh->n_axes) mesh = m->meshes.v[i].value->mesh;
  if (!mesh) return NULL;
  Spmd s = {.m = m, .mesh = mesh, .f = f, .n_devices = 1, .next_channel = 1 << 20};
  for (int i = 0; i < mesh->n_axes; i++) s.n_devices *= mesh->axes[i].size;
  int n = ir_number(f);
  s.local = xcalloc((size_t)n, sizeof *s.local);
  s.layouts = xcalloc((size_t)n, sizeof *s.layouts);
  const Region *old = f->body;
  const Op *ret = old->last;
  Type **types = xmalloc(sizeof *types * (size_t)(old->n_args + ret->n_operands + 1));
  for (int i = 0; i < old->n_args; i++) {
    Layout *l = &s.layouts[old->args[i]->id];
    layout_from(attrs_get(f->arg_attrs[i], f->n_arg_attrs[i], "sdy.sharding"), old->args[i]->type,
                l);
    types[i] = local_type(&s, old->args[i]->type, l);
  }
  Region *body = region_new(m, old->n_args, types);
  body->func = f;
  for (int i = 0; i < old->n_args; i++) {
    body->args[i]->name = old->args[i]->name;
    s.local[old->args[i]->id] = body->args[i];
  }
  s.at = body;
  Err *e = partition_region(&s, old, body);
  if (!e) {
    Value **v = xmalloc(sizeof *v * (size_t)(ret->n_operands + 1));
    for (int j = 0; j < ret->n_operands; j++) {
      Layout want;
      layout_from(attrs_get(f->res_attrs[j], f->n_res_attrs[j], "sdy.sharding"),
                  ret->operands[j]->type, &want);
      v[j] = operand(&s, ret->operands[j], &want);
      types[old->n_args + j] = v[j]->type;
    }
    s.loc = ret->loc;
    emit(&s, OP_RETURN, ret->n_operands, v, 0, NULL, 0, NULL, 0, NULL);
    f->type = type_func(m, old->n_args, types, ret->n_operands, types + old->n_args);
    f->body = body;
    for (int i = 0; i < old->n_args; i++) drop_shardings(f->arg_attrs[i], &f->n_arg_attrs[i]);
    for (int j = 0; j < ret->n_operands; j++) drop_shardings(f->res_attrs[j], &f->n_res_attrs[j]);
    *out_done = true;
    free(v);
  }
  free(types);
  free(s.local);
  free(s.layouts);
  return e;
}
