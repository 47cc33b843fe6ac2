/* The AVX-512 that this folder's kernels use. With -DWEFT_EMULATE_AVX512=ON (cmake) each vector is
 * two of AVX2 and the device takes itself for 512 bits wide, so that a host without AVX-512 runs,
 * slowly, the code that a host with it would: `make check` passes the tests so. */
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

/* Rounded to nearest even; NaN stay NaN. */
__attribute__((target("avx2"))) static inline __attribute__((always_inline, unused)) __m128i
v8_to_bf16(__m256 x) {
  __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16),
          odd = _mm256_and_si256(high, _mm256_set1_epi32(1)),
          sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))),
          nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40)),
          is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  sum = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), nan, is_nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
}

#ifndef WEFT_EMULATE_AVX512
#define AVX512 __attribute__((target("avx512f")))

/* Written so that gcc keeps the sum in one register. */
#define V16_FMA(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
typedef __m512 V16;
#define V16_ZERO _mm512_setzero_ps
#define V16_SET _mm512_set1_ps
#define V16_LOAD _mm512_loadu_ps
#define V16_STORE _mm512_storeu_ps
#define V16_ADD _mm512_add_ps
#define V16_SUB _mm512_sub_ps
#define V16_MUL _mm512_mul_ps
#define V16_MADD _mm512_fmadd_ps
#define V16_SUM _mm512_reduce_add_ps
/* The first n lanes: of what is loaded (the others are zero), and of what is stored. */
typedef __mmask16 V16Mask;
#define V16_MASK(n) ((__mmask16)((1u << (n)) - 1))
#define V16_LOAD_MASK(p, m) _mm512_maskz_loadu_ps(m, p)
#define V16_STORE_MASK _mm512_mask_storeu_ps
/* Zero but in the last n > 0 lanes. */
#define V16_LAST(v, n) _mm512_maskz_mov_ps((__mmask16)(0xffff0000u >> (n)), v)
/* The sum of each. */
AVX512 static inline __attribute__((always_inline, unused)) __m256 v16_halves(__m512 x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x),
                       _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
}
AVX512 static inline __attribute__((always_inline, unused)) __m128 V16_SUM4(V16 a, V16 b, V16 c,
                                                                            V16 d) {
  __m256 s = _mm256_hadd_ps(_mm256_hadd_ps(v16_halves(a), v16_halves(b)),
                            _mm256_hadd_ps(v16_halves(c), v16_halves(d)));
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}
/* All lanes are finite. */
#define V16_FINITE(x) \
  (_mm512_cmp_ps_mask(_mm512_sub_ps(x, x), _mm512_setzero_ps(), _CMP_NEQ_UQ) == 0)
#define V16_BF16(p)    \
  _mm512_castsi512_ps( \
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p))), 16))
#define V16_F16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
/* Rounded to nearest even; NaN stay NaN. */
AVX512 static inline __attribute__((always_inline, unused)) void V16_STORE_BF16(void *p, V16 x) {
  __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16),
          odd = _mm512_and_si512(high, _mm512_set1_epi32(1)),
          sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))),
          nan = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  sum = _mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), is_nan, nan);
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(sum));
}
/* sum += the products of the two bf16 in each lane; hosts with AVX512_BF16 only, which all have the
 * others. */
#define AVX512_BF16 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16")))
#define V16_FMA_PAIRS(sum, x, y) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#else
#define AVX512 __attribute__((target("avx2,fma,f16c")))
#define V16_FN AVX512 static inline __attribute__((always_inline, unused))

typedef struct V16 {
  __m256 lo, hi;
} V16;

V16_FN V16 V16_SET(float x) { return (V16){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
V16_FN V16 V16_ZERO(void) { return V16_SET(0); }
V16_FN V16 V16_LOAD(const float *p) { return (V16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
V16_FN void V16_STORE(float *p, V16 x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
V16_FN V16 V16_ADD(V16 a, V16 b) {
  return (V16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
V16_FN V16 V16_SUB(V16 a, V16 b) {
  return (V16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
V16_FN V16 V16_MUL(V16 a, V16 b) {
  return (V16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
V16_FN V16 V16_MADD(V16 a, V16 b, V16 c) {
  return (V16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
V16_FN int V16_FINITE(V16 x) {
  V16 d = V16_SUB(x, x);
  __m256 zero = _mm256_setzero_ps();
  return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(d.lo, zero, _CMP_NEQ_UQ),
                                         _mm256_cmp_ps(d.hi, zero, _CMP_NEQ_UQ))) == 0;
}
/* In the order of _mm512_reduce_add_ps: halves, quarters, pairs. */
V16_FN float V16_SUM(V16 a) {
  __m256 h = _mm256_add_ps(a.lo, a.hi);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
#define V16_FMA(sum, x, y)                                                               \
  (sum) = (V16) {                                                                        \
    _mm256_fmadd_ps((x).lo, (y).lo, (sum).lo), _mm256_fmadd_ps((x).hi, (y).hi, (sum).hi) \
  }
#define AVX512_BF16 AVX512
V16_FN __m256 v16_half_pairs(__m256 sum, __m256 x, __m256 y) {
  __m256 odd = _mm256_castsi256_ps(_mm256_set1_epi32(-65536));
  sum = _mm256_fmadd_ps(_mm256_and_ps(x, odd), _mm256_and_ps(y, odd), sum);
  x = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 16));
  y = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(y), 16));
  return _mm256_fmadd_ps(x, y, sum);
}
#define V16_FMA_PAIRS(sum, x, y)                                                       \
  (sum) = (V16) {                                                                      \
    v16_half_pairs((sum).lo, (x).lo, (y).lo), v16_half_pairs((sum).hi, (x).hi, (y).hi) \
  }
typedef struct V16Mask {
  __m256i lo, hi;
} V16Mask;
V16_FN V16Mask V16_MASK(int64_t n) {
  __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return (V16Mask){_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes),
                   _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - 8), lanes)};
}
V16_FN V16 V16_LOAD_MASK(const float *p, V16Mask m) {
  return (V16){_mm256_maskload_ps(p, m.lo), _mm256_maskload_ps(p + 8, m.hi)};
}
V16_FN void V16_STORE_MASK(float *p, V16Mask m, V16 x) {
  _mm256_maskstore_ps(p, m.lo, x.lo);
  _mm256_maskstore_ps(p + 8, m.hi, x.hi);
}
V16_FN V16 V16_LAST(V16 v, int64_t n) {
  V16Mask m = V16_MASK(16 - n);
  return (V16){_mm256_andnot_ps(_mm256_castsi256_ps(m.lo), v.lo),
               _mm256_andnot_ps(_mm256_castsi256_ps(m.hi), v.hi)};
}
V16_FN __m128 V16_SUM4(V16 a, V16 b, V16 c, V16 d) {
  __m256 ab = _mm256_hadd_ps(_mm256_add_ps(a.lo, a.hi), _mm256_add_ps(b.lo, b.hi)),
         cd = _mm256_hadd_ps(_mm256_add_ps(c.lo, c.hi), _mm256_add_ps(d.lo, d.hi)),
         s = _mm256_hadd_ps(ab, cd);
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}
V16_FN __m256 v16_half_bf16(const void *p) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
V16_FN V16 V16_BF16(const void *p) {
  return (V16){v16_half_bf16(p), v16_half_bf16((const char *)p + 16)};
}
V16_FN void V16_STORE_BF16(void *p, V16 x) {
  _mm_storeu_si128((__m128i *)p, v8_to_bf16(x.lo));
  _mm_storeu_si128((__m128i *)p + 1, v8_to_bf16(x.hi));
}
V16_FN V16 V16_F16(const void *p) {
  return (V16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
               _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const char *)p + 16)))};
}
#endif
#endif
