/* Elementary functions on f32 vectors as straight code: range reduction and polynomials fitted for
 * weft (least squares reweighted to minimax, in double; the fit's error stands beside each).
 * Measured against double precision over all finite inputs (math_test.c):
 *
 *   exp 1 ulp   expm1 2   log 1   log1p 2   tanh 4   logistic 3   erf 5   erfc 5
 *
 * All lanes go the same way: special values by selects. f64 and the rarer functions call the C
 * library lane by lane. */
#include <math.h>

#include "dev/cpu/emit_priv.h"

#define B g->b

static LLVMValueRef fma3(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMTypeRef t = LLVMTypeOf(a);
  LLVMValueRef args[3] = {a, b, c};
  return gen_intrinsic(g, "llvm.fma", &t, 1, args, 3);
}

static LLVMValueRef one_arg(Gen *g, const char *name, LLVMValueRef x) {
  LLVMTypeRef t = LLVMTypeOf(x);
  return gen_intrinsic(g, name, &t, 1, &x, 1);
}

static LLVMValueRef poly(Gen *g, LLVMValueRef x, const double *c, int n) { /* c[0] + c[1] x + ... */
  LLVMValueRef r = k_f32(g, c[n - 1]);
  for (int i = n - 2; i >= 0; i--) r = fma3(g, r, x, k_f32(g, c[i]));
  return r;
}

static LLVMValueRef as_int(Gen *g, LLVMValueRef x) {
  return LLVMBuildBitCast(B, x, reg_type(g, DT_I32, g->lanes), "");
}
static LLVMValueRef as_float(Gen *g, LLVMValueRef x) {
  return LLVMBuildBitCast(B, x, reg_type(g, DT_F32, g->lanes), "");
}
static LLVMValueRef k_i32(Gen *g, int64_t v) { return k_int(g, DT_I32, v); }

/* min and max that keep a NaN x */
static LLVMValueRef at_most(Gen *g, LLVMValueRef x, double top) {
  LLVMValueRef k = k_f32(g, top);
  return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOGT, x, k, ""), k, x, "");
}
static LLVMValueRef at_least(Gen *g, LLVMValueRef x, double low) {
  LLVMValueRef k = k_f32(g, low);
  return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, x, k, ""), k, x, "");
}

/* 2^n for integer n in [-126, 127] */
static LLVMValueRef pow2(Gen *g, LLVMValueRef n) {
  return as_float(g, LLVMBuildShl(B, LLVMBuildAdd(B, n, k_i32(g, 127), ""), k_i32(g, 23), ""));
}

/* e^r - 1 for r = x - n ln 2, |r| <= ln 2 / 2 */
static LLVMValueRef exp_near_zero(Gen *g, LLVMValueRef x, LLVMValueRef n) {
  /* (e^r - 1 - r) / r^2 on [-0.35, 0.35], relative error of e^r 3.4e-9 */
  static const double p[] = {5.000000101e-01, 1.666651289e-01, 4.166618728e-02, 8.369598410e-03,
                             1.395171725e-03};
  LLVMValueRef r = fma3(g, n, k_f32(g, -0.693145751953125), x); /* ln 2 in two parts */
  r = fma3(g, n, k_f32(g, -1.42860682030941723212e-6), r);
  LLVMValueRef r2 = LLVMBuildFMul(B, r, r, "");
  return fma3(g, poly(g, r, p, COUNT_OF(p)), r2, r);
}

/* 2^n in two factors, of which the second, 2^32 or 2^-32, is the one that overflows or makes denormal
 * numbers; n comes from an addition that leaves it in the low bits, and no NaN is lost. Below -104 the
 * second factor is zero: there no denormal numbers come up, which are slow. */
LLVMValueRef math_exp(Gen *g, LLVMValueRef x) {
  const double low = -104.0,
               whole = 12582912.0 + 2 * 127; /* 1.5 * 2^23, twice the exponents' bias */
  LLVMValueRef y = at_least(g, at_most(g, x, 89.0), low);
  LLVMValueRef t = fma3(g, y, k_f32(g, 1.4426950408889634), k_f32(g, whole));
  LLVMValueRef e = exp_near_zero(g, y, LLVMBuildFSub(B, t, k_f32(g, whole), ""));
  LLVMValueRef minus = LLVMBuildICmp(B, LLVMIntSLT, as_int(g, x), k_i32(g, 0), "");
  LLVMValueRef second = LLVMBuildSelect(B, minus, k_f32(g, 0x1p-32), k_f32(g, 0x1p32), "");
  LLVMValueRef first =
      LLVMBuildSub(B, LLVMBuildShl(B, as_int(g, t), k_i32(g, 23), ""), as_int(g, second), "");
  LLVMValueRef none = LLVMBuildFCmp(B, LLVMRealOLT, x, k_f32(g, low), "");
  e = LLVMBuildFMul(B, LLVMBuildFAdd(B, e, k_f32(g, 1), ""), as_float(g, first), "");
  return LLVMBuildFMul(B, e, LLVMBuildSelect(B, none, k_f32(g, 0), second, ""), "");
}

LLVMValueRef math_expm1(Gen *g, LLVMValueRef x) {
  LLVMValueRef bounded = at_least(g, at_most(g, x, 89.0), -20.0);
  LLVMValueRef nan = LLVMBuildFCmp(B, LLVMRealUNO, x, x, "");
  bounded = LLVMBuildSelect(B, nan, k_f32(g, 0), bounded, "");
  LLVMValueRef nf =
      one_arg(g, "llvm.rint", LLVMBuildFMul(B, bounded, k_f32(g, 1.4426950408889634), ""));
  LLVMValueRef em1 = exp_near_zero(g, bounded, nf);
  LLVMValueRef n = LLVMBuildFPToSI(B, nf, reg_type(g, DT_I32, g->lanes), "");
  /* 2^n (e^r - 1) + (2^n - 1); one factor of two is kept for the end so that 2^128 does not come up
   */
  LLVMValueRef top = LLVMBuildICmp(B, LLVMIntSGT, n, k_i32(g, 126), "");
  n = LLVMBuildSelect(B, top, LLVMBuildSub(B, n, k_i32(g, 2), ""), n, "");
  LLVMValueRef t = pow2(g, n);
  LLVMValueRef one = LLVMBuildSelect(B, top, k_f32(g, 0.25), k_f32(g, 1), "");
  LLVMValueRef r = fma3(g, em1, t, LLVMBuildFSub(B, t, one, ""));
  r = LLVMBuildFMul(B, r, LLVMBuildSelect(B, top, k_f32(g, 4), k_f32(g, 1), ""), "");
  LLVMValueRef zero = LLVMBuildFCmp(B, LLVMRealOEQ, x, k_f32(g, 0), "");
  return LLVMBuildSelect(B, LLVMBuildOr(B, nan, zero, ""), x, r, "");
}

LLVMValueRef math_log(Gen *g, LLVMValueRef x) {
  /* (log(1 + f) - f + f^2 / 2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1], relative error of log 7.3e-10
   */
  static const double p[] = {3.333331044e-01,  -2.499998660e-01, 2.000222661e-01,
                             -1.666925082e-01, 1.421865809e-01,  -1.238434848e-01,
                             1.187297630e-01,  -1.178980764e-01, 6.915367972e-02};
  LLVMValueRef tiny = LLVMBuildFCmp(B, LLVMRealOLT, x, k_f32(g, 1.1754943508222875e-38), "");
  LLVMValueRef y = LLVMBuildSelect(B, tiny, LLVMBuildFMul(B, x, k_f32(g, 8388608.0), ""), x, "");
  LLVMValueRef bits = as_int(g, y);
  /* exponent such that the mantissa lies in [sqrt(1/2), sqrt(2)) */
  LLVMValueRef off = LLVMBuildSub(B, bits, k_i32(g, 0x3f3504f3), "");
  LLVMValueRef e = LLVMBuildAShr(B, off, k_i32(g, 23), "");
  LLVMValueRef m = as_float(g, LLVMBuildSub(B, bits, LLVMBuildShl(B, e, k_i32(g, 23), ""), ""));
  LLVMValueRef n = LLVMBuildSIToFP(B, e, reg_type(g, DT_F32, g->lanes), "");
  n = LLVMBuildFSub(B, n, LLVMBuildSelect(B, tiny, k_f32(g, 23), k_f32(g, 0), ""), "");
  LLVMValueRef f = LLVMBuildFSub(B, m, k_f32(g, 1), "");
  LLVMValueRef f2 = LLVMBuildFMul(B, f, f, "");
  LLVMValueRef r = LLVMBuildFMul(B, LLVMBuildFMul(B, poly(g, f, p, COUNT_OF(p)), f, ""), f2, "");
  r = fma3(g, n, k_f32(g, -2.12194440054690582767e-4), r);
  r = fma3(g, f2, k_f32(g, -0.5), r);
  r = LLVMBuildFAdd(B, f, r, "");
  r = fma3(g, n, k_f32(g, 0.693359375), r);
  LLVMValueRef inf = k_f32(g, INFINITY);
  r = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOEQ, x, inf, ""), inf, r, "");
  r = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOEQ, x, k_f32(g, 0), ""), k_f32(g, -INFINITY), r,
                      "");
  r = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealULT, x, k_f32(g, 0), ""), k_f32(g, NAN), r, "");
  return r;
}

LLVMValueRef
math_log1p(Gen *g,
           LLVMValueRef x) { /* log(u) x / (u - 1) with u = 1 + x rounded: the roundings cancel */
  LLVMValueRef one = k_f32(g, 1), u = LLVMBuildFAdd(B, x, one, "");
  LLVMValueRef d = LLVMBuildFSub(B, u, one, "");
  LLVMValueRef l = math_log(g, u);
  LLVMValueRef q = LLVMBuildFMul(B, l, LLVMBuildFDiv(B, x, d, ""), "");
  LLVMValueRef small = LLVMBuildFCmp(B, LLVMRealOEQ, d, k_f32(g, 0), "");
  LLVMValueRef r = LLVMBuildSelect(B, small, x, q, "");
  LLVMValueRef big = LLVMBuildFCmp(B, LLVMRealOGT, x, k_f32(g, 1e10), "");
  LLVMValueRef end = LLVMBuildFCmp(B, LLVMRealOEQ, x, k_f32(g, -1), "");
  return LLVMBuildSelect(B, LLVMBuildOr(B, big, end, ""), l, r, "");
}

/* x P(x^2) / Q(x^2) on |x| < 8, the rational approximation that Eigen and XLA use, with fused
 * multiply-adds: bit for bit what XLA's CPU backend answers (checked on 200,001 points), which
 * matters where 1 - tanh^2 cancels. */
LLVMValueRef math_tanh(Gen *g, LLVMValueRef x) {
  static const double p[] = {4.89352455891786e-03, 6.37261928875436e-04,  1.48572235717979e-05,
                             5.12229709037114e-08, -8.60467152213735e-11, 2.00018790482477e-13,
                             -2.76076847742355e-16};
  static const double q[] = {4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04,
                             1.19825839466702e-06};
  LLVMValueRef y = at_least(g, at_most(g, x, 7.99881172180175781), -7.99881172180175781);
  LLVMValueRef t = LLVMBuildFMul(B, y, y, "");
  LLVMValueRef r =
      LLVMBuildFDiv(B, LLVMBuildFMul(B, y, poly(g, t, p, 7), ""), poly(g, t, q, 4), "");
  LLVMValueRef tiny =
      LLVMBuildFCmp(B, LLVMRealOLT, one_arg(g, "llvm.fabs", x), k_f32(g, 0.0004), "");
  return LLVMBuildSelect(B, tiny, x, r, "");
}

LLVMValueRef math_logistic(Gen *g, LLVMValueRef x) {
  LLVMValueRef e = math_exp(g, LLVMBuildFNeg(B, x, ""));
  return LLVMBuildFDiv(B, k_f32(g, 1), LLVMBuildFAdd(B, e, k_f32(g, 1), ""), "");
}

LLVMValueRef math_erf(Gen *g, LLVMValueRef x) {
  /* erf(x) / x = P(x^2) / Q(x^2) for |x| <= 3.95, relative error 2.1e-8; beyond 3.925 it is 1 in
   * f32 */
  static const double p[] = {1.128379144e+00, 1.915487052e-01, 5.287519746e-02,
                             3.808082510e-03, 2.846843532e-04, 2.025900114e-06};
  static const double q[] = {1.000000000e+00, 5.030882962e-01, 1.145589270e-01,
                             1.505493278e-02, 1.170703579e-03, 3.783154055e-05};
  LLVMValueRef y = at_least(g, at_most(g, x, 3.925), -3.925);
  LLVMValueRef t = LLVMBuildFMul(B, y, y, "");
  LLVMValueRef r =
      LLVMBuildFDiv(B, LLVMBuildFMul(B, y, poly(g, t, p, 6), ""), poly(g, t, q, 6), "");
  return at_least(g, at_most(g, r, 1), -1);
}

/* exp(-x^2) t P(|x| t) with t = 1 / (1 + 0.6 |x|), relative error 2.9e-9; 2 minus it for negative x.
 * What x^2 loses by rounding is put back: the exponential would make much of it. */
LLVMValueRef math_erfc(Gen *g, LLVMValueRef x) {
  static const double p[] = {1.000000003e+00,  -5.283793883e-01, 5.947216543e-03,  4.510303838e-02,
                             9.117016684e-03,  -1.586406355e-03, -4.443146453e-03, 3.120038940e-03,
                             -3.418236584e-03, 1.906899663e-03,  -3.511248372e-04};
  LLVMValueRef one = k_f32(g, 1), a = at_most(g, one_arg(g, "llvm.fabs", x), 11.0);
  LLVMValueRef t = LLVMBuildFDiv(B, one, fma3(g, a, k_f32(g, 0.6), one), "");
  LLVMValueRef y = poly(g, LLVMBuildFMul(B, a, t, ""), p, COUNT_OF(p));
  LLVMValueRef square = LLVMBuildFMul(B, a, a, ""), minus = LLVMBuildFNeg(B, a, "");
  LLVMValueRef e = math_exp(g, LLVMBuildFNeg(B, square, ""));
  e = fma3(g, e, fma3(g, minus, a, square), e);
  LLVMValueRef r = LLVMBuildFMul(B, e, LLVMBuildFMul(B, t, y, ""), "");
  LLVMValueRef negative = LLVMBuildFCmp(B, LLVMRealOLT, x, k_f32(g, 0), "");
  return LLVMBuildSelect(B, negative, LLVMBuildFSub(B, k_f32(g, 2), r, ""), r, "");
}

/* ---- the C library, lane by lane ---- */

LLVMValueRef call_lanes(Gen *g, const char *helper, DType t, int n, LLVMValueRef *args) {
  LLVMValueRef fn = gen_helper(g, helper, n, t);
  LLVMTypeRef ft = LLVMGlobalGetValueType(fn);
  if (g->lanes == 0) return LLVMBuildCall2(B, ft, fn, args, (unsigned)n, "");
  LLVMValueRef r = LLVMGetPoison(reg_type(g, t, g->lanes));
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx);
  for (int i = 0; i < g->lanes; i++) {
    LLVMValueRef at = LLVMConstInt(i32, (unsigned long long)i, 0), one[3];
    for (int k = 0; k < n; k++) one[k] = LLVMBuildExtractElement(B, args[k], at, "");
    r = LLVMBuildInsertElement(B, r, LLVMBuildCall2(B, ft, fn, one, (unsigned)n, ""), at, "");
  }
  return r;
}

/* The same by a function on arrays (lanes.c), through the stack. */
static LLVMValueRef call_arrays(Gen *g, const char *helper, int n, LLVMValueRef *args) {
  LLVMTypeRef v = LLVMTypeOf(args[0]), p = LLVMPointerTypeInContext(g->ctx, 0),
              i64 = LLVMInt64TypeInContext(g->ctx);
  LLVMTypeRef params[4] = {p, p, p, p};
  params[n + 1] = i64;
  LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), params, (unsigned)n + 2, 0);
  LLVMValueRef fn = LLVMGetNamedFunction(g->mod, helper), at[4];
  if (!fn) fn = LLVMAddFunction(g->mod, helper, ft);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(g->fn)));
  for (int k = 0; k <= n; k++) at[k] = LLVMBuildAlloca(B, v, "");
  LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(here));
  for (int k = 0; k < n; k++) LLVMBuildStore(B, args[k], at[k]);
  at[n + 1] = LLVMConstInt(i64, (unsigned long long)g->lanes, 0);
  LLVMBuildCall2(B, ft, fn, at, (unsigned)n + 2, "");
  return LLVMBuildLoad2(B, v, at[n], "");
}

LLVMValueRef math_call(Gen *g, const char *lane, const char *lanes, int n, LLVMValueRef *args) {
  return g->lanes ? call_arrays(g, lanes, n, args) : call_lanes(g, lane, DT_F32, n, args);
}

static float f_tan(float x) { return (float)tan((double)x); }
static float f_pow(float x, float y) { return (float)pow((double)x, (double)y); }
static float f_atan2(float x, float y) { return (float)atan2((double)x, (double)y); }
static float f_cbrt(float x) { return (float)cbrt((double)x); }
static float f_sin(float x) { return (float)sin((double)x); }
static float f_cos(float x) { return (float)cos((double)x); }
static double d_logistic(double x) { return 1 / (1 + exp(-x)); }

static int64_t ipow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t r = 1, b = (uint64_t)x;
  for (uint64_t e = (uint64_t)y; e; e >>= 1) {
    if (e & 1) r *= b;
    b *= b;
  }
  return (int64_t)r;
}

static int64_t upow(int64_t x, int64_t y) {
  uint64_t r = 1, b = (uint64_t)x;
  for (uint64_t e = (uint64_t)y; e; e >>= 1) {
    if (e & 1) r *= b;
    b *= b;
  }
  return (int64_t)r;
}

const Helper math_helpers[] = {
    {"weft_tan_f32", (void *)f_tan},
    {"weft_pow_f32", (void *)f_pow},
    {"weft_atan2_f32", (void *)f_atan2},
    {"weft_cbrt_f32", (void *)f_cbrt},
    {"weft_sin_f32", (void *)f_sin},
    {"weft_cos_f32", (void *)f_cos},
    {"weft_fmod_f32", (void *)fmodf},
    {"weft_tan_f64", (void *)tan},
    {"weft_pow_f64", (void *)pow},
    {"weft_atan2_f64", (void *)atan2},
    {"weft_cbrt_f64", (void *)cbrt},
    {"weft_sin_f64", (void *)sin},
    {"weft_cos_f64", (void *)cos},
    {"weft_fmod_f64", (void *)fmod},
    {"weft_exp_f64", (void *)exp},
    {"weft_expm1_f64", (void *)expm1},
    {"weft_log_f64", (void *)log},
    {"weft_log1p_f64", (void *)log1p},
    {"weft_tanh_f64", (void *)tanh},
    {"weft_erf_f64", (void *)erf},
    {"weft_erfc_f64", (void *)erfc},
    {"weft_logistic_f64", (void *)d_logistic},
    {"weft_ipow_i64", (void *)ipow},
    {"weft_upow_i64", (void *)upow},
    {"memset", (void *)memset},
    {"memcpy", (void *)memcpy},
    {"fmaf", (void *)fmaf},
    {"fma", (void *)fma},
    {"roundf", (void *)roundf},
    {"round", (void *)round},
    {0},
};
