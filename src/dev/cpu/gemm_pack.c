/* Packing for gemm: rows or columns of an operand become the columns of a panel [k][width]. Runs
 * along the panel are copied, runs along k are transposed eight by eight, in registers. */
#include "dev/cpu/gemm.h"

#include "dev/cpu/kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define FN __attribute__((target("avx2,fma,f16c")))
#define ROWS_AHEAD 12 /* are asked for */
#define INLINE FN static inline __attribute__((always_inline))

INLINE __m256 load8(DType t, const char *p) {
  if (t == DT_F32) return _mm256_loadu_ps((const float *)p);
  __m128i h = _mm_loadu_si128((const __m128i *)p);
  if (t == DT_F16) return _mm256_cvtph_ps(h);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE float load1(DType t, const char *p) {
  float f;
  if (t == DT_F32) {
    memcpy(&f, p, 4);
    return f;
  }
  uint16_t h;
  memcpy(&h, p, 2);
  if (t == DT_F16) return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
  uint32_t u = (uint32_t)h << 16;
  memcpy(&f, &u, 4);
  return f;
}

/* The first n <= 8 elements, zero for the rest. */
INLINE __m256 load_part(DType t, const char *p, int n) {
  if (n <= 0) return _mm256_setzero_ps();
  if (t == DT_F32) {
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps((const float *)p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
  }
  uint16_t few[8] = {0};
  for (int i = 0; i < n; i++) memcpy(&few[i], p + 2 * i, 2);
  return load8(t, (const char *)few);
}

/* out[j][i] = in[i][j] for w <= 8 rows i; zero for the rest. */
INLINE void transpose8(DType t, const char *in, int64_t step, int w, int64_t out_step, float *out) {
  __m256 r[8], s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) r[i] = i < w ? load8(t, in + i * step) : _mm256_setzero_ps();
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    s[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
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
    _mm256_storeu_ps(out + i * out_step, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++)
    _mm256_storeu_ps(out + (i + 4) * out_step, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
}

/* A row of each panel: w elements, up to `width` filled with zeros, in whole vectors. over: what
 * follows w <= 8 elements may be read in place of zeros. */
INLINE void rows(DType t, const char *in, int64_t e, int w, int width, int64_t panels,
                 int64_t panel, bool over, float *out) {
  for (int64_t q = 0; q < panels; q++, in += w * e, out += panel) {
    if (over) {
      _mm256_storeu_ps(out, load8(t, in));
    } else if (w == 16) {
      _mm256_storeu_ps(out, load8(t, in));
      _mm256_storeu_ps(out + 8, load8(t, in + 8 * e));
    } else {
      int whole = w & ~7;
      for (int i = 0; i < whole; i += 8) _mm256_storeu_ps(out + i, load8(t, in + i * e));
      for (int i = whole; i < width; i += 8)
        _mm256_storeu_ps(out + i, load_part(t, in + i * e, w - i));
    }
  }
}

/* Stores go in whole vectors: what one writes beyond its row later rows overwrite; the last rows
 * are written one by one. Runs across panels are read through all of them, where memory has them
 * together; so are, along k, two vectors of each of eight runs, a line. */
INLINE void pack(DType t, const char *in, int64_t step, int64_t k_step, int w, int width, int64_t k,
                 int64_t panels, int64_t panel_step, float *out) {
  int64_t e = t == DT_F32 ? 4 : 2, done = 0, spill = ((width + 7) & ~7) - k * width;
  step *= e;
  k_step *= e;
  int64_t next = w * step;
  if (step == e) {
    bool over = w == width && w <= 8 && k_step >= 8 * e; /* there is another row */
    for (; done < k && done * width + spill <= 0; done++) {
      const char *from = in + done * k_step;
      for (int64_t b = 0; b < panels * next; b += 64)
        __builtin_prefetch(from + ROWS_AHEAD * k_step + b);
      rows(t, from, e, w, width, panels, panel_step, over, out + done * width);
    }
  } else if (k_step == e) {
    int64_t fit = 0; /* so many rows go in whole vectors */
    while (fit + 8 <= k && (fit + 7) * width + spill <= 0) fit += 8;
    done = fit;
    for (int64_t q = 0; q < panels; q++)
      for (int64_t p0 = 0; p0 < fit; p0 += 16)
        for (int i = (width - 1) & ~7; i >= 0; i -= 8)
          for (int64_t p = p0; p < MIN(p0 + 16, fit); p += 8) {
            const char *s = in + q * next + i * step + p * e;
            float *o = out + q * panel_step + p * width + i;
            if (w - i >= 8) transpose8(t, s, step, 8, width, o);
            else transpose8(t, s, step, w - i, width, o);
          }
  }
  for (int64_t q = 0; q < panels; q++)
    for (int64_t p = done; p < k; p++)
      for (int i = 0; i < width; i++)
        out[q * panel_step + p * width + i] =
            i < w ? load1(t, in + q * next + i * step + p * k_step) : 0;
}

FN void gemm_pack(DType t, const void *in, int64_t step, int64_t k_step, int w, int width,
                  int64_t k, int64_t panels, int64_t panel_step, float *out) {
  if (t == DT_F32) pack(DT_F32, in, step, k_step, w, width, k, panels, panel_step, out);
  else if (t == DT_F16) pack(DT_F16, in, step, k_step, w, width, k, panels, panel_step, out);
  else pack(DT_BF16, in, step, k_step, w, width, k, panels, panel_step, out);
}
#endif
