/* params: the coefficients of a TPU that its cost and its compiler's choices depend on, as its chip
 * file has them: params.def says what each is. Private to src/sim. */
#ifndef WEFT_SIM_PARAMS_PARAMS_H
#define WEFT_SIM_PARAMS_PARAMS_H

#include "chip/chip.h"

typedef struct Rates { /* cycles per tile read and written: index by bytes of an element, 1, 2, 4 */
  double r[5], o[5];
} Rates;

typedef struct CostParams {
  bool tiled;                /* arrays lie in tiles of 8 x 128 elements */
  double clock, macs;        /* of the whole array, a cycle */
  double tile;               /* cycles in which device memory moves 4 KiB, at best */
  int side, cores;           /* rows of the array; cores that are one device */
  double scoped, fast, cmem; /* bytes on chip: for windows, for values, of the CMEM that v4 has */
  bool prefetch;             /* values are brought on chip ahead of their kernels */
  Rates product, loop;       /* kernels with and without a product */
  double c[5], soft[5];
#define NUM(field, key, otherwise, what) double field;
#define MIB(field, key, otherwise, what) double field;
#define YES(field, otherwise, what) bool field;
#define RATE(element, key, otherwise, what)
#include "sim/params/params.def"
#undef NUM
#undef MIB
#undef YES
#undef RATE
} CostParams;

void params_read(const Chip *chip, CostParams *params);
/* Is fit.KEY one of params.def's? */
bool params_has(Str key);

#endif
