/* pass_bands: scores of which each row sees only a band of columns, as in causal attention and sliding
 * windows, are computed in blocks of rows, each with the columns that one of its rows sees:
 *
 *   softmax(select(j <= i, q k', -big)) v
 *     = concatenate over blocks of rows: softmax(select(j <= i, q[rows] k[0 .. end)', -big)) v[0 .. end)
 *
 * What is masked has no weight: its exponential is zero. So it is left out where the mask is known here,
 * every row sees something, and nobody else wants the scores (a gradient does). */
#include "compile/pass/pass_priv.h"

#define LEAST_ROWS 128 /* of a block */
#define BLOCKS 8       /* at most: each has kernels of its own */
#define WORTH 0.8      /* of the scores at most are left */
#define BIG 1e9        /* below -BIG a score counts as masked */
#define FAR ((int64_t)1 << 40)

/* A value, and which of its dimensions are the rows and columns of the scores; -1: none. */
typedef struct View {
  Value *v;
  int rows, cols;
} View;

typedef struct Band { /* is seen: lo <= column - row < hi */
  int64_t lo, hi;
} Band;

typedef struct Scores {
  Build *b;
  const Region *r;
  int64_t n_rows, n_cols;
  Band band;
  const Op *max, *sum;                /* of rows */
  int64_t row, row_end, col, col_end; /* of a block */
  Map *made;                          /* View -> its part in the block */
} Scores;

/* ---- dimensions ---- */

/* Dimension d of a reshape's result in its operand; -1: it is made of several. */
static int before_reshape(const Type *to, const Type *from, int d) {
  int64_t before = 1, at = 1;
  for (int i = 0; i < d; i++) before *= to->dims[i];
  for (int i = 0; i < from->rank; at *= from->dims[i++])
    if (at == before && from->dims[i] == to->dims[d]) return i;
  return -1;
}

/* Dimension d of what op moves, in its operand. false: it has no such place. */
static bool moved_from(const Op *op, int d, int *from) {
  const Type *t = op->operands[0]->type;
  const int64_t *v;
  *from = -1;
  if (d < 0) return true;
  if (op->kind == OP_TRANSPOSE) {
    op_ints(op, "permutation", &v);
    *from = (int)v[d];
  } else if (op->kind == OP_RESHAPE) {
    *from = before_reshape(op_type(op), t, d);
    return *from >= 0;
  } else {
    int n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (v[i] == d && t->dims[i] == op_type(op)->dims[d]) *from = i;
  }
  return true;
}

static bool moves(const Op *op) {
  return op->kind == OP_TRANSPOSE || op->kind == OP_RESHAPE || op->kind == OP_BROADCAST_IN_DIM;
}

static bool before_move(View x, View *y) {
  y->v = x.v->def->operands[0];
  return y->v->type->rank <= B_MAX_RANK && moved_from(x.v->def, x.rows, &y->rows) &&
         moved_from(x.v->def, x.cols, &y->cols);
}

/* Operand i of an operation of elements. */
static View operand(View x, int i) { return (View){x.v->def->operands[i], x.rows, x.cols}; }

static bool of_elements(const Op *op) {
  if (op_info[op->kind].cls != OC_EWISE || op->n_results != 1 || !op->n_operands) return false;
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->rank != op_type(op)->rank) return false;
  return true;
}

/* ---- masks ---- */

typedef struct Line { /* row * i + col * j + at */
  int64_t row, col, at;
} Line;

/* A constant that counts along the rows or the columns. */
static bool counted(View x, Line *l) {
  const Tensor *t = value_constant(x.v);
  int64_t n = x.rows >= 0 ? x.v->type->dims[x.rows] : x.cols >= 0 ? x.v->type->dims[x.cols] : 0;
  if (!t || (x.rows >= 0 && x.cols >= 0) || t->count != n) return false;
  *l = (Line){x.rows >= 0, x.cols >= 0, elem_get_i64(t->dtype, tensor_at(t, 0))};
  for (int64_t i = 0; i < n; i++)
    if (elem_get_i64(t->dtype, tensor_at(t, i)) != l->at + i) return false;
  return l->at > -FAR && l->at < FAR;
}

static bool line_of(View x, Line *l) {
  const Op *op = x.v->def;
  DType t = x.v->type->dtype;
  const void *all = value_splat(x.v);
  if (!dtype_is_int(t) || !op) return false;
  if (all) {
    *l = (Line){.at = elem_get_i64(t, all)};
    return l->at > -FAR && l->at < FAR;
  }
  if (op->kind == OP_IOTA) {
    int64_t d = op_int(op, "iota_dimension", 0);
    *l = (Line){d == x.rows, d == x.cols, 0};
    return l->row || l->col;
  }
  if (op->kind == OP_CONSTANT) return counted(x, l);
  View y;
  if (moves(op)) return before_move(x, &y) && line_of(y, l);
  if (op->kind == OP_CONVERT) return line_of(operand(x, 0), l);
  Line m;
  if ((op->kind != OP_ADD && op->kind != OP_SUBTRACT) || !line_of(operand(x, 0), l) ||
      !line_of(operand(x, 1), &m))
    return false;
  int64_t sign = op->kind == OP_ADD ? 1 : -1;
  *l = (Line){l->row + sign * m.row, l->col + sign * m.col, l->at + sign * m.at};
  return true;
}

static bool compared(View x, bool negated, Band *band) {
  const Op *op = x.v->def;
  Line a, b;
  if (!line_of(operand(x, 0), &a) || !line_of(operand(x, 1), &b)) return false;
  Str way = op_str(op, "comparison_direction");
  bool less = str_is(way, "LT") || str_is(way, "LE"),
       equal = str_is(way, "LE") || str_is(way, "GE");
  if (!less && !str_is(way, "GT") && !str_is(way, "GE")) return false;
  if (negated) less = !less, equal = !equal;
  int64_t row = a.row - b.row, col = a.col - b.col, at = a.at - b.at;
  if (row + col || (row != 1 && row != -1)) return false;
  if (col < 0) at = -at, less = !less;
  /* now column - row + at, less or greater than zero */
  *band = less ? (Band){-FAR, -at + equal} : (Band){-at + !equal, FAR};
  return true;
}

/* A mask that is a constant. */
static bool drawn(View x, bool negated, Band *band) {
  const Tensor *t = value_constant(x.v);
  if (!t || x.rows < 0 || x.cols < 0) return false;
  int64_t rows = x.v->type->dims[x.rows], cols = x.v->type->dims[x.cols];
  int64_t step = x.rows < x.cols ? cols : 1, col_step = x.rows < x.cols ? 1 : rows;
  if (t->count != rows * cols) return false;
  *band = (Band){FAR, -FAR};
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < cols; j++) {
        bool seen = (elem_get_i64(DT_I1, tensor_at(t, i * step + j * col_step)) != 0) != negated;
        if (pass && seen != (j - i >= band->lo && j - i < band->hi)) return false;
        if (!pass && seen) *band = (Band){MIN(band->lo, j - i), MAX(band->hi, j - i + 1)};
      }
  return true;
}

static bool splat_is(const Value *v, bool want) {
  const void *all = value_splat(v);
  return all && v->type->dtype == DT_I1 && (elem_get_i64(DT_I1, all) != 0) == want;
}

static bool band_of(View x, bool negated, Band *band) {
  const Op *op = x.v->def;
  View y;
  Band other;
  if (splat_is(x.v, !negated)) {
    *band = (Band){-FAR, FAR};
    return true;
  }
  if (!op || x.v->type->dtype != DT_I1) return false;
  if (op->kind == OP_CONSTANT) return drawn(x, negated, band);
  if (moves(op)) return before_move(x, &y) && band_of(y, negated, band);
  if (op->kind == OP_NOT) return band_of(operand(x, 0), !negated, band);
  if (op->kind == OP_COMPARE) return compared(x, negated, band);
  bool both = op->kind == (negated ? OP_OR : OP_AND);
  if (op->kind == OP_SELECT && !negated) both = splat_is(op->operands[2], false);
  if (!both || !band_of(operand(x, 0), negated, band) || !band_of(operand(x, 1), negated, &other))
    return false;
  *band = (Band){MAX(band->lo, other.lo), MIN(band->hi, other.hi)};
  return true;
}

/* ---- scores and weights ---- */

/* Wanted only so many times, in one place: asked last, as all of the region is searched. */
static bool used(const Scores *s, const Value *v, int most) {
  return v->def && v->def->parent == s->r && region_uses(s->r, v) <= most;
}

static bool is_here(const Scores *s, View x) { return x.v->def && x.v->def->parent == s->r; }

/* JAX converts Python's numbers, to what they are, and then repeats them. */
static double splat_float(const Value *v) {
  while (!value_splat(v) && v->def &&
         (v->def->kind == OP_CONVERT || v->def->kind == OP_BROADCAST_IN_DIM))
    v = v->def->operands[0];
  const void *all = dtype_is_float(v->type->dtype) ? value_splat(v) : NULL;
  return all ? elem_get_f64(v->type->dtype, all) : 1;
}

/* select(mask, seen, -big), or the mask's complement and the other way around. */
static bool masked_select(View x, const Value **seen, Band *band) {
  const Op *op = x.v->def;
  if (!op || op->kind != OP_SELECT || !of_elements(op)) return false;
  bool negated = splat_float(op->operands[1]) <= -BIG;
  if (!negated && !(splat_float(op->operands[2]) <= -BIG)) return false;
  *seen = op->operands[negated ? 2 : 1];
  return band_of(operand(x, 0), negated, band);
}

/* Zero where it is seen, else -big. */
static bool bias(View x, Band *band) {
  const Value *seen;
  if (x.v->def && moves(x.v->def)) return before_move(x, &x) && bias(x, band);
  if (x.v->def && x.v->def->kind == OP_CONVERT) return bias(operand(x, 0), band);
  return masked_select(x, &seen, band) && splat_float(seen) == 0;
}

/* Nobody else wants the scores, up to the product that they come from. */
static bool all_once(const Scores *s, const Value *v) {
  for (const Op *op = v->def; used(s, v, 1); op = v->def) {
    if (!moves(op) && !of_elements(op)) return true;
    v = op->operands[op->n_operands > 1 && value_splat(op->operands[0])];
    if (!v->def || v->def->parent != s->r) return true;
  }
  return false;
}

/* Scores that are very small where they are not seen. */
static bool is_masked(Scores *s, View x) {
  const Op *op = x.v->def;
  const Value *seen = NULL;
  View y;
  if (!is_here(s, x)) return false;
  if (moves(op)) return before_move(x, &y) && is_masked(s, y) && used(s, x.v, 2);
  if (op->kind == OP_CONVERT && dtype_is_float(op->operands[0]->type->dtype))
    return is_masked(s, operand(x, 0)) && used(s, x.v, 2);
  if (op->kind == OP_ADD && of_elements(op)) {
    if (bias(operand(x, 1), &s->band)) seen = op->operands[0];
    else if (bias(operand(x, 0), &s->band)) seen = op->operands[1];
  } else if (!masked_select(x, &seen, &s->band)) return false;
  return seen && used(s, x.v, 2) && all_once(s, seen);
}

/* The reduction of x's rows, once for each of its columns; NULL: it is something else. */
static const Op *of_rows(const Value *v, View x, OpKind kind) {
  const Op *op = v->def;
  while (op && op->kind != OP_REDUCE) {
    const Value *from = op->n_operands ? op->operands[0] : NULL;
    if (op->kind == OP_MAXIMUM && value_splat(from)) from = op->operands[1];
    else if (op->kind == OP_MAXIMUM && !value_splat(op->operands[1])) return NULL;
    else if (op->kind != OP_MAXIMUM && op->kind != OP_CONVERT && !moves(op)) return NULL;
    op = from->def;
  }
  const int64_t *dims;
  if (!op || op->n_operands != 2 || op->operands[0] != x.v || x.cols < 0 ||
      op_ints(op, "dimensions", &dims) != 1 || dims[0] != x.cols)
    return NULL;
  const Op *first = op->regions[0]->first;
  return first->kind == kind && first->next == region_terminator(op->regions[0]) ? op : NULL;
}

/* Weights: zero where the scores are not seen. */
static bool is_weight(Scores *s, View x, int uses) {
  const Op *op = x.v->def;
  View y;
  if (!is_here(s, x) || !dtype_is_float(x.v->type->dtype)) return false;
  if (moves(op))
    return before_move(x, &y) && y.rows >= 0 && y.cols >= 0 && is_weight(s, y, 1) &&
           used(s, x.v, uses);
  if (!of_elements(op)) return false;
  y = operand(x, 0);
  if (op->kind == OP_CONVERT) return is_weight(s, y, 1) && used(s, x.v, uses);
  if (op->kind == OP_DIVIDE) {
    s->sum = of_rows(op->operands[1], y, OP_ADD);
    return s->sum && is_weight(s, y, 2) && used(s, x.v, uses);
  }
  const Op *minus = op->kind == OP_EXPONENTIAL ? y.v->def : NULL;
  if (!minus || minus->kind != OP_SUBTRACT) return false;
  View scores = operand(y, 0);
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
  for (int i = 0; i < op->n_operands; i++) from[i] = part(s, operand(x, i));
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
  else if (moves(op)) y = part_of_move(s, x);
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
