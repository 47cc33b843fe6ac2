/* Boxes of chips. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "chip/slice.h"

bool slice_box(const char *text, int dims[3], int *chips) {
  dims[0] = dims[1] = dims[2] = 1;
  int64_t all = 1;
  const char *p = text;
  for (int n = 0; n < 3; n++) {
    char *end;
    if (!isdigit((unsigned char)*p)) return false;
    long d = strtol(p, &end, 10);
    bool ends = !*end;
    if ((!ends && *end != 'x') || (ends && n == 0)) return false;
    if (d < 1 || d > 4096) all = 0;
    all *= d;
    dims[n] = (int)d;
    p = end + 1;
    if (!ends) continue;
    *chips = all <= 1000000 ? (int)all : 0;
    return true;
  }
  return false;
}

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

ChipSlice slice_fullest(int chips, int axes, int most) {
  ChipSlice s = {{1, 1, 1}, MAX(chips, 1), 1};
  while (most && s.chips > most) { /* of equal size */
    do s.slices++;
    while (chips % s.slices);
    s.chips = chips / s.slices;
  }
  fullest(s.chips, axes, s.dims);
  return s;
}

void slice_place(const ChipSlice *s, int chip, int64_t coords[3]) {
  for (int k = 0; k < 3; k++) {
    coords[k] = chip % s->dims[k];
    chip /= s->dims[k];
  }
}
