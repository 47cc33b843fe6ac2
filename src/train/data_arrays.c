/* Any arrays, one example in each row: those of an .npz by their names, columns of a .csv. */
#include "train/data_priv.h"
#include "train/train_priv.h"

#include <ctype.h>
#include <errno.h>
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
  const char *base = strrchr(path, '/');
  *d = (Data){.get = get_row, .free = free_arrays, .impl = xcalloc(1, sizeof(Arrays))};
  d->name = xasprintf("%s:%s", kind, base ? base + 1 : path);
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

/* What a loop wants: f64 becomes f32, 64-bit whole numbers 32-bit ones. */
static DType narrow(DType t) {
  return t == DT_F64 ? DT_F32 : t == DT_I64 || t == DT_U64 || t == DT_U32 ? DT_I32 : t;
}

static Err *take_rows(const Npy *y, Part *out) {
  DType t = narrow(y->dtype);
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
    if (v < INT32_MIN || v > INT32_MAX)
      return err_new(ERR_INVALID, "array '%s' has a number of more than 32 bits: %lld", y->name,
                     (long long)v);
    elem_set_i64(t, out->rows + i * 4, v);
  }
  return NULL;
}

static Err *check_rows(const Npy *y) {
  bool number = dtype_is_float(y->dtype) || dtype_is_int(y->dtype) || y->dtype == DT_I1;
  if (!y->rank || !y->count || y->rank > 6 || !number)
    return err_new(ERR_INVALID, "array '%s' is not numbers of shape (examples, ...)", y->name);
  return NULL;
}

/* "x_train" -> "x"; "x" of files without such names. */
static Str field_name(const char *name, bool split) {
  Str s = str_from(name);
  if (split) s.n -= strlen("_train");
  return s;
}

static Err *add_test(Data *d, const Npz *z, const Npy *train, Str name, Part *out) {
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
    return take_rows(y, out);
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
        d->classes = MAX(d->classes, ((int32_t *)(void *)a->part[f][t].rows)[i] + 1);
  }
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
    f->type = narrow(y->dtype), f->rank = y->rank - 1;
    if (f->rank) memcpy(f->dims, y->dims + 1, sizeof(int64_t) * (size_t)f->rank);
    Part *p = a->part[d->n_fields - 1];
    if (d->n_train && d->n_train != y->dims[0])
      return err_hint(err_new(ERR_INVALID, "array '%s' has %lld examples, '%s' %lld", y->name,
                              (long long)y->dims[0], d->fields[0].name, (long long)d->n_train),
                      "the first dimension of all arrays counts the examples");
    d->n_train = y->dims[0];
    TRY(take_rows(y, &p[0]));
    if (split) TRY(add_test(d, z, y, name, &p[1]));
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
  int columns;
} Table;

/* One line into cells, in place; quotes may hold commas. Returns what follows. */
static char *take_line(char *p, char separator, Table *t, int *n) {
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
      *to++ = *p++;
    }
    char end = *p;
    if (end == '\r' && p[1] == '\n') p++, end = '\n';
    if (*p) p++;
    *to = 0;
    if (end != separator) return p;
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
  for (int line = 1; *p; line++) {
    int n;
    p = take_line(p, separator, t, &n);
    if (n == 1 && !*t->cells.v[t->cells.n - 1]) { /* an empty line */
      t->cells.n--;
      continue;
    }
    if (!t->columns) t->columns = n;
    if (n != t->columns)
      return err_new(ERR_INVALID, "line %d has %d columns, the first has %d", line, n, t->columns);
  }
  if (t->columns < 2 || t->cells.n < 2 * t->columns)
    return err_new(ERR_INVALID, "it has no rows of two columns and more");
  return NULL;
}

static bool number(const char *s, double *out) {
  char *end;
  *out = strtod(s, &end);
  while (isspace((unsigned char)*end)) end++;
  return end != s && !*end;
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

static Labels look_at_labels(const Table *t, int first, int column) {
  Labels l = {.whole = true};
  for (int i = first; i < t->cells.n / t->columns; i++) {
    double v;
    if (!number(t->cells.v[i * t->columns + column], &v)) l.named = true;
    else if (v != floor(v) || v < 0 || v > 1e6) l.whole = false;
  }
  return l;
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
        return err_new(ERR_INVALID, "row %d, column %d: '%.40s' is no number", i + 1, c + 1, cell);
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
  Labels l = look_at_labels(t, first, column);
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
  buf_free(&t.text);
  if (e) data_close(d);
  else *out = d;
  return err_wrap(e, "'%s'", path);
}
