/* The boxes that a number of TPUs makes. */
#include <math.h>

#include "chip/slice.h"

/* The fullest box of n chips with so many axes, the longest last, and axes of one chip after that. */
static void fullest(int n, int axes, int dims[3]) {
  int ones = 0, used = 0;
  for (int a = axes; a >= 1; a--) {
    int side = a == 1 ? n : (int)floor(pow(n, 1.0 / a) + 1e-6);
    while (n % side) side--;
    if (side > 1) dims[used++] = side;
    else ones++;
    n /= side;
  }
  while (ones-- > 0) dims[used++] = 1;
}

ChipSlice slice_fullest(const Chip *c, int chips) {
  ChipSlice s = {{MAX(chips, 1), 1, 1}, MAX(chips, 1), 1};
  if (c->kind != CHIP_TPU) return s;
  int most = (int)chip_num(c, "slice_most", 0);
  while (most && s.chips > most) { /* of equal size */
    do s.slices++;
    while (chips % s.slices);
    s.chips = chips / s.slices;
  }
  fullest(s.chips, chip_num(c, "ici_links", 4) >= 6 ? 3 : 2, s.dims);
  return s;
}
