#include "dev/differ.h"

#include "compile/pass/replication.h"
#include "interp/sharding.h"
#include "ir/mesh.h"

typedef struct Look {
  const DevProgram *p;
  OwnerSets *sets;
  Arena *mem;
} Look;

/* Which processes have the same of an operand or a result of a manual computation, as `list` says. NULL: all. Every one
 * has its own where that is not known. */
static const int *as_written(const Look *x, const Op *op, const char *list, int i,
                             const Type *type) {
  const Attr *a = op_attr(op, list);
  if (!a || a->kind != AT_ARRAY || i >= a->n || a->items[i]->kind != AT_SHARDING ||
      type->kind != TY_TENSOR)
    return owner_sets_own(x->sets);
  const Sharding *s = a->items[i]->sharding;
  const Mesh *mesh = s->mesh ? s->mesh : module_mesh(x->p->module, s->mesh_name);
  int n = x->p->opts.partitions, *owner = ARENA_ARRAY(x->mem, int, n);
  Err *e = mesh && mesh_size(mesh) == n ? shard_owners(s, mesh, type->rank, n, owner)
                                        : err_new(ERR_INVALID, "no mesh of all devices");
  bool known = !e;
  err_free(e);
  return known ? owner : owner_sets_own(x->sets);
}

/* Do processes that were to have the same have different values? */
static bool are_apart(Owners have, Owners want, int n) {
  for (int k = 0; have && k < n; k++) {
    int first = want ? want[k] : 0;
    if (have[k] != have[first]) return true;
  }
  return false;
}

/* An error where a manual computation hands on what may differ. */
static Err *find(Op *op, void *arg) {
  Look *x = arg;
  if (op->kind != OP_MANUAL_COMPUTATION) return NULL;
  const Region *r = op->regions[0];
  int n = x->p->opts.partitions;
  Owners *args = ARENA_ARRAY(x->mem, Owners, r->n_args);
  for (int i = 0; i < r->n_args; i++)
    args[i] = as_written(x, op, "in_shardings", i, op->operands[i]->type);
  Owners *of = replication_find_manual(x->p->main, op, n, args, x->sets, x->mem);
  for (int j = 0; j < op->n_results; j++) {
    const Value *v = r->last->operands[j];
    if (v->type->kind == TY_TENSOR &&
        are_apart(of[v->id], as_written(x, op, "out_shardings", j, op->results[j].type), n))
      return err_new(ERR_PRECONDITION, "result %d differs between devices", j);
  }
  return NULL;
}

bool program_may_differ(const DevProgram *p) {
  Look x = {p, NULL, arena_new()};
  x.sets = owner_sets_new(p->opts.partitions, x.mem);
  Err *found = ir_walk(p->main->body, find, &x);
  bool differs = found != NULL;
  err_free(found);
  owner_sets_free(x.sets);
  arena_free(x.mem);
  return differs;
}
