/* Convolutions of f32 as products (dot/gemm.h) of windows that are gathered straight into its panels. */
#include "dev/cpu/conv/conv_im2col.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/dot/gemm.h"

#define DIMS CONV_DIMS
#define GATHERED 4096 /* elements of windows copied at a time, before they are packed */
#define LONG_PLACES 2048
#define LONG_RESULTS ((int64_t)1 << 20)
#define MIN_MACS 1e5 /* smaller ones are not worth it */

/* pitch: of floats. */
static void gather(const Im2col *c, int64_t place, int64_t places, int64_t element, int64_t n,
                   float *to, int64_t pitch) {
  im2col_gather(c, place, places, element, n, (char *)to, pitch * (int64_t)sizeof *to);
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
  return (float *)(void *)im2col_result(of, place);
}

static bool multiply(GemmArgs *x, int64_t m, int64_t n, int64_t k) {
  Gemm g;
  gemm_plan(&g, m, n, k, (GemmTypes){DT_F32, DT_F32, DT_F32}, 1, GEMM_SMALLER, x->b_col == 1);
  return gemm_run(&g, x, NULL, true);
}

static bool results(const Im2col *c, const void *weights) {
  GemmArgs x = im2col_args(c, weights);
  x.gather = c->straight ? NULL : gather_places;
  x.of = c;
  x.c_at = c->plain ? NULL : result_at;
  return multiply(&x, c->places, c->depth, c->elements);
}

/* Sums of many places. */
static bool is_long(const Im2col *c) {
  return c->places >= LONG_PLACES && c->elements * c->depth <= LONG_RESULTS;
}

static bool weights(const Im2col *c, void *sums) {
  const ConvWindows *w = c->w;
  if (is_long(c)) {
    GemmLong g = {.m = c->elements,
                  .n = c->depth,
                  .k = c->places,
                  .pieces = 1,
                  .a = w->from,
                  .a_row = 1,
                  .a_k = w->steps[2],
                  .gather = c->straight ? NULL : gather_windows,
                  .of = c,
                  .b = w->to,
                  .b_col = 1,
                  .b_k = w->to_steps[2],
                  .c = sums};
    return gemm_long_run(&g);
  }
  GemmArgs x = {.a = c->from,
                .a_row = 1,
                .a_k = w->steps[2],
                .gather = c->straight ? NULL : gather_elements,
                .of = c,
                .b = c->to,
                .b_col = 1,
                .b_k = w->to_steps[2],
                .c = sums,
                .c_row = c->depth};
  return multiply(&x, c->elements, c->depth, c->places);
}

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
  static const Im2colProduct product = {results, weights, .fans = true, .regions = true};
  return conv_im2col(s, data, &product);
}
