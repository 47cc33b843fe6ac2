/* Convolutions of f64 as products of windows, which are gathered a block of places at a time: [places, window x
 * channels] times the weights, packed ahead into panels of columns. Gradients of weights are the windows, transposed,
 * times Y, which is packed so then; a task takes some of the window's elements, for all places. */
#include "dev/cpu/conv/conv_f64.h"
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define BLOCK 256 /* terms of a sum at a time: a panel of columns stays in the first cache */
#define PLACES 96 /* of a task; both kernels' rows divide it */
#define MOST_ELEMENTS 96
#define TASK_MACS 200000

typedef struct
    Columns { /* of the right side, in panels [terms][two vectors, or one for the last] */
  const F64Kernels *kern;
  int64_t n, padded, terms;
  double *at;
} Columns;

static Columns columns_new(int64_t n, int64_t terms) {
  const F64Kernels *kern = f64_kernels();
  int64_t padded = (n + kern->lanes - 1) / kern->lanes * kern->lanes;
  return (Columns){kern, n, padded, terms, cpu_block_alloc((size_t)(padded * terms) * 8)};
}

static void columns_free(const Columns *c) {
  cpu_block_free(c->at, (size_t)(c->padded * c->terms) * 8);
}

static int64_t width_at(const Columns *c, int64_t column) {
  return MIN(2 * c->kern->lanes, c->padded - column);
}

/* A row of the right side; the columns beyond it are zero. */
static void pack_row(const Columns *c, int64_t term, const double *from, int64_t step) {
  for (int64_t j = 0, width; j < c->padded; j += width) {
    width = width_at(c, j);
    double *to = c->at + j * c->terms + term * width;
    for (int64_t i = 0; i < width; i++) to[i] = j + i < c->n ? from[(j + i) * step] : 0;
  }
}

/* c[rows][padded] (+)= a[rows][k] times terms [first, first + k) of the columns. */
static void multiply(const Columns *c, int64_t rows, int64_t first, int64_t k, const double *a,
                     int64_t a_row, int64_t a_k, double *to, bool add) {
  for (int64_t j = 0, width; j < c->padded; j += width) {
    width = width_at(c, j);
    const double *b = c->at + j * c->terms + first * width;
    for (int64_t i = 0, n; i < rows; i += n) {
      n = MIN(c->kern->rows, rows - i);
      c->kern->fn[n - 1][width / c->kern->lanes - 1](k, a + i * a_row, a_row, a_k, b,
                                                     to + i * c->padded + j, c->padded, add);
    }
  }
}

typedef struct Job {
  const ConvWindows *w;
  const double *from;
  double *to, *weights;
  bool straight; /* windows are pixels as they lie */
  int64_t elements, places, each;
  Columns columns;
} Job;

/* The elements of a tap and channel among the weights. */
static int64_t weight_at(const ConvWindows *w, int64_t element) {
  int64_t at = element % w->channels * w->in_step, tap = element / w->channels;
  for (int d = DIMS - 1; d >= 0; d--) {
    at += tap % w->taps[d] * w->tap_steps[d];
    tap /= w->taps[d];
  }
  return at;
}

/* Elements [element, element + n) of so many places' windows: at what is returned, `pitch` apart. */
static const double *windows(const Job *j, int64_t place, int64_t places, int64_t element,
                             int64_t n, double *room, int64_t *pitch) {
  *pitch = j->straight ? j->w->steps[2] : n;
  if (j->straight) return j->from + place * *pitch + element;
  conv_gather(j->w, j->from, sizeof *room, place, places, element, n, room, n * 8);
  return room;
}

/* ---- results ---- */

static void block_of_results(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  int64_t k = MIN(BLOCK, j->elements), depth = j->columns.n, padded = j->columns.padded;
  double *room = cpu_scratch((size_t)(PLACES * (k + padded)) * 8), *sums = room + PLACES * k;
  for (int64_t block = begin; block < end; block++) {
    int64_t first = block * PLACES, n = MIN(PLACES, j->places - first), pitch;
    for (int64_t p = 0; p < j->elements; p += k) {
      int64_t some = MIN(k, j->elements - p);
      const double *a = windows(j, first, n, p, some, room, &pitch);
      multiply(&j->columns, n, p, some, a, pitch, 1, sums, p > 0);
    }
    for (int64_t i = 0; i < n; i++)
      memcpy(j->to + conv_result_at(j->w, first + i), sums + i * padded, (size_t)depth * 8);
  }
}

static bool results(void *arg, const ConvWindows *w) {
  const Job *all = arg;
  Job j = *all;
  j.w = w;
  j.from = (const double *)(void *)conv_at((void *)(uintptr_t)all->from, w->from, DT_F64);
  j.to = (double *)(void *)conv_at(all->to, w->to, DT_F64);
  const double *weights = (const double *)(void *)conv_at(all->weights, w->w, DT_F64);
  j.straight = conv_straight(w);
  j.elements = conv_volume(w->taps) * w->channels;
  j.places = w->images * conv_volume(w->places);
  if (j.elements == 0) {
    conv_clear(w, (char *)j.to, w->depth, 8);
    return true;
  }
  j.columns = columns_new(w->depth, j.elements);
  if (!j.columns.at) return false;
  for (int64_t i = 0; i < j.elements; i++)
    pack_row(&j.columns, i, weights + weight_at(w, i), w->out_step);
  int64_t macs = PLACES * j.elements * j.columns.padded;
  cpu_parallel((j.places + PLACES - 1) / PLACES, TASK_MACS / macs + 1, block_of_results, &j);
  columns_free(&j.columns);
  return true;
}

/* ---- gradients of weights ---- */

static void pack_results(void *arg, int64_t begin, int64_t end) { /* places */
  const Job *j = arg;
  for (int64_t i = begin; i < end; i++)
    pack_row(&j->columns, i, j->to + conv_result_at(j->w, i), 1);
}

static void some_weights(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const ConvWindows *w = j->w;
  double *room = cpu_scratch((size_t)(j->each * (BLOCK + j->columns.padded)) * 8),
         *sums = room + BLOCK * j->each;
  for (int64_t task = begin; task < end; task++) {
    int64_t first = task * j->each, n = MIN(j->each, j->elements - first), pitch;
    for (int64_t p = 0; p < j->places; p += BLOCK) {
      int64_t some = MIN(BLOCK, j->places - p);
      const double *a = windows(j, p, some, first, n, room, &pitch);
      multiply(&j->columns, n, p, some, a, 1, pitch, sums, p > 0);
    }
    for (int64_t i = 0; i < n; i++) {
      double *to = j->weights + weight_at(w, first + i);
      for (int64_t o = 0; o < w->depth; o++) to[o * w->out_step] = sums[i * j->columns.padded + o];
    }
  }
}

static bool weights(const Job *all, ConvWindows *w) {
  conv_forwards(w);
  Job j = *all;
  j.w = w;
  j.from = (const double *)(void *)conv_at((void *)(uintptr_t)all->from, w->from, DT_F64);
  j.to = (double *)(void *)conv_at(all->to, w->to, DT_F64);
  j.weights = (double *)(void *)conv_at(all->weights, w->w, DT_F64);
  j.straight = conv_straight(w);
  j.elements = conv_volume(w->taps) * w->channels;
  j.places = w->images * conv_volume(w->places);
  j.columns = columns_new(w->depth, j.places);
  if (!j.columns.at) return false;
  cpu_parallel(j.places, 1 + 16384 / j.columns.padded, pack_results, &j);
  int64_t rows = j.columns.kern->rows, most = MIN(MOST_ELEMENTS, (j.elements + 3) / 4);
  j.each = (most + rows - 1) / rows * rows;
  int64_t macs = j.each * j.places * j.columns.padded;
  cpu_parallel((j.elements + j.each - 1) / j.each, TASK_MACS / macs + 1, some_weights, &j);
  columns_free(&j.columns);
  return true;
}

/* ---- both ---- */

bool conv_f64_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  return f64_kernels() && n >= 1 && n <= DIMS && s->t[X] == DT_F64 && s->t[W] == DT_F64 &&
         s->t[Y] == DT_F64;
}

bool conv_f64_run(const ConvShape *s, void *const *data) {
  bool back = s->form == CONV_DATA, ok = true;
  Job j = {.from = data[back ? Y : X], .to = data[back ? X : Y], .weights = data[W]};
  for (int64_t g = 0; g < s->groups && ok; g++) {
    ConvWindows w = conv_windows(s, data, g);
    ok = s->form == CONV_WEIGHTS ? weights(&j, &w) : conv_residues(&w, back, results, &j);
  }
  return ok;
}
