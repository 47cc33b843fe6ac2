/* Convolutions of f64, each channel by itself: vectors run along the channels, which lie last, or where there is but
 * one along the places. A task takes rows of results; for gradients of weights, taps. */
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define TASK_MACS 50000

typedef struct Job {
  const ConvWindows *w;
  const double *from;
  double *to, *weights;         /* of results: [taps][channels] */
  int64_t channels, group_step; /* group_step: of the user's weights */
} Job;

/* y += x w, of places so many elements apart. */
CLONES_FUSED static void add_products(int64_t places, int64_t channels, const double *x,
                                      int64_t x_step, const double *w, int64_t w_step, double *y,
                                      int64_t y_step) {
  for (int64_t p = 0; p < places; p++, x += x_step, w += w_step, y += y_step) {
    IVDEP
    for (int64_t c = 0; c < channels; c++) y[c] += x[c] * w[c];
  }
}

/* The same of one channel whose places lie together. */
CLONES_FUSED static void add_scaled(int64_t places, const double *x, double w, double *y) {
  IVDEP
  for (int64_t p = 0; p < places; p++) y[p] += x[p] * w;
}

#define SUMS 32 /* four vectors of AVX-512 */

CLONES_FUSED static double sum_of_products(int64_t n, const double *x, const double *y) {
  double sums[SUMS] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + SUMS <= n; i += SUMS)
    for (int j = 0; j < SUMS; j++) sums[j] += x[i + j] * y[i + j];
  for (int j = 0; i + j < n; j++) sums[j] += x[i + j] * y[i + j];
  for (int j = 0; j < SUMS; j++) sum += sums[j];
  return sum;
}

/* The places of a dimension whose tap lies inside the source: [first, last). */
static void inside(const ConvWindows *w, int d, int64_t tap, int64_t *first, int64_t *last) {
  int64_t far = tap * w->apart[d] - w->low[d], step = w->stride[d];
  *first = far < 0 ? (-far + step - 1) / step : 0;
  *last = far < w->size[d] ? MIN(w->places[d], (w->size[d] - far + step - 1) / step) : 0;
}

/* Of the places in row number `row`, counted over all images, [*first, *last) have the tap inside the source: where
 * the first of them has it. NULL: none. */
static const double *pixels(const Job *j, int64_t row, int64_t tap, int64_t *first, int64_t *last) {
  const ConvWindows *w = j->w;
  int64_t at = row / (w->places[0] * w->places[1]) * w->image_step,
          of[] = {row / w->places[1] % w->places[0], row % w->places[1], 0},
          taps[] = {tap / (w->taps[1] * w->taps[2]), tap / w->taps[2] % w->taps[1],
                    tap % w->taps[2]};
  for (int d = 0; d < DIMS; d++) {
    inside(w, d, taps[d], first, last);
    if (d == DIMS - 1) of[d] = *first;
    if (of[d] < *first || of[d] >= *last) return NULL;
    at += (of[d] * w->stride[d] - w->low[d] + taps[d] * w->apart[d]) * w->steps[d];
  }
  return j->from + at;
}

/* One channel, its places together in the source and Y. */
static bool is_line(const Job *j) {
  const ConvWindows *w = j->w;
  return j->channels == 1 && w->stride[2] * w->steps[2] == 1 && w->to_steps[2] == 1;
}

static double *row_at(const Job *j, int64_t row) {
  return j->to + conv_result_at(j->w, row * j->w->places[2]);
}

static void rows_of_results(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const ConvWindows *w = j->w;
  int64_t taps = conv_volume(w->taps), step = w->stride[2] * w->steps[2], to_step = w->to_steps[2];
  for (int64_t row = begin; row < end; row++) {
    double *to = row_at(j, row);
    for (int64_t p = 0; p < w->places[2]; p++) memset(to + p * to_step, 0, (size_t)j->channels * 8);
    for (int64_t t = 0, first, last; t < taps; t++) {
      const double *x = pixels(j, row, t, &first, &last);
      const double *by = j->weights + t * j->channels;
      if (!x) continue;
      if (is_line(j)) add_scaled(last - first, x, *by, to + first);
      else add_products(last - first, j->channels, x, step, by, 0, to + first * to_step, to_step);
    }
  }
}

static bool results(void *arg, const ConvWindows *w) {
  const Job *all = arg;
  Job j = *all;
  int64_t taps = conv_volume(w->taps), n = j.channels, step = all->group_step;
  size_t bytes = (size_t)(taps * n) * 8;
  const double *from = (const double *)(void *)conv_at(all->weights, w->w, DT_F64);
  j.w = w;
  j.from = (const double *)(void *)conv_at((void *)(uintptr_t)all->from, w->from, DT_F64);
  j.to = (double *)(void *)conv_at(all->to, w->to, DT_F64);
  j.weights = cpu_block_alloc(bytes + 8); /* there may be no taps */
  if (!j.weights) return false;
  cpu_permute(8, DIMS + 1, (int64_t[]){w->taps[0], w->taps[1], w->taps[2], n},
              (int64_t[]){w->tap_steps[0], w->tap_steps[1], w->tap_steps[2], step}, from,
              j.weights);
  int64_t rows = w->images * w->places[0] * w->places[1], macs = w->places[2] * n * (taps + 1);
  cpu_parallel(rows, TASK_MACS / macs + 1, rows_of_results, &j);
  cpu_block_free(j.weights, bytes + 8);
  return true;
}

static void taps_of_weights(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const ConvWindows *w = j->w;
  int64_t rows = w->images * w->places[0] * w->places[1], n = j->channels;
  double *sums = cpu_scratch((size_t)n * 8);
  for (int64_t t = begin; t < end; t++) {
    memset(sums, 0, (size_t)n * 8);
    for (int64_t row = 0, first, last; row < rows; row++) {
      const double *x = pixels(j, row, t, &first, &last);
      const double *y = row_at(j, row) + first * w->to_steps[2];
      if (!x) continue;
      if (is_line(j)) *sums += sum_of_products(last - first, x, y);
      else add_products(last - first, n, x, w->stride[2] * w->steps[2], y, w->to_steps[2], sums, 0);
    }
    double *to = j->weights + t / (w->taps[1] * w->taps[2]) * w->tap_steps[0] +
                 t / w->taps[2] % w->taps[1] * w->tap_steps[1] + t % w->taps[2] * w->tap_steps[2];
    for (int64_t c = 0; c < n; c++) to[c * j->group_step] = sums[c];
  }
}

bool conv_f64_depthwise_fits(const ConvShape *s) {
  const ConvView *w = &s->v[W];
  return w->dims[1] == 1 && w->dims[2] == 1 && conv_f64_fits(s);
}

bool conv_f64_depthwise_run(const ConvShape *s, void *const *data) {
  bool back = s->form == CONV_DATA;
  ConvWindows w = conv_windows(s, data, 0);
  if (s->form == CONV_WEIGHTS) conv_forwards(&w);
  Job j = {.from = data[back ? Y : X],
           .to = data[back ? X : Y],
           .weights = data[W],
           .channels = s->groups,
           .group_step = s->v[W].strides[0]};
  if (s->form != CONV_WEIGHTS) return conv_residues(&w, back, results, &j);
  j.w = &w;
  j.from = (const double *)(void *)conv_at((void *)(uintptr_t)j.from, w.from, DT_F64);
  j.to = (double *)(void *)conv_at(j.to, w.to, DT_F64);
  j.weights = (double *)(void *)conv_at(j.weights, w.w, DT_F64);
  int64_t macs = w.images * conv_volume(w.places) * s->groups;
  cpu_parallel(conv_volume(w.taps), TASK_MACS / macs + 1, taps_of_weights, &j);
  return true;
}
