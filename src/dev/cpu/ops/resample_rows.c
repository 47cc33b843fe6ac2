/* resample.h for each width of vectors. */
#include "dev/cpu/ops/resample.h"

#include <string.h>

#include "dev/cpu/kernel/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifndef WEFT_EMULATE_AVX512
#define FN __attribute__((target("avx512f,fma")))
#define LANES 16
#define NAME(x) x##_512
#define SPREAD(v, index) ((V)_mm512_permutexvar_ps((__m512i)(index), (__m512)(v)))
#include "dev/cpu/ops/resample_rows.h"
#endif

#define FN __attribute__((target("avx2,fma")))
#define LANES 8
#define NAME(x) x##_256
#define SPREAD(v, index) ((V)_mm256_permutevar8x32_ps((__m256)(v), (__m256i)(index)))
#include "dev/cpu/ops/resample_rows.h"
#endif

#define FN
#define LANES 4
#define NAME(x) x##_128
#define SPREAD(v, index) ((V){(v)[(index)[0]], (v)[(index)[1]], (v)[(index)[2]], (v)[(index)[3]]})
#include "dev/cpu/ops/resample_rows.h"

const ResampleRows *resample_rows(void) {
#if defined(__x86_64__)
#ifndef WEFT_EMULATE_AVX512
  if (cpu_vector_bits() >= 512) return &rows_512;
#endif
  if (cpu_vector_bits() >= 256) return &rows_256;
#endif
  return &rows_128;
}
