/* A table in a .csv: numbers, and a class or a number to learn in one column. */
#include "train/data_priv.h"
#include "train/train_priv.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Table { /* of text cells, which lie in `text` */
  Buf text;
  VEC(char *) cells;
  VEC(int) lines; /* of each row: where it begins in the file */
  int columns;
} Table;

/* One row into cells, in place; quotes may hold commas and ends of lines, which *line counts. Returns what follows. */
static char *take_row(char *p, char separator, Table *t, int *n, int *line) {
  *n = 0;
  for (;;) {
    char *to = p;
    bool quoted = *p == '"';
    *vec_push(&t->cells) = p;
    ++*n;
    if (quoted) p++;
    while (*p && (quoted || (*p != separator && *p != '\n' && *p != '\r'))) {
      if (quoted && *p == '"') {
        p++;
        if (*p != '"') {
          quoted = false;
          continue;
        }
      }
      *line += *p == '\n';
      *to++ = *p++;
    }
    char end = *p;
    if (end == '\r' && p[1] == '\n') p++, end = '\n';
    if (*p) p++;
    *to = 0;
    if (end == separator) continue;
    ++*line;
    return p;
  }
}

static Err *read_table(const char *path, int columns, int rows, Table *t) {
  TRY(file_read(path, &t->text));
  char *p = t->text.p ? t->text.p : (char *)"";
  if (!strncmp(p, "\xef\xbb\xbf", 3)) p += 3; /* UTF-8's mark */
  size_t first = strcspn(p, "\n");
  char separator = memchr(p, ',', first)    ? ','
                   : memchr(p, '\t', first) ? '\t'
                   : memchr(p, ';', first)  ? ';'
                                            : ',';
  for (int line = 1; *p;) {
    int n, at = line;
    p = take_row(p, separator, t, &n, &line);
    if (n == 1 && !*t->cells.v[t->cells.n - 1]) { /* an empty line */
      t->cells.n--;
      continue;
    }
    if (!t->columns) t->columns = n;
    if (n != t->columns)
      return err_new(ERR_INVALID, "line %d has %d columns, the first has %d", at, n, t->columns);
    *vec_push(&t->lines) = at;
  }
  if (t->columns >= columns && t->cells.n >= rows * t->columns) return NULL;
  return err_new(ERR_INVALID,
                 columns > 1 ? "it has no rows of two columns and more" : "it is empty");
}

/* One that f32 holds: not nan, inf or 1e999. */
static bool number(const char *s, double *out) {
  char *end;
  *out = strtod(s, &end);
  while (isspace((unsigned char)*end)) end++;
  return end != s && !*end && fabs(*out) <= (double)FLT_MAX;
}

static Err *wrong_cell(const Table *t, int row, int column, bool names, const char *why) {
  const char *cell = t->cells.v[row * t->columns + column];
  return err_new(ERR_INVALID, "line %d, column %d%s%.40s%s: '%.40s' is no %s", t->lines.v[row],
                 column + 1, names ? " (" : "", names ? t->cells.v[column] : "", names ? ")" : "",
                 cell, why);
}

static bool first_line_is_names(const Table *t) {
  double v;
  for (int i = 0; i < t->columns; i++)
    if (number(t->cells.v[i], &v)) return false;
  return true;
}

static const char *const *names_of(const Table *t) {
  return first_line_is_names(t) ? (const char *const *)t->cells.v : NULL;
}

typedef struct Labels {
  bool whole, named; /* whole numbers; names of classes */
  Buf names;         /* a line each */
} Labels;

/* Which rows are for testing. */
typedef enum Held { HELD_TENTH, HELD_ALL, HELD_NONE } Held;
static bool is_held(Held h, int row) {
  return h == HELD_TENTH ? data_held_out(row) : h == HELD_ALL;
}

/* "", "nan": no class and no number to learn. */
static bool no_label(const char *cell) {
  char *end;
  while (isspace((unsigned char)*cell)) cell++;
  double v = strtod(cell, &end);
  return !*cell || (end != cell && !*end && !isfinite(v));
}

static Err *look_at_labels(const Table *t, int first, int column, Labels *l) {
  *l = (Labels){.whole = true};
  for (int i = first; i < t->cells.n / t->columns; i++) {
    const char *cell = t->cells.v[i * t->columns + column];
    double v;
    if (no_label(cell)) return wrong_cell(t, i, column, first, "label");
    if (!number(cell, &v)) l->named = true;
    else if (v != floor(v) || v < 0 || v > 1e6) l->whole = false;
  }
  return NULL;
}

/* A column that never changes is left at 0. */
static float standard(const Data *d, int64_t column, double v) {
  double mean = (double)d->column_mean[column], deviation = (double)d->column_std[column];
  return deviation > 0 ? (float)((v - mean) / deviation) : 0;
}

/* Of the training rows: mean 0 and deviation 1; or as `like` has them. */
static void standardise(Data *d, const Data *like) {
  Arrays *a = d->impl;
  int64_t width = d->fields[0].dims[0], n = d->n_train;
  d->column_mean = xcalloc((size_t)width + 1, sizeof *d->column_mean);
  d->column_std = xcalloc((size_t)width + 1, sizeof *d->column_std);
  if (like) {
    memcpy(d->column_mean, like->column_mean, sizeof(float) * (size_t)width);
    memcpy(d->column_std, like->column_std, sizeof(float) * (size_t)width);
  }
  for (int64_t c = 0; c < width; c++) {
    double sum = 0, squares = 0;
    const float *x = (float *)(void *)a->part[0][0].rows + c;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i * width];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
      squares += ((double)x[i * width] - mean) * ((double)x[i * width] - mean);
    if (!like) {
      d->column_mean[c] = (float)mean;
      d->column_std[c] = (float)sqrt(squares / (double)n);
    }
    for (int k = 0; k < 2; k++)
      for (int64_t i = 0; i < a->part[0][k].n; i++) {
        float *v = (float *)(void *)a->part[0][k].rows + i * width + c;
        *v = standard(d, c, (double)*v);
      }
  }
}

/* The label of a row as a field has it. `like`: what was learnt from, whose classes are all there are. */
static Err *take_label(const Table *t, int row, int column, Labels *l, const Data *like, DType type,
                       char *to) {
  const char *cell = t->cells.v[row * t->columns + column];
  double v = 0;
  if (l->named) v = data_class_of(&l->names, cell, !like);
  else if (!number(cell, &v)) v = -1;
  bool known = !like || type != DT_I32 || (v >= 0 && v < (double)like->classes && v == floor(v));
  if (!known)
    return err_new(ERR_INVALID, "line %d: class '%.40s' is none of the training rows",
                   t->lines.v[row], cell);
  elem_set_f64(type, to, v);
  return NULL;
}

/* The numbers of a row, as its columns have them. */
static Err *take_numbers(const Table *t, int row, const Columns *c, bool names, float *to) {
  for (int i = 0; i < c->n; i++) {
    double v;
    if (!number(t->cells.v[row * t->columns + c->from[i]], &v))
      return wrong_cell(t, row, c->from[i], names, "finite number");
    to[i] = (float)v;
  }
  return NULL;
}

static Err *fill(Data *d, const Table *t, int first, const Columns *c, Labels *l, Held held,
                 const Data *like) {
  Arrays *a = d->impl;
  int rows = t->cells.n / t->columns;
  int64_t at[2] = {0};
  for (int i = first; i < rows; i++) {
    int test = is_held(held, i - first);
    float *x = (float *)(void *)a->part[0][test].rows + at[test] * c->n;
    char *y = a->part[1][test].rows + at[test]++ * 4;
    TRY(take_numbers(t, i, c, first, x));
    TRY(take_label(t, i, c->label, l, like, d->fields[1].type, y));
  }
  return NULL;
}

static Err *make_rows(Data *d, const Table *t, const Columns *c, Held held, const Data *like) {
  Arrays *a = d->impl;
  int first = first_line_is_names(t), rows = t->cells.n / t->columns - first;
  Labels l;
  TRY(look_at_labels(t, first, c->label, &l));
  if (like) {
    l.named = like->labels;
    if (like->labels) buf_cstr(&l.names, like->labels);
  }
  Field *x = data_add_field(d, STR("features")), *y = data_add_field(d, STR("labels"));
  x->type = DT_F32, x->rank = 1, x->dims[0] = c->n;
  y->type = like ? like->fields[1].type : l.named || l.whole ? DT_I32 : DT_F32;
  for (int i = 0; i < rows; i++) d->n_test += is_held(held, i);
  d->n_train = rows - d->n_test;
  for (int k = 0; k < 2; k++) {
    int64_t n = k ? d->n_test : d->n_train;
    a->part[0][k] = (Part){xmalloc(field_bytes(x) * (size_t)n + 1), n};
    a->part[1][k] = (Part){xmalloc(4 * (size_t)n + 1), n};
  }
  Err *e = fill(d, t, first, c, &l, held, like);
  if (!e) {
    standardise(d, like);
    data_count_classes(d);
    if (like) d->classes = like->classes;
    if (l.names.n) d->labels = xstrdup(l.names.p);
    if (like && like->column_names) d->column_names = xstrdup(like->column_names);
    else if (first) d->column_names = columns_names(names_of(t), c);
  }
  buf_free(&l.names);
  return e;
}

static Err *make_table(Data *d, const Table *t, Held held, const Data *like) {
  Columns c;
  Err *e = columns_find(names_of(t), t->columns, like, true, &c);
  if (!e) e = make_rows(d, t, &c, held, like);
  columns_free(&c);
  return e;
}

static Err *open_table(const char *path, Held held, const Data *like, Data **out) {
  Table t = {0};
  Data *d = data_of_rows("csv", path);
  Err *e = read_table(path, 2, 2, &t);
  if (!e) e = make_table(d, &t, held, like);
  vec_free(&t.cells);
  vec_free(&t.lines);
  buf_free(&t.text);
  if (e) data_close(d);
  else *out = d;
  return err_wrap(e, "'%s'", path);
}

Err *data_open_csv(const char *path, const DataOpts *o, Data **out) {
  const Data *like = o->like && o->like->column_mean ? o->like : NULL;
  const char *comma = access(path, F_OK) ? strchr(path, ',') : NULL;
  if (!comma) return open_table(path, o->whole ? HELD_ALL : HELD_TENTH, like, out);
  char *train = xstrndup(path, (size_t)(comma - path));
  Data *d = NULL, *test = NULL;
  Err *e = open_table(train, HELD_NONE, like, &d);
  if (!e) e = open_table(comma + 1, HELD_ALL, like ? like : d, &test);
  free(train);
  if (e) {
    if (d) data_close(d);
    return e;
  }
  Arrays *a = d->impl, *b = test->impl;
  for (int f = 0; f < d->n_fields; f++) {
    free(a->part[f][1].rows);
    a->part[f][1] = b->part[f][1];
    b->part[f][1] = (Part){0};
  }
  d->n_test = test->n_test;
  data_close(test);
  *out = d;
  return NULL;
}

/* ---- rows for a network that learnt from such a table ------------------------------------------ */

static Err *rows_like(const Table *t, const Data *like, int64_t *n, float **out) {
  int first = first_line_is_names(t), rows = t->cells.n / t->columns - first;
  Columns c;
  Err *e = columns_find(names_of(t), t->columns, like, false, &c);
  float *x = *out = xmalloc(sizeof *x * (size_t)(rows * c.n) + 1);
  for (int i = first; i < rows + first && !e; i++, x += c.n) {
    e = take_numbers(t, i, &c, first, x);
    for (int k = 0; k < c.n && like->column_mean; k++) x[k] = standard(like, k, (double)x[k]);
  }
  columns_free(&c);
  *n = rows;
  return e || rows ? e : err_new(ERR_INVALID, "it has no rows");
}

Err *data_csv_rows(const char *path, const Data *like, int64_t *n, float **out) {
  Table t = {0};
  *out = NULL;
  Err *e = read_table(path, 1, 1, &t);
  if (!e) e = rows_like(&t, like, n, out);
  vec_free(&t.cells);
  vec_free(&t.lines);
  buf_free(&t.text);
  if (e) free(*out), *out = NULL;
  return err_wrap(e, "'%s'", path);
}
