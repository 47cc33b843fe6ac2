/* Convolutions of few channels, and of groups of few: vectors run along places. The source's rows
 * under a band of results are copied with their padding, each channel by itself and each remainder
 * of the step by itself, so that every element of a window is one distance away for all places of
 * the band, rows together: between rows lie as many superfluous places as the window is wide.
 *
 *   results   for all elements of the window: result += element * weight
 *   weights   for all elements of the window: sum over places of element * Y, PARTS of the bands
 *             added in order; superfluous places have Y = 0
 *
 * Any order of dimensions is read and written where it lies. */
#include "dev/cpu/conv/conv_planar.h"

#include <stdatomic.h>

#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/kernel/transpose8.h"

#define DIMS CONV_DIMS
#define PARTS 16
#define SLACK 128           /* elements after a copy, zero */
#define COPY_ELEMENTS 32768 /* of the source, at a time */
#define BAND_ELEMENTS 32768 /* of results */
#define MOST_PLACES 1024    /* of a band */
#define LEAST_PLACES 256
#define LONGEST_ROW 512

typedef struct Planar {
  const ConvWindows *first; /* of the first group */
  const PlanarKernels *simd;
  int64_t groups, group_step, taps; /* group_step: of the user's weights */
  int64_t remainders[DIMS];         /* of the steps: those that are copied */
  int64_t halo[DIMS];               /* places of a copy more than of the band */
  int64_t band[DIMS];               /* places of a task: one of the first dimension */
  int64_t bands[DIMS];
  int64_t n, pitch, channel; /* elements: of a band, of its rows, of a channel's copy */
  int64_t together;          /* channels copied together */
  int64_t *at, *rest;        /* of the taps of these; of those of the channels that are left */
  float *weights; /* [group][channels/together][taps][together][depth]; gradients: PARTS of these */
} Planar;

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* ---- what is copied ---- */

static void plan(Planar *p, const ConvWindows *w) {
  p->taps = conv_volume(w->taps);
  for (int i = 0; i < DIMS; i++) {
    p->remainders[i] = 1;
    p->halo[i] = 0;
    for (int64_t t = 0; t < w->taps[i]; t++) {
      int64_t far = t * w->apart[i];
      p->remainders[i] = MAX(p->remainders[i], far % w->stride[i] + 1);
      p->halo[i] = MAX(p->halo[i], far / w->stride[i]);
    }
  }
  int64_t most = MAX(LEAST_PLACES, MIN(MOST_PLACES, BAND_ELEMENTS / w->depth));
  p->band[0] = 1;
  p->bands[2] = up(w->places[2], LONGEST_ROW);
  p->band[2] = up(w->places[2], p->bands[2]);
  p->pitch = p->band[2] + p->halo[2];
  p->bands[1] = up(w->places[1], MAX(1, most / p->pitch));
  p->band[1] = up(w->places[1], p->bands[1]);
  p->bands[0] = w->places[0];
  for (int i = 1; i < DIMS; i++) p->bands[i] = up(w->places[i], p->band[i]);
  p->n = up((p->band[1] - 1) * p->pitch + p->band[2], p->simd->lanes) * p->simd->lanes;
  p->channel =
      w->taps[0] * p->remainders[1] * p->remainders[2] * (p->band[1] + p->halo[1]) * p->pitch;
  p->together = MAX(1, MIN(w->channels, COPY_ELEMENTS / MAX(1, p->channel)));
}

/* Channels innermost: sums are rounded as a product over [taps][channels] would be. */
static void places_of_taps(const Planar *p, const ConvWindows *w, int64_t channels, int64_t *at) {
  int64_t rows = p->band[1] + p->halo[1];
  for (int64_t a = 0; a < w->taps[0]; a++)
    for (int64_t b = 0; b < w->taps[1]; b++)
      for (int64_t d = 0; d < w->taps[2]; d++)
        for (int64_t c = 0; c < channels; c++) {
          int64_t y = b * w->apart[1], x = d * w->apart[2];
          int64_t copy =
              (a * p->remainders[1] + y % w->stride[1]) * p->remainders[2] + x % w->stride[2];
          *at++ = c * p->channel + (copy * rows + y / w->stride[1]) * p->pitch + x / w->stride[2];
        }
}

typedef struct Band {
  int64_t group, image, place[DIMS], n[DIMS]; /* places */
} Band;

static Band band_at(const Planar *p, int64_t task) {
  Band b;
  for (int i = DIMS - 1; i >= 0; i--) {
    b.place[i] = task % p->bands[i] * p->band[i];
    b.n[i] = MIN(p->band[i], p->first->places[i] - b.place[i]);
    task /= p->bands[i];
  }
  b.image = task % p->first->images;
  b.group = task / p->first->images;
  return b;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* to[c * to_step + i] = from[i * from_step + c], 8 x 8 */
__attribute__((target("avx2"))) static void turn8(const float *from, int64_t from_step, float *to,
                                                  int64_t to_step) {
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(from + i * from_step);
  transpose8_store(r, to, to_step);
}

static void turn4(const float *from, int64_t from_step, float *to, int64_t to_step) {
  __m128 r[4];
  for (int i = 0; i < 4; i++) r[i] = _mm_loadu_ps(from + i * from_step);
  _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
  for (int i = 0; i < 4; i++) _mm_storeu_ps(to + i * to_step, r[i]);
}
#else
static void turn4(const float *from, int64_t from_step, float *to, int64_t to_step) {
  for (int c = 0; c < 4; c++)
    for (int i = 0; i < 4; i++) to[c * to_step + i] = from[i * from_step + c];
}

static void turn8(const float *from, int64_t from_step, float *to, int64_t to_step) {
  for (int c = 0; c < 8; c++)
    for (int i = 0; i < 8; i++) to[c * to_step + i] = from[i * from_step + c];
}
#endif

/* to[c * to_channel + i * to_step] = from[i * from_step + c * from_channel] */
static void turn(const float *from, int64_t from_step, int64_t from_channel, int64_t n,
                 int64_t channels, float *to, int64_t to_step, int64_t to_channel) {
  if (from_step == 1 && to_step == 1) {
    for (int64_t c = 0; c < channels; c++)
      memcpy(to + c * to_channel, from + c * from_channel, sizeof(float) * (size_t)n);
    return;
  }
  int64_t c = 0;
  bool in = from_channel == 1 && to_step == 1, out = from_step == 1 && to_channel == 1;
  for (int64_t wide; (in || out) && c + 4 <= channels; c += wide) {
    wide = c + 8 <= channels ? 8 : 4;
    void (*square)(const float *, int64_t, float *, int64_t) = wide == 8 ? turn8 : turn4;
    int64_t i = 0;
    for (; i + wide <= n; i += wide) {
      if (in) square(from + i * from_step + c, from_step, to + c * to_channel + i, to_channel);
      else square(from + i + c * from_channel, from_channel, to + c + i * to_step, to_step);
    }
    for (; i < n; i++)
      for (int64_t k = c; k < c + wide; k++)
        to[k * to_channel + i * to_step] = from[i * from_step + k * from_channel];
  }
  for (; c < channels; c++)
    for (int64_t i = 0; i < n; i++)
      to[c * to_channel + i * to_step] = from[i * from_step + c * from_channel];
}

/* Channels [c, c + channels) of the source under a band. */
static void copy_source(const Planar *p, const ConvWindows *w, const Band *b, int64_t c,
                        int64_t channels, float *to) {
  int64_t rows = p->band[1] + p->halo[1];
  int64_t begin[DIMS];
  for (int i = 0; i < DIMS; i++) begin[i] = b->place[i] * w->stride[i] - w->low[i];
  const float *from = w->from + b->image * w->image_step + c * w->channel_step;
  for (int64_t a = 0; a < w->taps[0]; a++) {
    int64_t z = begin[0] + a * w->apart[0];
    for (int64_t q = 0; q < p->remainders[1]; q++)
      for (int64_t r = 0; r < p->remainders[2]; r++)
        for (int64_t i = 0; i < rows; i++, to += p->pitch) {
          int64_t y = begin[1] + q + i * w->stride[1];
          int64_t x = begin[2] + r, step = w->stride[2];
          int64_t skip = x < 0 ? MIN(p->pitch, up(-x, step)) : 0,
                  last = MAX(skip, MIN(p->pitch, up(w->size[2] - x, step)));
          bool inside = z >= 0 && z < w->size[0] && y >= 0 && y < w->size[1];
          if (!inside) skip = last = p->pitch;
          for (int64_t k = 0; k < channels && (skip > 0 || last < p->pitch); k++) {
            memset(to + k * p->channel, 0, sizeof(float) * (size_t)skip);
            memset(to + k * p->channel + last, 0, sizeof(float) * (size_t)(p->pitch - last));
          }
          if (last == skip) continue;
          turn(from + z * w->steps[0] + y * w->steps[1] + (x + skip * step) * w->steps[2],
               step * w->steps[2], w->channel_step, last - skip, channels, to + skip, 1,
               p->channel);
        }
  }
}

/* ---- tasks are bands ---- */

static ConvWindows group_at(const Planar *p, int64_t group) {
  ConvWindows w = *p->first;
  w.from += group * w.channels * w.channel_step;
  w.to += group * w.depth * w.to_channel;
  w.w += group * p->group_step;
  return w;
}

static void results(void *arg, int64_t begin, int64_t end) {
  const Planar *p = arg;
  const ConvWindows *first = p->first;
  size_t copy = (size_t)(p->together * p->channel + SLACK), sums = (size_t)(first->depth * p->n);
  float *source = cpu_scratch(sizeof(float) * (copy + sums)), *sum = source + copy;
  memset(source, 0, sizeof(float) * copy);
  for (int64_t task = begin; task < end; task++) {
    Band b = band_at(p, task);
    ConvWindows w = group_at(p, b.group);
    const float *weights = p->weights + b.group * w.channels * p->taps * w.depth;
    for (int64_t c = 0, many; c < w.channels; c += many) {
      many = MIN(p->together, w.channels - c);
      copy_source(p, &w, &b, c, many, source);
      p->simd->results(source, many == p->together ? p->at : p->rest, many * p->taps,
                       weights + c * p->taps * w.depth, w.depth, p->n, c > 0, sum, p->n);
    }
    float *to = w.to + b.image * w.to_image;
    for (int i = 0; i < DIMS; i++) to += b.place[i] * w.to_steps[i];
    for (int64_t r = 0; r < b.n[1]; r++)
      turn(sum + r * p->pitch, 1, p->n, b.n[2], w.depth, to + r * w.to_steps[1], w.to_steps[2],
           w.to_channel);
  }
}

static void weight_parts(void *arg, int64_t begin, int64_t end) {
  const Planar *p = arg;
  const ConvWindows *first = p->first;
  int64_t tasks = p->groups * first->images * conv_volume(p->bands),
          size = p->groups * first->channels * p->taps * first->depth;
  size_t copy = (size_t)(p->together * p->channel + SLACK), of_y = (size_t)(first->depth * p->n);
  float *source = cpu_scratch(sizeof(float) * (copy + of_y)), *y = source + copy;
  memset(source, 0, sizeof(float) * copy);
  for (int64_t part = begin; part < end; part++) {
    memset(p->weights + part * size, 0, sizeof(float) * (size_t)size);
    for (int64_t task = tasks * part / PARTS; task < tasks * (part + 1) / PARTS; task++) {
      Band b = band_at(p, task);
      ConvWindows w = group_at(p, b.group);
      const float *from = w.to + b.image * w.to_image;
      for (int i = 0; i < DIMS; i++) from += b.place[i] * w.to_steps[i];
      memset(y, 0, sizeof(float) * of_y);
      for (int64_t r = 0; r < b.n[1]; r++)
        turn(from + r * w.to_steps[1], w.to_steps[2], w.to_channel, b.n[2], w.depth,
             y + r * p->pitch, 1, p->n);
      float *sums = p->weights + part * size + b.group * w.channels * p->taps * w.depth;
      for (int64_t c = 0, many; c < w.channels; c += many) {
        many = MIN(p->together, w.channels - c);
        copy_source(p, &w, &b, c, many, source);
        p->simd->weights(source, many == p->together ? p->at : p->rest, many * p->taps, y, p->n,
                         p->n, w.depth, sums + c * p->taps * w.depth);
      }
    }
  }
}

/* ---- both ---- */

/* The weights, in the order of Planar.weights, to or from where the user has them. */
static void move_weights(const Planar *p, const ConvWindows *w, float *own, bool out) {
  for (int64_t c0 = 0, many; c0 < w->channels; c0 += many) {
    many = MIN(p->together, w->channels - c0);
    for (int64_t i = 0; i < p->taps * many; i++) {
      int64_t t = i / many, c = c0 + i % many;
      int64_t x = t % w->taps[2], y = t / w->taps[2] % w->taps[1], z = t / w->taps[2] / w->taps[1];
      float *user =
          w->w + c * w->in_step + z * w->tap_steps[0] + y * w->tap_steps[1] + x * w->tap_steps[2];
      for (int64_t o = 0; o < w->depth; o++, own++) {
        if (out) user[o * w->out_step] = *own;
        else *own = user[o * w->out_step];
      }
    }
  }
}

typedef struct Job {
  const ConvShape *s;
  bool *finite;
} Job;

/* One remainder. false: no memory. */
static bool run(void *arg, const ConvWindows *w) {
  const Job *j = arg;
  bool gradients = j->s->form == CONV_WEIGHTS;
  Planar p = {.first = w,
              .simd = planar_kernels(),
              .groups = j->s->groups,
              .group_step = j->s->v[W].strides[0]};
  plan(&p, w);
  int64_t size = w->channels * p.taps * w->depth, all = p.groups * size;
  int64_t rest = w->channels % p.together;
  size_t places = sizeof(int64_t) * (size_t)((p.together + rest) * p.taps),
         bytes = places + sizeof(float) * (size_t)(all * (gradients ? PARTS : 1)) + 64;
  p.at = cpu_block_alloc(bytes);
  if (!p.at) return false;
  p.weights = (float *)(void *)((char *)p.at + places);
  p.rest = p.at + p.together * p.taps;
  places_of_taps(&p, w, p.together, p.at);
  places_of_taps(&p, w, rest, p.rest);
  int64_t tasks = p.groups * w->images * conv_volume(p.bands);
  double macs = (double)(w->channels * ((p.taps * w->depth + 4) * p.n));
  if (gradients) {
    cpu_parallel(PARTS, macs * (double)tasks < 2e5 ? PARTS : 1, weight_parts, &p);
    for (int64_t i = 1; i < PARTS; i++)
      for (int64_t k = 0; k < all; k++) p.weights[k] += p.weights[i * all + k];
    for (int64_t k = 0; k < all; k++) *j->finite &= p.weights[k] - p.weights[k] == 0;
  }
  for (int64_t g = 0; g < p.groups; g++) {
    ConvWindows at = group_at(&p, g);
    move_weights(&p, &at, p.weights + g * size, gradients);
  }
  if (!gradients) cpu_parallel(tasks, MAX(1, (int64_t)(2e5 / macs)), results, &p);
  cpu_block_free(p.at, bytes);
  return true;
}

#define LEAST_WORK 20000 /* multiplications: fewer are added up in order */
#define COPIED_DEPTH 16  /* so many results of a place hide what copies to channels last cost */
bool conv_planar_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (!planar_kernels() || n < 1 || n > DIMS || s->swapped) return false;
  const ConvView *x = &s->v[X], *y = &s->v[Y];
  ConvWindows w = conv_windows(s, NULL, 0);
  int64_t least = MIN(w.channels, w.depth), most = MAX(w.channels, w.depth);
  bool last = (x->strides[1] == 1 || x->dims[1] == 1) && (y->strides[1] == 1 || y->dims[1] == 1),
       rows = x->strides[n + 1] == 1 && y->strides[n + 1] == 1, steps = false;
  for (int i = 0; i < n; i++) steps |= s->strides[i] > 1;
  bool parts = steps && s->form == CONV_DATA; /* many small convolutions */
  if (conv_volume(w.taps) == 1 || conv_patches(s)) return false;
  double work = (double)w.channels * (double)w.depth * (double)conv_volume(w.taps);
  for (int i = 0; i < n + 2; i++) work *= i == 1 ? 1 : (double)y->dims[i];
  if (s->groups == 1 && work < LEAST_WORK) return false;
  if (s->groups > 1) {
    int64_t m = conv_merged(s);
    if (most == 1) return false; /* conv_depthwise.c, with copies where channels are not last */
    return most <= 4 || (least < 16 && (w.channels * m % 8 || w.depth * m % 8)) ||
           (rows && most <= 8 && !parts);
  }
  if (n < 3 && s->form == CONV_DATA && w.channels > 16 && w.depth < 8) return false;
  bool first = w.channels < 8 && w.depth >= 8; /* conv_rows.c */
  if (first && !parts && (last || (w.depth >= COPIED_DEPTH && w.channels > 1))) return false;
  /* vectors of 512 bits hold the channels as well as places that steps leave out */
  if (least >= 8 && n > 1 && steps && s->form != CONV_DATA && last && cpu_vector_bits() >= 512)
    return false;
  return least < 8 || (least < 16 && most <= 32) ||
         (n == 1 && most <= 32 && (w.channels % 8 || w.depth % 8));
}

bool conv_planar_run(const ConvShape *s, void *const *data, bool *finite) {
  ConvWindows w = conv_windows(s, data, 0);
  Job j = {s, finite};
  return conv_residues(&w, s->form == CONV_DATA, run, &j);
}
