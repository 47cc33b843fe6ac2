/* Elementary functions of f32 against the C library in double: numbers of every exponent, special
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

#define N 200003

static double logistic(double x) { return 1 / (1 + exp(-x)); }

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
    {"chlo.erf", erf, 5, 0},
    {"chlo.erfc", erfc, 5, 0},
};

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
    else x[i] = ((float)(u >> 8) / (1 << 23) - 1) * (i % 3 == 1 ? 110.0f : 6.0f);
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
      double want = functions[k].want((double)in[i]);
      float near = (float)want;
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(within_ulps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
