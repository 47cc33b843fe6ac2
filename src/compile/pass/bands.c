/* pass_bands: scores of which each row sees only a band of columns, as in causal attention and sliding
 * windows, are computed in blocks of rows, each with the columns that one of its rows sees:
 *
 *   softmax(select(j <= i, q k', -big)) v
 *     = concatenate over blocks of rows: softmax(select(j <= i, q[rows] k[0 .. end)', -big)) v[0 .. end)
 *
 * What is masked has no weight: its exponential is zero. So it is left out where the mask is known here,
 * every row sees something, and nobody else wants the scores (a gradient does). */
#include "compile/pass/band_masks.h"

#define LEAST_ROWS 128 /* of a block */
#define BLOCKS 8       /* at most: each has kernels of its own */
#define WORTH 0.8      /* of the scores at most are left */
#define BIG 1e9        /* below -BIG a score counts as masked */

typedef struct Scores {
  Build *b;
  const Region *r;
  int64_t n_rows, n_cols;
  Band band;
  const Op *max, *sum;                /* of rows */
  int64_t row, row_end, col, col_end; /* of a block */
  Map *made;                          /* View -> its part in the block */
} Scores;

/* ---- scores and weights ---- */

/* Wanted only so many times, in one place: asked last, as all of the region is searched. */
static bool used(const Scores *s, const Value *v, int most) {
  return v->def && v->def->parent == s->r && region_uses(s->r, v) <= most;
}

static bool is_here(const Scores *s, View x) { return x.v->def && x.v->def->parent == s->r; }

/* select(mask, seen, -big), or the mask's complement and the other way around. */
static bool masked_select(View x, View *seen, Band *band) {
  const Op *op = x.v->def;
  Levels l;
  if (!op || op->kind != OP_SELECT || !of_elements(op)) return false;
  for (int masked = 1; masked <= 2; masked++) {
    if (!levels_of(view_operand(x, masked), &l) || !(MAX(l.in, l.out) <= -BIG)) continue;
    *seen = view_operand(x, 3 - masked);
    return band_of(view_operand(x, 0), masked == 1, band);
  }
  return false;
}

/* seen + (0 within a band, else -big) */
static bool masked_sum(View x, View *seen, Band *band) {
  const Op *op = x.v->def;
  Levels l;
  if ((op->kind != OP_ADD && op->kind != OP_SUBTRACT) || !of_elements(op)) return false;
  for (int bias = 1; bias >= 0; bias--) {
    if (!levels_of(view_operand(x, bias), &l)) continue;
    if (op->kind == OP_SUBTRACT && bias == 1) l.in = -l.in, l.out = -l.out;
    *seen = view_operand(x, !bias);
    *band = l.band;
    return l.in == 0 && l.out <= -BIG;
  }
  return false;
}

/* Nobody else wants the scores, up to the product that they come from. */
static bool all_once(const Scores *s, View x) {
  Levels l;
  while (is_here(s, x) && used(s, x.v, 1)) {
    const Op *op = x.v->def;
    View y = {op->n_operands ? op->operands[0] : NULL, -1, -1};
    if (moves_elements(op)) before_move(x, &y);
    else if (!of_elements(op)) return true;
    else y = view_operand(x, op->n_operands > 1 && levels_of(view_operand(x, 0), &l));
    x = y;
  }
  return !is_here(s, x);
}

/* Scores that are very small where they are not seen. */
static bool is_masked(Scores *s, View x) {
  const Op *op = x.v->def;
  View y;
  if (!is_here(s, x)) return false;
  if (moves_elements(op)) return before_move(x, &y) && is_masked(s, y) && used(s, x.v, 2);
  if (op->kind == OP_CONVERT && dtype_is_float(op->operands[0]->type->dtype))
    return is_masked(s, view_operand(x, 0)) && used(s, x.v, 2);
  return (masked_select(x, &y, &s->band) || masked_sum(x, &y, &s->band)) && used(s, x.v, 2) &&
         all_once(s, y);
}

/* The reduction of x's rows, once for each of its columns; NULL: it is something else. */
static const Op *of_rows(const Value *v, View x, OpKind kind) {
  const Op *op = v->def;
  while (op && op->kind != OP_REDUCE) {
    const Value *from = op->n_operands ? op->operands[0] : NULL;
    if (op->kind == OP_MAXIMUM && value_splat(from)) from = op->operands[1];
    else if (op->kind == OP_MAXIMUM && !value_splat(op->operands[1])) return NULL;
    else if (op->kind != OP_MAXIMUM && op->kind != OP_CONVERT && !moves_elements(op)) return NULL;
    op = from->def;
  }
  const int64_t *dims;
  if (!op || op->n_operands != 2 || x.cols < 0 || op_ints(op, "dimensions", &dims) != 1 ||
      dims[0] != x.cols || op->operands[0] != x.v)
    return NULL;
  const Op *first = op->regions[0]->first;
  return first->kind == kind && first->next == region_terminator(op->regions[0]) ? op : NULL;
}

/* Weights: zero where the scores are not seen. */
static bool is_weight(Scores *s, View x, int uses) {
  const Op *op = x.v->def;
  View y;
  if (!is_here(s, x) || !dtype_is_float(x.v->type->dtype)) return false;
  if (moves_elements(op))
    return before_move(x, &y) && y.rows >= 0 && y.cols >= 0 && is_weight(s, y, 1) &&
           used(s, x.v, uses);
  if (!of_elements(op)) return false;
  y = view_operand(x, 0);
  if (op->kind == OP_CONVERT) return is_weight(s, y, 1) && used(s, x.v, uses);
  if (op->kind == OP_DIVIDE) {
    s->sum = of_rows(op->operands[1], y, OP_ADD);
    return s->sum && is_weight(s, y, 2) && used(s, x.v, uses);
  }
  const Op *minus = op->kind == OP_EXPONENTIAL ? y.v->def : NULL;
  if (!minus || minus->kind != OP_SUBTRACT) return false;
  View scores = view_operand(y, 0);
  s->max = of_rows(minus->operands[1], scores, OP_MAXIMUM);
  return s->max && is_masked(s, scores) && used(s, y.v, 1) && used(s, x.v, uses);
}

/* ---- blocks ---- */

static Type *part_type(const Scores *s, View x) {
  int64_t dims[B_MAX_RANK];
  for (int i = 0; i < x.v->type->rank; i++) dims[i] = x.v->type->dims[i];
  if (x.rows >= 0) dims[x.rows] = s->row_end - s->row;
  if (x.cols >= 0) dims[x.cols] = s->col_end - s->col;
  return b_type(s->b, x.v->type->dtype, x.v->type->rank, dims);
}

static Value *slice(const Scores *s, View x) {
  if (x.rows < 0 && x.cols < 0) return x.v;
  int64_t begin[B_MAX_RANK] = {0}, end[B_MAX_RANK];
  for (int i = 0; i < x.v->type->rank; i++) end[i] = x.v->type->dims[i];
  if (x.rows >= 0) begin[x.rows] = s->row, end[x.rows] = s->row_end;
  if (x.cols >= 0) begin[x.cols] = s->col, end[x.cols] = s->col_end;
  return b_slice(s->b, x.v, begin, end, NULL);
}

/* The place of a result's dimension among those of an operand that are neither of the others. */
static int free_dim(int64_t place, int n, const int64_t *batch, int n_contract,
                    const int64_t *contract, int rank) {
  for (int d = 0; d < rank; d++) {
    bool taken = false;
    for (int i = 0; i < n; i++) taken |= batch[i] == d;
    for (int i = 0; i < n_contract; i++) taken |= contract[i] == d;
    if (!taken && place-- == 0) return d;
  }
  return -1;
}

/* Of a product whose rows and columns are free dimensions: what it multiplies stays as it is. */
static Value *part_of_product(const Scores *s, View x) {
  const Op *op = x.v->def;
  DotDims d = b_dot_dims(op);
  View side[2] = {{op->operands[0], -1, -1}, {op->operands[1], -1, -1}};
  int left = b_rank(side[0].v) - d.n_batch - d.n_contract;
  for (int k = 0; k < 2; k++) {
    int at = (k ? x.cols : x.rows) - d.n_batch, right = at >= left;
    if (x.cols < 0 && k) continue;
    if (x.rows < 0 && !k) continue;
    if (at < 0) return slice(s, x);
    int dim =
        free_dim(right ? at - left : at, d.n_batch, right ? d.rhs_batch : d.lhs_batch, d.n_contract,
                 right ? d.rhs_contract : d.lhs_contract, b_rank(side[right].v));
    *(k ? &side[right].cols : &side[right].rows) = dim;
  }
  return b_dot(s->b, slice(s, side[0]), slice(s, side[1]), &d, b_dtype(x.v),
               op_attr(op, "precision_config"));
}

static Value *part(Scores *s, View x);

static Value *part_of_iota(const Scores *s, View x) {
  int d = (int)op_int(x.v->def, "iota_dimension", 0);
  int64_t first = d == x.rows ? s->row : d == x.cols ? s->col : 0;
  Type *t = part_type(s, x);
  Value *y = b_iota(s->b, t, d);
  return first ? b_add(s->b, y, b_full(s->b, t, (double)first)) : y;
}

static Value *part_of_move(Scores *s, View x) {
  const Op *op = x.v->def;
  View y;
  if (!before_move(x, &y)) return slice(s, x);
  Value *from = part(s, y);
  Type *t = part_type(s, x);
  return b_op(s->b, op->kind, 1, &from, 1, &t, op->n_attrs, op->attrs, 0, NULL)->results;
}

static Value *part_of_elements(Scores *s, View x) {
  const Op *op = x.v->def;
  Value *from[4];
  if (op->n_operands > COUNT_OF(from)) return slice(s, x);
  for (int i = 0; i < op->n_operands; i++) from[i] = part(s, view_operand(x, i));
  Type *t = part_type(s, x);
  return b_op(s->b, op->kind, op->n_operands, from, 1, &t, op->n_attrs, op->attrs, 0, NULL)
      ->results;
}

/* Of a reduction of rows. */
static Value *part_of_rows(Scores *s, View x) {
  const Op *op = x.v->def;
  const int64_t *dims;
  op_ints(op, "dimensions", &dims);
  View from = {op->operands[0], x.rows + (x.rows >= dims[0]), (int)dims[0]};
  return b_reduce(s->b, op == s->max ? OP_MAXIMUM : OP_ADD, part(s, from), 1, dims);
}

static Value *part(Scores *s, View x) {
  if (x.rows < 0 && x.cols < 0) return x.v;
  Str key = {(const char *)&x, sizeof x};
  Value *y = map_get(s->made, key);
  if (y) return y;
  const Op *op = x.v->def;
  const void *all = value_splat(x.v);
  if (all)
    y = b_bcast_scalar(s->b, b_const(s->b, b_type(s->b, b_dtype(x.v), 0, NULL), all),
                       part_type(s, x));
  else if (!op || op->parent != s->r) y = slice(s, x);
  else if (op == s->max || op == s->sum) y = part_of_rows(s, x);
  else if (op->kind == OP_DOT_GENERAL) y = part_of_product(s, x);
  else if (op->kind == OP_IOTA) y = part_of_iota(s, x);
  else if (moves_elements(op)) y = part_of_move(s, x);
  else if (of_elements(op)) y = part_of_elements(s, x);
  else y = slice(s, x);
  map_set(s->made, key, y);
  return y;
}

/* ---- products with weights ---- */

/* The columns that some of these rows see; false: one of them sees none. */
static bool columns_of(const Scores *s, int64_t row, int64_t end, int64_t *col, int64_t *col_end) {
  *col = s->n_cols;
  *col_end = 0;
  for (int64_t i = row; i < end; i++) {
    int64_t lo = MAX(0, i + s->band.lo), hi = MIN(s->n_cols, i + s->band.hi);
    if (lo >= hi) return false;
    *col = MIN(*col, lo);
    *col_end = MAX(*col_end, hi);
  }
  return true;
}

static int64_t block_rows(const Scores *s) {
  return MAX(LEAST_ROWS, (s->n_rows + BLOCKS - 1) / BLOCKS);
}

static bool is_worth(const Scores *s) {
  double left = 0, all = (double)s->n_rows * (double)s->n_cols;
  for (int64_t i = 0, n = block_rows(s), col, end; i < s->n_rows; i += n) {
    int64_t last = MIN(i + n, s->n_rows);
    if (!columns_of(s, i, last, &col, &end)) return false;
    left += (double)(last - i) * (double)(end - col);
  }
  return left <= WORTH * all;
}

/* Weights, their operand of the product `right`, times what they weigh; result dimension `out` is
 * their rows. */
static Value *in_blocks(Scores *s, const Op *op, int right, View weights, int out) {
  DotDims d = b_dot_dims(op);
  Value *blocks[BLOCKS];
  int n = 0;
  View other = {op->operands[!right], -1, (int)(right ? d.lhs_contract[0] : d.rhs_contract[0])};
  for (int64_t i = 0, rows = block_rows(s); i < s->n_rows; i += rows) {
    s->row = i;
    s->row_end = MIN(i + rows, s->n_rows);
    columns_of(s, s->row, s->row_end, &s->col, &s->col_end);
    s->made = map_new();
    Value *w = part(s, weights), *x = slice(s, other);
    blocks[n++] = b_dot(s->b, right ? x : w, right ? w : x, &d, op_type(op)->dtype,
                        op_attr(op, "precision_config"));
    map_free(s->made);
  }
  return b_concat(s->b, n, blocks, out);
}

static Value *rewritten(Build *b, const Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type;
  if (!type_is_static(l) || !type_is_static(r) || l->quant || r->quant || l->rank > B_MAX_RANK ||
      r->rank > B_MAX_RANK || op_attr(op, "lhs_precision_type"))
    return NULL;
  DotDims d = b_dot_dims(op);
  if (d.n_contract != 1) return NULL;
  for (int right = 0; right < 2; right++) {
    Value *w = op->operands[right];
    const int64_t *batch = right ? d.rhs_batch : d.lhs_batch,
                  *contract = right ? d.rhs_contract : d.lhs_contract;
    int left_free = l->rank - d.n_batch - 1;
    for (int place = 0; place < w->type->rank - d.n_batch - 1; place++) {
      int rows = free_dim(place, d.n_batch, batch, 1, contract, w->type->rank);
      View weights = {w, rows, (int)contract[0]};
      Scores s = {.b = b,
                  .r = op->parent,
                  .n_rows = w->type->dims[rows],
                  .n_cols = w->type->dims[contract[0]]};
      if (s.n_rows < 2 * LEAST_ROWS || !is_weight(&s, weights, 1) || !is_worth(&s)) continue;
      return in_blocks(&s, op, right, weights, d.n_batch + place + (right ? left_free : 0));
    }
  }
  return NULL;
}

Err *pass_bands(Module *m) {
  compile_rewrite(m, OP_DOT_GENERAL, rewritten);
  return NULL;
}
