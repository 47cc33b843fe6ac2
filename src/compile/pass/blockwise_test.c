/* Scores in loops over blocks: with masks, biases, odd numbers of rows, shared keys and gradients, the interpreter
 * answers the same before and after; and what stays as it is. */
#include "compile/pass/blockwise.h"
#include "compile/pass/pass_test.h"

/* %w of %s; words in capitals stand for types and the number of rows */
static const struct {
  const char *name, *chain;
  bool cut;
} chains[] = {
    {"plain", "  %w = stablehlo.add %s, %zeros : SCORES\n", true},
    {"mask from positions",
     "  %i = stablehlo.iota dim = 2 : tensor<2x3xROWSx70xi32>\n"
     "  %j = stablehlo.iota dim = 3 : tensor<2x3xROWSx70xi32>\n"
     "  %m = stablehlo.compare GE, %i, %j : (tensor<2x3xROWSx70xi32>, tensor<2x3xROWSx70xi32>) -> "
     "MASK\n"
     "  %w = stablehlo.select %m, %s, %low : MASK, SCORES\n",
     true},
    {"mask from positions of 16 bits, which are near only",
     "  %i = stablehlo.iota dim = 2 : tensor<2x3xROWSx70xbf16>\n"
     "  %j = stablehlo.iota dim = 3 : tensor<2x3xROWSx70xbf16>\n"
     "  %f = stablehlo.constant dense<544.0> : tensor<2x3xROWSx70xbf16>\n"
     "  %jf = stablehlo.add %j, %f : tensor<2x3xROWSx70xbf16>\n"
     "  %m = stablehlo.compare GE, %jf, %i : (tensor<2x3xROWSx70xbf16>, tensor<2x3xROWSx70xbf16>) "
     "-> "
     "MASK\n"
     "  %w = stablehlo.select %m, %s, %low : MASK, SCORES\n",
     true},
    {"rows that see nothing",
     "  %m = stablehlo.compare GT, %s, %two : (SCORES, SCORES) -> MASK\n"
     "  %w = stablehlo.select %m, %s, %low : MASK, SCORES\n",
     true},
    {"bias of each row and column, repeated for all heads",
     "  %bs = stablehlo.slice %k [0:1, 0:1, 0:70, 0:1] : (KEYS) -> tensor<1x1x70x1xf32>\n"
     "  %br = stablehlo.reshape %bs : (tensor<1x1x70x1xf32>) -> tensor<70xf32>\n"
     "  %bb = stablehlo.broadcast_in_dim %br, dims = [3] : (tensor<70xf32>) -> SCORES\n"
     "  %w = stablehlo.add %s, %bb : SCORES\n",
     true},
    {"as of other dimensions meanwhile",
     "  %t = stablehlo.transpose %s, dims = [2, 0, 3, 1] : (SCORES) -> tensor<ROWSx2x70x3xf32>\n"
     "  %u = stablehlo.multiply %t, %t : tensor<ROWSx2x70x3xf32>\n"
     "  %w = stablehlo.transpose %u, dims = [1, 3, 0, 2] : (tensor<ROWSx2x70x3xf32>) -> SCORES\n",
     true},
    {"heads joined meanwhile",
     "  %t = stablehlo.reshape %s : (SCORES) -> tensor<6xROWSx70xf32>\n"
     "  %u = stablehlo.tanh %t : tensor<6xROWSx70xf32>\n"
     "  %w = stablehlo.reshape %u : (tensor<6xROWSx70xf32>) -> SCORES\n",
     true},
    {"turned around: not element by element", "  %w = stablehlo.reverse %s, dims = [2] : SCORES\n",
     false},
};

static const char head[] = "func.func @main(%q: QUERIES, %k: KEYS, %g: QUERIES) -> RESULT {\n"
                           "  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
                           "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
                           "  %low = stablehlo.constant dense<0xFF800000> : SCORES\n"
                           "  %two = stablehlo.constant dense<2.0> : SCORES\n"
                           "  %zeros = stablehlo.constant dense<0.0> : SCORES\n"
                           "  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], "
                           "contracting_dims = [3] x [3] : (QUERIES, KEYS) -> SCORES\n";
static const char weights[] =
    "  %x = stablehlo.reduce(%w init: %lowest) applies stablehlo.maximum across dimensions = [3] : "
    "(SCORES, tensor<f32>) -> SUMS\n"
    "  %xs = stablehlo.broadcast_in_dim %x, dims = [0, 1, 2] : (SUMS) -> SCORES\n"
    "  %d = stablehlo.subtract %w, %xs : SCORES\n"
    "  %e = stablehlo.exponential %d : SCORES\n"
    "  %t1 = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : "
    "(SCORES, tensor<f32>) -> SUMS\n"
    "  %ts = stablehlo.broadcast_in_dim %t1, dims = [0, 1, 2] : (SUMS) -> SCORES\n"
    "  %p = stablehlo.divide %e, %ts : SCORES\n"
    "  %y = stablehlo.dot_general %p, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] "
    "x [2] : (SCORES, KEYS) -> QUERIES\n";
static const char forward[] = "  return %y : RESULT\n"
                              "}\n";
/* What the result is compared with depends on the result: a second loop. */
static const char backward[] =
    "  %dy = stablehlo.multiply %y, %g : QUERIES\n"
    "  %dv = stablehlo.dot_general %p, %dy, batching_dims = [0, 1] x [0, 1], contracting_dims = "
    "[2] x [2] : (SCORES, QUERIES) -> KEYS\n"
    "  %dp = stablehlo.dot_general %dy, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = "
    "[3] x [3] : (QUERIES, KEYS) -> SCORES\n"
    "  %a = stablehlo.multiply %dp, %p : SCORES\n"
    "  %b = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [3] : "
    "(SCORES, tensor<f32>) -> SUMS\n"
    "  %bw = stablehlo.broadcast_in_dim %b, dims = [0, 1, 2] : (SUMS) -> SCORES\n"
    "  %c = stablehlo.subtract %dp, %bw : SCORES\n"
    "  %ds = stablehlo.multiply %c, %p : SCORES\n"
    "  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = "
    "[3] x [2] : (SCORES, KEYS) -> QUERIES\n"
    "  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = "
    "[2] x [2] : (SCORES, QUERIES) -> KEYS\n"
    "  %z = stablehlo.concatenate %dq, %dk, %dv, dim = 2 : (QUERIES, KEYS, KEYS) -> RESULT\n"
    "  return %z : RESULT\n"
    "}\n";

/* Types by their names; then ROWS and RESULT. */
static const struct {
  const char *word, *type;
} types[] = {{"QUERIES", "tensor<2x3xROWSx8xf32>"},
             {"KEYS", "tensor<2x3x70x8xf32>"},
             {"SCORES", "tensor<2x3xROWSx70xf32>"},
             {"MASK", "tensor<2x3xROWSx70xi1>"},
             {"SUMS", "tensor<2x3xROWSxf32>"}};

static void append(Buf *b, const char *text, const char *rows, const char *result) {
  while (*text) {
    int k = 0;
    while (k < COUNT_OF(types) && strncmp(text, types[k].word, strlen(types[k].word))) k++;
    if (k < COUNT_OF(types)) {
      append(b, types[k].type, rows, result);
      text += strlen(types[k].word);
    } else if (!strncmp(text, "ROWS", 4)) {
      buf_cstr(b, rows), text += 4;
    } else if (!strncmp(text, "RESULT", 6)) {
      buf_cstr(b, result), text += 6;
    } else {
      buf_byte(b, *text++);
    }
  }
}

static char *program(const char *chain, const char *end, int rows) {
  Buf b = {0};
  char n[16], result[64];
  snprintf(n, sizeof n, "%d", rows);
  snprintf(result, sizeof result, "tensor<2x3x%dx8xf32>", end == forward ? rows : rows + 140);
  append(&b, head, n, result);
  append(&b, chain, n, result);
  append(&b, weights, n, result);
  append(&b, end, n, result);
  char *text = xasprintf("%s", b.p);
  buf_free(&b);
  return text;
}

static Tensor *drawn(const Type *t, int k) {
  Tensor *x = tensor_make(t->dtype, t->rank, t->dims);
  for (int64_t i = 0; i < x->count; i++)
    elem_set_f64(t->dtype, (char *)x->data + i * dtype_bytes(t->dtype), sin((double)(i * 7 + k)));
  return x;
}

/* n loops, and no product outside of them; n = 0: no loop. */
static bool all_in_loops(const Module *m, int n) {
  int loops = 0, products = 0;
  for (const Op *op = module_main(m)->body->first; op; op = op->next) {
    loops += op->kind == OP_WHILE;
    products += op->kind == OP_DOT_GENERAL;
  }
  return loops == n && !(loops && products);
}

static void compare(const char *text, int64_t block, int n_loops) {
  Module *before = read_program(str_from(text)), *after = read_program(str_from(text));
  const Func *f = module_main(before);
  ok(pass_simplify(after));
  ok(scores_in_blocks(after, &(BlockLimits){.least = 1, .recompute = 1, .block = block}));
  ok(ir_verify(after));
  int loops = 0, products = 0;
  for (const Op *op = module_main(after)->body->first; op; op = op->next) {
    loops += op->kind == OP_WHILE;
    products += op->kind == OP_DOT_GENERAL;
  }
  if (loops != n_loops || (loops && products))
    fail_msg("%d loops of\n"
             "%s",
             loops, text);
  Tensor *in[3];
  for (int i = 0; i < f->body->n_args; i++) in[i] = drawn(f->body->args[i]->type, i);
  same_result(text, before, after, f->body->n_args, in, 1e-5);
}

/* Blocks of heads, of rows that divide them and that do not. */
static void same_answer(void **state) {
  (void)state;
  static const int rows[] = {128, 150, 601}, blocks[] = {70 * 150 * 8, 70 * 64 * 4};
  for (int c = 0; c < COUNT_OF(chains); c++)
    for (int k = 0; k < 12; k++) {
      bool back = k & 1;
      char *text = program(chains[c].chain, back ? backward : forward, rows[k / 2 % 3]);
      compare(text, blocks[k / 6], chains[c].cut ? 1 + back : 0);
      free(text);
    }
}

/* Two groups of queries for each head of the keys, in bf16; gradients of keys are summed over both. */
static void shared_keys(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%q: tensor<3x2x150x8xbf16>, %k: tensor<3x70x8xbf16>) -> tensor<3x70x8xbf16> "
      "{\n"
      "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [3] x "
      "[2] : (tensor<3x2x150x8xbf16>, tensor<3x70x8xbf16>) -> tensor<3x2x150x70xf32>\n"
      "  %e = stablehlo.exponential %s : tensor<3x2x150x70xf32>\n"
      "  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : "
      "(tensor<3x2x150x70xf32>, tensor<f32>) -> tensor<3x2x150xf32>\n"
      "  %ts = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<3x2x150xf32>) -> "
      "tensor<3x2x150x70xf32>\n"
      "  %p = stablehlo.divide %e, %ts : tensor<3x2x150x70xf32>\n"
      "  %h = stablehlo.convert %p : (tensor<3x2x150x70xf32>) -> tensor<3x2x150x70xbf16>\n"
      "  %y = stablehlo.dot_general %h, %q, batching_dims = [0] x [0], contracting_dims = [1, 2] x "
      "[1, 2] : (tensor<3x2x150x70xbf16>, tensor<3x2x150x8xbf16>) -> tensor<3x70x8xbf16>\n"
      "  return %y : tensor<3x70x8xbf16>\n"
      "}\n";
  Module *before = read_program(STR(text)), *after = read_program(STR(text));
  ok(scores_in_blocks(after, &(BlockLimits){.least = 1, .recompute = 1, .block = 70 * 64 * 4}));
  ok(ir_verify(after));
  assert_true(all_in_loops(after, 1));
  Tensor *in[3];
  for (int i = 0; i < 2; i++) in[i] = drawn(module_main(before)->body->args[i]->type, i);
  same_result("shared keys", before, after, 2, in, 1e-2);
}

/* The weights are a result, too. */
static void wanted_whole(void **state) {
  (void)state;
  char *text = program(
      chains[0].chain,
      "  %yy = stablehlo.concatenate %p, %p, dim = 3 : (SCORES, SCORES) -> "
      "tensor<2x3xROWSx140xf32>\n"
      "  %y2 = stablehlo.slice %yy [0:2, 0:3, 0:8, 0:8] : (tensor<2x3xROWSx140xf32>) -> "
      "tensor<2x3x8x8xf32>\n"
      "  %r = stablehlo.concatenate %y2, %y2, dim = 2 : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>) "
      "-> tensor<2x3x16x8xf32>\n"
      "  %y3 = stablehlo.concatenate %r, %y, dim = 2 : (tensor<2x3x16x8xf32>, QUERIES) -> "
      "tensor<2x3x166x8xf32>\n"
      "  %y4 = stablehlo.concatenate %y3, %y3, dim = 2 : (tensor<2x3x166x8xf32>, "
      "tensor<2x3x166x8xf32>) -> tensor<2x3x332x8xf32>\n"
      "  %y5 = stablehlo.slice %y4 [0:2, 0:3, 0:290, 0:8] : (tensor<2x3x332x8xf32>) -> RESULT\n"
      "  return %y5 : RESULT\n"
      "}\n",
      150);
  compare(text, 70 * 64 * 4, 0);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_answer), cmocka_unit_test(shared_keys),
                                     cmocka_unit_test(wanted_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
