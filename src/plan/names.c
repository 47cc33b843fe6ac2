/* Models by name, by family and size, or by shape. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "plan/plan_priv.h"

typedef struct Named {
  const char *name;
  PlanModel shape;
} Named;
static const Named named[] = {
#define NAME(text, ...) {text, {__VA_ARGS__}},
#include "plan/models.def"
#undef NAME
};

/* Case, '-', '_' and blanks do not matter. */
static bool same(const char *a, const char *b) {
  for (;; a++, b++) {
    while (*a == '-' || *a == '_' || *a == ' ') a++;
    while (*b == '-' || *b == '_' || *b == ' ') b++;
    if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
    if (!*a) return true;
  }
}

static void take(const char *name, const PlanModel *shape, PlanModel *out) {
  *out = *shape;
  snprintf(out->name, sizeof out->name, "%s", name);
}

/* "70b", "1.5b", "350m" as a number of parameters; 0: it is none. */
static double size_of(const char *s) {
  char *end;
  double v = strtod(s, &end);
  if (end == s || v <= 0 || !*end || end[1]) return 0;
  switch (tolower((unsigned char)*end)) {
  case 't': return v * 1e12;
  case 'b': return v * 1e9;
  case 'm': return v * 1e6;
  default: return 0;
  }
}

static Err *unknown(const char *text) {
  Nearest near = {.want = str_from(text)};
  for (int i = 0; i < COUNT_OF(named); i++) nearest_see(&near, named[i].name);
  Err *e = err_new(ERR_NOT_FOUND, "no model is called '%s'", text);
  if (near.best) return err_hint(e, "did you mean %s?", near.best);
  if (size_of(text) > 0) return err_hint(e, "of a family: llama:%s, gpt:%s", text, text);
  return err_hint(
      e, "a name (llama3-8b, mixtral-8x7b, deepseek-v3 ...), a family and size (llama:70b), "
         "or a shape (gpt:layers=96,hidden=12288,heads=96)");
}

/* A dense model of a family's habits of that depth and width. */
static PlanModel habits(bool gpt, double parameters, int layers, double hidden) {
  int heads = (int)(hidden / 128);
  return (PlanModel){.vocab = gpt ? 50304 : 128256,
                     .gated = !gpt,
                     .learned = gpt,
                     .head_dim = 128,
                     .tied = gpt || parameters < 4e9,
                     .layers = layers,
                     .hidden = hidden,
                     .heads = heads,
                     .kv_heads = gpt || heads % 8 ? heads : 8,
                     .ffn = gpt ? 4 * hidden : ceil(hidden * 3.5 / 256) * 256};
}

/* With about so many parameters: heads of 128, and about 128 hidden numbers for each layer, as published models of
 * 1 to 200 billion have. */
static void sized(const char *family, double parameters, PlanModel *m) {
  double best = INFINITY;
  for (int layers = 4; layers <= 200; layers += 2)
    for (double hidden = 128; hidden <= 160.0 * layers; hidden += 128) {
      if (hidden < 96.0 * layers) continue;
      PlanModel t = habits(same(family, "gpt"), parameters, layers, hidden);
      double off =
          fabs(log(plan_parameters(&t) / parameters)) + 0.1 * fabs(log(hidden / (128.0 * layers)));
      if (off < best) best = off, *m = t;
    }
}

#define SIZE_OFF 0.25 /* that a shape may be beside the size that was asked for */

static Err *by_size(const char *family, const char *text, double parameters, PlanModel *out) {
  int found = -1;
  size_t n = strlen(family);
  for (int i = 0; i < COUNT_OF(named); i++) {
    double p = plan_parameters(&named[i].shape);
    const char *size = strrchr(named[i].name, '-');
    bool told = size && size_of(size + 1) == parameters;
    if (!strncasecmp(named[i].name, family, n) && (told || fabs(p / parameters - 1) < 0.01))
      found = i;
  }
  if (found >= 0) return take(named[found].name, &named[found].shape, out), NULL;
  if (!same(family, "gpt") && !same(family, "llama")) return unknown(text);
  sized(family, parameters, out);
  if (fabs(plan_parameters(out) / parameters - 1) > SIZE_OFF)
    return err_hint(err_new(ERR_INVALID,
                            "no usual shape has so many parameters: the nearest has %.3g",
                            plan_parameters(out)),
                    "a shape of your own: %s:layers=32,hidden=4096,heads=32", family);
  snprintf(out->name, sizeof out->name, "%s", text);
  return NULL;
}

/* ---- a shape ------------------------------------------------------------------------------------ */

typedef enum FieldKind { FIELD_INT, FIELD_REAL, FIELD_BOOL } FieldKind;
static const struct {
  const char *key;
  size_t at;
  FieldKind kind;
} fields[] = {
#define F(key, kind) \
  { #key, offsetof(PlanModel, key), kind }
    F(layers, FIELD_INT),         F(hidden, FIELD_REAL),     F(vocab, FIELD_REAL),
    F(ffn, FIELD_REAL),           F(gated, FIELD_BOOL),      F(heads, FIELD_INT),
    F(kv_heads, FIELD_INT),       F(head_dim, FIELD_REAL),   F(value_dim, FIELD_REAL),
    F(window, FIELD_REAL),        F(period, FIELD_INT),      F(q_rank, FIELD_REAL),
    F(kv_rank, FIELD_REAL),       F(rope_dim, FIELD_REAL),   F(experts, FIELD_INT),
    F(active, FIELD_INT),         F(expert_ffn, FIELD_REAL), F(shared_ffn, FIELD_REAL),
    F(dense_layers, FIELD_INT),   F(mtp_layers, FIELD_INT),  F(tied, FIELD_BOOL),
    F(bidirectional, FIELD_BOOL),
#undef F
};

static Err *set(PlanModel *m, Str key, const char *value) {
  char *end, name[32];
  double v = strtod(value, &end);
  snprintf(name, sizeof name, "%.*s", STR_ARG(key));
  Nearest near = {.want = key};
  for (int i = 0; i < COUNT_OF(fields); i++) {
    nearest_see(&near, fields[i].key);
    if (strcmp(fields[i].key, name)) continue;
    if (end == value || (*end && *end != ',') || !(v >= 0 && v <= 1e9) || v != floor(v))
      return err_new(ERR_INVALID, "%s wants a whole number, not '%.*s'", name,
                     (int)strcspn(value, ","), value);
    char *to = (char *)m + fields[i].at;
    if (fields[i].kind == FIELD_INT) *(int *)to = (int)v;
    else if (fields[i].kind == FIELD_BOOL) *(bool *)to = v > 0;
    else *(double *)to = v;
    return NULL;
  }
  Buf all = {0};
  for (int i = 0; i < COUNT_OF(fields); i++) buf_printf(&all, "%s%s", i ? ", " : "", fields[i].key);
  Err *e = err_new(ERR_INVALID, "a model's shape has no '%s'", name);
  e = near.best ? err_hint(e, "did you mean %s?", near.best) : err_hint(e, "there are %s", all.p);
  buf_free(&all);
  return e;
}

/* What was not said follows the family's habits. */
static Err *complete(const char *family, PlanModel *m) {
  bool gpt = same(family, "gpt");
  if (m->layers < 1 || m->hidden < 1)
    return err_hint(err_new(ERR_INVALID, "a shape needs %s",
                            m->hidden >= 1   ? "layers"
                            : m->layers >= 1 ? "hidden"
                                             : "layers and hidden"),
                    "%s:layers=32,hidden=4096,heads=32", family);
  if (m->head_dim == 0 && m->heads > 0 && fmod(m->hidden, m->heads) != 0)
    return err_hint(
        err_new(ERR_INVALID, "%d heads do not divide a width of %g", m->heads, m->hidden),
        "heads that do, or head_dim=N where they have a width of their own");
  if (m->head_dim == 0) m->head_dim = m->heads > 0 ? m->hidden / m->heads : MIN(128, m->hidden);
  if (m->heads == 0) m->heads = (int)MAX(1, m->hidden / m->head_dim);
  if (m->kv_heads == 0) m->kv_heads = m->heads;
  if (m->vocab == 0) m->vocab = gpt ? 50304 : 128256;
  if (m->kv_rank > 0) m->latent = true;
  if (m->experts > 0 && m->active == 0) m->active = MIN(2, m->experts);
  double usual = gpt ? 4 * m->hidden : ceil(m->hidden * 8 / 3 / 256) * 256;
  if (m->ffn == 0) m->ffn = usual;
  if (m->experts > 0 && m->expert_ffn == 0) m->expert_ffn = m->ffn;
  if (m->heads % m->kv_heads)
    return err_new(ERR_INVALID, "%d heads do not share %d heads of keys evenly", m->heads,
                   m->kv_heads);
  if (m->active > m->experts)
    return err_new(ERR_INVALID, "%d active of %d experts", m->active, m->experts);
  if (m->dense_layers > m->layers)
    return err_new(ERR_INVALID, "%d dense layers of %d", m->dense_layers, m->layers);
  if (m->latent && m->rope_dim >= m->head_dim)
    return err_new(ERR_INVALID, "rope_dim %g must be less than head_dim %g", m->rope_dim,
                   m->head_dim);
  return NULL;
}

static Err *by_shape(const char *family, const char *text, PlanModel *out) {
  PlanModel m = {
      .gated = !same(family, "gpt"), .learned = same(family, "gpt"), .tied = same(family, "gpt")};
  snprintf(m.name, sizeof m.name, "%s:%s", family, text);
  for (const char *p = text; *p;) {
    const char *eq = strchr(p, '='), *end = strchr(p, ',');
    if (!eq || (end && end < eq))
      return err_hint(err_new(ERR_INVALID, "'%s' is no KEY=NUMBER", p), "layers=32,hidden=4096");
    TRY(set(&m, (Str){p, (size_t)(eq - p)}, eq + 1));
    p = end ? end + 1 : p + strlen(p);
  }
  TRY(complete(family, &m));
  *out = m;
  return NULL;
}

Err *plan_model(const char *text, PlanModel *out) {
  for (int i = 0; i < COUNT_OF(named); i++)
    if (same(named[i].name, text)) return take(named[i].name, &named[i].shape, out), NULL;
  const char *colon = strchr(text, ':');
  if (!colon || colon == text) return unknown(text);
  char *family = xstrndup(text, (size_t)(colon - text));
  double parameters = size_of(colon + 1);
  Err *e = parameters > 0           ? by_size(family, text, parameters, out)
           : strchr(colon + 1, '=') ? by_shape(family, colon + 1, out)
                                    : unknown(text);
  free(family);
  return err_wrap(e, "model '%s'", text);
}
