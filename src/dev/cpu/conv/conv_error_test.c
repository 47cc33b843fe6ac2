/* The error of Winograd's algorithm, against sums in f64: of the size of plain sums' in f32, for any
 * number of channels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"

enum { N = 2, SIDE = 16, IN = 512, OUT = 32 };

static Tensor *noise(int rank, const int64_t *dims, uint64_t rng) { /* about normal */
  Tensor *x = tensor_make(DT_F32, rank, dims);
  for (int64_t i = 0; i < x->count; i++) {
    double sum = -6;
    for (int k = 0; k < 12; k++) {
      rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
      sum += (double)(rng >> 11) / 9007199254740992.0;
    }
    ((float *)x->data)[i] = (float)sum;
  }
  return x;
}

static double direct(const float *x, const float *w, int64_t n, int64_t y, int64_t z, int64_t o) {
  double sum = 0;
  for (int64_t a = 0; a < 3; a++)
    for (int64_t b = 0; b < 3; b++) {
      int64_t i = y + a - 1, k = z + b - 1;
      if (i < 0 || i >= SIDE || k < 0 || k >= SIDE) continue;
      for (int64_t c = 0; c < IN; c++)
        sum +=
            (double)x[((n * SIDE + i) * SIDE + k) * IN + c] * w[((a * 3 + b) * IN + c) * OUT + o];
    }
  return sum;
}

static void test_channels(void **state) {
  (void)state;
  Tensor *x = noise(4, (int64_t[]){N, SIDE, SIDE, IN}, 88172645463325252u),
         *w = noise(4, (int64_t[]){3, 3, IN, OUT}, 362436069362436069u);
  Tensor *t =
      answer_of2("func.func @main(%a: tensor<2x16x16x512xf32>, %b: tensor<3x3x512x32xf32>) -> "
                 "tensor<2x16x16x32xf32> {\n"
                 "  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, "
                 "o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} "
                 "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
                 "(tensor<2x16x16x512xf32>, tensor<3x3x512x32xf32>) -> "
                 "tensor<2x16x16x32xf32>\n"
                 "  return %r : tensor<2x16x16x32xf32>\n}\n",
                 x, w);
  double off = 0, all = 0;
  const float *got = t->data;
  for (int64_t n = 0; n < N; n++)
    for (int64_t y = 0; y < SIDE; y++)
      for (int64_t z = 0; z < SIDE; z++)
        for (int64_t o = 0; o < OUT; o++) {
          double want = direct(x->data, w->data, n, y, z, o), d = *got++ - want;
          off += d * d, all += want * want;
        }
  double error = sqrt(off / all);
  if (error > 1.6e-6) fail_msg("%.3g of the results' deviation", error);
  tensor_release(t);
  tensor_release(x);
  tensor_release(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_channels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
