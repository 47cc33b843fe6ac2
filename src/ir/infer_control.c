/* Control flow, calls, tuples, tokens, barriers, Shardy. */
#include "ir/infer_priv.h"

/* Region r returns values of these types. */
static Err *returns_types(Infer *f, int r, int n, const Type *const *want, const char *what) {
  TRY(want_returns(f, r, n));
  const Op *ret = region_return(f, r);
  for (int i = 0; i < n; i++)
    if (!types_ok(ret->operands[i]->type, want[i]))
      FAIL(f, "%s returns another type as value %d", what, i);
  return NULL;
}

static const Type **operand_types(Infer *f) {
  const Type **v = arena_alloc(f->arena, sizeof *v * (size_t)(f->op->n_operands + 1));
  for (int i = 0; i < f->op->n_operands; i++) v[i] = in_type(f, i);
  return v;
}

static const Type **result_types(Infer *f) {
  const Type **v = arena_alloc(f->arena, sizeof *v * (size_t)(f->op->n_results + 1));
  for (int i = 0; i < f->op->n_results; i++) v[i] = res_type(f, i);
  return v;
}

static Err *while_op(Infer *f) {
  const Op *op = f->op;
  int n = op->n_operands;
  if (op->n_results != n) FAIL(f, "has %d operands and %d results", n, op->n_results);
  const Type **in = operand_types(f);
  for (int r = 0; r < 2; r++) {
    TRY(want_region_args(f, r, n));
    for (int i = 0; i < n; i++)
      if (!types_ok(op->regions[r]->args[i]->type, in[i]))
        FAIL(f, "argument %d of %s has another type than operand %d", i,
             r ? "the body" : "the condition", i);
  }
  TRY(want_returns(f, 0, 1));
  const Type *p = region_return(f, 0)->operands[0]->type;
  if (p->kind != TY_TENSOR || p->rank || p->dtype != DT_I1)
    FAIL(f, "the condition has to return tensor<i1>");
  TRY(returns_types(f, 1, n, in, "the body"));
  for (int i = 0; i < n; i++) out_like(f, i, in[i]);
  return NULL;
}

/* Results agree with every branch; the declared types may be less known than a branch's. */
static Err *branches(Infer *f) {
  const Op *op = f->op;
  const Type **want = result_types(f);
  for (int r = 0; r < op->n_regions; r++) {
    TRY(want_region_args(f, r, 0));
    TRY(returns_types(f, r, op->n_results, want, "a branch"));
  }
  for (int i = 0; i < op->n_results; i++) out_declared(f, i);
  return NULL;
}

static Err *if_op(Infer *f) {
  TRY(want_scalar(f, 0, EB));
  return branches(f);
}

static Err *case_op(Infer *f) {
  TRY(want_scalar(f, 0, EI));
  if (in_type(f, 0)->dtype != DT_I32) FAIL(f, "the index has to be tensor<i32>");
  if (!f->op->n_regions) FAIL(f, "needs a branch");
  return branches(f);
}

static Err *callee_types(Infer *f, Str name, const char *what) {
  if (!f->m) return NULL;
  const Func *g = infer_func(f, name);
  if (!g) FAIL(f, "%s @%.*s does not exist", what, STR_ARG(name));
  const Op *op = f->op;
  if (g->type->n_elems != op->n_operands)
    FAIL(f, "@%.*s takes %d arguments, %d are given", STR_ARG(name), g->type->n_elems,
         op->n_operands);
  if (g->type->n_results != op->n_results)
    FAIL(f, "@%.*s has %d results, %d are taken", STR_ARG(name), g->type->n_results, op->n_results);
  for (int i = 0; i < op->n_operands; i++)
    if (!types_ok(g->type->elems[i], in_type(f, i)))
      FAIL(f, "argument %d of @%.*s has another type", i, STR_ARG(name));
  for (int i = 0; i < op->n_results; i++)
    if (!types_ok(g->type->results[i], res_type(f, i)))
      FAIL(f, "result %d of @%.*s has another type", i, STR_ARG(name));
  return NULL;
}

static Err *all_declared(Infer *f) {
  for (int i = 0; i < f->op->n_results; i++) out_declared(f, i);
  return NULL;
}

static Err *call(Infer *f) {
  TRY(callee_types(f, op_str(f->op, "callee"), "function"));
  return all_declared(f);
}

static bool is_namespaced(Str s) { /* a.b, with letters, digits, _, . $ */
  const char *dot = s.n ? memchr(s.p, '.', s.n) : NULL;
  if (!dot || dot == s.p || dot == s.p + s.n - 1) return false;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(i && ((c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$')))
      return false;
  }
  return true;
}

static Err *composite(Infer *f) {
  Str name = op_str(f->op, "name");
  if (!is_namespaced(name))
    FAIL(f, "name \"%.*s\" has to be namespaced, as in \"my.op\"", STR_ARG(name));
  if (op_int(f->op, "version", 0) < 0) FAIL(f, "version is negative");
  TRY(callee_types(f, op_str(f->op, "decomposition"), "decomposition"));
  return all_declared(f);
}

/* operand_layouts, result_layouts: for each value a permutation of its dimensions, minor to major.
 */
static Err *layouts(Infer *f, const char *name, int n, const Type *const *types) {
  const Attr *a = op_attr(f->op, name);
  if (!a) return NULL;
  /* the results may be one tuple */
  if (n == 1 && types[0]->kind == TY_TUPLE) {
    n = types[0]->n_elems;
    types = (const Type *const *)types[0]->elems;
  }
  if (a->n != n) FAIL(f, "%s has %d entries for %d values", name, a->n, n);
  for (int i = 0; i < n; i++) {
    const Attr *l = a->items[i];
    const Type *t = types[i];
    bool dense = l->kind == AT_TENSOR && (l->dtype == DT_INDEX || l->dtype == DT_I64);
    if (!dense && l->kind != AT_INTS) FAIL(f, "%s: entry %d is not a list of dimensions", name, i);
    if (dense && l->tensor->splat) FAIL(f, "%s: entry %d is not a permutation", name, i);
    const int64_t *v = dense ? l->tensor->data : l->ints;
    int64_t k = dense ? l->tensor->count : l->n;
    if (t->kind == TY_TUPLE) FAIL(f, "%s: tuples cannot be laid out", name);
    if (t->kind != TY_TENSOR && t->kind != TY_BUFFER) {
      if (k) FAIL(f, "%s: only tensors have a layout, entry %d has to be empty", name, i);
      continue;
    }
    if (k != t->rank)
      FAIL(f, "%s: entry %d has %lld dimensions, the tensor %d", name, i, (long long)k, t->rank);
    for (int d = 0; d < t->rank; d++)
      if (v[d] < 0 || v[d] >= t->rank || b_has_dim(d, v, v[d]))
        FAIL(f, "%s: entry %d is not a permutation", name, i);
  }
  return NULL;
}

static Err *element_of(Infer *f, const Type *t, const Attr *path, const char *what,
                       const Type **out) {
  for (int i = 0; path && path->kind == AT_INTS && i < path->n; i++) {
    int64_t k = path->ints[i];
    if (t->kind != TY_TUPLE || k < 0 || k >= t->n_elems)
      FAIL(f, "an alias names %s that does not exist", what);
    t = t->elems[k];
  }
  *out = t;
  return NULL;
}

static Err *aliases(Infer *f) {
  const Attr *a = op_attr(f->op, "output_operand_aliases");
  for (int i = 0; a && i < a->n; i++) {
    const Attr *d = a->items[i];
    if (d->kind != AT_DICT)
      FAIL(f, "output_operand_aliases: expected #stablehlo.output_operand_alias<..>");
    const Attr *index = attrs_get(d->dict, d->n, "operand_index");
    const Attr *from = attrs_get(d->dict, d->n, "operand_tuple_indices"),
               *to = attrs_get(d->dict, d->n, "output_tuple_indices");
    if (!index || index->i < 0 || index->i >= f->op->n_operands)
      FAIL(f, "an alias names an operand that does not exist");
    const Type *x, *y;
    TRY(element_of(f, in_type(f, (int)index->i), from, "part of an operand", &x));
    if (f->op->n_results == 1) {
      TRY(element_of(f, res_type(f, 0), to, "part of the result", &y));
    } else { /* several results count as a tuple */
      if (!to || to->n < 1 || to->ints[0] < 0 || to->ints[0] >= f->op->n_results)
        FAIL(f, "an alias names no result");
      Attr rest = *to;
      rest.n--;
      rest.ints++;
      TRY(element_of(f, res_type(f, (int)to->ints[0]), &rest, "part of a result", &y));
    }
    if (!types_ok(x, y)) FAIL(f, "an alias joins values of different types");
  }
  return NULL;
}

static Err *custom_call(Infer *f) {
  const Op *op = f->op;
  int64_t api = op_int(op, "api_version", 1);
  const Attr *config = op_attr(op, "backend_config");
  if (api < 0 || api > 4) FAIL(f, "api_version = %lld; 0 to 4 exist", (long long)api);
  if (api == 4 && config && config->kind != AT_DICT)
    FAIL(f, "backend_config has to be a dictionary for api_version 4");
  if (api != 4 && config && config->kind != AT_STRING)
    FAIL(f, "backend_config has to be a string unless api_version is 4");
  bool in = op_attr(op, "operand_layouts") != NULL, out = op_attr(op, "result_layouts") != NULL;
  /* an empty list is dropped by the readers, so one side may be missing when it has no values */
  if (in && !out && op->n_results) FAIL(f, "has operand_layouts but no result_layouts");
  if (out && !in && op->n_operands) FAIL(f, "has result_layouts but no operand_layouts");
  TRY(layouts(f, "operand_layouts", op->n_operands, operand_types(f)));
  TRY(layouts(f, "result_layouts", op->n_results, result_types(f)));
  TRY(aliases(f));
  return all_declared(f);
}

static Err *identity(Infer *f) { /* results are the operands */
  const Op *op = f->op;
  if (op->n_results != op->n_operands)
    FAIL(f, "has %d operands and %d results", op->n_operands, op->n_results);
  for (int i = 0; i < op->n_operands; i++) out_like(f, i, in_type(f, i));
  return NULL;
}

static Err *tuple(Infer *f) {
  const Type *r = res_type(f, 0);
  if (r->kind != TY_TUPLE || r->n_elems != f->op->n_operands)
    FAIL(f, "the result has to be a tuple of the operands");
  for (int i = 0; i < r->n_elems; i++)
    if (!types_ok(r->elems[i], in_type(f, i)))
      FAIL(f, "element %d of the result has another type than the operand", i);
  out_declared(f, 0);
  return NULL;
}

static Err *get_tuple_element(Infer *f) {
  const Type *t = in_type(f, 0);
  int64_t i = op_int(f->op, "index", 0);
  if (t->kind != TY_TUPLE) FAIL(f, "the operand is not a tuple");
  if (i < 0 || i >= t->n_elems)
    FAIL(f, "index %lld, but the tuple has %d elements", (long long)i, t->n_elems);
  out_like(f, 0, t->elems[i]);
  return NULL;
}

static Err *tokens(Infer *f) {
  for (int i = 0; i < f->op->n_operands; i++)
    if (in_type(f, i)->kind != TY_TOKEN) FAIL(f, "operand %d is not a token", i);
  if (res_type(f, 0)->kind != TY_TOKEN) FAIL(f, "the result is a token");
  out_declared(f, 0);
  return NULL;
}

static Err *sharding_list(Infer *f, const char *name, int n) {
  const Attr *a = op_attr(f->op, name);
  if (a && a->n != n) FAIL(f, "%s has %d entries for %d values", name, a->n, n);
  return NULL;
}

static Err *manual_computation(Infer *f) {
  const Op *op = f->op;
  TRY(sharding_list(f, "in_shardings", op->n_operands));
  TRY(sharding_list(f, "out_shardings", op->n_results));
  TRY(want_region_args(f, 0, op->n_operands));
  TRY(want_returns(f, 0, op->n_results));
  const Op *ret = region_return(f, 0);
  for (int i = 0; i < op->n_operands; i++) {
    const Type *a = op->regions[0]->args[i]->type, *t = in_type(f, i);
    if (a->kind != t->kind || (a->kind == TY_TENSOR && (a->rank != t->rank || !elems_ok(a, t))))
      FAIL(f,
           "argument %d of the body differs from the operand in more than the size of dimensions",
           i);
  }
  for (int i = 0; i < op->n_results; i++) {
    const Type *a = ret->operands[i]->type, *t = res_type(f, i);
    if (a->kind != t->kind || (a->kind == TY_TENSOR && (a->rank != t->rank || !elems_ok(a, t))))
      FAIL(f, "result %d of the body differs from the result in more than the size of dimensions",
           i);
  }
  return all_declared(f);
}

static Err *named_computation(Infer *f) {
  const Op *op = f->op;
  TRY(sharding_list(f, "in_shardings", op->n_operands));
  TRY(sharding_list(f, "out_shardings", op->n_results));
  TRY(want_region_args(f, 0, op->n_operands));
  for (int i = 0; i < op->n_operands; i++)
    if (!types_ok(op->regions[0]->args[i]->type, in_type(f, i)))
      FAIL(f, "argument %d of the body has another type", i);
  TRY(returns_types(f, 0, op->n_results, result_types(f), "the body"));
  return all_declared(f);
}

/* chlo.scan: inputs and initial carries; the body sees one slice of each input, and the carries. */
static Err *scan(Infer *f) {
  const Op *op = f->op;
  const int64_t *seg, *rseg;
  if (op_ints(op, "operandSegmentSizes", &seg) != 2 || seg[0] < 1 || seg[1] < 0 ||
      seg[0] + seg[1] != op->n_operands)
    FAIL(f, "operandSegmentSizes has to give the numbers of inputs and carries");
  if (op_ints(op, "resultSegmentSizes", &rseg) != 2 || rseg[0] < 0 || rseg[1] != seg[1] ||
      rseg[0] + rseg[1] != op->n_results)
    FAIL(f, "resultSegmentSizes has to give the numbers of outputs and carries");
  TRY(want_region_args(f, 0, op->n_operands));
  TRY(want_returns(f, 0, op->n_results));
  TRY(want_tensors(f, EANY));
  const Op *ret = region_return(f, 0);
  int64_t dim, size = DIM_DYNAMIC;
  TRY(dim_index(f, "dimension", in_type(f, 0)->rank, &dim));
  for (int i = 0; i < op->n_operands; i++) {
    const Type *t = in_type(f, i), *a = op->regions[0]->args[i]->type;
    if (a->kind != TY_TENSOR || !elems_ok(a, t))
      FAIL(f, "argument %d of the body has other elements", i);
    if (i >= seg[0]) {
      if (!shapes_ok(a, t)) FAIL(f, "argument %d of the body is not of the carry's shape", i);
      if (!types_ok(ret->operands[rseg[0] + i - seg[0]]->type, t))
        FAIL(f, "the body returns another carry type");
      continue;
    }
    if (t->rank <= dim || a->rank != t->rank - 1)
      FAIL(f, "argument %d of the body has to be a slice of the input", i);
    for (int k = 0; k < a->rank; k++)
      if (!dim_ok(a->dims[k], t->dims[k + (k >= dim)]))
        FAIL(f, "argument %d of the body has to be a slice of the input", i);
    if (!dim_ok(size, t->dims[dim])) FAIL(f, "inputs differ in the size of the scanned dimension");
    size = dim_more(size, t->dims[dim]);
  }
  for (int i = 0; i < op->n_results; i++) {
    if (i >= rseg[0]) {
      out_like(f, i, in_type(f, (int)seg[0] + i - (int)rseg[0]));
      continue;
    }
    const Type *y = ret->operands[i]->type;
    if (y->kind != TY_TENSOR || y->rank < dim)
      FAIL(f, "the body's result %d has too few dimensions", i);
    int64_t *d = tmp_dims(f, y->rank + 1);
    for (int k = 0; k <= y->rank; k++) d[k] = k == dim ? size : y->dims[k - (k > dim)];
    out_shape(f, i, y->dtype, y->quant, y->rank + 1, d);
  }
  return NULL;
}

InferFn infer_control_fn(OpKind k) {
  static const InferRow rows[] = {
      {OP_WHILE, while_op},
      {OP_IF, if_op},
      {OP_CASE, case_op},
      {OP_CALL, call},
      {OP_COMPOSITE, composite},
      {OP_CUSTOM_CALL, custom_call},
      {OP_OPTIMIZATION_BARRIER, identity},
      {OP_TUPLE, tuple},
      {OP_GET_TUPLE_ELEMENT, get_tuple_element},
      {OP_AFTER_ALL, tokens},
      {OP_CREATE_TOKEN, tokens},
      {OP_MANUAL_COMPUTATION, manual_computation},
      {OP_NAMED_COMPUTATION, named_computation},
      {OP_SHARDING_CONSTRAINT, identity},
      {OP_RESHARD, identity},
      {OP_PROPAGATION_BARRIER, identity},
      {OP_CHLO_SCAN, scan},
  };
  return infer_find(rows, COUNT_OF(rows), k);
}
