/* Integers in generated code: division and remainder, shifts, powers, as StableHLO defines them where
 * the machine does not. */
#include "dev/cpu/loops/emit_priv.h"

#define B g->b
typedef LLVMValueRef V;

static V icmp(Gen *g, LLVMIntPredicate p, V a, V b) { return LLVMBuildICmp(B, p, a, b, ""); }
static V sel(Gen *g, V c, V a, V b) { return LLVMBuildSelect(B, c, a, b, ""); }

/* Vectors of integers are divided as floating-point numbers twice as wide: the quotient's fraction, if
 * any, is further from a whole number than its rounding is. */
static V divide_lanes(Gen *g, DType t, bool rem, V a, V d) {
  bool is_signed = dtype_is_signed(t), narrow = dtype_bytes(t) <= 2;
  LLVMTypeRef i = reg_type(g, DT_I32, g->lanes),
              f = reg_type(g, narrow ? DT_F32 : DT_F64, g->lanes);
  V wa = a, wd = d;
  if (narrow) {
    wa = is_signed ? LLVMBuildSExt(B, a, i, "") : LLVMBuildZExt(B, a, i, "");
    wd = is_signed ? LLVMBuildSExt(B, d, i, "") : LLVMBuildZExt(B, d, i, "");
    is_signed = true;
  }
  V fa = is_signed ? LLVMBuildSIToFP(B, wa, f, "") : LLVMBuildUIToFP(B, wa, f, ""),
    fd = is_signed ? LLVMBuildSIToFP(B, wd, f, "") : LLVMBuildUIToFP(B, wd, f, "");
  V q = LLVMBuildFDiv(B, fa, fd, "");
  q = is_signed ? LLVMBuildFPToSI(B, q, i, "") : LLVMBuildFPToUI(B, q, i, "");
  if (rem) q = LLVMBuildSub(B, wa, LLVMBuildMul(B, q, wd, ""), "");
  return LLVMBuildTruncOrBitCast(B, q, LLVMTypeOf(a), "");
}

V int_divide(Gen *g, DType t, bool rem, V a, V b) {
  V zero = k_int(g, t, 0), one = k_int(g, t, 1), r;
  V by_zero = icmp(g, LLVMIntEQ, b, zero);
  bool is_signed = dtype_is_signed(t);
  bool lanes = g->lanes && dtype_bytes(t) <= 4 && !LLVMIsConstant(b);  /* constants: products */
  V minus = is_signed ? icmp(g, LLVMIntEQ, b, k_int(g, t, -1)) : NULL; /* smallest / -1 overflows */
  V d = sel(g, minus ? LLVMBuildOr(B, by_zero, minus, "") : by_zero, one, b);
  if (lanes) r = divide_lanes(g, t, rem, a, d);
  else if (is_signed) r = rem ? LLVMBuildSRem(B, a, d, "") : LLVMBuildSDiv(B, a, d, "");
  else r = rem ? LLVMBuildURem(B, a, d, "") : LLVMBuildUDiv(B, a, d, "");
  if (minus) r = sel(g, minus, rem ? zero : LLVMBuildNeg(B, a, ""), r);
  return round_to(g, t, sel(g, by_zero, rem ? a : k_int(g, t, -1), r));
}

V int_shift(Gen *g, OpKind k, DType t, V a, V b) {
  int bits = dtype_bits(t);
  V over = icmp(g, LLVMIntUGE, b, k_int(g, t, bits)); /* negative shifts are over, too */
  V safe = sel(g, over, k_int(g, t, 0), b), r, out = k_int(g, t, 0);
  V ua = bits < 8 ? LLVMBuildAnd(B, a, k_int(g, t, (1 << bits) - 1), "") : a;
  if (k == OP_SHIFT_LEFT) r = LLVMBuildShl(B, a, safe, "");
  else if (k == OP_SHIFT_RIGHT_LOGICAL) r = LLVMBuildLShr(B, ua, safe, "");
  else {
    if (bits < 8 && !dtype_is_signed(t)) { /* the top bit of the narrow type is the sign */
      V s = k_int(g, t, 8 - bits);
      a = LLVMBuildAShr(B, LLVMBuildShl(B, a, s, ""), s, "");
    }
    r = LLVMBuildAShr(B, a, safe, "");
    out = LLVMBuildAShr(B, a, k_int(g, t, bits - 1), "");
  }
  return round_to(g, t, sel(g, over, out, r));
}

V int_power(Gen *g, DType t, V a, V b) {
  bool s = dtype_is_signed(t);
  DType wide = s ? DT_I64 : DT_U64;
  V args[2] = {emit_convert(g, t, wide, a), emit_convert(g, t, wide, b)};
  return emit_convert(g, wide, t,
                      call_lanes(g, s ? "weft_ipow_i64" : "weft_upow_i64", wide, 2, args));
}
