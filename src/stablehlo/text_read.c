/* The file level: modules, functions, meshes, alias definitions, and the division of test files at
 * "// -----" lines. */
#include "stablehlo/text_priv.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- functions ---- */

typedef struct ArgAttrs {
  NamedAttr *v;
  int n;
} ArgAttrs;

typedef struct FuncDraft {
  Str name;
  bool is_private;
  const char *at;
  Types in, out;
  Values args;
  VEC(ArgAttrs) arg_attrs;
  VEC(ArgAttrs) res_attrs;
  Attrs attrs;
  const Loc *loc;
} FuncDraft;

static void draft_free(FuncDraft *d) {
  vec_free(&d->in);
  vec_free(&d->out);
  vec_free(&d->args);
  vec_free(&d->arg_attrs);
  vec_free(&d->res_attrs);
  vec_free(&d->attrs);
}

static int by_name(const void *a, const void *b) {
  return str_cmp(((const NamedAttr *)a)->name, ((const NamedAttr *)b)->name);
}

static ArgAttrs keep_sorted(Text *t, const Attrs *v) {
  ArgAttrs r = {NULL, v->n};
  if (!v->n) return r;
  r.v = arena_dup(t->m->arena, v->v, sizeof *v->v * (size_t)v->n);
  qsort(r.v, (size_t)r.n, sizeof *r.v, by_name);
  return r;
}

static Err *opt_dict(Text *t, ArgAttrs *out) {
  *out = (ArgAttrs){0};
  if (!text_is(t, '{')) return NULL;
  Attrs v = {0};
  Err *e = text_attr_dict(t, &v);
  if (!e) *out = keep_sorted(t, &v);
  vec_free(&v);
  return e;
}

/* %arg0: T {attrs} loc(..), ... or T {attrs}, ... of a declaration */
static Err *func_args(Text *t, FuncDraft *d) {
  TRY(text_want(t, '(', "'(' and the arguments"));
  if (text_take(t, ')')) return NULL;
  do {
    Str name = {0};
    const char *at = t->start;
    if (text_is(t, T_VALUE)) {
      name = t->s;
      text_next(t);
      TRY(text_want(t, ':', "':' and the argument's type"));
    }
    Type *ty;
    const Loc *loc = NULL;
    TRY(text_type(t, &ty));
    *vec_push(&d->in) = ty;
    TRY(opt_dict(t, vec_push(&d->arg_attrs)));
    TRY(text_opt_loc(t, &loc));
    if (name.p) {
      Value *v = text_arg(t, ty, loc);
      TRY(text_bind(t, name, v, 1, at));
      *vec_push(&d->args) = v;
    }
  } while (text_take(t, ','));
  return text_want(t, ')', "',' or ')' after the arguments");
}

static Err *func_result(Text *t, FuncDraft *d) {
  Type *ty;
  const Loc *loc = NULL;
  TRY(text_type(t, &ty));
  *vec_push(&d->out) = ty;
  TRY(opt_dict(t, vec_push(&d->res_attrs)));
  return text_opt_loc(t, &loc);
}

static Err *func_results(Text *t, FuncDraft *d) {
  if (!text_take(t, T_ARROW)) return NULL;
  if (!text_is(t, '(')) {
    Type *ty; /* `-> T {` begins the body, not attributes */
    TRY(text_type(t, &ty));
    *vec_push(&d->out) = ty;
    *vec_push(&d->res_attrs) = (ArgAttrs){0};
    return NULL;
  }
  text_next(t);
  if (text_take(t, ')')) return NULL;
  do {
    TRY(func_result(t, d));
  } while (text_take(t, ','));
  return text_want(t, ')', "',' or ')' after the results");
}

/* The function without its body, added to the module. */
static Err *make_func(Text *t, FuncDraft *d, Func **out) {
  if (map_get(t->funcs, d->name))
    return text_err_at(t, d->at, "function @%.*s is defined twice", STR_ARG(d->name));
  Func *f = func_declare(t->m, d->name, type_func(t->m, d->in.n, d->in.v, d->out.n, d->out.v));
  map_set(t->funcs, f->name, f);
  f->is_private = d->is_private;
  for (int i = 0; i < d->arg_attrs.n && i < d->in.n; i++) {
    f->arg_attrs[i] = d->arg_attrs.v[i].v;
    f->n_arg_attrs[i] = d->arg_attrs.v[i].n;
  }
  for (int i = 0; i < d->res_attrs.n && i < d->out.n; i++) {
    f->res_attrs[i] = d->res_attrs.v[i].v;
    f->n_res_attrs[i] = d->res_attrs.v[i].n;
  }
  ArgAttrs own = keep_sorted(t, &d->attrs);
  f->attrs = own.v;
  f->n_attrs = own.n;
  *out = f;
  return NULL;
}

/* text_region makes the region once its operations are read; they learn their function here. */
static void own_region(Region *r, Func *f) {
  r->func = f;
  for (Op *op = r->first; op; op = op->next)
    for (int i = 0; i < op->n_regions; i++) own_region(op->regions[i], f);
}

static Err *func_rest(Text *t, FuncDraft *d) {
  if (text_take_word(t, "private")) d->is_private = true;
  else if (!text_take_word(t, "public")) text_take_word(t, "nested");
  d->at = t->start;
  TRY(text_symbol(t, &d->name));
  TRY(func_args(t, d));
  TRY(func_results(t, d));
  if (text_take_word(t, "attributes")) TRY(text_attr_dict(t, &d->attrs));
  Func *f;
  TRY(make_func(t, d, &f));
  if (text_is(t, '{')) {
    if (d->args.n != d->in.n)
      return text_err_at(t, d->at, "a function with a body names its arguments");
    Region *r;
    TRY(text_region(t, d->args.n == 0, &d->args, &r));
    f->body = r;
    own_region(r, f);
  } else {
    f->is_private = true; /* as MLIR demands of declarations */
  }
  return text_opt_loc(t, &f->loc);
}

static Err *read_func(Text *t) { /* after func.func */
  FuncDraft d = {0};
  Err *e = func_rest(t, &d);
  draft_free(&d);
  text_scope_close(t, 0);
  return e;
}

/* "func.func"() <{arg_attrs, function_type, res_attrs, sym_name, sym_visibility}> ({ ^bb0(..): ..
 * }) {..} : () -> () */
static Err *generic_func_inner(Text *t, FuncDraft *d, OpDraft *op) {
  d->at = t->start;
  TRY(text_generic_body(t, op));
  const Attr *type = attrs_get(op->attrs.v, op->attrs.n, "function_type");
  const Attr *name = attrs_get(op->attrs.v, op->attrs.n, "sym_name");
  if (!type || type->kind != AT_TYPE || type->type->kind != TY_FUNC || !name ||
      name->kind != AT_STRING)
    return text_err_at(t, d->at, "a function needs function_type and sym_name");
  d->name = name->s;
  for (int i = 0; i < type->type->n_elems; i++) *vec_push(&d->in) = type->type->elems[i];
  for (int i = 0; i < type->type->n_results; i++) *vec_push(&d->out) = type->type->results[i];
  for (int i = 0; i < op->attrs.n; i++) {
    NamedAttr a = op->attrs.v[i];
    bool args = str_is(a.name, "arg_attrs"), res = str_is(a.name, "res_attrs");
    if (str_is(a.name, "sym_visibility")) {
      d->is_private = a.value->kind == AT_STRING && str_is(a.value->s, "private");
    } else if (args || res) {
      for (int k = 0; a.value->kind == AT_ARRAY && k < a.value->n; k++) {
        const Attr *dict = a.value->items[k];
        ArgAttrs one = {0};
        if (dict->kind == AT_DICT) one = (ArgAttrs){dict->n ? dict->dict : NULL, dict->n};
        if (args) *vec_push(&d->arg_attrs) = one;
        else *vec_push(&d->res_attrs) = one;
      }
    } else if (a.value != type && a.value != name) {
      *vec_push(&d->attrs) = a;
    }
  }
  Func *f;
  TRY(make_func(t, d, &f));
  if (op->regions.n && (op->regions.v[0]->first || op->regions.v[0]->n_args)) {
    Region *r = op->regions.v[0];
    if (r->n_args != d->in.n)
      return text_err_at(t, d->at, "function_type and the block's arguments differ");
    f->body = r;
    own_region(r, f);
  } else {
    f->is_private = true;
  }
  return text_opt_loc(t, &f->loc);
}

static void op_draft_free(OpDraft *d) {
  vec_free(&d->operands);
  vec_free(&d->regions);
  vec_free(&d->attrs);
  vec_free(&d->results);
}

static Err *read_generic_func(Text *t) {
  FuncDraft d = {0};
  OpDraft op = {.name = STR("func.func"), .at = t->start};
  Err *e = generic_func_inner(t, &d, &op);
  draft_free(&d);
  op_draft_free(&op);
  return e;
}

/* ---- meshes ---- */

static Err *read_mesh(Text *t) { /* @mesh = <["x"=2]> {..} */
  Str name;
  Attr *mesh;
  const char *at = t->start;
  TRY(text_symbol(t, &name));
  if (map_get(t->meshes, name))
    return text_err_at(t, at, "mesh @%.*s is defined twice", STR_ARG(name));
  TRY(text_want(t, '=', "'=' and the mesh"));
  TRY(text_mesh(t, &mesh));
  *vec_push(&t->m->meshes) = (NamedAttr){name, mesh};
  map_set(t->meshes, name, mesh->mesh);
  ArgAttrs ignored;
  const Loc *loc;
  TRY(opt_dict(t, &ignored));
  return text_opt_loc(t, &loc);
}

static Err *read_generic_mesh(Text *t) {
  OpDraft op = {.name = STR("sdy.mesh"), .at = t->start};
  Err *e = text_generic_body(t, &op);
  const Attr *name = attrs_get(op.attrs.v, op.attrs.n, "sym_name");
  Attr *mesh = attrs_get(op.attrs.v, op.attrs.n, "mesh");
  if (!e && (!name || name->kind != AT_STRING || !mesh || mesh->kind != AT_MESH))
    e = text_err_at(t, op.at, "sdy.mesh needs sym_name and mesh");
  if (!e && map_get(t->meshes, name->s))
    e = text_err_at(t, op.at, "mesh @%.*s is defined twice", STR_ARG(name->s));
  if (!e)
    *vec_push(&t->m->meshes) = (NamedAttr){name->s, mesh}, map_set(t->meshes, name->s, mesh->mesh);
  op_draft_free(&op);
  const Loc *loc;
  return e ? e : text_opt_loc(t, &loc);
}

/* ---- modules ---- */

static void set_module_attrs(Text *t, const Attrs *v) {
  ArgAttrs a = keep_sorted(t, v);
  t->m->attrs = a.v;
  t->m->n_attrs = a.n;
}

static Err *module_items(Text *t, int close);

static Err *read_module(Text *t) { /* after `module` */
  if (text_is(t, T_SYM)) TRY(text_symbol(t, &t->m->name));
  if (text_take_word(t, "attributes")) {
    Attrs v = {0};
    Err *e = text_attr_dict(t, &v);
    if (!e) set_module_attrs(t, &v);
    vec_free(&v);
    if (e) return e;
  }
  TRY(text_want(t, '{', "'{' and the module's functions"));
  TRY(module_items(t, '}'));
  return text_opt_loc(t, &t->m->loc);
}

/* "builtin.module"() <{sym_name = "x"}> ({ .. }) {..} : () -> () */
static Err *generic_module_inner(Text *t, Attrs *v) {
  TRY(text_want(t, '(', "'('"));
  TRY(text_want(t, ')', "')'"));
  if (text_take(t, '<')) {
    TRY(text_attr_dict(t, v));
    TRY(text_want(t, '>', "'>' after the properties"));
  }
  TRY(text_want(t, '(', "'(' and the module's region"));
  TRY(text_want(t, '{', "'{'"));
  if (text_is(t, T_CARET)) {
    text_next(t);
    TRY(text_want(t, ':', "':'"));
  }
  TRY(module_items(t, '}'));
  TRY(text_want(t, ')', "')' after the module's region"));
  if (text_is(t, '{')) TRY(text_attr_dict(t, v));
  TRY(text_want(t, ':', "': () -> ()'"));
  Type *ty;
  TRY(text_type(t, &ty));
  int kept = 0;
  for (int i = 0; i < v->n; i++) {
    if (str_is(v->v[i].name, "sym_name") && v->v[i].value->kind == AT_STRING)
      t->m->name = v->v[i].value->s;
    else if (!str_is(v->v[i].name, "sym_visibility")) v->v[kept++] = v->v[i];
  }
  v->n = kept;
  set_module_attrs(t, v);
  return text_opt_loc(t, &t->m->loc);
}

static Err *read_generic_module(Text *t) {
  Attrs v = {0};
  Err *e = generic_module_inner(t, &v);
  vec_free(&v);
  return e;
}

static Err *skip_alias(Text *t) { /* #a = ...: read when first used; its text is passed over here */
  Str name = {t->start, (size_t)(t->p - t->start)};
  Alias *a = map_get(t->aliases, name);
  bool type = text_is(t, T_BANG);
  if (!a || t->base + a->at < t->start)
    return text_expected(t, "a function, a module or an alias definition");
  text_next(t);
  TRY(text_want(t, '=', "'=' and the alias's value"));
  if (a->state == 2 && a->end) {
    text_seek(t, a->end);
    return NULL;
  }
  return text_read_alias(t, a, type);
}

static Err *module_items(Text *t, int close) {
  for (;;) {
    if (text_take(t, close)) return NULL;
    if (text_is(t, T_HASH) || text_is(t, T_BANG)) {
      TRY(skip_alias(t));
    } else if (text_take_word(t, "func.func") || text_take_word(t, "func")) {
      TRY(read_func(t));
    } else if (text_take_word(t, "sdy.mesh")) {
      TRY(read_mesh(t));
    } else if (text_is(t, T_STR) && str_is(t->s, "func.func")) {
      text_next(t);
      TRY(read_generic_func(t));
    } else if (text_is(t, T_STR) && str_is(t->s, "sdy.mesh")) {
      text_next(t);
      TRY(read_generic_mesh(t));
    } else {
      return text_expected(t, close == '}' ? "func.func, sdy.mesh or '}'"
                                           : "func.func or the end of the text");
    }
  }
}

static Err *skip_meta(Text *t) {
  const char *at = t->start;
  while (!text_is(t, T_META_END)) {
    if (text_is(t, T_EOF)) return text_err_at(t, at, "this '{-#' is not closed by '#-}'");
    text_next(t);
  }
  text_next(t);
  return NULL;
}

static Err *read_file(Text *t) {
  bool module = false, bare = false;
  text_next(t);
  while (!text_is(t, T_EOF)) {
    if (text_is(t, T_HASH) || text_is(t, T_BANG)) {
      TRY(skip_alias(t));
    } else if (text_is(t, T_META)) {
      TRY(skip_meta(t));
    } else if (!module && !bare &&
               (text_is_word(t, "module") || text_is_word(t, "builtin.module"))) {
      text_next(t);
      TRY(read_module(t));
      module = true;
    } else if (!module && !bare && text_is(t, T_STR) && str_is(t->s, "builtin.module")) {
      text_next(t);
      TRY(read_generic_module(t));
      module = true;
    } else if (module) {
      return text_expected(t, "the end of the text after the module");
    } else if (text_take_word(t, "func.func") || text_take_word(t, "func")) {
      bare = true;
      TRY(read_func(t));
    } else if (text_take_word(t, "sdy.mesh")) {
      bare = true;
      TRY(read_mesh(t));
    } else if (text_is(t, T_STR) && str_is(t->s, "func.func")) {
      bare = true;
      text_next(t);
      TRY(read_generic_func(t));
    } else {
      return text_expected(t, "'module' or 'func.func'");
    }
  }
  return NULL;
}

/* ---- preparation: line starts and alias definitions ---- */

static void scan_lines(Text *t) {
  *vec_push(&t->lines) = 0;
  for (const char *p = t->base; p < t->end;) {
    const char *q = p;
    while (q < t->end && (*q == ' ' || *q == '\t')) q++;
    if (q < t->end && (*q == '#' || *q == '!')) {
      const char *name = q++;
      while (q < t->end &&
             (isalnum((unsigned char)*q) || *q == '_' || *q == '$' || *q == '.' || *q == '-'))
        q++;
      Str key = {name, (size_t)(q - name)};
      while (q < t->end && (*q == ' ' || *q == '\t')) q++;
      if (key.n > 1 && q + 1 < t->end && *q == '=' && !map_get(t->aliases, key)) {
        Alias *a = ARENA_NEW(t->m->arena, Alias);
        a->at = (size_t)(q + 1 - t->base);
        map_set(t->aliases, key, a);
      }
    }
    const char *nl = memchr(p, '\n', (size_t)(t->end - p));
    if (!nl) break;
    p = nl + 1;
    *vec_push(&t->lines) = (uint32_t)(p - t->base);
  }
}

static void open_text(Text *t, Module *m, int64_t room) {
  t->m = m;
  t->room_left = room;
  t->aliases = map_new();
  t->values = map_new();
  t->funcs = map_new();
  t->meshes = map_new();
  scan_lines(t);
}

static void close_text(Text *t) {
  map_free(t->aliases);
  map_free(t->values);
  map_free(t->funcs);
  map_free(t->meshes);
  map_free(t->resources);
  vec_free(&t->lines);
  vec_free(&t->scope);
}

Err *stablehlo_read_attr(Module *m, Str text, Attr **out) {
  Text t = {.file = "attribute", .base = text.p, .end = text.p + text.n, .p = text.p};
  open_text(&t, m, STABLEHLO_MAX_EXPANDED_BYTES);
  text_next(&t);
  Err *e = text_attr(&t, out);
  if (!e && !text_is(&t, T_EOF)) e = text_expected(&t, "the end of the attribute");
  close_text(&t);
  return e;
}

static Err *read_chunk(const char *file, Str text, int line0, int64_t room, Module **out) {
  if (text.n >= UINT32_MAX / 2) return err_new(ERR_INVALID, "%s: text larger than 2 GiB", file);
  Text t = {.file = file, .base = text.p, .end = text.p + text.n, .p = text.p, .line0 = line0};
  Module *m = module_new();
  m->file = arena_str(m->arena, str_from(file));
  open_text(&t, m, room);
  Err *e = read_file(&t);
  close_text(&t);
  if (e) {
    module_free(t.m);
    return e;
  }
  *out = t.m;
  return NULL;
}

Err *text_read_limited(const char *file, Str text, int64_t room, Module **out) {
  return read_chunk(file, text, 0, room, out);
}

Err *stablehlo_read_text(const char *file, Str text, Module **out) {
  return read_chunk(file, text, 0, STABLEHLO_MAX_EXPANDED_BYTES, out);
}

static bool is_divider(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  return end - p >= 8 && !memcmp(p, "// -----", 8);
}

Err *stablehlo_read_text_split(const char *file, Str text, Module ***out, int *n) {
  VEC(Module *) v = {0};
  Err *e = NULL;
  const char *from = text.p, *end = text.p + text.n;
  int line0 = 0, line = 0;
  for (const char *p = from; !e;) {
    const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    const char *next = nl ? nl + 1 : end;
    line++;
    if (p >= end || is_divider(p, end)) {
      Module *m = NULL;
      e = read_chunk(file, (Str){from, (size_t)(p - from)}, line0, STABLEHLO_MAX_EXPANDED_BYTES,
                     &m);
      if (!e) *vec_push(&v) = m;
      from = next;
      line0 = line;
      if (p >= end) break;
    }
    p = next;
  }
  if (e) {
    for (int i = 0; i < v.n; i++) module_free(v.v[i]);
    vec_free(&v);
    return e;
  }
  *out = v.v;
  *n = v.n;
  return NULL;
}
