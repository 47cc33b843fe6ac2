/* Examples from files: pictures and arrays of pictures. */
#include "infer/infer_priv.h"

#include "base/npy.h"

#include <stdlib.h>

static const Field *images(const Infer *i) { return &i->info.data->fields[0]; }

static Err *want_images(const Infer *i) {
  const Field *f = images(i);
  if (i->model->task == TASK_PIXELS)
    return err_hint(err_new(ERR_UNIMPLEMENTED,
                            "model '%s' answers with a class for each pixel, not for the picture",
                            i->info.model),
                    "weft eval tells how well; weft export gives the network to others");
  if (f->rank == 3 && f->type == DT_U8) return NULL;
  return err_new(ERR_INVALID, "model '%s' was trained on %s, not on pictures", i->info.model,
                 f->name);
}

static void fit(const Infer *i, const Picture *im, uint8_t *out) {
  const int64_t *d = images(i)->dims;
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
  if (!one->height || !one->width) return err_new(ERR_INVALID, "an empty array is no picture");
  return NULL;
}

static Err *read_array(const Infer *i, const Buf *bytes, int64_t *n, uint8_t **out) {
  Npy a;
  TRY(npy_parse(bytes->p, bytes->n, &a));
  Picture one;
  Err *e = array_shape(&a, n, &one);
  size_t each = infer_input_bytes(i);
  if (!e) *out = xmalloc(each * (size_t)*n + 1);
  for (int64_t k = 0; k < *n && !e; k++) {
    one.pixels = (uint8_t *)a.data + k * one.height * one.width * one.channels;
    fit(i, &one, *out + (size_t)k * each);
  }
  npy_free(&a);
  return e;
}

Err *infer_read_images(const Infer *i, const char *path, int64_t *n, uint8_t **out) {
  TRY(want_images(i));
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e;
  *out = NULL;
  *n = 0;
  if (b.n >= 6 && !memcmp(b.p, "\x93NUMPY", 6)) {
    e = read_array(i, &b, n, out);
  } else {
    *n = 1;
    *out = xmalloc(infer_input_bytes(i) + 1);
    e = infer_image(i, b.p, b.n, *out);
  }
  buf_free(&b);
  if (e) free(*out), *out = NULL;
  return err_wrap(e, "'%s'", path);
}
