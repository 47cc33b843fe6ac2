/* dev/cpu, private: discrete Fourier transforms. Two ways to fill a vector: with the same element of
 * as many lines, so that no pass needs a shuffle (Fft); or with neighbours of one line (FftRow): its
 * first pass has as many legs as the vector has lanes, turns their results in registers, and what is
 * left is an Fft whose elements are vectors already.
 *
 * An Fft is Stockham's algorithm with radices 8, 4, 2, 3, 5, 7 and others by their definition; a
 * length with a prime factor above FFT_LARGEST goes through Bluestein's convolution of a longer
 * line. Elements lie as a vector of real parts and a vector of imaginary parts. */
#ifndef WEFT_DEV_CPU_FFT_H
#define WEFT_DEV_CPU_FFT_H

#include <stdbool.h>
#include <stdint.h>

#define FFT_LARGEST 61
#define FFT_MOST_LANES 16
#define FFT_MOST_PASSES 64

typedef struct FftPass {
  int64_t radix, m, s; /* elements of the present length / radix; stride in vectors */
  void *w, *roots;     /* of each of the m, radix - 1 pairs; e^(-2 pi i k / radix), pairs */
} FftPass;

typedef struct Fft {
  int64_t n;
  bool wide; /* double, else float */
  int n_passes;
  FftPass pass[FFT_MOST_PASSES];
  struct Fft *longer; /* Bluestein */
  void *chirp, *filter;
} Fft;

typedef struct FftRow {
  Fft *rest; /* of length n / lanes */
  void *w;   /* of the first pass: vectors */
} FftRow;

typedef enum FftForm { FFT_COMPLEX, FFT_FROM_REAL, FFT_TO_REAL } FftForm;

/* Line i begins at (i / inner) * outer + i % inner, its elements are inner apart; in complex
 * numbers, or real ones where a real line is of odd length. */
typedef struct FftLines {
  int64_t inner, outer;
} FftLines;

typedef struct FftJob {
  const Fft *f;
  const FftRow *row; /* instead of f */
  FftForm form;
  bool wide, inverse;
  int64_t length, count; /* of a line as the user has it; lines */
  FftLines from, to;
  const void *in;
  void *out;
  double scale;
  const void *turn;  /* element k of line i is multiplied by number k * from.inner + i of these */
  const void *untie; /* real lines of even length: fft_untie_table */
} FftJob;

/* The code for one width of vectors; [wide]. */
typedef struct FftCode {
  int bytes; /* of a vector */
  /* As many lines as a vector has lanes, from `first` on; x, y: areas of fft_area. */
  void (*lines[2])(const FftJob *j, int64_t first, void *x, void *y);
  /* Line i by itself, its elements and its results one after another; x, y: areas of fft_row_area. */
  void (*row[2])(const FftJob *j, int64_t i, void *x, void *y);
  /* n vectors at x; the result lies in the area that is returned, x or y, the other one is
   * overwritten. swapped: real and imaginary parts stand the other way round, before and after: the
   * inverse, times n. */
  void *(*forward[2])(const Fft *f, void *x, void *y, bool swapped);
  /* The transform z of the h numbers x[2j] + i x[2j+1] becomes the h + 1 numbers of that of x, and
   * back, twice as large; h > lanes. */
  void (*untie[2])(int64_t h, const void *w, const void *z, void *out);
  void (*tie[2])(int64_t h, const void *w, const void *in, void *z);
} FftCode;

extern const FftCode fft_avx512, fft_avx2, fft_plain;
const FftCode *fft_code(void); /* for this host */
int fft_lanes(bool wide);

/* Of one length >= 1. Read-only afterwards, for any thread. */
Fft *fft_new(int64_t n, bool wide);
void fft_free(Fft *f);
/* Of a length that is a multiple of fft_lanes; real lines of twice the length: a greater one. */
FftRow *fft_row_new(int64_t n, bool wide);
void fft_row_free(FftRow *r);

/* Elements (of float or double) that each of the two areas of fft_forward has. */
int64_t fft_area(const Fft *f);
static inline int64_t fft_area_of(const Fft *f, int64_t lanes) {
  return 2 * lanes * (f->longer ? f->longer->n : f->n);
}
/* And of .row. */
int64_t fft_row_area(const FftRow *r);

/* e^(-2 pi i k / n), exact to the rounding of double; 0 <= k. */
void fft_root(int64_t k, int64_t n, double *re, double *im);

/* The first h + 1 roots of order 2 h: their real parts, then their imaginary parts. */
void *fft_untie_table(int64_t h, bool wide);

/* A divisor of n near its square root with n's other half, both at least FFT_MOST_LANES, without large
 * prime factors if there is such a one: a long line is as many short ones. 0: none. */
int64_t fft_split(int64_t n);

/* A length of few small factors, at least 2 n - 1: of the convolution that a transform of n is. */
int64_t fft_convolution(int64_t n);

#endif
