/* Convolutions by Winograd's algorithms F(4x4, 3x3) and F(4x4, 2x2): Lavin and Gray, "Fast
 * Algorithms for Convolutional Neural Networks", 2015. 36 multiplications for 16 results of 9 taps
 * instead of 144, 25 of 4 taps instead of 64; winograd.h says how other windows, steps and gaps
 * come to these. The points 0, 1, -1, 1/2, -2 (Barabasz et al., "Error Analysis and Improving the
 * Accuracy of Winograd Convolution", 2020) keep the error near that of direct sums: 1e-6 to 4e-6 of
 * the results' deviation for 64 to 512 channels, against 1e-6.
 * An infinity or NaN would spread to the 16 results of its tiles: then the caller is told, and sums
 * up directly.
 *
 *   forward and data   result = sum over shifts and channels of source (*) kernel
 *   weights            kernel = sum over images and places of source (*) result
 *
 * Kernels are transformed once. Results of few channels are made in blocks of tiles whose transforms
 * fit a core's own cache: a task takes a block through all steps. Else images are taken in chunks of
 * tiles whose transforms fit a core's share of the larger caches; within a chunk the transforms are
 * one parallel step, the products (36 small ones, with the way back for results) the next.
 * Everything is divided by size, sums run in the order of the tiles: results do not depend on the
 * number of threads. */
#include <stdatomic.h>

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/conv/winograd.h"

#define BLOCK 48                       /* tiles of a task at most; a multiple of every `rows` */
#define BLOCK_LEAST 24                 /* these are worth a pass over all kernels */
#define BLOCK_BYTES ((int64_t)460000)  /* of transforms, in a core's own cache */
#define BLOCKS 16                      /* at least, for tasks that take all steps */
#define GROUP 4                        /* panels of results of a task */
#define CHUNK_BYTES ((int64_t)6 << 20) /* of transforms */
#define MANY_GROUPS 8                  /* these are tasks of their own */
#define CHUNK_TILES 192                /* at least, where a pass over all kernels follows */

typedef struct Images {
  char *p;
  DType type;
  int64_t size;                                   /* bytes of an element */
  int64_t channels, image_step, steps[WINO_DIMS]; /* elements */
} Images;

typedef struct Job {
  WinoAxis axes[WINO_DIMS];
  const WinoSimd *simd;
  bool weights;
  Images source, result;
  float
      *kernel; /* elements from channel to channel of the result, of the source, from tap to tap */
  int64_t out_step, in_step, tap_steps[WINO_DIMS];
  int taps; /* of the algorithm */
  int64_t images, tiles, shifts;
  int64_t in_panels, out_panels; /* of channels; all shifts' */
  bool whole;                    /* chunks are blocks, each a task */
  int64_t block;                 /* tiles */
  int64_t chunk, first, n;       /* tiles of a chunk; of this one: [first, first + n) */
  float *in, *out, *kernels;     /* transforms */
  int64_t in_place, out_place, panel, kernel_place; /* steps */
  const float *zeros;
  atomic_bool odd; /* something is not finite */
} Job;

static int64_t up_to(int64_t n, int64_t m) { return (n + m - 1) / m * m; }

/* Places along the dimensions, n of them from `at` on, a step apart. */
typedef struct Lines {
  int64_t at[WINO_DIMS], step[WINO_DIMS];
} Lines;

/* Of a tile: its results, or what shift `shift` of them reads; gives the image. */
static int64_t lines_of(const Job *j, int64_t tile, int64_t shift, Lines *l) {
  for (int d = WINO_DIMS - 1; d >= 0; d--) {
    const WinoAxis *a = &j->axes[d];
    int64_t all = a->lanes * a->tiles, lane = tile % all / a->tiles,
            place = tile % a->tiles * a->out;
    if (shift < 0) {
      l->at[d] = a->first + lane + place * a->step;
      l->step[d] = a->step;
    } else {
      l->at[d] = a->shift[shift % a->n].at + lane + place * a->source_step;
      l->step[d] = a->source_step;
      shift /= a->n;
    }
    tile /= all;
  }
  return tile;
}

/* Pointers to rows x n pixels. */
static void pixels(const Images *im, int64_t image, const Lines *l, const int64_t *size, int rows,
                   int n, const void *outside, const void **to) {
  bool exists = l->at[0] >= 0 && l->at[0] < size[0];
  int64_t base = image * im->image_step + (exists ? l->at[0] * im->steps[0] : 0);
  for (int i = 0; i < rows; i++) {
    int64_t y = l->at[1] + i * l->step[1];
    bool row = exists && y >= 0 && y < size[1];
    for (int k = 0; k < n; k++) {
      int64_t x = l->at[2] + k * l->step[2];
      to[i * n + k] = row && x >= 0 && x < size[2]
                          ? im->p + (base + y * im->steps[1] + x * im->steps[2]) * im->size
                          : outside;
    }
  }
}

static void source_pixels(const Job *j, int64_t tile, int64_t shift, const void **to) {
  Lines l;
  int64_t image = lines_of(j, tile, shift, &l);
  int64_t size[] = {j->axes[0].source, j->axes[1].source, j->axes[2].source};
  pixels(&j->source, image, &l, size, j->simd->flat ? 1 : j->simd->in, j->simd->in, j->zeros, to);
}

static void result_pixels(const Job *j, int64_t tile, const void *outside, const void **to) {
  Lines l;
  int64_t image = lines_of(j, tile, -1, &l);
  int64_t size[] = {j->axes[0].result, j->axes[1].result, j->axes[2].result};
  pixels(&j->result, image, &l, size, j->simd->flat ? 1 : WINO_OUT, WINO_OUT, outside, to);
}

static int all_taps(const Job *j) { return j->simd->flat ? j->taps : j->taps * j->taps; }

/* Tap i of a shift's; NULL: it has not so many. */
static float *tap_at(const Job *j, int64_t shift, int i, float *kernel) {
  int of[] = {0, i / j->taps, i % j->taps};
  for (int d = WINO_DIMS - 1; d >= 0; d--) {
    const WinoAxis *a = &j->axes[d];
    const WinoShift *s = &a->shift[shift % a->n];
    if (of[d] >= s->taps) return NULL;
    kernel += (s->tap + of[d] * a->tap_step) * j->tap_steps[d];
    shift /= a->n;
  }
  return kernel;
}

/* ---- the steps; each task is a block of tiles, of the chunk or of panels ---- */

static void transform_in(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const void *p[BLOCK][WINO_PLACES];
  int64_t panels = j->in_panels / j->shifts;
  for (int64_t b = begin; b < end; b++) {
    int64_t t0 = b * j->block, n = MIN(j->block, j->n - t0);
    for (int64_t s = 0; s < j->shifts; s++) {
      for (int64_t t = 0; t < n; t++) source_pixels(j, j->first + t0 + t, s, p[t]);
      for (int64_t q = 0; q < panels; q++)
        for (int64_t t = 0; t < n; t++)
          j->simd->source[j->source.type == DT_BF16](
              p[t], q * PANEL, j->source.channels,
              j->in + (s * panels + q) * j->panel + (t0 + t) * PANEL, j->in_place);
    }
    if (!j->weights) continue;
    for (int64_t t = 0; t < n; t++) result_pixels(j, j->first + t0 + t, j->zeros, p[t]);
    for (int64_t q = 0; q < j->out_panels; q++)
      for (int64_t t = 0; t < n; t++)
        j->simd->gradient[j->result.type == DT_BF16](p[t], q * PANEL, j->result.channels,
                                                     j->out + q * j->panel + (t0 + t) * PANEL,
                                                     j->out_place);
  }
}

/* The kernels between panel q of the result and all of the source. */
static void kernels_in(const Job *j, int64_t q, float *to) {
  float taps[9][PANEL] __attribute__((aligned(64)));
  int64_t n = MIN(PANEL, j->result.channels - q * PANEL),
          channels = j->in_panels / j->shifts * PANEL;
  for (int64_t s = 0; s < j->shifts; s++) {
    memset(taps, 0, sizeof taps);
    for (int64_t c = 0; c < channels; c++, to += PANEL) {
      if (c == j->source.channels) memset(taps, 0, sizeof taps);
      for (int i = 0; i < all_taps(j) && c < j->source.channels; i++) {
        const float *tap = tap_at(j, s, i, j->kernel + q * PANEL * j->out_step + c * j->in_step);
        if (!tap) continue;
        if (n == PANEL && j->out_step == 1) memcpy(taps[i], tap, sizeof taps[i]);
        else
          for (int64_t k = 0; k < n; k++) taps[i][k] = tap[k * j->out_step];
      }
      j->simd->kernel(taps[0], to, j->kernel_place);
    }
  }
}

static void all_kernels_in(void *arg, int64_t begin, int64_t end) { /* panels of the result */
  const Job *j = arg;
  for (int64_t q = begin; q < end; q++)
    kernels_in(j, q, j->kernels + q * j->simd->places * j->kernel_place);
}

static int64_t sums_place(const Job *j) { return j->block * PANEL + PANEL; }

static size_t sums_floats(const Job *j) {
  return (size_t)(GROUP * j->simd->places * sums_place(j));
}

/* A block of tiles from t0 on times `many` panels of kernels, those of the result from `first` on.
 */
static bool multiply(const Job *j, int64_t t0, int64_t first, int64_t many, const float *kernels,
                     float *sums) {
  int64_t n = MIN(j->block, j->n - t0), places = j->simd->places, step = sums_place(j);
  const void *p[WINO_PLACES];
  bool finite = true;
  for (int64_t i = 0; i < places; i++)
    for (int64_t t = 0; t < n; t += j->simd->rows)
      j->simd->multiply(j->in + i * j->in_place + (t0 + t) * PANEL, j->panel, j->in_panels,
                        kernels + i * j->kernel_place, places * j->kernel_place,
                        sums + i * step + t * PANEL, places * step, many);
  for (int64_t t = 0; t < n; t++) {
    result_pixels(j, j->first + t0 + t, NULL, p);
    for (int64_t q = 0; q < many; q++)
      finite &= j->simd->result[j->result.type == DT_BF16](sums + q * places * step + t * PANEL,
                                                           step, (void *const *)(uintptr_t)p,
                                                           (first + q) * PANEL, j->result.channels);
  }
  return finite;
}

/* One group of panels of the result; `i` counts these and blocks of the chunk. */
static bool multiply_group(const Job *j, int64_t i, float *sums) {
  int64_t groups = (j->out_panels + GROUP - 1) / GROUP, first = i % groups * GROUP;
  return multiply(j, i / groups * j->block, first, MIN(GROUP, j->out_panels - first),
                  j->kernels + first * j->simd->places * j->kernel_place, sums);
}

static void blocks_and_groups(void *arg, int64_t begin, int64_t end) {
  Job *j = arg;
  float *sums = cpu_scratch(sizeof(float) * sums_floats(j));
  for (int64_t i = begin; i < end && !atomic_load(&j->odd); i++)
    if (!multiply_group(j, i, sums)) atomic_store(&j->odd, true);
}

/* All steps but the kernels', a block of tiles after the other. */
static void whole_blocks(void *arg, int64_t begin, int64_t end) {
  Job *all = arg, j = *all;
  float *sums =
      cpu_scratch(sizeof(float) * (sums_floats(&j) + (size_t)(j.simd->places * j.in_place)));
  j.in = sums + sums_floats(&j);
  for (int64_t b = begin; b < end && !atomic_load(&all->odd); b++) {
    j.first = b * j.block;
    j.n = MIN(j.block, j.tiles - j.first);
    transform_in(&j, 0, 1);
    for (int64_t i = 0; i * GROUP < j.out_panels; i++)
      if (!multiply_group(&j, i, sums)) atomic_store(&all->odd, true);
  }
}

static void outer(void *arg, int64_t begin, int64_t end) { /* (place, panel of the source) */
  const Job *j = arg;
  for (int64_t b = begin; b < end; b++) {
    int64_t i = b / j->in_panels, q = b % j->in_panels, step = j->out_panels * PANEL;
    float *to = j->kernels + i * j->kernel_place + q * PANEL * step;
    for (int64_t t = 0; t < j->n; t += WINO_SUM_TILES)
      j->simd->outer(j->in + i * j->in_place + q * j->panel + t * PANEL,
                     j->out + i * j->out_place + t * PANEL, j->panel, j->out_panels,
                     MIN(WINO_SUM_TILES, j->n - t), to, step, j->first + t > 0);
  }
}

static void kernels_out(void *arg, int64_t begin,
                        int64_t end) { /* (shift, channel of the source) */
  Job *j = arg;
  float taps[9][PANEL] __attribute__((aligned(64)));
  for (int64_t b = begin; b < end; b++)
    for (int64_t q = 0; q < j->out_panels; q++) {
      int64_t shift = b / j->source.channels, c = b % j->source.channels,
              row = shift * (j->in_panels / j->shifts) * PANEL + c,
              n = MIN(PANEL, j->result.channels - q * PANEL);
      if (!j->simd->kernel_back(j->kernels + (row * j->out_panels + q) * PANEL, j->kernel_place,
                                taps[0]))
        atomic_store(&j->odd, true);
      for (int i = 0; i < all_taps(j); i++) {
        float *tap = tap_at(j, shift, i, j->kernel + q * PANEL * j->out_step + c * j->in_step);
        for (int64_t k = 0; tap && k < n; k++) tap[k * j->out_step] = taps[i][k];
      }
    }
}

/* ---- both ---- */

static Images images_of(const ConvView *v, DType t, void *p) {
  int64_t size = dtype_bytes(t);
  Images im = {
      .p = (char *)p + v->offset * size, .type = t, .size = size, .image_step = v->strides[0]};
  for (int d = 0; d < v->n - 2; d++) im.steps[WINO_DIMS - (v->n - 2) + d] = v->strides[2 + d];
  return im;
}

/* How tiles are divided. */
static void divide(Job *j) {
  int64_t rows = j->simd->rows, tile = j->simd->places * PANEL * 4, /* bytes of a panel */
      fits = BLOCK_BYTES / (tile * j->in_panels) / rows * rows;
  j->block = MIN(BLOCK, fits);
  j->whole = !j->weights && j->block >= BLOCK_LEAST &&
             (j->tiles >= BLOCKS * j->block || j->out_panels <= GROUP);
  j->chunk = j->block;
  if (j->whole) return;
  j->block = BLOCK;
  fits = CHUNK_BYTES / (tile * (j->in_panels + (j->weights ? j->out_panels : 0))) / BLOCK * BLOCK;
  j->chunk =
      MIN(up_to(j->tiles, rows), MAX(fits, j->weights || j->in_panels > 8 ? CHUNK_TILES : BLOCK));
}

/* One block of memory: zeros, transforms of the source, of results or kernels. Steps between places
 * are odd multiples of a cache line, or 36 lines written together would share a few places of the
 * first cache. */
static void *prepare(Job *j, size_t *bytes) {
  int64_t places = j->simd->places;
  divide(j);
  j->panel = j->chunk * PANEL;
  j->in_place = j->in_panels * j->panel + PANEL;
  j->out_place = j->out_panels * j->panel + PANEL;
  j->kernel_place = j->in_panels * PANEL * (j->weights ? j->out_panels * PANEL : PANEL) + PANEL;
  int64_t zeros = up_to(MAX(j->source.channels, j->result.channels), PANEL),
          in = j->whole ? 0 : places * j->in_place, out = j->weights ? places * j->out_place : 0,
          kernels = places * j->kernel_place * (j->weights ? 1 : j->out_panels);
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

/* One group, one remainder. false: no memory. */
static bool run(Job *j) {
  j->tiles = j->shifts = 1;
  for (int d = 0; d < WINO_DIMS; d++) {
    j->tiles *= j->axes[d].lanes * j->axes[d].tiles;
    j->shifts *= j->axes[d].n;
  }
  j->tiles *= j->images;
  j->in_panels = j->shifts * ((j->source.channels + PANEL - 1) / PANEL);
  j->out_panels = (j->result.channels + PANEL - 1) / PANEL;
  size_t bytes;
  void *memory = prepare(j, &bytes);
  if (!memory) return false;
  if (!j->weights) cpu_parallel(j->out_panels, 1, all_kernels_in, j);
  if (j->whole) {
    cpu_parallel((j->tiles + j->block - 1) / j->block, 1, whole_blocks, j);
    cpu_block_free(memory, bytes);
    return true;
  }
  for (j->first = 0; j->first < j->tiles && !atomic_load(&j->odd); j->first += j->chunk) {
    j->n = MIN(j->chunk, j->tiles - j->first);
    int64_t blocks = (j->n + j->block - 1) / j->block;
    cpu_parallel(blocks, 1, transform_in, j);
    if (j->weights) cpu_parallel(j->simd->places * j->in_panels, 1, outer, j);
    else cpu_parallel(blocks * ((j->out_panels + GROUP - 1) / GROUP), 1, blocks_and_groups, j);
  }
  if (j->weights) cpu_parallel(j->shifts * j->source.channels, 8, kernels_out, j);
  cpu_block_free(memory, bytes);
  return true;
}

typedef struct Groups {
  const ConvShape *s;
  const WinoPlan *plan;
  Job like; /* of the first */
  atomic_bool failed, odd;
} Groups;

static void groups(void *arg, int64_t begin, int64_t end) {
  Groups *x = arg;
  for (int64_t g = begin; g < end && !atomic_load(&x->odd); g++) {
    Job j = x->like;
    j.source.p += g * j.source.channels * j.source.size;
    j.result.p += g * j.result.channels * j.result.size;
    j.kernel += g * x->s->v[W].strides[0];
    for (int r = 0; r < x->plan->runs; r++)
      if (wino_axes(x->s, x->plan, r, j.axes) && !run(&j)) atomic_store(&x->failed, true);
    if (atomic_load(&j.odd)) atomic_store(&x->odd, true);
  }
}

bool conv_winograd_run(const ConvShape *shape, void *const *data, bool *finite) {
  WinoPlan plan;
  ConvShape turned = *shape;
  const ConvShape *s = &turned;
  wino_plan(&turned, &plan);
  bool back = s->form == CONV_DATA;
  int from = back ? Y : X, to = back ? X : Y;
  const ConvView *w = &s->v[W];
  Job j = {.simd = wino_simd(plan.taps, plan.flat),
           .taps = plan.taps,
           .weights = s->form == CONV_WEIGHTS,
           .images = s->v[X].dims[0],
           .source = images_of(&s->v[from], s->t[from], data[from]),
           .result = images_of(&s->v[to], s->t[to], data[to]),
           .kernel = (float *)data[W] + w->offset,
           .out_step = w->strides[back ? 2 : 1],
           .in_step = w->strides[back ? 1 : 2]};
  j.source.channels = w->dims[back ? 1 : 2];
  j.result.channels = w->dims[back ? 2 : 1];
  for (int d = 0; d < w->n - 3; d++) j.tap_steps[WINO_DIMS - (w->n - 3) + d] = w->strides[3 + d];
  Groups x = {.s = s, .plan = &plan, .like = j};
  cpu_parallel(s->groups, s->groups < MANY_GROUPS ? s->groups : 1, groups, &x);
  *finite = !atomic_load(&x.odd);
  return !atomic_load(&x.failed);
}
