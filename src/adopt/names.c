/* The names of a program's arguments and results, as paths: "params['a'].w" is params/a/w. */
#include "adopt/adopt_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const endings[] = {".mlir", ".mlirbc",    ".hlo", ".hlo.pb",
                                      ".pb",   ".stablehlo", ".bc"};

const char *adopt_ending(const char *path) {
  const char *found = NULL;
  for (int i = 0; i < COUNT_OF(endings); i++)
    if (str_ends(str_from(path), endings[i]) && (!found || strlen(endings[i]) > strlen(found)))
      found = endings[i];
  return found;
}

static bool in_word(char c) { return isalnum((unsigned char)c) || strchr("_-+:@", c); }

char *adopt_path(Str name) {
  Buf b = {0};
  bool between = false;
  for (size_t i = 0; i < name.n; i++) {
    if (!name.p[i] || !in_word(name.p[i])) {
      between = true;
      continue;
    }
    if (between && b.n) buf_byte(&b, '/');
    between = false;
    buf_byte(&b, name.p[i]);
  }
  if (b.n >= 6 && !memcmp(b.p, "result", 6) && (b.n == 6 || b.p[6] == '/')) {
    char *rest = xstrdup(b.n > 6 ? b.p + 7 : "");
    buf_free(&b);
    return rest;
  }
  return b.p ? b.p : xstrdup("");
}

const char *adopt_tail(const char *path) {
  const char *slash = strchr(path, '/');
  return slash ? slash + 1 : "";
}

bool adopt_lies_in(const char *path, const char *in) {
  size_t n = strlen(in);
  return n && !strncmp(path, in, n) && (!path[n] || path[n] == '/');
}

/* "arg3": what printers make up where there is no name. */
static bool made_up(Str s) {
  size_t i = s.n > 3 && !memcmp(s.p, "arg", 3) ? 3 : s.n > 3 && !memcmp(s.p, "Arg_", 4) ? 4 : 0;
  if (!i) return s.n == 0;
  while (i < s.n && (isdigit((unsigned char)s.p[i]) || s.p[i] == '.' || s.p[i] == '_')) i++;
  return i == s.n;
}

static Err *check_type(const Adopted *a, const char *what, const char *name, const Type *t) {
  if (t->kind == TY_TENSOR && type_is_static(t) && t->rank <= 6) return NULL;
  Buf b = {0};
  type_print(&b, t);
  Err *e =
      err_hint(err_new(ERR_UNIMPLEMENTED, "%s %s of '%s' is a %s", what, name, a->program, b.p),
               "a step takes and gives arrays of fixed shapes, of six dimensions at most");
  buf_free(&b);
  return e;
}

static void read_donation(Adopted *a, int i) {
  AdoptArg *g = &a->args[i];
  Attr *alias = attrs_get(a->f->arg_attrs[i], a->f->n_arg_attrs[i], "tf.aliasing_output");
  Attr *donor = attrs_get(a->f->arg_attrs[i], a->f->n_arg_attrs[i], "jax.buffer_donor");
  g->alias = alias && alias->kind == AT_INT && alias->i >= 0 && alias->i < a->n_results
                 ? (int)alias->i
                 : -1;
  g->donated = alias || (donor && (donor->kind != AT_BOOL || donor->i));
}

Err *adopt_read_names(Adopted *a) {
  const Type *t = a->f->type;
  a->n_args = t->n_elems, a->n_results = t->n_results;
  a->args = xcalloc((size_t)a->n_args + 1, sizeof *a->args);
  a->results = xcalloc((size_t)a->n_results + 1, sizeof *a->results);
  for (int i = 0; i < a->n_args; i++) {
    AdoptArg *g = &a->args[i];
    Str name = a->f->body->args[i]->name;
    bool none = made_up(name);
    g->name = none ? xasprintf("arg%d", i) : xstrndup(name.p, name.n);
    g->path = none ? xstrdup("") : adopt_path(name);
    for (int k = 0; k < i; k++) { /* tensors of a checkpoint have one name each */
      if (strcmp(a->args[k].name, g->name)) continue;
      char *other = xasprintf("%s.arg%d", g->name, i);
      free(g->name);
      g->name = other;
      break;
    }
    g->type = t->elems[i], g->result = g->field = -1;
    read_donation(a, i);
    TRY(check_type(a, "argument", g->name, g->type));
  }
  for (int i = 0; i < a->n_results; i++) {
    AdoptResult *r = &a->results[i];
    Attr *info = attrs_get(a->f->res_attrs[i], a->f->n_res_attrs[i], "jax.result_info");
    bool named = info && info->kind == AT_STRING && info->s.n;
    r->name = named ? xstrndup(info->s.p, info->s.n) : xasprintf("result%d", i);
    r->path = named ? adopt_path(info->s) : xstrdup("");
    r->type = t->results[i];
    TRY(check_type(a, "result", r->name, r->type));
  }
  return NULL;
}

/* ---- lists for messages ------------------------------------------------------------------------ */

enum { LIST_FIRST = 12, LIST_LAST = 4 }; /* rows that are shown: a message fits a screen */

/* Whether the i-th of n is shown; says how many are not in their place. */
static bool shown(int i, int n, Buf *out) {
  if (n <= LIST_FIRST + LIST_LAST || i < LIST_FIRST || i >= n - LIST_LAST) return true;
  if (i == LIST_FIRST) buf_printf(out, "  ... %d more\n", n - LIST_FIRST - LIST_LAST);
  return false;
}

static void table(const Adopted *a, Buf *out) {
  static const char *const role[] = {"", "state", "batch", "fixed"};
  buf_cstr(out, "arguments:\n");
  for (int i = 0; i < a->n_args; i++) {
    if (!shown(i, a->n_args, out)) continue;
    buf_printf(out, "  %3d %-6s %-34s ", i, role[a->args[i].role], a->args[i].name);
    type_print(out, a->args[i].type);
    if (a->args[i].role == ROLE_STATE && a->args[i].result >= 0)
      buf_printf(out, " -> result %d", a->args[i].result);
    buf_byte(out, '\n');
  }
  buf_cstr(out, "results:\n");
  for (int i = 0; i < a->n_results; i++) {
    if (!shown(i, a->n_results, out)) continue;
    buf_printf(out, "  %3d %-6s %-34s ", i, i == a->loss ? "loss" : "", a->results[i].name);
    type_print(out, a->results[i].type);
    buf_byte(out, '\n');
  }
}

Err *adopt_wrong(const Adopted *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  Err *what = err_newv(ERR_INVALID, fmt, ap);
  va_end(ap);
  Buf list = {0};
  table(a, &list);
  Err *e = err_new(ERR_INVALID, "'%s' as it is understood\n%s%s", a->program, list.p, what->msg);
  buf_free(&list);
  err_free(what);
  return e;
}
