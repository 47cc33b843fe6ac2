/* Pictures moved and turned: what comes out is the picture, elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "train/data_priv.h"

#include <math.h>

enum { SIDE = 33 };

static int64_t inside(int64_t i) { return i < 0 ? 0 : i >= SIDE ? SIDE - 1 : i; }

static void all_shifts_and_no_others(void **state) {
  (void)state;
  Field f = {"images", DT_U8, 3, {SIDE, SIDE, 3}};
  uint8_t from[SIDE * SIDE * 3], to[sizeof from];
  int seen[5][5] = {0};
  for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)random_word(1, 1, i);
  for (uint64_t k = 0; k < 1000; k++) {
    memcpy(to, from, sizeof to);
    picture_warp(&f, 2, 0, random_word(7, 7, k), to);
    int hits = 0;
    for (int64_t dy = -2; dy <= 2; dy++)
      for (int64_t dx = -2; dx <= 2; dx++) {
        bool same = true;
        for (int64_t i = 0; i < SIDE * SIDE * 3 && same; i++) {
          int64_t y = i / 3 / SIDE, x = i / 3 % SIDE, c = i % 3;
          same = to[i] == from[(inside(y + dy) * SIDE + inside(x + dx)) * 3 + c];
        }
        hits += same;
        seen[dy + 2][dx + 2] += same;
      }
    assert_int_equal(hits, 1);
  }
  for (int i = 0; i < 25; i++) assert_in_range(seen[i / 5][i % 5], 15, 75); /* 40 each */
}

/* A plane stays one, with the slope turned by the angle. */
static void turns_by_up_to_the_angle(void **state) {
  (void)state;
  Field f = {"images", DT_U8, 3, {SIDE, SIDE, 1}};
  uint8_t p[SIDE * SIDE];
  double least = 90, most = -90;
  for (uint64_t k = 0; k < 300; k++) {
    for (int i = 0; i < SIDE * SIDE; i++) p[i] = (uint8_t)(28 + 6 * (i % SIDE));
    picture_warp(&f, 0, 20, random_word(9, 9, k), p);
    int a = 8 * SIDE + 8, b = 8 * SIDE + 24, c = 24 * SIDE + 8, middle = 16 * SIDE + 16;
    double across = (p[b] - p[a]) / 16.0, down = (p[c] - p[a]) / 16.0;
    double angle = atan2(-down, across) * 180 / M_PI;
    assert_in_range((int)(100 * hypot(across, down)), 590, 610);
    assert_int_equal(p[middle], 28 + 6 * 16);
    least = fmin(least, angle), most = fmax(most, angle);
  }
  assert_true(least > -20.5 && least < -18.5);
  assert_true(most < 20.5 && most > 18.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_shifts_and_no_others),
                                     cmocka_unit_test(turns_by_up_to_the_angle)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
