/* Rows looked up in a table that is cut: of few rows in a large table the rows travel, not the table.
 * Each device looks up what it has, for the indices of all that share the table; where the table's rows
 * are cut, one device has each row and the others add zeros. Then the rows go where they are wanted. */
#include "compile/spmd/partition_priv.h"

#include "ir/build.h"

typedef struct Lookup {
  const Op *op;
  int n_rows; /* the table's dimensions that indices count and that are cut */
  int rows[MAX_RANK], number[MAX_RANK]; /* which, and which of an index's numbers counts each */
  int n_numbers;
  int of_table[MAX_RANK];  /* the result's dimension of a table's; -1: counted by indices */
  bool is_batch[MAX_RANK]; /* of the result's: one of the indices' */
  int shared[MAX_RANK]; /* of the result's: the table's that counts the same problems; -1: none */
  int64_t vector;       /* the dimension of indices that holds one number; their rank: none */
} Lookup;

static bool holds(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static int place_of(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return i;
  return -1;
}

static void find_rows(const int64_t *map, int n, const Layout *given, Lookup *l) {
  l->n_numbers = n;
  for (int k = 0; k < n; k++)
    if (given->d[map[k]].n) l->rows[l->n_rows] = (int)map[k], l->number[l->n_rows++] = k;
}

/* Does it take whole rows, or elements, by a number for each dimension that they are counted along? Of tables side by
 * side, from each its own. */
static bool is_lookup(const Op *op, const Layout *given, Lookup *l) {
  const int64_t *offset, *batch, *ids_batch, *map, *sizes, *collapsed;
  const Type *x = op->operands[0]->type, *ids = op->operands[1]->type, *r = op_type(op);
  int no = op_ints(op, "offset_dims", &offset), at = 0,
      nb = op_ints(op, "operand_batching_dims", &batch), n = op_ints(op, "start_index_map", &map);
  op_ints(op, "start_indices_batching_dims", &ids_batch);
  op_ints(op, "slice_sizes", &sizes);
  l->op = op;
  l->vector = op_int(op, "index_vector_dim", 0);
  if (!n || op_ints(op, "collapsed_slice_dims", &collapsed) != n || no != x->rank - n - nb ||
      (l->vector < ids->rank && ids->dims[l->vector] != n))
    return false;
  for (int k = 0; k < n; k++)
    if (!holds(collapsed, n, map[k])) return false;
  find_rows(map, n, given, l);
  for (int d = 0; d < x->rank; d++) {
    l->of_table[d] = -1;
    if (holds(map, n, d) || place_of(batch, nb, d) >= 0) continue;
    l->of_table[d] = (int)offset[at++];
    if (sizes[d] != x->dims[d]) return false;
  }
  for (int d = 0, id = 0; d < r->rank; d++) {
    l->shared[d] = -1;
    l->is_batch[d] = !holds(offset, no, d);
    if (!l->is_batch[d]) continue;
    if (id == l->vector) id++;
    int b = place_of(ids_batch, nb, id++);
    if (b < 0) continue;
    l->shared[d] = (int)batch[b];
    l->of_table[batch[b]] = d;
  }
  return true;
}

/* Indices counted from where this device's rows begin, signed; beyond the table's ends: as a gather has
 * it, the nearest row. */
static Value *own_ids(Spmd *s, Build *b, int64_t n, Value *ids, const Dim *axes) {
  DType t = dtype_class(b_dtype(ids)) == DC_UINT ? DT_I64 : b_dtype(ids);
  ids = b_convert(b, ids, t);
  ids = b_clamp(b, b_scalar_i64(b, t, 0), ids, b_scalar_i64(b, t, n - 1));
  Value *place = b_convert(b, spmd_own_place(s, axes, n / spmd_dim_parts(s, axes)), t);
  return b_sub(b, ids, b_bcast_scalar(b, place, ids->type));
}

/* Are they among the first `own`? */
static Value *in_part(Build *b, Value *ids, int64_t own) {
  Value *zero = b_bcast_scalar(b, b_scalar_i64(b, b_dtype(ids), 0), ids->type),
        *end = b_bcast_scalar(b, b_scalar_i64(b, b_dtype(ids), own), ids->type);
  return b_and(b, b_compare(b, "GE", ids, zero), b_compare(b, "LT", ids, end));
}

/* Rows that are another device's: zeros. */
static Value *mask_rows(Build *b, const Lookup *l, Value *mine, Value *rows) {
  int64_t dims[MAX_RANK];
  int map[MAX_RANK], n = 0;
  for (int d = 0; d < b_rank(rows); d++)
    if (l->is_batch[d]) map[n] = d, dims[n++] = b_dim(rows, d);
  mine = b_bcast_like(b, b_reshape(b, mine, n, dims), rows->type, map);
  return b_select(b, mine, rows, b_full(b, rows->type, 0));
}

/* The indices as they count this device's part of the table; `mine`: which of them do; axes: over which others have
 * the rest. */
static Value *ids_of_part(Spmd *s, Build *b, const Lookup *l, Value *ids, const Layout *table,
                          Value **mine, Dim *axes) {
  const Type *x = l->op->operands[0]->type;
  Value *out = ids;
  for (int k = 0; k < l->n_rows; k++) {
    const Dim *cut = &table->d[l->rows[k]];
    int64_t rows = x->dims[l->rows[k]];
    Value *numbers = spmd_numbers(b, ids, (int)l->vector, l->number[k], l->n_numbers);
    numbers = own_ids(s, b, rows, numbers, cut);
    Value *own = in_part(b, numbers, rows / spmd_dim_parts(s, cut));
    *mine = *mine ? b_and(b, *mine, own) : own;
    out = spmd_with_numbers(b, out, (int)l->vector, l->number[k], l->n_numbers, numbers);
    for (int a = 0; a < cut->n; a++) axes->a[axes->n++] = cut->a[a];
  }
  return out;
}

/* As the table lies, so the rows; where only the rows are to be cut, the table is before it is read. */
static void lay_out(Spmd *s, const Lookup *l, Layout *table, Layout *ids, Layout *has) {
  const Layout *want = spmd_layout_of(s, &l->op->results[0]);
  const Type *x = l->op->operands[0]->type, *r = op_type(l->op);
  for (int d = 0; d < x->rank; d++)
    if (l->of_table[d] >= 0) has->d[l->of_table[d]] = table->d[d];
  for (int d = 0, id = 0; d < r->rank; d++) {
    if (!l->is_batch[d]) continue;
    if (id == l->vector) id++;
    if (l->shared[d] < 0 || !has->d[d].n) has->d[d] = spmd_without(&want->d[d], table, x->rank);
    if (l->shared[d] >= 0) table->d[l->shared[d]] = has->d[d];
    ids->d[id++] = has->d[d];
  }
}

/* What a device is sent of an array for another layout: nothing where that only cuts further. */
static double to_move(Spmd *s, const Type *t, const Layout *from, const Layout *to) {
  if (spmd_only_cuts(from, to, t->rank)) return 0;
  return MAX(spmd_part_of(s, t, from), spmd_part_of(s, t, to) - spmd_part_of(s, t, from));
}

bool spmd_lookup_op(Spmd *s, const Op *op) {
  Lookup l = {0};
  const Type *x = op->operands[0]->type, *r = op_type(op);
  const Layout *given = spmd_layout_of(s, op->operands[0]),
               *want = spmd_layout_of(s, &op->results[0]);
  if (!is_lookup(op, given, &l)) return false;
  int n_axes = 0;
  for (int k = 0; k < l.n_rows; k++) n_axes += given->d[l.rows[k]].n;
  if (n_axes > MAX_AXES) return false;
  Layout table = *given, has = {0}, need = {0}, before = {0};
  table.sum.n = 0;
  lay_out(s, &l, &table, &need, &has);
  int64_t sizes[MAX_RANK];
  const int64_t *was;
  op_ints(op, "slice_sizes", &was);
  for (int d = 0; d < x->rank; d++) {
    sizes[d] = was[d] == x->dims[d] ? was[d] / spmd_dim_parts(s, &table.d[d]) : 1;
    if (l.of_table[d] >= 0) before.d[d] = want->d[l.of_table[d]];
  }
  if (to_move(s, x, given, &before) == 0 ||
      spmd_part_of(s, r, &has) > spmd_part_of(s, x, &before) + spmd_part_of(s, r, want))
    return false; /* what is made is less with the table fetched, or it lies as it is wanted */
  Build b = {.m = s->m, .r = s->at, .loc = s->loc};
  Value *ids = spmd_operand(s, op->operands[1], &need);
  Value *mine = NULL;
  Dim axes = {0};
  Value *in[2] = {spmd_operand(s, op->operands[0], &table),
                  ids_of_part(s, &b, &l, ids, &table, &mine, &axes)};
  Type *out = spmd_local_type(s, op->results[0].type, &has);
  Op *c = spmd_emit(s, OP_GATHER, 2, in, 1, &out, op->n_attrs, op->attrs, 0, NULL);
  op_set_attr(s->m, c, STR("slice_sizes"), attr_ints(s->m, DT_I64, x->rank, sizes));
  Value *rows = &c->results[0];
  if (axes.n) rows = spmd_sum_over(s, mask_rows(&b, &l, mine, rows), &axes, want, &has);
  spmd_set_result(s, op, 0, rows, &has);
  return true;
}
