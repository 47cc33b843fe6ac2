/* Elementary functions on f32 as straight code: range reduction and polynomials fitted for weft (least
 * squares reweighted to minimax, in double; the fit's error stands beside each). Measured against
 * double precision over all finite inputs (math_test.c):
 *
 *   exp 1 ulp   expm1 2   log 1   log1p 2   tanh 4   logistic 3   erf 5   erfc 5   atan2 2
 *
 * All lanes go the same way: special values by selects. Written in the words of whoever includes it:
 * math.c makes instructions of them, vinterp_simd.h computes. */

#define POLY(r, x, c)            \
  F r = K((c)[COUNT_OF(c) - 1]); \
  for (int i_ = (int)COUNT_OF(c) - 2; i_ >= 0; i_--) (r) = FMA(r, x, K((c)[i_]))

#define ROUNDER 0x1.8p23 /* added and taken away: the nearest integer, in the low bits meanwhile */

/* min and max that keep a NaN x */
PART(at_most, F x, double top) { return PICK(MORE(x, K(top)), K(top), x); }
PART(at_least, F x, double low) { return PICK(LESS(x, K(low)), K(low), x); }

/* 2^n for integer n in [-126, 127] */
PART(pow2, I n) { return FROM_BITS(SHL_I(ADD_I(n, KI(127)), 23)); }

/* x - n ln 2, ln 2 in two parts of which the first leaves no error */
PART(less_twos, F x, F n) {
  return FMA(n, K(-1.42860682030941723212e-6), FMA(n, K(-0.693145751953125), x));
}

/* e^r - 1 for r = x - n ln 2, |r| <= ln 2 / 2 */
PART(exp_near_zero, F x, F n) {
  /* (e^r - 1 - r) / r^2 on [-0.35, 0.35], relative error of e^r 3.4e-9 */
  static const double c[] = {5.000000101e-01, 1.666651289e-01, 4.166618728e-02, 8.369598410e-03,
                             1.395171725e-03};
  F r = CALL(less_twos, x, n), r2 = MUL(r, r);
  POLY(p, r, c);
  return FMA(p, r2, r);
}

/* The exponent is added to the bits of e^r; n comes from an addition that leaves it in the low bits.
 * What passes the largest number is made infinite; below -87.8 the exponent is that of denormal numbers,
 * which the last addition takes for zero, as it keeps a NaN. */
FORM(exp, F x) {
  /* e^r on [-0.347, 0.347], relative error 3.1e-9 */
  static const double c[] = {
      1, 1, 4.999999404e-01, 1.666652113e-01, 4.166828096e-02, 8.368690498e-03, 1.381949056e-03};
  F y = CALL(at_least, CALL(at_most, x, 89.0), -87.8);
  F t = FMA(y, K(1.4426950408889634), K(ROUNDER)), n = SUB(t, K(ROUNDER));
  F r = CALL(less_twos, y, n);
  POLY(e, r, c);
  I bits = ADD_I(BITS(e), SHL_I(BITS(t), 23));
  bits = PICK_I(MORE_I(bits, KI(0x7f800000)), KI(0x7f800000), bits);
  return ADD(FROM_BITS(bits), SUB(n, n));
}

FORM(expm1, F x) {
  F bounded = CALL(at_least, CALL(at_most, x, 89.0), -20.0);
  MASK nan = IS_NAN(x);
  bounded = PICK(nan, K(0), bounded);
  F whole = RINT(MUL(bounded, K(1.4426950408889634)));
  F em1 = CALL(exp_near_zero, bounded, whole);
  I n = TO_INT(whole);
  /* 2^n (e^r - 1) + (2^n - 1); one factor of two is kept for the end so that 2^128 does not come up
   */
  MASK top = MORE_I(n, KI(126));
  n = PICK_I(top, SUB_I(n, KI(2)), n);
  F t = CALL(pow2, n);
  F one = PICK(top, K(0.25), K(1));
  F r = FMA(em1, t, SUB(t, one));
  r = MUL(r, PICK(top, K(4), K(1)));
  MASK zero = EQUAL(x, K(0));
  return PICK(EITHER(nan, zero), x, r);
}

FORM(log, F x) {
  /* (log(1 + f) - f + f^2 / 2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1], relative error of log 7.3e-10
   */
  static const double c[] = {3.333331044e-01,  -2.499998660e-01, 2.000222661e-01,
                             -1.666925082e-01, 1.421865809e-01,  -1.238434848e-01,
                             1.187297630e-01,  -1.178980764e-01, 6.915367972e-02};
  MASK tiny = LESS(x, K(1.1754943508222875e-38));
  I bits = BITS(PICK(tiny, MUL(x, K(8388608.0)), x));
  /* exponent such that the mantissa lies in [sqrt(1/2), sqrt(2)) */
  I e = SAR_I(SUB_I(bits, KI(0x3f3504f3)), 23);
  F m = FROM_BITS(SUB_I(bits, SHL_I(e, 23)));
  F n = TO_FLOAT(e);
  n = SUB(n, PICK(tiny, K(23), K(0)));
  F f = SUB(m, K(1)), f2 = MUL(f, f);
  POLY(p, f, c);
  F r = MUL(MUL(p, f), f2);
  r = FMA(n, K(-2.12194440054690582767e-4), r);
  r = FMA(f2, K(-0.5), r);
  r = ADD(f, r);
  r = FMA(n, K(0.693359375), r);
  r = PICK(EQUAL(x, K(INFINITY)), K(INFINITY), r);
  r = PICK(EQUAL(x, K(0)), K(-INFINITY), r);
  return PICK(NOT_AT_LEAST(x, K(0)), K(NAN), r);
}

/* log(u) x / (u - 1) with u = 1 + x rounded: the roundings cancel */
FORM(log1p, F x) {
  F u = ADD(x, K(1)), d = SUB(u, K(1)), l = FORM_CALL(log, u);
  F q = MUL(l, DIV(x, d));
  F r = PICK(EQUAL(d, K(0)), x, q);
  return PICK(EITHER(MORE(x, K(1e10)), EQUAL(x, K(-1))), l, r);
}

/* x P(x^2) / Q(x^2) on |x| < 8, the rational approximation that Eigen and XLA use, with fused
 * multiply-adds: bit for bit what XLA's CPU backend answers (checked on 200,001 points), which
 * matters where 1 - tanh^2 cancels. */
FORM(tanh, F x) {
  static const double p[] = {4.89352455891786e-03, 6.37261928875436e-04,  1.48572235717979e-05,
                             5.12229709037114e-08, -8.60467152213735e-11, 2.00018790482477e-13,
                             -2.76076847742355e-16};
  static const double q[] = {4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04,
                             1.19825839466702e-06};
  F y = CALL(at_least, CALL(at_most, x, 7.99881172180175781), -7.99881172180175781);
  F t = MUL(y, y);
  POLY(above, t, p);
  POLY(below, t, q);
  F r = DIV(MUL(y, above), below);
  return PICK(LESS(ABS(x), K(0.0004)), x, r);
}

FORM(logistic, F x) {
  F e = FORM_CALL(exp, NEG(x));
  return DIV(K(1), ADD(e, K(1)));
}

FORM(erf, F x) {
  /* erf(x) / x = P(x^2) / Q(x^2) for |x| <= 3.95, relative error 2.1e-8; beyond 3.925 it is 1 in
   * f32 */
  static const double p[] = {1.128379144e+00, 1.915487052e-01, 5.287519746e-02,
                             3.808082510e-03, 2.846843532e-04, 2.025900114e-06};
  static const double q[] = {1.000000000e+00, 5.030882962e-01, 1.145589270e-01,
                             1.505493278e-02, 1.170703579e-03, 3.783154055e-05};
  F y = CALL(at_least, CALL(at_most, x, 3.925), -3.925);
  F t = MUL(y, y);
  POLY(above, t, p);
  POLY(below, t, q);
  F r = DIV(MUL(y, above), below);
  return CALL(at_least, CALL(at_most, r, 1), -1);
}

/* exp(-x^2) t P(|x| t) with t = 1 / (1 + 0.6 |x|), relative error 2.9e-9; 2 minus it for negative x.
 * What x^2 loses by rounding is put back: the exponential would make much of it. That is of x itself, not
 * of a, so that it is one with the gradient's exp(-x^2) (of GELU, too), beside which it mostly stands. */
FORM(erfc, F x) {
  static const double c[] = {1.000000003e+00,  -5.283793883e-01, 5.947216543e-03,  4.510303838e-02,
                             9.117016684e-03,  -1.586406355e-03, -4.443146453e-03, 3.120038940e-03,
                             -3.418236584e-03, 1.906899663e-03,  -3.511248372e-04};
  F a = CALL(at_most, ABS(x), 11.0);
  F t = DIV(K(1), FMA(a, K(0.6), K(1))), at = MUL(a, t);
  POLY(y, at, c);
  F e = FORM_CALL(exp, NEG(MUL(x, x)));
  e = FMA(e, FMA(NEG(a), a, MUL(a, a)), e);
  F r = MUL(e, MUL(t, y));
  return PICK(LESS(x, K(0)), SUB(K(2), r), r);
}

/* x P(w) with w = -log(1 - x^2), P in two parts, of w and of its root: the error of erf(result) below 3e-7 of
 * what is left to 1. (Giles, "Approximating the erfinv function", 2011.) */
FORM(erf_inv, F x) {
  static const double near[] = {1.50140941,     0.246640727,    -0.00417768164,
                                -0.00125372503, 0.000218580870, -4.39150654e-6,
                                -3.5233877e-6,  3.43273939e-7,  2.81022636e-8};
  static const double far[] = {2.83297682,    1.00167406,     0.00943887047,
                               -0.0076224613, 0.00573950773,  -0.00367342844,
                               0.00134934322, 0.000100950558, -0.000200214257};
  F a = ABS(x), left = MUL(SUB(K(1), a), ADD(K(1), a)), w = NEG(FORM_CALL(log, left));
  MASK small = LESS(w, K(5));
  F t = PICK(small, SUB(w, K(2.5)), SUB(SQRT(w), K(3)));
  F p = PICK(small, K(near[8]), K(far[8]));
  for (int i = 7; i >= 0; i--) p = FMA(p, t, PICK(small, K(near[i]), K(far[i])));
  return MUL(x, PICK(EQUAL(a, K(1)), K(INFINITY), p));
}

/* q = min / max of |x|, |y| and atan q = q + q^3 P(q^2), relative error 2.6e-9; then by octants. */
FORM(atan2, F y, F x) {
  static const double c[] = {-0.3333329909, 0.1999854827,   -0.1426424157,
                             0.1095218521,  -0.08403448666, 0.05795756494,
                             -0.0311778172, 0.01091459031,  -0.00179361825};
  F a = ABS(x), b = ABS(y);
  MASK steep = MORE(b, a);
  F m = PICK(steep, b, a), n = PICK(steep, a, b);
  F q = DIV(n, PICK(EQUAL(m, K(0)), K(1), m));
  q = PICK(EQUAL(n, K(INFINITY)), K(1), q);
  F t = MUL(q, q);
  POLY(p, t, c);
  F r = FMA(MUL(q, t), p, q);
  r = PICK(steep, ADD(SUB(K(1.57079637050628662), r), K(-4.37113882867379e-8)), r);
  MASK left = LESS_I(BITS(x), KI(0));
  r = PICK(left, ADD(SUB(K(3.14159274101257324), r), K(-8.74227765734758e-8)), r);
  r = PICK(LESS_I(BITS(y), KI(0)), NEG(r), r);
  return PICK(EITHER(IS_NAN(x), IS_NAN(y)), ADD(x, y), r);
}

#undef POLY
#undef ROUNDER
