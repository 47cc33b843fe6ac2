/* Operations that know how to stay cut, by kind; what each needs of its operands' layouts. */
#include <stdlib.h>

#include "compile/spmd/partition_priv.h"

#include "ir/any_order.h"
#include "ir/build.h"

static bool is_splat(const Op *op) { return tensor_is_splat(op_attr(op, "value")->tensor); }

static bool is_full_of(const Op *op, double want) {
  while (op && (op->kind == OP_BROADCAST_IN_DIM || says_sharding(op))) op = op->operands[0]->def;
  const Attr *v = op && op->kind == OP_CONSTANT ? op_attr(op, "value") : NULL;
  if (!v || v->kind != AT_TENSOR || !v->tensor || v->tensor->count < 1 || !is_splat(op))
    return false;
  const Tensor *t = v->tensor;
  DType real = dtype_real_of(t->dtype);
  const char *parts = t->data;
  return dtype_class(real) != DC_BOOL && elem_get_f64(real, parts) == want &&
         (real == t->dtype || elem_get_f64(real, parts + dtype_bytes(real)) == 0);
}

static bool is_zero(const Op *op) { return is_full_of(op, 0); }

static bool only_adds(const Region *r) {
  return r->n_args == 2 && r->first->kind == OP_ADD && r->first->next == r->last;
}

/* ---- layouts of operands ---- */

static Dim joined(const Dim *a, const Dim *b) {
  Dim r = *a;
  for (int i = 0; i < b->n && r.n < MAX_AXES; i++) r.a[r.n++] = b->a[i];
  return r;
}

Layout *spmd_layout_of(Spmd *s, const Value *v) { return &s->layouts[v->id]; }

static bool of_number(const Op *broadcast) { return type_count(broadcast->operands[0]->type) == 1; }

/* A broadcast number, or of zeros that are terms of a sum, is made again rather than exchanged. */
Value *spmd_operand(Spmd *s, Value *old, const Layout *want) {
  const Layout *has = spmd_layout_of(s, old);
  const Op *def = old->def;
  Layout as = *has;
  bool sums = spmd_same_sums(has, want), zero = !sums && is_zero(def), same = sums || zero;
  if (zero) as.sum = want->sum; /* is its own sum */
  for (int d = 0; old->type->kind == TY_TENSOR && d < old->type->rank; d++)
    same = same && spmd_same_axes(&has->d[d], &want->d[d]);
  if (same || !def || def->kind != OP_BROADCAST_IN_DIM || !(zero || of_number(def)) ||
      (!zero && (has->sum.n || want->sum.n)))
    return spmd_reshard(s, s->local[old->id], &as, want);
  const Type *from = def->operands[0]->type;
  const int64_t *map;
  int n = op_ints(def, "broadcast_dimensions", &map);
  Layout need = {0};
  for (int i = 0; i < n; i++)
    if (from->dims[i] == old->type->dims[map[i]]) need.d[i] = want->d[map[i]];
  Value *x = spmd_operand(s, def->operands[0], &need);
  return spmd_emit1(s, OP_BROADCAST_IN_DIM, 1, &x, spmd_local_type(s, old->type, want),
                    def->n_attrs, def->attrs);
}

Dim spmd_without(const Dim *cut, const Layout *used, int rank) {
  Dim r = {0};
  while (r.n < cut->n && !spmd_uses_axis(used, rank, cut->a[r.n])) r.a[r.n] = cut->a[r.n], r.n++;
  return r;
}

static bool layout_has_any(const Layout *l, int rank, const Dim *axes) {
  for (int i = 0; i < axes->n; i++)
    if (spmd_uses_axis(l, rank, axes->a[i])) return true;
  return false;
}

/* What regions use from outside of them; a value that the new program has is defined outside. */
typedef struct Captures {
  VEC(Value *) old, whole;
} Captures;

static void find_captures(Spmd *s, const Region *r, Captures *c) {
  static const Layout none;
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) {
      Value *v = op->operands[i];
      if (v->id < 0 || !s->local[v->id]) continue;
      *vec_push(&c->old) = v;
      *vec_push(&c->whole) = spmd_operand(s, v, &none);
    }
    for (int i = 0; i < op->n_regions; i++) find_captures(s, op->regions[i], c);
  }
}

bool spmd_captures(const Spmd *s, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++)
      if (op->operands[i]->id >= 0 && s->local[op->operands[i]->id]) return true;
    for (int i = 0; i < op->n_regions; i++)
      if (spmd_captures(s, op->regions[i])) return true;
  }
  return false;
}

static void replace_captures(Region *r, const Captures *c) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++)
      for (int k = 0; k < c->old.n; k++)
        if (op->operands[i] == c->old.v[k]) op->operands[i] = c->whole.v[k];
    for (int i = 0; i < op->n_regions; i++) replace_captures(op->regions[i], c);
  }
}

Op *spmd_same_op(Spmd *s, const Op *op, Value *const *in, Type *const *out) {
  Captures captures = {0};
  for (int i = 0; i < op->n_regions; i++) find_captures(s, op->regions[i], &captures);
  Op *c = spmd_emit(s, op->kind, op->n_operands, in, op->n_results, out, op->n_attrs, op->attrs, 0,
                    NULL);
  c->name = op->name;
  if (op->n_regions) {
    Op *copy = op_clone(s->m, op, NULL);
    c->n_regions = copy->n_regions;
    c->regions = copy->regions;
    for (int i = 0; i < c->n_regions; i++) c->regions[i]->parent = c;
    for (int i = 0; i < c->n_regions; i++) replace_captures(c->regions[i], &captures);
    op_remove(c); /* again, so that the regions learn their function */
    op_append(s->at, c);
  }
  vec_free(&captures.old);
  vec_free(&captures.whole);
  return c;
}

void spmd_set_result(Spmd *s, const Op *op, int i, Value *x, const Layout *has) {
  Layout *want = spmd_layout_of(s, &op->results[i]);
  want->sum = spmd_not_cutting(&has->sum, want, op->results[i].type->rank);
  s->local[op->results[i].id] = spmd_reshard(s, x, has, want);
}

/* Cut along the leading dimensions that count independent problems, as the first result is; else
 * whole: without such, each device computes all of it and keeps its part. */
void spmd_batched_op(Spmd *s, const Op *op) {
  Layout cut = {0};
  for (int d = 0, n = batch_dims(op); d < n; d++)
    cut.d[d] = spmd_layout_of(s, &op->results[0])->d[d];
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  for (int k = 0; k < op->n_operands; k++) in[k] = spmd_operand(s, op->operands[k], &cut);
  for (int i = 0; i < op->n_results; i++) out[i] = spmd_local_type(s, op->results[i].type, &cut);
  Op *c = spmd_same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) spmd_set_result(s, op, i, &c->results[i], &cut);
  free(in);
  free(out);
}

/* A process calls with what it has of the operands. */
void spmd_callback_op(Spmd *s, const Op *op) {
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  for (int k = 0; k < op->n_operands; k++) in[k] = s->local[op->operands[k]->id];
  for (int i = 0; i < op->n_results; i++) out[i] = op->results[i].type;
  Op *c = spmd_same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) s->local[op->results[i].id] = &c->results[i];
  free(in);
  free(out);
}

static void fix_ints(Spmd *s, Op *c, const char *name, const int64_t *v, int n) {
  op_set_attr(s->m, c, str_from(name), attr_ints(s->m, DT_I64, n, v));
}

/* Are parts of operand k that have yet to be summed parts of the result? Of a product's, one factor. */
static bool carries_sum(Spmd *s, const Op *op, int k, const Layout *want) {
  switch (op->kind) {
  case OP_ADD:
  case OP_SUBTRACT:
  case OP_NEGATE:
  case OP_REAL:
  case OP_IMAG:
  case OP_BROADCAST_IN_DIM:
  case OP_TRANSPOSE:
  case OP_REVERSE:
  case OP_SLICE:
  case OP_CONCATENATE:
  case OP_PAD: return true;
  case OP_CONVERT:
    return op->operands[0]->type->dtype != DT_I1 && op->results[0].type->dtype != DT_I1;
  case OP_SELECT: return k > 0;
  case OP_DIVIDE:
  case OP_DYNAMIC_SLICE: return k == 0;
  case OP_DYNAMIC_UPDATE_SLICE: return k < 2;
  case OP_MULTIPLY:
    return spmd_same_sums(spmd_layout_of(s, op->operands[k]), want) &&
           (k == 0 || !spmd_same_sums(spmd_layout_of(s, op->operands[0]), want));
  default: return false;
  }
}

/* Of a result that is wanted in parts that are not summed: does an operand have such? */
static bool stays_unsummed(Spmd *s, const Op *op, const Layout *want) {
  for (int k = 0; k < op->n_operands && want->sum.n; k++)
    if (carries_sum(s, op, k, want) && spmd_same_sums(spmd_layout_of(s, op->operands[k]), want))
      return true;
  return false;
}

/* The operation on parts cut as `has`, where result dimension d ties to operand k's dimension map_k[d] (or none). */
static Op *op_cut_as(Spmd *s, const Op *op, const Layout *has,
                     int (*tie)(const Op *op, int k, int d)) {
  const Type *rt = op->results[0].type;
  Value *in[64];
  assert(op->n_operands <= 64);
  for (int k = 0; k < op->n_operands; k++) {
    Layout need = {0};
    if (has->sum.n && carries_sum(s, op, k, has)) need.sum = has->sum;
    for (int d = 0; d < rt->rank; d++) {
      int od = tie(op, k, d);
      if (od >= 0) need.d[od] = has->d[d];
    }
    in[k] = spmd_operand(s, op->operands[k], &need);
  }
  Type *out[64];
  for (int i = 0; i < op->n_results; i++) out[i] = spmd_local_type(s, op->results[i].type, has);
  Op *c = spmd_same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) spmd_set_result(s, op, i, &c->results[i], has);
  return c;
}

/* The tied dimensions stay cut. keep[d]: may result dimension d be cut at all. */
Op *spmd_tied_op(Spmd *s, const Op *op, const bool *keep, int (*tie)(const Op *op, int k, int d)) {
  const Type *rt = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  Layout has = *want;
  if (!stays_unsummed(s, op, want)) has.sum.n = 0;
  for (int d = 0; d < rt->rank; d++)
    if (!keep[d]) has.d[d].n = 0;
  return op_cut_as(s, op, &has, tie);
}

int spmd_tie_same(const Op *op, int k, int d) {
  return op->operands[k]->type->rank == op->results[0].type->rank ? d : -1;
}

int spmd_tie_leading(const Op *op, int k, int d) {
  return d < op->operands[k]->type->rank ? d : -1;
}

static int tie_broadcast(const Op *op, int k, int d) {
  const int64_t *v;
  int n = op_ints(op, "broadcast_dimensions", &v);
  for (int i = 0; i < n; i++)
    if (v[i] == d && op->operands[k]->type->dims[i] == op->results[0].type->dims[d]) return i;
  return -1;
}

/* Bytes that a device must hear of a value to have it in another layout. */
static double travels(Spmd *s, const Type *t, const Layout *from, const Layout *to) {
  if (spmd_only_cuts(from, to, t->rank)) return 0;
  return spmd_part_of(s, t, to) * (double)dtype_bytes(t->dtype);
}

/* Those of an elementwise operation's operands to be cut as `to`. */
static double operands_travel(Spmd *s, const Op *op, const Layout *to) {
  double bytes = 0;
  for (int k = 0; k < op->n_operands; k++) {
    const Value *v = op->operands[k];
    const Op *def = v->def;
    bool seen = v->type->rank != op->results[0].type->rank ||
                (def && def->kind == OP_BROADCAST_IN_DIM && of_number(def));
    for (int q = 0; q < k; q++) seen |= op->operands[q] == v;
    if (!seen) bytes += travels(s, v->type, spmd_layout_of(s, v), to);
  }
  return bytes;
}

static bool any_sums(Spmd *s, const Op *op) {
  bool any = spmd_layout_of(s, &op->results[0])->sum.n > 0;
  for (int k = 0; k < op->n_operands; k++) any |= spmd_layout_of(s, op->operands[k])->sum.n > 0;
  return any;
}

/* An elementwise operation is computed as an operand is cut, and its result is exchanged, where less travels so than
 * if its operands were: several of them, or wider ones. As Shardy inserts reshards. */
bool spmd_elementwise_op(Spmd *s, const Op *op) {
  const Type *t = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]), *best = NULL;
  if (t->kind != TY_TENSOR || any_sums(s, op)) return false;
  double least = operands_travel(s, op, want);
  for (int k = 0; k < op->n_operands; k++) {
    const Layout *as = spmd_layout_of(s, op->operands[k]);
    if (op->operands[k]->type->rank != t->rank) continue;
    double bytes = operands_travel(s, op, as) + travels(s, t, as, want);
    if (bytes < least) least = bytes, best = as;
  }
  if (!best) return false;
  Layout as = *best;
  op_cut_as(s, op, &as, spmd_tie_same);
  return true;
}

/* Equal broadcasts are one, cut as the first of them, as XLA's common subexpressions are. */
void spmd_broadcast_op(Spmd *s, const Op *op, const bool *keep) {
  Buf key = {0};
  const int64_t *dims;
  int n = op_ints(op, "broadcast_dimensions", &dims);
  buf_printf(&key, "%p%p%p", (void *)s->local[op->operands[0]->id], (void *)s->at,
             (void *)op_type(op));
  buf_add(&key, dims, sizeof *dims * (size_t)n);
  Str k = {key.p, key.n};
  const Op *first = of_number(op) ? NULL : map_get(s->broadcasts, k);
  if (first) {
    *spmd_layout_of(s, &op->results[0]) = *spmd_layout_of(s, &first->results[0]);
    s->local[op->results[0].id] = s->local[first->results[0].id];
  } else {
    map_set(s->broadcasts, k, (void *)op);
    spmd_tied_op(s, op, keep, tie_broadcast);
  }
  buf_free(&key);
}

int spmd_tie_transpose(const Op *op, int k, int d) {
  (void)k;
  const int64_t *v;
  op_ints(op, "permutation", &v);
  return (int)v[d];
}

/* ---- single kinds ---- */

/* Numbers that a sum of two of them does not round. */
static bool counts_exactly(DType t, int64_t n) {
  return dtype_is_int(t) || t == DT_F64 || (t == DT_F32 && n <= 1 << 24);
}

/* Along its own dimension each device counts on from where its part begins. */
void spmd_iota_op(Spmd *s, const Op *op) {
  int dim = (int)op_int(op, "iota_dimension", 0);
  const Type *t = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  const Dim *axes = &want->d[dim];
  int64_t parts = spmd_dim_parts(s, axes);
  bool keep[MAX_RANK];
  for (int d = 0; d < MAX_RANK; d++) keep[d] = true;
  keep[dim] = t->dims[dim] % parts == 0 && counts_exactly(t->dtype, t->dims[dim]);
  Op *c = spmd_tied_op(s, op, keep, spmd_tie_same);
  if (parts == 1 || !keep[dim]) return;
  Value *start = spmd_own_place(s, axes, t->dims[dim] / parts);
  start = spmd_emit1(s, OP_CONVERT, 1, &start, type_tensor(s->m, t->dtype, 0, NULL), 0, NULL);
  NamedAttr none = spmd_named("broadcast_dimensions", attr_ints(s->m, DT_I64, 0, NULL));
  Value *both[2] = {&c->results[0],
                    spmd_emit1(s, OP_BROADCAST_IN_DIM, 1, &start, c->results[0].type, 1, &none)};
  s->local[op->results[0].id] = spmd_emit1(s, OP_ADD, 2, both, c->results[0].type, 0, NULL);
}

void spmd_constant_op(Spmd *s, const Op *op) {
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  Type *t = spmd_local_type(s, op->results[0].type, want);
  spmd_layout_of(s, &op->results[0])->sum.n = 0;
  if (t == op->results[0].type || !is_splat(op)) {
    spmd_batched_op(s, op);
    return;
  }
  Tensor *x;
  err_free(tensor_splat(t->dtype, t->rank, t->dims, op_attr(op, "value")->tensor->data,
                        &x)); /* fails for shapes that the whole has not */
  NamedAttr a = spmd_named("value", attr_tensor(s->m, x, t->quant));
  s->local[op->results[0].id] = spmd_emit1(s, OP_CONSTANT, 0, NULL, t, 1, &a);
}

/* Dimensions that must be whole, of an operand and a result that are cut there alike: the cut goes to another dimension
 * for the time being, by an exchange of all with all, as XLA has it for sorts and for what is joined; of slices permutes are made. */
static bool cut_elsewhere(Spmd *s, const Op *op, const bool *keep, Layout *has) {
  const Layout *x = spmd_layout_of(s, op->operands[0]), *want = spmd_layout_of(s, &op->results[0]);
  const Type *t = op->operands[0]->type, *r = op->results[0].type;
  bool any = false;
  for (int d = 0; d < r->rank && t->rank == r->rank && !any_sums(s, op); d++) {
    const Dim *cut = &want->d[d];
    int64_t parts = spmd_dim_parts(s, cut);
    if (keep[d] || parts == 1 || !spmd_same_axes(cut, &x->d[d])) continue;
    for (int e = 0; e < r->rank; e++) {
      Dim *to = &has->d[e];
      if (!keep[e] || !spmd_same_axes(to, &x->d[e]) || to->n + cut->n > MAX_AXES ||
          t->dims[e] % (spmd_dim_parts(s, to) * parts))
        continue;
      *to = joined(to, cut);
      any = true;
      break;
    }
  }
  return any;
}

void spmd_moved_op(Spmd *s, const Op *op) {
  bool keep[MAX_RANK];
  const Type *x = op->operands[0]->type, *r = op->results[0].type;
  for (int d = 0; d < r->rank; d++) keep[d] = x->rank == r->rank && x->dims[d] == r->dims[d];
  const int64_t *v;
  int64_t out[MAX_RANK];
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
  Layout has = *spmd_layout_of(s, &op->results[0]);
  for (int d = 0; d < r->rank; d++)
    if (!keep[d]) has.d[d].n = 0;
  bool moved = op->kind != OP_SLICE && op->kind != OP_DYNAMIC_SLICE && op->kind != OP_PAD &&
               cut_elsewhere(s, op, keep, &has);
  has.sum.n = 0;
  Op *c = moved ? op_cut_as(s, op, &has, spmd_tie_same) : spmd_tied_op(s, op, keep, spmd_tie_same);
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
void spmd_update_slice_op(Spmd *s, const Op *op) {
  bool keep[MAX_RANK];
  const Type *x = op->operands[0]->type, *u = op->operands[1]->type;
  for (int d = 0; d < x->rank; d++) keep[d] = x->dims[d] == u->dims[d];
  spmd_tied_op(s, op, keep, spmd_tie_same);
}

/* The major dimension of each group of equal products may be cut when its parts divide the major
 * dimension of the other side. */
void spmd_reshape_op(Spmd *s, const Op *op) {
  const Type *a = op->operands[0]->type, *b = op->results[0].type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  Layout need = {0}, has = {0};
  int i0, j0, i = 0, j = 0;
  while (reshape_group(a, b, &i, &j, &i0, &j0))
    if (a->dims[i0] % spmd_dim_parts(s, &want->d[j0]) == 0) need.d[i0] = has.d[j0] = want->d[j0];
  if (spmd_same_sums(spmd_layout_of(s, op->operands[0]), want)) need.sum = has.sum = want->sum;
  Value *x = spmd_operand(s, op->operands[0], &need);
  x = spmd_emit1(s, OP_RESHAPE, 1, &x, spmd_local_type(s, op->results[0].type, &has), 0, NULL);
  spmd_set_result(s, op, 0, x, &has);
}

/* May each device begin with the initial value? A sum's only one does (its others with zeros); of what gives the same
 * when it counts again, and of others that begin with what changes nothing, all do. */
static bool may_begin_often(const Op *op) {
  return op->regions[0]->first->kind != OP_MULTIPLY || is_full_of(op->operands[1]->def, 1);
}

/* Of several arrays reduced together: does the body only pick, as that of an argmax? */
static bool only_picks(const Region *r) {
  for (const Op *op = r->first; op; op = op->next) switch (op->kind) {
    case OP_COMPARE:
    case OP_SELECT:
    case OP_AND:
    case OP_OR:
    case OP_NOT:
    case OP_XOR:
    case OP_MAXIMUM:
    case OP_MINIMUM:
    case OP_RETURN: break;
    default: return false;
    }
  return true;
}

/* May parts be reduced, and then what came of them? */
static bool reduces_in_parts(const Op *op) {
  if (op->n_operands > 2) return only_picks(op->regions[0]);
  return op->n_operands == 2 && may_begin_often(op) && region_any_order(op->regions[0]);
}

/* How a reduction needs its operands; where one is reduced, dimensions that go stay cut if the axes are free: those
 * axes, over which the devices' results are still to be combined. */
static Dim reduced_cuts(Spmd *s, const Op *op, Layout *need) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims), at = 0, rank = op->operands[0]->type->rank;
  const Layout *want = spmd_layout_of(s, &op->results[0]),
               *own = spmd_layout_of(s, op->operands[0]);
  Dim cuts = {0};
  for (int d = 0; d < rank; d++)
    if (!b_has_dim(n, dims, d)) need->d[d] = want->d[at++];
  bool splits = reduces_in_parts(op);
  for (int d = 0; d < rank && splits; d++)
    if (b_has_dim(n, dims, d) && own->d[d].n && !layout_has_any(need, rank, &own->d[d]) &&
        cuts.n + own->d[d].n <= MAX_AXES) {
      need->d[d] = own->d[d];
      cuts = joined(&cuts, &own->d[d]);
    }
  return cuts;
}

/* What devices along the axes made of their parts, in their order, reduced once more. */
static void reduce_again(Spmd *s, const Op *op, const Dim *axes, Value *const *initial, Value **r) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *in[64];
  Type *out[64];
  for (int i = 0; i < op->n_results; i++) {
    int64_t dims[MAX_RANK + 1] = {1};
    for (int d = 0; d < b_rank(r[i]); d++) dims[d + 1] = b_dim(r[i], d);
    in[i] = spmd_all_gather(s, b_reshape(&b, r[i], b_rank(r[i]) + 1, dims), 0, axes);
    in[op->n_results + i] = initial[i];
    out[i] = r[i]->type;
  }
  Op *c = spmd_same_op(s, op, in, out);
  fix_ints(s, c, "dimensions", (int64_t[]){0}, 1);
  for (int i = 0; i < op->n_results; i++) r[i] = &c->results[i];
}

void spmd_reduce_op(Spmd *s, const Op *op) {
  int half = op->n_operands / 2;
  const Layout *want = spmd_layout_of(s, &op->results[0]),
               *own = spmd_layout_of(s, op->operands[0]);
  Layout need = {0}, initial = {0}, has = *want;
  Dim summed = reduced_cuts(s, op, &need);
  Value *in[64];
  Type *out[64];
  if (op->n_operands > 64) {
    spmd_batched_op(s, op);
    return;
  }
  has.sum.n = 0;
  if (half == 1 && only_adds(op->regions[0])) {
    need.sum = spmd_not_cutting(&own->sum, &need, op->operands[0]->type->rank);
    initial.sum = joined(&need.sum, &summed);
    has.sum = spmd_axes_in(&want->sum, &initial.sum, true);
    summed = spmd_axes_in(&initial.sum, &has.sum, false);
  }
  for (int k = 0; k < op->n_operands; k++)
    in[k] = spmd_operand(s, op->operands[k], k < half ? &need : &initial);
  for (int i = 0; i < op->n_results; i++) out[i] = spmd_local_type(s, op->results[i].type, &has);
  Op *c = spmd_same_op(s, op, in, out);
  Value *r[64];
  for (int i = 0; i < op->n_results; i++) r[i] = &c->results[i];
  if (summed.n && half == 1) r[0] = spmd_all_reduce(s, r[0], &summed, op->regions[0], OP_UNKNOWN);
  if (summed.n && half > 1) reduce_again(s, op, &summed, in + half, r);
  for (int i = 0; i < op->n_results; i++) spmd_set_result(s, op, i, r[i], &has);
}

static int place_in(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return i;
  return -1;
}

/* Cut indices: each device looks up its own rows, in a whole table or, along batching dimensions,
 * in its own part of it. What slices take in full may be cut too. */
void spmd_gather_op(Spmd *s, const Op *op) {
  const int64_t *offset, *batch, *ids_batch, *collapsed, *sizes;
  int no = op_ints(op, "offset_dims", &offset), nb = op_ints(op, "operand_batching_dims", &batch),
      nc = op_ints(op, "collapsed_slice_dims", &collapsed),
      n_sizes = op_ints(op, "slice_sizes", &sizes);
  op_ints(op, "start_indices_batching_dims", &ids_batch);
  int64_t vector = op_int(op, "index_vector_dim", 0), local[MAX_RANK];
  const Type *x = op->operands[0]->type;
  const Layout *want = spmd_layout_of(s, &op->results[0]);
  Layout rows = {0}, need = {0}, has = {0};
  int id = 0, at = 0;
  for (int d = 0; d < op->results[0].type->rank; d++) {
    if (b_has_dim(no, offset, d)) continue;
    if (id == vector) id++;
    int b = place_in(ids_batch, nb, id);
    if (b >= 0) rows.d[batch[b]] = want->d[d];
    need.d[id++] = has.d[d] = want->d[d];
  }
  memcpy(local, sizes, sizeof *sizes * (size_t)n_sizes);
  for (int d = 0; d < x->rank; d++) {
    if (b_has_dim(nc, collapsed, d) || b_has_dim(nb, batch, d)) continue;
    int r = (int)offset[at++];
    if (sizes[d] != x->dims[d]) continue;
    rows.d[d] = has.d[r] = want->d[r];
    local[d] = sizes[d] / spmd_dim_parts(s, &want->d[r]);
  }
  Value *in[2] = {spmd_operand(s, op->operands[0], &rows), spmd_operand(s, op->operands[1], &need)};
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  Op *c = spmd_same_op(s, op, in, &out);
  fix_ints(s, c, "slice_sizes", local, n_sizes);
  spmd_set_result(s, op, 0, &c->results[0], &has);
}

Value *spmd_numbers(Build *b, Value *ids, int dim, int k, int n) {
  return n > 1 ? b_slice_dim(b, ids, dim, k, k + 1) : ids;
}

Value *spmd_with_numbers(Build *b, Value *ids, int dim, int k, int n, Value *numbers) {
  if (n == 1) return numbers;
  Value *parts[3];
  int at = 0;
  ids = b_convert(b, ids, b_dtype(numbers));
  if (k > 0) parts[at++] = b_slice_dim(b, ids, dim, 0, k);
  parts[at++] = numbers;
  if (k < n - 1) parts[at++] = b_slice_dim(b, ids, dim, k + 1, n);
  return b_concat(b, at, parts, dim);
}

/* Of a scatter by a number for each dimension that places are counted along: the one that is cut. */
typedef struct Rows {
  int dim; /* -1: another scatter, or several are cut */
  int number, n_numbers;
} Rows;

static Rows rows_of(const Op *op, const Layout *want, const int64_t *inserted, int n_inserted) {
  const int64_t *map;
  Rows r = {-1, 0, op_ints(op, "scatter_dims_to_operand_dims", &map)};
  int cut = 0;
  for (int k = 0; k < r.n_numbers; k++) {
    if (!b_has_dim(n_inserted, inserted, map[k])) return (Rows){.dim = -1};
    if (want->d[map[k]].n) r.number = k, cut++;
  }
  if (r.n_numbers == n_inserted && cut <= 1 && n_inserted) r.dim = (int)map[r.number];
  return r;
}

/* Indices of a scatter into rows that are cut, from where this device's rows begin; what is beyond them is
 * another device's, and a scatter leaves it out. */
static Value *scatter_ids(Spmd *s, const Op *op, Value *ids, const Dim *axes, Rows r) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  DType t = dtype_class(b_dtype(ids)) == DC_UINT ? DT_I64 : b_dtype(ids);
  int vector = (int)op_int(op, "index_vector_dim", 0);
  int64_t rows = op->operands[0]->type->dims[r.dim];
  Value *own = b_convert(&b, spmd_numbers(&b, ids, vector, r.number, r.n_numbers), t);
  Value *place = b_convert(&b, spmd_own_place(s, axes, rows / spmd_dim_parts(s, axes)), t);
  own = b_sub(&b, own, b_bcast_scalar(&b, place, own->type));
  return spmd_with_numbers(&b, ids, vector, r.number, r.n_numbers, own);
}

static Value *zeros(Spmd *s, Type *t, const Layout *has) {
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  return b_full(&b, spmd_local_type(s, t, has), 0);
}

/* How a table's rows are cut while updates are added to them, where updates are cut by an axis that cuts the rows,
 * too: as the result's, with all updates fetched, or not, with all rows on each device, whichever is less to hold,
 * as XLA weighs it. */
static Dim rows_cut(Spmd *s, const Type *x, const Type *u, const Layout *want, const Layout *given,
                    int rows) {
  double table = spmd_part_of(s, x, want), updates = spmd_part_of(s, u, given), shared = 1;
  Layout by_rows = {.d = {want->d[rows]}};
  for (int d = 0; d < u->rank; d++)
    for (int k = 0; k < given->d[d].n; k++) {
      Dim axis = {.n = 1, .a = {given->d[d].a[k]}};
      if (spmd_uses_axis(&by_rows, 1, axis.a[0])) shared *= (double)spmd_dim_parts(s, &axis);
    }
  if (table + updates * shared <= table * shared + updates) return want->d[rows];
  Dim left = {0};
  for (int k = 0; k < want->d[rows].n; k++)
    if (!spmd_uses_axis(given, u->rank, want->d[rows].a[k])) left.a[left.n++] = want->d[rows].a[k];
    else break; /* the sum is scattered along the rest */
  return left;
}

/* Cut along batching dimensions and along windows that are updated in full. Sums, the gradients of
 * tables, are cut along the updates as well: each device adds its own, the first one to what was
 * there, then all add theirs together. Any scatter is cut along rows, of which each device takes its own. */
void spmd_scatter_op(Spmd *s, const Op *op) {
  const int64_t *window, *inserted, *batch, *ids_batch;
  int n = op->n_results, nw = op_ints(op, "update_window_dims", &window),
      ni = op_ints(op, "inserted_window_dims", &inserted),
      nb = op_ints(op, "input_batching_dims", &batch), at = 0, id = 0;
  op_ints(op, "scatter_indices_batching_dims", &ids_batch);
  int64_t vector = op_int(op, "index_vector_dim", 0);
  const Type *x = op->operands[0]->type, *u = op->operands[n + 1]->type;
  const Layout *want = spmd_layout_of(s, &op->results[0]),
               *given = spmd_layout_of(s, op->operands[n + 1]);
  Layout has = {0}, ids = {0}, update = {0};
  Dim summed = {0};
  for (int d = 0; d < x->rank; d++) {
    if (b_has_dim(ni, inserted, d) || b_has_dim(nb, batch, d)) continue;
    int w = (int)window[at++];
    if (u->dims[w] == x->dims[d]) update.d[w] = has.d[d] = want->d[d];
  }
  bool sums = n == 1 && only_adds(op->regions[0]), zero = is_zero(op->operands[0]->def);
  Rows rows = rows_of(op, want, inserted, ni);
  if (rows.dim >= 0)
    has.d[rows.dim] = sums ? rows_cut(s, x, u, want, given, rows.dim) : want->d[rows.dim];
  Dim own[MAX_RANK];
  for (int d = 0; d < u->rank; d++) {
    if (b_has_dim(nw, window, d)) continue;
    if (id == vector) id++;
    int b = place_in(ids_batch, nb, id);
    own[d] = spmd_without(&given->d[d], &has, x->rank);
    const Dim *cut = b >= 0 ? &want->d[batch[b]] : &own[d];
    if (b >= 0) has.d[batch[b]] = *cut;
    else if (!sums || summed.n + cut->n > MAX_AXES) cut = NULL;
    if (cut) update.d[d] = ids.d[id] = *cut;
    for (int k = 0; cut && b < 0 && k < cut->n; k++) summed.a[summed.n++] = cut->a[k];
    id++;
  }
  Layout base = has;
  base.sum = summed;
  has.sum = spmd_axes_in(&want->sum, &summed, true); /* those wait */
  summed = spmd_axes_in(&summed, &has.sum, false);
  Value *in[64];
  Type *out[64];
  for (int k = 0; k < n; k++) {
    in[k] = sums && zero ? zeros(s, op->operands[k]->type, &has)
                         : spmd_operand(s, op->operands[k], &base);
    in[n + 1 + k] = spmd_operand(s, op->operands[n + 1 + k], &update);
    out[k] = spmd_local_type(s, op->results[k].type, &has);
  }
  in[n] = spmd_operand(s, op->operands[n], &ids);
  if (rows.dim >= 0 && has.d[rows.dim].n) in[n] = scatter_ids(s, op, in[n], &has.d[rows.dim], rows);
  Op *c = spmd_same_op(s, op, in, out);
  for (int k = 0; k < n; k++) {
    Value *r = &c->results[k];
    if (summed.n) r = spmd_sum_over(s, r, &summed, want, &has); /* n is 1 */
    spmd_set_result(s, op, k, r, &has);
  }
}

/* Stays: what JAX recomputes behind one must not be merged with what came before it. */
void spmd_barrier_op(Spmd *s, const Op *op) {
  Value **in = xmalloc(sizeof *in * (size_t)(op->n_operands + 1));
  Type **out = xmalloc(sizeof *out * (size_t)(op->n_results + 1));
  for (int i = 0; i < op->n_results; i++) {
    in[i] = spmd_operand(s, op->operands[i], spmd_layout_of(s, &op->results[i]));
    out[i] = in[i]->type;
  }
  Op *c = spmd_same_op(s, op, in, out);
  for (int i = 0; i < op->n_results; i++) s->local[op->results[i].id] = &c->results[i];
  free(in);
  free(out);
}
