/* What the tests of the model share: a program and what a chip makes of it. */
#ifndef WEFT_SIM_ESTIMATE_TEST_H
#define WEFT_SIM_ESTIMATE_TEST_H

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

static inline SimReport *estimate(const char *text, const char *chip) {
  const Chip *c = NULL;
  Module *m = NULL;
  SimReport *r = NULL;
  assert_null(chip_find(chip, &c));
  assert_null(stablehlo_read("test", str_from(text), &m));
  assert_null(ir_verify(m));
  assert_null(sim_estimate(m, c, NULL, &r));
  module_free(m);
  assert_false(r->circular);
  return r;
}

/* The peak is `want` bytes, libtpu's, to a share of it. */
static inline void peak_near(const char *text, const char *chip, double want, double share) {
  SimReport *r = estimate(text, chip);
  double bytes = r->peak_bytes;
  sim_report_free(r);
  if (bytes < want * (1 - share) || bytes > want * (1 + share))
    fail_msg("%s: %.0f bytes, libtpu says %.0f", chip, bytes, want);
}

#endif
