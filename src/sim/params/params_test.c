/* A coefficient that a chip's file has and nobody reads is a slip of a name: the model would go on
 * with its default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/params/params.h"

static void every_coefficient_is_read(void **state) {
  (void)state;
  const Chip *const *chips;
  int n, seen = 0;
  assert_null(chip_list(&chips, &n));
  for (int i = 0; i < n; i++)
    for (int k = 0; k < chips[i]->n_facts && chips[i]->kind == CHIP_TPU; k++) {
      const char *key = chips[i]->facts[k].key;
      if (strncmp(key, "fit.", 4) != 0) continue;
      seen++;
      if (!params_has((Str){key + 4, strlen(key) - 4}))
        fail_msg("%s: nobody reads %s", chips[i]->file, key);
    }
  assert_true(seen > 100);
}

/* What the file says arrives, in its unit; what it leaves out has the default. */
static void files_are_obeyed(void **state) {
  (void)state;
  Chip chip = {.kind = CHIP_TPU, .clock = 1e9, .hbm_bandwidth = 409.6e9, .cores_per_device = 1};
  ChipFact facts[8];
  static const struct {
    const char *key;
    double value;
  } rows[] = {{"fit.base", 7}, {"fit.one_mib", 2}, {"fit.tall", 1}, {"fit.o2", 5}};
  for (int i = 0; i < COUNT_OF(rows); i++)
    facts[i] = (ChipFact){.key = rows[i].key, .num = rows[i].value};
  chip.facts = facts;
  chip.n_facts = COUNT_OF(rows);
  CostParams params;
  params_read(&chip, &params);
  assert_true(params.base == 7 && params.base0 == 7 && params.vstart == 7);
  assert_true(params.one_bytes == 2 << 20 && params.tall && !params.pairs);
  assert_true(params.product.o[2] == 5 && params.loop.o[2] == 5 && params.product.o[4] == 1.1 * 10);
}

/* A new chip's file has no fit.* yet: its rates follow from its bandwidth, as those of the chips that libtpu was asked for do. */
static void bandwidth_gives_rates(void **state) {
  (void)state;
  const Chip *const *chips;
  int n, seen = 0;
  assert_null(chip_list(&chips, &n));
  for (int i = 0; i < n; i++) {
    if (chips[i]->kind != CHIP_TPU) continue;
    Chip bare = *chips[i];
    ChipFact *facts = xcalloc((size_t)bare.n_facts, sizeof *facts);
    int kept = 0;
    for (int k = 0; k < bare.n_facts; k++)
      if (strncmp(bare.facts[k].key, "fit.", 4) != 0) facts[kept++] = bare.facts[k];
    bare.facts = facts, bare.n_facts = kept, bare.by_key = NULL;
    CostParams fitted, derived;
    params_read(chips[i], &fitted);
    params_read(&bare, &derived);
    for (int b = 2; b <= 4; b += 2) {
      double read = derived.product.r[b] / fitted.product.r[b],
             write = derived.product.o[b] / fitted.product.o[b];
      if (!(read > 0.8 && read < 1.6 && write > 0.8 && write < 1.35))
        fail_msg("%s, elements of %d bytes: %g and %g times what was fitted", bare.name, b, read,
                 write);
    }
    free(facts);
    seen++;
  }
  assert_true(seen >= 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_coefficient_is_read),
      cmocka_unit_test(files_are_obeyed),
      cmocka_unit_test(bandwidth_gives_rates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
