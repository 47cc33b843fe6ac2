/* Loops that the program counts: nested, in branches, in a function that is called twice; what it computes stays. */
#include "compile/pass/pass_test.h"

static const char text[] =
    "func.func public @main(%n: tensor<i32>) -> tensor<i32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %two = stablehlo.constant dense<2> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %zero, %s = %zero) : tensor<i32>, tensor<i32>\n" /* 0 */
    "  cond {\n"
    "    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %c : tensor<i1>\n"
    "  } do {\n"
    "    %b = stablehlo.remainder %i, %two : tensor<i32>\n"
    "    %o = stablehlo.compare EQ, %b, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    %t = \"stablehlo.if\"(%o) ({\n"
    "      %w:2 = stablehlo.while(%j = %zero, %u = %s) : tensor<i32>, tensor<i32>\n" /* 1 */
    "      cond {\n"
    "        %d = stablehlo.compare LT, %j, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "        stablehlo.return %d : tensor<i1>\n"
    "      } do {\n"
    "        %k = stablehlo.add %j, %one : tensor<i32>\n"
    "        %v = stablehlo.add %u, %i : tensor<i32>\n"
    "        stablehlo.return %k, %v : tensor<i32>, tensor<i32>\n"
    "      }\n"
    "      stablehlo.return %w#1 : tensor<i32>\n"
    "    }, {\n"
    "      stablehlo.return %s : tensor<i32>\n"
    "    }) : (tensor<i1>) -> tensor<i32>\n"
    "    %m = stablehlo.add %i, %one : tensor<i32>\n"
    "    stablehlo.return %m, %t : tensor<i32>, tensor<i32>\n"
    "  }\n"
    "  %f = func.call @down(%n) : (tensor<i32>) -> tensor<i32>\n"
    "  %g = func.call @down(%r#1) : (tensor<i32>) -> tensor<i32>\n"
    "  %h = stablehlo.add %f, %g : tensor<i32>\n"
    "  %q = stablehlo.add %h, %r#1 : tensor<i32>\n"
    "  return %q : tensor<i32>\n}\n"
    "func.func private @down(%n: tensor<i32>) -> tensor<i32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %r = stablehlo.while(%i = %n) : tensor<i32>\n" /* 2 */
    "  cond {\n"
    "    %c = stablehlo.compare GT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %c : tensor<i1>\n"
    "  } do {\n"
    "    %k = stablehlo.subtract %i, %one : tensor<i32>\n"
    "    stablehlo.return %k : tensor<i32>\n"
    "  }\n"
    "  return %r : tensor<i32>\n}\n";

static void run_with(Module *m, int n, int n_results, int64_t *out) {
  Tensor *in = tensor_make(DT_I32, 0, NULL);
  *(int32_t *)in->data = n;
  Shards arg = {1, &in}, results[4] = {0};
  ok(interp_run(m, STR(""), NULL, &arg, 1, results, n_results));
  for (int i = 0; i < n_results; i++) {
    out[i] = elem_get_i64(results[i].t[0]->dtype, results[i].t[0]->data);
    shards_free(&results[i]);
  }
  tensor_release(in);
}

/* Of 5: turns 0 to 4, of which 1 and 3 have 1 and 3 turns inside, that sum 1 + 9; then 5 and 10 turns down. */
static void counts(void **state) {
  (void)state;
  Module *m = read_program(str_from(text));
  int64_t got[4];
  bool wanted[3] = {true, true, true};
  assert_int_equal(pass_number_loops(m), 3);
  ok(pass_inline(m));
  assert_int_equal(pass_count_loops(m, 3, wanted), 3);
  ok(ir_verify(m));
  run_with(m, 5, 4, got);
  assert_int_equal(got[0], 10);
  assert_int_equal(got[1], 5);
  assert_int_equal(got[2], 4);
  assert_int_equal(got[3], 15);
  module_free(m);
}

static void only_what_is_wanted(void **state) {
  (void)state;
  Module *m = read_program(str_from(text));
  int64_t got[2];
  bool wanted[3] = {false, true, false}, none[3] = {false};
  pass_number_loops(m);
  ok(pass_inline(m));
  assert_int_equal(pass_count_loops(m, 3, none), 0);
  assert_int_equal(pass_count_loops(m, 3, wanted), 1);
  ok(ir_verify(m));
  run_with(m, 5, 2, got);
  assert_int_equal(got[0], 10);
  assert_int_equal(got[1], 4);
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counts),
                                     cmocka_unit_test(only_what_is_wanted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
