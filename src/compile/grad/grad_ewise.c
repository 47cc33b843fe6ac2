/* Gradient rules of element-wise operations. g: cotangent of the result y; contributions go to
 * the operands. */
#include "compile/grad/grad_priv.h"

#define IN(i) (op->operands[i])
#define Y (&op->results[0])
#define CT grad_cot(g, Y)

static Value *one_like(Build *b, Value *x) { return b_full(b, x->type, 1); }
static Value *zero_like(Build *b, Value *x) { return b_full(b, x->type, 0); }

/* operand 0 gets ct * factor */
static Err *times(Grad *g, Op *op, Value *factor) {
  grad_add(g, IN(0), b_mul(g->b, CT, factor));
  return NULL;
}

Err *vjp_zero(Grad *g, Op *op) {
  (void)g, (void)op;
  return NULL;
}
Err *vjp_pass(Grad *g, Op *op) {
  grad_add(g, IN(0), CT);
  return NULL;
}
Err *vjp_barrier(Grad *g, Op *op) {
  for (int i = 0; i < op->n_operands; i++) {
    Value *ct = grad_cot(g, &op->results[i]);
    if (ct) grad_add(g, IN(i), ct);
  }
  return NULL;
}
/* The same op, on the cotangent: sharding constraints. */
Err *vjp_same_op(Grad *g, Op *op) {
  Value *ct = CT;
  Type *t = Y->type;
  Op *c = b_op(g->b, op->kind, 1, &ct, 1, &t, op->n_attrs, op->attrs, 0, NULL);
  c->name = op->name;
  grad_add(g, IN(0), &c->results[0]);
  return NULL;
}
Err *vjp_custom_call(Grad *g, Op *op) {
  Str target = op_str(op, "call_target_name");
  if (str_is(target, "Sharding") && op->n_operands == 1 && IN(0)->type == Y->type)
    return vjp_same_op(g, op);
  return op_err(op, ERR_UNIMPLEMENTED, "no gradient rule for custom call '%.*s'", STR_ARG(target));
}

Err *vjp_abs(Grad *g, Op *op) { return times(g, op, b_sign(g->b, IN(0))); }
Err *vjp_cosine(Grad *g, Op *op) { return times(g, op, b_neg(g->b, b_sin(g->b, IN(0)))); }
Err *vjp_sine(Grad *g, Op *op) { return times(g, op, b_cos(g->b, IN(0))); }
Err *vjp_exponential(Grad *g, Op *op) { return times(g, op, Y); }
Err *vjp_expm1(Grad *g, Op *op) { return times(g, op, b_adds(g->b, Y, 1)); }
Err *vjp_tan(Grad *g, Op *op) { return times(g, op, b_adds(g->b, b_mul(g->b, Y, Y), 1)); }

Err *vjp_negate(Grad *g, Op *op) {
  grad_add(g, IN(0), b_neg(g->b, CT));
  return NULL;
}
Err *vjp_convert(Grad *g, Op *op) {
  grad_add(g, IN(0), b_convert(g->b, CT, b_dtype(IN(0))));
  return NULL;
}
Err *vjp_log(Grad *g, Op *op) {
  grad_add(g, IN(0), b_div(g->b, CT, IN(0)));
  return NULL;
}
Err *vjp_log1p(Grad *g, Op *op) {
  grad_add(g, IN(0), b_div(g->b, CT, b_adds(g->b, IN(0), 1)));
  return NULL;
}
Err *vjp_cbrt(Grad *g, Op *op) { /* 1 / (3 y^2): infinite at 0, as in JAX, where y / (3 x) is NaN */
  return times(g, op, b_div(g->b, b_full(g->b, Y->type, 1.0 / 3), b_mul(g->b, Y, Y)));
}
Err *vjp_sqrt(Grad *g, Op *op) { return times(g, op, b_div(g->b, b_full(g->b, Y->type, 0.5), Y)); }
Err *vjp_rsqrt(Grad *g, Op *op) { /* -y / (2 x) */
  return times(g, op, b_muls(g->b, b_div(g->b, Y, IN(0)), -0.5));
}
Err *vjp_logistic(Grad *g, Op *op) { /* y (1 - y) */
  return times(g, op, b_mul(g->b, Y, b_sub(g->b, one_like(g->b, Y), Y)));
}
Err *vjp_tanh(Grad *g, Op *op) {
  return times(g, op, b_sub(g->b, one_like(g->b, Y), b_mul(g->b, Y, Y)));
}
Err *vjp_square(Grad *g, Op *op) { return times(g, op, b_muls(g->b, IN(0), 2)); }
Err *vjp_erf(Grad *g, Op *op) { /* 2 / sqrt(pi) exp(-x^2) */
  Build *b = g->b;
  return times(g, op, b_muls(b, b_exp(b, b_neg(b, b_mul(b, IN(0), IN(0)))), 1.1283791670955126));
}

Err *vjp_add(Grad *g, Op *op) {
  Value *ct = CT;
  grad_add(g, IN(0), ct);
  grad_add(g, IN(1), ct);
  return NULL;
}
Err *vjp_subtract(Grad *g, Op *op) {
  Value *ct = CT;
  grad_add(g, IN(0), ct);
  if (grad_active(g, IN(1))) grad_add(g, IN(1), b_neg(g->b, ct));
  return NULL;
}
Err *vjp_multiply(Grad *g, Op *op) {
  Value *ct = CT;
  if (grad_active(g, IN(0))) grad_add(g, IN(0), b_mul(g->b, ct, IN(1)));
  if (grad_active(g, IN(1))) grad_add(g, IN(1), b_mul(g->b, ct, IN(0)));
  return NULL;
}
Err *vjp_divide(Grad *g, Op *op) { /* ct / b and -ct a / b^2 */
  Build *b = g->b;
  Value *q = b_div(b, CT, IN(1));
  grad_add(g, IN(0), q);
  if (grad_active(g, IN(1))) grad_add(g, IN(1), b_neg(b, b_mul(b, q, Y)));
  return NULL;
}

Err *vjp_maxmin(Grad *g, Op *op) {
  Build *b = g->b;
  Value *ct = CT, *x = IN(0), *y = IN(1), *zero = zero_like(b, ct);
  const char *wins = op->kind == OP_MAXIMUM ? "GT" : "LT";
  bool ax = grad_active(g, x), ay = grad_active(g, y);
  if (ax && ay) { /* a tie goes half to each */
    Value *half = b_muls(b, ct, 0.5), *tie = b_compare(b, "EQ", x, y),
          *w = b_compare(b, wins, x, y);
    grad_add(g, x, b_select(b, tie, half, b_select(b, w, ct, zero)));
    grad_add(g, y, b_select(b, tie, half, b_select(b, w, zero, ct)));
  } else if (ax) {
    grad_add(g, x, b_select(b, b_compare(b, wins, x, y), ct, zero));
  } else {
    grad_add(g, y, b_select(b, b_compare(b, wins, y, x), ct, zero));
  }
  return NULL;
}

Err *vjp_power(Grad *g, Op *op) {
  Build *b = g->b;
  Value *ct = CT, *x = IN(0), *y = IN(1);
  if (grad_active(g, x)) { /* y x^(y-1), with 0 where y == 0 */
    Value *y0 = b_compare(b, "EQ", y, zero_like(b, y));
    Value *e = b_select(b, y0, one_like(b, y), b_adds(b, y, -1));
    grad_add(g, x, b_mul(b, ct, b_mul(b, y, b_pow(b, x, e))));
  }
  if (grad_active(g, y)) { /* log(x) x^y, with 0 where x == 0 */
    Value *x0 = b_compare(b, "EQ", x, zero_like(b, x));
    Value *l = b_log(b, b_select(b, x0, one_like(b, x), x));
    grad_add(g, y, b_mul(b, ct, b_mul(b, l, Y)));
  }
  return NULL;
}

Err *vjp_atan2(Grad *g, Op *op) { /* atan2(y, x): x / (x^2 + y^2), -y / (x^2 + y^2) */
  Build *b = g->b;
  Value *y = IN(0), *x = IN(1), *r = b_div(b, CT, b_add(b, b_mul(b, x, x), b_mul(b, y, y)));
  grad_add(g, y, b_mul(b, r, x));
  grad_add(g, x, b_neg(b, b_mul(b, r, y)));
  return NULL;
}

Err *vjp_remainder(Grad *g, Op *op) { /* x - trunc(x / y) y */
  Build *b = g->b;
  Value *ct = CT;
  grad_add(g, IN(0), ct);
  if (grad_active(g, IN(1))) {
    Value *q = b_div(b, IN(0), IN(1));
    Value *t = b_mul(b, b_sign(b, q), b_unary(b, OP_FLOOR, b_abs(b, q)));
    grad_add(g, IN(1), b_neg(b, b_mul(b, ct, t)));
  }
  return NULL;
}

Err *vjp_select(Grad *g, Op *op) {
  Build *b = g->b;
  Value *ct = CT, *zero = zero_like(b, ct);
  if (grad_active(g, IN(1))) grad_add(g, IN(1), b_select(b, IN(0), ct, zero));
  if (grad_active(g, IN(2))) grad_add(g, IN(2), b_select(b, IN(0), zero, ct));
  return NULL;
}

Err *vjp_clamp(Grad *g, Op *op) { /* lo, x, hi; lo and hi may be scalars */
  Build *b = g->b;
  Value *ct = CT, *x = IN(1), *zero = zero_like(b, ct), *lim[2];
  for (int i = 0; i < 2; i++) {
    Value *v = IN(2 * i);
    lim[i] = b_rank(v) == 0 ? b_bcast_scalar(b, v, x->type) : v;
  }
  Value *in = b_and(b, b_compare(b, "GT", x, lim[0]), b_compare(b, "LT", x, lim[1]));
  grad_add(g, x, b_select(b, in, ct, zero));
  for (int i = 0; i < 2; i++) {
    Value *v = IN(2 * i);
    if (!grad_active(g, v)) continue;
    Value *hit = b_select(b, b_compare(b, i ? "GT" : "LT", x, lim[i]), ct, zero);
    grad_add(g, v, b_rank(v) == 0 ? b_reduce_all(b, OP_ADD, hit) : hit);
  }
  return NULL;
}
