/* What devices must tell each other: collectives over the axes of the mesh, and from one layout of a
 * value to another. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"

#include "ir/build.h"

/* ---- mesh arithmetic ---- */

static int axis_index(const Spmd *s, AxisRef a) {
  for (int i = 0; i < s->mesh->n_axes; i++)
    if (str_eq(s->mesh->axes[i].name, a.name)) return i;
  return 0;
}

static int64_t axis_size(const Spmd *s, AxisRef a) {
  return a.sub_size ? a.sub_size : s->mesh->axes[axis_index(s, a)].size;
}

int64_t spmd_dim_parts(const Spmd *s, const Dim *d) {
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
  int64_t members = spmd_dim_parts(s, d), groups = s->n_devices / members, n = 0;
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
  assert(n == s->n_devices);
  int64_t dims[2] = {groups, members};
  Attr *a = attr_tensor_i64(s->m, 2, dims, ids);
  free(ids);
  free(seen);
  return a;
}

/* ---- making ops ---- */

Op *spmd_emit(Spmd *s, OpKind kind, int n_in, Value *const *in, int n_out, Type *const *out,
              int n_attrs, const NamedAttr *attrs, int n_regions, Region *const *regions) {
  Op *op = op_new(s->m, kind, n_in, in, n_out, out, n_attrs, attrs, n_regions, regions);
  op->loc = s->loc;
  op_append(s->at, op);
  return op;
}

Value *spmd_emit1(Spmd *s, OpKind kind, int n_in, Value *const *in, Type *out, int n_attrs,
                  const NamedAttr *attrs) {
  return &spmd_emit(s, kind, n_in, in, 1, &out, n_attrs, attrs, 0, NULL)->results[0];
}

static Type *with_dims(Spmd *s, const Type *t, const int64_t *dims) {
  return type_tensor_full(s->m, t->dtype, t->rank, dims, NULL, t->quant);
}

double spmd_part_of(const Spmd *s, const Type *t, const Layout *l) {
  double n = (double)type_count(t);
  for (int d = 0; d < t->rank; d++) n /= (double)spmd_dim_parts(s, &l->d[d]);
  return n;
}

Type *spmd_local_type(Spmd *s, Type *t, const Layout *l) {
  if (t->kind != TY_TENSOR || t->rank > MAX_RANK) return t;
  int64_t dims[MAX_RANK];
  for (int d = 0; d < t->rank; d++) dims[d] = t->dims[d] / spmd_dim_parts(s, &l->d[d]);
  return with_dims(s, t, dims);
}

NamedAttr spmd_named(const char *name, Attr *a) { return (NamedAttr){str_from(name), a}; }

Value *spmd_all_gather(Spmd *s, Value *x, int dim, const Dim *axes) {
  int64_t dims[MAX_RANK];
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[dim] *= spmd_dim_parts(s, axes);
  NamedAttr attrs[4] = {spmd_named("all_gather_dim", attr_int(s->m, DT_I64, dim)),
                        spmd_named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        spmd_named("replica_groups", groups_over(s, axes)),
                        spmd_named("use_global_device_ids", attr_bool(s->m, true))};
  return spmd_emit1(s, OP_ALL_GATHER, 1, &x, with_dims(s, x->type, dims), 4, attrs);
}

static void combine_body(Spmd *s, OpKind combine, Type *scalar, Region *r) {
  Region *outer = s->at;
  s->at = r;
  Value *sum = spmd_emit1(s, combine, 2, r->args, scalar, 0, NULL);
  spmd_emit(s, OP_RETURN, 1, &sum, 0, NULL, 0, NULL, 0, NULL);
  s->at = outer;
}

/* The sum over `axes`, of which each device gets its part along dim. */
Value *spmd_reduce_scatter(Spmd *s, Value *x, int dim, const Dim *axes) {
  Type *scalar = type_tensor(s->m, x->type->dtype, 0, NULL);
  Region *r = region_new(s->m, 2, (Type *[]){scalar, scalar});
  combine_body(s, OP_ADD, scalar, r);
  int64_t dims[MAX_RANK];
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[dim] /= spmd_dim_parts(s, axes);
  Type *out = with_dims(s, x->type, dims);
  NamedAttr attrs[4] = {spmd_named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        spmd_named("replica_groups", groups_over(s, axes)),
                        spmd_named("scatter_dimension", attr_int(s->m, DT_I64, dim)),
                        spmd_named("use_global_device_ids", attr_bool(s->m, true))};
  return &spmd_emit(s, OP_REDUCE_SCATTER, 1, &x, 1, &out, 4, attrs, 1, &r)->results[0];
}

/* all_reduce with a copy of `body`, or with `combine` when body is NULL. */
Value *spmd_all_reduce(Spmd *s, Value *x, const Dim *axes, const Region *body, OpKind combine) {
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
  NamedAttr attrs[3] = {spmd_named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        spmd_named("replica_groups", groups_over(s, axes)),
                        spmd_named("use_global_device_ids", attr_bool(s->m, true))};
  return &spmd_emit(s, OP_ALL_REDUCE, 1, &x, 1, &x->type, 3, attrs, 1, &r)->results[0];
}

static Value *index_constant(Spmd *s, int64_t v) {
  Tensor *t = tensor_make(DT_I64, 0, NULL);
  memcpy(t->data, &v, sizeof v);
  NamedAttr a = spmd_named("value", attr_tensor(s->m, t, NULL));
  return spmd_emit1(s, OP_CONSTANT, 0, NULL, type_tensor(s->m, DT_I64, 0, NULL), 1, &a);
}

/* table[partition_id] as a scalar */
static Value *lookup(Spmd *s, const int64_t *table) {
  if (!s->partition_id)
    s->partition_id =
        spmd_emit1(s, OP_PARTITION_ID, 0, NULL, type_tensor(s->m, DT_U32, 0, NULL), 0, NULL);
  Tensor *t = tensor_make(DT_I64, 1, &s->n_devices);
  memcpy(t->data, table, sizeof *table * (size_t)s->n_devices);
  NamedAttr value = spmd_named("value", attr_tensor(s->m, t, NULL));
  Value *all =
      spmd_emit1(s, OP_CONSTANT, 0, NULL, type_tensor(s->m, DT_I64, 1, &s->n_devices), 1, &value);
  int64_t one = 1;
  NamedAttr sizes = spmd_named("slice_sizes", attr_ints(s->m, DT_I64, 1, &one));
  Value *x = spmd_emit1(s, OP_DYNAMIC_SLICE, 2, (Value *[]){all, s->partition_id},
                        type_tensor(s->m, DT_I64, 1, &one), 1, &sizes);
  return spmd_emit1(s, OP_RESHAPE, 1, &x, type_tensor(s->m, DT_I64, 0, NULL), 0, NULL);
}

Value *spmd_own_place(Spmd *s, const Dim *axes, int64_t size) {
  int64_t *table = xmalloc(sizeof *table * (size_t)s->n_devices);
  for (int64_t p = 0; p < s->n_devices; p++) table[p] = coordinate(s, axes, p) * size;
  Value *place = lookup(s, table);
  free(table);
  return place;
}

/* This device's part of x along dim. */
static Value *own_part(Spmd *s, Value *x, int dim, const Dim *axes) {
  int64_t parts = spmd_dim_parts(s, axes), size = x->type->dims[dim] / parts, dims[MAX_RANK];
  Value *operands[MAX_RANK + 1] = {x};
  for (int d = 0; d < x->type->rank; d++) {
    dims[d] = d == dim ? size : x->type->dims[d];
    operands[d + 1] = d == dim ? spmd_own_place(s, axes, size) : index_constant(s, 0);
  }
  NamedAttr sizes = spmd_named("slice_sizes", attr_ints(s->m, DT_I64, x->type->rank, dims));
  return spmd_emit1(s, OP_DYNAMIC_SLICE, x->type->rank + 1, operands, with_dims(s, x->type, dims),
                    1, &sizes);
}

int spmd_common_prefix(const Dim *a, const Dim *b) {
  int i = 0;
  while (i < a->n && i < b->n && str_eq(a->a[i].name, b->a[i].name) &&
         a->a[i].sub_pre == b->a[i].sub_pre && a->a[i].sub_size == b->a[i].sub_size)
    i++;
  return i;
}

bool spmd_only_cuts(const Layout *from, const Layout *to, int rank) {
  bool only = true;
  for (int d = 0; d < rank; d++)
    only = only && spmd_common_prefix(&from->d[d], &to->d[d]) == from->d[d].n;
  return only;
}

/* The axes of x that y does not begin with. */
static Dim rest_of(const Dim *x, const Dim *y) {
  int keep = spmd_common_prefix(x, y);
  Dim rest = {.n = x->n - keep};
  memcpy(rest.a, x->a + keep, sizeof *rest.a * (size_t)rest.n);
  return rest;
}

bool spmd_same_axes(const Dim *a, const Dim *b) {
  return a->n == b->n && spmd_common_prefix(a, b) == a->n;
}

bool spmd_uses_axis(const Layout *l, int rank, AxisRef a) {
  for (int d = 0; d < rank; d++)
    for (int i = 0; i < l->d[d].n; i++)
      if (str_eq(l->d[d].a[i].name, a.name)) return true;
  return false;
}

static bool has_axis(const Dim *d, AxisRef a) {
  for (int i = 0; i < d->n; i++)
    if (str_eq(d->a[i].name, a.name) && d->a[i].sub_pre == a.sub_pre &&
        d->a[i].sub_size == a.sub_size)
      return true;
  return false;
}

Dim spmd_axes_in(const Dim *a, const Dim *b, bool in) {
  Dim r = {0};
  for (int i = 0; i < a->n; i++)
    if (has_axis(b, a->a[i]) == in) r.a[r.n++] = a->a[i];
  return r;
}

bool spmd_same_sums(const Layout *a, const Layout *b) {
  return a->sum.n == b->sum.n && spmd_axes_in(&a->sum, &b->sum, true).n == a->sum.n;
}

/* ---- parts that are not summed yet ---- */

/* The first axes of a cut, after those that are there, that are among `axes`. */
static Dim summed_cut(const Dim *want, const Dim *has, const Dim *axes) {
  Dim rest = {0};
  if (want->n <= has->n || spmd_common_prefix(want, has) != has->n) return rest;
  Layout among = {.d = {*axes}};
  for (int i = has->n; i < want->n && spmd_uses_axis(&among, 1, want->a[i]); i++)
    rest.a[rest.n++] = want->a[i];
  return rest;
}

Dim spmd_not_cutting(const Dim *axes, const Layout *l, int rank) {
  Dim r = {0};
  for (int i = 0; i < axes->n; i++)
    if (!spmd_uses_axis(l, MIN(rank, MAX_RANK), axes->a[i])) r.a[r.n++] = axes->a[i];
  return r;
}

static Dim left_of(const Dim *axes, const Dim *gone) {
  Layout used = {.d = {*gone}};
  return spmd_not_cutting(axes, &used, 1);
}

Value *spmd_sum_over(Spmd *s, Value *x, const Dim *axes, const Layout *want, Layout *has) {
  Dim left = *axes;
  for (int d = 0; d < x->type->rank; d++) {
    Dim rest = summed_cut(&want->d[d], &has->d[d], &left);
    if (!rest.n || x->type->dims[d] % spmd_dim_parts(s, &rest)) continue;
    x = spmd_reduce_scatter(s, x, d, &rest);
    for (int i = 0; i < rest.n; i++) has->d[d].a[has->d[d].n++] = rest.a[i];
    left = left_of(&left, &rest);
  }
  return left.n ? spmd_all_reduce(s, x, &left, NULL, OP_ADD) : x;
}

/* The first device along the axes has all of it, the others zeros. */
static Value *term_of_first(Spmd *s, Value *x, const Dim *axes) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *first = b_compare(&b, "EQ", spmd_own_place(s, axes, 1), b_scalar_i64(&b, DT_I64, 0));
  first = b_bcast_scalar(&b, first, x->type);
  return b_select(&b, first, x, b_full(&b, x->type, 0));
}

/* A device's part along dim as a term of the whole: it stays where it is, in zeros. */
static Value *term_of_part(Spmd *s, Value *x, int dim, const Dim *axes) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  int64_t dims[MAX_RANK];
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[dim] *= spmd_dim_parts(s, axes);
  Type *t = with_dims(s, x->type, dims);
  Value *operands[MAX_RANK + 2] = {b_full(&b, t, 0), x};
  for (int d = 0; d < t->rank; d++)
    operands[d + 2] = d == dim ? spmd_own_place(s, axes, x->type->dims[d]) : index_constant(s, 0);
  return spmd_emit1(s, OP_DYNAMIC_UPDATE_SLICE, t->rank + 2, operands, t, 0, NULL);
}

/* Axes that leave dimension `from` and cut dimension `to` instead. */
static Value *all_to_all(Spmd *s, Value *x, int from, int to, const Dim *axes) {
  int64_t dims[MAX_RANK], n = spmd_dim_parts(s, axes);
  memcpy(dims, x->type->dims, sizeof *dims * (size_t)x->type->rank);
  dims[from] *= n;
  dims[to] /= n;
  NamedAttr attrs[5] = {spmd_named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
                        spmd_named("concat_dimension", attr_int(s->m, DT_I64, from)),
                        spmd_named("replica_groups", groups_over(s, axes)),
                        spmd_named("split_count", attr_int(s->m, DT_I64, n)),
                        spmd_named("split_dimension", attr_int(s->m, DT_I64, to))};
  return spmd_emit1(s, OP_ALL_TO_ALL, 1, &x, with_dims(s, x->type, dims), 5, attrs);
}

Value *spmd_fetch(Spmd *s, Value *x, const Dim *axes, const int64_t *from) {
  Attr *groups = groups_over(s, axes);
  int64_t members = spmd_dim_parts(s, axes), n = 0;
  int64_t *ids = (int64_t *)groups->tensor->data,
          *pairs = xmalloc(sizeof *pairs * 2 * (size_t)s->n_devices);
  bool stays = true;
  for (int64_t i = 0; i < s->n_devices; i++) {
    int64_t own = i % members;
    stays &= from[own] == own;
    if (from[own] < 0 || from[own] >= members) continue;
    pairs[n++] = ids[i - own + from[own]];
    pairs[n++] = ids[i];
  }
  NamedAttr attrs[2] = {
      spmd_named("channel_id", attr_int(s->m, DT_I64, s->next_channel++)),
      spmd_named("source_target_pairs", attr_tensor_i64(s->m, 2, (int64_t[]){n / 2, 2}, pairs))};
  free(pairs);
  return stays ? x : spmd_emit1(s, OP_COLLECTIVE_PERMUTE, 1, &x, x->type, 2, attrs);
}

/* The dimension whose cut grows by just these axes; -1: none. */
static int moves_to(Spmd *s, const Value *x, const Layout *from, const Layout *to, int d,
                    const Dim *gone) {
  for (int e = 0; e < x->type->rank; e++) {
    Dim more = rest_of(&to->d[e], &from->d[e]);
    if (e != d && to->d[e].n == from->d[e].n + gone->n && spmd_same_axes(&more, gone) &&
        x->type->dims[e] % spmd_dim_parts(s, gone) == 0)
      return e;
  }
  return -1;
}

static Value *exchange(Spmd *s, Value *x, const Layout *from, const Layout *to) {
  Layout now = *from;
  Dim due = spmd_axes_in(&from->sum, &to->sum, false),
      terms = spmd_axes_in(&to->sum, &from->sum, false);
  if (due.n) x = spmd_sum_over(s, x, &due, to, &now);
  for (int d = 0; d < x->type->rank;
       d++) { /* gathers first: an axis may move to another dimension */
    Dim gone = rest_of(&now.d[d], &to->d[d]);
    if (!gone.n) continue;
    if (spmd_axes_in(&gone, &terms, true).n == gone.n) {
      x = term_of_part(s, x, d, &gone);
      terms = spmd_axes_in(&terms, &gone, false);
      now.d[d].n -= gone.n;
      continue;
    }
    int e = moves_to(s, x, &now, to, d, &gone);
    x = e >= 0 ? all_to_all(s, x, d, e, &gone) : spmd_all_gather(s, x, d, &gone);
    now.d[d].n -= gone.n;
    if (e >= 0) now.d[e] = to->d[e];
  }
  for (int d = 0; d < x->type->rank; d++) {
    Dim more = rest_of(&to->d[d], &now.d[d]);
    if (more.n) x = own_part(s, x, d, &more);
  }
  return terms.n ? term_of_first(s, x, &terms) : x;
}

static void add_dim(Buf *b, const Dim *d) {
  buf_cstr(b, ";");
  for (int i = 0; i < d->n; i++)
    buf_printf(b, "%.*s:%lld:%lld,", STR_ARG(d->a[i].name), (long long)d->a[i].sub_pre,
               (long long)d->a[i].sub_size);
}

/* What two operations ask for in one region is exchanged once. */
Value *spmd_reshard(Spmd *s, Value *x, const Layout *from, const Layout *to) {
  if (x->type->kind != TY_TENSOR) return x;
  bool same = spmd_same_sums(from, to);
  for (int d = 0; d < x->type->rank && same; d++) same = spmd_same_axes(&from->d[d], &to->d[d]);
  if (same) return x;
  Buf key = {0};
  buf_printf(&key, "%p%p", (void *)x, (void *)s->at);
  for (int d = 0; d < x->type->rank; d++) add_dim(&key, &to->d[d]);
  add_dim(&key, &to->sum);
  Str k = {key.p, key.n};
  Value *done = map_get(s->exchanged, k);
  if (!done) map_set(s->exchanged, k, done = exchange(s, x, from, to));
  buf_free(&key);
  return done;
}
