/* Any bytes as a chip file: an Err that names a line, or a chip whose numbers can be used. */
#include "chip/chip.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Arena *a = arena_new();
  Chip *c;
  Err *e = chip_read(a, "fuzz.chip", (Str){(const char *)data, size}, &c);
  if (e && !e->place) abort();
  if (!e && (c->devices_per_chip < 1 || c->cores_per_device < 1 || !isfinite(c->hbm_usable) ||
             !c->name || c->n_aliases < 1))
    abort();
  for (int i = 0; !e && i < c->n_facts; i++) chip_how(&c->facts[i]);
  err_free(e);
  arena_free(a);
  return 0;
}
