/* Facts: the reader of their files, one a line: `key = value unit  # source`, and a chip's by name. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "chip/chip_priv.h"

typedef struct Unit {
  const char *name;
  double scale;
} Unit;
static const Unit units[] = {
    {"", 1},       {"GHz", 1e9},   {"MHz", 1e6},          {"TFLOP/s", 1e12},  {"GFLOP/s", 1e9},
    {"GB/s", 1e9}, {"TB/s", 1e12}, {"GiB", 1073741824.0}, {"MiB", 1048576.0}, {"KiB", 1024.0},
    {"GB", 1e9},   {"MB", 1e6},    {"bytes", 1},          {"W", 1},           {"us", 1e-6},
    {"ms", 1e-3},  {"s", 1},       {"nm", 1e-9},          {"per cycle", 1},   {"cycles", 1},
    {"USD/h", 1},
};

Err *facts_hint_units(Err *e) {
  Buf b = {0};
  for (int i = 1; i < COUNT_OF(units); i++)
    buf_printf(&b, "%s%s", i > 1 ? ", " : "", units[i].name);
  err_hint(e, "units: %s", b.p);
  buf_free(&b);
  return e;
}

static Str trim(Str s) {
  while (s.n && isspace((unsigned char)s.p[0])) s.p++, s.n--;
  while (s.n && isspace((unsigned char)s.p[s.n - 1])) s.n--;
  return s;
}

bool facts_line(Str *rest, Str *out, int *line) {
  while (rest->n) {
    const char *end = memchr(rest->p, '\n', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *out = trim((Str){rest->p, n});
    rest->p += MIN(n + 1, rest->n), rest->n -= MIN(n + 1, rest->n);
    ++*line;
    if (out->n && out->p[0] != '#') return true;
  }
  return false;
}

static const char *cstr(Arena *a, Str s) { return arena_str(a, s).p; }

/* A number with a known unit, else NaN; an unknown unit after a number is text (a topology "2x2").
 */
static double value_num(Str v) {
  char buf[64];
  if (v.n == 0 || v.n >= sizeof buf) return NAN;
  memcpy(buf, v.p, v.n);
  buf[v.n] = 0;
  char *end;
  double x = strtod(buf, &end);
  if (end == buf || !isfinite(x)) return NAN;
  Str unit = trim(str_from(end));
  for (int i = 0; i < COUNT_OF(units); i++)
    if (str_is(unit, units[i].name)) return x * units[i].scale;
  return NAN;
}

const char *chip_how(const ChipFact *f) {
  static const char *const words[][2] = {/* the strongest doubt first */
                                         {"guess", "guess"},         {"fitted", "fitted"},
                                         {"(recalled)", "recalled"}, {"(derived)", "derived"},
                                         {"(oracle)", "oracle"},     {"(read)", "read"},
                                         {"measured on", "measured"}};
  if (!strncmp(f->key, "fit.", 4)) return "fitted";
  for (int i = 0; i < COUNT_OF(words); i++)
    if (strstr(f->source, words[i][0])) return words[i][1];
  return NULL;
}

typedef VEC(ChipFact) Facts;

/* One line: `key = value unit  # source`. */
static Err *read_fact(Arena *arena, Str l, int line, Facts *facts) {
  const char *eq = memchr(l.p, '=', l.n);
  const char *hash = NULL;
  for (size_t k = 0; k + 1 < l.n && !hash; k++)
    if (l.p[k] == '#' && k > 0 && isspace((unsigned char)l.p[k - 1])) hash = l.p + k;
  Str key = eq ? trim((Str){l.p, (size_t)(eq - l.p)}) : (Str){0};
  Str val = {0}, source = {0};
  if (eq && (!hash || hash > eq)) {
    const char *ve = hash ? hash : l.p + l.n;
    val = trim((Str){eq + 1, (size_t)(ve - eq - 1)});
    if (hash) source = trim((Str){hash + 1, (size_t)(l.p + l.n - hash - 1)});
  }
  if (!key.n || !val.n)
    return err_hint(
        err_new(ERR_INVALID, "expected `key = value unit  # source`, found '%.*s'", STR_ARG(l)),
        "a comment line starts with #");
  if (!source.n)
    return err_hint(err_new(ERR_INVALID, "'%.*s' has no source", STR_ARG(key)),
                    "say after # where the figure comes from, or that it is a guess");
  for (int k = 0; k < facts->n; k++)
    if (str_is(key, facts->v[k].key))
      return err_new(ERR_INVALID, "'%.*s' is given twice, first on line %d", STR_ARG(key),
                     facts->v[k].line);
  *vec_push(facts) =
      (ChipFact){cstr(arena, key), cstr(arena, val), cstr(arena, source), value_num(val), line};
  return NULL;
}

Err *facts_read(Arena *arena, const char *file, Str text, ChipFact **out, int *n, int *last) {
  Facts facts = {0};
  Err *err = NULL;
  for (Str l; !err && facts_line(&text, &l, last);) {
    err = read_fact(arena, l, *last, &facts);
    if (err) err_place(err, "%s:%d", file, *last);
  }
  *n = facts.n;
  *out = arena_dup(arena, facts.v, sizeof(ChipFact) * (size_t)facts.n);
  vec_free(&facts);
  return err;
}

const ChipFact *facts_find(const ChipFact *facts, int n, const char *key) {
  for (int i = 0; i < n; i++)
    if (!strcmp(facts[i].key, key)) return &facts[i];
  return NULL;
}

const char **facts_names(Arena *arena, const char *name, const char *aliases, int *n) {
  VEC(const char *) names = {0};
  *vec_push(&names) = name;
  for (const char *p = aliases; p && *p;) {
    const char *e = strchr(p, ',');
    Str s = trim((Str){p, e ? (size_t)(e - p) : strlen(p)});
    if (s.n) *vec_push(&names) = cstr(arena, s);
    p = e ? e + 1 : NULL;
  }
  *n = names.n;
  const char **out = arena_dup(arena, names.v, sizeof *names.v * (size_t)names.n);
  vec_free(&names);
  return out;
}

/* ---- of a chip ---- */

static int with_key(const void *key, const void *fact) {
  return strcmp(key, (*(const ChipFact *const *)fact)->key);
}

const ChipFact *chip_fact(const Chip *c, const char *key) {
  if (!c->by_key) return facts_find(c->facts, c->n_facts, key);
  const ChipFact **found = bsearch(key, c->by_key, (size_t)c->n_facts, sizeof *found, with_key);
  return found ? *found : NULL;
}
double chip_num(const Chip *c, const char *key, double dflt) {
  const ChipFact *f = chip_fact(c, key);
  return f && !isnan(f->num) ? f->num : dflt;
}
const char *chip_text(const Chip *c, const char *key) {
  const ChipFact *f = chip_fact(c, key);
  return f ? f->text : NULL;
}

/* Names are compared without case, '-', '_' and blanks. */
void chip_fold(const char *s, char *out, size_t n) {
  size_t k = 0;
  for (; *s && k + 1 < n; s++)
    if (*s != '-' && *s != '_' && *s != ' ') out[k++] = (char)tolower((unsigned char)*s);
  out[k] = 0;
}
bool same_name(const char *a, const char *b) {
  char x[96], y[96];
  chip_fold(a, x, sizeof x);
  chip_fold(b, y, sizeof y);
  return !strcmp(x, y);
}
