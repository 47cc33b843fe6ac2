/* Operations: results, generic form, types, regions, value names.
 *
 * Value names live in one map; a scope is a mark in the list of names bound so far, and closing it
 * unbinds what came after. Inner regions see outer names and may not redefine them.
 */
#include "stablehlo/text_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- names ---- */

int text_scope_open(const Text *t) { return t->scope.n; }

void text_scope_close(Text *t, int mark) {
  while (t->scope.n > mark) map_set(t->values, t->scope.v[--t->scope.n], NULL);
}

Err *text_bind(Text *t, Str name, Value *v, int n, const char *at) {
  if (map_get(t->values, name))
    return text_err_at(t, at, "value '%%%.*s' is defined twice", STR_ARG(name));
  Bound *b = ARENA_NEW(t->m->arena, Bound);
  *b = (Bound){v, n};
  map_set(t->values, name, b);
  *vec_push(&t->scope) = name;
  bool number = true;
  for (size_t i = 0; i < name.n; i++) number = number && isdigit((unsigned char)name.p[i]);
  if (!number && !v->name.n) v->name = arena_str(t->m->arena, name);
  return NULL;
}

Err *text_operand(Text *t, Value **out) {
  if (!text_is(t, T_VALUE)) return text_expected(t, "a value such as %0");
  const char *at = t->start;
  Str name = t->s;
  Bound *b = map_get(t->values, name);
  if (!b) return text_err_at(t, at, "value '%%%.*s' is not defined here", STR_ARG(name));
  int64_t k = 0;
  if (t->p < t->end && *t->p == '#') {
    text_next(t); /* #1: digits are lexed into the token's text */
    if (t->s.n == 0 || t->s.n > 9) return text_expected(t, "a result number");
    for (size_t i = 0; i < t->s.n; i++) {
      if (!isdigit((unsigned char)t->s.p[i])) return text_expected(t, "a result number");
      k = k * 10 + (t->s.p[i] - '0');
    }
  }
  text_next(t);
  if (k >= b->n)
    return text_err_at(t, at, "'%%%.*s' has %d results, there is no #%lld", STR_ARG(name), b->n,
                       (long long)k);
  *out = b->v->def ? &b->v->def->results[b->v->index + k] : b->v;
  return NULL;
}

Err *text_operands(Text *t, Values *out) {
  for (;;) {
    Value *v;
    TRY(text_operand(t, &v));
    *vec_push(out) = v;
    if (!text_is(t, ',') || text_peek_char(t) != '%') return NULL;
    text_next(t);
  }
}

/* ---- regions ---- */

Value *text_arg(Text *t, Type *type, const Loc *loc) {
  Value *v = ARENA_NEW(t->m->arena, Value);
  *v = (Value){.type = type, .id = -1};
  if (loc && loc->kind == LOC_NAME) v->name = loc->name;
  return v;
}

Err *text_block_args(Text *t, int close, Values *args) {
  if (text_take(t, close)) return NULL;
  do {
    if (!text_is(t, T_VALUE)) return text_expected(t, "an argument such as %arg0");
    Str name = t->s;
    const char *at = t->start;
    Type *ty;
    const Loc *loc = NULL;
    text_next(t);
    TRY(text_want(t, ':', "':' and the argument's type"));
    TRY(text_type(t, &ty));
    TRY(text_opt_loc(t, &loc));
    Value *v = text_arg(t, ty, loc);
    TRY(text_bind(t, name, v, 1, at));
    *vec_push(args) = v;
  } while (text_take(t, ','));
  return text_want(t, close, "',' or ')'");
}

Region *text_new_region(Text *t, const Values *args) {
  Region *r = ARENA_NEW(t->m->arena, Region);
  int n = args ? args->n : 0;
  r->n_args = n;
  if (n) r->args = arena_dup(t->m->arena, args->v, sizeof *args->v * (size_t)n);
  for (int i = 0; i < n; i++) {
    r->args[i]->region = r;
    r->args[i]->index = i;
  }
  return r;
}

static Err *region_inner(Text *t, bool labels, const Values *args, Values *labelled, Region **out) {
  TRY(text_want(t, '{', "'{' and a region"));
  if (text_is(t, T_CARET)) {
    if (!labels) return text_err_at(t, t->start, "a block label is not allowed here");
    text_next(t);
    if (text_take(t, '(')) TRY(text_block_args(t, ')', labelled));
    TRY(text_want(t, ':', "':' after the block label"));
    args = labelled;
  }
  Region *r = text_new_region(t, args);
  *out = r;
  while (!text_is(t, '}')) {
    if (text_is(t, T_CARET))
      return text_err_at(t, t->start,
                         "a region has one block; branches between blocks are not StableHLO");
    if (text_is(t, T_EOF)) return text_expected(t, "'}' at the end of the region");
    TRY(text_op(t, r));
  }
  text_next(t);
  return NULL;
}

Err *text_region(Text *t, bool labels, const Values *args, Region **out) {
  TRY(text_enter(t));
  int mark = text_scope_open(t);
  Values labelled = {0};
  Err *e = region_inner(t, labels, args, &labelled, out);
  vec_free(&labelled);
  text_scope_close(t, mark);
  text_leave(t);
  return e;
}

/* ---- types of operands and results ---- */

void text_sig_free(Sig *s) {
  vec_free(&s->in);
  vec_free(&s->out);
}

/* (T, U) -> V, or T, or T, U, or T, U -> V, or T, U -> (V, W). */
Err *text_signature(Text *t, Sig *s) {
  if (text_is(t, '(')) {
    s->arrow = true;
    return text_func_type_parts(t, &s->in, &s->out);
  }
  do {
    Type *ty;
    TRY(text_type(t, &ty));
    *vec_push(&s->in) = ty;
  } while (text_take(t, ','));
  if (!text_take(t, T_ARROW)) return NULL;
  s->arrow = true;
  if (text_take(t, '(')) return text_type_list(t, ')', &s->out);
  do {
    Type *ty;
    TRY(text_type(t, &ty));
    *vec_push(&s->out) = ty;
  } while (text_take(t, ','));
  return NULL;
}

static Err *check_operand(Text *t, const OpDraft *d, int i, const Type *ty) {
  if (d->operands.v[i]->type == ty) return NULL;
  Buf want = {0}, have = {0};
  type_print(&want, ty);
  type_print(&have, d->operands.v[i]->type);
  Err *e = text_err_at(t, d->at, "operand %d of '%.*s' is of type %s, but %s is written here", i,
                       STR_ARG(d->name), have.p, want.p);
  buf_free(&want);
  buf_free(&have);
  return e;
}

Err *text_apply_signature(Text *t, OpDraft *d, Sig *s, TypeStyle mode) {
  int n = d->operands.n;
  int results = d->kind == OP_UNKNOWN ? VARIADIC : op_info[d->kind].results;
  d->typed = true;
  if (s->arrow) {
    if (s->in.n != n)
      return text_err_at(t, d->at, "'%.*s' has %d operands, but %d operand types", STR_ARG(d->name),
                         n, s->in.n);
    for (int i = 0; i < n; i++) TRY(check_operand(t, d, i, s->in.v[i]));
    for (int i = 0; i < s->out.n; i++) *vec_push(&d->results) = s->out.v[i];
    return NULL;
  }
  if (mode == TS_RESULT) { /* complex, tuple: the operands keep their types */
    for (int i = 0; i < s->in.n; i++) *vec_push(&d->results) = s->in.v[i];
    return NULL;
  }
  if (mode == TS_PAIRS && s->in.n == n) {
    for (int i = 0; i < n; i++) {
      TRY(check_operand(t, d, i, s->in.v[i]));
      *vec_push(&d->results) = s->in.v[i];
    }
    return NULL;
  }
  if (mode == TS_SELECT && s->in.n == 2 && n == 3) {
    for (int i = 0; i < 3; i++) TRY(check_operand(t, d, i, s->in.v[i > 0]));
    *vec_push(&d->results) = s->in.v[1];
    return NULL;
  }
  if (s->in.n == n && (results == 0 || n != 1)) {
    for (int i = 0; i < n; i++) TRY(check_operand(t, d, i, s->in.v[i]));
    if (results == 1) *vec_push(&d->results) = s->in.v[0];
    return NULL;
  }
  if (s->in.n != 1)
    return text_err_at(t, d->at, "'%.*s' has %d operands, but %d types", STR_ARG(d->name), n,
                       s->in.n);
  for (int i = 0; i < n; i++) TRY(check_operand(t, d, i, s->in.v[0]));
  if (results == VARIADIC) results = 1;
  for (int i = 0; i < results; i++) *vec_push(&d->results) = s->in.v[0];
  return NULL;
}

/* ---- generic form ---- */

static Err *generic_operands(Text *t, OpDraft *d) {
  TRY(text_want(t, '(', "'(' and operands"));
  if (text_take(t, ')')) return NULL;
  do {
    Value *v;
    TRY(text_operand(t, &v));
    *vec_push(&d->operands) = v;
  } while (text_take(t, ','));
  return text_want(t, ')', "',' or ')'");
}

Err *text_generic_regions(Text *t, OpDraft *d) {
  TRY(text_want(t, '(', "'(' and regions"));
  if (text_take(t, ')')) return NULL;
  do {
    Region *r;
    TRY(text_region(t, true, NULL, &r));
    *vec_push(&d->regions) = r;
  } while (text_take(t, ','));
  return text_want(t, ')', "',' or ')' after the regions");
}

Err *text_generic_body(Text *t, OpDraft *d) {
  TRY(generic_operands(t, d));
  if (text_is(t, '[')) return text_err_at(t, t->start, "successor blocks are not StableHLO");
  if (text_take(t, '<')) {
    TRY(text_attr_dict(t, &d->attrs));
    TRY(text_want(t, '>', "'>' after the properties"));
  }
  if (text_is(t, '(')) TRY(text_generic_regions(t, d));
  if (text_is(t, '{')) TRY(text_attr_dict(t, &d->attrs));
  TRY(text_want(t, ':', "':' and the operation's type"));
  Sig s = {0};
  Err *e = text_is(t, '(') ? text_signature(t, &s) : text_expected(t, "'(' and the operand types");
  if (!e) e = text_apply_signature(t, d, &s, TS_FUNC);
  text_sig_free(&s);
  return e;
}

/* ---- one operation ---- */

typedef struct Names {
  VEC(Str) name;
  VEC(int) count;
  VEC(const char *) at;
} Names;

static Err *result_names(Text *t, Names *n) {
  if (!text_is(t, T_VALUE)) return NULL;
  do {
    if (!text_is(t, T_VALUE)) return text_expected(t, "a value name");
    *vec_push(&n->name) = t->s;
    *vec_push(&n->at) = t->start;
    text_next(t);
    int64_t k = 1;
    if (text_take(t, ':')) TRY(text_int(t, &k));
    if (k < 1 || k > (1 << 20))
      return text_err_at(t, n->at.v[n->at.n - 1], "bad number of results");
    *vec_push(&n->count) = (int)k;
  } while (text_take(t, ','));
  return text_want(t, '=', "'=' after the result names");
}

static bool same_name(Str a, Str b) { return str_eq(a, b); }

static bool is_cast(const OpDraft *d) {
  return str_is(d->name, "builtin.unrealized_conversion_cast");
}

Err *text_finish_op(Text *t, OpDraft *d, Region *r, Op **out) {
  TRY(text_place(t, err_wrap(text_canon(t->m, d->kind, &d->attrs), "%.*s", STR_ARG(d->name)),
                 d->at));
  for (int i = 0; i < d->attrs.n && d->attrs.n <= 64; i++) /* longer lists were checked when read */
    for (int k = i + 1; k < d->attrs.n; k++)
      if (same_name(d->attrs.v[i].name, d->attrs.v[k].name))
        return text_err_at(t, d->at, "attribute '%.*s' is given twice",
                           STR_ARG(d->attrs.v[i].name));
  Op *op = op_new(t->m, d->kind, d->operands.n, d->operands.v, d->results.n, d->results.v,
                  d->attrs.n, d->attrs.v, d->regions.n, d->regions.v);
  if (d->kind == OP_UNKNOWN) op->name = arena_str(t->m->arena, d->name);
  op->loc = d->loc;
  text_line_col(t, d->at, &op->line, &op->col);
  op_append(r, op);
  *out = op;
  return NULL;
}

static Err *bind_results(Text *t, const Names *names, Value *results, int n) {
  int have = 0;
  for (int i = 0; i < names->name.n; i++) have += names->count.v[i];
  if (names->name.n == 0) return NULL;
  if (have != n)
    return text_err_at(t, names->at.v[0], "%d results are named, but the operation has %d", have,
                       n);
  for (int i = 0, k = 0; i < names->name.n; k += names->count.v[i++])
    TRY(text_bind(t, names->name.v[i], &results[k], names->count.v[i], names->at.v[i]));
  return NULL;
}

static Err *op_inner(Text *t, Region *r, Names *names, OpDraft *d) {
  TRY(result_names(t, names));
  d->at = t->start;
  if (text_is(t, T_STR)) {
    d->name = text_unescape(t, t->s);
    d->kind = op_kind_from_name(d->name);
    text_next(t);
    TRY(text_generic_body(t, d));
  } else if (text_is(t, T_ID)) {
    d->name = t->s;
    if (str_is(d->name, "return")) d->name = STR("func.return");
    if (str_is(d->name, "call")) d->name = STR("func.call");
    d->kind = op_kind_from_name(d->name);
    text_next(t);
    TRY(text_form_read(t, d));
  } else {
    return text_expected(t, "an operation");
  }
  TRY(text_opt_loc(t, &d->loc));
  if (is_cast(d) && d->operands.n == 1 && d->results.n == 1 &&
      d->operands.v[0]->type == d->results.v[0]) {
    if (names->name.n != 1) return NULL;
    Value *v = d->operands.v[0];
    Str keep = v->name;
    Err *e = text_bind(t, names->name.v[0], v, 1, names->at.v[0]);
    v->name = keep;
    return e;
  }
  Op *op;
  TRY(text_finish_op(t, d, r, &op));
  return bind_results(t, names, op->results, op->n_results);
}

Err *text_op(Text *t, Region *r) {
  Names names = {0};
  OpDraft d = {0};
  Err *e = op_inner(t, r, &names, &d);
  vec_free(&names.name);
  vec_free(&names.count);
  vec_free(&names.at);
  vec_free(&d.operands);
  vec_free(&d.regions);
  vec_free(&d.attrs);
  vec_free(&d.results);
  return e;
}
