/* sin, cos, tan, cube roots, powers, remainders and random bits of a vector's lanes (lanes_simd.h), in
 * double: sine and cosine within 0.6 ulp, the others rounded once, within 0.501 ulp, remainders exact.
 * Generated code hands vectors over in registers. */
#include <math.h>
#include <string.h>

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/loops/emit_priv.h"

#define FAR 1e5f /* half turns up to here are counted in f32, and leave all digits */
#define FAR_TAN 1e6f
/* fitted for the rest of half turns, lanes_simd.h */
#define SINE_1 0.99999999450783372
#define SINE_3 -0.16666656419989653
#define SINE_5 0.0083330190979682556
#define SINE_7 -0.0001980698164330448
#define SINE_9 2.6009250990463929e-06

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
#define V_LOW(x) ((Doubles_512)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)(x))))
#define V_HIGH(x) \
  ((Doubles_512)_mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)(x), 1))))
#define V_JOIN(a, b)                                                           \
  ((Floats_512)_mm512_insertf64x4(                                             \
      _mm512_castpd256_pd512(_mm256_castps_pd(_mm512_cvtpd_ps((__m512d)(a)))), \
      _mm256_castps_pd(_mm512_cvtpd_ps((__m512d)(b))), 1))
#include "dev/cpu/loops/lanes_simd.h"
#undef FN
#undef LANES
#undef NAME
#undef V_FMA
#undef D_FMA
#undef V_TURN
#undef V_ANY
#undef V_LOW
#undef V_HIGH
#undef V_JOIN

#define FN __attribute__((target("avx2,fma")))
#define LANES 8
#define NAME(x) x##_256
#define V_FMA(a, b, c) ((Floats_256)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define D_FMA(a, b, c) ((Doubles_256)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define V_TURN(x, by) ((x) << (by) | (x) >> (32 - (by)))
#define V_ANY(mask) (_mm256_movemask_ps((__m256)(mask)) != 0)
#define V_LOW(x) ((Doubles_256)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)(x))))
#define V_HIGH(x) ((Doubles_256)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)(x), 1)))
#define V_JOIN(a, b) \
  ((Floats_256)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)(b)), _mm256_cvtpd_ps((__m256d)(a))))
#include "dev/cpu/loops/lanes_simd.h"

#define AT_ONCE(n) (cpu_vector_bits() < 256 ? 0 : HAS_512 ? 16 : 8)
/* By whole vectors, where there are. */
#define IN_VECTORS(each, fn, ...)                                 \
  (!AT_ONCE(n)        ? false                                     \
   : AT_ONCE(n) == 16 ? (each##_512(fn##_512, __VA_ARGS__), true) \
                      : (each##_256(fn##_256, __VA_ARGS__), true))
#define IN_REGISTERS(fn) \
  {"weft_" #fn "_8", (void *)fn##_256}, { "weft_" #fn "_16", (void *)fn##_512 }
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
#define AT_ONCE(n) 0
#define IN_VECTORS(each, fn, ...) false
#define IN_REGISTERS(fn) \
  { "weft_" #fn, (void *)lanes_##fn }
#endif

int lanes_at_once(int n) {
  int most = AT_ONCE(n);
  return most && n && n % most == 0 ? most : 0;
}

void lanes_sines(const float *x, float *y, int64_t n) {
  if (IN_VECTORS(each, sines, x, y, n)) return;
  for (int64_t i = 0; i < n; i++) y[i] = (float)sin((double)x[i]);
}

void lanes_cosines(const float *x, float *y, int64_t n) {
  if (IN_VECTORS(each, cosines, x, y, n)) return;
  for (int64_t i = 0; i < n; i++) y[i] = (float)cos((double)x[i]);
}

void lanes_tangents(const float *x, float *y, int64_t n) {
  if (IN_VECTORS(each, tangents, x, y, n)) return;
  for (int64_t i = 0; i < n; i++) y[i] = (float)tan((double)x[i]);
}

void lanes_cube_roots(const float *x, float *y, int64_t n) {
  if (IN_VECTORS(each, cube_roots, x, y, n)) return;
  for (int64_t i = 0; i < n; i++) y[i] = (float)cbrt((double)x[i]);
}

void lanes_powers(const float *x, const float *y, float *z, int64_t n) {
  if (IN_VECTORS(each2, powers, x, y, z, n)) return;
  for (int64_t i = 0; i < n; i++) z[i] = (float)pow((double)x[i], (double)y[i]);
}

void lanes_remainders(const float *x, const float *y, float *z, int64_t n) {
  if (IN_VECTORS(each2, remainders, x, y, z, n)) return;
  for (int64_t i = 0; i < n; i++) z[i] = (float)fmod((double)x[i], (double)y[i]);
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
    {"weft_sines", (void *)lanes_sines},
    {"weft_cosines", (void *)lanes_cosines},
    {"weft_tangents", (void *)lanes_tangents},
    {"weft_cube_roots", (void *)lanes_cube_roots},
    {"weft_powers", (void *)lanes_powers},
    {"weft_remainders", (void *)lanes_remainders},
    {"weft_threefry", (void *)lanes_threefry},
    IN_REGISTERS(sines),
    IN_REGISTERS(cosines),
    IN_REGISTERS(tangents),
    IN_REGISTERS(cube_roots),
    IN_REGISTERS(powers),
    IN_REGISTERS(remainders),
    {0},
};
