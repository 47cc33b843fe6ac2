/* Constants of one value cost one value: read, verified, written and read again in both forms whatever their
 * size, and however many there are. What files expand besides has a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "stablehlo/stablehlo.h"
#include "stablehlo/text_priv.h"

static Module *read_verified(Str bytes) {
  Module *m;
  ok_with(stablehlo_read("splat", bytes, &m), "read");
  ok_with(ir_verify(m), "verify");
  return m;
}

/* The same module comes back from text and from bytecode, neither of which grows with the shape. */
static void both_forms(const char *text, size_t most) {
  Module *m = read_verified(str_from(text));
  for (int form = 0; form < 2; form++) {
    Buf b = {0};
    if (form) ok_with(stablehlo_write_bytecode(&b, m, NULL), "bytecode");
    else stablehlo_write_text(&b, m, NULL);
    assert_true(b.n < most);
    Module *again = read_verified((Str){b.p, b.n});
    ok_with(stablehlo_compare(m, again), "compare");
    module_free(again);
    buf_free(&b);
  }
  module_free(m);
}

static void of_every_type(void **state) {
  (void)state;
  static const struct {
    const char *type, *value;
  } t[] = {
      {"f32", "1.5"},
      {"f64", "-0.0"},
      {"bf16", "0x7FC0"},
      {"f16", "2.0"},
      {"i1", "true"},
      {"i1", "false"},
      {"i4", "-3"},
      {"ui2", "3"},
      {"i8", "-128"},
      {"ui64", "7"},
      {"f8E4M3FN", "1.0"},
      {"i32", "0"},
      {"i64", "\"0x0100000000000000\""},
      {"complex<f32>", "(1.0,-2.0)"},
      {"complex<f64>", "(0.0,3.0)"},
      {"i1", "\"0x01\""},
  };
  static const char *const shapes[] = {
      "1099511627776x", "1048576x1048576x", "3x", "1x", "", "0x", "8x", "16x"};
  for (int i = 0; i < COUNT_OF(t); i++)
    for (int k = 0; k < COUNT_OF(shapes); k++) {
      if (t[i].value[0] == '"' && !*shapes[k]) continue;
      if (!strcmp(shapes[k], "0x") && t[i].value[0] == '"') continue;
      char text[400];
      snprintf(text, sizeof text,
               "func.func public @main() -> tensor<%s%s> {\n"
               "  %%c = stablehlo.constant dense<%s> : tensor<%s%s>\n"
               "  return %%c : tensor<%s%s>\n}\n",
               shapes[k], t[i].type, t[i].value, shapes[k], t[i].type, shapes[k], t[i].type);
      both_forms(text, 2000);
    }
}

/* More bytes than a machine can address. */
static void as_many_as_there_are(void **state) {
  (void)state;
  Buf b = {0};
  buf_cstr(&b, "func.func public @main() {\n");
  for (int i = 0; i < 20000; i++)
    buf_printf(&b, "  %%%d = stablehlo.constant dense<%d.5> : tensor<%dx4194304xf64>\n", i, i,
               1000000 + i);
  buf_cstr(&b, "  return\n}\n");
  buf_byte(&b, 0);
  both_forms(b.p, 4 << 20);
  buf_free(&b);
}

static void refused(const char *text, const char *why) {
  Module *m;
  Err *e = stablehlo_read("splat", str_from(text), &m);
  if (!e) fail_msg("read: %s", text);
  char *said = err_text(e);
  if (!strstr(said, why)) fail_msg("'%s' says '%s'", text, said);
  free(said);
  err_free(e);
}

static void shapes_that_overflow(void **state) {
  (void)state;
  refused("func.func @f() {\n"
          "%0 = stablehlo.constant dense<1> : tensor<4294967296x4294967296xi32>\nreturn\n}\n",
          "does not fit in 64 bits");
}

/* Lists of numbers are expanded: as long as a list may be. */
static void lists(void **state) {
  (void)state;
  Module *m = read_verified(
      STR("func.func @f(%x: tensor<8x8xf32>, %z: tensor<f32>) -> tensor<4x4xf32> {\n"
          "%0 = \"stablehlo.reduce_window\"(%x, %z) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
          "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) "
          "{window_dimensions = dense<2> : tensor<2xi64>, window_strides = dense<2> : "
          "tensor<2xi64>, padding = dense<0> : tensor<2x2xi64>} : "
          "(tensor<8x8xf32>, tensor<f32>) -> tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>\n}\n"));
  const int64_t *v;
  const Op *op = module_main(m)->body->first;
  assert_int_equal(op_ints(op, "window_strides", &v), 2);
  assert_true(v[0] == 2 && v[1] == 2);
  module_free(m);
  m = read_verified(
      STR("func.func @f(%x: tensor<8xf32>, %z: tensor<f32>) -> tensor<10xf32> {\n"
          "%0 = \"stablehlo.reduce_window\"(%x, %z) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
          "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) "
          "{window_dimensions = array<i64: 1>, padding = dense<1> : tensor<1x2xi64>} : "
          "(tensor<8xf32>, tensor<f32>) -> tensor<10xf32>\nreturn %0 : tensor<10xf32>\n}\n"));
  op = module_main(m)->body->first;
  assert_int_equal(op_ints(op, "padding", &v), 2);
  assert_true(v[0] == 1 && v[1] == 1);
  module_free(m);
  refused("func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
          "%0 = \"stablehlo.transpose\"(%x) {permutation = dense<0> : tensor<1099511627776xi64>} : "
          "(tensor<8xf32>) -> tensor<8xf32>\nreturn %0 : tensor<8xf32>\n}\n",
          "reasonable");
  refused("func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
          "%0 = \"stablehlo.collective_permute\"(%x) {source_target_pairs = dense<0> : "
          "tensor<549755813888x2xi64>} : "
          "(tensor<8xf32>) -> tensor<8xf32>\nreturn %0 : tensor<8xf32>\n}\n",
          "reasonable");
}

/* A resource of 1 KiB that is said once and used five times. */
static void resources(void **state) {
  (void)state;
  Buf b = {0};
  buf_cstr(&b, "func.func public @main() {\n");
  for (int i = 0; i < 5; i++)
    buf_printf(&b, "  %%%d = stablehlo.constant dense_resource<r> : tensor<1024xi8>\n", i);
  buf_cstr(&b, "  return\n}\n{-# dialect_resources: { builtin: { r: \"0x01000000");
  for (int i = 0; i < 1024; i++) buf_cstr(&b, i ? "07" : "08");
  buf_cstr(&b, "\" } } #-}\n");
  Module *m;
  ok_with(text_read_limited("splat", (Str){b.p, b.n}, 5 * 1024, &m), "as much as may be");
  module_free(m);
  Err *e = text_read_limited("splat", (Str){b.p, b.n}, 5 * 1024 - 1, &m);
  assert_non_null(e);
  assert_non_null(strstr(e->msg, "more than the limit"));
  err_free(e);
  buf_free(&b);
}

int main(void) {
  alarm(60); /* what looks at every element does not end */
  setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)8 << 30, (rlim_t)8 << 30});
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_every_type),
      cmocka_unit_test(as_many_as_there_are),
      cmocka_unit_test(shapes_that_overflow),
      cmocka_unit_test(lists),
      cmocka_unit_test(resources),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
