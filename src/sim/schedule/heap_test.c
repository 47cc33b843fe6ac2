/* heap: the best gap, a place that is kept, and free memory too scattered to use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/schedule/schedule.h"

static void test_gaps(void **state) {
  (void)state;
  Heap h = {.size = 100};
  assert_true(heap_gap(&h, 0, 9, 100, -1) == 0);
  assert_true(heap_gap(&h, 0, 9, 101, -1) < 0);
  heap_put(&h, 0, 4, 0, 30);
  heap_put(&h, 3, 9, 50, 10); /* kernels 3 and 4: 30 to 50 and 60 to 100 are free */
  assert_true(heap_gap(&h, 4, 4, 15, -1) == 30);
  assert_true(heap_gap(&h, 4, 4, 25, -1) == 60);
  assert_true(heap_gap(&h, 4, 4, 45, -1) < 0); /* 60 are free, in pieces */
  assert_true(heap_gap(&h, 5, 9, 45, -1) == 0);
  assert_true(heap_gap(&h, 0, 2, 60, -1) == 30);
  assert_true(heap_gap(&h, 5, 9, 20, 30) == 30 && heap_gap(&h, 5, 9, 20, 35) < 0);
  vec_free(&h.chunks);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gaps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
