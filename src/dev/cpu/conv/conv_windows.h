/* dev/cpu, private to convolutions: one group as windows over a source. The source is X, or Y for
 * gradients of images; every place of the results has a window there. Of fewer than three spatial
 * dimensions the outer ones have size 1. */
#ifndef WEFT_DEV_CPU_CONV_WINDOWS_H
#define WEFT_DEV_CPU_CONV_WINDOWS_H

#include "dev/cpu/conv/conv.h"

#define CONV_DIMS 3

typedef struct ConvWindows {
  int64_t images, channels, depth;            /* channels of the source, of results */
  int64_t size[CONV_DIMS], places[CONV_DIMS]; /* of the source, of results */
  int64_t taps[CONV_DIMS], stride[CONV_DIMS]; /* stride: of the window, between places */
  int64_t apart[CONV_DIMS], low[CONV_DIMS];   /* taps, in the source; padding before it */
  const float *from;                          /* the source; steps in elements */
  int64_t image_step, channel_step, steps[CONV_DIMS];
  float *to; /* results; for gradients of weights these are read */
  int64_t to_image, to_channel, to_steps[CONV_DIMS];
  float *w; /* weights; for gradients these are written */
  int64_t tap_steps[CONV_DIMS], in_step, out_step;
} ConvWindows;

/* Of group `group`; data NULL: the shapes alone. For gradients of images see conv_residues. */
ConvWindows conv_windows(const ConvShape *s, void *const *data, int64_t group);

/* Where what the windows count as floats from `base` on is, of another type. */
static inline char *conv_at(void *base, const float *counted, DType t) {
  return (char *)base + (counted - (const float *)base) * dtype_bytes(t);
}

/* The windows that give a convolution's results: these themselves forward; for gradients of images
 * one for each remainder of the place by the steps, of the taps that hit it (tap_steps < 0: the
 * last tap comes first in the source).
 * Such a one may have no taps: its results are zero. Ends at the first false. */
bool conv_residues(const ConvWindows *all, bool data, bool (*each)(void *arg, const ConvWindows *w),
                   void *arg);

/* The same results in parts, each of the places whose windows have the same taps inside the source,
 * with just those taps. */
bool conv_regions(const ConvWindows *all, bool (*each)(void *arg, const ConvWindows *w), void *arg);

/* Places along a dimension whose windows have the same taps inside the source. */
typedef struct ConvStretch {
  int64_t first, n, tap, taps;
} ConvStretch;
/* That begins at a place. */
ConvStretch conv_stretch(const ConvWindows *w, int d, int64_t place);

/* Gradients of weights whose results are read backwards (conv_swapped): the same sums forwards; the
 * windows then begin further and further back (stride < 0). */
void conv_forwards(ConvWindows *w);

/* A box of places of one image: what a task computes. */
typedef struct ConvBand {
  int64_t image, place[CONV_DIMS], n[CONV_DIMS]; /* places: the first, how many */
} ConvBand;

/* Number i of them, where bands[d] of band[d] places cover a dimension. */
ConvBand conv_band(const ConvWindows *w, const int64_t *bands, const int64_t *band, int64_t i);

/* Pixels of all images lie as many elements apart as those of a row. */
bool conv_together(const int64_t *sizes, const int64_t *steps, int64_t images, int64_t image);

/* Windows of one pixel, all pixels in order: nothing needs to be gathered. */
bool conv_straight(const ConvWindows *w);

static inline int64_t conv_volume(const int64_t *v) { return v[0] * v[1] * v[2]; }

#endif
