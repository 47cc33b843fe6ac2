/* dev/cpu, private to convolutions: the elements of windows (conv_windows.h), [taps][channels], copied
 * beside each other. */
#ifndef WEFT_DEV_CPU_CONV_GATHER_H
#define WEFT_DEV_CPU_CONV_GATHER_H

#include "dev/cpu/conv/conv_windows.h"

/* Elements [element, element + n) of so many places' windows, in the order of all images, to rows `pitch` bytes
 * apart; zeros outside the source, which begins at `from`. Elements have `size` bytes. */
void conv_gather(const ConvWindows *w, const void *from, size_t size, int64_t place, int64_t places,
                 int64_t element, int64_t n, void *out, int64_t pitch);

/* Elements before the result of a place. */
static inline int64_t conv_result_at(const ConvWindows *w, int64_t place) {
  int64_t at = 0;
  for (int i = CONV_DIMS - 1; i >= 0; i--) {
    at += place % w->places[i] * w->to_steps[i];
    place /= w->places[i];
  }
  return at + place * w->to_image;
}

/* The results of windows without elements: zeros, in n channels of `size` bytes of every place. */
void conv_clear(const ConvWindows *w, char *to, int64_t n, int64_t size);

#endif
