/* Gradients of images with few channels (of a network's first layer): one product gives for each
 * place of Y what it adds to all channels under its window, [places, channels of Y] x [channels of
 * Y, window x channels of X]; then every place adds its rows to the image ("col2im"). Images are
 * cut into bands of rows; a band computes again the few places that reach into it from outside. */
#include <cblas.h>

#include "dev/cpu/conv.h"

#define COLUMNS 65536 /* elements of products at a time */
#define BAND_FLOPS 5e7

typedef struct Spread {
  const ConvShape *s;
  const float *y, *w; /* w: [channels of Y][rows][columns][channels of X] */
  float *x;
  int64_t height, width, channels, image_step, row_step; /* of X */
  int64_t down, across, depth, y_image, y_row, y_pixel;  /* of Y */
  int64_t rows, columns;                                 /* of the window */
  int64_t step[2], apart[2], low[2];
  int64_t bands;
} Spread;

/* One spatial dimension counts as a single row. */
static Spread spread_of(const ConvShape *s) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  bool flat = x->n == 3;
  int j = flat ? 2 : 3; /* the columns' dimension */
  Spread p = {.s = s,
              .height = flat ? 1 : x->dims[2],
              .width = x->dims[j],
              .channels = x->dims[1],
              .image_step = x->strides[0],
              .row_step = flat ? 0 : x->strides[2],
              .down = flat ? 1 : y->dims[2],
              .across = y->dims[j],
              .depth = y->dims[1],
              .y_image = y->strides[0],
              .y_row = flat ? 0 : y->strides[2],
              .y_pixel = y->strides[j],
              .rows = flat ? 1 : w->dims[3],
              .columns = w->dims[j + 1],
              .step = {1, s->strides[j - 2]},
              .apart = {1, s->dilates[j - 2] + 1},
              .low = {0, s->low[j - 2]}};
  if (!flat) p.step[0] = s->strides[0], p.apart[0] = s->dilates[0] + 1, p.low[0] = s->low[0];
  double flops = 2.0 * (double)(p.down * p.across * p.depth * p.rows * p.columns * p.channels);
  p.bands = MAX(1, MIN((int64_t)(flops / BAND_FLOPS), p.height / (8 * p.rows)));
  return p;
}

bool conv_spread_fits(const ConvShape *s) {
  return s->form == CONV_DATA && s->groups == 1 && (s->v[X].n == 3 || s->v[X].n == 4) &&
         s->v[X].dims[1] < 8 && s->v[Y].dims[1] >= 8;
}

static void place(const Spread *p, const float *from, int64_t at,
                  float *row) { /* one row of a window, from column `at` on */
  int64_t c = p->channels;
  if (p->apart[1] == 1) {
    int64_t first = MAX(0, -at) * c, last = MIN(p->columns, p->width - at) * c;
    row += at * c;
    for (int64_t i = first; i < last; i++) row[i] += from[i];
    return;
  }
  for (int64_t j = 0; j < p->columns; j++) {
    int64_t x = at + j * p->apart[1];
    if (x < 0 || x >= p->width) continue;
    for (int64_t i = 0; i < c; i++) row[x * c + i] += from[j * c + i];
  }
}

static void bands(void *arg, int64_t begin, int64_t end) {
  const Spread *p = arg;
  int64_t taps = p->columns * p->channels, all = p->rows * taps;
  int64_t at_once = p->y_row == p->across * p->y_pixel ? MAX(1, COLUMNS / (p->across * all)) : 1;
  float *products = cpu_scratch(sizeof(float) * (size_t)(at_once * p->across * all));
  for (int64_t b = begin; b < end; b++) {
    int64_t image = b / p->bands, band = b % p->bands;
    int64_t first = p->height * band / p->bands, last = p->height * (band + 1) / p->bands;
    const float *y = p->y + image * p->y_image;
    float *x = p->x + image * p->image_step;
    for (int64_t r = first; r < last; r++)
      memset(x + r * p->row_step, 0, sizeof(float) * (size_t)(p->width * p->channels));
    int64_t reach = (p->rows - 1) * p->apart[0]; /* place r covers rows r * step - low .. + reach */
    int64_t from = MAX(0, (first + p->low[0] - reach) / p->step[0]);
    int64_t to =
        last - 1 + p->low[0] < 0 ? 0 : MIN(p->down, (last - 1 + p->low[0]) / p->step[0] + 1);
    for (int64_t r0 = from; r0 < to; r0 += at_once) {
      int64_t n = MIN(at_once, to - r0);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)(n * p->across), (blasint)all,
                  (blasint)p->depth, 1, y + r0 * p->y_row, (blasint)p->y_pixel, p->w, (blasint)all,
                  0, products, (blasint)all);
      for (int64_t r = r0; r < r0 + n; r++)
        for (int64_t i = 0; i < p->rows; i++) {
          int64_t row = r * p->step[0] + i * p->apart[0] - p->low[0];
          if (row < first || row >= last) continue;
          const float *add = products + (r - r0) * p->across * all + i * taps;
          for (int64_t c = 0; c < p->across; c++)
            place(p, add + c * all, c * p->step[1] - p->low[1], x + row * p->row_step);
        }
    }
  }
}

bool conv_spread_run(const ConvShape *s, float *const *data) {
  Spread p = spread_of(s);
  const ConvView *w = &s->v[W];
  int64_t n = p.depth * p.rows * p.columns * p.channels, k = w->n - 1;
  float *own = aligned_alloc(64, ((size_t)n * 4 + 63) & ~(size_t)63), *to = own;
  if (!own) return false;
  for (int64_t o = 0; o < p.depth; o++)
    for (int64_t i = 0; i < p.rows; i++)
      for (int64_t j = 0; j < p.columns; j++)
        for (int64_t c = 0; c < p.channels; c++)
          *to++ = data[W][w->offset + o * w->strides[1] + c * w->strides[2] +
                          (k > 3 ? i * w->strides[3] : 0) + j * w->strides[k]];
  p.w = own;
  p.x = data[X] + s->v[X].offset;
  p.y = data[Y] + s->v[Y].offset;
  openblas_set_num_threads(1);
  cpu_parallel(s->v[X].dims[0] * p.bands, 1, bands, &p);
  free(own);
  return true;
}
