/* How layouts go through operations: the orders are worked out by hand from what each operation moves. */
#include <setjmp.h>

#include "sim/tpu/layout_propagation.h"
#include <cmocka.h>

#define ARRAY(r, ...) \
  .rank = r, .d = (int64_t[]) { __VA_ARGS__ }

static void expect(const HNode *n, const HNode *x, const int *from, bool follows, const int *want) {
  int to[64];
  assert_int_equal(layout_through(n, x, from, to), follows);
  for (int i = 0; i < n->rank && want; i++) assert_int_equal(to[i], want[i]);
}

static void moves_nothing(void **state) {
  (void)state;
  HNode x = {.kind = H_PARAM, ARRAY(3, 4, 16, 128)}, *in[] = {&x};
  HNode turned = {
      .kind = H_TRANSPOSE, .in = in, .dims = (int64_t[]){2, 0, 1}, ARRAY(3, 128, 4, 16)};
  HNode sum = {.kind = H_REDUCE, .in = in, .n_dims = 1, .dims = (int64_t[]){1}, ARRAY(2, 4, 128)};
  HNode repeated = {
      .kind = H_BCAST, .in = in, .dims = (int64_t[]){0, 2, 3}, ARRAY(4, 4, 9, 16, 128)};
  expect(&turned, &x, (int[]){2, 1, 0}, true, (int[]){0, 2, 1});
  expect(&sum, &x, (int[]){2, 1, 0}, true, (int[]){1, 0});
  expect(&sum, &x, (int[]){0, 2, 1}, true, (int[]){0, 1});
  expect(&repeated, &x, (int[]){2, 1, 0}, true, (int[]){3, 2, 1, 0});
}

/* Rows that fill tiles are joined as they lie, lanes are not, nor what does not lie beside each other. */
static void reshapes(void **state) {
  (void)state;
  HNode x = {.kind = H_PARAM, ARRAY(3, 4, 16, 128)}, *in[] = {&x};
  HNode rows = {.kind = H_RESHAPE, .in = in, ARRAY(2, 64, 128)};
  HNode lanes = {.kind = H_RESHAPE, .in = in, ARRAY(2, 4, 2048)};
  HNode ones = {.kind = H_RESHAPE, .in = in, ARRAY(4, 4, 1, 16, 128)};
  expect(&rows, &x, (int[]){2, 1, 0}, true, (int[]){1, 0});
  expect(&rows, &x, (int[]){2, 0, 1}, false, NULL);
  expect(&lanes, &x, (int[]){2, 1, 0}, false, NULL);
  expect(&ones, &x, (int[]){1, 2, 0}, true, (int[]){2, 3, 0, 1});
}

/* The rows of [B, T, K] x [K, N] lie as they do in the operand, behind the columns. */
static void dots(void **state) {
  (void)state;
  HConv c = {.batch = 1, .lhs = "mmk", .rhs = "kn", .out = "mmn"};
  HNode x = {.kind = H_PARAM, ARRAY(3, 8, 32, 64)}, *in[] = {&x};
  HNode dot = {.kind = H_CONV, .in = in, .conv = &c, ARRAY(3, 8, 32, 256)};
  expect(&dot, &x, (int[]){2, 0, 1}, true, (int[]){2, 0, 1});
  expect(&dot, &x, (int[]){2, 1, 0}, true, (int[]){2, 1, 0});
  assert_int_equal(layout_row(&dot, 1), 1);
  assert_int_equal(layout_row(&(HNode){.rank = 3, .conv = &(HConv){.lhs = "kmm", .out = "nmm"}}, 2),
                   2);
}

static LayoutFound params(const LayoutWalk *w, const HNode *n, int *order) {
  (void)w;
  if (n->kind != H_PARAM) return LAYOUT_BEFORE;
  value_order_rest(order, 0, n->rank);
  return LAYOUT_HERE;
}

/* A walk takes the first operand that tells, or gives up with the first of the result's shape; it ends at kinds that it was not given. */
static void walks(void **state) {
  (void)state;
  HNode x = {.kind = H_PARAM, ARRAY(2, 8, 128)}, one = {.kind = H_IOTA, ARRAY(2, 8, 128)};
  HNode *both[] = {&one, &x};
  HNode n = {.kind = H_EWISE, .n_in = 2, .in = both, ARRAY(2, 8, 128)};
  int order[64];
  LayoutWalk w = {.source = params, .through = 1 << H_EWISE, .left = 10};
  assert_true(layout_from(&w, &n, order) && order[0] == 1 && w.at == &x);
  w.first = true;
  assert_false(layout_from(&w, &n, order));
  w = (LayoutWalk){.source = params, .through = 1 << H_PAD, .left = 10};
  assert_false(layout_from(&w, &n, order));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moves_nothing),
      cmocka_unit_test(reshapes),
      cmocka_unit_test(dots),
      cmocka_unit_test(walks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
