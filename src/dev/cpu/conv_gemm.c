/* Convolutions as products (gemm.h) of windows that are gathered straight into its panels: [places,
 * window x channels] times the weights [window x channels, channels of the result]. Gradients of
 * weights are the windows, transposed, times Y. Gradients of images are convolutions of Y, one for
 * each residue of the place by the steps: those taps of the window that hit it, backwards. */
#include "dev/cpu/conv.h"
#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/gemm.h"

#define DIMS 3
#define GATHERED 4096 /* elements of windows copied at a time, before they are packed */
#define MIN_MACS 1e5  /* smaller ones are not worth it */

typedef struct Windows { /* all dimensions: outer ones of size 1 before those that there are */
  const float *from;
  int64_t image_step, pixel_step, steps[DIMS]; /* elements */
  int64_t size[DIMS], places[DIMS];            /* of the source, of results */
  int64_t taps[DIMS], stride[DIMS], apart[DIMS], low[DIMS];
  int64_t channels;
  bool runs; /* a row of a window lies together */
  float *to; /* results */
  int64_t to_image, to_steps[DIMS];
} Windows;

typedef struct Spot {
  int64_t image, of[DIMS]; /* counts */
  int64_t at[DIMS];        /* where the window begins in the source */
} Spot;

static Spot place_at(const Windows *w, int64_t place) {
  Spot p;
  for (int i = DIMS - 1; i >= 0; i--) {
    p.of[i] = place % w->places[i];
    p.at[i] = p.of[i] * w->stride[i] - w->low[i];
    place /= w->places[i];
  }
  p.image = place;
  return p;
}

static void next_place(const Windows *w, Spot *p) {
  for (int i = DIMS - 1; i >= 0; i--) {
    p->at[i] += w->stride[i];
    if (++p->of[i] < w->places[i]) return;
    p->of[i] = 0;
    p->at[i] = -w->low[i];
  }
  p->image++;
}

typedef struct Element { /* of a window */
  int64_t tap[DIMS], channel;
} Element;

static Element element_at(const Windows *w, int64_t i) {
  Element e = {.channel = i % w->channels};
  i /= w->channels;
  for (int d = DIMS - 1; d >= 0; d--) {
    e.tap[d] = i % w->taps[d];
    i /= w->taps[d];
  }
  return e;
}

/* n elements of a place's window, from one on; zeros outside the source. */
static void window(const Windows *w, const Spot *p, Element e, int64_t n, float *to) {
  const float *image = w->from + p->image * w->image_step;
  bool whole = w->runs && p->at[2] >= 0 && p->at[2] + w->taps[2] <= w->size[2];
  while (n > 0) {
    const float *row = image;
    bool inside = true;
    for (int i = 0; i < DIMS - 1; i++) {
      int64_t y = p->at[i] + e.tap[i] * w->apart[i];
      inside &= y >= 0 && y < w->size[i];
      row += y * w->steps[i];
    }
    int64_t x = p->at[2] + e.tap[2] * w->apart[2], taps = 1;
    if (!inside || whole) taps = w->taps[2] - e.tap[2];
    int64_t run = MIN(n, taps * w->channels - e.channel);
    if (inside && x >= 0 && x < w->size[2])
      memcpy(to, row + x * w->pixel_step + e.channel, sizeof(float) * (size_t)run);
    else memset(to, 0, sizeof(float) * (size_t)run);
    to += run;
    n -= run;
    e.channel = 0;
    e.tap[2] += taps;
    for (int i = DIMS - 1; i > 0 && e.tap[i] == w->taps[i]; i--) e.tap[i] = 0, e.tap[i - 1]++;
  }
}

/* Rows are places. */
static void gather_places(const void *of, int64_t row, int rows, int64_t panels, int64_t p0,
                          int64_t k, float *out) {
  float some[GEMM_MAX_MR * GEMM_MAX_K];
  Spot place = place_at(of, row);
  Element first = element_at(of, p0);
  for (int64_t q = 0; q < panels; q++, out += rows * k) {
    for (int i = 0; i < rows; i++, next_place(of, &place))
      window(of, &place, first, k, some + i * k);
    gemm_pack(DT_F32, some, k, 1, rows, rows, k, 1, rows * k, out);
  }
}

/* Rows are elements of the window, k runs over places. */
static void gather_elements(const void *of, int64_t row, int rows, int64_t panels, int64_t p0,
                            int64_t k, float *out) {
  float some[GATHERED];
  int64_t at_once = GATHERED / 16 / rows;
  for (int64_t q = 0; q < panels; q += at_once) {
    int64_t n = MIN(at_once, panels - q), run = n * rows;
    Spot place = place_at(of, p0);
    Element first = element_at(of, row + q * rows);
    for (int64_t p = 0; p < k; p += GATHERED / run) {
      int64_t places = MIN(GATHERED / run, k - p);
      for (int64_t i = 0; i < places; i++, next_place(of, &place))
        window(of, &place, first, run, some + i * run);
      gemm_pack(DT_F32, some, 1, run, rows, rows, places, n, rows * k, out + (q * k + p) * rows);
    }
  }
}

static float *result_at(const void *of, int64_t place) {
  const Windows *w = of;
  int64_t at = 0;
  for (int i = DIMS - 1; i >= 0; i--) {
    at += place % w->places[i] * w->to_steps[i];
    place /= w->places[i];
  }
  return w->to + at + place * w->to_image;
}

/* ---- both directions ---- */

static int spatial(const ConvShape *s) { return s->v[X].n - 2; }

/* Of group `group`; `source` is read through the window, Y, or X in reverse. */
static Windows windows_of(const ConvShape *s, float *const *data, int64_t group) {
  bool back = s->form == CONV_DATA;
  const ConvView *from = &s->v[back ? Y : X], *to = &s->v[back ? X : Y], *k = &s->v[W];
  int n = spatial(s);
  Windows w = {.image_step = from->strides[0],
               .pixel_step = from->strides[n + 1],
               .channels = k->dims[back ? 1 : 2],
               .to_image = to->strides[0]};
  w.from = data[back ? Y : X] + from->offset + group * w.channels;
  w.to = data[back ? X : Y] + to->offset + group * k->dims[back ? 2 : 1];
  for (int i = 0; i < DIMS; i++) {
    int d = i - (DIMS - n); /* spatial dimension of the view */
    bool is = d >= 0;
    w.steps[i] = is ? from->strides[2 + d] : 0;
    w.to_steps[i] = is ? to->strides[2 + d] : 0;
    w.size[i] = is ? from->dims[2 + d] : 1;
    w.places[i] = is ? to->dims[2 + d] : 1;
    w.taps[i] = is ? k->dims[3 + d] : 1;
    w.stride[i] = is ? s->strides[d] : 1;
    w.apart[i] = is ? s->dilates[d] + 1 : 1;
    w.low[i] = is ? s->low[d] : 0;
  }
  w.runs = w.apart[2] == 1 && w.pixel_step == w.channels;
  return w;
}

static int64_t product_of(const int64_t *v) { return v[0] * v[1] * v[2]; }

/* Pixels, of all images, as many elements apart as those of a row. */
static bool together(const int64_t *sizes, const int64_t *steps, int64_t images, int64_t image) {
  int64_t step = steps[2];
  for (int i = DIMS - 1; i >= 0; i--) {
    if (sizes[i] > 1 && steps[i] != step) return false;
    step *= sizes[i];
  }
  return images == 1 || image == step;
}

/* Windows of one pixel, all pixels in order: nothing needs to be gathered. */
static bool straight(const Windows *w, int64_t images) {
  if (product_of(w->taps) != 1) return false;
  for (int i = 0; i < DIMS; i++)
    if (w->stride[i] != 1 || w->low[i] != 0 || w->places[i] != w->size[i]) return false;
  return together(w->size, w->steps, images, w->image_step);
}

static bool multiply(GemmArgs *x, int64_t m, int64_t n, int64_t k) {
  Gemm g;
  gemm_plan(&g, m, n, k, DT_F32, DT_F32, 1, GEMM_SMALLER);
  return gemm_run(&g, x, NULL, true);
}

/* Steps of the weights in elements: from tap to tap, to the next channel of the source, of the
 * result. */
typedef struct Weights {
  float *p;
  int64_t taps[DIMS], in, out;
} Weights;

static bool forward(const Windows *w, const Weights *k, int64_t images, int64_t depth) {
  int64_t dims[] = {w->taps[0], w->taps[1], w->taps[2], w->channels, depth},
          strides[] = {k->taps[0], k->taps[1], k->taps[2], k->in, k->out}, n = depth;
  bool dense = true;
  for (int i = DIMS + 1; i > 0; i--) {
    dense &= dims[i - 1] == 1 || strides[i - 1] == n;
    n *= dims[i - 1];
  }
  dense &= strides[DIMS + 1] == 1;
  float *own = NULL;
  size_t bytes = (size_t)n * sizeof(float);
  if (!dense) {
    if (!(own = cpu_block_alloc(bytes))) return false;
    cpu_permute(4, DIMS + 2, dims, strides, k->p, own);
  }
  int64_t places = product_of(w->places);
  bool plain = together(w->places, w->to_steps, images, w->to_image);
  GemmArgs x = {.a = w->from,
                .a_row = w->pixel_step,
                .a_k = 1,
                .gather = straight(w, images) ? NULL : gather_places,
                .of = w,
                .b = own ? own : k->p,
                .b_col = 1,
                .b_k = depth,
                .c = w->to,
                .c_row = w->to_steps[2],
                .c_at = plain ? NULL : result_at};
  bool ok = multiply(&x, images * places, depth, n / depth);
  cpu_block_free(own, bytes);
  return ok;
}

typedef struct Zeros {
  const Windows *w;
  int64_t depth;
} Zeros;

static void zero(void *arg, int64_t begin, int64_t end) { /* places */
  const Zeros *z = arg;
  for (int64_t i = begin; i < end; i++)
    memset(result_at(z->w, i), 0, sizeof(float) * (size_t)z->depth);
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* The places of X that leave the remainders `rest` when divided by the steps: place rest + step * q
 * gets Y at (rest + low - tap * apart) / step + q, of the taps where that is whole. */
static bool residue(const Windows *all, const Weights *k, int64_t images, int64_t depth,
                    const int64_t *rest) {
  Windows w = *all;
  Weights some = *k;
  bool any = true;
  for (int i = 0; i < DIMS; i++) {
    int64_t step = all->stride[i], apart = all->apart[i], first = 0,
            every = step / gcd(step, apart);
    while (first < every && (rest[i] + all->low[i] - first * apart) % step) first++;
    any &= first < every && first < all->taps[i];
    w.places[i] = (all->places[i] - rest[i] + step - 1) / step;
    w.to += rest[i] * all->to_steps[i];
    w.to_steps[i] = step * all->to_steps[i];
    w.taps[i] = (all->taps[i] - first + every - 1) / every;
    some.p += first * k->taps[i];
    some.taps[i] = every * k->taps[i];
    w.stride[i] = 1;
    w.low[i] = -(rest[i] + all->low[i] - first * apart) / step;
    w.apart[i] = -(every * apart / step);
  }
  w.runs = false;
  if (any) return forward(&w, &some, images, depth);
  Zeros z = {&w, depth};
  cpu_parallel(images * product_of(w.places), MAX(1, 16384 / depth), zero, &z);
  return true;
}

static bool backward(const Windows *w, const Weights *k, int64_t images, int64_t depth) {
  int64_t rest[DIMS];
  for (rest[0] = 0; rest[0] < MIN(w->stride[0], w->places[0]); rest[0]++)
    for (rest[1] = 0; rest[1] < MIN(w->stride[1], w->places[1]); rest[1]++)
      for (rest[2] = 0; rest[2] < MIN(w->stride[2], w->places[2]); rest[2]++)
        if (!residue(w, k, images, depth, rest)) return false;
  return true;
}

/* ---- gradients of weights ---- */

typedef struct Spread { /* of dense gradients to where the user has them */
  const Windows *w;
  const Weights *k;
  const float *from;
  int64_t depth;
} Spread;

static void spread(void *arg, int64_t begin, int64_t end) { /* elements of the window */
  const Spread *s = arg;
  for (int64_t i = begin; i < end; i++) {
    int64_t t = i / s->w->channels;
    float *to = s->k->p + i % s->w->channels * s->k->in;
    for (int d = DIMS - 1; d >= 0; d--) {
      to += t % s->w->taps[d] * s->k->taps[d];
      t /= s->w->taps[d];
    }
    for (int64_t o = 0; o < s->depth; o++) to[o * s->k->out] = s->from[i * s->depth + o];
  }
}

static bool weights(const Windows *w, const Weights *k, int64_t images, int64_t depth) {
  int64_t elements = product_of(w->taps) * w->channels;
  size_t bytes = (size_t)(elements * depth) * sizeof(float);
  float *sums = cpu_block_alloc(bytes);
  if (!sums) return false;
  GemmArgs x = {.a = w->from,
                .a_row = 1,
                .a_k = w->pixel_step,
                .gather = straight(w, images) ? NULL : gather_elements,
                .of = w,
                .b = w->to,
                .b_col = 1,
                .b_k = w->to_steps[2],
                .c = sums,
                .c_row = depth};
  bool ok = multiply(&x, elements, depth, images * product_of(w->places));
  Spread s = {w, k, sums, depth};
  if (ok) cpu_parallel(elements, MAX(1, 16384 / depth), spread, &s);
  cpu_block_free(sums, bytes);
  return ok;
}

/* ---- both ---- */

/* Gathering costs as much as some multiply-adds for each element, so it wants many channels on the
 * other side; oneDNN has no good kernel for three dimensions with steps, nor for the gradients of
 * their weights. */
bool conv_gemm_fits(const ConvShape *s) {
  int n = spatial(s);
  if (!gemm_kernels() || n < 1 || n > DIMS || s->groups != 1 || s->swapped) return false;
  const ConvView *v = &s->v[W], *y = &s->v[Y];
  Windows w = windows_of(s, (float *[3]){NULL, NULL, NULL}, 0);
  int64_t images = y->dims[0], places = 1, elements = product_of(w.taps) * w.channels,
          depth = v->dims[s->form == CONV_DATA ? 2 : 1];
  bool steps = false;
  for (int i = 0; i < n; i++) places *= y->dims[2 + i], steps |= s->strides[i] > 1;
  if ((double)images * (double)(places * elements) * (double)depth < MIN_MACS) return false;
  if (s->form == CONV_WEIGHTS) {
    if (!together(w.places, w.to_steps, images, w.to_image)) return false;
    return straight(&w, images) || n == 3 || (depth >= 128 && images * places < 4000);
  }
  if (w.channels < 16) return false;
  if (straight(&w, images)) return n != 2 && depth >= 16;
  return depth >= 128 || (n == 1 && depth >= 64) || (n == 3 && steps && depth >= 16);
}

bool conv_gemm_run(const ConvShape *s, float *const *data) {
  const ConvView *v = &s->v[W];
  bool back = s->form == CONV_DATA, ok = true;
  int n = spatial(s);
  int64_t images = s->v[X].dims[0], depth = v->dims[back ? 2 : 1];
  for (int64_t g = 0; g < s->groups && ok; g++) {
    Windows w = windows_of(s, data, g);
    Weights k = {.p = data[W] + v->offset + g * v->strides[0],
                 .in = v->strides[back ? 1 : 2],
                 .out = v->strides[back ? 2 : 1]};
    for (int i = 0; i < n; i++) k.taps[DIMS - n + i] = v->strides[3 + i];
    ok = s->form == CONV_WEIGHTS ? weights(&w, &k, images, depth)
         : back                  ? backward(&w, &k, images, depth)
                                 : forward(&w, &k, images, depth);
  }
  return ok;
}
