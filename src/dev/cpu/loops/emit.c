/* One op on registers. All operands have g->lanes lanes (0: a scalar). bf16 and f16 are f32 in
 * registers; emit_op leaves its result unrounded, who wants it in its type rounds it (round_to).
 * Floats of up to 8 bits are bytes (emit_small.c).
 * Narrow integers are bytes and wrapped after every op; i1 is i1. */
#include <math.h>

#include "dev/cpu/loops/emit_priv.h"
#include "compile/pass/query.h"
#include "ir/any_order.h"

#define B g->b
typedef LLVMValueRef V;

static V fcmp(Gen *g, LLVMRealPredicate p, V a, V b) { return LLVMBuildFCmp(B, p, a, b, ""); }
static V icmp(Gen *g, LLVMIntPredicate p, V a, V b) { return LLVMBuildICmp(B, p, a, b, ""); }
static V sel(Gen *g, V c, V a, V b) { return LLVMBuildSelect(B, c, a, b, ""); }

/* f32 -> the bf16 bits, in the low half of an i32 */
static V bf16_bits(Gen *g, V v) {
  V u = LLVMBuildBitCast(B, v, reg_type(g, DT_I32, g->lanes), "");
  V odd = LLVMBuildAnd(B, LLVMBuildLShr(B, u, k_int(g, DT_I32, 16), ""), k_int(g, DT_I32, 1), "");
  V r = LLVMBuildAdd(B, u, LLVMBuildAdd(B, odd, k_int(g, DT_I32, 0x7fff), ""), "");
  if (!g->plain_nan) { /* else the addition leaves them as they are */
    V nan = LLVMBuildOr(B, u, k_int(g, DT_I32, 0x400000), "");
    r = sel(g, fcmp(g, LLVMRealUNO, v, v), nan, r);
  }
  return LLVMBuildLShr(B, r, k_int(g, DT_I32, 16), "");
}

V round_to(Gen *g, DType t, V v) {
  switch (t) {
  case DT_BF16: {
    V u = LLVMBuildShl(B, bf16_bits(g, v), k_int(g, DT_I32, 16), "");
    return LLVMBuildBitCast(B, u, reg_type(g, DT_F32, g->lanes), "");
  }
  case DT_F16: {
    V h = LLVMBuildFPTrunc(B, v, mem_type(g, DT_F16, g->lanes), "");
    return LLVMBuildFPExt(B, h, reg_type(g, DT_F32, g->lanes), "");
  }
  case DT_I4:
  case DT_I2: {
    V s = k_int(g, t, 8 - dtype_bits(t));
    return LLVMBuildAShr(B, LLVMBuildShl(B, v, s, ""), s, "");
  }
  case DT_F4E2M1FN:
  case DT_F6E2M3FN:
  case DT_F6E3M2FN:
  case DT_U4:
  case DT_U2: return LLVMBuildAnd(B, v, k_int(g, t, (1 << dtype_bits(t)) - 1), "");
  default: return v;
  }
}

V from_mem(Gen *g, DType t, V v) {
  switch (t) {
  case DT_I1: return icmp(g, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)));
  case DT_F16: return LLVMBuildFPExt(B, v, reg_type(g, DT_F32, g->lanes), "");
  case DT_BF16: {
    V u = LLVMBuildShl(B, LLVMBuildZExt(B, v, reg_type(g, DT_I32, g->lanes), ""),
                       k_int(g, DT_I32, 16), "");
    return LLVMBuildBitCast(B, u, reg_type(g, DT_F32, g->lanes), "");
  }
  default: return v;
  }
}

V to_mem(Gen *g, DType t, V v, bool rounded) {
  switch (t) {
  case DT_I1: return LLVMBuildZExt(B, v, mem_type(g, t, g->lanes), "");
  case DT_F16: return LLVMBuildFPTrunc(B, v, mem_type(g, t, g->lanes), "");
  case DT_BF16: {
    V u = LLVMBuildBitCast(B, v, reg_type(g, DT_I32, g->lanes), "");
    u = rounded ? LLVMBuildLShr(B, u, k_int(g, DT_I32, 16), "") : bf16_bits(g, v);
    return LLVMBuildTrunc(B, u, mem_type(g, t, g->lanes), "");
  }
  default: return v;
  }
}

static V intrinsic1(Gen *g, const char *name, V x) {
  LLVMTypeRef t = LLVMTypeOf(x);
  return gen_intrinsic(g, name, &t, 1, &x, 1);
}

/* ---- conversions ---- */

/* To 32 or 64 bits: too large and too small numbers are the largest and the smallest, NaN is 0.
 * (llvm.fptosi.sat does it lane by lane.) */
static V saturate(Gen *g, DType from, DType to, V v) {
  bool sign = dtype_class(to) == DC_SINT;
  int bits = dtype_bits(to);
  LLVMTypeRef rt = reg_type(g, to, g->lanes);
  V low = k_real(g, from, sign ? -ldexp(1, bits - 1) : 0);
  V nan = fcmp(g, LLVMRealUNO, v, v);
  V over = fcmp(g, LLVMRealOGE, v, k_real(g, from, ldexp(1, sign ? bits - 1 : bits)));
  v = sel(g, fcmp(g, LLVMRealOGT, v, low), v, low);
  v = sel(g, over, low, v);
  v = sign ? LLVMBuildFPToSI(B, v, rt, "") : LLVMBuildFPToUI(B, v, rt, "");
  v = sel(g, over, k_int(g, to, !sign ? -1 : bits == 64 ? INT64_MAX : INT32_MAX), v);
  return sel(g, nan, LLVMConstNull(rt), v);
}

/* f64 as f32 that is odd where it is not exact: the fewer digits of narrower types are then rounded as from f64
 * itself. */
static V to_odd(Gen *g, V v) {
  LLVMTypeRef wide = LLVMTypeOf(v), it = reg_type(g, DT_I32, g->lanes);
  V f = LLVMBuildFPTrunc(B, v, reg_type(g, DT_F32, g->lanes), "");
  V back = LLVMBuildFPExt(B, f, wide, ""), u = LLVMBuildBitCast(B, f, it, "");
  V larger = fcmp(g, LLVMRealOGT, intrinsic1(g, "llvm.fabs", back), intrinsic1(g, "llvm.fabs", v));
  V even = LLVMBuildXor(B, LLVMBuildAnd(B, u, k_int(g, DT_I32, 1), ""), k_int(g, DT_I32, 1), "");
  V odd = sel(g, larger, LLVMBuildSub(B, u, even, ""), LLVMBuildAdd(B, u, even, ""));
  u = sel(g, fcmp(g, LLVMRealONE, back, v), odd, u);
  return LLVMBuildBitCast(B, u, LLVMTypeOf(f), "");
}

/* f64: of F8E8M0FNU as it is, of others rounded to odd before. */
static V to_small(Gen *g, DType t, V v, DType from) {
  if (from == DT_F64 && small_computed(t) == DT_F32) v = to_odd(g, v), from = DT_F32;
  return small_encode(g, t, v, from);
}

static V convert(Gen *g, DType from, DType to, V v) { /* floats are left unrounded */
  if (from == to) return v;
  if (is_small_float(from)) {
    DType as = to == DT_F64 ? DT_F64 : DT_F32;
    return convert(g, as, to, small_decode(g, from, v, as));
  }
  if (is_small_float(to)) {
    DType as = dtype_bits(from) > 16 && !emit_is_f32(from) ? DT_F64 : DT_F32;
    return to_small(g, to, convert(g, from, as, v), as);
  }
  DTypeClass cf = dtype_class(from), ct = dtype_class(to);
  LLVMTypeRef rt = reg_type(g, to, g->lanes);
  if (ct == DC_BOOL) {
    if (cf == DC_FLOAT) return fcmp(g, LLVMRealUNE, v, LLVMConstNull(LLVMTypeOf(v)));
    return icmp(g, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)));
  }
  if (cf == DC_FLOAT && ct == DC_FLOAT) {
    if (to == DT_F64) return LLVMBuildFPExt(B, v, rt, "");
    if (from != DT_F64) return v;
    return to == DT_F32 ? LLVMBuildFPTrunc(B, v, rt, "") : to_odd(g, v);
  }
  if (ct == DC_FLOAT)
    return cf == DC_SINT ? LLVMBuildSIToFP(B, v, rt, "") : LLVMBuildUIToFP(B, v, rt, "");
  if (cf == DC_FLOAT) {
    if (dtype_bits(to) <= 16) { /* by way of numbers of 32 bits: there are instructions for these */
      int bits = dtype_bits(to);
      double lo = ct == DC_SINT ? -(double)(1 << (bits - 1)) : 0,
             hi = (double)((1 << (ct == DC_SINT ? bits - 1 : bits)) - 1);
      V klo = k_real(g, from, lo), khi = k_real(g, from, hi);
      V nan = fcmp(g, LLVMRealUNO, v, v);
      v = sel(g, fcmp(g, LLVMRealOLT, v, klo), klo, v);
      v = sel(g, fcmp(g, LLVMRealOGT, v, khi), khi, v);
      v = sel(g, nan, k_real(g, from, 0), v);
      return LLVMBuildTrunc(B, LLVMBuildFPToSI(B, v, reg_type(g, DT_I32, g->lanes), ""), rt, "");
    }
    return saturate(g, from, to, v);
  }
  int bf = cf == DC_BOOL ? 1 : dtype_bytes(from) * 8, bt = dtype_bytes(to) * 8;
  if (bt > bf) v = cf == DC_SINT ? LLVMBuildSExt(B, v, rt, "") : LLVMBuildZExt(B, v, rt, "");
  else if (bt < bf) v = LLVMBuildTrunc(B, v, rt, "");
  return round_to(g, to, v);
}

V emit_convert(Gen *g, DType from, DType to, V v) {
  v = convert(g, from, to, v);
  return from != to && dtype_is_float(to) ? round_to(g, to, v) : v;
}

static V emit_bitcast(Gen *g, DType from, DType to, V v) {
  DType mid = dtype_bytes(from) == 2 ? DT_U16 : from;
  if (from == DT_BF16 || from == DT_F16) {
    v = to_mem(g, from, v, true);
    v = LLVMBuildBitCast(B, v, reg_type(g, DT_U16, g->lanes), "");
    from = mid;
  }
  if (to == DT_BF16) return from_mem(g, DT_BF16, v);
  if (to == DT_F16)
    return from_mem(g, DT_F16, LLVMBuildBitCast(B, v, mem_type(g, DT_F16, g->lanes), ""));
  if (dtype_bits(to) < 8) return round_to(g, to, v);
  return LLVMBuildBitCast(B, v, reg_type(g, to, g->lanes), "");
}

/* ---- comparisons ---- */

static V emit_compare(Gen *g, const Op *op, DType t, V a, V b) {
  Str dir = op_str(op, "comparison_direction");
  bool eq = str_is(dir, "EQ"), ne = str_is(dir, "NE"), ge = str_is(dir, "GE"),
       gt = str_is(dir, "GT"), le = str_is(dir, "LE");
  DTypeClass c = dtype_class(t);
  if (c == DC_FLOAT && str_is(op_str(op, "compare_type"),
                              "TOTALORDER")) { /* order of the bits, sign and magnitude */
    DType u = t == DT_F64 ? DT_I64 : DT_I32;
    LLVMTypeRef it = reg_type(g, u, g->lanes);
    V one[2] = {a, b};
    for (int i = 0; i < 2; i++) {
      V x = LLVMBuildBitCast(B, one[i], it, "");
      V sign = LLVMBuildAShr(B, x, k_int(g, u, dtype_bytes(u) * 8 - 1), "");
      one[i] = LLVMBuildXor(B, x, LLVMBuildLShr(B, sign, k_int(g, u, 1), ""), "");
    }
    a = one[0];
    b = one[1];
    c = DC_SINT;
  }
  if (c == DC_FLOAT)
    return fcmp(g,
                eq   ? LLVMRealOEQ
                : ne ? LLVMRealUNE
                : ge ? LLVMRealOGE
                : gt ? LLVMRealOGT
                : le ? LLVMRealOLE
                     : LLVMRealOLT,
                a, b);
  if (c == DC_SINT)
    return icmp(g,
                eq   ? LLVMIntEQ
                : ne ? LLVMIntNE
                : ge ? LLVMIntSGE
                : gt ? LLVMIntSGT
                : le ? LLVMIntSLE
                     : LLVMIntSLT,
                a, b);
  return icmp(g,
              eq   ? LLVMIntEQ
              : ne ? LLVMIntNE
              : ge ? LLVMIntUGE
              : gt ? LLVMIntUGT
              : le ? LLVMIntULE
                   : LLVMIntULT,
              a, b);
}

static V emit_minmax(Gen *g, DType t, bool max, V a, V b) {
  DTypeClass c = dtype_class(t);
  if (c == DC_FLOAT) {                                       /* a NaN on either side wins */
    V pick = fcmp(g, max ? LLVMRealUGE : LLVMRealULE, a, b); /* also when one is NaN */
    V other = fcmp(g, LLVMRealUNO, b, b);
    if (LLVMIsConstant(b) && LLVMIsNull(other)) return sel(g, pick, a, b); /* b has no NaN */
    return sel(g, other, b, sel(g, pick, a, b));
  }
  LLVMIntPredicate p =
      c == DC_SINT ? (max ? LLVMIntSGT : LLVMIntSLT) : (max ? LLVMIntUGT : LLVMIntULT);
  return sel(g, icmp(g, p, a, b), a, b);
}

/* ---- floats ---- */

bool emit_rounds_to_type(const Op *op) {
  DType t = op_type(op)->dtype;
  int64_t e = op_int(op, "exponent_bits", 0), m = op_int(op, "mantissa_bits", 0);
  return (t == DT_BF16 && e == 8 && m == 7) || (t == DT_F16 && e == 5 && m == 10);
}

static V
emit_round_precision(Gen *g, const Op *op,
                     V x) { /* f32, exponent of 8 bits: nearest even at `m` mantissa bits */
  int m = (int)op_int(op, "mantissa_bits", 23);
  if (m >= 23 || emit_rounds_to_type(op)) return x;
  V u = LLVMBuildBitCast(B, x, reg_type(g, DT_I32, g->lanes), "");
  V odd =
      LLVMBuildAnd(B, LLVMBuildLShr(B, u, k_int(g, DT_I32, 23 - m), ""), k_int(g, DT_I32, 1), "");
  V r = LLVMBuildAdd(B, u, LLVMBuildAdd(B, odd, k_int(g, DT_I32, (1 << (22 - m)) - 1), ""), "");
  r = LLVMBuildAnd(B, r, k_int(g, DT_I32, ~((1 << (23 - m)) - 1)), "");
  r = LLVMBuildBitCast(B, r, reg_type(g, DT_F32, g->lanes), "");
  return sel(g, fcmp(g, LLVMRealUNO, x, x), x, r);
}

bool emit_calls(OpKind k) {
  return k == OP_SINE || k == OP_COSINE || k == OP_TAN || k == OP_CBRT || k == OP_POWER ||
         k == OP_REMAINDER;
}

static V emit_float_fn(Gen *g, OpKind k, DType t, int n, V *in) {
  bool wide = t == DT_F64;
  switch (k) {
#define FORM_CASE(form, op, of_f64) \
  case OP_##op: return wide ? (of_f64) : math_##form(g, in[0]);
    MATH_FORMS(FORM_CASE)
#undef FORM_CASE
  case OP_SINE:
    return wide ? math_library(g, "sin", n, in) : math_call(g, "weft_sin_f32", "weft_sines", n, in);
  case OP_COSINE:
    return wide ? math_library(g, "cos", n, in)
                : math_call(g, "weft_cos_f32", "weft_cosines", n, in);
  case OP_TAN:
    return wide ? math_library(g, "tan", n, in)
                : math_call(g, "weft_tan_f32", "weft_tangents", n, in);
  case OP_CBRT:
    return wide ? math_library(g, "cbrt", n, in)
                : math_call(g, "weft_cbrt_f32", "weft_cube_roots", n, in);
  case OP_POWER: return wide ? math_library(g, "pow", n, in) : math_power(g, in);
  case OP_ATAN2: return wide ? math_library(g, "atan2", n, in) : math_atan2(g, in[0], in[1]);
  case OP_REMAINDER:
    return wide ? call_lanes(g, "weft_fmod_f64", t, n, in)
                : math_call(g, "weft_fmod_f32", "weft_remainders", n, in);
  case OP_SQRT: return intrinsic1(g, "llvm.sqrt", in[0]);
  case OP_RSQRT: return LLVMBuildFDiv(B, k_real(g, t, 1), intrinsic1(g, "llvm.sqrt", in[0]), "");
  case OP_CEIL: return intrinsic1(g, "llvm.ceil", in[0]);
  case OP_FLOOR: return intrinsic1(g, "llvm.floor", in[0]);
  case OP_ROUND_NEAREST_EVEN: return intrinsic1(g, "llvm.roundeven", in[0]);
  case OP_ROUND_NEAREST_AFZ: { /* away from zero at a tie */
    V r = intrinsic1(g, "llvm.trunc", in[0]),
      d = intrinsic1(g, "llvm.fabs", LLVMBuildFSub(B, in[0], r, ""));
    LLVMTypeRef ty = LLVMTypeOf(in[0]);
    V args[2] = {k_real(g, t, 1), in[0]};
    V one = gen_intrinsic(g, "llvm.copysign", &ty, 1, args, 2);
    V up = sel(g, fcmp(g, LLVMRealOGE, d, k_real(g, t, 0.5)), LLVMBuildFAdd(B, r, one, ""), r);
    args[0] = up;
    return gen_intrinsic(g, "llvm.copysign", &ty, 1, args, 2);
  }
  case OP_ABS: return intrinsic1(g, "llvm.fabs", in[0]);
  case OP_NEGATE: return LLVMBuildFNeg(B, in[0], "");
  case OP_SIGN: {
    V zero = k_real(g, t, 0);
    V r = sel(g, fcmp(g, LLVMRealOGT, in[0], zero), k_real(g, t, 1), in[0]);
    return sel(g, fcmp(g, LLVMRealOLT, in[0], zero), k_real(g, t, -1), r);
  }
  case OP_ADD: return LLVMBuildFAdd(B, in[0], in[1], "");
  case OP_SUBTRACT: return LLVMBuildFSub(B, in[0], in[1], "");
  case OP_MULTIPLY: return LLVMBuildFMul(B, in[0], in[1], "");
  case OP_DIVIDE: return math_divide(g, t, in[0], in[1]);
  default: return NULL;
  }
}

static V emit_int_fn(Gen *g, OpKind k, DType t, V *in) {
  int narrow = dtype_bits(t) < 8 && dtype_bits(t) > 1;
  switch (k) {
  case OP_ADD: return LLVMBuildAdd(B, in[0], in[1], "");
  case OP_SUBTRACT: return LLVMBuildSub(B, in[0], in[1], "");
  case OP_MULTIPLY: return LLVMBuildMul(B, in[0], in[1], "");
  case OP_NEGATE: return LLVMBuildNeg(B, in[0], "");
  case OP_ABS:
    return dtype_is_signed(t) ? sel(g, icmp(g, LLVMIntSLT, in[0], k_int(g, t, 0)),
                                    LLVMBuildNeg(B, in[0], ""), in[0])
                              : in[0];
  case OP_SIGN: {
    V r = sel(g, icmp(g, LLVMIntNE, in[0], k_int(g, t, 0)), k_int(g, t, 1), k_int(g, t, 0));
    return dtype_is_signed(t)
               ? sel(g, icmp(g, LLVMIntSLT, in[0], k_int(g, t, 0)), k_int(g, t, -1), r)
               : r;
  }
  case OP_POPCNT: {
    V x = narrow ? LLVMBuildAnd(B, in[0], k_int(g, t, (1 << dtype_bits(t)) - 1), "") : in[0];
    return intrinsic1(g, "llvm.ctpop", x);
  }
  case OP_COUNT_LEADING_ZEROS: {
    V x = narrow ? LLVMBuildAnd(B, in[0], k_int(g, t, (1 << dtype_bits(t)) - 1), "") : in[0];
    LLVMTypeRef ty = LLVMTypeOf(x);
    V args[2] = {x, LLVMConstInt(LLVMInt1TypeInContext(g->ctx), 0, 0)};
    V r = gen_intrinsic(g, "llvm.ctlz", &ty, 1, args, 2);
    return narrow ? LLVMBuildSub(B, r, k_int(g, t, 8 - dtype_bits(t)), "") : r;
  }
  default: return NULL;
  }
}

/* ---- dispatch ---- */

/* An operation with small operands or a small result, rounded to its type as every one of them is. */
static V emit_small_op(Gen *g, const Op *op, const DType *in_t, V *in, DType out_t) {
  DType as = is_small_float(out_t) ? small_computed(out_t) : DT_F32, wide_t[4];
  V wide[4];
  assert(op->n_operands <= COUNT_OF(wide));
  for (int i = 0; i < op->n_operands; i++)
    if (is_small_float(in_t[i]) && small_computed(in_t[i]) == DT_F64) as = DT_F64;
  for (int i = 0; i < op->n_operands; i++) {
    bool small = is_small_float(in_t[i]);
    wide[i] = small ? small_decode(g, in_t[i], in[i], as) : in[i];
    wide_t[i] = small ? as : in_t[i];
  }
  V r = emit_op(g, op, wide_t, wide, is_small_float(out_t) ? as : out_t);
  return is_small_float(out_t) ? to_small(g, out_t, r, as) : r;
}

V emit_op(Gen *g, const Op *op, const DType *in_t, V *in, DType out_t) {
  bool small = is_small_float(out_t);
  for (int i = 0; i < op->n_operands; i++) small |= is_small_float(in_t[i]);
  if (small && !emit_moves(op->kind)) return emit_small_op(g, op, in_t, in, out_t);
  DType t = op->n_operands ? in_t[op->kind == OP_SELECT ? 1 : 0] : out_t;
  DTypeClass c = dtype_class(t);
  switch (op->kind) {
  case OP_CONVERT: return convert(g, t, out_t, in[0]);
  case OP_BITCAST_CONVERT: return emit_bitcast(g, t, out_t, in[0]);
  case OP_BROADCAST_IN_DIM:
  case OP_RESHAPE:
  case OP_COPY:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_REVERSE: return in[0];
  case OP_COMPARE: return emit_compare(g, op, t, in[0], in[1]);
  case OP_SELECT: return sel(g, in[0], in[1], in[2]);
  case OP_MAXIMUM: return emit_minmax(g, t, true, in[0], in[1]);
  case OP_MINIMUM: return emit_minmax(g, t, false, in[0], in[1]);
  case OP_CLAMP: {
    DType u = in_t[1];
    return emit_minmax(g, u, false, emit_minmax(g, u, true, in[1], in[0]), in[2]);
  }
  case OP_IS_FINITE: {
    V a = intrinsic1(g, "llvm.fabs", in[0]);
    return fcmp(g, LLVMRealOLT, a, k_real(g, t, INFINITY));
  }
  case OP_AND: return LLVMBuildAnd(B, in[0], in[1], "");
  case OP_OR: return LLVMBuildOr(B, in[0], in[1], "");
  case OP_XOR: return LLVMBuildXor(B, in[0], in[1], "");
  case OP_NOT: return round_to(g, t, LLVMBuildNot(B, in[0], ""));
  case OP_SHIFT_LEFT:
  case OP_SHIFT_RIGHT_LOGICAL:
  case OP_SHIFT_RIGHT_ARITHMETIC: return int_shift(g, op->kind, t, in[0], in[1]);
  case OP_REDUCE_PRECISION: return emit_round_precision(g, op, in[0]);
  default: break;
  }
  if (c == DC_FLOAT) {
    V r = emit_float_fn(g, op->kind, t, op->n_operands, in);
    assert(r);
    return r;
  }
  if (c == DC_BOOL) {
    if (op->kind == OP_ADD) return LLVMBuildOr(B, in[0], in[1], "");
    if (op->kind == OP_MULTIPLY) return LLVMBuildAnd(B, in[0], in[1], "");
    assert(!"an op on i1");
  }
  if (op->kind == OP_DIVIDE || op->kind == OP_REMAINDER)
    return int_divide(g, t, op->kind == OP_REMAINDER, in[0], in[1]);
  if (op->kind == OP_POWER) return int_power(g, t, in[0], in[1]);
  V r = emit_int_fn(g, op->kind, t, in);
  assert(r);
  return round_to(g, t, r);
}

static bool type_ok(DType t) {
  switch (t) {
  case DT_I1:
  case DT_I2:
  case DT_U2:
  case DT_I4:
  case DT_U4:
  case DT_I8:
  case DT_I16:
  case DT_I32:
  case DT_I64:
  case DT_U8:
  case DT_U16:
  case DT_U32:
  case DT_U64:
  case DT_F16:
  case DT_BF16:
  case DT_F32:
  case DT_F64: return true;
  default: return is_small_float(t);
  }
}

/* Complex numbers are in memory only: their parts are read and written (nodes.c). */
static bool supports_parts(const Op *op) {
  DType t = op->operands[0]->type->dtype;
  if (op->kind == OP_COMPLEX) return t == DT_F32 || t == DT_F64;
  return dtype_is_complex(t) && !value_splat(op->operands[0]);
}

/* Rows: the library's kernel copies short ones faster, and asks for the next meanwhile. Of longer ones
 * the host itself does so, and a pass over memory is saved. */
#define LONG_ROW 2048 /* bytes */

static bool gather_ok(const Op *op) {
  const Type *t = op->operands[0]->type, *index = op->operands[1]->type;
  const int64_t *sizes;
  int n = op_ints(op, "slice_sizes", &sizes);
  for (int i = 0; i < n; i++)
    if (sizes[i] > t->dims[i]) return false; /* the reference explains */
  int64_t run = gather_run(op);
  if (run >= GATHER_ROW && run * dtype_bytes(t->dtype) < LONG_ROW) return false;
  return dtype_is_int(index->dtype) && dtype_bits(index->dtype) >= 8 &&
         !value_splat(op->operands[0]);
}

bool emit_supports(const Op *op) {
  if (op->kind == OP_REAL || op->kind == OP_IMAG || op->kind == OP_COMPLEX)
    return supports_parts(op);
  for (int i = 0; i < op->n_operands; i++)
    if (!type_ok(op->operands[i]->type->dtype)) return false;
  for (int i = 0; i < op->n_results; i++)
    if (!type_ok(op->results[i].type->dtype)) return false;
  DType t = op->n_operands ? op->operands[op->kind == OP_SELECT ? 1 : 0]->type->dtype : DT_F32;
  DTypeClass c = dtype_class(t);
  bool small = is_small_float(t);
  if (small) t = small_computed(t);
  bool num = c == DC_FLOAT || c == DC_SINT || c == DC_UINT;
  bool whole = c == DC_SINT || c == DC_UINT;
  if (emit_moves(op->kind) && op->kind != OP_BITCAST_CONVERT) return true;
  switch (op->kind) {
  case OP_IOTA: return dtype_class(op_type(op)->dtype) != DC_BOOL;
  case OP_CONCATENATE:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_CLAMP: return true;
  case OP_COMPARE: return !small || !str_is(op_str(op, "compare_type"), "TOTALORDER");
  case OP_PAD: {
    const int64_t *v;
    int n = op_ints(op, "interior_padding", &v);
    for (int i = 0; i < n; i++)
      if (v[i]) return false;
    return true;
  }
  case OP_BITCAST_CONVERT:
    return op->operands[0]->type->rank == op_type(op)->rank &&
           dtype_bits(t) == dtype_bits(op_type(op)->dtype) && c != DC_BOOL &&
           dtype_class(op_type(op)->dtype) != DC_BOOL;
  case OP_THREEFRY: return true;
  case OP_AND:
  case OP_OR:
  case OP_XOR:
  case OP_NOT: return c != DC_FLOAT;
  case OP_SHIFT_LEFT:
  case OP_SHIFT_RIGHT_LOGICAL:
  case OP_SHIFT_RIGHT_ARITHMETIC:
  case OP_POPCNT:
  case OP_COUNT_LEADING_ZEROS: return whole;
  case OP_ADD:
  case OP_MULTIPLY: return true;
  case OP_SUBTRACT:
  case OP_DIVIDE:
  case OP_REMAINDER:
  case OP_POWER:
  case OP_ABS:
  case OP_NEGATE:
  case OP_SIGN: return num;
  case OP_GATHER: return gather_ok(op);
  case OP_REDUCE_PRECISION:
    return emit_rounds_to_type(op) ||
           ((t == DT_F32 || t == DT_BF16) && op_int(op, "exponent_bits", 0) == 8 &&
            op_int(op, "mantissa_bits", 0) >= 1);
#define FORM_CASE(form, op, of_f64) \
  case OP_##op: return c == DC_FLOAT && (t != DT_F64 || strcmp(#of_f64, "NULL") != 0);
    MATH_FORMS(FORM_CASE)
#undef FORM_CASE
  case OP_SINE:
  case OP_COSINE:
  case OP_TAN:
  case OP_CBRT:
  case OP_ATAN2:
  case OP_SQRT:
  case OP_RSQRT:
  case OP_CEIL:
  case OP_FLOOR:
  case OP_ROUND_NEAREST_EVEN:
  case OP_ROUND_NEAREST_AFZ:
  case OP_IS_FINITE: return c == DC_FLOAT;
  case OP_REDUCE: {
    if (op->n_operands != 2 * op->n_results || small) return false; /* small_types.c widens them */
    for (int i = 0; i < op->n_results; i++)
      if (op->results[i].type->dtype != op->operands[op->n_results + i]->type->dtype) return false;
    return op->n_results <= 4 && emit_region_supported(op->regions[0]) &&
           region_any_order(op->regions[0]);
  }
  default: return false;
  }
}

/* ---- scalar regions ---- */

bool emit_region_supported(const Region *r) {
  if (r->n_args > 8) return false;
  int n = 0;
  for (const Op *op = r->first; op; op = op->next) {
    if (++n > 64) return false;
    if (op == r->last) break;
    for (int i = 0; i < op->n_results; i++)
      if (op->results[i].type->rank) return false;
    if (op->kind == OP_CONSTANT) {
      if (!type_ok(op_type(op)->dtype) || !value_splat(&op->results[0])) return false;
      continue;
    }
    if (op_info[op->kind].cls != OC_EWISE || op->n_regions || op->n_operands > 3 ||
        op->kind == OP_REAL || op->kind == OP_IMAG || op->kind == OP_COMPLEX || !emit_supports(op))
      return false;
    for (int i = 0; i < op->n_operands; i++) /* nothing from outside */
      if (op->operands[i]->region != r) return false;
  }
  for (int i = 0; i < r->last->n_operands; i++)
    if (r->last->operands[i]->region != r) return false;
  return true;
}

void emit_region(Gen *g, const Region *r, V *args, V *results) {
  const Value *names[80];
  V vals[80];
  int n = 0;
  for (int i = 0; i < r->n_args; i++, n++) names[n] = r->args[i], vals[n] = args[i];
  for (const Op *op = r->first; op; op = op->next) {
    V in[8];
    DType in_t[8];
    for (int i = 0; i < op->n_operands; i++)
      for (int k = 0; k < n; k++)
        if (names[k] == op->operands[i]) in[i] = vals[k], in_t[i] = op->operands[i]->type->dtype;
    if (op == r->last) {
      for (int i = 0; i < op->n_operands; i++) results[i] = in[i];
      return;
    }
    names[n] = &op->results[0];
    if (op->kind == OP_CONSTANT)
      vals[n] = k_splat(g, k_elem(g, op_type(op)->dtype, value_splat(&op->results[0])), g->lanes);
    else vals[n] = emit_op(g, op, in_t, in, op_type(op)->dtype);
    if (emit_digits(op->kind) == DIGITS_MORE || op->kind == OP_CONVERT)
      vals[n] = round_to(g, op_type(op)->dtype, vals[n]);
    n++;
  }
}
