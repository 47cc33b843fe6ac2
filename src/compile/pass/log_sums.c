/* log(e^a + e^b) as JAX writes it, and running ones that do not lose with their length. What is combined so far
 * is y and the part of it that its type has no room for (Knuth's two-sum):
 *
 *   max(a, b) + log1p(e^-|a - b|)         each step rounds to y's digits, 3000 of them to 30 times that
 */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

/* ---- what adds logarithms ---- */

static const Value *only_operand(const Value *v, OpKind k) {
  return v && v->def && v->def->kind == k && v->def->n_operands == 1 ? v->def->operands[0] : NULL;
}

static bool is_pair(const Value *v, OpKind k, const Value *a, const Value *b) {
  const Op *op = v->def;
  return op && op->kind == k &&
         ((op->operands[0] == a && op->operands[1] == b) ||
          (k != OP_SUBTRACT && op->operands[0] == b && op->operands[1] == a));
}

/* log1p(e^-|a - b|) */
static bool is_increment(const Value *v, const Value *a, const Value *b) {
  v = only_operand(v, OP_LOG_PLUS_ONE);
  v = only_operand(v, OP_EXPONENTIAL);
  v = only_operand(v, OP_NEGATE);
  v = only_operand(v, OP_ABS);
  return v && (is_pair(v, OP_SUBTRACT, a, b) || is_pair(v, OP_SUBTRACT, b, a));
}

/* Where a - b is no number, the sum: NaN, or the infinity that both are. */
static const Value *where_finite(const Value *v, const Value *a, const Value *b) {
  const Op *op = v->def, *test = op && op->kind == OP_SELECT ? op->operands[0]->def : NULL;
  bool is = test && test->kind == OP_COMPARE && test->operands[0] == test->operands[1] &&
            str_is(op_str(test, "comparison_direction"), "NE") &&
            (is_pair(test->operands[0], OP_SUBTRACT, a, b) ||
             is_pair(test->operands[0], OP_SUBTRACT, b, a)) &&
            is_pair(op->operands[1], OP_ADD, a, b);
  return is ? op->operands[2] : NULL;
}

bool region_adds_logs(const Region *r) {
  if (r->n_args != 2 || r->last->n_operands != 1) return false;
  const Value *a = r->args[0], *b = r->args[1], *v = where_finite(r->last->operands[0], a, b);
  const Op *op = v ? v->def : NULL;
  if (!dtype_is_float(a->type->dtype) || !op || op->kind != OP_ADD) return false;
  for (int k = 0; k < 2; k++)
    if (is_pair(op->operands[k], OP_MAXIMUM, a, b) && is_increment(op->operands[1 - k], a, b))
      return true;
  return false;
}

/* ---- a step ---- */

Value *add_log(Build *b, Value **y, Value **low, Value *x) {
  Value *none = b_full(b, x->type, 0), *d = b_add(b, b_sub(b, *y, x), *low);
  Value *more = b_log1p(b, b_exp(b, b_neg(b, b_abs(b, d))));
  Value *most = b_max(b, *y, x), *sum = b_add(b, most, more), *part = b_sub(b, sum, most);
  Value *rest = b_select(b, b_compare(b, "GE", *y, x), *low, none);
  Value *lost = b_add(b, b_sub(b, most, b_sub(b, sum, part)), b_sub(b, more, part));
  lost = b_add(b, lost, rest);
  *y = b_select(b, b_compare(b, "EQ", d, d), sum, b_add(b, *y, x));
  *low = b_select(b, b_compare(b, "EQ", lost, lost), lost, none); /* infinity lacks nothing */
  return b_add(b, *y, *low);
}
