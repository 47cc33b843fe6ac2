/* Elementary functions against the C library in a wider type: numbers of every exponent, special
 * values, and the places where the formulas change. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"
#include "dev/cpu/loops/math_list.h"

#define N 200003

static double logistic(double x) { return 1 / (1 + exp(-x)); }

/* By halves, of what is left to 1 where that is less. */
static double erf_inv(double x) {
  double a = fabs(x), lo = 0, hi = 6;
  if (!(a < 1)) return a > 1 ? NAN : x * INFINITY;
  if (a < 1e-9) return x * 0.88622692545275801;
  for (int i = 0; i < 60; i++) {
    double mid = (lo + hi) / 2;
    bool less = a < 0.5 ? erf(mid) < a : erfc(mid) > 1 - a;
    if (less) lo = mid;
    else hi = mid;
  }
  return copysign(lo, x);
}

static const struct {
  const char *op;
  double (*want)(double);
  double ulps, least; /* units in the last place that it may be off, or so much */
} functions[] = {
    {"stablehlo.exponential", exp, 1, 0},
    {"stablehlo.exponential_minus_one", expm1, 2, 0},
    {"stablehlo.log", log, 1, 0},
    {"stablehlo.log_plus_one", log1p, 2, 0},
    {"stablehlo.tanh", tanh, 4, 0},
    {"stablehlo.logistic", logistic, 3, FLT_MIN}, /* 1 / infinity */
    {"stablehlo.sine", sin, 0.1, 0},              /* beside the half of rounding; far angles, too */
    {"stablehlo.cosine", cos, 0.1, 0},
    {"stablehlo.tan", tan, 0.001, 0},
    {"stablehlo.cbrt", cbrt, 0.001, 0},
    {"chlo.erf", erf, 5, 0},
    {"chlo.erfc", erfc, 5, 0},
    {"chlo.erf_inv", erf_inv, 4, 0},
};

/* Denormals count as zero. */
static double counted(double x, double least) { return fabs(x) < least ? copysign(0, x) : x; }

/* What is less than the least normal number, or rounds to it, may be zero. */
static bool both_tiny(double out, double want, double least) {
  return fabs(want) < least * (1 + 1e-6) && fabs(out) <= least;
}

static Tensor *numbers(void) {
  static const float odd[] = {0.0f,       -0.0f,   INFINITY,  -INFINITY, NAN,     1e-45f,   -1e-45f,
                              88.72283f,  88.723f, -87.3365f, -87.34f,   -103.9f, -103.98f, -104.0f,
                              -104.0001f, -1e9f,   9.19f,     10.05f,    10.06f,  11.5f,    1.0f};
  Tensor *t = tensor_make(DT_F32, 1, (int64_t[]){N});
  float *x = t->data;
  uint32_t u = 7;
  for (int i = 0; i < N; i++) {
    u = u * 1664525u + 1013904223u;
    if (i < COUNT_OF(odd)) x[i] = odd[i];
    else if (i % 3 == 0) memcpy(&x[i], &u, 4);
    else x[i] = ((float)(u >> 8) / (1 << 23) - 1) * (i % 3 == 1 ? 110.0f : i % 2 ? 6.0f : 1.0f);
  }
  return t;
}

static void within_ulps(void **state) {
  (void)state;
  Tensor *x = numbers();
  for (int k = 0; k < COUNT_OF(functions); k++) {
    char text[300];
    bool chlo = functions[k].op[0] == 'c';
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<%dxf32>) -> tensor<%dxf32> {\n"
             "%%0 = %s %%a : tensor<%dxf32>%s%s\nreturn %%0 : tensor<%dxf32>\n}",
             N, N, functions[k].op, N, chlo ? " -> tensor<" : "", chlo ? "200003xf32>" : "", N);
    Tensor *got = answer_of(text, x);
    const float *in = x->data, *out = got->data;
    for (int i = 0; i < N; i++) {
      double want = functions[k].want(counted((double)in[i], FLT_MIN));
      float near = (float)want;
      if (both_tiny((double)out[i], want, FLT_MIN)) continue;
      if ((isnan(near) && isnan(out[i])) || near == out[i]) continue;
      double ulp = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
      double most = MAX((functions[k].ulps + 0.5) * ulp, functions[k].least);
      if (!(fabs((double)out[i] - want) <= most))
        fail_msg("%s(%.9g) is %.9g, not %.9g", functions[k].op, (double)in[i], (double)out[i],
                 want);
    }
    tensor_release(got);
  }
  tensor_release(x);
}

/* Every formula is in the table above, and computed in f64, too, by whatever does. */
static void wide(void **state) {
  (void)state;
#define NAME(form, op, of_f64) op_info[OP_##op].name,
  const char *const formulas[] = {MATH_FORMS(NAME)};
  for (int i = 0; i < COUNT_OF(formulas); i++) {
    int k = 0;
    while (k < COUNT_OF(functions) && strcmp(functions[k].op, formulas[i]) != 0) k++;
    if (k == COUNT_OF(functions)) fail_msg("%s has no row in `functions`", formulas[i]);
    bool chlo = functions[k].op[0] == 'c';
    char *text = xasprintf("func.func @main(%%a: tensor<64xf64>) -> tensor<64xf64> {\n"
                           "%%0 = %s %%a : tensor<64xf64>%s\nreturn %%0 : tensor<64xf64>\n}",
                           functions[k].op, chlo ? " -> tensor<64xf64>" : "");
    Tensor *x = tensor_make(DT_F64, 1, (int64_t[]){64});
    double *in = x->data;
    for (int j = 0; j < 64; j++) in[j] = (j + 0.5) / 65;
    Tensor *got = answer_of(text, x);
    for (int j = 0; j < 64; j++) {
      double want = functions[k].want(in[j]), out = ((double *)got->data)[j];
      if (!(fabs(out - want) <= 1e-13 * fabs(want)))
        fail_msg("%s(%.17g) of f64 is %.17g, not %.17g", formulas[i], in[j], out, want);
    }
    tensor_release(x);
    tensor_release(got);
    free(text);
  }
}

/* All special values with each other, then any numbers. */
static void angles(void **state) {
  (void)state;
  enum { ODD = 9 };
  static const float odd[ODD] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 1, -3e38f};
  Tensor *y = numbers(), *x = numbers();
  float *b = y->data, *a = x->data;
  for (int i = 0; i < N / 2; i++) {
    float t = a[i];
    a[i] = a[N - 1 - i];
    a[N - 1 - i] = t;
  }
  for (int i = 0; i < ODD * ODD; i++) b[i] = odd[i % ODD], a[i] = odd[i / ODD];
  char text[200];
  snprintf(text, sizeof text,
           "func.func @main(%%a: tensor<%dxf32>, %%b: tensor<%dxf32>) -> tensor<%dxf32> {\n"
           "%%0 = stablehlo.atan2 %%a, %%b : tensor<%dxf32>\nreturn %%0 : tensor<%dxf32>\n}",
           N, N, N, N, N);
  Tensor *got = answer_of2(text, y, x);
  const float *out = got->data;
  for (int i = 0; i < N; i++) {
    double want = atan2(counted((double)b[i], FLT_MIN), counted((double)a[i], FLT_MIN));
    float near = (float)want;
    if (both_tiny((double)out[i], want, FLT_MIN)) continue;
    if ((isnan(near) && isnan(out[i])) || (near == out[i] && !signbit(near) == !signbit(out[i])))
      continue;
    double ulp = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
    if (!(fabs((double)out[i] - want) <= 2 * ulp))
      fail_msg("atan2(%.9g, %.9g) is %.9g, not %.9g", (double)b[i], (double)a[i], (double)out[i],
               want);
  }
  tensor_release(got);
  tensor_release(y);
  tensor_release(x);
}

/* ---- f64 ---- */

static long double logistic_l(long double x) { return 1 / (1 + expl(-x)); }

static const struct {
  const char *op;
  long double (*want)(long double), (*want2)(long double, long double);
  double ulps;
} wide_functions[] = {
    {"stablehlo.exponential", expl, NULL, 4},
    {"stablehlo.exponential_minus_one", expm1l, NULL, 4},
    {"stablehlo.log", logl, NULL, 4},
    {"stablehlo.log_plus_one", log1pl, NULL, 4},
    {"stablehlo.tanh", tanhl, NULL, 4},
    {"stablehlo.logistic", logistic_l, NULL, 5},
    {"stablehlo.sine", sinl, NULL, 4},
    {"stablehlo.cosine", cosl, NULL, 4},
    {"stablehlo.tan", tanl, NULL, 4},
    {"stablehlo.cbrt", cbrtl, NULL, 4},
    {"chlo.erf", erfl, NULL, 4},
    {"chlo.erfc", erfcl, NULL, 4},
    {"stablehlo.atan2", NULL, atan2l, 4},
    {"stablehlo.power", NULL, powl, 4},
};

static Tensor *wide_numbers(int seed) { /* a count that leaves part of a vector */
  static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN,    5e-324, -5e-324, 1.0,
                               2,   -1.0, -745.2,   709.78,    709.79, 1e22,   -3,      0.5};
  enum { ODD = COUNT_OF(odd), ALL = 20003 };
  Tensor *t = tensor_make(DT_F64, 1, (int64_t[]){ALL});
  double *x = t->data;
  uint64_t u = (uint64_t)seed;
  for (int i = 0; i < ALL; i++) {
    u = u * 6364136223846793005u + 1442695040888963407u;
    if (i < ODD * ODD) x[i] = odd[seed == 1 ? i % ODD : i / ODD]; /* each with each */
    else if (i % 3 == 0) memcpy(&x[i], &u, 8);
    else x[i] = ((double)(u >> 11) / (1ull << 52) - 1) * (i % 3 == 1 ? 700 : 6);
  }
  return t;
}

static long double wide_value(int k, long double x, long double y) {
  return wide_functions[k].want2 ? wide_functions[k].want2(x, y) : wide_functions[k].want(x);
}

static bool wide_near(int k, double out, long double want) {
  double near = (double)want, ulp = nextafter(fabs(near), INFINITY) - fabs(near);
  return both_tiny(out, near, DBL_MIN) || (isnan(near) && isnan(out)) ||
         (near == out && signbit(near) == signbit(out)) ||
         fabs((double)(out - want)) <= (wide_functions[k].ulps + 0.5) * ulp;
}

static void f64_within_ulps(void **state) {
  (void)state;
  Tensor *x = wide_numbers(1), *y = wide_numbers(2);
  int n = (int)x->dims[0];
  for (int k = 0; k < COUNT_OF(wide_functions); k++) {
    char text[400], t[40];
    const char *op = wide_functions[k].op;
    bool two = wide_functions[k].want2;
    snprintf(t, sizeof t, "tensor<%dxf64>", n);
    snprintf(text, sizeof text,
             "func.func @main(%%a: %s%s%s) -> %s {\n%%0 = %s %%a%s : %s%s%s\nreturn %%0 : %s\n}", t,
             two ? ", %b: " : "", two ? t : "", t, op, two ? ", %b" : "", t,
             op[0] == 'c' ? " -> " : "", op[0] == 'c' ? t : "", t);
    Tensor *got = two ? answer_of2(text, x, y) : answer_of(text, x);
    const double *a = x->data, *b = y->data, *out = got->data;
    for (int i = 0; i < n; i++) {
      long double l = (long double)counted(a[i], DBL_MIN), r = (long double)counted(b[i], DBL_MIN);
      long double want = wide_value(k, l, r),
                  whole = wide_value(k, (long double)a[i], (long double)b[i]);
      /* the C library sees denormals; its logarithms and powers a part of them */
      bool parts = strstr(op, "log") || strstr(op, "power");
      if (parts && (l != (long double)a[i] || r != (long double)b[i])) continue;
      if (!wide_near(k, out[i], want) && !wide_near(k, out[i], whole))
        fail_msg("%s(%.17g, %.17g) is %.17g, not %.17g", op, a[i], b[i], out[i], (double)want);
    }
    tensor_release(got);
  }
  tensor_release(x);
  tensor_release(y);
}

/* Exponents that are multiples of a half, and one that is not. */
static void powers(void **state) {
  (void)state;
  static const double exponents[] = {-4, -2.5, -1.5, -1, -0.5, 0.5, 1.5, 2.5, 3, 3.5, 4, 0.7};
  Tensor *x = numbers();
  for (int k = 0; k < COUNT_OF(exponents); k++) {
    char text[400];
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<%dxf32>) -> tensor<%dxf32> {\n"
             "%%e = stablehlo.constant dense<%.1f> : tensor<%dxf32>\n"
             "%%0 = stablehlo.power %%a, %%e : tensor<%dxf32>\nreturn %%0 : tensor<%dxf32>\n}",
             N, N, exponents[k], N, N, N);
    Tensor *got = answer_of(text, x);
    const float *in = x->data, *out = got->data, e = (float)exponents[k];
    for (int i = 0; i < N; i++) {
      double want = pow(counted((double)in[i], FLT_MIN), (double)e);
      float near = (float)want;
      if (both_tiny((double)out[i], want, FLT_MIN)) continue;
      if ((isnan(near) && isnan(out[i])) || (near == out[i] && !signbit(near) == !signbit(out[i])))
        continue;
      double ulp = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
      if (!(fabs((double)out[i] - want) <= 0.501 * ulp))
        fail_msg("%.9g to the power %g is %.9g, not %.9g", (double)in[i], exponents[k],
                 (double)out[i], want);
    }
    tensor_release(got);
  }
  tensor_release(x);
}

/* Quotients are rounded correctly, those by a constant, too. */
static void quotients(void **state) {
  (void)state;
  static const char *divisors[] = {"3.0",   "-7.0", "255.0", "0.229", "-0.1",
                                   "1.0e9", "49.0", "4.0",   "5.6",   "0.001"};
  Tensor *x = numbers();
  for (int k = 0; k < COUNT_OF(divisors); k++) {
    char text[400];
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<%dxf32>) -> tensor<%dxf32> {\n"
             "%%e = stablehlo.constant dense<%s> : tensor<%dxf32>\n"
             "%%0 = stablehlo.divide %%a, %%e : tensor<%dxf32>\nreturn %%0 : tensor<%dxf32>\n}",
             N, N, divisors[k], N, N, N);
    Tensor *got = answer_of(text, x);
    const float *in = x->data, *out = got->data, c = strtof(divisors[k], NULL);
    for (int i = 0; i < N; i++) {
      float want = (float)counted((double)in[i], FLT_MIN) / c, least = 0x1p-90f;
      if (both_tiny((double)out[i], (double)want, FLT_MIN)) continue;
      if ((isnan(want) && isnan(out[i])) || (want == out[i] && !signbit(want) == !signbit(out[i])))
        continue;
      bool tiny = fabsf(in[i]) < least || fabsf(want) < least;
      if (!tiny || fabsf(out[i] - want) > nextafterf(fabsf(want), INFINITY) - fabsf(want))
        fail_msg("%.9g / %s is %.9g, not %.9g", (double)in[i], divisors[k], (double)out[i],
                 (double)want);
    }
    tensor_release(got);
  }
  tensor_release(x);
}

static float two_by(int i, float x) { return (void)x, 2.0f / (float)(i - 2); }
static float not_a_number(int i, float x) { return (void)i, (void)x, NAN; }
static float at_most_two(int i, float x) { return (void)i, isnan(x) || x < 2 ? x : 2; }

/* Numbers that are known when the code is made, and differ from lane to lane; NaN as one of them. */
static void known_numbers(void **state) {
  (void)state;
  static const struct {
    const char *op;
    float (*want)(int i, float x);
  } programs[] = {{"divide %two, %d", two_by},
                  {"maximum %x, %nan", not_a_number},
                  {"minimum %x, %two", at_most_two}};
  enum { FEW = 31 };
  Tensor *x = numbers();
  setenv("WEFT_VINTERP", "off", 1);
  for (int k = 0; k < COUNT_OF(programs); k++) {
    char text[900];
    snprintf(text, sizeof text,
             "func.func @main(%%a: tensor<%dxf32>) -> tensor<31xf32> {\n"
             "%%x = stablehlo.slice %%a [0:31] : (tensor<%dxf32>) -> tensor<31xf32>\n"
             "%%i = stablehlo.iota dim = 0 : tensor<31xf32>\n"
             "%%two = stablehlo.constant dense<2.0> : tensor<31xf32>\n"
             "%%nan = stablehlo.constant dense<0x7FC00000> : tensor<31xf32>\n"
             "%%d = stablehlo.subtract %%i, %%two : tensor<31xf32>\n"
             "%%0 = stablehlo.%s : tensor<31xf32>\nreturn %%0 : tensor<31xf32>\n}",
             N, N, programs[k].op);
    Tensor *got = answer_of(text, x);
    const float *in = x->data, *out = got->data;
    for (int i = 0; i < FEW; i++) {
      float want = programs[k].want(i, (float)counted((double)in[i], FLT_MIN));
      if (!(out[i] == want || (isnan(out[i]) && isnan(want))))
        fail_msg("%s: element %d is %g, not %g", programs[k].op, i, (double)out[i], (double)want);
    }
    tensor_release(got);
  }
  unsetenv("WEFT_VINTERP");
  tensor_release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(within_ulps),  cmocka_unit_test(wide),   cmocka_unit_test(powers),
      cmocka_unit_test(quotients),    cmocka_unit_test(angles), cmocka_unit_test(f64_within_ulps),
      cmocka_unit_test(known_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
