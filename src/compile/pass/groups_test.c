/* Convolutions of groups that are products: which ones become dot_general, and that the interpreter
 * answers the same before and after. */
#include "compile/pass/conv_pass_test.h"

#define WEIGHTS "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"

static Case cases[] = {
    {"examples", WEIGHTS, "", "4x6x7x3xf32", "1x5x5x8xf32", "2x3x3x8xf32", GROUPS(4), true},
    {"examples_padded", WEIGHTS, "pad = [[1, 1], [1, 0]]", "4x6x7x3xf32", "1x6x7x8xf32",
     "3x2x3x8xf32", GROUPS(4), true},
    {"examples_step", WEIGHTS, "rhs_dilate = [2, 3]", "4x9x11x2xf32", "1x4x4x12xf32",
     "3x2x2x12xf32", GROUPS(4), true},
    {"channels_first", "[f, b, 0, 1]x[i, o, 0, 1]->[f, b, 0, 1]", "", "4x3x6x6xf32", "1x8x5x5xf32",
     "8x3x2x2xf32", GROUPS(4), true},
    {"several_to_a_group", NHWC, "stride = [2, 1]", "3x7x6x8xf32", "5x5x2x12xf32", "3x2x2x12xf32",
     GROUPS(4), true},
    {"1d", "[f, 0, b]x[i, 0, o]->[0, b, f]", "", "5x9x2xf32", "1x7x10xf32", "3x2x10xf32", GROUPS(5),
     true},
    {"small_windows", NHWC, "", "3x7x6x8xf32", "3x3x2x12xf32", "3x5x4x12xf32", GROUPS(4), false},
    {"depthwise", NHWC, "", "3x6x6x4xf32", "5x5x1x4xf32", "3x2x2x4xf32", GROUPS(4), false},
    {"one_group", WEIGHTS, "", "4x6x7x3xf32", "4x5x5x8xf32", "2x3x3x8xf32", GROUPS(1), false},
    {"reversed", WEIGHTS, "reverse = [true, false]", "4x6x7x3xf32", "1x5x5x8xf32", "2x3x3x8xf32",
     GROUPS(4), false},
};

static void product(void **state) { check_conv(*state, pass_groups); }

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, product, NULL, NULL, &cases[i]};
  return _cmocka_run_group_tests("groups", tests, COUNT_OF(tests), NULL, NULL);
}
