/* Functions of complex numbers x + iy written in their parts. Formulas are chosen so that nothing
 * cancels that need not and nothing overflows on the way; branch cuts and special values are those of
 * C's Annex G, and where XLA differs XLA's, as in interp/ewise_complex.c. Parts of f32 are computed in
 * f64: what cancels in f32 is exact there, and results are rounded once. */
#include "compile/pass/lower_complex.h"

#include <math.h>

#define LOG_2 0.69314718055994530942
#define HALF_PI 1.57079632679489661923

/* ---- real arithmetic ---- */

static Value *same(Build *b, const Value *x, double v) { return b_full(b, x->type, v); }
static Value *square(Build *b, Value *x) { return b_mul(b, x, x); }
static Value *expm1_of(Build *b, Value *x) { return b_unary(b, OP_EXPONENTIAL_MINUS_ONE, x); }
static Value *angle(Build *b, Value *y, Value *x) { return b_binary(b, OP_ATAN2, y, x); }
static Value *compared(Build *b, Value *x, const char *how, double v) {
  return b_compare(b, how, x, same(b, x, v));
}

static Value *is_negative(Build *b, Value *x) { /* -0 is */
  Type *t = b_type_as(b, x->type, b_dtype(x) == DT_F64 ? DT_I64 : DT_I32);
  Value *bits = &b_op(b, OP_BITCAST_CONVERT, 1, &x, 1, &t, 0, NULL, 0, NULL)->results[0];
  return b_compare(b, "LT", bits, b_full(b, t, 0));
}

static Value *signed_as(Build *b, Value *x, Value *like) { /* x, or -x where `like` is negative */
  return b_select(b, is_negative(b, like), b_neg(b, x), x);
}

/* x y, but zero times what is not finite is zero. */
static Value *times(Build *b, Value *x, Value *y) {
  Value *p = b_mul(b, x, y), *zero = b_select(b, compared(b, y, "EQ", 0), y, p);
  zero = b_select(b, compared(b, x, "EQ", 0), x, zero);
  return b_select(b, b_compare(b, "EQ", p, p), p, zero);
}

/* Both for x >= 0; to all digits where x is near zero. */
static void hyperbolic(Build *b, Value *x, Value **sinh, Value **cosh) {
  Value *m = expm1_of(b, x), *e = b_adds(b, m, 1), *far = b_min(b, m, same(b, m, 1e300));
  Value *back = b_div(b, far, b_adds(b, far, 1)); /* 1 - e^-x */
  *sinh = b_muls(b, b_add(b, m, back), 0.5);
  *cosh = b_muls(b, b_add(b, e, b_div(b, same(b, e, 1), e)), 0.5);
}

/* ---- what others are made from ---- */

static Pair swapped(Pair x) { return (Pair){x.im, x.re}; }

static Pair polar(Build *b, Value *log_r, Value *phi) { /* e^(log_r + i phi) */
  Value *r = b_exp(b, log_r), *real = compared(b, phi, "EQ", 0);
  return (Pair){b_mul(b, r, b_cos(b, phi)), b_select(b, real, phi, b_mul(b, r, b_sin(b, phi)))};
}

/* log |x + iy|: near one from the distance to it, else from the larger part. */
static Value *log_abs(Build *b, Pair z) {
  Value *re = b_abs(b, z.re), *im = b_abs(b, z.im);
  Value *m = b_max(b, re, im), *n = b_min(b, re, im);
  Value *near = b_and(b, compared(b, m, "GE", 0.5), compared(b, m, "LE", 1.5));
  Value *off = b_add(b, b_mul(b, b_adds(b, m, -1), b_adds(b, m, 1)), square(b, n));
  Value *r = b_select(b, b_compare(b, "EQ", m, n), same(b, m, 1), b_div(b, n, m));
  Value *rest = b_muls(b, b_log1p(b, b_select(b, near, off, square(b, r))), 0.5);
  return b_add(b, b_select(b, near, same(b, m, 0), b_log(b, m)), rest);
}

/* ---- exponentials, logarithms, powers ---- */

static Pair f_log(Build *b, Pair z) { return (Pair){log_abs(b, z), angle(b, z.im, z.re)}; }

/* e^x cos y - 1 = (e^x - 1) cos y - 2 sin(y / 2)^2 */
static Pair f_expm1(Build *b, Pair z) {
  Value *m = expm1_of(b, z.re), *real = compared(b, z.im, "EQ", 0);
  Value *s = b_sin(b, b_muls(b, z.im, 0.5));
  Value *re = b_sub(b, b_mul(b, m, b_cos(b, z.im)), b_muls(b, square(b, s), 2));
  Value *im = b_mul(b, b_exp(b, z.re), b_sin(b, z.im));
  return (Pair){b_select(b, real, m, re), b_select(b, real, z.im, im)};
}

/* a + b without rounding: the sum, and what it leaves out (Knuth). */
static Value *two_sum(Build *b, Value *x, Value *y, Value **rest) {
  Value *s = b_add(b, x, y), *t = b_sub(b, s, x);
  *rest = b_add(b, b_sub(b, x, b_sub(b, s, t)), b_sub(b, y, t));
  return s;
}

/* x^2 likewise, by halves of the digits of f64 (Dekker). */
static Value *two_square(Build *b, Value *x, Value **rest) {
  Value *p = square(b, x), *c = b_muls(b, x, 134217729.0);
  Value *high = b_sub(b, c, b_sub(b, c, x)), *low = b_sub(b, x, high);
  Value *both = b_muls(b, b_mul(b, high, low), 2);
  *rest = b_add(b, b_add(b, b_sub(b, square(b, high), p), both), square(b, low));
  return p;
}

/* log |1 + z| = log1p(2x + x^2 + y^2) / 2, whose terms may cancel. */
static Pair f_log1p(Build *b, Pair z) {
  Value *rest[4], *u = b_adds(b, z.re, 1);
  Value *xx = two_square(b, z.re, &rest[0]), *yy = two_square(b, z.im, &rest[1]);
  Value *s = two_sum(b, b_muls(b, z.re, 2), xx, &rest[2]);
  s = two_sum(b, s, yy, &rest[3]);
  s = b_add(b, s, b_add(b, b_add(b, rest[2], rest[3]), b_add(b, rest[0], rest[1])));
  Value *most = b_max(b, b_abs(b, z.re), b_abs(b, z.im));
  Value *near = b_and(b, compared(b, s, "GE", -0.5), compared(b, most, "LE", 1e9));
  Value *re = b_select(b, near, b_muls(b, b_log1p(b, s), 0.5), log_abs(b, (Pair){u, z.im}));
  return (Pair){re, angle(b, z.im, u)};
}

/* With d = |1 + e^-z|^2 = (1 - e^-|x|)^2 + 4 e^-|x| cos(y / 2)^2, for x < 0 of e^z. */
static Pair f_logistic(Build *b, Pair z) {
  Value *back = b_neg(b, b_abs(b, z.re)), *e = b_exp(b, back), *m = expm1_of(b, back);
  Value *h = square(b, b_cos(b, b_muls(b, z.im, 0.5))), *eh = b_mul(b, e, h);
  Value *d = b_add(b, square(b, m), b_muls(b, eh, 4));
  Value *right = b_sub(b, b_muls(b, eh, 2), m);            /* 1 + e cos y */
  Value *left = b_mul(b, e, b_add(b, b_muls(b, h, 2), m)); /* e (e + cos y) */
  Value *re = b_select(b, compared(b, z.re, "LT", 0), left, right);
  return (Pair){b_div(b, re, d), b_div(b, b_mul(b, e, b_sin(b, z.im)), d)};
}

/* |x|^c e^(-d arg x) cis(c arg x + d log |x|) for y = c + id */
static Pair f_power(Build *b, Pair x, Pair y) {
  Pair l = f_log(b, x);
  Value *log_r = b_mul(b, y.re, l.re), *phi = b_mul(b, y.re, l.im);
  bool real = pair_is_real(y);
  if (!real) {
    Value *none = compared(b, y.im, "EQ", 0), *zero = same(b, y.im, 0);
    log_r = b_sub(b, log_r, b_select(b, none, zero, b_mul(b, y.im, l.im)));
    phi = b_add(b, phi, b_select(b, none, zero, b_mul(b, y.im, l.re)));
  }
  Pair z = polar(b, log_r, phi);
  Value *nan = same(b, y.re, NAN), *one = same(b, y.re, 1), *zero = same(b, y.re, 0);
  Value *root = b_and(b, compared(b, x.re, "EQ", 0), compared(b, x.im, "EQ", 0));
  Value *up = compared(b, y.re, "GT", 0), *flat = compared(b, y.re, "EQ", 0);
  if (!real) {
    Value *none = compared(b, y.im, "EQ", 0);
    up = b_and(b, up, none), flat = b_and(b, flat, none);
  }
  Value *of_zero = b_select(b, up, zero, nan);
  z = pair_select(b, root, (Pair){of_zero, of_zero}, z);
  return pair_select(b, flat, (Pair){one, zero}, z);
}

static Pair f_cbrt(Build *b, Pair z) {
  Pair l = f_log(b, z), r = polar(b, b_muls(b, l.re, 1.0 / 3), b_muls(b, l.im, 1.0 / 3));
  Value *zero = b_and(b, compared(b, z.re, "EQ", 0), compared(b, z.im, "EQ", 0));
  return pair_select(b, zero, z, r);
}

/* With m the larger part: sqrt((|x| + |z|) / 2) is one part, and half of y over it the other. */
static Pair f_sqrt(Build *b, Pair z) {
  Value *x = b_abs(b, z.re), *y = b_abs(b, z.im), *m = b_max(b, x, y);
  Value *wide = b_compare(b, "GE", x, y), *r = b_div(b, b_min(b, x, y), m);
  Value *size = b_sqrt(b, b_adds(b, square(b, r), 1));
  Value *half = b_muls(b, b_add(b, b_select(b, wide, same(b, x, 1), r), size), 0.5);
  Value *u = b_mul(b, b_sqrt(b, m), b_sqrt(b, half)), *v = b_div(b, b_muls(b, y, 0.5), u);
  Value *infinite = same(b, x, INFINITY), *far = b_compare(b, "EQ", x, infinite);
  u = b_select(b, far, x, u);
  Value *of_far = b_select(b, b_compare(b, "EQ", y, y), same(b, x, 0), y);
  v = b_select(b, far, of_far, v);
  Value *left = is_negative(b, z.re), *zero = compared(b, m, "EQ", 0);
  Pair s = {b_select(b, left, v, u), signed_as(b, b_select(b, left, u, v), z.im)};
  s = pair_select(b, zero, (Pair){same(b, x, 0), z.im}, s);
  return pair_select(b, b_compare(b, "EQ", y, infinite), (Pair){infinite, z.im}, s);
}

static Pair f_rsqrt(Build *b, Pair z) {
  return pair_divide(b, (Pair){same(b, z.re, 1), same(b, z.im, 0)}, f_sqrt(b, z));
}

/* ---- hyperbolic functions; circular ones are those of iz ---- */

static Pair f_sinh(Build *b, Pair z) {
  Value *s, *c;
  hyperbolic(b, b_abs(b, z.re), &s, &c);
  return (Pair){times(b, signed_as(b, s, z.re), b_cos(b, z.im)), times(b, b_sin(b, z.im), c)};
}

static Pair f_cosh(Build *b, Pair z) {
  Value *s, *c;
  hyperbolic(b, b_abs(b, z.re), &s, &c);
  return (Pair){b_mul(b, c, b_cos(b, z.im)), times(b, b_sin(b, z.im), signed_as(b, s, z.re))};
}

static Pair f_sin(Build *b, Pair z) { return swapped(f_sinh(b, swapped(z))); }
static Pair f_cos(Build *b, Pair z) { return f_cosh(b, (Pair){b_neg(b, z.im), z.re}); }

/* (sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y): a sum of what is not negative. */
static Pair f_tanh(Build *b, Pair z) {
  const double far = 350; /* sinh^2 is finite, what is divided by it next to nothing */
  Value *s, *c, *x = b_abs(b, z.re);
  hyperbolic(b, b_min(b, x, same(b, x, far)), &s, &c);
  Value *sin = b_sin(b, z.im), *cos = b_cos(b, z.im);
  Value *d = b_add(b, square(b, s), square(b, cos)), *im = b_div(b, b_mul(b, sin, cos), d);
  im = b_select(b, compared(b, z.im, "EQ", 0), z.im, im);
  im = b_select(b, compared(b, x, "GT", far), b_muls(b, im, 0), im);
  return (Pair){signed_as(b, b_div(b, b_mul(b, s, c), d), z.re), im};
}

static Pair f_tan(Build *b, Pair z) { return swapped(f_tanh(b, swapped(z))); }

/* ---- inverse functions ---- */

/* Of x, y >= 0 (Hull, Fairgrieve, Tang 1997): with a = (|z + 1| + |z - 1|) / 2, acos z is
 * atan2(*d, x) - i log(a + sqrt(a^2 - 1)), and asin z its complement. */
static Value *inverse(Build *b, Value *x, Value *y, Value **d) {
  Value *right = b_adds(b, x, 1), *left = b_adds(b, x, -1), *yy = square(b, y);
  Value *r = pair_abs(b, (Pair){right, y}), *s = pair_abs(b, (Pair){left, y});
  Value *a = b_muls(b, b_add(b, r, s), 0.5), *ax = b_muls(b, b_add(b, a, x), 0.5);
  Value *inside = compared(b, x, "LE", 1);
  Value *low = b_div(b, yy, b_add(b, r, right)); /* r - (x + 1) */
  Value *gap = b_add(b, s, b_abs(b, left));      /* s + |x - 1|; times s - |x - 1|: y^2 */
  Value *shared =
      b_select(b, inside, b_add(b, low, gap),
               b_add(b, b_div(b, same(b, x, 1), b_add(b, r, right)), b_div(b, same(b, x, 1), gap)));
  Value *root = b_sqrt(b, b_mul(b, ax, shared));
  *d = b_select(b, inside, root, b_mul(b, y, root));
  Value *high = b_select(b, inside, b_div(b, yy, gap), gap); /* s - (1 - x) */
  high = b_select(b, compared(b, yy, "EQ", 0), b_max(b, b_muls(b, left, 2), same(b, x, 0)), high);
  Value *m = b_muls(b, b_add(b, low, high), 0.5); /* a - 1 */
  Value *log = b_log1p(b, b_add(b, m, b_sqrt(b, b_mul(b, m, b_adds(b, a, 1)))));
  Value *far = compared(b, b_max(b, x, y), "GT", 1e8); /* there the rest has no digit */
  *d = b_select(b, far, y, *d);
  return b_select(b, far, b_adds(b, log_abs(b, (Pair){x, y}), LOG_2), log);
}

static Pair f_asin(Build *b, Pair z) {
  Value *d, *log = inverse(b, b_abs(b, z.re), b_abs(b, z.im), &d);
  return (Pair){angle(b, z.re, d), signed_as(b, log, z.im)};
}

static Pair f_acos(Build *b, Pair z) {
  Value *d, *log = inverse(b, b_abs(b, z.re), b_abs(b, z.im), &d);
  return (Pair){angle(b, d, z.re), signed_as(b, b_neg(b, log), z.im)};
}

static Pair f_acosh(Build *b, Pair z) {
  Value *d, *log = inverse(b, b_abs(b, z.re), b_abs(b, z.im), &d);
  return (Pair){log, signed_as(b, angle(b, d, z.re), z.im)};
}

static Pair f_asinh(Build *b, Pair z) { return swapped(f_asin(b, swapped(z))); }

/* log1p(4x / ((1 - x)^2 + y^2)) / 4 + i atan2(2y, (1 - x)(1 + x) - y^2) / 2 for x >= 0; far away
 * 1 / z and a right angle. */
static Pair f_atanh(Build *b, Pair z) {
  Value *x = b_abs(b, z.re), *y = b_abs(b, z.im), *yy = square(b, y);
  Value *less = b_sub(b, same(b, x, 1), x), *m = b_max(b, x, y);
  Value *q = b_div(b, b_muls(b, x, 4), b_add(b, square(b, less), yy));
  Value *re = b_muls(b, b_log1p(b, q), 0.25);
  Value *im = angle(b, b_muls(b, y, 2), b_sub(b, b_mul(b, less, b_adds(b, x, 1)), yy));
  Value *r = b_div(b, b_min(b, x, y), m);
  Value *inverse_of = b_div(b, b_div(b, x, m), b_mul(b, m, b_adds(b, square(b, r), 1)));
  Value *none = b_compare(b, "EQ", m, same(b, m, INFINITY));
  inverse_of = b_select(b, none, same(b, m, 0), inverse_of);
  Value *far = compared(b, m, "GT", 1e9);
  re = b_select(b, far, inverse_of, re);
  im = b_select(b, far, same(b, m, HALF_PI), b_muls(b, im, 0.5));
  return (Pair){signed_as(b, re, z.re), signed_as(b, im, z.im)};
}

static Pair f_atan(Build *b, Pair z) { return swapped(f_atanh(b, swapped(z))); }

/* ---- the table ---- */

static const struct {
  OpKind kind;
  Pair (*f)(Build *b, Pair z);
} functions[] = {
    {OP_LOG, f_log},           {OP_LOG_PLUS_ONE, f_log1p}, {OP_EXPONENTIAL_MINUS_ONE, f_expm1},
    {OP_LOGISTIC, f_logistic}, {OP_SQRT, f_sqrt},          {OP_RSQRT, f_rsqrt},
    {OP_CBRT, f_cbrt},         {OP_SINE, f_sin},           {OP_COSINE, f_cos},
    {OP_TAN, f_tan},           {OP_TANH, f_tanh},          {OP_CHLO_SINH, f_sinh},
    {OP_CHLO_COSH, f_cosh},    {OP_CHLO_TAN, f_tan},       {OP_CHLO_ASIN, f_asin},
    {OP_CHLO_ACOS, f_acos},    {OP_CHLO_ATAN, f_atan},     {OP_CHLO_ASINH, f_asinh},
    {OP_CHLO_ACOSH, f_acosh},  {OP_CHLO_ATANH, f_atanh},
};

static int function_of(OpKind kind) {
  for (int i = 0; i < COUNT_OF(functions); i++)
    if (functions[i].kind == kind) return i;
  return -1;
}

bool pair_has_function(OpKind kind) { return kind == OP_POWER || function_of(kind) >= 0; }

static Pair converted(Build *b, Pair x, DType t) {
  return (Pair){b_convert(b, x.re, t), b_convert(b, x.im, t)};
}

Pair pair_function(Build *b, OpKind kind, Pair x, Pair y) {
  DType t = b_dtype(x.re);
  bool real = kind == OP_POWER && pair_is_real(y);
  x = converted(b, x, DT_F64);
  if (kind == OP_POWER) y = converted(b, y, DT_F64);
  if (real) y.im = same(b, y.re, 0);
  Pair z = kind == OP_POWER ? f_power(b, x, y) : functions[function_of(kind)].f(b, x);
  return converted(b, z, t);
}
