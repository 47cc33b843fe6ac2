/* What dev_compile does before a backend: sizes that no device has, calls of the caller's left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "ir/exchange.h"
#include "stablehlo/stablehlo.h"

/* One call is given a token, one is not; the second makes a token of its own. */
static const char calls[] =
    "func.func public @main(%a: tensor<4xf32>, %t: !stablehlo.token) -> (tensor<4xf32>, "
    "!stablehlo.token) {\n"
    "  %u = stablehlo.custom_call @weft_host_callback(%t, %a) {has_side_effect = true} : "
    "(!stablehlo.token, tensor<4xf32>) -> !stablehlo.token\n"
    "  %v = stablehlo.custom_call @weft_host_callback(%a) {has_side_effect = true} : "
    "(tensor<4xf32>) -> !stablehlo.token\n"
    "  %w = stablehlo.after_all %u, %v : !stablehlo.token\n"
    "  return %a, %w : tensor<4xf32>, !stablehlo.token\n}\n";

static Err *find_call(Op *op, void *found) {
  *(bool *)found |= op_is_host_callback(op);
  return NULL;
}

static DevProgram *compiled(Dev *dev, const char *text, const DevCompileOpts *opts) {
  Module *m;
  DevProgram *p;
  assert_null(stablehlo_read("program", str_from(text), &m));
  assert_null(dev_compile(dev, m, opts, &p));
  module_free(m);
  return p;
}

static void quiet_calls_leave_tokens(void **state) {
  (void)state;
  Dev *dev;
  bool found = false;
  assert_null(dev_open("interp", &dev));
  DevProgram *p = compiled(dev, calls, &(DevCompileOpts){1, 1, .quiet = true});
  assert_null(ir_walk(p->main->body, find_call, &found));
  assert_false(found);
  assert_null(ir_verify(p->module));
  dev_program_release(p);
  dev_close(dev);
}

/* Each is given up for a result of its size, the first for the first; one that finds none stays its caller's. */
static void donors_find_results(void **state) {
  (void)state;
  Dev *dev;
  assert_null(dev_open("interp", &dev));
  DevProgram *p = compiled(
      dev,
      "func.func public @main(%a: tensor<8x2xf32> {jax.buffer_donor = true}, %b: tensor<16xf32> "
      "{jax.buffer_donor = true}, %c: tensor<3xf32> {jax.buffer_donor = true}, %d: tensor<5xf32> "
      "{tf.aliasing_output = 0 : i32}, %e: tensor<5xi32> {jax.buffer_donor = true}) -> "
      "(tensor<5xf32>, tensor<4x4xf32>, tensor<5xf32>) {\n"
      "  %r = stablehlo.reshape %a : (tensor<8x2xf32>) -> tensor<4x4xf32>\n"
      "  return %d, %r, %d : tensor<5xf32>, tensor<4x4xf32>, tensor<5xf32>\n}\n",
      NULL);
  static const int want[] = {1, -1, -1, 0, 2};
  for (int i = 0; i < COUNT_OF(want); i++) assert_int_equal(p->aliases[i], want[i]);
  dev_program_release(p);
  dev_close(dev);
}

/* 65536 x 65536 is 0 in 32 bits. */
static void more_processes_than_an_int_counts(void **state) {
  (void)state;
  Dev *dev;
  Module *m;
  DevProgram *p;
  assert_null(dev_open("interp:2", &dev));
  assert_null(stablehlo_read("program", str_from(calls), &m));
  Err *e = dev_compile(dev, m, &(DevCompileOpts){.replicas = 65536, .partitions = 65536}, &p);
  assert_non_null(e);
  assert_non_null(strstr(e->msg, "65536 replicas x 65536 partitions, device 'interp:2' has 2"));
  err_free(e);
  module_free(m);
  dev_close(dev);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quiet_calls_leave_tokens),
      cmocka_unit_test(donors_find_results),
      cmocka_unit_test(more_processes_than_an_int_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
