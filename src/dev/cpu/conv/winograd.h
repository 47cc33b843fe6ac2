/* dev/cpu, private to winograd*.c: how a convolution is cut into tiles.
 *
 * Along each dimension a result sums up taps of its window. Winograd's algorithm wants `taps` (3 or
 * 2) of them, a step apart, for results a step apart; so a window is cut into shifts, blocks of so
 * many taps that read the source from another place on, which count as further channels of it:
 *
 *   windows of more taps     blocks one after the other
 *   steps, forward           the taps that leave the same remainder; results lie 1 apart, what they
 *                            read a step
 *   steps, backward          each remainder of the results' places has taps of its own: a run each
 *   gaps                     results as far apart as the taps: lanes, the tiles of each remainder
 *
 * Of three dimensions the outermost goes tap by tap, tiles of one place; so do both others where
 * tiles are flat: sequences, and windows that are much longer than wide. */
#ifndef WEFT_DEV_CPU_WINOGRAD_H
#define WEFT_DEV_CPU_WINOGRAD_H

#include "dev/cpu/conv/conv.h"
#include "dev/cpu/conv/winograd_simd.h"

#define WINO_DIMS 3
#define WINO_SHIFTS 8

typedef struct WinoShift {
  int64_t at;   /* first place of the source, of lane 0 */
  int64_t tap;  /* first tap */
  int64_t taps; /* so many there are */
} WinoShift;

typedef struct WinoAxis {
  int64_t result, source;        /* sizes */
  int64_t in, out;               /* places of a tile: of the source, of results */
  int64_t lanes, tiles;          /* tiles of a lane */
  int64_t first, step;           /* results: first + lane + step * n */
  int64_t source_step, tap_step; /* from place to place of a tile, from tap to tap */
  int n;
  WinoShift shift[WINO_SHIFTS];
} WinoAxis;

typedef struct WinoPlan {
  int taps;    /* 3: F(4x4, 3x3), 2: F(4x4, 2x2) */
  bool flat;   /* F(4, 3) and F(4, 2), along `along`, tap by tap along the others */
  int along;   /* a spatial dimension */
  int runs;    /* remainders of the results' places */
  double gain; /* so many times less work than direct sums */
  bool far;    /* shifts of more channels than stay in a core's cache */
} WinoPlan;

/* false: not worth it, or it cannot be cut so. *s: with the plan's dimension last. */
bool wino_plan(ConvShape *s, WinoPlan *p);
/* The axes of a run; false: it has no results. */
bool wino_axes(const ConvShape *s, const WinoPlan *p, int run, WinoAxis axes[WINO_DIMS]);

#endif
