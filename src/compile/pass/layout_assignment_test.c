/* Programs with channels first: the convolutions have them last afterwards, as many transpositions are left as the chain has
 * ends, and the interpreter answers as before. Sums of small integers are exact. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *args, *result, *body;
  int transposes; /* that are left */
  bool moved;
} Case;

#define NCHW(in, k, out, more)                                                   \
  "dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {" more       \
  "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<" in \
  "xf32>, tensor<" k "xf32>) -> tensor<" out "xf32>\n"
#define PADDED "pad = [[1, 1], [1, 1]]"
#define SCALARS                                                                                   \
  "%z = stablehlo.constant dense<0.0> : tensor<f32> %l = stablehlo.constant dense<0xFF800000> : " \
  "tensor<f32>\n"
#define ARGS "%a: tensor<2x8x6x6xf32>, %b: tensor<8x8x3x3xf32>"
#define IMAGE "2x8x6x6"
#define TWO(first, between, second, after)                                            \
  SCALARS "%c = stablehlo.convolution(%a, %b) " NCHW(IMAGE, "8x8x3x3", IMAGE, PADDED) \
      first between "%d = stablehlo.convolution(" second                              \
                    ", %b) " NCHW(IMAGE, "8x8x3x3", IMAGE, PADDED) after
#define MAX_POOL(x, y, in, out)                                                                \
  y " = \"stablehlo.reduce_window\"(" x ", %l) <{window_dimensions = array<i64: 1, 1, 2, 2>, " \
    "window_strides = array<i64: 1, 1, 2, 2>}> ({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"  \
    "%r = stablehlo.maximum %p, %q : tensor<f32> stablehlo.return %r : tensor<f32>\n}) : "     \
    "(tensor<" in "xf32>, tensor<f32>) -> tensor<" out "xf32>\n"
#define SUM(x, y, in, dims, out)                                                           \
  y " = stablehlo.reduce(" x " init: %z) applies stablehlo.add across dimensions = [" dims \
    "] : (tensor<" in "xf32>, tensor<f32>) -> tensor<" out "xf32>\n"
#define RELU(x, y, t)                                                                       \
  y "0 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<" t "xf32>\n" y \
    " = stablehlo.maximum " x ", " y "0 : tensor<" t "xf32>\n"

static Case cases[] = {
    {"alone", ARGS, IMAGE,
     "%d = stablehlo.convolution(%a, %b) " NCHW(IMAGE, "8x8x3x3", IMAGE, PADDED), 0, false},
    {"two", ARGS, IMAGE, TWO("", "", "%c", ""), 2, true},
    {"bias_relu_pool", ARGS, "2x8",
     TWO("%n = stablehlo.constant dense<[1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0]> : "
         "tensor<8xf32>\n"
         "%m = stablehlo.broadcast_in_dim %n, dims = [1] : (tensor<8xf32>) -> "
         "tensor<2x8x6x6xf32>\n",
         "%e = stablehlo.add %c, %m : tensor<2x8x6x6xf32>\n" RELU("%e", "%f", IMAGE), "%f",
         MAX_POOL("%d", "%g", IMAGE, "2x8x3x3") SUM("%g", "%h", "2x8x3x3", "2, 3", "2x8")),
     1, true},
    {"residual_with_statistics", ARGS, "8",
     TWO(SUM("%c", "%s", IMAGE, "0, 2, 3", "8"),
         "%t = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<8xf32>) -> tensor<2x8x6x6xf32>\n"
         "%e = stablehlo.subtract %c, %t : tensor<2x8x6x6xf32>\n",
         "%e",
         "%f = stablehlo.add %d, %a : tensor<2x8x6x6xf32>\n" SUM("%f", "%g", IMAGE, "0, 2, 3",
                                                                 "8")),
     1, true},
    {"transposed_outside", "%x: tensor<2x6x6x8xf32>, %b: tensor<8x8x3x3xf32>", "2x6x6x8",
     "%a = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x6x6x8xf32>) -> "
     "tensor<2x8x6x6xf32>\n" TWO("", "", "%c",
                                 "%e = stablehlo.transpose %d, dims = [0, 2, 3, 1] : "
                                 "(tensor<2x8x6x6xf32>) -> tensor<2x6x6x8xf32>\n"),
     0, true},
    {"tokens", ARGS, "2x36x8",
     TWO("", "", "%c",
         "%e = stablehlo.reshape %d : (tensor<2x8x6x6xf32>) -> tensor<2x8x36xf32>\n"
         "%f = stablehlo.transpose %e, dims = [0, 2, 1] : (tensor<2x8x36xf32>) -> "
         "tensor<2x36x8xf32>\n"),
     1, true},
    {"flattened", ARGS, "2x288",
     TWO("", "", "%c", "%e = stablehlo.reshape %d : (tensor<2x8x6x6xf32>) -> tensor<2x288xf32>\n"),
     2, true},
    {"moves", ARGS, "2x16x4x6",
     TWO("%p = stablehlo.pad %c, %z, low = [0, 0, 1, 0], high = [0, 0, 0, 2], interior = [0, 0, 0, "
         "0] : (tensor<2x8x6x6xf32>, "
         "tensor<f32>) -> tensor<2x8x7x8xf32>\n"
         "%q = stablehlo.slice %p [0:2, 0:8, 1:7, 2:8] : (tensor<2x8x7x8xf32>) -> "
         "tensor<2x8x6x6xf32>\n",
         "%r = stablehlo.reverse %q, dims = [1, 3] : tensor<2x8x6x6xf32>\n", "%r",
         "%e = stablehlo.concatenate %d, %r, dim = 1 : (tensor<2x8x6x6xf32>, tensor<2x8x6x6xf32>) "
         "-> tensor<2x16x6x6xf32>\n"
         "%f = stablehlo.slice %e [0:2, 0:16, 0:6:2, 0:6] : (tensor<2x16x6x6xf32>) -> "
         "tensor<2x16x3x6xf32>\n"
         "%g = stablehlo.pad %f, %z, low = [0, 0, 0, 0], high = [0, 0, 1, 0], interior = [0, 0, 0, "
         "0] : (tensor<2x16x3x6xf32>, "
         "tensor<f32>) -> tensor<2x16x4x6xf32>\n"),
     2, true},
    {"counts_and_choice", ARGS, IMAGE,
     TWO("%i = stablehlo.iota dim = 1 : tensor<2x8x6x6xf32>\n"
         "%j = stablehlo.compare GT, %c, %i : (tensor<2x8x6x6xf32>, tensor<2x8x6x6xf32>) -> "
         "tensor<2x8x6x6xi1>\n",
         "%e = stablehlo.select %j, %c, %i : tensor<2x8x6x6xi1>, tensor<2x8x6x6xf32>\n", "%e", ""),
     2, true},
    {"gradient_of_pool", ARGS, IMAGE,
     TWO(MAX_POOL("%c", "%g", IMAGE, "2x8x3x3"),
         "%s = \"stablehlo.select_and_scatter\"(%c, %g, %z) <{window_dimensions = array<i64: 1, 1, "
         "2, 2>, window_strides = "
         "array<i64: 1, 1, 2, 2>}> ({\n^bb0(%v: tensor<f32>, %w: tensor<f32>):\n"
         "%x = stablehlo.compare GE, %v, %w : (tensor<f32>, tensor<f32>) -> tensor<i1> "
         "stablehlo.return %x : tensor<i1>\n}, {\n"
         "^bb0(%v: tensor<f32>, %w: tensor<f32>):\n%x = stablehlo.add %v, %w : tensor<f32> "
         "stablehlo.return %x : tensor<f32>\n"
         "}) : (tensor<2x8x6x6xf32>, tensor<2x8x3x3xf32>, tensor<f32>) -> tensor<2x8x6x6xf32>\n",
         "%s", ""),
     2, true},
    {"gradient_of_weights", ARGS, "8x8x3x3",
     TWO("", "", "%c", "") "%w = stablehlo.convolution(%a, %d) dim_numbers = [f, b, 0, 1]x[i, o, "
                           "0, 1]->[f, b, 0, 1], window = {" PADDED
                           "} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
                           "(tensor<2x8x6x6xf32>, tensor<2x8x6x6xf32>) -> "
                           "tensor<8x8x3x3xf32>\n",
     1, true},
    {"in_a_loop", ARGS, IMAGE,
     "%z = stablehlo.constant dense<0> : tensor<i32> %n = stablehlo.constant dense<2> : "
     "tensor<i32>\n"
     "%o = stablehlo.constant dense<1> : tensor<i32>\n"
     "%w:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<2x8x6x6xf32>\n"
     "cond { %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> "
     "stablehlo.return %t : tensor<i1> } do {\n"
     "%c = stablehlo.convolution(%x, %b) " NCHW(
         IMAGE, "8x8x3x3", IMAGE,
         PADDED) "%e = stablehlo.sign %c : tensor<2x8x6x6xf32>\n"
                 "%d = stablehlo.convolution(%e, %b) " NCHW(
                     IMAGE, "8x8x3x3", IMAGE,
                     PADDED) "%s = stablehlo.sign %d : tensor<2x8x6x6xf32>\n"
                             "%j = stablehlo.add %i, %o : tensor<i32> stablehlo.return %j, %s : "
                             "tensor<i32>, tensor<2x8x6x6xf32> }\n"
                             "%f = stablehlo.add %w#1, %a : tensor<2x8x6x6xf32>\n",
     2, true},
    {"one_dimension", "%a: tensor<2x8x9xf32>, %b: tensor<8x8x3xf32>", "2x8x5",
     "%c = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} "
     "{batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<2x8x9xf32>, tensor<8x8x3xf32>) -> "
     "tensor<2x8x7xf32>\n"
     "%d = stablehlo.convolution(%c, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} "
     "{batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<2x8x7xf32>, tensor<8x8x3xf32>) -> "
     "tensor<2x8x5xf32>\n",
     2, true},
    {"few_channels", "%a: tensor<2x4x6x6xf32>, %b: tensor<4x4x3x3xf32>", "2x4x6x6",
     "%c = stablehlo.convolution(%a, %b) " NCHW(
         "2x4x6x6", "4x4x3x3", "2x4x6x6",
         PADDED) "%d = stablehlo.convolution(%c, %b) " NCHW("2x4x6x6", "4x4x3x3", "2x4x6x6",
                                                            PADDED),
     0, false},
    {"one_channel", "%a: tensor<2x1x6x6xf32>, %b: tensor<1x1x3x3xf32>", "2x1x6x6",
     "%d = stablehlo.convolution(%a, %b) " NCHW("2x1x6x6", "1x1x3x3", "2x1x6x6", PADDED), 0, false},
};

/* The value that the body makes last is the program's result. */
static Module *read(const Case *c) {
  const char *last = c->body, *line = c->body;
  for (const char *p = c->body; *p; p++) {
    if (*p == '\n' && p[1]) line = p + 1;
    if (line == p && *p == '%') last = line;
  }
  char *text =
      xasprintf("func.func @main(%s) -> tensor<%sxf32> {\n%sreturn %.2s : tensor<%sxf32>\n}\n",
                c->args, c->result, c->body, last, c->result);
  Module *m = read_program(str_from(text));
  free(text);
  return m;
}

typedef struct Found {
  int transposes, convolutions, last; /* with channels last */
} Found;

static Err *look(Op *op, void *arg) {
  Found *f = arg;
  if (op->kind == OP_CONVOLUTION) {
    f->convolutions++;
    int64_t rank = op->operands[0]->type->rank, feature = op_int(op, "input_feature_dimension", 0),
            batch = op_int(op, "input_batch_dimension", 0);
    f->last += MAX(feature, batch) == rank - 1;
  }
  f->transposes += op->kind == OP_TRANSPOSE;
  return NULL;
}

static void layouts(void **state) {
  const Case *c = *state;
  Module *before = read(c), *after = read(c);
  ok(pass_layout_assignment(after));
  ok(ir_verify(after));
  ok(pass_simplify(after));
  ok(ir_verify(after));
  Found f = {0};
  ok(ir_walk(module_main(after)->body, look, &f));
  assert_int_equal(f.transposes, c->transposes);
  assert_int_equal(f.last, c->moved ? f.convolutions : 0);
  same_on_integers(c->name, before, after);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, layouts, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("layout_assignment", tests, COUNT_OF(tests), NULL, NULL);
}
