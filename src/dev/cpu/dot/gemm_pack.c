/* Packing for gemm: rows or columns of an operand become the columns of a panel [k][width]. Runs
 * along the panel are copied, runs along k are transposed eight by eight, in registers. */
#include "dev/cpu/dot/gemm.h"

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/transpose8.h"

GemmComing gemm_coming(DType t, const void *p, int64_t count, int64_t step, int64_t k,
                       int64_t k_step, int64_t calls) {
  int64_t e = dtype_bytes(t);
  bool across = step == 1; /* runs across the panel, else along k */
  if (count <= 0 || (!across && k_step != 1)) return (GemmComing){0};
  int64_t stride = (across ? k_step : step) * e, runs = across ? k : count,
          bytes = (across ? count : k) * e, within = stride % 64 || (uintptr_t)p % 64,
          lines = (bytes + 63) / 64 + within; /* runs begin within lines */
  return (GemmComing){.p = p,
                      .lines = lines,
                      .runs = runs,
                      .stride = stride,
                      .each = (lines * runs + MAX(calls, 1) - 1) / MAX(calls, 1)};
}

#if defined(__x86_64__)
#include <immintrin.h>

#define FN __attribute__((target("avx2,fma,f16c")))
#define ROWS_AHEAD 12 /* are asked for */
#define TURNED 16     /* rows that gemm_turn begins to fill with zeros */
#define MAX_WIDTH 64  /* of a panel */
#define TOGETHER 8    /* panels that gemm_pack_rows packs at a time */
#define INLINE FN static inline __attribute__((always_inline))

/* What becomes a float of a panel: an element, two of 16 bits (as DT_F32), two bytes that are widened
 * to them (as DT_I8 and DT_U8). */
INLINE int64_t bytes_of(DType t) { return t == DT_F32 ? 4 : 2; }

INLINE __m256 load8(DType t, const char *p) {
  if (t == DT_F32) return _mm256_loadu_ps((const float *)p);
  __m128i h = _mm_loadu_si128((const __m128i *)p);
  if (t == DT_F16) return _mm256_cvtph_ps(h);
  if (t == DT_I8) return _mm256_castsi256_ps(_mm256_cvtepi8_epi16(h));
  if (t == DT_U8) return _mm256_castsi256_ps(_mm256_cvtepu8_epi16(h));
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
  if (t == DT_I8) return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(h))));
  if (t == DT_U8) return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(h))));
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

/* out[j][i] = in[i][j] for w <= 8 rows i of n <= 8 elements; zero for the rest. */
INLINE void transpose8(DType t, const char *in, int64_t step, int w, int n, int64_t out_step,
                       float *out) {
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++)
    r[i] = i >= w   ? _mm256_setzero_ps()
           : n == 8 ? load8(t, in + i * step)
                    : load_part(t, in + i * step, n);
  transpose8_store(r, out, out_step);
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
      int i = 0;
      for (; i + 8 <= w; i += 8) _mm256_storeu_ps(out + i, load8(t, in + i * e));
      if (i && w == width) _mm256_storeu_ps(out + w - 8, load8(t, in + (w - 8) * e)); /* again */
      else
        for (; i < width; i += 8) _mm256_storeu_ps(out + i, load_part(t, in + i * e, w - i));
    }
  }
}

/* The last k rows of a panel of columns: nothing is written beyond them. */
INLINE void last_rows(DType t, const char *in, int64_t step, int w, int width, int64_t k,
                      float *out) {
  int64_t e = bytes_of(t);
  for (int64_t p = 0; p < k; p += 8) {
    float part[8][MAX_WIDTH];
    int n = (int)MIN(8, k - p);
    for (int i = 0; i < width; i += 8) {
      if (w - i >= 8 && n == 8)
        transpose8(t, in + i * step + p * e, step, 8, 8, MAX_WIDTH, &part[0][i]);
      else transpose8(t, in + i * step + p * e, step, w - i, n, MAX_WIDTH, &part[0][i]);
    }
    for (int r = 0; r < n; r++)
      memcpy(out + (p + r) * width, part[r], sizeof(float) * (size_t)width);
  }
}

/* Steps in bytes. Stores go in whole vectors: what one writes beyond its row later rows overwrite; the last rows
 * are written one by one. Runs across panels are read through all of them, where memory has them
 * together; so are, along k, two vectors of each of eight runs, a line. */
INLINE void pack(DType t, const char *in, int64_t step, int64_t k_step, int w, int width, int64_t k,
                 int64_t panels, int64_t panel_step, float *out) {
  int64_t e = bytes_of(t), done = 0, spill = ((width + 7) & ~7) - k * width;
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
    for (int64_t q = 0; q < panels; q++)
      for (int64_t p0 = 0; p0 < fit; p0 += 16)
        for (int i = (width - 1) & ~7; i >= 0; i -= 8) {
          const char *after = in + (q + 1) * next + i * step + p0 * e;
          if (q + 1 < panels)
#pragma GCC unroll 8
            for (int r = 0; r < 8; r++) __builtin_prefetch(after + r * step);
          for (int64_t p = p0; p < MIN(p0 + 16, fit); p += 8) {
            const char *s = in + q * next + i * step + p * e;
            float *o = out + q * panel_step + p * width + i;
            if (w - i >= 8) transpose8(t, s, step, 8, 8, width, o);
            else transpose8(t, s, step, w - i, 8, width, o);
          }
        }
    for (int64_t q = 0; q < panels; q++)
      last_rows(t, in + q * next + fit * e, step, w, width, k - fit,
                out + q * panel_step + fit * width);
    return;
  }
  for (int64_t q = 0; q < panels; q++)
    for (int64_t p = done; p < k; p++)
      for (int i = 0; i < width; i++)
        out[q * panel_step + p * width + i] =
            i < w ? load1(t, in + q * next + i * step + p * k_step) : 0;
}

FN void gemm_pack(DType t, const void *in, int64_t step, int64_t k_step, int w, int width,
                  int64_t k, int64_t panels, int64_t panel_step, float *out) {
#ifndef WEFT_EMULATE_AVX512
  if (t == DT_F32 && k_step == 1 && step != 1 && cpu_big_core() && w > width - TURNED) {
    gemm_turn(in, step, w, width, k, panels, panel_step, out);
    return;
  }
#endif
  if (t == DT_F32) pack(DT_F32, in, 4 * step, 4 * k_step, w, width, k, panels, panel_step, out);
  else if (t == DT_F16)
    pack(DT_F16, in, 2 * step, 2 * k_step, w, width, k, panels, panel_step, out);
  else pack(DT_BF16, in, 2 * step, 2 * k_step, w, width, k, panels, panel_step, out);
}

void gemm_pack_rows(const float *in, int64_t step, int64_t k_step, int64_t rows, int64_t panels,
                    int64_t k, float *out) {
  for (int64_t i = 0; i < panels; i += TOGETHER)
    gemm_pack(DT_F32, in + i * rows * step, step, k_step, (int)rows, (int)rows, k,
              MIN(TOGETHER, panels - i), rows * k, out + i * rows * k);
}

/* An element that is half of a float. */
INLINE uint16_t half(DType t, const char *p) {
  if (t == DT_I8) return (uint16_t)((const int8_t *)p)[0];
  if (t == DT_U8) return ((const uint8_t *)p)[0];
  uint16_t h;
  memcpy(&h, p, 2);
  return h;
}

/* Of `width` floats the first w, whose elements are `step` bytes apart; zeros after them. */
INLINE void pair_each(DType t, const char *even, const char *odd, int64_t step, int w, int width,
                      float *out) {
  for (int i = 0; i < width; i++) {
    uint16_t pair[2] = {i < w ? half(t, even + i * step) : 0,
                        i < w && odd ? half(t, odd + i * step) : 0};
    memcpy(out + i, pair, 4);
  }
}

/* Eight of each row, interleaved. */
INLINE void pair8(DType t, const char *even, const char *odd, float *out) {
  if (dtype_bytes(t) == 1) {
    __m128i both = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)even),
                                     _mm_loadl_epi64((const __m128i *)odd));
    __m256i wide = t == DT_I8 ? _mm256_cvtepi8_epi16(both) : _mm256_cvtepu8_epi16(both);
    _mm256_storeu_si256((__m256i *)out, wide);
  } else {
    __m128i a = _mm_loadu_si128((const __m128i *)even), b = _mm_loadu_si128((const __m128i *)odd);
    _mm_storeu_si128((__m128i *)out, _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128((__m128i *)(out + 4), _mm_unpackhi_epi16(a, b));
  }
}

/* A row of each panel: element i of the row at `even` and of that at `odd` become one float. over: as
 * for rows. */
INLINE void pair_rows(DType t, int64_t e, const char *even, const char *odd, int w, int width,
                      int64_t panels, int64_t panel, bool over, float *out) {
  for (int64_t q = 0; q < panels; q++, even += e * w, odd += e * w, out += panel) {
    int i = 0;
    if (over) {
      pair8(t, even, odd, out);
      continue;
    }
    for (; i + 8 <= w; i += 8) pair8(t, even + e * i, odd + e * i, out + i);
    if (i && i < w && w == width) pair8(t, even + e * (w - 8), odd + e * (w - 8), out + w - 8);
    else if (i < width) pair_each(t, even + e * i, odd + e * i, e, w - i, width - i, out + i);
  }
}

/* Steps in bytes. */
INLINE void pack_pairs(DType t, int64_t e, const char *in, int64_t step, int64_t k_step, int w,
                       int width, int64_t k, int64_t panels, int64_t panel_step, float *out) {
  int64_t done = 0, all = (k + 1) / 2;
  if (step == e) {
    bool over = w == width && w < 8 && k_step >= 8 * e; /* there are other rows */
    int64_t spill = over ? 8 - all * width : -all * width;
    for (; done < k / 2 && done * width + spill <= 0; done++) {
      const char *from = in + 2 * done * k_step;
      for (int64_t b = 0; b < panels * w * e; b += 64) {
        __builtin_prefetch(from + ROWS_AHEAD * k_step + b);
        __builtin_prefetch(from + (ROWS_AHEAD + 1) * k_step + b);
      }
      pair_rows(t, e, from, from + k_step, w, width, panels, panel_step, over, out + done * width);
    }
  } else if (k_step == e) { /* pairs lie in memory as they are wanted */
    done = k / 2;
    pack(e == 1 ? t : DT_F32, in, step, 2 * e, w, width, done, panels, panel_step, out);
  }
  for (int64_t q = 0; q < panels; q++)
    for (int64_t p = done; p < all; p++) {
      const char *even = in + q * w * step + 2 * p * k_step, *odd = even + k_step;
      pair_each(t, even, 2 * p + 1 < k ? odd : NULL, step, w, width,
                out + q * panel_step + p * width);
    }
}

FN void gemm_pack_pairs(const GemmKernels *kern, DType t, const void *in, int64_t step,
                        int64_t k_step, int w, int width, int64_t k, int64_t panels,
                        int64_t panel_step, float *out) {
#define PACK_PAIRS(t, e) \
  pack_pairs(t, e, from, e *step, e *k_step, w, width, k, panels, panel_step, out)
  const char *from = in;
  if (t == DT_I8) PACK_PAIRS(DT_I8, 1);
  else if (t == DT_U8) PACK_PAIRS(DT_U8, 1);
  else if (step == 1 && kern->pair_rows && k > 1) {
    int64_t whole = k / 2;
    kern->pair_rows(from, k_step, w, width, 2 * whole, panels, panel_step, out);
    from += 4 * whole * k_step;
    out += whole * width;
    k -= 2 * whole;
    PACK_PAIRS(DT_I16, 2);
  } else PACK_PAIRS(DT_I16, 2);
#undef PACK_PAIRS
}

/* Four rows of w bytes, one below the other, become floats of a row of each panel. */
INLINE void quad_rows(const char *in, int64_t k_step, int w, int width, int64_t panels,
                      int64_t panel, float *out) {
  for (int64_t q = 0; q < panels; q++, in += w, out += panel) {
    int i = 0;
    for (; i + 16 <= w; i += 16) {
      __m128i r[4], s[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; u++) r[u] = _mm_loadu_si128((const __m128i *)(in + u * k_step + i));
      s[0] = _mm_unpacklo_epi8(r[0], r[1]);
      s[1] = _mm_unpackhi_epi8(r[0], r[1]);
      s[2] = _mm_unpacklo_epi8(r[2], r[3]);
      s[3] = _mm_unpackhi_epi8(r[2], r[3]);
      __m128i *to = (__m128i *)(out + i);
      _mm_storeu_si128(to, _mm_unpacklo_epi16(s[0], s[2]));
      _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(s[0], s[2]));
      _mm_storeu_si128(to + 2, _mm_unpacklo_epi16(s[1], s[3]));
      _mm_storeu_si128(to + 3, _mm_unpackhi_epi16(s[1], s[3]));
    }
    for (int j = i; w >= 4 && j < w; j += 4) { /* the last four may be done twice */
      i = MIN(j, w - 4);
      __m128i r[4];
#pragma GCC unroll 4
      for (int u = 0; u < 4; u++) r[u] = _mm_loadu_si32(in + u * k_step + i);
      r[0] = _mm_unpacklo_epi16(_mm_unpacklo_epi8(r[0], r[1]), _mm_unpacklo_epi8(r[2], r[3]));
      _mm_storeu_si128((__m128i *)(out + i), r[0]);
      i += 4;
    }
    for (; i < width; i++) {
      char quad[4] = {0};
      for (int u = 0; i < w && u < 4; u++) quad[u] = in[u * k_step + i];
      memcpy(out + i, quad, 4);
    }
  }
}

FN void gemm_pack_quads(bool flip, const void *in, int64_t step, int64_t k_step, int w, int width,
                        int64_t k, int64_t panels, int64_t panel_step, float *out) {
  const char *from = in;
  int64_t whole = k / 4, done = 0, all = (k + 3) / 4;
  if (step == 1) {
    for (; done < whole; done++) {
      for (int64_t b = 0; b < panels * w; b += 64)
        for (int u = 0; u < 4; u++)
          __builtin_prefetch(from + (4 * done + ROWS_AHEAD + u) * k_step + b);
      quad_rows(from + 4 * done * k_step, k_step, w, width, panels, panel_step, out + done * width);
    }
  } else if (k_step == 1) { /* quads lie in memory as they are wanted */
    pack(DT_F32, from, step, 4, w, width, whole, panels, panel_step, out);
    done = whole;
  }
  for (int64_t q = 0; q < panels; q++) {
    float *panel = out + q * panel_step;
    for (int64_t p = done; p < all; p++)
      for (int i = 0; i < width; i++) {
        char quad[4] = {0};
        for (int64_t u = 0; i < w && u < MIN(4, k - 4 * p); u++)
          quad[u] = from[(q * w + i) * step + (4 * p + u) * k_step];
        memcpy(panel + p * width + i, quad, 4);
      }
    for (int64_t i = 0; flip && i < all * width; i++) {
      uint32_t quad;
      memcpy(&quad, panel + i, 4);
      quad ^= 0x80808080;
      memcpy(panel + i, &quad, 4);
    }
  }
}

INLINE __m128i narrow8(DType t, __m256 x) {
  if (t == DT_F16) return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  __m256i u = _mm256_castps_si256(x),
          odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1)),
          r = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
          quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000)),
          nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  r = _mm256_srli_epi32(_mm256_blendv_epi8(r, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}

INLINE void narrow(DType t, const float *c, int64_t c_row, int64_t rows, int64_t columns, char *out,
                   int64_t out_row) {
  for (int64_t i = 0; i < rows; i++, c += c_row, out += 2 * out_row) {
    int64_t j = 0;
    for (; j + 8 <= columns; j += 8)
      _mm_storeu_si128((__m128i *)(out + 2 * j), narrow8(t, _mm256_loadu_ps(c + j)));
    if (j == columns) continue;
    __m128i last = narrow8(t, load_part(DT_F32, (const char *)(c + j), (int)(columns - j)));
    memcpy(out + 2 * j, &last, 2 * (size_t)(columns - j));
  }
}

FN void gemm_narrow(DType t, const float *c, int64_t c_row, int64_t rows, int64_t columns,
                    void *out, int64_t out_row) {
  if (t == DT_F16) narrow(DT_F16, c, c_row, rows, columns, out, out_row);
  else narrow(DT_BF16, c, c_row, rows, columns, out, out_row);
}
#endif
