/* Packing for amx.h: operands whose columns, rows or k are runs in registers, on hosts with tiles (which all
 * have AVX-512); others by gemm's functions. */
#include "dev/cpu/dot/amx.h"

#include "dev/cpu/kernel/kernel.h"

#define ROW_PANEL (2 * AMX_TILE_B) /* a step of 32 rows */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

#if defined(__x86_64__)
#include <immintrin.h>

#define FN __attribute__((target("avx512f,avx512bw,avx512vl")))
#define INLINE FN static inline __attribute__((always_inline))
#define TOGETHER 4 /* panels whose rows are read together */
#define SOON 8     /* steps, */
#define AHEAD 16   /* rows are asked for */

INLINE __mmask32 halves(int64_t n) { return n >= 32 ? 0xffffffffu : n <= 0 ? 0 : (1u << n) - 1; }
INLINE __mmask64 bytes_mask(int64_t n) { return n >= 64 ? ~0ull : n <= 0 ? 0 : (1ull << n) - 1; }

/* Columns are runs of bf16: rows 2 p and 2 p + 1 become one. w columns, of up to `panels` panels. */
INLINE void pair_some(const char *in, int64_t far, int64_t w, int panels, int64_t k, int64_t panel,
                      char *out) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0),
                high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  for (int64_t p = 0; p < k; p += 2, in += 2 * far, out += AMX_STEP)
#pragma GCC unroll 2
    for (int q = 0; q < panels; q += 2) {
      const char *row = in + q * 32;
      __builtin_prefetch(row + AHEAD * far);
      __builtin_prefetch(row + (AHEAD + 1) * far);
      __mmask32 held = halves(w - q * AMX_SIDE);
      __m512i even = _mm512_maskz_loadu_epi16(held, row),
              odd = _mm512_maskz_loadu_epi16(p + 1 < k ? held : 0, row + (p + 1 < k ? far : 0));
      _mm512_storeu_si512(out + q * panel, _mm512_permutex2var_epi16(even, low, odd));
      if (q + 1 < panels)
        _mm512_storeu_si512(out + (q + 1) * panel, _mm512_permutex2var_epi16(even, high, odd));
    }
}

FN static void pair_columns(const char *in, int64_t far, int64_t w, int64_t k, int64_t panel,
                            char *out) {
  for (; w > 0; w -= TOGETHER * AMX_SIDE) {
    if (w > 3 * AMX_SIDE) pair_some(in, far, w, 4, k, panel, out);
    else pair_some(in, far, w, (int)parts_of(w, AMX_SIDE), k, panel, out);
    in += TOGETHER * AMX_SIDE * 2;
    out += TOGETHER * panel;
  }
}

/* r[i][j] becomes r[j][i], each four bytes. */
INLINE void turn(__m512i r[16]) {
  __m512i s[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 16; h += 8)
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      s[h + i] = _mm512_shuffle_i32x4(r[h + i], r[h + 4 + i], 0x88);
      s[h + 4 + i] = _mm512_shuffle_i32x4(r[h + i], r[h + 4 + i], 0xdd);
    }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    r[i] = _mm512_shuffle_i32x4(s[i], s[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(s[i], s[8 + i], 0xdd);
  }
}

/* k is a run, of so many bytes. */
FN static void turn_columns(const char *in, int64_t far, int64_t w, int64_t bytes, int64_t steps,
                            int64_t panel, char *out) {
  for (; w > 0; w -= AMX_SIDE, in += AMX_SIDE * far, out += panel)
    for (int64_t s = 0; s < steps; s++) {
      __mmask64 held = bytes_mask(bytes - s * AMX_STEP);
      /* Of these columns, or the first of the next. */
      int64_t ahead =
          s + SOON < steps ? SOON * AMX_STEP : (SOON - steps) * AMX_STEP + AMX_SIDE * far;
      __m512i r[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; i++) {
        const char *p = in + i * far + s * AMX_STEP;
        __builtin_prefetch(p + ahead);
        r[i] = i < w ? _mm512_maskz_loadu_epi8(held, p) : _mm512_setzero_si512();
      }
      turn(r);
#pragma GCC unroll 16
      for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + s * AMX_TILE_B + i * AMX_STEP, r[i]);
    }
}

/* Rows of bf16 are runs: up to 16 of them, to rows of k. */
FN static void turn_rows(const char *in, int64_t far, int64_t rows, int64_t k, int64_t steps,
                         char *out) {
  const __mmask16 held = (__mmask16)halves(rows);
  for (int64_t s = 0; s < steps; s++, out += ROW_PANEL) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
      int64_t p = s * 32 + 2 * i;
      const char *row = in + p * far;
      __builtin_prefetch(row + 32 * far);
      __builtin_prefetch(row + 33 * far);
      __m256i even = _mm256_maskz_loadu_epi16(p < k ? held : 0, row),
              odd = _mm256_maskz_loadu_epi16(p + 1 < k ? held : 0, row + far);
      r[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                             _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
    }
    turn(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + i * AMX_STEP, r[i]);
  }
}

static bool wide(DType t) { return cpu_has_tiles(t == DT_BF16 ? CPU_TILES_BF16 : CPU_TILES_INT8); }
#else
static bool wide(DType t) {
  (void)t;
  return false;
}
#define pair_columns(...) ((void)0)
#define turn_columns(...) ((void)0)
#define turn_rows(...) ((void)0)
#endif

void amx_pack_columns(DType t, const void *in, int64_t step, int64_t k_step, int64_t w, int64_t k,
                      int64_t steps, int64_t panel_bytes, char *out) {
  int64_t e = dtype_bytes(t), per = 4 / e, panel = panel_bytes / 4, groups = parts_of(k, per),
          filled = steps * (AMX_TILE_B / 4), whole = w / AMX_SIDE;
  const char *from = in;
  float *to = (float *)(void *)out;
  if (k_step == 1 && wide(t)) {
    turn_columns(in, step * e, w, k * e, steps, panel_bytes, out);
    return;
  }
  bool pairs = step == 1 && e == 2 && wide(t);
  if (pairs) pair_columns(in, k_step * e, w, k, panel_bytes, out);
  for (int i = 0; i < 2; i++) {
    int64_t panels = i ? w % AMX_SIDE != 0 : whole;
    int width = i ? (int)(w % AMX_SIDE) : AMX_SIDE;
    if (!panels) continue;
    if (e == 2 && !pairs)
      gemm_pack_pairs(gemm_pairs(), t, from, step, k_step, width, AMX_SIDE, k, panels, panel, to);
    else if (!pairs)
      gemm_pack_quads(false, from, step, k_step, width, AMX_SIDE, k, panels, panel, to);
    for (int64_t q = 0; q < panels; q++)
      memset(to + q * panel + groups * AMX_SIDE, 0,
             (size_t)(filled - groups * AMX_SIDE) * sizeof *to);
    from += whole * AMX_SIDE * step * e;
    to += whole * panel;
  }
}

void amx_pack_rows(DType t, const void *in, int64_t step, int64_t k_step, int64_t rows, int64_t k,
                   int64_t steps, char *out, char *turned) {
  int64_t e = dtype_bytes(t), bytes = k * e, each = AMX_STEP / e;
  const char *from = in;
  if (k_step == 1) {
    for (int64_t r = 0; r < rows; r++, from += step * e) {
      char *to = out + r * AMX_STEP;
      int64_t s = 0;
      for (; (s + 1) * AMX_STEP <= bytes; s++)
        memcpy(to + s * ROW_PANEL, from + s * AMX_STEP, AMX_STEP);
      if (s == steps) continue;
      memset(to + s * ROW_PANEL, 0, AMX_STEP);
      memcpy(to + s * ROW_PANEL, from + s * AMX_STEP, (size_t)(bytes - s * AMX_STEP));
    }
    return;
  }
  bool fast = step == 1 && e == 2 && wide(t);
  for (int64_t r = 0; r < rows; r += AMX_SIDE) {
    int64_t held = MIN(AMX_SIDE, rows - r);
    if (fast) turn_rows(from + r * e, k_step * e, held, k, steps, out + r * AMX_STEP);
    for (int64_t s = 0; s < steps && !fast; s++) {
      amx_pack_columns(t, from + (r * step + s * each * k_step) * e, step, k_step, held,
                       MIN(each, k - s * each), 1, AMX_TILE_B, turned);
      gemm_pack(DT_F32, turned, AMX_SIDE, 1, AMX_SIDE, AMX_SIDE, AMX_SIDE, 1, 0,
                (float *)(void *)(out + s * ROW_PANEL + r * AMX_STEP));
    }
  }
}
