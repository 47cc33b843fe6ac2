/* How often loops run, as far as the program tells: what it does not tell is unknown, never a guess. */
#include "sim/estimate_test.h"

typedef struct Loop {
  const char *compare, *next,
      *bound;   /* of the counter %i, which begins at 3; what the bound %b becomes */
  double trips; /* -1: unknown */
} Loop;

static const Loop loops[] = {
    {"LT, %i, %b", "add %i, %one", "%b", 7},
    {"LT, %i, %b", "add %one, %i", "%b", 7},
    {"LE, %i, %b", "add %i, %one", "%b", 8},
    {"GT, %b, %i", "add %i, %two", "%b", 4},
    {"NE, %i, %b", "add %i, %one", "%b", 7},
    {"NE, %i, %b", "add %i, %two", "%b", -1}, /* steps over it */
    {"GT, %i, %b", "add %i, %one", "%b", 0},
    {"GE, %i, %least", "subtract %i, %one", "%b", 6},
    {"LT, %least, %i", "subtract %i, %two", "%b", 3},
    {"LT, %i, %b", "subtract %i, %one", "%b", -1}, /* away from it */
    {"LT, %i, %b", "subtract %one, %i", "%b", -1},
    {"LT, %i, %b", "add %i, %one", "%more", -1}, /* the bound moves */
    {"LT, %i, %n", "add %i, %one", "%b", -1},    /* an argument, seen from outside */
    {"LT, %i, %b", "add %i, %n", "%b", -1},
    {"LT, %i, %b", "multiply %i, %two", "%b", -1},
};

static const char text[] =
    "func.func @main(%%n: tensor<i32>, %%x: tensor<64x128xf32>) -> tensor<64x128xf32> {\n"
    "  %%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %%two = stablehlo.constant dense<2> : tensor<i32>\n"
    "  %%three = stablehlo.constant dense<3> : tensor<i32>\n"
    "  %%ten = stablehlo.constant dense<10> : tensor<i32>\n"
    "  %%least = stablehlo.constant dense<-2> : tensor<i32>\n"
    "  %%r:3 = stablehlo.while(%%i = %%three, %%b = %%ten, %%y = %%x) : tensor<i32>, tensor<i32>, "
    "tensor<64x128xf32>\n"
    "  cond {\n"
    "    %%c = stablehlo.compare %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %%c : tensor<i1>\n"
    "  } do {\n"
    "    %%z = stablehlo.tanh %%y : tensor<64x128xf32>\n"
    "    %%next = stablehlo.%s : tensor<i32>\n"
    "    %%more = stablehlo.add %%b, %%one : tensor<i32>\n"
    "    stablehlo.return %%next, %s, %%z : tensor<i32>, tensor<i32>, tensor<64x128xf32>\n"
    "  }\n"
    "  return %%r#2 : tensor<64x128xf32>\n}\n";

static double runs_of_tanh(const SimReport *r) {
  for (int i = 0; i < r->n_kernels; i++)
    if (!strcmp(r->kernels[i].op, "tanh")) return r->kernels[i].count;
  return 0;
}

static void told_or_unknown(void **state) {
  (void)state;
  for (int i = 0; i < COUNT_OF(loops); i++) {
    const Loop *l = &loops[i];
    Buf b = {0};
    buf_printf(&b, text, l->compare, l->next, l->bound);
    SimReport *r = estimate(b.p, "tpu-v5e");
    double want = l->trips < 0 ? 1 : l->trips;
    if (r->unknown_loops != (l->trips < 0) || runs_of_tanh(r) != want)
      fail_msg("%s; %s: %g runs, %d unknown", l->compare, l->next, runs_of_tanh(r),
               r->unknown_loops);
    sim_report_free(r);
    buf_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(told_or_unknown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
