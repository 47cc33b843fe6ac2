/* Convolutions that are products: which ones become dot_general, and that the interpreter answers
 * the same before and after. */
#include "compile/pass/conv_pass_test.h"

static Case cases[] = {
    {"1x1", NHWC, "", "2x5x4x3xf32", "1x1x3x6xf32", "2x5x4x6xf32", GROUPS(1), true},
    {"1x1_step", NHWC, "stride = [2, 3]", "2x5x7x3xf32", "1x1x3x6xf32", "2x3x3x6xf32", GROUPS(1),
     true},
    {"1x1_step_inside", NHWC, "stride = [2, 2], pad = [[-1, 0], [0, -2]]", "2x6x7x3xf32",
     "1x1x3x6xf32", "2x3x3x6xf32", GROUPS(1), true},
    {"1x1_padded", NHWC, "pad = [[1, 0], [-1, 2]]", "2x5x4x3xf32", "1x1x3x6xf32", "2x6x5x6xf32",
     GROUPS(1), true},
    {"1x1_step_padded", NHWC, "stride = [2, 2], pad = [[1, 1], [0, 0]]", "2x5x4x3xf32",
     "1x1x3x6xf32", "2x4x2x6xf32", GROUPS(1), false},
    {"1x1_data", "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
     "pad = [[0, 1], [0, 0]], lhs_dilate = [2, 2]", "2x3x4x6xf32", "1x1x3x6xf32", "2x6x7x3xf32",
     GROUPS(1), true},
    {"1x1_weights", "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
     "pad = [[0, 0], [0, -1]], rhs_dilate = [1, 2]", "4x5x6x3xf32", "4x5x3x6xf32", "1x1x3x6xf32",
     GROUPS(1), true},
    {"1x1_channels_first", "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "", "2x3x5x4xf32",
     "6x3x1x1xf32", "2x6x5x4xf32", GROUPS(1), false},
    {"one_image_channels_first", "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "", "1x3x5x4xf32",
     "6x3x1x1xf32", "1x6x5x4xf32", GROUPS(1), true},
    {"whole_map", NHWC, "", "2x5x4x3xf32", "5x4x3x6xf32", "2x1x1x6xf32", GROUPS(1), true},
    {"whole_map_reversed", NHWC, "reverse = [true, false]", "2x5x4x3xf32", "5x4x3x6xf32",
     "2x1x1x6xf32", GROUPS(1), false},
    {"whole_width", NHWC, "pad = [[0, 0], [0, 0]]", "2x5x4x3xf32", "1x4x3x6xf32", "2x5x1x6xf32",
     GROUPS(1), true},
    {"3x3", NHWC, "pad = [[1, 1], [1, 1]]", "2x5x4x3xf32", "3x3x3x6xf32", "2x5x4x6xf32", GROUPS(1),
     false},
    {"1d", "[b, 0, f]x[0, i, o]->[b, 0, f]", "", "2x5x3xf32", "1x3x6xf32", "2x5x6xf32", GROUPS(1),
     true},
    {"0d", "[b, f]x[i, o]->[b, f]", "", "2x3xf32", "3x6xf32", "2x6xf32", GROUPS(1), true},
    {"groups", NHWC, "", "2x5x4x4xf32", "1x1x2x6xf32", "2x5x4x6xf32", GROUPS(2), false},
    {"no_batch", NHWC, "", "0x5x4x3xf32", "1x1x3x6xf32", "0x5x4x6xf32", GROUPS(1), false},
};

static void product(void **state) { check_conv(*state, pass_products); }

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, product, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("products", tests, COUNT_OF(tests), NULL, NULL);
}
