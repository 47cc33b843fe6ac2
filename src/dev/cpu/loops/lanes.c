/* sin, cos, tan, cube roots, powers, remainders and random bits of a vector's lanes (lanes_simd.h): sine and cosine in f32 with
 * the angle's rest in two parts, within 0.8 ulp; the others in double, rounded once, within 0.501 ulp,
 * remainders exact. Lanes that the straight way does not cover (large angles, powers of zero and
 * infinity, quotients beyond 2^28, NaN) and machines without AVX2 go through the C library. */
#include <math.h>
#include <string.h>

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/loops/emit_priv.h"

#define FAR 1e5f /* multiples of pi / 2 up to here leave all digits */
#define FAR_TAN 1e6

static bool is_near(float x, double far) { return fabs((double)x) <= far; }
static bool is_plain(float x, float y) {
  return x != 0 && fabsf(x) < INFINITY && fabsf(y) < INFINITY;
}
static bool is_short(float x, float y) { /* -2^28 < x / y < 2^28 */
  return fabsf(x) < INFINITY && fabsf(y) < INFINITY && fabs((double)x) < fabs((double)y) * 0x1p28;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#ifdef WEFT_EMULATE_AVX512
#define HAS_512 0
#else
#define HAS_512 (cpu_vector_bits() >= 512 && n > 8)
#endif
#define FN __attribute__((target("avx512f,avx512bw,avx512vl")))
#define LANES 16
#define NAME(x) x##_512
#define V_FMA(a, b, c) ((Floats_512)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define D_FMA(a, b, c) ((Doubles_512)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define V_TURN(x, by) ((Bits_512)_mm512_rol_epi32((__m512i)(x), by))
#define V_ANY(mask) (_mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask)) != 0)
#include "dev/cpu/loops/lanes_simd.h"
#undef FN
#undef LANES
#undef NAME
#undef V_FMA
#undef D_FMA
#undef V_TURN
#undef V_ANY

#define FN __attribute__((target("avx2,fma")))
#define LANES 8
#define NAME(x) x##_256
#define V_FMA(a, b, c) ((Floats_256)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define D_FMA(a, b, c) ((Doubles_256)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define V_TURN(x, by) ((x) << (by) | (x) >> (32 - (by)))
#define V_ANY(mask) (_mm256_movemask_ps((__m256)(mask)) != 0)
#include "dev/cpu/loops/lanes_simd.h"

/* Were all n lanes covered? none: nothing has been computed. */
#define IN_VECTORS(none, name, ...)                             \
  (((none) = cpu_vector_bits() < 256) ? false                   \
   : HAS_512                          ? name##_512(__VA_ARGS__) \
                                      : name##_256(__VA_ARGS__))
static bool threefry_lanes(const uint32_t *a, const uint32_t *b, const uint32_t *key0,
                           const uint32_t *key1, uint32_t *first, uint32_t *second, uint32_t *both,
                           int64_t same, int64_t n) {
  if (cpu_vector_bits() < 256) return false;
  if (HAS_512) threefry_512(a, b, key0, key1, first, second, both, same, n);
  else threefry_256(a, b, key0, key1, first, second, both, same, n);
  return true;
}
#else
#define threefry_lanes(...) false
#define IN_VECTORS(none, name, ...) ((none) = true, false)
#endif

void lanes_sines(const float *x, float *y, int64_t n) {
  bool none;
  if (IN_VECTORS(none, sines, x, y, n, 0)) return;
  for (int64_t i = 0; i < n; i++)
    if (none || !is_near(x[i], FAR)) y[i] = (float)sin((double)x[i]);
}

void lanes_cosines(const float *x, float *y, int64_t n) {
  bool none;
  if (IN_VECTORS(none, sines, x, y, n, 1)) return;
  for (int64_t i = 0; i < n; i++)
    if (none || !is_near(x[i], FAR)) y[i] = (float)cos((double)x[i]);
}

void lanes_tangents(const float *x, float *y, int64_t n) {
  bool none;
  if (IN_VECTORS(none, tangents, x, y, n)) return;
  for (int64_t i = 0; i < n; i++)
    if (none || !is_near(x[i], FAR_TAN)) y[i] = (float)tan((double)x[i]);
}

void lanes_cube_roots(const float *x, float *y, int64_t n) {
  bool none;
  if (IN_VECTORS(none, cube_roots, x, y, n)) return;
  for (int64_t i = 0; i < n; i++) y[i] = (float)cbrt((double)x[i]);
}

void lanes_powers(const float *x, const float *y, float *z, int64_t n) {
  bool none;
  if (IN_VECTORS(none, powers, x, y, z, n)) return;
  for (int64_t i = 0; i < n; i++)
    if (none || !is_plain(x[i], y[i])) z[i] = (float)pow((double)x[i], (double)y[i]);
}

void lanes_remainders(const float *x, const float *y, float *z, int64_t n) {
  bool none;
  if (IN_VECTORS(none, remainders, x, y, z, n)) return;
  for (int64_t i = 0; i < n; i++)
    if (none || !is_short(x[i], y[i])) z[i] = fmodf(x[i], y[i]);
}

static uint32_t turned(uint32_t x, int by) { return x << by | x >> (32 - by); }

void lanes_threefry(const uint32_t *a, const uint32_t *b, const uint32_t *key0,
                    const uint32_t *key1, uint32_t *first, uint32_t *second, uint32_t *both,
                    int64_t same, int64_t n) {
  static const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  if (n > 1 && threefry_lanes(a, b, key0, key1, first, second, both, same, n)) return;
  for (int64_t i = 0; i < n; i++) {
    uint32_t x = a[same & 1 ? 0 : i], y = b[same & 2 ? 0 : i], key[3];
    key[0] = key0[same & 4 ? 0 : i], key[1] = key1[same & 8 ? 0 : i];
    key[2] = key[0] ^ key[1] ^ 0x1BD11BDA;
    for (int round = 0; round < 5; round++) {
      for (int k = 0; k < 4; k++) {
        x += y;
        y = turned(y, turns[round % 2][k]) ^ x;
      }
      x += key[(round + 1) % 3];
      y += key[(round + 2) % 3] + (uint32_t)(round + 1);
    }
    if (first) first[i] = x;
    if (second) second[i] = y;
    if (both) both[i] = x ^ y;
  }
}

const Helper lanes_helpers[] = {
    {"weft_sines", (void *)lanes_sines},       {"weft_cosines", (void *)lanes_cosines},
    {"weft_tangents", (void *)lanes_tangents}, {"weft_cube_roots", (void *)lanes_cube_roots},
    {"weft_powers", (void *)lanes_powers},     {"weft_remainders", (void *)lanes_remainders},
    {"weft_threefry", (void *)lanes_threefry}, {0},
};
