/* Constants of one value, of more elements than there is memory for, in programs whose results are small: on the
 * CPU, from its cache, and on a chip, within a bound on all memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "base/test_folder.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

static const char huge[] =
    "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %c = stablehlo.constant dense<1.5> : tensor<1099511627776xf32>\n"
    "  %d = stablehlo.constant dense<7> : tensor<1048576x1048576xi32>\n"
    "  %s = stablehlo.slice %c [8:12] : (tensor<1099511627776xf32>) -> tensor<4xf32>\n"
    "  %t = stablehlo.slice %d [3:4, 5:9] : (tensor<1048576x1048576xi32>) -> tensor<1x4xi32>\n"
    "  %u = stablehlo.reshape %t : (tensor<1x4xi32>) -> tensor<4xi32>\n"
    "  %v = stablehlo.convert %u : (tensor<4xi32>) -> tensor<4xf32>\n"
    "  %r = stablehlo.add %s, %a : tensor<4xf32>\n"
    "  %q = stablehlo.multiply %r, %v : tensor<4xf32>\n"
    "  return %q : tensor<4xf32>\n}\n";
static const float huge_out[4] = {10.5f, 17.5f, 24.5f, 31.5f};

/* Small ones that are read from memory: by a product, a sort, as a result. */
static const char dense[] =
    "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %c = stablehlo.constant dense<0.5> : tensor<4x4xf32>\n"
    "  %z = stablehlo.constant dense<0> : tensor<1xi32>\n"
    "  %p = stablehlo.dot_general %c, %a, contracting_dims = [1] x [0] : (tensor<4x4xf32>, "
    "tensor<4xf32>) -> tensor<4xf32>\n"
    "  %s = \"stablehlo.scatter\"(%p, %z, %a) ({\n"
    "  ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n    %w = stablehlo.add %x, %y : tensor<f32>\n"
    "    stablehlo.return %w : tensor<f32>\n  }) {scatter_dimension_numbers = "
    "#stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>} : "
    "(tensor<4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %s : tensor<4xf32>\n}\n";
static const float dense_out[4] = {3, 4, 5, 6};

static const char itself[] = "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                             "  %c = stablehlo.constant dense<2.0> : tensor<4xf32>\n"
                             "  return %c : tensor<4xf32>\n}\n";
static const float itself_out[4] = {2, 2, 2, 2};

static void run(DevProgram *p, const float want[4]) {
  const int64_t n = 4;
  Tensor *t = tensor_make(DT_F32, 1, &n);
  for (int i = 0; i < 4; i++) ((float *)t->data)[i] = (float)i;
  Shards arg = {1, &t}, res = {0};
  DevRun r = {0};
  ok(p->dev->ops->run(p, &(DevPart){.n = 1}, &arg, NULL, &res, &r));
  assert_int_equal(res.t[0]->count, 4);
  assert_memory_equal(res.t[0]->data, want, 4 * sizeof *want);
  shards_free(&res);
  tensor_release(t);
}

static void on(const char *name, const char *text, const float want[4]) {
  static const DevCompileOpts opts = {.replicas = 1, .partitions = 1, .keep = true};
  Dev *dev;
  Module *m;
  DevProgram *p;
  Buf note = {0};
  ok(dev_open(name, &dev));
  ok(stablehlo_read("program", str_from(text), &m));
  ok(dev_compile(dev, m, &opts, &p));
  module_free(m);
  run(p, want);
  run(p, want);
  dev_cache_put(p, str_from(text), STR("note"));
  dev_program_release(p);
  if (dev_cache_get(dev, str_from(text), &opts, &note, &p)) {
    run(p, want);
    dev_program_release(p);
  } else if (!strcmp(name, "cpu")) {
    fail_msg("not found again");
  }
  buf_free(&note);
  dev_close(dev);
}

static void more_than_memory(void **state) {
  (void)state;
  on("cpu", huge, huge_out);
  on("tpu-v5e", huge, huge_out);
  on("A100-80GB", huge, huge_out);
}

static void read_from_memory(void **state) {
  (void)state;
  static const char *const names[] = {"cpu", "interp", "tpu-v5e"};
  for (int i = 0; i < COUNT_OF(names); i++) {
    on(names[i], dense, dense_out);
    on(names[i], itself, itself_out);
  }
}

/* The interpreter needs all elements, and says so. */
static void not_on_the_interpreter(void **state) {
  (void)state;
  Dev *dev;
  Module *m;
  DevProgram *p;
  ok(dev_open("interp", &dev));
  ok(stablehlo_read("program", STR(huge), &m));
  ok(dev_compile(dev, m, &(DevCompileOpts){.replicas = 1, .partitions = 1}, &p));
  const int64_t n = 4;
  Tensor *t = tensor_make(DT_F32, 1, &n);
  Shards arg = {1, &t}, res = {0};
  Err *e = dev->ops->run(p, &(DevPart){.n = 1}, &arg, NULL, &res, &(DevRun){0});
  assert_non_null(e);
  assert_int_equal(e->code, ERR_EXHAUSTED);
  err_free(e);
  tensor_release(t);
  dev_program_release(p);
  module_free(m);
  dev_close(dev);
}

static void remove_entry(const char *path, void *arg) {
  (void)arg;
  unlink(path);
}

int main(void) {
  char folder[] = "/tmp/weft-splat-test-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  setenv("WEFT_CACHE", folder, 1);
  setenv("WEFT_VINTERP", "off", 1); /* what begins as strips is kept later */
  alarm(60);
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)8 << 30, (rlim_t)8 << 30});
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(more_than_memory),
      cmocka_unit_test(read_from_memory),
      cmocka_unit_test(not_on_the_interpreter),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  test_each_file(folder, remove_entry, NULL);
  rmdir(folder);
  return failed;
}
