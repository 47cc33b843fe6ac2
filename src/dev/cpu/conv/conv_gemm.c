/* Convolutions as products (gemm.h) of windows that are gathered straight into its panels: [places,
 * window x channels] times the weights [window x channels, channels of the result]. Gradients of
 * weights are the windows, transposed, times Y. Gradients of images are convolutions of Y, one for
 * each residue of the place by the steps: those taps of the window that hit it, backwards. */
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/dot/gemm.h"

#define DIMS CONV_DIMS
#define GATHERED 4096 /* elements of windows copied at a time, before they are packed */
#define LONG_PLACES 2048
#define LONG_RESULTS ((int64_t)1 << 20)
#define MIN_MACS 1e5 /* smaller ones are not worth it */

static void gather(const ConvWindows *w, int64_t place, int64_t places, int64_t element, int64_t n,
                   float *to, int64_t pitch) {
  conv_gather(w, w->from, sizeof *to, place, places, element, n, to, pitch * (int64_t)sizeof *to);
}

/* Rows are places. */
static void gather_places(const void *of, int64_t row, int rows, int64_t panels, int64_t p0,
                          int64_t k, float *out) {
  float some[GEMM_MAX_MR * GEMM_MAX_K];
  for (int64_t q = 0; q < panels; q++, out += rows * k) {
    gather(of, row + q * rows, rows, p0, k, some, k);
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
    for (int64_t p = 0; p < k; p += GATHERED / run) {
      int64_t places = MIN(GATHERED / run, k - p);
      gather(of, p0 + p, places, row + q * rows, run, some, run);
      gemm_pack(DT_F32, some, 1, run, rows, rows, places, n, rows * k, out + (q * k + p) * rows);
    }
  }
}

/* The same, a place after the other. */
static void gather_windows(const void *of, int64_t row, int64_t rows, int64_t p, int64_t k,
                           float *out, int64_t pitch) {
  gather(of, p, k, row, rows, out, pitch);
}

static float *result_at(const void *of, int64_t place) {
  const ConvWindows *w = of;
  return w->to + conv_result_at(w, place);
}

/* ---- both directions ---- */

static bool multiply(GemmArgs *x, int64_t m, int64_t n, int64_t k) {
  Gemm g;
  gemm_plan(&g, m, n, k, (GemmTypes){DT_F32, DT_F32, DT_F32}, 1, GEMM_SMALLER, x->b_col == 1);
  return gemm_run(&g, x, NULL, true);
}

static void zero(void *arg, int64_t begin, int64_t end) { /* places */
  const ConvWindows *w = arg;
  for (int64_t i = begin; i < end; i++)
    memset(result_at(w, i), 0, sizeof(float) * (size_t)w->depth);
}

/* arg: so many results along the last dimension, with weights of their own, come from each place;
 * they lie together. */
static bool results(void *arg, const ConvWindows *w) {
  int64_t places = w->images * conv_volume(w->places), fan = *(const int64_t *)arg,
          depth = fan * w->depth;
  if (conv_volume(w->taps) == 0) { /* never with more than one */
    cpu_parallel(places, MAX(1, 16384 / depth), zero, (void *)(uintptr_t)w);
    return true;
  }
  int64_t column = w->tap_steps[2],
          dims[] = {w->taps[0], w->taps[1], w->taps[2], w->channels, fan, w->depth},
          strides[] = {w->tap_steps[0], w->tap_steps[1], column, w->in_step, column, w->out_step},
          n = 1;
  bool dense = true;
  for (int i = DIMS + 2; i >= 0; i--) {
    dense &= dims[i] == 1 || strides[i] == n;
    n *= dims[i];
  }
  float *own = NULL;
  size_t bytes = (size_t)n * sizeof(float);
  if (!dense) {
    if (!(own = cpu_block_alloc(bytes))) return false;
    cpu_permute(4, DIMS + 3, dims, strides, w->w, own);
  }
  bool plain = conv_together(w->places, w->to_steps, w->images, w->to_image);
  GemmArgs x = {.a = w->from,
                .a_row = w->steps[2],
                .a_k = 1,
                .gather = conv_straight(w) ? NULL : gather_places,
                .of = w,
                .b = own ? own : w->w,
                .b_col = 1,
                .b_k = depth,
                .c = w->to,
                .c_row = w->to_steps[2],
                .c_at = plain ? NULL : result_at};
  bool ok = multiply(&x, places, depth, n / depth);
  cpu_block_free(own, bytes);
  return ok;
}

static bool results_in_regions(void *arg, const ConvWindows *w) {
  return conv_regions(w, results, arg);
}

/* ---- gradients of weights ---- */

typedef struct Spread { /* of dense gradients to where the user has them */
  const ConvWindows *w;
  const float *from;
} Spread;

static void spread(void *arg, int64_t begin, int64_t end) { /* elements of the window */
  const Spread *s = arg;
  const ConvWindows *w = s->w;
  for (int64_t i = begin; i < end; i++) {
    int64_t t = i / w->channels;
    float *to = w->w + i % w->channels * w->in_step;
    for (int d = DIMS - 1; d >= 0; d--) {
      to += t % w->taps[d] * w->tap_steps[d];
      t /= w->taps[d];
    }
    for (int64_t o = 0; o < w->depth; o++) to[o * w->out_step] = s->from[i * w->depth + o];
  }
}

/* Elements of the window by channels of Y: sums of many places. */
static bool is_long(int64_t elements, int64_t depth, double places) {
  return places >= LONG_PLACES && elements * depth <= LONG_RESULTS;
}

static bool weights(const ConvWindows *w) {
  int64_t elements = conv_volume(w->taps) * w->channels, depth = w->depth,
          places = w->images * conv_volume(w->places);
  size_t bytes = (size_t)(elements * depth) * sizeof(float);
  float *sums = cpu_block_alloc(bytes);
  if (!sums) return false;
  bool ok, in_memory = conv_straight(w);
  if (is_long(elements, depth, (double)places)) {
    GemmLong g = {.m = elements,
                  .n = depth,
                  .k = places,
                  .pieces = 1,
                  .a = w->from,
                  .a_row = 1,
                  .a_k = w->steps[2],
                  .gather = in_memory ? NULL : gather_windows,
                  .of = w,
                  .b = w->to,
                  .b_col = 1,
                  .b_k = w->to_steps[2],
                  .c = sums};
    ok = gemm_long_run(&g);
  } else {
    GemmArgs x = {.a = w->from,
                  .a_row = 1,
                  .a_k = w->steps[2],
                  .gather = in_memory ? NULL : gather_elements,
                  .of = w,
                  .b = w->to,
                  .b_col = 1,
                  .b_k = w->to_steps[2],
                  .c = sums,
                  .c_row = depth};
    ok = multiply(&x, elements, depth, places);
  }
  Spread s = {w, sums};
  if (ok) cpu_parallel(elements, MAX(1, 16384 / depth), spread, &s);
  cpu_block_free(sums, bytes);
  return ok;
}

/* ---- both ---- */

/* Gathering costs as much as some multiply-adds for each element, so it wants many channels on the
 * other side; oneDNN has no good kernel for three dimensions with steps, nor for the gradients of
 * their weights. */
bool conv_gemm_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (!gemm_kernels() || n < 1 || n > DIMS || s->groups != 1) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  int64_t elements = conv_volume(w.taps) * w.channels;
  double places = (double)w.images;
  bool steps = false, plain = true;
  for (int i = 0; i < n; i++) {
    places *= (double)s->v[Y].dims[2 + i];
    steps |= s->strides[i] > 1;
    plain &= s->strides[i] == 1 && s->dilates[i] == 0;
  }
  if (places * (double)elements * (double)w.depth < MIN_MACS) return false;
  if (s->form == CONV_WEIGHTS) {
    conv_forwards(&w);
    if (!conv_together(w.places, w.to_steps, w.images, w.to_image) || w.depth < 8) return false;
    return conv_straight(&w) || n == 3 || conv_patches(s) || s->swapped || w.channels < 8 ||
           (!plain && w.channels >= 32) || w.channels % 8 || w.depth % 8 ||
           (w.depth >= 128 && places < 4000);
  }
  if (conv_patches(s)) return true;
  if (w.channels < 16) return false;
  if (conv_fan(s) > 1) return true;
  if (conv_straight(&w)) return n != 2 && w.depth >= 16;
  return w.depth >= 128 || (n == 1 && w.depth >= 64) || (n == 3 && steps && w.depth >= 16);
}

bool conv_gemm_run(const ConvShape *s, void *const *data) {
  bool ok = true, sparse = conv_inside(s) < CONV_SPARSE;
  int64_t fan = conv_fan(s);
  for (int64_t g = 0; g < s->groups && ok; g++) {
    ConvWindows w = conv_windows(s, data, g);
    if (s->form == CONV_WEIGHTS) conv_forwards(&w);
    if (fan > 1) {
      w.taps[2] = w.stride[2] = 1;
      w.places[2] = w.size[2];
      w.to_steps[2] *= fan;
    }
    ok = s->form == CONV_WEIGHTS
             ? weights(&w)
             : conv_residues(&w, s->form == CONV_DATA, sparse ? results_in_regions : results, &fan);
  }
  return ok;
}
