/* base: the map against a plain list, element types against exact values of the formats, the pool
 * under nesting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/units.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void test_map(void **state) {
  (void)state;
  Map *m = map_new();
  char key[32];
  for (int i = 0; i < 5000; i++) {
    snprintf(key, sizeof key, "k%d", i % 3000); /* the second time replaces */
    map_set(m, str_from(key), (void *)(uintptr_t)(i + 1));
  }
  assert_int_equal(map_count(m), 3000);
  for (int i = 0; i < 3000; i++) {
    snprintf(key, sizeof key, "k%d", i);
    uintptr_t want = i < 2000 ? (uintptr_t)i + 3001 : (uintptr_t)i + 1;
    assert_int_equal((uintptr_t)map_get(m, str_from(key)), want);
  }
  assert_null(map_get(m, STR("absent")));
  Str k;
  void *v;
  assert_true(map_at(m, 0, &k, &v)); /* insertion order */
  assert_true(str_is(k, "k0"));
  map_free(m);
}

static void test_arena(void **state) {
  (void)state;
  Arena *a = arena_new();
  unsigned char *p[200];
  for (int i = 0; i < 200; i++) {
    size_t n = (size_t)(i * 997 % 70000);
    p[i] = arena_alloc(a, n);
    assert_int_equal((uintptr_t)p[i] % 16, 0);
    for (size_t k = 0; k < n; k++) assert_int_equal(p[i][k], 0);
    memset(p[i], i, n);
  }
  for (int i = 0; i < 200; i++)
    for (int k = 0; k < i * 997 % 70000; k++) assert_int_equal(p[i][k], i);
  arena_free(a);
}

static void test_errors(void **state) {
  (void)state;
  Err *e = err_new(ERR_EXHAUSTED, "needs %d", 3);
  e = err_hint(err_place(err_wrap(e, "planning '%s'", "f"), "a.mlir:3"), "use less");
  char *s = err_text(e);
  assert_string_equal(s, "RESOURCE_EXHAUSTED: a.mlir:3: planning 'f': needs 3\n  hint: use less");
  free(s);
  err_free(e);
}

/* Largest finite, smallest subnormal and behaviour beyond, from the formats' definitions (OCP FP8,
 * OCP MX, IEEE). */
static void test_float_formats(void **state) {
  (void)state;
  static const struct {
    DType t;
    double max, tiny;
    bool inf, nan;
  } rows[] = {
      {DT_F16, 65504, 0x1p-24, true, true},         {DT_BF16, 0x1.FEp127, 0x1p-133, true, true},
      {DT_F8E5M2, 57344, 0x1p-16, true, true},      {DT_F8E4M3FN, 448, 0x1p-9, false, true},
      {DT_F8E4M3, 240, 0x1p-9, true, true},         {DT_F8E3M4, 15.5, 0x1p-6, true, true},
      {DT_F8E4M3FNUZ, 240, 0x1p-10, false, true},   {DT_F8E5M2FNUZ, 57344, 0x1p-17, false, true},
      {DT_F8E4M3B11FNUZ, 30, 0x1p-13, false, true}, {DT_F4E2M1FN, 6, 0.5, false, false},
      {DT_F6E2M3FN, 7.5, 0.125, false, false},      {DT_F6E3M2FN, 28, 0.0625, false, false},
  };
  for (int i = 0; i < COUNT_OF(rows); i++) {
    DType t = rows[i].t;
    assert_true(float_decode(t, float_encode(t, rows[i].max)) == rows[i].max);
    assert_true(float_decode(t, float_encode(t, -rows[i].tiny)) == -rows[i].tiny);
    assert_true(float_decode(t, float_encode(t, rows[i].tiny / 2)) == 0); /* ties go to even */
    assert_true(float_decode(t, float_encode(t, rows[i].tiny * 0.51)) == rows[i].tiny);
    double over = float_decode(t, float_encode(t, rows[i].max * 4));
    if (rows[i].inf) assert_true(isinf(over));
    else if (rows[i].nan) assert_true(isnan(over));
    else assert_true(over == rows[i].max);
    if (rows[i].nan) assert_true(isnan(float_decode(t, float_encode(t, NAN))));
    /* every code decodes to a value that encodes to the code */
    for (uint64_t c = 0; c < (uint64_t)1 << dtype_bits(t); c++) {
      double v = float_decode(t, c);
      if (!isnan(v)) assert_true(float_encode(t, v) == c);
    }
  }
  for (uint32_t h = 0; h < 65536; h++) { /* the fast paths say the same as the general ones */
    double want = float_decode(DT_F16, h);
    float got = f16_to_f32((uint16_t)h);
    assert_true(isnan(want) ? isnan(got) : want == got);
    assert_true(isnan(want) || f32_to_f16(got) == h);
    if (!isnan(bf16_to_f32((uint16_t)h))) assert_true(f32_to_bf16(bf16_to_f32((uint16_t)h)) == h);
  }
  assert_int_equal(f32_to_f16(65519.99f), 0x7bff);
  assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
  assert_int_equal(f32_to_bf16(1.00390625f), 0x3f80); /* 1 + 2^-8: tie to even */
  assert_true(float_decode(DT_F8E8M0FNU, float_encode(DT_F8E8M0FNU, 0.25)) == 0.25);
}

static void test_int_elements(void **state) {
  (void)state;
  unsigned char b[8];
  elem_set_i64(DT_I4, b, 9);
  assert_int_equal(elem_get_i64(DT_I4, b), -7);
  elem_set_i64(DT_U2, b, 7);
  assert_int_equal(elem_get_i64(DT_U2, b), 3);
  elem_set_f64(DT_I8, b, 1e9);
  assert_int_equal(elem_get_i64(DT_I8, b), 127);
  elem_set_f64(DT_U64, b, 1.8446744073709552e19);
  assert_true((uint64_t)elem_get_i64(DT_U64, b) == UINT64_MAX);
  elem_set_f64(DT_I64, b, -1e30);
  assert_true(elem_get_i64(DT_I64, b) == INT64_MIN);
}

static void test_nearest(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    int d;
  } pairs[] = {{"", "", 0},           {"", "abc", 3},        {"kitten", "sitting", 3},
               {"Train", "train", 0}, {"trian", "train", 1}, {"abcdef", "badcfe", 3}};
  for (int i = 0; i < COUNT_OF(pairs); i++) {
    Str a = str_from(pairs[i].a), b = str_from(pairs[i].b);
    assert_int_equal(str_distance(a, b), pairs[i].d);
    assert_int_equal(str_distance(b, a), pairs[i].d);
  }
  static const char *const names[] = {"epochs", "eval-every", "batch", "label-smoothing"};
  static const struct {
    const char *want, *best;
  } asks[] = {{"epohs", "epochs"},
              {"label", "label-smoothing"},
              {"eval", "eval-every"},
              {"zzz", NULL},
              {"", NULL},
              {"x", NULL}};
  for (int i = 0; i < COUNT_OF(asks); i++) {
    Nearest near = {.want = str_from(asks[i].want)};
    for (int j = 0; j < COUNT_OF(names); j++) nearest_see(&near, names[j]);
    if (asks[i].best) assert_string_equal(near.best, asks[i].best);
    else assert_null(near.best);
  }
}

static int64_t marks[4096];
static void mark(void *arg, int64_t i) {
  __atomic_fetch_add(&((int64_t *)arg)[i], 1, __ATOMIC_RELAXED);
}
static void nest(void *arg, int64_t i) { pool_run(64, mark, (int64_t *)arg + 64 * i); }
static void *from_thread(void *arg) {
  for (int r = 0; r < 200; r++) pool_run(64, nest, arg);
  return NULL;
}

static void test_pool(void **state) {
  (void)state;
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, from_thread, marks);
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < 4096; i++) assert_int_equal(marks[i], 600);
}

typedef struct Slow {
  pthread_t caller;
  bool shared; /* a worker has taken one */
} Slow;

static void sleep_ms(int ms) { nanosleep(&(struct timespec){0, ms * 1000000L}, NULL); }

static void slow_worker(void *arg, int64_t i) {
  Slow *s = arg;
  (void)i;
  bool caller = pthread_equal(pthread_self(), s->caller);
  if (!caller) __atomic_store_n(&s->shared, true, __ATOMIC_RELEASE);
  for (int t = 0; caller && t < 500 && !__atomic_load_n(&s->shared, __ATOMIC_ACQUIRE); t++)
    sleep_ms(1);
  if (!caller) sleep_ms(100);
}

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A caller leaves its core to others while a worker is at the last index. */
static void test_pool_waits(void **state) {
  (void)state;
  Slow s = {.caller = pthread_self()};
  double before = cpu_ms();
  pool_run(2, slow_worker, &s);
  if (!s.shared) skip(); /* one core, or no worker came */
  assert_true(cpu_ms() - before < 50);
}

static void test_units(void **state) {
  (void)state;
  char s[UNITS_TEXT];
  assert_string_equal(units_bytes(s, 1023), "1023 B");
  assert_string_equal(units_bytes(s, 98.3 * 1048576), "98.30 MiB");
  assert_string_equal(units_bytes(s, 1e15), "909.5 TiB");
  assert_string_equal(units_time(s, 0), "0.000 s");
  assert_string_equal(units_time(s, 0.0644), "64.40 ms");
  assert_string_equal(units_time(s, 9.99996e-6), "10.00 us"); /* rounds up: one digit fewer */
  assert_string_equal(units_time(s, 86400), "24.00 h");
  assert_string_equal(units_energy(s, 7.2e6), "2.000 kWh");
  assert_string_equal(units_energy(s, 1.026e11), "28.50 MWh");
  assert_string_equal(units_count(s, 512), "512");
  assert_string_equal(units_count(s, 0.25), "0.2");
  assert_string_equal(units_count(s, 999999), "1.00M");
  assert_string_equal(units_count(s, 6.738e9), "6.74B");
  assert_string_equal(units_count(s, 24.9e9), "24.9B");
  assert_string_equal(units_count(s, 3e11), "300B");
  assert_string_equal(units_count(s, 15e12), "15.0T");
  assert_string_equal(units_usd(s, 0.00054), "$0.00054");
  assert_string_equal(units_usd(s, 3.44e-6), "$0.0000034");
  assert_string_equal(units_usd(s, 12.346), "$12.35");
  assert_string_equal(units_usd(s, (double)NAN), "-");
}

static void test_json_numbers(void **state) {
  (void)state;
  Buf b = {0};
  buf_json_num(&b, "peak_bytes", 18363130880.0);
  buf_cstr(&b, " ");
  buf_json_num(&b, "s", 0.125);
  buf_cstr(&b, " ");
  buf_json_num(&b, "usd", (double)NAN);
  buf_byte(&b, 0);
  assert_string_equal(b.p, "\"peak_bytes\": 18363130880 \"s\": 0.125 \"usd\": null");
  buf_free(&b);
}

static void test_json_strings(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {NULL, "\"\""},
      {"a\"b\\<\n", "\"a\\\"b\\\\\\u003c\\u000a\""},
      {"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80",
       "\"gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80\""},
      {"d\xFF\xFEx", "\"d\\ufffd\\ufffdx\""},        /* no first byte */
      {"\xE2\x82", "\"\\ufffd\\ufffd\""},            /* cut */
      {"\xC0\xAF", "\"\\ufffd\\ufffd\""},            /* '/' in two bytes */
      {"\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\""}, /* half of a pair */
      {"\xF4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    Buf b = {0};
    buf_json_str(&b, cases[i][0]);
    assert_string_equal(b.p, cases[i][1]);
    buf_free(&b);
  }
}

static void test_environment(void **state) {
  (void)state;
  unsetenv("WEFT_TEST");
  assert_int_equal(env_int("WEFT_TEST", 1, 9, 4), 4);
  assert_int_equal(env_choice("WEFT_TEST", "a|bc"), -1);
  setenv("WEFT_TEST", "fuse,plan", 1);
  assert_true(env_lists("WEFT_TEST", "plan"));
  assert_false(env_lists("WEFT_TEST", "pla"));
  unsetenv("WEFT_TEST");
  assert_false(env_lists("WEFT_TEST", "plan"));
  assert_false(env_flag("WEFT_TEST"));
  setenv("WEFT_TEST", "1", 1);
  assert_true(env_flag("WEFT_TEST"));
  setenv("WEFT_TEST", "0", 1);
  assert_false(env_flag("WEFT_TEST"));
  static const char *const numbers[] = {"10", "0", "7x", "x", "-3"};
  for (int i = 0; i < COUNT_OF(numbers); i++) {
    setenv("WEFT_TEST", numbers[i], 1);
    assert_int_equal(env_int("WEFT_TEST", 1, 9, 4), 4);
  }
  static const char *const words[] = {"bc", "b", "bcd", "a"};
  static const int which[] = {1, -1, -1, 0};
  for (int i = 0; i < COUNT_OF(words); i++) {
    setenv("WEFT_TEST", words[i], 1);
    assert_int_equal(env_choice("WEFT_TEST", "a|bc"), which[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_units),         cmocka_unit_test(test_map),
      cmocka_unit_test(test_arena),         cmocka_unit_test(test_errors),
      cmocka_unit_test(test_float_formats), cmocka_unit_test(test_int_elements),
      cmocka_unit_test(test_nearest),       cmocka_unit_test(test_pool),
      cmocka_unit_test(test_json_numbers),  cmocka_unit_test(test_json_strings),
      cmocka_unit_test(test_environment),   cmocka_unit_test(test_pool_waits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
