/* Columns and pieces: sums of padded ones, arithmetic on ones side by side, slices of what was moved. The
 * pass leaves none of the operations it is there for, and the interpreter answers the same before and
 * after. */
#include "compile/pass/pass_test.h"

typedef struct Case {
  const char *name, *type, *result, *body,
      *gone; /* gone: an operation that is not there afterwards */
} Case;

#define PAD(v, x, low, high, to)                                                                   \
  "%" v " = stablehlo.pad %" x ", %z, low = [0, " low "], high = [0, " high "], interior = [0, 0]" \
  " : (tensor<100x1xf32>, tensor<f32>) -> tensor<100x" to "xf32>\n"
#define C3 "(tensor<100x1xf32>, tensor<100x1xf32>, tensor<100x1xf32>) -> tensor<100x3xf32>\n"
#define SLICES                                                                        \
  "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"                                \
  "%a = stablehlo.slice %x [0:100, 0:1] : (tensor<100x3xf32>) -> tensor<100x1xf32>\n" \
  "%b = stablehlo.slice %x [0:100, 1:2] : (tensor<100x3xf32>) -> tensor<100x1xf32>\n" \
  "%c = stablehlo.slice %x [0:100, 2:3] : (tensor<100x3xf32>) -> tensor<100x1xf32>\n"

#define PLANE(v, from, to)                                                             \
  "%" v " = stablehlo.slice %x [" from ":" to ", 0:64, 0:64] : (tensor<3x64x64xf32>) " \
  "-> tensor<1x64x64xf32>\n"
#define STACK                                                           \
  "(tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>) -> " \
  "tensor<3x64x64xf32>\n"

static const Case cases[] = {
    {"pads", "100x3xf32", "100x3xf32",
     SLICES PAD("p", "c", "0", "2", "3") PAD("q", "a", "1", "1", "3")
         PAD("r", "b", "2", "0", "3") "%s = stablehlo.add %p, %q : tensor<100x3xf32>\n%t = "
                                      "stablehlo.add %r, %s : tensor<100x3xf32>\n"
                                      "return %t : tensor<100x3xf32>",
     "stablehlo.pad"},
    {"pads_with_a_gap_and_more", "100x3xf32", "100x3xf32",
     SLICES PAD("p", "c", "0", "2", "3")
         PAD("r", "b", "2", "0", "3") "%s = stablehlo.add %p, %x : tensor<100x3xf32>\n%t = "
                                      "stablehlo.add %s, %r : tensor<100x3xf32>\n"
                                      "return %t : tensor<100x3xf32>",
     "stablehlo.pad"},
    {"pads_alternating", "100x3xf32", "100x6xf32",
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%y = stablehlo.negate %x : "
     "tensor<100x3xf32>\n"
     "%p = stablehlo.pad %x, %z, low = [0, 0], high = [0, 1], interior = [0, 1] : "
     "(tensor<100x3xf32>, tensor<f32>) -> tensor<100x6xf32>\n"
     "%q = stablehlo.pad %y, %z, low = [0, 1], high = [0, 0], interior = [0, 1] : "
     "(tensor<100x3xf32>, tensor<f32>) -> tensor<100x6xf32>\n"
     "%s = stablehlo.add %p, %q : tensor<100x6xf32>\nreturn %s : tensor<100x6xf32>",
     "stablehlo.pad"},
    {"chain", "100x3xf32", "100x3xf32",
     SLICES "%p = stablehlo.multiply %a, %b : tensor<100x1xf32>\n%q = stablehlo.subtract %c, %a : "
            "tensor<100x1xf32>\n"
            "%j = stablehlo.concatenate %p, %q, %b, dim = 1 : " C3
            "%k = stablehlo.add %j, %x : tensor<100x3xf32>\n%l = stablehlo.multiply %k, %k : "
            "tensor<100x3xf32>\n"
            "return %k : tensor<100x3xf32>",
     NULL},
    {"columns_of_columns", "100x3xf32", "100x1xf32",
     SLICES "%j = stablehlo.concatenate %c, %a, %b, dim = 1 : " C3
            "%k = stablehlo.multiply %j, %x : tensor<100x3xf32>\n"
            "%e = stablehlo.slice %k [0:100, 0:1] : (tensor<100x3xf32>) -> tensor<100x1xf32>\n"
            "%f = stablehlo.slice %k [0:100, 2:3] : (tensor<100x3xf32>) -> tensor<100x1xf32>\n"
            "%g = stablehlo.subtract %e, %f : tensor<100x1xf32>\nreturn %g : tensor<100x1xf32>",
     "stablehlo.concatenate"},
    {"sum_of_columns", "100x3xf32", "100xf32",
     SLICES "%j = stablehlo.concatenate %c, %a, %b, dim = 1 : " C3
            "%k = stablehlo.multiply %j, %x : tensor<100x3xf32>\n"
            "%s = stablehlo.reduce(%k init: %z) applies stablehlo.add across dimensions = [1] : "
            "(tensor<100x3xf32>, tensor<f32>) -> tensor<100xf32>\nreturn %s : tensor<100xf32>",
     "stablehlo.reduce"},
    {"stack", "3x64x64xf32", "64x64xf32", /* one of it is read, too */
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n" PLANE("a", "0", "1") PLANE("b", "1", "2")
         PLANE("c", "2", "3") "%p = stablehlo.multiply %a, %b : tensor<1x64x64xf32>\n"
                              "%i = stablehlo.concatenate %p, %c, %a, dim = 0 : " STACK
                              "%j = stablehlo.subtract %x, %i : tensor<3x64x64xf32>\n"
                              "%e = stablehlo.slice %j [1:2, 0:64, 0:64] : (tensor<3x64x64xf32>) "
                              "-> tensor<1x64x64xf32>\n"
                              "%f = stablehlo.reshape %e : (tensor<1x64x64xf32>) -> "
                              "tensor<64x64xf32>\n"
                              "%s = stablehlo.reduce(%j init: %z) applies stablehlo.add across "
                              "dimensions = [0] : (tensor<3x64x64xf32>, tensor<f32>) -> "
                              "tensor<64x64xf32>\n"
                              "%t = stablehlo.multiply %s, %f : tensor<64x64xf32>\n"
                              "return %t : tensor<64x64xf32>",
     "stablehlo.reduce"},
    {"transposed_pieces", "3x100xf32", "100x2xf32",
     "%a = stablehlo.slice %x [0:1, 0:100] : (tensor<3x100xf32>) -> tensor<1x100xf32>\n"
     "%b = stablehlo.slice %x [2:3, 0:100] : (tensor<3x100xf32>) -> tensor<1x100xf32>\n"
     "%j = stablehlo.concatenate %b, %a, dim = 0 : (tensor<1x100xf32>, tensor<1x100xf32>) -> "
     "tensor<2x100xf32>\n"
     "%t = stablehlo.transpose %j, dims = [1, 0] : (tensor<2x100xf32>) -> tensor<100x2xf32>\n"
     "return %t : tensor<100x2xf32>",
     "stablehlo.transpose"},
    {"row_of_a_transpose", "100x3xf32", "1x50xf32",
     "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<100x3xf32>) -> tensor<3x100xf32>\n"
     "%a = stablehlo.slice %t [1:2, 1:100:2] : (tensor<3x100xf32>) -> tensor<1x50xf32>\n"
     "return %a : tensor<1x50xf32>",
     "stablehlo.transpose"},
    {"slice_of_a_slice", "100x3xf32", "9x1xf32",
     "%a = stablehlo.slice %x [3:98:3, 1:3] : (tensor<100x3xf32>) -> tensor<32x2xf32>\n"
     "%b = stablehlo.slice %a [5:31:3, 1:2] : (tensor<32x2xf32>) -> tensor<9x1xf32>\n"
     "return %b : tensor<9x1xf32>",
     NULL},
    {"slice_of_a_broadcast", "100x3xf32", "4x100x2xf32",
     "%a = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<100x3xf32>) -> "
     "tensor<7x100x3xf32>\n"
     "%b = stablehlo.slice %a [0:7:2, 0:100, 1:3] : (tensor<7x100x3xf32>) -> tensor<4x100x2xf32>\n"
     "return %b : tensor<4x100x2xf32>",
     NULL},
};

static Tensor *numbers(const Type *t) {
  Tensor *x = tensor_make(DT_F32, t->rank, t->dims);
  static const float odd[] = {0, -0.0f, INFINITY, NAN, 1, -2};
  for (int64_t i = 0; i < x->count; i++)
    ((float *)x->data)[i] = i % 7 == 3 ? odd[i / 7 % 6] : (float)(i * 37 % 101) / 8 - 6;
  return x;
}

static bool has(const Region *r, const char *name) {
  for (const Op *op = r->first; op; op = op->next)
    if (str_is(op_full_name(op), name)) return true;
  return false;
}

static void columns_and_pieces(void **unused) {
  (void)unused;
  for (int i = 0; i < COUNT_OF(cases); i++) {
    const Case *c = &cases[i];
    Buf b = {0};
    buf_printf(&b, "func.func @main(%%x: tensor<%s>) -> tensor<%s> {\n%s\n}", c->type, c->result,
               c->body);
    Module *before = read_program((Str){b.p, b.n}), *after = read_program((Str){b.p, b.n});
    ok(pass_simplify(after));
    ok(pass_pads(after));
    ok(pass_sink_concat(after));
    ok(ir_verify(after));
    if (c->gone && has(module_main(after)->body, c->gone))
      fail_msg("%s: %s is left", c->name, c->gone);
    Tensor *x = numbers(module_main(before)->body->args[0]->type);
    same_result(c->name, before, after, 1, &x, 1e-6);
    buf_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(columns_and_pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
