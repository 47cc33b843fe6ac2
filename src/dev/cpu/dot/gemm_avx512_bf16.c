/* gemm's kernels for pairs of bf16, with AVX512_BF16: each step of k multiplies two elements. Panels
 * hold pairs where the others hold floats; these kernels are those of gemm_tile.h else. */
#if defined(__x86_64__)
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/avx512.h"

#define LANES 16
#define MR 12
#define V V16
#define FN AVX512_BF16
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_ADD V16_ADD
#define V_FMA V16_FMA_PAIRS
#define M V16Mask
#define V_MASK V16_MASK
#define V_LOAD_MASK V16_LOAD_MASK
#define V_STORE_MASK V16_STORE_MASK
/* Sums of products of pairs are never denormal: the conversion, which makes zeros of those, is as
 * good as gemm_narrow. */
#ifndef WEFT_EMULATE_AVX512
FN static inline __attribute__((always_inline)) void narrow_row(uint16_t *out, const V *v, int nv,
                                                                int64_t n) {
  if (nv == 1)
    _mm256_mask_storeu_epi16(out, (__mmask16)(0xffff >> (16 - n)), (__m256i)_mm512_cvtneps_pbh(*v));
  else if (n == 32) _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]));
  else
    _mm512_mask_storeu_epi16(out, 0xffffffffu >> (32 - n),
                             (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]));
}
#else
FN static inline void narrow_row(uint16_t *out, const V *v, int nv, int64_t n) {
  float row[32];
  for (int j = 0; j < nv; j++) memcpy(row + j * LANES, v + j, sizeof *v);
  gemm_narrow(DT_BF16, row, 0, 1, n, out, 0);
}
#endif
#define V_NARROW narrow_row
#define PER 2
#ifndef WEFT_EMULATE_AVX512
/* Both rows widened, one shifted to the high halves. */
#define V_HALF(p) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p)))
#define V_TAKE(p, far, j) \
  _mm512_castsi512_ps(    \
      _mm512_or_si512(V_HALF((p) + (j)*32), _mm512_slli_epi32(V_HALF((p) + (far) + (j)*32), 16)))
#endif
#include "dev/cpu/dot/gemm_tile.h"
#include "dev/cpu/dot/gemm_small.h"
#define V_BF16 V16_BF16
#define V_F16 V16_F16
#define V_SUM V16_SUM
#define V_SUM4 V16_SUM4
#define V_LAST V16_LAST
#define FEW 4
#define FEW_SEVERAL
#include "dev/cpu/dot/gemm_few.h"

#ifndef WEFT_EMULATE_AVX512
#define ROWS_AHEAD 12 /* are asked for */

FN static inline __attribute__((always_inline)) __mmask16 first(int64_t n) {
  return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

/* Both rows widened, one shifted to the high halves. */
FN static void pair_rows(const char *in, int64_t k_step, int w, int width, int64_t k,
                         int64_t panels, int64_t panel_step, float *out) {
  const int64_t far = 2 * k_step;
  for (int64_t p = 0; p < k; p += 2, in += 2 * far, out += width) {
    const char *from = in;
    float *to = out;
    for (int64_t b = 0; b < panels * w * 2; b += 64) {
      __builtin_prefetch(from + ROWS_AHEAD * far + b);
      __builtin_prefetch(from + (ROWS_AHEAD + 1) * far + b);
    }
    for (int64_t q = 0; q < panels; q++, from += 2 * w, to += panel_step)
      for (int i = 0; i < width; i += 16) {
        __mmask16 held = w - i > 0 ? first(w - i) : 0;
        __m512i even = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(held, from + 2 * i)),
                odd = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(held, from + far + 2 * i)),
                both = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
        if (width - i >= 16) _mm512_storeu_si512(to + i, both);
        else _mm512_mask_storeu_epi32(to + i, first(width - i), both);
      }
  }
}

/* The conversion makes denormals zero: rows that hold some are done again. */
FN static void narrow(const float *c, int64_t c_row, int64_t rows, int64_t columns, uint16_t *out,
                      int64_t out_row) {
  const int64_t whole = columns & ~15;
  const __mmask16 last = first(columns - whole);
  for (int64_t i = 0; i < rows; i++, c += c_row, out += out_row) {
    __mmask16 denormal = 0;
    for (int64_t j = 0; j < whole; j += 16) {
      __m512 x = _mm512_loadu_ps(c + j);
      denormal |= _mm512_fpclass_ps_mask(x, 0x20);
      _mm256_storeu_si256((__m256i *)(out + j), (__m256i)_mm512_cvtneps_pbh(x));
    }
    if (last) {
      __m512 x = _mm512_maskz_loadu_ps(last, c + whole);
      denormal |= _mm512_fpclass_ps_mask(x, 0x20);
      _mm256_mask_storeu_epi16(out + whole, last, (__m256i)_mm512_cvtneps_pbh(x));
    }
    if (denormal) gemm_narrow(DT_BF16, c, c_row, 1, columns, out, out_row);
  }
}
#define PAIR_ROWS pair_rows
#define NARROWER narrow
#else
#define PAIR_ROWS NULL
#define NARROWER NULL
#endif

/* clang-format off */
TO_12(KERNELS) TO_12(NARROWS)
#ifndef WEFT_EMULATE_AVX512
TO_12(TAKE) TO_12(TAKE_NARROW)
#define TAKES .take = {TO_12(TAKE_ROW)}, .take_narrow = {TO_12(TAKE_NARROW_ROW)}
#else
#define TAKES .take = {NULL}
#endif

const GemmKernels gemm_avx512_bf16 = {.mr = MR, .lanes = LANES, .per = 2, .fn = {TO_12(ROW)},
  .narrows = {TO_12(NARROWS_ROW)}, .takes = DT_BF16, TAKES, .pair_rows = PAIR_ROWS,
  .narrow = NARROWER, .panel = SMALL_LIST, .narrow_panel = NARROW_LIST,
  .few = FEW, .dots = {few_dots_f32}};
/* clang-format on */
#endif
