/* The box that the chips of a TPU's name make. */
#include <math.h>
#include <stdlib.h>

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

Err *chip_slices(const char *name, ChipSlice *out) {
  ChipRef ref;
  TRY(chip_parse(name, &ref));
  *out = (ChipSlice){{1, 1, 1}, MAX(1, ref.chips), 1};
  if (ref.chip->kind != CHIP_TPU) {
    out->dims[0] = out->chips;
    return NULL;
  }
  /* the part that says the box, or the count, and after it the number of slices */
  for (const char *p = name + strcspn(name, ":-"); *p; p += 1 + strcspn(p + 1, ":-")) {
    char part[40];
    size_t n = strcspn(p + 1, ":-");
    if (n >= sizeof part) continue;
    memcpy(part, p + 1, n);
    part[n] = 0;
    if (!slice_box(part, out->dims, &out->chips) || !out->chips) continue;
    out->slices = MAX(1, ref.chips / out->chips);
    return NULL;
  }
  const char *colon = strrchr(name, ':');
  if (colon) { /* "v5p-8:2" */
    char *one = xstrndup(name, (size_t)(colon - name));
    ChipRef inner;
    Err *e = chip_parse(one, &inner);
    if (!e && inner.chips > 1) {
      out->slices = ref.chips / inner.chips;
      out->chips = inner.chips;
    }
    err_free(e);
    free(one);
  }
  int links = (int)chip_num(ref.chip, "ici_links", 4);
  out->dims[0] = out->dims[1] = out->dims[2] = 1;
  fullest(out->chips, links >= 6 ? 3 : 2, out->dims);
  return NULL;
}
