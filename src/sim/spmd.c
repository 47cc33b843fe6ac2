/* A program written for all devices of a mesh, estimated as what one of them runs. */
#include "sim/lists.h"

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

/* Operations without a location get the line of the file: partitioning makes others of them, and
 * those keep locations. */
static Err *locate(Op *op, void *arg) {
  Module *m = arg;
  Buf place = {0};
  op_place(&place, op);
  if (op->line && place.n && (!op->loc || op->loc->kind == LOC_UNKNOWN)) {
    Loc *l = ARENA_NEW(m->arena, Loc);
    *l = (Loc){.kind = LOC_NAME, .name = arena_str(m->arena, (Str){place.p, place.n})};
    op->loc = l;
  }
  buf_free(&place);
  return NULL;
}

Err *sim_estimate_rented(const Module *m, const Chip *chip, const SimOpts *opts, int partitions,
                         SimReport **out) {
  const Server *servers[CHIP_SERVERS];
  ChipRef ref = opts->where ? *opts->where : (ChipRef){.chip = chip};
  int devices = MAX(opts->devices, 1);
  int n = chip_servers(&ref, (devices + chip->devices_per_chip - 1) / chip->devices_per_chip,
                       &opts->price, servers);
  SimOpts each = *opts;
  SimReport *best = NULL;
  Err *e = NULL;
  for (int i = 0; i < n && !e; i++) {
    SimReport *r = NULL;
    bool found = servers[i] != ref.server;
    ChipRef there = ref;
    there.server = servers[i];
    if (found) each.where = &there;
    e = sim_estimate_spmd(m, chip, &each, partitions, &r);
    if (!e) r->server_rented = found;
    if (!e && best && !(r->usd < best->usd)) sim_report_free(r);
    else if (!e) sim_report_free(best), best = r;
  }
  if (e) sim_report_free(best);
  else *out = best;
  return e;
}

Err *sim_estimate_spmd(const Module *m, const Chip *chip, const SimOpts *opts, int partitions,
                       SimReport **out) {
  if (partitions <= 1) {
    TRY(sim_estimate(m, chip, opts, out));
    (*out)->replicated = (*out)->devices > 1 && (*out)->network_s <= 0;
    return NULL;
  }
  Module *local = module_clone(m);
  bool done = false;
  for (int i = 0; i < local->funcs.n; i++)
    if (local->funcs.v[i]->body) TRY(ir_walk(local->funcs.v[i]->body, locate, local));
  shardings_from_gspmd(local, partitions);
  Err *e = pass_inline(local);
  if (!e && opts && opts->open_arguments) pass_open_arguments(local);
  if (!e) e = pass_partition(local, &done);
  if (!e) e = sim_estimate(local, chip, opts, out);
  if (!e && (*out)->batch) (*out)->batch = report_batch(*out, m); /* of all devices */
  module_free(local);
  if (e && e->code == ERR_UNIMPLEMENTED) {
    err_free(e);
    e = sim_estimate(m, chip, opts, out);
    if (!e) (*out)->whole = true;
  }
  return e;
}
