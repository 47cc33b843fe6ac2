/* 8 x 8 floats in registers, for AVX2. */
#ifndef WEFT_DEV_CPU_TRANSPOSE8_H
#define WEFT_DEV_CPU_TRANSPOSE8_H

#if defined(__x86_64__)
#include <immintrin.h>

/* Row i of the result is column i of r, at out + i * step floats. Rows are written in order: of steps below 8 the next one
 * covers what is too much. */
__attribute__((target("avx2"))) static inline __attribute__((always_inline)) void
transpose8_store(__m256 *r, float *out, int64_t step) {
  __m256 s[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++)
    _mm256_storeu_ps(out + i * step, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++)
    _mm256_storeu_ps(out + (i + 4) * step, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
}
#endif

#endif
