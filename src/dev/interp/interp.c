/* The reference interpreter as a device: "interp", "interp:8". Slow; what it computes is right by
 * definition. */
#include "compile/pass/pass.h"
#include "dev/dev.h"
#include "dev/meet.h"
#include "interp/interp.h"
#include "ir/exchange.h"

#include <stdlib.h>

static Err *open(Dev *dev, Str args) { return dev_count(args, &dev->n); }

static void close(Dev *dev) { (void)dev; }

static void info(const Dev *dev, int i, DevInfo *out) {
  (void)dev;
  *out = (DevInfo){.kind = "interp", .coords = {i, 0, 0}};
}

static Err *find_ragged(Op *op, void *found) {
  *(bool *)found |= op_is_ragged(op);
  return NULL;
}

/* The program is run as it is, but for what JAX has a custom call for and StableHLO no operation. */
static Err *compile(DevProgram *prog, const Module *m) {
  bool found = false;
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) TRY(ir_walk(m->funcs.v[i]->body, find_ragged, &found));
  if (!found) return NULL;
  TRY(pass_inline(prog->module));
  return pass_ragged(prog->module);
}

static void program_free(DevProgram *prog) { (void)prog; }

static Err *run(DevProgram *prog, const DevPart *part, const Shards *args, const bool *donated,
                Shards *results, DevRun *out_run) {
  (void)donated; /* tensors are never changed in place */
  DevMeet meet;
  InterpOpts opts = {prog->opts.replicas, prog->opts.partitions,
                     dev_meet_part(&meet, prog, part, prog->dev->exchange)};
  double t0 = time_now_s();
  TRY(interp_run(prog->module, prog->main->name, &opts, args, prog->n_args, results,
                 prog->n_results));
  if (out_run) *out_run = (DevRun){.time_s = time_now_s() - t0};
  return NULL;
}

const DeviceOps dev_interp = {.name = "interp",
                              .open = open,
                              .close = close,
                              .info = info,
                              .compile = compile,
                              .program_free = program_free,
                              .run = run};
