/* sin, cos, tan, powers and remainders of a vector's lanes, computed in double, four at a time, and
 * rounded once: within 0.501 ulp of f32, remainders exact. Lanes that the straight way does not cover
 * (angles beyond 1e6, powers of zero and infinity, quotients beyond 2^28, NaN) and machines without
 * AVX2 go through the C library. */
#include <math.h>
#include <string.h>

#include "dev/cpu/loops/emit_priv.h"

static bool is_near(float x) { return fabsf(x) <= 1e6f; }
static bool is_plain(float x, float y) { return x > 0 && x < INFINITY && fabsf(y) < INFINITY; }
static bool is_short(float x, float y) { /* -2^28 < x / y < 2^28 */
  return fabsf(x) < INFINITY && fabsf(y) < INFINITY && fabs((double)x) < fabs((double)y) * 0x1p28;
}

#if defined(__x86_64__) && defined(__GNUC__)

#define FN __attribute__((target("avx2,fma")))
#define INLINE FN static inline __attribute__((always_inline))
typedef float Floats __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(32)));
typedef uint64_t Words __attribute__((vector_size(32)));

#define ROUNDER 0x1.8p52 /* added and taken away: the nearest integer, in the low bits meanwhile */
#define ROUNDER_BITS 0x4338000000000000u
#define QUARTER_HIGH 0x1.921fb544p+0 /* of pi / 2: 33 bits, so that multiples are exact */
#define QUARTER_LOW 0x1.0b4611a626331p-34

static bool has_vectors(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

INLINE void take(const float *x, int64_t n, Doubles *to) { /* beyond n: 1 */
  Floats f = {1, 1, 1, 1};
  if (n >= 4) memcpy(&f, x, sizeof f);
  else memcpy(&f, x, sizeof *x * (size_t)n);
  *to = __builtin_convertvector(f, Doubles);
}

INLINE void give(float *y, int64_t n, Doubles v) {
  Floats f = __builtin_convertvector(v, Floats);
  memcpy(y, &f, n >= 4 ? sizeof f : sizeof *y * (size_t)n);
}

INLINE Doubles pick(Words mask, Doubles yes, Doubles no) {
  return (Doubles)(((Words)yes & mask) | ((Words)no & ~mask));
}

/* Taylor's series of the rest after the nearest multiple k of pi / 2; what is left out is below
 * 1e-11. *odd: all bits where k is. */
INLINE void angle(Doubles x, Doubles *s, Doubles *c, Words *k, Words *odd) {
  Doubles t = x * 0.63661977236758134308 + ROUNDER, n = t - ROUNDER;
  Doubles r = (x - n * QUARTER_HIGH) - n * QUARTER_LOW, q = r * r;
  *s = -1.0 / 6 + q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880 - q * (1.0 / 39916800))));
  *s = r * (1 + q * *s);
  *c = -1.0 / 720 + q * (1.0 / 40320 + q * (-1.0 / 3628800 + q * (1.0 / 479001600)));
  *c = 1 + q * (-0.5 + q * (1.0 / 24 + q * *c));
  *k = (Words)t;
  *odd = -(*k & 1);
}

INLINE Doubles turned(Doubles x, uint64_t more) { /* sin(x + more pi / 2) */
  Doubles s, c;
  Words k, odd;
  angle(x, &s, &c, &k, &odd);
  if (more & 1) odd = ~odd;
  return (Doubles)((Words)pick(odd, c, s) ^ ((k + more) & 2) << 62);
}

INLINE Doubles tangent(Doubles x) {
  Doubles s, c;
  Words k, odd;
  angle(x, &s, &c, &k, &odd);
  return pick(odd, -c, s) / pick(odd, s, c);
}

/* log2 of a positive finite f32: x = 2^e m with m from sqrt(1/2) to sqrt(2), log m = 2 artanh f; the
 * series is left at f^17, below 1e-14. Of other numbers: anything. */
INLINE Doubles log_two(Doubles x) {
  const uint64_t least = 0x3fe6a09e667f3bcdu, low = 0xfffffffffffffu;
  Words u = (Words)x - least, e_bits = (u + ((uint64_t)1024 << 52)) >> 52;
  Doubles e = (Doubles)(e_bits + ROUNDER_BITS) - (ROUNDER + 1024);
  Doubles m = (Doubles)((u & low) + least), f = (m - 1) / (m + 1), q = f * f;
  Doubles s = 1.0 / 11 + q * (1.0 / 13 + q * (1.0 / 15));
  s = 1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * s)));
  return e + 2.88539008177792681472 * (f + f * q * s);
}

INLINE Doubles exp_two(Doubles t) { /* beyond +-1000 as there: out of f32's range */
  Doubles limit = t * 0 + 1000;
  t = pick((Words)(t < limit), t, limit);
  t = pick((Words)(t > -limit), t, -limit);
  Doubles r = t + ROUNDER, g = (t - (r - ROUNDER)) * 0.69314718055994530942;
  Doubles p = 1.0 / 5040 + g * (1.0 / 40320 + g * (1.0 / 362880 + g * (1.0 / 3628800)));
  p = 1.0 / 6 + g * (1.0 / 24 + g * (1.0 / 120 + g * (1.0 / 720 + g * p)));
  p = 1 + g * (1 + g * (0.5 + g * p));
  return (Doubles)((Words)p + ((Words)r << 52));
}

/* What is left of x after the nearest multiple of y, which has no more digits than a double, brought
 * to the side of zero that x is on. */
INLINE Doubles rest(Doubles x, Doubles y) {
  const Words sign = (Words){} + ((uint64_t)1 << 63);
  Doubles n = (x / y + ROUNDER) - ROUNDER, r = x - n * y;
  Words other = ((Words)r ^ (Words)x) & sign, size = (Words)y & ~sign;
  Doubles more = r + (Doubles)(size | ((Words)x & sign));
  r = pick((Words)(r != 0) & -(other >> 63), more, r);
  return (Doubles)(((Words)r & ~sign) | ((Words)x & sign));
}

FN static void vector_sines(const float *x, float *y, int64_t n, uint64_t more) {
  Doubles v;
  for (int64_t i = 0; i < n; i += 4) {
    take(x + i, n - i, &v);
    give(y + i, n - i, turned(v, more));
  }
}

FN static void vector_tangents(const float *x, float *y, int64_t n) {
  Doubles v;
  for (int64_t i = 0; i < n; i += 4) {
    take(x + i, n - i, &v);
    give(y + i, n - i, tangent(v));
  }
}

/* Of what is negative only whole powers are numbers, and odd ones negative. */
INLINE Doubles power(Doubles x, Doubles y) {
  const Words sign = (Words){} + ((uint64_t)1 << 63);
  const Doubles nan = (Doubles)((Words){} + 0x7ff8000000000000u);
  Doubles limit = y * 0 + 0x1p26; /* from here on all of f32 are even */
  Doubles near = pick((Words)(y < limit) & (Words)(y > -limit), y, limit), whole = near + ROUNDER;
  Words odd = (Words)whole << 63, negative = (Words)(x < 0);
  Doubles z = exp_two(y * log_two((Doubles)((Words)x & ~sign)));
  z = (Doubles)((Words)z | (negative & odd));
  return pick(negative & (Words)(whole - ROUNDER != near), nan, z);
}

FN static void vector_powers(const float *x, const float *y, float *z, int64_t n) {
  Doubles a, b;
  for (int64_t i = 0; i < n; i += 4) {
    take(x + i, n - i, &a);
    take(y + i, n - i, &b);
    give(z + i, n - i, exp_two(b * log_two(a)));
  }
}

FN static void vector_signed_powers(const float *x, const float *y, float *z, int64_t n) {
  Doubles a, b;
  for (int64_t i = 0; i < n; i += 4) {
    take(x + i, n - i, &a);
    take(y + i, n - i, &b);
    give(z + i, n - i, power(a, b));
  }
}

FN static void vector_remainders(const float *x, const float *y, float *z, int64_t n) {
  Doubles a, b;
  for (int64_t i = 0; i < n; i += 4) {
    take(x + i, n - i, &a);
    take(y + i, n - i, &b);
    give(z + i, n - i, rest(a, b));
  }
}

#else
static bool has_vectors(void) { return false; }
static void vector_sines(const float *x, float *y, int64_t n, uint64_t more) {
  (void)x, (void)y, (void)n, (void)more;
}
static void vector_tangents(const float *x, float *y, int64_t n) { (void)x, (void)y, (void)n; }
static void vector_powers(const float *x, const float *y, float *z, int64_t n) {
  (void)x, (void)y, (void)z, (void)n;
}
static void vector_signed_powers(const float *x, const float *y, float *z, int64_t n) {
  (void)x, (void)y, (void)z, (void)n;
}
static void vector_remainders(const float *x, const float *y, float *z, int64_t n) {
  (void)x, (void)y, (void)z, (void)n;
}
#endif

static void sines(const float *x, float *y, int64_t n) {
  bool done = has_vectors();
  if (done) vector_sines(x, y, n, 0);
  for (int64_t i = 0; i < n; i++)
    if (!done || !is_near(x[i])) y[i] = (float)sin((double)x[i]);
}

static void cosines(const float *x, float *y, int64_t n) {
  bool done = has_vectors();
  if (done) vector_sines(x, y, n, 1);
  for (int64_t i = 0; i < n; i++)
    if (!done || !is_near(x[i])) y[i] = (float)cos((double)x[i]);
}

static void tangents(const float *x, float *y, int64_t n) {
  bool done = has_vectors();
  if (done) vector_tangents(x, y, n);
  for (int64_t i = 0; i < n; i++)
    if (!done || !is_near(x[i])) y[i] = (float)tan((double)x[i]);
}

static void powers(const float *x, const float *y, float *z, int64_t n) {
  bool done = has_vectors(), plain = done;
  for (int64_t i = 0; i < n; i++) plain &= is_plain(x[i], y[i]);
  if (plain) {
    vector_powers(x, y, z, n);
    return;
  }
  if (done) vector_signed_powers(x, y, z, n);
  for (int64_t i = 0; i < n; i++)
    if (!done || !is_plain(fabsf(x[i]), y[i])) z[i] = (float)pow((double)x[i], (double)y[i]);
}

static void remainders(const float *x, const float *y, float *z, int64_t n) {
  bool done = has_vectors();
  if (done) vector_remainders(x, y, z, n);
  for (int64_t i = 0; i < n; i++)
    if (!done || !is_short(x[i], y[i])) z[i] = fmodf(x[i], y[i]);
}

const Helper lanes_helpers[] = {
    {"weft_sines", (void *)sines},           {"weft_cosines", (void *)cosines},
    {"weft_tangents", (void *)tangents},     {"weft_powers", (void *)powers},
    {"weft_remainders", (void *)remainders}, {0},
};
