/* Building ops: result types from operands, attributes in canonical form. See build.h. */
#include "ir/build.h"

#include <math.h>
#include <stdlib.h>

/* ---- functions ------------------------------------------------------------------------------- */

Func *b_func(Build *b, Module *m, const char *name) {
  Func *f = func_new(m, str_from(name), 0, NULL, 0, NULL);
  b->m = m;
  b->r = f->body;
  return f;
}

Value *b_arg(Build *b, Type *type) {
  Func *f = b->r->func;
  Region *r = f->body;
  Arena *a = b->m->arena;
  int n = r->n_args;
  Value **args = ARENA_ARRAY(a, Value *, n + 1);
  NamedAttr **attrs = ARENA_ARRAY(a, NamedAttr *, n + 1);
  int *counts = ARENA_ARRAY(a, int, n + 1);
  if (n) {
    memcpy(args, r->args, sizeof *args * (size_t)n);
    memcpy(attrs, f->arg_attrs, sizeof *attrs * (size_t)n);
    memcpy(counts, f->n_arg_attrs, sizeof *counts * (size_t)n);
  }
  Value *v = ARENA_NEW(a, Value);
  *v = (Value){.type = type, .region = r, .index = n, .id = -1};
  args[n] = v;
  r->args = args;
  r->n_args = n + 1;
  f->arg_attrs = attrs;
  f->n_arg_attrs = counts;
  return v;
}

void b_order_args(Func *f, int n, Value *const *order) {
  assert(n == f->body->n_args);
  Arena *a = f->module->arena;
  NamedAttr **attrs = ARENA_ARRAY(a, NamedAttr *, n);
  int *counts = ARENA_ARRAY(a, int, n);
  Value **args = ARENA_ARRAY(a, Value *, n);
  for (int i = 0; i < n; i++) {
    args[i] = order[i];
    attrs[i] = f->arg_attrs[order[i]->index];
    counts[i] = f->n_arg_attrs[order[i]->index];
  }
  for (int i = 0; i < n; i++) args[i]->index = i;
  f->body->args = args;
  f->arg_attrs = attrs;
  f->n_arg_attrs = counts;
}

/* Attributes are sorted by their names. */
static void put_attr(Module *m, NamedAttr **attrs, int *n, const char *name, Attr *value) {
  int at = 0;
  while (at < *n && str_cmp((*attrs)[at].name, str_from(name)) < 0) at++;
  bool there = at < *n && str_is((*attrs)[at].name, name);
  NamedAttr *v = ARENA_ARRAY(m->arena, NamedAttr, *n + 1);
  if (at) memcpy(v, *attrs, sizeof *v * (size_t)at);
  v[at] = (NamedAttr){arena_str(m->arena, str_from(name)), value};
  int rest = *n - at - there;
  if (rest) memcpy(v + at + 1, *attrs + at + there, sizeof *v * (size_t)rest);
  *attrs = v;
  *n += !there;
}

void b_arg_attr(Func *f, int arg, const char *name, Attr *value) {
  put_attr(f->module, &f->arg_attrs[arg], &f->n_arg_attrs[arg], name, value);
}

void b_result_attr(Func *f, int result, const char *name, Attr *value) {
  put_attr(f->module, &f->res_attrs[result], &f->n_res_attrs[result], name, value);
}

void b_module_attr(Module *m, const char *name, Attr *value) {
  put_attr(m, &m->attrs, &m->n_attrs, name, value);
}

void b_return(Build *b, int n, Value *const *v) {
  op_append(b->r, op_new(b->m, OP_RETURN, n, v, 0, NULL, 0, NULL, 0, NULL));
  Func *f = b->r->func;
  if (!f || f->body != b->r) return;
  Type **types = ARENA_ARRAY(b->m->arena, Type *, b->r->n_args + n + 1);
  for (int i = 0; i < b->r->n_args; i++) types[i] = b->r->args[i]->type;
  for (int i = 0; i < n; i++) types[b->r->n_args + i] = v[i]->type;
  f->type = type_func(b->m, b->r->n_args, types, n, types + b->r->n_args);
  f->res_attrs = ARENA_ARRAY(b->m->arena, NamedAttr *, n + 1);
  f->n_res_attrs = ARENA_ARRAY(b->m->arena, int, n + 1);
}

const Loc *b_scope(Build *b, const char *name) {
  static const Loc unknown = {.kind = LOC_UNKNOWN};
  const Loc *outer = b->loc;
  Loc *l = ARENA_NEW(b->m->arena, Loc);
  l->kind = LOC_NAME;
  l->child = &unknown;
  if (outer && outer->kind == LOC_NAME)
    l->name = arena_printf(b->m->arena, "%.*s/%s", STR_ARG(outer->name), name);
  else l->name = arena_str(b->m->arena, str_from(name));
  b->loc = l;
  return outer;
}

/* ---- any op ---------------------------------------------------------------------------------- */

Op *b_op(Build *b, OpKind kind, int n_operands, Value *const *operands, int n_results,
         Type *const *types, int n_attrs, const NamedAttr *attrs, int n_regions,
         Region *const *regions) {
  NamedAttr kept[32];
  int n = 0;
  assert(n_attrs <= COUNT_OF(kept));
  for (int i = 0; i < n_attrs; i++)
    if (attrs[i].value) kept[n++] = attrs[i]; /* NULL: has its default */
  Op *op = op_new(b->m, kind, n_operands, operands, n_results, types, n, kept, n_regions, regions);
  op->loc = b->loc;
  op_append(b->r, op);
  return op;
}

static Value *one(Build *b, OpKind kind, int n_operands, Value *const *operands, Type *type,
                  int n_attrs, const NamedAttr *attrs) {
  return &b_op(b, kind, n_operands, operands, 1, &type, n_attrs, attrs, 0, NULL)->results[0];
}

NamedAttr b_ints(Build *b, const char *name, int n, const int64_t *v) {
  return (NamedAttr){str_from(name), attr_ints(b->m, DT_I64, n, v)};
}
NamedAttr b_int(Build *b, const char *name, int64_t v) {
  return (NamedAttr){str_from(name), attr_int(b->m, DT_I64, v)};
}
NamedAttr b_bool(Build *b, const char *name, bool v) {
  return (NamedAttr){str_from(name), attr_bool(b->m, v)};
}
NamedAttr b_enum(Build *b, const char *name, const char *v) {
  return (NamedAttr){str_from(name), attr_enum(b->m, str_from(v))};
}

/* A list that is absent when all its numbers are `dflt`. */
static NamedAttr ints_unless(Build *b, const char *name, int n, const int64_t *v, int64_t dflt) {
  bool same = true;
  for (int i = 0; v && i < n; i++) same &= v[i] == dflt;
  return same ? (NamedAttr){0} : b_ints(b, name, n, v);
}
static NamedAttr ints_if_any(Build *b, const char *name, int n, const int64_t *v) {
  return n ? b_ints(b, name, n, v) : (NamedAttr){0};
}
static NamedAttr int_unless(Build *b, const char *name, int64_t v, int64_t dflt) {
  return v == dflt ? (NamedAttr){0} : b_int(b, name, v);
}
static NamedAttr pairs_unless_zero(Build *b, const char *name, int n, const int64_t *v) {
  bool zero = true;
  for (int i = 0; v && i < 2 * n; i++) zero &= v[i] == 0;
  if (zero) return (NamedAttr){0};
  return (NamedAttr){str_from(name), attr_tensor_i64(b->m, 2, (int64_t[]){n, 2}, v)};
}

Type *b_type(Build *b, DType t, int rank, const int64_t *dims) {
  return type_tensor(b->m, t, rank, dims);
}
Type *b_type_as(Build *b, const Type *shape, DType t) {
  return type_tensor(b->m, t, shape->rank, shape->dims);
}

/* ---- constants ------------------------------------------------------------------------------- */

Value *b_const(Build *b, Type *type, const void *data) {
  Tensor *t = tensor_make(type->dtype, type->rank, type->dims);
  memcpy(t->data, data, tensor_bytes(t));
  NamedAttr a = {STR("value"), attr_tensor(b->m, t, NULL)};
  return one(b, OP_CONSTANT, 0, NULL, type, 1, &a);
}

Value *b_scalar(Build *b, DType t, double v) {
  uint64_t bits[2] = {0};
  elem_set_f64(dtype_real_of(t), bits, v);
  return b_const(b, b_type(b, t, 0, NULL), bits);
}

Value *b_scalar_i64(Build *b, DType t, int64_t v) {
  uint64_t bits[2] = {0};
  elem_set_i64(t, bits, v);
  return b_const(b, b_type(b, t, 0, NULL), bits);
}

Value *b_full(Build *b, Type *type, double v) {
  return b_bcast_scalar(b, b_scalar(b, type->dtype, v), type);
}

Value *b_iota(Build *b, Type *type, int dim) {
  NamedAttr a = b_int(b, "iota_dimension", dim);
  return one(b, OP_IOTA, 0, NULL, type, 1, &a);
}

/* ---- element by element ---------------------------------------------------------------------- */

Value *b_unary(Build *b, OpKind k, Value *x) { return one(b, k, 1, &x, x->type, 0, NULL); }

Value *b_binary(Build *b, OpKind k, Value *x, Value *y) {
  assert(x->type == y->type);
  return one(b, k, 2, (Value *[]){x, y}, x->type, 0, NULL);
}

Value *b_adds(Build *b, Value *x, double s) { return b_add(b, x, b_full(b, x->type, s)); }
Value *b_muls(Build *b, Value *x, double s) { return b_mul(b, x, b_full(b, x->type, s)); }

Value *b_convert(Build *b, Value *x, DType t) {
  if (b_dtype(x) == t) return x;
  return one(b, OP_CONVERT, 1, &x, b_type_as(b, x->type, t), 0, NULL);
}

Value *b_compare(Build *b, const char *direction, Value *x, Value *y) {
  assert(x->type == y->type);
  DTypeClass c = dtype_class(b_dtype(x));
  const char *kind = c == DC_FLOAT || c == DC_COMPLEX ? "FLOAT"
                     : c == DC_SINT                   ? "SIGNED"
                                                      : "UNSIGNED";
  NamedAttr a[] = {b_enum(b, "compare_type", kind), b_enum(b, "comparison_direction", direction)};
  return one(b, OP_COMPARE, 2, (Value *[]){x, y}, b_type_as(b, x->type, DT_I1), 2, a);
}

Value *b_select(Build *b, Value *pred, Value *on_true, Value *on_false) {
  assert(on_true->type == on_false->type);
  return one(b, OP_SELECT, 3, (Value *[]){pred, on_true, on_false}, on_true->type, 0, NULL);
}

Value *b_clamp(Build *b, Value *lo, Value *x, Value *hi) {
  return one(b, OP_CLAMP, 3, (Value *[]){lo, x, hi}, x->type, 0, NULL);
}

static Value *horner(Build *b, Value *x, int n, const double *c) {
  Value *y = b_full(b, x->type, c[0]);
  for (int i = 1; i < n; i++) y = b_adds(b, b_mul(b, y, x), c[i]);
  return y;
}

Value *b_erf(Build *b, Value *x) {
  /* minimax fit x P(x^2) / Q(x^2) on |x| <= 4, the coefficients that XLA and Eigen use for f32 */
  static const double p[] = {-2.72614237e-10, 2.77068146e-8, -2.10102394e-6, -5.69250624e-5,
                             -7.34990637e-4,  -2.954600e-3,  -0.0160960332};
  static const double q[] = {-1.45660715e-5, -2.13374049e-4, -0.00168282702, -0.00737332925,
                             -0.0142647391};
  DType t = b_dtype(x);
  Value *c = b_clamp(b, b_scalar(b, t, -4), x, b_scalar(b, t, 4));
  Value *s = b_mul(b, c, c);
  Value *r = b_div(b, b_mul(b, c, horner(b, s, COUNT_OF(p), p)), horner(b, s, COUNT_OF(q), q));
  return b_clamp(b, b_scalar(b, t, -1), r, b_scalar(b, t, 1));
}

/* ---- moving elements ------------------------------------------------------------------------- */

Value *b_reshape(Build *b, Value *x, int rank, const int64_t *dims) {
  Type *t = b_type(b, b_dtype(x), rank, dims);
  if (t == x->type) return x;
  assert(type_count(t) == type_count(x->type));
  return one(b, OP_RESHAPE, 1, &x, t, 0, NULL);
}

Value *b_transpose(Build *b, Value *x, const int *perm) {
  int64_t p[B_MAX_RANK], d[B_MAX_RANK];
  bool identity = true;
  for (int i = 0; i < b_rank(x); i++) {
    p[i] = perm[i];
    d[i] = b_dim(x, perm[i]);
    identity &= perm[i] == i;
  }
  if (identity) return x;
  NamedAttr a = b_ints(b, "permutation", b_rank(x), p);
  return one(b, OP_TRANSPOSE, 1, &x, b_type(b, b_dtype(x), b_rank(x), d), 1, &a);
}

Value *b_bcast(Build *b, Value *x, int rank, const int64_t *dims, const int *map) {
  Type *t = b_type(b, b_dtype(x), rank, dims);
  int64_t d[B_MAX_RANK];
  bool identity = t == x->type;
  for (int i = 0; i < b_rank(x); i++) {
    d[i] = map[i];
    identity &= map[i] == i;
  }
  if (identity) return x;
  NamedAttr a = b_ints(b, "broadcast_dimensions", b_rank(x), d);
  return one(b, OP_BROADCAST_IN_DIM, 1, &x, t, 1, &a);
}

Value *b_bcast_like(Build *b, Value *x, const Type *shape, const int *map) {
  return b_bcast(b, x, shape->rank, shape->dims, map);
}
Value *b_bcast_scalar(Build *b, Value *x, const Type *shape) {
  assert(b_rank(x) == 0);
  return b_bcast(b, x, shape->rank, shape->dims, NULL);
}
Value *b_bcast_last(Build *b, Value *x, const Type *shape) {
  assert(b_rank(x) == 1);
  return b_bcast(b, x, shape->rank, shape->dims, (int[]){shape->rank - 1});
}

Value *b_reverse(Build *b, Value *x, int n, const int64_t *dims) {
  if (!n) return x;
  NamedAttr a = b_ints(b, "dimensions", n, dims);
  return one(b, OP_REVERSE, 1, &x, x->type, 1, &a);
}

Value *b_slice(Build *b, Value *x, const int64_t *start, const int64_t *limit,
               const int64_t *strides) {
  int64_t d[B_MAX_RANK], s[B_MAX_RANK];
  bool whole = true;
  int n = b_rank(x);
  for (int i = 0; i < n; i++) {
    s[i] = strides ? strides[i] : 1;
    d[i] = (limit[i] - start[i] + s[i] - 1) / s[i];
    whole &= start[i] == 0 && limit[i] == b_dim(x, i) && s[i] == 1;
  }
  if (whole) return x;
  NamedAttr a[] = {b_ints(b, "limit_indices", n, limit), b_ints(b, "start_indices", n, start),
                   b_ints(b, "strides", n, s)};
  return one(b, OP_SLICE, 1, &x, b_type(b, b_dtype(x), n, d), 3, a);
}

Value *b_slice_dim(Build *b, Value *x, int dim, int64_t start, int64_t limit) {
  int64_t lo[B_MAX_RANK] = {0}, hi[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) hi[i] = b_dim(x, i);
  lo[dim] = start;
  hi[dim] = limit;
  return b_slice(b, x, lo, hi, NULL);
}

Value *b_pad(Build *b, Value *x, Value *pad_value, const int64_t *lo, const int64_t *hi,
             const int64_t *interior) {
  int n = b_rank(x);
  int64_t d[B_MAX_RANK], in[B_MAX_RANK];
  bool none = true;
  for (int i = 0; i < n; i++) {
    in[i] = interior ? interior[i] : 0;
    int64_t size = b_dim(x, i);
    d[i] = lo[i] + hi[i] + size + (size > 0 ? (size - 1) * in[i] : 0);
    none &= lo[i] == 0 && hi[i] == 0 && (in[i] == 0 || size < 2);
  }
  if (none) return x;
  NamedAttr a[] = {b_ints(b, "edge_padding_high", n, hi), b_ints(b, "edge_padding_low", n, lo),
                   b_ints(b, "interior_padding", n, in)};
  return one(b, OP_PAD, 2, (Value *[]){x, pad_value}, b_type(b, b_dtype(x), n, d), 3, a);
}

Value *b_concat(Build *b, int n, Value *const *x, int dim) {
  int64_t d[B_MAX_RANK];
  memcpy(d, x[0]->type->dims, sizeof(int64_t) * (size_t)b_rank(x[0]));
  d[dim] = 0;
  for (int i = 0; i < n; i++) d[dim] += b_dim(x[i], dim);
  NamedAttr a = b_int(b, "dimension", dim);
  return one(b, OP_CONCATENATE, n, x, b_type(b, b_dtype(x[0]), b_rank(x[0]), d), 1, &a);
}

Value *b_dynamic_slice(Build *b, Value *x, Value *const *start, const int64_t *sizes) {
  Value *v[B_MAX_RANK + 1] = {x};
  for (int i = 0; i < b_rank(x); i++) v[i + 1] = start[i];
  NamedAttr a = b_ints(b, "slice_sizes", b_rank(x), sizes);
  return one(b, OP_DYNAMIC_SLICE, 1 + b_rank(x), v, b_type(b, b_dtype(x), b_rank(x), sizes), 1, &a);
}

Value *b_dynamic_update(Build *b, Value *x, Value *update, Value *const *start) {
  Value *v[B_MAX_RANK + 2] = {x, update};
  for (int i = 0; i < b_rank(x); i++) v[i + 2] = start[i];
  return one(b, OP_DYNAMIC_UPDATE_SLICE, 2 + b_rank(x), v, x->type, 0, NULL);
}

/* ---- indexing -------------------------------------------------------------------------------- */

/* At most B_MAX_RANK of them: who moves data asks for the rank first, an estimate need not. */
static int read_ints(const Op *op, const char *name, int64_t *out) {
  const int64_t *v;
  int n = MIN(op_ints(op, name, &v), B_MAX_RANK);
  if (n) memcpy(out, v, sizeof(int64_t) * (size_t)n);
  return n;
}

IndexDims b_gather_dims(const Op *op) {
  IndexDims d = {0};
  d.n_offset = read_ints(op, "offset_dims", d.offset);
  d.n_collapsed = read_ints(op, "collapsed_slice_dims", d.collapsed);
  d.n_map = read_ints(op, "start_index_map", d.map);
  d.n_batch = read_ints(op, "operand_batching_dims", d.operand_batch);
  read_ints(op, "start_indices_batching_dims", d.indices_batch);
  d.index_vector_dim = op_int(op, "index_vector_dim", 0);
  d.sorted = op_bool(op, "indices_are_sorted", false);
  return d;
}

IndexDims b_scatter_dims(const Op *op) {
  IndexDims d = {0};
  d.n_offset = read_ints(op, "update_window_dims", d.offset);
  d.n_collapsed = read_ints(op, "inserted_window_dims", d.collapsed);
  d.n_map = read_ints(op, "scatter_dims_to_operand_dims", d.map);
  d.n_batch = read_ints(op, "input_batching_dims", d.operand_batch);
  read_ints(op, "scatter_indices_batching_dims", d.indices_batch);
  d.index_vector_dim = op_int(op, "index_vector_dim", 0);
  d.sorted = op_bool(op, "indices_are_sorted", false);
  d.unique = op_bool(op, "unique_indices", false);
  return d;
}

bool b_has_dim(int n, const int64_t *v, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

Value *b_gather(Build *b, Value *x, Value *indices, const IndexDims *d,
                const int64_t *slice_sizes) {
  int rank_idx = b_rank(indices),
      n_batch_dims = rank_idx - (d->index_vector_dim < rank_idx ? 1 : 0);
  int rank = n_batch_dims + d->n_offset, next_idx = 0, next_op = 0;
  int64_t dims[B_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    if (b_has_dim(d->n_offset, d->offset, i)) {
      while (b_has_dim(d->n_collapsed, d->collapsed, next_op) ||
             b_has_dim(d->n_batch, d->operand_batch, next_op))
        next_op++;
      dims[i] = slice_sizes[next_op++];
    } else {
      if (next_idx == d->index_vector_dim) next_idx++;
      dims[i] = b_dim(indices, next_idx++);
    }
  }
  NamedAttr a[8];
  a[0] = ints_if_any(b, "collapsed_slice_dims", d->n_collapsed, d->collapsed);
  a[1] = int_unless(b, "index_vector_dim", d->index_vector_dim, 0);
  a[2] = d->sorted ? b_bool(b, "indices_are_sorted", true) : (NamedAttr){0};
  a[3] = ints_if_any(b, "offset_dims", d->n_offset, d->offset);
  a[4] = ints_if_any(b, "operand_batching_dims", d->n_batch, d->operand_batch);
  a[5] = b_ints(b, "slice_sizes", b_rank(x), slice_sizes);
  a[6] = ints_if_any(b, "start_index_map", d->n_map, d->map);
  a[7] = ints_if_any(b, "start_indices_batching_dims", d->n_batch, d->indices_batch);
  return one(b, OP_GATHER, 2, (Value *[]){x, indices}, b_type(b, b_dtype(x), rank, dims),
             COUNT_OF(a), a);
}

Value *b_scatter(Build *b, OpKind combine, Value *x, Value *indices, Value *updates,
                 const IndexDims *d) {
  NamedAttr a[8];
  a[0] = int_unless(b, "index_vector_dim", d->index_vector_dim, 0);
  a[1] = d->sorted ? b_bool(b, "indices_are_sorted", true) : (NamedAttr){0};
  a[2] = ints_if_any(b, "input_batching_dims", d->n_batch, d->operand_batch);
  a[3] = ints_if_any(b, "inserted_window_dims", d->n_collapsed, d->collapsed);
  a[4] = ints_if_any(b, "scatter_dims_to_operand_dims", d->n_map, d->map);
  a[5] = ints_if_any(b, "scatter_indices_batching_dims", d->n_batch, d->indices_batch);
  a[6] = d->unique ? b_bool(b, "unique_indices", true) : (NamedAttr){0};
  a[7] = ints_if_any(b, "update_window_dims", d->n_offset, d->offset);
  Region *body = b_combiner(b, combine, b_dtype(x));
  return &b_op(b, OP_SCATTER, 3, (Value *[]){x, indices, updates}, 1, &x->type, COUNT_OF(a), a, 1,
               &body)
              ->results[0];
}

Value *b_take_rows(Build *b, Value *table, Value *ids) {
  int r = b_rank(ids);
  IndexDims d = {
      .n_offset = 1, .offset = {r}, .n_collapsed = 1, .collapsed = {0}, .n_map = 1, .map = {0}};
  d.index_vector_dim = r;
  return b_gather(b, table, ids, &d, (int64_t[]){1, b_dim(table, 1)});
}

/* ---- reductions ------------------------------------------------------------------------------ */

Region *b_combiner(Build *b, OpKind combine, DType t) {
  Type *s = b_type(b, t, 0, NULL);
  Build in = {b->m, region_new(b->m, 2, (Type *[]){s, s}), b->loc};
  Value *x = in.r->args[0], *y = in.r->args[1];
  Value *v = combine == OP_UNKNOWN ? y : b_binary(&in, combine, x, y);
  b_return(&in, 1, &v);
  return in.r;
}

Value *b_neutral(Build *b, OpKind combine, DType t) {
  DTypeClass c = dtype_class(t);
  int bits = dtype_bits(t);
  switch (combine) {
  case OP_MULTIPLY: return b_scalar(b, t, 1);
  case OP_AND: return b_scalar_i64(b, t, -1);
  case OP_MAXIMUM:
    if (c == DC_FLOAT) return b_scalar(b, t, -INFINITY);
    return b_scalar_i64(b, t, c == DC_SINT ? INT64_MIN >> (64 - bits) : 0);
  case OP_MINIMUM:
    if (c == DC_FLOAT) return b_scalar(b, t, INFINITY);
    if (c == DC_BOOL) return b_scalar_i64(b, t, 1);
    return b_scalar_i64(b, t, c == DC_SINT ? INT64_MAX >> (64 - bits) : -1);
  default:
    assert(combine == OP_ADD || combine == OP_OR || combine == OP_XOR);
    return b_scalar(b, t, 0);
  }
}

Value *b_reduce(Build *b, OpKind combine, Value *x, int n, const int64_t *dims) {
  if (!n) return x;
  int64_t d[B_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < b_rank(x); i++)
    if (!b_has_dim(n, dims, i)) d[rank++] = b_dim(x, i);
  NamedAttr a = b_ints(b, "dimensions", n, dims);
  Value *init = b_neutral(b, combine, b_dtype(x));
  Type *t = b_type(b, b_dtype(x), rank, d);
  Region *body = b_combiner(b, combine, b_dtype(x));
  return &b_op(b, OP_REDUCE, 2, (Value *[]){x, init}, 1, &t, 1, &a, 1, &body)->results[0];
}

Value *b_reduce_all(Build *b, OpKind combine, Value *x) {
  int64_t d[B_MAX_RANK];
  for (int i = 0; i < b_rank(x); i++) d[i] = i;
  return b_reduce(b, combine, x, b_rank(x), d);
}

Value *b_mean(Build *b, Value *x, int n, const int64_t *dims) {
  double count = 1;
  for (int i = 0; i < n; i++) count *= (double)b_dim(x, (int)dims[i]);
  return b_muls(b, b_reduce(b, OP_ADD, x, n, dims), 1 / count);
}

static int64_t at(const int64_t *v, int i, int64_t dflt) { return v ? v[i] : dflt; }

static int64_t window_out(int64_t size, const Window *w, int i) {
  int64_t base = size ? (size - 1) * at(w->base_dilation, i, 1) + 1 : 0;
  base += at(w->padding, 2 * i, 0) + at(w->padding, 2 * i + 1, 0);
  int64_t win = (at(w->size, i, 1) - 1) * at(w->dilation, i, 1) + 1;
  return base < win ? 0 : (base - win) / at(w->strides, i, 1) + 1;
}

Value *b_reduce_window(Build *b, OpKind combine, Value *x, const Window *w) {
  int n = b_rank(x);
  int64_t d[B_MAX_RANK];
  for (int i = 0; i < n; i++) d[i] = window_out(b_dim(x, i), w, i);
  NamedAttr a[] = {ints_unless(b, "base_dilations", n, w->base_dilation, 1),
                   pairs_unless_zero(b, "padding", n, w->padding),
                   ints_unless(b, "window_dilations", n, w->dilation, 1),
                   b_ints(b, "window_dimensions", n, w->size),
                   ints_unless(b, "window_strides", n, w->strides, 1)};
  Value *init = b_neutral(b, combine, b_dtype(x));
  Type *t = b_type(b, b_dtype(x), n, d);
  Region *body = b_combiner(b, combine, b_dtype(x));
  return &b_op(b, OP_REDUCE_WINDOW, 2, (Value *[]){x, init}, 1, &t, COUNT_OF(a), a, 1, &body)
              ->results[0];
}

Value *b_select_and_scatter(Build *b, Value *x, Value *source, const Window *w) {
  int n = b_rank(x);
  NamedAttr a[] = {pairs_unless_zero(b, "padding", n, w->padding),
                   ints_unless(b, "window_dimensions", n, w->size, 1),
                   ints_unless(b, "window_strides", n, w->strides, 1)};
  Type *s = b_type(b, b_dtype(x), 0, NULL);
  Build sel = {b->m, region_new(b->m, 2, (Type *[]){s, s}), b->loc};
  Value *ge = b_compare(&sel, "GE", sel.r->args[0], sel.r->args[1]);
  b_return(&sel, 1, &ge);
  Region *regions[] = {sel.r, b_combiner(b, OP_ADD, b_dtype(x))};
  Value *v[] = {x, source, b_scalar(b, b_dtype(x), 0)};
  return &b_op(b, OP_SELECT_AND_SCATTER, 3, v, 1, &x->type, COUNT_OF(a), a, 2, regions)->results[0];
}

/* ---- products -------------------------------------------------------------------------------- */

DotDims b_dot_dims(const Op *op) {
  DotDims d = {0};
  if (op->kind == OP_DOT) {
    d.n_contract = 1;
    d.lhs_contract[0] = op->operands[0]->type->rank - 1;
    return d;
  }
  d.n_batch = read_ints(op, "lhs_batching_dimensions", d.lhs_batch);
  read_ints(op, "rhs_batching_dimensions", d.rhs_batch);
  d.n_contract = read_ints(op, "lhs_contracting_dimensions", d.lhs_contract);
  read_ints(op, "rhs_contracting_dimensions", d.rhs_contract);
  return d;
}

Value *b_dot(Build *b, Value *x, Value *y, const DotDims *d, DType result, Attr *precision) {
  int64_t dims[2 * B_MAX_RANK];
  int n = 0;
  for (int i = 0; i < d->n_batch; i++) dims[n++] = b_dim(x, (int)d->lhs_batch[i]);
  for (int i = 0; i < b_rank(x); i++)
    if (!b_has_dim(d->n_batch, d->lhs_batch, i) && !b_has_dim(d->n_contract, d->lhs_contract, i))
      dims[n++] = b_dim(x, i);
  for (int i = 0; i < b_rank(y); i++)
    if (!b_has_dim(d->n_batch, d->rhs_batch, i) && !b_has_dim(d->n_contract, d->rhs_contract, i))
      dims[n++] = b_dim(y, i);
  NamedAttr a[] = {ints_if_any(b, "lhs_batching_dimensions", d->n_batch, d->lhs_batch),
                   ints_if_any(b, "lhs_contracting_dimensions", d->n_contract, d->lhs_contract),
                   {STR("precision_config"), precision},
                   ints_if_any(b, "rhs_batching_dimensions", d->n_batch, d->rhs_batch),
                   ints_if_any(b, "rhs_contracting_dimensions", d->n_contract, d->rhs_contract)};
  return one(b, OP_DOT_GENERAL, 2, (Value *[]){x, y}, b_type(b, result, n, dims), COUNT_OF(a), a);
}

Value *b_matmul(Build *b, Value *x, Value *y) {
  DotDims d = {.n_contract = 1, .lhs_contract = {b_rank(x) - 1}};
  return b_dot(b, x, y, &d, b_dtype(x), NULL);
}

AttentionDims b_attention_dims(const Op *op) {
  const int64_t *q = op->operands[0]->type->dims, *v = op->operands[2]->type->dims, *band;
  bool banded = op_ints(op, "band", &band) == 2, biased = op_bool(op, "biased", false);
  return (AttentionDims){.b = q[0] * q[1],
                         .h = q[1],
                         .g = q[2],
                         .m = q[3],
                         .n = v[2],
                         .d = q[4],
                         .e = v[3],
                         .lo = banded ? band[0] : INT64_MIN / 2,
                         .hi = banded ? band[1] : INT64_MAX / 2,
                         .scale = op_attr(op, "scale")->f,
                         .fill = op_attr(op, "fill")->f,
                         .bias = biased ? 3 : 0,
                         .mask = op_bool(op, "masked", false) ? 3 + biased : 0};
}

ConvDims b_conv_dims(const Op *op) {
  ConvDims d = {0};
  d.n = MIN(op->operands[0]->type->rank - 2, B_MAX_RANK);
  d.in_batch = op_int(op, "input_batch_dimension", 0);
  d.in_feature = op_int(op, "input_feature_dimension", 0);
  d.k_in = op_int(op, "kernel_input_feature_dimension", 0);
  d.k_out = op_int(op, "kernel_output_feature_dimension", 0);
  d.out_batch = op_int(op, "output_batch_dimension", 0);
  d.out_feature = op_int(op, "output_feature_dimension", 0);
  read_ints(op, "input_spatial_dimensions", d.in_spatial);
  read_ints(op, "kernel_spatial_dimensions", d.k_spatial);
  read_ints(op, "output_spatial_dimensions", d.out_spatial);
  for (int i = 0; i < d.n; i++) d.strides[i] = d.lhs_dilation[i] = d.rhs_dilation[i] = 1;
  read_ints(op, "window_strides", d.strides);
  read_ints(op, "lhs_dilation", d.lhs_dilation);
  read_ints(op, "rhs_dilation", d.rhs_dilation);
  const int64_t *v;
  int n = MIN(op_ints(op, "padding", &v), COUNT_OF(d.padding));
  for (int i = 0; i < n; i++) d.padding[i] = v[i];
  n = MIN(op_ints(op, "window_reversal", &v), COUNT_OF(d.reversal));
  for (int i = 0; i < n; i++) d.reversal[i] = v[i] != 0;
  d.feature_groups = op_int(op, "feature_group_count", 1);
  d.batch_groups = op_int(op, "batch_group_count", 1);
  return d;
}

ConvDims b_conv_nhwc(int64_t stride, int64_t pad_lo, int64_t pad_hi) {
  return (ConvDims){.n = 2,
                    .in_batch = 0,
                    .in_feature = 3,
                    .k_in = 2,
                    .k_out = 3,
                    .out_batch = 0,
                    .out_feature = 3,
                    .in_spatial = {1, 2},
                    .k_spatial = {0, 1},
                    .out_spatial = {1, 2},
                    .strides = {stride, stride},
                    .padding = {pad_lo, pad_hi, pad_lo, pad_hi},
                    .lhs_dilation = {1, 1},
                    .rhs_dilation = {1, 1},
                    .feature_groups = 1,
                    .batch_groups = 1};
}

Value *b_conv(Build *b, Value *x, Value *k, const ConvDims *d, DType result, Attr *precision) {
  int64_t dims[B_MAX_RANK];
  dims[d->out_batch] = b_dim(x, (int)d->in_batch) / d->batch_groups;
  dims[d->out_feature] = b_dim(k, (int)d->k_out);
  bool any_reversed = false;
  for (int i = 0; i < d->n; i++) {
    int64_t size = b_dim(k, (int)d->k_spatial[i]);
    Window w = {&size, &d->strides[i], &d->lhs_dilation[i], &d->rhs_dilation[i],
                &d->padding[2 * i]};
    dims[d->out_spatial[i]] = window_out(b_dim(x, (int)d->in_spatial[i]), &w, 0);
    any_reversed |= d->reversal[i];
  }
  NamedAttr reversal = {0};
  if (any_reversed) {
    int64_t r[B_MAX_RANK];
    for (int i = 0; i < d->n; i++) r[i] = d->reversal[i];
    reversal = (NamedAttr){STR("window_reversal"), attr_ints(b->m, DT_I1, d->n, r)};
  }
  NamedAttr a[] = {int_unless(b, "batch_group_count", d->batch_groups, 1),
                   int_unless(b, "feature_group_count", d->feature_groups, 1),
                   b_int(b, "input_batch_dimension", d->in_batch),
                   b_int(b, "input_feature_dimension", d->in_feature),
                   b_ints(b, "input_spatial_dimensions", d->n, d->in_spatial),
                   b_int(b, "kernel_input_feature_dimension", d->k_in),
                   b_int(b, "kernel_output_feature_dimension", d->k_out),
                   b_ints(b, "kernel_spatial_dimensions", d->n, d->k_spatial),
                   ints_unless(b, "lhs_dilation", d->n, d->lhs_dilation, 1),
                   b_int(b, "output_batch_dimension", d->out_batch),
                   b_int(b, "output_feature_dimension", d->out_feature),
                   b_ints(b, "output_spatial_dimensions", d->n, d->out_spatial),
                   pairs_unless_zero(b, "padding", d->n, d->padding),
                   {STR("precision_config"), precision},
                   ints_unless(b, "rhs_dilation", d->n, d->rhs_dilation, 1),
                   reversal,
                   ints_unless(b, "window_strides", d->n, d->strides, 1)};
  return one(b, OP_CONVOLUTION, 2, (Value *[]){x, k}, b_type(b, result, d->n + 2, dims),
             COUNT_OF(a), a);
}

bool b_conv_form(const Op *op, const ConvDims *d, ConvForm *form, bool *flip) {
  const Type *r = op->operands[1]->type, *o = op_type(op);
  int64_t places = 1, window = 1;
  bool dilated = false, strided = false, reaches = true, any_turned = false, all_turned = true;
  bool apart = d->n > 0, beside = d->n > 0; /* windows that do not overlap; their gradient */
  for (int i = 0; i < d->n; i++) {
    int64_t k = r->dims[d->k_spatial[i]], out = o->dims[d->out_spatial[i]];
    dilated |= d->lhs_dilation[i] > 1;
    strided |= d->strides[i] > 1;
    reaches &= (k - 1) * d->rhs_dilation[i] >= d->padding[2 * i];
    apart &= d->strides[i] > 1 && d->strides[i] >= k;
    beside &= d->rhs_dilation[i] > 1 && d->rhs_dilation[i] >= out;
    places *= out;
    window *= k;
    if (k > 1) any_turned |= d->reversal[i], all_turned &= d->reversal[i];
  }
  bool data = d->batch_groups == 1 && !strided && reaches;
  if (dilated && !data) return false;
  if (dilated) *form = CONV_DATA;
  else if (d->batch_groups > 1 || (d->feature_groups == 1 && !apart && (beside || places < window)))
    *form = CONV_WEIGHTS;
  else *form = any_turned && all_turned && data ? CONV_DATA : CONV_FORWARD;
  *flip = *form == CONV_DATA ? !all_turned : any_turned;
  return true;
}
