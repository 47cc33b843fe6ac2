/* Gradients of images with few channels (of a network's first layer), or much larger than Y: one product gives for each
 * place of Y what it adds to all channels under its window, [places, channels of Y] x [channels of Y, window x channels of
 * X]; then every place adds its rows to the image ("col2im"). Images are cut into bands of rows; a band computes again the
 * few places that reach into it from outside. */
#include <cblas.h>

#include "blas/blas.h"
#include "dev/cpu/conv/conv.h"

#define COLUMNS 65536 /* elements of products at a time */
#define BAND_FLOPS 5e7

/* X, Y and the window of a convolution over one or two spatial dimensions; one counts as a single
 * row. Steps are in elements. */
typedef struct Plane {
  int64_t images, height, width, channels, x_image, x_row; /* of X */
  int64_t down, across, depth, y_image, y_row, y_pixel;    /* of Y; depth: its channels */
  int64_t rows, columns, step[2], apart[2], low[2];        /* of the window */
  int64_t w_row, w_column;
} Plane;

typedef struct Spread {
  const ConvShape *s;
  const float *y, *w; /* w: [channels of Y][rows][columns][channels of X] */
  float *x;
  Plane g;
  int64_t bands;   /* of an image */
  int64_t several; /* images of a task, where these are small */
} Spread;

static Plane plane_of(const ConvShape *s) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  bool flat = x->n == 3;
  int j = flat ? 2 : 3; /* the columns' dimension */
  return (Plane){.images = x->dims[0],
                 .height = flat ? 1 : x->dims[2],
                 .width = x->dims[j],
                 .channels = x->dims[1],
                 .x_image = x->strides[0],
                 .x_row = flat ? 0 : x->strides[2],
                 .down = flat ? 1 : y->dims[2],
                 .across = y->dims[j],
                 .depth = y->dims[1],
                 .y_image = y->strides[0],
                 .y_row = flat ? 0 : y->strides[2],
                 .y_pixel = y->strides[j],
                 .rows = flat ? 1 : w->dims[3],
                 .columns = w->dims[j + 1],
                 .step = {flat ? 1 : s->strides[0], s->strides[j - 2]},
                 .apart = {flat ? 1 : s->dilates[0] + 1, s->dilates[j - 2] + 1},
                 .low = {flat ? 0 : s->low[0], s->low[j - 2]},
                 .w_row = flat ? 0 : w->strides[3],
                 .w_column = w->strides[j + 1]};
}

static Spread spread_of(const ConvShape *s) {
  Spread p = {.s = s, .g = plane_of(s)};
  double flops =
      2.0 * (double)(p.g.down * p.g.across * p.g.depth * p.g.rows * p.g.columns * p.g.channels);
  p.bands = MAX(1, MIN((int64_t)(flops / BAND_FLOPS), p.g.height / (8 * p.g.rows)));
  int64_t product = p.g.down * p.g.across * p.g.rows * p.g.columns * p.g.channels;
  bool together = p.g.y_image == p.g.down * p.g.across * p.g.y_pixel &&
                  (p.g.down == 1 || p.g.y_row == p.g.across * p.g.y_pixel);
  p.several = p.bands == 1 && together ? MAX(1, MIN(p.g.images, COLUMNS / product)) : 1;
  return p;
}

bool conv_spread_fits(const ConvShape *s) {
  if (s->form != CONV_DATA || s->groups != 1 || (s->v[X].n != 3 && s->v[X].n != 4) ||
      conv_patches(s))
    return false;
  double useful = 1; /* of all that a place of X would gather */
  for (int i = 2; i < s->v[X].n; i++)
    useful *= (double)(s->v[Y].dims[i] * s->strides[i - 2]) / (double)s->v[X].dims[i];
  return useful < 0.4 || (s->v[X].dims[1] < 8 && s->v[Y].dims[1] >= 8);
}

/* Adds one row of a window, from column `at` on. */
static void add_row(const Spread *p, const float *from, int64_t at, float *row) {
  int64_t c = p->g.channels;
  if (p->g.apart[1] == 1) {
    int64_t first = MAX(0, -at) * c, last = MIN(p->g.columns, p->g.width - at) * c;
    row += at * c;
    for (int64_t i = first; i < last; i++) row[i] += from[i];
    return;
  }
  for (int64_t j = 0; j < p->g.columns; j++) {
    int64_t x = at + j * p->g.apart[1];
    if (x < 0 || x >= p->g.width) continue;
    for (int64_t i = 0; i < c; i++) row[x * c + i] += from[j * c + i];
  }
}

/* Rows [r0, r0 + n) of Y of some images: to rows [first, last) of X. */
static void add_rows(const Spread *p, const float *products, int64_t r0, int64_t n, int64_t first,
                     int64_t last, float *x) {
  int64_t taps = p->g.columns * p->g.channels, all = p->g.rows * taps;
  for (int64_t r = r0; r < r0 + n; r++)
    for (int64_t i = 0; i < p->g.rows; i++) {
      int64_t row = r * p->g.step[0] + i * p->g.apart[0] - p->g.low[0];
      if (row < first || row >= last) continue;
      const float *add = products + (r - r0) * p->g.across * all + i * taps;
      for (int64_t c = 0; c < p->g.across; c++)
        add_row(p, add + c * all, c * p->g.step[1] - p->g.low[1], x + row * p->g.x_row);
    }
}

static void zero_rows(const Spread *p, int64_t first, int64_t last, float *x) {
  for (int64_t r = first; r < last; r++)
    memset(x + r * p->g.x_row, 0, sizeof(float) * (size_t)(p->g.width * p->g.channels));
}

static void multiply(const Spread *p, const float *y, int64_t places, float *products) {
  blasint all = (blasint)(p->g.rows * p->g.columns * p->g.channels);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)places, all, (blasint)p->g.depth,
              1, y, (blasint)p->g.y_pixel, p->w, all, 0, products, all);
}

static void bands(void *arg, int64_t begin, int64_t end) {
  const Spread *p = arg;
  int64_t all = p->g.rows * p->g.columns * p->g.channels;
  int64_t at_once =
      p->g.y_row == p->g.across * p->g.y_pixel ? MAX(1, COLUMNS / (p->g.across * all)) : 1;
  float *products = cpu_scratch(sizeof(float) * (size_t)(at_once * p->g.across * all));
  for (int64_t b = begin; b < end; b++) {
    int64_t image = b / p->bands, band = b % p->bands;
    int64_t first = p->g.height * band / p->bands, last = p->g.height * (band + 1) / p->bands;
    const float *y = p->y + image * p->g.y_image;
    float *x = p->x + image * p->g.x_image;
    zero_rows(p, first, last, x);
    int64_t reach =
        (p->g.rows - 1) * p->g.apart[0]; /* place r covers rows r * step - low .. + reach */
    int64_t from = MAX(0, (first + p->g.low[0] - reach) / p->g.step[0]);
    int64_t to = last - 1 + p->g.low[0] < 0
                     ? 0
                     : MIN(p->g.down, (last - 1 + p->g.low[0]) / p->g.step[0] + 1);
    for (int64_t r0 = from; r0 < to; r0 += at_once) {
      int64_t n = MIN(at_once, to - r0);
      multiply(p, y + r0 * p->g.y_row, n * p->g.across, products);
      add_rows(p, products, r0, n, first, last, x);
    }
  }
}

static void images(void *arg, int64_t begin, int64_t end) { /* several of them */
  const Spread *p = arg;
  int64_t places = p->g.down * p->g.across, all = p->g.rows * p->g.columns * p->g.channels;
  float *products = cpu_scratch(sizeof(float) * (size_t)(p->several * places * all));
  for (int64_t b = begin; b < end; b++) {
    int64_t first = b * p->several, last = MIN(first + p->several, p->g.images);
    multiply(p, p->y + first * p->g.y_image, (last - first) * places, products);
    for (int64_t i = first; i < last; i++) {
      float *x = p->x + i * p->g.x_image;
      zero_rows(p, 0, p->g.height, x);
      add_rows(p, products + (i - first) * places * all, 0, p->g.down, 0, p->g.height, x);
    }
  }
}

bool conv_spread_run(const ConvShape *s, void *const *data) {
  Spread p = spread_of(s);
  const ConvView *w = &s->v[W];
  int64_t n = p.g.depth * p.g.rows * p.g.columns * p.g.channels;
  float *own = aligned_alloc(64, ((size_t)n * 4 + 63) & ~(size_t)63), *to = own;
  const float *weights = data[W];
  if (!own) return false;
  for (int64_t o = 0; o < p.g.depth; o++)
    for (int64_t i = 0; i < p.g.rows; i++)
      for (int64_t j = 0; j < p.g.columns; j++)
        for (int64_t c = 0; c < p.g.channels; c++)
          *to++ = weights[w->offset + o * w->strides[1] + c * w->strides[2] + i * p.g.w_row +
                          j * p.g.w_column];
  p.w = own;
  p.x = (float *)data[X] + s->v[X].offset;
  p.y = (float *)data[Y] + s->v[Y].offset;
  blas_begin();
  if (p.several > 1) cpu_parallel((p.g.images + p.several - 1) / p.several, 1, images, &p);
  else cpu_parallel(p.g.images * p.bands, 1, bands, &p);
  free(own);
  return true;
}
