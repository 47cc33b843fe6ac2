/* Replica groups by the axes of a mesh: #stablehlo.replica_group_mesh_axes<...>. */
#include "stablehlo/mesh_groups.h"
#include "stablehlo/text_priv.h"

#include <stdlib.h>

typedef VEC(AxisRef) AxisRefs;

/* #stablehlo.axis_ref<name = "x", sub_axis_info = (1)2> */
static Err *axis_ref(Text *t, AxisRef *out) {
  *out = (AxisRef){0};
  if (!text_is(t, T_HASH) || !str_is(t->s, "stablehlo.axis_ref"))
    return text_expected(t, "#stablehlo.axis_ref<...>");
  text_next(t);
  TRY(text_want(t, '<', "'<'"));
  TRY(text_want_word(t, "name"));
  TRY(text_want(t, '=', "'='"));
  TRY(text_string(t, &out->name));
  if (text_take(t, ',')) {
    TRY(text_want_word(t, "sub_axis_info"));
    TRY(text_want(t, '=', "'='"));
    if (text_is(t, T_HASH)) { /* #stablehlo.sub_axis_info(1)2 */
      if (!str_is(t->s, "stablehlo.sub_axis_info")) return text_expected(t, "a sub-axis");
      text_next(t);
    }
    TRY(text_want(t, '(', "'(' and the size before the sub-axis"));
    TRY(text_int(t, &out->sub_pre));
    TRY(text_want(t, ')', "')'"));
    TRY(text_int(t, &out->sub_size));
    if (out->sub_pre < 1 || out->sub_size < 1)
      return text_err_at(t, t->start, "sub-axis sizes must be positive");
  }
  return text_want(t, '>', "'>' after the axis");
}

/* #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>], device_ids = dense<..>> */
static Err *inline_mesh(Text *t, Mesh *m) {
  Attr *ids = NULL;
  VEC(MeshAxis) v = {0};
  TRY(text_want(t, '<', "'<'"));
  TRY(text_want_word(t, "axes"));
  TRY(text_want(t, '=', "'='"));
  TRY(text_want(t, '[', "'['"));
  Err *e = NULL;
  if (!text_is(t, ']')) do {
      MeshAxis *a = vec_push(&v);
      *a = (MeshAxis){0};
      if (text_is(t, T_HASH) && str_is(t->s, "stablehlo.mesh_axis")) text_next(t);
      e = text_want(t, '<', "'<' and an axis");
      if (!e) e = text_want_word(t, "name");
      if (!e) e = text_want(t, '=', "'='");
      if (!e) e = text_string(t, &a->name);
      if (!e) e = text_want(t, ',', "','");
      if (!e) e = text_want_word(t, "size");
      if (!e) e = text_want(t, '=', "'='");
      if (!e) e = text_int(t, &a->size);
      if (!e) e = text_want(t, '>', "'>' after the axis");
    } while (!e && text_take(t, ','));
  if (!e) e = text_want(t, ']', "',' or ']'");
  m->axes = arena_dup(t->m->arena, v.v, sizeof *v.v * (size_t)v.n);
  m->n_axes = v.n;
  vec_free(&v);
  if (e) return e;
  if (text_take(t, ',')) {
    const char *at = t->start;
    TRY(text_want_word(t, "device_ids"));
    TRY(text_want(t, '=', "'='"));
    TRY(text_attr(t, &ids));
    if (ids->kind != AT_TENSOR || ids->dtype != DT_I64 || ids->tensor->splat)
      return text_err_at(t, at, "expected dense<..> of i64");
    m->ids = ids->tensor->data;
    m->n_ids = (int)ids->tensor->count;
  }
  return text_want(t, '>', "'>' after the mesh");
}

/* After #stablehlo.replica_group_mesh_axes<: the matrix of groups when the mesh is known, else
 * text. */
static Err *mesh_groups_read(Text *t, Str *name, Mesh *own, AxisRefs *axes) {
  TRY(text_want_word(t, "mesh"));
  TRY(text_want(t, '=', "'='"));
  if (text_is(t, T_HASH) && str_is(t->s, "stablehlo.mesh")) {
    text_next(t);
    TRY(inline_mesh(t, own));
  } else {
    TRY(text_symbol(t, name));
  }
  TRY(text_want(t, ',', "','"));
  TRY(text_want_word(t, "axes"));
  TRY(text_want(t, '=', "'='"));
  TRY(text_want(t, '[', "'[' and axes"));
  if (!text_is(t, ']')) do {
      TRY(axis_ref(t, vec_push(axes)));
    } while (text_take(t, ','));
  TRY(text_want(t, ']', "',' or ']'"));
  return text_want(t, '>', "'>' after the replica groups");
}

Err *text_mesh_groups(Text *t, Attr **out) {
  const char *at = t->start;
  Str name = {0};
  Mesh own = {0};
  AxisRefs axes = {0};
  Err *e = mesh_groups_read(t, &name, &own, &axes);
  const Mesh *mesh = name.p ? map_get(t->meshes, name) : &own;
  if (!e && mesh) {
    int64_t total = 1;
    for (int i = 0; i < mesh->n_axes && !e; i++)
      if (mul_overflows(total, mesh->axes[i].size, &total) || total > 1 << 24)
        e = text_err_at(t, at, "the mesh of the replica groups is too large");
    if (!e) e = text_take_bytes(t, at, total * 8); /* the matrix is as large as the mesh */
    if (!e) e = text_place(t, mesh_groups(t->m, mesh, axes.v, axes.n, out), at);
  } else if (!e) {
    Buf b = {0};
    buf_cstr(&b, "#stablehlo.replica_group_mesh_axes<mesh = @");
    buf_str(&b, name);
    buf_cstr(&b, ", axes = [");
    for (int i = 0; i < axes.n; i++) {
      const AxisRef *x = &axes.v[i];
      buf_printf(&b, "%s#stablehlo.axis_ref<name = \"", i ? ", " : "");
      buf_str(&b, x->name);
      buf_byte(&b, '"');
      if (x->sub_size)
        buf_printf(&b, ", sub_axis_info = (%lld)%lld", (long long)x->sub_pre,
                   (long long)x->sub_size);
      buf_byte(&b, '>');
    }
    buf_cstr(&b, "]>");
    *out = attr_string(t->m, (Str){b.p, b.n});
    (*out)->kind = AT_OPAQUE;
    buf_free(&b);
  }
  vec_free(&axes);
  return e;
}
