/* The coefficients of a TPU, from its chip file. */
#include "sim/law.h"

void law_read(const Chip *chip, Law *law) {
  *law =
      (Law){.tpu = chip->kind == CHIP_TPU, .clock = chip->clock, .cores = chip->cores_per_device};
  law->macs = chip_num(chip, "mxu_macs", chip->peak_flops / 2 / chip->clock);
  law->side = (int)chip_num(chip, "mxu_weights", 128);
  law->scoped = chip_num(chip, "vmem_scoped", 16 << 20);
  law->cmem = chip_num(chip, "cmem", 0);
  double vmem = chip_num(chip, "vmem", 16 << 20); /* a core's */
  law->fast = law->tpu && vmem > law->scoped ? vmem - law->scoped : 0;
  law->prefetch = law->tpu && (law->fast > 0 || law->cmem > 0);
#define NUM(field, key, otherwise, what) law->field = chip_num(chip, "fit." key, otherwise);
#define MIB(field, key, otherwise, what) NUM(field, key, otherwise, what) law->field *= 1 << 20;
#define YES(field, otherwise, what) law->field = chip_num(chip, "fit." #field, otherwise) > 0;
#define RATE NUM
#include "sim/law.def"
#undef NUM
#undef MIB
#undef YES
#undef RATE
  law->keep &= law->prefetch;
}

bool law_has(Str key) {
#define NUM(field, name, otherwise, what) name,
#define MIB NUM
#define YES(field, otherwise, what) #field,
#define RATE NUM
  static const char *const keys[] = {
#include "sim/law.def"
  };
#undef NUM
#undef MIB
#undef YES
#undef RATE
  for (int i = 0; i < COUNT_OF(keys); i++)
    if (str_is(key, keys[i])) return true;
  return false;
}
