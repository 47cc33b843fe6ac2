/* How floats of up to 16 bits are written. Conversion of single elements is in base.h. */
#ifndef WEFT_BASE_FLOAT_FORMAT_H
#define WEFT_BASE_FLOAT_FORMAT_H

#include "base/base.h"

/* IEEE has infinities and NaNs; FN only NaN, all ones; FNUZ one NaN, in the place of -0; FINITE neither. */
typedef enum { FLOAT_IEEE, FLOAT_FN, FLOAT_FNUZ, FLOAT_FINITE } FloatSpecial;
typedef struct FloatFormat {
  int exp, man, bias; /* bits of exponent and mantissa */
  FloatSpecial special;
} FloatFormat;
bool float_format(DType t,
                  FloatFormat *f); /* false: wider, no float, or F8E8M0FNU, which has no sign */

#endif
