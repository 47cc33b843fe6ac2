/* The memory of compiled programs on a GPU, as XLA 0.10.2 plans it ahead of time for an H100, every product by
 * cuBLAS, which has 32 MiB to split sums in. */
#include "sim/estimate_test.h"

#define WIDE "tensor<4096x4096xf32>"
#define DOT(y, x, w, out)                                                                        \
  y " = stablehlo.dot_general " x ", " w ", contracting_dims = [1] x [0] : (" WIDE ", " out ") " \
    "-> " out "\n"
#define ROOM (32.0 * (1 << 20))
#define ARRAY (4096.0 * 4096 * 4)

static double temporaries(const char *text) {
  SimReport *r = estimate_as(text, "H100-SXM", &(SimOpts){.library = true});
  double bytes = r->temp_bytes;
  sim_report_free(r);
  return bytes;
}

/* A temporary is not written over the one that it is computed from. */
static void test_apart(void **state) {
  (void)state;
  double bytes =
      temporaries("func.func @main(%x: " WIDE ", %w: " WIDE ", %v: tensor<4096x16xf32>) -> "
                  "tensor<4096x16xf32> {\n" DOT(
                      "%y", "%x", "%w",
                      WIDE) "%e = stablehlo.tanh %y : " WIDE
                            "\n" DOT("%z", "%e", "%v",
                                     "tensor<4096x16xf32>") "return %z : tensor<4096x16xf32> }");
  near(bytes, 2 * ARRAY, 1e-5);
}

/* But it lies in a result's memory until that is made, */
static void test_lent(void **state) {
  (void)state;
  double bytes = temporaries(
      "func.func @main(%x: " WIDE ", %w: " WIDE ", %v: " WIDE ") -> " WIDE
      " {\n" DOT("%y", "%x", "%w", WIDE) "%e = stablehlo.tanh %y : " WIDE
                                         "\n" DOT("%z", "%e", "%v", WIDE) "return %z : " WIDE " }");
  near(bytes, ARRAY + ROOM, 1e-5);
}

/* not if that is a donated argument's, which is read until then. */
static void test_donated(void **state) {
  (void)state;
  double bytes = temporaries(
      "func.func @main(%x: " WIDE " {tf.aliasing_output = 0 : i32}, %w: " WIDE ", %v: " WIDE
      ") -> " WIDE " {\n" DOT("%y", "%x", "%w", WIDE) "%e = stablehlo.tanh %y : " WIDE "\n" DOT(
          "%p", "%e", "%v", WIDE) "%z = stablehlo.add %x, %p : " WIDE "\nreturn %z : " WIDE " }");
  near(bytes, 2 * ARRAY, 1e-5);
}

/* Products of a vector are sums, not cuBLAS's. */
static void test_vector(void **state) {
  (void)state;
  double bytes =
      temporaries("func.func @main(%x: tensor<1x4096xf32>, %w: " WIDE ") -> tensor<1x4096xf32> {\n"
                  "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
                  "(tensor<1x4096xf32>, " WIDE ") -> tensor<1x4096xf32>\n"
                  "return %y : tensor<1x4096xf32> }");
  assert_true(bytes < 1 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_apart), cmocka_unit_test(test_lent),
                                     cmocka_unit_test(test_donated), cmocka_unit_test(test_vector)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
