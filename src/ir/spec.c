/* The attribute columns of ops.def, parsed once into AttrSpec tables: what the readers convert to,
 * the verifier checks and the writers leave out. */
#include "ir/ir.h"

#include <pthread.h>

#define MAX_SPECS 600

static AttrSpec specs[MAX_SPECS];
static int first[OP_COUNT + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *const kind_names[] = {"i64",  "i32",   "f32",   "bool", "str",  "sym",
                                         "syms", "type",  "dict",  "enum", "ints", "bools",
                                         "mat",  "dense", "array", "any"};

static SpecKind kind_of(Str s) {
  for (int i = 0; i < COUNT_OF(kind_names); i++)
    if (str_is(s, kind_names[i])) return (SpecKind)i;
  assert(!"unknown attribute kind in ops.def");
  return SK_ANY;
}

static void parse_one(const char *p, const char *end, AttrSpec *s) {
  const char *colon = memchr(p, ':', (size_t)(end - p));
  assert(colon);
  s->name = (Str){p, (size_t)(colon - p)};
  const char *eq = memchr(colon, '=', (size_t)(end - colon));
  const char *kend = eq ? eq : end;
  Str kind = {colon + 1, (size_t)(kend - colon - 1)};
  const char *paren = memchr(kind.p, '(', kind.n);
  if (paren) {
    s->choices = (Str){paren + 1, (size_t)(kend - paren - 2)};
    kind.n = (size_t)(paren - kind.p);
  }
  s->kind = kind_of(kind);
  s->required = !eq;
  if (eq) s->dflt = (Str){eq + 1, (size_t)(end - eq - 1)};
}

static void parse_all(void) {
  int n = 0;
  for (int k = 0; k < OP_COUNT; k++) {
    first[k] = n;
    for (const char *p = op_info[k].attrs; *p;) {
      if (*p == ' ') {
        p++;
        continue;
      }
      const char *end = p;
      while (*end && *end != ' ') end++;
      assert(n < MAX_SPECS);
      parse_one(p, end, &specs[n++]);
      p = end;
    }
  }
  first[OP_COUNT] = n;
}

const AttrSpec *op_attr_specs(OpKind k, int *n) {
  pthread_once(&once, parse_all);
  *n = first[k + 1] - first[k];
  return &specs[first[k]];
}

const AttrSpec *op_attr_spec(OpKind k, Str name) {
  int n;
  const AttrSpec *s = op_attr_specs(k, &n);
  for (int i = 0; i < n; i++)
    if (str_eq(s[i].name, name)) return &s[i];
  return NULL;
}

static int64_t to_int(Str s) {
  bool neg = s.n && s.p[0] == '-';
  int64_t v = 0;
  for (size_t i = neg; i < s.n; i++) v = v * 10 + (s.p[i] - '0');
  return neg ? -v : v;
}

static bool all_equal(const Attr *a, int64_t v) {
  if (a->kind == AT_INTS) {
    for (int i = 0; i < a->n; i++)
      if (a->ints[i] != v) return false;
    return true;
  }
  if (a->kind != AT_TENSOR || a->dtype != DT_I64) return false;
  for (int64_t i = 0; i < a->tensor->count; i++)
    if (*(int64_t *)tensor_at(a->tensor, i) != v) return false;
  return true;
}

static bool all_default(const Attr *a) { /* precision_config */
  for (int i = 0; i < a->n; i++)
    if (a->items[i]->kind != AT_ENUM || !str_is(a->items[i]->s, "DEFAULT")) return false;
  return true;
}

bool attr_is_default(const AttrSpec *s, const Attr *a) {
  if (s->required) return false;
  if (str_is(s->dflt, "?") || str_is(s->dflt, "[]")) {
    if (str_is(s->name, "precision_config")) return a->kind == AT_ARRAY && all_default(a);
    if (str_is(s->name, "result_accuracy")) {
      const Attr *mode = a->kind == AT_DICT ? attrs_get(a->dict, a->n, "mode") : NULL;
      return mode && mode->kind == AT_ENUM && str_is(mode->s, "DEFAULT");
    }
    switch (a->kind) {
    case AT_INTS:
    case AT_ARRAY:
    case AT_DICT: return a->n == 0;
    case AT_TENSOR: return a->tensor->count == 0;
    case AT_STRING: return a->s.n == 0;
    case AT_TYPE: return a->type->kind == TY_NONE;
    default: return false;
    }
  }
  if (str_is(s->dflt, "ones")) return all_equal(a, 1);
  if (str_is(s->dflt, "zeros")) return all_equal(a, 0);
  if (s->kind == SK_BOOL) return a->kind == AT_BOOL && a->i == str_is(s->dflt, "true");
  if (s->kind == SK_ENUM) return a->kind == AT_ENUM && str_eq(a->s, s->dflt);
  if (s->kind == SK_I64 || s->kind == SK_I32) return a->kind == AT_INT && a->i == to_int(s->dflt);
  return false;
}
