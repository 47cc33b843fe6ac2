/* fft: plans of transforms. */
#include "dev/cpu/ops/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "dev/cpu/kernel/kernel.h"

void fft_root(int64_t k, int64_t n, double *re, double *im) {
  long double a =
      -2 * 3.14159265358979323846264338327950288L * (long double)(k % n) / (long double)n;
  *re = (double)cosl(a);
  *im = (double)sinl(a);
}

const FftCode *fft_code(void) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  return bits >= 512 ? &fft_avx512 : bits >= 256 ? &fft_avx2 : &fft_plain;
#else
  return &fft_plain;
#endif
}

int fft_lanes(bool wide) {
  return fft_code()->bytes / (int)(wide ? sizeof(double) : sizeof(float));
}

/* Eights, but rather two fours than an eight and a two. */
static int64_t next_factor(int64_t n) {
  if (n % 8 == 0 && (n % 16 || n % 32 == 0)) return 8;
  if (n % 4 == 0) return 4;
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

static bool is_smooth(int64_t n) {
  while (n > 1) {
    int64_t p = next_factor(n);
    if (p > FFT_LARGEST) return false;
    n /= p;
  }
  return true;
}

static void *numbers(const Fft *f, int64_t n) {
  return xmalloc((f->wide ? sizeof(double) : sizeof(float)) * (size_t)(2 * MAX(n, 1)));
}

static void put(void *to, bool wide, int64_t at, double x) {
  if (wide) ((double *)to)[at] = x;
  else ((float *)to)[at] = (float)x;
}

static void set(const Fft *f, void *to, int64_t i, double re, double im) {
  put(to, f->wide, 2 * i, re);
  put(to, f->wide, 2 * i + 1, im);
}

static void *xaligned(size_t bytes) { /* for vectors */
  void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  if (!p) abort();
  return p;
}

static void plan_passes(Fft *f) {
  int64_t n = f->n, s = 1;
  while (n > 1) {
    int64_t r = next_factor(n), m = n / r;
    FftPass *a = &f->pass[f->n_passes++];
    *a =
        (FftPass){.radix = r, .m = m, .s = s, .w = numbers(f, m * (r - 1)), .roots = numbers(f, r)};
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
  int64_t lanes = fft_lanes(true);
  size_t bytes = sizeof(double) * (size_t)(2 * m * lanes);
  double *x = xaligned(bytes), *y = xaligned(bytes), re, im;
  memset(x, 0, bytes);
  for (int64_t k = 0; k < f->n; k++) {
    fft_root((int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * f->n)), 2 * f->n, &re,
             &im);
    set(f, f->chirp, k, re, im);
    for (int back = 0; back < (k ? 2 : 1); back++) {
      int64_t at = back ? m - k : k;
      x[2 * at * lanes] = re;
      x[(2 * at + 1) * lanes] = -im;
    }
  }
  double *t = fft_code()->forward[true](exact, x, y, false);
  for (int64_t k = 0; k < m; k++)
    set(f, f->filter, k, t[2 * k * lanes] / (double)m, t[(2 * k + 1) * lanes] / (double)m);
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

int64_t fft_area(const Fft *f) { return fft_area_of(f, fft_lanes(f->wide)); }

FftRow *fft_row_new(int64_t n, bool wide) {
  FftRow *r = xcalloc(1, sizeof *r);
  int64_t lanes = fft_lanes(wide), m = n / lanes, groups = (m + lanes - 1) / lanes;
  r->rest = fft_new(m, wide);
  size_t size = wide ? sizeof(double) : sizeof(float);
  r->w = xaligned(size * (size_t)(groups * 2 * (lanes - 1) * lanes));
  for (int64_t p = 0; p < groups * lanes; p++)
    for (int64_t j = 1; j < lanes; j++) {
      double re, im;
      fft_root(j * p, n, &re, &im);
      int64_t at = (p / lanes * (lanes - 1) + j - 1) * 2 * lanes + p % lanes;
      put(r->w, wide, at, re);
      put(r->w, wide, at + lanes, im);
    }
  return r;
}

void fft_row_free(FftRow *r) {
  if (!r) return;
  fft_free(r->rest);
  free(r->w);
  free(r);
}

int64_t fft_row_area(const FftRow *r) {
  return fft_area(r->rest) + 2 * fft_lanes(r->rest->wide) * r->rest->n;
}

void *fft_untie_table(int64_t h, bool wide) {
  void *w = xmalloc((wide ? sizeof(double) : sizeof(float)) * (size_t)(2 * (h + 1)));
  for (int64_t k = 0; k <= h; k++) {
    double re, im;
    fft_root(k, 2 * h, &re, &im);
    put(w, wide, k, re);
    put(w, wide, h + 1 + k, im);
  }
  return w;
}

int64_t fft_split(int64_t n) {
  int64_t best = 0, rough = 0;
  for (int64_t d = FFT_MOST_LANES; d * d <= n; d++)
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
