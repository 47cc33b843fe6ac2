/* How the chips of a TPU's name lie: "v5e:4x4", "tpu7x-4x4x4", "v5p-512" (256 chips: 4x8x8), and
 * "v5:2x2x2:2", two slices of eight chips. Every such name is one that chip_parse takes. */
#ifndef WEFT_CHIP_SLICE_H
#define WEFT_CHIP_SLICE_H

#include "chip/chip.h"

typedef struct ChipSlice {
  int dims[3]; /* chips along x, y, z; at least 1 */
  int chips;   /* of one slice */
  int slices;
} ChipSlice;

/* errors as chip_parse's. A GPU's name, or one without a count, is one slice in a row. */
Err *chip_slices(const char *name, ChipSlice *out);
/* "4x4", "2x2x4": false when it is no such thing. *chips is 0 when it is too much for a count. */
bool slice_box(const char *text, int dims[3], int *chips);
/* Where chip i of a slice is: x fastest, as libtpu counts. */
void slice_place(const ChipSlice *s, int chip, int64_t coords[3]);

#endif
