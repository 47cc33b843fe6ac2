/* Depthwise convolutions (each channel by itself), channels last: little arithmetic for each
 * element, so the images are read and written where they lie, a vector of channels at a time.
 * Results and gradients of images gather: every place adds up the places under its window.
 * Gradients of weights go tap by tap along the rows; rows are cut into PIECES parts, added in
 * order. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/conv/conv.h"

#define PIECES 16
#define STRIP 6 /* places of a row that weights are read once for */
#define MAX_TAPS 256
#define CACHED 12288
#define TOGETHER 12 /* sums in registers */

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
  float *zeros; /* of one place */
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
         s->groups == s->v[Y].dims[1] && taps <= MAX_TAPS;
}

/* y[c] = sum of x[t][c] * w[t][c] */
CLONES_FUSED static void gather(const float *const *x, const float *const *w, int n,
                                int64_t channels, float *y) {
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

/* The same for channels [first, last) of `places` of them. Tap t of place i is at x[t] + at + i *
 * x_step; edge: at x[t * STRIP + i]. */
static inline __attribute__((always_inline)) void
strip(int places, bool edge, const float *const *x, int64_t at, int64_t x_step,
      const float *const *w, int n, int64_t first, int64_t last, float *y, int64_t y_step) {
  int64_t c = first;
#define FROM(t, i) ((edge ? x[(t)*STRIP + (i)] : x[t] + at + (i)*x_step) + c)
  for (; c + 16 <= last; c += 16) {
    V8 a[STRIP][2] = {{{0}}};
    for (int t = 0; t < n; t++) {
      V8 w0 = AT(w[t] + c), w1 = AT(w[t] + c + 8);
#pragma GCC unroll 6
      for (int i = 0; i < places; i++) {
        const float *p = FROM(t, i);
        a[i][0] += AT(p) * w0, a[i][1] += AT(p + 8) * w1;
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < places; i++)
      *(V8 *)(y + i * y_step + c) = a[i][0], *(V8 *)(y + i * y_step + c + 8) = a[i][1];
  }
  for (; c + 8 <= last; c += 8) {
    V8 a[STRIP] = {{0}};
    for (int t = 0; t < n; t++) {
      V8 w0 = AT(w[t] + c);
#pragma GCC unroll 6
      for (int i = 0; i < places; i++) a[i] += AT(FROM(t, i)) * w0;
    }
#pragma GCC unroll 6
    for (int i = 0; i < places; i++) *(V8 *)(y + i * y_step + c) = a[i];
  }
  for (; c < last; c++)
    for (int i = 0; i < places; i++) {
      float a = 0;
      for (int t = 0; t < n; t++) a += *FROM(t, i) * w[t][c];
      y[i * y_step + c] = a;
    }
#undef FROM
}

CLONES_FUSED static void strips(int places, bool edge, const float *const *x, int64_t at,
                                int64_t x_step, const float *const *w, int n, int64_t first,
                                int64_t last, float *y, int64_t y_step) {
#define CASE(k)                                                                      \
  case 2 * (k): strip(k, false, x, at, x_step, w, n, first, last, y, y_step); break; \
  case 2 * (k) + 1: strip(k, true, x, at, x_step, w, n, first, last, y, y_step); break
  switch (2 * places + edge) {
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
    CASE(6);
  }
#undef CASE
}

/* w[c] += sum over n places of x[c] * y[c], these a step apart */
CLONES_FUSED static void along(const float *x, int64_t x_step, const float *y, int64_t y_step,
                               int64_t n, int64_t channels, float *w) {
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

/* w[t * w_step + c] += sum over n places of x[at[t] + c] * y[c], these a step apart; for `taps` of
 * them. From channel c on, `wide` vectors at a time; gives the first channel that is left. */
static inline __attribute__((always_inline)) int64_t
along_wide(int taps, int wide, int64_t c, const float *x, const int64_t *at, int64_t x_step,
           const float *y, int64_t y_step, int64_t n, int64_t channels, float *w, int64_t w_step) {
  for (; c + 8 * wide <= channels; c += 8 * wide) {
    V8 sum[TOGETHER][4];
    const float *p[TOGETHER], *q = y + c;
#pragma GCC unroll 12
    for (int t = 0; t < taps; t++) {
      p[t] = x + at[t] + c;
#pragma GCC unroll 4
      for (int v = 0; v < wide; v++) sum[t][v] = AT(w + t * w_step + c + 8 * v);
    }
    for (int64_t i = 0, far = 0; i < n; i++, far += x_step, q += y_step)
#pragma GCC unroll 4
      for (int v = 0; v < wide; v++) {
        V8 g = AT(q + 8 * v);
#pragma GCC unroll 12
        for (int t = 0; t < taps; t++) sum[t][v] += AT(p[t] + far + 8 * v) * g;
      }
#pragma GCC unroll 12
    for (int t = 0; t < taps; t++)
#pragma GCC unroll 4
      for (int v = 0; v < wide; v++) *(V8 *)(w + t * w_step + c + 8 * v) = sum[t][v];
  }
  return c;
}

static inline __attribute__((always_inline)) void
along_together(int taps, const float *x, const int64_t *at, int64_t x_step, const float *y,
               int64_t y_step, int64_t n, int64_t channels, float *w, int64_t w_step) {
  int64_t c = 0;
  if (taps <= 6)
    c = along_wide(taps, taps <= 3 ? 4 : 2, c, x, at, x_step, y, y_step, n, channels, w, w_step);
  c = along_wide(taps, 1, c, x, at, x_step, y, y_step, n, channels, w, w_step);
  for (; c < channels; c++)
    for (int t = 0; t < taps; t++)
      for (int64_t i = 0; i < n; i++)
        w[t * w_step + c] += x[at[t] + i * x_step + c] * y[i * y_step + c];
}

CLONES_FUSED static void along_taps(int taps, const float *x, const int64_t *at, int64_t x_step,
                                    const float *y, int64_t y_step, int64_t n, int64_t channels,
                                    float *w, int64_t w_step) {
#define CASE(k) \
  case k: along_together(k, x, at, x_step, y, y_step, n, channels, w, w_step); break
  switch (taps) {
    CASE(1);
    CASE(2);
    CASE(3);
    CASE(4);
    CASE(5);
    CASE(6);
    CASE(7);
    CASE(8);
    CASE(9);
    CASE(10);
    CASE(11);
    CASE(12);
  }
#undef CASE
}

/* Where tap k of the result at `place` reads along one dimension; -1: nowhere. */
static int64_t reads(const Depthwise *d, int dim, int64_t place, int64_t k, int64_t size) {
  int64_t at = d->data ? place + d->low[dim] - k * d->apart[dim]
                       : place * d->step[dim] + k * d->apart[dim] - d->low[dim];
  if (d->data && d->step[dim] != 1) at = at % d->step[dim] || at < 0 ? -1 : at / d->step[dim];
  return at >= 0 && at < size ? at : -1;
}

/* Rows are cut into strips where many taps read the same element; where few do they are better read
 * once, in order. */
static bool by_strips(const Depthwise *d, const Grid *to) {
  if (d->data && d->step[1] != 1) return false;
  return to->width > 1 && d->rows * d->columns >= 4 * d->step[0] * d->step[1];
}

/* The places of a row whose taps all lie inside: [*first, *last). */
static void inner(const Depthwise *d, const Grid *from, const Grid *to, int64_t *first,
                  int64_t *last) {
  *first = 0;
#define INSIDE(at) \
  (reads(d, 1, at, 0, from->width) >= 0 && reads(d, 1, at, d->columns - 1, from->width) >= 0)
  while (*first < to->width && !INSIDE(*first)) ++*first;
  *last = *first;
  while (*last < to->width && INSIDE(*last)) ++*last;
#undef INSIDE
}

typedef struct Lines { /* under the window of a row of results, and their weights */
  const float *x[MAX_TAPS], *w[MAX_TAPS];
  int n;
} Lines;

static void lines_of(const Depthwise *d, const Grid *from, int64_t image, int64_t row, Lines *l) {
  l->n = 0;
  for (int64_t i = 0; i < d->rows; i++) {
    int64_t y = reads(d, 0, row, i, from->height);
    if (y < 0) continue;
    l->x[l->n] = from->p + image * from->image_step + y * from->row_step;
    l->w[l->n++] = d->w + i * d->columns * d->channels;
  }
}

/* Of some places of a row, from column `at` on; edge: some lie outside. */
typedef struct Taps {
  const float *x[MAX_TAPS * STRIP], *w[MAX_TAPS];
  int n;
} Taps;

static void taps_of(const Depthwise *d, const Grid *from, const Lines *l, int64_t at,
                    int64_t places, bool edge, Taps *k) {
  k->n = 0;
  int64_t several = edge ? places : 1;
  for (int64_t j = 0; j < d->columns; j++) {
    if (several == 1) {
      int64_t x = reads(d, 1, at, j, from->width);
      for (int i = 0; x >= 0 && i < l->n; i++, k->n++) {
        k->x[k->n] = l->x[i] + x * from->pixel_step;
        k->w[k->n] = l->w[i] + j * d->channels;
      }
      continue;
    }
    int64_t off[STRIP];
    bool any = false;
    for (int64_t p = 0; p < several; p++) {
      off[p] = reads(d, 1, at + p, j, from->width);
      any |= off[p] >= 0;
      off[p] *= from->pixel_step;
    }
    for (int i = 0; any && i < l->n; i++, k->n++) {
      const float **to = k->x + k->n * STRIP;
      for (int64_t p = 0; p < several; p++) to[p] = off[p] < 0 ? d->zeros : l->x[i] + off[p];
      k->w[k->n] = l->w[i] + j * d->channels;
    }
  }
}

static void result_rows(void *arg, int64_t begin, int64_t end) { /* (image, row) */
  const Depthwise *d = arg;
  const Grid *from = d->data ? &d->y : &d->x, *to = d->data ? &d->x : &d->y;
  int64_t x_step = (d->data ? 1 : d->step[1]) * from->pixel_step;
  /* Channels at a time whose weights, and as much of the image, stay in the innermost cache. */
  int64_t block = CACHED / (d->rows * d->columns * 4) / 16 * 16;
  block = block >= d->channels ? d->channels : 16;
  int64_t cuts[4] = {0, 0, 0, to->width}, longest = by_strips(d, to) ? STRIP : 1;
  if (longest > 1) inner(d, from, to, &cuts[1], &cuts[2]);
  Lines lines;
  Taps k;
  for (int64_t b = begin; b < end; b++) {
    int64_t image = b / to->height, row = b % to->height;
    lines_of(d, from, image, row, &lines);
    float *line = to->p + image * to->image_step + row * to->row_step;
    for (int part = 0; part < 3; part++) { /* the middle one lies inside: one list of taps */
      int64_t begin_at = cuts[part], n = cuts[part + 1] - begin_at,
              many = (n + longest - 1) / longest;
      for (int64_t s = 0; s < many; s++) {
        int64_t first = n * s / many, places = n * (s + 1) / many - first;
        if (longest > 1 && n > 4 * STRIP) first = MIN(s * STRIP, n - STRIP), places = STRIP;
        bool edge = part != 1 || places == 1;
        float *out = line + (begin_at + first) * to->pixel_step;
        if (edge || s == 0) taps_of(d, from, &lines, begin_at + first, places, edge, &k);
        if (places == 1) gather(k.x, k.w, k.n, d->channels, out);
        for (int64_t c = 0; places > 1 && c < d->channels; c += block)
          strips((int)places, edge, k.x, edge ? 0 : first * x_step, x_step, k.w, k.n, c,
                 MIN(c + block, d->channels), out, to->pixel_step);
      }
    }
  }
}

/* Of the places of a row of Y that tap column j reads inside: [*first, *last). */
static void range_of(const Depthwise *d, int64_t j, int64_t *first, int64_t *last) {
  *first = 0, *last = d->y.width;
  while (*first < *last && reads(d, 1, *first, j, d->x.width) < 0) ++*first;
  while (*last > *first && reads(d, 1, *last - 1, j, d->x.width) < 0) --*last;
}

/* Where column j of a row of X is read first, from place `place` of Y. */
static int64_t begins(const Depthwise *d, int64_t place, int64_t j) {
  return (place * d->step[1] + j * d->apart[1] - d->low[1]) * d->x.pixel_step;
}

/* Adds a row of Y to the gradients of one row of the window, `w`. [first, last): the places that
 * all columns read inside. */
static void add_row(const Depthwise *d, const float *x, const float *y, int64_t first, int64_t last,
                    float *w) {
  int64_t at[TOGETHER], x_step = d->step[1] * d->x.pixel_step,
                        parts = (d->columns + TOGETHER - 1) / TOGETHER;
  for (int64_t k = 0; k < parts && first < last; k++) {
    int64_t j = d->columns * k / parts, n = d->columns * (k + 1) / parts - j;
    for (int64_t t = 0; t < n; t++) at[t] = begins(d, first, j + t);
    along_taps((int)n, x, at, x_step, y + first * d->y.pixel_step, d->y.pixel_step, last - first,
               d->channels, w + j * d->channels, d->channels);
  }
  for (int64_t j = 0; j < d->columns; j++) {
    int64_t from, to;
    range_of(d, j, &from, &to);
    int64_t left = MIN(first, to) - from, right = MAX(from, MAX(first, last));
    float *sums = w + j * d->channels;
    if (left > 0)
      along(x + begins(d, from, j), x_step, y + from * d->y.pixel_step, d->y.pixel_step, left,
            d->channels, sums);
    if (to > right)
      along(x + begins(d, right, j), x_step, y + right * d->y.pixel_step, d->y.pixel_step,
            to - right, d->channels, sums);
  }
}

static void weight_parts(void *arg, int64_t begin, int64_t end) {
  const Depthwise *d = arg;
  int64_t n = d->rows * d->columns * d->channels, rows = d->images * d->y.height;
  int64_t first = 0, last = d->y.width;
  for (int64_t j = 0; j < d->columns; j++) {
    int64_t from, to;
    range_of(d, j, &from, &to);
    first = MAX(first, from), last = MIN(last, to);
  }
  last = MAX(first, last);
  for (int64_t part = begin; part < end; part++) {
    float *w = d->parts + part * n;
    memset(w, 0, sizeof(float) * (size_t)n);
    for (int64_t r = rows * part / PIECES; r < rows * (part + 1) / PIECES; r++) {
      int64_t image = r / d->y.height, row = r % d->y.height;
      const float *y = d->y.p + image * d->y.image_step + row * d->y.row_step;
      for (int64_t i = 0; i < d->rows; i++) {
        int64_t at = reads(d, 0, row, i, d->x.height);
        if (at >= 0)
          add_row(d, d->x.p + image * d->x.image_step + at * d->x.row_step, y, first, last,
                  w + i * d->columns * d->channels);
      }
    }
  }
}

bool conv_depthwise_run(const ConvShape *s, void *const *data) {
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
  int64_t n = d.rows * d.columns * d.channels, all = n * (weights ? PIECES + 1 : 1) + d.channels;
  d.w = aligned_alloc(64, (sizeof(float) * (size_t)all + 63) & ~(size_t)63);
  if (!d.w) return false;
  d.parts = d.w + n;
  d.zeros = d.w + all - d.channels;
  memset(d.zeros, 0, sizeof(float) * (size_t)d.channels);
  if (weights) {
    cpu_parallel(PIECES, 1, weight_parts, &d);
    memcpy(d.w, d.parts, sizeof(float) * (size_t)n);
    for (int64_t part = 1; part < PIECES; part++)
      for (int64_t k = 0; k < n; k++) d.w[k] += d.parts[part * n + k];
  }
  float *w = d.w;
  for (int64_t i = 0; i < d.rows; i++)
    for (int64_t k = 0; k < d.columns; k++)
      for (int64_t c = 0; c < d.channels; c++, w++) {
        float *user = (float *)data[W] + v->offset + c * v->strides[0] +
                      (flat ? 0 : i * v->strides[3]) + k * v->strides[v->n - 1];
        if (weights) *user = *w;
        else *w = *user;
      }
  const Grid *to = d.data ? &d.x : &d.y;
  double row = (double)(to->width * d.channels * d.rows * d.columns);
  if (!weights) cpu_parallel(d.images * to->height, MAX(1, (int64_t)(2e5 / row)), result_rows, &d);
  free(d.w);
  return true;
}
