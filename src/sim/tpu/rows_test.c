/* rows: in which order tables of narrow rows and square weights are updated. libtpu 0.0.51 makes the
 * copies counted here for the same programs. */
#include "sim/estimate_test.h"

/* Copies that the chip makes of the program of these aliases of types and this text. */
static int copies(const char *types, const char *text, const char *chip) {
  char program[4096];
  assert_true(snprintf(program, sizeof program, "%s%s", types, text) < (int)sizeof program);
  return kernels(program, chip, "copy");
}

/* Adagrad: eight operations on each element, read from the table, its slot and the sums. */
static int adagrad(int rows, int cols, const char *chip) {
  static const char text[] =
      "func.func public @main(%p: !table, %s: !table, %i: tensor<384x1xi32>, %g: !rows)\n"
      "    -> (!table, !table) {\n"
      "%z = stablehlo.constant dense<0.0> : !sums\n"
      "%d = \"stablehlo.scatter\"(%z, %i, %g) <{scatter_dimension_numbers = #stablehlo.scatter<\n"
      "    update_window_dims = [1], inserted_window_dims = [0],\n"
      "    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
      "  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):\n"
      "    %c = stablehlo.add %a, %b : tensor<bf16>\n"
      "    stablehlo.return %c : tensor<bf16>\n"
      "}) : (!sums, tensor<384x1xi32>, !rows) -> !sums\n"
      "%w = stablehlo.convert %d : (!sums) -> !table\n"
      "%q = stablehlo.multiply %w, %w : !table\n"
      "%t = stablehlo.add %s, %q : !table\n"
      "%l = stablehlo.constant dense<0.01> : !table\n"
      "%u = stablehlo.multiply %w, %l : !table\n"
      "%r = stablehlo.sqrt %t : !table\n"
      "%e = stablehlo.constant dense<1.0e-10> : !table\n"
      "%f = stablehlo.add %r, %e : !table\n"
      "%v = stablehlo.divide %u, %f : !table\n"
      "%n = stablehlo.subtract %p, %v : !table\n"
      "return %n, %t : !table, !table }\n";
  char types[200];
  snprintf(types, sizeof types,
           "!table = tensor<%dx%dxf32>\n!sums = tensor<%dx%dxbf16>\n!rows = tensor<384x%dxbf16>\n",
           rows, cols, rows, cols, cols);
  return copies(types, text, chip);
}

/* The rows and their sums are turned, or the rows and both tables, there and back: whichever the
 * padding of the rows of 128 lanes makes up for. */
static void tables_turn(void **state) {
  (void)state;
  assert_int_equal(adagrad(8000, 40, "tpu-v5e"), 2);
  assert_int_equal(adagrad(30000, 48, "tpu-v5e"), 5);
  assert_int_equal(adagrad(9000, 16, "tpu-v6e"), 2);
  assert_int_equal(adagrad(9000, 64, "tpu-v6e"), 5);
}

/* Where the gradient of the first layer's weights is made as its transposition, they are turned before
 * it meets them, and after. */
static void weights_turn(void **state) {
  (void)state;
  static const char types[] = "!square = tensor<256x256xf32>\n!active = tensor<64x256xf32>\n",
                    text[] = "func.func public @main(%w: !square, %x: !active) -> !square {\n"
                             "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :\n"
                             "    (!active, !square) -> !active\n"
                             "%t = stablehlo.tanh %y : !active\n"
                             "%d = stablehlo.dot_general %t, %x, contracting_dims = [0] x [0] :\n"
                             "    (!active, !active) -> !square\n"
                             "%g = stablehlo.transpose %d, dims = [1, 0] : (!square) -> !square\n"
                             "%l = stablehlo.constant dense<0.01> : !square\n"
                             "%u = stablehlo.multiply %g, %l : !square\n"
                             "%n = stablehlo.subtract %w, %u : !square\n"
                             "return %n : !square }\n";
  assert_int_equal(copies(types, text, "tpu-v6e"), 2);
  assert_int_equal(copies(types, text, "tpu-v5e"), 0);
}

/* Rows of 8000 looked up for b x t places, and added up over t. */
static int gathered(int b, int t, int cols, const char *chip) {
  char text[2048];
  snprintf(text, sizeof text,
           "!table = tensor<8000x%dxf32>\n!places = tensor<%dx%dxi32>\n"
           "!rows = tensor<%dx%dx%dxf32>\n!sums = tensor<%dx%dxf32>\n"
           "func.func public @main(%%e: !table, %%i: !places) -> !sums {\n"
           "%%r = \"stablehlo.gather\"(%%e, %%i) <{dimension_numbers = #stablehlo.gather<\n"
           "    offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0],\n"
           "    index_vector_dim = 2>, slice_sizes = array<i64: 1, %d>}> :\n"
           "    (!table, !places) -> !rows\n"
           "%%q = stablehlo.tanh %%r : !rows\n"
           "%%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
           "%%s = stablehlo.reduce(%%q init: %%z) applies stablehlo.add across dimensions = [1] :\n"
           "    (!rows, tensor<f32>) -> !sums\n"
           "return %%s : !sums }\n",
           cols, b, t, b, t, cols, b, cols, cols);
  return copies("", text, chip);
}

/* The table is turned; so are the rows, where they pad less so, as the matrix of all of them. */
static void gathered_turn(void **state) {
  (void)state;
  assert_int_equal(gathered(200, 30, 40, "tpu-v5e"), 2);
  assert_int_equal(gathered(256, 10, 12, "tpu-v3"), 2);
  assert_int_equal(gathered(128, 20, 48, "tpu-v5e"), 1);
}

/* Cycles of the kernels that make 3000 rows and sort out where they are added up. */
static double scattered(int cols, const char *chip) {
  char text[2048];
  snprintf(text, sizeof text,
           "!sums = tensor<500x%dxbf16>\n!rows = tensor<3000x%dxbf16>\n"
           "func.func public @main(%%x: !rows, %%y: tensor<3000xbf16>, %%i: tensor<3000x1xi32>)\n"
           "    -> !sums {\n"
           "%%b = stablehlo.broadcast_in_dim %%y, dims = [0] : (tensor<3000xbf16>) -> !rows\n"
           "%%r = stablehlo.multiply %%x, %%b : !rows\n"
           "%%z = stablehlo.constant dense<0.0> : !sums\n"
           "%%d = \"stablehlo.scatter\"(%%z, %%i, %%r) <{scatter_dimension_numbers =\n"
           "    #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],\n"
           "    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
           "  ^bb0(%%a: tensor<bf16>, %%e: tensor<bf16>):\n"
           "    %%c = stablehlo.add %%a, %%e : tensor<bf16>\n"
           "    stablehlo.return %%c : tensor<bf16>\n"
           "}) : (!sums, tensor<3000x1xi32>, !rows) -> !sums\n"
           "return %%d : !sums }\n",
           cols, cols);
  SimReport *r = estimate(text, chip);
  double cycles = r->cycles;
  sim_report_free(r);
  return cycles;
}

/* Rows of whole lanes are made where they are added up, which has no estimate; narrower ones before,
 * with their elements in sublanes, and turned. */
static void scattered_made(void **state) {
  (void)state;
  assert_true(scattered(128, "tpu-v5e") == 0);
  double narrow = scattered(64, "tpu-v5e"), libtpu = 6696;
  assert_true(narrow > 0.97 * libtpu && narrow < 1.03 * libtpu);
}

/* Sums of rows that lie wide meet tables that lie narrow: where the update makes a comparison, the tables are turned
 * and the results turned back, at four to sixteen times their bytes. */
static void tables_under_masks(void **state) {
  (void)state;
  static const char text[] =
      "module {\n"
      "  func.func public @main(%arg0: tensor<20000x16xf32> {tf.aliasing_output = 0 : "
      "i32}, %arg1: tensor<20000x16xf32> {tf.aliasing_output = 1 : i32}, %arg2: "
      "tensor<1024xi32>, %arg3: tensor<1024x16xf32>) -> (tensor<20000x16xf32>, "
      "tensor<20000x16xf32>) {\n"
      "    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> "
      "tensor<20000x16xf32>\n"
      "    %c = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> "
      "tensor<1024xi32>\n"
      "    %2 = stablehlo.compare LT, %arg2, %1, SIGNED : (tensor<1024xi32>, "
      "tensor<1024xi32>) -> tensor<1024xi1>\n"
      "    %c_0 = stablehlo.constant dense<20000> : tensor<i32>\n"
      "    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> "
      "tensor<1024xi32>\n"
      "    %4 = stablehlo.add %arg2, %3 : tensor<1024xi32>\n"
      "    %5 = stablehlo.select %2, %4, %arg2 : tensor<1024xi1>, tensor<1024xi32>\n"
      "    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<1024xi32>) -> "
      "tensor<1024x1xi32>\n"
      "    %7 = \"stablehlo.scatter\"(%0, %6, %arg3) <{indices_are_sorted = false, "
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = "
      "1>, unique_indices = false}> ({\n"
      "    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):\n"
      "      %20 = stablehlo.add %arg4, %arg5 : tensor<f32>\n"
      "      stablehlo.return %20 : tensor<f32>\n"
      "    }) : (tensor<20000x16xf32>, tensor<1024x1xi32>, tensor<1024x16xf32>) -> "
      "tensor<20000x16xf32>\n"
      "    %8 = stablehlo.multiply %7, %7 : tensor<20000x16xf32>\n"
      "    %9 = stablehlo.add %arg1, %8 : tensor<20000x16xf32>\n"
      "    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> "
      "tensor<20000x16xf32>\n"
      "    %11 = stablehlo.compare GT, %9, %10, FLOAT : (tensor<20000x16xf32>, "
      "tensor<20000x16xf32>) -> tensor<20000x16xi1>\n"
      "    %cst_2 = stablehlo.constant dense<1.000000e-07> : tensor<f32>\n"
      "    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> "
      "tensor<20000x16xf32>\n"
      "    %13 = stablehlo.add %9, %12 : tensor<20000x16xf32>\n"
      "    %14 = stablehlo.rsqrt %13 : tensor<20000x16xf32>\n"
      "    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
      "    %15 = call @_where(%11, %14, %cst_3) : (tensor<20000x16xi1>, "
      "tensor<20000x16xf32>, tensor<f32>) -> tensor<20000x16xf32>\n"
      "    %16 = stablehlo.multiply %15, %7 : tensor<20000x16xf32>\n"
      "    %cst_4 = stablehlo.constant dense<0.00999999977> : tensor<f32>\n"
      "    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> "
      "tensor<20000x16xf32>\n"
      "    %18 = stablehlo.multiply %17, %16 : tensor<20000x16xf32>\n"
      "    %19 = stablehlo.subtract %arg0, %18 : tensor<20000x16xf32>\n"
      "    return %19, %9 : tensor<20000x16xf32>, tensor<20000x16xf32>\n"
      "  }\n"
      "  func.func private @_where(%arg0: tensor<20000x16xi1>, %arg1: "
      "tensor<20000x16xf32>, %arg2: tensor<f32>) -> tensor<20000x16xf32> {\n"
      "    %0 = stablehlo.convert %arg2 : tensor<f32>\n"
      "    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> "
      "tensor<20000x16xf32>\n"
      "    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<20000x16xi1>, "
      "tensor<20000x16xf32>\n"
      "    return %2 : tensor<20000x16xf32>\n"
      "  }\n"
      "}\n";
  peak_near(text, "tpu-v5e", 51.35 * 1048576, 0.001);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tables_turn), cmocka_unit_test(weights_turn),
                                     cmocka_unit_test(gathered_turn),
                                     cmocka_unit_test(scattered_made),
                                     cmocka_unit_test(tables_under_masks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
