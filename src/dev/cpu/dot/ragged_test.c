/* Rows in groups: what JAX writes for ragged_dot and its gradients becomes chlo.ragged_dot, and the cpu device and the interpreter answer as
 * the interpreter does with what the program says: empty groups, rows of no group and groups of many pieces included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "compile/pass/pass.h"
#include "dev/cpu/answer_test.h"

#define HEAD(starts)                                                                               \
  "func.func @main(%a: tensor<300x6xf32>) -> RESULT {\n"                                           \
  "  %fixed = stablehlo.constant dense<[3, 3, 200, 290]> : tensor<4xi32>\n"                        \
  "  %few = stablehlo.slice %a [0:1, 0:4] : (tensor<300x6xf32>) -> tensor<1x4xf32>\n"              \
  "  %flat = stablehlo.reshape %few : (tensor<1x4xf32>) -> tensor<4xf32>\n"                        \
  "  %tiny = stablehlo.constant dense<0.001> : tensor<4xf32>\n"                                    \
  "  %near = stablehlo.multiply %flat, %tiny : tensor<4xf32>\n"                                    \
  "  %drawn = stablehlo.convert %near : (tensor<4xf32>) -> tensor<4xi32>\n"                        \
  "  %ends = stablehlo.add %fixed, %drawn : tensor<4xi32>\n"                                       \
  "  %none = stablehlo.constant dense<0> : tensor<1xi32>\n"                                        \
  "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"                                        \
  "  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> "                     \
  "tensor<4x300x6xf32>\n"                                                                          \
  "  %most = stablehlo.slice %ends [0:3] : (tensor<4xi32>) -> tensor<3xi32>\n"                     \
  "  %starts = " starts " : (tensor<1xi32>, tensor<3xi32>) -> tensor<4xi32>\n"                     \
  "  %row = stablehlo.iota dim = 1 : tensor<4x300x6xi32>\n"                                        \
  "  %from = stablehlo.broadcast_in_dim %starts, dims = [0] : (tensor<4xi32>) -> "                 \
  "tensor<4x300x6xi32>\n"                                                                          \
  "  %to = stablehlo.broadcast_in_dim %ends, dims = [0] : (tensor<4xi32>) -> "                     \
  "tensor<4x300x6xi32>\n"                                                                          \
  "  %c = stablehlo.compare LE, %from, %row, SIGNED : (tensor<4x300x6xi32>, tensor<4x300x6xi32>) " \
  "-> tensor<4x300x6xi1>\n"                                                                        \
  "  %d = stablehlo.compare LT, %row, %to, SIGNED : (tensor<4x300x6xi32>, tensor<4x300x6xi32>) "   \
  "-> tensor<4x300x6xi1>\n"                                                                        \
  "  %m = stablehlo.and %c, %d : tensor<4x300x6xi1>\n"                                             \
  "  %all = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<300x6xf32>) -> "                \
  "tensor<4x300x6xf32>\n"                                                                          \
  "  %x = stablehlo.select %m, %all, %zeros : tensor<4x300x6xi1>, tensor<4x300x6xf32>\n"           \
  "  %some = stablehlo.slice %a [0:20, 0:6] : (tensor<300x6xf32>) -> tensor<20x6xf32>\n"           \
  "  %w = stablehlo.reshape %some : (tensor<20x6xf32>) -> MATRICES\n"
#define TAIL "  return %r : RESULT\n}\n"
#define STARTS "stablehlo.concatenate %none, %most, dim = 0"

typedef struct Case {
  const char *name, *text, *matrices, *result;
  int found;
} Case;

static Case cases[] = {
    {"rows",
     HEAD(STARTS) "  %r = stablehlo.dot_general %x, %w, contracting_dims = [2, 0] x [1, 0] : "
                  "(tensor<4x300x6xf32>, MATRICES) -> RESULT\n" TAIL,
     "tensor<4x6x5xf32>", "tensor<300x5xf32>", 1},
    {"rows_by_turned_matrices",
     HEAD(STARTS) "  %r = stablehlo.dot_general %x, %w, contracting_dims = [0, 2] x [0, 2] : "
                  "(tensor<4x300x6xf32>, MATRICES) -> RESULT\n" TAIL,
     "tensor<4x5x6xf32>", "tensor<300x5xf32>", 1},
    {"sums_of_groups",
     HEAD(
         STARTS) "  %r = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims "
                 "= [1] x [1] : (tensor<4x300x6xf32>, tensor<4x300x6xf32>) -> RESULT\n" TAIL,
     "tensor<4x6x5xf32>", "tensor<4x6x6xf32>", 1},
    {"groups_that_overlap",
     HEAD("stablehlo.concatenate %most, %none, dim = 0") "  %r = stablehlo.dot_general %x, %w, "
                                                         "contracting_dims = [2, 0] x [1, 0] : "
                                                         "(tensor<4x300x6xf32>, MATRICES) -> "
                                                         "RESULT\n" TAIL,
     "tensor<4x6x5xf32>", "tensor<300x5xf32>", 0},
};

/* With types for the words in capitals. */
static char *text_of(const Case *c) {
  Buf b = {0};
  for (const char *p = c->text; *p;) {
    bool matrices = !strncmp(p, "MATRICES", 8), result = !strncmp(p, "RESULT", 6);
    if (!matrices && !result) buf_byte(&b, *p++);
    else if (matrices) buf_cstr(&b, c->matrices), p += 8;
    else buf_cstr(&b, c->result), p += 6;
  }
  char *text = xasprintf("%s", b.p);
  buf_free(&b);
  if (!c->found) { /* the operands of concatenate change places */
    char *types = strstr(text, "(tensor<1xi32>, tensor<3xi32>)");
    memcpy(types, "(tensor<3xi32>, tensor<1xi32>)", strlen("(tensor<3xi32>, tensor<1xi32>)"));
  }
  return text;
}

static void ragged(void **state) {
  const Case *c = *state;
  char *text = text_of(c);
  const int64_t dims[] = {300, 6};
  Module *m = NULL, *after = NULL;
  Err *e = stablehlo_read("test.mlir", str_from(text), &m);
  if (!e) e = stablehlo_read("test.mlir", str_from(text), &after);
  if (!e) e = pass_ragged_dot(after);
  if (!e) e = ir_verify(after);
  if (e) fail_msg("%s\n%s", err_text(e), text);
  int found = 0;
  for (const Op *op = module_main(after)->body->first; op; op = op->next)
    found += op->kind == OP_CHLO_RAGGED_DOT;
  assert_int_equal(found, c->found);
  check_made(DT_F32, 2, dims, m, after); /* eighths: sums are exact */
  module_free(m);
  module_free(after);
  free(text);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, ragged, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("ragged", tests, COUNT_OF(tests), NULL, NULL);
}
