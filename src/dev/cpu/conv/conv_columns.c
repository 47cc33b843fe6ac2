/* Gradients of weights as products of gathered windows ("im2col"), channels last: the windows
 * [places, window x channels of X], transposed, times Y [places, channels of Y]. Worth the copies
 * where oneDNN has no good kernel: first layers, windows with steps or gaps. The sum is cut into
 * parts of images and rows, added in order; how many follows from the sizes. */
#include <cblas.h>

#include "dev/cpu/conv/conv.h"

#define PLACES 256    /* of a product, at least */
#define COLUMNS 65536 /* elements gathered at a time, at least */
#define MAX_PARTS 16
#define PART_ELEMENTS ((int64_t)8 << 20) /* of all parts of a gradient, about */

typedef struct Columns {
  const float *x, *y;
  float *parts; /* each [window][channels of X][channels of Y] */
  ConvPlane g;
  int64_t elements; /* of a window */
  int64_t at_once;  /* rows of Y */
  int64_t n_parts, per_part;
} Columns;

bool conv_columns_fits(const ConvShape *s) {
  if (s->groups != 1 || (s->v[X].n != 3 && s->v[X].n != 4) || s->v[Y].dims[1] < 8) return false;
  bool plain = true;
  for (int i = 0; i < s->v[X].n - 2; i++) plain &= s->strides[i] == 1 && s->dilates[i] == 0;
  return s->form == CONV_WEIGHTS &&
         (s->v[X].dims[1] < 8 || s->swapped || (!plain && s->v[X].dims[1] >= 32));
}

/* The windows of the places of row `row`. */
static void gather(const Columns *p, int64_t image, int64_t row, float *to) {
  int64_t run = p->g.columns * p->g.channels;
  for (int64_t c = 0; c < p->g.across; c++)
    for (int64_t i = 0; i < p->g.rows; i++, to += run) {
      int64_t y = row * p->g.step[0] + i * p->g.apart[0] - p->g.low[0],
              at = c * p->g.step[1] - p->g.low[1];
      if (y < 0 || y >= p->g.height) {
        memset(to, 0, sizeof(float) * (size_t)run);
        continue;
      }
      const float *from = p->x + image * p->g.x_image + y * p->g.x_row;
      if (p->g.apart[1] == 1 && at >= 0 && at + p->g.columns <= p->g.width) {
        memcpy(to, from + at * p->g.channels, sizeof(float) * (size_t)run);
        continue;
      }
      for (int64_t j = 0; j < p->g.columns; j++) {
        int64_t x = at + j * p->g.apart[1];
        if (x < 0 || x >= p->g.width)
          memset(to + j * p->g.channels, 0, sizeof(float) * (size_t)p->g.channels);
        else
          memcpy(to + j * p->g.channels, from + x * p->g.channels,
                 sizeof(float) * (size_t)p->g.channels);
      }
    }
}

static void parts(void *arg, int64_t begin, int64_t end) {
  const Columns *p = arg;
  int64_t per_image = (p->g.down + p->at_once - 1) / p->at_once, size = p->elements * p->g.depth;
  float *windows = cpu_scratch(sizeof(float) * (size_t)(p->at_once * p->g.across * p->elements));
  for (int64_t b = begin; b < end; b++) {
    int64_t first = b * p->per_part, last = MIN(first + p->per_part, p->g.images * per_image);
    for (int64_t k = first; k < last; k++) {
      int64_t image = k / per_image, r0 = k % per_image * p->at_once,
              n = MIN(p->at_once, p->g.down - r0);
      for (int64_t r = 0; r < n; r++)
        gather(p, image, r0 + r, windows + r * p->g.across * p->elements);
      const float *y = p->y + image * p->g.y_image + r0 * p->g.y_row;
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)p->elements,
                  (blasint)p->g.depth, (blasint)(n * p->g.across), 1, windows, (blasint)p->elements,
                  y, (blasint)p->g.y_pixel, k > first, p->parts + b * size, (blasint)p->g.depth);
    }
  }
}

static void add_parts(void *arg, int64_t begin, int64_t end) {
  const Columns *p = arg;
  int64_t size = p->elements * p->g.depth;
  for (int64_t b = 1; b < p->n_parts; b++)
    for (int64_t i = begin; i < end; i++) p->parts[i] += p->parts[b * size + i];
}

bool conv_columns_run(const ConvShape *s, float *const *data) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  Columns p = {.x = data[X] + x->offset, .y = data[Y] + y->offset, .g = conv_plane(s)};
  p.elements = p.g.rows * p.g.columns * p.g.channels;
  int64_t places = MAX(PLACES, COLUMNS / p.elements), size = p.elements * p.g.depth;
  bool together = p.g.down == 1 || p.g.y_row == p.g.across * p.g.y_pixel;
  p.at_once = together ? MAX(1, MIN(p.g.down, places / p.g.across)) : 1;
  int64_t steps = p.g.images * ((p.g.down + p.at_once - 1) / p.at_once);
  p.n_parts = MAX(2, MIN(MAX_PARTS, PART_ELEMENTS / size));
  p.per_part = (steps + p.n_parts - 1) / p.n_parts;
  p.n_parts = (steps + p.per_part - 1) / p.per_part;
  p.parts = aligned_alloc(64, (sizeof(float) * (size_t)(p.n_parts * size) + 63) & ~(size_t)63);
  if (!p.parts) return false;
  openblas_set_num_threads(1);
  cpu_parallel(p.n_parts, 1, parts, &p);
  cpu_parallel(size, 16384, add_parts, &p);
  const float *from = p.parts;
  for (int64_t i = 0; i < p.g.rows; i++)
    for (int64_t k = 0; k < p.g.columns; k++)
      for (int64_t c = 0; c < p.g.channels; c++) {
        float *to = data[W] + w->offset + c * w->strides[2] + i * p.g.w_row + k * p.g.w_column;
        for (int64_t o = 0; o < p.g.depth; o++) to[o * w->strides[1]] = *from++;
      }
  free(p.parts);
  return true;
}
