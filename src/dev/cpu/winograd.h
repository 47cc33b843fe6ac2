/* Convolutions with windows of 3 x 3 and step 1 by Winograd's algorithm F(4x4, 3x3): Lavin and
 * Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. 36 multiplications for 16
 * results instead of 144; the points 0, 1, -1, 1/2, -2 (Barabasz et al., "Error Analysis and
 * Improving the Accuracy of Winograd Convolution", 2020) keep the error within a few times that of
 * direct summation: 2e-6 of the results' deviation against 6e-7 for 256 channels.
 *
 *   forward and data   result = sum over channels of source (*) kernel
 *   weights            kernel = sum over images and places of source (*) result
 *
 * Source and result are images with channels last (channel stride 1), f32. */
#ifndef WEFT_DEV_CPU_WINOGRAD_H
#define WEFT_DEV_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct WinoImages {
  int64_t height, width, channels;
  int64_t image_step, row_step, pixel_step; /* elements */
} WinoImages;

typedef struct Winograd {
  int64_t images;
  WinoImages source, result;
  int64_t top, left; /* the window of result (0, 0) starts this much outside the source */
  int64_t out_step, in_step,
      tap_steps[2]; /* of the kernel: elements from channel to channel of the result, of the source,
                       and from tap to tap; negative for a kernel that is turned round */
} Winograd;

/* Does this host have the instructions, and do the tiles save enough work? */
bool winograd_pays(const Winograd *w);

/* `kernel` points at tap (0, 0). false: no memory. */
bool winograd_forward(const Winograd *w, const float *source, const float *kernel, float *result);
bool winograd_weights(const Winograd *w, const float *source, const float *result, float *kernel);

#endif
