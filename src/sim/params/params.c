/* The coefficients of a TPU, from its chip file. */
#include "sim/params/params.h"

void params_read(const Chip *chip, CostParams *params) {
  *params = (CostParams){
      .tiled = chip->kind == CHIP_TPU, .clock = chip->clock, .cores = chip->cores_per_device};
  params->macs = chip_num(chip, "mxu_macs", chip->peak_flops / 2 / chip->clock);
  params->tile = chip->hbm_bandwidth > 0 ? 4096 / chip->hbm_bandwidth * chip->clock : 0;
  params->side = (int)chip_num(chip, "mxu_weights", chip_num(chip, "mxu_side", 128));
  params->scoped = chip_num(chip, "vmem_scoped", 16 << 20);
  params->cmem = chip_num(chip, "cmem", 0);
  double vmem = chip_num(chip, "vmem", 16 << 20); /* a core's */
  params->fast = params->tiled && vmem > params->scoped ? vmem - params->scoped : 0;
  params->prefetch = params->tiled && (params->fast > 0 || params->cmem > 0);
#define NUM(field, key, otherwise, what) params->field = chip_num(chip, "fit." key, otherwise);
#define MIB(field, key, otherwise, what) NUM(field, key, otherwise, what) params->field *= 1 << 20;
#define YES(field, otherwise, what) params->field = chip_num(chip, "fit." #field, otherwise) > 0;
#define RATE NUM
#include "sim/params/params.def"
#undef NUM
#undef MIB
#undef YES
#undef RATE
  params->keep &= params->prefetch;
}

bool params_has(Str key) {
#define NUM(field, name, otherwise, what) name,
#define MIB NUM
#define YES(field, otherwise, what) #field,
#define RATE NUM
  static const char *const keys[] = {
#include "sim/params/params.def"
  };
#undef NUM
#undef MIB
#undef YES
#undef RATE
  for (int i = 0; i < COUNT_OF(keys); i++)
    if (str_is(key, keys[i])) return true;
  return false;
}
