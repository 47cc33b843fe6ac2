/* Types, constants and calls of generated code: bf16 and f16 are f32 in registers, floats of up to 8 bits bytes, i1 is i1. */
#include "dev/cpu/loops/emit_priv.h"

#define B g->b
typedef LLVMValueRef V;

bool is_small_float(DType t) { return dtype_is_float(t) && dtype_bits(t) <= 8; }

bool emit_is_f32(DType t) { return t == DT_F32 || t == DT_BF16 || t == DT_F16; }

static LLVMTypeRef with_lanes(LLVMTypeRef t, int lanes) {
  return lanes ? LLVMVectorType(t, (unsigned)lanes) : t;
}

LLVMTypeRef reg_type(Gen *g, DType t, int lanes) {
  LLVMTypeRef e;
  if (t == DT_I1) e = LLVMInt1TypeInContext(g->ctx);
  else if (emit_is_f32(t)) e = LLVMFloatTypeInContext(g->ctx);
  else if (t == DT_F64) e = LLVMDoubleTypeInContext(g->ctx);
  else e = LLVMIntTypeInContext(g->ctx, (unsigned)dtype_bytes(t) * 8);
  return with_lanes(e, lanes);
}

LLVMTypeRef mem_type(Gen *g, DType t, int lanes) {
  LLVMTypeRef e;
  if (t == DT_F32) e = LLVMFloatTypeInContext(g->ctx);
  else if (t == DT_F64) e = LLVMDoubleTypeInContext(g->ctx);
  else if (t == DT_F16) e = LLVMHalfTypeInContext(g->ctx);
  else e = LLVMIntTypeInContext(g->ctx, (unsigned)dtype_bytes(t) * 8);
  return with_lanes(e, lanes);
}

V k_splat(Gen *g, V s, int lanes) {
  if (lanes == 0) return s;
  if (LLVMIsConstant(s)) {
    V e[64];
    assert(lanes <= 64);
    for (int i = 0; i < lanes; i++) e[i] = s;
    return LLVMConstVector(e, (unsigned)lanes);
  }
  LLVMTypeRef i32 = LLVMInt32TypeInContext(g->ctx),
              t = LLVMVectorType(LLVMTypeOf(s), (unsigned)lanes);
  V one = LLVMBuildInsertElement(B, LLVMGetPoison(t), s, LLVMConstInt(i32, 0, 0), "");
  return LLVMBuildShuffleVector(B, one, LLVMGetPoison(t),
                                LLVMConstNull(LLVMVectorType(i32, (unsigned)lanes)), "");
}

V k_f32(Gen *g, double v) {
  return k_splat(g, LLVMConstReal(LLVMFloatTypeInContext(g->ctx), v), g->lanes);
}

V k_int(Gen *g, DType t, int64_t v) {
  return k_splat(g, LLVMConstInt(reg_type(g, t, 0), (unsigned long long)v, 1), g->lanes);
}

V k_real(Gen *g, DType t, double v) {
  return k_splat(g, LLVMConstReal(reg_type(g, t, 0), v), g->lanes);
}

V k_elem(Gen *g, DType t, const void *p) { /* always a scalar */
  if (is_small_float(t)) return LLVMConstInt(reg_type(g, t, 0), *(const uint8_t *)p, 0);
  if (dtype_is_float(t)) {
    if (t == DT_F64) {
      uint64_t u;
      memcpy(&u, p, 8);
      return LLVMConstBitCast(LLVMConstInt(LLVMInt64TypeInContext(g->ctx), u, 0),
                              reg_type(g, t, 0));
    }
    float f = (float)elem_get_f64(t, p);
    uint32_t u;
    if (t == DT_F32) memcpy(&u, p, 4);
    else memcpy(&u, &f, 4);
    return LLVMConstBitCast(LLVMConstInt(LLVMInt32TypeInContext(g->ctx), u, 0), reg_type(g, t, 0));
  }
  return LLVMConstInt(reg_type(g, t, 0), (unsigned long long)elem_get_i64(t, p), 1);
}

LLVMValueRef gen_helper(Gen *g, const char *name, int n_args, DType t) {
  LLVMValueRef fn = LLVMGetNamedFunction(g->mod, name);
  if (fn) return fn;
  LLVMTypeRef e = reg_type(g, t, 0), args[3] = {e, e, e};
  return LLVMAddFunction(g->mod, name, LLVMFunctionType(e, args, (unsigned)n_args, 0));
}

LLVMValueRef gen_intrinsic(Gen *g, const char *name, LLVMTypeRef *types, int n_types,
                           LLVMValueRef *args, int n) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id);
  LLVMValueRef fn = LLVMGetIntrinsicDeclaration(g->mod, id, types, (size_t)n_types);
  LLVMTypeRef t = LLVMIntrinsicGetType(g->ctx, id, types, (size_t)n_types);
  return LLVMBuildCall2(g->b, t, fn, args, (unsigned)n, "");
}
