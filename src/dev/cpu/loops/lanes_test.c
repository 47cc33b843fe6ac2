/* lanes.c against the C library in double: every exponent, signs, special values, and counts of lanes
 * that are no whole vectors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/cpu/loops/emit_priv.h"

#define N 64

static void *helper(const char *name) {
  for (const Helper *h = lanes_helpers; h->name; h++)
    if (!strcmp(h->name, name)) return h->fn;
  fail_msg("no %s", name);
  return NULL;
}

static uint32_t next(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }

static float number(uint32_t *seed, int how) { /* any bits; or to 10, 1000, ... */
  uint32_t u = next(seed) ^ next(seed) >> 16;
  float f;
  memcpy(&f, &u, 4);
  return how == 0 ? f : ((float)(u >> 8) / (1 << 23) - 1) * powf(10, (float)(2 * how - 1));
}

static void check(const char *name, float x, float y, float got, double want, double most) {
  if (isnan(want) && isnan(got)) return;
  float near = (float)want;
  double ulp = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
  bool other_zero = near == 0 && got == 0 && signbit(near) != signbit(got);
  if (other_zero || !(near == got || fabs((double)got - want) <= most * ulp))
    fail_msg("%s(%.9g, %.9g) is %.9g, not %.9g", name, (double)x, (double)y, (double)got, want);
}

static void angles(void **state) {
  (void)state;
  static const char *const names[] = {"weft_sines", "weft_cosines", "weft_tangents",
                                      "weft_cube_roots"};
  static double (*const library[])(double) = {sin, cos, tan, cbrt};
  static const float odd[] = {0.0f,   -0.0f, INFINITY, -INFINITY, NAN,
                              1e-45f, 1e5f,  1e5f + 1, 1e6f,      1e6f + 1};
  for (int k = 0; k < COUNT_OF(names); k++) {
    void (*f)(const float *, float *, int64_t) =
        (void (*)(const float *, float *, int64_t))helper(names[k]);
    uint32_t seed = 5;
    for (int round = 0; round < 8000; round++) {
      float x[N], y[N];
      int64_t n = 1 + round % N;
      for (int64_t i = 0; i < n; i++)
        x[i] = i < COUNT_OF(odd) && round == N - 1 ? odd[i] : number(&seed, round % 4);
      f(x, y, n);
      for (int64_t i = 0; i < n; i++)
        check(names[k], x[i], 0, y[i], library[k]((double)x[i]), k < 2 ? 0.6 : 0.501);
    }
  }
}

static void powers(void **state) {
  (void)state;
  void (*f)(const float *, const float *, float *, int64_t) =
      (void (*)(const float *, const float *, float *, int64_t))helper("weft_powers");
  static const float odd[] = {0, -0.0f, 1, -1, 2, -2, INFINITY, -INFINITY, NAN, 1e-45f, 0.5f, -3};
  uint32_t seed = 5;
  for (int round = 0; round < 4000; round++) {
    float x[N], y[N], z[N];
    int64_t n = 1 + round % N;
    for (int64_t i = 0; i < n; i++) {
      x[i] = round < 200 ? odd[next(&seed) % COUNT_OF(odd)] : fabsf(number(&seed, round % 3));
      y[i] = round < 200 ? odd[next(&seed) % COUNT_OF(odd)] : number(&seed, round % 2);
      if (round % 4 == 1 && round > 200) { /* negative ones to whole, half and enormous powers */
        x[i] = -x[i];
        y[i] = round % 8 == 1 ? (float)(int)(next(&seed) >> 26) - 32
                              : ldexpf(1.0f + (float)(i & 1), (int)(i % 40) - 1);
      }
    }
    f(x, y, z, n);
    for (int64_t i = 0; i < n; i++)
      check("powers", x[i], y[i], z[i], pow((double)x[i], (double)y[i]), 0.501);
  }
}

/* Exact; also where the quotient is nearly whole. */
static void remainders(void **state) {
  (void)state;
  void (*f)(const float *, const float *, float *, int64_t) =
      (void (*)(const float *, const float *, float *, int64_t))helper("weft_remainders");
  static const float odd[] = {0,        -0.0f,     1,   -1,     2,    -3,
                              INFINITY, -INFINITY, NAN, 1e-45f, 0.1f, 3e38f};
  uint32_t seed = 5;
  for (int round = 0; round < 8000; round++) {
    float x[N], y[N], z[N];
    int64_t n = 1 + round % N;
    for (int64_t i = 0; i < n; i++) {
      x[i] = round < 200 ? odd[next(&seed) % COUNT_OF(odd)] : number(&seed, round % 4);
      y[i] = round < 200 ? odd[next(&seed) % COUNT_OF(odd)] : number(&seed, round / 4 % 4);
      if (round % 3 == 0) x[i] = y[i] * (float)(next(&seed) >> 16);
    }
    f(x, y, z, n);
    for (int64_t i = 0; i < n; i++) {
      float want = fmodf(x[i], y[i]);
      if (isnan(want) && isnan(z[i])) continue;
      if (want != z[i] || signbit(want) != signbit(z[i]))
        fail_msg("fmod(%.9g, %.9g) is %.9g, not %.9g", (double)x[i], (double)y[i], (double)z[i],
                 (double)want);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(angles), cmocka_unit_test(powers),
                                     cmocka_unit_test(remainders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
