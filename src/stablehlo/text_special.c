/* Pretty forms read by hand: constant, slice, reduce, while, custom_call, call, dot_general,
 * convolution, reduce_precision, manual_computation, named_computation, top_k, scan. */
#include "stablehlo/text_priv.h"

#include <stdio.h>
#include <stdlib.h>

static void add(OpDraft *d, const char *name, Attr *a) {
  *vec_push(&d->attrs) = (NamedAttr){str_from(name), a};
}

static Err *types(Text *t, OpDraft *d, TypeStyle mode) {
  TRY(text_want(t, ':', "':' and types"));
  Sig s = {0};
  Err *e = text_signature(t, &s);
  if (!e) e = text_apply_signature(t, d, &s, mode);
  text_sig_free(&s);
  return e;
}

static Err *leftover_and_types(Text *t, OpDraft *d, TypeStyle mode) {
  if (text_is(t, '{')) TRY(text_attr_dict(t, &d->attrs));
  return types(t, d, mode);
}

static Err *paren_operands(Text *t, OpDraft *d) {
  TRY(text_want(t, '(', "'(' and operands"));
  if (text_take(t, ')')) return NULL;
  TRY(text_operands(t, &d->operands));
  return text_want(t, ')', "',' or ')'");
}

static Err *int_list_attr(Text *t, OpDraft *d, const char *name) {
  Ints v = {0};
  Err *e = text_int_list(t, &v);
  if (!e) add(d, name, attr_ints(t->m, DT_I64, v.n, v.v));
  vec_free(&v);
  return e;
}

/* constant {attributes} dense<..> : T, or constant() <{value = ..}> : () -> T */
static Err *read_constant(Text *t, OpDraft *d) {
  if (text_is(t, '(')) return text_generic_body(t, d);
  if (text_is(t, '{')) TRY(text_attr_dict(t, &d->attrs));
  Attr *a;
  const char *at = t->start;
  TRY(text_attr(t, &a));
  if (a->kind != AT_TENSOR) return text_err_at(t, at, "expected dense<...> : type");
  add(d, "value", a);
  *vec_push(&d->results) = a->type;
  return NULL;
}

/* %a [0:4:2, 1:3] */
static Err *read_slice(Text *t, OpDraft *d) {
  TRY(text_operands(t, &d->operands));
  TRY(text_want(t, '[', "'[' and start:limit:stride of each dimension"));
  Ints v[3] = {0};
  Err *e = NULL;
  if (!text_is(t, ']')) do {
      int64_t stride = 1;
      e = text_int(t, vec_push(&v[0]));
      if (!e) e = text_want(t, ':', "':' and the limit");
      if (!e) e = text_int(t, vec_push(&v[1]));
      if (!e && text_take(t, ':')) e = text_int(t, &stride);
      *vec_push(&v[2]) = stride;
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, ']', "',' or ']'");
  static const char *const names[] = {"start_indices", "limit_indices", "strides"};
  for (int i = 0; i < 3; i++) {
    if (!e) add(d, names[i], attr_ints(t->m, DT_I64, v[i].n, v[i].v));
    vec_free(&v[i]);
  }
  return e ? e : leftover_and_types(t, d, TS_FUNC);
}

/* ---- reduce ---- */

static Err *reduce_body_op(Text *t, OpDraft *d, Str name) {
  const Type *init = d->operands.v[1]->type;
  if (init->kind != TY_TENSOR)
    return text_err_at(t, d->at, "reduce of a value that is not a tensor");
  const Type *res = d->results.n ? d->results.v[0] : init;
  Type *scalar = type_tensor_full(t->m, res->dtype, 0, NULL, NULL, res->quant);
  Values args = {0};
  for (int i = 0; i < 2; i++) *vec_push(&args) = text_arg(t, scalar, NULL);
  Region *r = text_new_region(t, &args);
  vec_free(&args);
  OpKind kind = op_kind_from_name(name);
  if (kind == OP_UNKNOWN || op_info[kind].operands != 2)
    return text_err_at(t, d->at, "'%.*s' is not an operation of two operands", STR_ARG(name));
  Op *op = op_new(t->m, kind, 2, r->args, 1, (Type *[]){scalar}, 0, NULL, 0, NULL);
  op->loc = d->loc;
  op_append(r, op);
  Value *v = op->results;
  Op *ret = op_new(t->m, OP_RETURN, 1, &v, 0, NULL, 0, NULL, 0, NULL);
  ret->loc = d->loc;
  op_append(r, ret);
  text_line_col(t, d->at, &op->line, &op->col);
  text_line_col(t, d->at, &ret->line, &ret->col);
  *vec_push(&d->regions) = r;
  return NULL;
}

/* reducer(%x0: T, %y0: T) (%x1: U, %y1: U) { ... }: pairs; the region's arguments are all left
 * ones, then all right ones */
static Err *reducer(Text *t, OpDraft *d, int n) {
  Values pairs = {0}, args = {0};
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    int before = pairs.n;
    e = text_want(t, '(', "'(' and two arguments of the reducer");
    if (!e) e = text_block_args(t, ')', &pairs);
    if (!e && pairs.n != before + 2)
      e = text_err_at(t, t->start, "a reducer takes two arguments for each operand");
  }
  for (int side = 0; side < 2 && !e; side++)
    for (int i = 0; i < n; i++) *vec_push(&args) = pairs.v[2 * i + side];
  const Loc *loc = NULL;
  if (!e) e = text_opt_loc(t, &loc);
  Region *r = NULL;
  if (!e) e = text_region(t, false, &args, &r);
  if (!e) *vec_push(&d->regions) = r;
  vec_free(&pairs);
  vec_free(&args);
  return e;
}

static Err *read_reduce(Text *t, OpDraft *d) {
  Values inits = {0};
  Err *e = NULL;
  do {
    Value *x = NULL, *v = NULL;
    e = text_want(t, '(', "'(' and an operand");
    if (!e) e = text_operand(t, &x);
    if (!e) e = text_want_word(t, "init");
    if (!e) e = text_want(t, ':', "':' and the initial value");
    if (!e) e = text_operand(t, &v);
    if (!e) e = text_want(t, ')', "')'");
    *vec_push(&d->operands) = x;
    *vec_push(&inits) = v;
  } while (!e && text_take(t, ','));
  int n = inits.n;
  for (int i = 0; i < n; i++) *vec_push(&d->operands) = inits.v[i];
  vec_free(&inits);
  if (e) return e;
  Str applies = {0};
  if (text_take_word(t, "applies")) {
    if (text_is(t, T_STR)) TRY(text_string(t, &applies));
    else if (text_is(t, T_ID)) applies = t->s, text_next(t);
    else return text_expected(t, "the operation that the reduction applies");
    if (n != 1) return text_err_at(t, d->at, "the short form of reduce takes one operand");
  }
  TRY(text_want_word(t, "across"));
  TRY(text_want_word(t, "dimensions"));
  TRY(text_want(t, '=', "'='"));
  TRY(int_list_attr(t, d, "dimensions"));
  TRY(leftover_and_types(t, d, TS_FUNC));
  if (applies.n) {
    TRY(text_opt_loc(t, &d->loc));
    return reduce_body_op(t, d, applies);
  }
  int mark = text_scope_open(t);
  TRY(text_want_word(t, "reducer"));
  e = reducer(t, d, n);
  text_scope_close(t, mark);
  return e;
}

/* ---- while ---- */

typedef struct Name {
  Str s;
  const char *at;
} Name;
typedef VEC(Name) NameList;

static Err *while_region(Text *t, OpDraft *d, const NameList *names) {
  int mark = text_scope_open(t);
  Values args = {0};
  Err *e = NULL;
  for (int i = 0; i < names->n && !e; i++) {
    Value *v = text_arg(t, d->results.v[i], NULL);
    *vec_push(&args) = v;
    e = text_bind(t, names->v[i].s, v, 1, names->v[i].at);
  }
  Region *r = NULL;
  if (!e) e = text_region(t, false, &args, &r);
  if (!e) *vec_push(&d->regions) = r;
  vec_free(&args);
  text_scope_close(t, mark);
  return e;
}

static Err *while_inner(Text *t, OpDraft *d, NameList *names) {
  TRY(text_want(t, '(', "'(' and %arg = %init"));
  if (!text_take(t, ')')) {
    do {
      if (!text_is(t, T_VALUE)) return text_expected(t, "an argument such as %arg");
      *vec_push(names) = (Name){t->s, t->start};
      text_next(t);
      TRY(text_want(t, '=', "'=' and the initial value"));
      Value *v;
      TRY(text_operand(t, &v));
      *vec_push(&d->operands) = v;
    } while (text_take(t, ','));
    TRY(text_want(t, ')', "',' or ')'"));
  }
  if (names->n || text_is(t, ':')) TRY(types(t, d, TS_PAIRS));
  if (d->results.n != names->n)
    return text_err_at(t, d->at, "while has %d arguments, but %d types", names->n, d->results.n);
  if (text_take_word(t, "attributes")) TRY(text_attr_dict(t, &d->attrs));
  TRY(text_want_word(t, "cond"));
  TRY(while_region(t, d, names));
  TRY(text_want_word(t, "do"));
  return while_region(t, d, names);
}

static Err *read_while(Text *t, OpDraft *d) {
  NameList names = {0};
  Err *e = while_inner(t, d, &names);
  vec_free(&names);
  return e;
}

/* ---- calls ---- */

static Err *read_custom_call(Text *t, OpDraft *d) {
  Str target;
  TRY(text_symbol(t, &target));
  add(d, "call_target_name", attr_string(t->m, target));
  TRY(paren_operands(t, d));
  return leftover_and_types(t, d, TS_FUNC);
}

static Err *read_call(Text *t, OpDraft *d) {
  Str callee;
  TRY(text_symbol(t, &callee));
  add(d, "callee", attr_symbol(t->m, callee));
  TRY(paren_operands(t, d));
  return leftover_and_types(t, d, TS_FUNC);
}

/* ---- products ---- */

static Err *dims_pair(Text *t, OpDraft *d, const char *lhs, const char *rhs) {
  TRY(text_want(t, '=', "'='"));
  TRY(int_list_attr(t, d, lhs));
  TRY(text_want_word(t, "x"));
  return int_list_attr(t, d, rhs);
}

static Err *precision(Text *t, OpDraft *d) {
  TRY(text_want(t, '=', "'='"));
  TRY(text_want(t, '[', "'[' and precisions"));
  AttrList v = {0};
  Err *e = NULL;
  if (!text_is(t, ']')) do {
      if (!text_is(t, T_ID)) {
        e = text_expected(t, "DEFAULT, HIGH or HIGHEST");
        break;
      }
      *vec_push(&v) = attr_enum(t->m, t->s);
      text_next(t);
    } while (text_take(t, ','));
  if (!e) e = text_want(t, ']', "',' or ']'");
  if (!e) add(d, "precision_config", attr_array(t->m, v.n, v.v));
  vec_free(&v);
  return e;
}

static Err *read_dot_general(Text *t, OpDraft *d) {
  TRY(text_operands(t, &d->operands));
  while (text_take(t, ',')) {
    if (text_take_word(t, "batching_dims")) {
      TRY(dims_pair(t, d, "lhs_batching_dimensions", "rhs_batching_dimensions"));
    } else if (text_take_word(t, "contracting_dims")) {
      TRY(dims_pair(t, d, "lhs_contracting_dimensions", "rhs_contracting_dimensions"));
    } else if (text_take_word(t, "precision")) {
      TRY(precision(t, d));
    } else if (text_take_word(t, "algorithm")) {
      TRY(text_want(t, '=', "'='"));
      TRY(text_want(t, '<', "'<' and the fields of the algorithm"));
      TRY(text_struct_fields(t, &d->attrs));
      TRY(text_want(t, '>', "',' or '>'"));
    } else {
      return text_expected(t, "batching_dims, contracting_dims, precision or algorithm");
    }
  }
  return leftover_and_types(t, d, TS_FUNC);
}

static Err *ints_rows(Text *t, Ints *out, int *rows) { /* [[0, 1], [1, 0]] */
  TRY(text_want(t, '[', "'[' and pairs"));
  if (text_take(t, ']')) return NULL;
  do {
    int before = out->n;
    const char *at = t->start;
    TRY(text_int_list(t, out));
    if (out->n != before + 2) return text_err_at(t, at, "expected a pair of integers");
    ++*rows;
  } while (text_take(t, ','));
  return text_want(t, ']', "',' or ']'");
}

static Err *window(Text *t, OpDraft *d) {
  static const char *const keys[][2] = {
      {"stride", "window_strides"}, {"lhs_dilate", "lhs_dilation"}, {"rhs_dilate", "rhs_dilation"}};
  TRY(text_want_word(t, "window"));
  TRY(text_want(t, '=', "'='"));
  TRY(text_want(t, '{', "'{' and the window"));
  if (text_take(t, '}')) return NULL;
  do {
    int k = 0;
    while (k < 3 && !text_is_word(t, keys[k][0])) k++;
    bool pad = text_is_word(t, "pad"), rev = text_is_word(t, "reverse");
    if (k == 3 && !pad && !rev)
      return text_expected(t, "stride, pad, lhs_dilate, rhs_dilate or reverse");
    text_next(t);
    TRY(text_want(t, '=', "'='"));
    if (k < 3) {
      TRY(int_list_attr(t, d, keys[k][1]));
      continue;
    }
    Ints v = {0};
    int rows = 0;
    Err *e = pad ? ints_rows(t, &v, &rows) : text_int_list(t, &v);
    if (!e && pad) add(d, "padding", attr_tensor_i64(t->m, 2, (int64_t[]){rows, 2}, v.v));
    if (!e && rev) {
      for (int i = 0; i < v.n; i++) v.v[i] = v.v[i] != 0;
      add(d, "window_reversal", attr_ints(t->m, DT_I1, v.n, v.v));
    }
    vec_free(&v);
    if (e) return e;
  } while (text_take(t, ','));
  return text_want(t, '}', "',' or '}'");
}

static Err *read_convolution(Text *t, OpDraft *d) {
  TRY(paren_operands(t, d));
  TRY(text_want_word(t, "dim_numbers"));
  TRY(text_want(t, '=', "'='"));
  TRY(text_conv_dims(t, &d->attrs));
  TRY(text_want(t, ',', "', window = {...}'"));
  TRY(window(t, d));
  return leftover_and_types(t, d, TS_FUNC);
}

/* ---- others ---- */

/* %a, format = e8m7: one word, e<digits>m<digits> */
static Err *read_reduce_precision(Text *t, OpDraft *d) {
  TRY(text_operands(t, &d->operands));
  TRY(text_want(t, ',', "', format = e8m7'"));
  TRY(text_want_word(t, "format"));
  TRY(text_want(t, '=', "'='"));
  int e = -1, m = -1, used = 0;
  char word[32] = {0};
  if (text_is(t, T_ID) && t->s.n < sizeof word) memcpy(word, t->s.p, t->s.n);
  if (sscanf(word, "e%9dm%9d%n", &e, &m, &used) != 2 || word[used])
    return text_expected(t, "a format such as e8m7");
  text_next(t);
  add(d, "exponent_bits", attr_int(t->m, DT_I32, e));
  add(d, "mantissa_bits", attr_int(t->m, DT_I32, m));
  return leftover_and_types(t, d, TS_FUNC);
}

static Err *region_with_args(Text *t, OpDraft *d) { /* (%arg1: T, ..) { .. } */
  int mark = text_scope_open(t);
  Values args = {0};
  Err *e = text_want(t, '(', "'(' and the arguments of the body");
  if (!e) e = text_block_args(t, ')', &args);
  Region *r = NULL;
  if (!e) e = text_region(t, false, &args, &r);
  if (!e) *vec_push(&d->regions) = r;
  vec_free(&args);
  text_scope_close(t, mark);
  return e;
}

static Err *shardings(Text *t, OpDraft *d, const char *name) {
  Attr *a;
  TRY(text_want(t, '=', "'='"));
  TRY(text_sharding_list(t, &a));
  add(d, name, a);
  return NULL;
}

static Err *read_manual_computation(Text *t, OpDraft *d) {
  Attr *a;
  TRY(paren_operands(t, d));
  TRY(text_want_word(t, "in_shardings"));
  TRY(shardings(t, d, "in_shardings"));
  TRY(text_want_word(t, "out_shardings"));
  TRY(shardings(t, d, "out_shardings"));
  TRY(text_want_word(t, "manual_axes"));
  TRY(text_want(t, '=', "'='"));
  TRY(text_axes(t, &a));
  add(d, "manual_axes", a);
  TRY(region_with_args(t, d));
  return leftover_and_types(t, d, TS_FUNC);
}

static Err *read_named_computation(Text *t, OpDraft *d) {
  Str name;
  TRY(text_want(t, '<', "'<' and the name"));
  TRY(text_string(t, &name));
  TRY(text_want(t, '>', "'>'"));
  add(d, "name", attr_string(t->m, name));
  TRY(paren_operands(t, d));
  if (text_take_word(t, "in_shardings")) TRY(shardings(t, d, "in_shardings"));
  if (text_take_word(t, "out_shardings")) TRY(shardings(t, d, "out_shardings"));
  TRY(region_with_args(t, d));
  return leftover_and_types(t, d, TS_FUNC);
}

/* chlo.top_k(%a, k = 8) : T -> (U, V) */
static Err *read_top_k(Text *t, OpDraft *d) {
  if (text_is(t, T_VALUE)) { /* and without the parentheses */
    TRY(text_operands(t, &d->operands));
  } else {
    TRY(text_want(t, '(', "'(' and an operand"));
    TRY(text_operands(t, &d->operands));
  }
  TRY(text_want(t, ',', "', k = '"));
  TRY(text_want_word(t, "k"));
  TRY(text_want(t, '=', "'='"));
  int64_t k;
  TRY(text_int(t, &k));
  add(d, "k", attr_int(t->m, DT_I64, k));
  text_take(t, ')');
  return leftover_and_types(t, d, TS_FUNC);
}

static Err *keyword_attr(Text *t, OpDraft *d, const char *name) {
  TRY(text_want(t, '=', "'='"));
  Attr *a;
  TRY(text_attr(t, &a));
  add(d, name, a);
  return NULL;
}

/* chlo.scan(%x) inits(%v) dimension=0 is_reverse=true { ^bb0(..): .. } : types */
static Err *read_scan(Text *t, OpDraft *d) {
  TRY(paren_operands(t, d));
  int inputs = d->operands.n;
  TRY(text_want_word(t, "inits"));
  TRY(paren_operands(t, d));
  int64_t sizes[2] = {inputs, d->operands.n - inputs};
  while (text_is(t, T_ID) && !text_is_word(t, "attributes")) {
    static const char *const keys[] = {"dimension", "is_reverse", "is_associative"};
    int k = 0;
    while (k < 3 && !text_is_word(t, keys[k])) k++;
    if (k == 3) return text_expected(t, "dimension, is_reverse, is_associative or a region");
    text_next(t);
    TRY(keyword_attr(t, d, keys[k]));
  }
  if (text_take_word(t, "attributes")) TRY(text_attr_dict(t, &d->attrs));
  add(d, "operandSegmentSizes", attr_ints(t->m, DT_I32, 2, sizes));
  Region *r;
  TRY(text_region(t, true, NULL, &r));
  *vec_push(&d->regions) = r;
  TRY(leftover_and_types(t, d, TS_FUNC));
  int64_t out[2] = {d->results.n - sizes[1], sizes[1]};
  if (out[0] >= 0) add(d, "resultSegmentSizes", attr_ints(t->m, DT_I32, 2, out));
  return NULL;
}

Err *text_special_read(Text *t, OpDraft *d, bool *known) {
  *known = true;
  switch ((int)d->kind) {
  case OP_CONSTANT: return read_constant(t, d);
  case OP_SLICE: return read_slice(t, d);
  case OP_REDUCE: return read_reduce(t, d);
  case OP_WHILE: return read_while(t, d);
  case OP_CUSTOM_CALL: return read_custom_call(t, d);
  case OP_CALL: return read_call(t, d);
  case OP_DOT_GENERAL: return read_dot_general(t, d);
  case OP_CONVOLUTION: return read_convolution(t, d);
  case OP_REDUCE_PRECISION: return read_reduce_precision(t, d);
  case OP_MANUAL_COMPUTATION: return read_manual_computation(t, d);
  case OP_NAMED_COMPUTATION: return read_named_computation(t, d);
  case OP_CHLO_TOP_K: return read_top_k(t, d);
  case OP_CHLO_SCAN: return read_scan(t, d);
  default: *known = false; return NULL;
  }
}
