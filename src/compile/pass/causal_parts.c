#include "compile/pass/causal_parts.h"

#include <stdlib.h>

#define WORTH 0.8 /* of the scores at most are left */
#define DEEP 16   /* operations between a reduction and who reads it */

/* ---- the group ---- */

static Str key_of(const void *const *p) { return (Str){(const char *)p, sizeof *p}; }

const View *causal_member(const CausalGroup *g, const Value *v) {
  const void *p = v;
  intptr_t at = (intptr_t)map_get(g->places, key_of(&p));
  return at ? &g->members.v[at - 1] : NULL;
}

void causal_add(CausalGroup *g, View x) {
  const void *p = x.v;
  *vec_push(&g->members) = x;
  map_set(g->places, key_of(&p), (void *)(intptr_t)g->members.n);
}

bool causal_is_result(const CausalGroup *g, const Op *op) {
  const void *p = op;
  return map_get(g->results, key_of(&p)) != NULL;
}

void causal_add_result(CausalGroup *g, const Op *op) {
  const void *p = op;
  map_set(g->results, key_of(&p), (void *)p);
}

/* The columns that some of these rows see; false: one of them sees none. */
static bool columns_of(const CausalGroup *g, CausalBlock *k) {
  k->col = g->n_cols;
  k->col_end = 0;
  for (int64_t i = k->row; i < k->row_end; i++) {
    int64_t lo = MAX(0, i + g->band.lo), hi = MIN(g->n_cols, i + g->band.hi);
    if (lo >= hi) return false;
    k->col = MIN(k->col, lo);
    k->col_end = MAX(k->col_end, hi);
  }
  return true;
}

bool causal_divide(CausalGroup *g) {
  double left = 0, all = (double)g->n_rows * (double)g->n_cols;
  int64_t rows = MAX(LEAST_ROWS, (g->n_rows + BLOCKS - 1) / BLOCKS);
  g->n_blocks = 0;
  for (int64_t i = 0; i < g->n_rows; i += rows) {
    CausalBlock *k = &g->blocks[g->n_blocks++];
    *k = (CausalBlock){.row = i, .row_end = MIN(i + rows, g->n_rows)};
    if (!columns_of(g, k)) return false;
    left += (double)(k->row_end - i) * (double)(k->col_end - k->col);
  }
  return left <= WORTH * all;
}

void causal_free(CausalGroup *g) {
  for (int i = 0; i < g->n_blocks; i++) map_free(g->blocks[i].made);
  vec_free(&g->members);
  map_free(g->places);
  map_free(g->results);
}

/* ---- products ---- */

static int place_in(int n, const int64_t *dims, int64_t d) {
  for (int i = 0; i < n; i++)
    if (dims[i] == d) return i;
  return -1;
}

bool causal_product(const CausalGroup *g, const Op *op, CausalProduct *p) {
  DotDims d = b_dot_dims(op);
  const View *l = causal_member(g, op->operands[0]), *r = causal_member(g, op->operands[1]);
  if (!l == !r) return false;
  *p = (CausalProduct){.side = r != NULL, .member = r ? *r : *l};
  const int64_t *batch = p->side ? d.rhs_batch : d.lhs_batch;
  const int64_t *summed = p->side ? d.rhs_contract : d.lhs_contract;
  p->over_rows = place_in(d.n_contract, summed, p->member.rows) >= 0;
  p->over_cols = place_in(d.n_contract, summed, p->member.cols) >= 0;
  return p->over_rows != p->over_cols && place_in(d.n_batch, batch, p->member.rows) < 0 &&
         place_in(d.n_batch, batch, p->member.cols) < 0;
}

/* The other operand's dimension that is summed with dimension `d` of operand `side`. */
static int summed_with(const DotDims *d, int side, int dim) {
  int at = place_in(d->n_contract, side ? d->rhs_contract : d->lhs_contract, dim);
  return at < 0 ? -1 : (int)(side ? d->lhs_contract : d->rhs_contract)[at];
}

static bool is_free(const DotDims *d, int side, int dim) {
  return place_in(d->n_batch, side ? d->rhs_batch : d->lhs_batch, dim) < 0 &&
         place_in(d->n_contract, side ? d->rhs_contract : d->lhs_contract, dim) < 0;
}

/* The result's dimension that free dimension `dim` of operand `side` is. */
static int result_dim(const Op *op, const DotDims *d, int side, int dim) {
  int at = d->n_batch;
  if (side) at += b_rank(op->operands[0]) - d->n_batch - d->n_contract;
  for (int i = 0; i < dim; i++) at += is_free(d, side, i);
  return at;
}

/* The operand's free dimension that the result's dimension `at` is, and which operand's. */
static int operand_dim(const Op *op, const DotDims *d, int at, int *side) {
  for (*side = 0; *side < 2; ++*side)
    for (int i = 0; i < b_rank(op->operands[*side]); i++)
      if (is_free(d, *side, i) && result_dim(op, d, *side, i) == at) return i;
  return -1;
}

/* ---- parts ---- */

static Type *part_type(const CausalGroup *g, const CausalBlock *k, View x) {
  int64_t dims[B_MAX_RANK];
  for (int i = 0; i < x.v->type->rank; i++) dims[i] = x.v->type->dims[i];
  if (x.rows >= 0) dims[x.rows] = k->row_end - k->row;
  if (x.cols >= 0) dims[x.cols] = k->col_end - k->col;
  return b_type(g->b, x.v->type->dtype, x.v->type->rank, dims);
}

static Value *slice(const CausalGroup *g, const CausalBlock *k, View x) {
  if (x.rows < 0 && x.cols < 0) return x.v;
  int64_t begin[B_MAX_RANK] = {0}, end[B_MAX_RANK];
  for (int i = 0; i < x.v->type->rank; i++) end[i] = x.v->type->dims[i];
  if (x.rows >= 0) begin[x.rows] = k->row, end[x.rows] = k->row_end;
  if (x.cols >= 0) begin[x.cols] = k->col, end[x.cols] = k->col_end;
  return b_slice(g->b, x.v, begin, end, NULL);
}

static Value *part(CausalGroup *g, CausalBlock *k, View x);

/* Of a product whose rows and columns are free: what it multiplies stays as it is. */
static Value *part_of_product(CausalGroup *g, CausalBlock *k, View x) {
  const Op *op = x.v->def;
  DotDims d = b_dot_dims(op);
  View sides[2] = {{op->operands[0], -1, -1}, {op->operands[1], -1, -1}};
  int side, dim = operand_dim(op, &d, x.rows, &side);
  if (dim < 0) return slice(g, k, x);
  sides[side].rows = dim;
  dim = operand_dim(op, &d, x.cols, &side);
  if (dim < 0) return slice(g, k, x);
  sides[side].cols = dim;
  return b_dot(g->b, slice(g, k, sides[0]), slice(g, k, sides[1]), &d, b_dtype(x.v),
               op_attr(op, "precision_config"));
}

static Value *part_of_iota(const CausalGroup *g, const CausalBlock *k, View x) {
  int d = (int)op_int(x.v->def, "iota_dimension", 0);
  int64_t first = d == x.rows ? k->row : d == x.cols ? k->col : 0;
  Type *t = part_type(g, k, x);
  Value *y = b_iota(g->b, t, d);
  return first ? b_add(g->b, y, b_full(g->b, t, (double)first)) : y;
}

static Value *part_of_move(CausalGroup *g, CausalBlock *k, View x) {
  const Op *op = x.v->def;
  View y;
  if (!before_move(x, &y)) return slice(g, k, x);
  Value *from = part(g, k, y);
  Type *t = part_type(g, k, x);
  return b_op(g->b, op->kind, 1, &from, 1, &t, op->n_attrs, op->attrs, 0, NULL)->results;
}

static Value *part_of_elements(CausalGroup *g, CausalBlock *k, View x) {
  const Op *op = x.v->def;
  Value *from[4];
  if (op->n_operands > COUNT_OF(from)) return slice(g, k, x);
  for (int i = 0; i < op->n_operands; i++) from[i] = part(g, k, view_operand(x, i));
  Type *t = part_type(g, k, x);
  return b_op(g->b, op->kind, op->n_operands, from, 1, &t, op->n_attrs, op->attrs, 0, NULL)
      ->results;
}

OpKind causal_combines(const Op *op) { return op->regions[0]->first->kind; }

static Value *part_of_reduction(CausalGroup *g, CausalBlock *k, View x) {
  const Op *op = x.v->def;
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  const View *member = causal_member(g, op->operands[0]);
  Value *from = part(g, k, member ? *member : before_reduction(x));
  return b_reduce(g->b, causal_combines(op), from, n, dims);
}

/* Values of rows that are computed of members: known in each block before they are whole. */
static bool is_of_rows(const CausalGroup *g, View x, int deep) {
  const Op *op = x.v->def;
  View y;
  if (!op || op->parent != g->r || x.rows < 0 || deep == 0) return false;
  if (op->kind == OP_REDUCE)
    return causal_is_result(g, op) ||
           (sums_or_maximizes(op) && is_of_rows(g, before_reduction(x), deep - 1));
  if (moves_elements(op)) return before_move(x, &y) && is_of_rows(g, y, deep - 1);
  for (int i = 0; of_elements(op) && i < op->n_operands; i++)
    if (is_of_rows(g, view_operand(x, i), deep - 1)) return true;
  return false;
}

static Value *part_made(CausalGroup *g, CausalBlock *k, View x) {
  const Op *op = x.v->def;
  const void *all = value_splat(x.v);
  Levels l;
  bool square = x.rows >= 0 && x.cols >= 0;
  if (all)
    return b_bcast_scalar(g->b, b_const(g->b, b_type(g->b, b_dtype(x.v), 0, NULL), all),
                          part_type(g, k, x));
  if (!op || op->parent != g->r) return slice(g, k, x);
  if (op->kind == OP_IOTA) return part_of_iota(g, k, x);
  if (op->kind == OP_REDUCE && (square ? causal_member(g, x.v) != NULL : is_of_rows(g, x, DEEP)))
    return part_of_reduction(g, k, x);
  if (square && op->kind == OP_DOT_GENERAL && causal_member(g, x.v))
    return part_of_product(g, k, x);
  if (moves_elements(op)) return part_of_move(g, k, x);
  if (of_elements(op) && (square ? causal_member(g, x.v) || levels_of(x, &l)
                                 : is_of_rows(g, x, DEEP) || levels_of(x, &l)))
    return part_of_elements(g, k, x);
  return slice(g, k, x);
}

static Value *part(CausalGroup *g, CausalBlock *k, View x) {
  if (x.rows < 0 && x.cols < 0) return x.v;
  Str key = {(const char *)&x, sizeof x};
  if (!k->made) k->made = map_new();
  Value *y = map_get(k->made, key);
  if (!y) map_set(k->made, key, y = part_made(g, k, x));
  return y;
}

/* ---- whole results ---- */

static int compare_edges(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The sum of blocks, each of its own columns, which are dimension `dim`. */
static Value *sum_of_columns(CausalGroup *g, Value *const *parts, int dim, const Type *whole) {
  int64_t edges[2 * BLOCKS + 2] = {0, g->n_cols};
  int n = 2, made = 0;
  for (int i = 0; i < g->n_blocks; i++)
    edges[n++] = g->blocks[i].col, edges[n++] = g->blocks[i].col_end;
  qsort(edges, (size_t)n, sizeof *edges, compare_edges);
  Value *columns[2 * BLOCKS + 2];
  for (int e = 0; e + 1 < n; e++) {
    if (edges[e] == edges[e + 1]) continue;
    Value *sum = NULL;
    for (int i = 0; i < g->n_blocks; i++) {
      const CausalBlock *k = &g->blocks[i];
      if (k->col > edges[e] || k->col_end < edges[e + 1]) continue;
      Value *x = b_slice_dim(g->b, parts[i], dim, edges[e] - k->col, edges[e + 1] - k->col);
      sum = sum ? b_add(g->b, sum, x) : x;
    }
    if (!sum) {
      int64_t dims[B_MAX_RANK];
      for (int i = 0; i < whole->rank; i++) dims[i] = whole->dims[i];
      dims[dim] = edges[e + 1] - edges[e];
      sum = b_full(g->b, b_type(g->b, whole->dtype, whole->rank, dims), 0);
    }
    columns[made++] = sum;
  }
  return b_concat(g->b, made, columns, dim);
}

Value *causal_result(CausalGroup *g, const Op *op) {
  Value *parts[BLOCKS];
  if (op->kind == OP_REDUCE) {
    const View *x = causal_member(g, op->operands[0]);
    View rows = {op->results, x->rows - (x->rows > x->cols), -1};
    for (int i = 0; i < g->n_blocks; i++) parts[i] = part(g, &g->blocks[i], rows);
    return b_concat(g->b, g->n_blocks, parts, rows.rows);
  }
  CausalProduct p;
  causal_product(g, op, &p);
  DotDims d = b_dot_dims(op);
  View other = {op->operands[!p.side], -1, -1};
  if (p.over_rows) other.rows = summed_with(&d, p.side, p.member.rows);
  else other.cols = summed_with(&d, p.side, p.member.cols);
  for (int i = 0; i < g->n_blocks; i++) {
    CausalBlock *k = &g->blocks[i];
    Value *x = part(g, k, p.member), *y = slice(g, k, other);
    parts[i] = b_dot(g->b, p.side ? y : x, p.side ? x : y, &d, op_type(op)->dtype,
                     op_attr(op, "precision_config"));
  }
  int dim = result_dim(op, &d, p.side, p.over_rows ? p.member.cols : p.member.rows);
  return p.over_rows ? sum_of_columns(g, parts, dim, op_type(op))
                     : b_concat(g->b, g->n_blocks, parts, dim);
}
