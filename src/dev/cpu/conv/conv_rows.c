/* Windows of few channels, as in images' first layers: the source's rows under a band of places are
 * copied with their padding, so that element e of the window of place p of a row lies at at[e] + p *
 * step: nothing is gathered. The kernels of dot/runs.h multiply them where they are. Gradients of
 * weights are summed in parts of the bands, added in order. */
#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/dot/runs.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define COPY_FLOATS 16384     /* of a band, about */
#define READ_FLOATS 32768     /* of Y, many times for gradients of weights */
#define LONGEST_ROW 256       /* places of a band */
#define PARTS 16              /* that gradients of weights are summed in, at most */
#define PART_FLOATS (1 << 21) /* of all parts, about */

typedef struct Rows {
  const ConvWindows *w;
  const RunsKernels *simd;
  int64_t elements, run;           /* of a window; run: so many lie side by side */
  int64_t reach[DIMS];             /* of the window */
  int64_t band[DIMS], bands[DIMS]; /* places of a task, one of the first dimension; tasks */
  int64_t rows, pitch, copy;       /* of a copy; pitch and copy in floats */
  int64_t vectors, panels;         /* of channels of results */
  int64_t parts;
  int64_t *at;    /* of each element, floats in a copy */
  float *weights; /* [panel][elements][its columns]; gradients: [part][elements][columns] */
} Rows;

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

static int64_t columns(const Rows *p) { return p->vectors * p->simd->lanes; }

static int64_t vector_at(const Rows *p, int64_t panel) { return panel * p->vectors / p->panels; }

static void plan(Rows *p, const ConvWindows *w, bool gradients) {
  p->elements = conv_volume(w->taps) * w->channels;
  bool beside = w->apart[2] == 1;
  p->run = beside ? w->taps[2] * w->channels : w->channels;
  for (int i = 0; i < DIMS; i++) p->reach[i] = p->elements ? (w->taps[i] - 1) * w->apart[i] : 0;
  p->bands[2] = up(w->places[2], LONGEST_ROW);
  p->band[2] = up(w->places[2], p->bands[2]);
  p->pitch = ((p->band[2] - 1) * w->stride[2] + p->reach[2] + 1) * w->channels;
  int64_t fits =
      (COPY_FLOATS / (MAX(1, w->taps[0]) * p->pitch) - p->reach[1] - 1) / w->stride[1] + 1;
  if (gradients) fits = MIN(fits, READ_FLOATS / (p->band[2] * w->depth));
  p->bands[1] = up(w->places[1], MAX(1, fits));
  p->band[1] = up(w->places[1], p->bands[1]);
  p->band[0] = 1;
  for (int i = 0; i < DIMS; i++) p->bands[i] = up(w->places[i], p->band[i]);
  p->rows = (p->band[1] - 1) * w->stride[1] + p->reach[1] + 1;
  p->copy = w->taps[0] * p->rows * p->pitch;
  p->vectors = up(w->depth, p->simd->lanes);
  p->panels = up(p->vectors, p->simd->vectors);
}

static void places_of_elements(const Rows *p) {
  const ConvWindows *w = p->w;
  int64_t *at = p->at;
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t b = 0; b < w->taps[1]; b++)
      for (int64_t d = 0; d < w->taps[2]; d++)
        for (int64_t c = 0; c < w->channels; c++)
          *at++ = (a * p->rows + b * w->apart[1]) * p->pitch + d * w->apart[2] * w->channels + c;
}

/* ---- the user's weights ---- */

static float *user_at(const Rows *p, int64_t element) {
  const ConvWindows *w = p->w;
  float *at = w->w + element % w->channels * w->in_step;
  int64_t t = element / w->channels;
  for (int d = DIMS - 1; d >= 0; d--) at += t % w->taps[d] * w->tap_steps[d], t /= w->taps[d];
  return at;
}

static void weights_in(const Rows *p) {
  const ConvWindows *w = p->w;
  int64_t lanes = p->simd->lanes;
  for (int64_t e = 0; e < p->elements; e++) {
    const float *from = user_at(p, e);
    for (int64_t k = 0; k < p->panels; k++) {
      int64_t first = vector_at(p, k) * lanes, width = vector_at(p, k + 1) * lanes - first,
              held = MIN(width, w->depth - first);
      float *to = p->weights + first * p->elements + e * width;
      for (int64_t c = 0; c < held; c++) to[c] = from[(first + c) * w->out_step];
      memset(to + held, 0, sizeof(float) * (size_t)(width - held));
    }
  }
}

static void weights_out(const Rows *p) {
  const ConvWindows *w = p->w;
  int64_t n = columns(p), all = p->elements * n;
  for (int64_t e = 0; e < p->elements; e++) {
    float *sum = p->weights + e * n, *to = user_at(p, e);
    for (int64_t part = 1; part < p->parts; part++)
      for (int64_t c = 0; c < n; c++) sum[c] += sum[part * all + c];
    for (int64_t c = 0; c < w->depth; c++) to[c * w->out_step] = sum[c];
  }
}

/* ---- bands ---- */

static void copy_source(const Rows *p, const ConvBand *b, float *to) {
  const ConvWindows *w = p->w;
  int64_t begin[DIMS], c = w->channels, wide = p->pitch / c;
  for (int i = 0; i < DIMS; i++) begin[i] = b->place[i] * w->stride[i] - w->low[i];
  int64_t rows = (b->n[1] - 1) * w->stride[1] + p->reach[1] + 1,
          skip = MIN(wide, MAX(0, -begin[2])), last = MAX(skip, MIN(wide, w->size[2] - begin[2]));
  const float *image = w->from + b->image * w->image_step;
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t r = 0; r < p->rows; r++, to += p->pitch) {
      int64_t z = begin[0] + a * w->apart[0], y = begin[1] + r;
      if (r >= rows) continue; /* of the last band: nobody reads them */
      if (z < 0 || z >= w->size[0] || y < 0 || y >= w->size[1] || last == skip) {
        memset(to, 0, sizeof(float) * (size_t)p->pitch);
        continue;
      }
      memset(to, 0, sizeof(float) * (size_t)(skip * c));
      memcpy(to + skip * c,
             image + z * w->steps[0] + y * w->steps[1] + (begin[2] + skip) * w->steps[2],
             sizeof(float) * (size_t)((last - skip) * c));
      memset(to + last * c, 0, sizeof(float) * (size_t)((wide - last) * c));
    }
}

static float *results_at(const Rows *p, const ConvBand *b) {
  const ConvWindows *w = p->w;
  float *to = w->to + b->image * w->to_image;
  for (int i = 0; i < DIMS; i++) to += b->place[i] * w->to_steps[i];
  return to;
}

static void results(void *arg, int64_t begin, int64_t end) { /* bands */
  const Rows *p = arg;
  const ConvWindows *w = p->w;
  int64_t lanes = p->simd->lanes, step = w->stride[2] * w->channels;
  float *copy = cpu_scratch(sizeof(float) * (size_t)p->copy);
  for (int64_t i = begin; i < end; i++) {
    ConvBand b = conv_band(p->w, p->bands, p->band, i);
    copy_source(p, &b, copy);
    for (int64_t k = 0; k < p->panels; k++) {
      int64_t first = vector_at(p, k), nv = vector_at(p, k + 1) - first,
              strips = up(b.n[2], MIN(RUNS_STEPS, p->simd->most / nv));
      RunsSteps x = {.elements = p->elements,
                     .step = step,
                     .to_step = w->to_steps[2],
                     .last = MIN(lanes, w->depth - (first + nv - 1) * lanes),
                     .at = p->at};
      const float *weights = p->weights + first * lanes * p->elements, *from = copy;
      float *to = results_at(p, &b) + first * lanes;
      for (int64_t r = 0; r < b.n[1]; r++, to += w->to_steps[1], from += w->stride[1] * p->pitch)
        for (int64_t s = 0; s < strips; s++) {
          int64_t place = b.n[2] * s / strips, n = b.n[2] * (s + 1) / strips - place;
          p->simd->steps[nv - 1][n - 1](&x, from + place * step, weights, to + place * x.to_step);
        }
    }
  }
}

/* Adds a band of places to the sums of gradients. */
static void add_up(const Rows *p, RunsSums s, const float *copy, const float *y, float *sums) {
  int64_t lanes = p->simd->lanes;
  for (int64_t k = 0; k < p->panels; k++) {
    int64_t first = vector_at(p, k), nv = vector_at(p, k + 1) - first,
            parts = up(p->run, p->simd->most / nv);
    s.last = MIN(lanes, p->w->depth - (first + nv - 1) * lanes);
    for (int64_t run = 0; run < p->elements; run += p->run)
      for (int64_t i = 0; i < parts; i++) {
        int64_t e = run + p->run * i / parts, n = run + p->run * (i + 1) / parts - e;
        p->simd->sums[nv - 1][n - 1](&s, copy + p->at[e], y + first * lanes,
                                     sums + e * s.w_step + first * lanes);
      }
  }
}

static void weight_parts(void *arg, int64_t begin, int64_t end) { /* parts */
  const Rows *p = arg;
  const ConvWindows *w = p->w;
  int64_t all = w->images * conv_volume(p->bands), size = p->elements * columns(p);
  float *copy = cpu_scratch(sizeof(float) * (size_t)p->copy);
  for (int64_t part = begin; part < end; part++) {
    float *sums = p->weights + part * size;
    memset(sums, 0, sizeof(float) * (size_t)size);
    for (int64_t k = all * part / p->parts; k < all * (part + 1) / p->parts; k++) {
      ConvBand b = conv_band(p->w, p->bands, p->band, k);
      copy_source(p, &b, copy);
      RunsSums s = {.rows = b.n[1],
                    .x_row = w->stride[1] * p->pitch,
                    .y_row = w->to_steps[1],
                    .places = b.n[2],
                    .x_step = w->stride[2] * w->channels,
                    .y_step = w->to_steps[2],
                    .w_step = columns(p)};
      add_up(p, s, copy, results_at(p, &b), sums);
    }
  }
}

/* ---- both ---- */

static bool run(void *arg, const ConvWindows *w) { /* one remainder; false: no memory */
  const ConvShape *s = arg;
  bool gradients = s->form == CONV_WEIGHTS;
  Rows p = {.w = w, .simd = runs_kernels(w->depth)};
  plan(&p, w, gradients);
  int64_t bands = w->images * conv_volume(p.bands), size = p.elements * columns(&p);
  p.parts = gradients ? MAX(1, MIN(MIN(bands, PARTS), PART_FLOATS / size)) : 1;
  size_t places = (sizeof(int64_t) * (size_t)p.elements + 63) & ~(size_t)63,
         bytes = places + sizeof(float) * (size_t)(p.parts * size) + 64;
  char *memory = cpu_block_alloc(bytes);
  if (!memory) return false;
  p.at = (int64_t *)(void *)memory;
  p.weights = (float *)(void *)(memory + places);
  places_of_elements(&p);
  if (gradients) {
    cpu_parallel(p.parts, 1, weight_parts, &p);
    weights_out(&p);
  } else {
    double work = (double)size * (double)(p.band[1] * p.band[2]); /* of a task */
    weights_in(&p);
    cpu_parallel(bands, MAX(1, (int64_t)(1e6 / (work + 1))), results, &p);
  }
  cpu_block_free(memory, bytes);
  return true;
}

bool conv_rows_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (n < 1 || n > DIMS || s->groups > 1 || conv_patches(s)) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  return runs_kernels(w.depth) && w.channels < 8 && w.depth >= 8;
}

bool conv_rows_run(const ConvShape *s, void *const *data) {
  ConvWindows w = conv_windows(s, data, 0);
  return conv_residues(&w, s->form == CONV_DATA, run, (void *)(uintptr_t)s);
}
