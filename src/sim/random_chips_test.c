/* Random programs before every chip in the catalogue: whatever the program, its time, memory and
 * energy are numbers that add up, the same on each asking. SEEDS="FROM COUNT" takes others than the
 * usual ones; one that fails is printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/random_test.h"
#include "sim/sim.h"
#include "stablehlo/stablehlo.h"

#define PROGRAMS 60

typedef struct Case {
  uint64_t seed;
  const Module *m;
  const Chip *chip;
} Case;

static void fail_with(const Case *c, const char *what, double x) {
  Buf text = {0};
  stablehlo_write_text(&text, c->m, NULL);
  fail_msg("seed %llu on %s: %s, %g\n%.*s", (unsigned long long)c->seed, c->chip->name, what, x,
           (int)text.n, (const char *)text.p);
}

static void some(const Case *c, const char *what, double x) { /* a number, none below 0 */
  if (!(x >= 0) || isinf(x)) fail_with(c, what, x);
}

static void memory_adds_up(const Case *c, const SimReport *r) {
  some(c, "arguments", r->argument_bytes);
  some(c, "output", r->output_bytes);
  some(c, "aliased", r->alias_bytes);
  some(c, "temporaries", r->temp_bytes);
  some(c, "peak", r->peak_bytes);
  double owned = 0;
  for (int i = 0; i < SIM_OWNERS; i++) {
    some(c, sim_owner_name(i), r->owners[i].bytes);
    some(c, "padding", r->owners[i].padding);
    owned += r->owners[i].bytes;
  }
  if (fabs(owned - r->hbm_bytes) > 1) fail_with(c, "owners have more or less than all", owned);
  if (r->fits != (r->hbm_bytes <= r->limit_bytes)) fail_with(c, "fits", r->hbm_bytes);
  for (int i = 0; i < r->n_lives; i++) {
    some(c, r->lives[i].name, r->lives[i].bytes);
    some(c, "born", r->lives[i].from_s);
    some(c, "lives for", r->lives[i].to_s - r->lives[i].from_s);
  }
}

static void times_are_times(const Case *c, const SimReport *r) {
  some(c, "time", r->time_s);
  some(c, "cycles", r->cycles);
  some(c, "exposed copies", r->exposed_copy_s);
  some(c, "network", r->network_s);
  some(c, "flops", r->flops);
  some(c, "traffic", r->model_bytes);
  some(c, "energy", r->energy_j);
  if (!(r->mfu >= 0 && r->mfu <= 1)) fail_with(c, "mfu", r->mfu);
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    some(c, k->name, k->time_s);
    some(c, k->name, k->cycles);
    some(c, k->name, k->est_cycles);
    some(c, k->name, k->flops);
    some(c, k->name, k->bytes);
    some(c, k->name, k->start_s);
    if (!(k->utilisation >= 0 && k->utilisation <= 1)) fail_with(c, k->name, k->utilisation);
    if (!(k->count >= 1)) fail_with(c, k->name, k->count);
  }
}

static SimReport *estimate(const Case *c, bool eager) {
  SimReport *r = NULL;
  Err *e = sim_estimate(c->m, c->chip, &(SimOpts){.eager = eager}, &r);
  if (e) fail_with(c, err_text(e), 0);
  return r;
}

static void check(const Case *c, bool eager) {
  SimReport *r = estimate(c, eager), *again = estimate(c, eager);
  memory_adds_up(c, r);
  times_are_times(c, r);
  if (r->time_s != again->time_s) fail_with(c, "another time when asked again", again->time_s);
  if (r->peak_bytes != again->peak_bytes) fail_with(c, "another peak", again->peak_bytes);
  sim_report_free(r);
  sim_report_free(again);
}

static void random_programs(void **unused) {
  (void)unused;
  unsigned long long from = 1, count = PROGRAMS;
  const char *given = env_get("SEEDS");
  if (given && sscanf(given, "%llu %llu", &from, &count) != 2) fail_msg("SEEDS=\"FROM COUNT\"");
  const Chip *const *chips;
  int n;
  assert_null(chip_list(&chips, &n));
  for (uint64_t seed = from; seed < from + count; seed++) {
    static const int scales[] = {1, 8, 64};
    bool exact[RANDOM_RESULTS];
    Module *m = random_program(seed, scales[seed % 3], exact);
    for (int i = 0; i < n; i++) {
      Case c = {seed, m, chips[i]};
      check(&c, false);
      if (chips[i]->kind == CHIP_GPU) check(&c, true);
    }
    module_free(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
