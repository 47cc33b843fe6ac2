/* Which functions an operation is on strips. */
#include "dev/cpu/strips/strips_run.h"

#include <stdlib.h>

#include "compile/pass/query.h"

/* bf16 and f16 are f32 in strips, narrow integers i32. */
static bool is_real(DType t) { return t == DT_F32 || t == DT_BF16 || t == DT_F16; }
static bool is_narrow(DType t) { return t == DT_I8 || t == DT_U8 || t == DT_I16 || t == DT_U16; }

bool strip_in_memory(DType t) { return t == DT_F32 || t == DT_I32 || t == DT_U32; }

bool strip_type_ok(DType t) {
  return is_real(t) || is_narrow(t) || t == DT_I32 || t == DT_U32 || t == DT_I1;
}

int strip_to_type(DType t) {
  switch (t) {
  case DT_BF16: return STRIP_to_bf16;
  case DT_F16: return STRIP_to_f16;
  case DT_I8: return STRIP_to_i8;
  case DT_U8: return STRIP_to_u8;
  case DT_I16: return STRIP_to_i16;
  case DT_U16: return STRIP_to_u16;
  default: return -1;
  }
}

int strip_load(DType t) {
  switch (t) {
  case DT_I1: return STRIP_load_mask;
  case DT_BF16: return STRIP_load_bf16;
  case DT_F16: return STRIP_load_f16;
  case DT_I8: return STRIP_load_i8;
  case DT_U8: return STRIP_load_u8;
  case DT_I16: return STRIP_load_i16;
  case DT_U16: return STRIP_load_u16;
  default: return STRIP_copy;
  }
}

int strip_store(DType t) {
  switch (t) {
  case DT_I1: return STRIP_store_mask;
  case DT_BF16: return STRIP_store_bf16;
  case DT_F16: return STRIP_store_f16;
  case DT_I8:
  case DT_U8: return STRIP_store_8;
  case DT_I16:
  case DT_U16: return STRIP_store_16;
  default: return STRIP_copy;
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
  case OP_EXPONENTIAL: return STRIP_exp;
  case OP_EXPONENTIAL_MINUS_ONE: return STRIP_expm1;
  case OP_LOG: return STRIP_log;
  case OP_LOG_PLUS_ONE: return STRIP_log1p;
  case OP_TANH: return STRIP_tanh;
  case OP_LOGISTIC: return STRIP_logistic;
  case OP_CHLO_ERF: return STRIP_erf;
  case OP_CHLO_ERFC: return STRIP_erfc;
  case OP_CHLO_ERF_INV: return STRIP_erf_inv;
  case OP_SINE: return lanes ? STRIP_sin : STRIP_sin_one;
  case OP_COSINE: return lanes ? STRIP_cos : STRIP_cos_one;
  case OP_TAN: return lanes ? STRIP_tan : STRIP_tan_one;
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

static int fn_of_int(OpKind k, DType t) {
  bool is_signed = dtype_is_signed(t), of_u32 = t == DT_U32;
  switch (k) {
  case OP_ADD: return STRIP_i_add;
  case OP_SUBTRACT: return STRIP_i_sub;
  case OP_MULTIPLY: return STRIP_i_mul;
  case OP_DIVIDE: return of_u32 ? STRIP_u_div : STRIP_i_div;
  case OP_REMAINDER: return of_u32 ? STRIP_u_rem : STRIP_i_rem;
  case OP_NEGATE: return STRIP_i_neg;
  case OP_SIGN: return of_u32 ? -1 : STRIP_i_sign;
  case OP_POPCNT: return is_narrow(t) && is_signed ? -1 : STRIP_popcnt;
  case OP_COUNT_LEADING_ZEROS: return is_narrow(t) ? -1 : STRIP_clz;
  case OP_ABS: return is_signed ? STRIP_i_abs : STRIP_copy;
  case OP_CLAMP: return of_u32 ? -1 : STRIP_i_clamp;
  case OP_MAXIMUM: return of_u32 ? STRIP_u_max : STRIP_i_max;
  case OP_MINIMUM: return of_u32 ? STRIP_u_min : STRIP_i_min;
  case OP_AND: return STRIP_and;
  case OP_OR: return STRIP_or;
  case OP_XOR: return STRIP_xor;
  case OP_NOT: return STRIP_not;
  case OP_SHIFT_LEFT: return STRIP_shl;
  case OP_SHIFT_RIGHT_LOGICAL: return is_narrow(t) && is_signed ? -1 : STRIP_shr;
  case OP_SHIFT_RIGHT_ARITHMETIC: return is_narrow(t) && !is_signed ? -1 : STRIP_sar;
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

static int fn_of_compare(const Op *op, DType t) {
  static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  Str dir = op_str(op, "comparison_direction");
  bool total = str_is(op_str(op, "compare_type"), "TOTALORDER");
  int at = 0;
  while (at < 5 && !str_is(dir, directions[at])) at++;
  if (is_real(t)) return (total ? STRIP_t_eq : STRIP_eq) + at;
  if (at < 2) return STRIP_i_eq + at;
  return t == DT_I1 ? -1 : t == DT_U32 ? STRIP_u_ge + at - 2 : STRIP_i_eq + at;
}

static int fn_of_float_to(DType to) {
  switch (to) {
  case DT_I32: return STRIP_f_to_i;
  case DT_U32: return STRIP_f_to_u;
  case DT_I8: return STRIP_f_to_i8;
  case DT_U8: return STRIP_f_to_u8;
  case DT_I16: return STRIP_f_to_i16;
  case DT_U16: return STRIP_f_to_u16;
  default: return -1;
  }
}

/* Narrow results are made so by strip_after. */
static int fn_of_convert(DType from, DType to) {
  if (from == to) return STRIP_copy;
  if (is_real(from)) {
    if (to == DT_I1) return STRIP_f_to_mask;
    if (!is_real(to)) return fn_of_float_to(to);
    return to == DT_F32 ? STRIP_copy : strip_to_type(to);
  }
  if (to == DT_I1) return STRIP_i_to_mask;
  if (from == DT_I1) return is_real(to) ? STRIP_mask_to_f : STRIP_mask_to_i;
  if (is_real(to)) return from == DT_U32 ? STRIP_u_to_f : STRIP_i_to_f;
  return is_narrow(to) ? strip_to_type(to) : STRIP_copy;
}

static int fn_of_bitcast(DType from, DType to) {
  if (strip_in_memory(from) && strip_in_memory(to)) return STRIP_copy;
  bool alike = is_narrow(from) && is_narrow(to) && dtype_bytes(from) == dtype_bytes(to);
  return !alike ? -1 : from == to ? STRIP_copy : strip_to_type(to);
}

int strip_fn(const Op *op, bool lanes) {
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
  case OP_COMPARE: return fn_of_compare(op, t);
  case OP_CONVERT: return fn_of_convert(t, op_type(op)->dtype);
  case OP_BITCAST_CONVERT: return fn_of_bitcast(t, op_type(op)->dtype);
  default: break;
  }
  if (is_real(t)) return fn_of_float(op, lanes);
  return t == DT_I1 ? fn_of_bool(op->kind) : fn_of_int(op->kind, t);
}

/* What is done to the result then, so that it is of its type: narrow integers wrap; whole numbers and
 * truths that become bf16 or f16 are rounded. -1: nothing */
int strip_after(const Op *op, int fn) {
  DType t = op_type(op)->dtype;
  switch (fn) {
  case STRIP_i_add:
  case STRIP_i_sub:
  case STRIP_i_mul:
  case STRIP_i_div:
  case STRIP_i_neg:
  case STRIP_i_abs:
  case STRIP_not:
  case STRIP_shl: return is_narrow(t) ? strip_to_type(t) : -1;
  case STRIP_i_to_f:
  case STRIP_u_to_f: return strip_to_type(t);
  default: return -1;
  }
}

uint32_t strip_element(DType t, const void *base, int64_t at) {
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
    f = (float)elem_get_f64(t, h + at);
    memcpy(&v, &f, 4);
    return v;
  default: return ((const uint32_t *)base)[at];
  }
}

/* ---- reductions ---- */

bool strip_sum(OpKind binary, DType t, StripReduce *out) {
  static const uint32_t minus_zero = 0x80000000u, one = 0x3f800000u, inf = 0x7f800000u;
#define BODY(name, value)                                                     \
  do {                                                                        \
    out->sum = SUM_##name, out->fn = STRIP_##name, out->neutral[0] = (value); \
    return true;                                                              \
  } while (0)
  bool f = is_real(t), b = t == DT_I1, u = t == DT_U32, i = !f && !b && !u;
  switch (binary) {
  case OP_ADD:
    if (f) BODY(add, minus_zero);
    if (!b) BODY(i_add, 0);
    break;
  case OP_MULTIPLY:
    if (f) BODY(mul, one);
    if (!b) BODY(i_mul, 1);
    break;
  case OP_MAXIMUM:
    if (f) BODY(max, inf | minus_zero);
    if (i) BODY(i_max, (uint32_t)INT32_MIN);
    if (u) BODY(u_max, 0);
    break;
  case OP_MINIMUM:
    if (f) BODY(min, inf);
    if (i) BODY(i_min, INT32_MAX);
    if (u) BODY(u_min, UINT32_MAX);
    break;
  case OP_AND:
    if (!f) BODY(and, UINT32_MAX);
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
  if (b && (binary == OP_MULTIPLY || binary == OP_MINIMUM)) BODY(and, UINT32_MAX);
  return false;
#undef BODY
}

static int reg_of(const Value *const *names, int n_regs, const Value *v) {
  for (int i = 0; i < n_regs; i++)
    if (names[i] == v) return i;
  return -1;
}

static bool add_constant(StripBody *b, const Op *op) {
  const void *v = value_splat(&op->results[0]);
  if (!v || !strip_type_ok(op_type(op)->dtype)) return false;
  uint32_t bits = strip_element(op_type(op)->dtype, v, 0);
  for (int i = 0; i < SCALAR_BYTES / 4; i++) b->constant[b->n_regs][i] = bits;
  b->is_constant[b->n_regs] = true;
  return true;
}

/* The same on vectors and scalars only: what is left of a row's lanes goes by halves. */
static bool add_do(StripBody *b, const Value *const *names, const Op *op) {
  int fn = op->n_operands <= MOST_OPERANDS ? strip_fn(op, true) : -1;
  DType t = op_type(op)->dtype;
  if (fn < 0 || fn != strip_fn(op, false) || !strip_type_ok(t)) return false;
  struct BodyDo *o = &b->dos[b->n_dos++];
  *o = (struct BodyDo){.fn = fn, .n_in = op->n_operands, .out = b->n_regs};
  o->after = strip_after(op, fn);
  if (is_real(t) && (emit_digits(op->kind) == DIGITS_MORE)) o->after = strip_to_type(t);
  for (int k = 0; k < o->n_in; k++) {
    o->in[k] = reg_of(names, b->n_regs, op->operands[k]);
    if (o->in[k] < 0 || !strip_type_ok(op->operands[k]->type->dtype)) return false;
    o->same |= (unsigned)b->is_constant[o->in[k]] << k;
  }
  return true;
}

static bool fill_body(StripBody *b, const Region *r, int n) {
  const Value *names[MOST_REGS];
  for (int i = 0; i < r->n_args; i++) names[b->n_regs++] = r->args[i];
  for (const Op *op = r->first; op && op != r->last; op = op->next) {
    if (b->n_regs == MOST_REGS) return false;
    if (!(op->kind == OP_CONSTANT ? add_constant(b, op) : add_do(b, names, op))) return false;
    names[b->n_regs++] = &op->results[0];
  }
  for (int k = 0; k < n; k++) {
    b->result[k] = reg_of(names, b->n_regs, r->last->operands[k]);
    if (b->result[k] < 2 * n) return false; /* overwritten while it is wanted */
  }
  return true;
}

StripBody *strip_body(const Region *r, int n) {
  StripBody *b = xcalloc(1, sizeof *b);
  if (r->n_args == 2 * n && r->n_args < MOST_REGS && fill_body(b, r, n)) return b;
  free(b);
  return NULL;
}
