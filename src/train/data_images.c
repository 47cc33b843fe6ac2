/* Images in memory, with augmentation; their mean and deviation. */
#include "train/data_priv.h"

#include <stdlib.h>

static void free_images(Data *d) {
  Images *im = d->impl;
  free(im->train);
  free(im->test);
  free(im->train_labels);
  free(im->test_labels);
  free(im);
}

/* Reflected coordinate: -1 is 1, n is n - 2. */
static int64_t reflect(int64_t i, int64_t n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; }

/* Shift by up to 4 pixels with reflected edges, mirror, cut out an 8 x 8 square (Page's DavidNet
 * recipe). */
static void augment(const Data *d, const uint8_t *src, uint64_t rand, uint8_t *dst) {
  const int64_t *s = d->fields[0].dims, h = s[0], w = s[1], c = s[2], cut = 8;
  int64_t dy = (int64_t)(rand % 9) - 4, dx = (int64_t)(rand / 9 % 9) - 4;
  bool flip = rand / 81 & 1;
  int64_t cy = (int64_t)((rand >> 16) % (uint64_t)(h - cut + 1)),
          cx = (int64_t)((rand >> 32) % (uint64_t)(w - cut + 1));
  for (int64_t y = 0; y < h; y++)
    for (int64_t x = 0; x < w; x++) {
      uint8_t *to = dst + (y * w + x) * c;
      bool hole = y >= cy && y < cy + cut && x >= cx && x < cx + cut;
      int64_t sy = reflect(y + dy, h), sx = reflect((flip ? w - 1 - x : x) + dx, w);
      const uint8_t *from = src + (sy * w + sx) * c;
      for (int64_t k = 0; k < c; k++) to[k] = hole ? (uint8_t)(255 * d->mean[k] + 0.5f) : from[k];
    }
}

static Err *get_image(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  const Images *im = d->impl;
  int64_t size = d->fields[0].dims[0] * d->fields[0].dims[1] * d->fields[0].dims[2];
  const uint8_t *src = (test ? im->test : im->train) + index * size;
  if (im->augment && !test) augment(d, src, rand, dst[0]);
  else memcpy(dst[0], src, (size_t)size);
  *(int32_t *)dst[1] = (test ? im->test_labels : im->train_labels)[index];
  return NULL;
}

/* Mean and deviation of each channel of the training images, in 0 ... 1: exact, from the histogram.
 */
void data_statistics(Data *d, const uint8_t *p, int64_t pixels, int64_t channels) {
  for (int64_t c = 0; c < channels && c < DATA_CHANNELS; c++) {
    int64_t histogram[256] = {0};
    for (int64_t i = 0; i < pixels; i++) histogram[p[i * channels + c]]++;
    double sum = 0, squares = 0;
    for (int v = 0; v < 256; v++) {
      sum += (double)histogram[v] * v;
      squares += (double)histogram[v] * v * v;
    }
    double mean = sum / (double)pixels, var = squares / (double)pixels - mean * mean;
    d->mean[c] = (float)(mean / 255);
    d->std[c] = var > 0 ? (float)(__builtin_sqrt(var) / 255) : 1;
  }
}

int data_channels(const Data *d) {
  const Field *f = &d->fields[0];
  return f->rank == 3 ? (int)MIN(f->dims[2], DATA_CHANNELS) : 0;
}

static void numbers_json(const char *name, int n, const float *v, Buf *out) {
  buf_printf(out, ",\n  \"%s\": [", name);
  for (int i = 0; i < n; i++) buf_printf(out, "%s%.9g", i ? ", " : "", (double)v[i]);
  buf_cstr(out, "]");
}

void data_channels_json(const Data *d, Buf *out) {
  int n = data_channels(d);
  if (!n) return;
  numbers_json("mean", n, d->mean, out);
  numbers_json("std", n, d->std, out);
}

Data *data_from_images(const char *name, Images im, int64_t n_train, int64_t n_test,
                       const int64_t shape[3], int64_t classes) {
  Data *d = xcalloc(1, sizeof *d);
  Images *keep = xmalloc(sizeof *keep);
  *keep = im;
  d->name = xstrdup(name);
  d->n_fields = 2;
  d->fields[0] = (Field){"images", DT_U8, 3, {shape[0], shape[1], shape[2]}};
  d->fields[1] = (Field){"labels", DT_I32, 0, {0}};
  d->n_train = n_train;
  d->n_test = n_test;
  d->classes = classes;
  d->impl = keep;
  d->get = get_image;
  d->free = free_images;
  data_statistics(d, im.train, n_train * shape[0] * shape[1], shape[2]);
  return d;
}

void data_close(Data *d) {
  if (!d) return;
  if (d->free) d->free(d);
  free(d->name);
  free(d->spec);
  free(d->tokenizer);
  free(d->labels);
  free(d->names);
  free(d->column_mean);
  free(d->column_std);
  free(d->column_names);
  free(d);
}

DataOpts model_data(const Model *m, const TrainConfig *c) {
  return (DataOpts){.length = c->length,
                    .image_size = c->image_size,
                    .augment = c->augment,
                    .shift = c->shift,
                    .rotate = c->rotate,
                    .masked = c->masked,
                    .shape = {m->shape[0], m->shape[1], m->shape[2]},
                    .classes = m->classes,
                    .task = m->task};
}
