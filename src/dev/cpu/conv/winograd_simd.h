/* dev/cpu, private to winograd.c: its arithmetic, for vectors of AVX2 or AVX-512.
 *
 * Transformed tiles lie as [place][panel of 16 channels][tile][16]; `place_step` and
 * `panel_step` are elements. What a tile does not cover is a pointer to zeros (sources) or NULL
 * (results). */
#ifndef WEFT_DEV_CPU_WINOGRAD_SIMD_H
#define WEFT_DEV_CPU_WINOGRAD_SIMD_H

#include <stdbool.h>
#include <stdint.h>

#define WINO_OUT 4 /* a tile of results is 4 x 4, of the source 6 x 6 for 3 taps, 5 x 5 for 2; */
                   /* flat: 1 x 4, 1 x 6, 1 x 5 */
#define WINO_PLACES 36
#define PANEL 16

/* Of one tile, channels [first, first + PANEL), those from `channels` on are zero. */
typedef void WinoIn(const void *const *pixels, int64_t first, int64_t channels, float *to,
                    int64_t place_step);
/* Gives whether all of them are finite. */
typedef bool WinoOut(const float *from, int64_t place_step, void *const *pixels, int64_t first,
                     int64_t channels);

typedef struct WinoSimd {
  int in, places; /* of a tile of the source: in columns */
  bool flat;
  int rows;                        /* tiles that multiply() takes at once */
  WinoIn *source[2], *gradient[2]; /* of f32, of bf16 */
  WinoOut *result[2];
  /* Kernels: taps are [taps x taps][PANEL], flat [taps][PANEL]. */
  void (*kernel)(const float *taps, float *to, int64_t place_step);
  bool (*kernel_back)(const float *from, int64_t place_step, float *taps);
  /* to[row][PANEL] = sum over channels of tiles[panel][row][channel] * kernel[channel][PANEL], for
   * `rows` tiles; for `many` panels of results, kernel_step and to_step apart. */
  void (*multiply)(const float *tiles, int64_t panel_step, int64_t panels, const float *kernel,
                   int64_t kernel_step, float *to, int64_t to_step, int64_t many);
  /* to[i * to_step + j] (+)= sum over tiles of a[tile][i] * b[tile][j], 16 x 16; for `many` panels
   * b_step apart, their results PANEL. */
  void (*outer)(const float *a, const float *b, int64_t b_step, int64_t many, int64_t tiles,
                float *to, int64_t to_step, int add);
} WinoSimd;

/* Sums over channels and over tiles are kept in parts of so many panels and tiles, which are added:
 * the error of a long sum grows with the root of its terms, and would be that of Winograd's
 * algorithm. */
#define WINO_SUM 2
#define WINO_SUM_TILES 64
#define WINO_PART(panels) ((panels) < WINO_SUM ? (panels) : WINO_SUM)

extern const WinoSimd wino_avx2[2][2], wino_avx512[2][2]; /* [flat][taps - 2] */
/* taps: 3 or 2. NULL: the host has none. */
const WinoSimd *wino_simd(int taps, bool flat);

#endif
