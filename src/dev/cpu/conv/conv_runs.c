/* Convolutions as products whose rows are read where they are (dot/runs.h): a place's row is the
 * pixels under its window, a run of channels each; for padding a pixel of zeros stands in. Gradients
 * of images are convolutions of Y, one for each remainder (conv_residues). */
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/dot/runs.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define LEAST_CHANNELS 16
#define LEAST_GROUP 8
#define MIN_MACS 1e5 /* smaller ones are not worth it */

typedef struct Job {
  const ConvShape *s;
  const ConvWindows *w; /* of the first group */
  const float *zeros;   /* of a pixel */
} Job;

static void rows(const void *of, int64_t row, int64_t count, int64_t pitch, const float **from,
                 float **to) {
  const Job *j = of;
  const ConvWindows *w = j->w;
  int64_t at[DIMS], rest = row;
  for (int d = DIMS - 1; d >= 0; d--) at[d] = rest % w->places[d], rest /= w->places[d];
  for (int64_t i = 0; i < count; i++) {
    const float *image = w->from + rest * w->image_step, **f = from + i;
    float *result = w->to + rest * w->to_image;
    int64_t begin[DIMS];
    for (int d = 0; d < DIMS; d++) {
      begin[d] = at[d] * w->stride[d] - w->low[d];
      result += at[d] * w->to_steps[d];
    }
    to[i] = result;
    for (int64_t a = 0; a < w->taps[0]; a++)
      for (int64_t b = 0; b < w->taps[1]; b++) {
        int64_t z = begin[0] + a * w->apart[0], y = begin[1] + b * w->apart[1];
        bool inside = z >= 0 && z < w->size[0] && y >= 0 && y < w->size[1];
        const float *line = image + z * w->steps[0] + y * w->steps[1];
        for (int64_t c = 0, x = begin[2]; c < w->taps[2]; c++, x += w->apart[2], f += pitch)
          *f = inside && x >= 0 && x < w->size[2] ? line + x * w->steps[2] : j->zeros;
      }
    for (int d = DIMS - 1; d >= 0 && ++at[d] == w->places[d]; d--) {
      at[d] = 0;
      rest += d == 0;
    }
  }
}

static const float *columns(const void *of, int64_t group, int64_t run) {
  const Job *j = of;
  const ConvWindows *w = j->w;
  const float *p = w->w + group * j->s->v[W].strides[0];
  for (int d = DIMS - 1; d >= 0; d--) {
    p += run % w->taps[d] * w->tap_steps[d];
    run /= w->taps[d];
  }
  return p;
}

static bool results(void *arg, const ConvWindows *w) {
  Job j = *(const Job *)arg;
  j.w = w;
  if (conv_volume(w->taps) == 0) {
    conv_clear(w, (char *)w->to, j.s->groups * w->depth, sizeof(float));
    return true;
  }
  Runs x = {.m = w->images * conv_volume(w->places),
            .n = w->depth,
            .runs = conv_volume(w->taps),
            .k = w->channels,
            .groups = j.s->groups,
            .rows = rows,
            .columns = columns,
            .of = &j,
            .zeros = j.zeros,
            .b_k = w->in_step,
            .b_col = w->out_step};
  return runs_run(&x, NULL, true);
}

/* With many places for each result's weights. Groups: of whole vectors, and so
 * few that nothing else fills its own; of one pixel, of any size. */
bool conv_runs_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (s->form == CONV_WEIGHTS || n < 1 || n > DIMS || s->swapped) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  int64_t taps = conv_volume(w.taps), places = w.images * conv_volume(w.places);
  if (!runs_kernels(w.depth) || 2 * places < 3 * w.depth ||
      MIN(w.channels, w.depth) < LEAST_GROUP ||
      (double)(places * taps) * (double)(w.channels * w.depth * s->groups) < MIN_MACS)
    return false;
  if (conv_patches(s) || conv_fan(s) > 1) return false;
  if (s->groups == 1 || taps == 1) return MIN(w.channels, w.depth) >= LEAST_CHANNELS;
  return w.depth == LEAST_CHANNELS || (w.depth == LEAST_GROUP && s->form == CONV_FORWARD);
}

bool conv_runs_run(const ConvShape *s, void *const *data) {
  ConvWindows w = conv_windows(s, data, 0);
  size_t bytes = sizeof(float) * (size_t)(s->groups * w.channels);
  float *zeros = cpu_block_alloc(bytes);
  if (!zeros) return false;
  memset(zeros, 0, bytes);
  Job j = {.s = s, .zeros = zeros};
  bool ok = conv_residues(&w, s->form == CONV_DATA, results, &j);
  cpu_block_free(zeros, bytes);
  return ok;
}
