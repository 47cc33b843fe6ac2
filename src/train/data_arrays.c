/* Any arrays, one example in each row: those of an .npz by their names. */
#include "train/data_priv.h"
#include "train/train_priv.h"

#include <ctype.h>
#include <stdlib.h>

enum { NAME_BYTES = 32 };

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

Data *data_of_rows(const char *kind, const char *path) {
  Data *d = xcalloc(1, sizeof *d);
  *d = (Data){.get = get_row, .free = free_arrays, .impl = xcalloc(1, sizeof(Arrays))};
  d->name = xasprintf("%s:%s", kind, base_name(path));
  d->names = xcalloc(DATA_FIELDS, NAME_BYTES);
  for (int c = 0; c < DATA_CHANNELS; c++) d->std[c] = 1;
  return d;
}

Field *data_add_field(Data *d, Str name) {
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

void data_count_classes(Data *d) {
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

/* whole: examples without a part for testing are all for testing. */
static Err *make(Data *d, const Npz *z, bool whole) {
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
    Field *f = data_add_field(d, name);
    f->rank = y->rank - 1;
    if (f->rank) memcpy(f->dims, y->dims + 1, sizeof(int64_t) * (size_t)f->rank);
    bool column = f->rank == 1 && f->dims[0] == 1 && dtype_is_int(y->dtype);
    if (column && d->n_fields > 1) f->rank = 0; /* labels as CIFAR's are: (n, 1) */
    f->type = narrow(y->dtype, is_labels(d));
    if (d->n_fields == 1 && f->type == DT_U8 && f->rank == 2)
      f->dims[f->rank++] = 1; /* pictures of one channel, as Keras' have them */
    Part *p = a->part[d->n_fields - 1];
    if (d->n_train && d->n_train != y->dims[0])
      return err_hint(err_new(ERR_INVALID, "array '%s' has %lld examples, '%s' %lld", y->name,
                              (long long)y->dims[0], d->fields[0].name, (long long)d->n_train),
                      "the first dimension of all arrays counts the examples");
    d->n_train = y->dims[0];
    TRY(take_rows(y, f->type, &p[whole && !split]));
    if (split) TRY(add_test(d, z, y, name, f->type, &p[1]));
  }
  if (!d->n_fields) return err_new(ERR_INVALID, "it holds no array");
  if (whole && !split) d->n_test = d->n_train, d->n_train = 0;
  for (int f = 0; f < d->n_fields; f++)
    if (a->part[f][1].n != d->n_test)
      return err_new(ERR_INVALID, "test examples of '%s': %lld, not %lld", d->fields[f].name,
                     (long long)a->part[f][1].n, (long long)d->n_test);
  data_count_classes(d);
  const Field *x = &d->fields[0];
  if (x->type == DT_U8 && x->rank == 3 && x->dims[2] <= 3)
    data_statistics(d, (uint8_t *)a->part[0][!d->n_train].rows,
                    MAX(d->n_train, a->part[0][!d->n_train].n) * x->dims[0] * x->dims[1],
                    x->dims[2]);
  return NULL;
}

Err *data_open_arrays(const Npz *z, const char *path, bool whole, Data **out) {
  Data *d = data_of_rows("npz", path);
  Err *e = make(d, z, whole);
  if (e) data_close(d);
  else *out = d;
  return e;
}
