/* The memory and the kernels of compiled programs on a GPU, as XLA 0.10.2 plans them ahead of time for an H100 (or a T4),
 * every product by cuBLAS, which has 32 MiB (4) to split sums in. */
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

#define ROWS "tensor<4096x32768x"
#define LOGITS                                                                                     \
  "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x256xbf16>, "     \
  "tensor<256x32768xbf16>) -> " ROWS "bf16>\n%f = stablehlo.convert %y : (" ROWS "bf16>) -> " ROWS \
  "f32>\n"
#define LOGITS_BYTES (4096.0 * 32768 * 2)

/* What elements are taken out of is not widened for that. */
static void test_gathered(void **state) {
  (void)state;
  double bytes = temporaries(
      "func.func @main(%x: tensor<4096x256xbf16>, %w: tensor<256x32768xbf16>, %i: "
      "tensor<4096x1xi32>) -> tensor<4096xf32> {\n" LOGITS
      "%g = \"stablehlo.gather\"(%f, %i) <{dimension_numbers = #stablehlo.gather<"
      "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = "
      "[0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, "
      "slice_sizes = array<i64: 1, 1>}> : (" ROWS
      "f32>, tensor<4096x1xi32>) -> tensor<4096xf32>\nreturn %g : tensor<4096xf32> }");
  near(bytes, LOGITS_BYTES + ROOM, 1e-3);
}

/* Its gradient is added into a wide array in place, which is narrowed afterwards. */
static void test_scattered(void **state) {
  (void)state;
  double bytes = temporaries(
      "func.func @main(%x: tensor<4096x256xbf16>, %w: tensor<256x32768xbf16>, %i: "
      "tensor<4096x1xi32>, %u: tensor<4096xf32>) -> tensor<4096x256xbf16> {\n" LOGITS
      "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> " ROWS "f32>\n"
      "%s = \"stablehlo.scatter\"(%z, %i, %u) <{indices_are_sorted = false, "
      "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], "
      "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
      "scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = false}> ({\n"
      "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%k = stablehlo.add %a, %b : tensor<f32>\n"
      "stablehlo.return %k : tensor<f32>\n}) : (" ROWS
      "f32>, tensor<4096x1xi32>, tensor<4096xf32>) -> " ROWS "f32>\n"
      "%t = stablehlo.add %f, %s : " ROWS "f32>\n"
      "%h = stablehlo.convert %t : (" ROWS "f32>) -> " ROWS "bf16>\n"
      "%o = stablehlo.dot_general %h, %w, contracting_dims = [1] x [1] : (" ROWS
      "bf16>, tensor<256x32768xbf16>) -> tensor<4096x256xbf16>\n"
      "return %o : tensor<4096x256xbf16> }");
  near(bytes, 3 * LOGITS_BYTES, 1e-5);
}

/* The sum of products along columns: their kernels and temporaries. */
static int column_sum(const char *columns, double *bytes) {
  char text[2000], x[64], f[64], v[64];
  snprintf(x, sizeof x, "tensor<3136x%sxbf16>", columns);
  snprintf(f, sizeof f, "tensor<3136x%sxf32>", columns);
  snprintf(v, sizeof v, "tensor<%sxf32>", columns);
  snprintf(text, sizeof text,
           "func.func @main(%%x: %s, %%y: %s, %%b: %s) -> %s {\n"
           "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
           "%%xf = stablehlo.convert %%x : (%s) -> %s\n%%yf = stablehlo.convert %%y : (%s) -> %s\n"
           "%%bb = stablehlo.broadcast_in_dim %%b, dims = [1] : (%s) -> %s\n"
           "%%d = stablehlo.subtract %%xf, %%bb : %s\n%%q = stablehlo.multiply %%d, %%yf : %s\n"
           "%%t = stablehlo.reduce(%%q init: %%z) applies stablehlo.add across dimensions = [0] : "
           "(%s, tensor<f32>) -> %s\nreturn %%t : %s }",
           x, x, v, v, x, f, x, f, v, f, f, f, f, v, v);
  SimReport *r = estimate(text, "H100-SXM");
  int kernels = r->n_kernels;
  *bytes = r->temp_bytes;
  sim_report_free(r);
  return kernels;
}

/* Few columns are few blocks of threads: those do not compute what they sum up. */
static void test_columns(void **state) {
  (void)state;
  double bytes;
  assert_int_equal(column_sum("512", &bytes), 2);
  near(bytes, 3136.0 * 512 * 4, 1e-5);
  assert_int_equal(column_sum("8192", &bytes), 1);
  assert_true(bytes == 0);
}

/* Attention and the gradient of its scores: kernels. */
static int attention(int keys, const char *chip) {
  Buf text = {0};
  char q[64], a[64], x[64], s[64];
  snprintf(q, sizeof q, "tensor<16x%dx64xbf16>", keys);
  snprintf(a, sizeof a, "tensor<16x%dx%dxbf16>", keys, keys);
  snprintf(x, sizeof x, "tensor<16x%dx%dxf32>", keys, keys);
  snprintf(s, sizeof s, "tensor<16x%dxf32>", keys);
  buf_printf(&text,
             "func.func @main(%%q: %s, %%k: %s, %%v: %s, %%g: %s) -> (%s, %s) {\n"
             "%%i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
             "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
             "%%s = stablehlo.dot_general %%q, %%k, batching_dims = [0] x [0], contracting_dims = "
             "[2] x [2] : (%s, %s) -> %s\n%%x = stablehlo.convert %%s : (%s) -> %s\n",
             q, q, q, q, q, q, q, q, a, a, x);
  buf_printf(&text,
             "%%m = stablehlo.reduce(%%x init: %%i) applies stablehlo.maximum across dimensions = "
             "[2] : (%s, tensor<f32>) -> %s\n"
             "%%mb = stablehlo.broadcast_in_dim %%m, dims = [0, 1] : (%s) -> %s\n"
             "%%d = stablehlo.subtract %%x, %%mb : %s\n%%e = stablehlo.exponential %%d : %s\n"
             "%%u = stablehlo.reduce(%%e init: %%z) applies stablehlo.add across dimensions = [2] "
             ": (%s, tensor<f32>) -> %s\n"
             "%%ub = stablehlo.broadcast_in_dim %%u, dims = [0, 1] : (%s) -> %s\n"
             "%%p = stablehlo.divide %%e, %%ub : %s\n%%h = stablehlo.convert %%p : (%s) -> %s\n",
             x, s, s, x, x, x, x, s, s, x, x, x, a);
  buf_printf(&text,
             "%%y = stablehlo.dot_general %%h, %%v, batching_dims = [0] x [0], contracting_dims = "
             "[2] x [1] : (%s, %s) -> %s\n"
             "%%dh = stablehlo.dot_general %%g, %%v, batching_dims = [0] x [0], contracting_dims = "
             "[2] x [2] : (%s, %s) -> %s\n%%dp = stablehlo.convert %%dh : (%s) -> %s\n"
             "%%w = stablehlo.multiply %%p, %%dp : %s\n"
             "%%t = stablehlo.reduce(%%w init: %%z) applies stablehlo.add across dimensions = [2] "
             ": (%s, tensor<f32>) -> %s\n"
             "%%tb = stablehlo.broadcast_in_dim %%t, dims = [0, 1] : (%s) -> %s\n",
             a, q, q, q, q, a, a, x, x, x, s, s, x);
  buf_printf(&text,
             "%%c = stablehlo.subtract %%dp, %%tb : %s\n%%ds = stablehlo.multiply %%c, %%p : %s\n"
             "%%dsh = stablehlo.convert %%ds : (%s) -> %s\n"
             "%%dq = stablehlo.dot_general %%dsh, %%k, batching_dims = [0] x [0], "
             "contracting_dims = [2] x [1] : (%s, %s) -> %s\nreturn %%y, %%dq : %s, %s }",
             x, x, x, a, a, q, q, q, q);
  SimReport *r = estimate(text.p, chip);
  int kernels = r->n_kernels;
  sim_report_free(r);
  buf_free(&text);
  return kernels;
}

/* Rows that leave much of a block empty take a kernel more on an H100, where exponentials are stored first. */
static void test_rows(void **state) {
  (void)state;
  assert_int_equal(attention(640, "H100-SXM"), 1 + attention(768, "H100-SXM"));
  assert_int_equal(attention(640, "A100-80GB"), attention(768, "A100-80GB"));
}

#define TALL "tensor<4096x1024x"

static void peaks(const char *text, double t4, double h100) {
  SimReport *r = estimate_as(text, "T4", &(SimOpts){.library = true});
  near(r->peak_bytes, t4, 1e-5);
  sim_report_free(r);
  r = estimate_as(text, "H100-SXM", &(SimOpts){.library = true});
  near(r->peak_bytes, h100, 1e-5);
  sim_report_free(r);
}

/* What a kernel looks at element by element it reads once, however many of its operations do: nothing is stored
 * between them. */
static void test_uses(void **state) {
  (void)state;
  peaks("func.func @main(%a: " WIDE ", %b: " WIDE ", %w: " WIDE ") -> " WIDE " {\n"
        "%y = stablehlo.add %a, %b : " WIDE "\n%e = stablehlo.multiply %y, %a : " WIDE "\n"
        "%m = stablehlo.multiply %e, %e : " WIDE "\n%n = stablehlo.multiply %m, %e : " WIDE "\n"
        "%o = stablehlo.multiply %n, %e : " WIDE "\n%p = stablehlo.multiply %o, %e : " WIDE
        "\n" DOT("%d", "%p", "%w", WIDE) "%q = stablehlo.multiply %d, %e : " WIDE
                                         "\n%r = stablehlo.multiply %q, %e : " WIDE
                                         "\n%s = stablehlo.multiply %r, %e : " WIDE
                                         "\n%t = stablehlo.multiply %s, %e : " WIDE
                                         "\nreturn %t : " WIDE " }",
        339738624, 369098768);
}

/* A product that is turned afterwards is multiplied the other way round. */
static void test_turned(void **state) {
  (void)state;
  peaks("func.func @main(%x: " TALL "bf16>, %d: tensor<4096x512xbf16>) -> tensor<1024x512xf32> {\n"
        "%y = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : "
        "(tensor<4096x512xbf16>, " TALL "bf16>) -> tensor<512x1024xbf16>\n"
        "%t = stablehlo.transpose %y, dims = [1, 0] : (tensor<512x1024xbf16>) -> "
        "tensor<1024x512xbf16>\n"
        "%f = stablehlo.convert %t : (tensor<1024x512xbf16>) -> tensor<1024x512xf32>\n"
        "return %f : tensor<1024x512xf32> }",
        44040192, 49283072);
}

/* cuBLAS writes the type that it reads; its workspace is where the result will be, if there is room. */
static void test_narrowed(void **state) {
  (void)state;
  peaks("func.func @main(%x: " TALL "f32>, %w: tensor<1024x512xf32>) -> tensor<4096x512xbf16> {\n"
        "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" TALL
        "f32>, tensor<1024x512xf32>) -> tensor<4096x512xf32>\n"
        "%f = stablehlo.convert %y : (tensor<4096x512xf32>) -> tensor<4096x512xbf16>\n"
        "return %f : tensor<4096x512xbf16> }",
        31457280, 65011712);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_apart),    cmocka_unit_test(test_lent),
      cmocka_unit_test(test_donated),  cmocka_unit_test(test_vector),
      cmocka_unit_test(test_gathered), cmocka_unit_test(test_scattered),
      cmocka_unit_test(test_columns),  cmocka_unit_test(test_rows),
      cmocka_unit_test(test_uses),     cmocka_unit_test(test_turned),
      cmocka_unit_test(test_narrowed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
