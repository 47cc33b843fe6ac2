#include "dev/cut.h"

#include <stdio.h>

#include "compile/pass/replication.h"
#include "compile/pass/work.h"
#include "compile/spmd/partition.h"
#include "compile/spmd/propagate.h"
#include "dev/differ.h"
#include "interp/sharding.h"
#include "ir/exchange.h"

/* ---- calls ---- */

static bool is_manual(const Op *op) {
  const Region *r = op->parent;
  while (r && r->parent && r->parent->kind != OP_MANUAL_COMPUTATION) r = r->parent->parent;
  return r && r->parent;
}

typedef struct Calls {
  bool whole; /* of whole values, once */
  bool parts; /* of each process's parts */
} Calls;

static Err *find_call(Op *op, void *arg) {
  Calls *c = arg;
  if (!op_is_host_callback(op)) return NULL;
  bool parts = is_manual(op) || op_is_partitioned_callback(op);
  c->parts |= parts;
  c->whole |= !parts;
  return NULL;
}

/* ---- what all devices make together ---- */

/* Of a program that is cut, or is about to be. */
static Err *part_owners(const DevProgram *p, int i, int *owner) {
  return shard_owners(p->arg_shardings[i], p->arg_meshes[i], p->given_main->type->elems[i]->rank,
                      p->opts.partitions, owner);
}

Err *dev_argument_owners(const DevProgram *p, int i, int *owner) {
  if (dev_program_is_cut(p) && p->arg_shardings[i]) return part_owners(p, i, owner);
  for (int k = 0; k < p->opts.replicas * p->opts.partitions; k++) owner[k] = k;
  return NULL;
}

/* How many different ones of a value there are. */
static int owners_of(Owners l, int processes) {
  int n = !l;
  for (int k = 0; l && k < processes; k++) n += l[k] == k;
  return n;
}

/* Bytes that a region's operations make for all processes. owners: of its values; NULL: one for all, or one for
 * each of `times`. */
static double bytes_made(const Region *r, const Owners *owners, int processes, int times) {
  double bytes = 0;
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_results; i++) {
      const Value *v = &op->results[i];
      int n = owners ? owners_of(owners[v->id], processes) : times;
      if (v->type->kind == TY_TENSOR && type_is_static(v->type))
        bytes += (double)type_bytes(v->type) * n;
    }
    bool manual = op->kind == OP_MANUAL_COMPUTATION;
    for (int i = 0; i < op->n_regions; i++)
      bytes += bytes_made(op->regions[i], owners, processes, manual ? processes : times);
  }
  return bytes;
}

/* Do processes take different branches, or turns of loops? */
static bool diverges(const Region *r, const Owners *owners) {
  bool found = false;
  for (const Op *op = r->first; op && !found; op = op->next) {
    const Value *by = NULL;
    if (op->kind == OP_IF || op->kind == OP_CASE) by = op->operands[0];
    if (op->kind == OP_WHILE) by = op->regions[0]->last->operands[0];
    found = by && owners[by->id];
    for (int i = 0; i < op->n_regions && !found; i++) found = diverges(op->regions[i], owners);
  }
  return found;
}

typedef struct Parts { /* of a program that is cut, or is about to be */
  double bytes;        /* that all processes make */
  bool diverge;
} Parts;

static Err *look_at_parts(const DevProgram *p, Module *local, Parts *out) {
  int n = p->opts.partitions;
  Func *f = module_main(local);
  Arena *mem = arena_new();
  OwnerSets *sets = owner_sets_new(n, mem);
  Owners *args = ARENA_ARRAY(mem, Owners, p->n_args);
  Err *e = NULL;
  for (int i = 0; i < p->n_args && !e; i++) {
    if (!p->arg_shardings[i]) continue;
    int *owner = ARENA_ARRAY(mem, int, n);
    args[i] = owner;
    e = part_owners(p, i, owner);
  }
  if (!e) {
    const Owners *of = replication_find(f, 1, n, args, sets, mem);
    *out = (Parts){bytes_made(f->body, of, n, 1), diverges(f->body, of)};
  }
  owner_sets_free(sets);
  arena_free(mem);
  return e;
}

/* ---- cutting ---- */

/* So many times the bytes that the whole makes may all devices make: what costs memory and time on one host. A step of
 * data parallelism whose gradients are larger than its activations makes 1.3 to 1.5 times as many, and took up to twice
 * as long on two cores; transformers of usual batches make fewer than the whole. */
#define MOST_MORE 1.2

/* Why the whole is better, on devices that share a host's memory: each device would have no less to do, or all
 * together much more to store. */
static const char *why_not_lighter(const DevProgram *p, Module *local) {
  int n = p->opts.partitions;
  Parts parts = {0};
  err_free(look_at_parts(p, local, &parts)); /* not known: as if they made nothing */
  if (parts.diverge) return NULL;            /* as a whole it is interpreted */
  if (region_work(module_main(local)->body, 1) >= region_work(p->main->body, n))
    return "each device would have as much to do";
  if (parts.bytes > MOST_MORE * bytes_made(p->main->body, NULL, n, 1))
    return "all devices together would store much more";
  return NULL;
}

/* Why the program stays whole, as far as can be told before it is cut; NULL: it need not. calls: found in it; differs: as
 * program_may_differ says, or it was not asked */
static const char *why_whole(const DevProgram *p, const Calls *c, bool differs) {
  bool lighter = p->opts.cut == DEV_CUT_LIGHTER && !differs;
  if (p->opts.cut == DEV_WHOLE) return "it is wanted whole";
  if (lighter && !p->ops->cuts) return "the device computes programs as given";
  if (p->opts.replicas > 1) return "it has replicas as well as partitions";
  if (c->whole) return "it calls its caller's functions";
  return NULL;
}

static void say(const DevProgram *p, const char *why) {
  if (!env_int("WEFT_VERBOSE", 0, 2, 0) || p->opts.cut == DEV_WHOLE) return;
  Str name = p->module->name;
  fprintf(stderr, "weft,partition,%.*s,\"%s%s\"\n", STR_ARG(name),
          why ? "computed whole: " : "in parts", why ? why : "");
}

/* Is part of it written for devices of which the partitioner must know more? Only an interpreter has that whole. */
static Err *find_partly_manual(Op *op, void *mesh) {
  if (op->kind == OP_MANUAL_COMPUTATION && manual_is_partial(mesh, op))
    return err_new(ERR_UNIMPLEMENTED, "manual over some of the axes");
  return NULL;
}

static bool is_partly_manual(const DevProgram *p) {
  Mesh *mesh = (Mesh *)mesh_of_main(p->module);
  Err *found = mesh ? ir_walk(p->main->body, find_partly_manual, mesh) : NULL;
  bool is = found != NULL;
  err_free(found);
  return is;
}

/* Does the caller see, or give, parts that are not summed yet? Each device then makes its own. */
static bool has_unsummed(const DevProgram *p) {
  for (int i = 0; i < p->n_args; i++)
    if (p->arg_shardings[i] && p->arg_shardings[i]->n_unreduced) return true;
  for (int j = 0; j < p->n_results; j++)
    if (p->result_shardings[j] && p->result_shardings[j]->n_unreduced) return true;
  return false;
}

/* Must each device run its own program, lighter or not? */
static bool is_for_devices(const DevProgram *p, const Calls *calls, bool differs) {
  return differs || calls->parts || is_partly_manual(p) || has_unsummed(p);
}

/* Takes `local`. */
static void take(DevProgram *p, Module *local) {
  p->module = local;
  p->main = module_main(local);
}

Err *cut_program(DevProgram *p) {
  if (p->opts.partitions == 1) return NULL;
  Calls calls = {0};
  err_free(ir_walk(p->main->body, find_call, &calls));
  bool differs = p->opts.cut != DEV_WHOLE && program_may_differ(p);
  const char *why = why_whole(p, &calls, differs);
  Module *local = why ? NULL : module_clone(p->module);
  bool done = false;
  Err *e = why ? NULL : pass_partition(local, &done);
  if (e && e->code != ERR_UNIMPLEMENTED) {
    module_free(local);
    return e;
  }
  if (e) why = e->msg;
  else if (!why && !done) why = "nothing says how it is to be cut";
  else if (!why && p->opts.cut == DEV_CUT_LIGHTER && !is_for_devices(p, &calls, differs))
    why = why_not_lighter(p, local);
  say(p, why);
  p->differs = differs && !why;
  if (!why) take(p, local);
  else module_free(local);
  err_free(e);
  return NULL;
}
