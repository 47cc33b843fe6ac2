/* Values in the host's memory (memory kinds: pinned_host): copies to and from it run over PCIe beside computing (overlap.c); what slices or
 * updates such a value only says where a copy goes. */
#include "sim/schedule/schedule.h"

#define PCIE 16e9      /* bytes a second, where a chip's file has none */
#define CROSSING 10e-6 /* seconds before the first byte arrives: descriptors, an interrupt */

bool sched_host_cost(const Schedule *p, Kernel *k) {
  const HNode *n = k->roots.n ? k->roots.v[0] : NULL;
  if (!n || (!n->crosses && !n->host)) return false;
  k->costed = false;
  k->modelled = true;
  if (!n->crosses) return true; /* addresses */
  double rate = chip_num(p->chip, "pcie", PCIE) / p->chip->devices_per_chip;
  k->bytes = hlo_bytes(n); /* on the device's side */
  k->time_s = CROSSING + k->bytes / rate;
  k->cycles = k->time_s * p->params->clock;
  k->bound = SIM_HOST;
  k->util = k->bytes / rate / k->time_s;
  return true;
}
