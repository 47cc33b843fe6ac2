/* Depthwise convolutions and others of small groups, channels last. A vector holds LANES channels of
 * results, of as many whole groups as there is room for; each of its lanes needs the inputs of its
 * own group. So the source under a band of results is copied, with its padding, into vectors that
 * have them where they are needed, `inputs` vectors a pixel:
 *
 *   results   for all inputs and taps: result += copy * weights
 *   weights   for all inputs and taps: sum over places of copy * Y
 *
 * The copy costs little beside the taps that read it, and lies together where channels far apart
 * would share a few places of the first cache. X and Y are read and written as f32 or bf16.
 * Gradients of weights are summed in parts of the bands, added in order. */
#include "dev/cpu/conv/conv_lanes.h"

#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define MOST_INPUTS 4 /* more would make the copy too large */
#define DENSE_TAPS 20
#define COPY_FLOATS 32768 /* of a band, about */
#define LONGEST_ROW 512   /* places of a band */
#define PARTS 32          /* tasks that gradients of weights are divided in, about */

typedef struct Lanes {
  const ConvWindows *w; /* of the first group */
  const LanesKernels *simd;
  const char *from; /* the source and the results, of the first group */
  char *to;
  DType from_type, to_type;
  int64_t groups, group_step; /* of the user's weights */
  int64_t per, blocks;        /* groups of a vector; vectors for all groups */
  int64_t taps;               /* inputs and taps of the window */
  bool slides;
  int64_t reach[DIMS];             /* of the window */
  int64_t band[DIMS], bands[DIMS]; /* places of a task, one of the first dimension; tasks */
  int64_t rows, pitch;             /* of a copy; pitch in vectors */
  int64_t copy;                    /* floats */
  int64_t parts;
  int64_t *at;         /* floats, in a copy, of each input and tap */
  float *weights;      /* [block][taps][inputs][LANES]; gradients: `parts` of these */
  int64_t lane[LANES]; /* of the user's weights: elements from the first one of a block */
  int32_t index[MOST_INPUTS][LANES];
} Lanes;

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

static const LanesKernels *kernels(void) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  if (bits >= 512) return &lanes_avx512;
  if (bits >= 256) return &lanes_avx2;
#endif
  return NULL;
}

static int64_t groups_of_a_vector(const ConvWindows *w) {
  return MIN(LANES / w->depth, LANES / w->channels);
}

/* The taps of a window's row lie side by side. */
static bool slides(const ConvWindows *w) {
  return w->taps[2] > 1 && w->taps[2] <= SLIDE_COLUMNS && w->apart[2] == 1 &&
         w->stride[2] <= SLIDE_STEPS;
}

static void plan(Lanes *p, const ConvWindows *w) {
  int64_t taps = conv_volume(w->taps);
  p->taps = taps * w->channels;
  p->slides = slides(w);
  for (int i = 0; i < DIMS; i++) p->reach[i] = taps ? (w->taps[i] - 1) * w->apart[i] : 0;
  p->bands[2] = up(w->places[2], LONGEST_ROW);
  p->band[2] = up(w->places[2], p->bands[2]);
  p->pitch = (p->band[2] - 1) * w->stride[2] + p->reach[2] + 1;
  int64_t row = MAX(1, w->taps[0]) * w->channels * p->pitch * LANES,
          fits = (COPY_FLOATS / row - p->reach[1] - 1) / w->stride[1] + 1;
  p->bands[1] = up(w->places[1], MAX(1, fits));
  p->band[1] = up(w->places[1], p->bands[1]);
  p->band[0] = 1;
  for (int i = 0; i < DIMS; i++) p->bands[i] = up(w->places[i], p->band[i]);
  p->rows = (p->band[1] - 1) * w->stride[1] + p->reach[1] + 1;
  p->copy = p->rows * row;
  p->per = MIN(groups_of_a_vector(w), p->groups);
  p->blocks = up(p->groups, p->per);
  for (int64_t l = 0; l < p->per * w->depth; l++) {
    int64_t g = l / w->depth;
    p->lane[l] = g * p->group_step + l % w->depth * w->out_step;
    for (int64_t k = 0; k < w->channels; k++) p->index[k][l] = (int32_t)(g * w->channels + k);
  }
}

static void places_of_taps(const Lanes *p, int64_t *at) {
  const ConvWindows *w = p->w;
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t b = 0; b < w->taps[1]; b++)
      for (int64_t k = 0; k < w->channels; k++)
        for (int64_t d = 0; d < w->taps[2]; d++) {
          int64_t y = a * p->rows + b * w->apart[1];
          *at++ = ((y * w->channels + k) * p->pitch + d * w->apart[2]) * LANES;
        }
}

/* ---- weights, to and from where the user has them ---- */

static int64_t groups_of(const Lanes *p, int64_t block) {
  return MIN(p->per, p->groups - block * p->per);
}

static void move_weights(const Lanes *p, int64_t block, float *own, bool out) {
  const ConvWindows *w = p->w;
  int64_t lanes = groups_of(p, block) * w->depth;
  bool run = lanes == LANES;
  for (int l = 0; l < LANES; l++) run &= p->lane[l] == l;
  float *user = w->w + block * p->per * p->group_step;
  for (int64_t i = 0; i < p->taps; i++, own += LANES) {
    int64_t t = i / w->taps[2];
    float *at = user + i % w->taps[2] * w->tap_steps[2] + t % w->channels * w->in_step;
    t /= w->channels;
    at += t % w->taps[1] * w->tap_steps[1] + t / w->taps[1] * w->tap_steps[0];
    if (run) {
      memcpy(out ? at : own, out ? own : at, sizeof(float) * LANES);
      continue;
    }
    if (!out) memset(own, 0, sizeof(float) * LANES);
    for (int64_t l = 0; l < lanes; l++) {
      if (out) at[p->lane[l]] = own[l];
      else own[l] = at[p->lane[l]];
    }
  }
}

static void weights_in(void *arg, int64_t begin, int64_t end) { /* blocks */
  const Lanes *p = arg;
  for (int64_t b = begin; b < end; b++) move_weights(p, b, p->weights + b * p->taps * LANES, false);
}

static void weights_out(void *arg, int64_t begin, int64_t end) {
  const Lanes *p = arg;
  int64_t block = p->taps * LANES, all = p->blocks * block;
  for (int64_t b = begin; b < end; b++) {
    float *sum = p->weights + b * block;
    for (int64_t part = 1; part < p->parts; part++)
      for (int64_t i = 0; i < block; i++) sum[i] += sum[part * all + i];
    move_weights(p, b, sum, true);
  }
}

/* ---- bands ---- */

static void copy_source(const Lanes *p, const ConvBand *b, int64_t block, float *to) {
  const ConvWindows *w = p->w;
  int64_t size = dtype_bytes(p->from_type), begin[DIMS], row = p->pitch * LANES;
  for (int i = 0; i < DIMS; i++) begin[i] = b->place[i] * w->stride[i] - w->low[i];
  int64_t rows = (b->n[1] - 1) * w->stride[1] + p->reach[1] + 1,
          skip = MIN(p->pitch, MAX(0, -begin[2])),
          last = MAX(skip, MIN(p->pitch, w->size[2] - begin[2]));
  LanesSpread s = {.in = groups_of(p, block) * w->channels,
                   .inputs = w->channels,
                   .index = w->channels * w->depth > 1 ? p->index : NULL,
                   .apart = row};
  int64_t first = b->image * w->image_step + block * p->per * w->channels;
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t r = 0; r < p->rows; r++, to += w->channels * row) {
      int64_t z = begin[0] + a * w->apart[0], y = begin[1] + r;
      if (r >= rows) continue; /* of the last band: nobody reads them */
      if (z < 0 || z >= w->size[0] || y < 0 || y >= w->size[1] || last == skip) {
        memset(to, 0, sizeof(float) * (size_t)(w->channels * row));
        continue;
      }
      for (int64_t k = 0; k < w->channels; k++) {
        memset(to + k * row, 0, sizeof(float) * (size_t)(skip * LANES));
        memset(to + k * row + last * LANES, 0, sizeof(float) * (size_t)((p->pitch - last) * LANES));
      }
      int64_t at = first + z * w->steps[0] + y * w->steps[1] + (begin[2] + skip) * w->steps[2];
      lanes_spread(&s, p->from_type, p->from + at * size, w->steps[2], last - skip,
                   to + skip * LANES);
    }
}

static char *results_at(const Lanes *p, const ConvBand *b, int64_t block) {
  const ConvWindows *w = p->w;
  int64_t at = b->image * w->to_image + block * p->per * w->depth;
  for (int i = 0; i < DIMS; i++) at += b->place[i] * w->to_steps[i];
  return p->to + at * dtype_bytes(p->to_type);
}

static void results(void *arg, int64_t begin, int64_t end) { /* (band, block) */
  const Lanes *p = arg;
  const ConvWindows *w = p->w;
  float *copy = cpu_scratch(sizeof(float) * (size_t)(p->copy + p->band[2] * LANES));
  char *row = (char *)(copy + p->copy);
  int64_t size = dtype_bytes(p->to_type), step = w->to_steps[2];
  for (int64_t i = begin; i < end; i++) {
    ConvBand b = conv_band(p->w, p->bands, p->band, i / p->blocks);
    int64_t block = i % p->blocks, lanes = groups_of(p, block) * w->depth;
    copy_source(p, &b, block, copy);
    bool direct = lanes == LANES;
    char *to = results_at(p, &b, block);
    for (int64_t r = 0; r < b.n[1]; r++, to += w->to_steps[1] * size) {
      const float *from = copy + r * w->stride[1] * w->channels * p->pitch * LANES;
      const float *weights = p->weights + block * p->taps * LANES;
      bool half = p->to_type == DT_BF16;
      if (p->slides)
        p->simd->slide(b.n[2], w->taps[2], w->stride[2], from, p->at, p->taps, weights, half,
                       direct ? to : row, direct ? step : LANES);
      else
        p->simd->results(b.n[2], w->stride[2] * LANES, from, p->at, p->taps, weights, half,
                         direct ? to : row, direct ? step : LANES);
      for (int64_t c = 0; c < b.n[2] && !direct; c++)
        memcpy(to + c * step * size, row + c * LANES * size, (size_t)(lanes * size));
    }
  }
}

static void weight_parts(void *arg, int64_t begin, int64_t end) { /* (part, block) */
  const Lanes *p = arg;
  const ConvWindows *w = p->w;
  int64_t all = w->images * conv_volume(p->bands), y_floats = p->band[1] * p->band[2] * LANES;
  float *copy = cpu_scratch(sizeof(float) * (size_t)(p->copy + y_floats)), *own = copy + p->copy;
  for (int64_t i = begin; i < end; i++) {
    int64_t part = i / p->blocks, block = i % p->blocks, lanes = groups_of(p, block) * w->depth;
    bool direct = lanes == LANES && p->to_type == DT_F32;
    LanesSpread s = {.in = lanes};
    float *sums = p->weights + i * p->taps * LANES;
    memset(sums, 0, sizeof(float) * (size_t)(p->taps * LANES));
    for (int64_t k = all * part / p->parts; k < all * (part + 1) / p->parts; k++) {
      ConvBand b = conv_band(p->w, p->bands, p->band, k);
      copy_source(p, &b, block, copy);
      const char *y = results_at(p, &b, block);
      for (int64_t r = 0; !direct && r < b.n[1]; r++)
        lanes_spread(&s, p->to_type, y + r * w->to_steps[1] * dtype_bytes(p->to_type),
                     w->to_steps[2], b.n[2], own + r * b.n[2] * LANES);
      p->simd->weights(
          b.n[1], w->stride[1] * w->channels * p->pitch * LANES, b.n[2], w->stride[2] * LANES, copy,
          p->at, p->taps, direct ? (const float *)(const void *)y : own,
          direct ? w->to_steps[1] : b.n[2] * LANES, direct ? w->to_steps[2] : LANES, sums);
    }
  }
}

/* ---- both ---- */

typedef struct Job {
  const ConvShape *s;
  void *const *data;
} Job;

/* One remainder. false: no memory. */
static bool run(void *arg, const ConvWindows *w) {
  const Job *j = arg;
  const ConvShape *s = j->s;
  int from = s->form == CONV_DATA ? Y : X, to = s->form == CONV_DATA ? X : Y;
  bool gradients = s->form == CONV_WEIGHTS;
  Lanes p = {.w = w,
             .simd = kernels(),
             .from_type = s->t[from],
             .to_type = s->t[to],
             .groups = s->groups,
             .group_step = s->v[W].strides[0]};
  p.from = conv_at(j->data[from], w->from, p.from_type);
  p.to = conv_at(j->data[to], w->to, p.to_type);
  plan(&p, w);
  int64_t bands = w->images * conv_volume(p.bands);
  p.parts = gradients ? MIN(bands, up(PARTS, p.blocks)) : 1;
  size_t places = (sizeof(int64_t) * (size_t)p.taps + 63) & ~(size_t)63,
         bytes = places + sizeof(float) * (size_t)(p.parts * p.blocks * p.taps * LANES);
  char *memory = cpu_block_alloc(bytes + 64);
  if (!memory) return false;
  p.at = (int64_t *)(void *)memory;
  p.weights = (float *)(void *)(memory + places);
  places_of_taps(&p, p.at);
  int64_t some = MAX(1, 16384 / (p.taps * LANES + 1));
  double work = (double)(p.taps + 4) * (double)(p.band[1] * p.band[2]); /* vectors, of a task */
  if (gradients) {
    cpu_parallel(p.parts * p.blocks, 1, weight_parts, &p);
    cpu_parallel(p.blocks, some, weights_out, &p);
  } else {
    cpu_parallel(p.blocks, some, weights_in, &p);
    cpu_parallel(bands * p.blocks, MAX(1, (int64_t)(2e4 / work)), results, &p);
  }
  cpu_block_free(memory, bytes + 64);
  return true;
}

/* Of f32 that is not widened, the copy wants many taps for each element of it that is read, and for
 * results whose taps lie apart more registers than AVX2 has. */
bool conv_lanes_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (!kernels() || s->groups == 1 || s->swapped || n < 1 || n > DIMS) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  if (w.channels > 1 || w.depth > 1)
    return MAX(w.channels, w.depth) <= MOST_INPUTS &&
           MIN(groups_of_a_vector(&w), s->groups) * w.depth >= LANES / 2;
  if (s->t[X] == DT_BF16 || s->t[Y] == DT_BF16) return true;
  int64_t taps = conv_volume(w.taps), steps = conv_volume(w.stride);
  if (s->form == CONV_FORWARD && slides(&w)) return taps >= DENSE_TAPS;
  return taps >= DENSE_TAPS * steps &&
         (s->form == CONV_WEIGHTS || slides(&w) || cpu_vector_bits() >= 512);
}

bool conv_lanes_run(const ConvShape *s, void *const *data) {
  ConvWindows w = conv_windows(s, data, 0);
  Job j = {s, data};
  return conv_residues(&w, s->form == CONV_DATA, run, &j);
}
