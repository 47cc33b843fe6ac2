/* Arrays of pictures and labels in one .npz, by the names that Keras' data sets have. */
#include "train/data_priv.h"

#include "base/npy.h"

#include <stdlib.h>

static const char *const names[4] = {"x_train", "y_train", "x_test", "y_test"};

static Err *check_pictures(const Npy *x, const char *name) {
  bool colour = x->rank == 4 && x->dims[3] > 0 && x->dims[3] <= DATA_CHANNELS;
  if (x->dtype == DT_U8 && (x->rank == 3 || colour) && x->count) return NULL;
  return err_new(ERR_INVALID,
                 "'%s' holds no bytes of shape (n, H, W) or (n, H, W, 1 to %d channels)", name,
                 DATA_CHANNELS);
}

static Err *take_labels(const Npy *y, const Npy *x, const char *name, uint8_t **out,
                        int64_t *classes) {
  bool column = y->rank == 1 || (y->rank == 2 && y->dims[1] == 1); /* CIFAR's are (n, 1) */
  if (!column || y->dims[0] != x->dims[0] || !dtype_is_int(y->dtype))
    return err_new(ERR_INVALID, "'%s' does not hold a whole number for each picture", name);
  *out = xmalloc((size_t)y->count + 1);
  for (int64_t i = 0; i < y->count; i++) {
    int64_t v = elem_get_i64(y->dtype, (char *)y->data + i * dtype_bytes(y->dtype));
    if (v < 0 || v > 255)
      return err_new(ERR_INVALID, "label %lld in '%s' is not from 0 to 255", (long long)v, name);
    (*out)[i] = (uint8_t)v;
    *classes = MAX(*classes, v + 1);
  }
  return NULL;
}

static Err *make(Npz *z, const char *path, Data **out) {
  Npy *a[4];
  for (int i = 0; i < 4; i++) {
    a[i] = (Npy *)npz_find(z, names[i]);
    if (!a[i])
      return err_hint(err_new(ERR_INVALID, "no array '%s'", names[i]),
                      "x_train, y_train, x_test and y_test");
  }
  for (int i = 0; i < 4; i += 2) TRY(check_pictures(a[i], names[i]));
  for (int k = 1; k < MAX(a[0]->rank, a[2]->rank); k++)
    if (a[0]->rank != a[2]->rank || a[0]->dims[k] != a[2]->dims[k])
      return err_new(ERR_INVALID, "training and test pictures differ in size");
  Images im = {0};
  int64_t classes = 0;
  Err *e = take_labels(a[1], a[0], names[1], &im.train_labels, &classes);
  if (!e) e = take_labels(a[3], a[2], names[3], &im.test_labels, &classes);
  if (e) {
    free(im.train_labels);
    free(im.test_labels);
    return e;
  }
  im.train = a[0]->data;
  im.test = a[2]->data;
  a[0]->data = a[2]->data = NULL; /* theirs now */
  int64_t shape[] = {a[0]->dims[1], a[0]->dims[2], a[0]->rank == 4 ? a[0]->dims[3] : 1};
  char *name = xasprintf("npz:%s", base_name(path));
  *out = data_from_images(name, im, a[0]->dims[0], a[2]->dims[0], shape, classes);
  free(name);
  return NULL;
}

/* Bytes of pictures, as Keras' sets have them; else arrays of any kind. */
static bool pictures(const Npz *z) {
  const Npy *x = npz_find(z, "x_train"), *y = npz_find(z, "y_train");
  bool pixels = y && y->rank > 2; /* a class for each */
  bool parts = npz_find(z, "x_test") || npz_find(z, "y_test");
  return x && parts && !pixels && x->dtype == DT_U8 && (x->rank == 3 || x->rank == 4);
}

Err *data_open_npz(const char *path, bool whole, Data **out) {
  Npz z;
  TRY(npz_read(path, &z));
  Err *e = pictures(&z) ? make(&z, path, out) : data_open_arrays(&z, path, whole, out);
  npz_free(&z);
  return err_wrap(e, "'%s'", path);
}
