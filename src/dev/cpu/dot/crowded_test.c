/* Matrices that one vector after the other is multiplied by: each alone fits the second cache and stays
 * there from turn to turn; many of them do not, and are asked for ahead of their use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/dot/dot.h"
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/registry.h"
#include "stablehlo/stablehlo.h"

#define SIDE "256"
#define BYTES (256 * 256 * 4)

/* Is the first of n products one that asks ahead? */
static bool asks(int n) {
  Buf b = {0};
  buf_cstr(&b, "func.func @main(%x0: tensor<1x" SIDE "xf32>");
  for (int i = 0; i < n; i++) buf_printf(&b, ", %%w%d: tensor<" SIDE "x" SIDE "xf32>", i);
  buf_cstr(&b, ") -> tensor<1x" SIDE "xf32> {\n");
  for (int i = 0; i < n; i++)
    buf_printf(&b,
               "%%x%d = stablehlo.dot_general %%x%d, %%w%d, contracting_dims = [1] x [0] : "
               "(tensor<1x" SIDE "xf32>, tensor<" SIDE "x" SIDE "xf32>) -> tensor<1x" SIDE
               "xf32>\n",
               i + 1, i, i);
  buf_printf(&b, "return %%x%d : tensor<1x" SIDE "xf32>\n}", n);
  Module *m;
  assert_null(stablehlo_read_text("crowded", (Str){b.p, b.n}, &m));
  const Op *op = module_main(m)->body->first;
  const CpuKernel *k = cpu_kernel_find(op);
  assert_string_equal(k->name, "dot:few");
  void *state;
  assert_null(k->prepare(op, &state));
  bool far = ((Dot *)state)->few.far;
  k->release(state);
  module_free(m);
  buf_free(&b);
  return far;
}

static void test_crowded(void **state) {
  (void)state;
  if (!gemm_kernels() || cpu_second_cache() <= BYTES) skip();
  assert_false(asks(1));
  assert_true(asks((int)(cpu_second_cache() / BYTES) + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_crowded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
