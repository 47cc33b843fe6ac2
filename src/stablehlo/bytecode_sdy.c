/* Meshes and shardings in bytecode: Shardy's attributes, and the mesh axes of VHLO's replica
 * groups, which are alike. Axes and parts of shardings have no attribute of their own in the
 * module: they stay with their table entry (Entry.raw). */
#include <stdlib.h>

#include "stablehlo/bytecode_priv.h"
#include "stablehlo/mesh_groups.h"

/* ---- axes, meshes, replica groups ---- */

static AxisRef *new_axis_ref(Reader *r, Entry *e, Str name, int64_t pre, int64_t size) {
  AxisRef *a = ARENA_NEW(r->m->arena, AxisRef);
  *a = (AxisRef){name, pre, size};
  e->raw = a;
  e->raw_kind = RAW_AXIS_REF;
  return a;
}

Err *bc_sub_axis(Reader *r, Entry *e, Cur *c) {
  int64_t pre = cur_svarint(c), size = cur_svarint(c);
  if (pre < 1 || size < 1) return bc_err(r, c->p, "a sub-axis of size %lld", (long long)size);
  new_axis_ref(r, e, (Str){"", 0}, pre, size);
  return NULL;
}

/* Optional reference to a sub-axis; `present` is already known. */
Err *bc_axis_ref(Reader *r, Entry *e, Cur *c, Str name, bool present, uint64_t index) {
  AxisRef *a = new_axis_ref(r, e, name, 0, 0);
  if (!present) return NULL;
  Entry *sub;
  TRY(bc_entry(r, index, &sub));
  if (sub->raw_kind != RAW_AXIS_REF) return bc_err(r, c->p, "expected a sub-axis");
  const AxisRef *s = sub->raw;
  a->sub_pre = s->sub_pre;
  a->sub_size = s->sub_size;
  return NULL;
}

static Err *axis_refs(Reader *r, const Cur *c, const RawList *list, int *n, AxisRef **out) {
  *n = list->n;
  *out = ARENA_ARRAY(r->m->arena, AxisRef, list->n);
  for (int i = 0; i < list->n; i++) {
    if (list->items[i]->raw_kind != RAW_AXIS_REF) return bc_err(r, c->p, "expected a mesh axis");
    (*out)[i] = *(const AxisRef *)list->items[i]->raw;
  }
  return NULL;
}

Err *bc_axis(Reader *r, Entry *e, Cur *c, Str name) {
  MeshAxis *a = ARENA_NEW(r->m->arena, MeshAxis);
  *a = (MeshAxis){name, cur_svarint(c)};
  if (a->size < 1)
    return bc_err(r, c->p, "mesh axis '%.*s' of size %lld", STR_ARG(name), (long long)a->size);
  e->raw = a;
  e->raw_kind = RAW_AXIS;
  return NULL;
}

static Err *set_mesh(Reader *r, Entry *e, const Cur *c, int n, Entry *const *axes, int n_ids,
                     int64_t *ids) {
  Mesh *mesh = ARENA_NEW(r->m->arena, Mesh);
  mesh->n_axes = n;
  mesh->axes = ARENA_ARRAY(r->m->arena, MeshAxis, n);
  for (int i = 0; i < n; i++) {
    if (axes[i]->raw_kind != RAW_AXIS) return bc_err(r, c->p, "expected a mesh axis");
    mesh->axes[i] = *(const MeshAxis *)axes[i]->raw;
  }
  mesh->n_ids = n_ids;
  mesh->ids = ids;
  Attr *a = ARENA_NEW(r->m->arena, Attr);
  a->kind = AT_MESH;
  a->mesh = mesh;
  e->attr = a;
  return NULL;
}

Err *bc_vhlo_mesh(Reader *r, Entry *e, Cur *c) {
  RawList *axes;
  TRY(bc_need_raw(r, e, c, RAW_LIST, "a list of mesh axes", &axes));
  bool present;
  uint64_t index = cur_flag(c, &present);
  TRY(bc_check(r, c, "mesh"));
  Attr *ids = NULL;
  if (present) {
    TRY(bc_attr(r, index, &ids));
    if (ids->kind != AT_TENSOR || ids->dtype != DT_I64 || ids->tensor->splat ||
        ids->tensor->count > 1 << 24)
      return bc_err(r, c->p, "device ids of a mesh that are no list of integers");
  }
  return set_mesh(r, e, c, axes->n, axes->items, ids ? (int)ids->tensor->count : 0,
                  ids ? ids->tensor->data : NULL);
}

Err *bc_mesh_groups(Reader *r, Entry *e, Cur *c) {
  RawGroups *g = ARENA_NEW(r->m->arena, RawGroups);
  Attr *mesh;
  RawList *axes;
  TRY(bc_need_attr(r, e, c, &mesh));
  TRY(bc_need_raw(r, e, c, RAW_LIST, "a list of mesh axes", &axes));
  if (mesh->kind == AT_MESH) g->mesh = mesh->mesh;
  else if (mesh->kind == AT_STRING || mesh->kind == AT_SYMBOL) g->mesh_name = mesh->s;
  else return bc_err(r, c->p, "expected a mesh");
  TRY(axis_refs(r, c, axes, &g->n_axes, &g->axes));
  e->raw = g;
  e->raw_kind = RAW_GROUPS;
  return NULL;
}

static Err *unknown_groups(Reader *r, const RawGroups *g, Attr **out) {
  Buf b = {0};
  buf_printf(&b, "#stablehlo.replica_group_mesh_axes<mesh = @%.*s, axes = [",
             STR_ARG(g->mesh_name));
  for (int i = 0; i < g->n_axes && b.n < MAX_PRINTED; i++) {
    const AxisRef *x = &g->axes[i];
    if (x->name.n > MAX_PRINTED) break;
    buf_printf(&b, "%s#stablehlo.axis_ref<name = \"%.*s\"", i ? ", " : "", STR_ARG(x->name));
    if (x->sub_size)
      buf_printf(&b, ", sub_axis_info = (%lld)%lld", (long long)x->sub_pre, (long long)x->sub_size);
    buf_byte(&b, '>');
  }
  buf_cstr(&b, "]>");
  Err *e = NULL;
  if (b.n >= MAX_PRINTED) {
    e = bc_err(r, NULL, "replica groups of absurd size");
  } else {
    *out = attr_string(r->m, (Str){b.p, b.n});
    (*out)->kind = AT_OPAQUE;
  }
  buf_free(&b);
  return e;
}

Err *bc_groups(Reader *r, const RawGroups *g, Attr **out) {
  const Mesh *mesh = g->mesh ? g->mesh : module_mesh(r->m, g->mesh_name);
  if (!mesh) { /* kept as text; only a program that runs needs it */
    if (g->mesh_name.n > MAX_PRINTED) return bc_err(r, NULL, "a mesh with an absurd name");
    return unknown_groups(r, g, out);
  }
  int64_t total = 1; /* the matrix is as large as the mesh */
  for (int i = 0; i < mesh->n_axes; i++)
    if (mul_overflows(total, mesh->axes[i].size, &total) || total > 1 << 24)
      return bc_err(r, NULL, "the mesh of the replica groups is too large");
  if (total * 8 > ((int64_t)1 << 28) - r->expanded_bytes)
    return bc_err(r, NULL, "too many replica groups");
  r->expanded_bytes += total * 8;
  return mesh_groups(r->m, mesh, g->axes, g->n_axes, out);
}

/* ---- Shardy ---- */

/* A list of references, all of one raw kind. */
static Err *read_refs(Reader *r, Entry *e, Cur *c, int *n, Entry ***out) {
  *n = cur_count(c, 1);
  *out = ARENA_ARRAY(r->m->arena, Entry *, *n);
  for (int i = 0; i < *n; i++) TRY(bc_ref_entry(r, e, c, &(*out)[i]));
  return bc_check(r, c, "list");
}

static Err *read_axis_refs(Reader *r, Entry *e, Cur *c, int *n, AxisRef **out) {
  RawList list;
  TRY(read_refs(r, e, c, &list.n, &list.items));
  return axis_refs(r, c, &list, n, out);
}

static Err *read_sharding(Reader *r, Entry *e, Cur *c, uint64_t code) {
  Sharding *s = ARENA_NEW(r->m->arena, Sharding);
  Attr *mesh;
  Entry **dims;
  TRY(bc_need_attr(r, e, c, &mesh));
  if (mesh->kind == AT_SYMBOL) s->mesh_name = mesh->s;
  else if (mesh->kind == AT_MESH) s->mesh = mesh->mesh;
  else return bc_err(r, c->p, "a sharding without a mesh");
  TRY(read_refs(r, e, c, &s->n_dims, &dims));
  s->dims = ARENA_ARRAY(r->m->arena, DimSharding, s->n_dims);
  for (int i = 0; i < s->n_dims; i++) {
    if (dims[i]->raw_kind != RAW_DIM)
      return bc_err(r, c->p, "expected the sharding of a dimension");
    s->dims[i] = *(const DimSharding *)dims[i]->raw;
  }
  TRY(read_axis_refs(r, e, c, &s->n_replicated, &s->replicated));
  if (code != 6) TRY(read_axis_refs(r, e, c, &s->n_unreduced, &s->unreduced));
  if (code == 17 && cur_svarint(c) != 0)
    return bc_err(r, c->p, "an unreduced sharding other than by sum");
  e->attr = ARENA_NEW(r->m->arena, Attr);
  e->attr->kind = AT_SHARDING;
  e->attr->sharding = s;
  return NULL;
}

/* Factors of a sharding rule are named as Shardy prints them: i..z, then z_1, z_2, ... */
static void print_factor(Buf *b, int64_t f) {
  if (f <= 'z' - 'i') buf_byte(b, (int)('i' + f));
  else buf_printf(b, "z_%lld", (long long)(f - ('z' - 'i')));
}

static Err *print_mappings(Reader *r, Entry *e, Cur *c, Buf *b) {
  int n;
  Entry **maps;
  TRY(read_refs(r, e, c, &n, &maps));
  for (int i = 0; i < n; i++) {
    if (!maps[i]->attr || maps[i]->attr->kind != AT_ARRAY)
      return bc_err(r, c->p, "expected a tensor mapping");
    buf_cstr(b, i ? ", [" : "[");
    if (b->n >= MAX_PRINTED) return bc_err(r, c->p, "a sharding rule of absurd size");
    for (int k = 0; k < maps[i]->attr->n; k++) {
      const Attr *dim = maps[i]->attr->items[k];
      if (dim->kind != AT_INTS) return bc_err(r, c->p, "expected a dimension mapping");
      if (k) buf_cstr(b, ", ");
      for (int j = 0; j < dim->n && b->n < MAX_PRINTED; j++)
        print_factor(b, dim->ints[j] < 0 ? 0 : dim->ints[j]);
      if (b->n >= MAX_PRINTED) return bc_err(r, c->p, "a sharding rule of absurd size");
    }
    buf_cstr(b, "]");
  }
  return NULL;
}

static Err *print_rule(Reader *r, Entry *e, Cur *c, Buf *b) {
  static const char *const lists[] = {"reduction", "need_replication", "permutation",
                                      "blocked_propagation"};
  int n_factors;
  int64_t *sizes;
  TRY(bc_svarints(r, c, &n_factors, &sizes));
  buf_cstr(b, "#sdy.op_sharding_rule<(");
  TRY(print_mappings(r, e, c, b));
  buf_cstr(b, ")->(");
  TRY(print_mappings(r, e, c, b));
  buf_cstr(b, ") {");
  for (int i = 0; i < n_factors; i++) {
    if (i) buf_cstr(b, ", ");
    print_factor(b, i);
    buf_printf(b, "=%lld", (long long)sizes[i]);
  }
  buf_cstr(b, "}");
  for (int k = 0; k < COUNT_OF(lists); k++) {
    int n;
    int64_t *v;
    TRY(bc_svarints(r, c, &n, &v));
    if (!n) continue;
    buf_printf(b, " %s={", lists[k]);
    for (int i = 0; i < n; i++) {
      if (i) buf_cstr(b, ", ");
      print_factor(b, v[i] < 0 ? 0 : v[i]);
    }
    buf_cstr(b, "}");
  }
  if (cur_byte(c)) buf_cstr(b, ", custom");
  buf_cstr(b, ">");
  return bc_check(r, c, "sharding rule");
}

static Err *read_rule(Reader *r, Entry *e, Cur *c) {
  Buf b = {0};
  Err *err = print_rule(r, e, c, &b);
  if (!err) {
    e->attr = attr_string(r->m, (Str){b.p, b.n});
    e->attr->kind = AT_OPAQUE;
  }
  buf_free(&b);
  return err;
}

static Err *read_dim_sharding(Reader *r, Entry *e, Cur *c) {
  DimSharding *d = ARENA_NEW(r->m->arena, DimSharding);
  TRY(read_axis_refs(r, e, c, &d->n_axes, &d->axes));
  d->open = cur_byte(c) == 0;
  bool present;
  uint64_t priority = cur_flag(c, &present);
  d->priority = present ? (int64_t)(priority & INT32_MAX) : -1;
  e->raw = d;
  e->raw_kind = RAW_DIM;
  return NULL;
}

Err *bc_sdy_attr(Reader *r, Entry *e, Cur *c) {
  uint64_t code = cur_varint(c);
  Str name;
  switch (code) {
  case 0:
  case 7:
  case 9:
  case 11:
  case 12:
  case 14:
  case 16: return bc_array(r, e, c);
  case 1: name = bc_string(r, c); return bc_axis(r, e, c, name);
  case 2: {
    int n, n_ids;
    Entry **axes;
    int64_t *ids;
    TRY(read_refs(r, e, c, &n, &axes));
    TRY(bc_svarints(r, c, &n_ids, &ids));
    return set_mesh(r, e, c, n, axes, n_ids, ids);
  }
  case 3: return bc_sub_axis(r, e, c);
  case 4: {
    name = bc_string(r, c);
    bool present;
    uint64_t index = cur_flag(c, &present);
    TRY(bc_check(r, c, "axis"));
    return bc_axis_ref(r, e, c, name, present, index);
  }
  case 5: return read_dim_sharding(r, e, c);
  case 6:
  case 15:
  case 17: return read_sharding(r, e, c, code);
  case 8: return bc_ints(r, c, DT_I64, &e->attr);
  case 10: return read_rule(r, e, c);
  default: return bc_err(r, c->p, "sdy attribute code %llu", (unsigned long long)code);
  }
}
