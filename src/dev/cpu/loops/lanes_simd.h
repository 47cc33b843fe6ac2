/* Functions of a vector's lanes; the includer defines FN, the target, LANES of f32, NAME(x), V_TURN
 * (u32 turned to the left), V_FMA, D_FMA and V_ANY for vectors of that many floats, of half as many
 * doubles, and for masks, V_LOW and V_HIGH, halves of a vector of floats as doubles, and V_JOIN, which
 * puts such together. Polynomials are fitted for weft (least squares reweighted to minimax, in double;
 * the error stands beside each). */

#define INLINE FN static inline __attribute__((always_inline))
#define F NAME(Floats)
#define I NAME(Ints)
#define D NAME(Doubles)
#define W NAME(Words)
#define HALF_FLOATS NAME(HalfFloats)
#define HALF (LANES / 2)
typedef float F __attribute__((vector_size(4 * LANES)));
typedef int32_t I __attribute__((vector_size(4 * LANES)));
typedef double D __attribute__((vector_size(4 * LANES)));
typedef uint64_t W __attribute__((vector_size(4 * LANES)));
typedef float HALF_FLOATS __attribute__((vector_size(2 * LANES)));

INLINE F NAME(load)(const float *x, int64_t n) { /* beyond n: 1 */
  F f = (F){} + 1;
  if (n >= LANES) memcpy(&f, x, sizeof f);
  else if (n == LANES / 2) memcpy(&f, x, sizeof f / 2);
  else memcpy(&f, x, sizeof *x * (size_t)n);
  return f;
}

INLINE void NAME(store)(float *y, int64_t n, F f) {
  if (n >= LANES) memcpy(y, &f, sizeof f);
  else if (n == LANES / 2) memcpy(y, &f, sizeof f / 2);
  else memcpy(y, &f, sizeof *y * (size_t)n);
}

/* ---- in double ---- */

#define ROUNDER 0x1.8p52 /* added and taken away: the nearest integer, in the low bits meanwhile */
#define ROUNDER_BITS 0x4338000000000000u
#define K(c) ((D){} + (c))

/* A function of doubles on both halves. */
#define BOTH(fn, x) V_JOIN((NAME(fn)(V_LOW(x))), (NAME(fn)(V_HIGH(x))))
#define BOTH2(fn, x, y) V_JOIN((NAME(fn)(V_LOW(x), V_LOW(y))), (NAME(fn)(V_HIGH(x), V_HIGH(y))))

/* v, with the lanes of the mask from the C library: large angles, powers of zero and infinity,
 * quotients beyond 2^28, NaN. */
FN static __attribute__((noinline, cold)) F NAME(mended)(F v, I odd, F x, double (*fn)(double)) {
  for (int i = 0; i < LANES; i++)
    if (odd[i]) v[i] = (float)fn((double)x[i]);
  return v;
}
FN static __attribute__((noinline, cold)) F NAME(mended2)(F v, I odd, F x, F y,
                                                          double (*fn)(double, double)) {
  for (int i = 0; i < LANES; i++)
    if (odd[i]) v[i] = (float)fn((double)x[i], (double)y[i]);
  return v;
}
INLINE F NAME(size)(F x) { return (F)((I)x & INT32_MAX); }

INLINE D NAME(pick)(W mask, D yes, D no) { return (D)(((W)yes & mask) | ((W)no & ~mask)); }

/* sin r for the rest r of x after n half turns, in two parts: sin r / r by powers of r^2, relative error
 * 5.4e-9 to 0.005 beyond a quarter turn, which is what roundings of n leave. */
INLINE D NAME(of_rest)(D x, D n) {
  D r = D_FMA(n, K(-1.2246467991473532e-16), D_FMA(n, K(-3.14159265358979312), x)), q = r * r;
  D s = D_FMA(q, K(SINE_9), K(SINE_7));
  s = D_FMA(q, D_FMA(q, s, K(SINE_5)), K(SINE_3));
  return r * D_FMA(q, s, K(SINE_1));
}

/* sin(x + quarters pi / 2): the sign is that of the number of half turns, odd or even. */
INLINE F NAME(turned)(F x, float quarters) {
  const float rounder = 0x1.8p23f, turn = quarters * 0.5f;
  const F per_turn = (F){} + 0.318309886f;
  F t = turn ? V_FMA(x, per_turn, (F){} + turn) + rounder : V_FMA(x, per_turn, (F){} + rounder);
  F n = (t - rounder) - turn;
  F v = BOTH2(of_rest, x, n);
  return (F)((I)v ^ (I)t << 31);
}

FN static F NAME(sines)(F x) {
  F v = NAME(turned)(x, 0);
  I far = NAME(size)(x) > FAR;
  return V_ANY(far) ? NAME(mended)(v, far, x, sin) : v;
}

FN static F NAME(cosines)(F x) {
  F v = NAME(turned)(x, 1);
  I far = NAME(size)(x) > FAR;
  return V_ANY(far) ? NAME(mended)(v, far, x, cos) : v;
}

/* Taylor's series of the rest after the nearest multiple of pi / 2, in two parts of which the first
 * has 33 bits, so that multiples are exact; what is left out is below 1e-11. */
INLINE D NAME(tangent)(D x) {
  D t = D_FMA(x, K(0.63661977236758134308), K(ROUNDER)), n = t - ROUNDER;
  D r = D_FMA(n, K(-0x1.0b4611a626331p-34), D_FMA(n, K(-0x1.921fb544p+0), x)), q = r * r;
  D s = D_FMA(q, K(-1.0 / 39916800), K(1.0 / 362880)),
    c = D_FMA(q, K(1.0 / 479001600), K(-1.0 / 3628800));
  s = D_FMA(q, D_FMA(q, s, K(-1.0 / 5040)), K(1.0 / 120));
  s = r * D_FMA(q, D_FMA(q, s, K(-1.0 / 6)), K(1)); /* -0 of -0 */
  c = D_FMA(q, D_FMA(q, c, K(1.0 / 40320)), K(-1.0 / 720));
  c = D_FMA(q, D_FMA(q, D_FMA(q, c, K(1.0 / 24)), K(-0.5)), K(1));
  W odd = -((W)t & 1);
  return NAME(pick)(odd, -c, s) / NAME(pick)(odd, s, c);
}

FN static F NAME(tangents)(F x) {
  F v = BOTH(tangent, x);
  I far = NAME(size)(x) > FAR_TAN;
  return V_ANY(far) ? NAME(mended)(v, far, x, tan) : v;
}

/* A third of the exponent and of the number's digits, which is within 5 %, and two of Halley's steps, which leave
 * two thirds of the error's third power: 4e-13. */
INLINE D NAME(cube_root)(D x) {
  const W sign = (W)x & (uint64_t)1 << 63;
  D a = (D)((W)x ^ sign), high = (D)((W)a >> 32 | ROUNDER_BITS) - ROUNDER;
  D t = (D)((W)D_FMA(high, K(1.0 / 3), K(ROUNDER + 715094163)) << 32);
  for (int k = 0; k < 2; k++) {
    D c = t * t * t;
    t = t * (c + a + a) / (c + c + a);
  }
  W plain = (W)((a > 0) & (a < (double)INFINITY));
  return NAME(pick)(plain, (D)((W)t | sign), x);
}

FN static F NAME(cube_roots)(F x) { return BOTH(cube_root, x); }

/* log2 of a positive finite f32: x = 2^e m with m from sqrt(1/2) to sqrt(2), log m = 2 artanh f,
 * (artanh f - f) / f^3 with a relative error of the logarithm of 3e-14. Of other numbers: anything. */
INLINE D NAME(log_two)(D x) {
  const uint64_t least = 0x3fe6a09e667f3bcdu, low = 0xfffffffffffffu;
  W u = (W)x - least, e_bits = (u + ((uint64_t)1024 << 52)) >> 52;
  D e = (D)(e_bits + ROUNDER_BITS) - (ROUNDER + 1024);
  D m = (D)((u & low) + least), f = (m - 1) / (m + 1), q = f * f;
  D s = D_FMA(q, K(0.09792029620791347), K(0.11088097018518998));
  s = D_FMA(q, D_FMA(q, s, K(0.14286054529644457)), K(0.19999997811229564));
  s = D_FMA(f * q, D_FMA(q, s, K(0.33333333337900106)), f);
  return D_FMA(s, K(2.88539008177792681472), e);
}

/* (e^g - 1 - g - g^2 / 2) / g^3, relative error of e^g 1.2e-12. Beyond +-1000 as there: out of f32's
 * range. */
INLINE D NAME(exp_two)(D t) {
  t = NAME(pick)((W)(t < 1000), t, K(1000));
  t = NAME(pick)((W)(t > -1000), t, K(-1000));
  D r = t + ROUNDER, g = (t - (r - ROUNDER)) * 0.69314718055994530942;
  D p = D_FMA(g, K(2.4880917445966395e-05), K(1.9909079540260567e-04));
  p = D_FMA(g, D_FMA(g, p, K(1.388881507334124e-03)), K(8.333281581910969e-03));
  p = D_FMA(g, D_FMA(g, p, K(4.166666688662025e-02)), K(1.666666678521443e-01));
  p = D_FMA(g, D_FMA(g, D_FMA(g, p, K(0.5)), K(1)), K(1));
  return (D)((W)p + ((W)r << 52));
}

/* Of what is negative only whole powers are numbers, and odd ones negative. */
INLINE D NAME(power)(D x, D y) {
  const W sign = (W){} + ((uint64_t)1 << 63);
  D near = NAME(pick)((W)(y < 0x1p26) & (W)(y > -0x1p26), y, K(0x1p26)); /* beyond: all even */
  D whole = near + ROUNDER, z = NAME(exp_two)(y * NAME(log_two)((D)((W)x & ~sign)));
  W odd = (W)whole << 63, negative = (W)(x < 0);
  z = (D)((W)z | (negative & odd));
  return NAME(pick)(negative & (W)(whole - ROUNDER != near), K(NAN), z);
}

FN static F NAME(powers)(F x, F y) {
  F v = BOTH2(power, x, y);
  I odd = (x == 0) | ~((NAME(size)(x) < INFINITY) & (NAME(size)(y) < INFINITY));
  return V_ANY(odd) ? NAME(mended2)(v, odd, x, y, pow) : v;
}

/* What is left of x after the nearest multiple of y, which has no more digits than a double, brought
 * to the side of zero that x is on. */
INLINE D NAME(rest)(D x, D y) {
  const W sign = (W){} + ((uint64_t)1 << 63);
  D n = (x / y + ROUNDER) - ROUNDER, r = D_FMA(n, -y, x);
  W other = ((W)r ^ (W)x) & sign, size = (W)y & ~sign;
  D more = r + (D)(size | ((W)x & sign));
  r = NAME(pick)((W)(r != 0) & -(other >> 63), more, r);
  return (D)(((W)r & ~sign) | ((W)x & sign));
}

FN static F NAME(remainders)(F x, F y) {
  F v = BOTH2(rest, x, y), a = NAME(size)(x), b = NAME(size)(y);
  I odd = ~((a < b * 0x1p28f) & (a < INFINITY) & (b < INFINITY));
  return V_ANY(odd) ? NAME(mended2)(v, odd, x, y, fmod) : v;
}

/* ---- of arrays ---- */

FN static void NAME(each)(F (*fn)(F), const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i += LANES) NAME(store)(y + i, n - i, fn(NAME(load)(x + i, n - i)));
}

FN static void NAME(each2)(F (*fn)(F, F), const float *x, const float *y, float *z, int64_t n) {
  for (int64_t i = 0; i < n; i += LANES)
    NAME(store)(z + i, n - i, fn(NAME(load)(x + i, n - i), NAME(load)(y + i, n - i)));
}

/* ---- random numbers ---- */

#define U NAME(Bits)
typedef uint32_t U __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Two vectors at a time: one alone waits for itself. */
#define ROUND(by)           \
  a0 += b0, a1 += b1;       \
  b0 = V_TURN(b0, by) ^ a0; \
  b1 = V_TURN(b1, by) ^ a1;
#define FOUR_ROUNDS(r0, r1, r2, r3, key, next, number)                \
  ROUND(r0) ROUND(r1) ROUND(r2) ROUND(r3) a0 += key[0], a1 += key[1]; \
  b0 += next[0] + (uint32_t)number, b1 += next[1] + (uint32_t)number;

#define TWO(p, step) \
  { *(const U *)(p), *(const U *)((p) + (step)) }
#define PUT(p, v0, v1) \
  if (p) *(U *)(p) = (v0), *(U *)((p) + LANES) = (v1), (p) += 2 * LANES;

/* n is a multiple of two vectors. */
INLINE void NAME(ciphers)(const uint32_t *a, const uint32_t *b, const uint32_t *key0,
                          const uint32_t *key1, uint32_t *first, uint32_t *second, uint32_t *both,
                          int64_t same, int64_t n) {
  const int64_t sa = same & 1 ? 0 : LANES, sb = same & 2 ? 0 : LANES, sk = same & 4 ? 0 : LANES,
                sl = same & 8 ? 0 : LANES;
  for (; n; n -= 2 * LANES) {
    const U x[2] = TWO(a, sa), y[2] = TWO(b, sb), k[2] = TWO(key0, sk), l[2] = TWO(key1, sl);
    const U m[2] = {k[0] ^ l[0] ^ 0x1BD11BDA, k[1] ^ l[1] ^ 0x1BD11BDA};
    U a0 = x[0], a1 = x[1], b0 = y[0], b1 = y[1];
    FOUR_ROUNDS(13, 15, 26, 6, l, m, 1)
    FOUR_ROUNDS(17, 29, 16, 24, m, k, 2)
    FOUR_ROUNDS(13, 15, 26, 6, k, l, 3)
    FOUR_ROUNDS(17, 29, 16, 24, l, m, 4)
    FOUR_ROUNDS(13, 15, 26, 6, m, k, 5)
    PUT(first, a0, a1)
    PUT(second, b0, b1)
    PUT(both, a0 ^ b0, a1 ^ b1)
    a += 2 * sa, b += 2 * sb, key0 += 2 * sk, key1 += 2 * sl;
  }
}

FN static void NAME(threefry)(const uint32_t *a, const uint32_t *b, const uint32_t *key0,
                              const uint32_t *key1, uint32_t *first, uint32_t *second,
                              uint32_t *both, int64_t same, int64_t n) {
  int64_t left = n % (2 * LANES), done = n - left;
  NAME(ciphers)(a, b, key0, key1, first, second, both, same, done);
  if (!left) return;
  const uint32_t *from[4] = {a, b, key0, key1};
  uint32_t rest[4][2 * LANES], *to[3] = {first, second, both};
  for (int k = 0; k < 4; k++)
    for (int64_t i = 0; i < 2 * LANES; i++)
      rest[k][i] = same >> k & 1 ? from[k][0] : i < left ? from[k][done + i] : 0;
  NAME(ciphers)(rest[0], rest[1], rest[2], rest[3], rest[0], rest[1], rest[2], 0, 2 * LANES);
  for (int k = 0; k < 3; k++)
    if (to[k]) memcpy(to[k] + done, rest[k], 4 * (size_t)left);
}

#undef TWO
#undef PUT
#undef ROUND
#undef FOUR_ROUNDS
#undef U
#undef INLINE
#undef F
#undef I
#undef D
#undef W
#undef HALF_FLOATS
#undef HALF
#undef BOTH
#undef BOTH2
#undef ROUNDER
#undef ROUNDER_BITS
#undef K
