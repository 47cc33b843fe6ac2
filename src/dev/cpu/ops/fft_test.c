/* fft.h against the definition of the transform, each lane with other numbers; and the kernel on
 * lines in every arrangement against the interpreter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "dev/cpu/ops/fft.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/registry.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

static double number(uint32_t *seed) { /* -1 .. 1 */
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(*seed >> 8) / (1 << 23) - 1;
}

/* The largest error of a transform of length n, relative to the largest result. */
static double error_of(int64_t n, bool wide, bool swapped) {
  Fft *f = fft_new(n, wide);
  int64_t lanes = fft_lanes(wide);
  size_t area = (size_t)fft_area(f), count = (size_t)(2 * n * lanes);
  double *from = xmalloc(count * sizeof *from), *roots = xmalloc(2 * (size_t)n * sizeof *roots),
         worst = 0, largest = 0;
  for (int64_t k = 0; k < n; k++) fft_root(k, n, &roots[2 * k], &roots[2 * k + 1]);
  float *narrow = aligned_alloc(64, 2 * area * sizeof *narrow);
  double *exact = aligned_alloc(64, 2 * area * sizeof *exact);
  uint32_t seed = (uint32_t)n;
  for (size_t i = 0; i < count; i++) {
    float x = (float)number(&seed);
    from[i] = (double)x;
    if (wide) exact[i] = (double)x;
    else narrow[i] = x;
  }
  void *to = wide ? fft_code()->forward[1](f, exact, exact + area, swapped)
                  : fft_code()->forward[0](f, narrow, narrow + area, swapped);
  for (int64_t k = 0; k < n; k++)
    for (int64_t l = 0; l < lanes; l++) {
      double re = 0, im = 0;
      for (int64_t j = 0; j < n; j++) {
        int64_t a = 2 * j * lanes + l, b = a + lanes;
        double x = from[swapped ? b : a], y = from[swapped ? a : b];
        const double *w = &roots[2 * (j * k % n)];
        re += x * w[0] - y * w[1], im += x * w[1] + y * w[0];
      }
      int64_t a = 2 * k * lanes + l, b = a + lanes, r = swapped ? b : a, i = swapped ? a : b;
      double got_re = wide ? ((double *)to)[r] : (double)((float *)to)[r],
             got_im = wide ? ((double *)to)[i] : (double)((float *)to)[i];
      worst = fmax(worst, fmax(fabs(got_re - re), fabs(got_im - im)));
      largest = fmax(largest, fmax(fabs(re), fabs(im)));
    }
  free(from), free(roots), free(narrow), free(exact);
  fft_free(f);
  return worst / largest;
}

static void lengths(void **state) {
  (void)state;
  static const int64_t larger[] = {67, 97, 128, 143, 202, 243, 256, 343, 360, 509, 512, 1024};
  for (int64_t i = 1; i < 64 + COUNT_OF(larger); i++)
    for (int how = 0; how < 4; how++) {
      int64_t n = i < 64 ? i : larger[i - 64];
      double e = error_of(n, how & 1, how & 2), limit = how & 1 ? 1e-14 : 1e-6;
      if (!(e < limit)) fail_msg("length %lld, way %d: error %g", (long long)n, how, e);
    }
}

static void kernel_case(const char *from, const char *type, const char *length, const char *to,
                        double tol) {
  Buf b = {0};
  buf_printf(&b,
             "func.func @main(%%a: tensor<%s>) -> tensor<%s> {\n"
             "  %%r = stablehlo.fft %%a, type = %s, length = [%s] : (tensor<%s>) -> tensor<%s>\n"
             "  return %%r : tensor<%s>\n}\n",
             from, to, type, length, from, to, to);
  Module *m = NULL;
  ok(stablehlo_read("case.mlir", (Str){b.p, b.n}, &m));
  ok(ir_verify(m));
  const Op *op = module_main(m)->body->first;
  const CpuKernel *k = cpu_kernel_find(op);
  assert_string_equal(k->name, "fft:lanes");
  const Type *t = op->operands[0]->type, *o = op_type(op);
  Tensor *in = tensor_make(t->dtype, t->rank, t->dims), *want = NULL,
         *got = tensor_make(o->dtype, o->rank, o->dims);
  DType real = dtype_real_of(t->dtype);
  int64_t part = dtype_bytes(real), n = (int64_t)tensor_bytes(in) / part;
  uint32_t seed = 7;
  for (int64_t i = 0; i < n; i++) elem_set_f64(real, (char *)in->data + i * part, number(&seed));
  ok(interp_eval(op, &in, &want, NULL, NULL));
  void *state, *data[] = {in->data}, *out[] = {got->data};
  ok(k->prepare(op, &state));
  ok(k->run(state, op, data, out));
  k->release(state);
  n = (int64_t)tensor_bytes(want) / part;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < n; i++) {
    double w = elem_get_f64(real, (char *)want->data + i * part),
           g = elem_get_f64(real, (char *)got->data + i * part);
    worst = isfinite(g) ? fmax(worst, fabs(w - g)) : INFINITY;
    largest = fmax(largest, fabs(w));
  }
  if (!(worst <= tol * largest)) fail_msg("%s %s -> %s: %g", type, from, to, worst / largest);
  tensor_release(in), tensor_release(want), tensor_release(got);
  module_free(m);
  buf_free(&b);
}

#define C64 "complex<f32>"
#define C128 "complex<f64>"

static void arrangements(void **state) {
  (void)state;
  kernel_case("10x7x" C64, "FFT", "7", "10x7x" C64, 1e-6); /* fewer lines than lanes at the end */
  kernel_case("3x5x12x" C64, "IFFT", "5, 12", "3x5x12x" C64, 1e-6);
  kernel_case("6x4x10x" C128, "FFT", "6, 4, 10", "6x4x10x" C128, 1e-14);
  kernel_case("9x12xf32", "RFFT", "12", "9x7x" C64, 1e-6);
  kernel_case("9x15xf32", "RFFT", "15", "9x8x" C64, 1e-6);
  kernel_case("2x1xf32", "RFFT", "1", "2x1x" C64, 1e-6);
  kernel_case("3x8x6xf64", "RFFT", "8, 6", "3x8x4x" C128, 1e-14);
  kernel_case("9x7x" C64, "IRFFT", "12", "9x12xf32", 1e-6);
  kernel_case("9x8x" C64, "IRFFT", "15", "9x15xf32", 1e-6);
  kernel_case("4x8x4x" C64, "IRFFT", "4, 8, 6", "4x8x6xf32", 1e-6);
  kernel_case("2x1024x" C64, "FFT", "1024", "2x1024x" C64, 1e-6); /* few lines: matrices */
  kernel_case("1x600x" C64, "IFFT", "600", "1x600x" C64, 1e-6);
  kernel_case("3x2000xf32", "RFFT", "2000", "3x1001x" C64, 1e-6);
  kernel_case("2x1001x" C128, "IRFFT", "2000", "2x2000xf64", 1e-14);
  kernel_case("1x2021x" C64, "FFT", "2021", "1x2021x" C64, 1e-6);  /* 43 by 47 */
  kernel_case("2x1111x" C64, "IFFT", "1111", "2x1111x" C64, 1e-6); /* 11 by 101 */
  kernel_case("1x1009x" C64, "FFT", "1009", "1x1009x" C64, 1e-6);  /* a prime: convolutions */
  kernel_case("1009x1x" C128, "IFFT", "1009, 1", "1009x1x" C128, 1e-14);
  kernel_case("2x2018xf32", "RFFT", "2018", "2x1010x" C64, 1e-6);
  kernel_case("2x1009xf64", "RFFT", "1009", "2x505x" C128, 1e-14); /* odd real lines */
  kernel_case("2x505x" C64, "IRFFT", "1009", "2x1009xf32", 1e-6);
  kernel_case("3x1013xf32", "RFFT", "1013", "3x507x" C64, 1e-6);
  kernel_case("1x675xf32", "RFFT", "675", "1x338x" C64, 1e-6);
  kernel_case("1x338x" C64, "IRFFT", "675", "1x675xf32", 1e-6);
  kernel_case("512x3x" C64, "FFT", "512, 3", "512x3x" C64, 1e-6);
  kernel_case("9x256x" C64, "FFT", "256", "9x256x" C64, 1e-6); /* lines by themselves */
  kernel_case("2x320x" C64, "IFFT", "320", "2x320x" C64, 1e-6);
  kernel_case("1x48x" C64, "IFFT", "48", "1x48x" C64, 1e-6);
  kernel_case("1x16x" C64, "IFFT", "16", "1x16x" C64, 1e-6);
  kernel_case("1x32xf32", "RFFT", "32", "1x17x" C64, 1e-6);
  kernel_case("9x1024xf32", "RFFT", "1024", "9x513x" C64, 1e-6);
  kernel_case("9x513x" C64, "IRFFT", "1024", "9x1024xf32", 1e-6);
  kernel_case("5x640xf64", "RFFT", "640", "5x321x" C128, 1e-14);
  kernel_case("5x321x" C128, "IRFFT", "640", "5x640xf64", 1e-14);
  kernel_case("3x1072x" C64, "IFFT", "1072", "3x1072x" C64, 1e-6); /* 16 by 67: with a chirp */
  kernel_case("3x536x" C128, "FFT", "536", "3x536x" C128, 1e-14);
  kernel_case("2x8192x" C128, "FFT", "8192", "2x8192x" C128, 1e-13);
  kernel_case("20x36x33x" C64, "IFFT", "36, 33", "20x36x33x" C64, 1e-6);
  kernel_case("0x8x" C64, "FFT", "8", "0x8x" C64, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lengths), cmocka_unit_test(arrangements)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
