/* Programs in the cache on disk: what comes back runs the same, what is damaged is made again, what
 * was made for another machine is not taken, writers do not disturb each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_folder.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

static char folder[] = "/tmp/weft-compile-cache-test-XXXXXX";
static Dev *dev;

/* Loops, kernels of several kinds, a region, constants dense and of one value, an argument as a
 * result. */
static const char text[] =
    "module @several {\n"
    "  func.func public @main(%x: tensor<4x6xf32>, %n: tensor<i32>) -> (tensor<4xf32>, "
    "tensor<4x6xf32>, tensor<4x6xf32>, tensor<i32>) {\n"
    "    %c = stablehlo.constant dense<[1.0, -2.0, 3.5, 0.25, 7.0, -1.0]> : tensor<6xf32>\n"
    "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %i0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "    %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "    %cb = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>\n"
    "    %y = stablehlo.multiply %x, %cb : tensor<4x6xf32>\n"
    "    %w:2 = stablehlo.while(%i = %i0, %v = %y) : tensor<i32>, tensor<4x6xf32>\n"
    "    cond {\n"
    "      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %go : tensor<i1>\n"
    "    } do {\n"
    "      %i1 = stablehlo.add %i, %one : tensor<i32>\n"
    "      %t = stablehlo.tanh %v : tensor<4x6xf32>\n"
    "      %v1 = stablehlo.add %t, %cb : tensor<4x6xf32>\n"
    "      stablehlo.return %i1, %v1 : tensor<i32>, tensor<4x6xf32>\n"
    "    }\n"
    "    %s = \"stablehlo.sort\"(%w#1) ({\n"
    "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "      %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "      stablehlo.return %less : tensor<i1>\n"
    "    }) {dimension = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>\n"
    "    %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : "
    "(tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>\n"
    "    %d = stablehlo.dot_general %s, %x, contracting_dims = [1] x [1] : (tensor<4x6xf32>, "
    "tensor<4x6xf32>) -> tensor<4x4xf32>\n"
    "    %m = stablehlo.dot_general %d, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, "
    "tensor<4x6xf32>) -> tensor<4x6xf32>\n"
    "    return %r, %m, %s, %n : tensor<4xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<i32>\n"
    "  }\n"
    "}\n";

static const DevCompileOpts opts = {.replicas = 1, .partitions = 1, .keep = true};

static DevProgram *compile(void) {
  Module *m;
  DevProgram *p;
  Err *e = stablehlo_read("program", STR(text), &m);
  if (!e) e = dev_compile(dev, m, &opts, &p);
  if (e) fail_msg("%s", err_text(e));
  module_free(m);
  return p;
}

/* *found: it came from the cache. */
static DevProgram *make(bool *found) {
  DevProgram *p;
  Buf note = {0};
  *found = dev_cache_get(dev, STR(text), &opts, &note, &p);
  if (*found) {
    assert_true(str_is((Str){note.p, note.n}, "note"));
    assert_int_equal(p->n_args, 2);
    assert_int_equal(p->n_results, 4);
    assert_true(str_is(p->module->name, "several"));
  } else {
    p = compile();
    dev_cache_put(p, STR(text), STR("note"));
  }
  buf_free(&note);
  return p;
}

/* What the program gives after so many turns of its loop. */
static void run(DevProgram *p, int turns, float out[52]) {
  const int64_t dims[2] = {4, 6};
  Tensor *t[2] = {tensor_make(DT_F32, 2, dims), tensor_make(DT_I32, 0, NULL)};
  for (int i = 0; i < 24; i++) ((float *)t[0]->data)[i] = (float)(i % 7) - 2.5f;
  *(int32_t *)t[1]->data = turns;
  Shards args[2] = {{1, &t[0]}, {1, &t[1]}}, res[4] = {{0}};
  DevRun run = {0};
  Err *e = dev->ops->run(p, &(DevPart){.n = 1}, args, NULL, res, &run);
  if (e) fail_msg("%s", err_text(e));
  int at = 0;
  for (int j = 0; j < 3; j++) {
    memcpy(out + at, res[j].t[0]->data, tensor_bytes(res[j].t[0]));
    at += (int)res[j].t[0]->count;
  }
  assert_int_equal(*(int32_t *)res[3].t[0]->data, turns);
  for (int j = 0; j < 4; j++) shards_free(&res[j]);
  tensor_release(t[0]);
  tensor_release(t[1]);
}

static void make_and_run(float out[52], bool *found) {
  DevProgram *p = make(found);
  run(p, 3, out);
  dev_program_release(p);
}

static void remove_entry(const char *path, void *arg) {
  (void)arg;
  unlink(path);
}

static float want[52];

static void comes_back_the_same(void **state) {
  (void)state;
  bool found;
  float got[52];
  make_and_run(want, &found);
  assert_false(found);
  assert_true(test_each_file(folder, NULL, NULL) > 0);
  make_and_run(got, &found);
  assert_true(found);
  assert_memory_equal(got, want, sizeof got);
}

static void flip(const char *path, void *arg) {
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  long at = *(const int *)arg * (s.st_size - 1) / 8;
  FILE *f = fopen(path, "r+b");
  fseek(f, at, SEEK_SET);
  int c = fgetc(f);
  fseek(f, at, SEEK_SET);
  fputc(c ^ 0x10, f);
  fclose(f);
}

static void cut(const char *path, void *arg) {
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  assert_int_equal(truncate(path, s.st_size * *(const int *)arg / 8), 0);
}

static void damaged_entries_are_made_again(void **state) {
  (void)state;
  bool found;
  float got[52];
  for (int k = 0; k < 16; k++) {
    int at = k / 2;
    test_each_file(folder, k % 2 ? flip : cut, &at);
    make_and_run(got, &found);
    assert_false(found);
    assert_memory_equal(got, want, sizeof got);
    make_and_run(got, &found);
    assert_true(found);
    assert_memory_equal(got, want, sizeof got);
  }
}

/* Past the checksum: the reader itself takes no part of an entry for the whole. */
static void part_of_a_program_is_refused(void **state) {
  (void)state;
  DevProgram *p = compile(), *again;
  Buf saved = {0};
  assert_true(dev_program_save(p, &saved));
  for (size_t n = 0; n < saved.n; n += n < 64 || saved.n - n < 600 ? 1 : 97) {
    char *part = memcpy(xmalloc(n + 1), saved.p, n); /* its end is the end of memory */
    Err *e = dev_program_load(dev, (Str){part, n}, &opts, &again);
    if (!e) fail_msg("%zu of %zu bytes were taken for a program", n, saved.n);
    err_free(e);
    free(part);
  }
  assert_null(dev_program_load(dev, (Str){saved.p, saved.n}, &opts, &again));
  dev_program_release(again);
  dev_program_release(p);
  buf_free(&saved);
}

/* In processes of their own: what this one found out about its machine stays as it is. */
static pid_t spawn(char **argv, const char *mode) {
  pid_t pid = fork();
  if (pid) return pid;
  execl(argv[0], argv[0], mode, folder, (char *)NULL);
  _exit(9);
}

static char **own_argv;

static void wait_well(pid_t pid) {
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void other_machines_and_processes(void **state) {
  (void)state;
  test_each_file(folder, remove_entry, NULL);
  pid_t all[4];
  for (int i = 0; i < 4; i++) all[i] = spawn(own_argv, "write");
  for (int i = 0; i < 4; i++) wait_well(all[i]);
  wait_well(spawn(own_argv, "found"));
  wait_well(spawn(own_argv, "narrow"));
}

static void code_that_comes_later(void **state) {
  (void)state;
  test_each_file(folder, remove_entry, NULL);
  pid_t all[2];
  for (int i = 0; i < 2; i++) all[i] = spawn(own_argv, "late");
  for (int i = 0; i < 2; i++) wait_well(all[i]);
  wait_well(spawn(own_argv, "found"));
}

/* Begins as strips: it is in the cache once its code is complete, of which several write at once. */
static int tier_up_child(void) {
  bool found;
  float first[52], again[52];
  unsetenv("WEFT_VINTERP");
  DevProgram *p = compile();
  dev_cache_put(p, STR(text), STR("note"));
  run(p, 100000, first);
  for (int i = 0; i < 3000 && !test_each_file(folder, NULL, NULL); i++) run(p, 10000, again);
  dev_program_release(p); /* the code under way is complete */
  p = make(&found);
  run(p, 100000, again);
  dev_program_release(p);
  return !found || memcmp(first, again, sizeof first) ? 1 : 0;
}

static int as_child(const char *mode) {
  bool found;
  float first[52], again[52];
  setenv("WEFT_CACHE", folder, 1);
  if (!strcmp(mode, "narrow")) setenv("WEFT_VECTOR_BITS", "128", 1);
  if (dev_open("cpu", &dev)) return 3;
  if (!strcmp(mode, "late")) return tier_up_child();
  make_and_run(first, &found);
  if (strcmp(mode, "write") != 0) return found == !strcmp(mode, "found") ? 0 : 1;
  for (int i = 0; i < 20; i++) {
    test_each_file(folder, remove_entry, NULL); /* so that all write it again and again */
    make_and_run(again, &found);
    if (memcmp(first, again, sizeof first) != 0) return 2;
  }
  return 0;
}

int main(int argc, char **argv) {
  own_argv = argv;
  setenv("WEFT_VINTERP", "off", 1); /* what begins as strips is kept later */
  if (argc == 3) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    return as_child(argv[1]);
  }
  if (!mkdtemp(folder)) return 1;
  setenv("WEFT_CACHE", folder, 1);
  if (dev_open("cpu", &dev)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_back_the_same),
      cmocka_unit_test(damaged_entries_are_made_again),
      cmocka_unit_test(part_of_a_program_is_refused),
      cmocka_unit_test(other_machines_and_processes),
      cmocka_unit_test(code_that_comes_later),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_each_file(folder, remove_entry, NULL);
  rmdir(folder);
  dev_close(dev);
  return failed;
}
