/* Modules as text, in MLIR's layout. Values are named as MLIR names them: hints where there are
 * any, made unique by a number inside their function; c and cst for constants, iterArg for the
 * arguments of while, arg<n> for other arguments, numbers for the rest. An inner region continues
 * the numbers of the block around it, siblings begin alike. Locations are written as aliases
 * (#loc1) at the end, so that shared ones stay shared.
 */
#include "stablehlo/text_write_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- names ---- */

typedef struct Counters {
  int value, arg, conflict;
} Counters;

typedef struct Namer {
  Writer *w;
  Map *used;      /* name -> not NULL */
  VEC(Str) stack; /* names in use, innermost region last */
} Namer;

static Str unique(Namer *n, Str name, Counters *c) {
  Str s = name;
  while (map_get(n->used, s))
    s = arena_printf(n->w->arena, "%.*s_%d", STR_ARG(name), c->conflict++);
  map_set(n->used, s, n);
  *vec_push(&n->stack) = s;
  return s;
}

static bool good_name(Str s) { /* what may follow % and is no number */
  if (!s.n || isdigit((unsigned char)s.p[0])) return false;
  for (size_t i = 0; i < s.n; i++)
    if (!isalnum((unsigned char)s.p[i]) && (s.p[i] == 0 || !strchr("_$.-", s.p[i]))) return false;
  return s.p[s.n - 1] != '-';
}

static void set_name(Namer *n, const Value *v, Str name, int sub) {
  if (v->id >= 0 && v->id < n->w->n_names) n->w->names[v->id] = (ValueName){name, sub};
}

static Str hint(const Op *op, int i) {
  Str s = op->results[i].name;
  if (good_name(s)) return s;
  if (op->kind == OP_CONSTANT) {
    DTypeClass c = dtype_class(op->results[0].type->dtype);
    return op->results[0].type->quant || (c != DC_SINT && c != DC_UINT && c != DC_BOOL) ? STR("cst")
                                                                                        : STR("c");
  }
  if (op->kind == OP_RNG_BIT_GENERATOR && op->n_results == 2)
    return i ? STR("output") : STR("output_state");
  return (Str){0};
}

static bool split_results(const Op *op) { /* %a, %b = instead of %a:2 = */
  for (int i = 1; i < op->n_results; i++)
    if (!hint(op, i).n) return false;
  return op->n_results > 1 && hint(op, 0).n;
}

static void name_results(Namer *n, const Op *op, Counters *c) {
  if (!op->n_results) return;
  if (split_results(op)) {
    for (int i = 0; i < op->n_results; i++)
      set_name(n, &op->results[i], unique(n, hint(op, i), c), -1);
    return;
  }
  Str h = hint(op, 0);
  Str name = h.n ? unique(n, h, c) : arena_printf(n->w->arena, "%d", c->value++);
  for (int i = 0; i < op->n_results; i++)
    set_name(n, &op->results[i], name, op->n_results > 1 ? i : -1);
}

static void name_region(Namer *n, const Region *r, Counters c, const Region *like);

static void name_op_regions(Namer *n, const Op *op, Counters c) {
  for (int i = 0; i < op->n_regions; i++)
    name_region(n, op->regions[i], c, op->kind == OP_WHILE && i == 1 ? op->regions[0] : NULL);
}

/* like: a region whose argument names this one shares (while writes them once) */
static void name_region(Namer *n, const Region *r, Counters c, const Region *like) {
  int mark = n->stack.n;
  bool loop = r->parent && r->parent->kind == OP_WHILE;
  for (int i = 0; i < r->n_args; i++) {
    Str s;
    if (like && i < like->n_args && like->args[i]->id >= 0) {
      s = n->w->names[like->args[i]->id].name;
      map_set(n->used, s, n);
      *vec_push(&n->stack) = s;
    } else if (good_name(r->args[i]->name)) {
      s = unique(n, r->args[i]->name, &c);
    } else {
      s = unique(n, loop ? STR("iterArg") : arena_printf(n->w->arena, "arg%d", c.arg++), &c);
    }
    set_name(n, r->args[i], s, -1);
  }
  for (const Op *op = r->first; op; op = op->next) name_results(n, op, &c);
  for (const Op *op = r->first; op; op = op->next) name_op_regions(n, op, c);
  while (n->stack.n > mark) map_set(n->used, n->stack.v[--n->stack.n], NULL);
}

static void name_func(Writer *w, Func *f) {
  ir_number(f);
  w->n_names = f->n_values;
  w->names = ARENA_ARRAY(w->arena, ValueName, f->n_values);
  Namer n = {.w = w, .used = map_new()};
  name_region(&n, f->body, (Counters){0}, NULL);
  map_free(n.used);
  vec_free(&n.stack);
}

void tw_value(Writer *w, const Value *v) {
  if (v->id >= 0 && v->id < w->n_names && w->names[v->id].name.n) {
    const ValueName *n = &w->names[v->id];
    buf_printf(w->b, "%%%.*s", STR_ARG(n->name));
    if (n->sub >= 0) buf_printf(w->b, "#%d", n->sub);
  } else if (v->name.n) {
    buf_printf(w->b, "%%%.*s", STR_ARG(v->name));
  } else if (v->id >= 0) {
    buf_printf(w->b, "%%%d", v->id);
  } else {
    buf_cstr(w->b, "%?");
  }
}

void tw_operands(Writer *w, const Op *op, int from, int to) {
  for (int i = from; i < to; i++) {
    if (i > from) buf_cstr(w->b, ", ");
    tw_value(w, op->operands[i]);
  }
}

void tw_newline(Writer *w) {
  buf_byte(w->b, '\n');
  for (int i = 0; i < w->indent; i++) buf_cstr(w->b, "  ");
}

/* ---- locations ---- */

static int loc_number(Writer *w, const Loc *l) {
  Str key = {(const char *)&l, sizeof l};
  uintptr_t n = (uintptr_t)map_get(w->locs, key);
  if (!n) {
    *vec_push(&w->loc_list) = l;
    n = (uintptr_t)w->loc_list.n;
    map_set(w->locs, key, (void *)n);
  }
  return (int)n;
}

static void loc_ref(Writer *w, const Loc *l) {
  if (!l || l->kind == LOC_UNKNOWN) buf_cstr(w->b, "unknown");
  else buf_printf(w->b, "#loc%d", loc_number(w, l));
}

void tw_loc(Writer *w, const Loc *l) {
  if (!w->opts.locations) return;
  buf_cstr(w->b, " loc(");
  loc_ref(w, l);
  buf_byte(w->b, ')');
}

/* An argument's name is its location: %0 may stand for "params['kernel']". */
static void arg_loc(Writer *w, const Value *arg) {
  if (!w->opts.locations || !arg->name.n) return;
  buf_cstr(w->b, " loc(");
  tw_quoted(w->b, arg->name);
  buf_byte(w->b, ')');
}

static void loc_body(Writer *w, const Loc *l) {
  switch (l->kind) {
  case LOC_UNKNOWN: buf_cstr(w->b, "unknown"); return;
  case LOC_FILE:
    tw_quoted(w->b, l->name);
    buf_printf(w->b, ":%d:%d", l->line, l->col);
    if (l->end_line && l->end_line == l->line) buf_printf(w->b, " to :%d", l->end_col);
    else if (l->end_line) buf_printf(w->b, " to %d:%d", l->end_line, l->end_col);
    return;
  case LOC_NAME:
    tw_quoted(w->b, l->name);
    if (l->child) {
      buf_byte(w->b, '(');
      loc_ref(w, l->child);
      buf_byte(w->b, ')');
    }
    return;
  case LOC_CALLSITE:
    buf_cstr(w->b, "callsite(");
    loc_ref(w, l->child);
    buf_cstr(w->b, " at ");
    loc_ref(w, l->caller);
    buf_byte(w->b, ')');
    return;
  case LOC_FUSED:
    buf_cstr(w->b, "fused[");
    for (int i = 0; i < l->n_parts; i++) {
      if (i) buf_cstr(w->b, ", ");
      loc_ref(w, l->parts[i]);
    }
    buf_byte(w->b, ']');
    return;
  }
}

/* MLIR wants what an alias refers to defined before it: inner ones first. */
static void loc_define(Writer *w, const Loc *l, char *done, int n_done) {
  if (!l || l->kind == LOC_UNKNOWN) return;
  int k = loc_number(w, l);
  if (k <= n_done && done[k - 1]) return;
  if (k <= n_done) done[k - 1] = 1;
  loc_define(w, l->child, done, n_done);
  loc_define(w, l->caller, done, n_done);
  for (int i = 0; i < l->n_parts; i++) loc_define(w, l->parts[i], done, n_done);
  buf_printf(w->b, "#loc%d = loc(", k);
  loc_body(w, l);
  buf_cstr(w->b, ")\n");
}

static void loc_number_inner(Writer *w, const Loc *l) {
  if (l && l->kind != LOC_UNKNOWN) loc_number(w, l);
}

static void loc_definitions(Writer *w) {
  for (int i = 0; i < w->loc_list.n;
       i++) { /* grows while it is walked: all that are reachable get their number */
    const Loc *l = w->loc_list.v[i];
    loc_number_inner(w, l->child);
    loc_number_inner(w, l->caller);
    for (int k = 0; k < l->n_parts; k++) loc_number_inner(w, l->parts[k]);
  }
  int n = w->loc_list.n;
  char *done = xcalloc((size_t)n, 1);
  for (int i = 0; i < n; i++) loc_define(w, w->loc_list.v[i], done, n);
  free(done);
}

/* ---- operations ---- */

void tw_func_type(Writer *w, const Op *op) {
  Buf *b = w->b;
  buf_byte(b, '(');
  for (int i = 0; i < op->n_operands; i++) {
    if (i) buf_cstr(b, ", ");
    type_print(b, op->operands[i]->type);
  }
  buf_cstr(b, ") -> ");
  bool paren = op->n_results != 1 || op->results[0].type->kind == TY_FUNC;
  if (paren) buf_byte(b, '(');
  for (int i = 0; i < op->n_results; i++) {
    if (i) buf_cstr(b, ", ");
    type_print(b, op->results[i].type);
  }
  if (paren) buf_byte(b, ')');
}

Str tw_op_name(const Op *op) {
  if (op->kind == OP_UNKNOWN) return op->name;
  if (op->kind != OP_RETURN) return str_from(op_info[op->kind].name);
  const Op *parent = op->parent ? op->parent->parent : NULL;
  if (!parent) return STR("func.return");
  bool sdy = parent->kind == OP_MANUAL_COMPUTATION || parent->kind == OP_NAMED_COMPUTATION;
  return sdy ? STR("sdy.return") : STR("stablehlo.return");
}

void tw_region(Writer *w, const Region *r, bool labels) {
  Buf *b = w->b;
  buf_byte(b, '{');
  if (labels && r->n_args) {
    tw_newline(w);
    buf_cstr(b, "^bb0(");
    for (int i = 0; i < r->n_args; i++) {
      if (i) buf_cstr(b, ", ");
      tw_value(w, r->args[i]);
      buf_cstr(b, ": ");
      type_print(b, r->args[i]->type);
      arg_loc(w, r->args[i]);
    }
    buf_cstr(b, "):");
  }
  w->indent++;
  for (const Op *op = r->first; op; op = op->next) {
    tw_newline(w);
    tw_op(w, op);
  }
  w->indent--;
  tw_newline(w);
  buf_byte(b, '}');
}

static void generic(Writer *w, const Op *op) {
  Buf *b = w->b;
  TextAttrs own = {0}, other = {0};
  bool known = op->kind != OP_UNKNOWN;
  tw_quoted(b, tw_op_name(op));
  buf_byte(b, '(');
  tw_operands(w, op, 0, op->n_operands);
  buf_byte(b, ')');
  if (known) tw_op_attrs(w, op, true, false, "", &own);
  tw_op_attrs(w, op, !known, true, "", &other);
  if (own.n) {
    buf_cstr(b, " <");
    tw_text_attrs(b, &own);
    buf_byte(b, '>');
  }
  if (op->n_regions) {
    buf_cstr(b, " (");
    for (int i = 0; i < op->n_regions; i++) {
      if (i) buf_cstr(b, ", ");
      tw_region(w, op->regions[i], true);
    }
    buf_byte(b, ')');
  }
  if (other.n) {
    buf_byte(b, ' ');
    tw_text_attrs(b, &other);
  }
  buf_cstr(b, " : ");
  tw_func_type(w, op);
  text_attrs_free(&own);
  text_attrs_free(&other);
}

static void result_names(Writer *w, const Op *op) {
  if (!op->n_results) return;
  const Value *v = &op->results[0];
  bool named = v->id >= 0 && v->id < w->n_names;
  if (op->n_results > 1 && named && w->names[v->id].sub >= 0) {
    buf_printf(w->b, "%%%.*s:%d", STR_ARG(w->names[v->id].name), op->n_results);
  } else {
    for (int i = 0; i < op->n_results; i++) {
      if (i) buf_cstr(w->b, ", ");
      tw_value(w, &op->results[i]);
    }
  }
  buf_cstr(w->b, " = ");
}

void tw_op(Writer *w, const Op *op) {
  result_names(w, op);
  if (w->opts.generic || !tw_pretty(w, op)) generic(w, op);
  tw_loc(w, op->loc);
}

/* ---- functions and modules ---- */

static void func_signature(Writer *w, const Func *f) {
  Buf *b = w->b;
  buf_byte(b, '(');
  for (int i = 0; i < f->type->n_elems; i++) {
    if (i) buf_cstr(b, ", ");
    if (f->body) {
      tw_value(w, f->body->args[i]);
      buf_cstr(b, ": ");
    }
    type_print(b, f->type->elems[i]);
    if (f->n_arg_attrs[i]) {
      buf_byte(b, ' ');
      tw_dict(w, f->arg_attrs[i], f->n_arg_attrs[i]);
    }
    if (f->body) arg_loc(w, f->body->args[i]);
  }
  buf_byte(b, ')');
  int n = f->type->n_results;
  if (n) {
    bool paren = n != 1 || f->n_res_attrs[0] || f->type->results[0]->kind == TY_FUNC;
    buf_cstr(b, paren ? " -> (" : " -> ");
    for (int i = 0; i < n; i++) {
      if (i) buf_cstr(b, ", ");
      type_print(b, f->type->results[i]);
      if (f->n_res_attrs[i]) {
        buf_byte(b, ' ');
        tw_dict(w, f->res_attrs[i], f->n_res_attrs[i]);
      }
    }
    if (paren) buf_byte(b, ')');
  }
  if (f->n_attrs) {
    buf_cstr(b, " attributes ");
    tw_dict(w, f->attrs, f->n_attrs);
  }
}

static void dict_list(Writer *w, const char *name, NamedAttr **v, const int *n, int count) {
  bool any = false;
  for (int i = 0; i < count; i++) any = any || n[i];
  if (!any) return;
  buf_printf(w->b, "%s = [", name);
  for (int i = 0; i < count; i++) {
    if (i) buf_cstr(w->b, ", ");
    tw_dict(w, v[i], n[i]);
  }
  buf_cstr(w->b, "], ");
}

static void generic_func(Writer *w, const Func *f) {
  Buf *b = w->b;
  buf_cstr(b, "\"func.func\"() <{");
  dict_list(w, "arg_attrs", f->arg_attrs, f->n_arg_attrs, f->type->n_elems);
  buf_cstr(b, "function_type = ");
  type_print(b, f->type);
  buf_cstr(b, ", ");
  dict_list(w, "res_attrs", f->res_attrs, f->n_res_attrs, f->type->n_results);
  buf_cstr(b, "sym_name = ");
  tw_quoted(b, f->name);
  buf_printf(b, ", sym_visibility = \"%s\"}> (", f->is_private ? "private" : "public");
  if (f->body) tw_region(w, f->body, true);
  else buf_cstr(b, "{\n  }");
  buf_byte(b, ')');
  if (f->n_attrs) {
    buf_byte(b, ' ');
    tw_dict(w, f->attrs, f->n_attrs);
  }
  buf_cstr(b, " : () -> ()");
}

static void write_func(Writer *w, Func *f) {
  if (f->body) name_func(w, f);
  tw_newline(w);
  if (w->opts.generic) {
    generic_func(w, f);
  } else {
    /* a declaration is private in MLIR */
    buf_printf(w->b, "func.func %s ", f->is_private || !f->body ? "private" : "public");
    tw_symbol(w->b, f->name);
    func_signature(w, f);
    if (f->body) {
      buf_byte(w->b, ' ');
      tw_region(w, f->body, false);
    }
  }
  tw_loc(w, f->loc);
}

static void write_mesh(Writer *w, const NamedAttr *mesh) {
  tw_newline(w);
  if (w->opts.generic) {
    buf_cstr(w->b, "\"sdy.mesh\"() <{mesh = ");
    tw_attr(w, mesh->value);
    buf_cstr(w->b, ", sym_name = ");
    tw_quoted(w->b, mesh->name);
    buf_cstr(w->b, "}> : () -> ()");
    return;
  }
  buf_cstr(w->b, "sdy.mesh ");
  tw_symbol(w->b, mesh->name);
  buf_cstr(w->b, " = ");
  tw_mesh(w->b, mesh->value->mesh);
}

void stablehlo_write_text(Buf *out, const Module *m, const TextOpts *opts) {
  Writer w = {.b = out, .locs = map_new(), .arena = arena_new()};
  if (opts) w.opts = *opts;
  if (w.opts.generic) {
    buf_cstr(out, "\"builtin.module\"()");
    if (m->name.n) {
      buf_cstr(out, " <{sym_name = ");
      tw_quoted(out, m->name);
      buf_cstr(out, "}>");
    }
    buf_cstr(out, " ({");
  } else {
    buf_cstr(out, "module ");
    if (m->name.n) {
      tw_symbol(out, m->name);
      buf_byte(out, ' ');
    }
    if (m->n_attrs) {
      buf_cstr(out, "attributes ");
      tw_dict(&w, m->attrs, m->n_attrs);
      buf_byte(out, ' ');
    }
    buf_byte(out, '{');
  }
  w.indent = 1;
  for (int i = 0; i < m->meshes.n; i++) write_mesh(&w, &m->meshes.v[i]);
  for (int i = 0; i < m->funcs.n; i++) write_func(&w, m->funcs.v[i]);
  w.indent = 0;
  tw_newline(&w);
  buf_byte(out, '}');
  if (w.opts.generic) {
    buf_byte(out, ')');
    if (m->n_attrs) {
      buf_byte(out, ' ');
      tw_dict(&w, m->attrs, m->n_attrs);
    }
    buf_cstr(out, " : () -> ()");
  }
  tw_loc(&w, m->loc);
  buf_byte(out, '\n');
  loc_definitions(&w);
  map_free(w.locs);
  vec_free(&w.loc_list);
  arena_free(w.arena);
}
