/* jax.debug.inspect_array_sharding: the custom call "InspectSharding" asks, while a program is
 * compiled, how the value that it is given lies on the devices. Its backend_config holds the bytes
 * of an Inspector, whose pointers JAX keeps valid until the compilation ends. Like any program with
 * an address in it, such a one can come only from this process. */
#include "pjrt/pjrt_priv.h"

#include "base/pb.h"
#include "compile/pass/pass.h"
#include "compile/spmd/propagate.h"

typedef struct InspectArgs {
  const char *sharding; /* an OpSharding */
  size_t sharding_size;
  const char *error; /* NULL: none */
  void *error_scratch;
  void (*free_error)(struct InspectArgs *);
} InspectArgs;

typedef struct Inspector {
  void (*call)(void *data, InspectArgs *args);
  void *data;
} Inspector;

static bool is_inspection(const Op *op) {
  return op_is_remark(op) && str_is(op_str(op, "call_target_name"), "InspectSharding");
}

static bool any_in(const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    if (is_inspection(op)) return true;
    for (int i = 0; i < op->n_regions; i++)
      if (any_in(op->regions[i])) return true;
  }
  return false;
}

static Err *tell(const Module *m, const Op *op, bool manual) {
  Str key = op_str(op, "backend_config");
  Inspector to;
  if (key.n != sizeof to)
    return op_err(op, ERR_INVALID, "InspectSharding has %zu bytes of backend_config, not %zu",
                  key.n, sizeof to);
  memcpy(&to, key.p, sizeof to);
  Buf spec = {0};
  const Attr *a = op_attr(op, "weft.sharding");
  if (manual) pb_int(&spec, 1, 4);
  else if (a && a->n && a->items[0]->kind == AT_SHARDING)
    op_sharding_proto(&spec, a->items[0]->sharding,
                      module_mesh(m, a->items[0]->sharding->mesh_name));
  InspectArgs args = {.sharding = spec.p ? spec.p : "", .sharding_size = spec.n};
  to.call(to.data, &args);
  buf_free(&spec);
  Err *e = args.error ? op_err(op, ERR_INVALID, "%s", args.error) : NULL;
  if (args.error && args.free_error) args.free_error(&args);
  return e;
}

static Err *tell_region(const Module *m, const Region *r, bool manual) {
  for (const Op *op = r->first; op; op = op->next) {
    if (is_inspection(op)) TRY(tell(m, op, manual));
    for (int i = 0; i < op->n_regions; i++)
      TRY(tell_region(m, op->regions[i], manual || op->kind == OP_MANUAL_COMPUTATION));
  }
  return NULL;
}

Err *shardings_inspect(const Module *m) {
  bool any = false;
  for (int i = 0; i < m->funcs.n; i++) any |= m->funcs.v[i]->body && any_in(m->funcs.v[i]->body);
  if (!any) return NULL;
  TRY(ir_verify(m));
  Module *spread = module_clone(m);
  Err *e = pass_inline(spread);
  if (!e) {
    pass_propagate(spread, true);
    e = tell_region(spread, module_main(spread)->body, false);
  }
  module_free(spread);
  return e;
}
