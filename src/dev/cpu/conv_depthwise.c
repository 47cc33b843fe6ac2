/* Depthwise convolutions (each channel by itself), channels last: little arithmetic for each
 * element, so the images are read and written where they lie, a vector of channels at a time.
 * Results and gradients of images gather: every place adds up the places under its window.
 * Gradients of weights go tap by tap along the rows; rows are cut into PIECES parts, added in
 * order. */
#include "dev/cpu/clones.h"
#include "dev/cpu/conv.h"

#define PIECES 16

typedef float V8 __attribute__((vector_size(32), aligned(4), may_alias));

typedef struct Grid {
  int64_t height, width, image_step, row_step, pixel_step;
  float *p;
} Grid;

typedef struct Depthwise {
  Grid x, y;
  int64_t images, channels, rows, columns; /* of the window */
  int64_t step[2], apart[2], low[2];
  bool data;
  float *w;     /* [rows][columns][channels] */
  float *parts; /* of gradients of weights: [PIECES] of these */
} Depthwise;

static Grid grid_of(const ConvView *v, float *p) {
  bool flat = v->n == 3;
  return (Grid){.height = flat ? 1 : v->dims[2],
                .width = v->dims[v->n - 1],
                .image_step = v->strides[0],
                .row_step = flat ? 0 : v->strides[2],
                .pixel_step = v->strides[v->n - 1],
                .p = p + v->offset};
}

bool conv_depthwise_fits(const ConvShape *s) {
  const ConvView *w = &s->v[W];
  int64_t taps = 1;
  for (int i = 3; i < w->n; i++) taps *= w->dims[i];
  return (s->v[X].n == 3 || s->v[X].n == 4) && s->groups > 1 && s->groups == s->v[X].dims[1] &&
         s->groups == s->v[Y].dims[1] && taps <= 256;
}

/* y[c] = sum of x[t][c] * w[t][c] */
CLONES static void gather(const float *const *x, const float *const *w, int n, int64_t channels,
                          float *y) {
  int64_t c = 0;
#define AT(p) (*(const V8 *)(p))
  for (; c + 32 <= channels; c += 32) {
    V8 a = {0}, b = {0}, d = {0}, e = {0};
    for (int t = 0; t < n; t++) {
      const float *p = x[t] + c, *q = w[t] + c;
      a += AT(p) * AT(q), b += AT(p + 8) * AT(q + 8), d += AT(p + 16) * AT(q + 16),
          e += AT(p + 24) * AT(q + 24);
    }
    *(V8 *)(y + c) = a, *(V8 *)(y + c + 8) = b, *(V8 *)(y + c + 16) = d, *(V8 *)(y + c + 24) = e;
  }
  for (; c + 8 <= channels; c += 8) {
    V8 a = {0};
    for (int t = 0; t < n; t++) a += AT(x[t] + c) * AT(w[t] + c);
    *(V8 *)(y + c) = a;
  }
  for (; c < channels; c++) {
    float a = 0;
    for (int t = 0; t < n; t++) a += x[t][c] * w[t][c];
    y[c] = a;
  }
}

/* w[c] += sum over n places of x[c] * y[c], these a step apart */
CLONES static void along(const float *x, int64_t x_step, const float *y, int64_t y_step, int64_t n,
                         int64_t channels, float *w) {
  int64_t c = 0;
  for (; c + 32 <= channels; c += 32) {
    V8 a = {0}, b = {0}, d = {0}, e = {0};
    const float *p = x + c, *q = y + c;
    for (int64_t i = 0; i < n; i++, p += x_step, q += y_step)
      a += AT(p) * AT(q), b += AT(p + 8) * AT(q + 8), d += AT(p + 16) * AT(q + 16),
          e += AT(p + 24) * AT(q + 24);
    *(V8 *)(w + c) += a, *(V8 *)(w + c + 8) += b, *(V8 *)(w + c + 16) += d,
        *(V8 *)(w + c + 24) += e;
  }
  for (; c + 8 <= channels; c += 8) {
    V8 a = {0};
    for (int64_t i = 0; i < n; i++) a += AT(x + i * x_step + c) * AT(y + i * y_step + c);
    *(V8 *)(w + c) += a;
  }
  for (; c < channels; c++)
    for (int64_t i = 0; i < n; i++) w[c] += x[i * x_step + c] * y[i * y_step + c];
}

/* Where tap k of the result at `place` reads along one dimension; -1: nowhere. */
static int64_t reads(const Depthwise *d, int dim, int64_t place, int64_t k, int64_t size) {
  int64_t at = d->data ? place + d->low[dim] - k * d->apart[dim]
                       : place * d->step[dim] + k * d->apart[dim] - d->low[dim];
  if (d->data) at = at % d->step[dim] || at < 0 ? -1 : at / d->step[dim];
  return at >= 0 && at < size ? at : -1;
}

static void result_rows(void *arg, int64_t begin, int64_t end) { /* (image, row) */
  const Depthwise *d = arg;
  const Grid *from = d->data ? &d->y : &d->x, *to = d->data ? &d->x : &d->y;
  const float *in[256], *w[256];
  for (int64_t b = begin; b < end; b++) {
    int64_t image = b / to->height, row = b % to->height;
    float *out = to->p + image * to->image_step + row * to->row_step;
    for (int64_t col = 0; col < to->width; col++, out += to->pixel_step) {
      int n = 0;
      for (int64_t i = 0; i < d->rows; i++) {
        int64_t y = reads(d, 0, row, i, from->height);
        for (int64_t j = 0; y >= 0 && j < d->columns; j++) {
          int64_t x = reads(d, 1, col, j, from->width);
          if (x < 0) continue;
          in[n] = from->p + image * from->image_step + y * from->row_step + x * from->pixel_step;
          w[n++] = d->w + (i * d->columns + j) * d->channels;
        }
      }
      gather(in, w, n, d->channels, out);
    }
  }
}

static void weight_parts(void *arg, int64_t begin, int64_t end) {
  const Depthwise *d = arg;
  int64_t n = d->rows * d->columns * d->channels, rows = d->images * d->y.height;
  for (int64_t part = begin; part < end; part++) {
    float *w = d->parts + part * n;
    memset(w, 0, sizeof(float) * (size_t)n);
    for (int64_t r = rows * part / PIECES; r < rows * (part + 1) / PIECES; r++) {
      int64_t image = r / d->y.height, row = r % d->y.height;
      const float *y = d->y.p + image * d->y.image_step + row * d->y.row_step;
      for (int64_t i = 0; i < d->rows; i++) {
        int64_t at = reads(d, 0, row, i, d->x.height);
        const float *x = d->x.p + image * d->x.image_step + at * d->x.row_step;
        for (int64_t j = 0; at >= 0 && j < d->columns; j++) {
          int64_t first = 0, last = d->y.width;
          while (first < last && reads(d, 1, first, j, d->x.width) < 0) first++;
          while (last > first && reads(d, 1, last - 1, j, d->x.width) < 0) last--;
          if (first == last) continue;
          along(x + reads(d, 1, first, j, d->x.width) * d->x.pixel_step,
                d->step[1] * d->x.pixel_step, y + first * d->y.pixel_step, d->y.pixel_step,
                last - first, d->channels, w + (i * d->columns + j) * d->channels);
        }
      }
    }
  }
}

bool conv_depthwise_run(const ConvShape *s, float *const *data) {
  const ConvView *v = &s->v[W];
  bool flat = v->n == 4, weights = s->form == CONV_WEIGHTS;
  int j = flat ? 0 : 1; /* the columns' dimension */
  Depthwise d = {.x = grid_of(&s->v[X], data[X]),
                 .y = grid_of(&s->v[Y], data[Y]),
                 .images = s->v[X].dims[0],
                 .channels = s->groups,
                 .rows = flat ? 1 : v->dims[3],
                 .columns = v->dims[v->n - 1],
                 .step = {flat ? 1 : s->strides[0], s->strides[j]},
                 .apart = {flat ? 1 : s->dilates[0] + 1, s->dilates[j] + 1},
                 .low = {flat ? 0 : s->low[0], s->low[j]},
                 .data = s->form == CONV_DATA};
  int64_t n = d.rows * d.columns * d.channels;
  d.w = aligned_alloc(64, (sizeof(float) * (size_t)(n * (weights ? PIECES + 1 : 1)) + 63) &
                              ~(size_t)63);
  if (!d.w) return false;
  d.parts = d.w + n;
  if (weights) {
    cpu_parallel(PIECES, 1, weight_parts, &d);
    memcpy(d.w, d.parts, sizeof(float) * (size_t)n);
    for (int64_t k = n; k < n * PIECES; k++) d.w[k % n] += d.parts[k];
  }
  float *w = d.w;
  for (int64_t i = 0; i < d.rows; i++)
    for (int64_t k = 0; k < d.columns; k++)
      for (int64_t c = 0; c < d.channels; c++, w++) {
        float *user = data[W] + v->offset + c * v->strides[0] + (flat ? 0 : i * v->strides[3]) +
                      k * v->strides[v->n - 1];
        if (weights) *user = *w;
        else *w = *user;
      }
  const Grid *to = d.data ? &d.x : &d.y;
  double row = (double)(to->width * d.channels * d.rows * d.columns);
  if (!weights) cpu_parallel(d.images * to->height, MAX(1, (int64_t)(2e5 / row)), result_rows, &d);
  free(d.w);
  return true;
}
