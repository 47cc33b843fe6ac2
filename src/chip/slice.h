/* How the chips of a TPU's name lie: "v5e:4x4", "tpu7x-4x4x4", "v5p-512" (256 chips: 4x8x8),
 * "v5:2x2x2:2", two slices of eight chips, and "v5e:512", two of the largest (16x16). chip_parse finds it. */
#ifndef WEFT_CHIP_SLICE_H
#define WEFT_CHIP_SLICE_H

#include "chip/chip.h"

/* The fullest boxes of 1 to 3 axes that hold so many chips, the longest axis last, each of at most `most`
 * chips (0: of any size). */
ChipSlice slice_fullest(int chips, int axes, int most);
/* "4x4", "2x2x4": false when it is no such thing. *chips is 0 when it is too much for a count. */
bool slice_box(const char *text, int dims[3], int *chips);
/* Where chip i of a slice is: x fastest, as libtpu counts. */
void slice_place(const ChipSlice *s, int chip, int64_t coords[3]);

#endif
