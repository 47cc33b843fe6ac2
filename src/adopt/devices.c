/* A step on several devices: each has its part of the batch, and the compiler puts the exchanges where parts meet (XLA's
 * SPMD partitioner; weft's is compile/spmd). What the step computes stays what one device would compute from the whole
 * batch. A step of one device is spread by its batch: batch arguments cut along their examples, state whole on each, as
 * JAX does with jit over a batch that is sharded. A step that has shardings keeps them. */
#include "adopt/adopt_priv.h"

#include "compile/spmd/propagate.h"

#include <stdio.h>

Err *adopt_read_devices(Adopted *a) {
  const Attr *replicas = attrs_get(a->m->attrs, a->m->n_attrs, "mhlo.num_replicas");
  if (replicas && replicas->kind == AT_INT && replicas->i > 1)
    return err_hint(err_new(ERR_UNIMPLEMENTED, "'%s' is a program of %lld replicas", a->program,
                            (long long)replicas->i),
                    "export the step of one device, or with shardings: jit, not pmap");
  int n = train_partitions(a->m);
  if (n == 1) return NULL;
  a->devices = n;
  shardings_from_gspmd(a->m, n); /* one form, whichever it came in */
  if (!a->m->meshes.n)
    return err_new(ERR_INVALID, "'%s' is a program of %d devices without a sharding", a->program,
                   n);
  return NULL;
}

/* ---- a step of one device ---------------------------------------------------------------------- */

static Attr *text_attr(Module *m, const char *text) {
  return attr_string(m, arena_str(m->arena, str_from(text)));
}

static void spread_batch(Module *m, Func *f, StepProgram *p, int n) {
  static const char name[] = "mhlo.sharding";
  Attr *whole = text_attr(m, "{replicated}");
  b_module_attr(m, "mhlo.num_partitions", attr_int(m, DT_I32, n));
  for (int i = 0; i < p->n_state; i++) {
    b_arg_attr(f, i, name, whole);
    b_result_attr(f, i, name, whole);
  }
  b_result_attr(f, p->n_state, name, whole);
  for (int i = 0; i < p->n_inputs; i++) {
    Buf b = {0};
    buf_printf(&b, "{devices=[%d", n);
    for (int k = 1; k < p->inputs[i].rank; k++) buf_cstr(&b, ",1");
    buf_printf(&b, "]<=[%d]}", n);
    b_arg_attr(f, p->n_state + i, name, text_attr(m, b.p));
    buf_free(&b);
  }
}

/* ---- a step with shardings --------------------------------------------------------------------- */

/* The step's own sharding of an argument, or NULL. */
static const Sharding *sharding_of(const Adopted *a, int arg) {
  const Attr *s = attrs_get(a->f->arg_attrs[arg], a->f->n_arg_attrs[arg], "sdy.sharding");
  return s && s->kind == AT_SHARDING ? s->sharding : NULL;
}

/* The first `keep` dimensions as `s` cuts them, the others whole: nothing is left to the compiler, for what a step gives
 * is what the next takes. */
static Attr *closed(Module *m, const Sharding *s, int rank, int keep) {
  Sharding *c = ARENA_NEW(m->arena, Sharding);
  c->mesh_name = s && s->mesh_name.n ? arena_str(m->arena, s->mesh_name) : (Str){0};
  c->mesh = s ? s->mesh : NULL;
  if (!c->mesh && !c->mesh_name.n) c->mesh_name = m->meshes.v[0].name;
  c->n_dims = rank;
  c->dims = ARENA_ARRAY(m->arena, DimSharding, rank + 1);
  for (int d = 0; d < rank; d++) {
    c->dims[d].priority = -1;
    if (!s || d >= s->n_dims || d >= keep) continue;
    c->dims[d].n_axes = s->dims[d].n_axes;
    c->dims[d].axes = s->dims[d].axes;
  }
  Attr *a = ARENA_NEW(m->arena, Attr);
  a->kind = AT_SHARDING;
  a->sharding = c;
  return a;
}

static Cut cut_of(const Module *m, const Attr *a) {
  const Sharding *s = a->sharding;
  return (Cut){s, s->mesh ? s->mesh : module_mesh(m, s->mesh_name)};
}

/* How the field's examples are cut: as those of the first argument that takes it. */
static const Sharding *field_sharding(const Adopted *a, int field) {
  for (int i = 0; i < a->n_args; i++)
    if (a->args[i].role == ROLE_BATCH && a->args[i].field == field) return sharding_of(a, i);
  return NULL;
}

static void keep_shardings(const Adopted *a, Module *m, Func *f, StepProgram *p) {
  static const char name[] = "sdy.sharding";
  int k = 0;
  for (int i = 0; i < a->n_args; i++) {
    if (a->args[i].role == ROLE_BATCH) continue;
    int rank = a->args[i].type->rank;
    Attr *s = closed(m, sharding_of(a, i), rank, rank);
    b_arg_attr(f, k, name, s);
    b_result_attr(f, k, name, s);
    p->state[k++].cut = cut_of(m, s);
  }
  b_result_attr(f, k, name, closed(m, NULL, 1, 0));
  for (int i = 0; i < p->n_inputs; i++) {
    Attr *s = closed(m, field_sharding(a, i), p->inputs[i].rank, 1);
    b_arg_attr(f, p->n_state + i, name, s);
    p->input_cuts[i] = cut_of(m, s);
  }
}

void adopt_spread(const Adopted *a, int n, StepProgram *p) {
  Func *f = module_main(p->m);
  if (a->devices) keep_shardings(a, p->m, f, p);
  else if (n > 1) spread_batch(p->m, f, p, n);
}
