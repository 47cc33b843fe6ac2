/* Shape inference: dispatch by operation, and the checks that many operations share. */
#include "ir/infer_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- element types ---- */

unsigned elem_class(const Type *t) {
  if (t->quant) return t->quant->axis >= 0 ? EP : EQ;
  switch (dtype_class(t->dtype)) {
  case DC_BOOL: return EB;
  case DC_SINT: return ES;
  case DC_UINT: return EU;
  case DC_FLOAT: return EF;
  case DC_COMPLEX: return EC;
  default: return t->dtype == DT_INDEX ? ES : 0;
  }
}

const char *elem_class_words(unsigned mask, char buf[96]) {
  static const char *const words[] = {"boolean", "signed integer", "unsigned integer",  "float",
                                      "complex", "quantized",      "quantized per axis"};
  buf[0] = 0;
  for (int i = 0; i < 7; i++) {
    if (!(mask >> i & 1)) continue;
    const char *w = words[i];
    if (i == 1 && (mask & EU)) continue;
    if (i == 2 && (mask & ES)) w = "integer";
    if (buf[0]) strcat(buf, " or ");
    strcat(buf, w);
  }
  return buf;
}

static Err *bad_type(Infer *f, const char *what, int i, const Type *t, const char *want) {
  Buf b = {0};
  type_print(&b, t);
  Err *e = op_err(f->op, ERR_INVALID, "%s %d is %s, but has to be %s", what, i, b.p, want);
  buf_free(&b);
  return e;
}

static Err *check_tensor(Infer *f, const char *what, int i, const Type *t, unsigned mask) {
  char words[96], want[128];
  if (t->kind != TY_TENSOR) return bad_type(f, what, i, t, "a ranked tensor");
  if (elem_class(t) & mask) return NULL;
  snprintf(want, sizeof want, "a tensor of %s elements", elem_class_words(mask, words));
  return bad_type(f, what, i, t, want);
}

Err *want_tensor(Infer *f, int i, unsigned mask) {
  return check_tensor(f, "operand", i, in_type(f, i), mask);
}

Err *want_tensors(Infer *f, unsigned mask) {
  for (int i = 0; i < f->op->n_operands; i++) TRY(want_tensor(f, i, mask));
  return NULL;
}

Err *want_result_tensor(Infer *f, int i, unsigned mask) {
  return check_tensor(f, "result", i, res_type(f, i), mask);
}

Err *want_scalar(Infer *f, int i, unsigned mask) {
  TRY(want_tensor(f, i, mask));
  return in_type(f, i)->rank == 0
             ? NULL
             : bad_type(f, "operand", i, in_type(f, i), "a 0-dimensional tensor");
}

Err *want_shape_vector(Infer *f, int i, int64_t n) {
  TRY(want_tensor(f, i, EI));
  const Type *t = in_type(f, i);
  if (t->rank != 1) return bad_type(f, "operand", i, t, "a 1-dimensional tensor");
  if (n >= 0 && !dim_ok(t->dims[0], n))
    FAIL(f, "operand %d has %lld numbers, but %lld are needed", i, (long long)t->dims[0],
         (long long)n);
  return NULL;
}

/* ---- compatibility ---- */

bool dims_ok(int ra, const int64_t *a, int rb, const int64_t *b) {
  if (ra != rb) return false;
  for (int i = 0; i < ra; i++)
    if (!dim_ok(a[i], b[i])) return false;
  return true;
}

bool shapes_ok(const Type *a, const Type *b) { return dims_ok(a->rank, a->dims, b->rank, b->dims); }

static bool quants_ok(const Quant *a, const Quant *b) {
  if (!a || !b) return a == b;
  return a->storage == b->storage && a->expressed == b->expressed;
}

bool elems_ok(const Type *a, const Type *b) {
  return a->dtype == b->dtype && quants_ok(a->quant, b->quant);
}

bool types_ok(const Type *a, const Type *b) {
  if (a == b) return true;
  if (a->kind != b->kind) return false;
  if (a->kind == TY_TENSOR) return elems_ok(a, b) && shapes_ok(a, b);
  if (a->kind == TY_UNRANKED || a->kind == TY_SCALAR)
    return a->dtype == b->dtype && quants_ok(a->quant, b->quant);
  if (a->kind == TY_BUFFER) return a->dtype == b->dtype && shapes_ok(a, b);
  if (a->n_elems != b->n_elems || a->n_results != b->n_results) return false;
  for (int i = 0; i < a->n_elems; i++)
    if (!types_ok(a->elems[i], b->elems[i])) return false;
  for (int i = 0; i < a->n_results; i++)
    if (!types_ok(a->results[i], b->results[i])) return false;
  return true;
}

bool same_scales(const Quant *a, const Quant *b) {
  if (!a || !b) return a == b;
  if (a->n != b->n || (a->axis < 0) != (b->axis < 0)) return false;
  for (int i = 0; i < a->n; i++)
    if (a->scales[i] != b->scales[i] || a->zero_points[i] != b->zero_points[i]) return false;
  return true;
}

bool promotable(DType from, DType to) {
  return from == to || (dtype_class(from) == dtype_class(to) && dtype_bits(from) <= dtype_bits(to));
}

/* ---- results ---- */

int64_t *tmp_dims(Infer *f, int n) { return ARENA_ARRAY(f->arena, int64_t, n); }

void out_shape(Infer *f, int i, DType t, const Quant *q, int rank, const int64_t *dims) {
  f->out[i] = (Shape){.dtype = t, .quant = q, .rank = rank, .any_quant = q != NULL};
  f->out[i].dims = rank ? arena_dup(f->arena, dims, sizeof *dims * (size_t)rank) : NULL;
}

void out_like(Infer *f, int i, const Type *t) {
  if (t->kind == TY_TENSOR) out_shape(f, i, t->dtype, t->quant, t->rank, t->dims);
  else out_type(f, i, t);
}

void out_type(Infer *f, int i, const Type *t) { f->out[i] = (Shape){.type = t}; }

void out_declared(Infer *f, int i) {
  out_type(f, i, res_type(f, i));
  f->chosen[i] = true;
}

/* ---- constant operands ---- */

const int64_t *const_ints(Infer *f, int i, int64_t *n) {
  const Op *def = f->op->operands[i]->def;
  const Attr *a = def && def->kind == OP_CONSTANT ? op_attr(def, "value") : NULL;
  if (!a || a->kind != AT_TENSOR || a->tensor->count > 1024 || !a->tensor->data) return NULL;
  DTypeClass c = dtype_class(a->dtype);
  if (c != DC_SINT && c != DC_UINT && a->dtype != DT_INDEX) return NULL;
  int64_t *v = tmp_dims(f, (int)a->tensor->count);
  for (int64_t k = 0; k < a->tensor->count; k++)
    v[k] = elem_get_i64(a->dtype == DT_INDEX ? DT_I64 : a->dtype, tensor_at(a->tensor, k));
  *n = a->tensor->count;
  return v;
}

Err *check_const_shape(Infer *f, int i) {
  int64_t n;
  const int64_t *v = const_ints(f, i, &n);
  const Type *r = res_type(f, 0);
  for (int k = 0; v && k < r->rank && k < n; k++) {
    if (v[k] < 0)
      FAIL(f, "the shape operand asks for dimension %d of size %lld", k, (long long)v[k]);
    if (!dim_ok(r->dims[k], v[k]))
      FAIL(f, "the shape operand asks for %lld in dimension %d, the result has %lld",
           (long long)v[k], k, (long long)r->dims[k]);
  }
  return NULL;
}

/* ---- attributes ---- */

Err *ints_of(Infer *f, const char *name, int n, const int64_t **v, int *count) {
  *count = op_ints(f->op, name, v);
  if (n >= 0 && *count != n) FAIL(f, "%s has %d numbers, but %d are needed", name, *count, n);
  return NULL;
}

Err *dims_of(Infer *f, const char *name, int64_t limit, bool sorted, const int64_t **v,
             int *count) {
  *count = op_ints(f->op, name, v);
  for (int i = 0; i < *count; i++) {
    int64_t d = (*v)[i];
    if (d < 0 || d >= limit)
      FAIL(f, "%s: %lld is not a dimension, there are %lld", name, (long long)d, (long long)limit);
    if (sorted && i && (*v)[i - 1] >= d) FAIL(f, "%s is not in ascending order", name);
    if (!sorted && b_has_dim(i, *v, d))
      FAIL(f, "%s: dimension %lld is given twice", name, (long long)d);
  }
  return NULL;
}

Err *dim_index(Infer *f, const char *name, int64_t limit, int64_t *out) {
  *out = op_int(f->op, name, 0);
  if (*out < 0 || *out >= limit)
    FAIL(f, "%s = %lld is not a dimension, there are %lld", name, (long long)*out,
         (long long)limit);
  return NULL;
}

Err *window_ints(Infer *f, const char *name, int n, int64_t dflt, const int64_t **v) {
  int count = op_ints(f->op, name, v);
  if (op_attr(f->op, name)) {
    /* dynamic_conv of older JAX has a stride for every dimension of the operand; the first ones
     * count */
    if (count != n && !(count > n && f->op->kind == OP_DYNAMIC_CONV))
      FAIL(f, "%s has %d numbers, but there are %d dimensions", name, count, n);
    return NULL;
  }
  int64_t *d = tmp_dims(f, n);
  for (int i = 0; i < n; i++) d[i] = dflt;
  *v = d;
  return NULL;
}

Err *window_padding(Infer *f, int n, const int64_t **v) {
  const Attr *a = op_attr(f->op, "padding");
  int count = op_ints(f->op, "padding", v);
  if (a) {
    bool shaped = a->kind != AT_TENSOR || (a->tensor->rank == 2 && a->tensor->dims[1] == 2);
    if (count != 2 * n || !shaped) FAIL(f, "padding has to be a %d x 2 matrix", n);
    return NULL;
  }
  *v = tmp_dims(f, 2 * n);
  return NULL;
}

static int64_t dilate(int64_t n, int64_t d) { /* -1: too large */
  int64_t r;
  if (n <= 0) return 0;
  return mul_overflows(n - 1, d, &r) || add_overflows(r, 1, &r) ? -1 : r;
}

Err *window_dim(Infer *f, int64_t size, int64_t lo, int64_t hi, int64_t base_dilation,
                int64_t window, int64_t dilation, int64_t stride, int64_t *out) {
  if (window <= 0 && window != DIM_DYNAMIC) FAIL(f, "a window of size %lld", (long long)window);
  if (stride <= 0) FAIL(f, "a window stride of %lld", (long long)stride);
  if (base_dilation <= 0 || dilation <= 0)
    FAIL(f, "a dilation of %lld", (long long)MIN(base_dilation, dilation));
  *out = DIM_DYNAMIC;
  if (size < 0 || window < 0) return NULL;
  int64_t padded, w = dilate(window, dilation), base = dilate(size, base_dilation);
  if (w < 0 || base < 0 || add_overflows(base, lo, &padded) || add_overflows(padded, hi, &padded))
    FAIL(f, "the padded size does not fit in 64 bits");
  if (padded < 0) FAIL(f, "padding makes a dimension of size %lld", (long long)padded);
  *out = padded == 0 || w > padded ? 0 : (padded - w) / stride + 1;
  return NULL;
}

/* ---- regions ---- */

Err *want_region_args(Infer *f, int r, int n) {
  const Region *g = f->op->regions[r];
  if (g->n_args != n) FAIL(f, "region %d has %d arguments, but %d are needed", r, g->n_args, n);
  return NULL;
}

const Op *region_return(Infer *f, int r) {
  const Op *last = f->op->regions[r]->last;
  return last && last->kind == OP_RETURN ? last : NULL;
}

Err *want_returns(Infer *f, int r, int n) {
  const Op *ret = region_return(f, r);
  if (!ret) FAIL(f, "region %d does not end in stablehlo.return", r);
  if (ret->n_operands != n)
    FAIL(f, "region %d returns %d values, but %d are needed", r, ret->n_operands, n);
  return NULL;
}

Err *want_reducer(Infer *f, int r, int n, const Type *const *inputs, const Type *const *inits,
                  const Type **elem) {
  const Region *g = f->op->regions[r];
  TRY(want_region_args(f, r, 2 * n));
  TRY(want_returns(f, r, n));
  const Op *ret = region_return(f, r);
  for (int i = 0; i < n; i++) {
    const Type *a = g->args[i]->type, *b = g->args[n + i]->type, *y = ret->operands[i]->type;
    if (a->kind != TY_TENSOR || a->rank != 0)
      FAIL(f, "argument %d of the body has to be a 0-dimensional tensor", i);
    if (!types_ok(a, b)) FAIL(f, "arguments %d and %d of the body differ in type", i, n + i);
    if (!types_ok(a, y))
      FAIL(f, "the body's result %d has another type than its argument %d", i, i);
    const Type *x = inputs ? inputs[i] : NULL, *v = inits ? inits[i] : NULL;
    if (x && !(a->quant || x->quant ? elems_ok(a, x) || (a->quant && x->quant &&
                                                         a->quant->expressed == x->quant->expressed)
                                    : promotable(x->dtype, a->dtype)))
      FAIL(f, "operand %d has elements of %s, the body computes in %s", i, dtype_name(x->dtype),
           dtype_name(a->dtype));
    if (v && !(a->quant || v->quant ? elems_ok(a, v) || (a->quant && v->quant &&
                                                         a->quant->expressed == v->quant->expressed)
                                    : promotable(v->dtype, a->dtype)))
      FAIL(f, "initial value %d has elements of %s, the body computes in %s", i,
           dtype_name(v->dtype), dtype_name(a->dtype));
    if (elem) elem[i] = a;
  }
  return NULL;
}

/* ---- dispatch ---- */

static Err *declared(Infer *f) {
  for (int i = 0; i < f->op->n_results; i++) out_declared(f, i);
  return NULL;
}

static InferFn find_fn(OpKind k) {
  InferFn fn = NULL;
  switch (op_info[k].cls) {
  case OC_EWISE: fn = infer_ewise_fn(k); break;
  case OC_MOVE:
  case OC_CONSTANT: fn = infer_move_fn(k); break;
  case OC_INDEX: fn = infer_index_fn(k); break;
  case OC_REDUCE: fn = infer_reduce_fn(k); break;
  case OC_CONTRACT: fn = infer_contract_fn(k); break;
  case OC_CONTROL: fn = infer_control_fn(k); break;
  case OC_COLLECTIVE: fn = infer_collective_fn(k); break;
  case OC_DYNAMIC: fn = infer_dynamic_fn(k); break;
  case OC_SORT:
  case OC_LINALG:
  case OC_RNG:
  case OC_TEST: fn = infer_misc_fn(k); break;
  case OC_OTHER: break;
  }
  if (!fn) fn = infer_control_fn(k);
  if (!fn) fn = infer_misc_fn(k);
  return fn ? fn : declared;
}

Err *infer_op(Infer *f) { return find_fn(f->op->kind)(f); }

Err *ir_check_arity(const Op *op) {
  const OpInfo *o = &op_info[op->kind];
  if (o->operands != VARIADIC && op->n_operands != o->operands)
    return op_err(op, ERR_INVALID, "has %d operands, but takes %d", op->n_operands, o->operands);
  if (o->regions != VARIADIC && op->n_regions != o->regions)
    return op_err(op, ERR_INVALID, "has %d regions, but takes %d", op->n_regions, o->regions);
  if (o->results != VARIADIC && op->n_results != o->results)
    return op_err(op, ERR_INVALID, "has %d results, but makes %d", op->n_results, o->results);
  return NULL;
}

Err *ir_infer(Module *m, const Op *op, Type **out) {
  TRY(ir_check_arity(op));
  Arena *a = arena_new();
  Infer f = {.op = op, .arena = a, .m = m};
  f.out = ARENA_ARRAY(a, Shape, op->n_results);
  f.chosen = ARENA_ARRAY(a, bool, op->n_results);
  Err *e = infer_op(&f);
  for (int i = 0; i < op->n_results && !e; i++) {
    const Shape *s = &f.out[i];
    if (s->type) out[i] = (Type *)(uintptr_t)s->type;
    else out[i] = type_tensor_full(m, s->dtype, s->rank, s->dims, NULL, s->quant);
  }
  arena_free(a);
  return e;
}
