/* Shapes, checks and steps of layouts whose answers are known by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/plan.h"

static PlanModel model(const char *name) {
  PlanModel m;
  assert_null(plan_model(name, &m));
  return m;
}

static bool near(double a, double b, double share) { return fabs(a / b - 1) < share; }

static void parameters(void **state) {
  (void)state;
  const struct {
    const char *name;
    double all;
  } known[] = {/* as their authors count them, norms and biases aside */
               {"llama2-7b", 6.738e9},      {"llama3-8b", 8.03e9},       {"llama3-70b", 70.55e9},
               {"llama3.1-405b", 405.85e9}, {"mixtral-8x7b", 46.7e9},    {"deepseek-v3", 671.03e9},
               {"qwen3-30b-a3b", 30.53e9},  {"gpt-oss-120b", 116.8e9},   {"gpt3-175b", 174.6e9},
               {"gemma3-12b", 11.77e9},     {"nemotron4-340b", 341.0e9}, {"kimi-k2", 1026.4e9}};
  for (int i = 0; i < COUNT_OF(known); i++) {
    PlanModel m = model(known[i].name);
    if (!near(plan_parameters(&m), known[i].all, 0.01))
      fail_msg("%s: %.4g parameters, not %.4g", known[i].name, plan_parameters(&m), known[i].all);
  }
  PlanModel m = model("llama:34b"); /* nobody's: made up */
  assert_true(near(plan_parameters(&m), 34e9, 0.1));
}

static void work(void **state) {
  (void)state;
  PlanModel m = model("llama3-70b");
  /* 6 operations for each matrix parameter, 12 x layers x hidden x seen keys for attention */
  double p = plan_parameters(&m) - m.vocab * m.hidden, a = 12 * 80 * 8192.0 * 4096;
  assert_true(near(plan_flops_per_token(&m, 8192), 6 * p + a, 0.001));
}

static PlanJob job(const PlanModel *m) {
  return (PlanJob){.model = m,
                   .layout = {.devices = 64,
                              .dp = 2,
                              .tp = 4,
                              .pp = 8,
                              .cp = 1,
                              .ep = 1,
                              .vpp = 1,
                              .seq = 8192,
                              .gbs = 128,
                              .mbs = 1,
                              .zero = PLAN_ZERO_1}};
}

static double step(const char *chip, const PlanJob *j, PlanStep *s) {
  const Chip *c;
  PlanMachine *h;
  assert_null(chip_find(chip, &c));
  assert_null(plan_check(j));
  assert_null(plan_machine_open(c, j->layout.devices, NULL, &h));
  plan_step(h, j, s);
  plan_machine_close(h);
  return s->time_s;
}

static void schedules(void **state) {
  (void)state;
  PlanModel m = model("llama3-70b");
  PlanJob j = job(&m);
  PlanStep s;
  double plain = step("H100", &j, &s), bubble = s.part[PLAN_BUBBLE];
  /* 1F1B: (stages - 1) / microbatches of the work; the last stage has the head */
  double work_s =
      s.part[PLAN_PRODUCTS] + s.part[PLAN_ATTENTION] + s.part[PLAN_PASSES] + s.part[PLAN_TENSOR];
  assert_true(near(bubble / work_s, 7.0 / 64, 0.15));
  j.layout.vpp = 5;
  assert_true(step("H100", &j, &s) < plain);
  assert_true(near(s.part[PLAN_BUBBLE], bubble / 5, 0.05));
}

static void memory(void **state) {
  (void)state;
  PlanModel m = model("llama3-70b");
  PlanJob j = job(&m);
  PlanStep none, full;
  step("H100", &j, &none);
  j.layout.recompute = PLAN_ALL_TAGS;
  assert_true(step("H100", &j, &full) > 1.2 * none.time_s);
  assert_true(full.owner[PLAN_OWN_KEPT] < 0.3 * none.owner[PLAN_OWN_KEPT]);
  /* 16-bit weights of 10 layers over 4 tensor ways and an embedding */
  double mine = (10 * 855.6e6 + 128256 * 8192.0) / 4;
  assert_true(near(none.owner[PLAN_OWN_WEIGHTS], 2 * mine, 0.01));
  assert_true(near(none.owner[PLAN_OWN_SLOTS], 12 * mine / 2, 0.01));
}

static void refused(void **state) {
  (void)state;
  PlanModel m = model("llama3-70b");
  const struct {
    int dp, tp, pp, devices;
    const char *says;
  } bad[] = {{2, 4, 8, 63, "are 64 devices, not 63"},
             {2, 3, 8, 48, "do not divide 64 attention heads"},
             {1, 1, 128, 128, "128 pipeline stages for 80 layers"},
             {0, 4, 8, 0, "0 data ways"}};
  for (int i = 0; i < COUNT_OF(bad); i++) {
    PlanJob j = job(&m);
    j.layout.dp = bad[i].dp, j.layout.tp = bad[i].tp, j.layout.pp = bad[i].pp,
    j.layout.devices = bad[i].devices;
    Err *e = plan_check(&j);
    assert_non_null(e);
    if (!strstr(e->msg, bad[i].says)) fail_msg("'%s' does not say '%s'", e->msg, bad[i].says);
    err_free(e);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parameters), cmocka_unit_test(work),
                                     cmocka_unit_test(schedules), cmocka_unit_test(memory),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
