/* pass_simplify: one walk forward over main that rewrites operands, folds what is constant, removes
 * what is the identity, merges equal ops (value numbering by a byte key over kind, operands, types,
 * attributes and small regions), and one walk backward that removes what nobody uses. Two rounds;
 * rules that need only one op and its operands' definitions are in simplify_rules.c. */
#include "compile/pass/pass_priv.h"

#include <stdlib.h>

#include "interp/interp.h"

#define FOLD_MAX 1024 /* elements of operands and results of what is evaluated here */

/* ---- equal ops ---- */

static void key_int(Buf *b, int64_t x) { buf_add(b, &x, sizeof x); }

static void key_tensor(Buf *b, const Tensor *t) {
  if (!t->data || tensor_held_bytes(t) > 4096) {
    buf_add(b, &t, sizeof t);
    return;
  }
  bool one = tensor_is_splat(t);
  key_int(b, (int)t->dtype);
  buf_add(b, t->dims, sizeof(int64_t) * (size_t)t->rank);
  buf_byte(b, one);
  buf_add(b, t->data, one ? (size_t)dtype_bytes(t->dtype) : tensor_bytes(t));
}

static void key_attr(Buf *b, const Attr *a) {
  key_int(b, (int)a->kind);
  buf_add(b, &a->type, sizeof a->type);
  switch (a->kind) {
  case AT_BOOL:
  case AT_INT: buf_add(b, &a->i, sizeof a->i); break;
  case AT_FLOAT: buf_add(b, &a->f, sizeof a->f); break;
  case AT_INTS: buf_add(b, a->ints, sizeof(int64_t) * (size_t)a->n); break;
  case AT_TENSOR: key_tensor(b, a->tensor); break;
  case AT_ARRAY:
    for (int i = 0; i < a->n; i++) key_attr(b, a->items[i]);
    break;
  case AT_DICT:
    for (int i = 0; i < a->n; i++) {
      buf_str(b, a->dict[i].name);
      key_attr(b, a->dict[i].value);
    }
    break;
  case AT_MESH:
  case AT_SHARDING: buf_add(b, &a, sizeof a); break;
  default: buf_str(b, a->s); break;
  }
  buf_byte(b, ';');
}

typedef struct KeyScope { /* numbers of the values inside a region being written into a key */
  Map *local;
  int n;
} KeyScope;

static void key_value(Buf *b, KeyScope *k, Value *v) {
  void *id = k ? map_get(k->local, (Str){(const char *)&v, sizeof v}) : NULL;
  if (id) {
    int n = (int)(intptr_t)id;
    buf_byte(b, 'l');
    buf_add(b, &n, sizeof n);
  } else {
    buf_byte(b, 'v');
    buf_add(b, &v, sizeof v);
  }
}

static void key_define(KeyScope *k, Value *v) {
  map_set(k->local, (Str){(const char *)&v, sizeof v}, (void *)(intptr_t)++k->n);
}

static void key_op(Buf *b, KeyScope *k, Op *op) {
  key_int(b, (int)op->kind);
  key_int(b, (int64_t)op->n_operands << 32 | op->n_results);
  if (op->kind == OP_UNKNOWN) buf_str(b, op->name);
  for (int i = 0; i < op->n_operands; i++) key_value(b, k, op->operands[i]);
  for (int i = 0; i < op->n_results; i++) buf_add(b, &op->results[i].type, sizeof(Type *));
  for (int i = 0; i < op->n_attrs; i++) {
    buf_str(b, op->attrs[i].name);
    buf_byte(b, '=');
    key_attr(b, op->attrs[i].value);
  }
  if (!op->n_regions) return;
  KeyScope own = {.local = map_new()};
  KeyScope *in = k ? k : &own;
  for (int i = 0; i < op->n_regions; i++) {
    Region *r = op->regions[i];
    buf_byte(b, '{');
    key_int(b, r->n_args);
    for (int a = 0; a < r->n_args; a++) key_define(in, r->args[a]);
    for (Op *o = r->first; o; o = o->next) {
      key_op(b, in, o);
      for (int j = 0; j < o->n_results; j++) key_define(in, &o->results[j]);
    }
    buf_byte(b, '}');
  }
  map_free(own.local);
}

static bool merge_equal(Simp *s, Op *op) {
  if (!op_is_pure(op) || op_info[op->kind].cls == OC_CONTROL || op->n_results == 0) return false;
  s->key.n = 0;
  buf_add(&s->key, &s->scope, sizeof s->scope);
  key_op(&s->key, NULL, op);
  Str key = {s->key.p, s->key.n};
  Op *same = map_get(s->seen, key);
  if (!same) {
    map_set(s->seen, key, op);
    *vec_push(&s->undo) = (Str){memcpy(xmalloc(key.n + 1), key.p, key.n), key.n};
    return false;
  }
  for (int i = 0; i < op->n_results; i++) simp_replace(s, &op->results[i], &same->results[i]);
  op_remove(op);
  return true;
}

/* ---- constants ---- */

/* A constant's data, of one value that is spread as well; NULL: it is none, or has many elements. The module's. */
static Tensor *known(Simp *s, const Value *v) {
  Tensor *t = value_constant(v);
  if (t || !type_is_static(v->type) || type_count(v->type) > FOLD_MAX) return t;
  const char *one = value_splat(v);
  if (!one || tensor_splat(v->type->dtype, v->type->rank, v->type->dims, one, &t)) return NULL;
  return attr_tensor(s->m, t, NULL)->tensor;
}

static bool fold_constant(Simp *s, Op *op) {
  OpClass c = op_info[op->kind].cls;
  if (c != OC_EWISE && c != OC_MOVE && op->kind != OP_DYNAMIC_SLICE && op->kind != OP_REDUCE &&
      op->kind != OP_GET_DIMENSION_SIZE)
    return false;
  if (op->n_results != 1 || !type_is_static(op_type(op)) || op_type(op)->quant) return false;
  int64_t n = type_count(op_type(op));
  if (n > FOLD_MAX || dtype_bytes(op_type(op)->dtype) == 0) return false;
  if ((op->kind == OP_BROADCAST_IN_DIM || op->kind == OP_BROADCAST) &&
      n > type_count(op->operands[0]->type))
    return false; /* kept small */
  Tensor *in[8];
  if (op->n_operands == 0 || op->n_operands > 8) return false;
  bool any = false; /* what is all spread is computed once */
  for (int i = 0; i < op->n_operands; i++) any |= value_constant(op->operands[i]) != NULL;
  for (int i = 0; i < op->n_operands; i++) {
    in[i] = any && !op->operands[i]->type->quant ? known(s, op->operands[i]) : NULL;
    if (!in[i] || in[i]->count > FOLD_MAX || !in[i]->data || op->operands[i]->type->quant)
      return false;
  }
  for (int i = 0; i < op->n_regions; i++)
    if (!region_is_pure(op->regions[i])) return false;
  Tensor *out = NULL;
  Err *e = NULL;
  for (int i = 0; i < op->n_operands && !e; i++) e = tensor_dense(in[i], &in[i]);
  if (!e) e = interp_eval(op, in, &out, NULL, NULL);
  if (e) { /* the run will say so */
    err_free(e);
    return false;
  }
  NamedAttr a = {STR("value"), attr_tensor(s->m, out, NULL)};
  simp_replace(s, &op->results[0], simp_op(s, op, OP_CONSTANT, 0, NULL, op_type(op), 1, &a));
  op_remove(op);
  return true;
}

/* ---- walks ---- */

static void count_uses(Map *uses, const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) {
      Str k = {(const char *)&op->operands[i], sizeof(Value *)};
      map_set(uses, k, (void *)((intptr_t)map_get(uses, k) + 1));
    }
    for (int i = 0; i < op->n_regions; i++) count_uses(uses, op->regions[i]);
  }
}

static bool has_spmd_call(const Region *r) {
  for (const Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_CUSTOM_CALL && str_starts(op_str(op, "call_target_name"), "SPMD"))
      return true;
    for (int i = 0; i < op->n_regions; i++)
      if (has_spmd_call(op->regions[i])) return true;
  }
  return false;
}

static Err *forward(Simp *s, Region *r);

/* case / if with a constant selector: the branch moves out. */
static bool flatten_case(Simp *s, Op *op) {
  Tensor *sel = value_constant(op->operands[0]);
  if (!sel || !sel->data) return false;
  int64_t i = elem_get_i64(sel->dtype, sel->data);
  if (op->kind == OP_IF) i = i ? 0 : 1;
  else if (i < 0 || i >= op->n_regions) i = op->n_regions - 1;
  Region *b = op->regions[i];
  Op *ret = b->last;
  for (Op *x = b->first, *next; x && x != ret; x = next) {
    next = x->next;
    op_remove(x);
    op_insert_before(op, x);
  }
  for (int k = 0; k < op->n_results; k++)
    simp_replace(s, &op->results[k], simp_resolve(s, ret->operands[k]));
  op_remove(op);
  return true;
}

/* Regions that are programs of their own (not the scalar bodies of reductions and sorts). */
static bool is_block(const Op *op) {
  return op->kind == OP_WHILE || op->kind == OP_CASE || op->kind == OP_IF ||
         op->kind == OP_MANUAL_COMPUTATION;
}

static void resolve_all(Simp *s, Region *r) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) op->operands[i] = simp_resolve(s, op->operands[i]);
    for (int i = 0; i < op->n_regions; i++) resolve_all(s, op->regions[i]);
  }
}

static Err *forward(Simp *s, Region *r) {
  int undo_from = s->undo.n;
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_operands; i++) op->operands[i] = simp_resolve(s, op->operands[i]);
    if (op->n_regions && !is_block(op))
      for (int i = 0; i < op->n_regions; i++) resolve_all(s, op->regions[i]);
    if ((op->kind == OP_CASE || op->kind == OP_IF)) {
      Op *before = op->prev;
      if (flatten_case(s, op)) { /* walk what came out */
        next = before ? before->next : r->first;
        continue;
      }
    }
    if (is_block(op)) {
      const Op *outer = s->scope;
      if (op->kind == OP_MANUAL_COMPUTATION)
        s->scope = op; /* its values are blocks: never mixed with those outside */
      for (int i = 0; i < op->n_regions; i++) TRY(forward(s, op->regions[i]));
      s->scope = outer;
    }
    Op *before = op->prev;
    if (simp_rules(
            s,
            op)) { /* new ops stand before op: look at them, and at op again if it is still there */
      next = before ? before->next : r->first;
      continue;
    }
    if (fold_constant(s, op)) continue;
    merge_equal(s, op);
  }
  for (int i = undo_from; i < s->undo.n; i++) {
    map_set(s->seen, s->undo.v[i], NULL);
    free((void *)s->undo.v[i].p);
  }
  s->undo.n = undo_from;
  return NULL;
}

static void mark_used(Module *m, Region *r, Map *used);

static bool keeps_itself(const Op *op) {
  if (op->kind == OP_RETURN) return true;
  if (op->kind == OP_OPTIMIZATION_BARRIER) return false;
  if (op->kind == OP_CUSTOM_CALL) {
    if (str_is(op_str(op, "call_target_name"), "control_dep"))
      return false; /* a wish for an order */
    return op_bool(op, "has_side_effect", false) || op->n_results == 0;
  }
  if (op_info[op->kind].cls == OC_CONTROL) {
    for (int i = 0; i < op->n_regions; i++)
      for (const Op *x = op->regions[i]->first; x; x = x->next)
        if (x->kind != OP_RETURN && keeps_itself(x)) return true;
    return false;
  }
  return !op_is_pure(op);
}

static void use_operands(Module *m, Op *op, Map *used) {
  for (int i = 0; i < op->n_operands; i++)
    map_set(used, (Str){(const char *)&op->operands[i], sizeof(Value *)}, op);
  for (int i = 0; i < op->n_regions; i++) mark_used(m, op->regions[i], used);
}

static bool is_used(Op *op, int result, Map *used) {
  Value *v = &op->results[result];
  return map_get(used, (Str){(const char *)&v, sizeof v}) != NULL;
}

/* JAX asks for eigenvectors always; LAPACK takes a fraction of the time where nobody reads them. */
static void want_values_only(Module *m, Op *op, Map *used) {
  Str name = op_str(op, "call_target_name");
  const Attr *config = op_attr(op, "mhlo.backend_config");
  if (!str_starts(name, "lapack_") || !config || config->kind != AT_DICT) return;
  bool eigen = str_ends(name, "syevd_ffi") || str_ends(name, "heevd_ffi"),
       singular = str_ends(name, "gesdd_ffi") && op->n_results == 5;
  if ((!eigen && !singular) || is_used(op, 0, used)) return;
  if (singular && (is_used(op, 2, used) || is_used(op, 3, used))) return;
  NamedAttr *items = arena_alloc(m->arena, sizeof *items * (size_t)MAX(config->n, 1));
  for (int i = 0; i < config->n; i++) {
    items[i] = config->dict[i];
    if (str_is(items[i].name, "mode") && items[i].value->kind == AT_INT)
      items[i].value = attr_int(m, items[i].value->dtype, 'N');
  }
  op_set_attr(m, op, STR("mhlo.backend_config"), attr_dict(m, config->n, items));
}

static void mark_used(Module *m, Region *r, Map *used) {
  for (Op *op = r->last, *prev; op; op = prev) {
    prev = op->prev;
    bool needed = keeps_itself(op);
    for (int i = 0; i < op->n_results && !needed; i++) needed = is_used(op, i, used);
    if (!needed) {
      op_remove(op);
      continue;
    }
    if (op->kind == OP_CUSTOM_CALL) want_values_only(m, op, used);
    use_operands(m, op, used);
  }
}

Err *pass_simplify(Module *m) {
  Func *f = module_main(m);
  for (int round = 0; round < 3; round++) {
    Simp s = {.m = m, .rep = map_new(), .seen = map_new(), .uses = map_new()};
    count_uses(s.uses, f->body);
    s.keep_shardings = has_spmd_call(f->body);
    Err *e = forward(&s, f->body);
    if (!e) resolve_all(&s, f->body);
    map_free(s.rep);
    map_free(s.seen);
    map_free(s.uses);
    for (int i = 0; i < s.undo.n; i++) free((void *)s.undo.v[i].p);
    vec_free(&s.undo);
    buf_free(&s.key);
    if (e) return e;
    Map *used = map_new();
    mark_used(m, f->body, used);
    map_free(used);
    if (!s.changed) break;
  }
  return NULL;
}
