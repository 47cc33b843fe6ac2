/* fft: plans of transforms, and the passes for float and double. */
#include "dev/cpu/ops/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "dev/cpu/kernel/clones.h"

#define MAX_PASSES 64

typedef struct Pass {
  int64_t radix, m, s; /* s: stride times lanes */
  void *w, *roots;
} Pass;

struct Fft {
  int64_t n;
  bool wide;
  int n_passes;
  Pass pass[MAX_PASSES];
  Fft *longer; /* Bluestein */
  void *chirp, *filter;
};

#define T float
#define NAME(x) x##_f32
#include "dev/cpu/ops/fft_passes.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "dev/cpu/ops/fft_passes.h"
#undef T
#undef NAME

void fft_root(int64_t k, int64_t n, double *re, double *im) {
  long double a =
      -2 * 3.14159265358979323846264338327950288L * (long double)(k % n) / (long double)n;
  *re = (double)cosl(a);
  *im = (double)sinl(a);
}

static int64_t smallest_factor(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

static bool is_smooth(int64_t n) {
  while (n > 1) {
    int64_t p = smallest_factor(n);
    if (p > FFT_LARGEST) return false;
    n /= p;
  }
  return true;
}

static void *numbers(const Fft *f, int64_t n) {
  return xmalloc((f->wide ? sizeof(double) : sizeof(float)) * (size_t)(2 * MAX(n, 1)));
}

static void set(const Fft *f, void *to, int64_t i, double re, double im) {
  if (f->wide) ((double *)to)[2 * i] = re, ((double *)to)[2 * i + 1] = im;
  else ((float *)to)[2 * i] = (float)re, ((float *)to)[2 * i + 1] = (float)im;
}

static void plan_passes(Fft *f) {
  int64_t n = f->n, s = FFT_LANES;
  while (n > 1) {
    int64_t r = smallest_factor(n), m = n / r;
    Pass *a = &f->pass[f->n_passes++];
    *a = (Pass){.radix = r, .m = m, .s = s, .w = numbers(f, m * (r - 1)), .roots = numbers(f, r)};
    double re, im;
    for (int64_t p = 0; p < m; p++)
      for (int64_t j = 1; j < r; j++) {
        fft_root(j * p, n, &re, &im);
        set(f, a->w, p * (r - 1) + j - 1, re, im);
      }
    for (int64_t j = 0; j < r; j++) {
      fft_root(j, r, &re, &im);
      set(f, a->roots, j, re, im);
    }
    n = m;
    s *= r;
  }
}

/* x_k c_k with c_k = e^(-pi i k^2 / n), convolved with the conjugates of c, times c. The filter is
 * the transform of the conjugates, divided by the length. */
static void plan_bluestein(Fft *f) {
  int64_t m = fft_convolution(f->n);
  f->longer = fft_new(m, f->wide);
  f->chirp = numbers(f, f->n);
  f->filter = numbers(f, m);
  Fft *exact = fft_new(m, true);
  double *x = xcalloc((size_t)(2 * m * FFT_LANES), sizeof *x),
         *y = xmalloc(sizeof *y * (size_t)(2 * m * FFT_LANES)), re, im;
  for (int64_t k = 0; k < f->n; k++) {
    fft_root((int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * f->n)), 2 * f->n, &re,
             &im);
    set(f, f->chirp, k, re, im);
    for (int back = 0; back < (k ? 2 : 1); back++) {
      int64_t at = back ? m - k : k;
      x[at * FFT_LANES] = re;
      x[(m + at) * FFT_LANES] = -im;
    }
  }
  double *t = fft_forward(exact, x, y, false);
  for (int64_t k = 0; k < m; k++)
    set(f, f->filter, k, t[k * FFT_LANES] / (double)m, t[(m + k) * FFT_LANES] / (double)m);
  free(x);
  free(y);
  fft_free(exact);
}

Fft *fft_new(int64_t n, bool wide) {
  Fft *f = xcalloc(1, sizeof *f);
  f->n = n;
  f->wide = wide;
  if (is_smooth(n)) plan_passes(f);
  else plan_bluestein(f);
  return f;
}

void fft_free(Fft *f) {
  if (!f) return;
  for (int i = 0; i < f->n_passes; i++) free(f->pass[i].w), free(f->pass[i].roots);
  fft_free(f->longer);
  free(f->chirp);
  free(f->filter);
  free(f);
}

int64_t fft_length(const Fft *f) { return f->n; }

int64_t fft_area(const Fft *f) { return 2 * FFT_LANES * (f->longer ? f->longer->n : f->n); }

void *fft_forward(const Fft *f, void *x, void *y, bool swapped) {
  return f->wide ? forward_f64(f, x, y, swapped) : forward_f32(f, x, y, swapped);
}

int64_t fft_split(int64_t n) {
  int64_t best = 0, rough = 0;
  for (int64_t d = FFT_LANES; d * d <= n; d++)
    if (n % d == 0) {
      rough = d;
      if (is_smooth(d) && is_smooth(n / d)) best = d;
    }
  return best ? best : rough;
}

int64_t fft_convolution(int64_t n) {
  static const int64_t odd[] = {1, 3, 5, 9, 15};
  int64_t best = INT64_MAX;
  for (int i = 0; i < COUNT_OF(odd); i++) {
    int64_t m = odd[i];
    while (m < 2 * n - 1) m *= 2;
    best = MIN(best, m);
  }
  return best;
}
