/* gemm_pack of f32 whose runs are along k, with AVX-512: what lies four rows apart is loaded into one
 * vector, so that four shuffles of it give rows of a panel. */
#include "dev/cpu/dot/gemm.h"

#if defined(__x86_64__) && !defined(WEFT_EMULATE_AVX512)
#include <immintrin.h>

#define INLINE __attribute__((target("avx512f"))) static inline __attribute__((always_inline))
#define LANES 16
#define LINE 16 /* floats */

/* x becomes lane q; a constant once unrolled, which the intrinsic asks of the source. */
INLINE __m512 with_lane(__m512 z, __m128 x, int q) {
  switch (q) {
  case 0: return _mm512_castps128_ps512(x);
  case 1: return _mm512_insertf32x4(z, x, 1);
  case 2: return _mm512_insertf32x4(z, x, 2);
  default: return _mm512_insertf32x4(z, x, 3);
  }
}

/* Rows 4 q to 4 q + 3, four elements of each, to lane q of four vectors; last: the last one of them. */
INLINE void lane(int q, const float *in, int64_t step, int last, __m512 z[4]) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) z[j] = with_lane(z[j], _mm_loadu_ps(in + MIN(j, last) * step), q);
}

/* Of a panel of columns or rows, w <= LANES of them, w = 4 * quads unless `odd`: elements [0, k), k a
 * multiple of four; rows from w to `held` become zero, none after them is written. */
INLINE void turn(int quads, bool odd, const float *in, int64_t step, int w, int held, int64_t k,
                 int width, float *out) {
  const __mmask16 some = (__mmask16)((1u << w) - 1), all = (__mmask16)((1u << held) - 1);
  const int last = odd ? (w - 1) % 4 : 3;
  for (int64_t p = 0; p < k; p += 4, in += 4) {
    __m512 z[4], s[4];
#pragma GCC unroll 4
    for (int q = 0; q < quads; q++) {
      const float *from = in + 4 * q * step;
      lane(q, from, step, q == quads - 1 ? last : 3, z);
      if (p % LINE == 0)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) __builtin_prefetch(from + j * step + LINE);
    }
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      s[j] = _mm512_unpacklo_ps(z[2 * j], z[2 * j + 1]);
      s[j + 2] = _mm512_unpackhi_ps(z[2 * j], z[2 * j + 1]);
    }
#pragma GCC unroll 2
    for (int j = 0; j < 4; j += 2, out += 2 * width) {
      __m512 x = s[j], y = s[j + 1];
      _mm512_mask_storeu_ps(out, all, _mm512_maskz_shuffle_ps(some, x, y, 0x44));
      _mm512_mask_storeu_ps(out + width, all, _mm512_maskz_shuffle_ps(some, x, y, 0xee));
    }
  }
}

#define TURN(quads)                                                                        \
  if (some == 4 * quads) turn(quads, false, from, step, some, all, fours, width, out + i); \
  else turn(quads, true, from, step, some, all, fours, width, out + i)

__attribute__((target("avx512f"))) void gemm_turn(const float *in, int64_t step, int w, int width,
                                                  int64_t k, int64_t panels, int64_t panel_step,
                                                  float *out) {
  int64_t fours = k / 4 * 4;
  for (int64_t q = 0; q < panels; q++, in += w * step, out += panel_step) {
    for (int i = 0; i < width; i += LANES) {
      const float *from = in + i * step;
      int some = MIN(w - i, LANES), all = MIN(width - i, LANES);
      switch ((some + 3) / 4) {
      case 1: TURN(1); break;
      case 2: TURN(2); break;
      case 3: TURN(3); break;
      default: TURN(4);
      }
    }
    for (int64_t p = fours; p < k; p++)
      for (int i = 0; i < width; i++) out[p * width + i] = i < w ? in[i * step + p] : 0;
  }
}
#endif
