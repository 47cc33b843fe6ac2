/* place: what is brought on chip, and how long it stays there. Bytes are libtpu 0.0.51's for the same
 * programs. */
#include "sim/estimate_test.h"

#define W "tensor<640x512xf32>"
#define V "tensor<512x384xf32>"
#define H "tensor<512x512xf32>"
#define X "tensor<512x640xf32>"
#define DONATED " {jax.buffer_donor = true}"
#define OP(v, op, x, y, type) "  %" v " = stablehlo." op " %" x ", %" y " : " type "\n"
#define DOT(v, x, y, dims, a, b, c)                                                           \
  "  %" v " = stablehlo.dot_general %" x ", %" y ", contracting_dims = " dims " : (" a ", " b \
  ") -> " c "\n"

/* Two layers and what changes their weights. Where two cores are one device, a product that writes over
 * a weight in device memory reads it from there, though it has been on chip before. */
static void test_written_over(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%w: " W DONATED ", %v: " V DONATED ", %x: " X ") -> (" W ", " V
      ") {\n"
      "  %one = stablehlo.constant dense<1.0> : " V "\n  %ones = stablehlo.constant dense<1.0> : " H
      "\n" DOT("1", "x", "w", "[1] x [0]", X, W, H) "  %a = stablehlo.tanh %1 : " H "\n" DOT(
          "2", "a", "v", "[1] x [0]", H, V,
          V) "  %b = stablehlo.tanh %2 : " V "\n" OP("3", "multiply", "b", "b", V)
          OP("4", "subtract", "one", "3", V) OP("d", "multiply", "b", "4", V)
              DOT("5", "a", "d", "[0] x [0]", H, V, V) DOT("6", "d", "v", "[1] x [1]", V, V, H)
                  OP("7", "multiply", "a", "a", H) OP("8", "subtract", "ones", "7", H)
                      OP("e", "multiply", "6", "8", H) DOT("9", "x", "e", "[0] x [0]", X, H, W)
                          OP("wn", "subtract", "w", "9", W)
                              OP("vn", "subtract", "v", "5", V) "  return %wn, %vn : " W ", " V
                                                                "\n}\n";
  peak_near(text, "tpu-v5p", 6946848, 0.02);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_written_over)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
