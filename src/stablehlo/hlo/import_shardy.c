/* Shardy in HLO: what XLA's exporter writes of meshes, shardings and manual computations into frontend attributes
 * (as MLIR text) and custom calls.
 *
 *   xla.sdy.GlobalToLocalShape(x)            what a manual computation takes, with in_shardings and manual_axes
 *   call(...), to_apply=xla.sdy.manual_...   the computation
 *   xla.sdy.LocalToGlobalShape(y)            its results, with out_shardings
 *   xla.sdy.FuncResultSharding(x)            the sharding of a result of the entry */
#include "stablehlo/hlo/import_priv.h"
#include "stablehlo/stablehlo.h"

/* A frontend attribute as MLIR's attribute; NULL: there is none, or it does not read. */
static Attr *frontend(Module *m, const Hlo__FrontendAttributes *f, const char *key) {
  for (size_t i = 0; f && i < f->n_map; i++) {
    if (strcmp(f->map[i]->key, key)) continue;
    Attr *a = NULL;
    err_free(stablehlo_read_attr(m, str_from(f->map[i]->value), &a));
    return a;
  }
  return NULL;
}

void hlo_meshes(HloImport *im) {
  Attr *all = frontend(im->m, im->file->module->frontend_attributes, "xla.sdy.meshes");
  if (!all || all->kind != AT_DICT) return;
  for (int i = 0; i < all->n; i++) {
    const Attr *a = all->dict[i].value;
    if (a->kind != AT_MESH) continue;
    int64_t n = 1;
    for (int k = 0; k < a->mesh->n_axes; k++)
      if (mul_overflows(n, a->mesh->axes[k].size, &n)) return;
    hlo_names_devices(im, n);
    im->by_channel = true;
    *vec_push(&im->m->meshes) = all->dict[i];
  }
}

Attr *hlo_shardy_sharding(HloImport *im, const Hlo__Instruction *i) {
  Attr *a = frontend(im->m, i->frontend_attributes, "xla.sdy.sharding");
  if (a && a->kind == AT_ARRAY && a->n == 1) a = a->items[0];
  return a && a->kind == AT_SHARDING ? a : NULL;
}

/* ---- manual computations --------------------------------------------------------------------- */

typedef struct Manual { /* what a value enters a manual computation with */
  Attr *sharding, *axes;
} Manual;

static Str value_key(Value *const *v) { return (Str){(const char *)v, sizeof *v}; }

static Err *global_to_local(HloOp *o) {
  HloImport *im = o->s->im;
  Attr *in = frontend(im->m, o->i->frontend_attributes, "xla.sdy.in_shardings");
  Attr *axes = frontend(im->m, o->i->frontend_attributes, "xla.sdy.manual_axes");
  if (!in || in->kind != AT_ARRAY || in->n != o->in.n || !axes || axes->kind != AT_ARRAY)
    return err_new(ERR_INVALID, "its shardings or axes do not read");
  for (int i = 0; i < in->n; i++) {
    Manual *m = ARENA_NEW(im->m->arena, Manual);
    *m = (Manual){in->items[i], axes};
    map_set(im->manual, value_key(&o->in.v[i]), m);
  }
  hlo_is(o, o->in.n, o->in.v);
  return NULL;
}

bool hlo_is_manual(const Hlo__Computation *c) {
  return str_starts(str_from(c->name), "xla.sdy.manual_computation_body");
}

Err *hlo_manual(HloOp *o, const Hlo__Computation *c) {
  HloImport *im = o->s->im;
  Attr **in = ARENA_ARRAY(im->m->arena, Attr *, o->in.n), *axes = NULL;
  for (int i = 0; i < o->in.n; i++) {
    const Manual *m = map_get(im->manual, value_key(&o->in.v[i]));
    if (!m) return err_new(ERR_INVALID, "operand %d comes from no xla.sdy.GlobalToLocalShape", i);
    in[i] = m->sharding;
    axes = m->axes;
  }
  TRY(hlo_region(o, c));
  hlo_put(o, "in_shardings", attr_array(im->m, o->in.n, in));
  hlo_put(o, "out_shardings", attr_array(im->m, 0, NULL)); /* known afterwards */
  hlo_put(o, "manual_axes", axes ? axes : attr_array(im->m, 0, NULL));
  return hlo_emit(o, OP_MANUAL_COMPUTATION);
}

/* The results of a manual computation, all of them, get the shapes and shardings that they have outside. */
static Err *local_to_global(HloOp *o) {
  HloImport *im = o->s->im;
  Attr *out = frontend(im->m, o->i->frontend_attributes, "xla.sdy.out_shardings");
  Op *op = o->in.n ? o->in.v[0]->def : NULL;
  if (!op || op->kind != OP_MANUAL_COMPUTATION || op->n_results != o->in.n || !out ||
      out->kind != AT_ARRAY || out->n != o->in.n)
    return err_new(ERR_INVALID, "its operands are not the results of a manual computation");
  for (int i = 0; i < o->in.n; i++) {
    if (o->in.v[i] != &op->results[i]) return err_new(ERR_INVALID, "results in another order");
    op->results[i].type = o->out.v[i];
  }
  op_set_attr(im->m, op, STR("out_shardings"), out);
  if (!attrs_get(op->attrs, op->n_attrs, "manual_axes")->n) { /* one without operands */
    Attr *axes = frontend(im->m, o->i->frontend_attributes, "xla.sdy.manual_axes");
    if (axes && axes->kind == AT_ARRAY) op_set_attr(im->m, op, STR("manual_axes"), axes);
  }
  hlo_is(o, o->in.n, o->in.v);
  return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static Err *constraint(HloOp *o) {
  Attr *a = hlo_shardy_sharding(o->s->im, o->i);
  if (!a) return hlo_first_operand(o, OP_UNKNOWN);
  hlo_put(o, "sharding", a);
  return hlo_emit(o, OP_SHARDING_CONSTRAINT);
}

Err *hlo_shardy_call(HloOp *o, bool *done) {
  static const struct {
    const char *target;
    Err *(*read)(HloOp *o);
  } calls[] = {{"xla.sdy.GlobalToLocalShape", global_to_local},
               {"xla.sdy.LocalToGlobalShape", local_to_global},
               {"xla.sdy.FuncResultSharding", constraint},
               {"xla.sdy.ReshardOp", constraint},
               {"Sharding", constraint}};
  for (int i = 0; i < COUNT_OF(calls); i++) {
    if (strcmp(o->i->custom_call_target, calls[i].target)) continue;
    if (calls[i].read == constraint && !hlo_shardy_sharding(o->s->im, o->i)) continue;
    *done = true;
    return calls[i].read(o);
  }
  *done = false;
  return NULL;
}
