/* Convolutions of f64 as products of windows, which are gathered a block of places at a time: [places, window x
 * channels] times the weights, packed ahead into panels of columns. Gradients of weights are the windows, transposed,
 * times Y, which is packed so then; a task takes some of the window's elements, for all places. */
#include "dev/cpu/dot/f64.h"
#include "dev/cpu/conv/conv_im2col.h"
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
static void pack_row(const Columns *c, int64_t term, const double *from) {
  for (int64_t j = 0, width; j < c->padded; j += width) {
    width = width_at(c, j);
    double *to = c->at + j * c->terms + term * width;
    for (int64_t i = 0; i < width; i++) to[i] = j + i < c->n ? from[j + i] : 0;
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
  const Im2col *c;
  double *sums; /* gradients of weights; */
  int64_t each; /* so many elements a task */
  Columns columns;
} Job;

/* Elements [element, element + n) of so many places' windows: at what is returned, `pitch` apart. */
static const double *windows(const Im2col *c, int64_t place, int64_t places, int64_t element,
                             int64_t n, double *room, int64_t *pitch) {
  *pitch = c->straight ? c->w->steps[2] : n;
  if (c->straight) return (const double *)(const void *)c->from + place * *pitch + element;
  im2col_gather(c, place, places, element, n, (char *)room, n * 8);
  return room;
}

/* ---- results ---- */

static void block_of_results(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const Im2col *c = j->c;
  int64_t k = MIN(BLOCK, c->elements), padded = j->columns.padded;
  double *room = cpu_scratch((size_t)(PLACES * (k + padded)) * 8), *sums = room + PLACES * k;
  for (int64_t block = begin; block < end; block++) {
    int64_t first = block * PLACES, n = MIN(PLACES, c->places - first), pitch;
    for (int64_t p = 0; p < c->elements; p += k) {
      int64_t some = MIN(k, c->elements - p);
      const double *a = windows(c, first, n, p, some, room, &pitch);
      multiply(&j->columns, n, p, some, a, pitch, 1, sums, p > 0);
    }
    for (int64_t i = 0; i < n; i++)
      memcpy(im2col_result(c, first + i), sums + i * padded, (size_t)c->depth * 8);
  }
}

static bool results(const Im2col *c, const void *weights) {
  Job j = {.c = c, .columns = columns_new(c->depth, c->elements)};
  if (!j.columns.at) return false;
  for (int64_t i = 0; i < c->elements; i++)
    pack_row(&j.columns, i, (const double *)weights + i * c->depth);
  int64_t macs = PLACES * c->elements * j.columns.padded;
  cpu_parallel((c->places + PLACES - 1) / PLACES, TASK_MACS / macs + 1, block_of_results, &j);
  columns_free(&j.columns);
  return true;
}

/* ---- gradients of weights ---- */

static void pack_results(void *arg, int64_t begin, int64_t end) { /* places */
  const Job *j = arg;
  for (int64_t i = begin; i < end; i++)
    pack_row(&j->columns, i, (const double *)(const void *)im2col_result(j->c, i));
}

static void some_weights(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const Im2col *c = j->c;
  int64_t padded = j->columns.padded;
  double *room = cpu_scratch((size_t)(j->each * (BLOCK + padded)) * 8),
         *sums = room + BLOCK * j->each;
  for (int64_t task = begin; task < end; task++) {
    int64_t first = task * j->each, n = MIN(j->each, c->elements - first), pitch;
    for (int64_t p = 0; p < c->places; p += BLOCK) {
      int64_t some = MIN(BLOCK, c->places - p);
      const double *a = windows(c, p, some, first, n, room, &pitch);
      multiply(&j->columns, n, p, some, a, 1, pitch, sums, p > 0);
    }
    for (int64_t i = 0; i < n; i++)
      memcpy(j->sums + (first + i) * c->depth, sums + i * padded, (size_t)c->depth * 8);
  }
}

static bool weights(const Im2col *c, void *sums) {
  Job j = {.c = c, .sums = sums, .columns = columns_new(c->depth, c->places)};
  if (!j.columns.at) return false;
  cpu_parallel(c->places, 1 + 16384 / j.columns.padded, pack_results, &j);
  int64_t rows = j.columns.kern->rows, most = MIN(MOST_ELEMENTS, (c->elements + 3) / 4);
  j.each = (most + rows - 1) / rows * rows;
  int64_t macs = j.each * c->places * j.columns.padded;
  cpu_parallel((c->elements + j.each - 1) / j.each, TASK_MACS / macs + 1, some_weights, &j);
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
  static const Im2colProduct product = {results, weights, .turned = false};
  return conv_im2col(s, data, &product);
}
