/* What frameworks do on GPUs beyond the program: fused attention, exchanges under computing. */
#include "sim/estimate_test.h"

#define HEADS "tensor<16x2048x64xbf16>"
#define SCORES "tensor<16x2048x2048xbf16>"
#define WIDE "tensor<16x2048x2048xf32>"
#define ROWS "tensor<16x2048xf32>"
#define REDUCE(out, in, init, op)                                                              \
  out " = stablehlo.reduce(" in " init: " init ") applies stablehlo." op " across dimensions " \
      "= [2] : (" WIDE ", tensor<f32>) -> " ROWS "\n"
#define SPREAD(out, in) \
  out " = stablehlo.broadcast_in_dim " in ", dims = [0, 1] : (" ROWS ") -> " WIDE "\n"
/* softmax(q k) v, and the gradients of q and k by its weighted square */
#define FORWARD                                                                                  \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                           \
  "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"                                  \
  "%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] "  \
  ": (" HEADS ", " HEADS ") -> " SCORES "\n"                                                     \
  "%w = stablehlo.convert %s : (" SCORES ") -> " WIDE "\n" REDUCE("%m", "%w", "%low", "maximum") \
      SPREAD("%mb",                                                                              \
             "%m") "%d = stablehlo.subtract %w, %mb : " WIDE "\n"                                \
                   "%e = stablehlo.exponential %d : " WIDE "\n" REDUCE("%l", "%e", "%z", "add")  \
                       SPREAD("%lb", "%l") "%pw = stablehlo.divide %e, %lb : " WIDE "\n"         \
                                           "%p = stablehlo.convert %pw : (" WIDE ") -> " SCORES  \
                                           "\n"                                                  \
                                           "%o = stablehlo.dot_general %p, %v, batching_dims = " \
                                           "[0] x [0], contracting_dims = [2] x [1] "            \
                                           ": (" SCORES ", " HEADS ") -> " HEADS "\n"
#define BACKWARD                                                                                 \
  "%h = stablehlo.multiply %o, %go : " HEADS "\n"                                                \
  "%dp = stablehlo.dot_general %h, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] " \
  ": (" HEADS ", " HEADS ") -> " SCORES "\n"                                                     \
  "%dw = stablehlo.convert %dp : (" SCORES ") -> " WIDE "\n"                                     \
  "%pd = stablehlo.multiply %pw, %dw : " WIDE "\n" REDUCE("%t", "%pd", "%z", "add")              \
      SPREAD("%tb", "%t") "%dd = stablehlo.subtract %dw, %tb : " WIDE "\n"                       \
                          "%dx = stablehlo.multiply %pw, %dd : " WIDE "\n"                       \
                          "%ds = stablehlo.convert %dx : (" WIDE ") -> " SCORES "\n"             \
                          "%gq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], "     \
                          "contracting_dims = [2] x [1] "                                        \
                          ": (" SCORES ", " HEADS ") -> " HEADS "\n"                             \
                          "%gk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], "     \
                          "contracting_dims = [1] x [1] "                                        \
                          ": (" SCORES ", " HEADS ") -> " HEADS "\n"
#define ARGS "%q: " HEADS ", %k: " HEADS ", %v: " HEADS ", %go: " HEADS
static const char forward[] =
    "func.func @main(" ARGS ") -> " HEADS " {\n" FORWARD "return %o : " HEADS " }";
static const char training[] =
    "func.func @main(" ARGS ") -> (" HEADS ", " HEADS ", " HEADS ") {\n" FORWARD BACKWARD
    "return %o, %gq, %gk : " HEADS ", " HEADS ", " HEADS " }";
static const char returned[] = "func.func @main(" ARGS ") -> (" HEADS ", " SCORES ") {\n" FORWARD
                               "return %o, %p : " HEADS ", " SCORES " }";

/* Scores of 16 x 2048 x 2048: in memory when products and softmax stand apart, nowhere when one
 * kernel computes them; the work that counts is the program's either way. */
static void test_attention(void **state) {
  (void)state;
  const double scores = 16.0 * 2048 * 2048 * 2;
  SimReport *plain = estimate(training, "A100-80GB");
  SimReport *fused = estimate_as(training, "A100-80GB", &(SimOpts){.fused_attention = true});
  assert_int_equal(plain->attentions, 1);
  assert_true(plain->temp_bytes >= scores);
  assert_int_equal(fused->attentions, 0);
  assert_true(fused->temp_bytes < scores);
  assert_int_equal(kernels_of(fused, NULL), 3); /* forward, what follows, backward */
  assert_true(fused->time_s < 0.5 * plain->time_s);
  double products = 5 * 2.0 * 16 * 2048 * 2048 * 64;
  assert_true(fused->flops > products && fused->flops < 1.2 * products);
  sim_report_free(plain);
  sim_report_free(fused);
  /* tpu7x loops over queries where nothing goes backwards */
  SimReport *one = estimate(forward, "tpu7x");
  SimReport *both = estimate(training, "tpu7x");
  SimReport *older = estimate(forward, "tpu-v5e");
  assert_true(one->temp_bytes < scores);
  assert_true(one->peak_bytes > scores / 8); /* and holds some of them */
  assert_true(both->temp_bytes >= scores);
  assert_true(older->temp_bytes >= scores);
  sim_report_free(one);
  sim_report_free(both);
  sim_report_free(older);
}

/* Left as it is: on chips without such kernels, and when the scores are wanted outside. */
static void test_attention_apart(void **state) {
  (void)state;
  const struct {
    const char *text, *chip;
  } cases[] = {{forward, "V100"}, {forward, "tpu-v3"}, {returned, "A100-80GB"}};
  for (int i = 0; i < 3; i++) {
    SimReport *a = estimate(cases[i].text, cases[i].chip);
    SimReport *b = estimate_as(cases[i].text, cases[i].chip, &(SimOpts){.fused_attention = true});
    assert_int_equal(a->attentions, 0);
    assert_true(a->time_s == b->time_s && a->temp_bytes == b->temp_bytes);
    sim_report_free(a);
    sim_report_free(b);
  }
}

/* The rows of a softmax are held by kernels that need no sums of others where XLA writes them through Triton;
 * the scores are stored as the product rounds them. Those kernels compute much again: operation by operation a
 * framework's own are faster, as on an H100 (481 us for the backward one of GPT-2's, whose arrays take 300). */
static void test_rows(void **state) {
  (void)state;
  SimReport *xla = estimate(training, "A100-80GB");
  SimReport *eager = estimate_as(training, "A100-80GB", &(SimOpts){.eager = true});
  SimReport *older = estimate(training, "V100");
  assert_true(xla->time_s < 1.3 * eager->time_s);
  assert_true(xla->n_kernels < older->n_kernels);
  const double scores = 16.0 * 2048 * 2048 * 2;
  double most = 0;
  for (int i = 0; i < xla->n_kernels; i++)
    most = fmax(most, xla->kernels[i].bytes + xla->kernels[i].cached);
  assert_true(most < 3.1 * scores); /* no scores of 32 bits */
  sim_report_free(xla);
  sim_report_free(eager);
  sim_report_free(older);
}

/* XLA makes random bytes of words, four times their size, and puts them together afterwards; a framework's
 * kernel writes them. Of 24 such in BERT-large's fine-tuning on an H100 the two kernels take 115 us. */
static void test_random(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%s: tensor<2xui64>) -> tensor<16x16x384x384xui8> {\n"
      "%t, %b = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> "
      "(tensor<2xui64>, tensor<16x16x384x384xui8>)\n return %b : tensor<16x16x384x384xui8> }";
  SimReport *xla = estimate(text, "H100-SXM");
  SimReport *eager = estimate_as(text, "H100-SXM", &(SimOpts){.eager = true});
  double words = 4.0 * 16 * 16 * 384 * 384;
  assert_true(xla->temp_bytes >= words && eager->temp_bytes < words);
  assert_true(xla->time_s > 100e-6 && xla->time_s < 140e-6);
  assert_true(eager->time_s < xla->time_s / 2);
  sim_report_free(xla);
  sim_report_free(eager);
}

/* A matrix times a vector takes what reading the matrix does, with and without matrix units. */
static void test_vector(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<1x8192xf32>, %w: tensor<8192x8192xf32>) -> tensor<1x8192xf32> {\n"
      "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x8192xf32>, "
      "tensor<8192x8192xf32>) -> tensor<1x8192xf32>\n return %y : tensor<1x8192xf32> }";
  const char *chips[] = {"K80", "P100", "V100", "T4", "A100", "H100-SXM"};
  for (int i = 0; i < 6; i++) {
    SimReport *r = estimate(text, chips[i]);
    double read = 8192.0 * 8192 * 4 / r->chip->hbm_bandwidth;
    assert_true(r->time_s > read && r->time_s < 1.6 * read);
    sim_report_free(r);
  }
}

/* Two results of one array are one kernel in long programs as in short ones. */
static void test_long(void **state) {
  (void)state;
  const int arrays = 3500;
  const char *t = "tensor<4096xf32>";
  Buf text = {0};
  for (int part = 0; part < 4; part++) {
    buf_cstr(&text, part == 0   ? "func.func @main("
                    : part == 1 ? ") -> ("
                    : part == 2 ? ") {\n"
                                : "return ");
    for (int i = 0; i < arrays; i++) {
      const char *sep = i ? ", " : "";
      if (part == 0) buf_printf(&text, "%s%%x%d: %s", sep, i, t);
      if (part == 1) buf_printf(&text, "%s%s, %s", sep, t, t);
      if (part == 2)
        buf_printf(&text, "%%a%d = stablehlo.sine %%x%d : %s\n%%b%d = stablehlo.tanh %%a%d : %s\n",
                   i, i, t, i, i, t);
      if (part == 3) buf_printf(&text, "%s%%a%d, %%b%d", sep, i, i);
    }
  }
  buf_cstr(&text, " : ");
  for (int i = 0; i < 2 * arrays; i++) buf_printf(&text, "%s%s", i ? ", " : "", t);
  buf_cstr(&text, " }");
  SimReport *r = estimate(text.p, "A100");
  assert_int_equal(kernels_of(r, NULL), arrays);
  sim_report_free(r);
  buf_free(&text);
}

#define MATRIX "tensor<4096x4096xbf16>"
#define DOT(out, a, b)                                                                             \
  out " = stablehlo.dot_general " a ", " b ", contracting_dims = [1] x [0] : (" MATRIX ", " MATRIX \
      ") -> " MATRIX "\n"
#define SUM(out, in)                                                                               \
  out " = \"stablehlo.all_reduce\"(" in ") ({^bb0(%a: tensor<bf16>, %b: tensor<bf16>):\n"          \
      "%c = stablehlo.add %a, %b : tensor<bf16>\n stablehlo.return %c : tensor<bf16>})"            \
      " {replica_groups = dense<[[0,1,2,3,4,5,6,7]]> : tensor<1x8xi64>} : (" MATRIX ") -> " MATRIX \
      "\n"

/* An exchange beside products that do not wait for it costs no time; before one that does, all. */
static void test_overlap(void **state) {
  (void)state;
  static const char beside[] =
      "func.func @main(%x: " MATRIX ", %y: " MATRIX ") -> (" MATRIX ", " MATRIX
      ") {\n" SUM("%s", "%x") DOT("%1", "%y", "%y") DOT("%2", "%1", "%y")
          DOT("%3", "%2", "%y") "return %s, %3 : " MATRIX ", " MATRIX " }";
  static const char before[] =
      "func.func @main(%x: " MATRIX ", %y: " MATRIX ") -> (" MATRIX ", " MATRIX
      ") {\n" SUM("%s", "%x") DOT("%1", "%s", "%y") DOT("%2", "%1", "%y")
          DOT("%3", "%2", "%y") "return %s, %3 : " MATRIX ", " MATRIX " }";
  const char *chips[] = {"H100-SXM", "tpu-v5p"};
  for (int i = 0; i < 2; i++) {
    SimReport *a = estimate_as(beside, chips[i], &(SimOpts){.devices = 8});
    SimReport *b = estimate_as(before, chips[i], &(SimOpts){.devices = 8});
    assert_true(a->network_s > 0 && a->network_exposed_s < 1e-12);
    assert_true(b->network_s > 0 && b->network_exposed_s > 0.999 * b->network_s);
    double difference = b->time_s - a->time_s - b->network_s;
    assert_true(difference < 0.02 * b->time_s && difference > -0.02 * b->time_s);
    sim_report_free(a);
    sim_report_free(b);
  }
}

#define IMAGES(type) "tensor<64x56x56x64x" type ">"
#define CONV(type, weights, extra)                                      \
  "func.func @main(%x: " IMAGES(type) ", %w: " weights ") -> " IMAGES(  \
      type) " {\n%y = stablehlo.convolution(%x, %w) dim_numbers = "     \
            "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {" extra \
            " : (" IMAGES(type) ", " weights                            \
                                ") -> " IMAGES(type) "\nreturn %y : " IMAGES(type) " }"
#define SAME3 "pad = [[1, 1], [1, 1]]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64}"
#define SAME5 "pad = [[2, 2], [2, 2]]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64}"
#define GROUPS8 \
  "pad = [[1, 1], [1, 1]]} {feature_group_count = 8 : i64, batch_group_count = 1 : i64}"

static double convolution_s(const char *text, const char *chip, double *bytes) {
  SimReport *r = estimate(text, chip);
  double s = 0;
  for (int i = 0; i < r->n_kernels; i++)
    if (!strcmp(r->kernels[i].op, "convolution")) {
      s = r->kernels[i].time_s;
      *bytes = r->kernels[i].bytes + r->kernels[i].cached;
    }
  sim_report_free(r);
  return s;
}

/* Convolutions: f32 operands are turned for matrix units before Hopper and not on it; 3x3 windows
 * need less arithmetic than their products on vector units; groups of few features take as long as
 * all features together. */
static void test_convolutions(void **state) {
  (void)state;
  static const char three[] = CONV("f32", "tensor<3x3x64x64xf32>", SAME3),
                    five[] = CONV("f32", "tensor<5x5x64x64xf32>", SAME5),
                    half[] = CONV("f16", "tensor<3x3x64x64xf16>", SAME3),
                    groups[] = CONV("f16", "tensor<3x3x8x64xf16>", GROUPS8);
  double once = (2.0 * 64 * 56 * 56 * 64 + 9.0 * 64 * 64) * 4, a, b;
  convolution_s(three, "A100-80GB", &a);
  convolution_s(three, "H100-SXM", &b);
  assert_true(a > 2.99 * once && a < 3.01 * once);
  assert_true(b > 0.99 * once && b < 1.01 * once);
  convolution_s(half, "A100-80GB", &a);
  assert_true(a < 0.51 * once);
  double ratio = convolution_s(five, "V100", &a) / convolution_s(three, "V100", &a);
  assert_true(ratio > 4 && ratio < 25.0 / 9 * 2.25);
  assert_true(convolution_s(groups, "A100-80GB", &a) > 0.9 * convolution_s(half, "A100-80GB", &b));
}

#define PLANE "tensor<4096x1024xf32>"
#define LINES "tensor<4096xf32>"
#define BOTH "func.func @main(%x: " PLANE ", %y: " PLANE ") -> " PLANE " {\n"
#define OVER(op, out, in, init)                                                                \
  out " = stablehlo.reduce(" in " init: " init ") applies stablehlo." op " across dimensions " \
      "= [1] : (" PLANE ", tensor<f32>) -> " LINES "\n"
#define BACK(out, in) \
  out " = stablehlo.broadcast_in_dim " in ", dims = [0] : (" LINES ") -> " PLANE "\n"

#define STACKS "%s: tensor<8x4096xf32>, %t: tensor<8x4096xf32>, %x: tensor<1x4096xf32>"
#define STATE "tensor<i32>, tensor<8x4096xf32>, tensor<8x4096xf32>"
static void test_stacks(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(" STACKS ") -> (tensor<8x4096xf32>, tensor<8x4096xf32>) {\n"
      "%z = stablehlo.constant dense<0> : tensor<i32>\n"
      "%e = stablehlo.constant dense<8> : tensor<i32>\n"
      "%o = stablehlo.constant dense<1> : tensor<i32>\n"
      "%w:3 = stablehlo.while(%i = %z, %p = %s, %q = %t) : " STATE "\n cond {\n"
      "%c = stablehlo.compare LT, %i, %e : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %c : tensor<i1>\n } do {\n"
      "%y = stablehlo.tanh %x : tensor<1x4096xf32>\n"
      "%a = stablehlo.dynamic_update_slice %p, %x, %i, %z : (tensor<8x4096xf32>, "
      "tensor<1x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4096xf32>\n"
      "%b = stablehlo.dynamic_update_slice %q, %y, %i, %z : (tensor<8x4096xf32>, "
      "tensor<1x4096xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4096xf32>\n"
      "%n = stablehlo.add %i, %o : tensor<i32>\nstablehlo.return %n, %a, %b : " STATE "\n }\n"
      "return %w#1, %w#2 : tensor<8x4096xf32>, tensor<8x4096xf32> }";
  SimReport *r = estimate(text, "H100-SXM");
  int counters = 0, updates = 0;
  for (int i = 0; i < r->n_kernels; i++) {
    if (r->kernels[i].count < 8) continue;
    if (r->kernels[i].bytes + r->kernels[i].cached < 4096) counters++;
    else updates++;
  }
  assert_int_equal(counters, 1);
  assert_int_equal(updates, 2);
  sim_report_free(r);
}

/* One operation at a time: what meets in a sum is there before it, GELU and softmax are one kernel
 * all the same, an update is one too, and the host issues each. */
static void test_eager(void **state) {
  (void)state;
  static const char residual[] =
      BOTH "%a = stablehlo.tanh %x : " PLANE "\n%b = stablehlo.exponential %y : " PLANE
           "\n%s = stablehlo.add %a, %b : " PLANE "\n%t = stablehlo.logistic %s : " PLANE
           "\nreturn %t : " PLANE " }";
  static const char gate[] =
      BOTH "%a = stablehlo.logistic %x : " PLANE "\n%b = stablehlo.multiply %a, %x : " PLANE
           "\n%c = stablehlo.multiply %b, %y : " PLANE "\nreturn %c : " PLANE " }";
  static const char softmax[] =
      BOTH "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
           "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n" OVER("maximum", "%m", "%x",
                                                                              "%low")
               BACK("%n", "%m") "%d = stablehlo.subtract %x, %n : " PLANE
                                "\n%e = stablehlo.exponential %d : " PLANE
                                "\n" OVER("add", "%s", "%e", "%z")
                                    BACK("%u", "%s") "%p = stablehlo.divide %e, %u : " PLANE
                                                     "\nreturn %p : " PLANE " }";
  static const char update[] =
      "func.func @main(%w: " PLANE " {tf.aliasing_output = 0 : i32}, %v: " PLANE
      " {tf.aliasing_output = 1 : i32}, %g: " PLANE ") -> (" PLANE ", " PLANE ") {\n"
      "%h = stablehlo.constant dense<0.9> : " PLANE "\n%a = stablehlo.multiply %v, %h : " PLANE
      "\n%n = stablehlo.add %a, %g : " PLANE "\n%s = stablehlo.subtract %w, %n : " PLANE
      "\nreturn %s, %n : " PLANE ", " PLANE " }";
  static const char mask[] =
      "func.func @main(%x: tensor<64x64x1024xf32>, %m: tensor<64x1024xf32>) -> "
      "tensor<64x64x1024xf32> {\n%a = stablehlo.exponential %x : tensor<64x64x1024xf32>\n"
      "%b = stablehlo.broadcast_in_dim %m, dims = [0, 2] : (tensor<64x1024xf32>) -> "
      "tensor<64x64x1024xf32>\n%s = stablehlo.add %a, %b : tensor<64x64x1024xf32>\n"
      "%t = stablehlo.tanh %s : tensor<64x64x1024xf32>\n"
      "return %t : tensor<64x64x1024xf32> }";
  const struct {
    const char *text;
    int compiled, eager;
    double arrays; /* read and written by the latter */
  } cases[] = {
      {residual, 1, 4, 9}, {gate, 1, 1, 3}, {softmax, 0, 1, 2}, {update, 1, 1, 5}, {mask, 1, 3, 6}};
  const double array = 4096.0 * 1024 * 4;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    SimReport *a = estimate(cases[i].text, "A100-80GB");
    SimReport *b = estimate_as(cases[i].text, "A100-80GB", &(SimOpts){.eager = true});
    if (cases[i].compiled) assert_int_equal(kernels_of(a, NULL), cases[i].compiled);
    assert_false(a->eager || !b->eager || a->host_s > 0);
    assert_int_equal(kernels_of(b, NULL), cases[i].eager);
    assert_true(b->model_bytes >= cases[i].arrays * array);
    assert_true(b->model_bytes < (cases[i].arrays + 0.02) * array);
    sim_report_free(a);
    sim_report_free(b);
  }
  /* a hundred small operations: the host is what takes the time */
  Buf text = {0};
  buf_cstr(&text, "func.func @main(%v0: tensor<2048xf32>, %w: tensor<2048xf32>) -> "
                  "tensor<2048xf32> {\n");
  for (int i = 1; i <= 100; i++)
    buf_printf(&text, "%%v%d = stablehlo.%s %%v%d, %%w : tensor<2048xf32>\n", i,
               i % 2 ? "add" : "subtract", i - 1);
  buf_cstr(&text, "return %v100 : tensor<2048xf32> }");
  SimReport *r = estimate_as(text.p, "H100-SXM", &(SimOpts){.eager = true});
  assert_int_equal(kernels_of(r, NULL), 100);
  assert_true(r->time_s > 100 * 5e-6 && r->time_s < 103 * 5e-6 && r->host_s > 0);
  sim_report_free(r);
  buf_free(&text);
}

/* Layers in a loop, and a loop back: exp(h) and tanh(h) are kept as the program says when compiled,
 * as h alone where operations run one at a time; what a product reads is kept as it is. */
#define ONE "tensor<1024x1024xf32>"
#define ROUND "tensor<1x1024x1024xf32>"
#define ROUNDS "tensor<8x1024x1024xf32>"
#define PUT(out, stack, x)                                                                    \
  "%r" out " = stablehlo.reshape %" x " : (" ONE ") -> " ROUND "\n%" out                      \
  " = stablehlo.dynamic_update_slice %" stack ", %r" out ", %i, %z, %z : (" ROUNDS ", " ROUND \
  ", tensor<i32>, tensor<i32>, tensor<i32>) -> " ROUNDS "\n"
#define TAKE(out, stack)                                                                           \
  "%s" out " = stablehlo.dynamic_slice %" stack ", %j, %z, %z, sizes = [1, 1024, 1024] : (" ROUNDS \
  ", tensor<i32>, tensor<i32>, tensor<i32>) -> " ROUND "\n%" out " = stablehlo.reshape %s" out     \
  " : (" ROUND ") -> " ONE "\n"
#define TIMES(out, x, y)                                                                           \
  "%" out " = stablehlo.dot_general %" x ", %" y ", contracting_dims = [1] x [0] : (" ONE ", " ONE \
  ") -> " ONE "\n"
#define LOOPS(read)                                                                                \
  "func.func @main(%x: " ONE ", %w: " ONE ") -> " ONE " {\n"                                       \
  "%z = stablehlo.constant dense<0> : tensor<i32>\n%o = stablehlo.constant dense<1> : "            \
  "tensor<i32>\n%n = stablehlo.constant dense<8> : tensor<i32>\n%l = stablehlo.constant "          \
  "dense<7> : tensor<i32>\n%e = stablehlo.constant dense<0.0> : " ROUNDS                           \
  "\n%a:4 = stablehlo.while(%i = %z, %c = %x, %p = %e, %q = %e) : tensor<i32>, " ONE ", " ROUNDS   \
  ", " ROUNDS                                                                                      \
  "\ncond { %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"        \
  "stablehlo.return %t : tensor<i1> } do {\n" TIMES(                                               \
      "h", "c",                                                                                    \
      "w") "%f = stablehlo.exponential %h : " ONE "\n%g = stablehlo.tanh %h : " ONE                \
           "\n" read PUT("u", "p", "f")                                                            \
               PUT("v", "q",                                                                       \
                   "g") "%k = stablehlo.add %i, %o : tensor<i32>\nstablehlo.return %k, %d, %u, "   \
                        "%v : tensor<i32>, " ONE ", " ROUNDS ", " ROUNDS " }\n"                    \
                        "%b:4 = stablehlo.while(%i = %z, %c = %a#1, %p = %a#2, %q = %a#3) : "      \
                        "tensor<i32>, " ONE ", " ROUNDS ", " ROUNDS                                \
                        "\ncond { %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) " \
                        "-> tensor<i1>\n"                                                          \
                        "stablehlo.return %t : tensor<i1> } do {\n%j = stablehlo.subtract %l, %i " \
                        ": tensor<i32>\n" TAKE("f", "p")                                           \
                            TAKE("g", "q") "%m = stablehlo.multiply %c, %f : " ONE                 \
                                           "\n%d = stablehlo.add %m, %g : " ONE                    \
                                           "\n%k = stablehlo.add %i, %o : tensor<i32>\n"           \
                                           "stablehlo.return %k, %d, %p, %q : tensor<i32>, " ONE   \
                                           ", " ROUNDS ", " ROUNDS " }\n"                          \
                                           "return %b#1 : " ONE " }"

static void test_kept(void **state) {
  (void)state;
  static const char saved[] = LOOPS(TIMES("d", "h", "w")), operand[] = LOOPS(TIMES("d", "f", "w"));
  const double stack = 8 * 1024 * 1024 * 4.0;
  for (int i = 0; i < 2; i++) {
    const char *text = i ? operand : saved;
    SimReport *a = estimate(text, "A100-80GB");
    SimReport *b = estimate_as(text, "A100-80GB", &(SimOpts){.eager = true});
    assert_true(a->temp_bytes > 2 * stack && a->temp_bytes < 3 * stack);
    if (i) assert_true(b->temp_bytes > 2 * stack);
    else assert_true(b->temp_bytes > stack && b->temp_bytes < 1.7 * stack);
    assert_true(b->flops >= a->flops);
    sim_report_free(a);
    sim_report_free(b);
  }
}

#define PRODUCT(type)                                                                     \
  "func.func @main(%x: tensor<8192x8192x" type ">, %y: tensor<8192x8192x" type ">) -> "   \
  "tensor<8192x8192x" type "> {\n%r = stablehlo.dot_general %x, %y, contracting_dims = "  \
  "[1] x [0] : (tensor<8192x8192x" type ">, tensor<8192x8192x" type ">) -> tensor<8192x8" \
  "192x" type ">\nreturn %r : tensor<8192x8192x" type "> }"
#define ADD(shape)                                                       \
  "func.func @main(%x: tensor<" shape ">, %y: tensor<" shape ">) -> "    \
  "tensor<" shape "> {\n%r = stablehlo.add %x, %y : tensor<" shape ">\n" \
  "return %r : tensor<" shape "> }"

/* Small kernels leave an H100 at 130 W, large products take all that the board may. */
static void test_power(void **state) {
  (void)state;
  static const struct {
    const char *text;
    double low, high;
  } cases[] = {
      {ADD("100xf32"), 120, 140}, {ADD("268435456xf32"), 450, 650}, {PRODUCT("bf16"), 690, 700}};
  for (int i = 0; i < 3; i++) {
    SimReport *r = estimate(cases[i].text, "H100-SXM");
    double watts = r->energy_j / r->time_s;
    if (!(watts >= cases[i].low && watts <= cases[i].high + 1e-6)) fail_msg("%d: %g W", i, watts);
    sim_report_free(r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_eager),
                                     cmocka_unit_test(test_power),
                                     cmocka_unit_test(test_stacks),
                                     cmocka_unit_test(test_convolutions),
                                     cmocka_unit_test(test_kept),
                                     cmocka_unit_test(test_attention),
                                     cmocka_unit_test(test_attention_apart),
                                     cmocka_unit_test(test_rows),
                                     cmocka_unit_test(test_random),
                                     cmocka_unit_test(test_vector),
                                     cmocka_unit_test(test_long),
                                     cmocka_unit_test(test_overlap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
