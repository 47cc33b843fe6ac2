/* Element-wise operations: all operands and the result have one shape; the row of ops.def says which
 * elements are allowed, or that the operation has its own function here. */
#include "ir/infer_priv.h"

typedef struct EwiseRow {
  OpKind kind;
  unsigned elems;
} EwiseRow;

#define OWN 0
static const EwiseRow rows[] = {
#define OP(...)
#define EWISE(id, fn, name, operands, elements, attrs) {OP_##id, elements},
#include "ir/ops.def"
#undef OP
};

/* The known dimensions of all operands together. */
static Err *common_shape(Infer *f, int64_t **dims) {
  const Type *t = in_type(f, 0);
  int64_t *d = tmp_dims(f, t->rank);
  for (int k = 0; k < t->rank; k++) d[k] = t->dims[k];
  for (int i = 1; i < f->op->n_operands; i++) {
    const Type *u = in_type(f, i);
    if (!dims_ok(t->rank, d, u->rank, u->dims)) FAIL(f, "operands 0 and %d differ in shape", i);
    for (int k = 0; k < t->rank; k++) d[k] = dim_more(d[k], u->dims[k]);
  }
  *dims = d;
  return NULL;
}

static Err *same_elems(Infer *f) {
  for (int i = 1; i < f->op->n_operands; i++) {
    const Type *a = in_type(f, 0), *b = in_type(f, i);
    if (elems_ok(a, b)) continue;
    FAIL(f, "operands have elements of %s%s and %s%s", a->quant ? "quantized " : "",
         dtype_name(a->dtype), b->quant ? "quantized " : "", dtype_name(b->dtype));
  }
  return NULL;
}

static Err *plain(Infer *f, unsigned elems, DType result) {
  TRY(want_tensors(f, elems));
  TRY(same_elems(f));
  int64_t *dims;
  TRY(common_shape(f, &dims));
  const Type *t = in_type(f, 0);
  out_shape(f, 0, result ? result : t->dtype, result ? NULL : t->quant, t->rank, dims);
  return NULL;
}

static Err *by_table(Infer *f) {
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].kind == f->op->kind) {
      const Type *t = in_type(f, 0);
      DType to =
          f->op->kind == OP_ABS && t->kind == TY_TENSOR && !t->quant && dtype_is_complex(t->dtype)
              ? dtype_real_of(t->dtype)
              : DT_INVALID;
      return plain(f, rows[i].elems, to);
    }
  assert(!"unreachable");
  return NULL;
}

static Err *convert(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  const Type *r = res_type(f, 0), *t = in_type(f, 0);
  if (r->quant || t->quant)
    FAIL(f, "quantized tensors are converted by uniform_quantize and uniform_dequantize");
  out_shape(f, 0, r->dtype, NULL, t->rank, t->dims);
  return NULL;
}

static Err *real_part(Infer *f) {
  TRY(want_tensor(f, 0, EF | EC));
  const Type *t = in_type(f, 0);
  out_shape(f, 0, dtype_real_of(t->dtype), NULL, t->rank, t->dims);
  return NULL;
}

static Err *complex_of(Infer *f) {
  TRY(plain(f, EF, DT_INVALID));
  DType d = in_type(f, 0)->dtype;
  if (d != DT_F32 && d != DT_F64)
    FAIL(f, "a complex number is made of f32 or f64, not of %s", dtype_name(d));
  f->out[0].dtype = d == DT_F32 ? DT_C64 : DT_C128;
  return NULL;
}

static Err *predicate(Infer *f) {
  bool q = f->op->kind == OP_IS_FINITE;
  return plain(f, q ? EF | EQ : EF, DT_I1);
}

static Err *compare(Infer *f) {
  TRY(plain(f, EMOST, DT_I1));
  Str type = op_str(f->op, "compare_type");
  unsigned c = elem_class(in_type(f, 0));
  bool ok = !type.n || str_is(type, "NOTYPE") || (c & EQ) || (str_is(type, "SIGNED") && (c & ES)) ||
            (str_is(type, "UNSIGNED") && (c & (EU | EB))) ||
            (str_is(type, "FLOAT") && (c & (EF | EC))) || (str_is(type, "TOTALORDER") && (c & EF));
  if (!ok)
    FAIL(f, "comparison type %.*s does not fit elements of %s", STR_ARG(type),
         dtype_name(in_type(f, 0)->dtype));
  return NULL;
}

static Err *reduce_precision(Infer *f) {
  if (op_int(f->op, "exponent_bits", 0) < 1) FAIL(f, "exponent_bits has to be positive");
  if (op_int(f->op, "mantissa_bits", 0) < 0) FAIL(f, "mantissa_bits is negative");
  return plain(f, EF | EQ, DT_INVALID);
}

static Err *quantize(Infer *f) {
  bool to = f->op->kind == OP_UNIFORM_QUANTIZE;
  TRY(want_tensor(f, 0, to ? EF | EQ | EP : EQ | EP));
  TRY(want_result_tensor(f, 0, to ? EQ | EP : EF));
  const Type *t = in_type(f, 0), *r = res_type(f, 0);
  DType from = t->quant ? t->quant->expressed : t->dtype,
        other = r->quant ? r->quant->expressed : r->dtype;
  if (from != other)
    FAIL(f, "the expressed type is %s on one side and %s on the other", dtype_name(from),
         dtype_name(other));
  out_shape(f, 0, r->dtype, r->quant, t->rank, t->dims);
  return NULL;
}

static Err *select(Infer *f) {
  TRY(want_tensor(f, 0, EB));
  TRY(want_tensor(f, 1, EANY));
  TRY(want_tensor(f, 2, EANY));
  const Type *p = in_type(f, 0), *a = in_type(f, 1), *b = in_type(f, 2);
  if (!elems_ok(a, b))
    FAIL(f, "the two values have elements of %s and %s", dtype_name(a->dtype),
         dtype_name(b->dtype));
  if (!shapes_ok(a, b)) FAIL(f, "the two values differ in shape");
  if (p->rank && !shapes_ok(p, a))
    FAIL(f, "the predicate has to be 0-dimensional or of the values' shape");
  int64_t *d = tmp_dims(f, a->rank);
  for (int i = 0; i < a->rank; i++) {
    d[i] = dim_more(a->dims[i], b->dims[i]);
    if (p->rank) d[i] = dim_more(d[i], p->dims[i]);
  }
  out_shape(f, 0, a->dtype, a->quant, a->rank, d);
  return NULL;
}

static Err *clamp(Infer *f) {
  TRY(want_tensors(f, EANY));
  TRY(same_elems(f));
  const Type *x = in_type(f, 1);
  for (int i = 0; i < 3; i += 2)
    if (in_type(f, i)->rank && !shapes_ok(in_type(f, i), x))
      FAIL(f, "%s has to be 0-dimensional or of the operand's shape", i ? "max" : "min");
  out_like(f, 0, x);
  return NULL;
}

static Err *map(Infer *f) {
  const Op *op = f->op;
  if (!op->n_operands) FAIL(f, "needs an operand");
  TRY(want_tensors(f, EANY));
  int64_t *dims;
  TRY(common_shape(f, &dims));
  const int64_t *v;
  int n, rank = in_type(f, 0)->rank;
  TRY(ints_of(f, "dimensions", rank, &v, &n));
  for (int i = 0; i < n; i++)
    if (v[i] != i) FAIL(f, "dimensions have to be 0, 1, ..., all of them");
  TRY(want_region_args(f, 0, op->n_operands));
  for (int i = 0; i < op->n_operands; i++) {
    const Type *a = op->regions[0]->args[i]->type;
    if (a->kind != TY_TENSOR || a->rank || !elems_ok(a, in_type(f, i)))
      FAIL(f,
           "argument %d of the computation has to be a 0-dimensional tensor of the operand's "
           "elements",
           i);
  }
  TRY(want_returns(f, 0, 1));
  const Type *y = region_return(f, 0)->operands[0]->type;
  if (y->kind != TY_TENSOR || y->rank)
    FAIL(f, "the computation has to return a 0-dimensional tensor");
  out_shape(f, 0, y->dtype, y->quant, rank, dims);
  return NULL;
}

static Err *threefry(Infer *f) {
  TRY(plain(f, EU, DT_INVALID));
  int64_t part = op_int(f->op, "part", 0);
  if (in_type(f, 0)->dtype != DT_U32) FAIL(f, "words are ui32");
  if (part < 0 || part > 2) FAIL(f, "part is 0, 1 or 2");
  return NULL;
}

InferFn infer_ewise_fn(OpKind k) {
  static const InferRow others[] = {
      {OP_CONVERT, convert},
      {OP_REAL, real_part},
      {OP_IMAG, real_part},
      {OP_COMPLEX, complex_of},
      {OP_IS_FINITE, predicate},
      {OP_COMPARE, compare},
      {OP_REDUCE_PRECISION, reduce_precision},
      {OP_UNIFORM_QUANTIZE, quantize},
      {OP_UNIFORM_DEQUANTIZE, quantize},
      {OP_SELECT, select},
      {OP_CLAMP, clamp},
      {OP_MAP, map},
      {OP_THREEFRY, threefry},
      {OP_CHLO_IS_INF, predicate},
      {OP_CHLO_IS_POS_INF, predicate},
      {OP_CHLO_IS_NEG_INF, predicate},
  };
  InferFn fn = infer_find(others, COUNT_OF(others), k);
  for (int i = 0; i < COUNT_OF(rows) && !fn; i++)
    if (rows[i].kind == k && rows[i].elems != OWN) fn = by_table;
  return fn;
}
