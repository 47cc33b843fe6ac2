/* Examples from files: pictures, arrays of them, arrays of numbers, rows of a csv. */
#include "infer/infer_priv.h"

#include "base/npy.h"

#include <stdlib.h>

static Err *want_images(const Infer *i) {
  const Field *f = infer_field(i);
  if (f->rank == 3 && f->type == DT_U8) return NULL;
  return err_new(ERR_INVALID, "model '%s' was trained on %s, not on pictures", i->info.model,
                 f->name);
}

static void fit(const Infer *i, const Picture *im, uint8_t *out) {
  const int64_t *d = infer_field(i)->dims;
  picture_fit(im, d[0], d[1], d[2], out);
}

Err *infer_image(const Infer *i, const void *bytes, size_t n, uint8_t *out) {
  TRY(want_images(i));
  Picture im;
  TRY(picture_decode(bytes, n, &im));
  fit(i, &im, out);
  picture_free(&im);
  return NULL;
}

/* (H, W), (H, W, C), (n, H, W) or (n, H, W, C): the last only where C is 1 or 3. */
static Err *array_shape(const Npy *a, int64_t *n, Picture *one) {
  bool colour = a->rank >= 3 && (a->dims[a->rank - 1] == 1 || a->dims[a->rank - 1] == 3);
  int r = a->rank - colour; /* without channels */
  if (a->dtype != DT_U8 || r < 2 || r > 3)
    return err_hint(err_new(ERR_INVALID, "an array of %s with %d dimensions is no picture",
                            dtype_name(a->dtype), a->rank),
                    "bytes 0 ... 255 of shape (H, W), (H, W, C) or (n, H, W, C), as they were "
                    "trained with");
  *n = r == 3 ? a->dims[0] : 1;
  *one = (Picture){.height = a->dims[r - 2],
                   .width = a->dims[r - 1],
                   .channels = colour ? a->dims[a->rank - 1] : 1};
  if (!a->count) return err_new(ERR_INVALID, "an empty array has no picture");
  return NULL;
}

static Err *fit_array(const Infer *i, const Npy *a, int64_t *n, void **out) {
  Picture one;
  TRY(array_shape(a, n, &one));
  size_t each = infer_input_bytes(i);
  uint8_t *to = *out = xmalloc(each * (size_t)*n + 1);
  for (int64_t k = 0; k < *n; k++) {
    one.pixels = (uint8_t *)a->data + k * one.height * one.width * one.channels;
    fit(i, &one, to + (size_t)k * each);
  }
  return NULL;
}

/* ---- numbers ----------------------------------------------------------------------------------- */

/* Whether an array has examples of the field: one, or *n of them. */
static bool holds_examples(const Npy *a, const Field *f, int64_t *n) {
  int more = a->rank - f->rank;
  if (more < 0 || more > 1) return false;
  for (int k = 0; k < f->rank; k++)
    if (a->dims[k + more] != f->dims[k]) return false;
  *n = more ? a->dims[0] : 1;
  return true;
}

static Err *wrong_array(const Npy *a, const Field *f) {
  Buf is = {0}, want = {0};
  for (int k = 0; k < a->rank; k++) buf_printf(&is, "%s%lld", k ? ", " : "", (long long)a->dims[k]);
  for (int k = 0; k < f->rank; k++) buf_printf(&want, ", %lld", (long long)f->dims[k]);
  Err *e =
      err_new(ERR_INVALID, "an array of %s (%s): the network takes %s (n%s)", dtype_name(a->dtype),
              is.p ? is.p : "", dtype_name(f->type), want.p ? want.p : "");
  buf_free(&is);
  buf_free(&want);
  return e;
}

static Err *take_numbers(const Npy *a, const Field *f, int64_t *n, void **out) {
  bool kind = dtype_is_float(a->dtype) ? dtype_is_float(f->type) : dtype_is_int(a->dtype);
  if (!kind || !holds_examples(a, f, n)) return wrong_array(a, f);
  size_t from = (size_t)dtype_bytes(a->dtype), to = (size_t)dtype_bytes(f->type);
  char *p = *out = xmalloc((size_t)a->count * to + 1);
  for (int64_t k = 0; k < a->count; k++) {
    const char *x = (const char *)a->data + (size_t)k * from;
    if (dtype_is_float(f->type))
      elem_set_f64(f->type, p + (size_t)k * to, elem_get_f64(a->dtype, x));
    else elem_set_i64(f->type, p + (size_t)k * to, elem_get_i64(a->dtype, x));
  }
  return NULL;
}

/* ---- files ------------------------------------------------------------------------------------- */

static bool takes_pictures(const Infer *i) {
  return infer_field(i)->rank == 3 && infer_field(i)->type == DT_U8;
}

static Err *take_array(const Infer *i, const Npy *a, int64_t *n, void **out) {
  return takes_pictures(i) ? fit_array(i, a, n, out) : take_numbers(a, infer_field(i), n, out);
}

/* Of several arrays the one with the field's name, as it is or with _test. */
static Err *take_npz(const Infer *i, const Npz *z, int64_t *n, void **out) {
  const char *name = infer_field(i)->name;
  char *test = xasprintf("%s_test", name);
  const Npy *a = z->n == 1 ? z->arrays : npz_find(z, name);
  if (!a) a = npz_find(z, test);
  if (!a && takes_pictures(i)) a = npz_find(z, "x_test");
  free(test);
  if (a) return take_array(i, a, n, out);
  return err_new(ERR_INVALID, "it has no array '%s', nor '%s_test', and %d others", name, name,
                 z->n);
}

static Err *read_bytes(const Infer *i, const Buf *b, int64_t *n, void **out) {
  Err *e;
  if (b->n >= 6 && !memcmp(b->p, "\x93NUMPY", 6)) {
    Npy a;
    TRY(npy_parse(b->p, b->n, &a));
    e = take_array(i, &a, n, out);
    npy_free(&a);
  } else if (b->n >= 4 && !memcmp(b->p, "PK\3\4", 4)) {
    Npz z;
    TRY(npz_parse(b->p, b->n, &z));
    e = take_npz(i, &z, n, out);
    npz_free(&z);
  } else {
    *n = 1;
    *out = xmalloc(infer_input_bytes(i) + 1);
    e = infer_image(i, b->p, b->n, *out);
  }
  return e;
}

Err *infer_read(const Infer *i, const char *path, int64_t *n, void **out) {
  *out = NULL;
  *n = 0;
  TRY(infer_can_answer(i));
  if (takes_pictures(i)) TRY(want_images(i));
  const Field *f = infer_field(i);
  if (str_ends(str_from(path), ".csv") && f->rank == 1 && f->type == DT_F32)
    return data_csv_rows(path, i->info.data, n, (float **)out);
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = read_bytes(i, &b, n, out);
  buf_free(&b);
  if (e) free(*out), *out = NULL;
  return err_wrap(e, "'%s'", path);
}
