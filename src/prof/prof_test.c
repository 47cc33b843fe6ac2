/* Timelines, parts and the input pipeline against numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "prof/prof_priv.h"

#include <math.h>
#include <stdlib.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-12)

/* 1 ms of compute, then a loop of three times (0.5 ms memory, 0.25 ms network): 3.25 ms. */
static Prof *example(int steps, double gap_s) {
  Prof *p = prof_new("example");
  prof_device(p, &(ProfDevice){.kind = "chip",
                               .is_virtual = true,
                               .peak_flops = 1e12,
                               .bandwidth = 1e11,
                               .memory_bytes = 100,
                               .link = 1e9});
  ProfProgram *q = prof_program(p, "main", 3, 1, 2);
  q->time_s = 3.25e-3;
  q->flops = 1e9;
  q->loops[0] = (ProfLoop){0.75e-3, 3, -1};
  const ProfKernel base = {.op = "x", .place = "a.py:1 (f)", .shapes = "", .count = 1, .loop = -1};
  for (int i = 0; i < 3; i++) q->kernels[i] = base;
  q->kernels[0].name = "first";
  q->kernels[0].bound = PROF_COMPUTE;
  q->kernels[0].time_s = 1e-3;
  q->kernels[0].flops = 1e9;
  q->kernels[1].name = "second";
  q->kernels[1].bound = PROF_MEMORY;
  q->kernels[1].time_s = 0.5e-3;
  q->kernels[2].name = "third";
  q->kernels[2].collective = true;
  q->kernels[2].bound = PROF_NETWORK;
  q->kernels[2].time_s = 0.25e-3;
  for (int i = 1; i < 3; i++) q->kernels[i].count = 3, q->kernels[i].loop = 0;
  q->kernels[1].start_s = 1e-3;
  q->kernels[2].start_s = 1.5e-3;
  q->lives[0] =
      (ProfLife){"w", "argument", "f32[8]", "", "parameters", 40, 0, 3.25e-3, false, -1, -1};
  q->lives[1] =
      (ProfLife){"t", "temporary", "f32[2]", "a.py:2", "working", 30, 1e-3, 2e-3, false, -1, -1};
  q->peak_bytes = 70;
  prof_program_end(p, q);
  for (int s = 0; s < steps; s++) prof_run(p, 0, 0, s, s * (3.25e-3 + gap_s), 3.25e-3);
  return p;
}

static void loops_are_written_out(void **state) {
  (void)state;
  Prof *p = example(1, 0);
  const ProfProgram *q = p->programs.v[0];
  static const int kernels[] = {0, 1, 2, 1, 2, 1, 2};
  assert_int_equal(q->n_spans, COUNT_OF(kernels));
  double at = 0;
  for (int i = 0; i < q->n_spans; i++) {
    assert_int_equal(q->spans[i].kernel, kernels[i]);
    NEAR(q->spans[i].start_s, at);
    at += q->spans[i].time_s;
  }
  NEAR(at, q->time_s);
  prof_free(p);
}

static void long_loops_are_one_span_a_kernel(void **state) {
  (void)state;
  Prof *p = example(1, 0);
  ProfProgram *q = p->programs.v[0];
  q->loops[0].trips = q->kernels[1].count = q->kernels[2].count = 1e6;
  prof_program_end(p, q);
  assert_int_equal(q->n_spans, 3);
  double sum = 0;
  for (int i = 0; i < 3; i++) sum += q->spans[i].time_s;
  assert_true(fabs(sum - (1e-3 + 1e6 * 0.75e-3)) < 1e-6);
  prof_free(p);
}

static void parts_add_up(void **state) {
  (void)state;
  Prof *p = example(3, 1e-3);
  p->runs.v[1].input_s = 0.6e-3;
  p->runs.v[1].transfer_s = 0.1e-3;
  prof_end(p);
  ProfSummary *s;
  assert_null(prof_summary(p, 0, &s));
  assert_int_equal(s->n_steps, 3);
  const ProfStep *t = &s->steps[1];
  NEAR(t->time_s, 4.25e-3);
  NEAR(t->part_s[PART_COMPUTE], 1e-3);
  NEAR(t->part_s[PART_MEMORY], 1.5e-3);
  NEAR(t->part_s[PART_COLLECTIVE], 0.75e-3);
  NEAR(t->part_s[PART_INPUT], 0.6e-3);
  NEAR(t->part_s[PART_TRANSFER], 0.1e-3);
  NEAR(t->part_s[PART_IDLE], 0.3e-3);
  NEAR(s->steps[0].time_s, 3.25e-3); /* nothing came before it */
  NEAR(s->mean.time_s, 4.25e-3);
  assert_true(fabs(s->mfu - 1e9 / 4.25e-3 / 1e12) < 1e-9);
  assert_string_equal(s->totals[0].kernel->name, "second"); /* 1.5 ms a step */
  assert_int_equal(s->totals[0].count, 6);
  prof_free(p);
}

/* Batches of 4 ms and 1 MB over 1 GB/s before steps of 3.25 ms: a step each 4 ms; the device waits
 * 0.75 ms, never for the transfer, which the making of the next batch hides. */
static void slow_input_decides(void **state) {
  (void)state;
  Prof *p = example(5, 0);
  double make[5] = {4e-3, 4e-3, 4e-3, 4e-3, 4e-3};
  prof_join_input(p, &(ProfInput){5, make, 1e6, 3});
  prof_end(p);
  for (int k = 0; k < 5; k++) NEAR(p->runs.v[k].start_s, 4e-3 * (k + 1) + 1e-3);
  ProfSummary *s;
  assert_null(prof_summary(p, 0, &s));
  NEAR(s->steps[3].time_s, 4e-3);
  NEAR(s->steps[3].part_s[PART_INPUT] + s->steps[3].part_s[PART_TRANSFER], 0.75e-3);
  NEAR(s->make_s, 4e-3);
  prof_free(p);
}

/* A fast maker stops when `ahead` batches are ready: batch k is begun when step k - 3 has taken its
 * own. */
static void fast_input_is_hidden(void **state) {
  (void)state;
  Prof *p = example(6, 0);
  double make[6] = {1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4};
  prof_join_input(p, &(ProfInput){6, make, 0, 3});
  prof_end(p);
  for (int k = 0; k < 6; k++) NEAR(p->runs.v[k].start_s, 1e-4 + 3.25e-3 * k);
  NEAR(p->host.v[4].start_s, p->runs.v[1].start_s);
  prof_free(p);
}

static void memory_over_time(void **state) {
  (void)state;
  Prof *p = example(1, 0);
  int n;
  ProfChange *c = prof_changes(p->programs.v[0], false, &n);
  assert_int_equal(n, 4);
  double now = 0, peak = 0;
  for (int i = 0; i < n; i++) now += c[i].bytes, peak = fmax(peak, now);
  NEAR(now, 0);
  NEAR(peak, p->programs.v[0]->peak_bytes);
  free(c);
  prof_free(p);
}

static void xspace_comes_back(void **state) {
  (void)state;
  for (int beside_host = 0; beside_host < 2; beside_host++) {
    Prof *p = example(4, 0.5e-3), *q;
    p->runs.v[2].input_s = 0.25e-3;
    prof_host(p, prof_lane(p, "loader"), HOST_INPUT, "batch", 1e-3, 2e-3);
    prof_end(p);
    Buf b = {0};
    prof_xspace(p, beside_host, &b);
    assert_null(prof_read_xspace((Str){b.p, b.n}, &q));
    assert_string_equal(q->title, p->title);
    assert_int_equal(q->runs.n, 4);
    assert_int_equal(q->programs.n, 1);
    assert_int_equal(q->programs.v[0]->n_lives, 2);
    assert_string_equal(q->programs.v[0]->lives[1].place, "a.py:2");
    assert_string_equal(q->programs.v[0]->lives[1].owner, "working");
    assert_string_equal(q->programs.v[0]->kernels[1].place, "a.py:1 (f)");
    assert_int_equal(q->host.n, 1);
    assert_int_equal(q->host.v[0].kind, HOST_INPUT);
    ProfSummary *s, *t;
    assert_null(prof_summary(p, 0, &s));
    assert_null(prof_summary(q, 0, &t));
    for (int i = 0; i < PART_COUNT; i++)
      assert_true(fabs(s->mean.part_s[i] - t->mean.part_s[i]) < 1e-11);
    for (size_t cut = 0; cut < b.n; cut += 1 + b.n / 97) { /* cut off anywhere: an error or less */
      Prof *r = NULL;
      Err *e = prof_read_xspace((Str){b.p, cut}, &r);
      assert_true(!e == !!r);
      err_free(e);
      prof_free(r);
    }
    buf_free(&b);
    prof_free(p);
    prof_free(q);
  }
}

/* A program that only hands on its arguments takes no time and has no kernels. */
static void empty_programs_come_back(void **state) {
  (void)state;
  Prof *p = example(2, 0.5e-3), *q;
  prof_program_end(p, prof_program(p, "nothing", 0, 0, 0));
  prof_run(p, 0, 1, -1, 0, 0);
  prof_run(p, 0, 1, -1, 20e-3, 0);
  prof_end(p);
  Buf b = {0};
  prof_xspace(p, false, &b);
  assert_null(prof_read_xspace((Str){b.p, b.n}, &q));
  assert_int_equal(q->runs.n, 4);
  for (int i = 0; i < 4; i++)
    assert_int_equal(q->runs.v[i].n_spans, q->programs.v[q->runs.v[i].program]->n_kernels ? 7 : 0);
  buf_free(&b);
  prof_free(p);
  prof_free(q);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_are_written_out), cmocka_unit_test(long_loops_are_one_span_a_kernel),
      cmocka_unit_test(parts_add_up),          cmocka_unit_test(slow_input_decides),
      cmocka_unit_test(fast_input_is_hidden),  cmocka_unit_test(memory_over_time),
      cmocka_unit_test(xspace_comes_back),     cmocka_unit_test(empty_programs_come_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
