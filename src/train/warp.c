/* Pictures as they might have been taken: shifted by whole pixels and turned around their middle.
 * What lies outside has the value of the nearest edge. */
#include "train/data_priv.h"

#include <math.h>
#include <stdlib.h>

/* Uniform in -1 ... 1: the k-th number of an example. */
static double uniform(uint64_t rand, uint64_t k) {
  return (double)(random_word(rand, 3000, k) >> 11) / 4503599627370496.0 - 1;
}

static int64_t inside(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

/* Whole pixels: -most ... most, each as likely. */
static int64_t offset(uint64_t rand, uint64_t k, int64_t most) {
  return (int64_t)(random_word(rand, 3000, k) % (uint64_t)(2 * most + 1)) - most;
}

static void shift(const int64_t s[3], int64_t dy, int64_t dx, const uint8_t *from, uint8_t *to) {
  for (int64_t y = 0; y < s[0]; y++)
    for (int64_t x = 0; x < s[1]; x++)
      memcpy(to + (y * s[1] + x) * s[2],
             from + (inside(y + dy, s[0]) * s[1] + inside(x + dx, s[1])) * s[2], (size_t)s[2]);
}

/* Each pixel is interpolated between the four around where it comes from. */
static void turn(const int64_t s[3], double angle, double dy, double dx, const uint8_t *from,
                 uint8_t *to) {
  double sine = sin(angle), cosine = cos(angle);
  double my = (double)(s[0] - 1) / 2, mx = (double)(s[1] - 1) / 2;
  for (int64_t i = 0; i < s[0] * s[1]; i++) {
    double y = (double)(i / s[1]) - my, x = (double)(i % s[1]) - mx;
    double sy = my + dy + y * cosine - x * sine, sx = mx + dx + y * sine + x * cosine;
    double fy = floor(sy), fx = floor(sx), py = sy - fy, px = sx - fx;
    int64_t y0 = inside((int64_t)fy, s[0]), y1 = inside((int64_t)fy + 1, s[0]);
    int64_t x0 = inside((int64_t)fx, s[1]), x1 = inside((int64_t)fx + 1, s[1]);
    for (int64_t c = 0; c < s[2]; c++) {
      const uint8_t *p = from + c;
      double up = (1 - px) * p[(y0 * s[1] + x0) * s[2]] + px * p[(y0 * s[1] + x1) * s[2]];
      double low = (1 - px) * p[(y1 * s[1] + x0) * s[2]] + px * p[(y1 * s[1] + x1) * s[2]];
      to[i * s[2] + c] = (uint8_t)((1 - py) * up + py * low + 0.5);
    }
  }
}

void picture_warp(const Field *f, int64_t most, double degrees, uint64_t rand, uint8_t *picture) {
  const int64_t *s = f->dims;
  size_t size = (size_t)(s[0] * s[1] * s[2]);
  uint8_t *from = xmalloc(size + 1);
  memcpy(from, picture, size);
  int64_t dy = offset(rand, 0, most), dx = offset(rand, 1, most);
  if (degrees > 0)
    turn(s, uniform(rand, 2) * degrees * M_PI / 180, (double)dy, (double)dx, from, picture);
  else shift(s, dy, dx, from, picture);
  free(from);
}
