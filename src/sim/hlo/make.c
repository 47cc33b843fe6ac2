/* Nodes of the simulator's graph, simplified at the moment they are made: constant splats,
 * broadcasts of broadcasts, identities, common subexpressions, as the first passes of XLA do. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/hlo.h"

int64_t hlo_count(const HNode *n) {
  int64_t c = 1;
  for (int i = 0; i < n->rank; i++) c *= n->d[i];
  return c;
}
double hlo_bits(DType t) {
  if (t == DT_I1) return 8;
  int b = dtype_bits(t);
  return b > 0 ? b : 0;
}

HNode *hlo_node(HGraph *g, HComp *c, HKind kind, OpKind op, const Op *src, DType dt, int rank,
                const int64_t *d, int n_in, HNode *const *in) {
  HNode *n = ARENA_NEW(g->arena, HNode);
  n->id = g->n_nodes++;
  n->kind = kind;
  n->op = op;
  n->src = src;
  n->dt = dt;
  n->rank = rank;
  n->d = rank ? arena_dup(g->arena, d, sizeof *d * (size_t)rank) : NULL;
  n->n_in = n_in;
  n->in = n_in ? arena_dup(g->arena, in, sizeof *in * (size_t)n_in) : NULL;
  n->n_results = 1;
  n->trip = -1;
  n->comp = c;
  n->kernel = -1;
  *vec_push(&c->nodes) = n;
  return n;
}

HNode *hlo_copy(HGraph *g, HComp *c, const HNode *n) {
  HNode *x = hlo_node(g, c, n->kind, n->op, n->src, n->dt, n->rank, n->d, n->n_in, n->in);
  x->index = n->index;
  x->n_dims = n->n_dims, x->dims = n->dims;
  x->lo = n->lo, x->hi = n->hi, x->step = n->step;
  x->splat = n->splat, x->value = n->value;
  return x;
}

HNode *hlo_result(const HNode *loop, int k) {
  for (int i = 0; i < loop->n_users; i++)
    if (loop->users[i]->kind == H_GET && loop->users[i]->index == k) return loop->users[i];
  return NULL;
}

/* State k of a loop gets another type, and the value that it starts from. */
void hlo_retype(HNode *loop, int k, HNode *init) {
  HNode *all[] = {loop->comps[0]->params.v[k], loop->comps[1]->params.v[k], hlo_result(loop, k)};
  for (int i = 0; i < 3; i++)
    if (all[i]) all[i]->dt = init->dt, all[i]->rank = init->rank, all[i]->d = init->d;
  loop->in[k] = init;
  loop->res_dt[k] = init->dt;
  loop->res_rank[k] = init->rank;
  loop->res_d[k] = init->d;
}

int64_t *hlo_ints(HGraph *g, const int64_t *v, int n) {
  return n ? arena_dup(g->arena, v, sizeof *v * (size_t)n) : NULL;
}

/* ---- common subexpressions ------------------------------------------------------------------- */

static void key_of(const HNode *n, Buf *b) {
  b->n = 0;
  buf_printf(b, "%d %d %d|", (int)n->kind, (int)n->op, (int)n->dt);
  for (int i = 0; i < n->rank; i++) buf_printf(b, "%lld,", (long long)n->d[i]);
  buf_byte(b, '|');
  for (int i = 0; i < n->n_in; i++) buf_printf(b, "%d,", n->in[i]->id);
  buf_byte(b, '|');
  for (int i = 0; i < n->n_dims; i++) buf_printf(b, "%lld,", (long long)n->dims[i]);
  if (n->lo)
    for (int i = 0; i < n->rank; i++)
      buf_printf(b, ";%lld,%lld,%lld", (long long)n->lo[i], n->hi ? (long long)n->hi[i] : 0,
                 n->step ? (long long)n->step[i] : 0);
  if (n->kind == H_CONST) buf_printf(b, "c%.17g", n->value);
  buf_printf(b, "i%d", n->index);
  if (n->op == OP_COMPARE && n->src) {
    Str s = op_str(n->src, "comparison_direction");
    buf_printf(b, "d%.*s", STR_ARG(s));
  }
}

HNode *hlo_unique(Maker *b, HNode *n) {
  if (n->kind == H_CONST && !n->splat) return n;
  if (n->kind == H_EWISE && n->op == OP_UNKNOWN) return n;
  Buf k = {0};
  key_of(n, &k);
  Str key = {k.p, k.n};
  HNode *old = map_get(b->cse, key);
  if (old && old->comp == b->comp) {
    /* the node just made is the last of its computation: forget it */
    if (n->comp->nodes.n && n->comp->nodes.v[n->comp->nodes.n - 1] == n) n->comp->nodes.n--;
    buf_free(&k);
    return old;
  }
  map_set(b->cse, key, n);
  buf_free(&k);
  return n;
}

/* ---- making nodes with simplification -------------------------------------------------------- */

HNode *hlo_const(Maker *b, const Op *src, DType dt, int rank, const int64_t *d, double v) {
  HNode *n = hlo_node(b->g, b->comp, H_CONST, OP_CONSTANT, src, dt, rank, d, 0, NULL);
  n->splat = true;
  n->value = v;
  return hlo_unique(b, n);
}

bool hlo_same_shape(const HNode *a, int rank, const int64_t *d) {
  if (a->rank != rank) return false;
  for (int i = 0; i < rank; i++)
    if (a->d[i] != d[i]) return false;
  return true;
}

HNode *hlo_bcast(Maker *b, const Op *src, HNode *x, int rank, const int64_t *d,
                 const int64_t *map) {
  if (x->kind == H_CONST && x->splat) return hlo_const(b, src, x->dt, rank, d, x->value);
  if (hlo_same_shape(x, rank, d)) {
    bool id = true;
    for (int i = 0; i < x->rank; i++) id &= map[i] == i;
    if (id) return x;
  }
  /* drop operand dimensions of size one */
  int64_t keep_d[64], keep_m[64];
  int k = 0;
  bool ones = false;
  if (x->rank > 64) return NULL;
  for (int i = 0; i < x->rank; i++) {
    if (x->d[i] == 1) {
      ones = true;
      continue;
    }
    keep_d[k] = x->d[i];
    keep_m[k++] = map[i];
  }
  if (ones) x = hlo_reshape(b, src, x, k, keep_d), map = keep_m;
  if (x->kind == H_BCAST) { /* compose */
    int64_t m2[64];
    for (int i = 0; i < x->n_dims; i++) m2[i] = map[x->dims[i]];
    return hlo_bcast(b, src, x->in[0], rank, d, m2);
  }
  if (hlo_count(x) == 1 && x->rank == 0) k = 0;
  int64_t cnt = 1;
  for (int i = 0; i < rank; i++) cnt *= d[i];
  if (cnt == hlo_count(x)) {
    bool sorted = true;
    for (int i = 1; i < x->rank; i++) sorted &= map[i] > map[i - 1];
    if (sorted) return hlo_reshape(b, src, x, rank, d);
  }
  HNode *n = hlo_node(b->g, b->comp, H_BCAST, OP_BROADCAST_IN_DIM, src, x->dt, rank, d, 1, &x);
  n->n_dims = x->rank;
  n->dims = hlo_ints(b->g, map, x->rank);
  return hlo_unique(b, n);
}

HNode *hlo_reshape(Maker *b, const Op *src, HNode *x, int rank, const int64_t *d) {
  if (hlo_same_shape(x, rank, d)) return x;
  if (x->kind == H_CONST && x->splat) return hlo_const(b, src, x->dt, rank, d, x->value);
  if (x->kind == H_RESHAPE) return hlo_reshape(b, src, x->in[0], rank, d);
  if (x->kind == H_BCAST && x->in[0]->rank == 0) return hlo_bcast(b, src, x->in[0], rank, d, NULL);
  if (x->kind == H_BCAST) { /* only sizes of one come or go: still a broadcast */
    int64_t pos[64];
    int i = 0, j = 0;
    bool ok = x->rank <= 64 && rank <= 64;
    while (ok && (i < x->rank || j < rank)) {
      if (i < x->rank && j < rank && x->d[i] == d[j]) pos[i++] = j++;
      else if (i < x->rank && x->d[i] == 1) pos[i++] = -1;
      else if (j < rank && d[j] == 1) j++;
      else ok = false;
    }
    int64_t map[64];
    for (int k = 0; ok && k < x->n_dims; k++) {
      map[k] = pos[x->dims[k]];
      if (map[k] < 0) ok = false;
    }
    if (ok) return hlo_bcast(b, src, x->in[0], rank, d, map);
  }
  HNode *n = hlo_node(b->g, b->comp, H_RESHAPE, OP_RESHAPE, src, x->dt, rank, d, 1, &x);
  return hlo_unique(b, n);
}

HNode *hlo_transpose(Maker *b, const Op *src, HNode *x, const int64_t *perm) {
  bool id = true;
  int64_t d[64];
  if (x->rank > 64) return NULL;
  for (int i = 0; i < x->rank; i++) {
    id &= perm[i] == i;
    d[i] = x->d[perm[i]];
  }
  if (id) return x;
  if (x->kind == H_CONST && x->splat) return hlo_const(b, src, x->dt, x->rank, d, x->value);
  if (x->kind == H_TRANSPOSE) {
    int64_t p2[64];
    for (int i = 0; i < x->rank; i++) p2[i] = x->dims[perm[i]];
    return hlo_transpose(b, src, x->in[0], p2);
  }
  /* moving only dimensions of size one is a reshape */
  int last = -1;
  bool moves = false;
  for (int i = 0; i < x->rank; i++)
    if (d[i] != 1) {
      if (perm[i] < last) moves = true;
      last = (int)perm[i];
    }
  if (!moves) return hlo_reshape(b, src, x, x->rank, d);
  HNode *n = hlo_node(b->g, b->comp, H_TRANSPOSE, OP_TRANSPOSE, src, x->dt, x->rank, d, 1, &x);
  n->n_dims = x->rank;
  n->dims = hlo_ints(b->g, perm, x->rank);
  return hlo_unique(b, n);
}

static bool compared(Str how, double x, double y) {
  if (str_is(how, "EQ")) return x == y;
  if (str_is(how, "NE")) return x != y;
  if (str_is(how, "LT")) return x < y;
  if (str_is(how, "LE")) return x <= y;
  return str_is(how, "GT") ? x > y : x >= y;
}

/* An operation on numbers that are known; false: it stays one. */
static bool fold_ewise(OpKind op, const Op *src, DType dt, int n, HNode *const *in, double *v) {
  double x = in[0]->value, y = n > 1 ? in[1]->value : 0;
  switch (op) {
  case OP_ADD: *v = x + y; break;
  case OP_SUBTRACT: *v = x - y; break;
  case OP_MULTIPLY: *v = x * y; break;
  case OP_DIVIDE:
    if (y == 0) return false;
    *v = x / y;
    break;
  case OP_MAXIMUM: *v = x > y ? x : y; break;
  case OP_MINIMUM: *v = x < y ? x : y; break;
  case OP_CLAMP: *v = y < x ? x : y > in[2]->value ? in[2]->value : y; break;
  case OP_NEGATE: *v = -x; break;
  case OP_FLOOR: *v = floor(x); break;
  case OP_CEIL: *v = ceil(x); break;
  case OP_CONVERT: *v = x; break;
  case OP_COMPARE: *v = compared(op_str(src, "comparison_direction"), x, y); break;
  case OP_SELECT: *v = x != 0 ? y : in[2]->value; break;
  default: return false;
  }
  if (dtype_is_int(dt)) *v = trunc(*v);
  return true;
}

/* What is repeated and has no other operand than numbers is computed before it is repeated. */
static HNode *before_repeating(Maker *b, OpKind op, const Op *src, DType dt, int rank,
                               const int64_t *d, int n_in, HNode **in) {
  HNode *x = NULL, *own[4];
  if (op == OP_UNKNOWN || op == OP_COPY || n_in > 4) return NULL;
  for (int i = 0; i < n_in; i++) {
    HNode *v = in[i];
    if (!hlo_same_shape(v, rank, d)) return NULL;
    if (v->kind == H_CONST && v->splat) continue;
    if (v->kind != H_BCAST || (x && v != x)) return NULL;
    x = v;
  }
  if (!x || x->in[0]->rank == 0) return NULL;
  HNode *small = x->in[0];
  for (int i = 0; i < n_in; i++)
    own[i] = in[i] == x ? small
                        : hlo_const(b, in[i]->src, in[i]->dt, small->rank, small->d, in[i]->value);
  small = hlo_ewise(b, op, src, dt, small->rank, small->d, n_in, own);
  return hlo_bcast(b, x->src, small, rank, d, x->dims);
}

HNode *hlo_ewise(Maker *b, OpKind op, const Op *src, DType dt, int rank, const int64_t *d, int n_in,
                 HNode **in) {
  if (op == OP_CONVERT && in[0]->dt == dt) return in[0];
  bool all = n_in > 0;
  double v;
  for (int i = 0; i < n_in; i++) all &= in[i]->kind == H_CONST && in[i]->splat;
  if (all && fold_ewise(op, src, dt, n_in, in, &v)) return hlo_const(b, src, dt, rank, d, v);
  if (op == OP_SELECT && in[0]->kind == H_CONST && in[0]->splat)
    return in[in[0]->value != 0 ? 1 : 2];
  if (n_in == 2) {
    HNode *x = in[0], *y = in[1];
    bool cy = y->kind == H_CONST && y->splat, cx = x->kind == H_CONST && x->splat;
    if ((op == OP_ADD || op == OP_SUBTRACT) && cy && y->value == 0) return x;
    if (op == OP_ADD && cx && x->value == 0) return y;
    if ((op == OP_MULTIPLY || op == OP_DIVIDE) && cy && y->value == 1) return x;
    if (op == OP_MULTIPLY && cx && x->value == 1) return y;
    if (op == OP_MAXIMUM && cy && isinf(y->value) && y->value < 0) return x;
    if (op == OP_MAXIMUM && cx && isinf(x->value) && x->value < 0) return y;
    if (op == OP_MINIMUM && cy && isinf(y->value) && y->value > 0) return x;
  }
  HNode *repeated = before_repeating(b, op, src, dt, rank, d, n_in, in);
  if (repeated) return repeated;
  return hlo_unique(b, hlo_node(b->g, b->comp, H_EWISE, op, src, dt, rank, d, n_in, in));
}

/* What lies within one operand of a concatenation is cut from that. */
HNode *hlo_slice(Maker *b, const Op *src, HNode *x, const int64_t *d, const int64_t *lo,
                 const int64_t *hi, const int64_t *step) {
  int64_t *from = hlo_ints(b->g, lo, x->rank), *to = hlo_ints(b->g, hi, x->rank);
  while (x->kind == H_CONCAT) {
    HNode *part = NULL;
    int64_t at = 0, dim = x->index;
    for (int i = 0; i < x->n_in && !part; i++) {
      int64_t end = at + x->in[i]->d[dim];
      if (from[dim] >= at && to[dim] <= end) part = x->in[i];
      else at = end;
    }
    if (!part) break;
    from[dim] -= at, to[dim] -= at;
    x = part;
  }
  if (x->kind == H_CONST && x->splat) return hlo_const(b, src, x->dt, x->rank, d, x->value);
  if (hlo_same_shape(x, x->rank, d)) return x;
  HNode *n = hlo_node(b->g, b->comp, H_SLICE, OP_SLICE, src, x->dt, x->rank, d, 1, &x);
  n->lo = from;
  n->hi = to;
  n->step = hlo_ints(b->g, step, x->rank);
  for (int i = 0; i < x->rank; i++) /* nothing is left out after one element */
    if (d[i] == 1) n->step[i] = 1, n->hi[i] = n->lo[i] + 1;
  return hlo_unique(b, n);
}

/* A scatter of one number into each row of an array of equal constants is a comparison with the
 * position and a select; libtpu knows that, XLA for GPUs scatters. NULL when it is not one. */
HNode *hlo_one_per_row(Maker *b, const Op *op, int rank, const int64_t *d, DType dt, HNode **in) {
  const int64_t *dims;
  int nb = op_ints(op, "input_batching_dims", &dims);
  if (b->g->scatters || op->n_operands != 3 || rank < 2 || nb != rank - 1 ||
      in[0]->kind != H_CONST || !in[0]->splat)
    return NULL;
  int64_t count = 1, map[64], rows[64];
  if (rank > 64) return NULL;
  for (int i = 0; i < nb; i++) map[i] = dims[i], rows[i] = d[dims[i]], count *= rows[i];
  if (hlo_count(in[1]) != count || hlo_count(in[2]) != count) return NULL;
  HNode *x[2];
  for (int i = 0; i < 2; i++)
    x[i] = hlo_bcast(b, op, hlo_reshape(b, op, in[i + 1], nb, rows), rank, d, map);
  return hlo_unique(b, hlo_node(b->g, b->comp, H_EWISE, OP_SELECT, op, dt, rank, d, 2, x));
}

bool hlo_takes_numbers(const Op *gather) {
  const int64_t *size;
  int rank = gather ? op_ints(gather, "slice_sizes", &size) : 0;
  for (int i = 0; i < rank; i++)
    if (size[i] != 1) return false;
  return rank > 1;
}

/* A gather that takes one position in each row is made one of flat positions: the rows' own numbers
 * are put beside the indices and both become an offset. In a compiler for TPUs these are kernels.
 * Where it takes several numbers of each, row and position are packed into one. */
HNode *hlo_row_offsets(Maker *b, const Op *op, HNode *idx) {
  const int64_t *dims;
  if (op_ints(op, "operand_batching_dims", &dims) < 1 || idx->rank < 2 || idx->rank > 64 ||
      idx->d[idx->rank - 1] != 1)
    return idx;
  int64_t d[64];
  memcpy(d, idx->d, sizeof *d * (size_t)idx->rank);
  HNode *part[2];
  if (idx->rank > 2 && idx->d[idx->rank - 2] > 1 && hlo_takes_numbers(op)) {
    part[0] = hlo_reshape(b, op, idx, idx->rank - 1, d);
    part[1] = hlo_node(b->g, b->comp, H_IOTA, OP_IOTA, op, idx->dt, idx->rank - 1, d, 0, NULL);
    return hlo_ewise(b, OP_OR, op, idx->dt, idx->rank - 1, d, 2, part);
  }
  part[0] = hlo_node(b->g, b->comp, H_EWISE, OP_COPY, op, idx->dt, idx->rank, d, 1, &idx);
  part[1] = hlo_node(b->g, b->comp, H_IOTA, OP_IOTA, op, idx->dt, idx->rank, d, 0, NULL);
  part[0]->apart = part[1]->apart = true;
  d[idx->rank - 1] = 2;
  HNode *both =
      hlo_node(b->g, b->comp, H_CONCAT, OP_CONCATENATE, op, idx->dt, idx->rank, d, 2, part);
  both->index = idx->rank - 1;
  return hlo_node(b->g, b->comp, H_EWISE, OP_ADD, op, idx->dt, idx->rank - 1, d, 1, &both);
}
