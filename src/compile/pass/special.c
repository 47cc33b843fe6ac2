/* pass_special: erfc and the inverse of erf of f32, which front ends write out as polynomials, become one
 * operation again: generated code has a shorter formula, and less of it. Recognised by what it computes: an
 * expression of one value that begins with a choice by |x| and is the function at every point tried. */
#include <math.h>
#include <stdlib.h>

#include "compile/pass/pass_priv.h"

#define MAX_TERMS 160 /* operations of an expression */
#define POINTS 48
#define TOLERANCE 1e-5

typedef struct Term {
  const Value *v;
  double at[POINTS];
} Term;
typedef struct Expression {
  Term *terms;
  int n;
} Expression;

/* erfc: x[point] < 9, beyond it the formulas begin to give zero. */
static double erfc_point(int i) { return -5.0 + 13.7 * i / (POINTS - 1); }
static bool is_erfc(double x, double y) { return fabs(y - erfc(x)) <= TOLERANCE * erfc(x); }

/* The inverse of erf, near to both its ends, where what is left to 1 tells more. */
static double inverse_point(int i) {
  double t = i - (POINTS - 1) / 2.0, left = pow(0.55, fabs(t));
  return t < 0 ? left - 1 : 1 - left;
}
static bool is_inverse(double x, double y) {
  double left = 1 - fabs(x), got = erfc(fabs(y));
  return (x < 0) == (y < 0) && fabs(got - left) <= 10 * TOLERANCE * left;
}

static const struct Special {
  OpKind kind;
  double bound; /* of |x| in the outermost choice */
  const char *choice;
  double (*point)(int i);
  bool (*fits)(double x, double y);
} specials[] = {
    {OP_CHLO_ERFC, 1, "LT", erfc_point, is_erfc},
    {OP_CHLO_ERF_INV, 1, "EQ", inverse_point, is_inverse},
};

static bool holds(const Op *op, double a, double b) {
  Str dir = op_str(op, "comparison_direction");
  if (str_is(dir, "LT")) return a < b;
  if (str_is(dir, "LE")) return a <= b;
  if (str_is(dir, "GT")) return a > b;
  if (str_is(dir, "GE")) return a >= b;
  return str_is(dir, "EQ") ? a == b : a != b;
}

static bool result_at(const Op *op, const double *x, double *out) {
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM: *out = x[0]; return true;
  case OP_ABS: *out = fabs(x[0]); return true;
  case OP_NEGATE: *out = -x[0]; return true;
  case OP_EXPONENTIAL: *out = exp(x[0]); return true;
  case OP_LOG: *out = log(x[0]); return true;
  case OP_LOG_PLUS_ONE: *out = log1p(x[0]); return true;
  case OP_SQRT: *out = sqrt(x[0]); return true;
  case OP_ADD: *out = x[0] + x[1]; return true;
  case OP_SUBTRACT: *out = x[0] - x[1]; return true;
  case OP_MULTIPLY: *out = x[0] * x[1]; return true;
  case OP_DIVIDE: *out = x[0] / x[1]; return true;
  case OP_COMPARE: *out = holds(op, x[0], x[1]); return true;
  case OP_SELECT: *out = x[0] != 0 ? x[1] : x[2]; return true;
  default: return false;
  }
}

/* The term of a value, made when there is none yet; -1: not an expression of what is there. */
static int term_of(Expression *e, const Value *v) {
  for (int i = 0; i < e->n; i++)
    if (e->terms[i].v == v) return i;
  const Op *op = v->def;
  const void *splat = value_splat(v);
  int in[3] = {0};
  if (!op || (!splat && op->n_operands > 3)) return -1;
  for (int k = 0; !splat && k < op->n_operands; k++)
    if ((in[k] = term_of(e, op->operands[k])) < 0) return -1;
  if (e->n == MAX_TERMS || (!splat && op->n_operands == 0)) return -1;
  Term *t = &e->terms[e->n];
  t->v = v;
  for (int i = 0; i < POINTS; i++) {
    double x[3];
    for (int k = 0; k < 3; k++) x[k] = e->terms[in[k]].at[i];
    if (splat) t->at[i] = elem_get_f64(v->type->dtype, splat);
    else if (!result_at(op, x, &t->at[i])) return -1;
  }
  return e->n++;
}

/* x of select(|x| < bound, ..) */
static Value *chosen_by(const Op *op, const struct Special *s) {
  const Op *test = op->kind == OP_SELECT ? op->operands[0]->def : NULL;
  if (!test || test->kind != OP_COMPARE || !str_is(op_str(test, "comparison_direction"), s->choice))
    return NULL;
  const Op *size = test->operands[0]->def;
  const void *bound = value_splat(test->operands[1]);
  if (!size || size->kind != OP_ABS || !bound || op_type(op)->dtype != DT_F32) return NULL;
  Value *x = size->operands[0];
  if (x->type->dtype != DT_F32 || x->type != op_type(op)) return NULL;
  return elem_get_f64(DT_F32, bound) == s->bound ? x : NULL;
}

static bool computes(Expression *e, const Op *op, const Value *x, const struct Special *s) {
  e->n = 1;
  e->terms[0].v = x;
  for (int i = 0; i < POINTS; i++) e->terms[0].at[i] = s->point(i);
  int r = term_of(e, &op->results[0]);
  for (int i = 0; i < POINTS && r >= 0; i++)
    if (!s->fits(s->point(i), e->terms[r].at[i])) return false;
  return r >= 0;
}

static void walk(Module *m, Region *r, Expression *e) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i], e);
    for (int k = 0; k < COUNT_OF(specials); k++) {
      Value *x = chosen_by(op, &specials[k]);
      if (!x || !computes(e, op, x, &specials[k])) continue;
      Type *type = op_type(op);
      Op *one = op_new(m, specials[k].kind, 1, &x, 1, &type, 0, NULL, 0, NULL);
      one->loc = op->loc;
      one->line = op->line;
      one->col = op->col;
      op_insert_before(op, one);
      value_replace_all(r->func, &op->results[0], &one->results[0]);
      break;
    }
  }
}

Err *pass_special(Module *m) {
  Expression e = {.terms = xcalloc(MAX_TERMS, sizeof *e.terms)};
  walk(m, module_main(m)->body, &e);
  free(e.terms);
  return NULL;
}
