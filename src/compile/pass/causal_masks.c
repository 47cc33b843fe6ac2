#include "compile/pass/causal_masks.h"

#include <math.h>
#include <stdlib.h>

#define MOST_OPS 200 /* behind a mask */

static const CausalBand everything = {-FAR, FAR};

/* ---- dimensions ---- */

/* Dimension d of a reshaped type, in the other; -1: it is split, or joined with others. */
static int reshaped(const Type *from, const Type *to, int d) {
  int64_t before = 1, at = 1;
  for (int i = 0; i < d; i++) before *= from->dims[i];
  for (int i = 0; i < to->rank; at *= to->dims[i++])
    if (at == before && to->dims[i] == from->dims[d]) return i;
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
    *from = reshaped(op_type(op), t, d);
    return *from >= 0;
  } else {
    int n = op_ints(op, "broadcast_dimensions", &v);
    for (int i = 0; i < n; i++)
      if (v[i] == d && t->dims[i] == op_type(op)->dims[d]) *from = i;
  }
  return true;
}

bool moves_elements(const Op *op) {
  return op->kind == OP_TRANSPOSE || op->kind == OP_RESHAPE || op->kind == OP_BROADCAST_IN_DIM;
}

bool before_move(View x, View *y) {
  y->v = x.v->def->operands[0];
  return y->v->type->rank <= B_MAX_RANK && moved_from(x.v->def, x.rows, &y->rows) &&
         moved_from(x.v->def, x.cols, &y->cols);
}

static int moved_to(const Op *op, int d) {
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *v;
  if (op->kind == OP_RESHAPE) return reshaped(from, to, d);
  int n = op_ints(op, op->kind == OP_TRANSPOSE ? "permutation" : "broadcast_dimensions", &v);
  if (op->kind == OP_BROADCAST_IN_DIM) return from->dims[d] == to->dims[v[d]] ? (int)v[d] : -1;
  for (int i = 0; i < n; i++)
    if (v[i] == d) return i;
  return -1;
}

View after_move(View x, const Op *op) {
  return (View){op->results, x.rows < 0 ? -1 : moved_to(op, x.rows),
                x.cols < 0 ? -1 : moved_to(op, x.cols)};
}

bool sums_or_maximizes(const Op *op) {
  if (op->kind != OP_REDUCE || op->n_operands != 2 || !dtype_is_float(op_type(op)->dtype))
    return false;
  const Op *first = op->regions[0]->first;
  const void *init = value_splat(op->operands[1]);
  if (!init || first->next != region_terminator(op->regions[0])) return false;
  double from = elem_get_f64(op_type(op)->dtype, init);
  return first->kind == OP_ADD ? from == 0 : first->kind == OP_MAXIMUM && from <= -BIG;
}

/* Dimension d of what op reduces, in the result; -1: it is reduced. */
static int reduced_to(const Op *op, int d) {
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims), to = d;
  for (int i = 0; i < n; i++) {
    if (dims[i] == d) return -1;
    to -= dims[i] < d;
  }
  return to;
}

View after_reduction(View x, const Op *op) {
  return (View){op->results, x.rows < 0 ? -1 : reduced_to(op, x.rows),
                x.cols < 0 ? -1 : reduced_to(op, x.cols)};
}

View before_reduction(View x) {
  const Op *op = x.v->def;
  View y = {op->operands[0], -1, -1};
  for (int d = 0; d < y.v->type->rank; d++) {
    int to = reduced_to(op, d);
    if (to >= 0 && to == x.rows) y.rows = d;
    if (to >= 0 && to == x.cols) y.cols = d;
  }
  return y;
}

View view_operand(View x, int i) { return (View){x.v->def->operands[i], x.rows, x.cols}; }

bool of_elements(const Op *op) {
  if (op_info[op->kind].cls != OC_EWISE || op->n_results != 1 || !op->n_operands) return false;
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->rank != op_type(op)->rank) return false;
  return true;
}

/* ---- counts ---- */

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

static bool line_of(View x, Line *l, int *left) {
  const Op *op = x.v->def;
  DType t = x.v->type->dtype;
  const void *all = value_splat(x.v);
  if (!dtype_is_int(t) || !op || (*left)-- <= 0) return false;
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
  if (moves_elements(op)) return before_move(x, &y) && line_of(y, l, left);
  if (op->kind == OP_CONVERT) return line_of(view_operand(x, 0), l, left);
  Line m;
  if ((op->kind != OP_ADD && op->kind != OP_SUBTRACT) || !line_of(view_operand(x, 0), l, left) ||
      !line_of(view_operand(x, 1), &m, left))
    return false;
  int64_t sign = op->kind == OP_ADD ? 1 : -1;
  *l = (Line){l->row + sign * m.row, l->col + sign * m.col, l->at + sign * m.at};
  return true;
}

/* Where counts compare as they should. */
static bool compared_counts(View x, Levels *l, int *left) {
  Line a, b;
  if (!line_of(view_operand(x, 0), &a, left) || !line_of(view_operand(x, 1), &b, left))
    return false;
  Str way = op_str(x.v->def, "comparison_direction");
  bool less = str_is(way, "LT") || str_is(way, "LE"),
       equal = str_is(way, "LE") || str_is(way, "GE");
  if (!less && !str_is(way, "GT") && !str_is(way, "GE")) return false;
  int64_t row = a.row - b.row, col = a.col - b.col, at = a.at - b.at;
  if (row + col || (row != 1 && row != -1)) return false;
  if (col < 0) at = -at, less = !less;
  /* now column - row + at, less or greater than zero */
  *l = (Levels){less ? (CausalBand){-FAR, -at + equal} : (CausalBand){-at + !equal, FAR}, 1, 0};
  return true;
}

/* ---- levels ---- */

/* JAX converts Python's numbers, to what they are, and then repeats them. */
static bool uniform(const Value *v, Levels *l) {
  DType type = v->type->dtype;
  while (!value_splat(v) && v->def &&
         (v->def->kind == OP_CONVERT || v->def->kind == OP_BROADCAST_IN_DIM))
    v = v->def->operands[0];
  const void *all = value_splat(v);
  if (!all || dtype_is_complex(type) || dtype_is_float(v->type->dtype) > dtype_is_float(type))
    return false;
  double x = elem_get_f64(v->type->dtype, all);
  *l = (Levels){everything, x, x};
  return true;
}

static uint64_t bits_at(const Tensor *t, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, tensor_at(t, i), (size_t)dtype_bytes(t->dtype));
  return bits;
}

/* A constant: where it is as it is in column `col` of row 0. */
static bool drawn_from(const Tensor *t, int64_t rows, int64_t cols, int64_t step, int64_t col_step,
                       int64_t col, Levels *l) {
  const uint64_t in = bits_at(t, col * col_step);
  uint64_t out = in;
  l->in = l->out = elem_get_f64(t->dtype, tensor_at(t, col * col_step));
  l->band = (CausalBand){FAR, -FAR};
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < cols; j++) {
        uint64_t x = bits_at(t, i * step + j * col_step);
        if (x != in && out == in) {
          out = x;
          l->out = elem_get_f64(t->dtype, &x);
        }
        if (x != in && x != out) return false;
        if (pass && (x == in) != (j - i >= l->band.lo && j - i < l->band.hi)) return false;
        if (!pass && x == in)
          l->band = (CausalBand){MIN(l->band.lo, j - i), MAX(l->band.hi, j - i + 1)};
      }
  return !isnan(l->in) && !isnan(l->out);
}

/* What large constants were found to be, since masks_forget. */
typedef struct Drawn {
  const Tensor *t;
  int rows, cols;
  bool is;
  Levels l;
} Drawn;
static _Thread_local VEC(Drawn) large;
#define LARGE 1024

void masks_forget(void) { vec_free(&large); }

static bool drawn(View x, Levels *l) {
  const Tensor *t = value_constant(x.v);
  if (!t || x.rows < 0 || x.cols < 0 || dtype_is_complex(t->dtype)) return false;
  int64_t rows = x.v->type->dims[x.rows], cols = x.v->type->dims[x.cols];
  int64_t step = x.rows < x.cols ? cols : 1, col_step = x.rows < x.cols ? 1 : rows;
  if (t->count != rows * cols || !t->count) return false;
  for (int i = 0; i < large.n; i++) {
    const Drawn *d = &large.v[i];
    if (d->t != t || d->rows != x.rows || d->cols != x.cols) continue;
    *l = d->l;
    return d->is;
  }
  bool is = drawn_from(t, rows, cols, step, col_step, 0, l) ||
            drawn_from(t, rows, cols, step, col_step, cols - 1, l);
  if (t->count >= LARGE) *vec_push(&large) = (Drawn){t, x.rows, x.cols, is, *l};
  return is;
}

static bool equal_everywhere(const Levels *l) { return l->in == l->out; }

/* One operand's band, where the other is equal everywhere or has the same. */
static bool common_band(const Levels *a, const Levels *b, CausalBand *band) {
  *band = equal_everywhere(a) ? b->band : a->band;
  return equal_everywhere(a) || equal_everywhere(b) ||
         (a->band.lo == b->band.lo && a->band.hi == b->band.hi);
}

/* With `out` outside of the band, if need be the band's complement. */
static bool with_out(Levels *l, double out) {
  if (equal_everywhere(l)) *l = (Levels){everything, l->in, out};
  if (l->out == out) return true;
  if (l->in != out || (l->band.lo > -FAR && l->band.hi < FAR)) return false;
  l->band = l->band.lo > -FAR ? (CausalBand){-FAR, l->band.lo} : (CausalBand){l->band.hi, FAR};
  l->in = l->out;
  l->out = out;
  return true;
}

/* In both: product of the levels; `out` elsewhere. */
static bool in_both(Levels a, Levels b, double out, Levels *l) {
  if (!with_out(&a, out) || !with_out(&b, out)) return false;
  *l = (Levels){{MAX(a.band.lo, b.band.lo), MIN(a.band.hi, b.band.hi)}, a.in * b.in, out};
  return true;
}

static bool holds(Str way, double a, double b) {
  return str_is(way, "EQ")   ? a == b
         : str_is(way, "NE") ? a != b
         : str_is(way, "LT") ? a < b
         : str_is(way, "LE") ? a <= b
         : str_is(way, "GT") ? a > b
                             : a >= b;
}

static double combined(const Op *op, double a, double b) {
  switch (op->kind) {
  case OP_ADD: return a + b;
  case OP_SUBTRACT: return a - b;
  case OP_MULTIPLY: return a * b;
  default: return holds(op_str(op, "comparison_direction"), a, b);
  }
}

static bool levels(View x, Levels *l, int *left);

static bool levels_of_two(View x, Levels *l, int *left) {
  Levels a, b;
  if (!levels(view_operand(x, 0), &a, left) || !levels(view_operand(x, 1), &b, left)) return false;
  if (!common_band(&a, &b, &l->band)) return x.v->def->kind == OP_MULTIPLY && in_both(a, b, 0, l);
  l->in = combined(x.v->def, a.in, b.in);
  l->out = combined(x.v->def, a.out, b.out);
  return true;
}

static bool levels_of_select(View x, Levels *l, int *left) {
  Levels m, a, b;
  CausalBand band;
  if (!levels(view_operand(x, 0), &m, left) || !levels(view_operand(x, 1), &a, left) ||
      !levels(view_operand(x, 2), &b, left) || !common_band(&a, &b, &band))
    return false;
  Levels values = {band, 0, !equal_everywhere(&a) || !equal_everywhere(&b)};
  if (common_band(&m, &values, &l->band)) {
    l->in = m.in != 0 ? a.in : b.in;
    l->out = m.out != 0 ? a.out : b.out;
    return true;
  }
  /* within a band another one, as triu of tril */
  if (equal_everywhere(&a)) {
    Levels t = a;
    a = b, b = t;
    m.in = m.in == 0, m.out = m.out == 0;
  }
  if (!with_out(&m, 0) || !with_out(&a, b.in)) return false;
  *l = (Levels){{MAX(a.band.lo, m.band.lo), MIN(a.band.hi, m.band.hi)}, a.in, b.in};
  return true;
}

static bool levels_of_logic(View x, Levels *l, int *left) {
  Levels a, b;
  bool any = x.v->def->kind == OP_OR;
  if (!levels(view_operand(x, 0), &a, left) || !levels(view_operand(x, 1), &b, left)) return false;
  if (any) a.in = !a.in, a.out = !a.out, b.in = !b.in, b.out = !b.out;
  if (!in_both(a, b, 0, l)) return false;
  if (any) l->in = !l->in, l->out = !l->out;
  return true;
}

static bool levels_of_convert(View x, Levels *l, int *left) {
  DType to = x.v->type->dtype, from = x.v->def->operands[0]->type->dtype;
  if (dtype_is_float(from) && !dtype_is_float(to)) return false;
  return levels(view_operand(x, 0), l, left);
}

static bool levels(View x, Levels *l, int *left) {
  const Op *op = x.v->def;
  View y;
  if (uniform(x.v, l)) return true;
  if (!op || (*left)-- <= 0) return false;
  if (op->kind == OP_CONSTANT) return drawn(x, l);
  if (moves_elements(op)) return before_move(x, &y) && levels(y, l, left);
  if (!of_elements(op)) return false;
  bool logic = x.v->type->dtype == DT_I1;
  switch (op->kind) {
  case OP_CONVERT: return levels_of_convert(x, l, left);
  case OP_COMPARE: return compared_counts(x, l, left) || levels_of_two(x, l, left);
  case OP_ADD:
  case OP_SUBTRACT:
  case OP_MULTIPLY: return !logic && levels_of_two(x, l, left);
  case OP_AND:
  case OP_OR: return logic && levels_of_logic(x, l, left);
  case OP_SELECT: return levels_of_select(x, l, left);
  case OP_NOT:
    if (!logic || !levels(view_operand(x, 0), l, left)) return false;
    l->in = !l->in;
    l->out = !l->out;
    return true;
  case OP_NEGATE:
    if (!levels(view_operand(x, 0), l, left)) return false;
    l->in = -l->in;
    l->out = -l->out;
    return true;
  default: return false;
  }
}

bool levels_of(View x, Levels *l) {
  int left = MOST_OPS;
  return levels(x, l, &left);
}

/* What is true within the band and false elsewhere; negated: the other way around. */
static bool causal_of(View mask, bool negated, CausalBand *band) {
  Levels l;
  if (!levels_of(mask, &l) || !with_out(&l, negated) || (l.in != 0) == negated) return false;
  *band = l.band;
  return true;
}

/* ---- masks of which a part is known ---- */

static const CausalBand nowhere = {FAR, -FAR};

static CausalBand both(CausalBand a, CausalBand b) {
  return (CausalBand){MAX(a.lo, b.lo), MIN(a.hi, b.hi)};
}
static CausalBand either(CausalBand a, CausalBand b) {
  return (CausalBand){MIN(a.lo, b.lo), MAX(a.hi, b.hi)};
}

static CausalBand differs(View x, bool from, int *left);

static CausalBand differs_operand(View x, int i, bool from, int *left) {
  return differs(view_operand(x, i), from, left);
}

/* Where a mask may not be `from`: nowhere beyond the band. */
static CausalBand differs(View x, bool from, int *left) {
  const Op *op = x.v->def;
  View y;
  Levels l;
  CausalBand band;
  if (x.v->type->dtype != DT_I1) return everything;
  if (levels_of(x, &l) && equal_everywhere(&l)) return (l.in != 0) == from ? nowhere : everything;
  if (causal_of(x, from, &band)) return band;
  if (!op || (*left)-- <= 0) return everything;
  if (moves_elements(op)) return before_move(x, &y) ? differs(y, from, left) : everything;
  if (!of_elements(op)) return everything;
  switch (op->kind) {
  case OP_NOT: return differs_operand(x, 0, !from, left);
  case OP_AND:
  case OP_OR: {
    CausalBand a = differs_operand(x, 0, from, left), b = differs_operand(x, 1, from, left);
    return (op->kind == OP_OR) == from ? both(a, b) : either(a, b);
  }
  case OP_SELECT:
    return either(both(differs_operand(x, 0, false, left), differs_operand(x, 1, from, left)),
                  both(differs_operand(x, 0, true, left), differs_operand(x, 2, from, left)));
  default: return everything;
  }
}

/* Levels: where they are not masked. */
static CausalBand unmasked_levels(Levels l) {
  if (MAX(l.in, l.out) <= -BIG) return nowhere;
  if (l.in <= -BIG) with_out(&l, l.in);
  return l.out <= -BIG ? l.band : everything;
}

static CausalBand unmasked(View x, int *left) {
  const Op *op = x.v->def;
  View y;
  Levels l;
  if (!dtype_is_float(x.v->type->dtype)) return everything;
  if (levels_of(x, &l)) return unmasked_levels(l);
  if (!op || (*left)-- <= 0) return everything;
  if (moves_elements(op)) return before_move(x, &y) ? unmasked(y, left) : everything;
  if (!of_elements(op)) return everything;
  switch (op->kind) {
  case OP_CONVERT: return unmasked(view_operand(x, 0), left);
  case OP_SELECT:
    return either(both(differs_operand(x, 0, false, left), unmasked(view_operand(x, 1), left)),
                  both(differs_operand(x, 0, true, left), unmasked(view_operand(x, 2), left)));
  case OP_ADD:
  case OP_MINIMUM:
    return both(unmasked(view_operand(x, 0), left), unmasked(view_operand(x, 1), left));
  case OP_SUBTRACT: {
    CausalBand a = unmasked(view_operand(x, 0), left);
    if (!levels_of(view_operand(x, 1), &l)) return a;
    return both(a, unmasked_levels((Levels){l.band, -l.in, -l.out}));
  }
  default: return everything;
  }
}

/* ---- rows that see something, whatever an argument holds ---- */

/* The same elements where column = row: once along the rows, once along the columns. */
static bool equal_on_diagonal(View a, View b) {
  View y;
  while (a.v->def && moves_elements(a.v->def) && before_move(a, &y)) a = y;
  while (b.v->def && moves_elements(b.v->def) && before_move(b, &y)) b = y;
  return a.v == b.v && dtype_is_int(a.v->type->dtype) && MAX(a.rows, a.cols) >= 0 &&
         ((a.rows == b.cols && a.cols == b.rows) || (a.rows == b.rows && a.cols == b.cols));
}

static double level_on_diagonal(const Levels *l) {
  return l->band.lo <= 0 && l->band.hi > 0 ? l->in : l->out;
}

static bool has_diagonal(View x) { /* for all rows */
  return x.rows < 0 || x.cols < 0 || x.v->type->dims[x.rows] <= x.v->type->dims[x.cols];
}

/* Is the mask certainly `value` where column = row? */
static bool on_diagonal(View x, bool value, int *left) {
  const Op *op = x.v->def;
  View y;
  Levels l;
  if (x.v->type->dtype != DT_I1 || !has_diagonal(x)) return false;
  if (levels_of(x, &l)) return (level_on_diagonal(&l) != 0) == value;
  if (!op || (*left)-- <= 0) return false;
  if (moves_elements(op)) return before_move(x, &y) && on_diagonal(y, value, left);
  if (!of_elements(op)) return false;
  View a = view_operand(x, 0), b = view_operand(x, op->n_operands - 1);
  Str way = op_str(op, "comparison_direction");
  switch (op->kind) {
  case OP_NOT: return on_diagonal(a, !value, left);
  case OP_AND:
  case OP_OR:
    if ((op->kind == OP_OR) == value)
      return on_diagonal(a, value, left) || on_diagonal(b, value, left);
    return on_diagonal(a, value, left) && on_diagonal(b, value, left);
  case OP_COMPARE:
    return value == (str_is(way, "EQ") || str_is(way, "LE") || str_is(way, "GE")) &&
           equal_on_diagonal(a, b);
  default: return false;
  }
}

static bool seen(View x, int *left);

/* What a known mask leaves is the band's matter; levels are what is left out. */
static bool seen_of_select(View x, int *left) {
  View mask = view_operand(x, 0);
  Levels l;
  bool known = levels_of(mask, &l);
  for (int i = 1; i <= 2; i++) {
    View y = view_operand(x, i);
    if (known ? levels_of(y, &l) : on_diagonal(mask, i == 2, left)) continue;
    if (!seen(y, left)) return false;
  }
  return true;
}

/* Of what no mask selects nothing is asked: scores are numbers. Where all is minus infinity there is
 * NaN, whatever is left out. */
static bool seen(View x, int *left) {
  const Op *op = x.v->def;
  View y;
  Levels l;
  if (levels_of(x, &l)) return MIN(l.in, l.out) == -INFINITY || MAX(l.in, l.out) > -BIG;
  if (!op || !dtype_is_float(x.v->type->dtype)) return true;
  if ((*left)-- <= 0) return false;
  if (moves_elements(op)) return !before_move(x, &y) || seen(y, left);
  if (!of_elements(op)) return true;
  if (op->kind == OP_SELECT) return seen_of_select(x, left);
  for (int i = 0; i < op->n_operands; i++)
    if (!seen(view_operand(x, i), left)) return false;
  return true;
}

CausalBand mask_differs(View mask, bool from) {
  int left = MOST_OPS;
  return differs(mask, from, &left);
}

CausalBand scores_unmasked(View x) {
  int left = MOST_OPS;
  return unmasked(x, &left);
}

bool rows_see_something(View x) {
  int left = MOST_OPS;
  return seen(x, &left);
}
