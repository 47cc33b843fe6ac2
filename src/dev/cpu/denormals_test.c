/* Denormals count as zero in what is computed, by the caller and by the pool's workers, and stay in
 * what is only passed on; who calls keeps its own ways. XLA:CPU gives the same numbers. */
#include <math.h>
#include <pmmintrin.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#define N 1024 /* rows and columns: work for all threads */
#define TINY 1e-40f
#define RESULTS 5

static const char program[] =
    "func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> "
    "(tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<1024xf32>, tensor<1024x1024xi1>, "
    "tensor<1024x1024xf32>) {\n"
    "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %none = stablehlo.constant dense<0.0> : tensor<1024x1024xf32>\n"
    "  %small = stablehlo.constant dense<1.0e-20> : tensor<1024x1024xf32>\n"
    "  %a = stablehlo.multiply %x, %y : tensor<1024x1024xf32>\n"
    "  %b = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : "
    "(tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>\n"
    "  %c = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : "
    "(tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>\n"
    "  %d = stablehlo.compare GT, %x, %none : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
    "tensor<1024x1024xi1>\n"
    "  %e0 = stablehlo.multiply %small, %small : tensor<1024x1024xf32>\n"
    "  %e = stablehlo.multiply %e0, %y : tensor<1024x1024xf32>\n"
    "  return %a, %b, %c, %d, %e : tensor<1024x1024xf32>, tensor<1024x1024xf32>, "
    "tensor<1024xf32>, tensor<1024x1024xi1>, tensor<1024x1024xf32>\n}\n";

static Shards filled(float v) {
  int64_t dims[] = {N, N};
  Shards s = {1, xcalloc(1, sizeof(Tensor *))};
  s.t[0] = tensor_make(DT_F32, 2, dims);
  for (int64_t i = 0; i < s.t[0]->count; i++) ((float *)s.t[0]->data)[i] = v;
  return s;
}

static bool all_zero(const Tensor *t) {
  for (int64_t i = 0; i < t->count; i++)
    if (elem_get_f64(t->dtype, tensor_at(t, i)) != 0) return false;
  return true;
}

static void count_as_zero(void **state) {
  (void)state;
  setenv("WEFT_CACHE", "off", 1);
  Module *m = NULL;
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  ok(stablehlo_read("", str_from(program), &m));
  ok(dev_open("cpu", &dev));
  ok(dev_compile(dev, m, NULL, &prog));
  Shards args[] = {filled(TINY), filled(3)}, got[RESULTS] = {0};
  unsigned modes = _mm_getcsr() & (_MM_FLUSH_ZERO_MASK | _MM_DENORMALS_ZERO_MASK);
  for (int run = 0; run < 3; run++) {
    ok(dev->ops->run(prog, &(DevPart){.n = 1}, args, NULL, got, NULL));
    for (int o = 0; o < RESULTS; o++) {
      if (!all_zero(got[o].t[0])) fail_msg("result %d", o);
      shards_free(&got[o]);
    }
  }
  assert_int_equal(_mm_getcsr() & (_MM_FLUSH_ZERO_MASK | _MM_DENORMALS_ZERO_MASK), modes);
  volatile float tiny = ((float *)args[0].t[0]->data)[0];
  assert_true(tiny * 2 > 0);
  for (int i = 0; i < 2; i++) shards_free(&args[i]);
  dev_program_release(prog);
  dev_close(dev);
  module_free(m);
}

/* Of constants, as they are, for a caller who has them count as zero. */
static void constants_keep_them(void **state) {
  (void)state;
  setenv("WEFT_CACHE", "off", 1);
  static const char text[] =
      "func.func @main() -> tensor<f32> {\n"
      "  %c = stablehlo.constant dense<1.0e-40> : tensor<f32>\n"
      "  %n = stablehlo.negate %c : tensor<f32>\n"
      "  %a = stablehlo.abs %n : tensor<f32>\n  return %a : tensor<f32>\n}\n";
  Module *m = NULL;
  Dev *dev = NULL;
  DevProgram *prog = NULL;
  Shards got = {0};
  ok(stablehlo_read("", str_from(text), &m));
  ok(dev_open("cpu", &dev));
  unsigned modes = _mm_getcsr();
  _mm_setcsr(modes | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  Err *e = dev_compile(dev, m, NULL, &prog);
  _mm_setcsr(modes);
  ok(e);
  ok(dev->ops->run(prog, &(DevPart){.n = 1}, NULL, NULL, &got, NULL));
  assert_true(*(float *)got.t[0]->data == TINY);
  shards_free(&got);
  dev_program_release(prog);
  dev_close(dev);
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(count_as_zero),
                                     cmocka_unit_test(constants_keep_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
