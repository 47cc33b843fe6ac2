/* pass_attention: softmax(scale q k' + bias) v, with masks, becomes weft.attention, and what gradients are computed of its
 * weights become weft.attention_grad: the scores are in memory nowhere.
 *
 * Whatever a front end writes between the products is read as powers: of the exponentials e and of their sum l, with the
 * product d = do v' of the backward pass and its mean over the weights D = sum(e d) / l. The weights are e / l, the scores'
 * gradient is scale e / l (d - D), however the factors were multiplied. */
#include "compile/pass/attention.h"

#include <math.h>
#include <stdlib.h>

typedef enum FormKind {
  FORM_UNKNOWN,
  FORM_OTHER,
  FORM_SCORE,
  FORM_MOST,
  FORM_BELOW,
  FORM_POWERS
} FormKind;

/* SCORE: scale q k' (1), with the bias (2), masked (3). MOST: a row's greatest score. BELOW: a score less that. POWERS:
 * e^e l^l (of[0] + of[1] d + of[2] D). */
typedef struct Form {
  FormKind kind;
  int stage;
  double scale;
  double of[3];
  int e, l;
  int hidden; /* zero where these masks hide, a bit each */
} Form;

static const Form other = {.kind = FORM_OTHER};

static Form powers(double c) { return (Form){.kind = FORM_POWERS, .of = {c, 0, 0}}; }

static Form form_of_member(Attended *a, Value *v);
static Form form_of_row(Attended *a, Value *v, const Axes *axes);

static bool is_member(const Attended *a, const Value *v) {
  const ScoreInfo *i = scores_info(a->s, v);
  return i && i->kind == SCORE_MEMBER;
}

static bool is_number(const Value *v, double *x) {
  const void *all = value_splat(v);
  if (!all || !dtype_is_float(v->type->dtype)) return false;
  *x = elem_get_f64(v->type->dtype, all);
  return true;
}

/* ---- arithmetic of forms ---- */

static bool is_plain(const Form *f) {
  return f->kind == FORM_POWERS && f->of[1] == 0 && f->of[2] == 0 && !f->hidden;
}

static Form scaled(Form f, double by) {
  if (f.kind == FORM_SCORE && f.stage == 1) f.scale *= by;
  else if (f.kind == FORM_POWERS)
    for (int i = 0; i < 3; i++) f.of[i] *= by;
  else return other;
  return f;
}

static Form multiplied(Form x, Form y) {
  if (!is_plain(&y)) {
    Form t = x;
    x = y, y = t;
  }
  if (is_plain(&y) && !y.e && !y.l) return scaled(x, y.of[0]);
  if (x.kind != FORM_POWERS || !is_plain(&y)) return other;
  x = scaled(x, y.of[0]);
  x.e += y.e;
  x.l += y.l;
  return x;
}

static Form divided(Form x, Form y) {
  if (!is_plain(&y) || y.of[0] == 0) return other;
  y.of[0] = 1 / y.of[0];
  y.e = -y.e;
  y.l = -y.l;
  return multiplied(x, y);
}

static Form added(Form x, Form y, double sign) {
  if (x.kind != FORM_POWERS || y.kind != FORM_POWERS || x.e != y.e || x.l != y.l ||
      x.hidden != y.hidden)
    return other;
  for (int i = 0; i < 3; i++) x.of[i] += sign * y.of[i];
  return x;
}

static bool same_score(const Form *x, const Form *y) {
  return x->stage == y->stage && x->scale == y->scale;
}

/* Summed over the columns. */
static Form summed(Form f) {
  if (f.kind != FORM_POWERS || f.e != 1 || f.of[2] != 0 || f.hidden ||
      (f.of[0] != 0) == (f.of[1] != 0))
    return other;
  f.e = 0;
  f.l++;
  f.of[2] = f.of[1];
  f.of[1] = 0;
  return f;
}

/* ---- masks and biases ---- */

static int dimension_of(const Axes *axes, int rank, int axis) {
  for (int i = 0; i < rank; i++)
    if (axes->of[i] == axis) return i;
  return -1;
}

static View view_of(const Attended *a, Value *v, const Axes *axes) {
  return (View){v, dimension_of(axes, b_rank(v), a->rows),
                dimension_of(axes, b_rank(v), a->columns)};
}

/* Without what it is repeated along. */
static Placed unrepeated(Value *v, const Axes *axes) {
  Placed x = {v, *axes};
  while (x.v->def && moves_elements(x.v->def)) {
    unsigned lost;
    Axes before;
    axes_before_move(x.v->def, &x.axes, &before, &lost);
    if (lost) break;
    x = (Placed){x.v->def->operands[0], before};
  }
  return x;
}

/* It is to be in memory: it is so anyhow, or is small beside the scores. */
static bool is_cheap(const Attended *a, const Placed *x) {
  const Op *op = x->v->def;
  int64_t bytes = type_count(x->v->type) * dtype_bytes(x->v->type->dtype);
  for (int i = 0; i < b_rank(x->v); i++)
    if (x->axes.of[i] < 0 && b_dim(x->v, i) > 1) return false;
  return !op || !(of_elements(op) || op->kind == OP_IOTA) ||
         bytes * 4 <= a->s->count * (int64_t)sizeof(float);
}

static bool narrow_band(Attended *a, CausalBand b) {
  a->band = (CausalBand){MAX(a->band.lo, b.lo), MIN(a->band.hi, b.hi)};
  return true;
}

/* What a mask lets see: bands of positions, and one more mask at most. */
static bool read_mask(Attended *a, Value *v, const Axes *axes, bool inverted) {
  Levels l;
  View x = view_of(a, v, axes);
  if (!a->bandless && x.rows >= 0 && x.cols >= 0 && levels_of(x, &l) && l.in != l.out &&
      (l.in != 0) != inverted)
    return narrow_band(a, l.band);
  const Op *op = v->def;
  if (!a->bandless && op && op->kind == (inverted ? OP_OR : OP_AND) && of_elements(op))
    return read_mask(a, op->operands[0], axes, inverted) &&
           read_mask(a, op->operands[1], axes, inverted);
  if (op && op->kind == OP_NOT) return read_mask(a, op->operands[0], axes, !inverted);
  if (op && moves_elements(op)) {
    Axes before;
    unsigned lost;
    axes_before_move(op, axes, &before, &lost);
    if (!lost) return read_mask(a, op->operands[0], &before, inverted);
  }
  if (a->mask.v) return false;
  a->mask = unrepeated(v, axes);
  a->inverted = inverted;
  return is_cheap(a, &a->mask);
}

static Form masked(Attended *a, const Op *op, const Axes *axes) {
  bool inverted = !is_member(a, op->operands[1]);
  Form f = form_of_member(a, op->operands[1 + inverted]);
  Value *by = op->operands[0], *elsewhere = op->operands[2 - inverted];
  double fill;
  int k = 0;
  if (is_member(a, elsewhere) || !is_number(elsewhere, &fill)) return other;
  while (k < a->n_hides && a->hides[k] != by) k++;
  if (f.kind == FORM_POWERS) {
    f.hidden |= 1 << k;
    return k < a->n_hides && fill == 0 ? f : other;
  }
  if (f.kind != FORM_SCORE || fill > -BIG || k < a->n_hides || k == ATTENTION_MASKS) return other;
  bool had = a->mask.v != NULL;
  if (!read_mask(a, by, axes, inverted)) return other;
  a->hides[a->n_hides++] = by;
  if (!had) a->fill = fill;
  f.stage = 3;
  return f;
}

static Form biased(Attended *a, Form f, Value *v, const Axes *axes) {
  Levels l;
  View x = view_of(a, v, axes);
  bool band =
      !a->bandless && x.rows >= 0 && x.cols >= 0 && levels_of(x, &l) && l.in == 0 && l.out <= -BIG;
  if (f.kind != FORM_SCORE || f.stage != 1) return other;
  if (band) narrow_band(a, l.band);
  else a->bias = unrepeated(v, axes);
  f.stage = 2;
  return band || is_cheap(a, &a->bias) ? f : other;
}

/* ---- what members and rows are ---- */

/* An operand of an operation of elements whose dimensions have these axes. */
static Form form_of_operand(Attended *a, Value *v, const Axes *axes) {
  double x;
  if (is_member(a, v)) return form_of_member(a, v);
  return is_number(v, &x) ? powers(x) : form_of_row(a, v, axes);
}

static Form less(Form x, Form y) {
  if (x.kind != FORM_SCORE) return added(x, y, -1);
  if (y.kind != FORM_MOST || !same_score(&x, &y)) return other;
  x.kind = FORM_BELOW;
  return x;
}

static Form sum_of(Attended *a, const Op *op, const Axes *axes) {
  Form x = form_of_operand(a, op->operands[0], axes), y = form_of_operand(a, op->operands[1], axes);
  if (x.kind == FORM_SCORE && y.kind == FORM_OTHER && !is_member(a, op->operands[1]))
    return biased(a, x, op->operands[1], axes);
  if (y.kind == FORM_SCORE && x.kind == FORM_OTHER && !is_member(a, op->operands[0]))
    return biased(a, y, op->operands[0], axes);
  return added(x, y, 1);
}

static Form of_elements_of(Attended *a, const Op *op, const Axes *axes) {
  double low;
  Form x = other, y = other;
  if (op->kind != OP_SELECT && op->kind != OP_ADD && op->n_operands <= 2) {
    x = form_of_operand(a, op->operands[0], axes);
    if (op->n_operands == 2) y = form_of_operand(a, op->operands[1], axes);
  }
  switch (op->kind) {
  case OP_CONVERT: return dtype_is_float(op_type(op)->dtype) ? x : other;
  case OP_SELECT: return masked(a, op, axes);
  case OP_ADD: return sum_of(a, op, axes);
  case OP_SUBTRACT: return less(x, y);
  case OP_MULTIPLY: return multiplied(x, y);
  case OP_DIVIDE: return divided(x, y);
  case OP_NEGATE: return scaled(x, -1);
  case OP_MAXIMUM:
    if (is_number(op->operands[0], &low) && low == -INFINITY)
      return y.kind == FORM_MOST ? y : other;
    return is_number(op->operands[1], &low) && low == -INFINITY && x.kind == FORM_MOST ? x : other;
  case OP_EXPONENTIAL:
    return x.kind == FORM_BELOW ? (Form){.kind = FORM_POWERS, .of = {1, 0, 0}, .e = 1} : other;
  default: return other;
  }
}

static Form form_of_product(Attended *a, const Op *op) {
  if (op == a->scores) return (Form){.kind = FORM_SCORE, .stage = 1, .scale = a->scale};
  if (a->slopes && a->slopes != op) return other;
  a->slopes = op;
  return (Form){.kind = FORM_POWERS, .of = {0, 1, 0}};
}

static Form form_of_member(Attended *a, Value *v) {
  Form *f = &a->forms[v->id];
  const Op *op = v->def;
  if (f->kind) return *f;
  *f = other;
  const Axes axes = scores_info(a->s, v)->axes;
  if (op->kind == OP_DOT_GENERAL) *f = form_of_product(a, op);
  else if (op->kind == OP_TRANSPOSE || op->kind == OP_RESHAPE)
    *f = form_of_member(a, op->operands[0]);
  else *f = of_elements_of(a, op, &axes);
  return *f;
}

static bool same_places(const Value *v, const Axes *x, const Axes *y) {
  for (int i = 0; i < b_rank(v); i++)
    if (b_dim(v, i) > 1 && x->of[i] != y->of[i]) return false;
  return true;
}

/* A sum or maximum over the columns of a member. */
static Form form_of_sum(Attended *a, Value *v, const Axes *axes) {
  const Op *op = v->def;
  unsigned over;
  Axes own = axes_of_sum(op, &scores_info(a->s, op->operands[0])->axes, &over);
  if (over != 1u << a->columns || !same_places(v, axes, &own)) return other;
  Form f = form_of_member(a, op->operands[0]);
  if (op->regions[0]->first->kind == OP_ADD) return summed(f);
  if (f.kind != FORM_SCORE) return other;
  f.kind = FORM_MOST;
  return f;
}

/* What is the same in all columns; a few operations are behind the sums. */
static Form form_of_row(Attended *a, Value *v, const Axes *axes) {
  const Op *op = v->def;
  double x;
  if (is_number(v, &x)) return powers(x);
  if (!op || op->parent != a->s->r || op->n_results != 1) return other;
  if (op->kind == OP_REDUCE && is_member(a, op->operands[0])) return form_of_sum(a, v, axes);
  const ScoreInfo *i = scores_info(a->s, v);
  if (!i || i->kind != SCORE_OF_SUM) return other;
  if (!moves_elements(op)) return of_elements_of(a, op, axes);
  Axes before;
  unsigned lost;
  axes_before_move(op, axes, &before, &lost);
  return form_of_row(a, op->operands[0], &before);
}

/* ---- products ---- */

static unsigned free_axes(const Axes *axes, int rank, unsigned without) {
  unsigned bits = 0;
  for (int i = 0; i < rank; i++)
    if (axes->of[i] >= 0) bits |= 1u << axes->of[i];
  return bits & ~without;
}

/* Which axes are the columns: those that a maximum is taken over. */
static bool find_columns(Attended *a) {
  const Scores *s = a->s;
  for (const Op *op = s->r->first; op; op = op->next) {
    unsigned over;
    if (op->kind != OP_REDUCE || op->n_results != 1 || !is_member(a, op->operands[0])) continue;
    axes_of_sum(op, &scores_info(s, op->operands[0])->axes, &over);
    if (!over || over & (over - 1)) return false;
    a->columns = __builtin_ctz(over);
    return true;
  }
  return false;
}

static bool one_contracted(const Op *dot) { return b_dot_dims(dot).n_contract == 1; }

/* Queries that are multiplied by a number, without it. */
static Value *unscaled(Value *q, double *scale) {
  const Op *op = q->def;
  for (int i = 0; op && op->kind == OP_MULTIPLY && i < 2; i++)
    if (is_number(op->operands[i], scale)) return op->operands[!i];
  return q;
}

static bool find_operands(Attended *a) {
  Axes whole, of[2];
  memset(whole.of, -1, sizeof whole.of);
  int rank = a->s->type->rank;
  for (int i = 0; i < rank; i++) whole.of[i] = (int8_t)i;
  axes_of_operands(a->scores, &whole, &of[0], &of[1]);
  int side =
      dimension_of(&of[0], b_rank(a->scores->operands[0]), a->columns) >= 0; /* of the queries */
  Value *q = a->scores->operands[side], *k = a->scores->operands[!side];
  a->q = (Placed){a->scaled ? unscaled(q, &a->scale) : q, of[side]};
  a->k = (Placed){k, of[!side]};
  a->batch = free_axes(&a->k.axes, b_rank(k), 1u << a->columns);
  unsigned shared = free_axes(&a->q.axes, b_rank(q), 0);
  a->queries = shared & ~a->batch;
  if (a->batch & ~shared || !a->queries || !one_contracted(a->scores)) return false;
  for (int i = rank - 1; i >= 0; i--)
    if (a->queries >> i & 1 && (a->rows < 0 || a->s->type->dims[i] > a->s->type->dims[a->rows]))
      a->rows = i;
  return true;
}

static bool same_value(const Placed *x, const Value *v, const Axes *axes) {
  return x->v == v && same_places(v, &x->axes, axes);
}

/* It is v, or becomes it. */
static bool is_placed(Placed *x, Value *v, const Axes *axes) {
  if (!x->v) *x = (Placed){v, *axes};
  return same_value(x, v, axes);
}

/* One dimension that is none of the scores', beside those of one place. */
static bool has_width(const Placed *x) {
  int own = 0;
  for (int i = 0; i < b_rank(x->v); i++) own += x->axes.of[i] < 0 && b_dim(x->v, i) > 1;
  return own <= 1;
}

static bool is_weight(const Form *f) {
  return is_plain(f) && f->of[0] == 1 && f->e == 1 && f->l == -1;
}

static bool is_slope(const Attended *a, const Form *f, double scale) {
  return f->kind == FORM_POWERS && f->of[0] == 0 && f->e == 1 && f->l == -1 &&
         f->of[1] == -f->of[2] && f->hidden == (1 << a->n_hides) - 1 &&
         fabs(f->of[1] - scale) <= 1e-6 * fabs(scale);
}

/* A product of a member with something else: which of the four is it? */
static AttentionResult result_of(Attended *a, const Op *op) {
  int side = is_member(a, op->operands[1]);
  const Axes member = scores_info(a->s, op->operands[side])->axes;
  Axes of, result;
  unsigned over;
  axes_of_product(op, side, &member, &of, &result, &over);
  Value *x = op->operands[!side];
  Form f = form_of_member(a, op->operands[side]);
  bool columns = over == 1u << a->columns, weight = is_weight(&f);
  if ((!columns && over != a->queries) || (!weight && !is_slope(a, &f, a->scale)))
    return ATTENTION_RESULTS;
  if (weight && is_placed(columns ? &a->v : &a->grad, x, &of))
    return columns ? ATTENTION_OUT : ATTENTION_DV;
  if (!weight && same_value(columns ? &a->k : &a->q, x, &of))
    return columns ? ATTENTION_DQ : ATTENTION_DK;
  return ATTENTION_RESULTS;
}

/* The two operands of d = do v'. */
static bool find_slopes(Attended *a) {
  if (!a->slopes) return true;
  Axes of[2];
  axes_of_operands(a->slopes, &scores_info(a->s, a->slopes->results)->axes, &of[0], &of[1]);
  int side = dimension_of(&of[0], b_rank(a->slopes->operands[0]), a->columns) >= 0; /* of do */
  return one_contracted(a->slopes) && is_placed(&a->grad, a->slopes->operands[side], &of[side]) &&
         is_placed(&a->v, a->slopes->operands[!side], &of[!side]);
}

/* ---- the whole ---- */

/* The scores' scale, from the maximum of what they are at last. */
static bool find_scores(Attended *a) {
  for (const Op *op = a->s->r->first; op; op = op->next) {
    if (op->kind != OP_REDUCE || op->n_results != 1 || !is_member(a, op->operands[0])) continue;
    Form f = form_of_member(a, op->operands[0]);
    if (f.kind != FORM_SCORE) continue;
    a->scale = f.scale;
    const Axes axes = scores_info(a->s, op->operands[0])->axes;
    bool banded = a->band.lo > -FAR || a->band.hi < FAR;
    return !banded ||
           ((!a->mask.v && !a->bias.v) || rows_see_something(view_of(a, op->operands[0], &axes)));
  }
  return false;
}

/* Does every row see a column of the band? */
static bool rows_see_band(const Attended *a) {
  int64_t rows = a->s->type->dims[a->rows], columns = a->s->type->dims[a->columns];
  return a->band.lo < a->band.hi && a->band.hi > 0 && rows - 1 + a->band.lo < columns;
}

static bool find_results(Attended *a) {
  for (const Op *op = a->s->r->first; op; op = op->next) {
    const ScoreInfo *i = op->n_results == 1 ? scores_info(a->s, op->results) : NULL;
    if (!i || i->kind != SCORE_RESULT) continue;
    AttentionResult k = result_of(a, op);
    if (k == ATTENTION_RESULTS || a->results[k]) return false;
    a->results[k] = op;
  }
  return true;
}

/* Results have the types of what they are the gradients of, no wider ones. */
static bool are_types_right(const Attended *a) {
  const Value *as[] = {a->v.v, a->q.v, a->k.v, a->v.v};
  for (int i = 0; i < ATTENTION_RESULTS; i++)
    if (a->results[i] && op_type(a->results[i])->dtype != b_dtype(as[i])) return false;
  for (int i = 0; i < 2; i++)
    if (b_dtype(as[i]) == DT_F64) return false;
  return !a->grad.v || b_dtype(a->grad.v) == b_dtype(a->v.v);
}

/* Sums and what is computed of them are not wanted by anybody else. */
static bool sums_are_inside(const Attended *a) {
  const Scores *s = a->s;
  for (int i = 0; i < s->uses->all.n; i++) {
    const Use *u = &s->uses->all.v[i];
    const ScoreInfo *v = scores_info(s, u->v);
    if (!v || (v->kind != SCORE_SUM && v->kind != SCORE_OF_SUM)) continue;
    const ScoreInfo *to = u->by->n_results == 1 ? scores_info(s, u->by->results) : NULL;
    if (!to || (to->kind != SCORE_MEMBER && to->kind != SCORE_OF_SUM)) return false;
  }
  return true;
}

static bool matches(Attended *a) {
  return find_columns(a) && find_operands(a) && find_scores(a) && rows_see_band(a) &&
         find_results(a) && find_slopes(a) && a->v.v && are_types_right(a) && has_width(&a->q) &&
         has_width(&a->k) && has_width(&a->v) && (!a->grad.v || has_width(&a->grad)) &&
         sums_are_inside(a);
}

static bool may_attend(const Scores *s, const Op *dot) {
  const BlockLimits *l = s->limits;
  return !l->attends || l->attends(l->arg, b_dtype(dot->operands[0]));
}

/* Bands leave out what is not seen; where a row might see nothing else, they are a mask like others. The scale may have
 * become the queries' in the scores alone. */
static bool rewrite(Scores *s, const Op *dot) {
  bool changed = false;
  if (!may_attend(s, dot)) return false;
  for (int k = 0; k < 4 && !changed; k++) {
    Attended a = {.s = s,
                  .scores = dot,
                  .rows = -1,
                  .band = {-FAR, FAR},
                  .scale = 1,
                  .scaled = k & 1,
                  .bandless = k >> 1};
    a.forms = xcalloc((size_t)s->n_values + 1, sizeof *a.forms);
    changed = matches(&a);
    if (changed) attention_build(&a);
    free(a.forms);
  }
  masks_forget();
  return changed;
}

static bool is_there(Scores *s, const Op *dot) { return may_attend(s, dot); }

/* A few products in one kernel are faster than one after the other, but for the smallest. */
Err *pass_attention(Module *m, AttendsFn *attends, void *arg) {
  const BlockLimits limits = {.least = 1 << 18, .ratio = 1, .attends = attends, .arg = arg};
  if (!scores_each(m, &limits, is_there)) return NULL;
  TRY(pass_simplify(m));
  return scores_each(m, &limits, rewrite) ? pass_simplify(m) : NULL;
}
