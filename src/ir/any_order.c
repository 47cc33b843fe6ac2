/* May the terms of a reduction be combined in another order than one after the other? Bodies as they are
 * meant to be take what is theirs of both sides alike: (a, b) -> a + b, the larger, products of complex
 * numbers, means with their counts. (a, b) -> a + b * b is none of these, yet means something where terms
 * come in one by one, as on XLA's CPU backend. */
#include "ir/any_order.h"

/* What a value of the body is made of: the sum so far, the new term. */
enum { OLD = 1, NEW, BOTH };

#define MOST 64

typedef struct Sides {
  const Value *of[2 * MOST];
  int side[2 * MOST], n;
  OpKind alone[2][MOST]; /* operations on one side only */
  int n_alone[2];
} Sides;

static int side_of(const Sides *s, const Value *v) {
  for (int i = 0; i < s->n; i++)
    if (s->of[i] == v) return s->side[i];
  return 0;
}

static void add(Sides *s, const Value *v, int side) {
  s->of[s->n] = v;
  s->side[s->n++] = side;
}

/* Computes a number, where others choose among numbers or carry them. */
static bool computes(const Op *op) {
  if (op->kind == OP_NOT) return !op->operands[0]->def;
  return op->kind != OP_COMPARE && op->kind != OP_SELECT && op->kind != OP_CONVERT &&
         op->kind != OP_REDUCE_PRECISION && op->kind != OP_CONSTANT &&
         op->results[0].type->dtype != DT_I1;
}

static bool turns_with_its_operands(OpKind k) {
  switch (k) {
  case OP_SUBTRACT:
  case OP_DIVIDE:
  case OP_POWER:
  case OP_REMAINDER:
  case OP_ATAN2:
  case OP_SHIFT_LEFT:
  case OP_SHIFT_RIGHT_ARITHMETIC:
  case OP_SHIFT_RIGHT_LOGICAL: return true;
  default: return false;
  }
}

static void take(Sides *s, const Op *op) {
  int side = 0;
  for (int i = 0; i < op->n_operands; i++) side |= side_of(s, op->operands[i]);
  if ((side == OLD || side == NEW) && computes(op))
    s->alone[side - 1][s->n_alone[side - 1]++] = op->kind;
  for (int i = 0; i < op->n_results; i++) add(s, &op->results[i], side);
}

/* One side is treated as the other. */
static bool alike(const Sides *s) {
  if (s->n_alone[0] != s->n_alone[1]) return false;
  bool used[MOST] = {0};
  for (int i = 0, k; i < s->n_alone[0]; i++) {
    for (k = 0; k < s->n_alone[1]; k++)
      if (!used[k] && s->alone[1][k] == s->alone[0][i]) break;
    if (k == s->n_alone[1]) return false;
    used[k] = true;
  }
  return true;
}

/* A result that may be one of two terms or both, but not a difference of theirs, nor what each new term
 * scales or moves again: (a + b) / 2. */
static bool may_be_regrouped(const Sides *s, const Value *v) {
  if (side_of(s, v) != BOTH) return false;
  const Op *op = v->def;
  if (!op || op->n_operands != 2) return true;
  int x = side_of(s, op->operands[0]), y = side_of(s, op->operands[1]);
  if (x && y) return x == y || !turns_with_its_operands(op->kind);
  return op->kind != OP_ADD && op->kind != OP_SUBTRACT && op->kind != OP_MULTIPLY &&
         op->kind != OP_DIVIDE;
}

bool region_any_order(const Region *r) {
  Sides s = {.n = 0};
  if (r->n_args > MOST) return false;
  for (int i = 0; i < r->n_args; i++) add(&s, r->args[i], i < r->n_args / 2 ? OLD : NEW);
  for (const Op *op = r->first; op != r->last; op = op->next) {
    if (s.n + op->n_results > 2 * MOST || s.n_alone[0] == MOST || s.n_alone[1] == MOST)
      return false;
    take(&s, op);
  }
  for (int i = 0; i < r->last->n_operands; i++)
    if (!may_be_regrouped(&s, r->last->operands[i])) return false;
  return alike(&s);
}
