/* Kernels of all operations but products and convolutions against the reference. */
#include "dev/cpu/kernel/kernel_test.h"
#include "dev/cpu/registry.h"

/* clang-format off: a program a line */
static Case cases[] = {
#define GATHER(l, i, o, dims, sizes)                                                               \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" i ">) -> tensor<" o                             \
  "> { %r = \"stablehlo.gather\"(%a, %b) <{dimension_numbers = "                                   \
  "#stablehlo.gather<" dims ">, slice_sizes = array<i64: " sizes ">}> : (tensor<" l ">, tensor<" i \
  ">) -> tensor<" o "> return %r : tensor<" o "> }"
    {"gather_rows",
     GATHER("17x40xf32", "33x1xi32", "33x40xf32",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 40"),
     "gather", 0, 0, 0},
    {"gather_rows_big",
     GATHER("5000x64xf32", "6000x1xi32", "6000x64xf32",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 64"),
     "gather", 0, -10, 6000},
    {"gather_middle_3",
     GATHER("4x9x3xi8", "6x1xi32", "4x6x3xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 3"),
     "gather", 0, 0, 9},
    {"gather_middle_5",
     GATHER("4x9x5xi8", "6x1xi32", "4x6x5xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 5"),
     "gather", 0, 0, 9},
    {"gather_middle_7",
     GATHER("4x9x7xi8", "6x1xi32", "4x6x7xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 7"),
     "gather", 0, 0, 9},
    {"gather_middle_11",
     GATHER("4x9x11xi8", "6x1xi32", "4x6x11xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 11"),
     "gather", 0, 0, 9},
    {"gather_middle_23",
     GATHER("4x9x23xi8", "6x1xi32", "4x6x23xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 23"),
     "gather", 0, 0, 9},
    {"gather_middle_47",
     GATHER("4x9x47xi8", "6x1xi32", "4x6x47xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 47"),
     "gather", 0, 0, 9},
    {"gather_middle_80",
     GATHER("4x9x80xi8", "6x1xi32", "4x6x80xi8",
            "offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "4, 1, 80"),
     "gather", 0, 0, 9},
    {"gather_columns",
     GATHER("300x17xf64", "700x1xi64", "300x700xf64",
            "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], "
            "index_vector_dim = 1",
            "300, 1"),
     "gather", 0, 0, 0},
    {"gather_elements",
     GATHER("7x6x5xbf16", "9x4x3xui8", "9x4xbf16",
            "collapsed_slice_dims = [0, 1, 2], start_index_map = [2, 0, 1], index_vector_dim = 2",
            "1, 1, 1"),
     "gather", 0, 0, 9},
    {"gather_windows",
     GATHER("7x6x5xi8", "2x9xi32", "3x9x2x5xi8",
            "offset_dims = [0, 2, 3], start_index_map = [0, 1], index_vector_dim = 0", "3, 2, 5"),
     "gather", 0, 0, 9},
    {"gather_scalar_index",
     GATHER("7x6xi1", "i32", "6xi1",
            "offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 0",
            "1, 6"),
     "gather", 0, 0, 9},
    {"gather_batching",
     GATHER("4x7x3xf32", "4x5x1xi32", "4x5x3xf32",
            "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
            "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
            "1, 1, 3"),
     "gather", 0, 0, 8},
    {"gather_c128",
     GATHER("4x7xcomplex<f64>", "5x1xi32", "5x7xcomplex<f64>",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 7"),
     "gather", 0, 0, 0},
    {"gather_none",
     GATHER("4x7xf32", "0x1xi32", "0x7xf32",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 7"),
     "gather", 0, 0, 0},

    {"gather_single",
     GATHER("700xf32", "70x100x1xi32", "70x100xf32",
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2", "1"),
     "gather", 0, -10, 710},
    {"gather_single_u32",
     GATHER("700xf32", "900x1xui32", "900xf32",
            "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1", "1"),
     "gather", 0, 0, 4294967295},
    {"gather_rows_i64",
     GATHER("70x3xf64", "900x1xi64", "900x3xf64",
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
            "index_vector_dim = 1",
            "1, 3"),
     "gather", 0, -90, 90},
    {"gather_windows_one",
     GATHER("700xi16", "900x1xi32", "900x5xi16",
            "offset_dims = [1], start_index_map = [0], index_vector_dim = 1", "5"),
     "gather", 0, -10, 710},
    {"gather_single_c128",
     GATHER("30x20xcomplex<f64>", "1000x2xi32", "1000xcomplex<f64>",
            "collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1",
            "1, 1"),
     "gather", 0, -2, 40},
    {"gather_one_of_each_row",
     GATHER("70x20xf32", "70x1x1xi32", "70x1xf32",
            "collapsed_slice_dims = [1], operand_batching_dims = [0], "
            "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
            "1, 1"),
     "gather", 0, -2, 25},
#define SCATTER(l, i, u, e, dims, op)                                                             \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" i ">, %c: tensor<" u ">) -> tensor<" l         \
  "> { %r = \"stablehlo.scatter\"(%a, %b, %c) "                                                   \
  "<{scatter_dimension_numbers = #stablehlo.scatter<" dims ">}> ({ ^bb0(%x: tensor<" e            \
  ">, %y: tensor<" e ">): " op " }) : (tensor<" l ">, tensor<" i ">, tensor<" u ">) -> tensor<" l \
  "> return %r : tensor<" l "> }"
#define BODY(o, e) "%s = stablehlo." o " %x, %y : tensor<" e "> stablehlo.return %s : tensor<" e ">"
#define ROWS_                                                                                  \
  "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], " \
  "index_vector_dim = 1"
    {"scatter_add_rows",
     SCATTER("17x40xf32", "33x1xi32", "33x40xf32", "f32", ROWS_, BODY("add", "f32")), "scatter",
     1e-30, 0, 0},
    {"scatter_add_rows_big",
     SCATTER("500x64xf32", "6000x1xi32", "6000x64xf32", "f32", ROWS_, BODY("add", "f32")),
     "scatter", 1e-30, -10, 520},
    {"scatter_set_rows",
     SCATTER("17x40xf32", "33x1xi32", "33x40xf32", "f32", ROWS_,
             "stablehlo.return %y : tensor<f32>"),
     "scatter", 0, 0, 0},
#define LAST_                                                                                     \
  "update_window_dims = [0, 1], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2], " \
  "index_vector_dim = 1"
    {"scatter_add_last",
     SCATTER("3x50x40xf32", "700x1xi32", "3x50x700xf32", "f32", LAST_, BODY("add", "f32")),
     "scatter", 1e-5, -3, 45},
    {"scatter_max_last_bf16",
     SCATTER("3x5x40xbf16", "70x1xi32", "3x5x70xbf16", "bf16", LAST_, BODY("maximum", "bf16")),
     "scatter", 1e-30, -3, 45},
    {"scatter_max_bf16",
     SCATTER("17x70xbf16", "33x1xi32", "33x70xbf16", "bf16", ROWS_, BODY("maximum", "bf16")),
     "scatter", 0, 0, 0},
    {"scatter_min_f32",
     SCATTER("17x70xf32", "33x1xi32", "33x70xf32", "f32", ROWS_, BODY("minimum", "f32")), "scatter",
     0, 0, 0},
    {"scatter_add_bf16",
     SCATTER("17x70xbf16", "33x1xi32", "33x70xbf16", "bf16", ROWS_, BODY("add", "bf16")), "scatter",
     1e-30, 0, 0},
    {"scatter_min_i32",
     SCATTER("17x7xi32", "33x1xi32", "33x7xi32", "i32", ROWS_, BODY("minimum", "i32")), "scatter",
     0, 0, 0},
    {"scatter_mul_i64",
     SCATTER("17x7xi64", "33x1xi32", "33x7xi64", "i64", ROWS_, BODY("multiply", "i64")), "scatter",
     0, 0, 0},
    {"scatter_add_c64",
     SCATTER("17x7xcomplex<f32>", "33x1xi32", "33x7xcomplex<f32>", "complex<f32>", ROWS_,
             BODY("add", "complex<f32>")),
     "scatter", 1e-30, 0, 0},
    {"scatter_mul_c64",
     SCATTER("17x5xcomplex<f32>", "33x1xi32", "33x5xcomplex<f32>", "complex<f32>", ROWS_,
             BODY("multiply", "complex<f32>")),
     "scatter", 1e-6, 0, 0},
    {"scatter_sub_one_c128",
     SCATTER("17x1xcomplex<f64>", "33x1xi32", "33x1xcomplex<f64>", "complex<f64>", ROWS_,
             BODY("subtract", "complex<f64>")),
     "scatter", 1e-15, 0, 0},
    {"scatter_sub_f32",
     SCATTER("17x70xf32", "33x1xi32", "33x70xf32", "f32", ROWS_, BODY("subtract", "f32")),
     "scatter", 1e-30, 0, 0},
    {"scatter_sub_f16",
     SCATTER("17x7xf16", "33x1xi32", "33x7xf16", "f16", ROWS_, BODY("subtract", "f16")), "scatter",
     1e-30, 0, 0},
    {"scatter_min_i8",
     SCATTER("17x7xi8", "33x1xi32", "33x7xi8", "i8", ROWS_, BODY("minimum", "i8")), "scatter", 0,
     -20, 20},
    {"scatter_mul_i16",
     SCATTER("17x7xi16", "33x1xi32", "33x7xi16", "i16", ROWS_, BODY("multiply", "i16")), "scatter",
     0, -20, 20},
    {"scatter_xor_i1", SCATTER("17x7xi1", "33x1xi32", "33x7xi1", "i1", ROWS_, BODY("xor", "i1")),
     "scatter", 0, 0, 0},
    {"scatter_max_16",
     SCATTER("17x16xf32", "330x1xi32", "330x16xf32", "f32", ROWS_, BODY("maximum", "f32")),
     "scatter", 0, -3, 20},
    {"scatter_add_8",
     SCATTER("17x8xi32", "330x1xi32", "330x8xi32", "i32", ROWS_, BODY("add", "i32")), "scatter", 0,
     -3, 20},
    {"scatter_add_one_c64",
     SCATTER("17x1xcomplex<f32>", "330x1xi32", "330x1xcomplex<f32>", "complex<f32>", ROWS_,
             BODY("add", "complex<f32>")),
     "scatter", 1e-30, -3, 20},
    {"scatter_max_nan",
     SCATTER("17x1xf32", "330x1xi32", "330x1xf32", "f32", ROWS_, BODY("maximum", "f32")), "scatter",
     0, -3, 20},
    {"scatter_min_nan",
     SCATTER("17x1xbf16", "330x1xi32", "330x1xbf16", "bf16", ROWS_, BODY("minimum", "bf16")),
     "scatter", 0, -3, 20},
    {"scatter_max_f64",
     SCATTER("17x3xf64", "330x1xi32", "330x3xf64", "f64", ROWS_, BODY("maximum", "f64")), "scatter",
     0, -3, 20},
    {"scatter_max_f16_nan",
     SCATTER("17x1xf16", "330x1xi32", "330x1xf16", "f16", ROWS_, BODY("maximum", "f16")), "scatter",
     0, -3, 20},
    {"scatter_min_f16",
     SCATTER("17x8xf16", "330x1xi32", "330x8xf16", "f16", ROWS_, BODY("minimum", "f16")), "scatter",
     0, -3, 20},
    {"scatter_add_f16",
     SCATTER("17x16xf16", "330x1xi32", "330x16xf16", "f16", ROWS_, BODY("add", "f16")), "scatter",
     1e-30, -3, 20},
    {"scatter_add_one_f16",
     SCATTER("17x1xf16", "330x1xi32", "330x1xf16", "f16", ROWS_, BODY("add", "f16")), "scatter",
     1e-30, -3, 20},
    {"scatter_mul_f16",
     SCATTER("17x5xf16", "330x1xi32", "330x5xf16", "f16", ROWS_, BODY("multiply", "f16")),
     "scatter", 1e-30, -3, 20},
    {"scatter_sub_bf16",
     SCATTER("17x5xbf16", "330x1xi32", "330x5xbf16", "bf16", ROWS_, BODY("subtract", "bf16")),
     "scatter", 1e-30, -3, 20},
    {"scatter_min_one_f64",
     SCATTER("17x1xf64", "330x1xi32", "330x1xf64", "f64", ROWS_, BODY("minimum", "f64")), "scatter",
     0, -3, 20},
    {"scatter_add_i8",
     SCATTER("17x16xi8", "330x1xi32", "330x16xi8", "i8", ROWS_, BODY("add", "i8")), "scatter", 0,
     -3, 20},
    {"scatter_max_ui8",
     SCATTER("17x4xui8", "330x1xi32", "330x4xui8", "ui8", ROWS_, BODY("maximum", "ui8")), "scatter",
     0, -3, 20},
    {"scatter_add_one_ui16",
     SCATTER("17x1xui16", "330x1xi32", "330x1xui16", "ui16", ROWS_, BODY("add", "ui16")), "scatter",
     0, -3, 20},
    {"scatter_min_i64",
     SCATTER("17x3xi64", "330x1xi32", "330x3xi64", "i64", ROWS_, BODY("minimum", "i64")), "scatter",
     0, -3, 20},
    {"scatter_max_ui32",
     SCATTER("17x1xui32", "330x1xi32", "330x1xui32", "ui32", ROWS_, BODY("maximum", "ui32")),
     "scatter", 0, -3, 20},
    {"scatter_mul_f32",
     SCATTER("17x16xf32", "33x1xi32", "33x16xf32", "f32", ROWS_, BODY("multiply", "f32")),
     "scatter", 1e-6, 0, 0},
    {"scatter_mul_bf16",
     SCATTER("17x16xbf16", "33x1xi32", "33x16xbf16", "bf16", ROWS_, BODY("multiply", "bf16")),
     "scatter", 1e-30, 0, 0},
    {"scatter_add_bf16_rows",
     SCATTER("17x2xbf16", "330x1xi32", "330x2xbf16", "bf16", ROWS_, BODY("add", "bf16")), "scatter",
     1e-30, 0, 0},
    {"scatter_set_i8",
     SCATTER("17x3xi8", "33x1xi32", "33x3xi8", "i8", ROWS_, "stablehlo.return %y : tensor<i8>"),
     "scatter", 0, 0, 0},
    {"scatter_batches",
     SCATTER("5x3x40xf32", "5x3x70x1xi32", "5x3x70xf32", "f32",
             "inserted_window_dims = [2], input_batching_dims = [0, 1], "
             "scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], "
             "index_vector_dim = 3",
             BODY("add", "f32")),
     "scatter", 1e-30, -2, 42},
    {"scatter_elements",
     SCATTER("30x20xf32", "2000x2xi32", "2000xf32", "f32",
             "inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], "
             "index_vector_dim = 1",
             BODY("add", "f32")),
     "scatter", 1e-30, -2, 32},
#define SINGLE \
  "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    {"scatter_max_elements",
     SCATTER("300xf32", "2000x1xi32", "2000xf32", "f32", SINGLE, BODY("maximum", "f32")), "scatter",
     0, -2, 310},
    {"scatter_min_elements",
     SCATTER("300xi32", "2000x1xi32", "2000xi32", "i32", SINGLE, BODY("minimum", "i32")), "scatter",
     0, -2, 310},
    {"scatter_set_elements",
     SCATTER("300xf64", "2000x1xi32", "2000xf64", "f64", SINGLE,
             "stablehlo.return %y : tensor<f64>"),
     "scatter", 0, -2, 310},
    {"scatter_multiply_elements_bf16",
     SCATTER("300xbf16", "700x1xi32", "700xbf16", "bf16", SINGLE, BODY("multiply", "bf16")),
     "scatter", 0, -2, 310},
    {"scatter_add_rows_of_8",
     SCATTER("30x8xf32", "2000x1xi64", "2000x8xf32", "f32", ROWS_, BODY("add", "f32")), "scatter",
     1e-30, -2, 32},
    {"scatter_columns",
     SCATTER("30x20xf32", "9x1xi32", "30x9xf32", "f32",
             "update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = "
             "[1], index_vector_dim = 1",
             BODY("add", "f32")),
     "scatter", 1e-30, 0, 0},
    {"scatter_windows",
     SCATTER(
         "30x20xf32", "50x2xi32", "50x3x4xf32", "f32",
         "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
         BODY("add", "f32")),
     "scatter", 1e-30, -4, 31},
    {"scatter_batching",
     SCATTER("4x20x3xf32", "4x9x1xi32", "4x9x3xf32", "f32",
             "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
             "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
             "index_vector_dim = 2",
             BODY("add", "f32")),
     "scatter", 1e-30, -4, 21},
    {"scatter_none", SCATTER("17x40xf32", "0x1xi32", "0x40xf32", "f32", ROWS_, BODY("add", "f32")),
     "scatter", 0, 0, 0},

#define SORT1(t, e, dim, body)                                                      \
  "func.func @main(%a: tensor<" t ">) -> tensor<" t                                 \
  "> { %z = stablehlo.constant dense<0.0> : tensor<f32> %n = stablehlo.constant "   \
  "dense<0x7FC00000> : tensor<f32> %r = \"stablehlo.sort\"(%a) <{dimension = " dim  \
  " : i64, is_stable = true}> ({ ^bb0(%x: tensor<" e ">, %y: tensor<" e ">): " body \
  " }) : (tensor<" t ">) -> tensor<" t "> return %r : tensor<" t "> }"
#define LESS(direction, type, e)                                                       \
  "%s = stablehlo.compare " direction ", %x, %y, " type " : (tensor<" e ">, tensor<" e \
  ">) -> tensor<i1> stablehlo.return %s : tensor<i1>"
#define JAX_FLOAT                                                                             \
  "%1 = stablehlo.compare EQ, %x, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%2 = stablehlo.select %1, %z, %x : tensor<i1>, tensor<f32> "                               \
  "%3 = stablehlo.compare NE, %x, %x, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%4 = stablehlo.select %3, %n, %2 : tensor<i1>, tensor<f32> "                               \
  "%5 = stablehlo.compare EQ, %y, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%6 = stablehlo.select %5, %z, %y : tensor<i1>, tensor<f32> "                               \
  "%7 = stablehlo.compare NE, %y, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> "      \
  "%8 = stablehlo.select %7, %n, %6 : tensor<i1>, tensor<f32> "                               \
  "%9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1> " \
  "stablehlo.return %9 : tensor<i1>"
#define TWO_KEYS                                                                                   \
  "%1 = stablehlo.compare LT, %p, %q, UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1> "        \
  "%2 = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "          \
  "%3 = stablehlo.compare EQ, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "          \
  "%4 = stablehlo.and %3, %1 : tensor<i1> %5 = stablehlo.or %2, %4 : tensor<i1> stablehlo.return " \
  "%5 : tensor<i1>"
#define SORT3(n, key, body)                                                                      \
  "func.func @main(%a: tensor<" n "x" key ">, %b: tensor<" n "xui8>, %c: tensor<" n              \
  "xf64>) -> (tensor<" n "x" key ">, tensor<" n "xui8>, tensor<" n                               \
  "xf64>) { %r:3 = \"stablehlo.sort\"(%a, %b, %c) <{dimension = 0 : i64, is_stable = true}> ({ " \
  "^bb0(%x: tensor<" key ">, %y: tensor<" key                                                    \
  ">, %p: tensor<ui8>, %q: tensor<ui8>, %v: tensor<f64>, %w: tensor<f64>): " body                \
  " }) : (tensor<" n "x" key ">, tensor<" n "xui8>, tensor<" n "xf64>) -> (tensor<" n "x" key    \
  ">, tensor<" n "xui8>, tensor<" n "xf64>) return %r#0, %r#1, %r#2 : "                          \
  "tensor<" n "x" key ">, tensor<" n "xui8>, tensor<" n "xf64> }"
#define TURN(a, dims, o)                                                            \
  "func.func @main(%a: tensor<" a ">) -> tensor<" o                                 \
  "> { %r = stablehlo.transpose %a, dims = " dims " : (tensor<" a ">) -> tensor<" o \
  "> return %r : tensor<" o "> }"
/* Transposes of elements of one size: planes of all kinds of sides. */
#define TURN_OF(T, name, a, dims, o) \
  { name T, TURN(a T, dims, o T), "transpose", 0, -100, 100 }
#define TURNS(T)                                                                  \
  TURN_OF(T, "turn_plane_", "70x133x", "[1, 0]", "133x70x"),                      \
      TURN_OF(T, "turn_plane_lines_", "128x256x", "[1, 0]", "256x128x"),          \
      TURN_OF(T, "turn_lines_", "64x1024x", "[1, 0]", "1024x64x"),                \
      TURN_OF(T, "turn_lines_back_", "1024x64x", "[1, 0]", "64x1024x"),           \
      TURN_OF(T, "turn_few_columns_", "50x9x", "[1, 0]", "9x50x"),                \
      TURN_OF(T, "turn_few_rows_", "9x50x", "[1, 0]", "50x9x"),                   \
      TURN_OF(T, "turn_six_", "6x41x", "[1, 0]", "41x6x"),                        \
      TURN_OF(T, "turn_six_across_", "41x6x", "[1, 0]", "6x41x"),                 \
      TURN_OF(T, "turn_rows_of_1_", "11x5x1x", "[1, 0, 2]", "5x11x1x"),           \
      TURN_OF(T, "turn_rows_of_3_", "11x5x3x", "[1, 0, 2]", "5x11x3x"),           \
      TURN_OF(T, "turn_rows_of_5_", "11x5x5x", "[1, 0, 2]", "5x11x5x"),           \
      TURN_OF(T, "turn_rows_of_7_", "11x5x7x", "[1, 0, 2]", "5x11x7x"),           \
      TURN_OF(T, "turn_rows_of_9_", "11x5x9x", "[1, 0, 2]", "5x11x9x"),           \
      TURN_OF(T, "turn_rows_of_13_", "11x5x13x", "[1, 0, 2]", "5x11x13x"),        \
      TURN_OF(T, "turn_rows_of_17_", "11x5x17x", "[1, 0, 2]", "5x11x17x"),        \
      TURN_OF(T, "turn_rows_of_33_", "11x5x33x", "[1, 0, 2]", "5x11x33x"),        \
      TURN_OF(T, "turn_rows_of_70_", "11x5x70x", "[1, 0, 2]", "5x11x70x"),        \
      TURN_OF(T, "turn_apart3_", "33x3x", "[1, 0]", "3x33x"),                     \
      TURN_OF(T, "turn_join4_", "4x37x", "[1, 0]", "37x4x"),                      \
      TURN_OF(T, "turn_apart2_", "50x2x", "[1, 0]", "2x50x"),                     \
      TURN_OF(T, "turn_blocks_", "37x2x2x", "[0, 2, 1]", "37x2x2x"),              \
      TURN_OF(T, "turn_blocks_odd_", "41x3x5x", "[0, 2, 1]", "41x5x3x"),          \
      TURN_OF(T, "turn_blocks_outer_", "5x19x4x8x", "[1, 0, 3, 2]", "19x5x8x4x"), \
      TURN_OF(T, "turn_rows_", "9x7x5x16x", "[0, 2, 1, 3]", "9x5x7x16x"),         \
      TURN_OF(T, "turn_rows_odd_", "9x7x5x3x", "[0, 2, 1, 3]", "9x5x7x3x"),       \
      TURN_OF(T, "turn_all_turned_", "6x65x33x", "[2, 1, 0]", "33x65x6x")
#define APPROX(t, o)                                                                              \
  "func.func @main(%a: tensor<" t "xf32>, %b: tensor<" t                                          \
  "xi32>, %c: tensor<f32>, %d: tensor<i32>) "                                                     \
  "-> (tensor<" o "xf32>, tensor<" o "xi32>) { %r:2 = stablehlo.custom_call @ApproxTopK(%a, %b, " \
  "%c, %d) {mhlo.backend_config = {reduction_dim = 1 : i64}} : (tensor<" t "xf32>, tensor<" t     \
  "xi32>, tensor<f32>, tensor<i32>) -> (tensor<" o "xf32>, tensor<" o "xi32>) return %r#0, %r#1 " \
  ": tensor<" o "xf32>, tensor<" o "xi32> }"
#define TOP_OF(k, t, o, i)                                                             \
  "func.func @main(%a: tensor<" t ">) -> (tensor<" o ">, tensor<" i                    \
  ">) { %r:2 = chlo.top_k(%a, k = " k ") : tensor<" t "> -> (tensor<" o ">, tensor<" i \
  ">) return %r#0, %r#1 : tensor<" o ">, tensor<" i "> }"
#define TOP(t, o, i) TOP_OF("7", t, o, i)
    {"sort_f32_total", SORT1("5x300xf32", "f32", "1", LESS("LT", "TOTALORDER", "f32")), "sort:keys",
     0, 0, 0},
    {"sort_f32_jax", SORT1("2000x3xf32", "f32", "0", JAX_FLOAT), "sort:keys", 0, 0, 0},
    {"sort_many_rows", SORT1("19x37xf32", "f32", "1", JAX_FLOAT), "sort:keys", 0, 0, 0},
    {"sort_many_columns", SORT1("130x21xi32", "i32", "0", LESS("GT", "SIGNED", "i32")), "sort:keys",
     0, -5, 5},
    {"sort_u8_columns", SORT1("130x5xui8", "ui8", "0", LESS("LT", "UNSIGNED", "ui8")), "sort:keys",
     0, 0, 255},
    {"sort_f32_long", SORT1("70000xf32", "f32", "0", JAX_FLOAT), "sort:keys", 0, 0, 0},
    {"sort_f64_down", SORT1("3x1000xf64", "f64", "1", LESS("GT", "TOTALORDER", "f64")), "sort:keys",
     0, 0, 0},
    {"sort_bf16", SORT1("3x1000xbf16", "bf16", "1", LESS("LT", "TOTALORDER", "bf16")), "sort:keys",
     0, 0, 0},
    {"sort_i8_down", SORT1("3x1000xi8", "i8", "1", LESS("GT", "SIGNED", "i8")), "sort:keys", 0,
     -128, 127},
    {"sort_i64", SORT1("3x1000xi64", "i64", "1", LESS("LT", "SIGNED", "i64")), "sort:keys", 0,
     -5000000000, 5000000000},
    {"sort_u32_long", SORT1("150000xui32", "ui32", "0", LESS("LT", "UNSIGNED", "ui32")),
     "sort:keys", 0, 0, 4294967295},
    {"sort_i1", SORT1("3x1000xi1", "i1", "1", LESS("LT", "UNSIGNED", "i1")), "sort:keys", 0, 0, 0},
    {"sort_one", SORT1("3x1xi32", "i32", "1", LESS("LT", "SIGNED", "i32")), "sort:keys", 0, 0, 0},
    {"sort_none", SORT1("3x0xi32", "i32", "1", LESS("LT", "SIGNED", "i32")), "sort:keys", 0, 0, 0},
    {"sort_two_keys", SORT3("2000", "i32", TWO_KEYS), "sort:keys", 0, 0, 0},
    {"sort_two_keys_long", SORT3("70000", "i32", TWO_KEYS), "sort:keys", 0, 0, 0},
    {"sort_key_value", SORT3("300", "i16", LESS("LT", "SIGNED", "i16")), "sort:keys", 0, 0, 0},
    {"sort_long_keys", SORT3("3000", "i64", LESS("LT", "SIGNED", "i64")), "sort:keys", 0, 0, 0},
    {"approx_top_k", APPROX("5x300", "5x7"), "top_k", 0, 0, 0},
    {"approx_top_k_most", APPROX("3x90", "3x50"), "top_k", 0, 0, 0},
    {"top_k_f32", TOP("5x300xf32", "5x7xf32", "5x7xi32"), "top_k", 0, 0, 0},
    {"top_k_bf16", TOP("5x300xbf16", "5x7xbf16", "5x7xi32"), "top_k", 0, 0, 0},
    {"top_k_buffer_f16", TOP_OF("20", "3x5000xf16", "3x20xf16", "3x20xi32"), "top_k", 0, 0, 0},
    {"top_k_i8", TOP("2x3000xi8", "2x7xi8", "2x7xi32"), "top_k", 0, 0, 0},
    {"top_k_f64", TOP("2x3000xf64", "2x7xf64", "2x7xi32"), "top_k", 0, 0, 0},
    {"top_k_of_many", TOP("3x5000xf32", "3x7xf32", "3x7xi32"), "top_k", 0, 0, 0},
    {"top_k_of_few_values", TOP("3x5000xi32", "3x7xi32", "3x7xi32"), "top_k", 0, 0, 3},
    {"top_k_buffer", TOP_OF("20", "3x5000xf32", "3x20xf32", "3x20xi32"), "top_k", 0, 0, 0},
    {"top_k_buffer_equals", TOP_OF("70", "3x5000xi32", "3x70xi32", "3x70xi32"), "top_k", 0, 0, 3},
    {"top_k_buffer_i8", TOP_OF("20", "2x900xi8", "2x20xi8", "2x20xi32"), "top_k", 0, -128, 127},
    {"top_k_most", TOP_OF("20", "2x50xf32", "2x20xf32", "2x20xi32"), "top_k", 0, 0, 0},
    {"top_k_all", TOP("7xbf16", "7xbf16", "7xi32"), "top_k", 0, 0, 0},
#define POOL_OF(e, t, o, init, op, attrs)                                                  \
  "func.func @main(%a: tensor<" t ">, %b: tensor<" e ">) -> tensor<" o                     \
  "> { %r = \"stablehlo.reduce_window\"(%a, " init ") <{" attrs "}> ({ ^bb0(%x: tensor<" e \
  ">, %y: tensor<" e ">): %s = stablehlo." op " %x, %y : tensor<" e                        \
  "> stablehlo.return %s : tensor<" e "> }) : (tensor<" t ">, tensor<" e ">) -> tensor<" o \
  "> return %r : tensor<" o "> }"
#define POOL(t, o, init, op, attrs) POOL_OF("f32", t, o, init, op, attrs)
#define UNPOOL_OF(e, t, o, direction, attrs)                                                  \
  "func.func @main(%a: tensor<" t ">, %b: tensor<" o ">, %c: tensor<" e ">) -> tensor<" t     \
  "> { %r = \"stablehlo.select_and_scatter\"(%a, %b, %c) <{" attrs "}> ({ ^bb0(%x: tensor<" e \
  ">, %y: tensor<" e ">): %s = stablehlo.compare " direction ", %x, %y, FLOAT : (tensor<" e   \
  ">, tensor<" e ">) -> tensor<i1> stablehlo.return %s : "                                    \
  "tensor<i1> }, { ^bb0(%x: tensor<" e ">, %y: tensor<" e ">): %s = stablehlo.add %x, %y "    \
  ": tensor<" e "> stablehlo.return %s : tensor<" e "> }) : (tensor<" t ">, tensor<" o        \
  ">, tensor<" e ">) -> tensor<" t "> return %r : tensor<" t "> }"
#define UNPOOL(t, o, direction, attrs) UNPOOL_OF("f32", t, o, direction, attrs)
#define P22 "window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>"
#define P33                                                                                       \
  "window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 1>, padding " \
  "= dense<[[0, 0], [0, 0], [1, 1], [1, 2]]> : tensor<4x2xi64>"
    {"pool_max", POOL("2x3x8x40xf32", "2x3x4x20xf32", "%b", "maximum", P22), "pool:planes", 1e-30,
     0, 0},
    {"pool_min_pad", POOL("2x3x8x10xf32", "2x3x4x11xf32", "%b", "minimum", P33), "pool:planes",
     1e-30, 0, 0},
    {"pool_add_pad", POOL("2x3x8x10xf32", "2x3x4x11xf32", "%b", "add", P33), "pool:planes", 1e-5, 0,
     0},
    {"pool_mul", POOL("2x3x8x40xf32", "2x3x4x20xf32", "%b", "multiply", P22), "pool:planes", 1e-5,
     0, 0},
    {"pool_1d",
     POOL("3x40xf32", "3x12xf32", "%b", "add",
          "window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 3>"),
     "pool:planes", 1e-5, 0, 0},
    {"pool_negative",
     POOL("3x40xf32", "3x10xf32", "%b", "add",
          "window_dimensions = array<i64: 1, 5>, window_strides = array<i64: 1, 3>, padding = "
          "dense<[[0, 0], [-5, -2]]> : tensor<2x2xi64>"),
     "pool:planes", 1e-5, 0, 0},
    {"unpool_max", UNPOOL("2x3x8x40xf32", "2x3x4x20xf32", "GE", P22), "unpool:planes", 1e-30, 0, 0},
    {"unpool_min_pad", UNPOOL("2x3x8x10xf32", "2x3x4x11xf32", "LE", P33), "unpool:planes", 1e-5, 0,
     0},
#define LAST33                                                                                    \
  "window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 1, 1>, padding " \
  "= dense<[[0, 0], [1, 1], [1, 2], [0, 0]]> : tensor<4x2xi64>"
    {"pool_max_bf16", POOL_OF("bf16", "3x8x10x19xbf16", "3x4x11x19xbf16", "%b", "maximum", LAST33),
     "reduce_window", 1e-30, 0, 0},
    {"pool_max_bf16_odd",
     POOL_OF("bf16", "3x8x10x19xbf16", "3x4x11x19xbf16", "%b", "maximum", LAST33), "reduce_window",
     -1e-30, 0, 0},
    {"pool_add_bf16",
     POOL_OF("bf16", "3x8x10x19xbf16", "3x4x5x19xbf16", "%b", "add",
             "window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>"),
     "reduce_window", 2e-2, 0, 0},
    {"pool_max_f16_one", POOL_OF("f16", "1x8x10x19xf16", "1x4x11x19xf16", "%b", "maximum", LAST33),
     "reduce_window", 1e-30, 0, 0},
    {"unpool_max_bf16", UNPOOL_OF("bf16", "3x8x10x19xbf16", "3x4x11x19xbf16", "GE", LAST33),
     "select_and_scatter", 2e-2, 0, 0},
    {"unpool_max_f16", UNPOOL_OF("f16", "3x8x10x19xf16", "3x4x11x19xf16", "GE", LAST33),
     "select_and_scatter", 2e-3, 0, 0},
    {"unpool_1d", UNPOOL("3x40xf32", "3x36xf32", "GE", "window_dimensions = array<i64: 1, 5>"),
     "unpool:planes", 1e-5, 0, 0},
    {"pool_max_planes_bf16",
     POOL_OF("bf16", "2x3x8x10xbf16", "2x3x4x11xbf16", "%b", "maximum", P33), "pool:planes", 1e-30,
     0, 0},
    {"pool_add_planes_f16", POOL_OF("f16", "2x90x8x10xf16", "2x90x4x11xf16", "%b", "add", P33),
     "pool:planes", 2e-2, 0, 0},
    {"pool_more_than_read_bf16",
     POOL_OF("bf16", "3x4x4xbf16", "3x803x803xbf16", "%b", "maximum",
             "window_dimensions = array<i64: 1, 2, 2>, padding = "
             "dense<[[0, 0], [400, 400], [400, 400]]> : tensor<3x2xi64>"),
     "pool:planes", 1e-30, 0, 0},
    {"unpool_max_planes_bf16", UNPOOL_OF("bf16", "2x300x8x40xbf16", "2x300x4x20xbf16", "GE", P22),
     "unpool:planes", 2e-2, 0, 0},
    {"unpool_min_planes_f16", UNPOOL_OF("f16", "2x3x8x10xf16", "2x3x4x11xf16", "LE", P33),
     "unpool:planes", 4e-3, 0, 0},
#define CHOL(t, lower)                              \
  "func.func @main(%a: tensor<" t ">) -> tensor<" t \
  "> { %r = stablehlo.cholesky %a, lower = " lower " : tensor<" t "> return %r : tensor<" t "> }"
#define SOLVE(a, t, attrs)                                                                    \
  "func.func @main(%a: tensor<" a ">, %b: tensor<" t ">) -> tensor<" t                        \
  "> { %r = \"stablehlo.triangular_solve\"(%a, %b) <{" attrs "}> : (tensor<" a ">, tensor<" t \
  ">) -> tensor<" t "> return %r : tensor<" t "> }"
#define HOW(left, lower, how, unit)                                                  \
  "left_side = " left ", lower = " lower ", transpose_a = #stablehlo<transpose " how \
  ">, unit_diagonal = " unit
    {"cholesky_f32", CHOL("3x17x17xf32", "true"), "cholesky:lapack", 1e-5, 0, 0},
    {"cholesky_f64_upper", CHOL("50x50xf64", "false"), "cholesky:lapack", 1e-13, 0, 0},
    {"cholesky_c64", CHOL("2x3x9x9xcomplex<f32>", "true"), "cholesky:lapack", 1e-5, 0, 0},
    {"cholesky_c128_upper", CHOL("9x9xcomplex<f64>", "false"), "cholesky:lapack", 1e-13, 0, 0},
    {"cholesky_many", CHOL("37x7x7xf32", "true"), "cholesky:small", 1e-5, 0, 0},
    {"cholesky_many_upper", CHOL("5x3x20x20xf64", "false"), "cholesky:small", 1e-13, 0, 0},
    {"cholesky_many_not_positive", CHOL("9x4x4xf32", "true"), "cholesky:small", 0, 0, 0},
    {"cholesky_not_positive", CHOL("3x4x4xf32", "true"), "cholesky:lapack", 0, 0, 0},
    {"cholesky_blocks", CHOL("2x650x650xf32", "true"), "cholesky:blocks", 1e-4, 0, 0},
    {"cholesky_blocks_upper", CHOL("643x643xf32", "false"), "cholesky:blocks", 1e-4, 0, 0},
    {"cholesky_blocks_not_positive", CHOL("2x645x645xf32", "false"), "cholesky:blocks", 1e-4, 0, 0},
    {"solve_left_lower",
     SOLVE("2x20x20xf32", "2x20x300xf32", HOW("true", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-4, 0, 0},
    {"solve_left_upper_t",
     SOLVE("20x20xf64", "20x7xf64", HOW("true", "false", "TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-12, 0, 0},
    {"solve_right_unit",
     SOLVE("20x20xf64", "7x20xf64", HOW("false", "true", "NO_TRANSPOSE", "true")),
     "triangular_solve:blas", 1e-12, 0, 0},
    {"solve_right_adjoint",
     SOLVE("5x8x8xcomplex<f32>", "5x7x8xcomplex<f32>", HOW("false", "true", "ADJOINT", "false")),
     "triangular_solve:blas", 1e-4, 0, 0},
    {"solve_many_lower",
     SOLVE("37x5x5xf32", "37x5x3xf32", HOW("true", "true", "NO_TRANSPOSE", "true")),
     "triangular_solve:blas", 1e-4, 0, 0},
    {"solve_many_upper_t",
     SOLVE("9x5x5xf64", "9x5x3xf64", HOW("true", "false", "TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-9, 0, 0},
    {"solve_many_right",
     SOLVE("9x5x5xf64", "9x3x5xf64", HOW("false", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-9, 0, 0},
    {"solve_many_right_upper_t",
     SOLVE("9x5x5xf64", "9x3x5xf64", HOW("false", "false", "TRANSPOSE", "true")),
     "triangular_solve:blas", 1e-9, 0, 0},
#define LU(letter, a, k, info)                                                         \
  "func.func @main(%a: tensor<" a ">) -> (tensor<" a ">, tensor<" k ">, tensor<" info  \
  ">) { %r:3 = stablehlo.custom_call @lapack_" letter                                  \
  "getrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {}} : (tensor<" a       \
  ">) -> (tensor<" a ">, tensor<" k ">, tensor<" info "> ) return %r#0, %r#1, %r#2 : " \
  "tensor<" a ">, tensor<" k ">, tensor<" info "> }"
    {"lu_many", LU("s", "37x7x7xf32", "37x7xi32", "37xi32"), "lu:small", 1e-4, 0, 0},
    {"lu_many_wide", LU("d", "3x3x5x9xf64", "3x3x5xi32", "3x3xi32"), "lu:small", 1e-11, 0, 0},
    {"lu_many_tall", LU("d", "20x9x5xf64", "20x5xi32", "20xi32"), "lu:small", 1e-11, 0, 0},
#define QR(letter, a, k)                                                         \
  "func.func @main(%a: tensor<" a ">) -> (tensor<" a ">, tensor<" k              \
  ">) { %r:2 = stablehlo.custom_call @lapack_" letter                            \
  "geqrf_ffi(%a) {api_version = 4 : i32, mhlo.backend_config = {}} : (tensor<" a \
  ">) -> (tensor<" a ">, tensor<" k ">) return %r#0, %r#1 : tensor<" a ">, tensor<" k "> }"
#define Q(letter, a, k)                                                              \
  "func.func @main(%a: tensor<" a ">, %b: tensor<" k ">) -> tensor<" a               \
  "> { %r = stablehlo.custom_call @lapack_" letter                                   \
  "orgqr_ffi(%a, %b) {api_version = 4 : i32, mhlo.backend_config = {}} : (tensor<" a \
  ">, tensor<" k ">) -> tensor<" a "> return %r : tensor<" a "> }"
    {"qr_many", QR("s", "37x7x7xf32", "37x7xf32"), "qr:small", 1e-4, 0, 0},
    {"qr_many_wide", QR("d", "3x3x5x9xf64", "3x3x5xf64"), "qr:small", 1e-11, 0, 0},
    {"qr_many_tall", QR("d", "20x19x5xf64", "20x5xf64"), "qr:small", 1e-11, 0, 0},
    {"qr_many_columns", QR("d", "20x1x5xf64", "20x1xf64"), "qr:small", 1e-11, 0, 0},
    {"q_many", Q("s", "37x7x7xf32", "37x7xf32"), "q:small", 1e-4, 0, 0},
    {"q_many_tall", Q("d", "20x19x9xf64", "20x5xf64"), "q:small", 1e-9, 0, 0},
    {"lu_one", LU("s", "70x50xf32", "50xi32", "i32"), "lapack", 1e-4, 0, 0},
    {"lu_few_blocks", LU("z", "2x390x400xcomplex<f64>", "2x390xi32", "2xi32"), "lapack", 1e-9, 0,
     0},
#define SVD(mode, a, s, u, v)                                                                     \
  "func.func @main(%a: tensor<" a ">) -> (tensor<" a ">, tensor<" s ">, tensor<" u ">, tensor<" v \
  ">, tensor<9xi32>) { %r:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%a) "                      \
  "{api_version = 4 : i32, mhlo.backend_config = {mode = " mode " : ui8}} : (tensor<" a           \
  ">) -> (tensor<" a ">, tensor<" s ">, tensor<" u ">, tensor<" v ">, tensor<9xi32>) "            \
  "return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<" a ">, tensor<" s ">, tensor<" u ">, "           \
  "tensor<" v ">, tensor<9xi32> }"
    {"svd_many", SVD("83", "9x70x12xf32", "9x12xf32", "9x70x12xf32", "9x12x12xf32"), "lapack", 1e-4,
     0, 0},
    {"svd_values", SVD("78", "9x70x12xf32", "9x12xf32", "9x70x70xf32", "9x12x12xf32"), "lapack",
     1e-4, 0, 0},
    {"svd_not_finite", SVD("83", "9x70x12xf32", "9x12xf32", "9x70x12xf32", "9x12x12xf32"), "lapack",
     -1e-4, 0, 0},
    {"solve_wide",
     SOLVE("300x300xf64", "300x900xf64", HOW("true", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blas", 1e-9, 0, 0},
    {"solve_blocks",
     SOLVE("300x300xf32", "300x700xf32", HOW("true", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blocks", 1e-4, 0, 0},
    {"solve_blocks_upper_t_unit",
     SOLVE("2x260x260xf32", "2x260x70xf32", HOW("true", "false", "TRANSPOSE", "true")),
     "triangular_solve:blocks", 1e-4, 0, 0},
    {"solve_blocks_right",
     SOLVE("2x260x260xf32", "2x90x260xf32", HOW("false", "true", "NO_TRANSPOSE", "false")),
     "triangular_solve:blocks", 1e-4, 0, 0},
    {"solve_blocks_right_upper_t",
     SOLVE("300x300xf32", "70x300xf32", HOW("false", "false", "ADJOINT", "false")),
     "triangular_solve:blocks", 1e-4, 0, 0},
#define BITS(algorithm, state, t)                                                             \
  "func.func @main(%a: tensor<" state ">) -> (tensor<" state ">, tensor<" t                   \
  ">) { %r:2 = stablehlo.rng_bit_generator %a, algorithm = " algorithm " : (tensor<" state    \
  ">) -> (tensor<" state ">, tensor<" t ">) return %r#0, %r#1 : tensor<" state ">, tensor<" t \
  "> }"
#define SCAN(t, e, op, size, pad, zero)                                                       \
  "func.func @main(%a: tensor<" t ">) -> tensor<" t "> { %b = stablehlo.constant dense<" zero \
  "> : tensor<" e "> %r = \"stablehlo.reduce_window\"(%a, %b) <{padding = dense<" pad         \
  "> : tensor<2x2xi64>, window_dimensions = array<i64: " size ">}> ({ ^bb0(%x: tensor<" e     \
  ">, %y: tensor<" e ">): %s = stablehlo." op " %x, %y : tensor<" e                           \
  "> stablehlo.return %s : tensor<" e "> }) : (tensor<" t ">, tensor<" e ">) -> tensor<" t    \
  "> return %r : tensor<" t "> }"
    {"scan_add", SCAN("21x700xf32", "f32", "add", "1, 700", "[[0, 0], [699, 0]]", "0.0"), "scan",
     1e-5, 0, 0},
    {"scan_add_back", SCAN("21x700xf32", "f32", "add", "1, 700", "[[0, 0], [0, 699]]", "0.0"),
     "scan", 1e-5, 0, 0},
    TURNS("i8"),
    TURNS("f16"),
    TURNS("f32"),
    TURNS("f64"),
    {"turn_plane_complex", TURN("70x133xcomplex<f64>", "[1, 0]", "133x70xcomplex<f64>"),
     "transpose", 0, -100, 100},
    {"turn_lines_complex", TURN("64x256xcomplex<f64>", "[1, 0]", "256x64xcomplex<f64>"),
     "transpose", 0, -100, 100},
    {"turn_blocks_complex", TURN("37x2x2xcomplex<f64>", "[0, 2, 1]", "37x2x2xcomplex<f64>"),
     "transpose", 0, -100, 100},
    {"scan_short", SCAN("210x3xf32", "f32", "maximum", "1, 3", "[[0, 0], [2, 0]]", "0.0"), "scan",
     0, 0, 0},
    {"scan_short_back", SCAN("77x32xbf16", "bf16", "add", "1, 32", "[[0, 0], [0, 31]]", "0.0"),
     "scan", 2e-2, 0, 0},
    {"scan_short_i64", SCAN("33x17xi64", "i64", "multiply", "1, 17", "[[0, 0], [16, 0]]", "1"),
     "scan", 0, 0, 0},
    {"scan_max_down", SCAN("70x37xf32", "f32", "maximum", "70, 1", "[[69, 0], [0, 0]]", "0.0"),
     "scan", 0, 0, 0},
    {"scan_min_up", SCAN("70x37xf64", "f64", "minimum", "70, 1", "[[0, 69], [0, 0]]", "0.0"),
     "scan", 0, 0, 0},
    {"scan_mul_i32", SCAN("20x30xi32", "i32", "multiply", "1, 30", "[[0, 0], [29, 0]]", "1"),
     "scan", 0, 0, 0},
    {"scan_max_i64", SCAN("20x30xi64", "i64", "maximum", "1, 30", "[[0, 0], [0, 29]]", "0"), "scan",
     0, 0, 0},
    {"scan_add_bf16", SCAN("3x70xbf16", "bf16", "add", "1, 70", "[[0, 0], [69, 0]]", "0.0"), "scan",
     1e-1, 0, 0},
    {"scan_max_f32", SCAN("5x43xf32", "f32", "maximum", "1, 43", "[[0, 0], [42, 0]]", "0xFF800000"),
     "scan", 0, 0, 0},
    {"scan_max_f32_back",
     SCAN("5x43xf32", "f32", "maximum", "1, 43", "[[0, 0], [0, 42]]", "0xFF800000"), "scan", 0, 0,
     0},
    {"scan_min_f32", SCAN("5x43xf32", "f32", "minimum", "1, 43", "[[0, 0], [42, 0]]", "0x7F800000"),
     "scan", 0, 0, 0},
    {"scan_min_f32_back",
     SCAN("5x43xf32", "f32", "minimum", "1, 43", "[[0, 0], [0, 42]]", "0x7F800000"), "scan", 0, 0,
     0},
    {"scan_max_f64",
     SCAN("5x43xf64", "f64", "maximum", "1, 43", "[[0, 0], [42, 0]]", "0xFFF0000000000000"), "scan",
     0, 0, 0},
    {"scan_max_f64_back",
     SCAN("5x43xf64", "f64", "maximum", "1, 43", "[[0, 0], [0, 42]]", "0xFFF0000000000000"), "scan",
     0, 0, 0},
    {"scan_min_f64",
     SCAN("5x43xf64", "f64", "minimum", "1, 43", "[[0, 0], [42, 0]]", "0x7FF0000000000000"), "scan",
     0, 0, 0},
    {"scan_min_f64_back",
     SCAN("5x43xf64", "f64", "minimum", "1, 43", "[[0, 0], [0, 42]]", "0x7FF0000000000000"), "scan",
     0, 0, 0},
    {"scan_max_u32", SCAN("5x43xui32", "ui32", "maximum", "1, 43", "[[0, 0], [42, 0]]", "0"),
     "scan", 0, 0, 0},
    {"scan_max_u32_back", SCAN("5x43xui32", "ui32", "maximum", "1, 43", "[[0, 0], [0, 42]]", "0"),
     "scan", 0, 0, 0},
    {"scan_min_u32",
     SCAN("5x43xui32", "ui32", "minimum", "1, 43", "[[0, 0], [42, 0]]", "4294967295"), "scan", 0, 0,
     0},
    {"scan_min_u32_back",
     SCAN("5x43xui32", "ui32", "minimum", "1, 43", "[[0, 0], [0, 42]]", "4294967295"), "scan", 0, 0,
     0},
    {"scan_max_u64", SCAN("5x43xui64", "ui64", "maximum", "1, 43", "[[0, 0], [42, 0]]", "0"),
     "scan", 0, 0, 0},
    {"scan_max_u64_back", SCAN("5x43xui64", "ui64", "maximum", "1, 43", "[[0, 0], [0, 42]]", "0"),
     "scan", 0, 0, 0},
    {"scan_min_u64",
     SCAN("5x43xui64", "ui64", "minimum", "1, 43", "[[0, 0], [42, 0]]", "18446744073709551615"),
     "scan", 0, 0, 0},
    {"scan_min_u64_back",
     SCAN("5x43xui64", "ui64", "minimum", "1, 43", "[[0, 0], [0, 42]]", "18446744073709551615"),
     "scan", 0, 0, 0},
    {"scan_max_i32",
     SCAN("5x43xi32", "i32", "maximum", "1, 43", "[[0, 0], [42, 0]]", "-2147483648"), "scan", 0, 0,
     0},
    {"scan_max_i32_back",
     SCAN("5x43xi32", "i32", "maximum", "1, 43", "[[0, 0], [0, 42]]", "-2147483648"), "scan", 0, 0,
     0},
    {"scan_min_i32", SCAN("5x43xi32", "i32", "minimum", "1, 43", "[[0, 0], [42, 0]]", "2147483647"),
     "scan", 0, 0, 0},
    {"scan_min_i32_back",
     SCAN("5x43xi32", "i32", "minimum", "1, 43", "[[0, 0], [0, 42]]", "2147483647"), "scan", 0, 0,
     0},
    {"scan_max_i64",
     SCAN("5x43xi64", "i64", "maximum", "1, 43", "[[0, 0], [42, 0]]", "-9223372036854775808"),
     "scan", 0, 0, 0},
    {"scan_max_i64_back",
     SCAN("5x43xi64", "i64", "maximum", "1, 43", "[[0, 0], [0, 42]]", "-9223372036854775808"),
     "scan", 0, 0, 0},
    {"scan_min_i64",
     SCAN("5x43xi64", "i64", "minimum", "1, 43", "[[0, 0], [42, 0]]", "9223372036854775807"),
     "scan", 0, 0, 0},
    {"scan_min_i64_back",
     SCAN("5x43xi64", "i64", "minimum", "1, 43", "[[0, 0], [0, 42]]", "9223372036854775807"),
     "scan", 0, 0, 0},
    {"scan_none", SCAN("0x70xf32", "f32", "add", "1, 70", "[[0, 0], [69, 0]]", "0.0"), "scan", 0, 0,
     0},
    {"threefry_u32", BITS("THREE_FRY", "2xui64", "100x1000xui32"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"threefry_u32_odd", BITS("THREE_FRY", "2xui64", "37x101xui32"), "rng_bits", 0, 0,
     INT64_MAX - 1},
    {"threefry_u32_inner", BITS("THREE_FRY", "2xui64", "37x100x3xui32"), "rng_bits", 0, 0,
     INT64_MAX - 1},
    {"threefry_u64", BITS("THREE_FRY", "2xui64", "40000xui64"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"threefry_u8", BITS("THREE_FRY", "2xui64", "1001xui8"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"threefry_scalar", BITS("THREE_FRY", "2xui64", "ui32"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"philox_u32", BITS("PHILOX", "3xui64", "100003xui32"), "rng_bits", 0, -100, -1},
    {"philox_u64", BITS("PHILOX", "2xui64", "4x5003xui64"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"philox_u16", BITS("DEFAULT", "3xui64", "4x503xui16"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"philox_i32", BITS("PHILOX", "2xui64", "0xi32"), "rng_bits", 0, 0, INT64_MAX - 1},
    {"scatter_add_f8", /* rounded after each */
     SCATTER("17x7xf8E4M3FN", "33x1xi32", "33x7xf8E4M3FN", "f8E4M3FN", ROWS_,
             BODY("add", "f8E4M3FN")),
     "scatter", 0, 0, 0},
    {"scatter_max_f8",
     SCATTER("17x7xf8E5M2", "33x1xi32", "33x7xf8E5M2", "f8E5M2", ROWS_, BODY("maximum", "f8E5M2")),
     "scatter", 0, 0, 0},
    {"scatter_add_i4", /* wraps around */
     SCATTER("17x7xi4", "33x1xi32", "33x7xi4", "i4", ROWS_, BODY("add", "i4")), "scatter", 0, 0, 0},
    {"scatter_mul_ui2",
     SCATTER("17x7xui2", "33x1xi32", "33x7xui2", "ui2", ROWS_, BODY("multiply", "ui2")), "scatter",
     0, 0, 0},
};

/* clang-format on */

/* Long lines are scanned in blocks; the reference would take minutes. */
static void long_scan(void **state) {
  (void)state;
  static const char *const text[] = {
      SCAN("2x70001xi32", "i32", "add", "1, 70001", "[[0, 0], [70000, 0]]", "0"),
      SCAN("2x70001xi32", "i32", "minimum", "1, 70001", "[[0, 0], [0, 70000]]", "0")};
  for (int t = 0; t < 2; t++) {
    Module *m = NULL;
    must(stablehlo_read("case.mlir", (Str){text[t], strlen(text[t])}, &m), "long_scan");
    const Op *op = module_main(m)->body->first->next;
    const CpuKernel *k = cpu_kernel_find(op);
    int64_t n = 70001;
    int32_t *x = xmalloc(8 * (size_t)n), *y = xmalloc(8 * (size_t)n), init = 0;
    for (int64_t i = 0; i < 2 * n; i++) x[i] = (int32_t)(next() % 2000000) - 1000000;
    void *s = NULL;
    must(k->prepare(op, &s), "long_scan");
    must(k->run(s, op, (void *[]){x, &init}, (void *[]){y}), "long_scan");
    for (int64_t r = 0; r < 2; r++) {
      int32_t want = init;
      for (int64_t i = 0; i < n; i++) {
        int64_t at = r * n + (t ? n - 1 - i : i);
        want = t ? MIN(want, x[at]) : (int32_t)((uint32_t)want + (uint32_t)x[at]);
        assert_int_equal(y[at], want);
      }
    }
    free(x);
    free(y);
    k->release(s);
    module_free(m);
  }
}

/* Every f16 through a sum with -0, alone and in rows; the sums and products of all with some. */
static void scatter_f16(void **state) {
  (void)state;
  static const char *const text[] = {
      SCATTER("65536x1xf16", "65536x1xi32", "65536x1xf16", "f16", ROWS_, BODY("add", "f16")),
      SCATTER("2048x32xf16", "2048x1xi32", "2048x32xf16", "f16", ROWS_, BODY("multiply", "f16"))};
  uint16_t *x = xmalloc(65536 * 2), *y = xmalloc(65536 * 2), *out = xmalloc(65536 * 2);
  int32_t *at = xmalloc(65536 * 4);
  for (int i = 0; i < 65536; i++) at[i] = i;
  for (int t = 0; t < 2; t++) {
    Module *m = NULL;
    must(stablehlo_read("case.mlir", (Str){text[t], strlen(text[t])}, &m), "scatter_f16");
    const Op *op = module_main(m)->body->first;
    const CpuKernel *k = cpu_kernel_find(op);
    void *s = NULL;
    must(k->prepare(op, &s), "scatter_f16");
    static const uint16_t by[] = {0x8000, 0x0001, 0x3c01, 0x7bff, 0xfc00, 0x14cd};
    for (int b = 0; b < COUNT_OF(by); b++) {
      for (int i = 0; i < 65536; i++) x[i] = (uint16_t)i, y[i] = by[b];
      must(k->run(s, op, (void *[]){x, at, y}, (void *[]){out}), "scatter_f16");
      for (int i = 0; i < 65536; i++) {
        float l = f16_to_f32(x[i]), r = f16_to_f32(y[i]), want = t ? l * r : l + r;
        if (isnan(want)) assert_true(isnan(f16_to_f32(out[i])));
        else assert_int_equal(out[i], f32_to_f16(want));
      }
    }
    k->release(s);
    module_free(m);
  }
  free(x), free(y), free(out), free(at);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases) + 2];
  kernel_cases(cases, COUNT_OF(cases), tests);
  tests[COUNT_OF(cases)] = (struct CMUnitTest){"long_scan", long_scan, NULL, NULL, NULL};
  tests[COUNT_OF(cases) + 1] = (struct CMUnitTest){"scatter_f16", scatter_f16, NULL, NULL, NULL};
  return _cmocka_run_group_tests("kernels", tests, COUNT_OF(tests), NULL, NULL);
}
