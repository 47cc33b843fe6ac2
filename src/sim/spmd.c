/* A program written for all devices of a mesh, estimated as what one of them runs. */
#include "sim/sim.h"

#include "compile/pass/pass.h"
#include "compile/spmd/partition.h"
#include "compile/spmd/propagate.h"

static int count_of(const Module *m, const char *name) {
  const Attr *a = attrs_get(m->attrs, m->n_attrs, name);
  return a && a->kind == AT_INT && a->i > 0 && a->i < 1 << 20 ? (int)a->i : 1;
}

int sim_devices_of(const Module *m) {
  return count_of(m, "mhlo.num_replicas") * count_of(m, "mhlo.num_partitions");
}

Err *sim_estimate_spmd(const Module *m, const Chip *chip, const SimOpts *opts, int partitions,
                       SimReport **out) {
  if (partitions <= 1) return sim_estimate(m, chip, opts, out);
  Module *local = module_clone(m);
  bool done = false;
  shardings_from_gspmd(local, partitions);
  Err *e = pass_inline(local);
  if (!e) e = pass_partition(local, &done);
  if (!e) e = sim_estimate(local, chip, opts, out);
  module_free(local);
  if (e && e->code == ERR_UNIMPLEMENTED) {
    err_free(e);
    e = sim_estimate(m, chip, opts, out);
    if (!e) (*out)->whole = true;
  }
  return e;
}
