/* Which functions an operation is on strips. */
#include "dev/cpu/vinterp/vinterp_run.h"

#include <math.h>
#include <stdlib.h>

#include "compile/pass/query.h"

/* bf16 and f16 are f32 in strips of 32 bits, narrow integers i32; f32 is f64 in wide ones. */
static bool is_wide(const StripSimd *simd) { return simd->bytes == 8; }

static bool is_real(const StripSimd *simd, DType t) {
  return t == DT_F32 || (is_wide(simd) ? t == DT_F64 : t == DT_BF16 || t == DT_F16);
}
static bool is_narrow(const StripSimd *simd, DType t) {
  return dtype_is_int(t) && dtype_bits(t) >= 8 && dtype_bytes(t) < simd->bytes;
}
static bool is_whole(const StripSimd *simd, DType t) { /* an integer of all bits */
  return dtype_is_int(t) && dtype_bytes(t) == simd->bytes;
}

bool strip_in_memory(const StripSimd *simd, DType t) {
  return is_whole(simd, t) || t == (is_wide(simd) ? DT_F64 : DT_F32);
}

bool strip_type_ok(const StripSimd *simd, DType t) {
  return is_real(simd, t) || is_narrow(simd, t) || is_whole(simd, t) || t == DT_I1;
}

int strip_to_type(const StripSimd *simd, DType t) {
  switch (t) {
  case DT_BF16: return STRIP_to_bf16;
  case DT_F16: return STRIP_to_f16;
  case DT_I8: return STRIP_to_i8;
  case DT_U8: return STRIP_to_u8;
  case DT_I16: return STRIP_to_i16;
  case DT_U16: return STRIP_to_u16;
  case DT_I32: return is_wide(simd) ? STRIP_to_i32 : -1;
  case DT_U32: return is_wide(simd) ? STRIP_to_u32 : -1;
  case DT_F32: return is_wide(simd) ? STRIP_to_f32 : -1;
  default: return -1;
  }
}

int strip_load(const StripSimd *simd, DType t) {
  if (strip_in_memory(simd, t)) return STRIP_copy;
  switch (t) {
  case DT_I1: return STRIP_load_mask;
  case DT_BF16: return STRIP_load_bf16;
  case DT_F16: return STRIP_load_f16;
  case DT_F32: return STRIP_load_f32;
  case DT_I8: return STRIP_load_i8;
  case DT_U8: return STRIP_load_u8;
  case DT_I16: return STRIP_load_i16;
  case DT_U16: return STRIP_load_u16;
  case DT_I32: return STRIP_load_i32;
  default: return STRIP_load_u32;
  }
}

int strip_store(const StripSimd *simd, DType t) {
  if (strip_in_memory(simd, t)) return STRIP_copy;
  switch (t) {
  case DT_I1: return STRIP_store_mask;
  case DT_BF16: return STRIP_store_bf16;
  case DT_F16: return STRIP_store_f16;
  case DT_F32: return STRIP_store_f32;
  case DT_I8:
  case DT_U8: return STRIP_store_8;
  case DT_I16:
  case DT_U16: return STRIP_store_16;
  default: return STRIP_store_32;
  }
}

static int fn_of_float(const Op *op, bool lanes) {
  switch (op->kind) {
  case OP_ADD: return STRIP_add;
  case OP_SUBTRACT: return STRIP_sub;
  case OP_MULTIPLY: return STRIP_mul;
  case OP_DIVIDE: return STRIP_div;
  case OP_MAXIMUM: return STRIP_max;
  case OP_MINIMUM: return STRIP_min;
  case OP_NEGATE: return STRIP_neg;
  case OP_ABS: return STRIP_abs;
  case OP_SQRT: return STRIP_sqrt;
  case OP_RSQRT: return STRIP_rsqrt;
#define FORM_CASE(form, op, of_f64) \
  case OP_##op: return STRIP_##form;
    MATH_FORMS(FORM_CASE)
#undef FORM_CASE
  case OP_SINE: return lanes ? STRIP_sin : STRIP_sin_one;
  case OP_COSINE: return lanes ? STRIP_cos : STRIP_cos_one;
  case OP_TAN: return lanes ? STRIP_tan : STRIP_tan_one;
  case OP_CBRT: return lanes ? STRIP_cbrt : STRIP_cbrt_one;
  case OP_ATAN2: return STRIP_atan2;
  case OP_POWER: return lanes ? STRIP_power : STRIP_power_one;
  case OP_REMAINDER: return lanes ? STRIP_rem : STRIP_rem_one;
  case OP_FLOOR: return STRIP_floor;
  case OP_CEIL: return STRIP_ceil;
  case OP_ROUND_NEAREST_EVEN: return STRIP_round;
  case OP_SIGN: return STRIP_sign;
  case OP_IS_FINITE: return STRIP_finite;
  case OP_CLAMP: return STRIP_clamp;
  default: return -1;
  }
}

static int fn_of_int(const StripSimd *simd, OpKind k, DType t) {
  bool is_signed = dtype_is_signed(t), narrow = is_narrow(simd, t), all = !is_signed && !narrow;
  switch (k) {
  case OP_ADD: return STRIP_i_add;
  case OP_SUBTRACT: return STRIP_i_sub;
  case OP_MULTIPLY: return STRIP_i_mul;
  case OP_DIVIDE: return all ? STRIP_u_div : STRIP_i_div;
  case OP_REMAINDER: return all ? STRIP_u_rem : STRIP_i_rem;
  case OP_NEGATE: return STRIP_i_neg;
  case OP_SIGN: return all ? -1 : STRIP_i_sign;
  case OP_POPCNT: return narrow && is_signed ? -1 : STRIP_popcnt;
  case OP_COUNT_LEADING_ZEROS: return narrow ? -1 : STRIP_clz;
  case OP_ABS: return is_signed ? STRIP_i_abs : STRIP_copy;
  case OP_CLAMP: return all ? -1 : STRIP_i_clamp;
  case OP_MAXIMUM: return all ? STRIP_u_max : STRIP_i_max;
  case OP_MINIMUM: return all ? STRIP_u_min : STRIP_i_min;
  case OP_AND: return STRIP_and;
  case OP_OR: return STRIP_or;
  case OP_XOR: return STRIP_xor;
  case OP_NOT: return STRIP_not;
  case OP_SHIFT_LEFT: return STRIP_shl;
  case OP_SHIFT_RIGHT_LOGICAL: return narrow && is_signed ? -1 : STRIP_shr;
  case OP_SHIFT_RIGHT_ARITHMETIC: return narrow && !is_signed ? -1 : STRIP_sar;
  default: return -1;
  }
}

static int fn_of_bool(OpKind k) {
  switch (k) {
  case OP_AND:
  case OP_MULTIPLY:
  case OP_MINIMUM: return STRIP_and;
  case OP_OR:
  case OP_ADD:
  case OP_MAXIMUM: return STRIP_or;
  case OP_XOR: return STRIP_xor;
  case OP_NOT: return STRIP_not;
  default: return -1;
  }
}

static int fn_of_compare(const StripSimd *simd, const Op *op, DType t) {
  static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  Str dir = op_str(op, "comparison_direction");
  bool total = str_is(op_str(op, "compare_type"), "TOTALORDER");
  int at = 0;
  while (at < 5 && !str_is(dir, directions[at])) at++;
  if (is_real(simd, t)) return (total ? STRIP_t_eq : STRIP_eq) + at;
  if (at < 2) return STRIP_i_eq + at;
  bool all = is_whole(simd, t) && !dtype_is_signed(t);
  return t == DT_I1 ? -1 : all ? STRIP_u_ge + at - 2 : STRIP_i_eq + at;
}

static int fn_of_float_to(const StripSimd *simd, DType to) {
  switch (to) {
  case DT_I64: return STRIP_f_to_i;
  case DT_U64: return STRIP_f_to_u;
  case DT_I32: return is_wide(simd) ? STRIP_f_to_i32 : STRIP_f_to_i;
  case DT_U32: return is_wide(simd) ? STRIP_f_to_u32 : STRIP_f_to_u;
  case DT_I8: return STRIP_f_to_i8;
  case DT_U8: return STRIP_f_to_u8;
  case DT_I16: return STRIP_f_to_i16;
  case DT_U16: return STRIP_f_to_u16;
  default: return -1;
  }
}

/* f32 in wide strips is rounded once; others are by strip_after. */
static int fn_of_int_to_float(const StripSimd *simd, DType from, DType to) {
  bool all = is_whole(simd, from) && !dtype_is_signed(from);
  if (is_wide(simd) && is_whole(simd, from) && to == DT_F32)
    return all ? STRIP_u_to_f32 : STRIP_i_to_f32;
  return all ? STRIP_u_to_f : STRIP_i_to_f;
}

/* Narrow results are made so by strip_after. */
static int fn_of_convert(const StripSimd *simd, DType from, DType to) {
  if (from == to) return STRIP_copy;
  if (is_real(simd, from)) {
    if (to == DT_I1) return STRIP_f_to_mask;
    if (!is_real(simd, to)) return fn_of_float_to(simd, to);
    return strip_in_memory(simd, to) ? STRIP_copy : strip_to_type(simd, to);
  }
  if (to == DT_I1) return STRIP_i_to_mask;
  if (from == DT_I1) return is_real(simd, to) ? STRIP_mask_to_f : STRIP_mask_to_i;
  if (is_real(simd, to)) return fn_of_int_to_float(simd, from, to);
  return is_narrow(simd, to) ? strip_to_type(simd, to) : STRIP_copy;
}

static int fn_of_bitcast(const StripSimd *simd, DType from, DType to) {
  if (strip_in_memory(simd, from) && strip_in_memory(simd, to)) return STRIP_copy;
  bool alike = is_narrow(simd, from) && is_narrow(simd, to) && dtype_bytes(from) == dtype_bytes(to);
  return !alike ? -1 : from == to ? STRIP_copy : strip_to_type(simd, to);
}

/* Of either size; those that there are not for the size at hand, too. */
static int fn_of(const StripSimd *simd, const Op *op, bool lanes) {
  DType t = op->n_operands ? op->operands[op->kind == OP_SELECT ? 1 : 0]->type->dtype
                           : op_type(op)->dtype;
  switch (op->kind) {
  case OP_BROADCAST_IN_DIM:
  case OP_RESHAPE:
  case OP_COPY:
  case OP_TRANSPOSE:
  case OP_SLICE:
  case OP_REVERSE: return STRIP_copy;
  case OP_SELECT: return STRIP_select;
  case OP_THREEFRY: return STRIP_threefry_first + (int)op_int(op, "part", 0);
  case OP_COMPARE: return fn_of_compare(simd, op, t);
  case OP_CONVERT: return fn_of_convert(simd, t, op_type(op)->dtype);
  case OP_BITCAST_CONVERT: return fn_of_bitcast(simd, t, op_type(op)->dtype);
  case OP_REDUCE_PRECISION: return emit_rounds_to_type(op) ? strip_to_type(simd, t) : -1;
  default: break;
  }
  if (is_real(simd, t)) return fn_of_float(op, lanes);
  return t == DT_I1 ? fn_of_bool(op->kind) : fn_of_int(simd, op->kind, t);
}

int strip_fn(const StripSimd *simd, const Op *op, bool lanes) {
  int fn = fn_of(simd, op, lanes);
  bool twice = is_wide(simd) && fn == STRIP_rsqrt && op_type(op)->dtype == DT_F32; /* is rounded */
  return fn >= 0 && simd->fn[fn] && !twice ? fn : -1;
}

/* What is done to the result then, so that it is of its type: narrow integers wrap; whole numbers and
 * truths that become bf16 or f16 are rounded; so is arithmetic of f32 in wide strips, which has the
 * digits that it has at once: f64 has more than twice as many. -1: nothing */
int strip_after(const StripSimd *simd, const Op *op, int fn) {
  DType t = op_type(op)->dtype;
  switch (fn) {
  case STRIP_i_add:
  case STRIP_i_sub:
  case STRIP_i_mul:
  case STRIP_i_div:
  case STRIP_i_neg:
  case STRIP_i_abs:
  case STRIP_not:
  case STRIP_shl: return is_narrow(simd, t) ? strip_to_type(simd, t) : -1;
  case STRIP_add:
  case STRIP_sub:
  case STRIP_mul:
  case STRIP_div:
  case STRIP_sqrt: return is_wide(simd) ? strip_to_type(simd, t) : -1;
  case STRIP_i_to_f:
  case STRIP_u_to_f: return strip_to_type(simd, t);
  default: return -1;
  }
}

static uint32_t narrow_element(DType t, const void *base, int64_t at) {
  const uint8_t *b = base;
  const uint16_t *h = base;
  uint32_t v = 0;
  float f;
  switch (t) {
  case DT_I1: return b[at] ? 0xffffffffu : 0;
  case DT_I8: return (uint32_t)(int32_t)(int8_t)b[at];
  case DT_U8: return b[at];
  case DT_I16: return (uint32_t)(int32_t)(int16_t)h[at];
  case DT_U16: return h[at];
  case DT_BF16: return (uint32_t)h[at] << 16;
  case DT_F16:
    f = f16_to_f32(h[at]);
    memcpy(&v, &f, 4);
    return v;
  default: return ((const uint32_t *)base)[at];
  }
}

uint64_t strip_element(const StripSimd *simd, DType t, const void *base, int64_t at) {
  if (dtype_bytes(t) == 8) return ((const uint64_t *)base)[at];
  uint32_t v = narrow_element(t, base, at);
  if (!is_wide(simd)) return v;
  if (t != DT_F32) return dtype_is_signed(t) || t == DT_I1 ? (uint64_t)(int64_t)(int32_t)v : v;
  float f;
  memcpy(&f, &v, 4);
  double d = (double)f;
  uint64_t bits;
  memcpy(&bits, &d, 8);
  return bits;
}

/* ---- reductions ---- */

/* What a sum begins with, in the lower bits. */
static uint64_t real_bits(const StripSimd *simd, double d) {
  float f = (float)d;
  uint64_t v = 0;
  if (is_wide(simd)) memcpy(&v, &d, 8);
  else memcpy(&v, &f, 4);
  return v;
}

bool strip_sum(const StripSimd *simd, OpKind binary, DType t, StripReduce *out) {
#define BODY(name, value)                                                               \
  do {                                                                                  \
    out->sum = SUM_##name, out->fn = STRIP_##name, out->neutral[0] = (uint64_t)(value); \
    return true;                                                                        \
  } while (0)
  const int64_t high = is_wide(simd) ? INT64_MAX : INT32_MAX;
  bool f = is_real(simd, t), b = t == DT_I1, u = is_whole(simd, t) && !dtype_is_signed(t),
       i = !f && !b && !u;
  switch (binary) {
  case OP_ADD:
    if (f) BODY(add, real_bits(simd, -0.0));
    if (!b) BODY(i_add, 0);
    break;
  case OP_MULTIPLY:
    if (f) BODY(mul, real_bits(simd, 1));
    if (!b) BODY(i_mul, 1);
    break;
  case OP_MAXIMUM:
    if (f) BODY(max, real_bits(simd, -INFINITY));
    if (i) BODY(i_max, -high - 1);
    if (u) BODY(u_max, 0);
    break;
  case OP_MINIMUM:
    if (f) BODY(min, real_bits(simd, INFINITY));
    if (i) BODY(i_min, high);
    if (u) BODY(u_min, -1);
    break;
  case OP_AND:
    if (!f) BODY(and, -1);
    break;
  case OP_OR:
    if (!f) BODY(or, 0);
    break;
  case OP_XOR:
    if (!f) BODY(xor, 0);
    break;
  default: break;
  }
  if (b && (binary == OP_ADD || binary == OP_MAXIMUM)) BODY(or, 0);
  if (b && (binary == OP_MULTIPLY || binary == OP_MINIMUM)) BODY(and, -1);
  return false;
#undef BODY
}

static int reg_of(const Value *const *names, int n_regs, const Value *v) {
  for (int i = 0; i < n_regs; i++)
    if (names[i] == v) return i;
  return -1;
}

static bool add_constant(const StripSimd *simd, StripBody *b, const Op *op) {
  const void *v = value_splat(&op->results[0]);
  if (!v || !strip_type_ok(simd, op_type(op)->dtype)) return false;
  uint64_t bits = strip_element(simd, op_type(op)->dtype, v, 0);
  strip_fill(simd, b->constant[b->n_regs], bits, simd->lanes);
  b->is_constant[b->n_regs] = true;
  return true;
}

/* The same on vectors and scalars only: what is left of a row's lanes goes by halves. */
static bool add_do(const StripSimd *simd, StripBody *b, const Value *const *names, const Op *op) {
  int fn = op->n_operands <= MOST_OPERANDS ? strip_fn(simd, op, true) : -1;
  DType t = op_type(op)->dtype;
  if (fn < 0 || fn != strip_fn(simd, op, false) || !strip_type_ok(simd, t)) return false;
  struct BodyDo *o = &b->dos[b->n_dos++];
  *o = (struct BodyDo){.fn = fn, .n_in = op->n_operands, .out = b->n_regs};
  o->after = strip_after(simd, op, fn);
  if ((t == DT_BF16 || t == DT_F16) && emit_digits(op->kind) == DIGITS_MORE)
    o->after = strip_to_type(simd, t);
  for (int k = 0; k < o->n_in; k++) {
    o->in[k] = reg_of(names, b->n_regs, op->operands[k]);
    if (o->in[k] < 0 || !strip_type_ok(simd, op->operands[k]->type->dtype)) return false;
    o->same |= (unsigned)b->is_constant[o->in[k]] << k;
  }
  return true;
}

static bool fill_body(const StripSimd *simd, StripBody *b, const Region *r, int n) {
  const Value *names[MOST_REGS];
  for (int i = 0; i < r->n_args; i++) names[b->n_regs++] = r->args[i];
  for (const Op *op = r->first; op && op != r->last; op = op->next) {
    if (b->n_regs == MOST_REGS) return false;
    if (!(op->kind == OP_CONSTANT ? add_constant(simd, b, op) : add_do(simd, b, names, op)))
      return false;
    names[b->n_regs++] = &op->results[0];
  }
  for (int k = 0; k < n; k++) {
    b->result[k] = reg_of(names, b->n_regs, r->last->operands[k]);
    if (b->result[k] < 2 * n) return false; /* overwritten while it is wanted */
  }
  return true;
}

StripBody *strip_body(const StripSimd *simd, const Region *r, int n) {
  StripBody *b = xcalloc(1, sizeof *b);
  if (r->n_args == 2 * n && r->n_args < MOST_REGS && fill_body(simd, b, r, n)) return b;
  free(b);
  return NULL;
}
