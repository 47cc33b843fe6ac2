/* relayout: how large the pieces are in which a kernel takes its arrays, and relayouts within. Cycles are
 * libtpu 0.0.51's for the same programs. */
#include "sim/estimate_test.h"

static void both_near(const char *text, const char *chip, double want, double peak) {
  SimReport *r = estimate(text, chip);
  double cycles = r->cycles, bytes = r->peak_bytes;
  sim_report_free(r);
  if (peak > 0 && (bytes < peak * 0.99 || bytes > peak * 1.01))
    fail_msg("%s: %.0f bytes, libtpu says %.0f", chip, bytes, peak);
  if (cycles < want * 0.93 || cycles > want * 1.07)
    fail_msg("%s: %.0f cycles, libtpu says %.0f", chip, cycles, want);
}

static void cycles_near(const char *text, const char *chip, double want) {
  both_near(text, chip, want, 0);
}

#define GATHER1                                                                              \
  " <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], " \
  "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = " \
  "array<i64: 1, 1>}> : (tensor<3500x1xf32>, tensor<16000x1xi32>) -> tensor<16000x1xf32>\n"
/* Rows of one element are a vector, not one of 128 lanes each. */
static void test_rows_of_one(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<3500x1xf32>, %b: tensor<3500x1xf32>, "
      "%s: tensor<16000x1xi32>, %d: tensor<16000x1xi32>, %h: tensor<16000x128xf32>) -> "
      "tensor<128xf32> {\n"
      "  %0 = \"stablehlo.gather\"(%a, %s)" GATHER1 "  %1 = \"stablehlo.gather\"(%b, %d)" GATHER1
      "  %2 = stablehlo.add %0, %1 : tensor<16000x1xf32>\n"
      "  %3 = stablehlo.exponential %2 : tensor<16000x1xf32>\n"
      "  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<16000x1xf32>) -> "
      "tensor<16000x128xf32>\n"
      "  %5 = stablehlo.multiply %h, %4 : tensor<16000x128xf32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %r = stablehlo.reduce(%5 init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<16000x128xf32>, tensor<f32>) -> tensor<128xf32>\n"
      "  return %r : tensor<128xf32>\n}\n";
  peak_near(text, "tpu-v3", 8595456, 0.02);
}

#define T "tensor<7000x192xf32>"
/* Results are written over the turned copies of what they update. */
static void test_over_copies(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%e: " T " {tf.aliasing_output = 0 : i32}, %v: " T
      " {tf.aliasing_output = 1 : i32}, %i: tensor<3000x1xi32>, %g: tensor<3000x192xf32>) -> (" T
      ", " T ") {\n"
      "  %z = stablehlo.constant dense<0.0> : " T "\n"
      "  %s = \"stablehlo.scatter\"(%z, %i, %g) <{indices_are_sorted = false, "
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
      "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
      "unique_indices = false}> ({\n"
      "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
      "    %t = stablehlo.add %x, %y : tensor<f32>\n"
      "    stablehlo.return %t : tensor<f32>\n"
      "  }) : (" T ", tensor<3000x1xi32>, tensor<3000x192xf32>) -> " T "\n"
      "  %2 = stablehlo.multiply %s, %s : " T "\n"
      "  %w = stablehlo.add %v, %2 : " T "\n"
      "  %c = stablehlo.constant dense<1.0e-01> : " T "\n"
      "  %3 = stablehlo.multiply %c, %s : " T "\n"
      "  %p = stablehlo.constant dense<1.0e-08> : " T "\n"
      "  %4 = stablehlo.add %w, %p : " T "\n"
      "  %5 = stablehlo.rsqrt %4 : " T "\n"
      "  %6 = stablehlo.multiply %3, %5 : " T "\n"
      "  %f = stablehlo.subtract %e, %6 : " T "\n"
      "  return %f, %w : " T ", " T "\n}\n";
  peak_near(text, "tpu-v3", 34691072, 0.02);
}

/* A copy from on-chip memory takes as small windows as one from device memory. */
static void test_copies(void **state) {
  (void)state;
  cycles_near("func.func public @main(%a: tensor<64x14x14x96xbf16>) -> tensor<64x18816xbf16> {\n"
              "  %0 = stablehlo.reshape %a : (tensor<64x14x14x96xbf16>) -> tensor<64x18816xbf16>\n"
              "  return %0 : tensor<64x18816xbf16>\n}\n",
              "tpu-v5e", 26430);
}

#define A "tensor<640x2560xf32>"
#define B "tensor<2560x640xf32>"
#define C "tensor<640xf32>"
/* Where more on-chip memory is free, larger arrays are taken at once. */
static void test_at_once(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: " A ", %b: " B ", %c: " C ") -> (" A ", " B ", " C ") {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %o = stablehlo.constant dense<1.0> : tensor<f32>\n"
      "  %a2 = chlo.square %a : " A " -> " A "\n"
      "  %as = stablehlo.reduce(%a2 init: %z) applies stablehlo.add across dimensions = [0, 1] : "
      "(" A ", tensor<f32>) -> tensor<f32>\n"
      "  %b2 = chlo.square %b : " B " -> " B "\n"
      "  %bs = stablehlo.reduce(%b2 init: %z) applies stablehlo.add across dimensions = [0, 1] : "
      "(" B ", tensor<f32>) -> tensor<f32>\n"
      "  %c2 = chlo.square %c : " C " -> " C "\n"
      "  %cs = stablehlo.reduce(%c2 init: %z) applies stablehlo.add across dimensions = [0] : (" C
      ", tensor<f32>) -> tensor<f32>\n"
      "  %s = stablehlo.add %as, %bs : tensor<f32>\n"
      "  %t = stablehlo.add %s, %cs : tensor<f32>\n"
      "  %r = stablehlo.rsqrt %t : tensor<f32>\n"
      "  %m = stablehlo.minimum %o, %r : tensor<f32>\n"
      "  %am = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> " A "\n"
      "  %bm = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> " B "\n"
      "  %cm = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> " C "\n"
      "  %x = stablehlo.multiply %a, %am : " A "\n"
      "  %y = stablehlo.multiply %b, %bm : " B "\n"
      "  %w = stablehlo.multiply %c, %cm : " C "\n"
      "  return %x, %y, %w : " A ", " B ", " C "\n}\n";
  cycles_near(text, "tpu-v6e", 55714);
  cycles_near(text, "tpu7x", 38672);
}

/* A convolution that lays its image out anew does so while the array works, and taps share the array
 * all the same. */
static void test_relaid(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<32x24x24x64xbf16>, %w: tensor<3x3x64x96xbf16>) -> "
      "tensor<32x24x24x96xbf16> {\n"
      "  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
      "i64} : (tensor<32x24x24x64xbf16>, tensor<3x3x64x96xbf16>) -> tensor<32x24x24x96xbf16>\n"
      "  return %y : tensor<32x24x24x96xbf16>\n}\n";
  cycles_near(text, "tpu-v6e", 37408);
  cycles_near(text, "tpu7x", 34314);
}

/* An argument is rounded in the order in which it lies, before it is turned. */
static void test_rounded(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<8x64x64x3xf32>, %w: tensor<4x4x3x48xbf16>, %g: "
      "tensor<8x32x32x48xbf16>) -> (tensor<8x32x32x48xbf16>, tensor<4x4x3x48xbf16>) {\n"
      "  %r = stablehlo.convert %x : (tensor<8x64x64x3xf32>) -> tensor<8x64x64x3xbf16>\n"
      "  %y = stablehlo.convolution(%r, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<8x64x64x3xbf16>, tensor<4x4x3x48xbf16>) -> "
      "tensor<8x32x32x48xbf16>\n"
      "  %d = stablehlo.convolution(%r, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], "
      "window = {pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<8x64x64x3xbf16>, tensor<8x32x32x48xbf16>) -> "
      "tensor<4x4x3x48xbf16>\n"
      "  return %y, %d : tensor<8x32x32x48xbf16>, tensor<4x4x3x48xbf16>\n}\n";
  SimReport *r = estimate(text, "tpu-v5e");
  double cycles = 0;
  for (int i = 0; i < r->n_kernels; i++)
    if (!strcmp(r->kernels[i].op, "convert")) cycles += r->kernels[i].cycles;
  sim_report_free(r);
  assert_in_range((int)cycles, 4900, 5400); /* libtpu: 5158 */
}

/* A convolution of two groups has a dimension of the groups, which a copy puts beside the features. */
static void test_grouped(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%x: tensor<16x20x20x16xbf16>, %w: tensor<3x3x8x32xbf16>) -> "
      "tensor<16x20x20x32xbf16> {\n"
      "  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : "
      "i64} : (tensor<16x20x20x16xbf16>, tensor<3x3x8x32xbf16>) -> tensor<16x20x20x32xbf16>\n"
      "  return %y : tensor<16x20x20x32xbf16>\n}\n";
  cycles_near(text, "tpu-v5p", 60529);
  cycles_near(text, "tpu7x", 34240);
}

/* What is summed once, for another kernel, is read where it lies. */
static void test_mean(void **state) {
  (void)state;
  cycles_near(
      "func.func public @main(%a: tensor<512x3000xf32>) -> tensor<512xf32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
      "(tensor<512x3000xf32>, tensor<f32>) -> tensor<512xf32>\n"
      "  %n = stablehlo.constant dense<3000.0> : tensor<512xf32>\n"
      "  %m = stablehlo.divide %s, %n : tensor<512xf32>\n"
      "  return %m : tensor<512xf32>\n}\n",
      "tpu-v6e", 17741);
}

/* Narrow elements that are moved on chip are packed anew, whatever moves them. */
static void test_packed(void **state) {
  (void)state;
  cycles_near("func.func public @main(%a: tensor<1500x900xbf16>) -> tensor<1494x890xbf16> {\n"
              "  %0 = stablehlo.slice %a [3:1497, 5:895] : (tensor<1500x900xbf16>) -> "
              "tensor<1494x890xbf16>\n"
              "  return %0 : tensor<1494x890xbf16>\n}\n",
              "tpu-v6e", 26655);
}

#define GRADIENT(B, H, C, O)                                                                     \
  "func.func public @main(%x: tensor<" B "x" H "x" H "x" C "xbf16>, %g: tensor<" B "x" H "x" H   \
  "x" O "xbf16>) -> tensor<3x3x" C "x" O "xbf16> {\n"                                            \
  "  %w = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], " \
  "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "   \
  "i64} "                                                                                        \
  ": (tensor<" B "x" H "x" H "x" C "xbf16>, tensor<" B "x" H "x" H "x" O                         \
  "xbf16>) -> tensor<3x3x" C "x" O "xbf16>\n  return %w : tensor<3x3x" C "x" O "xbf16>\n}\n"
/* Gradients of filters: images in lanes are laid down before an array of 256 takes them; on two cores
 * that share a memory each pixel of the window streams for itself. */
static void test_gradients(void **state) {
  (void)state;
  cycles_near(GRADIENT("96", "20", "48", "96"), "tpu-v6e", 22891);
  cycles_near(GRADIENT("256", "28", "64", "32"), "tpu-v4", 81441);
}

/* What a window takes does not grow with its size where it lies outside of tiles. */
static void test_windows(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<32x14x14x256xbf16>) -> tensor<32x14x14x256xbf16> {\n"
      "  %z = stablehlo.constant dense<0xFF80> : tensor<bf16>\n"
      "  %0 = \"stablehlo.reduce_window\"(%a, %z) ({\n"
      "  ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):\n"
      "    %m = stablehlo.maximum %x, %y : tensor<bf16>\n"
      "    stablehlo.return %m : tensor<bf16>\n"
      "  }) {padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, "
      "window_dimensions = array<i64: 1, 3, 3, 1>} : (tensor<32x14x14x256xbf16>, tensor<bf16>) -> "
      "tensor<32x14x14x256xbf16>\n"
      "  return %0 : tensor<32x14x14x256xbf16>\n}\n";
  cycles_near(text, "tpu-v5e", 25613);
  cycles_near(text, "tpu-v6e", 15687);
  cycles_near(text, "tpu7x", 10710);
}

/* On chip the transpose unit takes narrow elements as it takes wide ones. */
static void test_turned_on_chip(void **state) {
  (void)state;
  cycles_near(
      "func.func public @main(%x: tensor<8x1200x48xbf16>, %g: tensor<8x600x96xbf16>) -> "
      "tensor<3x48x96xbf16> {\n"
      "  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = "
      "{pad = [[0, 1]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
      "i64} : (tensor<8x1200x48xbf16>, tensor<8x600x96xbf16>) -> tensor<3x48x96xbf16>\n"
      "  return %0 : tensor<3x48x96xbf16>\n}\n",
      "tpu7x", 10549);
}

/* A product takes an operand with the batch in sublanes as it lies, and has the other one fetched. */
static void test_batch_in_sublanes(void **state) {
  (void)state;
  static const char text[] =
      "func.func public @main(%a: tensor<24x128x196xbf16>, %b: tensor<24x196x80xbf16>) -> "
      "tensor<24x128x80xbf16> {\n"
      "  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[1] "
      ": (tensor<24x128x196xbf16>, tensor<24x196x80xbf16>) -> tensor<24x128x80xbf16>\n"
      "  return %0 : tensor<24x128x80xbf16>\n}\n";
  both_near(text, "tpu-v2", 11907, 2678784);
  both_near(text, "tpu-v5e", 10262, 3661824);
}

#define SUM(SHAPE, OUT, D, T)                                                                 \
  "func.func public @main(%a: tensor<" SHAPE "x" T ">) -> tensor<" OUT "x" T "> {\n"          \
  "  %z = stablehlo.constant dense<0.0> : tensor<" T ">\n"                                    \
  "  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [" D "] : " \
  "(tensor<" SHAPE "x" T ">, tensor<" T ">) -> tensor<" OUT "x" T ">\n"                       \
  "  return %s : tensor<" OUT "x" T ">\n}\n"
/* Sums come in the order of what they sum up; where results have another one they are turned, and what
 * is not the only kernel has nothing fetched ahead. */
static void test_sums_turned(void **state) {
  (void)state;
  both_near(SUM("64x128x318", "64x318", "1", "f32"), "tpu-v6e", 67073, 10682880);
  both_near(SUM("16x1024x300", "16x300", "1", "bf16"), "tpu-v5p", 67036, 9921024);
}

/* An array is fetched for its sum where the program does nothing else, not even with the sum. */
static void test_fetched_sum(void **state) {
  (void)state;
  static const char after[] =
      "func.func public @main(%a: tensor<700x900xf32>) -> tensor<f32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %q = stablehlo.constant dense<0.3> : tensor<f32>\n"
      "  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 1] : "
      "(tensor<700x900xf32>, tensor<f32>) -> tensor<f32>\n"
      "  %m = stablehlo.multiply %s, %q : tensor<f32>\n"
      "  return %m : tensor<f32>\n}\n";
  static const char before[] =
      "func.func public @main(%a: tensor<700x900xf32>, %b: tensor<700x900xf32>) -> tensor<f32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %m = stablehlo.multiply %a, %b : tensor<700x900xf32>\n"
      "  %s = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [0, 1] : "
      "(tensor<700x900xf32>, tensor<f32>) -> tensor<f32>\n"
      "  return %s : tensor<f32>\n}\n";
  const struct {
    const char *text;
    double peak;
  } cases[] = {{after, 2779136}, {before, 5554688}};
  for (int i = 0; i < 2; i++) {
    SimReport *r = estimate(cases[i].text, "tpu-v5e");
    double peak = r->peak_bytes;
    sim_report_free(r);
    assert_true(peak > cases[i].peak * 0.99 && peak < cases[i].peak * 1.01);
  }
}

/* How much an operation of its own takes in one window. */
static void test_one_window(void **state) {
  (void)state;
  static const char add[] =
      "func.func public @main(%a: tensor<1056x1280xf32>, %b: tensor<1056x1280xf32>) -> "
      "tensor<1056x1280xf32> {\n"
      "  %0 = stablehlo.add %a, %b : tensor<1056x1280xf32>\n"
      "  return %0 : tensor<1056x1280xf32>\n}\n";
  cycles_near(add, "tpu-v6e", 20435);
  cycles_near(add, "tpu-v5p", 14687);
  cycles_near(add, "tpu-v5e", 52670);
  cycles_near(SUM("1024x1280", "1024", "1", "f32"), "tpu-v5e", 23458);
  cycles_near(SUM("1370x1840", "1370", "1", "f32"), "tpu-v6e", 15084);
}

/* A reshape that moves elements writes its result in the natural order, in another one by a copy; an
 * update is turned to lie as what it goes into. */
static void test_pieces(void **state) {
  (void)state;
  both_near("func.func public @main(%a: tensor<64x384xf32>) -> tensor<64x6x64xf32> {\n"
            "  %0 = stablehlo.reshape %a : (tensor<64x384xf32>) -> tensor<64x6x64xf32>\n"
            "  return %0 : tensor<64x6x64xf32>\n}\n",
            "tpu-v5e", 2251, 557056);
  both_near("func.func public @main(%a: tensor<256x1500xf32> {tf.aliasing_output = 0 : i32}, %u: "
            "tensor<36x1500xf32>, %i: tensor<i32>) -> tensor<256x1500xf32> {\n"
            "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
            "  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %z : (tensor<256x1500xf32>, "
            "tensor<36x1500xf32>, tensor<i32>, tensor<i32>) -> tensor<256x1500xf32>\n"
            "  return %0 : tensor<256x1500xf32>\n}\n",
            "tpu-v5e", 2399, 2557440);
}

/* Images that the gradient of a filter lays out anew are not fetched ahead, the other operand is. */
static void test_fetched_gradient(void **state) {
  (void)state;
  both_near(
      "func.func public @main(%x: tensor<32x8x8x256xbf16>, %g: tensor<32x4x4x64xbf16>) -> "
      "tensor<3x3x256x64xbf16> {\n"
      "  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], "
      "window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<32x8x8x256xbf16>, tensor<32x4x4x64xbf16>) -> "
      "tensor<3x3x256x64xbf16>\n"
      "  return %0 : tensor<3x3x256x64xbf16>\n}\n",
      "tpu-v6e", 6965, 1605632);
}

/* The largest of square windows in steps of 2. */
static void pooled(char *text, size_t room, int b, int side, int c, int window) {
  snprintf(text, room,
           "func.func public @main(%%x: tensor<%dx%dx%dx%dxbf16>) -> tensor<%dx%dx%dx%dxbf16> {\n"
           "  %%l = stablehlo.constant dense<-1.0e30> : tensor<bf16>\n"
           "  %%0 = \"stablehlo.reduce_window\"(%%x, %%l) <{padding = dense<[[0, 0], [0, %d], [0, "
           "%d], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, %d, %d, 1>, "
           "window_strides = array<i64: 1, 2, 2, 1>}> ({\n"
           "  ^bb0(%%a: tensor<bf16>, %%b: tensor<bf16>):\n"
           "    %%m = stablehlo.maximum %%a, %%b : tensor<bf16>\n"
           "    stablehlo.return %%m : tensor<bf16>\n"
           "  }) : (tensor<%dx%dx%dx%dxbf16>, tensor<bf16>) -> tensor<%dx%dx%dx%dxbf16>\n"
           "  return %%0 : tensor<%dx%dx%dx%dxbf16>\n}\n",
           b, side, side, c, b, side / 2, side / 2, c, window - 2, window - 2, window, window, b,
           side, side, c, b, side / 2, side / 2, c, b, side / 2, side / 2, c);
}

/* Images whose windows lie in lanes are relaid before, unless that pads them much more. */
static void test_pooled(void **state) {
  (void)state;
  static const struct {
    int b, side, c, window;
    double cycles;
  } cases[] = {
      {4, 28, 24, 3, 12373}, {4, 28, 24, 2, 12352}, {8, 28, 24, 3, 15579}, {32, 56, 40, 3, 181660}};
  char text[2000];
  for (int i = 0; i < COUNT_OF(cases); i++) {
    pooled(text, sizeof text, cases[i].b, cases[i].side, cases[i].c, cases[i].window);
    SimReport *r = estimate(text, "tpu-v5e");
    if (fabs(r->cycles / cases[i].cycles - 1) > 0.1)
      fail_msg("%.0f cycles, libtpu says %.0f", r->cycles, cases[i].cycles);
    sim_report_free(r);
  }
  pooled(text, sizeof text, 16, 56, 24, 3);
  SimReport *r = estimate(text, "tpu-v5e");
  assert_int_equal(kernels_of(r, NULL), 1);
  sim_report_free(r);
}

/* Images as rows of a product: in tiles of 16 rows the batch of 8 is padded more than sides of 28. */
static void test_three_rows(void **state) {
  (void)state;
  static const char text[] =
      "!x = tensor<8x28x28x96xbf16>\n!h = tensor<8x28x28x384xbf16>\n!f = tensor<8x28x28x96xf32>\n"
      "!k = tensor<3x3x96x96xbf16>\n!w = tensor<96x384xbf16>\n!v = tensor<384x96xbf16>\n"
      "func.func public @main(%x: !x, %k: !k, %w: !w, %v: !v) -> tensor<96xf32> {\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
      "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : "
      "i64} : (!x, !k) -> !x\n"
      "  %1 = stablehlo.dot_general %0, %w, contracting_dims = [3] x [0] : (!x, !w) -> !h\n"
      "  %2 = stablehlo.tanh %1 : !h\n"
      "  %3 = stablehlo.dot_general %2, %v, contracting_dims = [3] x [0] : (!h, !v) -> !x\n"
      "  %4 = stablehlo.convert %3 : (!x) -> !f\n"
      "  %5 = stablehlo.reduce(%4 init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : "
      "(!f, tensor<f32>) -> tensor<96xf32>\n"
      "  return %5 : tensor<96xf32>\n}\n";
  peak_near(text, "tpu-v2", 9085952, 0.01);
  peak_near(text, "tpu-v5e", 9232896, 0.01);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_of_one),
                                     cmocka_unit_test(test_over_copies),
                                     cmocka_unit_test(test_copies),
                                     cmocka_unit_test(test_at_once),
                                     cmocka_unit_test(test_relaid),
                                     cmocka_unit_test(test_rounded),
                                     cmocka_unit_test(test_grouped),
                                     cmocka_unit_test(test_mean),
                                     cmocka_unit_test(test_packed),
                                     cmocka_unit_test(test_gradients),
                                     cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_turned_on_chip),
                                     cmocka_unit_test(test_batch_in_sublanes),
                                     cmocka_unit_test(test_sums_turned),
                                     cmocka_unit_test(test_one_window),
                                     cmocka_unit_test(test_pieces),
                                     cmocka_unit_test(test_pooled),
                                     cmocka_unit_test(test_three_rows),
                                     cmocka_unit_test(test_fetched_sum),
                                     cmocka_unit_test(test_fetched_gradient)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
