/* Loops whose length only the data tells: a run on a chip takes as long as the same program with the lengths written in it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "dev/dev.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

/* n turns with m products in each. %s: where the two lengths come from. */
static const char text[] =
    "func.func public @main(%%a: tensor<i32>, %%b: tensor<i32>, %%x: tensor<256x256xf32>) -> "
    "tensor<256x256xf32> {\n"
    "  %%zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %%four = stablehlo.constant dense<4> : tensor<i32>\n"
    "  %%three = stablehlo.constant dense<3> : tensor<i32>\n"
    "  %%r:2 = stablehlo.while(%%i = %%zero, %%y = %%x) : tensor<i32>, tensor<256x256xf32>\n"
    "  cond {\n"
    "    %%c = stablehlo.compare LT, %%i, %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %%c : tensor<i1>\n"
    "  } do {\n"
    "    %%s:2 = stablehlo.while(%%j = %%zero, %%z = %%y) : tensor<i32>, tensor<256x256xf32>\n"
    "    cond {\n"
    "      %%d = stablehlo.compare LT, %%j, %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "      stablehlo.return %%d : tensor<i1>\n"
    "    } do {\n"
    "      %%p = stablehlo.dot_general %%z, %%x, contracting_dims = [1] x [0] : "
    "(tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>\n"
    "      %%k = stablehlo.add %%j, %%one : tensor<i32>\n"
    "      stablehlo.return %%k, %%p : tensor<i32>, tensor<256x256xf32>\n"
    "    }\n"
    "    %%t = stablehlo.tanh %%s#1 : tensor<256x256xf32>\n"
    "    %%n = stablehlo.add %%i, %%one : tensor<i32>\n"
    "    stablehlo.return %%n, %%t : tensor<i32>, tensor<256x256xf32>\n"
    "  }\n"
    "  return %%r#1 : tensor<256x256xf32>\n}\n";

static Tensor *scalar(int v) {
  Tensor *t = tensor_make(DT_I32, 0, NULL);
  *(int32_t *)t->data = v;
  return t;
}

static DevProgram *program(Dev *dev, const char *outer, const char *inner) {
  Buf b = {0};
  Module *m;
  DevProgram *p;
  buf_printf(&b, text, outer, inner);
  ok(stablehlo_read("program", (Str){b.p, b.n}, &m));
  ok(dev_compile(dev, m, &(DevCompileOpts){.replicas = 1, .partitions = 1}, &p));
  module_free(m);
  buf_free(&b);
  return p;
}

static DevRun run(DevProgram *p, int n, int m) {
  const int64_t d[2] = {256, 256};
  Tensor *x = tensor_make(DT_F32, 2, d), *a = scalar(n), *b = scalar(m);
  for (int i = 0; i < 256 * 256; i++) ((float *)x->data)[i] = (float)(i % 7) * 1e-3f;
  Shards args[3] = {{1, &a}, {1, &b}, {1, &x}}, result = {0};
  DevRun r = {0};
  ok(p->dev->ops->run(p, &(DevPart){.n = 1}, args, NULL, &result, &r));
  assert_int_equal(result.t[0]->count, 256 * 256);
  shards_free(&result);
  tensor_release(x), tensor_release(a), tensor_release(b);
  return r;
}

static void within(double a, double b, double share) {
  if (fabs(a - b) > share * b) fail_msg("%g, not %g", a, b);
}
static void near(double a, double b) { within(a, b, 0.01); }

static double reported_s(DevProgram *p) {
  Buf json = {0};
  ok(p->dev->ops->report(p, &json));
  buf_byte(&json, 0);
  const char *at = strstr(json.p, "\"time_s\": ");
  assert_non_null(at);
  double s = atof(at + 10);
  buf_free(&json);
  return s;
}

static void as_long_as_it_ran(void **state) {
  (void)state;
  static const char *const chips[] = {"tpu-v5e", "A100-80GB"};
  for (int i = 0; i < COUNT_OF(chips); i++) {
    Dev *dev;
    ok(dev_open(chips[i], &dev));
    DevProgram *told = program(dev, "%four", "%three"), *inner = program(dev, "%four", "%b"),
               *outer = program(dev, "%a", "%three"), *both = program(dev, "%a", "%b");
    DevRun want = run(told, 4, 3), got = run(both, 4, 3);
    near(got.time_s, want.time_s);
    within(got.energy_j, want.energy_j, 0.1); /* further turns at the mean power */
    near(reported_s(both), want.time_s);
    near(run(inner, 4, 3).time_s, want.time_s);
    near(run(outer, 4, 3).time_s, want.time_s);
    /* each turn more is as long as the others */
    double ten = run(both, 10, 3).time_s, twenty = run(both, 20, 3).time_s;
    near(twenty - ten, 10 * (ten - want.time_s) / 6);
    near(reported_s(both), twenty);
    assert_true(run(both, 0, 3).time_s < want.time_s / 4);
    dev_program_release(told), dev_program_release(inner);
    dev_program_release(outer), dev_program_release(both);
    dev_close(dev);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_long_as_it_ran)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
