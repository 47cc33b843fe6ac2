/* What the tests of gemm.h and amx.h share: random numbers, elements of any type. */
#ifndef WEFT_DEV_CPU_PRODUCT_TEST_H
#define WEFT_DEV_CPU_PRODUCT_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"

static inline int64_t below(int64_t n) {
  static uint64_t rng = 88172645463325252u;
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return (int64_t)(rng % (uint64_t)n);
}

static inline double element(DType t, const char *p) {
  return dtype_is_int(t) ? (double)elem_get_i64(t, p) : elem_get_f64(t, p);
}

#endif
