/* dev/cpu, private: discrete Fourier transforms of FFT_LANES lines side by side, so that a vector
 * holds the same element of each line and no transform needs a shuffle. Stockham's algorithm with
 * radices 4, 2, 3, 5 and others by their definition; a length with a prime factor above
 * FFT_LARGEST goes through Bluestein's convolution of a longer line. */
#ifndef WEFT_DEV_CPU_FFT_H
#define WEFT_DEV_CPU_FFT_H

#include <stdbool.h>
#include <stdint.h>

#define FFT_LANES 8
#define FFT_LARGEST 61

typedef struct Fft Fft;

/* Of one length >= 1; wide: double, else float. Read-only afterwards, for any thread. */
Fft *fft_new(int64_t n, bool wide);
void fft_free(Fft *f);
int64_t fft_length(const Fft *f);

/* Elements (of float or double) that each of the two areas of fft_forward has. */
int64_t fft_area(const Fft *f);

/* Element k of line l is x[k * FFT_LANES + l], its imaginary part n * FFT_LANES further. The result
 * lies in the area that is returned, x or y, in the same way; the other one is overwritten.
 * swapped: the parts stand the other way round, before and after: the inverse, times n. */
void *fft_forward(const Fft *f, void *x, void *y, bool swapped);

/* e^(-2 pi i k / n), exact to the rounding of double; 0 <= k. */
void fft_root(int64_t k, int64_t n, double *re, double *im);

/* A divisor of n near its square root with n's other half, both at least FFT_LANES, without large
 * prime factors if there is such a one: a long line is as many short ones. 0: none. */
int64_t fft_split(int64_t n);

/* A length of few small factors, at least 2 n - 1: of the convolution that a transform of n is. */
int64_t fft_convolution(int64_t n);

#endif
