/* pass_causal_blocks: scores of which each row sees only a band of columns, as in causal attention and sliding
 * windows, are computed in blocks of rows, each with the columns that one of its rows sees:
 *
 *   softmax(select(j <= i, q k', -big)) v
 *     = concatenate over blocks of rows: softmax(select(j <= i, q[rows] k[0 .. end)', -big)) v[0 .. end)
 *
 * and so are the gradients, whose products have weights as factors: zero where the scores are masked.
 * What is masked is left out where the mask is known here, every row sees something, and no value of
 * all rows and columns is wanted whole. */
#include <stdlib.h>

#include "compile/pass/causal_parts.h"

#define MOST_OPS 400 /* are asked what they are where nothing is seen */

/* ---- scores ---- */

/* The maximum of x's rows that v is, once for each column. */
static const Op *max_of_rows(const Value *v) {
  const Op *op = v->def;
  while (op && op->kind != OP_REDUCE) {
    const Value *from = op->n_operands ? op->operands[0] : NULL;
    if (op->kind == OP_MAXIMUM && value_splat(from)) from = op->operands[1];
    else if (op->kind == OP_MAXIMUM && !value_splat(op->operands[1])) return NULL;
    else if (op->kind != OP_MAXIMUM && op->kind != OP_CONVERT && !moves_elements(op)) return NULL;
    op = from->def;
  }
  return op;
}

/* ---- what values are where nothing is seen ---- */

typedef enum Beyond { ANYTHING, MASKED, ZERO } Beyond;

static bool within(const CausalGroup *g, CausalBand b) {
  return b.lo >= g->band.lo && b.hi <= g->band.hi;
}

static Beyond beyond(const CausalGroup *g, View x, int *left);

/* The same scores; or both select them, as softmax(where=) has it. */
static bool same_scores(const Value *x, const Value *y) {
  const Op *a = x->def, *b = y->def;
  if (x == y) return true;
  if (!a || !b || a->kind != OP_SELECT || b->kind != OP_SELECT) return false;
  for (int i = 1; i <= 2; i++)
    if (a->operands[i] == b->operands[i])
      return scores_unmasked((View){a->operands[i], -1, -1}).hi > -FAR; /* no fill */
  return false;
}

/* Is the second operand the maximum of the first one's rows? */
static bool is_maximum_of_rows(const Op *op) {
  const Op *max = max_of_rows(op->operands[1]);
  return max && same_scores(max->operands[0], op->operands[0]);
}

static Beyond beyond_operand(const CausalGroup *g, View x, int i, int *left) {
  return beyond(g, view_operand(x, i), left);
}

static Beyond beyond_select(const CausalGroup *g, View x, int *left) {
  if (within(g, mask_differs(view_operand(x, 0), false))) return beyond_operand(g, x, 2, left);
  if (within(g, mask_differs(view_operand(x, 0), true))) return beyond_operand(g, x, 1, left);
  Beyond y = beyond_operand(g, x, 1, left);
  return y && beyond_operand(g, x, 2, left) == y ? y : ANYTHING;
}

static Beyond beyond(const CausalGroup *g, View x, int *left) {
  const Op *op = x.v->def;
  View y;
  Levels l;
  if (levels_of(x, &l) && (l.in == l.out || within(g, l.band)))
    return l.out == 0 ? ZERO : l.out <= -BIG ? MASKED : ANYTHING;
  if (within(g, scores_unmasked(x))) return MASKED;
  if (!op || op->parent != g->r || (*left)-- <= 0) return ANYTHING;
  if (moves_elements(op)) return before_move(x, &y) ? beyond(g, y, left) : ANYTHING;
  if (op->kind == OP_REDUCE && causal_member(g, op->operands[0]))
    return beyond(g, *causal_member(g, op->operands[0]), left) == ZERO ? ZERO : ANYTHING;
  if (!of_elements(op)) return ANYTHING;
  switch (op->kind) {
  case OP_CONVERT:
  case OP_NEGATE: {
    Beyond from = beyond_operand(g, x, 0, left);
    return op->kind == OP_NEGATE && from == MASKED ? ANYTHING : from;
  }
  case OP_SELECT: return beyond_select(g, x, left);
  case OP_COMPARE: /* a maximum's gradient: where it is */
    return str_is(op_str(op, "comparison_direction"), "EQ") && is_maximum_of_rows(op) &&
                   beyond_operand(g, x, 0, left) == MASKED
               ? ZERO
               : ANYTHING;
  case OP_EXPONENTIAL: return beyond_operand(g, x, 0, left) == MASKED ? ZERO : ANYTHING;
  case OP_DIVIDE: return beyond_operand(g, x, 0, left) == ZERO ? ZERO : ANYTHING;
  case OP_MULTIPLY:
    return beyond_operand(g, x, 0, left) == ZERO || beyond_operand(g, x, 1, left) == ZERO
               ? ZERO
               : ANYTHING;
  case OP_ADD:
  case OP_SUBTRACT: {
    Beyond from = beyond_operand(g, x, 0, left);
    if (from == MASKED && op->kind == OP_SUBTRACT)
      return is_maximum_of_rows(op) ? MASKED : ANYTHING;
    return from == ZERO && beyond_operand(g, x, 1, left) == ZERO ? ZERO : ANYTHING;
  }
  default: return ANYTHING;
  }
}

/* ---- groups ---- */

static bool join(CausalGroup *g, View x) {
  if (x.rows < 0 || x.cols < 0 || x.v->type->rank > B_MAX_RANK || x.v->type->quant) return false;
  const View *y = causal_member(g, x.v);
  if (y) return y->rows == x.rows && y->cols == x.cols;
  causal_add(g, x);
  return true;
}

static bool is_plain_product(const Op *op) {
  if (op->kind != OP_DOT_GENERAL || op_attr(op, "lhs_precision_type")) return false;
  for (int i = 0; i < 2; i++) {
    const Type *t = op->operands[i]->type;
    if (t->rank > B_MAX_RANK || t->quant) return false;
  }
  return true;
}

/* What uses a member is one, too, or a result. */
static bool join_user(CausalGroup *g, View x, const Op *op) {
  if (op->parent != g->r) return false;
  if (moves_elements(op)) return join(g, after_move(x, op));
  if (of_elements(op)) return join(g, (View){op->results, x.rows, x.cols});
  if (op->kind == OP_REDUCE) {
    const int64_t *dims;
    if (op->operands[0] != x.v || !sums_or_maximizes(op)) return false;
    View y = after_reduction(x, op);
    if (y.rows >= 0 && y.cols >= 0) return join(g, y);
    if (op_ints(op, "dimensions", &dims) != 1 || dims[0] != x.cols) return false;
  } else if (!is_plain_product(op)) {
    return false;
  }
  causal_add_result(g, op);
  return true;
}

static bool used_by_members(const CausalGroup *g, const Uses *u, const Value *v) {
  for (int i = uses_first(u, v); i < u->all.n && u->all.v[i].v == v; i++) {
    const Op *op = u->all.v[i].by;
    if (op->n_results != 1 || !causal_member(g, op->results)) return false;
  }
  return true;
}

/* So is what a member is computed of, where nobody else wants it. */
static void join_operands(CausalGroup *g, const Uses *u, View x) {
  const Op *op = x.v->def;
  Levels l;
  if (!op || op->parent != g->r || op->kind == OP_DOT_GENERAL || op->kind == OP_REDUCE) return;
  for (int i = 0; i < op->n_operands; i++) {
    View y;
    if (!moves_elements(op)) y = view_operand(x, i);
    else if (!before_move(x, &y)) return;
    const Op *from = y.v->def;
    if (!from || from->parent != g->r || y.rows < 0 || y.cols < 0) continue;
    if ((of_elements(from) || moves_elements(from) || is_plain_product(from)) &&
        !levels_of(y, &l) && used_by_members(g, u, y.v))
      join(g, y);
  }
}

/* What is made of the scores, forward and backward. */
static bool gather(CausalGroup *g, const Uses *u) {
  for (int done = 0; done < g->members.n;) {
    for (; done < g->members.n; done++) {
      View x = g->members.v[done];
      for (int i = uses_first(u, x.v); i < u->all.n && u->all.v[i].v == x.v; i++)
        if (!join_user(g, x, u->all.v[i].by)) return false;
    }
    for (int i = 0; i < done; i++) join_operands(g, u, g->members.v[i]);
  }
  return true;
}

/* What is masked counts for nothing in this reduction or product of a member. */
static bool is_result(const CausalGroup *g, const Op *op) {
  CausalProduct p;
  int left = MOST_OPS;
  if (op->kind == OP_DOT_GENERAL)
    return causal_product(g, op, &p) && beyond(g, p.member, &left) == ZERO;
  bool max = causal_combines(op) == OP_MAXIMUM;
  return beyond(g, *causal_member(g, op->operands[0]), &left) == (max ? MASKED : ZERO);
}

/* `same`: the scores, or what selects them once more. */
static bool is_group(CausalGroup *g, const Uses *u, View scores, View same) {
  Str key;
  void *op;
  CausalBand a = scores_unmasked(scores), b = scores_unmasked(same);
  g->band = (CausalBand){MIN(a.lo, b.lo), MAX(a.hi, b.hi)};
  if (!causal_divide(g) || !rows_see_something(scores)) return false;
  causal_add(g, scores);
  if (same.v != scores.v) causal_add(g, same);
  if (!gather(g, u)) return false;
  for (int i = 0; map_at(g->results, i, &key, &op); i++)
    if (!is_result(g, op)) return false;
  return true;
}

static void compute_in_blocks(CausalGroup *g, Module *m, Region *r, const Op *first) {
  typedef struct Replaced {
    Value *from, *to;
  } Replaced;
  VEC(Replaced) all = {0};
  for (Op *op = (Op *)first; op; op = op->next) {
    if (!causal_is_result(g, op)) continue;
    Build b = {.m = m, .r = r, .loc = op->loc};
    Op *end = r->last;
    g->b = &b;
    *vec_push(&all) = (Replaced){op->results, causal_result(g, op)};
    compile_move_built(end, op);
  }
  /* parts are made of what was there before */
  for (int i = 0; i < all.n; i++) value_replace_all(r->func, all.v[i].from, all.v[i].to);
  vec_free(&all);
}

/* The exponential of scores less their maximum? */
static const Op *maximum_of(const Op *op) {
  const Op *minus = op->kind == OP_EXPONENTIAL ? op->operands[0]->def : NULL;
  if (!minus || minus->kind != OP_SUBTRACT || minus->parent != op->parent) return NULL;
  const Value *x = minus->operands[0];
  const Op *max = max_of_rows(minus->operands[1]);
  return max && max->parent == op->parent && same_scores(max->operands[0], x) &&
                 type_is_static(x->type) && x->def && x->type->rank <= B_MAX_RANK &&
                 dtype_is_float(x->type->dtype)
             ? max
             : NULL;
}

/* exp(y - max) */
static void rewrite(Module *m, Region *r, const Op *max, Value *y, Uses *u) {
  const int64_t *dims;
  Value *x = max->operands[0];
  if (op_ints(max, "dimensions", &dims) != 1) return;
  for (int rows = 0; rows < x->type->rank; rows++) {
    CausalGroup g = {.r = r, .n_rows = x->type->dims[rows], .n_cols = x->type->dims[dims[0]]};
    if (rows == dims[0] || g.n_rows < 2 * LEAST_ROWS) continue;
    if (!u->all.n) *u = uses_of(r, OP_COUNT);
    g.places = map_new();
    g.results = map_new();
    bool found = is_group(&g, u, (View){x, rows, (int)dims[0]}, (View){y, rows, (int)dims[0]});
    if (found) compute_in_blocks(&g, m, r, r->first);
    causal_free(&g);
    if (found) return;
  }
}

static void walk(Module *m, Region *r) {
  Uses u = {0};
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i]);
    const Op *max = maximum_of(op);
    if (max) rewrite(m, r, max, op->operands[0]->def->operands[0], &u);
  }
  vec_free(&u.all);
}

Err *pass_causal_blocks(Module *m) {
  walk(m, module_main(m)->body);
  masks_forget();
  return NULL;
}
