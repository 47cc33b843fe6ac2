/* Which processes hold the same value: of arguments that are cut, of collectives over some of the processes, of what
 * processes compute of their own number, in loops. */
#include "compile/pass/replication.h"
#include "compile/pass/pass_test.h"

#define GROUPS(a, b) "replica_groups = dense<[[" a "], [" b "]]> : tensor<2x2xi64>"
#define SUM(name, a, b)                                                                       \
  "%" name " = \"stablehlo.all_reduce\"(%a) <{" GROUPS(                                       \
      a, b) ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "            \
            "use_global_device_ids}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"           \
            "%s = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %s : tensor<f32>}) : " \
            "(tensor<4xf32>) -> tensor<4xf32>\n"

static const char text[] =
    "func.func @main(%a: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, "
    "tensor<4xf32>, tensor<ui32>, tensor<4xf32>, tensor<4xf32>) {\n" SUM("across", "0, 2", "1, 3")
        SUM("within", "0, 1",
            "2, 3") "%turned = \"stablehlo.collective_permute\"(%a) <{source_target_pairs = "
                    "dense<[[0, 1], [1, 2], "
                    "[2, 3], [3, 0]]> : tensor<4x2xi64>, channel_handle = "
                    "#stablehlo.channel_handle<handle = 2, "
                    "type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>\n"
                    "%p = stablehlo.partition_id : tensor<ui32>\n"
                    "%two = stablehlo.constant dense<2> : tensor<ui32>\n"
                    "%odd = stablehlo.remainder %p, %two : tensor<ui32>\n"
                    "%f = stablehlo.convert %odd : (tensor<ui32>) -> tensor<f32>\n"
                    "%b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> "
                    "tensor<4xf32>\n"
                    "%both = stablehlo.add %a, %b : tensor<4xf32>\n"
                    "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
                    "%one = stablehlo.constant dense<1> : tensor<i32>\n"
                    "%r:2 = stablehlo.while(%i = %zero, %v = %across) : tensor<i32>, "
                    "tensor<4xf32>\n"
                    "cond {\n%go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
                    "tensor<i1>\n"
                    "stablehlo.return %go : tensor<i1>\n} do {\n"
                    "%j = stablehlo.add %i, %one : tensor<i32>\n"
                    "%w = stablehlo.add %v, %within : tensor<4xf32>\n"
                    "stablehlo.return %j, %w : tensor<i32>, tensor<4xf32>\n}\n"
                    "return %across, %within, %turned, %odd, %both, %r#1 : tensor<4xf32>, "
                    "tensor<4xf32>, "
                    "tensor<4xf32>, tensor<ui32>, tensor<4xf32>, tensor<4xf32>\n}";

static void who_has_the_same(void **state) {
  (void)state;
  static const int cut[] = {0, 0, 2, 2}; /* two parts of the argument, each on two processes */
  static const int want[][4] = {{0, 0, 0, 0}, {0, 0, 2, 2}, {0, 1, 1, 0},
                                {0, 1, 0, 1}, {0, 1, 2, 3}, {0, 0, 2, 2}};
  Module *m = read_program(str_from(text));
  Func *f = module_main(m);
  Arena *mem = arena_new();
  OwnerSets *sets = owner_sets_new(4, mem);
  ir_number(f);
  Owners *owners = replication_find(f, 1, 4, (const Owners[]){cut, NULL}, sets, mem);
  const Op *ret = f->body->last;
  for (int j = 0; j < COUNT_OF(want); j++) {
    Owners l = owners[ret->operands[j]->id];
    for (int p = 0; p < 4; p++)
      if ((l ? l[p] : 0) != want[j][p])
        fail_msg("result %d: process %d has what %d has, want %d", j, p, l ? l[p] : 0, want[j][p]);
  }
  assert_ptr_equal(owners[ret->operands[1]->id], owners[ret->operands[5]->id]);
  owner_sets_free(sets);
  arena_free(mem);
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(who_has_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
