/* What clouds and SkyPilot call chips. */
#include "chip/chip.h"

void chip_slice(const Chip *c, int chips, Buf *o) {
  const char *unit = chip_text(c, "slice_unit");
  bool cores = unit && !strcmp(unit, "core");
  int each = cores ? (int)chip_num(c, "cores_per_chip", c->devices_per_chip) : 1;
  const char *kind = !strncmp(c->name, "tpu-", 4) ? c->name + 4 : c->name;
  if (!strcmp(kind, "v5e")) kind = "v5litepod";
  buf_printf(o, "%s-%d", kind, chips * each);
}

/* SkyPilot's catalogue says H100, A100-80GB, not what boards are called. */
static const char *sky_gpu(const Chip *c) {
  static const char *const names[][2] = {{"H100-SXM", "H100"},
                                         {"A100-40GB", "A100"},
                                         {"V100", "V100"},
                                         {"V100-32GB", "V100-32GB"},
                                         {"A10G", "A10G"}};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(names[i][0], c->name)) return names[i][1];
  return c->name;
}

void chip_sky(const Chip *c, int chips, int machines, Buf *o) {
  if (c->kind == CHIP_TPU) {
    buf_cstr(o, "tpu-");
    chip_slice(c, chips, o);
    buf_cstr(o, ":1");
  } else {
    buf_printf(o, "%s:%d", sky_gpu(c), (chips + machines - 1) / machines);
  }
}
