/* The memory plan of small programs: layouts, donation, loops, what is lent and kept. The numbers are libtpu's
 * for the same programs. */
#include "sim/estimate_test.h"

/* Rows and columns of a batched product share the tiles: operands that come with the batch in lanes
 * are turned, and so is the result. */
static void test_batched_layout(void **state) {
  (void)state;
  static const char batched[] =
      "func.func @main(%a: tensor<256x32x32xbf16>, %b: tensor<256x32x32xbf16>) -> "
      "tensor<256x32x32xbf16> {\n"
      "  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x "
      "[1] "
      ": (tensor<256x32x32xbf16>, tensor<256x32x32xbf16>) -> tensor<256x32x32xbf16>\n"
      "  return %0 : tensor<256x32x32xbf16>\n}\n";
  static const char *const chips[] = {"tpu-v2", "tpu-v4", "tpu-v5e", "tpu-v6e", "tpu7x"};
  for (int i = 0; i < COUNT_OF(chips); i++) {
    SimReport *r = estimate(batched, chips[i]);
    near(r->peak_bytes, 7864320, 0.001);
    sim_report_free(r);
  }
}

static void test_outer_product(void **state) {
  (void)state;
  SimReport *r = estimate(
      "func.func @main(%a: tensor<64x512xf32>, %b: tensor<64x8xf32>) -> tensor<64x8x512xf32> {\n"
      "  %0 = stablehlo.dot_general %b, %a, batching_dims = [0] x [0], contracting_dims = [] x [] "
      ": "
      "(tensor<64x8xf32>, tensor<64x512xf32>) -> tensor<64x8x512xf32>\n"
      "  return %0 : tensor<64x8x512xf32>\n}\n",
      "tpu-v3");
  assert_int_equal(kernels_of(r, "dot_general"), 0);
  assert_int_equal(kernels_of(r, "multiply"), 1);
  sim_report_free(r);
}

/* Two branches of which each needs a large array for a moment: one after the other, not both first.
 */
static void test_order(void **state) {
  (void)state;
  SimReport *r = estimate(
      "func.func @main(%a: tensor<4096x128xf32>, %w: tensor<128x4096xf32>) -> tensor<4096x128xf32> "
      "{\n"
      "  %0 = stablehlo.dot %a, %w : (tensor<4096x128xf32>, tensor<128x4096xf32>) -> "
      "tensor<4096x4096xf32>\n"
      "  %1 = stablehlo.negate %w : tensor<128x4096xf32>\n"
      "  %2 = stablehlo.dot %a, %1 : (tensor<4096x128xf32>, tensor<128x4096xf32>) -> "
      "tensor<4096x4096xf32>\n"
      "  %3 = stablehlo.dot %0, %a : (tensor<4096x4096xf32>, tensor<4096x128xf32>) -> "
      "tensor<4096x128xf32>\n"
      "  %4 = stablehlo.dot %2, %a : (tensor<4096x4096xf32>, tensor<4096x128xf32>) -> "
      "tensor<4096x128xf32>\n"
      "  %5 = stablehlo.add %3, %4 : tensor<4096x128xf32>\n"
      "  return %5 : tensor<4096x128xf32>\n}\n",
      "tpu-v2");
  double large = 4096.0 * 4096 * 4;
  assert_true(r->temp_bytes >= large && r->temp_bytes < 1.5 * large);
  sim_report_free(r);
}

/* A donated argument is written over when others have read it, whatever comes first otherwise. */
static void test_donated_order(void **state) {
  (void)state;
  for (int donated = 0; donated < 2; donated++) {
    char text[1024];
    snprintf(text, sizeof text,
             "func.func @main(%%p: tensor<1024x1024xf32>%s, %%x: tensor<1024x1024xf32>, "
             "%%w: tensor<1024x2048xf32>) -> (tensor<1024x2048xf32>, tensor<1024x1024xf32>) {\n"
             "  %%r = stablehlo.dot %%p, %%w : (tensor<1024x1024xf32>, tensor<1024x2048xf32>) -> "
             "tensor<1024x2048xf32>\n"
             "  %%u = stablehlo.dot %%x, %%x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
             "tensor<1024x1024xf32>\n"
             "  %%n = stablehlo.add %%p, %%u : tensor<1024x1024xf32>\n"
             "  return %%r, %%n : tensor<1024x2048xf32>, tensor<1024x1024xf32>\n}\n",
             donated ? " {jax.buffer_donor = true}" : "");
    SimReport *r = estimate(text, "tpu-v2");
    assert_int_equal(kernels_of(r, NULL), 2);
    near(r->kernels[1].flops, (donated ? 2.0 : 4.0) * 1024 * 1024 * 1024, 0.01);
    sim_report_free(r);
  }
}

/* A branch may copy what is made outside of it into another order; and the branch that a constant
 * chooses is part of the program. */
static void test_branches(void **state) {
  (void)state;
  double gathered = 0;
  for (int known = 0; known < 2; known++) {
    Buf text = {0};
    buf_cstr(&text, "func.func @main(%i: tensor<i32>, %x: tensor<2000x2x100xf32>, "
                    "%w: tensor<100x100xf32>, %v: tensor<100x2xf32>, %k: tensor<2x2xi32>) -> "
                    "tensor<2000x2xf32> {\n");
    for (int i = 0; i < 12; i++)
      buf_printf(
          &text,
          "  %%a%d = stablehlo.dot_general %%%s, %%w, contracting_dims = [2] x [0] : "
          "(tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>\n",
          i,
          i == 0 ? "x"
                 : (char[]){'a', (char)(i < 11 ? '0' + i - 1 : '1'), (char)(i < 11 ? 0 : '0'), 0});
    buf_printf(&text,
               "  %%t = stablehlo.dot_general %%a11, %%v, contracting_dims = [2] x [0] : "
               "(tensor<2000x2x100xf32>, tensor<100x2xf32>) -> tensor<2000x2x2xf32>\n"
               "  %%u = stablehlo.transpose %%t, dims = [0, 2, 1] : (tensor<2000x2x2xf32>) -> "
               "tensor<2000x2x2xf32>\n"
               "  %%c = stablehlo.constant dense<0> : tensor<i32>\n"
               "  %%0 = \"stablehlo.case\"(%%%s) ({\n"
               "    %%g = \"stablehlo.gather\"(%%u, %%k) <{dimension_numbers = #stablehlo.gather<"
               "offset_dims = [0], collapsed_slice_dims = [1, 2], start_index_map = [1, 2], "
               "index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = "
               "array<i64: 2000, 1, 1>}> : (tensor<2000x2x2xf32>, tensor<2x2xi32>) -> "
               "tensor<2000x2xf32>\n"
               "    stablehlo.return %%g : tensor<2000x2xf32>\n  }, {\n"
               "    %%s = stablehlo.slice %%u [0:2000, 0:1, 0:2] : (tensor<2000x2x2xf32>) -> "
               "tensor<2000x1x2xf32>\n"
               "    %%r = stablehlo.reshape %%s : (tensor<2000x1x2xf32>) -> tensor<2000x2xf32>\n"
               "    stablehlo.return %%r : tensor<2000x2xf32>\n"
               "  }) : (tensor<i32>) -> tensor<2000x2xf32>\n"
               "  return %%0 : tensor<2000x2xf32>\n}\n",
               known ? "c" : "i");
    SimReport *r = estimate(text.p, "tpu-v5e");
    for (int i = 0; i < r->n_kernels; i++)
      if (!strcmp(r->kernels[i].op, "gather")) gathered += r->kernels[i].count;
    assert_true(gathered == 1 + known);
    sim_report_free(r);
    buf_free(&text);
  }
}

/* A table of few columns is turned for the rows that are read from it; its gradient meets that copy,
 * and so does the result, which is turned back. The figure is libtpu's. */
static void test_narrow_table(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%w: tensor<50000x8xf32> {tf.aliasing_output = 0 : i32}, "
               "%i: tensor<4096x1xi32>, %x: tensor<4096x8xf32>) -> (tensor<50000x8xf32>, "
               "tensor<4096x8xf32>) {\n"
               "  %r = \"stablehlo.gather\"(%w, %i) <{dimension_numbers = #stablehlo.gather<"
               "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
               "index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<50000x8xf32>, "
               "tensor<4096x1xi32>) -> tensor<4096x8xf32>\n"
               "  %d = stablehlo.subtract %r, %x : tensor<4096x8xf32>\n"
               "  %z = stablehlo.constant dense<0.0> : tensor<50000x8xf32>\n"
               "  %g = \"stablehlo.scatter\"(%z, %i, %d) <{scatter_dimension_numbers = "
               "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
               "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
               "    %s = stablehlo.add %a, %b : tensor<f32>\n"
               "    stablehlo.return %s : tensor<f32>\n"
               "  }) : (tensor<50000x8xf32>, tensor<4096x1xi32>, tensor<4096x8xf32>) -> "
               "tensor<50000x8xf32>\n"
               "  %l = stablehlo.constant dense<0.1> : tensor<50000x8xf32>\n"
               "  %m = stablehlo.multiply %g, %l : tensor<50000x8xf32>\n"
               "  %n = stablehlo.subtract %w, %m : tensor<50000x8xf32>\n"
               "  return %n, %d : tensor<50000x8xf32>, tensor<4096x8xf32>\n}\n",
               "tpu-v5e");
  near(r->peak_bytes, 80778240, 0.03);
  sim_report_free(r);
}

/* A gate in the epilogue of a product writes over the array that it reads, in device memory, though
 * what it makes is fetched on chip later: on v5p. Not on TPU7x, where an operand of products has
 * taller tiles than what only meets a result. The figures are libtpu's. */
static void test_in_place(void **state) {
  (void)state;
  static const char gate[] =
      "func.func @main(%x: tensor<NxCxbf16>, %w: tensor<1024x4096xbf16>, %z: tensor<NxCxbf16>, "
      "%v: tensor<1024x4096xbf16>, %u: tensor<4096x1024xbf16>) -> (tensor<NxCxbf16>, "
      "tensor<4096x1024xbf16>) {\n"
      "  %a = stablehlo.dot %x, %w : (tensor<NxCxbf16>, tensor<1024x4096xbf16>) -> "
      "tensor<Nx4096xbf16>\n"
      "  %p = stablehlo.dot %z, %v : (tensor<NxCxbf16>, tensor<1024x4096xbf16>) -> "
      "tensor<Nx4096xbf16>\n"
      "  %b = stablehlo.multiply %p, %a : tensor<Nx4096xbf16>\n"
      "  %y = stablehlo.dot %b, %u : (tensor<Nx4096xbf16>, tensor<4096x1024xbf16>) -> "
      "tensor<NxCxbf16>\n"
      "  %d = stablehlo.dot_general %b, %z, contracting_dims = [0] x [0] : (tensor<Nx4096xbf16>, "
      "tensor<NxCxbf16>) -> tensor<4096x1024xbf16>\n"
      "  return %y, %d : tensor<NxCxbf16>, tensor<4096x1024xbf16>\n}\n";
  for (int tall = 0; tall < 2; tall++) {
    Buf text = {0};
    for (const char *c = gate; *c; c++) {
      if (*c == 'N' && c[1] == 'x') buf_cstr(&text, tall ? "8192" : "2048");
      else if (*c == 'C' && c[1] == 'x') buf_cstr(&text, "1024");
      else buf_byte(&text, *c);
    }
    buf_byte(&text, 0);
    SimReport *r = estimate(text.p, tall ? "tpu7x" : "tpu-v5p");
    near(r->temp_bytes, tall ? 2.0 * 8192 * 4096 * 2 : 2048.0 * 4096 * 2, 0.01);
    sim_report_free(r);
    buf_free(&text);
  }
}

/* When a program needs two thirds of the memory, what comes first lies where a result will be: the
 * figures are libtpu's. */
static void test_lent_results(void **state) {
  (void)state;
  static const struct {
    const char *rows;
    double peak;
  } sizes[] = {{"600064", 4917821440}, {"819200", 5035261952}};
  for (int i = 0; i < 2; i++) {
    Buf text = {0};
    for (const char *c = "func.func @main(%x: tensor<Nx1024xbf16>, %w: tensor<1024x1024xbf16>) -> "
                         "tensor<Nx1024xbf16> {\n"
                         "  %a = stablehlo.dot %x, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  %b = stablehlo.dot %a, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  %m = stablehlo.multiply %a, %b : tensor<Nx1024xbf16>\n"
                         "  %c = stablehlo.dot %m, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  %y = stablehlo.dot %c, %w : (tensor<Nx1024xbf16>, "
                         "tensor<1024x1024xbf16>) -> tensor<Nx1024xbf16>\n"
                         "  return %y : tensor<Nx1024xbf16>\n}\n";
         *c; c++)
      if (*c == 'N') buf_cstr(&text, sizes[i].rows);
      else buf_byte(&text, *c);
    buf_byte(&text, 0);
    SimReport *r = estimate(text.p, "tpu-v2");
    near(r->peak_bytes, sizes[i].peak, 0.001);
    sim_report_free(r);
    buf_free(&text);
  }
}

/* The examples of a step are its input, though the gradient of the weights takes them as the right
 * side of a product; a frozen weight is none. */
static void test_examples(void **state) {
  (void)state;
  static const char step[] =
      "func.func public @main(%w: tensor<64x32xf32> {tf.aliasing_output = 0 : i32}, %x: "
      "tensor<16x96xf32>, %f: tensor<96x64xf32>, %d: tensor<16x64xf32>, %t: tensor<16x32xf32>) -> "
      "tensor<64x32xf32> {\n"
      "  %h = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<16x96xf32>, "
      "tensor<96x64xf32>) -> tensor<16x64xf32>\n"
      "  %s = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, "
      "tensor<64x32xf32>) -> tensor<16x32xf32>\n"
      "  %u = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, "
      "tensor<64x32xf32>) -> tensor<16x32xf32>\n"
      "  %v = stablehlo.add %s, %u : tensor<16x32xf32>\n"
      "  %e = stablehlo.subtract %v, %t : tensor<16x32xf32>\n"
      "  %g = stablehlo.dot_general %e, %d, contracting_dims = [0] x [0] : (tensor<16x32xf32>, "
      "tensor<16x64xf32>) -> tensor<32x64xf32>\n"
      "  %k = stablehlo.transpose %g, dims = [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32>\n"
      "  %n = stablehlo.subtract %w, %k : tensor<64x32xf32>\n"
      "  return %n : tensor<64x32xf32>\n}\n";
  static const SimOwner owners[] = {SIM_PARAMETERS, SIM_INPUT, SIM_PARAMETERS, SIM_INPUT,
                                    SIM_INPUT};
  static const char *const chips[] = {"tpu-v2", "tpu-v5e", "T4"};
  for (int c = 0; c < COUNT_OF(chips); c++) {
    SimReport *r = estimate(step, chips[c]);
    assert_true(r->training);
    for (int i = 0; i < COUNT_OF(owners); i++) assert_int_equal(r->arg_owners[i], owners[i]);
    sim_report_free(r);
  }
}

/* A block that adds to its input evaluates; the step that adds to its weight trains, with no loss and
 * nothing donated; what is multiplied with itself is no parameter. On every kind of chip. */
static void test_steps(void **state) {
  (void)state;
#define TWO(out, first, second)                                                                   \
  "func.func public @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {\n" \
  "  %h = stablehlo.dot_general " first ", contracting_dims = [1] x [0] : (tensor<64x64xf32>, "   \
  "tensor<64x64xf32>) -> tensor<64x64xf32>\n"                                                     \
  "  %t = stablehlo.tanh %h : tensor<64x64xf32>\n"                                                \
  "  %g = stablehlo.dot_general %x, %t, contracting_dims = [0] x [0] : (tensor<64x64xf32>, "      \
  "tensor<64x64xf32>) -> tensor<64x64xf32>\n"                                                     \
  "  %s = stablehlo.add " second " : tensor<64x64xf32>\n"                                         \
  "  return " out " : tensor<64x64xf32>\n}\n"
  static const struct {
    const char *text;
    bool training;
    SimOwner x, w;
  } cases[] = {{TWO("%s", "%x, %w", "%x, %t"), false, SIM_INPUT, SIM_PARAMETERS},
               {TWO("%s", "%x, %w", "%w, %g"), true, SIM_INPUT, SIM_PARAMETERS},
               {TWO("%h", "%x, %x", "%x, %w"), false, SIM_INPUT, SIM_INPUT}};
  static const char gradient[] = /* returned, not applied: the examples are its right side */
      "func.func public @main(%x: tensor<16x64xf32>, %w: tensor<64x32xf32>) -> tensor<32x64xf32> "
      "{\n"
      "  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, "
      "tensor<64x32xf32>) -> tensor<16x32xf32>\n"
      "  %g = stablehlo.dot_general %h, %x, contracting_dims = [0] x [0] : (tensor<16x32xf32>, "
      "tensor<16x64xf32>) -> tensor<32x64xf32>\n"
      "  return %g : tensor<32x64xf32>\n}\n";
  static const char *const chips[] = {"tpu-v2", "tpu-v5e", "T4", "H100-SXM"};
  for (int c = 0; c < COUNT_OF(chips); c++) {
    SimReport *r = estimate(gradient, chips[c]);
    assert_int_equal(r->arg_owners[0], SIM_INPUT);
    assert_int_equal(r->arg_owners[1], SIM_PARAMETERS);
    sim_report_free(r);
  }
  for (int k = 0; k < COUNT_OF(cases); k++)
    for (int c = 0; c < COUNT_OF(chips); c++) {
      SimReport *r = estimate(cases[k].text, chips[c]);
      assert_int_equal(r->training, cases[k].training);
      assert_int_equal(r->arg_owners[0], cases[k].x);
      assert_int_equal(r->arg_owners[1], cases[k].w);
      sim_report_free(r);
    }
}

/* What comes back with a row written into it is a cache, not a parameter that learns; a step that is
 * only taken where its loss is finite is training all the same. */
static void test_caches(void **state) {
  (void)state;
  static const char decode[] =
      "func.func public @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %c: tensor<512x64xf32> "
      "{jax.buffer_donor = true}, %i: tensor<i32>) -> (tensor<8x512xf32>, tensor<512x64xf32>) {\n"
      "  %z = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %k = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, "
      "tensor<64x64xf32>) -> tensor<8x64xf32>\n"
      "  %d = stablehlo.dynamic_update_slice %c, %k, %i, %z : (tensor<512x64xf32>, "
      "tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>\n"
      "  %s = stablehlo.dot_general %x, %d, contracting_dims = [1] x [1] : (tensor<8x64xf32>, "
      "tensor<512x64xf32>) -> tensor<8x512xf32>\n"
      "  return %s, %d : tensor<8x512xf32>, tensor<512x64xf32>\n}\n";
  SimReport *r = estimate(decode, "tpu-v5e");
  assert_false(r->training);
  assert_int_equal(r->arg_owners[0], SIM_INPUT);
  assert_int_equal(r->arg_owners[1], SIM_PARAMETERS);
  assert_int_equal(r->arg_owners[2], SIM_CACHES);
  assert_true(r->owners[SIM_CACHES].bytes >= 512 * 64 * 4);
  sim_report_free(r);
  static const char step[] =
      "func.func public @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32> {jax.buffer_donor = "
      "true}, %ok: tensor<i1>) -> tensor<64x64xf32> {\n"
      "  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x64xf32>, "
      "tensor<8x64xf32>) -> tensor<64x64xf32>\n"
      "  %n = stablehlo.subtract %w, %g : tensor<64x64xf32>\n"
      "  %s = stablehlo.select %ok, %n, %w : tensor<i1>, tensor<64x64xf32>\n"
      "  return %s : tensor<64x64xf32>\n}\n";
  r = estimate(step, "tpu-v5e");
  assert_true(r->training);
  assert_int_equal(r->owners[SIM_CACHES].bytes, 0);
  sim_report_free(r);
}

/* Where memory is nearly full, an array that waits for a late reader is computed again: the one that
 * saves most, and only there. */
static void test_again(void **state) {
  (void)state;
  static const char chain[] =
      "func.func public @main(%x: tensor<Nx2048xbf16>, %w: tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16> {\n"
      "  %a = stablehlo.dot %x, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %b = stablehlo.dot %a, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %c = stablehlo.dot %b, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %m = stablehlo.dot %c, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %p = stablehlo.dot %m, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %d = stablehlo.add %p, %b : tensor<Nx2048xbf16>\n"
      "  %q = stablehlo.dot %d, %w : (tensor<Nx2048xbf16>, tensor<2048x2048xbf16>) -> "
      "tensor<Nx2048xbf16>\n"
      "  %e = stablehlo.add %q, %a : tensor<Nx2048xbf16>\n"
      "  return %e : tensor<Nx2048xbf16>\n}\n";
  double time[2], products[2];
  for (int large = 0; large < 2; large++) {
    Buf text = {0};
    for (const char *c = chain; *c; c++)
      if (*c == 'N' && c[1] == 'x') buf_cstr(&text, large ? "384000" : "192000");
      else buf_byte(&text, *c);
    buf_byte(&text, 0);
    SimReport *r = estimate(text.p, "tpu-v2");
    assert_true(r->fits);
    assert_int_equal(r->rematerialized, large);
    time[large] = r->time_s;
    products[large] = 0;
    for (int i = 0; i < r->n_kernels; i++) products[large] += r->kernels[i].count;
    sim_report_free(r);
    buf_free(&text);
  }
  assert_true(products[0] == 6 && products[1] == 7);
  assert_true(time[1] > 2.25 * time[0] && time[1] < 2.45 * time[0]);
}

/* What comes from a barrier waits for all that goes into it, also where that frees nothing. */
static void test_barrier(void **state) {
  (void)state;
  SimReport *r =
      estimate("func.func @main(%x: tensor<1024x1024xf32>, %w: tensor<1024x4096xf32>) -> "
               "(tensor<1024x4096xf32>, tensor<1024x1024xf32>) {\n"
               "  %n = stablehlo.dot %x, %x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
               "tensor<1024x1024xf32>\n"
               "  %b = stablehlo.dot %n, %w : (tensor<1024x1024xf32>, tensor<1024x4096xf32>) -> "
               "tensor<1024x4096xf32>\n"
               "  %0:2 = stablehlo.optimization_barrier %n, %b : tensor<1024x1024xf32>, "
               "tensor<1024x4096xf32>\n"
               "  %c = stablehlo.dot %0#0, %x : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> "
               "tensor<1024x1024xf32>\n"
               "  return %b, %c : tensor<1024x4096xf32>, tensor<1024x1024xf32>\n}\n",
               "tpu-v2");
  const SimKernel *last = &r->kernels[r->n_kernels - 1];
  near(last->flops, 2.0 * 1024 * 1024 * 1024, 0.01);
  sim_report_free(r);
}

/* A stack of f32 that a loop leaves, and only a product reads, is one of bf16. */
static void test_narrow_state(void **state) {
  (void)state;
  static const char loop[] =
      "func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x8xf32>) -> tensor<64x512x8xf32> {\n"
      "  %c0 = stablehlo.constant dense<0> : tensor<i32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<64x512x512xf32>\n"
      "  %0:3 = stablehlo.while(%i = %c0, %v = %x, %s = %z) : tensor<i32>, tensor<512x512xf32>, "
      "tensor<64x512x512xf32>\n"
      "  cond {\n    %n = stablehlo.constant dense<64> : tensor<i32>\n"
      "    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "    stablehlo.return %1 : tensor<i1>\n  } do {\n"
      "    %one = stablehlo.constant dense<1> : tensor<i32>\n"
      "    %zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "    %2 = stablehlo.add %i, %one : tensor<i32>\n"
      "    %3 = stablehlo.sine %v : tensor<512x512xf32>\n"
      "    %4 = stablehlo.reshape %3 : (tensor<512x512xf32>) -> tensor<1x512x512xf32>\n"
      "    %5 = stablehlo.dynamic_update_slice %s, %4, %i, %zero, %zero : "
      "(tensor<64x512x512xf32>, tensor<1x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> "
      "tensor<64x512x512xf32>\n"
      "    stablehlo.return %2, %3, %5 : tensor<i32>, tensor<512x512xf32>, "
      "tensor<64x512x512xf32>\n  }\n"
      "  %6 = stablehlo.dot_general %0#2, %w, contracting_dims = [2] x [0]%s : "
      "(tensor<64x512x512xf32>, tensor<512x8xf32>) -> tensor<64x512x8xf32>\n"
      "  return %6 : tensor<64x512x8xf32>\n}\n";
  double stack = 64.0 * 512 * 512 * 4;
  for (int exact = 0; exact < 2; exact++) { /* six passes need all digits */
    char text[3000];
    const char *at = strstr(loop, "%s :");
    sprintf(text, "%.*s%s%s", (int)(at - loop), loop,
            exact ? ", precision = [HIGHEST, HIGHEST]" : "", at + 2);
    SimReport *r = estimate(text, "tpu-v2");
    near(r->temp_bytes, exact ? stack : stack / 2, 0.1);
    sim_report_free(r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batched_layout), cmocka_unit_test(test_outer_product),
      cmocka_unit_test(test_order),          cmocka_unit_test(test_barrier),
      cmocka_unit_test(test_caches),         cmocka_unit_test(test_examples),
      cmocka_unit_test(test_steps),          cmocka_unit_test(test_again),
      cmocka_unit_test(test_branches),       cmocka_unit_test(test_narrow_table),
      cmocka_unit_test(test_in_place),       cmocka_unit_test(test_lent_results),
      cmocka_unit_test(test_donated_order),  cmocka_unit_test(test_narrow_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
