/* What is done to strips of 64 bits, beside vinterp_vectors.h. f32 lies in them as f64, integers of 32 bits
 * like narrower ones. */
#define REAL double
#define INT int64_t
#define UINT uint64_t
#include "dev/cpu/vinterp/vinterp_vectors.h"

LOAD_NARROW(i32, int32_t)
LOAD_NARROW(u32, uint32_t)
STORE_NARROW(32)
LOOP1(to_i32, I, I, (I)((U)x << 32) >> 32)
LOOP1(to_u32, I, I, x & 0xffffffff)
LOOP1(f_to_i32, F, I, f_to_narrow(x, INT32_MIN, INT32_MAX))
LOOP1(f_to_u32, F, I, f_to_narrow(x, 0, UINT32_MAX))

FN static void strip_load_f32(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const float *p = in[0];
  double *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = (double)p[i];
}

FN static void strip_store_f32(void *to, const void *const *in, unsigned same, int64_t n) {
  (void)same;
  const double *p = in[0];
  float *q = to;
  for (int64_t i = 0; i < n; i++) q[i] = (float)p[i];
}

/* Rounded once: T to float. */
#define TO_F32(name, T)                                                                    \
  FN static void strip_##name(void *to, const void *const *in, unsigned same, int64_t n) { \
    const T *p = in[0];                                                                    \
    double *q = to;                                                                        \
    for (int64_t i = 0; i < n; i++) q[i] = (double)(float)p[same & 1 ? 0 : i];             \
  }
TO_F32(to_f32, double)
TO_F32(i_to_f32, int64_t)
TO_F32(u_to_f32, uint64_t)

#define VINTERP_WIDE                                                                    \
  {                                                                                     \
    LANES, BYTES, {STRIP_FNS(FN_ROW) STRIP_FNS_OF_64(FN_ROW)}, {STRIP_SUMS(SUM_ROW)}, { \
      STRIP_SUMS(FOLD_ROW)                                                              \
    }                                                                                   \
  }
