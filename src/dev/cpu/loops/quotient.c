/* Quotients by a constant as two products: with 1 / c cut short to h, and l what h lacks of it,
 *
 *   x / c = fma(x, h, x l)
 *
 * is off by less than 2^-43 before it is rounded, so that it is rounded as the quotient is unless that
 * lies so near the middle of two floats. Of a constant there are few x for which it does: they are tried
 * (after Brisebarre, Muller and Raina, Accelerating correctly rounded floating-point division when the
 * divisor is known in advance, IEEE Transactions on Computers 53, 2004). h and l have one sign: infinities
 * and zeros come out as they should. */
#include <math.h>

#include "dev/cpu/loops/emit_priv.h"

#define CUTS 4 /* ways of cutting 1 / c short */

/* 1 / c modulo 2^64 */
static uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 5; i++) x *= 2 - odd * x;
  return x;
}

/* x of 24 bits and odd c: x 2^a = m c + k, where m is odd and of 25 bits, has x / c beside the middle of
 * two floats. */
static bool right_for(uint64_t c, int a, int64_t k, float by, float h, float l) {
  const uint64_t turn = (uint64_t)1 << a, low = (uint64_t)1 << 24;
  uint64_t m = ((uint64_t)-k * inverse(c)) & (turn - 1);
  if (m < low) m += (low - m + turn - 1) / turn * turn;
  for (; m < 2 * low; m += turn) {
    uint64_t x = (m * c + (uint64_t)k) >> a;
    if (m % 2 == 0 || x < low / 2 || x >= low) continue;
    float f = (float)x;
    if (fmaf(f, h, f * l) != f / by) return false;
  }
  return true;
}

bool quotient_by(float c, float *h, float *l) {
  int exponent, bits = 0;
  uint64_t odd = (uint64_t)ldexp(frexp(fabs((double)c), &exponent), 24);
  while (odd && odd % 2 == 0) odd /= 2;
  if (odd < 2) return false; /* a power of two, not a number */
  while (odd >> bits) bits++;
  int64_t near = (int64_t)(odd >> 18); /* 2^-43 of a quotient of 25 bits, in parts of c */
  double whole = 1 / (double)c;
  float cut = (float)whole;
  if (fabs((double)cut) > fabs(whole)) cut = nextafterf(cut, 0);
  for (int i = 0; i < CUTS; i++, cut = nextafterf(cut, 0)) {
    *h = cut;
    *l = (float)(whole - (double)cut);
    bool right = *l != 0;
    for (int a = bits - 1; right && a <= bits + 2; a++)
      for (int64_t k = -near; right && k <= near; k++)
        right = k == 0 || right_for(odd, a, k, c, *h, *l); /* none is in the middle */
    if (right) return true;
  }
  return false;
}
