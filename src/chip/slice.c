/* Boxes of chips. */
#include <ctype.h>
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

void slice_place(const ChipSlice *s, int chip, int64_t coords[3]) {
  for (int k = 0; k < 3; k++) {
    coords[k] = chip % s->dims[k];
    chip /= s->dims[k];
  }
}
