/* What a loop carries is updated where it is, parts of arguments are read there: the plan copies
 * nothing that can stay. */
#include "compile/compile.h"
#include "compile/pass/pass_test.h"

#define UPDATE(to, from, part, at)                                                   \
  "%" to " = stablehlo.dynamic_update_slice %" from ", %" part ", %" at ", %zero : " \
  "(tensor<64x32xf32>, tensor<1x32xf32>, tensor<i32>, tensor<i32>) -> tensor<64x32xf32>\n"

#define KEEP                                                                               \
  "%p = stablehlo.reshape %x : (tensor<64x32xf32>) -> tensor<1x64x32xf32>\n"               \
  "%s1 = stablehlo.dynamic_update_slice %s, %p, %i, %zero, %zero : (tensor<8x64x32xf32>, " \
  "tensor<1x64x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x32xf32>\n"
#define NO_STACK "%s1 = stablehlo.reshape %s : (tensor<8x64x32xf32>) -> tensor<8x64x32xf32>\n"

/* One turn, from %x to %y, from %s to %s1. */
static const struct Case {
  const char *name, *body;
  int apart; /* updates whose result lies elsewhere than what they update, or has to be moved */
} cases[] = {
    {"one", UPDATE("y", "x", "one", "i") NO_STACK, 0},
    {"two", UPDATE("x1", "x", "one", "i") UPDATE("y", "x1", "two", "j") NO_STACK, 0},
    {"two_with_a_reader_between",
     UPDATE("x1", "x", "one", "i") "%p = stablehlo.dot_general %x1, %x1, contracting_dims = [0] x "
                                   "[0] : (tensor<64x32xf32>, tensor<64x32xf32>) -> "
                                   "tensor<32x32xf32>\n"
                                   "%q = stablehlo.slice %p [0:1, 0:32] : (tensor<32x32xf32>) -> "
                                   "tensor<1x32xf32>\n" UPDATE("y", "x1", "q", "j") NO_STACK,
     0},
    {"three",
     UPDATE("x1", "x", "one", "i") UPDATE("x2", "x1", "two", "j") UPDATE("y", "x2", "one", "j")
         NO_STACK,
     0},
    {"the_old_one_is_read_later",
     UPDATE("x1", "x", "one", "i") "%p = stablehlo.dot_general %x1, %x, contracting_dims = [0] x "
                                   "[0] : (tensor<64x32xf32>, tensor<64x32xf32>) -> "
                                   "tensor<32x32xf32>\n"
                                   "%q = stablehlo.slice %p [0:1, 0:32] : (tensor<32x32xf32>) -> "
                                   "tensor<1x32xf32>\n" UPDATE("y", "x1", "q", "j") NO_STACK,
     2},
    {"a_part_of_the_old_one_is_read_later",
     "%o = stablehlo.dynamic_slice %x, %i, %zero, sizes = [8, 32] : (tensor<64x32xf32>, "
     "tensor<i32>, tensor<i32>) -> tensor<8x32xf32>\n" UPDATE(
         "x1", "x", "one", "i") "%p = stablehlo.dot_general %o, %x1, contracting_dims = [1] x [1] "
                                ": (tensor<8x32xf32>, "
                                "tensor<64x32xf32>) -> tensor<8x64xf32>\n"
                                "%q = stablehlo.slice %p [0:1, 0:32] : (tensor<8x64xf32>) -> "
                                "tensor<1x32xf32>\n" UPDATE("y", "x1", "q", "j") NO_STACK,
     0},
    {"in_one_branch",
     "%c = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "%y = \"stablehlo.if\"(%c) ({\n" UPDATE("x1", "x", "one", "i")
         UPDATE("x2", "x1", "two", "j") "stablehlo.return %x2 : tensor<64x32xf32>\n"
                                        "}, {\n"
                                        "stablehlo.return %x : tensor<64x32xf32>\n"
                                        "}) : (tensor<i1>) -> tensor<64x32xf32>\n" NO_STACK,
     0},
    {"in_both_branches",
     "%c = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "%y = \"stablehlo.if\"(%c) ({\n" UPDATE("x1", "x", "one", "i")
         UPDATE("x2", "x1", "two",
                "j") "stablehlo.return %x2 : tensor<64x32xf32>\n"
                     "}, {\n" UPDATE("x3", "x", "two",
                                     "j") "stablehlo.return %x3 : tensor<64x32xf32>\n"
                                          "}) : (tensor<i1>) -> tensor<64x32xf32>\n" NO_STACK,
     0},
    {"in_a_branch_and_after",
     "%c = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "%z = \"stablehlo.if\"(%c) ({\n"
     "stablehlo.return %x : tensor<64x32xf32>\n"
     "}, {\n" UPDATE("x1", "x", "one", "i") "stablehlo.return %x1 : tensor<64x32xf32>\n"
                                            "}) : (tensor<i1>) -> tensor<64x32xf32>\n" UPDATE(
                                                "y", "z", "two", "j") NO_STACK,
     0},
    {"in_one_branch_and_read_later",
     "%c = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "%z = \"stablehlo.if\"(%c) ({\n"
     "stablehlo.return %x : tensor<64x32xf32>\n"
     "}, {\n" UPDATE("x1", "x", "one",
                     "i") "stablehlo.return %x1 : tensor<64x32xf32>\n"
                          "}) : (tensor<i1>) -> tensor<64x32xf32>\n"
                          "%y = stablehlo.subtract %z, %x : tensor<64x32xf32>\n" NO_STACK,
     2}, /* copies in either branch; the difference is made in place */
    {"the_old_one_is_kept_in_a_stack", "%y = stablehlo.tanh %x : tensor<64x32xf32>\n" KEEP, 0},
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

/* Results of the block that have to be moved, updates elsewhere than in place. */
static int moves_in(const Plan *p, const Block *b) {
  int n = 0;
  for (int k = 0; k < b->n_results; k++)
    n += p->places[b->to[k]].bytes > 4 && b->from[k] != b->to[k];
  for (int k = 0; k < b->n; k++) {
    const Step *s = &b->steps[k];
    n += s->op->kind == OP_DYNAMIC_UPDATE_SLICE && s->in[0] != s->out[0];
    for (int i = 0; i < s->n_blocks; i++) n += moves_in(p, &s->blocks[i]);
  }
  return n;
}

static void carried_values_stay(void **state) {
  const struct Case *c = *state;
  char *text = xasprintf(
      "func.func @main(%%a: tensor<64x32xf32>, %%one: tensor<1x32xf32>, %%n: tensor<i32>, "
      "%%stack: tensor<8x64x32xf32>) -> (tensor<64x32xf32>, tensor<8x64x32xf32>) {\n"
      "%%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%%step = stablehlo.constant dense<1> : tensor<i32>\n"
      "%%two = stablehlo.negate %%one : tensor<1x32xf32>\n"
      "%%r:3 = stablehlo.while(%%i = %%zero, %%x = %%a, %%s = %%stack) : tensor<i32>, "
      "tensor<64x32xf32>, tensor<8x64x32xf32>\n"
      "cond {\n"
      "%%go = stablehlo.compare LT, %%i, %%n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %%go : tensor<i1>\n"
      "} do {\n"
      "%%j = stablehlo.add %%i, %%step : tensor<i32>\n%s"
      "stablehlo.return %%j, %%y, %%s1 : tensor<i32>, tensor<64x32xf32>, tensor<8x64x32xf32>\n}\n"
      "return %%r#1, %%r#2 : tensor<64x32xf32>, tensor<8x64x32xf32>\n}\n",
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
    apart += moves_in(p, &loop->blocks[1]);
  }
  assert_int_equal(loops, 1);
  assert_int_equal(apart, c->apart);
  plan_free(p);
  module_free(m);
  free(text);
}

/* The product reads the second matrix of an argument where it lies; of one that is a result as well,
 * or begins between two lines of cache, a copy. */
static void parts_of_arguments_are_not_copied(void **state) {
  (void)state;
  static const struct {
    const char *rows, *result;
    int views;
  } parts[] = {{"64:128", "%y", 1}, {"63:127", "%y", 0}, {"64:128", "%w", 0}};
  for (int i = 0; i < COUNT_OF(parts); i++) {
    char *text = xasprintf(
        "func.func @main(%%a: tensor<256x24xf32>, %%x: tensor<64x24xf32>) -> tensor<64x24xf32> {\n"
        "%%w = stablehlo.slice %%a [%s, 0:24] : (tensor<256x24xf32>) -> tensor<64x24xf32>\n"
        "%%d = stablehlo.dot_general %%w, %%x, contracting_dims = [1] x [1] : "
        "(tensor<64x24xf32>, tensor<64x24xf32>) -> tensor<64x64xf32>\n"
        "%%y = stablehlo.dot_general %%d, %%x, contracting_dims = [1] x [0] : "
        "(tensor<64x64xf32>, tensor<64x24xf32>) -> tensor<64x24xf32>\n"
        "return %s : tensor<64x24xf32>\n}\n",
        parts[i].rows, parts[i].result);
    Module *m = read_program(str_from(text));
    Target target = {.fusible = fusible, .in_place = in_place, .replicas = 1, .partitions = 1};
    Plan *p = NULL;
    ok(compile_program(m, &target, &p));
    int views = 0;
    for (int k = 0; k < p->body.n; k++) views += p->body.steps[k].kind == STEP_VIEW;
    if (views != parts[i].views) fail_msg("%d views of %s", views, text);
    plan_free(p);
    module_free(m);
    free(text);
  }
}

/* Each of what a loop carries is made from all of it: none can wait for all of its old value's
 * readers. */
static void each_made_from_all(void **state) {
  (void)state;
#define M "tensor<4x4xf32>"
#define DOT(to, a, b)                                                                         \
  "%" to " = stablehlo.dot_general %" a ", %" b ", contracting_dims = [1] x [0] : (" M ", " M \
  ") -> " M "\n"
  static const char text[] =
      "func.func @main(%a0: " M ", %b0: " M ", %c0: " M ", %n: tensor<i32>) -> (" M ", " M ", " M
      ") {\n"
      "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%one = stablehlo.constant dense<1> : tensor<i32>\n"
      "%r:4 = stablehlo.while(%i = %zero, %a = %a0, %b = %b0, %c = %c0) : tensor<i32>, " M ", " M
      ", " M "\n"
      "cond {\n"
      "%go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %go : tensor<i1>\n"
      "} do {\n"
      "%j = stablehlo.add %i, %one : tensor<i32>\n" DOT("ab", "a", "b") DOT("bc", "b", "c")
          DOT("ca", "c", "a") DOT("x", "ab", "c") DOT("y", "bc", "a")
              DOT("z", "ca", "b") "stablehlo.return %j, %x, %y, %z : tensor<i32>, " M ", " M ", " M
                                  "\n}\n"
                                  "return %r#1, %r#2, %r#3 : " M ", " M ", " M "\n}\n";
#undef DOT
#undef M
  Module *m = read_program(str_from(text));
  Target target = {.fusible = fusible, .in_place = in_place, .replicas = 1, .partitions = 1};
  Plan *p = NULL;
  ok(compile_program(m, &target, &p));
  plan_free(p);
  module_free(m);
}

/* Values whose places would lie beyond 64 bits. */
static void more_than_memory_is_an_error(void **state) {
  (void)state;
#define T "tensor<4611686018427387904xi8>"
#define SORTED(of)                                                               \
  "\"stablehlo.sort\"(%" of ") ({\n^bb0(%l: tensor<i8>, %r: tensor<i8>):\n"      \
  "%p = stablehlo.compare LT, %l, %r : (tensor<i8>, tensor<i8>) -> tensor<i1>\n" \
  "stablehlo.return %p : tensor<i1>\n}) {dimension = 0 : i64} : (" T ") -> " T "\n"
  static const char text[] =
      "func.func @main(%x: tensor<i8>) -> (tensor<i8>, " T ") {\n"
      "%a = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<i8>) -> " T "\n"
      "%b = " SORTED("a") "%c = " SORTED(
          "b") "%d = stablehlo.dot_general %b, %c, contracting_dims = [0] x [0] : (" T ", " T
               ") -> tensor<i8>\n"
               "return %d, %c : tensor<i8>, " T "\n}\n";
#undef SORTED
#undef T
  Module *m = read_program(str_from(text));
  Target target = {.fusible = fusible, .in_place = in_place, .replicas = 1, .partitions = 1};
  Plan *p = NULL;
  Err *e = compile_program(m, &target, &p);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_EXHAUSTED);
  err_free(e);
  module_free(m);
}

int main(void) {
  struct CMUnitTest tests[COUNT_OF(cases) + 3];
  for (int i = 0; i < COUNT_OF(cases); i++)
    tests[i] = (struct CMUnitTest){cases[i].name, carried_values_stay, NULL, NULL,
                                   (void *)(uintptr_t)&cases[i]};
  tests[COUNT_OF(cases)] = (struct CMUnitTest)cmocka_unit_test(parts_of_arguments_are_not_copied);
  tests[COUNT_OF(cases) + 1] = (struct CMUnitTest)cmocka_unit_test(more_than_memory_is_an_error);
  tests[COUNT_OF(cases) + 2] = (struct CMUnitTest)cmocka_unit_test(each_made_from_all);
  return _cmocka_run_group_tests("plan", tests, COUNT_OF(tests), NULL, NULL);
}
