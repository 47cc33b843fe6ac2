#include "compile/spmd/partition_test.h"

/* x = 2, y = 4: z is both; a is x and half of y, b the other half. */
/* clang-format off */
static const char three[] =
    "sdy.mesh @m = <[\"x\"=2, \"y\"=4]>\n"
    "sdy.mesh @n = <[\"z\"=8]>\n"
    "sdy.mesh @o = <[\"a\"=4, \"b\"=2]>\n"
    "func.func @main(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}, {\"y\"}]>}, "
        "%b: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@n, [{\"z\"}, {}]>}) -> "
        "(tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@o, [{\"b\"}, {\"a\"}]>}, tensor<16x16xf32>) {\n"
    "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
        "(tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>\n"
    "  %1 = sdy.sharding_constraint %0 <@n, [{\"z\"}, {}]> : tensor<16x16xf32>\n"
    "  %2 = stablehlo.add %1, %1 : tensor<16x16xf32>\n"
    "  %3 = sdy.sharding_constraint %2 <@o, [{\"b\"}, {\"a\"}]> : tensor<16x16xf32>\n"
    "  return %3, %1 : tensor<16x16xf32>, tensor<16x16xf32>}";
/* clang-format on */

static void expect_axes(const Module *m, const Sharding *s, int d, const char *names) {
  Buf b = {0};
  for (int i = 0; i < s->dims[d].n_axes; i++)
    buf_printf(&b, "%.*s ", (int)s->dims[d].axes[i].name.n, s->dims[d].axes[i].name.p);
  assert_string_equal(b.p ? b.p : "", names);
  assert_non_null(module_mesh(m, s->mesh_name));
  buf_free(&b);
}

static void test_three_meshes(void **state) {
  (void)state;
  Module *m = parsed("three", three);
  pass_one_mesh(m, mesh_of_main(m));
  ok(ir_verify(m));
  const Func *f = module_main(m);
  const Sharding *a = sharding(f->arg_attrs[0], f->n_arg_attrs[0]),
                 *b = sharding(f->arg_attrs[1], f->n_arg_attrs[1]),
                 *r = sharding(f->res_attrs[0], f->n_res_attrs[0]);
  expect_axes(m, a, 0, "x ");
  expect_axes(m, a, 1, "y.0 y.1 ");
  expect_axes(m, b, 0, "x y.0 y.1 ");
  expect_axes(m, r, 0, "y.1 ");
  expect_axes(m, r, 1, "x y.0 ");
  module_free(m);
  check_text("three", three);
}

/* Nothing of x = 2, y = 3 is a third. */
static void test_meshes_that_do_not_fit(void **state) {
  (void)state;
  Module *m =
      parsed("apart",
             "sdy.mesh @m = <[\"x\"=2, \"y\"=3]>\n"
             "sdy.mesh @n = <[\"a\"=3, \"b\"=2]>\n"
             "func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}) -> "
             "(tensor<6xf32> {sdy.sharding = #sdy.sharding<@n, [{\"a\"}]>}) {\n"
             "  return %a : tensor<6xf32>}");
  pass_one_mesh(m, mesh_of_main(m));
  const Func *f = module_main(m);
  expect_axes(m, sharding(f->arg_attrs[0], f->n_arg_attrs[0]), 0, "x ");
  expect_axes(m, sharding(f->res_attrs[0], f->n_res_attrs[0]), 0, "a ");
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_three_meshes),
                                     cmocka_unit_test(test_meshes_that_do_not_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
