/* Floats of up to 8 bits in generated code: from bytes to f32 and back with integer instructions, whole vectors at a time; every
 * operation on them is computed in f32 and rounded to its type. f32 has more than twice their digits, so that rounding twice is
 * rounding once. F8E8M0FNU, whose smallest number f32 takes for zero, is computed in f64. */
#include "base/float_format.h"
#include "dev/cpu/loops/emit_priv.h"

#define B g->b
typedef LLVMValueRef V;

static V icmp(Gen *g, LLVMIntPredicate p, V a, V b) { return LLVMBuildICmp(B, p, a, b, ""); }
static V sel(Gen *g, V c, V a, V b) { return LLVMBuildSelect(B, c, a, b, ""); }
static V k32(Gen *g, uint32_t v) { return k_int(g, DT_I32, (int64_t)v); }
static V as_f32(Gen *g, V v) { return LLVMBuildBitCast(B, v, reg_type(g, DT_F32, g->lanes), ""); }
static V as_i32(Gen *g, V v) { return LLVMBuildBitCast(B, v, reg_type(g, DT_I32, g->lanes), ""); }

DType small_computed(DType t) { return t == DT_F8E8M0FNU ? DT_F64 : DT_F32; }

/* The f32 whose last place is that of the smallest numbers of the format: what is added to it is rounded as they are. */
static uint32_t last_place(FloatFormat f) {
  return (uint32_t)(1 - f.bias - f.man + 23 + 127) << 23;
}
static uint32_t rebias(FloatFormat f) { return (uint32_t)(127 - f.bias) << 23; }

static V power_decode(Gen *g, V v, DType as) { /* 2^(v - 127); 255: NaN */
  bool wide = as == DT_F64;
  DType it = wide ? DT_I64 : DT_I32;
  V z = LLVMBuildZExt(B, v, reg_type(g, it, g->lanes), "");
  V nan = icmp(g, LLVMIntEQ, z, k_int(g, it, 255)), r;
  if (wide) {
    r = LLVMBuildShl(B, LLVMBuildAdd(B, z, k_int(g, it, 1023 - 127), ""), k_int(g, it, 52), "");
    r = sel(g, nan, k_int(g, it, 0x7ff8000000000000), r);
  } else {
    r = LLVMBuildShl(B, z, k_int(g, it, 23), "");
    r = sel(g, icmp(g, LLVMIntEQ, z, k_int(g, it, 0)), k32(g, 1u << 22), r);
    r = sel(g, nan, k32(g, 0x7fc00000), r);
  }
  return LLVMBuildBitCast(B, r, reg_type(g, as, g->lanes), "");
}

/* The nearest power of two, of a tie the larger; what is not positive has none. Below 2^-126 there is 2^-127 for up to itself. */
static V power_encode(Gen *g, V v, DType from) {
  bool wide = from == DT_F64;
  DType it = wide ? DT_I64 : DT_I32;
  int man = wide ? 52 : 23, bias = wide ? 1023 : 127;
  int64_t least = wide ? (int64_t)(1023 - 127) << 52 : 1 << 22;
  V u = LLVMBuildBitCast(B, v, reg_type(g, it, g->lanes), ""), one = k_int(g, it, 1);
  V r = LLVMBuildAdd(B, u, k_int(g, it, (int64_t)1 << (man - 1)), "");
  r = LLVMBuildLShr(B, r, k_int(g, it, man), "");
  r = LLVMBuildSub(B, r, k_int(g, it, bias - 127), "");
  r = sel(g, icmp(g, LLVMIntSGT, r, one), r, one);
  r = sel(g, icmp(g, LLVMIntSGT, u, k_int(g, it, least)), r, k_int(g, it, 0));
  V none = LLVMBuildOr(B, icmp(g, LLVMIntSLE, u, k_int(g, it, 0)),
                       icmp(g, LLVMIntSGT, r, k_int(g, it, 255)), "");
  r = sel(g, none, k_int(g, it, 255), r);
  return LLVMBuildTrunc(B, r, reg_type(g, DT_F8E8M0FNU, g->lanes), "");
}

V small_decode(Gen *g, DType t, V v, DType as) {
  FloatFormat f;
  if (!float_format(t, &f)) return power_decode(g, v, as);
  int total = 1 + f.exp + f.man, shift = 23 - f.man;
  uint32_t sign = 1u << (total - 1), inf = ((1u << f.exp) - 1) << f.man;
  V z = LLVMBuildZExt(B, v, reg_type(g, DT_I32, g->lanes), "");
  V a = LLVMBuildAnd(B, z, k32(g, sign - 1), "");
  V r = LLVMBuildAdd(B, LLVMBuildShl(B, a, k32(g, (uint32_t)shift), ""), k32(g, rebias(f)), "");
  V place = k32(g, last_place(f)); /* a < 2^man lies in its last digits */
  V low = LLVMBuildFSub(B, as_f32(g, LLVMBuildOr(B, a, place, "")), as_f32(g, place), "");
  r = sel(g, icmp(g, LLVMIntULT, a, k32(g, 1u << f.man)), as_i32(g, low), r);
  V nan = k32(g, 0x7fc00000);
  if (f.special == FLOAT_IEEE) {
    r = sel(g, icmp(g, LLVMIntEQ, a, k32(g, inf)), k32(g, 0x7f800000), r);
    r = sel(g, icmp(g, LLVMIntUGT, a, k32(g, inf)), nan, r);
  } else if (f.special == FLOAT_FN) {
    r = sel(g, icmp(g, LLVMIntEQ, a, k32(g, sign - 1)), nan, r);
  }
  V s = LLVMBuildShl(B, LLVMBuildAnd(B, z, k32(g, sign), ""), k32(g, (uint32_t)(32 - total)), "");
  r = LLVMBuildOr(B, r, s, "");
  if (f.special == FLOAT_FNUZ) r = sel(g, icmp(g, LLVMIntEQ, z, k32(g, sign)), nan, r);
  r = as_f32(g, r);
  return as == DT_F64 ? LLVMBuildFPExt(B, r, reg_type(g, DT_F64, g->lanes), "") : r;
}

V small_encode(Gen *g, DType t, V v, DType from) {
  FloatFormat f;
  if (!float_format(t, &f)) return power_encode(g, v, from);
  int total = 1 + f.exp + f.man, shift = 23 - f.man;
  uint32_t sign = 1u << (total - 1), inf = ((1u << f.exp) - 1) << f.man;
  uint32_t most = f.special == FLOAT_IEEE
                      ? inf
                      : sign - 1; /* what has no place: infinity, NaN, or the largest number */
  if (f.special == FLOAT_FNUZ) most = sign;
  V u = as_i32(g, v), a = LLVMBuildAnd(B, u, k32(g, 0x7fffffff), "");
  V odd = LLVMBuildAnd(B, LLVMBuildLShr(B, a, k32(g, (uint32_t)shift), ""), k32(g, 1), "");
  uint32_t half = (1u << (shift - 1)) - 1 - rebias(f);
  V r = LLVMBuildAdd(B, LLVMBuildAdd(B, a, odd, ""), k32(g, half), "");
  r = LLVMBuildLShr(B, r, k32(g, (uint32_t)shift), "");
  V place = k32(g, last_place(f));
  V low = as_i32(g, LLVMBuildFAdd(B, as_f32(g, a), as_f32(g, place), ""));
  low = LLVMBuildSub(B, low, place, "");
  r = sel(g, icmp(g, LLVMIntULT, a, k32(g, rebias(f) + (1u << 23))), low, r);
  r = sel(g, icmp(g, LLVMIntULT, r, k32(g, most)), r, k32(g, most));
  V nan = icmp(g, LLVMIntUGT, a, k32(g, 0x7f800000));
  if (f.special == FLOAT_IEEE) r = sel(g, nan, k32(g, inf | 1u << (f.man - 1)), r);
  V s = LLVMBuildAnd(B, LLVMBuildLShr(B, u, k32(g, (uint32_t)(32 - total)), ""), k32(g, sign), "");
  if (f.special == FLOAT_FNUZ) { /* neither zero nor NaN has a sign */
    V number = icmp(g, LLVMIntULT, LLVMBuildSub(B, r, k32(g, 1), ""), k32(g, sign - 1));
    s = sel(g, number, s, k32(g, 0));
  }
  r = LLVMBuildOr(B, r, s, "");
  if (f.special == FLOAT_FINITE) r = sel(g, nan, k32(g, sign), r);
  return LLVMBuildTrunc(B, r, reg_type(g, t, g->lanes), "");
}
