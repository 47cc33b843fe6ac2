/* Depthwise convolutions and others of small groups, channels last. A vector holds LANES channels of
 * results, of as many whole groups as there is room for; each of its lanes needs the inputs of its
 * own group. So the source under a band of results is copied, with its padding, into vectors that
 * have them where they are needed, `inputs` vectors a pixel:
 *
 *   results   for all inputs and taps: result += copy * weights
 *   weights   for all inputs and taps: sum over places of copy * Y; whole vectors are read where they lie
 *
 * The copy costs little beside the taps that read it, and lies together where channels far apart
 * would share a few places of the first cache. One channel alone, whose pixels lie together, has as many places beside
 * each other in its lanes instead.
 *
 * X and Y are read and written as f32 or bf16 and summed in f32, or f64 all through. Gradients of weights are
 * summed in parts of the bands, added in order. */
#include "dev/cpu/conv/conv_depthwise.h"

#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define MOST_INPUTS 4 /* more would make the copy too large */
#define COPY_OF_TAP \
  2730 /* elements of a copy for each row of the window and input: few are copied twice */
#define LONGEST_ROW 128 /* vectors of a band */
#define TOGETHER 4      /* blocks of a task of gradients of weights */
#define IN_PLACE 0.6    /* of the places; where fewer have all taps inside, copies are faster */
#define PARTS 16        /* tasks that gradients of weights are divided in, about */
typedef struct Depthwise {
  const ConvWindows *w; /* of the first group */
  const LanesKernels *simd;
  bool f64, line;   /* line: of one channel */
  const char *from; /* the source, the results and the user's weights, of the first group */
  char *to, *user;
  DType from_type, to_type;
  int64_t size;               /* of an element in sums and weights */
  int64_t groups, group_step; /* of the user's weights */
  int64_t per, blocks;        /* groups of a vector; vectors for all groups */
  int64_t taps;               /* inputs and taps of the window */
  bool slides;
  int64_t reach[DIMS];             /* of the window */
  int64_t band[DIMS], bands[DIMS]; /* places of a task, one of the first dimension; tasks */
  int64_t pixel, row;              /* elements of a copy: from pixel to pixel, and row to row */
  int64_t rows, copy;              /* of a copy; elements */
  int64_t parts;
  int64_t *at;                      /* elements, in a copy, of each input and tap */
  int64_t *in_place;                /* the same in the source */
  const ConvStretch *stretch[DIMS]; /* each ends with one of no places */
  bool where_it_lies;               /* gradients: the source is not copied */
  char *weights;                    /* [block][taps][inputs][LANES]; gradients: `parts` of these */
  int64_t lane[LANES]; /* of the user's weights: elements from the first one of a block */
  int32_t index[MOST_INPUTS][LANES];
} Depthwise;

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* ---- the plan ---- */

static int64_t groups_of_a_vector(const ConvWindows *w) {
  return MIN(LANES / w->depth, LANES / w->channels);
}

/* The taps of a window's row lie side by side. */
static bool slides(const ConvWindows *w) {
  return w->taps[2] > 1 && w->taps[2] <= SLIDE_COLUMNS && w->apart[2] == 1 &&
         w->stride[2] <= SLIDE_STEPS;
}

static void plan_bands(Depthwise *p) {
  const ConvWindows *w = p->w;
  int64_t longest = p->line ? LONGEST_ROW * LANES : LONGEST_ROW,
          most = COPY_OF_TAP * MAX(3, w->taps[1]) * w->channels;
  p->bands[2] = up(w->places[2], longest);
  p->band[2] = up(w->places[2], p->bands[2]);
  p->row = p->line ? up(p->band[2], LANES) * LANES + p->reach[2]
                   : ((p->band[2] - 1) * w->stride[2] + p->reach[2] + 1) * LANES;
  int64_t row = MAX(1, w->taps[0]) * w->channels * p->row,
          fits = (most / row - p->reach[1] - 1) / w->stride[1] + 1;
  p->bands[1] = up(w->places[1], MAX(1, fits));
  p->band[1] = up(w->places[1], p->bands[1]);
  p->band[0] = 1;
  for (int i = 0; i < DIMS; i++) p->bands[i] = up(w->places[i], p->band[i]);
  p->rows = (p->band[1] - 1) * w->stride[1] + p->reach[1] + 1;
  p->copy = p->rows * row;
}

static void plan(Depthwise *p) {
  const ConvWindows *w = p->w;
  int64_t taps = conv_volume(w->taps);
  p->taps = taps * w->channels;
  p->pixel = p->line ? 1 : LANES;
  p->slides = p->simd->slide && !p->line && slides(w);
  for (int i = 0; i < DIMS; i++) p->reach[i] = taps ? (w->taps[i] - 1) * w->apart[i] : 0;
  p->per = MIN(groups_of_a_vector(w), p->groups);
  p->blocks = up(p->groups, p->per);
  plan_bands(p);
  for (int64_t l = 0; l < p->per * w->depth; l++) {
    int64_t g = l / w->depth;
    p->lane[l] = g * p->group_step + l % w->depth * w->out_step;
    for (int64_t k = 0; k < w->channels; k++) p->index[k][l] = (int32_t)(g * w->channels + k);
  }
}

static void places_of_taps(const Depthwise *p) {
  const ConvWindows *w = p->w;
  int64_t *at = p->at, *in = p->in_place;
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t b = 0; b < w->taps[1]; b++)
      for (int64_t k = 0; k < w->channels; k++)
        for (int64_t d = 0; d < w->taps[2]; d++) {
          int64_t y = a * p->rows + b * w->apart[1];
          *at++ = (y * w->channels + k) * p->row + d * w->apart[2] * p->pixel;
          *in++ = a * w->apart[0] * w->steps[0] + b * w->apart[1] * w->steps[1] +
                  d * w->apart[2] * w->steps[2];
        }
}

static void find_stretches(Depthwise *p, ConvStretch *to) {
  for (int d = 0; d < DIMS; d++) {
    p->stretch[d] = to;
    for (int64_t at = 0; at < p->w->places[d]; at += to++->n) *to = conv_stretch(p->w, d, at);
    *to++ = (ConvStretch){0};
  }
}

/* ---- weights, to and from where the user has them ---- */

static int64_t groups_of(const Depthwise *p, int64_t block) {
  return MIN(p->per, p->groups - block * p->per);
}

/* One tap, of so many lanes; of a line all of them are the one. */
static void move_tap(const Depthwise *p, int64_t lanes, char *at, char *own, bool out) {
  int64_t size = p->size;
  if (!out) memset(own, 0, (size_t)(LANES * size));
  for (int64_t l = 0; l < (p->line && !out ? LANES : lanes); l++) {
    char *user = at + p->lane[p->line ? 0 : l] * size, *mine = own + l * size;
    if (size == 4) memcpy(out ? user : mine, out ? mine : user, 4);
    else memcpy(out ? user : mine, out ? mine : user, 8);
  }
}

static void move_weights(const Depthwise *p, int64_t block, char *own, bool out) {
  const ConvWindows *w = p->w;
  int64_t lanes = groups_of(p, block) * w->depth, size = p->size;
  bool run = lanes == LANES;
  for (int l = 0; l < LANES; l++) run &= p->lane[l] == l;
  for (int64_t i = 0; i < p->taps; i++, own += LANES * size) {
    int64_t t = i / w->taps[2], at = block * p->per * p->group_step;
    at += i % w->taps[2] * w->tap_steps[2] + t % w->channels * w->in_step;
    t /= w->channels;
    at += t % w->taps[1] * w->tap_steps[1] + t / w->taps[1] * w->tap_steps[0];
    char *user = p->user + at * size;
    if (run) memcpy(out ? user : own, out ? own : user, (size_t)(LANES * size));
    else move_tap(p, lanes, user, own, out);
  }
}

static void weights_in(void *arg, int64_t begin, int64_t end) { /* blocks */
  const Depthwise *p = arg;
  for (int64_t b = begin; b < end; b++)
    move_weights(p, b, p->weights + b * p->taps * LANES * p->size, false);
}

/* a += b; of a line all lanes to the first. */
#define ADD(T)                                                        \
  static void add_##T(void *a, const void *b, int64_t n) {            \
    for (int64_t i = 0; i < n; i++) ((T *)a)[i] += ((const T *)b)[i]; \
  }                                                                   \
  static void join_##T(void *a, int64_t taps) {                       \
    T *sum = a;                                                       \
    for (int64_t t = 0; t < taps; t++, sum += LANES)                  \
      for (int l = 1; l < LANES; l++) sum[0] += sum[l];               \
  }
ADD(float)
ADD(double)

static void weights_out(void *arg, int64_t begin, int64_t end) {
  const Depthwise *p = arg;
  int64_t n = p->taps * LANES, all = p->blocks * n * p->size;
  for (int64_t b = begin; b < end; b++) {
    char *sum = p->weights + b * n * p->size;
    for (int64_t part = 1; part < p->parts; part++)
      (p->f64 ? add_double : add_float)(sum, sum + part * all, n);
    if (p->line) (p->f64 ? join_double : join_float)(sum, p->taps);
    move_weights(p, b, sum, true);
  }
}

/* ---- bands of results, and what lies under them ---- */

/* n pixels of a row of the source, or of Y. */
static void copy_pixels(const Depthwise *p, const LanesSpread *s, DType t, const char *from,
                        int64_t step, int64_t n, char *to) {
  if (p->line) memcpy(to, from, (size_t)(n * p->size));
  else lanes_spread(s, t, from, step, n, to);
}

static void copy_source(const Depthwise *p, const ConvBand *b, int64_t block, char *to) {
  const ConvWindows *w = p->w;
  int64_t begin[DIMS], row = p->row * p->size, pixel = p->pixel * p->size;
  for (int i = 0; i < DIMS; i++) begin[i] = b->place[i] * w->stride[i] - w->low[i];
  int64_t rows = (b->n[1] - 1) * w->stride[1] + p->reach[1] + 1,
          wide = p->line ? p->row : (b->n[2] - 1) * w->stride[2] + p->reach[2] + 1,
          skip = MIN(wide, MAX(0, -begin[2])), last = MAX(skip, MIN(wide, w->size[2] - begin[2]));
  LanesSpread s = {.in = groups_of(p, block) * w->channels,
                   .inputs = w->channels,
                   .index = w->channels * w->depth > 1 ? p->index : NULL,
                   .apart = p->row};
  int64_t first = b->image * w->image_step + block * p->per * w->channels;
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t r = 0; r < p->rows; r++, to += w->channels * row) {
      int64_t z = begin[0] + a * w->apart[0], y = begin[1] + r;
      if (r >= rows) continue; /* of the last band: nobody reads them */
      bool none = z < 0 || z >= w->size[0] || y < 0 || y >= w->size[1] || last == skip;
      int64_t before = none ? wide : skip, after = none ? wide : last;
      for (int64_t k = 0; k < w->channels; k++) {
        memset(to + k * row, 0, (size_t)(before * pixel));
        memset(to + k * row + after * pixel, 0, (size_t)((wide - after) * pixel));
      }
      if (none) continue;
      int64_t at = first + z * w->steps[0] + y * w->steps[1] + (begin[2] + skip) * w->steps[2];
      copy_pixels(p, &s, p->from_type, p->from + at * dtype_bytes(p->from_type), w->steps[2],
                  last - skip, to + skip * pixel);
    }
}

static char *results_at(const Depthwise *p, const ConvBand *b, int64_t block) {
  const ConvWindows *w = p->w;
  int64_t at = b->image * w->to_image + block * p->per * w->depth;
  for (int i = 0; i < DIMS; i++) at += b->place[i] * w->to_steps[i];
  return p->to + at * dtype_bytes(p->to_type);
}

/* Vectors in a row of a band. */
static int64_t vectors(const Depthwise *p, const ConvBand *b) {
  return p->line ? up(b->n[2], LANES) : b->n[2];
}

/* In a copy, from place to place in elements, and row to row. */
static int64_t step_of(const Depthwise *p) { return p->line ? LANES : p->w->stride[2] * LANES; }
static int64_t row_of(const Depthwise *p) { return p->w->stride[1] * p->w->channels * p->row; }

/* ---- results ---- */

static void result_band(const Depthwise *p, const ConvBand *b, int64_t block, char *copy) {
  const ConvWindows *w = p->w;
  const char *weights = p->weights + block * p->taps * LANES * p->size, *from = copy;
  int64_t size = dtype_bytes(p->to_type), lanes = groups_of(p, block) * w->depth, n = vectors(p, b);
  bool half = p->to_type == DT_BF16, direct = lanes == LANES;
  char *to = results_at(p, b, block), *own = copy + p->copy * p->size;
  int64_t to_step = direct ? w->to_steps[2] : LANES;
  copy_source(p, b, block, copy);
  for (int64_t r = 0; r < b->n[1]; r++, to += w->to_steps[1] * size, from += row_of(p) * p->size) {
    char *row = direct ? to : own;
    if (p->slides)
      p->simd->slide(n, w->taps[2], w->stride[2], from, p->at, p->taps, weights, half, row,
                     to_step);
    else p->simd->results(n, step_of(p), from, p->at, p->taps, weights, half, row, to_step);
    if (direct) continue;
    if (p->line) memcpy(to, own, (size_t)(b->n[2] * size));
    for (int64_t c = 0; c < n && !p->line; c++)
      memcpy(to + c * w->to_steps[2] * size, own + c * LANES * size, (size_t)(lanes * size));
  }
}

static void results(void *arg, int64_t begin, int64_t end) { /* (band, block) */
  const Depthwise *p = arg;
  char *copy = cpu_scratch((size_t)((p->copy + (p->band[2] + LANES) * LANES) * p->size));
  for (int64_t i = begin; i < end; i++) {
    ConvBand b = conv_band(p->w, p->bands, p->band, i / p->blocks);
    result_band(p, &b, i % p->blocks, copy);
  }
}

/* ---- gradients of weights ---- */

static void copied_band(const Depthwise *p, const ConvBand *b, int64_t block, char *copy,
                        char *sums) {
  const ConvWindows *w = p->w;
  int64_t lanes = groups_of(p, block) * w->depth, n = vectors(p, b), size = dtype_bytes(p->to_type);
  const char *y = results_at(p, b, block);
  char *own = copy + p->copy * p->size;
  bool direct = lanes == LANES && size == p->size;
  LanesSpread s = {.in = lanes};
  copy_source(p, b, block, copy);
  for (int64_t r = 0; !direct && r < b->n[1]; r++) {
    char *row = own + r * n * LANES * p->size;
    if (p->line) memset(row + b->n[2] * p->size, 0, (size_t)((n * LANES - b->n[2]) * p->size));
    copy_pixels(p, &s, p->to_type, y + r * w->to_steps[1] * size, w->to_steps[2], b->n[2], row);
  }
  LanesGrid g = {.rows = b->n[1],
                 .places = n,
                 .row = row_of(p),
                 .step = step_of(p),
                 .y_row = direct ? w->to_steps[1] : n * LANES,
                 .y_step = direct ? w->to_steps[2] : LANES,
                 .blocks = 1};
  p->simd->weights(&g, copy, p->at, p->taps, direct ? y : own, sums);
}

/* Vectors that are a pixel's channels as they are need not be copied: the places of a band are taken in parts, each
 * with the taps that it has inside the source. */
static bool lies_well(const Depthwise *p) {
  const ConvWindows *w = p->w;
  double inner = 1;
  if (p->line || w->channels * w->depth > 1 || dtype_bytes(p->from_type) != p->size ||
      dtype_bytes(p->to_type) != p->size)
    return false;
  for (int d = 0; d < DIMS; d++)
    for (const ConvStretch *s = p->stretch[d]; s->n; s++)
      if (s->taps == w->taps[d]) inner *= (double)s->n / (double)w->places[d];
  return inner > IN_PLACE;
}

static void add_part(const Depthwise *p, int64_t image, const ConvStretch *part, int64_t block,
                     int64_t blocks, char *sums) {
  const ConvWindows *w = p->w;
  LanesGrid g = {.rows = part[1].n,
                 .places = part[2].n,
                 .row = w->stride[1] * w->steps[1],
                 .step = w->stride[2] * w->steps[2],
                 .y_row = w->to_steps[1],
                 .y_step = w->to_steps[2],
                 .blocks = blocks,
                 .w_step = p->taps * LANES};
  int64_t from = image * w->image_step + block * LANES, to = image * w->to_image + block * LANES,
          all = w->taps[2];
  for (int d = 0; d < DIMS; d++) {
    from += (part[d].first * w->stride[d] - w->low[d]) * w->steps[d];
    to += part[d].first * w->to_steps[d];
  }
  int64_t rows =
      part[2].taps == all ? part[1].taps : 1; /* of the window, whose taps follow each other */
  for (int64_t a = part[0].tap; a < part[0].tap + part[0].taps; a++)
    for (int64_t b = part[1].tap; b < part[1].tap + part[1].taps; b += rows) {
      int64_t t = (a * w->taps[1] + b) * all + part[2].tap;
      p->simd->weights(&g, p->from + from * p->size, p->in_place + t,
                       (rows - 1) * all + part[2].taps, p->to + to * p->size,
                       sums + t * LANES * p->size);
    }
}

static ConvStretch cut(const ConvStretch *s, const ConvBand *b, int d) {
  ConvStretch r = *s;
  int64_t end = MIN(s->first + s->n, b->place[d] + b->n[d]);
  r.first = MAX(s->first, b->place[d]), r.n = end - r.first;
  return r;
}

static void add_parts(const Depthwise *p, const ConvBand *b, int64_t block, int64_t blocks,
                      char *sums) {
  const ConvStretch *const *all = p->stretch;
  ConvStretch s[DIMS];
  for (const ConvStretch *z = all[0]; z->n; z++)
    for (const ConvStretch *y = all[1]; y->n; y++)
      for (const ConvStretch *x = all[2]; x->n; x++) {
        s[0] = cut(z, b, 0), s[1] = cut(y, b, 1), s[2] = cut(x, b, 2);
        if (s[0].n > 0 && s[1].n > 0 && s[2].n > 0) add_part(p, b->image, s, block, blocks, sums);
      }
}

static void weight_band(const Depthwise *p, const ConvBand *b, int64_t first, int64_t last,
                        char *copy, char *sums) {
  int64_t full = p->where_it_lies ? last - (groups_of(p, last - 1) < LANES) : first;
  if (full > first) add_parts(p, b, first, full - first, sums);
  for (int64_t i = full; i < last; i++)
    copied_band(p, b, i, copy, sums + (i - first) * p->taps * LANES * p->size);
}

static void weight_parts(void *arg, int64_t begin, int64_t end) { /* (part, blocks) */
  const Depthwise *p = arg;
  int64_t all = p->w->images * conv_volume(p->bands), bytes = p->taps * LANES * p->size,
          y = p->band[1] * (p->band[2] + LANES) * LANES, many = up(p->blocks, TOGETHER);
  char *copy = cpu_scratch((size_t)((p->copy + y) * p->size));
  for (int64_t i = begin; i < end; i++) {
    int64_t part = i / many, first = i % many * TOGETHER, last = MIN(first + TOGETHER, p->blocks);
    char *sums = p->weights + (part * p->blocks + first) * bytes;
    memset(sums, 0, (size_t)((last - first) * bytes));
    for (int64_t k = all * part / p->parts; k < all * (part + 1) / p->parts; k++) {
      ConvBand b = conv_band(p->w, p->bands, p->band, k);
      weight_band(p, &b, first, last, copy, sums);
    }
  }
}

/* ---- both ---- */

typedef struct Job {
  const ConvShape *s;
  void *const *data;
} Job;

static bool is_f64(const ConvShape *s) {
  return s->t[X] == DT_F64 && s->t[W] == DT_F64 && s->t[Y] == DT_F64;
}

/* One channel, its pixels together in the source and Y. */
static bool is_line(const ConvShape *s, const ConvWindows *w) {
  return s->groups == 1 && w->channels == 1 && w->depth == 1 && w->steps[2] == 1 &&
         w->to_steps[2] == 1 && w->stride[2] == 1;
}

/* One remainder. false: no memory. */
static bool run(void *arg, const ConvWindows *w) {
  const Job *j = arg;
  const ConvShape *s = j->s;
  int from = s->form == CONV_DATA ? Y : X, to = s->form == CONV_DATA ? X : Y;
  bool gradients = s->form == CONV_WEIGHTS, f64 = is_f64(s);
  Depthwise p = {.w = w,
                 .simd = lanes_kernels(f64),
                 .f64 = f64,
                 .line = s->groups == 1,
                 .size = f64 ? 8 : 4,
                 .from_type = s->t[from],
                 .to_type = s->t[to],
                 .groups = s->groups,
                 .group_step = s->v[W].strides[0]};
  p.from = conv_at(j->data[from], w->from, p.from_type);
  p.to = conv_at(j->data[to], w->to, p.to_type);
  p.user = conv_at(j->data[W], w->w, s->t[W]);
  plan(&p);
  int64_t bands = w->images * conv_volume(p.bands);
  p.parts = gradients ? MIN(bands, up(PARTS, up(p.blocks, TOGETHER))) : 1;
  int64_t stretches = 2 * (w->taps[0] + w->taps[1] + w->taps[2]) + 2 * DIMS;
  size_t lists =
             (2 * sizeof(int64_t) * (size_t)p.taps + sizeof(ConvStretch) * (size_t)stretches + 63) &
             ~(size_t)63,
         bytes = lists + (size_t)(p.parts * p.blocks * p.taps * LANES * p.size);
  char *memory = cpu_block_alloc(bytes + 64);
  if (!memory) return false;
  p.at = (int64_t *)(void *)memory;
  p.in_place = p.at + p.taps;
  p.weights = memory + lists;
  if (gradients) {
    find_stretches(&p, (ConvStretch *)(p.in_place + p.taps));
    p.where_it_lies = lies_well(&p);
  }
  places_of_taps(&p);
  int64_t some = MAX(1, 16384 / (p.taps * LANES + 1));
  double work = (double)(p.taps + 4) * (double)(p.band[1] * p.band[2]); /* vectors, of a task */
  if (gradients) {
    cpu_parallel(p.parts * up(p.blocks, TOGETHER), 1, weight_parts, &p);
    cpu_parallel(p.blocks, some, weights_out, &p);
  } else {
    cpu_parallel(p.blocks, some, weights_in, &p);
    cpu_parallel(bands * p.blocks, MAX(1, (int64_t)(2e4 / work)), results, &p);
  }
  cpu_block_free(memory, bytes + 64);
  return true;
}

bool conv_depthwise_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  bool any_f64 = s->t[X] == DT_F64 || s->t[W] == DT_F64 || s->t[Y] == DT_F64;
  if (s->swapped || n < 1 || n > DIMS || any_f64 != is_f64(s)) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  if (s->groups == 1) return is_f64(s) && is_line(s, &w); /* of f32: conv_planar.c */
  if (w.channels > 1 || w.depth > 1)
    return MAX(w.channels, w.depth) <= MOST_INPUTS &&
           MIN(groups_of_a_vector(&w), s->groups) * w.depth >= LANES / 2;
  return true;
}

bool conv_depthwise_run(const ConvShape *s, void *const *data) {
  ConvWindows w = conv_windows(s, data, 0);
  Job j = {s, data};
  return conv_residues(&w, s->form == CONV_DATA, run, &j);
}
