/* Attributes: constructors, lookup, comparison. */
#include "ir/ir_priv.h"

#include <stdlib.h>

static Attr *new_attr(Module *m, AttrKind kind) {
  Attr *a = ARENA_NEW(m->arena, Attr);
  a->kind = kind;
  return a;
}

Attr *attr_unit(Module *m) { return new_attr(m, AT_UNIT); }

Attr *attr_bool(Module *m, bool v) {
  Attr *a = new_attr(m, AT_BOOL);
  a->dtype = DT_I1;
  a->i = v;
  return a;
}

Attr *attr_int(Module *m, DType t, int64_t v) {
  Attr *a = new_attr(m, AT_INT);
  a->dtype = t;
  a->type = type_scalar(m, t, NULL);
  a->i = v;
  return a;
}

Attr *attr_float(Module *m, DType t, double v) {
  Attr *a = new_attr(m, AT_FLOAT);
  a->dtype = t;
  a->type = type_scalar(m, t, NULL);
  a->f = v;
  return a;
}

static Attr *with_str(Module *m, AttrKind kind, Str s) {
  Attr *a = new_attr(m, kind);
  a->s = arena_str(m->arena, s);
  return a;
}

Attr *attr_string(Module *m, Str s) { return with_str(m, AT_STRING, s); }
Attr *attr_symbol(Module *m, Str s) { return with_str(m, AT_SYMBOL, s); }
Attr *attr_enum(Module *m, Str s) { return with_str(m, AT_ENUM, s); }

Attr *attr_type(Module *m, Type *t) {
  Attr *a = new_attr(m, AT_TYPE);
  a->type = t;
  return a;
}

Attr *attr_ints(Module *m, DType elem, int n, const int64_t *v) {
  Attr *a = new_attr(m, AT_INTS);
  a->dtype = elem;
  a->n = n;
  a->ints = arena_dup(m->arena, v, sizeof(int64_t) * (size_t)n);
  return a;
}

Attr *attr_tensor(Module *m, Tensor *take, const Quant *q) {
  Attr *a = new_attr(m, AT_TENSOR);
  a->tensor = take;
  a->dtype = take->dtype;
  a->type = type_tensor_full(m, take->dtype, take->rank, take->dims, NULL, q);
  *vec_push(&m->tables->tensors) = take;
  return a;
}

Attr *attr_tensor_i64(Module *m, int rank, const int64_t *dims, const int64_t *v) {
  Tensor *t = tensor_make(DT_I64, rank, dims);
  if (t->count) memcpy(t->data, v, tensor_bytes(t));
  return attr_tensor(m, t, NULL);
}

Attr *attr_array(Module *m, int n, Attr *const *items) {
  Attr *a = new_attr(m, AT_ARRAY);
  a->n = n;
  a->items = arena_dup(m->arena, items, sizeof(Attr *) * (size_t)n);
  return a;
}

static int by_name(const void *a, const void *b) {
  return str_cmp(((const NamedAttr *)a)->name, ((const NamedAttr *)b)->name);
}

Attr *attr_dict(Module *m, int n, const NamedAttr *items) {
  Attr *a = new_attr(m, AT_DICT);
  a->n = n;
  a->dict = arena_dup(m->arena, items, sizeof(NamedAttr) * (size_t)n);
  qsort(a->dict, (size_t)n, sizeof *a->dict, by_name);
  return a;
}

static bool type_same(const Type *a, const Type *b) {
  if (a == b) return true;
  if (!a || !b) return false;
  Buf x = {0}, y = {0};
  type_print(&x, a);
  type_print(&y, b);
  bool same = x.n == y.n && !memcmp(x.p, y.p, x.n);
  buf_free(&x);
  buf_free(&y);
  return same;
}

static bool axes_equal(const AxisRef *a, int na, const AxisRef *b, int nb) {
  if (na != nb) return false;
  for (int i = 0; i < na; i++)
    if (!str_eq(a[i].name, b[i].name) || a[i].sub_pre != b[i].sub_pre ||
        a[i].sub_size != b[i].sub_size)
      return false;
  return true;
}

static bool mesh_equal(const Mesh *a, const Mesh *b) {
  if (!a || !b) return a == b;
  if (a->n_axes != b->n_axes || a->n_ids != b->n_ids) return false;
  for (int i = 0; i < a->n_axes; i++)
    if (!str_eq(a->axes[i].name, b->axes[i].name) || a->axes[i].size != b->axes[i].size)
      return false;
  return a->n_ids == 0 || !memcmp(a->ids, b->ids, sizeof(int64_t) * (size_t)a->n_ids);
}

static bool sharding_equal(const Sharding *a, const Sharding *b) {
  if (!str_eq(a->mesh_name, b->mesh_name) || !mesh_equal(a->mesh, b->mesh) ||
      a->n_dims != b->n_dims)
    return false;
  for (int i = 0; i < a->n_dims; i++) {
    const DimSharding *x = &a->dims[i], *y = &b->dims[i];
    if (x->open != y->open || x->priority != y->priority ||
        !axes_equal(x->axes, x->n_axes, y->axes, y->n_axes))
      return false;
  }
  return axes_equal(a->replicated, a->n_replicated, b->replicated, b->n_replicated) &&
         axes_equal(a->unreduced, a->n_unreduced, b->unreduced, b->n_unreduced);
}

bool attr_equal(const Attr *a, const Attr *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
  case AT_UNIT: return true;
  case AT_BOOL: return a->i == b->i;
  case AT_INT: return a->i == b->i && a->dtype == b->dtype;
  case AT_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f) && a->dtype == b->dtype;
  case AT_STRING:
  case AT_SYMBOL:
  case AT_ENUM:
  case AT_OPAQUE: return str_eq(a->s, b->s);
  case AT_TYPE: return type_same(a->type, b->type);
  case AT_INTS:
    return a->n == b->n && a->dtype == b->dtype &&
           (a->n == 0 || !memcmp(a->ints, b->ints, sizeof(int64_t) * (size_t)a->n));
  case AT_TENSOR: return type_same(a->type, b->type) && tensor_same_data(a->tensor, b->tensor);
  case AT_ARRAY:
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
      if (!attr_equal(a->items[i], b->items[i])) return false;
    return true;
  case AT_DICT:
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
      if (!str_eq(a->dict[i].name, b->dict[i].name) ||
          !attr_equal(a->dict[i].value, b->dict[i].value))
        return false;
    return true;
  case AT_MESH: return mesh_equal(a->mesh, b->mesh);
  case AT_SHARDING: return sharding_equal(a->sharding, b->sharding);
  }
  return false;
}

/* ---- reading ---- */

Attr *attrs_get(const NamedAttr *attrs, int n, const char *name) {
  size_t len = strlen(name);
  for (int i = 0; i < n; i++)
    if (attrs[i].name.n == len && !memcmp(attrs[i].name.p, name, len)) return attrs[i].value;
  return NULL;
}

Attr *op_attr(const Op *op, const char *name) { return attrs_get(op->attrs, op->n_attrs, name); }

int64_t op_int(const Op *op, const char *name, int64_t dflt) {
  const Attr *a = op_attr(op, name);
  if (!a) return dflt;
  if (a->kind == AT_INT || a->kind == AT_BOOL) return a->i;
  if (a->kind == AT_TENSOR && a->tensor->count == 1 && dtype_class(a->dtype) != DC_FLOAT &&
      dtype_class(a->dtype) != DC_COMPLEX)
    return elem_get_i64(a->dtype, a->tensor->data);
  return dflt;
}

bool op_bool(const Op *op, const char *name, bool dflt) {
  const Attr *a = op_attr(op, name);
  if (a && a->kind == AT_UNIT) return true;
  return op_int(op, name, dflt) != 0;
}

Str op_str(const Op *op, const char *name) {
  const Attr *a = op_attr(op, name);
  if (!a || (a->kind != AT_STRING && a->kind != AT_SYMBOL && a->kind != AT_ENUM)) return (Str){0};
  return a->s;
}

bool op_is_remark(const Op *op) {
  static const char *const targets[] = {
      "LayoutConstraint", "InspectSharding", "annotate_device_placement",
      "MoveToHost",       "MoveToDevice",    "AssumeGatherIndicesInBound"};
  if (op->kind != OP_CUSTOM_CALL || op->n_operands != 1 || op->n_results != 1 ||
      op->operands[0]->type != op->results[0].type)
    return false;
  Str target = op_str(op, "call_target_name");
  for (int i = 0; i < COUNT_OF(targets); i++)
    if (str_is(target, targets[i])) return true;
  return false;
}

int op_ints(const Op *op, const char *name, const int64_t **out) {
  Attr *a = op_attr(op, name);
  *out = NULL;
  if (!a) return 0;
  if (a->kind == AT_INTS) {
    *out = a->ints;
    return a->n;
  }
  if (a->kind != AT_TENSOR || a->tensor->splat || (a->dtype != DT_I64 && a->dtype != DT_INDEX))
    return 0;
  *out = a->tensor->data;
  return (int)a->tensor->count;
}
