/* Rows looked up in a table that is cut: of few rows in a large table the rows travel, not the table.
 * Each device looks up what it has, for the indices of all that share the table; where the table's rows
 * are cut, one device has each row and the others add zeros. Then the rows go where they are wanted. */
#include "compile/spmd/partition_priv.h"

#include "ir/build.h"

typedef struct Lookup {
  const Op *op;
  int rows;                /* the table's dimension that indices count */
  int of_window[MAX_RANK]; /* the result's dimension of a table's; -1: rows */
  bool is_batch[MAX_RANK]; /* of the result's */
  int64_t vector;          /* the dimension of indices that holds one number; their rank: none */
} Lookup;

static bool holds(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* Does it take whole rows, by one number each? */
static bool is_lookup(const Op *op, Lookup *l) {
  const int64_t *offset, *batch, *map, *sizes, *collapsed;
  const Type *x = op->operands[0]->type, *ids = op->operands[1]->type, *r = op_type(op);
  int no = op_ints(op, "offset_dims", &offset), at = 0;
  op_ints(op, "slice_sizes", &sizes);
  l->op = op;
  l->vector = op_int(op, "index_vector_dim", 0);
  if (op_ints(op, "operand_batching_dims", &batch) || op_ints(op, "start_index_map", &map) != 1 ||
      op_ints(op, "collapsed_slice_dims", &collapsed) != 1 || collapsed[0] != map[0] ||
      no != x->rank - 1 || (l->vector < ids->rank && ids->dims[l->vector] != 1))
    return false;
  l->rows = (int)map[0];
  for (int d = 0; d < x->rank; d++) {
    l->of_window[d] = d == l->rows ? -1 : (int)offset[at++];
    if (d != l->rows && sizes[d] != x->dims[d]) return false;
  }
  for (int d = 0; d < r->rank; d++) l->is_batch[d] = !holds(offset, no, d);
  return true;
}

static double part_of(Spmd *s, const Type *t, const Layout *l) {
  double n = (double)type_count(t);
  for (int d = 0; d < t->rank; d++) n /= (double)spmd_dim_parts(s, &l->d[d]);
  return n;
}

/* Indices counted from where this device's rows begin, signed; beyond the table's ends: as a gather has
 * it, the nearest row. */
static Value *own_ids(Spmd *s, Build *b, const Lookup *l, Value *ids, const Dim *axes) {
  int64_t n = l->op->operands[0]->type->dims[l->rows];
  DType t = dtype_class(b_dtype(ids)) == DC_UINT ? DT_I64 : b_dtype(ids);
  ids = b_convert(b, ids, t);
  ids = b_clamp(b, b_scalar_i64(b, t, 0), ids, b_scalar_i64(b, t, n - 1));
  Value *place = b_convert(b, spmd_own_place(s, axes, n / spmd_dim_parts(s, axes)), t);
  return b_sub(b, ids, b_bcast_scalar(b, place, ids->type));
}

/* Rows that are another device's: zeros. */
static Value *mask_rows(Build *b, const Lookup *l, Value *ids, int64_t own, Value *rows) {
  Value *zero = b_bcast_scalar(b, b_scalar_i64(b, b_dtype(ids), 0), ids->type),
        *end = b_bcast_scalar(b, b_scalar_i64(b, b_dtype(ids), own), ids->type);
  Value *mine = b_and(b, b_compare(b, "GE", ids, zero), b_compare(b, "LT", ids, end));
  int64_t dims[MAX_RANK];
  int map[MAX_RANK], n = 0;
  for (int d = 0; d < b_rank(rows); d++)
    if (l->is_batch[d]) map[n] = d, dims[n++] = b_dim(rows, d);
  mine = b_bcast_like(b, b_reshape(b, mine, n, dims), rows->type, map);
  return b_select(b, mine, rows, b_full(b, rows->type, 0));
}

bool spmd_lookup_op(Spmd *s, const Op *op) {
  Lookup l = {0};
  if (!is_lookup(op, &l)) return false;
  const Type *x = op->operands[0]->type, *r = op_type(op);
  const Layout *table = spmd_layout_of(s, op->operands[0]),
               *want = spmd_layout_of(s, &op->results[0]);
  Layout has = {0}, need = {0}, before = {0};
  int64_t sizes[MAX_RANK];
  for (int d = 0; d < x->rank; d++) {
    sizes[d] = d == l.rows ? 1 : x->dims[d] / spmd_dim_parts(s, &table->d[d]);
    if (d != l.rows) has.d[l.of_window[d]] = table->d[d], before.d[d] = want->d[l.of_window[d]];
  }
  for (int d = 0, id = 0; d < r->rank; d++) {
    if (!l.is_batch[d]) continue;
    if (id == l.vector) id++;
    need.d[id++] = has.d[d] = spmd_without(&want->d[d], table, x->rank);
  }
  double moved = part_of(s, r, &has), gathered = part_of(s, x, &before) - part_of(s, x, table);
  if (3 * moved > gathered)
    return false; /* the table is the smaller one, or lies as it is wanted */
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *ids = spmd_operand(s, op->operands[1], &need);
  const Dim *axes = &table->d[l.rows];
  if (axes->n) ids = own_ids(s, &b, &l, ids, axes);
  Value *in[2] = {s->local[op->operands[0]->id], ids};
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  Op *c = spmd_emit(s, OP_GATHER, 2, in, 1, &out, op->n_attrs, op->attrs, 0, NULL);
  op_set_attr(s->m, c, STR("slice_sizes"), attr_ints(s->m, DT_I64, x->rank, sizes));
  Value *rows = &c->results[0];
  if (axes->n) {
    rows = mask_rows(&b, &l, ids, x->dims[l.rows] / spmd_dim_parts(s, axes), rows);
    rows = spmd_all_reduce(s, rows, axes, NULL, OP_ADD);
  }
  spmd_set_result(s, op, 0, rows, &has);
  return true;
}
