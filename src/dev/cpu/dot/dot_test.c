/* Kernels of matrix products against the reference. */
#include "dev/cpu/kernel/kernel_test.h"

#define DOT(batch, contract, l, r, o)                                                            \
  "func.func @main(%a: tensor<" l ">, %b: tensor<" r ">) -> tensor<" o                           \
  "> { %r = stablehlo.dot_general %a, %b, " batch "contracting_dims = " contract " : (tensor<" l \
  ">, tensor<" r ">) -> tensor<" o "> return %r : tensor<" o "> }"
#define FEW "dot:few"     /* few rows times a matrix: its runs along the columns, or along k */
#define SMALL "dot:small" /* operands that stay in the caches: read in place, or a copied rhs */
#define RUNS "dot:runs"   /* many rows that are runs */
#define INT "dot:int"
#define INT16 NULL /* dot:int16 where the host has AVX2 */

/* clang-format off: a program a line */
static Case cases[] = {
    {"few_1", DOT("", "[1] x [0]", "1x700xf32", "700x1030xf32", "1x1030xf32"), FEW, 1e-5, 0, 0},
    {"few_5_odd", DOT("", "[1] x [0]", "5x777xf32", "777x101xf32", "5x101xf32"), FEW, 1e-5, 0, 0},
    {"few_24_turned", DOT("", "[0] x [0]", "530x24xf32", "530x200xf32", "24x200xf32"), FEW, 1e-5, 0,
     0},
    {"few_7_dots", DOT("", "[1] x [1]", "7x1037xf32", "131x1037xf32", "7x131xf32"), FEW, 1e-5, 0,
     0},
    {"few_rhs", DOT("", "[1] x [0]", "257x5300xf32", "5300x10xf32", "257x10xf32"), FEW, 1e-5, 0, 0},
    {"few_rhs_turned", DOT("", "[0] x [1]", "64x515xf32", "3x64xf32", "515x3xf32"), FEW, 1e-5, 0,
     0},
    {"few_batch",
     DOT("batching_dims = [0, 2] x [1, 0], ", "[3] x [3]", "3x2x4x40xf32", "4x3x50x40xf32",
         "3x4x2x50xf32"),
     FEW, 1e-5, 0, 0},
    {"few_bf16", DOT("", "[1] x [0]", "4x90xbf16", "90x333xbf16", "4x333xbf16"), FEW, 8e-3, 0, 0},
    {"few_bf16_dots", DOT("", "[1] x [1]", "4x93xbf16", "333x93xbf16", "4x333xf32"), FEW, 1e-5, 0,
     0},
    {"few_f16", DOT("", "[1] x [0]", "2x90xf16", "90x333xf16", "2x333xf32"), FEW, 1e-5, 0, 0},
    {"few_vectors", DOT("", "[0] x [0]", "100001xf32", "100001xf32", "f32"), FEW, 1e-5, 0, 0},
    {"few_long", DOT("", "[0] x [0]", "70001x2xf32", "70001x9xf32", "2x9xf32"), FEW, 5e-5, 0, 0},
    {"few_kept", DOT("", "[1] x [1]", "7x70xf32", "77x70xf32", "7x77xf32"), FEW, 1e-5, 0, 0},
    {"few_rhs_kept", DOT("", "[1] x [0]", "257x70xbf16", "70x5xbf16", "257x5xf32"), FEW, 1e-5, 0,
     0},
    /* few rows, small operands: what takes less time */
    {"few_small_rhs",
     DOT("batching_dims = [0] x [0], ", "[2] x [2]", "5x64x131xf32", "5x4x131xf32", "5x64x4xf32"),
     FEW, 1e-5, 0, 0},
    {"small_few_turned",
     DOT("batching_dims = [0] x [0], ", "[1] x [1]", "7x128x3xf32", "7x128x16xf32", "7x3x16xf32"),
     SMALL, 1e-5, 0, 0},
    {"small", DOT("", "[1] x [0]", "33x33xf32", "33x33xf32", "33x33xf32"), SMALL, 1e-5, 0, 0},
    {"small_kept", DOT("", "[1] x [1]", "32x64xf32", "70x64xf32", "32x70xf32"), SMALL, 1e-5, 0, 0},
    /* many rows: read where they are */
    {"runs", DOT("", "[1] x [0]", "101x90xf32", "90x61xf32", "101x61xf32"), RUNS, 1e-5, 0, 0},
    {"runs_turned", DOT("", "[1] x [1]", "443x99xf32", "47x99xf32", "443x47xf32"), RUNS, 1e-5, 0,
     0},
    {"runs_blocks", DOT("", "[1] x [0]", "200x1201xf32", "1201x133xf32", "200x133xf32"), RUNS, 2e-5,
     0, 0},
    {"runs_kept", DOT("", "[1] x [0]", "97x130xf32", "130x34xf32", "97x34xf32"), RUNS, 1e-5, 0, 0},
    {"long", DOT("", "[0] x [0]", "9001x37xf32", "9001x50xf32", "37x50xf32"), "dot:long", 2e-5, 0,
     0},
    {"long_few", DOT("", "[0] x [0]", "4200x5xf32", "4200x40xf32", "5x40xf32"), "dot:long", 2e-5, 0,
     0},
    {"long_tiles", DOT("", "[0] x [0]", "4200x360xf32", "4200x190xf32", "360x190xf32"), "dot:long",
     2e-5, 0, 0},
    {"long_straight", DOT("", "[1] x [0]", "26x4500xf32", "4500x29xf32", "26x29xf32"), "dot:long",
     2e-5, 0, 0},
    {"small_odd",
     DOT("batching_dims = [0] x [0], ", "[2] x [1]", "51x7x5xf32", "51x5x7xf32", "51x7x7xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_rhs_turned",
     DOT("batching_dims = [0] x [0], ", "[2] x [2]", "9x13x70xf32", "9x37x70xf32", "9x13x37xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_both_turned",
     DOT("batching_dims = [1] x [0], ", "[0] x [2]", "31x3x50xf32", "3x19x31xf32", "3x50x19xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_pieces", DOT("", "[1] x [0]", "1003x40xf32", "40x90xf32", "1003x90xf32"), SMALL, 1e-5,
     0, 0},
    {"small_columns", DOT("", "[1] x [0]", "30x100xf32", "100x1003xf32", "30x1003xf32"), SMALL,
     1e-5, 0, 0},
    {"small_columns_turned", DOT("", "[0] x [0]", "600x30xf32", "600x201xf32", "30x201xf32"), SMALL,
     1e-5, 0, 0},
    {"small_long", DOT("", "[1] x [0]", "101x1300xf32", "1300x16xf32", "101x16xf32"), SMALL, 1e-5,
     0, 0},
    {"small_heads",
     DOT("batching_dims = [0, 2] x [0, 2], ", "[3] x [3]", "2x50x12x64xf32", "2x60x12x64xf32",
         "2x12x50x60xf32"),
     SMALL, 1e-5, 0, 0},
    {"small_slices",
     DOT("batching_dims = [0, 1] x [0, 2], ", "[3] x [1]", "2x12x40x60xf32", "2x60x12x64xf32",
         "2x12x40x64xf32"),
     SMALL, 1e-5, 0, 0},
    /* on hosts with AVX512_BF16 by dot:bf16-small */
    {"bf16_heads",
     DOT("batching_dims = [0, 2] x [0, 2], ", "[3] x [3]", "2x50x12x64xbf16", "2x61x12x64xbf16",
         "2x12x50x61xbf16"),
     NULL, 8e-3, 0, 0},
    {"bf16_slices",
     DOT("batching_dims = [0, 1] x [0, 2], ", "[3] x [1]", "2x3x137x60xbf16", "2x60x3x19xbf16",
         "2x3x137x19xf32"),
     NULL, 1e-5, 0, 0},
    {"bf16_turned",
     DOT("batching_dims = [0] x [0], ", "[1] x [1]", "3x60x137xbf16", "3x60x135xbf16",
         "3x137x135xbf16"),
     NULL, 8e-3, 0, 0},
    {"bf16_turned_pieces", DOT("", "[0] x [1]", "100x603xbf16", "191x100xbf16", "603x191xf32"),
     NULL, 1e-5, 0, 0},
    {"bf16_pieces", DOT("", "[1] x [0]", "1003x100xbf16", "100x90xbf16", "1003x90xbf16"), NULL,
     8e-3, 0, 0},
    {"bf16_odd", DOT("", "[1] x [0]", "103x101xbf16", "101x33xbf16", "103x33xf32"), NULL, 1e-5, 0,
     0},
    /* on hosts with AVX512_VNNI by dot:int8 */
    {"int8", DOT("", "[1] x [0]", "77x130xi8", "130x301xi8", "77x301xi32"), NULL, 0, -128, 127},
    {"int8_turned", DOT("", "[0] x [1]", "1301x35xi8", "50x1301xi8", "35x50xi32"), NULL, 0, -128,
     127},
    {"int8_unsigned",
     DOT("batching_dims = [0] x [0], ", "[2] x [1]", "3x7x90xui8", "3x90x33xi8", "3x7x33xi32"),
     NULL, 0, 0, 255},
    {"int8_vector", DOT("", "[1] x [0]", "1x131xi8", "131x70xi8", "1x70xi32"), NULL, 0, -128, 127},
    {"int8_narrow", DOT("", "[1] x [1]", "9x33xi8", "17x33xi8", "9x17xi8"), INT, 0, -128, 127},
    {"int_mixed", DOT("", "[0] x [0]", "65x5xui8", "65x50xi16", "5x50xi32"), INT16, 0, 0, 255},
    {"int16", DOT("", "[1] x [0]", "70x331xi16", "331x91xi16", "70x91xi32"), INT16, 0, -32768,
     32767},
    {"int16_apart", DOT("", "[0, 2] x [2, 0]", "7x60x50xi16", "50x33x7xi8", "60x33xi32"), INT16, 0,
     -128, 127},
    {"int32_wraps", DOT("", "[1] x [0]", "6x40xi32", "40x19xi32", "6x19xi32"), INT, 0, -2000000000,
     2000000000},
    {"int64",
     DOT("batching_dims = [0, 2] x [1, 0], ", "[3] x [3]", "3x2x4x40xi64", "4x3x50x40xi64",
         "3x4x2x50xi64"),
     INT, 0, -2000000000, 2000000000},
    {"int64_of_32", DOT("", "[1] x [0]", "5x9xi32", "9x3xi32", "5x3xi64"), INT, 0, -2000000000,
     2000000000},
    {"int_apart", DOT("", "[0, 2] x [2, 0]", "7x6x5xui16", "5x33x7xui16", "6x33xui32"), INT, 0, 0,
     65535},
    {"int4", DOT("", "[1] x [0]", "3x18xi4", "18x5xi4", "3x5xi32"), NULL, 0, -8, 7},
    {"int_bools", DOT("", "[1] x [0]", "30x3xi1", "3x40xi1", "30x40xi1"), INT, 0, 0, 1},
    {"few_1_strips", DOT("", "[1] x [0]", "1x700xf32", "700x128xf32", "1x128xf32"), FEW, 1e-5, 0,
     0},
    {"few_1_strips_bf16", DOT("", "[1] x [0]", "1x701xbf16", "701x192xbf16", "1x192xf32"), FEW,
     1e-5, 0, 0},
};

/* clang-format on */

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  kernel_cases(cases, COUNT_OF(cases), tests);
  return _cmocka_run_group_tests("dot", tests, COUNT_OF(tests), NULL, NULL);
}
