/* Which column of a table is which number of a network: by name where both have names, else by place. */
#include <ctype.h>
#include <stdlib.h>

#include "train/data_priv.h"

static Str trimmed(Str s) {
  while (s.n && isspace((unsigned char)*s.p)) s.p++, s.n--;
  while (s.n && isspace((unsigned char)s.p[s.n - 1])) s.n--;
  return s;
}

static bool same_name(Str a, const char *b) {
  Str c = trimmed(str_from(b));
  return a.n == c.n && !strncasecmp(a.p, c.p, a.n);
}

static int named(const char *const *names, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (same_name(str_from(name), names[i])) return i;
  return -1;
}

static int usual_label(const char *const *names, int n) {
  static const char *const words[] = {"label", "class", "target", "y"};
  for (int k = 0; names && k < COUNT_OF(words); k++)
    if (named(names, n, words[k]) >= 0) return named(names, n, words[k]);
  return n - 1;
}

/* All but the label, in order. */
static void by_place(Columns *c, int n) {
  for (int i = 0; i < n; i++)
    if (i != c->label) c->from[c->n++] = i;
}

static Err *missing(const char *const *names, int n, Str name, const char *what) {
  Buf has = {0};
  for (int i = 0; i < n; i++) buf_printf(&has, "%s%.40s", i ? ", " : "", names[i]);
  Err *e = err_new(ERR_INVALID, "the training rows have a %s '%.*s', this has %.300s", what,
                   (int)MIN(name.n, 40), name.p, has.p);
  buf_free(&has);
  return err_hint(e, "name it so; without a line of names, columns count in the order that they "
                     "had in training");
}

/* Each of the names that `like` learnt from, wherever it stands; the last one is the label's. */
static Err *by_name(const char *const *names, int n, const Data *like, bool labelled, Columns *c) {
  bool *used = xcalloc((size_t)n + 1, 1);
  Err *e = NULL;
  const char *p = like->column_names;
  for (int64_t k = 0, width = like->fields[0].dims[0]; k <= width && !e; k++) {
    Str name = {p, strcspn(p, "\n")};
    int at = 0;
    while (at < n && (used[at] || !same_name(name, names[at]))) at++;
    if (at < n) used[at] = true;
    if (k < width && at < n) c->from[c->n++] = at;
    else if (k < width) e = missing(names, n, name, "column");
    else if (at < n) c->label = at;
    else if (labelled) e = missing(names, n, name, "label");
    p += name.n + (p[name.n] == '\n');
  }
  free(used);
  return e;
}

Err *columns_find(const char *const *names, int n, const Data *like, bool labelled, Columns *out) {
  int64_t width = like ? like->fields[0].dims[0] : n - 1;
  *out = (Columns){.label = -1, .from = xcalloc((size_t)MAX(n, (int)width) + 1, sizeof(int))};
  if (names && like && like->column_names) return by_name(names, n, like, labelled, out);
  int64_t extra = n - width;
  if (extra != 1 && (labelled || extra != 0))
    return labelled ? err_new(ERR_INVALID, "it has %d columns, the training rows have %lld", n,
                              (long long)width + 1)
                    : err_new(ERR_INVALID,
                              "it has %d columns, the network takes %lld numbers (and may be given "
                              "a column of labels)",
                              n, (long long)width);
  if (extra) out->label = usual_label(names, n);
  by_place(out, n);
  return NULL;
}

char *columns_names(const char *const *names, const Columns *c) {
  Buf b = {0};
  for (int i = 0; i <= c->n; i++) {
    Str name = trimmed(str_from(names[i < c->n ? c->from[i] : c->label]));
    if (i) buf_byte(&b, '\n');
    for (size_t k = 0; k < name.n; k++) buf_byte(&b, name.p[k] == '\n' ? ' ' : name.p[k]);
  }
  char *text = xstrdup(b.p ? b.p : "");
  buf_free(&b);
  return text;
}

void columns_free(Columns *c) { free(c->from); }
