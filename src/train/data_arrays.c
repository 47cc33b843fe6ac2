/* Any arrays, one example in each row: those of an .npz by their names, columns of a .csv. */
#include "train/data_priv.h"
#include "train/train_priv.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { NAME_BYTES = 32, HELD_OUT = 10 };

typedef struct Part { /* of one field: training or test rows */
  char *rows;
  int64_t n;
} Part;
typedef struct Arrays {
  Part part[DATA_FIELDS][2];
} Arrays;

static Err *get_row(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  const Arrays *a = d->impl;
  (void)rand;
  for (int f = 0; f < d->n_fields; f++) {
    size_t n = field_bytes(&d->fields[f]);
    memcpy(dst[f], a->part[f][test].rows + n * (size_t)index, n);
  }
  return NULL;
}

static void free_arrays(Data *d) {
  Arrays *a = d->impl;
  for (int f = 0; f < DATA_FIELDS; f++) free(a->part[f][0].rows), free(a->part[f][1].rows);
  free(a);
}

static Data *new_data(const char *kind, const char *path) {
  Data *d = xcalloc(1, sizeof *d);
  *d = (Data){.get = get_row, .free = free_arrays, .impl = xcalloc(1, sizeof(Arrays))};
  d->name = xasprintf("%s:%s", kind, base_name(path));
  d->names = xcalloc(DATA_FIELDS, NAME_BYTES);
  for (int c = 0; c < 3; c++) d->std[c] = 1;
  return d;
}

static Field *add_field(Data *d, Str name) {
  Field *f = &d->fields[d->n_fields];
  char *at = d->names + NAME_BYTES * d->n_fields++;
  memcpy(at, name.p, MIN(name.n, NAME_BYTES - 1));
  for (char *p = at; *p; p++) /* a word in a checkpoint's metadata */
    if (isspace((unsigned char)*p) || *p == ';') *p = '_';
  if (!*at) *at = '_';
  *f = (Field){.name = at};
  return f;
}

/* ---- npz --------------------------------------------------------------------------------------- */

/* What a loop wants: f64 becomes f32, whole numbers 32 bits. Bytes stay what they are, where they are no labels. */
static DType narrow(DType t, bool labels) {
  if (t == DT_F64) return DT_F32;
  return (t == DT_U8 || t == DT_I1) && !labels ? t : dtype_is_int(t) || t == DT_I1 ? DT_I32 : t;
}

static Err *take_rows(const Npy *y, DType t, Part *out) {
  out->n = y->dims[0];
  out->rows = xmalloc((size_t)(y->count * dtype_bytes(t)) + 1);
  if (t == y->dtype) {
    memcpy(out->rows, y->data, (size_t)(y->count * dtype_bytes(t)));
    return NULL;
  }
  for (int64_t i = 0; i < y->count; i++) {
    const char *from = (const char *)y->data + i * dtype_bytes(y->dtype);
    if (t == DT_F32) {
      elem_set_f64(t, out->rows + i * 4, elem_get_f64(y->dtype, from));
      continue;
    }
    int64_t v = elem_get_i64(y->dtype, from);
    if (v < INT32_MIN || v > INT32_MAX || (y->dtype == DT_U64 && v < 0))
      return err_new(ERR_INVALID, "array '%s' has a number of more than 32 bits: %.20g", y->name,
                     elem_get_f64(y->dtype, from));
    elem_set_i64(t, out->rows + i * 4, v);
  }
  return NULL;
}

static Err *check_rows(const Npy *y) {
  bool number = dtype_is_float(y->dtype) || dtype_is_int(y->dtype) || y->dtype == DT_I1;
  if (!number)
    return err_new(ERR_INVALID, "array '%s' is of %s: real and whole numbers can be taken", y->name,
                   dtype_name(y->dtype));
  if (!y->rank || y->rank > 6)
    return err_new(ERR_INVALID, "array '%s' has %d dimensions: (examples, ...), six at most",
                   y->name, y->rank);
  if (!y->dims[0]) return err_new(ERR_INVALID, "array '%s' holds no example", y->name);
  return y->count ? NULL : err_new(ERR_INVALID, "examples of array '%s' are empty", y->name);
}

/* "x_train" -> "x"; "x" of files without such names. */
static Str field_name(const char *name, bool split) {
  Str s = str_from(name);
  if (split) s.n -= strlen("_train");
  return s;
}

static Err *add_test(Data *d, const Npz *z, const Npy *train, Str name, DType type, Part *out) {
  static const char *const ends[] = {"test", "val"};
  for (int i = 0; i < 2; i++) {
    char *other = xasprintf("%.*s_%s", STR_ARG(name), ends[i]);
    const Npy *y = npz_find(z, other);
    free(other);
    if (!y) continue;
    bool same = y->rank == train->rank && y->dtype == train->dtype;
    for (int k = 1; k < y->rank && same; k++) same = y->dims[k] == train->dims[k];
    if (!same)
      return err_new(ERR_INVALID, "'%s' and '%s' are of different shapes", train->name, y->name);
    TRY(check_rows(y));
    d->n_test = y->dims[0];
    return take_rows(y, type, out);
  }
  return NULL;
}

/* The whole numbers of rank 0, or of rank 2 for each pixel, are classes. */
static void count_classes(Data *d) {
  Arrays *a = d->impl;
  for (int f = 0; f < d->n_fields; f++) {
    bool pixels = d->fields[f].rank == 2 && d->fields[0].rank == 3;
    if ((d->fields[f].rank && !pixels) || d->fields[f].type != DT_I32) continue;
    if (!d->labels_at) d->labels_at = f;
    int64_t each = (int64_t)field_bytes(&d->fields[f]) / 4;
    for (int t = 0; t < 2; t++)
      for (int64_t i = 0; i < a->part[f][t].n * each; i++)
        d->classes = MAX(d->classes, (int64_t)((int32_t *)(void *)a->part[f][t].rows)[i] + 1);
  }
}

/* Is the last field a number for each example, or for each pixel of the first? */
static bool is_labels(const Data *d) {
  const Field *f = &d->fields[d->n_fields - 1];
  return !f->rank || (f->rank == 2 && d->n_fields > 1 && d->fields[0].rank == 3);
}

static Err *make(Data *d, const Npz *z) {
  Arrays *a = d->impl;
  bool split = false;
  for (int i = 0; i < z->n; i++) split |= str_ends(str_from(z->arrays[i].name), "_train");
  for (int i = 0; i < z->n; i++) {
    const Npy *y = &z->arrays[i];
    if (split && !str_ends(str_from(y->name), "_train")) continue;
    TRY(check_rows(y));
    if (d->n_fields == DATA_FIELDS)
      return err_new(ERR_UNIMPLEMENTED, "more than %d arrays in an example", DATA_FIELDS);
    Str name = field_name(y->name, split);
    Field *f = add_field(d, name);
    f->rank = y->rank - 1;
    if (f->rank) memcpy(f->dims, y->dims + 1, sizeof(int64_t) * (size_t)f->rank);
    f->type = narrow(y->dtype, is_labels(d));
    if (d->n_fields == 1 && f->type == DT_U8 && f->rank == 2)
      f->dims[f->rank++] = 1; /* pictures of one channel, as Keras' have them */
    Part *p = a->part[d->n_fields - 1];
    if (d->n_train && d->n_train != y->dims[0])
      return err_hint(err_new(ERR_INVALID, "array '%s' has %lld examples, '%s' %lld", y->name,
                              (long long)y->dims[0], d->fields[0].name, (long long)d->n_train),
                      "the first dimension of all arrays counts the examples");
    d->n_train = y->dims[0];
    TRY(take_rows(y, f->type, &p[0]));
    if (split) TRY(add_test(d, z, y, name, f->type, &p[1]));
  }
  if (!d->n_fields) return err_new(ERR_INVALID, "it holds no array");
  for (int f = 0; f < d->n_fields; f++)
    if (a->part[f][1].n != d->n_test)
      return err_new(ERR_INVALID, "test examples of '%s': %lld, not %lld", d->fields[f].name,
                     (long long)a->part[f][1].n, (long long)d->n_test);
  count_classes(d);
  const Field *x = &d->fields[0];
  if (x->type == DT_U8 && x->rank == 3 && x->dims[2] <= 3)
    data_statistics(d, (uint8_t *)a->part[0][0].rows, d->n_train * x->dims[0] * x->dims[1],
                    x->dims[2]);
  return NULL;
}

Err *data_open_arrays(const Npz *z, const char *path, Data **out) {
  Data *d = new_data("npz", path);
  Err *e = make(d, z);
  if (e) data_close(d);
  else *out = d;
  return e;
}

/* ---- csv --------------------------------------------------------------------------------------- */

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

static Err *read_table(const char *path, Table *t) {
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
  if (t->columns < 2 || t->cells.n < 2 * t->columns)
    return err_new(ERR_INVALID, "it has no rows of two columns and more");
  return NULL;
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

static int label_column(const Table *t, bool names) {
  static const char *const words[] = {"label", "class", "target", "y"};
  for (int k = 0; names && k < COUNT_OF(words); k++)
    for (int i = 0; i < t->columns; i++)
      if (!strcasecmp(t->cells.v[i], words[k])) return i;
  return t->columns - 1;
}

typedef struct Labels {
  bool whole, named; /* whole numbers; names of classes */
  VEC(char *) names;
} Labels;

static int name_of_class(Labels *l, char *name) {
  for (int i = 0; i < l->names.n; i++)
    if (!strcmp(l->names.v[i], name)) return i;
  *vec_push(&l->names) = name;
  return l->names.n - 1;
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

/* Of the training rows: mean 0 and deviation 1. A column that never changes is left at 0. */
static void standardise(Data *d) {
  Arrays *a = d->impl;
  int64_t width = d->fields[0].dims[0], n = d->n_train;
  for (int64_t c = 0; c < width; c++) {
    double sum = 0, squares = 0;
    const float *x = (float *)(void *)a->part[0][0].rows + c;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i * width];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
      squares += ((double)x[i * width] - mean) * ((double)x[i * width] - mean);
    double deviation = sqrt(squares / (double)n);
    for (int k = 0; k < 2; k++)
      for (int64_t i = 0; i < a->part[0][k].n; i++) {
        float *v = (float *)(void *)a->part[0][k].rows + i * width + c;
        *v = deviation > 0 ? (float)(((double)*v - mean) / deviation) : 0;
      }
  }
}

static Err *fill(Data *d, const Table *t, int first, int column, Labels *l) {
  Arrays *a = d->impl;
  int rows = t->cells.n / t->columns;
  int64_t at[2] = {0};
  for (int i = first; i < rows; i++) {
    int test = (i - first) % HELD_OUT == HELD_OUT - 1;
    float *x = (float *)(void *)a->part[0][test].rows + at[test] * (t->columns - 1);
    char *y = a->part[1][test].rows + at[test]++ * 4;
    for (int c = 0; c < t->columns; c++) {
      char *cell = t->cells.v[i * t->columns + c];
      double v = 0;
      bool is_number = number(cell, &v);
      if (c == column) {
        if (l->named) elem_set_i64(DT_I32, y, name_of_class(l, cell));
        else elem_set_f64(d->fields[1].type, y, v);
      } else if (!is_number) {
        return wrong_cell(t, i, c, first, "finite number");
      } else {
        *x++ = (float)v;
      }
    }
  }
  return NULL;
}

static Err *make_table(Data *d, const Table *t) {
  Arrays *a = d->impl;
  int first = first_line_is_names(t), column = label_column(t, first);
  int rows = t->cells.n / t->columns - first;
  Labels l;
  TRY(look_at_labels(t, first, column, &l));
  Field *x = add_field(d, STR("features")), *y = add_field(d, STR("labels"));
  x->type = DT_F32, x->rank = 1, x->dims[0] = t->columns - 1;
  y->type = l.named || l.whole ? DT_I32 : DT_F32;
  d->n_test = rows / HELD_OUT, d->n_train = rows - d->n_test;
  for (int k = 0; k < 2; k++) {
    int64_t n = k ? d->n_test : d->n_train;
    a->part[0][k] = (Part){xmalloc(field_bytes(x) * (size_t)n + 1), n};
    a->part[1][k] = (Part){xmalloc(4 * (size_t)n + 1), n};
  }
  Err *e = fill(d, t, first, column, &l);
  if (!e) {
    standardise(d);
    count_classes(d);
    Buf names = {0};
    for (int i = 0; i < l.names.n; i++) buf_printf(&names, "%s%s", i ? "\n" : "", l.names.v[i]);
    d->labels = names.p;
  }
  vec_free(&l.names);
  return e;
}

Err *data_open_csv(const char *path, Data **out) {
  Table t = {0};
  Data *d = new_data("csv", path);
  Err *e = read_table(path, &t);
  if (!e) e = make_table(d, &t);
  vec_free(&t.cells);
  vec_free(&t.lines);
  buf_free(&t.text);
  if (e) data_close(d);
  else *out = d;
  return err_wrap(e, "'%s'", path);
}
