/* exchange: what becomes of exchanges between devices besides the bytes on the network. Cycles (of copies and
 * slices; exchanges have none) and peaks are libtpu 0.0.51's for the same programs of one device each. */
#include "sim/estimate_test.h"

typedef struct Shape {
  int rows, columns, devices;
} Shape;

/* The program of one device; `head` ends with the operation's attributes but its groups. */
static const char *program(const char *op, const char *head, Shape in, Shape out, bool sums) {
  static char text[2000];
  char groups[400] = "";
  for (int i = 0; i < in.devices; i++)
    snprintf(groups + strlen(groups), sizeof groups - strlen(groups), "%s%d", i ? ", " : "", i);
  snprintf(
      text, sizeof text,
      "func.func public @main(%%x: tensor<%dx%dxf32>) -> tensor<%dx%dxf32> {\n"
      "  %%0 = \"stablehlo.%s\"(%%x) <{%s replica_groups = dense<[[%s]]> : tensor<1x%dxi64>}>%s : "
      "(tensor<%dx%dxf32>) -> tensor<%dx%dxf32>\n  return %%0 : tensor<%dx%dxf32>\n}\n",
      in.rows, in.columns, out.rows, out.columns, op, head, groups, in.devices,
      sums ? " ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n  %s = stablehlo.add %a, %b : "
             "tensor<f32>\n  stablehlo.return %s : tensor<f32>\n})"
           : "",
      in.rows, in.columns, out.rows, out.columns, out.rows, out.columns);
  return text;
}

static const char *gathered(Shape in) {
  return program("all_gather", "all_gather_dim = 0 : i64,", in,
                 (Shape){in.rows * in.devices, in.columns, 0}, false);
}
static const char *scattered(Shape in) {
  return program("reduce_scatter", "scatter_dimension = 0 : i64,", in,
                 (Shape){in.rows / in.devices, in.columns, 0}, true);
}

/* No estimate of libtpu's is no cycle of ours. */
static void as(const char *text, const char *chip, double cycles, double peak) {
  if (cycles > 0) return like(text, chip, cycles, peak);
  SimReport *r = estimate(text, chip);
  assert_true(r->cycles == 0);
  sim_report_free(r);
  peak_near(text, chip, peak, 0.001);
}

/* Others write into memory of the program's own: a result is a copy of it. */
static void test_copied(void **state) {
  (void)state;
  Shape s = {512, 512, 8}, t = {512, 512, 4}, large = {4096, 2048, 4};
  as(gathered(s), "tpu-v2", 38836, 17825792);
  as(gathered(t), "tpu-v4", 5593, 9437184); /* out of common memory */
  as(gathered(t), "tpu-v5e", 0, 9437184);   /* out of on-chip memory, by a transfer */
  as(gathered(large), "tpu-v5e", 610478, 301989888);
  as(gathered(large), "tpu-v6e", 355008, 301989888);
  static const char permuted[] =
      "func.func public @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
      "  %0 = \"stablehlo.collective_permute\"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> "
      ": "
      "tensor<2x2xi64>}> : (tensor<512x512xf32>) -> tensor<512x512xf32>\n"
      "  return %0 : tensor<512x512xf32>\n}\n";
  as(permuted, "tpu-v2", 5258, 3145728);
  as(permuted, "tpu-v4", 1847, 3145728);
  as(permuted, "tpu-v6e", 0, 3145728);
}

/* A sum over devices is a result itself, but on TPU7x; in a program it takes the place of this device's part. */
static void test_summed(void **state) {
  (void)state;
  Shape s = {512, 512, 4};
  const char *all = program("all_reduce", "", s, s, true);
  as(all, "tpu-v2", 0, 2097152);
  as(all, "tpu-v5e", 0, 2097152);
  peak_near(all, "tpu7x", 3145728, 0.001);
  static const char inside[] =
      "func.func public @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> "
      "tensor<512x512xf32> {\n"
      "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x512xf32>, "
      "tensor<512x512xf32>) -> tensor<512x512xf32>\n"
      "  %1 = \"stablehlo.all_reduce\"(%0) <{replica_groups = dense<[[0, 1, 2, 3]]> : "
      "tensor<1x4xi64>}> ({\n"
      "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, %b : tensor<f32>\n"
      "    stablehlo.return %s : tensor<f32>\n  }) : (tensor<512x512xf32>) -> tensor<512x512xf32>\n"
      "  %2 = stablehlo.add %1, %x : tensor<512x512xf32>\n  return %2 : tensor<512x512xf32>\n}\n";
  SimReport *r = estimate(inside, "tpu-v2");
  assert_true(r->temp_bytes == 512 * 512 * 4);
  sim_report_free(r);
}

/* In a ring, in pieces that tiles and directions divide; or all of it, cut. */
static void test_scattered(void **state) {
  (void)state;
  Shape s = {512, 512, 4}, s8 = {512, 512, 8}, large = {4096, 2048, 4}, large8 = {4096, 2048, 8},
        many = {768, 1024, 16}, odd = {160, 1024, 4}, v5p = {8192, 1024, 4};
  as(scattered(large8), "tpu-v2", 19784, 71311360);
  as(scattered(s), "tpu-v4", 0, 1310720);
  as(scattered(s), "tpu-v5e", 0, 1310720);
  peak_near(scattered(s8), "tpu7x", 1180160, 0.001);
  as(scattered(large), "tpu-v4", 21685, 59777024);
  as(scattered(large), "tpu-v5e", 42835, 59777024);
  as(scattered(large), "tpu-v6e", 16894, 59252736);
  as(scattered(odd), "tpu-v5e", 0, 819200); /* whole tiles in one direction */
  as(scattered(v5p), "tpu-v5p", 19703, 59777024);
  as(scattered(many), "tpu-v4", 1066, 6496256);
  as(scattered(many), "tpu-v6e", 2374, 6496256);
}

/* Rows for others that are no whole tiles lie apart. */
static void test_odd_rows(void **state) {
  (void)state;
  Shape s = {200, 384, 4}, s8 = {200, 384, 8};
  static const char head[] =
      "concat_dimension = 0 : i64, split_count = %d : i64, split_dimension = 0 : i64,";
  char four[200], eight[200];
  snprintf(four, sizeof four, head, 4);
  snprintf(eight, sizeof eight, head, 8);
  peak_near(program("all_to_all", four, s, s, false), "tpu-v5e", 1302528, 0.001);
  peak_near(program("all_to_all", eight, s8, s8, false), "tpu-v2", 1400832, 0.001);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_copied), cmocka_unit_test(test_summed),
                                     cmocka_unit_test(test_scattered),
                                     cmocka_unit_test(test_odd_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
