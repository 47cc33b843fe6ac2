/* HLO operations that run other computations. */
#include <stdlib.h>

#include "stablehlo/hlo/import_priv.h"
#include "stablehlo/stablehlo.h"

static Err *same_types(const HloOp *o, int n, Value *const *v, int m, Type *const *types,
                       const char *what) {
  bool ok = n == m;
  for (int i = 0; ok && i < n; i++) ok = v[i]->type == types[i];
  return ok ? NULL
            : err_new(ERR_INVALID, "%s: %s are of other shapes than it wants", o->i->opcode, what);
}

/* Of the proto: the body, then the condition. */
Err *hlo_while(HloOp *o, OpKind kind) {
  const Hlo__Computation *body, *condition;
  TRY(hlo_called(o, 0, &body));
  TRY(hlo_called(o, 1, &condition));
  TRY(same_types(o, o->in.n, o->in.v, o->out.n, o->out.v, "the values it starts with"));
  TRY(hlo_region(o, condition));
  TRY(hlo_region(o, body));
  return hlo_emit(o, kind);
}

/* A branch takes operand k + 1 alone. Of a predicate: the true branch first. */
Err *hlo_conditional(HloOp *o, OpKind kind) {
  size_t n = o->i->n_called_computation_ids;
  if (!n || (size_t)o->n_operands != n + 1 || o->operand[0].n != 1)
    return err_new(ERR_INVALID, "a conditional of %zu branches with %d operands", n, o->n_operands);
  for (size_t k = 0; k < n; k++) {
    const Hlo__Computation *c;
    TRY(hlo_called(o, (int)k, &c));
    TRY(hlo_branch(o, c, 1, &o->operand[k + 1]));
  }
  bool predicate = o->operand[0].v[0]->type->dtype == DT_I1;
  o->in.n = 1;
  return hlo_emit(o, predicate ? OP_IF : kind);
}

static Err *func_of(HloOp *o, Func **out) {
  const Hlo__Computation *c;
  HloImport *im = o->s->im;
  TRY(hlo_called(o, 0, &c));
  *out = map_get(im->funcs, hlo_key(&c->id));
  if (*out) return NULL;
  TRY(hlo_func(im, c, str_from(c->name), true, out));
  map_set(im->funcs, hlo_key(&c->id), *out);
  return NULL;
}

Err *hlo_call(HloOp *o, OpKind kind) {
  (void)kind;
  Func *f;
  const Hlo__Computation *c;
  TRY(hlo_called(o, 0, &c));
  if (hlo_is_manual(c)) return hlo_manual(o, c);
  TRY(func_of(o, &f));
  TRY(same_types(o, o->in.n, o->in.v, f->type->n_elems, f->type->elems, "the operands"));
  if (f->type->n_results != o->out.n)
    return err_new(ERR_INVALID, "%s gives %d arrays, its computation %d", o->i->opcode, o->out.n,
                   f->type->n_results);
  for (int i = 0; i < o->out.n; i++) o->out.v[i] = f->type->results[i];
  hlo_put(o, "callee", attr_symbol(o->s->im->m, f->name));
  return hlo_emit(o, OP_CALL);
}

/* What is started is done at once; its shape has the operands and a context beside the results. */
Err *hlo_async(HloOp *o, OpKind kind) {
  if (!strcmp(o->i->opcode, "copy-start")) {
    TRY(hlo_first_operand(o, kind));
  } else {
    Func *f;
    TRY(func_of(o, &f));
    o->out.n = 0;
    for (int i = 0; i < f->type->n_results; i++) *vec_push(&o->out) = f->type->results[i];
    TRY(hlo_call(o, OP_CALL));
  }
  o->out.n = o->result.n;
  return NULL;
}

/* ---- custom calls ---------------------------------------------------------------------------- */

/* Typed FFI has a dictionary, written as MLIR does. What does not read stays a string. */
static Attr *config(HloOp *o, Str text) {
  Module *m = o->s->im->m;
  Attr *as_string = attr_string(m, arena_str(m->arena, text));
  if (o->i->custom_call_api_version != 4) return as_string;
  if (!text.n) return attr_dict(m, 0, NULL);
  Attr *dict = NULL;
  Err *e = stablehlo_read_attr(m, text, &dict);
  bool good = !e && dict->kind == AT_DICT;
  err_free(e);
  return good ? dict : as_string;
}

Err *hlo_custom_call(HloOp *o, OpKind kind) {
  const Hlo__Instruction *i = o->i;
  Module *m = o->s->im->m;
  bool done;
  TRY(hlo_shardy_call(o, &done));
  if (done) return NULL;
  hlo_put_str(o, "call_target_name", str_from(i->custom_call_target));
  hlo_put_i32(o, "api_version", i->custom_call_api_version ? i->custom_call_api_version : 1);
  hlo_put_bool(o, "has_side_effect", i->custom_call_has_side_effect);
  hlo_put(o, "backend_config",
          config(o, (Str){(const char *)i->backend_config.data, i->backend_config.len}));
  Attr **called = ARENA_ARRAY(m->arena, Attr *, i->n_called_computation_ids);
  size_t n = 0;
  for (; n < i->n_called_computation_ids; n++) {
    Func *f = NULL;
    const Hlo__Computation *c;
    TRY(hlo_called(o, (int)n, &c));
    TRY(hlo_func(o->s->im, c, str_from(c->name), true, &f));
    called[n] = attr_symbol(m, f->name);
  }
  if (n) hlo_put(o, "called_computations", attr_array(m, (int)n, called));
  if (i->sharding) {
    Str text = hlo_sharding_text(o->s->im, i->sharding, 0, 1);
    if (text.n) hlo_put_str(o, "mhlo.sharding", text);
  }
  return hlo_emit(o, kind);
}
