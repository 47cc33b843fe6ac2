/* The cache on disk: what comes back, what is refused, writers at once, the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cache.h"
#include "base/test_folder.h"

static char folder[] = "/tmp/weft-cache-test-XXXXXX";

static char *bytes_of(size_t n, int seed) {
  char *p = xmalloc(n + 1);
  for (size_t i = 0; i < n; i++) p[i] = (char)(seed + (int)(i * 7 + i / 251));
  return p;
}

static bool holds(Str key, const char *want, size_t n) {
  Buf file;
  Str v;
  if (!cache_get(key, &file, &v)) return false;
  bool same = v.n == n && memcmp(v.p, want, n) == 0 && (uintptr_t)v.p % 16 == 0;
  buf_free(&file);
  assert_true(same); /* another value than was put is worse than none */
  return true;
}

static void returns_what_was_put(void **state) {
  (void)state;
  for (size_t n = 0; n < 70000; n = n * 3 + 1) {
    char *v = bytes_of(n, 3), *k = xasprintf("key %zu", n);
    assert_false(holds(str_from(k), v, n));
    cache_put(str_from(k), (Str){v, n});
    assert_true(holds(str_from(k), v, n));
    free(v);
    free(k);
  }
}

typedef struct Damage {
  long at; /* byte to change; -1: cut to half */
} Damage;

static void damage(const char *path, void *arg) {
  const Damage *d = arg;
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  if (d->at < 0) {
    assert_int_equal(truncate(path, s.st_size / 2), 0);
    return;
  }
  if (d->at >= s.st_size) return;
  FILE *f = fopen(path, "r+b");
  fseek(f, d->at, SEEK_SET);
  int c = fgetc(f);
  fseek(f, d->at, SEEK_SET);
  fputc(c ^ 0x40, f);
  fclose(f);
}

static void remove_file(const char *path, void *arg) {
  (void)arg;
  remove(path);
}

static void refuses_damaged_entries(void **state) {
  (void)state;
  Str key = STR("one key");
  char *v = bytes_of(100, 9);
  for (long at = -1; at < 48 + 100; at++) {
    test_each_file(folder, remove_file, NULL);
    cache_put(key, (Str){v, 100});
    assert_true(holds(key, v, 100));
    test_each_file(folder, damage, &(Damage){at});
    Buf file;
    Str got;
    if (cache_get(key, &file, &got)) { /* only the padding may differ */
      assert_true(at >= 40 + 7 && at < 48);
      assert_memory_equal(got.p, v, 100);
      buf_free(&file);
    }
    cache_put(key, (Str){v, 100}); /* made again */
    assert_true(holds(key, v, 100));
  }
  free(v);
}

static void takes_writers_at_once(void **state) {
  (void)state;
  char *v = bytes_of(200000, 1);
  for (int p = 0; p < 4; p++)
    if (fork() == 0) {
      for (int i = 0; i < 50; i++) {
        char k[16];
        snprintf(k, sizeof k, "shared %d", i % 5);
        cache_put(str_from(k), (Str){v, 200000});
        if (!holds(str_from(k), v, 200000)) _exit(1);
      }
      _exit(0);
    }
  for (int p = 0; p < 4; p++) {
    int status;
    wait(&status);
    assert_int_equal(status, 0);
  }
  free(v);
}

static void add_size(const char *path, void *arg) {
  struct stat s;
  if (stat(path, &s) == 0) *(int64_t *)arg += s.st_size;
}

static void stays_within_its_limit(void **state) {
  (void)state;
  char *v = bytes_of(50000, 2);
  for (int i = 0; i < 400; i++) { /* 20 MB against a limit of 1 */
    char k[16];
    snprintf(k, sizeof k, "many %d", i);
    v[0] = (char)i, v[1] = (char)(i >> 8);
    cache_put(str_from(k), (Str){v, 50000});
  }
  int64_t bytes = 0;
  test_each_file(folder, add_size, &bytes);
  assert_true(bytes < 12 << 20); /* trimmed now and then, not at each entry */
  assert_true(holds(STR("many 399"), v, 50000));
  free(v);
}

static void knows_its_build(void **state) {
  (void)state;
  assert_non_null(build_id());
  assert_true(strlen(build_id()) >= 16);
}

int main(void) {
  if (!mkdtemp(folder)) return 1;
  setenv("WEFT_CACHE", folder, 1);
  setenv("WEFT_CACHE_MB", "1", 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(returns_what_was_put),  cmocka_unit_test(refuses_damaged_entries),
      cmocka_unit_test(takes_writers_at_once), cmocka_unit_test(stays_within_its_limit),
      cmocka_unit_test(knows_its_build),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_each_file(folder, remove_file, NULL);
  rmdir(folder);
  return failed;
}
