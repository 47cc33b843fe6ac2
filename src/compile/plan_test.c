/* What a loop carries is updated where it is: the plan copies nothing that can stay. */
#include "compile/pass_test.h"

#define UPDATE(to, from, part, at)                                                   \
  "%" to " = stablehlo.dynamic_update_slice %" from ", %" part ", %" at ", %zero : " \
  "(tensor<64x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<64x32xf32>\n"

/* One turn, from %x to %y. */
static const struct Case {
  const char *name, *body;
  int apart; /* updates whose result lies elsewhere than what they update, or has to be moved */
} cases[] = {
    {"one", UPDATE("y", "x", "one", "i"), 0},
    {"two", UPDATE("x1", "x", "one", "i") UPDATE("y", "x1", "two", "j"), 0},
    {"two_with_a_reader_between",
     UPDATE("x1", "x", "one", "i") "%p = stablehlo.dot_general %x1, %x1, contracting_dims = [0] x "
                                   "[0] : (tensor<64x32xf32>, tensor<64x32xf32>) -> "
                                   "tensor<32x32xf32>\n"
                                   "%q = stablehlo.slice %p [0:1, 0:32] : (tensor<32x32xf32>) -> "
                                   "tensor<1x32xf32>\n" UPDATE("y", "x1", "q", "j"),
     0},
    {"three",
     UPDATE("x1", "x", "one", "i") UPDATE("x2", "x1", "two", "j") UPDATE("y", "x2", "one", "j"), 0},
    {"the_old_one_is_read_later",
     UPDATE("x1", "x", "one", "i") "%p = stablehlo.dot_general %x1, %x, contracting_dims = [0] x "
                                   "[0] : (tensor<64x32xf32>, tensor<64x32xf32>) -> "
                                   "tensor<32x32xf32>\n"
                                   "%q = stablehlo.slice %p [0:1, 0:32] : (tensor<32x32xf32>) -> "
                                   "tensor<1x32xf32>\n" UPDATE("y", "x1", "q", "j"),
     2},
};

static bool fusible(void *arg, const Op *op) {
  (void)arg;
  OpClass c = op_info[op->kind].cls;
  return c == OC_EWISE || c == OC_MOVE;
}

static int in_place(void *arg, const Op *op) {
  (void)arg;
  return op->kind == OP_DYNAMIC_UPDATE_SLICE ? 1 : 0;
}

static void carried_values_stay(void **state) {
  const struct Case *c = *state;
  char *text = xasprintf(
      "func.func @main(%%a: tensor<64x32xf32>, %%one: tensor<1x32xf32>, %%n: tensor<i32>) -> "
      "tensor<64x32xf32> {\n"
      "%%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%%step = stablehlo.constant dense<1> : tensor<i32>\n"
      "%%two = stablehlo.negate %%one : tensor<1x32xf32>\n"
      "%%r:2 = stablehlo.while(%%i = %%zero, %%x = %%a) : tensor<i32>, tensor<64x32xf32>\n"
      "cond {\n"
      "%%go = stablehlo.compare LT, %%i, %%n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %%go : tensor<i1>\n"
      "} do {\n"
      "%%j = stablehlo.add %%i, %%step : tensor<i32>\n%s"
      "stablehlo.return %%j, %%y : tensor<i32>, tensor<64x32xf32>\n}\n"
      "return %%r#1 : tensor<64x32xf32>\n}\n",
      c->body);
  Module *m = read_program(str_from(text));
  Target target = {.fusible = fusible, .in_place = in_place, .replicas = 1, .partitions = 1};
  Plan *p = NULL;
  ok(compile_program(m, &target, &p));
  int apart = 0, loops = 0;
  for (int i = 0; i < p->body.n; i++) {
    const Step *loop = &p->body.steps[i];
    if (loop->kind != STEP_WHILE) continue;
    loops++;
    const Block *b = &loop->blocks[1];
    for (int k = 0; k < b->n_results; k++)
      apart += p->places[b->to[k]].bytes > 4 && b->from[k] != b->to[k];
    for (int k = 0; k < b->n; k++)
      apart += b->steps[k].op->kind == OP_DYNAMIC_UPDATE_SLICE &&
               b->steps[k].in[0] != b->steps[k].out[0];
  }
  assert_int_equal(loops, 1);
  assert_int_equal(apart, c->apart);
  plan_free(p);
  module_free(m);
  free(text);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases)];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, carried_values_stay, NULL, NULL,
                                   (void *)(uintptr_t)&cases[i]};
  return _cmocka_run_group_tests("plan", tests, COUNT_OF(tests), NULL, NULL);
}
