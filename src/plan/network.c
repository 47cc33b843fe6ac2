/* Machines and what their devices exchange. Devices are numbered tensor ways first, then context, data
 * and pipeline ways, as Megatron and JAX meshes usually have them. */
#include <stdlib.h>

#include "plan/plan_priv.h"

Err *plan_machine_open(const Chip *chip, int devices, const PlanMachineOpts *given,
                       PlanMachine **out) {
  PlanMachineOpts o = given ? *given : (PlanMachineOpts){0};
  if (devices < 1)
    return err_hint(err_new(ERR_INVALID, "a plan for %d devices", devices),
                    "name at least one: %s:8", chip->name);
  PlanMachine *h = xcalloc(1, sizeof *h);
  h->chip = chip;
  NetOpts opts = {.slice.slices = o.slices};
  if (chip->kind == CHIP_GPU) opts.domain = o.domain;
  opts.server = o.server;
  if (o.where && o.where->devices == devices)
    opts = (NetOpts){o.server ? o.server : o.where->server, o.where->slice, .meshed = true,
                     .domain = opts.domain};
  Err *e = net_open(chip, devices, &opts, &h->net);
  if (e) return free(h), e;
  if (o.card > 0) h->net.rates.card = h->net.rates.one_card = o.card;
  h->shared = o.kernels != NULL;
  h->kernels = h->shared ? o.kernels : plan_kernels_new(chip, o.power_w, o.bandwidth);
  *out = h;
  return NULL;
}

void plan_machine_close(PlanMachine *h) {
  if (!h) return;
  if (!h->shared) plan_kernels_free(h->kernels);
  free(h);
}

double plan_exchange_s(const PlanMachine *h, NetKind kind, double bytes, int size, int stride) {
  if (size <= 1 || bytes <= 0) return 0;
  NetCall call = {kind, bytes, DT_BF16, {1, {{size, stride}}}};
  return net_cost(&h->net, &call).s;
}
