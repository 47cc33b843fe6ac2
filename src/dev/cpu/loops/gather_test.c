/* Gathers inside loops: elements, rows, columns, windows and batches, at indices computed in the same
 * loop, inside and outside the operand, against the interpreter, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dev/cpu/answer_test.h"
#include "dev/cpu/loops/loops.h"

/* T: the type of what is gathered, I: of the indices; {..} to be put in. The argument is 20x37. */
static const struct {
  const char *name, *text;
} programs[] = {
    {"elements", "%f = stablehlo.reshape %x : (tensor<20x37x@T>) -> tensor<740x@T>\n"
                 "%c = stablehlo.convert %f : (tensor<740x@T>) -> tensor<740x@I>\n"
                 "%n = stablehlo.iota dim = 0 : tensor<740x@I>\n"
                 "%s = stablehlo.add %c, %n : tensor<740x@I>\n"
                 "%g = \"stablehlo.gather\"(%f, %s) <{dimension_numbers = #stablehlo.gather<"
                 "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
                 "slice_sizes = array<i64: 1>}> : (tensor<740x@T>, tensor<740x@I>) -> "
                 "tensor<740x@T>\n"
                 "%r = stablehlo.add %g, %f : tensor<740x@T>\nreturn %r : tensor<740x@T>"},
    /* rows of lanes, some of which begin before the operand or end behind it */
    {"frames",
     "%f = stablehlo.reshape %x : (tensor<20x37x@T>) -> tensor<740x@T>\n"
     "%y = stablehlo.slice %x [0:20, 3:4] : (tensor<20x37x@T>) -> tensor<20x1x@T>\n"
     "%b = stablehlo.reshape %y : (tensor<20x1x@T>) -> tensor<20x@T>\n"
     "%c = stablehlo.convert %b : (tensor<20x@T>) -> tensor<20x@I>\n"
     "%d = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<20x@I>) -> tensor<20x90x@I>\n"
     "%n = stablehlo.iota dim = 1 : tensor<20x90x@I>\n"
     "%s = stablehlo.add %d, %n : tensor<20x90x@I>\n"
     "%g = \"stablehlo.gather\"(%f, %s) <{dimension_numbers = #stablehlo.gather<"
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, "
     "slice_sizes = array<i64: 1>}> : (tensor<740x@T>, tensor<20x90x@I>) -> "
     "tensor<20x90x@T>\n"
     "%r = stablehlo.add %g, %g : tensor<20x90x@T>\nreturn %r : tensor<20x90x@T>"},
    {"known_columns",
     "%i = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, "
     "12, 13, 14, "
     "15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 3, 4, 5, 6]> : tensor<40x@I>\n"
     "%r = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<"
     "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 20, 1>}> : (tensor<20x37x@T>, "
     "tensor<40x@I>) -> tensor<20x40x@T>\nreturn %r : tensor<20x40x@T>"},
    {"known_elements",
     "%f = stablehlo.reshape %x : (tensor<20x37x@T>) -> tensor<740x@T>\n"
     "%i = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, "
     "12, 13, 14, "
     "15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 3, 4, 5, 6]> : tensor<40x@I>\n"
     "%r = \"stablehlo.gather\"(%f, %i) <{dimension_numbers = #stablehlo.gather<"
     "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
     "slice_sizes = array<i64: 1>}> : (tensor<740x@T>, tensor<40x@I>) -> "
     "tensor<40x@T>\nreturn %r : tensor<40x@T>"},
    {"long_rows", "%0 = stablehlo.constant dense<1> : tensor<@T>\n"
                  "%y = stablehlo.pad %x, %0, low = [0, 100], high = [0, 463], interior = [0, 0] : "
                  "(tensor<20x37x@T>, tensor<@T>) -> tensor<20x600x@T>\n"
                  "%f = stablehlo.slice %x [0:20, 3:4] : (tensor<20x37x@T>) -> tensor<20x1x@T>\n"
                  "%c = stablehlo.convert %f : (tensor<20x1x@T>) -> tensor<20x1x@I>\n"
                  "%g = \"stablehlo.gather\"(%y, %c) <{dimension_numbers = #stablehlo.gather<"
                  "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
                  "index_vector_dim = 1>, slice_sizes = array<i64: 1, 600>}> : (tensor<20x600x@T>, "
                  "tensor<20x1x@I>) -> tensor<20x600x@T>\n"
                  "%r = stablehlo.add %g, %y : tensor<20x600x@T>\nreturn %r : tensor<20x600x@T>"},
    {"rows", "%f = stablehlo.slice %x [0:20, 3:4] : (tensor<20x37x@T>) -> tensor<20x1x@T>\n"
             "%c = stablehlo.convert %f : (tensor<20x1x@T>) -> tensor<20x1x@I>\n"
             "%g = \"stablehlo.gather\"(%x, %c) <{dimension_numbers = #stablehlo.gather<"
             "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
             "index_vector_dim = 1>, slice_sizes = array<i64: 1, 37>}> : (tensor<20x37x@T>, "
             "tensor<20x1x@I>) -> tensor<20x37x@T>\n"
             "%r = stablehlo.add %g, %x : tensor<20x37x@T>\nreturn %r : tensor<20x37x@T>"},
    {"columns", "%f = stablehlo.slice %x [3:4, 0:37] : (tensor<20x37x@T>) -> tensor<1x37x@T>\n"
                "%c = stablehlo.convert %f : (tensor<1x37x@T>) -> tensor<1x37x@I>\n"
                "%g = \"stablehlo.gather\"(%x, %c) <{dimension_numbers = #stablehlo.gather<"
                "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], "
                "index_vector_dim = 0>, slice_sizes = array<i64: 20, 1>}> : (tensor<20x37x@T>, "
                "tensor<1x37x@I>) -> tensor<20x37x@T>\n"
                "%r = stablehlo.add %g, %x : tensor<20x37x@T>\nreturn %r : tensor<20x37x@T>"},
    {"windows", "%f = stablehlo.slice %x [0:20, 3:4] : (tensor<20x37x@T>) -> tensor<20x1x@T>\n"
                "%c = stablehlo.convert %f : (tensor<20x1x@T>) -> tensor<20x1x@I>\n"
                "%g = \"stablehlo.gather\"(%x, %c) <{dimension_numbers = #stablehlo.gather<"
                "offset_dims = [1, 2], start_index_map = [1], "
                "index_vector_dim = 1>, slice_sizes = array<i64: 3, 30>}> : (tensor<20x37x@T>, "
                "tensor<20x1x@I>) -> tensor<20x3x30x@T>\n"
                "%r = stablehlo.add %g, %g : tensor<20x3x30x@T>\nreturn %r : tensor<20x3x30x@T>"},
    {"between", "%d = stablehlo.concatenate %x, %x, dim = 0 : (tensor<20x37x@T>, tensor<20x37x@T>) "
                "-> tensor<40x37x@T>\n"
                "%e = stablehlo.reshape %d : (tensor<40x37x@T>) -> tensor<74x20x@T>\n"
                "%f = stablehlo.slice %x [0:20, 3:4] : (tensor<20x37x@T>) -> tensor<20x1x@T>\n"
                "%c = stablehlo.convert %f : (tensor<20x1x@T>) -> tensor<20x1x@I>\n"
                "%g = \"stablehlo.gather\"(%e, %c) <{dimension_numbers = #stablehlo.gather<"
                "offset_dims = [0, 2], start_index_map = [0], "
                "index_vector_dim = 1>, slice_sizes = array<i64: 70, 20>}> : (tensor<74x20x@T>, "
                "tensor<20x1x@I>) -> tensor<70x20x20x@T>\n"
                "%r = stablehlo.add %g, %g : tensor<70x20x20x@T>\n"
                "return %r : tensor<70x20x20x@T>"},
    {"pairs", "%c = stablehlo.convert %x : (tensor<20x37x@T>) -> tensor<20x37x@I>\n"
              "%n = stablehlo.iota dim = 1 : tensor<20x37x@I>\n"
              "%s = stablehlo.add %c, %n : tensor<20x37x@I>\n"
              "%u = stablehlo.reshape %c : (tensor<20x37x@I>) -> tensor<20x37x1x@I>\n"
              "%v = stablehlo.reshape %s : (tensor<20x37x@I>) -> tensor<20x37x1x@I>\n"
              "%p = stablehlo.concatenate %v, %u, dim = 2 : (tensor<20x37x1x@I>, "
              "tensor<20x37x1x@I>) -> tensor<20x37x2x@I>\n"
              "%g = \"stablehlo.gather\"(%x, %p) <{dimension_numbers = #stablehlo.gather<"
              "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], "
              "index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<20x37x@T>, "
              "tensor<20x37x2x@I>) -> tensor<20x37x@T>\n"
              "%r = stablehlo.add %g, %x : tensor<20x37x@T>\nreturn %r : tensor<20x37x@T>"},
    {"batches", "%y = stablehlo.slice %x [0:20, 0:9] : (tensor<20x37x@T>) -> tensor<20x9x@T>\n"
                "%c = stablehlo.convert %y : (tensor<20x9x@T>) -> tensor<20x9x@I>\n"
                "%s = stablehlo.add %c, %c : tensor<20x9x@I>\n"
                "%g = \"stablehlo.gather\"(%x, %s) <{dimension_numbers = #stablehlo.gather<"
                "collapsed_slice_dims = [1], operand_batching_dims = [0], "
                "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, "
                "slice_sizes = array<i64: 1, 1>}> : (tensor<20x37x@T>, tensor<20x9x@I>) -> "
                "tensor<20x9x@T>\n"
                "%h = stablehlo.add %g, %y : tensor<20x9x@T>\n"
                "%0 = stablehlo.constant dense<1> : tensor<@T>\n"
                "%r = stablehlo.pad %h, %0, low = [1, 2], high = [3, 30], interior = [0, 0] : "
                "(tensor<20x9x@T>, tensor<@T>) -> tensor<24x41x@T>\n"
                "return %r : tensor<24x41x@T>"},
    /* windows of two, read backwards: lanes below the first lane's address, also in row 0 */
    {"turned", "%y = stablehlo.slice %x [0:20, 0:2] : (tensor<20x37x@T>) -> tensor<20x2x@T>\n"
               "%c = stablehlo.slice %x [0:20, 3:4] : (tensor<20x37x@T>) -> tensor<20x1x@T>\n"
               "%i = stablehlo.convert %c : (tensor<20x1x@T>) -> tensor<20x1x@I>\n"
               "%g = \"stablehlo.gather\"(%y, %i) <{dimension_numbers = #stablehlo.gather<"
               "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
               "index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<20x2x@T>, "
               "tensor<20x1x@I>) -> tensor<20x2x@T>\n"
               "%r = stablehlo.reverse %g, dims = [1] : tensor<20x2x@T>\n"
               "return %r : tensor<20x2x@T>"},
};

static void check(const char *text, DType t, const char *name, const char *index) {
  Buf b = {0};
  const char *result = strrchr(text, ':') + 1;
  buf_printf(&b, "func.func @main(%%x: tensor<20x37x%s>) ->", name);
  for (int pass = 0; pass < 2; pass++) {
    for (const char *p = pass ? text : result; *p; p++) {
      if (*p != '@') buf_byte(&b, (uint8_t)*p);
      else buf_cstr(&b, *++p == 'T' ? name : index);
    }
    buf_cstr(&b, pass ? "\n}" : " {\n");
  }
  check_answer(t, 2, (int64_t[]){20, 37}, b.p, 0);
  buf_free(&b);
}

static void gathers(void **how) {
  static const struct {
    DType t;
    const char *name;
  } types[] = {
      {DT_F32, "f32"}, {DT_F64, "f64"}, {DT_BF16, "bf16"}, {DT_I32, "i32"}, {DT_U8, "ui8"}};
  static const char *const indices[] = {"i8", "ui8", "i32", "ui32", "i64", "ui64"};
  setenv("WEFT_VINTERP", *how, 1);
  for (int p = 0; p < COUNT_OF(programs); p++)
    for (int t = 0; t < COUNT_OF(types); t++)
      for (int i = 0; i < COUNT_OF(indices); i++)
        check(programs[p].text, types[t].t, types[t].name, indices[i]);
}

/* Short rows of a table are copied by the library, at memory's speed; single elements and rows as long as
 * images are not. */
static void short_rows_stay_the_librarys(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<500x64xf32>, %y: tensor<9x512xf32>, %i: tensor<40x1xi32>) -> "
      "tensor<40x64xf32> {\n"
      "%a = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
      "array<i64: 1, 64>}> : (tensor<500x64xf32>, tensor<40x1xi32>) -> tensor<40x64xf32>\n"
      "%b = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
      "array<i64: 1, 1>}> : (tensor<500x64xf32>, tensor<40x1xi32>) -> tensor<40x1xf32>\n"
      "%c = \"stablehlo.gather\"(%y, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
      "array<i64: 1, 512>}> : (tensor<9x512xf32>, tensor<40x1xi32>) -> tensor<40x512xf32>\n"
      "return %a : tensor<40x64xf32>\n}";
  Module *m = NULL;
  assert_null(stablehlo_read("rows.mlir", (Str){text, sizeof text - 1}, &m));
  const Op *rows = module_main(m)->body->first;
  assert_false(jit_fusible(rows));
  assert_true(jit_fusible(rows->next));
  assert_true(jit_fusible(rows->next->next));
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(gathers, "off"),
                                     cmocka_unit_test_prestate(gathers, "always"),
                                     cmocka_unit_test(short_rows_stay_the_librarys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
