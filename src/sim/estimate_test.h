/* What the tests of the model share: a program and what a chip makes of it. */
#ifndef WEFT_SIM_ESTIMATE_TEST_H
#define WEFT_SIM_ESTIMATE_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chip/chip.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

/* `got` is `want` to a share of it. */
static inline void near(double got, double want, double share) {
  if (!(fabs(got / want - 1) <= share)) fail_msg("%g is not within %g of %g", got, share, want);
}

static inline const Chip *find_chip(const char *name) {
  const Chip *c = NULL;
  assert_null(chip_find(name, &c));
  return c;
}

static inline Module *read_program(const char *text) {
  Module *m = NULL;
  Err *e = stablehlo_read("test", str_from(text), &m);
  if (!e) e = ir_verify(m);
  if (e) err_report(e);
  assert_null(e);
  return m;
}

/* No test's kernels wait for each other in a circle. */
static inline SimReport *estimate_as(const char *text, const char *chip, const SimOpts *opts) {
  Module *m = read_program(text);
  SimReport *r = NULL;
  Err *e = sim_estimate(m, find_chip(chip), opts, &r);
  if (e) err_report(e);
  assert_null(e);
  module_free(m);
  assert_false(r->circular);
  return r;
}

static inline SimReport *estimate(const char *text, const char *chip) {
  return estimate_as(text, chip, NULL);
}

/* Is it a wait for a transfer, or a loop's scalar work? */
static inline bool no_kernel(const SimKernel *k) {
  return !strcmp(k->op, "transfer") || !strcmp(k->op, "scalar");
}

/* Kernels of this kind of operation; for NULL all that are kernels. */
static inline int kernels_of(const SimReport *r, const char *op) {
  int n = 0;
  for (int i = 0; i < r->n_kernels; i++)
    n += op ? !strcmp(r->kernels[i].op, op) : !no_kernel(&r->kernels[i]);
  return n;
}

#endif
