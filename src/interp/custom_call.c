/* custom_call: the targets that weft knows. A table of names, then what the process has registered
 * (the plugin's host callbacks), then the name as an element-wise op of chlo (mhlo.erf and the
 * like, as older exporters write).
 */
#include <pthread.h>

#include "interp/ewise_priv.h"

/* ---- results --------------------------------------------------------------------------------- */

static Err *pass_through(const Op *op, Tensor *const *in, Tensor **results) {
  if (op->n_results > op->n_operands) return op_err(op, ERR_INVALID, "more results than operands");
  for (int i = 0; i < op->n_results; i++) results[i] = tensor_retain(in[i]);
  return NULL;
}

static Err *nothing(const Op *op, Tensor *const *in, Tensor **results) {
  (void)in;
  for (int i = 0; i < op->n_results; i++) {
    const Type *t = op->results[i].type;
    if (t->kind != TY_TOKEN) return op_err(op, ERR_UNIMPLEMENTED, "a result that is not a token");
    results[i] = tensor_make(DT_TOKEN, 0, NULL);
  }
  return NULL;
}

/* Symbolic shapes: the first operand says whether the constraint holds. */
static Err *shape_assertion(const Op *op, Tensor *const *in, Tensor **results) {
  (void)results;
  int64_t ok;
  load_i(in[0]->dtype, in[0]->data, 0, 1, 1, &ok);
  Str text = op_str(op, "error_message");
  if (ok) return NULL;
  Buf b = {0};
  for (size_t i = 0; i < text.n; i++) { /* {0}, {1}: the further operands */
    size_t j = i + 1;
    int which = 0;
    while (text.p[i] == '{' && j < text.n && text.p[j] >= '0' && text.p[j] <= '9')
      which = which * 10 + text.p[j++] - '0';
    if (j > i + 1 && j < text.n && text.p[j] == '}' && which + 1 < op->n_operands) {
      int64_t v;
      load_i(in[which + 1]->dtype, in[which + 1]->data, 0, 1, 1, &v);
      buf_printf(&b, "%lld", (long long)v);
      i = j;
    } else {
      buf_byte(&b, text.p[i]);
    }
  }
  Err *e = op_err(op, ERR_INVALID, "%s", b.n ? b.p : "a shape constraint does not hold");
  buf_free(&b);
  return e;
}

/* ---- top k ----------------------------------------------------------------------------------- */

static const Attr *config(const Op *op, const char *name) {
  static const char *const places[] = {"backend_config", "mhlo.backend_config", "mhlo.attributes"};
  for (int i = 0; i < COUNT_OF(places); i++) {
    const Attr *a = op_attr(op, places[i]);
    const Attr *x = a && a->kind == AT_DICT ? attrs_get(a->dict, a->n, name) : NULL;
    if (x) return x;
  }
  return op_attr(op, name);
}
static int64_t config_int(const Op *op, const char *name, int64_t dflt) {
  const Attr *a = config(op, name);
  return a && (a->kind == AT_INT || a->kind == AT_BOOL) ? a->i : dflt;
}

/* Does the called comparator prefer larger elements? */
static bool comparator_is_greater(const Op *op) {
  const Attr *calls = op_attr(op, "called_computations");
  if (!calls || calls->kind != AT_ARRAY || !calls->n || !op->parent || !op->parent->func)
    return true;
  const Func *f = module_func(op->parent->func->module, calls->items[0]->s);
  for (const Op *o = f && f->body ? f->body->first : NULL; o; o = o->next)
    if (o->kind == OP_COMPARE) {
      Str d = op_str(o, "comparison_direction");
      bool greater = str_is(d, "GT") || str_is(d, "GE");
      bool swapped = o->operands[0]->index > o->operands[1]->index;
      return greater != swapped;
    }
  return true;
}

bool interp_approx_top_k(const Op *op, int *dim, bool *greater) {
  Str name = op_str(op, "call_target_name");
  if (op->kind != OP_CUSTOM_CALL ||
      (!str_is(name, "ApproxTopK") && !str_is(name, "PartialReduce")) || op->n_operands < 4 ||
      op->n_results != 2)
    return false;
  const Type *t = op->operands[0]->type;
  int64_t d = config_int(op, "reduction_dim", t->rank - 1);
  if (d < 0) d += t->rank;
  *dim = (int)d;
  *greater = comparator_is_greater(op);
  return d >= 0 && d < t->rank;
}

/* operands: values, indices, two initial values. Exact: a recall of 1 satisfies any target. */
static Err *approx_top_k(const Op *op, Tensor *const *in, Tensor **results) {
  const Tensor *x = in[0];
  int64_t dim = config_int(op, "reduction_dim", x->rank - 1);
  if (dim < 0) dim += x->rank;
  if (op->n_operands < 4 || op->n_results != 2 || dim < 0 || dim >= x->rank)
    return op_err(op, ERR_UNIMPLEMENTED,
                  "other operands than (values, indices, two initial values)");
  int64_t dims[MAX_RANK];
  memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
  const Type *t = op->results[0].type;
  dims[dim] = t->kind == TY_TENSOR && t->dims[dim] != DIM_DYNAMIC ? t->dims[dim]
                                                                  : config_int(op, "top_k", 1);
  if (dims[dim] > x->dims[dim])
    return op_err(op, ERR_INVALID, "top_k is larger than the dimension");
  Tensor *values, *places, *picked;
  TRY(tensor_new(x->dtype, x->rank, dims, &values));
  TRY(tensor_new(DT_I64, x->rank, dims, &places));
  TRY(tensor_new(in[1]->dtype, x->rank, dims, &picked));
  if (values->count) top_k_along(x, (int)dim, dims[dim], comparator_is_greater(op), values, places);
  int64_t inner = 1, k = dims[dim], n = x->dims[dim];
  for (int d = (int)dim + 1; d < x->rank; d++) inner *= dims[d];
  for (int64_t i = 0; i < picked->count; i++) {
    int64_t from = i / (k * inner) * n * inner + ((int64_t *)places->data)[i] * inner + i % inner;
    elem_copy(picked, i, in[1], from);
  }
  tensor_release(places);
  results[0] = values;
  results[1] = picked;
  return NULL;
}

/* mhlo.topk: {k, largest} */
static Err *mhlo_top_k(const Op *op, Tensor *const *in, Tensor **results) {
  const Tensor *x = in[0];
  int64_t dims[MAX_RANK], k = config_int(op, "k", -1);
  if (op->n_operands > 1)
    load_i(in[1]->dtype, in[1]->data, 0, 1, 1, &k); /* stablehlo.dynamic_top_k */
  if (op->n_results != 2 || x->rank < 1)
    return op_err(op, ERR_INVALID, "an operand of rank 1 or more and two results");
  memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
  if (k < 0) k = op->results[0].type->dims[x->rank - 1];
  if (k < 0 || k > dims[x->rank - 1])
    return op_err(op, ERR_INVALID, "k does not fit the last dimension");
  dims[x->rank - 1] = k;
  TRY(tensor_new(x->dtype, x->rank, dims, &results[0]));
  TRY(tensor_new(op->results[1].type->dtype, x->rank, dims, &results[1]));
  if (results[0]->count)
    top_k_along(x, x->rank - 1, k, config_int(op, "largest", 1) != 0, results[0], results[1]);
  return NULL;
}

/* ---- element-wise names ---------------------------------------------------------------------- */

static OpKind chlo_kind(Str target) {
  static const char *const prefixes[] = {"mhlo.", "chlo.", "stablehlo."};
  for (int i = 0; i < COUNT_OF(prefixes); i++) {
    size_t n = strlen(prefixes[i]);
    if (!str_starts(target, prefixes[i])) continue;
    char name[80];
    if (target.n - n > sizeof name - 12) return OP_UNKNOWN;
    memcpy(name, "chlo.", 5);
    memcpy(name + 5, target.p + n, target.n - n);
    OpKind k = op_kind_from_name((Str){name, target.n - n + 5});
    if (k != OP_UNKNOWN && op_info[k].cls == OC_EWISE) return k;
    memcpy(name, "stablehlo.", 10);
    memcpy(name + 10, target.p + n, target.n - n);
    k = op_kind_from_name((Str){name, target.n - n + 10});
    if (k != OP_UNKNOWN && op_info[k].cls == OC_EWISE && k != OP_MAP && k != OP_COMPARE) return k;
  }
  return OP_UNKNOWN;
}

static Err *element_wise(const Op *op, Tensor *const *in, Tensor **results) {
  Op inner = *op;
  inner.kind = chlo_kind(op_str(op, "call_target_name"));
  DType types[EW_MAX_OPERANDS] = {DT_INVALID};
  const void *data[EW_MAX_OPERANDS] = {0};
  int64_t stride[EW_MAX_OPERANDS];
  EwKernel k;
  for (int i = 0; i < op->n_operands && i < EW_MAX_OPERANDS; i++) {
    types[i] = in[i]->dtype;
    data[i] = in[i]->data;
    stride[i] = in[i]->count == in[0]->count ? 1 : 0;
  }
  if (op->n_results != 1 || op->n_operands != op_info[inner.kind].operands ||
      !ewise_resolve(&inner, types, op->results[0].type->dtype, &k))
    return op_err(op, ERR_UNIMPLEMENTED, "no meaning for operands of type %s",
                  dtype_name(types[0]));
  TRY(tensor_new(k.out, in[0]->rank, in[0]->dims, &results[0]));
  if (results[0]->count) ewise_apply(&k, results[0]->count, results[0]->data, data, stride);
  return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
  const char *target;
  CustomCallFn fn;
  int operands; /* at least */
} rows[] = {
    {"Sharding", pass_through, 1},
    {"SPMDFullToShardShape", pass_through, 1},
    {"SPMDShardToFullShape", pass_through, 1},
    {"LayoutConstraint", pass_through, 1},
    {"InspectSharding", pass_through, 1},
    {"annotate_device_placement", pass_through, 1},
    {"MoveToHost", pass_through, 1},
    {"MoveToDevice", pass_through, 1},
    {"PartialReduce", approx_top_k, 4},
    {"ApproxTopK", approx_top_k, 4},
    {"TopK", mhlo_top_k, 1},
    {"mhlo.topk", mhlo_top_k, 1},
    {"chlo.top_k", mhlo_top_k, 1},
    {"stablehlo.dynamic_top_k", mhlo_top_k, 1},
    {"Qr", custom_qr, 1},
    {"ProductOfElementaryHouseholderReflectors", custom_householder_product, 2},
    {"LuDecomposition", custom_lu, 1},
    {"Eigh", custom_eigh, 1},
    {"shape_assertion", shape_assertion, 1},
    {"AssumeGatherIndicesInBound", pass_through, 1},
    {"tridiagonal_solve_perturbed_ffi", tridiagonal_solve_perturbed, 4},
    {"Nop", nothing, 0},
    {"control_dep", nothing, 0},
    {"check.expect_eq", check_call_eq, 2},
    {"check.expect_close", check_call_close, 2},
    {"check.expect_almost_eq", check_call_almost, 2},
    {"check.eq", check_call_quantized, 2},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Map *registered; /* target -> Slot */
typedef struct Slot {
  CustomCallFn fn;
} Slot;

void custom_call_register(const char *target, CustomCallFn fn) {
  pthread_mutex_lock(&lock);
  if (!registered) registered = map_new();
  Slot *s = map_get(registered, str_from(target));
  if (!s) {
    s = xmalloc(sizeof *s);
    map_set(registered, str_from(target), s);
  }
  s->fn = fn;
  pthread_mutex_unlock(&lock);
}

CustomCallFn custom_call_find(Str target) {
  pthread_mutex_lock(&lock);
  Slot *s = registered ? map_get(registered, target) : NULL;
  CustomCallFn fn = s ? s->fn : NULL;
  pthread_mutex_unlock(&lock);
  for (int i = 0; !fn && i < COUNT_OF(rows); i++)
    if (str_is(target, rows[i].target)) fn = rows[i].fn;
  if (!fn) fn = lapack_find(target);
  if (!fn && str_starts(target, "xla.sdy.")) fn = pass_through;
  if (!fn && chlo_kind(target) != OP_UNKNOWN) fn = element_wise;
  return fn;
}

Err *sem_custom_call(Eval *e) {
  Str target = op_str(e->op, "call_target_name");
  CustomCallFn fn = custom_call_find(target);
  if (!fn)
    return err_hint(
        op_err(e->op, ERR_UNIMPLEMENTED, "no custom call named \"%.*s\"", STR_ARG(target)),
        "custom calls run on the machine that defines them; weft knows those of JAX's portable "
        "lowering");
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].fn == fn && e->n_in < rows[i].operands)
      return op_err(e->op, ERR_INVALID, "\"%.*s\" needs %d operands", STR_ARG(target),
                    rows[i].operands);
  Tensor **results = xcalloc((size_t)MAX(e->n_out, 1), sizeof *results);
  Err *err = fn(e->op, e->in, results);
  for (int i = 0; i < e->n_out; i++) {
    if (!err && !results[i])
      err = op_err(e->op, ERR_INTERNAL, "custom call \"%.*s\" left result %d empty",
                   STR_ARG(target), i);
    if (err) tensor_release(results[i]);
    else eval_set(e, i, results[i]);
  }
  free(results);
  return err;
}
