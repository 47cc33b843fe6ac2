/* hlo_halo: images cut along one dimension into SPLITS parts that lie beside each other in the batch.
 * Of an array [.., batch, space, ..], whose dimension `at` is the batch and the next one that space,
 * a cut one is [.., batch * SPLITS, part, ..]. What a window needs of the next part is copied to the
 * ends of each: its halo. Private to src/sim/hlo.
 */
#ifndef WEFT_SIM_HLO_HLO_HALO_H
#define WEFT_SIM_HLO_HLO_HALO_H

#include "sim/hlo/hlo.h"

#define SPLITS 8

/* Padded with zeros to SPLITS parts of `part`, `low` of them before the first element, and cut. */
HNode *halo_cut(Maker *b, const Op *src, HNode *x, int at, int64_t low, int64_t part);
/* And put together again: the first `size` elements. */
HNode *halo_join(Maker *b, const Op *src, HNode *x, int at, int64_t size);
/* In parts of another size. */
HNode *halo_resize(Maker *b, const Op *src, HNode *x, int at, int64_t part);
/* What lies beyond the image's `size` elements becomes `other`. */
HNode *halo_valid(Maker *b, const Op *src, HNode *x, int at, int64_t size, double other);
/* The last `low` elements of the part before and the first halo - low of the next, filled with
 * `other` at the image's ends; without a halo all moves by `low` inside parts that stay as long.
 * inside: by the product that reads it. */
HNode *halo_add(Maker *b, const Op *src, HNode *x, int at, int64_t low, int64_t halo, double other,
                bool inside);
/* The same for the first convolution: cut, with `before` elements of the part before and halo of both.
 * What is cut should not lie in the tiles: rows do instead where they pad less, else the parts side by
 * side, as the convolution wants them, which then puts the halo together itself. */
HNode *halo_start(Maker *b, const Op *src, HNode *x, int at, int64_t low, int64_t part,
                  int64_t before, int64_t halo);

#endif
