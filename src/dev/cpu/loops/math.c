/* Elementary functions in generated code: on f32 the formulas of math_forms.h; f64 (but tanh) and the rarer
 * functions call the C library, a vector at a time where it can (libmvec.c), else lane by lane. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "dev/cpu/loops/emit_priv.h"

#define B g->b

static LLVMValueRef intrinsic(Gen *g, const char *name, int n, LLVMValueRef *args) {
  LLVMTypeRef t = LLVMTypeOf(args[0]);
  return gen_intrinsic(g, name, &t, 1, args, n);
}
static LLVMValueRef fma3(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMValueRef args[3] = {a, b, c};
  return intrinsic(g, "llvm.fma", 3, args);
}
static LLVMValueRef one_arg(Gen *g, const char *name, LLVMValueRef x) {
  return intrinsic(g, name, 1, &x);
}

#define FORM(name, ...) LLVMValueRef math_##name(Gen *g, __VA_ARGS__)
#define PART(name, ...) static LLVMValueRef name(Gen *g, __VA_ARGS__)
#define CALL(name, ...) name(g, __VA_ARGS__)
#define FORM_CALL(name, ...) math_##name(g, __VA_ARGS__)
#define F LLVMValueRef
#define I LLVMValueRef
#define MASK LLVMValueRef
#define K(v) k_f32(g, v)
#define KI(v) k_int(g, DT_I32, v)
#define ADD(a, b) LLVMBuildFAdd(B, a, b, "")
#define SUB(a, b) LLVMBuildFSub(B, a, b, "")
#define MUL(a, b) LLVMBuildFMul(B, a, b, "")
#define DIV(a, b) LLVMBuildFDiv(B, a, b, "")
#define NEG(a) LLVMBuildFNeg(B, a, "")
#define FMA(a, b, c) fma3(g, a, b, c)
#define ABS(a) one_arg(g, "llvm.fabs", a)
#define SQRT(a) one_arg(g, "llvm.sqrt", a)
#define RINT(a) one_arg(g, "llvm.rint", a)
#define LESS(a, b) LLVMBuildFCmp(B, LLVMRealOLT, a, b, "")
#define MORE(a, b) LLVMBuildFCmp(B, LLVMRealOGT, a, b, "")
#define EQUAL(a, b) LLVMBuildFCmp(B, LLVMRealOEQ, a, b, "")
#define NOT_AT_LEAST(a, b) LLVMBuildFCmp(B, LLVMRealULT, a, b, "")
#define IS_NAN(a) LLVMBuildFCmp(B, LLVMRealUNO, a, a, "")
#define MORE_I(a, b) LLVMBuildICmp(B, LLVMIntSGT, a, b, "")
#define LESS_I(a, b) LLVMBuildICmp(B, LLVMIntSLT, a, b, "")
#define EITHER(a, b) LLVMBuildOr(B, a, b, "")
#define PICK(mask, a, b) LLVMBuildSelect(B, mask, a, b, "")
#define PICK_I PICK
#define ADD_I(a, b) LLVMBuildAdd(B, a, b, "")
#define SUB_I(a, b) LLVMBuildSub(B, a, b, "")
#define SHL_I(a, n) LLVMBuildShl(B, a, KI(n), "")
#define SAR_I(a, n) LLVMBuildAShr(B, a, KI(n), "")
#define BITS(a) LLVMBuildBitCast(B, a, reg_type(g, DT_I32, g->lanes), "")
#define FROM_BITS(a) LLVMBuildBitCast(B, a, reg_type(g, DT_F32, g->lanes), "")
#define TO_INT(a) LLVMBuildFPToSI(B, a, reg_type(g, DT_I32, g->lanes), "")
#define TO_FLOAT(a) LLVMBuildSIToFP(B, a, reg_type(g, DT_F32, g->lanes), "")
#include "dev/cpu/loops/math_forms.h"

/* ---- constants ---- */

/* The constant that all lanes of y are; NULL: there is none. Where the elements of a loop are all known, as of iota,
 * LLVM makes a constant of them, and its lanes differ. */
static LLVMValueRef constant_of(LLVMValueRef y) {
  if (!LLVMIsConstant(y)) return NULL;
  if (LLVMGetTypeKind(LLVMTypeOf(y)) != LLVMVectorTypeKind) return y;
  LLVMValueRef first = LLVMGetAggregateElement(y, 0);
  unsigned n = LLVMGetVectorSize(LLVMTypeOf(y));
  for (unsigned i = 1; first && i < n; i++)
    if (LLVMGetAggregateElement(y, i) != first) return NULL;
  return first;
}

/* ---- quotients ---- */

/* x / y. By a constant: two products (quotient.c), or the product with its reciprocal and then once what
 * that lacks of x, which is known exactly (Markstein): rounded as the quotient is, unless that is nearly
 * subnormal, at a fraction of the time. The signs keep zeros' signs; a quotient that is infinite lacks
 * NaN. */
LLVMValueRef math_divide(Gen *g, DType t, LLVMValueRef x, LLVMValueRef y) {
  LLVMBool inexact;
  int exponent;
  LLVMValueRef all = constant_of(y);
  double c = all && LLVMIsAConstantFP(all) ? LLVMConstRealGetDouble(all, &inexact) : 0;
  bool usual = fabs(c) > 0x1p-60 && fabs(c) < 0x1p60 && fabs(frexp(c, &exponent)) != 0.5;
  if (!usual || cpu_vector_bits() < 256) return DIV(x, y);
  float high, low;
  if (t != DT_F64 && quotient_by((float)c, &high, &low)) return FMA(x, K(high), MUL(x, K(low)));
  LLVMValueRef one = LLVMConstReal(reg_type(g, t, 0), 1);
  LLVMValueRef r = DIV(g->lanes ? k_splat(g, one, g->lanes) : one, y), q = MUL(x, r);
  LLVMValueRef more = c > 0 ? FMA(NEG(FMA(q, y, NEG(x))), r, q) : FMA(FMA(NEG(q), y, x), r, q);
  return PICK(IS_NAN(more), q, more);
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

LLVMValueRef math_library(Gen *g, const char *fn, int n, LLVMValueRef *args) {
  LLVMValueRef r = libmvec_call(g, fn, n, args);
  char name[32];
  snprintf(name, sizeof name, "weft_%s_f64", fn);
  return r ? r : call_lanes(g, name, DT_F64, n, args);
}

/* Memory for a value of the type; the builder stays where it is. */
static LLVMValueRef stack_of(Gen *g, LLVMTypeRef t) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(B);
  LLVMPositionBuilderBefore(B, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(g->fn)));
  LLVMValueRef at = LLVMBuildAlloca(B, t, "");
  LLVMPositionBuilderBefore(B, LLVMGetBasicBlockTerminator(here));
  return at;
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
  for (int k = 0; k <= n; k++) at[k] = stack_of(g, v);
  for (int k = 0; k < n; k++) LLVMBuildStore(B, args[k], at[k]);
  at[n + 1] = LLVMConstInt(i64, (unsigned long long)g->lanes, 0);
  LLVMBuildCall2(B, ft, fn, at, (unsigned)n + 2, "");
  return LLVMBuildLoad2(B, v, at[n], "");
}

LLVMValueRef math_stored(Gen *g, LLVMValueRef v) {
  LLVMValueRef at = stack_of(g, LLVMTypeOf(v));
  LLVMBuildStore(B, v, at);
  return at;
}

void math_threefry(Gen *g, LLVMValueRef *in, unsigned same, LLVMTypeRef t, LLVMValueRef *parts) {
  LLVMTypeRef p = LLVMPointerTypeInContext(g->ctx, 0), i64 = LLVMInt64TypeInContext(g->ctx),
              params[9] = {p, p, p, p, p, p, p, i64, i64};
  LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), params, 9, 0);
  LLVMValueRef fn = LLVMGetNamedFunction(g->mod, "weft_threefry"), args[9];
  if (!fn) fn = LLVMAddFunction(g->mod, "weft_threefry", ft);
  for (int k = 0; k < 4; k++) args[k] = in[k];
  for (int k = 0; k < 3; k++) args[4 + k] = parts[k] ? stack_of(g, t) : LLVMConstNull(p);
  args[7] = LLVMConstInt(i64, same, 0);
  args[8] = LLVMConstInt(i64, (unsigned long long)MAX(g->lanes, 1), 0);
  LLVMBuildCall2(B, ft, fn, args, 9, "");
  for (int k = 0; k < 3; k++)
    if (parts[k]) parts[k] = LLVMBuildLoad2(B, t, args[4 + k], "");
}

LLVMValueRef math_call(Gen *g, const char *lane, const char *lanes, int n, LLVMValueRef *args) {
  int k = lanes_at_once(g->lanes);
  if (!k) return g->lanes ? call_arrays(g, lanes, n, args) : call_lanes(g, lane, DT_F32, n, args);
  char name[40];
  snprintf(name, sizeof name, "%s_%d", lanes, k);
  LLVMValueRef r = NULL;
  for (int i = 0; i < g->lanes; i += k) {
    LLVMValueRef p = call_part(g, name, DT_F32, n, args, i, k);
    r = r ? joined_lanes(g, r, i, p, k) : p;
  }
  return r;
}

/* ---- powers ---- */

#define MOST_HALVES 8 /* of an exponent that is made of products and roots */

/* Twice the constant that all lanes of y are, if it is a whole number; 0: it is not. */
static int halves_of(LLVMValueRef y) {
  y = constant_of(y);
  if (!y || !LLVMIsAConstantFP(y)) return 0;
  LLVMBool inexact;
  double twice = 2 * LLVMConstRealGetDouble(y, &inexact);
  return twice == rint(twice) && fabs(twice) <= MOST_HALVES ? (int)twice : 0;
}

/* In double, where nothing overflows and the roundings do not show. */
static LLVMValueRef power_of_halves(Gen *g, LLVMValueRef x, int halves) {
  if (halves & 1) { /* the roots of -0 and -infinity have their sign; powers do not */
    LLVMValueRef end = LLVMBuildOr(B, LLVMBuildFCmp(B, LLVMRealOEQ, x, k_f32(g, 0), ""),
                                   LLVMBuildFCmp(B, LLVMRealOEQ, x, k_f32(g, -INFINITY), ""), "");
    x = LLVMBuildSelect(B, end, one_arg(g, "llvm.fabs", x), x, "");
  }
  LLVMTypeRef wide = reg_type(g, DT_F64, g->lanes);
  LLVMValueRef d = LLVMBuildFPExt(B, x, wide, ""),
               p = halves & 1 ? one_arg(g, "llvm.sqrt", d) : NULL;
  for (int i = 0; i < abs(halves) / 2; i++) p = p ? LLVMBuildFMul(B, p, d, "") : d;
  if (halves < 0)
    p = LLVMBuildFDiv(B, k_splat(g, LLVMConstReal(reg_type(g, DT_F64, 0), 1), g->lanes), p, "");
  return LLVMBuildFPTrunc(B, p, reg_type(g, DT_F32, g->lanes), "");
}

LLVMValueRef math_power(Gen *g, LLVMValueRef *args) {
  int halves = halves_of(args[1]);
  return halves ? power_of_halves(g, args[0], halves)
                : math_call(g, "weft_pow_f32", "weft_powers", 2, args);
}

/* ---- f64 ---- */

#define KW(v) k_splat(g, LLVMConstReal(reg_type(g, DT_F64, 0), v), g->lanes)

/* e^x - 1 for 0 <= x <= 700: x = n ln 2 + r, the series of e^r - 1 to r^13, where it is left at 4e-18.
 * n comes from an addition that leaves it in the low bits. */
static LLVMValueRef expm1_wide(Gen *g, LLVMValueRef x) {
  const double whole = 0x1.8p52;
  LLVMValueRef t = FMA(x, KW(1.44269504088896340736), KW(whole)), n = SUB(t, KW(whole));
  LLVMValueRef r = FMA(n, KW(-0x1.62e42fefp-1), x); /* ln 2 in two parts */
  r = FMA(n, KW(-0x1.473de6af278edp-34), r);
  double c = 6227020800.0; /* 13! */
  LLVMValueRef p = KW(1 / c);
  for (int k = 13; k > 2; k--) p = FMA(p, r, KW(1 / (c /= k)));
  p = FMA(p, MUL(r, r), r);
  LLVMTypeRef i64 = reg_type(g, DT_I64, g->lanes);
  LLVMValueRef bits = LLVMBuildShl(B, LLVMBuildBitCast(B, t, i64, ""), k_int(g, DT_I64, 52), "");
  bits = LLVMBuildAdd(B, bits, k_int(g, DT_I64, (int64_t)1023 << 52), "");
  LLVMValueRef power = LLVMBuildBitCast(B, bits, reg_type(g, DT_F64, g->lanes), "");
  return FMA(power, p, SUB(power, KW(1)));
}

/* m / (m + 2) with m = e^(2 |x|) - 1; 1 from 22 on */
LLVMValueRef math_tanh_wide(Gen *g, LLVMValueRef x) {
  LLVMValueRef a = ABS(x);
  a = PICK(MORE(a, KW(22)), KW(22), a);
  LLVMValueRef m = expm1_wide(g, ADD(a, a)), args[2] = {DIV(m, ADD(m, KW(2))), x};
  return intrinsic(g, "llvm.copysign", 2, args);
}

LLVMValueRef math_logistic_wide(Gen *g, LLVMValueRef x) {
  LLVMValueRef minus = NEG(x);
  return DIV(KW(1), ADD(KW(1), math_library(g, "exp", 1, &minus)));
}

static float f_tan(float x) { return (float)tan((double)x); }
static float f_pow(float x, float y) { return (float)pow((double)x, (double)y); }
static float f_cbrt(float x) { return (float)cbrt((double)x); }
static float f_sin(float x) { return (float)sin((double)x); }
static float f_cos(float x) { return (float)cos((double)x); }

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

/* Denormals count as zero in a part of what the C library computes, and it divides by them. */
static double flushed(double x) { return fabs(x) < DBL_MIN ? copysign(0, x) : x; }
static double d_atan2(double y, double x) { return atan2(flushed(y), flushed(x)); }

const Helper math_helpers[] = {
    {"weft_tan_f32", (void *)f_tan},
    {"weft_pow_f32", (void *)f_pow},
    {"weft_cbrt_f32", (void *)f_cbrt},
    {"weft_sin_f32", (void *)f_sin},
    {"weft_cos_f32", (void *)f_cos},
    {"weft_fmod_f32", (void *)fmodf},
    {"weft_tan_f64", (void *)tan},
    {"weft_pow_f64", (void *)pow},
    {"weft_atan2_f64", (void *)d_atan2},
    {"weft_cbrt_f64", (void *)cbrt},
    {"weft_sin_f64", (void *)sin},
    {"weft_cos_f64", (void *)cos},
    {"weft_fmod_f64", (void *)fmod},
    {"weft_exp_f64", (void *)exp},
    {"weft_expm1_f64", (void *)expm1},
    {"weft_log_f64", (void *)log},
    {"weft_log1p_f64", (void *)log1p},
    {"weft_erf_f64", (void *)erf},
    {"weft_erfc_f64", (void *)erfc},
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
