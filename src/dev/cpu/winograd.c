/* Convolutions with windows of 3 x 3 and step 1 by Winograd's algorithm F(4x4, 3x3): Lavin and
 * Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. 36 multiplications for 16
 * results instead of 144. The points 0, 1, -1, 1/2, -2 (Barabasz et al., "Error Analysis and
 * Improving the Accuracy of Winograd Convolution", 2020) keep the error near that of direct sums:
 * 1e-6 to 4e-6 of the results' deviation for 64 to 512 channels, against 1e-6.
 * An infinity or NaN spreads to the 16 results of its tiles.
 *
 *   forward and data   result = sum over channels of source (*) kernel
 *   weights            kernel = sum over images and places of source (*) result
 *
 * Images are taken in chunks of tiles whose transforms fit a core's share of the caches. Within a
 * chunk the transforms are one parallel step, the products (36 small ones, with the way back for
 * results) the next. Kernels are transformed once. Everything is divided by size, sums run in the
 * order of the tiles: results do not depend on the number of threads. */
#include "dev/cpu/conv.h"
#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/winograd_simd.h"

#define BLOCK 48                       /* tiles of a task; a multiple of every `rows` */
#define GROUP 4                        /* panels of results of a task */
#define CHUNK_BYTES ((int64_t)6 << 20) /* of transforms */
#define CHUNK_TILES 192                /* at least, where a pass over all kernels follows */

typedef struct Images {
  int64_t height, width, channels;
  int64_t image_step, row_step, pixel_step; /* elements */
} Images;

typedef struct Winograd {
  int64_t images;
  Images source, result;
  int64_t top, left; /* the window of result (0, 0) starts this much outside the source */
  /* Of the kernel: elements from channel to channel of the result, of the source, and from tap to
   * tap; negative when it is turned round. */
  int64_t out_step, in_step, tap_steps[2];
} Winograd;

typedef struct Job {
  const Winograd *w;
  const WinoSimd *simd;
  const float *source, *zeros;
  float *result;
  float *kernel;
  int64_t down, across, tiles;   /* tiles of an image: down * across */
  int64_t in_panels, out_panels; /* of channels */
  int64_t chunk, first, n;       /* tiles of a chunk; of this one: [first, first + n) */
  float *in, *out, *kernels;     /* transforms */
  int64_t in_place, out_place, panel, kernel_place; /* steps */
  bool weights;
} Job;

static int64_t up_to(int64_t n, int64_t m) { return (n + m - 1) / m * m; }

/* Pointers to the size x size pixels of a tile whose first one is `at` rows and columns from 4 x
 * its place. */
static void pixels(const Job *j, const Images *im, const float *base, int64_t tile, int size,
                   int64_t up, int64_t left, const float *outside, const float **to) {
  int64_t per = j->down * j->across, image = tile / per, at = tile % per;
  int64_t y = at / j->across * WINO_OUT - up, x = at % j->across * WINO_OUT - left;
  base += image * im->image_step;
  for (int i = 0; i < size; i++)
    for (int k = 0; k < size; k++)
      to[i * size + k] = y + i >= 0 && y + i < im->height && x + k >= 0 && x + k < im->width
                             ? base + (y + i) * im->row_step + (x + k) * im->pixel_step
                             : outside;
}

/* ---- the steps; each task is a block of tiles, of the chunk or of panels ---- */

static void transform_in(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const float *p[BLOCK][WINO_PLACES];
  for (int64_t b = begin; b < end; b++) {
    int64_t t0 = b * BLOCK, n = MIN(BLOCK, j->n - t0);
    for (int64_t t = 0; t < n; t++)
      pixels(j, &j->w->source, j->source, j->first + t0 + t, WINO_IN, j->w->top, j->w->left,
             j->zeros, p[t]);
    for (int64_t q = 0; q < j->in_panels; q++)
      for (int64_t t = 0; t < n; t++)
        j->simd->source(p[t], q * PANEL, j->w->source.channels,
                        j->in + q * j->panel + (t0 + t) * PANEL, j->in_place);
    if (!j->weights) continue;
    for (int64_t t = 0; t < n; t++)
      pixels(j, &j->w->result, j->result, j->first + t0 + t, WINO_OUT, 0, 0, j->zeros, p[t]);
    for (int64_t q = 0; q < j->out_panels; q++)
      for (int64_t t = 0; t < n; t++)
        j->simd->gradient(p[t], q * PANEL, j->w->result.channels,
                          j->out + q * j->panel + (t0 + t) * PANEL, j->out_place);
  }
}

/* The kernels between panel q of the result and all of the source. */
static void kernels_in(const Job *j, int64_t q, float *to) {
  const Winograd *w = j->w;
  float taps[9][PANEL] __attribute__((aligned(64))) = {{0}};
  int64_t n = MIN(PANEL, w->result.channels - q * PANEL);
  for (int64_t c = 0; c < j->in_panels * PANEL; c++) {
    const float *from = j->kernel + q * PANEL * w->out_step + c * w->in_step;
    if (c >= w->source.channels) memset(taps, 0, sizeof taps);
    else
      for (int i = 0; i < 9; i++) {
        const float *tap = from + i / 3 * w->tap_steps[0] + i % 3 * w->tap_steps[1];
        if (n == PANEL && w->out_step == 1) memcpy(taps[i], tap, sizeof taps[i]);
        else
          for (int64_t k = 0; k < n; k++) taps[i][k] = tap[k * w->out_step];
      }
    j->simd->kernel(taps[0], to + c * PANEL, j->kernel_place);
  }
}

static void all_kernels_in(void *arg, int64_t begin, int64_t end) { /* panels of the result */
  const Job *j = arg;
  for (int64_t q = begin; q < end; q++)
    kernels_in(j, q, j->kernels + q * WINO_PLACES * j->kernel_place);
}

#define SUMS_PLACE (BLOCK * PANEL + PANEL)

/* A block of tiles from t0 on times `many` panels of kernels, those of the result from `first` on.
 */
static void multiply(const Job *j, int64_t t0, int64_t first, int64_t many, const float *kernels,
                     float *sums) {
  int64_t n = MIN(BLOCK, j->n - t0);
  const float *p[WINO_PLACES];
  for (int64_t i = 0; i < WINO_PLACES; i++)
    for (int64_t q = 0; q < many; q++)
      for (int64_t t = 0; t < n; t += j->simd->rows)
        j->simd->multiply(j->in + i * j->in_place + (t0 + t) * PANEL, j->panel, j->in_panels,
                          kernels + (q * WINO_PLACES + i) * j->kernel_place,
                          sums + (q * WINO_PLACES + i) * SUMS_PLACE + t * PANEL);
  for (int64_t t = 0; t < n; t++) {
    pixels(j, &j->w->result, j->result, j->first + t0 + t, WINO_OUT, 0, 0, NULL, p);
    for (int64_t q = 0; q < many; q++)
      j->simd->result(sums + q * WINO_PLACES * SUMS_PLACE + t * PANEL, SUMS_PLACE,
                      (float *const *)(uintptr_t)p, (first + q) * PANEL, j->w->result.channels);
  }
}

static void blocks_and_groups(void *arg, int64_t begin,
                              int64_t end) { /* (block, group of panels) */
  const Job *j = arg;
  int64_t groups = (j->out_panels + GROUP - 1) / GROUP;
  float *sums = cpu_scratch(sizeof(float) * (size_t)(GROUP * WINO_PLACES * SUMS_PLACE));
  for (int64_t b = begin; b < end; b++) {
    int64_t first = b % groups * GROUP;
    multiply(j, b / groups * BLOCK, first, MIN(GROUP, j->out_panels - first),
             j->kernels + first * WINO_PLACES * j->kernel_place, sums);
  }
}

static void outer(void *arg, int64_t begin, int64_t end) { /* (place, panel of the source) */
  const Job *j = arg;
  for (int64_t b = begin; b < end; b++) {
    int64_t i = b / j->in_panels, q = b % j->in_panels, step = j->out_panels * PANEL;
    float *to = j->kernels + i * j->kernel_place + q * PANEL * step;
    for (int64_t k = 0; k < j->out_panels; k++)
      j->simd->outer(j->in + i * j->in_place + q * j->panel,
                     j->out + i * j->out_place + k * j->panel, j->n, to + k * PANEL, step,
                     j->first > 0);
  }
}

static void kernels_out(void *arg, int64_t begin, int64_t end) { /* channels of the source */
  const Job *j = arg;
  const Winograd *w = j->w;
  float taps[9][PANEL] __attribute__((aligned(64)));
  for (int64_t c = begin; c < end; c++)
    for (int64_t q = 0; q < j->out_panels; q++) {
      int64_t n = MIN(PANEL, w->result.channels - q * PANEL);
      j->simd->kernel_back(j->kernels + (c * j->out_panels + q) * PANEL, j->kernel_place, taps[0]);
      float *to = j->kernel + q * PANEL * w->out_step + c * w->in_step;
      for (int i = 0; i < 9; i++) {
        float *tap = to + i / 3 * w->tap_steps[0] + i % 3 * w->tap_steps[1];
        for (int64_t k = 0; k < n; k++) tap[k * w->out_step] = taps[i][k];
      }
    }
}

/* ---- both ---- */

static Images images_of(const ConvView *v) {
  return (Images){.height = v->dims[2],
                  .width = v->dims[3],
                  .channels = v->dims[1],
                  .image_step = v->strides[0],
                  .row_step = v->strides[2],
                  .pixel_step = v->strides[3]};
}

static Winograd winograd_of(const ConvShape *s) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  bool data = s->form ==
              CONV_DATA; /* a convolution of Y with the kernel turned round, in and out exchanged */
  return (Winograd){
      .images = x->dims[0],
      .source = images_of(data ? y : x),
      .result = images_of(data ? x : y),
      .top = data ? 2 - s->low[0] : s->low[0],
      .left = data ? 2 - s->low[1] : s->low[1],
      .out_step = w->strides[data ? 2 : 1],
      .in_step = w->strides[data ? 1 : 2],
      .tap_steps = {data ? -w->strides[3] : w->strides[3], data ? -w->strides[4] : w->strides[4]}};
}

static void measure(const Winograd *w, Job *j) {
  j->w = w;
  j->down = (w->result.height + WINO_OUT - 1) / WINO_OUT;
  j->across = (w->result.width + WINO_OUT - 1) / WINO_OUT;
  j->tiles = w->images * j->down * j->across;
  j->in_panels = (w->source.channels + PANEL - 1) / PANEL;
  j->out_panels = (w->result.channels + PANEL - 1) / PANEL;
}

bool conv_winograd_fits(const ConvShape *s) {
  const ConvView *w = &s->v[W];
  if (s->v[X].n != 4 || s->groups != 1 || w->dims[3] != 3 || w->dims[4] != 3 ||
      !wino_simd(jit_vector_bits()))
    return false;
  for (int i = 0; i < 2; i++)
    if (s->strides[i] != 1 || s->dilates[i] != 0) return false;
  Winograd g = winograd_of(s);
  Job j;
  measure(&g, &j);
  if (g.source.channels < PANEL || g.result.channels < PANEL) return false;
  double direct = 9.0 * (double)g.images * (double)(g.result.height * g.result.width);
  double channels = (double)(g.source.channels * g.result.channels);
  double filled = channels / (double)(j.in_panels * j.out_panels * PANEL * PANEL);
  return direct * filled > 1.6 * WINO_PLACES * (double)j.tiles && direct * channels > 1e6;
}

/* One block of memory: zeros, transforms of the source, of results or kernels. Steps between places
 * are odd multiples of a cache line, or 36 lines written together would share a few places of the
 * first cache. */
static void *prepare(Job *j, bool weights, size_t *bytes) {
  int64_t rows = j->simd->rows,
          per_tile = WINO_PLACES * PANEL * (j->in_panels + (weights ? j->out_panels : 0));
  int64_t fits = CHUNK_BYTES / 4 / per_tile / BLOCK * BLOCK;
  j->weights = weights;
  j->chunk =
      MIN(up_to(j->tiles, rows), MAX(fits, weights || j->in_panels > 8 ? CHUNK_TILES : BLOCK));
  j->panel = j->chunk * PANEL;
  j->in_place = j->in_panels * j->panel + PANEL;
  j->out_place = j->out_panels * j->panel + PANEL;
  j->kernel_place = j->in_panels * PANEL * (weights ? j->out_panels * PANEL : PANEL) + PANEL;
  int64_t zeros = up_to(MAX(j->w->source.channels, j->w->result.channels), PANEL),
          in = WINO_PLACES * j->in_place, out = weights ? WINO_PLACES * j->out_place : 0,
          kernels = WINO_PLACES * j->kernel_place * (weights ? 1 : j->out_panels);
  *bytes = sizeof(float) * (size_t)(zeros + in + out + kernels);
  float *p = cpu_block_alloc(*bytes);
  if (!p) return NULL;
  memset(p, 0, sizeof(float) * (size_t)zeros);
  j->zeros = p;
  j->in = p + zeros;
  j->out = j->in + in;
  j->kernels = j->out + out;
  return p;
}

bool conv_winograd_run(const ConvShape *s, float *const *data) {
  Winograd w = winograd_of(s);
  bool weights = s->form == CONV_WEIGHTS, turned = s->form == CONV_DATA;
  float *p[3];
  for (int i = 0; i < 3; i++) p[i] = data[i] + s->v[i].offset;
  if (turned) p[W] -= 2 * (w.tap_steps[0] + w.tap_steps[1]);
  Job j = {.simd = wino_simd(jit_vector_bits()),
           .source = p[turned ? Y : X],
           .result = p[turned ? X : Y],
           .kernel = p[W]};
  measure(&w, &j);
  size_t bytes;
  void *memory = prepare(&j, weights, &bytes);
  if (!memory) return false;
  if (!weights) cpu_parallel(j.out_panels, 1, all_kernels_in, &j);
  for (j.first = 0; j.first < j.tiles; j.first += j.chunk) {
    j.n = MIN(j.chunk, j.tiles - j.first);
    int64_t blocks = (j.n + BLOCK - 1) / BLOCK;
    cpu_parallel(blocks, 1, transform_in, &j);
    if (weights) cpu_parallel(WINO_PLACES * j.in_panels, 1, outer, &j);
    else cpu_parallel(blocks * ((j.out_panels + GROUP - 1) / GROUP), 1, blocks_and_groups, &j);
  }
  if (weights) cpu_parallel(w.source.channels, 8, kernels_out, &j);
  cpu_block_free(memory, bytes);
  return true;
}
